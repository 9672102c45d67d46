from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

import byokg
from byokg.errors import ImportFailed
from byokg.graph.importers.choose import build_graph, import_graph, source_files
from byokg.graph.store import Direction
from byokg.types import EntityId, Node
from tests.graph.contract import ids

FILMS = "id,title,director,year,seen,notes\n1,Alien,7,1979,1,long\n2,Aliens,8,1986,0,\n3,Heat,,1995,,\n"
PEOPLE = "id,name\n7,Scott\n8,Cameron\n"
CASTS = "film,person,role\n1,7,himself\n2,8,\n"

MAPPING = """
nodes:
  Film: {file: films.csv, id: id, name: title, kinds: {year: int, seen: flag}, leave_out: [notes]}
  Person: {file: people.csv, id: id, name: name}
edges:
  directed_by: {file: films.csv, head: {Film: id}, tail: {Person: director}, missing: skip}
  cast: {file: casts.csv, head: {Film: film}, tail: {Person: person}, properties: {role: string}}
"""


def source(folder: Path, mapping: str = MAPPING, films: str = FILMS) -> Path:
    for name, text in {"films.csv": films, "people.csv": PEOPLE, "casts.csv": CASTS, "graph.yaml": mapping}.items():
        (folder / name).write_text(text)
    return folder


def test_tables_become_nodes_and_foreign_keys_edges(tmp_path: Path) -> None:
    graph = build_graph(source(tmp_path), tmp_path / "out")
    assert graph.nodes(ids("Film:1", "Film:3", "Person:8")) == [
        Node(
            EntityId("Film:1"),
            "Alien",
            "Film",
            {"id": "1", "title": "Alien", "director": "7", "year": 1979, "seen": True},
        ),
        Node(EntityId("Film:3"), "Heat", "Film", {"id": "3", "title": "Heat", "year": 1995}),
        Node(EntityId("Person:8"), "Cameron", "Person", {"id": "8", "name": "Cameron"}),
    ]
    batch = graph.edges(graph.numbers(ids("Film:1", "Film:2", "Film:3")), Direction.OUT)
    labels = [graph.relations[number] for number in batch.relation.tolist()]
    assert list(zip(graph.ids(batch.head), labels, graph.ids(batch.tail), strict=True)) == [
        ("Film:1", "directed_by", "Person:7"),
        ("Film:1", "cast", "Person:7"),
        ("Film:2", "directed_by", "Person:8"),
        ("Film:2", "cast", "Person:8"),
    ]
    assert [dict(row) for row in graph.edge_properties(batch.edge)] == [{}, {"role": "himself"}, {}, {}]
    assert graph.source["kind"] == "mapped tables"
    assert [path.name for path in source_files(tmp_path)] == ["graph.yaml", "films.csv", "people.csv", "casts.csv"]


def test_the_tables_may_lie_in_another_folder(tmp_path: Path) -> None:
    source(tmp_path)
    (tmp_path / "maps").mkdir()
    (tmp_path / "graph.yaml").rename(tmp_path / "maps" / "films.yaml")
    with (tmp_path / "maps" / "films.yaml").open("a") as file:
        file.write("folder: ..\n")
    assert import_graph(tmp_path / "maps" / "films.yaml").node_count == 5


def test_a_relation_may_come_from_several_tables(tmp_path: Path) -> None:
    mapping = MAPPING.replace(
        "  cast:", "  knows:\n    - {file: casts.csv, head: {Film: film}, tail: {Person: person}}\n    - "
    )
    mapping = mapping.replace("    -  {", "    - {")
    graph = import_graph(source(tmp_path, mapping))
    assert {relation.name: relation.count for relation in graph.schema().relations} == {"directed_by": 2, "knows": 4}


def test_an_end_that_is_no_node_is_refused_unless_told_otherwise(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="the tail is empty") as caught:
        import_graph(source(tmp_path, MAPPING.replace(", missing: skip", "")))
    assert (Path(caught.value.file).name, caught.value.line) == ("films.csv", 4)


def test_surplus_fields_are_dropped_only_where_that_is_said(tmp_path: Path) -> None:
    films = FILMS.replace("Heat,", "Good, Bad, Ugly,")
    with pytest.raises(ImportFailed, match="expected 6 fields separated by ',', found 8") as caught:
        import_graph(source(tmp_path, films=films))
    assert caught.value.line == 4
    mapping = MAPPING.replace("year: int, seen: flag", "") + "files: {films.csv: {surplus: drop}}\n"
    graph = import_graph(source(tmp_path, mapping, films))
    assert graph.nodes(ids("Film:3"))[0].name == "Good"
    [cut] = [file for file in graph.source["files"] if "cut_records" in file]
    assert (cut["name"], cut["cut_records"]) == ("films.csv", 1)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("nodes:", "nods:", "the file: unknown key 'nods'; keys are nodes, edges"),
        ("id: id, name: title", "id: key, name: title", "nodes: Film: id: films.csv has no column 'key'; it has id,"),
        ("file: people.csv", "file: persons.csv", "nodes: Person: file: there is no"),
        ("year: int", "year: integer", "nodes: Film: kinds: year: 'integer' is no kind; kinds are string, int"),
        ("head: {Film: film}", "head: {Movie: film}", "edges: cast: head: it is {TYPE: COLUMN} with one of the types"),
        ("missing: skip", "missing: maybe", "edges: directed_by: missing: it is refuse or skip"),
        ("leave_out: [notes]", "leave_out: notes", "leave_out: it is a list of columns"),
        ("properties: {role: string}", "properties: [role]", "properties: a mapping of names is needed"),
        ("nodes:", "nodes: [", "cannot be read"),
    ],
)
def test_a_mistake_in_the_mapping_is_named_with_its_place(tmp_path: Path, before: str, after: str, reason: str) -> None:
    with pytest.raises(ImportFailed, match=re.escape(reason)) as caught:
        import_graph(source(tmp_path, MAPPING.replace(before, after, 1)))
    assert caught.value.file.endswith("graph.yaml")


def test_northwind_has_the_counts_of_its_description(tmp_path: Path) -> None:
    folder = Path(os.environ.get("BYOKG_DATA") or Path(__file__).parents[3].parent / "shared" / "data") / "northwind"
    if not folder.is_dir():
        pytest.skip(f"no {folder}; point BYOKG_DATA at a folder holding northwind")
    shipped = Path(str(byokg.__file__)).parent / "data" / "northwind" / "graph.yaml"
    (tmp_path / "graph.yaml").write_text(shipped.read_text("utf-8") + f"folder: {folder.resolve()}\n")
    graph = import_graph(tmp_path)
    schema = graph.schema()
    assert schema.node_types == {"Order": 830, "Customer": 91, "Product": 77, "Supplier": 29, "Category": 8}
    counts = {relation.name: relation.count for relation in schema.relations}
    assert counts == {"PART_OF": 77, "SUPPLIES": 77, "PURCHASED": 830, "ORDERS": 2155}
    assert [file["cut_records"] for file in graph.source["files"] if "cut_records" in file] == [9, 176]
    [chai] = graph.nodes(ids("Product:1"))
    assert (chai.name, chai.properties["unitPrice"], chai.properties["discontinued"]) == ("Chai", 18.0, False)
    quantities = [row["quantity"] for row in graph.edge_properties(np.arange(graph.edge_count)) if "quantity" in row]
    assert (len(quantities), max(map(int, quantities))) == (2155, 130)
