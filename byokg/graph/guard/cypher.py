"""Parser of openCypher, as far as needed to prove that a query only reads, and to list the schema names it uses.

A recursive descent over clauses and patterns; `cypher_expressions` reads the expressions inside them. It decides the
one thing that matters: whether a word starts a clause, or is a variable, property, label, key or function. Text that
fits no rule raises `Unreadable`.

Accepted beyond openCypher 9: subqueries (CALL, EXISTS, COUNT, COLLECT), quantified path patterns, label expressions,
path selectors, type predicates, and the reading clauses FILTER, LET, FOR, FINISH of GQL.

Source: the openCypher 9 grammar, and the reading part of the Cypher 25 grammar.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from byokg.graph.guard.allowlist import PROCEDURES, WRITES, Binding, EdgeUse, End, LabelUse, Name, PropertyUse
from byokg.graph.guard.cypher_expressions import MATCH_MODE, PATH_WORDS, ExpressionParser, or_take
from byokg.graph.guard.tokens import Edit, RowLimit, Token, Unreadable, blank, row_count, shorten, tokenise_cypher


class PatternParser(ExpressionParser):
    """Reads patterns, and records the labels and types of variables."""

    def patterns(self) -> None:
        self.separated(self.pattern)

    def pattern(self) -> None:
        if self.is_name() and self.ahead() == "=":
            self.forget(self.advance())
            self.advance()
        while self.key in PATH_WORDS or (self.key in ("number", "$") and self.tokens[self.at - 1].key in PATH_WORDS):
            if self.key == "$":
                self.parameter()
            else:
                self.advance()
        if self.accept("SHORTESTPATH", "(") or self.accept("ALLSHORTESTPATHS", "("):
            self.path()
            self.expect(")")
        else:
            self.path()

    def path(self) -> None:
        """Read nodes and relationships in turn, or parenthesised paths with quantifiers between nodes."""
        if self.key != "(":
            raise self.unexpected("expected a pattern such as (a:Label)-[:TYPE]->(b)")
        while self.key == "(":
            if self.path_in_parentheses():
                self.advance()
                self.pattern()
                self.where()
                self.expect(")")
                self.quantifier()
                continue
            node = self.node()
            while self.at_relationship(self.at):
                node = self.relationship(node)

    def path_in_parentheses(self) -> bool:
        if self.ahead() == "(":
            return True
        if self.is_name(1) and self.ahead(2) == "=":
            return True
        return self.ahead() in PATH_WORDS and (self.ahead(2) in PATH_WORDS or self.ahead(2) in ("(", "number"))

    def at_relationship(self, at: int) -> bool:
        """True at ``-[``, ``--``, ``<-[`` or ``<--``."""
        keys = [token.key for token in self.tokens[at : at + 3]]
        if keys and keys[0] == "<":
            del keys[0]
        return keys[:1] == ["-"] and keys[1:2] in (["-"], ["["])

    def node(self) -> Binding:
        self.expect("(")
        variable = self.element_variable(")")
        names = self.element_labels("node")
        binding = self.bind(variable, Binding("node", names))
        self.element_properties(binding)
        self.expect(")")
        return binding

    def element_variable(self, close: str) -> Token | None:
        following = self.ahead()
        if not self.is_name():
            return None
        if self.key == "WHERE" and following not in (close, ":", "{", "WHERE", "IS", "*", "$"):
            return None
        if self.key == "IS" and self.is_name(1) and following != "WHERE":
            return None
        return self.advance()

    def element_labels(self, kind: End) -> tuple[str, ...]:
        if self.key not in (":", "IS"):
            return ()
        found: list[Name] = []
        certain = self.label_expression(found)
        self.labels += [LabelUse(name, kind) for name in found]
        return tuple(name.text for name in found) if certain else ()

    def element_properties(self, owner: Binding) -> None:
        if self.key == "{":
            self.map(owner)
        elif self.key == "$":
            self.parameter()
        self.where()

    def bind(self, variable: Token | None, binding: Binding) -> Binding:
        if variable is None:
            return binding
        known = self.scope.get(variable.text)
        if known is not None and known.kind == binding.kind:
            self.spend(len(known.names) * (1 + len(binding.names)))
            binding = replace(binding, names=(*known.names, *(n for n in binding.names if n not in known.names)))
        self.scope[variable.text] = binding
        return binding

    def relationship(self, left: Binding) -> Binding:
        """Read a relationship and the node behind it."""
        inward = self.accept("<")
        self.expect("-")
        types: tuple[Name, ...] = ()
        single = True
        if self.accept("["):
            variable = self.element_variable("]")
            first = len(self.labels)
            names = self.element_labels("edge")
            if names:
                types = tuple(use.name for use in self.labels[first:])
            if self.accept("*"):
                single = False
                self.accept("number")
                if self.accept(".."):
                    self.accept("number")
            if variable is not None and not single:
                self.forget(variable)
                variable = None
            self.element_properties(self.bind(variable, Binding("edge", names)))
            self.expect("]")
        self.expect("-")
        outward = self.accept(">")
        single &= not self.quantifier()
        if self.key != "(":
            raise self.unexpected("expected a node such as (b) behind the relationship")
        right = self.node()
        head, tail = (right, left) if inward and not outward else (left, right)
        self.edges.append(EdgeUse(types, head, tail, inward != outward, single))
        return right

    def quantifier(self) -> bool:
        """Take ``{1,3}``, ``+`` or ``*`` behind a relationship or a parenthesised path."""
        if self.accept_any("+*"):
            return True
        if not self.accept("{"):
            return False
        first = self.accept("number")
        if not (self.accept(",") or first):
            raise self.unexpected("expected a quantifier such as {1,3}")
        self.accept("number")
        self.expect("}")
        return True

    def match_mode(self) -> None:
        if self.ahead() in MATCH_MODE.get(self.key, ()):
            self.advance()
            self.advance()
            self.accept("BINDINGS")


@dataclass(frozen=True)
class CypherQuery:
    """What parsing found out."""

    edits: tuple[Edit, ...]
    limit: RowLimit | None
    """None if the query does not end in one RETURN, as in a UNION, or computes its number of rows."""
    labels: tuple[LabelUse, ...]
    properties: tuple[PropertyUse, ...]
    edges: tuple[EdgeUse, ...]


def parse_cypher(text: str) -> CypherQuery:
    """Parse one reading query.

    Raises:
        Unreadable: it is not one, or not understood.
    """
    tokens, edits = tokenise_cypher(text)
    parser = _CypherParser(tokens)
    prefix = parser.options()
    if prefix is not None:
        start, stop = prefix
        edits = [edit for edit in edits if edit.stop <= start or edit.start >= stop]
        edits = sorted([*edits, Edit(start, stop, blank(text[start:stop]))])
    return parser.statement(edits)


class _CypherParser(PatternParser):
    """Reads queries and their clauses."""

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__(tokens)
        self.clauses: dict[str, Callable[[], object]] = {
            "MATCH": self.match,
            "OPTIONAL": self.optional,
            "UNWIND": self.unwind,
            "FOR": self.for_each,
            "WITH": self.with_,
            "RETURN": self.return_,
            "FINISH": self.advance,
            "CALL": self.call,
            "FILTER": self.filter,
            "LET": self.let,
            "ORDER": self.order_skip_limit,
            "SKIP": self.order_skip_limit,
            "OFFSET": self.order_skip_limit,
            "LIMIT": self.order_skip_limit,
        }

    def options(self) -> tuple[int, int] | None:
        """Skip ``CYPHER 25 runtime=…``, EXPLAIN and PROFILE; return their extent.

        They choose how a query is run, or request its plan. Rows are wanted here, so the query is run without them.
        """
        while self.key in ("CYPHER", "EXPLAIN", "PROFILE"):
            if self.advance().key == "CYPHER":
                self.accept("number")
                while self.is_name() and self.ahead() == "=":
                    self.advance()
                    self.advance()
                    if self.key == "end":
                        raise self.unexpected("an option of CYPHER has no value; write it, or leave the option out")
                    self.advance()
        return (self.tokens[0].start, self.token.start) if self.at else None

    def statement(self, edits: list[Edit]) -> CypherQuery:
        if self.key == "end":
            raise (
                self.unexpected("begin with MATCH")
                if self.at
                else Unreadable("", 0, "the query is empty; begin with MATCH")
            )
        self.query("end")
        return CypherQuery(tuple(edits), self.limit, tuple(self.labels), tuple(self.properties), tuple(self.edges))

    def query(self, close: str) -> None:
        """Read queries joined by UNION and NEXT, up to `close`."""
        outer = self.scope
        while True:
            within, branches = self.scope, 0
            while branches == 0 or self.accept("UNION"):
                if branches:
                    self.accept_any(("ALL", "DISTINCT"))
                self.scope = self.copied(within)
                self.single_query(close)
                branches += 1
            if branches > 1:
                self.limit = None
            if not self.accept("NEXT"):
                break
        if self.key != close:
            raise self.not_a_clause()
        self.scope = outer

    def single_query(self, close: str) -> None:
        """Read clauses up to their end, or branches of WHEN, or a query in braces."""
        if self.key in (close, "UNION", "NEXT", "ELSE"):
            raise self.unexpected("a query is missing here; begin with MATCH")
        if self.key == "WHEN":
            self.when(close)
            return
        if self.key == "{":
            self.subquery()
            self.limit = None
            return
        ended = False
        while self.key not in (close, "UNION", "NEXT", "WHEN", "ELSE"):
            if ended:
                raise self.unexpected("nothing may follow RETURN but ORDER BY, SKIP, LIMIT, UNION and NEXT")
            clause = self.clauses.get(self.key)
            if clause is None:
                raise self.not_a_clause()
            returns = self.key == "RETURN"
            ended = returns or self.key == "FINISH"
            clause()
            if not returns:
                self.limit = None

    def when(self, close: str) -> None:
        """Read ``WHEN predicate THEN query … ELSE query``, of which one query runs."""
        scope = self.scope
        while self.accept("WHEN"):
            self.expression()
            self.expect("THEN")
            self.scope = self.copied(scope)
            self.single_query(close)
        if self.accept("ELSE"):
            self.scope = self.copied(scope)
            self.single_query(close)
        self.limit = None

    def not_a_clause(self) -> Unreadable:
        if self.is_name() and self.key not in WRITES and self.at:
            before = self.tokens[self.at - 1]
            reason = (
                f"this does not follow from {shorten(before.text)!r}; a comma, an operator, AS or a clause is missing"
            )
            return self.unexpected(reason)
        if self.at == 0:
            return self.unexpected("a query begins with MATCH, OPTIONAL MATCH, WITH, UNWIND, CALL or RETURN")
        return self.unexpected("expected a clause such as MATCH, WHERE, WITH or RETURN, or an operator")

    def optional(self) -> None:
        self.advance()
        if self.key == "CALL":
            self.call()
        elif self.key == "MATCH":
            self.match()
        else:
            raise self.unexpected("OPTIONAL goes before MATCH or CALL")

    def match(self) -> None:
        self.advance()
        self.match_mode()
        self.patterns()
        while self.key == "USING":
            self.hint()
        self.where()

    def hint(self) -> None:
        if self.ahead() not in ("INDEX", "TEXT", "RANGE", "POINT", "SCAN", "JOIN"):
            raise self.unexpected("")
        self.advance()
        kind = self.advance().key
        if kind == "JOIN":
            self.expect("ON")
            self.separated(lambda: self.name("a variable"))
            return
        if kind in ("TEXT", "RANGE", "POINT"):
            self.expect("INDEX")
        if self.key == "SEEK" and self.is_name(1):
            self.advance()
        self.name("a variable")
        self.expect(":")
        self.name("a label")
        if kind != "SCAN":
            self.expect("(")
            self.separated(lambda: self.name("a property"))
            self.expect(")")

    def unwind(self) -> None:
        self.advance()
        self.expression()
        self.expect("AS")
        self.forget(self.name("a variable"))

    def for_each(self) -> None:
        self.advance()
        variable = self.name("a variable")
        self.expect("IN")
        self.expression()
        self.forget(variable)

    def let(self) -> None:
        def definition() -> None:
            variable = self.name("a variable")
            self.expect("=")
            self.expression()
            self.forget(variable)

        self.advance()
        self.separated(definition)

    def filter(self) -> None:
        self.advance()
        self.keyword("WHERE")
        self.expression()

    def with_(self) -> None:
        self.projection()
        self.where()

    def return_(self) -> None:
        self.limit = self.projection()

    def projection(self) -> RowLimit | None:
        """Read WITH or RETURN, with its items, order and limits; carry bindings over to the new names."""
        self.advance()
        if not self.keyword("DISTINCT") and self.ahead() != "(":
            self.keyword("ALL")
        kept: dict[str, Binding] = {}

        def item() -> None:
            if self.accept("*"):
                kept.update(self.copied())
                return
            start = self.at
            self.expression()
            alone = self.tokens[start] if self.at == start + 1 else None
            bound = self.scope.get(alone.text) if alone is not None else None
            if self.accept("AS"):
                alone = self.name("a name behind AS")
            if alone is not None and bound is not None:
                kept[alone.text] = bound

        self.separated(item)
        self.scope = {**self.copied(), **kept}
        limit = self.order_skip_limit()
        self.scope = kept
        return limit

    def order_skip_limit(self) -> RowLimit | None:
        """Read order and limits of rows; return the number behind LIMIT, or the place for a LIMIT."""
        if self.accept("ORDER"):
            self.expect("BY")
            self.separated(self.sort_key)
        if self.accept_any(("SKIP", "OFFSET")):
            self.expression()
        if not self.accept("LIMIT"):
            end = self.tokens[self.at - 1].stop
            return RowLimit(end, end, None)
        number = self.token
        self.expression()
        alone = self.tokens[self.at - 1] is number and number.text.isdecimal()
        return RowLimit(number.start, number.stop, row_count(number.text)) if alone else None

    def sort_key(self) -> None:
        self.expression()
        self.accept_any(("ASC", "ASCENDING", "DESC", "DESCENDING"))
        _ = self.accept("NULLS", "FIRST") or self.accept("NULLS", "LAST")

    def call(self) -> None:
        call = self.advance()
        if self.key in ("{", "("):
            self.call_subquery()
            return
        start = self.at
        self.name("a procedure, or { for a subquery")
        while self.accept("."):
            self.name("a procedure")
        name = ".".join(part.text for part in self.tokens[start : self.at : 2])
        plain = name.lower().removeprefix("apoc.")
        streams = plain.startswith(("gds.", "algo.")) and plain.endswith((".stream", ".stats"))
        if plain not in PROCEDURES and not streams:
            raise Unreadable(
                f"{call.text} {name}",
                self.tokens[start].start,
                f"only procedures known to read may be called, {shorten(name)} is not; ask with MATCH instead"
                + or_take(plain, PROCEDURES.values()),
                True,
            )
        if self.accept("("):
            self.listed(self.expression, ")")
        if self.accept("YIELD"):
            if not self.accept("*"):
                self.separated(self.yielded)
            self.where()

    def yielded(self) -> None:
        self.forget(self.name("a column behind YIELD"))
        if self.accept("AS"):
            self.forget(self.name("a name behind AS"))

    def call_subquery(self) -> None:
        outer = self.scope
        if self.accept("("):
            if self.accept("*"):
                self.expect(")")
            else:
                self.scope = {}
                self.listed(lambda: self.imported(outer), ")")
            if self.key != "{":
                raise self.unexpected("expected { and a subquery")
        elif self.ahead() != "WITH":
            self.scope = {}
        self.subquery()
        self.scope = outer
        if self.key == "IN":
            raise Unreadable(
                "IN TRANSACTIONS",
                self.tokens[self.at].start,
                "CALL { … } IN TRANSACTIONS commits as it goes; leave IN and all behind it out",
                True,
            )

    def imported(self, outer: dict[str, Binding]) -> None:
        variable = self.name("a variable")
        if variable.text in outer:
            self.scope[variable.text] = outer[variable.text]

    def subquery(self) -> None:
        """Read ``{ query }``, the braces included."""
        self.expect("{")
        pipe, self.pipe = self.pipe, -1
        self.query("}")
        self.pipe = pipe
        self.expect("}")
