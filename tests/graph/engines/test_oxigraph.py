"""The embedded RDF store keeps both protocols' promises, in a process that can be killed."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from byokg.errors import (
    EntityNotFound,
    GraphCorrupt,
    GraphExists,
    GraphNotFound,
    ImportFailed,
    QueryInvalid,
    QueryRefused,
    QueryTooLarge,
)
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.oxigraph import OxigraphStore, build_oxigraph
from byokg.graph.importers.choose import import_graph
from byokg.graph.paths import follow
from byokg.graph.rdf.literals import of_value
from byokg.graph.rdf.terms import encode, term_iri
from byokg.graph.servers.sparql_store import SparqlStore
from byokg.graph.store import Direction, QueryLimits, QueryStore
from byokg.graph.traversal import k_hop_edges, neighbours, triples
from byokg.types import EntityId, Node, NodeCell, Triple
from tests.graph.contract import STRANGE_IDS, GraphStoreContract, Make, edge, ids, node, spelled
from tests.graph.query_contract import MakeQueryable, QueryStoreContract

pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'byokg[sparql]'")

Build = Callable[[ColumnarGraph | Path], OxigraphStore]


class SparqlQueries:
    """The questions of the contract in SPARQL."""

    writes = (
        "INSERT DATA { node:new rdfs:label 'new' }",
        "DELETE WHERE { ?s ?p ?o }",
        "DELETE DATA { node:a kg:r node:b }",
        "DROP ALL",
        "CLEAR DEFAULT",
        "SELECT * WHERE { ?s ?p ?o } ; INSERT DATA { node:new rdfs:label 'new' }",
    )
    wrong = (
        "SELECT ?n WHERE { ?n ",
        "SELECT WHERE",
        "MATCH (n) RETURN n",
        "give me all films",
        "SELECT ?n WHERE { ?n rdfs:label 'open string }",
        "SELECT ?n WHERE { ?n nothing:here ?m }",
        "",
    )
    endless = "SELECT (COUNT(*) AS ?n) WHERE { ?a ?r ?b . ?c ?s ?d . ?e ?t ?f . ?g ?u ?h . ?i ?v ?j . ?k ?w ?l }"

    def neighbours(self, name: str, relation: str) -> str:
        where = f"?n rdfs:label {of_value(name)} ; <{term_iri(relation)}> ?m . "
        return f"SELECT ?start ?end WHERE {{ {where} ?n rdfs:label ?start . ?m rdfs:label ?end }} ORDER BY ?end"

    def sought(self, parameter: str) -> str:
        return f"SELECT (STRAFTER(STR(?n), 'urn:byokg:node:') AS ?id) WHERE {{ ?n rdfs:label ?{parameter} }}"

    def nodes(self, type: str) -> str:
        return f"SELECT ?n WHERE {{ ?n a <{term_iri(type)}> ; rdfs:label ?name }} ORDER BY ?name"

    def names(self) -> str:
        return "SELECT ?name WHERE { ?n rdfs:label ?name } ORDER BY ?name"

    def property(self, name: str, key: str) -> str:
        return f"SELECT ?value WHERE {{ ?n rdfs:label {of_value(name)} ; <{term_iri(key)}> ?value }}"

    def count(self) -> str:
        return "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o . FILTER(isIRI(?o) && ?p != rdf:type) }"


class SparqlContract(GraphStoreContract, QueryStoreContract):
    """Both contracts, with the one thing that SPARQL does otherwise."""

    holds_undirected = False
    queries = SparqlQueries()

    @pytest.fixture
    def make_queryable(self, make: Make) -> MakeQueryable:
        def build(nodes: Sequence[Node], edges: Sequence[Triple]) -> QueryStore:
            store = make(nodes, edges)
            assert isinstance(store, SparqlStore)
            return store

        return build

    def test_any_character_may_stand_in_a_name(self, make_queryable: MakeQueryable) -> None:
        # Differs from the contract in that a query can read an id only as the end of its IRI, where it is encoded.
        edges = [edge(name, "next", name) for name in STRANGE_IDS]
        store = make_queryable([node(name) for name in STRANGE_IDS], edges)
        for name in STRANGE_IDS:
            assert store.run(self.queries.neighbours(name, "next")).rows == ((name, name),)
            assert store.run(self.queries.sought("x"), {"x": name}).rows == ((encode(name),),)
            ((cell,),) = store.run("SELECT ?n WHERE { ?n rdfs:label ?x }", {"x": name}).rows
            assert cell == NodeCell(EntityId(name), name)


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Build]:
    stores: list[OxigraphStore] = []
    numbers = itertools.count()

    def make(source: ColumnarGraph | Path) -> OxigraphStore:
        stores.append(build_oxigraph(source, tmp_path / f"store{next(numbers)}"))
        return stores[-1]

    yield make
    for store in stores:
        store.close()


class TestOxigraphKeepsTheContracts(SparqlContract):
    @pytest.fixture
    def make(self, build: Build) -> Make:
        return lambda nodes, edges: build(ColumnarGraph.from_records(nodes, edges))


# The folder


def test_a_store_is_opened_again_with_its_schema(build: Build, tmp_path: Path) -> None:
    graph = ColumnarGraph.from_records([node("a", "T", p=1), node("b")], [edge("a", "r", "b", since=1990)])
    schema = build(graph).schema()
    assert schema == graph.schema()
    with OxigraphStore(tmp_path / "store0") as again:
        assert again.schema() == schema
        assert again.relations == ("r",)
        assert again.source == {"kind": "records in memory"}
        # names 2, type 1, property 1, edge 1, statement 3 with 1 property
        assert again.triple_count == 9


def test_nothing_is_left_of_a_build_that_fails(tmp_path: Path) -> None:
    path = tmp_path / "graph.nt"
    path.write_text("<x:a> <x:r> <x:b> .\n" * 1000 + "nonsense\n", "utf-8")
    with pytest.raises(ImportFailed) as caught:
        build_oxigraph(path, tmp_path / "out" / "store")
    assert caught.value.line == 1001
    assert [found.name for found in tmp_path.iterdir()] == ["graph.nt"]


def test_a_folder_is_replaced_only_when_it_is_a_store_and_that_is_asked_for(build: Build, tmp_path: Path) -> None:
    old, new = ColumnarGraph.from_triples([("a", "r", "b")]), ColumnarGraph.from_triples([("c", "r", "d")])
    first = build(old)
    with pytest.raises(GraphExists, match="overwrite"):
        build_oxigraph(new, tmp_path / "store0")
    assert list(first.entities()) == ["a", "b"]
    with build_oxigraph(new, tmp_path / "store0", overwrite=True) as second:
        assert list(second.entities()) == ["c", "d"]
        assert len(first.edges(first.numbers(ids("a")))) == 1  # still reads the files it has open
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("keep me")
    with pytest.raises(GraphExists, match="holds no RDF store"):
        build_oxigraph(new, tmp_path / "other", overwrite=True)


def test_what_is_no_store_says_so(build: Build, tmp_path: Path) -> None:
    with pytest.raises(GraphNotFound):
        OxigraphStore(tmp_path / "nowhere")
    build(ColumnarGraph.from_triples([("a", "r", "b")])).close()
    meta = tmp_path / "store0" / "meta.json"
    content = json.loads(meta.read_text("utf-8"))
    meta.write_text(json.dumps({**content, "version": 99}), "utf-8")
    with pytest.raises(GraphCorrupt, match="version 99"):
        OxigraphStore(tmp_path / "store0")
    meta.write_text("{", "utf-8")
    with pytest.raises(GraphCorrupt):
        OxigraphStore(tmp_path / "store0")


def test_two_processes_may_read_one_store(build: Build, tmp_path: Path) -> None:
    store = build(ColumnarGraph.from_triples([("a", "r", "b")]))
    assert list(store.entities()) == ["a", "b"]
    # No `if __name__ == "__main__"`: a worker must not run the script again.
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom byokg.graph.engines.oxigraph import OxigraphStore\n"
        "print(list(OxigraphStore(sys.argv[1]).entities()))\n"
    )
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "store0")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout == "['a', 'b']\n", done.stderr
    assert len(store.edges(store.numbers(ids("a")))) == 1


# RDF

TRIG = """
@prefix ex: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
ex:Paris a ex:City ; rdfs:label "Paris"@en, "Parigi"@it ; ex:people 2100000 ; ex:mayor [ ex:since 2014 ] .
ex:Paris ex:in ex:France {| ex:since 987 ; ex:source ex:book |} {| ex:since 1944 |} .
GRAPH ex:g { ex:France ex:in ex:Europe . ex:Paris ex:in ex:France . }
"""


@pytest.fixture
def paris(build: Build, tmp_path: Path) -> OxigraphStore:
    path = tmp_path / "paris.trig"
    path.write_text(TRIG, "utf-8")
    return build(path)


def names(*local: str) -> list[EntityId]:
    return ids(*(f"http://example.org/{name}" for name in local))


def test_rdf_is_walked_across_graphs_and_blank_nodes(paris: OxigraphStore) -> None:
    assert list(paris.entities()) == [*names("Europe", "France", "Paris"), "_:b1"]
    assert list(paris.relations) == ["ex:in", "ex:mayor"]
    walks = follow(paris, names("Paris"), ["ex:in", "ex:in"])
    assert paris.ids(walks.ends) == names("Europe")
    batch = paris.edges(paris.numbers(names("Paris")), Direction.OUT, np.array([paris.relations.index("ex:mayor")]))
    (mayor,) = paris.ids(batch.other)
    assert paris.nodes([mayor]) == [Node(mayor, "_:b1", "", {"ex:since": 2014})]
    assert spelled(paris, paris.edges(paris.numbers([mayor]))) == [
        (0, True, "http://example.org/Paris", "ex:mayor", "_:b1")
    ]


def test_statements_are_parallel_edges_with_properties(paris: OxigraphStore) -> None:
    batch = paris.edges(paris.numbers(names("France")), Direction.IN)
    assert [dict(found.properties) for found in triples(paris, batch)] == [
        {"ex:since": 987, "ex:source": "http://example.org/book"},
        {"ex:since": 1944},
    ]
    found = {relation.name: relation for relation in paris.schema().relations}
    assert (found["ex:in"].count, found["ex:in"].properties) == (3, ("ex:since", "ex:source"))
    with pytest.raises(EntityNotFound):
        paris.numbers(names("book"))  # stands only in a statement


def test_a_graph_gives_the_same_store_whether_it_comes_from_its_file_or_from_columns(
    paris: OxigraphStore, build: Build, tmp_path: Path
) -> None:
    columns = build(import_graph(tmp_path / "paris.trig"))
    for store in (paris, columns):
        assert list(store.entities()) == [*names("Europe", "France", "Paris"), "_:b1"]
        (found,) = store.nodes(names("Paris"))
        assert (found.name, found.type, found.properties["ex:people"]) == ("Paris", "City", 2100000)
        assert store.run("SELECT ?x WHERE { ?x rdfs:label 'Parigi'@it ; ex:people 2100000 }").rows == (
            (NodeCell(*dataclasses.astuple(found)),),
        )


def test_graphs_can_be_asked_for_by_name(paris: OxigraphStore) -> None:
    assert paris.run("SELECT ?o WHERE { GRAPH ex:g { ex:France ex:in ?o } }").rows == (
        (NodeCell(names("Europe")[0], "Europe"),),
    )


def test_from_chooses_among_graphs(paris: OxigraphStore) -> None:
    asked = "SELECT ?s ?o {} WHERE {{ ?s ex:in ?o }} ORDER BY ?s"
    assert len(paris.run(asked.format(""))) == 3  # one edge stands in the default graph and in ex:g
    rows = paris.run(asked.format("FROM ex:g")).rows
    assert [(cell.name, other.name) for cell, other in rows] == [("France", "Europe"), ("Paris", "France")]  # type: ignore[union-attr]
    assert len(paris.run(asked.format("FROM NAMED ex:g"))) == 0
    assert len(paris.run("SELECT ?s FROM NAMED ex:g WHERE { GRAPH ?g { ?s ex:in ?o } }")) == 2


def test_graphs_as_answers_come_as_rows_of_triples(paris: OxigraphStore) -> None:
    answer = paris.run("CONSTRUCT { ?o ex:in ?s } WHERE { ?s ex:in ?o } LIMIT 3")
    assert answer.columns == ("subject", "predicate", "object")
    assert [(row[0].id, row[1], row[2].id) for row in answer.rows if isinstance(row[0], NodeCell)] == [  # type: ignore[union-attr]
        ("http://example.org/France", "ex:in", "http://example.org/Paris"),
        ("http://example.org/Europe", "ex:in", "http://example.org/France"),
    ]
    described = paris.run("DESCRIBE ?o WHERE { ex:Paris ex:in ?o }").rows
    assert [(predicate, end.name) for _, predicate, end in described] == [("ex:in", "Europe")]  # type: ignore[union-attr]
    assert paris.run("DESCRIBE ?n { ?n a ex:City }", {"n": NodeCell(names("Paris")[0], "")}).rows


# Queries


def test_prefixed_names_that_the_engine_cannot_read_are_spelled_out(build: Build) -> None:
    store = build(ColumnarGraph.from_triples([("Barack Obama", "people.person.born in", "Honolulu")]))
    answer = store.run("SELECT ?o WHERE { node:Barack%20Obama kg:people.person.born%20in ?o}")
    assert answer.rows == ((NodeCell(EntityId("Honolulu"), "Honolulu"),),)
    assert store.run("PREFIX n: <urn:byokg:node:> ASK { ?s ?p n:Honolulu. }").rows == ((True,),)
    relations = store.run("SELECT DISTINCT ?p WHERE { ?s ?p ?o FILTER(isIRI(?o)) }").rows
    assert relations == (("people.person.born in",),)


def test_an_error_gives_the_place_in_the_query_as_it_was_written(build: Build) -> None:
    store = build(ColumnarGraph.from_triples([("a", "r", "b")]))
    text = "SELECT ?n\nWHERE { ?n kg:r node:b . ?n kg:r unheard:of }"
    with pytest.raises(QueryInvalid, match="unknown prefix before line 2, column") as caught:
        store.run(text)
    column = int(str(caught.value).split("column ")[1].split(";")[0])
    assert text.splitlines()[1][:column].rstrip().endswith("unheard:of")


def test_parameters_may_be_nodes_numbers_and_lists(build: Build) -> None:
    store = build(ColumnarGraph.from_records([node("a", size=1), node("b", size=2), node("c", size=3)], []))
    answer = store.run("SELECT ?n WHERE { ?n kg:size ?s FILTER(?s IN (?sizes)) } ORDER BY ?s", {"sizes": [1, 3]})
    assert [cell.id for (cell,) in answer.rows if isinstance(cell, NodeCell)] == ["a", "c"]
    b = NodeCell(EntityId("b"), "b")
    assert store.run("SELECT ?s WHERE { $who kg:size ?s }", {"who": b}).rows == ((2,),)
    with pytest.raises(QueryInvalid, match="'nobody'"):
        store.run("SELECT ?s WHERE { ?who kg:size ?s }", {"nobody": 1})
    with pytest.raises(QueryInvalid, match="'who' is a dict"):
        store.run("SELECT ?s WHERE { ?who kg:size ?s }", {"who": {}})


def test_nothing_is_called_from_a_query(paris: OxigraphStore) -> None:
    with pytest.raises(QueryRefused):
        paris.run("SELECT * WHERE { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }")


def test_a_query_that_needs_too_much_memory_is_stopped(build: Build, tmp_path: Path) -> None:
    build(ColumnarGraph.from_triples([(f"n{number}", "r", "hub") for number in range(300)])).close()
    doubled = " ".join(f"BIND(CONCAT(?s{step}, ?s{step}) AS ?s{step + 1})" for step in range(40))
    with OxigraphStore(tmp_path / "store0", memory_mb=300) as store:
        with pytest.raises(QueryTooLarge):
            store.run(f"SELECT ?s40 WHERE {{ BIND('ab' AS ?s0) {doubled} }}", limits=QueryLimits(timeout_s=60))
        assert store.run("SELECT (COUNT(?n) AS ?c) WHERE { ?n kg:r node:hub }").rows == ((300,),)


def test_walks_are_those_of_the_columnar_graph(build: Build) -> None:
    graph = ColumnarGraph.from_triples((f"n{k * 7 % 50}", f"r{k % 3}", f"n{k * 11 % 50}") for k in range(300))
    store = build(graph)
    for start in ("n0", "n7", "n21"):
        here, there = ([*map(str, found.ids(k_hop_edges(found, ids(start), 3).nodes))] for found in (graph, store))
        assert sorted(here) == sorted(there)
        for path in (["r0", "r1"], ["r2", "^r0"]):
            walks = [follow(found, ids(start), path) for found in (graph, store)]
            counted = [dict(zip(walk.store.ids(walk.ends), walk.counts.tolist(), strict=True)) for walk in walks]
            assert counted[0] == counted[1]
    assert len(neighbours(store, ids("n0"), relations=["r0"])) == len(neighbours(graph, ids("n0"), relations=["r0"]))
