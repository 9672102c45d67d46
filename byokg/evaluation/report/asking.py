"""Asks a pipeline while a page watches its stages."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from byokg.evaluation.datasets.base import Example
from byokg.evaluation.records import Timing, parse_prediction, record_answer
from byokg.evaluation.report.live import detailed
from byokg.evaluation.run_folder import Run
from byokg.evaluation.runner import Pipeline
from byokg.graph.store import GraphStore
from byokg.llm.retry import set_question
from byokg.llm.usage import UsageMeter
from byokg.pipelines.instrumentation import instrument
from byokg.types import Question

Event = Mapping[str, Any]
Ask = Callable[[str, Callable[[Event], None]], Event]
"""Answers a question, reports each stage as it begins and ends, and returns the question's record."""


def asker(pipeline: Pipeline, store: GraphStore, meter: UsageMeter | None = None) -> Ask:
    """Return a function that runs a pipeline on one question at a time.

    Args:
        pipeline: answers the question.
        store: the graph, for the names of its nodes.
        meter: counts the usage of the pipeline's language models.
    """
    alone = threading.Lock()

    def ask(text: str, tell: Callable[[Event], None]) -> Event:
        numbers = count()

        @contextmanager
        def watch(stage: str) -> Iterator[dict[str, Any]]:
            number, began = next(numbers), time.perf_counter()
            brought: dict[str, Any] = {}
            tell({"stage": stage, "number": number})
            yield brought
            seconds = time.perf_counter() - began
            tell({"stage": stage, "number": number, "seconds": seconds, "brought": brought})

        with alone:
            began = time.perf_counter()
            with set_question("ask"):
                answer = instrument(pipeline, watch).run(Question("ask", text))
            seconds = time.perf_counter() - began
            usage = None if meter is None else meter.take("ask")
        lines = record_answer(answer, seconds, usage)
        prediction = parse_prediction(lines.predictions, "what was asked")
        timing = Timing("ask", {"total": seconds, **answer.seconds}, {} if usage is None else usage.stages)
        example = Example("ask", text, ())
        run = Run("ask", Path(), {}, (example,), {"ask": prediction}, {"ask": timing}, None)
        return detailed(example, [run], [json.loads(lines.trace)], store, None)

    return ask
