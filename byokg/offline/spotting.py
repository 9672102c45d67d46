"""Mention detection by itself, for pipelines with a language model: it reads labels of relations, and no ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import TypeVar

from byokg.errors import CacheUnusable
from byokg.files import user_cache
from byokg.graph.store import GraphStore
from byokg.index.embedders import Embedder, SentenceTransformerEmbedder, exact, shipped_embedder
from byokg.index.embedding_cache import CachedEmbedder
from byokg.linking.entities import EntityLinker
from byokg.linking.parts import Parts
from byokg.offline.answer_type import AnswerTypePredictor
from byokg.offline.label_similarity import LabelSimilarity, WordSettings
from byokg.offline.mentions import MentionSpotter, SpottingSettings
from byokg.offline.statistics import SampledStatistics, SchemaStatistics, WalkedStatistics
from byokg.types import EntityId

_Made = TypeVar("_Made")

_GENEROUS = SpottingSettings(another=0.15, most=6)
"""Low thresholds: too much in a schema costs little; a missing part is not found."""


def mention_spotter(store: GraphStore, embedder: Embedder, entities: EntityLinker) -> MentionSpotter:
    """Return the offline pipeline's mention detector, by itself."""
    statistics = WalkedStatistics(store) if store.remote else SampledStatistics(store)

    @cache
    def labels() -> LabelSimilarity:
        statistics.list_relations()
        vector = lru_cache(1 << 12)(lambda word: exact(embedder.encode([word])[0]))
        relations, cached = tuple(statistics.relations), not statistics.grows
        return with_cache(embedder, cached, lambda names: LabelSimilarity(relations, names, vector, WordSettings()))

    return spotter_of(entities, statistics, lambda word: float(labels().similarity(word).max(initial=0.0)))


def entity_spotter(parts: Parts) -> Callable[[str], tuple[EntityId, ...]]:
    """Return a detector of a question's entities; it reads the relations of the graph on its first call."""
    entities = parts.entities

    @lru_cache(1)
    def spotter() -> MentionSpotter:
        made = mention_spotter(parts.store, parts.embedder, entities)
        made.settings = _GENEROUS
        return made

    def spotted(question: str) -> tuple[EntityId, ...]:
        question = parts.translate(question)
        linked = entities.link_all(spotter().spot(question), question)
        return tuple(dict.fromkeys(one.id for candidates in linked for one in candidates))

    return lru_cache(1 << 6)(spotted)


def spotter_of(
    entities: EntityLinker, statistics: SchemaStatistics, explained: Callable[[str], float]
) -> MentionSpotter:
    """Return a mention detector.

    Args:
        entities: holds the index over names.
        statistics: source of the types of a graph.
        explained: how well some relation of the graph explains a word, in [0, 1].
    """
    static, answer_types = shipped_embedder(), AnswerTypePredictor(statistics)
    return MentionSpotter(
        entities,
        lru_cache(1 << 14)(static.importance),
        explained=lru_cache(1 << 14)(explained),
        # Rare and misspelt words fall into pieces.
        familiar=lru_cache(1 << 14)(lambda word: len(static.tokens(word)[0]) == 1),
        is_type=lru_cache(1 << 14)(lambda word: not statistics.grows and bool(answer_types.type_named(word))),
    )


def with_cache(embedder: Embedder, cached: bool, make: Callable[[Embedder], _Made]) -> _Made:
    """Return what `make` makes of an embedder; embeddings of a transformer are cached on disk, in full precision."""
    if not cached or not isinstance(embedder, SentenceTransformerEmbedder):
        return make(embedder)
    kept = CachedEmbedder(embedder, user_cache() / "embeddings", "float32")
    try:
        return make(kept)
    except CacheUnusable:
        return make(embedder)
    finally:
        kept.close()
