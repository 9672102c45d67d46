"""RDF files as a columnar graph, and any columnar graph as RDF.

| file                    | format                                        |
|-------------------------|-----------------------------------------------|
| `.nt`, `.nq`            | N-Triples, N-Quads                            |
| `.ttl`, `.trig`         | Turtle, TriG                                  |
| `.rdf`, `.owl`, `.xml`  | RDF/XML                                       |

Each may be compressed as `.gz`, `.xz` or `.zst`. How RDF is read:

- IRIs are node ids. Blank nodes are nodes `_:b1`, `_:b2`, … in order of appearance; in N-Triples and N-Quads they keep
  the labels of the file.
- A triple between two nodes is an edge. Its relation is labelled `dbo:birthPlace`: by a prefix of the file, by one
  that is well known, or by one made from the namespace. `source["prefixes"]` undoes it. An IRI that no prefix fits
  stays whole.
- `rdf:type` is the node's type: the local name of the first class in the file; `source["types"]` undoes it. Further
  types are edges `rdf:type`. `owl:Thing` and its like are left out.
- `rdfs:label`, `skos:prefLabel` or `schema:name` is the name: English, else untagged, else another language. A node
  without one is named after the end of its IRI.
- A literal is a property `dbo:populationTotal`: int, float, bool, or text; `xsd:gYear` is an int and `xsd:date` a date.
  Of several values the property holds the first of the best language, and a second property, `dbo:populationTotal[]`,
  holds all of them in file order as Turtle writes them: `"Paris"@en, "Parigi"@it`. It is there too where a value has
  another language or datatype than most of that property; `source["literals"]` says what most have. A property whose
  values are of several kinds is text throughout.
- A statement about a triple (RDF-star, RDF 1.2, or `rdf:subject` with `rdf:predicate` and `rdf:object`) gives that
  edge its properties, and several give parallel edges. A statement about a triple that is not in the file stays nodes
  and edges if it is in the older form; in the newer forms it cannot, and `source["left_out"]` counts it.
- The name of a graph in N-Quads or TriG becomes the property `graph` of its edges. A triple in two graphs is two edges.
  Properties and types of nodes are those of all graphs together.
"""

from __future__ import annotations

import functools
import itertools
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from byokg.errors import ImportFailed
from byokg.graph.columnar import ColumnarGraph
from byokg.graph.delimited import TextFile, uncompressed
from byokg.graph.iris import (
    EDGE,
    GENERIC_TYPES,
    NAME_PREDICATES,
    RDF_OBJECT,
    RDF_PREDICATE,
    RDF_REIFIES,
    RDF_SUBJECT,
    RDF_TYPE,
    RDFS_LABEL,
    XSD,
    Prefixes,
    fallback_name,
    local_name,
    node_iri,
    term_iri,
)
from byokg.graph.literals import ALL_VALUES, EXACT_TYPES, Literal, language_rank, listed, of_value, preferred
from byokg.graph.oxigraph_engine import import_pyoxigraph
from byokg.graph.store import Direction
from byokg.types import EntityId, Node, Properties, Value

FORMATS = {
    ".nt": "N_TRIPLES",
    ".nq": "N_QUADS",
    ".ttl": "TURTLE",
    ".trig": "TRIG",
    ".rdf": "RDF_XML",
    ".owl": "RDF_XML",
    ".xml": "RDF_XML",
}
"""Ending of a file's name to pyoxigraph's name for its format."""

GRAPH = "graph"
"""Property of an edge that holds the name of the graph it is in."""

_LABELLED = ("N_TRIPLES", "N_QUADS")
"""Formats in which every blank node has a label."""
_CHUNK = 10_000
_CACHED = 1 << 18
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EXACT = 1 << 53
"""Up to here a float holds every whole number."""


def is_rdf(path: str | Path) -> bool:
    """Tell from its name whether a file is RDF, compressed or not."""
    return _format(Path(path)) is not None


