"""The KG-Linker without a language model: the same artifacts, from embeddings and the graph's own words."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from byokg.errors import ConfigError, EntityNotFound
from byokg.graph.metapaths import Growth, grow, labels, start
from byokg.graph.store import GraphStore
from byokg.linking.alignment import MAX_HOPS, Aligned, PathScorer, QuestionScorer, Weights
from byokg.linking.entities import EntityLinker
from byokg.linking.mentions import MentionSpotter
from byokg.linking.reading import locate, read_question
from byokg.types import Artifacts, Context, EntityId, Mention, ProposedPath, Question

Float = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Topic:
    """One node that one mention may mean."""

    node: int
    id: EntityId
    mention: int


class OfflineLinker:
    """Proposes mentions and metapaths for a question, by what the graph holds and what its labels mean.

    Metapaths are grown from the topic entities hop by hop, in both directions, keeping the most promising; only
    those that exist are proposed. Every length competes with every other, which decides the number of hops.

    Args:
        store: the graph.
        entities: links mentions.
        spotter: finds mentions when the question comes without topic entities.
        scorer: scores metapaths against the question.
        max_hops: edges a metapath may have, 1 to 3; an edge to a nameless node and the edge out of it make one hop
            for the scorer, and still two edges here.
        beam: metapaths lengthened at each hop; those that stand at a nameless node are always lengthened.
        sample: nodes looked at in each step of growing.
        top_k: metapaths proposed for each topic entity.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "KG-Linker", whose artifacts it writes.
    Differs: writes no query, no draft answers and no BFS-QL; one round is all it has to say.
    """

    def __init__(
        self,
        store: GraphStore,
        entities: EntityLinker,
        spotter: MentionSpotter,
        scorer: PathScorer,
        max_hops: int = MAX_HOPS,
        beam: int = 32,
        sample: int = 256,
        top_k: int = 10,
    ) -> None:
        if not 1 <= max_hops <= MAX_HOPS:
            raise ConfigError(f"max_hops={max_hops} is out of range; the offline linker walks 1 to {MAX_HOPS} hops")
        for name, value in (("beam", beam), ("sample", sample), ("top_k", top_k)):
            if value < 1:
                raise ConfigError(f"{name}={value} finds nothing; use 1 or more")
        self._store = store
        self._entities = entities
        self._spotter = spotter
        self._scorer = scorer
        self._max_hops = max_hops
        self._beam = beam
        self._sample = sample
        self._top_k = top_k

    def propose(self, question: Question, context: Context) -> Artifacts:
        """Return mentions, and metapaths best first, each with the entity it starts from.

        Raises:
            EntityNotFound: none of the topic entities given with the question is in the store.
            ConfigError: the hop count given with the question is out of range.
        """
        if context.rounds:
            return Artifacts(finished=True)
        if question.hops is not None and not 1 <= question.hops <= MAX_HOPS:
            raise ConfigError(
                f"question {question.id!r} asks for {question.hops} hops; the offline linker walks 1 to {MAX_HOPS}"
            )
        mentions, scorer, grown = self._explore(question)
        return Artifacts(mentions=mentions, paths=self._ranked(scorer, grown, question.hops))

    def considered(self, question: Question) -> tuple[list[Growth], Float, npt.NDArray[np.bool_]]:
        """Return what was scored, for fitting and diagnosis.

        Returns:
            P metapaths in parts, their features (P, F) in the order of `Weights`, and whether they end at nodes
            that have names: (P,).
        """
        _, scorer, grown = self._explore(question)
        parts = [aligned for *_, aligned in grown]
        if not parts:
            return [], np.empty((0, len(fields(Weights))), np.float32), np.empty(0, np.bool_)
        named = [~scorer.nameless(growth.steps[:, -1]) for _, growth, _ in grown]
        return [growth for _, growth, _ in grown], scorer.features(parts), np.concatenate(named)

    def _explore(
        self, question: Question
    ) -> tuple[tuple[Mention, ...], QuestionScorer, list[tuple[_Topic, Growth, Aligned]]]:
        """Read the question and grow metapaths out of every topic entity."""
        mentions, topics = self._mentions(question)
        missing = [name for mention, name in mentions if mention.start < 0]
        reading = read_question(question.text, [mention for mention, _ in mentions], missing)
        scorer = self._scorer.question(reading)
        grown: list[tuple[_Topic, Growth, Aligned]] = []
        for topic in topics:
            others = [other.node for other in topics if other.mention != topic.mention]
            avoid = np.unique(np.array([topic.node, *others], np.int64))
            grown += [(topic, *level) for level in self._grow(scorer, topic.node, avoid, question.hops)]
        return tuple(mention for mention, _ in mentions), scorer, grown

    def _mentions(self, question: Question) -> tuple[list[tuple[Mention, str]], list[_Topic]]:
        """Return each mention with the name of what it means, and the nodes to start from."""
        if question.topic_ids:
            nodes = self._store.nodes(self._known(question))
            mentions = [locate(node.name, question.text, (node.id,)) for node in nodes]
        else:
            mentions = self._spotter.spot(question.text)
        linked = self._entities.link_all(mentions, question.text)
        ids = [candidate.id for candidates in linked for candidate in candidates]
        numbers = iter(self._store.numbers(ids).tolist())
        topics: dict[int, _Topic] = {}  # a node that two mentions may mean is walked from once
        for position, candidates in enumerate(linked):
            for candidate in candidates:
                node = next(numbers)
                topics.setdefault(node, _Topic(node, candidate.id, position))
        named = [(mention, found[0].name if found else "") for mention, found in zip(mentions, linked, strict=True)]
        return named, list(topics.values())

    def _known(self, question: Question) -> list[EntityId]:
        """Return the given topic entities that the graph has; a question needs one of them at least."""
        known: list[EntityId] = []
        missing: EntityNotFound | None = None
        for topic in dict.fromkeys(question.topic_ids):
            try:
                self._store.numbers([topic])
                known.append(topic)
            except EntityNotFound as error:
                missing = missing or error
        if missing is not None and not known:
            raise missing
        return known

    def _grow(self, scorer: QuestionScorer, topic: int, avoid: Int64, hops: int | None) -> list[tuple[Growth, Aligned]]:
        """Grow metapaths out of one topic entity: one entry a hop."""
        growth, chosen, levels = start(topic), np.zeros(1, np.int64), []
        most = self._max_hops if hops is None else hops
        for hop in range(1, most + 1):
            growth = grow(self._store, growth, chosen, avoid, self._sample)
            if len(growth) == 0:
                break
            aligned = scorer.align(growth.steps)
            levels.append((growth, aligned))
            if hop < most:
                nameless = scorer.nameless(growth.steps[:, -1])
                promise = np.where(nameless, np.inf, scorer.scores([aligned])[0])
                order = np.argsort(-promise, kind="stable")
                chosen = np.sort(order[: self._beam + int(nameless.sum())])
        return levels

    def _ranked(
        self, scorer: QuestionScorer, grown: list[tuple[_Topic, Growth, Aligned]], hops: int | None
    ) -> tuple[ProposedPath, ...]:
        if not grown:
            return ()
        proposed: dict[int, list[ProposedPath]] = {}
        for (topic, growth, _), scores in zip(grown, scorer.scores([part for *_, part in grown]), strict=True):
            if hops is not None and growth.steps.shape[1] != hops:
                continue
            kept = np.flatnonzero(~scorer.nameless(growth.steps[:, -1]))
            best = kept[np.argsort(-scores[kept], kind="stable")[: self._top_k]]
            proposed.setdefault(topic.node, []).extend(
                ProposedPath(labels(self._store, growth.steps[path]), float(scores[path]), topic.id)
                for path in best.tolist()
            )
        # Python's sort is stable, so shorter metapaths come before longer ones of the same score.
        tops = [sorted(paths, key=lambda path: -path.score)[: self._top_k] for paths in proposed.values()]
        return tuple(sorted((path for paths in tops for path in paths), key=lambda path: -path.score))
