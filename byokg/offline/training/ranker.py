"""Training the path ranker of the offline linker: questions with answers or annotated relation chains, to a folder.

A question's metapaths are those that the offline linker considers; how right each is follows from the gold answers (F1
of the nodes it reaches), or from the chain. The weights minimise the negative logarithm of how right a metapath is that
a softmax over the scores draws. numpy alone, minutes on one core; the same input and seed make the same bytes whatever
CPU and BLAS (see `path_ranker`).

Source: GraphRAFT (arXiv:2504.05478), "Synthesize ground-truth cypher", for the weak labels. The ranker is ours.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byokg.arrays import Float64, Int64
from byokg.errors import ConfigError, at_least
from byokg.evaluation.datasets.base import Example, Record, read_json_lines, read_text, require_file
from byokg.files import new_folder
from byokg.graph.paths import labels
from byokg.graph.store import Direction, GraphStore
from byokg.index.embedders import Embedder, exact
from byokg.offline.linker import OfflineLinker, ScoredCandidates
from byokg.offline.parse import ParsedQuestion
from byokg.offline.path_ranker import (
    PLACES,
    RankerWeights,
    describe_steps,
    ngrams,
    on_grid,
    place_steps,
    product,
    save_ranker,
)
from byokg.offline.path_scorer import Weights, save_weights
from byokg.offline.schema_linking import RelationSimilarity, sum_rows
from byokg.text.names import locate
from byokg.types import INVERSE, EntityId, Mention, Question


@dataclass(frozen=True)
class OptimizerSettings:
    """Constants of the ranker's optimizer."""

    untrained: float = 8.0
    """Divisor that turns untrained scores into initial logits."""
    features: float = 0.3
    """Learning rate of the features' weights, as a share of the others'."""


_OPTIMIZER = OptimizerSettings()

LEARNT = 0.05
"""Least F1 that some metapath of a question must have for the question to be learnt from."""


@dataclass(frozen=True)
class FitSettings:
    """Training settings of the ranker; found on the dev splits of MetaQA and WebQSP.

    Args:
        rank: of the product of question and path
        epochs: passes over the questions
        batch: questions per weight update
        rate: first learning rate; falls linearly to zero
        decay: weight decay, of all but the features' weights
        dropout: share of a question's n-grams that are left out each time
        most: metapaths of a question at most: the most promising ones, and those that are right
        least: minimal number of questions with an n-gram
        held_out: share of questions that are not trained on, for evaluation
        seed: of the first weights, and of the order of questions
    """

    rank: int = 32
    epochs: int = 8
    batch: int = 32
    rate: float = 0.01
    decay: float = 0.1
    dropout: float = 0.3
    most: int = 200
    least: int = 2
    held_out: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        at_least(1, "trains nothing", rank=self.rank, epochs=self.epochs, batch=self.batch, most=self.most)
        if not (0 <= self.held_out < 1 and 0 <= self.dropout < 1):
            raise ConfigError(f"held_out={self.held_out} and dropout={self.dropout} are shares; use 0 up to below 1")


@dataclass(frozen=True)
class RankingExample:
    """One question and its P metapaths."""

    text: str
    """The words outside mentions."""
    ngrams: tuple[str, ...]
    placed: npt.NDArray[np.int32]
    """(P, 3) see `place_steps`."""
    features: npt.NDArray[np.float32]
    """(P, F) in the order of `path_scorer.Weights`."""
    right: Float64
    """(P,) how right each is, in [0, 1]."""

    @property
    def learnable(self) -> bool:
        """True if some metapath is right, and not all are equally."""
        return len(self.right) > 1 and self.right.max() >= LEARNT and self.right.min() < self.right.max()


def _case(considered: ScoredCandidates, right: Float64, linker: OfflineLinker, most: int) -> RankingExample:
    """Return a case of the metapaths that end at named nodes; of very many, some that are not right are left out."""
    steps, weights = 2 * len(linker.store.relations), astuple(linker.scorer.weights)
    kept = np.flatnonzero(considered.named)
    if len(kept) > most:
        promise = considered.features[kept].astype(np.float64)
        scores = sum((weight * promise[:, at] for at, weight in enumerate(weights)), np.zeros(len(kept)))
        kept = np.sort(kept[np.lexsort((-scores, -right[kept]))[:most]])
    parsed: ParsedQuestion = considered.parsed
    placed = np.concatenate([place_steps(growth.steps, steps) for growth in considered.growths])
    return RankingExample(
        " ".join(parsed.unmasked),
        tuple(ngrams(parsed)),
        placed[kept].astype(np.int32),
        considered.features[kept],
        on_grid(right[kept]),
    )


