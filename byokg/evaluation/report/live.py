"""Runs as they are now: found under folders, read as they grow, summarised, and looked into question by question.

`Ask` runs a pipeline on a question of the page, which receives each of its stages.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from byokg.errors import RunError
from byokg.evaluation.comparability import ComparisonKey, comparison_key, ranked_groups
from byokg.evaluation.compare import score_cases
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.metrics import METRICS, PROFILE
from byokg.evaluation.profiles import PROFILES
from byokg.evaluation.records import (
    CONFIG,
    PREDICTIONS,
    TRACE,
    Prediction,
    Timing,
    parse_prediction,
    read_config,
    read_timings,
    record_answer,
)
from byokg.evaluation.report.view import (
    NodeNames,
    asked_by,
    average_usage,
    call_detail,
    describe_pipeline,
    differences,
    question_view,
    repeats_shown,
    summarise,
)
from byokg.evaluation.run_folder import (
    METRICS_FILE,
    PAUSED,
    QUESTIONS,
    GrowingLines,
    Run,
    asked_in_all,
    is_written,
    read_metrics,
    read_questions,
    read_trace_line,
    run_names,
)
from byokg.evaluation.runner import Pipeline, measure
from byokg.graph.store import GraphStore
from byokg.llm.reply_store import RecordedReplies
from byokg.llm.retry import set_question
from byokg.llm.usage import UsageMeter
from byokg.pipelines.instrumentation import instrument
from byokg.types import Question

_DEEP = 4
"""Folders within folders in which runs are looked for."""

_RECOUNT_S = 5.0
"""Interval at which the figures of a run that grows are counted."""

_HELD = 8
"""Runs that are kept in memory."""


@dataclass
class LiveRun:
    """One run folder, of which only new lines are read at each request."""

    folder: Path
    colour: int
    name: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    state: str = "stopped"
    """`finished`, `running` (a process holds the folder), `paused` or `stopped`."""
    seen: tuple[object, ...] = ()
    """Sizes and times of its files: if they change, so has the run."""

    def __post_init__(self) -> None:
        self._predictions = GrowingLines(self.folder / PREDICTIONS)
        self._found: dict[str, Prediction] = {}
        self._reading = threading.Lock()
        self.traces = GrowingLines(self.folder / TRACE)

    def look(self) -> bool:
        """True if the run has changed since the last look."""
        finished = (self.folder / METRICS_FILE).is_file()
        held = "paused" if (self.folder / PAUSED).exists() else "running"
        self.state = "finished" if finished else held if is_written(self.folder) else "stopped"
        config, *rest = (_stated(self.folder / name) for name in (CONFIG, PREDICTIONS, METRICS_FILE))
        if not self.seen or config != self.seen[0]:
            self.config = read_config(self.folder)
        found = (config, self.state, *rest)
        changed, self.seen = found != self.seen, found
        return changed

    @property
    def n(self) -> int:
        """Return how many predictions it makes: questions, times how often it asks each."""
        return asked_in_all(self.config.get("questions") or {})

    @property
    def done(self) -> int:
        """Return how many predictions are recorded."""
        return self.n if self.state == "finished" else len(self.read())

    @property
    def repeats(self) -> int:
        """Return how often it asks each question."""
        return int((self.config.get("questions") or {}).get("repeats", 1))

    def read(self) -> Mapping[str, Prediction]:
        """Return the predictions recorded so far, of which only new ones are read."""
        lines = self._predictions
        with self._reading:
            for line in lines.added():
                prediction = parse_prediction(line, str(lines.path))
                self._found[prediction.id] = prediction
            self._found = {id: self._found[id] for id in lines.places}
            return self._found

    def pause(self, paused: bool) -> None:
        """Have the process that runs it wait before its next question, or go on.

        Raises:
            RunError: no process runs it, or its folder cannot be written.
        """
        if self.state not in ("running", "paused"):
            raise RunError(f"run {self.name!r} is {self.state}; only a running one can be paused")
        try:
            if paused:
                (self.folder / PAUSED).touch()
            else:
                (self.folder / PAUSED).unlink(missing_ok=True)
        except OSError as error:
            raise RunError(f"cannot pause {self.name!r}: {error.strerror or error}") from error


def _stated(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


class LiveRuns:
    """All runs under some folders.

    Args:
        places: run folders, or folders that hold them.
        store: for the names of nodes; None shows ids if a trace holds no name.
        replies: recorded replies, to show prompts and replies; None leaves them out.
    """

    def __init__(
        self, places: Sequence[Path], store: GraphStore | None = None, replies: RecordedReplies | None = None
    ) -> None:
        self.places = tuple(places)
        self.store = store
        self.replies = replies
        self.runs: dict[str, LiveRun] = {}
        self.version = 0
        self.changed = threading.Condition()
        self._colours = count()
        self._held: OrderedDict[Path, tuple[object, Run]] = OrderedDict()
        """Runs that were read, each with its state at that time; the one used last at the end."""
        self._figures: dict[tuple[Path, str], tuple[object, dict[str, Any]]] = {}
        """By run and profile, or `took`: the run's state at the time of counting, and the figures."""
        self._counted_at: dict[tuple[Path, str], float] = {}
        self._when: dict[str, int] = {}
        """By run, the version in which it changed last."""
        self._loading = threading.Lock()

    def look(self) -> bool:
        """Read new runs and changes; True if there are any. Wakes threads that wait for changes."""
        folders = [folder for place in self.places for folder in _runs_under(place, _DEEP)]
        known = {run.folder: run for run in self.runs.values()}
        runs = [known.get(folder) or LiveRun(folder, next(self._colours)) for folder in dict.fromkeys(folders)]
        changed = [run.look() for run in runs]
        names = run_names([run.folder for run in runs]) if runs else []
        for run, name in zip(runs, names, strict=True):
            run.name = name
        found = dict(zip(names, runs, strict=True))
        if not any(changed) and found.keys() == self.runs.keys():
            return False
        self.runs = found
        self._tell(name for name, new in zip(names, changed, strict=True) if new)
        return True

    def wait(self, version: int, timeout_s: float) -> tuple[int, list[str]]:
        """Return the version once it is another one than that given, or the time is up; and which runs have changed."""
        with self.changed:
            self.changed.wait_for(lambda: self.version != version, timeout_s)
            return self.version, [name for name, when in self._when.items() if when > version]

    def _tell(self, names: Iterable[str] = ()) -> None:
        with self.changed:
            self.version += 1
            self._when |= dict.fromkeys(names, self.version)
            self.changed.notify_all()

    def named(self, names: Sequence[str]) -> list[LiveRun]:
        """Return runs by name. Raises `RunError` for one that is not there."""
        for name in names:
            if name not in self.runs:
                raise RunError(f"there is no run {name!r} any more; open the list of runs")
        return [self.runs[name] for name in names]

    # Content of the page

    def leaderboard(self, profile: str = PROFILE) -> dict[str, Any]:
        """Return the runs with their figures under a profile, ranked by contract; figures not counted yet are null.

        Raises:
            RunError: there is no such profile.
        """
        if profile not in PROFILES:
            raise RunError(f"profile {profile!r} is not known; choose one of {', '.join(PROFILES)}")
        runs = list(self.runs.values())
        return {
            "version": self.version,
            "profile": profile,
            "profiles": list(PROFILES),
            "metrics": list(METRICS) if profile == PROFILE else [each.name for each in PROFILES[profile].metrics],
            "runs": [self._entry(run, profile) for run in runs],
            "contracts": ranked_groups([_contract(run, profile) for run in runs]),
        }

    def _entry(self, run: LiveRun, profile: str) -> dict[str, Any]:
        return {
            "name": run.name,
            "colour": run.colour,
            "dataset": str((run.config.get("dataset") or {}).get("name", "")),
            "state": run.state,
            "done": run.done,
            "n": run.n,
            "repeated": run.repeats,
            "repeats": self._counted(run, f"repeats {profile}"),
            "how": describe_pipeline(run.config),
            "metrics": self._counted(run, profile) or {},
            "took": self._counted(run, "took") or {},
        }

    def _counted(self, run: LiveRun, kind: str) -> dict[str, Any] | None:
        """Return figures of a run as they were counted last; None if not counted, or if it has finished since."""
        seen, figures = self._figures.get((run.folder, kind), (None, None))
        if seen != run.seen and run.state == "finished":
            if kind != PROFILE:
                return None
            figures = {name: asdict(each) for name, each in read_metrics(run.folder).overall.estimates.items()}
            self._figures[run.folder, kind] = run.seen, figures
        return figures

    def count(self, profile: str) -> bool:
        """Count one of the missing figures of the leaderboard; True if there was one to count."""
        for run in list(self.runs.values()):
            kinds = ["took", *([profile] if run.done else []), *([f"repeats {profile}"] if run.repeats > 1 else [])]
            for kind in kinds:
                seen, now = run.seen, time.monotonic()
                if self._figures.get((run.folder, kind), (None,))[0] == seen:
                    continue
                if run.state != "finished" and now - self._counted_at.get((run.folder, kind), -_RECOUNT_S) < _RECOUNT_S:
                    continue
                self._counted_at[run.folder, kind] = now
                self._figures[run.folder, kind] = seen, self._figures_of(run, kind)
                self._tell()
                return True
        return False

    def _figures_of(self, run: LiveRun, kind: str) -> dict[str, Any]:
        if kind == "took":
            return average_usage(list(read_timings(run.folder)))
        name = kind.removeprefix("repeats ")
        if name != kind:
            return repeats_shown(self._read(run), PROFILES[name]) if run.state == "finished" else {}
        [scored] = score_cases(self._read(run).cases, [PROFILES[name]], 0)
        return {metric: asdict(each) for metric, each in scored.estimates.items()}

    def _read(self, run: LiveRun) -> Run:
        """Return a run as far as it is recorded; of an unfinished one, the answered questions.

        Raises:
            RunError: nothing is recorded yet.
        """
        with self._loading:
            seen, read = self._held.pop(run.folder, (None, None))
            if read is None or seen != run.seen:
                seen, read = run.seen, _read_run(run)
            self._held[run.folder] = seen, read
            if len(self._held) > _HELD:
                self._held.popitem(last=False)
            return replace(read, name=run.name)

    def summary(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the figures and the questions of some runs, as the report has them; without their differences.

        Raises:
            RunError: there is no such run, one has no answer yet, or two are over different data sets.
        """
        live, runs = self._several(names)
        made = summarise(runs, asked_by(runs), 0)
        for entry, run in zip(made["runs"], live, strict=True):
            entry |= {"colour": run.colour, "state": run.state, "done": run.done}
        for columns, run in zip(made["questions"]["runs"], live, strict=True):
            places = {id: place for place, id in enumerate(run.read())}
            columns["place"] = [places.get(id) for id in made["questions"]["id"]]
        return {**made, "version": self.version}

    def differences(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the differences of some runs from the first, for `summary`, whose errors it raises."""
        return {"deltas": differences(self._several(names)[1], 0)}

    def _several(self, names: Sequence[str]) -> tuple[list[LiveRun], list[Run]]:
        live = self.named(names)
        runs = [self._read(run) for run in live]
        for run in runs:
            if run.dataset != runs[0].dataset:
                raise RunError(f"{runs[0].name!r} and {run.name!r} are runs over different data sets; choose others")
        return live, runs

    def question(self, names: Sequence[str], id: str) -> dict[str, Any]:
        """Return a question with what each of some runs made of it, as the report's page draws it.

        Raises:
            RunError: there is no such run, or no such question.
        """
        live, runs = self._several(names)
        example = next((one for run in runs for one in run.questions if one.id == id), None)
        if example is None:
            raise RunError(f"no run asks the question {id!r}")
        return detailed(example, runs, [read_trace_line(run.traces, id) for run in live], self.store, self.replies)


def detailed(
    example: Example,
    runs: Sequence[Run],
    traces: Sequence[Mapping[str, Any]],
    store: GraphStore | None,
    replies: RecordedReplies | None,
) -> dict[str, Any]:
    """Return a question with its outcomes in several runs, each with its trace, as the report's page draws it."""
    calls = None
    if replies is not None:
        keys = {call["reply"] for trace in traces for call in trace.get("calls", ())}
        calls = {each.call.key: call_detail(each) for each in replies.recorded(keys)}
    return question_view(runs, example, traces, NodeNames(store), calls)


def _read_run(run: LiveRun) -> Run:
    found = run.read()
    asked = read_questions(run.folder)
    timings = {each.id: each for each in read_timings(run.folder)}
    if run.state == "finished":
        return Run(run.name, run.folder, run.config, asked, found, timings, read_metrics(run.folder))
    answered = tuple(example for example in asked if example.id in found)
    if not answered:
        raise RunError(f"run {run.name!r} has no answer yet")
    metrics = measure(answered, found.values(), int(run.config.get("seed", 0)))
    return Run(run.name, run.folder, run.config, answered, found, timings, metrics)


def _contract(run: LiveRun, profile: str) -> ComparisonKey:
    return comparison_key(Run(run.name, run.folder, run.config, (), {}, {}, None), profile)


def _runs_under(place: Path, deep: int) -> list[Path]:
    """Return the run folders in a folder, or the folder itself, in the order of their names."""
    if (place / CONFIG).is_file() and (place / QUESTIONS).is_file():
        return [place]
    if not deep:
        return []
    try:
        within = sorted(each for each in place.iterdir() if each.is_dir() and not each.name.startswith("."))
    except OSError:
        return []
    return [folder for each in within for folder in _runs_under(each, deep - 1)]


Event = Mapping[str, Any]
Ask = Callable[[str, Callable[[Event], None]], Event]
"""Answers a question, reports each stage as it begins and ends, and returns the question's record."""


def asker(pipeline: Pipeline, store: GraphStore, meter: UsageMeter | None = None) -> Ask:
    """Return a function that runs a pipeline on one question at a time.

    Args:
        pipeline: answers the question.
        store: the graph, for the names of its nodes.
        meter: counts the usage of the pipeline's language models.
    """
    alone = threading.Lock()

    def ask(text: str, tell: Callable[[Event], None]) -> Event:
        numbers = count()

        @contextmanager
        def watch(stage: str) -> Iterator[dict[str, Any]]:
            number, began = next(numbers), time.perf_counter()
            brought: dict[str, Any] = {}
            tell({"stage": stage, "number": number})
            yield brought
            seconds = time.perf_counter() - began
            tell({"stage": stage, "number": number, "seconds": seconds, "brought": brought})

        with alone:
            began = time.perf_counter()
            with set_question("ask"):
                answer = instrument(pipeline, watch).run(Question("ask", text))
            seconds = time.perf_counter() - began
            usage = None if meter is None else meter.take("ask")
        lines = record_answer(answer, seconds, usage)
        prediction = parse_prediction(lines.predictions, "what was asked")
        timing = Timing("ask", {"total": seconds, **answer.seconds}, {} if usage is None else usage.stages)
        example = Example("ask", text, ())
        run = Run("ask", Path(), {}, (example,), {"ask": prediction}, {"ask": timing}, None)
        return detailed(example, [run], [json.loads(lines.trace)], store, None)

    return ask
