"""Tests of `byokg.index.dense`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.errors import ConfigError, EmbedderFailed, IndexUnusable
from byokg.index.dense import DenseNames, Embedded, verify_names
from byokg.index.embedders import StaticEmbedder, Vectors
from byokg.index.names import META, NameMatch, NameSearch

STATIC = StaticEmbedder()

NASTY = ["", "   ", "?!…", "\x00\x01\x1f", "\u200f\u202e", "🙂🚀", "x" * 10_000, "- -", "\ud800"]
"""Nothing that can be compared: blank, punctuation, control and direction characters, emoji, far too long, broken."""


DIRECTIONS = {"east": (1, 0), "north": (0, 1), "west": (-1, 0), "northeast": (1, 1)}


class Compass:
    """Knows four words as directions in the plane, ignores all others, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    @property
    def name(self) -> str:
        return "compass"

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        rows = [np.sum([DIRECTIONS.get(word, (0, 0)) for word in text.split()] or [(0, 0)], axis=0) for text in texts]
        return np.array(rows, np.float32).reshape(-1, 2)


ENTRIES = [(3, "east"), (1, "north"), (7, "east"), (3, "northeast"), (4, "west"), (5, "nowhere"), (3, "east")]
"""Owner 3 has two names, `east` has two owners, and of `nowhere` the compass knows nothing."""


@pytest.fixture
def names() -> NameSearch:
    return DenseNames.build(ENTRIES, Compass())


def test_the_score_is_the_cosine_and_every_owner_of_a_name_is_a_match(names: NameSearch) -> None:
    # northeast is at 45 degrees to east, north at a right angle, west opposite.
    (matches,) = names.search(["east"], k=10)
    assert matches == [NameMatch(3, "east", 1.0), NameMatch(7, "east", 1.0), NameMatch(3, "northeast", 0.707107)]


def test_no_more_than_k_owners_are_given_however_many_bear_a_name(names: NameSearch) -> None:
    assert names.search(["east"], k=1) == [[NameMatch(3, "east", 1.0)]]
    assert [match.owner for match in names.search(["east"], k=2)[0]] == [3, 7]


def test_texts_are_answered_apart_and_in_order(names: NameSearch) -> None:
    found = names.search(["west", "", "north"], k=1)
    assert [[match.name for match in matches] for matches in found] == [["west"], [], ["north"]]


def test_names_without_a_known_token_are_never_found(names: NameSearch) -> None:
    everything = names.search(["east", "west", "north", "nowhere", "no such word"], k=10)
    assert "nowhere" not in {match.name for matches in everything for match in matches}
    assert everything[3:] == [[], []]


def test_equal_names_are_embedded_once_and_nasty_ones_never() -> None:
    compass = Compass()
    DenseNames.build([*ENTRIES, *enumerate(NASTY)], compass)
    assert compass.asked == ["east", "north", "northeast", "west", "nowhere"]


@pytest.mark.parametrize("text", NASTY, ids=[ascii(text)[:12] for text in NASTY])
def test_nasty_texts_find_nothing_and_are_not_embedded(text: str) -> None:
    index = DenseNames.build(enumerate(["Tirana", "1984", "Παρίσι", *NASTY]), STATIC)
    assert index.search([text], k=5) == [[]]


@given(st.lists(st.text(max_size=12), max_size=8), st.text(max_size=12), st.integers(1, 5))
@settings(deadline=None)
def test_matches_are_few_distinct_scored_above_zero_and_best_first(names: list[str], text: str, k: int) -> None:
    (matches,) = DenseNames.build(enumerate(names), STATIC).search([text], k)
    scores = [match.score for match in matches]
    assert len(set(matches)) == len(matches) <= k
    assert all(0 < score <= 1 for score in scores) and scores == sorted(scores, reverse=True)
    assert all(names[match.owner] == match.name for match in matches)
    if matches and text in names:
        assert scores[0] == 1.0


def test_an_empty_index_finds_nothing() -> None:
    index = DenseNames.build([], STATIC)
    assert len(index) == 0
    assert index.search(["Tirana"], k=3) == [[]]


def test_a_k_below_one_is_refused(names: NameSearch) -> None:
    with pytest.raises(ConfigError, match="k=0"):
        names.search(["east"], k=0)


# Building


def test_equal_names_are_embedded_once_and_found_for_all_who_bear_them() -> None:
    compass = Compass()
    index = DenseNames.build([(3, "east"), (9, "north"), (2, "east"), (3, "east")], compass)
    assert compass.asked == ["east", "north"]
    assert index.search(["east", "north"], k=5) == [
        [NameMatch(2, "east", 1.0), NameMatch(3, "east", 1.0)],
        [NameMatch(9, "north", 1.0)],
    ]


