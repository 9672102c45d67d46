"""N-best answers for uncertain questions, added while expected F1 improves.

One more answer beside a hundred costs little, one beside a single answer costs a third if that was right, so that it
has to be nearly as likely.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from byokg.offline.rules import rule
from byokg.types import AnswerItem


@dataclass(frozen=True)
class RunnerUpSettings:
    """Limits of n-best answers."""

    candidates: int = 2
    """Candidates that follow."""
    answers: int = 20
    """Answers of a candidate that follows; one with more does not."""
    none_right: float = 5.0
    """Odds that no candidate is right if the first one is not, relative to one as good as the best."""
    same: float = 0.5
    """Share of two candidates' answers that are common if they agree."""


_SETTINGS = RunnerUpSettings()

Ranked = tuple[float, Sequence[AnswerItem]]
"""Log-odds, and the answers that would be given with them."""


@rule("n-best answers", "who founded {X}", lambda ranked, probability: ())
def runners_up(ranked: Iterable[Ranked], probability: float) -> tuple[AnswerItem, ...]:
    """Return further answers after those of the first candidate, each with the probability of its candidate.

    Constants were tuned on dev questions of WebQSP, CWQ, atlas, PathQuestion, MetaQA and made-up domains, so that F1
    gets no worse on any of them.

    Args:
        ranked: candidates, the first one first.
        probability: of the first one.
    """
    candidates = list(ranked)
    if len(candidates) < 2:
        return ()
    given = set(map(_key, candidates[0][1]))
    first, best = frozenset(given), max(score for score, _ in candidates)
    weights: dict[frozenset[str], float] = {}
    items: dict[frozenset[str], Sequence[AnswerItem]] = {}
    for score, answers in candidates[1:]:
        keys = frozenset(map(_key, answers))
        if not keys <= first and len(keys & first) < _SETTINGS.same * len(keys | first):
            weights[keys] = weights.get(keys, 0.0) + math.exp(score - best)
            items.setdefault(keys, answers)
    total = sum(weights.values()) + _SETTINGS.none_right
    likely = {keys: (1 - probability) * weight / total for keys, weight in weights.items()}

    def expected(keys: Collection[str]) -> float:
        worth = probability * _f1(keys, first) + sum(odds * _f1(keys, other) for other, odds in likely.items())
        return round(worth, 9)

    further: list[AnswerItem] = []
    for _ in range(_SETTINGS.candidates):
        open_ones = [keys for keys in likely if 0 < len(keys - given) <= _SETTINGS.answers]
        chosen = max(open_ones, key=lambda keys: expected(given | keys), default=None)
        if chosen is None or expected(given | chosen) <= expected(given):
            break
        further += [replace(item, score=likely[chosen]) for item in items[chosen] if _key(item) not in given]
        given |= chosen
    return tuple(further)


def _key(item: AnswerItem) -> str:
    return item.id or item.name


def _f1(some: Collection[str], others: Collection[str]) -> float:
    return 2 * len(set(some).intersection(others)) / (len(some) + len(others))
