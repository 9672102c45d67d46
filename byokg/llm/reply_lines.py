"""Lines of a result: answers with their citations. The items of a list are answers without citations.

Models number and quote items, add reasons, notes and introductions, write "none" in many ways, and cite anywhere:
before an answer, behind it, in the middle of a line, several answers in one line. Other notations are rewritten
first: numbers and letters that count, tables, LaTeX, superscripts, tags. One reader takes the lines apart.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from byokg.llm.reply_blocks import (
    FENCE_LINE,
    cut_at_next,
    entries,
    first_object,
    is_result,
    unescape_text,
    without_tags,
)
from byokg.llm.shown_names import HIDDEN, Hiding, ShownNames

T = TypeVar("T")


def unique(items: Iterable[T]) -> tuple[T, ...]:
    """Return items in their order, each once."""
    return tuple(dict.fromkeys(items))


@dataclass(frozen=True)
class WrittenAnswer:
    """One answer as written, and the evidence it cites: `e3`, `e7`."""

    name: str
    citations: tuple[str, ...] = ()


# No answer

_NOTHING = re.compile(
    r"\W*(?:无|無|NA|(?i:なし|none|n/a|null|nil|nothing|empty|unknown|un(?:answerable|determined|clear)|indeterminate|"
    r"abstain(?:ed)?|idk|not applicable|left (?:blank|empty)|keine?|нет|неизвестно|unbekannt|inconnue?|"
    r"d?esconhecid[oa]|desconocid[oa]|sconosciut[oa]|(?:aucun|ningun|nessun|nenhum)[eoa]?)|"
    r"(?:无法|無法|不能|没有|沒有|未知|不知道|不明|無回答|わかりません|分かりません|該当なし|无答案|无结果).*)"
    r"(?:\W*|\s*(?:\s[-–—]|[:;,.])\s.*|\s*\([^A-Z\d].*)",
    re.DOTALL,
)
_DENIAL = re.compile(
    r"(?:^|(?<=[\s,]))(?:[Nn]ot?|[Nn]one|[Nn]othing|[Nn]either|[Cc]annot|[Uu]nable|[Ii]nsufficient|lack(?:s|ing)|fails?|"
    r"unknown|\w[a-z]+n['’]t|(?i:keine?[nr]?|nicht|pas|aucune?|sin|ningun[oa]?|non|nessuna?|não|sem|nenhuma?|нет))(?=\W|$)"
)
_PLAIN = re.compile(
    r"\W*(?:(?i:based on|according to|from)\b[^,]*,\s*)?(?:I\b|\w?[^\W\d_A-Z]*)(?:[\s,:'’]+(?:I\b|[^\W\d_A-Z]+)){0,5}"
    r"\W*"
)
"""Words before a denial."""
_LONGEST_DENIAL = 200
_HELD = re.compile(
    r"\b(?:facts?|graph|evidence|context|data|schema|information|results?|rows?|answers?|entit(?:y|ies)|paths?|relations?|"
    r"quer(?:y|ies)|subgraph|requests?|match(?:es)?|(?i:antwort|angaben?|fakten|réponse|faits|respuesta|hechos|risposta|"
    r"informazion[ei]|fatti|resposta|fatos|ответа))\b"
)
_FOUND = re.compile(
    r"\W+of (?:them|the|th[eo]se)\b|\W+(?:able |to |be |is |are |was |been |in the |of the |se )*"
    r"(?:contains?|hold|sa(?:y|id)|stated?|show|tell|give|given|names?|named|list(?:ed)?|mention(?:ed)?|specif\w+|support(?:ed)?|provided?|identif\w+|determin\w+|confirm|"
    r"know|known|find|found|locate|verif\w+|infer|conclude|available|possible|present|needed|required|necessary|"
    r"(?i:answer)\w*|(?i:gefunden|bekannt|trouvée?|puede|sabe|encuentra))\b"
)


def is_nothing(text: str) -> bool:
    """True if a text only states that there is nothing: `None.`, `N/A`, `The facts do not hold the answer.`

    A sentence does so if its first words, in small letters, deny something, and if it has a noun for evidence, or a
    verb for finding behind the denial. `I Don't Know How She Does It` is a film.
    """
    text = text.strip()
    said = text.strip("*_\"'()[]").strip()
    if text in ("", "[]", "{}", "-", "—", "–", "∅", '""') or _NOTHING.fullmatch(said):
        return True
    denial = _DENIAL.search(said, 0, _LONGEST_DENIAL)
    if denial is None or not _PLAIN.fullmatch(said, 0, denial.start()):
        return False
    return bool(_HELD.search(said) or _FOUND.match(said, denial.end()))


# Citations

MARK = "\x00"
"""Stands for a citation while a line is taken apart."""
_BRACKETS = re.compile(r"\^?[\[【［〔({<（｛]([^\[\]【】［］〔〕(){}<>（）｛｝\n]{1,120})[\]】］〕)}>）｝]\^?")
_CALLED = (
    r"lines?|facts?|evidence|sources?|citations?|refs?|quellen?|fakt(?:en)?|belege?|zeilen?|faits?|preuves?|lignes?|"
    r"hechos?|fuentes?|pruebas?|líneas?|fatt[oi]|font[ei]|righ?[ae]|fatos?|linhas?|факты?|источники?|строки?|"
    r"证据|證據|来源|來源|事实|事實|根拠|出典|行"
)
"""Models' words for lines of evidence."""
_SAID_OF_IDS = (
    rf"(?:(?:see|cf|{_CALLED}|cites?|cited|ids?|from|rows?|supported|by|per|in|according to|as|shown|stated|citing|"
    r"siehe|vgl|voir|véase|vedi|см|参照)\b[.:：#\s]*)*"
)
_AND, _UP_TO = r"and\b|und\b|et\b|y\b|ed?\b|и\b|和|及|と", r"to\b|through\b|bis\b|à\b|hasta\b|al?\b|até\b|до\b|至|到"
_ID_LIST = re.compile(
    rf"\s*{_SAID_OF_IDS}(?P<first>[#^]?[eE]?\s?\d{{1,5}})(?:\s*(?:[,;&/|+、，；]\s*(?:{_AND})?|{_AND}|{_UP_TO}|[-–—~〜～]|\.\.+|…)?\s*"
    rf"{_SAID_OF_IDS}[#^]?[eE]?\d{{1,5}})*[\s.]*",
    re.IGNORECASE,
)
_WITHIN = re.compile(r"†.*$|[\s,:]*\b(?:rows?|columns?)\s*#?\d+(?:\s*[-–,]\s*\d+)*|(?<=\d):\s*\D.*$", re.IGNORECASE)
"""Place within a cited line, or a quotation of it."""
_ID = re.compile(rf"(?P<range>(?:[-–—~〜～]|\.\.+|…|(?<=[\s\d])(?:{_UP_TO}))\s*)?[#^]?e?\s?(?P<number>\d{{1,5}})", re.I)
_LONGEST_RANGE = 200
_MORE_IDS = r"(?:\s?(?:,|;|&|and|to|[-–])\s?(?:and\s)?[eE]?\d{1,5}){0,40}"
_BARE = re.compile(
    r"^(?P<leading>[eE]\d{1,5})(?=\s*[:|–—-]\s)|"
    r"(?<=\S)(?:\s*[,;:|]|\s+[-–—=>→(]+)\s*"
    r"(?:(?:see|from|per|cf\.?|according to|based on|supported by|as per|cites?)[:\s]+)?"
    rf"(?P<ids>(?:(?:lines?|facts?|evidence|sources?)[:\s]+[eE]?\d{{1,3}}|(?<=[\W])[eE]\d{{1,5}}){_MORE_IDS})[\s.)]*$"
)
"""Citation without brackets: `e3: Paris`, `Paris, lines 2 and 4`."""
_RUN = re.compile(rf"(?:\(\s*(?:see\s+)?)?{MARK}(?:[\s,;&]*(?:and\s+)?{MARK})*(?:\s*\))?")
_LETTERED = re.compile(r"[\[(]\s?[eE]\d{1,5}\s?[\])]")
"""A citation as the prompts ask for it; beside one, a bare number in brackets is part of a name."""
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_NOTATIONS: Sequence[tuple[str, str | Callable[[re.Match[str]], str]]] = (
    (r"^[ \t]*\[\^[^\[\]\n]+\]:.*$", ""),  # a footnote
    (r"~?\\(?:cite[pt]?|ref|footnote(?:mark)?)(?:\[([^\[\]]*)\]|\{([^{}]*)\})", r" [\1\2]"),
    (r"\$?\^\{?\[?([eE]?\d[eE\d, –-]*)\]?\}?\$?(?=[\s.,;]|$)", r" [\1]"),
    (
        r"(?<=[^\W\d_]{3})[*_\"”“)]*[ \t]*([¹²³⁴-⁹][⁰¹²³⁴-⁹⁻]*(?:[ \t,;]*[¹²³⁴-⁹][⁰¹²³⁴-⁹⁻]*)*)[ \t.]*$",
        lambda found: f" [{found[1].translate(_SUPERSCRIPTS)}]",
    ),
    (r"\[([eE]?\d{1,5})\]\s*[-–—]\s*\[([eE]?\d{1,5})\]", r"[\1-\2]"),
    (r"\[([^\[\]\n]+)\]\(#?([eE]\d{1,5})\)", r"\1 [\2]"),
    (r"<\s*([eE]\d{1,5}(?:\s*[,;–-]\s*[eE]?\d{1,5})*)\s*>", r"[\1]"),
    (
        r"<(?P<tag>sup|sub|cite|citations?|ref|references?|sources?|evidence)\b[^<>]*>\s*([^<>]*\d[^<>]*?)\s*</(?P=tag)>",
        lambda found: f" [{ids}]" if cited_ids(f"[{(ids := found[2].strip('[]() '))}]") else found[0],
    ),
)
"""Other notations of a citation, rewritten as `[e3]`."""
_REWRITTEN = [(re.compile(pattern, re.MULTILINE | re.IGNORECASE), written) for pattern, written in _NOTATIONS]
_COUNT_BEHIND = re.compile(r"(?<=\S)[ \t]+(?:\((\d{1,2})\)|[„“\"](\d{1,2})[\"“”])[ \t.]*$")
_TYPESET = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|sc|normal)?|math(?:rm|bf|it|sf)|emph|underline|operatorname|boxed)\{([^{}]*)\}"
)


