"""RDF terms: how ids, relations and property names become IRIs, what literals are as values, and both ways back.

Data that is RDF keeps its IRIs. A node's id is its IRI, and a relation, property or class has a label such as
`dbo:birthPlace` that a prefix map undoes. Everything else, such as an id `New York` or a relation `is a`, becomes an
IRI of ours whose last part is the text itself, percent-encoded where SPARQL demands it: `node:New%20York` and
`kg:is%20a` stand in queries just so.

`Literal` is one literal and the way back to RDF; `LiteralStore` holds those of a file as numbers, and gives the names
of nodes and a column for each property.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from byokg.graph.columnar.ids import Interner
from byokg.graph.columnar.schema import KINDS, TEXT, is_date, placed, typed
from byokg.graph.int_sets import distinct_rows
from byokg.graph.store import ALL_VALUES
from byokg.types import EntityId, Value

NODE = "urn:byokg:node:"
"""Namespace of ids that are no IRIs."""
TERM = "urn:byokg:term:"
"""Namespace of relations, properties and types of graphs that are no RDF."""
EDGE = "urn:byokg:edge:"
"""Namespace of the statements that tell edge properties, and parallel edges apart."""

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"
OWL = "http://www.w3.org/2002/07/owl#"
SKOS = "http://www.w3.org/2004/02/skos/core#"

RDF_TYPE = RDF + "type"
RDF_SUBJECT, RDF_PREDICATE, RDF_OBJECT = RDF + "subject", RDF + "predicate", RDF + "object"
RDF_STATEMENT, RDF_REIFIES = RDF + "Statement", RDF + "reifies"
RDFS_LABEL = RDFS + "label"

FREEBASE = "http://rdf.freebase.com/ns/"
_SCHEMA_ORG = ("http://schema.org/", "https://schema.org/")
_FOAF = "http://xmlns.com/foaf/0.1/"
_WIKIDATA = "http://www.wikidata.org/prop/direct/"

NAME_PREDICATES = (
    RDFS_LABEL,
    SKOS + "prefLabel",
    *(space + "name" for space in _SCHEMA_ORG),
    FREEBASE + "type.object.name",
    _FOAF + "name",
)
"""What names a node, best first."""

ALIAS_PREDICATES = (
    SKOS + "altLabel",
    FREEBASE + "common.topic.alias",
    *(space + "alternateName" for space in _SCHEMA_ORG),
    "http://dbpedia.org/ontology/alias",
    _FOAF + "nick",
)
"""What else a node is called."""

TYPE_OBJECT_TYPE = FREEBASE + "type.object.type"
TYPE_PREDICATES = (
    (FREEBASE + "common.topic.notable_types", TYPE_OBJECT_TYPE),
    (_WIKIDATA + "P31",),
    (RDF_TYPE,),
)
"""What leads to a node's class, by vocabulary: a graph that has one of a vocabulary is of that vocabulary."""

GENERIC_TYPES = frozenset({OWL + "Thing", OWL + "NamedIndividual", RDFS + "Resource", FREEBASE + "common.topic"})
"""Classes that say nothing about a node; another one is its type where it has one."""

WELL_KNOWN = {
    "rdf": RDF,
    "rdfs": RDFS,
    "xsd": XSD,
    "owl": OWL,
    "skos": SKOS,
    "schema": "http://schema.org/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "prov": "http://www.w3.org/ns/prov#",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "dbo": "http://dbpedia.org/ontology/",
    "dbp": "http://dbpedia.org/property/",
    "dbr": "http://dbpedia.org/resource/",
    "wd": "http://www.wikidata.org/entity/",
    "wdt": "http://www.wikidata.org/prop/direct/",
    "yago": "http://yago-knowledge.org/resource/",
    "fb": "http://rdf.freebase.com/ns/",
}
"""Prefixes that need no declaration."""

OURS = {"node": NODE, "kg": TERM}
"""Prefixes for what is no RDF by itself; they are always ours."""

_SCHEMES = frozenset("http https urn ftp mailto tag info doi file data tel did".split())
"""Words that start an IRI, so that none of them may be a prefix."""

# What a prefixed name and an IRI both allow beyond ASCII.
_LETTERS = (
    "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U0001fffd\U00020000-\U0002fffd\U00030000-\U0003fffd"
)
_ENCODED = re.compile(f"[^A-Za-z0-9_{_LETTERS}.-]|^[.-]|[.-]$")
_LOCAL = re.compile(f"[A-Za-z0-9_{_LETTERS}](?:[A-Za-z0-9_{_LETTERS}.-]*[A-Za-z0-9_{_LETTERS}-])?")
_PREFIX = re.compile(r"[A-Za-z](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?")