def import_rdf(path: str | Path) -> ColumnarGraph:
    """Read an RDF file into memory, as described at the top of this module.

    Raises:
        ImportFailed: the file is not RDF by its name, is damaged, or has a syntax error; names the line where known.
        MissingExtra: pyoxigraph is not installed.
    """
    document = read_rdf(path)
    reading = _Reading()
    for quad in document.quads():
        reading.add(quad)
    return reading.graph(str(path), document.prefixes, TextFile(Path(path)).description())


# Files


class Document:
    """An RDF file being read; `prefixes` are those declared so far, so all of them once the quads have been read."""

    def __init__(self, path: Path, format: str) -> None:
        self._path = path
        self._format = format
        self.prefixes: dict[str, str] = {}

    def quads(self) -> Iterator[Any]:
        """Yield pyoxigraph's quads, blank nodes relabelled so that the same file gives the same labels."""
        pyoxigraph = import_pyoxigraph("reading RDF")
        labelled = self._format in _LABELLED
        relabel = _Relabelling(pyoxigraph)
        # Relative IRIs are resolved against the file's name alone: where it lies must not show in ids.
        base = None if labelled else f"file:///{quote(self._path.name)}"
        file = TextFile(self._path)
        with file.reading(), file.open() as stream:
            parser = pyoxigraph.parse(stream, getattr(pyoxigraph.RdfFormat, self._format), base_iri=base)
            while True:
                try:
                    quad = next(parser, None)
                except SyntaxError as error:
                    raise ImportFailed(self._path, error.lineno, f"{error.msg}; correct the file") from error
                if quad is None:
                    break
                yield quad if labelled else relabel.quad(quad)
            self.prefixes = dict(parser.prefixes)


def read_rdf(path: str | Path) -> Document:
    """Get ready to read an RDF file. Raises `ImportFailed` when its name does not tell a format, or it is missing."""
    path = Path(path)
    format = _format(path)
    if format is None:
        endings = ", ".join(FORMATS)
        reason = f"the name does not tell the RDF format; end it in one of {endings}, and then .gz, .xz or .zst"
        raise ImportFailed(path, None, reason)
    if not path.is_file():
        raise ImportFailed(path, None, "no such file")
    return Document(path, format)


def _format(path: Path) -> str | None:
    return FORMATS.get(uncompressed(path).suffix.lower())


class _Relabelling:
    """Gives blank nodes the labels b1, b2, …: the parser's own differ from run to run where the file has none."""

    def __init__(self, pyoxigraph: Any) -> None:
        self._pyoxigraph = pyoxigraph
        self._changed = (pyoxigraph.BlankNode, pyoxigraph.Triple)
        self._new: dict[str, Any] = {}

    def quad(self, quad: Any) -> Any:
        subject, predicate, end, graph = quad
        if isinstance(subject, self._changed) or isinstance(end, self._changed) or isinstance(graph, self._changed):
            return self._pyoxigraph.Quad(self._term(subject), predicate, self._term(end), self._term(graph))
        return quad

    def _term(self, term: Any) -> Any:
        if isinstance(term, self._pyoxigraph.BlankNode):
            if term.value not in self._new:
                self._new[term.value] = self._pyoxigraph.BlankNode(f"b{len(self._new) + 1}")
            return self._new[term.value]
        if isinstance(term, self._pyoxigraph.Triple):
            return self._pyoxigraph.Triple(self._term(term.subject), term.predicate, self._term(term.object))
        return term


# From RDF to columns


class _Statement(NamedTuple):
    """A statement about a triple: node numbers and the relation's number, -1 where a part is missing."""

    head: int = -1
    relation: int = -1
    tail: int = -1


