"""Grounded candidate queries: structure, quality, and Cypher text.

A candidate starts at one or two linked entities, walks relations that exist there, and ends at possible answers;
conditions on these, a count or the first of an order may follow. `enumerate_candidates` enumerates them in numpy over
any graph. All are executable, for any characters in the graph's names.

Source: GraphRAFT (arXiv:2504.05478), "Synthesize ground-truth cypher" and "K-hop query path templates".
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol

import numpy as np

from byokg.arrays import Bools, Float64, Int64
from byokg.errors import ConfigError, at_least
from byokg.graph.servers.cypher_schema import quote, writable
from byokg.graph.servers.cypher_store import CypherStore
from byokg.graph.store import Direction, GraphStore, PropertySchema
from byokg.text.dates import DATE, DATES, Period, read_periods
from byokg.text.names import is_identifier, label_words, plan_text, singular
from byokg.types import INVERSE, Cell, EntityId, LinkedValue, Mention, Metapath, Value

Template = Literal["one_hop", "two_hop", "three_hop", "between", "intersection", "mediated", "holders"]
"""One path; two entities one hop from the target (entity–x–entity); two paths, one of them longer, that meet in the
target; two entities one hop from a node that is one hop from the target (as Freebase ties an actor to a role); the
nodes that hold a value of the question."""

PATHS: tuple[Template, ...] = ("one_hop", "two_hop", "three_hop")
TEMPLATES: tuple[Template, ...] = (*PATHS, "between", "intersection", "mediated")

_ORDERED_KINDS = ("int", "float", "date")

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


@dataclass(frozen=True)
class NodeIdSyntax:
    """How one store's queries name nodes."""

    id_property: str | None = "id"
    """Property that holds a node's id; None if the server's own ids do."""
    identity: str = "elementId"
    """Function that gives a server's own id."""


@dataclass(frozen=True)
class Anchor:
    """A linked entity that a candidate starts from, or all nodes of a type with some values."""

    id: EntityId
    """Empty for nodes with values."""
    name: str
    """Of nodes with values the words of the question."""
    type: str = ""
    key: str | None = "name"
    """Property that holds the exact name; None if there is none."""
    values: tuple[tuple[str, Value], ...] = ()
    """Properties with the value that each has, by which the nodes are found; empty for an entity."""


@dataclass(frozen=True)
class QueryHop:
    """One hop."""

    relation: str
    direction: Direction
    """Direction of its edges, seen from the anchor's side; BOTH if walks take either way."""


@dataclass(frozen=True)
class Leg:
    """A path out of an anchor."""

    anchor: Anchor
    steps: tuple[QueryHop, ...]


@dataclass(frozen=True)
class Attribute:
    """Where a value of a target stands."""

    place: Literal["node", "edge", "neighbour"]
    """In a property of the target, or of the edge that was walked last; or it is the name of a neighbour."""
    key: str
    """The property, or the relation that leads to the neighbour, whichever way it lies."""
    dated: bool = False
    """True for dates and years."""


@dataclass(frozen=True)
class Conditions:
    """Constraints of a question on targets beyond the path."""

    periods: tuple[Period, ...] = ()
    """Periods that a value of theirs may have to be in."""
    extremes: tuple[bool, ...] = ()
    """Orders whose first may be the answer: True for the highest value first, False for the lowest."""
    words: frozenset[str] | None = None
    """Words of the question in the singular, which name the value of an order; None for any value."""
    latest: bool = False
    """True if orders may also be those of dates."""
    count: bool = False
    """Whether their number may be."""
    values: tuple[LinkedValue, ...] = ()
    """Values that the question names; targets, or entities that lead to them, may have to hold one."""

    @classmethod
    def of(cls, question: str, values: Sequence[LinkedValue] = ()) -> Conditions:
        """Read them off a question's words; of the values of a mention the best counts."""
        best: dict[Mention, LinkedValue] = {}
        for value in values:
            best.setdefault(value.mention, value)
        words = frozenset(map(singular, re.findall(r"[a-z]+", question.casefold())))
        counts = re.search(r"\bhow many\b|\bnumber of\b", question.casefold()) is not None
        superlatives = {word for word in words if word in _TEMPORAL or _MOST.fullmatch(word)}
        extremes = tuple(dict.fromkeys(word not in LOWEST for word in sorted(superlatives)))
        return cls(read_periods(question), extremes, words, bool(words & _TEMPORAL), counts, tuple(best.values()))

    def orders(self, attribute: Attribute) -> bool:
        """True if the question may order by a value: it names it, or has a word such as `first` and it is a date."""
        if not self.extremes:
            return False
        if self.words is None or (self.latest and attribute.dated):
            return True
        return not self.words.isdisjoint(map(singular, label_words(attribute.key)[1]))

    def asks_for(self, property: str) -> bool:
        """True if the question has all words of a property's name, but for those that only mark a number."""
        own = frozenset(map(singular, label_words(property)[1]))
        return bool(self.words) and (own - _MARKS or own) <= (self.words or frozenset())


