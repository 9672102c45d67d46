"""Caches of graph reads: recent edges and, between runs, schemas.

A question walks out of the same few nodes many times: once to enumerate metapaths, then along each of the best, and
every stage looks up the same nodes. Over a network each of these reads costs a round trip.

Schemas of servers are kept in the user's cache folder, one file for each graph, so that opening a large graph does not
count it again. A file holds the schema, the store's name (which never holds credentials) and a fingerprint that is
cheap to read: the numbers of nodes and edges, and the labels and relation types. It is valid while the fingerprint is
the same, or for a day if a server cannot give one. An edit that leaves all counts as they are goes unnoticed:
`byokg graph info GRAPH --refresh-schema` reads anew.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from byokg.arrays import Int64
from byokg.files import user_cache, write_file
from byokg.graph.store import Direction, EdgeBatch, NodeArray, NumberSpace, RelationArray, Schema, schema_from_json

Ask = Callable[[NodeArray, Direction, RelationArray | None], EdgeBatch]
"""Fetches edges, as `GraphStore.edges` does."""

_EVERY = -1
"""Stands for all relations."""

_Key = tuple[int, bool, int]
"""A node, whether its incoming edges are meant, and a relation or `_EVERY`."""

_NONE = np.empty((4, 0), np.int64)


class EdgeCache:
    """Cache of nodes' edges, by direction and relation; evicts the least recently used.

    Threads may share it. Changes on a server stay invisible until `forget`.

    Args:
        space: numbering of nodes and edges.
        max_edges: largest number of edges, at 32 bytes each.
    """

    def __init__(self, space: NumberSpace, max_edges: int = 1_000_000) -> None:
        self._space = space
        self._max_edges = max_edges
        self._held: OrderedDict[_Key, Int64] = OrderedDict()
        self._count = 0
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._held.clear()
            self._count = 0

    def edges(self, nodes: NodeArray, direction: Direction, relations: RelationArray | None, ask: Ask) -> EdgeBatch:
        """Return the edges touching `nodes`, fetching only those of nodes outside the cache.

        Args:
            nodes: numbers that the store gave out.
            direction: as for `GraphStore.edges`.
            relations: likewise. Cached are edges of all relations or of one; several are fetched each time.
            ask: fetches missing edges.
        """
        asked = np.asarray(nodes, np.int64)
        ways = {Direction.OUT: (False,), Direction.IN: (True,), Direction.BOTH: (False, True)}[direction]
        wanted = None if relations is None else np.unique(np.asarray(relations, np.int64))
        kept = _EVERY if wanted is None else int(wanted[0]) if len(wanted) == 1 else None
        columns, missing = [_NONE], []
        for node in np.unique(asked).tolist():
            held = [self._find(node, way, kept) for way in ways]
            known = [edges for edges in held if edges is not None]
            if len(known) == len(ways):
                columns += known
            else:
                missing.append(node)
        if missing:
            batch = ask(np.array(missing, np.int64), direction, relations)
            fetched = np.stack([np.asarray(each, np.int64) for each in (batch.head, batch.relation, batch.tail)])
            fetched = np.concatenate((fetched, batch.edge[None]))
            columns.append(fetched)
            if kept is not None:
                for way in ways:
                    rows = np.flatnonzero(batch.inverse == way)
                    bounds = np.searchsorted(batch.origin[rows], np.arange(len(missing) + 1)).tolist()
                    for place, node in enumerate(missing):
                        self._hold((node, way, kept), fetched[:, rows[bounds[place] : bounds[place + 1]]])
        found = np.concatenate(columns, axis=1)
        if wanted is not None:
            found = found[:, np.isin(found[1], wanted)]
        _, first = np.unique(found[3], return_index=True)  # an edge between two of the nodes is found from both
        head, relation, tail, edge = found[:, first]
        return around(asked, direction, head, relation, tail, edge, self._space)

    def _find(self, node: int, way: bool, relation: int | None) -> Int64 | None:
        """Return the edges of a node as columns head, relation, tail, edge: perhaps those of all its relations."""
        with self._lock:
            for key in ((node, way, _EVERY), (node, way, relation)):
                if key in self._held:
                    self._held.move_to_end(key)  # type: ignore[arg-type]
                    return self._held[key]  # type: ignore[index]
        return None

    def _hold(self, key: _Key, edges: Int64) -> None:
        with self._lock:
            before = self._held.pop(key, None)
            self._held[key] = edges.copy()  # and not a view, which would keep the whole answer
            self._count += _size(edges) - (0 if before is None else _size(before))
            while self._count > self._max_edges:
                self._count -= _size(self._held.popitem(last=False)[1])


def _size(edges: Int64) -> int:
    """Return the weight of an entry: a node without edges takes memory too."""
    return int(edges.shape[1]) + 4


def around(
    asked: Int64, direction: Direction, head: Int64, relation: Int64, tail: Int64, edge: Int64, space: NumberSpace
) -> EdgeBatch:
    """Give each node the edges that touch it, in the order of `EdgeBatch`.

    Args:
        asked: (N,) node numbers.
        direction: of the edges, seen from them.
        head: (E,) parallel to `relation`, `tail` and `edge`: every edge once.
        relation: see `head`.
        tail: see `head`.
        edge: see `head`.
        space: numbering of nodes and edges.
    """
    picked, origins, inverses = [], [], []
    for inverse, end in ((False, head), (True, tail)):
        if direction is (Direction.OUT if inverse else Direction.IN):
            continue
        order = np.argsort(end, kind="stable")
        start, stop = (np.searchsorted(end[order], asked, side) for side in ("left", "right"))
        counts = stop - start
        place = np.arange(counts.sum()) + np.repeat(start - (counts.cumsum() - counts), counts)
        picked.append(order[place])
        origins.append(np.repeat(np.arange(len(asked)), counts))
        inverses.append(np.full(len(place), inverse))
    rows, origin, backward = np.concatenate(picked), np.concatenate(origins), np.concatenate(inverses)
    other = np.where(backward, head[rows], tail[rows])
    order = np.lexsort((edge[rows], other, relation[rows], backward, origin))
    rows = rows[order]
    return EdgeBatch(head[rows], relation[rows], tail[rows], edge[rows], origin[order], backward[order], space)


FORMAT, VERSION = "byokg-schema", 1

UNCHECKED_S = 24 * 3600.0
"""How long a schema counts whose graph has no fingerprint."""


@dataclass(frozen=True)
class CachedSchema:
    """A schema as it is kept."""

    schema: Schema | None
    """None if only `extra` is kept."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further data that the store needs to use it."""


