"""`byokg eval`, `byokg answer` and `byokg merge`: runs over data sets.

`byokg eval -m` makes one run for each combination of settings, started by a Hydra launcher.
Hydra's grammar defines sweeps (`a,b`, `range(1,4)`), and its launchers run the jobs: here one after another,
in processes (`hydra/launcher=joblib`), or on a SLURM cluster (`hydra/launcher=submitit_slurm`). The settings of each
job are read as for a single run, before the first one starts.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, QuotedString, Transformer
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.table import Table

from byokg.cli.components import config_dirs, groups, quote_path
from byokg.cli.config import Settings, read_setting, read_settings, show_settings
from byokg.cli.evaluation import FAILURES_LISTED, evaluate, open_session, run_settings
from byokg.cli.terminal import INCOMPLETE, WRONG, ConfigDir, Output, Quiet, Words, print_line, shown, stdout
from byokg.errors import ByokgError, ConfigError, MissingExtra, RunError, RunIncomplete
from byokg.evaluation.records import CONFIG, Prediction, read_config, read_timings
from byokg.evaluation.report.view import average_usage
from byokg.evaluation.run_folder import read_metrics
from byokg.evaluation.runner import merge_runs
from byokg.evaluation.tables import TITLES, figures, labels, metrics_tables, percent, table
from byokg.files import csv_lines, json_line, refuse_taken, write_file

LAUNCHERS = {"joblib": "sweep", "submitit_local": "slurm", "submitit_slurm": "slurm"}
"""Launchers that need an extra, and which."""

_LAUNCHER = "hydra/launcher"
_HYDRA = ("hydra.", "hydra/")
_SHOWN = ("hit", "hits@1", "f1", "em")
_NAME_LENGTH = 120
_HASH_DIGITS = 8


def eval_(
    words: Words = None,
    config_dir: ConfigDir = None,
    quiet: Quiet = False,
    show: Annotated[bool, typer.Option("--show", help="Print the settings as YAML and exit.")] = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Ask a few questions, estimate the cost of all, and exit.")
    ] = False,
    sample: Annotated[int, typer.Option(min=1, help="Questions that --estimate asks.")] = 10,
    multirun: Annotated[
        bool, typer.Option("--multirun", "-m", help="Run every combination of settings with several values.")
    ] = False,
) -> None:
    """Run a pipeline over a data set and score it.

    Settings are KEY=VALUE, for instance:

    byokg eval dataset=atlas

    byokg eval dataset=metaqa dataset.root=DIR dataset.hops=2 limit=500 workers=2

    byokg eval dataset=folder dataset.root=DIR linking.entities=gold out=runs/mine

    byokg eval dataset=folder dataset.root=DIR graph.path=neo4j://HOST graph.id_property=id

    byokg eval pipeline=byokg llm=anthropic llm.model=MODEL dataset=atlas budget=usd budget.max_usd=5 --estimate

    byokg eval -m dataset=atlas linking=exact,fuzzy pipeline.beam=8,32 out=runs/beams

    The same command continues a run that was interrupted, and shows the result of one that is finished.
    """
    if multirun:
        if show or estimate:
            raise ConfigError("--show and --estimate are for a single run; leave out -m")
        outcomes = sweep(words or [], Output(quiet=quiet))
        broken = [outcome for outcome in outcomes if outcome.error]
        if broken:
            raise typer.Exit(INCOMPLETE if all(outcome.incomplete for outcome in broken) else WRONG)
        return
    settings = read_settings(words or [])
    if show:
        print(show_settings(settings), end="")
        return
    evaluate(settings, Output(quiet=quiet), sample if estimate else None)


def answer(
    questions: Annotated[
        Path, typer.Argument(metavar="QUESTIONS", help="Questions: plain lines, JSON lines, JSON, CSV or .tsv.")
    ],
    words: Words = None,
    config_dir: ConfigDir = None,
    graph: Annotated[str, typer.Option(metavar="PLACE", help="Folder or address of the graph, as graph.path=.")] = "",
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Answers: JSON lines, or by its ending .csv or .txt.")
    ] = Path("answers.jsonl"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace answers that are there already.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")] = False,
) -> None:
    """Answer a file of questions that have no gold answers.

    byokg answer questions.txt --graph DIR --out answers.jsonl

    byokg answer questions.csv --graph DIR --out answers.csv pipeline=byokg llm=anthropic llm.model=MODEL workers=8

    What led to each answer is kept in a run folder beside the file; byokg trace shows it. The same command continues
    what was interrupted. Answers that are there already are replaced with --overwrite only, and other files never.
    """
    place = [f"graph.path={graph}"] if graph else []
    answer_file(questions, read_settings([*(words or []), *place]), out, overwrite, Output(quiet=quiet))


def answer_file(questions: Path, settings: Settings, out: Path, overwrite: bool, output: Output) -> None:
    """Answer a file of questions without gold answers, and write the answers to `out`.

    Raises:
        ConfigError: the settings do not fit together, or name no graph.
        GraphExists: something is at `out`; with `overwrite`, only answers are replaced.
        DatasetError: the questions cannot be read.
        RunError: the run folder beside `out` cannot be used.
        RunIncomplete, KeyboardInterrupt: the run was stopped; how to continue it has been said.
    """
    from byokg.evaluation.datasets.folder import unanswered
    from byokg.evaluation.runner import Measurement, answer_all, clear_other_run

    _refuse_settings(questions, settings, out)
    folder = out.with_name(f"{out.name}.run")
    refuse_taken(out, overwrite, "answers are", lambda _: (folder / CONFIG).is_file(), "file")
    asked = unanswered(questions)
    examples = asked.examples[: settings.run.limit]
    dataset = settings.build("dataset") if settings.options["dataset"] else None
    with open_session(settings, dataset, output.note, batch=True) as session:
        run = run_settings(settings, session, questions.name, asked.checksum)
        measurement = Measurement(None if session.llm is None else session.llm.meter, settings.run.deadline_s)
        if overwrite:
            clear_other_run(folder, run, examples)
        try:
            with shown(questions.name, len(examples), output) as progress:
                workers = settings.run.workers
                found = answer_all(session.pipeline, examples, folder, run, workers, progress, measurement)
        except (KeyboardInterrupt, RunIncomplete):
            print_line(output.err, f"what is answered is recorded in {folder}; the same command continues there")
            raise
    texts = {example.id: example.question for example in examples}
    write_file(out, _answer_lines(found, texts, out.suffix))
    failed = [each for each in found if not each.has_outcome]
    for each in failed[:FAILURES_LISTED]:
        output.note(f"failed {each.id}: {each.error.message if each.error else each.status}")
    without = sum(each.has_outcome and not each.answers for each in found)
    counts = f"{len(found):,} questions, {len(failed):,} failed, {without:,} without an answer"
    output.note(f"{counts}: {out}; traces: {folder}")


def _refuse_settings(questions: Path, settings: Settings, out: Path) -> None:
    """Raise `ConfigError` for settings that make no sense with a file of questions."""
    if settings.run.repeats > 1:
        raise ConfigError(
            "repeats= measures how much answers vary, for byokg eval; byokg answer asks once, leave it out"
        )
    if settings.run.graph.path is None and not settings.options["dataset"]:
        raise ConfigError("no graph is named; add --graph DIR, or the address of a server")
    if out.resolve() == questions.resolve():
        raise ConfigError(f"the answers would overwrite the questions in {str(questions)!r}; give another --out")
    if settings.run.out is not None:
        raise ConfigError("out= names the run folder of byokg eval; byokg answer writes to --out FILE")


def _answer_lines(found: Sequence[Prediction], texts: Mapping[str, str], ending: str) -> Iterator[bytes]:
    """Yield the lines of a file of answers: JSON lines, CSV, or for `.txt` the answers of each question in a line."""
    if ending == ".csv":
        yield from csv_lines([("id", "question", "answers", "answer_ids", "grounded", "status")])
        for each in found:
            ids = "; ".join(id or "" for id in each.answer_ids)
            grounded = "; ".join("yes" if one else "no" for one in each.grounded)
            yield from csv_lines([(each.id, texts[each.id], "; ".join(each.answers), ids, grounded, each.status)])
        return
    for each in found:
        if ending == ".txt":
            line = "; ".join(" ".join(answer.split()) for answer in each.answers)
            yield f"{line}\n".encode("utf-8", "backslashreplace")
            continue
        error = {} if each.error is None else {"error": f"{each.error.type}: {each.error.message}"}
        fields = {"id": each.id, "question": texts[each.id], "status": each.status, "answers": each.answers}
        yield json_line({**fields, "answer_ids": each.answer_ids, "grounded": each.grounded, **error})


def merge(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of all shards of one run.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Run folder to write.")],
) -> None:
    """Put the shards of a run together and score the whole.

    byokg eval dataset=atlas shard=1/2 out=runs/part-1

    byokg eval dataset=atlas shard=2/2 out=runs/part-2

    byokg merge runs/part-1 runs/part-2 --out runs/whole

    The result is that of the run in one piece, byte for byte but for the timings.
    """

    metrics = merge_runs(folders, out)
    console = stdout()
    config = read_config(out)
    console.print(metrics_tables(metrics, config["dataset"]["name"], config["questions"].get("repeats", 1)))
    print_line(console, f"run folder: {out}")


# Grids


@dataclass(frozen=True)
class Job:
    """One combination of settings."""

    name: str
    """The settings that differ between jobs, as a folder's name."""
    words: tuple[str, ...]
    folder: Path


