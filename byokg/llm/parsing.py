"""Parsing of language models' replies: lists, answers, relation paths, queries, JSON, scores.

Models forget closing tags, fence bare text, number lines, escape plain characters, write JSON or headings in place of
tags, and add comments to it all. The readers here accept that, and return nothing rather than raise: no text makes them
fail. `reply_blocks` finds the places of results, `reply_lines` reads what stands there: JSON, or else lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from byokg.llm.reply_blocks import (
    FENCE,
    FENCE_LINE,
    LISTED,
    blocks,
    entries,
    first_object,
    found_blocks,
    has_tags,
    unescape_text,
    without_thought,
)
from byokg.llm.reply_lines import (
    WrittenAnswer,
    is_nothing,
    is_sentence,
    item,
    json_entries,
    lines,
    merged,
    read_block,
    read_name,
    read_names,
    unique,
    untypeset,
)
from byokg.llm.shown_names import Hiding, ShownNames
from byokg.text.names import normalize_label, normalize_name
from byokg.types import INVERSE, Metapath

QUERY_FENCES: Mapping[str, tuple[str, ...]] = {
    "opencypher": ("opencypher", "cypher"),
    "sparql": ("sparql", "rq"),
    "pathql": ("pathql", "sparql"),
    "bfsql": ("json", "bfsql"),
}
"""Languages of code fences that mean a tag's content, if the tag is missing."""

_SCORE = re.compile(r"(?<![\w./])(?:1/2|½|\d+(?:\.\d+)?)(?![\w/]|\.\d)")


@dataclass(frozen=True)
class Listing:
    """A list that a model wrote."""

    items: tuple[str, ...] = ()
    finished: bool = False
    """True if the model wrote FINISH, alone or besides items."""
    found: bool = False
    """True if there was a block, possibly an empty one."""


def read_list(
    text: str, tag: str, bare: bool = False, shown: str = "", known: ShownNames | None = None, aliases: bool = False
) -> Listing:
    """Read a list with one item a line, from all blocks of a kind; repeated items come once.

    Items are read as answers are, without their citations: bullets, numbers (1., 2., … in sequence), quotes and bold
    marks around an item, code fences, tags inside the block and escapes (`&amp;`) are removed; a block with only
    "none", with or without a reason, is empty, and sentences around the items are none of them. A JSON list is a list
    of exactly its texts.

    Args:
        text: the reply.
        tag: a key of `TAGS`.
        bare: without a tag of any kind, take the reply's bulleted or numbered lines, or all lines if
            none of them is a sentence.
        shown: names to choose from: a node called Finish is an item if it was shown.
        known: names in the prompt, which are never taken apart.
        aliases: ` | ` stands between names of one item, so that no item is split there.
    """
    hiding = Hiding(known, ("FINISH",))
    contents = blocks(text, tag)
    blocks_found = bool(contents)
    if not contents:
        plain = without_thought(text).strip()
        if _finish([plain.partition("\n")[0]], shown) is not None:
            return Listing(finished=True, found=True)
        contents = list(filter(None, [_listed(plain, hiding)])) if bare and not has_tags(text) else []
    items: list[str] = []
    finished = False
    for content in contents:
        hidden = hiding.hide(content)
        entries = json_entries(content, hidden)
        if entries is None:
            written = list(filter(None, map(item, lines(untypeset(hidden)))))
        else:
            written = [hiding.hide(" ".join(name.split())) for name, _ in entries]
        rest = _finish(written, shown)
        finished = finished or rest is not None
        if rest is None:
            rest = [each for each in written if not is_sentence(each)] or written[:1]
        if entries is None:
            whole = len(rest) != 1 or (aliases and " | " in rest[0])
            rest = list(map(read_name, rest)) if whole else read_names(rest[0])
        items += rest
    found = unique(name for each in items if (name := hiding.restore(each)) and not is_nothing(each))
    return Listing(found, finished, bool(found or blocks_found))


_FINISH = re.compile(r"\bFINISH(?:ED)?\b(?!\s+(?!as\b|since\b|because\b)\w)")
_FINISH_ALONE = re.compile(r"\W*FINISH(?:ED)?(?:\W*|\W*[-–—:;,.(]\W*\s.*)", re.IGNORECASE)


