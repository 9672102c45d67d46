"""Neo4j's store, against a real Bolt server; `test_genuine_neo4j` runs Neo4j itself."""

from __future__ import annotations

import logging
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from byokg.errors import (
    ConfigError,
    EntityNotFound,
    GraphError,
    MissingExtra,
    QueryFailed,
    QueryInvalid,
    QueryRefused,
    QueryTimeout,
    QueryTooLarge,
    StoreUnavailable,
)
from byokg.graph.paths import follow
from byokg.graph.servers import bolt as bolt_store
from byokg.graph.servers.bolt import (
    BoltServer,
    Neo4jStore,
    listed_properties,
    planner_is_trusted,
    planner_objection,
    pretends,
)
from byokg.graph.servers.bolt_values import meaning
from byokg.graph.servers.cypher_store import CypherStore
from byokg.graph.store import Direction, QueryLimits
from byokg.types import EdgeCell, EntityId, Node, NodeCell, Triple
from tests.graph.bolt_server import PASSWORD, BoltDatabases, BreakableWire
from tests.graph.contract import STRANGE_RELATIONS, GraphStoreContract, Make, edge, ids, node, spelled
from tests.graph.query_contract import CypherContract, MakeQueryable
from tests.graph.served_contract import Hold, Holding, Served, ServedContract

neo4j = pytest.importorskip("neo4j", reason="needs neo4j: pip install 'byokg[neo4j]'")


class Stores:
    """Opens stores, and closes them together."""

    def __init__(self, bolt: BoltDatabases) -> None:
        self.bolt = bolt
        self.opened: list[Neo4jStore] = []

    def open(self, database: str, id_property: str | None = "id", name_property: str | None = None) -> Neo4jStore:
        store = Neo4jStore(self.bolt.uri, database, "root", PASSWORD, id_property, name_property)
        self.opened.append(store)
        return store

    def load(self, nodes: Sequence[Node], edges: Sequence[Triple], name_always: bool = False) -> Neo4jStore:
        database = self.bolt.new_database()
        self.bolt.load(database, nodes, edges, name_always)
        return self.open(database)

    def create(self, text: str, id_property: str | None = None) -> Neo4jStore:
        database = self.bolt.new_database()
        self.bolt.query(database, text)
        return self.open(database, id_property)


@pytest.fixture
def stores(bolt: BoltDatabases) -> Iterator[Stores]:
    stores = Stores(bolt)
    yield stores
    for store in stores.opened:
        store.close()


class TestContract(GraphStoreContract, CypherContract):
    holds_undirected = False

    @pytest.fixture
    def make(self, stores: Stores) -> Make:
        return stores.load

    @pytest.fixture
    def make_queryable(self, stores: Stores) -> MakeQueryable:
        return lambda nodes, edges: stores.load(nodes, edges, name_always=True)

    # ArcadeDB takes no comma in a label, and no relation that is called like a type; Neo4j does.
    test_a_relation_may_be_called_like_a_type = None  # type: ignore[assignment]
    test_any_character_may_stand_in_a_relation_or_type = None  # type: ignore[assignment]

    def test_any_character_but_a_comma_may_stand_in_a_relation_or_type(self, make_queryable: MakeQueryable) -> None:
        labels = [*STRANGE_RELATIONS, "a/b", "semi;colon", "per%cent", "back\\slash", "{} ${x} {{"]
        nodes = [node(f"n{number}", f"type {label}") for number, label in enumerate(labels)]
        store = make_queryable(nodes, [edge("n0", label, f"n{number}") for number, label in enumerate(labels)])
        for number, label in enumerate(labels):
            assert store.run(self.queries.neighbours("n0", label)).rows == (("n0", f"n{number}"),)
            ((cell,),) = store.run(self.queries.nodes(f"type {label}")).rows
            assert isinstance(cell, NodeCell) and (cell.id, cell.type) == (f"n{number}", f"type {label}")