@dataclass(frozen=True)
class JobOutcome:
    """How a job ended."""

    name: str
    error: str = ""
    """Empty for success."""
    incomplete: bool = False
    """Whether the same command continues it."""


@dataclass(frozen=True)
class Grid:
    """All jobs of a sweep, and how they are started."""

    jobs: tuple[Job, ...]
    folder: Path
    launcher: tuple[str, ...]
    """Hydra's own settings."""


def read_grid(words: Sequence[str]) -> Grid:
    """Read the jobs of a command line: the product of all swept settings, in the given order.

    Args:
        words: `KEY=VALUE`, of which VALUE may be a sweep. The grid of an experiment (`hydra.sweeper.params`)
            comes first; the command line replaces its entries. Lists are written in brackets.

    Raises:
        ConfigError: nothing is swept, or another Hydra sweeper is chosen.
    """
    ours = [word for word in words if not word.startswith(_HYDRA)]
    launcher = tuple(word for word in words if word.startswith(_HYDRA))
    for word in launcher:
        if word.startswith(("hydra/sweeper", "hydra.sweep")):
            raise ConfigError(f"{word} is not for byokg eval -m, which runs all combinations; leave it out")
    values: dict[str, list[str]] = {}
    for key, text in {**_listed_grid(ours), **dict(map(read_setting, ours))}.items():
        values[key] = [_unquoted(text)] if key == "out" else _swept(key, text)  # a folder's name may hold commas
    out = values.pop("out", None)
    swept = [key for key, choices in values.items() if len(choices) > 1]
    if not swept:
        raise ConfigError("-m has nothing to sweep; write several values, for instance pipeline.rounds.most=1,2,3")
    folder = Path(out[0]) if out else Path("runs") / f"sweep-{_digest(' '.join(ours))}"
    jobs, taken_names = [], dict[str, str]()
    for choices in itertools.product(*values.values()):
        chosen = dict(zip(values, choices, strict=True))
        name = _folder_name(",".join(f"{key}={chosen[key]}" for key in swept))
        settings = tuple(f"{key}={value}" for key, value in chosen.items())
        if name != taken_names.setdefault(name.casefold(), name):  # one folder to systems that ignore case
            name = f"{name}-{_digest(name)}"
        jobs.append(Job(name, (*settings, f"out={folder / name}"), folder / name))
    return Grid(tuple(jobs), folder, launcher)


