"""Nodes without a name get one from the properties that identify their type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from byokg.errors import ConfigError, ImportFailed
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.display_names import (
    choose_template,
    fill,
    fill_one,
    key_spellings,
    parse_templates,
    placeholders,
    sampled_template,
)
from byokg.graph.engines.arcadedb import ArcadeStore, names_of
from byokg.graph.exporter import export_graph
from byokg.graph.importers.choose import build_graph, import_graph
from byokg.graph.importers.dialects import TableOptions
from byokg.types import EntityId, Value
from tests.graph.published import needed, pole

Columns = Mapping[str, Sequence[object]]


def chosen(type: str, columns: Columns, named: float = 0.0) -> str:
    """Return the template for some nodes of one type."""
    return choose_template(type, {name: pa.array(values) for name, values in columns.items()}, named)


PEOPLE = {"firstName": ["Ann", "Ann", "Bo"], "lastName": ["Abt", "Bee", "Abt"], "phone": ["1-1", "1-2", "1-3"]}
CARS = {
    "year": [2001, 2002, 2003],
    "make": ["Audi", "Audi", "BMW"],
    "model": ["A4", "A4", "X3"],
    "reg": ["AB1", "CD2", "EF3"],
}


@pytest.mark.parametrize(
    ("type", "columns", "template"),
    [
        ("Person", PEOPLE, "{firstName} {lastName}"),
        ("Vehicle", CARS, "{make} {model} {reg}"),
        ("Movie", {"title": ["Heat", "Jaws"], "tagline": ["One of two", "Two of two"]}, "{title}"),
        ("Product", {"productID": ["1", "2"], "productName": ["Chai", "Chang"]}, "{productName}"),
        ("Order", {"orderID": ["10", "11"], "shipName": ["Ann Abt", "Ann Abt"]}, "Order {orderID}"),
        ("Phone", {"phoneNo": ["0-(1)2", "0-(1)3"]}, "{phoneNo}"),
        ("Place", {"latitude": [1.5, 2.5], "address": ["1 Moss Lane", "2 Moss Lane"]}, "{address}"),
        ("City", {"population": [5, 6, 7]}, ""),
        ("Call", {"duration": ["2", "2", "3"], "kind": ["SMS", "CALL", "SMS"]}, ""),
        ("Thing", {"title": [None, None, None, None, None, None, "Heat"]}, ""),
    ],
)
def test_templates_are_chosen_by_uniqueness_and_coverage(type: str, columns: Columns, template: str) -> None:
    assert chosen(type, columns) == template


def test_a_given_name_gets_the_surname_beside_it_and_a_whole_name_stays() -> None:
    assert chosen("Person", {"name": ["Ann", "Bo"], "surname": ["Abt", "Bee"]}, named=1.0) == "{name} {surname}"
    assert chosen("Person", {"name": ["Ann Abt", "Bo Bee"], "surname": ["Abt", "Bee"]}, named=1.0) == ""
    assert chosen("Film", {"name": ["Heat"], "title": ["Heat"]}, named=1.0) == ""


def test_a_template_leaves_out_properties_that_a_node_lacks() -> None:
    columns = {"a": pa.array(["Ann", "Bo", None, None]), "b": pa.array(["Abt", None, "Cox", None])}
    assert fill("{a} {b}", columns).to_pylist() == ["Ann Abt", "Bo", "Cox", None]
    assert fill("Dr {a}", columns).to_pylist() == ["Dr Ann", "Dr Bo", None, None]
    assert fill("{a}", {"a": pa.array([1, None])}).to_pylist() == ["1", None]


def test_templates_of_the_command_line_are_read() -> None:
    assert parse_templates(["Person={name} {surname}"]) == {"Person": "{name} {surname}"}
    with pytest.raises(ConfigError, match=r"--name '{name}' is not TYPE=TEMPLATE"):
        parse_templates(["{name}"])
    for wrong in ("name", "{name", "{}"):
        with pytest.raises(ConfigError, match="is no template of a name"):
            placeholders(wrong)


NODES = """id,name,type,surname,plate
1,Ann,Person,Abt,
2,Bo,Person,,
3,,Vehicle,,AB1
4,Rome,City,,
"""


def write(folder: Path, nodes: str = NODES) -> Path:
    """Write tables of nodes, and one edge."""
    folder.mkdir(exist_ok=True)
    (folder / "nodes.csv").write_text(nodes, "utf-8")
    (folder / "edges.csv").write_text("head,relation,tail\n1,KNOWS,2\n", "utf-8")
    return folder


def test_an_import_names_nodes_and_keeps_the_property_behind_a_name(tmp_path: Path) -> None:
    graph = import_graph(write(tmp_path))
    nodes = graph.nodes([EntityId(id) for id in "1234"])
    assert [node.name for node in nodes] == ["Ann Abt", "Bo", "AB1", "Rome"]
    assert nodes[0].properties == {"name": "Ann", "surname": "Abt"}
    assert nodes[3].properties == {}
    assert graph.source["display_names"] == {"Person": "{name} {surname}", "Vehicle": "{plate}"}


def test_a_node_that_is_named_by_a_key_alone_has_that_key(tmp_path: Path) -> None:
    nodes = "id,name,type,orderID\na,,Order,10\nb,,Order,11\nc,Order 12,Film,\n1,x,P,\n2,y,P,\n"
    graph = import_graph(write(tmp_path, nodes))
    ids = [EntityId(id) for id in "abc1"]
    assert [node.name for node in graph.nodes(ids)] == ["Order 10", "Order 11", "Order 12", "x"]
    assert key_spellings(graph, ids, ["Order 10", "11", "Order 12", "x"]) == ["10", "Order 11", None, None]
    assert key_spellings(ColumnarGraph.from_triples([("a", "r", "b")]), ids[:2], ["a", "b"]) == [None, None]


def test_given_templates_decide(tmp_path: Path) -> None:
    names = (("Person", "{surname}, {name}"), ("City", "city of {name}"))
    graph = import_graph(write(tmp_path), TableOptions(names=names))
    named = [node.name for node in graph.nodes([EntityId(id) for id in "1234"])]
    assert named == ["Abt, Ann", "Bo", "AB1", "city of Rome"]
    with pytest.raises(ConfigError, match=r"no node has the type 'Car' of a template; types: Person, Vehicle, City"):
        import_graph(tmp_path, TableOptions(names=(("Car", "{name}"),)))
    with pytest.raises(ConfigError, match=r"no node of type 'City' has the property 'mayor' .* properties: name"):
        import_graph(tmp_path, TableOptions(names=(("City", "{mayor}"),)))
    (tmp_path / "kb.tsv").write_text("a\tr\tb\n", "utf-8")
    with pytest.raises(ConfigError, match="have no properties that --name could write"):
        import_graph(tmp_path / "kb.tsv", TableOptions(names=(("City", "{name}"),)))


def test_a_mapping_of_tables_takes_templates(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("number,first,last\n1,Ann,Abt\n2,Bo,Bee\n", "utf-8")
    mapping = "nodes:\n  Person: {file: people.csv, id: number, name: '{last} {first}'}\nedges: {}\n"
    (tmp_path / "graph.yaml").write_text(mapping, "utf-8")
    graph = import_graph(tmp_path)
    assert [node.name for node in graph.nodes([EntityId("Person:1")])] == ["Abt Ann"]
    (tmp_path / "graph.yaml").write_text(mapping.replace("{last}", "{none}"), "utf-8")
    with pytest.raises(ImportFailed, match=r"nodes: Person: name: people\.csv has no column 'none'"):
        import_graph(tmp_path)


def test_properties_named_like_fixed_columns_come_back_from_an_export(tmp_path: Path) -> None:
    nodes = "id,name,type,name_,type_,id_\n1,Ann Abt,Person,Ann,kind,77\n2,Bo,Person,,,\n"
    graph = import_graph(write(tmp_path, nodes))
    properties = {"name": "Ann", "type": "kind", "id": 77}
    assert graph.nodes([EntityId("1")])[0].properties == properties
    export_graph(graph, tmp_path / "out")
    assert import_graph(tmp_path / "out").nodes([EntityId("1")])[0].properties == properties
    with pytest.raises(ImportFailed, match="column 'name' stands twice"):
        import_graph(write(tmp_path, "id,name,name\n1,a,b\n"))


def test_queries_see_homonymous_properties_under_their_own_names(tmp_path: Path, arcade_process: ArcadeStore) -> None:
    store = arcade_process
    store.replace(import_graph(write(tmp_path)))
    assert store.notes.endswith("the properties id and display_name.\n")
    rows = store.run("MATCH (n) RETURN n.id, n.name, n.display_name, n ORDER BY n.id").rows
    assert [row[:3] for row in rows] == [
        ("1", "Ann", "Ann Abt"),
        ("2", "Bo", "Bo"),
        ("3", "AB1", "AB1"),
        ("4", "Rome", "Rome"),
    ]
    ann, _, car, _ = (row[3] for row in rows)
    assert (ann.name, ann.properties) == ("Ann Abt", {"name": "Ann", "surname": "Abt"})  # type: ignore[union-attr]
    assert (car.name, car.properties) == ("AB1", {"plate": "AB1"})  # type: ignore[union-attr]
    assert store.run("MATCH (n:Person {name: 'Ann'})-[:KNOWS]->(m) RETURN m.display_name").rows == (("Bo",),)


def test_ids_keep_the_property_id(tmp_path: Path, arcade_process: ArcadeStore) -> None:
    nodes = "id,name,type,id_\nc1,theft,Crime,77\nc2,arson,Crime,78\n1,Ann,Person,\n2,Bo,Person,\n"
    store = arcade_process
    store.replace(import_graph(write(tmp_path, nodes)))
    assert names_of(store.graph).keys == {"id": "node_id"}
    rows = store.run("MATCH (n) RETURN n.id, n.node_id, n ORDER BY n.node_id").rows
    assert [row[:2] for row in rows] == [("1", "1"), ("2", "2"), (77, "c1"), (78, "c2")]
    assert [row[2].id for row in rows] == ["1", "2", "c1", "c2"]  # type: ignore[union-attr]
    assert store.id_property == "node_id"


POLE = {
    "Area": "{areaCode}",
    "Crime": "{id}",
    "Email": "{email_address}",
    "Location": "{address}",
    "Object": "{description}",
    "Officer": "{name} {surname}",
    "Person": "{name} {surname}",
    "Phone": "{phoneNo}",
    "PostCode": "{code}",
    "Vehicle": "{make} {model} {reg}",
}


def test_nodes_without_the_made_names_of_pole_are_named_again(tmp_path: Path) -> None:
    graph = build_graph(pole(tmp_path / "pole"), tmp_path / "graph")
    assert graph.source["display_names"] == POLE
    made: ColumnarGraph = import_graph(needed("zograscope"))
    ids = list(made.entities())
    pairs = list(zip(made.nodes(ids), graph.nodes(ids), strict=True))
    equal = Counter(one.type for one, other in pairs if one.name == other.name)
    assert {type for type, count in equal.items() if count == made.schema().node_types[type]} >= {
        "Area",
        "Crime",
        "Email",
        "Officer",
        "Person",
        "Phone",
        "PostCode",
    }
    assert "name" in graph.schema().node_properties["Officer"]


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        ({"given_name": "Ada", "surname": " Powell"}, "Ada Powell"),
        ({"surname": "Powell", "badge": 7}, "Powell"),
        ({"badge": 7}, ""),
        ({"given_name": " ", "surname": ""}, ""),
    ],
)
def test_one_node_is_named_as_many_are(properties: dict[str, Value], name: str) -> None:
    template = "{given_name} {surname}"
    assert fill_one(template, properties) == name
    columns = {key: pa.array([properties.get(key)], pa.large_string()) for key in ("given_name", "surname")}
    assert (fill(template, columns)[0].as_py() or "") == name


def test_a_template_is_chosen_by_a_sample_of_nodes_with_values_of_several_kinds() -> None:
    sample = [{"orderID": str(at) if at % 2 else at, "ship_name": "Ines"} for at in range(30)]
    assert sampled_template("Order", sample) == "Order {orderID}"
    assert sampled_template("Order", []) == ""
