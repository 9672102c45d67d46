"""Scoring of metapaths against a question: an alignment of words with hops.

A hop is explained by the words of one stretch of the question, and stretches follow each other from the topic entity
outwards, as in «who directed the films *written by* X»: the words next to X belong to the first hop. All ways to cut
the question into one stretch a hop are tried. Two edges joined by a nameless (mediator) node make one hop, and a hop
straight back over the relation just walked («films that *share directors* with X») may go unexplained.

This replaces the KG-Linker's language model; no paper is followed.

Features are cosines, whose distribution depends on the embedder: weights belong to the embedder that they were fitted
with. The defaults of `Weights` are those of the shipped static embedder; those of others lie in `data/weights`. A
folder of weights holds `weights.json`, after a fit to a graph (`byokg fit`) its calibration `confidence.json`, and the
files of a trained ranker, if any (`path_ranker`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from byokg.arrays import Float32, Int64
from byokg.errors import ConfigError
from byokg.files import write_json
from byokg.graph.paths import Growth
from byokg.index.embedders import (
    Embedder,
    compare_rows,
    exact,
    folder_name,
    is_multilingual,
    shipped_embedder,
    unit_rows,
)
from byokg.offline.parse import ParsedQuestion
from byokg.offline.schema_linking import RelationSimilarity

if TYPE_CHECKING:
    from byokg.offline.path_ranker import PathRanker
    from byokg.offline.planner import Planner

MAX_HOPS = 3
"""Hops a metapath may have; the ways to cut a question grow as words ** (hops - 1)."""

_DATES = frozenset({"year", "years", "date", "dates"})


@dataclass(frozen=True)
class Weights:
    """Weight of each feature of a metapath; `scripts/fit_path_scorer.py` lists the training data."""

    coverage: float = 9.7
    """Share of the question's content words that some hop explains."""
    explained: float = 18.0
    """How much that is: the importance of these words."""
    likeness: float = 25.5
    """Cosine of the question with the text of all relations."""
    wh_similarity: float = 70.9
    """Cosine of who, when or where with the names at the end."""
    answer_type_similarity: float = 40.8
    """Cosine of the answer-type noun with the names at the end."""
    range_similarity: float = 5.4
    """Similarity of the last hop's range and the answer-type noun."""
    weakest: float = 21.0
    """How well the least explained of several hops is explained."""
    unexplained: float = -4.6
    """Hops that no word explains; one that a word explains by half counts half."""
    hop: float = -11.2
    """Hops."""
    third: float = 12.7
    """A third hop."""
    missing_hops: float = -19.4
    """Hops fewer than the links that the question strings together (`the children of X's sister`: two)."""
    extra_hops: float = -12.0
    """Hops more than these links, and than words that may be links."""
    log_branching: float = -14.6
    """Logarithm of the number of metapaths to choose from: at each edge, the distinct steps that lead on, and three."""
    log_unexplained_branching: float = -12.2
    """The same, of each hop as far as it is not explained."""
    backtracks: float = -2.6
    """Hops straight back."""
    shared_neighbor: float = 85.8
    """A hop straight back, as far as it is explained, if the question has a shared property of two things."""
    zigzag: float = -36.7
    """More than one hop straight back."""
    joined: float = 66.9
    """Two metapaths from different mentions that end in the same nodes."""


UNIT = 8.0
"""Scores, divided by this, are natural logarithms: how much likelier one metapath is than another."""

PLACE = MappingProxyType({field.name: place for place, field in enumerate(fields(Weights))})
"""Where each feature stands."""


@dataclass(frozen=True)
class AlignmentSettings:
    """How stretches of the question are matched with hops."""

    inherit: float = 0.8
    """Share of its neighbour's explanation that a hop straight back may take over."""
    reorder: float = 0.05
    """Cost of reading the question in another order than by distance from the topic entity."""
    against: float = 0.5
    """Worth of an explanation by a word of the opposite direction (`boss` for «reports to», towards the boss)."""
    unmeant: float = 100.0
    """Loss of a path for each step whose relation is an unmentioned antonym of another (`contraindicated in`)."""
    words: int = 12
    """Content words that are aligned; further ones are left out."""
    named: float = 0.9
    """Similarity from which a word names a relation."""
    expected: float = 0.5
    """Explanation expected of every content word, when coverage is turned into a share."""


