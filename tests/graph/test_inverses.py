"""Tests of `byokg.graph.inverses`: which relations say the same the other way round."""

from __future__ import annotations

import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.inverses import inverse_relations, twin_relations, twin_steps, unite_step, unite_steps
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


def twins(*triples: tuple[str, str, str]) -> dict[str, str]:
    return dict(twin_relations(ColumnarGraph.from_triples(triples)))


def test_a_twin_is_the_best_of_several_inverses() -> None:
    capital = [(f"c{at}", "country.capital", f"t{at}") for at in FILMS]
    back = [(t, "city.capital_of", c) for c, _, t in capital]
    some = [(t, "city.seat_of", c) for c, _, t in capital[:12]]
    assert twins(*capital, *back, *some) == {"country.capital": "city.capital_of", "city.capital_of": "country.capital"}


def test_a_symmetric_relation_is_its_own_twin() -> None:
    pairs = [(f"a{at}", "spouse", f"b{at}") for at in FILMS]
    assert twins(*pairs, *((b, "spouse", a) for a, _, b in pairs)) == {"spouse": "spouse"}


# Each event is stored at one of its ends only: half of the ceremonies list the nominations, the others are listed by
# them. Ten other pairs of such relations are told by their edges.
def events(told: int) -> list[tuple[str, str, str]]:
    triples = []
    for kind in range(told):
        pairs = [(f"h{kind}-{at}", f"house{kind}.owner{kind}", f"o{kind}-{at}") for at in range(8)]
        triples += [*pairs, *((o, f"owner{kind}.house{kind}", h) for h, _, o in pairs)]
    triples += [(f"ceremony{at}", "ceremony.nominees", f"n{at}") for at in range(8)]
    triples += [(f"n{at}", "nomination.ceremony", f"ceremony{at}") for at in range(8, 16)]
    triples += [(f"n{at}", "nomination.year", "1999") for at in range(16)]
    return [*triples, *((f"ceremony{at}", "ceremony.place", "Rome") for at in range(16))]


@pytest.mark.parametrize(("told", "found"), [(10, "nomination.ceremony"), (3, None)])
def test_mirrored_signatures_make_twins_in_a_graph_that_stores_facts_both_ways(told: int, found: str | None) -> None:
    assert twins(*events(told)).get("ceremony.nominees") == found


def test_a_town_has_a_mayor_who_need_not_live_there() -> None:
    lives = [(f"p{at}", "person.lives_in", f"town{at % 5}") for at in range(30)]
    mayors = [(f"town{at}", "town.mayor", f"p{at + 7}") for at in range(5)]
    assert twins(*lives, *mayors) == {}


def test_twins_may_be_stated() -> None:
    triples = [("a", "x.r", "b"), ("c", "y.s", "d"), ("x.r", "http://www.w3.org/2002/07/owl#inverseOf", "y.s")]
    assert twins(*triples) == {"x.r": "y.s", "y.s": "x.r"}


def test_shortcuts_over_mediators_are_twins_by_their_parts() -> None:
    triples = []
    for at in FILMS:
        triples += [(f"a{at}", "actor.roles", f"m{at}"), (f"m{at}", "role.actor", f"a{at}")]
        triples += [(f"m{at}", "role.film", f"f{at}"), (f"f{at}", "film.cast", f"m{at}")]
    triples += [("a0", "actor.roles..role.film", "f0"), ("f1", "film.cast..role.actor", "a1")]
    assert twins(*triples)["actor.roles..role.film"] == "film.cast..role.actor"


def test_a_step_and_the_one_along_its_twin_are_united_in_the_step_without_a_sign() -> None:
    both = [(f"f{at}", "film.directed_by", f"d{at}") for at in FILMS]
    graph = ColumnarGraph.from_triples([*both, *((d, "director.film", f) for f, _, d in both), ("f0", "year", "1999")])
    known = twin_relations(graph)
    assert [unite_step(step, known) for step in ("^director.film", "film.directed_by", "^year")] == [
        "film.directed_by",
        "film.directed_by",
        "^year",
    ]
    relations = ["film.directed_by", "director.film", "year"]
    steps = twin_steps(graph, relations)
    assert steps.tolist() == [3, 2, 1, 0, 4, 5]
    assert unite_steps(steps).tolist() == [0, 2, 2, 0, 4, 5]
