"""Amazon Neptune, both kinds, through boto3: Neptune Analytics and Neptune Database.

    with NeptuneStore("neptune-graph://g-abc1234567", region="eu-west-1") as store:
        store.run("MATCH (n:airport) RETURN n.code LIMIT 3")

Credentials and region come from where boto3 finds them: environment, profile, or the machine's role. Neptune has no
read-only mode for a query, so give that role nothing but reading: `neptune-graph:ReadDataViaQuery` and
`GetGraphSummary`, or `neptune-db:ReadDataViaQuery` and `GetGraphSummary` (or use a reader endpoint).
"""

from __future__ import annotations

import json
import math
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from byokg.errors import (
    ByokgError,
    ConfigError,
    QueryFailed,
    QueryInvalid,
    QueryRefused,
    QueryTimeout,
    QueryTooLarge,
    StoreUnavailable,
    import_extra,
)
from byokg.graph.servers.base import within
from byokg.graph.servers.cypher_schema import Catalogue, CypherServer, Records, ServerEdge, ServerNode, ServerPath
from byokg.graph.servers.cypher_store import CypherStore

Result = TypeVar("Result")

MAX_ANSWER_MB = 256
"""How large an answer may be, before it is parsed."""

_CONNECT_S = 5
_SPARE_S = 1.0
"""Extra lifetime of a connection beyond the query, so that the server itself can report a timeout."""

_CHUNK = 1 << 20

_TIMED_OUT = {"QUERY_TIMEOUT", "TimeLimitExceededException", "ClientTimeoutException"}
_TOO_LARGE = frozenset(
    """
    MEMORY_LIMIT_EXCEEDED INTERNAL_LIMIT_EXCEEDED QUERY_TOO_LARGE MemoryLimitExceededException
    QueryTooLargeException
    """.split()
)
_BUSY = frozenset(
    """
    ThrottlingException Throttling TooManyRequestsException RequestLimitExceeded SlowDown
    QueryLimitExceededException ConcurrentModificationException ConflictException CancelledByMaintenanceException
    InternalServerException InternalFailureException InternalFailure ServerShutdownException ServiceUnavailable
    """.split()
)
_DENIED = frozenset(
    """
    AccessDeniedException AccessDenied UnrecognizedClientException InvalidSignatureException SignatureDoesNotMatch
    IncompleteSignature ExpiredTokenException ExpiredToken InvalidClientTokenId MissingAuthenticationTokenException
    MissingAuthenticationToken
    """.split()
)


class NeptuneStore(CypherStore):
    """A graph in Amazon Neptune, of either kind. Implements `GraphStore` and `QueryStore`."""

    def __init__(
        self,
        address: str,
        region: str | None = None,
        endpoint_url: str | None = None,
        id_property: str | None = None,
        name_property: str | None = None,
        timeout_s: float = 60.0,
        timeout_hint: bool = True,
        client: Any = None,
    ) -> None:
        """Configure the store; the first call connects.

        Args:
            address: `neptune-graph://ID` for Neptune Analytics, ID being `g-` and ten characters; `neptune-db://HOST`
                or `neptune-db://HOST:PORT` for a cluster of Neptune Database, whose usual port is 8182.
            region: of the graph; None takes boto3's.
            endpoint_url: Analytics only: another address, such as that of a private endpoint.
            id_property: see `CypherStore`; None takes Neptune's ids, which users choose when they load a graph.
            name_property: see `CypherStore`.
            timeout_s: see `CypherStore`.
            timeout_hint: Database only: send the time limit with each query; engines before 1.3.2.0 do not
                support it.
            client: a boto3 client for `neptune-graph` or `neptunedata` to use instead of our own.

        Raises:
            ConfigError: the address is of neither kind, or comes with a setting of the other; or no region is
                known.
            MissingExtra: boto3 is not installed.
        """
        scheme, _, rest = address.partition("://")
        server: CypherServer
        if scheme == "neptune-graph":
            server = AnalyticsServer(rest, _Clients("neptune-graph", region, endpoint_url, client))
        elif scheme != "neptune-db":
            raise ConfigError(f"{address!r} is no Neptune address; write neptune-graph://ID or neptune-db://HOST")
        elif endpoint_url is not None:
            raise ConfigError(f"endpoint_url is for neptune-graph:// only; {address} names the endpoint itself")
        else:
            host = rest if "://" in rest else f"https://{rest}"
            host += "" if ":" in host.split("://", 1)[1] else ":8182"
            server = DatabaseServer(host, _Clients("neptunedata", region, host, client), timeout_hint)
        super().__init__(server, id_property, name_property, timeout_s)


