"""A remote endpoint keeps both protocols' promises, also when it is slow, busy, broken, or cuts its answers.

The endpoint is pyoxigraph behind the SPARQL protocol, on loopback: a real engine behind a real protocol.
"""

from __future__ import annotations

import base64
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import numpy as np
import pytest

from byokg.errors import (
    ConfigError,
    EntityNotFound,
    QueryInvalid,
    QueryRefused,
    QueryTimeout,
    QueryTooLarge,
    StoreUnavailable,
)
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.paths import follow
from byokg.graph.rdf.files import graph_quads
from byokg.graph.servers import sparql_text
from byokg.graph.servers.sparql import PASSWORD, TOKEN, USER, EndpointClient, SparqlEndpoint
from byokg.graph.servers.sparql_reads import _divided
from byokg.graph.store import Direction, QueryLimits
from byokg.types import EntityId, Node, NodeCell, Triple
from tests.graph.contract import GraphStoreContract, Make, edge, ids, node
from tests.graph.engines.test_oxigraph import SparqlContract
from tests.graph.sparql_server import JSON, Endpoint, Fault, Handler, serving

pyoxigraph = pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'byokg[sparql]'")

Serve = Callable[..., Endpoint]
Connect = Callable[..., SparqlEndpoint]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start endpoints over nodes and edges, or over Turtle."""

    def start(nodes: Sequence[Node] = (), edges: Sequence[Triple] = (), turtle: str = "") -> Endpoint:
        store = pyoxigraph.Store()
        store.extend(graph_quads(ColumnarGraph.from_records(nodes, edges)))
        if turtle:
            store.load(turtle, pyoxigraph.RdfFormat.TRIG)
        return servers.enter_context(serving(store))

    with ExitStack() as servers:
        yield start


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Iterator[Connect]:
    """Open stores on endpoints, without credentials unless a test sets them."""
    for name in (TOKEN, USER, PASSWORD):
        monkeypatch.delenv(name, raising=False)
    stores = []

    def make(endpoint: Endpoint, **settings: Any) -> SparqlEndpoint:
        stores.append(SparqlEndpoint(endpoint.url, **settings))
        return stores[-1]

    yield make
    for store in stores:
        store.close()


class TestEndpointKeepsTheContracts(SparqlContract):
    @pytest.fixture
    def make(self, serve: Serve, connect: Connect) -> Make:
        return lambda nodes, edges: connect(serve(nodes, edges))

    def test_a_query_that_runs_away_is_stopped_and_the_next_one_works(self, serve: Serve, connect: Connect) -> None:  # type: ignore[override]
        # Differs: the engine is the server's, and nothing but its own limit could stop it. We stop waiting.
        endpoint = serve([node("a")])
        store = connect(endpoint)
        for _ in range(2):
            endpoint.faults.append(hang(5))
            with pytest.raises(QueryTimeout, match=r"0\.5 s"):
                store.run(self.queries.names(), limits=QueryLimits(timeout_s=0.5))
            assert store.run(self.queries.names()).rows == (("a",),)


class TestEndpointThatCutsEveryAnswer(GraphStoreContract):
    """Three rows at most, whatever is asked, and nothing says so: the traversal must not notice."""

    holds_undirected = False

    @pytest.fixture
    def make(self, serve: Serve, connect: Connect) -> Make:
        def start(nodes: Sequence[Node], edges: Sequence[Triple]) -> SparqlEndpoint:
            endpoint = serve(nodes, edges)
            endpoint.cut_at = 3
            return connect(endpoint)

        return start


# Faults


def hang(seconds: float) -> Fault:
    def fault(handler: Handler) -> None:
        time.sleep(seconds)
        handler.close_connection = True

    return fault


def drop(handler: Handler) -> None:
    """Close the connection in the middle of an answer."""
    handler.send_response(200)
    handler.send_header("Content-Type", JSON)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"head": {"vars": ["n"]}, "results"')
    handler.wfile.flush()
    handler.close_connection = True


def drip(handler: Handler) -> None:
    """Send one byte now and then, for longer than anybody waits."""
    handler.send_response(200)
    handler.send_header("Content-Type", JSON)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    with suppress(OSError):
        for _ in range(1000):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.02)


def answers(status: int, kind: str = "text/plain", body: str = "", **headers: str) -> Fault:
    return lambda handler: handler.reply(status, kind, body.encode(), **headers)


NAMES = "SELECT ?name WHERE { ?n rdfs:label ?name } ORDER BY ?name"


@pytest.fixture
def endpoint(serve: Serve) -> Endpoint:
    #   a -r-> b
    return serve([node("a"), node("b")], [edge("a", "r", "b")])


def test_a_busy_endpoint_is_asked_again_after_as_long_as_it_says(endpoint: Endpoint, connect: Connect) -> None:
    store = connect(endpoint)
    endpoint.faults += [answers(429, Retry_After="1"), answers(503, Retry_After="0")]
    assert list(store.entities()) == ["a", "b"]
    first, second, third = endpoint.requests[:3]
    assert first.query == second.query == third.query
    assert second.arrived - first.arrived >= 1.0


def test_retry_after_may_be_a_date(endpoint: Endpoint, connect: Connect) -> None:
    moment = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    endpoint.faults.append(answers(503, Retry_After=moment))
    assert list(connect(endpoint).entities()) == ["a", "b"]
    first, second = endpoint.requests[:2]
    assert second.arrived - first.arrived > 0.5


def test_an_endpoint_that_stays_busy_is_given_up_with_its_status(endpoint: Endpoint, connect: Connect) -> None:
    endpoint.faults += [answers(503, Retry_After="0")] * 3
    with pytest.raises(StoreUnavailable, match="HTTP 503") as caught:
        connect(endpoint, attempts=3).numbers(ids("a"))
    assert caught.value.retryable
    assert len(endpoint.requests) == 3


def test_an_endpoint_that_wants_us_away_for_long_is_not_waited_for(endpoint: Endpoint, connect: Connect) -> None:
    endpoint.faults.append(answers(429, Retry_After="3600"))
    with pytest.raises(StoreUnavailable, match="3600 s"):
        connect(endpoint).numbers(ids("a"))


def test_a_users_query_waits_no_longer_than_its_limit_for_a_busy_endpoint(endpoint: Endpoint, connect: Connect) -> None:
    endpoint.faults.append(answers(429, Retry_After="30"))
    with pytest.raises(StoreUnavailable, match="429"):
        connect(endpoint).run(NAMES, limits=QueryLimits(timeout_s=2))


@pytest.mark.parametrize("fault", [drop, answers(200, JSON, '{"head": {"vars": ["n"]}, "resu')])
def test_a_reply_that_breaks_off_is_asked_for_again(endpoint: Endpoint, connect: Connect, fault: Fault) -> None:
    endpoint.faults.append(fault)
    assert connect(endpoint).run(NAMES).rows == (("a",), ("b",))


def test_replies_that_always_break_off_end_as_unavailable(endpoint: Endpoint, connect: Connect) -> None:
    endpoint.faults += [drop] * 2
    with pytest.raises(StoreUnavailable, match="connection broke"):
        connect(endpoint, attempts=2).run(NAMES)


@pytest.mark.parametrize("fault", [hang(8), drip])
def test_a_slow_endpoint_ends_as_timeout_however_it_is_slow(endpoint: Endpoint, connect: Connect, fault: Fault) -> None:
    store = connect(endpoint)
    endpoint.faults.append(fault)
    started = time.monotonic()
    with pytest.raises(QueryTimeout, match=r"0\.5 s"):
        store.run(NAMES, limits=QueryLimits(timeout_s=0.5))
    assert time.monotonic() - started < 7
    assert store.run(NAMES).rows == (("a",), ("b",))


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (answers(200, "text/html", "<html><h1>Welcome</h1></html>"), StoreUnavailable, "text/html.*Welcome"),
        (answers(200, "text/csv", "n\na\n"), StoreUnavailable, "text/csv"),
        (answers(200, JSON, "[1, 2]"), StoreUnavailable, "results format"),
        (answers(200, JSON, '{"head": {"vars": ["n"]}, "results": {"bindings": [{"n": 1}]}}'), StoreUnavailable,
         "results format"),
        (answers(500, "text/plain", "Virtuoso 42000 Error The estimated execution time 4000 (sec) exceeds the limit"),
         QueryTimeout, "5 s"),
        (answers(500, "text/plain", "java.util.concurrent.TimeoutException"), QueryTimeout, "5 s"),
        (answers(500, "text/html", "<b>out of cheese</b>"), StoreUnavailable, "HTTP 500: out of cheese"),
        (answers(504, "text/html", "gateway"), QueryTimeout, "5 s"),
        (answers(404, "text/plain", "nothing here"), StoreUnavailable, "HTTP 404"),
        (answers(403, "text/plain", "no"), StoreUnavailable, USER),
        (answers(413, "text/plain", "no"), QueryTooLarge, "too large"),
        (answers(301, "text/plain", "", Location="https://u:secret@elsewhere.org/q?key=secret"), StoreUnavailable,
         "moved to 'https://elsewhere.org/q'"),
    ],
)  # fmt: skip
def test_every_other_failure_is_one_of_ours(
    endpoint: Endpoint, connect: Connect, fault: Fault, error: type[Exception], words: str
) -> None:
    endpoint.faults.append(fault)
    with pytest.raises(error, match=words):
        connect(endpoint).run(NAMES, limits=QueryLimits(timeout_s=5))
    assert len(endpoint.requests) == 1


def test_an_endpoint_that_starts_again_is_waited_for(serve: Serve, connect: Connect) -> None:
    endpoint = serve([node("a")])
    store = connect(endpoint, attempts=1)
    assert store.run(NAMES).rows == (("a",),)
    client = store._client
    assert isinstance(client, EndpointClient)
    away = client._url
    client._url = "http://127.0.0.1:9/sparql"
    threading.Timer(0.3, lambda: setattr(client, "_url", away)).start()
    assert store.run(NAMES).rows == (("a",),)


def test_nobody_there_is_unavailable(connect: Connect) -> None:
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1.*no connection"):
        connect(Endpoint(None, url="http://127.0.0.1:9/sparql"), attempts=2).numbers(ids("a"))


def test_a_query_the_endpoint_does_not_understand_is_invalid(endpoint: Endpoint, connect: Connect) -> None:
    with pytest.raises(QueryInvalid, match="does not understand"):
        connect(endpoint).run("SELECT ?n WHERE { ?n unheard:of ?m }")


def test_a_service_call_never_leaves(endpoint: Endpoint, connect: Connect) -> None:
    with pytest.raises(QueryRefused):
        connect(endpoint).run("SELECT * WHERE { SERVICE <http://127.0.0.1:9/x> { ?s ?p ?o } }")
    assert endpoint.requests == []


def test_a_reply_beyond_the_size_allowed_is_refused(serve: Serve, connect: Connect) -> None:
    endpoint = serve([Node(EntityId(str(number)), "x" * 10_000) for number in range(200)])
    with pytest.raises(QueryTooLarge, match="1 MB"):
        connect(endpoint, reply_mb=1).run(NAMES)


# What is sent


def test_short_queries_go_by_get_and_long_ones_by_post(serve: Serve, connect: Connect) -> None:
    names = [f"node number {number}" for number in range(100)]
    endpoint = serve([node(name) for name in names])
    store = connect(endpoint)
    store.run(NAMES)
    assert endpoint.requests[0].method == "GET"
    store.numbers(ids(*names))
    assert endpoint.requests[-1].method == "POST"


def test_we_say_who_we_are_and_what_we_take(endpoint: Endpoint, connect: Connect) -> None:
    connect(endpoint).run(NAMES)
    headers = endpoint.requests[0].headers
    assert headers["user-agent"].startswith("byokg/")
    assert headers["accept"].startswith(JSON)
    connect(endpoint, user_agent="me@example.org").run(NAMES)
    assert endpoint.requests[-1].headers["user-agent"] == "me@example.org"


def test_named_graphs_can_be_read_as_the_default_graph(serve: Serve, connect: Connect) -> None:
    endpoint = serve(turtle="GRAPH <http://x/g> { <http://x/a> <http://x/r> <http://x/b> }")
    assert list(connect(endpoint).entities()) == []
    store = connect(endpoint, default_graphs=["http://x/g"])
    assert list(store.entities()) == ["http://x/a", "http://x/b"]
    assert endpoint.requests[-1].graphs == ("http://x/g",)


@pytest.mark.parametrize(
    ("variables", "header"),
    [
        ({TOKEN: "t0k3n"}, "Bearer t0k3n"),
        ({USER: "ann", PASSWORD: "s3cret"}, "Basic " + base64.b64encode(b"ann:s3cret").decode()),
    ],
)
def test_credentials_come_from_the_environment(
    endpoint: Endpoint, connect: Connect, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], header: str
) -> None:
    endpoint.password = header
    with pytest.raises(StoreUnavailable, match=TOKEN):
        connect(endpoint).run(NAMES)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert connect(endpoint).run(NAMES).rows == (("a",), ("b",))


def test_credentials_in_an_address_or_in_the_clear_are_refused_and_not_repeated(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError) as caught:
        SparqlEndpoint("https://ann:s3cret@example.org/sparql")
    assert "s3cret" not in str(caught.value) and "example.org" in str(caught.value)
    monkeypatch.setenv(TOKEN, "t0k3n")
    with pytest.raises(ConfigError, match="unencrypted") as caught:
        SparqlEndpoint("http://example.org/sparql")
    assert "t0k3n" not in str(caught.value)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="https://"):
        SparqlEndpoint("bolt://example.org")


def test_an_address_may_say_that_it_is_sparql(endpoint: Endpoint, connect: Connect) -> None:
    endpoint.url = f"sparql+{endpoint.url}"
    assert connect(endpoint).run(NAMES).rows == (("a",), ("b",))


# Batches and cut answers


def test_a_hop_over_many_nodes_is_one_request(serve: Serve, connect: Connect) -> None:
    #   a -r-> n0 … n299, each n -s-> z
    names = [f"n{number:03}" for number in range(300)]
    edges = [edge("a", "r", name) for name in names] + [edge(name, "s", "z") for name in names]
    endpoint = serve([node(name) for name in ["a", "z", *names]], edges)
    store = connect(endpoint)
    assert len(store.relations) == 2
    store.edges(store.numbers(ids("z", *names)), Direction.IN)  # the biggest answer is checked against a count, once
    before = len(endpoint.requests)
    walks = follow(store, ids("a"), ["r", "s"])
    assert store.ids(walks.ends) == ["z"]
    assert walks.counts.tolist() == [300]
    assert len(endpoint.requests) - before == 2


def test_cut_answers_are_noticed_and_completed(serve: Serve, connect: Connect) -> None:
    # a hub with 50 edges and 30 nodes with 3 each, behind an endpoint that never gives more than 7 rows
    names = [f"n{number:02}" for number in range(50)]
    edges = [edge("hub", "r", name) for name in names]
    edges += [edge(name, f"s{number}", "z") for name in names[:30] for number in range(3)]
    endpoint = serve([node(name) for name in ["hub", "z", *names]], edges)
    endpoint.cut_at = 7
    store = connect(endpoint)
    assert len(list(store.entities())) == 52
    assert len(store.edges(store.numbers(ids("hub")), Direction.OUT)) == 50
    assert len(store.edges(store.numbers(ids(*names)), Direction.OUT)) == 90
    assert len(store.edges(store.numbers(ids("z")))) == 90
    assert [found.name for found in store.nodes(ids(*names))] == names
    assert {relation.name: relation.count for relation in store.schema().relations} == {
        "r": 50, "s0": 30, "s1": 30, "s2": 30
    }  # fmt: skip


def test_a_users_answer_that_is_cut_says_so_once_the_limit_is_known(serve: Serve, connect: Connect) -> None:
    endpoint = serve([node(name) for name in "abcdefgh"])
    endpoint.cut_at = 5
    store = connect(endpoint)
    assert len(list(store.entities())) == 8
    answer = store.run(NAMES)
    assert (len(answer), answer.truncated) == (5, True)


def test_an_answer_marked_as_partial_is_truncated(endpoint: Endpoint, connect: Connect) -> None:
    body = '{"head": {"vars": ["name"]}, "results": {"bindings": [{"name": {"type": "literal", "value": "a"}}]}}'
    store = connect(endpoint)
    store.numbers(ids("a"))
    endpoint.faults.append(answers(200, JSON, body, X_SQL_State="S1TAT"))
    assert store.run(NAMES).truncated


def test_an_answer_interrupted_before_its_first_row_is_no_answer(endpoint: Endpoint, connect: Connect) -> None:
    body = '{"head": {"vars": ["name"]}, "results": {"bindings": []}}'
    store = connect(endpoint)
    store.numbers(ids("a"))
    endpoint.faults.append(answers(200, JSON, body, X_SQL_State="S1TAT"))
    with pytest.raises(QueryTimeout):
        store.run(NAMES)


def test_a_schema_that_takes_too_long_is_sampled(endpoint: Endpoint, connect: Connect) -> None:
    store = connect(endpoint)
    store.numbers(ids("a"))
    endpoint.faults.append(answers(500, body="query timed out"))
    assert [(relation.name, relation.count) for relation in store.schema().relations] == [("r", 1)]
    assert "LIMIT 100000" in endpoint.requests[-1].query


# RDF that we did not write

TURTLE = """
@prefix ex: <http://example.org/ontology/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
<http://example.org/Paris> a owl:Thing, ex:City ; rdfs:label "Parigi"@it, "Paris"@en ; ex:people 2100000 ;
  ex:motto "Fluctuat"@la, "It floats"@en ; ex:capital_of <http://example.org/France> ; ex:mayor [ ex:since 2014 ] .
