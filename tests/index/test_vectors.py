"""Tests of `byokg.index.vectors`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.errors import ConfigError, IndexUnusable
from byokg.index import vectors as module
from byokg.index.embedders import Vectors, unit_rows
from byokg.index.vectors import FILE, FLAT_UP_TO, PQ_UP_TO, Layout, VectorIndex, layout_for

LAYOUTS: tuple[Layout, ...] = ("flat", "pq", "ivf", "hnsw")

COUNT, WIDTH = 5000, 32


def random_vectors(count: int, width: int = WIDTH, seed: int = 0) -> Vectors:
    return np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32)


@pytest.fixture(scope="module", params=LAYOUTS)
def built(request: pytest.FixtureRequest) -> VectorIndex:
    """Return 5,000 random vectors, one index for each layout. Tests that add something build their own."""
    return VectorIndex.build(random_vectors(COUNT), request.param)


def test_the_cosine_counts_and_not_the_length() -> None:
    # (10, 0) is longer than (3, 4) but no nearer to (6, 8), which has the direction of (3, 4).
    index = VectorIndex.build(np.array([[10, 0], [3, 4], [-3, -4], [0, 2]], np.float32))
    (nearest,) = index.search(np.array([[6, 8]], np.float32), k=4)
    assert nearest.rows.tolist() == [1, 3, 0, 2]
    assert nearest.cosines.tolist() == [1.0, 0.8, 0.6, -1.0]


def test_no_vector_is_found_twice_or_made_up_when_there_are_fewer_than_asked_for() -> None:
    index = VectorIndex.build(np.eye(3, dtype=np.float32))
    (nearest,) = index.search(np.eye(3, dtype=np.float32)[:1], k=10)
    assert nearest.rows.tolist() == [0, 1, 2]
    assert [len(each.rows) for each in VectorIndex.build(np.zeros((0, 3))).search(np.eye(3, dtype=np.float32), 2)] == [
        0,
        0,
        0,
    ]


def test_zeros_are_numbered_but_neither_found_nor_finding() -> None:
    index = VectorIndex.build(np.array([[0, 0], [1, 0], [0, 0], [0, 1]], np.float32))
    found = index.search(np.array([[1, 1], [0, 0]], np.float32), k=4)
    assert [nearest.rows.tolist() for nearest in found] == [[1, 3], []]
    index.add(np.array([[0, 0], [1, 1]], np.float32))
    assert len(index) == 6
    assert index.search(np.array([[1, 1]], np.float32), k=1)[0].rows.tolist() == [5]
    only_zeros = VectorIndex.build(np.zeros((3, 2), np.float32))
    assert only_zeros.search(np.ones((1, 2), np.float32), k=1)[0].rows.tolist() == []


def test_equal_cosines_stand_in_the_order_of_rows() -> None:
    index = VectorIndex.build(np.array([[0, 1], [2, 0], [1, 0], [3, 0]], np.float32))
    assert index.search(np.array([[1, 0]], np.float32), k=3)[0].rows.tolist() == [1, 2, 3]


def test_each_vector_is_nearest_to_itself_with_a_cosine_of_one(built: VectorIndex) -> None:
    asked = random_vectors(COUNT)[::50]
    found = built.search(asked, k=3)
    agreed = [
        int(nearest.rows[0]) == row and nearest.cosines[0] == 1.0
        for row, nearest in zip(range(0, COUNT, 50), found, strict=True)
    ]
    # Lists and graphs may miss what is there.
    assert np.mean(agreed) == 1 if built.layout in ("flat", "pq") else np.mean(agreed) >= 0.9


def test_cosines_are_those_of_the_vectors_and_descend(built: VectorIndex) -> None:
    vectors, asked = unit_rows(random_vectors(COUNT)), unit_rows(random_vectors(20, seed=1))
    for query, nearest in zip(asked, built.search(asked, k=10), strict=True):
        np.testing.assert_allclose(nearest.cosines, vectors[nearest.rows] @ query, atol=1e-3)
        assert nearest.cosines.tolist() == sorted(nearest.cosines.tolist(), reverse=True)
        assert len(set(nearest.rows.tolist())) == 10


def test_most_of_the_ten_nearest_are_found(built: VectorIndex) -> None:
    vectors, asked = unit_rows(random_vectors(COUNT)), unit_rows(random_vectors(50, seed=1))
    tenth = np.sort(asked @ vectors.T, axis=1)[:, -10]
    found = built.search(asked, k=10)
    recall = np.mean(
        [
            (vectors[nearest.rows] @ query >= least - 1e-4).mean()
            for query, least, nearest in zip(asked, tenth, found, strict=True)
        ]
    )
    # Random vectors have no clusters: a quarter of the lists holds little more than half of the neighbours.
    assert recall >= {"flat": 1.0, "pq": 0.97, "ivf": 0.5, "hnsw": 0.8}[built.layout]


def test_asking_together_or_alone_gives_the_same(built: VectorIndex) -> None:
    asked = random_vectors(30, seed=2)
    together = built.search(asked, k=5)
    for query, nearest in zip(asked, together, strict=True):
        (alone,) = built.search(query[None], k=5)
        assert (alone.rows.tolist(), alone.cosines.tolist()) == (nearest.rows.tolist(), nearest.cosines.tolist())


def test_threads_may_search_at_the_same_time(built: VectorIndex) -> None:
    asked = random_vectors(64, seed=3)
    expected = [nearest.rows.tolist() for nearest in built.search(asked, k=5)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda query: built.search(query[None], k=5)[0].rows.tolist(), asked))
    assert found == expected


def test_two_builds_give_equal_bytes(built: VectorIndex, tmp_path: Path) -> None:
    for name, index in (("first", built), ("second", VectorIndex.build(random_vectors(COUNT), built.layout))):
        (tmp_path / name).mkdir()
        index.write(tmp_path / name)
    assert (tmp_path / "first" / FILE).read_bytes() == (tmp_path / "second" / FILE).read_bytes()


def test_a_written_index_opens_as_it_was_and_can_grow(built: VectorIndex, tmp_path: Path) -> None:
    said = built.write(tmp_path)
    assert said == {"layout": built.layout, "count": COUNT, "dimensions": WIDTH}
    opened = VectorIndex.open(tmp_path, **said)
    asked = random_vectors(10, seed=4)
    for before, after in zip(built.search(asked, k=5), opened.search(asked, k=5), strict=True):
        assert (before.rows.tolist(), before.cosines.tolist()) == (after.rows.tolist(), after.cosines.tolist())
    written = (tmp_path / FILE).read_bytes()
    opened.add(asked)
    assert len(opened) == COUNT + 10
    assert [int(nearest.rows[0]) for nearest in opened.search(asked, k=1)] == list(range(COUNT, COUNT + 10))
    assert (tmp_path / FILE).read_bytes() == written


def test_zeros_keep_their_numbers_in_a_file(tmp_path: Path) -> None:
    said = VectorIndex.build(np.array([[0, 0], [1, 0]], np.float32)).write(tmp_path)
    opened = VectorIndex.open(tmp_path, **said)
    assert opened.search(np.array([[2, 0]], np.float32), k=2)[0].rows.tolist() == [1]


def test_growing_in_parts_is_as_good_as_at_once() -> None:
    vectors = random_vectors(300)
    index = VectorIndex.build(vectors[:100])
    index.add(vectors[100:200])
    index.add(vectors[200:])
    asked = random_vectors(5, seed=5)
    for parts, once in zip(index.search(asked, 7), VectorIndex.build(vectors).search(asked, 7), strict=True):
        assert parts.rows.tolist() == once.rows.tolist()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 40), st.integers(1, 50), st.integers(0, 2**32 - 1))
def test_the_exact_layout_equals_sorting_all_cosines(count: int, k: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).integers(-2, 3, (count, 3)).astype(np.float32)
    query = np.array([[1, 2, -1]], np.float32)
    (nearest,) = VectorIndex.build(vectors).search(query, k)
    cosines = unit_rows(vectors).astype(np.float64) @ unit_rows(query)[0]
    some = [(-round(float(cosines[row]), 4), row) for row in range(count) if vectors[row].any()]
    found = [(-round(float(cosine), 4), row) for cosine, row in zip(nearest.cosines, nearest.rows, strict=True)]
    assert [score for score, _ in found] == pytest.approx([score for score, _ in sorted(some)[:k]], abs=1e-3)
    assert len(set(nearest.rows.tolist())) == len(nearest.rows) == min(k, len(some))


def test_the_layout_follows_count_and_dimensions() -> None:
    assert layout_for(FLAT_UP_TO // 128, 128) == "flat"
    assert layout_for(FLAT_UP_TO // 128 + 1, 128) == layout_for(FLAT_UP_TO // 1024 + 1, 1024) == "pq"
    assert layout_for(PQ_UP_TO // 128 + 1, 128) == "ivf"


def test_too_few_vectors_for_training_are_laid_out_flat() -> None:
    for layout in LAYOUTS:
        assert VectorIndex.build(random_vectors(100), layout).layout == "flat"
    assert VectorIndex.build(np.zeros((5000, 4)), "ivf").layout == "flat"


@pytest.mark.parametrize("width", [1, 7, 26, 131, 384, 1021, 1024])
def test_codes_share_the_dimensions_evenly(width: int) -> None:
    length = module._code_length(width)
    assert width % length == 0 and 1 <= length <= 128


@pytest.mark.parametrize("width", [1, 13])
def test_odd_dimensions_can_be_coded(width: int) -> None:
    index = VectorIndex.build(random_vectors(5000, width), "pq")
    assert index.search(random_vectors(1, width), k=1)[0].cosines[0] == 1.0


def test_what_does_not_fit_is_refused() -> None:
    index = VectorIndex.build(np.eye(3, dtype=np.float32))
    with pytest.raises(ConfigError, match=r"\(N, 3\)"):
        index.search(np.ones((1, 2), np.float32), 1)
    with pytest.raises(ConfigError, match=r"\(N, 3\)"):
        index.add(np.ones((1, 4), np.float32))
    with pytest.raises(ConfigError, match="k=0"):
        index.search(np.eye(3, dtype=np.float32), 0)
    with pytest.raises(ConfigError, match=r"layout=tree is not known; use one of flat, hnsw, pq, ivf"):
        VectorIndex.build(np.eye(3), "tree")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="shape"):
        VectorIndex.build(np.zeros(3))


@pytest.mark.parametrize("content", [b"", b"no index", None])
def test_a_damaged_file_is_named(content: bytes | None, tmp_path: Path) -> None:
    said = VectorIndex.build(random_vectors(10)).write(tmp_path)
    file = tmp_path / FILE
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    with pytest.raises(IndexUnusable, match=FILE):
        VectorIndex.open(tmp_path, **said)
    VectorIndex.build(random_vectors(11)).write(tmp_path)
    with pytest.raises(IndexUnusable, match="not what it says"):
        VectorIndex.open(tmp_path, **said)