def answer_cases(
    linker: OfflineLinker,
    store: GraphStore,
    examples: Iterable[Example],
    gold: Callable[[Example], Sequence[EntityId]],
    most: int = FitSettings.most,
) -> Iterator[RankingExample]:
    """Yield a case for each question that starts somewhere: a metapath is as right as the F1 of the nodes it reaches.

    A question that comes without topic entities starts from those that the linker finds in it.

    Args:
        linker: proposes metapaths.
        store: the graph, as the linker walks it (`linker.store`).
        examples: questions, whose topic ids are those of the graph.
        gold: gives the nodes that are a question's answers; those that the graph lacks count as never found.
        most: metapaths of a question at most.
    """
    known = set(store.entities())
    for example in examples:
        topics = [id for id in example.topic_ids if id in known]
        if example.topic_ids and not topics:
            continue
        answers = list(dict.fromkeys(gold(example)))
        nodes = store.numbers([id for id in answers if id in known])
        considered = linker.score_candidates(Question(example.id, example.question, tuple(topics)))
        if considered.growths:
            right = f1_of_paths(considered, nodes, len(answers))
            yield _case(considered, right, linker, most)


def f1_of_paths(considered: ScoredCandidates, gold: npt.NDArray[np.integer], answers: int) -> Float64:
    """Return the F1 of the nodes that each metapath reaches: (P,), for so many gold answers, those known numbered."""
    parts = []
    for growth in considered.growths:
        sizes = np.diff(growth.bounds)
        hits = np.bincount(np.repeat(np.arange(len(growth)), sizes), np.isin(growth.ends, gold), len(growth))
        parts.append(2 * hits / (sizes + answers))
    return np.concatenate(parts)


@dataclass(frozen=True)
class Chain:
    """A question annotated with the relations from its topic to its answer."""

    id: str
    question: str
    topic: Mention
    name: str
    """Id of the topic entity; empty if unknown."""
    relations: tuple[str, ...]
    """`^r` is walked backwards."""


def read_chains(path: str | Path) -> tuple[list[Chain], str]:
    """Read JSON lines of `question`, `chain` and, if known, `id`, `topic_id` and `mentions` (`id`, `name`, `text`).

    Returns:
        The chains, and the digest of the file's content.

    Raises:
        DatasetError: the file cannot be read, or a record is malformed.
    """
    path = Path(path)
    file = read_json_lines(path if path.is_file() else require_file(path.parent, path.name))
    return [_chain(record) for record in file.records if record.several("chain")], file.checksum


def _chain(record: Record) -> Chain:
    question, topic = record.text("question"), record.label("topic_id")
    mention: Mapping[str, Any] = next(
        (one for one in record.several("mentions") if topic and one.get("id") == topic), {}
    )
    name = str(mention.get("name") or "")
    text = str(mention.get("text") or name)
    relations = tuple(map(str, record.several("chain")))
    return Chain(record.label("id") or question, question, locate(text, question), name, relations)


def read_inverses(path: str | Path) -> dict[str, str]:
    """Read pairs of inverse relations: two columns, separated by a tab. Raises `DatasetError`."""
    path = Path(path)
    text = read_text(path if path.is_file() else require_file(path.parent, path.name))
    pairs = [line.split("\t")[:2] for _, line in text.lines]
    return {**{pair[0]: pair[-1] for pair in pairs}, **{pair[-1]: pair[0] for pair in pairs}}


def chain_cases(
    linker: OfflineLinker,
    store: GraphStore,
    chains: Iterable[Chain],
    inverses: Mapping[str, str],
    max_hops: int = 2,
    most: int = FitSettings.most,
) -> Iterator[RankingExample]:
    """Yield a case for each chain that the graph can walk: its metapath is right, the others are not.

    Metapaths start from the topic if the graph has it and the chain starts there, else from a stand-in node at which
    the chain starts: the other metapaths of that node are the negatives.

    Args:
        linker: proposes metapaths.
        store: the graph, as the linker walks it (`linker.store`).
        chains: the questions.
        inverses: inverse relations; a chain is walked either way.
        max_hops: longer chains are left out.
        most: metapaths of a question at most.
    """
    walks = ChainStarts(store, inverses)
    known = set(store.entities())
    for chain in chains:
        spelled = walks.spelled(chain.relations) if len(chain.relations) <= max_hops else []
        starts = np.unique(np.concatenate([walks.starts(one) for one in spelled])) if spelled else np.empty(0, np.int64)
        if not len(starts):
            continue
        digest = int(hashlib.sha256(chain.id.encode("utf-8", "surrogatepass")).hexdigest(), 16)
        node = int(starts[digest % len(starts)])
        if chain.name in known:
            own = int(store.numbers([EntityId(chain.name)])[0])
            node = own if own in starts else node
        considered = linker.score_candidates(Question(chain.id, chain.question), (chain.topic, node))
        if considered.growths:
            right = dict.fromkeys(spelled, 1.0)
            rows = [tuple(row) for growth in considered.growths for row in growth.steps.tolist()]
            labelled = np.array([right.get(row, 0.0) for row in rows])
            yield _case(considered, labelled, linker, most)