class SchemaCache:
    """Keeps schemas in a folder; several processes may use it at the same time.

    Args:
        folder: made when something is kept; None is `schemas` in the user's cache folder.
        refresh: find nothing, so that everything is read and kept anew.
        clock: seconds since 1970.
    """

    def __init__(
        self, folder: Path | None = None, refresh: bool = False, clock: Callable[[], float] = time.time
    ) -> None:
        self.folder = folder or user_cache() / "schemas"
        self._refresh = refresh
        self._clock = clock

    def find(self, key: str, fingerprint: str | None) -> CachedSchema | None:
        """Return the cached record of a key for this fingerprint; None if there is none, or it cannot be read."""
        if self._refresh:
            return None
        try:
            content = json.loads(self._file(key).read_bytes())
            if (content["format"], content["version"], content["fingerprint"]) != (FORMAT, VERSION, fingerprint):
                return None
            if fingerprint is None and not 0 <= self._clock() - content["read"] <= UNCHECKED_S:
                return None
            schema = content["schema"]
            return CachedSchema(None if schema is None else schema_from_json(schema), dict(content["extra"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None  # not there, torn, or of another version: it is read and kept again

    def has(self, key: str) -> bool:
        """True if a record exists under a key, valid or not."""
        return not self._refresh and self._file(key).exists()

    def keep(self, key: str, store: str, fingerprint: str | None, kept: CachedSchema) -> None:
        """Keep a schema in place of an earlier one. A folder that cannot be written keeps nothing.

        Args:
            key: identity of the graph; only a hash of it is written.
            store: name of the store, for people who look into the folder.
            fingerprint: see the top of this file; None if the server gives none.
            kept: record for `find`.
        """
        content = {
            "format": FORMAT,
            "version": VERSION,
            "store": store,
            "fingerprint": fingerprint,
            "read": round(self._clock(), 3),
            "extra": dict(kept.extra),
            "schema": None if kept.schema is None else asdict(kept.schema),
        }
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_file(self._file(key), [json.dumps(content).encode()], mode=0o600)

    def _file(self, key: str) -> Path:
        return self.folder / f"{hashlib.sha256(key.encode('utf-8', 'backslashreplace')).hexdigest()[:24]}.json"


def digest(*parts: object) -> str:
    """Return a SHA-256 of values as JSON."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()
