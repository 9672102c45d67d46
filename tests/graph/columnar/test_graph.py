from __future__ import annotations

import gc
import json
import subprocess
import sys
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.errors import EntityNotFound, GraphCorrupt, GraphError, GraphExists, GraphNotFound, RelationNotFound
from byokg.graph.columnar import folder as stored
from byokg.graph.columnar.assembly import EdgeTable, assemble_parts
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.columnar.schema import NodeColumns
from byokg.graph.store import Direction
from byokg.graph.traversal import neighbours
from byokg.types import EntityId, Node, Triple
from tests.graph.contract import GraphStoreContract, Make, edge, ids, node, spelled


class TestInMemory(GraphStoreContract):
    @pytest.fixture
    def make(self) -> Make:
        return ColumnarGraph.from_records


class TestSavedAndOpened(GraphStoreContract):
    @pytest.fixture
    def make(self, tmp_path: Path) -> Make:
        def make(nodes: Sequence[Node], edges: Sequence[Triple]) -> ColumnarGraph:
            ColumnarGraph.from_records(nodes, edges).save(tmp_path / "graph", overwrite=True)
            return ColumnarGraph.open(tmp_path / "graph")

        return make


def without_edge_numbers(graph: ColumnarGraph) -> ColumnarGraph:
    return ColumnarGraph(graph.name, replace(graph._parts, arrays=replace(graph.topology, in_edge=None)))


class TestWithoutEdgeNumbers(GraphStoreContract):
    @pytest.fixture
    def make(self) -> Make:
        return lambda nodes, edges: without_edge_numbers(ColumnarGraph.from_records(nodes, edges))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), max_size=60), st.data())
