from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from byokg.errors import ImportFailed
from byokg.graph.importers.choose import build_graph, import_graph
from byokg.types import EntityId
from tests.graph.test_exporter import content

ENDS = {"head": ["a", "a", "b"], "relation": ["r", "r", "s"], "tail": ["b", "b", "c"]}


def write(path: Path, columns: Mapping[str, object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns), path)
    return path


def test_edges_alone_are_a_graph_and_repetitions_are_counted(tmp_path: Path) -> None:
    graph = import_graph(write(tmp_path / "any.parquet", ENDS))
    assert content(graph)[1] == [("a", "r", "b", {}), ("b", "s", "c", {})] and graph.dropped_duplicates == 1
    weighed = import_graph(write(tmp_path / "weighed.parquet", {**ENDS, "weight": [1, 2, 3]}))
    assert [edge[3] for edge in content(weighed)[1]] == [{"weight": 1}, {"weight": 2}, {"weight": 3}]


def test_all_types_of_columns_become_properties(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    nodes = {
        "id": pa.array([1, 2, 3, 3], pa.int16()),
        "name": pa.array(["Ann", "", None, None]).dictionary_encode(),
        "type": ["Person"] * 4,
        "small": pa.array([1, None, 3, 3], pa.uint8()),
        "half": pa.array([0.5, None, None, None], pa.float32()),
        "day": pa.array([datetime.date(2001, 9, 30), None, None, None]),
        "at": pa.array([datetime.datetime(2001, 9, 30, 12), None, None, None]),
        "list": pa.array([["x", "y"], None, None, None]),
    }
    write(folder / "nodes.parquet", nodes)
    write(folder / "edges-1.parquet", {"head": [1], "relation": ["r"], "tail": [2]})
    write(folder / "edges-2.parquet", {"head": ["1"], "relation": ["r"], "tail": ["2"], "since": [1990]})
    graph = build_graph(folder, tmp_path / "graph")
    first, second, third = graph.nodes([EntityId(id) for id in "123"])
    assert (first.name, second.name, third.name, first.type) == ("Ann", "2", "3", "Person")
    assert first.properties == {
        "small": 1,
        "half": 0.5,
        "day": "2001-09-30",
        "at": "2001-09-30T12:00:00",
        "list": '["x", "y"]',
    }
    assert [edge[3] for edge in content(graph)[1]] == [{}, {"since": 1990}]


@pytest.mark.parametrize(
    ("nodes", "edges", "reason"),
    [
        (None, {"first": ["a"], "tail": ["b"]}, "has no two columns for the ends of edges among first, tail"),
        ({"name": ["a"]}, ENDS, "has no column 'id' among name"),
        (None, {**ENDS, "relation": ["", "", ""]}, "row 1: the relation is empty"),
        ({"id": ["a"]}, ENDS, "row 1: tail 'b' is no id in the files of nodes"),
        ({"id": ["a", "a"], "n": [1, 2]}, ENDS, "node id 'a' stands in rows 1 and 2 of the nodes, with n 1 and 2"),
        (None, {**ENDS, "tail": ["a", "", "b"]}, "row 2: the tail is empty"),
        (None, {**ENDS, "head": [1.5, 2.5, 3.5]}, "column 'head' holds double"),
        (None, {**ENDS, "tail": pa.array([b"\xff"] * 3)}, "column 'tail': .*store it as text"),
        (None, {**ENDS, "n": pa.array([1 << 63] * 3, pa.uint64())}, "column 'n': .*store it as text"),
    ],
)
def test_what_is_no_graph_is_refused_by_file_and_row(
    tmp_path: Path, nodes: dict[str, object] | None, edges: dict[str, object], reason: str
) -> None:
    if nodes:
        write(tmp_path / "in/nodes.parquet", nodes)
    write(tmp_path / "in/edges.parquet", edges)
    with pytest.raises(ImportFailed, match=rf"\.parquet: {reason}"):
        build_graph(tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_damaged_file_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(ImportFailed, match="cannot be read as Parquet"):
        import_graph(tmp_path / "x.parquet")