@dataclass(frozen=True)
class PathFeatures:
    """Features of P metapaths."""

    features: Float32
    """(P, F) in the order of `Weights`; the first is not yet divided by what could be explained at best."""
    best: Float32
    """(N,) the best explanation of each content word by any of the metapaths."""
    metapaths: Int64
    """(P, L) their steps; of those that join two, the first's."""
    covered: Float32
    """(P, N) how well each content word is explained by any of its hops."""
    text: npt.NDArray[np.float64]
    """(P, D) sum of the vectors of its relations."""
    weakest: Float32
    """(P,) how well the least explained hop is explained."""
    others: Int64 | None = None
    """(P, L') steps of the second of two that are joined."""

    def taken(self, rows: Int64) -> PathFeatures:
        """Return some of the metapaths."""
        return PathFeatures(
            self.features[rows],
            self.best,
            self.metapaths[rows],
            self.covered[rows],
            self.text[rows],
            self.weakest[rows],
            None if self.others is None else self.others[rows],
        )


@dataclass(frozen=True)
class Hops:
    """P metapaths cut into hops."""

    steps: list[tuple[int, ...]]
    """The steps of each of the C hops that occur."""
    groups: list[tuple[Int64, Int64]]
    """Metapaths of equally many hops, G of H: their positions, (G,) ascending, and their hops, (G, H) in [0, C)."""


class PathScorer:
    """Scores metapaths of one graph against questions; thread-safe.

    Args:
        steps: schema linking of the graph.
        embedder: encodes questions.
        weights: weight of each feature.
        settings: of the alignment of words and hops.
        importance: weight of a word, about 1 on average.
        ranker: trained on questions, if there is one; it decides the order of metapaths, and not which are
            considered.
        planner: a fine-tuned language model, if there is one; it decides the order as well.
    """

    def __init__(
        self,
        steps: RelationSimilarity,
        embedder: Embedder,
        weights: Weights | None = None,
        settings: AlignmentSettings | None = None,
        importance: Callable[[str], float] = lambda word: 1.0,
        ranker: PathRanker | None = None,
        planner: Planner | None = None,
    ) -> None:
        self.steps, self.ranker, self.planner = steps, ranker, planner
        self.own_unit = UNIT if ranker is None else 1.0
        """Score units per nat without the planner: the scores of a trained ranker are logarithms."""
        self.unit = self.own_unit if planner is None else max(1.0, planner.share)
        """Score units per nat; those of a mix where the scores without the model have most weight."""
        self.importance = importance
        self.weights = weights or Weights()
        self.columns = astuple(self.weights)
        self.settings = settings or AlignmentSettings()
        self._embedder = embedder

    def question(self, parsed: ParsedQuestion) -> QuestionScorer:
        """Prepare to score metapaths against one question."""
        return QuestionScorer(self, parsed, exact(self._embedder.encode([" ".join(parsed.unmasked)])[0]))

    def hops(self, metapaths: Int64, steps: RelationSimilarity | None = None) -> Hops:
        """Cut metapaths into hops: steps joined by a nameless node make one hop; `steps` may know more of them."""
        nameless = (steps or self.steps).nameless
        if not (nameless[metapaths[:, :-1]] > 0.5).any():
            used = np.bincount(metapaths.ravel()).nonzero()[0]
            column_of = np.empty(len(nameless), np.int64)
            column_of[used] = np.arange(len(used))
            return Hops([(step,) for step in used.tolist()], [(np.arange(len(metapaths)), column_of[metapaths])])
        joined = nameless[metapaths[:, :-1]] > 0.5
        many, length = metapaths.shape
        pattern = (joined << np.arange(length - 1)).sum(axis=1)
        number = length - joined.sum(axis=1)
        columns = np.full((many, length), -1)
        column: dict[tuple[int, ...], int] = {}
        for each in np.unique(pattern).tolist():
            rows = np.flatnonzero(pattern == each)
            cuts = [0, *(at for at in range(1, length) if not each >> (at - 1) & 1), length]
            for hop, (first, last) in enumerate(pairwise(cuts)):
                units = metapaths[rows, first:last]
                keys = units[:, 0]
                for at in range(1, last - first):
                    keys = keys * len(nameless) + units[:, at]
                _, place, which = np.unique(keys, return_index=True, return_inverse=True)
                own = [column.setdefault(tuple(unit), len(column)) for unit in units[place].tolist()]
                columns[rows, hop] = np.array(own)[which]
        groups = []
        for hops in np.unique(number).tolist():
            rows = np.flatnonzero(number == hops)
            groups.append((rows, columns[rows, :hops]))
        return Hops(list(column), groups)


