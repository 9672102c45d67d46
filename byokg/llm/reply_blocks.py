"""Places of results in a reply: between tags, under a heading, in a labelled fence, or in one JSON object.

Prompts demand tags, and most models write them. `blocks` finds the text between tags, character by character; if a
reply has none of a kind, it searches the other layouts. Thoughts before the answer, and tags mentioned in a sentence,
are no results.
"""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

TAGS: Mapping[str, tuple[str, ...]] = {
    "entities": ("entities", "entity", "topic-entities", "extracted-entities"),
    "next-entities": ("next-entities", "next-entity"),
    "paths": ("paths", "path", "relation-paths", "relationship-paths"),
    "opencypher": ("opencypher", "cypher", "opencypher-query", "cypher-query"),
    "sparql": ("sparql", "sparql-query"),
    "answers": ("answers", "answer", "final-answer", "final-answers", "draft-answer", "draft-answers"),
    "selected": ("selected", "select", "selected-relations"),
    "bfsql": ("bfsql", "bfs-ql", "bfs-query"),
    "pathql": ("pathql", "path-query"),
    "numbers": ("numbers",),
    "score": ("score",),
    "reason": ("reason",),
}
"""The tags of our prompts, each with models' variants; `_` and a space stand for `-` as well."""

_HEADINGS: Mapping[str, tuple[str, ...]] = {
    "entities": (
        *("entity-extraction", "next-entities", "key-entities", "named-entities", "linked-entities"),
        *("entités", "entidades", "entità", "entitäten", "сущности", "实体", "實體", "エンティティ"),
    ),
    "next-entities": ("entities", "selected-entities", "entities-to-explore", "entities-to-explore-next"),
    "paths": ("relation-path", "relations-paths", "metapaths", "relations", "pfade", "chemins", "caminos", "percorsi"),
    "opencypher": ("query", "graph-query"),
    "sparql": ("query", "graph-query"),
    "answers": (
        *("the-answer", "the-answers", "possible-answers", "antwort", "antworten", "réponse", "réponses", "respuesta"),
        *("respuestas", "risposta", "risposte", "resposta", "respostas", "ответ", "ответы", "答案", "回答", "答え"),
    ),
    "selected": ("relations", "relations-to-follow", "selection"),
    "bfsql": ("subgraph-request", "bfs-ql-request", "bfsql-request", "subgraph"),
    "pathql": (),
}
"""Models' headings of a result, or its keys in JSON, besides the words of `TAGS`."""

_OTHER_HEADINGS = frozenset(
    "analysis citation citations confidence evidence explanation facts justification note notes rationale reason "
    "reasoning reasons sources summary thought thoughts".split()
)


def _folded(word: str) -> str:
    return re.sub(r"[-_ ]+", "-", word.strip().lower())


_OWNER = {word.replace("-", ""): tag for tag, words in TAGS.items() for word in words}
_NAMES = {tag: {*TAGS[tag], *_HEADINGS.get(tag, ())} for tag in TAGS}
_ALL_NAMES = {name for tag in _HEADINGS for name in _NAMES[tag]}
_WORDS = "|".join(
    word.replace("-", "[-_ ]?") for word in sorted({word for words in TAGS.values() for word in words}, key=len)[::-1]
)
_ATTRIBUTE = r"""\s+[\w:-]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>=]+)"""
_TAG = re.compile(
    rf"<\|?\s?(?P<end>[/\\]?)\s?(?P<word>{_WORDS})(?:{_ATTRIBUTE}){{0,4}}\s{{0,8}}(?P<empty>/?)\|?>", re.IGNORECASE
)
_BRACED = re.compile(rf"^[ \t]*\{{(/?(?:{_WORDS}))\}}[ \t]*$", re.IGNORECASE | re.MULTILINE)
_THOUGHT = re.compile(r"<(?P<end>/?)(?P<word>think|thinking|thoughts?|reasoning|scratchpad|analysis|reflection)>", re.I)

