"""`subgraphrag`: one line an answer, each gold answer paired with one line at most."""

from __future__ import annotations

from collections.abc import Sequence

from byokg.evaluation.cases import Case
from byokg.evaluation.profiles.base import Metric, Profile
from byokg.evaluation.profiles.substring import normalise_letters

_MARK = "ans:"


def _said(case: Case) -> list[str]:
    """Return the distinct answers, longest first: the lines that begin with `ans:`.

    Differs: a list of answers, as a run has, holds no prose, so it needs no mark; where one line of it has the mark,
    only such lines count.
    """
    marked = [line.strip()[len(_MARK) :] for line in case.answers if line.strip().lower().startswith(_MARK)]
    lines = marked if marked or case.written else case.answers
    return _longest_first([normalise_letters(line) for line in lines])


def _longest_first(texts: Sequence[str]) -> list[str]:
    return sorted({text for text in texts if text}, key=lambda text: (-len(text), text))


def _golds(case: Case) -> list[str]:
    return _longest_first([normalise_letters(gold) or gold.lower() for gold in case.gold])


def _score(case: Case) -> tuple[float, ...]:
    said, golds = _said(case), _golds(case)
    free = list(said)
    matched = 0
    for gold in golds:
        line = next((line for line in free if gold in line), None)
        if line is not None:
            free.remove(line)
            matched += 1
    f1 = 2 * matched / (len(said) + len(golds))
    precision = matched / len(said) if said else 0.0
    return float(matched > 0), precision, matched / len(golds), f1, f1, float(f1 == 1.0)


def _answers(case: Case) -> float:
    """Return what makes a mean of the questions' F1 the F1 over all answers pooled: how many there are."""
    return float(len(_said(case)) + len(_golds(case)))


SUBGRAPHRAG = Profile(
    name="subgraphrag",
    source="SubgraphRAG (arXiv:2410.20724)",
    metrics=(
        Metric("hit", "any gold answer occurs in an answer line"),
        Metric("precision", "gold answers paired over distinct answer lines"),
        Metric("recall", "gold answers paired over distinct gold answers"),
        Metric("f1", "harmonic mean of the question's precision and recall (macro F1)"),
        Metric("micro f1", "F1 over the answers of all questions together", pooled=True),
        Metric("em", "f1 is 1"),
    ),
    score=_score,
    weigh=_answers,
)
