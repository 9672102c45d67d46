"""Reads the lines of a result: items of a list, and answers with what they cite.

Models number and quote items, add reasons, notes and introductions, say "none" in many ways, and cite wherever they
like: before an answer, behind it, in the middle of a line, several answers in one line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from byokg.llm.layouts import FENCE_LINE, cut_at_next, entries, first_object, unescaped, without_tags

T = TypeVar("T")


@dataclass(frozen=True)
class WrittenAnswer:
    """One answer as written, and the evidence it cites: `e3`, `e7`."""

    name: str
    citations: tuple[str, ...] = ()


def unique(items: Iterable[T]) -> tuple[T, ...]:
    """Return items in their order, each once."""
    return tuple(dict.fromkeys(items))


# Items

_BULLET = re.compile(r"^(?:[-*+–—‣▪◦>][ \t]+|[•·●○✓✔][ \t]*)")
_NUMBER = re.compile(r"(?:\((\d{1,3})\)|(\d{1,3})[.):]|#(\d{1,3})[.):]?)[ \t]+(?=\S)")
_BOLD_NUMBER = re.compile(r"^(?:\*\*|__)(\d{1,3}[.):])(?:\*\*|__)")
_INNER_TAG = re.compile(r"</?[A-Za-z][\w-]*\s*/?>")
_QUOTES = (("**", "**"), ("__", "__"), ("`", "`"), ('"', '"'), ("'", "'"), ("“", "”"), ("«", "»"), ("‘", "’"))
_NAME_KEYS = ("name", "answer", "entity", "text", "value", "mention", "label", "title")
_CITATION_KEYS = ("citations", "citation", "evidence", "cites", "cited", "sources", "source", "facts", "ids", "support")

_NOTHING = re.compile(
    r"\W*(?:none|n/?a|null|nil|nothing|empty|not applicable|left (?:blank|empty)|"
    r"none of (?:them|these|those|the \w+)\b.*|"
    r"(?:none|nothing|not) (?:is |are )?(?:needed|required|necessary|found|listed|named|mentioned|given|applicable)|"
    r"(?:there (?:is|are) )?no (?:(?:\w+ ){0,2}(?:entit(?:y|ies)|paths?|relations?|quer(?:y|ies)|subgraph|request))"
    r"(?: (?:is|are|has|have|can|need\w*|required|named|left|to)\b.*)?)(?:\W*|\W*[-–—:;,.(].*)",
    re.IGNORECASE | re.DOTALL,
)
_FINISH = re.compile(r"\W*FINISH(?:ED)?\W*", re.IGNORECASE)
_FINISH_SHOUTED = re.compile(
    r"(?:\W*|.*(?:[-–—:.;,]\s+|→\s*)\W*)FINISH(?:ED)?(?:\W*|\W*[-–—:;,.(>].*|\s+(?:as|since|because)\b.*)"
)
_FINISH_SAID = re.compile(r"\W*FINISH(?:ED)?\W*[-–—:;,.(]\W*\s.*", re.IGNORECASE)


def is_nothing(text: str) -> bool:
    """Tell whether a text only says that there is nothing: `None.`, `N/A`, `no further entities are needed`."""
    text = text.strip()
    return text in ("", "[]", "{}", "-", "—", "–", '""') or _NOTHING.fullmatch(text) is not None


def finishes(items: Sequence[str]) -> tuple[bool, list[str]]:
    """Tell whether a list says FINISH; return the other items with it, without the reasons that follow."""
    at = next((at for at, item in enumerate(items) if _FINISH_SHOUTED.fullmatch(item)), None)
    if at is not None:
        others = [item for item in items[at + 1 :] if not _FINISH_SHOUTED.fullmatch(item) and not is_sentence(item)]
        return True, [*(item for item in items[:at] if not is_sentence(item)), *others]
    only = len(items) > 0 and (
        all(map(_FINISH.fullmatch, items)) or (len(items) == 1 and _FINISH_SAID.fullmatch(items[0]) is not None)
    )
    return only, [] if only else list(items)


_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|do|did|can|could|will|would|should|must|may|holds?|shows?|states?|says?|"
    r"contains?|needs?|names?|means?|asks?|gives?|lists?|leads?|exists?|appears?|it's|don't|doesn't|there's)\b"
)


_TALK = re.compile(
    r"\b(?:these|this|following|question|graph|schema|entit(?:y|ies)|relations?|paths?|answers?|context|facts?|below|above|"
    r"note|hope|tasks?)\b",
    re.IGNORECASE,
)
"""What a sentence that stands beside items speaks of; a sentence may be an item itself, as a quotation."""


def is_sentence(line: str) -> bool:
    """Tell whether a line is prose: an introduction that ends with a colon, or a sentence with a verb."""
    if re.search(r"[A-Za-z)*]\W{0,3}:\**$", line):
        return True
    return len(line.split()) >= 4 and line.rstrip("*_)\"'")[-1:] in (".", "!", "?") and bool(_VERB.search(line))


def items(content: str) -> list[str]:
    """Return the items of one block, as `parsing.read_list` describes; sentences beside items are none."""
    content = FENCE_LINE.sub("", cut_at_next(content).replace("\r\n", "\n"))
    listed = _json_items(content)
    if listed is not None:
        return [text for name in listed if (text := " ".join(name.split())) and not is_nothing(text)]
    found = [text for line in _lines(content) if (text := item(line))]
    if len(found) == 1:
        return [] if is_nothing(found[0]) and not _FINISH_SHOUTED.fullmatch(found[0]) else found
    kept = [text for text in found if not (is_sentence(text) and (text.rstrip("*")[-1:] == ":" or _TALK.search(text)))]
    return kept or found[:1]


def item(line: str) -> str:
    """Take off a bullet, escapes, and quotes or marks that enclose the whole."""
    line = line.strip()
    if set(line) <= set("-*_=#`~| "):
        return ""  # a rule, or what is left of marks around a tag
    text = unescaped(_BULLET.sub("", line)).strip()
    for opening, closing in _QUOTES:
        inner = text[len(opening) : -len(closing)]
        enclosed = text.startswith(opening) and text.endswith(closing) and inner.strip()
        if enclosed and opening not in inner and closing not in inner:
            text = inner.strip()
    return text


def _lines(content: str) -> list[str]:
    """Return the lines of a block without tags, numbers and the commas between them."""
    lines = [line.strip() for line in _FINISH_TAG.sub("FINISH", content).split("\n")]
    lines = [part.strip() for line in lines for part in _INNER_TAG.sub("\n", without_tags(line)).split("\n")]
    lines = _without_numbers([line for line in lines if line])
    if len(lines) > 1 and all(line.endswith(",") for line in lines[:-1]):
        lines = [line.removesuffix(",") for line in lines]
    return lines


_FINISH_TAG = re.compile(r"<\s*FINISH(?:ED)?\s*/?>")


def _without_numbers(lines: Sequence[str]) -> list[str]:
    """Take off numbers that count the lines from 1; any others, as in `2. Bundesliga`, are part of a name."""
    bare = [_BOLD_NUMBER.sub(r"\1", _BULLET.sub("", line)) for line in lines]
    found = [_NUMBER.match(line) for line in bare]
    numbers = [int(each[1] or each[2] or each[3]) for each in found if each]
    said = [
        bool(each) or is_sentence(line) or line.startswith(("[", "(")) for each, line in zip(found, bare, strict=True)
    ]
    if numbers != list(range(1, len(numbers) + 1)) or not all(said):
        return list(lines)
    return [line if each is None else line.replace(each[0], "", 1) for line, each in zip(bare, found, strict=True)]


def _json_items(content: str) -> list[str] | None:
    """Return the names in a block that is a JSON list, of texts or of objects, or an object with such a list."""
    listed: Any = entries(content)
    if listed is None and content.lstrip().startswith("{"):
        found = first_object(content)
        if found is not None:
            lists = [value for value in found.values() if isinstance(value, list)]
            listed = lists[0] if lists and not _named(found) else [found]
    if not isinstance(listed, list):
        return None
    names = [_named(entry) for entry in listed]
    return None if any(name is None for name in names) else [name for name in names if name]


def _named(entry: Any) -> str | None:
    """Return the name that an entry of a JSON list is or has."""
    if isinstance(entry, str):
        return entry
    if isinstance(entry, int | float) and not isinstance(entry, bool):
        return str(entry)
    if isinstance(entry, dict):
        named = {str(key).lower(): value for key, value in entry.items()}
        return next((str(named[key]) for key in _NAME_KEYS if isinstance(named.get(key), str | int | float)), None)
    return None


# Answers

_MARK = "\x00"
"""Stands for a citation while a line is taken apart."""

_BRACKETS = re.compile(r"\^?[\[【({<]([^\[\]【】(){}<>\n]{1,120})[\]】)}>]")
_LINKED = re.compile(r"\[([^\[\]\n]+)\]\(#?([eE]\d{1,5})\)")
_SAID_OF_IDS = (
    r"(?:(?:see|cf|evidence|facts?|sources?|citations?|cites?|cited|lines?|refs?|ids?|from|rows?|supported|by|per|in)\b"
    r"[.:#\s]*)*"
)
_ID_LIST = re.compile(
    rf"\s*{_SAID_OF_IDS}(?P<first>[#^]?[eE]?\s?\d{{1,5}})(?:\s*(?:[,;&/|+]\s*(?:and\b)?|and|to|through|[-–—]|\.\.+|…)?\s*"
    rf"{_SAID_OF_IDS}[#^]?[eE]?\d{{1,5}})*[\s.]*",
    re.IGNORECASE,
)
_WITHIN = re.compile(r"[\s,:]*\b(?:rows?|columns?)\s*#?\d+(?:\s*[-–,]\s*\d+)*|(?<=\d):\s*\D.*$", re.IGNORECASE)
"""Where in what is cited something stands, or what it says."""
_ID = re.compile(r"(?P<range>(?:-|–|—|\.\.+|…|\bto\b|\bthrough\b)\s*)?[#^]?(?P<e>[eE]?)\s?(?P<number>\d{1,5})")
_LONGEST_RANGE = 200
_BARE_ID = re.compile(
    r"(?:^[eE]\d{1,5}(?=\s*[:|–—-]\s)|(?<=[\s(])[-–—:,;|(=>→]+\s*(?:evidence|facts?|sources?|see|from|cites?)?[:\s]*[eE]\d{1,5}"
    r"(?:\s*(?:,|;|and|&)\s*[eE]\d{1,5})*(?=[\s).]*$)|(?<=[\w*\"'”])(?:\s*[:,;|]\s*)[eE]\d{1,5}(?:\s*,\s*[eE]\d{1,5})*[\s.]*$)"
)
_MARKS = re.compile(rf"(?:\(\s*(?:see\s+)?)?{_MARK}(?:[\s,;&]*(?:and\s+)?{_MARK})*(?:\s*\))?")

_NOTE = re.compile(
    r"\W*(?:reason(?:ing)?s?|explanation|justification|rationale|note|because|confidence|remark|comment|analysis)\b\W*:.*",
    re.IGNORECASE | re.DOTALL,
)
_CITES = re.compile(
    r"\W*(?:evidence|citations?|cites?|cited|sources?|supported by|supporting (?:facts?|evidence)|facts?|support|refs?|"
    r"references?)\W*:(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_LABEL = re.compile(
    r"^\W{0,3}(?:(?:so|thus|therefore|hence)\W+)?(?:the\s+)?(?:(?:final|correct|most likely|likely|best|only|draft|"
    r"first|second|third|other|possible)\s+)*(?:answers?|name|result|entity)\s*(?:#?\d{1,2})?\s*(?:\([^()]*\)\s*)?"
    r"(?P<link>:|=|\s(?:is|are|was|were|would be|must be)\b:?)\s*(?=\S)",
    re.IGNORECASE,
)
_SOURCE_LABEL = re.compile(r"^(?:based on|according to|from|as per|using|given)\b[^:]{3,60}:\s+", re.IGNORECASE)
_COPULA = re.compile(
    r"^(?:(?i:so|thus|therefore|hence|based on|according to|from|given)\b.*?,\s+)?(?:The|It|He|She|They|This|That|"
    r"These|Those|His|Her|Their|Its|In|At|So|the|it)\b.*?\b(?:is|are|was|were|named|called)\s+(?:indeed\s+|therefore\s+)?(?P<name>.+)$"
)
_ABSTAINS = re.compile(
    r"\W*(?:sorry\W+|unfortunately\W+|based on [^,]*,\s*|from [^,]*,\s*|according to [^,]*,\s*)?(?:"
    r"(?:(?:i|we)\s*(?:am|[’']m|was|were|are|[’']re)\s+)?(?:unable|not able)\s+to\b.*|"
    r"(?:this|that)\s+(?:question\s+)?(?:cannot|can\s?not|can[’']t|could\s?n[o’']t)\s+be\b.*|"
    r"(?:i|we|one)\s+(?:do\s*n[o'’]t|don[’']t|cannot|can[’']t|can not|could not|couldn[’']t|am unable to|"
    r"am not able to|have no|found no)\b.*|"
    r"(?:the\s+)?answer\s+(?:is|can|could|was)\s*(?:not|n[o'’]t|unknown|unavailable|undetermined)\b.*|"
    r"(?:unknown|unanswerable|undetermined|unclear|indeterminate|abstain(?:ed)?|idk|no idea)\b\W*"
    r"(?:\(.*\)|[-–—:;,.].*)?|"
    r"(?:it\s+is\s+)?not\s+(?:found|known|available|answerable|enough|sufficient|given|stated|specified|mentioned|"
    r"determinable|possible|clear|in\s+the|present|provided|supported|contained|listed)\b.*|"
    r"insufficient\b.*|(?:it\s+)?(?:cannot|can\s?not|can[’']t)\s+be\s+.*|"
    r"(?:there\s+(?:is|are)\s+)?no\s+(?:\w+\s+){0,2}(?:answers?|facts?|information|evidence|data|results?|matches|match|lines?|entry)\b.*|"
    r"(?:none|neither|nothing)\s+(?:of|in|was|is|were|found|here)\b.*|"
    r"(?:the|these|those|this|given|provided|retrieved|available)\s+(?:\w+\s+){0,3}?(?:facts?|graph|evidence|context|data|"
    r"schema|information|lines?|results?|rows?|question)\b.*?\b(?:not|no|n[o’']t|lacks?|lacking|nothing|neither|don[’']t|"
    r"doesn[’']t|insufficient|cannot|fails?)\b.*|"
    r"(?:facts?|graph|evidence|context)\s+(?:do|does|is|are|has|have|lacks?|holds?)\b.*?\b(?:not|no|nothing|n[o’']t|answer|it)\b.*"
    r")",
    re.IGNORECASE | re.DOTALL,
)
_REASON = re.compile(
    r"\s*(?:[(\[{#=:]|//|--|[-–—]\s|→|(?:because|since|as|which|who|where|is|are|was|were|has|from|via|through|according|"
    r"per|see|supported|confirmed|shown|by|in|with)\b)"
)
_LEADING = re.compile(r"^(?:[:;,|→=–—*+-]\s+)+")
_TRAILING = re.compile(
    r"(?:[\s:,;|=(\[^→]|\s[–—>/-]+|<-|\b(?:see|source|evidence|facts?|cf\.?|as per|according to|"
    r"supported by|citing|cited in|per|"
    r"from|is|as (?:shown|stated|seen) (?:in|by)|and)\b)+$",
    re.IGNORECASE,
)
_MARKS_BEHIND = re.compile(r"(?:[\s:,;|→]|\s[–—>/-]+)+$")
_ABBREVIATED = re.compile(
    r"(?:\b(?:jr|sr|inc|co|ltd|corp|st|mr|mrs|ms|dr|no|vs|etc|bros|plc|llc|esq|vol|op|dept|univ|ave|blvd|mt|ft|gen|sen|"
    r"rep|gov|lt|col|capt|prof|s\.p\.a|s\.r\.l|s\.a)|\b\w|\.\w+)\.$",
    re.IGNORECASE,
)
_REMARK = re.compile(r"(?:\s[—–-]|:)\s+[a-z].*$")
"""What an answer is, between it and its citation: `Heat — a film by Michael Mann [e1]`."""
_ROW = re.compile(r"^\|(.*)\|$")
_TABLE_HEAD = re.compile(
    r"\W*(?:#|no\.?|rank|answers?|names?|entit(?:y|ies)|citations?|evidence|facts?|sources?|reasons?|support|notes?)\W*",
    re.IGNORECASE,
)
_BOLD = re.compile(r"\*\*([^*\n]+)\*\*|__([^_\n]+)__")
_BOXED = re.compile(r"\\boxed\{(?:\\text\{)?([^{}]*)\}\}?")
_ARROWS = re.compile(r"\s+(?:-+>|→|=>)\s+")


_TAKEN_BACK = re.compile(r"~~[^~\n]+~~")
_ID_TAG = re.compile(r"<\s*([eE]\d{1,5}(?:\s*[,;–-]\s*[eE]?\d{1,5})*)\s*>")
_UNCITED = re.compile(
    r"[ \t]*[\[(]\s*(?:(?:no|without|not) (?:a )?(?:citations?|cited|evidence)|none|n/a|uncited|-|e?\?|"
    r"(?:from |based on )?(?:my )?(?:own |general |prior |background |world )*knowledge|"
    r"(?:not (?:in|from|held by)|outside(?: of)?) (?:the )?(?:facts?|graph|evidence|context)[^\])\n]*)?\s*[\])]",
    re.IGNORECASE,
)
"""What stands behind an answer in the place of a citation."""
_SENTENCE_END = re.compile(r"(?<=[.!;])\s+(?=[A-Z\"“*])")


def abstains(line: str) -> bool:
    """Tell whether a line says that there is no answer: `The facts do not hold the answer.`, `Unknown`."""
    return is_nothing(line) or _ABSTAINS.fullmatch(line.strip().strip("*_\"'()[]").strip()) is not None


def answers(content: str) -> tuple[WrittenAnswer, ...]:
    """Return the answers that stand in a block, each once, with all that it cites.

    A line that cites nothing but says where the answers above come from adds to what they cite. Reasons, notes and
    sentences that abstain are no answers.
    """
    content = FENCE_LINE.sub("", cut_at_next(content).replace("\r\n", "\n"))
    found: list[WrittenAnswer] = []
    listed = _json_answers(content)
    if listed is None:
        content = _TAKEN_BACK.sub("", _UNCITED.sub("", _ID_TAG.sub(r"[\1]", content)))
        lines = list(_answer_lines(content))
        prose = [is_sentence(line) and _MARK not in _marked(line)[0] for line in lines]
        for line, idle in zip(lines, prose, strict=True):
            first, *rest = _SENTENCE_END.split(line, maxsplit=1)
            if rest and abstains(first) and _SOURCE_LABEL.match(rest[0]):
                line = rest[0]  # the facts do not say. From what I know: Paris
            if abstains(line) or _NOTE.fullmatch(line) or (idle and not all(prose)):
                continue
            read = list(_of_line(line))
            if read and not read[0].name:  # nothing but citations
                found = [
                    one if one.citations and not _CITES.fullmatch(line) else WrittenAnswer(one.name, read[0].citations)
                    for one in found
                ]
            found += [one for one in read if one.name]
    else:
        found = [one for entry in listed for one in entry]
    cited: dict[str, tuple[str, ...]] = {}
    for one in found:
        if one.name and not is_nothing(one.name):
            cited[one.name] = unique([*cited.get(one.name, ()), *one.citations])
    return tuple(WrittenAnswer(name, ids) for name, ids in cited.items())


def _answer_lines(content: str) -> Iterator[str]:
    """Yield lines as `_lines` does, the rows of a table without its head and its marks."""
    lines = [_BOXED.sub(r"\1", line) for line in _lines(content)]
    for line in lines:
        row = _ROW.match(line)
        if row is None:
            yield line
            continue
        cells = [cell.strip() for cell in row[1].split("|")]
        if all(set(cell) <= set("-: ") for cell in cells) or all(map(_TABLE_HEAD.fullmatch, cells)):
            continue
        if len(cells) > 1 and cells[0].rstrip(".").isdigit() and not _cited_ids(cells[1]):
            cells = cells[1:]
        ids = [f"[{cell}]" for cell in cells[1:] if _cited_ids(f"[{cell.strip('[]()')}]")]
        yield " ".join([cells[0], *(each.replace("[[", "[").replace("]]", "]") for each in ids)])


def _json_answers(content: str) -> list[list[WrittenAnswer]] | None:
    """Return the answers of a block in JSON: a list of texts or objects, one object, or names with what they cite."""
    listed: Any = entries(content)
    if listed is None:
        if not content.lstrip().startswith("{"):
            return None
        objects = [first_object(line) for line in content.splitlines() if line.strip()]
        found = first_object(content)
        if found is None:
            return None
        listed = objects if len(objects) > 1 and all(objects) else [found]
        if len(listed) == 1 and _named(found) is None:
            lists = [
                value for key, value in found.items() if isinstance(value, list) and str(key).lower() in _LIST_KEYS
            ]
            listed = lists[0] if lists else [{"name": key, "citations": value} for key, value in found.items()]
    read = []
    for entry in listed:
        name = _named(entry)
        if name is None or isinstance(entry, list):
            return None
        one = list(_of_line(name)) if not abstains(name) else []
        if isinstance(entry, dict):
            cited = [value for key, value in entry.items() if str(key).lower() in _CITATION_KEYS]
            ids = _cited_ids(f"[{' , '.join(re.findall(r'[eE]?[0-9]+', json.dumps(cited)))}]") if cited else ()
            one = [WrittenAnswer(each.name, unique([*each.citations, *ids])) for each in one]
        read.append(one)
    return read


_LIST_KEYS = ("answers", "answer", "results", "items", "final_answers", "final answers")


def _of_line(line: str) -> Iterator[WrittenAnswer]:
    """Yield the answers of one line; one without a name where there are citations alone."""
    cites = _CITES.fullmatch(line)
    if cites:
        plain = _cited_ids(f"[{cites['rest'].strip().strip('[]().')}]")
        yield WrittenAnswer("", plain or unique(id for run in _marked(cites["rest"])[1] for id in run))
        return
    marked, groups = _marked(line)
    if not groups:
        yield from (WrittenAnswer(name) for part in _parts(marked) if (name := _name(part)))
        return
    pieces = re.split(f"{_MARK}", marked)
    said = marked.rstrip(f"{_MARK} *_\"'").endswith(".")
    ids = iter(groups)
    leading = not pieces[0].strip(" \t-*•.:") and bool(pieces[-1].strip(" \t.*"))
    if leading:  # [e3] Paris; [e4] Lyon
        for place, (piece, cited) in enumerate(zip(pieces[1:], ids, strict=True)):
            if place and _REASON.match(piece) and not piece.lstrip().startswith("("):
                continue
            yield from (WrittenAnswer(name, cited) for part in _parts(piece) if (name := _name(part, said, True)))
        return
    if said and _FROM_FACTS.match(marked):
        name = _name(marked.replace(_MARK, ""), True, True)
        yield from [WrittenAnswer(name, unique(id for each in groups for id in each))] if name else []
        return
    before: list[WrittenAnswer] = []
    for place, piece in enumerate(pieces):
        following = next(ids, None)
        if place and not _goes_on(piece, following is not None):
            if following and before:
                before[-1] = WrittenAnswer(before[-1].name, unique([*before[-1].citations, *following]))
            continue
        parts = [
            name
            for part in _parts(_JOINS.sub("", piece) if place else piece)
            if (name := _name(part, said, following is not None))
        ]
        before += [WrittenAnswer(name, following or ()) for name in parts]
        if not parts and following:
            before.append(WrittenAnswer("", following))
    yield from before


_FROM_FACTS = re.compile(rf"(?:based on|according to|from|as|per|given|looking at)\b[^,]*{_MARK}", re.IGNORECASE)
_JOINS = re.compile(r"^(?:[,;|&/\s]|and\b|or\b)+")
_ARTICLE = re.compile(r"(?:the|a|an|its|his|her|their)\b")


def _goes_on(piece: str, cited: bool) -> bool:
    """Tell whether what follows a citation is another answer, and no reason."""
    text = piece.strip()
    if not text.strip(".,;:|*_ "):
        return False
    if text.startswith((";", "|")):
        return True
    if text.startswith((",", "&", "and ", "or ")):
        name = _JOINS.sub("", text)
        return (
            bool(name)
            and not _ARTICLE.match(name)
            and not _REASON.match(name)
            and (cited or len(name.split()) <= 5)
            and (cited or not name[0].islower())
            and not _VERB.search(name)
        )
    return cited and not _REASON.match(text) and not text[0].islower()


def _parts(piece: str) -> list[str]:
    """Split what is several answers: parts between `;` or ` | `, and a list that `the answers are` announces."""
    label = _LABEL.match(piece)
    if label is not None and "are" in label["link"]:
        return re.split(r",\s+(?:and\s+)?|\s+and\s+", piece[label.end() :])
    for separator in (r"\s*;\s+(?!or\b)", r"\s+\|\s+"):
        parts = re.split(separator, piece.strip(" ;|"))
        if len(parts) > 1 and all(len(part.split()) <= 8 for part in parts):
            return parts
    return [piece]


def _name(piece: str, said: bool = False, cited: bool = False) -> str:
    """Return the name in a piece of a line: without labels, marks, arrows, reasons; empty where it abstains.

    Args:
        piece: part of a line.
        said: whether the line ends as a sentence does.
        cited: whether a citation stands beside it.
    """
    text = item(_LEADING.sub("", piece.strip()))
    label = _LABEL.match(text)
    sentence = said or text.rstrip("*_\"' ").endswith(".")
    if label is not None:
        text = text[label.end() :]
        text = text.replace("**", "", 1).strip() if text.count("**") % 2 else text
    text = _SOURCE_LABEL.sub("", text)
    if abstains(text):
        return ""
    bold = _BOLD.findall(text)
    if len(bold) == 1 and (label or sentence or text.startswith(("**", "__"))):
        text = bold[0][0] or bold[0][1]
    elif sentence and (copula := _COPULA.match(text)) is not None and len(text.split()) > 4:
        text = copula["name"]
    walked = _ARROWS.split(text)
    if len(walked) > 2:
        text = walked[-1]  # a line of the evidence was copied, which leads to the answer
    if cited:
        text = _REMARK.sub("", text)
    text = item((_TRAILING if cited else _MARKS_BEHIND).sub("", text).rstrip())
    if cited and text.count("(") < text.count(")"):
        text = text.removesuffix(")").rstrip()
    if text.endswith(".") and not _ABBREVIATED.search(text) and len(text) > 2:
        text = text[:-1]
    return item(text.strip())


def _marked(line: str) -> tuple[str, list[tuple[str, ...]]]:
    """Put a mark in the place of each run of citations; return the line and what each run cites."""
    groups: list[tuple[str, ...]] = []

    def linked(found: re.Match[str]) -> str:
        return f"{found[1]} [{found[2]}]"

    def bracket(found: re.Match[str]) -> str:
        ids = _cited_ids(found[0].lstrip("^"))
        if not ids:
            return found[0]
        groups.append(ids)
        return _MARK

    def bare(found: re.Match[str]) -> str:
        groups.append(tuple(f"e{int(number)}" for number in re.findall(r"[eE](\d+)", found[0])))
        return _MARK

    line = _BRACKETS.sub(bracket, _LINKED.sub(linked, line.replace(_MARK, "")))
    if not groups:
        line = _BARE_ID.sub(bare, line)
    runs: list[tuple[str, ...]] = []
    taken = iter(groups)

    def run(found: re.Match[str]) -> str:
        runs.append(unique(id for _ in range(found[0].count(_MARK)) for id in next(taken)))
        opened, closed = found[0].startswith("("), found[0].endswith(")")
        return f"{'(' if opened and not closed else ''}{_MARK}{')' if closed and not opened else ''}"

    return _MARKS.sub(run, line), runs


def _cited_ids(bracketed: str) -> tuple[str, ...]:
    """Return what a bracket cites; nothing where it holds anything but ids.

    Numbers without an `e` count between square brackets alone, and only up to three digits: `[1982]` is a year.
    """
    inside = _WITHIN.sub("", bracketed[1:-1])
    listed = _ID_LIST.fullmatch(inside)
    if listed is None:
        return ()
    lettered = "e" in listed["first"].lower()
    if not lettered and (bracketed[0] not in "[【" or len(re.sub(r"\D", "", listed["first"])) > 3):
        return ()
    numbers: list[int] = []
    for found in _ID.finditer(inside[listed.start("first") :]):
        number = int(found["number"])
        if found["range"] and numbers and numbers[-1] < number <= numbers[-1] + _LONGEST_RANGE:
            numbers += range(numbers[-1] + 1, number)
        numbers.append(number)
    return unique(f"e{number}" for number in numbers)
