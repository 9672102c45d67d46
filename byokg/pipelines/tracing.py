"""Spans of questions, stages and calls of language models, by OpenTelemetry's conventions for generative AI.

A question is a span `invoke_agent byokg`; within it stand its stages (`retrieve path` and so on are `execute_tool`
spans), and in these the calls of models (`chat MODEL`), with the conventions' `gen_ai.*` attributes. OpenTelemetry's
own variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME`, …) configure the destination. Texts of prompts and
replies are left out, unless `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true`.

Source: https://opentelemetry.io/docs/specs/semconv/gen-ai/
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from byokg.errors import import_extra
from byokg.llm.messages import Call, Meter, Reply
from byokg.pipelines.instrumentation import StageHook, instrument
from byokg.types import Answer, Question

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span

_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


class Tracing:
    """Sends spans.

    Args:
        exporter: destination; None sends them by OTLP over HTTP, configured by the environment.

    Raises:
        MissingExtra: OpenTelemetry is not installed.
    """

    def __init__(self, exporter: SpanExporter | None = None) -> None:
        import_extra("opentelemetry.exporter.otlp.proto.http", "tracing", "tracing=otlp")
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        name = os.environ.get("OTEL_SERVICE_NAME", "byokg")
        self._provider = TracerProvider(resource=Resource.create({"service.name": name}))
        self._provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("byokg")

    def close(self) -> None:
        """Send the remaining spans."""
        self._provider.shutdown()

    def pipeline(self, pipeline: Any) -> TracedPipeline:
        """Return a pipeline that does the same, with a span for each question and stage."""
        return TracedPipeline(instrument(pipeline, self._stage), self)

    def meter(self, meter: Meter) -> Meter:
        """Return a meter that counts the same, with a span for each call."""
        return _TracedMeter(meter, self._tracer)

    @contextmanager
    def question(self, question: Question) -> Iterator[dict[str, Any]]:
        """Enclose the answering of a question in a span."""
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "byokg",
            "gen_ai.conversation.id": question.id,
        }
        if _captures_content():
            attributes["byokg.question"] = question.text
        with self._span("invoke_agent byokg", attributes) as results:
            yield results

    @contextmanager
    def _stage(self, name: str) -> Iterator[dict[str, Any]]:
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name.removeprefix("retrieve ")}
        with self._span(name, tool if name.startswith("retrieve ") else {}) as results:
            yield results

    @contextmanager
    def _span(self, name: str, attributes: dict[str, str]) -> Iterator[dict[str, Any]]:
        """Enclose work in a span; at its end, the sizes of the work's results become attributes."""
        results: dict[str, Any] = {}
        with self._tracer.start_as_current_span(name, attributes=attributes) as span:
            yield results
            counts = {key: value if isinstance(value, int) else len(value) for key, value in results.items()}
            span.set_attributes({f"byokg.{key.replace(' ', '_')}": count for key, count in counts.items()})


@dataclass(frozen=True)
class TracedPipeline:
    """A pipeline with a span for each question."""

    pipeline: Any
    tracing: Tracing

    def run(self, question: Question) -> Answer:
        """Answer the question."""
        with self.tracing.question(question) as results:
            answer: Answer = self.pipeline.run(question)
            results["answers"] = [item.name for item in answer.items]
            return answer

    def hooked(self, on_stage: StageHook) -> Self:
        """Return a pipeline that does the same and calls one more hook at its stages."""
        return replace(self, pipeline=instrument(self.pipeline, on_stage))


class _TracedMeter:
    """A meter with a span for each call."""

    def __init__(self, meter: Meter, tracer: Any) -> None:
        self._meter = meter
        self._tracer = tracer
        self._open: dict[tuple[int, str], Span] = {}

    def before(self, call: Call, stage: str, question_id: str) -> None:
        self._meter.before(call, stage, question_id)
        self._open[threading.get_ident(), call.key] = self._started(call, stage, question_id)

    def after(self, call: Call, reply: Reply, stage: str, question_id: str, replayed: bool) -> None:
        span = self._open.pop((threading.get_ident(), call.key), None) or self._started(call, stage, question_id)
        span.set_attributes(
            {
                "gen_ai.usage.input_tokens": reply.usage.input_tokens,
                "gen_ai.usage.output_tokens": reply.usage.output_tokens,
                "gen_ai.response.finish_reasons": [reply.stop],
                "byokg.replayed": replayed,
            }
        )
        if _captures_content():
            said = [{"role": "assistant", "parts": [{"type": "text", "content": reply.text}]}]
            span.set_attribute("gen_ai.output.messages", json.dumps(said))
        span.end()
        self._meter.after(call, reply, stage, question_id, replayed)

    def failed(self, call: Call, retries: int, stage: str, question_id: str) -> None:
        from opentelemetry.trace import StatusCode

        span = self._open.pop((threading.get_ident(), call.key), None)
        if span is not None:
            span.set_status(StatusCode.ERROR, f"no answer after {1 + retries} attempts")
            span.set_attribute("error.type", "no_answer")
            span.end()
        self._meter.failed(call, retries, stage, question_id)

    def _started(self, call: Call, stage: str, question_id: str) -> Span:
        from opentelemetry.trace import SpanKind

        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": call.provider,
            "gen_ai.request.model": call.model,
            "gen_ai.conversation.id": question_id,
            "byokg.stage": stage,
        }
        for name in ("temperature", "max_tokens", "top_p"):
            if isinstance(value := call.parameters.get(name), int | float):
                attributes[f"gen_ai.request.{name}"] = value
        if _captures_content():
            sent = [
                {"role": message.role, "parts": [{"type": "text", "content": message.text}]}
                for message in call.messages
            ]
            attributes["gen_ai.input.messages"] = json.dumps(sent)
        span: Span = self._tracer.start_span(f"chat {call.model}", kind=SpanKind.CLIENT, attributes=attributes)
        return span


def _captures_content() -> bool:
    return os.environ.get(_CONTENT, "").lower() == "true"
