"""Tests of `Nearness`, and of schemas that begin with what lies around the entities of a question."""

from __future__ import annotations

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.schema_text import Nearness, SchemaRenderer
from byokg.index.embedders import StaticEmbedder
from byokg.types import EntityId

EMBEDDER = StaticEmbedder()

#   Ann -person.spouse-> m.0m1 -marriage.spouse-> Bob -person.born-> Lima -city.country-> Peru
#   far0 … far29 -far.thing-> other0 … other29;  country0 … -country.cities-> city0 … -city.country-> country0 …
EDGES = [
    ("Ann", "person.spouse", "m.0m1"),
    ("m.0m1", "marriage.spouse", "Bob"),
    ("Bob", "person.born", "Lima"),
    ("Lima", "city.country", "Peru"),
    *((f"far{at}", "far.thing", f"other{at}") for at in range(30)),
    *((f"country{at}", "country.cities", f"city{at}") for at in range(10)),
    *((f"city{at}", "city.country", f"country{at}") for at in range(10)),
]


def graph() -> ColumnarGraph:
    return ColumnarGraph.from_triples(EDGES)


def test_relations_are_one_step_away_or_two_or_behind_a_nameless_node() -> None:
    near = Nearness(graph()).around([EntityId("Ann")])
    assert near == {"person.spouse": 1, "marriage.spouse": 2, "person.born": 3}
    assert Nearness(graph()).around([EntityId("Bob")]) == {
        "person.born": 1,
        "marriage.spouse": 1,
        "city.country": 2,
        "person.spouse": 2,
    }


def test_around_nothing_nothing_is_near() -> None:
    assert Nearness(graph()).around([]) == {}


def test_what_leads_on_from_nameless_nodes_is_company() -> None:
    company = Nearness(graph()).company
    assert company["person.spouse"] == ("marriage.spouse",) and "far.thing" not in company


def order(question: str, *around: str) -> list[str]:
    store = graph()
    renderer = SchemaRenderer(store.schema(), EMBEDDER, near=Nearness(store))
    return list(renderer.render(question, 2000, [EntityId(each) for each in around]).relations)


def test_near_relations_come_before_frequent_ones() -> None:
    near = order("who?", "Bob")
    assert near.index("person.born") < near.index("far.thing")


def test_one_that_says_the_same_the_other_way_round_is_as_near() -> None:
    near = order("who?", "Lima")  # which is in no list of a country's cities
    assert {"city.country", "country.cities"} <= set(near[:3])
    assert near.index("country.cities") < near.index("far.thing")
