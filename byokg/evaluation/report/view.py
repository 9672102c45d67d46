"""View model of runs, which report and viewer draw, and tables and traces share.

`summarise` prepares the runs' figures, their differences from a baseline, and the list of questions; `question_view`
prepares one question with its traces, which stay on disk until needed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from byokg.errors import RunError
from byokg.evaluation.comparability import comparison_key, ranked_groups
from byokg.evaluation.compare import compare_pair, repeat_figures
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.metrics import (
    METRICS,
    PROFILE,
    STAGES,
    Estimate,
    Metrics,
    QuestionScores,
    Summary,
    normalise,
    selective,
    selective_by_score,
)
from byokg.evaluation.profiles import PROFILES, Profile
from byokg.evaluation.records import Prediction, Timing, read_evidence
from byokg.evaluation.retrieval_metrics import flat_cells
from byokg.evaluation.run_folder import Run, flat_settings, read_runs
from byokg.evaluation.runner import outcome
from byokg.evaluation.significance import auroc, calibration_error, holm
from byokg.graph.property_view import known_nodes
from byokg.graph.store import GraphStore
from byokg.llm.reply_store import RecordedReply
from byokg.retrieval.verbalize import nodes_of
from byokg.types import EntityId, Evidence, Node, NodeCell, NodeEvidence, RowsEvidence, Spending

TEXT_LISTED = 240
"""Characters of a question, and of its answers, in the list; the question itself is shown whole."""

ANSWERS_LISTED = 8
"""Answers in the list of questions."""

_DIGITS = 6
_CHOSEN = "options."
"""Prefix of a group in a run's record, before the chosen option."""

Outcomes = Mapping[str, QuestionScores]
"""One run's outcome of each of its questions."""


def read_reported(folders: Sequence[Path]) -> list[Run]:
    """Read the finished runs that a report is about.

    Args:
        folders: at least one, each once.

    Raises:
        RunError: a folder holds no finished run, is given twice, or two runs are over different data sets.
    """
    runs = read_runs(folders)
    first = runs[0]
    for run in runs:
        if run.metrics is None:
            raise RunError(f"{str(run.folder)!r} cannot be reported: the run is not finished, start it again")
        if run.dataset != first.dataset:
            raise RunError(
                f"{str(first.folder)!r} is a run over {first.dataset}, {str(run.folder)!r} over {run.dataset}; "
                "make one report for each data set"
            )
    return runs


def asked_by(runs: Sequence[Run]) -> list[Example]:
    """Return the union of the runs' questions: those of the first run, then further ones of the others.

    Raises:
        RunError: two runs disagree on a question's text or gold answers.
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


def summarise(runs: Sequence[Run], examples: Sequence[Example], baseline: int) -> dict[str, Any]:
    """Return the page's content before anything is opened, as JSON; all but `differences`, which take longer.

    Args:
        runs: at least one, with metrics.
        examples: the questions of any run, in data-set order.
        baseline: position of the run that the others are compared with.
    """
    outcomes = [
        {example.id: outcome(example, run.predictions.get(example.id)) for example in run.questions} for run in runs
    ]
    return {
        "dataset": runs[0].dataset["name"],
        "profile": PROFILE,
        "metrics": list(METRICS),
        "stages": list(STAGES),
        "baseline": baseline,
        "runs": [
            {**_run(run, run.metrics, its), "colour": at}
            for at, (run, its) in enumerate(zip(runs, outcomes, strict=True))
            if run.metrics is not None
        ],
        "contracts": ranked_groups([comparison_key(run, PROFILE) for run in runs]),
        "deltas": [],
        "questions": _questions(runs, outcomes, examples),
    }


def differences(runs: Sequence[Run], baseline: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return the differences of the other runs from the baseline as JSON: the field `deltas` of `summarise`.

    Args:
        runs: at least one, with metrics.
        baseline: position of the run that the others are compared with.
        seed: of the bootstrap.
    """
    deltas = [_delta(runs, baseline, other, seed) for other in range(len(runs)) if other != baseline]
    for metric in METRICS:
        measured = [delta["metrics"][metric] for delta in deltas if delta["metrics"]]
        for one, corrected in zip(measured, holm([each["p"] for each in measured]), strict=True):
            one["p"] = corrected
    return deltas


def _run(run: Run, metrics: Metrics, outcomes: Outcomes) -> dict[str, Any]:
    return {
        "name": run.name,
        "how": describe_pipeline(run.config),
        "settings": _settings(run.config),
        **_summary(metrics.overall),
        "by": {
            "type": {key: _summary(each) for key, each in metrics.by_type.items()},
            "hops": {key: _summary(each) for key, each in metrics.by_hops.items()},
        },
        "selective": [asdict(point) for point in selective(list(outcomes.values()))] or None,
        "by_score": _by_score(list(outcomes.values())),
        "took": average_usage(list(run.timings.values())),
        "repeats": repeats_shown(run, PROFILES[PROFILE]) or None,
    }


