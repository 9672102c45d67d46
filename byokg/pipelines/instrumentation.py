"""Stages of a pipeline: their wall time, and one hook that receives each as it begins and ends."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, Self, runtime_checkable

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
