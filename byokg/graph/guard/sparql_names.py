"""Prefixed names and parameters of a checked SPARQL query, written out as IRIs and literals."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from byokg.errors import QueryInvalid
from byokg.graph.guard.tokens import tokenise_sparql
from byokg.graph.rdf.iris import Prefixes, node_iri
from byokg.graph.rdf.literals import of_value
from byokg.text import encodable
from byokg.types import Cell, NodeCell

_ESCAPED = re.compile(r"\\(.)")
_UNSAFE = re.compile(r"[\x00-\x20<>\"{}|\\^`]")


def addressable(iri: str) -> bool:
    """Tell whether an IRI from an answer can stand in a query."""
    return ":" in iri and _UNSAFE.search(iri) is None


@dataclass(frozen=True)
class Sent:
    """A query as it is sent: prefixed names as IRIs, parameters in place. Its lines are those of the query written."""

    text: str
    moved: Mapping[int, Sequence[tuple[int, int]]]
    """For each line, counting from 1: (column from which on, how far columns are to the right of those written)."""

    def written(self, line: int, column: int) -> tuple[int, int]:
        """Return where in the query as written a line and column of the text sent stand."""
        shift = 0
        for start, distance in self.moved.get(line, ()):
            if column < start:
                break
            shift = distance
        return line, max(column - shift, 1)


def chooses_graphs(text: str) -> bool:
    """Tell whether a query that `guard.check_sparql` handed on says FROM, and so does not ask all graphs."""
    return any(token.key == "FROM" for token in tokenise_sparql(text)[0])


def complete(text: str, parameters: Mapping[str, Cell], prefixes: Prefixes) -> Sent:
    """Write prefixed names as IRIs, and put parameters in the place of the variables they name.

    Not every engine reads all prefixed names (pyoxigraph stumbles over `fb:people.person.parents`), but all read IRIs.

    Args:
        text: the query as `guard.check_sparql` hands it on.
        parameters: variable name without `?` to value; a `NodeCell` becomes the node's IRI, a list `1, 2` (for
            `IN (?x)`).
        prefixes: what may be used undeclared.

    Raises:
        QueryInvalid: no variable has a parameter's name, or a value has no SPARQL form.
    """
    spelled = {name: _spelled(name, value) for name, value in parameters.items()}
    namespaces = {f"{prefix}:": namespace for prefix, namespace in prefixes.namespaces.items()}
    met: set[str] = set()
    parts: list[str] = []
    moved: dict[int, list[tuple[int, int]]] = {}
    last, line, line_start, shift = 0, 1, 0, 0
    tokens, _ = tokenise_sparql(text)
    before = ""
    for token, following in pairwise(tokens):
        new = None
        declares, before = before == "PREFIX", token.key
        if token.key == "var" and token.text[1:] in spelled:
            met.add(token.text[1:])
            new = spelled[token.text[1:]]
        elif token.key == "pname" and declares and following.key == "iri":
            namespaces[token.text] = following.text[1:-1]
        elif token.key == "pname":
            prefix, colon, local = token.text.partition(":")
            iri = namespaces.get(prefix + colon, "") + _ESCAPED.sub(lambda part: part[1], local)
            new = f"<{iri}>" if prefix + colon in namespaces and addressable(iri) else None
        if new is None:
            continue
        parts += [text[last : token.start], new]
        breaks = text.count("\n", last, token.start)
        if breaks:
            line, line_start, shift = line + breaks, text.rindex("\n", last, token.start) + 1, 0
        shift += len(new) - (token.stop - token.start)
        moved.setdefault(line, []).append((token.stop - line_start + shift + 1, shift))
        last = token.stop
    for name in parameters:
        if name not in met:
            raise QueryInvalid(f"parameter {name!r} is given, but ?{name} is nowhere in the query")
    return Sent("".join([*parts, text[last:]]), moved)


def _spelled(name: str, value: Cell) -> str:
    if encodable(text := value.id if isinstance(value, NodeCell) else str(value)) != text:
        raise QueryInvalid(f"parameter {name!a} holds half of a character (a lone surrogate); pass whole characters")
    if isinstance(value, NodeCell):
        return f"<{node_iri(value.id)}>"
    if isinstance(value, bool | int | float | str):
        return str(of_value(value))
    if isinstance(value, Sequence):
        return ", ".join(_spelled(name, item) for item in value)
    raise QueryInvalid(f"parameter {name!r} is a {type(value).__name__}; SPARQL takes text, numbers, nodes and lists")