def test_numbers_of_incoming_edges_that_are_not_kept_are_found(
    triples: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    nodes = [node(f"n{number}") for number in range(6)]
    graph = ColumnarGraph.from_records(nodes, [edge(f"n{h}", f"r{r}", f"n{t}") for h, r, t in triples])
    arrays = graph.topology
    assert arrays.in_edge is not None
    kept = data.draw(st.lists(st.integers(0, len(triples) - 1), unique=True)) if triples else []
    slot = np.array(kept, np.int64) + len(triples)
    tail = arrays.in_index.searchsorted(slot, "right") - 1
    found = replace(arrays, in_edge=None).numbers_of(slot, tail)
    assert found.tolist() == arrays.in_edge[kept].tolist()


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_relations_are_counted_alike_however_many_edges_are_read_at_once(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a -r-> b, c, d    a -s-> b    b -r-> a    c -s-> c
    graph = ColumnarGraph.from_triples(
        [("a", "r", "b"), ("a", "r", "c"), ("a", "r", "d"), ("a", "s", "b"), ("b", "r", "a"), ("c", "s", "c")]
    )
    monkeypatch.setattr(stored, "COUNTED_AT_ONCE", at_once)
    found = graph.relation_counts(graph.numbers(ids("a", "d", "c")))
    columns = (found.origin, found.relation, found.inverse, found.count)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == [
        (0, 0, False, 3),
        (0, 1, False, 1),
        (0, 0, True, 1),
        (1, 0, True, 1),
        (2, 1, False, 1),
        (2, 0, True, 1),
        (2, 1, True, 1),
    ]


#   a -r-> b -s-> c,  a -r-> b again
TRIPLES = [("a", "r", "b"), ("b", "s", "c"), ("a", "r", "b")]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    ColumnarGraph.from_triples(TRIPLES).save(tmp_path / "graph")
    return tmp_path / "graph"


class TestFromTriples:
    def test_exact_repetitions_are_dropped_and_counted(self) -> None:
        graph = ColumnarGraph.from_triples(TRIPLES)
        assert (graph.node_count, graph.edge_count, graph.dropped_duplicates) == (3, 2, 1)

    def test_nodes_are_numbered_by_first_appearance_and_named_by_their_id(self) -> None:
        graph = ColumnarGraph.from_triples([("z", "r", "a"), ("m", "q", "z")])
        assert list(graph.entities()) == ["z", "a", "m"]
        assert list(graph.relations) == ["r", "q"]
        assert graph.nodes(ids("m")) == [Node(EntityId("m"), "m")]

    def test_the_edge_number_is_the_position_by_head_relation_and_tail(self) -> None:
        # numbers: a 0, b 1, c 2; relations: s 0, r 1. Sorted: a-s->b, a-r->b, a-r->c, c-s->a
        graph = ColumnarGraph.from_triples([("a", "s", "b"), ("a", "r", "c"), ("c", "s", "a"), ("a", "r", "b")])
        batch = graph.edges(np.arange(3), Direction.OUT)
        assert batch.edge.tolist() == [0, 1, 2, 3]
        assert [row[2:] for row in spelled(graph, batch)] == [
            ("a", "s", "b"),
            ("a", "r", "b"),
            ("a", "r", "c"),
            ("c", "s", "a"),
        ]

    def test_untyped_nodes_are_counted_under_the_empty_type(self) -> None:
        schema = ColumnarGraph.from_triples(TRIPLES).schema()
        assert schema.node_types == {"": 3}
        assert schema.relations[0].domain == ("",)


class TestFromRecords:
    def test_a_missing_end_is_named(self) -> None:
        with pytest.raises(EntityNotFound, match="'b'"):
            ColumnarGraph.from_records([node("a")], [edge("a", "r", "b")])

    def test_a_repeated_id_is_named(self) -> None:
        with pytest.raises(GraphError, match="'a' occurs twice"):
            ColumnarGraph.from_records([node("a"), node("a", "T")], [])

    def test_a_property_of_mixed_types_is_named(self) -> None:
        with pytest.raises(GraphError, match="'age' holds values of types int, str"):
            ColumnarGraph.from_records([node("a", age=5), node("b", age="five")], [])

    def test_a_number_too_large_for_64_bits_is_named(self) -> None:
        with pytest.raises(GraphError, match="'age'"):
            ColumnarGraph.from_records([node("a", age=1 << 70)], [])

    def test_parallel_edges_with_equal_content_stay_apart(self) -> None:
        graph = ColumnarGraph.from_records([node("a")], [edge("a", "r", "a", w=1), edge("a", "r", "a", w=1)])
        assert graph.edge_count == 2
        assert graph.dropped_duplicates == 0

    def test_parallel_edges_are_numbered_in_the_order_given(self) -> None:
        years = [2001, 1999, 2010, 1950]
        graph = ColumnarGraph.from_records([node("a")], [edge("a", "r", "a", year=year) for year in years])
        assert [row["year"] for row in graph.edge_properties(np.arange(4))] == years


class TestDegree:
    # a -r-> b, a -r-> c, b -s-> b
    @pytest.mark.parametrize(
        ("direction", "expected"), [(Direction.OUT, [2, 1, 0]), (Direction.IN, [0, 2, 1]), (Direction.BOTH, [2, 3, 1])]
    )
    def test_a_self_loop_counts_in_each_direction(self, direction: Direction, expected: list[int]) -> None:
        graph = ColumnarGraph.from_triples([("a", "r", "b"), ("a", "r", "c"), ("b", "s", "b")])
        assert graph.degree(np.arange(3), direction).tolist() == expected


class TestNumbersOutOfRange:
    @pytest.mark.parametrize("number", [-1, 3, 1 << 40])
    def test_a_node_number_out_of_range_raises_and_does_not_count_from_the_end(self, number: int) -> None:
        graph = ColumnarGraph.from_triples(TRIPLES)
        for call in (graph.edges, graph.ids, graph.degree):
            with pytest.raises(EntityNotFound, match=str(number)):
                call(np.array([0, number]))

    @pytest.mark.parametrize("number", [-1, 2])
    def test_an_edge_or_relation_number_out_of_range_raises(self, number: int) -> None:
        graph = ColumnarGraph.from_triples(TRIPLES)
        with pytest.raises(GraphError, match=str(number)):
            graph.edge_properties(np.array([number]))
        with pytest.raises(RelationNotFound, match=str(number)):
            graph.edges(np.array([0]), Direction.OUT, np.array([0, number]))


class TestTextThatIsNoUnicode:
    @pytest.mark.parametrize("count", [1, 50])
    def test_a_lone_surrogate_is_an_unknown_entity(self, count: int) -> None:
        graph = ColumnarGraph.from_triples(TRIPLES)
        with pytest.raises(EntityNotFound):
            graph.numbers(ids(*["a"] * (count - 1), "\udc80"))


class TestRelationFilterOnHubs:
    """A hub is searched by bisection, a small node by reading its range: both must say the same."""

    @pytest.mark.parametrize("wanted", [[0], [2], [1, 3], [4, 0], [0, 1, 2, 3, 4]])
    @pytest.mark.parametrize("direction", list(Direction))
    def test_bisection_agrees_with_reading_everything(self, wanted: list[int], direction: Direction) -> None:
        rng = np.random.default_rng(7)
        count = 30_000
        ends = rng.integers(0, 12, (2, count))
        ends[0, : count // 2] = 0  # node 0 is a hub both ways
        ends[1, count // 2 : 3 * count // 4] = 0
        parts = assemble_parts(
            NodeColumns(pa.array([str(number) for number in range(12)], pa.large_string())),
            [f"r{number}" for number in range(5)],
            EdgeTable(np.stack((ends[0], rng.integers(0, 5, count), ends[1]), axis=1)),
            source={},
        )
        graph = ColumnarGraph("hub", parts)
        asked = np.array([3, 0, 7, 0])
        whole = graph.edges(asked, direction)
        kept = np.isin(whole.relation, wanted)
        found = graph.edges(asked, direction, np.array(wanted))
        assert len(whole) > 20_000
        for name in ("head", "relation", "tail", "edge", "origin", "inverse"):
            assert getattr(found, name).tolist() == getattr(whole, name)[kept].tolist()


class TestEdgesAmongNodes:
    @pytest.mark.parametrize("at_once", [1, 3, 1 << 16])
    @settings(deadline=None, max_examples=30)
    @given(
        edges=st.lists(st.tuples(*[st.integers(0, 9)] * 2, st.sampled_from("rs")), max_size=30),
        asked=st.lists(st.integers(0, 9), unique=True),
    )
    def test_they_are_those_of_all_edges_whose_ends_were_both_asked_for(
        self, at_once: int, edges: list[tuple[int, int, str]], asked: list[int]
    ) -> None:
        store = ColumnarGraph.from_records(
            [node(str(at)) for at in range(10)], [edge(str(head), label, str(tail)) for head, tail, label in edges]
        )
        nodes = np.array(asked, np.int64)
        every = store.edges(nodes, Direction.OUT)
        wanted = np.isin(every.tail, nodes)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stored, "_LOOKED_AT_ONCE", at_once)
            found = store.edges_among(nodes)
        assert found.edge.tolist() == every.edge[wanted].tolist()
        assert found.relation.tolist() == every.relation[wanted].tolist()
        assert found.head.tolist() == every.origin[wanted].tolist()
        assert nodes[found.tail.astype(np.int64)].tolist() == every.tail[wanted].tolist()

    def test_a_node_number_out_of_range_raises(self) -> None:
        with pytest.raises(EntityNotFound, match="number 3"):
            ColumnarGraph.from_triples([("a", "r", "b")]).edges_among(np.array([0, 3]))


class TestFarEnds:
    @settings(deadline=None, max_examples=30)
    @given(
        at_once=st.integers(1, 5),
        edges=st.lists(st.tuples(*[st.integers(0, 9)] * 2, st.sampled_from("rs")), max_size=30),
        asked=st.lists(st.integers(0, 9)),
        direction=st.sampled_from(Direction),
    )
    def test_they_are_those_of_all_edges_that_touch_the_nodes(
        self, at_once: int, edges: list[tuple[int, int, str]], asked: list[int], direction: Direction
    ) -> None:
        store = ColumnarGraph.from_records(
            [node(str(at)) for at in range(10)], [edge(str(head), label, str(tail)) for head, tail, label in edges]
        )
        nodes = np.array(asked, np.int64)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stored, "COUNTED_AT_ONCE", at_once)
            found = store.far_ends(nodes, direction)
        assert found.tolist() == sorted(set(store.edges(nodes, direction).other.tolist()))

    def test_a_node_number_out_of_range_raises(self) -> None:
        with pytest.raises(EntityNotFound, match="number 3"):
            ColumnarGraph.from_triples([("a", "r", "b")]).far_ends(np.array([0, 3]))


class TestCappedEdges:
    @settings(deadline=None, max_examples=40)
    @given(
        at_once=st.integers(1, 5),
        most=st.integers(0, 4),
        edges=st.lists(st.tuples(*[st.integers(0, 4)] * 2, st.sampled_from("rst")), max_size=30),
        asked=st.lists(st.integers(0, 4)),
        direction=st.sampled_from(Direction),
        relations=st.none() | st.lists(st.integers(0, 2)),
        keep_numbers=st.booleans(),
    )
    def test_they_are_the_first_of_each_relation_of_each_node(
        self,
        at_once: int,
        most: int,
        edges: list[tuple[int, int, str]],
        asked: list[int],
        direction: Direction,
        relations: list[int] | None,
        keep_numbers: bool,
    ) -> None:
        every = [(0, 0, "r"), (0, 0, "s"), (0, 0, "t"), *edges]
        store = ColumnarGraph.from_records(
            [node(str(at)) for at in range(5)], [edge(str(head), label, str(tail)) for head, tail, label in every]
        )
        if not keep_numbers:
            without_edge_numbers(store)
        wanted = None if relations is None else np.array(relations, np.int64)
        nodes = np.array(asked, np.int64)
        batch = store.edges(nodes, direction, wanted)
        met: Counter[tuple[int, int, bool]] = Counter()
        rows = []
        for row, key in enumerate(
            zip(batch.origin.tolist(), batch.relation.tolist(), batch.inverse.tolist(), strict=True)
        ):
            if met[key] < most:
                rows.append(row)
            met[key] += 1
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stored, "COUNTED_AT_ONCE", at_once)
            found = store.capped_edges(nodes, direction, wanted, most=most)
        for column in ("head", "relation", "tail", "edge", "origin", "inverse"):
            assert getattr(found, column).tolist() == getattr(batch, column)[rows].tolist(), column


class TestWidths:
    @pytest.mark.parametrize(("count", "width"), [(65_535, np.uint16), (65_536, np.int32)])
    def test_relation_numbers_take_two_bytes_while_they_fit(self, count: int, width: type) -> None:
        graph = ColumnarGraph.from_triples(("a", f"r{number}", "b") for number in range(count))
        batch = graph.edges(graph.numbers(ids("b")))
        assert batch.relation.dtype == width
        assert batch.relation.tolist() == list(range(count))


class TestSaving:
    def test_a_saved_graph_answers_as_before(self, saved: Path) -> None:
        before, after = ColumnarGraph.from_triples(TRIPLES), ColumnarGraph.open(saved)
        assert list(after.entities()) == list(before.entities())
        assert after.schema() == before.schema()
        assert after.dropped_duplicates == 1
        assert after.source == before.source
        assert spelled(after, after.edges(np.arange(3))) == spelled(before, before.edges(np.arange(3)))

    def test_equal_graphs_give_equal_bytes(self, tmp_path: Path) -> None:
        nodes, edges = [node("a", "T", x=1.5), node("b", "U", y="é")], [edge("a", "r", "b", since=1999)]
        for name in ("one", "two"):
            ColumnarGraph.from_records(nodes, edges).save(tmp_path / name)
        one, two = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "two"))
        assert one == two
        assert ColumnarGraph.open(tmp_path / "one").checksum == ColumnarGraph.open(tmp_path / "two").checksum

    def test_the_checksum_is_that_of_the_content(self, tmp_path: Path, saved: Path) -> None:
        ColumnarGraph.from_triples([("a", "r", "c")]).save(tmp_path / "other")
        assert ColumnarGraph.open(tmp_path / "other").checksum != ColumnarGraph.open(saved).checksum
        assert ColumnarGraph.from_triples(TRIPLES).checksum is None

    def test_an_existing_graph_is_replaced_only_when_told_to(self, saved: Path) -> None:
        other = ColumnarGraph.from_triples([("x", "r", "y")])
        with pytest.raises(GraphExists, match="overwrite=True"):
            other.save(saved)
        assert ColumnarGraph.open(saved).node_count == 3
        other.save(saved, overwrite=True)
        assert list(ColumnarGraph.open(saved).entities()) == ["x", "y"]

    def test_a_replaced_graph_can_still_be_read_by_who_had_it_open(self, saved: Path) -> None:
        before = ColumnarGraph.open(saved)
        ColumnarGraph.from_triples([("x", "r", "y")]).save(saved, overwrite=True)
        assert list(before.entities()) == ["a", "b", "c"]
        assert len(before.edges(np.arange(3))) == 4

    def test_a_folder_that_is_no_graph_is_never_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "photos").mkdir()
        (tmp_path / "photos" / "cat.jpg").write_bytes(b"meow")
        with pytest.raises(GraphExists, match="holds no graph"):
            ColumnarGraph.from_triples(TRIPLES).save(tmp_path / "photos", overwrite=True)
        assert [path.name for path in (tmp_path / "photos").iterdir()] == ["cat.jpg"]

    def test_a_file_is_never_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "notes").write_text("keep me")
        with pytest.raises(GraphExists, match="a file is there"):
            ColumnarGraph.from_triples(TRIPLES).save(tmp_path / "notes", overwrite=True)
        assert (tmp_path / "notes").read_text() == "keep me"

    def test_an_empty_folder_and_missing_parents_are_fine(self, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        for folder in (tmp_path / "empty", tmp_path / "new" / "deep"):
            ColumnarGraph.from_triples(TRIPLES).save(folder)
            assert ColumnarGraph.open(folder).edge_count == 2

    def test_a_place_that_cannot_be_written_is_a_graph_error(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(GraphError, match="cannot write to"):
            ColumnarGraph.from_triples(TRIPLES).save(tmp_path / "file" / "graph")

    def test_a_damaged_graph_may_be_overwritten(self, saved: Path) -> None:
        (saved / "other.npy").unlink()
        ColumnarGraph.from_triples(TRIPLES).save(saved, overwrite=True)
        ColumnarGraph.open(saved).verify()

    def test_another_process_reads_the_same_graph(self, saved: Path) -> None:
        code = (
            "import sys; from byokg.graph.columnar.graph import ColumnarGraph; "
            "print(list(ColumnarGraph.open(sys.argv[1]).entities()))"
        )
        done = subprocess.run([sys.executable, "-c", code, str(saved)], capture_output=True, text=True, check=True)
        assert done.stdout == "['a', 'b', 'c']\n"


class TestOpening:
    def test_a_missing_folder_or_one_without_meta_is_not_found(self, tmp_path: Path) -> None:
        for folder in (tmp_path, tmp_path / "nowhere"):
            with pytest.raises(GraphNotFound, match="byokg graph build"):
                ColumnarGraph.open(folder)

    def test_a_missing_file_is_named(self, saved: Path) -> None:
        (saved / "other.npy").unlink()
        with pytest.raises(GraphCorrupt, match=r"other\.npy is missing"):
            ColumnarGraph.open(saved)

    def test_a_file_cut_short_is_named(self, saved: Path) -> None:
        content = (saved / "id_bytes.npy").read_bytes()
        (saved / "id_bytes.npy").write_bytes(content[:-8])
        with pytest.raises(GraphCorrupt, match=r"id_bytes\.npy has"):
            ColumnarGraph.open(saved)

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            ("{", "meta.json"),
            ("[]", "does not say format"),
            ('{"format": "parquet"}', "does not say format"),
            ('{"format": "byokg-columnar", "version": 99}', "version 99"),
            ('{"format": "byokg-columnar", "version": 7}', "lacks nodes"),
            (
                '{"format": "byokg-columnar", "version": 7, "nodes": 3, "edges": 2, "dropped_duplicates": 1, '
                '"source": {}, "schema": {}, "files": {"other.npy": {}}, "meta_sha256": ""}',
                "list of files in meta.json is damaged",
            ),
            (
                '{"format": "byokg-columnar", "version": 7, "nodes": 3, "edges": 2, "dropped_duplicates": 1, '
                '"source": {}, "schema": {}, "files": {}, "meta_sha256": ""}',
                "cannot be read",
            ),
        ],
    )
    def test_meta_that_is_not_ours_is_refused_with_the_reason(self, saved: Path, content: str, reason: str) -> None:
        (saved / "meta.json").write_text(content)
        with pytest.raises(GraphCorrupt, match=reason):
            ColumnarGraph.open(saved)

    def test_a_file_of_the_right_length_with_wrong_content_is_refused(self, saved: Path) -> None:
        (saved / "id_bytes.npy").write_bytes(b"x" * (saved / "id_bytes.npy").stat().st_size)
        with pytest.raises(GraphCorrupt):
            ColumnarGraph.open(saved)

    def test_verify_finds_one_changed_byte(self, saved: Path) -> None:
        ColumnarGraph.open(saved).verify()
        content = bytearray((saved / "other.npy").read_bytes())
        content[-1] ^= 1
        (saved / "other.npy").write_bytes(content)
        with pytest.raises(GraphCorrupt, match=r"other\.npy has changed"):
            ColumnarGraph.open(saved).verify()

    def test_verifying_a_graph_in_memory_does_nothing(self) -> None:
        ColumnarGraph.from_triples(TRIPLES).verify()

    def test_meta_lists_every_file_with_size_and_checksum(self, saved: Path) -> None:
        meta = json.loads((saved / "meta.json").read_text("utf-8"))
        assert (meta["nodes"], meta["edges"], meta["dropped_duplicates"]) == (3, 2, 1)
        assert set(meta["files"]) == {path.name for path in saved.iterdir()} - {"meta.json"}
        assert all(len(entry["sha256"]) == 64 for entry in meta["files"].values())


