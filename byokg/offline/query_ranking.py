"""Scores of query graphs: a log-linear model of features that mean the same on every graph.

Features are the share of the question that a query graph explains, its elements that the question does not name, order
and distance of words, its size, and its result. Weights ship with the package (`data/query_weights.json`);
`scripts/fit_queries.py` fits them.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from byokg.arrays import Float64
from byokg.offline.query_graphs import Constraint, QueryGraph
from byokg.offline.query_reading import QuestionView
from byokg.offline.query_schema import Property, TypedSchema, TypedStep
from byokg.offline.query_settings import SEARCH, WORDS
from byokg.offline.query_words import SchemaWords

WEIGHTS = Path(__file__).resolve().parent.parent / "data" / "query_weights.json"


STRUCTURE = (
    "uncovered covered steps unheard_steps unheard_types unheard_root root_asked root_first spans_unused value_quality "
    "value_near value_type_near value_name value_part value_number leaves unheard_leaves inversions distance projected "
    "projected_heard projected_asked projected_first same_type directed superlative_heard superlative_near "
    "superlative_below operators_unused repeated mentions_missing mentions_extra edges_tested computed projected_fixed"
).split()
RESULT = ("empty", "size", "everything")
FEATURES = (*STRUCTURE, *RESULT)


CONFIDENCE = (
    "bias agreement score covered uncovered spans_unused operators_unused unheard_steps unheard_types root_asked "
    "root_first projected projected_heard projected_first value_near value_quality mentions_missing mentions_extra "
    "leaves same_type superlative_heard size"
).split()
"""Features of the confidence in the best query graph: a constant, the log-odds of its result among all results, its
score, and features of the ranking."""


CHOICE = ("bias", "confidence", "other", "without_other", "valued", "values")
"""Features of the choice between a query graph and paths: a constant, the log-odds of either, 1 without an answer of
the paths, 1 with constraints of property values, and their number, 3 at most."""


@dataclass(frozen=True)
class QueryWeights:
    """Weights of the features."""

    ranking: Float64
    """Of `FEATURES`."""
    confidence: Float64
    """Of `CONFIDENCE`."""
    choice: Float64
    """Of `CHOICE`."""


@cache
def shipped_weights() -> QueryWeights:
    """Return the weights that come with the package."""
    held = json.loads(WEIGHTS.read_text("utf-8"))
    parts = (("ranking", FEATURES), ("confidence", CONFIDENCE), ("choice", CHOICE))
    return QueryWeights(*(np.array([held[part][name] for name in names], np.float64) for part, names in parts))


def weighted(features: Float64, weights: Float64) -> float:
    """Return the weighted sum of features; both are put on a grid, so that sums are equal on every CPU."""
    return float((np.rint(features * SEARCH.grid) / SEARCH.grid) @ (np.rint(weights * SEARCH.grid) / SEARCH.grid))


def result_features(graph: QueryGraph, nodes: int, whole: int) -> Float64:
    """Return the features of a result, in the order of `RESULT`.

    Args:
        graph: the query graph.
        nodes: nodes of its root.
        whole: nodes of the root's type.
    """
    return np.array([nodes == 0, np.log1p(nodes) / 5, nodes == whole and len(graph.variables) == 1], np.float64)


class QueryRanking:
    """Scores the query graphs of one question.

    Args:
        schema: typed schema of the graph.
        words: its labels.
        view: the question.
        weights: of `FEATURES`, in their order.
    """

    def __init__(self, schema: TypedSchema, words: SchemaWords, view: QuestionView, weights: Float64) -> None:
        self.schema, self.words, self.view = schema, words, view
        self._weights = weights[: len(STRUCTURE)]
        content, outside = view.content.copy(), view.content.copy()
        for group in view.spans:
            content[group[0].start : group[0].end] = True
            outside[group[0].start : group[0].end] = False
        self._outside = outside
        self.heard = view.explained * outside
        """(E, W) similarities of words outside values."""
        self.best = self.heard.max(axis=1, initial=0.0)
        """(E,) of the best word."""
        best, relation = self.best.tolist(), words.first_relation
        self._gains = [_gain(best[relation + step.relation], best[step.end]) for step in schema.steps]
        self._mass = view.importance * content
        self._total = max(float(self._mass.sum()), 1e-9)
        self._known: dict[QueryGraph, tuple[float, Float64]] = {}
        self._mentioned = self._type_mentions()
        self._first = self._first_words()

    def score(self, graph: QueryGraph) -> float:
        """Return the score of a query graph without its result."""
        return self._scored(graph)[0]

    def features(self, graph: QueryGraph) -> Float64:
        """Return the features of a query graph without its result, in the order of `STRUCTURE`."""
        return self._scored(graph)[1]

    def _scored(self, graph: QueryGraph) -> tuple[float, Float64]:
        found = self._known.get(graph)
        if found is None:
            features = self._measured(graph)
            found = self._known[graph] = weighted(features, self._weights), features
        return found

    # What the question names

    def _type_mentions(self) -> dict[int, int]:
        """Return how often the question names each type, by words that name it best."""
        types = self.heard[: self.words.first_relation]
        found: dict[int, int] = defaultdict(int)
        before = -1
        for at in range(types.shape[1]):
            best = int(types[:, at].argmax())
            named = best if types[best, at] >= WORDS.named else -1
            if named >= 0 and named != before:
                found[named] += 1
            before = named
        return found

    def _first_words(self) -> list[int]:
        """Return the first words of the question that name a type or a property, side by side."""
        kinds = np.concatenate((self.heard[: self.words.first_relation], self.heard[self.words.first_property :]))
        named = kinds.max(axis=0, initial=0.0) >= WORDS.heard
        places = np.flatnonzero(named).tolist()
        return [at for at in places if at - places[0] == places.index(at)][:3]

    def step_gain(self, step: TypedStep, path: Sequence[TypedStep]) -> float:
        """Return an estimate of what a further step is worth, 0 at most."""
        repeats = sum(one.relation == step.relation for one in path)
        if not repeats:
            return self._gains[step.number]
        row = self.heard[self.words.first_relation + step.relation]
        heard = float(np.sort(row)[-1 - repeats]) if repeats < len(row) else 0.0
        if path[-1].relation == step.relation and step.start != step.end:
            heard -= 0.3
        return _gain(heard, float(self.best[step.end]))

    def heard_at(self, step: TypedStep) -> int:
        """Return the word that names a step best; -1 if none does."""
        row = self.heard[self.words.first_relation + step.relation]
        at = int(row.argmax()) if len(row) else -1
        return at if at >= 0 and row[at] >= WORDS.some else -1

    def unexplained(self, graph: QueryGraph) -> Float64 | None:
        """Return for each element how well it explains a word that the query graph does not: (E,); None without any."""
        places = np.flatnonzero(self._outside & (self._cover(graph) < WORDS.heard))
        return self.view.explained[:, places].max(axis=1) if len(places) else None

    def measure_heard(self, property: Property) -> float:
        """Return the similarity of a property and the measure of the question's superlative, in [0, 1]."""
        order = self.view.demand.order
        assert order is not None
        at = self.words.first_property + property.number
        nouns = dict.fromkeys(word for noun in order.nouns for word in (noun, *noun.split()))
        heard = max((float(self._of(word, at)) - 0.02 * place for place, word in enumerate(nouns)), default=0.0)
        if order.dates and property.kind in ("date", "year", "time"):
            heard = max(heard, 0.7 if property.kind != "time" else 0.6)
        near = self.view.order_at
        if near >= 0:  # the highest *unit price*
            heard = max(heard, 0.95 * float(self.view.explained[at, near : near + 4].max(initial=0.0)))
        return heard

    def _of(self, word: str, element: int) -> float:
        return float(self.words.of_word(word)[element])

    def step_counted(self, step: TypedStep) -> float:
        """Return the similarity of a step and the things that the question's superlative counts, in [0, 1]."""
        order = self.view.demand.order
        assert order is not None
        relation = self.words.first_relation + step.relation
        nouns = [word for noun in order.nouns for word in noun.split()]
        return max((max(self._of(noun, step.end), self._of(noun, relation)) for noun in nouns), default=0.0)

    # Features

    def _cover(self, graph: QueryGraph) -> Float64:
        cover: Float64 = self.view.explained[self._elements(graph)].max(axis=0, initial=0.0)
        for one in graph.constraints:
            cover[one.start : one.end] = 1.0
        return cover

    def _elements(self, graph: QueryGraph) -> list[int]:
        """Return the elements of a query graph, which may explain words."""
        relation, property = self.words.first_relation, self.words.first_property
        elements = []
        for one in graph.variables:
            elements.append(one.type)
            if one.step is not None:
                elements.append(relation + one.step.relation)
            elements += [property + test.property.number for test in (*one.constraints, *one.on_edge)]
            if one.extremum is not None and one.extremum.property is not None:
                elements.append(property + one.extremum.property.number)
            for step in (one.extremum and one.extremum.step, one.counted and one.counted.step):
                if step:
                    elements += [step.end, relation + step.relation]
        if graph.projected is not None:
            elements.append(property + graph.projected.number)
        return elements

    def _measured(self, graph: QueryGraph) -> Float64:
        row = dict.fromkeys(STRUCTURE, 0.0)
        uncovered = weighted(1 - self._cover(graph), self._mass)
        row["uncovered"], row["covered"] = uncovered, 1 - uncovered / self._total
        self._measure_tree(graph, row)
        self._measure_values(graph, row)
        self._measure_answer(graph, row)
        self._measure_operators(graph, row)
        return np.array(list(row.values()))

    def _measure_values(self, graph: QueryGraph, row: dict[str, float]) -> None:
        constraints = graph.constraints
        used = {one.span() for one in constraints}
        row["spans_unused"] = float(sum(group[0].span() not in used for group in self.view.spans))
        row["repeated"] = float(len(constraints) - len(used))
        for one in constraints:
            row["value_quality"] += one.quality - 1
            row["value_near"] += one.near
            row["value_name"] += not one.property.name
            row["value_part"] += one.test not in ("=", ">", ">=", "<", "<=")
            row["value_number"] += one.property.kind == "number" and one.near < WORDS.heard
            row["edges_tested"] += one.property.relation >= 0

    def _measure_answer(self, graph: QueryGraph, row: dict[str, float]) -> None:
        view, root, asked = self.view, graph.variables[0], list(self.view.asked) or self._first
        if graph.projected is None or graph.edge >= 0:
            row["unheard_root"] = 1 - float(self.best[root.type])
            row["root_asked"] = float(view.explained[root.type, asked].max(initial=0.0)) if asked else 0.0
            row["root_first"] = float(self.heard[root.type, self._first].max(initial=0.0))
        if graph.projected is not None:
            heard = self.heard[self.words.first_property + graph.projected.number] * self._unclaimed(graph.constraints)
            row["projected"], row["projected_heard"] = 1.0, float(heard.max(initial=0.0))
            row["projected_asked"] = float(heard[asked].max(initial=0.0)) if asked else 0.0
            row["projected_fixed"] = float(
                any(one.property is graph.projected and one.test == "=" for one in root.constraints)
            )
            row["projected_first"] = float(heard[self._first].max(initial=0.0))
            if graph.edge < 0:
                row["root_first"] = 0.5 * float(self.heard[root.type, self._first].max(initial=0.0))

    def _unclaimed(self, constraints: Sequence[Constraint]) -> Float64:
        """Return 0 for words next to values that name their properties, 1 for others: (W,)."""
        free = np.ones(len(self.view.words))
        for one in constraints:
            row = self.view.explained[self.words.first_property + one.property.number]
            for at in (*range(max(0, one.start - 3), one.start), *range(one.end, min(len(free), one.end + 2))):
                if row[at] >= WORDS.heard:
                    free[at] = 0.0
        return free

    def _measure_operators(self, graph: QueryGraph, row: dict[str, float]) -> None:
        view = self.view
        unused = float(bool(view.aggregate) and graph.operation not in ("average", "sum"))
        if view.demand.order is not None:
            unused += all(one.extremum is None for one in graph.variables)
        for test in view.counts:
            counted = any(one.counted is not None and one.counted.test is test for one in graph.variables)
            unused += not counted and all(one.span()[1] != test.end for one in graph.constraints)
        row["operators_unused"] = unused
        row["computed"] = float(graph.operation in ("average", "sum"))
        for at, one in enumerate(graph.variables):
            if one.extremum is None:
                continue
            made = one.extremum
            if made.property is not None:
                row["superlative_heard"] += self.measure_heard(made.property)
            elif made.step is not None:
                row["superlative_heard"] += self.step_counted(made.step)
            row["superlative_below"] += at > 0
            if view.order_at >= 0:
                near = self.heard[one.type]
                after, before = near[view.order_at : view.order_at + 4], near[max(0, view.order_at - 5) : view.order_at]
                row["superlative_near"] += max(float(after.max(initial=0.0)), 0.7 * float(before.max(initial=0.0)))

    def _measure_tree(self, graph: QueryGraph, row: dict[str, float]) -> None:
        """Measure steps and types; each uses a word of its own."""
        variables = graph.variables
        row["steps"] = float(len(variables) - 1)
        inner = {one.parent for one in variables}
        counts = Counter(one.type for one in variables)
        row["mentions_missing"] = float(sum(max(0, count - counts[type]) for type, count in self._mentioned.items()))
        row["mentions_extra"] = float(
            sum(max(0, count - max(1, self._mentioned.get(type, 0))) for type, count in counts.items())
        )
        place = self._placed(graph, row)
        used: set[int] = set()
        if len(variables) > 1 and counts[variables[0].type] > 1:
            self._take(self.heard[variables[0].type], used)
        for at, one in enumerate(variables[1:], 1):
            value = self._take(self.heard[one.type], used)[1]
            bare = not one.constraints and at not in inner
            row["unheard_types"] += (1 - value) * (0.5 if one.constraints and at not in inner else 1.0)
            if bare and one.extremum is None:
                row["leaves"] += 1
                row["unheard_leaves"] += 1 - value
            for test in one.constraints:
                near = self.heard[one.type, max(0, test.start - 4) : test.end + 3]
                row["value_type_near"] += float(near.max(initial=0.0))
            row["same_type"] += one.within_type
            row["directed"] += one.within_type and one.step is not None and one.step.turn != "both"
            if at in place:
                row["inversions"] += one.parent in place and place[one.parent] > place[at]
                for test in one.constraints:
                    row["distance"] += min(abs(test.start - place[at]), WORDS.far) / WORDS.far

    def _placed(self, graph: QueryGraph, row: dict[str, float]) -> dict[int, int]:
        """Return the word that names each step, and measure the steps without one."""
        relation = self.words.first_relation
        steps = [(at, relation + one.step.relation) for at, one in enumerate(graph.variables) if one.step is not None]
        used: set[int] = set()
        place: dict[int, int] = {}
        for at, element in sorted(steps, key=lambda each: -self.best[each[1]]):
            best, value = self._take(self.heard[element], used)
            row["unheard_steps"] += 1 - value
            if value >= WORDS.some:
                place[at] = best
        return place

    @staticmethod
    def _take(heard: Float64, used: set[int]) -> tuple[int, float]:
        """Return the word that names an element best, and how well; a word counts less when it is used again."""
        if not len(heard):
            return -1, 0.0
        best = int(heard.argmax())
        value = float(heard[best])
        if best in used:
            row = heard.copy()
            row[list(used)] *= WORDS.again
            best = int(row.argmax())
            value = float(row[best])
        if value >= WORDS.some:
            used.add(best)
        return best, value


def _gain(step: float, type: float) -> float:
    return 1.2 * (step - 1) + 0.5 * (type - 1) - 0.3
