"""Tests of `byokg.retrieval.query_feedback`: what is told of a path or query that led nowhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.graph.store import QueryLimits, Rows
from byokg.retrieval.query_feedback import emptied_by, emptied_sparql, node_formats, path_dead_end, quoted_relations
from byokg.types import EntityId, Node, Triple


def test_a_path_says_how_far_it_went_and_what_goes_on_from_there() -> None:
    # a -r-> b -next_step-> c, b -s-> d
    store = ColumnarGraph.from_triples([("a", "r", "b"), ("b", "next_step", "c"), ("b", "s", "d"), ("x", "step", "y")])
    assert path_dead_end(store, ("r", "step"), [EntityId("a")]) == (
        "no linked entity has such a path, in any direction; only r can be walked; "
        "from there lead, either way: next_step, r, s"
    )
    assert "not even its first relation is there; from there lead, either way: r" in path_dead_end(
        store, ("step", "r"), [EntityId("a")]
    )


def test_what_dates_and_numbers_look_like_that_are_nodes() -> None:
    # Heat -film.directed_by-> Mann -person.born-> 1943-02-05, Heat -film.year-> 1995; person.born.place is another
    edges = [("Heat", "film.directed_by", "Mann"), ("Mann", "person.born", "1943-02-05"), ("Heat", "film.year", "1995")]
    store = ColumnarGraph.from_triples([*edges, ("Mann", "person.born.place", "7")])
    query = "MATCH (a)-[:`film.directed_by`]->()-[:`person.born`]->(b) WHERE b.name = RETURN a"
    told = ["'person.born' leads to nodes that are called like '1943-02-05'"]
    assert node_formats(store, [EntityId("Heat")], query) == told
    assert node_formats(store, [], query) == []


@pytest.mark.parametrize(
    ("written", "quoted"),
    [
        ("MATCH (a)-[:film.film.genre]->(b) RETURN b.name", "MATCH (a)-[:`film.film.genre`]->(b) RETURN b.name"),
        ("MATCH (a)-[r:a.b|c.d..e.f]-(b) RETURN b", "MATCH (a)-[r:`a.b`|`c.d..e.f`]-(b) RETURN b"),
        ("MATCH (a)-[:`a.b`|c]-(b {x: a.y}) RETURN b", "MATCH (a)-[:`a.b`|c]-(b {x: a.y}) RETURN b"),
        ("MATCH (a)-[:R*1..3]->(b) RETURN [x IN b.l | x.y]", "MATCH (a)-[:R*1..3]->(b) RETURN [x IN b.l | x.y]"),
        ("MATCH (a)-[:R {since: a.b}]->(b) RETURN b", "MATCH (a)-[:R {since: a.b}]->(b) RETURN b"),
    ],
)
def test_relation_types_with_dots_are_quoted_and_nothing_else_is(written: str, quoted: str) -> None:
    assert quoted_relations(written) == quoted


def graph_run(store: ArcadeStore) -> Callable[[str, QueryLimits], Rows]:
    return lambda text, limits: store.run(text, limits=limits)


FIRST = "the first pattern that gives no row"
TURKEY, ANKARA = 't.name = "Turkey"', 'toLower(c.name) = toLower("Ankara")'


@pytest.mark.parametrize(
    ("query", "told"),
    [
        # Turkey is there, and has no relation speaks: the relation is to blame, not the name.
        (
            f"MATCH (t:Country)-[:speaks]->(l) WHERE {TURKEY} RETURN l",
            f"'(t:Country)-[:speaks]->(l)' is {FIRST}; 't.name = \"Turkey\"' alone gives rows",
        ),
        (
            "MATCH (l)<-[:speaks]-(:Country {name: 'Turkey'}) RETURN l",
            f"\"(l)<-[:speaks]-(:Country {{name: 'Turkey'}})\" is {FIRST}",
        ),
        (
            f"MATCH (t)-[:capital]->(c) WHERE {TURKEY} AND c.name = 'Paris X' RETURN c",
            "no node matches \"c.name = 'Paris X'\"",
        ),
        (
            f"MATCH (t)-[:capital]->(c) WHERE {TURKEY} AND c.name = 'Paris' RETURN c",
            "\"c.name = 'Paris'\" leaves nothing of '(t)-[:capital]->(c)'",
        ),
        (
            f"MATCH p = (c:City)-[:capital]->(t) WHERE {TURKEY} AND {ANKARA} RETURN p",
            f"'(c:City)-[:capital]->(t)' is {FIRST} (it finds something without its arrows: a relation points the "
            "other way)",
        ),
        (
            f"MATCH (t)-[:capital]->(c), (c)-[r:twin]-(d)-->(e) WHERE {TURKEY} AND d.name <> c.name RETURN e",
            f"'(c)-[r:twin]-(d)' is {FIRST}",
        ),
        (
            f"MATCH (t)-[:capital]->(c) MATCH (c)-[:river]->() WHERE {TURKEY} WITH c RETURN c",
            f"'(c)-[:river]->()' is {FIRST}",
        ),
        ("MATCH (a)-[:speaks]->(b) WHERE a.name = 'France' OR b.name = 'x' RETURN a", ""),
    ],
)
def test_the_first_part_that_gives_no_row_is_named(arcade_process: ArcadeStore, query: str, told: str) -> None:
    # Turkey -capital-> Ankara, France -capital-> Paris, France -speaks-> French
    kinds = {"Turkey": "Country", "France": "Country", "Ankara": "City", "Paris": "City", "French": "Language"}
    edges = [("Turkey", "capital", "Ankara"), ("France", "capital", "Paris"), ("France", "speaks", "French")]
    arcade_process.replace(
        ColumnarGraph.from_records(
            [Node(EntityId(id), id, kind) for id, kind in kinds.items()],
            [Triple(EntityId(head), relation, EntityId(tail)) for head, relation, tail in edges],
        )
    )
    assert emptied_by(query, graph_run(arcade_process), 10) == told


def test_a_step_against_its_relation_is_told() -> None:
    def run(text: str, limits: QueryLimits) -> Rows:
        return Rows(("one",), () if "->" in text else ((1,),))

    assert "without its arrows" in emptied_by("MATCH (a)-[:by]->(p) RETURN p", run, 5)


def test_what_is_no_chain_of_nodes_is_named_by_clause() -> None:
    def run(text: str, limits: QueryLimits) -> Rows:
        return Rows(("one",), () if "WHERE" in text else ((1,),))

    query = "MATCH p = shortestPath((a)-[*]-(b)) WHERE a.x = 1 RETURN p"
    assert emptied_by(query, run, 5) == "'WHERE a.x = 1' leaves nothing"


def test_in_sparql_a_label_that_exists_is_not_blamed_for_a_pattern_before_it() -> None:
    def run(text: str, limits: QueryLimits) -> Rows:
        return Rows(("t",), () if "speaks" in text or "> 2000" in text else (("x",),))

    query = 'SELECT ?l WHERE { ?t kg:speaks ?l . ?t rdfs:label "Turkey" . FILTER(?l = ?l) }'
    assert emptied_sparql(query, run, 5) == "'?t kg:speaks ?l .' leaves nothing"
    query = 'SELECT ?l WHERE { ?t kg:year ?y . ?t rdfs:label "Turkey" ; kg:x ?x . FILTER(?y > 2000) ?x kg:speaks ?l }'
    assert emptied_sparql(query, run, 5) == "'FILTER(?y > 2000)' leaves nothing"


def test_nothing_is_said_after_the_time_limit() -> None:
    assert emptied_by("MATCH (a) RETURN a", lambda text, limits: Rows((), ()), 0) == ""


def test_a_path_that_is_walked_to_a_different_end_from_each_entity_says_so_for_each() -> None:
    # a -r-> b -t-> c; d -t-> c; x -s-> y
    store = ColumnarGraph.from_triples([("a", "r", "b"), ("b", "t", "c"), ("d", "t", "c"), ("x", "s", "y")])
    assert path_dead_end(store, ("r", "s"), [EntityId("a"), EntityId("d")]) == (
        "no linked entity has such a path, in any direction; not even its first relation is there from d; "
        "only r can be walked from a; from there lead, either way: r, t"
    )