def sweep(words: Sequence[str], output: Output) -> list[JobOutcome]:
    """Run all jobs, and print one table of their results; a job that fails does not stop the others.

    The same command continues unfinished runs and only reads finished ones. Words are those of `read_grid`.

    Raises:
        ConfigError: the words are wrong, for all jobs alike.
        MissingExtra: the launcher is not installed.
    """
    grid = read_grid(words)
    return run_grid(grid, tuple(read_settings(job.words) for job in grid.jobs), output)


def run_grid(grid: Grid, settings: tuple[Settings, ...], output: Output) -> list[JobOutcome]:
    """Run the jobs of a grid with their settings, and print one table of their results, as `sweep` does."""
    outcomes = _launch(grid, _Runner(grid.jobs, settings, output.quiet), output.err)
    out = output.out
    ended = {outcome.name: outcome for outcome in outcomes}
    shown = [ended.get(job.name, JobOutcome(job.name, "its process ended without a result")) for job in grid.jobs]
    out.print(_table(grid, shown))
    for outcome in shown:
        if outcome.error:
            what = "incomplete" if outcome.incomplete else "failed"
            print_line(out, f"{what} {outcome.name}: {outcome.error}")
    print_line(out, f"run folders: {grid.folder}")
    return shown


@dataclass(frozen=True)
class _Runner:
    """The function that a launcher calls in each job, possibly in another process or on another machine."""

    jobs: tuple[Job, ...]
    settings: tuple[Settings, ...]
    """Of each job."""
    quiet: bool

    def __call__(self, config: DictConfig) -> JobOutcome:
        """Run the job whose number the configuration holds."""
        number = int(config.job)
        job = self.jobs[number]
        output = Output(Console(quiet=True), quiet=self.quiet)
        output.note(f"job {number + 1} of {len(self.jobs)}: {job.name}")
        try:
            evaluate(self.settings[number], output)
        except RunIncomplete as error:
            return JobOutcome(job.name, str(error), incomplete=True)
        except Exception as error:  # whatever ends one job, the others go on
            return JobOutcome(job.name, f"{type(error).__name__}: {error}")
        return JobOutcome(job.name)


