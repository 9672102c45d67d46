"""RDF terms: how ids, relations and property names become IRIs, and the way back.

Data that is RDF keeps its IRIs. A node's id is its IRI, and a relation, property or class has a label such as
`dbo:birthPlace` that a prefix map undoes. Everything else, such as an id `New York` or a relation `is a`, becomes an
IRI of ours whose last part is the text itself, percent-encoded where SPARQL demands it: `node:New%20York` and
`kg:is%20a` stand in queries just so.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from byokg.types import EntityId

NODE = "urn:byokg:node:"
"""Namespace of ids that are no IRIs."""
TERM = "urn:byokg:term:"
"""Namespace of relations, properties and types of graphs that are no RDF."""
EDGE = "urn:byokg:edge:"
"""Namespace of the statements that carry edge properties and separate parallel edges."""

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
"""Predicates of names, best first."""

ALIAS_PREDICATES = (
    SKOS + "altLabel",
    FREEBASE + "common.topic.alias",
    *(space + "alternateName" for space in _SCHEMA_ORG),
    "http://dbpedia.org/ontology/alias",
    _FOAF + "nick",
)
"""Predicates of aliases."""

TYPE_OBJECT_TYPE = FREEBASE + "type.object.type"
INSTANCE_OF = _WIKIDATA + "P31"
TYPE_PREDICATES = ((FREEBASE + "common.topic.notable_types", TYPE_OBJECT_TYPE), (INSTANCE_OF,), (RDF_TYPE,))
"""Predicates of classes, by vocabulary: a graph with one of a vocabulary is of that vocabulary."""

GENERIC_TYPES = frozenset({OWL + "Thing", OWL + "NamedIndividual", RDFS + "Resource", FREEBASE + "common.topic"})
"""Uninformative classes; a node's type is another one, if it has any."""

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
"""Prefixes for graphs other than RDF; they are always ours."""

_SCHEMES = frozenset("http https urn ftp mailto tag info doi file data tel did".split())
"""Words that start an IRI, so that none of them may be a prefix."""

# Characters beyond ASCII allowed in both prefixed names and IRIs.
_LETTERS = (
    "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U0001fffd\U00020000-\U0002fffd\U00030000-\U0003fffd"
)
_PREFIX = re.compile(r"[A-Za-z](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?")

_WIDE = "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U0001fffd\U00020000-\U0002fffd\U00030000-\U0003fffd"
_PLAIN = f"(?:[A-Za-z0-9._~!$&'()*+,;=@{_WIDE}-]|%[0-9A-Fa-f]{{2}})"


@functools.cache
def _encoded() -> re.Pattern[str]:
    return re.compile(f"[^A-Za-z0-9_{_LETTERS}.-]|^[.-]|[.-]$")


@functools.cache
def _local() -> re.Pattern[str]:
    return re.compile(f"[A-Za-z0-9_{_LETTERS}](?:[A-Za-z0-9_{_LETTERS}.-]*[A-Za-z0-9_{_LETTERS}-])?")


@functools.cache
def _iri() -> re.Pattern[str]:
    return re.compile(
        rf"[A-Za-z][A-Za-z0-9+.-]*:(?://{_PLAIN}*(?::[0-9]*)?(?:/(?:{_PLAIN}|[:/])*)?|{_PLAIN}(?:{_PLAIN}|[:/])*)"
        rf"(?:\?(?:{_PLAIN}|[:/?])*)?(?:#(?:{_PLAIN}|[:/?])*)?"
    )


def encode(text: str) -> str:
    """Write any text as the last part of an IRI; `decode` undoes it."""
    return _encoded().sub(lambda found: _percent(found.group()), text)


@functools.cache
def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


def decode(text: str) -> str:
    """Read what `encode` wrote."""
    return unquote(text, errors="strict") if "%" in text else text


def node_iri(entity: str) -> str:
    """Return the IRI of a node: the id itself if it is one."""
    if _iri().fullmatch(entity) and not entity.startswith((NODE, TERM, EDGE)):
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
    """True if a text is an absolute IRI of the usual kinds."""
    return _iri().fullmatch(text) is not None


def local_name(iri: str) -> str:
    """Return the part after the last `#`, `/` or (in a URN) `:`, decoded; the IRI itself if that is empty."""
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
            if space not in known and "://" in space and _local().fullmatch(local):
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
        if colon and prefix in self.namespaces and _local().fullmatch(local):
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
        if prefix is None or not _local().fullmatch(local):
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
