"""A place in a list of tokens, and the steps that every parser takes from there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from byokg.graph.syntax.tokens import Token, Unreadable


class Cursor(ABC):
    """Walks over tokens; semicolons at their end are passed over."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        """Stand at the first of the tokens, of which the last has the key ``end``."""
        last = len(tokens) - 2
        while last >= 0 and tokens[last].key == ";":
            last -= 1
        end = tokens[-1].start
        self.tokens = [*tokens[: last + 1], Token("end", "", end, end)]
        self.at = 0
        self.key = self.tokens[0].key
        """The key of the token reached."""

    @property
    def token(self) -> Token:
        """Return the token reached."""
        return self.tokens[self.at]

    def advance(self) -> Token:
        """Go on to the next token, and return the one that was reached before."""
        token = self.tokens[self.at]
        self.at += 1
        self.key = self.tokens[self.at].key
        return token

    def go_to(self, at: int) -> None:
        """Go to another token, by its number."""
        self.at = at
        self.key = self.tokens[at].key

    def ahead(self, count: int = 1) -> str:
        """Return the key of a token further on."""
        place = self.at + count
        return self.tokens[place].key if place < len(self.tokens) else "end"

    def accept(self, key: str) -> bool:
        """Go on if the token reached has this key, and say whether it had."""
        if self.key == key:
            self.advance()
            return True
        return False

    def expect(self, key: str, what: str = "") -> Token:
        """Go on if the token reached has this key. Raises `Unreadable` otherwise, which says what was expected."""
        if self.key != key:
            raise self.unexpected(f"expected {what or key}")
        return self.advance()

    @abstractmethod
    def unexpected(self, reason: str) -> Unreadable:
        """Say what is wrong with the token reached."""
