"""A place in the tokens of an openCypher query, what has been found up to there, and what is wrong with what comes."""

from __future__ import annotations

from byokg.graph.syntax.cursor import Cursor
from byokg.graph.syntax.names import OUTSIDE, WRITES
from byokg.graph.syntax.tokens import MAX_NESTING, RowLimit, Token, Unreadable, check_brackets
from byokg.graph.syntax.uses import Binding, EdgeUse, LabelUse, PropertyUse

VARIABLE_ENDS = frozenset(", . ) ] } : ; end AS = <> != < > <= >= =~ % / ^ || | AND OR XOR IN IS CONTAINS".split())
"""What can follow a variable but not a keyword such as DISTINCT or CASE, which an operand must follow."""
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
            following in VARIABLE_ENDS
            or (following == "ORDER" and self.ahead(2) == "BY")
            or (following in ("SKIP", "OFFSET", "LIMIT") and self.ahead(2) in ("number", "$"))
        )

    def forget(self, variable: Token) -> None:
        """Drop what is known of a variable that now holds a value from elsewhere."""
        self.scope.pop(variable.text, None)

    def deeper(self) -> None:
        """Count a level that no bracket marks."""
        self.unbracketed += 1
        if self.unbracketed > MAX_NESTING:
            raise self.unexpected(f"more than {MAX_NESTING} of these within one another; write the query flatter")