class QuestionScorer:
    """Scores metapaths against one question."""

    def __init__(self, scorer: PathScorer, parsed: ParsedQuestion, vector: npt.NDArray[np.float64]) -> None:
        self._scorer = scorer
        self._vector = vector
        self._learnt = None if scorer.ranker is None else scorer.ranker.question(parsed)
        self._reading = parsed
        self._shares, self._links = parsed.shares, parsed.links
        self._most_hops = parsed.most_hops
        self._orders = [order[: scorer.settings.words] for order in parsed.orders]
        self._content = sorted({*parsed.answer_type_span, *(position for order in self._orders for position in order)})
        self._row = {position: row for row, position in enumerate(self._content)}
        words = parsed.words
        self._importance = np.array([scorer.importance(words[position]) for position in self._content], np.float32)
        self._focus_rows = [self._row[position] for position in parsed.answer_type_span]
        self._know(scorer.steps.refresh())

    def observe(self, growth: Growth) -> None:
        """Collect statistics of the ends of metapaths before they are scored, if these are collected per question."""
        known = self._steps.observe(growth)
        if known is not self._steps:
            self._know(known)

    def _know(self, steps: RelationSimilarity) -> None:
        """Compare the question's words with the steps."""
        self._steps = steps
        parsed, words = self._reading, self._reading.words
        self._relation = self._rows([steps.label_similarity(words[position]) for position in self._content])
        self._kind = self._rows([steps.type_similarity(words[position]) for position in self._content])
        # After «who is» may come a noun (`who is the director`) or a verb (`who was born`), which no end is a kind of.
        named = (
            [steps.label_similarity, steps.range_similarity]
            if parsed.wh_word in ("who", "whom")
            else [steps.range_similarity]
        )
        self._reach = self._rows(
            [np.maximum.reduce([compare(words[position]) for compare in named]) for position in parsed.answer_type_span]
        )
        for rows, places in ((self._relation, self._content), (self._reach, parsed.answer_type_span)):
            for row, position in zip(rows, places, strict=True):
                row[steps.direction_mismatch(words[position], parsed.roles[position])] *= self._scorer.settings.against
        self._unsaid = steps.relations.antonym_mask(parsed.unmasked)
        focus = [words[position] for position in parsed.answer_type_span]
        dates = bool(_DATES.intersection(focus))
        if len(self._reach) and dates:
            self._reach = np.maximum(self._reach, steps.years)
        none = np.zeros(steps.count, np.float32)
        self._asked = (
            steps.instance_similarity("who" if parsed.wh_word == "whom" else parsed.wh_word)
            if parsed.wh_word in ("who", "whom", "when", "where")
            else none
        )
        if parsed.wh_word == "when":
            self._asked = np.maximum(self._asked, steps.years)
        self._asked_noun = np.max([steps.instance_similarity(word) for word in focus], axis=0) if focus else none
        if dates:
            self._asked_noun = np.maximum(self._asked_noun, steps.years)

    def _rows(self, rows: list[Float32]) -> Float32:
        return np.stack(rows) if rows else np.empty((0, self._steps.count), np.float32)

    def nameless(self, steps: Int64) -> npt.NDArray[np.bool_]:
        """Mask steps that lead mostly to nodes without a name, which are no answers: (P,)."""
        told: npt.NDArray[np.bool_] = self._steps.nameless[steps] > 0.5
        return told

    def named(self, steps: Int64) -> npt.NDArray[np.bool_]:
        """Mask steps whose relation a content word of the question names: (P,)."""
        return np.asarray((self._relation[:, steps] >= self._scorer.settings.named).any(axis=0))

    def extract_features(self, metapaths: Int64, choices: Float32 | None = None) -> PathFeatures:
        """Compute the features of P metapaths of equal length.

        Args:
            metapaths: (P, L) steps.
            choices: (P, L) logarithm of the number of ways to go on, or to stop, of which each is one; 0 when left out.
        """
        choices = np.zeros(metapaths.shape, np.float32) if choices is None else choices
        cut = self._scorer.hops(metapaths, self._steps)
        size = np.array([len(unit) for unit in cut.steps])
        walked = np.array([step for unit in cut.steps for step in unit])
        relation, kind, finals, alone = self._relation[:, walked], self._kind[:, walked], walked, walked
        if len(walked) > len(size):
            begins = size.cumsum() - size
            relation, kind = (np.maximum.reduceat(rows, begins, axis=1) for rows in (relation, kind))
            finals = walked[begins + size - 1]
            alone = np.where(size == 1, walked[begins], -2)  # nothing goes straight back over several steps
        either, reach = np.maximum(relation, kind), self._reach[:, finals]
        whole = either.copy()
        whole[self._focus_rows] = np.maximum(whole[self._focus_rows], reach)
        text = self._steps.relations.text_vectors[metapaths >> 1].sum(axis=1)
        last = metapaths[:, -1]
        table = np.zeros((len(metapaths), len(PLACE)), np.float32)
        table[:, PLACE["likeness"]] = compare_rows(exact(unit_rows(text)), self._vector)
        table[:, PLACE["wh_similarity"]] = self._asked[last]
        table[:, PLACE["answer_type_similarity"]] = self._asked_noun[last]
        table[:, PLACE["log_branching"]] = choices.sum(axis=1)
        covered, weakest = (np.empty((len(metapaths), *shape), np.float32) for shape in ((len(self._content),), ()))
        spread, unit_worth = self._spread(relation, kind), self._whole(either.max(axis=1, initial=0.0))
        for rows, numbers in cut.groups:
            part, covered[rows], number = table[rows], _largest(whole, numbers).T, numbers.shape[1]
            returns = alone[numbers[:, :-1]] ^ alone[numbers[:, 1:]] == 1
            explained, supports, own = self._best_cut(spread, unit_worth, reach, numbers, returns)
            costs = _hop_costs(choices[rows], size[numbers])
            weakest[rows] = least = supports.min(axis=1)
            part[:, PLACE["coverage"]] = part[:, PLACE["explained"]] = explained
            part[:, PLACE["range_similarity"]] = reach.max(axis=0, initial=0.0)[numbers[:, -1]]
            part[:, PLACE["unexplained"]] = number - supports.sum(axis=1)
            part[:, PLACE["hop"]] = number
            part[:, PLACE["missing_hops"]] = max(0, self._links - number)
            part[:, PLACE["extra_hops"]] = max(0, number - self._most_hops)
            part[:, PLACE["log_unexplained_branching"]] = ((1 - supports) * costs).sum(axis=1)
            if number > 1:
                part[:, PLACE["weakest"]] = least
                part[:, PLACE["third"]] = number > 2
                part[:, PLACE["backtracks"]] = back = returns.sum(axis=1)
                part[:, PLACE["zigzag"]] = back > 1
                if self._shares:
                    part[:, PLACE["shared_neighbor"]] = (returns * np.maximum(own[:, :-1], own[:, 1:])).max(axis=1)
            table[rows] = part
        return PathFeatures(table, either.max(axis=1, initial=0.0), metapaths, covered, text, weakest)

    def join(self, one: PathFeatures, other: PathFeatures, pairs: Int64) -> PathFeatures:
        """Compute the features of J pairs of metapaths from two topics that end in the same nodes.

        The two explain the union of the words that each explains; choices are made for both.

        Args:
            one: metapaths from one topic, and
            other: from the other.
            pairs: (J, 2) places in `one` and in `other`.
        """
        own, others = one.features[pairs[:, 0]], other.features[pairs[:, 1]]
        covered = np.maximum(one.covered[pairs[:, 0]], other.covered[pairs[:, 1]])
        text = one.text[pairs[:, 0]] + other.text[pairs[:, 1]]
        joined = own + others
        either = "wh_similarity answer_type_similarity range_similarity third shared_neighbor zigzag extra_hops"
        for place in map(PLACE.__getitem__, either.split()):
            joined[:, place] = np.maximum(own[:, place], others[:, place])
        explained = np.minimum(joined[:, PLACE["explained"]], (covered * self._importance).sum(axis=1))
        joined[:, PLACE["coverage"]] = joined[:, PLACE["explained"]] = explained
        joined[:, PLACE["missing_hops"]] = np.maximum(0, self._links - joined[:, PLACE["hop"]])
        joined[:, PLACE["weakest"]] = np.minimum(one.weakest[pairs[:, 0]], other.weakest[pairs[:, 1]])
        joined[:, PLACE["likeness"]] = compare_rows(exact(unit_rows(text)), self._vector)
        joined[:, PLACE["joined"]] = 1
        best = np.maximum(one.best, other.best)
        weakest = joined[:, PLACE["weakest"]]
        first, second = one.metapaths[pairs[:, 0]], other.metapaths[pairs[:, 1]]
        return PathFeatures(joined, best, first, covered, text, weakest, second)

    def features(self, aligned: Sequence[PathFeatures]) -> Float32:
        """Put features side by side so that they can be compared: (P, F) for all metapaths together."""
        rows = np.concatenate([part.features for part in aligned])
        rows[:, 0] /= self._whole(np.max([part.best for part in aligned], axis=0))
        return rows

    def scores(self, aligned: Sequence[PathFeatures]) -> list[Float32]:
        """Score metapaths so that they can be compared with each other: one (P,) array for each `PathFeatures`."""
        ranker = self._scorer.ranker
        if ranker is None or self._learnt is None:
            return self.beam_score(aligned)
        features = self.features(aligned).astype(np.float64)
        fits = ranker.fits(self._learnt, [part.metapaths for part in aligned], self._steps)
        at = 0
        for part in aligned:  # of two that are joined, the mean
            if part.others is not None:
                rows = slice(at, at + len(part.features))
                fits[rows] = (fits[rows] + ranker.fits(self._learnt, [part.others], self._steps)) / 2
            at += len(part.features)
        scores = fits + ranker.weigh(features) - self._unmeant(aligned)
        return np.split(scores, np.cumsum([len(part.features) for part in aligned])[:-1])

    def beam_score(self, aligned: Sequence[PathFeatures]) -> list[Float32]:
        """Score metapaths without the trained ranker, which scores whole paths only: for the beam."""
        features = self.features(aligned).astype(np.float64)
        # One feature after another, and not `@`: in this order on every CPU.
        scores = np.add.accumulate(features * self._scorer.columns, axis=1)[:, -1] - self._unmeant(aligned)
        return np.split(scores, np.cumsum([len(part.features) for part in aligned])[:-1])

    def _unmeant(self, aligned: Sequence[PathFeatures]) -> npt.NDArray[np.float64]:
        """Return the loss of metapaths for unmentioned antonyms: (P,) for all together."""
        steps = [(part.metapaths, part.others) for part in aligned]
        lost = [sum(self._unsaid[some].sum(axis=1) for some in pair if some is not None) for pair in steps]
        return self._scorer.settings.unmeant * np.concatenate(lost).astype(np.float64)

    def _whole(self, best: Float32) -> float:
        """Return the explanation that makes a coverage of 1, given the best there is for each content word."""
        return max(0.3, float((self._importance * np.maximum(best, self._scorer.settings.expected)).sum()))

    def _best_cut(
        self, spread: Float32, whole: float, reach: Float32, units: Int64, returns: npt.NDArray[np.bool_]
    ) -> tuple[Float32, Float32, Float32]:
        """Find, for each metapath of H hops, the cut that explains most.

        Returns:
            (P,) explained words, (P, H) how well each hop is explained, and (P, H) how well by its own words.

        Args:
            spread: (2, O, n + 1, n + 1, C) how well each hop that occurs is explained by each stretch, see `_spread`.
            whole: the explanation that makes a coverage of 1.
            reach: (F, C) similarity of its range to each answer-type noun.
            units: (P, H) hops, as columns of `spread` and `reach`.
            returns: (P, H - 1) True if a hop goes straight back over the one before.
        """
        hops, last = units.shape[1], units[:, -1]
        cuts = _cuts(spread.shape[2] - 1, hops)
        parts = spread[:, :, cuts[:, :-1], cuts[:, 1:]].reshape(2, -1, hops, spread.shape[-1])  # (2, O K, H, C)
        peak, total = zip(*(parts[:, :, hop].take(units[:, hop], axis=2) for hop in range(hops)), strict=True)
        focus = (self._importance[self._focus_rows, None] * reach).sum(axis=0)[last]
        explained, own = sum(total) + focus, list(peak)
        own[-1] = np.maximum(own[-1], reach.max(axis=0, initial=0.0)[last])
        supports = self._inherit(own, returns) if returns.any() else own
        value = sum(supports) / hops + explained / whole
        value[len(cuts) :] -= self._scorer.settings.reorder
        best = value.argmax(axis=0), np.arange(len(units))
        chosen = [np.stack([hop[best] for hop in some], axis=1) for some in (supports, own)]
        return explained[best], chosen[0], chosen[1]

    def _inherit(self, supports: list[Float32], returns: npt.NDArray[np.bool_]) -> list[Float32]:
        """Let a hop straight back and the one before share their explanation, at a discount."""
        share, shared = self._scorer.settings.inherit, list(supports)
        for hop in range(1, len(supports)):
            before, after = shared[hop - 1], shared[hop]
            shared[hop - 1] = np.where(returns[:, hop - 1], np.maximum(before, share * after), before)
            shared[hop] = np.where(returns[:, hop - 1], np.maximum(after, share * before), after)
        return shared

    def _spread(self, relation: Float32, kind: Float32) -> Float32:
        """Compute how well each stretch of each order of n words explains each hop.

        Args:
            relation: (N, C) similarity of each content word to the relation of each hop that occurs, and
            kind: (N, C) to its range.

        Returns:
            (2, O, n + 1, n + 1, C) the best explanation of a single word between two positions, and the most that two
            words in there add up to: a hop and its range are named once each, so it explains one word for each, not
            every mention.
        """
        rows = np.array([[self._row[position] for position in order] for order in self._orders], np.int64)  # (O, n)
        count, each = rows.shape[1], np.arange(rows.shape[1])
        importance = self._importance[rows][:, :, None]
        as_relation, as_kind = relation[rows] * importance, kind[rows] * importance
        most = np.zeros((2, len(rows), count + 1, count + 1, relation.shape[1]), np.float32)
        two = as_relation[:, :, None] + as_kind[:, None]
        most[1, :, :count, 1:] = np.maximum(two, two.swapaxes(1, 2)) * (each[:, None] < each)[:, :, None]
        most[1, :, each, each + 1] = np.maximum(as_relation, as_kind).swapaxes(0, 1)
        most[0, :, each, each + 1] = np.maximum(relation[rows], kind[rows]).swapaxes(0, 1)
        backwards = most[:, :, ::-1]
        np.maximum.accumulate(backwards, axis=2, out=backwards)
        return np.maximum.accumulate(most, axis=3, out=most)


