"""Expressions of openCypher, and the place in the query that all its parsers share.

Operator precedence does not matter here, so an expression is a chain: signs before an operand, the operand, what
follows it, an operator, the next operand.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable

from byokg.graph.guard.allowlist import (
    FUNCTION_NAMESPACES,
    FUNCTIONS,
    OUTSIDE,
    SQL,
    WRITES,
    Binding,
    EdgeUse,
    LabelUse,
    Name,
    PropertyUse,
    nearest_names,
)
from byokg.graph.guard.tokens import MAX_NESTING, Cursor, RowLimit, Token, Unreadable, check_brackets, shorten

VARIABLE_ENDS = frozenset(", . ) ] } : ; end AS = <> != < > <= >= =~ % / ^ || | AND OR XOR IN IS CONTAINS".split())
"""Tokens that can follow a variable but not a keyword such as DISTINCT or CASE, which an operand must follow."""


class CypherCursor(Cursor):
    """Walks over the tokens of a query, of which any word may be a name."""

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
        self.spent = 0

    def spend(self, steps: int) -> None:
        """Count steps that are repeated for each variable or label known so far; a query may not ask for too many."""
        self.spent += steps
        if self.spent > _MOST_STEPS:
            raise self.unexpected("too many variables, or labels of one, in too many parts; write a shorter query")

    def copied(self, scope: dict[str, Binding] | None = None) -> dict[str, Binding]:
        """Return a copy of bindings, by default of the current ones, to be changed."""
        scope = self.scope if scope is None else scope
        self.spend(len(scope))
        return dict(scope)

    def _last_pipes(self) -> dict[int, int]:
        """Return, for each opening bracket, the place of the last ``|`` directly inside it.

        A list comprehension's projection begins there, although a label expression before it may hold others.
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

    def is_name(self, count: int = 0) -> bool:
        """True if a token is a quoted name or a word, which may be used as a name."""
        key = self.ahead(count) if count else self.key
        return key == "name" or key[0] == "_" or "A" <= key[0] <= "Z"

    def name(self, what: str) -> Token:
        if not self.is_name():
            raise self.unexpected(f"expected {what}; quote names with spaces or signs in backticks: `a name`")
        return self.advance()

    def unexpected(self, reason: str) -> Unreadable:
        """Return the error for the current token, blaming a writing word before it if there is one."""
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
        if token.key in SQL:
            return Unreadable(token.text, token.start, SQL[token.key])
        if token.key == before.key == "string":
            reason = "two strings side by side; write a quote inside a string with a backslash: \\'"
        elif token.key == "end":
            reason = f"the query ends too early: {reason}"
        return Unreadable(token.text or "end of the query", token.start, reason)

    @staticmethod
    def writes(token: Token) -> Unreadable:
        return Unreadable(token.text, token.start, f"{WRITES[token.key]}; only reading clauses run", True)

    def keyword(self, key: str) -> bool:
        """Take a keyword such as DISTINCT, unless the next token proves that it is a variable of that name."""
        return not self.is_variable() and self.accept(key)

    def is_variable(self) -> bool:
        """True if the current keyword must be a variable, because no operand follows."""
        following = self.ahead()
        return (
            following in VARIABLE_ENDS
            or (following == "ORDER" and self.ahead(2) == "BY")
            or (following in ("SKIP", "OFFSET", "LIMIT") and self.ahead(2) in ("number", "$"))
        )

    def forget(self, variable: Token) -> None:
        """Drop the bindings of a variable that now holds a value from elsewhere."""
        self.scope.pop(variable.text, None)

    def enter(self) -> None:
        """Go into a bracket: outside it a ``|`` meant something else."""
        self.outer_pipes.append(self.pipe)
        self.pipe = self.pipes.get(self.at, -1)
        self.advance()

    def leave(self, close: str) -> None:
        self.expect(close)
        self.pipe = self.outer_pipes.pop()

    def plain_sign(self) -> None:
        """Refuse a dash that looks like a minus, or an angle that looks like a comparison: it may stand for a pause."""
        token = self.token
        if not token.text.isascii() and token.key in ("-", "<", ">"):
            code = f"U+{ord(token.text):04X}"
            raise Unreadable(token.text, token.start, f"this sign ({code}) is no {token.key!r}; write {token.key}")

    def deeper(self) -> None:
        """Count a level that no bracket marks."""
        self.unbracketed += 1
        if self.unbracketed > MAX_NESTING:
            raise self.unexpected(f"more than {MAX_NESTING} of these within one another; write the query flatter")


_MOST_STEPS = 1_000_000

