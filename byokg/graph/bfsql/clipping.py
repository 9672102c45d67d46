"""How many items fit into a response, and cutting one that alone is more than it may hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from byokg.graph.bfsql.response import compact
from byokg.graph.schema_text import estimate_tokens

IDENTITY = frozenset(["id", "entity_type", "subject", "predicate", "object", "source", "target", "nodes"])
"""Fields that are never cut: what is cut is no id any more."""

_SHORTEST, _FEWEST = 16, 4
"""Characters of a text, and members of a list or object, that always stay."""
_CHARACTERS_A_MEMBER = 16
"""A list or object keeps a member for so many characters that a text would keep."""


def fitting_items(items: Sequence[Any], budget_tokens: int) -> int:
    """Return how many of the first items fit, one at least."""
    for at, item in enumerate(items):
        budget_tokens -= estimate_tokens(compact(item)) + 1
        if budget_tokens < 0 and at > 0:
            return at
    return len(items)


def within(items: Sequence[Any], budget_tokens: int) -> list[Any]:
    """Return the first items that fit; the first one alone is cut until it does."""
    count = fitting_items(items, budget_tokens)
    return [clipped(item, budget_tokens) for item in items[:1]] if count == 1 else list(items[:count])


def clipped(item: Any, budget_tokens: int) -> Any:
    """Return what JSON holds with its long texts and lists cut, each with a word on how much is missing.

    What fits stays as it is; fields of `IDENTITY` always do, so an item of long ids may be too long all the same.

    Args:
        item: a node, an edge, a row, as a response shows it.
        budget_tokens: as estimated.
    """
    length = 4 * max(budget_tokens, 1)
    found = item
    while estimate_tokens(compact(found)) > budget_tokens and length >= _SHORTEST:
        found = _cut(item, length)
        length //= 2
    return found


def _cut(value: Any, length: int) -> Any:
    """Cut each text to some characters, and each list and object in proportion."""
    members = max(_FEWEST, length // _CHARACTERS_A_MEMBER)
    if isinstance(value, str) and len(value) > length:
        return f"{value[:length]}… ({len(value) - length:,} more characters)"
    if isinstance(value, list):
        left = [f"… ({len(value) - members:,} more)"] if len(value) > members else []
        return [*(_cut(each, length) for each in value[:members]), *left]
    if isinstance(value, dict):
        shown = dict(list(value.items())[:members])
        cut = {key: each if key in IDENTITY else _cut(each, length) for key, each in shown.items()}
        return cut | ({"…": f"{len(value) - members:,} more"} if len(value) > members else {})
    return value
