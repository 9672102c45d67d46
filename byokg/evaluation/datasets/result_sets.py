"""Execution accuracy: whether the result of a query equals that of the gold query.

Published rules, as their code has them; `same_result` follows the first two:

| rule | rows | order of rows | columns | cells |
|---|---|---|---|---|
| Spider, test suites (arXiv:2010.02840) | multiset | if gold has ORDER BY | as many, in any order | equal |
| CypherBench (arXiv:2412.18702) | multiset | if gold has ORDER BY | as many, in any order | lists in any order |
| BIRD (arXiv:2305.03111) | set | ignored | as many, in the same order | equal |

Differs: where gold rows tie on returned sort keys, their order is free, since the query leaves it to the engine.
Numbers are equal to six significant digits, since engines add up in another order, and a text that writes a number
equals it, since some files hold all cells as texts; two whole numbers are equal only exactly. A node is its id, with
whatever properties; where the gold file records nodes by name alone, it is its name.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from byokg.graph.guard.tokens import Token, Unreadable, tokenise_cypher
from byokg.types import EdgeCell, NodeCell, PathCell

Row: TypeAlias = Sequence[object]
_Codes: TypeAlias = tuple[int, ...]

TOLERANCE = 1e-6
"""Relative difference of two numbers that are equal, unless both are whole."""

NODE = "node"
"""Key of a node's id in a cell of a file: `{"node": "69", …}`."""

_ZERO = 1e-12
"""Absolute difference within which a sum that should be 0 is."""

_DIGITS = 18
"""Digits of a whole number at most; a longer one is compared as text."""

_RECORDED = ("id", "name", "type", "properties")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class GoldResult:
    """Result of a gold query."""

    rows: Sequence[Row]
    count: int | None = None
    """Rows of the whole result. Fewer than `rows`: the query cuts ties, and any of them are right. More: the others are
    not recorded. None if unknown: repetitions do not count."""
    query: str = ""
    """The openCypher query, for its order; empty if unknown."""


def same_result(gold: GoldResult, rows: Sequence[Row], further_columns: bool = False) -> bool:
    """Return True if a result equals the gold one.

    Args:
        gold: the gold result.
        rows: (R, C) the result; all of its rows.
        further_columns: accept columns that the gold result lacks; otherwise the columns are as many.
    """
    if not gold.rows or not rows:
        return not gold.rows and not rows
    width, wide = _width(gold.rows), _width(rows)
    if not 0 < width <= wide or (wide > width and not further_columns):
        return False
    if gold.count is not None and len(rows) != gold.count:
        return False
    right, said = _coded(gold.rows, rows)
    return _ColumnSearch(right, said, gold).holds()


def same_sets(gold: GoldResult, rows: Sequence[Row]) -> bool:
    """Return True if two results are equal as sets of rows, column by column: the rule of BIRD."""
    if not gold.rows or not rows or not 0 < _width(gold.rows) == _width(rows):
        return not gold.rows and not rows
    right, said = _coded(gold.rows, rows)
    return set(zip(*right, strict=True)) == set(zip(*said, strict=True))


def _width(rows: Sequence[Row]) -> int:
    """Return the number of columns; 0 if rows differ in it."""
    widths = set(map(len, rows))
    return widths.pop() if len(widths) == 1 else 0


class _ColumnSearch:
    """A search for columns of a result that hold the gold rows."""

    def __init__(self, gold: Sequence[_Codes], said: Sequence[_Codes], result: GoldResult) -> None:
        self._gold, self._said = gold, said
        self._count, self._length = result.count, len(result.rows)
        ordered = result.count == self._length > 1
        self._keys = sort_keys(result.query, len(gold)) if ordered else ()
        """Gold columns that order the rows; None if a sort key is not among them, so that ties are unknown."""

    def holds(self, chosen: tuple[int, ...] = ()) -> bool:
        """Return True if further columns, one for each gold column that has none yet, complete the match."""
        if len(chosen) == len(self._gold):
            return self._in_order(chosen)
        tried: set[_Codes] = set()
        for at, column in enumerate(self._said):
            if at in chosen or column in tried:
                continue
            tried.add(column)
            wider = (*chosen, at)
            if self._fits(wider) and self.holds(wider):
                return True
        return False

    def _fits(self, chosen: tuple[int, ...]) -> bool:
        right = Counter(zip(*self._gold[: len(chosen)], strict=True))
        said = Counter(zip(*(self._said[at] for at in chosen), strict=True))
        if self._count is None:
            return right.keys() == said.keys()
        if self._count < self._length:
            return said <= right
        return right <= said

    def _in_order(self, chosen: tuple[int, ...]) -> bool:
        if self._keys == ():
            return True
        right = list(zip(*self._gold, strict=True))
        said = list(zip(*(self._said[at] for at in chosen), strict=True))
        if self._keys is None:
            return right == said
        start = 0
        for end in range(1, len(right) + 1):
            tied = end < len(right) and all(right[end][key] == right[start][key] for key in self._keys)
            if not tied:
                if Counter(right[start:end]) != Counter(said[start:end]):
                    return False
                start = end
        return True


# Cells


class _NodeId(NamedTuple):
    id: str


def _coded(gold: Sequence[Row], said: Sequence[Row]) -> tuple[list[_Codes], list[_Codes]]:
    """Return the columns of both results with a number for each cell, the same for equal cells."""
    named = all(node_id(cell) is None for row in gold for cell in row)
    tables = [[[_resolved(cell, named) for cell in row] for row in rows] for rows in (gold, said)]
    classes = _number_classes(number for rows in tables for number in _numbers(rows))
    codes: dict[object, int] = {}
    right, other = (
        [tuple(codes.setdefault(_form(row[at], classes), len(codes)) for row in rows) for at in range(len(rows[0]))]
        for rows in tables
    )
    return right, other