class TestServed(ServedContract):
    @pytest.fixture(scope="class")
    @classmethod
    def hold(cls, bolt_process: BoltDatabases) -> Iterator[Hold]:
        def hold(name: str, holding: Holding) -> Served:
            database = bolt_process.new_database()
            bolt_process.load(database, *holding.records, name_always=True)
            return Served(
                name,
                holding.graph,
                f"{bolt_process.uri}/{database}",
                {"id_property": "id"},
                lambda: [bolt_process.query(database, f"MATCH {what} RETURN {value}") for what, value in CONTENT],
            )

        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NEO4J_USERNAME", "root")
            patch.setenv("NEO4J_PASSWORD", PASSWORD)
            yield hold


CONTENT = [("(n)", "labels(n), properties(n)"), ("(a)-[r]->(b)", "a.id, type(r), properties(r), b.id")]


def test_without_an_id_property_nodes_are_known_by_the_ids_of_the_server(stores: Stores) -> None:
    store = stores.create("CREATE (:Person {name: 'Ann'})-[:knows {since: 1999}]->(:Person {name: 'Bob'})")
    ((ann, element),) = store.run("MATCH (n {name: 'Ann'}) RETURN n, elementId(n) AS e").rows
    assert isinstance(ann, NodeCell) and ann.id == element
    (found,) = store.nodes([ann.id])
    assert (found.id, found.name, found.type, found.properties) == (element, "Ann", "Person", {})
    walks = follow(store, [ann.id], ["knows"])
    (path,) = walks.paths(walks.ends)
    assert store.nodes([path.end])[0].name == "Bob"
    assert path.triples[0].properties == {"since": 1999}
    with pytest.raises(EntityNotFound):
        store.nodes(ids("#999:999"))


def test_the_property_that_names_a_node_is_guessed_for_each_type(stores: Stores) -> None:
    store = stores.create(
        "CREATE (:Film {id: 'f', title: 'Alien', tagline: 'x'}), (:Firm {id: 'c', companyName: 'Fox'}), "
        "(:Person {id: 'p', name: 'Ann', title: 'Dr'}), (:Year {id: 'y', value: 1979}), (:Film {id: 'g', name: 'Up'})",
        "id",
    )
    assert [found.name for found in store.nodes(ids("f", "c", "p", "y", "g"))] == ["Alien", "Fox", "Ann", "y", "Up"]
    assert store.nodes(ids("p"))[0].properties == {"title": "Dr"}
    assert store.schema().node_properties["Film"] == ("name", "tagline", "title")


def test_the_property_that_names_a_node_can_be_chosen(stores: Stores) -> None:
    database = stores.bolt.new_database()
    stores.bolt.query(database, "CREATE (:Film {id: 'f', name: 'x', code: 7}), (:Film {id: 'g', name: 'y'})")
    store = stores.open(database, name_property="code")
    assert [found.name for found in store.nodes(ids("f", "g"))] == ["7", "y"]


def test_numbers_may_identify_nodes_and_nodes_without_the_property_keep_the_id_of_the_server(stores: Stores) -> None:
    store = stores.create("CREATE (:A {id: 7})-[:r]->(:A {id: 'seven'})-[:r]->(:B {name: 'bare'})", "id")
    entities = list(store.entities())
    (bare,) = set(entities) - {"7", "seven"}
    assert [found.name for found in store.nodes([EntityId("7"), bare])] == ["7", "bare"]
    batch = store.edges(store.numbers(ids("7", "seven")), Direction.OUT)
    assert [(head, tail) for _, _, head, _, tail in spelled(store, batch)] == [("7", "seven"), ("seven", bare)]
    fresh = stores.open(store.name.rsplit("/", 1)[1])
    assert fresh.ids(fresh.numbers([bare, EntityId("7")])) == [bare, "7"]


def test_an_edge_that_comes_alone_still_names_its_ends(stores: Stores) -> None:
    store = stores.load([node("a", "X"), node("b")], [edge("a", "r", "b", w=1)])
    expected = EdgeCell(EntityId("a"), "r", EntityId("b"), {"w": 1})
    assert store.run("MATCH ()-[r]->() RETURN r").rows == ((expected,),)
    assert store.run("MATCH ()-[r]->() RETURN {deep: [r]} AS x").rows == (({"deep": (expected,)},),)


