"""Metric profiles: each is one publication's scoring of a prediction, under its own name.

- `strict`, the default: whole normalised names compared as sets; see `byokg.evaluation.metrics`.
- `byokg` and `text2cypher`: the figures of ByoKG-RAG; `text2cypher` has execution accuracy besides, see
  `evaluation.datasets.result_sets`. It compares the result of the system's query, or without one the answers as a
  column.
- `rog`, `gnn-rag` and `gcr`: a gold answer counts wherever its letters occur in the prediction. A gold answer matches a
  text when its normalised form is a substring of the text's, so "Tirana" gives credit for "Iran". The figures are the
  publications' own; they are not comparable with whole-name matching.
  Differs: without any prediction, every figure is 0. The published code gives a Hit for a gold answer of punctuation
  alone, which normalises to nothing and so occurs in every text.
- `subgraphrag`: one line an answer, each gold answer paired with one line at most.
- `tog` and `structgpt`: one reply a question, right or wrong. Both papers call the figure Hits@1. Nothing is ranked,
  and a reply that lists ten answers is right by any of them, so here it is a Hit.
- `webqsp-official`: sets of ids, against the annotated parse of the question that fits best.
- `cron` and `stark`: positions in a ranking.

`profiles.toml` has their publications and the meaning of each metric.
"""

from __future__ import annotations

import re
import string
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from byokg.errors import ConfigError
from byokg.evaluation.cases import Case
from byokg.evaluation.datasets.result_sets import NODE, GoldResult, same_result, same_sets
from byokg.evaluation.metrics import UNSTATED, normalise, score
from byokg.types import NodeCell


@dataclass(frozen=True)
class Metric:
    """One figure of a profile; every question's value is in [0, `top`]."""

    name: str
    """Equal names in different profiles are figures that publications call the same, however they are made."""
    meaning: str
    top: float = 1.0
    pooled: bool = False
    """Questions count by `Profile.weigh` in its mean, not each the same (micro average)."""


@dataclass(frozen=True)
class Profile:
    """A way of scoring. Profiles are compared side by side, so none of them changes a prediction."""

    name: str
    source: str
    """The publication whose figures are made this way."""
    metrics: tuple[Metric, ...]
    score: Callable[[Case], tuple[float, ...]]
    """Return one value for each of `metrics`, given a case with a prediction that is `scorable`."""
    nulls: Literal["zero", "skipped"] = "zero"
    """Treatment of a question without a prediction. Some publications skip it, which makes the denominator smaller, so
    the number of skipped questions stands beside the figure."""
    scorable: Callable[[Case], bool] = lambda case: True
    """Return True for a case with the fields that this profile compares."""
    needs: str = ""
    """Missing field of a case that is not scorable."""
    weigh: Callable[[Case], float] = lambda case: 1.0
    """How much a question counts in pooled metrics; above 0."""
    groups: Callable[[Case], tuple[str, ...]] = lambda case: (case.type or UNSTATED,)
    """The rows of the breakdown in which a question counts."""


_CATALOGUE: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def _profile(name: str, score: Callable[[Case], tuple[float, ...]], **rules: Any) -> Profile:
    """Return a profile of `profiles.toml`; `rules` are its further functions."""
    entry = _CATALOGUE[name]
    listed = {metric: {"meaning": each} if isinstance(each, str) else each for metric, each in entry["metrics"].items()}
    metrics = tuple(Metric(metric, **each) for metric, each in listed.items())
    return Profile(name, score=score, **{**entry, "metrics": metrics}, **rules)


STRICT = _profile("strict", lambda case: astuple(score(case.matched_answers, case.gold)))


_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


