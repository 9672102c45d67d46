"""Recorded replies as files that travel: exported for others to replay, and imported from wherever they were made.

`export_replies` writes JSON lines, ordered by key, the same bytes for the same content:

    {"schema": 1, "key": "…", "stage": "answer", "recorded": "2026-11-05T08:00:00Z",
     "call": {"provider": …, "model": …, "messages": [{"role": …, "text": …}], "parameters": {…}, "sample": 0},
     "reply": {"text": …, "stop": "end", "usage": {…}, "model": …, "seconds": …, "retries": …}}

`import_replies` reads these, and three layouts that name a call by its key only. The store must then be waiting for the
reply (`RecordedReplies.expect`), or have it:

- Anthropic message batch results: `{"custom_id": KEY, "result": {"type": "succeeded", "message": {…}}}`;
- OpenAI batch output: `{"custom_id": KEY, "response": {"status_code": 200, "body": {…}}, "error": null}`;
- anything else that can write `{"id": KEY, "text": "…"}`, or `"reply": {…}` with the fields above.

Each line is checked before anything counts, and a file is taken in whole or not at all. Files ending in `.gz` are
compressed; `.xz` and `.zst` are read as well.
"""

from __future__ import annotations

import gzip
import json
import lzma
import re
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from byokg.errors import ReplyStoreError
from byokg.files import json_line, new_file, open_decompressed
from byokg.llm.messages import STOPS, Reply, ToolCall, Usage, call_record, read_call, read_reply, reply_record
from byokg.llm.reply_store import Import, RecordedReplies, RecordedReply

SCHEMA = 1

_KEY = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Imported:
    """Counts of records of an imported file, by outcome."""

    new: int
    known: int
    """Replies that were recorded already."""
    conflicts: tuple[str, ...]
    """Keys of calls that have another reply already, which stays unless the store's mode is `record`."""
    failed: tuple[tuple[str, str], ...] = ()
    """Keys and reasons of requests that a batch service did not answer; they are still waited for."""


def export_replies(store: RecordedReplies, out: str | Path, keys: Collection[str] | None = None) -> int:
    """Write recorded replies to a file, which appears when it is complete.

    Args:
        store: the replies.
        out: the file, replaced if it exists; `.gz` compresses.
        keys: only these calls, for instance those of one run.

    Returns:
        Number of replies written.

    Raises:
        ReplyStoreError: the file cannot be written, or one of `keys` has no reply.
    """
    path = Path(out)
    missing = set(keys or ())
    count = 0
    try:
        with new_file(path) as raw:
            # A compressed file holds neither its name nor a time, so that equal content gives equal bytes.
            packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else nullcontext(raw)
            with packed as file:
                for each in store.recorded(keys):
                    missing.discard(each.call.key)
                    file.write(_line(each))
                    count += 1
            if missing:
                raise ReplyStoreError(
                    store.path,
                    None,
                    f"{len(missing)} of the calls asked for have no reply here (first: {min(missing)}); use the file "
                    "that the run used",
                )
    except OSError as error:
        raise ReplyStoreError(path, None, f"cannot be written: {error.strerror or error}; choose another") from error
    return count


def import_replies(store: RecordedReplies, file: str | Path) -> Imported:
    """Take in a file of replies, whole or not at all; taking it in again changes nothing.

    Raises:
        ReplyStoreError: the file cannot be read, or a line is torn, is none of the layouts, does not fit its own key,
            or answers a call that nobody waits for. The message names file and line.
    """
    path = Path(file)
    failed: list[tuple[str, str]] = []
    with store.importing() as taken:
        for number, line in _lines(path):
            try:
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise ValueError("it is no JSON object")
                outcome = _read_reply(record, taken)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                reason = f"no {error} in it" if isinstance(error, KeyError) else str(error)
                raise ReplyStoreError(path, number, f"is no reply ({reason}); nothing was imported") from error
            if isinstance(outcome, RecordedReply):
                taken.add(outcome)
            else:
                failed.append(outcome)
    return Imported(taken.new, taken.known, tuple(taken.conflicts), tuple(failed))


# Writing


