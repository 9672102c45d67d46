"""Answers of the offline pipeline by query graphs, where these are likelier right than those of its paths.

On a graph whose properties carry the names and facts, a question is seldom a path between named nodes. So each
question is answered both ways, and the estimated probabilities decide: `QueryAnswers` ranks and executes query graphs,
`QueryStage` puts its answer into the context if it wins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock

import numpy as np

from byokg.arrays import Float64
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.name_indexes import name_index
from byokg.graph.value_indexes import value_index
from byokg.index.embedders import StaticEmbedder
from byokg.index.values import ValueIndex
from byokg.offline.aggregation import AggregationLinker, AggregationRetriever, grouping
from byokg.offline.answerer import UNSURE
from byokg.offline.lexicon import cached, rule
from byokg.offline.query_graphs import QueryExecution, QueryExecutor, QueryGraph, QueryResult, cypher
from byokg.offline.query_ranking import (
    CONFIDENCE,
    FEATURES,
    QueryRanking,
    QuerySearch,
    QueryWeights,
    lacks_set_operation,
    result_features,
    shipped_weights,
    unused_operators,
    weighted,
)
from byokg.offline.query_reading import QuestionReader, QuestionView, SchemaWords
from byokg.offline.query_schema import SEARCH, VALUES, WORDS, TypedSchema, ValueSpotter
from byokg.offline.question_coverage import UnusedPart, immaterial, quoted
from byokg.pipelines.answers import ConfidenceEstimate
from byokg.pipelines.context import READ
from byokg.pipelines.loop import Loop
from byokg.text.names import WORD
from byokg.types import (
    AnswerItem,
    Artifacts,
    Cell,
    ComputedEvidence,
    Context,
    Evidence,
    LinkedEntity,
    LinkedValue,
    Mention,
    NodeCell,
    Question,
    Request,
    RowsEvidence,
    UnknownValue,
)

QUERY = "query"
"""Operation of the evidence."""

_READ = "a reading of the question that nobody checked"
_TIES = "all rows that tie with the last one are kept"


@dataclass(frozen=True)
class RankedQuery:
    """An executed query graph."""

    score: float
    graph: QueryGraph
    result: QueryResult
    features: Float64
    """In the order of `query_ranking.FEATURES`."""


@dataclass(frozen=True)
class QueryAnswer:
    """The answer of the best query graph."""

    best: RankedQuery
    text: str
    """The query as Cypher."""
    probability: float
    """Estimate that the first answer is right, in [0, 1]."""
    alternatives: tuple[tuple[str, float], ...]
    """The next best queries with their scores."""
    widened: tuple[UnusedPart, ...] = ()
    """Values in whose place the query takes a node that they lead to."""


class QueryAnswers:
    """Answers questions over one property graph by query graphs; thread-safe.

    The typed schema and the indexes are made for the first question.

    Args:
        graph: the graph.
        embedder: compares words, and weighs them.
        weights: of the ranking and its confidence; None takes those of the package.
    """

    def __init__(self, graph: ColumnarGraph, embedder: StaticEmbedder, weights: QueryWeights | None = None) -> None:
        self.graph = graph
        self.weights = shipped_weights() if weights is None else weights
        self._embedder = embedder
        self._lock = Lock()
        self.answer = cached(SEARCH.remembered)(self._answered)
        """Returns the answer to a question's text; None without one."""

    @cached_property
    def _values(self) -> ValueIndex:
        return value_index(self.graph)

    @cached_property
    def _parts(self) -> tuple[TypedSchema, SchemaWords, QuestionReader, QueryExecutor]:
        schema = TypedSchema(self.graph)
        words = SchemaWords(schema, self._embedder)
        spotter = ValueSpotter(schema, self._values, name_index(self.graph), self._is_common)
        return schema, words, QuestionReader(schema, words, spotter, self._embedder.importance), QueryExecutor(schema)

    def _is_common(self, word: str) -> bool:
        return len(self._embedder.tokens(word)[0]) == 1  # rare and misspelt words fall into pieces

    def _read(self, text: str) -> QuestionView:
        with self._lock:
            reader = self._parts[2]
        return reader.read(text)

    def ranked(self, text: str, most: int = SEARCH.executed) -> tuple[QuestionView, list[RankedQuery]]:
        """Return the parsed question, and its query graphs, the best first."""
        view = self._read(text)
        schema, words, _, executor = self._parts
        ranking = QueryRanking(schema, words, view, self.weights.ranking)
        execution = QueryExecution(executor)
        found = []
        for one in QuerySearch(ranking).candidates(most):
            result = execution.run(one.graph)
            whole = len(schema.members(one.graph.variables[0].type))
            features = np.concatenate((one.features, result_features(one.graph, len(result.nodes), whole)))
            found.append(RankedQuery(float(weighted(features, self.weights.ranking)), one.graph, result, features))
        found.sort(key=lambda each: -each.score)
        return view, found

    def _answered(self, text: str) -> QueryAnswer | None:
        if len(text) > SEARCH.characters:
            return None
        view, found = self.ranked(text)
        if not found or not len(found[0].result.nodes):
            return None
        best = found[0]
        if _is_unrelated(best) or lacks_set_operation(view, best.graph):
            return None
        schema, widened = self._parts[0], tuple(self._widened(view, best))
        return QueryAnswer(
            best,
            cypher(schema, best.graph),
            round(1 / (1 + math.exp(-weighted(features_of(found), self.weights.confidence))), 6) * immaterial(widened),
            tuple((cypher(schema, one.graph), one.score) for one in found[1 : 1 + SEARCH.alternatives]),
            widened,
        )

    def _widened(self, view: QuestionView, best: RankedQuery) -> Iterator[UnusedPart]:
        """Yield the values for which a query takes another node, without a word for it, on its way to several results.

        Rivers of France, the country with that capital, need not flow through Paris.
        """
        schema, words, *_ = self._parts
        pieces = [found.span() for found in WORD.finditer(view.text)]
        for one in best.graph.variables if len(best.result.nodes) > 1 else ():
            if one.step is None or one.parent < 1 or not one.constraints:
                continue
            test, over = one.constraints[0], best.graph.variables[one.parent].type
            if view.explained[[words.first_relation + one.step.relation, over]].max(initial=0.0) >= WORDS.some:
                continue
            nodes = schema.holders(test.property, test.codes) if test.nodes is None else test.nodes
            whole = schema.follow(nodes, schema.steps[one.step.reverse])
            if len(whole) == 1:
                start, end = pieces[test.start][0], pieces[test.end - 1][1]
                yield UnusedPart(view.text[start:end], "widened", start, schema.graph.names_at(whole)[0])

    @rule("unknown values", "who has the surname {Zyskowicz}", lambda self, text, linked: ())
    def unknown(self, text: str, linked: Sequence[LinkedEntity]) -> tuple[UnknownValue, ...]:
        """Return the values that a question names and the graph lacks, with the values nearest to them.

        Args:
            text: the question.
            linked: nodes of its mentions; a mention that a node's name resembles is known.
        """
        if len(text) > SEARCH.characters:
            return ()
        read = self._read(text)
        pieces = [found.span() for found in WORD.finditer(text)]
        found = []
        for start, end in read.unknown:
            first, last = pieces[start][0], pieces[end - 1][1]
            apart = all(one.mention.end <= first or last <= one.mention.start for one in linked)
            if apart and not self._parts[0].holds(text[first:last]):
                mention = Mention(text[first:last], first, last)
                near = self._values.find(mention.text, limit=SEARCH.nearest, least=VALUES.nearest)
                values = (LinkedValue(one.type, one.property, one.value, mention, one.score, one.count) for one in near)
                found.append(UnknownValue(mention, tuple(values)))
        return tuple(found)

    def is_aggregation(self, text: str) -> bool:
        """True if a question asks for a sum or an average."""
        return len(text) <= SEARCH.characters and bool(self._read(text).aggregate)

    def better(self, text: str, other: float) -> QueryAnswer | None:
        """Return the answer to a question's text if it is likelier right than another of a probability (0: none).

        No query graph is searched for if even a certain one, with any number of the values named, would lose.
        """
        if len(text) > SEARCH.characters:
            return None
        view = self._read(text)
        most = min(SEARCH.valued, len(view.counts) + sum(any(test.property.name for test in of) for of in view.spans))
        extremes = [choice_features(count, sure, other) for count in range(most + 1) for sure in (0.0, 1.0)]
        if weighted(np.array(extremes), self.weights.choice).max() <= SEARCH.margin:
            return None
        answer = self.answer(text)
        if answer is None:
            return None
        features = choice_features(count_valued(answer.best.graph), answer.probability, other)
        return answer if weighted(features, self.weights.choice) > SEARCH.margin else None

    def rows(self, text: str) -> list[Evidence]:
        """Return the likeliest query of a question with its rows, as evidence that no language model asked for.

        Empty below `SEARCH.shown`. A reader compares the query with the question.
        """
        answer = self.answer(text)
        if answer is None or answer.probability < SEARCH.shown:
            return []
        made, result = answer.best.graph, answer.best.result
        shown: Sequence[Cell] = result.values[: SEARCH.rows]
        total, column = len(result.values), made.operation if made.projected is None else made.projected.name
        if made.operation == "list" and made.projected is None:
            nodes = self.graph.nodes(self.graph.ids(result.nodes[: SEARCH.rows]))
            shown, column, total = [NodeCell(node.id, node.name) for node in nodes], nodes[0].type, len(result.nodes)
        rows, read = tuple((cell,) for cell in shown), (answer.text, (column,))
        notes = [_READ]
        if unused := self._unused(text, made):
            notes.append(f"nothing in it stands for {', '.join(map(repr, unused))}")
        if total > 1 and (made.frequent or any(one.extremum is not None for one in made.variables)):
            notes.append(_TIES)
        return [
            RowsEvidence(
                READ, answer.probability, "cypher", *read, rows, len(rows) < total, total=total, readings=tuple(notes)
            )
        ]

    def _unused(self, text: str, graph: QueryGraph) -> list[str]:
        """Return the operators and values of a question that a query graph leaves out."""
        view, used = self._read(text), {one.span() for one in graph.constraints}
        spans = (group[0].span() for group in view.spans if group[0].span() not in used)
        return [*unused_operators(view, graph), *(" ".join(view.words[start:end]) for start, end in spans)]


