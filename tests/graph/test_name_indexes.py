"""Tests of `byokg.graph.name_indexes`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from byokg.errors import ConfigError, EmbedderFailed, GraphCorrupt, GraphExists, IndexUnusable
from byokg.graph import name_indexes as module
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.name_indexes import (
    DENSE,
    NAMES,
    DenseFacts,
    also_called,
    build_dense,
    build_names,
    dense_names,
    embedded_entries,
    index_folder,
    name_entries,
    name_index,
    verify_dense,
    verify_name_index,
)
from byokg.index.dense import Embedded
from byokg.index.embedders import StaticEmbedder, Vectors
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


def test_a_large_graph_without_an_index_gets_one_on_disk(graph: ColumnarGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 1)
    assert graph.folder is not None and name_index(graph).exact("boston").tolist() == [1]
    assert (graph.folder / "names" / "meta.json").exists()


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
        assert list(name_entries(memory, ["label"])) == [(0, "New York City"), (1, "Boston"), (1, 'Bost"on')]

    @pytest.mark.parametrize(
        ("id", "name", "further"),
        [
            ("m", "Titanic (1997 film)", ["Titanic"]),
            ("m", "Titanic", []),
            ("ex:AdaLovelace", "ex:AdaLovelace", ["AdaLovelace", "Ada Lovelace"]),
            ("dbr:Inception_(film)", "dbr:Inception_(film)", ["Inception_(film)", "Inception"]),
            ("http://ex.org/US_Navy", "http://ex.org/US_Navy", ["US_Navy"]),
            ("http://ex.org/AdaLovelace", "AdaLovelace", ["Ada Lovelace"]),
            ("http://ex.org/1", "McDonald", []),
            ("Alien: Covenant", "Alien: Covenant", []),
            ("wd:Q42", "wd:Q42", ["Q42"]),
        ],
    )
    def test_a_node_is_also_called_what_its_id_or_its_unqualified_name_says(
        self, id: str, name: str, further: list[str]
    ) -> None:
        assert also_called(Node(EntityId(id), name)) == further

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


STATIC = StaticEmbedder()


class Counting:
    """The shipped embedder, which keeps what it was asked and fails on demand."""

    name = STATIC.name

    def __init__(self, fails: bool = False) -> None:
        self.asked: list[str] = []
        self.fails = fails

    def encode(self, texts: Sequence[str]) -> Vectors:
        if self.fails and texts:
            raise EmbedderFailed(self.name, "no connection", retryable=True)
        self.asked += texts
        return STATIC.encode(texts)


def records() -> ColumnarGraph:
    """Jordan (0, a country) and Jordan (1, a player); a mediator without a name (2); Amman (3)."""
    ids = [("m.0a", "Jordan"), ("m.0b", "Jordan"), ("m.0cvt", "m.0cvt"), ("m.0d", "Amman")]
    return ColumnarGraph.from_records([Node(EntityId(id), name, "", {}) for id, name in ids], [])


@pytest.fixture
def towns(tmp_path: Path) -> ColumnarGraph:
    records().save(tmp_path / "graph")
    return ColumnarGraph.open(tmp_path / "graph")


def test_nodes_without_a_name_of_their_own_are_left_out() -> None:
    assert list(embedded_entries(records())) == [(0, "Jordan"), (1, "Jordan"), (3, "Amman")]


def test_numbers_go_on_from_one_batch_of_nodes_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("byokg.graph.name_indexes._NODES_AT_ONCE", 2)
    assert list(embedded_entries(records())) == [(0, "Jordan"), (1, "Jordan"), (3, "Amman")]


def test_without_a_saved_index_one_is_made_in_memory() -> None:
    told: list[Embedded] = []
    (matches,) = dense_names(records(), STATIC, progress=told.append).search(["jordan"], k=5)
    assert [(match.owner, match.name, match.score) for match in matches[:2]] == [(0, "Jordan", 1.0), (1, "Jordan", 1.0)]
    assert told == [Embedded(2, 2)]


def test_too_many_names_are_not_embedded_unasked() -> None:
    with pytest.raises(IndexUnusable, match=r"more than 2 names.*byokg graph embed"):
        dense_names(records(), STATIC, most=2)
    assert len(dense_names(records(), STATIC, most=3)) == 2


def test_a_saved_index_is_opened_and_embeds_nothing(towns: ColumnarGraph) -> None:
    build_dense(towns, STATIC)
    counting = Counting()
    names = dense_names(towns, counting, most=0)
    assert counting.asked == []
    assert [match.owner for match in names.search(["Amman"], k=1)[0]] == [3]


def test_a_second_build_takes_all_vectors_from_the_cache(towns: ColumnarGraph, tmp_path: Path) -> None:
    build_dense(towns, STATIC, cache=tmp_path / "cache")
    counting = Counting()
    build_dense(towns, counting, cache=tmp_path / "cache", overwrite=True)
    assert counting.asked == []


def test_an_index_that_is_there_is_kept_unless_told_otherwise(towns: ColumnarGraph) -> None:
    build_dense(towns, STATIC)
    counting = Counting()
    with pytest.raises(GraphExists, match="overwrite=True"):
        build_dense(towns, counting)
    assert counting.asked == []
    build_dense(towns, counting, overwrite=True)


def test_a_failed_build_leaves_what_was_there(towns: ColumnarGraph) -> None:
    with pytest.raises(EmbedderFailed):
        build_dense(towns, Counting(fails=True))
    assert towns.folder is not None and not (towns.folder / DENSE).exists()
    build_dense(towns, STATIC)
    with pytest.raises(EmbedderFailed):
        build_dense(towns, Counting(fails=True), overwrite=True)
    assert [path.name for path in (towns.folder / DENSE).iterdir()] == [STATIC.name]
    assert len(dense_names(towns, STATIC, most=0)) == 2


def test_a_graph_in_memory_has_no_place_for_an_index() -> None:
    with pytest.raises(ConfigError, match="in memory only"):
        build_dense(records(), STATIC)


def test_verifying_tells_what_is_there_and_finds_damage(towns: ColumnarGraph) -> None:
    assert verify_dense(towns) == []
    build_dense(towns, STATIC)
    assert verify_dense(towns) == [DenseFacts(STATIC.name, 2, "flat", 128)]
    assert towns.folder is not None
    file = index_folder(towns.folder, STATIC) / "vectors.faiss"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(IndexUnusable, match=r"vectors\.faiss has changed"):
        verify_dense(towns)


def test_an_index_of_another_graph_is_refused(towns: ColumnarGraph, tmp_path: Path) -> None:
    build_dense(towns, STATIC)
    ColumnarGraph.from_triples([("a", "r", "b")]).save(tmp_path / "other")
    other = ColumnarGraph.open(tmp_path / "other")
    assert towns.folder is not None
    (towns.folder / DENSE).rename(tmp_path / "other" / DENSE)
    with pytest.raises(IndexUnusable, match="made for"):
        dense_names(other, STATIC)
    with pytest.raises(IndexUnusable, match="another graph"):
        verify_dense(other)
