"""Another machine: reads a file of requests and writes the replies, in one of the layouts there are.

    python -m tests.llm.elsewhere requests.jsonl replies.jsonl own|anthropic|openai

It answers like the model that `RULES` describes: a KG-Linker that names Heat and how to get on from it, says FINISH
when it has seen the director, and an answerer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

RULES = (
    ("Each fact begins", "<answers>\nMichael Mann [e1]\n</answers>"),
    ("Next entities", "<entities>\nMichael Mann\n</entities>\n<paths>\ndirected_by\n</paths>"),
    ("Entity extraction", "<entities>\nHeat\n</entities>\n<paths>\ndirected_by\n</paths>\n<answers>\n</answers>"),
)
"""The first of these texts that occurs in a prompt decides the reply."""


def reply_to(prompt: str) -> str:
    """Return what the model says."""
    return next(reply for text, reply in RULES if text in prompt)


def _texts(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(block["text"] for block in content)


def _own(request: dict[str, Any]) -> dict[str, Any]:
    return {"id": request["id"], "text": reply_to("\n".join(message["text"] for message in request["messages"]))}


def _anthropic(request: dict[str, Any]) -> dict[str, Any]:
    params = request["params"]
    prompt = "\n".join(_texts(part) for part in (params["system"], *(each["content"] for each in params["messages"])))
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": params["model"],
        "content": [{"type": "text", "text": reply_to(prompt)}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 100, "output_tokens": 10},
    }
    return {"custom_id": request["custom_id"], "result": {"type": "succeeded", "message": message}}


def _openai(request: dict[str, Any]) -> dict[str, Any]:
    prompt = "\n".join(message["content"] for message in request["body"]["messages"])
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": reply_to(prompt)}}
    body = {"model": request["body"]["model"], "choices": [choice], "usage": {"prompt_tokens": 100}}
    return {"custom_id": request["custom_id"], "response": {"status_code": 200, "body": body}, "error": None}


LAYOUTS = {"own": _own, "anthropic": _anthropic, "openai": _openai}


if __name__ == "__main__":
    source, target, layout = sys.argv[1:]
    requests = [json.loads(line) for line in Path(source).read_text("utf-8").splitlines()]
    lines = [json.dumps(LAYOUTS[layout](request)) for request in reversed(requests)]
    Path(target).write_text("\n".join(lines) + "\n", "utf-8")