@lru_cache(maxsize=1 << 17)
def normalise_letters(text: str) -> str:
    """Lower case, delete ASCII punctuation, drop the words a, an and the, collapse white space.

    Source: RoG (arXiv:2310.01061), the published evaluation code. It drops `<pad>` as well, but only after its angle
    brackets are gone, so that never happens.
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _rog(case: Case) -> tuple[float, ...]:
    text = normalise_letters(" ".join(case.lines))
    matched = sum(normalise_letters(gold) in text for gold in case.gold) if case.lines else 0
    return _substring_scores(matched / max(len(case.lines), 1), matched / len(case.gold))


def _substring_scores(precision: float, recall: float) -> tuple[float, ...]:
    """Return accuracy, which is recall by another name, hit, precision, recall and F1."""
    f1 = 2 * precision * recall / (precision + recall) if precision and recall else 0.0
    return recall, float(recall > 0), precision, recall, f1


def _gnn_rag(case: Case) -> tuple[float, ...]:
    first = normalise_letters(case.lines[0]) if case.lines else None
    right = first is not None and any(normalise_letters(gold) in first for gold in case.gold)
    return (*_rog(case), float(right))


def _gcr(case: Case) -> tuple[float, ...]:
    if not case.lines:
        return _substring_scores(0.0, 0.0)
    golds = [normalise_letters(gold) for gold in dict.fromkeys(case.gold)]
    lines = [normalise_letters(line) for line in case.lines]
    text = normalise_letters(" ".join(case.lines))
    recall = sum(gold in text for gold in golds) / len(golds)
    return _substring_scores(sum(any(gold in line for gold in golds) for line in lines) / len(lines), recall)


ROG, GNN_RAG, GCR = (_profile(*each) for each in (("rog", _rog), ("gnn-rag", _gnn_rag), ("gcr", _gcr)))


_MARK = "ans:"


def _extract_answers(case: Case) -> list[str]:
    """Return the distinct answers, longest first: the lines that begin with `ans:`.

    Differs: a list of answers, as a run has, holds no prose, so it needs no mark; if one line of it has the mark,
    only such lines count.
    """
    marked = [line.strip()[len(_MARK) :] for line in case.answers if line.strip().lower().startswith(_MARK)]
    lines = marked if marked or case.written else case.answers
    return _longest_first([normalise_letters(line) for line in lines])


def _longest_first(texts: Sequence[str]) -> list[str]:
    return sorted({text for text in texts if text}, key=lambda text: (-len(text), text))


def _golds(case: Case) -> list[str]:
    return _longest_first([normalise_letters(gold) or gold.lower() for gold in case.gold])


def _subgraphrag_score(case: Case) -> tuple[float, ...]:
    said, golds = _extract_answers(case), _golds(case)
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


# Weighed by how many answers there are, the mean of the questions' F1 is the F1 over all answers pooled.
SUBGRAPHRAG = _profile(
    "subgraphrag", _subgraphrag_score, weigh=lambda case: float(len(_extract_answers(case)) + len(_golds(case)))
)


_FURTHER = frozenset(("further_types",))
_NODE = frozenset(field.name for field in fields(NodeCell)) - _FURTHER
"""Fields of a node recorded in a result (`audit.executed`), besides its further types."""


def _byokg(case: Case) -> tuple[float, ...]:
    gold = set(map(normalise, case.gold))
    hit = any(normalise(answer) in gold for answer in case.answers)
    either = any(normalise(answer) in gold for answer in (*case.answers[:1], *case.drafts[:1]))
    return float(hit), float(either)


def _value(value: object) -> str:
    """Return a form in which a number in a row equals the same number written in an answer."""
    text = str(value)
    try:
        return f"{float(text):.6g}"
    except ValueError:
        return normalise(text)


def _flatten_cells(cells: Iterable[object]) -> Iterator[object]:
    """Yield the values in rows, from within lists and maps; a node is its name, and a missing value is none."""
    for cell in cells:
        if isinstance(cell, Mapping) and (NODE in cell or cell.keys() - _FURTHER == _NODE):
            yield cell.get("name", cell.get(NODE))
        elif isinstance(cell, Mapping):
            yield from _flatten_cells(cell.values())
        elif isinstance(cell, list | tuple):
            yield from _flatten_cells(cell)
        elif cell is not None:
            yield cell


def _text2cypher(case: Case) -> tuple[float, ...]:
    gold = set(map(_value, _flatten_cells(case.rows)))
    said = set(map(_value, case.answers))
    result, rows = GoldResult(case.rows, case.row_count, case.query), case.answer_rows
    executed = (same_result(result, rows), same_result(result, rows, further_columns=True), same_sets(result, rows))
    return 1.0 if said == gold else 0.5 * bool(said & gold), float(said == gold), *map(float, executed)


BYOKG = _profile("byokg", _byokg)
TEXT2CYPHER = _profile("text2cypher", _text2cypher, scorable=lambda case: any(True for _ in _flatten_cells(case.rows)))


_BRACES = re.compile(r"\{(.*?)\}", re.DOTALL)


@lru_cache(maxsize=1 << 17)
def _squeezed(text: str) -> str:
    return text.strip().replace(" ", "").lower()


def _tog(case: Case) -> tuple[float, ...]:
    """Compare without spaces and case; equal is right, and so is a part, either way.

    An empty reply of another system is inside every gold answer, as the published code has it. Differs: a list without
    answers is wrong.
    """
    braces = _BRACES.search(case.text)
    said = _squeezed(braces[1] if braces else case.text)
    if not said:
        return (float(case.written),)
    golds = [gold for gold in map(_squeezed, case.gold) if gold]
    return (float(any(gold in said or said in gold for gold in golds)),)


def _structgpt(case: Case) -> tuple[float, ...]:
    text = case.text.lower()
    names = chain(case.gold, *case.aliases)
    return (float(any(name.strip() and name.lower() in text for name in names)),)


TOG, STRUCTGPT = _profile("tog", _tog), _profile("structgpt", _structgpt)


_SIMPLE = ("simple_entity", "simple_time")
_COMPLEX = ("before_after", "first_last", "time_join")


def _has_ids(case: Case) -> bool:
    """True if both sides have ids; an empty prediction has none."""
    return bool(case.gold_ids) and bool(case.answer_ids or not case.answers)


def _first_right(ranking: Sequence[str], gold: set[str]) -> int:
    """Return the rank, from 1, of the first gold answer; 0 if there is none."""
    return next((rank for rank, one in enumerate(ranking, start=1) if one in gold), 0)


def _cron(case: Case) -> tuple[float, ...]:
    if _has_ids(case):
        rank = _first_right(case.ranked_ids, set(case.gold_ids))
    else:
        ranking = list(dict.fromkeys(map(normalise, case.answers)))
        rank = _first_right(ranking, set(map(normalise, case.gold)))
    return float(rank == 1), float(1 <= rank <= 10)


def _cron_groups(case: Case) -> tuple[str, ...]:
    """Return the type, whether it is simple or complex, and what kind of thing the answer is."""
    kind = "simple" if case.type in _SIMPLE else "complex" if case.type in _COMPLEX else ""
    answer = f"{case.answer_type} answer" if case.answer_type else ""
    return (case.type or UNSTATED, *filter(None, (kind, answer)))


def _stark(case: Case) -> tuple[float, ...]:
    gold, ranking = set(case.gold_ids), case.ranked_ids
    rank = _first_right(ranking, gold)
    found = len(gold.intersection(ranking[:20]))
    return float(rank == 1), float(1 <= rank <= 5), found / len(gold), 1 / rank if rank else 0.0


CRON, STARK = _profile("cron", _cron, groups=_cron_groups), _profile("stark", _stark, scorable=_has_ids)


def _agreement(said: AbstractSet[str], gold: AbstractSet[str]) -> tuple[float, float, float]:
    """Return F1, precision and recall; an empty side has no errors."""
    if not gold:
        return (0.0, 0.0, 1.0) if said else (1.0, 1.0, 1.0)
    if not said:
        return 0.0, 1.0, 0.0
    matched = len(said & gold)
    return 2 * matched / (len(said) + len(gold)), matched / len(said), matched / len(gold)


def _webqsp_score(case: Case) -> tuple[float, ...]:
    said = set(case.ranked_ids)
    best = max((_agreement(said, set(parse)) for parse in case.parses or (case.gold_ids,)), key=lambda each: each[0])
    return (*best, float(best[0] == 1.0))


WEBQSP_OFFICIAL = _profile(
    "webqsp-official",
    _webqsp_score,
    scorable=lambda case: bool(case.gold_ids or case.parses) and bool(case.answer_ids or not case.answers),
)


_ALL = (STRICT, BYOKG, ROG, GNN_RAG, GCR, SUBGRAPHRAG, TOG, STRUCTGPT, WEBQSP_OFFICIAL, CRON, STARK, TEXT2CYPHER)

PROFILES: Mapping[str, Profile] = MappingProxyType({profile.name: profile for profile in _ALL})
"""All profiles by name, in the order in which tables list them."""

ALL = "all"


def select_profiles(names: Sequence[str]) -> tuple[Profile, ...]:
    """Return the profiles of these names, each once; `all` is all of them.

    Raises:
        ConfigError: there is no such profile.
    """
    known = list(PROFILES)
    for name in names:
        if name not in known and name != ALL:
            raise ConfigError(f"--profile {name} is not known; use {ALL}, or some of {', '.join(known)}")
    wanted = known if ALL in names else list(dict.fromkeys(names))
    return tuple(PROFILES[name] for name in wanted)