_WIDE = "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U0001fffd\U00020000-\U0002fffd\U00030000-\U0003fffd"
_PLAIN = f"(?:[A-Za-z0-9._~!$&'()*+,;=@{_WIDE}-]|%[0-9A-Fa-f]{{2}})"
_IRI = re.compile(
    rf"[A-Za-z][A-Za-z0-9+.-]*:(?://{_PLAIN}*(?::[0-9]*)?(?:/(?:{_PLAIN}|[:/])*)?|{_PLAIN}(?:{_PLAIN}|[:/])*)"
    rf"(?:\?(?:{_PLAIN}|[:/?])*)?(?:#(?:{_PLAIN}|[:/?])*)?"
)


def encode(text: str) -> str:
    """Write any text as the last part of an IRI; `decode` undoes it."""
    return _ENCODED.sub(lambda found: _percent(found.group()), text)


@functools.cache
def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


def decode(text: str) -> str:
    """Read what `encode` wrote."""
    return unquote(text, errors="strict") if "%" in text else text


def node_iri(entity: str) -> str:
    """Return the IRI of a node: the id itself where it is one."""
    if _IRI.fullmatch(entity) and not entity.startswith((NODE, TERM, EDGE)):
        return entity
    return NODE + encode(entity)


def node_id(iri: str) -> EntityId:
    """Return the id of the node that `node_iri` wrote."""
    if iri.startswith(NODE):
        try:
            return EntityId(decode(iri.removeprefix(NODE)))
        except UnicodeDecodeError:  # not written by `node_iri`
            return EntityId(iri)
    return EntityId(iri)


def term_iri(label: str) -> str:
    """Return the IRI of a relation, property or type of a graph that is no RDF."""
    return TERM + encode(label)


def is_iri(text: str) -> bool:
    """Tell whether a text is an absolute IRI of the usual kinds."""
    return _IRI.fullmatch(text) is not None


def local_name(iri: str) -> str:
    """Return what stands after the last `#`, `/` or (in a URN) `:`, decoded; the IRI itself when that is nothing."""
    if iri.startswith((NODE, TERM)):
        return decode(iri.removeprefix(NODE).removeprefix(TERM))
    name = re.split(r"[#/:]" if iri.startswith("urn:") else r"[#/]", iri)[-1]
    try:
        return decode(name) or iri
    except UnicodeDecodeError:
        return name


def fallback_name(iri: str) -> str:
    """Return a name for a node that has no label: `New York` for `http://dbpedia.org/resource/New_York`."""
    if iri.startswith(FREEBASE):
        return local_name(iri)  # an identifier, in which an underscore is one
    return node_id(iri) if iri.startswith(NODE) else local_name(iri).replace("_", " ")


def _split(iri: str) -> tuple[str, str]:
    """Split an IRI after its last `#` or `/`, or `:` in a URN."""
    place = max(iri.rfind("#"), iri.rfind("/"), iri.rfind(":") if iri.startswith("urn:") else -1)
    return iri[: place + 1], iri[place + 1 :]


