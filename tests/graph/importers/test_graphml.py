from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from byokg.errors import ImportFailed
from byokg.graph.importers import graphml
from byokg.graph.importers.choose import import_graph
from byokg.types import EntityId, Node, Properties
from tests.graph.test_exporter import content

HEAD = '<?xml version="1.0"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'


def read(tmp_path: Path, body: str, head: str = HEAD) -> tuple[list[Node], list[tuple[str, str, str, Properties]]]:
    (tmp_path / "x.graphml").write_text(f"{head}{body}</graphml>")
    return content(import_graph(tmp_path / "x.graphml"))


def test_defaults_nested_graphs_and_keys_for_all_are_understood(tmp_path: Path) -> None:
    body = """
<key id="c" for="node" attr.name="colour" attr.type="string"><default>red</default></key>
<key id="w" for="all" attr.name="weight" attr.type="double"/>
<key id="l" for="edge" attr.name="label"/>
<graph edgedefault="undirected">
<edge source="b" target="a"><data key="l">likes</data><data key="w"> 2 </data></edge>
<node id="a"><data key="c">blue</data><graph><node id="in"><data key="w">1e3</data></node></graph></node>
<node id="b"/><edge source="a" target="b"><data key="w"></data></edge>
</graph>"""
    nodes, edges = read(tmp_path, body)
    assert {node.id: node.properties.get("weight") for node in nodes} == {"a": None, "b": None, "in": 1000.0}
    assert {node.id: node.properties["colour"] for node in nodes} == {"a": "blue", "b": "red", "in": "red"}
    assert sorted(edges, key=str) == [
        ("a", "likes", "b", {"weight": 2.0}),
        ("a", "related_to", "b", {}),
        ("b", "likes", "a", {"weight": 2.0}),
        ("b", "related_to", "a", {}),
    ]


def test_what_apoc_writes_is_understood(tmp_path: Path) -> None:
    body = """<key id="born" for="node" attr.name="born" attr.type="long"/><key id="name" for="node" attr.name="name"/>
<graph id="G" edgedefault="directed">
<node id="n0" labels=":Person:Actor"><data key="labels">:Person:Actor</data><data key="name">Ann</data>
<data key="born">1937</data></node>
<node id="n1" labels=":Film"><data key="labels">:Film</data></node>
<edge id="e0" source="n0" target="n1" label="ACTED_IN"><data key="label">ACTED_IN</data></edge>
</graph>"""
    nodes, edges = read(tmp_path, body)
    assert [(node.name, node.types, node.properties) for node in nodes] == [
        ("Ann", ("Person", "Actor"), {"born": 1937}),
        ("n1", ("Film",), {}),
    ]
    assert edges == [("n0", "ACTED_IN", "n1", {})]


def test_a_compressed_file_of_networkx_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    networkx = pytest.importorskip("networkx")
    monkeypatch.setattr(graphml, "_READ_BYTES", 50)
    source = networkx.MultiDiGraph()
    source.add_node("a", name="Ann", type="Person", age=3, tall=1.5, ok=True)
    source.add_node("b", age=2.5)
    source.add_edge("a", "b", relation="knows", w=1)
    source.add_edge("a", "b", relation="knows", w=2)
    (tmp_path / "graph.graphml.gz").write_bytes(gzip.compress("\n".join(networkx.generate_graphml(source)).encode()))
    nodes, edges = content(import_graph(tmp_path))
    assert nodes[0] == Node(EntityId("a"), "Ann", "Person", {"age": 3.0, "tall": 1.5, "ok": True})
    assert nodes[1].properties == {"age": 2.5}
    assert [edge[3] for edge in edges] == [{"w": 1}, {"w": 2}]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("<graph><node/></graph>", "3: <node> has no attribute 'id'"),
        ("<graph>\n<node id='a'/><edge source='a' target='b'/></graph>", " an edge ends at 'b', which is no node"),
        ("<graph>\n<hyperedge/></graph>", "4: a hyperedge is no edge"),
        ("<graph>\n<node id='a'>", "4: is no XML: mismatched tag"),
        ("", "holds no nodes"),
        (
            "<key id='n' for='node' attr.name='n' attr.type='int'/>\n<graph><node id='a'><data key='n'>x</data></node>"
            "</graph>",
            "4: 'x' in column 'n' is not a whole number",
        ),
    ],
)
def test_what_is_no_graph_is_refused_with_its_line(tmp_path: Path, body: str, reason: str) -> None:
    with pytest.raises(ImportFailed, match=rf"graphml:? ?{reason}|{reason}"):
        read(tmp_path, body)


def test_entities_are_refused_before_they_are_expanded(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>\n'
    with pytest.raises(ImportFailed, match="declares the entity 'a'"):
        read(tmp_path, "<graph><node id='&b;'/></graph>", f'<?xml version="1.0"?>{bomb}<graphml>')
    outside = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    with pytest.raises(ImportFailed, match="declares the entity 'a'"):
        read(tmp_path, "<graph><node id='&a;'/></graph>", f"{outside}<graphml>")
    with pytest.raises(ImportFailed, match="is a page of HTML"):
        read(tmp_path, "", "<html>")
