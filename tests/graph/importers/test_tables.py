from __future__ import annotations

import gzip
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
from tests.graph.contract import facts, ids


def folder(path: Path, **files: str) -> Path:
    """Write files named `stem` to `stem.csv`; two underscores stand for a hyphen."""
    path.mkdir(exist_ok=True)
    for stem, text in files.items():
        (path / f"{stem.replace('__', '-')}.csv").write_text(text, "utf-8")
    return path


MOVIES = "movieId:ID,title,year:int,:LABEL\ntt1,The Matrix,1999,Movie\ntt2,Reloaded,2003,Movie;Sequel\n"
ACTORS = "personId:ID,name,:LABEL\nkeanu,Keanu Reeves,Actor\n"
ROLES = ":START_ID,role,:END_ID,:TYPE\nkeanu,Neo,tt1,ACTED_IN\nkeanu,Neo,tt2,ACTED_IN\n"


class TestNeo4jAdmin:
    def test_files_are_known_by_their_headers(self, tmp_path: Path) -> None:
        source = folder(tmp_path, movies=MOVIES, actors=ACTORS, roles=ROLES, notes="a,b\n1,2\n")
        graph = import_graph(source)
        assert graph.nodes(ids("tt1", "keanu")) == [
            Node(EntityId("tt1"), "The Matrix", "Movie", {"movieId": "tt1", "title": "The Matrix", "year": 1999}),
            Node(EntityId("keanu"), "Keanu Reeves", "Actor", {"personId": "keanu"}),
        ]
        assert facts(graph) == [
            ("keanu", "ACTED_IN", "tt1", {"role": "Neo"}),
            ("keanu", "ACTED_IN", "tt2", {"role": "Neo"}),
        ]
        assert [path.name for path in source_files(source)] == ["actors.csv", "movies.csv", "roles.csv"]

    def test_all_labels_are_types_and_the_first_is_shown(self, tmp_path: Path) -> None:
        graph = import_graph(folder(tmp_path, movies=MOVIES, actors=ACTORS, roles=ROLES))
        reloaded, matrix = graph.nodes(ids("tt2", "tt1"))
        assert (reloaded.type, reloaded.types, matrix.types) == ("Movie", ("Movie", "Sequel"), ("Movie",))
        assert "labels" not in reloaded.properties
        assert graph.schema().node_types == {"Movie": 2, "Actor": 1, "Sequel": 1}

    def test_ids_of_several_spaces_carry_their_space(self, tmp_path: Path) -> None:
        source = folder(
            tmp_path,
            movies=":ID(Movie),name\n1,Alien\n",
            people=":ID(Person),name\n1,Ridley Scott\n",
            directed=":START_ID(Movie),:END_ID(Person),:TYPE\n1,1,DIRECTED_BY\n",
        )
        graph = import_graph(source)
        assert facts(graph) == [("Movie:1", "DIRECTED_BY", "Person:1", {})]
        assert [node.name for node in graph.nodes(ids("Movie:1", "Person:1"))] == ["Alien", "Ridley Scott"]

    def test_one_space_changes_no_id(self, tmp_path: Path) -> None:
        source = folder(tmp_path, things=":ID(Thing)\na\nb\n", links=":START_ID(Thing),:END_ID(Thing),:TYPE\na,b,r\n")
        assert facts(import_graph(source)) == [("a", "r", "b", {})]

    def test_a_file_without_types_is_one_relation_named_as_the_file(self, tmp_path: Path) -> None:
        source = folder(tmp_path, n=":ID\na\n", KNOWS=":START_ID,:END_ID\na,a\n")
        assert facts(import_graph(source)) == [("a", "KNOWS", "a", {})]

    def test_types_of_columns_are_understood_and_arrays_stay_text(self, tmp_path: Path) -> None:
        header = ":ID,a:long,b:double,c:boolean,d:string[],e:datetime,f:short{id-type: x},g:IGNORE,h:date"
        row = "x,5,2.5,true,one;two,2015-06-24T12:50:35,7,gone,2001-09-30"
        source = folder(tmp_path, n=f"{header}\n{row}\n", e=":START_ID,:END_ID,:TYPE\nx,x,r\n")
        [node] = import_graph(source).nodes(ids("x"))
        assert node.properties == {
            "a": 5,
            "b": 2.5,
            "c": True,
            "d": "one;two",
            "e": "2015-06-24T12:50:35",
            "f": 7,
            "h": "2001-09-30",
        }

    def test_a_header_may_stand_in_a_file_of_its_own(self, tmp_path: Path) -> None:
        source = folder(
            tmp_path,
            movies_header=":ID,name,:LABEL\n",
            movies1="tt1,Alien,Movie\n",
            movies2="tt2,Aliens,Movie\n",
            roles__header=":START_ID,:END_ID,:TYPE\n",
            roles="tt1,tt2,SEQUEL\n",
        )
        graph = import_graph(source)
        assert [node.name for node in graph.nodes(ids("tt1", "tt2"))] == ["Alien", "Aliens"]
        assert facts(graph) == [("tt1", "SEQUEL", "tt2", {})]
        assert len(source_files(source)) == 5

    def test_tabs_and_compression_are_fine(self, tmp_path: Path) -> None:
        (tmp_path / "n.tsv.gz").write_bytes(gzip.compress(b":ID\tname\na\tAnna\n"))
        (tmp_path / "e.csv").write_text(":START_ID,:END_ID,:TYPE\na,a,r\n")
        assert import_graph(tmp_path).nodes(ids("a"))[0].name == "Anna"

    def test_an_end_that_is_no_node_is_named(self, tmp_path: Path) -> None:
        source = folder(tmp_path, n=":ID\na\n", e=":START_ID,:END_ID,:TYPE\na,a,r\na,b,r\n")
        with pytest.raises(ImportFailed, match=r"tail 'b' is not an id in n\.csv") as caught:
            import_graph(source)
        assert caught.value.line == 3


