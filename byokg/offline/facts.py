"""Facts of nodes and edges: properties that words mean, periods and neighbours in time, and walks along metapaths."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.graph.sorted_ids import distinct, rows_at
from byokg.graph.store import ALL_VALUES, Direction, EdgeBatch, GraphStore
from byokg.graph.traversal import Caps, expand
from byokg.index.embedders import Embedder, exact
from byokg.offline.lexicon import dated_by, load_lexicon
from byokg.offline.parse_constraints import SuccessorConstraint, TemporalConstraint
from byokg.text.dates import Day, Period, read_date
from byokg.text.names import LABEL_PARTS, related, split_label, split_words
from byokg.types import INVERSE, ComputedEvidence, EntityId, Metapath, Node, Properties, Value


@dataclass(frozen=True)
class PropertyThresholds:
    """Thresholds of property linking."""

    similar: float = 0.4
    """Cosine from which a word means a property."""
    stem: float = 0.9
    """Similarity of a word that shares a stem with a property's name; an equal one has 1."""
    known: float = 0.5
    """Share of nodes with a property from which they are compared by it, unless a question names it."""
    named: float = 0.95
    """Similarity from which a question names a property."""
    values: int = 3
    """Values of one relation per node, if edges lead to values."""
    later: float = 0.02
    """Discount of each further word for a measure."""


_SETTINGS = PropertyThresholds()

_AGE = frozenset(("age", "aged", "ages"))


@dataclass(frozen=True)
class LinkedProperty:
    """A property, and its value for each node that has it."""

    name: str
    values: Mapping[EntityId, float]
    shown: Mapping[EntityId, Value]
    likeness: float
    dates: bool = False

    @property
    def age(self) -> bool:
        """True for an age, of which the oldest has the most, and not the earliest."""
        return not self.dates and not _AGE.isdisjoint(split_words(split_label(self.name)))


class PropertyLinker:
    """Links words of a question to properties.

    Args:
        embedder: compares words.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.likeness = lru_cache(1 << 14)(self._likeness)
        """Returns the similarity of a word and a property's name, in [-1, 1]."""
        self._vector = lru_cache(1 << 12)(self._encoded)

    def find(
        self, nodes: Sequence[Node], nouns: Sequence[str], dates: bool = False, least: int = 2
    ) -> LinkedProperty | None:
        """Return the property most similar to the nouns; None if none of the nodes' is similar.

        Args:
            nodes: compared nodes.
            nouns: words for the measure, the best first.
            dates: take a date if no name is like the nouns and there is just one date.
            least: number of the nodes, if there are as many, that must have it.
        """
        columns: dict[str, dict[EntityId, Value]] = {}
        for node in nodes:
            for key, value in node.properties.items():
                if not key.endswith(ALL_VALUES):
                    columns.setdefault(key, {})[node.id] = value
        best: LinkedProperty | None = None
        timed: list[LinkedProperty] = []
        for key, shown in columns.items():
            if len(shown) < min(least, len(nodes)) or measure(next(iter(shown.values()))) is None:
                continue
            likeness = max(
                (self.likeness(noun, key) - _SETTINGS.later * place for place, noun in enumerate(nouns)), default=-1.0
            )
            if likeness < _SETTINGS.named and len(shown) < _SETTINGS.known * len(nodes):
                continue
            if likeness < _SETTINGS.similar and not dates:
                continue
            values = _measures(shown)
            if values is None:
                continue
            is_date = all(looks_dated(value) for value in shown.values())
            found = LinkedProperty(key, values, shown, likeness, is_date)
            if is_date:
                timed.append(found)
            if likeness >= _SETTINGS.similar and (best is None or likeness > best.likeness):
                best = found
        if best is None and dates and len(timed) == 1:
            return timed[0]
        return best

    def _likeness(self, noun: str, name: str) -> float:
        words = split_words(split_label(name.rpartition(":")[2].replace("_", " ")))
        if noun in words:
            return 1.0
        stem = _SETTINGS.stem if any(related(noun, word) for word in words if len(word) > 3) else -1.0
        vector = self._vector(noun)
        return max(
            stem, *(float(self._vector(text) @ vector) for text in (" ".join(words), *words) if len(text) > 2), -1.0
        )

    def _encoded(self, text: str) -> npt.NDArray[np.float64]:
        return exact(self._embedder.encode([text])[0])


def described(store: GraphStore, nodes: Sequence[Node], least: int = 2) -> Sequence[Node]:
    """Return nodes with the numbers and dates behind edges among their properties.

    If values are nodes of their own, as in RDF and Freebase, `River -discharge-> 250` acts as a property.

    Args:
        store: the graph.
        nodes: its nodes.
        least: number of the nodes, if there are as many, that must have such edges of a relation.
    """
    numbers = np.asarray(store.numbers([node.id for node in nodes]), np.int64)
    counts = store.relation_counts(numbers)
    out = ~counts.inverse & (counts.count <= _SETTINGS.values)
    having = np.bincount(counts.relation[out], minlength=len(store.relations))
    relations = np.flatnonzero(having >= max(1, min(least, len(nodes))))
    if not len(relations):
        return nodes
    batch = store.edges(numbers, Direction.OUT, relations)
    ends, place = np.unique(batch.other, return_inverse=True)
    names = [node.name for node in store.nodes(store.ids(ends))]
    rows = np.flatnonzero(np.array([measure(name) is not None for name in names], np.bool_)[place])
    told: dict[int, dict[str, Value]] = {}
    for origin, relation, end in zip(
        batch.origin[rows].tolist(), batch.relation[rows].tolist(), place[rows].tolist(), strict=True
    ):
        properties = told.setdefault(origin, dict(nodes[origin].properties))
        properties.setdefault(LABEL_PARTS.split(store.relations[relation])[-1], names[end])
    return [replace(node, properties=told.get(at, node.properties)) for at, node in enumerate(nodes)] if told else nodes