def untypeset(text: str) -> str:
    """Return a text without the commands of LaTeX and the escapes of Markdown: `$\\text{Paris}$`, `directed\\_by`."""
    if "\\" not in text:
        return text
    plain = text
    for _ in range(3):  # one in another
        plain = _TYPESET.sub(r"\1", plain)
    if plain != text or "rightarrow" in text or "\\to" in text:
        plain = re.sub(r"\$([^$\n]+)\$", r"\1", plain)
    return re.sub(r"\\([_&%#$])", r"\1", plain)


def with_brackets(content: str) -> str:
    """Return a text without typesetting, and with all citations but those in words in brackets.

    Marks that may be parts of names are citations if every line has them: `Paris (1)`.
    """
    for pattern, written in _REWRITTEN:
        content = pattern.sub(written, content)
    content = untypeset(content)
    lines = [line for line in content.split("\n") if line.strip()]
    if all(map(_COUNT_BEHIND.search, lines)) and (len(lines) > 1 or not content.rstrip(" .\n").endswith(")")):
        content = "\n".join(_COUNT_BEHIND.sub(r" [\1\2]", line) for line in lines)
    return content


def mark(line: str) -> tuple[str, list[tuple[str, ...]]]:
    """Put a mark in the place of each run of citations; return the line and what each run cites."""
    groups: list[tuple[str, ...]] = []
    lettered = _LETTERED.search(line) is not None

    def bracket(found: re.Match[str]) -> str:
        ids = cited_ids(found[0].strip("^"))
        if not ids or (lettered and "e" not in found[1].lower()):
            return found[0]
        groups.append(ids)
        return MARK

    def run(found: re.Match[str]) -> str:
        runs.append(unique(id for _ in range(found[0].count(MARK)) for id in next(taken)))
        opened, closed = found[0].startswith("("), found[0].endswith(")")
        return f"{'(' if opened and not closed else ''}{MARK}{')' if closed and not opened else ''}"

    line = _BRACKETS.sub(bracket, line.replace(MARK, ""))
    if not groups and (bare := _BARE.search(line)):
        groups.append(cited_ids(f"[{bare['leading'] or bare['ids']}]"))
        line = f"{line[: bare.start()]}{MARK}{line[bare.end() :] if bare['leading'] else ''}"
    runs: list[tuple[str, ...]] = []
    taken = iter(groups)
    return _RUN.sub(run, line), runs


