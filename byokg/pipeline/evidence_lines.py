"""The lines of a context: what several items of evidence say is said once, and what differs only in its ends is folded.

An edge that several retrievers found is one line, whether it came as a triple, as a path of one hop, or inside a walk
that is written out. Edges that share a node and a relation fold into one line. A mediator's edges are joined:
`Ann → spouse_s / spouse → Bob; from → 1999`, or, where many mediators say no more than that, their ends fold as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from byokg.retrieval.verbalize import (
    UNNAMED,
    Hop,
    clean,
    folded,
    more_rows,
    node_text,
    note,
    query_text,
    row_text,
    walk_text,
)
from byokg.text import is_identifier
from byokg.types import EntityId, Evidence, NodeEvidence, Path, PathEvidence, RowsEvidence, TripleEvidence


@dataclass(frozen=True)
class Line:
    """A line of the context: what its entries share, and the entries.

    `later` says that it comes after everything else: it shows how the graph hangs together, or leads nowhere.
    """

    items: tuple[str, ...]
    """Ids of the evidence that it stands for, in the order in which they came; the first is the line's own."""
    head: str
    entries: tuple[str, ...] = ()
    more: int = 0
    """Entries beyond those here."""
    rows: bool = False
    """Whether each entry is a line of its own."""
    truncated: bool = False
    """Whether rows were cut off before they came here."""
    later: bool = False

    def text(self, shown: int) -> str:
        """Write the line with so many of its entries at most."""
        entries = self.entries[:shown]
        more = self.more + len(self.entries) - len(entries)
        if self.rows:
            return "\n".join([self.head, *entries, *more_rows(more, self.truncated)])
        return f"{self.head}{folded(entries, more)}"


def node_lines(evidence: Iterable[Evidence], shown: int) -> list[Line]:
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
            typed[clean(node.type)][clean(node.name)] = None
            items_of[clean(node.type)][item.id] = None
    lines = [Line(tuple(items), text) for text, items in said.items()]
    for type_, found in typed.items():
        entries = tuple(found)[:shown]
        lines.append(Line(tuple(items_of[type_]), f"({type_}) ", entries, len(found) - len(entries)))
    return lines


def row_lines(evidence: Iterable[Evidence], names: Mapping[EntityId, str], shown: int) -> list[Line]:
    """Return the table of each query, once each however often it ran."""
    tables: dict[str, dict[str, None]] = defaultdict(dict)
    first: dict[str, RowsEvidence] = {}
    for item in evidence:
        if isinstance(item, RowsEvidence):
            head = query_text(item)
            tables[head][item.id] = None
            first.setdefault(head, item)
    return [
        Line(
            tuple(items),
            head,
            tuple(row_text(row, names) for row in first[head].rows[:shown]),
            max(len(first[head].rows) - shown, 0),
            rows=True,
            truncated=first[head].truncated,
        )
        for head, items in tables.items()
    ]


REACH = 3
"""Ends looked at for each one that may be shown: some are mediators, which are only counted."""

_ANY = EntityId("…")
"""Stands between two hops where each end may be reached through another node."""

_LEG = 5
"""Nodes written for one relation of a mediator; the others are counted."""

_Middle = EntityId | None
"""A node in between, or None for a mediator."""


def fold_lines(
    evidence: Sequence[Evidence], names: Mapping[EntityId, str], shown: int, beyond: Sequence[Evidence] = ()
) -> list[Line]:
    """Join evidence into lines, in the order in which their first items came, those that come later last.

    Args:
        evidence: numbered items of any kinds; feedback, which is none, is left out.
        names: a name for each node in it.
        shown: entries that a line may show.
        beyond: items that only count: edges among them that would fold into a line are among those it does not show.
    """
    folding = _Folding(names, shown)
    order = {item.id: place for place, item in enumerate([*evidence, *beyond])}
    # What is written out whole comes first, so that a triple finds the walk that it is part of.
    for kind in (PathEvidence, TripleEvidence):
        for item in evidence:
            if isinstance(item, kind):
                folding.add(item)
    lines = [*folding.lines(beyond), *node_lines(evidence, shown), *row_lines(evidence, names, shown)]
    ordered = [
        replace(line, items=tuple(sorted(line.items, key=order.__getitem__))) if len(line.items) > 1 else line
        for line in lines
    ]
    return sorted(ordered, key=lambda line: (line.later, order[line.items[0]]))


