"""Fit of the offline pipeline to a graph and its questions: path weights, a path ranker if it improves answers, and
the ranker of candidates.

The questions are split by clusters into training, selection (keep the weights, take the new ones, or add the ranker:
the simplest that answers most correctly) and held-out questions. The latter are answered once, at the end, before and
after, with the weights that are written. The ranker of candidates is fitted on the selection and held-out questions,
and measured by cross-fitting: each fold of the held-out questions with weights fitted without it.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from byokg.arrays import Float64
from byokg.errors import ConfigError, EntityNotFound
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.metrics import normalise, score
from byokg.evaluation.significance import auroc, bootstrap, calibration_error, cluster_codes, intervals
from byokg.files import in_bytes, new_folder
from byokg.index.embedders import Embedder
from byokg.offline.answerer import Confidence
from byokg.offline.linker import OfflineLinker
from byokg.offline.path_scorer import CONFIDENCE_FILE, save_weights
from byokg.offline.ranking import save_weights as save_ranking
from byokg.offline.training.calibration import cross_fitted, first_answers, fit_ranking, judged
from byokg.offline.training.path_weights import CandidateSet, candidate_sets, fit_weights
from byokg.offline.training.ranker import FitSettings, RankingExample, answer_cases, fit_ranker, write_ranker
from byokg.pipelines.loop import Loop
from byokg.types import Context, EntityId, Question


@dataclass(frozen=True)
class SplitSettings:
    """Sizes of splits, and of their evaluation."""

    choosing: float = 0.1
    """Share of the questions that select."""
    of_few: float = 0.25
    """The same share of few questions: a handful selects by luck."""
    held_out: int = 1000
    """Most held-out questions."""
    least_choosing: int = 50
    """Fewest questions that select, if there are enough."""
    most_choosing: int = 500
    """Most questions that select."""
    weighed: int = 3000
    """Most questions that path weights are fitted on: they are few numbers. A ranker learns from all."""
    draws: int = 1000
    """Bootstrap resamples of an interval."""
    folds: int = 5
    """Folds of cross-fitted calibration."""


_SPLIT = SplitSettings()

HELD_OUT = 0.2
"""Share of the questions that are held out."""


@dataclass(frozen=True)
class Splits:
    """Questions by split."""

    learnt: tuple[Example, ...]
    choosing: tuple[Example, ...]
    held_out: tuple[Example, ...]


@dataclass(frozen=True)
class ShareEstimate:
    """A share of questions and its 95 % interval; of a difference, in [-1, 1]."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Score:
    """Quality of the scores of first answers."""

    auroc: float | None
    """Probability that a right answer has a higher score than a wrong one; None if all are right, or none is."""
    calibration_error: float
    """How far they are from the shares that are right, in [0, 1]."""


@dataclass(frozen=True)
class Report:
    """Fitted parts, and the held-out questions' Hits@1 and Hit before and after, with their differences."""

    chosen: str
    """`before`: what there was, `weights`, or `weights and ranker`."""
    learnt: int
    choosing: int
    held_out: int
    choice: Mapping[str, float]
    """Hits@1 of each on the questions that chose."""
    hits_at_1: Mapping[str, ShareEstimate]
    """`before`, `after` and `difference`."""
    hit: Mapping[str, ShareEstimate]
    score: Mapping[str, Score]
    """Quality of the scores, `before` and `after`."""


def split_examples(examples: Sequence[Example], held_out: float = HELD_OUT, seed: int = 0) -> Splits:
    """Split questions by a hash of their cluster, so that no paraphrase is held out from its twin.

    Raises:
        ConfigError: the share is zero, or there are too few questions.
    """
    if not 0 < held_out < 1:
        raise ConfigError(f"--held-out {held_out} is no share; use one above 0 and below 1, such as {HELD_OUT}")
    groups: dict[str, list[Example]] = {}
    for example in examples:
        groups.setdefault(example.group, []).append(example)
    ordered = sorted(groups, key=lambda group: hashlib.sha256(f"{seed} {group}".encode("utf-8", "replace")).digest())
    held: list[Example] = []
    choosing: list[Example] = []
    learnt: list[Example] = []
    count = len(examples)
    wanted = max(_SPLIT.choosing * count, min(_SPLIT.least_choosing, _SPLIT.of_few * count))
    for group in ordered:
        filled = len(held) >= min(_SPLIT.held_out, held_out * count), len(choosing) >= min(_SPLIT.most_choosing, wanted)
        part = held if not filled[0] else choosing if not filled[1] else learnt
        part += groups[group]
    if not learnt or not choosing:
        raise ConfigError(
            f"{count} questions in {len(groups)} clusters are too few to learn from, to choose by and to hold "
            "out; bring more of them"
        )
    return Splits(tuple(learnt), tuple(choosing), tuple(held))


