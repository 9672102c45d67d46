"""Every example of Stardog's page "Path Queries", with its exact rows.

The social network, as its pictures and answers tell it:

    Alice -knows-> Bob -knows-> David <-knows- Eve
                   Bob -worksWith-> Charlie -parentOf-> Eve
"""

from __future__ import annotations

from pathlib import Path

import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import import_graph
from byokg.graph.pathql.evaluate import paths

SOCIAL = ColumnarGraph.from_triples(
    [
        ("Alice", "knows", "Bob"),
        ("Bob", "knows", "David"),
        ("Bob", "worksWith", "Charlie"),
        ("Charlie", "parentOf", "Eve"),
        ("Eve", "knows", "David"),
    ]
)

FILMS = """
@prefix : <http://example.org/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:Apollo_13 a :Film ; :starring :Kevin_Bacon , :Gary_Sinise .
:Spy_Game a :Film ; :starring :Brad_Pitt , :Robert_Redford .
:Sleepers a :Film ; :starring :Kevin_Bacon , :Brad_Pitt .
:A_Few_Good_Men a :Film ; :starring :Kevin_Bacon , :Tom_Cruise .
:Lions_for_Lambs a :Film ; :starring :Robert_Redford , :Tom_Cruise .
:Captain_America a :Film ; :starring :Gary_Sinise , :Robert_Redford .
:Kevin_Bacon :birthdate "1958-07-08"^^xsd:date .
:Gary_Sinise :birthdate "1957-03-17"^^xsd:date .
:Brad_Pitt :birthdate "1963-12-18"^^xsd:date .
:Robert_Redford :birthdate "1936-08-18"^^xsd:date .
:Tom_Cruise :birthdate "1962-07-03"^^xsd:date .
"""


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> ColumnarGraph:
    file: Path = tmp_path_factory.mktemp("films") / "films.ttl"
    file.write_text(FILMS, "utf-8")
    return import_graph(file)


def table(text: str) -> str:
    """Return the table of an answer without the line on how long it took."""
    return text.rpartition("\n\n")[0]


def test_all_people_that_alice_is_connected_to() -> None:
    found = paths(SOCIAL, "PATHS START ?x = :Alice END ?y VIA ?p")
    assert table(found.table()) == (
        "+----------+------------+----------+\n"
        "|    x     |     p      |    y     |\n"
        "+----------+------------+----------+\n"
        "| :Alice   | :knows     | :Bob     |\n"
        "|          |            |          |\n"
        "| :Alice   | :knows     | :Bob     |\n"
        "| :Bob     | :knows     | :David   |\n"
        "|          |            |          |\n"
        "| :Alice   | :knows     | :Bob     |\n"
        "| :Bob     | :worksWith | :Charlie |\n"
        "|          |            |          |\n"
        "| :Alice   | :knows     | :Bob     |\n"
        "| :Bob     | :worksWith | :Charlie |\n"
        "| :Charlie | :parentOf  | :Eve     |\n"
        "+----------+------------+----------+"
    )
    assert found.summary().startswith("Query returned 4 paths in 00:00:00.0")


def test_the_same_as_text() -> None:
    lines = paths(SOCIAL, "PATHS START ?x = :Alice END ?y VIA ?p").text().split("\n\n")
    assert lines[:-1] == [
        "(:Alice)-[p=:knows]->(:Bob)",
        "(:Alice)-[p=:knows]->(:Bob)-[p=:knows]->(:David)",
        "(:Alice)-[p=:knows]->(:Bob)-[p=:worksWith]->(:Charlie)",
        "(:Alice)-[p=:knows]->(:Bob)-[p=:worksWith]->(:Charlie)-[p=:parentOf]->(:Eve)",
    ]


@pytest.mark.parametrize("via", [":knows", "^:knows | :knows", "{ ?x :knows ?y }"])
def test_how_alice_is_connected_to_david(via: str) -> None:
    found = paths(SOCIAL, f"PATHS START ?x = :Alice END ?y = :David VIA {via}")
    assert table(found.table()) == (
        "+--------+--------+\n"
        "|   x    |   y    |\n"
        "+--------+--------+\n"
        "| :Alice | :Bob   |\n"
        "| :Bob   | :David |\n"
        "+--------+--------+"
    )


@pytest.mark.parametrize("prefix", ["", "PREFIX : <http://example.org/> "])
def test_kevin_bacon_has_three_shortest_paths(films: ColumnarGraph, prefix: str) -> None:
    query = "PATHS START ?x = :Kevin_Bacon END ?y = :Robert_Redford VIA { ?movie a :Film ; :starring ?x , ?y  }"
    found = paths(films, prefix + query)
    name = ":" if prefix else "example:"
    assert found.columns == ["x", "movie", "y"]
    assert [found.line(path) for path in found] == [
        f"({name}Kevin_Bacon)-[movie={name}{first}]->({name}{actor})-[movie={name}{second}]->({name}Robert_Redford)"
        for first, actor, second in (
            ("Apollo_13", "Gary_Sinise", "Captain_America"),
            ("Sleepers", "Brad_Pitt", "Spy_Game"),
            ("A_Few_Good_Men", "Tom_Cruise", "Lions_for_Lambs"),
        )
    ]
    if prefix:
        assert table(found.table()) == (
            "+--------------+------------------+-----------------+\n"
            "|      x       |      movie       |        y        |\n"
            "+--------------+------------------+-----------------+\n"
            "| :Kevin_Bacon | :Apollo_13       | :Gary_Sinise    |\n"
            "| :Gary_Sinise | :Captain_America | :Robert_Redford |\n"
            "|              |                  |                 |\n"
            "| :Kevin_Bacon | :Sleepers        | :Brad_Pitt      |\n"
            "| :Brad_Pitt   | :Spy_Game        | :Robert_Redford |\n"
            "|              |                  |                 |\n"
            "| :Kevin_Bacon | :A_Few_Good_Men  | :Tom_Cruise     |\n"
            "| :Tom_Cruise  | :Lions_for_Lambs | :Robert_Redford |\n"
            "+--------------+------------------+-----------------+"
        )


