"""Nodes of several types are of each of them, in every store and for every question."""

from __future__ import annotations

from pathlib import Path

import pytest

from byokg.graph.bfsql.engine import bfs_query
from byokg.graph.bfsql.protocol import BfsRequest
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.oxigraph import build_oxigraph
from byokg.graph.importers.choose import import_graph
from byokg.graph.pathql.evaluate import paths
from byokg.graph.store import GraphStore
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from byokg.types import Question

pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'byokg[sparql]'")

EX = "http://example.org/"

#   Abbey Road -producer-> George Martin, Chris Thomas, The Beatles   Let It Be -producer-> Phil Spector
#   Imagine -producer-> Phil Spector, John Lennon   The Beatles -member-> John Lennon, Paul McCartney
MUSIC = """
@prefix : <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Abbey_Road a :Album ; rdfs:label "Abbey Road" ; :producer :George_Martin, :Chris_Thomas, :The_Beatles .
:Let_It_Be a :Album ; rdfs:label "Let It Be" ; :producer :Phil_Spector .
:Imagine a :Album ; rdfs:label "Imagine" ; :producer :Phil_Spector, :John_Lennon .
:George_Martin a :Songwriter, :Producer, :Person ; rdfs:label "George Martin" ; :born 1926 .
:Chris_Thomas a :Producer, :Person ; rdfs:label "Chris Thomas" ; :born 1947 .
:Phil_Spector a :Producer, :Songwriter, :Person ; rdfs:label "Phil Spector" .
:John_Lennon a :Person, :Songwriter ; rdfs:label "John Lennon" .
:Paul_McCartney a :Person , :Songwriter ; rdfs:label "Paul McCartney" .
:The_Beatles a :Band ; rdfs:label "The Beatles" ; :member :John_Lennon, :Paul_McCartney .
"""
TYPES = {"Person": 5, "Songwriter": 4, "Album": 3, "Producer": 3, "Band": 1}

ASKED = {
    "Who produced Abbey Road?": {"George Martin", "Chris Thomas", "The Beatles"},
    "Which songwriters produced Abbey Road?": {"George Martin"},
    "Which producers produced Imagine?": {"Phil Spector"},
    "Which songwriters produced Imagine?": {"Phil Spector", "John Lennon"},
    "Which bands produced Abbey Road?": {"The Beatles"},
    "Which songwriters are members of The Beatles?": {"John Lennon", "Paul McCartney"},
    "How many songwriters are there?": {"4"},
}


@pytest.fixture(scope="module")
def columnar(tmp_path_factory: pytest.TempPathFactory) -> ColumnarGraph:
    source = tmp_path_factory.mktemp("music") / "music.ttl"
    source.write_text(MUSIC, "utf-8")
    return import_graph(source)


@pytest.fixture(scope="module")
def rdf(tmp_path_factory: pytest.TempPathFactory) -> GraphStore:
    folder = tmp_path_factory.mktemp("music")
    (folder / "music.ttl").write_text(MUSIC, "utf-8")
    return build_oxigraph(folder / "music.ttl", folder / "store")


@pytest.mark.parametrize("question", ASKED)
def test_a_node_answers_for_each_of_its_types(columnar: ColumnarGraph, question: str) -> None:
    answer = offline_pipeline(Parts(columnar)).run(Question("ask", question))
    assert {item.name for item in answer.items} == ASKED[question]


def test_a_folder_of_arrays_and_a_store_of_triples_agree_on_schema_filters_and_answers(
    columnar: ColumnarGraph, rdf: GraphStore, tmp_path: Path
) -> None:
    columnar.save(tmp_path / "graph")
    stores: tuple[GraphStore, ...] = ColumnarGraph.open(tmp_path / "graph"), rdf
    schemas = [store.schema() for store in stores]
    assert [schema.node_types for schema in schemas] == [TYPES, TYPES]
    ends = [{one.name: (one.count, one.domain, one.range) for one in schema.relations} for schema in schemas]
    assert ends[0] == ends[1]
    properties = [{kind: set(names) for kind, names in schema.node_properties.items()} for schema in schemas]
    assert properties[0] == properties[1]
    for entity in stores[0].entities():
        (here,), (there,) = (store.nodes([entity]) for store in stores)
        assert sorted(here.types) == sorted(there.types)
    for kind in TYPES:
        query = f"PATHS START ?x = <{EX}Abbey_Road> END ?y VIA {{ ?x <{EX}producer> ?y . ?y a <{EX}{kind}> }}"
        found = [sorted(path.nodes for path in paths(store, query)) for store in stores]
        assert found[0] == found[1]
        asked = BfsRequest.model_validate(
            {"seeds": [f"{EX}Abbey_Road"], "max_hops": 1, "node_filter": {"entity_types": [kind]}}
        )
        shown = [
            {node["id"]: sorted(node.get("entity_types", ())) for node in bfs_query(store, asked)["nodes"]}
            for store in stores
        ]
        assert shown[0] == shown[1]
        for excluded in ([], [kind]):
            request = BfsRequest.model_validate(
                {"seeds": [f"{EX}Abbey_Road"], "max_hops": 1, "exclude_entity_types": excluded}
            )
            ids = [sorted(node["id"] for node in bfs_query(store, request)["nodes"]) for store in stores]
            assert ids[0] == ids[1]
    for question in ASKED:
        answers = [
            [item.name for item in offline_pipeline(Parts(store)).run(Question("ask", question)).items]
            for store in stores
        ]
        assert sorted(answers[0]) == sorted(answers[1]), question
