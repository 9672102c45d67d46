"""Citations of a line, with their places: `[e3]`, `[e3-e5, e9]`, `【3†source】`, `(lines 2 and 4)`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def unique(items: Iterable[T]) -> tuple[T, ...]:
    """Return items in their order, each once."""
    return tuple(dict.fromkeys(items))


MARK = "\x00"
"""Stands for a citation while a line is taken apart."""

_OPENING, _CLOSING = "[【［〔({<（｛", "]】］〕)}>）｝"
_INSIDE = re.escape(_OPENING + _CLOSING)
_BRACKETS = re.compile(rf"\^?[{re.escape(_OPENING)}]([^{_INSIDE}\n]{{1,120}})[{re.escape(_CLOSING)}]\^?")
_LINKED = re.compile(r"\[([^\[\]\n]+)\]\(#?([eE]\d{1,5})\)")
_CALLED = (
    r"lines?|facts?|evidence|sources?|citations?|refs?|quellen?|fakt(?:en)?|belege?|zeilen?|faits?|preuves?|lignes?|"
    r"hechos?|fuentes?|pruebas?|líneas?|fatt[oi]|font[ei]|righ?[ae]|fatos?|linhas?|факты?|источники?|строки?|"
    r"证据|證據|来源|來源|事实|事實|根拠|出典|行"
)
"""Models' words for lines of evidence."""
_SAID_OF_IDS = (
    rf"(?:(?:see|cf|{_CALLED}|cites?|cited|ids?|from|rows?|supported|by|per|in|according to|as|shown|stated|citing|"
    r"siehe|vgl|voir|véase|vedi|см|参照)\b"
    r"[.:：#\s]*)*"
)
_AND, _UP_TO = r"and\b|und\b|et\b|y\b|ed?\b|и\b|和|及|と", r"to\b|through\b|bis\b|à\b|hasta\b|al?\b|até\b|до\b|至|到"
_ID_LIST = re.compile(
    rf"\s*{_SAID_OF_IDS}(?P<first>[#^]?[eE]?\s?\d{{1,5}})(?:\s*(?:[,;&/|+、，；]\s*(?:{_AND})?|{_AND}|{_UP_TO}|[-–—~〜～]|\.\.+|…)?\s*"
    rf"{_SAID_OF_IDS}[#^]?[eE]?\d{{1,5}})*[\s.]*",
    re.IGNORECASE,
)
_WITHIN = re.compile(r"†.*$|[\s,:]*\b(?:rows?|columns?)\s*#?\d+(?:\s*[-–,]\s*\d+)*|(?<=\d):\s*\D.*$", re.IGNORECASE)
"""Place within a cited line, or a quotation of it."""
_ID = re.compile(
    rf"(?P<range>(?:[-–—~〜～]|\.\.+|…|(?<=[\s\d])(?:{_UP_TO}))\s*)?[#^]?(?P<e>[eE]?)\s?(?P<number>\d{{1,5}})",
    re.IGNORECASE,
)
_LONGEST_RANGE = 200
_BARE_ID = re.compile(
    r"(?:^[eE]\d{1,5}(?=\s*[:|–—-]\s)|(?<=[\s(])[-–—:,;|(=>→]+\s*(?:evidence|facts?|sources?|see|from|cites?)?[:\s]*[eE]\d{1,5}"
    r"(?:\s*(?:,|;|and|&)\s*[eE]\d{1,5})*(?=[\s).]*$)|(?<=[\w*\"'”])(?:\s*[:,;|]\s*)[eE]\d{1,5}(?:\s*,\s*[eE]\d{1,5})*[\s.]*$)"
)
_MARKS = re.compile(rf"(?:\(\s*(?:see\s+)?)?{MARK}(?:[\s,;&]*(?:and\s+)?{MARK})*(?:\s*\))?")

_SAID_BARE = re.compile(
    r"(?:[,;:]|\s[–—-]+)\s*(?:(?:see|from|per|cf\.?|according to|based on|supported by|as per)\s+)?"
    r"(?:(?:lines?|facts?|evidence|sources?)\s+(?P<ids>[eE]?\d{1,3}(?:\s?(?:,|;|&|and|to|[-–])\s?(?:and\s)?[eE]?\d{1,3}){0,40})|"
    r"(?<=\s)(?P<lettered>e\d{1,5}(?:\s?(?:,|;|&|and|to|[-–])\s?(?:and\s)?e?\d{1,5}){0,40}))[\s.)]*$"
)
"""Lines cited in words, behind the answer and a mark."""
_TAGGED = re.compile(
    r"<(?P<tag>sup|sub|cite|citations?|ref|references?|sources?|evidence)\b[^<>]*>\s*(?P<ids>[^<>]*\d[^<>]*?)\s*</(?P=tag)>",
    re.IGNORECASE,
)
_ID_TAG = re.compile(r"<\s*([eE]\d{1,5}(?:\s*[,;–-]\s*[eE]?\d{1,5})*)\s*>")