def node_id(cell: object) -> str | None:
    """Return the id of a node in a result, as a store returns it or as a file records it; None for another cell."""
    if isinstance(cell, NodeCell):
        return cell.id
    if isinstance(cell, Mapping):
        if NODE in cell:
            return str(cell[NODE])
        if all(field in cell for field in _RECORDED):
            return str(cell["id"])
    return None


def _resolved(cell: object, named: bool) -> object:
    """Return a cell with plain values; nodes by name or by id."""
    if (id := node_id(cell)) is not None:
        fields = vars(cell) if isinstance(cell, NodeCell) else cell
        assert isinstance(fields, Mapping)
        return fields.get("name", id) if named else _NodeId(id)
    if isinstance(cell, EdgeCell | PathCell):
        cell = vars(cell)
    if isinstance(cell, Mapping):
        return {key: _resolved(value, named) for key, value in cell.items()}
    return [_resolved(each, named) for each in cell] if isinstance(cell, list | tuple) else cell


def _number_classes(numbers: Iterable[float | int]) -> dict[float | int, int]:
    """Return a class for each number, the same for equal ones; two different whole numbers never share one."""
    classes: dict[float | int, int] = {}
    last: float | int | None = None
    whole: float | int | None = None
    for number in sorted(set(numbers)):
        is_whole = float(number).is_integer()
        near = last is not None and math.isclose(number, last, rel_tol=TOLERANCE, abs_tol=_ZERO)
        if not near or (is_whole and whole is not None):
            whole = None
            classes[number] = len(classes)
        else:
            assert last is not None
            classes[number] = classes[last]
        whole = number if is_whole else whole
        last = number
    return classes


def _number(cell: object) -> float | int | None:
    """Return the number that a cell is or that its text writes; None if it is another thing."""
    if isinstance(cell, bool) or not isinstance(cell, int | float | str):
        return None
    text = str(cell)
    digits = text.lstrip("+-")
    if not _NUMBER.fullmatch(text) or (digits[0] == "0" and digits[1:2].isdigit()):  # leading zeros make an identifier
        return None
    return (int(text) if len(digits) <= _DIGITS else None) if digits.isdigit() else float(text)


def _numbers(cell: object) -> Iterable[float | int]:
    """Yield the numbers in a cell, those in lists and maps too."""
    if isinstance(cell, Mapping):
        cell = list(cell.values())
    if isinstance(cell, list):
        for each in cell:
            yield from _numbers(each)
    elif (number := _number(cell)) is not None:
        yield number


def _form(cell: object, classes: Mapping[float | int, int]) -> object:
    """Return a form of a resolved cell that is the same for equal ones."""
    if (number := _number(cell)) is not None:
        return "number", classes[number]
    if isinstance(cell, list):
        return "list", frozenset(Counter(_form(each, classes) for each in cell).items())
    if isinstance(cell, Mapping):
        return "map", frozenset((key, _form(value, classes)) for key, value in cell.items())
    return type(cell).__name__, cell


# Order


def sort_keys(query: str, columns: int) -> tuple[int, ...] | None:
    """Return the columns of an openCypher query's result that order its rows, in the order of ORDER BY.

    Args:
        query: the query.
        columns: number of columns of its result.

    Returns:
        Positions; empty if the last RETURN has no ORDER BY, or the query cannot be read; None if a sort key is not
        among the columns.
    """
    try:
        tokens, _ = tokenise_cypher(query)
    except Unreadable:
        return ()
    returned, ordered = _last_clauses(tokens)
    if not ordered:
        return ()
    items = [_named_item(item) for item in _split(returned)]
    if len(items) != columns:
        return None
    keys = []
    for key in _split(ordered):
        written = [token for token in key if token.key not in ("ASC", "ASCENDING", "DESC", "DESCENDING")]
        text = _written(written)
        place = next((at for at, names in enumerate(items) if text in names), None)
        if place is None:
            return None
        keys.append(place)
    return tuple(keys)


def _last_clauses(tokens: Sequence[Token]) -> tuple[list[Token], list[Token]]:
    """Return the tokens of the last RETURN and of its ORDER BY, outside all brackets."""
    parts: tuple[list[Token], list[Token]] = ([], [])
    place, level = -1, 0
    for before, token in zip((None, *tokens), tokens, strict=False):
        level += (token.key in "([{") - (token.key in ")]}") if len(token.key) == 1 else 0
        if token.key in (";", "end") and not level:
            break
        if not level and before is not None and before.key != ".":
            if token.key == "RETURN":
                place, parts = 0, ([], [])
                continue
            if place >= 0 and token.key in ("ORDER", "SKIP", "LIMIT", "OFFSET", "UNION"):
                place = 1 if token.key == "ORDER" else 2
                continue
        elif before is None and token.key == "RETURN":
            place = 0
            continue
        if place in (0, 1) and token.key not in ("DISTINCT", "BY"):
            parts[place].append(token)
    return parts


def _split(tokens: Sequence[Token]) -> list[list[Token]]:
    """Return the parts between commas, outside all brackets."""
    parts: list[list[Token]] = [[]]
    level = 0
    for token in tokens:
        level += (token.key in "([{") - (token.key in ")]}") if len(token.key) == 1 else 0
        if token.key == "," and not level:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _named_item(item: Sequence[Token]) -> tuple[str, ...]:
    """Return the expression of a column, and its alias if it has one."""
    if len(item) > 2 and item[-2].key == "AS":
        return _written(item[:-2]), _written(item[-1:])
    return (_written(item),)


def _written(tokens: Sequence[Token]) -> str:
    return " ".join(token.text for token in tokens).casefold()
