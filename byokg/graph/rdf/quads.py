"""Quads as columns, and the numbering of literals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from byokg.errors import import_extra
from byokg.graph.columnar.schema import TEXT
from byokg.graph.rdf.literals import Literal
from byokg.graph.rdf.terms import RDF_REIFIES

QUADS = 1 << 16
"""Quads of pyoxigraph's put into columns together."""


class LiteralTypes:
    """Numbers for the datatypes and languages of literals, in order of appearance."""

    def __init__(self) -> None:
        self.pairs: list[tuple[str, str]] = []
        """Datatype and language."""
        self._numbers: dict[tuple[str, str], int] = {}

    def number(self, datatype: str, language: str) -> int:
        """Return the number of a datatype and language; new ones get the next one."""
        key = datatype, language
        number = self._numbers.setdefault(key, len(self.pairs))
        if number == len(self.pairs):
            self.pairs.append(key)
        return number


@dataclass(frozen=True)
class QuadBlock:
    """Q quads in the order of the file, as columns. Nodes are written as ids: IRIs, and `_:b1`."""

    subject: pa.DictionaryArray
    predicate: pa.DictionaryArray
    end: pa.DictionaryArray
    """The object: an id, or the text of a literal."""
    kind: npt.NDArray[np.int32]
    """Where the object is a literal, the number that `LiteralTypes` gave to its datatype and language; else -1."""
    graph: pa.DictionaryArray | None = None
    """Empty for the default graph; None if all quads are in it."""
    statements: tuple[int, ...] = ()
    """Rows whose subject is a statement about a triple that is no quad here: the one that the next row spells out."""
    mentioned: npt.NDArray[np.bool_] | None = None
    """Rows that are such triples, or that only mention their subject, but are not in the file as quads."""
    lost: int = 0
    """Quads without a columnar form: triples as objects of predicates other than `rdf:reifies`."""


def columns(quads: Sequence[Any], scope: str, kinds: LiteralTypes) -> QuadBlock:
    """Put pyoxigraph's quads into columns; labels of blank nodes begin with `scope`."""
    pyoxigraph = import_extra("pyoxigraph", "sparql", "reading RDF")
    named, default = pyoxigraph.NamedNode, pyoxigraph.DefaultGraph
    rows: list[tuple[str, str, str, int, str]] = []
    statements: list[int] = []
    mentioned: list[int] = []
    lost = 0

    def id_of(term: Any) -> str:
        value: str = term.value
        return value if isinstance(term, named) else f"_:{scope}{value}"

    for subject, predicate, end, graph in quads:
        head, label = id_of(subject), predicate.value
        where = "" if isinstance(graph, default) else id_of(graph)
        if isinstance(end, pyoxigraph.Literal):
            literal = literal_of(end)
            rows.append((head, label, literal.text, kinds.number(literal.datatype, literal.language), where))
        elif not isinstance(end, pyoxigraph.Triple):
            rows.append((head, label, id_of(end), -1, where))
        else:
            mentioned.append(len(rows))
            inner = end.object
            told = label == RDF_REIFIES and not isinstance(inner, pyoxigraph.Literal | pyoxigraph.Triple)
            lost += label != RDF_REIFIES
            if label == RDF_REIFIES:
                statements.append(len(rows))
            rows.append((head, label, head, -1, ""))
            if told:
                mentioned.append(len(rows))
                rows.append((id_of(end.subject), end.predicate.value, id_of(inner), -1, ""))
    heads, labels, ends, numbers, graphs = zip(*rows, strict=True)
    marks = np.zeros(len(rows), np.bool_)
    marks[mentioned] = True
    return QuadBlock(
        subject=pa.array(heads, TEXT).dictionary_encode(),
        predicate=pa.array(labels, TEXT).dictionary_encode(),
        end=pa.array(ends, TEXT).dictionary_encode(),
        kind=np.array(numbers, np.int32),
        graph=pa.array(graphs, TEXT).dictionary_encode() if any(graphs) else None,
        statements=tuple(statements),
        mentioned=marks if mentioned else None,
        lost=lost,
    )


def literal_of(term: Any) -> Literal:
    """Return what pyoxigraph calls a literal as one of ours."""
    return Literal(term.value, term.datatype.value, (term.language or "").lower())
