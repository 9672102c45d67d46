"""Scores entity linkers on the annotated topic entities of a data set, several linkers on the same mentions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from byokg.errors import ByokgError, ConfigError, EntityNotFound, RunError
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.gold_mentions import MENTION_TYPES, MentionType, gold_mention, mention_type
from byokg.evaluation.linking_metrics import (
    NOTHING_LINKED,
    LinkingMetrics,
    LinkingOutcome,
    aggregate_linking,
    score_linking,
    score_topic,
)
from byokg.graph.store import GraphStore
from byokg.linking.entities import EntityLinker
from byokg.types import EntityId, LinkedEntity, Mention, Node

MentionSource = Literal["given", "spotted"]
"""`given`: the words of the question that name the annotated entity (see `gold_mentions`), which needs the annotation.
`spotted`: what the offline pipeline finds in the question by itself."""

_log = logging.getLogger(__name__)


class Spotter(Protocol):
    """Finds mentions in a question."""

    def spot(self, text: str) -> list[Mention]:
        """Return the mentions, the most telling first."""


@dataclass(frozen=True)
class _Asked:
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
    """Link the same mentions with each linker and score what comes out.

    Args:
        linkers: by the name they have in tables.
        examples: questions; those without annotated topic entities are left out, at least one must have some.
        store: the graph; `topic_ids` are its ids, save for those it does not hold.
        mentions: where mentions come from.
        spotter: finds them where they are `spotted`.
        seed: of the confidence intervals.
        on_progress: told the linker, and how many of how many questions are done.

    Returns:
        Metrics by linker, with equal denominators.

    Raises:
        RunError: no question has its topic entities annotated.
        ConfigError: mentions are to be spotted, and there is nothing that spots them.
    """
    if mentions == "spotted" and spotter is None:
        raise ConfigError("mentions=spotted needs a spotter; give one, or use mentions=given")
    annotated = [example for example in examples if example.topic_ids]
    if not annotated:
        raise RunError("no question of this data set has its topic entities annotated, so linking cannot be scored")
    known = _known(store, annotated)
    asked = [_asked(example, known, spotter if mentions == "spotted" else None) for example in annotated]
    measured = {}
    for name, linker in linkers.items():
        outcomes = []
        for done, one in enumerate(asked, start=1):
            outcomes.append(_outcome(linker, one))
            if on_progress is not None:
                on_progress(name, done, len(asked))
        measured[name] = aggregate_linking(outcomes, MENTION_TYPES, seed)
    return measured


def _known(store: GraphStore, examples: Sequence[Example]) -> dict[EntityId, Node]:
    """Return the topic entities that the graph holds."""
    ids = list(dict.fromkeys(id for example in examples for id in example.topic_ids))
    try:
        return dict(zip(ids, store.nodes(ids), strict=True))
    except EntityNotFound:
        pass
    known = {}
    for id in ids:
        try:
            known[id] = store.nodes([id])[0]
        except EntityNotFound:
            continue
    return known


def _asked(example: Example, known: Mapping[EntityId, Node], spotter: Spotter | None) -> _Asked:
    """Find the words that name each topic entity, and what is to be linked."""
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
    return _Asked(example, tuple(topics), tuple(dict.fromkeys(mentions)))


def _outcome(linker: EntityLinker, asked: _Asked) -> LinkingOutcome:
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
