"""Tests of `byokg.llm.model`: real client libraries against a local server that misbehaves."""

from __future__ import annotations

import json
import logging
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from byokg.errors import (
    BudgetExceeded,
    ConfigError,
    LlmAuthFailed,
    LlmBadReply,
    LlmDeadline,
    LlmEmpty,
    LlmError,
    LlmInvalidRequest,
    LlmOverloaded,
    LlmRateLimited,
    LlmRefused,
    LlmTimeout,
    LlmTruncated,
    LlmUnavailable,
    LlmUnusable,
    ReplyMissing,
)
from byokg.llm import providers
from byokg.llm.chat_models import Rule, ScriptedChatModel
from byokg.llm.messages import JSON, Message, Reply, ToolCall, Usage
from byokg.llm.model import LanguageModel
from byokg.llm.reply_store import RecordedReplies
from byokg.llm.retry import Deadline, RateLimits, RetryPolicy
from tests.llm.conftest import PROVIDERS, model
from tests.llm.memory import CountingMeter, MemoryReplies
from tests.llm.servers.faults import FAULTS, Fault, Faults
from tests.llm.servers.model_server import SECRET, ModelServer, echoed
from tests.llm.servers.protocols import Answered, Asked

HELLO = (Message("system", "Be brief."), Message("user", "Who directed Heat?"))
TOOL: dict[str, JSON] = {
    "name": "look",
    "description": "Look at a node.",
    "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
}


def ask(asked: LanguageModel, text: str = "Who directed Heat?", **settings: Any) -> Reply:
    """Ask one question."""
    return asked.reply([Message("user", text)], **{"stage": "answer", "question_id": "q1", **settings})


def at_once(work: Callable[[int], object], times: int) -> list[BaseException | None]:
    """Do work in as many threads; return the error of each, or None."""
    begin = threading.Barrier(times)

    def one(number: int) -> None:
        begin.wait(10)
        work(number)

    with ThreadPoolExecutor(times) as pool:
        return [future.exception() for future in [pool.submit(one, number) for number in range(times)]]


class Untiring(LanguageModel):
    """Repeats without waiting."""

    def __init__(self, chat_model: Any, **settings: Any) -> None:
        retry = RetryPolicy(attempts=settings.pop("attempts", 20), sleep=lambda _: None)
        super().__init__(chat_model, retry=retry, **settings)


# Replies


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_gives_the_reply_with_its_tokens(provider: str, streaming: bool, server: ModelServer) -> None:
    asked = model(provider, server, streaming=streaming)
    reply = asked.reply(HELLO, stage="answer", question_id="q1")
    expected = echoed(server.asked[0]).text
    assert (reply.text, reply.stop, reply.tool_calls, reply.retries) == (expected, "end", (), 0)
    # "Be brief." and "Who directed Heat?" are five words; the reply has two.
    assert reply.usage == Usage(input_tokens=5, output_tokens=2)
    assert reply.model == asked.model
    assert reply.seconds > 0
    assert server.asked[0].stream is streaming
    assert server.asked[0].messages == (("system", "Be brief."), ("user", "Who directed Heat?"))


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("answered", "kind"),
    [
        (Answered("It goes on and", stop="length"), LlmTruncated),
        (Answered("I cannot", stop="refusal"), LlmRefused),
        (Answered(""), LlmEmpty),
        (Answered("", stop="length"), LlmTruncated),
    ],
    ids=["cut off", "refused", "empty", "cut off before it began"],
)
def test_what_is_no_whole_reply_is_an_error_that_holds_it_and_is_paid_once(
    provider: str, answered: Answered, kind: type[LlmUnusable], server: ModelServer
) -> None:
    server.answer = lambda asked: answered
    store, meter = MemoryReplies(), CountingMeter()
    asked = model(provider, server, store=store, meter=meter)
    for _ in range(2):
        with pytest.raises(kind) as caught:
            ask(asked)
        # Azure's class throws away what a filter stopped.
        assert caught.value.reply.text == ("" if (provider, kind) == ("azure", LlmRefused) else answered.text)
        assert not caught.value.retryable
    assert server.counts().requests == 1
    assert len(meter.sent) == len(meter.replayed) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_tools_are_called_and_answered(provider: str, server: ModelServer) -> None:
    server.answer = lambda asked: (
        Answered("", "tool", (("call_9", "look", {"id": "Q42"}),)) if len(asked.messages) == 1 else Answered("done")
    )
    asked = model(provider, server)
    first = ask(asked, tools=[TOOL])
    assert (first.stop, first.tool_calls) == ("tool", (ToolCall("call_9", "look", {"id": "Q42"}),))
    conversation = [
        Message("user", "Who directed Heat?"),
        Message("assistant", first.text, first.tool_calls),
        Message("tool", "Michael Mann", call_id="call_9"),
    ]
    assert asked.reply(conversation, stage="s", question_id="q", tools=[TOOL]).text == "done"
    sent = json.dumps(server.asked[-1].body)
    assert "Look at a node." in sent and "Michael Mann" in sent and "call_9" in sent


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_lone_surrogate_is_sent_as_a_question_mark_and_received_and_recorded_as_it_is(
    provider: str, streaming: bool, server: ModelServer, tmp_path: Path
) -> None:
    server.answer = lambda asked: Answered("half \ud800 of a pair")
    with RecordedReplies(tmp_path / "replies.sqlite") as store:
        asked = model(provider, server, store=store, streaming=streaming)
        reply = ask(asked, "What is \udfff?", stage="\ud800", question_id="\ud800")
        assert reply.text == "half \ud800 of a pair"
        assert server.asked[0].messages == (("user", "What is ??"),)
        assert ask(asked, "What is \udfff?") == reply and server.counts().requests == 1
        [recorded] = store.recorded()
        assert recorded.call.messages[0].text == "What is \udfff?"
        ask(asked, "What is ??")  # another question
        assert server.counts().requests == 2


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_lone_surrogate_in_a_setting_is_an_error_of_ours(provider: str, server: ModelServer) -> None:
    asked = model(provider, server, extra_body={"stop": "\ud800"})
    assert len(asked.call([]).key) == 64
    with pytest.raises(LlmInvalidRequest, match="surrogates not allowed"):
        ask(asked)


