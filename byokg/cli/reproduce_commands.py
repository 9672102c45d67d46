"""`byokg demo`: the shipped questions without a language model, and pipelines with one, from recorded replies."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from byokg.cli.config import Settings, read_settings
from byokg.cli.evaluation import evaluate
from byokg.cli.terminal import Output, Quiet, note, print_line
from byokg.errors import MissingExtra, RunError
from byokg.files import sha256

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from byokg.evaluation.run_folder import Run

REPLIES = Path(__file__).parents[1] / "data" / "replies"
RECORDING = REPLIES / "atlas.jsonl.xz"
QUESTIONS = REPLIES / "atlas_questions.txt"
"""Recorded replies of a strong language model, and the ids of the questions."""

PIPELINES = ("direct", "text", "byokg_scoring", "byokg", "byokg_lean")
"""Of the replayed comparison; the others are compared with the first."""

_MODEL = ("llm.provider=recorded", "llm.model=strong-language-model")
_DIGITS = 12


def demo(
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the runs; under runs/ unless given.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Answer the shipped questions without a language model, then replay ByoKG-RAG and its baselines with one.

    Needs no key, GPU or server. Both tables are computed: only the replies of the language model are read from a
    recording (byokg/data/replies), whose queries need an openCypher engine: pip install 'byokg[cypher]'.
    """
    cache = [] if out is None else [f"graph.cache={out}"]
    folder = [] if out is None else [f"out={out / 'offline'}"]
    output = Output(quiet=quiet)
    evaluate(read_settings(["pipeline=offline", "dataset=atlas", *cache, *folder]), output)
    print_line(output.out, "")
    if not RECORDING.is_file():
        print_line(
            output.out, "no replies are recorded for the comparison of pipelines with a language model: make record"
        )
    elif importlib.util.find_spec("arcadedb_embedded") is None:
        print_line(output.out, str(MissingExtra("arcadedb-embedded", "cypher", "the replayed comparison")))
    else:
        replay(RECORDING, out or Path("runs") / f"demo-{sha256(RECORDING)[:_DIGITS]}", cache, output)
    if not quiet:
        note('next: byokg ask "Which countries does the Danube flow through?" dataset=atlas')


def replay_settings(pipeline: str, out: Path, replies: Path, *more: str) -> Settings:
    """Return the settings of a run of the comparison.

    Args:
        pipeline: one of `PIPELINES`.
        out: run folder.
        replies: file of recorded replies.
        more: further settings: `llm` (`replay`, `deferred`), and any other.
    """
    place = (f"out={out}", f"replies.path={replies}")
    fixed = ("dataset=atlas", f"ids=@{QUESTIONS}", "graph=arcadedb", "workers=2")
    return read_settings([*fixed, f"pipeline={pipeline}", *_MODEL, *place, *more])


def replay(recording: Path, folder: Path, more: Sequence[str], output: Output) -> None:
    """Run all pipelines of the comparison from recorded replies, and print it.

    Args:
        recording: exported replies.
        folder: parent of the run folders.
        more: further settings of each run.
        output: consoles of the table, and of notes.

    Raises:
        RunError: a prompt has no recorded reply.
        ReplyStoreError: the recording cannot be read.
    """
    from byokg.evaluation.run_folder import read_runs
    from byokg.llm.reply_files import import_replies
    from byokg.llm.reply_store import RecordedReplies

    replies = folder / f"replies-{sha256(recording)[:_DIGITS]}.sqlite"
    if not replies.is_file():
        partial = replies.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        with RecordedReplies(partial) as store:
            import_replies(store, recording)
        partial.rename(replies)
    for pipeline in PIPELINES:
        output.note(f"replaying pipeline={pipeline}")
        settings = replay_settings(pipeline, folder / pipeline, replies, "llm=replay", "replies.mode=replay", *more)
        with suppress(RunError):  # raised if all questions failed; the check has the reason
            evaluate(settings, Output(Console(quiet=True), quiet=True))
        _check_replies(pipeline, folder / pipeline)
    runs = read_runs([folder / pipeline for pipeline in PIPELINES])
    output.out.print(comparison_table(runs, f"{runs[0].config['dataset']['name']}: recorded replies, no new call"))
    print_line(output.out, f"run folders: {folder}")


def _check_replies(pipeline: str, folder: Path) -> None:
    """Raise `RunError` for the first question without a recorded reply; its run is removed, since it counts as none."""
    from byokg.evaluation.records import read_predictions

    for prediction in read_predictions(folder):
        error = prediction.error
        if error is not None and error.type == "ReplyMissing":
            shutil.rmtree(folder)
            raise RunError(
                f"pipeline={pipeline}, question {prediction.id!r}: {error.message}. "
                "Prompts have changed since the recording; record their replies: make record"
            )


def comparison_table(runs: Sequence[Run], title: str) -> Table:
    """Return one row a run: Hits@1, F1, calls and tokens a question, and differences from the first run.

    Raises:
        RunError: the runs have different questions.
    """
    from byokg.evaluation.compare import compare_runs, score_cases
    from byokg.evaluation.metrics import PROFILE
    from byokg.evaluation.profiles import PROFILES
    from byokg.evaluation.report.summary import average_usage
    from byokg.evaluation.significance import Difference
    from byokg.evaluation.tables import TITLES, figures, labels, table, two_lines

    def change(difference: Difference) -> str:
        low, high = difference.ci95
        return f"{100 * difference.value:+.1f}\n{100 * low:+.1f} to {100 * high:+.1f}"

    profile, metrics = PROFILES[PROFILE], ("hits@1", "f1")
    changes = [{}, *(one.differences for one in compare_runs(runs, profile))]
    rows: list[Sequence[str | Text]] = []
    for run, changed in zip(runs, changes, strict=True):
        [scored] = score_cases(run.cases, [profile])
        took = average_usage(list(run.timings.values()))
        tokens = took["input_tokens"] + took["output_tokens"]
        rows.append(
            [
                run.name,
                *(two_lines(scored.estimates[metric]) for metric in metrics),
                f"{took['calls']:.2f}",
                f"{tokens:,.0f}",
                *(change(changed[metric]) if changed else "" for metric in metrics),
            ]
        )
    titles = [TITLES[metric] for metric in metrics]
    versus = [f"{heading} − {runs[0].name}" for heading in titles]
    caption = (
        f"{len(runs[0].cases)} questions; Hits@1, F1 and differences in points with 95 % intervals (paired bootstrap); "
        "calls and tokens: mean of a question"
    )
    return table([*labels("pipeline"), *figures(*titles, "calls", "tokens", *versus)], rows, title, caption)
