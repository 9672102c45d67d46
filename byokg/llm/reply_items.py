"""Lines of a result: items of a list, and answers with their citations.

Models number and quote items, add reasons, notes and introductions, write "none" in many ways, and cite anywhere:
before an answer, behind it, in the middle of a line, several answers in one line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from byokg.llm.abstentions import abstains, is_nothing
from byokg.llm.citations import MARK, cited_ids, mark, unique, untypeset, with_brackets
from byokg.llm.reply_blocks import FENCE_LINE, cut_at_next, entries, first_object, unescape_text, without_tags
from byokg.llm.shown_names import HIDDEN, Hiding, ShownNames


@dataclass(frozen=True)
class WrittenAnswer:
    """One answer as written, and the evidence it cites: `e3`, `e7`."""

    name: str
    citations: tuple[str, ...] = ()


# Items

_BULLET = re.compile(
    r"^(?:[-*+–—‣▪◦>][ \t]+|[•·●○✓✔✅☑⭐👉➤►▶・]\ufe0f?[ \t]*|(?:\d\ufe0f?\u20e3|🔟)+[ \t]*(?=\S)|"
    r"[\u2600-\u27bf\u2b00-\u2bff\U0001f300-\U0001faff][\ufe0f\u200d]*[ \t]+(?=\S))"
)
_CHECKBOX = re.compile(r"^[ \t]*(?:[-*+•][ \t]+)?(?:\[([ xX✓✔])\]|([☐☑]))[ \t]+(?=\S)")
_NUMBER = re.compile(r"(?:\((\d{1,3})\)|(\d{1,3})[.):、．]|#(\d{1,3})[.):])(?:[ \t]+|(?<=[、．]))(?=\S)")
_LETTER = re.compile(r"^\(?([a-zA-Z])\)[ \t]+(?=\S)")
_LETTER_OR_ROMAN = re.compile(r"^\(?(?:(?P<roman>[ivx]{1,5})[.)]|(?P<letter>[a-z])\.)[ \t]+(?=\S)")
_ROMANS = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")
_HAN = re.compile(r"^([一二三四五六七八九十])[、．.)）][ \t]*(?=\S)")
_CIRCLED = re.compile(r"^([①-⑳])[ \t]*(?=\S)")
_NUMBER_IN_BOLD = re.compile(r"^(\*\*|__)(\d{1,3}[.):])[ \t]+(?=.*\S\1)")
_BOLD_NUMBER = re.compile(r"^(?:\*\*|__)(\d{1,3}[.):])(?:\*\*|__)")
_INNER_TAG = re.compile(r"</?[A-Za-z][\w-]*\s*/?>")
_QUOTES = tuple(
    tuple(pair.split("…"))
    for pair in "**…** *…* __…__ `…` \"…\" '…' “…” «…» ‘…’ 「…」 『…』 《…》 „…“ „…” »…« ›…‹ ‹…› ‚…‘".split()
)
_OPENINGS = frozenset(opening[0] for opening, _ in _QUOTES)
_NAME_KEYS = ("name", "answer", "entity", "text", "value", "mention", "label", "title")
_CITATION_KEYS = ("citations", "citation", "evidence", "cites", "cited", "sources", "source", "facts", "ids", "support")

_FINISH = re.compile(r"\W*FINISH(?:ED)?\W*", re.IGNORECASE)
_FINISH_SHOUTED = re.compile(
    r"(?:\W*|.*(?:[-–—:.;,]\s+|→\s*)\W*)FINISH(?:ED)?(?:\W*|\W*[-–—:;,.(>].*|\s+(?:as|since|because)\b.*)"
)
_FINISH_SAID = re.compile(r"\W*FINISH(?:ED)?\W*[-–—:;,.(]\W*\s.*", re.IGNORECASE)


def finishes(items: Sequence[str], shown: str = "") -> tuple[bool, list[str]]:
    """Return whether a list has the word FINISH, and its other items without the reasons that follow.

    Args:
        items: of the list.
        shown: names that the model could choose from, as it saw them: an item that is one of them is no FINISH.
    """
    named = [_FINISH.fullmatch(item) is not None and _is_shown(item, shown) for item in items]
    at = next((at for at, item in enumerate(items) if _FINISH_SHOUTED.fullmatch(item) and not named[at]), None)
    if at is not None:
        others = [item for item in items[at + 1 :] if not _FINISH_SHOUTED.fullmatch(item) and not is_sentence(item)]
        return True, [*(item for item in items[:at] if not is_sentence(item)), *others]
    only = (
        len(items) > 0
        and not any(named)
        and (all(map(_FINISH.fullmatch, items)) or (len(items) == 1 and _FINISH_SAID.fullmatch(items[0]) is not None))
    )
    return only, [] if only else list(items)


def _is_shown(item: str, shown: str) -> bool:
    """Return whether a text has the word of an item, in the same case."""
    word = re.escape(re.sub(r"\W", "", item))
    return bool(shown) and re.search(rf"\b{word}\b", shown) is not None


_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|do|did|can|could|will|would|should|must|may|holds?|shows?|states?|says?|"
    r"contains?|needs?|names?|means?|asks?|gives?|lists?|leads?|exists?|appears?|it's|don't|doesn't|there's)\b"
)


_TALK = re.compile(
    r"\b(?:these|this|following|question|graph|schema|entit(?:y|ies)|relations?|paths?|answers?|context|facts?|below|above|"
    r"note|hope|tasks?)\b",
    re.IGNORECASE,
)
"""Subjects of a sentence beside items; a sentence may be an item itself, as a quotation."""


def is_sentence(line: str) -> bool:
    """True if a line is prose: an introduction that ends with a colon, or a sentence with a verb."""
    if re.search(r"[A-Za-z)*]\W{0,3}:\**$", line):
        return True
    return len(line.split()) >= 4 and line.rstrip("*_)\"'")[-1:] in (".", "!", "?") and bool(_VERB.search(line))


def items(content: str, hiding: Hiding | None = None) -> list[str]:
    """Return the items of one block, as `parsing.read_list` describes; sentences beside items are none.

    Names that `hiding` knows stay hidden in them.
    """
    hiding = hiding or Hiding(None)
    content = content.replace("\r\n", "\n")
    listed = _json_items(FENCE_LINE.sub("", cut_at_next(content)))
    if listed is not None:
        return [text for name in listed if (text := hiding.hide(" ".join(name.split()))) and not is_nothing(text)]
    content = _chosen(untypeset(FENCE_LINE.sub("", cut_at_next(hiding.hide(content)))))
    found = [text for line in _lines(content) if (text := item(_first_cell(line)))]
    found = [_REMARKED.sub(r"\1", text) for text in found]
    if all(map(_ITEM_LABEL.match, found)):
        found = [_ITEM_LABEL.sub("", text) for text in found]
    if len(found) == 1 and not is_sentence(found[0]) and not _FINISHES.search(found[0]):
        found = [part for each in _several(found[0]) if (part := item(each))]
    if len(found) == 1:
        return [] if is_nothing(found[0]) and not _FINISH_SHOUTED.fullmatch(found[0]) else found
    kept = [text for text in found if not (is_sentence(text) and (text.rstrip("*")[-1:] == ":" or _TALK.search(text)))]
    return kept or found[:1]


_REMARKED = re.compile(r"^(?:\*\*|__)([^*_]+)(?:\*\*|__)\s*(?:[–—:-]\s|\().*$")
_ITEM_LABEL = re.compile(r"^(?:entity|name|mention)\s*#?\d*\s*:\s+(?=\S)", re.IGNORECASE)
_FINISHES = re.compile(r"\bFINISH")


def _chosen(content: str) -> str:
    """Return a list of boxes without unticked ones, if one is ticked; other lines stay."""
    lines = content.split("\n")
    boxes = [_CHECKBOX.match(line) for line in lines]
    ticked = [box is not None and (box[1] or box[2]) not in (" ", "☐") for box in boxes]
    if not any(ticked):
        return content
    kept = zip(lines, boxes, ticked, strict=True)
    return "\n".join(line if box is None else line[box.end() :] for line, box, tick in kept if box is None or tick)


def _first_cell(line: str) -> str:
    """Return the first cell of a table's row; nothing of its head, and other lines as they are."""
    row = _ROW.match(line)
    if row is None:
        return line
    cells = [cell.strip() for cell in row[1].split("|")]
    if all(map(_TABLE_HEAD.fullmatch, cells)):
        return ""
    return cells[1] if len(cells) > 1 and cells[0].rstrip(".").isdigit() else cells[0]


