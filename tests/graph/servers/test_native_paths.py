"""Shortest paths that ArcadeDB and a genuine Neo4j find by themselves, beside what the walker finds there."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from byokg.errors import QueryTimeout
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.pathql.evaluate import paths
from byokg.graph.pathql.search import PathLimits
from byokg.graph.servers.bolt import BoltServer, Neo4jStore, finds_shortest_paths
from byokg.graph.store import GraphStore
from byokg.types import Node, Triple
from tests.graph.bolt_server import PASSWORD, BoltDatabases, load_graph
from tests.graph.contract import edge, node

neo4j = pytest.importorskip("neo4j", reason="needs neo4j: pip install 'byokg[neo4j]'")

NAMES = "abcdefgh"

QUERIES = [
    "PATHS START ?x = :{} END ?y = :{} VIA ?p",
    "PATHS START ?x = :{} END ?y = :{} VIA :r",
    "PATHS START ?x = :{} END ?y = :{} VIA ^:r",
    "PATHS START ?x = :{} END ?y = :{} VIA !:r",
    "PATHS START ?x = :{} END ?y = :{} VIA UNDIRECTED :r|:s",
    "PATHS START ?x = :{} END ?y = :{} VIA :r|^:s",
    "PATHS ALL SHORTEST TRAIL START ?x = :{} END ?y = :{} VIA ?p MAX LENGTH 2",
    "PATHS ALL SHORTEST ACYCLIC START ?x = :{} END ?y = :{} MATCHING (:s|:t)+",
    "PATHS START ?x = :{} END ?y = :{} VIA ?p LIMIT 2",
    "PATHS START ?x = :{} END ?y = :{} VIA ?p OFFSET 1 LIMIT 30",
    "PATHS START ?x = :{} END ?y = :{} MATCHING :r/:s",
    "PATHS ANY SHORTEST START ?x = :{} END ?y = :{} VIA UNDIRECTED ?p",
    "PATHS ANY START ?x = :{} END ?y = :{} VIA :r|:s",
]


@dataclass
class Server:
    """A server to fill anew, and to open."""

    fill: Callable[[list[Node], list[Triple]], None]
    open: Callable[[], Neo4jStore]


@pytest.fixture(params=["ArcadeDB", "Neo4j"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    if request.param == "ArcadeDB":
        bolt: BoltDatabases = request.getfixturevalue("bolt")
        database = bolt.new_database()
        yield Server(
            lambda nodes, edges: bolt.load(database, nodes, edges, False),
            lambda: Neo4jStore(bolt.uri, database, "root", PASSWORD, "id"),
        )
        return
    uri = request.getfixturevalue("neo4j_server").address
    with neo4j.GraphDatabase.driver(uri) as driver:

        def fill(nodes: list[Node], edges: list[Triple]) -> None:
            driver.execute_query("MATCH (n) DETACH DELETE n")
            load_graph(driver.execute_query, nodes, edges, False)

        yield Server(fill, lambda: Neo4jStore(uri, id_property="id"))


def multigraph(chance: random.Random) -> tuple[list[Node], list[Triple]]:
    """Return nodes, and edges of three relations with loops and parallels, told apart by a property."""
    nodes = [node(name) for name in NAMES]
    edges = [
        edge(chance.choice(NAMES), chance.choice("rrst"), chance.choice(NAMES), number=number)
        for number in range(chance.randint(8, 30))
    ]
    return nodes, [*edges, edge("a", "r", "b", number=-1), edge("a", "s", "b", number=-2), edge("b", "t", "c")]


def answer(store: GraphStore, query: str, limits: PathLimits | None = None) -> tuple[list[Any], bool]:
    """Return the paths of a query in their order, and whether there may be more."""
    found = paths(store, query, limits)
    rows = [(path.nodes, [(each.relation, dict(each.properties)) for each in path.path.triples]) for path in found]
    return rows, found.truncated


def walked(store: Neo4jStore) -> Neo4jStore:
    """Return a store whose engine finds no paths by itself."""
    store.shortest_paths = lambda *_: None  # type: ignore[method-assign]
    return store


@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_the_walker(server: Server, seed: int) -> None:
    chance = random.Random(seed)
    nodes, edges = multigraph(chance)
    server.fill(nodes, edges)
    graph = ColumnarGraph.from_records(nodes, edges)
    with server.open() as one, server.open() as other:
        by_hand = walked(other)
        for query in QUERIES:
            for start, end in (("a", "c"), tuple(chance.choices(NAMES, k=2)), tuple(chance.choices(NAMES, k=2))):
                text = query.format(start, end)
                limits = PathLimits(max_paths=chance.choice((1, 3, 10_000)))
                native, by_steps = answer(one, text, limits), answer(by_hand, text, limits)
                assert native == by_steps, text
                if limits.max_paths > 3 and "LIMIT" not in text and "ANY" not in text:
                    assert sorted(native[0], key=str) == sorted(answer(graph, text, limits)[0], key=str), text


def test_far_nodes_are_those_of_the_walker(server: Server) -> None:
    chain = [edge(f"c{number}", "next", f"c{number + 1}") for number in range(30)]
    edges = [*chain, edge("c30", "odd `kind", "c0"), edge("c12", "next", "c3"), edge("a", "next", "c5")]
    nodes = [node(name) for name in ["a", *(f"c{number}" for number in range(31))]]
    server.fill(nodes, edges)
    graph = ColumnarGraph.from_records(nodes, edges)
    for query in (
        "PATHS START ?x = :c0 END ?y VIA :next",
        "PATHS ANY SHORTEST START ?x END ?y = :c30 VIA :next",
        "PATHS START ?x = :c9 END ?y VIA UNDIRECTED :next",
        "PATHS START ?x = :c9 END ?y VIA :next|<odd `kind>",
        "PATHS TRAIL START ?x = :c3 END ?y MATCHING (^:next)*",
    ):
        with server.open() as store:
            assert sorted(answer(store, query)[0], key=str) == sorted(answer(graph, query)[0], key=str), query


def test_every_shortest_path_comes_in_one_round_trip(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.fill(
        [node(name) for name in "abc"],
        [edge("a", "r", "b", number=1), edge("a", "r", "b", number=2), edge("b", "s", "c"), edge("a", "t", "c")],
    )
    sent: list[str] = []
    ask = BoltServer.ask

    def recorded(self: BoltServer, text: str, *more: Any) -> Any:
        sent.append(text)
        return ask(self, text, *more)

    with server.open() as store:
        store.numbers(list("ac"))  # type: ignore[arg-type]
        store.schema()
        monkeypatch.setattr(BoltServer, "ask", recorded)
        rows, truncated = answer(store, "PATHS START ?x = :a END ?y = :c VIA !:t")
        assert not truncated
        assert [[held.get("number") for _, held in triples] for _, triples in rows] == [[1, None], [2, None]]
        assert len(sent) == 1 and "allShortestPaths" in sent[0]
        sent.clear()
        assert answer(store, "PATHS ANY SHORTEST START ?x = :a END ?y = :c VIA !:t") == (rows[:1], False)
        assert len(sent) == 1 and "allShortestPaths" in sent[0]
        sent.clear()
        assert answer(store, "PATHS START ?x = :a END ?y = :a VIA ?p") == ([], False)
        assert not any("allShortestPaths" in text for text in sent)


def test_more_paths_than_wanted_are_walked(server: Server) -> None:
    server.fill([node("a"), node("b")], [edge("a", "r", "b", number=number) for number in range(9)])
    with server.open() as store:
        first, truncated = answer(store, "PATHS START ?x = :a END ?y = :b VIA :r", PathLimits(max_paths=4))
        every, _ = answer(store, "PATHS START ?x = :a END ?y = :b VIA :r")
        assert truncated and len(every) == 9 and first == every[:4]


def test_one_of_very_many_paths_is_the_first_of_them(server: Server) -> None:
    edges = [edge(head, "r", tail, number=number) for number, (head, tail) in enumerate([("a", "b"), ("b", "c")] * 32)]
    server.fill([node(name) for name in "abc"], edges)
    with server.open() as store:
        query = "PATHS ANY SHORTEST START ?x = :a END ?y = :c VIA :r"
        ((nodes, triples),), truncated = answer(store, query)
        assert not truncated
        # Neo4j hands the ids of deleted edges out again, so which edge is the first depends on what was there before.
        assert [held["number"] % 2 for _, held in triples] == [0, 1]
        assert answer(store, query) == ([(nodes, triples)], False)


def test_other_servers_are_walked() -> None:
    assert finds_shortest_paths("Neo4j/5.26.16")
    assert finds_shortest_paths("Neo4j/5.26.0 compatible (ArcadeDB 26.10.2)")
    assert not finds_shortest_paths("Neo4j/5.2.0 compatible graph database server - Memgraph")


def test_an_engine_that_finds_nothing_in_time_leaves_it_to_the_walker(
    bolt: BoltDatabases, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = bolt.new_database()
    bolt.load(database, [node("a"), node("b")], [edge("a", "r", "b", number=1)], False)
    ask = BoltServer.ask

    def slow(self: BoltServer, text: str, *more: Any) -> Any:
        if "allShortestPaths" in text:
            raise QueryTimeout(1.0)
        return ask(self, text, *more)

    monkeypatch.setattr(BoltServer, "ask", slow)
    with Neo4jStore(bolt.uri, database, "root", PASSWORD, "id") as store:
        assert answer(store, "PATHS START ?x = :a END ?y = :b VIA :r") == (
            [(("a", "b"), [("r", {"number": 1})])],
            False,
        )