class QueryStage:
    """The second stage with query graphs beside aggregations: its linker, its retriever, and the confidence of answers.

    Args:
        queries: answers by query graphs.
        loop: the pipeline without them: a stage of paths, and one of aggregations.
        aggregation: the retriever of the second stage.
    """

    def __init__(self, queries: QueryAnswers, loop: Loop, aggregation: AggregationRetriever) -> None:
        assert loop.estimator is not None
        self._queries, self._answerer, self._estimator = queries, loop.answerer, loop.estimator
        self._aggregation, self._linker = aggregation, AggregationLinker()

    def propose(self, question: Question, context: Context) -> Artifacts:
        """Return what the linker of aggregations proposes, unfinished if a query graph answers better.

        Finished if the question names a value that is nowhere, and came without topic entities.
        """
        artifacts = self._linker.propose(question, context)
        linked = [entity for earlier in context.rounds for entity in earlier.linked.entities]
        if unknown := () if question.topic_ids else self._queries.unknown(question.text, linked):
            return replace(artifacts, finished=True, unknown=unknown)
        if artifacts.finished and self._better(question, context) is not None:
            return replace(artifacts, finished=False)
        return artifacts

    def retrieve(self, request: Request) -> list[Evidence]:
        """Return the result of the best query graph if it beats paths and aggregations, then those of aggregations."""
        before, question = request.context, request.question
        if self._linker.propose(question, before).finished:
            computed, answer = list[Evidence](), self._queries.answer(question.text)  # which `propose` preferred
        else:
            computed = self._aggregation.retrieve(request)
            answer = self._better(question, before.add(request.artifacts, request.linked, [computed]))
        return computed if answer is None else [self._evidence(answer, request), *computed]

    def estimate(self, question: Question, context: Context, items: Sequence[AnswerItem]) -> ConfidenceEstimate:
        """Return the probability that the first answer is right."""
        found = next((i for i in context.evidence if isinstance(i, ComputedEvidence) and i.operation == QUERY), None)
        if found is None:
            return self._estimator.estimate(question, context, items)
        answer, missing = self._queries.answer(question.text), "other queries fit the question as well"
        unused = quoted(answer.widened) if answer is not None else ""
        return ConfidenceEstimate(found.score, missing, unused=unused, unsure=found.score < UNSURE)

    def explain_absence(self, context: Context) -> str:
        """Describe the missing support of an answer."""
        if unknown := [str(value) for one in context.rounds for value in one.artifacts.unknown]:
            return f"unanswerable: {'; '.join(unknown)}"
        return self._estimator.explain_absence(context)

    def _better(self, question: Question, context: Context) -> QueryAnswer | None:
        """Return the answer of the query graphs if it is likelier right than what the context gives."""
        if grouping(self._queries.graph, context):
            return None
        items = self._answerer.answer(question, context)
        other = self._estimator.estimate(question, context, items).probability if items else 0.0
        computed = any(isinstance(item, ComputedEvidence) for item in context.evidence)
        if not computed and self._queries.is_aggregation(question.text):
            other = min(other, SEARCH.listed)
        return self._queries.better(question.text, other)

    def _evidence(self, answer: QueryAnswer, request: Request) -> ComputedEvidence:
        """Return the result of a query as evidence, and note the query for the trace."""
        graph, result = answer.best.graph, answer.best.result
        others = [{"query": text, "score": round(score, 4)} for text, score in answer.alternatives]
        parts = zip(FEATURES, (answer.best.features * self._queries.weights.ranking).tolist(), strict=True)
        contributions = {name: share for name, part in parts if (share := round(part, 2))}
        got = {"nodes": len(result.nodes), "contributions": contributions, "alternatives": others}
        request.note("query graph", {"query": answer.text, "score": round(answer.best.score, 4)}, got)
        plain = graph.operation == "list" and graph.projected is None
        nodes = tuple(self._queries.graph.ids(result.nodes)) if plain else ()
        text = f"{answer.text}: {len(nodes) if plain else len(result.values):,} of {len(result.nodes):,} nodes"
        return ComputedEvidence(QUERY, answer.probability, QUERY, text, nodes, () if plain else result.values)


