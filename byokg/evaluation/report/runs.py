"""Finished runs as a report reads them: what was asked, answered and taken; traces stay on disk until asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from byokg.errors import RunError
from byokg.evaluation.asked import read_questions
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.metrics import Metrics
from byokg.evaluation.metrics_file import read_metrics
from byokg.evaluation.records import TRACE, Prediction, Timing, line_id, read_config, read_predictions, read_timings


@dataclass(frozen=True)
class Run:
    """One finished run, without its traces."""

    name: str
    folder: Path
    config: Mapping[str, Any]
    metrics: Metrics
    questions: tuple[Example, ...]
    """In data-set order."""
    predictions: Mapping[str, Prediction]
    """By question; likewise `timings`."""
    timings: Mapping[str, Timing]


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """Read run folders that answer questions of one data set.

    Args:
        folders: at least one, each once.

    Returns:
        The runs in the order given, named by the shortest ends of their paths that tell them apart.

    Raises:
        RunError: a folder holds no finished run, is given twice, or two runs are over different data sets.
    """
    names = run_names(folders)
    runs = [_read_run(folder, name) for folder, name in zip(folders, names, strict=True)]
    first = runs[0].config.get("dataset")
    for run in runs[1:]:
        if run.config.get("dataset") != first:
            raise RunError(
                f"{str(runs[0].folder)!r} is a run over {first}, {str(run.folder)!r} over {run.config.get('dataset')}; "
                "make one report for each data set"
            )
    return runs


def run_names(folders: Sequence[Path]) -> list[str]:
    """Name folders by the last part of their paths, and by as many more parts as tell all of them apart.

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


def asked_by(runs: Sequence[Run]) -> list[Example]:
    """Return the questions that any of the runs was asked: those of the first run, then what others asked besides.

    Raises:
        RunError: two runs disagree on what a question is, or what its gold answers are.
    """
    asked: dict[str, Example] = {}
    for run in runs:
        for example in run.questions:
            if asked.setdefault(example.id, example) != example:
                raise RunError(
                    f"question {example.id!r} of {str(run.folder)!r} differs in text or gold answers from the one "
                    "of the runs before it; report on runs of one version of the data set"
                )
    return list(asked.values())


class Traces:
    """The traces of one run, read one question at a time.

    Raises:
        RunError: the run has no file of traces.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / TRACE
        self._places: dict[str, int] = {}
        try:
            self._file = self._path.open("rb")
        except FileNotFoundError as error:
            raise RunError(f"no {TRACE} in {str(folder)!r}; give the folder that an evaluation wrote") from error
        offset = 0
        for number, line in enumerate(self._file, start=1):
            id = line_id(line, f"{self._path}:{number}")
            if id is not None:
                self._places[id] = offset
            offset += len(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def read(self, id: str) -> dict[str, Any]:
        """Return the record of a question; empty where it has none.

        Raises:
            RunError: the record cannot be read.
        """
        place = self._places.get(id)
        if place is None:
            return {}
        self._file.seek(place)
        try:
            record = json.loads(self._file.readline())
        except ValueError as error:
            raise RunError(f"{self._path}: the record of question {id!r} cannot be read ({error})") from error
        return record if isinstance(record, dict) else {}


def _read_run(folder: Path, name: str) -> Run:
    return Run(
        name=name,
        folder=folder,
        config=read_config(folder),
        metrics=read_metrics(folder),
        questions=read_questions(folder),
        predictions={each.id: each for each in read_predictions(folder)},
        timings={each.id: each for each in read_timings(folder)},
    )
