"""Tests of `byokg.graph.guard.literals`."""

from __future__ import annotations

import pytest

from byokg.errors import QueryRefused
from byokg.graph.guard.literals import literals_in, returned_properties
from byokg.types import Language


def uses(language: Language, text: str) -> list[tuple[str, str, str]]:
    """Return value, property and comparison of each literal."""
    return [
        (one.text, one.property.rpartition("/")[2].strip(">"), one.comparison) for one in literals_in(language, text)
    ]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a.k = 'x'", [("x", "k", "=")]),
        ("'x' = a.k", [("x", "k", "=")]),
        ("a.k IN ['x', \"y\"]", [("x", "k", "="), ("y", "k", "=")]),
        ("toLower(a.k) CONTAINS toLower('X')", [("X", "k", "contains")]),
        ("a.k STARTS WITH 'x' AND a.l ENDS WITH 'y'", [("x", "k", "starts"), ("y", "l", "ends")]),
        ("a.k = 3", [("3", "k", "=")]),
        ("a.k = 3 + 4", []),
        ("a.k > 'x'", []),
        ("a.k % 10 = a.l", []),
        ("a.k = 'it\\'s'", [("it's", "k", "=")]),
    ],
)
def test_cypher(condition: str, expected: list[tuple[str, str, str]]) -> None:
    assert uses("cypher", f"MATCH (a:A) WHERE {condition} RETURN a") == expected


def test_literals_of_patterns_and_renamed_columns() -> None:
    query = "MATCH (a:A {k: 'x'})-[:r {since: 'never'}]->(b:B WHERE b.l = 'y') WITH a.m AS m WHERE m = 'z' RETURN m"
    found = literals_in("cypher", query)
    assert [(one.text, one.types, one.property) for one in found] == [
        ("x", ("A",), "k"),
        ("never", ("r",), "since"),
        ("y", ("B",), "l"),
        ("z", ("A",), "m"),
    ]
    assert [query[one.start : one.stop] for one in found] == ["'x'", "'never'", "'y'", "'z'"]
    assert [one.edge for one in found] == [False, True, False, False]


def test_sparql() -> None:
    text = """PREFIX e: <http://e/> SELECT ?s WHERE { ?s e:name "A"@en , "B" ; e:city ?c ; e:day ?d .
        VALUES ?d { "x" "y"@en } FILTER(LCASE(STR(?c)) = "z" || CONTAINS(?c, "w") || ?c IN ("u", "v")) }"""
    assert uses("sparql", text) == [
        ("A", "name", "="),
        ("B", "name", "="),
        ("x", "day", "="),
        ("y", "day", "="),
        ("z", "city", "="),
        ("w", "city", "contains"),
        ("u", "city", "="),
        ("v", "city", "="),
    ]


def test_a_text_that_is_no_query_is_refused() -> None:
    with pytest.raises(QueryRefused):
        literals_in("cypher", "MATCH (a {k: 'x'")


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        (
            "MATCH (o:Order) WHERE o.a STARTS WITH 'x' RETURN DISTINCT o.id AS one, count(o) AS n ORDER BY n LIMIT 3",
            [(("Order",), "id"), ((), "")],
        ),
        ("MATCH (g:Genre)--(m) WITH g.name AS genre, count(m) AS n RETURN genre, n", [(("Genre",), "name"), ((), "")]),
        ("MATCH (o)-[r]-() RETURN [o.a, 2], o.`x y`, r.since, o", [((), ""), ((), "x y"), ((), ""), ((), "")]),
        ("MATCH (o:A|B) RETURN o.a UNION MATCH (o) RETURN 1 AS a", [(("A", "B"), "a")]),
    ],
)
def test_columns_are_known_by_their_properties(query: str, columns: list[tuple[tuple[str, ...], str]]) -> None:
    assert returned_properties(query) == columns
