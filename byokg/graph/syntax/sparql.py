"""SPARQL 1.1 queries, parsed as far as it takes to know that they only read, and which predicates they name.

A recursive descent over the query grammar. SPARQL's words are never names, so every word must be one that is known
here. Only SELECT and ASK pass: rows and yes or no are what a `QueryStore` can answer with. SERVICE and FROM are
refused because they may make a server call another address; updates because they write.

Accepted beyond SPARQL 1.1: reified triples and annotations of SPARQL 1.2, LATERAL, and `{n,m}` in paths.

Source: SPARQL 1.1 Query Language, section 19.8.
"""

from __future__ import annotations

from dataclasses import dataclass

from byokg.graph.syntax.names import SPARQL_FUNCTION_IRIS, SPARQL_FUNCTIONS, SPARQL_OUTSIDE, SPARQL_UPDATES
from byokg.graph.syntax.nearest import nearest_names
from byokg.graph.syntax.tokens import Edit, Token, Unreadable, check_brackets, shortened, tokenise_sparql

RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

_INFIX = frozenset("|| && = != < > <= >= + - * /".split())
_VERBS = frozenset("var iri pname A ^ ! (".split())
_AFTER_OPERAND = frozenset("var number string lang iri pname ) TRUE FALSE".split())


@dataclass(frozen=True)
class IriUse:
    """A predicate, or the class behind ``a``: the full IRI and where it stands."""

    iri: str
    start: int


@dataclass(frozen=True)
class SparqlQuery:
    """What parsing found out."""

    edits: tuple[Edit, ...]
    limit_at: int | None
    """The character before which a LIMIT may be added; None where there is one, or the query is an ASK."""
    predicates: tuple[IriUse, ...]
    classes: tuple[IriUse, ...]


def parse_sparql(text: str) -> SparqlQuery:
    """Parse one SELECT or ASK query.

    Raises:
        Unreadable: it is not one, or not understood.
    """
    tokens, edits = tokenise_sparql(text)
    return _Parser(text, tokens).statement(edits)


class _Parser:
    """Holds the tokens, the place reached, and what has been found so far."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        last = len(tokens) - 2
        while last >= 0 and tokens[last].key == ";":
            last -= 1
        self.text = text
        self.tokens = [*tokens[: last + 1], Token("end", "", tokens[-1].start)]
        self.at = 0
        self.key = self.tokens[0].key
        self.split_comparisons()
        check_brackets(self.tokens)
        self.base = ""
        self.prefixes: dict[str, str] = {}
        self.limited = False
        self.predicates: list[IriUse] = []
        self.classes: list[IriUse] = []

    def split_comparisons(self) -> None:
        """Read ``?a<?b&&?c>?d`` as comparisons, where the standard's longest match makes an IRI of ``<?b&&?c>``.

        Engines that parse without a separate tokeniser compare. An IRI holds no space, bracket { or comment, so
        nothing can hide in one read so; and no absolute IRI begins with ``?``.
        """
        joined: list[Token] = []
        for number, token in enumerate(self.tokens):
            before = self.tokens[number - 1].key if number else ""
            inner = token.text[1:]
            if token.key == "iri" and before in _AFTER_OPERAND and inner[:1] in ("?", "$") and "#" not in inner:
                parts, _ = tokenise_sparql(self.text, token.start + 1, token.start + len(token.text))
                joined += [Token("<", "<", token.start), *parts[:-1]]
            else:
                joined.append(token)
        self.tokens = joined
        self.key = joined[0].key

    # Walking the tokens.

    def advance(self) -> Token:
        token = self.tokens[self.at]
        self.at += 1
        self.key = self.tokens[self.at].key
        return token

    def ahead(self, count: int = 1) -> str:
        place = self.at + count
        return self.tokens[place].key if place < len(self.tokens) else "end"

    def accept(self, key: str) -> bool:
        if self.key == key:
            self.advance()
            return True
        return False

    def expect(self, key: str, what: str = "") -> Token:
        if self.key != key:
            raise self.unexpected(f"expected {what or key}")
        return self.advance()

    def unexpected(self, reason: str) -> Unreadable:
        token = self.tokens[self.at]
        if token.key in SPARQL_UPDATES:
            reason = f"{SPARQL_UPDATES[token.key]}; only SELECT and ASK run"
            return Unreadable(token.text, token.start, reason, True)
        if token.key in SPARQL_OUTSIDE:
            return Unreadable(token.text, token.start, SPARQL_OUTSIDE[token.key], True)
        if token.key == "end":
            reason = f"the query ends too early: {reason}"
        return Unreadable(token.text or "end of the query", token.start, reason)

    # The query.

    def statement(self, edits: list[Edit]) -> SparqlQuery:
        if self.key == "end":
            raise Unreadable("", 0, "the query is empty; begin with SELECT")
        self.prologue()
        ask = self.key == "ASK"
        if ask:
            self.advance()
            self.where()
            self.modifiers()
        elif self.key == "SELECT":
            self.select()
        else:
            raise self.unexpected("a query begins with SELECT or ASK, after its PREFIX lines")
        at = self.tokens[self.at].start
        limited = self.limited
        self.values_clause()
        if self.key != "end":
            second = self.key in (";", "SELECT", "ASK", "PREFIX", "BASE")
            token = self.tokens[self.at]
            if second:
                raise Unreadable(token.text, token.start, "this begins a second statement; send one query only", True)
            raise self.unexpected("nothing may follow here but GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET and VALUES")
        return SparqlQuery(tuple(edits), None if ask or limited else at, tuple(self.predicates), tuple(self.classes))

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
        return iri if ":" in iri else self.base + iri

    def select(self) -> None:
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
        self.limited = False
        if self.accept("GROUP"):
            self.expect("BY")
            self.conditions(named=True)
        if self.accept("HAVING"):
            self.conditions()
        if self.accept("ORDER"):
            self.expect("BY")
            self.conditions(ordered=True)
        while self.key in ("LIMIT", "OFFSET"):
            self.limited |= self.key == "LIMIT"
            self.advance()
            self.expect("number", "a number")

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
        self.node()
        if alone and self.key in (".", "}"):
            return
        self.property_list()

    def property_list(self) -> None:
        """Read predicates and objects behind a subject."""
        while True:
            is_type = self.verb()
            while True:
                if is_type and self.key in ("iri", "pname"):
                    self.use(self.classes, self.tokens[self.at])
                self.node()
                self.annotations()
                if not self.accept(","):
                    break
            if self.key != ";":
                return
            while self.accept(";"):
                pass
            if self.key not in _VERBS:
                return

    def annotations(self) -> None:
        """Read the reifier and annotation blocks of SPARQL 1.2."""
        while self.key in ("~", "{|"):
            if self.accept("~"):
                if self.key in ("var", "iri", "pname", "blank"):
                    self.advance()
            else:
                self.advance()
                self.property_list()
                self.expect("|}")

    def verb(self) -> bool:
        """Read a predicate or a path; return whether it is the type predicate."""
        if self.accept("var"):
            return False
        start = self.at
        self.path()
        token = self.tokens[start]
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

    def node(self) -> None:
        """Read a subject or object: a term, a list, a node in brackets, or a triple."""
        if self.accept("["):
            if self.key != "]":
                self.property_list()
            self.expect("]")
        elif self.accept("("):
            while self.key != ")":
                self.node()
            self.expect(")")
        else:
            self.term()

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
                self.node()
                self.annotations()
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