def test_a_property_that_does_not_identify_is_refused_with_the_value_that_occurs_twice(stores: Stores) -> None:
    store = stores.create("CREATE (:A {id: 'x'}), (:B {id: 'x'})", "id")
    with pytest.raises(GraphError, match=r"two nodes .* 'x' in 'id'"):
        list(store.entities())
    with pytest.raises(GraphError, match="two nodes"):
        store.numbers(ids("x"))


def test_a_node_with_several_labels_shows_the_rarest_and_counts_for_each(stores: Stores) -> None:
    store = stores.create(
        "CREATE (a:Thing:Person {id: 'a'}), (b:Thing:Person {id: 'b'}), (c:Thing {id: 'c'}), (a)-[:r]->(c)", "id"
    )
    found = [node.types for node in store.nodes(ids("a", "b", "c"))]
    assert found == [("Person", "Thing"), ("Person", "Thing"), ("Thing",)]
    schema = store.schema()
    assert schema.node_types == {"Thing": 3, "Person": 2}
    assert (schema.relations[0].domain, schema.relations[0].range) == (("Person", "Thing"), ("Thing",))


def test_lists_in_properties_become_text_and_dates_iso_8601(stores: Stores) -> None:
    store = stores.create("CREATE (:A {id: 'a', tags: ['x', 'ü'], born: date('2001-02-03')})", "id")
    assert store.nodes(ids("a"))[0].properties == {"born": "2001-02-03", "tags": '["x", "ü"]'}


def test_names_of_any_kind_identify_without_being_read_as_cypher(stores: Stores) -> None:
    store = stores.create(
        "CREATE (:`\\u0041 x`:`b``c` {`my {id}` : 'a'})-[:`\\u0042``r`]->(:Z {`my {id}`: 'b'})", "my {id}"
    )
    assert set(store.entities()) == {"a", "b"}
    (relation,) = store.relations
    batch = store.edges(store.numbers(ids("a")), Direction.OUT, np.array([0]))
    assert spelled(store, batch) == [(0, False, "a", relation, "b")]
    assert len(store.sample_edges(1)) == 1


# Round trips, schema, threads


class CountedServer(BoltServer):
    """Counts what it is asked."""

    asked = 0

    def ask(self, text, parameters, timeout_s, max_rows=None):  # type: ignore[no-untyped-def]
        self.asked += 1
        return super().ask(text, parameters, timeout_s, max_rows)


def test_a_hop_costs_one_round_trip_whatever_the_fan_out_direction_and_relations(stores: Stores) -> None:
    database = stores.bolt.new_database()
    stores.bolt.query(
        database,
        "CREATE (a:N {id: 'a'}) WITH a UNWIND range(1, 300) AS i CREATE (a)-[:r]->(b:N {id: 'b' + i})-[:s]->(a)",
    )
    server = CountedServer(stores.bolt.uri, database, "root", PASSWORD)
    with CypherStore(server, "id") as store:
        a = store.numbers(ids("a"))
        r = np.array([store.relations.index("r")])
        before = server.asked
        first = store.edges(a, Direction.OUT, r)
        assert (len(first), server.asked) == (300, before + 1)
        second = store.edges(np.unique(first.other))
        assert (len(second), server.asked) == (600, before + 2)
        assert len(store.edge_properties(second.edge)) == len(store.ids(second.head)) == 600
        assert server.asked == before + 2


class NarrowServer(BoltServer):
    """Refuses to hold lists of edges, as a server does whose memory they do not fit into."""

    def ask(self, text, parameters, timeout_s, max_rows=None):  # type: ignore[no-untyped-def]
        if "collect(" in text:
            raise QueryTooLarge("no room for lists")
        return super().ask(text, parameters, timeout_s, max_rows)


@pytest.mark.parametrize("id_property", ["id", None])
def test_edges_that_are_too_many_for_a_list_come_one_by_one(stores: Stores, id_property: str | None) -> None:
    database = stores.bolt.new_database()
    stores.bolt.query(database, "CREATE (a:N {id: 'a'})-[:r {x: 1}]->(b:N {id: 'b'}), (b)-[:s]->(a), (b)-[:s]->(b)")
    answers = []
    for kind in (BoltServer, NarrowServer):
        with CypherStore(kind(stores.bolt.uri, database, "root", PASSWORD), id_property) as store:
            batch = store.edges(store.numbers(list(store.entities())))
            answers.append((spelled(store, batch), batch.edge.tolist(), store.edge_properties(batch.edge)))
    assert answers[0] == answers[1]
    assert len(answers[0][0]) == 6


