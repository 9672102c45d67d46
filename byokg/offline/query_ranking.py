"""Scores of query graphs: a log-linear model of features that mean the same on every graph.

Features are the share of the question that a query graph explains, its elements that the question does not name, order
and distance of words, its size, and its result. Weights ship with the package (`data/query_weights.json`);
`scripts/fit_queries.py` fits them.

Query graphs that a question may mean come from a beam search over a typed schema. It starts at each type that may be
the answer, attaches the constraints one after the other by the likeliest metapaths, then types and relations that the
question names and the tree lacks, and last operators and projections. A superlative below the root is a nested query:
the river that runs through *the largest state*.

Source: Yih et al., "Semantic Parsing via Staged Query Graph Generation" (ACL 2015); Bast and Haussmann, "More Accurate
Question Answering on Freebase" (CIKM 2015).
Differs: types, values and operators come from the schema and the values of the graph; weights are the same for all.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain, groupby, islice
from pathlib import Path

import numpy as np

from byokg.arrays import Float64
from byokg.offline.parse import Role
from byokg.offline.parse_constraints import Superlative
from byokg.offline.query_graphs import Counted, CountTest, Extremum, Operation, Quantity, QueryGraph, QueryVariable
from byokg.offline.query_reading import QuestionView, SchemaWords
from byokg.offline.query_schema import SEARCH, WORDS, Constraint, Property, TypedSchema, TypedStep
from byokg.text.names import singular

WEIGHTS = Path(__file__).resolve().parent.parent / "data" / "query_weights.json"


STRUCTURE = (
    "uncovered covered steps unheard_steps unheard_types unheard_root root_asked root_first spans_unused value_quality "
    "value_near value_type_near value_name value_part value_number leaves unheard_leaves inversions distance projected "
    "projected_heard projected_asked projected_first same_type superlative_heard superlative_below "
    "operators_unused mentions_extra edges_tested projected_fixed"
).split()
RESULT = ("empty", "size", "everything")
FEATURES = (*STRUCTURE, *RESULT)


CONFIDENCE = (
    "bias agreement score covered uncovered spans_unused operators_unused unheard_steps unheard_types root_asked "
    "root_first projected projected_heard projected_first value_near value_quality mentions_extra "
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


def weighted(features: Float64, weights: Float64) -> Float64:
    """Return the weighted sum of each row of features; all are put on a grid, so that sums are equal on every CPU."""
    sums: Float64 = (np.rint(features * SEARCH.grid) / SEARCH.grid) @ (np.rint(weights * SEARCH.grid) / SEARCH.grid)
    return sums


def result_features(graph: QueryGraph, nodes: int, whole: int) -> Float64:
    """Return the features of a result, in the order of `RESULT`.

    Args:
        graph: the query graph.
        nodes: nodes of its root.
        whole: nodes of the root's type.
    """
    return np.array([nodes == 0, np.log1p(nodes) / 5, nodes == whole and len(graph.variables) == 1], np.float64)


@dataclass(frozen=True)
class ScoredGraph:
    """A query graph with its score without its result."""

    score: float
    graph: QueryGraph
    features: Float64
    """In the order of `STRUCTURE`."""
    cover: Float64
    """(W,) how well it explains each word."""


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
        self._best_values: list[float] = self.best.tolist()
        best, relation = self._best_values, words.first_relation
        self.gains = [_gain(best[relation + step.relation], best[step.end]) for step in schema.steps]
        """Estimate of what each step is worth in a metapath without its relation, 0 at most."""
        walked = ([one for one in steps if one.turn == "both" or one.start != one.end] for steps in schema.steps_from)
        self.likeliest = [sorted(steps, key=lambda one: -self.gains[one.number]) for steps in walked]
        """The steps of metapaths out of each type, the likeliest first."""
        self.measure_heard, self.step_counted = cache(self._measure_heard), cache(self._step_counted)
        """Similarities of a property and the measure of the question's superlative, or of a step and the things
        that it counts, in [0, 1]."""
        self._mass = view.importance * content
        self._total = max(float(self._mass.sum()), 1e-9)
        self._numbers: dict[QueryGraph, int] = {}
        self._known: list[ScoredGraph] = []
        self._taken: dict[tuple[int, int], tuple[int, float, int]] = {}
        self._again = (-np.sort(-self.heard[relation : words.first_property])).tolist()
        self._mentioned = self._type_mentions()
        self._first = self._first_words()
        self._asked = list(view.asked) or self._first
        self._root_asked: list[float] = view.explained[:, self._asked].max(axis=1, initial=0.0).tolist()
        self._root_first: list[float] = self.heard[:, self._first].max(axis=1, initial=0.0).tolist()

    def scored(self, graphs: Iterable[QueryGraph]) -> list[ScoredGraph]:
        """Return query graphs with their scores, equal ones once, in the order of the first."""
        numbers = dict.fromkeys([self._numbers.setdefault(one, len(self._numbers)) for one in graphs])
        new = tuple(islice(self._numbers, len(self._known), None))
        if new:
            elements = [self._elements(one) for one in new]
            bounds = np.cumsum([0, *map(len, elements[:-1])])
            covers = np.maximum.reduceat(self.view.explained[[*chain(*elements)]], bounds, axis=0)
            for one, cover in zip(new, covers, strict=True):
                for test in one.constraints:
                    cover[test.start : test.end] = 1.0
            features = np.array(list(map(self._measured, new, weighted(1 - covers, self._mass).tolist())))
            scores = weighted(features, self._weights).tolist()
            self._known += map(ScoredGraph, scores, new, features, covers)
        return [self._known[number] for number in numbers]

    # What the question names

    def _type_mentions(self) -> dict[int, int]:
        """Return how often the question names each type, by words that name it best."""
        types = self.heard[: self.words.first_relation]
        named = np.where(types.max(axis=0) >= WORDS.named, types.argmax(axis=0), -1).tolist()
        return Counter(type for type, _ in groupby(named) if type >= 0)

    def mentioned(self, type: int) -> int:
        """Return how often the question names a type."""
        return self._mentioned.get(type, 0)

    def _first_words(self) -> list[int]:
        """Return the first words of the question that name a type or a property, side by side."""
        kinds = np.concatenate((self.heard[: self.words.first_relation], self.heard[self.words.first_property :]))
        named = kinds.max(axis=0, initial=0.0) >= WORDS.heard
        places = np.flatnonzero(named).tolist()
        return [at for at in places if at - places[0] == places.index(at)][:3]

    def repeated_gain(self, step: TypedStep, path: Sequence[TypedStep], repeats: int) -> float:
        """Return an estimate of what a step is worth whose relation occurs in a metapath already, 0 at most."""
        row = self._again[step.relation]
        heard = row[repeats] if repeats < len(row) else 0.0
        if path[-1].relation == step.relation and step.start != step.end:
            heard -= 0.3
        return _gain(heard, self._best_values[step.end])

    def heard_at(self, step: TypedStep) -> int:
        """Return the word that names a step best; -1 if none does."""
        row = self.heard[self.words.first_relation + step.relation]
        at = int(row.argmax()) if len(row) else -1
        return at if at >= 0 and row[at] >= WORDS.some else -1

    def unexplained(self, cover: Float64) -> Float64 | None:
        """Return for each element how well it explains a word that a query graph does not: (E,); None without any."""
        denied = np.arange(len(cover)) == self.view.denied  # which needs a branch of its own
        places = np.flatnonzero(denied | (self._outside & (cover < WORDS.heard)))
        return self.view.explained[:, places].max(axis=1) if len(places) else None

    def _measure_heard(self, property: Property, window: int = 4) -> float:
        """Compare a property with the words for a measure, or with the `window` words behind the superlative."""
        order = self.view.demand.order
        assert order is not None
        if property.is_key:
            return 0.0
        at = self.words.first_property + property.number
        nouns = dict.fromkeys(word for noun in order.nouns for word in (noun, *noun.split()))
        heard = max((self.words.of_word(word).item(at) - 0.02 * place for place, word in enumerate(nouns)), default=0.0)
        if order.dates and property.kind in ("date", "year", "time"):
            heard = max(heard, 0.7 if property.kind != "time" else 0.6)
        near = self.view.order_at
        if near >= 0:  # the highest *unit price*
            words = self.view.explained[at, near : near + window]
            best = float(words.max(initial=0.0))  # a further word of the label decides between two that have the best
            heard = max(heard, 0.95 * best + 0.03 * float(words.sum() - best))
        return heard

    def _step_counted(self, step: TypedStep) -> float:
        order = self.view.demand.order
        assert order is not None
        relation = self.words.first_relation + step.relation
        heard = [self.words.of_word(word)[[step.end, relation]] for noun in order.nouns for word in noun.split()]
        named = max((float(each.max()) for each in heard), default=0.0)
        near = self.view.order_at
        if near >= 0 and not order.frequent:  # the most product *categories*
            named = max(
                named, 0.95 * float(self.view.explained[[step.end, relation], near : near + 2].max(initial=0.0))
            )
        return named

    # Features

    def _elements(self, graph: QueryGraph) -> list[int]:
        """Return the elements of a query graph, which may explain words."""
        relation, property = self.words.first_relation, self.words.first_property
        elements = []
        for one in graph.variables:
            elements.append(one.type)
            if one.step is not None:
                elements.append(relation + one.step.relation)
            elements += [property + test.property.number for test in (*one.constraints, *one.on_edge)]
            for made in (one.extremum, one.counted):
                if made and made.quantity.property:
                    elements.append(property + made.quantity.property.number)
                if made and made.quantity.step:
                    elements += [made.quantity.step.end, relation + made.quantity.step.relation]
        if graph.projected is not None:
            elements.append(property + graph.projected.number)
        return elements

    def _measured(self, graph: QueryGraph, uncovered: float) -> list[float]:
        row = dict.fromkeys(STRUCTURE, 0.0)
        row["uncovered"], row["covered"] = uncovered, 1 - uncovered / self._total
        self._measure_tree(graph, row)
        self._measure_values(graph, row)
        self._measure_answer(graph, row)
        self._measure_operators(graph, row)
        return list(row.values())

    def _measure_values(self, graph: QueryGraph, row: dict[str, float]) -> None:
        constraints = graph.constraints
        used = {one.span() for one in constraints}
        row["spans_unused"] = float(sum(group[0].span() not in used for group in self.view.spans))
        for one in constraints:
            row["value_quality"] += one.quality - 1
            row["value_near"] += one.near
            row["value_name"] += not one.property.name
            row["value_part"] += one.test not in ("=", ">", ">=", "<", "<=", "between")
            row["value_number"] += one.property.kind == "number" and one.near < WORDS.heard
            row["edges_tested"] += one.property.relation >= 0

    def _measure_answer(self, graph: QueryGraph, row: dict[str, float]) -> None:
        root = graph.variables[0]
        if graph.projected is None or graph.edge >= 0:
            row["unheard_root"] = 1 - self._best_values[root.type]
            row["root_asked"], row["root_first"] = self._root_asked[root.type], self._root_first[root.type]
        if graph.projected is not None:
            heard = self.heard[self.words.first_property + graph.projected.number] * self._unclaimed(graph.constraints)
            row["projected"], row["projected_heard"] = 1.0, float(heard.max(initial=0.0))
            row["projected_asked"] = float(heard[self._asked].max(initial=0.0))
            row["projected_fixed"] = float(
                any(one.property is graph.projected and one.test == "=" for one in root.constraints)
            )
            row["projected_first"] = float(heard[self._first].max(initial=0.0))
            if graph.edge < 0:
                row["root_first"] = 0.5 * self._root_first[root.type]

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
        row["operators_unused"] = float(len(unused_operators(self.view, graph)))
        row["superlative_heard"] += graph.frequent > 0
        for at, one in enumerate(graph.variables):
            if one.extremum is None:
                continue
            made = one.extremum.quantity
            step = graph.variables[made.end].step if made.end else made.step
            if made.property is not None:
                row["superlative_heard"] += self.measure_heard(made.property)
            elif step is not None:
                row["superlative_heard"] += self.step_counted(step)
            row["superlative_below"] += at > 0

    def _measure_tree(self, graph: QueryGraph, row: dict[str, float]) -> None:
        """Measure steps and types; each uses a word of its own."""
        variables = graph.variables
        row["steps"] = float(len(variables) - 1)
        inner, types = {one.parent for one in variables}, [one.type for one in variables]
        row["mentions_extra"] = sum(max(0, types.count(one) - max(1, self._mentioned.get(one, 0))) for one in {*types})
        place, root = self._placed(graph, row), variables[0]
        measured = [made.quantity.end for made in (root.extremum, root.counted) if made]
        used = self._take(types[0], 0)[2] if types[0] in types[1:] else 0
        for at, one in enumerate(variables[1:], 1):
            _, value, used = (-1, 1.0, used) if at in measured else self._take(one.type, used)
            bare = not one.constraints and at not in inner and not one.absent
            row["unheard_types"] += (1 - value) * (0.5 if one.constraints and at not in inner else 1.0)
            if bare and one.extremum is None and at not in measured:
                row["leaves"] += 1
                row["unheard_leaves"] += 1 - value
            for test in one.constraints:
                near = self.heard[one.type, max(0, test.start - 4) : test.end + 3]
                row["value_type_near"] += float(near.max(initial=0.0))
            row["same_type"] += one.within_type
            if at in place:
                row["inversions"] += place.get(one.parent, -1) > place[at]
                for test in one.constraints:
                    row["distance"] += min(abs(test.start - place[at]), WORDS.far) / WORDS.far

    def _placed(self, graph: QueryGraph, row: dict[str, float]) -> dict[int, int]:
        """Return the word that names each step, and measure the steps without one."""
        relation = self.words.first_relation
        steps = [(at, relation + one.step.relation) for at, one in enumerate(graph.variables) if one.step is not None]
        used, place = 0, dict[int, int]()
        for at, element in sorted(steps, key=lambda each: -self._best_values[each[1]]):
            best, value, used = self._take(element, used)
            row["unheard_steps"] += 1 - value
            if value >= WORDS.some:
                place[at] = best
        return place

    def _take(self, element: int, used: int) -> tuple[int, float, int]:
        """Return the word that names an element best, how well, and the words used then; one counts less when used."""
        if not self.heard.shape[1]:
            return -1, 0.0, used
        if (element, used) not in self._taken:
            row = self.heard[element].copy()
            row[[at for at in range(len(row)) if used >> at & 1]] *= WORDS.again
            best = int(row.argmax())
            value = float(row[best])
            self._taken[element, used] = best, value, used | (value >= WORDS.some) << best
        return self._taken[element, used]


def unused_operators(view: QuestionView, graph: QueryGraph) -> list[str]:
    """Return the words of a question's operators that a query graph leaves out."""
    root, found = graph.variables[0].extremum, list[str]()
    averaged = graph.operation in ("average", "sum") or (root is not None and root.quantity.operation != "count")
    if view.aggregate and not averaged:
        found.append(view.aggregate)
    if view.demand.order is not None and not graph.frequent and all(one.extremum is None for one in graph.variables):
        found.append(view.demand.order.words)
    for test in view.counts:
        counted = any(one.counted is not None and one.counted.test is test for one in graph.variables)
        if not counted and all(one.span()[1] != test.end for one in graph.constraints):
            found.append(" ".join(view.words[test.start : test.end]))
    if view.denied >= 0 and not any(one.absent for one in graph.variables):
        found.append(f"no {view.words[view.denied]}")
    return found


