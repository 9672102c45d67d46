"""Stages of a pipeline: their wall time, and one hook that receives each as it begins and ends; a question as a stream.

A stream yields the stages of a running question, the tokens of its language model, and its answer. The pipeline runs in
a thread of its own. A stream that is closed before its end cancels it at its next check (`byokg.graph.cancellation`); a
call of a language model that was sent is not taken back.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self, runtime_checkable

from byokg.graph.cancellation import CancelToken
from byokg.llm.retry import receive_tokens
from byokg.types import Answer

StageHook = Callable[[str], AbstractContextManager[dict[str, Any]]]
"""Called with the name of a stage (`propose`, `link`, `retrieve NAME`, `answer`); entered as it begins and left as it
ends. Results of the stage are put into the mapping before it is left."""


@contextmanager
def no_hook(name: str) -> Iterator[dict[str, Any]]:
    """Receive a stage and do nothing."""
    yield {}


@runtime_checkable
class Instrumentable(Protocol):
    """A pipeline that calls hooks at its stages."""

    def hooked(self, on_stage: StageHook) -> Self:
        """Return a pipeline that does the same and calls one more hook."""


def instrument(pipeline: Any, on_stage: StageHook) -> Any:
    """Return a pipeline that does the same and calls a hook at its stages; one without stages is returned as it is.

    A pipeline may have several hooks.
    """
    return pipeline.hooked(on_stage) if isinstance(pipeline, Instrumentable) else pipeline


def join_hooks(outer: StageHook, inner: StageHook) -> StageHook:
    """Return one hook that calls two, the second within the first."""

    @contextmanager
    def both(name: str) -> Iterator[dict[str, Any]]:
        with outer(name) as results:
            with inner(name) as same:
                yield results
                same |= results
            results |= same

    return both


class StageClock:
    """Adds up the wall time of one question's stages, and calls a hook at each."""

    def __init__(self, on_stage: StageHook = no_hook) -> None:
        self._on_stage = on_stage
        self.seconds: dict[str, float] = defaultdict(float)
        """By part of an answer: `link`, `retrieve`, `answer`."""
        self.rules: set[str] = set()
        """Rules that hooks put into the results of stages as `rules`."""

    @contextmanager
    def stage(self, name: str, part: str = "") -> Iterator[dict[str, Any]]:
        """Enclose a stage whose time counts for a part, by default one of its own name; yield its results."""
        began = time.perf_counter()
        with self._on_stage(name) as results:
            yield results
        self.seconds[part or name] += time.perf_counter() - began
        self.rules.update(results.get("rules", ()))


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
