"""The grammar of path queries: parses text into a `PathQuery`, or raises an error with place and expectation.

The syntax is that of Stardog's path queries with SPARQL's graph patterns and property paths, and beyond it GQL's
selectors (ANY, SHORTEST k, SHORTEST k GROUPS) and restrictors (WALK, TRAIL, ACYCLIC, SIMPLE), VIA UNDIRECTED,
MATCHING and COST. Parsing takes time in proportion to the length of any text.

Source: Stardog's documentation, "Path Queries", "Path Query Syntax".
Differs: angle brackets may hold any name (`<Tom Hanks>`), and a local name may begin with a digit or hold dots.
"""

from __future__ import annotations

import contextlib
import functools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken, v_args
from lark.exceptions import VisitError

from byokg.errors import PathQueryInvalid
from byokg.graph.pathql.query import (
    Alternatives,
    AnyLink,
    Bind,
    Element,
    Endpoint,
    Exists,
    Expression,
    Filter,
    FunctionCall,
    Group,
    InferenceRule,
    Inverse,
    Link,
    LiteralTerm,
    Minus,
    NameTerm,
    NotLink,
    Optional,
    PathExpression,
    PathQuery,
    Repeat,
    Restrictor,
    Selector,
    Sequence,
    Term,
    TriplePattern,
    Union,
    Values,
    Variable,
)

_DEEPEST = 60
"""Brackets inside brackets at most."""
_LONGEST = 250_000
"""Characters of a query at most."""
_MOST_WORDS = 12_000
"""Words and signs of a query at most: some 5,000 alternatives."""
_MOST_REPEATS = 200

_GRAMMAR = Path(__file__).with_suffix(".lark")

_UNWRITTEN = re.compile(
    r"""(?i)=\s*[:"]*([^\s<>=:{}"]+(?:\s+(?!(?:END|VIA|MATCHING|COST|MAX|OFFSET|LIMIT)\b)[\w'-]+)*)"""
)
"""A name behind START or END as people write it who do not know how: `:Tom Hanks`, `:AC/DC`."""

_WORDS = re.compile(
    r"(?P<space>\s+|\#[^\n]*)|(?P<text>\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?|<[^<>\n{}()]*>)"
    r"|(?P<open>[{(])|(?P<close>[})])|[\w:.?$-]+|.",
    re.S,
)

RDF_TYPE = NameTerm("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")

_CASTS = frozenset("boolean date datetime decimal double float gyear int integer string".split())

_WHOLE = frozenset(
    "integer int long short byte gYear nonNegativeInteger positiveInteger nonPositiveInteger negativeInteger "
    "unsignedInt unsignedLong unsignedShort unsignedByte".split()
)
"""Datatypes of whole numbers."""

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}

_SAID = {
    "VARIABLE": "a variable such as ?x",
    "IRI": "a name such as <Tom Hanks>",
    "PREFIXED": "a name such as :Alice",
    "NAMESPACE": "a prefix such as ex:",
    "INTEGER": "a whole number",
    "NUMBER": "a number",
    "STRING": "a string",
    "FUNCTION": "a function",
    "LANGUAGE": "a language tag",
    "RESTRICTOR": "WALK, TRAIL, ACYCLIC, SIMPLE",
    "COMPARISON": "a comparison",
    "MAYBE": "?",
    "UNDIRECTED": "UNDIRECTED",
    "GROUPS": "GROUPS",
    "A": "a",
    "$END": "the end of the query",
}
"""How the names of terminals read in a message."""


def parse(text: str) -> PathQuery:
    """Parse a path query.

    Raises:
        PathQueryInvalid: the text is no path query; the message has line, column and the expected tokens.
    """
    # The same query often runs on other nodes, so it is parsed once, with placeholders for their names.
    names: list[str] = []

    def place(found: re.Match[str]) -> str:
        names.append(found[2])
        return f"{found[1]}{_PLACES[len(names) - 1]}"

    if len(text) <= _LONGEST:
        template = _CONSTANT.sub(place, text, count=2)
        if len(names) == 2 and not any(each[1] in text for each in _PLACES):
            with contextlib.suppress(PathQueryInvalid):
                return _filled(_parse(_QueryText(template)), names)
    return _parse(_QueryText(text))