FENCE = re.compile(r"^[ \t]*(```++|~~~++)[ \t]*([\w+-]*)[^\n`]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.M | re.DOTALL)
"""A code fence: its marks, its language, its content."""
FENCE_LINE = re.compile(r"^[ \t]*(?:```++|~~~++)[ \t]*[\w+-]*[ \t]*$", re.MULTILINE)

_HEADED = "|".join(
    name.replace("-", "[-_ ]?") for name in sorted({*_ALL_NAMES, *_OTHER_HEADINGS}, key=lambda name: (-len(name), name))
)
_HEADING = re.compile(
    r"^[ \t]*(?P<mark>#{1,6}[ \t]*)?(?:\d{1,2}[.)][ \t]+)?(?:[-*+][ \t]+)?(?P<bold>\*{1,3}|__)?[ \t]?(?P<bracket>\[)?"
    rf"(?:task[ \t]*\d*[ \t]*[:.–—-]?[ \t]*)?(?P<name>{_HEADED})(?!\w)\]?[ \t]*(?:\([^()\n]*\))?[ \t]*(?P<colon>[:：])?"
    r"(?:\*{1,3}|__)?[ \t]?(?P<late>[:：])?[ \t]*(?P<rest>.*)$",
    re.MULTILINE | re.IGNORECASE,
)
_ANY_HEADING = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+\S|\[/[a-z_ -]+\][ \t]*$)", re.MULTILINE | re.IGNORECASE)

LISTED = re.compile(r"\s*(?:[-*+–—‣▪◦•·●○]\s+|\(?\d{1,3}[.)]\s+)")
"""How a line with a bullet or a number begins."""

_ESCAPED = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")

_LOOK_BACK = 200
"""Characters of a line before and behind a tag that are looked at."""

_QUOTES_BEFORE, _QUOTES_AFTER = "`\"'“‘«", "`\"'”’»"


@dataclass(frozen=True)
class Block:
    """Content of a tag, or of its replacement."""

    content: str
    said_before: str
    """Text between the previous block and this one; all text before the first."""
    said_after: str
    """Text after the block, up to the next tag."""


def blocks(text: str, tag: str) -> list[str]:
    """Return the results of one kind in a reply, in the order written.

    Text between tags is returned exactly as written. A block that is not closed ends before the next tag of any
    kind, or with the text. Spelling, case and attributes of tags do not matter, `<answer>` is `<answers>`. Thoughts
    (`<think>…</think>`) are no part of the reply, nor is a tag that is mentioned in a sentence. A reply whose tags are
    all escaped (`&lt;entities&gt;`) is unescaped.

    If a reply has no tags of the kind, the result is searched as an entry of a JSON object that is the reply, in a
    fence labelled with the tag, and under a heading (`## Entities`, `**Answer:** Paris`). Values of JSON are returned
    as JSON, unless they are text.

    Args:
        text: the reply.
        tag: a key of `TAGS`.
    """
    return [block.content for block in found_blocks(text, tag)]


def found_blocks(text: str, tag: str) -> list[Block]:
    """Return the results of one kind as `blocks` does, with the text around them."""
    text, tags = _tags(without_thought(text))
    found: list[Block] = []
    last = 0  # end of the last block
    cut: list[tuple[int, int]] = []  # where blocks of any kind stand
    nexts = _next_of_kind(tags)
    for position, opening in enumerate(tags):
        if opening.start() < last or opening["end"]:
            continue
        owner = _owner(opening)
        following = nexts[position]
        closing = following if following is not None and following["end"] and not opening["empty"] else None
        after = tags[position + 1] if position + 1 < len(tags) else None
        stop = closing or after
        end = stop.start() if stop else len(text)
        if opening["empty"]:
            end = opening.end()
        elif _only_mentioned(text, opening, closing, end, following is not None):
            continue
        whole_end = closing.end() if closing else end
        if owner == tag:
            begin = cut[-1][1] if cut else 0
            content = _CDATA.sub(r"\1", text[opening.end() : end])
            found.append(Block(content, text[begin : opening.start()], _after(text, whole_end)))
            last = whole_end
        elif closing is not None and owner in ("opencypher", "sparql", "pathql", "bfsql"):
            last = whole_end  # `<answers>` inside a query is no tag
        cut.append((opening.start(), whole_end))
    if found or tag not in _HEADINGS:
        return found
    rest, begin = [], 0
    for start, end in cut:
        rest.append(text[begin:start] if start > begin else "")
        begin = max(begin, end)
    contents = _untagged("".join([*rest, text[begin:]]), tag)
    return [Block(content, "\n—\n", "") for content in contents]


def has_tags(text: str) -> bool:
    """True if a reply has a tag of any kind, even if only mentioned."""
    return bool(_tags(without_thought(text))[1])


