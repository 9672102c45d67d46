"""Terms and conditions in patterns of path queries, with answers worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from byokg.errors import PathQueryInvalid, QueryTimeout, QueryTooLarge, RelationNotFound
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import import_graph
from byokg.graph.pathql.evaluate import paths
from byokg.graph.pathql.search import PathLimits
from byokg.types import EntityId, Node, Triple


def small() -> ColumnarGraph:
    """n0 -r-> n1, n0 -s-> n2, n1 -s-> n2, n2 -t-> n3, n0 -r-> n0, and a node named like a relation: r -t-> n3."""
    triples = [
        ("n0", "r", "n1"),
        ("n0", "s", "n2"),
        ("n1", "s", "n2"),
        ("n2", "t", "n3"),
        ("r", "t", "n3"),
        ("n0", "r", "n0"),
    ]
    edges = [Triple(EntityId(head), relation, EntityId(tail)) for head, relation, tail in triples]
    names = ["n0", "n1", "n2", "n3", "r"]
    nodes = [Node(EntityId(name), name, "Even" if name in ("n0", "n2") else "Odd", {"size": 1}) for name in names]
    return ColumnarGraph.from_records(nodes, edges)


def edges_of(pattern: str, graph: ColumnarGraph | None = None) -> list[str]:
    """Return the edges that a VIA pattern makes, each as `start end`."""
    found = paths(graph or small(), f"PATHS ALL WALK START ?s END ?e VIA {{ {pattern} }} MAX LENGTH 1")
    return sorted(f"{path.start} {path.end}" for path in found)


R, S, T = ["n0 n0", "n0 n1"], ["n0 n2", "n1 n2"], ["n2 n3", "r n3"]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("FILTER(?p != :r)", S + T),
        ("FILTER(?p = :r)", R),
        ("FILTER(:r = ?p)", R),
        ("FILTER(?p = <r>)", R),
        ("FILTER(?p IN (:r, :t))", R + T),
        ("FILTER(?p NOT IN (:r, :unknown))", S + T),
        ("FILTER(sameTerm(?p, :s))", S),
        ("FILTER(STR(?p) = 's')", S),
        ("FILTER(STR(?p) = STR(:s))", S),
        ("FILTER(?p = IRI('s'))", S),
        ("FILTER(regex(STR(?p), '^[rt]$'))", R + T),
        ("FILTER(isIRI(?p) && !isLiteral(?p))", R + S + T),
        ("FILTER(?p = 'r')", []),
        ("FILTER(?p != :unknown)", R + S + T),
        ("FILTER(?p = :unknown)", []),
        ("VALUES ?p { :r :unknown }", R),
        ("BIND(:s AS ?q) FILTER(?p = ?q)", S),
        (". ?p :t :n3", R),
        (". ?a :t ?b FILTER(?a = ?p)", R),
        (". ?s ?p :n1", R),
        ("FILTER EXISTS { ?e ?p ?z }", ["n0 n0"]),
        ("FILTER NOT EXISTS { ?p :t ?z }", S + T),
        ("MINUS { ?s :r ?e }", S + T),
        ("MINUS { ?p :t ?z }", S + T),
    ],
)
def test_a_relation_is_a_term_like_any_other(more: str, expected: list[str]) -> None:
    assert edges_of(f"?s ?p ?e {more}") == sorted(expected)


def test_relations_of_start_and_end_are_terms() -> None:
    query = "PATHS START ?x { ?x ?p :n2 FILTER(?p = :s && ?x != :n0) } END ?y { :n2 ?q ?y FILTER(?q != :s) } VIA :s|:t"
    assert [path.nodes for path in paths(small(), query)] == [("n1", "n2", "n3")]


def test_types_are_terms() -> None:
    even, odd = ["n0 n0", "n0 n1", "n0 n2", "n2 n3"], ["n1 n2", "r n3"]
    assert edges_of("?s ?p ?e . ?s a ?t FILTER(?t = :Even)") == even
    assert edges_of("?s ?p ?e . ?s a ?t FILTER(?t != :Even)") == odd
    assert edges_of("?s ?p ?e . ?s a ?t . ?e a ?t") == ["n0 n0", "n0 n2", "r n3"]
    assert edges_of("?s ?p ?e . ?s a ?t . VALUES ?t { :Odd }") == odd


@pytest.mark.parametrize("prefix", ["PREFIX : <http://e/> PREFIX z: <http://q#>", "PREFIX z: <http://q#>"])
@pytest.mark.parametrize(
    ("more", "ends"),
    [
        ("FILTER(?p != :r)", "c"),
        ("FILTER(?p = :r)", "b"),
        ("FILTER(?p = z:s)", "c"),
        ("FILTER(?p = <http://q#s>)", "c"),
        ("FILTER(STR(?p) = 'http://e/r')", "b"),
        ("VALUES ?p { z:s }", "c"),
        ("?p :t ?k", "b"),
        ("?s a ?t FILTER(?t = :Film)", "bc"),
        ("?s a ?t FILTER(STR(?t) = 'http://e/Film')", "bc"),
    ],
)
def test_terms_of_rdf_are_iris(prefix: str, more: str, ends: str, tmp_path: Path) -> None:
    file = tmp_path / "films.ttl"
    file.write_text("@prefix : <http://e/> . @prefix q: <http://q#> . :a a :Film ; :r :b ; q:s :c . :r :t :c .")
    found = paths(import_graph(file), f"{prefix} PATHS START ?s = :a END ?e VIA {{ ?s ?p ?e . {more} }}")
    assert sorted(path.end for path in found) == [f"http://e/{end}" for end in ends]


# What a part of a pattern reads


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        # A nested group, a branch and MINUS do not read what is bound outside.
        ("?s ?p ?e { ?e :t ?z FILTER(?s = :n1) }", []),
        ("?s ?p ?e { ?s :s ?e FILTER(?s = :n1) }", ["n1 n2"]),
        ("?s ?p ?e MINUS { ?s :s ?z FILTER(?p = :s) }", sorted(R + S + T)),
        ("?s ?p ?e MINUS { ?s :s ?z FILTER(?s = :n1) }", sorted([*R, "n0 n2", *T])),
        ("?s ?p ?e MINUS { ?a :s ?b }", sorted(R + S + T)),
        ("{ ?s :r ?e } UNION { ?s :s ?e FILTER(?s = :n1) }", [*R, "n1 n2"]),
        # The conditions of OPTIONAL, and those inside EXISTS, do.
        ("?s ?p ?e OPTIONAL { ?e :t ?z FILTER(?s = :n1) } FILTER(bound(?z))", ["n1 n2"]),
        ("?s ?p ?e FILTER EXISTS { ?e :t ?z FILTER(?s = :n1) }", ["n1 n2"]),
        ("?s :s ?e FILTER EXISTS { ?s :r ?z FILTER(?z != ?s) }", ["n0 n2"]),
        # What OPTIONAL left open may be bound behind it, and a condition waits for that.
        ("?s :s ?e OPTIONAL { ?e :r ?z } ?e :t ?z FILTER(?z = :n3)", ["n0 n2", "n1 n2"]),
        # A start or end that is not bound in a solution makes no edge.
        ("?e :t ?z OPTIONAL { ?s :r ?e }", []),
        ("?s :r ?m BIND(?m AS ?e)", R),
        ("OPTIONAL { ?s :r ?e } ?e :s ?z", ["n0 n0", "n0 n1"]),
        ("?s ?p ?e FILTER(?unknown = 1)", []),
        ("?s ?p ?e FILTER(!bound(?unknown) && ?p = :t)", T),
    ],
)
def test_each_part_reads_what_it_may(pattern: str, expected: list[str]) -> None:
    assert edges_of(pattern) == sorted(expected)


@pytest.mark.parametrize("start", ["", " = :n0"])
@pytest.mark.parametrize("end", ["", " = :n1"])
def test_an_end_that_bind_makes_is_found_in_both_directions(start: str, end: str) -> None:
    found = paths(small(), f"PATHS ALL START ?s{start} END ?e{end} VIA {{ ?s :r ?m BIND(?m AS ?e) }}")
    assert ("n0", "n1") in [path.nodes for path in found]


def test_the_pattern_of_an_end_may_name_the_other_end() -> None:
    #   Only n0 and n1 have an s-edge to where they end.
    query = "PATHS START ?x { ?x :s ?y } END ?y VIA ?p"
    assert [path.nodes for path in paths(small(), query)] == [("n0", "n2"), ("n1", "n2")]
    query = "PATHS START ?x END ?y { ?x :s ?y } VIA ?p"
    assert [path.nodes for path in paths(small(), query)] == [("n0", "n2"), ("n1", "n2")]


# Values


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("1 IN (1 / 0, 1)", True),
        ("2 IN (1 / 0, 1) || true", True),
        ("!(2 IN (1 / 0, 1))", False),
        ("2 NOT IN ()", True),
        ("ceil('INF'^^xsd:double) = 1 || true", True),
        ("floor('NaN'^^xsd:double) = 1 || true", True),
        ("'NaN'^^xsd:double", False),
        ("'x' && 1 && !0 && !''", True),
        ("'2000-01-01'^^xsd:date", False),
        ("'1' = 1", False),
        ("'1' != 1", True),
        ("'b' < 1 || 'b' >= 1", False),
        ("sameTerm(1, 1) && !sameTerm(1, 1.0) && 1 = 1.0", True),
        ("'zebra' > '2000-01-01'^^xsd:date", False),
        ("'-0100-01-01'^^xsd:date < '-0044-03-15'^^xsd:date", True),
        ("'2000-01-01T00:30:00+01:00'^^xsd:dateTime < '2000-01-01T00:00:00Z'^^xsd:dateTime", True),
        ("'2000-01-01T01:00:00+01:00'^^xsd:dateTime = '2000-01-01T00:00:00Z'^^xsd:dateTime", True),
        ("replace('banana', '[an]+$', '<$0>') = 'b<anana>'", True),
        ("strbefore('a-b', '-') = 'a' && strafter('a-b', '-') = 'b' && strbefore('a', '-') = ''", True),
        ("seconds('2000-01-01T00:00:07Z') = 7", True),
        ("isBlank(:n0)", False),
    ],
)
def test_values(condition: str, holds: bool) -> None:
    assert bool(edges_of(f"?s :r ?e FILTER({condition})")) == holds


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("START ?s END ?e VIA { ?s ?p ?e FILTER(chain(1, 2, 3) = 1) }", "no function CHAIN"),
        ("START ?s END ?e VIA { ?s ?p ?e FILTER(negative(1) = 1) }", "no function NEGATIVE"),
        ("START ?s END ?e VIA { ?s ?p ?e FILTER(<http://x/year>(1) = 1) }", "no function"),
        ("START ?s END ?e VIA { ?s ?p ?e FILTER(bound(:r)) }", "BOUND takes a variable"),
        ("START ?s END ?e VIA { ?s ?p ?e FILTER(regex('a', 'A', 'xi')) }", "flags i, m and s"),
        ("START ?s END ?e VIA { ?s ?p ?e FILTER(lang(?s) = 'en') }", "no function LANG"),
        ("START ?s END ?e VIA { ?s ?p ?e . ?s rdfs:label 'n0'@en }", "languages are not compared"),
        ("START ?s END ?e VIA { ?s ?p ?e FILTER(?p = 'n0'@en) }", "languages are not compared"),
        ("START ?s END ?e VIA { ?s ?p ?e VALUES ?s { 'n0'@en } }", "languages are not compared"),
        ("START ?s END ?e VIA { ?s ?p ?e . ?s :size '1x'^^xsd:integer }", '"1x" is no integer'),
        ("START ?s END ?e VIA { ?s :r/:s ?e {| :w 1 |} }", "edges of one relation"),
        ("START ?s END ?e VIA { ?s ?p ?e . ?s a :Even {| :w 1 |} }", "a type has no properties"),
        ("START ?s END ?e VIA { ?s ?p ?e BIND(1 AS ?p) }", "has one already"),
        ("START ?s END ?e { ?e :r ?z FILTER NOT EXISTS { ?e :r ?y FILTER(foo(?y)) } } VIA ?p", "no function FOO"),
        ("FROM NAMED <g> START ?s END ?e VIA ?p", "FROM NAMED"),
    ],
)
def test_what_has_no_meaning_is_refused(query: str, reason: str) -> None:
    with pytest.raises(PathQueryInvalid, match=reason):
        paths(small(), f"PATHS {query}")
    with pytest.raises(PathQueryInvalid, match="BASE"):
        paths(small(), "BASE <http://e/> PATHS START ?s END ?e VIA ?p")


def test_an_unknown_relation_is_refused_where_no_solution_comes_to_it() -> None:
    for pattern in ("{ ?s :size 5 ; ?p ?e FILTER EXISTS { ?e :tt ?z } }", "{ ?s ?p ?e MINUS { ?z :tt/:r ?e } }"):
        with pytest.raises(RelationNotFound, match="'tt'"):
            paths(small(), f"PATHS START ?s END ?e VIA {pattern}")


def test_a_list_of_all_values_is_no_property_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "years.ttl"
    file.write_text("@prefix : <http://e/> . :a :r :b ; :born 1900, 1950 .")
    query = "PREFIX : <http://e/> PATHS START ?s { ?s ?q ?v FILTER(isLiteral(?v)) } END ?e VIA :r"
    found = paths(import_graph(file), query)
    assert [(path.bindings["q"].value, path.bindings["v"].value) for path in found] == [
        ("e:born", 1900),
        ("e:born", 1950),
    ]


def test_a_less_sign_without_spaces_is_no_name() -> None:
    assert edges_of("?s :r ?e . ?s :size ?n FILTER(?n<2&&?n>0)") == R
    assert edges_of("?s :r ?e . ?s :size ?n FILTER('b'< 1 || ?n >= 1)") == R
    assert edges_of("?s :r ?e . ?s :size ?n FILTER(0<?n) FILTER(?n>0)") == R
    assert edges_of("?s :r ?e FILTER(!(:n0<(:n1)) || ?s>:n0)") == []


def test_minus_without_a_common_variable_leaves_all() -> None:
    assert edges_of("?s :r ?e MINUS { ?a ?b ?c . ?x ?y ?z . ?k ?l ?m }") == R


def test_patterns_of_the_ends_keep_the_time_limit() -> None:
    query = "PATHS START ?x { ?x ?p ?y FILTER EXISTS { ?y ?q ?z } } END ?e VIA ?p"
    with pytest.raises(QueryTimeout):
        paths(small(), query, PathLimits(timeout_s=0))
    assert paths(
        small(), "PATHS START ?s = :n0 END ?e VIA { ?s ?p ?e FILTER(?p = :r) }", PathLimits(timeout_s=0)
    ).truncated


def test_no_text_of_a_condition_grows_without_bound() -> None:
    doubled = " ".join(f"BIND(CONCAT(?t{n}, ?t{n}) AS ?t{n + 1})" for n in range(40))
    with pytest.raises(QueryTooLarge, match="characters"):
        edges_of(f"?s :r ?e BIND('ab' AS ?t0) {doubled}")
    squared = " ".join(f"BIND(?t{n} * ?t{n} AS ?t{n + 1})" for n in range(40))
    assert edges_of(f"?s :r ?e BIND(10 AS ?t0) {squared} FILTER(BOUND(?t40))") == []
