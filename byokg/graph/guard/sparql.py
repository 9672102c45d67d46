"""SPARQL 1.1 queries, parsed as far as it takes to know that they only read, and which predicates they name.

A recursive descent over the query grammar; `sparql_patterns` reads patterns and expressions. SPARQL's words are never
names, so every word must be one that is known here. SERVICE is refused because it makes a server call another address,
and updates because they write.

CONSTRUCT and DESCRIBE answer with a graph: stores read its triples as rows of `TRIPLE`. They get no LIMIT, which would
count solutions, of which each may make any number of triples.

`complete` then writes prefixed names and parameters out as IRIs and literals.

Accepted beyond SPARQL 1.1: reified triples and annotations of SPARQL 1.2, LATERAL, and `{n,m}` in paths.

Source: SPARQL 1.1 Query Language, section 19.8.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from byokg.errors import QueryInvalid
from byokg.graph.guard.allowlist import SPARQL_FUNCTIONS, IriUse
from byokg.graph.guard.sparql_patterns import NAMES, SparqlPatterns
from byokg.graph.guard.tokens import Edit, RowLimit, Unreadable, row_count, tokenise_sparql
from byokg.text.names import encodable
from byokg.types import Cell, NodeCell

if TYPE_CHECKING:
    from byokg.graph.rdf.terms import Prefixes

TRIPLE = ("subject", "predicate", "object")
"""The columns of the triples that CONSTRUCT and DESCRIBE answer with."""

_LONGEST_NAMESPACE = 300
"""Characters of a base or namespace: it is repeated wherever a name begins with it."""

_FORMS = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")

_GRAPH_SCHEMES = frozenset(["", "urn", "tag", "info"])
"""What may name a graph beside http; without a scheme, it depends on the store's own address."""

_INSIDE = tuple("localhost localdomain loopback .internal .intranet .local .lan .home .corp .private .arpa".split())
_NUMBER = re.compile(r"(?:^|\.)(?:0x[0-9a-f]*|[0-9]+)$")
"""The end of a host that is no name: an address, however it is written."""
_HOST = re.compile(r"[\w.-]+")
_EMBEDDING = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::/96"))
"""Addresses of version 6 whose last four bytes are one of version 4."""


@dataclass(frozen=True)
class SparqlQuery:
    """What parsing found out."""

    edits: tuple[Edit, ...]
    limit: RowLimit | None
    """None if no number in the text is that of rows: in ASK, CONSTRUCT and DESCRIBE."""
    predicates: tuple[IriUse, ...]
    classes: tuple[IriUse, ...]


def parse_sparql(text: str) -> SparqlQuery:
    """Parse one query.

    Raises:
        Unreadable: it is not one, or not understood.
    """
    tokens, edits = tokenise_sparql(text)
    return _SparqlParser(text, tokens, edits).statement()