def cited_ids(bracketed: str) -> tuple[str, ...]:
    """Return the ids in a bracket; none if it holds anything else.

    Numbers without an `e` count up to three digits, since `[1982]` is a year: between square brackets; between others
    if there are several, or with a word for lines or facts. `(13)` may be part of a name.
    """
    inside = _WITHIN.sub("", bracketed[1:-1])
    listed = _ID_LIST.fullmatch(inside)
    if listed is None:
        return ()
    if "e" not in listed["first"].lower():
        numbered = re.findall(r"\d+", inside)
        said = re.match(rf"\s*(?:see\s+)?(?:{_CALLED})\b", inside, re.IGNORECASE)
        if max(map(len, numbered)) > 3 or not (bracketed[0] in "[【［〔" or said or len(numbered) > 1):
            return ()
        if inside.rstrip()[-1:] == ".":
            return ()
    numbers: list[int] = []
    for found in _ID.finditer(inside[listed.start("first") :]):
        number = int(found["number"])
        if found["range"] and numbers and numbers[-1] < number <= numbers[-1] + _LONGEST_RANGE:
            numbers += range(numbers[-1] + 1, number)
        numbers.append(number)
    return unique(f"e{number}" for number in numbers)


# Lines

_BULLET = re.compile(
    r"^(?:[-*+–—‣▪◦>][ \t]+|[•·●○✓✔✅☑⭐👉➤►▶・]\ufe0f?[ \t]*|(?:\d\ufe0f?\u20e3|🔟)+[ \t]*(?=\S)|"
    r"[\u2600-\u27bf\u2b00-\u2bff\U0001f300-\U0001faff][\ufe0f\u200d]*[ \t]+(?=\S))"
)
_CHECKBOX = re.compile(r"^[ \t]*(?:[-*+•][ \t]+)?(?:\[([ xX✓✔])\]|([☐☑]))[ \t]+(?=\S)")
_COUNT = re.compile(
    r"(?P<bold>\*\*|__)?[(#]?(?P<mark>\d{1,3}(?=[.):、．])|(?:[ivx]{1,5}|[a-zA-Z])(?=\))|"
    r"(?:[ivx]{1,5}|[a-z])(?=\.[ \t*_])|[一二三四五六七八九十](?=[、．.)）])|[①-⑳])"
    r"(?P<end>[.):、．）]?)(?P<plain>\*\*|__)?(?:[ \t]+|(?<=[、．）①-⑳]))(?=\S)"
)
_ROMANS = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")
_INNER_TAG = re.compile(r"</?[A-Za-z][\w-]*\s*/?>")
_ROW = re.compile(r"^\|(.*)\|$")
_TABLE_HEAD = re.compile(
    r"\W*(?:#|no\.?|rank|answers?|names?|entit(?:y|ies)|(?:relation )?paths?|relations?|citations?|evidence|facts?|"
    r"sources?|reasons?|support(?:ing facts)?|notes?)?\W*",
    re.IGNORECASE,
)
_QUOTES = [
    pair.split("…")
    for pair in "**…** *…* __…__ `…` \"…\" '…' “…” «…» ‘…’ 「…」 『…』 《…》 „…“ „…” »…« ›…‹ ‹…› ‚…‘".split()
]
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|do|did|can|could|will|would|should|must|may|holds?|shows?|states?|says?|"
    r"contains?|needs?|names?|means?|asks?|gives?|lists?|leads?|exists?|appears?|it's|don't|doesn't|there's)\b"
)


