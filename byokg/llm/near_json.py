"""Reads what is nearly JSON, as language models write it.

Comments, trailing commas, single and curly quotes, names without quotes, Python's True and None, NaN, and closing
brackets that are missing at the end do no harm.
"""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

_OBJECT_STARTS_TRIED = 8
"""Braces in prose before the object, and the work that a reply of nothing but braces makes."""

_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*")|(?P<single>'(?:[^'\\]|\\.)*')|(?P<curly>“[^”]*”)"""
    r"""|(?P<comment>//[^\n]*|/\*.*?\*/|\#[^\n]*)|(?P<word>[A-Za-z_][\w.-]*)|(?P<number>[-+]?\.?\d[\w.+-]*)"""
    r"""|(?P<space>\s+)|(?P<mark>.)""",
    re.DOTALL,
)
_LITERALS = {"true": "true", "false": "false", "null": "null", "none": "null", "nan": "null", "infinity": "null"}


def first_object(text: str) -> dict[str, Any] | None:
    """Return the object at the first place in a text where one can be read; None where there is none."""
    for start in itertools.islice(re.finditer(r"\{", text), _OBJECT_STARTS_TRIED):
        rest = text[start.start() :]
        for candidate in (rest, repaired(rest)):
            try:
                value, _ = json.JSONDecoder(strict=False, parse_constant=_refuse).raw_decode(candidate)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                return value
    return None


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def repaired(text: str) -> str:
    """Rewrite what is nearly JSON as JSON, up to the end of the value that it begins with."""
    written: list[str] = []
    awaited: list[str] = []
    for token in _TOKEN.finditer(text):
        kind, part = token.lastgroup, token[0]
        if kind in ("comment", "space"):
            continue
        if kind == "single" or kind == "curly":
            part = json.dumps(part[1:-1].replace("\\'", "'"))
        elif kind == "word":
            part = _LITERALS.get(part.lower()) or json.dumps(part)
        elif kind == "mark" and part in "{[":
            awaited.append("}" if part == "{" else "]")
        elif kind == "mark" and part in "}]":
            if written and written[-1] == ",":
                written.pop()
            if awaited:
                awaited.pop()
        written.append(part)
        if not awaited:
            break
    else:
        if written and written[-1] == ",":
            written.pop()
    return "".join(written) + "".join(reversed(awaited))


def entries(text: str) -> list[Any] | None:
    """Return a text that is one list of texts, of objects, or of lists of texts; None where it is anything else.

    Brackets around words without quotes are no list: `[Paris]` is a name in brackets.
    """
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        listed = json.loads(repaired(text))
    except (ValueError, RecursionError):
        return None
    quoted = any(mark in text for mark in "\"'“")
    return listed if quoted and isinstance(listed, list) else None
