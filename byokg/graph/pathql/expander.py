"""One step of a path: from the vertices of a search to their successors, or back.

A search walks over vertices. A vertex is a node together with the state of an automaton: `node * states + state`. So
searching the graph for paths that match an expression is searching this product graph for any path. An `Expander`
defines the steps: edges of a columnar graph, edges of any store, whole matches of an expression, or solutions of a
graph pattern. Everything in `search` works on any of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from byokg.arrays import Bools, Int64, Integers
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.pathql.automaton import BACKWARD, FORWARD, LOOP, Automaton
from byokg.graph.sorted_ids import distinct, fold_repeats, rows_at, spread
from byokg.graph.store import Direction, EdgeBatch, GraphStore
from byokg.graph.traversal import Caps, expand, has_many_edges
from byokg.types import Triple, Value


class Bound(NamedTuple):
    """Value of a variable."""

    kind: str
    """`node`, `relation` or `literal`."""
    value: Value
    """The id, the label, or the value."""
    datatype: str = ""


class Spelled(NamedTuple):
    """One step in words."""

    bindings: Mapping[str, Bound]
    """Values of the variables of a VIA pattern, but for start and end."""
    triples: tuple[Triple, ...]
    """The edges of the graph that it walks, from its start to its end."""
    inverse: tuple[bool, ...]
    """For each of them, whether it is walked from tail to head."""


class StepRows(NamedTuple):
    """S steps out of some vertices, by position of the vertex and then in edge order; parallel arrays of shape (S,)."""

    origin: Int64
    """Position of the vertex that is left."""
    far: Int64
    """The vertex that is reached."""
    label: Int64
    """Which step it is: for edges of a graph, 2 * edge number + 1 where walked from tail to head."""

    def take(self, rows: Int64) -> StepRows:
        """Return some of them."""
        return StepRows(self.origin.take(rows), self.far.take(rows), self.label.take(rows))


class Expander(Protocol):
    """The steps of one query."""

    states: int
    """The number of states: vertices of one node follow one another."""
    accepting: Bools
    """In which states a path may end: (states,)."""
    empty: bool
    """Whether the path of no steps counts."""

    def forward(self, vertices: Int64) -> StepRows:
        """Return the steps out of vertices."""

    def backward(self, vertices: Int64) -> StepRows:
        """Return the steps into vertices; `far` is the vertex that each comes from."""

    def edge(self, labels: Int64) -> Int64:
        """Return the identity of each step's edge; a trail has none of them twice."""

    def effort(self, vertices: Int64, backward: bool) -> int:
        """Estimate how many steps there are, at little cost."""

    def spell(self, near: Int64, far: Int64, labels: Int64) -> list[Spelled]:
        """Put steps between nodes into words."""


_NONE = np.empty(0, np.int64)


def _all(steps: StepRows) -> StepRows:
    return steps


@dataclass(frozen=True)
class StepOptions:
    """How edges become steps."""

    variable: str | None = None
    """Variable bound to the relation of each edge."""
    capped: Callable[[StepRows], StepRows] = _all
    """May leave steps out."""
    most: int | None = None
    """Edges of one relation to read of a node, the first in edge order, if a state continues along one relation only;
    more need not be read. None reads all."""