# Prompt caching


def test_the_stable_prefix_is_marked_for_anthropic(server: ModelServer) -> None:
    server.answer = lambda asked: Answered("yes indeed", cache_read=1, cache_write=3)
    reply = model("anthropic", server).reply(
        [Message("system", "The schema", cache=True), Message("user", "A question?")], stage="s", question_id="q"
    )
    system = [{"type": "text", "text": "The schema", "cache_control": {"type": "ephemeral"}}]
    assert server.asked[0].body["system"] == system
    assert reply.usage == Usage(input_tokens=4, output_tokens=2, cache_read_tokens=1, cache_write_tokens=3)


def test_the_stable_prefix_is_marked_for_bedrock_where_the_model_knows_it(server: ModelServer) -> None:
    messages = [Message("system", "The schema", cache=True), Message("user", "A question?")]
    model("bedrock", server).reply(messages, stage="s", question_id="q")
    assert server.asked[0].body["system"] == [{"text": "The schema"}, {"cachePoint": {"type": "default"}}]
    llama = providers.Bedrock("meta.llama3-70b-instruct-v1:0", base_url=server.url).language_model()
    llama.reply(messages, stage="s", question_id="q")
    assert server.asked[1].body["system"] == [{"text": "The schema"}]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_prefix_without_marks_has_the_same_key(provider: str, server: ModelServer) -> None:
    store = MemoryReplies()
    asked = model(provider, server, store=store)
    for cache in (True, False):
        asked.reply([Message("system", "s", cache=cache), Message("user", "u")], stage="s", question_id="q")
    assert server.counts().requests == 1


# Faults

SLOW_S = 1.0
"""Longest attempt where a server hangs: long enough for a busy machine, short enough for a test."""

KINDS: dict[Fault, tuple[type[LlmError], ...]] = {
    "rate_limit": (LlmRateLimited,),
    "overloaded": (LlmOverloaded,),
    "server_error": (LlmUnavailable,),
    "hang": (LlmTimeout,),
    "drop": (LlmUnavailable,),
    "cut": (LlmUnavailable, LlmBadReply),
    "malformed": (LlmBadReply, LlmUnavailable),
    "half_stream": (LlmBadReply, LlmUnavailable),
    "wrong_type": (LlmBadReply,),
    "drip": (LlmTimeout,),
}
"""Libraries see some broken replies as broken connections."""


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_one_attempt_that_may_be_repeated(
    provider: str, fault: Fault, streaming: bool, server: ModelServer
) -> None:
    meter, store = CountingMeter(), MemoryReplies()
    settings: dict[str, Any] = {"streaming": streaming, "timeout_s": SLOW_S if fault in ("hang", "drip") else 20.0}
    asked = model(provider, server, attempts=1, meter=meter, store=store, **settings)
    server.faults.planned.append(fault)
    with pytest.raises(KINDS[fault]) as caught:
        ask(asked)
    assert caught.value.retryable
    assert server.counts().requests == 1
    assert (meter.sent, meter.failures, meter.reserved, store.puts) == ([], [("q1", 0)], 0, [])
    reply = ask(asked)
    assert reply.text == echoed(server.asked[0]).text
    assert (server.counts().requests, len(store.puts), meter.reserved) == (2, 1, 1)


