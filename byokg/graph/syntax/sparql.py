"""SPARQL 1.1 queries, parsed as far as it takes to know that they only read, and which predicates they name.

A recursive descent over the query grammar. SPARQL's words are never names, so every word must be one that is known
here. SERVICE is refused because it makes a server call another address, and updates because they write. CONSTRUCT and
DESCRIBE answer with a graph, for which rows have no place: they are written anew as the SELECT of the same triples
(see `triple_rows`).

Accepted beyond SPARQL 1.1: reified triples and annotations of SPARQL 1.2, LATERAL, and `{n,m}` in paths.

Source: SPARQL 1.1 Query Language, section 19.8.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from byokg.graph.syntax.cursor import Cursor
from byokg.graph.syntax.names import SPARQL_FUNCTION_IRIS, SPARQL_FUNCTIONS, SPARQL_OUTSIDE, SPARQL_UPDATES
from byokg.graph.syntax.nearest import nearest_names
from byokg.graph.syntax.tokens import (
    Edit,
    RowLimit,
    Token,
    Unreadable,
    apply,
    check_brackets,
    shortened,
    tokenise_sparql,
)
from byokg.graph.syntax.triple_rows import COLUMNS, Frame, constructed, described

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDF_TYPE = RDF + "type"

_INFIX = frozenset("|| && = != < > <= >= + - * /".split())
_VERBS = frozenset("var iri pname A ^ ! (".split())
_AFTER_OPERAND = frozenset("var number string lang iri pname ) TRUE FALSE".split())


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_GRAPH_SCHEMES = frozenset(["", "urn", "tag", "info"])
"""What may name a graph beside http; without a scheme, it depends on the store's own address."""


@dataclass(frozen=True)
class IriUse:
    """A predicate, or the class behind ``a``: the full IRI and where it stands."""

    iri: str
    start: int


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


