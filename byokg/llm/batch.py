"""Calls with delayed replies: put aside, written as files for another machine, or sent in batches at half price.

`PendingCalls` collects the calls of a pass. `write_requests` writes the same calls in three layouts; each line names
its call by the key, under which `byokg cache import` takes the reply:

- `requests.jsonl`, ours: `{"id": KEY, "question": …, "stage": …, "provider": …, "model": …, "messages": [{"role": …,
  "text": …}], "parameters": {…}, "sample": 0}`;
- `requests.anthropic.jsonl`, as Anthropic's Message Batches take them: `{"custom_id": KEY, "params": {…}}`;
- `requests.openai.jsonl`, as OpenAI's batches take them: `{"custom_id": KEY, "method": "POST", "url":
  "/v1/chat/completions", "body": {…}}`.

`AnthropicBatches` sends calls through Anthropic's Message Batches. Sent calls are journalled in `batches.jsonl` beside
the requests before and after they are sent, so that a process that is killed, or a machine that restarts, goes on
waiting for the same batches and pays for nothing twice.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from byokg.errors import LlmError, ReplyStoreError, RunError
from byokg.files import json_line, write_file
from byokg.llm.messages import Call, cache_marked, call_record, to_langchain
from byokg.llm.reply_files import Imported, import_replies
from byokg.llm.reply_store import RecordedReplies
from byokg.llm.retry import RetryPolicy
from byokg.service_errors import as_llm_error
from byokg.text.names import encodable


@dataclass(frozen=True)
class PendingCall:
    """A call without a reply yet, with its question and stage."""

    call: Call
    stage: str
    question_id: str


class PendingCalls:
    """Collects calls from many threads; each call once, for all callers.

    Args:
        store: notified of expected replies, so that they can be imported by key.
    """

    def __init__(self, store: RecordedReplies) -> None:
        self.store = store
        self.failed: dict[str, str] = {}
        """Keys of calls that will never be answered, with the reasons."""
        self._calls: dict[str, PendingCall] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, call: Call, stage: str, question_id: str) -> None:
        """Put a call aside."""
        with self._lock:
            if call.key in self._calls:
                return
            self._calls[call.key] = PendingCall(call, stage, question_id)
        self.store.expect(call, stage)

    def take(self) -> list[PendingCall]:
        """Return the collected calls, in an order that does not depend on threads, and begin anew."""
        with self._lock:
            taken, self._calls = self._calls, {}
        return sorted(taken.values(), key=lambda each: (each.question_id, each.stage, each.call.key))


OWN, ANTHROPIC, OPENAI = "requests.jsonl", "requests.anthropic.jsonl", "requests.openai.jsonl"

_MAX_TOKENS = 4096
"""Default of Anthropic's mandatory limit, the same as that of `llm=anthropic`."""


