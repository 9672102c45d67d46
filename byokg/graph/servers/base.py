"""Common base of stores behind servers: numbering of nodes and relations, and caches."""

from __future__ import annotations

import ipaddress
import re
import sys
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import TypeVar, overload
from urllib.parse import urlsplit

import numpy as np
from tenacity import (
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_before_delay,
    wait_exponential,
    wait_random,
)

from byokg.arrays import Int64
from byokg.errors import EntityNotFound, RelationNotFound, StoreUnavailable
from byokg.files import Closing
from byokg.graph.cancellation import CancelToken, check
from byokg.graph.columnar.ids import Numbering
from byokg.graph.read_cache import EdgeCache, SchemaCache
from byokg.graph.store import (
    Direction,
    EdgeBatch,
    NodeArray,
    NodeCache,
    NumberSpace,
    QueryableGraph,
    RelationArray,
    RelationCounts,
    Schema,
)
from byokg.types import EntityId, Node

Result = TypeVar("Result")

_NODES = 100_000
"""Nodes remembered."""

_EVERY_S = 5.0
"""Seconds between two lines about nodes that are being listed."""

_ENDS_S = 2.0
"""Longest wait for a background read when a store is closed."""

_EXCERPT = 300
"""Characters of a server's message that are repeated."""

_ATTEMPTS = 5
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 2.0