class _SparqlParser(SparqlPatterns):
    """Reads queries of each form."""

    def statement(self) -> SparqlQuery:
        if self.key == "end":
            raise Unreadable("", 0, "the query is empty; begin with SELECT")
        self.prologue()
        form: str = self.key
        match form:
            case "SELECT":
                self.select(whole=True)
                self.values_clause()
            case "ASK":
                self.advance()
                self.dataset()
                self.solutions()
                self.limit = None
            case "CONSTRUCT":
                self.construct()
            case "DESCRIBE":
                self.describe()
            case _:
                raise self.unexpected("a query begins with SELECT, ASK, CONSTRUCT or DESCRIBE, after its PREFIX lines")
        if self.key in (";", "SELECT", "ASK", "CONSTRUCT", "DESCRIBE", "PREFIX", "BASE"):
            token = self.token
            raise Unreadable(token.text, token.start, "this begins a second statement; send one query only", True)
        if self.key != "end":
            raise self.unexpected("nothing may follow here but GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET and VALUES")
        return SparqlQuery(tuple(self.edits), self.limit, tuple(self.predicates), tuple(self.classes))

    def construct(self) -> None:
        """Read a CONSTRUCT; predicates and classes of its template need not be in the graph."""
        self.advance()
        if self.key == "{":
            known = len(self.predicates), len(self.classes)
            self.advance()
            while self.key != "}":
                if not self.accept("."):
                    self.triples()
            self.advance()
            del self.predicates[known[0] :], self.classes[known[1] :]
        self.dataset()
        self.solutions()
        self.limit = None

    def describe(self) -> None:
        self.advance()
        if not self.accept("*"):
            self.expect_any(("var", *NAMES), "variables or IRIs behind DESCRIBE")
            while self.accept_any(("var", *NAMES)):
                pass
        self.dataset()
        if self.key in ("WHERE", "{"):
            self.where()
        self.modifiers()
        self.values_clause()
        self.limit = None

    def solutions(self) -> None:
        """Read a pattern and all that may stand behind it."""
        self.where()
        self.modifiers()
        self.values_clause()

    def dataset(self) -> None:
        """Read FROM, which chooses among the graphs of the store."""
        while self.accept("FROM"):
            self.accept("NAMED")
            token = self.expect_any(NAMES, "the IRI of a graph behind FROM")
            known = token.key == "iri" or f"{token.text.partition(':')[0]}:" in self.prefixes
            if known and _outside(self.expand(token)):
                reason = "FROM may only name a graph of this store, and no file, and no address within a network"
                raise Unreadable(f"FROM {token.text}", token.start, reason, True)

    def prologue(self) -> None:
        while True:
            if self.accept("BASE"):
                self.base = self.absolute(self.namespace())
            elif self.accept("PREFIX"):
                name = self.expect("pname", "a prefix such as ex:")
                if not name.text.endswith(":"):
                    raise Unreadable(name.text, name.start, "a prefix ends with its colon: PREFIX ex: <http://…>")
                self.prefixes[name.text] = self.absolute(self.namespace())
            elif not self.accept("VERSION", "string"):
                return

    def namespace(self) -> str:
        token = self.expect("iri", "an IRI such as <http://example.org/>")
        if len(token.text) > _LONGEST_NAMESPACE:
            reason = f"more than {_LONGEST_NAMESPACE} characters for the beginning of names; write the names out"
            raise Unreadable(token.text, token.start, reason)
        return token.text[1:-1]

    def select(self, whole: bool = False) -> None:
        """Read SELECT up to LIMIT and OFFSET, for the whole query or within braces."""
        self.advance()
        self.accept_any(("DISTINCT", "REDUCED"))
        if not self.accept("*"):
            if self.key not in ("var", "("):
                reason = "expected variables behind SELECT"
                if self.key in SPARQL_FUNCTIONS:
                    reason = f"put the expression in parentheses: ({self.key}(…) AS ?name)"
                raise self.unexpected(reason)
            while self.key in ("var", "("):
                if not self.accept("var"):
                    self.named_expression("SELECT")
            if self.key == ",":
                raise self.unexpected("variables behind SELECT are separated by spaces, not by commas")
        if whole:
            self.dataset()
        self.where()
        self.modifiers()

    def where(self) -> None:
        self.accept("WHERE")
        self.group()

    def modifiers(self) -> None:
        self.limit = None
        if self.accept("GROUP"):
            self.expect("BY")
            self.conditions(named=True)
        if self.accept("HAVING"):
            self.conditions()
        if self.accept("ORDER"):
            self.expect("BY")
            self.conditions(ordered=True)
        while self.key in ("LIMIT", "OFFSET"):
            limits = self.advance().key == "LIMIT"
            number = self.expect("number", "a number")
            if limits and number.text.isdigit():
                self.limit = RowLimit(number.start, number.stop, row_count(number.text))
        if self.limit is None:
            end = self.tokens[self.at - 1].stop
            self.limit = RowLimit(end, end, None)

    def conditions(self, named: bool = False, ordered: bool = False) -> None:
        """Read what GROUP BY, HAVING and ORDER BY list, one at least."""
        first = True
        while True:
            if ordered and self.accept_any(("ASC", "DESC")):
                self.constraint()
            elif self.accept("("):
                self.expression()
                if named and self.accept("AS"):
                    self.expect("var", "a variable behind AS")
                self.expect(")")
            elif self.at_call():
                self.operand()
            elif self.accept("var"):
                pass
            elif first:
                raise self.unexpected("expected a variable, a function, or an expression in parentheses")
            else:
                return
            first = False

    def values_clause(self) -> None:
        if self.accept("VALUES"):
            self.values()


