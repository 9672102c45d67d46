from __future__ import annotations

import csv
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from byokg.api import KnowledgeGraph
from byokg.errors import ConfigError, GraphError, GraphExists, MissingExtra
from byokg.graph import export_formats
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.export_formats import FORMATS, write_graph_as
from byokg.graph.importers.choose import import_graph
from byokg.graph.importers.python_graphs import from_networkx
from byokg.graph.store import GraphStore
from byokg.types import EntityId, Node
from tests.graph.contract import STRANGE_IDS, STRANGE_RELATIONS, edge, node
from tests.graph.test_exporter import content

NODES = [
    Node(EntityId("Q1"), "Ann", "Person", {"born": 1937, "tall": 1e-300, "alive": True, "big": (1 << 63) - 1}),
    Node(
        EntityId("Q2"), "say \"hi\", <b> & 'so'", "Person", {"dc:title": "two\r\nlines\t;"}, ("a type", "b|c", "d\\e")
    ),
    Node(EntityId("Q3"), "Q3"),
    Node(
        EntityId("Q4"), "\u202eright to left\u202c \U0001f600", "a type", {"note": "]]>", "alive": False}, ("Person",)
    ),
    *(node(strange) for strange in STRANGE_IDS),
]
EDGES = [
    edge("Q1", "knows", "Q2", weight=1),
    edge("Q1", "knows", "Q2", weight=1),
    edge("Q3", "knows", "Q3"),
    edge("Q2", "knows", "Q1", note='a;"b"\nc', sure=True),
    *(edge("Q2", label, "Q1", weight=5) for label in STRANGE_RELATIONS),
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> ColumnarGraph:
    folder = tmp_path_factory.mktemp("saved") / "graph"
    ColumnarGraph.from_records(NODES, EDGES).save(folder)
    return ColumnarGraph.open(folder)


def rows_of(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))[1:]


def alike(one: GraphStore, other: GraphStore) -> bool:
    """Tell whether two graphs are the same but for the order of their relations, and so of their edges."""
    (nodes, edges), (nodes_there, edges_there) = content(one), content(other)
    return nodes == nodes_there and sorted(map(repr, edges)) == sorted(map(repr, edges_there))


@pytest.mark.parametrize("format", ["parquet", "graphml"])
@pytest.mark.parametrize("rows", [2, 1 << 16])
def test_what_is_exported_comes_back_as_it_was(
    graph: ColumnarGraph, tmp_path: Path, format: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_formats, "_ROWS", rows)
    write_graph_as(graph, format, tmp_path / "out")
    assert alike(import_graph(tmp_path / "out"), graph)