class EdgeExpander(ABC):
    """Edges of a graph that an automaton allows."""

    def __init__(self, store: GraphStore, automaton: Automaton, options: StepOptions) -> None:
        """Walk a graph along the relations that an automaton has from state to state."""
        self._store, self._options = store, options
        self._automaton = automaton
        self.states, self.accepting, self.empty = automaton.states, automaton.accepting, automaton.empty

    def edge(self, labels: Int64) -> Int64:
        """Return the numbers of edges."""
        return labels >> 1

    def forward(self, vertices: Int64) -> StepRows:
        """Return the steps out of vertices."""
        return self._options.capped(self._steps(vertices, False))

    def backward(self, vertices: Int64) -> StepRows:
        """Return the steps into vertices."""
        return self._options.capped(self._steps(vertices, True))

    @abstractmethod
    def effort(self, vertices: Int64, backward: bool) -> int:
        """Estimate how many steps there are, at little cost."""

    def spell(self, near: Int64, far: Int64, labels: Int64) -> list[Spelled]:
        """Return each step's edge."""
        named = [self._options.variable] if self._options.variable else []
        walked = zip(*self.walked_edges(near, far, labels), strict=True)
        bound = ((dict.fromkeys(named, Bound("relation", edge.relation)), edge, turned) for edge, turned in walked)
        return [Spelled(bindings, (edge,), (turned,)) for bindings, edge, turned in bound]

    def walked_edges(self, near: Int64, far: Int64, labels: Int64) -> tuple[list[Triple], list[bool]]:
        """Return the edge of each step between nodes, and whether it is walked from tail to head."""
        edges, place = fold_repeats(labels >> 1)
        head, relation, tail, undirected = self._edge_ends(edges)
        turned = (labels & 1).astype(np.bool_)
        if undirected.any():  # written from the end that it was walked from
            edges, relation, undirected = edges[place], relation[place], undirected[place]
            head, tail = np.where(undirected, near, head[place]), np.where(undirected, far, tail[place])
            turned, place = turned & ~undirected, np.arange(len(labels))
        ids = self._store.ids(np.concatenate((head, tail)))
        labelled = map(self._store.relations.__getitem__, relation.tolist())
        rest = edges.tolist(), self._store.edge_properties(edges), undirected.tolist()
        triples = [*map(Triple, ids[: len(edges)], labelled, ids[len(edges) :], *rest)]
        return [triples[each] for each in place.tolist()], turned.tolist()

    @abstractmethod
    def _edge_ends(self, edges: Int64) -> tuple[Integers, Integers, Integers, Bools]:
        """Return head, relation and tail of walked edges, and True for undirected ones."""

    def _steps(self, vertices: Int64, backward: bool) -> StepRows:
        automaton, states = self._automaton, self.states
        if states == 1:
            return StepRows(*self._walked(vertices, 0, 0, backward))
        nodes, state = np.divmod(vertices, states)
        parts = []
        for each in np.unique(state).tolist():
            places = np.flatnonzero(state == each)
            for other in automaton.entering(each) if backward else automaton.leaving(each):
                before, after = (other, each) if backward else (each, other)
                origin, node, label = self._walked(nodes[places], before, after, backward)
                parts.append(StepRows(places.take(origin), node * states + other, label))
        return _joined(parts)

    @abstractmethod
    def _walked(self, nodes: Int64, before: int, after: int, backward: bool) -> tuple[Int64, Int64, Int64]:
        """Return position, far node and label of each edge along which one state follows another."""


