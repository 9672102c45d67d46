"""Enumerating candidate queries inside a query engine: one aggregate query for each template, nothing materialised.

Each query matches a template with free relations around all anchors, groups what it finds by the relations, and counts
distinct targets and those among the gold answers, as Figure 1 of the paper does. The results are equal to those of
`enumerate_candidates`, which is far faster on graphs in files; this module is for graphs that are only reached by
Cypher.

Source: GraphRAFT (arXiv:2504.05478), "Synthesize ground-truth cypher" and "K-hop query path templates".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from byokg.errors import QueryTimeout, QueryTooLarge
from byokg.graph.servers.cypher_store import CypherStore
from byokg.graph.store import Direction, QueryableGraph, QueryLimits
from byokg.retrieval.candidates import (
    PATHS,
    Anchor,
    Attribute,
    CandidateQueries,
    CandidateQuery,
    Conditions,
    Leg,
    NodeIdSyntax,
    QueryHop,
    Template,
    Templates,
    anchors_of,
    attributes_of,
    dialect_of,
    in_period,
    literal,
    name_in_cypher,
)
from byokg.text.dates import DATES
from byokg.types import Cell, EntityId

_Key = tuple[Any, ...]


@dataclass(frozen=True)
class _Shape:
    """One template with free relations."""

    template: Template
    match: str
    edges: tuple[tuple[str, str], ...]
    """Each relation's variable, and that of the node it is walked from, in the order of `CandidateQuery`'s steps."""
    target: str
    hops: tuple[int, ...]
    """Of each leg."""


def _shapes(names: Collection[Template]) -> Iterator[_Shape]:
    """Yield the shapes of some templates; `{a}` and `{b}` stand for what binds the anchors."""
    nodes, edges, conditions = "({a})", [], []
    for hop, template in enumerate(PATHS, start=1):
        nodes += f"-[r{hop}]-(x{hop + 1})"
        edges.append((f"r{hop}", f"x{hop}"))
        if hop != 1:
            conditions.append(f"x{hop + 1} <> x1")
        if template in names:
            told = " AND ".join(conditions or ["x2 <> x1"])
            yield _Shape(template, f"MATCH {nodes} WHERE {told}", tuple(edges), f"x{hop + 1}", (hop,))
    met = "MATCH ({a})-[r1]-(x2)-[r2]-({b}) WHERE x2 <> x1 AND x2 <> y1"
    if "between" in names:
        yield _Shape("between", met, (("r1", "x1"), ("r2", "y1")), "x2", (1, 1))
    if "intersection" in names:
        for left, right in ((1, 2), (2, 1), (2, 2)):
            target = f"x{left + 1}"
            one = "({a})" + "".join(f"-[r{hop}]-(x{hop + 1})" for hop in range(1, left + 1))
            two = "({b})" + "".join(
                f"-[s{hop}]-({target if hop == right else f'y{hop + 1}'})" for hop in range(1, right + 1)
            )
            away = f"WHERE {target} <> x1 AND {target} <> y1"
            steps = [(f"r{hop}", f"x{hop}") for hop in range(1, left + 1)]
            steps += [(f"s{hop}", f"y{hop}") for hop in range(1, right + 1)]
            match = f"MATCH {one} WHERE {target} <> x1 MATCH {two} {away}"
            yield _Shape("intersection", match, tuple(steps), target, (left, right))
    if "mediated" in names:
        match = f"{met} MATCH (x2)-[r3]-(x3) WHERE x3 <> x1 AND x3 <> y1"
        yield _Shape("mediated", match, (("r1", "x1"), ("r2", "y1"), ("r3", "x2")), "x3", (1, 1))


def queried_candidates(
    store: QueryableGraph,
    anchors: Sequence[EntityId],
    gold: Collection[EntityId] = (),
    templates: Templates | None = None,
    dialect: NodeIdSyntax | None = None,
    conditions: Conditions | None = None,
    gold_values: Collection[str] = (),
    limits: QueryLimits | None = None,
) -> CandidateQueries:
    """Enumerate the candidates around some entities by aggregate queries; arguments as for `CandidateFinder.find`.

    Args:
        store: the graph; takes Cypher.
        limits: what each query may use; a template that needs more is left out, which `truncated` says.

    Raises:
        EntityNotFound: an anchor is not in the store.
    """
    run = _QueryEnumeration(
        store,
        list(dict.fromkeys(anchors)),
        list(dict.fromkeys(gold)),
        templates or Templates(),
        dialect or dialect_of(store),
        conditions or Conditions(),
        frozenset(gold_values),
        limits or QueryLimits(timeout_s=60.0, max_rows=100_000),
    )
    return run.all()


@dataclass(frozen=True)
class _QueryEnumeration:
    """One enumeration."""

    store: QueryableGraph
    ids: list[EntityId]
    gold: list[EntityId]
    templates: Templates
    dialect: NodeIdSyntax
    conditions: Conditions
    gold_values: frozenset[str]
    limits: QueryLimits

    def all(self) -> CandidateQueries:
        """Return everything, template by template."""
        anchors = {anchor.id: anchor for anchor in anchors_of(self.store, self.ids)}
        attributes = attributes_of(self.store) if self.conditions.periods or self.conditions.extremes else ()
        items: list[CandidateQuery] = []
        truncated: list[str] = []
        for shape in _shapes(self.templates.names):
            if len(shape.hops) > 1 and len(self.ids) < 2:
                continue
            try:
                items += list(self._of_shape(shape, anchors, attributes))
            except (QueryTimeout, QueryTooLarge) as error:
                truncated.append(f"{shape.template} of {'+'.join(map(str, shape.hops))} hops: {error}")
        return CandidateQueries(tuple(items), tuple(truncated))

    def _of_shape(
        self, shape: _Shape, anchors: Mapping[EntityId, Anchor], attributes: Sequence[Attribute]
    ) -> Iterator[CandidateQuery]:
        found: dict[_Key, CandidateQuery] = {}
        for key, row in self._rows(shape, anchors, ""):
            found[key] = one = self._candidate(shape, anchors, row)
            yield one
            if self.conditions.count:
                yield replace(one, count=True, total=1, hits=int(str(one.total) in self.gold_values))
        if self.templates.typed:
            typed = f" UNWIND labels({shape.target}) AS name WITH * WHERE true"
            for key, row in self._rows(shape, anchors, typed, "name"):
                total, hits = row[-2:]
                if (name := row[self._width(shape)]) and total < found[key].total:
                    yield replace(found[key], end_type=name, total=total, hits=hits)
        for attribute in attributes:
            yield from self._with_values(shape, found, attribute)

    def _with_values(
        self, shape: _Shape, found: Mapping[_Key, CandidateQuery], attribute: Attribute
    ) -> Iterator[CandidateQuery]:
        key = name_in_cypher(attribute.key)
        value = f"{shape.target}.{key}"
        match = f" WITH * WHERE {value} IS NOT NULL"
        if attribute.place == "edge":
            if shape.template in ("between", "intersection"):  # which have two last edges
                return
            value = f"{shape.edges[-1][0]}.{key}"
            match = f" WITH * WHERE {value} IS NOT NULL"
        elif attribute.place == "neighbour":
            value = "v.name"
            match = f" MATCH ({shape.target})-[:{key}]-(v) WHERE v <> {shape.target} AND v.name =~ $dates"
        for period in self.conditions.periods:
            says = f"{match} WITH * WHERE {in_period(value, period, literal)}"
            for place, row in self._rows(shape, {}, says):
                yield replace(found[place], period=(attribute, period), total=row[-2], hits=row[-1])
        for highest in (True, False) if self.conditions.extremes else ():
            for place, hits in self._foremost(shape, match, value, highest):
                yield replace(found[place], extreme=(attribute, highest), total=1, hits=hits)

    def _rows(
        self, shape: _Shape, anchors: Mapping[EntityId, Anchor], condition: str, column: str = ""
    ) -> Iterator[tuple[_Key, Sequence[Any]]]:
        """Yield each group of a shape: its key; anchors, relations, a further column, ways, total and hits."""
        target = self._identity(shape.target)
        further = f", {column}" if column else ""
        text = (
            f"{self._match(shape)}{condition} RETURN {self._group(shape)}{further}, {self._ways(shape)}, "
            f"count(DISTINCT {target}) AS total, "
            f"count(DISTINCT CASE WHEN {target} IN $gold THEN {target} END) AS hits"
        )
        for row in self._run(text, shape):
            yield self._key(shape, row, 1 if column else 0), row

    def _foremost(self, shape: _Shape, match: str, value: str, highest: bool) -> Iterator[tuple[_Key, int]]:
        """Yield for each group whether its first target in an order is correct."""
        names = ", ".join(f"k{at}" for at in range(self._width(shape)))
        target = self._identity(shape.target)
        directed = self.templates.directed
        ways = "".join(f", w{at}, v{at}" for at in range(len(shape.edges))) if directed else ""
        kept = "".join(f", {way}, {way} AS v{at}" for at, way in enumerate(self._each_way(shape))) if directed else ""
        text = (
            f"{self._match(shape)}{match} WITH {self._group(shape)}{kept}, {target} AS id, "
            f"{value} AS value ORDER BY value{' DESC' if highest else ''}, id "
            f"WITH {names}{ways}, head(collect(id)) AS first "
            f"RETURN {names}{ways}, CASE WHEN first IN $gold THEN 1 ELSE 0 END AS hits"
        )
        for row in self._run(text, shape):
            yield self._key(shape, row, 0), row[-1]

    def _width(self, shape: _Shape) -> int:
        """Return how many columns say which group a row is about."""
        return len(shape.hops) + len(shape.edges)

    def _key(self, shape: _Shape, row: Sequence[Any], further: int) -> _Key:
        """Return what a group is known by; where ways count, they are part of it."""
        width = self._width(shape)
        ways = row[width + further :][: 2 * len(shape.edges)] if self.templates.directed else ()
        return (*row[:width], *ways)

    def _match(self, shape: _Shape) -> str:
        """Write the pattern, with the anchors bound, and a row for each way where ways count."""
        names = ("x1", "y1")[: len(shape.hops)]
        match = shape.match
        if isinstance(self.store, CypherStore):
            found = " ".join(
                f"MATCH ({name}) WHERE {self.dialect.identity}({name}) = pair[{at}]" for at, name in enumerate(names)
            )
            match = f"{found} {match}".replace("{a}", "x1").replace("{b}", "y1")
        else:
            key = name_in_cypher(self.dialect.id_property or "id")
            for at, (mark, name) in enumerate(zip(("{a}", "{b}"), names, strict=False)):
                match = match.replace(mark, f"{name} {{{key}: pair[{at}]}}")
        return f"UNWIND $pairs AS pair {match}{self._apart(shape)}"

    def _group(self, shape: _Shape) -> str:
        ends = ["x1", "y1"][: len(shape.hops)]
        columns = [self._identity(end) for end in ends] + [f"type({edge})" for edge, _ in shape.edges]
        return ", ".join(f"{column} AS k{at}" for at, column in enumerate(columns))

    def _each_way(self, shape: _Shape) -> list[str]:
        """Write for each hop 1 where the edge is walked as it lies, 2 where it is walked against."""
        if self.templates.directed:
            return [f"w{at}" for at in range(len(shape.edges))]
        return [f"CASE WHEN startNode({edge}) = {start} THEN 1 ELSE 2 END" for edge, start in shape.edges]

    def _apart(self, shape: _Shape) -> str:
        """Write what makes a row of each way to walk the edges, where ways count: a loop has both."""
        if not self.templates.directed:
            return ""
        return "".join(
            f" UNWIND CASE WHEN startNode({edge}) = endNode({edge}) THEN [1, 2] "
            f"WHEN startNode({edge}) = {start} THEN [1] ELSE [2] END AS w{at}"
            for at, (edge, start) in enumerate(shape.edges)
        )

    def _ways(self, shape: _Shape) -> str:
        """Write the least and the greatest way of each hop; where ways count, both group."""
        if self.templates.directed:
            return ", ".join(f"{way}, {way} AS v{at}" for at, way in enumerate(self._each_way(shape)))
        return ", ".join(f"min({way}) AS w{at}, max({way}) AS v{at}" for at, way in enumerate(self._each_way(shape)))

    def _identity(self, variable: str) -> str:
        if self.dialect.id_property is None:
            return f"{self.dialect.identity}({variable})"
        return f"{variable}.{name_in_cypher(self.dialect.id_property)}"

    def _run(self, text: str, shape: _Shape) -> Sequence[Sequence[Any]]:
        bound: Sequence[str] = self.ids
        if isinstance(self.store, CypherStore):  # whose indexes need a label, which anchors may not share
            bound = self.store.elements(self.ids)
        pairs: list[list[Cell]] = [[id] for id in bound]
        if len(shape.hops) > 1:
            pairs = [list(pair) for pair in combinations(bound, 2)]
        parameters: dict[str, Cell] = {"pairs": pairs, "gold": list(self.gold)}
        if "$dates" in text:
            parameters["dates"] = DATES
        return self.store.run(text, parameters, self.limits).rows

    def _candidate(self, shape: _Shape, anchors: Mapping[EntityId, Anchor], row: Sequence[Any]) -> CandidateQuery:
        count, width = len(shape.hops), self._width(shape)
        steps = []
        for at, relation in enumerate(row[count:width]):
            least, most = row[width + 2 * at : width + 2 * at + 2]
            way = Direction.BOTH if least != most else Direction.OUT if least == 1 else Direction.IN
            steps.append(QueryHop(relation, way))
        legs, place = [], 0
        for side, hops in enumerate(shape.hops):
            legs.append(Leg(anchors[row[side]], tuple(steps[place : place + hops])))
            place += hops
        return CandidateQuery(
            shape.template,
            tuple(legs),
            total=row[-2],
            hits=row[-1],
            gold=len(self.gold) or len(self.gold_values),
            tail=tuple(steps[place:]),
            directed=self.templates.directed,
            dialect=self.dialect,
        )
