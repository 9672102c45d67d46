"""Neo4j itself keeps the contracts, lets nothing be written, and gives values as it writes them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byokg.errors import ByokgError, ConfigError, QueryInvalid, QueryRefused, QueryTimeout
from byokg.files import user_cache
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.exporter import copy_graph
from byokg.graph.name_indexes import open_dense_lookup
from byokg.graph.servers.bolt import BoltServer, Neo4jStore
from byokg.graph.store import Direction, QueryLimits
from byokg.graph.traversal import triples
from byokg.graph.value_indexes import kept_values, nodes_holding, value_index
from byokg.index.embedders import Embedder, StaticEmbedder, Vectors, unit_rows
from byokg.linking.entities import EntityLinker
from byokg.linking.grounding import LiteralGrounder
from byokg.types import EntityId, Mention, Node, Triple
from tests.graph.bolt_server import load_graph
from tests.graph.contract import GraphStoreContract, Make
from tests.graph.genuine_servers import PATIENCE_S, Genuine, refused_while_silent, waits_for_a_restart
from tests.graph.guard.corpus_cypher import UNREADABLE, WRITES
from tests.graph.query_contract import CypherContract, CypherQueries, MakeQueryable
from tests.graph.served_contract import Hold, Holding, Served, ServedContract

neo4j = pytest.importorskip("neo4j", reason="needs neo4j: pip install 'byokg[neo4j]'")


class Database:
    """The one database of a server, emptied for each test."""

    def __init__(self, genuine: Genuine) -> None:
        self.genuine, self.uri = genuine, genuine.address
        self.driver = neo4j.GraphDatabase.driver(self.uri)
        self.opened: list[Neo4jStore] = []

    def query(self, text: str, /, **parameters: Any) -> list[Any]:
        return list(self.driver.execute_query(text, parameters).records)

    def open(self, **settings: Any) -> Neo4jStore:
        self.opened.append(Neo4jStore(self.uri, **settings))
        return self.opened[-1]

    def load(self, nodes: Sequence[Node], edges: Sequence[Triple], name_always: bool) -> Neo4jStore:
        self.query("MATCH (n) DETACH DELETE n")
        load_graph(self.driver.execute_query, nodes, edges, name_always)
        return self.open(id_property="id")


@pytest.fixture(scope="module")
def server(neo4j_server: Genuine) -> Iterator[Database]:
    database = Database(neo4j_server)
    yield database
    database.driver.close()


@pytest.fixture
def database(server: Database) -> Iterator[Database]:
    server.query("MATCH (n) DETACH DELETE n")
    yield server
    while server.opened:
        server.opened.pop().close()


ENDLESS = "UNWIND range(1, 1000000000) AS i MATCH (a), (b), (c) RETURN count(*) AS n"


class Queries(CypherQueries):
    """The questions of the contract; one that would run for years holds nothing, or memory may run out before time."""

    endless = ENDLESS


class TestContract(GraphStoreContract, CypherContract):
    holds_undirected = False
    queries = Queries()

    @pytest.fixture
    def make(self, database: Database) -> Make:
        return lambda nodes, edges: database.load(nodes, edges, False)

    @pytest.fixture
    def make_queryable(self, database: Database) -> MakeQueryable:
        return lambda nodes, edges: database.load(nodes, edges, True)


class TestServed(ServedContract):
    @pytest.fixture(scope="class")
    @classmethod
    def hold(cls, server: Database) -> Hold:
        def hold(name: str, holding: Holding) -> Served:
            server.query("MATCH (n) DETACH DELETE n")
            load_graph(server.driver.execute_query, *holding.records, True)
            return Served(name, holding.graph, server.uri, {"id_property": "id"}, lambda: _content(server))

        return hold


MOMENTS = [
    "date('-0044-03-15')",
    "date('+12024-03-15')",
    "date('2024-03-15')",
    "localdatetime('-0500-07-01T12:00')",
    "datetime('2024-07-01T00:00Z')",
    "datetime('2024-07-01T12:00:01.5+02:00')",
    "datetime('2024-07-01T12:00[Europe/Berlin]')",
    "datetime('2050-07-01T12:00[Europe/Berlin]')",
    "datetime('1880-07-01T12:00[Europe/Berlin]')",
    "datetime('-0100-01-01T00:00[Europe/Berlin]')",
    "datetime('+12000-07-01T00:00[Europe/Berlin]')",
    "datetime('+12000-07-01T00:00Z')",
    "time('12:31')",
    "localtime('12:31:14.5')",
    "duration('P1Y2M-3DT-4H0.5S')",
]


def test_moments_of_any_year_and_zone_are_written_as_neo4j_writes_them(database: Database) -> None:
    store = database.open()
    for moment in MOMENTS:
        ((value, said, inside),) = store.run(f"WITH {moment} AS m RETURN m, toString(m), [m]").rows
        assert value == said and inside == (said,), moment
    database.query("CREATE (:Event {name: 'Ides', day: date('-0044-03-15')})")
    (found,) = store.nodes(list(store.entities()))
    assert dict(found.properties) == {"day": "-0044-03-15"}


def test_all_labels_of_a_node_are_kept(database: Database) -> None:
    database.query("CREATE (:Person:Actor {name: 'Weaver'}), (:Person {name: 'Scott'})")
    store = database.open()
    weaver, scott = sorted(store.nodes(list(store.entities())), key=lambda node: node.name, reverse=True)
    assert (weaver.types, dict(weaver.properties)) == (("Actor", "Person"), {})
    assert (scott.types, dict(scott.properties)) == (("Person",), {})
    assert store.schema().node_types == {"Person": 2, "Actor": 1}


def test_a_copy_in_files_has_what_the_server_has(database: Database) -> None:
    database.query("UNWIND range(1, 300) AS i CREATE (:A {id: i, name: 'n' + i})-[:r {since: i}]->(:B {id: -i})")
    store = database.open(id_property="id")
    graph = copy_graph(store)
    assert (graph.node_count, graph.edge_count) == (600, 300)
    ids = list(graph.entities())
    assert graph.nodes(ids) == store.nodes(ids)
    assert graph.schema().node_types == store.schema().node_types


def test_misspelt_names_are_found_by_a_full_text_index_where_there_is_one(database: Database) -> None:
    database.query("CREATE (:Person {name: 'Justin Bieber'}), (:Person {name: 'Jerry Leiber'})")
    database.query("CREATE FULLTEXT INDEX people IF NOT EXISTS FOR (n:Person) ON EACH [n.name]")
    database.query("CALL db.awaitIndexes(60)")
    try:
        linker = EntityLinker(database.open())
        assert linker.candidates(Mention("Justin Beiber"))[0].name == "Justin Bieber"
        assert linker.candidates(Mention("Jerry Leiber"))[0].method == "exact"
    finally:
        database.query("DROP INDEX people")


NAMED = ["New York City", "Boston", "Los Angeles", "Heat", "The Godfather"]
STATIC = StaticEmbedder()


@pytest.fixture
def with_vectors(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """Cities and films with the vectors of their names, as the shipped embedder makes them, in the index `meaning`."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rows = [{"name": name, "vector": STATIC.encode([name])[0].tolist()} for name in NAMED]
    database.query("UNWIND $rows AS row CREATE (:Thing {name: row.name, id: row.name, meant: row.vector})", rows=rows)
    database.query("CREATE (:Thing {id: 'x1'}), (:Other {name: 'Metropolis'})")  # without a vector
    size = STATIC.encode(["a"]).shape[1]
    database.query(
        "CREATE VECTOR INDEX meaning FOR (n:Thing) ON (n.meant) "
        f"OPTIONS {{indexConfig: {{`vector.dimensions`: {size}, `vector.similarity_function`: 'cosine'}}}}"
    )
    database.query("CALL db.awaitIndexes(60)")
    yield database
    database.query("DROP INDEX meaning")


