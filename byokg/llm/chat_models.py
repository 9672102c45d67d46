"""Chat models of LangChain that run in this process.

`ScriptedChatModel` answers from a script: for examples and tests, without a service, a key or chance.
`LocalChatModel` generates with a causal language model of the Hugging Face format, through transformers.
"""

from __future__ import annotations

import hashlib
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

from byokg.errors import ConfigError, LlmContextExceeded, LlmInvalidRequest, requires
from byokg.llm.local_weights import weights_place

_FIELDS = ("contains", "matches", "reply", "stop", "tool_calls")
_ROLES = {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}
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
        """True if a prompt meets the conditions."""
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
        """Accept tools and ignore them: the script fixes the calls."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        prompt = "\n".join(message.text for message in messages)
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
            usage_metadata={"input_tokens": words_in, "output_tokens": words_out, "total_tokens": words_in + words_out},
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


class LocalChatModel(BaseChatModel):
    """Generates with a local model, loaded at the first call, one reply at a time.

    Prompts are written with `template`, else the tokenizer's chat template; a model without either (a base model) gets
    the messages' texts with blank lines between. Sampling is seeded from the prompt and the sample's number (`sample`
    in the metadata of the call), so equal calls give equal replies on equal hardware.

    Attributes:
        model: folder, GGUF file, package of weights, or name on the model hub: see `weights_place`.
        device: `cpu`, `cuda`, `cuda:1`; None takes a GPU if there is one.
        dtype: `bfloat16`, `float16`, `float32`; None takes the type of the saved weights.
        max_tokens: longest reply.
        temperature: 0 always takes the likeliest token.
        revision: branch, tag or commit on the model hub.
        template: Jinja template of a prompt, with `messages` (`role`, `content`) and the tokenizer's marks.
        stop: texts that end a reply, and are no part of it.
        logprobs: likeliest tokens given beside each token of a reply, with log-probabilities; 0 gives those of the
            reply alone, None none.

    Raises:
        MissingExtra: torch or transformers is not installed.
    """

    model: str
    device: str | None = None
    dtype: str | None = None
    max_tokens: int = 1024
    temperature: float = 0.0
    revision: str | None = None
    template: str | None = None
    stop: tuple[str, ...] = ()
    logprobs: int | None = None

    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)
    _generating: threading.Lock = PrivateAttr(default_factory=threading.Lock)
    _loaded: tuple[Any, Any] | None = PrivateAttr(default=None)

    @property
    def _llm_type(self) -> str:
        return "hf_local"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "dtype": self.dtype,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "revision": self.revision,
            "template": self.template,
            "stop": list(self.stop),
            "logprobs": self.logprobs,
        }

    def get_token_ids(self, text: str) -> list[int]:
        """Return the tokens of a text by the model's own tokenizer; loads the model. Raises like `load`."""
        _, tokenizer = self.load()
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    def load(self) -> tuple[Any, Any]:
        """Return model and tokenizer, loaded once.

        Raises:
            MissingExtra: torch or transformers is not installed.
            ConfigError: there is no such model, or it cannot be loaded.
        """
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> tuple[Any, Any]:
        with requires("transformers", "local", "llm=hf_local"):
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer
        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        dtype = "auto" if self.dtype is None else getattr(torch, self.dtype, None)
        if dtype is None:
            raise ConfigError(f"dtype={self.dtype} is unknown to torch; give bfloat16, float16 or float32")
        place = weights_place(self.model)
        try:
            tokenizer = AutoTokenizer.from_pretrained(place, revision=self.revision)
            model = AutoModelForCausalLM.from_pretrained(place, revision=self.revision, torch_dtype=dtype)
            return model.to(device).eval(), tokenizer
        except (OSError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:300]
            raise ConfigError(f"the model {self.model!r} cannot be loaded on {device}: {reason}") from error

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        model, tokenizer = self.load()
        sample = int((run_manager.metadata if run_manager else {}).get("sample", 0))
        with self._generating:
            return self._decoded(model, tokenizer, messages, (*self.stop, *(stop or ())), sample)

    def _decoded(
        self, model: Any, tokenizer: Any, messages: list[BaseMessage], stops: tuple[str, ...], sample: int
    ) -> ChatResult:
        import torch
        from transformers import LogitsProcessorList, StoppingCriteriaList

        turns = [{"role": _ROLES.get(message.type, "user"), "content": str(message.content)} for message in messages]
        template = self.template or tokenizer.chat_template
        if template:
            prompt = self._written(tokenizer, turns, template)
            encoded = tokenizer(prompt, return_tensors="pt", add_special_tokens=False)
        else:
            prompt = "\n\n".join(turn["content"] for turn in turns)
            encoded = tokenizer(prompt, return_tensors="pt")
        ids = encoded["input_ids"].to(model.device)  # (1, T)
        longest = getattr(model.config, "max_position_embeddings", None)
        if longest is not None and ids.shape[1] + self.max_tokens > longest:
            raise LlmContextExceeded(
                f"hf_local/{self.model}",
                f"the prompt has {ids.shape[1]:,} tokens, and with max_tokens={self.max_tokens:,} exceeds the model's "
                f"{longest:,}",
            )
        sampling = {"do_sample": True, "temperature": self.temperature} if self.temperature else {"do_sample": False}
        if self.temperature:
            digest = hashlib.sha256(f"{sample} {prompt}".encode("utf-8", "replace")).digest()
            torch.manual_seed(int.from_bytes(digest[:8], "big") >> 1)
        watched = _Watched(tokenizer, ids.shape[1], stops, self.logprobs)
        with torch.inference_mode():
            generated = model.generate(
                ids,
                attention_mask=encoded["attention_mask"].to(model.device),
                max_new_tokens=self.max_tokens,
                pad_token_id=tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id,
                logits_processor=LogitsProcessorList([] if self.logprobs is None else [watched.keep_scores]),
                stopping_criteria=StoppingCriteriaList([watched.is_stopped]),
                **sampling,
            )
        new = generated[0, ids.shape[1] :]
        ends = model.generation_config.eos_token_id
        ends = set(ends) if isinstance(ends, list) else {ends}
        text = tokenizer.decode(new, skip_special_tokens=True)
        whole = watched.before_stop(text)
        finished = len(new) > 0 and (int(new[-1]) in ends or whole != text)
        metadata: dict[str, Any] = {"finish_reason": "stop" if finished else "length", "model_name": self.model}
        if self.logprobs is not None:
            metadata["logprobs"] = {"content": watched.entries(generated, len(whole))}
        usage = {"input_tokens": ids.shape[1], "output_tokens": len(new), "total_tokens": ids.shape[1] + len(new)}
        message = AIMessage(whole, response_metadata=metadata, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _written(self, tokenizer: Any, turns: list[dict[str, str]], template: str) -> str:
        try:
            return str(
                tokenizer.apply_chat_template(turns, chat_template=template, add_generation_prompt=True, tokenize=False)
            )
        except Exception as error:  # jinja2's tree, and what templates raise for roles that they do not know
            reason = " ".join(str(error).split())[:300]
            raise ConfigError(
                f"the prompt template of llm.model={self.model} fails: {reason}; set llm.template"
            ) from error


class _Watched:
    """Watches one generation: its end at a text, and the scores of its tokens.

    Args:
        tokenizer: the model's.
        prompt_tokens: tokens before the first generated one.
        stops: texts that end the reply.
        others: likeliest tokens kept with each token; None keeps no scores.
    """

    def __init__(self, tokenizer: Any, prompt_tokens: int, stops: tuple[str, ...], others: int | None) -> None:
        self._tokenizer, self._prompt_tokens, self._stops, self._others = tokenizer, prompt_tokens, stops, others
        self._steps: list[tuple[list[tuple[int, float]], Any]] = []
        """For each token the likeliest ones in its place, and the log-probabilities of all until the next is chosen."""
        self._chosen: list[float] = []

    def keep_scores(self, ids: Any, scores: Any) -> Any:
        """Keep the scores of the next token; a `LogitsProcessor`."""
        self._choose(ids)
        logprobs = scores[0].float().log_softmax(-1)
        values, tokens = logprobs.topk(min(self._others or 0, len(logprobs)))
        self._steps.append((list(zip(tokens.tolist(), values.tolist(), strict=True)), logprobs))
        return scores

    def _choose(self, ids: Any) -> None:
        if len(self._chosen) < len(self._steps):
            self._chosen.append(float(self._steps[-1][1][ids[0, self._prompt_tokens + len(self._chosen)]]))
            self._steps[-1] = (self._steps[-1][0], None)  # a megabyte for 262,144 tokens

    def is_stopped(self, ids: Any, scores: Any, **kwargs: Any) -> Any:
        """True for a row that ends in one of the texts; a `StoppingCriteria`."""
        return ids.new_tensor([self._ends(row[self._prompt_tokens :]) for row in ids], dtype=bool)

    def _ends(self, new: Any) -> bool:
        longest = max(map(len, self._stops), default=0)
        # A token has at least one character, so the last ones hold the whole text.
        end = self._tokenizer.decode(new[-longest - 1 :], skip_special_tokens=True) if longest else ""
        return any(text in end for text in self._stops)

    def before_stop(self, text: str) -> str:
        """Return a reply up to the first text that ends it."""
        found = [place for stop in self._stops if (place := text.find(stop)) >= 0]
        return text[: min(found, default=len(text))]

    def entries(self, ids: Any, length: int) -> list[dict[str, Any]]:
        """Return the tokens of the first `length` characters as OpenAI's protocol writes them."""
        self._choose(ids)
        found, place = [], 0
        for token, logprob, (others, _) in zip(ids[0, self._prompt_tokens :], self._chosen, self._steps, strict=True):
            text = self._tokenizer.decode([token], skip_special_tokens=True)
            if text and place < length:
                top = [{"token": self._tokenizer.decode([other]), "logprob": value} for other, value in others]
                found.append({"token": text, "logprob": logprob, "top_logprobs": top})
            place += len(text)
        return found