_INFIX = frozenset("AND OR XOR IN CONTAINS = <> != == < > <= >= =~ + - * / % ^ ||".split())
_COMPARISONS = frozenset("= <> != < > <= >= =~ CONTAINS IN".split())
PATH_WORDS = frozenset("ANY ALL SHORTEST WALK TRAIL ACYCLIC PATH PATHS GROUP GROUPS".split())
MATCH_MODE = {"REPEATABLE": ("ELEMENT", "ELEMENTS"), "DIFFERENT": ("RELATIONSHIP", "RELATIONSHIPS")}
_NORMAL_FORMS = frozenset("NFC NFD NFKC NFKD".split())
_SUBQUERY_WORDS = frozenset("EXISTS COUNT COLLECT".split())
_TYPE_WORDS = frozenset(
    """
    NOTHING NULL BOOL BOOLEAN VARCHAR STRING INT SIGNED INTEGER INTEGER64 INT64 INTEGER32 INT32 INTEGER16 INT16
    INTEGER8 INT8 FLOAT FLOAT64 FLOAT32 DATE LOCAL ZONED TIME DATETIME TIMESTAMP WITHOUT WITH TIMEZONE ZONE DURATION
    POINT NODE VERTEX RELATIONSHIP EDGE MAP LIST ARRAY VECTOR PATH PATHS PROPERTY VALUE ANY
    """.split()
)


def or_take(name: str, known: Iterable[str]) -> str:
    """Return the end of a message that proposes the known names nearest to a wrong one, if there are any."""
    near = nearest_names(name, known)
    return f", or take {' or '.join(near)}" if near else ""


class LabelParser(CypherCursor):
    """Reads labels, types and parameters."""

    @abstractmethod
    def expression(self) -> None:
        """Read an expression."""

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
                if self.accept("$", "ALL", "(") or self.accept("$", "ANY", "(") or self.accept("$", "("):
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
            elif not self.accept_any("&:"):
                return certain

    def ends_label(self) -> bool:
        """True if the token after a ``|`` cannot be a label, so that the ``|`` belongs to an outer construct."""
        return not (self.is_name(1) or self.ahead() in ("!", "(", "%", "$", ":")) or (
            self.is_name(1) and self.ahead(2) == "("
        )

    def is_predicate(self) -> None:
        if self.ahead() not in ("::", "TYPED", "NOT", "NULL", "NORMALIZED") and not (
            self.ahead() in _NORMAL_FORMS and self.ahead(2) == "NORMALIZED"
        ):
            self.label_predicate(None)
            return
        self.advance()
        self.accept("NOT")
        if self.accept_any(("::", "TYPED")):
            self.type()
            return
        self.accept_any(_NORMAL_FORMS)
        if not self.accept_any(("NULL", "NORMALIZED")):
            raise self.unexpected("expected NULL, or a type behind ::")

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
                    self.accept("<")
                    self.type()
                    self.expect(">")
                    self.unbracketed -= 1
                if self.accept("(", "number"):
                    if self.accept(","):
                        self.type()
                    self.expect(")")
                if not self.accept("NOT", "NULL"):
                    self.accept("!")
            if not (self.key == "|" and self.ahead() in _TYPE_WORDS and self.at != self.pipe):
                return
            self.advance()

    def parameter(self) -> None:
        self.expect("$")
        if not self.accept("number"):
            self.name("a parameter's name")


