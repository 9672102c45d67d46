"""RDF literals as values and the way back.

`Literal` is one literal; `LiteralStore` holds those of a file as numbers, and gives the names of nodes and a column for
each property.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from byokg.arrays import Int64, Integers
from byokg.graph.columnar.external_sort import RowsFile, TextsFile
from byokg.graph.columnar.folder import slots
from byokg.graph.columnar.ids import Interner
from byokg.graph.columnar.schema import KINDS, TEXT, PropertyColumn, is_date, typed
from byokg.graph.rdf.terms import FREEBASE, NAME_PREDICATES, RDF, RDFS_LABEL, XSD, Prefixes, fallback_name, node_iri
from byokg.graph.sorted_ids import distinct, distinct_rows
from byokg.graph.store import ALL_VALUES
from byokg.index.vocabulary import positions, string_buffers
from byokg.types import Value

INTEGERS = frozenset(
    XSD + name
    for name in (
        "integer int long short byte nonNegativeInteger positiveInteger nonPositiveInteger negativeInteger "
        "unsignedInt unsignedLong unsignedShort unsignedByte gYear"
    ).split()
)
EXACT_TYPES = frozenset({*INTEGERS, XSD + "decimal"})
"""Datatypes in which `1e+20` is no number."""
FRACTIONS = frozenset(XSD + name for name in ("decimal", "double", "float"))
_WHOLE = re.compile(r"[+-]?[0-9]{1,308}")
_PLAIN_TYPES = frozenset({XSD + "string", RDF + "langString", XSD + "integer", XSD + "double", XSD + "boolean"})
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


class Literal(NamedTuple):
    """A literal with the IRI of its datatype and, if it has one, its language tag in lower case."""

    text: str
    datatype: str = XSD + "string"
    language: str = ""

    @property
    def value(self) -> Value:
        """Return the literal as int, float, bool or text; a number that fits none of them stays text."""
        if self.datatype in INTEGERS:
            if _WHOLE.fullmatch(self.text) and -(1 << 63) <= int(self.text) < 1 << 63:
                return int(self.text)
        elif self.datatype in FRACTIONS:
            try:
                number = float(self.text)
            except ValueError:
                return self.text
            if math.isfinite(number):
                whole = self.datatype == XSD + "decimal" and _WHOLE.fullmatch(self.text) is not None
                return self.text if whole and int(self.text) != int(number) else number
        elif self.datatype == XSD + "boolean" and self.text in ("true", "1", "false", "0"):
            return self.text in ("true", "1")
        return self.text

    @property
    def kind(self) -> str:
        """Return the kind of `value`: `string`, `int`, `float`, `bool` or `date`."""
        if self.datatype == XSD + "date":
            return "date"
        return {str: "string", bool: "bool", int: "int", float: "float"}[type(self.value)]

    @property
    def plain(self) -> bool:
        """True if `value` is the whole literal: no language, and the datatype that `of_value` gives."""
        return not self.language and self.datatype in _PLAIN_TYPES and of_value(self.value).datatype == self.datatype

    def __str__(self) -> str:
        """Write the literal as N-Triples, Turtle and SPARQL do."""
        quoted = '"' + "".join(_ESCAPES.get(character, character) for character in self.text) + '"'
        if self.language:
            return f"{quoted}@{self.language}"
        return quoted if self.datatype == XSD + "string" else f"{quoted}^^<{self.datatype}>"


def of_value(value: Value) -> Literal:
    """Return the literal that stands for a property value."""
    if isinstance(value, bool):
        return Literal("true" if value else "false", XSD + "boolean")
    if isinstance(value, int):
        return Literal(str(value), XSD + "integer")
    if isinstance(value, float):
        return Literal(repr(value), XSD + "double")
    return Literal(value)


ENGLISH = "en"


def language_rank(literal: Literal, language: str = ENGLISH) -> int:
    """Order languages for names: a chosen one, untagged, its regional forms, English, then all others."""
    if literal.language == language:
        return 0
    if not literal.language:
        return 1
    if literal.language.startswith(f"{language}-"):
        return 2
    return 3 if literal.language == ENGLISH else 4


def preferred(literals: Sequence[Literal], language: str = ENGLISH) -> Literal:
    """Return the literal that stands for several: the first of the best language."""
    return min(literals, key=partial(language_rank, language=language))


def listed(literals: Sequence[Literal]) -> str:
    """Write several literals as Turtle lists objects: `"Paris"@en, "Parigi"@it`."""
    return ", ".join(map(str, literals))


_LISTED = re.compile(r'"((?:[^"\\]|\\.)*)"(?:@([\w-]+)|\^\^<([^>]*)>)?')
_ESCAPED = {written: character for character, written in _ESCAPES.items()}


def unlisted(text: str) -> list[Literal]:
    """Read what `listed` wrote."""
    found = []
    for quoted, language, datatype in _LISTED.findall(text):
        plain = re.sub(r"\\.", lambda each: _ESCAPED.get(each.group(), each.group()), quoted)
        found.append(Literal(plain, RDF + "langString" if language else datatype or XSD + "string", language))
    return found


_EXACT = 1 << 53
"""Up to here a float holds every whole number."""

_SIMPLE_NAME = "^https?://[A-Za-z0-9.-]+(?::[0-9]+)?(?:/[A-Za-z0-9._~/-]*)?[/#](?P<name>[A-Za-z0-9._~-]+)$"
"""IRIs whose last part is the name of a node that has none, underscores being spaces; others are looked at singly."""

_STRING = (XSD + "string", "")
_NO_RANK = 9

_NAMES, _ROWS = 1 << 18, 1 << 22
"""Nodes named together, and literals sorted together."""


@dataclass(frozen=True)
class _PredicateLiterals:
    """The L literals of one predicate, each once for its node, by node and then in the order of the file."""

    node: npt.NDArray[np.int32]
    """(L,) positions among the nodes of the graph."""
    kind: Integers
    """(L,) positions among the kinds."""
    text: Integers
    """(L,) numbers of texts."""
    rank: Integers
    """(L,) `language_rank` of each."""
    place: Integers
    """(L,) their order in the file."""
    starts: Integers
    """(N,) start of the literals of each of the N nodes that have one."""

    @property
    def counts(self) -> Int64:
        """Return how many literals each of the N nodes has."""
        return np.diff(self.starts, append=len(self.node))

    def best(self) -> Integers:
        """Return for each of the N nodes the literal that stands for it: the first of the best language."""
        if len(self.starts) == len(self.node):
            return self.starts
        group = np.repeat(np.arange(len(self.starts)), self.counts)
        order = np.lexsort((self.rank, group))
        return order[self.starts]


class LiteralStore:
    """Literals as numbers: 16 bytes each, and every text once."""

    def __init__(self, kinds: Sequence[tuple[str, str]]) -> None:
        """Take over a list of datatypes and languages that may still grow."""
        self._kinds = kinds
        self.language = ENGLISH
        """Language of the names, of several."""
        self.predicates = Interner()
        self._texts = Interner()
        self._rows = RowsFile(4)
        """Node, predicate, kind and text."""
        self._folder: Path | None = None

    def keep_in(self, folder: Path, state: Mapping[str, Any]) -> None:
        """Keep all in files, and restore those of a `state`."""
        self.predicates = Interner(folder / "literal-predicates", state.get("predicates", 0))
        self._texts = Interner(folder / "literal-texts", state.get("texts", 0))
        self._rows = RowsFile(4, folder / "literals.scratch", state.get("rows", 0))
        self._folder = folder

    def release(self) -> None:
        """Give back what only further literals need."""
        self._texts.release()

    def set_aside(self) -> None:
        """Release the memory of texts in files, until they are needed."""
        self._texts.set_aside()

    def state(self) -> dict[str, int]:
        """Return how much there is."""
        return {"predicates": len(self.predicates), "texts": len(self._texts), "rows": len(self._rows)}

    def add(
        self, nodes: Integers, predicate: pa.DictionaryArray, texts: pa.DictionaryArray, kinds: Integers, rows: Int64
    ) -> None:
        """Take in the literals in some rows of a block; `nodes` are those of these rows."""
        predicates = self.predicates.encode(predicate.dictionary, predicate.indices.to_numpy()[rows])
        spelled = self._texts.encode(texts.dictionary, texts.indices.to_numpy()[rows])
        self._rows.append(np.column_stack((nodes, predicates, kinds[rows], spelled)).astype(np.int32))

    def nodes(self) -> Integers:
        """Return the nodes that have literals."""
        return self._rows.rows()[:, 0]

    def of_nodes(self, nodes: Collection[int], label: Callable[[str], str]) -> dict[int, dict[str, list[Literal]]]:
        """Return the literals of a few nodes by the labels of their predicates."""
        found: dict[int, dict[str, list[Literal]]] = {node: {} for node in nodes}
        rows = self._rows.rows()
        iris = self.predicates.strings.to_pylist()
        few = rows[np.isin(rows[:, 0], np.array(sorted(nodes), np.int64))]
        # By predicate, as its columns come, and then in the order of the file.
        for node, predicate, kind, text in few[np.argsort(few[:, 1], kind="stable")].tolist():
            literals = found[node].setdefault(label(iris[predicate]), [])
            literal = Literal(self._texts.strings[text].as_py(), *self._kinds[kind])
            if literal not in literals:
                literals.append(literal)
        return found

    def columns(
        self, ids: pa.Array, kept: Int64, prefixes: Prefixes
    ) -> tuple[pa.Array, Iterator[PropertyColumn], dict[str, str]]:
        """Return names, properties, and what kind the literals of each property usually are, once these have come.

        Args:
            ids: (N,) ids of the graph's nodes.
            kept: (N,) their numbers here.
            prefixes: gives the properties their labels.
        """
        said = _ByPredicate(self._rows, kept, self._kinds, self.predicates.strings.to_pylist(), self.language)
        names, by_label = self._names(ids, said)
        usual: dict[str, str] = {}
        return names, self._properties(said, by_label, prefixes, usual), usual

    def _properties(
        self, said: _ByPredicate, by_label: npt.NDArray[np.bool_], prefixes: Prefixes, usual: dict[str, str]
    ) -> Iterator[PropertyColumn]:
        for iri in said.iris:
            found = said.of(iri)
            if found is None:
                continue
            key = prefixes.label(iri)
            shown = np.flatnonzero(~by_label[found.node[found.starts]]) if iri == RDFS_LABEL else slice(None)
            best = found.best()[shown]
            if len(best):
                yield PropertyColumn(key, self._select_literals(found, best), found.node[best])
            kind = self._usual(found)
            lists, nodes = self._lists(found, kind)
            if len(nodes):
                yield PropertyColumn(key + ALL_VALUES, lists, nodes)
            datatype, language = self._kinds[kind]
            if (datatype, language) != _STRING:
                usual[key] = f"@{language}" if language else datatype
            self.set_aside()

    def _spelled(self, texts: Integers) -> pa.LargeStringArray:
        """Return the texts of some numbers."""
        return self._texts.strings.take(positions(texts))

    def _blank(self, texts: Integers) -> npt.NDArray[np.bool_]:
        """Return a mask of empty texts."""
        offsets, _ = string_buffers(self._texts.strings)
        blank = np.empty(len(texts), np.bool_)
        for start in range(0, len(texts), _NAMES):
            some = texts[start : start + _NAMES].astype(np.int64)
            blank[start : start + _NAMES] = offsets[some] == offsets[some + 1]
        return blank

    def _names(self, ids: pa.Array, said: _ByPredicate) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        """Return the name of each node, and whether it is an `rdfs:label`."""
        best = np.full(len(ids), _NO_RANK, np.int8)
        by_label = np.zeros(len(ids), np.bool_)
        choice = np.zeros(len(ids), np.int32)
        for iri in NAME_PREDICATES:
            if found := said.of(iri):
                rows = found.best()
                node, rank, text = found.node[rows], found.rank[rows], found.text[rows]
                better = (rank < best[node]) & ~self._blank(text)
                choice[node[better]] = text[better]
                by_label[node[better]] = iri == RDFS_LABEL
                best[node[better]] = rank[better]
        names = TextsFile(self._folder / "names" if self._folder else None)
        for start in range(0, len(ids), _NAMES):
            chosen, named = choice[start : start + _NAMES], best[start : start + _NAMES] < _NO_RANK
            texts = self._spelled(chosen[named])
            if not named.all():
                fallen = _fallback_names(ids.take(positions(start + np.flatnonzero(~named))))
                place = np.where(named, named.cumsum(), np.count_nonzero(named) + (~named).cumsum()) - 1
                texts = pa.concat_arrays([texts, fallen]).take(positions(place))
            names.append(texts)
            self.set_aside()
        return names.column(), by_label

    def _usual(self, found: _PredicateLiterals) -> int:
        """Return the kind that most nodes' only literal has; of several the one that the file has first."""
        alone = np.repeat(found.counts == 1, found.counts)
        if not alone.any():
            return int(found.kind[found.place.argmin()])
        kinds, place = found.kind[alone], found.place[alone]
        counts = np.bincount(kinds)
        most = counts[kinds] == counts.max()
        return int(kinds[most][place[most].argmin()])

    def _lists(self, found: _PredicateLiterals, usual: int) -> tuple[pa.Array, npt.NDArray[np.int32]]:
        """Spell out the literals of each node that has several, or one of another kind than usual."""
        spelled = (found.counts > 1) | (found.kind[found.starts] != usual)
        starts, counts, lists = found.starts[spelled], found.counts[spelled], [pa.array([], TEXT)]
        for first in range(0, len(starts), _NAMES):
            begun, many = starts[first : first + _NAMES], counts[first : first + _NAMES]
            _, rows = slots(begun.astype(np.int64), begun + many)
            pairs = zip(self._spelled(found.text[rows]).to_pylist(), found.kind[rows].tolist(), strict=True)
            some = (
                listed([Literal(text, *self._kinds[kind]) for text, kind in islice(pairs, n)]) for n in many.tolist()
            )
            lists.append(pa.array(list(some), TEXT))
        return pa.concat_arrays(lists), found.node[starts]

    def _select_literals(self, found: _PredicateLiterals, rows: Integers) -> pa.Array:
        """Return one literal for each of some nodes."""
        kinds, texts = found.kind[rows], self._spelled(found.text[rows])
        if (kinds == kinds[0]).all() and (values := _convert_texts(texts, self._kinds[kinds[0]][0])) is not None:
            return values
        spelled = zip(texts.to_pylist(), kinds.tolist(), strict=True)
        return column_of([Literal(text, *self._kinds[kind]) for text, kind in spelled])


