"""RDF files become graphs in which nothing is lost, and graphs become RDF again."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from byokg.errors import ImportFailed
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.oxigraph import build_oxigraph
from byokg.graph.importers.choose import build_graph, import_graph, source_files
from byokg.graph.importers.dialects import TableOptions
from byokg.graph.name_indexes import name_index
from byokg.graph.rdf.files import graph_quads, parse_list, read_rdf
from byokg.graph.rdf.terms import OWL, RDF_TYPE
from byokg.graph.store import Direction
from byokg.graph.traversal import triples
from byokg.types import EntityId, Node
from tests.graph.contract import STRANGE_IDS, STRANGE_RELATIONS, edge, node

pyoxigraph = pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'byokg[sparql]'")

PREFIXES = """
@prefix ex: <http://example.org/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix schema: <http://schema.org/> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
EX = "http://example.org/"

Read = Callable[..., ColumnarGraph]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Import text as a file of some name, after some prefixes where that is Turtle."""

    def importing(text: str, name: str = "graph.ttl") -> ColumnarGraph:
        path = tmp_path / name
        path.write_text(PREFIXES + text if name.endswith((".ttl", ".trig")) else text, "utf-8")
        return import_graph(path)

    return importing


def only(graph: ColumnarGraph, entity: str) -> Node:
    (found,) = graph.nodes([EntityId(entity)])
    return found


def edges(graph: ColumnarGraph) -> list[tuple[str, str, str, dict[str, object]]]:
    batch = graph.edges(np.arange(graph.node_count), Direction.OUT)
    return [(found.head, found.relation, found.tail, dict(found.properties)) for found in triples(graph, batch)]


#   Paris -capital_of-> France
TRIPLE = f"<{EX}Paris> <{EX}capital_of> <{EX}France> .\n"
XML = f"""<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:ex="{EX}">
  <rdf:Description rdf:about="{EX}Paris"><ex:capital_of rdf:resource="{EX}France"/></rdf:Description>
