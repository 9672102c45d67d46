from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from byokg.errors import ImportFailed
from byokg.graph.columnar import ColumnarGraph
from byokg.graph.importers import import_graph
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
        Node(EntityId("1"), "Ann", "Person", {"born": 1937, "tags": "a;b", "place": '{"lat": 1}'}),
        Node(EntityId("2"), "2"),
        Node(EntityId("3"), "3", "", {"x": 1.5}),
    ]
    assert facts(graph) == [("1", "knows", "2", {}), ("1", "knows", "2", {})]


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
    assert graph.nodes(ids("0"))[0] == Node(EntityId("0"), "Ann", "Person", {"born": 1937, "labels": "Person;Actor"})
    assert facts(graph) == [("0", "ACTED_IN", "1", {"role": "Ripley"})]


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
        (['["\\ud800", "r", "b"]'], None, "surrogates not allowed"),
    ],
)
def test_a_bad_line_is_named_with_the_reason(
    tmp_path: Path, records: list[object], line: int | None, reason: str
) -> None:
    with pytest.raises(ImportFailed, match=re.escape(reason)) as caught:
        imported(tmp_path, *records)
    assert caught.value.line == line
