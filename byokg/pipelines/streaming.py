"""A running question as a stream: its stages, the tokens of its language model, and its answer.

The pipeline runs in a thread of its own. A stream that is closed before its end cancels it at its next check
(`byokg.graph.cancellation`); a call of a language model that was sent is not taken back.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from byokg.graph.cancellation import CancelToken
from byokg.llm.retry import receive_tokens
from byokg.pipelines.instrumentation import StageHook
from byokg.types import Answer


@dataclass(frozen=True)
class StreamEvent:
    """One step of a question.

    >>> StreamEvent("stage", "link").name
    'link'
    """

    kind: Literal["stage", "result", "token"]
    """`stage`: a stage begins. `result`: it ends. `token`: the language model wrote some characters; a repeated call
    begins anew."""
    name: str
    """Stage of the pipeline (`propose`, `link`, `retrieve path`, `answer`), or for a token that of the call."""
    text: str = ""
    """Characters of a token; a recorded reply comes as one."""
    results: Mapping[str, Any] = field(default_factory=dict)
    """Of a stage that ended: entities, paths, nodes, number of evidence, answers."""


Work = Callable[[StageHook], Answer]
"""Answers a question, calling a hook at its stages."""

_Put = Callable[[object], None]


def stream(work: Work) -> Iterator[StreamEvent | Answer]:
    """Yield the events of a question, and its answer last. Raises what `work` raises."""
    events: queue.SimpleQueue[object] = queue.SimpleQueue()
    token = _started(work, events.put)
    try:
        while True:
            event = _raised(events.get())
            yield event
            if isinstance(event, Answer):
                return
    finally:
        token.end()


async def astream(work: Work) -> AsyncIterator[StreamEvent | Answer]:
    """Do what `stream` does, beside the event loop."""
    loop, events = asyncio.get_running_loop(), asyncio.Queue[object]()

    def put(event: object) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(events.put_nowait, event)

    token = _started(work, put)
    try:
        while True:
            event = _raised(await events.get())
            yield event
            if isinstance(event, Answer):
                return
    finally:
        token.end()


def _started(work: Work, put: _Put) -> CancelToken:
    """Begin in a thread; put events, and at last the answer or the error."""
    token = CancelToken()

    @contextmanager
    def hook(name: str) -> Iterator[dict[str, Any]]:
        put(StreamEvent("stage", name))
        results: dict[str, Any] = {}
        yield results
        put(StreamEvent("result", name, results=results))

    def run() -> None:
        try:
            with token.work(), receive_tokens(lambda stage, text: put(StreamEvent("token", stage, text))):
                put(work(hook))
        except BaseException as error:
            put(error)

    context = contextvars.copy_context()  # a trace that the caller has open goes on in the thread
    threading.Thread(target=context.run, args=(run,), name="byokg-stream", daemon=True).start()
    return token


def _raised(event: object) -> StreamEvent | Answer:
    if isinstance(event, BaseException):
        raise event
    assert isinstance(event, StreamEvent | Answer)
    return event