_TYPESET = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|sc|normal)?|math(?:rm|bf|it|sf)|emph|underline|operatorname)\{([^{}]*)\}"
)
_MATH = re.compile(r"\$([^$\n]+)\$")
_PUNCTUATION = re.compile(r"\\([_&%#$])")
_CITE = re.compile(r"~?\\(?:cite[pt]?|ref|footnote(?:mark)?)(?:\[([^\[\]]*)\]|\{([^{}]*)\})")
_RAISED = re.compile(r"\$?\^\{?\[?([eE]?\d[eE\d, –-]*)\]?\}?\$?(?=[\s.,;]|$)")
_FROM_TO = re.compile(r"\[([eE]?\d{1,5})\]\s*[-–—]\s*\[([eE]?\d{1,5})\]")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_SUPERSCRIPT = re.compile(
    r"(?<=[^\W\d_]{3})[*_\"”“)]*[ \t]*([¹²³⁴-⁹][⁰¹²³⁴-⁹⁻]*(?:[ \t,;]*[¹²³⁴-⁹][⁰¹²³⁴-⁹⁻]*)*)[ \t.]*$", re.MULTILINE
)
_LETTERED = re.compile(r"[\[(]\s?[eE]\d{1,5}\s?[\])]")
"""A citation as the prompts ask for it; beside one, a bare number in brackets is part of a name."""
_COUNT_BEHIND = re.compile(r"(?<=\S)[ \t]+(?:\((\d{1,2})\)|[„“\"](\d{1,2})[\"“”])[ \t.]*$")
_FOOTNOTE = re.compile(r"^[ \t]*\[\^[^\[\]\n]+\]:.*$", re.MULTILINE)


def untypeset(text: str) -> str:
    """Return a text without the commands of LaTeX and the escapes of Markdown: `$\\text{Paris}$`, `directed\\_by`."""
    if "\\" not in text:
        return text
    plain = text
    for _ in range(3):  # one in another
        plain = _TYPESET.sub(r"\1", plain)
    if plain != text or "rightarrow" in text or "\\to" in text:
        plain = _MATH.sub(r"\1", plain)
    return _PUNCTUATION.sub(r"\1", plain)


def with_brackets(content: str) -> str:
    """Return a text with other forms of citation in square brackets.

    They are tags (`<e3>`, `<sup>e3</sup>`), LaTeX (`\\cite{e3}`, `$^{3}$`), superscripts (`Paris¹`), and other marks if
    every line has them: `Paris (1)`.
    """
    content = _RAISED.sub(r" [\1]", _CITE.sub(lambda found: f" [{found[1] or found[2]}]", _FOOTNOTE.sub("", content)))
    content = _SUPERSCRIPT.sub(lambda found: f" [{found[1].translate(_SUPERSCRIPTS)}]", content)
    content = untypeset(_FROM_TO.sub(r"[\1-\2]", content))
    lines = [line for line in content.split("\n") if line.strip()]
    if all(map(_COUNT_BEHIND.search, lines)) and (len(lines) > 1 or not content.rstrip(" .\n").endswith(")")):
        content = "\n".join(_COUNT_BEHIND.sub(lambda found: f" [{found[1] or found[2]}]", line) for line in lines)

    def bracketed(found: re.Match[str]) -> str:
        ids = f"[{found['ids'].strip('[]() ')}]"
        return f" {ids}" if cited_ids(ids) else found[0]

    return _ID_TAG.sub(r"[\1]", _TAGGED.sub(bracketed, content))


def mark(line: str) -> tuple[str, list[tuple[str, ...]]]:
    """Put a mark in the place of each run of citations; return the line and what each run cites."""
    groups: list[tuple[str, ...]] = []

    def linked(found: re.Match[str]) -> str:
        return f"{found[1]} [{found[2]}]"

    lettered = _LETTERED.search(line) is not None

    def bracket(found: re.Match[str]) -> str:
        ids = cited_ids(found[0].strip("^"))
        if not ids or (lettered and "e" not in found[1].lower()):
            return found[0]
        groups.append(ids)
        return MARK

    def bare(found: re.Match[str]) -> str:
        groups.append(tuple(f"e{int(number)}" for number in re.findall(r"[eE](\d+)", found[0])))
        return MARK

    line = _BRACKETS.sub(bracket, _LINKED.sub(linked, line.replace(MARK, "")))
    if not groups:
        line = _BARE_ID.sub(bare, line)
    if not groups and (said := _SAID_BARE.search(line)) is not None and said.start():
        groups.append(cited_ids(f"[{said['ids'] or said['lettered']}]"))
        line = line[: said.start()] + MARK
    runs: list[tuple[str, ...]] = []
    taken = iter(groups)

    def run(found: re.Match[str]) -> str:
        runs.append(unique(id for _ in range(found[0].count(MARK)) for id in next(taken)))
        opened, closed = found[0].startswith("("), found[0].endswith(")")
        return f"{'(' if opened and not closed else ''}{MARK}{')' if closed and not opened else ''}"

    return _MARKS.sub(run, line), runs


def cited_ids(bracketed: str) -> tuple[str, ...]:
    """Return the ids in a bracket; none if it holds anything else.

    Numbers without an `e` count up to three digits, since `[1982]` is a year: between square brackets; between others
    if there are several, or with a word for lines or facts. `(13)` may be part of a name.
    """
    inside = _WITHIN.sub("", bracketed[1:-1])
    listed = _ID_LIST.fullmatch(inside)
    if listed is None:
        return ()
    lettered = "e" in listed["first"].lower()
    if not lettered and inside.rstrip()[-1:] == ".":
        return ()
    if not lettered:
        numbered = re.findall(r"\d+", inside)
        said = re.match(rf"\s*(?:see\s+)?(?:{_CALLED})\b", inside, re.IGNORECASE)
        if max(map(len, numbered)) > 3 or not (bracketed[0] in "[【［〔" or said or len(numbered) > 1):
            return ()
    numbers: list[int] = []
    for found in _ID.finditer(inside[listed.start("first") :]):
        number = int(found["number"])
        if found["range"] and numbers and numbers[-1] < number <= numbers[-1] + _LONGEST_RANGE:
            numbers += range(numbers[-1] + 1, number)
        numbers.append(number)
    return unique(f"e{number}" for number in numbers)
