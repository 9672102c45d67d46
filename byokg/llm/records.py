"""What is asked of a language model and what comes back, and who keeps and counts it.

`Call.key` decides when two calls are the same. Everything that decides a reply is part of it, and nothing else: not
the identifiers that services give to messages, not the marks for prompt caching, not addresses, keys or timeouts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"

Role = Literal["system", "user", "assistant", "tool"]

Stop = Literal["end", "length", "refusal", "tool", "other"]
"""Why a model stopped: finished, at its token limit, refusing, asking for a tool, or something else."""

KEY_VERSION = 1
"""Part of every key; raised when the canonical form below changes, so that no old reply is taken for a new call's."""


@dataclass(frozen=True)
class Usage:
    """Tokens of one call; all at least 0.

    `input_tokens` counts the whole prompt, whether it was read from a prompt cache, written to one, or neither.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True)
class ToolCall:
    """A model's wish to call a tool. `id` ties the tool's answer to it."""

    id: str
    name: str
    arguments: Mapping[str, JSON]


@dataclass(frozen=True)
class Message:
    """One message of a conversation, the same for all providers.

    `call_id` is the id of the tool call that a message of role `tool` answers. `cache` says that everything up to
    the end of this message will be sent again and again, so a provider that can should keep it; it changes no reply,
    so it is no part of a message's identity.
    """

    role: Role
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    cache: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Call:
    """What is asked of a model: everything that decides a reply.

    `sample` tells apart several replies to the same question. `parameters` are the model's (temperature, max_tokens,
    extra body, tools, …), never keys, addresses or timeouts.
    """

    provider: str
    model: str
    messages: tuple[Message, ...]
    parameters: Mapping[str, JSON] = field(default_factory=lambda: MappingProxyType({}))
    sample: int = 0

    @cached_property
    def key(self) -> str:
        """Identify the call in stores: 64 hexadecimal digits.

        Raises:
            ValueError: a parameter is a number that is not finite.
            TypeError: a parameter is nothing that JSON can hold.
        """
        return hashlib.sha256(self.canonical.encode("ascii")).hexdigest()

    @cached_property
    def prompt_digest(self) -> str:
        """Identify what the messages say, whoever is asked: 16 hexadecimal digits."""
        said = json.dumps([[message.role, message.text] for message in self.messages])
        return hashlib.sha256(said.encode("ascii")).hexdigest()[:16]

    @property
    def canonical(self) -> str:
        """Return the text behind the key: ASCII JSON with sorted keys and without white space.

        The ids of tool calls are replaced by their position in the conversation: services make them up at random.
        """
        order: dict[str, int] = {}
        for message in self.messages:
            for call in message.tool_calls:
                order.setdefault(call.id, len(order))
        messages = [
            {
                "role": message.role,
                "text": message.text,
                "tool_calls": [[order[call.id], call.name, _canonical(call.arguments)] for call in message.tool_calls],
                "call": None if message.call_id is None else order.get(message.call_id, message.call_id),
            }
            for message in self.messages
        ]
        record = {
            "version": KEY_VERSION,
            "provider": self.provider,
            "model": self.model,
            "messages": messages,
            "parameters": _canonical(self.parameters),
            "sample": self.sample,
        }
        return json.dumps(record, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


@dataclass(frozen=True)
class Reply:
    """What a model answered. `model` is what the service says answered, `seconds` the time of the last attempt."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    stop: Stop = "end"
    usage: Usage = Usage()
    model: str = ""
    seconds: float = 0.0
    retries: int = 0


class ReplyStore(Protocol):
    """Keeps replies by call. Used from many threads at the same time."""

    @property
    def replay_only(self) -> bool:
        """Tell whether a call without a reply must fail (`ReplyMissing`): nothing may be sent."""

    def get(self, call: Call) -> Reply | None:
        """Return the reply kept for a call; None when there is none, or when replies are to be asked for anew."""

    def put(self, call: Call, reply: Reply, stage: str = "") -> None:
        """Keep a reply. It was paid for: it is on disk when this returns. `stage` says what it was for."""

    def nearest(self, call: Call) -> str:
        """Say in a few words how the call with a reply that is most like this one differs; empty when none is."""


class Meter(Protocol):
    """Counts calls, tokens and money, and stops a run at its budget. Used from many threads at the same time.

    A call that is sent runs through `before`, then one of `after` and `failed`; a replayed one through `after` alone.
    """

    def before(self, call: Call, stage: str, question_id: str) -> None:
        """Reserve what a call may cost.

        Raises:
            BudgetExceeded: it would go over the budget; the call is not sent.
        """

    def after(self, call: Call, reply: Reply, stage: str, question_id: str, replayed: bool) -> None:
        """Count a call that was answered, well or not (`reply.stop`); a replayed reply costs nothing."""

    def failed(self, call: Call, retries: int, stage: str, question_id: str) -> None:
        """Count a call that was sent `1 + retries` times without an answer; release what `before` reserved."""


def _canonical(value: JSON) -> JSON:
    """Return a JSON value in which equal numbers look alike (1.0 as 1), and mappings and sequences are plain."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _canonical(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_canonical(entry) for entry in value]
    return value