def is_sentence(line: str) -> bool:
    """True if a line is prose: an introduction that ends with a colon, or a sentence with a verb."""
    if re.search(r"[A-Za-z)*]\W{0,3}:\**$", line):
        return True
    return len(line.split()) >= 4 and line.rstrip("*_)\"'")[-1:] in (".", "!", "?") and bool(_VERB.search(line))


def lines(content: str) -> list[str]:
    """Return the lines of a block without fences, tags, unticked boxes, numbers that count, and marks of a table."""
    content = _chosen(FENCE_LINE.sub("", cut_at_next(without_gaps(content))))
    content = _INNER_TAG.sub("\n", without_tags(re.sub(r"<\s*(FINISH(?:ED)?)\s*/?>", r"\1", content)))
    found = [line.strip() for line in content.split("\n") if line.strip()]
    bare = [_BULLET.sub("", line) for line in found]
    marks = [_COUNT.match(line) for line in bare]
    if len(marks) == 1 and marks[0] and marks[0]["end"] == "." and not marks[0]["mark"].isdigit():
        marks = [None]  # an initial
    counted = [each["mark"].lower() for each in marks if each]
    if all(map(_is_place, counted, range(1, len(counted) + 1))) and all(
        each or is_sentence(line) or line.startswith(("[", "(")) or _CITES.fullmatch(line) or _NOTE.fullmatch(line)
        for each, line in zip(marks, bare, strict=True)
    ):
        found = [
            line if each is None else ("" if each["plain"] else each["bold"] or "") + line[each.end() :]
            for each, line in zip(marks, bare, strict=True)
        ]
    if len(found) > 1 and all(line.endswith(",") for line in found[:-1]):
        found = [line.removesuffix(",") for line in found]
    return [unescape_text(line) for line in map(_row, found) if line]


def without_gaps(text: str) -> str:
    """Return a text with runs of white space that take no time."""
    return _GAP.sub(lambda gap: "\n" if "\n" in gap[0] else gap[0][:_LONGEST_GAP], text.replace("\r\n", "\n"))


_LONGEST_GAP = 16
_GAP = re.compile(rf"\s{{{_LONGEST_GAP},}}")


def _is_place(mark: str, place: int) -> bool:
    """True if a number, letter or Roman numeral stands for a place in a list."""
    if mark.isdecimal():
        return int(mark) == place
    return mark in (chr(96 + place), _ROMANS[min(place, 12)]) or unicodedata.numeric(mark[0], 0) == place