def test_a_store_closed_in_the_middle_of_a_scan_says_so(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bolt_store, "_PAGE", 2)
    store = stores.create("UNWIND range(1, 5) AS i CREATE (:A {id: i})", "id")
    entities = store.entities()
    assert next(entities) == "1"
    store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        list(entities)
    assert len(list(store.entities())) == 5


def test_the_schema_is_read_once_until_refreshed(stores: Stores) -> None:
    store = stores.create("CREATE (:A {id: 'a'})-[:r]->(:A {id: 'b'})", "id")
    assert [relation.name for relation in store.schema().relations] == ["r"]
    database = store.name.rsplit("/", 1)[1]
    stores.bolt.query(database, "MATCH (a {id: 'a'}) CREATE (a)-[:earlier]->(:B {id: 'c'})")
    assert store.schema().node_types == {"A": 2}
    batch = store.edges(store.numbers(ids("a")))
    assert [row[3] for row in spelled(store, batch)] == ["r", "earlier"]
    store.refresh()
    assert store.schema().node_types == {"A": 2, "B": 1}
    assert [relation.name for relation in store.schema().relations] == list(store.relations) == ["r", "earlier"]


def test_threads_may_share_a_store(stores: Stores) -> None:
    # a ring of 40 nodes
    names = [f"n{number:02}" for number in range(40)]
    store = stores.load(
        [node(name) for name in names], [edge(name, "r", names[(at + 1) % 40]) for at, name in enumerate(names)]
    )

    def walk(name: str) -> list[EntityId]:
        walks = follow(store, ids(name), ["r", "r", "r"])
        return store.ids(walks.ends)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(walk, names)) == [[names[(at + 3) % 40]] for at in range(40)]
    assert sorted(store.entities()) == names


def test_a_sample_is_spread_over_more_edges_than_are_taken(stores: Stores) -> None:
    store = stores.create("CREATE (a:N {id: 'a'}) WITH a UNWIND range(1, 100) AS i CREATE (a)-[:r]->(:N {id: i})", "id")
    tails = sorted(int(tail) for tail in store.ids(store.sample_edges(5).tail))
    assert len(set(tails)) == 5 and tails[-1] - tails[0] > 50


# Queries


def test_a_query_without_a_place_for_limit_is_cut_all_the_same(stores: Stores) -> None:
    store = stores.create("CREATE (:A {id: 'a'})", "id")
    text = "UNWIND range(1, 50) AS x RETURN x UNION ALL UNWIND range(51, 99) AS x RETURN x"
    answer = store.run(text, limits=QueryLimits(max_rows=60))
    assert (len(answer), answer.truncated) == (60, True)
    answer = store.run(text, limits=QueryLimits(max_rows=99))
    assert (len(answer), answer.truncated) == (99, False)


def test_many_queries_that_run_away_leave_the_store_usable(stores: Stores) -> None:
    store = stores.create("UNWIND range(1, 12) AS i CREATE (:A {id: i})", "id")
    store.schema()
    endless = "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b WITH a + b AS c WHERE c < 0 RETURN count(c)"

    def runs_away(_: int) -> float:
        start = time.monotonic()
        with pytest.raises(QueryTimeout, match=r"0\.4 s"):
            store.run(endless, limits=QueryLimits(timeout_s=0.4))
        return time.monotonic() - start

    with ThreadPoolExecutor(3) as pool:
        assert max(pool.map(runs_away, range(3))) < 10
    assert store.run("MATCH (n) RETURN count(n) AS n", limits=QueryLimits(timeout_s=20)).rows == ((12,),)


