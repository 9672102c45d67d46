"""`tog` and `structgpt`: one reply a question, right or wrong.

Both papers call the figure Hits@1. Nothing is ranked, and a reply that lists ten answers is right by any of them, so
here it is a Hit.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain

from byokg.evaluation.cases import Case
from byokg.evaluation.profiles.base import Metric, Profile

_BRACES = re.compile(r"\{(.*?)\}", re.DOTALL)


@lru_cache(maxsize=1 << 17)
def _squeezed(text: str) -> str:
    return text.strip().replace(" ", "").lower()


def _tog(case: Case) -> tuple[float, ...]:
    """Compare without spaces and case; equal is right, and so is a part, either way.

    Differs: an empty reply is wrong; the published code finds it inside every gold answer.
    """
    braces = _BRACES.search(case.text)
    said = _squeezed(braces[1] if braces else case.text)
    if not said:
        return (0.0,)
    golds = [gold for gold in map(_squeezed, case.gold) if gold]
    return (float(any(gold in said or said in gold for gold in golds)),)


def _structgpt(case: Case) -> tuple[float, ...]:
    text = case.text.lower()
    names = chain(case.gold, *case.aliases)
    return (float(any(name.strip() and name.lower() in text for name in names)),)


TOG = Profile(
    "tog",
    "Think-on-Graph (arXiv:2307.07697)",
    (Metric("hit", "the reply, or what stands in its first braces, contains a gold answer or is part of one"),),
    _tog,
)

STRUCTGPT = Profile(
    "structgpt",
    "StructGPT (arXiv:2305.09645)",
    (Metric("hit", "a gold answer, or an alias of one, occurs in the reply"),),
    _structgpt,
)