<http://example.org/New_York> ex:twin <http://example.org/Paris> .
"""


def test_names_types_and_properties_are_read_from_any_vocabulary(serve: Serve, connect: Connect) -> None:
    store = connect(serve(turtle=TURTLE))
    paris, york, france = ids("http://example.org/Paris", "http://example.org/New_York", "http://example.org/France")
    assert store.nodes([paris, york]) == [
        Node(paris, "Paris", "City", {
            "ontology:motto": "It floats",
            "ontology:motto[]": '"Fluctuat"@la, "It floats"@en',
            "ontology:people": 2100000,
            "rdfs:label[]": '"Parigi"@it, "Paris"@en',
        }),
        Node(york, "New York"),
    ]  # fmt: skip
    assert list(store.entities()) == [paris, york, france]
    assert list(store.relations) == ["ontology:capital_of", "ontology:twin"]
    walks = follow(store, [york], ["ontology:twin", "ontology:capital_of"])
    assert store.ids(walks.ends) == [france]


def test_only_wanted_languages_are_read(serve: Serve, connect: Connect) -> None:
    store = connect(serve(turtle=TURTLE), languages=["IT"])
    (paris,) = store.nodes(ids("http://example.org/Paris"))
    assert (paris.name, dict(paris.properties)) == ("Parigi", {"ontology:people": 2100000})


def test_relations_and_classes_come_as_labels_and_everything_else_as_nodes(serve: Serve, connect: Connect) -> None:
    store = connect(serve(turtle=TURTLE))
    answer = store.run("SELECT ?p ?o WHERE { <http://example.org/New_York> ?p ?o }")
    ((label, cell),) = answer.rows
    assert label == "ontology:twin"
    assert isinstance(cell, NodeCell) and (cell.id, cell.name, cell.type) == (
        "http://example.org/Paris",
        "Paris",
        "City",
    )
    assert store.run("SELECT ?t WHERE { ?s a ?t FILTER(?t != owl:Thing) }").rows == (("ontology:City",),)


def test_a_class_is_no_node(serve: Serve, connect: Connect) -> None:
    with pytest.raises(EntityNotFound):
        connect(serve(turtle=TURTLE)).numbers(ids("http://example.org/ontology/City"))


def test_numbers_are_given_out_as_nodes_are_met_and_stay(serve: Serve, connect: Connect) -> None:
    store = connect(serve(turtle=TURTLE))
    york = store.numbers(ids("http://example.org/New_York"))
    assert york.tolist() == [0]
    assert store.edges(york).other.tolist() == [1]
    assert store.ids(np.array([1, 0])) == ids("http://example.org/Paris", "http://example.org/New_York")
    with pytest.raises(EntityNotFound, match="number 9"):
        store.ids(np.array([9]))


def test_threads_share_one_numbering(serve: Serve, connect: Connect) -> None:
    names = [f"n{number:02}" for number in range(40)]
    store = connect(serve([node(name) for name in names], [edge(a, "r", b) for a, b in itertools.pairwise(names)]))
    found: list[list[EntityId]] = []

    def walk() -> None:
        found.append(store.ids(follow(store, ids("n00"), ["r"] * 20).ends))

    threads = [threading.Thread(target=walk) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [["n20"]] * 8


def test_virtuoso_is_told_how_to_look_up_nodes_and_no_other_server_is(endpoint: Endpoint, connect: Connect) -> None:
    told, word = sparql_text.VIRTUOSO, ("http://example.org/p",)
    words = sparql_text.NamePredicates(word, (), word)
    for pattern in (
        sparql_text.describe(word, words, None, told),
        sparql_text.grouped_edges(word, Direction.BOTH, None, told),
        sparql_text.edges(word, Direction.BOTH, None, True, told),
        sparql_text.touching_counts(word, False, told),
        sparql_text.met(word, words, None, told),
    ):
        assert told.by_head in pattern and "?given) { (<http://example.org/p> 1) }" in pattern
        assert sparql_text.select("?n", pattern).startswith('DEFINE sql:select-option "order" SELECT')
        assert sparql_text.count(pattern).startswith('DEFINE sql:select-option "order" SELECT')
    named = sparql_text.called([told.by_head], word, ["en"])  # somebody may call a node so
    assert sparql_text.select("?n", named).startswith("SELECT")
    store = connect(endpoint)
    store.edges(store.numbers(ids("a")))
    store.nodes(ids("a"))
    assert not any("OPTION" in request.query or "DEFINE" in request.query for request in endpoint.requests)


def test_an_answer_that_oxigraph_gave_up_is_one_that_took_too_long(endpoint: Endpoint, connect: Connect) -> None:
    body = '{"head":{"vars":["n"]},"results":{"bindings":[The SPARQL operation has been cancelled'
    store = connect(endpoint)
    store.numbers(ids("a"))
    endpoint.faults.append(answers(200, JSON, body))
    with pytest.raises(QueryTimeout):
        store.run(NAMES)


def test_counting_rows_uses_a_variable_of_its_own() -> None:
    # Apache Jena refuses (COUNT(*) AS ?count) over a pattern that has a ?count.
    for where in (sparql_text.relation_counts(100, False), sparql_text.predicate_kinds(False, False)):
        assert "AS ?count)" in where
        assert sparql_text.count(where).startswith("SELECT (COUNT(*) AS ?rows) WHERE {")
        assert "?rows" not in where


def test_graphs_as_answers_come_as_rows_of_triples_up_to_the_limit(serve: Serve, connect: Connect) -> None:
    endpoint = serve(turtle="@prefix e: <http://e/> . e:a e:in e:b . e:b e:in e:c ; e:size 3 .")
    store = connect(endpoint, attempts=1)
    answer = store.run("PREFIX e: <http://e/> CONSTRUCT { ?o e:has ?s . ?o a e:Place } { ?s e:in ?o } ORDER BY ?s")
    assert answer.columns == ("subject", "predicate", "object")
    assert len(answer) == 4
    assert not answer.truncated
    cut = store.run("DESCRIBE ?s { ?s <http://e/in> ?o }", limits=QueryLimits(max_rows=2))
    assert (len(cut), cut.truncated) == (2, True)
    endpoint.faults.extend([lambda handler: handler.reply(200, "application/n-triples", b"<http://e/a> <http://")])
    with pytest.raises(StoreUnavailable, match="N-Triples"):
        store.run("DESCRIBE <http://e/a>")


def test_csv_is_read_whatever_stands_in_it() -> None:
    ends = " ".join(f"http://e/{number}" for number in range(100_000))
    body = f'"near","count","ends"\n"http://e/a,b",100000,"{ends}"\n"x ""y""\nz",1,\n'.encode()
    table = sparql_text.read_csv(body)
    assert table.variables == ("near", "count", "ends")
    assert [{name: term["value"] for name, term in row.items()} for row in table.bindings] == [
        {"near": "http://e/a,b", "count": "100000", "ends": ends},
        {"near": 'x "y"\nz', "count": "1"},
    ]
    assert sparql_text.read_csv(b'"n"\n').bindings == []
    for broken in (b'"n","m"\n"a"\n', b'"n"\n"\xff"\n', b""):
        with pytest.raises(ValueError, match=r"CSV|UTF8|column"):
            sparql_text.read_csv(broken)


def test_keys_are_divided_by_the_rows_that_they_have() -> None:
    rows = {"a": 3, "b": 3, "c": 9, "d": 1}
    assert _divided("abcd", rows, 8) == [["a", "b"], ["c"], ["d"]]
    assert _divided("abcd", {}, 8) == ["ab", "cd"]
    assert _divided("abcd", rows, 100) == ["ab", "cd"]