def _largest(rows: Float32, numbers: Int64) -> Float32:
    """Return the largest of some columns (N, C) for each of P metapaths of H hops: (N, P)."""
    largest: Float32 = rows.take(numbers[:, 0], axis=1)
    for hop in range(1, numbers.shape[1]):  # a reduction over a short last axis takes many times as long
        np.maximum(largest, rows.take(numbers[:, hop], axis=1), out=largest)
    return largest


def _hop_costs(choices: Float32, sizes: Int64) -> Float32:
    """Add up choices (P, L) over the edges of each hop: (P, H), for hops of (P, H) edges."""
    costs: Float32 = choices.cumsum(axis=1)[np.arange(len(choices))[:, None], sizes.cumsum(axis=1) - 1]
    costs[:, 1:] -= costs[:, :-1].copy()
    return costs


@lru_cache(1 << 16)
def _log10(number: int) -> float:
    # In decimal arithmetic, since libraries and CPUs differ in the last bit of a logarithm.
    return float(Decimal(number).log10())


def logarithms(counts: Int64) -> Float32:
    """Return the decimal logarithms of whole numbers above 0."""
    return np.array([_log10(count) for count in counts.tolist()], np.float32)


@lru_cache(1 << 10)
def _cuts(words: int, hops: int) -> Int64:
    """Return every way to cut `words` words into `hops` stretches: (K, hops + 1) ascending borders, 0 first."""
    grids = np.meshgrid(*[np.arange(words + 1)] * (hops - 1), indexing="ij")
    inner = np.stack([grid.ravel() for grid in grids], axis=1) if hops > 1 else np.empty((1, 0), np.int64)
    inner = inner[(np.diff(inner, axis=1) >= 0).all(axis=1)]
    ends = np.zeros((len(inner), 1), np.int64)
    return np.concatenate((ends, inner, ends + words), axis=1)


