"""Scores of entity linkers on the annotated topic entities of a data set, several linkers on the same mentions.

Data sets annotate the node, seldom the words that name it. A gold mention is the span that a perfect mention detector
would return: it is located with the node's name, and only its words are looked up in the graph.

The unit is the question. For a question with the topic entities G, and M mentions each with its candidates best first:

| metric | definition | range |
|---|---|---|
| `recall@k` | share of G that is among the first k candidates of some mention | [0, 1] |
| `precision@k` | share of the nodes among the first k candidates of the mentions that are in G; 0 for none | [0, 1] |
| `recall`, `precision` | the same of all candidates, as a pipeline gets them | [0, 1] |
| `mrr` | mean over G of 1 / best rank in any mention's candidates, 0 if there is none | [0, 1] |

Every question with annotated topic entities counts in every metric, with one denominator: a topic missing from the
graph, a topic without a mention in the question, and a question whose linking raised an error score zero and are
counted. The figures of a mention type are means over topic entities, each searched among the candidates of all mentions
of its question; precision has no meaning for one topic.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np
from rapidfuzz import fuzz

from byokg.errors import ByokgError, ConfigError, RunError
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.folder import holds
from byokg.evaluation.metrics import Estimate, estimates_of
from byokg.evaluation.significance import RESAMPLES, bootstrap
from byokg.graph.store import GraphStore
from byokg.linking.entities import EntityLinker
from byokg.text.names import FUNCTION_WORDS, QUESTION_WORDS, WORD, locate, normalize_name
from byokg.text.values import read_literal
from byokg.types import EntityId, LinkedEntity, Mention, Node

MentionType = Literal[
    "exact name", "alias", "misspelt", "part of name", "other words", "literal or id", "not in question", "not in graph"
]
MENTION_TYPES: tuple[MentionType, ...] = get_args(MentionType)

MentionSource = Literal["given", "spotted"]
"""`given`: the words of the question that name the annotated entity (see `gold_mention`), which needs the annotation.
`spotted`: mentions detected by the offline pipeline."""

LINKING_METRICS = ("precision@1", "recall@1", "precision@3", "recall@3", "precision", "recall", "mrr")
"""Names in reports."""

TOPIC_METRICS = ("recall@1", "recall@3", "recall", "mrr")
"""Those that a single topic entity has."""

NOTHING_LINKED = dict.fromkeys(LINKING_METRICS, 0.0)

_LONGEST_RUN = 12
_ALIKE = 0.8
"""Similarity letter by letter, in [0, 1], from which two words, or a mention and a name, are one misspelt."""

_log = logging.getLogger(__name__)


def gold_mention(name: str, question: str) -> Mention | None:
    """Find the words of a question that name a topic entity.

    They are the name itself if it stands there (folded). Otherwise they are the run of up to 12 words most like the
    name, the words of both sorted, among the runs that either begin and end with words of the name (`obama` for Barack
    Obama; words at least 0.8 alike count as one) or are at least 0.8 like the whole name, letter by letter.

    Args:
        name: of the topic entity.
        question: its text.

    Returns:
        The mention without ids, or None if nothing in the question names the entity (`the us` for United States of
        America is not seen as naming it).
    """
    whole = locate(name, question, ())
    if whole.start >= 0:
        return whole
    spans = list(WORD.finditer(question))
    words = [normalize_name(span.group()) for span in spans]
    telling = [word not in FUNCTION_WORDS and word not in QUESTION_WORDS for word in words]
    wanted = normalize_name(name)
    parts = wanted.split(" ")
    known = [_known_word(word, parts) for word in words]
    best: tuple[float, int, int] | None = None
    for first in range(len(words)):
        for last in range(first, min(len(words), first + _LONGEST_RUN)):
            run = " ".join(words[first : last + 1])
            if not (known[first] and known[last]) and fuzz.ratio(run, wanted) < 100 * _ALIKE:
                continue
            alike = fuzz.token_sort_ratio(run, wanted)
            if telling[first] and telling[last] and (best is None or alike > best[0]):
                best = alike, first, last
    if best is None:
        return None
    start, end = spans[best[1]].start(), spans[best[2]].end()
    return Mention(question[start:end], start, end)


def mention_type(mention: Mention | None, name: str, aliases: Sequence[str] = ()) -> MentionType:
    """Classify the way a mention names an entity.

    Args:
        mention: the words; None if nothing names it.
        name: of the entity in the graph.
        aliases: its other names there.

    Returns:
        The first that holds: `not in question`; `literal or id` (a date, year, number or identifier); `exact name` and
        `alias`, equal after folding; `part of name`, if the words of one are among those of the other; `misspelt`, at
        least 0.8 alike letter by letter; `other words`.
    """
    if mention is None:
        return "not in question"
    if read_literal(mention.text) is not None:
        return "literal or id"
    said, called = normalize_name(mention.text), normalize_name(name)
    if said == called:
        return "exact name"
    if said in map(normalize_name, aliases):
        return "alias"
    mine, theirs = set(said.split(" ")), set(called.split(" "))
    if mine <= theirs or theirs <= mine:
        return "part of name"
    if fuzz.ratio(said, called) >= 100 * _ALIKE:
        return "misspelt"
    return "other words"


def _known_word(word: str, parts: Sequence[str]) -> bool:
    """True if a word, possibly misspelt, is one of those of a name."""
    return any(word == part or (len(word) > 3 and fuzz.ratio(word, part) >= 100 * _ALIKE) for part in parts)


@dataclass(frozen=True)
class LinkingOutcome:
    """One question's scores, with its topic entities and how each is mentioned."""

    scores: Mapping[str, float]
    """By names of `LINKING_METRICS`."""
    topics: tuple[tuple[str, Mapping[str, float]], ...]
    """Mention type of each topic entity, and its scores by names of `TOPIC_METRICS`."""
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