@dataclass(frozen=True)
class Prefixes:
    """A prefix map without ambiguity: every prefix has one namespace, and every namespace one prefix."""

    namespaces: Mapping[str, str] = field(default_factory=lambda: {**WELL_KNOWN, **OURS})
    """Prefix to namespace."""
    _by_namespace: dict[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_namespace", {space: prefix for prefix, space in self.namespaces.items()})

    def with_declared(self, declared: Mapping[str, str]) -> Prefixes:
        """Return the map with the prefixes of a file, which come before those that are only well known.

        One that cannot stand in a label (the empty one, or `http`) or that is ours gets another name.
        """
        namespaces: dict[str, str] = {}
        for prefix, space in declared.items():
            if space and space not in namespaces.values() and space not in OURS.values():
                free = prefix if _usable(prefix) and prefix not in namespaces else None
                namespaces[free or _new_prefix(space, {*namespaces, *WELL_KNOWN})] = space
        for prefix, space in self.namespaces.items():
            if prefix not in namespaces and space not in namespaces.values():
                namespaces[prefix] = space
        return Prefixes({**namespaces, **OURS})

    def covering(self, iris: Iterable[str]) -> Prefixes:
        """Return the map with a prefix for the namespace of each IRI, named after the namespace's last word."""
        namespaces, known = dict(self.namespaces), set(self.namespaces.values())
        for iri in iris:
            space, local = _split(iri)
            if space not in known and "://" in space and _LOCAL.fullmatch(local):
                known.add(space)
                namespaces[_new_prefix(space, namespaces)] = space
        return Prefixes(namespaces)

    def label(self, iri: str) -> str:
        """Write the IRI of a relation, property or class: `dbo:birthPlace`, the text of a term of ours, or the IRI."""
        if iri.startswith(TERM):
            try:
                return decode(iri.removeprefix(TERM))
            except UnicodeDecodeError:
                return iri
        return self._compact(iri) or iri

    def expand(self, label: str) -> str:
        """Return the IRI behind a label; a text that is neither an IRI nor has a known prefix is a term of ours."""
        prefix, colon, local = label.partition(":")
        if colon and prefix in self.namespaces and _LOCAL.fullmatch(local):
            return self.namespaces[prefix] + local
        return label if is_iri(label) else term_iri(label)

    def spelled(self, iri: str) -> str:
        """Write an IRI as SPARQL takes it: `dbo:birthPlace`, `kg:is%20a`, or `<http://…>`."""
        if iri.startswith(TERM):
            return "kg:" + iri.removeprefix(TERM)
        if iri.startswith(NODE):
            return "node:" + iri.removeprefix(NODE)
        return self._compact(iri) or f"<{iri}>"

    def _compact(self, iri: str) -> str | None:
        space, local = _split(iri)
        prefix = self._by_namespace.get(space)
        if prefix is None or not _LOCAL.fullmatch(local):
            return None
        return f"{prefix}:{local}"


def _usable(prefix: str) -> bool:
    return _PREFIX.fullmatch(prefix) is not None and prefix.lower() not in _SCHEMES and prefix not in OURS


def _new_prefix(space: str, taken: Iterable[str]) -> str:
    """Name a namespace after its last word that is no number: `ontology` for `http://example.org/ontology/`."""
    used = {*taken, *OURS, *_SCHEMES}
    parts = [part for part in re.split(r"[#/]", space.partition("://")[2]) if part] or ["ns"]
    words = [word for part in reversed(parts) for word in [re.sub(r"[^A-Za-z0-9]", "", part.split(".")[0])] if word]
    stem = next((word.lower() for word in words if word[0].isalpha()), "ns")
    name, count = stem, 1
    while name in used:
        count += 1
        name = f"{stem}{count}"
    return name


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
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_PLAIN_TYPES = frozenset({XSD + "string", RDF + "langString", XSD + "integer", XSD + "double", XSD + "boolean"})
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


class Literal(NamedTuple):
    """A literal with the IRI of its datatype and, where it has one, its language tag in lower case."""

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
        """Say what `value` is: `string`, `int`, `float`, `bool` or `date`."""
        if self.datatype == XSD + "date":
            return "date"
        return {str: "string", bool: "bool", int: "int", float: "float"}[type(self.value)]

    @property
    def plain(self) -> bool:
        """Tell whether `value` says all that the literal says: no language, and a datatype that `of_value` gives."""
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


def language_rank(literal: Literal) -> int:
    """Order languages for names: English, untagged, regional English, then all others."""
    if literal.language == "en":
        return 0
    if not literal.language:
        return 1
    return 2 if literal.language.startswith("en-") else 3


def preferred(literals: Sequence[Literal]) -> Literal:
    """Return the literal that stands for several: the first of the best language."""
    return min(literals, key=language_rank)


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


Int64 = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.integer]

_EXACT = 1 << 53
"""Up to here a float holds every whole number."""

_SIMPLE_NAME = "^https?://[A-Za-z0-9.-]+(?::[0-9]+)?(?:/[A-Za-z0-9._~/-]*)?[/#](?P<name>[A-Za-z0-9._~-]+)$"
"""IRIs whose last part is the name of a node that has none, underscores being spaces; others are looked at singly."""

_STRING = (XSD + "string", "")
_NO_RANK = 9

_NAMES = 1 << 18
"""Nodes named together."""


@dataclass(frozen=True)
class _Said:
    """The L literals of one predicate, each once for its node, by node and then in the order of the file."""

    node: Numbers
    """(L,) positions among the nodes of the graph."""
    kind: Numbers
    """(L,) positions among the kinds."""
    text: pa.Array
    """(L,)"""
    rank: Numbers
    """(L,) `language_rank` of each."""
    place: Int64
    """(L,) the order in which the file says them."""
    starts: Int64
    """(N,) where the literals of each of the N nodes that have one start."""

    @property
    def counts(self) -> Int64:
        """Return how many literals each of the N nodes has."""
        return np.diff(self.starts, append=len(self.node))

    def best(self) -> Int64:
        """Return for each of the N nodes the literal that stands for it: the first of the best language."""
        group = np.repeat(np.arange(len(self.starts)), self.counts)
        order = np.lexsort((self.rank, group))
        return order[self.starts]


