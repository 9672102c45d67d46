"""The schema of a graph on a server is read while other things go on, and awaited where it is needed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest

from byokg.errors import StoreUnavailable
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.rdf.files import graph_quads
from byokg.graph.schema_text import SchemaRenderer
from byokg.graph.servers.sparql import SparqlEndpoint
from byokg.graph.store import Schema, query_notes, schema_ahead
from tests.graph.contract import edge, ids, node
from tests.graph.sparql_server import Endpoint, Handler, serving

pyoxigraph = pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'byokg[sparql]'")

_LONG_S = 60.0


class Slow(SparqlEndpoint):
    """Reads its schema when it is allowed to."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.begun, self.allowed = threading.Event(), threading.Event()

    def _read_schema(self, sample: int | None) -> Schema:
        self.begun.set()
        assert self.allowed.wait(_LONG_S)
        return super()._read_schema(sample)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    #   a -r-> b
    triples = pyoxigraph.Store()
    triples.extend(graph_quads(ColumnarGraph.from_records([node("a"), node("b")], [edge("a", "r", "b")])))
    with serving(triples) as served:
        yield served


def test_nothing_but_the_schema_waits_for_it(endpoint: Endpoint) -> None:
    with Slow(endpoint.url) as store, SparqlEndpoint(endpoint.url) as other:
        renderer = SchemaRenderer(schema_ahead(store), notes=partial(query_notes, store))
        assert store.begun.wait(_LONG_S)
        assert [found.name for found in store.nodes(ids("a"))] == ["a"]
        assert store.ids(store.edges(store.numbers(ids("a"))).tail) == ["b"]
        assert len(store.run("SELECT ?s { ?s rdfs:label ?name }")) == 2
        store.allowed.set()
        assert "r" in renderer.render("who?").text
        assert store.schema() == other.schema()


def test_what_goes_wrong_in_the_background_is_raised_where_the_schema_is_asked_for(endpoint: Endpoint) -> None:
    class Broken(Slow):
        def _read_schema(self, sample: int | None) -> Schema:
            if not self.begun.is_set():
                self.begun.set()
                raise StoreUnavailable("it", "is away")
            return SparqlEndpoint._read_schema(self, sample)

    with Broken(endpoint.url) as store:
        store.read_ahead()
        with pytest.raises(StoreUnavailable, match="is away"):
            store.schema()
        assert store.schema().relations  # which is read when it is asked for once more


def test_a_store_that_is_closed_reads_nothing_more(endpoint: Endpoint) -> None:
    arrived, over = threading.Event(), threading.Event()

    def hang(handler: Handler) -> None:
        arrived.set()
        over.wait(_LONG_S)
        handler.close_connection = True

    endpoint.faults.append(hang)
    store = SparqlEndpoint(endpoint.url)
    store.read_ahead()
    assert arrived.wait(_LONG_S)
    over.set()
    store.close()
    assert "byokg-schema" not in [thread.name for thread in threading.enumerate()]


def test_it_is_told_what_is_being_read(endpoint: Endpoint) -> None:
    told: list[str] = []
    with SparqlEndpoint(endpoint.url) as store:
        store.watch(told.append)
        store.schema()
        store.schema()
    begin = f"reading the schema of {endpoint.url}: "
    assert told == [f"{begin}nodes, classes and relations", f"{begin}properties, and the ends of relations (1)"]