def test_names_are_found_by_meaning_in_a_vector_index_and_none_are_read(with_vectors: Database) -> None:
    texts = ["nyc new york", "godfather movie", "LA los angeles", "!?"]
    store = with_vectors.open(id_property="id", vector_index="meaning")
    in_memory = ColumnarGraph.from_records([Node(EntityId(name), name) for name in NAMED], [])
    found = open_dense_lookup(store, STATIC).search(texts, 2)
    expected = open_dense_lookup(in_memory, STATIC).search(texts, 2)
    assert [[match.name for match in one] for one in found] == [[match.name for match in one] for one in expected]
    for ours, theirs in zip(found, expected, strict=True):
        assert [match.score for match in ours] == pytest.approx([match.score for match in theirs], abs=1e-3)
        assert store.ids(np.array([match.owner for match in ours], np.int64)) == [match.name for match in ours]
    (best, *_) = EntityLinker(store, "dense", embedder=STATIC).candidates(Mention("the Godfather film"))
    assert (best.id, best.method) == ("The Godfather", "dense")
    assert not (user_cache() / "names").exists()


def test_vectors_are_no_properties_of_nodes(with_vectors: Database) -> None:
    plain, store = with_vectors.open(id_property="id"), with_vectors.open(id_property="id", vector_index="meaning")
    heat = [EntityId("Heat")]
    assert ("meant" in plain.nodes(heat)[0].properties, dict(store.nodes(heat)[0].properties)) == (True, {})
    assert [dict(node.properties) for page in store.all_nodes() for node in page] == [{}] * (len(NAMED) + 2)
    named = [node.name for page in store.all_nodes() for node in page if node.name in NAMED]
    assert sorted(named) == sorted(NAMED)  # Neo4j gives numbers of deleted nodes to new ones, in any order
    assert "meant" not in store.schema().node_properties.get("Thing", ())


