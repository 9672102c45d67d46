"""The ranker of the offline pipeline: a log-linear model over answer candidates, whose probability is the confidence.

A candidate holds the ends of a path, or the common ends of several, narrowed to the nodes of the answer type. Its
features are independent of graph and question set, and mean the same for each candidate of a question: how it compares
with the others, its type, and the words and links of the question that its path leaves unexplained. The weights decide
the order, and the log-odds that the first node of a candidate is right.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from byokg.errors import ConfigError
from byokg.files import write_json
from byokg.graph.property_view import is_value
from byokg.graph.store import GraphStore
from byokg.index.embedders import Embedder, exact
from byokg.offline.answer_type import AnswerType, AnswerTypePredictor
from byokg.offline.lexicon import SILENT, rule
from byokg.offline.parse_constraints import parse_constraints, parse_path_question
from byokg.offline.path_scorer import UNIT, PathScorer
from byokg.text.names import singular, split_label, split_words
from byokg.types import INVERSE, ComputedEvidence, Context, EntityId, LinkedEntity, Mention, Node, PathEvidence

FITTED = Path(__file__).resolve().parent.parent / "data" / "confidence.json"
"""The weights that ship with the package."""


@dataclass(frozen=True)
class RankingSettings:
    """Limits of candidates and their features; odds are natural logarithms."""

    compared: int = 10
    """Best candidates whose meanings are compared."""
    close: float = 7.5
    """Log-odds below the best path at which a path makes no candidate."""
    voters: int = 1000
    """Nodes of a candidate that are compared with those of others."""
    per_vote: float = 0.75
    """Log-odds of two paths that count as one: paths to the same end share most of their evidence."""
    margin: float = 6.0
    """Log-odds beyond which a margin carries no more information."""
    others: int = 9
    """Best other candidates that a margin compares with."""
    rivals: float = 0.01
    """Least share of others."""
    named: int = 30
    """Nodes whose names are compared with the question."""
    name: float = 0.05
    """Votes of a name equal to the question's words."""
    without_path: float = 50.0
    """Score of a computed result without a path."""


_SETTINGS = RankingSettings()

_ANYTHING = frozenset(("thing", "things"))
"""Placeholder for an unspecified answer type."""


@dataclass(frozen=True)
class CandidateFeatures:
    """Features of a candidate; shares are in [0, 1], odds natural logarithms."""

    agreement: float = 0.0
    """Minus the logarithm of the share of all paths' likelihood that does not lead to its likeliest node."""
    score: float = 0.0
    """Log-odds of its path by the path scorer."""
    margin: float = 0.0
    """By how much it beats the mean of the best nine others."""
    typed: float = 0.0
    """1 for nodes of the answer type, -1 for others; less for a type that only resembles the noun."""
    who_where: float = 0.0
    """The same for the types that may answer who or where."""
    called: float = 0.0
    """The same for nodes that relations call by the noun, or half of it by a synonym."""
    unused_schema_words: float = 0.0
    """How many words of the question it does not explain that another relation of the graph would explain."""
    intermediate_type_match: float = 0.0
    """Excess of the last step's similarity to another noun of the question over that to the answer-type noun."""
    unexecuted_constraint: float = 0.0
    """1 if a constraint was not executed."""
    linking_uncertainty: float = 0.0
    """How far the least sure link of its mentions is from certain."""
    too_few_hops: float = 0.0
    """1 if the best path lacks an odd number of hops, of one for each link of the question; two may go there and back.

    Equal for all candidates: the links are too unsure to decide between them."""
    too_many_hops: float = 0.0
    """1 if its path has more hops than the question has links and words that may be links."""


AGAINST = frozenset(
    "unused_schema_words unexecuted_constraint linking_uncertainty intermediate_type_match too_few_hops "
    "too_many_hops".split()
)
"""Features that count against a candidate; all others count for it."""

NAMES = tuple(field.name for field in fields(CandidateFeatures))


@dataclass(frozen=True)
class Candidate:
    """Nodes that may be the answer, with the paths that lead to all of them."""

    score: float
    """Of the path scorer."""
    nodes: tuple[EntityId, ...]
    paths: tuple[PathEvidence, ...] = ()
    features: CandidateFeatures = CandidateFeatures()
    odds: float = 0.0
    """Log-odds that its first node is right."""

    def narrowed(self, nodes: tuple[EntityId, ...]) -> Candidate:
        """Return the candidate with some of its nodes."""
        return self if nodes == self.nodes else replace(self, nodes=nodes)

    @property
    def evidence_ids(self) -> tuple[str, ...]:
        """Return the ids of the paths, in order."""
        return tuple(path.id for path in self.paths)

    @property
    def probability(self) -> float:
        """Return the probability that its first node is right."""
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, self.odds))))


