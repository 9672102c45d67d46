"""Which questions of a data set are asked: by id, type, random draw, count and shard, always in the set's order.

A draw takes the questions whose hashed seed and id are lowest, so it depends on nothing but these: a larger sample
contains the smaller ones, and a question that is added to the file displaces at most one other.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from byokg.errors import ConfigError
from byokg.evaluation.datasets.base import Example

_SHARD = re.compile(r"([0-9]+)/([0-9]+)")


@dataclass(frozen=True)
class Shard:
    """One of several parts of a run, each done on its own: the questions `number`, `number + count`, …, from 1."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `3/16`. Raises `ConfigError` for anything that is no such part."""
        found = _SHARD.fullmatch(text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ConfigError(f"shard={text} is no part of a run; the third of 16 is written shard=3/16")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def of(self, examples: Sequence[Example]) -> Sequence[Example]:
        """Return this part of the questions. Raises `ConfigError` where there are fewer questions than parts."""
        if len(examples) < self.count:
            raise ConfigError(f"shard={self} divides {len(examples)} questions; use at most that many shards")
        return examples[self.number - 1 :: self.count]


@dataclass(frozen=True)
class Draw:
    """How many questions are taken, in the order of the fields."""

    per_type: int | None = None
    """So many of each type, drawn; all of a type that has fewer."""
    sample: int | None = None
    """So many in all, drawn; all where there are fewer."""
    limit: int | None = None
    """The first of those."""
    seed: int = 0


def named(examples: Sequence[Example], ids: Collection[str], types: Collection[str]) -> list[Example]:
    """Return the questions of these ids and types; an empty collection leaves all.

    Raises:
        ConfigError: no question has one of the ids or types; says which types there are.
    """
    missing = [id for id in ids if id not in {example.id for example in examples}]
    if missing:
        raise ConfigError(f"ids: no question {missing[0]!r} among {len(examples):,}; check dataset.split")
    counts = Counter(example.type or "no type" for example in examples)
    unknown = [type for type in types if type not in counts]
    if unknown:
        held = ", ".join(f"{type} ({count:,})" for type, count in sorted(counts.items()))
        raise ConfigError(f"types: no question has the type {unknown[0]!r}; there are {held}")
    return [example for example in examples if (not ids or example.id in ids) and (not types or example.type in types)]


def drawn(examples: Sequence[Example], draw: Draw) -> list[Example]:
    """Return the questions that a draw takes, in the order given."""
    kept = list(examples)
    if draw.per_type is not None:
        lots: dict[str, list[Example]] = {}
        for example in kept:
            lots.setdefault(example.type, []).append(example)
        chosen = {each.id for lot in lots.values() for each in _lowest(lot, draw.per_type, draw.seed)}
        kept = [example for example in kept if example.id in chosen]
    if draw.sample is not None:
        chosen = {each.id for each in _lowest(kept, draw.sample, draw.seed)}
        kept = [example for example in kept if example.id in chosen]
    return kept[: draw.limit]


def _lowest(examples: Sequence[Example], count: int, seed: int) -> list[Example]:
    return sorted(examples, key=lambda example: hashlib.sha256(f"{seed} {example.id}".encode()).digest())[:count]