_MARKS = frozenset("no nr num number id of the name".split())
LOWEST = frozenset("first earliest oldest smallest lowest least fewest shortest nearest closest narrowest".split())
"""Superlatives of low values."""
_TEMPORAL = frozenset("first last latest newest earliest oldest youngest recent current now".split())
_MOST = re.compile(r"[a-z]{3,}est|most|least")


@dataclass(frozen=True)
class CandidateQuery:
    """A query over the graph that finds something.

    `hits` of its `total` results are among the `gold` correct answers; all three count distinct nodes, except that a
    counting candidate has one result. Without gold answers, `hits` and `gold` are 0.
    """

    template: Template
    legs: tuple[Leg, ...]
    total: int
    hits: int = 0
    gold: int = 0
    tail: tuple[QueryHop, ...] = ()
    """Hops from the meeting point of the legs to the target."""
    end_type: str = ""
    """Type that targets have; empty for any."""
    end_values: tuple[tuple[str, Value], ...] = ()
    """Properties of the targets, each with its value."""
    period: tuple[Attribute, Period] | None = None
    """A value that is a year or a date in this period."""
    extreme: tuple[Attribute, bool] | None = None
    """Only the target with the highest value, or the lowest if False; the lower id of equal ones."""
    count: bool = False
    """Whether the answer is the number of targets."""
    asked: str = ""
    """Property of the targets whose values are the answer; empty if the targets are."""
    directed: bool = False
    """True if edges must have the direction of `QueryHop.direction`; A.2 takes either way. Queries have arrows in both
    cases: if all walks to the results take one direction, an arrow leaves out none."""
    results: int = field(default=0, compare=False, repr=False)
    """Checksum of the results: candidates with equal ones return the same nodes."""
    dialect: NodeIdSyntax = field(default=NodeIdSyntax(), compare=False, repr=False)

    @property
    def precision(self) -> float:
        """Return the share of results that are correct, in [0, 1]."""
        return self.hits / self.total if self.total else 0.0

    @property
    def recall(self) -> float:
        """Return the share of correct answers that are found, in [0, 1]."""
        return self.hits / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Return the harmonic mean of both, in [0, 1]."""
        return 2 * self.hits / (self.total + self.gold) if self.hits else 0.0

    @property
    def metapath(self) -> Metapath:
        """Return the relations from the first anchor to the target, `^` where every edge lies towards the anchor."""
        return _labels((*self.legs[0].steps, *self.tail))

    @cached_property
    def query(self) -> str:
        """Return it as executable Cypher without parameters, for language models to read and write."""
        return _Writer(self, literal).query(ranked=False)

    @cached_property
    def plan(self) -> str:
        """Return it as a plan, which is shorter than Cypher and stands for it alone: `Ann -> ^wrote -> genre`.

        Another entity's path follows ` & `, the hops behind the meeting point ` => `, and a condition ` | `.
        """
        legs = " & ".join(plan_text(leg.anchor.name, _labels(leg.steps)) for leg in self.legs)
        conditions: list[object] = [self.end_type, *(f"{key}={value}" for key, value in self.end_values)]
        if self.period:
            attribute, period = self.period
            conditions.append(f"{attribute.place} {attribute.key} {period.begin} to {period.end}")
        if self.extreme:
            attribute, highest = self.extreme
            conditions.append(f"{'most' if highest else 'least'} {attribute.place} {attribute.key}")
        conditions += [self.asked and f"its {self.asked}", "how many" if self.count else ""]
        return " | ".join(map(str, filter(None, [" => ".join((legs, *_labels(self.tail))), *conditions])))

    @cached_property
    def _parametrised(self) -> tuple[str, dict[str, Cell]]:
        keys: dict[tuple[type, Value], str] = {}

        def put(value: Value) -> str:
            return f"${keys.setdefault((type(value), value), f'p{len(keys) + 1}')}"

        text = _Writer(self, put).query(ranked=True)
        return text, {key: value for (_, value), key in keys.items()}

    @property
    def text(self) -> str:
        """Return it as Cypher with `parameters`, for running: those that most walks reach come first, then by id."""
        return self._parametrised[0]

    @property
    def parameters(self) -> dict[str, Cell]:
        """Return the values of the parameters of `text`."""
        return self._parametrised[1]


def _labels(steps: Iterable[QueryHop]) -> Metapath:
    return tuple(f"{INVERSE if step.direction is Direction.IN else ''}{step.relation}" for step in steps)


@dataclass(frozen=True)
class CandidateQueries:
    """Candidates around the anchors of one question."""

    items: tuple[CandidateQuery, ...]
    truncated: tuple[str, ...] = ()
    """Parts not walked because they exceed the budget, a sentence each."""


@dataclass(frozen=True)
class Templates:
    """Which candidates are looked for, and how much may be read for them.

    Raises:
        ConfigError: a template is unknown, or the budget leaves nothing.
    """

    names: tuple[Template, ...] = ("one_hop", "two_hop", "between", "intersection", "mediated")
    events: bool = True
    """Also paths of three edges through an event node: one without a name, as an office held or a border shared."""
    typed: bool = True
    """Also those whose ends are of one type, where ends have several."""
    directed: bool = False
    """Whether a relation walked one way and the other makes two candidates; A.2 makes one."""
    budget: int = 2_000_000
    """Pairs of a walk's beginning and an edge that lengthens it, for each hop, and of two paths that meet; of a hub
    with more edges only the rarest relations are walked."""
    described: int = 100_000
    """Results whose types or values are read at most; larger results stand without such conditions."""

    @classmethod
    def of(cls, hops: int, directed: bool = False) -> Templates:
        """Return all templates with paths of at most so many hops. Raises `ConfigError` for none, or for too many."""
        if not 1 <= hops <= len(PATHS):
            raise ConfigError(f"hops={hops} is out of range; paths of candidates have 1 to {len(PATHS)} edges")
        return cls((*PATHS[:hops], "between", "intersection", "mediated"), directed=directed)

    def __post_init__(self) -> None:
        if unknown := [name for name in self.names if name not in TEMPLATES]:
            raise ConfigError(f"template {unknown[0]!r} is not known; choose from {', '.join(TEMPLATES)}")
        at_least(1, "looks at nothing", budget=self.budget, described=self.described)


@dataclass(frozen=True)
class EdgeSample:
    """A few edges of each relation, with the names of their ends."""

    relation: Int64
    """(E,)"""
    heads: tuple[str, ...]
    tails: tuple[str, ...]

    @classmethod
    def of(cls, store: GraphStore, edges: int = 8) -> EdgeSample:
        """Read at most so many edges of each relation."""
        batch = store.sample_edges(edges)
        nodes = store.nodes(store.ids(np.concatenate((batch.head, batch.tail))))
        names = tuple(node.name for node in nodes)
        return cls(batch.relation.astype(np.int64), names[: len(batch)], names[len(batch) :])

    def share(self, names: Sequence[str], test: Callable[[str], object], relations: int) -> Float64:
        """Return for each of R relations the share of names with a property: (R,), 0 without edges."""
        passed = np.array([bool(test(name)) for name in names], np.float64)
        size = np.bincount(self.relation, minlength=relations)
        return np.bincount(self.relation, passed, relations) / np.maximum(1, size)

    def event_ends(self, relations: int) -> Bools:
        """Return whether the heads (0) and the tails (1) of each relation are mostly event nodes: (2, R)."""
        return np.stack([self.share(names, _is_nameless, relations) > 0.5 for names in (self.heads, self.tails)])


def _is_dated(property: PropertySchema) -> bool:
    """True for dates, and for years by the examples."""
    years = [DATE.fullmatch(str(value)) for value in property.examples]
    return property.kind == "date" or (bool(years) and all(years))


def _is_nameless(name: str) -> bool:
    return not name.strip() or is_identifier(name)


def attributes_of(store: GraphStore, sample: EdgeSample) -> tuple[Attribute, ...]:
    """Return the places of years, dates and numbers in a graph; neighbours as far as the sample shows them."""
    schema = store.schema()
    found = [
        Attribute("node", detail.name, _is_dated(detail))
        for details in schema.node_property_details.values()
        for detail in details
        if detail.kind in _ORDERED_KINDS
    ]
    found += [
        Attribute("edge", detail.name, _is_dated(detail))
        for relation in schema.relations
        for detail in relation.property_details
        if detail.kind in _ORDERED_KINDS
    ]
    share = sample.share(sample.tails, DATE.fullmatch, len(store.relations))
    found += [Attribute("neighbour", store.relations[number], True) for number in np.flatnonzero(share > 0.5).tolist()]
    return tuple(dict.fromkeys(found))


class CandidateRanker(Protocol):
    """Ranks candidates by the likelihood of answering a question."""

    def rank(self, question: str, candidates: Sequence[CandidateQuery]) -> list[tuple[int, float]]:
        """Return positions of candidates with scores, best first; omitted ones are not to be run."""


def dialect_of(store: GraphStore) -> NodeIdSyntax:
    """Return how a store's queries name nodes: a graph of ours by its property of ids, a server as it was opened."""
    if isinstance(store, CypherStore):
        return NodeIdSyntax(store.id_property, store.identity)
    return NodeIdSyntax(getattr(store, "id_property", "id"))