class _Reading:
    """What has been read of a file: nodes and predicates numbered in order of appearance."""

    def __init__(self) -> None:
        pyoxigraph = import_pyoxigraph("reading RDF")
        self._named, self._literal = pyoxigraph.NamedNode, pyoxigraph.Literal
        self._triple, self._default = pyoxigraph.Triple, pyoxigraph.DefaultGraph
        self._nodes: dict[str, int] = {}
        self._predicates: dict[str, int] = {}
        self._graphs: dict[str, int] = {"": 0}
        self._edges = array("q")  # head, predicate, tail, graph, one edge after the other
        self._literals: dict[str, dict[int, list[Literal]]] = {}
        self._types: dict[int, list[str]] = {}
        self._statements: dict[int, _Statement] = {}
        self._about: set[int] = set()
        self._unasserted = 0

    def add(self, quad: Any) -> None:
        """Take in one quad."""
        predicate, end = quad.predicate.value, quad.object
        head = self._node(self._id(quad.subject))
        if isinstance(end, self._literal):
            literal = Literal(end.value, end.datatype.value, (end.language or "").lower())
            values = self._literals.setdefault(predicate, {}).setdefault(head, [])
            if literal not in values:
                values.append(literal)
        elif isinstance(end, self._triple):
            if predicate == RDF_REIFIES:
                self._statements[head] = self._quoted(end)
                self._about.add(head)
            else:
                self._unasserted += 1
        elif predicate == RDF_TYPE and isinstance(end, self._named):
            classes = self._types.setdefault(head, [])
            if end.value not in classes:
                classes.append(end.value)
        else:
            tail = self._node(self._id(end))
            if predicate in (RDF_SUBJECT, RDF_OBJECT):
                part = {"head" if predicate == RDF_SUBJECT else "tail": tail}
                self._statements[head] = self._statements.get(head, _Statement())._replace(**part)
            elif predicate == RDF_PREDICATE:
                relation = self._predicate(end.value)
                self._statements[head] = self._statements.get(head, _Statement())._replace(relation=relation)
            graph = quad.graph_name
            name = "" if isinstance(graph, self._default) else self._id(graph)
            code = self._graphs.setdefault(name, len(self._graphs))
            self._edges.extend((head, self._predicate(predicate), tail, code))

    def _quoted(self, triple: Any) -> _Statement:
        if isinstance(triple.object, self._literal | self._triple):
            return _Statement()
        head, tail = (self._node(self._id(term)) for term in (triple.subject, triple.object))
        return _Statement(head, self._predicate(triple.predicate.value), tail)

    def _id(self, term: Any) -> str:
        value: str = term.value
        return value if isinstance(term, self._named) else f"_:{value}"

    def _node(self, entity: str) -> int:
        return self._nodes.setdefault(entity, len(self._nodes))

    def _predicate(self, iri: str) -> int:
        return self._predicates.setdefault(iri, len(self._predicates))

    def graph(self, name: str, declared: Mapping[str, str], file: Mapping[str, Any]) -> ColumnarGraph:
        """Put the columns together."""
        codes = np.frombuffer(self._edges, np.int64).reshape(-1, 4) if self._edges else np.empty((0, 4), np.int64)
        codes, repeated = _distinct(codes)
        main, further = self._split_types()
        if further:
            relation = self._predicate(RDF_TYPE)
            added = [(head, relation, self._node(iri), 0) for head, iri in further]
            codes = np.concatenate((codes, np.array(added, np.int64)))
        predicates = list(self._predicates)
        prefixes = Prefixes().with_declared(declared).covering([*predicates, *self._literals])
        codes, edge_rows, absorbed = self._absorb(codes, predicates, prefixes)

        used = np.zeros(len(self._nodes), np.bool_)
        used[codes[:, 0]] = used[codes[:, 2]] = True
        used[[node for node in self._types if node not in absorbed]] = True
        for values in self._literals.values():
            used[[node for node in values if node not in absorbed]] = True
        kept = np.flatnonzero(used)
        renumber = np.full(len(used), -1, np.int64)
        renumber[kept] = np.arange(len(kept))
        entities = list(self._nodes)
        ids = [entities[node] for node in kept.tolist()]
        position = {node: row for row, node in enumerate(kept.tolist())}
        literals = {
            key: {position[node]: values for node, values in by_node.items() if node in position}
            for key, by_node in self._literals.items()
        }
        names, named_by = _names(ids, literals)
        columns, kinds = _literal_columns(literals, len(ids), prefixes, named_by)
        labels, types = _type_labels([main.get(node) for node in kept.tolist()], prefixes)

        relations = list(dict.fromkeys(codes[:, 1].tolist()))
        place = np.zeros(len(predicates), np.int64)
        place[relations] = np.arange(len(relations))
        edge_columns = _edge_columns(codes[:, 3], list(self._graphs), edge_rows)
        source: dict[str, Any] = {"kind": "rdf", "files": [dict(file)]}
        source["prefixes"] = dict(prefixes.namespaces)
        source["types"] = types
        source["literals"] = kinds
        source["dropped_duplicates"] = repeated
        source["left_out"] = self._unasserted
        return ColumnarGraph.assemble(
            name=name,
            ids=pa.array(ids, pa.large_string()),
            names=pa.array(names, pa.large_string()),
            types=pa.array(labels, pa.large_string()) if any(labels) else None,
            node_properties=columns,
            relations=[prefixes.label(predicates[number]) for number in relations],
            head=renumber[codes[:, 0]],
            relation=place[codes[:, 1]],
            tail=renumber[codes[:, 2]],
            edge_properties=edge_columns,
            drop_duplicates=False,
            source=source,
        )

    def _split_types(self) -> tuple[dict[int, str], list[tuple[int, str]]]:
        """Return each node's class, and (node, class) for those that it has besides."""
        main, further = {}, []
        for node, classes in self._types.items():
            said = [iri for iri in classes if iri not in GENERIC_TYPES]
            if said:
                main[node] = said[0]
            further += [(node, iri) for iri in said[1:]]
        return main, further

    def _absorb(
        self, codes: np.ndarray[Any, Any], predicates: Sequence[str], prefixes: Prefixes
    ) -> tuple[np.ndarray[Any, Any], list[Properties], set[int]]:
        """Turn statements about triples into properties of edges.

        Returns:
            Edges, what the statements say about each, and which nodes were statements and are nodes no longer.
        """
        if not self._statements:
            return codes, [{}] * 0, set()
        rows: dict[tuple[int, int, int], int] = {}
        for row, (head, relation, tail) in enumerate(codes[:, :3].tolist()):
            rows.setdefault((head, relation, tail), row)
        about: dict[int, list[int]] = {}
        for node, statement in self._statements.items():
            triple = (statement.head, statement.relation, statement.tail)
            if triple in rows:
                about.setdefault(rows[triple], []).append(node)
            elif node in self._about:
                self._unasserted += 1
        absorbed = {node for nodes in about.values() for node in nodes}
        said: dict[int, dict[str, list[Literal]]] = {node: {} for node in absorbed}
        for key, by_node in self._literals.items():
            for node in by_node.keys() & absorbed:
                said[node][prefixes.label(key)] = by_node[node]
        entities = list(self._nodes)
        parts = {self._predicates[iri] for iri in (RDF_SUBJECT, RDF_PREDICATE, RDF_OBJECT) if iri in self._predicates}
        kept = np.ones(len(codes), np.bool_)
        is_statement = np.zeros(len(self._nodes), np.bool_)
        is_statement[list(absorbed)] = True
        for row in np.flatnonzero(is_statement[codes[:, 0]]).tolist():
            head, relation, tail, _ = codes[row].tolist()
            kept[row] = False
            if relation not in parts and predicates[relation] != RDF_TYPE:
                said[head].setdefault(prefixes.label(predicates[relation]), []).append(Literal(entities[tail]))
        properties: list[Properties] = []
        order = []
        for row in np.flatnonzero(kept).tolist():
            for node in about.get(row, [-1]):
                order.append(row)
                properties.append(_edge_properties(said[node]) if node >= 0 else {})
        return codes[order], properties, absorbed - set(codes[order][:, 2].tolist())


