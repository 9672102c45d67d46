"""Tests of `byokg.graph.inverses`: which relations say the same the other way round."""

from __future__ import annotations

import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.inverses import inverse_relations
from tests.graph.test_own_store import OwnStore

FILMS = range(20)


def found(*triples: tuple[str, str, str]) -> dict[str, set[str]]:
    return {one: set(others) for one, others in inverse_relations(ColumnarGraph.from_triples(triples)).items()}


def test_a_relation_and_the_one_that_turns_it_round() -> None:
    both = [(f"f{at}", "film.directed_by", f"d{at}") for at in FILMS]
    assert found(*both, *((d, "director.film", f) for f, _, d in both)) == {
        "film.directed_by": {"director.film"},
        "director.film": {"film.directed_by"},
    }


def test_one_that_means_the_same_both_ways_turns_itself_round() -> None:
    pairs = [(f"a{at}", "spouse", f"b{at}") for at in FILMS]
    assert found(*pairs, *((b, "spouse", a) for a, _, b in pairs)) == {"spouse": {"spouse"}}


def test_edges_that_a_graph_has_one_way_only_say_nothing() -> None:
    one_way = [(f"f{at}", "film.directed_by", f"d{at}") for at in FILMS]
    back = [(f"d{at}", "director.film", f"f{at}") for at in range(5)]
    assert found(*one_way, *back)["director.film"] == {"film.directed_by"}


def test_directors_who_produce_some_of_their_films_make_neither_fact_the_other() -> None:
    # Each directs four films, and produced one of them; somebody else produced the others.
    directed = [(f"d{at // 4}", "director.film", f"f{at}") for at in FILMS]
    produced = [(f"f{at}", "film.produced_by", "somebody" if at % 4 else f"d{at // 4}") for at in FILMS]
    assert found(*directed, *produced) == {}


def test_capitals_that_are_in_their_countries_stay_capitals() -> None:
    within = [(f"town{at}", "location.containedby", f"country{at % 4}") for at in FILMS]
    capital = [(f"country{at}", "country.capital", f"town{at}") for at in range(4)]
    assert found(*within, *capital) == {}


def test_long_lists_that_are_cut_are_known_by_their_names() -> None:
    within = [(f"town{at}", "location.containedby", f"country{at % 2}") for at in range(30)]
    contains = [(f"country{at % 2}", "location.contains", f"other{at}") for at in range(30)]
    contains += [("country0", "location.contains", "town0"), ("country1", "location.contains", "town1")]
    towns = [(f"other{at}", "location.containedby", f"country{at % 2}") for at in range(30)]
    assert found(*within, *contains, *towns)["location.contains"] == {"location.containedby"}


@pytest.mark.parametrize(
    ("other", "told"), [("character.children", True), ("character.friends", False), ("children", False)]
)
def test_relations_of_one_thing_are_known_by_the_names_of_inverse_ones_elsewhere(other: str, told: bool) -> None:
    people = [(f"a{at}", "person.parents", f"b{at}") for at in FILMS]
    people += [(b, "person.children", a) for a, _, b in people]
    figures = [(f"c{at}", "character.parents", f"d{at % 10}") for at in FILMS]  # half of them are turned round
    figures += [(f"d{at}", other, f"c{at}") for at in range(10)]
    figures += [(f"d{at % 10}", other, f"e{at}") for at in FILMS]
    figures += [(f"e{at}", "character.parents", "nobody") for at in FILMS]
    assert (found(*people, *figures).get("character.parents") == {other}) is told


@pytest.mark.parametrize("other", ["hates", "likes"])
def test_one_edge_back_may_be_chance(other: str) -> None:
    assert found(("a", "likes", "b"), ("b", other, "a"), ("c", "likes", "d")) == {}


def test_loops_turn_nothing_round() -> None:
    assert found(*((f"a{at}", relation, f"a{at}") for at in FILMS for relation in ("r", "s"))) == {}


def test_a_graph_whose_arrays_are_elsewhere_is_not_scanned() -> None:
    triples = [(f"a{at}", relation, f"b{at}") for at in FILMS for relation in ("r", "^r")]
    assert inverse_relations(OwnStore(ColumnarGraph.from_triples(triples))) == {}