def test_kevin_bacon_without_the_movies(films: ColumnarGraph) -> None:
    found = paths(films, "PATHS START ?x = :Kevin_Bacon END ?y = :Robert_Redford VIA  ^:starring/:starring")
    assert [[node.rpartition("/")[2] for node in path.nodes] for path in found] == [
        ["Kevin_Bacon", "Gary_Sinise", "Robert_Redford"],
        ["Kevin_Bacon", "Brad_Pitt", "Robert_Redford"],
        ["Kevin_Bacon", "Tom_Cruise", "Robert_Redford"],
    ]
    first = found[0].edges[0]
    assert [(triple.head[19:], triple.tail[19:]) for triple in first.triples] == [
        ("Apollo_13", "Kevin_Bacon"),
        ("Apollo_13", "Gary_Sinise"),
    ]
    assert first.inverse == (True, False)


def test_all_undirected_paths() -> None:
    query = "PATHS ALL START ?x = :Alice END ?y = :David VIA { {?x ?p ?y} UNION {?y ?p ?x} }"
    assert table(paths(SOCIAL, query).table()) == (
        "+----------+------------+----------+\n"
        "|    x     |     p      |    y     |\n"
        "+----------+------------+----------+\n"
        "| :Alice   | :knows     | :Bob     |\n"
        "| :Bob     | :knows     | :David   |\n"
        "|          |            |          |\n"
        "| :Alice   | :knows     | :Bob     |\n"
        "| :Bob     | :worksWith | :Charlie |\n"
        "| :Charlie | :parentOf  | :Eve     |\n"
        "| :Eve     | :knows     | :David   |\n"
        "+----------+------------+----------+"
    )


def test_cyclic_dependencies() -> None:
    # a -> b -> c -> a, and d -> a on no cycle
    graph = ColumnarGraph.from_triples(
        [(one, "dependsOn", other) for one, other in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"))]
    )
    found = paths(graph, "PATHS CYCLIC START ?start END ?end VIA :dependsOn")
    assert [path.nodes for path in found] == [("a", "b", "c", "a"), ("b", "c", "a", "b"), ("c", "a", "b", "c")]


def test_at_most_two_paths() -> None:
    found = paths(SOCIAL, "PATHS START ?x = :Alice END ?y VIA ?p LIMIT 2")
    assert [path.nodes for path in found] == [("Alice", "Bob"), ("Alice", "Bob", "David")]
    assert not found.truncated


def test_paths_of_at_most_two_edges() -> None:
    found = paths(SOCIAL, "PATHS START ?x = :Alice END ?y VIA ?p MAX LENGTH 2")
    assert [path.nodes for path in found] == [("Alice", "Bob"), ("Alice", "Bob", "David"), ("Alice", "Bob", "Charlie")]


def test_limit_max_length_and_offset_together() -> None:
    found = paths(SOCIAL, "PATHS START ?x = :Alice END ?y VIA ?p MAX LENGTH 2 OFFSET 1 LIMIT 1")
    assert [path.nodes for path in found] == [("Alice", "Bob", "David")]


def test_a_filter_inside_via_is_applied_at_each_step(films: ColumnarGraph) -> None:
    query = """PATHS START ?x = :Kevin_Bacon END ?y VIA {
      ?movie a :Film ; :starring ?x , ?y .
      ?y :birthdate ?date .
      FILTER (year(now()) - year(?date) >= 80)
    }"""
    assert len(paths(films, query)) == 0


def test_a_pattern_of_the_end_is_checked_at_the_end_only(films: ColumnarGraph) -> None:
    # Differs: the page subtracts this year from the year of birth, which is never 80 or more; here it is the other way.
    query = """PREFIX test: <http://example.org/>
    PATHS START ?x = :Kevin_Bacon
    END ?y { ?y :birthdate ?date .
             FILTER (year(now()) - year(?date) >= 80) }
    VIA ^:starring/:starring"""
    assert table(paths(films, query).table()) == (
        "+------------------+---------------------+------------------------+\n"
        "|        x         |          y          |          date          |\n"
        "+------------------+---------------------+------------------------+\n"
        "| test:Kevin_Bacon | test:Gary_Sinise    |                        |\n"
        '| test:Gary_Sinise | test:Robert_Redford | "1936-08-18"^^xsd:date |\n'
        "|                  |                     |                        |\n"
        "| test:Kevin_Bacon | test:Brad_Pitt      |                        |\n"
        '| test:Brad_Pitt   | test:Robert_Redford | "1936-08-18"^^xsd:date |\n'
        "|                  |                     |                        |\n"
        "| test:Kevin_Bacon | test:Tom_Cruise     |                        |\n"
        '| test:Tom_Cruise  | test:Robert_Redford | "1936-08-18"^^xsd:date |\n'
        "+------------------+---------------------+------------------------+"
    )
    as_printed = query.replace("year(now()) - year(?date)", "year(?date) - year(now())")
    assert len(paths(films, as_printed)) == 0


def test_constants_are_values() -> None:
    sugar = paths(SOCIAL, "PATHS START ?s = :Alice END ?e = :David VIA :knows")
    values = paths(SOCIAL, "PATHS START ?s { VALUES ?s { :Alice } } END ?e { VALUES ?e { :David } } VIA :knows")
    assert list(sugar) == list(values)
    assert len(sugar) == 1