def anchors_of(store: GraphStore, ids: Sequence[EntityId]) -> list[Anchor]:
    """Return entities as candidates start from them. Raises `EntityNotFound`."""
    nodes = store.nodes(ids)
    keys: list[str | None] = [getattr(store, "name_key", "name")] * len(nodes)
    if isinstance(store, CypherStore):
        keys = [store.name_property(node.type) for node in nodes]
        for at, element in enumerate(store.elements(ids)):  # a name may stand in another property, or be a number there
            text = f"MATCH (n) WHERE {store.identity}(n) = $element AND n[$key] = $name RETURN count(*)"
            if keys[at] is not None:
                held = store.run(text, {"element": element, "key": keys[at], "name": nodes[at].name}).rows
                keys[at] = keys[at] if held == ((1,),) else None
    return [Anchor(node.id, node.name, node.type, key) for node, key in zip(nodes, keys, strict=True)]


def best_first(candidates: Iterable[CandidateQuery]) -> list[CandidateQuery]:
    """Return candidates by F1, then by size: fewer results, fewer hops, and then by text."""
    return sorted(candidates, key=lambda one: (-one.f1, one.total, _hops(one), len(one.query), one.query))


def _hops(candidate: CandidateQuery) -> int:
    return sum(len(leg.steps) for leg in candidate.legs) + len(candidate.tail)


