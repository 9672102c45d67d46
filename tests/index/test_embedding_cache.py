"""Tests of `byokg.index.dense`."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.errors import CacheUnusable
from byokg.index.dense import TEXTS_AT_ONCE, CachedEmbedder, EmbeddingCache, Precision, text_keys
from byokg.index.embedders import StaticEmbedder, Vectors, folder_name, unit_rows
from tests.index.embedder_contract import EmbedderContract

ROOT = Path(__file__).resolve().parents[2]

STATIC = StaticEmbedder()


class Counting:
    """The shipped embedder, which keeps what it was asked."""

    def __init__(self, name: str | None = None) -> None:
        self.inner = STATIC
        self.asked: list[str] = []
        self.name = name or self.inner.name

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return self.inner.encode(texts)


class TestCached(EmbedderContract):
    @pytest.fixture(params=["float16", "float32"])
    def embedder(self, tmp_path: Path, request: pytest.FixtureRequest) -> CachedEmbedder:
        return CachedEmbedder(STATIC, tmp_path, request.param)


TEXTS = ["Tirana", "tirana", "", "New York", "Παρίσι", "Tirana", "\x00", "x" * 5000]


@pytest.mark.parametrize("precision", ["float16", "float32"])
def test_a_second_build_embeds_nothing_and_gets_the_same_bytes(precision: Precision, tmp_path: Path) -> None:
    first = Counting()
    vectors = CachedEmbedder(first, tmp_path, precision).encode(TEXTS)
    assert first.asked == list(dict.fromkeys(TEXTS))
    second = Counting()
    again = CachedEmbedder(second, tmp_path, precision)
    assert again.encode(TEXTS).tobytes() == vectors.tobytes()
    assert second.asked == []
    assert again.encode(["Oslo", *TEXTS])[1:].tobytes() == vectors.tobytes()
    assert second.asked == ["Oslo"]


def test_float32_loses_nothing_and_float16_next_to_nothing(tmp_path: Path) -> None:
    plain = STATIC.encode(TEXTS)
    whole = CachedEmbedder(STATIC, tmp_path, "float32").encode(TEXTS)
    half = CachedEmbedder(STATIC, tmp_path, "float16").encode(TEXTS)
    np.testing.assert_allclose(whole, plain, atol=1e-7)
    assert np.abs(half @ half.T - plain @ plain.T).max() < 3e-4
    filled = plain.any(axis=1)
    np.testing.assert_allclose(np.linalg.norm(half[filled], axis=1), 1, atol=1e-6)
    assert not half[~filled].any()


def test_models_and_precisions_are_kept_apart(tmp_path: Path) -> None:
    CachedEmbedder(Counting("a/model"), tmp_path).encode(["Tirana"])
    second = Counting("a-model")
    CachedEmbedder(second, tmp_path).encode(["Tirana"])
    assert second.asked == ["Tirana"]
    third = Counting("a/model")
    CachedEmbedder(third, tmp_path, "float32").encode(["Tirana"])
    assert third.asked == ["Tirana"]


def test_a_folder_name_is_readable_and_tells_names_apart() -> None:
    assert folder_name("static-128-int8-65d26be1dd0e") == "static-128-int8-65d26be1dd0e"
    hub = folder_name("BAAI/bge-m3")
    assert hub.startswith("BAAI-bge-m3-") and hub != folder_name("BAAI-bge-m3")
    for name in ("", "..", "/", "a" * 500, "模型", "a\nb", ".hidden"):
        made = folder_name(name)
        assert made and "/" not in made and not made.startswith(".") and len(made) < 130
    assert folder_name("模型") != folder_name("模具")


@given(st.lists(st.lists(st.text(max_size=6), max_size=40), max_size=8))
@settings(max_examples=25, deadline=None)
def test_any_sequence_of_calls_gives_what_the_embedder_gives(calls: list[list[str]]) -> None:
    plain = STATIC
    with tempfile.TemporaryDirectory() as folder:
        counting = Counting()
        cached = CachedEmbedder(counting, Path(folder), "float32")
        for texts in calls:
            np.testing.assert_allclose(cached.encode(texts), plain.encode(texts), atol=1e-6)
        assert len(set(counting.asked)) == len(counting.asked)
        cached.close()


def test_many_small_additions_are_all_found_again(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path, "m", 2, "float32")
    angles = np.linspace(0.1, 3, 500)
    rows = np.column_stack((np.cos(angles), np.sin(angles))).astype(np.float32)
    for at in range(500):
        cache.add(text_keys([f"text {at}"]), rows[at : at + 1])
    for each in (cache, EmbeddingCache(tmp_path, "m", 2, "float32")):
        found, vectors = each.find(text_keys([f"text {at}" for at in range(501)]))
        assert found.tolist() == [True] * 500 + [False]
        np.testing.assert_allclose(vectors[:500], rows, atol=1e-6)


# What a kill or a power failure leaves


def test_a_log_that_is_torn_loses_only_what_is_torn_and_takes_more(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path / "whole", "m", 4, "float32")
    for at, text in enumerate("abc"):
        cache.add(text_keys([text]), np.eye(4, dtype=np.float32)[at : at + 1])
    (log,) = tmp_path.rglob("*-wal")  # a power failure leaves the file and its log
    for lost in range(0, 4096 + 24, 500):
        torn = tmp_path / f"torn {lost}"
        shutil.copytree(tmp_path / "whole", torn, ignore=shutil.ignore_patterns("*-shm"))
        (left,) = torn.rglob("*-wal")
        os.truncate(left, log.stat().st_size - lost)
        again = EmbeddingCache(torn, "m", 4, "float32")
        assert again.find(text_keys(["a", "b", "c"]))[0].tolist() == [True, True, lost == 0]
        again.add(text_keys(["c", "d"]), np.eye(4, dtype=np.float32)[2:])
        again.close()
        found, rows = EmbeddingCache(torn, "m", 4, "float32").find(text_keys(["d", "c", "a"]))
        assert found.tolist() == [True, True, True]
        np.testing.assert_array_equal(rows, np.eye(4)[[3, 2, 0]])


def test_a_file_that_is_none_of_ours_is_named(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path, "m", 4)
    cache.add(text_keys(["a"]), np.eye(4, dtype=np.float32)[:1])
    cache.close()
    (file,) = tmp_path.rglob("*.sqlite")
    file.write_bytes(b"no database" * 1000)
    with pytest.raises(CacheUnusable, match=rf"{file.name}.*not a database.*remove it"):
        EmbeddingCache(tmp_path, "m", 4).find(text_keys(["a"]))


def test_a_vector_that_changed_on_disk_counts_as_absent_and_is_made_anew(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path, "m", 4, "float32")
    cache.add(text_keys(["a", "b"]), np.eye(4, dtype=np.float32)[:2])
    cache.close()
    (file,) = tmp_path.rglob("*.sqlite")
    with closing(sqlite3.connect(file)) as changed, changed:
        ((vectors,),) = changed.execute("SELECT vectors FROM blocks")
        changed.execute("UPDATE blocks SET vectors = ?", (bytes(16) + vectors[16:],))
    cache = EmbeddingCache(tmp_path, "m", 4, "float32")
    found, rows = cache.find(text_keys(["a", "b"]))
    assert found.tolist() == [False, True]
    assert not rows[0].any()
    cache.add(text_keys(["a"]), np.eye(4, dtype=np.float32)[:1])
    for again in (cache, EmbeddingCache(tmp_path, "m", 4, "float32")):
        found, rows = again.find(text_keys(["a", "b"]))
        assert found.all() and (rows == np.eye(4)[:2]).all()


SLOW = """
import sys, time
from pathlib import Path
from byokg.index.dense import CachedEmbedder
from byokg.index.embedders import StaticEmbedder

