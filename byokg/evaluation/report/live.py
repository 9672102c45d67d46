"""Runs as they are now: found under folders, read as they grow, searched, and looked into question by question."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from byokg.errors import RunError
from byokg.evaluation.comparability import ComparisonKey, comparison_key, ranked_groups
from byokg.evaluation.compare import score_cases
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.metrics import METRICS, PROFILE, STAGES, Scores
from byokg.evaluation.profiles import PROFILES
from byokg.evaluation.records import (
    CONFIG,
    PREDICTIONS,
    TRACE,
    Prediction,
    parse_prediction,
    read_config,
    read_timings,
)
from byokg.evaluation.repeats import repeat_figures
from byokg.evaluation.report.page import NodeNames, call_detail, question_view
from byokg.evaluation.report.summary import average_usage, repeats_shown
from byokg.evaluation.run_folder import (
    METRICS_FILE,
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
from byokg.evaluation.runner import outcome
from byokg.graph.store import GraphStore
from byokg.llm.reply_store import RecordedReplies

PAGE = 100
"""Questions listed at a time."""

_DEEP = 4
"""Folders within folders in which runs are looked for."""

_SHOWN = 240
"""Characters of a question, and of answers, in a list."""

ORDERS = ("given", "latest", "worst", "best")
OUTCOMES = ("", "right", "partly", "wrong", "differ", *STAGES)


@dataclass(frozen=True)
class SharedQuestions:
    """The questions of one version of a data set, as runs share them."""

    examples: tuple[Example, ...]
    folded: tuple[str, ...]
    """Id, text and gold answers of each, in small letters."""
    place: Mapping[str, int]


@dataclass(frozen=True)
class Row:
    """Outcome of one question in one run."""

    scores: Scores
    stage: str | None
    failed: bool
    answers: str
    folded: str
    number: int
    """How many were recorded before."""

    @property
    def mark(self) -> str:
        """Return the correctness of the answers: `right`, `partly`, `wrong` or `failed`."""
        if self.failed:
            return "failed"
        return "wrong" if not self.scores.hit else "right" if self.scores.f1 == 1 else "partly"


@dataclass
class LiveRun:
    """One run folder, of which only new lines are read at each request."""

    folder: Path
    name: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)
    state: str = "stopped"
    """`finished`, `running` (a process holds the folder) or `stopped`."""
    seen: tuple[object, ...] = ()
    """Sizes and times of its files: if they change, so has the run."""

    def __post_init__(self) -> None:
        self._predictions = GrowingLines(self.folder / PREDICTIONS)
        self.traces = GrowingLines(self.folder / TRACE)

    def look(self) -> bool:
        """True if the run has changed since the last look."""
        finished = (self.folder / METRICS_FILE).is_file()
        self.state = "finished" if finished else "running" if is_written(self.folder) else "stopped"
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
    def repeats(self) -> int:
        """Return how often it asks each question."""
        return int((self.config.get("questions") or {}).get("repeats", 1))

    def read(self, asked: SharedQuestions) -> None:
        """Read the predictions that were recorded since."""
        lines = self._predictions
        for line in lines.added():
            prediction = parse_prediction(line, str(lines.path))
            if (at := asked.place.get(prediction.id)) is not None:
                self.rows[prediction.id] = _row(asked.examples[at], prediction, len(lines.places) - 1)
        for id in self.rows.keys() - lines.places.keys():
            self.rows.pop(id, None)

    def recorded(self) -> Iterator[Prediction]:
        """Yield all predictions so far."""
        lines = GrowingLines(self.folder / PREDICTIONS)
        return (parse_prediction(line, str(lines.path)) for line in lines.added())


def _stated(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _row(example: Example, prediction: Prediction, number: int) -> Row:
    its = outcome(example, prediction)
    answers = ", ".join(prediction.answers[:20])[:_SHOWN]
    stage = its.stage if prediction.retrieved is not None or its.failed else None
    return Row(its.scores, stage, its.failed, answers, "\n".join(prediction.answers).lower(), number)


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
        self._asked: dict[str, SharedQuestions] = {}
        self._figures: dict[tuple[Path, str], tuple[object, dict[str, Any]]] = {}
        """By run and profile, or `took`: the run's state at the time of counting, and the figures."""
        self._when: dict[str, int] = {}
        """By run, the version in which it changed last."""
        self._loading = threading.Lock()

    def look(self) -> bool:
        """Read new runs and changes; True if there are any. Wakes threads that wait for changes."""
        folders = [folder for place in self.places for folder in _runs_under(place, _DEEP)]
        known = {run.folder: run for run in self.runs.values()}
        runs = [known.get(folder) or LiveRun(folder) for folder in dict.fromkeys(folders)]
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

    def asked(self, run: LiveRun) -> SharedQuestions:
        """Return the questions of a run."""
        key = f"{(run.config.get('questions') or {}).get('checksum') or run.folder} {run.repeats}"
        with self._loading:
            if key not in self._asked:
                examples = read_questions(run.folder)
                folded = tuple("\n".join((one.id, one.question, *one.answers)).lower() for one in examples)
                self._asked[key] = SharedQuestions(examples, folded, {one.id: at for at, one in enumerate(examples)})
            return self._asked[key]

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
        figures = self._counted(run, profile)
        if figures is None and profile == PROFILE:
            figures = self._strict(run)
        options = (run.config.get("config") or {}).get("options") or {}
        return {
            "name": run.name,
            "dataset": str((run.config.get("dataset") or {}).get("name", "")),
            "state": run.state,
            "done": run.n if run.state == "finished" else len(run.rows),
            "n": run.n,
            "repeats": run.repeats,
            "repeated": self._counted(run, f"repeats {profile}"),
            "how": " ".join(f"{key}={value}" for key, value in options.items() if value),
            "metrics": figures,
            "took": self._counted(run, "took"),
        }

    def _counted(self, run: LiveRun, kind: str) -> dict[str, Any] | None:
        """Return figures of a run in its present state; None if not counted yet."""
        seen, figures = self._figures.get((run.folder, kind), (None, None))
        return figures if seen == run.seen else None

    def _strict(self, run: LiveRun) -> dict[str, Any]:
        """Return the figures of `metrics.json`; for an unfinished run, means over the answered questions."""
        if run.state == "finished":
            summary = read_metrics(run.folder).overall
            figures = {name: asdict(estimate) for name, estimate in summary.estimates.items()}
            self._figures[run.folder, PROFILE] = run.seen, figures
            return figures
        run.read(self.asked(run))
        rows = list(run.rows.values())
        if not rows:
            return {}
        sums = zip(*(vars(row.scores).values() for row in rows), strict=True)
        return {name: {"value": sum(its) / len(rows), "ci95": None} for name, its in zip(METRICS, sums, strict=True)}

    def count(self, profile: str) -> bool:
        """Count one of the missing figures of the leaderboard; True if there was one to count."""
        for run in list(self.runs.values()):
            several = run.repeats > 1 and run.state == "finished"
            kinds = [*([profile] if profile != PROFILE else []), *([f"repeats {profile}"] if several else [])]
            for kind in ("took", *kinds):
                seen, known = run.seen, self._counted(run, kind) is not None
                if known or (kind != "took" and run.state != "finished" and not run.rows):
                    continue
                if kind == "took":
                    figures = average_usage(list(read_timings(run.folder))) if run.state == "finished" else {}
                elif kind != profile:
                    figures = repeats_shown(repeat_figures(self._run(run).cases, PROFILES[profile]))
                else:
                    [scored] = score_cases(self._run(run).cases, [PROFILES[kind]], 0)
                    figures = {name: asdict(each) for name, each in scored.estimates.items()}
                self._figures[run.folder, kind] = seen, figures
                self._tell()
                return True
        return False

    def _run(self, run: LiveRun) -> Run:
        """Return a run as far as it is recorded."""
        predictions = {each.id: each for each in run.recorded()}
        asked = self.asked(run).examples
        return Run(run.name, run.folder, run.config, tuple(one for one in asked if one.id in predictions),
                   predictions, {}, None)  # fmt: skip

    def questions(
        self, names: Sequence[str], text: str = "", outcome: str = "", order: str = "given", start: int = 0
    ) -> dict[str, Any]:
        """Return a part of the questions of runs that pass filters; outcomes and order are those of the first run.

        Args:
            names: of runs, at least one; the questions are those of the first.
            text: words, each of which is in the question, its id, its gold answers or what any of the runs answered.
            outcome: one of `OUTCOMES`.
            order: one of `ORDERS`.
            start: how many to pass over.

        Raises:
            RunError: there is no such run.
        """
        runs = self.named(names)
        asked = self.asked(runs[0])
        for run in runs:
            run.read(self.asked(run))
        words = text.lower().split()
        unfinished = all(run.state != "finished" for run in runs)
        answered = [run.rows for run in runs]
        passing = []
        for at, example in enumerate(asked.examples):
            its = [rows.get(example.id) for rows in answered]
            if (unfinished and not any(its)) or not _passes(its, outcome):
                continue
            told = asked.folded[at]
            if all(word in told or any(row and word in row.folded for row in its) for word in words):
                passing.append(at)
        first = answered[0]
        ids = [example.id for example in asked.examples]
        if order == "latest":
            passing.sort(key=lambda at: -first[ids[at]].number if ids[at] in first else 1)
        elif order in ("worst", "best"):
            sign = 1 if order == "worst" else -1
            passing.sort(key=lambda at: sign * first[ids[at]].scores.f1 if ids[at] in first else 2)
        rows = []
        for at in passing[start : start + PAGE]:
            example = asked.examples[at]
            its = [rows_of.get(example.id) for rows_of in answered]
            rows.append(
                {
                    "id": example.id,
                    "text": example.question[:_SHOWN],
                    "type": example.type,
                    "gold": ", ".join(example.answers[:8])[:_SHOWN],
                    "runs": [row and {"mark": row.mark, "stage": row.stage, "answers": row.answers} for row in its],
                }
            )
        return {"total": len(passing), "n": len(asked.examples), "start": start, "rows": rows, "version": self.version}

    def question(self, names: Sequence[str], id: str) -> dict[str, Any]:
        """Return a question with what each of some runs made of it, as the report's page draws it.

        Raises:
            RunError: there is no such run, or no such question.
        """
        runs = self.named(names)
        asked = self.asked(runs[0])
        if id not in asked.place:
            raise RunError(f"no run asks the question {id!r}")
        example = asked.examples[asked.place[id]]
        found = []
        for run in runs:
            line = GrowingLines(run.folder / PREDICTIONS).read(id)
            its = {} if line is None else {id: parse_prediction(line, PREDICTIONS)}
            timings = {one.id: one for one in read_timings(run.folder) if one.id == id} if its else {}
            found.append(
                (Run(run.name, run.folder, run.config, (example,), its, timings, None), read_trace_line(run.traces, id))
            )
        return detailed(example, found, self.store, self.replies)


def detailed(
    example: Example,
    found: Sequence[tuple[Run, Mapping[str, Any]]],
    store: GraphStore | None,
    replies: RecordedReplies | None,
) -> dict[str, Any]:
    """Return a question with its outcomes in several runs, each with its trace, as the report's page draws it."""
    runs, traces = [run for run, _ in found], [trace for _, trace in found]
    calls = None
    if replies is not None:
        keys = {call["reply"] for trace in traces for call in trace.get("calls", ())}
        calls = {each.call.key: call_detail(each) for each in replies.recorded(keys)}
    view = question_view(runs, example, traces, NodeNames(store), calls)
    named = [{"name": run.name, "its": its} for run, its in zip(runs, view["runs"], strict=True)]
    return {"id": example.id, "type": example.type, **view, "runs": named}


def _passes(its: Sequence[Row | None], outcome: str) -> bool:
    if not outcome:
        return True
    if outcome == "differ":
        return len({row.scores.hit for row in its if row is not None}) > 1
    first = its[0]
    if first is None:
        return False
    if outcome in STAGES:
        return first.stage == outcome
    return first.mark == outcome or (outcome == "right" and first.mark == "partly")


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