class Other:
    """Makes vectors that are no one's, of a chosen length."""

    name = "other"

    def __init__(self, size: int) -> None:
        self.size = size

    def encode(self, texts: Sequence[str]) -> Vectors:
        return unit_rows([[(-1) ** (at * len(text)) for at in range(self.size)] for text in texts])


@pytest.mark.parametrize(
    ("index", "embedder", "told"),
    [
        ("meaning", Other(7), "holds vectors of 128 numbers, those of other have 7; choose the embedder"),
        ("meaning", Other(128), "holds other vectors than those of names by other: for .*choose the embedder"),
        ("meanings", STATIC, "no vector index 'meanings' over nodes; there is: meaning"),
    ],
)
def test_a_vector_index_is_used_with_the_embedder_that_made_its_vectors_only(
    with_vectors: Database, index: str, embedder: Embedder, told: str
) -> None:
    linker = EntityLinker(with_vectors.open(vector_index=index), "dense", embedder=embedder)
    with pytest.raises(ConfigError, match=told):
        linker.candidates(Mention("the Godfather film"))


def test_an_index_without_vectors_of_names_is_refused(database: Database) -> None:
    database.query("CREATE VECTOR INDEX empty FOR (n:Thing) ON (n.nothing) OPTIONS {indexConfig: {}}")
    database.query("CALL db.awaitIndexes(60)")
    try:
        with pytest.raises(ConfigError, match="holds no vector of a node with a name"):
            open_dense_lookup(database.open(vector_index="empty"), STATIC)
    finally:
        database.query("DROP INDEX empty")


def test_notifications_do_not_appear_among_answers(database: Database, capfd: pytest.CaptureFixture[str]) -> None:
    assert database.open().run("MATCH (n:NeverHeardOf) RETURN n.nothing").rows == ()
    assert capfd.readouterr().err == ""


def test_a_mistake_is_pointed_at_in_the_query_as_it_was_written(database: Database) -> None:
    with pytest.raises(QueryInvalid, match=r"column 18 \(offset: 17\)"):
        database.open().run("MATCH (n) RETURN m")


def test_planner_and_access_mode_each_refuse_a_write_that_the_guard_has_not_seen(database: Database) -> None:
    server = BoltServer(database.uri)
    with closing(server):
        with pytest.raises(QueryRefused, match="planner"):
            server.check_plan("CREATE (n:Thing)", {}, 10)
        server.check_plan("MATCH (n) RETURN n", {}, 10)
        with pytest.raises(ByokgError):
            server.ask("CREATE (n:Thing)", {}, 10)
    assert _content(database) == []