class _Edge(NamedTuple):  # and no dataclass: it is a key of many dictionaries, and tuples are hashed faster
    head: EntityId
    relation: str
    tail: EntityId

    def hop(self, start: EntityId, said: str = "") -> Hop:
        """Return the step along the edge that leaves from one of its ends."""
        return Hop(self.relation, start != self.head, said)


class _Key(NamedTuple):
    """What the ends of a chain share. `last` is a step without its note: notes differ from end to end."""

    source: EntityId
    hops: tuple[Hop, ...]
    middles: tuple[_Middle, ...]
    last: Hop


@dataclass
class _Chain:
    """What is reached along one chain of steps."""

    ends: dict[tuple[EntityId, str], None] = field(default_factory=dict)
    """Ends with what the last edge says; an end may stand here more than once."""
    unnamed: dict[EntityId, None] = field(default_factory=dict)
    items: dict[str, None] = field(default_factory=dict)
    more: int = 0
    stub: bool = True

    @property
    def leads_anywhere(self) -> bool:
        """Tell whether there is something to write; a mediator's edges may all have gone to lines of their own."""
        return bool(self.ends or self.unnamed or self.more)


class _Folding:
    """Takes path and triple evidence apart and puts together what belongs together."""

    def __init__(self, names: Mapping[EntityId, str], shown: int) -> None:
        self._names = {node: None if is_identifier(name) else clean(name) for node, name in names.items()}
        """How each node is written; None for a mediator."""
        self._shown = shown
        self._chains: dict[_Key, _Chain] = defaultdict(_Chain)
        self._edges: dict[_Edge, dict[str, _Chain]] = defaultdict(dict)
        """The chains that show an edge, by what the edge says."""
        self._bare: dict[_Edge, tuple[_Chain, EntityId]] = {}
        """Edges of which only is known that a metapath follows them: the chain, and which end of it that is."""
        self._mediators: dict[EntityId, dict[tuple[_Edge, str], dict[str, None]]] = defaultdict(dict)
        """The edges of each mediator with what they say, and the items they came with."""
        self._triples: dict[tuple[_Edge, str], tuple[dict[str, None], bool]] = {}
        """Edges that came alone: their items, and whether all of these are stubs."""

    def add(self, item: PathEvidence | TripleEvidence) -> None:
        """Take one item; paths before triples."""
        if isinstance(item, TripleEvidence):
            self._add_triple(item)
        elif len(item.relations) == 1:
            self._add_hop(item)
        elif item.relations:
            self._add_walks(item)

    def lines(self, beyond: Iterable[Evidence]) -> list[Line]:
        """Return what was put together, and count in it the edges `beyond`."""
        self._fold_triples()
        stars = self._fold_mediators()
        for item in beyond:
            if isinstance(item, TripleEvidence):
                self._count(item)
        found: dict[tuple[str, tuple[str, ...]], Line] = {}
        chains = [self._line(key, chain) for key, chain in self._chains.items() if chain.leads_anywhere]
        for line in [*chains, *stars]:
            same = found.get((line.head, line.entries))
            if same is not None:
                line = replace(line, items=tuple(dict.fromkeys((*same.items, *line.items))))
            found[line.head, line.entries] = line
        return list(found.values())

    def _unnamed(self, node: EntityId) -> bool:
        return self._names[node] is None

    def _name(self, node: EntityId) -> str:
        return self._names[node] or node

    def _add_triple(self, item: TripleEvidence) -> None:
        triple = item.triple
        edge, said = _Edge(triple.head, triple.relation, triple.tail), note(triple.properties)
        if self._unnamed(triple.head) or self._unnamed(triple.tail):
            self._add_mediated(edge, said, item.id)
            return
        items, stub = self._triples.setdefault((edge, said), ({}, True))
        items[item.id] = None
        self._triples[edge, said] = items, stub and item.stub

    def _add_mediated(self, edge: _Edge, said: str, item: str) -> None:
        for node in dict.fromkeys((edge.head, edge.tail)):
            if self._unnamed(node):
                self._mediators[node].setdefault((edge, said), {})[item] = None

    def _add_hop(self, item: PathEvidence) -> None:
        hop = Hop.of(item.relations[0])
        said = {path.end: note(path.triples[0].properties) for path in item.paths[: REACH * self._shown]}
        chain = self._chain(item.source, (), (), hop, item)
        for end in item.ends[: REACH * self._shown]:
            ways = (end, item.source) if hop.inverse else (item.source, end)
            edge = _Edge(ways[0], hop.relation, ways[1])
            if self._unnamed(end) or self._unnamed(item.source):
                self._add_mediated(edge, said.get(end, ""), item.id)
            else:
                chain.ends[end, said.get(end, "")] = None
                self._edges[edge][said.get(end, "")] = chain
                if end not in said:
                    self._bare[edge] = chain, end
        chain.more += max(len(item.ends) - REACH * self._shown, 0)

    def _add_walks(self, item: PathEvidence) -> None:
        walked = set()
        paths = item.paths[: REACH * self._shown]
        for path in paths:
            walked.add(path.end)
            if len(path.triples) == 2 and self._unnamed(path.nodes[1]):
                for triple in path.triples:
                    edge = _Edge(triple.head, triple.relation, triple.tail)
                    self._add_mediated(edge, note(triple.properties), item.id)
                continue
            self._add_walk(path, item)
        ends = [end for end in item.ends[: REACH * self._shown] if end not in walked]
        more = max(len(item.ends) - REACH * self._shown, 0)
        if not ends and not more:
            return
        # Where every walk goes through mediators, those that are not known do as well.
        middles = tuple(
            None if paths and all(self._unnamed(path.nodes[at]) for path in paths) else _ANY
            for at in range(1, len(item.relations))
        )
        hops = [Hop.of(step) for step in item.relations]
        chain = self._chain(item.source, tuple(hops[:-1]), middles, hops[-1], item)
        chain.more += more
        for end in ends:
            self._add_end(chain, end, "")

    def _add_walk(self, path: Path, item: PathEvidence) -> None:
        hops = [
            Hop(triple.relation, inverse, note(triple.properties))
            for triple, inverse in zip(path.triples, path.inverse, strict=True)
        ]
        middles = tuple(None if self._unnamed(node) else node for node in path.nodes[1:-1])
        last = Hop(hops[-1].relation, hops[-1].inverse)
        chain = self._chain(path.source, tuple(hops[:-1]), middles, last, item)
        self._add_end(chain, path.end, hops[-1].note)
        for triple, hop in zip(path.triples, hops, strict=True):
            self._edges[_Edge(triple.head, triple.relation, triple.tail)].setdefault(hop.note, chain)

    def _chain(
        self, source: EntityId, hops: tuple[Hop, ...], middles: tuple[_Middle, ...], last: Hop, item: Evidence
    ) -> _Chain:
        chain = self._chains[_Key(source, hops, middles, last)]
        chain.items[item.id] = None
        chain.stub = False
        return chain

    def _add_end(self, chain: _Chain, end: EntityId, said: str) -> None:
        if self._unnamed(end):
            chain.unnamed[end] = None
        else:
            chain.ends[end, said] = None

    def _fold_triples(self) -> None:
        """Give each edge that came alone to a chain that shows it, or to one that it makes longest."""
        forward: dict[tuple[EntityId, str, bool], int] = defaultdict(int)
        backward: dict[tuple[EntityId, str, bool], int] = defaultdict(int)
        fresh = []
        for (edge, said), (items, stub) in self._triples.items():
            chain = self._edges.get(edge, {}).get(said)
            if chain is None and edge in self._bare:
                chain, end = self._bare[edge]
                chain.ends.pop((end, ""), None)
                chain.ends[end, said] = None
            if chain is not None:
                chain.items |= items
                continue
            fresh.append((stub, edge, said, items))
            forward[edge.head, edge.relation, stub] += 1
            backward[edge.tail, edge.relation, stub] += 1
        for stub, edge, said, items in sorted(fresh, key=lambda each: each[0]):  # stubs join what is there
            turned = backward[edge.tail, edge.relation, stub] > forward[edge.head, edge.relation, stub]
            source, end = (edge.tail, edge.head) if turned else (edge.head, edge.tail)
            chain = self._chains[_Key(source, (), (), Hop(edge.relation, turned))]
            chain.ends[end, said] = None
            chain.items |= items
            chain.stub &= stub

    def _count(self, item: TripleEvidence) -> None:
        """Count an edge that is not written in the chain that it would belong to, if there is one."""
        triple = item.triple
        for source, turned in ((triple.head, False), (triple.tail, True)):
            chain = self._chains.get(_Key(source, (), (), Hop(triple.relation, turned)))
            if chain is not None:
                chain.more += 1
                chain.items[item.id] = None
                return

    def _fold_mediators(self) -> list[Line]:
        """Join the edges of each mediator; return a line for each that says more than one chain can."""
        lines = []
        for mediator, edges in self._mediators.items():
            shown = [chain for (edge, said), _ in edges.items() if (chain := self._edges.get(edge, {}).get(said))]
            items = dict.fromkeys(id for each in edges.values() for id in each)
            if len(shown) == len(edges):
                for chain in shown:  # all of it stands in walks already
                    chain.items |= items
                continue
            first = next((entry for entry in edges if not self._unnamed(_far(entry[0], mediator))), None)
            if first is None:
                continue
            source = _far(first[0], mediator)
            into = first[0].hop(source, first[1])
            legs: dict[Hop, dict[tuple[EntityId, str], None]] = defaultdict(dict)
            for edge, said in edges:
                if (edge, said) != first:
                    legs[edge.hop(mediator)][_far(edge, mediator), said] = None
            if not legs:
                chain = self._chains[_Key(source, (), (), Hop(into.relation, into.inverse))]
                chain.unnamed[mediator] = None
            elif len(legs) == 1:
                [(hop, ends)] = legs.items()
                chain = self._chains[_Key(source, (into,), (None,), hop)]
                for end, said in ends:
                    self._add_end(chain, end, said)
            else:
                lines.append(Line(tuple(items), self._star(source, into, legs)))
                continue
            chain.items |= items
            chain.stub = False
        return lines

    def _star(self, source: EntityId, into: Hop, legs: Mapping[Hop, Mapping[tuple[EntityId, str], None]]) -> str:
        """Write a mediator's edges on one line."""
        texts: list[str] = []
        for hop, ends in legs.items():
            written = [self._entry(end, said) for end, said in list(ends)[:_LEG]]
            reached = folded(written, len(ends) - len(written))
            if not texts:
                texts.append(walk_text([self._name(source), None, reached], [into, hop]))
            else:
                texts.append(f"{hop.label} {hop.arrow} {reached}")
        return "; ".join(texts)

    def _line(self, key: _Key, chain: _Chain) -> Line:
        """Write a chain."""
        notes = {said for _, said in chain.ends}
        # What all ends share stands by the relation, what differs by each end.
        shared = next(iter(notes)) if len(notes) == 1 and not chain.unnamed and not chain.more else ""
        last = Hop(key.last.relation, key.last.inverse, shared)
        middles = [node if node is None or node == _ANY else self._names[node] for node in key.middles]
        head = walk_text([self._name(key.source), *middles, ""], [*key.hops, last])
        entries = [self._entry(end, "" if said == shared else said) for end, said in list(chain.ends)[: self._shown]]
        more = len(chain.ends) - len(entries) + chain.more
        count = len(chain.unnamed)
        if count and not more:
            entries.append(UNNAMED if count == 1 else f"({count} unnamed nodes)")
        else:
            more += count
        return Line(tuple(chain.items), head, tuple(entries), more, later=chain.stub or not chain.ends)

    def _entry(self, node: EntityId, said: str) -> str:
        name = self._names[node] or UNNAMED
        return f"{name} [{said}]" if said else name


def _far(edge: _Edge, node: EntityId) -> EntityId:
    return edge.tail if edge.head == node else edge.head
