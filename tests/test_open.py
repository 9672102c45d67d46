from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from byokg.api import KnowledgeGraph
from byokg.errors import ConfigError, GraphExists, GraphNotFound
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.rdf.files import graph_quads
from byokg.graph.read_cache import SchemaCache
from byokg.graph.servers.sparql import SparqlEndpoint
from byokg.open import (
    SCHEMES,
    add_engine,
    engines_in,
    fingerprint,
    is_address,
    mask,
    open_graph,
    open_queryable,
    refuse_missing,
    server_kind,
    use_graph,
)
from tests.graph.bolt_server import PASSWORD, BoltDatabases

# Addresses


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("neo4j://localhost", "neo4j"),
        ("neo4j+s://host:7687/films", "neo4j"),
        ("bolt+ssc://[::1]:7687", "neo4j"),
        ("Bolt://host", "neo4j"),
        ("neptune-graph://g-abcdefghij", "neptune"),
        ("neptune-db://host:8182", "neptune"),
        ("sparql+https://dbpedia.org/sparql", "sparql"),
        ("sparql+http://localhost:3030/ds?default-graph-uri=mailto:a@b", "sparql"),
    ],
)
def test_the_scheme_says_what_kind_of_server_it_is(address: str, kind: str) -> None:
    assert is_address(address)
    assert server_kind(address) == kind


@pytest.mark.parametrize("place", ["graph", "/a/b", "C:/a", "a:b", "neo4j:/host", ""])
def test_anything_else_is_a_folder(place: str) -> None:
    assert not is_address(place)


@pytest.mark.parametrize(
    "address", ["neo4j://h/\ud800", "sparql+http://\udfff", "neptune-db://\ud800:8182", "x\ud800://h"]
)
def test_half_a_character_is_in_no_address_and_no_folder(address: str) -> None:
    with pytest.raises(ConfigError, match="half of a character") as caught:
        open_graph(address)
    str(caught.value).encode()
    for open_ in (open_graph, open_queryable):
        with pytest.raises(GraphNotFound):
            open_("\ud800")


def test_an_unknown_scheme_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="no store speaks 'https'") as caught:
        server_kind("https://dbpedia.org/sparql")
    assert all(scheme in str(caught.value) for scheme in SCHEMES)


@pytest.mark.parametrize("user", ["me:s3cret", "me:s3/cr@et", "s3cret", ":s3cret", "me:s3cret:x"])
@pytest.mark.parametrize("scheme", [*SCHEMES, "neo4j+s", "mysql"])
def test_credentials_in_an_address_are_refused_and_not_repeated(scheme: str, user: str) -> None:
    with pytest.raises(ConfigError, match="holds an @") as caught:
        server_kind(f"{scheme}://{user}@host/path")
    assert "s3" not in str(caught.value)


def test_where_credentials_belong_is_said() -> None:
    with pytest.raises(ConfigError, match="NEO4J_PASSWORD"):
        server_kind("neo4j://me:s3cret@host")
    with pytest.raises(ConfigError, match="BYOKG_SPARQL_TOKEN"):
        server_kind("sparql+https://me:s3cret@host")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see neo4j://me:s3cret@host/db now", "see neo4j://…@host/db now"),
        ("GET https://host/q?query=x&apikey=s3cret&limit=1", "GET https://host/q?query=x&apikey=…&limit=1"),
        ("?access_token=s3cret'", "?access_token=…'"),
        ("neo4j://me:s3/c@r:et@host", "neo4j://…@host"),
        ("GET https://s3cret@host/sparql", "GET https://…@host/sparql"),
        (
            "no entity 'http://example.org/a@b' in bolt://host:7687",
            "no entity 'http://example.org/a@b' in bolt://host:7687",
        ),
    ],
)
def test_a_text_is_shown_without_credentials(text: str, shown: str) -> None:
    assert mask(text) == shown


# Opening


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
    with use_graph(films, SchemaCache(tmp_path), id_property="key") as store:
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
        with use_graph(films, SchemaCache(tmp_path)) as store:
            return fingerprint(store)

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
    assert fingerprint(saved) == saved.checksum
    assert fingerprint(graph).startswith("counts:")


