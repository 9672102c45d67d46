"""The paths that a query found, spelled out when they are looked at, and how they are written.

for path in result:
    print(path.nodes, path.edges[0].triples)
print(result.text())

`NameResolver` finds the nodes and labels that a query names. A prefix is declared in the query, or else known to the
graph from the RDF it was made from. On a graph without IRIs the empty prefix stands for the graph's own ids and labels:
`:Alice`, `:knows`; other names are written `<Tom Hanks>`. The module of RDF terms is imported on demand, since most
graphs have no IRIs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from byokg.errors import EntityNotFound, NameAmbiguous, PathQueryInvalid, RelationNotFound
from byokg.graph.pathql.expander import Bound, Expander
from byokg.graph.pathql.query import NameTerm, PathQuery, Variable
from byokg.graph.pathql.search import PathRows
from byokg.graph.sorted_ids import fold_repeats
from byokg.graph.store import GraphStore
from byokg.text.names import normalize_name, on_one_line
from byokg.text.tabular import TableView, Tabular
from byokg.types import EntityId, Node, Path, Triple, Value

if TYPE_CHECKING:
    from byokg.graph.pathql.extras.rules import Derivation, Inferred
    from byokg.graph.rdf.terms import Prefixes

_WORD = re.compile(r"[^\W_][\w-]*(?:\.[\w-]+)*|_[\w-]+")


class NameResolver:
    """The names of one graph, with the prefixes of one query."""

    def __init__(self, store: GraphStore, prefixes: Mapping[str, str]) -> None:
        self._store = store
        self._declared = dict(prefixes)
        source = store.source
        self._own: Mapping[str, str] = source.get("prefixes") or {}
        self._types: Mapping[str, str] = source.get("types") or {}
        self._known: dict[NameTerm, tuple[int | None, Bound]] = {}

    @property
    def _prefixes(self) -> Prefixes:
        """Return the prefixes of the graph; a server learns more of them while it is read."""
        return self._store.prefixes or self._own_prefixes

    @cached_property
    def _own_prefixes(self) -> Prefixes:
        from byokg.graph.rdf.terms import Prefixes

        return Prefixes(dict(self._own))

    @property
    def _graph(self) -> Mapping[str, str]:
        known = self._store.prefixes
        return self._own if known is None else known.namespaces

    # From a query

    def iris(self, name: NameTerm) -> Iterator[str]:
        """Yield the full forms of a name, the likeliest first."""
        if name.prefix is None:
            yield name.text
            return
        if name.prefix in self._declared:
            yield self._declared[name.prefix] + name.text
            return
        if name.prefix in self._graph:
            yield self._graph[name.prefix] + name.text
        if name.prefix == "":
            yield name.text
            if "%" in name.text:
                from byokg.graph.rdf.terms import decode

                yield decode(name.text)
            for space in self._graph.values():
                yield space + name.text
            return
        yield f"{name.prefix}:{name.text}"
        from byokg.graph.rdf.terms import WELL_KNOWN

        if name.prefix in WELL_KNOWN:
            yield WELL_KNOWN[name.prefix] + name.text

    def node(self, name: NameTerm) -> int:
        """Return the number of a node. Raises `EntityNotFound`."""
        missing: EntityNotFound | None = None
        for iri in self.iris(name):
            try:
                return int(self._store.numbers([EntityId(iri)])[0])
            except EntityNotFound as error:
                missing = missing or error
        assert missing is not None
        raise missing

    def named(self, name: NameTerm) -> int:
        """Return the number of a node, given by id or by a name that no other node has.

        Raises:
            EntityNotFound: there is no such node.
            NameAmbiguous: several nodes have the name.
        """
        from byokg.graph.name_indexes import named_node

        try:
            return self.node(name)
        except EntityNotFound as missing:
            if name.prefix:
                raise
            try:
                return named_node(self._store, name.text)
            except NameAmbiguous:
                raise
            except EntityNotFound:
                raise missing from None

    def node_or_none(self, name: NameTerm) -> int | None:
        """Return the number of a node; None if there is none."""
        try:
            return self.node(name)
        except EntityNotFound:
            return None

    def labels(self, name: NameTerm) -> Iterator[str]:
        """Yield the labels that a relation or property of this name may have."""
        for iri in self.iris(name):
            yield iri
            if self._graph:
                yield self._prefixes.label(iri)
        if name.prefix:
            yield f"{name.prefix}:{name.text}"

    def relation_or_none(self, name: NameTerm) -> int | None:
        """Return the number of a relation; None if there is none."""
        known = self._store.relations
        for label in self.labels(name):
            try:
                return known.index(label)
            except ValueError:
                continue
        return None

    def relation(self, name: NameTerm) -> int:
        """Return the number of a relation. Raises `RelationNotFound`."""
        number = self.relation_or_none(name)
        if number is None:
            label = name.text if name.prefix in (None, "") else str(name)
            raise RelationNotFound(label, self._store.name, self._store.relations)
        return number

    def is_type(self, name: NameTerm) -> bool:
        """True if a name is `rdf:type`."""
        from byokg.graph.rdf.terms import RDF_TYPE

        return next(self.iris(name)) == RDF_TYPE or str(name) == "rdf:type"

    def types(self, name: NameTerm) -> frozenset[str]:
        """Return the node types that a name may stand for."""
        from byokg.graph.rdf.terms import local_name

        found = set()
        for iri in self.iris(name):
            found |= {iri, local_name(iri)}
            found |= {label for label, full in self._types.items() if full == iri}
        return frozenset(found)

    def iri(self, label: str) -> str:
        """Return the term that the label of a relation, property or type stands for: its IRI, if the graph has IRIs."""
        if label in self._types:
            return self._types[label]
        if not self._graph:
            return label
        from byokg.graph.rdf.terms import TERM

        iri = self._prefixes.expand(label)
        return label if iri.startswith(TERM) else iri

    def term(self, name: NameTerm, properties: Collection[str]) -> tuple[int | None, Bound]:
        """Return the term that a name stands for, and its number if it is a node.

        Of several readings in different namespaces a node comes first, then a relation, a property and a type. A name
        that the graph does not hold is a term that equals no other.
        """
        if name in self._known:
            return self._known[name]
        number = self.node_or_none(name)
        if number is not None:
            bound = Bound("node", self._store.ids(np.array([number]))[0])
        else:
            relation = self.relation_or_none(name)
            labels = [] if relation is None else [self._store.relations[relation]]
            labels += [label for label in self.labels(name) if label in properties]
            labels += sorted(self.types(name) & self._store.schema().node_types.keys())
            bound = Bound("relation", labels[0]) if labels else Bound("node", self._written_out(name))
        self._known[name] = number, bound
        return number, bound

    def _written_out(self, name: NameTerm) -> str:
        """Return a name in full; a well known prefix counts unless the graph defines another."""
        from byokg.graph.rdf.terms import WELL_KNOWN

        if name.prefix in WELL_KNOWN and name.prefix not in self._declared and name.prefix not in self._graph:
            return WELL_KNOWN[name.prefix] + name.text
        return next(self.iris(name))

    # Into an answer

    def shown(self, entity: str) -> str:
        """Return how an id or a label is written: `:Alice`, `dbo:birthPlace`, `<Tom Hanks>`."""
        written = self.shown_iri(entity, "")
        if written:
            return written
        if self._graph and "://" in entity:
            label = self._prefixes.label(entity)
            return label if label != entity else f"<{entity}>"
        if "" not in self._declared and _WORD.fullmatch(entity):
            return f":{entity}"
        prefix, _, local = entity.partition(":")
        if prefix in self._graph and _WORD.fullmatch(local):
            return self.shown_iri(self._graph[prefix] + local, entity)
        return f"<{entity}>"

    def shown_iri(self, iri: str, label: str) -> str:
        """Return how an IRI is written with the prefixes of the query, or else its label in the graph."""
        for prefix, space in self._declared.items():
            if space and iri.startswith(space) and _WORD.fullmatch(iri[len(space) :]):
                return f"{prefix}:{iri[len(space) :]}"
        return label


def shown_literal(value: Value, datatype: str = "", language: str = "") -> str:
    """Return a literal as a query writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float) and datatype in ("", "integer", "decimal", "double", "float"):
        return str(value)
    text = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    if language:
        return f'"{text}"@{language}'
    return f'"{text}"^^xsd:{datatype}' if datatype else f'"{text}"'