def test_what_the_server_itself_ends_is_a_typed_error_too(stores: Stores) -> None:
    store = stores.create("CREATE (:A {id: 'a'})", "id")
    endless = "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b WITH a + b AS c WHERE c < 0 RETURN count(c)"
    with pytest.raises(QueryTimeout):
        store.run(endless, limits=QueryLimits(timeout_s=20))
    with pytest.raises(QueryTooLarge):
        store.run("RETURN size(range(1, 100000000)) AS n")
    with pytest.raises(QueryInvalid, match="nothere"):
        store.run("MATCH (n) RETURN nothere(n)")
    with pytest.raises(QueryInvalid, match="zero"):
        store.run("RETURN 1 / 0 AS x")


def test_a_parameter_that_cannot_be_sent_is_named(stores: Stores) -> None:
    store = stores.create("CREATE (:A {id: 'a'})", "id")
    with pytest.raises(QueryInvalid, match="'big'"):
        store.run("RETURN $big AS x", {"big": 1 << 70})
    with pytest.raises(QueryInvalid, match=r"'node'.*its id"):
        store.run("RETURN $node AS x", {"node": [NodeCell(EntityId("a"), "a")]})


# Connections


def test_a_connection_that_breaks_is_made_again(stores: Stores) -> None:
    store = stores.create("CREATE (:A {id: 'a'})", "id")
    wire = BreakableWire(stores.bolt.port)
    try:
        with Neo4jStore(f"bolt://127.0.0.1:{wire.port}", store.name.rsplit("/", 1)[1], "root", PASSWORD, "id") as store:
            for _ in range(3):
                assert store.run("MATCH (n) RETURN n.id AS id").rows == (("a",),)
                wire.break_all()
        assert wire.accepted >= 3
    finally:
        wire.close()


def test_the_server_is_told_the_access_mode_the_time_limit_the_database_and_the_fetch_size(stores: Stores) -> None:
    # as they stand on the wire: a short text has its length added to 0x80 before it, two bytes of an integer have 0xC9
    database = stores.bolt.new_database()
    wire = BreakableWire(stores.bolt.port)
    uri = f"bolt://127.0.0.1:{wire.port}"
    try:
        with Neo4jStore(uri, database, "root", PASSWORD, fetch_size=777) as store:
            store.schema()
            wire.said.clear()
            store.run("RETURN 1 AS x", limits=QueryLimits(timeout_s=20))
            said = bytes(wire.said)
            mode, name = b"\x84mode\x81r", b"\x82db" + bytes([0x80 + len(database)]) + database.encode()
            assert said.count(b"RETURN 1 AS x LIMIT 1001") == said.count(mode) == said.count(name) == 1
            assert b"\x81n\xc9" + (777).to_bytes(2) in said
            limit_ms = int.from_bytes(said.split(b"\x8atx_timeout\xc9")[1][:2])
            assert 19_000 < limit_ms <= 20_000
            list(store.entities())
            assert bytes(wire.said).count(mode) == 3  # how many nodes there are, then all of them
    finally:
        wire.close()


def test_a_server_that_is_not_there_is_unavailable_and_that_is_retryable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with Neo4jStore(f"bolt://127.0.0.1:{port}", username="u", password="sesame") as store:
        with pytest.raises(StoreUnavailable, match=f"bolt://127.0.0.1:{port} cannot be reached") as caught:
            store.run("RETURN 1")
        assert caught.value.retryable
        assert "sesame" not in str(caught.value)


def test_a_server_that_never_answers_does_not_hold_the_caller() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        uri = f"bolt://127.0.0.1:{listener.getsockname()[1]}"
        start = time.monotonic()
        with Neo4jStore(uri, username="u", password="p", timeout_s=0.5) as store, pytest.raises(QueryTimeout):
            store.schema()
        assert time.monotonic() - start < 10


def test_a_server_of_another_kind_is_unavailable(bolt: BoltDatabases) -> None:
    store = Neo4jStore(f"bolt://{bolt.http}", username="u", password="p", timeout_s=5)
    with store, pytest.raises(StoreUnavailable):
        store.schema()


def test_closing_ends_the_background_thread_and_may_be_repeated(stores: Stores) -> None:
    store = stores.create("CREATE (:A {id: 'a'})", "id")
    before = threading.active_count()
    assert list(store.entities()) == ["a"]
    assert threading.active_count() > before
    store.close()
    store.close()
    assert threading.active_count() == before
    assert list(store.entities()) == ["a"]


