"""Neo4j itself keeps the contracts, lets nothing be written, and gives values as it writes them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from byokg.errors import ByokgError, QueryInvalid, QueryRefused, QueryTimeout
from byokg.graph.exporter import copy_graph
from byokg.graph.servers.bolt import BoltServer, Neo4jStore
from byokg.graph.store import Direction, QueryLimits
from byokg.graph.traversal import triples
from byokg.linking.entities import EntityLinker
from byokg.types import EntityId, Mention, Node, Triple
from tests.graph.bolt_server import load_graph
from tests.graph.contract import GraphStoreContract, Make
from tests.graph.genuine_servers import PATIENCE_S, Genuine, started, waits_for_a_restart
from tests.graph.guard.corpus_cypher import UNREADABLE, WRITES
from tests.graph.query_contract import CypherContract, MakeQueryable
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
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with started("neo4j", tmp_path_factory.mktemp("neo4j")) as genuine:
        database = Database(genuine)
        yield database
        database.driver.close()


@pytest.fixture
def database(server: Database) -> Iterator[Database]:
    server.query("MATCH (n) DETACH DELETE n")
    yield server
    while server.opened:
        server.opened.pop().close()


class TestContract(GraphStoreContract, CypherContract):
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


ENDLESS = "UNWIND range(1, 1000000000) AS i MATCH (a), (b), (c) RETURN count(*) AS n"
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
    assert (weaver.type, dict(weaver.properties)) == ("Actor", {"labels": '["Actor", "Person"]'})
    assert (scott.type, dict(scott.properties)) == ("Person", {})
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