def describe_pipeline(config: Mapping[str, Any]) -> str:
    """Return pipeline, model and embedder of a run in a few words."""
    settings = config.get("config") or {}
    options = settings.get("options") or {}
    model = (settings.get("llm") or {}).get("model") or options.get("llm")
    made = (options.get("pipeline"), model, options.get("embedding"))
    return " · ".join(str(part) for part in made if part and part != "none")


def _by_score(outcomes: Sequence[QuestionScores]) -> dict[str, Any] | None:
    """Return AUROC and calibration of first answers' scores; None if all scores are equal."""
    points = selective_by_score(outcomes)
    if not points:
        return None
    answered = [one for one in outcomes if one.score is not None]
    scores = np.array([one.score for one in answered], np.float64)
    right = np.array([one.scores.hits_at_1 for one in answered])
    order = auroc(scores, right)
    chances = bool(((scores >= 0) & (scores <= 1)).all())
    return {
        "points": [asdict(point) for point in points],
        "auroc": None if np.isnan(order) else _rounded(order),
        "calibration_error": _rounded(calibration_error(scores, right)) if chances else None,
    }


def repeats_shown(run: Run, profile: Profile, seed: int = 0) -> dict[str, Any]:
    """Return how often a run asks each question, pass@k of all of these, and what most replies agree on.

    Empty for a run that asks once, of which no prediction is read.
    """
    asked = any(example.repeat for example in run.questions)
    found = repeat_figures(run.cases, profile, seed) if asked else None
    if found is None:
        return {}
    k, passed = list(found.pass_at.items())[-1]
    return {"times": k, "pass": _estimate(passed), "majority": _estimate(found.majority[found.metric])}


def _summary(summary: Summary) -> dict[str, Any]:
    linked = summary.linked
    return {
        "n": summary.n,
        "failed": summary.failed,
        "clusters": summary.clusters,
        "effective_n": None if summary.effective_n is None else _rounded(summary.effective_n),
        "metrics": {metric: _estimate(estimate) for metric, estimate in summary.estimates.items()},
        "linked": None if linked is None else {**_estimate(linked), "n": linked.n},
        "loss": dict(summary.loss) or None,
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    low, high = estimate.ci95
    return {"value": _rounded(estimate.value), "ci95": [_rounded(low), _rounded(high)]}


def average_usage(timings: Sequence[Timing]) -> dict[str, Any]:
    """Return the means of calls, tokens, US$ and seconds of a question, as if every reply had been requested now."""
    spent = [_spent(timing) for timing in timings]
    n = max(len(spent), 1)
    total = sum(spent, Spending())
    took = total.asked + total.replayed
    return {
        "calls": _rounded(total.calls / n),
        "tokens": _rounded((took.input_tokens + took.output_tokens) / n),
        # Of a model without a price nothing is known: free would be wrong.
        "usd": None if took.unpriced else _rounded(took.usd / n),
        "seconds": _rounded(sum(map(_seconds, timings)) / n),
    }


def _spent(timing: Timing) -> Spending:
    return sum(timing.usage.values(), Spending())


def _seconds(timing: Timing) -> float:
    """Return the wall time of a question; replayed calls count with their original time."""
    return timing.seconds.get("total", 0.0) + _spent(timing).replayed.seconds


def _delta(runs: Sequence[Run], baseline: int, other: int, seed: int) -> dict[str, Any]:
    """Compare a run with the baseline on the questions of both, as `byokg compare` does."""
    pair = runs[baseline], runs[other]
    common = set.intersection(*({example.first_id for example in run.questions} for run in pair))
    found = compare_pair(*pair, PROFILES[PROFILE], METRICS[0], seed).differences if common else {}
    metrics = {name: asdict(one) | _estimate(Estimate(one.value, one.ci95)) for name, one in found.items()}
    changed = _changed(pair[0].config, pair[1].config)
    apart = comparison_key(pair[0], PROFILE).differences(comparison_key(pair[1], PROFILE))
    return {"run": other, "n": len(common), "changed": changed, "apart": list(apart), "metrics": metrics}


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[list[str | None]]:
    """Return the settings in which two runs differ: name, value of the first, value of the second."""
    old, new = _settings(before), _settings(after)
    changed = [key for key in old | new if old.get(key) != new.get(key)]
    others = tuple(f"{key.removeprefix(_CHOSEN)}." for key in changed if key.startswith(_CHOSEN))

    def follows(key: str) -> bool:
        """True if a difference follows from another option chosen for a group."""
        return key.startswith(others) or (
            bool(others) and not key.startswith(_CHOSEN) and (key not in old or key not in new)
        )

    return [[key.removeprefix(_CHOSEN), old.get(key), new.get(key)] for key in changed if not follows(key)]


def _settings(config: Mapping[str, Any]) -> dict[str, str]:
    """Return a run's settings under dotted names, in the order of its file."""
    grants = {name: config[name] for name in ("entities", "hops", "seed") if name in config}
    flat = flat_settings({**config.get("config", {}), **grants, "code": config.get("code", {}).get("digest", "")})
    return {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        for key, value in flat.items()
    }


def _questions(runs: Sequence[Run], outcomes: Sequence[Outcomes], examples: Sequence[Example]) -> dict[str, Any]:
    """Return the list of questions, column by column."""
    return {
        "id": [example.id for example in examples],
        "text": [example.question[:TEXT_LISTED] for example in examples],
        "type": [example.type for example in examples],
        "hops": [example.hops for example in examples],
        "gold": [", ".join(example.answers[:ANSWERS_LISTED])[:TEXT_LISTED] for example in examples],
        "runs": [_columns(run, its, examples) for run, its in zip(runs, outcomes, strict=True)],
    }


def _columns(run: Run, outcomes: Outcomes, examples: Sequence[Example]) -> dict[str, list[Any]]:
    """Return one run's columns; null for a question outside the run, or without a measurement."""
    its = [outcomes.get(example.id) for example in examples]
    timings = [run.timings.get(example.id) for example in examples]
    spent = [None if timing is None else _spent(timing) for timing in timings]
    told = [
        None if one is None else run.predictions.get(example.id) for one, example in zip(its, examples, strict=True)
    ]
    return {
        "answers": [None if one is None else ", ".join(one.answers[:ANSWERS_LISTED])[:TEXT_LISTED] for one in told],
        "hit": [None if each is None else int(each.scores.hit) for each in its],
        "f1": [None if each is None else round(each.scores.f1, 3) for each in its],
        "stage": [None if each is None else STAGES.index(each.stage) for each in its],
        "seconds": [None if timing is None else _rounded(_seconds(timing)) for timing in timings],
        "usd": [None if each is None else _rounded(each.asked.usd + each.replayed.usd) for each in spent],
        "calls": [None if each is None else each.calls for each in spent],
    }


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS)