def without_tags(text: str) -> str:
    """Return a text without the tags of our prompts; their content stays."""
    return _TAG.sub("\n", text)


def cut_at_next(content: str) -> str:
    """Return the text before another block that opens inside an unclosed one."""
    nested = _TAG.search(content)
    return content[: nested.start()] if nested and not nested["end"] and content[: nested.start()].strip() else content


def without_thought(text: str) -> str:
    """Return a reply without the model's thoughts before it.

    Some chat templates open the thought for the model, so that a reply has its end alone.
    """
    kept: list[str] = []
    begin, word = 0, ""  # start of the part outside of thoughts, and the open thought
    ends = {mark["word"].lower(): mark.start() for mark in _THOUGHT.finditer(text) if mark["end"]}
    for mark in _THOUGHT.finditer(text):
        if mark["end"] and word in ("", mark["word"].lower()):
            kept = kept if word else []
            begin, word = mark.end(), ""
        elif not mark["end"] and not word and ends.get(mark["word"].lower(), 0) > mark.start():
            kept.append(text[begin : mark.start()])
            begin, word = mark.end(), mark["word"].lower()
    return "".join([*kept, text[begin:]])


def is_result(key: str) -> bool:
    """True if a key of a JSON object is the name of a result."""
    return _folded(key) in _ALL_NAMES or key.lower() in ("results", "items")


def unescape_text(text: str) -> str:
    """Resolve entities that end in a semicolon; `AT&T` and `R&copy` are left alone."""
    return _ESCAPED.sub(lambda escape: html.unescape(escape[0]), text)


def reply_schema(tags: Iterable[str], cited: bool = True) -> dict[str, Any]:
    """Return the JSON schema of a reply with one entry for each kind of result, as `blocks` finds them in JSON.

    Args:
        tags: the kinds, in the order in which they are to be written.
        cited: whether answers come with citations.
    """
    kinds = _ENTRIES if cited else {**_ENTRIES, "answers": _TEXTS}
    entries = {tag: kinds.get(tag, _TEXT) for tag in tags}
    return {
        "title": "results",
        "description": "What the tasks ask for, each result under the name of its tags.",
        "type": "object",
        "properties": entries,
        "required": list(entries),
        "additionalProperties": False,
    }


_TEXT = {"type": "string", "description": "as it would stand between the tags; empty where there is none"}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_ENTRIES: Mapping[str, Mapping[str, Any]] = {
    "entities": _TEXTS,
    "next-entities": _TEXTS,
    "selected": _TEXTS,
    "paths": {"type": "array", "items": _TEXTS, "description": "paths, each a list of relations"},
    "answers": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"answer": {"type": "string"}, "citations": _TEXTS},
            "required": ["answer", "citations"],
            "additionalProperties": False,
        },
    },
}


_CHARACTERS_A_TOKEN = 3
"""Of text in most languages; a grammar bounds a reply by it, so that a model that repeats itself comes to an end."""
_LINE, _FEWEST_LINES, _MOST_LINES = 160, 4, 120
_GRAMMARS = {
    "lines": r"[^<>\r\n\t ] [^<>\r\n]{0,%d}",
    "paths": 'step (" -> " step){0,3}',
    "text": r"[^<\r\n] [^\r\n]{0,%d}",
}


def reply_grammar(schema: Mapping[str, Any], max_tokens: int | None = None) -> str:
    """Return the grammar (GBNF, of llama.cpp) of a reply with a block between tags for each result, as prompts demand.

    Lists have one item a line, paths have at most four relations with arrows between, all else is text; a block may be
    empty. Lengths are bounded, since a weak model writes on forever.

    Args:
        schema: one of `reply_schema`.
        max_tokens: longest reply, shared by the blocks; None is 4,096.
    """
    entries: Mapping[str, Mapping[str, Any]] = schema["properties"]
    share = _CHARACTERS_A_TOKEN * (max_tokens or 4096) // max(1, len(entries)) // _LINE
    most = min(_MOST_LINES, max(_FEWEST_LINES, share))
    kinds = {
        tag: "text" if entry.get("type") != "array" else "paths" if entry["items"].get("type") == "array" else "lines"
        for tag, entry in entries.items()
    }
    written = [rf'"<{tag}>\n" ({kind} "\n"){{0,{most}}} "</{tag}>"' for tag, kind in kinds.items()]
    rules = ["root ::= " + r' "\n" '.join(written)]
    for kind in dict.fromkeys(kinds.values()):
        rules.append(f"{kind} ::= {_GRAMMARS[kind].replace('%d', str(_LINE - 1))}")
    if "paths" in kinds.values():
        rules.append(r"step ::= [^<>\r\n\t -] [^<>\r\n]{0,79}")
    return "\n".join(rules)


