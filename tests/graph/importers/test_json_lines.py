from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg import files
from byokg.errors import ImportFailed
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph, import_graph
from byokg.graph.importers.json_lines import JsonLinesFile
from byokg.types import EntityId, Node
from tests.graph.contract import facts, ids


def imported(folder: Path, *records: object) -> ColumnarGraph:
    text = "".join((record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records)
    (folder / "graph.jsonl").write_text(text, "utf-8")
    return import_graph(folder)


def test_triples_may_be_lists_or_objects(tmp_path: Path) -> None:
    graph = imported(
        tmp_path,
        ["Alien", "directed_by", "Scott"],
        "",
        {"head": "Alien", "relation": "starred", "tail": "Weaver", "role": "Ripley", "billing": 2, "award": None},
        {"head": "Alien", "relation": "year", "tail": 1979, "properties": {"sure": True}},
        ["Alien", "directed_by", "Scott"],
    )
    assert facts(graph) == [
        ("Alien", "directed_by", "Scott", {}),
        ("Alien", "starred", "Weaver", {"role": "Ripley", "billing": 2}),
        ("Alien", "year", "1979", {"sure": True}),
    ]
    assert graph.dropped_duplicates == 1
    assert graph.source["kind"] == "JSON lines"


def test_nodes_and_edges_may_come_in_any_order(tmp_path: Path) -> None:
    graph = imported(
        tmp_path,
        {"head": 1, "relation": "knows", "tail": 2},
        {"head": 1, "relation": "knows", "tail": 2},
        {"id": 1, "name": "Ann", "type": "Person", "born": 1937, "tags": ["a", "b"], "place": {"lat": 1}},
        {"id": 2},
        {"id": 3, "properties": {"x": 1.5}},
    )
    assert graph.nodes(ids("1", "2", "3")) == [
        Node(EntityId("1"), "Ann", "Person", {"born": 1937, "tags": '["a", "b"]', "place": '{"lat": 1}'}),
        Node(EntityId("2"), "2"),
        Node(EntityId("3"), "3", "", {"x": 1.5}),
    ]
    assert facts(graph) == [("1", "knows", "2", {}), ("1", "knows", "2", {})]


def test_a_node_has_all_types_that_its_lists_name(tmp_path: Path) -> None:
    graph = imported(
        tmp_path,
        {"id": "a", "type": ["Person", "Song|writer", "Person", None]},
        {"id": "b", "labels": ["Person", "Producer"]},
        {"id": "c", "type": "Person", "types": ["Person", "Producer"], "labels": ["x", "y"]},
        {"id": "d", "type": "a|b", "labels": []},
        {"id": "e", "labels": [1, 2]},
    )
    assert [(node.types, dict(node.properties)) for node in graph.nodes(ids(*"abcde"))] == [
        (("Person", "Song|writer"), {}),
        (("Person", "Producer"), {}),
        (("Person", "Producer"), {"labels": '["x", "y"]'}),
        (("a|b",), {"labels": "[]"}),
        ((), {"labels": "[1, 2]"}),
    ]


def test_what_apoc_exports_is_understood(tmp_path: Path) -> None:
    graph = imported(
        tmp_path,
        {"type": "node", "id": "0", "labels": ["Person", "Actor"], "properties": {"name": "Ann", "born": 1937}},
        {"type": "node", "id": "1", "labels": ["Film"], "properties": {"title": "Alien"}},
        {
            "type": "relationship",
            "id": "0",
            "label": "ACTED_IN",
            "properties": {"role": "Ripley"},
            "start": {"id": "0", "labels": ["Person"]},
            "end": {"id": "1", "labels": ["Film"]},
        },
    )
    assert graph.nodes(ids("0"))[0] == Node(EntityId("0"), "Ann", "Person", {"born": 1937}, ("Actor",))
    assert facts(graph) == [("0", "ACTED_IN", "1", {"role": "Ripley"})]


def test_the_graphs_of_questions_become_one(tmp_path: Path) -> None:
    graph = imported(
        tmp_path,
        {"id": "q1", "question": "who?", "answer": ["b"], "graph": [["a", "r", "b"], ["b", "s", "c"]]},
        {"id": "q2", "question": "none?", "graph": []},
        {"id": "q3", "question": "which?", "graph": [["a", "r", "b"], ["d", "r", "a"]]},
    )
    assert facts(graph) == [("a", "r", "b", {}), ("b", "s", "c", {}), ("d", "r", "a", {})]
    assert graph.dropped_duplicates == 1


def test_a_table_of_nodes_and_edges_with_empty_cells_null_is_understood(tmp_path: Path) -> None:
    empty = {"id": None, "name": None, "head": None, "relation": None, "tail": None}
    for other in ({}, {"list": [1]}):  # the latter is not left to Arrow
        graph = imported(
            tmp_path,
            {**empty, "id": "a", "name": "Ann", **other},
            {**empty, "head": "a", "relation": "knows", "tail": "a"},
        )
        assert [node.name for node in graph.nodes(ids("a"))] == ["Ann"]
        assert facts(graph) == [("a", "knows", "a", {})]


def test_the_name_may_stand_among_the_properties(tmp_path: Path) -> None:
    graph = imported(tmp_path, {"id": "a", "properties": {"name": "Ann", "born": 1937}})
    assert graph.nodes(ids("a")) == [Node(EntityId("a"), "Ann", "", {"born": 1937})]


TEXTS = st.sampled_from(["a", "b", "1", "2001-09-30", "é x", 'q"uo', "t\tab", "😀"])
VALUES = st.sampled_from([None, "x", "2001-09-30", "1"])
EDGES = st.fixed_dictionaries(
    {"head": TEXTS, "relation": st.sampled_from(["r", "s"]), "tail": TEXTS},
    optional={
        "w": st.sampled_from([1, 2, 2.5, None]),
        "said": VALUES,
        "properties": st.fixed_dictionaries({"p": VALUES}),
    },
)
NODES = st.fixed_dictionaries(
    {"id": TEXTS}, optional={"name": TEXTS, "type": st.sampled_from(["T", "U", None]), "born": st.integers(-9, 9)}
)
LISTS = st.tuples(TEXTS, st.sampled_from(["r", "s"]), TEXTS).map(list)


@settings(max_examples=50)
@given(
    st.one_of(
        st.lists(EDGES, min_size=1),
        st.lists(LISTS, min_size=1),
        st.lists(st.one_of(EDGES, NODES), min_size=1),
        st.lists(st.one_of(EDGES, NODES, LISTS), min_size=1),
    ),
    st.booleans(),
)
def test_what_arrow_reads_is_what_python_reads(tmp_path: Path, records: list[object], ascii_only: bool) -> None:
    text = "".join(json.dumps(record, ensure_ascii=ascii_only) + "\n" for record in records)
    (tmp_path / "graph.jsonl").write_text(text, "utf-8")

    def outcome() -> object:
        try:
            graph = import_graph(tmp_path)
        except ImportFailed as error:
            return str(error)
        return facts(graph), graph.nodes(list(graph.entities())), list(graph.relations), graph.dropped_duplicates

    by_arrow = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JsonLinesFile, "_by_arrow", lambda *_: None)
        assert outcome() == by_arrow
        patch.setattr(files, "_LINES_BYTES", 60)
        in_blocks = outcome()
    if not (isinstance(by_arrow, str) and "holds values of types" in by_arrow):  # which types, depends on the blocks
        assert in_blocks == by_arrow


