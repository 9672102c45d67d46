"""The indexes over the names of a graph's nodes: in the graph's folder, or made in memory.

`names/` finds names by their spelling, `dense/<embedder>/` by their meaning. Each belongs to the graph as it was when
the index was built: it holds the graph's checksum.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from byokg.errors import ConfigError, GraphExists, IndexUnusable
from byokg.files import new_folder
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.store import ALL_VALUES, GraphStore, SavedGraph
from byokg.index.dense import DenseNames, Embedded, verify_names
from byokg.index.embedders import Embedder, folder_name
from byokg.index.names import NameIndex
from byokg.index.vectors import Layout
from byokg.text import is_identifier
from byokg.types import Value

NAMES = "names"

_NODES_AT_ONCE = 1 << 16
_SEVERAL = re.compile(r"[;|]")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class NameFacts:
    """A saved index whose files were found to agree with their checksums."""

    names: int
    """Distinct spellings."""
    entries: int
    """Names of nodes; a node may have several, and several nodes one."""
    bytes: int
    """Size of the files, spellings among them."""


def name_entries(store: GraphStore, aliases: Sequence[str] = ()) -> Iterator[tuple[int, str]]:
    """Yield number and name of each node, in the order of numbers, and its further names behind.

    Args:
        store: the graph.
        aliases: node properties whose values are names, too. Texts with `|` or `;` are several; so are the literals
            of an RDF property with several values.
    """
    ids = store.entities()
    first = 0
    while some := list(islice(ids, _NODES_AT_ONCE)):
        for number, node in enumerate(store.nodes(some), first):
            yield number, node.name
            for key in aliases:
                for name in _several(node.properties.get(key), node.properties.get(key + ALL_VALUES)):
                    yield number, name
        first += len(some)


def name_index(store: GraphStore) -> NameIndex:
    """Return the index over the names of a graph's nodes: the one in its folder, else one made in memory.

    Owners are node numbers. An index made in memory knows no aliases.

    Raises:
        GraphCorrupt: the saved index is damaged, or belongs to another graph.
    """
    if isinstance(store, SavedGraph) and store.folder is not None and (store.folder / NAMES).exists():
        return NameIndex.open(store.folder / NAMES, store.checksum)
    return NameIndex.of(name_entries(store))


def build_names(graph: ColumnarGraph, aliases: Sequence[str] = ()) -> NameIndex:
    """Index the names of a saved graph, and write the index into the graph's folder: completely, or not at all.

    An index that is there already is replaced.

    Args:
        graph: opened from a folder.
        aliases: see `name_entries`.

    Raises:
        ConfigError: the graph lies in no folder, or no node has one of the aliases.
        GraphError: the folder cannot be written.
    """
    if graph.folder is None:
        raise ConfigError(f"{graph.name} is in memory only; save it and open the folder, or use name_index")
    known = dict.fromkeys(key for keys in graph.schema().node_properties.values() for key in keys)
    for key in aliases:
        if key not in known:
            properties = ", ".join(known) or "none"
            raise ConfigError(f"no node has the property {key!r} that is to hold aliases; there are: {properties}")
    index = NameIndex.of(name_entries(graph, aliases))
    with new_folder(graph.folder / NAMES, overwrite=True, refuse=None) as partial:
        index.write(partial, graph.checksum or "")
    return NameIndex.open(graph.folder / NAMES, graph.checksum)


def verify_name_index(graph: ColumnarGraph) -> NameFacts | None:
    """Compare the checksums of a graph's index of names; None if it has no index. Raises `GraphCorrupt`."""
    if graph.folder is None or not (graph.folder / NAMES).exists():
        return None
    meta = NameIndex.verify(graph.folder / NAMES, graph.checksum)
    size = sum(entry["bytes"] for entry in meta["files"].values())
    return NameFacts(names=meta["names"], entries=meta["entries"], bytes=size)


def _several(value: Value | None, listed: Value | None) -> list[str]:
    """Return the names in a property, or in the list that RDF keeps of its values."""
    if isinstance(listed, str):
        return [re.sub(r"\\(.)", r"\1", text) for text in _QUOTED.findall(listed)]
    return [text for name in _SEVERAL.split(value) if (text := name.strip())] if isinstance(value, str) else []


DENSE = "dense"