def score_topic(topic: str, candidates: Sequence[Sequence[str]]) -> dict[str, float]:
    """Score one topic entity against the candidates of each mention, best first, each once."""
    rank = min((list(one).index(topic) + 1 for one in candidates if topic in one), default=0)
    return {
        "recall@1": float(rank == 1),
        "recall@3": float(1 <= rank <= 3),
        "recall": float(rank > 0),
        "mrr": 1 / rank if rank else 0.0,
    }


def score_linking(topics: Collection[str], candidates: Sequence[Sequence[str]]) -> dict[str, float]:
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

    scores = {name: sum(one[name] for one in each) / len(each) for name in TOPIC_METRICS}
    scores |= {"precision@1": precision(1), "precision@3": precision(3), "precision": precision(None)}
    return {name: scores[name] for name in LINKING_METRICS}


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
    topics: dict[str, list[Mapping[str, float]]] = {}
    for outcome in outcomes:
        for kind, scores in outcome.topics:
            topics.setdefault(kind, []).append(scores)
    order = [*(kind for kind in types if kind in topics), *sorted(topics.keys() - set(types))]
    return LinkingMetrics(
        n=len(outcomes),
        topics=sum(map(len, topics.values())),
        failed=sum(outcome.failed for outcome in outcomes),
        estimates=_estimates([outcome.scores for outcome in outcomes], seed, resamples),
        by_type={kind: TypeSummary(len(topics[kind]), _estimates(topics[kind], seed, resamples)) for kind in order},
    )


def _estimates(rows: Sequence[Mapping[str, float]], seed: int, resamples: int) -> dict[str, Estimate]:
    table = np.array([list(row.values()) for row in rows], np.float64)
    return estimates_of(rows[0], (column.mean() for column in table.T), *bootstrap(table, seed, resamples))


class Spotter(Protocol):
    """Finds mentions in a question."""

    def spot(self, text: str) -> list[Mention]:
        """Return the mentions, the most telling first."""


@dataclass(frozen=True)
class _LinkingCase:
    """A question with its topic entities and the mentions to link."""

    example: Example
    topics: tuple[tuple[EntityId, MentionType], ...]
    mentions: tuple[Mention, ...]


def evaluate_linking(
    linkers: Mapping[str, EntityLinker],
    examples: Sequence[Example],
    store: GraphStore,
    mentions: MentionSource = "given",
    spotter: Spotter | None = None,
    seed: int = 0,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, LinkingMetrics]:
    """Link the same mentions with each linker and score the candidates.

    Args:
        linkers: by their names in tables.
        examples: questions; those without annotated topic entities are left out, at least one must have some.
        store: the graph; `topic_ids` are its ids, save for those missing from it.
        mentions: origin of mentions.
        spotter: detects mentions if they are `spotted`.
        seed: of the confidence intervals.
        on_progress: called with the linker, the number of questions done, and the number in all.

    Returns:
        Metrics by linker, with equal denominators.

    Raises:
        RunError: no question has its topic entities annotated.
        ConfigError: mentions are to be spotted without a spotter.
    """
    if mentions == "spotted" and spotter is None:
        raise ConfigError("mentions=spotted needs a spotter; give one, or use mentions=given")
    annotated = [example for example in examples if example.topic_ids]
    if not annotated:
        raise RunError("no question of this data set has its topic entities annotated, so linking cannot be scored")
    known = _known_topics(store, annotated)
    asked = [_make_case(example, known, spotter if mentions == "spotted" else None) for example in annotated]
    measured = {}
    for name, linker in linkers.items():
        outcomes = []
        for done, one in enumerate(asked, start=1):
            outcomes.append(_outcome(linker, one))
            if on_progress is not None:
                on_progress(name, done, len(asked))
        measured[name] = aggregate_linking(outcomes, MENTION_TYPES, seed)
    return measured


def _known_topics(store: GraphStore, examples: Sequence[Example]) -> dict[EntityId, Node]:
    """Return the topic entities that the graph holds."""
    ids = list(dict.fromkeys(id for example in examples for id in example.topic_ids))
    known = ids if holds(store, ids) else [id for id in ids if holds(store, [id])]
    return dict(zip(known, store.nodes(known), strict=True))


def _make_case(example: Example, known: Mapping[EntityId, Node], spotter: Spotter | None) -> _LinkingCase:
    """Return the mention of each topic entity, and all mentions to link."""
    topics: list[tuple[EntityId, MentionType]] = []
    given: list[Mention] = []
    for id in dict.fromkeys(example.topic_ids):
        if id not in known:
            topics.append((id, "not in graph"))
            continue
        mention = gold_mention(known[id].name, example.question)
        topics.append((id, mention_type(mention, known[id].name)))
        if mention is not None:
            given.append(mention)
    mentions = given if spotter is None else spotter.spot(example.question)
    return _LinkingCase(example, tuple(topics), tuple(dict.fromkeys(mentions)))


def _outcome(linker: EntityLinker, asked: _LinkingCase) -> LinkingOutcome:
    """Link one question's mentions and score them; an error is a failed question."""
    found: list[tuple[LinkedEntity, ...]] = []
    failed = False
    try:
        found = linker.link_all(asked.mentions, asked.example.question)
    except ByokgError:
        _log.info("linking of question %s failed", asked.example.id, exc_info=True)
        failed = True
    candidates = [[one.id for one in some] for some in found]
    topics = tuple((kind, score_topic(id, candidates)) for id, kind in asked.topics)
    scores = NOTHING_LINKED if failed else score_linking([id for id, _ in asked.topics], candidates)
    return LinkingOutcome(scores, topics, failed)
