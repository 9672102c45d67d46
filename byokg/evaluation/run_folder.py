"""One run's folder on disk: ownership, identity, and survival of a kill.

Lines are appended to the three record files as questions finish, each with one write straight to the
operating system, so a kill loses only the questions in flight and at most tears the last line. Opening
the folder again cuts a torn line and keeps the questions that are in all three files. When the last
question is recorded the lines are put into data-set order, and `metrics.json`, written last, marks the run
as finished. A larger `limit`, or more `repeats`, continues the smaller run. Whole files are replaced by
renaming, never rewritten in place.

`questions.jsonl` holds the questions, so the folder can be scored again, compared and shown without the data set: one
line a question, in run order, with the non-empty fields of `Example` under their names. Lists are as in the `folder`
layout, so the file can be run again with `dataset=folder`.

`metrics.json` has `schema`, `profile`, `n`, `failed`, each metric with `value` and `ci95`, `by_type`, `by_hops`;
`clusters` and `effective_n` if questions form clusters; `linked` with its own `n` if topic entities are annotated;
`retrieval` by metric, with `n`, `value` and `ci95`, `median_tokens` if prompts had graph context, and `loss`, the
number of questions that each stage lost.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

from byokg.errors import RunError
from byokg.evaluation.cases import Case, join
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.metrics import (
    GROUNDING_METRICS,
    METRICS,
    PROFILE,
    RETRIEVAL_METRICS,
    STAGES,
    Estimate,
    Metrics,
    PartEstimate,
    Summary,
)
from byokg.evaluation.records import (
    CONFIG,
    PREDICTIONS,
    SCHEMA,
    TIMINGS,
    TRACE,
    UNFINISHED,
    Prediction,
    RecordLines,
    Timing,
    as_tuples,
    config_yaml,
    line_id,
    read_config,
    read_predictions,
    read_timings,
    read_unfinished,
    unfinished_json,
)
from byokg.files import Closing, in_bytes, json_line, lock_file, remove_left_behind, write_file
from byokg.types import Spending

QUESTIONS = "questions.jsonl"
PAUSED = "paused"
"""A file in the folder of a run that waits before its next question."""

METRICS_FILE = "metrics.json"
_LOCK, _HOLDER = ".lock", ".holder"
"""Stay in the folder; the lock itself is the operating system's and ends with the process, whose id is in the other."""

_RECORDS = (PREDICTIONS, TRACE, TIMINGS)
_DIFFERENCES_SHOWN = 5
_PACKAGE = Path(__file__).resolve().parents[1]
_GIT_TIMEOUT_S = 5
_DEFAULTS = {field.name: field.default for field in dataclasses.fields(Example)}


@dataclass(frozen=True)
class CodeVersion:
    """The package's version, a digest of all files in it, and the commit of the checkout, if any.

    The digest distinguishes two states of a checkout that share a version; the commit is for people.
    """

    version: str
    digest: str
    commit: str | None