def check_bound(wanted: Sequence[Variable], bound: set[str], where: str) -> None:
    """Raise `PathQueryInvalid` if a pattern does not bind its end variables."""
    missing = [f"?{variable.name}" for variable in wanted if variable.name not in bound]
    if missing:
        lacking = " and ".join(missing)
        raise PathQueryInvalid(f"the pattern of {where} does not bind {lacking}; use it in a triple there")


_SPELLED_TOGETHER = 256


@dataclass(frozen=True)
class PathEdge:
    """One edge of a path: a solution of VIA."""

    start: EntityId
    end: EntityId
    bindings: Mapping[str, Bound]
    """What other variables of VIA stand for."""
    triples: tuple[Triple, ...]
    """Edges of the graph that lead from start to end; empty for a pattern that does not lead along edges."""
    inverse: tuple[bool, ...]
    """For each triple whether it is walked from tail to head."""

    @property
    def undirected(self) -> bool:
        """Return True for a single undirected edge of the graph."""
        return len(self.triples) == 1 and self.triples[0].undirected


@dataclass(frozen=True)
class FoundPath:
    """One path."""

    start: EntityId
    edges: tuple[PathEdge, ...]
    bindings: Mapping[str, Bound]
    """What other variables of the START and END patterns stand for."""
    cost: float | None = None
    """Sum of what COST names."""

    @property
    def nodes(self) -> tuple[EntityId, ...]:
        """Return the nodes, start first: one more than there are edges."""
        return (self.start, *(edge.end for edge in self.edges))

    @property
    def end(self) -> EntityId:
        """Return the last node."""
        return self.edges[-1].end if self.edges else self.start

    @property
    def path(self) -> Path:
        """Return the walk through the graph that is the evidence for the path."""
        return Path(
            self.start,
            tuple(triple for edge in self.edges for triple in edge.triples),
            tuple(inverse for edge in self.edges for inverse in edge.inverse),
        )