def _launch(grid: Grid, run: _Runner, err: Console) -> list[JobOutcome]:
    """Hand the jobs to Hydra's launcher; return the outcomes of those that came back."""
    _refuse_missing(grid.launcher)
    settings = [
        *grid.launcher,
        f"hydra.sweep.dir={quote_path(grid.folder)}",
        "hydra.sweep.subdir=.",
        "hydra.output_subdir=null",
        "hydra/job_logging=none",
        "hydra/hydra_logging=none",
        f"+job=range(0,{len(grid.jobs)})",
    ]
    with initialize_config_dir(str(config_dirs()[0].resolve()), job_name="byokg", version_base="1.3"):
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        try:
            batches = hydra.multirun(None, run, settings, with_log_configuration=False)
        except HydraException as error:
            raise ConfigError(f"Hydra refuses {' '.join(grid.launcher)}: {error}") from error
        except (ByokgError, OSError):
            raise
        except Exception as error:  # a launcher raises any exception when a job's process dies
            print_line(err, f"{type(error).__name__}: {error}")
            return []
    (grid.folder / "multirun.yaml").unlink(missing_ok=True)  # Hydra's own record; each run's config.yaml has more
    return [each.return_value for batch in batches for each in batch]


def _refuse_missing(launcher: Sequence[str]) -> None:
    import importlib.util

    for word in launcher:
        key, _, name = word.partition("=")
        if key == _LAUNCHER and name in LAUNCHERS:
            package = f"hydra_{name.partition('_')[0]}_launcher"
            if importlib.util.find_spec(f"hydra_plugins.{package}") is None:
                raise MissingExtra(package.replace("_", "-"), LAUNCHERS[name], word)