def test_a_call_is_repeated_until_it_succeeds(server: ModelServer) -> None:
    meter = CountingMeter()
    server.faults.planned.extend(["overloaded", "drop", "malformed"])
    asked = providers.Anthropic("claude-test", base_url=server.url).language_model(meter=meter)
    asked.retry = RetryPolicy(sleep=lambda _: None)
    reply = ask(asked)
    assert reply.retries == 3
    assert server.counts().requests == 4
    assert [each.retries for each in meter.sent] == [3]


def test_retry_after_is_waited_for(server: ModelServer) -> None:
    waits: list[float] = []
    server.faults = Faults(retry_after="7")
    server.faults.planned.append("rate_limit")
    asked = model("anthropic", server)
    asked.retry = RetryPolicy(sleep=waits.append, random=lambda: 0.0)
    ask(asked)
    assert waits == [7.0]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_wrong_key_is_not_tried_twice_nor_repeated_in_words(provider: str, server: ModelServer) -> None:
    asked = model(provider, server)
    server.secret = "another"
    with pytest.raises(LlmAuthFailed) as caught:
        ask(asked)
    texts = []
    error: BaseException | None = caught.value
    while error is not None:
        texts.append(str(error))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert SECRET not in " ".join(texts)
    assert server.counts().requests == 0


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_request_that_will_never_be_answered_is_not_repeated(provider: str, server: ModelServer) -> None:
    meter = CountingMeter()
    with pytest.raises(LlmInvalidRequest, match=r"HTTP 404 .*no model .*missing"):
        ask(model(provider, server, id="missing", meter=meter))
    assert meter.failures == [("q1", 0)]


def test_nobody_listens(server: ModelServer) -> None:
    asked = model("openai", server, attempts=1)
    server.close()
    with pytest.raises(LlmUnavailable):
        ask(asked)


@pytest.mark.parametrize("provider", ["anthropic", "bedrock", "openai"])
def test_under_many_faults_nothing_is_lost_and_nothing_is_sent_again_after_success(
    provider: str, server: ModelServer
) -> None:
    quick: tuple[Fault, ...] = tuple(fault for fault in FAULTS if fault not in ("hang", "drip"))
    server.faults = Faults(kinds=quick, rate=0.06)
    store, meter = MemoryReplies(), CountingMeter()
    asked = model(provider, server, store=store, meter=meter)
    asked.retry = RetryPolicy(attempts=50, sleep=lambda _: None)
    texts = [f"question {number % 100}" for number in range(200)]
    with ThreadPoolExecutor(12) as pool:
        replies = list(pool.map(lambda text: ask(asked, text), texts))
    assert [reply.text for reply in replies] == [echoed(Asked("", (("user", text),), False, {})).text for text in texts]
    counts = server.counts()
    assert (counts.prompts, counts.answered, counts.again) == (100, 100, 0)
    assert counts.requests == 100 + sum(counts.faults.values())
    assert len(counts.faults) == len(quick)
    assert (len(store.puts), len(set(store.puts))) == (100, 100)
    assert (len(meter.sent), len(meter.replayed), meter.reserved) == (100, 100, 100)
    assert sum(reply.retries for reply in meter.sent) == sum(counts.faults.values())


# Waiting


def test_a_question_is_given_up_at_its_deadline(server: ModelServer) -> None:
    server.faults.planned.append("hang")
    with pytest.raises(LlmDeadline, match="time was over before the reply came"), Deadline.after(0.2).apply():
        ask(model("anthropic", server))
    with pytest.raises(LlmDeadline, match="no time is left"), Deadline.after(0.0).apply():
        ask(model("anthropic", server))