# Credentials and addresses


def test_wrong_credentials_are_a_setting_to_correct_and_are_not_repeated(
    bolt: BoltDatabases, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with Neo4jStore(bolt.uri, "graph", "root", "sesame-open-up") as store:
        with pytest.raises(ConfigError, match="NEO4J_PASSWORD") as caught:
            store.run("RETURN 1")
        said = [str(caught.value), repr(store), repr(vars(store)), store.name, caplog.text]
        assert not any("sesame" in text for text in said)


def test_credentials_and_database_come_from_the_environment(
    bolt: BoltDatabases, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = bolt.new_database()
    bolt.query(database, "CREATE (:A {id: 'here'})")
    monkeypatch.setenv("NEO4J_USERNAME", "root")
    monkeypatch.setenv("NEO4J_PASSWORD", PASSWORD)
    with Neo4jStore(f"{bolt.uri}/{database}", id_property="id") as store:
        assert list(store.entities()) == ["here"]
        assert store.name == f"{bolt.uri}/{database}"
    monkeypatch.setenv("NEO4J_DATABASE", database)
    with Neo4jStore(bolt.uri, id_property="id") as store:
        assert list(store.entities()) == ["here"]


def test_a_database_that_is_not_there_is_named(bolt: BoltDatabases) -> None:
    store = Neo4jStore(f"{bolt.uri}/nowhere", username="root", password=PASSWORD)
    with store, pytest.raises(ConfigError, match="nowhere: no such database"):
        store.schema()


@pytest.mark.parametrize(
    "uri",
    [
        "http://localhost:7687",
        "neo4j://",
        "bolt://host:1/a/b",
        "bolt://host:99999",
        "bolt://host?x=1",
        "films",
        "bolt://[::1",
    ],
)
def test_what_is_no_bolt_address_is_refused_with_an_example(uri: str) -> None:
    with pytest.raises(ConfigError, match="neo4j://host:7687/database"):
        Neo4jStore(uri)


def test_an_address_with_a_password_is_refused_without_repeating_it() -> None:
    with pytest.raises(ConfigError, match="NEO4J_USERNAME") as caught:
        Neo4jStore("bolt://neo4j:sesame@host:7687/db")
    assert "sesame" not in str(caught.value)


def test_two_databases_at_once_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"'one'.*'two'"):
        Neo4jStore("bolt://host:7687/one", database="two")


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "neo4j", None)
    with pytest.raises(MissingExtra, match=r"byokg\[neo4j\]"):
        Neo4jStore("bolt://localhost:7687")


# What only a genuine Neo4j does, from what it was recorded to answer

NEO4J, ARCADEDB = "Neo4j/5.26.0", "Neo4j/5.26.0 compatible (ArcadeDB 26.10.2)"


@pytest.mark.parametrize(
    ("agent", "trusted"),
    [(NEO4J, True), ("Neo4j/2025.10.1", True), (ARCADEDB, False), ("Memgraph/3.0", False), ("", False)],
)
def test_only_the_planner_of_a_genuine_neo4j_is_trusted(agent: str, trusted: bool) -> None:
    assert planner_is_trusted(agent) is trusted


@pytest.mark.parametrize("query_type", ["w", "rw", "s", None])
def test_a_plan_that_does_more_than_read_is_objected_to(query_type: str | None) -> None:
    # server.agent and query_type of a result's summary
    assert planner_objection(NEO4J, query_type) is not None
    assert planner_objection(NEO4J, "r") is None
    assert planner_objection(ARCADEDB, query_type) is None