class _ByPredicate:
    """All literals of the nodes of a graph, one predicate at a time."""

    def __init__(
        self, rows: RowsFile, kept: Int64, kinds: Sequence[tuple[str, str]], iris: Sequence[str], language: str
    ) -> None:
        """Sort the numbers of rows of node, predicate, kind and text; `kept` are the nodes of the graph."""
        self.iris = iris
        self._rows, self._kinds = rows, len(kinds)
        self._ranks = np.array([language_rank(Literal("", *kind), language) for kind in kinds], np.int8)
        held = rows.rows()
        self._place = np.full(max(int(kept.max(initial=-1)), int(held[:, 0].max(initial=-1))) + 1, -1, np.int32)
        self._place[kept] = np.arange(len(kept), dtype=np.int32)
        parts = [held[start : start + _ROWS, 1] for start in range(0, len(held), _ROWS)]
        counts = [np.bincount(part, minlength=len(iris)) for part in parts]
        self._stops = np.sum([np.zeros(len(iris), np.int64), *counts], axis=0).cumsum()
        self._order = np.empty(len(held), np.int32)
        free = np.concatenate(([0], self._stops[:-1]))
        for start, part, here in zip(range(0, len(held), _ROWS), parts, counts, strict=True):
            slot = np.repeat(free - (here.cumsum() - here), here) + np.arange(len(part))
            self._order[slot] = start + np.argsort(part, kind="stable")
            free = free + here

    def of(self, iri: str) -> _PredicateLiterals | None:
        """Return the literals of a predicate; None if no node of the graph has any."""
        if iri not in self.iris:
            return None
        number, rows = self.iris.index(iri), self._rows.rows()
        part = self._order[self._stops[number - 1] if number else 0 : self._stops[number]]
        # Columns of numbers are as narrow as they can be: there may be tens of millions of one predicate.
        node = self._place[rows[part, 0]]
        if node.min(initial=0) < 0:
            part, node = part[node >= 0], node[node >= 0]
        if len(node) == 0:
            return None
        fresh = np.argsort(node, kind="stable").astype(np.int32)
        node, part = node[fresh], part[fresh]
        again = np.flatnonzero(np.diff(node) == 0)
        if len(again):
            several = distinct(np.concatenate((again, again + 1)))
            said, none = rows[part[several]], np.zeros(len(several), np.int64)
            known = distinct_rows(node[several], said[:, 2], said[:, 3], none)
            once = np.ones(len(node), np.bool_)
            once[several] = False
            once[several[known]] = True
            node, part, fresh = node[once], part[once], fresh[once]
        kind = rows[part, 2].astype(np.int16 if self._kinds < 1 << 15 else np.int32)
        starts = np.flatnonzero(np.diff(node, prepend=-1)).astype(np.int32)
        return _PredicateLiterals(node, kind, rows[part, 3], self._ranks[kind], fresh, starts)