class _Clients:
    """boto3 clients of one service: one for each time limit, because a client's is fixed."""

    def __init__(self, service: str, region: str | None, endpoint_url: str | None, given: Any) -> None:
        self._boto3 = import_extra("boto3", "neptune", "a graph in Amazon Neptune")
        self._service = service
        self._region = region
        self._endpoint_url = endpoint_url
        self._given = given
        self._session: Any = None
        self._clients: dict[int, Any] = {}
        self._lock = threading.Lock()

    def client(self, timeout_s: float) -> Any:
        """Return a client whose connections give up soon after `timeout_s`. Threads may share it."""
        if self._given is not None:
            return self._given
        seconds = math.ceil(timeout_s + _SPARE_S)
        with self._lock:
            if seconds not in self._clients:
                self._clients[seconds] = self._new(seconds)
            return self._clients[seconds]

    def _new(self, seconds: int) -> Any:
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        config = Config(
            connect_timeout=_CONNECT_S,
            read_timeout=seconds,
            retries={"total_max_attempts": 1},  # `patiently` tries again, and keeps to the time limit
            max_pool_connections=32,
            # With an address of its own, a graph is not part of the host name.
            inject_host_prefix=self._endpoint_url is None,
            user_agent_extra="byokg",
        )
        try:
            if self._session is None:
                self._session = self._boto3.session.Session(region_name=self._region)
            return self._session.client(self._service, endpoint_url=self._endpoint_url, config=config)
        except (BotoCoreError, ValueError) as error:
            raise ConfigError(
                f"boto3 cannot make a client for {self._service}: {error}; set AWS_REGION or pass a region"
            ) from error

    def close(self) -> None:
        """Close the connections of our own clients."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()


class _NeptuneServer(CypherServer):
    """Common part of both kinds of Neptune. Its plans do not reveal writes, and it has no cursor."""

    identity = "id"
    anchor = "MATCH (n) WHERE id(n) IN $ids WITH n"

    def __init__(self, clients: _Clients) -> None:
        self._clients = clients

    def ask(self, text: str, parameters: Mapping[str, Any], timeout_s: float, max_rows: int | None = None) -> Records:
        """Run one query; see `CypherServer` for the values. All rows are transferred, so the text needs a LIMIT."""
        rows = self._call(lambda client: self._rows(client, text, parameters, timeout_s), timeout_s)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise StoreUnavailable(self.name, "its answer is not a list of rows")
        columns = tuple(rows[0]) if rows else ()
        plain = [[_convert_value(row.get(column)) for column in columns] for row in rows[:max_rows]]
        return Records(columns, plain, max_rows is not None and len(rows) > max_rows)

    def labels(self, timeout_s: float) -> list[str]:
        """List the labels of Neptune's summary; by a query if there is none."""
        summary = self._summarised(timeout_s)
        return super().labels(timeout_s) if summary is None else list(summary.labels)

    def relations(self, timeout_s: float) -> list[str]:
        """List the relation types, likewise."""
        summary = self._summarised(timeout_s)
        return super().relations(timeout_s) if summary is None else list(summary.relations)

    def catalogue(self, timeout_s: float) -> Catalogue:
        """Return labels and relation types from the summary."""
        return self._summarised(timeout_s) or super().catalogue(timeout_s)

    def _summarised(self, timeout_s: float) -> Catalogue | None:
        """Return Neptune's own summary."""
        try:
            summary = self._call(self._summary, timeout_s)
            found = summary["numNodes"], summary["numEdges"], summary["nodeLabels"], summary["edgeLabels"]
        except (QueryFailed, KeyError, TypeError):
            return None
        nodes, edges, labels, relations = found
        return Catalogue(int(nodes), int(edges), tuple(labels), tuple(relations))

    def close(self) -> None:
        """Close connections."""
        self._clients.close()

    @abstractmethod
    def _rows(self, client: Any, text: str, parameters: Mapping[str, Any], timeout_s: float) -> Any:
        """Run a query, and return the service's result."""

    @abstractmethod
    def _summary(self, client: Any) -> Any:
        """Return the summary of the graph."""

    def _call(self, call: Callable[[Any], Result], timeout_s: float) -> Result:
        """Call with a client; errors come out as ours, and no later than the time limit."""
        import botocore.exceptions as boto
        from botocore.parsers import ResponseParserError

        client = self._clients.client(timeout_s)
        try:
            return within(timeout_s + _SPARE_S / 2, lambda: call(client))
        except (TimeoutError, boto.ReadTimeoutError) as error:
            raise QueryTimeout(timeout_s) from error
        except boto.ClientError as error:
            raise translate(error.response, self.name, timeout_s) from error
        except (boto.NoCredentialsError, boto.PartialCredentialsError, boto.CredentialRetrievalError) as error:
            raise ConfigError(
                f"{self.name}: boto3 finds no credentials ({type(error).__name__}); set AWS_PROFILE, or "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            ) from error
        except (boto.ParamValidationError, UnicodeEncodeError) as error:
            raise QueryInvalid(str(error)) from error
        except (boto.BotoCoreError, boto.HTTPClientError, ResponseParserError, ValueError, OSError) as error:
            raise StoreUnavailable(self.name, f"{type(error).__name__}: {error}"[:500]) from error


