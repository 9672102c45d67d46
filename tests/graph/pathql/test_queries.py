"""Patterns, costs, bounds and outputs of path queries, with answers worked out by hand."""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import pytest

from byokg import KnowledgeGraph
from byokg.cli.main import main
from byokg.errors import EntityNotFound, NameAmbiguous, PathQueryInvalid, RelationNotFound
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import import_graph
from byokg.graph.pathql import enumerate as enumerated
from byokg.graph.pathql.evaluate import count, paths
from byokg.graph.pathql.expander import StoreExpander
from byokg.graph.pathql.extras.drawing import describe, svg
from byokg.graph.pathql.query import connecting
from byokg.graph.pathql.search import PathLimits
from byokg.graph.store import Direction
from byokg.retrieval.graph_tools import GraphTools
from byokg.types import EntityId, Node, Triple
from tests.graph.test_own_store import OwnStore


def roads() -> ColumnarGraph:
    """a -1- b -1- d, a -1- c -1- d, a -5- d, and a road a to d whose length is not known; d -1- a back."""
    lengths = [("a", "b", 1), ("b", "d", 1), ("a", "d", 5), ("a", "c", 1), ("c", "d", 1), ("d", "a", 1)]
    edges = [
        Triple(EntityId(one), "road", EntityId(other), properties={"km": km, "built": f"{1900 + 10 * km}-01-01"})
        for one, other, km in lengths
    ]
    edges.append(Triple(EntityId("a"), "road", EntityId("d")))
    nodes = [Node(EntityId(name), name.upper(), "Town", {"people": 10 * place}) for place, name in enumerate("abcd")]
    return ColumnarGraph.from_records(nodes, edges)


def lines(query: str, graph: ColumnarGraph | None = None) -> list[str]:
    """Return the paths as text."""
    found = paths(graph or roads(), query)
    return [found.line(path) for path in found]


# Costs


def test_the_cheapest_paths_are_all_found() -> None:
    assert lines("PATHS START ?x = :a END ?y = :d VIA :road COST :km") == [
        "(:a)-[:road]->(:b)-[:road]->(:d)  cost 2",
        "(:a)-[:road]->(:c)-[:road]->(:d)  cost 2",
    ]


def test_edges_without_a_price_are_not_walked() -> None:
    assert [line.rpartition(" ")[2] for line in lines("PATHS ALL START ?x = :a END ?y = :d VIA :road COST :km")] == [
        "2",
        "2",
        "5",
    ]


def test_a_cost_may_be_bound_in_a_pattern() -> None:
    query = "PATHS SHORTEST 3 START ?x = :a END ?y = :d VIA { ?x :road ?y {| :km ?km |} } COST ?km"
    assert lines(query)[2] == "(:a)-[km=5]->(:d)  cost 5"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("PATHS START ?x = :a END ?y VIA :road COST ?km", "binds"),
        ("PATHS START ?x = :a END ?y VIA :road/:road COST :km", "single edges"),
        ("PATHS START ?x = :a END ?y VIA :road COST :built", "numbers from 0 on"),
        ("PATHS START ?x = :a END ?y VIA { ?x :road ?z }", r"does not bind \?y"),
        ("PATHS START ?x = :a END ?y { ?z :road ?x } VIA :road", r"END does not bind \?y"),
        ("PATHS ALL WALK START ?x = :a END ?y VIA :road", "infinitely many"),
        ("PATHS START ?x = :a END ?x VIA :road", r"both \?x; name them apart"),
        ("PATHS START ?x = :a END ?y VIA ?y", r"\?y is both an end and the relation"),
        ("PATHS START ?x = :Tom Hanks END ?y VIA :road", "such a name is written <Tom Hanks>; expected END"),
        ("PATHS START ?x = :a END ?y = Mary Lou O'Hara VIA :road", "such a name is written <Mary Lou O'Hara>"),
        ("PATHS START ?x = :AC/DC END ?y VIA :road", "such a name is written <AC/DC>"),
        ('PATHS START ?x = :"Al Pacino" END ?y VIA :road', "such a name is written <Al Pacino>"),
        ("PATHS START ?x = :a MAX LENGTH 3", "unexpected 'MAX'; expected END"),
        ("PATHS START ?x = :a END ?y VIA { ?x :road ?y FILTER(foo(?y)) }", "no function FOO"),
        ("PATHS START ?x = :a END ?y VIA { ?x :road ?y FILTER(year(?y, 1)) }", "number of arguments"),
    ],
)
def test_what_cannot_be_is_a_typed_error(query: str, reason: str) -> None:
    with pytest.raises(PathQueryInvalid, match=reason):
        paths(roads(), query)