def test_no_more_calls_than_allowed_are_under_way(server: ModelServer) -> None:
    server.latency_s = 0.05
    asked = model("anthropic", server, concurrency=3)
    assert at_once(lambda number: ask(asked, f"question {number}"), 12) == [None] * 12
    assert server.counts().most_at_once == 3


def test_tokens_that_the_service_counts_are_what_the_limit_is_kept_by(server: ModelServer) -> None:
    waits: list[float] = []
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        waits.append(seconds)

    server.answer = lambda asked: Answered("word " * 98)
    limits = RateLimits(tokens_per_minute=100, sleep=sleep, clock=lambda: now)
    asked = LanguageModel(model("anthropic", server).chat_model, limits=limits)
    ask(asked, "one two")
    assert now == 0.0
    ask(asked, "three four")
    assert now == 60.0


# Store, meter, single flight


def test_a_recorded_reply_is_not_asked_for_again(server: ModelServer) -> None:
    store, meter = MemoryReplies(), CountingMeter()
    asked = model("anthropic", server, store=store, meter=meter)
    first, second = ask(asked), ask(asked, stage="later", question_id="q2")
    assert first == second
    assert ask(asked, sample=1) is not first
    assert server.counts().requests == 2
    assert (len(meter.sent), len(meter.replayed)) == (2, 1)
    assert meter.stages == {("answer", "q1"), ("later", "q2")}


def test_threads_that_ask_the_same_at_the_same_time_send_it_once(server: ModelServer) -> None:
    server.latency_s = 0.2
    store, meter = MemoryReplies(), CountingMeter()
    asked = model("openai", server, store=store, meter=meter)
    assert at_once(lambda number: ask(asked), 16) == [None] * 16
    assert server.counts().requests == 1
    assert (len(meter.sent), len(meter.replayed), len(store.puts)) == (1, 15, 1)


def test_without_a_store_every_call_is_sent(server: ModelServer) -> None:
    asked = model("openai", server)
    ask(asked)
    ask(asked)
    assert server.counts().requests == 2


