"""The report: one HTML file that asks the network for nothing.

All that comes from a run, a graph or a language model is in the page as compressed base 64 only, and the page's script
turns it into text nodes and attributes, never into markup. A content security policy allows this one script and this
one style sheet by their hashes, no address at all, and no text to become markup.

A page of thousands of questions repeats itself: the same instructions stand in every prompt, the same facts in every
round. Long texts are taken apart into lines, each line is kept once in numbered blocks of texts, and the records refer
to lines by number. A browser inflates a block when something in it is looked at.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from byokg.errors import RunError
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.metrics import normalise
from byokg.evaluation.records import TRACE, Prediction, Timing, read_evidence
from byokg.evaluation.report.summary import summarise
from byokg.evaluation.retrieval_metrics import flat_cells
from byokg.evaluation.run_folder import GrowingLines, Run, read_trace_line
from byokg.evaluation.runner import outcome
from byokg.files import write_file
from byokg.graph.property_view import node_names
from byokg.graph.store import GraphStore
from byokg.llm.reply_store import RecordedReplies, RecordedReply
from byokg.retrieval.verbalize import nodes_of
from byokg.types import EntityId, Evidence, Node, NodeCell, NodeEvidence, RowsEvidence

MARK = "\u0001"
"""Begins a text that is given as the numbers of its lines, in base 36 and separated by commas."""

SHORT = 40
"""Texts of fewer characters stay in place."""

_TOLD = ("schema", "id", "rounds", "calls", "answers")
"""Fields of a trace that the page has a place for; others are shown as they are."""

_BLOCK_CHARACTERS = 200_000
_LEVEL = 6
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def packed(value: object) -> str:
    """Return a JSON value compressed (zlib) and in base 64, so that nothing in it can be taken for HTML."""
    return _compressed(_ENCODE(value))


def _compressed(text: str) -> str:
    # A lone surrogate has no UTF-8; as \udXXX it is valid JSON, and reads back the same.
    return base64.b64encode(zlib.compress(text.encode("utf-8", "backslashreplace"), _LEVEL)).decode("ascii")


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


def question_view(
    runs: Sequence[Run],
    example: Example,
    traces: Sequence[Mapping[str, Any]],
    named: NodeNames,
    calls: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return a question with the outcome and the trace of each run, as report and viewer draw it.

    `calls` are as for `run_detail`.
    """
    return {
        "question": example.question,
        "gold": example.answers,
        "names": named.of(runs, example, traces),
        "runs": [run_detail(run, example, trace, calls) for run, trace in zip(runs, traces, strict=True)],
    }