@dataclass(frozen=True)
class FoundRows:
    """Paths of one length as a search found them, with what each is joined with."""

    rows: PathRows
    bindings: Sequence[Mapping[str, Bound]] = ()
    """One for each row; empty if no pattern binds anything."""
    costs: Sequence[float] = ()


@dataclass(frozen=True)
class PathSpeller:
    """Puts what a search found into words."""

    store: GraphStore
    names: NameResolver
    moves: Expander
    inferred: Inferred | None = None

    def paths(self, found: FoundRows, first: int, last: int) -> list[FoundPath]:
        """Spell out the rows from one place up to another."""
        nodes = found.rows.vertices[first:last] // self.moves.states
        labels = found.rows.labels[first:last]
        width = labels.shape[1]
        each, which = fold_repeats(nodes.reshape(-1))
        known = self.store.ids(each)
        ids = [known[place] for place in which.tolist()]
        steps = self.moves.spell(nodes[:, :-1].reshape(-1), nodes[:, 1:].reshape(-1), labels.reshape(-1))
        if self.inferred is not None:
            steps = [step._replace(triples=tuple(map(self.inferred.restore, step.triples))) for step in steps]
        paths = []
        for row in range(len(nodes)):
            at, step = row * (width + 1), row * width
            edges = tuple(PathEdge(ids[at + hop], ids[at + hop + 1], *steps[step + hop]) for hop in range(width))
            bindings = found.bindings[first + row] if found.bindings else {}
            cost = found.costs[first + row] if found.costs else None
            paths.append(FoundPath(ids[at], edges, bindings, cost))
        return paths

    def derivation(self, triple: Triple) -> Derivation | None:
        """Return why an edge of a path was inferred; None for one that is stored."""
        return self.inferred.derivation(triple) if self.inferred is not None else None

    def shown(self, bound: Bound) -> str:
        """Return how a value is written."""
        if bound.kind == "literal":
            return shown_literal(bound.value, bound.datatype)
        return self.names.shown(str(bound.value))


