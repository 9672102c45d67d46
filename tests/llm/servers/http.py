"""A small HTTP/1.1 server that can misbehave: it decides about every byte and about when the connection ends.

One event loop in one thread serves all connections, so hundreds of clients may wait at the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

_LARGEST_BODY = 64 * 2**20


@dataclass(frozen=True)
class Request:
    """One request; header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Response:
    """What to send back.

    A body of several pieces is sent chunk by chunk. `pace_s` is waited before every piece, and `cut` leaves out the
    last of them and closes the connection instead of ending the message. `silent` sends nothing at all.
    """

    status: int = 200
    body: bytes | Sequence[bytes] = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    pace_s: float = 0.0
    cut: bool = False
    silent: bool = False


Answer = Callable[[Request], Awaitable[Response]]
Sent = Callable[[Request, Response], None]


class HttpServer:
    """Listens on a free port of the loopback interface until it is closed.

    Args:
        answer: makes the response to a request.
        sent: told when a response went out whole.
    """

    def __init__(self, answer: Answer, sent: Sent = lambda request, response: None) -> None:
        self._answer = answer
        self._sent = sent
        self._loop = asyncio.new_event_loop()
        self._connections: set[asyncio.Task[None]] = set()
        listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port: int = listening.getsockname()[1]
        self._server = self._loop.run_until_complete(asyncio.start_server(self._connected, sock=listening))
        self._thread = threading.Thread(target=self._loop.run_forever, name="llm-server", daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        """Stop listening, and drop all connections; again does nothing."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._closed(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _closed(self) -> None:
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            async for request in _requests(reader, writer):
                response = await _unless_gone(self._answer(request), reader)
                if response is None or not await _write(writer, response):
                    return
                self._sent(request, response)
        except (OSError, EOFError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has gone, or the server closes
        finally:
            self._connections.discard(task)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()


async def _requests(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> AsyncIterator[Request]:
    """Read requests from a connection until the client ends it."""
    while head := await reader.readuntil(b"\r\n\r\n"):
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        method, path, _ = first.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        size = int(headers.get("content-length", "0"))
        if size > _LARGEST_BODY:
            return
        yield Request(method, path, headers, await reader.readexactly(size))


async def _unless_gone(answer: Awaitable[Response], reader: asyncio.StreamReader) -> Response | None:
    """Wait for the response; None when the client hangs up before."""

    async def gone() -> None:
        while not reader.at_eof():
            await asyncio.sleep(0.05)

    making = asyncio.ensure_future(answer)
    leaving = asyncio.ensure_future(gone())
    try:
        await asyncio.wait({making, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return making.result() if making.done() else None
    finally:
        making.cancel()
        leaving.cancel()


async def _write(writer: asyncio.StreamWriter, response: Response) -> bool:
    """Send a response; tell whether the connection may go on."""
    if response.silent:
        return False
    pieces = [response.body] if isinstance(response.body, bytes) else list(response.body)
    chunked = not isinstance(response.body, bytes)
    headers = dict(response.headers)
    headers["Transfer-Encoding" if chunked else "Content-Length"] = "chunked" if chunked else str(len(pieces[0]))
    lines = [f"HTTP/1.1 {response.status} Status", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    if response.cut:
        pieces = pieces[:-1] if chunked else [pieces[0][: len(pieces[0]) // 2]]
    for piece in pieces:
        await writer.drain()
        if response.pace_s:
            await asyncio.sleep(response.pace_s)
        writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" if chunked else piece)
    if chunked and not response.cut:
        writer.write(b"0\r\n\r\n")
    await writer.drain()
    return not response.cut and not writer.transport.is_closing()
