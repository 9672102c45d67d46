"""Time of exact search for the best triples of a whole graph, after embedding the question.

python benchmarks/text_retrieval.py [--large] [--json FILE]

Graphs and vectors are synthetic: node numbers follow a power law at both ends of an edge, relations follow Zipf's law,
vectors of nodes, relations and questions are random and independent, which leaves nothing to prune but chance. Without
`--large` there are 500,000 triples over 105,000 nodes; with it also 7 million over 2 million nodes in 384 dimensions,
and 35 million over 10 million nodes in 64 and 128 (6 GB of memory, three minutes).

Peers, in the same run: numpy adding the three similarities of every triple, and FAISS (flat, half precision) over one
vector a triple, the sum of its parts' vectors, with the memory of embedding each triple's text. Every
answer is compared with numpy's. CPU seconds are printed as well: they vary less with the load of the machine.

Bars, for the machine the project was planned on (2 cores), best 100: 50 ms at 500,000 triples, 1.5 s at 35 million.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TypeVar

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.rows import Row, make_parser, show
from byokg.arrays import Integers
from byokg.graph.columnar.assembly import EdgeTable, assemble_parts
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.columnar.schema import NodeColumns
from byokg.graph.store import Direction
from byokg.index.dense import DenseNames, Similarity
from byokg.index.embedders import Vectors, unit_rows
from byokg.index.vectors import VectorIndex
from byokg.retrieval.text import TripleSearch

Result = TypeVar("Result")

K = 100
QUESTIONS = 20
RELATIONS = 1000
PART = 1 << 17
HUBS = 2.5
"""A node's number is that power of an even draw: the higher, the larger the hubs."""


@dataclass(frozen=True)
class Size:
    """How large a graph to make."""

    triples: int
    nodes: int
    dimensions: int
    peers: bool = False
    """Whether to compare with peers that hold something for each triple."""


@dataclass(frozen=True)
class Seconds:
    """What a call took."""

    wall: float
    cpu: float


SMALL = [Size(500_000, 105_000, width, peers=True) for width in (64, 128, 384)]
LARGE = [Size(7_000_000, 2_000_000, 384), Size(35_000_000, 10_000_000, 64), Size(35_000_000, 10_000_000, 128)]


class RandomVectors:
    """An embedder that gives every text another random unit vector."""

    def __init__(self, dimensions: int, seed: int) -> None:
        self._dimensions = dimensions
        self._random = np.random.default_rng(seed)
        self.name = f"random-{dimensions}"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return (N, D) unit rows."""
        return unit_rows(self._random.standard_normal((len(texts), self._dimensions), np.float32))


def graph_of(size: Size) -> ColumnarGraph:
    """Make a graph with hubs; repeated triples stay."""
    random = np.random.default_rng(1)
    head, tail = ((size.nodes * random.random(size.triples) ** HUBS).astype(np.int32) for _ in range(2))
    shares = 1 / np.arange(1, RELATIONS + 1)
    relation = random.choice(RELATIONS, size.triples, p=shares / shares.sum()).astype(np.int16)
    parts = assemble_parts(
        NodeColumns(pc.cast(pa.array(np.arange(size.nodes)), pa.large_string())),
        [f"relation_{number}" for number in range(RELATIONS)],
        EdgeTable(np.column_stack((head, relation, tail))),
        source={"kind": "random"},
    )
    return ColumnarGraph("random", parts)


def names_of(size: Size, embedder: RandomVectors) -> DenseNames:
    """Give every node a name of its own with a random vector."""
    texts = [""] * PART
    vectors = VectorIndex.build(embedder.encode(texts[: min(PART, size.nodes)]), "flat")
    while len(vectors) < size.nodes:
        vectors.add(embedder.encode(texts[: size.nodes - len(vectors)]))
    numbers = np.arange(size.nodes + 1)
    names = pc.cast(pa.array(numbers[:-1]), pa.large_string())
    return DenseNames(embedder, names, numbers, numbers[:-1], vectors)


def rows(size: Size) -> list[Row]:
    """Measure one size.

    Returns:
        Rows of name, value, unit.
    """
    found: list[Row] = []
    label = f"{size.triples / 1e6:g}M_triples_{size.dimensions}d"

    def record(name: str, times: Sequence[Seconds]) -> None:
        wall, cpu = [each.wall for each in times], [each.cpu for each in times]
        for kind, value in (("median", median(wall)), ("worst", max(wall)), ("cpu_median", median(cpu))):
            found.append(Row(f"{label}_{name}_{kind}_ms", 1e3 * value, "ms"))

    graph, embedder = graph_of(size), RandomVectors(size.dimensions, seed=2)
    names = names_of(size, embedder)
    nodes = Similarity(names, size.nodes)
    search = TripleSearch(graph, embedder, nodes)
    questions = RandomVectors(size.dimensions, seed=3).encode([""] * QUESTIONS)
    edges = graph.edges(np.arange(size.nodes), Direction.OUT)
    head, relation, tail = edges.head, edges.relation, edges.tail
    del edges  # in the order of their numbers, so a triple's row is its number
    search.best(questions[0], K)
    ours = [timed(partial(search.best, question, K)) for question in questions]
    asked = questions if size.peers else questions[:3]
    brute = [timed(partial(every_triple, nodes, search, question, head, relation, tail)) for question in asked]
    record("byokg", [seconds for seconds, _ in ours])
    record("numpy_every_triple", [seconds for seconds, _ in brute])
    same = [
        bool((best.edges.edge == numbers).all() and (best.scores == scores).all())
        for (_, best), (_, (numbers, scores)) in zip(ours, brute, strict=False)
    ]
    found.append(Row(f"{label}_same_answers", sum(same) / len(same)))
    if size.peers:
        record("faiss_vector_a_triple", faiss_seconds(names, questions, head, relation, tail))
    return found


def every_triple(
    nodes: Similarity, search: TripleSearch, question: Vectors, head: Integers, relation: Integers, tail: Integers
) -> tuple[Integers, Integers]:
    """Add up three similarities for each of E triples; return number and score of the K best, equal ones by number."""
    similar = nodes.of(question, np.arange(nodes.owners))
    scores = similar[head] + search.relations(question)[relation] + similar[tail]
    best = np.flatnonzero(scores >= np.partition(scores, -K)[-K])
    best = best[np.lexsort((best, -scores[best]))][:K]
    return best, scores[best]


def faiss_seconds(
    names: DenseNames, questions: Vectors, head: Integers, relation: Integers, tail: Integers
) -> list[Seconds]:
    """Time FAISS over the sums of vectors, of which the last bits are of no matter here."""
    vectors = names.vectors.stored
    index = faiss.IndexScalarQuantizer(vectors.shape[1], faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    relations = RandomVectors(vectors.shape[1], seed=4).encode([""] * RELATIONS)
    for start in range(0, len(head), PART):
        part = slice(start, start + PART)
        index.add(vectors[head[part]].astype(np.float32) + relations[relation[part]] + vectors[tail[part]])
    return [timed(partial(index.search, question[None], K))[0] for question in questions]


def timed(action: Callable[[], Result]) -> tuple[Seconds, Result]:
    """Return the seconds a call took, and its result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = action()
    return Seconds(time.perf_counter() - wall, time.process_time() - cpu), result


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--large", action="store_true", help="also 7 and 35 million triples")
    options = parser.parse_args()
    found: list[Row] = []
    for size in [*SMALL, *(LARGE if options.large else [])]:
        found += rows(size)
    show(found, f"The {K} best triples for a question", options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