class PathResult(Tabular, Sequence[FoundPath]):
    """The paths that a query found, by start and then by length."""

    def __init__(
        self,
        query: PathQuery,
        speller: PathSpeller,
        found: Sequence[FoundRows],
        bound: tuple[Sequence[str], Sequence[str], Sequence[str]],
        truncated: bool,
        seconds: float,
        against: Callable[[], bool] = bool,
    ) -> None:
        """Hold what a search found.

        `bound` are the variables of START, VIA and END besides start and end; `against` finds out whether a path exists
        against the direction of edges.
        """
        self.query, self._speller = query, speller
        self._found = [each for each in found if len(each.rows)]
        self._counts = np.cumsum([0, *(len(each.rows) for each in self._found)]).tolist()
        self._start_bound, self._via_bound, self._end_bound = map(list, bound)
        self._kept: dict[int, list[FoundPath]] = {}
        self.truncated = truncated
        """Whether a limit other than the query's own may have left a path out."""
        self.seconds = seconds
        self._against = against
        self._names: dict[EntityId, str] = {}

    def __len__(self) -> int:
        return int(self._counts[-1])

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if place < 0:
            place += len(self)
        if not 0 <= place < len(self):
            raise IndexError(place)
        return self._block(place // _SPELLED_TOGETHER)[place % _SPELLED_TOGETHER]

    def __iter__(self) -> Iterator[FoundPath]:
        for block in range(-(-len(self) // _SPELLED_TOGETHER)):
            yield from self._block(block)

    def _block(self, block: int) -> list[FoundPath]:
        """Spell out paths that stand together."""
        if block not in self._kept:
            if len(self._kept) > 64:
                self._kept.clear()
            first, last = block * _SPELLED_TOGETHER, (block + 1) * _SPELLED_TOGETHER
            paths: list[FoundPath] = []
            for found, begin, end in zip(self._found, self._counts, self._counts[1:], strict=False):
                if begin < last and end > first:
                    paths += self._speller.paths(found, max(first - begin, 0), min(last, end) - begin)
            self._kept[block] = paths
        return self._kept[block]

    def derivation(self, triple: Triple) -> Derivation | None:
        """Return why an edge of a path was inferred; None for one that is stored."""
        return self._speller.derivation(triple)

    def shown(self, bound: Bound) -> str:
        """Return how a value is written."""
        return self._speller.shown(bound)

    def nodes(self, ids: Sequence[EntityId]) -> list[Node]:
        """Return nodes of the graph."""
        return self._speller.store.nodes(ids)

    # Writing

    def _table(self) -> TableView:
        rows = ((path.start, path.end, len(path.edges), self.line(path), path.cost) for path in self)
        return TableView(self.summary(), ("start", "end", "length", "path", "cost"), rows)

    def _node(self, id: EntityId) -> str:
        """Return how a node is written: by its id, after its name unless the id ends with that."""
        shown = self._speller.names.shown(id)
        if id not in self._names:
            self._read_names([id])
        name = self._names[id]
        ends_so = normalize_name(name) in (normalize_name(id), normalize_name(re.split("[:/#]", id)[-1]))
        return shown if ends_so else f"{name} {shown}"

    def _read_names(self, ids: Iterable[EntityId]) -> None:
        """Read the names of some nodes, in one call."""
        missing = [id for id in dict.fromkeys(ids) if id not in self._names]
        self._names |= {node.id: on_one_line(node.name) for node in self.nodes(missing)}

    @property
    def columns(self) -> list[str]:
        """Return the names of the variables, those of the start first."""
        start, end = self.query.start.variable.name, self.query.end.variable.name
        middle = [name for name in self._via_bound if name not in (start, end)]
        columns = [start, *self._start_bound, *middle, end, *self._end_bound]
        return list(dict.fromkeys([*columns, *(["cost"] if self.query.cost is not None else [])]))

    def _table_rows(self, path: FoundPath) -> Iterator[dict[str, str]]:
        """Yield a row for each edge; bindings of the start's pattern stand in the first, those of the end's in the
        last."""
        start, end = self.query.start.variable.name, self.query.end.variable.name
        last = len(path.edges) - 1
        if last < 0:
            yield {start: self._node(path.start), end: self._node(path.start)} | self._joined(path, 0, 0)
        for number, edge in enumerate(path.edges):
            row = {name: self.shown(bound) for name, bound in edge.bindings.items()}
            row |= {start: self._node(edge.start), end: self._node(edge.end)}
            yield row | self._joined(path, number, last)

    def _joined(self, path: FoundPath, number: int, last: int) -> dict[str, str]:
        names = (self._start_bound if number == 0 else []) + (self._end_bound if number == last else [])
        row = {name: self.shown(path.bindings[name]) for name in names if name in path.bindings}
        if path.cost is not None and number == last:
            row["cost"] = f"{path.cost:g}"
        return row

    def table(self) -> str:
        """Return the paths as a table: a row for each edge, and an empty row between paths.

        Source: Stardog's documentation, "Path Queries".
        """
        columns = self.columns
        rows: list[dict[str, str]] = []
        self._read_names(node for path in self for node in path.nodes)
        for number, path in enumerate(self):
            rows += [{}] if number else []
            rows += self._table_rows(path)
        widths = [max(len(name), *(len(row.get(name, "")) for row in rows), 0) for name in columns]
        rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
        heads = []
        for name, width in zip(columns, widths, strict=True):
            left = (width + 2 - len(name)) // 2
            heads.append(" " * left + name + " " * (width + 2 - len(name) - left))
        lines = [rule, "|" + "|".join(heads) + "|", rule]
        for row in rows:
            cells = [f" {row.get(name, ''):<{width}} " for name, width in zip(columns, widths, strict=True)]
            lines.append("|" + "|".join(cells) + "|")
        return "\n".join([*lines, *([rule] if rows else []), "", self.summary()])

    def summary(self) -> str:
        """Return the number of paths and the time in words, and whether there may be more."""
        count = f"{len(self):,} path" + ("" if len(self) == 1 else "s")
        minutes, seconds = divmod(self.seconds, 60)
        hours, minutes = divmod(int(minutes), 60)
        more = "; a limit was reached, so there may be more" if self.truncated else ""
        if not len(self) and self._against():
            more += "; paths exist if edges are walked against their direction, too: write UNDIRECTED"
        return f"Query returned {count} in {hours:02}:{minutes:02}:{seconds:06.3f}{more}"

    def text(self) -> str:
        """Return one line for each path: `(:Alice)-[p=:knows]->(:Bob)`."""
        self._read_names(node for path in self for node in path.nodes)
        return "\n\n".join([*(self.line(path) for path in self), self.summary()])

    def line(self, path: FoundPath) -> str:
        """Return a path in one line."""
        line = f"({self._node(path.start)})"
        for edge in path.edges:
            back = len(edge.inverse) == 1 and edge.inverse[0]
            inside = ", ".join(f"{name}={self.shown(bound)}" for name, bound in edge.bindings.items())
            if not inside:
                signs = ("" if back or not inverse else "^" for inverse in edge.inverse)
                relations = (self._speller.names.shown(triple.relation) for triple in edge.triples)
                inside = "/".join(sign + relation for sign, relation in zip(signs, relations, strict=True))
            arrow = f"<-[{inside}]-" if back else f"-[{inside}]-" if edge.undirected else f"-[{inside}]->"
            line += f"{arrow}({self._node(edge.end)})"
        return line if path.cost is None else f"{line}  cost {path.cost:g}"

    def as_json(self) -> dict[str, Any]:
        """Return what JSON can hold: every path with its edges, and which edge of the graph each is."""
        return {"columns": self.columns, "paths": [self._path_json(path) for path in self], "truncated": self.truncated}

    def json(self) -> str:
        """Return `as_json` as text."""
        return json.dumps(self.as_json(), ensure_ascii=False, indent=2)

    def _derivation_json(self, triple: Triple) -> dict[str, Any]:
        derivation = self.derivation(triple)
        return {} if derivation is None else {"inferred": _derived(derivation)}

    def _path_json(self, path: FoundPath) -> dict[str, Any]:
        found: dict[str, Any] = {"start": path.start, "end": path.end, "length": len(path.edges)}
        if path.cost is not None:
            found["cost"] = path.cost
        found |= _bindings_json(path.bindings)
        found["edges"] = [
            {
                "start": edge.start,
                "end": edge.end,
                **_bindings_json(edge.bindings),
                "triples": [
                    {
                        "head": triple.head,
                        "relation": triple.relation,
                        "tail": triple.tail,
                        "edge": triple.edge,
                        "inverse": inverse,
                        **({"undirected": True} if triple.undirected else {}),
                        **({"properties": dict(triple.properties)} if triple.properties else {}),
                        **self._derivation_json(triple),
                    }
                    for triple, inverse in zip(edge.triples, edge.inverse, strict=True)
                ],
            }
            for edge in path.edges
        ]
        return found


def _derived(derivation: Derivation) -> dict[str, Any]:
    """Return the rule and its premises."""
    premises = [[each.head, each.relation, each.tail, each.edge] for each in derivation.premises]
    return {"rule": derivation.rule, "premises": premises}


def _bindings_json(bindings: Mapping[str, Bound]) -> dict[str, Any]:
    """Return the values of variables; empty without variables."""
    return {"bindings": {name: _dump_bound(bound) for name, bound in bindings.items()}} if bindings else {}


def _dump_bound(bound: Bound) -> dict[str, Any]:
    return {"kind": bound.kind, "value": bound.value} | ({"datatype": bound.datatype} if bound.datatype else {})