class _Parser(Cursor):
    """Holds the tokens, the place reached, and what has been found so far."""

    def __init__(self, text: str, tokens: list[Token], edits: list[Edit]) -> None:
        super().__init__(_with_comparisons(text, tokens))
        check_brackets(self.tokens)
        self.text = text
        self.edits = edits
        self.base = ""
        self.prefixes: dict[str, str] = {}
        self.limit: RowLimit | None = None
        self.predicates: list[IriUse] = []
        self.classes: list[IriUse] = []
        self.template: list[tuple[str, str, str]] | None = None
        """The triples read, while a template is read."""

    def unexpected(self, reason: str) -> Unreadable:
        token = self.token
        if token.key in SPARQL_UPDATES:
            return Unreadable(token.text, token.start, f"{SPARQL_UPDATES[token.key]}; only queries run", True)
        if token.key in SPARQL_OUTSIDE:
            return Unreadable(token.text, token.start, SPARQL_OUTSIDE[token.key], True)
        if token.key == "end":
            reason = f"the query ends too early: {reason}"
        return Unreadable(token.text or "end of the query", token.start, reason)

    def written(self, start: int) -> str:
        """Return the text from a place up to the token reached, as it is handed on."""
        stop = self.tokens[self.at - 1].stop
        inside = [edit for edit in self.edits if start <= edit.start and edit.stop <= stop]
        return apply(self.text[start:stop], [Edit(a - start, b - start, new) for a, b, new in inside])

    # The query.

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
        while not every and self.key in ("var", "iri", "pname"):
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
            if self.key == "NAMED":
                self.advance()
            if self.key not in ("iri", "pname"):
                raise self.unexpected("expected the IRI of a graph behind FROM")
            token = self.advance()
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
            elif self.key == "VERSION" and self.ahead() == "string":
                self.advance()
                self.advance()
            else:
                return

    def absolute(self, iri: str) -> str:
        return iri if _SCHEME.match(iri) else urljoin(self.base, iri)

    def select(self, whole: bool = False) -> None:
        """Read SELECT up to LIMIT and OFFSET, for the whole query or within braces."""
        self.advance()
        if self.key in ("DISTINCT", "REDUCED"):
            self.advance()
        if not self.accept("*"):
            if self.key not in ("var", "("):
                reason = "expected variables behind SELECT"
                if self.key in SPARQL_FUNCTIONS:
                    reason = f"put the expression in parentheses: ({self.key}(…) AS ?name)"
                raise self.unexpected(reason)
            while self.key in ("var", "("):
                if self.key == "var":
                    self.advance()
                else:
                    self.named_expression("SELECT")
            if self.key == ",":
                raise self.unexpected("variables behind SELECT are separated by spaces, not by commas")
        if whole:
            self.dataset()
        self.where()
        self.modifiers()

    def named_expression(self, where: str) -> None:
        self.expect("(")
        self.expression()
        self.expect("AS", f"AS ?name within the parentheses behind {where}")
        self.expect("var", "a variable behind AS")
        self.expect(")")

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
            if ordered and self.key in ("ASC", "DESC"):
                self.advance()
                self.constraint()
            elif self.key == "var":
                self.advance()
            elif self.key == "(":
                self.advance()
                self.expression()
                if named and self.accept("AS"):
                    self.expect("var", "a variable behind AS")
                self.expect(")")
            elif self.key in SPARQL_FUNCTIONS or self.key in ("iri", "pname", "EXISTS", "NOT"):
                self.constraint()
            elif first:
                raise self.unexpected("expected a variable, a function, or an expression in parentheses")
            else:
                return
            first = False

    def values_clause(self) -> None:
        if self.accept("VALUES"):
            self.values()

    def values(self) -> None:
        rows = self.key == "("
        if rows:
            self.advance()
            while self.key == "var":
                self.advance()
            self.expect(")")
        else:
            self.expect("var", "a variable behind VALUES")
        self.expect("{")
        while self.key != "}":
            if rows:
                self.expect("(", "a row in parentheses, or }")
                while self.key != ")":
                    self.value()
                self.expect(")")
            else:
                self.value()
        self.expect("}")

    def value(self) -> None:
        if not self.accept("UNDEF"):
            if self.key in ("var", "blank", "[", "("):
                raise self.unexpected("VALUES takes IRIs, literals and UNDEF only")
            self.term()

    # Patterns.

    def group(self) -> None:
        self.expect("{", "{ and a pattern")
        if self.key == "SELECT":
            self.select()
            self.values_clause()
        else:
            while self.key != "}":
                self.part()
        self.expect("}")

    def part(self) -> None:
        match self.key:
            case "{":
                self.group()
                while self.accept("UNION"):
                    self.group()
            case "OPTIONAL" | "MINUS" | "LATERAL":
                self.advance()
                self.group()
            case "GRAPH":
                self.advance()
                if self.key not in ("var", "iri", "pname"):
                    raise self.unexpected("expected a variable or an IRI behind GRAPH")
                self.advance()
                self.group()
            case "FILTER":
                self.advance()
                self.constraint()
            case "BIND":
                self.advance()
                self.named_expression("BIND")
            case "VALUES":
                self.advance()
                self.values()
            case ".":
                self.advance()
            case _:
                self.triples()

    def triples(self) -> None:
        alone = self.key in ("[", "(", "<<")
        subject = self.node()
        if alone and self.key in (".", "}"):
            return
        self.property_list(subject)

    def property_list(self, subject: str) -> None:
        """Read predicates and objects behind a subject."""
        while True:
            verb = self.token
            is_type = self.verb()
            predicate = ""
            if self.template is not None:
                predicate = f"<{RDF_TYPE}>" if verb.key == "A" else self.written(verb.start)
            while True:
                if is_type and self.key in ("iri", "pname"):
                    self.use(self.classes, self.token)
                end = self.node()
                if self.template is not None:
                    self.template.append((subject, predicate, end))
                self.annotations(end)
                if not self.accept(","):
                    break
            if self.key != ";":
                return
            while self.accept(";"):
                pass
            if self.key not in _VERBS:
                return

    def annotations(self, end: str) -> None:
        """Read the reifier and annotation blocks of SPARQL 1.2."""
        while self.key in ("~", "{|"):
            self.refuse_in_template("statements about triples")
            if self.accept("~"):
                if self.key in ("var", "iri", "pname", "blank"):
                    self.advance()
            else:
                self.advance()
                self.property_list(end)
                self.expect("|}")

    def refuse_in_template(self, what: str) -> None:
        if self.template is not None:
            raise self.unexpected(f"{what} cannot be constructed as rows; write SELECT")

    def verb(self) -> bool:
        """Read a predicate or a path; return whether it is the type predicate."""
        if self.accept("var"):
            return False
        start = self.at
        self.path()
        token = self.tokens[start]
        if self.at != start + 1:
            self.refuse_in_template("paths")
        return self.at == start + 1 and (token.key == "A" or self.expand(token) == RDF_TYPE)

    def path(self) -> None:
        while True:
            while self.key in ("^", "!"):
                self.advance()
            if self.accept("("):
                if self.key != ")":
                    self.path()
                self.expect(")")
            elif self.key in ("iri", "pname"):
                token = self.advance()
                self.use(self.predicates, token)
            elif not self.accept("A"):
                raise self.unexpected("expected a predicate: a variable, an IRI, a prefixed name, a, or a path")
            while self.key in ("*", "+", "?") or (self.key == "{" and self.ahead() in ("number", ",")):
                if self.accept("{"):
                    self.accept("number")
                    self.accept(",")
                    self.accept("number")
                    self.expect("}")
                else:
                    self.advance()
            if self.key not in ("/", "|"):
                return
            self.advance()

    def node(self) -> str:
        """Read a subject or object: a term, a list, a node in brackets, or a triple; return it as a template has it."""
        start = self.token.start
        if self.accept("["):
            blank = f"_:{start}"
            if self.key != "]":
                self.property_list(blank)
            self.expect("]")
            return blank
        if self.accept("("):
            return self.collection(start)
        if self.key == "<<":
            self.refuse_in_template("statements about triples")
        self.term()
        return self.written(start) if self.template is not None else ""

    def collection(self, start: int) -> str:
        """Read the rest of a list; return its first node."""
        items = []
        while self.key != ")":
            items.append(self.node())
        self.expect(")")
        nodes = [*(f"_:{start}.{number}" for number in range(len(items))), f"<{RDF}nil>"]
        if self.template is not None:
            for number, item in enumerate(items):
                self.template.append((nodes[number], f"<{RDF}first>", item))
                self.template.append((nodes[number], f"<{RDF}rest>", nodes[number + 1]))
        return nodes[0]

    def term(self) -> None:
        match self.key:
            case "var" | "iri" | "pname" | "blank" | "TRUE" | "FALSE" | "number":
                self.advance()
            case "string":
                self.advance()
                if self.accept("^^"):
                    if self.key not in ("iri", "pname"):
                        raise self.unexpected("expected a datatype behind ^^")
                    self.advance()
                else:
                    self.accept("lang")
            case "+" | "-":
                self.advance()
                self.expect("number", "a number")
            case "<<":
                self.advance()
                inner = self.accept("(")
                self.node()
                self.verb()
                self.annotations(self.node())
                if inner:
                    self.expect(")")
                self.expect(">>")
            case "name":
                raise self.unexpected("this word means nothing here; text goes in quotes, names take a prefix or < >")
            case _:
                raise self.unexpected("expected a variable, an IRI, a prefixed name or a literal")

    def expand(self, token: Token) -> str:
        """Return the full IRI of an IRI or prefixed name; an unknown prefix stays as written."""
        if token.key == "iri":
            return self.absolute(token.text[1:-1])
        prefix, colon, local = token.text.partition(":")
        return self.prefixes.get(prefix + colon, prefix + colon) + local.replace("\\", "")

    def use(self, where: list[IriUse], token: Token) -> None:
        where.append(IriUse(self.expand(token), token.start))

    # Expressions.

    def constraint(self) -> None:
        """Read what FILTER takes: an expression in parentheses, or a call."""
        if self.key == "(":
            self.advance()
            self.expression()
            self.expect(")")
        elif self.key in SPARQL_FUNCTIONS or self.key in ("iri", "pname", "EXISTS", "NOT"):
            self.operand()
        else:
            raise self.unexpected("expected an expression in parentheses, or a function")

    def expression(self) -> None:
        while True:
            while self.key in ("!", "+", "-"):
                self.advance()
            self.operand()
            while self.key == "IN" or (self.key == "NOT" and self.ahead() == "IN"):
                self.accept("NOT")
                self.advance()
                self.expect("(")
                self.arguments()
            if self.key not in _INFIX:
                return
            self.advance()

    def operand(self) -> None:
        key = self.key
        if key == "(":
            self.advance()
            self.expression()
            self.expect(")")
        elif key == "EXISTS":
            self.advance()
            self.group()
        elif key == "NOT":
            self.advance()
            self.expect("EXISTS")
            self.group()
        elif key in SPARQL_FUNCTIONS and self.ahead() == "(":
            self.advance()
            self.advance()
            self.accept("DISTINCT")
            if self.key == "*" and self.ahead() == ")":
                self.advance()
            self.arguments()
        elif key in ("iri", "pname"):
            token = self.advance()
            if self.key == "(":
                self.check_function(token)
                self.advance()
                self.accept("DISTINCT")
                self.arguments()
        elif key[0].isupper() and self.ahead() == "(" and key not in SPARQL_UPDATES and key not in SPARQL_OUTSIDE:
            near = " or ".join(nearest_names(key, SPARQL_FUNCTIONS)) or "a function of SPARQL 1.1"
            raise self.unexpected(f"there is no function of this name; take {near}")
        else:
            self.term()

    def arguments(self) -> None:
        """Read expressions up to the closing parenthesis, and the SEPARATOR of GROUP_CONCAT."""
        while self.key != ")":
            self.expression()
            if self.accept(";"):
                self.expect("SEPARATOR")
                self.expect("=")
                self.expect("string", "a string")
            if not self.accept(","):
                break
        self.expect(")")

    def check_function(self, token: Token) -> None:
        iri = self.expand(token)
        prefix = token.text.partition(":")[0] + ":"
        well_known = prefix in ("xsd:", "fn:", "geof:") and prefix not in self.prefixes  # many engines declare them
        if not (well_known or iri.startswith(SPARQL_FUNCTION_IRIS)):
            known = ", ".join(f"<{start}…>" for start in SPARQL_FUNCTION_IRIS[:4])
            raise Unreadable(
                token.text,
                token.start,
                f"only functions known to compute may be called, <{shortened(iri)}> is not; "
                f"use a built-in one, or {known}",
                True,
            )


