from __future__ import annotations

from pathlib import Path

import pytest

from byokg.api import KnowledgeGraph
from byokg.errors import ConfigError, EntityNotFound, GraphNotFound, RelationNotFound
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.dialects import TableOptions
from byokg.graph.store import Direction
from byokg.open import add_engine
from byokg.types import EntityId, Node, Triple

# Alien -directed_by-> Scott <-directed_by- Blade
FILMS = [("Alien", "directed_by", "Scott"), ("Blade", "directed_by", "Scott")]


@pytest.fixture
def films() -> KnowledgeGraph:
    return KnowledgeGraph.from_triples(FILMS)


def test_a_node_is_found_by_its_id(films: KnowledgeGraph) -> None:
    assert films.node("Alien") == Node(EntityId("Alien"), "Alien")


def test_triples_touching_an_entity_are_spelled_out(films: KnowledgeGraph) -> None:
    alien, blade, scott = EntityId("Alien"), EntityId("Blade"), EntityId("Scott")
    assert films.triples("Scott") == [Triple(alien, "directed_by", scott, 0), Triple(blade, "directed_by", scott, 1)]
    assert films.triples("Scott", Direction.OUT) == []
    assert films.triples("Alien", relations=["directed_by"]) == [Triple(alien, "directed_by", scott, 0)]


def test_a_metapath_is_walked_out_of_one_entity(films: KnowledgeGraph) -> None:
    walks = films.follow("Alien", ["directed_by", "^directed_by"])
    assert films.store.ids(walks.ends) == ["Alien", "Blade"]


def test_the_schema_is_the_store_s(films: KnowledgeGraph) -> None:
    assert [(relation.name, relation.count) for relation in films.schema().relations] == [("directed_by", 2)]


def test_what_is_unknown_raises(films: KnowledgeGraph, tmp_path: Path) -> None:
    with pytest.raises(EntityNotFound):
        films.node("Predator")
    with pytest.raises(RelationNotFound):
        films.triples("Alien", relations=["directed"])
    with pytest.raises(GraphNotFound):
        KnowledgeGraph.open(tmp_path)


@pytest.mark.parametrize("asked", [":Aliens", "<http://films.org/Aliens>", "<http://films.org/of#Aliens>"])
def test_an_unknown_node_of_a_path_query_is_reported_with_the_nearest(films: KnowledgeGraph, asked: str) -> None:
    with pytest.raises(EntityNotFound, match=r"Aliens' in .*; nearest: 'Alien'"):
        films.paths(f"PATHS START ?x = {asked} END ?y VIA ?p")


def test_a_built_graph_can_be_opened_again(tmp_path: Path) -> None:
    (tmp_path / "kb.txt").write_text("Alien|directed_by|Scott\n")
    options = TableOptions(("source", "relation", "target"))
    decided = KnowledgeGraph.build(tmp_path / "kb.txt", tmp_path / "decided", options=options)
    assert decided.store.source["files"][0]["read_as"].endswith("source=source, relation=relation, target=target")
    built = KnowledgeGraph.build(tmp_path / "kb.txt", tmp_path / "graph")
    opened = KnowledgeGraph.open(tmp_path / "graph")
    assert list(opened.store.entities()) == list(built.store.entities()) == ["Alien", "Scott"]


def test_the_engine_of_a_built_graph_is_started_where_queries_are_wanted(tmp_path: Path) -> None:
    pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'byokg[sparql]'")
    ColumnarGraph.from_triples(FILMS).save(tmp_path / "graph")
    with pytest.raises(ConfigError, match="has no query engine"):
        KnowledgeGraph.open(tmp_path / "graph", queries=True)
    add_engine(tmp_path / "graph", "sparql")
    assert not KnowledgeGraph.open(tmp_path / "graph").store.engines
    with KnowledgeGraph.open(tmp_path / "graph", queries=True) as opened:
        assert opened.store.engines
