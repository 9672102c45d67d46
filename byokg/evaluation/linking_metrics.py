"""How well mentions are linked: the annotated topic entities of questions among the candidates of their mentions.

The unit is the question. For a question with the topic entities G, and M mentions each with its candidates best first:

| metric | definition | range |
|---|---|---|
| `recall@k` | share of G that is among the first k candidates of some mention | [0, 1] |
| `precision@k` | share of the nodes among the first k candidates of the mentions that are in G; 0 for none | [0, 1] |
| `recall`, `precision` | the same of all candidates, as a pipeline gets them | [0, 1] |
| `mrr` | mean over G of 1 / best rank in any mention's candidates, 0 where there is none | [0, 1] |

Every question with annotated topic entities counts in every metric, with one denominator: a topic that the graph does
not hold, one that nothing in the question names, and a question whose linking raised an error score zero and are
counted. The figures of a mention type are means over topic entities, each looked for among the candidates of all
mentions of its question; precision has no meaning for one topic.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np

from byokg.evaluation.metrics import RESAMPLES, Estimate, bootstrap

LINKING_METRICS = ("precision@1", "recall@1", "precision@3", "recall@3", "precision", "recall", "mrr")
"""Names in reports, in the order of the fields of `LinkingScores`."""

TOPIC_METRICS = ("recall@1", "recall@3", "recall", "mrr")
"""Those that a single topic entity has, in the order of the fields of `TopicScores`."""


@dataclass(frozen=True)
class LinkingScores:
    """What one question scores; every field is in [0, 1]."""

    precision_at_1: float
    recall_at_1: float
    precision_at_3: float
    recall_at_3: float
    precision: float
    recall: float
    mrr: float


NOTHING_LINKED = LinkingScores(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class TopicScores:
    """What one topic entity scores; every field is in [0, 1]."""

    recall_at_1: float
    recall_at_3: float
    recall: float
    mrr: float


@dataclass(frozen=True)
class LinkingOutcome:
    """One question's scores, with its topic entities and how each is mentioned."""

    scores: LinkingScores
    topics: tuple[tuple[str, TopicScores], ...]
    """Mention type and scores of each topic entity."""
    failed: bool = False


@dataclass(frozen=True)
class TypeSummary:
    """Means over the `n` topic entities of one mention type, by names of `TOPIC_METRICS`."""

    n: int
    estimates: Mapping[str, Estimate]


@dataclass(frozen=True)
class LinkingMetrics:
    """Means over `n` questions with `topics` topic entities; `failed` of the questions raised an error."""

    n: int
    topics: int
    failed: int
    estimates: Mapping[str, Estimate]
    by_type: Mapping[str, TypeSummary]


def score_topic(topic: str, candidates: Sequence[Sequence[str]]) -> TopicScores:
    """Score one topic entity against the candidates of each mention, best first, each once."""
    ranks = [list(one).index(topic) + 1 for one in candidates if topic in one]
    rank = min(ranks, default=0)
    return TopicScores(float(0 < rank <= 1), float(0 < rank <= 3), float(rank > 0), 1 / rank if rank else 0.0)


def score_linking(topics: Collection[str], candidates: Sequence[Sequence[str]]) -> LinkingScores:
    """Score one question.

    Args:
        topics: ids of the topic entities, at least one.
        candidates: ids of each mention's candidates, best first, each once in a mention.

    Raises:
        ValueError: there are no topic entities, so nothing could be found.
    """
    gold = dict.fromkeys(topics)
    if not gold:
        raise ValueError("a question without annotated topic entities cannot be scored; leave it out and say so")
    each = [score_topic(topic, candidates) for topic in gold]

    def precision(k: int | None) -> float:
        linked = {id for one in candidates for id in one[:k]}
        return len(linked & gold.keys()) / len(linked) if linked else 0.0

    return LinkingScores(
        precision_at_1=precision(1),
        recall_at_1=sum(one.recall_at_1 for one in each) / len(each),
        precision_at_3=precision(3),
        recall_at_3=sum(one.recall_at_3 for one in each) / len(each),
        precision=precision(None),
        recall=sum(one.recall for one in each) / len(each),
        mrr=sum(one.mrr for one in each) / len(each),
    )


def aggregate_linking(
    outcomes: Sequence[LinkingOutcome], types: Sequence[str] = (), seed: int = 0, resamples: int = RESAMPLES
) -> LinkingMetrics:
    """Average over questions, and over the topic entities of each mention type.

    Args:
        outcomes: one per question with annotated topic entities, at least one.
        types: in the order in which they are to stand; others follow in the order of their names.
        seed: of the bootstrap intervals.
        resamples: bootstrap samples drawn.

    Raises:
        ValueError: there are no outcomes.
    """
    if not outcomes:
        raise ValueError("there are no questions to average over")
    topics: dict[str, list[TopicScores]] = {}
    for outcome in outcomes:
        for kind, scores in outcome.topics:
            topics.setdefault(kind, []).append(scores)
    order = [*(kind for kind in types if kind in topics), *sorted(topics.keys() - set(types))]
    return LinkingMetrics(
        n=len(outcomes),
        topics=sum(map(len, topics.values())),
        failed=sum(outcome.failed for outcome in outcomes),
        estimates=_estimates([astuple(outcome.scores) for outcome in outcomes], LINKING_METRICS, seed, resamples),
        by_type={
            kind: TypeSummary(
                len(topics[kind]), _estimates([astuple(one) for one in topics[kind]], TOPIC_METRICS, seed, resamples)
            )
            for kind in order
        },
    )


def _estimates(
    rows: Sequence[tuple[float, ...]], names: Sequence[str], seed: int, resamples: int
) -> dict[str, Estimate]:
    table = np.array(rows, np.float64)
    low, high = bootstrap(table, seed, resamples)
    return {
        name: Estimate(float(table[:, column].mean()), (float(low[column]), float(high[column])))
        for column, name in enumerate(names)
    }
