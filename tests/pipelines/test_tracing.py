"""Tests of `byokg.pipelines.tracing`: what reaches a collector on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.linking.parts import Parts
from byokg.llm.messages import Call, Message, Reply
from byokg.llm.usage import UsageMeter
from byokg.offline.pipeline import offline_pipeline
from byokg.pipelines.byokg import Direct
from byokg.pipelines.instrumentation import instrument
from byokg.pipelines.tracing import Tracing
from byokg.types import Question

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="pip install 'byokg[tracing]'")

QUESTION = Question("q1", "Who directed Heat?")


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Collect spans over HTTP as any collector does; return them as they come."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    found: list[Any] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            import gzip

            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            sent = ExportTraceServiceRequest.FromString(body)
            found.extend(span for group in sent.resource_spans for scope in group.scope_spans for span in scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *values: Any) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield found
        server.shutdown()
        thread.join()


def attributes(span: Any) -> dict[str, Any]:
    """Return what a span says."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


def graph() -> ColumnarGraph:
    """Heat -directed_by-> Mann."""
    return ColumnarGraph.from_triples([("Heat", "directed_by", "Mann"), ("Ali", "directed_by", "Mann")])


def test_a_question_is_a_span_with_its_stages_within(spans: list[Any]) -> None:
    tracing = Tracing()
    pipeline = offline_pipeline(Parts(graph()))
    answer = tracing.pipeline(pipeline).run(QUESTION)
    tracing.close()
    by_name = {span.name: span for span in spans}
    root = by_name["invoke_agent byokg"]
    assert set(by_name) == {"invoke_agent byokg", "propose", "link", "retrieve path", "answer"}
    assert all(span.parent_span_id == root.span_id for span in spans if span is not root)
    assert attributes(root)["gen_ai.conversation.id"] == "q1"
    assert attributes(by_name["retrieve path"])["gen_ai.tool.name"] == "path"
    assert attributes(by_name["answer"])["byokg.answers"] == len(answer.items) == 1
    assert pipeline.estimator is not None
    assert answer.items == pipeline.run(QUESTION).items  # how sure it is as well
    assert b"Heat" not in b"".join(span.SerializeToString() for span in spans)


def test_a_traced_pipeline_can_be_watched_as_well(spans: list[Any]) -> None:
    tracing = Tracing()
    seen = []

    @contextmanager
    def watch(stage: str) -> Iterator[dict[str, Any]]:
        seen.append(stage)
        yield {}

    instrument(tracing.pipeline(offline_pipeline(Parts(graph()))), watch).run(QUESTION)
    tracing.close()
    assert list(dict.fromkeys(seen)) == ["propose", "link", "retrieve path", "answer"]
    assert {span.name for span in spans} == {"invoke_agent byokg", *seen}


def test_calls_have_tokens_and_model_and_no_content_unless_it_is_asked_for(
    spans: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Call("anthropic", "m-1", (Message("user", "secret words"),), {"temperature": 0.0})
    for captured in ("false", "true"):
        monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", captured)
        tracing, counts = Tracing(), UsageMeter()
        meter = tracing.meter(counts)
        meter.before(call, "answer", "q1")
        meter.after(call, Reply("said"), "answer", "q1", False)
        meter.before(call, "answer", "q2")
        meter.failed(call, 2, "answer", "q2")
        tracing.close()
        answered, failed = spans
        assert (answered.name, answered.kind) == ("chat m-1", 3)
        told = attributes(answered)
        assert (told["gen_ai.provider.name"], told["gen_ai.request.model"]) == ("anthropic", "m-1")
        assert {"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.response.finish_reasons"} <= set(
            told
        )
        assert failed.status.code == 2
        assert counts.take("q1").stages["answer"].asked.calls == 1
        assert (b"secret words" in answered.SerializeToString()) is (captured == "true")
        spans.clear()


def test_a_pipeline_that_is_no_loop_is_watched_as_a_whole() -> None:
    pipeline = Direct.__new__(Direct)
    assert instrument(pipeline, lambda stage: pytest.fail(stage)) is pipeline
