"""Literals that a query compares with properties: their place, and the property of which types.

Source: schema linking of values in Text-to-SQL (arXiv:2301.03136, section 3.2), here over the tokens of the guard.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from byokg.graph.guard.cypher import parse_cypher
from byokg.graph.guard.guard import unquoted
from byokg.graph.guard.sparql import parse_sparql
from byokg.graph.guard.tokens import Token, read, tokenise_cypher, tokenise_sparql
from byokg.types import Language

Comparison = Literal["=", "contains", "starts", "ends"]
"""How a literal is compared: as a whole, or with a part of the value."""


@dataclass(frozen=True)
class LiteralUse:
    """A literal that a query compares with a property."""

    text: str
    """Value without quotes and escapes."""
    start: int
    stop: int
    """Characters of the literal in the query, its quotes among them: half open."""
    property: str
    """Property key; of SPARQL the predicate as written, a full IRI in angle brackets."""
    property_start: int
    property_stop: int
    """Characters of the property key in the query, quotes among them: half open."""
    types: tuple[str, ...] = ()
    """Types that the pattern allows for the owner; none if unrestricted."""
    comparison: Comparison = "="
    folded: bool = False
    """True if the query compares the value in small or capital letters."""
    number: bool = False
    """True for a literal without quotes."""
    alone: bool = True
    """False if it is one of a list, or excluded by ``<>``: the query may have results without it."""
    edge: bool = False
    """True if the property is one of edges, and `types` are relations."""


_COMPARED: dict[str, Comparison] = {"=": "=", "IN": "=", "<>": "=", "CONTAINS": "contains"}
_FOLDS = ("TOLOWER", "TOUPPER", "LOWER", "UPPER", "LCASE", "UCASE")
_WRAPS = (*_FOLDS, "TRIM", "TOSTRING", "STR")
_BEGIN = ("(", "[", ",", "AND", "OR", "XOR", "NOT", "WHERE", "WHEN", "&&", "||")
_ARITHMETIC = ("+", "-", "*", "/", "%", "^")

_Owner: TypeAlias = tuple[str, Token, tuple[str, ...], bool]
"""A property key, its token, the types of nodes or relations with it, and True for a property of edges."""

Compared: TypeAlias = tuple[Token, Comparison, bool, bool]
"""A literal, how it is compared, whether in letters of one case, and whether alone."""


def literals_in(language: Language, text: str) -> list[LiteralUse]:
    """Return the literals that a query compares with properties of nodes and edges, in its order.

    Raises:
        QueryRefused: the text cannot be read.
    """
    found = read(text, _cypher if language == "cypher" else _sparql)
    return sorted(found, key=lambda use: use.start)


def _cypher(text: str) -> list[LiteralUse]:
    tokens, _ = tokenise_cypher(text)
    at_start = {token.start: at for at, token in enumerate(tokens)}
    found: dict[int, LiteralUse] = {}
    aliases: dict[str, _Owner] = {}
    for use in parse_cypher(text).properties:
        at = at_start.get(use.name.start)
        if at is None:
            continue
        owner = (use.name.text, tokens[at], use.owner.names, use.owner.kind == "edge")
        if tokens[at + 1].key == ":":
            compared: list[Compared] = _operand(tokens, at + 2, "=", False)
        else:
            compared = [*_behind(tokens, at + 1), *_before(tokens, at)]
            if tokens[at + 1].key == "AS":
                aliases[tokens[at + 2].text] = owner
        for one in compared:
            found.setdefault(one[0].start, _use(owner, one))
    for at, token in enumerate(tokens):
        if (
            token.text in aliases
            and tokens[at - 1].key not in (".", "AS", ":")
            and tokens[at + 1].key not in (".", "(")
        ):
            for one in _behind(tokens, at + 1):
                found.setdefault(one[0].start, _use(aliases[token.text], one))
    return list(found.values())


def returned_properties(text: str) -> list[_Column]:
    """Return the types and the property of each column of a Cypher query; for other columns neither.

    Raises:
        QueryRefused: the text cannot be read.
    """
    return read(text, _returned)


def _returned(text: str) -> list[_Column]:
    tokens, _ = tokenise_cypher(text)
    held = {use.name.start: use for use in parse_cypher(text).properties if use.owner.kind == "node"}
    aliases: dict[str, _Column] = {}
    for clause, columns in _projections(tokens):
        found: list[_Column] = []
        for column in columns:
            expression = column[:-2] if len(column) > 2 and column[-2].key == "AS" else column
            use = held.get(expression[2].start) if len(expression) == 3 and expression[1].key == "." else None
            named = aliases.get(expression[0].text, _NEITHER) if len(expression) == 1 else _NEITHER
            found.append((use.owner.names, use.name.text) if use else named)
        if clause == "RETURN":
            return found
        aliases = {column[-1].text: one for column, one in zip(columns, found, strict=True)}
    return []


_Column: TypeAlias = tuple[tuple[str, ...], str]
_NEITHER: _Column = ((), "")

_CLAUSES = "MATCH WHERE WITH UNWIND OPTIONAL CALL RETURN ORDER SKIP LIMIT UNION end".split()


def _projections(tokens: Sequence[Token]) -> Iterator[tuple[str, list[list[Token]]]]:
    """Yield each WITH and RETURN, with the tokens of its columns."""
    clause, columns, depth = "", list[list[Token]](), 0
    for before, token in zip([None, *tokens], tokens, strict=False):
        depth += (token.key in ("(", "[", "{")) - (token.key in (")", "]", "}"))
        if depth == 0 and token.key in _CLAUSES and (before is None or before.key not in ("STARTS", "ENDS")):
            if clause in ("WITH", "RETURN"):
                yield clause, [column for column in columns if column]
            clause, columns = token.key, [[]]
        elif depth == 0 and token.key == ",":
            columns.append([])
        elif token.key != "DISTINCT" and columns:
            columns[-1].append(token)


def _use(owner: _Owner, compared: Compared) -> LiteralUse:
    token, comparison, folded, alone = compared
    number = token.key == "number"
    text = token.text if number else unquoted(token.text)
    key, place, types, edge = owner
    own = (text, token.start, token.stop, key, place.start, place.stop)
    return LiteralUse(*own, types, comparison, folded, number, alone, edge)


def _behind(tokens: Sequence[Token], at: int) -> list[Compared]:
    """Return the literals that an expression ending before a token is compared with."""
    folded = False
    while tokens[at].key == ")":
        opened = _opening(tokens, at)
        if tokens[opened - 1].key not in _WRAPS:
            break
        folded |= tokens[opened - 1].key in _FOLDS
        at += 1
    key = tokens[at].key
    if key in ("STARTS", "ENDS") and tokens[at + 1].key == "WITH":
        return _operand(tokens, at + 2, "starts" if key == "STARTS" else "ends", folded)
    if key == "<" and tokens[at + 1].key == ">":
        return [(one[0], one[1], one[2], False) for one in _operand(tokens, at + 2, "=", folded)]
    return _operand(tokens, at + 1, _COMPARED[key], folded) if key in _COMPARED else []


def _before(tokens: Sequence[Token], at: int) -> list[Compared]:
    """Return the literal in front of ``= variable.property``."""
    literal = at - 4
    if literal < 1 or tokens[at - 3].key != "=" or tokens[literal - 1].key not in _BEGIN:
        return []
    return [(tokens[literal], "=", False, True)] if tokens[literal].key in ("string", "number") else []


def _operand(tokens: Sequence[Token], at: int, comparison: Comparison, folded: bool) -> list[Compared]:
    """Return the literals of an operand: one, those of a list, or one within a function of letters."""
    while tokens[at].key in _WRAPS and tokens[at + 1].key == "(":
        folded |= tokens[at].key in _FOLDS
        at += 2
    if tokens[at].key in ("string", "number"):
        return [] if tokens[at + 1].key in _ARITHMETIC else [(tokens[at], comparison, folded, True)]
    if tokens[at].key not in ("[", "("):
        return []
    found: list[Compared] = []
    close = "]" if tokens[at].key == "[" else ")"
    at += 1
    while tokens[at].key not in (close, "end"):
        if tokens[at].key in ("string", "number"):
            found.append((tokens[at], comparison, folded, False))
        elif tokens[at].key != ",":
            return []
        at += 1
    return found


def _opening(tokens: Sequence[Token], at: int) -> int:
    """Return the place of the bracket that a closing one belongs to."""
    depth = 0
    for back in range(at, -1, -1):
        depth += (tokens[back].key == ")") - (tokens[back].key == "(")
        if depth == 0:
            return back
    return 0


_PARTS: dict[str, Comparison] = {"CONTAINS": "contains", "STRSTARTS": "starts", "STRENDS": "ends"}


def _sparql(text: str) -> list[LiteralUse]:
    tokens, _ = tokenise_sparql(text)
    at_start = {token.start: at for at, token in enumerate(tokens)}
    found: dict[int, LiteralUse] = {}
    variables: dict[str, _Owner] = {}
    for use in parse_sparql(text).predicates:
        at = at_start.get(use.start)
        if at is None:
            continue
        owner = (f"<{use.iri}>", tokens[at], (), False)
        if tokens[at + 1].key == "var":
            variables[tokens[at + 1].text] = owner
        for token in _objects(tokens, at + 1):
            found.setdefault(token.start, _use(owner, (token, "=", False, True)))
    for at, token in enumerate(tokens):
        if token.key == "var" and token.text in variables:
            for one in _filtered(tokens, at):
                found.setdefault(one[0].start, _use(variables[token.text], one))
    return list(found.values())


def _objects(tokens: Sequence[Token], at: int) -> Iterator[Token]:
    """Yield the literals of a list of objects."""
    while tokens[at].key in ("string", "number"):
        yield tokens[at]
        at += 1
        while tokens[at].key in ("lang", "^^", "pname", "iri"):
            at += 1
        if tokens[at].key != ",":
            return
        at += 1


def _filtered(tokens: Sequence[Token], at: int) -> list[Compared]:
    """Return the literals that a variable is compared with: by a sign, by a function, or in VALUES."""
    if tokens[at - 1].key == "VALUES":
        return _listed(tokens, at + 1)
    left, right, folded = at - 1, at + 1, False
    while left > 0 and tokens[left].key == "(" and tokens[left - 1].key in _WRAPS and tokens[right].key == ")":
        folded |= tokens[left - 1].key in _FOLDS
        left, right = left - 2, right + 1
    function = tokens[left - 1].key if left > 0 and tokens[left].key == "(" else ""
    if function in _PARTS and tokens[right].key == ",":
        return _operand(tokens, right + 1, _PARTS[function], folded)
    return _behind(tokens, at + 1)


def _listed(tokens: Sequence[Token], at: int) -> list[Compared]:
    """Return the literals of a block of VALUES; tags of languages and datatypes are left out."""
    found: list[Compared] = []
    while tokens[at].key not in ("}", "end"):
        if tokens[at].key in ("string", "number"):
            found.append((tokens[at], "=", False, False))
        at += 1
    return found
