"""The pipeline that needs no language model, no server and no download."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.property_view import PropertyView, viewed
from byokg.graph.store import GraphStore
from byokg.index.embedders import Embedder, shipped_embedder
from byokg.linking.entities import EntityLinker
from byokg.linking.parts import Parts, RetrieverFactory
from byokg.offline.aggregation import AggregationLinker, AggregationRetriever
from byokg.offline.answer_type import AnswerTypePredictor, LiteralAnswerDetector
from byokg.offline.answerer import Confidence, ExtractiveAnswerer
from byokg.offline.execute import ConstraintExecutor
from byokg.offline.facts import PropertyLinker, TemporalNeighbors
from byokg.offline.lexicon import rule_hook
from byokg.offline.linker import GrowthLimits, OfflineLinker
from byokg.offline.mentions import MentionSpotter, spotter_of, with_cache
from byokg.offline.path_scorer import MAX_HOPS, PathScorer, read_weights, scoring_embedder, weights_for
from byokg.offline.planner import Planner
from byokg.offline.question_coverage import QuestionCoverage
from byokg.offline.ranking import FITTED, AnswerRanker
from byokg.offline.ranking import read_weights as read_ranking
from byokg.offline.schema_linking import RelationSimilarity, SampledStatistics, SchemaStatistics
from byokg.pipelines.context import ContextWriter
from byokg.pipelines.loop import Loop, Stage
from byokg.retrieval.path import PathRetriever
from byokg.types import Evidence

RETRIEVERS: Mapping[str, RetrieverFactory | None] = MappingProxyType({"path": partial(PathRetriever, twins=False)})

_MOST_TYPES = 200
"""Types up to which query graphs are searched; five times as many relations."""


def offline_pipeline(
    parts: Parts,
    max_hops: int = MAX_HOPS,
    beam: int = 32,
    top_k: int = 10,
    retrievers: Mapping[str, RetrieverFactory | None] = RETRIEVERS,
    lazy_schema: bool | None = None,
    abstain: float = 0.0,
    weights: str | Path | Planner | None = None,
    query_graphs: bool = True,
    without: Sequence[str] = (),
) -> Loop:
    """Assemble the offline pipeline for one graph.

    Args:
        parts: the shared parts; a sample of a graph in files is read at once, a server is read per question.
        max_hops, beam, top_k: see `GrowthLimits`.
        retrievers: factories by name; the answer is extracted from their paths.
        lazy_schema: collect relation statistics from the walks of each question instead of from a sample of all
            relations, which takes long on a server and gives better answers, also with values of properties. None
            does so on servers.
        abstain: probability below which there is no answer, in [0, 1].
        weights: folder of `byokg fit`: weights of paths, calibration, and possibly a ranker; None takes the shipped
            weights of the embedder. Or a planner, a fine-tuned language model, which has such a folder or none.
        query_graphs: answer by query graphs where these fit better than paths, on a graph in arrays whose typed nodes
            have properties.
        without: names of rules to leave out (`byokg.offline.lexicon`), for ablations.

    Raises:
        ConfigError: a setting is out of range, the weights cannot be read or belong to another embedder, a retriever
            needs a language model, or there is no rule of a name in `without`.

    >>> from byokg import ColumnarGraph, Question
    >>> graph = ColumnarGraph.from_triples([("France", "capital", "Paris"), ("Spain", "capital", "Madrid")])
    >>> pipeline = offline_pipeline(Parts(graph), max_hops=1)
    >>> [item.name for item in pipeline.run(Question("q1", "What is the capital of France?")).items]
    ['Paris']
    """
    folder = weights.weights if isinstance(weights, Planner) else weights
    graph, embedder, entities = parts.store, scoring_embedder(parts.embedder, folder is None), parts.entities
    lazy_schema = graph.remote if lazy_schema is None else lazy_schema
    store = graph if lazy_schema else viewed(graph)
    spotter, scorer = build_parser_and_ranker(store, embedder, entities, weights, lazy_schema)
    statistics = scorer.steps.statistics if store is graph else SampledStatistics(graph)
    properties = PropertyLinker(embedder)
    literals = LiteralAnswerDetector(store, scorer.steps, properties) if isinstance(store, PropertyView) else None
    answer_types = AnswerTypePredictor(statistics, properties.likeness)
    limits = GrowthLimits(max_hops, beam, top_k)
    linker = OfflineLinker(store, entities, spotter, scorer, limits, literals)
    shared = parts.replace(store, ContextWriter(store))
    stage = Stage(linker, tuple(shared.retrievers(retrievers).values()), rounds=1)
    fitted = None if folder is None else read_weights(folder, embedder.name).confidence
    ranker = AnswerRanker(graph, scorer, embedder, answer_types, read_ranking(fitted or FITTED), scorer.unit)
    answerer = ExtractiveAnswerer(store, answer_types, ranker)

    def reach(noun: str) -> npt.NDArray[np.float32]:
        return scorer.steps.refresh().range_similarity(noun)

    executor, neighbors = ConstraintExecutor(graph, properties, reach), TemporalNeighbors(graph, properties)
    aggregation = AggregationRetriever(
        graph, executor, neighbors, answerer.candidates, answer_types, steps=scorer.steps
    )
    judge = Confidence(answerer, ranker, QuestionCoverage(graph, scorer.steps))
    stages = [stage, Stage(AggregationLinker(), (aggregation,), rounds=1)]
    loop = Loop(entities, stages, answerer, judge, abstain, parts.translate, rule_hook(without))
    if not query_graphs or not has_valued_properties(graph):
        return loop
    from byokg.offline.query_answers import QueryAnswers, with_query_graphs  # imported on demand

    return with_query_graphs(loop, QueryAnswers(graph, shipped_embedder()), aggregation)


def query_reader(graph: GraphStore) -> Callable[[str], list[Evidence]]:
    """Return a reader of questions as query graphs, see `QueryAnswers.rows`; it finds nothing unless these fit."""
    if not has_valued_properties(graph):
        return lambda question: []
    from byokg.offline.query_answers import QueryAnswers  # imported on demand

    return QueryAnswers(graph, shipped_embedder()).rows


def has_valued_properties(graph: GraphStore) -> TypeGuard[ColumnarGraph]:
    """True for a graph in arrays whose typed nodes have properties, and whose schema is not too large to search."""
    if not isinstance(graph, ColumnarGraph):
        return False
    schema = graph.schema()
    small = len(schema.node_types) <= _MOST_TYPES and len(schema.relations) <= 5 * _MOST_TYPES
    return small and any(type and names for type, names in schema.node_properties.items())


def build_parser_and_ranker(
    store: GraphStore,
    embedder: Embedder,
    entities: EntityLinker,
    weights: str | Path | Planner | None = None,
    lazy_schema: bool | None = None,
) -> tuple[MentionSpotter, PathScorer]:
    """Return the mention detector and the path scorer.

    Raises:
        ConfigError: the weights cannot be read, or belong to another embedder.
    """
    planner = weights if isinstance(weights, Planner) else None
    weights = weights.weights if isinstance(weights, Planner) else weights
    lazy_schema = store.remote if lazy_schema is None else lazy_schema
    statistics = SchemaStatistics(store) if lazy_schema else SampledStatistics(store)
    fitted = None if weights is None else read_weights(weights, embedder.name)
    counted = weights_for(embedder) if fitted is None else fitted.weights
    static = shipped_embedder()
    if fitted is not None and fitted.ranker is not None:
        statistics.list_relations()  # it was trained on steps by their numbers
    steps = with_cache(
        embedder,
        not statistics.grows,
        lambda names: RelationSimilarity(store, embedder, statistics=statistics, names=names),
    )
    importance = lru_cache(1 << 14)(static.importance)

    def explained(word: str) -> float:
        statistics.list_relations()
        return float(steps.refresh().label_similarity(word).max(initial=0.0))

    learnt = None
    if fitted is not None and fitted.ranker is not None:
        from byokg.offline.path_ranker import PathRanker

        learnt = PathRanker.load(fitted.ranker, store, steps, embedder)
    spotter = spotter_of(entities, statistics, explained)
    return spotter, PathScorer(steps, embedder, counted, importance=importance, ranker=learnt, planner=planner)
