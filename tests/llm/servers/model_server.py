"""A local server that answers like Anthropic, Bedrock and OpenAI at once, and misbehaves as told.

In a process of its own, for benchmarks:

    python -m tests.llm.servers.model_server --latency 0.5 --rate 0.05 --faults all

prints its address, and answers `GET /counts` with what it saw.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace

from tests.llm.servers.batches import Batches
from tests.llm.servers.faults import FAULTS, Fault, Faults
from tests.llm.servers.http import HttpServer, Request, Response
from tests.llm.servers.protocols import JSON_TYPE, Answered, Anthropic, Asked, Bedrock, Dialect, OpenAI, ServiceError

SECRET = "sk-only-for-tests-0123456789"
"""The key that is right, in all protocols."""

DIALECTS: tuple[Dialect, ...] = (Anthropic(), OpenAI(), Bedrock())

_LONG_S = 600.0
_PAGE = b"<html><body><h1>Please log in to the network</h1></body></html>"


@dataclass(frozen=True)
class Counts:
    """What a server saw. `prompts` are different contents; `again` requests came after their content was answered."""

    requests: int
    answered: int
    prompts: int
    again: int
    most_at_once: int
    faults: dict[str, int]


def echoed(asked: Asked) -> Answered:
    """Answer deterministically, and differently for each prompt."""
    return Answered(f"reply {hashlib.sha256(asked.prompt.encode()).hexdigest()[:16]}")


class ModelServer:
    """One server for all protocols.

    It has every model but those whose id ends in `missing`.

    Args:
        answer: makes replies; they should depend on nothing but what is asked.
        latency_s: waited before each reply.
        faults: what goes wrong.
    """

    def __init__(
        self, answer: Callable[[Asked], Answered] = echoed, latency_s: float = 0.0, faults: Faults | None = None
    ) -> None:
        self.answer = answer
        self.latency_s = latency_s
        self.faults = faults or Faults()
        self.secret = SECRET
        self.batches = Batches(lambda asked: self.answer(asked))
        self.asked: list[Asked] = []
        self.seen: Counter[str] = Counter()
        self.again: Counter[str] = Counter()
        self.unexpected: list[str] = []
        self._answered: Counter[str] = Counter()
        self._under_way = 0
        self._most = 0
        self._lock = threading.Lock()
        self._http = HttpServer(self._respond, self._sent)
        self.url = self._http.url

    def close(self) -> None:
        """Stop."""
        self._http.close()

    def counts(self) -> Counts:
        """Return what was seen so far."""
        with self._lock:
            return Counts(
                requests=self.seen.total(),
                answered=self._answered.total(),
                prompts=len(self.seen),
                again=self.again.total(),
                most_at_once=self._most,
                faults=dict(sorted(self.faults.met.items())),
            )

    async def _respond(self, request: Request) -> Response:
        if request.path == "/counts":
            return Response(body=json.dumps(asdict(self.counts())).encode(), headers=JSON_TYPE)
        if self.batches.serves(request.path):
            refusal = Anthropic().refusal(request, self.secret)
            return Anthropic().error(refusal) if refusal else self.batches.respond(request)
        dialect = next((each for each in DIALECTS if each.serves(request.path)), None)
        if dialect is None:
            self.unexpected.append(f"{request.method} {request.path}")
            return Response(404, b'{"error": {"message": "there is nothing here"}}', JSON_TYPE)
        refusal = dialect.refusal(request, self.secret)
        if refusal is not None:
            return dialect.error(refusal)
        try:
            asked = dialect.asked(request)
        except (ValueError, KeyError, TypeError) as error:
            return dialect.error(ServiceError("invalid", f"{error!r}"))
        if asked.model.endswith("missing"):
            return dialect.error(ServiceError("missing", f"no model {asked.model}"))
        key = _content(asked)
        with self._lock:
            self.asked.append(asked)
            self.seen[key] += 1
            self.again[key] += self._answered[key] > 0
            self._under_way += 1
            self._most = max(self._most, self._under_way)
        try:
            return await self._reply(dialect, asked, self.faults.next())
        finally:
            with self._lock:
                self._under_way -= 1

    async def _reply(self, dialect: Dialect, asked: Asked, fault: Fault | None) -> Response:
        if fault == "hang":
            await asyncio.sleep(_LONG_S)
        await asyncio.sleep(self.latency_s)
        right = dialect.stream(asked, self.answer(asked)) if asked.stream else dialect.whole(asked, self.answer(asked))
        body = right.body if isinstance(right.body, bytes) else b"".join(right.body)
        if fault == "rate_limit":
            headers = {"retry-after": self.faults.retry_after}
            return dialect.error(ServiceError("rate_limit", "too many requests", headers))
        if fault == "overloaded":
            return dialect.error(ServiceError("overloaded", "the service is overloaded"))
        if fault == "server_error":
            return dialect.error(ServiceError("server", "something broke"))
        if fault == "drop":
            return Response(silent=True)
        if fault == "cut":
            return replace(right, cut=True)
        if fault == "malformed":
            return replace(right, body=body[: len(body) * 2 // 3])
        if fault == "half_stream":
            # In good order for HTTP: only what was said is incomplete.
            return replace(right, body=b"".join(right.body[:-1]) if not isinstance(right.body, bytes) else b"{}")
        if fault == "wrong_type":
            return Response(body=_PAGE, headers={"Content-Type": "text/html"})
        if fault == "drip":
            return replace(right, body=[body[i : i + 1] for i in range(len(body))], pace_s=0.1)
        return right

    def _sent(self, request: Request, response: Response) -> None:
        """Count what went out whole and right."""
        dialect = next((each for each in DIALECTS if each.serves(request.path)), None)
        if dialect is None or response.status != 200:
            return
        asked = dialect.asked(request)
        right = dialect.stream(asked, self.answer(asked)) if asked.stream else dialect.whole(asked, self.answer(asked))
        if response.body == right.body:
            with self._lock:
                self._answered[_content(asked)] += 1


def _content(asked: Asked) -> str:
    """Identify what is asked, by its content alone."""
    return hashlib.sha256(json.dumps([asked.model, asked.messages]).encode()).hexdigest()


@contextmanager
def serving(
    answer: Callable[[Asked], Answered] = echoed, latency_s: float = 0.0, faults: Faults | None = None
) -> Iterator[ModelServer]:
    """Run a server as long as the body does."""
    server = ModelServer(answer, latency_s, faults)
    try:
        yield server
    finally:
        server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each reply")
    parser.add_argument("--faults", default="", help="kinds, with commas between; all for all")
    parser.add_argument("--rate", type=float, default=0.0, help="share of requests that each kind strikes")
    options = parser.parse_args()
    kinds = FAULTS if options.faults == "all" else tuple(each for each in FAULTS if each in options.faults.split(","))
    with serving(latency_s=options.latency, faults=Faults(kinds=kinds, rate=options.rate)) as server:
        print(server.url, flush=True)
        sys.stdin.read()  # until whoever started it goes


if __name__ == "__main__":
    main()