SHIPPED = Path(__file__).resolve().parent.parent / "data" / "weights"
"""A folder for each embedder, under its name."""

STATIC = "static-128-int8-65d26be1dd0e"
"""The embedder that ships with the package."""

SCHEMA = 1
FILE = "weights.json"
RANKER_FILE = "ranker.json"
CONFIDENCE_FILE = "confidence.json"

_FEATURE_NAMES = tuple(field.name for field in fields(Weights))
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class FittedWeights:
    """Content of a folder of weights."""

    weights: Weights
    ranker: Path | None
    """The folder itself, if it holds a ranker of paths, too."""
    confidence: Path | None
    """The file of calibration weights, if any."""


def save_weights(folder: Path, weights: Weights, embedder: str, record: Mapping[str, object]) -> None:
    """Write weights into a folder that exists; `record` describes their training data and quality."""
    write_json(folder / FILE, {"schema": SCHEMA, "embedder": embedder, **record, "weights": asdict(weights)})


def read_weights(folder: str | Path, embedder: str) -> FittedWeights:
    """Read what `byokg fit` wrote.

    Args:
        folder: the folder, or its `weights.json`.
        embedder: name of the embedder that they are to be used with.

    Raises:
        ConfigError: there are no weights, or they belong to another embedder or to other features.
    """
    folder = Path(folder).expanduser()
    folder = folder.parent if folder.name == FILE else folder
    fit = "fit them anew with: byokg fit dataset=… --out DIR"
    try:
        held = json.loads((folder / FILE).read_text("utf-8"))
        schema, fitted_with = held["schema"], held["embedder"]
        values = {str(name): float(value) for name, value in held["weights"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"no weights can be read in {str(folder)!r} ({error}); {fit}") from error
    if fitted_with != embedder:
        raise ConfigError(
            f"the weights in {str(folder)!r} were fitted with the embedder {fitted_with!r}, and this run has "
            f"{embedder!r}; choose that embedding, or {fit}"
        )
    if schema != SCHEMA or set(values) != set(_FEATURE_NAMES):
        other = ", ".join(sorted(set(values) ^ set(_FEATURE_NAMES))) or "none"
        raise ConfigError(
            f"the weights in {str(folder)!r} are of another version of byokg (schema {schema}, and {SCHEMA} here; "
            f"features that only one has: {other}); {fit}"
        )
    ranker, confidence = (folder / name for name in (RANKER_FILE, CONFIDENCE_FILE))
    return FittedWeights(
        Weights(**values), folder if ranker.is_file() else None, confidence if confidence.is_file() else None
    )


def weights_for(embedder: Embedder) -> Weights:
    """Return the shipped weights of an embedder.

    Those of the shipped static embedder replace missing ones of another; the log reports it, once.
    """
    return _shipped(embedder.name)


def scoring_embedder(embedder: Embedder, shipped: bool) -> Embedder:
    """Return the embedder that scores paths: the shipped one in place of a multilingual one without fitted weights.

    Questions are translated before, so that words and labels are English. Without `shipped`, the weights are others.
    """
    fitted = not shipped or embedder.name == STATIC or (SHIPPED / folder_name(embedder.name) / FILE).is_file()
    return embedder if fitted or not is_multilingual(embedder) else shipped_embedder()


@lru_cache(64)
def _shipped(name: str) -> Weights:
    if name == STATIC:
        return Weights()
    folder = SHIPPED / folder_name(name)
    if (folder / FILE).is_file():
        return read_weights(folder, name).weights
    _logger.warning(
        "no weights were fitted with the embedder %r: relation paths are scored with those of %r; fit some with "
        "byokg fit dataset=… embedding=… --out DIR, and use them with pipeline.weights=DIR",
        name,
        STATIC,
    )
    return Weights()
