"""The lines of a context: evidence taken apart into facts, each of which is written once.

A fact joins two nodes that have names: by an edge, or through nodes without a name (mediators), whose other edges stand
in brackets behind it. An edge, its inverse, a relation with the same meaning backwards, and a shortcut `a..b` beside
its mediator are one fact. A walk over nodes with names is as many facts as it has parts; if only its ends are known,
it is a line of its own. Facts that share a node and a relation are one line:

    Darth Vader → portrayed_in_films / actor → James Earl Jones [film: Return of the Jedi] | David Prowse
    Nobel Prize in Physics ← won [source: nobel-foundation] ← Max Born [1954] | Anton Zeilinger [2022]
    Spain → sports_team_location.teams → … → sports_team.sport → Basketball | Football
    sports.sports_team.founded: Valencia BC → 1986 | CB Sevilla → 1987 | CB Murcia → 1985
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from byokg.retrieval.frontier import Event
from byokg.retrieval.verbalize import (
    Hop,
    clean,
    fold_ends,
    more_rows,
    node_text,
    notes,
    row_text,
    rows_head,
    types_text,
    walk_text,
)
from byokg.text.names import is_identifier, normalize_label, normalize_name
from byokg.types import EntityId, Evidence, NodeEvidence, Path, PathEvidence, RowsEvidence, Triple, TripleEvidence

_TABLE = 3
"""Facts of one relation, each about other nodes, from which on they are one line."""

_ATTRIBUTES = 3
"""Roles of a mediator written behind a fact."""

_STARTS, _ENDS = ("from", "start", "begin", "since"), ("to", "end", "until")
"""First words of the roles of a period."""

_TAGGED = re.compile(r"(.+)-[A-Z]{2}")
"""A name with the sign of a language or country behind it, as some dumps mark a second node of one thing."""

_HELD = 1 << 13
"""Names, and steps of walks, of which it is remembered how they are written: each stands in several contexts."""


@dataclass(frozen=True)
class Line:
    """A line of the context: its common part, and the entries."""

    items: tuple[str, ...]
    """Ids of the evidence that it stands for, in the order in which they came."""
    head: str
    entries: tuple[str, ...] = ()
    more: int = 0
    """Entries beyond those here."""
    rows: bool = False
    """Whether each entry is a line of its own."""
    truncated: bool = False
    """Whether rows, or ends of a path, were cut off before they came here, and their number is not known."""
    nodes: frozenset[EntityId] = frozenset()
    """Ids of its nodes, as far as known."""
    said: str = ""
    """Its relations, as words."""
    source: EntityId | None = None
    """The node that its facts share."""
    steps: tuple[Hop, ...] = ()
    """The steps from there."""
    chain: bool = False
    """Whether the nodes in between are left out."""

    def text(self, shown: int) -> str:
        """Write the line with so many of its entries at most."""
        entries = self.entries[:shown]
        more = self.more + len(self.entries) - len(entries)
        if self.rows:
            return "\n".join([self.head, *entries, *more_rows(more, self.truncated)])
        return f"{self.head}{fold_ends(entries, more, self.truncated)}"


def node_lines(evidence: Iterable[Evidence]) -> list[Line]:
    """Return a line for each node with properties, and one for all others of a type; nothing else is news."""
    said: dict[str, dict[str, None]] = defaultdict(dict)
    typed: dict[str, dict[str, None]] = defaultdict(dict)
    items_of: dict[str, dict[str, None]] = defaultdict(dict)
    for item in evidence:
        if not isinstance(item, NodeEvidence):
            continue
        node = item.node
        if node.properties:
            said[node_text(node)][item.id] = None
        elif node.type and not is_identifier(node.name):
            types = types_text(node)
            typed[types][clean(node.name)] = None
            items_of[types][item.id] = None
    lines = [Line(tuple(items), text) for text, items in said.items()]
    return [*lines, *(Line(tuple(items_of[type_]), f"({type_}) ", tuple(found)) for type_, found in typed.items())]


def row_lines(evidence: Iterable[Evidence], names: Mapping[EntityId, str]) -> list[Line]:
    """Return the table of each query that returned something, once each however often it ran."""
    tables: dict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
    first: dict[tuple[str, ...], tuple[RowsEvidence, tuple[str, ...]]] = {}
    for item in evidence:
        if isinstance(item, RowsEvidence):
            item = _without_empty_columns(item)
            written = tuple(dict.fromkeys(row_text(row, names, item.joined) for row in item.rows))
            key = (rows_head(item), *written)
            tables[key][item.id] = None
            first.setdefault(key, (item, written))
    return [
        Line(tuple(tables[key]), rows_head(item), written, item.beyond[0], True, item.beyond[1])
        for key, (item, written) in first.items()
    ]


def _without_empty_columns(item: RowsEvidence) -> RowsEvidence:
    """Return rows without the columns that hold nothing in any row, unless all are so."""
    full = [at for at in range(len(item.columns)) if any(row[at] not in (None, "") for row in item.rows)]
    if not full or len(full) == len(item.columns):
        return item
    return replace(
        item,
        columns=tuple(item.columns[at] for at in full),
        rows=tuple(tuple(row[at] for at in full) for row in item.rows),
    )


@dataclass(frozen=True)
class Emphasis:
    """Which facts share no line with others, and which entries come first."""

    apart: Sequence[frozenset[str]] = ()
    """Ids of items whose facts share no line with those of others, such as requested ones; the first set that holds one
    of a fact's items counts."""
    first: Collection[EntityId] = ()
    """Nodes whose entries come before the others of a line."""