def _distinct(codes: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], int]:
    """Return rows without repetitions, in order of first appearance, and how many repetitions there were."""
    if len(codes) == 0:
        return codes, 0
    order = np.lexsort(codes.T[::-1])
    fresh = np.ones(len(codes), np.bool_)
    fresh[1:] = (codes[order[1:]] != codes[order[:-1]]).any(axis=1)
    return codes[np.sort(order[fresh])], int((~fresh).sum())


def _edge_properties(said: Mapping[str, Sequence[Literal]]) -> Properties:
    properties: dict[str, Value] = {}
    for key, values in said.items():
        best = preferred(values)
        properties[key] = best.value
        if len(values) > 1 or not best.plain:
            properties[key + ALL_VALUES] = listed(values)
    return properties


def _names(ids: Sequence[str], literals: Mapping[str, Mapping[int, Sequence[Literal]]]) -> tuple[list[str], list[str]]:
    """Return the name of each node, and the predicate it came from, empty where there was none."""
    names, named_by, best = [], [], [9] * len(ids)
    for entity in ids:
        names.append(entity if entity.startswith("_:") else fallback_name(node_iri(entity)))
        named_by.append("")
    for predicate in NAME_PREDICATES:
        for node, values in literals.get(predicate, {}).items():
            literal = preferred(values)
            if language_rank(literal) < best[node] and literal.text:
                names[node], named_by[node], best[node] = literal.text, predicate, language_rank(literal)
    return names, named_by