def item(line: str) -> str:
    """Take off a bullet, escapes, and quotes or marks that enclose the whole."""
    line = line.strip()
    if not line.strip("-*_=#`~| "):
        return ""  # a rule, or the rest of marks around a tag
    text = unescape_text(_BULLET.sub("", line)).strip()
    if text[:1] not in _OPENINGS:
        return text
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
    bare = [_counted(_BULLET.sub("", line), len(lines) > 1) for line in lines]
    found = [_NUMBER.match(line) for line in bare]
    numbers = [int(each[1] or each[2] or each[3]) for each in found if each]
    said = [
        bool(each)
        or is_sentence(line)
        or line.startswith(("[", "("))
        or _CITES.fullmatch(line)
        or _NOTE.fullmatch(line)
        for each, line in zip(found, bare, strict=True)
    ]
    if numbers != list(range(1, len(numbers) + 1)) or not all(said):
        return list(lines)
    return [line if each is None else line.replace(each[0], "", 1) for line, each in zip(bare, found, strict=True)]


def _counted(line: str, several: bool) -> str:
    """Rewrite the number of a line (`**1. Paris**`, `a) Paris`, `① Paris`, of several `ii. Paris`) as `1. `."""
    found = _LETTER_OR_ROMAN.match(line) if several else None
    if found is not None and (found["letter"] or found["roman"] in _ROMANS):
        place = ord(found["letter"]) - ord("a") if found["letter"] else _ROMANS.index(found["roman"])
        return f"{place + 1}. {line[found.end() :]}"
    line = _HAN.sub(lambda found: f"{'一二三四五六七八九十'.index(found[1]) + 1}. ", line)
    line = _NUMBER_IN_BOLD.sub(r"\2 \1", _BOLD_NUMBER.sub(r"\1", line))
    line = _LETTER.sub(lambda found: f"{ord(found[1].lower()) - ord('a') + 1}. ", line)
    return _CIRCLED.sub(lambda found: f"{ord(found[1]) - ord('①') + 1}. ", line)