def test_nothing_of_what_the_guard_refuses_changes_a_database(database: Database) -> None:
    database.query("CREATE (:Person {name: 'a'})-[:r]->(:Person {name: 'b'})")
    store = database.open()
    before = _content(database)
    let_through = 0
    for text in (*WRITES, *UNREADABLE):
        try:
            store.run(text)
            let_through += 1
        except ByokgError:
            continue
    assert (let_through, _content(database)) == (0, before)


def _content(database: Database) -> list[Any]:
    nodes = database.query("MATCH (n) RETURN labels(n) AS labels, properties(n) AS held ORDER BY n.name")
    edges = database.query("MATCH (a)-[r]->(b) RETURN a.name, type(r), properties(r), b.name")
    return [record.data() for record in (*nodes, *edges)]


def test_a_server_that_is_started_again_is_waited_for(database: Database) -> None:
    database.query("CREATE (:A {id: 'a'})-[:TO]->(:A {id: 'b'})")
    store = database.open(id_property="id", timeout_s=PATIENCE_S)
    number = store.numbers([EntityId("a")])
    found = waits_for_a_restart(database.genuine, lambda: store.edges(number, Direction.OUT))
    assert [each.tail for each in triples(store, found)] == ["b"]


def test_a_server_that_says_nothing_is_given_up_within_the_limit(database: Database) -> None:
    database.query("CREATE (:A {id: 'a'})-[:TO]->(:A {id: 'b'})")
    store = database.open(id_property="id", timeout_s=2.0)
    text, limits = "MATCH (n:A)-[:TO]->(m) RETURN m.id", QueryLimits(timeout_s=2)
    number = store.numbers([EntityId("a")])
    for ask in (lambda: store.run(text, limits=limits), lambda: store.edges(number), lambda: store.schema()):
        assert refused_while_silent(database.genuine, ask) < PATIENCE_S / 5
    assert store.run(text, limits=QueryLimits(timeout_s=PATIENCE_S)).rows == (("b",),)


def test_a_query_that_runs_away_is_seen_to_end_on_the_server(database: Database) -> None:
    database.query("UNWIND range(1, 12) AS i CREATE (:A {id: i})")
    with pytest.raises(QueryTimeout):
        database.open().run(ENDLESS, limits=QueryLimits(timeout_s=1))
    deadline = time.monotonic() + 20
    while _running(database) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _running(database) == []


def _running(database: Database) -> list[str]:
    rows = database.query("SHOW TRANSACTIONS YIELD currentQuery RETURN currentQuery AS text")
    return [row["text"] for row in rows if "SHOW TRANSACTIONS" not in row["text"]]


def test_values_are_read_by_queries(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    database.query(
        "UNWIND ['Powell', 'Powell', 'Moore'] AS s CREATE (:Officer {surname: s, joined: date('2017-08-29')})"
    )
    database.query("CREATE ({surname: 'Powell'})")
    store = database.open()
    index = value_index(store)
    assert [(one.type, one.count) for one in index.find("Powel")] == [("Officer", 2), ("", 1)]
    assert index.find("29 August 2017")[0].value == "2017-08-29"
    assert len(nodes_holding(store, "Officer", "surname", "Powell")) == 2
    assert len(nodes_holding(store, "", "surname", "Powell")) == 1


def test_values_of_edges_are_read_by_queries(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    database.query(
        "CREATE (f:Film {name: 'Matrix'}) WITH f UNWIND [['Ada', 'Neo'], ['Eve', 'Trinity']] AS one "
        "CREATE (:Actor {name: one[0]})-[:`ACTED ``IN` {role: one[1], day: date('1999-03-31')}]->(f)"
    )
    store = database.open()
    index = value_index(store, of_edges=True)
    assert [(str(one), one.count) for one in index.find("Trinitty")] == [("role = Trinity (on ACTED `IN edges)", 1)]
    assert [(one.value, one.count) for one in index.find("31 March 1999")] == [("1999-03-31", 2)]
    assert kept_values(store, of_edges=True) is not None
    query = "MATCH (a)-[r:`ACTED ``IN` {role: 'Trinitty'}]->() RETURN a.name"
    grounder = LiteralGrounder(store)
    ((text, _),) = grounder.substituted("cypher", query, grounder.ground("cypher", query))
    assert store.run(query).rows == () and store.run(text).rows == (("Eve",),)