class ChainStarts:
    """Where chains of relations start in a graph."""

    def __init__(self, store: GraphStore, inverses: Mapping[str, str]) -> None:
        self._store = store
        self._inverses = inverses
        self._number = {relation: number for number, relation in enumerate(store.relations)}
        self._nodes = np.sort(store.numbers(list(store.entities()))).astype(np.int64)

    def spelled(self, relations: Sequence[str]) -> list[tuple[int, ...]]:
        """Return every way to write a chain as steps of the graph; none if it lacks a relation."""
        ways = []
        for written in relations:
            label, back = written.removeprefix(INVERSE), written.startswith(INVERSE)
            steps = [2 * self._number[label] + back] if label in self._number else []
            if (other := self._inverses.get(label)) in self._number:
                steps.append(2 * self._number[other] + (not back))
            ways.append(steps)
        return list(itertools.product(*ways))

    def starts(self, steps: Sequence[int]) -> Int64:
        """Return the nodes from which some walk takes these steps, ascending."""
        ends: Int64 = self._nodes
        for step in reversed(steps):
            # Read from the far end, so that a step forwards is an edge that comes in.
            direction = Direction.OUT if step & 1 else Direction.IN
            batch = self._store.edges(ends, direction, np.array([step >> 1], np.int64))
            ends = np.unique(batch.other.astype(np.int64))
            if not len(ends):
                break
        return ends


@dataclass(frozen=True)
class TrainedRanker:
    """A trained ranker, and how good it is on questions that were held out."""

    weights: RankerWeights
    known: tuple[str, ...]
    """N-grams, rows of `weights.ngrams`."""
    places: tuple[str, ...]
    """Placed labels, rows of `weights.labels`."""
    trained: int
    """Questions."""
    held_out: int
    before: float
    """Mean F1 (for chains: share of right ones) of the best metapath of held out questions, not trained."""
    after: float