# Cypher


def literal(value: Value) -> str:
    """Return a value as a query writes it, a text in quotes."""
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    return str(value).lower() if isinstance(value, bool) else str(value)


def name_in_cypher(name: str) -> str:
    """Return a label, relation or property name in Cypher's notation: in backticks if it needs them."""
    return name if _PLAIN.fullmatch(name) else quote(name)


def in_period(value: str, period: Period, put: Callable[[Value], str]) -> str:
    """Return the condition that a value is in a period; `put` writes a value."""
    bounds = [f"toString({value}) {sign} {put(end)}" for sign, end in ((">=", period.begin), ("<", period.end)) if end]
    return " AND ".join([f"toString({value}) =~ {put(DATES)}", *bounds])


def _node(type: str, inside: str = "") -> str:
    label = f":{name_in_cypher(type)}" if writable(type) else ""
    return f"{label} {inside}" if inside else label


def _apart(nodes: Iterable[str], ends: Sequence[tuple[str, Anchor]]) -> list[str]:
    """Return the conditions that walks do not come back to entities; nodes with values may be met again."""
    return [f"{node} <> {end}" for node in nodes for end, anchor in ends if not anchor.values]


class _Writer:
    """Writes one candidate; `put` writes a value, as a literal or as a parameter."""

    def __init__(self, candidate: CandidateQuery, put: Callable[[Value], str]) -> None:
        self._candidate = candidate
        self._put = put
        self._nodes = 0
        self._edges = 0
        self._conditions: list[str] = []
        self._last = ""
        self.target = ""

    def query(self, ranked: bool) -> str:
        """Write all of it.

        Args:
            ranked: return for each target the number of walks, too, most first.
        """
        one = self._candidate
        parts = self._parts(_node(one.end_type, self._held(one.end_values)))
        target = self.target
        identity = self._identity(target)
        if one.period:
            attribute, period = one.period
            value = self._value(parts, attribute, target)
            parts[-1][1].append(in_period(value, period, self._put))
        order = ""
        if one.extreme:
            attribute, highest = one.extreme
            value = self._value(parts, attribute, target)
            if attribute.place == "neighbour":
                parts[-1][1].append(f"{value} =~ {self._put(DATES)}")
            else:
                parts[-1][1].append(f"{value} IS NOT NULL")
            order = f" ORDER BY {value}{' DESC' if highest else ''}, {identity} LIMIT 1"
        if one.asked:
            target = f"{target}.{name_in_cypher(one.asked)}"
            parts[-1][1].append(f"{target} IS NOT NULL")
            identity = target
        matched = " ".join(f"MATCH {match}" + (f" WHERE {' AND '.join(told)}" if told else "") for match, told in parts)
        if one.count:
            return f"{matched} RETURN count(DISTINCT {target}) AS count"
        if order:
            return f"{matched} RETURN {target}{order}"
        if ranked:
            return f"{matched} RETURN {target}, count(*) AS walks ORDER BY walks DESC, {identity}"
        return f"{matched} RETURN DISTINCT {target}"

    def _parts(self, target: str) -> list[tuple[str, list[str]]]:
        """Write each MATCH with its conditions; edges of one MATCH differ from each other, those of two need not."""
        one = self._candidate
        first = one.legs[0]
        if one.template in PATHS or one.template == "holders":
            self.target = f"x{len(first.steps) + 1}"
            return [self._leg(first, target)]
        if one.template == "intersection":
            self.target = f"x{len(first.steps) + 1}"
            left = self._leg(first, target)
            start = self._nodes + 1
            right = self._leg(one.legs[1], "", self.target)
            left[1].extend(_apart([self.target], [("x1", first.anchor)]))
            right[1].extend(_apart([self.target], [(f"x{start}", one.legs[1].anchor)]))
            return [(match, list(dict.fromkeys(told))) for match, told in (left, right)]
        second = one.legs[1]
        left_end, condition = self._anchor(first.anchor)
        middle = self._next()
        left_edge = self._edge(first.steps[0])
        end, another = self._anchor(second.anchor)
        right_edge = self._edge(second.steps[0], turned=True)
        met = "" if one.tail else target
        match = f"{left_end}{left_edge}({middle}{met}){right_edge}{end}"
        ends = [("x1", first.anchor), ("x3", second.anchor)]
        conditions = [*condition, *another, *_apart([middle], ends), *self._taken()]
        self.target = middle
        parts = [(match, conditions)]
        if one.tail:
            self.target = "x4"
            edge = self._edge(one.tail[0])
            parts.append((f"({middle}){edge}(x4{target})", [*_apart(["x4"], ends), *self._taken()]))
            self._nodes = 4
        return parts

    def _leg(self, leg: Leg, target: str, into: str = "") -> tuple[str, list[str]]:
        """Return the Cypher of a path from its anchor to the target, whose variable exists already if `into` is
        True."""
        match, conditions = self._anchor(leg.anchor)
        start = f"x{self._nodes}"
        for at, step in enumerate(leg.steps):
            last = at == len(leg.steps) - 1
            node = into if last and into else self._next()
            match += f"{self._edge(step)}({node}{target if last else ''})"
            if at or last:
                conditions += _apart([node], [(start, leg.anchor)])
        return match, [*conditions, *self._taken()]

    def _anchor(self, anchor: Anchor) -> tuple[str, list[str]]:
        variable, dialect = self._next(), self._candidate.dialect
        inside: dict[str, str] = {}
        conditions: list[str] = []
        if anchor.values:
            return f"({variable}{_node(anchor.type, self._held(anchor.values))})", []
        if anchor.key is not None:
            inside[anchor.key] = anchor.name
        if anchor.key is None or anchor.id != anchor.name:
            if dialect.id_property is None:
                conditions.append(f"{dialect.identity}({variable}) = {self._put(anchor.id)}")
            else:
                inside[dialect.id_property] = anchor.id
        return f"({variable}{_node(anchor.type, self._held(inside.items()))})", conditions

    def _held(self, values: Iterable[tuple[str, Value]]) -> str:
        """Write properties with their values; empty if there are none."""
        held = ", ".join(f"{name_in_cypher(key)}: {self._put(value)}" for key, value in values)
        return f"{{{held}}}" if held else ""

    def _next(self) -> str:
        self._nodes += 1
        return f"x{self._nodes}"

    def _taken(self) -> list[str]:
        taken, self._conditions = self._conditions, []
        return taken

    def _edge(self, step: QueryHop, turned: bool = False) -> str:
        self._edges += 1
        one = self._candidate
        variable = f"r{self._edges}"
        asked = any(told is not None and told[0].place == "edge" for told in (one.period, one.extreme))
        self._last = variable
        if writable(step.relation):
            inside = f"{variable if asked else ''}:{name_in_cypher(step.relation)}"
        else:
            inside = variable
            self._conditions.append(f"type({variable}) = {self._put(step.relation)}")
        way = step.direction
        if turned and way is not Direction.BOTH:
            way = Direction.IN if way is Direction.OUT else Direction.OUT
        return f"{'<' if way is Direction.IN else ''}-[{inside}]-{'>' if way is Direction.OUT else ''}"

    def _value(self, parts: list[tuple[str, list[str]]], attribute: Attribute, target: str) -> str:
        """Return the Cypher of a value; a neighbour's name needs a MATCH of its own."""
        if attribute.place == "node":
            return f"{target}.{name_in_cypher(attribute.key)}"
        if attribute.place == "edge":
            return f"{self._last}.{name_in_cypher(attribute.key)}"
        value = self._next()
        edge = f"({target})-[:{name_in_cypher(attribute.key)}]-({value})"
        parts.append((edge, [f"{value} <> {target}"]))
        return f"{value}.name"

    def _identity(self, variable: str) -> str:
        dialect = self._candidate.dialect
        if dialect.id_property is None:
            return f"{dialect.identity}({variable})"
        return f"{variable}.{name_in_cypher(dialect.id_property)}"


