"""`byokg demo` and `byokg reproduce`: pipelines from recorded replies, and tables of papers with the user's model."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from byokg.cli.config import Settings, read_settings
from byokg.cli.eval_commands import Grid, Job, run_grid
from byokg.cli.evaluation import evaluate, open_questions, open_store
from byokg.cli.terminal import INCOMPLETE, WRONG, ConfigDir, Output, Quiet, note, print_line
from byokg.errors import ConfigError, MissingExtra, RunError, one_of
from byokg.evaluation.comparability import PublishedData, PublishedResult, PublishedTable, read_tables
from byokg.files import sha256

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from byokg.evaluation.profiles import Profile
    from byokg.evaluation.run_folder import Run

REPLIES = Path(__file__).parents[1] / "data" / "replies"
RECORDING = REPLIES / "atlas.jsonl.xz"
QUESTIONS = REPLIES / "atlas_questions.txt"
"""Recorded replies of a strong language model, and the ids of the questions."""

PIPELINES = ("direct", "text", "byokg_scoring", "byokg", "byokg_lean")
"""Of the replayed comparison; the others are compared with the first."""

_MODEL = ("llm.provider=recorded", "llm.model=strong-language-model")
_DIGITS = 12
_PROCESSES = 2
"""Of the questions without a language model."""

_QUERY_S = 300
"""Seconds of a query in the comparison: a limit that a busy machine meets would change prompts."""


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
    from byokg.evaluation.run_folder import code_version

    folder, output = out or Path("runs") / f"demo-{code_version().digest}", Output(quiet=quiet)
    cache = () if out is None else (f"graph.cache={out}",)
    words, answered = ("pipeline=offline", "dataset=atlas", *cache), folder / "offline"
    comparison: Table | str
    with sharded(words, answered, output):
        if not RECORDING.is_file():
            comparison = "no replies are recorded for the comparison of pipelines with a language model: make record"
        elif importlib.util.find_spec("arcadedb_embedded") is None:
            comparison = str(MissingExtra("arcadedb-embedded", "cypher", "the replayed comparison"))
        else:
            os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")  # engines run for seconds only
            comparison = replay(RECORDING, folder, cache, output)
    evaluate(read_settings([*words, f"out={answered}"]), replace(output, quiet=True))
    output.out.print()
    output.out.print(comparison)
    print_line(output.out, f"run folders: {folder}")
    if not quiet:
        note('next: byokg ask "Which countries does the Danube flow through?" dataset=atlas')


@contextmanager
def sharded(words: Sequence[str], out: Path, output: Output) -> Iterator[None]:
    """Evaluate in processes, a shard each, while something else is done; at the end the whole run is in `out`.

    Raises:
        RunError: a process failed, for the reason on standard error.
    """
    from byokg.evaluation.run_folder import METRICS_FILE
    from byokg.evaluation.runner import merge_runs

    if (out / METRICS_FILE).is_file():
        yield
        return
    settings = read_settings(words)
    open_store(settings, settings.build("dataset"), output.note).close()  # the processes find its graph built
    output.note(f"answering the questions without a language model, in {_PROCESSES} processes")
    command = (sys.executable, "-P", "-m", "byokg", "eval", "--quiet", *words)
    shards = {out.with_name(f"{out.name}-{n}"): f"shard={n}/{_PROCESSES}" for n in range(1, _PROCESSES + 1)}
    silent = subprocess.DEVNULL
    processes = [subprocess.Popen((*command, shard, f"out={part}"), stdout=silent) for part, shard in shards.items()]
    try:
        yield
        for process in processes:
            process.wait()
    finally:
        for process in processes:
            process.kill()
            process.wait()
    merge_runs(tuple(shards), out)
    for part in shards:
        shutil.rmtree(part)


def replay_settings(pipeline: str, out: Path, replies: Path, *more: str) -> Settings:
    """Return the settings of a run of the comparison.

    Args:
        pipeline: one of `PIPELINES`.
        out: run folder.
        replies: file of recorded replies.
        more: further settings: `llm` (`replay`, `deferred`), and any other.
    """
    place = (f"out={out}", f"replies.path={replies}")
    fixed = ("dataset=atlas", f"ids=@{QUESTIONS}", "graph=arcadedb", f"graph.limits.timeout_s={_QUERY_S}", "workers=2")
    query = (f"pipeline.retrievers.query.timeout_s={_QUERY_S}",) if pipeline.startswith("byokg") else ()
    return read_settings([*fixed, f"pipeline={pipeline}", *query, *_MODEL, *place, *more])


def replay(recording: Path, folder: Path, more: Sequence[str], output: Output) -> Table:
    """Run all pipelines of the comparison from recorded replies.

    Args:
        recording: exported replies.
        folder: parent of the run folders.
        more: further settings of each run.
        output: console of notes.

    Returns:
        The comparison.

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
        try:
            evaluate(settings, Output(Console(quiet=True), quiet=True))
        except RunError:  # all questions failed, perhaps for want of replies
            _check_replies(pipeline, folder / pipeline)
            raise
        _check_replies(pipeline, folder / pipeline)
    runs = read_runs([folder / pipeline for pipeline in PIPELINES])
    return comparison_table(runs, f"{runs[0].config['dataset']['name']}: recorded replies, no new call")


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
    from byokg.evaluation.report.view import average_usage
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
        rows.append(
            [
                run.name,
                *(two_lines(scored.estimates[metric]) for metric in metrics),
                f"{took['calls']:.2f}",
                f"{took['tokens']:,.0f}",
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


# Tables of papers


def reproduce(
    name: Annotated[
        str, typer.Argument(metavar="TABLE", help="table1 to table8 of ByoKG-RAG, graphraft1, graphraft2.")
    ],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[DATASET] [KEY=VALUE]…", help="Column of the table, and settings.")
    ] = None,
    config_dir: ConfigDir = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the runs; under runs/ unless given.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Start without a confirmation of the cost.")] = False,
    published_graph: Annotated[bool, typer.Option("--published-graph", help="The graph is the paper's.")] = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce a table of a paper with your model, and print it beside the published one.

    byokg reproduce table2

    byokg reproduce table2 cwq dataset.root=DIR graph=arcadedb graph.path=DIR llm=bedrock llm.model=ID workers=16

    Without a data set it lists the data that the table needs, and their sources. With one it estimates the cost, asks
    for a confirmation, and runs; the same command continues a run that was stopped. The reasons against a comparison of
    the figures stand below them.
    """
    usage, datasets, tables = read_tables()
    table, output = tables[one_of("TABLE ", name, tables)], Output(quiet=quiet)
    columns = [word for word in words or () if "=" not in word]
    if len(columns) > 1 or not table.columns.keys() >= set(columns):
        raise ConfigError(f"{name} has no column {' '.join(columns)!r}; name one of {', '.join(table.columns)}")
    print_line(output.out, f"{table.paper}: {table.title}")
    for column in columns or table.columns:
        _print_data(column, datasets[column], output)
    if not columns:
        place = f"{next(iter(table.columns))} dataset.root=DIR graph.path=DIR llm=anthropic llm.model=MODEL"
        print_line(output.out, f"next: byokg reproduce {name} {place}")
        return
    [column] = columns
    own = tuple(word for word in words or () if "=" in word)
    one = Reproduction(table, column, datasets[column], own, out or Path("runs") / f"{name}-{column}")
    if table.question:
        from byokg.cli.ask_commands import ask

        print_line(output.out, f"published answer: {table.answer}")
        ask(table.question, list(one.shared), trace=True)
    elif one.needs_runs:
        _reproduce(one, usage, published_graph, yes, output)
    else:
        output.out.print(one.beside({}, output))


def _print_data(column: str, data: PublishedData, output: Output) -> None:
    """Print the source of a column's questions and its graph."""
    from byokg.evaluation.datasets.fetch import sources

    source = sources()[data.source]
    fetched = f"byokg data fetch {source.name}" if source.files else "by hand"
    print_line(output.out, f"  {column}: {data.n:,} questions, {source.page} ({source.licence}; {fetched})")
    print_line(
        output.out, f"    graph: {data.graph}, as graph.path=DIR or ADDRESS; settings: {' '.join(data.settings)}"
    )


def _reproduce(
    one: Reproduction, usage: Mapping[str, Sequence[int]], published_graph: bool, yes: bool, output: Output
) -> None:
    """Estimate the cost, run, and print the table."""
    from byokg.evaluation.run_folder import read_runs

    jobs = one.jobs()
    settings = {system: read_settings(job.words) for system, job in jobs.items()}
    asked = _open_all(tuple(settings.values()), output)
    output.out.print(one.estimate(settings, usage, asked))
    if not yes and not _confirmed(output):
        raise typer.Exit(INCOMPLETE)
    outcomes = run_grid(Grid(tuple(jobs.values()), one.folder, ()), tuple(settings.values()), output)
    if failed := [outcome for outcome in outcomes if outcome.error]:
        raise typer.Exit(INCOMPLETE if all(outcome.incomplete for outcome in failed) else WRONG)
    runs = dict(zip(jobs, read_runs([job.folder for job in jobs.values()]), strict=True))
    output.out.print(one.beside(runs, output))
    reasons = dict.fromkeys(
        one.reasons(runs, str(settings[next(iter(jobs))].components["llm"]["model"]), published_graph)
    )
    for reason in reasons:
        print_line(output.out, f"not comparable: {reason}")
    if not reasons:
        print_line(output.out, "comparable: the same questions, graph, topic entities, scoring and model")


def _open_all(settings: Sequence[Settings], output: Output) -> int:
    """Open graph and pipeline of every run, so that errors precede the first call; return the number of questions.

    Raises:
        ConfigError: a run has no language model, or its graph lacks a query engine.
        DatasetError: the questions or their graph are missing.
    """
    from byokg.cli.evaluation import open_session
    from byokg.cli.questions import pick

    noted: set[str] = set()

    def note(text: str) -> None:
        if text not in noted:
            noted.add(text)
            output.note(text)

    asked = None
    for its in settings:
        if "llm" not in its.components:
            raise ConfigError("these runs ask a language model; add llm=anthropic llm.model=MODEL")
        dataset = its.build("dataset")
        candidates = pick(dataset, its.run, note)
        with open_session(its, dataset, note, batch=True) as session:
            if asked is None:
                asked = len(session.choose(candidates, its.run, note))
    return asked or 0


def _confirmed(output: Output) -> bool:
    """Return True if the user confirms the cost; without a terminal nobody can."""
    if not sys.stdin.isatty():
        print_line(output.err, "nothing was asked; add --yes to start")
        return False
    with suppress(typer.Abort):
        return typer.confirm("start?", err=True)
    return False


@dataclass(frozen=True)
class Reproduction:
    """A column of a published table, with the user's settings and the folder of the runs."""

    table: PublishedTable
    column: str
    data: PublishedData
    own: tuple[str, ...]
    folder: Path

    @property
    def shared(self) -> tuple[str, ...]:
        """Return the settings of all runs."""
        return *self.data.settings, *self.table.settings, *self.own

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return the metrics of the column."""
        return self.table.columns[self.column]

    @property
    def needs_runs(self) -> bool:
        """True if figures are of runs, and not of the data alone."""
        return any(row.run for row in self.table.rows)

    def jobs(self) -> dict[str, Job]:
        """Return the run of each system that is not only quoted."""
        jobs = {}
        for row in self.table.rows:
            if row.run and self.column in row.figures:
                place = self.folder / re.sub(r"\W+", "-", row.system.casefold()).strip("-")
                before = (*self.data.settings, *self.table.settings, *row.run, *row.also.get(self.column, ()))
                jobs[row.system] = Job(place.name, (*before, *self.own, f"out={place}"), place)
        return jobs

    def estimate(self, settings: Mapping[str, Settings], usage: Mapping[str, Sequence[int]], questions: int) -> Table:
        """Return questions, calls, tokens and cost of the runs, roughly, less what is recorded."""
        from byokg.evaluation.records import PREDICTIONS, read_predictions
        from byokg.evaluation.tables import figures, labels, table
        from byokg.llm.messages import Usage
        from byokg.llm.usage import PriceTable, dollars

        rows = []
        for system, its in settings.items():
            asked, folder = questions, its.run.out
            if folder is not None and (folder / PREDICTIONS).is_file():
                asked -= sum(1 for _ in read_predictions(folder))
            calls, sent, received = usage[its.options["pipeline"] or ""]
            price = PriceTable(its.run.prices).find(str(its.components["llm"]["model"]))
            cost = "unknown" if price is None else dollars(price.usd(Usage(sent, received)) * asked)
            rows.append((system, *(f"{asked * each:,}" for each in (1, calls, sent, received)), cost))
        columns = figures("questions left", "calls", "tokens in", "tokens out", "US dollars", one_line=False)
        caption = (
            "roughly, as in earlier runs; byokg eval --estimate asks a few questions for a better figure; "
            "budget=usd budget.max_usd=N limits each run"
        )
        return table([*labels("run"), *columns], rows, "expected cost", caption)

    def beside(self, runs: Mapping[str, Run], output: Output) -> Table:
        """Return the published figures and those of the runs."""
        from byokg.cli.score_commands import judged
        from byokg.evaluation.profiles import PROFILES
        from byokg.evaluation.tables import figures, labels, table

        judges = any(metric.startswith("judge:") for metric in self.metrics)
        words = [word for word in self.own if word.startswith(("llm", "replies", "prices"))]
        ours = {} if self.needs_runs else {row.system: self._sizes(output) for row in self.table.rows}
        for system, run in runs.items():
            judge = {"judge": judged(run.cases, words, output.note)} if judges else {}
            profiles = {**PROFILES, **judge}
            ours[system] = [_figure(run, metric, profiles) for metric in self.metrics]
        if "seconds" in self.metrics:
            at = self.metrics.index("seconds")
            quickest = min(found[at] or 1.0 for found in ours.values()) or 1.0
            ours = {
                system: [*found[:at], (found[at] or 0.0) / quickest, *found[at + 1 :]] for system, found in ours.items()
            }
        names = [metric.rpartition(":")[2] for metric in self.metrics]
        several = len(self.table.models) > 1
        published = [f"published, {each}" for each in (self.table.models if several else names)]
        columns = figures(*published, *(f"yours, {name}" for name in names), one_line=False)
        rows = []
        for row in self.table.rows:
            if self.column in row.figures:
                found = ours.get(row.system, [None] * len(names))
                rows.append((row.system, *map(_cell, row.figures[self.column]), *map(_cell, found)))
        return table([*labels("system"), *columns], rows, f"{self.table.paper}, {self.column}")

    def _sizes(self, output: Output) -> list[float | None]:
        """Return sizes of the data."""
        with open_questions(read_settings([*self.shared, "pipeline=offline"]), output.note) as (_, store, examples):
            sizes = {"questions": len(examples), "triples": sum(each.count for each in store.schema().relations)}
        return [sizes[metric] for metric in self.metrics]

    def reasons(self, runs: Mapping[str, Run], model: str, published_graph: bool) -> Iterator[str]:
        """Yield the reasons against a comparison with the published figures."""
        from byokg.evaluation.comparability import mismatch_reasons, run_conditions

        data = self.data
        for system, run in runs.items():
            ours = run_conditions(run)
            for metric in self.metrics:
                profile = metric.rpartition(":")[0] or "any"
                published = PublishedResult(
                    ours.dataset, system, "", metric, 0.0, profile, data.n, data.graph, "linked", False,
                    self.table.paper, True, data.unlike,
                )  # fmt: skip
                yield from mismatch_reasons(published, ours, published_graph)
        there = ", ".join(self.table.models) or "not stated for this table"
        yield f"the language model there is {there}, here {model}"
        if any("trained" in system for system in runs):
            yield "the systems there are trained on questions of this kind, those here are not"


def _figure(run: Run, metric: str, profiles: Mapping[str, Profile]) -> float | None:
    """Return one figure of a run: shares in per cent."""
    from byokg.evaluation.compare import score_cases
    from byokg.evaluation.report.view import average_usage

    profile, _, name = metric.rpartition(":")
    if profile:
        found = score_cases(run.cases, [profiles[profile]])[0].estimates.get(name)
        return None if found is None else 100 * found.value
    overall = None if run.metrics is None else run.metrics.overall
    if name in ("calls", "seconds"):
        return float(average_usage(list(run.timings.values()))[name])
    if overall is None or name == "tokens":
        return None if overall is None else overall.median_tokens
    recall = overall.retrieval.get(name)
    return None if recall is None else 100 * recall.value


def _cell(figure: float | None) -> str:
    return "" if figure is None else f"{figure:,.0f}" if abs(figure) >= 1000 else f"{figure:.1f}"