class ColumnarExpander(EdgeExpander):
    """Edges of a columnar graph that an automaton allows."""

    def __init__(self, graph: ColumnarGraph, automaton: Automaton, options: StepOptions) -> None:
        super().__init__(graph, automaton, options)
        self._arrays = arrays = graph.topology
        self._out, self._in = arrays.out_index, arrays.in_index
        self._relation, self._other = arrays.relation, arrays.other
        self._undirected = arrays.undirected
        self._loops = automaton.both_ways or self._undirected is not None
        self._ways = automaton.ways if self._undirected is None else (True, True)

    def effort(self, vertices: Int64, backward: bool) -> int:
        """Return the number of edges that would be looked at."""
        nodes = vertices if self.states == 1 else vertices // self.states
        forward, inverse = self._ways[::-1] if backward else self._ways
        total = 0
        if len(nodes) == 1:
            node = int(nodes[0])
            forward_, inverse_ = (int(index[node + 1]) - int(index[node]) for index in (self._out, self._in))
            return forward * forward_ + inverse * inverse_
        if forward:
            total += int((self._out[nodes + 1] - self._out[nodes]).sum())
        if inverse:
            total += int((self._in[nodes + 1] - self._in[nodes]).sum())
        return total

    def _steps(self, vertices: Int64, backward: bool) -> StepRows:
        single = self._automaton.single
        if single is None or backward or self._undirected is not None:
            return super()._steps(vertices, backward)
        nodes, state = np.divmod(vertices, self.states)
        relation, inverse, after = single[:, state]
        turned = inverse.astype(np.bool_)
        starts, stops = (np.where(turned, self._in.take(at), self._out.take(at)) for at in (nodes, nodes + 1))
        if narrowed := int((stops - starts).sum()) > max(_BISECT_FROM, 64 * len(nodes)):
            starts, stops = self._arrays.along(starts, stops, relation)
            if self._options.most is not None:
                stops = np.minimum(stops, starts + self._options.most)
        origin, slot = spread(starts, stops - starts)
        if not narrowed:
            kept = (self._relation.take(slot) == relation.take(origin)).nonzero()[0]
            origin, slot = origin.take(kept), slot.take(kept)
        far, label = self._other.take(slot).astype(np.int64) * self.states + after.take(origin), slot << 1
        if (back := turned.take(origin).nonzero()[0]).size:
            label[back] = (self._arrays.numbers_of(slot.take(back), nodes.take(origin.take(back))) << 1) + 1
        return StepRows(origin, far, label)

    def _edge_ends(self, edges: Int64) -> tuple[Integers, Integers, Integers, Bools]:
        relation = self._relation.take(edges)
        head = np.searchsorted(self._out, edges, "right") - 1
        return head, relation, self._other.take(edges), self._arrays.are_undirected(edges, relation)

    def _walked(self, nodes: Int64, before: int, after: int, backward: bool) -> tuple[Int64, Int64, Int64]:
        arc = self._automaton.arc(before, after)
        along, against = (arc.backward, arc.forward) if backward else (arc.forward, arc.backward)
        # A loop is walked once, with the edges that are walked forward if there are any.
        loop = arc.loop if self._loops else False
        loop_out, loop_in = (False, loop) if backward == (arc.forward is not False) else (loop, False)
        # Of an undirected edge, as of a loop, either end is its head.
        either: Bools | bool = False
        if self._undirected is not None and arc.loop is not False:
            either = self._undirected & arc.loop
        found = []
        if along is not False or loop_out is not False or either is not False:
            found.append(self._half(nodes, (along, loop_out, either), self._out, backward))
        if against is not False or loop_in is not False or either is not False:
            found.append(self._half(nodes, (against, loop_in, either), self._in, backward))
        if len(found) == 1:
            return found[0]
        if not found:
            return _NONE, _NONE, _NONE
        origin, node, label = (np.concatenate(columns) for columns in zip(*found, strict=True))
        if len(nodes) == 1:
            return origin, node, label
        order = origin.argsort(kind="stable")
        return origin.take(order), node.take(order), label.take(order)

    def _half(
        self, nodes: Int64, rules: tuple[Bools | bool, Bools | bool, Bools | bool], index: Int64, backward: bool
    ) -> tuple[Int64, Int64, Int64]:
        """Return the steps along the outgoing, or the incoming edges of nodes.

        Args:
            nodes: start nodes.
            rules: relations to walk, relations of which loops are walked, and of which undirected edges are.
            index: start of the edges of each node.
            backward: True for steps into the nodes.
        """
        wanted, loops, either = rules
        starts, stops = index.take(nodes), index.take(nodes + 1)
        split = 1
        masks = [mask for mask in rules if mask is not False]
        if not any(mask is True for mask in masks) and (looked_at := int((stops - starts).sum())) > _BISECT_FROM:
            few = np.flatnonzero(np.any(np.stack([mask for mask in masks if not isinstance(mask, bool)]), axis=0))
            if len(few) * len(nodes) * 64 < looked_at:
                starts, stops = self._arrays.narrow(starts, stops, few)
                split = len(few)
        origin, slot = spread(starts, stops - starts)
        if split > 1:
            origin //= split
        kept = None
        if self._loops:
            loop = self._other.take(slot) == nodes.take(origin)
            relation = self._relation.take(slot)
            walked = [rule if isinstance(rule, bool) else rule.take(relation) for rule in (loops, wanted, either)]
            if self._undirected is not None:
                walked[1] = np.where(self._arrays.are_undirected(slot, relation), walked[2], walked[1])
            kept = np.flatnonzero(np.where(loop, *walked[:2]))
        elif not isinstance(wanted, bool):
            kept = np.flatnonzero(wanted.take(self._relation.take(slot)))
        if kept is not None and len(kept) < len(slot):
            origin, slot = origin.take(kept), slot.take(kept)
        far = self._other.take(slot)
        edge = slot if index is self._out else self._arrays.numbers_of(slot, nodes.take(origin))
        inverse = (index is self._out) == backward
        return origin, far.astype(np.int64), (edge << 1) + 1 if inverse else edge << 1