@cache
def code_version() -> CodeVersion:
    """Return the version of the byokg that is running."""
    try:
        version = metadata.version("byokg")
    except metadata.PackageNotFoundError:
        version = "not installed"
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*"), key=in_bytes):
        parts = path.relative_to(_PACKAGE).parts
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in parts):
            digest.update("/".join(parts).encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return CodeVersion(version, digest.hexdigest()[:16], _commit())


def _commit() -> str | None:
    """Return the checked-out commit, `+` behind it when tracked files differ; None outside a repository."""
    if not (_PACKAGE.parent / ".git").exists():
        return None
    try:
        commit, changes = (
            subprocess.run(
                ("git", "-C", str(_PACKAGE.parent), *arguments),
                capture_output=True,
                check=True,
                encoding="utf-8",
                timeout=_GIT_TIMEOUT_S,
            ).stdout.strip()
            for arguments in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return commit + ("+" if changes else "")


def questions_jsonl(examples: Sequence[Example]) -> bytes:
    """Return the content of the file."""
    return b"".join(map(_line, examples))


def read_questions(folder: Path) -> tuple[Example, ...]:
    """Read the questions of a run.

    Raises:
        RunError: the file is missing, or a line of it is no question.
    """
    path = folder / QUESTIONS
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError as error:
        raise RunError(
            f"no {QUESTIONS} in {str(folder)!r}; give the folder that an evaluation wrote, or name the data set"
        ) from error
    return tuple(_example(line, f"{path}:{number}") for number, line in enumerate(lines, start=1) if line)


def _line(example: Example) -> bytes:
    fields = {
        name: value
        for name, value in dataclasses.asdict(example).items()
        if value not in ("", (), None, _DEFAULTS[name]) or name == "answers"
    }
    return json_line(fields)


def _example(line: bytes, place: str) -> Example:
    try:
        fields = {name: as_tuples(value) for name, value in json.loads(line).items() if name in _DEFAULTS}
        return Example(**fields)
    except (ValueError, TypeError, AttributeError) as error:
        raise RunError(f"{place}: is no question ({error}); start the run again in another folder") from error


def metrics_json(metrics: Metrics) -> str:
    """Return the content of `metrics.json`."""
    record = {
        "schema": SCHEMA,
        "profile": PROFILE,
        **_summary(metrics.overall),
        "by_type": {key: _summary(summary) for key, summary in metrics.by_type.items()},
        "by_hops": {key: _summary(summary) for key, summary in metrics.by_hops.items()},
    }
    return json.dumps(record, ensure_ascii=False, indent=2) + "\n"


def read_metrics(folder: Path) -> Metrics:
    """Read `metrics.json` back.

    Raises:
        RunError: the file is missing or has another format.
    """
    path = folder / METRICS_FILE
    try:
        record = as_tuples(json.loads(path.read_text(encoding="utf-8")))
        if record["schema"] != SCHEMA or record["profile"] != PROFILE:
            raise RunError(f"{path}: schema {record['schema']}, profile {record['profile']!r} cannot be read here")
        return Metrics(
            overall=_read_summary(record),
            by_type={key: _read_summary(value) for key, value in record["by_type"].items()},
            by_hops={key: _read_summary(value) for key, value in record["by_hops"].items()},
        )
    except FileNotFoundError as error:
        raise RunError(f"no {METRICS_FILE} in {str(folder)!r}; the run is not finished, start it again") from error
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path}: cannot be read ({error!r}); remove it and start the run again") from error


def is_finished(folder: Path) -> bool:
    """True if the run of a folder is finished; `metrics.json` is written last."""
    return (folder / METRICS_FILE).is_file()


def _summary(summary: Summary) -> dict[str, object]:
    record: dict[str, object] = {"n": summary.n, "failed": summary.failed}
    record |= {metric: vars(estimate) for metric, estimate in summary.estimates.items()}
    if summary.clusters is not None:
        record |= {"clusters": summary.clusters, "effective_n": summary.effective_n}
    if summary.linked is not None:
        record["linked"] = _part(summary.linked)
    if summary.loss:
        record["retrieval"] = {name: _part(part) for name, part in summary.retrieval.items()}
        if summary.median_tokens is not None:
            record["median_tokens"] = summary.median_tokens
        record["loss"] = dict(summary.loss)
    if summary.grounding:
        record["grounding"] = {name: _part(part) for name, part in summary.grounding.items()}
    return record


def _part(share: PartEstimate) -> dict[str, object]:
    return {"n": share.n, **vars(share)}


def _read_summary(record: Mapping[str, Any]) -> Summary:
    retrieval, loss, grounding = (record.get(name, {}) for name in ("retrieval", "loss", "grounding"))
    return Summary(
        record["n"],
        record["failed"],
        {metric: Estimate(**record[metric]) for metric in METRICS},
        PartEstimate(**record["linked"]) if "linked" in record else None,
        {name: PartEstimate(**retrieval[name]) for name in RETRIEVAL_METRICS if name in retrieval},
        record.get("median_tokens"),
        {stage: loss[stage] for stage in STAGES if stage in loss},
        clusters=record.get("clusters"),
        effective_n=record.get("effective_n"),
        grounding={name: PartEstimate(**grounding[name]) for name in GROUNDING_METRICS if name in grounding},
    )


@dataclass(frozen=True)
class Run:
    """A run as recorded in its folder, without its traces."""

    name: str
    folder: Path
    config: Mapping[str, Any]
    questions: tuple[Example, ...]
    """In data-set order."""
    predictions: Mapping[str, Prediction]
    """By question; likewise `timings`."""
    timings: Mapping[str, Timing]
    metrics: Metrics | None
    """None if the run is not finished."""

    @property
    def dataset(self) -> Mapping[str, str]:
        """Return name and checksum of the data set."""
        return self.config["dataset"]  # type: ignore[no-any-return]

    @property
    def cases(self) -> list[Case]:
        """Return each question with its prediction, in data-set order."""
        return join(self.questions, self.predictions.values())


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """Read run folders, each named by the shortest distinctive end of its path.

    Raises:
        RunError: a folder is given twice, or was not written by an evaluation.
    """
    runs = [_read_run(folder, name) for folder, name in zip(folders, run_names(folders), strict=True)]
    for run in runs:
        for key in ("dataset", "entities"):
            if key not in run.config:
                raise RunError(f"{run.folder}: its {CONFIG} lacks {key!r}; give the folder that an evaluation wrote")
    return runs


def run_names(folders: Sequence[Path]) -> list[str]:
    """Name folders by the last part of their paths, and by more parts if these are equal.

    Raises:
        RunError: a folder is given twice.
    """
    parts = [folder.resolve().parts for folder in folders]
    if len(set(parts)) < len(parts):
        again = next(folder for folder, its in zip(folders, parts, strict=True) if parts.count(its) > 1)
        raise RunError(f"run folder {str(again)!r} is given twice; name each run once")
    length = 1
    while len({its[-length:] for its in parts}) < len(parts):
        length += 1
    return ["/".join(its[-length:]).removeprefix("//") for its in parts]


def _read_run(folder: Path, name: str) -> Run:
    return Run(
        name=name,
        folder=folder,
        config=read_config(folder),
        questions=read_questions(folder),
        predictions={each.id: each for each in read_predictions(folder)},
        timings={each.id: each for each in read_timings(folder)},
        metrics=read_metrics(folder) if is_finished(folder) else None,
    )


def config_hash(config: Mapping[str, Any]) -> str:
    """Return the hash that two runs share if they may share a folder: of all settings, checksums and code.

    The hash itself and the commit are left out: they inform people (the code has a digest).
    """
    canonical = json.dumps(_belonging(config), ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(canonical.encode("utf-8", "backslashreplace")).hexdigest()


def finished_metrics(path: Path, config: Mapping[str, Any]) -> Metrics | None:
    """Return the metrics of a finished run; None when there is no run yet, or one to be continued.

    Raises:
        RunError: the folder belongs to another run.
    """
    if not all((path / name).is_file() for name in (CONFIG, QUESTIONS, METRICS_FILE, *_RECORDS)):
        return None
    if _may_grow(read_config(path), config):
        return None
    _refuse_another_run(path, config)
    return read_metrics(path)


class RunFolder(Closing):
    """The record files of one run, open for appending by this process alone.

    Args:
        path: the folder; made when missing.
        config: identity of the run, as written to `config.yaml`.
        ids: the run's questions in data-set order.
        questions: content of `questions.jsonl`, which is written with `config.yaml`.

    Raises:
        RunError: another process is writing to the folder, it belongs to another run, or it holds records without a
            run.
    """

    def __init__(self, path: Path, config: Mapping[str, Any], ids: Sequence[str], questions: bytes) -> None:
        self.path = path
        self._questions = questions
        self._ids = ids
        with ExitStack() as open_files:
            try:
                path.mkdir(parents=True, exist_ok=True)
                open_files.enter_context(_locked(path))
                self._claim(config)
                self._written = self._repair()
                (path / PAUSED).unlink(missing_ok=True)
                self._files = [open_files.enter_context((path / name).open("ab", buffering=0)) for name in _RECORDS]
            except OSError as error:
                raise RunError(f"cannot use run folder {str(path)!r}: {error}; choose another out=") from error
            self._open_files = open_files.pop_all()

    def close(self) -> None:
        """Release the files and the pause; nothing more is recorded."""
        self._open_files.close()
        (self.path / PAUSED).unlink(missing_ok=True)

    @property
    def paused(self) -> bool:
        """True if `byokg view` asked the run to wait before its next question."""
        return (self.path / PAUSED).exists()

    def recorded(self) -> Iterator[Prediction]:
        """Yield the predictions recorded so far, in the order in which they were."""
        return read_predictions(self.path)

    def append(self, id: str, lines: RecordLines) -> None:
        """Record one question.

        Raises:
            RunError: the disk rejects it; earlier records are kept.
        """
        for file, line in zip(self._files, astuple(lines), strict=True):
            try:
                _write(file, line)
            except OSError as error:
                raise RunError(
                    f"cannot write to {file.name}: {error.strerror}; what is recorded is kept, "
                    "so make room and start the same command again"
                ) from error
        self._written.append(id)

    def complete(self) -> None:
        """Put the lines into data-set order, once every question is recorded; nothing can be appended then.

        Raises:
            RunError: the disk does not take the ordered files.
        """
        try:
            for file in self._files:
                os.fsync(file.fileno())
                file.close()  # Windows replaces no open file
            if self._written != list(self._ids):
                for name in _RECORDS:
                    _keep(self.path / name, self._ids)
        except OSError as error:
            raise RunError(f"cannot order the records in {str(self.path)!r}: {error}; start again") from error

    def finish(self, metrics: Metrics) -> None:
        """Write `metrics.json`, which marks the run as finished."""
        try:
            write_file(self.path / METRICS_FILE, [metrics_json(metrics).encode("utf-8", "backslashreplace")])
        except OSError as error:
            raise RunError(f"cannot write {METRICS_FILE} in {str(self.path)!r}: {error}; start again") from error

    def unfinished(self) -> dict[str, Spending]:
        """Return what cut-off questions took before, by stage."""
        return read_unfinished(self.path)

    def leave(self, questions: Iterable[Mapping[str, Spending]]) -> None:
        """Add the usage of questions that are cut off now to that of earlier ones."""
        total = self.unfinished()
        for question in questions:
            for stage, spent in question.items():
                total[stage] = total.get(stage, Spending()) + spent
        if total:
            try:
                write_file(self.path / UNFINISHED, [unfinished_json(total).encode()])
            except OSError as error:
                raise RunError(f"cannot write {UNFINISHED} in {str(self.path)!r}: {error}; make room") from error

    def _claim(self, config: Mapping[str, Any]) -> None:
        """Check that the folder belongs to this run, or make it so."""
        if (self.path / CONFIG).exists():
            if not self._grows(config):
                _refuse_another_run(self.path, config)
                if not (self.path / QUESTIONS).exists():
                    write_file(self.path / QUESTIONS, [self._questions])
                return
            (self.path / METRICS_FILE).unlink(missing_ok=True)
        elif strangers := [name for name in (*_RECORDS, METRICS_FILE) if (self.path / name).exists()]:
            raise RunError(
                f"{str(self.path)!r} holds {', '.join(strangers)} but no {CONFIG}, so it is unknown which run made "
                "them; choose another out="
            )
        write_file(self.path / QUESTIONS, [self._questions])
        write_file(self.path / CONFIG, [config_yaml({"hash": config_hash(config), **config}).encode()])

    def _grows(self, config: Mapping[str, Any]) -> bool:
        """True if the folder holds a part of this run: the same settings under a smaller limit or fewer repeats."""
        if not _may_grow(read_config(self.path), config):
            return False
        recorded = (self.path / QUESTIONS).read_bytes() if (self.path / QUESTIONS).is_file() else b""
        return bool(recorded) and set(recorded.splitlines()) <= set(self._questions.splitlines())

    def _repair(self) -> list[str]:
        """Bring the record files to the same whole questions, and return these in file order."""
        for name in (CONFIG, QUESTIONS, METRICS_FILE, UNFINISHED, *_RECORDS):
            remove_left_behind(self.path / name)
        (self.path / METRICS_FILE).unlink(missing_ok=True)
        for name in _RECORDS:
            (self.path / name).touch()
        held = [index_lines(self.path / name) for name in _RECORDS]
        common = set(self._ids).intersection(*held)
        order = [id for id in held[0] if id in common]
        for name in _RECORDS:
            _keep(self.path / name, order)
        return order


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the folder against other processes for as long as the context, or this process, lasts."""
    with ExitStack() as held:
        try:
            held.enter_context(lock_file(path / _LOCK, _LOOKED_AT_S))
        except TimeoutError as error:
            holder = _read_holder(path) or "unknown"
            raise RunError(
                f"run folder {str(path)!r} is being written by another process (pid {holder}); "
                "wait for it, end it, or choose another out="
            ) from error
        (path / _HOLDER).write_text(f"{os.getpid()}\n", "ascii", newline="\n")
        yield


_LOOKED_AT_S = 1.0
"""Seconds that a run waits for its folder: `is_written` holds the lock for a moment."""


def _read_holder(path: Path) -> str:
    try:
        return (path / _HOLDER).read_text("ascii").strip()
    except (OSError, ValueError):
        return ""


def clear_folder(path: Path, config: Mapping[str, Any]) -> None:
    """Remove the records from a run folder, unless they are those of a run with this configuration or a part of them.

    Raises:
        RunError: another process is writing to the folder, or its configuration cannot be read.
    """
    if not (path / CONFIG).is_file():
        return
    with _locked(path):
        there = read_config(path)
        if config_hash(there) != config_hash(config) and not _may_grow(there, config):
            for name in (METRICS_FILE, UNFINISHED, *_RECORDS, QUESTIONS, CONFIG):  # the configuration last
                (path / name).unlink(missing_ok=True)


def is_written(path: Path) -> bool:
    """Return True if a process holds the run folder; of a folder of somebody else, if it was written to lately."""
    if not (path / _LOCK).exists():
        return False
    try:
        with lock_file(path / _LOCK, 0):
            return False
    except TimeoutError:
        return True
    except OSError:  # which lets us read only, so that the lock cannot be tried
        times = [(path / name).stat().st_mtime for name in (*_RECORDS, _LOCK) if (path / name).exists()]
        return time.time() - max(times, default=0.0) < _LATELY_S


_LATELY_S = 600.0


def _may_grow(there: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """True if the second configuration differs only in more questions or more repeats."""
    counts = []
    for each in (there, now):
        questions, settings = each.get("questions"), each.get("config")
        if not isinstance(questions, Mapping) or not isinstance(settings, Mapping):
            return False
        rest = {name: value for name, value in settings.items() if name not in ("limit", "repeats")}
        counts.append((asked_in_all(questions), {**_belonging(each), "questions": None, "config": rest}))
    (before, one), (after, other) = counts
    return before < after and one == other


def asked_in_all(questions: Mapping[str, Any]) -> int:
    """Return the number of predictions of a run, from the questions in its `config.yaml`."""
    return int(questions.get("n") or 0) * int(questions.get("repeats") or 1)


def _refuse_another_run(path: Path, config: Mapping[str, Any]) -> None:
    """Raise unless the folder's configuration is this one; the file's content decides, not the hash in it."""
    there = read_config(path)
    theirs, ours = config_hash(there), config_hash(config)
    if theirs == ours:
        return
    shown = differences(_belonging(there), _belonging(config))
    raise RunError(
        f"run folder {str(path)!r} belongs to run {theirs[:12]}, this is run {ours[:12]} ({shown}); "
        "choose another out=, or remove the folder"
    )


def differences(there: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Name the first settings in which two configurations differ, with both values; empty if they are equal."""
    found = [f"{key}: {before} there, {after} now" for key, (before, after) in changed_settings(there, now).items()]
    more = len(found) - _DIFFERENCES_SHOWN
    return "; ".join([*found[:_DIFFERENCES_SHOWN], *([f"and {more} more"] if more > 0 else [])])


def changed_settings(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return both values, as Python writes them, of the settings in which two configurations differ, by dotted name."""
    before, after = ({key: repr(value) for key, value in flat_settings(config).items()} for config in (first, second))
    return {
        key: (before.get(key, "nothing"), after.get(key, "nothing"))
        for key in before | after
        if before.get(key) != after.get(key)
    }


def _belonging(config: Mapping[str, Any]) -> dict[str, Any]:
    belonging = {key: value for key, value in config.items() if key != "hash"}
    if isinstance(belonging.get("code"), Mapping):
        belonging["code"] = {key: value for key, value in belonging["code"].items() if key != "commit"}
    return belonging


def flat_settings(config: object, key: str = "") -> dict[str, Any]:
    """Return each setting's dotted name and value."""
    if not isinstance(config, Mapping) or not config:
        return {key: config}
    entries = (flat_settings(value, f"{key}.{name}" if key else str(name)) for name, value in config.items())
    return {path: value for entry in entries for path, value in entry.items()}


class GrowingLines:
    """The whole lines of a record file that may still grow. A replaced or shortened file is read from its start.

    Args:
        path: the file; one that does not exist has no lines.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.places: dict[str, int] = {}
        """Start of each question's line, as far as the file was read."""
        self._file, self._end = 0, 0
        self._lock = threading.Lock()

    def added(self) -> Iterator[bytes]:
        """Yield the lines since the last call."""
        with self._lock:
            try:
                file = self.path.open("rb")
            except OSError:
                return
            with file:
                stated = os.fstat(file.fileno())
                if stated.st_ino != self._file or stated.st_size < self._end:
                    self.places.clear()
                    self._file, self._end = stated.st_ino, 0
                file.seek(self._end)
                for line in file:
                    if not line.endswith(b"\n"):
                        return
                    if (id := line_id(line, str(self.path))) is not None:
                        self.places.setdefault(id, self._end)
                    self._end += len(line)
                    yield line

    def read(self, id: str) -> bytes | None:
        """Return the line of a question; None if it has none."""
        for _ in self.added():
            pass
        if id not in self.places:
            return None
        with self.path.open("rb") as file:
            file.seek(self.places[id])
            return file.readline()


def read_trace_line(lines: GrowingLines, id: str) -> dict[str, Any]:
    """Return the record of a question in a file of traces; empty if it has none.

    Raises:
        RunError: the record cannot be read.
    """
    line = lines.read(id)
    try:
        record = {} if line is None else json.loads(line)
    except ValueError as error:
        raise RunError(f"{lines.path}: the record of question {id!r} cannot be read ({error})") from error
    return record if isinstance(record, dict) else {}


def index_lines(path: Path) -> dict[str, tuple[int, int]]:
    """Return where each question's line is, as offset and length in bytes; the first if it has several."""
    places: dict[str, tuple[int, int]] = {}
    offset = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            id = line_id(line, f"{path}:{number}")
            if id is not None:
                places.setdefault(id, (offset, len(line)))
            offset += len(line)
    return places


def _keep(path: Path, ids: Sequence[str]) -> None:
    """Make the file hold exactly these questions' lines, in this order."""
    places = index_lines(path)
    end = 0
    for id in ids:
        offset, length = places[id]
        if offset != end:
            break
        end += length
    else:
        if end == path.stat().st_size:
            return

    def lines() -> Iterator[bytes]:
        with path.open("rb") as file:
            for id in ids:
                offset, length = places[id]
                file.seek(offset)
                yield file.read(length)

    write_file(path, lines())


def _write(file: BinaryIO, line: bytes) -> None:
    """Write all of it; an unbuffered file may take only a part at a time."""
    rest = memoryview(line)
    while rest:
        rest = rest[file.write(rest) :]
