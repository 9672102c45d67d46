from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.errors import GraphExists
from byokg.graph import exporter
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.exporter import copy_graph, export_graph
from byokg.graph.importers.choose import import_graph
from byokg.graph.store import GraphStore
from byokg.graph.traversal import neighbours, triples
from byokg.types import EntityId, Node, Properties, Triple
from tests.graph.contract import STRANGE_IDS, STRANGE_RELATIONS, GraphStoreContract, Make, edge, node


def content(store: GraphStore) -> tuple[list[Node], list[tuple[str, str, str, Properties]]]:
    entities = list(store.entities())
    batch = neighbours(store, entities)
    out = [triple for triple, inverse in zip(triples(store, batch), batch.inverse.tolist(), strict=True) if not inverse]
    return store.nodes(entities), [(edge.head, edge.relation, edge.tail, dict(edge.properties)) for edge in out]


class TestCopies(GraphStoreContract):
    @pytest.fixture
    def make(self) -> Make:
        def make(nodes: Sequence[Node], edges: Sequence[Triple]) -> ColumnarGraph:
            return copy_graph(ColumnarGraph.from_records(nodes, edges))

        return make


def test_an_exported_graph_is_imported_as_it_was(tmp_path: Path) -> None:
    nodes = [
        Node(EntityId("Q1"), "Ann", "Person", {"born": 1937, "tall": 1.7, "alive": True, "since": "2001-09-30"}),
        Node(EntityId("Q2"), "Ann", "Person", {"born": -3, "dc:title": 'say "hi", twice', "note": "two\r\nlines "}),
        Node(EntityId("Q3"), "Q3"),
        Node(EntityId("Q4"), "Q4", "Person", {}, ("Producer", "a|b", "c\\", "\\|d")),
        Node(EntityId("Q5"), "Q5", "e\\|f"),
        *(node(strange) for strange in STRANGE_IDS),
    ]
    edges = [edge("Q1", "knows", "Q2", weight=1), edge("Q1", "knows", "Q2", weight=1), edge("Q3", "knows", "Q3")]
    edges += [edge("Q2", label, "Q1", weight=0.5) for label in STRANGE_RELATIONS]
    graph = ColumnarGraph.from_records(nodes, edges)
    export_graph(graph, tmp_path / "out")
    assert sorted(os.listdir(tmp_path / "out")) == ["edges.csv", "nodes.csv"]
    again = import_graph(tmp_path / "out")
    assert content(again) == content(graph)
    kinds = {detail.name: detail.kind for detail in again.schema().node_property_details["Person"]}
    assert kinds == {
        "born": "int",
        "tall": "float",
        "alive": "bool",
        "since": "date",
        "dc:title": "string",
        "note": "string",
    }


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip)
values = (
    st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | texts
)


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(texts.map(str.strip), values, max_size=4), texts, texts)
def test_any_text_and_number_comes_back(
    tmp_path_factory: pytest.TempPathFactory, properties: dict[str, str | int | float | bool], one: str, relation: str
) -> None:
    reserved = {"id_", "name_", "type_", "head", "relation", "tail", "id", "name", "type"}
    properties = {key: value for key, value in properties.items() if key not in reserved}
    out = tmp_path_factory.mktemp("export") / "out"
    graph = ColumnarGraph.from_records(
        [Node(EntityId(one), one, "T", properties)], [Triple(EntityId(one), relation, EntityId(one), 0, properties)]
    )
    export_graph(graph, out)
    assert content(import_graph(out)) == content(graph)


def test_properties_named_like_fixed_columns_get_an_underscore(tmp_path: Path) -> None:
    graph = ColumnarGraph.from_records(
        [node("a", id=7, name="x")], [Triple(EntityId("a"), "r", EntityId("a"), properties={"tail": True})]
    )
    export_graph(graph, tmp_path / "out")
    assert (tmp_path / "out/nodes.csv").read_text("utf-8").startswith("id,name,type,id_:int,name_\n")
    again = import_graph(tmp_path / "out")
    assert again.nodes([EntityId("a")])[0].properties == {"id": 7, "name": "x"}
    assert content(again)[1] == [("a", "r", "a", {"tail_": True})]


def test_the_same_graph_gives_the_same_bytes_and_progress_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "_BATCH", 2)
    graph = ColumnarGraph.from_triples([("a", "r", "b"), ("b", "r", "c"), ("c", "s", "a"), ("a", "s", "d")])
    told: list[tuple[int, int]] = []
    export_graph(graph, tmp_path / "one", lambda nodes, edges: told.append((nodes, edges)))
    assert told == [(2, 3), (4, 4)]
    monkeypatch.setattr(exporter, "_BATCH", 100)
    export_graph(graph, tmp_path / "two")
    for name in ("nodes.csv", "edges.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_place_that_is_taken_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes").write_text("keep me")
    with pytest.raises(GraphExists, match="something is there already"):
        export_graph(ColumnarGraph.from_triples([("a", "r", "b")]), tmp_path / "out")
    assert os.listdir(tmp_path) == ["out"]


def test_an_interrupted_export_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(nodes: int, edges: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_graph(ColumnarGraph.from_triples([("a", "r", "b")]), tmp_path / "out", interrupt)
    assert os.listdir(tmp_path) == []