class NumberingStore(QueryableGraph, Closing):
    """A store that numbers nodes and relations by its server's keys, in the order of first use.

    Numbers are valid within this object only, and never change. Threads may share it.
    """

    remote = True

    def __init__(self, name: str, timeout_s: float) -> None:
        """Begin with nothing numbered.

        Args:
            name: which graph this is, for messages.
            timeout_s: how long each round trip of the traversal may take.
        """
        self._name = name
        self._timeout_s = timeout_s
        self._nodes: Numbering[str] = Numbering()
        self._relations: Numbering[str] = Numbering()
        self._space = NumberSpace(name)
        self._edge_memory = EdgeCache(self._space)
        self._node_memory = NodeCache(self._read_nodes, _NODES)
        self._schema: Schema | None = None
        self._schema_lock = threading.RLock()
        self._ahead: Future[Schema] | None = None
        self._reader: threading.Thread | None = None
        self._stop = CancelToken()
        self._tell: Callable[[str], None] = lambda text: None
        self._cache: SchemaCache | None = None
        self._listed = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name}>"

    def close(self) -> None:
        """Release connections, and stop background reads."""
        self._stop.end()
        self._let_go()
        if self._reader is not None:
            self._reader.join(_ENDS_S)

    def _let_go(self) -> None:
        """Let go of connections."""

    @property
    def name(self) -> str:
        """Return the graph's address without credentials."""
        return self._name

    @property
    def relations(self) -> Sequence[str]:
        """Return relation labels; a relation number is a position in this list, which only ever grows.

        Labels of relations met so far are available at once; all are listed only on demand.
        """
        return RelationLabels(self)

    @property
    @abstractmethod
    def met_relations(self) -> Sequence[str]:
        """Return the labels of the relations that have numbers so far."""

    @abstractmethod
    def _list_relations(self) -> None:
        """Number all relations that the graph has."""

    def _all_labels(self) -> Sequence[str]:
        """Return the labels of all relations."""
        if not self._listed:
            with self._schema_lock:
                self._list_relations()
                self._listed = True
        return self.met_relations

    def keep_schema(self, cache: SchemaCache) -> None:
        """Look for the schema in a cache before it is read, and keep it there afterwards."""
        self._cache = cache

    def holds_schema(self) -> bool:
        """True if the schema was read, or is cached and still valid, so that it needs no scan."""
        return self._schema is not None or (self._cache is not None and self._cache.has(self._cache_key()))

    def watch(self, told: Callable[[str], None]) -> None:
        """Register a callback for progress lines: the part of the schema being read, and the number of nodes listed."""
        self._tell = told

    def _counted_out(self, pages: Iterable[Sequence[Result]], ended: bool = True) -> Iterator[Sequence[Result]]:
        """Yield pages of all nodes; report their number now and then, and possibly at the end."""
        began = told = time.monotonic()
        done = 0
        for page in pages:
            yield page
            done += len(page)
            if time.monotonic() - told >= _EVERY_S:
                told = time.monotonic()
                self._tell(f"listing the nodes of {self._name}: {done:,} ({done / (told - began):,.0f}/s)")
        if ended:
            self._tell(f"listed {done:,} nodes of {self._name} in {time.monotonic() - began:.1f} s")

    def _reading(self, what: str) -> None:
        """Report the part of the schema being read."""
        self._tell(f"reading the schema of {self._name}: {what}")

    def read_ahead(self) -> None:
        """Begin to read the schema in the background, unless it is there; `schema` waits for it.

        Errors are raised by the next access to the schema.
        """
        with self._schema_lock:
            if self._ahead is not None or self._schema is not None:
                return
            self._ahead = ahead = Future[Schema]()

        def read() -> None:
            try:
                with self._stop.work():
                    ahead.set_result(self.schema())
            except BaseException as error:
                ahead.set_exception(error)

        self._reader = threading.Thread(target=read, name="byokg-schema", daemon=True)
        self._reader.start()

    def _await_schema(self) -> None:
        """Wait for a schema that is being read in the background; raise its error, once."""
        ahead = self._ahead
        if ahead is not None and threading.current_thread() is not self._reader:
            try:
                ahead.result()
            finally:
                self._ahead = None

    @abstractmethod
    def schema(self) -> Schema:
        """Return node types and relations; see `GraphStore`."""

    @abstractmethod
    def _cache_key(self) -> str:
        """Return the cache key of the schema."""

    def refresh(self) -> None:
        """Forget the schema, nodes and edges, so that they are read again on demand. Numbers stay as they are."""
        self._edge_memory.forget()
        self._node_memory = NodeCache(self._read_nodes, _NODES)
        with self._schema_lock:
            self._schema = None
            self._listed = False

    def nodes(self, ids: Collection[EntityId]) -> list[Node]:
        """Return nodes with name, type and properties, in the order of `ids`. Raises `EntityNotFound`.

        Nodes are cached, as edges are.
        """
        return self._node_memory.nodes(list(ids))

    @abstractmethod
    def _read_nodes(self, ids: Sequence[EntityId]) -> list[Node]:
        """Ask the server for nodes. Raises `EntityNotFound`."""

    def edges(
        self, nodes: NodeArray, direction: Direction = Direction.BOTH, relations: RelationArray | None = None
    ) -> EdgeBatch:
        """Return the edges touching `nodes`, optionally of some relations only. See `EdgeBatch` for the order.

        Edges are cached (see `EdgeCache`).

        Raises:
            EntityNotFound: a node number was not given out by this store.
            RelationNotFound: a relation number was not given out by this store.
        """
        self._check_nodes(nodes)
        if relations is not None:
            self._relation_keys(relations)
        return self._edge_memory.edges(nodes, direction, relations, self._fetch_edges)

    @abstractmethod
    def _fetch_edges(self, nodes: NodeArray, direction: Direction, relations: RelationArray | None) -> EdgeBatch:
        """Ask the server for edges."""

    def relation_counts(self, nodes: NodeArray) -> RelationCounts:
        """Return how many edges of each relation touch each of `nodes`, counted by the server.

        Raises:
            EntityNotFound: a node number was not given out by this store.
        """
        distinct, places = np.unique(self._check_nodes(nodes), return_inverse=True)
        keys = [self._nodes.key(number) for number in distinct.tolist()]
        position = {key: place for place, key in enumerate(keys)}
        rows = sorted(self._count_edges(keys), key=lambda row: row[1])  # so that equal requests get equal numbers
        return RelationCounts.spread(
            places,
            np.array([position[row[0]] for row in rows], np.int64),
            self._number_relations([row[1] for row in rows]),
            np.array([row[2] for row in rows], np.bool_),
            np.array([row[3] for row in rows], np.int64),
        )

    def undirected_relations(self) -> RelationArray:
        """Return no relations: servers have directed edges alone."""
        return np.empty(0, np.int64)

    def lasting_order(self, nodes: NodeArray) -> Int64:
        """Return the places of some nodes in the order of their ids."""
        return np.argsort(np.array(self.ids(nodes), object), kind="stable")

    @abstractmethod
    def _count_edges(self, keys: Sequence[str]) -> Sequence[tuple[str, str, bool, int]]:
        """Ask the server for the number of edges by node, relation, and whether they come in."""

    def ids(self, nodes: NodeArray) -> list[EntityId]:
        """Return the id of each node number. Raises `EntityNotFound` for a number that was not given out."""
        return [EntityId(self._nodes.key(number)) for number in self._check_nodes(nodes).tolist()]

    def _check_nodes(self, nodes: NodeArray) -> Int64:
        """Return node numbers as they are. Raises `EntityNotFound` for one that was not given out."""
        numbers = np.asarray(nodes, np.int64)
        outside = np.flatnonzero((numbers < 0) | (numbers >= len(self._nodes)))
        if len(outside):
            raise EntityNotFound(f"number {numbers[outside[0]]}", self._name)
        return numbers

    def _relation_keys(self, relations: RelationArray) -> list[str]:
        """Return the server's keys of relations, each once, in number order. Raises `RelationNotFound`."""
        keys = self._relations.keys()
        wanted = np.unique(np.asarray(relations, np.int64)).tolist()
        if wanted and not 0 <= wanted[0] <= wanted[-1] < len(keys):
            known = self._all_labels()
            keys = self._relations.keys()
            for number in wanted:
                if not 0 <= number < len(keys):
                    raise RelationNotFound(f"number {number}", self._name, known)
        return [keys[number] for number in wanted]

    def _number_relations(self, keys: Sequence[str]) -> Int64:
        """Return the numbers of relations; new ones are numbered in the order given."""
        return self._relations.add(keys)

    def _sampled(self, head: Int64, relation: Int64, tail: Int64, edge: Int64, order: Int64) -> EdgeBatch:
        """Return some edges in an order of their own, as `GraphStore.sample_edges` does."""
        count = len(order)
        return EdgeBatch(
            head[order],
            relation[order],
            tail[order],
            edge[order],
            np.arange(count),
            np.zeros(count, np.bool_),
            self._space,
        )


