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
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from byokg.arrays import Int64
from byokg.files import TextFile
from byokg.graph.columnar.ids import Interner
from byokg.graph.columnar.schema import TEXT, NodeColumns, place
from byokg.graph.columnar.writer import EdgeBlock, ahead
from byokg.graph.rdf.classes import NodeClasses
from byokg.graph.rdf.files import Documents
from byokg.graph.rdf.literals import ENGLISH, Literal, LiteralStore, column_of, listed, of_value, preferred
from byokg.graph.rdf.ntriples import BadLines
from byokg.graph.rdf.quads import QuadBlock
from byokg.graph.rdf.terms import (
    INSTANCE_OF,
    RDF_OBJECT,
    RDF_PREDICATE,
    RDF_SUBJECT,
    RDF_TYPE,
    Prefixes,
)
from byokg.graph.sorted_ids import distinct_rows
from byokg.graph.store import ALL_VALUES
from byokg.index.string_hashes import positions
from byokg.types import Properties, Value

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
