"""Anthropic's Message Batches: create, look, cancel, fetch the results."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from tests.llm.servers.http import Request, Response
from tests.llm.servers.protocols import JSON_TYPE, Answered, Anthropic, Asked, ServiceError

_PATH = re.compile(r"/v1/messages/batches(?:/(?P<id>[\w-]+)(?P<part>/results|/cancel)?)?")
_LATER = "2036-01-02T00:00:00Z"


@dataclass
class Batch:
    """One batch: its requests by custom id, in order, and how often it was looked at since."""

    id: str
    requests: Mapping[str, Asked]
    looks: int = 0
    cancelled: bool = False
    created: datetime = field(default_factory=lambda: datetime.now(UTC))


class Batches:
    """Keeps batches, and lets each end after it was looked at `looks` times.

    `fails` says for a custom id how its request ends instead of `succeeded`: `errored`, `expired` or `canceled`.
    """

    def __init__(self, answer: Callable[[Asked], Answered], looks: int = 1) -> None:
        self.looks = looks
        self.fails: dict[str, str] = {}
        self.all: dict[str, Batch] = {}
        self._answer = answer
        self._anthropic = Anthropic()
        self._lock = threading.Lock()

    def serves(self, path: str) -> bool:
        """Tell whether a path belongs to batches."""
        return _PATH.fullmatch(urlsplit(path).path) is not None

    def respond(self, request: Request) -> Response:
        """Do what a request wants."""
        found = _PATH.fullmatch(urlsplit(request.path).path)
        assert found is not None
        with self._lock:
            if found["id"] is None:
                if request.method == "POST":
                    return self._created(request)
                listed = [self._record(batch, request) for batch in reversed(self.all.values())]
                return _json({"data": listed, "has_more": False, "first_id": None, "last_id": None})
            batch = self.all.get(found["id"])
            if batch is None:
                return self._anthropic.error(ServiceError("missing", f"no batch {found['id']}"))
            if found["part"] == "/results":
                return self._results(batch)
            if found["part"] == "/cancel":
                batch.cancelled = True
            else:
                batch.looks += 1
            return _json(self._record(batch, request))

    def ended(self, batch: Batch) -> bool:
        """Tell whether a batch has its results."""
        return batch.cancelled or batch.looks >= self.looks

    def _created(self, request: Request) -> Response:
        try:
            entries = json.loads(request.body)["requests"]
            asked = {entry["custom_id"]: self._anthropic.read(entry["params"]) for entry in entries}
        except (ValueError, KeyError, TypeError) as error:
            return self._anthropic.error(ServiceError("invalid", f"{error!r}"))
        if len(asked) != len(entries) or not asked:
            return self._anthropic.error(ServiceError("invalid", "custom ids must be there and be unique"))
        batch = Batch(f"msgbatch_{len(self.all) + 1:04}", asked)
        self.all[batch.id] = batch
        return _json(self._record(batch, request))

    def _record(self, batch: Batch, request: Request) -> dict[str, Any]:
        ended = self.ended(batch)
        place = f"http://{request.headers['host']}/v1/messages/batches/{batch.id}"
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        for id in batch.requests:
            counts[self._outcome(batch, id) if ended else "processing"] += 1
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": counts,
            "created_at": batch.created.isoformat(),
            "expires_at": _LATER,
            "ended_at": _LATER if ended else None,
            "archived_at": None,
            "cancel_initiated_at": _LATER if batch.cancelled else None,
            "results_url": f"{place}/results" if ended else None,
        }

    def _outcome(self, batch: Batch, id: str) -> str:
        return "canceled" if batch.cancelled else self.fails.get(id, "succeeded")

    def _results(self, batch: Batch) -> Response:
        if not self.ended(batch):
            return self._anthropic.error(ServiceError("invalid", f"{batch.id} has not ended"))
        lines = []
        # In another order than asked: results may come in any.
        for id, asked in reversed(list(batch.requests.items())):
            result: dict[str, Any] = {"type": self._outcome(batch, id)}
            if result["type"] == "succeeded":
                result["message"] = self._anthropic.message(asked, self._answer(asked))
            elif result["type"] == "errored":
                inner = {"type": "invalid_request_error", "message": "this one cannot be answered"}
                result["error"] = {"type": "error", "error": inner, "request_id": "req_1"}
            lines.append(json.dumps({"custom_id": id, "result": result}))
        return Response(body=("\n".join(lines) + "\n").encode(), headers={"Content-Type": "application/x-jsonl"})


def _json(record: object) -> Response:
    return Response(body=json.dumps(record).encode(), headers=JSON_TYPE)