class StoreExpander(EdgeExpander):
    """Edges of any store that an automaton allows: one call for each state that is left."""

    def __init__(self, store: GraphStore, automaton: Automaton, options: StepOptions) -> None:
        super().__init__(store, automaton, options)
        self._met: list[Int64] = []
        """Number, head, relation and tail of the edges that were walked, and 1 for undirected ones: (M, 5) each."""
        self._ahead: dict[bool, tuple[Int64, Int64, StepRows]] = {}
        """For each direction nodes whose steps are known, ascending, where those of each begin, and these."""

    def effort(self, vertices: Int64, backward: bool) -> int:
        """Return the number of nodes that would be read."""
        return len(vertices)

    def all_shortest(
        self, source: int, target: int, most: int | None, limit: int, timeout_s: float
    ) -> tuple[Int64, Int64] | None:
        """Let the store's engine find all shortest paths between two nodes.

        Returns:
            Vertices and labels in the order of a step-by-step search; None if the engine has no equivalent search, or
            finds `limit` paths.
        """
        way = self._automaton.one_way
        if way is None or source == target:
            return None
        direction, relations = way
        found = self._store.shortest_paths(source, target, direction, relations, most, limit, timeout_s)
        if found is None or len(found) == 0:
            return found if found is None else (np.empty((0, 1), np.int64), np.empty((0, 0), np.int64))
        head, _, tail, edge = np.moveaxis(found, 2, 0)
        vertices = np.full((len(found), found.shape[1] + 1), source, np.int64)
        labels = np.empty(edge.shape, np.int64)
        for step in range(found.shape[1]):
            inverse = head[:, step] != vertices[:, step]
            vertices[:, step + 1] = np.where(inverse, head[:, step], tail[:, step])
            labels[:, step] = (edge[:, step] << 1) + inverse
        met = found.reshape(-1, 4)
        self._met.append(np.column_stack((met[:, 3], met[:, :3], np.zeros(len(met), np.int64))))
        keys = np.stack((labels & 1, labels), axis=2).reshape(len(labels), -1)
        order = np.lexsort(keys.T[::-1])
        return vertices[order], labels[order]

    def look_ahead(self, start: int, met: Int64, backward: bool, limit: int, timeout_s: float) -> None:
        """Read the edges of all reachable nodes in one call, if the store's engine can compute these.

        Args:
            start: node where paths start, or end if `backward`.
            met: nodes whose edges were read and that are not visited again.
            backward: direction of the walk.
            limit: give up at more nodes.
            timeout_s: give up after so long.
        """
        way = self._automaton.one_way
        if way is None or way[1] is None:
            return
        turned = {Direction.OUT: Direction.IN, Direction.IN: Direction.OUT}
        direction = turned.get(way[0], way[0]) if backward else way[0]
        reached = self._store.reached(start, direction, way[1], limit, timeout_s)
        vertices = np.setdiff1d(met[:0] if reached is None else np.asarray(reached, np.int64), met)
        if len(vertices):
            steps = super()._steps(vertices, backward)
            self._ahead[backward] = vertices, np.searchsorted(steps.origin, np.arange(len(vertices) + 1)), steps

    def _steps(self, vertices: Int64, backward: bool) -> StepRows:
        if backward in self._ahead:
            known, bounds, steps = self._ahead[backward]
            place = np.searchsorted(known, vertices)
            if np.array_equal(known.take(place, mode="clip"), vertices):
                origin, row = spread(bounds[place], bounds[place + 1] - bounds[place])
                return StepRows(origin, steps.far.take(row), steps.label.take(row))
        nodes = vertices // self.states
        if self._automaton.single is None or backward or has_many_edges(self._store, nodes) is not False:
            return super()._steps(vertices, backward)
        relation, inverse, after = self._automaton.single[:, vertices % self.states]
        parts, caps = [], Caps(per_relation=self._options.most)
        for turned, direction in enumerate((Direction.OUT, Direction.IN)):
            if not (places := np.flatnonzero((inverse == turned) & (relation >= 0))).size:
                continue
            wanted = relation[places]
            batch = expand(self._store, nodes[places], direction, distinct(wanted), caps).edges
            rows = np.flatnonzero(batch.relation == wanted[batch.origin])
            against, _, undirected = _ways(batch, backward)
            origin, far, label = self._taken(batch, against, undirected, rows)
            parts.append(StepRows(places[origin], far * self.states + after[places[origin]], label))
        return _joined(parts)

    def _edge_ends(self, edges: Int64) -> tuple[Integers, Integers, Integers, Bools]:
        met = np.concatenate((np.empty((0, 5), np.int64), *self._met))
        numbers, first = np.unique(met[:, 0], return_index=True)
        self._met = [met := met[first]]
        _, head, relation, tail, undirected = met[np.searchsorted(numbers, edges)].T
        return head, relation, tail, undirected.astype(np.bool_)

    def _walked(self, nodes: Int64, before: int, after: int, backward: bool) -> tuple[Int64, Int64, Int64]:
        table = self._automaton.arcs[before] == after
        way = {(True, False): Direction.OUT, (False, True): Direction.IN, (True, True): Direction.BOTH}
        forward = bool(table[:, FORWARD].any())
        # An arc that loops alone allow is walked backward, as in `ColumnarExpander`.
        inverse = bool(table[:, BACKWARD].any()) or (not forward and bool(table[:, LOOP].any()))
        if not (forward or inverse):
            return _NONE, _NONE, _NONE
        direction = way[(inverse, forward) if backward else (forward, inverse)]
        allowed: Bools = np.asarray(table.any(axis=1))
        relations = None if allowed.all() else np.flatnonzero(allowed[self._automaton.classes])
        caps = Caps(per_relation=self._options.most if relations is not None and len(relations) == 1 else None)
        batch = expand(self._store, nodes, direction, relations, caps).edges
        kinds = self._automaton.classes.take(batch.relation)
        against, loop, undirected = _ways(batch, backward)
        kept = table[kinds, np.where(undirected, LOOP, against)]
        if self._automaton.both_ways:
            kept = np.where(loop, table[kinds, LOOP] & (against != forward), kept)
        return self._taken(batch, against, undirected, np.flatnonzero(kept))

    def _taken(self, batch: EdgeBatch, against: Bools, undirected: Bools, rows: Int64) -> tuple[Int64, Int64, Int64]:
        """Return position, far node and label of some edges, and remember their ends."""
        columns = (batch.edge, batch.head, batch.relation, batch.tail, undirected)
        self._met.append(np.column_stack([column[rows].astype(np.int64) for column in columns]))
        far, label = batch.other[rows].astype(np.int64), batch.edge[rows].astype(np.int64) << 1
        return batch.origin[rows], far, label + against[rows]