def _fallback_names(ids: pa.Array) -> pa.Array:
    """Return the names of nodes without a literal name."""
    simple = pc.extract_regex(ids, _SIMPLE_NAME)
    matched = simple.is_valid().to_numpy(zero_copy_only=False)
    matched &= ~pc.starts_with(ids, FREEBASE).to_numpy(zero_copy_only=False)
    names = pc.replace_substring(simple.field("name"), "_", " ")
    others = [
        entity if entity.startswith("_:") else fallback_name(node_iri(entity))
        for entity in ids.filter(pa.array(~matched)).to_pylist()
    ]
    return pc.replace_with_mask(names, pa.array(~matched), pa.array(others, TEXT))


def _convert_texts(texts: pa.Array, datatype: str) -> pa.Array | None:
    """Return literals of one datatype as values; None if some are malformed."""
    if datatype == XSD + "boolean":
        known = pc.is_in(texts, pa.array(["true", "1", "false", "0"], TEXT))
        return pc.is_in(texts, pa.array(["true", "1"], TEXT)) if pc.all(known).as_py() else None
    kind = "int" if datatype in INTEGERS else "float" if datatype in FRACTIONS else ""
    kind = "date" if datatype == XSD + "date" else kind
    if not kind:
        return texts
    signed = texts if kind == "date" else pc.replace_substring_regex(texts, r"^\+([0-9.])", r"\1")
    values, problem = typed("", kind, pa.chunked_array([signed]))
    return None if problem else values


def column_of(literals: Sequence[Literal]) -> pa.Array:
    """Return a column of values in the storage type of all literals, as text if the types differ."""
    found = {type(literal.value) for literal in literals}
    values: list[Any]
    if found == {bool}:
        kind = "bool"
    elif found == {int}:
        kind = "int"
    elif found == {float} or (found == {int, float} and _fit_floats(literals)):
        kind = "float"
    elif all(literal.datatype == XSD + "date" and is_date(literal.text) for literal in literals):
        kind = "date"
    else:
        kind = "string"
    if kind == "date":
        values = [date.fromisoformat(literal.text) for literal in literals]
    else:
        values = [literal.text if kind == "string" else literal.value for literal in literals]
    return pa.array(values, KINDS[kind][0])


def _fit_floats(literals: Iterable[Literal]) -> bool:
    values = [literal.value for literal in literals]
    return all(not isinstance(value, int) or abs(value) <= _EXACT for value in values)