def _chosen(content: str) -> str:
    """Return a list of boxes without unticked ones, if one is ticked; other lines stay."""
    lines = content.split("\n")
    boxes = [_CHECKBOX.match(line) for line in lines]
    ticked = [box is not None and (box[1] or box[2]) not in (" ", "☐") for box in boxes]
    if not any(ticked):
        return content
    kept = zip(lines, boxes, ticked, strict=True)
    return "\n".join(line if box is None else line[box.end() :] for line, box, tick in kept if box is None or tick)


def _row(line: str) -> str:
    """Return the name and the citations of a table's row; nothing of its head, and other lines as they are."""
    if (row := _ROW.match(line)) is None:
        return line
    cells = [cell.strip() for cell in row[1].split("|")]
    if all(set(cell) <= set("-: ") or _TABLE_HEAD.fullmatch(cell) for cell in cells):
        return ""
    if len(cells) > 1 and cells[0].rstrip(".").isdigit() and not cited_ids(f"[{cells[1]}]"):
        cells = cells[1:]
    bare = [cell.strip("[]()") for cell in cells[1:]]
    return " ".join([cells[0], *(f"[{cell}]" for cell in bare if cited_ids(f"[{cell}]"))])


def item(line: str) -> str:
    """Take off a bullet, escapes, and quotes or marks that enclose the whole."""
    line = line.strip()
    if not line.strip("-*_=#`~| "):
        return ""  # a rule, or the rest of marks around a tag
    text = unescape_text(_BULLET.sub("", line)).strip()
    for opening, closing in _QUOTES:
        inner = text[len(opening) : -len(closing)]
        enclosed = text.startswith(opening) and text.endswith(closing) and inner.strip()
        if enclosed and opening not in inner and closing not in inner:
            text = inner.strip()
    return text


# JSON

_NAME_KEYS = ("name", "answer", "entity", "text", "value", "mention", "label", "title")
_CITATION_KEYS = ("citations", "citation", "evidence", "cites", "cited", "sources", "source", "facts", "ids", "support")
_PAIR = re.compile(r"\s*[\"'][^\"'\n]+[\"'][ \t]*:[ \t]*\[")
"""An object without its braces."""


def json_entries(content: str, hidden: str) -> list[tuple[str, Any]] | None:
    """Return the entries of a block in JSON, as names and their citations; None for any other block.

    They are a list of texts or objects, objects line by line, or an object: one entry, one with a list, entries by
    number, or citations by name.

    Args:
        content: the block.
        hidden: the same with its shown names hidden, since a bracket at its beginning may be part of a name.
    """
    edge = FENCE_LINE.sub("", hidden).strip()
    if edge[:1] not in ("{", '"', "'") and not (edge[:1] == "[" and edge[-1:] == "]"):
        return None
    content = FENCE_LINE.sub("", cut_at_next(content)).strip()
    content = f"{{{content}}}" if _PAIR.match(content) else content
    listed = entries(content)
    if listed is None and content.startswith("{") and (whole := first_object(content)) is not None:
        objects = [first_object(line) for line in content.splitlines() if line.strip()]
        lists = [each for key, each in whole.items() if isinstance(each, list) and is_result(key)]
        if len(objects) > 1 and all(objects):
            listed = objects
        elif _find_name(whole) is not None:
            listed = [whole]
        elif lists or all(map(str.isdigit, whole)):
            listed = lists[0] if lists else list(whole.values())
        else:
            listed = [{"name": key, "citations": each} for key, each in whole.items()]
    named = [(_find_name(entry), _find(entry, _CITATION_KEYS)) for entry in listed or ()]
    return None if listed is None else [(name, cited) for name, cited in named if name is not None]


def _find_name(entry: Any) -> str | None:
    """Return the name that an entry of a JSON list is or has."""
    found = entry if isinstance(entry, str | int | float) else _find(entry, _NAME_KEYS)
    return str(found) if isinstance(found, str | int | float) and not isinstance(entry, bool) else None


def _find(entry: Any, keys: Sequence[str]) -> Any:
    named = {str(key).lower(): value for key, value in entry.items()} if isinstance(entry, dict) else {}
    return next((named[key] for key in keys if named.get(key) is not None), None)


# Answers

