"""Tests of `byokg.graph.name_indexes`."""

from __future__ import annotations

from pathlib import Path

import pytest

from byokg.errors import ConfigError, GraphCorrupt
from byokg.graph import name_indexes as module
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.name_indexes import NAMES, build_names, name_entries, name_index, verify_name_index
from byokg.types import EntityId, Node, Triple

#   1 "New York City" (also "Big Apple", "NYC")  -near->  2 "Boston" (a name in two languages)
NODES = [
    Node(EntityId("1"), "New York City", properties={"also": "Big Apple | NYC;", "size": 8}),
    Node(EntityId("2"), "Boston", properties={"label": "Boston", "label[]": '"Boston"@en, "Bost\\"on"@xx'}),
]


@pytest.fixture
def memory() -> ColumnarGraph:
    return ColumnarGraph.from_records(NODES, [Triple(EntityId("1"), "near", EntityId("2"))])


@pytest.fixture
def graph(memory: ColumnarGraph, tmp_path: Path) -> ColumnarGraph:
    memory.save(tmp_path / "graph")
    return ColumnarGraph.open(tmp_path / "graph")


class TestEntries:
    def test_aliases_follow_the_name_of_their_node(self, memory: ColumnarGraph) -> None:
        assert list(name_entries(memory)) == [(0, "New York City"), (1, "Boston")]
        assert list(name_entries(memory, ["also", "size"])) == [
            (0, "New York City"),
            (0, "Big Apple"),
            (0, "NYC"),
            (1, "Boston"),
        ]

    def test_lists_of_rdf_literals_are_read(self, memory: ColumnarGraph) -> None:
        assert list(name_entries(memory, ["label"])) == [
            (0, "New York City"),
            (1, "Boston"),
            (1, "Boston"),
            (1, 'Bost"on'),
        ]

    def test_nodes_are_numbered_through_however_few_are_read_at_once(
        self, memory: ColumnarGraph, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "_NODES_AT_ONCE", 1)
        assert [number for number, _ in name_entries(memory)] == [0, 1]


class TestIndex:
    def test_without_a_folder_it_is_made_in_memory(self, memory: ColumnarGraph) -> None:
        assert name_index(memory).exact("boston").tolist() == [1]

    def test_a_saved_one_is_opened_with_its_aliases(self, graph: ColumnarGraph) -> None:
        assert name_index(graph).exact("nyc").tolist() == []
        build_names(graph, ["also"])
        assert name_index(graph).exact("nyc").tolist() == [0]

    def test_it_is_replaced_when_built_again(self, graph: ColumnarGraph) -> None:
        build_names(graph, ["also"])
        build_names(graph)
        assert name_index(graph).exact("nyc").tolist() == []
        assert graph.folder is not None
        assert [path.name for path in graph.folder.iterdir() if path.is_dir()] == [NAMES]

    def test_an_unknown_alias_is_named_with_those_there_are(self, graph: ColumnarGraph) -> None:
        with pytest.raises(ConfigError, match=r"'alias'.*also, size"):
            build_names(graph, ["alias"])
        assert graph.folder is not None and not (graph.folder / NAMES).exists()

    def test_a_graph_in_memory_has_no_place_for_one(self, memory: ColumnarGraph) -> None:
        with pytest.raises(ConfigError, match="in memory only"):
            build_names(memory)

    def test_one_of_another_graph_is_refused(self, graph: ColumnarGraph, tmp_path: Path) -> None:
        build_names(graph)
        ColumnarGraph.from_triples([("a", "r", "b")]).save(tmp_path / "other")
        (tmp_path / "graph" / NAMES).rename(tmp_path / "other" / NAMES)
        with pytest.raises(GraphCorrupt, match="another graph"):
            name_index(ColumnarGraph.open(tmp_path / "other"))


class TestVerify:
    def test_it_says_what_there_is(self, graph: ColumnarGraph) -> None:
        assert verify_name_index(graph) is None
        build_names(graph, ["also"])
        facts = verify_name_index(graph)
        assert facts is not None and (facts.names, facts.entries) == (4, 4) and facts.bytes > 0

    def test_a_changed_file_is_found(self, graph: ColumnarGraph, tmp_path: Path) -> None:
        build_names(graph)
        path = tmp_path / "graph" / NAMES / "name_owners.npy"
        path.write_bytes(path.read_bytes()[:-1] + b"\x01")
        with pytest.raises(GraphCorrupt, match=r"name_owners\.npy"):
            verify_name_index(graph)
