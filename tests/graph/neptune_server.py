"""A local server that speaks Neptune's wire formats, and answers queries with a real openCypher engine behind it.

It checks signatures as AWS does, and misbehaves on demand. What it cannot show is what only Neptune does: see the
notes at `NeptuneServer`.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

ACCESS_KEY, SECRET_KEY = "AKIDTESTTESTTESTTEST", "only-for-tests/secret"
REGION = "eu-test-1"

_HINT = re.compile(r"^USING QUERY:TIMEOUTMILLISECONDS (\d+) ")
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/\d+/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request, "
    r"SignedHeaders=(?P<headers>[^,]+), Signature=(?P<signature>[0-9a-f]+)"
)


@dataclass(frozen=True)
class Fault:
    """What to answer instead of a result."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    cut: bool = False
    """Close the connection before everything that was promised is sent."""

    @classmethod
    def error(cls, status: int, code: str, **members: str) -> Fault:
        """Answer with an error in the shape that both services use."""
        return cls(status, json.dumps({"code": code, **members}).encode(), {"x-amzn-ErrorType": code})


class NeptuneServer:
    """Serves both `neptune-graph` (`/queries`, `/summary`) and `neptunedata` (`/opencypher`, `/propertygraph/…`).

    Differs from Neptune: `id(n)` is looked up in the engine behind, so what Neptune does with a plan or an index is
    not seen; the engine behind knows functions that Neptune lacks; statistics are always fresh.
    """

    def __init__(self, query: Callable[..., list[Any]], own_ids: bool) -> None:
        """Start to listen.

        Args:
            query: runs text with parameters in the engine behind, and returns the driver's records.
            own_ids: take the property `id` of a node for its Neptune id, as users do when they load a graph.
        """
        self.query = query
        self.own_ids = own_ids
        self.faults: deque[Fault] = deque()
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.secret = SECRET_KEY
        self.statistics = True
        self.pool = ThreadPoolExecutor(16)
        self._ids: dict[str, str] = {}
        server = self

        class Handler(_Handler):
            neptune = server

        self._http = _Http(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def close(self) -> None:
        """Stop listening."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        self.pool.shutdown(wait=False, cancel_futures=True)

    def rows(self, text: str, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Run a query in the engine behind, and write what it gives as Neptune does."""
        given = r"\1.id" if self.own_ids else r"elementId(\1)"
        text = re.sub(r"\bid\((?!r\))(\w+)\)", given, text).replace("id(r)", "elementId(r)")
        if self.own_ids:
            text = text.replace("keys(n)", "[key IN keys(n) WHERE key <> 'id']")
        return [{key: self._json(value) for key, value in record.items()} for record in self.query(text, **parameters)]

    def summary(self) -> dict[str, Any]:
        """Write the summary that Neptune keeps of a graph."""
        labels = [record[0] for record in self.query("MATCH (n) UNWIND labels(n) AS l RETURN DISTINCT l ORDER BY l")]
        relations = [record[0] for record in self.query("MATCH ()-[r]->() RETURN DISTINCT type(r) AS t ORDER BY t")]
        return {
            "numNodes": self.query("MATCH (n) RETURN count(n)")[0][0],
            "numEdges": self.query("MATCH ()-[r]->() RETURN count(r)")[0][0],
            "numNodeLabels": len(labels),
            "numEdgeLabels": len(relations),
            "nodeLabels": labels,
            "edgeLabels": relations,
        }

    def _json(self, value: Any) -> Any:
        from neo4j.graph import Node, Path, Relationship

        if isinstance(value, Node):
            hidden = {"id"} if self.own_ids else set()
            return {
                "~id": self._id(value.element_id),
                "~entityType": "node",
                "~labels": sorted(value.labels),
                "~properties": {key: item for key, item in value.items() if key not in hidden},
            }
        if isinstance(value, Relationship):
            assert value.start_node is not None and value.end_node is not None
            return {
                "~id": value.element_id,
                "~entityType": "relationship",
                "~start": self._id(value.start_node.element_id),
                "~end": self._id(value.end_node.element_id),
                "~type": value.type,
                "~properties": dict(value),
            }
        if isinstance(value, Path):
            walked: list[Any] = [self._json(value.nodes[0])]
            for edge, node in zip(value.relationships, value.nodes[1:], strict=True):
                walked += [self._json(edge), self._json(node)]
            return walked
        if isinstance(value, list):
            return [self._json(item) for item in value]
        if isinstance(value, dict):
            return {key: self._json(item) for key, item in value.items()}
        return value

    def _id(self, element: str) -> str:
        if not self.own_ids:
            return element
        if element not in self._ids:
            found = self.query("UNWIND [$element] AS e MATCH (n) WHERE elementId(n) = e RETURN n.id", element=element)
            self._ids[element] = found[0][0]
        return self._ids[element]


class _Http(ThreadingHTTPServer):
    """Says nothing when a client goes away before it is answered, which some tests want it to."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing."""


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    neptune: NeptuneServer
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet for each answer

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def _answer(self, body: bytes) -> None:
        neptune, path = self.neptune, urlsplit(self.path).path
        content: dict[str, Any] = json.loads(body) if body else {key: found[0] for key, found in self._asked().items()}
        neptune.requests.append((path, content))
        if not self._signed(body):
            self._send(Fault.error(403, "InvalidSignatureException", message="The signature does not match."))
        elif neptune.faults:
            self._send(neptune.faults.popleft())
        elif path == "/queries":
            self._query(content["query"], content.get("parameters", {}), content["queryTimeoutMilliseconds"], True)
        elif path == "/opencypher":
            hint = _HINT.match(content["query"])
            limit_ms = int(hint[1]) if hint else 120_000
            self._query(_HINT.sub("", content["query"]), json.loads(content["parameters"]), limit_ms, False)
        elif path in ("/summary", "/propertygraph/statistics/summary") and not neptune.statistics:
            self._send(Fault.error(400, "StatisticsNotAvailableException", detailedMessage="No statistics yet."))
        elif path == "/summary":
            self._send(Fault(body=json.dumps({"version": "v1", "graphSummary": neptune.summary()}).encode()))
        elif path == "/propertygraph/statistics/summary":
            payload = {"version": "v1", "graphSummary": neptune.summary()}
            self._send(Fault(body=json.dumps({"status": "200 OK", "payload": payload}).encode()))
        else:
            self._send(Fault.error(404, "ResourceNotFoundException", message="There is nothing here."))

    def _asked(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.path).query)

    def _query(self, text: str, parameters: Mapping[str, Any], limit_ms: int, analytics: bool) -> None:
        import neo4j

        try:
            rows = self.neptune.pool.submit(self.neptune.rows, text, parameters).result(limit_ms / 1000)
        except TimeoutError:
            if analytics:
                fault = Fault.error(422, "UnprocessableException", message="Time is up.", reason="QUERY_TIMEOUT")
            else:
                fault = Fault.error(500, "TimeLimitExceededException", detailedMessage="Time is up.")
        except neo4j.exceptions.Neo4jError as error:
            said = str(error.message)
            if analytics:
                fault = Fault.error(400, "ValidationException", message=said, reason="MALFORMED_QUERY")
            else:
                fault = Fault.error(400, "MalformedQueryException", detailedMessage=said, requestId="1")
        else:
            fault = Fault(body=json.dumps({"results": rows}).encode())
        self._send(fault)

    def _send(self, answer: Fault) -> None:
        time.sleep(answer.delay_s)
        try:
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer.body) + (10 if answer.cut else 0)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)
        except OSError:
            pass  # the client has gone
        if answer.cut:
            self.close_connection = True

    def _signed(self, body: bytes) -> bool:
        """Compute the signature of the request anew, and compare."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials

        found = _AUTHORIZATION.fullmatch(self.headers.get("Authorization", ""))
        if found is None or found["key"] != ACCESS_KEY:
            return False
        expected = "neptune-graph" if self.path.split("?")[0] in ("/queries", "/summary") else "neptune-db"
        if found["service"] != expected or found["region"] != REGION:
            return False
        headers = {name: self.headers[name] for name in found["headers"].split(";")}
        request = AWSRequest(self.command, f"http://{self.headers['Host']}{self.path}", headers=headers, data=body)
        request.context["timestamp"] = self.headers["X-Amz-Date"]
        signer = SigV4Auth(Credentials(ACCESS_KEY, self.neptune.secret), found["service"], found["region"])
        canonical = signer.canonical_request(request)
        return bool(signer.signature(signer.string_to_sign(request, canonical), request) == found["signature"])