@dataclass(frozen=True)
class FitTask:
    """A pipeline to fit, and its questions' annotations.

    Args:
        make: makes the pipeline with a folder of weights, or with the present ones; without abstention.
        embedder: of the pipeline.
        gold: returns the answer nodes of a question.
        asked: returns a question as measured.
        chains: further cases for the ranker, such as annotated relation chains.
    """

    make: Callable[[Path | None], Loop]
    embedder: Embedder
    gold: Callable[[Example], Sequence[EntityId]]
    asked: Callable[[Example], Question]
    chains: Callable[[OfflineLinker], Iterable[RankingExample]] = lambda linker: ()


def fit(
    task: FitTask,
    parts: Splits,
    out: str | Path,
    source: str,
    settings: FitSettings | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> Report:
    """Fit weights and a ranker, select, measure, and write the folder for the pipeline's `weights`.

    Args:
        task: the pipeline.
        parts: the questions by split.
        out: the folder; it appears whole, in place of an existing one, or not at all.
        source: description of the training data.
        settings: of the ranker.
        note: called with one line per step.

    Raises:
        ConfigError: no question is usable for training.
        GraphError: the folder cannot be written.
    """
    sizes = {"learnt": len(parts.learnt), "chose": len(parts.choosing), "held_out": len(parts.held_out)}
    record: dict[str, object] = {"source": source, "questions": sizes}
    with tempfile.TemporaryDirectory() as folder:
        tried = _train(task, parts, Path(folder), record, settings or FitSettings(), note)
        note(f"choosing by {len(parts.choosing):,} questions")
        choosing = {name: _answered(one, parts.choosing, task.asked) for name, one in tried.items()}
        choice = {name: answered.scores[:, 0].mean() for name, answered in choosing.items()}
        chosen = max(tried, key=lambda name: choice[name])  # of equally good ones the first
        note(f"answering {len(parts.held_out):,} questions that were held out")
        was = _answered(tried["before"], parts.held_out, task.asked)
        now = was if chosen == "before" else _answered(tried[chosen], parts.held_out, task.asked)
        ranking, folds = _judge(tried[chosen]).ranker.weights, _folds(parts.held_out)[now.given]
        sure, scores = cross_fitted(now.judged, folds, choosing[chosen].judged, ranking), now.scores.copy()
        scores[now.given, 0] = sure[1]
        hits_at_1, hit = _figures(was.scores, scores, parts.held_out)
        report = Report(
            chosen,
            len(parts.learnt),
            len(parts.choosing),
            len(parts.held_out),
            {name: round(float(value), 4) for name, value in choice.items()},
            hits_at_1,
            hit,
            {
                "before": _score(*first_answers(_judge(tried["before"]).ranker.weights, was.judged)),
                "after": _score(*sure),
            },
        )
        record["chosen"], record["chose"] = chosen, report.choice
        record["hits@1"] = {name: asdict(share) for name, share in hits_at_1.items()}
        record["score"] = {name: asdict(score) for name, score in report.score.items()}
        with new_folder(out, overwrite=True, refuse=None) as written:
            if chosen == _WITH_RANKER:
                for file in sorted((Path(folder) / chosen).iterdir(), key=in_bytes):
                    (written / file.name).write_bytes(file.read_bytes())
            save_weights(written, linker_of(tried[chosen]).scorer.weights, task.embedder.name, record)
            save_ranking(written / CONFIDENCE_FILE, fit_ranking([(1.0, choosing[chosen].judged + now.judged)], ranking))
    return report


_WITH_RANKER = "weights and ranker"


def _train(
    task: FitTask,
    parts: Splits,
    folder: Path,
    record: Mapping[str, object],
    settings: FitSettings,
    note: Callable[[str], None],
) -> dict[str, Loop]:
    """Return the pipeline before, with new weights, and with a ranker, too; `folder` holds the weights by name."""
    tried = {"before": task.make(None)}
    linker = linker_of(tried["before"])
    note(f"fitting weights on {min(len(parts.learnt), _SPLIT.weighed):,} questions")
    # Those drawn by a hash of their ids stand for all.
    drawn = sorted(parts.learnt, key=lambda one: hashlib.sha256(one.id.encode("utf-8", "replace")).digest())
    found = list(candidate_sets(linker, linker.store, drawn[: _SPLIT.weighed], task.gold))
    weights = fit_weights([(1.0, found)], near=linker.scorer.weights)
    for name in ("weights", _WITH_RANKER):
        (folder / name).mkdir()
        save_weights(folder / name, weights, task.embedder.name, record)
    tried["weights"] = task.make(folder / "weights")
    note(f"training a ranker on {len(parts.learnt):,} questions")
    linker = linker_of(tried["weights"])
    cases = [*task.chains(linker), *answer_cases(linker, linker.store, parts.learnt, task.gold, settings.most)]
    own = replace(settings, held_out=0.0)
    fitted = fit_ranker(cases, linker.store, linker.scorer.steps, task.embedder, own, linker.scorer.weights)
    write_ranker(folder / _WITH_RANKER, fitted, task.embedder, own, str(record["source"]), weights)
    tried[_WITH_RANKER] = task.make(folder / _WITH_RANKER)
    return tried


@dataclass(frozen=True)
class _Answers:
    """A pipeline's answers to N questions."""

    scores: Float64
    """(N, 2) whether the first answer is right, and whether any is."""
    given: npt.NDArray[np.bool_]
    """(N,) whether there is an answer."""
    judged: list[CandidateSet]
    """Candidates of the questions with an answer."""


def _answered(pipeline: Loop, examples: Sequence[Example], asked: Callable[[Example], Question]) -> _Answers:
    scores, given = np.zeros((len(examples), 2)), np.zeros(len(examples), np.bool_)
    found: list[CandidateSet] = []
    for row, example in enumerate(examples):
        question = asked(example)
        try:
            answer = pipeline.run(question)
        except EntityNotFound:  # a topic that the graph lacks: nothing is answered
            continue
        if answer.items:
            own = score([item.name for item in answer.items], example.answers)
            scores[row], given[row] = (own.hits_at_1, own.hit), True
            gold = set(map(normalise, example.answers))
            found.append(judged(_judge(pipeline), Context(answer.rounds, question.text), answer.items, gold))
    return _Answers(scores, given, found)


def linker_of(pipeline: object) -> OfflineLinker:
    """Return the linker of a pipeline without a language model. Raises `ConfigError` for another pipeline."""
    linker = pipeline.stages[0].linker if isinstance(pipeline, Loop) else None
    if not isinstance(linker, OfflineLinker):
        raise ConfigError("weights are fitted for the pipeline that needs no language model; use pipeline=offline")
    return linker


def _judge(pipeline: Loop) -> Confidence:
    assert isinstance(pipeline.estimator, Confidence)
    return pipeline.estimator


def _folds(examples: Sequence[Example]) -> npt.NDArray[np.int64]:
    """Part questions in folds, those of a cluster together: (N,)."""
    number = {group: at for at, group in enumerate(dict.fromkeys(example.group for example in examples))}
    return np.array([number[example.group] % _SPLIT.folds for example in examples], np.int64)


def _score(chances: Float64, right: Float64) -> Score:
    order = auroc(chances, right)
    error = calibration_error(chances, right)
    return Score(None if np.isnan(order) else round(order, 4), round(error, 4))


def _figures(
    was: Float64, now: Float64, examples: Sequence[Example]
) -> tuple[dict[str, ShareEstimate], dict[str, ShareEstimate]]:
    codes = cluster_codes([example.cluster for example in examples])
    table = np.hstack((was, now, now - was))
    low, high = intervals(table, 0, _SPLIT.draws, np.ones_like(table), codes)
    low[4:], high[4:] = bootstrap(table[:, 4:], 0, _SPLIT.draws, codes=codes)  # of differences, which are no shares
    shares = [
        ShareEstimate(*(round(float(part), 4) for part in row))
        for row in zip(table.mean(axis=0), low, high, strict=True)
    ]
    names = ("before", "after", "difference")
    return dict(zip(names, shares[::2], strict=True)), dict(zip(names, shares[1::2], strict=True))
