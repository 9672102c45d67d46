"""Reads what language models write: tagged blocks, lists, relation paths, queries, JSON, scores.

Models forget closing tags, fence what should be bare, number what should be lines, escape what should be plain, and
talk around it all. The readers here take that, and give back nothing rather than raise: no text makes them fail.
`blocks` is exact: what stands between an opening tag and its closing tag comes back character by character. The other
readers clean up what `blocks` finds, as their docstrings say.
"""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from byokg.types import INVERSE, Metapath

T = TypeVar("T")

TAGS: Mapping[str, tuple[str, ...]] = {
    "entities": ("entities", "entity", "topic-entities"),
    "next-entities": ("next-entities", "next_entities", "nextentities"),
    "paths": ("paths", "path", "relation-paths", "relationship-paths"),
    "opencypher": ("opencypher", "cypher", "opencypher-query", "cypher-query"),
    "sparql": ("sparql", "sparql-query"),
    "answers": ("answers", "answer", "final-answer", "final-answers"),
    "selected": ("selected", "select", "selected-relations"),
    "bfsql": ("bfsql", "bfs-ql", "bfs-query", "bfs_query"),
    "pathql": ("pathql", "path-query", "path_query"),
    "score": ("score",),
    "reason": ("reason",),
}
"""The tags of our prompts, each with what models write in its place."""

QUERY_FENCES: Mapping[str, tuple[str, ...]] = {
    "opencypher": ("opencypher", "cypher"),
    "sparql": ("sparql", "rq"),
    "pathql": ("pathql", "sparql"),
    "bfsql": ("json", "bfsql"),
}
"""Languages named behind a code fence that mean a tag's content, where the tag is missing."""

_OWNER = {word: tag for tag, words in TAGS.items() for word in words}
_WORDS = "|".join(sorted(map(re.escape, _OWNER), key=len, reverse=True))
_ATTRIBUTE = r"""\s+[\w:-]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>=]+)"""
_TAG = re.compile(rf"<\s?(?P<end>/?)\s?(?P<word>{_WORDS})(?:{_ATTRIBUTE}){{0,4}}\s{{0,8}}(?P<empty>/?)>", re.IGNORECASE)
_THOUGHT = re.compile(r"\s*<(think|thinking|thoughts|reasoning|scratchpad)>.*?</\1>", re.IGNORECASE | re.DOTALL)

_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[ \t]*([\w+-]*)[^\n`]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_FENCE_LINE = re.compile(r"^[ \t]*(?:```+|~~~+)[ \t]*[\w+-]*[ \t]*$", re.MULTILINE)

_ESCAPED = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_BULLET = re.compile(r"^(?:[-*+–—‣▪◦][ \t]+|[•·●○][ \t]*)")
_NUMBER = re.compile(r"(?:\((\d{1,3})\)|(\d{1,3})[.)])[ \t]+(?=\S)")
_INNER_TAG = re.compile(r"</?[A-Za-z][\w-]*\s*/?>")
_QUOTES = (("**", "**"), ("__", "__"), ("`", "`"), ('"', '"'), ("'", "'"), ("“", "”"), ("«", "»"), ("‘", "’"))
_NOTHING = frozenset({"none", "n/a", "null", "[]", "{}", "-", "(none)", "(empty)", "[none]", "empty"})
_FINISH = re.compile(r"\W*FINISH(?:ED)?\W*", re.IGNORECASE)
_FINISH_SHOUTED = re.compile(r"\W*FINISH(?:ED)?\W*")

_ARROW = re.compile(r"\s*(?:-+>|=+>|→|⟶|➔|➜|⇒|⟹|↦)\s*")
_BACK_ARROW = re.compile(r"\s*(?:<-+|<=+|←|⟵|⇐)\s*")
_PATH_LABEL = re.compile(r"(?:relation(?:ship)?\s+)?path\s*\d*\s*:\s+", re.IGNORECASE)
_PATTERN_STEP = re.compile(r"(<?)-\[\s*\w*\s*:\s*(`(?:[^`]|``)*`|[^\]\s*{|]+)[^\]]*\]-(>?)")
_INVERSE_OF = re.compile(r"(?:inverse|reverse)(?:\s+of\s+|\s*\(\s*)([^()]+?)\s*\)?", re.IGNORECASE)

_CITATION = re.compile(r"(?:\s*[\[(]\s*[eE]\d+(?:\s*[,;]\s*[eE]\d+)*\s*[\])])+[.,;]?$")
_EVIDENCE = re.compile(r"[eE](\d+)")

