"""The names of a graph's nodes: an index in the graph's folder, or made in memory.

It lies in `names/` and belongs to the graph as it is: the checksum of the graph is part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from byokg.errors import ConfigError
from byokg.graph.columnar import ColumnarGraph
from byokg.graph.folder import new_folder
from byokg.graph.literals import ALL_VALUES
from byokg.graph.store import GraphStore, SavedGraph
from byokg.index.names import NameIndex
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
    with new_folder(graph.folder / NAMES, overwrite=True, refuse=_refuse_nothing) as partial:
        index.write(partial, graph.checksum or "")
    return NameIndex.open(graph.folder / NAMES, graph.checksum)


def verify_names(graph: ColumnarGraph) -> NameFacts | None:
    """Compare the checksums of a graph's index of names; None where there is none. Raises `GraphCorrupt`."""
    if graph.folder is None or not (graph.folder / NAMES).exists():
        return None
    meta = NameIndex.verify(graph.folder / NAMES, graph.checksum)
    size = sum(entry["bytes"] for entry in meta["files"].values())
    return NameFacts(names=meta["names"], entries=meta["entries"], bytes=size)


def _refuse_nothing(folder: Path, overwrite: bool) -> None:
    """Let a part of a graph's folder be replaced: nothing else has a place there."""


def _several(value: Value | None, listed: Value | None) -> list[str]:
    """Return the names in a property, or in the list that RDF keeps of its values."""
    if isinstance(listed, str):
        return [re.sub(r"\\(.)", r"\1", text) for text in _QUOTED.findall(listed)]
    return [text for name in _SEVERAL.split(value) if (text := name.strip())] if isinstance(value, str) else []