class LiteralStore:
    """Literals as numbers: 16 bytes each, and every text once."""

    def __init__(self, kinds: Sequence[tuple[str, str]]) -> None:
        """Take over a list of datatypes and languages that may still grow."""
        self._kinds = kinds
        self.predicates = Interner()
        self._texts = Interner()
        self._parts: list[npt.NDArray[np.int32]] = []

    def add(
        self, nodes: Numbers, predicate: pa.DictionaryArray, texts: pa.DictionaryArray, kinds: Numbers, rows: Int64
    ) -> None:
        """Take in the literals in some rows of a block; `nodes` are those of these rows."""
        predicates = self.predicates.encode(predicate.dictionary, predicate.indices.to_numpy()[rows])
        spelled = self._texts.encode(texts.dictionary, texts.indices.to_numpy()[rows])
        self._parts.append(np.column_stack((nodes, predicates, kinds[rows], spelled)).astype(np.int32))

    def _all(self) -> npt.NDArray[np.int32]:
        """Return (L, 4) node, predicate, kind and text."""
        if len(self._parts) != 1:
            self._parts = [np.concatenate([np.empty((0, 4), np.int32), *self._parts])]
        return self._parts[0]

    def nodes(self) -> Numbers:
        """Return the nodes that have literals."""
        return self._all()[:, 0]

    def of_nodes(self, nodes: Collection[int], label: Callable[[str], str]) -> dict[int, dict[str, list[Literal]]]:
        """Return the literals of a few nodes by the labels of their predicates."""
        found: dict[int, dict[str, list[Literal]]] = {node: {} for node in nodes}
        rows = self._all()
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
    ) -> tuple[pa.Array, dict[str, pa.Array], dict[str, str]]:
        """Return names, properties, and what kind the literals of each property usually are.

        Args:
            ids: (N,) ids of the graph's nodes.
            kept: (N,) their numbers here.
            prefixes: gives the properties their labels.
        """
        said = dict(self._by_predicate(kept))
        names, by_label = self._names(ids, said)
        columns: dict[str, pa.Array] = {}
        usual: dict[str, str] = {}
        for iri, found in said.items():
            key = prefixes.label(iri)
            shown = np.flatnonzero(~by_label[found.node[found.starts]]) if iri == RDFS_LABEL else slice(None)
            best = found.best()[shown]
            if len(best):
                columns[key] = self._column(found, best, len(ids))
            kind = self._usual(found)
            lists = self._lists(found, kind)
            if lists:
                columns[key + ALL_VALUES] = placed(pa.array(list(lists.values()), TEXT), list(lists), len(ids))
            datatype, language = self._kinds[kind]
            if (datatype, language) != _STRING:
                usual[key] = f"@{language}" if language else datatype
        return names, columns, usual

    def _by_predicate(self, kept: Int64) -> Iterator[tuple[str, _Said]]:
        """Yield each predicate that a node of the graph has, in order of appearance."""
        rows = self._all()
        place = np.full(max(int(kept.max(initial=-1)), int(rows[:, 0].max(initial=-1))) + 1, -1, np.int64)
        place[kept] = np.arange(len(kept))
        ranks = np.array([language_rank(Literal("", *kind)) for kind in self._kinds], np.int64)
        order = np.argsort(rows[:, 1], kind="stable")
        bounds = np.searchsorted(rows[order, 1], np.arange(len(self.predicates) + 1))
        for number, iri in enumerate(self.predicates.strings.to_pylist()):
            some = rows[order[bounds[number] : bounds[number + 1]]]
            node, kind, text = place[some[:, 0]], some[:, 2], some[:, 3]
            inside = np.flatnonzero(node >= 0)
            node, kind, text = node[inside], kind[inside], text[inside]
            if len(node) == 0:
                continue
            fresh = distinct_rows(node, kind, text, np.zeros(len(node), np.int64))
            fresh = fresh[np.argsort(node[fresh], kind="stable")]
            node, kind, texts = node[fresh], kind[fresh], self._texts.strings.take(pa.array(text[fresh]))
            starts = np.flatnonzero(np.diff(node, prepend=-1))
            yield iri, _Said(node, kind, texts, ranks[kind], fresh, starts)

    def _names(self, ids: pa.Array, said: Mapping[str, _Said]) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        """Return the name of each node, and whether it is an `rdfs:label`."""
        best = np.full(len(ids), _NO_RANK)
        by_label = np.zeros(len(ids), np.bool_)
        choice = np.arange(len(ids))
        texts: list[pa.Array] = []
        offset = 0
        for iri in NAME_PREDICATES:
            if found := said.get(iri):
                rows = found.best()
                named = found.text.take(pa.array(rows))
                node, rank = found.node[rows], found.rank[rows]
                better = (rank < best[node]) & pc.not_equal(named, "").to_numpy(zero_copy_only=False)
                choice[node[better]] = offset + np.flatnonzero(better)
                by_label[node[better]] = iri == RDFS_LABEL
                best[node[better]] = rank[better]
                texts.append(named)
                offset += len(named)
        nameless = np.flatnonzero(best == _NO_RANK)
        choice[nameless] = offset + np.arange(len(nameless))
        for start in range(0, len(nameless), _NAMES):
            texts.append(_fallback_names(ids.take(pa.array(nameless[start : start + _NAMES]))))
        names = pa.concat_arrays([pa.array([], TEXT), *texts])
        return (names.take(pa.array(choice)) if offset else names), by_label

    def _usual(self, found: _Said) -> int:
        """Return the kind that most nodes' only literal has; of several the one that the file has first."""
        alone = np.repeat(found.counts == 1, found.counts)
        if not alone.any():
            return int(found.kind[found.place.argmin()])
        kinds, place = found.kind[alone], found.place[alone]
        counts = np.bincount(kinds)
        most = counts[kinds] == counts.max()
        return int(kinds[most][place[most].argmin()])

    def _lists(self, found: _Said, usual: int) -> dict[int, str]:
        """Spell out the literals of each node that has several, or one of another kind than usual."""
        spelled = (found.counts > 1) | (found.kind[found.starts] != usual)
        lists = {}
        for start, count in zip(found.starts[spelled].tolist(), found.counts[spelled].tolist(), strict=True):
            rows = slice(start, start + count)
            texts, kinds = found.text[rows].to_pylist(), found.kind[rows].tolist()
            literals = [Literal(text, *self._kinds[kind]) for text, kind in zip(texts, kinds, strict=True)]
            lists[int(found.node[start])] = listed(literals)
        return lists

    def _column(self, found: _Said, rows: Int64, count: int) -> pa.Array:
        """Return a column of one literal for each of some nodes."""
        nodes, kinds, texts = found.node[rows], found.kind[rows], found.text.take(pa.array(rows))
        if (kinds == kinds[0]).all() and (values := _values(texts, self._kinds[kinds[0]][0])) is not None:
            return placed(values, nodes, count)
        spelled = zip(texts.to_pylist(), kinds.tolist(), strict=True)
        literals = [Literal(text, *self._kinds[kind]) for text, kind in spelled]
        return column_of(dict(zip(nodes.tolist(), literals, strict=True)), count)


