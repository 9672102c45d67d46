"""The indexes over the names of a graph's nodes: in the graph's folder, in the user's cache, or made in memory.

`names/` finds names by their spelling, `dense/<embedder>/` by their meaning. Each belongs to the graph as it was when
the index was built: it holds the graph's checksum.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from byokg.errors import (
    ConfigError,
    EntityNotFound,
    GraphCorrupt,
    GraphError,
    GraphExists,
    IndexUnusable,
    NameAmbiguous,
    at_least,
)
from byokg.files import in_bytes, new_folder, user_cache, write_file
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.store import ALL_VALUES, GraphStore
from byokg.index.dense import DenseNames, Embedded, is_comparable, verify_names
from byokg.index.embedders import Embedder, Vectors, exact, folder_name, unit_rows
from byokg.index.names import NameIndex, NameMatch, NameSearch, unqualified
from byokg.index.vectors import Layout
from byokg.index.vocabulary import Texts
from byokg.text.names import encodable, is_identifier, split_label
from byokg.types import EntityId, Node, Value

_LOG = logging.getLogger(__name__)

NAMES = "names"
_IDS, _READ = "ids.arrow", "read.json"
_NAMESAKES = 1000
"""Bearers of one name that are looked at."""

_NODES_AT_ONCE = 1 << 16
_MOST = 20_000_000
"""Largest graph, in nodes, whose further names are indexed by default: that takes memory."""
_SEVERAL = re.compile(r"[;|]")
_QUALIFIED = r"\S\s+\([^()]*\)\s*$"
_BY_ID = r"^(?:https?://\S+[/#]|[A-Za-z][\w.-]*:|urn:\S+:)?[^\s/#:]+$"
_NAMED_BY_ID = re.compile(_BY_ID)
_NAMESPACE = re.compile(r"^(?:https?://\S*[/#]|urn:\S+:|[A-Za-z][\w.-]*:)")
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
    """Yield number and name of each node, in the order of numbers, and its further names behind (see `also_called`).

    Args:
        store: the graph.
        aliases: node properties whose values are names, too. Texts with `|` or `;` are several; so are the literals
            of an RDF property with several values. What RDF calls names is among them without being named here.
    """
    keys = dict.fromkeys((*aliases, *rdf_names(store)))
    for number, node in numbered_nodes(store):
        yield number, node.name
        for name in also_called(node, keys):
            yield number, name


def numbered_nodes(store: GraphStore) -> Iterator[tuple[int, Node]]:
    """Yield number and node, in the order of numbers."""
    ids = store.entities()
    first = 0
    while some := list(islice(ids, _NODES_AT_ONCE)):
        yield from enumerate(store.nodes(some), first)
        first += len(some)


def rdf_names(store: GraphStore) -> list[str]:
    """Return the properties of an RDF graph whose values are names of nodes: labels of all languages, and aliases."""
    source = store.source
    if source.get("kind") != "rdf":
        return []
    from byokg.graph.rdf.terms import ALIAS_PREDICATES, NAME_PREDICATES, Prefixes  # of which most graphs need nothing

    prefixes = Prefixes(source["prefixes"])
    here = {key for keys in store.schema().node_properties.values() for key in keys}
    labels = map(prefixes.label, (*NAME_PREDICATES, *ALIAS_PREDICATES))
    return [label for label in labels if label in here or label + ALL_VALUES in here]


def also_called(node: Node, aliases: Iterable[str] = ()) -> list[str]:
    """Return the further names of a node, each once.

    They are the values of some properties; the name without its disambiguating qualifier (`Titanic` for `Titanic
    (film)`); and for a node with an IRI or a CURIE as its only name, the end of it, as words (`Ada Lovelace` for
    `ex:AdaLovelace`).
    """
    names = [
        name for key in aliases for name in _several(node.properties.get(key), node.properties.get(key + ALL_VALUES))
    ]
    names += [short for name in (node.name, *names) if (short := unqualified(name))]
    names += _end_of_id(node)
    return [name for name in dict.fromkeys(names) if name != node.name]


def _end_of_id(node: Node) -> list[str]:
    """Return the end of an IRI or CURIE as words, for a node without another name."""
    if not _NAMED_BY_ID.match(node.name) or not (node.name == node.id or node.id.endswith(node.name)):
        return []
    end = _NAMESPACE.sub("", node.name)
    end = unquote(end) if "%" in end else end
    plain = split_label(end)
    said = (end, plain, unqualified(end.replace("_", " ")))
    return [text for text in said if any(map(str.isalpha, text)) and not is_identifier(text)]


def name_index(store: GraphStore) -> NameIndex:
    """Return the index over the names of a graph's nodes: the one in its folder, else one made in memory.

    Owners are node numbers. An index made in memory knows no aliases but those of RDF. That of a saved graph with more
    than 20 million nodes is written into its folder first, if that can be written. The names of a graph on a server are
    read once, and kept in the user's cache until `keep_names` reads them anew.

    Raises:
        GraphCorrupt: the saved index is damaged, or belongs to another graph.
    """
    if store.remote:
        return server_names(store)
    if store.folder is not None and (store.folder / NAMES).exists():
        return NameIndex.open(store.folder / NAMES, store.checksum, store.names_of_nodes())
    if isinstance(store, ColumnarGraph) and store.folder is not None and store.node_count > _MOST:
        _LOG.warning("%s has no index of names; one is written into it, once", store.name)
        try:
            return build_names(store)
        except GraphError as error:
            _LOG.warning("%s; it is made in memory instead", error)
    return NameIndex.of(name_entries(store))


def named_node(store: GraphStore, name: str) -> int:
    """Return the number of the only node with a name, up to case, accents and punctuation unless one has it just so.

    Raises:
        EntityNotFound: no node has the name.
        NameAmbiguous: several have it.
    """
    if store.remote:
        found = store.named([name])[0]
    else:
        names = name_index(store)
        found = (names.spelled(name) if len(names.spelled(name)) else names.exact(name)).tolist()
    if not found:
        raise EntityNotFound(name, store.name)
    if len(found) > 1:
        nodes = store.nodes(store.ids(np.array(found[:_LISTED])))
        told = [f"{node.id!r} ({node.type})" if node.type else repr(node.id) for node in nodes]
        raise NameAmbiguous(name, store.name, [*told, *(["…"] if len(found) > _LISTED else [])])
    return int(found[0])


_LISTED = 5
"""Nodes of one name that an error lists."""


class ServerNames(NameIndex):
    """The names of a graph on a server as they were read once; owners are the numbers that its store gives out."""

    def __init__(self, index: NameIndex, ids: pa.LargeStringArray, store: GraphStore) -> None:
        """Take an index whose owners are rows of `ids`."""
        super().__init__(index.table)
        self._ids, self._store = ids, store
        self._numbers: dict[int, int | None] = {}

    def _numbered(self, owners: Sequence[int]) -> list[int | None]:
        """Return the store's number of each owner; None for a node that is gone."""
        unknown = [owner for owner in dict.fromkeys(owners) if owner not in self._numbers]
        ids = [EntityId(text) for text in self._ids.take(pa.array(unknown, pa.int64())).to_pylist()]
        try:
            self._numbers |= dict(zip(unknown, self._store.numbers(ids).tolist(), strict=True))
        except EntityNotFound:
            for owner, entity in zip(unknown, ids, strict=True):
                try:
                    self._numbers[owner] = int(self._store.numbers([entity])[0])
                except EntityNotFound:
                    self._numbers[owner] = None
        return [self._numbers[owner] for owner in owners]

    def exact(self, text: str) -> npt.NDArray[np.int64]:
        """Return who bears a name equal to `text` after folding, ascending."""
        return self._known(super().exact(text))

    def spelled(self, text: str) -> npt.NDArray[np.int64]:
        """Return who bears a name that is written exactly so, ascending."""
        return self._known(super().spelled(text))

    def _known(self, owners: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        numbers = self._numbered(owners[:_NAMESAKES].tolist())
        return np.array(sorted(number for number in numbers if number is not None), np.int64)

    def bearing(self, texts: Sequence[str]) -> list[npt.NDArray[np.int64]]:
        """Return for each text the owners of an equal name; numbers are read from the store in one call."""
        self._numbered(
            [owner for text in texts for owner in super(ServerNames, self).exact(text)[:_NAMESAKES].tolist()]
        )
        return super().bearing(texts)

    def search(self, texts: Sequence[str], k: int = 3, cutoff: float = 0.6) -> list[list[NameMatch]]:
        """Return who bears the names most like each text, best first; see `NameIndex.search`."""
        return self._placed(super().search(texts, k, cutoff))

    def holding(self, texts: Sequence[str], most: int, cutoff: float = 0.6) -> list[list[NameMatch]]:
        """Return who bears the names that hold all words of each text; see `NameIndex.holding`."""
        return self._placed(super().holding(texts, most, cutoff))

    def _placed(self, found: Sequence[Sequence[NameMatch]]) -> list[list[NameMatch]]:
        """Return matches with the store's numbers."""
        numbers = iter(self._numbered([match.owner for matches in found for match in matches]))
        placed = [[(match, next(numbers)) for match in matches] for matches in found]
        return [[replace(match, owner=number) for match, number in matches if number is not None] for matches in placed]

    def closest(self, texts: Sequence[str], word: str, cutoff: float = 0.86) -> list[NameMatch | None]:
        """Return for each text the name that has most letters in common with it; see `NameIndex.closest`."""
        found = super().closest(texts, word, cutoff)
        placed = self._placed([[] if match is None else [match] for match in found])
        return [next(iter(matches), None) for matches in placed]


@dataclass(frozen=True)
class KeptNames:
    """An index of names that was read from a server."""

    names: ServerNames
    read: float
    """When, in seconds since 1970."""


def names_folder(store: GraphStore) -> Path:
    """Return the folder of a server graph's names."""
    return user_cache() / "names" / store.names_key[:24]


def kept_names(store: GraphStore) -> KeptNames | None:
    """Return the cached names of a server graph; None if there are none, or they are damaged."""
    if not store.remote:
        return None
    folder = names_folder(store)
    try:
        read = float(json.loads((folder / _READ).read_bytes())["read"])
        index = NameIndex.open(folder / NAMES, store.names_key)
        with pa.memory_map(str(folder / _IDS)) as source:
            ids = pa.ipc.open_file(source).read_all().column("id").combine_chunks()
    except (OSError, ValueError, KeyError, TypeError, GraphCorrupt, pa.ArrowException):
        return None
    return KeptNames(ServerNames(index, ids, store), read)


def keep_names(store: GraphStore, progress: Callable[[int], None] | None = None) -> ServerNames:
    """Read all names of a graph on a server, in pages, and keep an index of them in the user's cache.

    Args:
        store: a graph on a server.
        progress: called with the number of names read, after each page.

    Raises:
        ConfigError: the store has no names to read.
        QueryFailed, StoreUnavailable: errors of the store.
    """
    if not store.remote:
        raise ConfigError(f"{store.name} is no server whose names could be read")
    rows: dict[str, int] = {}
    owners: list[int] = []
    names: list[str] = []
    for page in store.named_pages():
        for entity, name in page:
            owners.append(rows.setdefault(entity, len(rows)))
            names.append(name)
        if progress is not None:
            progress(len(names))
    index = NameIndex.of(zip(owners, names, strict=True))
    ids = pa.array(rows, pa.large_string())
    folder = names_folder(store)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(folder, overwrite=True, refuse=None) as partial:
        (partial / NAMES).mkdir()
        index.write(partial / NAMES, store.names_key)
        table = pa.table({"id": ids})
        with pa.OSFile(str(partial / _IDS), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        write_file(partial / _READ, [json.dumps({"store": store.name, "read": round(time.time(), 3)}).encode()])
    return ServerNames(index, ids, store)


def server_names(store: GraphStore) -> ServerNames:
    """Return the names of a graph on a server: cached ones, else read now, with a log line."""
    kept = kept_names(store)
    if kept is not None:
        return kept.names
    _LOG.warning("%s: reading all names, once; they are kept (byokg graph names ADDRESS reads them anew)", store.name)
    began = time.monotonic()
    names = keep_names(store)
    _LOG.warning("%s: %s different names read in %.0f s", store.name, f"{len(names):,}", time.monotonic() - began)
    return names


def build_names(graph: ColumnarGraph, aliases: Sequence[str] = ()) -> NameIndex:
    """Index the names of a saved graph, and write the index into the graph's folder: completely, or not at all.

    An index that is there already is replaced.

    Args:
        graph: opened from a folder.
        aliases: see `name_entries`. Where there are none, a graph of more than 20 million nodes has no further names.

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
    with new_folder(graph.folder / NAMES, overwrite=True, refuse=None) as partial:
        names = graph.names_of_nodes()
        known_names = [*aliases, *rdf_names(graph)] if aliases or graph.node_count <= _MOST else None
        owners, further = ([], []) if known_names is None else _further_names(graph, known_names)
        if owners:
            more = pa.array(map(encodable, further), pa.large_string())
            everyone = np.concatenate((np.arange(graph.node_count), owners))
            both = pa.concat_arrays([names.cast(more.type), more])
            NameIndex.build(both, everyone).write(partial, graph.checksum or "")
        else:
            NameIndex.build_in(partial, names, graph.checksum or "")
    return NameIndex.open(graph.folder / NAMES, graph.checksum, graph.names_of_nodes())


def _further_names(graph: ColumnarGraph, aliases: Sequence[str]) -> tuple[list[int], list[str]]:
    """Return the further names of nodes, and who bears each; only nodes that may have some are looked at one by one."""
    keys = list(dict.fromkeys(aliases))
    names = graph.names_of_nodes()
    some = _matching(names, _QUALIFIED) | (_matching(names, _BY_ID) & _matching(names, r"[:_]|[a-z][A-Z]"))
    properties = graph.node_columns[1]
    for key in keys:
        for column in map(properties.column, (key, key + ALL_VALUES)):
            if column is not None:
                some[column.held()[0]] = True
    owners: list[int] = []
    further: list[str] = []
    places = np.flatnonzero(some)
    for start in range(0, len(places), _NODES_AT_ONCE):
        part = places[start : start + _NODES_AT_ONCE]
        for number, node in zip(part.tolist(), graph.nodes(graph.ids(part)), strict=True):
            for name in also_called(node, keys):
                owners.append(number)
                further.append(name)
    return owners, further


def _matching(names: Texts, pattern: str) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (
        pc.match_substring_regex(names, pattern).fill_null(False).to_numpy(zero_copy_only=False)
    )
    return found


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

_COMPARED = 20
"""Vectors of a server that are compared with the embedder's own before any is used."""

_SAME_MODEL = 0.9
"""Cosine from which on two vectors of a name are taken to come from one model, be it on other hardware."""


@dataclass(frozen=True)
class DenseFacts:
    """A saved index whose files were found to agree with their checksums."""

    embedder: str
    names: int
    layout: str
    dimensions: int


def embedded_entries(store: GraphStore) -> Iterator[tuple[int, str]]:
    """Yield number and name of each node that has a name of its own, in the order of numbers."""
    return ((number, node.name) for number, node in numbered_nodes(store) if not is_identifier(node.name))


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
        embedder: makes vectors of queries, and of names outside a saved index.
        cache: folder of cached vectors; None keeps none.
        progress: called while names are embedded.
        most: most names to embed without a saved index; None sets no limit.
        layout: of an index made in memory; None chooses by size.

    Raises:
        IndexUnusable: the saved index is damaged or that of another graph, or there is none and too many names.
        EmbedderFailed: the embedder failed.
    """
    if store.folder is not None:
        folder = index_folder(store.folder, embedder)
        if folder.exists():
            return DenseNames.open(folder, embedder, store.checksum or "")
    entries: Iterable[tuple[int, str]] = embedded_entries(store)
    if most is not None:
        entries = list(islice(entries, most + 1))
        if len(entries) > most:
            raise IndexUnusable(store.name, f"there is none for {embedder.name!r}, and more than {most:,} names")
    return DenseNames.build(entries, embedder, cache, progress, layout)


class ServerVectorIndex:
    """Names found by meaning in the vector index of a server, for which nothing is read; implements `NameSearch`.

    Scores are cosines, as those of `DenseNames`; which names are found is as good as the server's index is.
    """

    def __init__(self, store: GraphStore, embedder: Embedder) -> None:
        """Look whose vectors the index holds.

        Raises:
            ConfigError: the store has no such index, or its vectors are not those of names by this embedder.
        """
        self._store, self._embedder = store, embedder
        place = f"the vector index {store.vector_index!r} of {store.name}"
        step = "choose the embedder that made them (embedding=…), or leave vector_index out"
        some = [(name, vector) for name, vector in store.embedded(_COMPARED) if not is_identifier(name)]
        if not some:
            raise ConfigError(f"{place} holds no vector of a node with a name; leave vector_index out")
        own = embedder.encode([name for name, _ in some])
        for _, vector in some:
            if len(vector) != own.shape[1]:
                raise ConfigError(
                    f"{place} holds vectors of {len(vector)} numbers, those of {embedder.name} have "
                    f"{own.shape[1]}; {step}"
                )
        pairs = zip(own, some, strict=True)
        cosines = sorted((cosine(mine, theirs), name) for mine, (name, theirs) in pairs if mine.any())
        if cosines and cosines[len(cosines) // 2][0] < _SAME_MODEL:
            worst, name = cosines[0]
            raise ConfigError(
                f"{place} holds other vectors than those of names by {embedder.name}: for {name!r} the cosine of both "
                f"is {worst:.2f}; {step}"
            )

    def search(self, texts: Sequence[str], k: int) -> list[list[NameMatch]]:
        """Return the k best matches of each text, best first; see `DenseNames.search`."""
        at_least(1, "finds nothing", k=k)
        found: list[list[NameMatch]] = [[] for _ in texts]
        vectors = self._embedder.encode(texts)
        asked = [at for at, text in enumerate(texts) if is_comparable(text) and vectors[at].any()]
        if not asked:
            return found
        for at, hits in zip(asked, self._store.nearest(vectors[asked], k), strict=True):
            matches = [
                NameMatch(number, name, min(cosine(vectors[at], vector), 1.0))
                for number, name, vector in hits
                if not is_identifier(name)
            ]
            kept = (match for match in matches if match.score > 0)
            found[at] = sorted(kept, key=lambda match: (-match.score, match.name, match.owner))[:k]
        return found


def cosine(unit: Vectors, other: Sequence[float]) -> float:
    """Return the cosine of a unit vector with one of any length, equal on every CPU."""
    return float(exact(unit_rows([other]))[0] @ exact(unit))


def has_vector_index(store: GraphStore) -> bool:
    """True if dense lookups use a vector index of the server."""
    return store.vector_index is not None


def open_dense_lookup(store: GraphStore, embedder: Embedder) -> NameSearch:
    """Return the dense lookup of a graph's names: the vector index of its server if one is named, else `dense_names`.

    Raises:
        ConfigError: as for `ServerVectorIndex`.
        IndexUnusable, EmbedderFailed: as for `dense_names`.
    """
    return ServerVectorIndex(store, embedder) if has_vector_index(store) else dense_names(store, embedder)


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
        progress: called while names are embedded.
        layout: see `byokg.index.vectors`; None chooses by size.
        overwrite: replace an existing index.

    Raises:
        ConfigError: the graph lies in no folder.
        GraphExists: there is an index for this embedder.
        EmbedderFailed: the embedder failed; with a cache, the next call resumes.
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
    """Return the folder of the index for an embedder."""
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
    for folder in sorted(
        (path for path in (graph.folder / DENSE).iterdir() if not path.name.startswith(".")), key=in_bytes
    ):
        meta = verify_names(folder)
        if meta.made_for != graph.checksum:
            raise IndexUnusable(folder, "it was made for another graph")
        layout, dimensions = meta.vectors["layout"], meta.vectors["dimensions"]
        facts.append(DenseFacts(meta.embedder, meta.names, str(layout), int(dimensions)))
    return facts
