"""What a source would become, and the `graph.yaml` that says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from byokg.errors import ImportFailed
from byokg.graph.importers import sniff as sniffing
from byokg.graph.importers.choose import import_graph
from byokg.graph.importers.dialects import TableOptions
from byokg.graph.importers.sniff import example_edges, mapping_text, sniff
from tests.graph.contract import facts

# p1 -HAS_CATEGORY-> c1, p2 -> c2; o1 -ORDER_DETAIL-> p1 (2), p2 (1)
SHOP = {
    "products.csv": "productID,name,categoryID,price\np1,Leek,c1,1.5\np2,Soup,c2,4\n",
    "categories.csv": "categoryID,title\nc1,Vegetables\nc2,Dishes\n",
    "orders.csv": "orderID,date\no1,2020-01-02\n",
    "order-details.csv": "orderID,productID,quantity\no1,p1,2\no1,p2,1\n",
}


def shop(folder: Path) -> Path:
    for name, content in SHOP.items():
        (folder / name).write_text(content)
    return folder


def test_keys_and_foreign_keys_of_tables_are_guessed(tmp_path: Path) -> None:
    found = sniff(shop(tmp_path))
    assert (found.graph.node_count, found.graph.edge_count, found.sampled) == (5, 4, False)
    assert found.graph.schema().node_types == {"Category": 2, "Product": 2, "Order": 1}
    assert [(head, relation, tail) for head, relation, tail, _ in facts(found.graph)] == [
        ("Order:o1", "ORDER_DETAIL", "Product:p1"),
        ("Order:o1", "ORDER_DETAIL", "Product:p2"),
        ("Product:p1", "HAS_CATEGORY", "Category:c1"),
        ("Product:p2", "HAS_CATEGORY", "Category:c2"),
    ]
    assert found.mapping["nodes"]["Product"] == {"file": "products.csv", "id": "productID", "kinds": {"price": "float"}}
    assert found.mapping["edges"]["ORDER_DETAIL"]["properties"] == {"quantity": "int"}
    (tmp_path / "graph.yaml").write_text(mapping_text(found.mapping))
    assert facts(import_graph(tmp_path)) == facts(found.graph)
    assert example_edges(found.graph, 1) == ["o1 -[ORDER_DETAIL]-> Leek"]


def test_tables_without_a_key_are_refused(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x,y\n1,2\n1,2\n")
    with pytest.raises(ImportFailed, match="no table has a column of distinct values"):
        sniff(tmp_path)


def test_tables_are_joined_by_names_of_which_a_cell_holds_several(tmp_path: Path) -> None:
    (tmp_path / "plants.csv").write_text("id;name;toxic\nP1;Foxglove;yes\nP2;Basil;no\nP3;Yew;yes\nP4;Mint;no\n")
    (tmp_path / "gardens.csv").write_text("garden,plants,opened\nKew,Foxglove|Basil | Yew,1759\nPadua,,1545\n")
    (tmp_path / "guides.csv").write_text("guide,favourite\nAnn,Yew\nBob,Basil\nCid,Mint\n")
    (tmp_path / "notes.csv").write_text("text,n\nx,1\nx,1\n")
    found = sniff(tmp_path)
    assert sorted((head, relation, tail) for head, relation, tail, _ in facts(found.graph)) == [
        ("Garden:Kew", "HAS_PLANT", "Plant:Basil"),
        ("Garden:Kew", "HAS_PLANT", "Plant:Foxglove"),
        ("Garden:Kew", "HAS_PLANT", "Plant:Yew"),
        ("Guide:Ann", "FAVOURITE", "Plant:Yew"),
        ("Guide:Bob", "FAVOURITE", "Plant:Basil"),
        ("Guide:Cid", "FAVOURITE", "Plant:Mint"),
    ]
    assert found.mapping["edges"]["HAS_PLANT"]["separator"] == "|"
    assert [found.mapping["nodes"][type_].get("leave_out") for type_ in ("Garden", "Guide")] == [
        ["plants"],
        ["favourite"],
    ]
    assert found.left_out == ["notes.csv"]
    (tmp_path / "graph.yaml").write_text(mapping_text(found.mapping))
    assert facts(import_graph(tmp_path)) == facts(found.graph)


def test_ids_of_a_cell_that_are_no_nodes_are_refused_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("name,friends\nAnn,Bob;Cid\nBob,\nCid,Ann;Dan\n")
    edges = "{file: people.csv, head: {P: name}, tail: {P: friends}, separator: ';'}"
    (tmp_path / "graph.yaml").write_text(f"nodes: {{P: {{file: people.csv, id: name}}}}\nedges: {{KNOWS: {edges}}}\n")
    with pytest.raises(ImportFailed, match=r"people\.csv:4: tail 'Dan' is not an id"):
        import_graph(tmp_path)
    (tmp_path / "people.csv").write_text("name,friends\nAnn,Bob;Cid\nBob,\nCid,Ann\n")
    found = {(head, tail) for head, _, tail, _ in facts(import_graph(tmp_path))}
    assert found == {("P:Ann", "P:Bob"), ("P:Ann", "P:Cid"), ("P:Cid", "P:Ann")}


def test_a_file_of_nodes_alone_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "plants.csv"
    path.write_text("name,family,height_cm\nFoxglove,Plantain,150\nBasil,Mint,60\nMint,Mint,90\n")
    with pytest.raises(ImportFailed, match=r"if each line is a node: byokg graph sniff plants\.csv --write"):
        import_graph(path)
    found = sniff(path)
    assert found.graph.schema().node_types == {"Plant": 3}
    assert found.mapping["nodes"] == {"Plant": {"file": "plants.csv", "id": "name", "kinds": {"height_cm": "int"}}}
    path.write_text("a,b,1\nb,c,2\nc,d,5\n")
    with pytest.raises(ImportFailed, match="may be a weight or a node"):
        sniff(path)
    assert sniff(path, TableOptions(("source", "target", "weight"))).graph.edge_count == 3
    path.write_text("name,family\nFoxglove,Plantain\nBasil,Mint\n")
    assert sniff(path, TableOptions(("source=name", "target=family"))).graph.edge_count == 2


def test_decisions_about_a_table_are_written_and_read(tmp_path: Path) -> None:
    (tmp_path / "friends.csv").write_text("Ann;knows;Bob\nBob;knows;Cid\nCid;likes;Ann\n")
    found = sniff(tmp_path / "friends.csv")
    assert found.mapping == {
        "source": "friends.csv",
        "columns": ["source", "relation", "target"],
        "header": False,
        "delimiter": ";",
        "comment": "",
        "undirected": False,
    }
    (tmp_path / "graph.yaml").write_text(mapping_text(found.mapping))
    assert facts(import_graph(tmp_path)) == facts(import_graph(tmp_path / "graph.yaml")) == facts(found.graph)
    (tmp_path / "graph.yaml").write_text("source: friends.csv\ncolumns: [target, relation, source]\nundirected: true\n")
    assert ("Bob", "knows", "Ann", {}) in facts(import_graph(tmp_path))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("source: nothing.csv", "there is no .*nothing.csv"),
        ("source: 3", "source: it is the name of a file or folder, not 3"),
        ("source: a.csv\nnodes: {}", "unknown key 'nodes'; keys beside source are columns"),
        ("source: a.csv\nheader: 3", "header and undirected are true or false"),
        ("source: a.csv\ndelimiter: ab", "delimiter 'ab' is none of"),
        ("[1]", "a mapping of names is needed"),
        ("a: [", "cannot be read"),
    ],
)
def test_a_wrong_graph_yaml_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "a.csv").write_text("head,relation,tail\na,r,b\n")
    (tmp_path / "graph.yaml").write_text(text)
    with pytest.raises(ImportFailed, match=reason):
        import_graph(tmp_path)


def test_a_large_file_of_records_is_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sniffing, "SAMPLED_FROM", 100)
    monkeypatch.setattr(sniffing, "_SAMPLE_BYTES", 60)
    path = tmp_path / "edges.jsonl"
    path.write_text("".join(f"{json.dumps(['a', 'r', f'b{number}'])}\n" for number in range(100)))
    found = sniff(path)
    assert found.sampled and found.graph.edge_count == 3