class Shortlist:
    """Has one ranker order all candidates, and another the first of them; implements `CandidateRanker`.

    The other sees candidates with different results alone, of every anchor and template; see `shortlist`.

    Args:
        first: orders all.
        then: orders the first ones, which is dear for many.
        shown: how many these are.
        rest: True appends the candidates that the other leaves out, in the order of the first; so does an other that
            chooses none.
    """

    def __init__(self, first: CandidateRanker, then: CandidateRanker, shown: int = 50, rest: bool = True) -> None:
        at_least(1, "shows nothing", shown=shown)
        self._first, self._then, self._shown, self._rest = first, then, shown, rest

    def rank(self, question: str, candidates: Sequence[CandidateQuery]) -> list[tuple[int, float]]:
        """Return the choices of the second ranker with its scores, then the others with 0."""
        order = [position for position, _ in self._first.rank(question, candidates)]
        shown = shortlist(candidates, order, self._shown)
        if not shown:
            return []
        chosen = [(shown[place], score) for place, score in self._then.rank(question, [candidates[at] for at in shown])]
        if chosen and not self._rest:
            return chosen
        taken = {position for position, _ in chosen}
        return [*chosen, *((position, 0.0) for position in order if position not in taken)]


_OF_SHAPE, _OF_ANCHORS = 0.8, 1.5
"""Largest share of a list for one template, and for the candidates of one pair of anchors in even shares."""


def shortlist(candidates: Sequence[CandidateQuery], order: Iterable[int], most: int) -> list[int]:
    """Return the first candidates of an order that return different results, in that order.

    No template and no anchors take more than their quota while there are others.

    Args:
        candidates: of one question.
        order: positions, best first.
        most: length at most.
    """
    distinct: dict[tuple[bool, int], int] = {}
    for position in order:
        distinct.setdefault((candidates[position].count, candidates[position].results), position)
    ranked = list(distinct.values())
    anchors = {at: tuple(leg.anchor for leg in candidates[at].legs) for at in ranked}
    of_anchors = math.ceil(_OF_ANCHORS * most / max(1, len(set(anchors.values()))))
    counts: Counter[object] = Counter()
    kept: set[int] = set()
    for of_shape, of_both in ((_OF_SHAPE * most, of_anchors), (most, of_anchors), (most, most)):
        for place, at in enumerate(ranked):
            shape = candidates[at].template
            within = counts[shape] < of_shape and counts[anchors[at]] < of_both
            if len(kept) < most and within and place not in kept:
                counts.update((shape, anchors[at]))
                kept.add(place)
    return [ranked[place] for place in sorted(kept)]
