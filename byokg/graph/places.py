"""Opening a graph by where it is: a folder, or the address of a server (see `address`).

| place                                     | opens                                                         |
|-------------------------------------------|---------------------------------------------------------------|
| a folder                                  | `ColumnarGraph`; for queries the engine built into the folder |
| `neo4j://…`, `bolt://…` (`+s`, `+ssc`)    | `Neo4jStore`                                                  |
| `neptune-graph://ID`, `neptune-db://HOST` | `NeptuneAnalyticsStore`, `NeptuneDatabaseStore`               |
| `sparql+https://…`, `sparql+http://…`     | `SparqlEndpoint`                                              |

A server's schema is kept between runs (see `schema_cache`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from byokg.errors import ConfigError, GraphNotFound
from byokg.graph.address import is_address, server_kind
from byokg.graph.columnar import ColumnarGraph
from byokg.graph.engines import FOLDERS, engines_in
from byokg.graph.schema_cache import SchemaCache, digest
from byokg.graph.store import GraphStore
from byokg.types import Language

if TYPE_CHECKING:
    from byokg.graph.arcadedb import ArcadeStore
    from byokg.graph.bolt import Neo4jStore
    from byokg.graph.neptune import NeptuneAnalyticsStore, NeptuneDatabaseStore
    from byokg.graph.oxigraph import OxigraphStore
    from byokg.graph.sparql import SparqlEndpoint

    Server: TypeAlias = Neo4jStore | NeptuneAnalyticsStore | NeptuneDatabaseStore | SparqlEndpoint
    Opened: TypeAlias = ColumnarGraph | Server
    Queryable: TypeAlias = ArcadeStore | OxigraphStore | Server


def open_graph(place: str | Path, cache: SchemaCache | None = None, **settings: Any) -> Opened:
    """Open a graph to be walked.

    Args:
        place: a folder or an address.
        cache: where a server's schema is kept; None is the user's cache folder.
        settings: for the server's store, such as `id_property` (see its constructor). A folder takes none.

    Raises:
        GraphNotFound: there is no graph in the folder.
        ConfigError: the address has a scheme that nothing here speaks, or holds credentials.
        MissingExtra: the server's client library is not installed.
    """
    if is_address(place):
        return open_server(str(place), cache, **settings)
    if settings:
        raise ConfigError(f"{', '.join(settings)} is for servers; the graph in {str(place)!r} has its ids already")
    return ColumnarGraph.open(place)


def open_queryable(
    place: str | Path, language: Language | None = None, cache: SchemaCache | None = None, **settings: Any
) -> Queryable:
    """Open a graph to be queried.

    Args:
        place: a folder or an address.
        language: wanted of a folder that holds both engines; None takes Cypher where there is one.
        cache: as for `open_graph`.
        settings: as for `open_graph`.

    Raises:
        ConfigError: the graph does not speak the language; says how to build an engine that does.
        GraphNotFound, MissingExtra: as for `open_graph`.
    """
    if is_address(place):
        server = open_server(str(place), cache, **settings)
        if language not in (None, server.language):
            server.close()
            raise ConfigError(f"{server.name} takes {server.language}, not {language}; leave --language out")
        return server
    if settings:
        raise ConfigError(f"{', '.join(settings)} is for servers; the graph in {str(place)!r} has its ids already")
    folder = Path(place)
    if not folder.is_dir():
        raise GraphNotFound(place)
    present = engines_in(folder)
    if "cypher" in present and language in (None, "cypher"):
        from byokg.graph.arcadedb import ArcadeStore

        return ArcadeStore.open(folder)
    if "sparql" in present and language in (None, "sparql"):
        from byokg.graph.oxigraph import OxigraphStore

        return OxigraphStore(folder / FOLDERS["sparql"])
    wanted = f"takes no {language}" if language else "has no query engine"
    option = f"--{language}" if language else "--cypher or --sparql"
    raise ConfigError(f"the graph in {str(place)!r} {wanted}; build one into it: byokg graph engine {place} {option}")


def open_server(address: str, cache: SchemaCache | None = None, **settings: Any) -> Server:
    """Open the store for an address; nothing is sent yet, except that some clients connect. See `open_graph`."""
    kind = server_kind(address)
    server: Server
    if kind == "neo4j":
        from byokg.graph.bolt import Neo4jStore

        server = Neo4jStore(address, **settings)
    elif kind == "neptune":
        from byokg.graph.neptune import open_neptune

        server = open_neptune(address, **settings)
    else:
        from byokg.graph.sparql import SparqlEndpoint

        if settings:
            raise ConfigError(f"{', '.join(settings)} is for Cypher servers; nodes of {address} have IRIs")
        server = SparqlEndpoint(address)
    server.keep_schema(cache or SchemaCache())
    return server


@contextmanager
def opened(place: str | Path, cache: SchemaCache | None = None, **settings: Any) -> Iterator[Opened]:
    """Open a graph as `open_graph` does, and let go of a server's connections afterwards."""
    store = open_graph(place, cache, **settings)
    try:
        yield store
    finally:
        close(store)


def close(store: GraphStore) -> None:
    """Let go of what a store holds open; a graph in files holds nothing."""
    if not isinstance(store, ColumnarGraph) and callable(end := getattr(store, "close", None)):
        end()


def identity(store: GraphStore) -> str:
    """Return what a run records to say which graph it read.

    A graph in files has the checksum of its content. A server has none, so it is identified by its address and the
    number of nodes of each type and of edges of each relation: `counts:` and a SHA-256 of these. Edits that leave all
    counts as they are (a renamed node, a property) do not change it. An endpoint that cannot count its edges is
    identified by its address alone: `address:` and a SHA-256 of that.
    """
    if checksum := getattr(store, "checksum", None):
        return str(checksum)
    if getattr(store, "edge_count", 0) is None:
        return f"address:{digest(store.name)}"
    schema = store.schema()
    relations = sorted((relation.name, relation.count) for relation in schema.relations)
    return f"counts:{digest(store.name, sorted(schema.node_types.items()), relations)}"
