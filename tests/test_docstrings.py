"""Examples in docstrings print their output, and every public name has one."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest

import byokg

EXTENSIBLE = ["byokg.graph.store.GraphStore"]
"""Base classes for parts of a user's own, beside the public names."""


def modules_with_examples() -> list[str]:
    """Return the modules of the package with a `>>>` in their source."""
    found = pkgutil.walk_packages(byokg.__path__, "byokg.")
    origins = ((module.name, module.module_finder.find_spec(module.name, None)) for module in found)
    return [name for name, spec in origins if spec and spec.origin and ">>>" in Path(spec.origin).read_text("utf-8")]


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_print_the_output_shown(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module(name)
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testmod(module, optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    assert tried and not failed
    assert list(tmp_path.iterdir()) == []


def test_each_public_name_has_an_example() -> None:
    names = [getattr(byokg, name) for name in byokg.__all__ if name != "__version__"]
    for path in EXTENSIBLE:
        home, _, name = path.rpartition(".")
        module: ModuleType = importlib.import_module(home)
        names.append(getattr(module, name))
    assert [value.__qualname__ for value in names if ">>>" not in (value.__doc__ or "")] == []
