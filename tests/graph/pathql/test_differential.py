"""Path queries that are made up, beside their definition; `benchmarks/paths_differential.py` asks thousands of them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.paths_differential import Writer, cases, difference, main, stored
from benchmarks.paths_reference import Algebra, Edge, Iri, Query, Reference, SmallGraph, Var, literal
from byokg.graph.pathql.evaluate import paths

S, E, P, R = Var("s"), Var("e"), Var("p"), Iri("r")


def small() -> SmallGraph:
    """a -r-> b -s-> c, a -s-> b, and b of size 1."""
    edges = [Edge(0, "a", "r", "b", 1), Edge(1, "b", "s", "c", None), Edge(2, "a", "s", "b", None)]
    return SmallGraph({"a": ((), {}), "b": ("Town", {"size": 1}), "c": ((), {})}, edges)


@settings(max_examples=25)
@given(st.integers(0, 1 << 40))
def test_answers_are_those_of_the_definition(seed: int) -> None:
    for case in cases(seed, 8, ("columnar", "generic")):
        assert not case.differences, (case.text, case.rules, case.differences, case.graph)


def test_patterns_of_the_definition_are_those_of_sparql() -> None:
    pytest.importorskip("pyoxigraph")
    for case in cases(5, 400, ("sparql",)):
        assert not case.differences, (case.text, case.differences)


def test_a_store_behind_sparql_gives_the_same_answers() -> None:
    pytest.importorskip("pyoxigraph")
    for case in cases(6, 8, ("oxigraph",)):
        assert not case.differences, (case.text, case.differences)


# The definition itself, by hand


def test_the_definition_solves_patterns() -> None:
    algebra = Algebra(small())
    triple = ("triple", S, P, E, ())
    assert [each["s"].text for each in algebra.solve([triple, ("filter", ("!=", P, R))])] == ["a", "b", "b"]
    assert algebra.solve([triple, ("filter", ("=", E, literal(1)))]) == [
        {"s": Iri("b"), "p": Iri("size"), "e": literal(1)}
    ]
    assert algebra.solve([("triple", S, ("{}", ("any",), 2, 2), E, ())]) == [{"s": Iri("a"), "e": Iri("c")}]
    assert algebra.solve([("type", S, Var("k"))]) == [{"s": Iri("b"), "k": Iri("Town")}]
    optional = [("triple", S, R, E, ()), ("optional", [("triple", E, R, Var("z"), ())])]
    assert algebra.solve(optional) == [{"s": Iri("a"), "e": Iri("b")}]
    assert algebra.solve([triple, ("minus", [("triple", S, R, Var("z"), ())])])[0]["s"].text == "b"


def test_the_definition_lists_paths() -> None:
    reference = Reference(small())
    found = reference.answers(Query(("group", [("triple", S, P, E, ()), ("filter", ("!=", P, R))]), "ALL"))
    assert {pair: len(walks) for pair, (walks, _) in found.items()} == {("a", "b"): 1, ("a", "c"): 1, ("b", "c"): 1}
    assert {pair: len(walks) for pair, (walks, _) in reference.answers(Query(("any", "p"), "ALL")).items()} == {
        ("a", "b"): 2,
        ("a", "c"): 2,
        ("b", "c"): 1,
    }


def test_a_wrong_answer_is_a_difference() -> None:
    query = Query(("any", "p"), "ALL")
    wrong = Query(("group", [("triple", S, P, E, ()), ("filter", ("!=", P, R))]), "ALL")
    result = paths(stored(small()), Writer("").query(wrong))
    assert difference(wrong, Reference(small()), result, {}) == ""
    assert difference(query, Reference(small()), result, {}) == "3 paths, and there are 5"


def test_the_table_counts_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(random.Random(1).randint(0, 99)), "40", "--stores", "columnar"]) == 0
    assert "cases" in capsys.readouterr().out
