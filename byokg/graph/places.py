"""Opening a graph by where it is: a folder, or the address of a server.

| place                                   | opens                                                        |
|-----------------------------------------|--------------------------------------------------------------|
| a folder                                | `ColumnarGraph`; for queries the engine built into the folder |
| `neo4j://…`, `bolt://…` (`+s`, `+ssc`)  | `Neo4jStore`, credentials from NEO4J_USERNAME, NEO4J_PASSWORD |
| `neptune-graph://ID`, `neptune-db://HOST` | Neptune Analytics, Neptune Database; credentials as boto3's  |
| `sparql+https://…`, `sparql+http://…`   | `SparqlEndpoint`                                             |
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from byokg.errors import ConfigError, GraphNotFound
from byokg.graph.columnar import ColumnarGraph
from byokg.graph.query import Language

if TYPE_CHECKING:
    from byokg.graph.arcadedb import ArcadeStore
    from byokg.graph.bolt import Neo4jStore
    from byokg.graph.neptune import NeptuneAnalyticsStore, NeptuneDatabaseStore
    from byokg.graph.oxigraph import OxigraphStore
    from byokg.graph.sparql import SparqlEndpoint

    Server = Neo4jStore | NeptuneAnalyticsStore | NeptuneDatabaseStore | SparqlEndpoint

SCHEMES = ("neo4j", "bolt", "neptune-graph", "neptune-db", "sparql+https", "sparql+http")
OXIGRAPH = "oxigraph"
"""Subfolder of a graph folder that holds its RDF store."""


def open_graph(place: str | Path) -> ColumnarGraph | Server:
    """Open a graph to be walked.

    Raises:
        GraphNotFound: there is no graph in the folder.
        ConfigError: the address has a scheme that nothing here speaks.
        MissingExtra: the server's client library is not installed.
        StoreUnavailable: the server does not answer.
    """
    return _server(str(place)) if "://" in str(place) else ColumnarGraph.open(place)


def open_queryable(place: str | Path, language: Language | None = None) -> ArcadeStore | OxigraphStore | Server:
    """Open a graph to be queried.

    Args:
        place: as above.
        language: wanted of a folder that holds both engines; None takes Cypher where there is one.

    Raises:
        ConfigError: the graph does not speak the language; says how to build an engine that does.
        GraphNotFound, MissingExtra, StoreUnavailable: as for `open_graph`.
    """
    if "://" in str(place):
        server = _server(str(place))
        if language not in (None, server.language):
            raise ConfigError(f"{place} takes {server.language}, not {language}; leave --language out")
        return server
    from byokg.graph.arcadedb import FOLDER as ARCADE

    folder = Path(place)
    if not folder.is_dir():
        raise GraphNotFound(place)
    if language in (None, "cypher") and (folder / ARCADE).exists():
        from byokg.graph.arcadedb import ArcadeStore

        return ArcadeStore.open(folder)
    if language in (None, "sparql") and (folder / OXIGRAPH).exists():
        from byokg.graph.oxigraph import OxigraphStore

        return OxigraphStore(folder / OXIGRAPH)
    wanted = f"takes no {language}" if language else "has no query engine"
    option = f"--{language}" if language else "--cypher or --sparql"
    raise ConfigError(
        f"the graph in {str(place)!r} {wanted}; build one into it: byokg graph build SRC --out DIR {option}"
    )


def _server(place: str) -> Server:
    scheme, _, rest = place.partition("://")
    if scheme.removesuffix("+ssc").removesuffix("+s") in ("neo4j", "bolt"):
        from byokg.graph.bolt import Neo4jStore

        return Neo4jStore(place)
    if scheme == "neptune-graph":
        from byokg.graph.neptune import NeptuneAnalyticsStore

        return NeptuneAnalyticsStore(rest)
    if scheme == "neptune-db":
        from byokg.graph.neptune import NeptuneDatabaseStore

        return NeptuneDatabaseStore(rest)
    if scheme in ("sparql+https", "sparql+http"):
        from byokg.graph.sparql import SparqlEndpoint

        return SparqlEndpoint(place.removeprefix("sparql+"))
    raise ConfigError(f"no store speaks {scheme!r} (in {place!r}); schemes are {', '.join(SCHEMES)}")