class Slow:
    inner = StaticEmbedder()
    name = inner.name
    def encode(self, texts):
        time.sleep(0.05 if texts else 0)
        return self.inner.encode(texts)

first, last = map(int, sys.argv[2:])
CachedEmbedder(Slow(), Path(sys.argv[1])).encode([f"name {at}" for at in range(first, last)])
print("done")
"""


def embed_slowly(folder: Path, first: int, last: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SLOW, str(folder), str(first), str(last)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


def blocks(folder: Path) -> int:
    """Return how many blocks the file holds; 0 until it is there."""
    for path in folder.rglob("*.sqlite"):
        with closing(sqlite3.connect(path, timeout=60)) as file, suppress(sqlite3.OperationalError):
            return int(file.execute("SELECT count(*) FROM blocks").fetchone()[0])
    return 0


def test_a_killed_build_goes_on_where_it_was(tmp_path: Path) -> None:
    total = 200 * TEXTS_AT_ONCE
    process = embed_slowly(tmp_path, 0, total)
    deadline = time.monotonic() + 60
    while blocks(tmp_path) < 3:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    counting = Counting()
    cached = CachedEmbedder(counting, tmp_path)
    texts = [f"name {at}" for at in range(5 * TEXTS_AT_ONCE)]
    vectors = cached.encode(texts)
    assert len(counting.asked) <= 2 * TEXTS_AT_ONCE
    np.testing.assert_allclose(vectors[::500], STATIC.encode(texts[::500]), atol=1e-3)


def test_processes_may_write_at_the_same_time(tmp_path: Path) -> None:
    # Ranges overlap by half: what two embed at the same time is kept twice and found once.
    processes = [embed_slowly(tmp_path, 2048 * number, 2048 * (number + 2)) for number in range(3)]
    assert [process.communicate()[0] for process in processes] == ["done\n"] * 3
    counting = Counting()
    texts = [f"name {at}" for at in range(2048 * 4)]
    vectors = CachedEmbedder(counting, tmp_path).encode(texts)
    assert counting.asked == []
    np.testing.assert_allclose(vectors[::500], STATIC.encode(texts[::500]), atol=1e-3)
    assert [file.suffix for file in tmp_path.rglob("*") if file.is_file()].count(".sqlite") == 1


def test_what_another_process_adds_is_found_by_those_that_are_open(tmp_path: Path) -> None:
    one, other = (EmbeddingCache(tmp_path, "m", 2, "float32") for _ in range(2))
    assert not one.find(text_keys(["a", "b"]))[0].any()
    other.add(text_keys(["a"]), np.eye(2, dtype=np.float32)[:1])
    one.add(text_keys(["b"]), np.eye(2, dtype=np.float32)[1:])
    for cache in (one, other):
        found, rows = cache.find(text_keys(["b", "a"]))
        assert found.all() and (rows == np.eye(2)[::-1]).all()


def test_threads_may_share_one_embedder(tmp_path: Path) -> None:
    cached = CachedEmbedder(STATIC, tmp_path, "float32")
    parts = [[f"name {at}" for at in range(start, start + 300)] for start in range(0, 2000, 100)]
    with ThreadPoolExecutor(8) as pool:
        for texts, vectors in zip(parts, pool.map(cached.encode, parts), strict=True):
            np.testing.assert_allclose(vectors, STATIC.encode(texts), atol=1e-6)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    cached = CachedEmbedder(STATIC, tmp_path / "file")
    with pytest.raises(CacheUnusable, match=r"file.*name another folder"):
        cached.encode(["Tirana"])


def test_lone_surrogates_are_texts_like_others(tmp_path: Path) -> None:
    texts = ["\ud800", "\udfff", "a\ud800", "?", "\\ud800"]
    cache = EmbeddingCache(tmp_path, "model \ud800", 5, "float32")
    cache.add(text_keys(texts), np.eye(5, dtype=np.float32))
    found, rows = EmbeddingCache(tmp_path, "model \ud800", 5, "float32").find(text_keys(texts[::-1]))
    assert found.all() and (rows == np.eye(5)[::-1]).all()


def test_zero_rows_are_kept_like_others(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path, "m", 3)
    cache.add(text_keys(["nothing"]), np.zeros((1, 3), np.float32))
    found, rows = EmbeddingCache(tmp_path, "m", 3).find(text_keys(["nothing"]))
    assert found.tolist() == [True] and not rows.any()
    assert unit_rows(rows).any() == np.False_