def fold_lines(
    evidence: Sequence[Evidence],
    names: Mapping[EntityId, str],
    turned: Mapping[str, frozenset[str]],
    emphasis: Emphasis = Emphasis(),
    beyond: Iterable[Evidence] = (),
    events: Mapping[str, Sequence[Event]] = {},
    twins: Mapping[str, str] = {},
) -> list[Line]:
    """Join evidence into lines, in the order of their first items.

    Args:
        evidence: numbered items of any kinds, the most important first; feedback, which is none, is left out.
        names: a name for each node in it.
        turned: relations with the same meaning backwards (`graph/inverses.py`).
        emphasis: what is kept apart, and what comes first.
        beyond: items that only count: edges among them that belong to a line are among its omitted ones.
        events: by the id of an item, the mediators that its walks go through.
        twins: relations that store the same facts backwards; what a node leads to by both is one line.
    """
    facts = _FactExtractor(names, turned, emphasis, twins)
    for item in evidence:
        if isinstance(item, PathEvidence):
            for event in events.get(item.id, ()):
                facts.add_event(event, item.id)
            facts.add_path(item)
        elif isinstance(item, TripleEvidence):
            facts.add_edge(item)
    for item in beyond:
        if isinstance(item, TripleEvidence):
            facts.count(item)
    place = {item.id: at for at, item in enumerate(evidence)}
    lines = [*facts.lines(), *node_lines(evidence), *row_lines(evidence, names)]
    return sorted(lines, key=lambda line: min(place[id] for id in line.items))


@dataclass
class _Fact:
    """Two nodes with names and the steps between them."""

    source: EntityId
    steps: tuple[Hop, ...]
    """Steps without annotations; more than one through mediators."""
    end: EntityId
    said: tuple[str, ...] = ()
    """The edge's properties, or the mediator's other edges."""
    items: dict[str, None] = field(default_factory=dict)

    def about_face(self) -> _Fact:
        """Return the same fact, starting from its end."""
        return _Fact(self.end, _reverse_steps(self.steps), self.source, self.said, self.items)


@dataclass
class _MediatorEdge:
    """An edge of a mediator: the node with a name that it leads to, and the step there."""

    node: EntityId
    hop: Hop
    items: dict[str, None]


