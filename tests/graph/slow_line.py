"""A slow line to a server: bytes pass after a while, and round trips are counted, of whatever protocol."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass
class SlowLine:
    """Where it begins, and what has passed."""

    address: str = ""
    """The server's, but for the port."""
    round_trips: int = 0
    """How often something was sent to the server after it had answered, on all connections together."""


@contextmanager
def slow_line(address: str, delay_s: float) -> Iterator[SlowLine]:
    """Lead from a port of this machine to a server on it; stops when left."""
    parts = urlsplit(address)
    line, lock = SlowLine(), threading.Lock()
    held: list[socket.socket] = []

    def pass_on(here: socket.socket, there: socket.socket, turn: list[bool], asking: bool) -> None:
        with suppress(OSError):
            while some := here.recv(1 << 16):
                if asking:
                    time.sleep(delay_s)
                with lock:
                    line.round_trips += asking and not turn[0]
                    turn[0] = asking
                there.sendall(some)
        for end in (here, there):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                server = socket.create_connection((parts.hostname, parts.port))
                turn = [False]
                held.extend((client, server))
                for ends, asking in (((client, server), True), ((server, client), False)):
                    threading.Thread(target=pass_on, args=(*ends, turn, asking), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        line.address = parts._replace(netloc=f"127.0.0.1:{listening.getsockname()[1]}").geturl()
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield line
        finally:
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            for end in held:
                end.close()