def _is_finish(item: str) -> bool:
    """True if FINISH stands in capitals, alone or behind a mark, and with a reason at most."""
    found = _FINISH.search(item)
    before = "" if found is None else item[: found.start()].rstrip(" *_`\"'(<[")
    return found is not None and (before[-1:] in "-–—:.;,→" or not any(map(str.isalnum, before)))


def _finish(items: Sequence[str], shown: str) -> list[str] | None:
    """Return the items besides the word FINISH, without sentences; None if a list does not have it.

    In small letters it must stand alone, and an item that was `shown` is none.
    """
    words = [re.sub(r"\W", "", item) for item in items]
    named = [bool(shown) and re.search(rf"\b{word}\b", shown) is not None for word in words]
    ends = [_is_finish(item) and not name for item, name in zip(items, named, strict=True)]
    if any(ends):
        return [item for item, end in zip(items, ends, strict=True) if not end and not is_sentence(item)]
    return [] if items and not any(named) and all(map(_FINISH_ALONE.fullmatch, items)) else None


def read_answers(text: str, bare: bool = True, known: ShownNames | None = None) -> tuple[WrittenAnswer, ...]:
    """Read answers with their citations, anywhere in a line: `Michael Mann [e3, e7]`, `[e3-e5] Heat`.

    Of blocks with text between them the last counts, since it revises those before; adjacent blocks, or those joined by
    `also`, are one list. `bare` as for `read_list`, and for sentences such as
    `The answer is Paris [e3].` as well; `known` are names in the prompt, which are never taken apart.
    """
    text = _CITED_TAG.sub(r"<\g<tag>>\g<name> [\g<ids>]</\g<tag>>", text) if "=" in text else text
    hiding = Hiding(known)
    if not has_tags(text) and "{" not in text:
        text = hiding.hide(text)  # a name may look like a heading
    found = found_blocks(text, "answers")
    if not found:
        if not bare or has_tags(text):
            return ()
        plain = FENCE_LINE.sub("", without_thought(text)).strip()
        if plain.startswith(("[", "{")):
            return merged(read_block(plain, hiding))
        content = _listed(plain, hiding) or hiding.hide(plain.rpartition("\n")[2])
        read = merged(read_block(content, hiding))
        told = "\n" not in content and is_sentence(content)
        return () if told and any(one.name.rstrip(".") == item(content).rstrip(".") for one in read) else read
    joined: list[str] = []
    for block in found:
        if joined and _revises(block.said_before):
            joined.clear()
        joined.append(f"{block.content} {_citations_alone(block.said_after)}")
    return merged(one for content in joined for one in read_block(content, hiding))


_CITED_TAG = re.compile(
    r"<(?P<tag>answer|item|li)\s+(?:cite[sd]?|citations?|evidence|sources?|ids?|refs?|facts?)\s*=\s*[\"']\[?"
    r"(?P<ids>[eE\d][^\"'<>\[\]]*)\]?[\"']\s*>(?P<name>[^<>]*)</(?P=tag)>",
    re.IGNORECASE,
)
"""An answer in a tag with its citation."""
_CITATIONS_ALONE = re.compile(
    r"[\s,.;]*(?:(?:\*\*|</?)?(?:evidence|citations?|cited|sources?|facts?|supported by)\b[\s:*>]*)?"
    r"(?:[\[(]?[eE]\d{1,5}[eE\d\s,;–-]*[\])]?|[\[(][\d\s,;–-]+[\])])(?:[\s,.;]*[\[(][eE\d\s,;–-]+[\])])*[\s,.;]*(?:</\w+>\s*)?",
    re.IGNORECASE,
)
_ADDS = re.compile(
    r"\W*(?:and|also|additionally|another|plus|further|furthermore|moreover|other|in addition|as well)\b", re.I
)


def _revises(between: str) -> bool:
    """True if the text between two blocks of answers retracts the first one."""
    said = _CITATIONS_ALONE.sub("", between)
    return "—" in said or (any(map(str.isalnum, said)) and _ADDS.match(said) is None)