def test_an_endpoint_that_cannot_count_is_identified_by_its_address(tmp_path: Path) -> None:
    from byokg.graph.servers.sparql import SparqlEndpoint
    from tests.graph.sparql_server import pyoxigraph, serving

    triples = pyoxigraph.Store()
    triples.extend(graph_quads(ColumnarGraph.from_triples([("a", "r", "b")])))
    with serving(triples) as endpoint, use_graph(f"sparql+{endpoint.url}", SchemaCache(tmp_path)) as store:
        assert fingerprint(store).startswith("counts:")
        assert isinstance(store, SparqlEndpoint)
        store._schema = replace(store.schema(), sampled="some triples")
        assert fingerprint(store).startswith("address:")


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


def test_a_file_is_not_opened_and_it_is_said_how_to_build_a_graph_from_it(tmp_path: Path) -> None:
    (tmp_path / "kb.txt").write_text("a\tr\tb\n")
    with pytest.raises(ConfigError, match=r"kb\.txt is a file; build a graph from it: byokg graph build"):
        open_graph(tmp_path / "kb.txt")


def test_a_store_of_one_s_own_opens_any_place_and_keeps_its_schema_where_it_can(tmp_path: Path) -> None:
    class Mine(SparqlEndpoint):
        pass

    place, cache = "sparql+http://localhost:9/x", SchemaCache(tmp_path)
    store = open_graph(place, cache, opener=lambda place: Mine(str(place), timeout_s=1.0))
    assert isinstance(store, Mine) and store._cache is cache
    graph = ColumnarGraph.from_triples([("a", "r", "b")])
    assert open_graph("mine://anything", opener=lambda _: graph) is graph


def test_what_a_graph_does_not_need_is_not_imported(tmp_path: Path) -> None:
    ColumnarGraph.from_triples([("a", "r", "b")]).save(tmp_path / "graph")
    code = (
        "import sys; from byokg.open import open_graph; open_graph(sys.argv[1]).schema(); "
        "print(*sorted(name for name in sys.modules if name.startswith('byokg.graph.')))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "graph")], capture_output=True, text=True, check=True
    ).stdout.split()
    folders = {name.split(".")[2] for name in said}
    assert "columnar" in folders and folders.isdisjoint({"servers", "engines", "rdf", "guard"})


# Query engines in the folder of a graph


def test_engines_are_added_to_a_graph_that_is_there_and_replaced_only_when_told_so(tmp_path: Path) -> None:
    pytest.importorskip("arcadedb_embedded", reason="ArcadeDB is not installed: pip install 'byokg[cypher]'")
    pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'byokg[sparql]'")
    graph = ColumnarGraph.from_triples([("a", "r", "b")])
    graph.save(tmp_path / "graph")
    refuse_missing(["cypher", "sparql"])
    assert engines_in(tmp_path / "graph") == []
    add_engine(tmp_path / "graph", "sparql")
    add_engine(tmp_path / "graph", "cypher")
    assert engines_in(tmp_path / "graph") == ["cypher", "sparql"]
    for language in engines_in(tmp_path / "graph"):
        with pytest.raises(GraphExists, match="engine already"):
            add_engine(tmp_path / "graph", language)
        add_engine(tmp_path / "graph", language, overwrite=True)
    with open_queryable(tmp_path / "graph") as store:
        assert store.run("MATCH (n) RETURN count(n)").rows == ((2,),)
    with open_queryable(tmp_path / "graph", "sparql") as store:
        assert store.run("SELECT ?x { node:a kg:r ?x }").rows[0][0].id == "b"  # type: ignore[union-attr]
    ColumnarGraph.open(tmp_path / "graph").verify()


def test_an_engine_needs_a_graph(tmp_path: Path) -> None:
    with pytest.raises(GraphNotFound):
        add_engine(tmp_path, "cypher")
    assert list(tmp_path.iterdir()) == []