def _ways(batch: EdgeBatch, backward: bool) -> tuple[Bools, Bools, Bools]:
    """Return which edges are walked from tail to head, which are loops, and which are undirected: (E,) each."""
    loop: Bools = batch.head == batch.tail
    undirected = np.zeros(len(batch), np.bool_) if batch.undirected is None else batch.undirected
    return (batch.inverse ^ backward) & (~undirected | loop), loop, undirected


def steps_along(store: GraphStore, automaton: Automaton, options: StepOptions) -> EdgeExpander:
    """Return the edges of a graph that an automaton allows."""
    graph = store.columnar
    return StoreExpander(store, automaton, options) if graph is None else ColumnarExpander(graph, automaton, options)


class MatchExpander:
    """Whole matches of an expression as steps: from a node to each end of a match, once for any number of matches."""

    def __init__(
        self,
        inner: Expander,
        shortest_walk: Callable[[Expander, int, int], tuple[Int64, Int64]],
        spend: Callable[[int], bool],
    ) -> None:
        """Take steps from another source.

        Args:
            inner: the steps within a match.
            shortest_walk: finds the vertices and labels of one match.
            spend: counts steps; True if there may be more of them.
        """
        self._inner, self._shortest_walk, self._spend = inner, shortest_walk, spend
        self.states, self.accepting, self.empty = 1, np.ones(1, np.bool_), False

    def edge(self, labels: Int64) -> Int64:
        """Return the identity of each pair of nodes."""
        return labels

    def effort(self, vertices: Int64, backward: bool) -> int:
        """Estimate the first steps within."""
        return self._inner.effort(self._begin(vertices, backward)[1], backward)

    def forward(self, vertices: Int64) -> StepRows:
        """Return the matches that begin in nodes."""
        return self._matches(vertices, False)

    def backward(self, vertices: Int64) -> StepRows:
        """Return the matches that end in nodes."""
        return self._matches(vertices, True)

    def _begin(self, nodes: Int64, backward: bool) -> tuple[Int64, Int64]:
        """Return origins and vertices at which matches begin."""
        states = np.flatnonzero(self._inner.accepting) if backward else np.zeros(1, np.int64)
        origin = np.arange(len(nodes)).repeat(len(states))
        return origin, (nodes[:, None] * self._inner.states + states).reshape(-1)

    def _matches(self, nodes: Int64, backward: bool) -> StepRows:
        states = self._inner.states
        origin, vertex = self._begin(nodes, backward)
        seen = np.empty(0, np.int64)
        ends = [origin << _NODE_BITS | vertex // states] if self._inner.empty else []
        while len(origin):
            vertices, which = np.unique(vertex, return_inverse=True)
            steps = self._inner.backward(vertices) if backward else self._inner.forward(vertices)
            row, step = rows_at(steps.origin, which)
            steps_ahead = len(row)
            if not self._spend(_MOST_PAIRS * 1000 if len(seen) + steps_ahead > _MOST_PAIRS else steps_ahead):
                break
            fresh = distinct(origin.take(row) << _NODE_BITS | steps.far.take(step))
            if len(seen):
                fresh = fresh[np.flatnonzero(seen.take(np.searchsorted(seen, fresh), mode="clip") - fresh)]
            seen = np.sort(np.concatenate((seen, fresh)), kind="stable")
            origin, vertex = fresh >> _NODE_BITS, fresh & _NODE
            state = vertex % states
            done = np.flatnonzero(np.equal(state, 0) if backward else self._inner.accepting.take(state))
            ends.append(origin[done] << _NODE_BITS | vertex[done] // states)
        found = distinct(np.concatenate(ends)) if ends else np.empty(0, np.int64)
        origin, far = found >> _NODE_BITS, found & _NODE
        near = nodes.take(origin)
        pairs = (far, near) if backward else (near, far)
        return StepRows(origin, far, pairs[0] << 31 | pairs[1])

    def spell(self, near: Int64, far: Int64, labels: Int64) -> list[Spelled]:
        """Return the edges of a shortest match for each step."""
        spelled = []
        for one, other in zip(near.tolist(), far.tolist(), strict=True):
            vertices, walked = self._shortest_walk(self._inner, one, other)
            nodes = vertices // self._inner.states
            parts = self._inner.spell(nodes[:-1], nodes[1:], walked)
            triples = tuple(triple for part in parts for triple in part.triples)
            spelled.append(Spelled({}, triples, tuple(back for part in parts for back in part.inverse)))
        return spelled


_BISECT_FROM = 8192
"""Where more edges than these would be looked at for few relations, each node's are bisected."""

_MOST_PAIRS = 2_000_000
"""Pairs of a node and a vertex of its match, held at a time; a query that needs more is cut."""

_NODE_BITS = 38
_NODE = (1 << _NODE_BITS) - 1


def _joined(parts: Sequence[StepRows]) -> StepRows:
    """Put steps together, by origin."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return StepRows(_NONE, _NONE, _NONE)
    origin, far, label = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = origin.argsort(kind="stable")
    return StepRows(origin[order], far[order], label[order])
