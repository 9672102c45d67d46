"""A language model as pipelines use it: any LangChain chat model, recorded, counted, limited and repeated.

model = LanguageModel(ChatAnthropic(model="claude-sonnet-5", max_retries=0))
reply = model.reply([Message("user", "Who directed Heat?")], stage="answer", question_id="q1")
"""

from __future__ import annotations

import contextvars
import json
import logging
import math
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from byokg.errors import (
    ByokgError,
    ConfigError,
    LlmDeadline,
    LlmEmpty,
    LlmInvalidRequest,
    LlmRefused,
    LlmTimeout,
    LlmTruncated,
    ReplyMissing,
    ReplyPending,
)
from byokg.llm.batch import PendingCalls
from byokg.llm.messages import (
    JSON,
    Call,
    Message,
    Meter,
    Reply,
    ReplyStore,
    cache_marks,
    estimated_tokens,
    from_langchain,
    to_langchain,
)
from byokg.llm.reply_blocks import reply_grammar
from byokg.llm.retry import Deadline, RateLimits, RetryPolicy, Spent, current_question, current_sample, token_receiver
from byokg.service_errors import as_llm_error, is_filtered, known_secrets

if TYPE_CHECKING:
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage

T = TypeVar("T")

Structured = Literal["none", "json_schema", "grammar"]
"""How a server holds replies to the form that prompts demand."""


