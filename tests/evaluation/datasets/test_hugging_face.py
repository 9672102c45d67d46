"""Tests of `byokg.evaluation.datasets.folder`, with the library where it is installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from byokg.errors import ConfigError, DatasetError, MissingExtra
from byokg.evaluation.datasets.folder import hugging_face

ROWS = [
    {"id": "a", "query": "Who directed Heat?", "gold": "Michael Mann", "q_entity": ["Heat"], "split": "test"},
    {"id": "b", "query": "Who wrote Heat?", "gold": "Michael Mann", "q_entity": ["Heat"], "split": "dev"},
    {"id": "c", "query": "Who sold Heat?", "gold": None, "q_entity": [], "split": "dev"},
]
COLUMNS = {"question": "query", "answers": "gold", "topic_entities": "q_entity"}

INSTALLED = importlib.util.find_spec("datasets") is not None
needs_library = pytest.mark.skipif(not INSTALLED, reason="byokg[datasets] is not installed")


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the rows as the library holds them."""
    library = pytest.importorskip("datasets", reason="byokg[datasets] is not installed")
    monkeypatch.setattr(library.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return library.Dataset.from_list(ROWS)


@pytest.mark.skipif(INSTALLED, reason="the library is installed")
def test_without_the_library_its_extra_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match=r"byokg\[datasets\]"):
        hugging_face(tmp_path).examples()


@needs_library
@pytest.mark.parametrize("kind", ["parquet", "jsonl", "csv", "saved"])
def test_files_and_saved_sets_hold_the_same_questions(rows: Any, tmp_path: Path, kind: str) -> None:
    place = tmp_path / f"films.{kind}"
    if kind == "saved":
        rows.save_to_disk(str(place))
    elif kind == "csv":
        rows.to_csv(str(place))
    else:
        (rows.to_parquet if kind == "parquet" else rows.to_json)(str(place))
    made = hugging_face(place, columns=COLUMNS)
    assert [(each.id, each.question, each.answers) for each in made.examples()] == [
        ("a", "Who directed Heat?", ("Michael Mann",)),
        ("b", "Who wrote Heat?", ("Michael Mann",)),
    ]
    assert made.left_out() == {"no gold answer": 1}
    assert made.checksum == hugging_face(place, columns=COLUMNS).checksum
    assert [each.id for each in hugging_face(place, split="dev", columns=COLUMNS).examples()] == ["b"]


@needs_library
def test_splits_are_those_of_the_library(rows: Any, tmp_path: Path) -> None:
    library = pytest.importorskip("datasets")
    plain = rows.remove_columns(["split", "id"])
    library.DatasetDict(train=plain.select([0]), test=plain.select([1])).save_to_disk(str(tmp_path / "both"))
    made = hugging_face(tmp_path / "both", split="test", columns=COLUMNS)
    assert [(each.id, each.split, each.question) for each in made.examples()] == [("1", "test", "Who wrote Heat?")]
    assert [each.id for each in hugging_face(tmp_path / "both", columns=COLUMNS).examples()] == ["1", "2"]
    with pytest.raises(ConfigError, match=r"dataset\.split=dev is not known; use one of train, test"):
        hugging_face(tmp_path / "both", split="dev", columns=COLUMNS).examples()


@needs_library
def test_what_cannot_be_read_says_so_and_nothing_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="nothing is fetched; get it first: hf download"):
        hugging_face("rmanluo/RoG-webqsp").examples()
    (tmp_path / "broken.parquet").write_bytes(b"no parquet")
    with pytest.raises(DatasetError, match="cannot be read by datasets"):
        hugging_face(tmp_path / "broken.parquet").examples()
    (tmp_path / "notes.txt").write_text("x", "utf-8")
    with pytest.raises(DatasetError, match=r"is none of \.json, \.jsonl"):
        hugging_face(tmp_path / "notes.txt").examples()


@needs_library
def test_a_cell_may_hold_a_list_and_a_files_name_its_split(rows: Any, tmp_path: Path) -> None:
    several = rows.remove_columns(["gold", "split"]).add_column("gold", [["a [b]", "it's"], ["[c]"], ["d"]])
    several.to_csv(str(tmp_path / "films_test.csv"))
    made = hugging_face(tmp_path / "films_test.csv", "test", columns=COLUMNS)
    assert [each.answers for each in made.examples()] == [("a [b]", "it's"), ("[c]",), ("d",)]
    (tmp_path / "films_test.csv").rename(tmp_path / "films.csv")
    with pytest.raises(ConfigError, match="leave dataset"):
        hugging_face(tmp_path / "films.csv", "test", columns=COLUMNS).examples()


def test_a_column_of_graphs_gives_each_question_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"question": "Who?", "answers": [name], "topic_entities": ["Heat"], "graph": [["Heat", "by", name]]}
        for name in ("Ann", "Bob")
    ]
    monkeypatch.setattr("byokg.evaluation.datasets.folder._load_splits", lambda place: {"test": rows})
    questions = hugging_face(tmp_path)
    assert questions.has_subgraphs()
    assert sorted(questions.subgraph("2").entities()) == ["Bob", "Heat"]
    assert not hugging_face(tmp_path, graph=tmp_path).has_subgraphs()
    without = [{key: value for key, value in row.items() if key != "graph"} for row in rows]
    monkeypatch.setattr("byokg.evaluation.datasets.folder._load_splits", lambda place: {"test": without})
    assert not hugging_face(tmp_path).has_subgraphs()
