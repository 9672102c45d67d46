"""`rog`, `gnn-rag` and `gcr`: a gold answer counts wherever its letters occur in the prediction.

A gold answer matches a text when its normalised form is a substring of the text's, so "Tirana" gives credit for
"Iran". The figures are the publications' own; they are not comparable with whole-name matching.

Differs: where nothing at all is predicted, every figure is 0. The published code gives a Hit for a gold answer of
punctuation alone, which normalises to nothing and so occurs in every text.
"""

from __future__ import annotations

import re
import string
from functools import lru_cache

from byokg.evaluation.cases import Case
from byokg.evaluation.profiles.base import UNBOUNDED, Metric, Profile

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


@lru_cache(maxsize=1 << 17)
def normalise_letters(text: str) -> str:
    """Lower case, delete ASCII punctuation, drop the words a, an and the, collapse white space.

    Source: RoG (arXiv:2310.01061), the published evaluation code. It drops `<pad>` as well, but only after its angle
    brackets are gone, so that never happens.
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _matched(case: Case) -> int:
    """Count the gold answers that occur in the whole prediction."""
    text = normalise_letters(" ".join(case.answers))
    return sum(normalise_letters(gold) in text for gold in case.gold)


def _rog(case: Case) -> tuple[float, ...]:
    if not case.answers:
        return (0.0, 0.0, 0.0, 0.0, 0.0)
    matched = _matched(case)
    precision, recall = matched / len(case.answers), matched / len(case.gold)
    f1 = 2 * precision * recall / (precision + recall) if matched else 0.0
    return recall, float(matched > 0), precision, recall, f1


def _gnn_rag(case: Case) -> tuple[float, ...]:
    first = normalise_letters(case.answers[0]) if case.answers else None
    right = first is not None and any(normalise_letters(gold) in first for gold in case.gold)
    return (*_rog(case), float(right))


def _gcr(case: Case) -> tuple[float, ...]:
    if not case.answers:
        return (0.0, 0.0, 0.0, 0.0, 0.0)
    golds = [normalise_letters(gold) for gold in dict.fromkeys(case.gold)]
    lines = [normalise_letters(line) for line in case.answers]
    text = normalise_letters(" ".join(case.answers))
    recall = sum(gold in text for gold in golds) / len(golds)
    precision = sum(any(gold in line for gold in golds) for line in lines) / len(lines)
    f1 = 2 * precision * recall / (precision + recall) if precision and recall else 0.0
    return recall, float(recall > 0), precision, recall, f1


_SHARED = (
    Metric("accuracy", "share of gold answers that occur in the prediction; the same as recall"),
    Metric("hit", "any gold answer occurs in the prediction"),
)
_RECALL = Metric("recall", "share of gold answers that occur in the prediction")
_ROG = (
    *_SHARED,
    Metric("precision", "matched gold answers over lines predicted; above 1 where a line matches several", UNBOUNDED),
    _RECALL,
    Metric("f1", "harmonic mean of these two; below 2", 2.0),
)

ROG = Profile("rog", "RoG (arXiv:2310.01061)", _ROG, _rog, nulls="skipped")

GNN_RAG = Profile(
    "gnn-rag",
    "GNN-RAG (arXiv:2405.20139)",
    (*_ROG, Metric("hits@1", "any gold answer occurs in the first line")),
    _gnn_rag,
    nulls="skipped",
)

GCR = Profile(
    "gcr",
    "GCR (arXiv:2410.13080)",
    (
        *_SHARED,
        Metric("precision", "share of lines in which any gold answer occurs"),
        _RECALL,
        Metric("f1", "harmonic mean of these two"),
    ),
    _gcr,
    nulls="skipped",
)
