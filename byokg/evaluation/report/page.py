"""HTML pages of one application: the report, a file that asks the network for nothing; the viewer; drawings of paths.

All that comes from a run, a graph or a language model is in a page as compressed base 64 only (JSON, in the viewer),
and the page's script turns it into text nodes and attributes, never into markup. A content security policy allows one
library, one script and one style sheet by their hashes, no address of another host, and no text to become markup. The
library is d3 (selection, drag, zoom), as published; see docs/licences.md.

A page of thousands of questions repeats itself: the same instructions stand in every prompt, the same facts in every
round. Long texts are taken apart into lines, each line is kept once in numbered blocks of texts, and the records refer
to lines by number. A browser inflates a block when something in it is looked at.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from byokg.errors import RunError
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.records import TRACE
from byokg.evaluation.report.view import NodeNames, call_detail, differences, question_view, summarise
from byokg.evaluation.run_folder import GrowingLines, Run, read_trace_line
from byokg.files import write_file
from byokg.graph.store import GraphStore
from byokg.llm.reply_store import RecordedReplies

MARK = "\u0001"
"""Begins a text that is given as the numbers of its lines, in base 36 and separated by commas."""

SHORT = 40
"""Texts of fewer characters stay in place."""

_BLOCK_CHARACTERS = 200_000
_LEVEL = 6
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def packed(value: object) -> str:
    """Return a JSON value compressed (zlib) and in base 64, so that nothing in it can be taken for HTML."""
    return _compressed(_ENCODE(value))


def _compressed(text: str) -> str:
    return base64.b64encode(zlib.compress(json_bytes(text), _LEVEL)).decode("ascii")


def json_bytes(text: str) -> bytes:
    """Encode JSON. A lone surrogate has no UTF-8; as an escape it is valid JSON, and reads back the same."""
    return text.encode("utf-8", "backslashreplace")


class Blocks:
    """Values in compressed blocks of a bounded size, numbered as they come."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        """The number of each block's first value."""
        self.packed: list[str] = []
        self._open: list[str] = []
        self._characters = 0
        self._count = 0

    def add(self, value: object) -> int:
        """Keep a JSON value; return its number."""
        if not self._open:
            self.starts.append(self._count)
        text = _ENCODE(value)
        self._open.append(text)
        self._characters += len(text)
        self._count += 1
        if self._characters >= _BLOCK_CHARACTERS:
            self.close()
        return self._count - 1

    def close(self) -> None:
        """Compress the open block."""
        if self._open:
            self.packed.append(_compressed(f"[{','.join(self._open)}]"))
            self._open, self._characters = [], 0


class Texts:
    """Lines of long texts, each kept once."""

    def __init__(self) -> None:
        self.blocks = Blocks()
        self._references: dict[str, str] = {}

    def shared(self, value: Any) -> Any:
        """Return a JSON value in which long texts are references to their lines; the rest is as it was."""
        if isinstance(value, str):
            return self.reference(value) if len(value) >= SHORT or value.startswith(MARK) else value
        if isinstance(value, dict):
            return {name: self.shared(entry) for name, entry in value.items()}
        if isinstance(value, list | tuple):
            return [self.shared(entry) for entry in value]
        return value

    def reference(self, text: str) -> str:
        """Keep a text, line by line, and return its reference."""
        known = self._references
        numbers = []
        for line in text.split("\n"):
            number = known.get(line)
            if number is None:
                number = known[line] = np.base_repr(self.blocks.add(line), 36).lower()
            numbers.append(number)
        return MARK + ",".join(numbers)


@dataclass(frozen=True)
class Details:
    """Parts of a report that open on demand, in compressed blocks."""

    questions: Blocks
    """One record for each question, in order."""
    calls: Blocks
    """Prompts with their replies; the questions' records refer to them by number."""
    texts: Blocks
    """Lines of long texts; both of the others refer to them."""


def read_details(
    runs: Sequence[Run],
    examples: Sequence[Example],
    store: GraphStore | None = None,
    replies: RecordedReplies | None = None,
) -> Details:
    """Return the content of each question's record, and of each model call.

    Args:
        runs: with traces, which are read one question at a time.
        examples: the questions.
        store: for the names of nodes; None shows ids if a trace holds no name.
        replies: for prompts and replies; None leaves them out.

    Raises:
        RunError: a run has no traces, or they cannot be read.
        EntityNotFound: a trace holds a node that is not in the store.
    """
    questions, calls, texts, named = Blocks(), Blocks(), Texts(), NodeNames(store)
    if without := next((run for run in runs if not (run.folder / TRACE).is_file()), None):
        raise RunError(f"no {TRACE} in {str(without.folder)!r}; give the folder that an evaluation wrote")
    traces = [GrowingLines(run.folder / TRACE) for run in runs]
    numbers = None
    if replies is not None:
        wanted = _wanted(runs, examples, traces)
        numbers = {each.call.key: calls.add(texts.shared(call_detail(each))) for each in replies.recorded(wanted)}
    for example in examples:
        read = [read_trace_line(trace, example.id) for trace in traces]
        try:
            record = question_view(runs, example, read, named, numbers)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunError(
                f"the trace of question {example.id!r} in {', '.join(str(run.folder) for run in runs)} is no "
                f"record of a run ({error!r}); start the run again in another folder"
            ) from error
        questions.add(texts.shared(record))
    for blocks in (questions, calls, texts.blocks):
        blocks.close()
    return Details(questions, calls, texts.blocks)


