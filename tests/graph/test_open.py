from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from byokg.api import KnowledgeGraph
from byokg.errors import ConfigError, GraphNotFound
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.rdf.files import graph_quads
from byokg.graph.read_cache import SchemaCache
from byokg.open import identity, open_graph, open_queryable, opened
from tests.graph.bolt_server import PASSWORD, BoltDatabases


@pytest.fixture
def films(bolt: BoltDatabases, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the address of a database with two films, by key, and their director."""
    database = bolt.new_database()
    bolt.query(database, "CREATE (p:Person {key: 'scott'}) CREATE (:Film {key: 'alien'})-[:by]->(p)")
    bolt.query(database, "MATCH (p:Person) CREATE (:Film {key: 'blade'})-[:by]->(p)")
    monkeypatch.setenv("NEO4J_USERNAME", "root")
    monkeypatch.setenv("NEO4J_PASSWORD", PASSWORD)
    return f"{bolt.uri}/{database}"


def test_an_address_opens_a_server_and_its_schema_is_kept(films: str, tmp_path: Path) -> None:
    with opened(films, SchemaCache(tmp_path), id_property="key") as store:
        assert store.schema().node_types == {"Film": 2, "Person": 1}
        assert sorted(store.entities()) == ["alien", "blade", "scott"]
        assert (store.node_count, store.edge_count) == (3, 2)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_knowledge_graph_opens_servers_too(films: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with KnowledgeGraph.open(films) as graph:
        assert [relation.name for relation in graph.schema().relations] == ["by"]
    assert len(list((tmp_path / "byokg" / "schemas").iterdir())) == 1


def test_a_server_is_identified_by_its_address_and_counts(films: str, bolt: BoltDatabases, tmp_path: Path) -> None:
    def now() -> str:
        with opened(films, SchemaCache(tmp_path)) as store:
            return identity(store)

    first = now()
    assert first.startswith("counts:") and first == now()
    bolt.query(films.rpartition("/")[2], "MATCH (f:Film {key: 'alien'}) SET f.title = 'Alien'")
    assert now() == first  # which only its checksum would tell
    bolt.query(films.rpartition("/")[2], "CREATE (:Film {key: 'heat'})")
    assert now() != first


def test_a_saved_graph_is_identified_by_its_content(tmp_path: Path) -> None:
    graph = ColumnarGraph.from_triples([("a", "r", "b")])
    graph.save(tmp_path / "graph")
    saved = open_graph(tmp_path / "graph")
    assert identity(saved) == saved.checksum  # type: ignore[union-attr]
    assert identity(graph).startswith("counts:")


def test_an_endpoint_that_cannot_count_is_identified_by_its_address(tmp_path: Path) -> None:
    from tests.graph.sparql_server import pyoxigraph, serving

    triples = pyoxigraph.Store()
    triples.extend(graph_quads(ColumnarGraph.from_triples([("a", "r", "b")])))
    with serving(triples) as endpoint, opened(f"sparql+{endpoint.url}", SchemaCache(tmp_path)) as store:
        assert identity(store).startswith("counts:")
        store._schema = replace(store.schema(), sampled="some triples")
        assert identity(store).startswith("address:")


@pytest.mark.parametrize("place", ["neo4j://me:s3cret@host", "sparql+https://s3cret@host/x", "neptune-db://a:s3cret@h"])
def test_credentials_in_an_address_are_refused(place: str) -> None:
    for open_ in (open_graph, open_queryable, KnowledgeGraph.open):
        with pytest.raises(ConfigError) as caught:
            open_(place)
        assert "s3cret" not in str(caught.value)


def test_what_does_not_fit_the_place_is_refused(tmp_path: Path) -> None:
    ColumnarGraph.from_triples([("a", "r", "b")]).save(tmp_path / "graph")
    with pytest.raises(ConfigError, match="id_property is for servers"):
        open_graph(tmp_path / "graph", id_property="id")
    with pytest.raises(ConfigError, match=r"nodes of sparql\+http://localhost:9/x have IRIs"):
        open_graph("sparql+http://localhost:9/x", id_property="id")
    with pytest.raises(ConfigError, match="takes sparql, not cypher"):
        open_queryable("sparql+http://localhost:9/x", "cypher")
    with pytest.raises(ConfigError, match=r"byokg graph engine .* --cypher or --sparql"):
        open_queryable(tmp_path / "graph")
    with pytest.raises(GraphNotFound):
        open_queryable(tmp_path / "nothing")