_SCORE = re.compile(r"(?<![\w./])(?:1/2|½|\d+(?:\.\d+)?)(?![\w/]|\.\d)")

_OBJECT_STARTS_TRIED = 8
"""Braces in prose before the object, and the work that a reply of nothing but braces makes."""

_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*")|(?P<single>'(?:[^'\\]|\\.)*')|(?P<curly>“[^”]*”)"""
    r"""|(?P<comment>//[^\n]*|/\*.*?\*/|\#[^\n]*)|(?P<word>[A-Za-z_][\w.-]*)|(?P<number>[-+]?\.?\d[\w.+-]*)"""
    r"""|(?P<space>\s+)|(?P<mark>.)""",
    re.DOTALL,
)
_LITERALS = {"true": "true", "false": "false", "null": "null", "none": "null", "nan": "null", "infinity": "null"}


@dataclass(frozen=True)
class Listing:
    """A list that a model wrote."""

    items: tuple[str, ...] = ()
    finished: bool = False
    """The model said FINISH, alone or besides items."""
    found: bool = False
    """There was a block, be it an empty one; without one nothing was said."""


@dataclass(frozen=True)
class WrittenAnswer:
    """One answer as written, and the evidence it cites: `e3`, `e7`."""

    name: str
    citations: tuple[str, ...] = ()


def blocks(text: str, tag: str) -> list[str]:
    """Return what stands between the tags of one kind, for each block in the order written.

    A block that is closed comes back exactly as written. One that is not ends before the next tag of any kind, or
    with the text. Spelling, case and attributes of tags do not matter, `<answer>` is `<answers>`. Thoughts before the
    reply (`<think>…</think>`) are not part of it. A reply whose tags are all escaped (`&lt;entities&gt;`) is unescaped.

    Args:
        text: the reply.
        tag: a key of `TAGS`.
    """
    text = _without_thought(text)
    found = list(_TAG.finditer(text))
    if not found and "&" in text:
        text = _unescaped(text)
        found = list(_TAG.finditer(text))
    contents: list[str] = []
    end = 0  # of the last block
    for position, opening in enumerate(found):
        if opening.start() < end or opening["end"] or _OWNER[opening["word"].lower()] != tag:
            continue
        if opening["empty"]:
            contents.append("")
            continue
        closing = _closing(found, position + 1, tag)
        if closing is not None:
            end = closing.end()
        stop = closing or (found[position + 1] if position + 1 < len(found) else None)
        contents.append(text[opening.end() : stop.start() if stop else len(text)])
    return contents


def read_list(text: str, tag: str, bare: bool = False) -> Listing:
    """Read a list with one item a line, from all blocks of a kind; repeated items come once.

    Bullets, numbers (1., 2., … in sequence), quotes and bold marks around an item, code fences, tags inside the block
    and escapes (`&amp;`) are taken off; a JSON list of text is a list; a block that only says "none" is empty.

    Args:
        text: the reply.
        tag: a key of `TAGS`.
        bare: where no tag of any kind is in the reply, take its bulleted or numbered lines, or all lines where
            none of them is a sentence.
    """
    contents = blocks(text, tag)
    if not contents:
        plain = _without_thought(text).strip()
        if _FINISH.fullmatch(plain):
            return Listing(finished=True, found=True)
        listed = _bare_lines(plain) if bare and not _TAG.search(_unescaped(plain)) else ()
        return Listing(listed, found=bool(listed))
    items = [item for content in contents for item in _items(content)]
    shouted = any(_FINISH_SHOUTED.fullmatch(item) for item in items)
    if shouted or (items and all(map(_FINISH.fullmatch, items))):
        kept = [item for item in items if not _FINISH_SHOUTED.fullmatch(item)] if shouted else []
        return Listing(_unique(kept), finished=True, found=True)
    return Listing(_unique(items), found=True)


def read_answers(text: str, bare: bool = True) -> tuple[WrittenAnswer, ...]:
    """Read answers with the evidence they cite behind them: `Michael Mann [e3, e7]`; `bare` as for `read_list`."""
    answers: dict[str, tuple[str, ...]] = {}
    for item in read_list(text, "answers", bare).items:
        citation = _CITATION.search(item)
        name = _item(item[: citation.start()]) if citation else item
        cited = [f"e{int(number)}" for number in _EVIDENCE.findall(citation[0])] if citation else []
        if name:
            answers[name] = _unique([*answers.get(name, ()), *cited])
    return tuple(WrittenAnswer(name, citations) for name, citations in answers.items())


