"""Constraints and aggregation of a question, as records filled by `parse_constraints`, and results of `execute`.

Periods of edges and nodes are compared with temporal constraints, and neighbours in time are found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from byokg.graph.store import Direction, EdgeBatch, GraphStore
from byokg.offline.lexicon import dated_by, load_lexicon, pattern
from byokg.offline.schema_linking import PropertyLinker
from byokg.text.dates import Day, Period, read_date
from byokg.text.names import split_label, split_words
from byokg.types import EntityId, Properties, Value

PeriodPart = Literal["any", "begin", "end"]
"""Which end of a period is meant: any time in it, its beginning, its end."""


@dataclass(frozen=True)
class TemporalConstraint:
    """A period that something has to fall into; both ends belong to it, None is open."""

    first: str | None
    last: str | None
    edge: PeriodPart = "any"
    near: str = ""
    """The word that it stands with (`born` after 1950)."""
    strict: bool = False
    """Whether the ends themselves are left out."""
    words: str = ""
    """Words of the question."""
    mentions: tuple[int, ...] = ()
    """Mentions of the event whose time it is (`when Ada joined Acme`), in place of dates."""


@dataclass(frozen=True)
class Superlative:
    """The most or the least of something."""

    nouns: tuple[str, ...]
    """Compared property, as words; none compares dates."""
    most: bool
    place: int = 1
    dates: bool = False
    """True if dates are compared when there is no number."""
    words: str = ""
    edge: PeriodPart = "any"
    """End of a period that is ordered, if only one is."""
    counted: bool = False
    """Whether the nouns may also name things to count (`the most neighbours`)."""


@dataclass(frozen=True)
class Threshold:
    """A number that something has to be above or below."""

    nouns: tuple[str, ...]
    more: bool
    value: float
    mention: int | None = None
    """The mention whose own value it is, in place of a number."""
    dates: bool = False
    words: str = ""


@dataclass(frozen=True)
class SuccessorConstraint:
    """Who is next to a mention in time."""

    mentions: tuple[int, ...]
    """Who that may be, the likeliest first."""
    step: Literal[-1, 0, 1]
    """After, before, or at the same time."""
    years: int | None = None
    """Just so many years apart, or else next in order."""
    words: str = ""


@dataclass(frozen=True)
class QueryConstraints:
    """Constraints and aggregation beside the path."""

    rest: str
    """The question without the words that were read, as long as it was."""
    count: str = ""
    """Words of a count; empty without one."""
    counted: str = ""
    """Noun of the counted things."""
    order: Superlative | None = None
    times: tuple[TemporalConstraint, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    next: SuccessorConstraint | None = None
    without: tuple[int, ...] = ()
    """Mentions that are taken away."""
    lacking: str = ""
    """Negated property of the answers (`no land border`)."""
    union: tuple[int, ...] = ()
    """Mentions of which either is enough."""
    verify: bool = False
    """Whether it asks for yes or no about two mentions."""
    grouped: str = ""
    """Noun of the groups, if the question asks for one result of each (`the average price per city`)."""
    measure: tuple[int, int] = (0, 0)
    """First and last character of a superlative's measure in `rest` (`by area`), the latter exclusive."""

    @property
    def path_text(self) -> str:
        """Return the rest without the measure of a superlative."""
        start, end = self.measure
        return f"{self.rest[:start]}{' ' * (end - start)}{self.rest[end:]}"

    @property
    def plain(self) -> bool:
        """True if the question is a path question only."""
        return self == QueryConstraints(self.rest)


@dataclass(frozen=True)
class Outcome:
    """Result of an operation."""

    operation: str
    text: str
    """Description of the operation and its operands."""
    nodes: tuple[EntityId, ...] = ()
    values: tuple[Value, ...] = ()
    uses: tuple[str, ...] = ()
    """Ids of the evidence it was made of."""
    truncated: bool = False
    """Whether that had been cut; then a count is the least there are."""


def listing(names: Sequence[str], count: int | None = None, listed: int = 10) -> str:
    """Write names side by side, and how many are left out, of as many as there are in all."""
    shown = names[:listed]
    more = (len(names) if count is None else count) - len(shown)
    return " | ".join([*shown, *([f"… (+{more} more)"] if more > 0 else [])])


_EVER: Day = (1 << 20, 12, 31)
_NEVER: Day = (-(1 << 20), 1, 1)


def period(properties: Properties) -> Period | None:
    """Return the validity period of an edge or a node, from its properties; None without one."""
    found: dict[str, Period] = {}
    for key, value in properties.items():
        role = period_role(key)
        if role and (date := read_date(value)) is not None:
            found.setdefault(role, date)
    begin, end, point = found.get("begin_keys"), found.get("end_keys"), found.get("point_keys")
    if begin is None and point is not None:
        return point
    if begin is None and end is None:
        return None
    return Period(begin.begin if begin else None, end.end if end else None)


@lru_cache(1 << 10)
def period_role(key: str) -> str:
    """Return the list of the lexicon that names a property's role in a period; empty if there is none."""
    names, words = load_lexicon("time"), split_words(split_label(key.rpartition(":")[2]))
    roles = ("begin_keys", "end_keys", "point_keys")
    return next((role for role in roles if not set(names[role]).isdisjoint(words)), "")


def asked_part(text: str) -> PeriodPart:
    """Return the end of a period that a question means by its verbs: `joined`, `left`."""
    named: tuple[PeriodPart, ...] = ("begin", "end")
    return next((part for part in named if pattern(f"{part}s").search(text)), "any")