def _wanted(runs: Sequence[Run], examples: Sequence[Example], traces: Sequence[GrowingLines]) -> set[str]:
    """Return the keys of all replies that the runs used."""
    return {
        call["reply"]
        for run, trace in zip(runs, traces, strict=True)
        for example in examples
        if example.id in run.predictions
        for call in read_trace_line(trace, example.id).get("calls", ())
    }


_DRAWN = ("dom", "layout", "drawing")
_APPLICATION = (
    *_DRAWN, "charts", "leaderboard", "overview", "list", "evidence", "rounds", "answer", "question", "main",
)  # fmt: skip
_SLOT = re.compile(r"\{\{(\w+)\}\}")


def build_page(
    runs: Sequence[Run],
    examples: Sequence[Example],
    baseline: int = 0,
    store: GraphStore | None = None,
    replies: RecordedReplies | None = None,
) -> str:
    """Return the page; equal runs give equal bytes.

    Args:
        runs: at least one, over one data set.
        examples: the questions of any run, in data-set order.
        baseline: position of the run that the others are compared with.
        store: the graph, for the names of its nodes; None shows ids if a trace holds no name.
        replies: recorded replies, to show prompts and replies; None leaves them out.

    Raises:
        RunError: a run has no traces, or they cannot be read.
        EntityNotFound: a trace holds a node that is not in the store.
    """
    details = read_details(runs, examples, store, replies)
    blocks = {"questions": details.questions, "calls": details.calls, "texts": details.texts}
    summary = summarise(runs, examples, baseline) | {"deltas": differences(runs, baseline)}
    summary["blocks"] = {name: each.starts for name, each in blocks.items()}
    elements = "".join(
        _element(f"block-{name}-{number}", block)
        for name, each in blocks.items()
        for number, block in enumerate(each.packed)
    )
    return _page("report", ("unpack", "data", *_APPLICATION), _element("summary", packed(summary)), elements)


@cache
def live_page() -> str:
    """Return the page that `report.server` serves, which asks it for everything that it shows."""
    return _page("view", ("live", *_APPLICATION))


def build_paths_page(record: Mapping[str, Any]) -> str:
    """Return a page with a drawing of paths and a list of them; `record` is made by `extras.drawing.describe`."""
    return _page("paths", (*_DRAWN, "unpack", "paths"), _element("paths", packed(record)))


def _page(title: str, scripts: Sequence[str], first: str = "", rest: str = "") -> str:
    """Return a page of some scripts, and of elements with its data: those it needs at once, and the others."""
    texts = {"library": _part("d3.min.js"), "style": _part("page.css"), "script": _join(scripts)}
    parts = {
        **texts,
        **{f"{name}_hash": _hash(text) for name, text in texts.items()},
        "connect": "connect-src 'self'; " if title == "view" else "",
        "title": f"byokg {title}",
        "first": first,
        "rest": rest,
    }
    return _SLOT.sub(lambda slot: parts[slot[1]], _part("page.html"))


def _join(scripts: Sequence[str]) -> str:
    """Return scripts as one, each in the same block: functions are known in all of it, whatever the order."""
    return '"use strict";\n{\n' + "".join(_part(f"{name}.js") for name in scripts) + "}\n"


def write_page(page: str, out: Path) -> None:
    """Write a page whole or not at all.

    Raises:
        RunError: the file cannot be written.
    """
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_file(out, [page.encode()])
    except OSError as error:
        raise RunError(f"cannot write {str(out)!r}: {error.strerror or error}; choose another --out") from error


def _part(name: str) -> str:
    return (resources.files("byokg.evaluation.report") / "page" / name).read_text("utf-8")


def _hash(text: str) -> str:
    """Return the source expression by which a content security policy allows exactly this text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _element(id: str, text: str) -> str:
    # Of a type that no browser runs: data that a script reads.
    return f'<script type="text/plain" id="{id}">{text}</script>\n'