def _literal_columns(
    literals: Mapping[str, Mapping[int, Sequence[Literal]]], count: int, prefixes: Prefixes, named_by: Sequence[str]
) -> tuple[dict[str, pa.Array], dict[str, str]]:
    """Return a column for each predicate, one for those of its nodes that have more to say, and the usual kinds."""
    columns, kinds = {}, {}
    for predicate, by_node in literals.items():
        if not by_node:
            continue
        key = prefixes.label(predicate)
        counts = Counter(_kind(values[0]) for values in by_node.values() if len(values) == 1)
        usual = counts.most_common(1)[0][0] if counts else _kind(next(iter(by_node.values()))[0])
        best = {node: preferred(values) for node, values in by_node.items()}
        lists = {
            node: listed(values) for node, values in by_node.items() if len(values) > 1 or _kind(values[0]) != usual
        }
        shown = {node: literal for node, literal in best.items() if not (predicate == RDFS_LABEL == named_by[node])}
        column = _column(shown, count) if shown else None
        if column is not None:
            columns[key] = column
        if lists:
            columns[key + ALL_VALUES] = _spread(lists, count, pa.large_string())
        if usual != (XSD + "string", ""):
            kinds[key] = f"@{usual[1]}" if usual[1] else usual[0]
    return columns, kinds


def _kind(literal: Literal) -> tuple[str, str]:
    return literal.datatype, literal.language


def _column(literals: Mapping[int, Literal], count: int) -> pa.Array:
    """Store values as what all of them are, as text where they differ."""
    found = {type(literal.value) for literal in literals.values()}
    if found == {bool}:
        kind = pa.bool_()
    elif found == {int}:
        kind = pa.int64()
    elif found == {float} or (found == {int, float} and _fit_floats(literals.values())):
        kind = pa.float64()
    elif all(literal.datatype == XSD + "date" and _is_date(literal.text) for literal in literals.values()):
        kind = pa.date32()
    else:
        kind = pa.large_string()
    if kind == pa.date32():
        return _spread({node: date.fromisoformat(literal.text) for node, literal in literals.items()}, count, kind)
    if kind == pa.large_string():
        return _spread({node: literal.text for node, literal in literals.items()}, count, kind)
    return _spread({node: literal.value for node, literal in literals.items()}, count, kind)


