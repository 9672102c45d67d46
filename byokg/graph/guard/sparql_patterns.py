"""Patterns and expressions of SPARQL, and the predicates and classes that they name."""

from __future__ import annotations

import re
from abc import abstractmethod
from urllib.parse import urljoin

from byokg.graph.guard.allowlist import (
    SPARQL_FUNCTION_IRIS,
    SPARQL_FUNCTIONS,
    SPARQL_OUTSIDE,
    SPARQL_UPDATES,
    IriUse,
    nearest_names,
)
from byokg.graph.guard.tokens import (
    Cursor,
    Edit,
    RowLimit,
    Token,
    Unreadable,
    check_brackets,
    shorten,
    with_comparisons,
)

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDF_TYPE = RDF + "type"

_INFIX = frozenset("|| && = != < > <= >= + - * /".split())
_VERBS = frozenset("var iri pname A ^ ! (".split())
NAMES = ("iri", "pname")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class SparqlPatterns(Cursor):
    """Reads patterns and expressions, and notes the predicates and classes they name; a subclass reads queries."""

    def __init__(self, text: str, tokens: list[Token], edits: list[Edit]) -> None:
        super().__init__(with_comparisons(text, tokens))
        check_brackets(self.tokens)
        self.text = text
        self.edits = edits
        self.base = ""
        self.prefixes: dict[str, str] = {}
        self.limit: RowLimit | None = None
        self.predicates: list[IriUse] = []
        self.classes: list[IriUse] = []

    @abstractmethod
    def select(self, whole: bool = False) -> None:
        """Read a SELECT, within braces or as the whole query."""

    @abstractmethod
    def values_clause(self) -> None:
        """Read VALUES, if it is there."""

    def unexpected(self, reason: str) -> Unreadable:
        token = self.token
        if token.key in SPARQL_UPDATES:
            return Unreadable(token.text, token.start, f"{SPARQL_UPDATES[token.key]}; only queries run", True)
        if token.key in SPARQL_OUTSIDE:
            return Unreadable(token.text, token.start, SPARQL_OUTSIDE[token.key], True)
        if token.key == "end":
            reason = f"the query ends too early: {reason}"
        return Unreadable(token.text or "end of the query", token.start, reason)

    def absolute(self, iri: str) -> str:
        try:
            return iri if _SCHEME.match(iri) else urljoin(self.base, iri)
        except ValueError:  # such as an address of version 6 that is none
            return iri

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
                self.expect_any(("var", *NAMES), "a variable or an IRI behind GRAPH")
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
        if not (alone and self.key in (".", "}")):
            self.property_list()

    def property_list(self) -> None:
        """Read predicates and objects behind a subject."""
        while True:
            is_type = self.verb()
            while True:
                if is_type and self.key in NAMES:
                    self.use(self.classes, self.token)
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
        while True:
            if self.accept("~"):
                self.accept_any(("var", "blank", *NAMES))
            elif self.accept("{|"):
                self.property_list()
                self.expect("|}")
            else:
                return

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
            while self.accept_any("^!"):
                pass
            if self.accept("("):
                if self.key != ")":
                    self.path()
                self.expect(")")
            elif self.key in NAMES:
                self.use(self.predicates, self.advance())
            elif not self.accept("A"):
                raise self.unexpected("expected a predicate: a variable, an IRI, a prefixed name, a, or a path")
            while self.key in ("*", "+", "?") or (self.key == "{" and self.ahead() in ("number", ",")):
                if self.advance().key == "{":
                    self.accept("number")
                    self.accept(",")
                    self.accept("number")
                    self.expect("}")
            if not self.accept_any("/|"):
                return

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
                    self.expect_any(NAMES, "a datatype behind ^^")
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
        iri = self.expand(token)
        if iri[:5].lower() == "java:":
            raise Unreadable(token.text, token.start, "a predicate that is Java code; ask for those of the graph", True)
        where.append(IriUse(iri, token.start))

    # Expressions.

    def constraint(self) -> None:
        """Read what FILTER takes: an expression in parentheses, or a call."""
        if self.key != "(" and not self.at_call():
            raise self.unexpected("expected an expression in parentheses, or a function")
        self.operand()

    def at_call(self) -> bool:
        """True at a function call or EXISTS."""
        return self.key in SPARQL_FUNCTIONS or self.key in (*NAMES, "EXISTS", "NOT")

    def expression(self) -> None:
        while True:
            while self.accept_any("!+-"):
                pass
            self.operand()
            while self.accept("IN") or self.accept("NOT", "IN"):
                self.expect("(")
                self.listed(self.argument, ")")
            if not self.accept_any(_INFIX):
                return

    def operand(self) -> None:
        key = self.key
        if self.accept("("):
            self.expression()
            self.expect(")")
        elif self.accept("EXISTS"):
            self.group()
        elif self.accept("NOT"):
            self.expect("EXISTS")
            self.group()
        elif key in SPARQL_FUNCTIONS and self.accept(key, "("):
            self.accept("DISTINCT")
            if not self.accept("*", ")"):
                self.listed(self.argument, ")")
        elif key in NAMES:
            token = self.advance()
            if self.key == "(":
                self.check_function(token)
                self.advance()
                self.accept("DISTINCT")
                self.listed(self.argument, ")")
        elif key[0].isupper() and self.ahead() == "(" and key not in SPARQL_UPDATES and key not in SPARQL_OUTSIDE:
            near = " or ".join(nearest_names(key, SPARQL_FUNCTIONS)) or "a function of SPARQL 1.1"
            raise self.unexpected(f"there is no function of this name; take {near}")
        else:
            self.term()

    def argument(self) -> None:
        """Read an expression, and the SEPARATOR of GROUP_CONCAT."""
        self.expression()
        if self.accept(";"):
            self.expect("SEPARATOR")
            self.expect("=")
            self.expect("string", "a string")

    def check_function(self, token: Token) -> None:
        iri = self.expand(token)
        prefix = token.text.partition(":")[0] + ":"
        well_known = prefix in ("xsd:", "fn:", "geof:") and prefix not in self.prefixes  # many engines declare them
        if not (well_known or iri.startswith(SPARQL_FUNCTION_IRIS)):
            known = ", ".join(f"<{start}…>" for start in SPARQL_FUNCTION_IRIS[:4])
            raise Unreadable(
                token.text,
                token.start,
                f"only functions known to compute may be called, <{shorten(iri)}> is not; "
                f"use a built-in one, or {known}",
                True,
            )

    def named_expression(self, where: str) -> None:
        self.expect("(")
        self.expression()
        self.expect("AS", f"AS ?name within the parentheses behind {where}")
        self.expect("var", "a variable behind AS")
        self.expect(")")

    def values(self) -> None:
        rows = self.accept("(")
        if rows:
            while self.accept("var"):
                pass
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