class ExpressionParser(LabelParser):
    """Reads expressions; these hold patterns and queries, which subclasses read."""

    @abstractmethod
    def path(self) -> None:
        """Read one path of a pattern."""

    @abstractmethod
    def patterns(self) -> None:
        """Read patterns separated by commas."""

    @abstractmethod
    def match_mode(self) -> None:
        """Read ``REPEATABLE ELEMENTS`` and the like."""

    @abstractmethod
    def at_relationship(self, at: int) -> bool:
        """True at ``-[``, ``--``, ``<-[`` or ``<--``."""

    @abstractmethod
    def subquery(self) -> None:
        """Read ``{ query }``, the braces included."""

    # Expressions.

    def expression(self) -> None:
        while True:
            while self.key in ("+", "-") or (self.key == "NOT" and self.ahead() not in VARIABLE_ENDS):
                self.plain_sign()
                self.advance()
            self.operand()
            if not self.operator():
                return

    def operator(self) -> bool:
        """Read an operator after an operand; True if another operand must follow."""
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
        if self.key in ("-", "<", ">"):
            self.plain_sign()
        if self.accept_any(_INFIX) or self.accept("STARTS", "WITH") or self.accept("ENDS", "WITH"):
            return True
        if self.key == "NOT" and self.ahead() in ("IN", "CONTAINS", "STARTS", "ENDS"):
            self.advance()
            return self.operator()
        return False

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
        elif self.accept_any(("string", "number")):
            return
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

    def starts_pattern(self) -> bool:
        """True if this parenthesis is a node with a relationship or another path behind it."""
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

    def projects_map(self) -> bool:
        """True if ``count {`` and the like is a map projection of a variable of that name."""
        return self.ahead(2) in (".", "}") or (self.is_name(2) and self.ahead(3) in (":", ",", "}"))

    def pattern_subquery(self, key: str) -> None:
        """Read ``EXISTS { … }`` and its kin, which hold a query or a bare pattern."""
        self.advance()
        bare = self.ahead() == "(" or self.ahead(2) == "=" or self.ahead() in MATCH_MODE or self.ahead() in PATH_WORDS
        outer, self.scope = self.scope, self.copied()
        if key == "COLLECT" or not bare:
            self.subquery()
        else:
            self.enter()
            self.pipe = -1
            self.match_mode()
            self.patterns()
            self.where()
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
                known = [*FUNCTIONS.values(), *(f"{space}.{rest[:60]}" for space in FUNCTION_NAMESPACES)]
                raise Unreadable(
                    name,
                    first.start,
                    f"only functions known to read may be called, {shorten(name)} is not; "
                    "use a function without a namespace" + or_take(plain, known),
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
            _ = self.keyword("DISTINCT") or self.keyword("ALL")
            self.arguments(trim=first.key == "TRIM" and len(parts) == 1)
        self.leave(")")
        self.scope = outer

    def arguments(self, trim: bool = False) -> None:
        """Read arguments, and the ``x IN list WHERE … | …`` of list functions."""
        if trim:
            if self.key in ("BOTH", "LEADING", "TRAILING") and self.ahead() not in VARIABLE_ENDS:
                self.advance()
            self.keyword("FROM")
        while True:
            self.item()
            if not (trim and self.accept("FROM")) and not self.accept(","):
                return

    def item(self) -> bool:
        """Read an argument or an element, or ``x IN list WHERE … | …``; return whether it ends in a projection."""
        self.list_variable()
        self.expression()
        self.where()
        if not self.accept("|"):
            return False
        self.pipe = -1
        self.expression()
        return True

    def where(self) -> None:
        """Read WHERE and its condition, if they are there."""
        if self.accept("WHERE"):
            self.expression()

    def list_variable(self) -> None:
        """Hide a variable of the query behind the one of ``x IN list``."""
        if self.is_name() and self.ahead() == "IN" and self.tokens[self.at].text in self.scope:
            self.scope = self.copied()
            self.forget(self.token)

    def list(self) -> None:
        """Read a list, a list comprehension or a pattern comprehension."""
        outer = self.scope
        self.scope = self.copied()
        self.enter()
        while self.key != "]" and not self.item() and self.accept(","):
            pass
        self.leave("]")
        self.scope = outer

    def map(self, owner: Binding | None) -> None:
        """Read ``{key: value}``; in a pattern the keys are properties of `owner`."""

        def entry() -> None:
            if self.key == "string":
                raise self.unexpected("keys of a map take no quotes; write {key: value}, or `a key` in backticks")
            self.property_of(owner, self.name("a key such as in {key: value}"))
            self.expect(":")
            self.expression()

        self.braces(entry)

    def map_projection(self, owner: Binding | None) -> None:
        """Read ``{.name, .*, key: value, variable}`` behind a variable."""

        def entry() -> None:
            if self.accept("."):
                if not self.accept("*"):
                    self.property_of(owner, self.name("a property"))
            else:
                self.name("a property such as in {.name}")
                if self.accept(":"):
                    self.expression()

        self.braces(entry)

    def braces(self, entry: Callable[[], None]) -> None:
        """Read entries separated by commas, and the braces around them."""
        pipe, self.pipe = self.pipe, -1
        self.advance()
        self.listed(entry, "}")
        self.pipe = pipe

    def case(self) -> None:
        self.deeper()
        self.advance()
        pipe, self.pipe = self.pipe, -1
        if self.key != "WHEN":
            self.expression()
        if self.key != "WHEN":
            raise self.unexpected("expected WHEN in CASE WHEN … THEN … END")
        while self.accept("WHEN"):
            self.separated(self.when_operand)
            self.expect("THEN")
            self.expression()
        if self.accept("ELSE"):
            self.expression()
        self.expect("END")
        self.pipe = pipe
        self.unbracketed -= 1

    def when_operand(self) -> None:
        """Read the operand of WHEN, possibly with an operator before it."""
        if self.key in ("IS", ":", "::") or (self.key in ("STARTS", "ENDS") and self.ahead() == "WITH"):
            if self.operator():
                self.expression()
        else:
            self.accept_any(_COMPARISONS)
            self.expression()