# Tags


_CDATA = re.compile(r"<!\[CDATA\[((?:(?!<!\[CDATA\[).)*?)\]\]>", re.DOTALL)


_HALF_TAG = re.compile(
    rf"^(?P<indent>[ \t]*)(?:(?P<open><)(?P<tag>{_WORDS})|(?P<closed>/?(?:{_WORDS}))>)[ \t]*$|"
    rf"<(?P<late>/(?:{_WORDS}))[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_CUT_TAG = re.compile(r"</[\w-]{0,20}\Z")


def _mended(text: str) -> str:
    """Close tags that lack a bracket if nothing else stands in the line or behind them; drop one that is cut off."""
    return _CUT_TAG.sub(
        "", _HALF_TAG.sub(lambda half: f"{half['indent'] or ''}<{half['tag'] or half['closed'] or half['late']}>", text)
    )


def _tags(text: str) -> tuple[str, Sequence[re.Match[str]]]:
    text = _mended(text) if "<" in text or ">" in text else text
    found = list(_TAG.finditer(text))
    if not found and "&" in text:
        text = unescape_text(text)
        found = list(_TAG.finditer(text))
    if not found and "{" in text and _BRACED.search(text):
        text = _BRACED.sub(r"<\1>", text)
        found = list(_TAG.finditer(text))
    return text, found


def _owner(tag: re.Match[str]) -> str:
    return _OWNER[re.sub(r"[-_ ]", "", tag["word"].lower())]


def _next_of_kind(tags: Sequence[re.Match[str]]) -> list[re.Match[str] | None]:
    """Return for each tag the next one of its kind that is not empty: it closes a block, or opens another."""
    after: dict[str, re.Match[str]] = {}
    nexts: list[re.Match[str] | None] = []
    for tag in reversed(tags):
        nexts.append(after.get(_owner(tag)))
        if not tag["empty"]:
            after[_owner(tag)] = tag
    return nexts[::-1]


def _after(text: str, place: int) -> str:
    said = text[place : place + _LOOK_BACK]
    following = _TAG.search(said)
    return said[: following.start()] if following else said


def _only_mentioned(text: str, opening: re.Match[str], closing: re.Match[str] | None, end: int, again: bool) -> bool:
    """True if a sentence only mentions a tag: `I write it in <answers> tags`, `between <answers> and </answers>`.

    Args:
        text: the reply.
        opening: the tag.
        closing: its closing tag, if any.
        end: end of its block.
        again: True if a tag of its kind follows.
    """
    before = text[max(0, opening.start() - _LOOK_BACK) : opening.start()].rpartition("\n")[2]
    inside = text[opening.end() : end]
    if before[-1:] and before[-1:] in _QUOTES_BEFORE and inside[:1] and inside[:1] in _QUOTES_AFTER:
        return True
    worded = any(map(str.isalpha, before))
    if closing is not None:
        return worded and inside.strip(" \t.…`'\"").lower() in ("and", "or", "to") + (("",) if "." in inside else ())
    line = inside.split("\n", 1)[0]
    if worded and any(map(str.isalpha, line)) and (again or not line[0].isalnum()):
        return True
    return again and len(line.split()) > 3 and line.rstrip().endswith((".", ":", "!"))


# Other layouts


def _untagged(text: str, tag: str) -> list[str]:
    """Return results that stand in JSON, in labelled fences or under headings."""
    if "{" not in text and "`" not in text and "~" not in text and not _HEADING.search(text):
        return []
    found = _of_object(text, tag)
    if found is None:
        found = [fence[3] for fence in FENCE.finditer(text) if _folded(fence[2]) in TAGS[tag]] if tag != "bfsql" else []
        found = found or list(_under_headings(text, tag))
    return found


def _of_object(text: str, tag: str) -> list[str] | None:
    """Return a result from the JSON object that is the reply; None if it is no object with any of our results."""
    keys = _results(text)
    if keys is None:
        return None
    return [_written(value) for key, value in keys.items() if key in _NAMES[tag] and value is not None][:1]


@lru_cache(8)
def _results(text: str) -> Mapping[str, Any] | None:
    """Return the JSON object that a reply is by folded keys, if it has a key of ours."""
    fences = [fence[3] for fence in FENCE.finditer(text) if fence[2].lower() in ("json", "json5", "")]
    for candidate in (*fences, text):
        candidate = _TOOL_TAG.sub("", candidate)
        if not candidate.lstrip().startswith("{"):
            continue
        found = _called(first_object(candidate))
        while found and len(found) == 1 and isinstance(inner := next(iter(found.values())), dict):
            if _folded(next(iter(found))) in _ALL_NAMES:
                break
            found = inner  # {"result": {…}}
        keys = {_folded(key): value for key, value in (found or {}).items()}
        if any(key in _ALL_NAMES for key in keys):
            return keys
    return None


_TOOL_TAG = re.compile(r"</?(?:tool_call|tool_use|function_call|function|invoke)>", re.IGNORECASE)
_ARGUMENTS = ("arguments", "input", "parameters", "args")


def _called(found: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the arguments of an object that is a tool call; any other object as it is."""
    while found:
        inner: Any = next((found[key] for key in (*_ARGUMENTS, "function", "tool_calls") if key in found), None)
        inner = inner[0] if isinstance(inner, list) and inner else inner
        inner = first_object(inner) if isinstance(inner, str) else inner
        if not isinstance(inner, dict):
            break
        found = inner
    return found


def _written(value: Any) -> str:
    """Return a value of a JSON object as the readers of lists and queries take it."""
    if isinstance(value, list):
        value = [str(entry) if isinstance(entry, int | float) else entry for entry in value]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _under_headings(text: str, tag: str) -> Iterator[str]:
    """Yield the text under each heading of a kind, up to the next heading."""
    starts: list[tuple[int, int, str]] = []  # start of each heading and of the text under it, and its name
    for found in _HEADING.finditer(text):
        name = _folded(found["name"])
        ours = name in _ALL_NAMES
        marked = found["mark"] or found["bold"] or found["bracket"]
        colon = found["colon"] or found["late"]
        alone = not found["rest"].strip()
        cites = name not in _NAMES[tag] and _CITES_ALONE.fullmatch(found["rest"])
        if (ours and (alone or colon)) or (name in _OTHER_HEADINGS and not cites and (colon or (alone and marked))):
            starts.append((found.start(), found.start("rest"), name))
    ends = sorted({*(start for start, *_ in starts), *(found.start() for found in _ANY_HEADING.finditer(text))})
    for start, begin, name in starts:
        if name in _NAMES[tag]:
            yield _listed(text[begin : next((end for end in ends if end > start), len(text))])


_CITES_ALONE = re.compile(r"[\[(]?\s*[\"']?[eE]?\d{1,5}[\s\"',;eE\d–-]*[\])]?\s*")


def _listed(section: str) -> str:
    """Leave out a paragraph without bullets or numbers behind a list with them."""
    paragraphs = re.split(r"\n[ \t]*\n", section.strip("\n"))
    listed = [LISTED.match(paragraph) is not None for paragraph in paragraphs]
    return "\n\n".join(paragraphs[: listed.index(False, 1)]) if listed[0] and not all(listed) else section


# Text that is nearly JSON

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
    """Return the object at the first readable place in a text; None if there is none.

    Comments, trailing commas, single and curly quotes, names without quotes, Python's True and None, NaN, and closing
    brackets that are missing at the end do no harm.
    """
    for start in itertools.islice(re.finditer(r"\{", text), _OBJECT_STARTS_TRIED):
        rest = text[start.start() :]
        for candidate in (rest, repair(rest)):
            try:
                value, _ = json.JSONDecoder(strict=False, parse_constant=_refuse).raw_decode(candidate)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                return value
    return None


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def repair(text: str) -> str:
    """Rewrite a text that is nearly JSON as JSON, up to the end of the value at its beginning."""
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
    """Return a text that is one list of texts, of objects, or of lists of texts; None for any other text.

    Brackets around words without quotes are no list: `[Paris]` is a name in brackets.
    """
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        listed = json.loads(repair(text))
    except (ValueError, RecursionError):
        return None
    quoted = any(mark in text for mark in "\"'“")
    return listed if quoted and isinstance(listed, list) else None