def write_requests(calls: Sequence[PendingCall], folder: Path) -> None:
    """Write the three files; those of an earlier pass are replaced. Each file appears whole.

    Raises:
        RunError: they cannot be written.
    """
    layouts: Mapping[str, Callable[[PendingCall], Mapping[str, Any]]] = {
        OWN: lambda each: {
            "id": each.call.key,
            "question": each.question_id,
            "stage": each.stage,
            **call_record(each.call),
        },
        ANTHROPIC: lambda each: {"custom_id": each.call.key, "params": anthropic_params(each.call)},
        OPENAI: lambda each: {
            "custom_id": each.call.key,
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": openai_body(each.call),
        },
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, layout in layouts.items():
            write_file(folder / name, [json_line(layout(each)) for each in calls])
    except OSError as error:
        raise RunError(f"requests cannot be written to {str(folder)!r}: {error.strerror or error}") from error


def remove_requests(folder: Path) -> None:
    """Remove the files of an earlier pass, and the folder if nothing else is in it."""
    for name in (OWN, ANTHROPIC, OPENAI):
        (folder / name).unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def anthropic_params(call: Call) -> dict[str, Any]:
    """Return a call as Anthropic's Messages API takes it, with marks for prompt caching."""
    marked = cache_marked(call.messages)
    system: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    for at, message in enumerate(call.messages):
        mark = {"cache_control": {"type": "ephemeral"}} if at in marked else {}
        said = encodable(message.text)
        content: list[dict[str, Any]] = [{"type": "text", "text": said, **mark}] if said else []
        if message.role == "system":
            system += content
            continue
        if message.role == "tool":
            content = [{"type": "tool_result", "tool_use_id": message.call_id or "", "content": said, **mark}]
        content += [
            {"type": "tool_use", "id": tool.id, "name": tool.name, "input": dict(tool.arguments)}
            for tool in message.tool_calls
        ]
        role = "assistant" if message.role == "assistant" else "user"
        # Anthropic requires alternating speakers, so consecutive messages of one are joined.
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += content
        elif content:
            messages.append({"role": role, "content": content})
    params: dict[str, Any] = {"model": call.model, "max_tokens": _MAX_TOKENS, **call.parameters}
    if "tools" in params:
        params["tools"] = [
            {
                "name": tool["name"],
                "description": tool.get("description", ""),
                "input_schema": tool.get("parameters", {"type": "object", "properties": {}}),
            }
            for tool in params["tools"]
        ]
    return {**params, **({"system": system} if system else {}), "messages": messages}


def openai_body(call: Call) -> dict[str, Any]:
    """Return a call as OpenAI's chat protocol takes it."""
    from langchain_core.messages import convert_to_openai_messages

    body: dict[str, Any] = {"model": call.model, **call.parameters}
    if "tools" in body:
        body["tools"] = [{"type": "function", "function": tool} for tool in body["tools"]]
    return {**body, "messages": convert_to_openai_messages(to_langchain(call.messages, None))}


JOURNAL = "batches.jsonl"

MOST_REQUESTS = 100_000
MOST_BYTES = 200 * 1024 * 1024
"""Anthropic takes 100,000 requests or 256 MB in a batch."""

_CLOCKS_DIFFER = timedelta(minutes=10)


@dataclass(frozen=True)
class Batch:
    """One batch in the journal. `id` is empty while it is not known whether it was accepted."""

    digest: str
    """Of the keys of its requests."""
    requests: int
    started: str
    """When it was sent, ISO 8601, UTC."""
    id: str = ""
    done: bool = False


class AnthropicBatches:
    """Sends calls in batches and waits for their replies, which go to the store.

    Args:
        client: an `anthropic.Anthropic`.
        store: where replies are recorded.
        folder: holds the journal and, while they are taken in, the results.
        model: name for errors.
        poll_s: seconds between two looks at a batch.
        retry: when and how often to ask the service again.
        sleep: waits; exchanged in tests.
    """

    def __init__(
        self,
        client: Any,
        store: RecordedReplies,
        folder: Path,
        model: str,
        poll_s: float = 30.0,
        retry: RetryPolicy | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._store = store
        self._folder = folder
        self._model = model
        self._poll_s = poll_s
        self._retry = retry or RetryPolicy()
        self._sleep = sleep

    def answer(self, pending: Sequence[PendingCall], note: Callable[[str], None]) -> dict[str, str]:
        """Send calls and wait until all batches have ended and their replies are recorded.

        Batches that an earlier process sent are waited for first; calls that these answer are not sent again.

        Args:
            pending: calls, each once.
            note: called with one line per event.

        Returns:
            Keys of calls that the service did not answer, with its reasons.

        Raises:
            LlmError: the service cannot be used.
            RunError: the journal cannot be written.
        """
        failed: dict[str, str] = {}
        for batch in self._unfinished(note):
            failed |= self._finish(batch, note)
        wanted = {each.call.key for each in pending}
        failed = {key: reason for key, reason in failed.items() if key in wanted}
        missing = [each for each in pending if self._store.get(each.call) is None and each.call.key not in failed]
        for chunk in _chunks([each.call for each in missing]):
            failed |= self._finish(self._send(chunk, note), note)
        return failed

    def _send(self, calls: Sequence[Call], note: Callable[[str], None]) -> Batch:
        keys = "".join(sorted(call.key for call in calls))
        batch = Batch(hashlib.sha256(keys.encode()).hexdigest()[:16], len(calls), datetime.now(UTC).isoformat())
        self._journal(batch)
        requests = [{"custom_id": call.key, "params": anthropic_params(call)} for call in calls]
        asked = False

        def create() -> str:
            # Where the connection broke, the batch may have been accepted all the same.
            nonlocal asked
            found = self._sent_unnoticed(batch) if asked else None
            asked = True
            return found or str(self._client.messages.batches.create(requests=requests).id)

        batch = replace(batch, id=self._ask(create))
        self._journal(batch)
        note(f"batch {batch.id}: {batch.requests:,} requests sent")
        return batch

    def _finish(self, batch: Batch, note: Callable[[str], None]) -> dict[str, str]:
        """Wait for a batch and record its replies."""
        last = ""
        while True:
            state = self._ask(lambda: self._client.messages.batches.retrieve(batch.id))
            if state.processing_status == "ended":
                break
            counts = state.request_counts
            line = f"batch {batch.id}: {batch.requests - counts.processing:,} of {batch.requests:,} done"
            if line != last:
                note(line)
                last = line
            self._sleep(self._poll_s)
        imported = self._ask(lambda: self._taken(batch))
        self._journal(replace(batch, done=True))
        failed = dict(imported.failed)
        note(f"batch {batch.id}: {batch.requests - len(failed):,} replies, {len(failed):,} failed")
        return failed

    def _taken(self, batch: Batch) -> Imported:
        """Fetch the results of a batch, whole, and record them."""
        file = self._folder / f"{batch.id}.results.jsonl"
        results = self._client.messages.batches.results(batch.id)
        try:
            write_file(file, (json_line(each.model_dump(mode="json", exclude_unset=True)) for each in results))
            return import_replies(self._store, file)
        finally:
            file.unlink(missing_ok=True)

    def _ask(self, ask: Callable[[], Any]) -> Any:
        """Ask the service, and again after failures that may pass."""

        def attempt() -> Any:
            try:
                return ask()
            except (LlmError, RunError, ReplyStoreError, OSError):
                raise
            except Exception as error:  # anthropic's tree
                failure = as_llm_error(error, self._model, ())
                raise failure from failure.__cause__

        return self._retry.run(attempt, self._model, None)[0]

    # The journal

    def _unfinished(self, note: Callable[[str], None]) -> Iterator[Batch]:
        """Yield the batches that were sent and whose replies were not recorded yet."""
        for batch in self._batches():
            if batch.done:
                continue
            if not batch.id:
                found = self._ask(functools.partial(self._sent_unnoticed, batch))
                batch = replace(batch, id=found or "", done=found is None)
                self._journal(batch)
            if not batch.done:
                note(f"batch {batch.id} was sent before; waiting for its replies")
                yield batch

    def _sent_unnoticed(self, batch: Batch) -> str | None:
        """Find a batch that was sent by a process that ended before it heard the batch's id."""
        known = {each.id for each in self._batches()}
        earliest = datetime.fromisoformat(batch.started) - _CLOCKS_DIFFER
        latest = datetime.fromisoformat(batch.started) + timedelta(hours=1)
        for each in self._client.messages.batches.list(limit=100):  # the newest first
            if each.created_at < earliest:
                break
            counts = each.request_counts
            total = counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired
            if each.id not in known and total == batch.requests and each.created_at <= latest:
                return str(each.id)
        return None

    def _batches(self) -> list[Batch]:
        """Return the journal's batches, the last line about each."""
        path = self._folder / JOURNAL
        latest: dict[tuple[str, str], Batch] = {}
        try:
            lines = path.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        for line in lines:
            try:
                batch = Batch(**json.loads(line))
            except (ValueError, TypeError):
                continue  # torn by a kill; its content is read back from the service
            latest[batch.digest, batch.started] = batch
        return list(latest.values())

    def _journal(self, batch: Batch) -> None:
        path = self._folder / JOURNAL
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            torn = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
            with path.open("ab") as file:
                file.write((b"\n" if torn else b"") + json.dumps(asdict(batch)).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise RunError(f"cannot write to {str(path)!r}: {error.strerror or error}; nothing was sent") from error


def _chunks(calls: Sequence[Call]) -> Iterator[list[Call]]:
    """Divide calls into batches that the service takes."""
    chunk: list[Call] = []
    size = 0
    for call in calls:
        length = len(json.dumps(anthropic_params(call))) + 100
        if chunk and (len(chunk) == MOST_REQUESTS or size + length > MOST_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(call)
        size += length
    if chunk:
        yield chunk