def test_a_server_that_only_calls_itself_neo4j_is_refused_before_anything_is_asked(stores: Stores) -> None:
    class Pretending(BoltServer):
        """Meets a server that does not tell whether a query reads, as FalkorDB 4.14 does not."""

        sent: ClassVar[list[str]] = []

        def _new_session(self) -> Any:
            session: Any = super()._new_session()
            run = session.run

            async def told(text: Any, *given: Any) -> Any:
                self.sent.append(str(text))
                result = await run(text, *given)

                async def summary() -> Any:
                    return SimpleNamespace(server=SimpleNamespace(agent="Neo4j/5.13.0"), query_type=None)

                result.consume = summary
                return result

            session.run = told
            return session

    assert pretends("Neo4j/5.13.0", None)
    assert not pretends(NEO4J, "r") and not pretends(ARCADEDB, None)
    store = stores.create("CREATE (:A {id: 'a'})", "id")
    assert store.run("MATCH (n) RETURN n.id AS id").rows == (("a",),)
    server = Pretending(stores.bolt.uri, store.name.rsplit("/", 1)[1], "root", PASSWORD)
    with CypherStore(server, "id") as refused, pytest.raises(ConfigError, match="is no Neo4j"):
        refused.numbers(ids("it's a name"))
    assert Pretending.sent == ["RETURN 1 AS one"]


def test_the_planner_is_asked_before_a_query_runs_where_it_is_trusted(stores: Stores) -> None:
    class Posing(BoltServer):
        """Takes this server, whose plans always claim to write, for a genuine Neo4j."""

        async def _meet_server(self) -> None:
            self._agent = NEO4J

    store = stores.create("CREATE (:A {id: 'a'})", "id")
    assert store.run("MATCH (n) RETURN n.id AS id").rows == (("a",),)
    with CypherStore(Posing(stores.bolt.uri, store.name.rsplit("/", 1)[1], "root", PASSWORD), "id") as posing:
        assert list(posing.entities()) == ["a"]
        with pytest.raises(QueryRefused, match="planner says that it writes"):
            posing.run("MATCH (n) RETURN n.id AS id")


def test_properties_listed_by_the_procedures_of_neo4j_are_sorted_by_label_and_relation() -> None:
    # as `db.schema.nodeTypeProperties` and `db.schema.relTypeProperties` give them
    nodes: list[list[Any]] = [[["Person"], "name"], [["Actor", "Person"], "born"], [[], "loose"], [["Empty"], None]]
    edges: list[list[Any]] = [[":`ACTED_IN`", "roles"], [":`it``s a`", None], [":PLAIN", "x"], [":`ACTED_IN`", "year"]]
    names = listed_properties(nodes, edges)
    assert names.of_labels == {"Person": {"name", "born"}, "Actor": {"born"}, "": {"loose"}, "Empty": set()}
    assert names.of_relations == {"ACTED_IN": {"roles", "year"}, "it`s a": set(), "PLAIN": {"x"}}


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        ("Neo.ClientError.Statement.SyntaxError", "Invalid input 'X'", QueryInvalid),
        ("Neo.ClientError.Statement.AccessMode", "Writing in read access mode not allowed.", QueryRefused),
        ("Neo.ClientError.Security.Forbidden", "Create node is not allowed for user 'reader'.", QueryRefused),
        ("Neo.ClientError.Security.CredentialsExpired", "The credentials have expired.", ConfigError),
        ("Neo.ClientError.Database.DatabaseNotFound", "Database does not exist.", ConfigError),
        ("Neo.ClientError.Transaction.TransactionTimedOut", "The transaction has been terminated.", QueryTimeout),
        (
            "Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration",
            "The transaction has not completed within the timeout specified by the client.",
            QueryTimeout,
        ),
        ("Neo.TransientError.General.MemoryPoolOutOfMemoryError", "The allocation of an extra 2 MiB", QueryTooLarge),
        ("Neo.TransientError.General.TransactionMemoryLimit", "Can't allocate extra bytes.", QueryTooLarge),
        ("Neo.TransientError.General.DatabaseUnavailable", "The database is not up.", StoreUnavailable),
        ("Neo.DatabaseError.General.UnknownError", "Index 3 out of bounds", QueryFailed),
        ("Neo.ClientError.Procedure.ProcedureNotFound", "There is no procedure with the name `x`", QueryInvalid),
    ],
)
def test_what_neo4j_answers_becomes_one_of_our_errors(code: str, message: str, kind: type[Exception]) -> None:
    error = meaning(code, message, "neo4j://host", 3.0)
    assert type(error) is kind
    assert error.retryable is (kind is StoreUnavailable)