def test_half_of_a_surrogate_pair_in_a_name_or_text_is_a_question_mark() -> None:
    index = DenseNames.build([(0, "Tirana\ud83d"), (1, "Oslo")], STATIC)
    assert index.search(["Tirana\udfff"], 1) == [[NameMatch(0, "Tirana?", 1.0)]]


def test_progress_counts_distinct_names() -> None:
    told: list[Embedded] = []
    DenseNames.build([(number, f"name {number % 1500}") for number in range(3000)], STATIC, progress=told.append)
    assert told == [Embedded(1024, 1500), Embedded(1500, 1500)]


# On disk


def test_a_written_index_opens_as_it_was(tmp_path: Path) -> None:
    index = DenseNames.build(ENTRIES, Compass(), made_for="graph-1")
    index.write(tmp_path)
    opened = DenseNames.open(tmp_path, Compass(), "graph-1")
    assert len(opened) == 5
    texts = ["east", "north", "west", "northeast", ""]
    assert opened.search(texts, 9) == index.search(texts, 9)
    verified = verify_names(tmp_path)
    assert (verified.embedder, verified.made_for, verified.names, verified.entries) == ("compass", "graph-1", 5, 6)


def test_two_builds_write_equal_bytes(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        DenseNames.build(ENTRIES, STATIC).write(tmp_path / name)
    for file in (tmp_path / "first").iterdir():
        assert file.read_bytes() == (tmp_path / "second" / file.name).read_bytes()


def test_another_embedder_or_purpose_is_refused(tmp_path: Path) -> None:
    DenseNames.build(ENTRIES, Compass(), made_for="graph-1").write(tmp_path)
    with pytest.raises(IndexUnusable, match="those of 'compass', not of 'static-128-int8-"):
        DenseNames.open(tmp_path, STATIC, "graph-1")
    with pytest.raises(IndexUnusable, match="made for 'graph-1', not for 'graph-2'"):
        DenseNames.open(tmp_path, Compass(), "graph-2")


def test_a_missing_cut_or_foreign_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IndexUnusable, match=r"meta\.json is missing"):
        DenseNames.open(tmp_path / "nothing", Compass())
    DenseNames.build(ENTRIES, Compass()).write(tmp_path)
    names = tmp_path / "names.arrow"
    content = names.read_bytes()
    names.write_bytes(content[:-1])
    with pytest.raises(IndexUnusable, match=r"names\.arrow has \d+ bytes, \d+ were written"):
        DenseNames.open(tmp_path, Compass())
    names.unlink()
    with pytest.raises(IndexUnusable, match=r"names\.arrow is missing"):
        DenseNames.open(tmp_path, Compass())
    names.write_bytes(b"x" * len(content))
    with pytest.raises(IndexUnusable, match="Arrow"):
        DenseNames.open(tmp_path, Compass())
    meta = json.loads((tmp_path / META).read_text("utf-8"))
    (tmp_path / META).write_text(json.dumps({**meta, "version": 99}), "utf-8")
    with pytest.raises(IndexUnusable, match="byokg-dense-names 99"):
        DenseNames.open(tmp_path, Compass())
    (tmp_path / META).write_text("[]", "utf-8")
    with pytest.raises(IndexUnusable, match=META):
        DenseNames.open(tmp_path, Compass())


def test_verifying_finds_a_changed_byte(tmp_path: Path) -> None:
    DenseNames.build(ENTRIES, Compass()).write(tmp_path)
    owners = tmp_path / "owners.npy"
    content = bytearray(owners.read_bytes())
    content[-1] ^= 1
    owners.write_bytes(content)
    DenseNames.open(tmp_path, Compass())
    with pytest.raises(IndexUnusable, match=r"owners\.npy has changed"):
        verify_names(tmp_path)


# Embedders that fail


class Broken(Compass):
    """Answers with what it was made with."""

    def __init__(self, reply: Vectors) -> None:
        super().__init__()
        self.reply = reply

    def encode(self, texts: Sequence[str]) -> Vectors:
        return self.reply


@pytest.mark.parametrize(
    ("reply", "reason"),
    [(np.ones((2, 3), np.float32), r"shape \(2, 3\) for 1 texts"), (np.array([[np.nan]], np.float32), "not finite")],
)
def test_vectors_that_do_not_fit_are_refused(reply: Vectors, reason: str) -> None:
    with pytest.raises(EmbedderFailed, match=reason):
        DenseNames.build([(0, "east")], Broken(reply))