def _citations_alone(after: str) -> str:
    """Return what behind a block are citations and nothing else: all that follows, or the rest of its line."""
    for said in (after, after.partition("\n")[0]):
        if _CITATIONS_ALONE.fullmatch(said):
            ids = ", ".join(re.findall(r"[eE]?\d+(?:\s*[–-]\s*[eE]?\d+)?", said))
            return f"\n[{ids}]" if "\n" in after[: after.find(ids[:1])] else f" [{ids}]"
    return ""


def _listed(text: str, hiding: Hiding) -> str:
    """Return the list items of a reply without tags: lines with bullets or numbers, or all lines if none is prose."""
    found = [line.strip() for line in FENCE_LINE.sub("", hiding.hide(text)).split("\n") if line.strip()]
    marked = [line for line in found if LISTED.match(line)]
    prose = any(line.endswith((".", ":", "?", "!")) or len(line.split()) > 12 for line in found)
    return "\n".join(marked or ([] if prose else found))


# Paths

_ARROW = re.compile(
    r"\s*(?:[-–—]+>|=+>|[→⟶➔➜⇒⟹⟾↦⟼▶▸►⇢➝➞⭢⮕⇨⤳⤍⤏⇥↠↣⇾➙➛➤\U0001f812\U0001f852›»]|➡️?|[~|]>|>>+|\$?\\(?:long)?(?:right)?arrow\$?|\$?\\to\b\$?|(?<![<\w])>(?!=)|(?<=\w)>(?=\s*[\w^~`]))"
    r"\s*",
    re.IGNORECASE,
)
_BACK_ARROW = re.compile(r"\s*(?:<[-–—]+|<=+|[←⟵⇐⇠⬅⭠⟸↤◀⇦]|<[~|]|<<+)\s*")
_LABELLED = re.compile(
    r"(?P<back><)?[-–—=]{1,2}\s*[\[(]\s*(?:\w*\s*:\s*)?(?P<label>`[^`]+`|[^\]\s()|*{]+)[^\])]*[\])]\s*"
    r"(?:[-–—=]{1,2}(?P<on>>)?|(?P<arrow>[→⟶➔➜⇒]))"
)
_CITED_BEHIND = re.compile(r"\s*\[[eE]\d{1,5}(?:[\s,;–-]*[eE]?\d{1,5})*\][\s.]*$")
_TUPLE = re.compile(r"[\s,;]*\(([^(),]+),([^(),]+),([^(),]+)\)[\s,;.]*")
_TRIPLE = re.compile(r"\s*(?:\?\w+|\S+)\s+(\^?[\w:.`]+)\s+\?\w+(?:\s*\.(?:\s+|$)|\s*$)")
_BETWEEN_DASHES = re.compile(r"(?:^|(?<=\s))[-–—=]{1,2}\s?(?P<label>[^\s<>=–—-][^<>]*?)\s?[-–—=]{1,2}>")
_PATH_LABEL = re.compile(
    r"^(?:[^<>:→]{0,60}?\b)?(?:path|relation|chain|route|option)s?\s*#?\d*\s*:\s+|^[^<>→:]{1,60}:\s+(?=.*(?:->|→|>))",
    re.I,
)
_PATTERN_STEP = re.compile(r"(<?)-\[\s*\w*\s*:\s*(`(?:[^`]|``)*`|[^\]\s*{|]+)[^\]]*\]-(>?)")
_INVERSE_OF = re.compile(
    r"(?:inverse|reverse|reversed|backwards?)(?:\s+of\s+|\s*[(:]\s*)([^()]+?)\s*\)?", re.IGNORECASE
)
_INVERSE_MARK = re.compile(
    r"\s*[\[(](?:inverse|inverted|reversed?|backwards?|incoming|in)[\])]|\s*(?:\^-1|⁻¹)", re.IGNORECASE
)
_COMMENT = re.compile(
    r"\s+(?:#|//|--|;;|[-–—])\s.*$|\s+\((?!inverse|inverted|reverse|backward|incoming|in\))[^()]*\)\s*\.?$", re.I
)
_IRIS = re.compile(r"<([^<>\s]+)>")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.+\w+)+")
_PLACEHOLDER = re.compile(
    r"\W*(?:\?\w*|answers?|the answer|target|result|entity|topic|topic entity|start|end|question entity|…|\.{2,})\W*",
    re.I,
)


