"""A graph folder with both engines.

f1 Heat -directed by-> p1 Michael Mann
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("arcadedb_embedded", reason="needs arcadedb-embedded: pip install 'byokg[cypher]'")
pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'byokg[sparql]'")

from byokg.errors import GraphError
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import BothEngines
from byokg.graph.store import query_notes
from byokg.linking.parts import Parts
from byokg.open import add_engine
from byokg.retrieval.query import QueryRetriever
from byokg.types import (
    Artifacts,
    Context,
    EntityId,
    GraphQuery,
    Linked,
    Node,
    NodeCell,
    Question,
    Request,
    RowsEvidence,
    Triple,
)

NODES = [Node(EntityId("f1"), "Heat", "Film"), Node(EntityId("p1"), "Michael Mann", "Person")]
EDGES = [Triple(EntityId("f1"), "directed by", EntityId("p1"))]

CYPHER = "MATCH (:Film {name: 'Heat'})-[:`directed by`]->(p) RETURN p"
SPARQL = "SELECT ?p WHERE { ?f a kg:Film ; rdfs:label 'Heat' ; kg:directed%20by ?p }"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("both") / "graph"
    ColumnarGraph.from_records(NODES, EDGES).save(place)
    add_engine(place, "cypher")
    return place


@pytest.fixture(scope="module")
def store(folder: Path) -> Iterator[BothEngines]:
    with pytest.raises(GraphError, match="no SPARQL engine; build one: byokg graph engine"):
        BothEngines.open(folder)
    add_engine(folder, "sparql")
    with BothEngines.open(folder, heap_mb=256) as opened:
        yield opened


def test_both_languages_find_the_same_node(store: BothEngines) -> None:
    assert [engine.language for engine in store.engines] == ["cypher", "sparql"]
    queries = (GraphQuery("cypher", CYPHER), GraphQuery("sparql", SPARQL))
    request = Request(Question("q1", "Who directed Heat?"), Artifacts(queries=queries), Linked(), Context())
    found = QueryRetriever(Parts(store)).retrieve(request)
    rows = [(item.language, item.rows) for item in found if isinstance(item, RowsEvidence)]
    cells = [cell for _, ((cell,),) in rows]
    assert [language for language, _ in rows] == ["cypher", "sparql"]
    assert [cell.id for cell in cells if isinstance(cell, NodeCell)] == ["p1", "p1"]


def test_whoever_writes_a_query_is_told_how_names_are_written(store: BothEngines) -> None:
    notes = query_notes(store)
    assert "every node has the label Entity" in notes
    assert "kg:NAME" in notes and "directed by is kg:directed%20by" in notes


def test_a_graph_without_engines_has_nothing_to_tell() -> None:
    graph = ColumnarGraph.from_records(NODES, EDGES)
    assert (graph.engines, query_notes(graph)) == ((), "")
