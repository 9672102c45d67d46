"""Values of a graph on a server are read by distinct-value queries, once, and found as those of a graph in a folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from byokg.errors import GraphCorrupt, QueryTimeout
from byokg.graph import value_indexes
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.property_view import PropertyView
from byokg.graph.rdf.files import graph_quads
from byokg.graph.servers.sparql import SparqlEndpoint
from byokg.graph.value_indexes import (
    build_values,
    keep_values,
    kept_values,
    nodes_holding,
    value_index,
    verify_value_index,
)
from byokg.linking.grounding import LiteralGrounder
from byokg.linking.values import ValueLinker
from byokg.types import EntityId, Node, Triple, Value
from tests.graph.sparql_server import serving

OFFICERS = [
    Node(EntityId(f"o{at}"), f"{name} {surname}", "Officer", {"surname": surname, "calls": calls})
    for at, (name, surname, calls) in enumerate([("Ada", "Powell", 7), ("Eve", "Powell", 9), ("Ann", "Moore", 9)])
]
EDGES = [
    Triple(EntityId("o0"), "knows", EntityId("o1"), properties={"met": "Leeds Station", "year": 2001}),
    Triple(EntityId("o1"), "knows", EntityId("o2"), properties={"met": "Leeds Station"}),
    Triple(EntityId("o2"), "leads", EntityId("o0"), properties={"year": 2004}),
]


@pytest.fixture
def graph(tmp_path: Path) -> ColumnarGraph:
    ColumnarGraph.from_records(OFFICERS, EDGES).save(tmp_path / "graph")
    return ColumnarGraph.open(tmp_path / "graph")


@pytest.fixture
def endpoint(graph: ColumnarGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparqlEndpoint]:
    pyoxigraph = pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'byokg[sparql]'")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    held = pyoxigraph.Store()
    held.extend(graph_quads(graph))
    with serving(held) as served, SparqlEndpoint(served.url) as store:
        yield store


def test_a_server_gives_the_same_values(graph: ColumnarGraph, endpoint: SparqlEndpoint) -> None:
    index = value_index(endpoint)
    assert index.find("Powel")[:1] == value_index(graph).find("Powel")[:1]
    assert [(one.value, one.count) for one in index.values("Officer", "calls")] == [(9, 2), (7, 1)]
    found = nodes_holding(endpoint, "Officer", "surname", "Powell")
    assert sorted(node.name for node in endpoint.nodes(endpoint.ids(found))) == ["Ada Powell", "Eve Powell"]
    assert len(nodes_holding(endpoint, "Officer", "calls", 7)) == 1
    assert len(nodes_holding(endpoint, "", "surname", "Powell")) == 0


def test_values_of_a_server_are_read_once(endpoint: SparqlEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    first = value_index(endpoint)
    monkeypatch.setattr(SparqlEndpoint, "distinct_values", None)
    assert value_index(endpoint) is first
    with SparqlEndpoint(endpoint.name) as later:
        assert value_index(later).properties() == first.properties()


def test_a_read_that_was_cut_short_is_not_kept(
    endpoint: SparqlEndpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole = SparqlEndpoint.distinct_values

    def slow(store: SparqlEndpoint, type: str, property: str, most: int) -> object:
        if property == "calls":
            raise QueryTimeout(1.0)
        return whole(store, type, property, most)

    def interrupted(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(SparqlEndpoint, "distinct_values", interrupted)
    with pytest.raises(KeyboardInterrupt):
        value_index(endpoint)
    assert kept_values(endpoint) is None
    monkeypatch.setattr(SparqlEndpoint, "distinct_values", slow)
    part = value_index(endpoint)
    assert [one.property for one in part.properties()] == ["surname"]
    assert "the values of Officer.calls are not indexed" in caplog.text
    monkeypatch.setattr(SparqlEndpoint, "distinct_values", interrupted)
    assert value_index(endpoint) is part and kept_values(endpoint) is None
    monkeypatch.setattr(SparqlEndpoint, "distinct_values", whole)
    assert [one.property for one in keep_values(endpoint).properties()] == ["calls", "surname"]
    assert kept_values(endpoint) is not None


def test_a_property_with_more_values_than_are_read_is_not_whole(
    endpoint: SparqlEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_indexes, "_PREVIEW", 1)
    monkeypatch.setattr(value_indexes, "_READ", 1)
    found = value_index(endpoint).property("Officer", "surname")
    assert found is not None and not found.whole and found.distinct == 1


def test_reading_a_slow_server_ends(
    endpoint: SparqlEndpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(value_indexes, "_PATIENCE_S", -1.0)
    assert value_index(endpoint).properties() == ()
    assert "the values from Officer.calls on are not indexed" in caplog.text
    grounder = LiteralGrounder(endpoint)
    assert grounder.ground("cypher", "MATCH (o:Officer {calls: '7', surname: 'Powel'}) RETURN o") == []


def test_values_of_a_huge_graph_are_indexed_by_command_alone(
    graph: ColumnarGraph, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(value_indexes, "_MOST", 2)
    query = "MATCH (o:Officer {surname: 'Powel'}) RETURN o"
    assert len(value_index(graph)) == 0 and LiteralGrounder(graph).ground("cypher", query) == []
    assert ValueLinker(graph).find_mentions("Which officer is called Powel?") == ()
    assert f"index them once with: byokg graph names {graph.folder}" in caplog.text
    edges = "MATCH ()-[r:knows {met: 'Leeds Staton'}]->() RETURN r"
    assert len(value_index(graph, of_edges=True)) == 0 and LiteralGrounder(graph).ground("cypher", edges) == []
    build_values(graph)
    assert len(value_index(graph)) == 4 and len(LiteralGrounder(graph).ground("cypher", query)) == 1
    assert len(value_index(graph, of_edges=True)) == 3 and len(LiteralGrounder(graph).ground("cypher", edges)) == 1


def test_a_view_has_the_values_of_its_graph(graph: ColumnarGraph) -> None:
    view = PropertyView(graph)
    assert value_index(view).find("Moore") == value_index(graph).find("Moore")
    assert nodes_holding(view, "Officer", "surname", "Moore").tolist() == [2]


@pytest.mark.parametrize("value", ["abc", 7.5, 10**30, True, "", "9.5"])
def test_a_value_that_a_column_cannot_hold_has_no_nodes(graph: ColumnarGraph, value: Value) -> None:
    assert nodes_holding(graph, "Officer", "calls", value).tolist() == []
    assert nodes_holding(graph, "Officer", "surname", value).tolist() == []


def test_holders_are_of_the_type() -> None:
    types = [("Officer", "Person"), ("",), ("Person", "Officer")]
    nodes = [Node(EntityId(f"{at}"), "", type, {"calls": 7}, tuple(more)) for at, (type, *more) in enumerate(types)]
    graph = ColumnarGraph.from_records(nodes, [])
    found = {type: nodes_holding(graph, type, "calls", 7).tolist() for type in ("Officer", "Person", "", "Dog")}
    assert found == {"Officer": [0, 2], "Person": [0, 2], "": [1], "Dog": []}
    assert nodes_holding(graph, "Officer", "calls", "7", 1).tolist() == [0]


def test_a_graph_without_properties_has_no_index(tmp_path: Path) -> None:
    ColumnarGraph.from_triples([("a", "r", "b")]).save(tmp_path / "graph")
    bare = ColumnarGraph.open(tmp_path / "graph")
    assert [index.properties() for index in build_values(bare)] == [(), ()]
    assert verify_value_index(bare) is None and not (tmp_path / "graph" / "values").exists()


def test_facts_of_a_saved_index(graph: ColumnarGraph) -> None:
    build_values(graph)
    facts = verify_value_index(graph)
    assert facts is not None and (facts.entries, len(facts.properties)) == (7, 5)
    places = {(one.type, one.property, one.nodes, one.coverage) for one in facts.properties if one.edge}
    assert places == {("knows", "met", 2, 1.0), ("knows", "year", 1, 0.5), ("leads", "year", 1, 1.0)}


def test_values_of_edges_are_found_in_a_saved_index_and_without_one(graph: ColumnarGraph) -> None:
    made = value_index(graph, of_edges=True)
    _, built = build_values(graph)
    opened = value_index(graph, of_edges=True)
    assert opened is not made and made.properties() == built.properties() == opened.properties()
    for index in (made, built, opened):
        (match,) = index.find("Leeds Staton")
        assert (str(match), match.count, match.edge) == ("met = Leeds Station (on knows edges)", 2, True)
    assert graph.folder is not None
    shutil.rmtree(graph.folder / "edge_values")
    facts = verify_value_index(ColumnarGraph.open(graph.folder))
    assert facts is not None and facts.entries == 4
    assert len(value_index(ColumnarGraph.open(graph.folder), of_edges=True)) == 3


def test_a_damaged_index_of_values_of_edges_is_named(graph: ColumnarGraph) -> None:
    build_values(graph)
    assert graph.folder is not None
    files = (path for path in (graph.folder / "edge_values").rglob("*") if path.suffix != ".json" and path.is_file())
    largest = max(files, key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-1] + b"!")
    with pytest.raises(GraphCorrupt, match="edge_values"):
        verify_value_index(graph)


def test_values_of_nodes_and_edges_are_linked_together_equal_ones_alone(graph: ColumnarGraph) -> None:
    linker = ValueLinker(graph, edges=True)
    assert [str(one) for one in linker.link_text("Leeds Staton")] == ["met = Leeds Station (on knows edges)"]
    assert [str(one) for one in linker.link_text("Moore")] == ["surname = Moore (Officer)"]
    assert linker.link_text("2004", types=["knows"]) == ()
    assert ValueLinker(graph).link_text("Leeds Staton") == ()


def test_values_of_edges_are_not_read_from_sparql(endpoint: SparqlEndpoint) -> None:
    assert value_index(endpoint, of_edges=True).properties() == ()
    assert keep_values(endpoint, of_edges=True).properties() == ()