</rdf:RDF>"""


@pytest.mark.parametrize(
    ("name", "text"),
    [("g.nt", TRIPLE), ("g.nq", TRIPLE), ("g.ttl", TRIPLE), ("g.trig", TRIPLE), ("g.rdf", XML), ("g.owl", XML)],
)
def test_every_format_gives_the_same_graph(read: Read, name: str, text: str) -> None:
    graph = read(text, name)
    assert list(graph.entities()) == [f"{EX}Paris", f"{EX}France"]
    ((head, relation, tail, properties),) = edges(graph)
    assert (head, tail, properties) == (f"{EX}Paris", f"{EX}France", {})
    prefix, _, local = relation.partition(":")
    assert graph.source["prefixes"][prefix] + local == f"{EX}capital_of"


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
def test_files_may_be_compressed(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"graph.nt{ending}"
    if ending == ".zst":
        zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
        path.write_bytes(zstandard.ZstdCompressor().compress(TRIPLE.encode()))
    else:
        data = TRIPLE.encode()
        path.write_bytes(gzip.compress(data) if ending == ".gz" else lzma.compress(data))
    assert import_graph(path).edge_count == 1
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ImportFailed, match="damaged"):
        import_graph(path)


# Names and types


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ('rdfs:label "Paris"@en, "Parigi"@it', "Paris"),
        ('rdfs:label "Parigi"@it, "Paris"', "Paris"),
        ('rdfs:label "Paris, GB"@en-GB, "Parigi"@it', "Paris, GB"),
        ('rdfs:label "Parigi"@it', "Parigi"),
        ('skos:prefLabel "pref" ; schema:name "name"', "pref"),
        ('schema:name "name"', "name"),
        ('rdfs:label "Parigi"@it ; schema:name "Paris"@en', "Paris"),
        ('rdfs:label ""', "Paris x"),
        ("ex:people 5", "Paris x"),
    ],
)
def test_the_name_is_english_or_untagged_where_there_is_such_a_label(read: Read, labels: str, name: str) -> None:
    assert only(read(f"ex:Paris_x {labels} ."), f"{EX}Paris_x").name == name


@pytest.mark.parametrize(
    ("language", "name"), [("it", "Parigi"), ("IT", "Parigi"), ("de", "Paris (D)"), ("fr", "Paris"), ("en", "Paris")]
)
@pytest.mark.parametrize("engine", [False, True])
def test_a_language_of_names_may_be_chosen(tmp_path: Path, language: str, name: str, engine: bool) -> None:
    file = tmp_path / "graph.nt"
    labels = '"Parigi"@it', '"Paris (D)"@de-AT', '"Paris"@en'
    file.write_text("".join(f"<{EX}p> <http://www.w3.org/2000/01/rdf-schema#label> {label} .\n" for label in labels))
    graph = build_graph(file, tmp_path / "graph", options=TableOptions(language=language))
    if not engine:
        assert only(graph, f"{EX}p").name == name
        assert name_index(graph).exact("parigi").tolist() == [0]
        return
    with closing(build_oxigraph(graph, tmp_path / "store")) as store:
        assert store.nodes([EntityId(f"{EX}p")])[0].name == name


@pytest.mark.parametrize("file", ["graph.ttl", "graph.nt"])
def test_types_are_the_local_names_of_all_classes_in_the_order_of_the_file(read: Read, file: str) -> None:
    said = [("Paris", "City"), ("Rome", "Capital"), ("Paris", "Capital"), ("Rome", "Place"), ("Paris", "City")]
    triples = [f"<{EX}{subject}> <{RDF_TYPE}> <{EX}{class_}> .\n" for subject, class_ in said]
    graph = read(
        f"<{EX}Paris> <{RDF_TYPE}> <{OWL}Thing> .\n<{EX}x> <{RDF_TYPE}> <{OWL}Thing> .\n{''.join(triples)}", file
    )
    assert only(graph, f"{EX}Paris").types == ("City", "Capital")
    assert only(graph, f"{EX}Rome").types == ("Capital", "Place")
    assert only(graph, f"{EX}x").types == ()
    assert edges(graph) == [] and graph.node_count == 3
    assert graph.source["types"] == {name: EX + name for name in ("City", "Capital", "Place")}
    assert graph.schema().node_types == {"Capital": 2, "": 1, "City": 1, "Place": 1}


def test_a_hierarchy_of_classes_stays_edges_between_them(read: Read) -> None:
    graph = read("ex:g a ex:Producer, ex:Songwriter . ex:Songwriter rdfs:subClassOf ex:Artist .")
    assert only(graph, f"{EX}g").types == ("Producer", "Songwriter")
    assert edges(graph) == [(f"{EX}Songwriter", "rdfs:subClassOf", f"{EX}Artist", {})]


def test_what_wikidata_says_a_node_is_an_instance_of_is_its_type(read: Read) -> None:
    wikidata = "http://www.wikidata.org/"
    said = f"<{wikidata}entity/Q937> <{wikidata}prop/direct/P31> <{wikidata}entity/"
    label = f"<{wikidata}entity/Q5> <http://www.w3.org/2000/01/rdf-schema#label>"
    graph = read(f'{said}Q5> .\n{said}Q1> .\n{label} "human"@en .\n', "graph.nt")
    assert only(graph, f"{wikidata}entity/Q937").types == ("human", "Q1")
    assert graph.source["types"] == {"human": f"{wikidata}entity/Q5", "Q1": f"{wikidata}entity/Q1"}
    assert [relation for _, relation, _, _ in edges(graph)] == ["wdt:P31", "wdt:P31"]
    again = read("".join(f"{quad.triple} .\n" for quad in graph_quads(graph)), "graph.nt")
    assert [(node.id, node.name, node.types) for node in again.nodes(list(again.entities()))] == [
        (node.id, node.name, node.types) for node in graph.nodes(list(again.entities()))
    ]
    assert edges(again) == edges(graph) and again.source["types"] == graph.source["types"]


def test_two_classes_of_one_name_stay_two_types(read: Read) -> None:
    graph = read("ex:a a ex:City . ex:b a schema:City . ex:c a ex:City .")
    assert [found.type for found in graph.nodes(list(graph.entities()))] == ["City", "schema:City", "City"]
    assert graph.source["types"] == {"City": f"{EX}City", "schema:City": "http://schema.org/City"}


# Properties


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("7", 7),
        ('"-7"^^xsd:long', -7),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("true", True),
        ('"0"^^xsd:boolean', False),
        ('"text"', "text"),
        ('"1990"^^xsd:gYear', 1990),
        ('"2001-09-30"^^xsd:date', "2001-09-30"),
        ('"2001-09-30Z"^^xsd:date', "2001-09-30Z"),
        ('"2001-02-31"^^xsd:date', "2001-02-31"),
        ('"2001-09-30T10:00:00Z"^^xsd:dateTime', "2001-09-30T10:00:00Z"),
        ('"12345678901234567890"^^xsd:integer', "12345678901234567890"),
        ('"INF"^^xsd:double', "INF"),
        ('"many"^^xsd:integer', "many"),
        ('"POINT(1 2)"^^ex:wkt', "POINT(1 2)"),
        (r'"say \"hi\"\n😀"', 'say "hi"\n😀'),
    ],
)
def test_literals_become_values_of_their_kind(read: Read, literal: str, value: object) -> None:
    properties = only(read(f"ex:a ex:p {literal} ."), f"{EX}a").properties
    assert properties == {"ex:p": value}
    assert type(properties["ex:p"]) is type(value)


def test_of_several_values_one_is_shown_and_all_are_kept(read: Read) -> None:
    graph = read('ex:a ex:motto "Fluctuat"@la, "It floats"@en ; ex:size 3, 4 . ex:b ex:size 5 .')
    assert only(graph, f"{EX}a").properties == {
        "ex:motto": "It floats",
        "ex:motto[]": '"Fluctuat"@la, "It floats"@en',
        "ex:size": 3,
        "ex:size[]": '"3"^^<http://www.w3.org/2001/XMLSchema#integer>, "4"^^<http://www.w3.org/2001/XMLSchema#integer>',
    }
    assert only(graph, f"{EX}b").properties == {"ex:size": 5}
    assert [literal.value for literal in parse_list(str(only(graph, f"{EX}a").properties["ex:size[]"]))] == [3, 4]


def test_a_language_or_datatype_that_differs_from_the_usual_one_is_kept(read: Read) -> None:
    graph = read('ex:a ex:p "one"@en . ex:b ex:p "two"@en . ex:c ex:p "tre"@it . ex:d ex:p "4"^^xsd:gYear .')
    found = [dict(item.properties) for item in graph.nodes(list(graph.entities()))]
    assert found == [
        {"ex:p": "one"},
        {"ex:p": "two"},
        {"ex:p": "tre", "ex:p[]": '"tre"@it'},
        {"ex:p": "4", "ex:p[]": '"4"^^<http://www.w3.org/2001/XMLSchema#gYear>'},
    ]
    assert graph.source["literals"] == {"ex:p": "@en"}


def test_whole_and_other_numbers_of_one_property_are_numbers(read: Read) -> None:
    graph = read("ex:a ex:p 1 . ex:b ex:p 2.5 .")
    assert [item.properties["ex:p"] for item in graph.nodes(list(graph.entities()))] == [1.0, 2.5]
    exact = read("ex:a ex:p 9007199254740993 . ex:b ex:p 2.5 .")  # 2^53 + 1 is no float
    assert [item.properties["ex:p"] for item in exact.nodes(list(exact.entities()))] == ["9007199254740993", "2.5"]


# Labels of relations


def test_labels_use_the_files_prefixes_and_make_others(read: Read) -> None:
    nt = "<x:a> <http://a.org/ontology/likes> <x:b> .\n<x:a> <http://b.org/ontology/likes> <x:b> .\n"
    nt += "<x:a> <http://dbpedia.org/ontology/likes> <x:b> .\n<x:a> <http://a.org/ontology/with/()> <x:b> .\n"
    graph = read(nt, "graph.nt")
    assert list(graph.relations) == ["ontology:likes", "ontology2:likes", "dbo:likes", "http://a.org/ontology/with/()"]
    assert graph.source["prefixes"]["ontology2"] == "http://b.org/ontology/"


def test_a_prefix_that_would_be_mistaken_for_an_iri_gets_another_name(read: Read) -> None:
    graph = read("@prefix http: <http://odd.org/> . @prefix : <http://none.org/> . http:a http:r :b . http:a :r :b .")
    assert list(graph.relations) == ["odd:r", "none:r"]


# Blank nodes, repetitions, graphs, statements


def test_blank_nodes_are_numbered_as_they_appear_or_keep_their_label(read: Read) -> None:
    turtle = "ex:a ex:address [ ex:street 'Main' ; ex:next [ ex:street 'Side' ] ] . _:z ex:r ex:a ."
    first, second = read(turtle), read(turtle)
    assert list(first.entities()) == list(second.entities())
    assert set(first.entities()) == {f"{EX}a", "_:b1", "_:b2", "_:b3"}
    assert set(read(f"_:z <{EX}r> <{EX}a> .\n", "g.nt").entities()) == {f"{EX}a", "_:z"}


def test_relative_iris_do_not_tell_where_the_file_lay(read: Read) -> None:
    assert set(read("<#a> ex:r <b> .", "my graph.ttl").entities()) == {"file:///my%20graph.ttl#a", "file:///b"}


def test_repeated_triples_are_one_edge_and_are_counted(read: Read) -> None:
    graph = read(TRIPLE * 3, "g.nt")
    assert (graph.edge_count, graph.dropped_duplicates) == (1, 2)


def test_a_triple_in_two_graphs_is_two_edges_that_name_them(read: Read) -> None:
    quads = f"<{EX}a> <{EX}r> <{EX}b> <{EX}g1> .\n<{EX}a> <{EX}r> <{EX}b> <{EX}g2> .\n<{EX}a> <{EX}r> <{EX}c> .\n"
    found = [(tail, properties) for _, _, tail, properties in edges(read(quads, "g.nq"))]
    assert found == [(f"{EX}b", {"graph": f"{EX}g1"}), (f"{EX}b", {"graph": f"{EX}g2"}), (f"{EX}c", {})]


STATEMENTS = {
    "annotation": "ex:a ex:r ex:b {| ex:since 1990 ; ex:source ex:book |} {| ex:since 2001 |} .",
    "quoted": "ex:a ex:r ex:b . << ex:a ex:r ex:b >> ex:since 1990 ; ex:source ex:book . "
    "<< ex:a ex:r ex:b >> ex:since 2001 .",
    "reified": "ex:a ex:r ex:b . ex:s1 a rdf:Statement ; rdf:subject ex:a ; rdf:predicate ex:r ; rdf:object ex:b ; "
    "ex:since 1990 ; ex:source ex:book . [] rdf:subject ex:a ; rdf:predicate ex:r ; rdf:object ex:b ; ex:since 2001 .",
}


@pytest.mark.parametrize("written", STATEMENTS)
def test_statements_about_triples_are_properties_of_edges(read: Read, written: str) -> None:
    graph = read(STATEMENTS[written])
    assert list(graph.entities()) == [f"{EX}a", f"{EX}b"]
    assert edges(graph) == [
        (f"{EX}a", "ex:r", f"{EX}b", {"ex:since": 1990, "ex:source": f"{EX}book"}),
        (f"{EX}a", "ex:r", f"{EX}b", {"ex:since": 2001}),
    ]


def test_statements_that_say_nothing_more_make_parallel_edges_too(read: Read) -> None:
    statement = "[] rdf:reifies <<( ex:a ex:r ex:b )>> ."
    graph = read(f"ex:a ex:r ex:b . ex:a ex:r ex:b . {statement} {statement}")
    assert edges(graph) == [(f"{EX}a", "ex:r", f"{EX}b", {})] * 2
    assert graph.dropped_duplicates == 1


def test_statements_about_triples_that_are_not_there_stay_nodes_or_are_counted(read: Read) -> None:
    old = read("ex:s rdf:subject ex:a ; rdf:predicate ex:r ; rdf:object ex:b ; ex:since 1990 .")
    assert [relation for _, relation, _, _ in edges(old)] == ["rdf:subject", "rdf:predicate", "rdf:object"]
    assert only(old, f"{EX}s").properties == {"ex:since": 1990}
    new = read("ex:x ex:r ex:y . << ex:a ex:r ex:b >> ex:since 1990 .")
    assert new.source["left_out"] == 1


# Errors


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("g.nt", f"{TRIPLE}<{EX}a> nonsense .\n", 2),
        ("g.nt", "<relative> <x:p> <x:o> .\n", 1),
        ("g.nq", f"{TRIPLE}{TRIPLE}<a\n", 3),
        ("g.nt", f"{TRIPLE}{'x' * (17 << 20)}\n", 2),
        ("g.ttl", "ex:a ex:b\n  ex:c ex:d .", 10),
        ("g.rdf", "<?xml version='1.0'?>\n<a></b>", 2),
    ],
)
def test_a_syntax_error_names_file_and_line(read: Read, name: str, text: str, line: int | None) -> None:
    with pytest.raises(ImportFailed) as caught:
        read(text, name)
    assert (Path(caught.value.file).name, caught.value.line) == (name, line)
    assert "correct the file" in str(caught.value) and len(str(caught.value)) < 1000


def test_what_cannot_be_rdf_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="end the name in one of"):
        read_rdf(tmp_path / "graph.txt")
    with pytest.raises(ImportFailed, match="no such file"):
        read_rdf(tmp_path / "graph.ttl")


def test_an_empty_file_is_an_empty_graph(read: Read) -> None:
    assert (read("").node_count, read("", "g.nt").edge_count) == (0, 0)


# Back to RDF


def rewritten(graph: ColumnarGraph, tmp_path: Path) -> ColumnarGraph:
    """Write a graph as N-Quads, and import that."""
    path = tmp_path / "again.nq"
    pyoxigraph.serialize(graph_quads(graph), str(path), pyoxigraph.RdfFormat.N_QUADS)
    return import_graph(path)


def test_what_came_from_rdf_goes_back_to_the_same_rdf(read: Read, tmp_path: Path) -> None:
    graph = read(
        'ex:Paris a ex:City, ex:Capital ; rdfs:label "Parigi"@it, "Paris"@en ; ex:people 2100000 ; ex:area 105.4 ; '
        'ex:founded "-0250"^^xsd:gYear ; ex:day "2001-09-30"^^xsd:date ; ex:big 1e30 ; ex:exact "1"^^xsd:decimal . '
        'ex:Oslo rdfs:label "Oslo"@en ; ex:people "many" ; ex:exact 0.25 . ex:Rome skos:prefLabel "Rome" . '
        "ex:Paris ex:in ex:France {| ex:since 987 |} . ex:New_York ex:twin ex:Oslo ."
    )
    # France and New York had no name
    wanted = """
        ex:Paris a ex:City, ex:Capital ; rdfs:label "Parigi"@it, "Paris"@en ; ex:people 2100000 ; ex:area 105.4 ;
          ex:founded "-250"^^xsd:gYear ; ex:day "2001-09-30"^^xsd:date ; ex:big "1e+30"^^xsd:double ;
          ex:exact 1.0 ; ex:in ex:France .
        ex:Oslo rdfs:label "Oslo"@en ; ex:people "many" ; ex:exact 0.25 .
        ex:Rome skos:prefLabel "Rome" . ex:New_York ex:twin ex:Oslo ; rdfs:label "New York"@en .
        ex:France rdfs:label "France"@en .
        <urn:byokg:edge:1> rdf:subject ex:Paris ; rdf:predicate ex:in ; rdf:object ex:France ; ex:since 987 .
    """
    expected = {str(quad) for quad in pyoxigraph.parse(PREFIXES + wanted, pyoxigraph.RdfFormat.TURTLE)}
    assert {str(quad) for quad in graph_quads(graph)} == expected
    again = rewritten(graph, tmp_path)
    assert [only(again, entity).name for entity in graph.entities()] == [
        only(graph, entity).name for entity in graph.entities()
    ]


def test_any_graph_goes_to_rdf_and_back_with_other_labels_only(tmp_path: Path) -> None:
    nodes = [node(name) for name in STRANGE_IDS] + [node("p", "a type", size=3, half=0.5, yes=True, text="x\ny")]
    chain = [edge(head, label, "p") for head, label in zip(STRANGE_IDS, STRANGE_RELATIONS, strict=False)]
    graph = ColumnarGraph.from_records(nodes, [*chain, edge("p", "r", "p", since=1990), edge("p", "r", "p")])
    again = rewritten(graph, tmp_path)
    names = {only(again, entity).name: entity for entity in again.entities()}
    assert set(names) == {*STRANGE_IDS, "p"}
    found = only(again, names["p"])
    assert found.type == "a type"
    assert found.properties == {"size": 3, "half": 0.5, "yes": True, "text": "x\ny"}
    assert set(again.relations) == {*STRANGE_RELATIONS, "r"}
    assert [properties for head, _, tail, properties in edges(again) if head == tail] == [{"since": 1990}, {}]


def test_equal_files_give_equal_folders(read: Read, tmp_path: Path) -> None:
    text = "ex:a a ex:T ; ex:r [ ex:p 1, 2 ], ex:b ; rdfs:label 'x'@en, 'y'@de . ex:b a ex:U, ex:T ."
    for name in ("one", "two"):
        read(text).save(tmp_path / name)
    contents = [{path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "two")]
    assert contents[0] == contents[1]


def test_rdf_files_in_a_folder_are_one_graph_whose_blank_nodes_stay_apart(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text('<http://e/a> <http://e/p> _:x .\n_:x <http://e/n> "_:x"@en .\n')
    (tmp_path / "b.ttl").write_text("@prefix e: <http://e/> . e:a e:p _:x , e:c . e:c e:n '1'^^e:int .")
    graph = import_graph(tmp_path)
    assert (graph.node_count, graph.edge_count) == (4, 3)
    assert [file["name"] for file in graph.source["files"]] == ["a.nt", "b.ttl"]
    (blank,) = [node for node in graph.nodes(list(graph.entities())) if "e:n" in node.properties and node.id[0] == "_"]
    assert blank.properties["e:n"] == "_:x"
    assert source_files(tmp_path) == [tmp_path / "a.nt", tmp_path / "b.ttl"]


@pytest.mark.parametrize(
    ("inside", "line"),
    [("<rdf:Description>\n<oops>\n</rdf:Description>", 4), ("\n<rdf:li rdf:ID='1 2'/>", 3), ("<li/>", None)],
)
def test_errors_of_rdf_xml_name_the_line_where_it_can_be_found(tmp_path: Path, inside: str, line: int | None) -> None:
    space = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
    (tmp_path / "graph.rdf").write_text(f"<rdf:RDF {space}>\n{inside}\n</rdf:RDF>")
    with pytest.raises(ImportFailed) as caught:
        import_graph(tmp_path / "graph.rdf")
    assert caught.value.line == line


def test_an_unknown_ending_names_all_that_are_known(tmp_path: Path) -> None:
    (tmp_path / "graph.foo").write_text("a")
    with pytest.raises(ImportFailed, match=r"\.txt, .*\.jsonl, .*\.ttl, .*\.yaml"):
        import_graph(tmp_path / "graph.foo")