class SingleFlight(Generic[T]):
    """Does work once per key at a time: other threads that want it meanwhile wait for its outcome."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[T]] = {}

    def run(self, key: str, work: Callable[[], T], model: str, deadline: Deadline | None = None) -> tuple[T, bool]:
        """Do the work, or wait for whoever does it already.

        An error of the work is raised in all threads that wait for it. Only when the thread that does it runs out of
        its own time, or is interrupted, another one starts anew.

        Returns:
            The outcome, and whether the caller did the work itself.

        Raises:
            LlmDeadline: the caller's time was over before the outcome came.
        """
        while True:
            with self._lock:
                flight = self._under_way.get(key)
                if flight is None:
                    mine = self._under_way[key] = Future()
            if flight is None:
                return self._lead(key, work, mine), True
            try:
                return flight.result(None if deadline is None else deadline.left_s), False
            except FutureTimeout as error:
                if flight.done():
                    raise  # the work itself raised it
                raise LlmDeadline(model, "no time is left; the same call was under way already") from error
            except (LlmDeadline, _Interrupted):
                continue

    def _lead(self, key: str, work: Callable[[], T], flight: Future[T]) -> T:
        error: BaseException | None = None
        try:
            outcome = work()
        except BaseException as raised:
            error = raised
            raise
        finally:
            with self._lock:
                del self._under_way[key]
            if error is not None:
                flight.set_exception(error if isinstance(error, Exception) else _Interrupted())
        flight.set_result(outcome)
        return outcome


class _Interrupted(Exception):
    """The thread that did the work was interrupted; the work itself did not fail."""


TRACING_VARIABLES = ("LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING", "LANGCHAIN_TRACING")


def tracing_variable(environment: Mapping[str, str]) -> str | None:
    """Return the variable that switches tracing to LangSmith on; None when it is off."""
    for variable in TRACING_VARIABLES:
        if environment.get(variable, "").strip().lower() not in {"", "0", "false"}:
            return variable
    return None


def tracing_notice(environment: Mapping[str, str]) -> str | None:
    """Return a notice for the user if traces leave the machine; None if they do not."""
    variable = tracing_variable(environment)
    return variable and (
        f"LangSmith tracing is on ({variable}): questions, graph facts and replies leave this machine; "
        f"to stop it: unset {variable}"
    )


_log = logging.getLogger(__name__)

_MODEL_ATTRIBUTES = ("model", "model_id", "model_name", "deployment_name")
"""Where LangChain's classes keep the model's name; they agree on no single place."""

_BODY = "body"
"""Parameter of a call that holds members of its request alone."""

_NO_PARAMETERS = frozenset({"model", "model_id", "model_name", "deployment_name", "streaming", "max_retries"})
"""Parameters of chat models that decide no reply, or are part of a call already."""


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=2)


@dataclass(eq=False)
class LanguageModel:
    """Calls a chat model, and never twice for the same reply.

    A stored reply is not requested again. A new one is retried after transient failures, waits for the provider's
    limits, is counted, and is in the store before it is returned. When several threads need the same at the same time,
    one of them sends it. A failure raises; it never becomes the text of a reply.

    A call whose connection breaks after it was sent may have been charged for; it is repeated all the same. Nothing is
    sent again once a reply has come, whatever its content.

    Args:
        chat_model: sends the calls; None only replays those in the store. Its own retries should be off
            (`max_retries=0`), since this class counts and limits them.
        provider: part of the key of each reply; None takes the chat model's kind.
        model: likewise, the model's id; None takes the chat model's.
        parameters: likewise, all that decides a reply (temperature, max_tokens, …); None takes the chat model's
            identifying parameters, without addresses, timeouts and secrets.
        store: keeps the replies; None keeps none.
        meter: counts the calls; None counts none.
        retry: retry policy.
        limits: concurrent calls and tokens per minute; models that are given the same object share the limits.
        timeout_s: longest duration of one attempt from its first byte to its last, above the chat model's own
            timeout (which begins anew with every byte); None leaves it to the chat model.
        prompt_caching: True to mark a stable prefix for providers that can keep it and charge less for it.
        callbacks: LangChain's, for tracing; those of the chat model itself work, too.
        note: called once when the environment sends traces to LangSmith; None warns.
        pending: collects calls instead of sending them, to be answered together later; None sends them.
        structured: `json_schema` to hold replies to the schema given to `reply`, through LangChain's
            `with_structured_output` (a chat model without it is called as usual); `grammar` to send the same as a
            grammar of tagged results, in the member `grammar` of llama.cpp's servers; `none` for neither.

    Raises:
        ConfigError: it can neither call nor replay, or a reply's identity is undefined.
    """

    chat_model: BaseChatModel | None
    provider: str = ""
    model: str = ""
    parameters: Mapping[str, JSON] | None = None
    _: KW_ONLY
    store: ReplyStore | None = None
    meter: Meter | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    limits: RateLimits = field(default_factory=RateLimits)
    timeout_s: float | None = None
    prompt_caching: bool = True
    callbacks: Sequence[BaseCallbackHandler] = ()
    note: Callable[[str], None] | None = None
    pending: PendingCalls | None = None
    structured: Structured = "none"

    def __post_init__(self) -> None:
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise ConfigError(f"timeout_s of a language model is {self.timeout_s}; give a number above 0")
        chat_model = self.chat_model
        if chat_model is not None:
            self.provider = self.provider or chat_model._llm_type
            self.model = self.model or _model_name(chat_model)
            self.parameters = _identifying(chat_model) if self.parameters is None else self.parameters
        elif self.store is None:
            raise ConfigError("a language model that only replays needs a store of replies; name the one to read")
        elif not self.provider or not self.model:
            raise ConfigError("a language model that only replays needs the provider and model of what it replays")
        self.parameters = dict(self.parameters or {})
        self._marks = cache_marks(chat_model) if chat_model is not None and self.prompt_caching else None
        self._not_noted = threading.Lock()
        """Acquired, and never released, by the thread that decides whether traces leave the machine."""
        self._flights: SingleFlight[Reply] = SingleFlight()
        try:
            Call(self.provider, self.model, (), self.parameters).key  # noqa: B018
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"parameters of {self.name} cannot identify a reply: {error}; give JSON values"
            ) from error
        if getattr(chat_model, "max_retries", 0):
            _log.warning("%s repeats calls on its own; make it with max_retries=0, byokg repeats them", self.name)

    @property
    def name(self) -> str:
        """Name provider and model, as errors do."""
        return f"{self.provider}/{self.model}"

    def call(
        self,
        messages: Sequence[Message],
        sample: int = 0,
        tools: Sequence[Mapping[str, JSON]] = (),
        body: Mapping[str, JSON] | None = None,
        schema: Mapping[str, JSON] | None = None,
    ) -> Call:
        """Return the record of what `reply` would ask with the same arguments."""
        parameters: dict[str, JSON] = dict(self.parameters or {})
        parameters |= {"tools": list(tools)} if tools else {}
        if not schema or not schema.get("properties"):  # a prompt of the user's own may name no tags
            pass
        elif self.structured == "json_schema":
            parameters["schema"] = schema
        elif self.structured == "grammar" and not body:
            most: Any = parameters.get("max_tokens")
            body = {"grammar": reply_grammar(schema, most)}
        parameters |= {_BODY: dict(body)} if body else {}
        return Call(self.provider, self.model, tuple(messages), parameters, sample)

    def reply(
        self,
        messages: Sequence[Message],
        *,
        stage: str,
        question_id: str = "",
        sample: int | None = None,
        tools: Sequence[Mapping[str, JSON]] = (),
        body: Mapping[str, JSON] | None = None,
        schema: Mapping[str, JSON] | None = None,
    ) -> Reply:
        """Return the model's reply, from the store if it is there.

        Waiting for limits, repetitions and the reply itself ends at the current deadline (`Deadline.apply`), if any.

        Args:
            messages: the conversation, at least one message.
            stage: purpose of the reply, in accounts and traces.
            question_id: likewise, the question. The one that is being answered (`calling.answering`) takes precedence,
                so no stage can count its calls elsewhere.
            sample: number among several replies to the same messages; None takes the current one
                (`calling.sampling`), or the first. A `seed` in the body of its requests is that much higher.
            tools: tools of the model, each as an OpenAI function (`name`, `description`, `parameters`).
            body: further members of this request alone, for servers with OpenAI's chat protocol.
            schema: JSON schema of the reply, with a title; used if the model is `structured`. The text of the reply is
                JSON then, or tagged results under a grammar.

        Returns:
            A reply that ends by itself or in tool calls, and is not empty.

        Raises:
            LlmUnusable: the reply is cut off, refused or empty. It was recorded, and is in the error.
            LlmError: there is none.
            ReplyMissing: only recorded replies may be used, and there is none.
            ReplyPending: the call was put aside.
            BudgetExceeded: from the meter; nothing was sent.
            ConfigError: there are no messages.
        """
        question_id = current_question() or question_id
        if not messages:
            raise ConfigError(f"{self.name} was asked with no message (stage {stage!r}, question {question_id!r})")
        call = self.call(messages, current_sample() if sample is None else sample, tools, body, schema)
        reply = self._recorded(call, stage, question_id)
        if reply is None:
            reply = self._fetch_reply(call, stage, question_id, Deadline.current())
        if reply.stop == "refusal":
            raise LlmRefused(self.name, reply)
        if reply.stop == "length":
            raise LlmTruncated(self.name, reply)
        if not reply.text.strip() and not reply.tool_calls:
            raise LlmEmpty(self.name, reply)
        return reply

    def _recorded(self, call: Call, stage: str, question_id: str) -> Reply | None:
        """Return the reply that the store has, counted as replayed."""
        if self.store is None:
            return None
        reply = self.store.get(call)
        if reply is not None:
            self._count(call, reply, stage, question_id, replayed=True)
            if (receive := token_receiver()) is not None:
                receive(stage, reply.text)
        elif self.store.replay_only or (self.chat_model is None and self.pending is None):
            raise ReplyMissing(self.name, question_id, stage, call.key, self.store.nearest(call))
        return reply

    def _fetch_reply(self, call: Call, stage: str, question_id: str, deadline: Deadline | None) -> Reply:
        """Ask, or wait for the thread that asks the same already."""
        if self.pending is not None:
            if call.key in self.pending.failed:
                raise LlmInvalidRequest(self.name, self.pending.failed[call.key])
            self.pending.add(call, stage, question_id)
            raise ReplyPending(self.name, question_id, stage, call.key)
        if self.store is None:
            return self._sent(call, stage, question_id, deadline)

        def work() -> Reply:
            # Between the first look and this one, another thread may have finished the same call.
            found = self._recorded(call, stage, question_id)
            return found if found is not None else self._sent(call, stage, question_id, deadline)

        reply, own = self._flights.run(call.key, work, self.name, deadline)
        if not own:
            self._count(call, reply, stage, question_id, replayed=True)
        return reply

    def _sent(self, call: Call, stage: str, question_id: str, deadline: Deadline | None) -> Reply:
        """Send, repeat, count and record."""
        if self._not_noted.acquire(blocking=False) and (notice := tracing_notice(os.environ)) is not None:
            (self.note or _warn)(notice)
        if self.meter is not None:
            self.meter.before(call, stage, question_id)
        attempts = 0

        def attempt() -> Reply:
            nonlocal attempts
            attempts += 1
            with self.limits.slot(estimated_tokens(call.messages, call.parameters), self.name, deadline) as spent:
                return self._attempt(call, stage, question_id, deadline, spent)

        try:
            reply, retries = self.retry.run(attempt, self.name, deadline)
        except BaseException:
            if self.meter is not None:
                self.meter.failed(call, max(0, attempts - 1), stage, question_id)
            raise
        reply = replace(reply, retries=retries)
        self._count(call, reply, stage, question_id, replayed=False)
        if self.store is not None:
            self.store.put(call, reply, stage)
        return reply

    def _attempt(self, call: Call, stage: str, question_id: str, deadline: Deadline | None, spent: Spent) -> Reply:
        """Send once.

        It runs in a thread of its own: the timeouts of HTTP clients begin anew with every byte, so only from outside
        can a reply that comes drop by drop be given up. Such a thread ends when its connection does.
        """
        limit_s = min(
            math.inf if self.timeout_s is None else self.timeout_s, math.inf if deadline is None else deadline.left_s
        )
        if limit_s <= 0:
            raise LlmDeadline(self.name, "no time is left for the question")
        outcome: Future[Reply] = Future()
        context = contextvars.copy_context()  # a trace that the caller has open goes on in the thread

        def work() -> None:
            try:
                outcome.set_result(context.run(self._invoke, call, stage, question_id))
            except BaseException as error:
                outcome.set_exception(error)

        if limit_s == math.inf:
            work()
        else:
            threading.Thread(target=work, name=f"byokg-{stage}", daemon=True).start()
        try:
            reply = outcome.result(None if limit_s == math.inf else limit_s)
        except FutureTimeout as error:
            if outcome.done():
                raise
            if self.timeout_s is not None and limit_s >= self.timeout_s:
                raise LlmTimeout(self.name, f"no complete reply within {self.timeout_s:g} s (llm.timeout_s)") from None
            raise LlmDeadline(self.name, "the question's time was over before the reply came") from error
        spent.settle(reply.usage.input_tokens + reply.usage.output_tokens or spent.tokens)
        return reply

    def _invoke(self, call: Call, stage: str, question_id: str) -> Reply:
        """Let the chat model answer; whatever it raises is translated here."""
        assert self.chat_model is not None
        began = time.perf_counter()
        try:
            asked: Any = self.chat_model
            members: dict[str, Any] = dict(getattr(asked, "extra_body", None) or {})
            if call.sample and isinstance(members.get("seed"), int):
                members["seed"] += call.sample
                asked = asked.model_copy(update={"extra_body": members})
            tools: Any = call.parameters.get("tools")
            if tools:
                asked = asked.bind_tools([{"type": "function", "function": tool} for tool in tools])
            body: Any = call.parameters.get(_BODY)
            if body:
                asked = asked.bind(extra_body={**members, **body})
            schema: Any = call.parameters.get("schema")
            if schema and not body:
                with suppress(NotImplementedError):  # the chat model has no structured output
                    asked = asked.with_structured_output(schema, include_raw=True)
            messages = to_langchain(call.messages, self._marks)
            config = {
                "callbacks": list(self.callbacks),
                "run_name": stage,
                "metadata": {"question_id": question_id, "stage": stage, "sample": call.sample},
            }
            receive = None if schema else token_receiver()
            if receive is None:
                answered = asked.invoke(messages, config=config)
            else:
                answered = _read_stream(asked.stream(messages, config=config), partial(receive, stage))
            structured = answered if isinstance(answered, dict) else None
            message = answered if structured is None else _convert_structured(structured)
            reply = from_langchain(message, self.chat_model, self.name, time.perf_counter() - began)
            return replace(reply, stop="end") if structured is not None and reply.stop == "tool" else reply
        except ByokgError:
            raise
        except Exception as error:  # every provider has its own exception tree
            if is_filtered(error):
                return Reply("", stop="refusal", model=self.name, seconds=time.perf_counter() - began)
            failure = as_llm_error(error, self.name, known_secrets(self.chat_model))
            raise failure from failure.__cause__

    def _count(self, call: Call, reply: Reply, stage: str, question_id: str, replayed: bool) -> None:
        if self.meter is not None:
            self.meter.after(call, reply, stage, question_id, replayed)


def _read_stream(chunks: Iterable[AIMessageChunk], receive: Callable[[str], object]) -> BaseMessage:
    """Return the message of a stream; its texts are handed on as they come."""
    from langchain_core.messages import AIMessageChunk, message_chunk_to_message

    whole: AIMessageChunk | None = None
    for chunk in chunks:
        if text := str(chunk.text):
            receive(text)
        whole = chunk if whole is None else whole + chunk
    return message_chunk_to_message(AIMessageChunk(content="") if whole is None else whole)


def _convert_structured(answered: Mapping[str, Any]) -> AIMessage:
    """Return a structured reply as a message whose text is the result.

    A reply that violates the schema keeps its text, or the arguments of its call, and is parsed as any reply is.
    """
    message: AIMessage = answered["raw"]
    if answered["parsed"] is not None:
        text = json.dumps(answered["parsed"], ensure_ascii=False)
    else:
        calls = [json.dumps(call["args"], ensure_ascii=False) for call in message.tool_calls]
        broken = [str(call.get("args") or "") for call in message.invalid_tool_calls]
        text = str(message.text) or next(iter([*calls, *broken]), "")
    return message.model_copy(update={"content": text, "tool_calls": [], "invalid_tool_calls": []})


def _model_name(chat_model: BaseChatModel) -> str:
    """Return the id of a chat model's model."""
    for attribute in _MODEL_ATTRIBUTES:
        name = getattr(chat_model, attribute, None)
        if isinstance(name, str) and name:
            return name
    raise ConfigError(f"a {type(chat_model).__name__} does not say which model it asks; give model='…'")


def _identifying(chat_model: BaseChatModel) -> dict[str, JSON]:
    """Return a chat model's identifying parameters, without those that decide no reply."""
    found: dict[str, JSON] = {}
    for name, value in chat_model._identifying_params.items():
        if name in _NO_PARAMETERS or "timeout" in name or "url" in name or "base" in name or value in (None, {}, []):
            continue
        try:
            found[name] = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"{name} of {type(chat_model).__name__} is a {type(value).__name__}, which cannot identify a reply; "
                "give parameters={…}: temperature, max_tokens, and whatever else decides a reply"
            ) from error
    return found
