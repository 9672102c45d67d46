"""SPARQL 1.1 queries, parsed as far as it takes to know that they only read, and which predicates they name.

A recursive descent over the query grammar; `sparql_patterns` reads patterns and expressions. SPARQL's words are never
names, so every word must be one that is known here. SERVICE is refused because it makes a server call another address,
and updates because they write.

CONSTRUCT and DESCRIBE answer with a graph, for which rows have no place, so they are rewritten as the SELECT of the
same triples, one in a row: ?subject ?predicate ?object. The pattern of the query becomes a subquery; behind it, each of
its solutions is repeated for each triple of the template, whose terms are then put together. What makes no triple (an
unbound variable, a literal as a subject) makes no row. A blank node of the template is another one in each solution, as
the standard says.

`complete` then writes prefixed names and parameters out as IRIs and literals.

Accepted beyond SPARQL 1.1: reified triples and annotations of SPARQL 1.2, LATERAL, and `{n,m}` in paths.

Source: SPARQL 1.1 Query Language, section 19.8.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from byokg.errors import QueryInvalid
from byokg.graph.guard.allowlist import SPARQL_FUNCTIONS, IriUse
from byokg.graph.guard.sparql_patterns import NAMES, SparqlPatterns
from byokg.graph.guard.tokens import Edit, RowLimit, Unreadable, tokenise_sparql
from byokg.text import encodable
from byokg.types import Cell, NodeCell

if TYPE_CHECKING:
    from byokg.graph.rdf.terms import Prefixes

COLUMNS = "SELECT DISTINCT ?subject ?predicate ?object "


class Frame(NamedTuple):
    """What stands before a pattern and behind it; `COLUMNS`, and FROM where there is one, stand before that."""

    before: str
    behind: str


def constructed(triples: Sequence[tuple[str, str, str]], taken: Collection[str]) -> Frame:
    """Frame the pattern of a CONSTRUCT.

    Args:
        triples: the template: variables ``?x`` or ``$x``, blank nodes ``_:b``, and other terms as written.
        taken: names of the variables in the query, without ``?``.
    """
    columns, rows, sources = _solutions(triples, taken)
    binds = " ".join(
        f"BIND({_chosen(column, rows)} AS {name})"
        for column, name in zip(columns, ("?subject", "?predicate", "?object"), strict=True)
    )
    numbers = " ".join(map(str, range(len(triples))))
    made = "FILTER(!isLITERAL(?subject) && isIRI(?predicate) && BOUND(?object))"
    return Frame(f"WHERE {{ {{ SELECT {sources} ", f" }} VALUES {rows} {{ {numbers} }} {binds} {made} }}")


def described(terms: Sequence[str], pattern: bool, taken: Collection[str]) -> Frame:
    """Frame the pattern of a DESCRIBE: what is described are the triples that begin with a node.

    Args:
        terms: variables and IRIs.
        pattern: there is one; otherwise the frame is the whole.
        taken: names of the variables in the query, without ``?``.
    """
    if not pattern:
        iris = " ".join(term for term in terms if term[0] not in "?$")
        return Frame("WHERE { ", f"VALUES ?subject {{ {iris} }} ?subject ?predicate ?object }}")
    (column,), rows, sources = _solutions([(term,) for term in terms], taken)
    numbers = " ".join(map(str, range(len(terms))))
    subject = f"VALUES {rows} {{ {numbers} }} BIND({_chosen(column, rows)} AS ?subject) FILTER(BOUND(?subject))"
    return Frame(f"WHERE {{ {{ {{ SELECT {sources} ", f" }} {subject} }} ?subject ?predicate ?object }}")


def _solutions(triples: Sequence[tuple[str, ...]], taken: Collection[str]) -> tuple[list[tuple[str, ...]], str, str]:
    """Give each variable and blank node a name that nothing else has.

    Returns:
        The terms by column, the name of the variable that counts triples, and what the subquery is to select.
    """
    stem = "row"
    while any(name.startswith(stem) for name in taken):
        stem += "_"
    names: dict[str, str] = {}
    sources: list[str] = []
    spelled = [[f"?{term[1:]}" if term[0] == "$" else term for term in triple] for triple in triples]
    for term in (term for triple in spelled for term in triple):
        if term not in names and term.startswith(("?", "_:")):
            names[term] = f"?{stem}{len(names)}"
            sources.append(f"({term if term[0] == '?' else 'BNODE()'} AS {names[term]})")
    columns = [tuple(names.get(term, term) for term in column) for column in zip(*spelled, strict=True)]
    return columns or [(), (), ()], f"?{stem}", " ".join(sources) or f"(1 AS ?{stem}0)"


def _chosen(terms: Sequence[str], rows: str, first: int = 0) -> str:
    """Write the expression for the term of row number `rows`, the first of which is `first`; halving keeps it flat."""
    if len(set(terms)) <= 1:
        return next(iter(terms), "1")
    middle = len(terms) // 2
    low, high = _chosen(terms[:middle], rows, first), _chosen(terms[middle:], rows, first + middle)
    return f"IF({rows} < {first + middle}, {low}, {high})"


_GRAPH_SCHEMES = frozenset(["", "urn", "tag", "info"])
"""What may name a graph beside http; without a scheme, it depends on the store's own address."""

