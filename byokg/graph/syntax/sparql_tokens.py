"""SPARQL as tokens."""

from __future__ import annotations

import re

from byokg.graph.syntax.tokens import NUMBERED_ESCAPE, Edit, Token, Unreadable, character, tokenise

_AFTER_OPERAND = frozenset("var number string lang iri pname ) TRUE FALSE".split())

_CODE = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_W = rf"(?:\w|{_CODE})"
_PN_PART = rf"(?:[\w:\-]|{_CODE}|%[0-9A-Fa-f]{{2}}|\\[_~.\-!$&'()*+,;=/?\#@%])"
_SPARQL = re.compile(
    rf"""
      (?P<space>\s+)
    | (?P<comment>\#[^\r\n]*+)
    | (?P<iri><(?:[^<>"{{}}|^`\\\x00-\x20]|{_CODE})*+>)
    | (?P<var>[?$]{_W}++)
    | (?P<blank>_:{_W}(?:(?:[\w.\-]|{_CODE})*(?:[\w\-]|{_CODE}))?)
    | (?P<pname>(?:(?:[^\W\d_]|{_CODE})(?:[\w\-]|{_CODE}|\.+(?=[\w\-\\])){{0,100}}+)?+:
                (?:(?!-){_PN_PART}(?:{_PN_PART}|\.+(?={_PN_PART}))*+)?+)
    | (?P<word>(?:[^\W\d]|{_CODE}){_W}*+)
    | (?P<string>'{{3}}(?:'{{0,2}}(?:[^'\\]|\\.))*+'{{3}} | "{{3}}(?:"{{0,2}}(?:[^"\\]|\\.))*+"{{3}}
                 | '(?!'')[^'\\\r\n]*+(?:\\.[^'\\\r\n]*+)*+' | "(?!"")[^"\\\r\n]*+(?:\\.[^"\\\r\n]*+)*+")
    | (?P<lang>@[A-Za-z]++(?:-[A-Za-z0-9]++)*+(?:--[a-z]++)?+)
    | (?P<number>(?:[0-9]++\.[0-9]*+[eE][+-]?[0-9]++ | \.[0-9]++[eE][+-]?[0-9]++ | [0-9]++[eE][+-]?[0-9]++
                 | [0-9]*+\.[0-9]++ | [0-9]++))
    | (?P<sign>\^\^|&&|\|\||!=|<=|>=|<<|>>|\{{\||\|\}}|[()\[\]{{}},.;|!?$+\-*/^=<>~])
    """,
    re.VERBOSE | re.DOTALL,
)


def tokenise_sparql(text: str, start: int = 0, stop: int | None = None) -> tuple[list[Token], list[Edit]]:
    """Cut SPARQL, or a part of it, into tokens, and say how to rewrite it so that every engine reads the same.

    Returns:
        Tokens in order, the last with the key ``end``; edits in order.

    Raises:
        Unreadable: a part of the text is no token, or the text is too long.
    """
    return tokenise(text, start, len(text) if stop is None else stop, _SPARQL, _sparql_name)


def _sparql_name(kind: str, text: str, start: int, stop: int) -> Token:
    """Read a word, IRI, variable or the like, and decode its escapes, if it is still one of its kind then."""
    value = text[start:stop]
    if "\\" in value and (plain := NUMBERED_ESCAPE.sub(character, value)) != value:
        found = _SPARQL.fullmatch(plain)
        if found is None or found.lastgroup != kind:
            reason = "an escape stands for a character that cannot be part of this; write the character itself"
            raise Unreadable(value, start, reason)
        value = plain
    if kind == "word":
        kind = value.upper() if value.isascii() else "name"
    return Token(kind, value, start, stop)


def with_comparisons(text: str, tokens: list[Token]) -> list[Token]:
    """Read ``?a<?b&&?c>?d`` as comparisons, where the standard's longest match makes an IRI of ``<?b&&?c>``.

    Engines that parse without a separate tokeniser compare. An IRI holds no space, bracket { or comment, so nothing can
    hide in one read so; and an IRI follows an operand in lists and triples only, where it is not of this shape.
    """
    joined: list[Token] = []
    opened: list[str] = []
    before = ""
    for token in tokens:
        if token.key == "iri" and before in _AFTER_OPERAND and _compares(token.text[1:-1], opened[-1:] == ["("]):
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


def _compares(inner: str, in_parentheses: bool) -> bool:
    """Tell from what stands between < and > behind an operand whether both are comparisons."""
    if "#" in inner:
        return False
    joined = any(mark in inner for mark in ("&&", "(", ")", ","))
    return inner[:1] in ("?", "$") or (in_parentheses and joined and "://" not in inner)