@pytest.mark.parametrize("format", ["neo4j-admin", "parquet", "graphml"])
def test_kinds_of_properties_dates_among_them_survive(tmp_path: Path, format: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/nodes.csv").write_text("id,on:date,n:int,f:float\nx,2001-09-30,1,1\ny,-0044-03-15,,\nz,,,\n")
    (tmp_path / "in/edges.csv").write_text("head,relation,tail,until:date\nx,r,y,1999-12-31\n")
    graph = import_graph(tmp_path / "in")
    write_graph_as(graph, format, tmp_path / "out")
    again = import_graph(tmp_path / "out")
    assert again.edge_columns[0].schema == graph.edge_columns[0].schema
    for name in ("on", "n", "f"):
        kept, had = again.node_columns[1].column(name), graph.node_columns[1].column(name)
        assert kept is not None and had is not None
        assert kept.values == had.values


def test_neo4j_gets_typed_headers_and_all_labels(graph: ColumnarGraph, tmp_path: Path) -> None:
    write_graph_as(graph, "neo4j-admin", tmp_path / "out")
    with (tmp_path / "out/nodes.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header[:3] == ["id:ID", "name", ":LABEL"]
    assert set(header[3:]) == {
        "born:long",
        "tall:double",
        "alive:boolean",
        "big:long",
        "dc:title:string",
        "note:string",
    }
    assert rows[0][:3] == ["Q1", "Ann", "Person"] and rows[1][1] == NODES[1].name and len(rows) == len(NODES)
    with (tmp_path / "out/edges.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == [":START_ID", ":TYPE", ":END_ID", "weight:long", "note:string", "sure:boolean"]
    assert len(rows) == len(EDGES)
    nodes, edges = content(import_graph(tmp_path / "out"))
    there, edges_there = content(graph)
    assert [{k: v for k, v in one.properties.items() if k != "id"} for one in nodes] == [
        one.properties for one in there
    ]
    assert [(one.id, one.name, one.types) for one in nodes] == [(one.id, one.name, one.types) for one in there]
    assert sorted(map(repr, edges)) == sorted(map(repr, edges_there))
    assert rows_of(tmp_path / "out/nodes.csv")[1][2] == "Person;a type;b|c;d\\e"


def test_neptune_gets_an_id_for_every_edge(
    graph: ColumnarGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_formats, "_ROWS", 3)
    write_graph_as(graph, "neptune", tmp_path / "out")
    with (tmp_path / "out/vertices.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header[:3] == ["~id", "~label", "name:String(single)"]
    assert {"born:Long(single)", "alive:Bool(single)", "dc\\:title:String(single)"} <= set(header)
    assert rows[0][:3] == ["Q1", "Person", "Ann"] and rows[1][1] == "Person;a type;b|c;d\\e"
    with (tmp_path / "out/edges.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["~id", "~from", "~to", "~label", "weight:Long", "note:String", "sure:Bool"]
    assert [row[0] for row in rows] == [f"e{number}" for number in range(len(EDGES))]
    assert sorted((row[1], row[3], row[2]) for row in rows) == sorted((e.head, e.relation, e.tail) for e in EDGES)


def test_triples_of_rdf_come_back_as_they_were(tmp_path: Path) -> None:
    pytest.importorskip("pyoxigraph")
    (tmp_path / "graph.nt").write_text(
        '<http://x/a> <http://x/knows> <http://x/b> .\n<http://x/a> <http://x/says> "a \\"b\\"\\n"@en .\n'
        '<http://x/b> <http://x/born> "1937"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    )
    graph = import_graph(tmp_path / "graph.nt")
    write_graph_as(graph, "ntriples", tmp_path / "out")
    assert alike(import_graph(tmp_path / "out"), graph)


def test_networkx_reads_our_graphml(graph: ColumnarGraph, tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx")
    write_graph_as(graph, "graphml", tmp_path / "out")
    read = networkx.read_graphml(tmp_path / "out/graph.graphml", force_multigraph=True)
    assert set(read) == set(graph.entities()) and read.number_of_edges() == graph.edge_count
    assert read.nodes["Q1"] == {"name": "Ann", "type": "Person", **NODES[0].properties}
    assert [each["weight"] for each in read.get_edge_data("Q1", "Q2").values()] == [1, 1]


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_an_empty_graph_is_exported_too(tmp_path: Path, format: str) -> None:
    write_graph_as(ColumnarGraph.from_records([node("a")], []), format, tmp_path / "out")
    assert os.listdir(tmp_path / "out")
    write_graph_as(ColumnarGraph.from_records([], []), format, tmp_path / "none")


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_the_same_graph_gives_the_same_bytes_and_a_taken_place_is_left_alone(
    graph: ColumnarGraph, tmp_path: Path, format: str
) -> None:
    for name in ("one", "two"):
        write_graph_as(graph, format, tmp_path / name)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    with pytest.raises(GraphExists):
        write_graph_as(graph, format, tmp_path / "one")


def test_what_a_format_cannot_hold_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    bell = ColumnarGraph.from_records([node("a"), Node(EntityId("b"), "ring\x07")], [])
    with pytest.raises(GraphError, match="control character"):
        write_graph_as(bell, "graphml", tmp_path / "out")
    with pytest.raises(GraphError, match="'a;b' holds ';'"):
        write_graph_as(ColumnarGraph.from_records([Node(EntityId("a"), "a", "a;b")], []), "neptune", tmp_path / "out")
    with pytest.raises(ConfigError, match="--format gexf is not known; use one of csv, neo4j-admin"):
        write_graph_as(bell, "gexf", tmp_path / "out")
    assert os.listdir(tmp_path) == []
    write_graph_as(bell, "parquet", tmp_path / "out")
    assert alike(import_graph(tmp_path / "out"), bell)


def test_networkx_gets_nodes_properties_and_parallel_edges(graph: ColumnarGraph) -> None:
    pytest.importorskip("networkx")
    held = KnowledgeGraph(graph).to_networkx()
    ann = {"name": "Ann", "type": "Person", "types": ["Person"], **NODES[0].properties}
    assert held.nodes["Q1"] == ann and held.nodes["Q3"] == {}
    assert [*held.get_edge_data("Q1", "Q2").values()] == [{"relation": "knows", "weight": 1}] * 2
    assert alike(from_networkx(held), graph)


def test_pytorch_geometric_gets_numbers_and_what_they_mean(
    graph: ColumnarGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "torch", None)
        with pytest.raises(MissingExtra, match=r"pip install 'byokg\[pyg\]'"):
            KnowledgeGraph(graph).to_pyg()
    pytest.importorskip("torch_geometric", reason="torch-geometric is not installed")
    data = KnowledgeGraph(graph).to_pyg()
    heads, tails = np.asarray(data.edge_index)
    spelled = [
        (data.node_ids[head], data.relations[relation], data.node_ids[tail])
        for head, relation, tail in zip(heads, np.asarray(data.edge_type), tails, strict=True)
    ]
    assert sorted(spelled) == sorted((each.head, each.relation, each.tail) for each in EDGES)
    assert data.num_nodes == len(NODES)