def lacks_set_operation(view: QuestionView, graph: QueryGraph) -> bool:
    """Return True if a question has an operation of paths alone, or a difference that a query graph leaves out.

    Paths alone execute unions, sequences in time, comparisons of two mentions and yes/no questions.
    """
    demand = view.demand
    subtracts = any(view.spans[at][0].property.kind == "text" for at in demand.without)
    differs = subtracts and not any(one.absent for one in graph.variables)
    compares = demand.order is not None and demand.order.words == "compared"
    follows = demand.next is not None and demand.next.step != 0
    return differs or compares or follows or demand.verify or bool(demand.union)


def _gain(step: float, type: float) -> float:
    return 1.2 * (step - 1) + 0.5 * (type - 1) - 0.3


_MUTUAL = frozenset(
    "know friend family relative relate relation marry married spouse sibling border neighbour neighbor adjacent "
    "partner colleague connect connected link linked associate associated similar equal twin meet met".split()
)
"""Words of relations that hold both ways."""

_Path = tuple[float, tuple[TypedStep, ...]]

_Growth = tuple[float, QueryGraph, int, tuple[TypedStep, ...], Constraint | None]
"""An estimate of its worth, a query graph, and what is to be added to one of its variables: a path, a constraint."""


class QuerySearch:
    """The beam search for one question.

    Args:
        ranking: scores the query graphs of the question.
    """

    def __init__(self, ranking: QueryRanking) -> None:
        self._ranking, self._view = ranking, ranking.view
        self._schema, self._words = ranking.schema, ranking.words
        self._paths: dict[int, dict[int, list[_Path]]] = {}

    def candidates(self, most: int) -> list[ScoredGraph]:
        """Return the best query graphs with their scores, before execution."""
        return sorted(self._ranking.scored(self._complete()), key=lambda each: -each.score)[:most]

    def _complete(self) -> Iterator[QueryGraph]:
        beam = self._ranking.scored(QueryGraph((QueryVariable(type),)) for type in self._roots())
        for group in self._view.spans:
            beam = self._pruned(beam, (new for one in beam for new in self._attached(one, group)))
        for _ in range(SEARCH.named):
            beam = self._pruned(beam, (new for one in beam for new in self._named(one)))
        for one in beam:
            for turned in self._turned(one.graph):
                for denied in self._denied(turned):
                    for counted in self._counted(denied):
                        for ordered in self._ordered(counted):
                            yield from self._returned(ordered)

    def _roots(self) -> list[int]:
        """Return the types that the answer may have, the likeliest first."""
        view, words = self._view, self._words
        scores = self._ranking.best[: words.first_relation].copy()
        if view.asked:
            scores += view.explained[: words.first_relation][:, list(view.asked)].max(axis=1)
        for one in self._schema.properties:
            if one.type >= 0:
                heard = self._ranking.best[words.first_property + one.number]
                scores[one.type] = max(scores[one.type], 0.8 * float(heard))
        for group in view.spans:
            for test in group:
                if test.property.type >= 0:
                    scores[test.property.type] += 0.2
        return [int(type) for type in np.argsort(-scores, kind="stable")[: SEARCH.roots]]

    def _pruned(self, beam: Sequence[ScoredGraph], growths: Iterable[_Growth]) -> list[ScoredGraph]:
        """Return the best of some query graphs and of those grown out of them, of these the likeliest."""
        likely = heapq.nlargest(SEARCH.grown, growths, key=lambda each: each[0])
        grown = (_grown(graph, at, path, test) for _, graph, at, path, test in likely)
        of_root: dict[int, int] = defaultdict(int)
        kept: list[ScoredGraph] = []
        for one in sorted(self._ranking.scored((*(each.graph for each in beam), *grown)), key=lambda each: -each.score):
            root = one.graph.variables[0].type
            if of_root[root] < SEARCH.per_root and len(kept) < SEARCH.beam:
                of_root[root] += 1
                kept.append(one)
        return kept

    def _attached(self, scored: ScoredGraph, group: Sequence[Constraint]) -> Iterator[_Growth]:
        """Yield the attachments of one of some alternative constraints."""
        base, graph = scored.score, scored.graph
        for test in group:
            worth = base + test.near + 3 * test.quality
            type = test.property.type
            for at, variable in enumerate(graph.variables):
                if type < 0:
                    if variable.step is not None and variable.step.relation == test.property.relation:
                        yield worth, graph, at, (), test
                    continue
                if variable.type == type and _compatible(variable, test):
                    yield worth, graph, at, (), test
                for gain, path in self._paths_from(variable.type).get(type, ()):
                    yield worth + gain, graph, at, path, test

    def _named(self, scored: ScoredGraph) -> Iterator[_Growth]:
        """Yield the steps to a type, or of a relation, that the question names and the query graph lacks."""
        best = self._ranking.unexplained(scored.cover)
        if best is None:
            return
        base, graph = scored.score, scored.graph
        for at, variable in enumerate(graph.variables):
            for step in self._schema.steps_from[variable.type]:
                if step.turn != "both" and step.start == step.end:
                    continue
                gain = float(best[self._words.first_relation + step.relation] + best[step.end])
                if gain >= WORDS.heard:
                    yield base + gain, graph, at, (step,), None

    def _paths_from(self, start: int) -> dict[int, list[_Path]]:
        """Return the likeliest metapaths from a type to each other type, with estimates of their worth."""
        if start in self._paths:
            return self._paths[start]
        ranking, found = self._ranking, defaultdict[int, list[_Path]](list)
        partial: list[_Path] = [(0.0, ())]
        for hops in range(1, SEARCH.hops + 1):
            grown, least = list[tuple[float, int, int]](), -np.inf
            for at, (score, path) in enumerate(partial):
                used = [one.relation for one in path]
                for step in ranking.likeliest[path[-1].end if path else start]:
                    gain = ranking.gains[step.number]
                    if score + gain < least:
                        break  # what follows is worth less, a step of a repeated relation, too
                    if repeats := used.count(step.relation):
                        gain = ranking.repeated_gain(step, path, repeats)
                    grown.append((-score - gain, at, step.number))
                grown.sort()
                del grown[SEARCH.partial :]
                least = -grown[-1][0] if len(grown) == SEARCH.partial else -np.inf
            partial = [(-cost, (*partial[at][1], self._schema.steps[number])) for cost, at, number in grown]
            kept: dict[int, int] = defaultdict(int)
            for score, path in partial:
                end = path[-1].end
                if kept[end] < SEARCH.of_length[hops]:
                    kept[end] += 1
                    found[end].append((score, path))
        self._paths[start] = found
        return found

    # Operators

    def _turned(self, graph: QueryGraph) -> Iterator[QueryGraph]:
        """Yield the query graph with the steps within one type walked in the direction that its words tell."""
        for at, variable in enumerate(graph.variables):
            step = variable.step
            if step is None or step.start != step.end or not _MUTUAL.isdisjoint(map(singular, step.words)):
                continue
            place = self._ranking.heard_at(step)
            tie = self._view.roles[place] if place >= 0 else None
            turn = "" if tie is None else _direction(step, self._view.words[place], tie)
            for other in self._schema.steps_from[variable.type] if turn else ():
                if other.relation == step.relation and other.turn == turn:
                    graph = graph.exchanged(at, replace(variable, step=other))
        yield graph

    def _denied(self, graph: QueryGraph) -> Iterator[QueryGraph]:
        """Yield the query graph, and with each branch of the root that holds what is denied as one that its nodes lack.

        Values before the denial belong to no such branch.
        """
        yield graph
        denied, relation = self._view.denied, self._words.first_relation
        for child in graph.children(0) if denied >= 0 else ():
            branch = [one for at, one in enumerate(graph.variables) if child in graph.above(at)]
            tests = [test for one in branch for test in (*one.constraints, *one.on_edge)]
            elements = [each for one in branch if one.step for each in (one.type, relation + one.step.relation)]
            named = self._view.explained[elements, denied].max() >= WORDS.named
            held = any(test.start <= denied < test.end for test in tests)
            if (named or held) and all(test.end > denied for test in tests):
                yield graph.exchanged(child, replace(graph.variables[child], absent=True))

    def _counted(self, graph: QueryGraph) -> Iterator[QueryGraph]:
        """Yield the query graph, and with each test of a number of things."""
        yield graph
        explained = self._view.explained
        for test in self._view.counts:
            near = list(range(test.end, min(test.end + 3, len(self._view.words))))
            before = list(range(max(0, test.start - 3), test.start))
            heard = explained[: self._words.first_relation, near].max(axis=1, initial=0.0)
            types = frozenset(np.flatnonzero(heard >= WORDS.heard).tolist())
            for tree, end in self._with_branches(graph, types):
                if tree.variables[end].type in types and not self._is_repeated(tree.variables[end].type):
                    yield tree.exchanged(0, replace(tree.variables[0], counted=Counted(test, Quantity(end=end))))
            for at, variable in enumerate(graph.variables):
                for step in self._schema.steps_from[variable.type]:
                    relation = explained[self._words.first_relation + step.relation]
                    if max(heard[step.end], relation[near].max(initial=0.0)) >= WORDS.heard and (
                        step.start != step.end or relation[[*near, *before]].max() >= WORDS.heard
                    ):
                        yield graph.exchanged(at, replace(variable, counted=Counted(test, Quantity(step=step))))
                if variable.step is None:
                    continue
                for one in self._schema.of_relation[variable.step.relation]:
                    if one.kind == "number":
                        yield graph.constrained(at, _bounded(one, test))

    def _ordered(self, graph: QueryGraph) -> Iterator[QueryGraph]:
        """Yield the query graph, and with the superlative at each variable that may have it."""
        order = self._view.demand.order
        yield graph
        if order is None:
            return
        yield from self._ordered_by_branch(graph, order)
        for at, variable in enumerate(graph.variables):
            for one in self._schema.of_type[variable.type]:
                measures = one.kind not in ("text", "flag") and not order.frequent
                if measures and self._ranking.measure_heard(one) >= WORDS.heard:
                    most = order.most != (order.dates and "age" in one.words)
                    made = Extremum(most, order.place, Quantity(one), order.size)
                    yield graph.exchanged(at, replace(variable, extremum=made))
            for step in self._schema.steps_from[variable.type] if order.counted else ():
                if self._ranking.step_counted(step) >= WORDS.heard:
                    made = Extremum(order.most, order.place, Quantity(step=step), order.size)
                    yield graph.exchanged(at, replace(variable, extremum=made))

    def _ordered_by_branch(self, graph: QueryGraph, order: Superlative) -> Iterator[QueryGraph]:
        """Yield the query graph with superlatives of the root by nodes or properties at the end of a branch."""
        for tree, end in self._with_branches(graph, self._measured_types):
            for quantity in self._quantities(tree.variables[end], order):
                made = Extremum(order.most, order.place, quantity._replace(end=end), order.size)
                yield tree.exchanged(0, replace(tree.variables[0], extremum=made))

    def _with_branches(self, graph: QueryGraph, types: frozenset[int]) -> Iterator[tuple[QueryGraph, int]]:
        """Yield the query graph with the ends of its branches, then extended by likely paths to types that it lacks."""
        root, held = graph.variables[0].type, set[int]()
        for end in graph.below_root():
            held.add(graph.variables[end].type)
            yield graph, end
        for type in sorted(types.difference(held, (root,))):
            for _, path in self._paths_from(root).get(type, ())[: SEARCH.measured]:
                yield graph.extended(0, path), len(graph.variables) + len(path) - 1

    def _quantities(self, end: QueryVariable, order: Superlative) -> Iterator[Quantity]:
        """Yield quantities of a branch with some last variable: its nodes' number, or an aggregate of a property."""
        assert end.step is not None
        fixed = any(test.test == "=" for test in end.constraints)
        of_nodes = () if fixed else self._schema.of_type[end.type]
        for property in (*of_nodes, *self._schema.of_relation[end.step.relation]):
            if property in self._aggregated:
                yield Quantity(property, operation=self._view.aggregate or "sum")
        countable = not self._view.aggregate and order.counted and not self._is_repeated(end.type)
        if countable and self._ranking.step_counted(end.step) >= WORDS.heard:
            yield Quantity()

    @cached_property
    def _aggregated(self) -> frozenset[Property]:
        """Return the properties whose sum or average a superlative may compare."""
        order, aggregate = self._view.demand.order, self._view.aggregate
        if order is None or order.frequent or not (aggregate or order.counted):
            return frozenset()
        numbers, window = (one for one in self._schema.properties if one.kind == "number"), 4 if aggregate else 2
        return frozenset(one for one in numbers if self._ranking.measure_heard(one, window) >= WORDS.heard)

    @cached_property
    def _measured_types(self) -> frozenset[int]:
        """Return the types that have such a property, by themselves or by their edges, or whose nodes are counted."""
        order, steps = self._view.demand.order, self._schema.steps
        edges = {one.relation for one in self._aggregated if one.relation >= 0}
        found = {one.type for one in self._aggregated} | {step.end for step in steps if step.relation in edges}
        if order is not None and order.counted and not self._view.aggregate:
            found |= {step.end for step in steps if self._ranking.step_counted(step) >= WORDS.heard}
        return frozenset(found - {-1})

    def _is_repeated(self, type: int) -> bool:
        """True if the question names a type twice, once perhaps for other nodes than the counted ones."""
        return self._ranking.mentioned(type) > 1

    def _returned(self, graph: QueryGraph) -> Iterator[QueryGraph]:
        """Yield the query graph with each operation and projection that the question may ask for."""
        view, first = self._view, self._words.first_property
        options: list[tuple[Property, int]] = [
            (one, -1)
            for one in self._schema.of_type[graph.variables[0].type]
            if one.name and self._ranking.best[first + one.number] >= WORDS.heard
        ]
        if view.aggregate:
            options += [
                (one, at)
                for at, variable in enumerate(graph.variables)
                if variable.step is not None
                for one in self._schema.of_relation[variable.step.relation]
                if self._ranking.best[first + one.number] >= WORDS.heard
            ]
            operation: Operation = "average" if view.aggregate == "average" else "sum"
            for one, edge in options:
                if one.kind in ("number", "year") and not one.is_key:
                    yield replace(graph, operation=operation, projected=one, edge=edge)
        if view.demand.count:
            yield replace(graph, operation="count")
            options = [(one, edge) for one, edge in options if one.kind == "number"]
        else:
            yield graph
        order, ordered = view.demand.order, any(one.extremum is not None for one in graph.variables)
        frequent = order.size if order is not None and order.frequent and not ordered else 0
        yield from (replace(graph, projected=one, frequent=frequent) for one, edge in options if edge < 0)