class TestSeveralFiles:
    def test_nodes_and_edges_may_be_split(self, tmp_path: Path) -> None:
        source = folder(
            tmp_path,
            nodes__1="id,type,age:int\na,T,5\n",
            nodes__2="id,name,age:float\nb,Bert,1.5\na,,5\n",
            edges_old="head,relation,tail,since:int\na,r,b,1990\n",
            edges_new="tail,head,relation\nb,a,r\n",
        )
        with pytest.raises(ImportFailed, match="type 'T', here with None"):
            import_graph(source)
        folder(tmp_path, nodes__2="id,name,age:float\nb,Bert,1.5\n")
        graph = build_graph(source, tmp_path / "out")
        assert graph.nodes(ids("a", "b")) == [
            Node(EntityId("a"), "a", "T", {"age": 5.0}),
            Node(EntityId("b"), "Bert", "", {"age": 1.5}),
        ]
        assert facts(graph) == [("a", "r", "b", {}), ("a", "r", "b", {"since": 1990})]
        names = [file["name"] for file in graph.source["files"]]
        assert names == ["nodes-1.csv", "nodes-2.csv", "edges_new.csv", "edges_old.csv"]

    def test_a_repeated_id_names_the_other_file(self, tmp_path: Path) -> None:
        source = folder(
            tmp_path, nodes1="id,name\nx,X\na,A\n", nodes2="id,name\nb,B\na,Z\n", edges="head,relation,tail\n"
        )
        reason = "node id 'a' is on line 3 of nodes1.csv already, with name 'A', here with 'Z'"
        with pytest.raises(ImportFailed, match=re.escape(reason)) as caught:
            import_graph(source)
        assert (Path(caught.value.file).name, caught.value.line) == ("nodes2.csv", 3)

    def test_a_column_must_be_of_one_kind_everywhere(self, tmp_path: Path) -> None:
        source = folder(tmp_path, nodes1="id,x:int\na,1\n", nodes2="id,x\nb,one\n", edges="head,relation,tail\n")
        with pytest.raises(ImportFailed, match="column 'x' is large_string here and int64 in another file"):
            import_graph(source)

    def test_the_same_file_twice_is_refused(self, tmp_path: Path) -> None:
        source = folder(tmp_path, nodes="id\na\n", edges="head,relation,tail\n")
        (source / "edges.csv.gz").write_bytes(gzip.compress(b"head,relation,tail\n"))
        with pytest.raises(ImportFailed, match=re.escape("several graphs (edges.csv, edges.csv.gz)")):
            import_graph(source)

    def test_a_flag_is_one_or_zero(self, tmp_path: Path) -> None:
        source = folder(tmp_path, nodes="id,x:flag\na,1\nb,0\nc,\n", edges="head,relation,tail\n")
        assert [node.properties for node in import_graph(source).nodes(ids("a", "b", "c"))] == [
            {"x": True},
            {"x": False},
            {},
        ]


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


def test_tables_of_a_mapping_may_be_in_any_dialect(tmp_path: Path) -> None:
    (tmp_path / "films.csv").write_text("\ufeffid;title\n1;Alien\n2;Heat, again\n", "utf-8")
    (tmp_path / "seen.csv").write_text("a;b,x\n1;2,5\n", "utf-8")
    text = "nodes:\n  Film: {file: films.csv, id: id, name: title}\n"
    text += "edges:\n  NEXT: {file: seen.csv, head: {Film: a}, tail: {Film: b}}\n"
    (tmp_path / "graph.yaml").write_text(text)
    with pytest.raises(ImportFailed, match=re.escape("in graph.yaml with files: {seen.csv: {delimiter: ';'}}")):
        import_graph(tmp_path)
    (tmp_path / "seen.csv").write_text("a;b\n1;2\n", "utf-8")
    assert facts(import_graph(tmp_path)) == [("Film:1", "NEXT", "Film:2", {})]
    (tmp_path / "graph.yaml").write_text(text + "files: {seen.csv: {delimiter: xy}}\n")
    with pytest.raises(ImportFailed, match=r"files: seen\.csv: delimiter 'xy'"):
        import_graph(tmp_path)
    (tmp_path / "graph.yaml").write_text(text + "files: {seen.csv: {delimiter: semicolon}}\n")
    assert import_graph(tmp_path).edge_count == 1


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


def test_dates_before_the_year_1_are_dates(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,died:date\na,-0044-03-15\nb,2001-02-03\nc,0000-01-01\nd,\n")
    (tmp_path / "edges.csv").write_text("head,relation,tail\na,r,b\n")
    graph = import_graph(tmp_path)
    found = [node.properties.get("died") for node in graph.nodes(list(graph.entities()))]
    assert found == ["-0044-03-15", "2001-02-03", "0000-01-01", None]
    (tmp_path / "nodes.csv").write_text("id,died:date\na,-0044-03-15\nb,-0044-13-15\n")
    with pytest.raises(ImportFailed, match=r"nodes.csv:3: '-0044-13-15'"):
        import_graph(tmp_path)
