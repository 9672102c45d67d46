"""Candidate queries: what is found around entities, how good it is, and that all of it runs on genuine engines."""

from __future__ import annotations

import random

import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.graph.guard.guard import check_cypher
from byokg.retrieval.candidates import TEMPLATES, CandidateQuery, Conditions, Templates, shortlist
from byokg.retrieval.enumerate_candidates import CandidateFinder
from byokg.retrieval.subgraph import results
from byokg.text.dates import Period
from byokg.types import EntityId, LinkedValue, Mention, Node, Triple, Value

ODD = [
    'He said "no"',
    "it's `so`",
    "back\\slash",
    "a\\u0041b",
    "line\nbreak",
    "🎬 film",
    "tab\tin",
    "naïve ’ name",
    "x1",
]
PERIODS = (
    Period("1998", "1999"),
    Period("1997", "2001"),
    Period(None, "1999-05-04"),
    Period("2000-05-02"),
    Period("1900", "1910"),
)
ASKED = Conditions(PERIODS, extremes=(True, False), count=True)


def records_of(seed: int) -> tuple[list[Node], list[Triple]]:
    """Return a small graph with loops, parallel edges, namesakes, types, values, and names that need escaping."""
    draw = random.Random(seed)
    nodes = [
        Node(
            EntityId(f"n{at}" if at % 3 else ODD[at // 3 % len(ODD)] + f" {at}"),
            ODD[at % len(ODD)] if at % 4 else f"{1995 + at}-05-0{1 + at % 9}",
            ("Film", "Odd `type`", "")[draw.randrange(3)],
            {"year": 1995 + draw.randrange(8)} if draw.random() < 0.5 else {},
        )
        for at in range(14)
    ]
    relations = ["likes", "is `odd`", "dotted.relation.name", "has\\slash", "dated"]
    edges = []
    for _ in range(34):
        one, other = draw.choice(nodes), draw.choice(nodes)
        relation = "dated" if other.name[:2] in ("19", "20") and draw.random() < 0.8 else draw.choice(relations[:4])
        held = {"since": 1996 + draw.randrange(6)} if draw.random() < 0.4 else {}
        edges += [Triple(one.id, relation, other.id, properties=held)] * (2 if draw.random() < 0.15 else 1)
    return nodes, edges


def graph_of(seed: int) -> ColumnarGraph:
    """Return them as a graph."""
    return ColumnarGraph.from_records(*records_of(seed), f"random {seed}")


@pytest.fixture
def arcade(arcade_process: ArcadeStore) -> ArcadeStore:
    return arcade_process


def whole(candidates: tuple[CandidateQuery, ...]) -> dict[tuple[object, ...], CandidateQuery]:
    """Return candidates by everything that they are; each is there once."""
    held: dict[tuple[object, ...], CandidateQuery] = {
        (one.template, one.legs, one.tail, one.end_type, one.period, one.extreme, one.count): one for one in candidates
    }
    assert len(held) == len(candidates)
    return held


def asked(graph: ColumnarGraph, seed: int) -> tuple[list[EntityId], list[EntityId]]:
    ids = list(graph.entities())
    draw = random.Random(seed + 100)
    return draw.sample(ids, 3), draw.sample(ids, 5)


def test_every_template_and_every_condition_has_candidates() -> None:
    graph = graph_of(2)
    anchors, gold = asked(graph, 2)
    here = CandidateFinder(graph, Templates(TEMPLATES)).find(anchors, gold, ASKED, ["3"]).items
    assert {one.template for one in here} == set(TEMPLATES)
    assert any(one.end_type for one in here)
    for condition in ("period", "extreme"):
        told = {getattr(one, condition)[0].place for one in here if getattr(one, condition)}
        assert told == {"node", "edge", "neighbour"}
    assert any(one.count and one.hits for one in here)


@pytest.mark.parametrize("directed", [False, True])
def test_every_query_passes_the_guard_and_returns_what_was_counted_and_what_is_walked(
    arcade: ArcadeStore, directed: bool
) -> None:
    graph = graph_of(2)
    arcade.replace(graph)
    anchors, gold = asked(graph, 2)
    templates = Templates(TEMPLATES, directed=directed)
    for one in CandidateFinder(graph, templates).find(anchors, gold, ASKED).items[::7]:
        check_cypher(one.query)
        short, ranked = arcade.run(one.query), arcade.run(one.text, one.parameters)
        walked = results(graph, one)
        if one.count:
            assert short.rows == ranked.rows == ((len(walked),),)
            continue
        if one.period is None or one.period[0].place != "edge":  # walks over other edges count here, not there
            assert [row[0].id for row in ranked.rows] == walked, one.text  # type: ignore[union-attr]
        assert {row[0].id for row in short.rows} == set(walked)  # type: ignore[union-attr]
        assert (len(walked), len(set(walked) & set(gold))) == (one.total, one.hits)


def test_of_a_hub_the_rarest_relations_are_followed_and_no_more_is_read_than_the_budget_allows() -> None:
    # 300 films of two kinds -made_in-> land -capital-> city -mayor-> ann; every third film -cites-> the next one
    films = [
        Node(EntityId(f"f{at}"), f"f{at}", ("Film", "Short")[at % 2], {"year": 1990 + at % 9}) for at in range(300)
    ]
    edges = [Triple(film.id, "made_in", EntityId("land")) for film in films]
    edges += [Triple(films[at].id, "cites", films[at + 1].id) for at in range(0, 299, 3)]
    edges += [Triple(EntityId("land"), "capital", EntityId("city")), Triple(EntityId("city"), "mayor", EntityId("ann"))]
    others = [Node(EntityId(name), name) for name in ("land", "city", "ann")]
    graph = ColumnarGraph.from_records([*films, *others], edges)
    anchors = [EntityId("land"), EntityId("f3")]
    gold = [EntityId("ann")]
    asking = Conditions((Period("1995", "1996"),), extremes=(True, False))
    every = whole(CandidateFinder(graph, Templates(TEMPLATES)).find(anchors, gold, asking).items)
    bounded = CandidateFinder(graph, Templates(TEMPLATES, budget=20, described=10)).find(anchors, gold, asking)
    some = whole(bounded.items)
    assert {key: every[key] for key in some} == some  # what is given is exact
    assert {one.metapath for one in bounded.items} >= {("capital",), ("capital", "mayor"), ("cites",)}
    assert not any("made_in" in one.metapath[:1] and one.legs[0].anchor.id == "land" for one in bounded.items)
    assert bounded.truncated[0] == (
        "1 of 2 beginnings of 1-hop paths lead through too many edges: 1 of their 2 relations are followed"
    )
    read = CandidateFinder(graph, Templates(("one_hop",), described=10)).find(anchors, (), asking)
    assert read.truncated == (
        "1 of 1 paths end at too many nodes to look at their types",
        "1 of 4 paths end at too many nodes to look at their values",
    )
    assert {one.metapath for one in read.items if one.period} == set()


OFFICES = ColumnarGraph.from_triples(
    [
        ("Ann", "holds", "m.01"),
        ("m.01", "office", "President"),
        ("Ann", "party", "Greens"),
        ("President", "seat", "Castle"),
        ("Greens", "ideology", "Ecology"),
    ]
)


def test_paths_of_three_edges_lead_through_event_nodes_alone() -> None:
    # Ann -holds-> m.01 -office-> President -seat-> Castle; Ann -party-> Greens -ideology-> Ecology
    found = CandidateFinder(OFFICES).find([EntityId("Castle"), EntityId("Ecology")]).items
    metapaths = {one.metapath for one in found if one.template == "three_hop"}
    assert metapaths == {("^seat", "^office", "^holds")}
    (one,) = [one for one in found if one.metapath == ("^seat", "^office", "^holds")]
    assert results(OFFICES, one) == ["Ann"]
    assert one.query == (
        'MATCH (x1 {name: "Castle"})<-[:seat]-(x2)<-[:office]-(x3)<-[:holds]-(x4) '
        "WHERE x3 <> x1 AND x4 <> x1 RETURN DISTINCT x4"
    )


def test_a_shortlist_has_each_result_once_and_no_more_of_an_anchor_than_its_quota() -> None:
    # Vienna -capital_of-> Austria -capital-> Vienna, and twenty more relations of Vienna alone
    edges = [("Vienna", "capital_of", "Austria"), ("Austria", "capital", "Vienna"), ("Graz", "in", "Styria")]
    graph = ColumnarGraph.from_triples([*edges, *(("Vienna", f"r{at}", f"x{at}") for at in range(20))])
    items = CandidateFinder(graph).find([EntityId("Vienna"), EntityId("Graz")]).items
    kept = shortlist(items, range(len(items)), 10)
    assert len(kept) == 10 and kept == sorted(kept)
    found = [results(graph, items[at]) for at in kept]
    assert len({tuple(one) for one in found}) == 10
    assert [EntityId("Styria")] in found and found.count([EntityId("Austria")]) == 1


@pytest.mark.parametrize(
    ("question", "places"),
    [
        ("who was the first mayor?", [("since", False)]),
        ("which city has the largest population?", [("population", True)]),
        ("who lives in the forest of interest?", []),
    ],
)
def test_orders_are_those_that_the_question_asks_for(question: str, places: list[tuple[str, bool]]) -> None:
    nodes = [Node(EntityId(f"c{at}"), f"c{at}", "City", {"population": 100 + at, "area": at}) for at in range(3)]
    edges = [Triple(EntityId("land"), "has", one.id, properties={"since": 1990 + at}) for at, one in enumerate(nodes)]
    graph = ColumnarGraph.from_records([*nodes, Node(EntityId("land"), "land")], edges)
    found = CandidateFinder(graph).find([EntityId("land")], conditions=Conditions.of(question)).items
    assert sorted((one.extreme[0].key, one.extreme[1]) for one in found if one.extreme) == places


def officers() -> ColumnarGraph:
    # o0 Powell, o1 Powell and o2 Moore -investigates-> c0 (theft), c1 (arson), c1; o0 -knows-> o2; o1 -knows-> o1
    staff = [("Powell", "Chief", 7), ("Powell", "Agent", 8), ("Moore", "Agent", 7)]
    nodes = [
        Node(EntityId(f"o{at}"), f"o{at}", "Officer", {"surname": surname, "rank": rank, "badge_no": badge})
        for at, (surname, rank, badge) in enumerate(staff)
    ]
    nodes += [Node(EntityId(f"c{at}"), f"c{at}", "Crime", {"kind": kind}) for at, kind in enumerate(("theft", "arson"))]
    edges = [("o0", "investigates", "c0"), ("o1", "investigates", "c1"), ("o2", "investigates", "c1")]
    edges += [("o0", "knows", "o2"), ("o1", "knows", "o1"), ("o0", "investigates", "c1")]
    return ColumnarGraph.from_records(nodes, [Triple(EntityId(a), r, EntityId(b)) for a, r, b in edges])


def named(type: str, property: str, value: Value) -> LinkedValue:
    return LinkedValue(type, property, value, Mention(str(value)), 1.0, 1)


def test_candidates_start_from_the_nodes_with_a_value_and_project_the_property_that_is_asked_for(
    arcade: ArcadeStore,
) -> None:
    graph = officers()
    arcade.replace(graph)
    values = [named("Officer", "surname", "Powell"), named("Officer", "badge_no", 8), named("Crime", "kind", "arson")]
    asking = Conditions.of("What rank has officer Powell with badge 8 in the case of arson?", values)
    found = CandidateFinder(graph, Templates(TEMPLATES)).find([EntityId("o0")], [EntityId("c1")], asking, ["Agent"])
    by_query = {one.query: one for one in found.items}
    rank = by_query[
        'MATCH (x1:Officer {surname: "Powell", badge_no: 8}) WHERE x1.rank IS NOT NULL RETURN DISTINCT x1.rank'
    ]
    assert (rank.template, rank.total, rank.hits) == ("holders", 1, 1)
    arson = by_query[
        'MATCH (x1:Officer {name: "o0"})-[:investigates]->(x2:Crime {kind: "arson"}) WHERE x2 <> x1 RETURN DISTINCT x2'
    ]
    assert (arson.total, arson.hits, results(graph, arson)) == (1, 1, ["c1"])
    assert {len(one.legs) for one in found.items} == {1, 2}
    for one in found.items:
        rows = [row[0] for row in arcade.run(one.text, one.parameters).rows]
        assert [row[0] for row in arcade.run(one.query).rows] != [] and len(rows) == one.total, one.query
        walked = results(graph, one)
        if one.asked:
            assert {node.properties.get(one.asked) for node in graph.nodes(walked)} >= set(rows)
        elif not one.count:
            assert [row.id for row in rows] == walked, one.query  # type: ignore[union-attr]
