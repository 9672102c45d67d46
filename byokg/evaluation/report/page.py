"""The report as one file of HTML that asks the network for nothing.

All that comes from a run, a graph or a language model is in the page as compressed base 64 only, and the page's script
turns it into text nodes and attributes, never into markup. A content security policy allows this one script and this
one style sheet by their hashes, no address at all, and no text to become markup.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from byokg.errors import RunError
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.report.details import Blocks, packed, read_details
from byokg.evaluation.report.summary import summarise
from byokg.evaluation.run_folder import Run
from byokg.files import write_file
from byokg.graph.store import GraphStore
from byokg.llm.replies import RecordedReplies

SCRIPTS = ("dom", "data", "charts", "overview", "list", "layout", "drawing", "evidence", "rounds", "question", "main")
"""The parts of the page's script, in the order in which they stand in it."""

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
        examples: the questions that any of them was asked, in data-set order.
        baseline: position of the run that the others are compared with.
        store: the graph, for the names of its nodes; None shows ids where a trace holds no name.
        replies: recorded replies, to show prompts and replies; None leaves them out.

    Raises:
        RunError: a run has no traces, or they cannot be read.
        EntityNotFound: a trace holds a node that is not in the store.
    """
    details = read_details(runs, examples, store, replies)
    blocks = {"questions": details.questions, "calls": details.calls, "texts": details.texts}
    summary = summarise(runs, examples, baseline)
    summary["blocks"] = {name: each.starts for name, each in blocks.items()}
    style = _part("report.css")
    script = '"use strict";\n{\n' + "".join(_part(f"{name}.js") for name in SCRIPTS) + "}\n"
    parts = {
        "style": style,
        "style_hash": _hash(style),
        "script": script,
        "script_hash": _hash(script),
        "summary": packed(summary),
        "blocks": "".join(_elements(name, each) for name, each in blocks.items()),
    }
    return _SLOT.sub(lambda slot: parts[slot[1]], _part("page.html"))


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