@dataclass(frozen=True)
class RankingWeights:
    """Weights of the log-linear model."""

    bias: float
    weights: tuple[float, ...]
    """In the order of `CandidateFeatures`."""
    middle: tuple[float, ...]
    """Mean of each feature, the reference of its contribution."""

    def contributions(self, features: CandidateFeatures) -> dict[str, float]:
        """Return the contribution of each feature to the log-odds, relative to its mean."""
        values = vars(features)
        parts = zip(NAMES, self.weights, self.middle, strict=True)
        return {name: weight * (values[name] - middle) for name, weight, middle in parts}

    def odds(self, features: CandidateFeatures) -> float:
        """Return the log-odds that a candidate is right."""
        odds = self.bias
        for part in self.contributions(features).values():  # one after another: the same bytes on every CPU
            odds += part
        return odds


class AnswerRanker:
    """Orders answer candidates by their odds; thread-safe.

    Args:
        store: the graph.
        scorer: its schema linking explains words.
        embedder: compares names with the question.
        types: predicts the answer type.
        weights: of the features.
        unit: score units per nat.
    """

    def __init__(
        self,
        store: GraphStore,
        scorer: PathScorer,
        embedder: Embedder,
        types: AnswerTypePredictor,
        weights: RankingWeights,
        unit: float = UNIT,
    ) -> None:
        self.weights = weights
        self._store = store
        self._steps = scorer.steps
        self._types = types
        self._embedder = embedder
        self._vector = lru_cache(1 << 12)(lambda word: exact(embedder.encode([word])[0]))
        self._unit = unit

    def rank(self, context: Context, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates with their features and odds, best first, with the nodes of each narrowed.

        Args:
            context: evidence for the question.
            candidates: in any order; of equal odds the first comes first.
        """
        if not candidates:
            return []
        types, found = self._by_type(context, self._close(candidates))
        scores = [one.score / self._unit for one in found]
        votes, compared = _compare(scores, found)
        words = self._explain(context, found)
        ranked = []
        for at, one in enumerate(found):
            features = CandidateFeatures(score=scores[at], **compared[at], **types[at], **words[at])
            ranked.append(replace(one, features=features, odds=self.weights.odds(features)))
        ranked.sort(key=lambda one: -one.odds)
        ranked[0] = self._completed(ranked[: _SETTINGS.compared])
        if not any(map(is_value, ranked[0].nodes)):
            ranked[0] = replace(ranked[0], nodes=self._order(ranked[0].nodes, votes, self._words(context)))
        return ranked

    def _close(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates with scores near the best one, best first."""
        least = max(one.score for one in candidates) - _SETTINGS.close * self._unit
        return sorted((one for one in candidates if one.score >= least), key=lambda one: -one.score)

    def judge(self, context: Context, computed: ComputedEvidence, nodes: Sequence[EntityId]) -> Candidate:
        """Return the candidate of a computed result without a path, which nothing competes with."""
        linked, text = context.rounds[0].linked.entities, context.question
        kind = self._types.predict(text, context.rounds[0].artifacts.mentions, [nodes])
        features = CandidateFeatures(
            agreement=-math.log(_SETTINGS.rivals),
            score=_SETTINGS.without_path / UNIT,
            margin=_SETTINGS.margin,
            unexecuted_constraint=float(computed.truncated),
            linking_uncertainty=_uncertainty(linked),
            **(_fit(kind, bool(self._types.filter_candidates(nodes, kind))) if nodes and kind else {}),
        )
        return Candidate(0.0, tuple(nodes), (), features, self.weights.odds(features))

    # Answer type

    @rule("answer type first", "which countries border {Peru}", lambda *given: ([{}] * len(given[-1]), given[-1]))
    def _by_type(
        self, context: Context, candidates: list[Candidate]
    ) -> tuple[Sequence[Mapping[str, float]], list[Candidate]]:
        """Compare candidates with the answer type, and narrow them to its nodes."""
        mentions = context.rounds[0].artifacts.mentions
        kind = self._types.predict(context.question, mentions, [one.nodes for one in candidates])
        if not kind:
            return [{}] * len(candidates), candidates
        kept = self._types.filter_each([one.nodes for one in candidates], kind)
        narrowed = [one.narrowed(nodes or one.nodes) for one, nodes in zip(candidates, kept, strict=True)]
        return [_fit(kind, bool(nodes)) for nodes in kept], narrowed

    # Words

    def _explain(self, context: Context, candidates: Sequence[Candidate]) -> list[dict[str, float]]:
        """Measure mutual coverage of the question and the paths of each candidate."""
        first, of = context.rounds[0], self._steps.refresh()
        text, mentions = context.question, first.artifacts.mentions
        parsed = parse_path_question(text, mentions, self._steps.has_relation)
        computed = next((item for item in context.evidence if isinstance(item, ComputedEvidence)), None)
        unexecuted = not parse_constraints(text, mentions).plain if computed is None else computed.truncated
        done = set() if computed is None else set(map(singular, split_words(split_label(computed.text))))
        walks = [[of.encode_path(path.relations) for path in one.paths] for one in candidates]
        tokens = [place for place in parsed.content_tokens if singular(parsed.words[place]) not in done]
        asked, words = parsed.answer_type_span, parsed.words
        means, ends = np.zeros((2, len(tokens), of.count))
        for number, at in enumerate(tokens):
            means[number] = np.maximum(of.label_similarity(words[at]), of.type_similarity(words[at]))
            ends[number] = of.range_similarity(words[at]) * (at in asked)
        reach, midway = np.zeros((2, of.count))
        for row, places in ((reach, asked), (midway, parsed.intermediate_nouns)):
            for at in places:
                np.maximum(row, of.range_similarity(words[at]), out=row)
        typed = bool(asked) and _ANYTHING.isdisjoint(words[at] for at in asked)
        known: slice | list[int] = slice(None)
        if self._steps.statistics.grows:
            known = sorted({step for some in walks for walk in some for step in walk})
        most = np.maximum(means, ends)[:, known].max(axis=1, initial=0.0)
        certain: dict[EntityId, float] = {}
        for entity in first.linked.entities:
            certain[entity.id] = min(entity.score, certain.get(entity.id, 1.0))
        lengths = [max((of.hops(walk) for walk in own if walk), default=0) for own in walks]
        too_few = float(lengths[0] > 0 and max(0, parsed.links - lengths[0]) % 2)
        found = []
        for one, own, hops in zip(candidates, walks, lengths, strict=True):
            steps, lasts = [step for walk in own for step in walk], [walk[-1] for walk in own if walk]
            best = np.maximum(means[:, steps].max(axis=1, initial=0.0), ends[:, lasts].max(axis=1, initial=0.0))
            passed = float(midway[lasts].max(initial=0.0)) - float(reach[lasts].max(initial=0.0))
            found.append(
                {
                    "unused_schema_words": sum(np.maximum(0.0, most - best).tolist()),
                    "intermediate_type_match": max(0.0, passed) if typed and lasts else 0.0,
                    "too_few_hops": too_few,
                    "too_many_hops": float(hops > parsed.most_hops),
                    "linking_uncertainty": 1 - min((certain.get(path.source, 1.0) for path in one.paths), default=1.0),
                    "unexecuted_constraint": float(unexecuted),
                }
            )
        return found

    # Order of nodes

    def _words(self, context: Context) -> list[str]:
        """Return the content words of the question outside its mentions."""
        first = context.rounds[0]
        named = {word for mention in first.artifacts.mentions for word in split_words(mention.text)}
        named |= {word for one in first.linked.entities for word in split_words(one.name)}
        left_out = named | SILENT
        return [
            word
            for word in dict.fromkeys(split_words(context.question))
            if word not in left_out and len(word) > 1 and not word.isdigit()
        ]

    @rule("votes for nodes", "who played {X}", lambda self, ends, votes, words: ends)
    def _order(
        self, ends: tuple[EntityId, ...], votes: Mapping[EntityId, float], words: Sequence[str]
    ) -> tuple[EntityId, ...]:
        """Order nodes without types by their votes; of about as many, that with the nearest name first."""
        order = sorted(ends, key=lambda end: -votes.get(end, 0.0))
        nodes = self._store.nodes(order[: _SETTINGS.named])
        if len(ends) == 1 or nodes[0].types:  # nodes of the answer type are equally good
            return ends
        near: dict[EntityId, float] = {}
        if words:
            near = dict(zip((node.id for node in nodes), self._nearness(nodes, words), strict=True))
        return tuple(sorted(order, key=lambda end: -(votes.get(end, 0.0) + _SETTINGS.name * near.get(end, 0.0))))

    def _nearness(self, nodes: Sequence[Node], words: Sequence[str]) -> list[float]:
        said = np.stack([self._vector(word) for word in words])
        cosines = exact(self._embedder.encode([node.name for node in nodes])) @ said.T
        best: list[float] = cosines.max(axis=1).tolist()
        return best

    # Inverse edges of the same fact

    @rule("inverse edges", "who are the children of {Tom}", lambda self, compared: compared[0])
    def _completed(self, compared: Sequence[Candidate]) -> Candidate:
        """Return the first candidate with the ends of those whose paths have the same meaning by inverse relations.

        If a graph stores a fact both ways (`parents`, `children`), either may lack some edges of the other. Inverse
        relations are unknown on a server.
        """
        best = compared[0]
        for one in compared[1:] if len(best.paths) == 1 else ():
            same = len(one.paths) == 1 and self._meaning(one.paths[0]) == self._meaning(best.paths[0])
            if same and not set(one.nodes) <= set(best.nodes) and not any(map(is_value, one.nodes)):
                nodes = tuple(dict.fromkeys((*best.nodes, *one.nodes)))
                best = replace(best, nodes=nodes, paths=(*best.paths, *one.paths))
        return best

    def _meaning(self, path: PathEvidence) -> tuple[object, ...]:
        """Return one key for all paths of equal meaning: the start, and for each step a label and its direction."""
        meant, inverses = [], self._steps.statistics.inverses()
        for step in path.relations:
            label, turned = step.removeprefix(INVERSE), step.startswith(INVERSE)
            meant.append(min([(label, turned), *((twin, not turned) for twin in inverses.get(label, ()))]))
        return path.source, *meant


def _compare(
    scores: Sequence[float], candidates: Sequence[Candidate]
) -> tuple[dict[EntityId, float], list[dict[str, float]]]:
    """Return the likelihood of each node against the best path, and features that compare candidates.

    Args:
        scores: log-odds of their paths, descending.
        candidates: N candidates.
    """
    mass = [math.exp((score - scores[0]) / _SETTINGS.per_vote) for score in scores]
    votes: dict[EntityId, float] = defaultdict(float)
    for one, own in zip(candidates, mass, strict=True):
        for node in one.nodes[: _SETTINGS.voters]:
            votes[node] += own
    total, features = sum(mass), []
    for at, one in enumerate(candidates):
        share = min(1.0, max([mass[at], *(votes[node] for node in one.nodes[: _SETTINGS.voters])]) / total)
        others = [*scores[:at], *scores[at + 1 :]][: _SETTINGS.others]
        gap = scores[at] - sum(others) / len(others) if others else _SETTINGS.margin
        margin = max(-_SETTINGS.margin, min(_SETTINGS.margin, gap))
        features.append({"agreement": -math.log(1 - share + _SETTINGS.rivals), "margin": margin})
    return {node: round(count, 6) for node, count in votes.items()}, features


def _fit(kind: AnswerType, fits: bool) -> dict[str, float]:
    """Return the features of a candidate's type."""
    sign = 1.0 if fits else -1.0
    if not kind.types:
        return {"called": sign if kind.exact else sign / 2}
    return {"who_where": sign} if "" in kind.types else {"typed": sign * kind.similarity}


def _uncertainty(linked: Sequence[LinkedEntity]) -> float:
    """Return the uncertainty of the least certain mention, each by its best candidate."""
    best: dict[Mention, float] = {}
    for one in linked:
        best[one.mention] = max(best.get(one.mention, 0.0), one.score)
    return 1 - min(best.values(), default=1.0)


@lru_cache(8)
def read_weights(file: Path) -> RankingWeights:
    """Read weights. Raises `ConfigError` if the file has none for these features."""
    try:
        held = json.loads(file.read_text("utf-8"))
        weights, middle = held["weights"], held["middle"]
        return RankingWeights(
            held["bias"], tuple(weights[name] for name in NAMES), tuple(middle[name] for name in NAMES)
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"no weights of a confidence can be read in {str(file)!r} ({error}); fit them anew with: "
            "byokg fit dataset=… --out DIR"
        ) from error


def save_weights(file: Path, fitted: RankingWeights) -> None:
    """Write what `read_weights` reads."""
    named = {"weights": fitted.weights, "middle": fitted.middle}
    parts = {part: dict(zip(NAMES, values, strict=True)) for part, values in named.items()}
    write_json(file, {"bias": fitted.bias, **parts})