@pytest.mark.seeds(6)
def test_costs_against_all_paths(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(10):
        names = [f"n{number}" for number in range(chance.randint(2, 6))]
        edges = [
            Triple(
                EntityId(chance.choice(names)),
                "r",
                EntityId(chance.choice(names)),
                properties={"w": chance.randint(0, 4)},
            )
            for _ in range(chance.randint(1, 6))
        ]
        graph = ColumnarGraph.from_records([Node(EntityId(name), name) for name in names], edges)
        restrictor = chance.choice(["SIMPLE", "ACYCLIC", "TRAIL"])
        every: dict[tuple[str, str], list[int]] = defaultdict(list)
        for path in paths(graph, f"PATHS ALL {restrictor} START ?x END ?y VIA :r"):
            every[path.start, path.end].append(sum(int(edge.triples[0].properties["w"]) for edge in path.edges))
        for selector, chosen in (
            ("ANY SHORTEST", lambda costs: costs[:1]),
            ("ALL SHORTEST", lambda costs: [cost for cost in costs if cost == costs[0]]),
            ("SHORTEST 3", lambda costs: costs[:3]),
            ("SHORTEST 2 GROUPS", lambda costs: [cost for cost in costs if cost in sorted(set(costs))[:2]]),
            ("ALL", lambda costs: costs),
        ):
            found: dict[tuple[str, str], list[float]] = defaultdict(list)
            for path in paths(graph, f"PATHS {selector} {restrictor} START ?x END ?y VIA :r COST :w"):
                assert path.cost == sum(float(edge.triples[0].properties["w"]) for edge in path.edges)
                found[path.start, path.end].append(path.cost)
            assert dict(found) == {pair: chosen(sorted(costs)) for pair, costs in every.items()}, selector


# Patterns


def test_conditions_on_edges_are_tested_while_walking() -> None:
    query = 'PATHS START ?x = :a END ?y = :d VIA { ?x :road ?y {| :built ?b |} FILTER(?b < "1920-01-01"^^xsd:date) }'
    assert [path.nodes for path in paths(roads(), query)] == [("a", "b", "d"), ("a", "c", "d")]


def test_conditions_on_nodes_of_the_end() -> None:
    query = (
        "PATHS START ?x = :a END ?y { ?y a :Town ; :people ?p . FILTER(?p >= 10 && ?p < 30) } VIA :road MAX LENGTH 1"
    )
    assert [(path.end, path.bindings["p"].value) for path in paths(roads(), query)] == [("b", 10), ("c", 20)]


@pytest.mark.parametrize(
    ("pattern", "ends"),
    [
        ("{ VALUES ?y { :b :d } }", {"b", "d"}),
        ("{ { ?y :people 10 } UNION { ?y :people 20 } }", {"b", "c"}),
        ("{ ?y a :Town MINUS { ?y :people 10 } }", {"a", "c", "d"}),
        ("{ ?y :people ?p BIND(?p / 10 + 1 AS ?n) FILTER(?n IN (2, 3)) }", {"b", "c"}),
        ("{ ?y a :Town FILTER NOT EXISTS { ?y :road :d } }", {"d"}),
        ("{ ?y a :Town OPTIONAL { ?y :road ?z . ?z :people 0 } FILTER(bound(?z)) }", {"d"}),
        ("{ ?y :road+ ?y . ?y :people ?p FILTER(?p = 0) }", {"a"}),
        ("{ :a :road/:road ?y }", {"d", "a"}),
        ("{ ?y ?p 10 }", {"b"}),
        ("{ ?y rdfs:label 'C' }", {"c"}),
        ("{ ?y a :Town FILTER(regex(str(?y), '^[bc]$')) }", {"b", "c"}),
        ("{ ?y :people ?p FILTER(if(?p > 15, true, false) || ?p = 0) }", {"a", "c", "d"}),
        ("{ ?y a :Village }", set()),
    ],
)
def test_patterns_of_the_end(pattern: str, ends: set[str]) -> None:
    found = paths(roads(), f"PATHS ANY START ?x = :a END ?y {pattern} VIA :road")
    assert {path.end for path in found} == ends


def test_patterns_of_start_and_end_that_share_a_variable_are_joined() -> None:
    graph = ColumnarGraph.from_triples(
        [("a", "in", "X"), ("b", "in", "X"), ("c", "in", "Y"), ("a", "to", "b"), ("b", "to", "c"), ("c", "to", "a")]
    )
    found = paths(graph, "PATHS START ?x { ?x :in ?land } END ?y { ?y :in ?land } VIA :to")
    assert {(path.start, path.end) for path in found} == {(p, q) for p, q in ("aa", "ab", "bb", "ba", "cc")}
    assert all(path.bindings["land"].value in ("X", "Y") for path in found)


def test_every_other_binding_is_another_edge() -> None:
    # two films that a and b are both in
    graph = ColumnarGraph.from_triples([(film, "stars", actor) for film in ("f", "g") for actor in ("a", "b")])
    with_film = paths(graph, "PATHS START ?x = :a END ?y = :b VIA { ?film :stars ?x , ?y }")
    assert [path.edges[0].bindings["film"].value for path in with_film] == ["f", "g"]
    assert len(paths(graph, "PATHS START ?x = :a END ?y = :b VIA ^:stars/:stars")) == 1


# Names


def test_names_of_all_kinds() -> None:
    graph = ColumnarGraph.from_triples([("Tom Hanks", "acted in", "m.0f4_l"), ("m.0f4_l", "film.genre", "Drama")])
    found = paths(graph, "PATHS START ?x = <Tom Hanks> END ?y = :Drama VIA <acted in>|:film.genre")
    assert found.line(found[0]) == "(<Tom Hanks>)-[<acted in>]->(:m.0f4_l)-[:film.genre]->(:Drama)"


def test_what_is_not_in_the_graph_is_said() -> None:
    with pytest.raises(EntityNotFound, match="'nobody'"):
        paths(roads(), "PATHS START ?x = :nobody END ?y VIA ?p")
    with pytest.raises(RelationNotFound, match=r"'raod'.*nearest: 'road'"):
        paths(roads(), "PATHS START ?x = :a END ?y VIA :raod")


def test_a_data_set_of_named_graphs(tmp_path: Path) -> None:
    file = tmp_path / "graphs.nq"
    file.write_text(
        "<http://e/a> <http://e/r> <http://e/b> <http://e/one> .\n"
        "<http://e/b> <http://e/r> <http://e/c> <http://e/two> .\n"
    )
    graph = import_graph(file)
    start = "PREFIX : <http://e/> PATHS"
    assert len(paths(graph, f"{start} START ?x = :a END ?y VIA :r")) == 2
    found = paths(graph, f"{start} FROM :one START ?x = :a END ?y VIA {{ ?x :r ?y }}")
    assert [path.nodes for path in found] == [("http://e/a", "http://e/b")]
    assert len(paths(graph, f"{start} FROM :one FROM :two START ?x = :a END ?y VIA :r")) == 2
    with pytest.raises(PathQueryInvalid, match="do not say which named graph"):
        paths(roads(), "PATHS FROM :one START ?x = :a END ?y VIA :road")


def test_a_condition_holds_for_any_of_the_values_of_a_property(tmp_path: Path) -> None:
    file = tmp_path / "names.ttl"
    file.write_text(
        '@prefix : <http://e/> . :a :r :b . :b :alias "Par\\"is"@en, "Parigi"@it ; :born 1900, 1950 . :c :alias "x" .'
    )
    graph = import_graph(file)
    for alias in ('"Parigi"', '"Par\\"is"'):
        query = f"PREFIX : <http://e/> PATHS START ?x = :a END ?y {{ ?y :alias ?n FILTER(STR(?n) = {alias}) }} VIA :r"
        assert len(paths(graph, query)) == 1
    for year, known in ((1900, 0), (1901, 1), (1951, 2)):
        query = f"PREFIX : <http://e/> PATHS START ?x = :a END ?y {{ ?y :born ?n FILTER(?n < {year}) }} VIA :r"
        assert len(paths(graph, query)) == known


def test_shortest_k_ends_where_there_are_fewer_paths_however_many_walks_fail() -> None:
    #   s -> b -> t, and b -> 0 <-> 1 <-> … <-> 11 -> b, all of them joined: every other walk comes back through b.
    ring = [(str(one), "r", str(other)) for one in range(12) for other in range(12) if one != other]
    edges = [("s", "r", "b"), ("b", "r", "t"), *(("b", "r", str(one)) for one in range(12))]
    graph = ColumnarGraph.from_triples([*edges, *ring, *((str(one), "r", "b") for one in range(12))])
    for mode in ("ACYCLIC", "SIMPLE"):
        found = paths(graph, f"PATHS SHORTEST 3 {mode} START ?x = :s END ?y = :t VIA :r")
        assert [path.nodes for path in found] == [("s", "b", "t")] and not found.truncated


@pytest.mark.parametrize(
    ("query", "nodes"),
    [
        ("PATHS SHORTEST 3 TRAIL START ?x = :s END ?y = :s VIA :r", [("s", "t", "s")]),
        ("PATHS ALL TRAIL START ?x = :s END ?y = :t VIA UNDIRECTED :r", [("s", "t"), ("s", "t")]),
        ("PATHS SHORTEST 3 SIMPLE START ?x = :s END ?y = :s MATCHING :r+", [("s", "t", "s")]),
        ("PATHS SHORTEST 9 WALK START ?x = :s END ?y = :t VIA :r", [("s", *("t", "s") * k, "t") for k in range(9)]),
    ],
)
def test_a_small_part_of_a_large_graph_ends_the_search(query: str, nodes: list[tuple[str, ...]]) -> None:
    elsewhere = [(str(one), "r", str(one + 1)) for one in range(5000)]
    graph = ColumnarGraph.from_triples([("s", "r", "t"), ("t", "r", "s"), *elsewhere])
    found = paths(graph, query, limits=PathLimits(max_steps=50_000))
    assert [path.nodes for path in found] == nodes and not found.truncated


@pytest.mark.parametrize("around", ["b", "x"])
def test_deviating_trails_may_come_back_to_where_they_leave(around: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumerated, "_PATIENCE", 0)
    edges = [("s", "r", "b"), ("b", "r", around), (around, "r", "b"), ("b", "r", "t")]
    graph = ColumnarGraph.from_triples(list(dict.fromkeys(edges)))
    found = paths(graph, "PATHS SHORTEST 3 TRAIL START ?x = :s END ?y = :t VIA :r")
    came_back = ("s", "b", "b", "t") if around == "b" else ("s", "b", "x", "b", "t")
    assert [path.nodes for path in found] == [("s", "b", "t"), came_back]


def test_trails_either_way_end_where_there_are_no_more() -> None:
    #   s - b = t, t - 0, and 0 to 11 all joined: a trail that goes to 0 cannot come back.
    clique = [(str(one), "r", str(other)) for one in range(12) for other in range(one)]
    edges = [("s", "r", "b"), ("b", "r", "t"), ("t", "r", "b"), ("t", "r", "0")]
    graph = ColumnarGraph.from_triples([*edges, *clique])
    found = paths(graph, "PATHS SHORTEST 9 TRAIL START ?x = :s END ?y = :t VIA UNDIRECTED :r")
    assert [path.nodes for path in found] == [("s", "b", "t"), ("s", "b", "t")] and not found.truncated
    back = paths(graph, "PATHS ALL TRAIL START ?x = :t END ?y = :t MATCHING UNDIRECTED :r* LIMIT 9")
    assert [path.nodes for path in back] == [("t",), ("t", "b", "t"), ("t", "b", "t")] and not back.truncated


# Decided and documented


def test_a_loop_counts_once_in_both_directions() -> None:
    graph = ColumnarGraph.from_triples([("a", "r", "a"), ("a", "r", "b")])
    assert len(paths(graph, "PATHS START ?x = :a END ?y = :a VIA :r|^:r")) == 1


def test_parallel_edges_are_told_apart_in_json() -> None:
    edges = [Triple(EntityId("a"), "r", EntityId("b"), properties={"year": year}) for year in (1, 2)]
    graph = ColumnarGraph.from_records([Node(EntityId(name), name) for name in "ab"], edges)
    said = paths(graph, "PATHS START ?x = :a END ?y = :b VIA :r").as_json()["paths"]
    assert [path["edges"][0]["triples"][0]["edge"] for path in said] == [0, 1]


def test_no_steps_lead_from_a_node_to_itself() -> None:
    graph = ColumnarGraph.from_triples([("a", "r", "b"), ("b", "r", "a")])
    assert [path.nodes for path in paths(graph, "PATHS START ?x = :a END ?y = :a MATCHING :r*")] == [("a",)]
    assert [path.nodes for path in paths(graph, "PATHS START ?x = :a END ?y = :a MATCHING :r+")] == [("a", "b", "a")]
    assert len(paths(graph, "PATHS ACYCLIC START ?x = :a END ?y = :a MATCHING :r+")) == 0


# Bounds


def test_pathological_queries_stop_at_a_bound_and_say_so() -> None:
    # A chain of 60 diamonds has 2^60 paths; a clique of 30 has no end of trails.
    diamonds = [(f"d{n}", "r", f"{side}{n}") for n in range(60) for side in "lr"]
    diamonds += [(f"{side}{n}", "r", f"d{n + 1}") for n in range(60) for side in "lr"]
    clique = [(f"c{one}", "r", f"c{other}") for one in range(30) for other in range(30) if one != other]
    graph = ColumnarGraph.from_triples([*diamonds, *clique])
    limits = PathLimits(timeout_s=1, max_paths=500)
    for query in (
        "PATHS ALL START ?x = :d0 END ?y = :d60 VIA :r",
        "PATHS START ?x = :d0 END ?y = :d60 VIA :r",
        "PATHS START ?x = :d0 END ?y VIA :r",
        "PATHS ALL TRAIL START ?x = :c0 END ?y = :c1 VIA :r",
        "PATHS ALL START ?x END ?y VIA :r",
        "PATHS SHORTEST 900 TRAIL START ?x = :c0 END ?y = :c1 VIA :r",
        "PATHS ALL START ?x = :c0 END ?y = :d0 VIA UNDIRECTED :r",
        "PATHS ALL TRAIL CYCLIC START ?x END ?y VIA UNDIRECTED :r",
    ):
        began = time.perf_counter()
        found = paths(graph, query, limits)
        assert time.perf_counter() - began < 30, query
        assert found.truncated or len(found) == 0, query
        assert len(found) <= 500


def test_no_regular_expression_takes_long() -> None:
    pattern = "PATHS START ?x = :a END ?y {{ ?y rdfs:label ?n FILTER(regex(?n, '{}'{})) }} VIA :road"
    graph = ColumnarGraph.from_records(
        [Node(EntityId("a"), "a"), Node(EntityId("b"), "A" * 60 + "!")], [Triple(EntityId("a"), "road", EntityId("b"))]
    )
    for expression, flags, found in (("(a+)+$", ", 'i'", 0), ("(a+)+", ", 'i'", 1), ("a", "", 0), ("(", "", 0)):
        assert len(paths(graph, pattern.format(expression, flags))) == found


def test_trails_of_patterns_and_matches_end() -> None:
    # A film with three actors has nine pairs of them, each an edge that a trail may walk once.
    graph = ColumnarGraph.from_triples([("f", "stars", actor) for actor in "abc"])
    every = paths(graph, "PATHS ALL TRAIL START ?x = :a END ?y = :b VIA { ?f :stars ?x , ?y }")
    assert max(len(path.edges) for path in every) == 8 and not every.truncated
    loop = ColumnarGraph.from_triples([("a", "r", "a")])
    assert [path.nodes for path in paths(loop, "PATHS ALL TRAIL START ?x = :a END ?y = :a VIA :r/:r")] == [("a", "a")]


def test_a_limit_of_the_query_is_no_truncation() -> None:
    assert not paths(roads(), "PATHS ALL START ?x = :a END ?y VIA :road LIMIT 2").truncated
    assert paths(roads(), "PATHS ALL START ?x = :a END ?y VIA :road", PathLimits(max_paths=2)).truncated


# Other libraries and stores


@pytest.mark.seeds(4)
def test_shortest_and_simple_paths_against_networkx(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"n{number}" for number in range(9)]
    triples = {(chance.choice(names), "r", chance.choice(names)) for _ in range(22)} | {
        (name, "s", name) for name in names
    }
    graph = ColumnarGraph.from_triples(sorted(triples))
    peer = nx.DiGraph([(head, tail) for head, relation, tail in triples if relation == "r" and head != tail])
    peer.add_nodes_from(names)
    for source in names:
        for target in names:
            if source == target:
                continue
            query = f"START ?x = :{source} END ?y = :{target} VIA :r"
            simple = sorted(map(tuple, nx.all_simple_paths(peer, source, target)))
            assert sorted(path.nodes for path in paths(graph, f"PATHS ALL {query}")) == simple
            shortest = sorted(map(tuple, nx.all_shortest_paths(peer, source, target))) if simple else []
            assert sorted(path.nodes for path in paths(graph, f"PATHS {query}")) == shortest


EXPRESSIONS = [
    ":r/:s",
    "(:r|:s)+",
    "^:r/:s*",
    ":r?/:s",
    "!:r",
    "!(:r|^:s)",
    "(:r/^:s)+",
    ":s|^:s",
    "(:r*/:s)?",
    "^(:r/:s)",
]


@pytest.mark.seeds(3)
def test_ends_against_property_paths_of_oxigraph(seed: int) -> None:
    pyoxigraph = pytest.importorskip("pyoxigraph")
    chance = random.Random(seed)
    names = [f"n{number}" for number in range(8)]
    triples = {(chance.choice(names), chance.choice("rst"), chance.choice(names)) for _ in range(16)}
    triples |= {(names[0], relation, names[1]) for relation in "rst"}
    graph = ColumnarGraph.from_triples(sorted(triples))
    engine = pyoxigraph.Store()
    for triple in triples:
        engine.add(pyoxigraph.Quad(*(pyoxigraph.NamedNode(f"http://e/{part}") for part in triple)))
    known = sorted(graph.entities())
    for expression in EXPRESSIONS:
        for source in known:
            rows = engine.query(f"PREFIX : <http://e/> SELECT DISTINCT ?y WHERE {{ :{source} {expression} ?y }}")
            expected = sorted(row[0].value.removeprefix("http://e/") for row in rows)
            matching = paths(graph, f"PATHS ANY WALK START ?x = :{source} END ?y MATCHING {expression}")
            assert sorted(path.end for path in matching) == expected, (expression, source)
            one_edge = paths(graph, f"PATHS START ?x = :{source} END ?y VIA {expression} MAX LENGTH 1")
            assert sorted({path.end for path in one_edge}) == expected, (expression, source)


def test_any_store_gives_the_same_answers() -> None:
    chance = random.Random(5)
    names = [f"n{number}" for number in range(7)]
    triples = sorted({(chance.choice(names), chance.choice("rs"), chance.choice(names)) for _ in range(14)})
    graph = ColumnarGraph.from_triples([*triples, ("n0", "r", "n0")])

    plain = OwnStore(graph)
    for query in (
        "PATHS START ?x END ?y VIA ?p",
        "PATHS ALL START ?x END ?y VIA :r|^:s",
        "PATHS ALL TRAIL START ?x END ?y MATCHING :r/:s*/^:r MAX LENGTH 4",
        "PATHS SHORTEST 3 WALK START ?x = :n1 END ?y VIA UNDIRECTED ?p MAX LENGTH 3",
        "PATHS START ?x END ?y VIA { ?x :r ?m . ?y :s ?m }",
        "PATHS CYCLIC START ?x END ?y VIA :r/:s",
        # A loop is walked either way at once, to where neither direction alone leads.
        "PATHS START ?x END ?y MATCHING ^:r|:r/:s",
        "PATHS ALL START ?x END ?y MATCHING (^:r|:r/:s)+ MAX LENGTH 3",
    ):
        one, other = paths(graph, query), paths(plain, query)
        assert isinstance(other._speller.moves, StoreExpander) or "/" in query or "{" in query
        assert sorted(map(one.line, one)) == sorted(map(other.line, other)), query


def test_searches_on_a_server_ask_together() -> None:
    #   a0 -> b0 -> c0 … a9 -> b9 -> c9: from ten starts, and between ten pairs, a hop is one call.
    graph = ColumnarGraph.from_triples(
        [(f"{one}{n}", "r", f"{other}{n}") for n in range(10) for one, other in ("ab", "bc")]
    )
    asked: list[int] = []

    class Server(OwnStore):
        def edges(self, nodes: Any, *more: Any, **named: Any) -> Any:
            asked.append(len(nodes))
            return graph.edges(nodes, *more)

    server: Any = Server(graph)
    server.schema()  # which scans all edges
    asked.clear()
    starts = " ".join(f":a{n}" for n in range(10))
    found = paths(server, f"PATHS START ?x {{ VALUES ?x {{ {starts} }} }} END ?y VIA :r")
    assert (len(found), asked) == (20, [10, 10, 10])
    asked.clear()
    ends = [EntityId(f"c{n}") for n in range(4)]
    assert len(paths(server, connecting([EntityId(f"a{n}") for n in range(4)], ends, 1, 2, None, Direction.OUT))) == 4
    assert asked == [4, 4]


def test_what_lies_far_ahead_is_asked_about_in_one_call_where_the_engine_can_say() -> None:
    #   n0 -> n1 -> … -> n20, and back to n5
    names = [f"n{number}" for number in range(21)]
    edges = [(one, "r", other) for one, other in pairwise(names)]
    graph = ColumnarGraph.from_triples([*edges, ("n20", "r", "n5"), ("n20", "s", "n0")])
    calls: list[str] = []

    class Server(OwnStore):
        found: Any = None

        def edges(self, nodes: Any, *more: Any, **named: Any) -> Any:
            calls.append("edges")
            return graph.edges(nodes, *more)

        def reached(self, node: int, direction: Direction, relations: Any, limit: int, timeout_s: float) -> Any:
            calls.append(f"reached {direction.value}")
            return self.found

    server: Any = Server(graph)
    for query, way in (("START ?x = :n0 END ?y VIA :r", "out"), ("START ?x END ?y = :n20 VIA :r", "in")):
        server.found = None  # the engine gave up
        expected = [path.nodes for path in paths(graph, f"PATHS {query}")]
        assert [path.nodes for path in paths(server, f"PATHS {query}")] == expected
        assert calls.count("edges") > 10
        calls.clear()
        server.found = graph.numbers([EntityId(name) for name in names])
        assert [path.nodes for path in paths(server, f"PATHS {query}")] == expected
        assert calls == ["edges"] * 3 + [f"reached {way}", "edges"]
        calls.clear()
        server.found = server.found[:9]  # what the engine left out is walked
        assert [path.nodes for path in paths(server, f"PATHS {query}")] == expected
        calls.clear()
    for query in ("START ?x = :n0 END ?y VIA ?p", "START ?x = :n0 END ?y VIA :r MAX LENGTH 9"):
        paths(server, f"PATHS {query}")
    assert "edges" in calls and len(set(calls)) == 1


def test_a_graph_with_an_engine_is_walked_in_its_arrays() -> None:
    class Engine(OwnStore):
        columnar = roads()

    engine = Engine(roads())
    query = "PATHS START ?x = :b END ?y = :a VIA :road"
    found = paths(engine, query, rules="IF { ?x :road ?y } THEN { ?y :road ?x }")
    assert [path.nodes for path in found] == [("b", "a")]
    assert count(engine, "PATHS ALL START ?x = :a END ?y = :d VIA :road") == (4, False)


# Outputs


def test_evidence_is_a_walk_in_the_graph() -> None:
    found = KnowledgeGraph(roads()).paths("PATHS START ?x = :b END ?y = :c VIA UNDIRECTED :road")
    path = found[0].path
    assert path.nodes == found[0].nodes
    assert path.end == "c"


def test_drawings_hold_every_node_once() -> None:
    found = paths(roads(), "PATHS ALL START ?x = :a END ?y = :d VIA :road")
    root = ElementTree.fromstring(svg(found))
    titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert sorted(title for title in titles if title and title in "ABCD") == list("ABCD")
    assert len(found) == 4
    record = describe(found)
    assert [one["line"] for one in record["paths"]] == [found.line(path) for path in found]
    assert {id for one in record["paths"] for step in one["steps"] for id in (step[0], step[2])} == set("abcd")
    assert (record["starts"], record["ends"]) == (["a"], ["d"])
    empty = paths(roads(), "PATHS START ?x = :b END ?y = :c VIA :road MAX LENGTH 1")
    assert ElementTree.fromstring(svg(empty)).tag.endswith("svg")


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    roads().save(tmp_path / "graph")
    graph, query = str(tmp_path / "graph"), "PATHS START ?x = :a END ?y = :d VIA { ?x :road ?y {| :km 1 |} }"
    assert main(["paths", graph, query, "--format", "text"]) == 0
    assert capsys.readouterr().out.startswith("(:a)-[:road]->(:b)-[:road]->(:d)\n\n(:a)")
    assert main(["paths", graph, query]) == 0
    assert capsys.readouterr().out.startswith("+----+----+\n| x  | y  |")
    (tmp_path / "query.txt").write_text(query)
    assert main(["paths", graph, f"@{tmp_path / 'query.txt'}", "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["paths"]) == 2
    assert main(["paths", graph, query, "--format", "html", "--out", str(tmp_path / "p.html")]) == 0
    assert 'id="paths"' in (tmp_path / "p.html").read_text()
    (tmp_path / "rules").write_text("IF { ?x :road ?y } THEN { ?y :road ?x }")
    back = "PATHS START ?x = :b END ?y = :a VIA :road"
    assert main(["paths", graph, back, "--rules", str(tmp_path / "rules"), "--format", "text"]) == 0
    assert capsys.readouterr().out.startswith("(:b)-[:road]->(:a)")
    every = "PATHS ALL TRAIL START ?x = :a END ?y = :d VIA :road MAX LENGTH 4"
    assert main(["paths", graph, every, "--count"]) == 0
    assert capsys.readouterr().out == f"{len(paths(roads(), every))}\n"
    assert main(["paths", graph, "PATHS START ?x"]) == 2
    assert "line 1, column 15: the query ends too early; expected END" in capsys.readouterr().err
    assert main(["paths", graph, "PATHS START ?x = :Aa END ?y VIA :road", "--count"]) == 2
    assert "no entity 'Aa' in" in capsys.readouterr().err


def test_the_tool_of_the_mcp_server() -> None:
    tools = GraphTools(roads(), path_queries=True)
    answer = tools.call("path_query", {"query": "PATHS START ?x = <a> END ?y = <d> VIA :road COST :km"})
    assert [path["cost"] for path in answer["paths"]] == [2, 2] and not answer["truncated"]
    assert "path_query" not in GraphTools(roads()).tools
    cities = [Node(EntityId("n1"), "Vienna"), Node(EntityId("n2"), "Linz"), Node(EntityId("n3"), "Linz", "Bank")]
    tools = GraphTools(
        ColumnarGraph.from_records(cities, [Triple(cities[0].id, "near", cities[1].id)]), path_queries=True
    )
    with pytest.raises(EntityNotFound, match=r"no entity 'Viena' in .*; nearest: 'n1' \(Vienna\)"):
        tools.call("path_query", {"query": "PATHS START ?x = :Viena END ?y VIA :near"})
    with pytest.raises(
        NameAmbiguous, match=r"several nodes of .* have the name 'Linz'; use an id: 'n2', 'n3' \(Bank\)"
    ):
        tools.call("path_query", {"query": "PATHS START ?x = :Vienna END ?y = <Linz> VIA :near"})


class TestNames:
    """Vienna (n1) -near-> Graz (n2), whose ids are not their names."""

    @pytest.fixture
    def cities(self) -> ColumnarGraph:
        nodes = [Node(EntityId("n1"), "Vienna"), Node(EntityId("n2"), "Graz")]
        return ColumnarGraph.from_records(nodes, [Triple(EntityId("n1"), "near", EntityId("n2"))])

    def test_a_start_or_end_may_be_a_name_that_one_node_has(self, cities: ColumnarGraph) -> None:
        for query in ("PATHS START ?x = <vienna> END ?y = :Graz VIA ?p", "PATHS START ?x = :n1 END ?y = <n2> VIA ?p"):
            assert lines(query, cities) == ["(Vienna :n1)-[p=:near]->(Graz :n2)"]
        assert count(cities, "PATHS ALL START ?x = :Vienna END ?y = :Graz VIA ?p MAX LENGTH 3") == (1, False)

    def test_an_empty_result_tells_of_paths_against_the_direction(self, cities: ColumnarGraph) -> None:
        for via in ("?p", ":near"):
            back = paths(cities, f"PATHS START ?x = :Graz END ?y = :Vienna VIA {via}")
            assert back.text().endswith(
                "paths exist if edges are walked against their direction, too: write UNDIRECTED"
            )
        nowhere = paths(cities, "PATHS START ?x = :Graz END ?y = :Vienna VIA UNDIRECTED :near MAX LENGTH 0")
        assert "UNDIRECTED" not in nowhere.text()


def test_no_step_at_all_leads_from_a_node_to_itself() -> None:
    assert lines("PATHS START ?x { VALUES ?x { :a :b } } END ?y MATCHING :road{0,0}") == ["(:a)", "(:b)"]
    assert lines("PATHS START ?x = :a END ?y = :b MATCHING :road{0,0}") == []
