"""Neo4j, and other servers with the Bolt protocol, through the official driver.

    with Neo4jStore("neo4j://localhost:7687", id_property="id") as store:
        store.run("MATCH (m:Movie) RETURN m.title LIMIT 3")

Connections come from the driver's asynchronous half, in one background thread: it can drop a connection in the middle
of a result, so that a timeout holds even when the server keeps none.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

from byokg.errors import (
    ConfigError,
    QueryFailed,
    QueryInvalid,
    QueryRefused,
    QueryTimeout,
    QueryTooLarge,
    StoreUnavailable,
    import_extra,
)
from byokg.graph.servers.bolt_values import BoltValues, translate
from byokg.graph.servers.cypher_schema import CypherServer, PropertyNames, Records
from byokg.graph.servers.cypher_store import CypherStore

if TYPE_CHECKING:
    import neo4j

Result = TypeVar("Result")

_LOG = logging.getLogger(__name__)

SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")

_CONNECT_S = 5.0
_CLOSE_S = 0.5
_PAGE = 10_000
_LISTED = 2_000_000
"""Nodes or edges that a server may hold as one list."""
_PLANS = 1000
"""Query texts whose plan is remembered as harmless."""


class Neo4jStore(CypherStore):
    """A graph in Neo4j, or in another server with Bolt.

    Queries run in read access mode. On Neo4j itself, the planner also has to confirm that a query of `run` only reads;
    other servers enforce neither, so give them an account with read permission only.
    """

    def __init__(
        self,
        uri: str,
        database: str | None = None,
        username: str | None = None,
        password: str | None = None,
        id_property: str | None = None,
        name_property: str | None = None,
        timeout_s: float = 60.0,
        fetch_size: int = 1000,
        vector_index: str | None = None,
    ) -> None:
        """Configure the store; the first call connects.

        Args:
            uri: `neo4j://host:port`, `bolt://host:port`, either with `+s` for TLS or `+ssc` for TLS with a
                self-signed certificate; `/name` after the port chooses a database.
            database: the database, if it is not in the URI; None is the account's own.
            username: the account; None takes NEO4J_USERNAME from the environment.
            password: its password; None takes NEO4J_PASSWORD from the environment.
            id_property: see `CypherStore`.
            name_property: see `CypherStore`.
            timeout_s: see `CypherStore`.
            fetch_size: rows that the server sends at once.
            vector_index: see `CypherStore`.

        Raises:
            ConfigError: the URI has no scheme of Bolt, or holds a password.
            MissingExtra: the driver is not installed.
        """
        server = BoltServer(uri, database, username, password, fetch_size)
        super().__init__(server, id_property, name_property, timeout_s, vector_index)


class BoltServer(CypherServer):
    """Sends query text over Bolt; implements `CypherServer`."""

    identity = "elementId"
    anchor = "UNWIND $ids AS i MATCH (n) WHERE elementId(n) = i"
    samples_at_once = True

    def __init__(
        self,
        uri: str,
        database: str | None = None,
        username: str | None = None,
        password: str | None = None,
        fetch_size: int = 1000,
    ) -> None:
        """See `Neo4jStore`."""
        self._neo4j = neo4j = import_extra("neo4j", "neo4j", "a graph behind a Bolt address")
        self._values = BoltValues(neo4j)
        _keep_from_terminal()
        self._address, in_uri = _split(uri)
        if database and in_uri and database != in_uri:
            raise ConfigError(f"the address {uri} names database {in_uri!r}, not {database!r}; name one of them")
        self._database = database or in_uri or os.environ.get("NEO4J_DATABASE") or None
        self.name = f"{self._address}/{self._database or ''}".rstrip("/")
        user = username if username is not None else os.environ.get("NEO4J_USERNAME")
        secret = password if password is not None else os.environ.get("NEO4J_PASSWORD")
        self._auth = None if user is None and secret is None else neo4j.basic_auth(user or "neo4j", secret or "")
        self._fetch_size = fetch_size
        self._lock = threading.Lock()
        self._background: _Background | None = None
        self._agent: str | None = None
        self._harmless: OrderedDict[str, None] = OrderedDict()

    def __repr__(self) -> str:
        return f"<BoltServer {self.name}>"

    # What CypherServer asks

    def ask(self, text: str, parameters: Mapping[str, Any], timeout_s: float, max_rows: int | None = None) -> Records:
        """Run one query in read access mode; see `CypherServer` for the values."""
        columns, rows = self._run(lambda: self._fetch(text, parameters, timeout_s, max_rows), timeout_s)
        plain = [[self._values.plain(value) for value in row] for row in rows[:max_rows]]
        return Records(columns, plain, max_rows is not None and len(rows) > max_rows)

    def agent(self, timeout_s: float) -> str:
        """Return the server's own name."""
        if self._agent is None:
            self._run(self._meet_server, timeout_s)
        return self._agent or ""

    def finds_shortest_paths(self, timeout_s: float) -> bool:
        """True of Neo4j and ArcadeDB."""
        return finds_shortest_paths(self.agent(timeout_s))

    def finds_reached(self, timeout_s: float) -> bool:
        """True of Neo4j."""
        return planner_is_trusted(self.agent(timeout_s))

    def check_plan(self, text: str, parameters: Mapping[str, Any], timeout_s: float) -> None:
        """Ask a genuine Neo4j whether the query only reads, once for each text."""
        agent = self.agent(timeout_s)
        with self._lock:
            if not planner_is_trusted(agent) or text in self._harmless:
                return
        try:
            summary = self._run(lambda: self._explain(text, parameters, timeout_s), timeout_s)
        except QueryInvalid as error:
            raise QueryInvalid(_without_explain(str(error))) from error
        objection = planner_objection(agent, summary.query_type)
        if objection is not None:
            raise QueryRefused(text.strip().split("\n")[0][:60], 1, 1, objection)
        with self._lock:
            self._harmless[text] = None
            if len(self._harmless) > _PLANS:
                self._harmless.popitem(last=False)

    def node_pages(self, columns: Sequence[str], timeout_s: float) -> Iterator[Sequence[Sequence[Any]]]:
        """Yield some expressions of each node `n`, from one cursor; `timeout_s` is for each page.

        A server sends lists many times as fast as rows, but holds them first: only if there are not too many. Where it
        has a time limit of its own that a cursor over everything cannot keep to, all nodes come once more, by a query
        for each page.
        """
        try:
            ((count,),) = self.ask("MATCH (n) RETURN count(n) AS nodes", {}, timeout_s).rows
            if count <= _LISTED:
                yield from self._list_pages("MATCH (n)", columns, timeout_s)
            else:
                yield from self._pages(f"MATCH (n) RETURN {', '.join(columns)}", _PAGE, timeout_s)
        except (QueryTimeout, QueryTooLarge):
            yield from super().node_pages(columns, timeout_s)

    def edge_pages(self, columns: Sequence[str], timeout_s: float) -> Iterator[Sequence[Sequence[Any]]]:
        """Yield some expressions of each edge; see `CypherServer`."""
        ((count,),) = self.ask("MATCH ()-[r]->() RETURN count(r) AS edges", {}, timeout_s).rows
        if count > _LISTED:
            raise QueryTooLarge(f"{count:,} edges are too many for one list")
        yield from self._list_pages("MATCH (a)-[r]->(b)", columns, timeout_s)

    def _list_pages(self, pattern: str, columns: Sequence[str], timeout_s: float) -> Iterator[Sequence[Sequence[Any]]]:
        """Let the server collect all matches in one list, and read it in pieces."""
        collected = f"{pattern} WITH collect([{', '.join(columns)}]) AS l"
        text = f"{collected} UNWIND range(0, size(l) - 1, {_PAGE}) AS k RETURN l[k..k + {_PAGE}] AS part"
        for ((page,),) in self._pages(text, 1, timeout_s):
            yield page

    def _listed(self, record: Any) -> list[Any]:
        return [self._values.plain(value) for value in tuple.__iter__(record)]

    def _pages(self, text: str, size: int, timeout_s: float) -> Iterator[Sequence[Sequence[Any]]]:
        """Read the records of a query from one cursor, so many at once."""
        session, result = self._run(lambda: self._open(text), timeout_s)
        background = self._background
        try:
            while page := self._run(lambda: result.fetch(size), timeout_s):
                yield [self._listed(record) for record in page]
                if self._background is not background:
                    raise StoreUnavailable(self.name, "it was closed while its nodes were being listed")
        finally:
            if self._background is background:
                self._run(lambda: _close(session), timeout_s)

    def labels(self, timeout_s: float) -> list[str]:
        """List the labels, by the server's own list if it has one."""
        return self._own_list(
            "CALL db.labels() YIELD label RETURN collect(label) AS labels", timeout_s
        ) or super().labels(timeout_s)

    def relations(self, timeout_s: float) -> list[str]:
        """List the relation types, likewise."""
        text = "CALL db.relationshipTypes() YIELD relationshipType RETURN collect(relationshipType) AS types"
        return self._own_list(text, timeout_s) or super().relations(timeout_s)

    def _own_list(self, text: str, timeout_s: float) -> list[str]:
        try:
            return [name for (names,) in self.ask(text, {}, timeout_s).rows for name in names]
        except QueryTimeout:
            raise
        except QueryFailed:
            return []

    def property_names(self, timeout_s: float) -> PropertyNames | None:
        """List all property names with the procedures that a genuine Neo4j has; they look at the whole graph."""
        text = "CALL db.schema.nodeTypeProperties() YIELD nodeLabels, propertyName RETURN nodeLabels, propertyName"
        nodes = self.ask(text, {}, timeout_s).rows
        text = "CALL db.schema.relTypeProperties() YIELD relType, propertyName RETURN relType, propertyName"
        return listed_properties(nodes, self.ask(text, {}, timeout_s).rows)

    def close(self) -> None:
        """Close connections and end the background thread; using the server again starts it anew."""
        with self._lock:
            background, self._background = self._background, None
        if background is not None:
            background.close()

    # Calls into the background thread

    def _run(self, start: Callable[[], Coroutine[Any, Any, Result]], timeout_s: float) -> Result:
        """Run a coroutine in the background thread, for so long; errors come out as ours."""
        with self._lock:
            if self._background is None:
                self._background = _Background(self._connect)
            background = self._background
        began = time.monotonic()
        try:
            return background.run(start(), timeout_s)
        except TimeoutError as error:
            raise QueryTimeout(timeout_s) from error
        except (self._neo4j.exceptions.Neo4jError, self._neo4j.exceptions.DriverError) as error:
            raise translate(error, self.name, round(time.monotonic() - began, 1)) from error
        except UnicodeEncodeError as error:
            raise QueryInvalid(f"half of a character cannot be sent: {error}") from error
        except (OSError, EOFError) as error:
            raise StoreUnavailable(self.name, str(error)) from error

    def _connect(self) -> neo4j.AsyncDriver:
        try:
            driver: neo4j.AsyncDriver = self._neo4j.AsyncGraphDatabase.driver(
                self._address,
                auth=self._auth,
                connection_timeout=_CONNECT_S,
                max_transaction_retry_time=0,  # `patiently` tries again
                telemetry_disabled=True,
            )
            return driver
        except (self._neo4j.exceptions.DriverError, ValueError) as error:
            raise ConfigError(f"the driver cannot use the address {self._address}: {error}") from error

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[neo4j.AsyncSession]:
        session = self._new_session()
        try:
            yield session
        except asyncio.CancelledError:
            session.cancel()  # the connection is dropped, in the middle of whatever the server was saying
            raise
        except BaseException:
            await _close(session)
            raise
        await _close(session)

    def _new_session(self) -> neo4j.AsyncSession:
        assert self._background is not None
        return self._background.driver.session(
            database=self._database, default_access_mode=self._neo4j.READ_ACCESS, fetch_size=self._fetch_size
        )

    async def _meet_server(self) -> None:
        """Read the server's own name, before anything else is sent. Raises `ConfigError` for an impostor."""
        if self._agent is not None:
            return
        async with self._session() as session:
            result = await session.run("RETURN 1 AS one")
            await result.fetch(1)
            summary = await result.consume()
        agent = str(summary.server.agent)
        if pretends(agent, summary.query_type):
            raise ConfigError(
                f"{self.name} calls itself {agent} and is no Neo4j (FalkorDB does so): it may put parameters into the "
                "text of a query, where a name can become a query of its own, and run what it is asked to plan; copy "
                "its graph to CSV or JSON lines, and give these to byokg graph build"
            )
        self._agent = agent

    async def _fetch(
        self, text: str, parameters: Mapping[str, Any], timeout_s: float, max_rows: int | None
    ) -> tuple[tuple[str, ...], list[list[Any]]]:
        """Run a query and return columns and rows, one more than `max_rows` if there are more."""
        await self._meet_server()
        async with self._session() as session:
            result = await session.run(self._neo4j.Query(text, timeout=timeout_s), dict(parameters))
            records = await result.fetch(sys.maxsize if max_rows is None else max_rows + 1)
            return tuple(result.keys()), [list(tuple.__iter__(record)) for record in records]

    async def _explain(self, text: str, parameters: Mapping[str, Any], timeout_s: float) -> neo4j.ResultSummary:
        async with self._session() as session:
            result = await session.run(self._neo4j.Query(f"EXPLAIN {text}", timeout=timeout_s), dict(parameters))
            return await result.consume()

    async def _open(self, text: str) -> tuple[neo4j.AsyncSession, neo4j.AsyncResult]:
        await self._meet_server()
        session = self._new_session()
        try:
            return session, await session.run(text)
        except BaseException:
            session.cancel()
            raise