class _FactExtractor:
    """Takes evidence apart into facts."""

    def __init__(
        self,
        names: Mapping[EntityId, str],
        turned: Mapping[str, frozenset[str]],
        emphasis: Emphasis,
        twins: Mapping[str, str],
    ) -> None:
        self._apart = emphasis.apart
        self._first = emphasis.first
        self._names = {node: _written(name) for node, name in names.items()}
        """How each node is written; None for a mediator."""
        self._turned = turned
        self._twins = twins
        self._facts: list[_Fact] = []
        self._between: dict[tuple[EntityId, EntityId], list[_Fact]] = defaultdict(list)
        """Facts between two nodes, these in the order of their ids."""
        self._mediators: dict[EntityId, dict[EntityId, _MediatorEdge]] = defaultdict(dict)
        self._chains: dict[tuple[EntityId, tuple[Hop, ...]], tuple[dict[EntityId, None], dict[str, None]]] = {}
        """Ends of walks that are not known one by one, and their items."""
        self._more: dict[tuple[EntityId, tuple[Hop, ...]], int] = defaultdict(int)
        """Ends that were not even looked at."""
        self._cut: dict[tuple[EntityId, tuple[Hop, ...]], int] = defaultdict(int)
        """Edges beside those here that a limit left out."""
        self._walks: dict[tuple[Hop, ...], int] = defaultdict(int)
        """Walks of two hops by the last one, of which items show one for each end: edges that it has there at most."""
        self._roles_of: dict[tuple[str, bool], str] = {}
        """Names of edges as seen from mediators, by relation and direction."""
        self._whole: dict[str, tuple[EntityId, tuple[Hop, ...]]] = {}
        """Source and steps of items that hold all ends."""
        self._cut_off: set[tuple[EntityId, tuple[Hop, ...]]] = set()
        """Metapaths whose further ends a limit left out, nobody knows how many."""

    def add_path(self, item: PathEvidence) -> None:
        """Take a metapath: walk by walk if all are known, else as a whole."""
        steps = tuple(Hop.all_of(item))
        self._whole[item.id] = (item.source, steps)
        if len(steps) == 2:
            self._walks[steps[1:]] = max(self._walks[steps[1:]], item.walks)
        known = {path.end for path in item.paths}
        ends = [end for end in item.ends if end in self._names]
        if item.truncated:
            self._cut_off.add((item.source, steps))
        self._more[item.source, steps] = max(self._more[item.source, steps], len(item.ends) - len(ends))
        mediated = item.paths and all(self._names[node] is None for path in item.paths for node in path.nodes[1:-1])
        if len(steps) == 1 or mediated or known.issuperset(item.ends):
            for path in item.paths:
                self.add_walk(path, item.id)
            for end in ends:
                if end not in known:
                    self._add(_Fact(item.source, steps, end), item.id)
            return
        same = (key for key in self._chains if key[0] == item.source and self._all_alike(key[1], steps))
        reached, items = self._chains.setdefault(next(same, (item.source, steps)), ({}, {}))
        reached |= dict.fromkeys(end for end in ends if self._names[end] is not None and end != item.source)
        items[item.id] = None

    def add_event(self, event: Event, item: str) -> None:
        """Take a mediator with all of its edges."""
        for triple in event[1]:
            self._add_legs(triple, notes(triple.properties), item)

    def add_edge(self, item: TripleEvidence) -> None:
        """Take an edge."""
        triple = item.triple
        head, tail, said = triple.head, triple.tail, notes(triple.properties)
        if item.left_out:
            along = _along(triple.relation, triple.undirected)
            way = (tail, _reverse_steps(along)) if item.inverse else (head, along)
            self._cut[way] = max(self._cut[way], item.left_out)
        if self._names[head] is None or self._names[tail] is None:
            self._add_legs(triple, said, item.id)
        elif head != tail:
            self._add(_Fact(head, _along(triple.relation, triple.undirected), tail, said), item.id)

    def _add_legs(self, triple: Triple, said: tuple[str, ...], item: str) -> None:
        """Note an edge as one of the mediator that it touches, if it touches one and a node with a name."""
        for mediator, other, away in ((triple.head, triple.tail, False), (triple.tail, triple.head, True)):
            if self._names[mediator] is None and self._names[other] is not None:
                leg = _MediatorEdge(other, Hop.along(triple, away, ", ".join(said)), {})
                self._mediators[mediator].setdefault(other, leg).items[item] = None

    def add_walk(self, path: Path, item: str) -> None:
        """Take a walk, part by part between nodes that have names."""
        steps: list[Hop] = []
        said: list[str] = []
        nodes = path.nodes
        source = nodes[0]
        for triple, inverse, far in zip(path.triples, path.inverse, nodes[1:], strict=True):
            text = notes(triple.properties)
            self._add_legs(triple, text, item)
            steps.append(Hop.along(triple, inverse))
            said += text
            if self._names[far] is None:
                continue
            if (
                self._names[source] is not None and len(steps) != 2
            ):  # two steps are those of a mediator, written with all of it
                self._add(_Fact(source, tuple(steps), far, tuple(said)), item)
            source, steps, said = far, [], []

    def count(self, item: TripleEvidence) -> None:
        """Count an edge that is not written, for the lines that it would belong to."""
        triple = item.triple
        along = _along(triple.relation, triple.undirected)
        self._more[triple.head, along] += 1
        self._more[triple.tail, _reverse_steps(along)] += 1

    def lines(self) -> list[Line]:
        """Return the lines."""
        self._tell_mediators()
        self._drop_shortcuts()
        place: dict[str, int] = {}
        for at, ids in reversed(list(enumerate(self._apart))):
            place.update(dict.fromkeys(ids, at))
        first: dict[str, int] = {}
        """The set of an item that holds all ends of a walk, by its facts: they share a line."""
        of = [min((place.get(id, len(self._apart)) for id in fact.items), default=0) for fact in self._facts]
        for fact, at in zip(self._facts, of, strict=True):
            for id in fact.items:
                if self._whole.get(id) == (fact.source, fact.steps):
                    first[id] = min(at, first.get(id, at))
        parts: dict[int, list[_Fact]] = defaultdict(list)
        for fact, at in zip(self._facts, of, strict=True):
            wholes = (first[id] for id in fact.items if self._whole.get(id) == (fact.source, fact.steps))
            parts[min([at, *wholes])].append(fact)
        return [*(line for part in sorted(parts) for line in self._folded(parts[part])), *self._chain_lines()]

    def _folded(self, told: Sequence[_Fact]) -> Iterator[Line]:
        """Yield lines of facts that share a node and the steps from it, or the steps alone."""
        groups: dict[tuple[EntityId, tuple[Hop, ...]], list[_Fact]] = defaultdict(list)
        united = {steps: _united(steps, self._twins) for steps in {fact.steps for fact in told}}
        back_of = {steps: _united(_reverse_steps(steps), self._twins) for steps in united}
        ways = [((fact.source, united[fact.steps]), (fact.end, back_of[fact.steps])) for fact in told]
        size = Counter(way for both in ways for way in both)
        for fact, (way, back) in zip(told, ways, strict=True):
            if size[back] > size[way]:
                groups[back].append(fact.about_face())
            else:
                groups[way].append(fact)
        tables: dict[tuple[Hop, ...], list[_Fact]] = defaultdict(list)
        for facts in groups.values():
            if len(facts) == 1:
                tables[_forward(facts[0].steps)].append(facts[0])
        for (source, _), facts in groups.items():
            steps = facts[0].steps
            table = tables.get(_forward(steps), [])
            if len(facts) > 1 or len(table) < _TABLE:
                yield self._line(source, steps, facts)
            elif facts[0] is table[0]:
                yield self._table(_forward(steps), table)

    def _add(self, fact: _Fact, item: str) -> None:
        """Take a fact, unless it is known, or relates a node to itself."""
        if fact.source == fact.end or self._names[fact.source] is None or self._names[fact.end] is None:
            return
        between = self._between[_pair(fact)]
        same = self._same(fact, between) if between else None
        if same is None:
            self._facts.append(fact)
            between.append(fact)
            same = fact
        elif fact.said and not same.said:
            same.said = fact.said
        same.items[item] = None

    def _same(self, fact: _Fact, between: Sequence[_Fact]) -> _Fact | None:
        """Return an equivalent fact between the same nodes, if there is one."""
        for other in between:
            if fact.said and other.said and fact.said != other.said:
                continue
            seen = other if other.source == fact.source else other.about_face()
            if self._all_alike(seen.steps, fact.steps):
                return other
        return None

    def _all_alike(self, ones: tuple[Hop, ...], others: tuple[Hop, ...]) -> bool:
        return ones == others or (len(ones) == len(others) and all(map(self._alike, ones, others)))

    def _alike(self, one: Hop, other: Hop) -> bool:
        """True if two steps mean the same."""
        if one.inverse == other.inverse:
            return one.relation == other.relation
        return other.relation in self._turned.get(one.relation, ())

    def _tell_mediators(self) -> None:
        """Make a fact of each mediator: the first two nodes that it joins, with its other edges."""
        for legs in self._mediators.values():
            items = dict.fromkeys(id for leg in legs.values() for id in leg.items)
            if len(legs) < 2:
                continue
            # A mediator's first leg is that of the walk; dates and numbers annotate a fact rather than being one.
            source, *others = sorted(legs.values(), key=lambda leg: (self._names[leg.node] or "")[:1].isdigit())
            end, *rest = others
            said = self._roles(rest) + [leg.hop.note for leg in (source, end) if leg.hop.note]
            fact = _Fact(source.node, (source.hop.turned, end.hop.turned.turned), end.node, tuple(said))
            for item in items:
                self._add(fact, item)

    def _roles(self, legs: Sequence[_MediatorEdge]) -> list[str]:
        """Write further edges of a mediator as `role: name`, a start and an end as one period, periods first."""
        found: dict[str, list[str]] = defaultdict(list)
        for leg in legs:
            way = leg.hop.relation, leg.hop.inverse
            if way not in self._roles_of:
                self._roles_of[way] = _role(leg.hop, self._turned)
            found[self._roles_of[way]].append(self._names[leg.node] or "")
        start = next((role for role in found if role.split("_")[0] in _STARTS), "")
        end = next((role for role in found if role.split("_")[0] in _ENDS), "")
        period = " – ".join(" ".join(found.pop(role, [])) for role in (start, end)).strip()
        roles = sorted(found.items(), key=lambda one: not one[1][0][:1].isdigit())
        said = [
            f"{role}: {names[0]}{f' (+{len(names) - 1:,} more)' if len(names) > 1 else ''}"
            for role, names in roles[:_ATTRIBUTES]
        ]
        left = sum(len(names) for _, names in roles[_ATTRIBUTES:])
        return [*([period] if start or end else []), *said, *([f"… (+{left:,} more)"] if left else [])]

    def _drop_shortcuts(self) -> None:
        """Fold a shortcut `a..b` into the mediated fact between the same nodes that it stands for."""
        for facts in self._between.values():
            mediated = [fact for fact in facts if len(fact.steps) == 2]
            for fact in [fact for fact in facts if len(fact.steps) == 1 and ".." in fact.steps[0].relation]:
                parts = fact.steps[0].relation.split("..")
                like = {*parts, *(other for part in parts for other in self._turned.get(part, ()))}
                for whole in mediated:
                    if like & {step.relation for step in whole.steps}:
                        whole.items |= fact.items
                        facts.remove(fact)
                        break
        kept = {id(fact) for facts in self._between.values() for fact in facts}
        self._facts = [fact for fact in self._facts if id(fact) in kept]

    def _line(self, source: EntityId, steps: tuple[Hop, ...], facts: Sequence[_Fact]) -> Line:
        """Write facts that share a node and the steps from it."""
        shared, facts = _without_shared(facts)
        entries = self._entries(facts)
        noted = (*steps[:-1], steps[-1]._replace(note=", ".join(shared)))
        head = walk_text([self._names[source], *[None] * (len(steps) - 1), ""], noted)
        left_out = [self._left_out(source, way) for way in dict.fromkeys(fact.steps for fact in facts)]
        more, cut_off = max(count for count, _ in left_out), any(cut for _, cut in left_out)
        words = _words(steps)
        return Line(_items(facts), head, entries, more, False, cut_off, _nodes(facts), words, source, steps)

    def _entries(self, facts: Sequence[_Fact]) -> tuple[str, ...]:
        """Write the ends of facts that share the rest, two nodes of one thing once."""
        names = {self._names[fact.end] or "" for fact in facts}
        told = {_folded(self._names[fact.end] or "") for fact in facts if fact.said}
        once: dict[tuple[str, tuple[str, ...]], str] = {}
        for fact in sorted(facts, key=lambda fact: fact.end not in self._first):
            name = self._names[fact.end] or ""
            tagged = _TAGGED.fullmatch(name)
            name = tagged[1] if tagged and tagged[1] in names else name
            if fact.said or _folded(name) not in told:
                once.setdefault((_folded(name), fact.said), self._entry(fact, name))
        return tuple(once.values())

    def _left_out(self, source: EntityId, steps: tuple[Hop, ...]) -> tuple[int, bool]:
        """Return how many further ends some steps lead to, and whether there are others that were not counted.

        Of steps through mediators the first one counts: each of its edges leads to one of them.
        """
        way = (source, steps)
        return self._more.get(way, 0) + self._cut.get((source, steps[:1]), 0), way in self._cut_off

    def _table(self, steps: tuple[Hop, ...], facts: Sequence[_Fact]) -> Line:
        """Write facts that share their steps alone."""
        label = " / ".join(f"^{step.relation}" if step.inverse else step.relation for step in steps)
        line = "—" if all(step.undirected for step in steps) else "→"
        shared, facts = _without_shared(facts)
        noted = f" [{', '.join(shared)}]" if shared else ""
        turned = [fact if fact.steps == steps else fact.about_face() for fact in facts]
        entries = dict.fromkeys(f"{self._names[fact.source]} {line} {self._entry(fact)}" for fact in turned)
        ways = dict.fromkeys(
            way for fact in turned for way in ((fact.source, steps), (fact.end, _reverse_steps(steps)))
        )
        left_out = [self._left_out(*way) for way in ways]
        walks = max(self._walks.get(way, 0) for way in (steps, _reverse_steps(steps)))
        more = max(sum(count for count, _ in left_out), walks - len(entries))
        cut_off = any(cut for _, cut in left_out)
        head = f"{clean(label)}{noted}: "
        return Line(_items(facts), head, tuple(entries), more, False, cut_off, _nodes(facts), _words(steps))

    def _entry(self, fact: _Fact, name: str = "") -> str:
        name = name or self._names[fact.end] or ""
        return f"{name} [{', '.join(fact.said)}]" if fact.said else name

    def _chain_lines(self) -> Iterator[Line]:
        for (source, steps), (ends, items) in self._chains.items():
            if ends and self._names[source] is not None:
                head = walk_text([self._names[source], *["…"] * (len(steps) - 1), ""], steps)
                entries = self._entries([_Fact(source, steps, end) for end in ends])
                more, cut_off = self._more[source, steps], (source, steps) in self._cut_off
                nodes = frozenset((source, *ends))
                yield Line(tuple(items), head, entries, more, False, cut_off, nodes, _words(steps), source, steps, True)


