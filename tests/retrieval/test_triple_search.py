"""Tests of `byokg.retrieval.text`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.name_indexes import dense_names
from byokg.graph.store import Direction, EdgeBatch, NodeArray, RelationArray
from byokg.index.dense import UNIT, DenseNames, Similarity
from byokg.index.embedders import Embedder, Vectors, unit_rows
from byokg.index.vectors import VectorIndex
from byokg.retrieval.text import SCAN_UP_TO, TripleSearch
from byokg.text.names import relation_text
from tests.index.word_axes import WordAxes

# Lima -capital_of-> Peru; Peru -borders-> Chile; Chile -borders-> Peru; m.0ab -mayor_of-> Lima; two edges alike:
# Cusco -borders-> Puno, Puno -borders-> Cusco.
GRAPH = ColumnarGraph.from_triples(
    [
        ("Lima", "capital_of", "Peru"),
        ("Peru", "borders", "Chile"),
        ("Chile", "borders", "Peru"),
        ("m.0ab", "mayor_of", "Lima"),
        ("Cusco", "borders", "Puno"),
        ("Puno", "borders", "Cusco"),
    ]
)
WORDS = WordAxes("lima peru chile cusco puno capital mayor borders of")


def search_of(graph: ColumnarGraph, embedder: Embedder) -> TripleSearch:
    return TripleSearch(graph, embedder, Similarity(dense_names(graph, embedder), graph.node_count))


def found(question: str, k: int) -> list[tuple[str, str, str, float]]:
    best = search_of(GRAPH, WORDS).best(WORDS.encode([question])[0], k)
    ends = zip(GRAPH.ids(best.edges.head), best.edges.relation, GRAPH.ids(best.edges.tail), best.scores, strict=True)
    return [(head, GRAPH.relations[label], tail, round(score / UNIT, 2)) for head, label, tail, score in ends]


def test_a_triple_scores_the_sum_of_its_parts_cosines() -> None:
    # To "capital Peru" (two words): Peru 1/√2 = 0.71, capital of 1/2; nothing else shares a word with it.
    assert found("capital Peru", 1) == [("Lima", "capital_of", "Peru", 1.21)]


def test_a_node_without_a_name_scores_nothing() -> None:
    # mayor of 2/2 = 1, Lima 0: what remains is the relation.
    assert found("mayor of", 1) == [("m.0ab", "mayor_of", "Lima", 1.0)]


def test_equal_scores_stand_in_edge_order() -> None:
    assert found("borders", 4) == [
        ("Peru", "borders", "Chile", 1.0),
        ("Chile", "borders", "Peru", 1.0),
        ("Cusco", "borders", "Puno", 1.0),
        ("Puno", "borders", "Cusco", 1.0),
    ]


def test_a_graph_of_fewer_triples_gives_all_of_them() -> None:
    assert len(found("borders", 100)) == 6


def test_a_graph_without_edges_gives_none() -> None:
    empty = ColumnarGraph.from_triples([])
    assert len(search_of(empty, WORDS).best(WORDS.encode(["borders"])[0], 5).scores) == 0


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("location.country.capital", "country capital"),
        ("birthPlace", "birth place"),
        ("http://example.org/vocab#birthPlace", "birth place"),
        ("DIRECTED_BY", "directed by"),
    ],
)
def test_relations_are_read_as_words(label: str, text: str) -> None:
    assert relation_text(label) == text


class RandomVectors:
    """Gives every text another random vector."""

    name = "random"

    def __init__(self) -> None:
        self.random = np.random.default_rng(5)

    def encode(self, texts: Sequence[str]) -> Vectors:
        return unit_rows(self.random.standard_normal((len(texts), 8)))


class CountingGraph(ColumnarGraph):
    """Counts the edges that are asked for."""

    read = 0

    def edges(
        self, nodes: NodeArray, direction: Direction = Direction.BOTH, relations: RelationArray | None = None
    ) -> EdgeBatch:
        batch = super().edges(nodes, direction, relations)
        self.read += len(batch)
        return batch


class TestChoosingAmongNodes:
    """Of many nodes only those are looked at that may belong to a best triple."""

    NODES, EDGES = 3000, 12_000

    @pytest.fixture
    def graph(self) -> CountingGraph:
        random = np.random.default_rng(4)
        heads, tails = (random.integers(0, self.NODES, self.EDGES) for _ in range(2))
        labels = random.integers(0, 9, self.EDGES)
        triples = [(str(head), f"r{label}", str(tail)) for head, label, tail in zip(heads, labels, tails, strict=True)]
        hub = [("0", f"r{number % 9}", str(number)) for number in range(0, self.NODES, 7)]
        loops = [("7", "r1", "7"), ("7", "r2", "7")]
        graph = CountingGraph.from_triples([*triples, *hub, *loops])
        assert isinstance(graph, CountingGraph)
        return graph

    def nodes(self, graph: ColumnarGraph, embedder: Embedder, named: float) -> Similarity:
        """Give a share of the nodes names with random vectors."""
        owners = np.flatnonzero(np.random.default_rng(6).random(graph.node_count) < named)
        vectors = VectorIndex.build(embedder.encode([""] * len(owners)), "flat")
        names = pa.array([str(owner) for owner in owners], pa.large_string())
        bounds = np.arange(len(owners) + 1)
        return Similarity(DenseNames(embedder, names, bounds, owners, vectors), graph.node_count)

    @pytest.mark.parametrize("named", [1.0, 0.6, 0.01])
    @pytest.mark.parametrize("k", [1, 10, 200])
    @pytest.mark.parametrize("scan_up_to", [0, SCAN_UP_TO])
    def test_the_answer_is_that_of_looking_at_every_triple(
        self, graph: CountingGraph, named: float, k: int, scan_up_to: int
    ) -> None:
        embedder = RandomVectors()
        nodes = self.nodes(graph, embedder, named)
        search = TripleSearch(graph, embedder, nodes, scan_up_to)
        edges = graph.edges(np.arange(graph.node_count), Direction.OUT)
        for question in embedder.encode([""] * 12):
            similar = nodes.of(question, np.arange(nodes.owners)).astype(np.int64)
            scores = similar[edges.head] + similar[edges.tail] + search.relations(question)[edges.relation]
            order = np.lexsort((edges.edge, -scores))[:k]
            best = search.best(question, k)
            assert best.edges.edge.tolist() == edges.edge[order].tolist()
            assert best.scores.tolist() == scores[order].tolist()

    def test_few_edges_are_read_for_few_triples(self, graph: CountingGraph) -> None:
        embedder = RandomVectors()
        search = TripleSearch(graph, embedder, self.nodes(graph, embedder, 1.0), scan_up_to=0)
        (question,) = embedder.encode([""])
        search.best(question, 1)
        assert 0 < graph.read < graph.edge_count / 2
