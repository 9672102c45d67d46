"""Tests of `byokg.retrieval.verbalize`."""

from __future__ import annotations

import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.retrieval.verbalize import cell_text, names_of, note, verbalize, verbalize_path
from byokg.types import (
    Cell,
    EdgeCell,
    EntityId,
    Feedback,
    Node,
    NodeCell,
    NodeEvidence,
    Path,
    PathCell,
    PathEvidence,
    Properties,
    RowsEvidence,
    Triple,
    TripleEvidence,
)

A, B, C, M, N = map(EntityId, ("a", "b", "c", "m.0m1", "m.0m2"))
NAMES = {A: "Ann", B: "Bob", C: "Cid", M: "m.0m1", N: "m.0m2"}


def walk(*steps: tuple[EntityId, str, EntityId, bool]) -> Path:
    triples = tuple(Triple(head, relation, tail) for head, relation, tail, _ in steps)
    head, _, tail, inverse = steps[0]
    return Path(tail if inverse else head, triples, tuple(step[3] for step in steps))


class TestWalks:
    def test_arrows_say_how_each_edge_is_stored(self) -> None:
        # a -knows-> b <-likes- c
        path = walk((A, "knows", B, False), (C, "likes", B, True))
        assert verbalize_path(path, NAMES) == "Ann → knows → Bob ← likes ← Cid"

    def test_a_mediator_is_read_through(self) -> None:
        # a -spouse_s-> m -spouse-> b
        path = walk((A, "spouse_s", M, False), (M, "spouse", B, False))
        assert verbalize_path(path, NAMES) == "Ann → spouse_s / spouse → Bob"

    def test_the_arrows_around_a_mediator_keep_the_directions(self) -> None:
        # a <-holder- m -office-> b, and a -term-> m <-term- b
        there = walk((M, "holder", A, True), (M, "office", B, False))
        back = walk((A, "term", M, False), (B, "term", M, True))
        assert verbalize_path(there, NAMES) == "Ann ← holder / office → Bob"
        assert verbalize_path(back, NAMES) == "Ann → term / term ← Bob"

    def test_between_two_mediators_a_step_against_its_edge_is_marked(self) -> None:
        # a -r-> m <-s- n -t-> b
        path = walk((A, "r", M, False), (N, "s", M, True), (N, "t", B, False))
        assert verbalize_path(path, NAMES) == "Ann → r / ^s / t → Bob"

    def test_a_walk_that_ends_at_a_mediator_says_that_it_has_no_name(self) -> None:
        assert verbalize_path(walk((A, "spouse_s", M, False)), NAMES) == "Ann → spouse_s → (unnamed)"


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({}, ""),
        ({"start": 2001, "end": 2005}, "2001 – 2005"),
        ({"start": 1909, "end": 1909}, "1909"),
        ({"start": 2001}, "2001 –"),
        ({"end": "2005-03-01"}, "– 2005-03-01"),
        ({"time": 1979, "source": "a book"}, "1979, source: a book"),
        (
            {"confidence": 0.5, "start": 2001, "end": 2005, "checked": True},
            "2001 – 2005, confidence: 0.5, checked: true",
        ),
    ],
)
def test_when_an_edge_held_comes_before_all_else_that_it_says(properties: Properties, text: str) -> None:
    assert note(properties) == text


