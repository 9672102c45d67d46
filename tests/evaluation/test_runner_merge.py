"""Tests of `byokg.evaluation.runner`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from byokg.errors import RunError
from byokg.evaluation.records import CONFIG, PREDICTIONS, TIMINGS, TRACE
from byokg.evaluation.run_folder import METRICS_FILE, QUESTIONS, read_questions
from byokg.evaluation.runner import RunSettings, Shard, merge_runs, run_evaluation
from tests.evaluation.scripted import SETTINGS, Scripted, examples

COUNT = 32
SAME = (PREDICTIONS, TRACE, METRICS_FILE, CONFIG, QUESTIONS)


def run_shards(root: Path, count: int, settings: RunSettings = SETTINGS) -> list[Path]:
    """Run all shards, each into its own folder."""
    folders = []
    for number in range(1, count + 1):
        shard = Shard(number, count)
        folders.append(root / f"shard-{number}")
        run_evaluation(Scripted(), shard.of(examples(COUNT)), folders[-1], replace(settings, shard=shard))
    return folders


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """Return the folder of the run in one piece."""
    run_evaluation(Scripted(), examples(COUNT), tmp_path / "whole", SETTINGS)
    return tmp_path / "whole"


def same(one: Path, other: Path, names: Sequence[str] = SAME) -> bool:
    """Tell whether files of two folders are equal byte for byte."""
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_shards_in_any_order_make_the_run_in_one_piece(whole: Path, tmp_path: Path, count: int) -> None:
    folders = run_shards(tmp_path, count)
    metrics = merge_runs(folders[::-1], tmp_path / "merged")
    assert metrics.overall.n == COUNT
    assert same(whole, tmp_path / "merged")
    assert len((tmp_path / "merged" / TIMINGS).read_text().splitlines()) == COUNT


def test_an_interrupted_merge_is_continued_and_a_finished_one_read(whole: Path, tmp_path: Path) -> None:
    folders = run_shards(tmp_path, 3)
    merged = tmp_path / "merged"
    merge_runs(folders, merged)
    (merged / METRICS_FILE).unlink()
    lines = (merged / TRACE).read_bytes().splitlines(keepends=True)
    (merged / TRACE).write_bytes(b"".join(lines[:5]) + lines[5][:20])
    merge_runs(folders, merged)
    assert same(whole, merged)
    before = (merged / METRICS_FILE).stat().st_mtime_ns
    merge_runs(folders, merged)
    assert (merged / METRICS_FILE).stat().st_mtime_ns == before


def test_the_questions_of_a_run_read_back(whole: Path) -> None:
    assert read_questions(whole) == tuple(examples(COUNT))


def test_missing_and_doubled_shards_are_named(tmp_path: Path) -> None:
    folders = run_shards(tmp_path, 4)
    with pytest.raises(RunError, match="shards are missing: 2/4, 3/4"):
        merge_runs([folders[0], folders[3]], tmp_path / "merged")
    with pytest.raises(RunError, match="shard 2/4 is named twice"):
        merge_runs([*folders, folders[1]], tmp_path / "merged")
    with pytest.raises(RunError, match="no shard is named"):
        merge_runs([], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_shards_of_different_runs_or_divisions_are_refused(tmp_path: Path) -> None:
    ours = run_shards(tmp_path / "ours", 2)
    theirs = run_shards(tmp_path / "theirs", 2, replace(SETTINGS, graph_checksum="2" * 64))
    with pytest.raises(RunError, match=r"different runs \(graph\.checksum: '111"):
        merge_runs([ours[0], theirs[1]], tmp_path / "merged")
    thirds = run_shards(tmp_path / "thirds", 3)
    with pytest.raises(RunError, match="the shards are of 2 and 3"):
        merge_runs([ours[0], thirds[1]], tmp_path / "merged")


def test_a_whole_run_and_an_unfinished_shard_are_refused(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is a whole run, no shard of one"):
        merge_runs([whole], tmp_path / "merged")
    folders = run_shards(tmp_path, 2)
    (folders[1] / METRICS_FILE).unlink()
    with pytest.raises(RunError, match=r"shard-2' is not finished"):
        merge_runs(folders, tmp_path / "merged")
