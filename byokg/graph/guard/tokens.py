"""Query text as tokens: strings, quoted names, comments, numbers, words and signs, each with its place.

`tokenise_cypher` and `tokenise_sparql` are strict: an unknown character, an unclosed string, an invisible character or
half of one raises `Unreadable`. They also return rewrites (`Edit`) that leave every engine a single reading: comments
become blanks, unusual spaces become spaces, and escapes that some engines decode before they look for quotes become
plain ones. `Cursor` walks over the tokens, for the parsers of both languages.
"""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import NamedTuple, TypeVar

from byokg.errors import QueryRefused

Read = TypeVar("Read")
Match = Callable[[str, int, int], "re.Match[str] | None"]

MAX_CHARACTERS = 200_000
"""Longer text is refused unread; no question needs it, and reading stays well under a second."""

MAX_NESTING = 100
"""Brackets within brackets; a limit keeps the parsers clear of Python's recursion limit."""


class Token(NamedTuple):
    """One word, name, literal or sign.

    `key` is the compared form: a word in capitals, the sign itself (the ASCII one for other dashes), or a
    lower-case kind: ``name`` (quoted, or a word with other than ASCII letters), ``string``, ``number``, and ``end``
    behind the last token. SPARQL adds ``iri``, ``pname``, ``var``, ``blank`` and ``lang``. `text` is the value: quotes
    of names are removed, and so are escapes of a character by its number. It fills the characters from `start`
    up to `stop`.
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


def row_count(digits: str) -> int:
    """Return the number that decimal digits write; for one beyond any count of rows, a number as far beyond."""
    return int(digits[-_ROW_DIGITS:]) if not digits[:-_ROW_DIGITS].strip("0") else 10**_ROW_DIGITS


_ROW_DIGITS = 18


class RowLimit(NamedTuple):
    """The number of rows that a query requests, from `start` to `stop`; or the place for it, if `rows` is None."""

    start: int
    stop: int
    rows: int | None


class Unreadable(Exception):
    """Text that cannot be parsed as one reading query.

    `forbidden` is True for a recognised forbidden operation (a write, a call to the outside, a second statement), False
    for text that is merely not understood.
    """

    def __init__(self, found: str, start: int, reason: str, forbidden: bool = False) -> None:
        super().__init__(reason)
        self.found = shorten(found)
        self.start = start
        self.reason = reason
        self.forbidden = forbidden


def read(text: str, parse: Callable[[str], Read]) -> Read:
    """Return the result of a parser. Raises `QueryRefused`, with line and column, for unreadable text."""
    try:
        return parse(text)
    except Unreadable as error:
        raise QueryRefused(error.found, *place(text, error.start), error.reason, error.forbidden) from None
    except RecursionError:
        reason = "nested too deep to be read; write the query flatter"
        raise QueryRefused(shorten(text), 1, 1, reason, forbidden=False) from None


def shorten(text: str) -> str:
    """Return a text for a message: the whole, or its beginning if it is long."""
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
    """Return the character of an escape; the escape itself if it has no number, or one of no character."""
    code = escape[1] or escape[2]
    number = int(code, 16) if code else -1
    return chr(number) if 0 <= number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF else escape[0]


def readings(text: str) -> list[str]:
    """Return the other ways in which an engine may read a text, where escapes or line ends leave room for them.

    Some engines decode ``\\u0027`` before they look for strings and comments, with or without regard to a backslash
    before it; and a lone carriage return ends a comment for some and not for others.

    Raises:
        Unreadable: the text is so long that all of them together could not be read in time.
    """
    others = [text]
    if "\\u" in text or "\\U" in text:
        others += _ESCAPE.sub(character, text), NUMBERED_ESCAPE.sub(character, text)
    if "\r" in text:
        others.append(re.sub(r"\r(?!\n)", " ", text))
    others = list(dict.fromkeys(others))
    if len(others) > 1 and len(text) * len(others) > MAX_CHARACTERS:
        most = MAX_CHARACTERS // len(others)
        reason = f"with escapes or lone carriage returns, at most {most:,} characters are read; write the characters"
        raise Unreadable(text, 0, reason)
    return others[1:]


_PLAIN_SPACES = frozenset(" \t\r\n")
_STRUCTURAL = {"'": "\\'", '"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r"}


_HALF = re.compile(r"[\ud800-\udfff]")
"""Half of a surrogate pair, alone: no character, and nothing that UTF-8 can hold."""


def _refuse_halves(value: str, start: int) -> None:
    """Refuse a string, name or the like that holds half of a character, as itself or as an escape."""
    decoded = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else escape[0], value)
    whole = decoded.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _HALF.search(decoded) else ""
    if "\ufffd" in whole and whole.count("\ufffd") > decoded.count("\ufffd"):
        raise Unreadable(value, start, "half of a character (a lone surrogate); write the whole character")


def blank(text: str) -> str:
    """Return spaces in place of a text, keeping its line breaks so that places stay the same."""
    return re.sub(r"[^\r\n]", " ", text)


def _plain_string(text: str) -> str:
    """Return a string literal in which escapes that stand for quotes, backslashes or line breaks are the short ones."""
    return _ESCAPE.sub(lambda escape: _STRUCTURAL.get(character(escape), escape[0]), text)


def tokenise(
    text: str,
    start: int,
    stop: int,
    match: Match,
    name: Callable[[str, str, int, int], Token],
    most: int = MAX_CHARACTERS,
) -> tuple[list[Token], list[Edit]]:
    """Cut text by a pattern whose groups are the kinds of tokens.

    Args:
        text: the characters from `start` up to `stop` are cut.
        start: the first character.
        stop: behind the last character.
        match: matches at a place the pattern of the language, with the groups ``space``, ``comment``, ``string``,
            ``number``, ``sign``, ``wide`` for a sign that is not ASCII, and others for names.
        name: makes a token of another group, given the group, the text, and the first and last place.
        most: characters of the text at most.

    Returns:
        Tokens in order, the last with the key ``end``; edits in order.

    Raises:
        Unreadable: a part of the text is no token, or the text is too long.
    """
    if len(text) > most:
        raise Unreadable(
            text,
            0,
            f"the query has {len(text):,} characters, at most {most:,} are read; "
            "ask for less, or pass long lists as a parameter",
        )
    tokens: list[Token] = []
    edits: list[Edit] = []
    at = start
    if at == 0 and text.startswith("\ufeff"):
        edits.append(Edit(0, 1, " "))
        at = 1
    while at < stop:
        found = match(text, at, stop)
        if found is None:
            raise _strange(text, at)
        kind, value = found.lastgroup or "", found[0]
        if kind not in ("comment", "sign", "wide") and ("\\" in value or not value.isascii()):
            _refuse_halves(value, at)
        token, written = _read_part(kind, text, at, found.end(), name)
        end = token.stop if token else found.end()
        if written != text[at:end]:
            edits.append(Edit(at, end, written))
        if token:
            tokens.append(token)
        at = end
    tokens.append(Token("end", "", stop, stop))
    return tokens, edits


def _read_part(
    kind: str, text: str, at: int, end: int, name: Callable[[str, str, int, int], Token]
) -> tuple[Token | None, str]:
    """Return the token of a part of the text, None for spaces and comments, and the part as engines get it."""
    value = text[at:end]
    match kind:
        case "space":
            return None, value if _PLAIN_SPACES.issuperset(value) else re.sub(r"[^\t\r\n]", " ", value)
        case "comment":
            return None, blank(value)
        case "sign":
            return Token(value, value, at, end), value
        case "string":
            return Token("string", value, at, end), _plain_string(value) if "\\" in value else value
        case "number":
            if text[end : end + 1].isalnum() or text[end : end + 1] == "_":
                raise Unreadable(text[at : end + 1], at, "a number runs into a word; put a space between them")
            return Token("number", value, at, end), value
        case "wide":
            return Token(_SIGN[value], value, at, end), _SIGN[value]
    token = name(kind, text, at, end)
    return token, text[at : token.stop] if kind == "quoted" else token.text


def _strange(text: str, at: int) -> Unreadable:
    """Return the error for a character that starts no token."""
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

    def accept(self, key: str, *more: str) -> bool:
        """Skip these keys if they come next, one behind the other; True if they do."""
        if self.key != key or (more and any(self.ahead(count) != each for count, each in enumerate(more, 1))):
            return False
        self.go_to(self.at + 1 + len(more))
        return True

    def accept_any(self, keys: Collection[str]) -> bool:
        """Skip the current token if it has one of these keys; True if it has."""
        if self.key not in keys:
            return False
        self.advance()
        return True

    def separated(self, read: Callable[[], object], separator: str = ",") -> None:
        """Read one thing, and one more behind each separator."""
        read()
        while self.accept(separator):
            read()

    def listed(self, read: Callable[[], object], close: str) -> None:
        """Read things separated by commas, if there are any, and the bracket that closes the list."""
        while self.key != close:
            read()
            if not self.accept(","):
                break
        self.expect(close)

    def expect(self, key: str, what: str = "") -> Token:
        """Skip the current token if it has this key. Raises `Unreadable` otherwise, with the expected key."""
        if self.key != key:
            raise self.unexpected(f"expected {what or key}")
        return self.advance()

    def expect_any(self, keys: Collection[str], what: str) -> Token:
        """Go on if the token reached has one of these keys. Raises `Unreadable` otherwise."""
        if self.key not in keys:
            raise self.unexpected(f"expected {what}")
        return self.advance()

    @abstractmethod
    def unexpected(self, reason: str) -> Unreadable:
        """Return the error for the current token."""


# Dashes and arrow heads that openCypher takes for the ASCII ones.
_DASHES = "\u00ad\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
_LEFT_HEADS = "\u27e8\u2329\u3008\ufe64\uff1c"
_RIGHT_HEADS = "\u27e9\u232a\u3009\ufe65\uff1e"
_SIGN = {**dict.fromkeys(_DASHES, "-"), **dict.fromkeys(_LEFT_HEADS, "<"), **dict.fromkeys(_RIGHT_HEADS, ">")}


@cache
def cypher_pattern() -> re.Pattern[str]:
    """Return the pattern of openCypher's tokens, for `tokenise`."""
    return re.compile(
        r"""
          (?P<space>\s+)
        | (?P<comment>//[^\r\n]*+ | /\*.*?\*/)
        | (?P<word>(?:[^\W\d]|\\u++[0-9A-Fa-f]{4})(?:\w|\\u++[0-9A-Fa-f]{4})*+)
        | (?P<string>'[^'\\]*+(?:\\.[^'\\]*+)*+' | "[^"\\]*+(?:\\.[^"\\]*+)*+")
        | (?P<quoted>`[^`]*+(?:``[^`]*+)*+`)
        | (?P<number>0[xX][0-9A-Fa-f_]++ | 0[oO][0-7_]++ | (?:[0-9][0-9_]*+(?:\.[0-9][0-9_]*+)?+ | \.[0-9][0-9_]*+)
                     (?:[eE][+-]?[0-9]++)?+)
        | (?P<wide>["""
        + _DASHES
        + _LEFT_HEADS
        + _RIGHT_HEADS
        + r"""])
        | (?P<sign>\.\.|::|=~|<>|<=|>=|!=|==|\+=|\|\||/(?!\*)|[()\[\]{},.:;|&!%$+\-*^=<>])
        """,
        re.VERBOSE | re.DOTALL,
    )