def _grown(graph: QueryGraph, at: int, path: Sequence[TypedStep], test: Constraint | None) -> QueryGraph:
    if path:
        graph, at = graph.extended(at, path), len(graph.variables) + len(path) - 1
    return graph if test is None else graph.constrained(at, test)


def _bounded(property: Property, test: CountTest) -> Constraint:
    """Return the test of a number of things as one of a whole-numbered property."""
    number, half = float(test.number), 0.5
    low = {">": number + half, ">=": number}.get(test.test, -np.inf)
    high = {"<": number - half, "<=": number}.get(test.test, np.inf)
    return Constraint(property, test.test, test.start, test.end, low=low, high=high, shown=str(test.number))


def _compatible(variable: QueryVariable, test: Constraint) -> bool:
    """True unless another value of the same property is tested there already."""
    held = [one for one in variable.constraints if one.property is test.property]
    return not held or (test.test != "=" and all(one.test != "=" for one in held))


def _direction(step: TypedStep, word: str, tie: Role) -> str:
    """Return the direction of a step that leads away from the answer, by the role of its word; empty if it is open.

    `Who manages X` starts at the managers (`out`), `who is managed by X` and `who does X manage` at the managed ones.
    A noun names the tail (`the boss of X`).
    """
    if not tie.use:
        return ""
    agent = word.endswith(("er", "or")) and step.words[-1] not in (word, singular(word))
    if tie.use in ("active", "oblique") or agent:
        return "in" if tie.outward else "out"
    if tie.use == "passive":
        return "in"
    return "in" if tie.outward else "out"
