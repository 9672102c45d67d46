"""A chat model that answers from a script: for examples and tests, without a service, a key or chance."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import ConfigDict, PrivateAttr

from byokg.errors import ConfigError, LlmInvalidRequest

_FIELDS = ("contains", "matches", "reply", "stop", "tool_calls")
_STOPS = ("stop", "length", "refusal", "tool_use")


@dataclass(frozen=True)
class Rule:
    """When to answer what. A rule without conditions fits every prompt.

    `contains` are texts that all occur in the prompt; `matches` is a regular expression that does (`.` takes line
    ends, too). `stop` is `stop`, `length`, `refusal` or `tool_use`. `tool_calls` are mappings of `name` and `args`.
    """

    reply: str = ""
    contains: tuple[str, ...] = ()
    matches: re.Pattern[str] | None = None
    stop: str = "stop"
    tool_calls: tuple[Mapping[str, Any], ...] = ()

    def fits(self, prompt: str) -> bool:
        """Tell whether a prompt meets the conditions."""
        return all(text in prompt for text in self.contains) and (
            self.matches is None or self.matches.search(prompt) is not None
        )


class ScriptedChatModel(BaseChatModel):
    """Answers by rules, or with a list of replies one after the other.

    With rules, the first that fits the prompt answers, so equal prompts get equal replies however many threads ask.
    With a list, replies are handed out in the order of the calls. The prompt is the text of all messages, one after
    the other, with a line end between them. Tokens are counted as words.

    Raises:
        LlmInvalidRequest: on a prompt that no rule fits, or after the last reply of the list.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    rules: tuple[Rule, ...] = ()
    replies: tuple[str, ...] = ()
    model: str = "script"

    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)
    _given: int = PrivateAttr(default=0)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {}

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """Take tools without looking at them: the script knows what it calls."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        prompt = "\n".join(_text(message) for message in messages)
        rule = self._rule(prompt)
        calls = [
            {"name": call["name"], "args": dict(call.get("args", {})), "id": f"call_{position}", "type": "tool_call"}
            for position, call in enumerate(rule.tool_calls)
        ]
        words_in, words_out = len(prompt.split()), len(rule.reply.split())
        message = AIMessage(
            rule.reply,
            tool_calls=calls,
            response_metadata={"finish_reason": "tool_use" if calls else rule.stop, "model_name": self.model},
            usage_metadata={
                "input_tokens": words_in,
                "output_tokens": words_out,
                "total_tokens": words_in + words_out,
            },
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _rule(self, prompt: str) -> Rule:
        if self.replies:
            with self._lock:
                position = self._given
                self._given += 1
            if position < len(self.replies):
                return Rule(self.replies[position])
            raise LlmInvalidRequest(f"scripted/{self.model}", f"all {len(self.replies)} replies were given already")
        for rule in self.rules:
            if rule.fits(prompt):
                return rule
        raise LlmInvalidRequest(f"scripted/{self.model}", f"no rule of the script fits the prompt {prompt[-300:]!r}")


def read_rules(path: Path) -> tuple[Rule, ...]:
    """Read a script: a YAML list of rules, or JSON lines (`.jsonl`) with one rule each.

    Raises:
        ConfigError: the file is missing, or is no list of rules; the message names the rule.
    """
    try:
        text = path.read_text("utf-8")
        if path.suffix == ".jsonl":
            found = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            found = yaml.safe_load(text)
    except OSError as error:
        raise ConfigError(f"the script {str(path)!r} cannot be read: {error.strerror}") from error
    except (ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"the script {str(path)!r} cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(found, list) or not found:
        raise ConfigError(f"the script {str(path)!r} is no list of rules; write '- contains: …' and 'reply: …'")
    return tuple(_rule(entry, f"rule {number} of {str(path)!r}") for number, entry in enumerate(found, start=1))


def _rule(entry: object, place: str) -> Rule:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{place} is {entry!r}; a rule is a mapping with 'reply' and, mostly, 'contains'")
    unknown = [str(key) for key in entry if key not in _FIELDS]
    if unknown:
        raise ConfigError(f"{place} has {', '.join(map(repr, unknown))}; a rule has {', '.join(_FIELDS)}")
    if "reply" not in entry and "tool_calls" not in entry:
        raise ConfigError(f"{place} has no 'reply'")
    contains = entry.get("contains", ())
    contains = (contains,) if isinstance(contains, str) else tuple(contains)
    reply, stop, calls = entry.get("reply", ""), entry.get("stop", "stop"), entry.get("tool_calls", ())
    if not isinstance(reply, str) or not all(isinstance(each, str) for each in contains):
        raise ConfigError(f"{place}: 'reply' and 'contains' are texts; put quotes around numbers, dates, yes and no")
    if stop not in _STOPS:
        raise ConfigError(f"{place}: stop is {stop!r}; give one of {', '.join(_STOPS)}")
    if not isinstance(calls, list | tuple) or not all(isinstance(each, Mapping) and "name" in each for each in calls):
        raise ConfigError(f"{place}: 'tool_calls' are mappings with 'name' and 'args'")
    matches = entry.get("matches")
    try:
        pattern = None if matches is None else re.compile(str(matches), re.DOTALL)
    except re.error as error:
        raise ConfigError(f"{place}: {matches!r} is no regular expression: {error}") from error
    return Rule(reply, contains, pattern, stop, tuple(calls))


def _text(message: BaseMessage) -> str:
    content = message.content
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in content)