class AnalyticsServer(_NeptuneServer):
    """Sends query text to Neptune Analytics."""

    def __init__(self, graph: str, clients: _Clients) -> None:
        super().__init__(clients)
        self._graph = graph
        self.name = f"neptune-graph://{graph}"

    def _rows(self, client: Any, text: str, parameters: Mapping[str, Any], timeout_s: float) -> Any:
        answer = client.execute_query(
            graphIdentifier=self._graph,
            queryString=text,
            language="OPEN_CYPHER",
            parameters=dict(parameters),
            queryTimeoutMilliseconds=max(1, round(timeout_s * 1000)),
        )
        payload, deadline = answer["payload"], time.monotonic() + timeout_s + _SPARE_S
        parts, size = [], 0
        try:
            while part := payload.read(_CHUNK):
                parts.append(part)
                size += len(part)
                if size > MAX_ANSWER_MB << 20:
                    raise QueryTooLarge(f"the answer has more than {MAX_ANSWER_MB} MB")
                if time.monotonic() > deadline:
                    raise TimeoutError
        finally:
            payload.close()
        return _results(json.loads(b"".join(parts)))

    def _summary(self, client: Any) -> Any:
        return client.get_graph_summary(graphIdentifier=self._graph, mode="BASIC")["graphSummary"]


class DatabaseServer(_NeptuneServer):
    """Sends query text to a Neptune Database cluster."""

    def __init__(self, address: str, clients: _Clients, timeout_hint: bool) -> None:
        super().__init__(clients)
        self._timeout_hint = timeout_hint
        self.name = f"neptune-db://{address.split('://', 1)[1]}"

    def _rows(self, client: Any, text: str, parameters: Mapping[str, Any], timeout_s: float) -> Any:
        hint = f"USING QUERY:TIMEOUTMILLISECONDS {max(1, round(timeout_s * 1000))} " if self._timeout_hint else ""
        written = json.dumps(dict(parameters), ensure_ascii=False)
        return _results(client.execute_open_cypher_query(openCypherQuery=hint + text, parameters=written))

    def _summary(self, client: Any) -> Any:
        return client.get_propertygraph_summary(mode="basic")["payload"]["graphSummary"]


def _results(answer: Any) -> Any:
    if not isinstance(answer, dict) or "results" not in answer:
        raise ValueError("the answer has no results")
    return answer["results"]


def _convert_value(value: Any) -> Any:
    """Turn Neptune's JSON into what `CypherServer` promises."""
    if isinstance(value, dict):
        kind = value.get("~entityType")
        if kind == "node":
            return ServerNode(
                str(value["~id"]), tuple(value.get("~labels", ())), _convert_value(value.get("~properties", {}))
            )
        if kind == "relationship":
            ends = str(value["~start"]), str(value["~end"])
            return ServerEdge(
                str(value["~id"]), str(value["~type"]), *ends, _convert_value(value.get("~properties", {}))
            )
        return {key: _convert_value(item) for key, item in value.items()}
    if isinstance(value, list):
        items = [_convert_value(item) for item in value]
        return ServerPath(tuple(items[0::2]), tuple(items[1::2])) if _is_path(items) else items
    return value


def _is_path(items: Sequence[Any]) -> bool:
    """True if a list is a path: nodes and the edges that join them, by turns. Neptune writes both alike."""
    nodes, edges = items[0::2], items[1::2]
    return (
        len(items) >= 3
        and len(nodes) == len(edges) + 1
        and all(isinstance(node, ServerNode) for node in nodes)
        and all(
            isinstance(edge, ServerEdge) and {edge.start, edge.end} == {left.element, right.element}
            for left, edge, right in zip(nodes, edges, nodes[1:], strict=False)
        )
    )


def translate(response: Mapping[str, Any], place: str, timeout_s: float) -> ByokgError:
    """Translate an error response.

    Args:
        response: `response` of botocore's `ClientError`: code, message, reason and HTTP status.
        place: the server, for the message.
        timeout_s: the limit of the query.
    """
    error = response.get("Error", {})
    code = str(error.get("Code", ""))
    reason = str(response.get("reason") or error.get("reason") or "")
    message = str(
        response.get("detailedMessage") or response.get("message") or error.get("Message") or "no reason given"
    ).strip()
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if {code, reason} & _TIMED_OUT:
        return QueryTimeout(timeout_s)
    if {code, reason} & _TOO_LARGE:
        return QueryTooLarge(message)
    if code == "ReadOnlyViolationException":
        return QueryRefused(message[:60], 1, 1, f"{place} only lets this account read")
    if {code, reason} & _BUSY or status == 429:
        return StoreUnavailable(place, f"{code or status}: {message}")
    if code in _DENIED or status in (401, 403):
        return ConfigError(
            f"{place} denies access ({code}): {message}; check the credentials that boto3 finds and their policy"
        )
    if code == "ResourceNotFoundException" or status == 404:
        return ConfigError(f"{place} is not there ({code}): {message}; check the identifier and the region")
    if 400 <= status < 500:
        return QueryInvalid(message)
    if status >= 500 and not code.endswith("Exception"):
        return StoreUnavailable(place, f"{code or status}: {message}")
    return QueryFailed(f"{place} failed at the query: {message} ({code}); write it another way")