# One question


_TOLD = ("schema", "id", "rounds", "calls", "answers")
"""Fields of a trace that the page has a place for; others are shown as they are."""


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
    nodes = named.of(traces)
    return {
        "id": example.id,
        "type": example.type,
        "hops": example.hops,
        "question": example.question,
        "gold": example.answers,
        "names": {id: name for id, (name, _) in nodes.items() if name != id},
        "types": {id: type for id, (_, type) in nodes.items() if type},
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
    """Names and types of nodes, each looked up once.

    Args:
        store: the graph; None leaves the names that traces hold.
        shown: ends, walks and rows of a piece of evidence that are named.
    """

    def __init__(self, store: GraphStore | None, shown: int = sys.maxsize) -> None:
        self._store, self._shown = store, shown
        self._known: dict[str, tuple[str, str]] = {}

    def of(self, traces: Iterable[Mapping[str, Any]]) -> dict[EntityId, tuple[str, str]]:
        """Return name and type of the nodes in some traces; the type of one that nothing is known of is empty."""
        told: dict[str, tuple[str, str]] = {}
        ids: dict[str, None] = {}
        for trace in traces:
            named = [each for each in trace.get("answers", ()) if each["id"] is not None]
            for one in trace.get("rounds", ()):
                linked = one.get("linked") or {}
                named += [*linked.get("entities", ()), *linked.get("drafts", ())]
                for item in map(read_evidence, one.get("evidence", ())):
                    ids |= dict.fromkeys(str(id) for id in nodes_of(item, self._shown) if id)
                    for node in _find_named_nodes(item):
                        told[node.id] = node.name, node.type or told.get(node.id, ("", ""))[1]
            told = {each["id"]: (each["name"], "") for each in named} | told
        if self._store is not None:
            new = [EntityId(id) for id in ids if id not in self._known]
            self._known |= {str(node.id): (node.name, node.type) for node in known_nodes(self._store, new)}
        return {EntityId(id): self._known.get(id) or told.get(id) or (id, "") for id in [*told, *ids]}


def _find_named_nodes(item: Evidence) -> Iterator[Node | NodeCell]:
    """Yield the nodes that a piece of evidence holds with their names."""
    if isinstance(item, NodeEvidence):
        yield item.node
    elif isinstance(item, RowsEvidence):
        yield from (cell for cell in flat_cells(item.rows) if isinstance(cell, NodeCell))