_LONGEST_WALK = 64


def read_paths(
    text: str, known: Callable[[str], bool] | None = None, labels: ShownNames | None = None
) -> tuple[Metapath, ...]:
    """Read relation paths, one a line; repeated paths come once.

    Steps are separated by arrows of any kind, or by ` / ` or commas if a line has no arrow. `^r`, `~r`, `r^-1`,
    `inverse(r)`, `r (inverse)`, `<- r` and Cypher's `<-[:r]-` walk a relation backwards. Cypher patterns are read for
    their relations. Variables (`?x`), placeholders and entities (`France -> capital -> Paris`) are no steps: they are
    separated from relations by `known`, by the reply's other lists, or by their spelling beside the others. A possible
    relation stays; the caller checks that it exists.

    Args:
        text: the reply.
        known: True if the graph has a relation of that label, or one of nearly that spelling.
        labels: relations whose labels hold arrows, commas or other marks, which are never taken apart.
    """
    hiding = Hiding(labels)
    named = {normalize_name(name) for tag in ("entities", "answers") for name in read_list(text, tag).items}
    found = []
    for content in blocks(text, "paths"):
        listed = entries(_of_paths(FENCE_LINE.sub("", content)))
        if listed is None:
            written = list(_path_lines(hiding.hide(content)))
        else:
            written = [" -> ".join(map(hiding.hide, steps)) for steps in map(_steps, listed)]
        walks = map(_path, written)
        found += [_relations([hiding.restore(step) for step in walk], named, known) for walk in walks]
    return unique(path for path in found if path)


def _of_paths(content: str) -> str:
    """Return the list that a JSON object holds, or the lists that stand one a line; any other text as it is."""
    if content.lstrip().startswith("{"):
        found = first_object(content) or {}
        listed = next((value for value in found.values() if isinstance(value, list)), None)
        return content if listed is None else json.dumps(listed, ensure_ascii=False)
    lines = [line.strip().rstrip(",") for line in content.splitlines() if line.strip()]
    lists = [entries(line) for line in lines]
    return json.dumps(lists, ensure_ascii=False) if len(lists) > 1 and all(lists) else content


def _path_lines(content: str) -> Iterator[str]:
    written = [_IRIS.sub(_iri, line) for line in content.replace("</", "\n</").splitlines()]
    for line in map(item, lines(untypeset("\n".join(written)))):
        if line and not line.endswith(":"):
            yield from re.split(r";\s+", line)


def _iri(found: re.Match[str]) -> str:
    """Take a relation out of angle brackets; a tag of the prompt stays one."""
    return found[0] if has_tags(found[0]) or found[1].startswith("/") else f" {found[1]} "


def _steps(entry: Any) -> list[str]:
    """Return the steps of a path in a JSON list: a text, a list of steps, or an object with either."""
    if isinstance(entry, dict):
        entry = next((value for value in entry.values() if isinstance(value, list | str)), "")
    return [part for part in (entry if isinstance(entry, list) else [entry]) if isinstance(part, str)]


def _path(line: str) -> list[str]:
    """Read the steps of one line, entities and relations; empty if it is no path."""
    if is_nothing(line):
        return []
    pattern = list(_PATTERN_STEP.finditer(line))
    if pattern:
        return [
            (INVERSE if step[1] and not step[3] else "") + step[2].strip("`").replace("``", "`") for step in pattern
        ]
    line = _CITED_BEHIND.sub("", untypeset(_PATH_LABEL.sub("", line, count=1)))
    for triples in (_TUPLE, _TRIPLE):
        if "?" in line and triples.sub("", line) == "":
            written = [found[2] if triples is _TUPLE else found[1] for found in triples.finditer(line)]
            return [step for each in written if (step := _relation(each))]
    line = _LABELLED.sub(
        lambda step: f" -> {INVERSE if step['back'] and not (step['on'] or step['arrow']) else ''}{step['label']} -> ",
        line,
    )
    line = _BETWEEN_DASHES.sub(r" -> \g<label> -> ", line)
    parts = _ARROW.split(_BACK_ARROW.sub(f" -> {INVERSE}", line))
    if len(parts) == 1:
        line = _COMMENT.sub("", line)
        parts = [] if is_sentence(line) else _separated(line)
    return [relation for part in parts if (relation := _relation(part))]


