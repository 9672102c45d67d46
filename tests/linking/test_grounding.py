"""Tests of `byokg.linking.grounding`, over a small register of persons that needs no engine."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from byokg.graph import value_indexes
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.index.values import ValueColumn, ValueIndex
from byokg.linking.grounding import GroundedLiteral, LiteralGrounder
from byokg.types import EntityId, Node, Triple


@pytest.fixture(scope="module")
def grounder() -> LiteralGrounder:
    """Return a grounder over persons with surnames, ages and cities, and officers with badge numbers."""
    people = [
        ("1", "Powell", 41, "Leeds"),
        ("2", "Powell", 35, "York"),
        ("3", "Reed", 41, "Leeds"),
        ("4", "Reid", 29, "Kingston upon Hull"),
        ("5", "Smith", 62, "york"),
    ]
    nodes = [
        Node(EntityId(id), "", "Person", {"surname": surname, "age": age, "city": city})
        for id, surname, age, city in people
    ]
    nodes += [
        Node(EntityId(f"o{id}"), "", "Officer", {"badge": badge})
        for id, badge in (("1", "70-51197"), ("2", "26-51134"))
    ]
    return LiteralGrounder(ColumnarGraph.from_records(nodes, []))


def grounded(grounder: LiteralGrounder, where: str) -> list[GroundedLiteral]:
    return grounder.ground("cypher", f"MATCH (p:Person) WHERE {where} RETURN p.surname")


def substituted(grounder: LiteralGrounder, where: str) -> str:
    """Return the condition with its best readings."""
    query = f"MATCH (p:Person) WHERE {where} RETURN p.surname"
    found = grounder.ground("cypher", query)
    text, _ = next(grounder.substituted("cypher", query, found), (query, ()))
    return text.removeprefix("MATCH (p:Person) WHERE ").removesuffix(" RETURN p.surname")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("p.surname = 'Powel'", "p.surname = 'Powell'"),
        ("p.surname = 'POWELL'", "p.surname = 'Powell'"),
        ('p.surname = "Ms Powell"', 'p.surname = "Powell"'),
        ("p.city = 'Hull, Kingston upon'", "p.city = 'Kingston upon Hull'"),
        ("p.city = 'Kingst. upon Hull'", "p.city = 'Kingston upon Hull'"),
        ("p.age = '41'", "p.age = 41"),
        ("toLower(p.surname) = 'powel'", "toLower(p.surname) = 'powell'"),
        ("'Powel' = p.surname", "'Powell' = p.surname"),
        ("p.surname IN ['Powel', 'Smyth']", "p.surname IN ['Powell', 'Smith']"),
        ("p.city = 'Powell'", "p.`surname` = 'Powell'"),
    ],
)
def test_a_literal_is_read_as_the_stored_value(grounder: LiteralGrounder, written: str, meant: str) -> None:
    assert substituted(grounder, written) == meant


@pytest.mark.parametrize(
    "where",
    [
        "p.surname = 'Powell' AND p.age = 41",
        "p.surname CONTAINS 'owel'",
        "toLower(p.surname) STARTS WITH 'pow'",
        "p.surname IN ['Powell', 'Smyth']",  # one of several, which need not be there
        "p.age > 41 AND p.age < 99",
        "p.age % 10 = 1",
        "p.surname <> 'Reed'",
        "p.nickname = 'Powel'",
    ],
)
def test_a_literal_that_the_graph_holds_or_cannot_decide_stays(grounder: LiteralGrounder, where: str) -> None:
    assert grounded(grounder, where) == []


def test_a_literal_between_two_values_is_not_certain(grounder: LiteralGrounder) -> None:
    (found,) = grounded(grounder, "p.surname = 'Rejd'")
    assert [one.value for one in found.readings] == ["Reid", "Reed"] or not found.certain
    assert "'Reid' (Person.surname, 1)" in found.format_problem()


def test_values_that_differ_in_case_alone_are_not_certain(grounder: LiteralGrounder) -> None:
    (found,) = grounded(grounder, "p.city = 'YORK'")
    assert not found.certain and {one.value for one in found.readings} == {"York", "york"}


def test_a_value_that_is_nowhere_has_no_reading(grounder: LiteralGrounder) -> None:
    (found,) = grounded(grounder, "p.surname = 'Zylberstein'")
    assert found.readings == ()
    assert found.format_problem() == "no Person.surname equals 'Zylberstein', nor does any value come near"


def test_identifiers_are_read_by_their_nearest(grounder: LiteralGrounder) -> None:
    (found,) = grounder.ground("cypher", "MATCH (o:Officer {badge: '70-51179'}) RETURN o")
    assert found.certain and found.readings[0].value == "70-51197"


def test_many_uncertain_literals_give_few_queries(grounder: LiteralGrounder) -> None:
    listed = ", ".join(f"'Re{letter}d'" for letter in "bcfghjklmnpqrst")
    query = f"MATCH (p:Person) WHERE p.surname IN [{listed}] RETURN p"
    assert 0 < len(list(grounder.substituted("cypher", query, grounder.ground("cypher", query)))) <= 12
    assert grounder.ground("cypher", query.replace("[", "[" + "'Powel', " * 100)) == []


def test_a_value_of_another_property_is_no_exact_reading(grounder: LiteralGrounder) -> None:
    (found,) = grounded(grounder, "p.id = 'Powell'")
    assert found.certain and not found.exact
    assert grounded(grounder, "p.age = '41'")[0].exact


def test_a_property_that_is_not_in_the_index_stays(grounder: LiteralGrounder) -> None:
    columns = [pa.array(["Powell", "Reed"]), pa.array(["Leeds"])]
    named = zip(("surname", "city"), columns, strict=True)
    index = ValueIndex.build([ValueColumn("Person", key, held, np.ones(len(held), np.int64), 5) for key, held in named])
    part = LiteralGrounder(grounder.store, index)
    assert grounded(part, "p.age = 'Leeds'") == []
    assert [one.use.text for one in grounded(part, "p.surname = 'Leeds' AND p.age = 'Leeds'")] == ["Leeds"]


@pytest.mark.parametrize("comparison", ["=", "CONTAINS", "STARTS WITH", "ENDS WITH"])
def test_a_long_literal_is_compared(grounder: LiteralGrounder, comparison: str) -> None:
    (found,) = grounded(grounder, f"toLower(p.surname) {comparison} '{'é' * 190_000}'")
    assert found.readings == () and len(found.format_problem()) < 200


def test_quotes_and_backslashes_survive(grounder: LiteralGrounder) -> None:
    query = "MATCH (p:Person {surname: \"Powel\"}) WHERE p.note = 'it\\'s' RETURN p"
    found = grounder.ground("cypher", query)
    (text, lines), *_ = grounder.substituted("cypher", query, found)
    assert '"Powell"' in text and "'it\\'s'" in text
    assert lines == ("'Powel' read as 'Powell' (Person.surname, 2 nodes)",)


@pytest.fixture(scope="module")
def cast() -> LiteralGrounder:
    """Return a grounder over films whose edges hold the role, its kind and a number of days, and a year of reviews."""
    played = [("1", "Neo", "lead", 90), ("2", "Trinity", "lead", 80), ("3", "Agent Smith", "support", 80)]
    people = [Node(EntityId(id), f"Actor {id}", "Person", {"city": "Leeds"}) for id, *_ in played]
    edges = [
        Triple(EntityId(id), "ACTED_IN", EntityId("film"), properties={"name": role, "kind": kind, "days": days})
        for id, role, kind, days in played
    ]
    edges += [Triple(EntityId("1"), "REVIEWED", EntityId("film"), properties={"mark": "lead balloon"})]
    edges += [Triple(EntityId("2"), "LIKES", EntityId("film"))]
    return LiteralGrounder(ColumnarGraph.from_records([*people, Node(EntityId("film"), "Matrix", "Film")], edges))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("r.name = 'Trinitty'", "r.name = 'Trinity'"),
        ("r.name = 'agent smith'", "r.name = 'Agent Smith'"),
        ("r.kind = 'Neo'", "r.`name` = 'Neo'"),
        ("r.name = 'Support'", "r.`kind` = 'support'"),
        ("r.days = '90'", "r.days = 90"),
        ("toLower(r.name) = 'trinitty'", "toLower(r.name) = 'trinity'"),
        ("r.name = 'Neo' AND a.city = 'Leeds'", "r.name = 'Neo' AND a.city = 'Leeds'"),
        ("r.name = 'Leeds'", "r.name = 'Leeds'"),
        ("r.name CONTAINS 'Smith' AND r.days > 3", "r.name CONTAINS 'Smith' AND r.days > 3"),
    ],
)
def test_a_literal_of_an_edge_is_read_as_a_value_of_its_relation(
    cast: LiteralGrounder, written: str, meant: str
) -> None:
    query = f"MATCH (a:Person)-[r:ACTED_IN]->(f:Film) WHERE {written} RETURN f.name"
    text, _ = next(cast.substituted("cypher", query, cast.ground("cypher", query)), (query, ()))
    assert text == query.replace(written, meant)


def test_a_reading_of_an_edge_names_the_relation_and_the_edges(cast: LiteralGrounder) -> None:
    query = "MATCH (:Person)-[:ACTED_IN {kind: 'Lead'}]->(f) RETURN f"
    (found,) = cast.ground("cypher", query)
    assert found.exact and found.format_reading(found.readings[0]) == "'Lead' read as 'lead' (ACTED_IN.kind, 2 edges)"
    (found,) = cast.ground("cypher", query.replace("Lead", "Zylberstein"))
    assert found.format_problem() == "no ACTED_IN.kind equals 'Zylberstein', nor does any value come near"


def test_a_literal_of_an_edge_is_read_on_an_engine(cast: LiteralGrounder, arcade_process: ArcadeStore) -> None:
    assert isinstance(cast.store, ColumnarGraph)
    arcade_process.replace(cast.store)
    query = "MATCH (a)-[r:ACTED_IN]->(f) WHERE r.name = 'Trinitty' RETURN a.name"
    assert arcade_process.run(query).rows == ()
    grounder = LiteralGrounder(arcade_process)
    ((text, lines),) = grounder.substituted("cypher", query, grounder.ground("cypher", query))
    assert lines == ("'Trinitty' read as 'Trinity' (ACTED_IN.name, 1 edge)",)
    assert arcade_process.run(text).rows == (("Actor 2",),)


def test_literals_of_edges_that_are_in_no_index_stay(cast: LiteralGrounder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_indexes, "_MOST", 4)
    assert LiteralGrounder(cast.store).ground("cypher", "MATCH ()-[r:ACTED_IN {kind: 'Lead'}]->(f) RETURN f") == []
    assert cast.ground("cypher", "MATCH ()-[r:LIKES {kind: 'Zylberstein'}]->(f) RETURN f") == []