def _json_entries(content: str, answered: bool) -> list[Any] | None:
    """Return the entries of a block in JSON: a list, objects line by line, or an object with a list; None for others.

    Args:
        content: the block.
        answered: True if an object may also hold answers by number, or citations by answer.
    """
    listed = entries(content)
    if listed is not None or not content.lstrip().startswith("{"):
        return listed
    objects = [first_object(line) for line in content.splitlines() if line.strip()] if answered else []
    if len(objects) > 1 and all(objects):
        return objects
    found = first_object(content)
    if found is None or _find_name(found):
        return None if found is None else [found]
    lists = [value for key, value in found.items() if isinstance(value, list)]
    if answered:
        lists = [value for key, value in found.items() if isinstance(value, list) and str(key).lower() in _LIST_KEYS]
        if not lists and all(str(key).isdigit() for key in found):
            return list(found.values())
        if not lists:
            return [{"name": key, "citations": value} for key, value in found.items()]
    return lists[0] if lists else [found]


def _json_items(content: str) -> list[str] | None:
    """Return the names in a block that is a JSON list, of texts or of objects, or an object with such a list."""
    names = None if (listed := _json_entries(content, False)) is None else [_find_name(entry) for entry in listed]
    return None if names is None or None in names else [name for name in names if name]


def _find_name(entry: Any) -> str | None:
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

