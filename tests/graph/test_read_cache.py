"""Schemas are kept between runs, and read again when the graph has changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.errors import EntityNotFound
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.read_cache import UNCHECKED_S, CachedSchema, EdgeCache, SchemaCache
from byokg.graph.servers.sparql import SparqlEndpoint
from byokg.graph.store import (
    Direction,
    EdgeBatch,
    NodeArray,
    NodeCache,
    NumberSpace,
    PropertySchema,
    RelationArray,
    RelationSchema,
    Schema,
)
from byokg.types import EntityId, Node
from tests.graph.bolt_server import PASSWORD, BoltDatabases

SCHEMA = Schema(
    {"Film": 2, "": 1},
    (RelationSchema("by", 2, ("Film",), ("",), ("role",), (PropertySchema("role", "string", ("Ripley", "é\ud800")),)),),
    {"Film": ("year",)},
    {"Film": (PropertySchema("year", "int", (1979, 2.5, True)),)},
    "3 nodes",
)


def test_what_was_kept_is_found_for_the_same_fingerprint_only(tmp_path: Path) -> None:
    cache = SchemaCache(tmp_path / "deep" / "folder")
    assert cache.find("graph", "1") is None
    cache.keep("graph", "films", "1", CachedSchema(SCHEMA, {"prefixes": {"ex": "http://ex/"}}))
    assert cache.find("graph", "1") == CachedSchema(SCHEMA, {"prefixes": {"ex": "http://ex/"}})
    assert cache.find("graph", "2") is None
    assert cache.find("other", "1") is None
    assert SchemaCache(cache.folder, refresh=True).find("graph", "1") is None
    assert [path.stat().st_mode & 0o077 for path in cache.folder.iterdir()] == [0]


def test_without_a_fingerprint_it_counts_for_a_day(tmp_path: Path) -> None:
    now = [1e9]
    cache = SchemaCache(tmp_path, clock=lambda: now[0])
    cache.keep("graph", "films", None, CachedSchema(SCHEMA))
    now[0] += UNCHECKED_S
    assert cache.find("graph", None) == CachedSchema(SCHEMA)
    now[0] += 1
    assert cache.find("graph", None) is None
    now[0] -= 2 * UNCHECKED_S  # a clock that was put back
    assert cache.find("graph", None) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b"{",
        b'{"format": "byokg-schema", "version": 1, "fingerprint": "1"}',
        b'{"format": "byokg-schema", "version": 0, "fingerprint": "1", "read": 0, "extra": {}, "schema": {}}',
        b'{"format": "byokg-schema", "version": 1, "fingerprint": "1", "read": 0, "extra": {}, "schema": {"a": 5}}',
    ],
)
def test_a_torn_or_foreign_file_is_ignored_and_replaced(tmp_path: Path, content: bytes) -> None:
    cache = SchemaCache(tmp_path)
    cache.keep("graph", "films", "1", CachedSchema(SCHEMA))
    (file,) = tmp_path.iterdir()
    file.write_bytes(content)
    assert cache.find("graph", "1") is None
    cache.keep("graph", "films", "1", CachedSchema(SCHEMA))
    assert cache.find("graph", "1") == CachedSchema(SCHEMA)


def test_writers_at_the_same_time_leave_one_whole_file(tmp_path: Path) -> None:
    cache = SchemaCache(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: cache.keep("graph", "films", str(number), CachedSchema(SCHEMA)), range(40)))
    (file,) = tmp_path.iterdir()
    assert cache.find("graph", json.loads(file.read_bytes())["fingerprint"]) == CachedSchema(SCHEMA)


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = SchemaCache(tmp_path / "file" / "folder")
    cache.keep("graph", "films", "1", CachedSchema(SCHEMA))
    assert cache.find("graph", "1") is None


# In the stores


def test_a_cypher_store_reads_its_schema_once_until_a_count_changes(bolt: BoltDatabases, tmp_path: Path) -> None:
    from byokg.graph.servers.bolt import Neo4jStore

    database = bolt.new_database()
    bolt.query(database, "CREATE (:Film {year: 1979})-[:by]->(:Person)")
    asked: list[str] = []

    def opened(refresh: bool = False) -> Neo4jStore:
        store = Neo4jStore(bolt.uri, database, "root", PASSWORD)
        store.keep_schema(SchemaCache(tmp_path, refresh))
        ask = store._server.ask
        store._server.ask = lambda text, *rest: asked.append(text) or ask(text, *rest)  # type: ignore[method-assign,func-returns-value]
        return store

    with opened() as store:
        first = store.schema()
    full = len(asked)
    asked.clear()
    with opened() as store:
        assert store.schema() == first
        assert (store.node_count, store.edge_count) == (2, 1)
        assert list(store.relations) == ["by"]
    assert 0 < len(asked) < full
    with opened(refresh=True) as store:
        assert store.schema() == first
    bolt.query(database, "CREATE (:Film)-[:by]->(:Person)")
    with opened() as store:
        assert store.schema().node_types == {"Film": 2, "Person": 2}
    assert PASSWORD not in "".join(path.read_text("utf-8") for path in tmp_path.iterdir())


def test_an_endpoint_takes_over_relations_and_prefixes_with_its_schema(tmp_path: Path) -> None:
    pyoxigraph = pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'byokg[sparql]'")
    from tests.graph.sparql_server import serving

    triples = pyoxigraph.Store()
    turtle = "@prefix v: <http://ex.org/vocabulary/> . <http://ex.org/a> v:knows <http://ex.org/b> ; v:age 5 ."
    triples.load(turtle, pyoxigraph.RdfFormat.TURTLE)
    with serving(triples) as endpoint:
        requests, schemas, relations = [], [], []
        for _ in range(2):
            before = len(endpoint.requests)
            with SparqlEndpoint(f"{endpoint.url}?apikey=s3cret") as store:
                store.keep_schema(SchemaCache(tmp_path))
                schemas.append(store.schema())
                relations.append(
                    (list(store.relations), list(store.relation_iris), store.prefixes.expand("vocabulary:age"))
                )
            requests.append(len(endpoint.requests) - before)
        assert schemas[0] == schemas[1] and relations[0] == relations[1]
        assert relations[0][:2] == (["vocabulary:knows"], ["http://ex.org/vocabulary/knows"])
        assert requests[1] == 1 < requests[0]  # the triples are counted, and that is all
        (file,) = tmp_path.iterdir()
        assert "s3cret" not in file.read_text("utf-8")
        triples.load(
            "<http://ex.org/b> <http://ex.org/vocabulary/likes> <http://ex.org/a> .", pyoxigraph.RdfFormat.TURTLE
        )
        with SparqlEndpoint(f"{endpoint.url}?apikey=s3cret") as store:
            store.keep_schema(SchemaCache(tmp_path))
            assert len(store.schema().relations) == 2


def test_an_endpoint_that_met_relations_before_reads_its_schema_itself(tmp_path: Path) -> None:
    pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'byokg[sparql]'")
    import pyoxigraph

    from byokg.graph.rdf.files import graph_quads
    from tests.graph.sparql_server import serving

    triples = pyoxigraph.Store()
    triples.extend(graph_quads(ColumnarGraph.from_triples([("a", "z", "b"), ("a", "r", "b")])))
    with serving(triples) as endpoint:
        for _ in range(2):
            with SparqlEndpoint(endpoint.url) as store:
                store.keep_schema(SchemaCache(tmp_path))
                if any(tmp_path.iterdir()):
                    store.edges(store.numbers(["a"]))  # type: ignore[list-item]
                names = [relation.name for relation in store.schema().relations]
                assert sorted(names) == ["r", "z"] and names == list(store.relations)


NODES = "abcde"
edges = st.lists(st.tuples(st.sampled_from(NODES), st.sampled_from("rst"), st.sampled_from(NODES)), max_size=15)
requests = st.lists(
    st.tuples(
        st.lists(st.integers(0, 4), max_size=6),
        st.sampled_from(Direction),
        st.none() | st.lists(st.integers(0, 2), max_size=3),
    ),
    max_size=6,
)


def graph(triples: list[tuple[str, str, str]]) -> ColumnarGraph:
    """Return a graph that has every node and relation, whatever the triples."""
    return ColumnarGraph.from_triples(
        [*((node, "r", node) for node in NODES), ("a", "s", "a"), ("a", "t", "a"), *triples]
    )


def columns(batch: EdgeBatch) -> list[list[int]]:
    return [each.tolist() for each in (batch.head, batch.relation, batch.tail, batch.edge, batch.origin, batch.inverse)]


@given(edges, requests, st.sampled_from([0, 20, 1000]))
def test_every_answer_is_the_one_the_store_gives(
    triples: list[tuple[str, str, str]], asked: list[tuple[list[int], Direction, list[int] | None]], max_edges: int
) -> None:
    store = graph(triples)
    memory = EdgeCache(NumberSpace("test"), max_edges)
    for nodes, direction, chosen in asked:
        numbers, relations = np.array(nodes, np.int64), None if chosen is None else np.array(chosen, np.int64)
        got = memory.edges(numbers, direction, relations, store.edges)
        assert columns(got) == columns(store.edges(numbers, direction, relations))


class Counting:
    """Counts which nodes are asked for."""

    def __init__(self, store: ColumnarGraph) -> None:
        self.store = store
        self.asked: list[list[int]] = []

    def __call__(self, nodes: NodeArray, direction: Direction, relations: RelationArray | None) -> EdgeBatch:
        self.asked.append(nodes.tolist())
        return self.store.edges(nodes, direction, relations)


def test_only_nodes_whose_edges_are_not_held_are_asked_for() -> None:
    ask, memory = Counting(graph([("a", "s", "b")])), EdgeCache(NumberSpace("test"))
    memory.edges(np.array([0, 1]), Direction.BOTH, None, ask)
    memory.edges(np.array([1, 0]), Direction.OUT, np.array([1]), ask)
    memory.edges(np.array([0, 2]), Direction.IN, np.array([1]), ask)
    memory.edges(np.array([2]), Direction.IN, np.array([1]), ask)
    memory.edges(np.array([2]), Direction.IN, np.array([0]), ask)
    assert ask.asked == [[0, 1], [2], [2]]
    memory.forget()
    memory.edges(np.array([0]), Direction.OUT, None, ask)
    assert ask.asked[3:] == [[0]]


def test_what_was_not_asked_for_longest_is_forgotten_first() -> None:
    ask, memory = Counting(graph([])), EdgeCache(NumberSpace("test"), max_edges=15)  # node 1 counts 1 edge, and 4
    for node in (1, 2, 3, 1, 4, 1, 2):
        memory.edges(np.array([node]), Direction.OUT, None, ask)
    assert ask.asked == [[1], [2], [3], [4], [2]]


class Reader:
    """Gives every node its id in capitals as name, and notes what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, ids: Sequence[EntityId]) -> list[Node]:
        self.asked.append(list(ids))
        return [Node(id, id.upper()) for id in ids]


def ids(text: str) -> list[EntityId]:
    return [EntityId(letter) for letter in text]


def test_only_what_is_not_held_is_read_and_each_once() -> None:
    reader = Reader()
    memory = NodeCache(reader)
    assert [node.name for node in memory.nodes(ids("aba"))] == ["A", "B", "A"]
    assert [node.name for node in memory.nodes(ids("cbac"))] == ["C", "B", "A", "C"]
    assert reader.asked == [["a", "b"], ["c"]]


@given(st.lists(st.text("abcdef", max_size=8), max_size=8), st.integers(0, 7))
def test_every_answer_is_what_was_asked_for_however_little_is_held(requests: list[str], most: int) -> None:
    memory = NodeCache(Reader(), most)
    for asked in requests:
        assert [(node.id, node.name) for node in memory.nodes(ids(asked))] == [(id, id.upper()) for id in asked]
        assert len(memory) <= most


def test_an_id_that_is_nowhere_is_refused_every_time() -> None:
    graph = ColumnarGraph.from_triples([("a", "r", "b")])
    for _ in range(2):
        with pytest.raises(EntityNotFound):
            graph.nodes(ids("ax"))
    assert [node.id for node in graph.nodes(ids("ab"))] == ["a", "b"]
