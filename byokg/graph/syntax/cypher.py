"""openCypher, parsed as far as it takes to know that a query only reads, and what it asks of the schema.

A recursive descent over clauses, patterns and expressions. Operator precedence does not matter here, so an
expression is a chain: signs before an operand, the operand, what follows it, an operator, the next operand. That
chain decides the one thing that matters: whether a word stands where a clause may begin, or is a variable, property,
label, key or function. Whatever fits no rule raises `Unreadable`.

Accepted beyond openCypher 9: subqueries (CALL, EXISTS, COUNT, COLLECT), quantified path patterns, label expressions,
path selectors, type predicates, and the reading clauses FILTER, LET, FOR, FINISH of GQL.

Source: the openCypher 9 grammar, and the reading part of the Cypher 25 grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from byokg.graph.syntax.cursor import Cursor
from byokg.graph.syntax.names import FUNCTION_NAMESPACES, FUNCTIONS, OUTSIDE, PROCEDURES, WRITES
from byokg.graph.syntax.nearest import nearest_names
from byokg.graph.syntax.tokens import (
    MAX_NESTING,
    Edit,
    RowLimit,
    Token,
    Unreadable,
    blank,
    check_brackets,
    shortened,
    tokenise_cypher,
)

End = Literal["node", "edge"]


@dataclass(frozen=True)
class Name:
    """A label, relation type or property key as written, and the character where it starts."""

    text: str
    start: int


@dataclass(frozen=True)
class Binding:
    """What a pattern says of a variable: one of these labels or types, none when it does not say."""

    kind: End
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class LabelUse:
    """A label or relation type that a query names; `kind` is None on a variable whose kind is unknown."""

    name: Name
    kind: End | None


@dataclass(frozen=True)
class PropertyUse:
    """A property asked of a variable, or of an anonymous pattern part."""

    name: Name
    owner: Binding


@dataclass(frozen=True)
class EdgeUse:
    """One step of a pattern, head to tail; `directed` is false where it may be walked either way."""

    types: tuple[Name, ...]
    head: Binding
    tail: Binding
    directed: bool
    single: bool
    """One edge, so both ends are its ends; false for variable length."""


@dataclass(frozen=True)
class CypherQuery:
    """What parsing found out."""

    edits: tuple[Edit, ...]
    limit: RowLimit | None
    """None where the query does not end in one RETURN, as in a UNION, or computes how many rows it wants."""
    labels: tuple[LabelUse, ...]
    properties: tuple[PropertyUse, ...]
    edges: tuple[EdgeUse, ...]


_INFIX = frozenset("AND OR XOR IN CONTAINS = <> != == < > <= >= =~ + - * / % ^ ||".split())
_COMPARISONS = frozenset("= <> != < > <= >= =~ CONTAINS IN".split())
_PATH_WORDS = frozenset("ANY ALL SHORTEST WALK TRAIL ACYCLIC PATH PATHS GROUP GROUPS".split())
_MATCH_MODE = {"REPEATABLE": ("ELEMENT", "ELEMENTS"), "DIFFERENT": ("RELATIONSHIP", "RELATIONSHIPS")}
_SUBQUERY_WORDS = frozenset("EXISTS COUNT COLLECT".split())
_VARIABLE_ENDS = frozenset(", . ) ] } : ; end AS = <> != < > <= >= =~ % / ^ || | AND OR XOR IN IS CONTAINS".split())
"""What can follow a variable but not a keyword such as DISTINCT or CASE, which an operand must follow."""
_TYPE_WORDS = frozenset(
    """
    NOTHING NULL BOOL BOOLEAN VARCHAR STRING INT SIGNED INTEGER INTEGER64 INT64 INTEGER32 INT32 INTEGER16 INT16
    INTEGER8 INT8 FLOAT FLOAT64 FLOAT32 DATE LOCAL ZONED TIME DATETIME TIMESTAMP WITHOUT WITH TIMEZONE ZONE DURATION
    POINT NODE VERTEX RELATIONSHIP EDGE MAP LIST ARRAY VECTOR PATH PATHS PROPERTY VALUE ANY
    """.split()
)
_SQL = {
    "SELECT": "this is SQL; write Cypher: MATCH … RETURN …",
    "FROM": "this is SQL; write Cypher: MATCH … RETURN …",
    "HAVING": "Cypher has no HAVING; write WITH the aggregates AS names, then WHERE",
    "GROUP": "Cypher groups by the items that are not aggregates; leave GROUP BY out",
    "JOIN": "Cypher has no JOIN; join by using the same variable in two patterns",
    "LIKE": "Cypher has no LIKE; use CONTAINS, STARTS WITH, ENDS WITH or =~",
    "BETWEEN": "Cypher has no BETWEEN; write low <= x AND x <= high",
    "ILIKE": "Cypher has no ILIKE; use toLower(x) CONTAINS 'text'",
    "LATERAL": "Cypher has no LATERAL; use CALL { … }",
    "OVER": "Cypher has no window functions; use WITH, ORDER BY and collect()",
    "EXCEPT": "Cypher has no EXCEPT; use WHERE NOT EXISTS { … }",
    "INTERSECT": "Cypher has no INTERSECT; use both patterns in one MATCH",
}


def parse_cypher(text: str) -> CypherQuery:
    """Parse one reading query.

    Raises:
        Unreadable: it is not one, or not understood.
    """
    tokens, edits = tokenise_cypher(text)
    parser = _Parser(tokens)
    prefix = parser.options()
    if prefix is not None:
        start, stop = prefix
        edits = [Edit(start, stop, blank(text[start:stop])), *(edit for edit in edits if edit.start >= stop)]
    return parser.statement(edits)


def _or_take(name: str, known: Iterable[str]) -> str:
    near = nearest_names(name, known)
    return f", or take {' or '.join(near)}" if near else ""


class _Parser(Cursor):
    """Holds the tokens, the place reached, and what has been found so far."""

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__(tokens)
        self.pairs = check_brackets(self.tokens)
        self.pipes = self._last_pipes()
        self.pipe = -1
        self.limit: RowLimit | None = None
        self.unbracketed = 0
        self.outer_pipes: list[int] = []
        self.scope: dict[str, Binding] = {}
        self.labels: list[LabelUse] = []
        self.properties: list[PropertyUse] = []
        self.edges: list[EdgeUse] = []
        self.clauses: dict[str, Callable[[], object]] = {
            "MATCH": self.match,
            "OPTIONAL": self.optional,
            "UNWIND": self.unwind,
            "FOR": self.for_each,
            "WITH": self.with_,
            "RETURN": self.return_,
            "FINISH": self.finish,
            "CALL": self.call,
            "FILTER": self.filter,
            "LET": self.let,
            "ORDER": self.order_skip_limit,
            "SKIP": self.order_skip_limit,
            "OFFSET": self.order_skip_limit,
            "LIMIT": self.order_skip_limit,
        }

    def _last_pipes(self) -> dict[int, int]:
        """Return, for each opening bracket, where the last ``|`` directly inside it stands.

        There a list comprehension's projection begins, although a label expression before it may hold others.
        """
        found: dict[int, int] = {}
        inside: list[int] = []
        for number, token in enumerate(self.tokens):
            if number in self.pairs:
                inside.append(number)
            elif token.key in (")", "]", "}"):
                inside.pop()
            elif token.key == "|" and inside:
                found[inside[-1]] = number
        return found

    # Walking the tokens.

    def is_name(self, count: int = 0) -> bool:
        """Say whether a token is a quoted name or a word, which may be used as a name."""
        key = self.ahead(count) if count else self.key
        return key == "name" or key[0] == "_" or "A" <= key[0] <= "Z"

    def name(self, what: str) -> Token:
        if not self.is_name():
            raise self.unexpected(f"expected {what}; quote names with spaces or signs in backticks: `a name`")
        return self.advance()

    def unexpected(self, reason: str) -> Unreadable:
        """Say what is wrong with the token reached, blaming a writing word before it where there is one."""
        token = self.token
        before = self.tokens[self.at - 1] if self.at else token
        if token.key in WRITES:
            return self.writes(token)
        if before.key in WRITES and (self.at < 2 or self.tokens[self.at - 2].key not in (".", ":", "$", "|", "&", "!")):
            return self.writes(before)
        if token.key == ";":
            return Unreadable(";", token.start, "this begins a second statement; send one query only", True)
        if token.key in OUTSIDE:
            return Unreadable(token.text, token.start, OUTSIDE[token.key], True)
        if token.key in _SQL:
            return Unreadable(token.text, token.start, _SQL[token.key])
        if token.key == before.key == "string":
            reason = "two strings side by side; write a quote inside a string with a backslash: \\'"
        elif token.key == "end":
            reason = f"the query ends too early: {reason}"
        return Unreadable(token.text or "end of the query", token.start, reason)

    @staticmethod
    def writes(token: Token) -> Unreadable:
        return Unreadable(token.text, token.start, f"{WRITES[token.key]}; only reading clauses run", True)

    # Queries and clauses.

    def options(self) -> tuple[int, int] | None:
        """Pass over ``CYPHER 25 runtime=…``, EXPLAIN and PROFILE; return from where to where they stand.

        They ask how a query is run, or for its plan. Here rows are wanted, so the query behind them is run without.
        """
        while self.key in ("CYPHER", "EXPLAIN", "PROFILE"):
            if self.advance().key == "CYPHER":
                self.accept("number")
                while self.is_name() and self.ahead() == "=":
                    self.go_to(self.at + 3)
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
                if branches and self.key in ("ALL", "DISTINCT"):
                    self.advance()
                self.scope = dict(within)
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
        """Read clauses up to what ends them, or branches of WHEN, or a query in braces."""
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
            self.scope = dict(scope)
            self.single_query(close)
        if self.accept("ELSE"):
            self.scope = dict(scope)
            self.single_query(close)
        self.limit = None

    def not_a_clause(self) -> Unreadable:
        if self.is_name() and self.key not in WRITES and self.at:
            before = self.tokens[self.at - 1]
            reason = (
                f"this does not follow from {shortened(before.text)!r}; a comma, an operator, AS or a clause is missing"
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
        if self.accept("WHERE"):
            self.expression()

    def match_mode(self) -> None:
        if self.ahead() in _MATCH_MODE.get(self.key, ()):
            self.advance()
            self.advance()
            self.accept("BINDINGS")

    def hint(self) -> None:
        if self.ahead() not in ("INDEX", "TEXT", "RANGE", "POINT", "SCAN", "JOIN"):
            raise self.unexpected("")
        self.advance()
        kind = self.advance().key
        if kind == "JOIN":
            self.expect("ON")
            self.name("a variable")
            while self.accept(","):
                self.name("a variable")
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
            self.name("a property")
            while self.accept(","):
                self.name("a property")
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
        self.advance()
        while True:
            variable = self.name("a variable")
            self.expect("=")
            self.expression()
            self.forget(variable)
            if not self.accept(","):
                return

    def filter(self) -> None:
        self.advance()
        self.keyword("WHERE")
        self.expression()

    def finish(self) -> None:
        self.advance()

    def with_(self) -> None:
        self.projection()
        if self.accept("WHERE"):
            self.expression()

    def return_(self) -> None:
        self.limit = self.projection()

    def projection(self) -> RowLimit | None:
        """Read WITH or RETURN, its items and what orders and cuts them; carry bindings over to the new names."""
        self.advance()
        if not self.keyword("DISTINCT") and self.ahead() != "(":
            self.keyword("ALL")
        kept: dict[str, Binding] = {}
        while True:
            if self.key == "*":
                self.advance()
                kept.update(self.scope)
            else:
                start = self.at
                self.expression()
                alone = self.tokens[start] if self.at == start + 1 else None
                bound = self.scope.get(alone.text) if alone is not None else None
                if self.accept("AS"):
                    alone = self.name("a name behind AS")
                if alone is not None and bound is not None:
                    kept[alone.text] = bound
            if not self.accept(","):
                break
        before = self.scope
        self.scope = {**before, **kept}
        limit = self.order_skip_limit()
        self.scope = kept
        return limit

    def keyword(self, key: str) -> bool:
        """Take a keyword such as DISTINCT, unless what follows shows that it is a variable of that name."""
        if self.key != key or self.is_variable():
            return False
        self.advance()
        return True

    def is_variable(self) -> bool:
        """Say whether the keyword reached must be a variable, because no operand comes behind it."""
        following = self.ahead()
        return (
            following in _VARIABLE_ENDS
            or (following == "ORDER" and self.ahead(2) == "BY")
            or (following in ("SKIP", "OFFSET", "LIMIT") and self.ahead(2) in ("number", "$"))
        )

    def order_skip_limit(self) -> RowLimit | None:
        """Read what orders and cuts rows; return the number behind LIMIT, or where a LIMIT could stand."""
        if self.accept("ORDER"):
            self.expect("BY")
            while True:
                self.expression()
                if self.key in ("ASC", "ASCENDING", "DESC", "DESCENDING"):
                    self.advance()
                if self.key == "NULLS" and self.ahead() in ("FIRST", "LAST"):
                    self.advance()
                    self.advance()
                if not self.accept(","):
                    break
        if self.key in ("SKIP", "OFFSET"):
            self.advance()
            self.expression()
        if not self.accept("LIMIT"):
            end = self.tokens[self.at - 1].stop
            return RowLimit(end, end, None)
        number = self.token
        self.expression()
        alone = self.tokens[self.at - 1] is number and number.text.isdecimal()
        return RowLimit(number.start, number.stop, int(number.text)) if alone else None

    def call(self) -> None:
        call = self.advance()
        if self.key in ("{", "("):
            self.call_subquery()
            return
        start = self.at
        parts = [self.name("a procedure, or { for a subquery")]
        while self.accept("."):
            parts.append(self.name("a procedure"))
        name = ".".join(part.text for part in parts)
        plain = name.lower().removeprefix("apoc.")
        streams = plain.startswith(("gds.", "algo.")) and plain.endswith((".stream", ".stats"))
        if plain not in PROCEDURES and not streams:
            raise Unreadable(
                f"{call.text} {name}",
                self.tokens[start].start,
                f"only procedures known to read may be called, {shortened(name)} is not; ask with MATCH instead"
                + _or_take(plain, PROCEDURES.values()),
                True,
            )
        if self.accept("("):
            while self.key != ")":
                self.expression()
                if not self.accept(","):
                    break
            self.expect(")")
        if self.accept("YIELD"):
            if not self.accept("*"):
                while True:
                    self.forget(self.name("a column behind YIELD"))
                    if self.accept("AS"):
                        self.forget(self.name("a name behind AS"))
                    if not self.accept(","):
                        break
            if self.accept("WHERE"):
                self.expression()

    def call_subquery(self) -> None:
        outer = self.scope
        if self.accept("("):
            if not self.accept("*"):
                self.scope = {}
                while self.key != ")":
                    variable = self.name("a variable")
                    if variable.text in outer:
                        self.scope[variable.text] = outer[variable.text]
                    if not self.accept(","):
                        break
            self.expect(")")
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

    def subquery(self) -> None:
        """Read ``{ query }``, the braces included."""
        self.expect("{")
        pipe, self.pipe = self.pipe, -1
        self.query("}")
        self.pipe = pipe
        self.expect("}")

    def forget(self, variable: Token) -> None:
        """Drop what is known of a variable that now holds a value from elsewhere."""
        self.scope.pop(variable.text, None)

    # Patterns.

    def patterns(self) -> None:
        self.pattern()
        while self.accept(","):
            self.pattern()

    def pattern(self) -> None:
        if self.is_name() and self.ahead() == "=":
            self.forget(self.advance())
            self.advance()
        while self.key in _PATH_WORDS or (self.key in ("number", "$") and self.tokens[self.at - 1].key in _PATH_WORDS):
            if self.key == "$":
                self.parameter()
            else:
                self.advance()
        if self.key in ("SHORTESTPATH", "ALLSHORTESTPATHS") and self.ahead() == "(":
            self.advance()
            self.advance()
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
                if self.accept("WHERE"):
                    self.expression()
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
        return self.ahead() in _PATH_WORDS and (self.ahead(2) in _PATH_WORDS or self.ahead(2) in ("(", "number"))

    def at_relationship(self, at: int) -> bool:
        """Say whether ``-[``, ``--``, ``<-[`` or ``<--`` stands here."""
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
        if self.accept("WHERE"):
            self.expression()

    def bind(self, variable: Token | None, binding: Binding) -> Binding:
        if variable is None:
            return binding
        known = self.scope.get(variable.text)
        if known is not None and known.kind == binding.kind:
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
                if self.key == "number":
                    self.advance()
                if self.accept("..") and self.key == "number":
                    self.advance()
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
        if self.key in ("+", "*"):
            self.advance()
            return True
        if not self.accept("{"):
            return False
        first = self.accept("number")
        if not (self.accept(",") or first):
            raise self.unexpected("expected a quantifier such as {1,3}")
        self.accept("number")
        self.expect("}")
        return True

    def label_expression(self, found: list[Name]) -> bool:
        """Read ``:A|B&!C``; return whether the names listed are all that is allowed (nothing negated or dynamic)."""
        self.advance()
        return self.label_terms(found)

    def label_terms(self, found: list[Name]) -> bool:
        certain = True
        while True:
            while self.accept("!"):
                certain = False
            if self.accept("("):
                certain &= self.label_terms(found)
                self.expect(")")
            elif self.accept("%"):
                certain = False
            elif self.key == "$":
                certain = False
                if self.ahead() in ("ALL", "ANY") and self.ahead(2) == "(":
                    self.advance()
                    self.advance()
                elif self.ahead() == "(":
                    self.advance()
                if self.accept("("):
                    self.expression()
                    self.expect(")")
                else:
                    self.parameter()
            else:
                token = self.name("a label or relation type")
                found.append(Name(token.text, token.start))
            if self.key == "|" and self.at != self.pipe and not self.ends_label():
                self.advance()
                self.accept(":")
            elif self.key in ("&", ":"):
                self.advance()
            else:
                return certain

    def ends_label(self) -> bool:
        """Say whether what follows a ``|`` cannot be a label, so that the ``|`` belongs to something around it."""
        return not (self.is_name(1) or self.ahead() in ("!", "(", "%", "$", ":")) or (
            self.is_name(1) and self.ahead(2) == "("
        )

    # Expressions.

    def expression(self) -> None:
        while True:
            while self.key in ("+", "-") or (self.key == "NOT" and self.ahead() not in _VARIABLE_ENDS):
                self.advance()
            self.operand()
            if not self.operator():
                return

    def operator(self) -> bool:
        """Read what follows an operand; return whether another operand must come."""
        while True:
            match self.key:
                case ".":
                    self.advance()
                    self.name("a property")
                case "[":
                    self.subscript()
                case ":":
                    self.label_predicate(None)
                case "::":
                    self.advance()
                    self.type()
                case "IS":
                    self.is_predicate()
                case _:
                    break
        if self.key in _INFIX:
            self.advance()
            return True
        if self.key in ("STARTS", "ENDS") and self.ahead() == "WITH":
            self.advance()
            self.advance()
            return True
        if self.key == "NOT" and self.ahead() in ("IN", "CONTAINS", "STARTS", "ENDS"):
            self.advance()
            return self.operator()
        return False

    def is_predicate(self) -> None:
        if self.ahead() in ("::", "TYPED", "NOT", "NULL", "NORMALIZED") or (
            self.ahead() in ("NFC", "NFD", "NFKC", "NFKD") and self.ahead(2) == "NORMALIZED"
        ):
            self.advance()
            self.accept("NOT")
            if self.key in ("::", "TYPED"):
                self.advance()
                self.type()
                return
            if self.key in ("NFC", "NFD", "NFKC", "NFKD"):
                self.advance()
            if self.key not in ("NULL", "NORMALIZED"):
                raise self.unexpected("expected NULL, or a type behind ::")
            self.advance()
        else:
            self.label_predicate(None)

    def label_predicate(self, owner: Binding | None) -> None:
        found: list[Name] = []
        self.label_expression(found)
        self.labels += [LabelUse(name, owner.kind if owner else None) for name in found]

    def type(self) -> None:
        """Read a type such as ``LIST<INTEGER NOT NULL> | STRING``."""
        while True:
            if self.key not in _TYPE_WORDS:
                raise self.unexpected("expected a type such as INTEGER, STRING or LIST<STRING>")
            while self.key in _TYPE_WORDS and not (self.key == "WITH" and self.ahead() not in ("TIME", "TIMEZONE")):
                self.advance()
                if self.key == "<":
                    self.deeper()
                    self.advance()
                    self.type()
                    self.expect(">")
                    self.unbracketed -= 1
                if self.key == "(" and self.ahead() == "number":
                    self.advance()
                    self.advance()
                    if self.accept(","):
                        self.type()
                    self.expect(")")
                if self.key == "NOT" and self.ahead() == "NULL":
                    self.advance()
                    self.advance()
                else:
                    self.accept("!")
            if not (self.key == "|" and self.ahead() in _TYPE_WORDS and self.at != self.pipe):
                return
            self.advance()

    def subscript(self) -> None:
        """Read ``[index]`` or ``[from..to]`` behind an operand."""
        self.expect("[")
        pipe, self.pipe = self.pipe, -1
        if self.key != "..":
            self.expression()
        if self.accept("..") and self.key != "]":
            self.expression()
        self.expect("]")
        self.pipe = pipe

    def operand(self) -> None:
        key = self.key
        if key == "(":
            if self.starts_pattern():
                self.path()
                return
            self.enter()
            self.expression()
            self.leave(")")
        elif key in ("string", "number"):
            self.advance()
        elif key == "$":
            self.parameter()
        elif key == "[":
            self.list()
        elif key == "{":
            self.map(None)
        elif key == "CASE" and not self.is_variable():
            self.case()
        elif key in _SUBQUERY_WORDS and self.ahead() == "{" and not self.projects_map():
            self.pattern_subquery(key)
        elif self.is_name():
            self.variable_or_call()
        else:
            raise self.unexpected("an expression is missing here")

    def enter(self) -> None:
        """Go into a bracket: outside it a ``|`` meant something else."""
        self.outer_pipes.append(self.pipe)
        self.pipe = self.pipes.get(self.at, -1)
        self.advance()

    def leave(self, close: str) -> None:
        self.expect(close)
        self.pipe = self.outer_pipes.pop()

    def starts_pattern(self) -> bool:
        """Say whether this parenthesis is a node with a relationship or another path behind it."""
        after = self.pairs[self.at] + 1
        node = (
            self.ahead() == ")"
            or self.ahead() in (":", "{")
            or (self.is_name(1) and self.ahead(2) in (")", ":", "{", "WHERE", "IS", "$"))
        )
        if not node:
            return False
        if self.tokens[after].key == "(":
            return True
        if not self.at_relationship(after):
            return False
        line = after + (self.tokens[after].key == "<") + 1
        return self.tokens[line].key == "-" or self.tokens[self.pairs[line] + 1].key == "-"

    def parameter(self) -> None:
        self.expect("$")
        if self.key == "number":
            self.advance()
        else:
            self.name("a parameter's name")

    def projects_map(self) -> bool:
        """Say whether ``count {`` and the like is a map projection of a variable of that name."""
        return self.ahead(2) in (".", "}") or (self.is_name(2) and self.ahead(3) in (":", ",", "}"))

    def pattern_subquery(self, key: str) -> None:
        """Read ``EXISTS { … }`` and its kin, which hold a query or a bare pattern."""
        self.advance()
        bare = self.ahead() == "(" or self.ahead(2) == "=" or self.ahead() in _MATCH_MODE or self.ahead() in _PATH_WORDS
        if key == "COLLECT" or not bare:
            outer, self.scope = self.scope, dict(self.scope)
            self.subquery()
            self.scope = outer
            return
        outer, self.scope = self.scope, dict(self.scope)
        self.enter()
        self.pipe = -1
        self.match_mode()
        self.patterns()
        if self.accept("WHERE"):
            self.expression()
        self.leave("}")
        self.scope = outer

    def variable_or_call(self) -> None:
        stop = self.at + 1
        while self.tokens[stop].key == "." and self.is_name(stop + 1 - self.at):
            stop += 2
        if self.tokens[stop].key == "(":
            self.function(stop)
            return
        variable = self.advance()
        if self.key == "{":
            self.map_projection(self.scope.get(variable.text))
            return
        owner = self.scope.get(variable.text)
        if owner is None:
            return
        if self.key == "." and self.is_name(1):
            self.advance()
            self.property_of(owner, self.advance())
        elif self.key == "[" and self.ahead() == "string" and self.ahead(2) == "]":
            token = self.tokens[self.at + 1]
            if "\\" not in token.text:
                self.properties.append(PropertyUse(Name(token.text[1:-1], token.start), owner))
        elif self.key == ":":
            self.label_predicate(owner)

    def property_of(self, owner: Binding | None, token: Token) -> None:
        if owner is not None:
            self.properties.append(PropertyUse(Name(token.text, token.start), owner))

    def function(self, bracket: int) -> None:
        first = self.tokens[self.at]
        parts = self.tokens[self.at : bracket : 2]
        name = ".".join(part.text for part in parts)  # a quoted name may hold dots of its own
        if "." in name:
            plain = name.lower().removeprefix("apoc.")
            namespace, _, rest = plain.partition(".")
            if plain not in FUNCTIONS and not (rest and namespace in FUNCTION_NAMESPACES):
                known = [*FUNCTIONS.values(), *(f"{space}.{rest}" for space in FUNCTION_NAMESPACES)]
                raise Unreadable(
                    name,
                    first.start,
                    f"only functions known to read may be called, {shortened(name)} is not; "
                    "use a function without a namespace" + _or_take(plain, known),
                    True,
                )
        elif first.key in WRITES:
            raise self.writes(first)
        while self.at < bracket:
            self.advance()
        outer = self.scope
        self.enter()
        if self.key == "*" and self.ahead() == ")":
            self.advance()
        elif self.key != ")":
            if not self.keyword("DISTINCT"):
                self.keyword("ALL")
            self.arguments(trim=first.key == "TRIM" and len(parts) == 1)
        self.leave(")")
        self.scope = outer

    def arguments(self, trim: bool = False) -> None:
        """Read arguments, and the ``x IN list WHERE … | …`` of list functions."""
        if trim:
            if self.key in ("BOTH", "LEADING", "TRAILING") and self.ahead() not in _VARIABLE_ENDS:
                self.advance()
            self.keyword("FROM")
        while True:
            self.list_variable()
            self.expression()
            if trim and self.accept("FROM"):
                continue
            if self.accept("WHERE"):
                self.expression()
            if self.accept("|"):
                self.pipe = -1
                self.expression()
            if not self.accept(","):
                return

    def list_variable(self) -> None:
        """Hide a variable of the query behind the one of ``x IN list``."""
        if self.is_name() and self.ahead() == "IN" and self.tokens[self.at].text in self.scope:
            self.scope = {name: bound for name, bound in self.scope.items() if name != self.tokens[self.at].text}

    def list(self) -> None:
        """Read a list, a list comprehension or a pattern comprehension."""
        outer = self.scope
        self.scope = dict(outer)
        self.enter()
        while self.key != "]":
            self.list_variable()
            self.expression()
            if self.accept("WHERE"):
                self.expression()
            if self.accept("|"):
                self.pipe = -1
                self.expression()
                break
            if not self.accept(","):
                break
        self.leave("]")
        self.scope = outer

    def map(self, owner: Binding | None) -> None:
        """Read ``{key: value}``; in a pattern the keys are properties of `owner`."""
        self.enter()
        self.pipe = -1
        while self.key != "}":
            if self.key == "string":
                raise self.unexpected("keys of a map take no quotes; write {key: value}, or `a key` in backticks")
            key = self.name("a key such as in {key: value}")
            self.property_of(owner, key)
            self.expect(":")
            self.expression()
            if not self.accept(","):
                break
        self.leave("}")

    def map_projection(self, owner: Binding | None) -> None:
        """Read ``{.name, .*, key: value, variable}`` behind a variable."""
        self.enter()
        self.pipe = -1
        while self.key != "}":
            if self.accept("."):
                if not self.accept("*"):
                    self.property_of(owner, self.name("a property"))
            else:
                self.name("a property such as in {.name}")
                if self.accept(":"):
                    self.expression()
            if not self.accept(","):
                break
        self.leave("}")

    def deeper(self) -> None:
        """Count a level that no bracket marks."""
        self.unbracketed += 1
        if self.unbracketed > MAX_NESTING:
            raise self.unexpected(f"more than {MAX_NESTING} of these within one another; write the query flatter")

    def case(self) -> None:
        self.deeper()
        self.advance()
        pipe, self.pipe = self.pipe, -1
        if self.key != "WHEN":
            self.expression()
        if self.key != "WHEN":
            raise self.unexpected("expected WHEN in CASE WHEN … THEN … END")
        while self.accept("WHEN"):
            while True:
                if self.key in ("IS", ":", "::") or (self.key in ("STARTS", "ENDS") and self.ahead() == "WITH"):
                    if self.operator():
                        self.expression()
                else:
                    if self.key in _COMPARISONS:
                        self.advance()
                    self.expression()
                if not self.accept(","):
                    break
            self.expect("THEN")
            self.expression()
        if self.accept("ELSE"):
            self.expression()
        self.expect("END")
        self.pipe = pipe
        self.unbracketed -= 1
