"""Fuseki, Virtuoso and Oxigraph keep the contract of stores, and give what the same graph in files gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from byokg.errors import QueryInvalid, QueryTimeout
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.exporter import copy_graph
from byokg.graph.name_indexes import keep_names, kept_names
from byokg.graph.pathql.evaluate import paths
from byokg.graph.rdf.terms import FREEBASE
from byokg.graph.read_cache import SchemaCache
from byokg.graph.servers.sparql import EndpointClient, SparqlEndpoint
from byokg.graph.store import Direction, QueryLimits
from byokg.graph.traversal import triples
from byokg.linking.entities import EntityLinker
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from byokg.types import EntityId, Mention, Question
from tests.graph.contract import GraphStoreContract, Make, edge, node
from tests.graph.genuine_servers import PATIENCE_S, RdfServer, refused_while_silent, started, waits_for_a_restart
from tests.graph.served_contract import Hold, Holding, Served, ServedContract

pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'byokg[sparql]'")


@pytest.fixture(scope="module", params=["fuseki", "virtuoso", "oxigraph"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RdfServer]:
    folder = tmp_path_factory.mktemp(request.param)
    with started(request.param, folder) as genuine:
        yield RdfServer(genuine)


class TestContract(GraphStoreContract):
    holds_undirected = False

    @pytest.fixture
    def make(self, server: RdfServer) -> Iterator[Make]:
        opened: list[SparqlEndpoint] = []

        def start(nodes, edges):  # type: ignore[no-untyped-def]
            server.fill(nodes, edges)
            opened.append(SparqlEndpoint(server.address))
            return opened[-1]

        yield start
        for store in opened:
            store.close()

    @pytest.fixture(autouse=True)
    def keeps_ids(self, request: pytest.FixtureRequest, server: RdfServer) -> None:
        if server.kind == "virtuoso" and "any_character_may_stand_in_an_id" in request.node.name:
            pytest.skip("Virtuoso keeps no IRI of some thousand characters")


class TestServed(ServedContract):
    rdf = True

    @pytest.fixture(scope="class")
    @classmethod
    def hold(cls, server: RdfServer) -> Hold:
        def hold(name: str, holding: Holding) -> Served:
            server.load(holding.lines)
            return Served(name, holding.graph, f"sparql+{server.address}", {}, server.content)

        return hold


#   Bieber -nationality-> Canada <-nationality- Twain; Bieber is of the notable type Artist
FREEBASE_TRIPLES = [
    ("m.01", "people.person.nationality", "m.02"),
    ("m.03", "people.person.nationality", "m.02"),
    ("m.01", "common.topic.notable_types", "m.04"),
]
NAMES = {"m.01": "Justin Bieber", "m.02": "Canada", "m.03": "Shania Twain", "m.04": "Artist"}


@pytest.fixture(scope="module")
def freebase(server: RdfServer) -> Iterator[SparqlEndpoint]:
    lines = [f"<{FREEBASE}{head}> <{FREEBASE}{rel}> <{FREEBASE}{tail}> .\n" for head, rel, tail in FREEBASE_TRIPLES]
    lines += [f'<{FREEBASE}{mid}> <{FREEBASE}type.object.name> "{name}"@en .\n' for mid, name in NAMES.items()]
    lines += [f'<{FREEBASE}m.01> <{FREEBASE}common.topic.alias> "Bieber the Kid"@en .\n']
    server.load(lines)
    with SparqlEndpoint(server.address) as store:
        yield store


def test_freebase_is_read_by_its_own_vocabulary(freebase: SparqlEndpoint) -> None:
    bieber, canada = (EntityId(FREEBASE + mid) for mid in ("m.01", "m.02"))
    found = {found.id: found for found in freebase.nodes([bieber, canada])}
    assert (found[bieber].name, found[bieber].type) == ("Justin Bieber", "Artist")
    assert (found[canada].name, found[canada].type) == ("Canada", "")
    schema = freebase.schema()
    assert schema.node_types == {"": 3, "Artist": 1}
    assert {each.name: (each.count, each.domain, each.range) for each in schema.relations} == {
        "fb:common.topic.notable_types": (1, ("Artist",), ("",)),
        "fb:people.person.nationality": (2, ("", "Artist"), ("",)),
    }
    assert (freebase.node_count, freebase.edge_count) == (4, 3)


def test_counts_and_edges_are_those_of_the_same_graph_in_files(freebase: SparqlEndpoint) -> None:
    graph = copy_graph(freebase)
    assert (graph.node_count, graph.edge_count) == (4, 3)
    ids = list(graph.entities())
    for store in (freebase, graph):
        counts = store.relation_counts(store.numbers(ids))
        labels = [store.relations[number] for number in counts.relation.tolist()]
        shown = sorted(zip(counts.origin.tolist(), labels, counts.inverse.tolist(), counts.count.tolist(), strict=True))
        assert shown == [
            (ids.index(EntityId(FREEBASE + mid)), f"fb:{relation}", inverse, count)
            for mid, relation, inverse, count in sorted(
                [
                    ("m.01", "common.topic.notable_types", False, 1),
                    ("m.01", "people.person.nationality", False, 1),
                    ("m.02", "people.person.nationality", True, 2),
                    ("m.03", "people.person.nationality", False, 1),
                    ("m.04", "common.topic.notable_types", True, 1),
                ]
            )
        ]
        walked = triples(store, store.edges(store.numbers(ids), Direction.OUT))
        assert {(each.head, each.tail) for each in walked} == {
            (FREEBASE + head, FREEBASE + tail) for head, _, tail in FREEBASE_TRIPLES
        }
    assert isinstance(graph, ColumnarGraph) and graph.nodes(ids) == freebase.nodes(ids)


def test_names_are_asked_for_as_spelt_and_misspelt_ones_found_among_those_kept(
    freebase: SparqlEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    linker = EntityLinker(freebase)
    assert [found.name for found in linker.candidates(Mention("Shania Twain"))] == ["Shania Twain"]
    assert kept_names(freebase) is None  # nothing was read for that
    assert linker.candidates(Mention("Bieber the Kid"))[0].id == FREEBASE + "m.01"
    assert len(keep_names(freebase)) == 5
    assert EntityLinker(freebase).candidates(Mention("Shanai Twain"))[0].name == "Shania Twain"


def test_a_question_that_names_its_entity_waits_for_no_schema(
    server: RdfServer, freebase: SparqlEndpoint, tmp_path: Path
) -> None:
    question = Question("q", "What is the nationality of Shania Twain?", (EntityId(FREEBASE + "m.03"),))
    for _ in range(2):  # relations are listed, then found in the cache
        with SparqlEndpoint(server.address) as store:
            store.keep_schema(SchemaCache(tmp_path))
            answer = offline_pipeline(Parts(store)).run(question)
            assert [item.name for item in answer.items] == ["Canada"]
            assert not store.holds_schema()
            assert sorted(store.relations) == ["fb:common.topic.notable_types", "fb:people.person.nationality"]
    with SparqlEndpoint(server.address) as store:
        store.keep_schema(SchemaCache(tmp_path))
        assert len(store.relations) == 2
        asked = store.schema()
    with SparqlEndpoint(server.address) as store:
        store.keep_schema(SchemaCache(tmp_path))
        store.numbers([EntityId(FREEBASE + "m.03")])
        assert store.schema() == asked  # which was kept


@pytest.mark.parametrize(("text", "truth"), [("ASK { ?s ?p ?o }", True), ("ASK { ?s <urn:never> ?o }", False)])
def test_an_ask_has_one_answer(freebase: SparqlEndpoint, text: str, truth: bool) -> None:
    assert freebase.run(text).rows == ((truth,),)


def test_a_mistake_in_a_query_is_not_an_absent_server(freebase: SparqlEndpoint) -> None:
    with pytest.raises(QueryInvalid):
        freebase.run('SELECT (STRLEN("a", "b") AS ?x) { }')


def test_many_nodes_come_whole_whatever_the_server_cuts_off(server: RdfServer) -> None:
    count = 12_000  # Virtuoso gives 10,000 rows at most
    nodes = [node("hub"), *(node(f"n{number}") for number in range(count))]
    server.fill(nodes, [*(edge("hub", "to", other.id) for other in nodes[1:]), edge("n0", "back", "hub")])
    with SparqlEndpoint(server.address) as store:
        assert len(list(store.entities())) == count + 1
        assert len(store.edges(store.numbers([EntityId("hub")]), Direction.OUT)) == count
        assert store.relation_counts(store.numbers([EntityId("hub")])).count.tolist() == [count, 1]
        assert np.unique(store.numbers([EntityId("n0"), EntityId("hub")])).size == 2
        assert node("hub") == store.nodes([EntityId("hub")])[0]
        limits = QueryLimits(max_rows=20_000)
        for text in (
            "CONSTRUCT { ?x kg:to ?z } WHERE { ?x kg:to ?y BIND(STR(?y) AS ?z) }",
            "SELECT (STR(?y) AS ?z) { ?x kg:to ?y } ORDER BY ?y",
        ):
            answer = store.run(text, limits=limits)
            assert (len(answer.rows) == count) is not answer.truncated, text


def test_far_nodes_of_paths_are_found_by_a_property_path(server: RdfServer, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = [edge(f"c{number}", "next", f"c{number + 1}") for number in range(30)]
    edges = [*chain, edge("c30", "it's odd", "c0"), edge("c12", "next", "c3"), edge("a", "next", "c5", since=1990)]
    edges.append(edge("a", "other", "c0"))
    nodes = [node(name) for name in ["a", *(f"c{number}" for number in range(31))]]
    server.fill(nodes, edges)
    graph = ColumnarGraph.from_records(nodes, edges)
    asked: list[str] = []
    ask = EndpointClient._ask

    def recorded(self: EndpointClient, text: str, *more: object, **named: object) -> object:
        asked.append(text)
        return ask(self, text, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(EndpointClient, "_ask", recorded)
    for query in (
        "PATHS START ?x = :c0 END ?y VIA :next",
        "PATHS ANY SHORTEST START ?x END ?y = :c30 VIA :next",
        "PATHS START ?x = :c9 END ?y VIA UNDIRECTED :next",
        "PATHS START ?x = :c9 END ?y VIA :next|<it's odd>",
    ):
        with SparqlEndpoint(server.address) as store:
            found = sorted(path.nodes for path in paths(store, query))
        assert found == sorted(path.nodes for path in paths(graph, query)), query
        assert len([text for text in asked if ")+ ?m" in text]) == 1
        asked.clear()


ENDLESS = "SELECT (COUNT(*) AS ?n) { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f . ?g ?s ?h FILTER(STR(?b) < STR(?h)) }"


def test_a_query_that_runs_away_ends_in_time_and_the_server_is_seen_to_stop(server: RdfServer) -> None:
    nodes = [node(f"n{number}") for number in range(300)]
    server.fill(nodes, [edge(one.id, "to", other.id) for one in nodes[:10] for other in nodes])
    with SparqlEndpoint(server.address) as store:
        with pytest.raises(QueryTimeout):
            store.run(ENDLESS, limits=QueryLimits(timeout_s=2))
        limits = QueryLimits(timeout_s=PATIENCE_S)
        assert store.run("SELECT ?s { ?s kg:to ?o } LIMIT 1", limits=limits).rows
    if server.kind == "oxigraph":
        pytest.skip("Oxigraph's server is told no time limit by a request: start it with --timeout-s")
    assert server.genuine.rests(PATIENCE_S)


def test_a_server_that_says_nothing_is_given_up_within_the_limit(server: RdfServer) -> None:
    server.fill([node("a"), node("b")], [edge("a", "to", "b")])
    with SparqlEndpoint(server.address, timeout_s=2.0) as store:
        text, limits = "SELECT ?o { ?s kg:to ?o }", QueryLimits(timeout_s=2)
        number = store.numbers([EntityId("a")])
        for ask in (lambda: store.run(text, limits=limits), lambda: store.edges(number), lambda: store.schema()):
            assert refused_while_silent(server.genuine, ask) < PATIENCE_S / 5
        assert len(store.run(text, limits=QueryLimits(timeout_s=PATIENCE_S)).rows) == 1


def test_a_server_that_is_started_again_is_waited_for(server: RdfServer) -> None:
    server.fill([node("a"), node("b")], [edge("a", "to", "b")])
    server.keep()
    with SparqlEndpoint(server.address, timeout_s=PATIENCE_S) as store:
        number = store.numbers([EntityId("a")])
        found = waits_for_a_restart(server.genuine, lambda: store.edges(number, Direction.OUT))
        assert [each.tail for each in triples(store, found)] == ["b"]
        limits = QueryLimits(timeout_s=PATIENCE_S)
        rows = waits_for_a_restart(server.genuine, lambda: store.run("SELECT ?o { ?s kg:to ?o }", limits=limits)).rows
        assert len(rows) == 1
