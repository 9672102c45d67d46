from __future__ import annotations

import datetime
import json
import lzma
import os
from pathlib import Path

import numpy as np
import pytest

from byokg.errors import GraphError
from byokg.graph.importers.triples import from_networkx, from_pandas, from_record
from byokg.types import EntityId, Node
from tests.graph.contract import facts, ids


class TestNetworkX:
    def test_attributes_become_names_types_and_properties(self) -> None:
        networkx = pytest.importorskip("networkx")
        source = networkx.MultiDiGraph()
        source.add_node(1, name="Ann", type="Person", born=1937, gone=None, score=float("nan"))
        source.add_node("film", day=datetime.date(1979, 5, 25))
        source.add_edge(1, "film", relation="starred", role="Ripley")
        source.add_edge(1, "film", key="directed")
        source.add_edge("film", "film", weight=np.float32(0.5))
        graph = from_networkx(source)
        assert graph.nodes(ids("1", "film")) == [
            Node(EntityId("1"), "Ann", "Person", {"born": 1937}),
            Node(EntityId("film"), "film", "", {"day": "1979-05-25"}),
        ]
        assert facts(graph) == [
            ("1", "starred", "film", {"role": "Ripley"}),
            ("1", "directed", "film", {}),
            ("film", "related_to", "film", {"weight": 0.5}),
        ]

    def test_an_edge_of_an_undirected_graph_is_kept_once(self) -> None:
        networkx = pytest.importorskip("networkx")
        source = networkx.Graph()
        source.add_edge("a", "b", label="near", kind="road")
        assert facts(from_networkx(source)) == [("a", "near", "b", {"kind": "road"})]
        assert facts(from_networkx(source, relation="kind")) == [("a", "road", "b", {"label": "near"})]

    def test_keys_that_read_alike_are_refused(self) -> None:
        networkx = pytest.importorskip("networkx")
        source = networkx.DiGraph([(1, "1")])
        with pytest.raises(GraphError, match="'1' occurs twice"):
            from_networkx(source)


class TestPandas:
    def test_edges_alone_are_triples(self) -> None:
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"head": ["a", "a"], "relation": ["r", "r"], "tail": [1, 1]})
        graph = from_pandas(frame)
        assert facts(graph) == [("a", "r", "1", {})]
        assert graph.dropped_duplicates == 1

    def test_other_columns_are_properties_and_missing_cells_absent(self) -> None:
        pandas = pytest.importorskip("pandas")
        edges = pandas.DataFrame(
            {
                "subject": ["a", "b"],
                "predicate": ["r", "s"],
                "object": ["b", "a"],
                "since": [1990, None],
                "seen": pandas.array([True, None], "boolean"),
                "at": pandas.to_datetime(["2001-09-30", None]),
            }
        )
        nodes = pandas.DataFrame({"id": ["a", "b"], "label": ["Ann", None], "age": pandas.array([5, None], "Int64")})
        columns = {"head": "subject", "relation": "predicate", "tail": "object", "name": "label"}
        graph = from_pandas(edges, nodes, columns)
        assert graph.nodes(ids("a", "b")) == [
            Node(EntityId("a"), "Ann", "", {"age": 5}),
            Node(EntityId("b"), "b"),
        ]
        assert facts(graph) == [
            ("a", "r", "b", {"since": 1990.0, "seen": True, "at": "2001-09-30"}),
            ("b", "s", "a", {}),
        ]

    def test_a_missing_column_or_id_is_named(self) -> None:
        pandas = pytest.importorskip("pandas")
        with pytest.raises(GraphError, match="the frame of edges has no column 'relation'; it has head, tail: say"):
            from_pandas(pandas.DataFrame({"head": ["a"], "tail": ["b"]}))
        frame = pandas.DataFrame({"head": [None], "relation": ["r"], "tail": ["b"]})
        with pytest.raises(GraphError, match="a node has the id None"):
            from_pandas(frame)


class TestRecords:
    def test_the_graph_of_a_question_is_read(self) -> None:
        graph = from_record({"id": "q1", "graph": [["a", "r", "b"], ["a", "r", "b"], ["b", "s", "a"]]})
        assert facts(graph) == [("a", "r", "b", {}), ("b", "s", "a", {})]
        assert graph.dropped_duplicates == 1
        assert from_record({"graph": []}).node_count == 0

    @pytest.mark.parametrize(
        "record", [{"id": "q1"}, {"id": "q1", "graph": "none"}, {"id": "q1", "graph": [["a", "r"]]}]
    )
    def test_a_record_without_triples_is_named(self, record: dict[str, object]) -> None:
        with pytest.raises(GraphError, match="record 'q1'"):
            from_record(record)

    def test_every_sample_gives_a_graph_of_the_size_described(self) -> None:
        folder = Path(os.environ.get("BYOKG_DATA") or Path(__file__).parents[3].parent / "shared" / "data")
        source = folder / "rog_samples" / "webqsp_samples.jsonl.xz"
        if not source.is_file():
            pytest.skip(f"no {source}; point BYOKG_DATA at a folder holding rog_samples")
        with lzma.open(source, "rt", encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines]
        graphs = [from_record(record) for record in records]
        sizes = [graph.edge_count + graph.dropped_duplicates for graph in graphs]
        assert (len(graphs), min(sizes), max(sizes)) == (18, 348, 7499)
        assert facts(graphs[0])[0][0] == "Jamaica"
