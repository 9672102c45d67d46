"""All types of a node are kept in their order, found by node and by type, and counted at the ends of edges."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.graph.columnar import schema
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.columnar.node_types import split_cell, write_types
from byokg.graph.importers.choose import build_graph
from byokg.types import EntityId, Node
from tests.graph.contract import edge

LABELS = st.sampled_from(["A", "B", "a|b", "back\\", "\\|", "C"])
TYPES = st.lists(st.lists(LABELS, max_size=4, unique=True), min_size=1, max_size=12)


@given(st.lists(st.text("ab|\\ ;", min_size=1), max_size=5, unique=True))
def test_a_cell_holds_any_types(types: list[str]) -> None:
    assert split_cell(write_types(types)) == tuple(types)


def graph_of(types: list[list[str]]) -> ColumnarGraph:
    """Return a graph whose node i has the i-th types and an edge to node 3 i, round and round."""
    count = len(types)
    nodes = [
        Node(EntityId(f"n{at}"), f"n{at}", (some or [""])[0], {}, tuple(some[1:])) for at, some in enumerate(types)
    ]
    edges = [edge(f"n{at}", f"r{at % 2}", f"n{at * 3 % count}") for at in range(count)]
    return ColumnarGraph.from_records(nodes, edges)


@settings(max_examples=40)
@given(TYPES)
def test_nodes_types_and_sets_are_those_that_were_given(types: list[list[str]]) -> None:
    held = graph_of(types)
    found = held.nodes(list(held.entities()))
    assert [list(node.types) for node in found] == types
    for label in {label for some in types for label in some}:
        members = held.node_types.members(label)
        assert members.tolist() == [at for at, some in enumerate(types) if label in some]
    assert {frozenset(some) for some in held.node_types.sets} == {frozenset(some) for some in types if len(some) > 1}
    cells = held.node_types.cells(0, len(types)).to_pylist()
    assert cells == [write_types(some) if some else None for some in types]
    middle = len(types) // 2
    assert held.node_types.cells(middle, len(types)).to_pylist() == cells[middle:]


@settings(max_examples=40)
@given(TYPES)
def test_an_edge_counts_for_all_types_of_its_ends(types: list[list[str]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "_SCAN", 2)
        held = graph_of(types)
    assert held.schema().node_types == Counter(label for some in types for label in some or [""])
    for relation in held.schema().relations:
        ends = Counter[str]()
        for at in range(len(types)):
            if f"r{at % 2}" == relation.name:
                ends.update(types[at * 3 % len(types)] or [""])
        assert relation.range == tuple(sorted(ends, key=lambda label: (-ends[label], label)))


def test_a_graph_written_in_portions_has_the_types_of_one_in_memory(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/nodes.csv").write_text("id,type,age:int\na,A|B,1\nb,,\nc,B\\|C|A,2\nd,B,3\n")
    (tmp_path / "in/edges.csv").write_text("head,relation,tail\na,r,c\nb,r,a\n")
    written = build_graph(tmp_path / "in", tmp_path / "out")
    written.verify()
    assert [node.types for node in written.nodes([EntityId(name) for name in "abcd"])] == [
        ("A", "B"),
        (),
        ("B|C", "A"),
        ("B",),
    ]
    assert written.schema().node_types == {"A": 2, "B": 2, "": 1, "B|C": 1}
    (relation,) = written.schema().relations
    assert (relation.domain, relation.range) == (("", "A", "B"), ("A", "B", "B|C"))
    assert (tmp_path / "out/type_node.npy").exists()
    assert np.load(tmp_path / "out/type_node.npy").tolist() == [0, 2]


def test_a_graph_without_nodes_of_several_types_has_no_further_files(tmp_path: Path) -> None:
    graph_of([["A"], ["B"], []]).save(tmp_path / "graph")
    assert not list((tmp_path / "graph").glob("type_*"))