class _Background:
    """A thread with an event loop, and a driver that lives in it."""

    def __init__(self, connect: Callable[[], neo4j.AsyncDriver]) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="bolt", daemon=True)
        self._thread.start()

        async def start() -> neo4j.AsyncDriver:
            return connect()

        try:
            self.driver = self.run(start(), _CONNECT_S)
        except BaseException:
            self._end()
            raise

    def run(self, work: Coroutine[Any, Any, Result], timeout_s: float) -> Result:
        """Run a coroutine and wait for it. Raises `TimeoutError` when it takes longer."""

        async def limited() -> Result:
            async with asyncio.timeout(timeout_s):
                return await work

        future = asyncio.run_coroutine_threadsafe(limited(), self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # when this thread was interrupted while it waited
            raise

    def close(self) -> None:
        """Close connections and end the thread."""
        try:
            self.run(self.driver.close(), _CONNECT_S)
        except TimeoutError:
            pass  # the connections end with the loop
        finally:
            self._end()

    def _end(self) -> None:
        self.run(self._loop.shutdown_default_executor(), _CONNECT_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _close(session: neo4j.AsyncSession) -> None:
    """Close a session; drop the connection if the server still has much to send."""
    try:
        async with asyncio.timeout(_CLOSE_S):
            await session.close()
    except TimeoutError:
        session.cancel()


class _ToOurLog(logging.Handler):
    """Passes the driver's messages on to our own log, at a level that is hidden by default."""

    def emit(self, record: logging.LogRecord) -> None:
        _LOG.debug("%s", record.getMessage())


def _keep_from_terminal() -> None:
    """Let the driver's notifications and its notes on connections not appear among answers."""
    driver = logging.getLogger("neo4j")
    if not any(isinstance(handler, _ToOurLog) for handler in driver.handlers):
        driver.addHandler(_ToOurLog())
    driver.propagate = False


def _split(uri: str) -> tuple[str, str | None]:
    """Return the address that the driver takes, and the database that the path names."""
    try:
        parts = urlsplit(uri)
        host, port, user = parts.hostname, parts.port, parts.username or parts.password
    except ValueError as error:
        raise ConfigError(f"the Bolt address cannot be read: {error}; write it as neo4j://host:7687/database") from None
    if user is not None:
        raise ConfigError(
            f"the Bolt address for {host} holds credentials; set NEO4J_USERNAME and NEO4J_PASSWORD instead"
        )
    database = unquote(parts.path.strip("/"))
    if parts.scheme not in SCHEMES or not host or "/" in database or parts.query or parts.fragment:
        raise ConfigError(f"{uri!r} is no Bolt address; write it as neo4j://host:7687/database")
    place = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{place}" + (f":{port}" if port else ""), database or None


_PLACE = re.compile(r"\(line 1, column (\d+) \(offset: (\d+)\)\)")


def _without_explain(message: str) -> str:
    """Count columns as in the query, in front of which stood `EXPLAIN `."""
    before = len("EXPLAIN ")
    moved = _PLACE.sub(
        lambda place: f"(line 1, column {int(place[1]) - before} (offset: {int(place[2]) - before}))", message
    )
    quoted_at = moved.find('"EXPLAIN ')
    if quoted_at < 0:
        return moved
    lines = moved.split("\n")
    return "\n".join(
        line.replace('"EXPLAIN ', '"', 1) if '"EXPLAIN ' in line else line.removeprefix(" " * before) for line in lines
    )


def planner_is_trusted(agent: str) -> bool:
    """True if a server's own name is that of Neo4j; others answer `EXPLAIN` without meaning."""
    return agent.startswith("Neo4j/") and "compatible" not in agent.casefold()


def pretends(agent: str, query_type: str | None) -> bool:
    """True if a server uses Neo4j's name without Neo4j's classification of queries."""
    return planner_is_trusted(agent) and query_type is None


def finds_shortest_paths(agent: str) -> bool:
    """True if a server's `allShortestPaths` is known to equal a step-by-step search, by its own name."""
    return planner_is_trusted(agent) or "ArcadeDB" in agent


def planner_objection(agent: str, query_type: str | None) -> str | None:
    """Return the reason why a query's plan forbids its execution; None if it only reads, or the planner is not
    trusted."""
    if query_type == "r" or not planner_is_trusted(agent):
        return None
    does = {"rw": "reads and writes", "w": "writes", "s": "asks for more than the graph's data"}
    return f"Neo4j's planner says that it {does.get(query_type or '', 'may do more than read')}; only read"


def listed_properties(nodes: Sequence[Sequence[Any]], edges: Sequence[Sequence[Any]]) -> PropertyNames:
    """Sort what Neo4j's procedures list.

    Args:
        nodes: labels, and one property of nodes with just these labels, or None for nodes without any.
        edges: a relation type as ``:`type` `` with backticks, and one property or None.
    """
    of_labels: dict[str, set[str]] = {}
    for labels, name in nodes:
        for label in labels or [""]:
            of_labels.setdefault(label, set()).update([] if name is None else [name])
    of_relations: dict[str, set[str]] = {}
    for written, name in edges:
        relation = written.removeprefix(":")
        if relation.startswith("`"):
            relation = relation[1:-1].replace("``", "`")
        of_relations.setdefault(relation, set()).update([] if name is None else [name])
    return PropertyNames(
        {label: frozenset(names) for label, names in of_labels.items()},
        {relation: frozenset(names) for relation, names in of_relations.items()},
    )