_NOTE = re.compile(
    r"\W*(?:reason(?:ing)?s?|explanation|justification|rationale|note|because|confidence|remark|comment|analysis)\b\W*:.*",
    re.IGNORECASE | re.DOTALL,
)
_CITES = re.compile(
    r"[^\w$€£¥%+]*(?:evidence|citations?|cites?|cited|sources?|supported by|"
    r"supporting (?:facts?|evidence)|facts?|support|refs?|"
    r"references?)\W*:(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_LABEL = re.compile(
    r"^\W{0,3}(?:réponse|antwort|respuesta|risposta|resposta|ответ|答案|回答|答え)\s*[:：]\s*(?=\S)|"
    r"^\W{0,3}(?:(?:so|thus|therefore|hence)\W+)?(?:the\s+)?(?:(?:final|correct|most likely|likely|best|only|draft|"
    r"first|second|third|other|possible)\s+)*(?:answers?|name|result|entity)\s*(?:#?\d{1,2})?\s*(?:\([^()]*\)\s*)?"
    r"(?P<link>[:：]|=|\s(?:is|are|was|were|would be|must be)\b:?)\s*(?=\S)",
    re.IGNORECASE,
)
_SOURCE_LABEL = re.compile(
    r"^(?:based on|according to|from|as per|using|given)\b[^:]{0,50}\b"
    r"(?:facts?|evidence|graph|context|data|sources?|lines?|results?|rows?|information|knowledge|memory|know|above)\b[^:]{0,20}:\s+",
    re.IGNORECASE,
)
_COPULA = re.compile(
    r"^(?:(?i:so|thus|therefore|hence|based on|according to|from|given)\b.*?,\s+)?(?:The|It|He|She|They|This|That|"
    r"These|Those|His|Her|Their|Its|In|At|So|the|it)\b.*?\b(?:is|are|was|were|named|called)\s+(?:indeed\s+|therefore\s+)?(?P<name>.+)$"
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
    rf"(?:[(\[]\s?(?i:{_PHRASE})?|(?:[,;:|]|\s[–—-])\s?{_PHRASE}|[,;:|^→←⟵⟶⇐⇒]|(?<=\s)[–—>/]+|<-)$"
)
"""Stands between an answer and its citation: a mark, or words behind a mark. Words alone belong to the name."""
_LONGEST_INTRODUCTION = 24


def _without_introduction(text: str) -> str:
    """Remove the introduction of a citation behind an answer."""
    text = text.rstrip()
    while (found := _INTRODUCES.search(text, max(0, len(text) - _LONGEST_INTRODUCTION))) is not None:
        text = text[: found.start()].rstrip()
    return text


_MARKS_BEHIND = re.compile(r"[\s,|→]+$")
_ABBREVIATED = re.compile(
    r"(?:\b(?:jr|sr|inc|co|ltd|corp|st|mr|mrs|ms|dr|no|vs|etc|bros|plc|llc|esq|vol|op|dept|univ|ave|blvd|mt|ft|gen|sen|"
    r"rep|gov|lt|col|capt|prof|s\.p\.a|s\.r\.l|s\.a)|\b\w|\.\w+)\.$",
    re.IGNORECASE,
)
_ROW = re.compile(r"^\|(.*)\|$")
_TABLE_HEAD = re.compile(
    r"\W*(?:#|no\.?|rank|answers?|names?|entit(?:y|ies)|(?:relation )?paths?|relations?|"
    r"citations?|evidence|facts?|sources?|reasons?|support|notes?)\W*",
    re.IGNORECASE,
)
_BOLD = re.compile(r"\*\*([^*\n]+)\*\*|__([^_\n]+)__")
_BOXED = re.compile(r"\$?\\boxed\{(?:\\text\{)?([^{}]*)\}\}?\$?")
_ARROWS = re.compile(r"\s+(?:-+>|→|=>)\s+")


_TAKEN_BACK = re.compile(r"~~[^~\n]+~~")
_UNCITED = re.compile(
    r"[ \t]*[\[(]\s*(?:(?:no|without|not) (?:a )?(?:citations?|cited|evidence)|none|n/a|uncited|-|e?\?|"
    r"(?:from |based on )?(?:my )?(?:own |general |prior |background |world )*knowledge|"
    r"(?:not (?:in|from|held by)|outside(?: of)?) (?:the )?(?:facts?|graph|evidence|context)[^\])\n]*)?\s*[\])]",
    re.IGNORECASE,
)
"""Texts behind an answer in the place of a citation."""
_SURE = re.compile(
    r"[ \t]*[(\[](?:(?:very\s+)?(?:high|medium|low)\s+)?confiden(?:ce|t)\b[^()\[\]]*[)\]]", re.IGNORECASE
)
"""How sure the model is of an answer."""
_KEYED = re.compile(r"^[ \t]*[\"']([^\"'\n]+)[\"'][ \t]*:[ \t]*\[([^\[\]\n]*)\][ \t]*,?[ \t]*$", re.MULTILINE)
"""A line of a JSON object without its braces."""
_REVISED = re.compile(
    r"^\W{0,3}(?:(?:wait|no|sorry|rather|hmm)\s*[,:;—–-]+\s*(?=(?:no|wait|actually|correction)\s*[,:;—–-]))?"
    r"(?:actually|wait(?=\W+no\b)|no(?=\W+wait\b)|correction|on second thoughts?|scratch that|oops)\s*[,:;—–-]+\s*"
    r"(?:(?:no|wait|actually|correction)\s*[,:;—–-]+\s*)*(?:(?:it|that)(?: is|[’']s| should be)\s+)?(?=\S)",
    re.IGNORECASE,
)
"""How a line begins that takes back those above it."""
_REVISED_WITHIN = re.compile(
    r"\s*(?:[—–;.]|\s-)\s*(?:actually|correction|(?:no,? )?wait|rather)\s*[,:]\s*(?:no\s*[,:]\s*)?", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"(?<=[.!;])\s+(?=[A-Z\"“*])")