def read_paths(text: str) -> tuple[Metapath, ...]:
    """Read relation paths, one a line; repeated paths come once.

    Steps are separated by arrows of any kind, or by commas where a line has no arrow. `^r`, `~r`, `r^-1`, `inverse(r)`,
    `<- r` and Cypher's `<-[:r]-` walk a relation backwards. Cypher patterns are read for their relations; steps that
    are variables (`?x`) are dropped. Whether the relations exist is for the caller to find out.
    """
    paths = (_path(line) for line in read_list(text, "paths").items)
    return _unique([path for path in paths if path])


def read_query(text: str, tag: str) -> str | None:
    """Read a query; None when there is none, or an empty one. Of several the last that is not empty counts.

    A code fence inside the block, and what is said around it, is taken off; a query in a fence without tags counts
    where the fence names the language.

    Args:
        text: the reply.
        tag: `opencypher`, `sparql` or `pathql`.
    """
    contents = [_unfenced(content) for content in blocks(text, tag)]
    if not contents:
        languages = QUERY_FENCES[tag]
        fences = _FENCE.finditer(_without_thought(text))
        contents = [fence[3] for fence in fences if fence[2].lower() in languages]
    queries = [
        query for content in contents if (query := _unescaped(content).strip()) and query.lower() not in _NOTHING
    ]
    return queries[-1] if queries else None


def read_object(text: str, tag: str | None = None) -> dict[str, Any] | None:
    """Read a JSON object; None when there is none. Of several the first counts.

    Comments, trailing commas, single and curly quotes, names without quotes, Python's True and None, NaN (which becomes
    None), and closing brackets that are missing at the end do no harm.

    Args:
        text: the reply.
        tag: a key of `TAGS` whose blocks are read; where there is none, or no tag is given, the whole reply is.
    """
    contents = blocks(text, tag) if tag is not None else []
    for content in contents or [_without_thought(text)]:
        for candidate in dict.fromkeys((content, _unfenced(content), _unescaped(content))):
            found = _object(candidate)
            if found is not None:
                return found
    return None


def read_score(text: str, allowed: Sequence[float] = (0.0, 0.5, 1.0)) -> float | None:
    """Read a judge's score: the number between its tags, else the last one after the word "score"; None when there is
    none, or one that is not allowed.
    """
    contents = [content for content in blocks(text, "score") if content.strip()]
    if not contents:
        named = re.split(r"\bscore\b", _without_thought(text), flags=re.IGNORECASE)
        contents = named[-1:] if len(named) > 1 or len(text.split()) == 1 else []
    for content in reversed(contents):
        number = _SCORE.search(content)
        if number is not None:
            score = 0.5 if number[0] in ("1/2", "½") else float(number[0])
            return score if score in allowed else None
    return None


# Blocks


def _closing(found: Sequence[re.Match[str]], start: int, tag: str) -> re.Match[str] | None:
    """Find the tag that closes a block: its own closing tag, before its own kind opens again."""
    for position in range(start, len(found)):
        if _OWNER[found[position]["word"].lower()] == tag and not found[position]["empty"]:
            return found[position] if found[position]["end"] else None
    return None


def _without_thought(text: str) -> str:
    thought = _THOUGHT.match(text)
    return text[thought.end() :] if thought else text


def _unescaped(text: str) -> str:
    """Resolve entities that end in a semicolon; `AT&T` and `R&copy` are left alone."""
    return _ESCAPED.sub(lambda escape: html.unescape(escape[0]), text)


def _unfenced(content: str) -> str:
    """Return the inside of the last code fence, or everything where there is none."""
    fences = [fence[3] for fence in _FENCE.finditer(content) if fence[3].strip()]
    return fences[-1] if fences else _FENCE_LINE.sub("", content)


# Lists


def _items(content: str) -> list[str]:
    """Return the items of one block."""
    nested = _TAG.search(content)
    if nested is not None and not nested["end"] and content[: nested.start()].strip():
        content = content[: nested.start()]  # the block was not closed, and another one begins
    content = _FENCE_LINE.sub("", content.replace("\r\n", "\n"))
    listed = _json_list(content)
    if listed is not None:
        return [item for entry in listed if (item := " ".join(entry.split()))]
    lines = [line.strip() for line in _INNER_TAG.sub("\n", content).split("\n")]
    lines = _without_numbers([line for line in lines if line])
    if len(lines) > 1 and all(line.endswith(",") for line in lines[:-1]):
        lines = [line.removesuffix(",") for line in lines]
    items = [item for line in lines if (item := _item(line))]
    return [] if len(items) == 1 and items[0].lower() in _NOTHING else items