def fit_ranker(
    cases: Iterable[RankingExample],
    store: GraphStore,
    steps: RelationSimilarity,
    embedder: Embedder,
    settings: FitSettings | None = None,
    start: Weights | None = None,
) -> TrainedRanker:
    """Train a ranker for the paths of the linker behind the cases, with its graph (`linker.store`) and steps.

    `start` holds the initial weights of features: those of that linker; the shipped ones when left out.

    Raises:
        ConfigError: no case has a right metapath.
    """
    settings = settings or FitSettings()
    usable = [case for case in cases if case.learnable]
    if not usable:
        raise ConfigError(
            "no question can be learnt from: none has a relation path to its answers in this graph; check that "
            "graph, dataset and dataset.ids belong together"
        )
    random = np.random.default_rng(settings.seed)
    order = random.permutation(len(usable)).tolist()
    held = [usable[at] for at in order[: int(settings.held_out * len(usable))]]
    training = [usable[at] for at in order[len(held) :]]
    fit = _Optimizer(training, steps, embedder, settings, random, start or Weights())
    prepared, checked = [fit.prepare(case) for case in training], [fit.prepare(case) for case in held]
    before = fit.quality(checked)
    count = settings.epochs * -(-len(prepared) // settings.batch)
    for epoch in range(settings.epochs):
        order = random.permutation(len(prepared)).tolist()
        for number, first in enumerate(range(0, len(order), settings.batch)):
            done = (epoch * count // settings.epochs + number) / count
            fit.learn([prepared[at] for at in order[first : first + settings.batch]], settings.rate * (1 - done))
    names = labels(store, np.arange(steps.count))
    places = tuple(f"{slot // steps.count} {names[slot % steps.count]}" for slot in fit.slots.tolist())
    known = tuple(fit.known)
    return TrainedRanker(fit.weights(), known, places, len(training), len(held), before, fit.quality(checked))


@dataclass(frozen=True)
class _Prepared:
    vector: Float64
    rows: Int64
    """N-grams that are known."""
    slots: Int64
    """(P, 3) places in `_Optimizer.slots`; the last one for padding."""
    features: Float64
    right: Float64


class _Optimizer:
    """The weights while they change, with Adam's moments."""

    def __init__(
        self,
        cases: Sequence[RankingExample],
        steps: RelationSimilarity,
        embedder: Embedder,
        settings: FitSettings,
        random: np.random.Generator,
        start: Weights,
    ) -> None:
        self._settings, self._random, self._embedder = settings, random, embedder
        counts = Counter(ngram for case in cases for ngram in case.ngrams)
        self.known = {name: row for row, name in enumerate(sorted(n for n, c in counts.items() if c >= settings.least))}
        slots = np.unique(np.concatenate([case.placed.ravel() for case in cases]))
        self.slots: Int64 = slots[slots >= 0].astype(np.int64)
        self._described = describe_steps(steps)[self.slots % steps.count]
        self._place = self.slots // steps.count
        self._scale = np.max([np.abs(case.features).max(axis=0) for case in cases], axis=0).astype(np.float64)
        self._scale[self._scale == 0] = 1.0
        rank, dimensions = settings.rank, self._described.shape[1] // 3
        self._parts: dict[str, Float64] = {
            "features": np.array(astuple(start)) * self._scale / _OPTIMIZER.untrained,
            "question": self._uniform((dimensions, rank), 0.5),
            "ngrams": self._uniform((len(self.known), rank), 0.2),
            "texts": self._uniform((PLACES, 3 * dimensions, rank), 0.2),
            "labels": np.zeros((len(self.slots), rank)),
        }
        self._first = {name: np.zeros_like(part) for name, part in self._parts.items()}
        self._second = {name: np.zeros_like(part) for name, part in self._parts.items()}
        self._bias = [1.0, 1.0]

    def _uniform(self, shape: tuple[int, ...], width: float) -> Float64:
        return width * (2 * self._random.random(shape) - 1)

    def weights(self) -> RankerWeights:
        """Return the weights for features as they are, not scaled."""
        return RankerWeights(**{**self._parts, "features": self._parts["features"] / self._scale})

    def prepare(self, case: RankingExample) -> _Prepared:
        """Turn names into numbers."""
        vector = exact(self._embedder.encode([case.text])[0])
        rows = np.array([self.known[ngram] for ngram in case.ngrams if ngram in self.known], np.int64)
        slots = np.searchsorted(self.slots, case.placed)
        slots = np.minimum(slots, len(self.slots) - 1)
        slots[self.slots[slots] != case.placed] = len(self.slots)  # padding, and steps that no case trained on has
        return _Prepared(vector, rows, slots, case.features.astype(np.float64) / self._scale, case.right)

    def quality(self, cases: Sequence[_Prepared]) -> float:
        """Return how right the best metapath is, on average."""
        found = [case.right[np.argmax(self._scores([case], [case.rows]).scores)] for case in cases]
        return float(np.mean(found)) if found else 0.0

    def _scores(self, batch: Sequence[_Prepared], rows: Sequence[Int64]) -> _Scored:
        parts = self._parts
        sizes = [len(case.right) for case in batch]
        owner = np.repeat(np.arange(len(batch)), sizes)
        vectors = np.stack([case.vector for case in batch])
        counts = np.array([len(each) for each in rows])
        row, asker = np.concatenate(rows), np.repeat(np.arange(len(batch)), counts)
        share = 1 / np.sqrt(np.maximum(1, counts))[:, None]
        questions = product(vectors, parts["question"])
        questions += sum_rows(parts["ngrams"][row], asker, len(batch)) * share
        slots = np.concatenate([case.slots for case in batch])
        used, where = np.unique(slots, return_inverse=True)
        where = where.reshape(slots.shape)
        table = np.zeros((len(used), self._settings.rank))
        for place in range(PLACES):
            at = np.flatnonzero((used < len(self.slots)) & (np.append(self._place, -1)[used] == place))
            if len(at):
                described = product(self._described[used[at]], parts["texts"][place])
                table[at] = described + parts["labels"][used[at]]
        paths = table[where].sum(axis=1)
        features = np.concatenate([case.features for case in batch])
        scores = (questions[owner] * paths).sum(axis=1) + product(features, parts["features"][:, None])[:, 0]
        return _Scored(
            scores, owner, np.array(sizes), vectors, questions, paths, features, row, asker, share, used, where
        )

    def learn(self, batch: Sequence[_Prepared], rate: float) -> None:
        """Change the weights once."""
        kept = [case.rows[self._random.random(len(case.rows)) >= self._settings.dropout] for case in batch]
        now = self._scores(batch, kept)
        starts = np.cumsum(now.sizes) - now.sizes
        chance = on_grid(exponential(now.scores - np.maximum.reduceat(now.scores, starts)[now.owner]), 40)
        chance = chance / np.add.reduceat(chance, starts)[now.owner]
        right = np.concatenate([case.right for case in batch])
        drawn = on_grid(chance * right, 40)
        total = np.add.reduceat(drawn, starts) + _TINY
        slope = (chance - drawn / total[now.owner]) / len(batch)
        of_question = sum_rows(slope[:, None] * now.paths, now.owner, len(batch))
        of_path = slope[:, None] * now.questions[now.owner]
        of_slot = sum_rows(np.repeat(of_path, 3, axis=0), now.where.ravel().astype(np.int64), len(now.used))
        gradient = {
            "features": product(now.features.T, slope[:, None])[:, 0],
            "question": product(now.vectors.T, of_question),
            "ngrams": sum_rows((of_question * now.share)[now.asker], now.row, len(self.known)),
            "texts": np.zeros_like(self._parts["texts"]),
            "labels": np.zeros_like(self._parts["labels"]),
        }
        for place in range(PLACES):
            at = np.flatnonzero((now.used < len(self.slots)) & (np.append(self._place, -1)[now.used] == place))
            if len(at):
                gradient["texts"][place] = product(self._described[now.used[at]].T, of_slot[at])
                gradient["labels"][now.used[at]] = of_slot[at]
        self._bias = [self._bias[0] * _MOMENTS[0], self._bias[1] * _MOMENTS[1]]
        for name, part in gradient.items():
            first, second = self._first[name], self._second[name]
            first += (1 - _MOMENTS[0]) * (part - first)
            second += (1 - _MOMENTS[1]) * (part * part - second)
            change = first / (1 - self._bias[0]) / (np.sqrt(second / (1 - self._bias[1])) + 1e-6)
            change = (
                _OPTIMIZER.features * change
                if name == "features"
                else change + self._settings.decay * self._parts[name]
            )
            self._parts[name] -= rate * change


@dataclass(frozen=True)
class _Scored:
    """Scores of a batch of B questions with P metapaths, and their terms."""

    scores: Float64
    owner: Int64
    """(P,) question of each metapath."""
    sizes: Int64
    vectors: Float64
    questions: Float64
    """(B, r)."""
    paths: Float64
    """(P, r)."""
    features: Float64
    row: Int64
    """N-grams of all questions, and"""
    asker: Int64
    """the question of each."""
    share: Float64
    """(B, 1) weight of an n-gram."""
    used: Int64
    """Slots that occur, and"""
    where: Int64
    """(P, 3) which of them a step is."""


_MOMENTS = (0.9, 0.99)
_TINY = 2.0**-40

_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
"""The logarithm of 2 in two parts, the first of so few bits that its multiples are exact."""


def exponential(x: Float64) -> Float64:
    """Return e ** x for x up to 0, by additions and products alone: libraries differ in the last bit."""
    x = np.maximum(x, -60.0)
    power = np.rint(x / (_LN2_HIGH + _LN2_LOW))
    rest = (x - power * _LN2_HIGH) - power * _LN2_LOW
    value = np.ones_like(rest)
    for degree in range(13, 0, -1):
        value = 1.0 + rest * value / degree
    return np.ldexp(value, power.astype(np.int32))


def write_ranker(
    out: str | Path, fitted: TrainedRanker, embedder: Embedder, settings: FitSettings, source: str, weights: Weights
) -> None:
    """Write a folder of weights with a ranker, in place of an existing one; `source` describes the training data.

    Raises:
        GraphError: the folder cannot be written.
    """
    record: dict[str, object] = {
        "embedder": embedder.name,
        "source": source,
        "settings": asdict(settings),
        "questions": {"trained": fitted.trained, "held_out": fitted.held_out},
        "f1": {"before": round(fitted.before, 4), "after": round(fitted.after, 4)},
    }
    with new_folder(out, overwrite=True, refuse=None) as folder:
        save_ranker(folder, fitted.weights, fitted.known, fitted.places, record)
        save_weights(folder, weights, embedder.name, {"source": source})
