"""Query text as tokens: strings, quoted names, comments, numbers, words and signs, each with its place.

`cypher_tokens` and `sparql_tokens` cut text with what is here. Both are strict: a character that they do not know, an
unclosed string or an invisible character raises `Unreadable`. They also say how the text must be rewritten (`Edit`) so
that no engine can read it otherwise: comments become blanks, unusual spaces become spaces, and escapes that some
engines decode before they look for quotes become plain ones.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

MAX_CHARACTERS = 200_000
"""Longer text is refused unread; no question needs it, and reading stays well under a second."""

MAX_NESTING = 100
"""Brackets within brackets; a limit keeps the parsers clear of Python's recursion limit."""


class Token(NamedTuple):
    """One word, name, literal or sign.

    `key` is what parsers compare: a word in capitals, the sign itself, or a lower-case kind: ``name`` (quoted, or a
    word with other than ASCII letters), ``string``, ``number``, and ``end`` behind the last token. SPARQL adds
    ``iri``, ``pname``, ``var``, ``blank`` and ``lang``. `text` is the value: quotes of names are gone, and so are
    escapes that stand for a character by its number. It fills the characters from `start` up to `stop`.
    """

    key: str
    text: str
    start: int
    stop: int


class Edit(NamedTuple):
    """Replace the characters from `start` up to `stop`."""

    start: int
    stop: int
    text: str


class RowLimit(NamedTuple):
    """The number of rows that a query asks for, from `start` to `stop`; or where it could, if `rows` is None."""

    start: int
    stop: int
    rows: int | None


class Unreadable(Exception):
    """Text that is not one reading query as far as this package can tell.

    `forbidden` is true where something was recognised that must not run (a write, a call to the outside, a second
    statement), false where the text is merely not understood.
    """

    def __init__(self, found: str, start: int, reason: str, forbidden: bool = False) -> None:
        super().__init__(reason)
        self.found = shortened(found)
        self.start = start
        self.reason = reason
        self.forbidden = forbidden


def shortened(text: str) -> str:
    """Return a text for a message: the whole, or its beginning where it is long."""
    return text if len(text) <= 60 else text[:59] + "…"


def place(text: str, start: int) -> tuple[int, int]:
    """Return line and column of a character, both counted from 1."""
    before = re.split(r"\r\n|\r|\n", text[:start])
    return len(before), len(before[-1]) + 1


def apply(text: str, edits: Sequence[Edit]) -> str:
    """Return the text with its edits made; they are sorted and do not overlap."""
    pieces: list[str] = []
    at = 0
    for edit in edits:
        pieces += text[at : edit.start], edit.text
        at = edit.stop
    return "".join([*pieces, text[at:]])


_NUMBERED = r"\\u++([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})"
_ESCAPE = re.compile(rf"{_NUMBERED}|\\.", re.DOTALL)
NUMBERED_ESCAPE = re.compile(_NUMBERED)


def character(escape: re.Match[str]) -> str:
    """Return what an escape stands for; itself where it has no number, or one that is no character's."""
    code = escape[1] or escape[2]
    number = int(code, 16) if code else -1
    return chr(number) if 0 <= number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF else escape[0]


def readings(text: str) -> Iterator[str]:
    """Yield the other ways in which an engine may read a text, where escapes or line ends leave room for them.

    Some engines decode ``\\u0027`` before they look for strings and comments, with or without regard to a backslash
    before it; and a lone carriage return ends a comment for some and not for others.
    """
    if "\\u" in text or "\\U" in text:
        yield _ESCAPE.sub(character, text)
        yield NUMBERED_ESCAPE.sub(character, text)
    if "\r" in text and (bare := re.sub(r"\r(?!\n)", " ", text)) != text:
        yield bare


