"""Tests of `byokg.index.names`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from byokg.errors import GraphCorrupt
from byokg.index.names import META, NameIndex

NAMES = ["The Godfather", "Alien", "Ridley Scott", "Łódź", "", "Alien"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    NameIndex.build(NAMES).write(tmp_path, "graph 1")
    return tmp_path


def test_an_opened_index_answers_as_the_one_that_was_written(folder: Path) -> None:
    built, opened = NameIndex.build(NAMES), NameIndex.open(folder, "graph 1")
    texts = ["ridly scot", "lodz", "alien", "the godfater"]
    assert opened.search(texts) == built.search(texts)
    assert opened.exact("alien").tolist() == [1, 5]
    assert opened.longest_from("ridley") == 2


def test_an_empty_index_can_be_opened(tmp_path: Path) -> None:
    NameIndex.build([]).write(tmp_path)
    assert NameIndex.open(tmp_path).search(["alien"]) == [[]]


def test_equal_names_give_equal_bytes(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    NameIndex.build(NAMES).write(other, "graph 1")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        path.name: path.read_bytes() for path in other.iterdir()
    }


def test_an_index_built_into_a_folder_differs_in_the_names_alone_which_it_is_given_again(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other, names = tmp_path_factory.mktemp("other"), pa.array(NAMES, pa.large_string())
    NameIndex.build_in(other, names, "graph 1")
    written = {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in ("names.arrow", META)}
    assert {path.name: path.read_bytes() for path in other.iterdir() if path.name != META} == written
    one, two = (NameIndex.open(place, "graph 1", names) for place in (folder, other))
    assert one.search(NAMES) == two.search(NAMES) and one.exact("alien").tolist() == two.exact("alien").tolist()
    with pytest.raises(GraphCorrupt, match="stand in the graph"):
        NameIndex.open(other, "graph 1")


def test_an_index_of_something_else_is_refused(folder: Path) -> None:
    with pytest.raises(GraphCorrupt, match="another graph"):
        NameIndex.open(folder, "graph 2")


def test_a_file_cut_short_or_missing_is_noticed_when_opening(folder: Path) -> None:
    path = folder / "name_words.npy"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(GraphCorrupt, match=r"name_words\.npy"):
        NameIndex.open(folder)
    path.unlink()
    with pytest.raises(GraphCorrupt, match=r"name_words\.npy"):
        NameIndex.open(folder)


def test_a_changed_byte_is_noticed_when_verifying(folder: Path) -> None:
    assert NameIndex.verify(folder, "graph 1")["names"] == 4
    path = folder / "name_words.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\x07")
    NameIndex.open(folder)
    with pytest.raises(GraphCorrupt, match=r"name_words\.npy has changed"):
        NameIndex.verify(folder)


@pytest.mark.parametrize(
    "change", [{"version": 99}, {"format": "other"}, {"files": 3}], ids=["version", "format", "files"]
)
def test_another_version_or_a_damaged_meta_file_is_refused(folder: Path, change: dict[str, object]) -> None:
    meta = json.loads((folder / META).read_text("utf-8"))
    (folder / META).write_text(json.dumps(meta | change), "utf-8")
    with pytest.raises(GraphCorrupt):
        NameIndex.open(folder)


def test_a_folder_without_an_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GraphCorrupt):
        NameIndex.open(tmp_path / "nowhere")