HALF = "\ud800"


class TestTextsThatUtf8CannotHold:
    @pytest.mark.parametrize("triple", [(HALF, "r", "b"), ("a", HALF, "b"), ("a", "r", HALF)])
    def test_triples_with_one_are_refused(self, triple: tuple[str, str, str]) -> None:
        with pytest.raises(GraphError, match=r"'\\ud800' holds half of a surrogate pair"):
            ColumnarGraph.from_triples([triple])

    @pytest.mark.parametrize(
        "node",
        [
            Node(EntityId(HALF), "a"),
            Node(EntityId("a"), HALF),
            Node(EntityId("a"), "a", HALF),
            Node(EntityId("a"), "a", "", {"p": HALF}),
            Node(EntityId("a"), "a", "", {HALF: 1}),
        ],
    )
    def test_nodes_with_one_are_refused(self, node: Node) -> None:
        with pytest.raises(GraphError, match=r"'\\ud800' holds half of a surrogate pair"):
            ColumnarGraph.from_records([node], [])

    @pytest.mark.parametrize("count", [1, 20])
    def test_no_node_and_no_relation_has_one(self, count: int) -> None:
        graph = ColumnarGraph.from_triples([("a", "r", "b")])
        with pytest.raises(EntityNotFound):
            graph.nodes([EntityId(HALF)] * count)
        with pytest.raises(RelationNotFound):
            neighbours(graph, [EntityId("a")], relations=[HALF])

    @pytest.mark.parametrize("name", [HALF, "\udcff"])
    def test_no_folder_is_named_so(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(GraphNotFound):
            ColumnarGraph.open(tmp_path / name)
        with pytest.raises(GraphError, match="the name is not UTF-8; choose another"):
            ColumnarGraph.from_triples([("a", "r", "b")]).save(tmp_path / name)
        assert list(tmp_path.iterdir()) == []


def test_a_graph_that_nobody_holds_gives_its_files_back_at_once() -> None:
    gc.disable()
    try:
        graph = ColumnarGraph.from_triples([("a", "r", "b")])
        graph.nodes([EntityId("a")])
        held = weakref.ref(graph)
        del graph
        assert held() is None
    finally:
        gc.enable()


def test_which_edges_are_a_sample_is_remembered_for_a_large_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(stored, "_REMEMBERED_FROM", 10)
    edges = [edge(f"n{number}", f"r{number % 3}", f"n{number + 1}") for number in range(90)]
    ColumnarGraph.from_records([node(f"n{number}") for number in range(91)], edges).save(tmp_path / "graph")
    expected = ColumnarGraph.open(tmp_path / "graph").sample_edges(7).edge
    assert len(expected) == 21
    (file,) = (tmp_path / "cache" / "byokg" / "samples").iterdir()
    np.save(file, expected[:5], allow_pickle=False)
    assert ColumnarGraph.open(tmp_path / "graph").sample_edges(7).edge.tolist() == expected[:5].tolist()
    for damage in (b"", b"nonsense", file.read_bytes()[:-1]):
        file.write_bytes(damage)
        assert ColumnarGraph.open(tmp_path / "graph").sample_edges(7).edge.tolist() == expected.tolist()
    np.save(file, expected + 90, allow_pickle=False)
    assert ColumnarGraph.open(tmp_path / "graph").sample_edges(7).edge.tolist() == expected.tolist()