@dataclass(frozen=True)
class DenseFacts:
    """A saved index whose files were found to agree with their checksums."""

    embedder: str
    names: int
    layout: str
    dimensions: int


def embedded_entries(store: GraphStore) -> Iterator[tuple[int, str]]:
    """Yield number and name of each node that has a name of its own, in the order of numbers."""
    return (entry for entry in name_entries(store) if not is_identifier(entry[1]))


def dense_names(
    store: GraphStore,
    embedder: Embedder,
    cache: Path | None = None,
    progress: Callable[[Embedded], None] | None = None,
    most: int | None = None,
    layout: Layout | None = None,
) -> DenseNames:
    """Return the dense index over a graph's names: the one in its folder, else one made in memory.

    Args:
        store: the graph; owners are its node numbers.
        embedder: makes vectors of names that no saved index has, and of what is looked for.
        cache: folder where vectors are kept from one time to the next; None keeps none.
        progress: told while names are embedded.
        most: names that are embedded at most if there is no saved index; None sets no limit.
        layout: of an index made in memory; None chooses by size.

    Raises:
        IndexUnusable: the saved index is damaged or that of another graph, or there is none and too many names.
        EmbedderFailed: the embedder failed.
    """
    if isinstance(store, SavedGraph) and store.folder is not None:
        folder = index_folder(store.folder, embedder)
        if folder.exists():
            return DenseNames.open(folder, embedder, store.checksum or "")
    entries: Iterable[tuple[int, str]] = embedded_entries(store)
    if most is not None:
        entries = list(islice(entries, most + 1))
        if len(entries) > most:
            raise IndexUnusable(store.name, f"there is none for {embedder.name!r}, and more than {most:,} names")
    return DenseNames.build(entries, embedder, cache, progress, layout)


def build_dense(
    graph: ColumnarGraph,
    embedder: Embedder,
    cache: Path | None = None,
    progress: Callable[[Embedded], None] | None = None,
    layout: Layout | None = None,
    overwrite: bool = False,
) -> DenseNames:
    """Make the dense index of a saved graph and write it into the graph's folder, completely or not at all.

    Args:
        graph: opened from a folder.
        embedder: makes the vectors.
        cache: as in `dense_names`.
        progress: told while names are embedded.
        layout: see `byokg.index.vectors`; None chooses by size.
        overwrite: replace an index that is there already.

    Raises:
        ConfigError: the graph lies in no folder.
        GraphExists: there is an index for this embedder.
        EmbedderFailed: the embedder failed; with a cache, the next call goes on where this one ended.
    """
    if graph.folder is None:
        raise ConfigError(f"{graph.name} is in memory only; save it and open the folder, or use dense_names")
    folder = index_folder(graph.folder, embedder)
    refuse_taken(folder, overwrite)  # before hours are spent
    made_for = graph.checksum or ""
    names = DenseNames.build(embedded_entries(graph), embedder, cache, progress, layout, made_for)
    with new_folder(folder, overwrite, refuse_taken) as partial:
        names.write(partial)
    return DenseNames.open(folder, embedder, made_for)


def index_folder(graph: Path, embedder: Embedder) -> Path:
    """Return where the index for an embedder lies."""
    return graph / DENSE / folder_name(embedder.name)


def refuse_taken(folder: Path, overwrite: bool) -> None:
    """Raise `GraphExists` unless a place is free, or holds an index (sound or not) that may be overwritten."""
    if folder.exists() and not (overwrite or (folder.is_dir() and next(folder.iterdir(), None) is None)):
        raise GraphExists(folder, "an index is already there; pass overwrite=True to replace it")


def verify_dense(graph: ColumnarGraph) -> list[DenseFacts]:
    """Compare the checksums of every dense index in a graph's folder, and that it was made for this graph.

    Raises:
        IndexUnusable: a file is missing or differs, or the graph is another.
    """
    if graph.folder is None or not (graph.folder / DENSE).is_dir():
        return []
    facts = []
    for folder in sorted(path for path in (graph.folder / DENSE).iterdir() if not path.name.startswith(".")):
        meta = verify_names(folder)
        if meta.made_for != graph.checksum:
            raise IndexUnusable(folder, "it was made for another graph")
        layout, dimensions = meta.vectors["layout"], meta.vectors["dimensions"]
        facts.append(DenseFacts(meta.embedder, meta.names, str(layout), int(dimensions)))
    return facts