def test_a_replayed_run_needs_no_key_no_service_and_asks_nobody(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryReplies()
    reply = ask(model("anthropic", server, store=store, temperature=0.0))
    server.close()
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    store.replay_only = True
    for again in (
        providers.Anthropic("claude-test", temperature=0.0).language_model(store=store),
        providers.Replay("claude-test", temperature=0.0, provider="anthropic").language_model(store=store),
    ):
        assert ask(again) == reply
        with pytest.raises(
            ReplyMissing, match=r"anthropic/claude-test: no recorded reply for question 'q9', stage 's'"
        ):
            ask(again, "Who starred in Heat?", stage="s", question_id="q9")


def test_llm_replay_asks_nobody_even_where_others_would(server: ModelServer) -> None:
    with pytest.raises(ReplyMissing):
        ask(providers.Replay("claude-test", provider="anthropic").language_model(store=MemoryReplies()))
    with pytest.raises(ConfigError, match="needs a store"):
        providers.Replay("claude-test", provider="anthropic").language_model()


def test_a_budget_lets_no_call_too_many_out(server: ModelServer) -> None:
    server.faults = Faults(kinds=("overloaded", "drop"), rate=0.1)
    meter = CountingMeter(max_calls=10)
    asked = Untiring(model("anthropic", server).chat_model, meter=meter, store=MemoryReplies())
    errors = at_once(lambda number: ask(asked, f"question {number}"), 32)
    assert sum(error is None for error in errors) == 10
    assert all(error is None or isinstance(error, BudgetExceeded) for error in errors)
    assert server.counts().answered == server.counts().prompts == 10


class Stuck(ScriptedChatModel):
    """Stops the thread that asks it."""

    _left: list[BaseException] = PrivateAttr(default_factory=list)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if self._left:
            raise self._left.pop()
        return super()._generate(messages, *args, **kwargs)


def test_an_interrupt_ends_the_call_and_releases_what_was_reserved() -> None:
    chat_model = Stuck(rules=(Rule("yes"),))
    chat_model._left.append(KeyboardInterrupt())
    meter = CountingMeter()
    asked = LanguageModel(chat_model, store=MemoryReplies(), meter=meter)
    with pytest.raises(KeyboardInterrupt):
        ask(asked)
    assert meter.reserved == 0
    assert ask(asked).text == "yes"


# Tracing and secrets


class Recorder(BaseCallbackHandler):
    """Keeps all that LangChain tells those who trace it."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_chat_model_start(self, serialized: dict[str, Any], messages: Any, **kwargs: Any) -> None:
        self.seen.append(f"start {serialized} {messages} {kwargs}")

    def on_llm_end(self, response: Any, **kwargs: Any) -> None:
        self.seen.append(f"end {response} {kwargs}")

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        self.seen.append(f"error {error!r} {kwargs}")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_keys_are_in_no_log_no_trace_and_no_record(
    provider: str, server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    recorder, store = Recorder(), MemoryReplies()
    asked = model(provider, server, store=store, callbacks=[recorder], attempts=2)
    asked.retry = RetryPolicy(attempts=2, sleep=lambda _: None)
    server.faults.planned.append("server_error")
    ask(asked)
    logged = "\n".join(record.getMessage() + str(record.args) for record in caplog.records)
    recorded = "\n".join(f"{key} {reply}" for key, reply in store.replies.items())
    call = asked.call([Message("user", "Who directed Heat?")])
    for text in (logged, "\n".join(recorder.seen), recorded, call.canonical, repr(asked), str(vars(asked))):
        assert SECRET not in text
    assert [seen.split()[0] for seen in recorder.seen] == ["start", "error", "start", "end"]
    assert "'question_id': 'q1'" in recorder.seen[0] and "'stage': 'answer'" in recorder.seen[0]


def test_callbacks_of_the_chat_model_are_called_too() -> None:
    recorder = Recorder()
    ask(LanguageModel(ScriptedChatModel(rules=(Rule("yes"),), callbacks=[recorder])))
    assert len(recorder.seen) == 2


def test_tracing_to_langsmith_is_said_once_and_before_anything_is_sent(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setenv("LANGSMITH_ENDPOINT", server.url)  # LangSmith's client must not leave this machine
    monkeypatch.setenv("LANGSMITH_API_KEY", "lsv2_only_for_tests")
    said: list[str] = []
    store = MemoryReplies()
    asked = LanguageModel(ScriptedChatModel(rules=(Rule("yes"),)), store=store, note=said.append)
    for number in (1, 2, 2):
        ask(asked, str(number))
    assert len(said) == 1
    assert "leave this machine" in said[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ask(LanguageModel(ScriptedChatModel(), store=store, provider="scripted"), "1")  # replayed, so nothing leaves
    with pytest.warns(UserWarning, match="LANGSMITH_TRACING"):
        ask(LanguageModel(ScriptedChatModel(rules=(Rule("yes"),))), "3")


# Any chat model


class Plain(ScriptedChatModel):
    """A chat model as users write one."""

    temperature: float = 0.3
    timeout: float = 5.0

    @property
    def _llm_type(self) -> str:
        return "mine"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.model, "temperature": self.temperature, "timeout": self.timeout, "stop": None}

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("mine"))])


def test_any_chat_model_plugs_in_with_what_identifies_it() -> None:
    asked = LanguageModel(Plain())
    assert (asked.provider, asked.model, asked.parameters) == ("mine", "script", {"temperature": 0.3})
    assert ask(asked).text == "mine"
    assert LanguageModel(Plain(), parameters={}).parameters == {}


def test_a_chat_model_that_cannot_say_what_it_is_must_be_told() -> None:
    class Odd(Plain):
        @property
        def _identifying_params(self) -> dict[str, Any]:
            return {"sampler": object()}

    with pytest.raises(ConfigError, match=r"sampler of Odd is a object.*give parameters"):
        LanguageModel(Odd())
    with pytest.raises(ConfigError, match="does not say which model"):
        LanguageModel(Plain(model=""))
    with pytest.raises(ConfigError, match="cannot identify a reply"):
        LanguageModel(Plain(), parameters={"temperature": float("nan")})


def test_a_chat_model_that_repeats_on_its_own_is_pointed_out(caplog: pytest.LogCaptureFixture) -> None:
    class Stubborn(Plain):
        max_retries: int = 2

    LanguageModel(Stubborn())
    assert "make it with max_retries=0" in caplog.text


def test_nothing_can_be_asked_without_a_message() -> None:
    with pytest.raises(ConfigError, match="no message"):
        LanguageModel(Plain()).reply([], stage="s", question_id="q")


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, float("nan")])
def test_a_timeout_of_nothing_is_refused(timeout_s: float) -> None:
    with pytest.raises(ConfigError, match="timeout_s"):
        LanguageModel(Plain(), timeout_s=timeout_s)
