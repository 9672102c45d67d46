"""Opening of a graph by its place, a folder or the address of a server: the only way that graphs are opened.

| place                                     | opens                               | credentials come from         |
|-------------------------------------------|-------------------------------------|-------------------------------|
| a folder                                  | `ColumnarGraph`, or an engine in it |                               |
| `neo4j://…`, `bolt://…` (`+s`, `+ssc`)    | `Neo4jStore`                        | NEO4J_USERNAME, …_PASSWORD    |
| `neptune-graph://ID`, `neptune-db://HOST` | `NeptuneStore`                      | boto3's own configuration     |
| `sparql+https://…`, `sparql+http://…`     | `SparqlEndpoint`                    | BYOKG_SPARQL_TOKEN, or …_USER |

Anything without `://` is a folder. Credentials never stand in an address. Settings (`configs/graph`) are those of the
store's constructor. A server's schema is kept between runs (see `SchemaCache`). Stores, engines and client libraries
are imported when a graph of their kind is opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from byokg.errors import ConfigError, GraphExists, GraphNotFound, import_extra
from byokg.graph.columnar.folder import ENGINE_FOLDERS
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.read_cache import SchemaCache, digest
from byokg.graph.store import GraphStore
from byokg.text.names import encodable
from byokg.types import Language

if TYPE_CHECKING:
    from byokg.graph.engines.arcadedb import ArcadeStore
    from byokg.graph.engines.oxigraph import OxigraphStore
    from byokg.graph.servers.bolt import Neo4jStore
    from byokg.graph.servers.neptune import NeptuneStore
    from byokg.graph.servers.sparql import SparqlEndpoint

    Server: TypeAlias = Neo4jStore | NeptuneStore | SparqlEndpoint
    Opened: TypeAlias = ColumnarGraph | Server
    Queryable: TypeAlias = ArcadeStore | OxigraphStore | Server

ServerKind = Literal["neo4j", "neptune", "sparql"]

SCHEMES: dict[str, ServerKind] = {
    "neo4j": "neo4j",
    "bolt": "neo4j",
    "neptune-graph": "neptune",
    "neptune-db": "neptune",
    "sparql+https": "sparql",
    "sparql+http": "sparql",
}

EXAMPLES: dict[str | None, str] = {
    "neo4j": "neo4j://HOST:7687/DATABASE",
    "neptune": "neptune-graph://ID or neptune-db://HOST",
    "sparql": "sparql+https://HOST/PATH",
}
"""Form of the addresses of each kind."""

_ENVIRONMENT: dict[ServerKind, str] = {
    "neo4j": "NEO4J_USERNAME and NEO4J_PASSWORD",
    "neptune": "AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "sparql": "BYOKG_SPARQL_TOKEN, or BYOKG_SPARQL_USER and BYOKG_SPARQL_PASSWORD",
}

ENGINE_NAMES: dict[Language, str] = {"cypher": "ArcadeDB", "sparql": "Oxigraph"}

_USER = re.compile(r"(\w://)(?:[^\s/@:]*:\S*|[^\s/@:]+)@")
"""A name and a password, or a token, before a host. Greedy, because a password may hold an @ or a /."""

_PARAMETER = re.compile(
    r"([?&][^=&\s]*(?:key|token|secret|passw|pwd|auth|credential)[^=&\s]*=)[^&\s'\"]+", re.IGNORECASE
)


# Addresses


def is_address(place: str | Path) -> bool:
    """True if a place is a server's address, and not a folder."""
    return "://" in str(place)


def server_kind(address: str) -> ServerKind:
    """Return the kind of server of an address.

    Raises:
        ConfigError: no store has this scheme, or the address contains credentials (which the message does not repeat).
    """
    written, _, rest = address.partition("://")
    scheme = written.lower()
    if scheme.startswith(("neo4j+", "bolt+")):
        scheme = scheme.removesuffix("+ssc").removesuffix("+s")
    kind = SCHEMES.get(scheme)
    if encodable(address) != address:
        raise ConfigError(f"the address {mask(encodable(address))} holds half of a character (a lone surrogate)")
    shown = written if re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]{0,19}", written) else "…"
    if "@" in rest.partition("?")[0]:
        variables = _ENVIRONMENT[kind] if kind else "variables of the environment"
        raise ConfigError(
            f"the address {shown}://… holds an @, as credentials before the host do; leave them out "
            f"and set {variables} (an @ that belongs to the path is written %40)"
        )
    if kind is None:
        raise ConfigError(f"no store speaks {shown!r}; addresses start with {', '.join(SCHEMES)}")
    return kind


def mask(text: str) -> str:
    """Return a text without the credentials that stand in the addresses in it."""
    return _PARAMETER.sub(r"\1…", _USER.sub(r"\1…@", text))


# Opening


def open_graph(
    place: str | Path,
    cache: SchemaCache | None = None,
    opener: Callable[[str | Path], GraphStore] | None = None,
    **settings: Any,
) -> Opened:
    """Open a graph for traversal.

    Args:
        place: a folder or an address.
        cache: place of servers' schemas; None is the user's cache folder.
        opener: makes the store, with settings of its own; None chooses by the place.
        settings: for the server's store, such as `id_property` (see its constructor). A folder takes none.

    Raises:
        GraphNotFound: there is no graph in the folder.
        ConfigError: no store has the address's scheme, the address contains credentials, or the place is a file.
        MissingExtra: the server's client library is not installed.
    """
    if is_address(place):
        if opener is None:
            return _open_server(str(place), cache, settings)
        store = opener(place)
        store.keep_schema(cache or SchemaCache())
        return cast("Opened", store)
    _check_folder(place, settings)
    return ColumnarGraph.open(place) if opener is None else cast("Opened", opener(place))