def tokenise_cypher(text: str) -> tuple[list[Token], list[Edit]]:
    """Cut openCypher into tokens, with rewrites that leave every engine a single reading.

    Returns:
        Tokens in order, the last with the key ``end``; edits in order.

    Raises:
        Unreadable: a part of the text is no token, or the text is too long.
    """
    return tokenise(text, 0, len(text), cypher_pattern().match, cypher_name)


def cypher_name(kind: str, text: str, start: int, stop: int) -> Token:
    """Return the token of a word or a name in backticks, for `tokenise`."""
    if kind == "quoted":
        return Token("name", _quoted_name(text[start:stop], start), start, stop)
    stop, word = _word(text, start, stop)
    return Token(word.upper() if word.isascii() else "name", word, start, stop)


def _word(text: str, start: int, end: int) -> tuple[int, str]:
    """Take combining marks into a word, which `\\w` leaves out, and decode its escapes."""
    while end < len(text) and not text[end].isascii() and text[end] not in _SIGN and ("a" + text[end]).isidentifier():
        end += 1
        while end < len(text) and (text[end].isalnum() or text[end] == "_"):
            end += 1
    raw = text[start:end]
    word = NUMBERED_ESCAPE.sub(character, raw) if "\\" in raw else raw
    if "\\" in raw and not word.isidentifier():
        raise Unreadable(raw, start, "an escape outside a string; write the character itself")
    return end, word