def _line(each: RecordedReply) -> bytes:
    recorded = datetime.fromtimestamp(each.recorded, UTC).isoformat().replace("+00:00", "Z")
    record = {
        "schema": SCHEMA,
        "key": each.call.key,
        "stage": each.stage,
        "recorded": recorded,
        "call": call_record(each.call),
        "reply": reply_record(each.reply),
    }
    return json_line(record)


# Reading


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of each line that is not empty."""
    try:
        with open_decompressed(path) as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise ReplyStoreError(path, None, f"cannot be read: {error}; nothing was imported") from error


def _read_reply(record: Mapping[str, Any], taken: Import) -> RecordedReply | tuple[str, str]:
    """Read one line, in whichever layout; a request that failed comes as its key and the reason."""
    if "call" in record:
        return _own(record)
    key = record.get("custom_id", record.get("id"))
    if not isinstance(key, str) or _KEY.fullmatch(key) is None:
        raise ValueError("neither 'key' with 'call', nor a call's key as 'custom_id' or 'id'")
    if "result" in record:
        reply = _anthropic(record["result"])
    elif "response" in record:
        reply = _openai(record)
    else:
        reply = read_reply(record.get("reply", record))
    expected = taken.expected(key)
    if expected is None:
        raise ValueError(f"nobody waits for call {key[:12]}…; import it where the requests were written")
    if isinstance(reply, str):
        return key, reply
    call, stage = expected
    return RecordedReply(call, reply, stage, int(datetime.now(UTC).timestamp()))


def _own(record: Mapping[str, Any]) -> RecordedReply:
    if record["schema"] > SCHEMA:
        raise ValueError(f"schema {record['schema']}, this byokg reads up to {SCHEMA}; upgrade byokg")
    call = read_call(record["call"])
    if call.key != record["key"]:
        raise ValueError(f"its call has key {call.key[:12]}…, not {str(record['key'])[:12]}…: it was changed")
    recorded = int(datetime.fromisoformat(record["recorded"]).timestamp())
    return RecordedReply(call, read_reply(record["reply"]), str(record["stage"]), recorded)


def _anthropic(result: Mapping[str, Any]) -> Reply | str:
    """Read one result of a message batch; the reason if there is no message."""
    if result["type"] != "succeeded":
        error = result.get("error") or {}
        detail = error.get("error", error).get("message", "")
        return f"{result['type']}: {detail}" if detail else str(result["type"])
    message = result["message"]
    usage = message.get("usage") or {}
    read, written = (usage.get(f"cache_{name}_input_tokens") or 0 for name in ("read", "creation"))
    blocks = message["content"]
    reply = read_reply(
        {
            "text": "".join(block["text"] for block in blocks if block["type"] == "text"),
            "stop": STOPS.get(message.get("stop_reason") or "end_turn", "other"),
            "usage": {
                # Anthropic counts what went through the prompt cache apart.
                "input_tokens": (usage.get("input_tokens") or 0) + read + written,
                "output_tokens": usage.get("output_tokens") or 0,
                "cache_read_tokens": read,
                "cache_write_tokens": written,
            },
            "model": message.get("model", ""),
        }
    )
    tools = [ToolCall(each["id"], each["name"], each["input"]) for each in blocks if each["type"] == "tool_use"]
    return replace(reply, tool_calls=tuple(tools))


def _openai(record: Mapping[str, Any]) -> Reply | str:
    """Read one line of a batch's output or error file; the reason if there is no completion."""
    response = record["response"] or {}
    if record.get("error") or response.get("status_code") != 200:
        error = record.get("error") or (response.get("body") or {}).get("error") or {}
        return f"{error.get('code') or response.get('status_code')}: {error.get('message', '')}"
    body = response["body"]
    choice = body["choices"][0]
    message = choice["message"]
    usage = body.get("usage") or {}
    refused = message.get("refusal")
    tools = tuple(
        ToolCall(each["id"], each["function"]["name"], json.loads(each["function"]["arguments"]))
        for each in message.get("tool_calls") or ()
    )
    stop = "refusal" if refused else STOPS.get(choice.get("finish_reason") or "stop", "other")
    return Reply(
        text=cast(str, refused or message.get("content") or ""),
        tool_calls=tools,
        stop=stop,
        usage=Usage(
            int(usage.get("prompt_tokens") or 0),
            int(usage.get("completion_tokens") or 0),
            int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0),
        ),
        model=body.get("model", ""),
    )
