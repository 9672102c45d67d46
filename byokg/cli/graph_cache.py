"""Data sets' own graphs, imported once and kept for all later runs."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from byokg.errors import GraphCorrupt, GraphError, GraphNotFound, ImportFailed
from byokg.graph.cache_folder import user_cache
from byokg.graph.columnar import ColumnarGraph
from byokg.graph.folder import FORMAT, VERSION, new_folder
from byokg.graph.importers import import_into, source_files
from byokg.graph.name_index import build_names

_HASH_DIGITS = 12


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where graphs are kept unless `graph.cache` says otherwise: the user's cache folder."""
    return user_cache(environment) / "graphs"


def cached_graph(source: Path, name: str, cache: Path, note: Callable[[str], None]) -> Path:
    """Return the folder of the graph built from `source`, building it when there is none yet.

    The folder is named after the content of the source, so a changed source gets another one. Several processes may
    ask at the same time: each builds, one keeps, and all use the same.

    Args:
        source: file or folder, as `byokg graph build` takes it.
        name: first part of the folder's name, for people.
        cache: where the folders lie.
        note: told in one line what was built, or what is used.

    Raises:
        ImportFailed: the source cannot become a graph.
        GraphError: the cache cannot be written.
    """
    readable = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "graph"
    folder = cache / f"{readable}-{source_digest(source)[:_HASH_DIGITS]}"
    damaged = False
    try:
        ColumnarGraph.open(folder)
    except GraphNotFound:
        pass
    except GraphCorrupt:
        damaged = True
    else:
        note(f"graph: {folder}")
        return folder
    began = time.perf_counter()
    try:
        with new_folder(folder, overwrite=damaged) as partial:  # graph and names appear together, or not at all
            build_names(import_into(source, partial))
        graph = ColumnarGraph.open(folder)
    except GraphError as error:
        try:
            graph = ColumnarGraph.open(folder)  # another process was quicker
        except GraphNotFound:
            if isinstance(error, ImportFailed):
                raise error from None
            raise GraphError(f"{error} (name another folder with graph.cache=DIR)") from error
    seconds = time.perf_counter() - began
    counts = f"{graph.node_count:,} nodes, {graph.edge_count:,} edges, {seconds:.1f} s"
    note(f"graph: {folder} (built from {source}: {counts})")
    return folder


def source_digest(source: Path) -> str:
    """Return a sha256 over the names and bytes of a graph's source files, and over the format that is written.

    Raises:
        ImportFailed: the source is none that can be imported.
    """
    digest = hashlib.sha256(f"{FORMAT} {VERSION}\n".encode())
    for path in source_files(source):
        with path.open("rb") as file:
            digest.update(f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()
