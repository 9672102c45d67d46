"""The query engines that a graph folder may hold beside its arrays: ArcadeDB for openCypher, Oxigraph for SPARQL."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from byokg.errors import GraphExists
from byokg.graph import arcadedb, oxigraph
from byokg.graph.columnar import ColumnarGraph
from byokg.graph.oxigraph_engine import import_pyoxigraph
from byokg.types import Language

FOLDERS: dict[Language, str] = {"cypher": arcadedb.FOLDER, "sparql": oxigraph.FOLDER}
"""Subfolder of each language's engine."""

NAMES: dict[Language, str] = {"cypher": "ArcadeDB", "sparql": "Oxigraph"}


def engines_in(folder: str | Path) -> list[Language]:
    """Return the languages that a graph folder has engines for, in fixed order."""
    return [language for language, name in FOLDERS.items() if (Path(folder) / name).is_dir()]


def refuse_missing(languages: Collection[Language]) -> None:
    """Raise `MissingExtra` when what an engine needs is not installed."""
    if "cypher" in languages:
        arcadedb.refuse_missing()
    if "sparql" in languages:
        import_pyoxigraph("the embedded RDF store")


def add_engine(folder: str | Path, language: Language, overwrite: bool = False) -> None:
    """Build an engine into the folder of a saved graph; it appears only when complete.

    Args:
        folder: of the graph.
        language: what the engine shall understand.
        overwrite: replace an engine that is already there.

    Raises:
        GraphNotFound, GraphCorrupt: there is no graph in `folder`, or none that can be read.
        GraphExists: the engine is there already.
        OpenFileLimit: the graph has more relations than ArcadeDB may open files.
        MissingExtra: the engine is not installed.
        StoreUnavailable: the process that loads it failed.
    """
    graph = ColumnarGraph.open(folder)
    if language in engines_in(folder) and not overwrite:
        raise GraphExists(folder, f"it has its {NAMES[language]} engine already; pass overwrite=True to build it anew")
    if language == "cypher":
        arcadedb.build_arcade(graph, folder, overwrite)
    else:
        oxigraph.build_oxigraph(graph, Path(folder) / FOLDERS[language], overwrite).close()