def _united(steps: tuple[Hop, ...], twins: Mapping[str, str]) -> tuple[Hop, ...]:
    """Return one key for steps and those along twins."""
    return tuple(Hop(twin) if step.inverse and (twin := twins.get(step.relation)) else step for step in steps)


def _role(hop: Hop, turned: Mapping[str, frozenset[str]]) -> str:
    """Return the name of an edge as seen from the mediator: of its inverse, or of its head's type if need be."""
    relation = hop.relation
    if hop.inverse:  # it leads into the mediator
        inverses = sorted(turned.get(relation, ()), key=lambda other: (".." in other, other))
        if not inverses:
            domain, _, own = relation.rpartition(".")[0].rpartition(".")
            return clean(own.removeprefix(f"{domain}_")) if own else _last(relation)
        relation = inverses[0]
    return _last(relation)


def _without_shared(facts: Sequence[_Fact]) -> tuple[tuple[str, ...], Sequence[_Fact]]:
    """Return the notes that all of several facts have, and the facts without them."""
    shared = [each for each in facts[0].said if all(each in fact.said for fact in facts)] if len(facts) > 1 else []
    if not shared:
        return (), facts
    kept = [replace(fact, said=tuple(each for each in fact.said if each not in shared)) for fact in facts]
    return tuple(shared), kept