def _separated(line: str) -> list[str]:
    """Split a line without arrows: at ` / `, at commas, or at slashes between dotted labels."""
    for separator in (r"\s+/\s+", r"\s*,\s*(?:then\s+)?", r"\s+then\s+", r"\s+\|\s+"):
        parts = re.split(separator, line)
        if len(parts) > 1:
            return parts
    parts = line.split("/")
    return parts if len(parts) > 1 and all(_DOTTED.fullmatch(part.strip().lstrip("^~")) for part in parts) else [line]


def _relation(part: str) -> str:
    """Read one step of a path; empty when it is a variable or nothing."""
    name, marks = _INVERSE_MARK.subn("", part.strip())
    inverse = marks > 0
    name = _COMMENT.sub("", name).strip().strip("[]").strip()
    while name.startswith(("^", "~")):
        inverse, name = not inverse, name[1:].strip().strip("[]").strip()
    said = _INVERSE_OF.fullmatch(name.strip())
    if said is not None:
        inverse, name = not inverse, said[1]
    name = item(name).removeprefix(":").strip()
    if _DOTTED.fullmatch(name.rstrip(".,;:")):
        name = name.rstrip(".,;:")
    if not name or name[0] in "?{" or (name.startswith("(") and name.endswith(")")):
        return ""
    return f"{INVERSE}{name}" if inverse else name


def _relations(walk: Sequence[str], named: set[str], known: Callable[[str], bool] | None) -> Metapath:
    """Leave out the steps of a path that are entities; the arrow behind an entity carries no direction of a
    relation."""
    if not 1 < len(walk) <= _LONGEST_WALK:
        return tuple(walk[:_LONGEST_WALK])
    bare = [step.removeprefix(INVERSE) for step in walk]
    folded = [normalize_label(step) for step in bare]
    sure = [known is not None and known(step) for step in bare]
    sure = [sure_ or folded.count(label) > 1 for sure_, label in zip(sure, folded, strict=True)]
    spelled = [_DOTTED.fullmatch(step) is not None or "_" in step or "://" in step for step in bare]
    plain = [sure_ or like or step[:1].islower() for sure_, like, step in zip(sure, spelled, bare, strict=True)]
    kept = []
    for place, step in enumerate(bare):
        others = [other for at, other in enumerate(range(len(bare))) if at != place]
        entity = not sure[place] and (
            normalize_name(step) in named
            or _PLACEHOLDER.fullmatch(step) is not None
            or (
                not spelled[place] and not step[:1].islower() and not _shouted(step) and any(plain[at] for at in others)
            )
            or (not spelled[place] and _shouted(step) and any(spelled[at] and "." in bare[at] for at in others))
            or (
                known is not None and not spelled[place] and any(sure[at] for at in others) and _alternates(sure, place)
            )
        )
        if not entity:
            kept.append(walk[place])
    return tuple(kept or walk)


def _shouted(step: str) -> bool:
    """True if a step has the spelling of property graphs' relations: `PART_OF`, `SUPPLIES`."""
    return step.isupper() and " " not in step


def _alternates(sure: Sequence[bool], place: int) -> bool:
    """True if relations stand at every other place of a path, and this one between or beside them."""
    return (
        len(sure) > 2
        and not any(sure[at] for at in range(place % 2, len(sure), 2))
        and all(sure[at] for at in range(1 - place % 2, len(sure), 2))
    )


# Queries