_PLAIN_SPACES = frozenset(" \t\r\n")
_STRUCTURAL = {"'": "\\'", '"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r"}


def blank(text: str) -> str:
    """Return spaces in place of a text, keeping its line breaks so that places stay the same."""
    return re.sub(r"[^\r\n]", " ", text)


def _plain_string(text: str) -> str:
    """Return a string literal in which escapes that stand for quotes, backslashes or line breaks are the short ones."""
    return _ESCAPE.sub(lambda escape: _STRUCTURAL.get(character(escape), escape[0]), text)


def tokenise(
    text: str, start: int, stop: int, pattern: re.Pattern[str], name: Callable[[str, str, int, int], Token]
) -> tuple[list[Token], list[Edit]]:
    """Cut text by a pattern whose groups say what a token is.

    Args:
        text: holds what is to be cut from `start` up to `stop`.
        start: the first character.
        stop: behind the last character.
        pattern: has the groups ``space``, ``comment``, ``string``, ``number``, ``sign``, and others for names.
        name: makes a token of another group, given the group, the text, and the first and last place.

    Returns:
        Tokens in order, the last with the key ``end``; edits in order.

    Raises:
        Unreadable: a part of the text is no token, or the text is too long.
    """
    if len(text) > MAX_CHARACTERS:
        raise Unreadable(
            text,
            0,
            f"the query has {len(text):,} characters, at most {MAX_CHARACTERS:,} are read; "
            "ask for less, or pass long lists as a parameter",
        )
    tokens: list[Token] = []
    edits: list[Edit] = []
    at = start
    if at == 0 and text.startswith("\ufeff"):
        edits.append(Edit(0, 1, " "))
        at = 1
    while at < stop:
        found = pattern.match(text, at, stop)
        if found is None:
            raise _strange(text, at)
        kind, value, end = found.lastgroup or "", found[0], found.end()
        match kind:
            case "space":
                if not _PLAIN_SPACES.issuperset(value):
                    edits.append(Edit(at, end, re.sub(r"[^\t\r\n]", " ", value)))
            case "comment":
                edits.append(Edit(at, end, blank(value)))
            case "string":
                if "\\" in value and (plain := _plain_string(value)) != value:
                    edits.append(Edit(at, end, plain))
                tokens.append(Token("string", value, at, end))
            case "number":
                if text[end : end + 1].isalnum() or text[end : end + 1] == "_":
                    raise Unreadable(text[at : end + 1], at, "a number runs into a word; put a space between them")
                tokens.append(Token("number", value, at, end))
            case "sign":
                tokens.append(Token(value, value, at, end))
            case _:
                token = name(kind, text, at, end)
                end = token.stop
                if kind != "quoted" and token.text != text[at:end]:
                    edits.append(Edit(at, end, token.text))
                tokens.append(token)
        at = end
    tokens.append(Token("end", "", stop, stop))
    return tokens, edits


def _strange(text: str, at: int) -> Unreadable:
    """Say what is wrong with a character that starts no token."""
    character = text[at]
    unclosed = {
        "'": "this string is never closed; end it with ', and write a ' inside it as \\'",
        '"': 'this string is never closed; end it with ", and write a " inside it as \\"',
        "`": "this quoted name is never closed; end it with `, and write a ` inside it twice",
    }
    if character in unclosed:
        return Unreadable(text[at : at + 20], at, unclosed[character])
    if text.startswith("/*", at):
        return Unreadable("/*", at, "this comment is never closed; end it with */ or leave it out")
    if character == "\\":
        return Unreadable(text[at : at + 6], at, "an escape outside a string; write the character itself")
    if unicodedata.category(character) in ("Cc", "Cf", "Co", "Cn", "Cs"):
        return Unreadable(f"U+{ord(character):04X}", at, "an invisible character; delete it")
    return Unreadable(character, at, "this character means nothing here; put text in quotes, or delete it")


def check_brackets(tokens: Sequence[Token]) -> dict[int, int]:
    """Return the position of the closing bracket of each opening one.

    Raises:
        Unreadable: one has no partner, or they are nested too deep.
    """
    partner = {")": "(", "]": "[", "}": "{"}
    opening = {value: key for key, value in partner.items()}
    open_at: list[int] = []
    pairs: dict[int, int] = {}
    for number, token in enumerate(tokens):
        if token.key in opening:
            open_at.append(number)
            if len(open_at) > MAX_NESTING:
                raise Unreadable(
                    token.key,
                    token.start,
                    f"more than {MAX_NESTING} brackets within one another; write the query flatter",
                )
        elif token.key in partner:
            if not open_at or tokens[open_at[-1]].key != partner[token.key]:
                expected = f"{opening[tokens[open_at[-1]].key]!r} comes first" if open_at else "nothing is open here"
                raise Unreadable(token.key, token.start, f"this bracket closes nothing: {expected}")
            pairs[open_at.pop()] = number
    if open_at:
        token = tokens[open_at[-1]]
        raise Unreadable(token.key, token.start, f"this bracket is never closed; add {opening[token.key]!r}")
    return pairs