@lru_cache(_HELD)
def _folded(name: str) -> str:
    """Return what two nodes of one thing share: the folded words of the name in any order."""
    return " ".join(sorted(normalize_name(name).split()))


@lru_cache(_HELD)
def _written(name: str) -> str | None:
    """Return how a node of that name is written; None for a mediator."""
    return None if is_identifier(name) or not name.strip() else clean(name)


def _pair(fact: _Fact) -> tuple[EntityId, EntityId]:
    return (fact.source, fact.end) if fact.source < fact.end else (fact.end, fact.source)


@lru_cache(_HELD)
def _along(relation: str, undirected: bool) -> tuple[Hop, ...]:
    """Return the one step along an edge."""
    return (Hop(relation, undirected=undirected),)


@lru_cache(_HELD)
def _reverse_steps(steps: tuple[Hop, ...]) -> tuple[Hop, ...]:
    """Return the steps of the same walk from its end."""
    return tuple(step.turned for step in reversed(steps))


@lru_cache(_HELD)
def _forward(steps: tuple[Hop, ...]) -> tuple[Hop, ...]:
    """Return steps in a table's orientation: from head to tail if possible."""
    return min(steps, _reverse_steps(steps), key=lambda each: [(step.inverse, step.relation) for step in each])


def _items(facts: Iterable[_Fact]) -> tuple[str, ...]:
    return tuple(sorted({id for fact in facts for id in fact.items}, key=lambda id: int(id.removeprefix("e") or 0)))


def _nodes(facts: Iterable[_Fact]) -> frozenset[EntityId]:
    return frozenset(node for fact in facts for node in (fact.source, fact.end))


@lru_cache(_HELD)
def _words(steps: tuple[Hop, ...]) -> str:
    return " ".join(dict.fromkeys(word for step in steps for word in normalize_label(step.relation).split()))


def _last(relation: str) -> str:
    return clean(relation.rpartition(".")[2])