def is_point(properties: Properties) -> bool:
    """True if an edge has one date, so that a continuing state is open."""
    names = load_lexicon("time")
    words = {word for key in properties for word in split_words(split_label(key.rpartition(":")[2]))}
    ends = {*names["begin_keys"], *names["end_keys"]}
    return not words.isdisjoint(names["point_keys"]) and words.isdisjoint(ends)


def passes(held: Period, test: TemporalConstraint) -> bool:
    """True if a validity period passes a constraint."""
    first = read_date(test.first) if test.first is not None else None
    last = read_date(test.last) if test.last is not None else None
    low = _NEVER if first is None else (first.last if test.strict else first.start) or _NEVER
    high = _EVER if last is None else (last.start if test.strict else last.last) or _EVER
    start, end = held.start, held.last
    if test.first is None or test.last is None or test.edge == "begin":
        if test.edge == "end" and end is not None:
            return low <= end <= high
        if start is None:
            return False
        after = low < start if test.strict and test.first else low <= start
        return after and (start < high if test.strict and test.last else start <= high)
    if test.edge == "end":
        return end is not None and low <= end <= high
    return (start or _NEVER) <= high and (end or _EVER) >= low


def adjacent(asked: SuccessorConstraint, own: Period, rivals: Sequence[tuple[EntityId, Period]]) -> list[EntityId]:
    """Return those next to a period: at the nearest beginning, or at the same time."""
    assert own.start is not None
    dated = [(one.start, other) for other, one in rivals if one.start is not None]
    if asked.step == 0:
        wanted = own.start
    elif asked.years is not None:
        year = own.start[0] + asked.step * asked.years
        return [other for start, other in dated if start[0] == year]
    elif asked.step > 0:
        wanted = min((start for start, _ in dated if start > own.start), default=_EVER)
    else:
        wanted = max((start for start, _ in dated if start < own.start), default=_NEVER)
    return [other for start, other in dated if start == wanted]


_RIVALRIES = 100
"""Edges of a node whose other ends are looked at for who is next to it: each is a call to the store."""


class TemporalNeighbors:
    """Finds temporal neighbours; thread-safe.

    Args:
        store: the graph, without values as nodes.
        properties: compares words with the labels of relations.
    """

    def __init__(self, store: GraphStore, properties: PropertyLinker) -> None:
        self._store = store
        self._property_linker = properties

    def following(
        self, asked: SuccessorConstraint, source: Sequence[EntityId], others: Sequence[EntityId], near: str
    ) -> Outcome | None:
        """Return the temporal neighbour of a node: among those with an edge of the same relation to the same node.

        Args:
            asked: direction in time.
            source: candidate nodes.
            others: further nodes of the question; the common node is one of them if it can be.
            near: the question's words, to choose among relations.
        """
        best: tuple[float, Outcome] | None = None
        for score, node, shared, own, batch in self._events(source, others, near.split()):
            if asked.step == 0 and not own.point:
                continue
            way = Direction.OUT if batch.inverse[0] else Direction.IN
            around = self._store.edges(batch.other, way, batch.relation)
            periods = map(period, self._store.edge_properties(around.edge))
            pairs = zip(self._store.ids(around.other), periods, strict=True)
            chosen = adjacent(asked, own, [(id, one) for id, one in pairs if one is not None and id != node])
            if chosen and (best is None or score > best[0]):
                label = self._store.relations[int(batch.relation[0])]
                names = [node.name for node in self._store.nodes([node, shared, *chosen])]
                how = {1: "next after", -1: "last before", 0: "at the same time as"}[asked.step]
                text = f"{label} {names[1]} {how} {names[0]} ({_year(own)}): {listing(names[2:])}"
                best = score, Outcome("sequence", text, tuple(chosen))
        return best[1] if best else None

    def time_of(self, nodes: Sequence[EntityId], others: Sequence[EntityId], near: Sequence[str]) -> Period | None:
        """Return the time of an event: of a property named by a word, of an edge, or the only one of a node.

        Args:
            nodes: candidate nodes of one participant, or the event itself.
            others: those of further participants; an edge to one of them comes first.
            near: words about the event.
        """
        events = [(event[0], event[3]) for event in self._events(nodes, others, near)]
        for node in self._store.nodes(nodes):
            own = self._property_linker.find([node], [name for word in near for name in dated_by(word)])
            if own is not None and own.dates and (held := read_date(own.shown[node.id])) is not None:
                events.append((own.likeness, held))
            elif not events and (held := period(node.properties)) is not None:
                events.append((0.0, held))
        return max(events, key=lambda event: event[0], default=(0.0, None))[1]

    def _events(
        self, source: Sequence[EntityId], others: Sequence[EntityId], near: Sequence[str]
    ) -> Iterator[tuple[float, EntityId, EntityId, Period, EdgeBatch]]:
        """Yield the dated edges of some nodes, those to others if there are any, with the relation's likeness to words.

        Each with its node, the node at its other end, its period and itself.
        """
        schema = self._store.schema()
        dated = np.array([number for number, relation in enumerate(schema.relations) if relation.properties], np.int64)
        for node in source if len(dated) else ():
            batch = self._store.edges(self._store.numbers([node]), Direction.BOTH, dated)
            held = [period(properties) for properties in self._store.edge_properties(batch.edge)]
            shared = self._store.ids(batch.other)
            timed = [(place, one) for place, one in enumerate(held) if one is not None and one.start is not None]
            wanted = [(place, one) for place, one in timed if shared[place] in others] or timed
            for place, one in wanted[:_RIVALRIES]:
                label = schema.relations[int(batch.relation[place])].name
                score = max((self._property_linker.likeness(word, label) for word in near), default=0.0)
                yield score, node, shared[place], one, batch.take(np.array([place]))


def _year(held: Period) -> str:
    return "" if held.start is None else str(held.start[0])