def _item(line: str) -> str:
    """Take off a bullet, escapes, and quotes or marks that enclose the whole."""
    line = line.strip()
    if set(line) <= set("-*_=#`~ "):
        return ""  # a rule, or what is left of marks around a tag
    item = _unescaped(_BULLET.sub("", line)).strip()
    for opening, closing in _QUOTES:
        inner = item[len(opening) : -len(closing)]
        enclosed = item.startswith(opening) and item.endswith(closing) and inner.strip()
        if enclosed and opening not in inner and closing not in inner:
            item = inner.strip()
    return item


def _without_numbers(lines: Sequence[str]) -> list[str]:
    """Take off numbers that count the lines from 1; any others, as in `2. Bundesliga`, are part of a name."""
    bare = [_BULLET.sub("", line) for line in lines]
    numbers = [_NUMBER.match(line) for line in bare]
    if [int(each[1] or each[2]) for each in numbers if each] != list(range(1, len(lines) + 1)):
        return list(lines)
    return [line[each.end() :] for line, each in zip(bare, numbers, strict=True) if each]


def _json_list(content: str) -> list[str] | None:
    """Return a block that is one JSON list of text."""
    content = content.strip()
    if not (content.startswith("[") and content.endswith("]")):
        return None
    try:
        listed = json.loads(_repaired(content))
    except (ValueError, RecursionError):
        return None
    quoted = content.count('"') + content.count("'") + content.count("“")
    if quoted and isinstance(listed, list) and all(isinstance(entry, str) for entry in listed):
        return listed
    return None


def _bare_lines(text: str) -> tuple[str, ...]:
    """Return what is listed in a reply without tags."""
    lines = [line.strip() for line in _FENCE_LINE.sub("", text).split("\n") if line.strip()]
    marked = [line for line in lines if _BULLET.match(line) or _NUMBER.match(line)]
    if not marked and any(line.endswith((".", ":", "?", "!")) or len(line.split()) > 12 for line in lines):
        return ()
    return _unique(_items("\n".join(marked or lines)))


def _unique(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))


# Paths


def _path(line: str) -> Metapath:
    """Read one path; empty when the line is none."""
    line = _PATH_LABEL.sub("", line, count=1)
    pattern = list(_PATTERN_STEP.finditer(line))
    if pattern:
        steps = (
            (INVERSE if step[1] and not step[3] else "") + step[2].strip("`").replace("``", "`") for step in pattern
        )
        return tuple(steps)
    backwards = _BACK_ARROW.search(line) is not None
    if not backwards and _ARROW.search(line) is None:
        if line.endswith(":"):
            return ()  # it introduces what follows
        parts = [("", part) for part in line.split(",")]
    else:
        parts = []
        for stretch in _ARROW.split(line):
            first, *rest = _BACK_ARROW.split(stretch)
            parts += [("", first), *((INVERSE, part) for part in rest)]
    return tuple(relation for mark, part in parts if (relation := _relation(mark, part)))


def _relation(mark: str, part: str) -> str:
    """Read one step of a path; empty when it is a variable or nothing."""
    name = part.strip().strip("[]").strip()
    inverse = bool(mark)
    if name.startswith(("^", "~")):
        inverse, name = not inverse, name[1:]
    if name.endswith("^-1"):
        inverse, name = not inverse, name.removesuffix("^-1")
    said = _INVERSE_OF.fullmatch(name.strip())
    if said is not None:
        inverse, name = not inverse, said[1]
    name = _item(name).removeprefix(":").strip()
    if not name or name.startswith("?") or (name.startswith("(") and name.endswith(")")):
        return ""
    return f"{INVERSE}{name}" if inverse else name


# JSON


def _object(text: str) -> dict[str, Any] | None:
    """Find the first place where an object can be read."""
    for start in itertools.islice(re.finditer(r"\{", text), _OBJECT_STARTS_TRIED):
        rest = text[start.start() :]
        for candidate in (rest, _repaired(rest)):
            try:
                value, _ = json.JSONDecoder(strict=False, parse_constant=_refuse).raw_decode(candidate)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                return value
    return None


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _repaired(text: str) -> str:
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