class RelationLabels(Sequence[str]):
    """The labels of a store's relations; further ones are read on demand."""

    def __init__(self, store: NumberingStore) -> None:
        self._store = store

    def __len__(self) -> int:
        return len(self._store._all_labels())

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, int) and 0 <= place < len(known := self._store.met_relations):
            return known[place]
        return self._store._all_labels()[place]

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._store._all_labels()))

    def __contains__(self, label: object) -> bool:
        return label in self._store.met_relations or label in self._store._all_labels()

    def index(self, label: str, start: int = 0, stop: int = sys.maxsize) -> int:
        """Return the number of a relation. Raises `ValueError` for one that the graph does not have."""
        known = self._store.met_relations
        labels = known if label in known else self._store._all_labels()
        return labels.index(label, start, stop)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not isinstance(other, str) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


def patiently(call: Callable[[float], Result], timeout_s: float, met: bool = False) -> Result:
    """Call until it works, with growing pauses after `StoreUnavailable`, for at most `timeout_s` in all.

    Args:
        call: gets the seconds that are left.
        timeout_s: when to give up.
        met: the server has answered before, so that it is worth waiting for: it may be starting again.
    """
    deadline = time.monotonic() + timeout_s
    attempts = Retrying(
        retry=retry_if_exception_type(StoreUnavailable),
        wait=wait_exponential(_FIRST_PAUSE_S, _LONGEST_PAUSE_S) + wait_random(0, _FIRST_PAUSE_S),
        stop=stop_before_delay(timeout_s) if met else stop_after_attempt(_ATTEMPTS) | stop_before_delay(timeout_s),
        reraise=True,
    )

    def once() -> Result:
        check()
        return call(max(deadline - time.monotonic(), 0.001))

    return attempts(once)


def within(seconds: float, work: Callable[[], Result]) -> Result:
    """Run a function in a thread of its own, and give up after some seconds.

    For clients whose timeouts count from the last byte received: a server that sends one now and then would hold us for
    ever. An abandoned call ends with its connection.

    Raises:
        TimeoutError: it took longer.
    """
    outcome: Future[Result] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome.result(seconds)


def is_loopback(host: str) -> bool:
    """True if a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def bare(url: str) -> str:
    """Return an address without its secrets: credentials and parameters."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.partition("?")[0].rpartition("@")[2]
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def excerpt(body: bytes) -> str:
    """Return the start of a server's message, on one line and without markup."""
    text = re.sub(r"<[^>]*>", " ", body[:4000].decode("utf-8", "replace"))
    return " ".join(text.split())[:_EXCERPT]
