"""Tests of structured output: replies held to a JSON schema, against a server that speaks the services' protocols."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

from byokg.errors import ConfigError
from byokg.linking.parts import Parts
from byokg.llm.chat_models import Rule, ScriptedChatModel
from byokg.llm.messages import Message
from byokg.llm.model import LanguageModel
from byokg.llm.parsing import read_answers, read_list, read_paths, read_query
from byokg.llm.providers import Anthropic
from byokg.llm.reply_blocks import reply_schema
from byokg.pipelines.byokg import Direct
from byokg.types import Question
from tests.llm.conftest import model
from tests.llm.memory import MemoryReplies
from tests.llm.servers.model_server import ModelServer
from tests.llm.servers.protocols import Answered, Asked

SCHEMA = reply_schema(["entities", "paths", "opencypher", "answers"])

RESULTS: dict[str, Any] = {
    "entities": ["Heat"],
    "paths": [["directed_by", "born_in"], ["made_in"]],
    "opencypher": "MATCH (n) RETURN n",
    "answers": [{"answer": "Michael Mann", "citations": ["e1", "e2"]}, {"answer": "Al Pacino", "citations": []}],
}


def in_text(asked: Asked) -> Answered:
    return Answered(json.dumps(RESULTS))


def in_a_call(asked: Asked) -> Answered:
    return Answered("", stop="tool", tool_calls=(("t1", SCHEMA["title"], RESULTS),))


@pytest.mark.parametrize(
    ("provider", "answer"), [("openai", in_text), ("azure", in_text), ("anthropic", in_a_call), ("bedrock", in_a_call)]
)
def test_the_service_is_given_the_schema_and_the_reply_is_read_as_any_other(
    provider: str, answer: Any, server: ModelServer
) -> None:
    server.answer = answer
    reply = model(provider, server, structured="json_schema").reply(
        [Message("user", "Who directed Heat?")], stage="s", question_id="q", schema=SCHEMA
    )
    assert reply.stop == "end" and not reply.tool_calls and json.loads(reply.text) == RESULTS
    assert read_list(reply.text, "entities").items == ("Heat",)
    assert read_paths(reply.text) == (("directed_by", "born_in"), ("made_in",))
    assert read_query(reply.text, "opencypher") == "MATCH (n) RETURN n"
    assert {one.name: one.citations for one in read_answers(reply.text)} == {
        "Michael Mann": ("e1", "e2"),
        "Al Pacino": (),
    }


def test_nothing_changes_where_it_is_not_asked_for(server: ModelServer) -> None:
    plain, structured = model("openai", server), model("openai", server, structured="json_schema")
    messages = [Message("user", "Who?")]
    assert plain.call(messages, schema=SCHEMA).key == plain.call(messages).key == structured.call(messages).key
    assert structured.call(messages, schema=SCHEMA).key != plain.call(messages).key
    assert plain.reply(messages, stage="s", question_id="q", schema=SCHEMA).text.startswith("reply ")


class Plain(ScriptedChatModel):
    """A chat model without structured output."""

    def with_structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def test_a_chat_model_without_structured_output_is_asked_for_tags() -> None:
    asked = LanguageModel(Plain(rules=(Rule("<entities>Heat</entities>"),)), structured="json_schema")
    reply = asked.reply([Message("user", "Who?")], stage="s", question_id="q", schema=SCHEMA)
    assert read_list(reply.text, "entities").items == ("Heat",)


def test_a_reply_that_breaks_the_schema_is_read_as_text(server: ModelServer) -> None:
    server.answer = lambda asked: Answered("<entities>Heat</entities>")
    reply = model("openai", server, structured="json_schema").reply(
        [Message("user", "Who?")], stage="s", question_id="q", schema=SCHEMA
    )
    assert reply.text == "<entities>Heat</entities>"


def test_structured_replies_are_recorded_and_replayed(server: ModelServer) -> None:
    server.answer = in_text
    store = MemoryReplies()
    for _ in range(2):
        asked = model("openai", server, structured="json_schema", store=store)
        asked.reply([Message("user", "Who?")], stage="s", question_id="q", schema=SCHEMA)
    assert len(server.asked) == 1


def test_batches_have_no_structured_output() -> None:
    with pytest.raises(ConfigError, match="structured=json_schema needs replies at once"):
        Anthropic("claude-test", batch=True, structured="json_schema").language_model(pending=object())  # type: ignore[arg-type]


@pytest.mark.parametrize("arguments", [{"answers": "Paris"}, {"results": {"answers": ["Paris"]}}])
def test_a_call_that_does_not_hold_to_the_schema_is_read_as_any_reply(
    arguments: dict[str, Any], server: ModelServer
) -> None:
    server.answer = lambda asked: Answered("", stop="tool", tool_calls=(("t1", SCHEMA["title"], arguments),))
    reply = model("anthropic", server, structured="json_schema").reply(
        [Message("user", "Which city?")], stage="s", question_id="q", schema=SCHEMA
    )
    assert [one.name for one in read_answers(reply.text)] == ["Paris"]
    assert reply.stop == "end" and not reply.tool_calls


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_text_that_does_not_hold_to_the_schema_is_read_as_any_reply(provider: str, server: ModelServer) -> None:
    server.answer = lambda asked: Answered("<answers>\nParis [e3]\n</answers>")
    reply = model(provider, server, structured="json_schema").reply(
        [Message("user", "Which city?")], stage="s", question_id="q", schema=SCHEMA
    )
    assert [(one.name, one.citations) for one in read_answers(reply.text)] == [("Paris", ("e3",))]


class Broken(ScriptedChatModel):
    """A chat model whose call breaks off."""

    def with_structured_output(self, *args: Any, **kwargs: Any) -> Any:
        call = {"name": "results", "args": '{"answers": ["Paris", "Ly', "id": "t1", "error": "no JSON"}
        message = AIMessage("", invalid_tool_calls=[call], response_metadata={"finish_reason": "stop"})
        return RunnableLambda(lambda asked: {"raw": message, "parsed": None, "parsing_error": ValueError("no JSON")})


def test_a_call_that_breaks_off_is_read_as_far_as_it_goes() -> None:
    asked = LanguageModel(Broken(rules=(Rule("never"),)), structured="json_schema")
    reply = asked.reply([Message("user", "Which city?")], stage="s", question_id="q", schema=SCHEMA)
    assert reply.text == '{"answers": ["Paris", "Ly' and not reply.tool_calls


def test_every_prompt_that_asks_for_results_says_which(server: ModelServer) -> None:
    server.answer = in_text
    asked = model("openai", server, structured="json_schema")
    assert [item.name for item in Direct(Parts(None, asked)).run(Question("ask", "Who directed Heat?")).items] == [
        "Michael Mann",
        "Al Pacino",
    ]
    assert [item.name for item in Direct(Parts(None, asked), thinking=True).run(Question("ask", "Who?")).items] == [
        "Michael Mann",
        "Al Pacino",
    ]
    schemas = [request.body["response_format"]["json_schema"]["schema"] for request in server.asked]
    assert [list(schema["properties"]) for schema in schemas] == [["answers"], ["reason", "answers"]]
    assert schemas[0]["properties"]["answers"]["items"] == {"type": "string"}
