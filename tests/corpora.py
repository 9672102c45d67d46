"""Parametrised corpora as one test each, and packages that a test module needs, without their import."""

from __future__ import annotations

import functools
import importlib.util
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

_SHOWN = 20
"""Failures that are listed; the rest is counted."""


def each_of(names: str | Sequence[str], cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for every case in turn, and list all failures at the end; arguments as of `pytest.mark.parametrize`.

    For cases by the hundred that share their fixtures: one test costs what one of them would cost in collection.
    """
    listed, several = list(cases), not isinstance(names, str)
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else names

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            failures = []
            for case in listed:
                values = case if several or len(names) > 1 else (case,)
                try:
                    test(*args, **fixtures, **dict(zip(names, values, strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    failures.append(f"{case!r}: {type(error).__name__}: {error}")
            more = f"\n(+{len(failures) - _SHOWN} more)" if len(failures) > _SHOWN else ""
            told = "\n".join(failures[:_SHOWN])
            assert not failures, f"{len(failures)} of {len(listed)} cases failed:\n{told}{more}"

        kept = [parameter for name, parameter in signature.parameters.items() if name not in names]
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return run

    return decorate


def require(extra: str, *modules: str) -> None:
    """Skip a test module unless packages are installed; nothing is imported, which would take seconds at collection."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install 'byokg[{extra}]'", allow_module_level=True)
