"""What an RDF literal is as a property value, which of several values stands for all, and the way back."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from byokg.graph.iris import RDF, XSD
from byokg.types import Value

ALL_VALUES = "[]"
"""Ending of the property that lists all values, as Turtle writes them, where one value does not say everything."""

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
_PLAIN = frozenset({XSD + "string", RDF + "langString", XSD + "integer", XSD + "double", XSD + "boolean"})
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
                return number
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
        return not self.language and self.datatype in _PLAIN and of_value(self.value).datatype == self.datatype

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