_NOTE = re.compile(
    r"\W*(?:reason(?:ing)?s?|explanation|justification|rationale|note|because|confidence|remark|comment|analysis)\b\W*:.*",
    re.IGNORECASE | re.DOTALL,
)
_CITES = re.compile(
    r"[^\w$€£¥%+]*(?:evidence|citations?|cites?|cited|sources?|supported by|supporting (?:facts?|evidence)|facts?|"
    r"support|refs?|references?)\W*:(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_LABEL = re.compile(
    r"\W{0,3}(?:réponse|antwort|respuesta|risposta|resposta|ответ|答案|回答|答え)\s*[:：]\s*(?=\S)|"
    r"\W{0,3}(?:(?:so|thus|therefore|hence)\W+)?(?:the\s+)?(?:(?:final|correct|most likely|likely|best|only|draft|"
    r"first|second|third|other|possible)\s+)*(?:answers?|name|result|entity|mention)\s*(?:#?\d{1,2})?\s*(?:\([^()]*\)\s*)?"
    r"(?P<link>[:：]|=|\s(?:is|are|was|were|would be|must be)\b:?)\s*(?=\S)",
    re.IGNORECASE,
)
_SOURCE_LABEL = re.compile(
    r"^(?:based on|according to|from|as per|using|given)\b[^:]{0,50}\b(?:facts?|evidence|graph|context|data|sources?|"
    r"lines?|results?|rows?|information|knowledge|memory|know|above)\b[^:]{0,20}:\s+",
    re.IGNORECASE,
)
_COPULA = re.compile(
    r"(?:(?i:so|thus|therefore|hence|based on|according to|from|given)\b.*?,\s+)?(?:The|It|He|She|They|This|That|"
    r"These|Those|His|Her|Their|Its|In|At|So|the|it)\b.*?\b(?:is|are|was|were|named|called)\s+(?:indeed\s+|therefore\s+)?(.+)$"
)
_REASON = re.compile(
    r"\s*(?:[(\[{#=:]|//|--|[-–—]\s|→|(?:because|since|as|which|who|where|is|are|was|were|has|from|via|through|according|"
    r"per|see|supported|confirmed|shown|by|in|with)\b)"
)
_LEADING = re.compile(r"^(?:[:;,|→=–—*+-]\s+)+")
_PHRASE = (
    r"(?:(?:as\s)?(?:see|source|evidence|facts?|cf\.?|per|according\sto|supported\sby|citing|cited\sin|from|"
    r"shown\s(?:in|by)|stated\s(?:in|by)|seen\sin):?)"
)
_INTRODUCES = re.compile(
    rf"(?:(?:[(\[]\s?(?i:{_PHRASE})?|(?:[,;:|]|\s[–—-])\s?{_PHRASE}|[,;:|^→←⟵⟶⇐⇒]|(?<=\s)[–—>/]+|<-)\s*)$"
)
"""Stands between an answer and its citation: a mark, or words behind a mark. Words alone belong to the name."""
_LONGEST_INTRODUCTION, _INTRODUCTIONS = 32, 4
_ABBREVIATED = re.compile(
    r"(?:\b(?:jr|sr|inc|co|ltd|corp|st|mr|mrs|ms|dr|no|vs|etc|bros|plc|llc|esq|vol|op|dept|univ|ave|blvd|mt|ft|gen|sen|"
    r"rep|gov|lt|col|capt|prof|s\.p\.a|s\.r\.l|s\.a)|\b\w|\.\w+)\.$",
    re.IGNORECASE,
)
_BOLD = re.compile(r"\*\*([^*\n]+)\*\*|__([^_\n]+)__")
_ASIDE = re.compile(
    r"~~[^~\n]+~~|[ \t]*[(\[](?:(?:very )?(?:high|medium|low) )?confiden(?:ce|t)\b[^()\[\]]*[)\]]|"
    r"[ \t]*[\[(]\s*(?:(?:no|without|not) (?:a )?(?:citations?|cited|evidence)|none|n/a|uncited|-|e?\?|"
    r"(?:\w+ ){0,4}knowledge|"
    r"(?:not (?:in|from|held by)|outside(?: of)?) (?:the )?(?:facts?|graph|evidence|context)[^\])\n]*)?\s*[\])]",
    re.IGNORECASE,
)
"""Text that was taken back, a confidence, or a remark in the place of a citation."""
_REVISED = re.compile(
    r"\W{0,3}(?:(?:wait|no|sorry|rather|hmm)\s*[,:;—–-]+\s*(?=(?:no|wait|actually|correction)\s*[,:;—–-]))?"
    r"(?:actually|wait(?=\W+no\b)|no(?=\W+wait\b)|correction|on second thoughts?|scratch that|oops)\s*[,:;—–-]+\s*"
    r"(?:(?:no|wait|actually|correction)\s*[,:;—–-]+\s*)*(?:(?:it|that)(?: is|[’']s| should be)\s+)?(?=\S\S)",
    re.IGNORECASE,
)
"""Beginning of a line that takes back those above it."""
_REVISED_WITHIN = re.compile(
    r"\s*(?:[—–;.]|\s-)\s*(?:actually|correction|(?:no,? )?wait|rather)\s*[,:]\s*(?:no\s*[,:]\s*)?", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"(?<=[.!;])\s+(?=[A-Z\"“*])")