_CYPHER_START = re.compile(
    r"^[ \t]*(?:(?i:(?:EXPLAIN\s+|PROFILE\s+)?(?:OPTIONAL\s+)?MATCH\s*(?:\w+\s*=\s*)?(?:\(|shortest|all\s*shortest))|"
    r"(?i:UNWIND\s*[\[(\w]+.*\sAS\s)|(?:WITH|CALL|RETURN)\b\s*[\[({\w`\"'*$])",
    re.M,
)
_CYPHER_CLAUSE = re.compile(
    r"\s*(?:MATCH|OPTIONAL\s+MATCH|UNWIND|WITH|CALL|RETURN|WHERE|AND|OR|NOT|XOR|ORDER\s+BY|LIMIT|SKIP|UNION|YIELD|ON|CASE|"
    r"WHEN|THEN|ELSE|END|AS)\b"
)
_SPARQL_START = re.compile(
    r"^[ \t]*(?:PREFIX\s+[\w-]*:|BASE\s*<|SELECT\s+(?:DISTINCT\b|REDUCED\b|[?*(])|"
    r"ASK\s*(?:WHERE\s*)?\{|CONSTRUCT\s*\{|DESCRIBE\s+[?<])",
    re.I | re.M,
)
_PATHS_START = re.compile(r"^[ \t]*(?:PREFIX\s+[\w-]*:|PATHS\b)", re.I | re.M)
_STARTS = {"opencypher": _CYPHER_START, "sparql": _SPARQL_START, "pathql": _PATHS_START}
_QUERY_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`|//[^\n]*|/\*.*?\*/|[;{}]|\n', re.DOTALL)
_RETURN = re.compile(r"\bRETURN\b", re.I)
_NEXT_STATEMENT = re.compile(r"[ \t]*(?:OPTIONAL\s+MATCH|MATCH|UNWIND|WITH|CALL)\b", re.I)
_UNION = re.compile(r"\bUNION(?:\s+ALL)?\s*$", re.I)


def read_query(text: str, tag: str) -> str | None:
    """Read a query; None when there is none, or an empty one. Of several the last that is not empty counts.

    Args:
        text: the reply.
        tag: `opencypher`, `sparql` or `pathql`.
    """
    queries = read_queries(text, tag)
    return queries[-1] if queries else None


def read_queries(text: str, tag: str) -> tuple[str, ...]:
    """Read the statements of the last query that is not empty, each once: mostly one.

    A code fence inside the block, and text around the query, is removed. Without tags a query counts in a
    fence with the name of the language, or whose content begins as the language does, and at last on lines that do so.

    Args:
        text: the reply.
        tag: `opencypher`, `sparql` or `pathql`.
    """
    start = _STARTS[tag]
    contents = blocks(text, tag)
    if not any(start.search(content) for content in contents):
        plain = without_thought(text)
        if all(line.startswith(">") for line in plain.strip().split("\n") if line.strip()):
            plain = re.sub(r"^> ?", "", plain.strip(), flags=re.M)
        fences = [fence for fence in FENCE.finditer(plain) if not has_tags(fence[3])]
        fenced = [fence[3] for fence in fences if fence[2].lower() in QUERY_FENCES[tag]] or [
            fence[3] for fence in fences if start.match(fence[3].lstrip())
        ]
        if not contents:
            contents = fenced or ([plain] if not has_tags(plain) and start.search(plain) else [])
        elif all(map(is_nothing, contents)):
            contents = []
    queries = [query for content in contents if (query := _query(content, start))]
    return unique(_statements(queries[-1], tag)) if queries else ()


def _query(content: str, start: re.Pattern[str]) -> str:
    """Return a query without fences and without text around it; empty if there is none."""
    query = unescape_text(_unfenced(content)).strip()
    if is_nothing(query):
        return ""
    label = _SAID_BEFORE.match(query)
    if label is not None and start.match(query[label.end() :]):
        query = query[label.end() :]
    quoted = [line for line in query.split("\n") if line.strip()]
    if all(line.startswith(">") for line in quoted):
        query = "\n".join(line.removeprefix(">").removeprefix(" ") for line in quoted)
    query = query.strip("$").strip() if query.startswith("$") else query
    mark = query[:1]
    if mark and mark in "`\"'" and query.endswith(mark) and start.match(query[1:]):
        query = query.strip(mark).strip()
    first = start.search(query)
    if first is None:
        return query
    query = query[first.start() :].strip()
    lines = query.split("\n")
    for place in range(1, len(lines)):
        if _said_after(lines[place], lines[place - 1]):
            return "\n".join(lines[:place]).strip().strip("`").rstrip()
    return query