class _QueryText(str):
    """Text that is hashed by its length and ends: to hash thousands of names takes as long as a search."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash((len(self), self[:200], self[-200:]))


_PLACES = "<\x01>", "<\x02>"
_CONSTANT = re.compile(
    r"(\b(?:START|END)\s+[?$]\w+\s*=\s*)(<[^<>\n]*>|:[\w-]+)(?=\s+(?:END|VIA|MATCHING)\b)", re.IGNORECASE
)


def _filled(query: PathQuery, names: list[str]) -> PathQuery:
    """Put names where `parse` made places for them."""
    start, end = (NameTerm(name[1:-1]) if name[0] == "<" else NameTerm(name[1:], "") for name in names)
    if query.start.names != (NameTerm(_PLACES[0][1:-1]),) or query.end.names != (NameTerm(_PLACES[1][1:-1]),):
        raise PathQueryInvalid("its names stand elsewhere", 1, 1)
    return replace(query, start=Endpoint(query.start.variable, (start,)), end=Endpoint(query.end.variable, (end,)))


def parse_rules(text: str) -> list[InferenceRule]:
    """Read rules: `IF { ?x :partOf ?y . ?y :locatedIn ?z } THEN { ?x :partOf ?z }`, any number of them.

    Raises:
        PathQueryInvalid: the text holds something else.
    """
    return _parse_text(text, "rules")  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=256)
def _parse(text: _QueryText) -> PathQuery:
    return _parse_text(str(text), "start")  # type: ignore[no-any-return]


def _parse_text(text: str, start: str) -> Any:
    _measure(text)
    try:
        return _parser().parse(text, start)
    except VisitError as error:
        if isinstance(error.orig_exc, PathQueryInvalid):
            raise error.orig_exc from None
        raise
    except UnexpectedInput as error:
        _refuse(text, error)


@functools.cache
def _parser() -> Lark:
    return Lark(
        _GRAMMAR.read_text("utf-8"),
        start=["start", "rules"],
        parser="lalr",
        lexer="contextual",
        transformer=_QueryBuilder(),
        propagate_positions=False,
    )


def _measure(text: str) -> None:
    """Refuse a text that is too long or nested too deeply, before any of it is parsed."""
    if len(text) > _LONGEST:
        raise PathQueryInvalid(f"it has {len(text):,} characters, and {_LONGEST:,} are allowed", 1, 1)
    depth = words = 0
    for found in _WORDS.finditer(text):
        kind = found.lastgroup
        words += kind != "space"
        depth += (kind == "open") - (kind == "close")
        if depth > _DEEPEST:
            _fail(text, found.start(), f"brackets are nested more than {_DEEPEST} deep")
        if words > _MOST_WORDS:
            _fail(text, found.start(), f"it has more than {_MOST_WORDS:,} words and signs")


def _fail(text: str, place: int, reason: str, expected: tuple[str, ...] = ()) -> NoReturn:
    line = text.count("\n", 0, place) + 1
    raise PathQueryInvalid(reason, line, place - text.rfind("\n", 0, place), expected) from None


def _refuse(text: str, error: UnexpectedInput) -> NoReturn:
    """Raise the error of a failed parse: its place, and the possible tokens there."""
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        place, found = error.token.start_pos or 0, str(error.token)
    elif isinstance(error, UnexpectedCharacters):
        place = error.pos_in_stream or 0
        word = re.compile(r"\w+|.", re.S).match(text, place)
        found = word.group() if word else ""
    else:
        place, found = len(text.rstrip()), ""
    expected = next(filter(None, (getattr(error, name, None) for name in ("accepts", "expected", "allowed"))), ())
    names = sorted({str(name) for name in expected}, key=lambda name: (name not in _SAID, name))
    patterns = {terminal.name: terminal.pattern.value for terminal in _parser().terminals}
    said = [(_SAID.get(name) or patterns.get(name, name)).replace("\\", "") for name in names]
    unexpected = f"unexpected {_short(found)!r}" if found else "the query ends too early"
    for name in _UNWRITTEN.finditer(text, max(0, place - 200), place + 200):
        if name.start() < place < name.end() and re.search(r"[\s/]", name[1]):
            unexpected += f"; such a name is written <{name[1]}>"
    _fail(text, place, unexpected, tuple(said))


def _short(text: str) -> str:
    return text if len(text) <= 30 else f"{text[:30]}…"


def _number(token: Token, most: int = 1 << 31) -> int:
    value = int(token) if len(token) < 12 else most + 1
    if value > most:
        raise PathQueryInvalid(f"{_short(str(token))} is too large; use {most:,} or less", *_place(token))
    return value


def _place(token: Token) -> tuple[int, int]:
    return token.line or 1, token.column or 1


def _unescaped(text: str) -> str:
    """Return the characters between the quotes of a string."""
    return re.sub(
        r"\\(u[0-9A-Fa-f]{4}|U00[01][0-9A-Fa-f]{5}|.)",
        lambda found: (
            chr(min(int(found[1][1:], 16), 0x10FFFF)) if len(found[1]) > 1 else _ESCAPES.get(found[1], found[1])
        ),
        text[1:-1],
        flags=re.S,
    )


def _literal(text: str, datatype: str, place: tuple[int, int]) -> LiteralTerm:
    """Return a literal of a datatype; numbers and truth values as such. Raises `PathQueryInvalid`."""
    try:
        if datatype in _WHOLE:
            return LiteralTerm(int(text), datatype)
        if datatype in ("decimal", "double", "float"):
            return LiteralTerm(float(text), datatype)
    except ValueError:
        raise PathQueryInvalid(f'"{_short(text)}" is no {datatype}', *place) from None
    if datatype == "boolean":
        if text not in ("true", "false", "0", "1"):
            raise PathQueryInvalid(f'"{_short(text)}" is no boolean; write true or false', *place)
        return LiteralTerm(text in ("true", "1"))
    return LiteralTerm(text, "" if datatype == "string" else datatype)


@v_args(inline=True)
class _QueryBuilder(Transformer[Token, PathQuery]):
    """Turns parse results into records, from the inside out, while parsing."""

    # Queries

    def start(self, *parts: Any) -> PathQuery:
        prefixes = dict(parts[:-1])
        fields: dict[str, Any] = parts[-1]
        return PathQuery(**fields, prefixes=prefixes)

    def rules(self, *parts: Any) -> list[InferenceRule]:
        prefixes: dict[str, str] = dict(part for part in parts if isinstance(part, tuple))
        return [replace(part, prefixes=prefixes) for part in parts if isinstance(part, InferenceRule)]

    def rule(self, when: Group, then: Group) -> InferenceRule:
        parts: list[tuple[TriplePattern, ...]] = []
        for group in (when, then):
            triples = tuple(each for each in group.elements if isinstance(each, TriplePattern))
            if not triples or len(triples) != len(group.elements):
                raise PathQueryInvalid("IF and THEN of a rule are made of triples", 1, 1)
            parts.append(triples)
        return InferenceRule(parts[0], parts[1])

    def prefix(self, namespace: Token, iri: Token) -> tuple[str, str]:
        return str(namespace)[:-1], str(iri)[1:-1]

    def base(self, iri: Token) -> None:
        raise PathQueryInvalid(
            "BASE has no meaning here, because <Tom Hanks> is a name; write IRIs in full, or declare a PREFIX",
            *_place(iri),
        )

    def any(self, count: Token | None = None) -> tuple[str, Any]:
        return "any", None if count is None else _number(count)

    def all(self) -> tuple[str, Any]:
        return "all", True

    def shortest(self, *parts: Token) -> tuple[str, Any]:
        count = next((_number(part) for part in parts if part.type == "INTEGER"), None)
        return "shortest", (count, any(part.type == "GROUPS" for part in parts))

    def restrictor(self, token: Token) -> tuple[str, Any]:
        word = token.upper()
        return "restrictor", Restrictor(word if word in Restrictor.__members__ else word.removesuffix("S"))

    def cyclic(self) -> tuple[str, Any]:
        return "cyclic", True

    def dataset(self, name: NameTerm) -> tuple[str, Any]:
        return "graphs", name

    def named_dataset(self, *parts: Any) -> tuple[str, Any]:
        raise PathQueryInvalid("FROM NAMED goes with GRAPH, which there is not; write FROM", 1, 1)

    def endpoint(self, variable: Token, name: NameTerm | None, pattern: Group | None) -> Endpoint:
        return Endpoint(self.variable(variable), () if name is None else (name,), pattern)

    def query(self, *parts: Any) -> dict[str, Any]:
        fields: dict[str, Any] = {"graphs": ()}
        modes: dict[str, Any] = {}
        endpoints = [part for part in parts if isinstance(part, Endpoint)]
        for part in parts:
            if isinstance(part, dict):
                fields |= part
            elif isinstance(part, tuple):
                key, value = part
                if key == "graphs":
                    fields["graphs"] += (value,)
                elif key in ("max_length", "offset", "limit", "cost"):
                    if key in fields:
                        raise PathQueryInvalid(f"{key.upper().replace('_', ' ')} stands twice", 1, 1)
                    fields[key] = value
                else:
                    if key in modes:
                        raise PathQueryInvalid(f"{key.upper()} stands twice", 1, 1)
                    modes[key] = value
        fields["start"], fields["end"] = endpoints
        fields["selector"], fields["count"] = _selector(modes)
        fields["restrictor"] = modes.get("restrictor", Restrictor.SIMPLE)
        fields["cyclic"] = modes.get("cyclic", False)
        return fields

    def via_any(self, *parts: Token) -> dict[str, Any]:
        return {"via": self.variable(parts[-1]), "undirected": len(parts) > 1}

    def via_path(self, *parts: Any) -> dict[str, Any]:
        return {"via": parts[-1], "undirected": len(parts) > 1}

    def via_group(self, *parts: Any) -> dict[str, Any]:
        if len(parts) > 1:
            raise PathQueryInvalid("UNDIRECTED is for expressions; write a UNION in a pattern", *_place(parts[0]))
        return {"via": parts[-1]}

    def matching(self, *parts: Any) -> dict[str, Any]:
        return {"via": parts[-1], "undirected": len(parts) > 1, "whole": True}

    def max_length(self, token: Token) -> tuple[str, Any]:
        return "max_length", _number(token)

    def offset(self, token: Token) -> tuple[str, Any]:
        return "offset", _number(token)

    def limit(self, token: Token) -> tuple[str, Any]:
        return "limit", _number(token)

    def cost(self, what: Token | NameTerm) -> tuple[str, Any]:
        return "cost", self.variable(what) if isinstance(what, Token) else what

    # Path expressions

    inverse, link = Inverse, Link

    def alternatives(self, *parts: PathExpression) -> PathExpression:
        return Alternatives(parts)

    def in_sequence(self, *parts: PathExpression) -> PathExpression:
        return Sequence(parts)

    def star(self, path: PathExpression) -> PathExpression:
        return Repeat(path, 0, None)

    def plus(self, path: PathExpression) -> PathExpression:
        return Repeat(path, 1, None)

    def maybe(self, path: PathExpression, _: Token) -> PathExpression:
        return Repeat(path, 0, 1)

    def exactly(self, path: PathExpression, count: Token) -> PathExpression:
        return self.between(path, count, count)

    def at_least(self, path: PathExpression, least: Token) -> PathExpression:
        return Repeat(path, _number(least, _MOST_REPEATS), None)

    def at_most(self, path: PathExpression, most: Token) -> PathExpression:
        return Repeat(path, 0, _number(most, _MOST_REPEATS))

    def between(self, path: PathExpression, least: Token, most: Token) -> PathExpression:
        low, high = _number(least, _MOST_REPEATS), _number(most, _MOST_REPEATS)
        if high < low:
            raise PathQueryInvalid(f"{{{low},{high}}} asks for at least {low} and at most {high}", *_place(least))
        return Repeat(path, low, high)

    def type(self) -> PathExpression:
        return Link(RDF_TYPE)

    def not_link(self, *excluded: Any) -> PathExpression:
        forward = tuple(each.name for each in excluded if isinstance(each, Link))
        inverse = (each.path for each in excluded if isinstance(each, Inverse))
        backward = tuple(each.name for each in inverse if isinstance(each, Link))
        return NotLink(forward, backward) if excluded else AnyLink()

    # Graph patterns

    filter, optional, minus = Filter, Optional, Minus

    def group(self, *parts: Any) -> Group:
        elements: list[Element] = []
        for part in parts:
            elements += part if isinstance(part, list) else [part]
        return Group(tuple(elements))

    def same_subject(self, subject: Term, properties: list[Any]) -> list[TriplePattern]:
        return [TriplePattern(subject, verb, value, notes) for verb, value, notes in properties]

    def properties(self, *parts: list[Any]) -> list[Any]:
        return [each for part in parts for each in part]

    triples = properties

    def property(self, verb: Any, *objects: Any) -> list[Any]:
        return [(verb, value, notes) for value, notes in objects]

    def object(self, term: Term, notes: list[Any] | None) -> tuple[Term, Any]:
        said = []
        for verb, value, inner in notes or ():
            if not isinstance(verb, Link) or inner:
                raise PathQueryInvalid("what is said about an edge is a property and its value", 1, 1)
            said.append((verb.name, value))
        return term, tuple(said)

    def bind(self, expression: Expression, variable: Token) -> Element:
        return Bind(expression, self.variable(variable))

    def values_one(self, variable: Token, *values: Any) -> Element:
        return Values((self.variable(variable),), tuple((value,) for value in values))

    def values_many(self, *parts: Any) -> Element:
        names = tuple(self.variable(part) for part in parts if isinstance(part, Token))
        rows = tuple(part for part in parts if isinstance(part, tuple))
        if any(len(row) != len(names) for row in rows):
            raise PathQueryInvalid(f"each row of VALUES needs {len(names)} values", 1, 1)
        return Values(names, rows)

    def row(self, *values: Any) -> tuple[Any, ...]:
        return values

    def undef(self) -> None:
        return None

    def union(self, *groups: Group) -> Element:
        return Union(groups)

    # Conditions

    exists = Exists

    def not_exists(self, group: Group) -> Expression:
        return Exists(group, negated=True)

    def disjunction(self, *parts: Expression) -> Expression:
        return FunctionCall("||", parts)

    def conjunction(self, *parts: Expression) -> Expression:
        return FunctionCall("&&", parts)

    def compared(self, left: Expression, sign: Token, right: Expression) -> Expression:
        return FunctionCall(str(sign), (left, right))

    def among(self, *parts: Expression | None) -> Expression:
        return FunctionCall("in ()", tuple(part for part in parts if part is not None))

    def not_among(self, *parts: Expression | None) -> Expression:
        return FunctionCall("!", (self.among(*parts),))

    def chain(self, *parts: Any) -> Expression:
        """Return operands joined by signs, from the left; a long chain stays flat."""
        return FunctionCall("+-", tuple(LiteralTerm(str(part)) if isinstance(part, Token) else part for part in parts))

    def negation(self, operand: Expression) -> Expression:
        return FunctionCall("!", (operand,))

    def signed(self, sign: Token, operand: Expression) -> Expression:
        return FunctionCall("-", (operand,)) if sign == "-" else operand

    def call(self, function: Token, *arguments: Expression) -> Expression:
        return FunctionCall(function.lower(), arguments)

    def cast(self, name: NameTerm, *arguments: Expression) -> Expression:
        local = re.split(r"[#/:]", name.text)[-1].lower()
        return FunctionCall(local if local in _CASTS or name.prefix == "fn" else str(name), arguments)

    # Terms

    def variable(self, token: Token) -> Variable:
        return Variable(str(token)[1:])

    def iri(self, token: Token) -> NameTerm:
        return NameTerm(str(token)[1:-1])

    def prefixed(self, token: Token) -> NameTerm:
        prefix, _, local = str(token).partition(":")
        return NameTerm(re.sub(r"\\(.)", r"\1", local), prefix)

    def namespace_only(self, token: Token) -> NameTerm:
        return NameTerm("", str(token)[:-1])

    def string(self, token: Token) -> LiteralTerm:
        return LiteralTerm(_unescaped(token))

    def tagged(self, token: Token, language: Token) -> LiteralTerm:
        return LiteralTerm(_unescaped(token), language=str(language)[1:].lower())

    def typed(self, token: Token, datatype: NameTerm) -> LiteralTerm:
        return _literal(_unescaped(token), re.split(r"[#/]", datatype.text)[-1], _place(token))

    def number(self, token: Token) -> LiteralTerm:
        text = str(token)
        return LiteralTerm(int(text) if text.isdigit() and len(text) < 300 else float(text))

    def negative(self, sign: Token, token: Token) -> LiteralTerm:
        literal = self.number(token)
        assert isinstance(literal.value, int | float)
        return LiteralTerm(-literal.value) if sign == "-" else literal

    def true(self) -> LiteralTerm:
        return LiteralTerm(True)

    def false(self) -> LiteralTerm:
        return LiteralTerm(False)


def _selector(modes: dict[str, Any]) -> tuple[Selector, int]:
    """Return the selector of the words ANY, ALL, SHORTEST and k."""
    shortest = modes.get("shortest")
    if shortest is None:
        if "any" in modes and "all" in modes:
            raise PathQueryInvalid("ANY and ALL exclude each other", 1, 1)
        if "any" in modes:
            return Selector.ANY, modes["any"] or 1
        return (Selector.ALL, 1) if "all" in modes else (Selector.ALL_SHORTEST, 1)
    count, groups = shortest
    if count is None and groups:
        count = 1
    if count is not None and ("any" in modes or "all" in modes):
        raise PathQueryInvalid("ANY and ALL go with SHORTEST, not with SHORTEST k", 1, 1)
    if count == 0 or modes.get("any") == 0:
        raise PathQueryInvalid("0 paths are asked for; use 1 or more", 1, 1)
    if "any" in modes:
        if modes["any"]:
            raise PathQueryInvalid("ANY k SHORTEST is written SHORTEST k", 1, 1)
        return Selector.ANY_SHORTEST, 1
    if count is None:
        return Selector.ALL_SHORTEST, 1
    return (Selector.SHORTEST_GROUPS if groups else Selector.SHORTEST), count