def _outside(iri: str) -> bool:
    """True if an IRI of a graph is a file, or an address that only a server itself can reach."""
    try:
        parts = urlsplit(iri)
        host = parts.hostname or ""
    except ValueError:
        return True
    if parts.scheme not in ("http", "https") and not (parts.netloc and not parts.scheme):  # //host takes the scheme
        return parts.scheme not in _GRAPH_SCHEMES  # of the server's own address
    if ":" in host:
        return _inside_network(host)
    plain = unicodedata.normalize("NFKC", unquote(host)).replace("\u3002", ".").lower().rstrip(".")
    if not _HOST.fullmatch(plain):
        return True
    return _inside_network(plain) or plain.endswith(_INSIDE) or _NUMBER.search(plain) is not None


def _inside_network(host: str) -> bool:
    """True if a host is an address outside the public network."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return ":" in host
    if isinstance(address, ipaddress.IPv6Address):
        within = address.ipv4_mapped or address.sixtofour or (address.teredo and address.teredo[1])
        if any(address in network for network in _EMBEDDING):
            within = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        address = within or address
    return not address.is_global


# A checked query as it is sent: prefixed names as IRIs, parameters as literals


_ESCAPED = re.compile(r"\\(.)")
_UNSAFE = re.compile(r"[\x00-\x20<>\"{}|\\^`]")


def addressable(iri: str) -> bool:
    """True if an IRI from a result can stand in a query."""
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


def gives_triples(text: str) -> bool:
    """True if a checked query returns a graph: a CONSTRUCT or DESCRIBE."""
    words = (token.key for token in tokenise_sparql(text)[0])
    return next((word for word in words if word in _FORMS), "") in ("CONSTRUCT", "DESCRIBE")


def chooses_graphs(text: str) -> bool:
    """True if a checked query has FROM, and so does not read all graphs."""
    return any(token.key == "FROM" for token in tokenise_sparql(text)[0])


def complete(text: str, parameters: Mapping[str, Cell], prefixes: Prefixes) -> Sent:
    """Write prefixed names as IRIs, and put parameters in the place of the variables they name.

    Not every engine reads all prefixed names (pyoxigraph stumbles over `fb:people.person.parents`), but all read IRIs.

    Args:
        text: the query as returned by `guard.check_sparql`.
        parameters: variable name without `?` to value; a `NodeCell` becomes the node's IRI, a list `1, 2` (for
            `IN (?x)`).
        prefixes: prefixes that need no declaration.

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
    from byokg.graph.rdf.literals import of_value
    from byokg.graph.rdf.terms import node_iri

    if encodable(text := value.id if isinstance(value, NodeCell) else str(value)) != text:
        raise QueryInvalid(f"parameter {name!a} holds half of a character (a lone surrogate); pass whole characters")
    if isinstance(value, NodeCell):
        return f"<{node_iri(value.id)}>"
    if isinstance(value, bool | int | float | str):
        return str(of_value(value))
    if isinstance(value, Sequence):
        return ", ".join(_spelled(name, item) for item in value)
    raise QueryInvalid(f"parameter {name!r} is a {type(value).__name__}; SPARQL takes text, numbers, nodes and lists")
