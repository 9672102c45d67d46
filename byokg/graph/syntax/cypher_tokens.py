"""openCypher as tokens."""

from __future__ import annotations

import re

from byokg.graph.syntax.tokens import NUMBERED_ESCAPE, Edit, Token, Unreadable, character, tokenise

# Dashes and arrow heads that openCypher takes for the ASCII ones.
_DASHES = "\u00ad\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
_LEFT_HEADS = "\u27e8\u2329\u3008\ufe64\uff1c"
_RIGHT_HEADS = "\u27e9\u232a\u3009\ufe65\uff1e"
_SIGN = {
    **dict.fromkeys(_DASHES, "-"),
    **dict.fromkeys(_LEFT_HEADS, "<"),
    **dict.fromkeys(_RIGHT_HEADS, ">"),
}

_CYPHER = re.compile(
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
    """Cut openCypher into tokens, and say how to rewrite it so that every engine reads the same.

    Returns:
        Tokens in order, the last with the key ``end``; edits in order.

    Raises:
        Unreadable: a part of the text is no token, or the text is too long.
    """
    return tokenise(text, 0, len(text), _CYPHER, _cypher_name)


def _cypher_name(kind: str, text: str, start: int, stop: int) -> Token:
    """Read a word, a name in backticks, or a sign that is not ASCII."""
    if kind == "wide":
        sign = _SIGN[text[start]]
        return Token(sign, sign, start, stop)
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