_REMARK = re.compile(rf"^({HIDDEN})(?:\s+[—–-]|:)\s+[a-z].*$")
"""Description of a shown name, behind it: `Heat — a film by Michael Mann`."""
_IS = (" is", " was", " would be", " must be")
_FROM_FACTS = re.compile(rf"(?:based on|according to|from|as|per|given|looking at)\b[^,]*{MARK}\s*,", re.IGNORECASE)
_JOINS = re.compile(r"^(?:[,;|&/\s]|and\b|or\b)+")
_ARTICLE = re.compile(r"(?:the|a|an|its|his|her|their)\b")
_ALL_SHOWN = re.compile(rf"{HIDDEN}(?:(?:\s*[,;/&|+]\s*(?:(?:and|or)\s+)?|\s+(?:and|or)\s+){HIDDEN})+")


def answers(content: str, known: ShownNames | None = None) -> tuple[WrittenAnswer, ...]:
    """Return the answers in a block, each once, with all of its citations.

    A line without an answer that gives the source of the answers above adds to their citations. Reasons, notes and
    abstentions are no answers. Words before a citation are removed behind a mark alone: `Paris
    (source: e3)`, `Paris, per e3`; words without one belong to the name.

    Args:
        content: the block.
        known: names in the prompt, which are never taken apart.
    """
    return merged(read_block(content, Hiding(known)))


def merged(read: Iterable[WrittenAnswer]) -> tuple[WrittenAnswer, ...]:
    """Return answers with each name once, and all of its citations."""
    cited: dict[str, tuple[str, ...]] = {}
    for one in read:
        cited[one.name] = unique([*cited.get(one.name, ()), *one.citations])
    return tuple(WrittenAnswer(name, ids) for name, ids in cited.items())


def read_block(content: str, hiding: Hiding) -> list[WrittenAnswer]:
    """Return the answers in a block in their order; names that `hiding` contains are never taken apart."""
    hidden = hiding.hide(without_gaps(content))
    listed = json_entries(content, hidden)
    if listed is None:
        read = read_lines(
            lines("\n".join(_without_remarks(_ASIDE.sub("", with_brackets(_chosen(hidden))).split("\n"))))
        )
    else:
        read = []
        for name, cited in listed:
            ids = cited_ids(f"[{' , '.join(re.findall(r'[eE]?[0-9]+', json.dumps(cited)))}]")
            read += [WrittenAnswer(one.name, (*one.citations, *ids)) for one in read_lines([hiding.hide(name)])]
    restored = [WrittenAnswer(hiding.restore(one.name), one.citations) for one in read if not is_nothing(one.name)]
    return [one for one in restored if one.name]


def read_lines(lines: Sequence[str]) -> list[WrittenAnswer]:
    """Return the answers in lines without bullets and numbers; a sentence counts only if all lines are some."""
    found: list[WrittenAnswer] = []
    told = 0  # answers whose citations followed them
    prose = [is_sentence(line) and MARK not in mark(line)[0] for line in lines]
    for line, idle in zip(lines, prose, strict=True):
        first, *rest = _SENTENCE_END.split(line, maxsplit=1)
        if rest and is_nothing(first) and _SOURCE_LABEL.match(rest[0]):
            line = rest[0]  # the facts do not say. From what I know: Paris
        line = _REVISED_WITHIN.split(line)[-1]
        if found and (revised := _REVISED.match(line)):
            line, found, told = line[revised.end() :], [], 0
        if is_nothing(line) or _NOTE.fullmatch(line) or (idle and not all(prose)):
            continue
        read = list(_of_line(line))
        if read and not read[0].name:  # nothing but citations
            cites = _CITES.fullmatch(line) is not None
            found[told:] = [
                one if one.citations and not cites else WrittenAnswer(one.name, read[0].citations)
                for one in found[told:]
            ]
            told = len(found) if cites else told
        found += [one for one in read if one.name]
    return found


def _without_remarks(lines: Sequence[str]) -> Iterator[str]:
    """Leave out bullets below an answer that is cited."""
    above = -1  # how far the last line with a citation is indented
    for line in lines:
        bare = line.lstrip(" \t")
        indent = len(line) - len(bare)
        cited = bool(mark(bare)[1])
        if cited and not _CITES.fullmatch(bare):
            above = indent
        elif bare and indent <= above:
            above = -1
        if not (bare and above >= 0 and indent > above and not cited and _BULLET.match(bare)):
            yield line


