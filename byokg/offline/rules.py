"""The hand-made rules of the offline pipeline: each is a function with a name, an example, and a result without it.

A rule that is left out returns the result of a pipeline without it, so that its worth can be measured
(`benchmarks/ablate_offline.py`); one that changes a result has fired, which traces record.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

import numpy as np

from byokg.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


@dataclass(frozen=True)
class NamedRule:
    """A hand-made rule."""

    name: str
    effect: str
    """One sentence: the first line of the function's docstring."""
    example: str
    """A question on which it may fire; mentions stand in braces."""
    place: str
    """Module and function."""


RULES: dict[str, NamedRule] = {}
"""By name, in the order of import; see `all_rules`."""

_NONE: frozenset[str] = frozenset()
_left_out: ContextVar[frozenset[str]] = ContextVar("left_out", default=_NONE)
_fired: ContextVar[set[str] | None] = ContextVar("fired", default=None)


def rule(name: str, example: str, otherwise: Callable[..., object]) -> Callable[[F], F]:
    """Make a function a rule.

    Args:
        name: unique, in the terms of the glossary.
        example: a question on which it may fire, with mentions in braces.
        otherwise: called with the same arguments, returns the result without the rule.
    """

    def register(function: F) -> F:
        effect = (function.__doc__ or "").partition("\n")[0]
        assert name not in RULES or RULES[name].place == f"{function.__module__}.{function.__qualname__}", name
        RULES[name] = NamedRule(name, effect, example, f"{function.__module__}.{function.__qualname__}")

        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> object:
            if name in _left_out.get():
                return otherwise(*args, **kwargs)
            before = otherwise(*args, **kwargs) if (fired := _fired.get()) is not None else None
            result: object = function(*args, **kwargs)
            if fired is not None and not _equal(result, before):
                fired.add(name)
            return result

        return cast("F", run)

    return register


def _equal(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)


def cached(size: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Return a cache for a function that calls rules: a result is reused with equal rules, and its rules fire again."""

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        @lru_cache(size)
        def remember(
            _: frozenset[str], recorded: bool, args: tuple[Any, ...], **kwargs: Any
        ) -> tuple[T, frozenset[str]]:
            if not recorded:
                return function(*args, **kwargs), _NONE
            with record() as fired:
                return function(*args, **kwargs), frozenset(fired)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> T:
            fired = _fired.get()
            result, again = remember(_left_out.get(), fired is not None, args, **kwargs)
            if fired is not None:
                fired |= again
            return result

        return call

    return decorate


@contextmanager
def leave_out(names: Collection[str]) -> Iterator[None]:
    """Leave rules out within the block."""
    token = _left_out.set(_left_out.get() | frozenset(names))
    try:
        yield
    finally:
        _left_out.reset(token)


@contextmanager
def record() -> Iterator[set[str]]:
    """Yield the names of the rules that fire within the block, to which they are added as they do."""
    outer, fired = _fired.get(), set[str]()
    token = _fired.set(fired)
    try:
        yield fired
    finally:
        _fired.reset(token)
        if outer is not None:
            outer |= fired


def rule_hook(left_out: Collection[str]) -> Callable[[str], AbstractContextManager[dict[str, Any]]]:
    """Return a hook for stages that leaves rules out, and puts the fired ones into a stage's results, as `rules`.

    Raises `ConfigError` for a name that no rule has.
    """
    check_names(left_out)

    @contextmanager
    def hook(stage: str) -> Iterator[dict[str, Any]]:
        results: dict[str, Any] = {}
        with leave_out(left_out), record() as fired:
            yield results
        results["rules"] = sorted(fired)

    return hook


def check_names(names: Collection[str]) -> None:
    """Raise `ConfigError` for a name that no rule has."""
    for name in names:
        if name not in RULES and name not in all_rules():
            near = get_close_matches(name, RULES, 1)
            raise ConfigError(f"no rule {name!r}; {f'did you mean {near[0]!r}' if near else 'see docs/offline.md'}")


def all_rules() -> dict[str, NamedRule]:
    """Return all rules by name, in alphabetical order; imports the modules that hold them."""
    package = importlib.import_module("byokg.offline")
    for module in pkgutil.iter_modules(package.__path__, "byokg.offline."):
        if not module.ispkg:
            importlib.import_module(module.name)
    return dict(sorted(RULES.items()))