def _fit_floats(literals: Iterable[Literal]) -> bool:
    values = [literal.value for literal in literals]
    return all(not isinstance(value, int) or abs(value) <= _EXACT for value in values)


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _spread(values: Mapping[int, Any], count: int, kind: pa.DataType) -> pa.Array:
    """Return a column of `count` values, null where there is none."""
    row = np.full(count, -1, np.int64)
    row[list(values)] = np.arange(len(values))
    return pa.array(list(values.values()), kind).take(pa.array(row, mask=row < 0))


def _type_labels(classes: Sequence[str | None], prefixes: Prefixes) -> tuple[list[str], dict[str, str]]:
    """Return the type of each node, and type to class; the second class with the same local name gets its prefix."""
    labels: dict[str, str] = {}
    types: dict[str, str] = {}
    for iri in dict.fromkeys(iri for iri in classes if iri is not None):
        label = local_name(iri)
        if label in types:
            label = prefixes.label(iri)
        labels[iri] = label
        types[label] = iri
    return [labels[iri] if iri is not None else "" for iri in classes], types


def _edge_columns(
    graphs: np.ndarray[Any, Any], names: Sequence[str], rows: Sequence[Properties]
) -> dict[str, pa.Array]:
    """Return columns for what statements say about edges, and for the graphs they are in."""
    columns: dict[str, pa.Array] = {}
    for key in dict.fromkeys(key for row in rows for key in row):
        values = {number: row[key] for number, row in enumerate(rows) if key in row}
        kinds = {type(value) for value in values.values()}
        literals = {number: of_value(value) for number, value in values.items()}
        if len(kinds) > 1 and kinds != {int, float}:
            literals = {number: Literal(literal.text) for number, literal in literals.items()}
        columns[key] = _column(literals, len(rows))
    if len(names) > 1:
        codes = pa.array(graphs, mask=graphs == 0)
        columns[GRAPH] = pa.array(names, pa.large_string()).take(codes)
    return columns


# From columns to RDF


def graph_prefixes(graph: ColumnarGraph) -> Prefixes:
    """Return the prefixes behind the labels of a graph that was RDF; the usual ones for any other."""
    return Prefixes(graph.source["prefixes"]) if graph.source.get("kind") == "rdf" else Prefixes()


def graph_quads(graph: ColumnarGraph) -> Iterator[Any]:
    """Write a graph as RDF, quad by quad, all in the default graph.

    What was RDF gets its own IRIs, languages and datatypes back, and nodes that had no name the end of their IRI as
    `rdfs:label`. Otherwise nodes are `node:New%20York`, relations,
    properties and types `kg:directed%20by`, and names `rdfs:label`. An edge with properties, and each of several
    parallel ones, is described besides by `?e rdf:subject ?s ; rdf:predicate ?p ; rdf:object ?o ; kg:since 1990`.
    """
    pyoxigraph = import_pyoxigraph("writing RDF")
    quad, named, iris = pyoxigraph.Quad, pyoxigraph.NamedNode, _Iris(graph)
    name = functools.cache(named)

    @functools.lru_cache(_CACHED)
    def entity_of(entity: str) -> Any:
        return named(node_iri(entity))

    def literal(value: Literal) -> Any:
        if value.language:
            return pyoxigraph.Literal(value.text, language=value.language)
        return pyoxigraph.Literal(value.text, datatype=name(value.datatype))

    parts = [named(iri) for iri in (RDF_SUBJECT, RDF_PREDICATE, RDF_OBJECT)]
    statement_count = 0
    for ids in _chunks(graph.entities()):
        entities = [entity_of(entity) for entity in ids]
        for entity, node in zip(entities, graph.nodes(ids), strict=True):
            for predicate, value in iris.facts(node):
                yield quad(entity, name(predicate), literal(value))
            if node.type:
                yield quad(entity, name(RDF_TYPE), name(iris.type(node.type)))
        batch = graph.edges(graph.numbers(ids), Direction.OUT)
        labels = [name(iris.term(label)) for label in graph.relations]
        tails = [entity_of(entity) for entity in graph.ids(batch.tail)]
        triples = list(zip(batch.origin.tolist(), batch.relation.tolist(), batch.tail.tolist(), strict=True))
        repeated = Counter(triples)
        for row, (triple, properties) in enumerate(zip(triples, graph.edge_properties(batch.edge), strict=True)):
            ends = (entities[triple[0]], labels[triple[1]], tails[row])
            yield quad(*ends)
            if properties or repeated[triple] > 1:
                statement_count += 1
                statement = named(f"{EDGE}{statement_count}")
                for part, end in zip(parts, ends, strict=True):
                    yield quad(statement, part, end)
                for predicate, value in iris.values(properties):
                    yield quad(statement, name(predicate), literal(value))


