"""Making of an answer: rows of its query, and confidence, the probability that its first item is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from byokg.types import Answer, AnswerItem, AnswerRow, Context, Question, RowsEvidence, Step


@dataclass(frozen=True)
class ConfidenceEstimate:
    """Confidence of an answer."""

    probability: float
    """That the first answer is right, in [0, 1]."""
    missing: str
    """Strongest evidence against it, in words."""
    further: tuple[AnswerItem, ...] = ()
    """The next best answers of an unsure one, each with its probability."""
    unused: str = ""
    """Parts of the question that the answer does not use, in quotes; empty if there are none."""
    taken: str = ""
    """Chosen node of several with one name, if another fits as well; else empty."""
    unsure: bool = False
    """True if the answer is reported as unsure."""
    steps: tuple[Step, ...] = ()
    """Compared candidates, best first, for the trace."""
    unrelated: bool = False
    """True if the question is about something else than the graph, so that there is no answer."""


class ConfidenceEstimator(Protocol):
    """Estimates the probability that an answer is right, and explains missing answers."""

    def estimate(self, question: Question, context: Context, items: Sequence[AnswerItem]) -> ConfidenceEstimate:
        """Return the confidence of the first of some answers."""

    def explain_absence(self, context: Context) -> str:
        """Describe the missing support of an answer, if there is none."""


def rate(
    estimator: ConfidenceEstimator, abstain: float, question: Question, context: Context, items: tuple[AnswerItem, ...]
) -> tuple[tuple[AnswerItem, ...], str, tuple[Step, ...]]:
    """Return answers scored by their confidence, with runners-up; a note on them; and steps.

    There are none below `abstain`, and none to an unrelated question.
    """
    if not items:
        return (), estimator.explain_absence(context), ()
    estimate = estimator.estimate(question, context, items)
    note = "; ".join(filter(None, (estimate.unused and f"not used: {estimate.unused}", estimate.taken)))
    if estimate.unrelated:
        reason = "the question seems to be about something else: the graph explains too little of it"
        return (), "; ".join(filter(None, (reason, note))), estimate.steps
    if estimate.probability < abstain:
        note = (
            f"not sure enough ({estimate.probability:.2f}, and {abstain:g} was asked for) that it is "
            f"{items[0].name!r}: {note or estimate.missing}"
        )
        return (), note, estimate.steps
    if estimate.unsure:
        note = f"unsure ({estimate.probability:.2f}): {note or estimate.missing}"
        if estimate.further:
            note += f"; next best: {estimate.further[0].name!r} ({estimate.further[0].score:.2f})"
    return (*(replace(item, score=estimate.probability) for item in items), *estimate.further), note, estimate.steps


def make_answer(
    question: Question, items: Sequence[AnswerItem], context: Context, seconds: Mapping[str, float], note: str = ""
) -> Answer:
    """Return an answer from the evidence of a context, with the rows of its query."""
    columns, rows = answered_rows(context, items)
    return Answer(question.id, tuple(items), context.rounds, dict(seconds), note=note, columns=columns, rows=rows)


def answered_rows(context: Context, items: Sequence[AnswerItem]) -> tuple[tuple[str, ...], tuple[AnswerRow, ...]]:
    """Return columns and rows of the query result that most answers cite, the last of several.

    Without a cited one, it is the last result of a query that a language model wrote; empty if none ran, or the result
    is longer than was read.
    """
    cited = Counter(id for item in items for id in item.citations)
    results = [item for item in context.evidence if isinstance(item, RowsEvidence)]
    used = [item for item in results if cited[item.id]] or [item for item in results if item.retriever == _QUERY]
    if not used:
        return (), ()
    result = max(reversed(used), key=lambda item: cited[item.id])
    rows = (*result.rows, *result.unseen)
    if result.truncated and not (result.exact and result.total == len(rows)):
        return (), ()
    return result.columns, tuple(map(AnswerRow, rows))


_QUERY = "query"
"""Name of the retriever that runs written queries; its module imports the query engines."""
