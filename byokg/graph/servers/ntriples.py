"""Triples as a SPARQL server answers a CONSTRUCT or DESCRIBE with them: N-Triples, read line by line as it arrives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from byokg.graph.guard.sparql import TRIPLE
from byokg.graph.guard.tokens import NUMBERED_ESCAPE, character

_TERM = re.compile(
    r"""[ \t]*(?:
      <(?P<uri>[^<>"{}|^`\x00-\x20]*)>
    | _:(?P<bnode>[^\s<>"]*[^\s<>".])
    | "(?P<literal>(?:[^"\\]|\\.)*+)"(?:@(?P<lang>[A-Za-z]+(?:-[A-Za-z0-9]+)*)(?:--[a-z]+)?|\^\^<(?P<type>[^<>\s]*)>)?
    | (?P<triple><<\(?)
    )""",
    re.VERBOSE,
)
_SIGNS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_CLOSE = re.compile(r"[ \t]*\)?>>")
_END = re.compile(r"[ \t]*\.[ \t]*(?:#.*)?")
_DEPTH = 50


class TripleLines:
    """Takes a reply in any pieces, and keeps each of its lines once, up to so many."""

    def __init__(self, most: int) -> None:
        """Keep up to `most` lines."""
        self._most = most
        self._rest = b""
        self._lines: dict[bytes, None] = {}

    def take(self, piece: bytes) -> bool:
        """Take a piece; return whether there are as many lines as wanted, so that the rest need not be read."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            if (said := line.strip()) and not said.startswith(b"#"):
                self._lines[said] = None
        return len(self._lines) >= self._most

    def rows(self) -> list[Mapping[str, Mapping[str, Any]]]:
        """Return the triples, with terms as in SPARQL's JSON results. Raises `ValueError` for malformed N-Triples."""
        self.take(b"\n")
        return [_triple(line.decode()) for line in list(self._lines)[: self._most]]


def _triple(line: str) -> dict[str, Mapping[str, Any]]:
    terms, at = _terms(line, 0, 0)
    if _END.fullmatch(line, at) is None:
        raise ValueError(f"a triple ends in a dot: {line[:100]!r}")
    return terms


def _terms(line: str, at: int, depth: int) -> tuple[dict[str, Mapping[str, Any]], int]:
    """Read three terms from a place on; return them, and the place behind."""
    terms: dict[str, Mapping[str, Any]] = {}
    for name in TRIPLE:
        found = _TERM.match(line, at)
        if found is None or depth > _DEPTH:
            raise ValueError(f"the {name} of a triple is missing: {line[:100]!r}")
        kind, at = found.lastgroup, found.end()
        if kind == "triple":
            inner, at = _terms(line, at, depth + 1)
            terms[name] = {"type": "triple", "value": inner}
            closed = _CLOSE.match(line, at)
            if closed is None:
                raise ValueError(f"a triple within a triple is never closed: {line[:100]!r}")
            at = closed.end()
        elif found["literal"] is not None:
            literal = {"type": "literal", "value": _unescaped(found["literal"])}
            said = {"xml:lang": found["lang"], "datatype": found["type"] and _unescaped(found["type"])}
            terms[name] = literal | {key: value for key, value in said.items() if value}
        else:
            assert kind is not None
            terms[name] = {"type": kind, "value": _unescaped(found[kind])}
    return terms, at


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    pieces = re.split(r"(\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\.)", text)
    return "".join(_sign(piece) if piece.startswith("\\") else piece for piece in pieces)


def _sign(escape: str) -> str:
    numbered = NUMBERED_ESCAPE.fullmatch(escape)
    return character(numbered) if numbered else _SIGNS.get(escape[1], escape[1])