_INSIDE = ("localhost", ".internal", ".local")
_NUMBER = re.compile(r"(?:^|\.)(?:0x[0-9a-f]*|[0-9]+)$")
"""The end of a host that is no name: an address, however it is written."""


@dataclass(frozen=True)
class SparqlQuery:
    """What parsing found out."""

    edits: tuple[Edit, ...]
    limit: RowLimit | None
    """None where the number of rows is not for the text to say: one for an ASK."""
    predicates: tuple[IriUse, ...]
    classes: tuple[IriUse, ...]


def parse_sparql(text: str) -> SparqlQuery:
    """Parse one query.

    Raises:
        Unreadable: it is not one, or not understood.
    """
    tokens, edits = tokenise_sparql(text)
    return _Parser(text, tokens, edits).statement()


class _Parser(SparqlPatterns):
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
        """Read a CONSTRUCT, and write it as a SELECT."""
        _, _, start, stop = self.advance()
        if self.key == "{":
            triples = self.template_block()
            stop = self.tokens[self.at - 1].stop
            self.dataset()
        else:
            self.dataset()
            short = self.at
            self.accept("WHERE")
            triples = self.template_block()
            self.go_to(short)
        self.frame(start, stop, constructed(triples, self.variables()))

    def template_block(self) -> list[tuple[str, str, str]]:
        """Read ``{ triples }`` and return them."""
        triples: list[tuple[str, str, str]] = []
        self.template = triples
        self.expect("{", "{ and triples")
        while self.key != "}":
            if not self.accept("."):
                self.triples()
        self.expect("}")
        self.template = None
        return triples

    def describe(self) -> None:
        """Read a DESCRIBE, and write it as a SELECT."""
        start = self.advance().start
        terms: list[str] = []
        every = self.accept("*")
        while not every and self.key in ("var", *NAMES):
            terms.append(self.advance().text)
        if not every and not terms:
            raise self.unexpected("expected variables or IRIs behind DESCRIBE")
        stop = self.tokens[self.at - 1].stop
        self.dataset()
        pattern = self.key in ("WHERE", "{")
        if every:
            terms = [f"?{name}" for name in self.variables()]
        self.frame(start, stop, described(terms, pattern, self.variables()), pattern)

    def frame(self, start: int, stop: int, frame: Frame, pattern: bool = True) -> None:
        """Write a SELECT of triples instead of what stands from `start` to `stop`, and read and frame the pattern."""
        kept = [edit for edit in self.edits if edit.stop <= start or edit.start >= stop]
        at = self.tokens[self.at - 1].stop
        before = Edit(at, at, f" {frame.before}")
        if pattern:
            self.solutions()
        end = self.tokens[self.at - 1].stop
        framed = [*kept, Edit(start, stop, COLUMNS), before, Edit(end, end, frame.behind)]
        self.edits = sorted(framed, key=lambda edit: edit[:2])
        self.limit = RowLimit(end, end, None)

    def variables(self) -> list[str]:
        """Return the names of all variables in the query, each once."""
        return list(dict.fromkeys(token.text[1:] for token in self.tokens if token.key == "var"))

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
                self.base = self.expect("iri", "an IRI such as <http://example.org/>").text[1:-1]
            elif self.accept("PREFIX"):
                name = self.expect("pname", "a prefix such as ex:")
                if not name.text.endswith(":"):
                    raise Unreadable(name.text, name.start, "a prefix ends with its colon: PREFIX ex: <http://…>")
                iri = self.expect("iri", "an IRI such as <http://example.org/>").text[1:-1]
                self.prefixes[name.text] = self.absolute(iri)
            elif not self.accept("VERSION", "string"):
                return

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
                self.limit = RowLimit(number.start, number.stop, int(number.text))
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
    """Say whether an IRI that should name a graph is a file, or an address that only a server itself can reach."""
    try:
        parts = urlsplit(iri)
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return True
    if parts.scheme not in ("http", "https"):
        return parts.scheme not in _GRAPH_SCHEMES
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return host.endswith(_INSIDE) or _NUMBER.search(host) is not None


# A checked query as it is sent: prefixed names as IRIs, parameters as literals


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
    from byokg.graph.rdf.terms import node_iri, of_value

    if encodable(text := value.id if isinstance(value, NodeCell) else str(value)) != text:
        raise QueryInvalid(f"parameter {name!a} holds half of a character (a lone surrogate); pass whole characters")
    if isinstance(value, NodeCell):
        return f"<{node_iri(value.id)}>"
    if isinstance(value, bool | int | float | str):
        return str(of_value(value))
    if isinstance(value, Sequence):
        return ", ".join(_spelled(name, item) for item in value)
    raise QueryInvalid(f"parameter {name!r} is a {type(value).__name__}; SPARQL takes text, numbers, nodes and lists")
