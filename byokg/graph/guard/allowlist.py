"""Allowed calls and forbidden words of queries (`allowlist.toml`), and records of the names that a query uses.

`nearest_names` proposes existing names for a wrong one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from rapidfuzz import fuzz, process

_LISTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def _by_lower_case(names: str) -> dict[str, str]:
    return {name.lower(): name for name in names.split()}


WRITES: dict[str, str] = _LISTS["cypher"]["writes"]
"""Cypher words that write at the start of a clause, with a message for the query's author."""

OUTSIDE: dict[str, str] = _LISTS["cypher"]["outside"]
"""Cypher words that reach past the graph or act on the server, with a message for the query's author."""

SQL: dict[str, str] = _LISTS["cypher"]["sql"]
"""Words of SQL, with what to write in Cypher instead."""

PROCEDURES = _by_lower_case(_LISTS["cypher"]["procedures"])
"""Procedures that only read, without ``apoc.`` in front; how to write each, by its name in lower case."""

FUNCTIONS = _by_lower_case(_LISTS["cypher"]["functions"])
"""Functions with a namespace that only compute or read, without ``apoc.`` in front; by name in lower case."""

FUNCTION_NAMESPACES = frozenset(_LISTS["cypher"]["function_namespaces"].split())
"""Namespaces all of whose functions only compute or read, without ``apoc.`` in front."""

SPARQL_FUNCTIONS = frozenset(_LISTS["sparql"]["functions"].split())

SPARQL_FUNCTION_IRIS = tuple(_LISTS["sparql"]["function_iris"])
"""Beginnings of the IRIs of functions that only compute."""

SPARQL_UPDATES: dict[str, str] = _LISTS["sparql"]["updates"]

SPARQL_OUTSIDE: dict[str, str] = _LISTS["sparql"]["outside"]


_SIGNS = re.compile(r"[\W_]")
_COMPARED = 200
"""Characters of a name that are compared with others: a name in a query may be as long as the query."""


def nearest_names(name: str, known: Iterable[str], count: int = 3, cutoff: float = 60.0) -> list[str]:
    """Return up to `count` of the known names, the most similar first.

    Similarity goes from 0 to 100: the shared part of the spelling, or nearly as much if all words of one name are in
    the other. Case and signs between words do not count. Of long names the beginnings are compared.
    """
    candidates = sorted(set(known))
    asked, folded = [_folded(name[:_COMPARED])], [_folded(known[:_COMPARED]) for known in candidates]
    spelling = process.cdist(asked, folded, scorer=fuzz.ratio, dtype=np.float64)[0]
    words = process.cdist(asked, folded, scorer=fuzz.token_set_ratio, dtype=np.float64)[0]
    scores = np.maximum(spelling, 0.9 * words)
    return [candidates[at] for at in np.argsort(-scores, kind="stable")[:count].tolist() if scores[at] >= cutoff]


@lru_cache(1 << 14)
def _folded(name: str) -> str:
    return _SIGNS.sub(" ", name.casefold())


End = Literal["node", "edge"]


@dataclass(frozen=True)
class Name:
    """A label, relation type or property key as written, and its first character."""

    text: str
    start: int


@dataclass(frozen=True)
class Binding:
    """Labels or types that a pattern allows for a variable, none if unrestricted."""

    kind: End
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class LabelUse:
    """A label or relation type that a query names; `kind` is None on a variable whose kind is unknown."""

    name: Name
    kind: End | None


@dataclass(frozen=True)
class PropertyUse:
    """Use of a property of a variable, or of an anonymous pattern part."""

    name: Name
    owner: Binding


@dataclass(frozen=True)
class EdgeUse:
    """One step of a pattern, head to tail; `directed` is False if it may be walked either way."""

    types: tuple[Name, ...]
    head: Binding
    tail: Binding
    directed: bool
    single: bool
    """One edge, so both ends are its ends; false for variable length."""


@dataclass(frozen=True)
class IriUse:
    """A predicate, or the class behind ``a``: the full IRI and its place."""

    iri: str
    start: int
