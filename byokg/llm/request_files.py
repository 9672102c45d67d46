"""Requests as files: what a run without a network waits for, for another machine to send.

A folder holds the same requests in three layouts; each line names its request by the call's key, under which
`byokg cache import` takes the reply:

- `requests.jsonl`, ours: `{"id": KEY, "question": …, "stage": …, "provider": …, "model": …, "messages": [{"role": …,
  "text": …}], "parameters": {…}, "sample": 0}`;
- `requests.anthropic.jsonl`, as Anthropic's Message Batches take them: `{"custom_id": KEY, "params": {…}}`;
- `requests.openai.jsonl`, as OpenAI's batches take them: `{"custom_id": KEY, "method": "POST", "url":
  "/v1/chat/completions", "body": {…}}`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from byokg.errors import RunError
from byokg.llm.chat_messages import MOST_MARKS
from byokg.llm.pending import PendingCall
from byokg.llm.records import Call, Message
from byokg.llm.replies import call_record

OWN, ANTHROPIC, OPENAI = "requests.jsonl", "requests.anthropic.jsonl", "requests.openai.jsonl"

_MAX_TOKENS = 4096
"""Anthropic wants a limit; this is the one that `llm=anthropic` has where none is set."""


def write_requests(calls: Sequence[PendingCall], folder: Path) -> None:
    """Write the three files; what an earlier pass wrote is replaced. Each file appears whole.

    Raises:
        RunError: they cannot be written.
    """
    layouts: Mapping[str, Callable[[PendingCall], Mapping[str, Any]]] = {
        OWN: _own,
        ANTHROPIC: lambda each: {"custom_id": each.call.key, "params": anthropic_params(each.call)},
        OPENAI: _openai,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, layout in layouts.items():
            _replace(folder / name, [_line(layout(each)) for each in calls])
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
    marked = [at for at, message in enumerate(call.messages) if message.cache and message.text.strip()][-MOST_MARKS:]
    system: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    for at, message in enumerate(call.messages):
        mark = {"cache_control": {"type": "ephemeral"}} if at in marked else {}
        text: list[dict[str, Any]] = [{"type": "text", "text": message.text, **mark}] if message.text else []
        if message.role == "system":
            system += text
        elif message.role == "tool":
            result = {"type": "tool_result", "tool_use_id": message.call_id or "", "content": message.text, **mark}
            _spoken(messages, "user", [result])
        elif message.role == "assistant":
            uses = [
                {"type": "tool_use", "id": tool.id, "name": tool.name, "input": dict(tool.arguments)}
                for tool in message.tool_calls
            ]
            _spoken(messages, "assistant", [*text, *uses])
        else:
            _spoken(messages, "user", text)
    params: dict[str, Any] = {"model": call.model, "max_tokens": _MAX_TOKENS, **call.parameters}
    if "tools" in params:
        params["tools"] = [_anthropic_tool(tool) for tool in params["tools"]]
    if system:
        params["system"] = system
    return {**params, "messages": messages}


def openai_body(call: Call) -> dict[str, Any]:
    """Return a call as OpenAI's chat protocol takes it."""
    body: dict[str, Any] = {"model": call.model, **call.parameters}
    if "tools" in body:
        body["tools"] = [{"type": "function", "function": tool} for tool in body["tools"]]
    return {**body, "messages": [_openai_message(message) for message in call.messages]}


def _own(each: PendingCall) -> dict[str, Any]:
    return {"id": each.call.key, "question": each.question_id, "stage": each.stage, **call_record(each.call)}


def _openai(each: PendingCall) -> dict[str, Any]:
    body = openai_body(each.call)
    return {"custom_id": each.call.key, "method": "POST", "url": "/v1/chat/completions", "body": body}


def _spoken(messages: list[dict[str, Any]], role: str, content: Sequence[Mapping[str, Any]]) -> None:
    """Add content; Anthropic wants the speakers to take turns, so what one says twice in a row is one message."""
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"] += content
    elif content:
        messages.append({"role": role, "content": list(content)})


def _anthropic_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": tool["name"],
        "description": tool.get("description", ""),
        "input_schema": tool.get("parameters", {"type": "object", "properties": {}}),
    }


def _openai_message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id or "", "content": message.text}
    written: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.tool_calls:
        written["tool_calls"] = [
            {
                "id": tool.id,
                "type": "function",
                "function": {"name": tool.name, "arguments": json.dumps(tool.arguments, ensure_ascii=False)},
            }
            for tool in message.tool_calls
        ]
    return written


def _line(record: Mapping[str, Any]) -> bytes:
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"), default=dict)
    return (text + "\n").encode("utf-8", "backslashreplace")


def _replace(path: Path, lines: Sequence[bytes]) -> None:
    temporary = path.with_name(f".{path.name}.partial")
    try:
        with temporary.open("wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