def _listed_grid(words: Sequence[str]) -> dict[str, str]:
    """Return the grid that the chosen options list, as text by setting."""
    chosen = [word for word in words if word.partition("=")[0] in groups() and len(_swept(*read_setting(word))) == 1]
    try:
        with initialize_config_dir(str(config_dirs()[0].resolve()), version_base="1.3"):
            config = compose("config", chosen, return_hydra_config=True)
            params = config.hydra.sweeper.params
            listed = {} if params is None else cast("dict[str, Any]", OmegaConf.to_container(params, resolve=True))
    except HydraException:
        return {}  # the reader of the jobs' settings has a better message
    return {key: str(value) for key, value in listed.items()}


def _swept(key: str, text: str) -> list[str]:
    """Return the values that a setting takes; text that is no sweep is one value, taken literally."""
    try:
        override = OverridesParser.create().parse_override(f"{key}={text}")
    except HydraException:
        return [text]
    if override.is_sweep_override() and override.is_discrete_sweep():
        return [_as_word(value) for value in override.sweep_iterator(Transformer.identity)]
    return [_unquote_value(override, text)]


def _unquote_value(override: Override, text: str) -> str:
    """Return one value: without the quotes that keep commas from being a sweep, and lists without brackets."""
    value = override.value()
    return (
        _as_word(value) if isinstance(value, list) else value if _is_quoted(text) and isinstance(value, str) else text
    )


def _unquoted(text: str) -> str:
    return text[1:-1] if _is_quoted(text) else text


def _is_quoted(text: str) -> bool:
    return text[:1] in ("'", '"') and text[-1:] == text[:1]


def _as_word(value: Any) -> str:
    """Write a value as it is typed in a setting of a single run."""
    if isinstance(value, QuotedString):
        return value.text
    if isinstance(value, list):
        return ",".join(map(_as_word, value))
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _folder_name(text: str) -> str:
    """Return a folder's name with the settings, and a digest if they look alike in it."""
    name = re.sub(r"[^\w.,=+-]+", "-", text).strip(".-")
    return name if name == text and len(name) <= _NAME_LENGTH else f"{name[:_NAME_LENGTH]}-{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]


def _table(grid: Grid, outcomes: Sequence[JobOutcome]) -> Table:
    """Return one row for each job: percentages, and the cost of a question."""
    rows: list[tuple[str, ...]] = []
    asked = False
    for job, outcome in zip(grid.jobs, outcomes, strict=True):
        try:
            summary = read_metrics(job.folder).overall
            took = average_usage(list(read_timings(job.folder)))
        except RunError:
            rows.append((job.name, "incomplete" if outcome.incomplete else "failed"))
            continue
        asked = asked or took["calls"] > 0
        shown = (percent(summary.estimates[name].value) for name in _SHOWN)
        evidence = summary.retrieval.get("recall")
        costs = f"{took['seconds']:.2f}", f"{took['calls']:.2f}", f"{took['tokens']:,.0f}"
        recall = "" if evidence is None else percent(evidence.value)
        rows.append((job.name, f"{summary.n:,}", f"{summary.failed:,}", *shown, recall, *costs))
    columns = [*labels(""), *figures("n", "failed", *(TITLES[name] for name in _SHOWN), "evid.", "sec.")]
    columns += figures("calls", "tokens") if asked else []
    caption = "evid.: share of gold answers in the evidence, %; sec. and what follows: mean of a question"
    return table(columns, [row[: len(columns)] for row in rows], f"{len(grid.jobs)} runs", caption)