_SAID_BEFORE = re.compile(
    r"\s*(?:(?:\d{1,2}[.)]|[-*•]|(?:the\s+)?(?:\w+\s+)?query\s*:|(?:open)?cypher\s*:|sparql\s*:)\s*)+", re.I
)


def _said_after(line: str, before: str) -> bool:
    """True if a line is a model's comment behind its query."""
    if re.match(r"##|\*\*|---", line):
        return True
    if (
        not line[:1].isupper()
        or _CYPHER_CLAUSE.match(line)
        or len(line.split()) < 3
        or before.rstrip().endswith((",", "(", "&", "|", "+"))
    ):
        return False
    words = re.findall(r"[A-Za-z']+", line)
    return (
        not re.match(r"[A-Z]+\b(?!')", line)
        and (line.rstrip()[-1:] in ".:!?" or not re.search(r"[(){}\[\]=]", line))
        and len(words) >= 3
    )


def _statements(query: str, tag: str) -> list[str]:
    """Split consecutive statements of a model: at `;`, or at the start of a new query behind a finished one."""
    if tag == "pathql":
        return [query]
    parts, begin, depth, closed = [], 0, 0, False
    for token in _QUERY_TOKEN.finditer(query):
        mark, end = token[0], token.end()
        depth += (mark == "{") - (mark == "}")
        closed = closed or mark == "}"
        if depth > 0:
            continue
        said = query[begin : token.start()]
        if tag == "opencypher":
            new = mark == ";" or (
                mark == "\n"
                and _NEXT_STATEMENT.match(query, end) is not None
                and _RETURN.search(said) is not None
                and not _UNION.search(said.rstrip())
                and not _goes_on_in(said)
            )
        else:
            new = mark == "\n" and closed and _SPARQL_START.match(query, end) is not None
        if new:
            parts.append(said)
            begin, closed = end, False
    return [part for each in (*parts, query[begin:]) if (part := each.strip()) and (not parts or _is_query(part, tag))]


def _goes_on_in(said: str) -> bool:
    """True if a statement's last RETURN stands in a closed subquery: `CALL { … RETURN x }`."""
    last = max((found.start() for found in _RETURN.finditer(said)), default=0)
    return "}" in said[last:] and "{" not in said[last:]


def _is_query(part: str, tag: str) -> bool:
    return _STARTS[tag].search(part) is not None


# JSON and scores


def read_object(text: str, tag: str | None = None) -> dict[str, Any] | None:
    """Read a JSON object; None if there is none. Of several the first counts.

    Text that is nearly JSON is read as well, as `first_object` accepts it.

    Args:
        text: the reply.
        tag: a key of `TAGS` whose blocks are read; without one, or without a tag, the whole reply is.
    """
    contents = blocks(text, tag) if tag is not None else []
    for content in contents or [without_thought(text)]:
        for candidate in dict.fromkeys((content, _unfenced(content), unescape_text(content))):
            found = first_object(candidate)
            if found is not None:
                return found
    return None


def _unfenced(content: str) -> str:
    """Return the inside of the last code fence, or everything without one."""
    fences = [fence[3] for fence in FENCE.finditer(content) if fence[3].strip()]
    return fences[-1] if fences else FENCE_LINE.sub("", content)


def read_score(text: str, allowed: Sequence[float] = (0.0, 0.5, 1.0)) -> float | None:
    """Read a judge's score: the number between its tags, else the last one after the word "score"; None when there is
    none, or one that is not allowed.
    """
    contents = [content for content in blocks(text, "score") if content.strip()]
    if not contents:
        named = re.split(r"\bscore\b", without_thought(text), flags=re.IGNORECASE)
        contents = named[-1:] if len(named) > 1 or len(text.split()) == 1 else []
    for content in reversed(contents):
        number = _SCORE.search(content)
        if number is not None:
            score = 0.5 if number[0] in ("1/2", "½") else float(number[0])
            return score if score in allowed else None
    return None
