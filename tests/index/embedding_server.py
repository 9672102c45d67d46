"""A local server that speaks the wire formats of hosted embedding models, and misbehaves on demand."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote


def vector(text: str) -> list[float]:
    """Return what the server says of a text: (its length, its words, 1)."""
    return [float(len(text)), float(len(text.split())), 1.0]


class EmbeddingServer:
    """Answers `/v1/embeddings` as OpenAI does and `/model/…/invoke` as Bedrock's Titan and Cohere models do."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any], dict[str, str]]] = []
        """Path, body and headers of each."""
        self.faults: deque[tuple[int, str]] = deque()
        """Status and error code to answer the next requests with."""
        server = self

        class Handler(_Handler):
            embeddings = server

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to a request that is not refused."""
        if path == "/v1/embeddings":
            data = [
                {"object": "embedding", "index": at, "embedding": vector(text)} for at, text in enumerate(body["input"])
            ]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            return {"object": "list", "data": data, "model": body["model"], "usage": usage}
        if "cohere" in path:
            return {"embeddings": [vector(text) for text in body["texts"]], "id": "1", "texts": body["texts"]}
        return {"embedding": vector(body["inputText"]), "inputTextTokenCount": 1}


@contextmanager
def serving() -> Iterator[EmbeddingServer]:
    """Run a server as long as it is needed."""
    server = EmbeddingServer()
    thread = threading.Thread(target=server.http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        server.http.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    embeddings: EmbeddingServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server, path = self.embeddings, unquote(self.path)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.requests.append((path, body, {name.lower(): value for name, value in self.headers.items()}))
        status, headers = 200, {}
        if server.faults:
            status, code = server.faults.popleft()
            headers["x-amzn-ErrorType"] = code
            reply: dict[str, Any] = {"message": code, "error": {"message": f"said {code}", "code": code}}
        else:
            reply = server.answer(path, body)
        content = json.dumps(reply).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Type": "application/json", "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""