class _Iris:
    """How the labels and values of one graph are written."""

    def __init__(self, graph: ColumnarGraph) -> None:
        self._rdf = graph.source.get("kind") == "rdf"
        self._prefixes = graph_prefixes(graph)
        self._types: Mapping[str, str] = graph.source.get("types", {}) if self._rdf else {}
        self._kinds: Mapping[str, str] = graph.source.get("literals", {}) if self._rdf else {}
        self._names = [self._prefixes.label(iri) for iri in NAME_PREDICATES]
        self.term = functools.cache(self._prefixes.expand if self._rdf else term_iri)

    def type(self, label: str) -> str:
        """Return the class of a type."""
        return self._types.get(label) or self.term(label)

    def facts(self, node: Node) -> Iterator[tuple[str, Literal]]:
        """Yield (predicate, literal) for a node's name and properties."""
        properties = dict(node.properties)
        if not self._rdf:
            yield RDFS_LABEL, Literal(node.name)
        elif self._names[0] + ALL_VALUES not in properties and node.name not in (
            node.id,
            *(properties.get(key) for key in self._names),
        ):
            yield RDFS_LABEL, self._of_kind(self._names[0], node.name)
        yield from self.values(properties)

    def values(self, properties: Properties) -> Iterator[tuple[str, Literal]]:
        """Yield (predicate, literal) for properties."""
        for key, value in properties.items():
            if not self._rdf:
                yield self.term(key), of_value(value)
            elif key.endswith(ALL_VALUES):
                predicate = self.term(key.removesuffix(ALL_VALUES))
                for literal in parse_list(str(value)):
                    yield predicate, literal
            elif key + ALL_VALUES not in properties:
                yield self.term(key), self._of_kind(key, value)

    def _of_kind(self, key: str, value: Value) -> Literal:
        kind = self._kinds.get(key)
        if kind is None:
            return of_value(value)
        if kind.startswith("@"):
            return Literal(str(value), language=kind[1:])
        if isinstance(value, float) and kind in EXACT_TYPES:
            value = format(Decimal(repr(value)), "f" if kind == XSD + "decimal" else ".0f")
        return Literal(of_value(value).text, kind)


def parse_list(text: str) -> list[Literal]:
    """Read what `literals.listed` wrote."""
    pyoxigraph = import_pyoxigraph("writing RDF")
    found = pyoxigraph.parse(f"<x:s> <x:p> {text} .", pyoxigraph.RdfFormat.TURTLE)
    literals = (quad.object for quad in found)
    return [Literal(literal.value, literal.datatype.value, (literal.language or "").lower()) for literal in literals]


def _chunks(ids: Iterable[EntityId]) -> Iterator[list[EntityId]]:
    waiting = iter(ids)
    while chunk := list(itertools.islice(waiting, _CHUNK)):
        yield chunk