@pytest.mark.parametrize(
    ("records", "line", "reason"),
    [
        ([], None, "holds no records"),
        (['["a", "r", "b"]', "{"], 2, "this is no JSON"),
        ([["a", "r"]], 1, '["a", "r"] is neither a triple'),
        ([{"name": "x"}], 1, "nor one with an id"),
        ([["a", None, "b"]], 1, "the relation is None; give it a text or a number"),
        ([["a", "r", " "]], 1, "the tail is ' '"),
        ([{"id": "a"}, ["a", "r", "b"]], 2, "'b' is the id of no node"),
        ([{"id": "a"}, {"id": "a", "name": "A"}], 2, "node id 'a' is on line 1 already, with other content"),
        ([{"id": "a", "x": float("nan")}], 1, "property 'x' is nan"),
        ([{"id": "a", "x": 1}, {"id": "b", "x": "one"}], None, "property 'x' holds values of types int, str"),
        ([{"id": "a", "properties": [1]}], 1, "properties is [1]"),
        ([{"id": "q", "graph": [["a", "r"]]}], 1, '["a", "r"] in graph is not [head, relation, tail]'),
        ([{"id": "a", "x": 1}] * 9 + ['{"id": "b", "x": 1e999}'], 10, "property 'x' is inf"),
        ([["a", "r", "b"]] * 9 + [["a", "r"]], 10, '["a", "r"] is neither a triple'),
        ([["a", "r", "b"]] * 9 + ['["a", "r", "\\x"]'], 10, "this is no JSON"),
        (['["\\ud800", "r", "b"]'], None, r"the text '\ud800' holds half of a surrogate pair"),
        (['{"id": "a", "\\ud800": 1}'], None, r"the text '\ud800' holds half of a surrogate pair"),
    ],
)
def test_a_bad_line_is_named_with_the_reason(
    tmp_path: Path, records: list[object], line: int | None, reason: str
) -> None:
    with pytest.raises(ImportFailed, match=re.escape(reason)) as caught:
        imported(tmp_path, *records)
    assert caught.value.line == line


@pytest.mark.parametrize("brackets", [5_000, 20_000, 200_000])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_brackets_nested_too_deep_are_an_error_with_its_line_and_leave_nothing(
    tmp_path: Path, brackets: int, opening: str
) -> None:
    closing = "]" if opening == "[" else "}"
    deep = opening * brackets + "1" + closing * brackets
    (tmp_path / "graph.jsonl").write_text(f'["a", "r", "b"]\n["b", "r", {deep}]\n')
    with pytest.raises(ImportFailed, match="nested too deep") as caught:
        build_graph(tmp_path / "graph.jsonl", tmp_path / "out")
    assert caught.value.line == 2
    assert [path.name for path in tmp_path.iterdir()] == ["graph.jsonl"]