def answers(content: str, known: ShownNames | None = None) -> tuple[WrittenAnswer, ...]:
    """Return the answers in a block, each once, with all of its citations.

    A line without an answer that gives the source of the answers above adds to their citations. Reasons, notes and
    abstentions are no answers. Words before a citation are removed behind a mark alone: `Paris
    (source: e3)`, `Paris, per e3`; words without one belong to the name.

    Args:
        content: the block.
        known: names in the prompt, which are never taken apart.
    """
    hiding = Hiding(known)
    cited: dict[str, tuple[str, ...]] = {}
    for one in _answers(content.replace("\r\n", "\n"), hiding):
        if one.name and not is_nothing(one.name):
            name = hiding.restore(one.name)
            cited[name] = unique([*cited.get(name, ()), *one.citations])
    return tuple(WrittenAnswer(name, ids) for name, ids in cited.items())


def _answers(content: str, hiding: Hiding) -> list[WrittenAnswer]:
    listed = _json_answers(FENCE_LINE.sub("", cut_at_next(content)), hiding)
    if listed is not None:
        return listed
    found: list[WrittenAnswer] = []
    told = 0  # answers whose citations followed them
    content = FENCE_LINE.sub("", cut_at_next(hiding.hide(content)))
    content = _TAKEN_BACK.sub("", _SURE.sub("", _UNCITED.sub("", with_brackets(_chosen(content)))))
    content = _KEYED.sub(lambda pair: f"{pair[1]} [{re.sub(_QUOTE, '', pair[2])}]", content)
    lines = list(_answer_lines("\n".join(_without_remarks(content.split("\n")))))
    prose = [is_sentence(line) and MARK not in mark(line)[0] for line in lines]
    for line, idle in zip(lines, prose, strict=True):
        first, *rest = _SENTENCE_END.split(line, maxsplit=1)
        if rest and abstains(first) and _SOURCE_LABEL.match(rest[0]):
            line = rest[0]  # the facts do not say. From what I know: Paris
        line = _REVISED_WITHIN.split(line)[-1]
        if found and (revised := _REVISED.match(line)) and len(line) - revised.end() > 1:
            line, found, told = line[revised.end() :], [], 0
        if abstains(line) or _NOTE.fullmatch(line) or (idle and not all(prose)):
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


_QUOTE = r"[\"']"
_REMARK = re.compile(rf"^({HIDDEN})(?:\s+[—–-]|:)\s+[a-z].*$")
"""Description of a shown name, behind it: `Heat — a film by Michael Mann`."""
_IS = (" is", " was", " would be", " must be")


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
        if len(cells) > 1 and cells[0].rstrip(".").isdigit() and not cited_ids(cells[1]):
            cells = cells[1:]
        ids = [f"[{cell}]" for cell in cells[1:] if cited_ids(f"[{cell.strip('[]()')}]")]
        yield " ".join([cells[0], *(each.replace("[[", "[").replace("]]", "]") for each in ids)])


def _json_answers(content: str, hiding: Hiding) -> list[WrittenAnswer] | None:
    """Return the answers of a block in JSON: a list of texts or objects, one object, or names with their citations."""
    if (listed := _json_entries(content, True)) is None:
        return None
    read: list[WrittenAnswer] = []
    for entry in listed:
        if (name := _find_name(entry)) is None:
            return None
        name = hiding.hide(name)
        ids: tuple[str, ...] = ()
        if isinstance(entry, dict):
            cited = [value for key, value in entry.items() if str(key).lower() in _CITATION_KEYS]
            numbers = re.findall(r"[eE]?[0-9]+", json.dumps(cited, ensure_ascii=False))
            ids = cited_ids(f"[{' , '.join(numbers)}]") if cited else ()
        for one in () if abstains(name) else _of_line(name):
            read.append(WrittenAnswer(one.name, unique([*one.citations, *ids])))
    return read


