"""RDF files as columnar graphs.

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
- `rdf:type` gives a node its types: the local names of the classes, in the order of the file; `source["types"]` undoes
  it. `owl:Thing` and its like are left out. A node that has none and is `wdt:P31` (an instance of) something, as in
  Wikidata, has the names of these classes as its types; `wdt:P31` stays an edge. If both give one class, its name is
  the type. A class is a node only if another triple mentions it; `rdfs:subClassOf` is an edge between classes.
- `rdfs:label`, `skos:prefLabel` or `schema:name` is the name: of the chosen language, else untagged, else another.
  A node without one is named after the end of its IRI. Entity linking knows the other labels, and aliases, as well.
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

Of N-Triples of any size, edges are passed on as they are read, and data of nodes is kept in files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from byokg.arrays import Int64
from byokg.files import TextFile, uncompressed
from byokg.graph.columnar.external_sort import RowsFile
from byokg.graph.columnar.ids import Interner
from byokg.graph.columnar.node_types import NO_FURTHER, FurtherTypes
from byokg.graph.columnar.schema import TEXT, NodeColumns, place
from byokg.graph.columnar.writer import EdgeBlock, ReadWhole, ahead
from byokg.graph.rdf.files import Documents
from byokg.graph.rdf.literals import ENGLISH, Literal, LiteralStore, column_of, listed, of_value, preferred
from byokg.graph.rdf.ntriples import START, BadLines, FilePosition, QuadBlock
from byokg.graph.rdf.terms import (
    GENERIC_TYPES,
    INSTANCE_OF,
    RDF_OBJECT,
    RDF_PREDICATE,
    RDF_SUBJECT,
    RDF_TYPE,
    Prefixes,
    local_name,
)
from byokg.graph.sorted_ids import changes, contains, distinct, distinct_rows
from byokg.graph.store import ALL_VALUES
from byokg.index.vocabulary import positions
from byokg.types import Properties, Value

_TOGETHER = 1 << 23
"""Types of nodes, and nodes with types, that are looked at together."""


class NodeClasses:
    """Rows of nodes and classes, as they come."""

    def __init__(self, folder: Path | None = None, known: Mapping[str, Any] | None = None) -> None:
        """Begin in memory, or in the files of a folder after as many rows as `state` gave."""
        known, place = known or {}, (lambda name: None) if folder is None else folder.joinpath
        self._interner = Interner(place("classes"), known.get("classes", 0))
        self._types = RowsFile(2, place("types.scratch"), known.get("types", 0))
        self._instances = RowsFile(2, place("instances.scratch"), known.get("instances", 0))

    def state(self) -> dict[str, int]:
        """Return the numbers of rows."""
        return {"classes": len(self._interner), "types": len(self._types), "instances": len(self._instances)}

    def add(self, nodes: npt.NDArray[np.int32], classes: pa.DictionaryArray, rows: Int64) -> None:
        """Add the numbers of nodes, and their classes in some rows of a column."""
        numbers = self._interner.encode(classes.dictionary, classes.indices.to_numpy()[rows])
        self._types.append(np.column_stack((nodes, numbers)))

    def add_instances(self, nodes: npt.NDArray[np.int32], classes: npt.NDArray[np.int32]) -> None:
        """Add nodes and their classes, numbered as nodes, according to Wikidata's `instance of`."""
        self._instances.append(np.column_stack((nodes, classes)))

    def typed(self) -> npt.NDArray[np.int32]:
        """Return the nodes with a class."""
        return self._types.rows()[:, 0]

    def _classed(self) -> Iterator[tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]]:
        """Yield (node, class) without generic classes and repetitions, by node, and which is each node's first.

        Classes of one node come in the order of the file, some nodes at a time.
        """
        rows = self._types.rows()
        generic = pc.is_in(self._interner.strings, pa.array(sorted(GENERIC_TYPES), TEXT))
        telling = ~generic.to_numpy(zero_copy_only=False)
        parts = [rows[start : start + _TOGETHER] for start in range(0, len(rows), _TOGETHER)]
        stop = max((int(part[:, 0].max()) + 1 for part in parts), default=0)
        bounds = np.linspace(0, stop, len(parts) + 1).astype(np.int64).tolist()
        for low, high in pairwise(bounds):
            here = ((part, (part[:, 0] >= low) & (part[:, 0] < high) & telling[part[:, 1]]) for part in parts)
            pairs = np.concatenate([part[some] for part, some in here])
            none = np.zeros(len(pairs), np.int64)
            pairs = pairs[distinct_rows(pairs[:, 0], none, pairs[:, 1], none)]
            pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
            yield pairs, changes(pairs[:, 0])

    def _instance_of(self, typed: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
        """Return (node, class) of the nodes without a class that Wikidata says are instances of one, by node.

        Args:
            typed: (N,) whether each node has a class.
        """
        rows = self._instances.rows()
        rows = rows[~typed[rows[:, 0]]]
        none = np.zeros(len(rows), np.int64)
        rows = rows[distinct_rows(rows[:, 0], none, rows[:, 1], none)]
        return rows[np.argsort(rows[:, 0], kind="stable")]

    def _of_nodes(self, nodes: Interner, classes: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return the number of the first class of each node, -1 for none, and (node, class) of all others, by node.

        Nodes that are classes are counted behind the `classes` others.
        """
        first = np.full(len(nodes), -1, np.int32)
        instances, others = self._instances.rows(), [np.empty((0, 2), np.int32)]
        said = np.sort(instances[:, 0].astype(np.int64) << 32 | instances[:, 1])
        for pairs, starts in self._classed():
            if len(pairs) and len(said):  # a class given both ways, as in an exported graph, is one class
                node_of = nodes.find(self._interner.strings)[pairs[:, 1]]
                both = contains(said, pairs[:, 0].astype(np.int64) << 32 | np.maximum(node_of, 0)) & (node_of >= 0)
                pairs[both, 1] = classes + node_of[both]
            first[pairs[starts, 0]] = pairs[starts, 1]
            others.append(pairs[~starts])
        pairs = self._instance_of(first >= 0)
        if len(pairs):
            pairs[:, 1] += classes
            starts = changes(pairs[:, 0])
            first[pairs[starts, 0]] = pairs[starts, 1]
            others.append(pairs[~starts])
        rows = np.concatenate(others)
        return first, rows if len(others) < 3 else rows[np.argsort(rows[:, 0], kind="stable")]

    def types(
        self, nodes: Interner, kept: Int64, names: pa.Array, prefixes: Prefixes
    ) -> tuple[pa.Array | None, FurtherTypes, dict[str, str]]:
        """Return the types of the kept nodes, and type to class; the second class of a local name gets its prefix."""
        iris: list[str] = self._interner.strings.to_pylist()
        class_of, others = self._of_nodes(nodes, len(iris))
        class_of = class_of[kept]
        first = np.full(len(iris) + len(nodes) + 1, -1, np.int32)  # node of each class; the last is of none
        for start in reversed(range(0, len(class_of), _TOGETHER)):
            some = class_of[start : start + _TOGETHER][::-1]
            first[some] = np.arange(start, start + len(some), dtype=np.int32)[::-1]
        found = np.flatnonzero(first >= 0)
        found = found[np.argsort(first[found])]
        never_first = distinct(others[:, 1])
        found = np.concatenate((found, never_first[first[never_first] < 0]))
        labels, types = [], dict[str, str]()
        for one in found.tolist():
            node = one - len(iris)
            if one == len(first) - 1:
                labels.append("")
                continue
            if node < 0:
                iri = iris[one]
                label = local_name(iri)
            else:
                iri, label = nodes.strings[node].as_py(), names[int(np.searchsorted(kept, node))].as_py()
            if types.get(label, iri) != iri:
                label = prefixes.label(iri)
            labels.append(label)
            types[label] = iri
        if not types:
            return None, NO_FURTHER, {}
        first[found] = np.arange(len(found), dtype=np.int32)
        column = pa.DictionaryArray.from_arrays(positions(first[class_of]), pa.array(labels, TEXT))
        others = others[contains(kept, others[:, 0])]
        places = np.searchsorted(kept, others[:, 0]).astype(np.int32)
        return column, FurtherTypes(places, first[others[:, 1]]), types


GRAPH = "graph"
"""Property of an edge that holds the name of the graph it is in."""


class _Statement(NamedTuple):
    """A statement about a triple: node numbers and the relation's number, -1 for a missing part."""

    head: int = -1
    relation: int = -1
    tail: int = -1


class RdfFile:
    """An RDF file, or several as one graph; a `GraphStream`.

    Memory holds numbers: 16 bytes a quad, besides the texts, each once. `streamed.TripleStream` holds less.
    """

    distinct = True

    def __init__(self, *paths: Path, bad: BadLines | None = None) -> None:
        """Set the files; of N-Triples, bad lines may be left out.

        Raises `ImportFailed` when the ending of a name is of no format, or a file is missing.
        """
        self._paths, self._document = paths, Documents(paths, bad)
        self._nodes, self._predicates, self._graphs = Interner(), Interner(), Interner()
        self._graphs.numbers(pa.array([""], TEXT))
        self._quads: list[npt.NDArray[np.int32]] = []
        """(B, 4) head, predicate, tail and graph of edges, in blocks."""
        self._classes = NodeClasses()
        self._literals = LiteralStore(self._document.kinds.pairs)
        self._statements: dict[int, _Statement] = {}
        """Triples that some nodes stand for, in the newer forms."""
        self._unasserted = 0
        self.left_out = 0
        self._kept: Int64 = np.empty(0, np.int64)
        """Which of the nodes are nodes of the graph."""
        self._relations: Int64 = np.empty(0, np.int64)
        """Which of the predicates are relations, in the order of their numbers."""
        self._told_apart = False
        """Whether repetitions have been left out already, and all edges that are left are different ones."""
        self._columns: dict[str, pa.Array] = {}
        """Properties of edges from statements."""
        self._prefixes = Prefixes()
        self._source: dict[str, Any] = {}

    @property
    def language(self) -> str:
        """Return the tag of the language of names, where a node has them in several."""
        return self._literals.language

    @language.setter
    def language(self, tag: str) -> None:
        self._literals.language = tag.lower()

    @property
    def name(self) -> str:
        """Name the file, or the folder of several."""
        return str(self._paths[0] if len(self._paths) == 1 else self._paths[0].parent)

    def blocks(self) -> Iterator[EdgeBlock]:
        """Read the file, and yield its edges. Raises `ImportFailed`."""
        for block, _, _ in ahead(self._document.blocks()):
            self._quads.append(self._take(block))
        self._choose_prefixes()
        absorbed = self._absorb()
        self._drop_nodes(absorbed)
        renumber = np.full(len(self._nodes), -1, np.int32)
        renumber[self._kept] = np.arange(len(self._kept), dtype=np.int32)
        relation_of = np.full(len(self._predicates), -1, np.int32)
        relation_of[self._relations] = np.arange(len(self._relations), dtype=np.int32)
        names = self._graphs.strings if len(self._graphs) > 1 else None
        start = 0
        while self._quads:
            quads = self._quads.pop(0)
            triples = np.column_stack((renumber[quads[:, 0]], relation_of[quads[:, 1]], renumber[quads[:, 2]]))
            stop = start + len(quads)
            columns = {key: column.slice(start, len(quads)) for key, column in self._columns.items()}
            if names is not None:
                graph = quads[:, 3]
                columns[GRAPH] = names.take(pa.array(graph, mask=graph == 0))
            marks = quads[:, 3].astype(np.int64) if names is not None else None
            marks = np.arange(start, stop) if self._told_apart else marks
            batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns)) if columns else None
            yield EdgeBlock(triples, batch, marks)
            start = stop

    def _choose_prefixes(self) -> None:
        iris = [*self._labels(self._predicates), *self._labels(self._literals.predicates)]
        self._prefixes = Prefixes().with_declared(self._document.prefixes).covering(iris)

    def nodes(self) -> NodeColumns:
        """Return the nodes with their names, types and properties."""
        ids = self._nodes.strings
        every = len(self._kept) == len(ids)
        ids = ids if every else ids.take(pa.array(self._kept))
        names, columns, self._source["literals"] = self._literals.columns(ids, self._kept, self._prefixes)
        types, further, self._source["types"] = self._classes.types(self._nodes, self._kept, names, self._prefixes)
        hashes = self._nodes.hashes if every else None
        return NodeColumns(ids, names, types, columns, hashes, self._nodes.set_aside, further)

    def relations(self) -> list[str]:
        """Return the relation labels."""
        iris = self._labels(self._predicates)
        return [self._prefixes.label(iris[number]) for number in self._relations.tolist()]

    def property_types(self) -> Mapping[str, pa.DataType]:
        """Return the edges' properties: those of statements, and the graph."""
        types = {key: column.type for key, column in self._columns.items()}
        return types | {GRAPH: TEXT} if len(self._graphs) > 1 else types

    def source(self) -> dict[str, Any]:
        """Return the entry of the file in a graph's `source`; complete when the nodes have been read."""
        return {
            "kind": "rdf",
            "files": [TextFile(path).description() for path in self._paths],
            "prefixes": dict(self._prefixes.namespaces),
            "types": self._source["types"],
            "literals": self._source["literals"],
            "left_out": self._unasserted,
            **({} if self.language == ENGLISH else {"language": self.language}),
        }

    def _labels(self, interner: Interner) -> list[str]:
        texts: list[str] = interner.strings.to_pylist()
        return texts

    # Numbering

    def _take(self, block: QuadBlock) -> npt.NDArray[np.int32]:
        """Number nodes in order of appearance, subject before object, and keep types and literals.

        Returns:
            (B, 4) head, predicate, tail and graph of the edges.
        """
        rows = np.arange(len(block.kind))
        literal = block.kind >= 0
        mentioned = np.zeros(len(rows), np.bool_) if block.mentioned is None else block.mentioned
        of_type, instance = (_is(block.predicate, iri) for iri in (RDF_TYPE, INSTANCE_OF))
        of_type &= ~literal & ~mentioned & self._mask_iris(block.end)
        linked = ~literal & ~of_type
        heads, tails = self._number(block.subject, block.end, linked)
        edge, typed = linked & ~mentioned, of_type
        # Predicates that only literals or types have are no relations, unless they come to be.
        of_edges = linked.copy()
        of_edges[list(block.statements)] = False
        predicate = np.full(len(rows), -1, np.int32)
        predicate[of_edges] = _encode(self._predicates, block.predicate, rows[of_edges])
        graph = np.zeros(len(rows), np.int32)
        if block.graph is not None:
            graph[edge] = _encode(self._graphs, block.graph, rows[edge])
        quads: npt.NDArray[np.int32] = np.column_stack((heads, predicate, tails, graph))[edge]
        self._classes.add(heads[typed], block.end, rows[typed])
        if (instance := instance & edge).any():
            self._classes.add_instances(heads[instance], tails[instance])
        if literal.any():
            self._literals.add(heads[literal], block.predicate, block.end, block.kind, rows[literal])
        for row in block.statements:
            told = row + 1 < len(rows) and mentioned[row + 1] and (row + 1) not in block.statements
            inner = (int(heads[row + 1]), int(predicate[row + 1]), int(tails[row + 1])) if told else ()
            self._statements[int(heads[row])] = _Statement(*inner)
        self._unasserted += block.lost
        return quads

    @staticmethod
    def _mask_iris(end: pa.DictionaryArray) -> npt.NDArray[np.bool_]:
        """Return a mask of the objects that are IRIs, of those that are no literals."""
        blank = pc.starts_with(end.dictionary, "_:").to_numpy(zero_copy_only=False)
        named: npt.NDArray[np.bool_] = ~blank[end.indices.to_numpy()]
        return named

    def _number(
        self, subject: pa.DictionaryArray, end: pa.DictionaryArray, linked: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return the node number of each subject, and of each object that is a node."""
        rows = np.flatnonzero(linked)
        heads, ends = subject.indices.to_numpy(), end.indices.to_numpy()[rows]
        is_end = np.zeros(len(end.dictionary), np.bool_)
        is_end[ends] = True
        texts = pa.concat_arrays([subject.dictionary, end.dictionary.take(positions(np.flatnonzero(is_end)))])
        tails = len(subject.dictionary) + is_end.cumsum()[ends] - 1
        numbers = self._nodes.find(texts)
        fresh = np.flatnonzero(numbers < 0)
        if len(fresh):
            coded = texts.take(positions(fresh)).dictionary_encode()  # a subject may be an object, too
            code = np.full(len(texts), -1, np.int32)
            code[fresh] = coded.indices.to_numpy()
            met = np.concatenate((code[heads], code[tails]))
            place = np.concatenate((2 * np.arange(len(heads)), 2 * rows + 1))
            met, place = met[met >= 0], place[met >= 0]
            met = met[np.argsort(place, kind="stable")]
            given = np.full(len(coded.dictionary), -1, np.int32)
            given[met] = self._nodes.encode(coded.dictionary, met)
            numbers[fresh] = given[code[fresh]]
        found = np.full(len(heads), -1, np.int32)
        found[rows] = numbers[tails]
        return numbers[heads], found

    # Statements about triples

    def _old_statements(self) -> dict[int, _Statement]:
        """Find nodes with rdf:subject, rdf:predicate and rdf:object, of each the last."""
        parts = self._predicates.find(pa.array([RDF_SUBJECT, RDF_PREDICATE, RDF_OBJECT], TEXT)).tolist()
        found: dict[int, _Statement] = {}
        if max(parts) < 0:
            return found
        for quads in self._quads:
            for head, part, tail, _ in quads[np.isin(quads[:, 1], [part for part in parts if part >= 0])].tolist():
                place = parts.index(part)
                if place == 1:  # a node that may be a predicate, too
                    (tail,) = self._predicates.find(self._nodes.strings.slice(tail, 1)).tolist()
                before = list(found.get(head, _Statement()))
                before[place] = tail
                found[head] = _Statement(*before)
        return found

    def _absorb(self) -> set[int]:
        """Turn statements about triples into properties of edges; return the nodes that were statements."""
        newer = set(self._statements)
        statements = {**self._statements, **self._old_statements()}
        if not statements:
            return set()
        quads = np.concatenate(self._quads)
        rows_kept = distinct_rows(*quads.T)
        self.left_out = len(quads) - len(rows_kept)
        quads = quads[rows_kept]
        wanted = set(statements.values())
        heads = np.array(sorted({statement.head for statement in wanted}))
        rows: dict[_Statement, int] = {}
        for row in np.flatnonzero(np.isin(quads[:, 0], heads)).tolist():
            triple = _Statement(*quads[row, :3].tolist())
            if triple in wanted:
                rows.setdefault(triple, row)
        about: dict[int, list[int]] = {}
        for node, statement in statements.items():
            if statement in rows:
                about.setdefault(rows[statement], []).append(node)
            elif node in newer:
                self._unasserted += 1
        absorbed = {node for nodes in about.values() for node in nodes}
        is_statement = np.zeros(len(self._nodes), np.bool_)
        is_statement[list(absorbed)] = True
        said = self._read_absorbed(quads[is_statement[quads[:, 0]]], absorbed)
        kept = np.flatnonzero(~is_statement[quads[:, 0]])
        copies = np.ones(len(kept), np.int64)
        place = {row: at for at, row in enumerate(kept.tolist()) if row in about}
        for row, at in place.items():
            copies[at] = len(about[row])
        starts = copies.cumsum() - copies
        properties = {
            int(starts[at]) + copy: _edge_properties(said[node])
            for row, at in place.items()
            for copy, node in enumerate(about[row])
        }
        quads = np.repeat(quads[kept], copies, axis=0)
        self._columns, self._quads, self._told_apart = _edge_columns(properties, len(quads)), [quads], True
        return absorbed - set(quads[:, 2].tolist())

    def _read_absorbed(self, quads: npt.NDArray[np.int32], absorbed: set[int]) -> dict[int, dict[str, list[Literal]]]:
        """Return the content of absorbed statements besides their triple."""
        iris = self._labels(self._predicates)
        label_of = self._prefixes.label
        said = self._literals.of_nodes(absorbed, label_of)
        left_out = (RDF_SUBJECT, RDF_PREDICATE, RDF_OBJECT, RDF_TYPE)
        for head, predicate, tail, _ in quads.tolist():
            if iris[predicate] not in left_out:
                value = Literal(self._nodes.strings[tail].as_py())
                said[head].setdefault(label_of(iris[predicate]), []).append(value)
        return said

    def _drop_nodes(self, absorbed: set[int]) -> None:
        """Keep the nodes that have an edge, a type or a property, and the predicates that are relations."""
        used = np.zeros(len(self._nodes), np.bool_)
        used[self._classes.typed()] = True
        used[self._literals.nodes()] = True
        used[list(absorbed)] = False
        first = np.full(len(self._predicates), -1, np.int64)
        start = sum(map(len, self._quads))
        for quads in reversed(self._quads):
            used[quads[:, 0]] = used[quads[:, 2]] = True
            start -= len(quads)
            first[quads[::-1, 1]] = np.arange(start, start + len(quads))[::-1]
        self._kept = np.flatnonzero(used)
        met = np.flatnonzero(first >= 0)
        self._relations = met[np.argsort(first[met])]


def _is(column: pa.DictionaryArray, text: str) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows that hold a text."""
    known = pc.equal(column.dictionary, text).to_numpy(zero_copy_only=False)
    marks: npt.NDArray[np.bool_] = known[column.indices.to_numpy()]
    return marks


def _encode(interner: Interner, column: pa.DictionaryArray, rows: Int64) -> npt.NDArray[np.int32]:
    return interner.encode(column.dictionary, column.indices.to_numpy()[rows])


def _edge_properties(said: Mapping[str, Sequence[Literal]]) -> Properties:
    properties: dict[str, Value] = {}
    for key, values in said.items():
        best = preferred(values)
        properties[key] = best.value
        if len(values) > 1 or not best.plain:
            properties[key + ALL_VALUES] = listed(values)
    return properties


def _edge_columns(properties: Mapping[int, Properties], count: int) -> dict[str, pa.Array]:
    """Return columns of `count` rows for the properties of some of them."""
    columns: dict[str, pa.Array] = {}
    for key in dict.fromkeys(key for row in properties.values() for key in row):
        values = {number: row[key] for number, row in properties.items() if key in row}
        kinds = {type(value) for value in values.values()}
        literals = {number: of_value(value) for number, value in values.items()}
        if len(kinds) > 1 and kinds != {int, float}:
            literals = {number: Literal(literal.text) for number, literal in literals.items()}
        columns[key] = place(column_of(list(literals.values())), list(literals), count)
    return columns


_NTRIPLES = ".nt"


class TripleStream(RdfFile):
    """N-Triples without statements about triples; a `ResumableStream` that gives the graph that `RdfFile` does.

    Every node then stays, and so does every predicate that edges have, so their numbers are known when they are met.
    """

    def __init__(self, *paths: Path, bad: BadLines | None = None) -> None:
        super().__init__(*paths, bad=bad)
        self._file, self._position, self._done = 0, START, False

    @staticmethod
    def fits(paths: tuple[Path, ...]) -> bool:
        """True if files can be streamed, by their names."""
        return all(uncompressed(path).suffix.lower() == _NTRIPLES for path in paths)

    def keep_in(self, folder: Path, state: Mapping[str, Any] | None) -> None:
        """Keep texts, types and literals in files; see `ResumableStream`."""
        known = state or {}
        self._nodes = Interner(folder / "nodes", known.get("nodes", 0))
        self._predicates = Interner(folder / "predicates", known.get("predicates", 0))
        self._classes = NodeClasses(folder, known)
        self._literals.keep_in(folder, known.get("literals", {}))
        for pair in known.get("kinds", ()):
            self._document.kinds.number(*pair)
        self._document.bad.again(known.get("bad", ()))
        self._file, self._position = known.get("file", 0), FilePosition(*known.get("position", START))
        self._source = dict(known.get("source", {}))
        if known.get("done"):
            self._finish()

    def set_aside(self) -> None:
        """Give back the memory of texts in files; see `ResumableStream`."""
        self._nodes.set_aside()
        self._literals.set_aside()

    def state(self) -> dict[str, Any]:
        """Return how far the files have been read, and how much is known by then."""
        return {
            "nodes": len(self._nodes),
            "predicates": len(self._predicates),
            **self._classes.state(),
            "literals": self._literals.state(),
            "kinds": self._document.kinds.pairs,
            "bad": self._document.bad.found,
            "file": self._file,
            "position": self._position,
            "done": self._done,
            "source": self._source,
        }

    def blocks(self) -> Iterator[EdgeBlock]:
        """Read the files, and yield their edges. Raises `ImportFailed`; `ReadWhole` for statements about triples."""
        if self._done:
            return
        about = pa.array([RDF_SUBJECT, RDF_PREDICATE, RDF_OBJECT], TEXT)
        for block, number, position in self._document.blocks(self._file, self._position):
            self._file, self._position = number, position
            if block.mentioned is not None:
                raise ReadWhole
            quads = self._take(block)
            if self._predicates.find(about).max() >= 0:
                raise ReadWhole
            yield EdgeBlock(quads[:, :3])
        self._finish()

    def _finish(self) -> None:
        self._done = True
        self._kept, self._relations = np.arange(len(self._nodes)), np.arange(len(self._predicates))
        self._choose_prefixes()
        self._nodes.release()
        self._literals.release()
        self.set_aside()
