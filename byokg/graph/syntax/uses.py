"""What a query names, and where: labels, relation types and properties, or predicates and classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

End = Literal["node", "edge"]


@dataclass(frozen=True)
class Name:
    """A label, relation type or property key as written, and the character where it starts."""

    text: str
    start: int


@dataclass(frozen=True)
class Binding:
    """What a pattern says of a variable: one of these labels or types, none when it does not say."""

    kind: End
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class LabelUse:
    """A label or relation type that a query names; `kind` is None on a variable whose kind is unknown."""

    name: Name
    kind: End | None


@dataclass(frozen=True)
class PropertyUse:
    """A property asked of a variable, or of an anonymous pattern part."""

    name: Name
    owner: Binding


@dataclass(frozen=True)
class EdgeUse:
    """One step of a pattern, head to tail; `directed` is false where it may be walked either way."""

    types: tuple[Name, ...]
    head: Binding
    tail: Binding
    directed: bool
    single: bool
    """One edge, so both ends are its ends; false for variable length."""


@dataclass(frozen=True)
class IriUse:
    """A predicate, or the class behind ``a``: the full IRI and where it stands."""

    iri: str
    start: int