_LIST_KEYS = ("answers", "answer", "results", "items", "final_answers", "final answers")


def _of_line(line: str) -> Iterator[WrittenAnswer]:
    """Yield the answers of one line; one without a name for citations alone."""
    cites = _CITES.fullmatch(line)
    if cites:
        plain = cited_ids(f"[{cites['rest'].strip().strip('[]().')}]")
        yield WrittenAnswer("", plain or unique(id for run in mark(cites["rest"])[1] for id in run))
        return
    bare, groups = mark(line)
    if not groups:
        yield from (WrittenAnswer(name) for part in _parts(bare) if (name := _name(part)))
        return
    pieces = re.split(f"{MARK}", bare)
    said = re.search(rf"{MARK}[ *_\"')]*\.[ *_\"')]*$", bare) is not None
    ids = iter(groups)
    leading = not pieces[0].strip(" \t-*•.:") and bool(pieces[-1].strip(" \t.*"))
    if leading:  # [e3] Paris; [e4] Lyon
        for place, (piece, cited) in enumerate(zip(pieces[1:], ids, strict=True)):
            if place and _REASON.match(piece) and not piece.lstrip().startswith("("):
                continue
            yield from (WrittenAnswer(name, cited) for part in _parts(piece) if (name := _name(part, said, True)))
        return
    if said and _FROM_FACTS.match(bare):
        name = _name(bare.replace(MARK, ""), True, True)
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


_FROM_FACTS = re.compile(rf"(?:based on|according to|from|as|per|given|looking at)\b[^,]*{MARK}\s*,", re.IGNORECASE)
_JOINS = re.compile(r"^(?:[,;|&/\s]|and\b|or\b)+")
_ARTICLE = re.compile(r"(?:the|a|an|its|his|her|their)\b")


def _goes_on(piece: str, cited: bool) -> bool:
    """True if the text after a citation is another answer, and no reason."""
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
    """Split several answers: parts between `;` or ` | `, and a list announced by `the answers are`."""
    label = _LABEL.match(piece)
    if label is not None and "are" in (label["link"] or ""):
        return re.split(r",\s+(?:and\s+)?|\s+and\s+", piece[label.end() :])
    return _several(piece)


def _several(piece: str) -> list[str]:
    """Split at `;` or ` | ` if every part is as short as a name; at commas and `and`, too, if all were shown."""
    for separator in (r"\s*;\s+(?!or\b)", r"\s+\|\s+"):
        parts = re.split(separator, piece.strip(" ;|"))
        if len(parts) > 1 and all(len(part.split()) <= 4 and not part[:1].islower() for part in parts):
            return parts
    return re.findall(HIDDEN, piece) if _ALL_SHOWN.fullmatch(piece.strip(" .,")) else [piece]


_ALL_SHOWN = re.compile(rf"{HIDDEN}(?:(?:\s*[,;/&|+]\s*(?:(?:and|or)\s+)?|\s+(?:and|or)\s+){HIDDEN})+")


def _name(piece: str, said: bool = False, cited: bool = False) -> str:
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
    if abstains(text):
        return ""
    bold = _BOLD.findall(text)
    if len(bold) == 1 and (label or said or text.startswith(("**", "__"))):
        text = bold[0][0] or bold[0][1]
    elif said and text[-1:] != "." and (copula := _COPULA.match(text)) is not None and len(text.split()) > 4:
        text = copula["name"]
    walked = _ARROWS.split(text)
    if len(walked) > 2:
        text = walked[-1]  # a line of the evidence was copied, which leads to the answer
    text = _REMARK.sub(r"\1", text)
    text = item(_without_introduction(text) if cited else _MARKS_BEHIND.sub("", text).rstrip())
    stopped = text.endswith(".") and not text.endswith("..") and len(text) > 2
    if stopped and (" " not in text or (label and not said and label["link"] in _IS)) and not _ABBREVIATED.search(text):
        text = text[:-1]
    return item(text.strip())