def open_queryable(
    place: str | Path, language: Language | None = None, cache: SchemaCache | None = None, **settings: Any
) -> Queryable:
    """Open a graph for queries.

    Args:
        place: a folder or an address.
        language: wanted of a folder that holds both engines; None takes Cypher if present.
        cache: as for `open_graph`.
        settings: as for `open_graph`.

    Raises:
        ConfigError: the graph has no engine for the language; the message names the command that builds one.
        GraphNotFound, MissingExtra: as for `open_graph`.
    """
    if is_address(place):
        server = _open_server(str(place), cache, settings)
        if language not in (None, server.language):
            server.close()
            raise ConfigError(f"{server.name} takes {server.language}, not {language}; leave --language out")
        return server
    _check_folder(place, settings)
    if not Path(place).is_dir():
        raise GraphNotFound(place)
    present = engines_in(place)
    if "cypher" in present and language in (None, "cypher"):
        from byokg.graph.engines.arcadedb import ArcadeStore

        return ArcadeStore.open(place)
    if "sparql" in present and language in (None, "sparql"):
        from byokg.graph.engines.oxigraph import OxigraphStore

        return OxigraphStore(place)
    wanted = f"takes no {language}" if language else "has no query engine"
    option = f"--{language}" if language else "--cypher or --sparql"
    raise ConfigError(f"the graph in {str(place)!r} {wanted}; build one into it: byokg graph engine {place} {option}")


def _check_folder(place: str | Path, settings: Collection[str]) -> None:
    """Refuse an impossible folder, and settings for a folder."""
    try:
        os.fsencode(place)
    except UnicodeEncodeError:
        raise GraphNotFound(place) from None
    if Path(place).is_file():
        raise ConfigError(f"{place} is a file; build a graph from it: byokg graph build {place} --out DIR")
    if settings:
        raise ConfigError(f"{', '.join(settings)} is for servers; the graph in {str(place)!r} has its ids already")


def _open_server(address: str, cache: SchemaCache | None, settings: dict[str, Any]) -> Server:
    """Make the store for an address; nothing is sent yet, except that some clients connect."""
    kind = server_kind(address)
    server: Server
    if kind == "neo4j":
        from byokg.graph.servers.bolt import Neo4jStore

        server = Neo4jStore(address, **settings)
    elif kind == "neptune":
        from byokg.graph.servers.neptune import NeptuneStore

        server = NeptuneStore(address, **settings)
    else:
        from byokg.graph.servers.sparql import SparqlEndpoint

        if names := settings.keys() & {"id_property", "name_property"}:
            raise ConfigError(f"{', '.join(sorted(names))} is for Cypher servers; nodes of {address} have IRIs")
        server = SparqlEndpoint(address, **settings)
    server.keep_schema(cache or SchemaCache())
    return server


@contextmanager
def use_graph(place: str | Path, cache: SchemaCache | None = None, **settings: Any) -> Iterator[Opened]:
    """Open a graph as `open_graph` does, and let go of a server's connections afterwards."""
    store = open_graph(place, cache, **settings)
    try:
        yield store
    finally:
        store.close()


def fingerprint(store: GraphStore) -> str:
    """Return the identity of a graph for run records.

    A graph in files has the checksum of its content. A server has none, so it is identified by its address and the
    number of nodes of each type and of edges of each relation: `counts:` and a SHA-256 of these. Edits that leave all
    counts as they are (a renamed node, a property) do not change it. An endpoint that cannot count its edges is
    identified by its address alone: `address:` and a SHA-256 of that.
    """
    if store.checksum:
        return store.checksum
    if getattr(store, "edge_count", 0) is None:
        return f"address:{digest(store.name)}"
    schema = store.schema()
    relations = sorted((relation.name, relation.count) for relation in schema.relations)
    return f"counts:{digest(store.name, sorted(schema.node_types.items()), relations)}"


# Query engines in the folder of a graph


def engines_in(folder: str | Path) -> list[Language]:
    """Return the languages that a graph folder has engines for, in fixed order."""
    return [language for language, name in ENGINE_FOLDERS.items() if (Path(folder) / name).is_dir()]


def refuse_missing(languages: Collection[Language]) -> None:
    """Raise `MissingExtra` if an engine's packages are not installed."""
    if "cypher" in languages:
        from byokg.graph.engines.arcadedb import refuse_missing as refuse_missing_arcadedb

        refuse_missing_arcadedb()
    if "sparql" in languages:
        import_extra("pyoxigraph", "sparql", "the embedded RDF store")


def add_engine(folder: str | Path, language: Language, overwrite: bool = False) -> None:
    """Build an engine into the folder of a saved graph; it appears only when complete.

    Args:
        folder: of the graph.
        language: query language of the engine.
        overwrite: replace an existing engine.

    Raises:
        GraphNotFound, GraphCorrupt: there is no graph in `folder`, or it cannot be read.
        GraphExists: the engine exists already.
        OpenFileLimit: the graph has more relations than ArcadeDB may open files.
        MissingExtra: the engine is not installed.
        StoreUnavailable: the process that loads it failed.
    """
    graph = ColumnarGraph.open(folder)
    if language in engines_in(folder) and not overwrite:
        reason = f"it has its {ENGINE_NAMES[language]} engine already; pass overwrite=True to build it anew"
        raise GraphExists(folder, reason)
    if language == "cypher":
        from byokg.graph.engines.arcadedb import build_arcade

        build_arcade(graph, folder, overwrite)
    else:
        from byokg.graph.engines.oxigraph import build_oxigraph

        build_oxigraph(graph, Path(folder) / ENGINE_FOLDERS[language], overwrite).close()