def _outside(iri: str) -> bool:
    """Say whether an IRI that should name a graph is a file, or an address that only a server itself can reach."""
    parts = urlsplit(iri)
    if parts.scheme not in ("http", "https"):
        return parts.scheme not in _GRAPH_SCHEMES
    host = parts.hostname or ""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".internal", ".local"))


def _with_comparisons(text: str, tokens: list[Token]) -> list[Token]:
    """Read ``?a<?b&&?c>?d`` as comparisons, where the standard's longest match makes an IRI of ``<?b&&?c>``.

    Engines that parse without a separate tokeniser compare. An IRI holds no space, bracket { or comment, so nothing can
    hide in one read so; and an IRI follows an operand in lists and triples only, where it is not of this shape.
    """
    joined: list[Token] = []
    opened: list[str] = []
    before = ""
    for token in tokens:
        if token.key == "iri" and before in _AFTER_OPERAND and _compares(token.text[1:-1], opened[-1:] == ["("]):
            parts, _ = tokenise_sparql(text, token.start + 1, token.stop)
            joined += [Token("<", "<", token.start, token.start + 1), *parts[:-1]]
        else:
            joined.append(token)
        if token.key in ("(", "{", "["):
            opened.append(token.key)
        elif token.key in (")", "}", "]") and opened:
            opened.pop()
        before = joined[-1].key
    return joined


def _compares(inner: str, in_parentheses: bool) -> bool:
    """Tell from what stands between < and > behind an operand whether both are comparisons."""
    if "#" in inner:
        return False
    joined = any(mark in inner for mark in ("&&", "(", ")", ","))
    return inner[:1] in ("?", "$") or (in_parentheses and joined and "://" not in inner)
