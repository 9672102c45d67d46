"""Tests of `byokg.retrieval.dead_ends`: what is told of a path or query that led nowhere."""

from __future__ import annotations

import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.store import QueryLimits, Rows
from byokg.retrieval.dead_ends import emptied_by, node_formats, path_dead_end, quoted_relations
from byokg.types import EntityId


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


def test_the_clause_that_leaves_nothing_is_named() -> None:
    asked: list[str] = []

    def run(text: str, limits: QueryLimits) -> Rows:
        asked.append(text)
        return Rows(("one",), () if "WHERE" in text else ((1,),))

    query = "MATCH (a:Film) MATCH (a)-[:by]->(p) WHERE p.name STARTS WITH 'x' WITH p RETURN p"
    assert emptied_by(query, run, 5) == "\"WHERE p.name STARTS WITH 'x'\" leaves nothing"
    assert asked[0] == "MATCH (a:Film)  RETURN 1 AS one LIMIT 1" and len(asked) == 3


def test_a_step_against_its_relation_is_told() -> None:
    def run(text: str, limits: QueryLimits) -> Rows:
        return Rows(("one",), () if "->" in text else ((1,),))

    assert "without its arrows" in emptied_by("MATCH (a)-[:by]->(p) RETURN p", run, 5)


def test_nothing_is_said_after_the_time_limit() -> None:
    assert emptied_by("MATCH (a) RETURN a", lambda text, limits: Rows((), ()), 0) == ""