def with_query_graphs(loop: Loop, queries: QueryAnswers, aggregation: AggregationRetriever) -> Loop:
    """Return the offline pipeline of a graph with query graphs beside its paths; arguments as for `QueryStage`."""
    stage, (paths, computed) = QueryStage(queries, loop, aggregation), loop.stages
    return replace(loop, stages=[paths, replace(computed, linker=stage, retrievers=(stage,))], estimator=stage)


def _is_unrelated(query: RankedQuery) -> bool:
    """True for a query that explains little of the question, or lists all nodes of a type that no word names.

    A question that has nothing to do with the graph gets such a query, since no other fits.
    """
    feature = dict(zip(FEATURES, query.features.tolist(), strict=True))
    unnamed = feature["unheard_root"] > 1 - WORDS.synonym
    return feature["covered"] < SEARCH.covered or bool(feature["everything"] and unnamed)


def features_of(found: Sequence[RankedQuery]) -> Float64:
    """Return the features of confidence in the best of some query graphs, in the order of `CONFIDENCE`."""
    best = found[0]
    scores = np.array([one.score for one in found])
    shares = np.exp(scores - scores.max())
    agreeing = sum(share for share, one in zip(shares.tolist(), found, strict=True) if _equal(one, best))
    share = min(agreeing / float(shares.sum()), 0.999)
    of = dict(zip(FEATURES, best.features.tolist(), strict=True))
    return np.array([1.0, math.log(share / (1 - share)), best.score / 10, *(of[name] for name in CONFIDENCE[3:])])


def count_valued(graph: QueryGraph) -> int:
    """Return the number of constraints of property values, `SEARCH.valued` at most."""
    return min(SEARCH.valued, sum(bool(test.property.name) for test in graph.constraints))


def choice_features(valued: int, probability: float, other: float) -> Float64:
    """Return the features of the choice between a query graph and paths, in the order of `CHOICE`.

    Args:
        valued: constraints of property values.
        probability: estimate that its first answer is right, in [0, 1], and
        other: that the paths' first answer is; 0 without one.
    """
    return np.array([1.0, _log_odds(probability), _log_odds(other), other == 0, valued > 0, valued], np.float64)


def _log_odds(probability: float) -> float:
    near = min(max(probability, SEARCH.surely), 1 - SEARCH.surely)
    return math.log(near / (1 - near))


def _equal(one: RankedQuery, other: RankedQuery) -> bool:
    """True if two query graphs have the same result."""
    first, second = one.result, other.result
    return first.values == second.values and (bool(first.values) or np.array_equal(first.nodes, second.nodes))