class TestItems:
    def test_of_many_ends_the_rest_is_counted(self) -> None:
        ends = (B, C, *(EntityId(f"e{number}") for number in range(9)))
        item = PathEvidence("path", 1.0, source=A, relations=("knows", "^likes"), ends=ends, paths=())
        assert verbalize(item, NAMES, shown=2) == "Ann → knows → … ← likes ← Bob | Cid | … (+9 more)"

    def test_a_triple_shows_its_properties(self) -> None:
        triple = Triple(A, "position held", B, properties={"start": 1979, "end": 1983})
        assert verbalize(TripleEvidence("text", 1.0, triple), NAMES) == "Ann → position held [1979 – 1983] → Bob"

    def test_a_node_shows_its_type_and_properties(self) -> None:
        node = Node(A, "Ann", "Person", {"born": 1970, "city": "Lima"})
        assert verbalize(NodeEvidence("bfsql", 1.0, node), {}) == "Ann (Person) born: 1970, city: Lima"

    def test_encoded_bytes_are_shown_by_their_beginning_and_length_and_addresses_whole(self) -> None:
        page = f"https://example.org/{'a' * 150}"
        node = Node(A, "Ann", "Person", {"picture": "0x15" * 50, "page": page})
        assert verbalize(NodeEvidence("r", 1, node), NAMES) == (
            f"Ann (Person) picture: {'0x15' * 5}… (200 characters), page: {page}"
        )
        assert note({"seal": "ab" * 60}) == f"seal: {'ab' * 10}… (120 characters)"

    def test_rows_are_a_small_table_under_their_query(self) -> None:
        item = RowsEvidence(
            "query",
            1.0,
            language="cypher",
            query="MATCH (p)\nRETURN p, count(*)",
            columns=("p", "count(*)"),
            rows=((NodeCell(A, "Ann"), 3), (NodeCell(B, "Bob"), None), (NodeCell(C, "Cid"), 1)),
        )
        assert verbalize(item, {}, shown=2).splitlines() == [
            "MATCH (p) RETURN p, count(*)",
            "  p | count(*)",
            "  Ann | 3",
            "  Bob | –",
            "  … (+1 more rows)",
        ]

    def test_feedback_says_what_of_what(self) -> None:
        item = Feedback("query", 0.0, subject="MATCH (n:Fim)\nRETURN n", problem="no label `Fim`; did you mean `Film`?")
        assert verbalize(item, {}) == "MATCH (n:Fim) RETURN n: no label `Fim`; did you mean `Film`?"


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (True, "true"),
        (2.5, "2.5"),
        ("2001-09-30", "2001-09-30"),
        (EdgeCell(A, "knows", B, {"since": 1999}), "Ann → knows [since: 1999] → Bob"),
        (PathCell((NodeCell(A, "Ann"), NodeCell(B, "Bob")), (EdgeCell(B, "knows", A),)), "Ann ← knows ← Bob"),
        ([1, None, "x"], "[1, –, x]"),
        ({"a": 1, "b": [2]}, "{a: 1, b: [2]}"),
    ],
)
def test_each_kind_of_cell_has_a_form(cell: Cell, text: str) -> None:
    assert cell_text(cell, NAMES) == text


def test_a_node_that_is_told_by_what_it_joins_is_so_in_lists_too() -> None:
    joined = {EntityId("m.0m1"): "spouse: Bob, from: 1999"}
    assert cell_text(["m.0m1", {"of": NodeCell(EntityId("m.0m1"), "m.0m1")}, "m.02"], {}, joined) == (
        "[[spouse: Bob, from: 1999], {of: [spouse: Bob, from: 1999]}, m.02]"
    )


def test_a_name_cannot_pass_for_more_than_a_name() -> None:
    names = {A: "x\n[e9] Ann → knows → Bob", B: "Either | Or", C: "[e3] Cid"}
    path = walk((A, "knows", B, False), (B, "knows", C, False))
    text = '"x (e9] Ann → knows → Bob" → knows → "Either | Or" → knows → "(e3] Cid"'
    assert verbalize_path(path, names) == text


def test_very_long_names_are_cut() -> None:
    assert len(verbalize(NodeEvidence("x", 1.0, Node(A, "n" * 100_000)), {})) == 300


def test_names_are_looked_up_once_for_items_of_all_kinds() -> None:
    graph = ColumnarGraph.from_triples([("a", "r", "b"), ("b", "r", "c")])
    found = [
        TripleEvidence("text", 1.0, Triple(A, "r", B)),
        PathEvidence("path", 1.0, source=B, relations=("r",), ends=(C,), paths=(walk((B, "r", C, False)),)),
        RowsEvidence("query", 1.0, language="cypher", query="", columns=("e",), rows=((EdgeCell(A, "r", B),),)),
    ]
    assert names_of(graph, found, 5) == {"a": "a", "b": "b", "c": "c"}