def _fallback_names(ids: pa.Array) -> pa.Array:
    """Return what nodes without a name are called."""
    simple = pc.extract_regex(ids, _SIMPLE_NAME)
    matched = simple.is_valid().to_numpy(zero_copy_only=False)
    matched &= ~pc.starts_with(ids, FREEBASE).to_numpy(zero_copy_only=False)
    names = pc.replace_substring(simple.field("name"), "_", " ")
    others = [
        entity if entity.startswith("_:") else fallback_name(node_iri(entity))
        for entity in ids.filter(pa.array(~matched)).to_pylist()
    ]
    return pc.replace_with_mask(names, pa.array(~matched), pa.array(others, TEXT))


def _values(texts: pa.Array, datatype: str) -> pa.Array | None:
    """Return literals of one datatype as values; None if some are not what the datatype says."""
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


def column_of(literals: Mapping[int, Literal], count: int) -> pa.Array:
    """Return a column of `count` values, stored as what all literals are, as text where they differ."""
    found = {type(literal.value) for literal in literals.values()}
    values: list[Any]
    if found == {bool}:
        kind = "bool"
    elif found == {int}:
        kind = "int"
    elif found == {float} or (found == {int, float} and _fit_floats(literals.values())):
        kind = "float"
    elif all(literal.datatype == XSD + "date" and is_date(literal.text) for literal in literals.values()):
        kind = "date"
    else:
        kind = "string"
    if kind == "date":
        values = [date.fromisoformat(literal.text) for literal in literals.values()]
    else:
        values = [literal.text if kind == "string" else literal.value for literal in literals.values()]
    return placed(pa.array(values, KINDS[kind][0]), list(literals), count)


def _fit_floats(literals: Iterable[Literal]) -> bool:
    values = [literal.value for literal in literals]
    return all(not isinstance(value, int) or abs(value) <= _EXACT for value in values)