def run_detail(
    run: Run, example: Example, trace: Mapping[str, Any], calls: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Return one run's part of a question's record; None if the run lacks the question.

    Args:
        run: answered the question.
        example: the question.
        trace: record of the stages behind the answers.
        calls: reference of a recorded model call, by its key; None without recorded replies.
    """
    prediction = run.predictions.get(example.id)
    if prediction is None:
        return None
    scores = {answer["name"]: answer["score"] for answer in trace.get("answers", ())}
    timing = run.timings.get(example.id, Timing(example.id, {}, {}))
    record = {
        **_answers(prediction, example, scores),
        "stage": outcome(example, prediction).stage if prediction.retrieved else None,
        "seconds": timing.seconds,
        "usage": {stage: asdict(spent) for stage, spent in timing.usage.items()},
        "rounds": trace.get("rounds", []),
        "rest": {name: value for name, value in trace.items() if name not in _TOLD},
    }
    asked = [
        {"stage": each["stage"], "shown": each["shown"], "call": None if calls is None else calls.get(each["reply"])}
        for each in trace.get("calls", ())
    ]
    return record | {"calls": asked, "asked": calls is not None}


def _answers(prediction: Prediction, example: Example, scores: Mapping[str, float]) -> dict[str, Any]:
    gold = {normalise(name) for name in example.answers}
    answered = {normalise(name) for name in prediction.answers}
    supports = prediction.grounding.support if prediction.grounding else (None,) * len(prediction.answers)
    return {
        "status": prediction.status,
        "error": None if prediction.error is None else asdict(prediction.error),
        "answers": [
            {
                "name": name,
                "id": id,
                "score": scores.get(name),
                "citations": citations,
                "support": support,
                "right": normalise(name) in gold if gold else None,
            }
            for name, id, citations, support in zip(
                prediction.answers, prediction.answer_ids, prediction.citations, supports, strict=True
            )
        ],
        "found": [normalise(name) in answered for name in example.answers],
        "linked": None if prediction.linked is None else asdict(prediction.linked),
    }


def _wanted(runs: Sequence[Run], examples: Sequence[Example], traces: Sequence[GrowingLines]) -> set[str]:
    """Return the keys of all replies that the runs used."""
    return {
        call["reply"]
        for run, trace in zip(runs, traces, strict=True)
        for example in examples
        if example.id in run.predictions
        for call in read_trace_line(trace, example.id).get("calls", ())
    }


def call_detail(each: RecordedReply) -> dict[str, Any]:
    """Return the content of a recorded call."""
    call, reply = each.call, each.reply
    return {
        "model": call.model,
        "messages": [{"role": message.role, "text": message.text} for message in call.messages],
        "reply": reply.text,
        "tools": [{"name": tool.name, "arguments": dict(tool.arguments)} for tool in reply.tool_calls],
        "stop": reply.stop,
        "usage": asdict(reply.usage),
        "seconds": reply.seconds,
    }


class NodeNames:
    """Names of nodes, each looked up once."""

    def __init__(self, store: GraphStore | None) -> None:
        self._store = store
        self._known: dict[str, str] = {}

    def of(self, runs: Sequence[Run], example: Example, traces: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """Return the names of a question's nodes, less those that are named as their ids."""
        told: dict[str, str] = {}
        ids: dict[str, None] = {}
        for run, trace in zip(runs, traces, strict=True):
            prediction = run.predictions.get(example.id)
            if prediction is not None:
                told |= {
                    id: name
                    for id, name in zip(prediction.answer_ids, prediction.answers, strict=True)
                    if id is not None
                }
            for one in trace.get("rounds", ()):
                linked = one.get("linked") or {}
                told |= {each["id"]: each["name"] for part in ("entities", "drafts") for each in linked.get(part, ())}
                for item in map(read_evidence, one.get("evidence", ())):
                    ids |= dict.fromkeys(str(id) for id in nodes_of(item, sys.maxsize) if id)
                    told |= {str(node.id): node.name for node in _find_named_nodes(item)}
        if self._store is not None:
            new = [EntityId(id) for id in ids if id not in self._known]
            self._known |= {str(id): name for id, name in node_names(self._store, new).items()}
        names = {id: self._known.get(id, told.get(id, id)) for id in [*told, *ids]}
        return {id: name for id, name in names.items() if name != id}


def _find_named_nodes(item: Evidence) -> Iterator[Node | NodeCell]:
    """Yield the nodes that a piece of evidence holds with their names."""
    if isinstance(item, NodeEvidence):
        yield item.node
    elif isinstance(item, RowsEvidence):
        yield from (cell for cell in flat_cells(item.rows) if isinstance(cell, NodeCell))


_DRAWN = ("layout", "drawing", "evidence", "rounds", "answer")

SCRIPTS = ("dom", "data", "charts", "overview", "list", *_DRAWN, "question", "main")
"""The parts of the page's script, in the order in which they stand in it."""

LIVE_SCRIPTS = ("dom", "charts", *_DRAWN, "live", "questions")
"""Likewise of the page that `report.server` serves."""

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
    summary = summarise(runs, examples, baseline)
    summary["blocks"] = {name: each.starts for name, each in blocks.items()}
    parts = {
        **_code(_part("report.css"), SCRIPTS),
        "summary": packed(summary),
        "blocks": "".join(_elements(name, each) for name, each in blocks.items()),
    }
    return _SLOT.sub(lambda slot: parts[slot[1]], _part("page.html"))


def live_page() -> str:
    """Return the page that `report.server` serves, which asks it for everything that it shows."""
    parts = _code(_part("report.css") + _part("live.css"), LIVE_SCRIPTS)
    return _SLOT.sub(lambda slot: parts[slot[1]], _part("live.html"))


def _code(style: str, scripts: Sequence[str]) -> dict[str, str]:
    """Return a page's style and script, and the hashes by which its policy allows them."""
    script = '"use strict";\n{\n' + "".join(_part(f"{name}.js") for name in scripts) + "}\n"
    return {"style": style, "style_hash": _hash(style), "script": script, "script_hash": _hash(script)}


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


def _elements(name: str, blocks: Blocks) -> str:
    # Of a type that no browser runs: data that a script reads.
    return "".join(
        f'<script type="text/plain" id="block-{name}-{number}">{block}</script>\n'
        for number, block in enumerate(blocks.packed)
    )