def _measures(shown: Mapping[EntityId, Value]) -> dict[EntityId, float] | None:
    """Return the number of each value; None if a value has none."""
    found = {}
    for id, value in shown.items():
        number = measure(value)
        if number is None:
            return None
        found[id] = number
    return found


def measure(value: Value) -> float | None:
    """Return a number for a value that can be compared: numbers as they are, dates as years with a fraction."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(value)
    except ValueError:
        pass
    date = read_date(value)
    if date is None or date.start is None:
        return None
    year, month, day = date.start
    return year + (month - 1) / 12 + (day - 1) / 372


def looks_dated(value: Value) -> bool:
    """True if a value may be a date: ISO 8601 text, or a whole number that could be a year."""
    if isinstance(value, bool | float):
        return False
    if isinstance(value, int):
        return 1000 <= value <= 2100
    return ("-" in value[1:] and read_date(value) is not None) or (value.isdigit() and 1000 <= int(value) <= 2100)


make_result = partial(ComputedEvidence, "operators", 0.0)
"""Makes the result of an operation."""


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
    ) -> ComputedEvidence | None:
        """Return the temporal neighbour of a node: among those with an edge of the same relation to the same node.

        Args:
            asked: direction in time.
            source: candidate nodes.
            others: further nodes of the question; the common node is one of them if it can be.
            near: the question's words, to choose among relations.
        """
        best: tuple[float, ComputedEvidence] | None = None
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
                best = score, make_result("sequence", text, tuple(chosen))
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


@dataclass(frozen=True)
class WalkLimits:
    """Limits of enumerated walks."""

    walks: int = 50_000
    """Walks of a metapath; one with more is skipped."""
    sample: int = 32
    """Sampled edges of a relation, for the number of ends per node."""


WALKS = WalkLimits()


@dataclass(frozen=True)
class WalkTable:
    """W walks of L hops."""

    steps: tuple[int, ...]
    """(L,) twice the number of each relation, plus one if it is walked from tail to head."""
    nodes: Int64
    """(W, L + 1) node numbers."""
    edges: Int64
    """(W, L) edge numbers."""

    def __len__(self) -> int:
        return len(self.nodes)

    def taken(self, rows: Int64 | npt.NDArray[np.bool_]) -> WalkTable:
        """Return some of the walks."""
        return WalkTable(self.steps, self.nodes[rows], self.edges[rows])


def walk_table(
    store: GraphStore, source: EntityId, metapath: Metapath, avoid: Collection[EntityId] = ()
) -> WalkTable | None:
    """Walk a metapath out of a node, a call to the store for each hop; None if there are too many walks.

    Args:
        store: the graph.
        source: start node.
        metapath: relations of the graph, with a leading `^` for one walked from tail to head.
        avoid: nodes that walks do not enter.
    """
    relations = store.relations
    nodes = np.asarray(store.numbers([source]), np.int64)[:, None]
    edges = np.empty((1, 0), np.int64)
    avoided = np.asarray(store.numbers(list(avoid)), np.int64)
    steps: list[int] = []
    for step in metapath:
        label = step.removeprefix(INVERSE)
        turned = step != label and (label in relations or step not in relations)
        relation = relations.index(label if turned else step)
        steps.append(2 * relation + turned)
        here, place = np.unique(nodes[:, -1], return_inverse=True)
        direction = Direction.IN if turned else Direction.OUT
        batch = expand(store, here, direction, np.array([relation]), Caps(per_relation=WALKS.walks + 1)).edges
        if np.bincount(batch.origin, minlength=len(here))[place].sum() > WALKS.walks:
            return None
        row, taken = rows_at(batch.origin, place)
        other = batch.other.astype(np.int64)[taken]
        nodes = np.concatenate((nodes[row], other[:, None]), axis=1)
        edges = np.concatenate((edges[row], batch.edge.astype(np.int64)[taken, None]), axis=1)
        kept = ~np.isin(other, avoided)
        nodes, edges = nodes[kept], edges[kept]
    return WalkTable(tuple(steps), nodes, edges)


def branching(store: GraphStore, share: float = 0.0) -> frozenset[int]:
    """Return the steps with several ends per node, from a sample; on a server, which is not sampled, all steps.

    Only those count with several ends for more than a `share` of the nodes, in [0, 1]. A step is twice the number of
    its relation, plus one if it is walked from tail to head.
    """
    if store.remote:
        return frozenset(range(2 * len(store.relations)))
    sample = store.sample_edges(WALKS.sample)
    counts = store.relation_counts(distinct(np.concatenate((sample.head, sample.tail)).astype(np.int64)))
    step = 2 * counts.relation.astype(np.int64) + counts.inverse
    several = np.bincount(step, counts.count > 1)
    return frozenset(np.flatnonzero(several > share * np.bincount(step)).tolist())