def _quoted_name(value: str, start: int) -> str:
    name = value[1:-1].replace("``", "`")
    if not name:
        raise Unreadable(value, start, "a name is missing between the backticks")
    if any(character(escape) in "`\\" for escape in NUMBERED_ESCAPE.finditer(name)):
        raise Unreadable(value, start, "an escape inside a quoted name; write the character itself (a ` twice)")
    return name


_JOINERS = "\u200c\u200d"
"""Invisible, but some scripts need them within words."""

_AFTER_OPERAND = frozenset("var number string lang iri pname ) TRUE FALSE".split())

_CODE = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_LETTERS = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_MARKS = "\u00b7\u0300-\u036f\u203f\u2040"
_FIRST = rf"(?:[{_LETTERS}_0-9]|{_CODE})"
_PN_CHAR = rf"(?:[{_LETTERS}_0-9{_MARKS}\-]|{_CODE})"
_PN_PLUS = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?\#@%]"
_PN_PART = rf"(?:{_PN_CHAR}|:|{_PN_PLUS})"
_PREFIX = rf"(?:(?:[{_LETTERS}]|{_CODE})(?:{_PN_CHAR}|\.+(?={_PN_CHAR}))*+)?+"


@cache
def _sparql_pattern(prefix: str = _PREFIX) -> re.Pattern[str]:
    return re.compile(
        rf"""
          (?P<space>\s+)
        | (?P<comment>\#[^\r\n]*+)
        | (?P<iri><(?:[^<>"{{}}|^`\\\x00-\x20]|{_CODE})*+>)
        | (?P<var>[?$]{_FIRST}(?:[{_LETTERS}_0-9{_MARKS}]|{_CODE})*+)
        | (?P<blank>_:{_FIRST}(?:(?:{_PN_CHAR}|\.)*{_PN_CHAR})?)
        | (?P<pname>{prefix}:(?:(?:{_FIRST}|:|{_PN_PLUS})(?:{_PN_PART}|\.+(?={_PN_PART}))*+)?+)
        | (?P<word>(?:[^\W\d]|{_CODE})(?:\w|{_CODE})*+)
        | (?P<string>'{{3}}(?:'{{0,2}}(?:[^'\\]|\\.))*+'{{3}} | "{{3}}(?:"{{0,2}}(?:[^"\\]|\\.))*+"{{3}}
                     | '(?!'')[^'\\\r\n]*+(?:\\.[^'\\\r\n]*+)*+' | "(?!"")[^"\\\r\n]*+(?:\\.[^"\\\r\n]*+)*+")
        | (?P<lang>@[A-Za-z]++(?:-[A-Za-z0-9]++)*+(?:--[a-z]++)?+)
        | (?P<number>(?:[0-9]++\.[0-9]*+[eE][+-]?[0-9]++ | \.[0-9]++[eE][+-]?[0-9]++ | [0-9]++[eE][+-]?[0-9]++
                     | [0-9]*+\.[0-9]++ | [0-9]++))
        | (?P<sign>\^\^|&&|\|\||!=|<=|>=|<<|>>|\{{\||\|\}}|[()\[\]{{}},.;|!?$+\-*/^=<>~])
        """,
        re.VERBOSE | re.DOTALL,
    )