def _of_line(line: str) -> Iterator[WrittenAnswer]:
    """Yield the answers of one line; one without a name for citations alone."""
    if cites := _CITES.fullmatch(line):
        plain = cited_ids(f"[{cites['rest'].strip().strip('[]().')}]")
        yield WrittenAnswer("", plain or unique(id for run in mark(cites["rest"])[1] for id in run))
        return
    bare, groups = mark(line)
    pieces = bare.split(MARK)
    said = re.search(rf"{MARK}[ *_\"')]*\.[ *_\"')]*$", bare) is not None
    leading = bool(groups) and not pieces[0].strip(" \t-*•.:") and bool(pieces[-1].strip(" \t.*"))
    if leading:  # [e3] Paris; [e4] Lyon
        for place, (piece, cited) in enumerate(zip(pieces[1:], groups, strict=True)):
            if not place or not _REASON.match(piece) or piece.lstrip().startswith("("):
                yield from (WrittenAnswer(name, cited) for name in read_names(piece, said, True))
        return
    if said and _FROM_FACTS.match(bare):
        name = read_name(bare.replace(MARK, ""), True, True)
        yield from [WrittenAnswer(name, unique(id for each in groups for id in each))] if name else []
        return
    before: list[WrittenAnswer] = []
    for place, piece in enumerate(pieces):
        following = groups[place] if place < len(groups) else None
        if place and not _goes_on(piece, following is not None):
            if following and before:
                before[-1] = WrittenAnswer(before[-1].name, unique([*before[-1].citations, *following]))
            continue
        names = read_names(_JOINS.sub("", piece) if place else piece, said, bool(following))
        before += [WrittenAnswer(name, following or ()) for name in names or ([""] if following else [])]
    yield from before


def _goes_on(piece: str, cited: bool) -> bool:
    """True if the text after a citation is another answer, and no reason."""
    text = piece.strip()
    if not text.strip(".,;:|*_ "):
        return False
    if text.startswith((";", "|")):
        return True
    if not text.startswith((",", "&", "and ", "or ")):
        return cited and not _REASON.match(text) and not text[0].islower()
    name = _JOINS.sub("", text)
    if not name or _ARTICLE.match(name) or _REASON.match(name) or _VERB.search(name):
        return False
    return cited or (len(name.split()) <= 5 and not name[0].islower())


def read_names(piece: str, said: bool = False, cited: bool = False) -> list[str]:
    """Return the names in a piece of a line: several between `;` or ` | ` if each is short, and after `answers are`.

    At commas and `and`, too, a piece is split if all its parts were shown.
    """
    label = _LABEL.match(piece)
    parts = [piece]
    if label is not None and "are" in (label["link"] or ""):
        parts = re.split(r",\s+(?:and\s+)?|\s+and\s+", piece[label.end() :])
    elif _ALL_SHOWN.fullmatch(piece.strip(" .,")):
        parts = re.findall(HIDDEN, piece)
    else:
        for separator in (r"\s*;\s+(?!or\b)", r"\s+\|\s+"):
            split = re.split(separator, piece.strip(" ;|"))
            if len(split) > 1 and all(len(part.split()) <= 4 and not part[:1].islower() for part in split):
                parts = split
    return [name for part in parts if (name := read_name(part, said, cited))]


def read_name(piece: str, said: bool = False, cited: bool = False) -> str:
    """Return the name in a piece of a line: without labels, marks, arrows, reasons; empty for an abstention.

    Args:
        piece: part of a line.
        said: True if the line is a sentence, whose full stop stands behind its citation.
        cited: True if a citation stands beside it.
    """
    text = item(_LEADING.sub("", piece.strip()))
    label = _LABEL.match(text)
    if label is not None:
        text = text[label.end() :]
        text = text.removeprefix("**").strip() if text.count("**") % 2 else text
    text = _SOURCE_LABEL.sub("", text)
    if is_nothing(text):
        return ""
    bold = _BOLD.findall(text)
    if len(bold) == 1 and (label or said or text.startswith(("**", "__"))):
        text = bold[0][0] or bold[0][1]
    elif said and text[-1:] != "." and (copula := _COPULA.match(text)) is not None and len(text.split()) > 4:
        text = copula[1]
    walked = re.split(r"\s+(?:-+>|→|=>)\s+", text)
    if len(walked) > 2:
        text = walked[-1]  # a line of the evidence was copied, which leads to the answer
    text = _REMARK.sub(r"\1", text).rstrip()
    for _ in range(_INTRODUCTIONS if cited else 0):
        found = _INTRODUCES.search(text, max(0, len(text) - _LONGEST_INTRODUCTION))
        text = text if found is None else text[: found.start()].rstrip()
    text = item(text if cited else text.rstrip(" \t\n,|→"))
    stopped = text.endswith(".") and not text.endswith("..") and len(text) > 2
    if stopped and (" " not in text or (label and not said and label["link"] in _IS)) and not _ABBREVIATED.search(text):
        text = text[:-1]
    return item(text.strip())