@cache
def _run_pattern() -> re.Pattern[str]:
    return re.compile(rf"(?:[{_LETTERS}]|{_CODE})(?:{_PN_CHAR}|\.)*+")


def tokenise_sparql(text: str, start: int = 0, stop: int | None = None) -> tuple[list[Token], list[Edit]]:
    """Cut SPARQL, or a part of it, into tokens, with rewrites that leave every engine a single reading.

    Returns:
        Tokens in order, the last with the key ``end``; edits in order.

    Raises:
        Unreadable: a part of the text is no token, or the text is too long.
    """
    unprefixed = 0
    prefixed, without, run_pattern = _sparql_pattern(), _sparql_pattern(""), _run_pattern()

    def match(text: str, at: int, stop: int) -> re.Match[str] | None:
        """Look for a prefix's colon once, not again from each of the words that might be parts of the prefix."""
        nonlocal unprefixed
        if at >= unprefixed and (run := run_pattern.match(text, at, stop)):
            end = run.end()
            if end == stop or text[end] != ":" or text[end - 1] == ".":
                unprefixed = end
        return (without if at < unprefixed else prefixed).match(text, at, stop)

    return tokenise(text, start, len(text) if stop is None else stop, match, _sparql_name)


def _sparql_name(kind: str, text: str, start: int, stop: int) -> Token:
    """Read a word, IRI, variable or the like, and decode its escapes, if it is still one of its kind then."""
    value = text[start:stop]
    if "\\" in value and (plain := NUMBERED_ESCAPE.sub(character, value)) != value:
        found = _sparql_pattern().fullmatch(plain)
        if found is None or found.lastgroup != kind:
            reason = "an escape stands for a character that cannot be part of this; write the character itself"
            raise Unreadable(value, start, reason)
        value = plain
    if kind in ("var", "blank", "pname") and not value.isascii():
        for place, sign in enumerate(value, start):
            if unicodedata.category(sign) in ("Cf", "Zs") and sign not in _JOINERS:
                raise Unreadable(f"U+{ord(sign):04X}", place, "an invisible character in a name; delete it")
    if kind == "word":
        kind = value.upper() if value.isascii() else "name"
    return Token(kind, value, start, stop)


def with_comparisons(text: str, tokens: list[Token]) -> list[Token]:
    """Read ``?a<?b&&?c>?d`` as comparisons; the standard's longest match makes an IRI of ``<?b&&?c>``.

    Engines that parse without a separate tokeniser compare. An IRI holds no space, bracket { or comment, so nothing can
    hide in one read so. Expressions stand in parentheses; there an IRI follows an operand only in lists, and is not of
    this shape.
    """
    joined: list[Token] = []
    opened: list[str] = []
    before = ""
    for token in tokens:
        if token.key == "iri" and before in _AFTER_OPERAND and opened[-1:] == ["("] and _compares(token.text[1:-1]):
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


def _compares(inner: str) -> bool:
    """True if both < and > are comparisons, by the text between them behind an operand in parentheses."""
    if "#" in inner:
        return False
    joined = any(mark in inner for mark in ("&&", "(", ")", ","))
    return inner[:1] in ("?", "$") or (joined and "://" not in inner)
