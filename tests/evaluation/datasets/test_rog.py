"""Tests of `byokg.evaluation.datasets.freebase`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from byokg.errors import DatasetError
from byokg.evaluation.datasets.base import SubgraphDataset
from byokg.evaluation.datasets.freebase import Rog
from byokg.graph.importers.choose import import_graph
from tests.evaluation.datasets.files import write_lines

RECORDS: list[dict[str, Any]] = [
    {
        "id": "q1",
        "question": "where does ann live",
        "answer": ["Ulm"],
        "q_entity": ["Ann"],
        "a_entity": ["Ulm"],
        "graph": [["Ann", "lives_in", "Ulm"], ["Ann", "knows", "Bob"]],
        "choices": [],
    },
    {"id": "q2", "question": "?", "answer": [], "q_entity": ["Bob"], "a_entity": [], "graph": [], "choices": []},
    {
        "id": "q3",
        "question": "whom does ann know",
        "answer": ["Eve"],
        "q_entity": ["Ann"],
        "a_entity": ["Eve"],
        "graph": [["Ann", "knows", "Eve"]],
        "choices": [],
    },
]


def test_each_question_has_its_own_graph_and_the_file_is_the_graph_of_all(tmp_path: Path) -> None:
    path = write_lines(tmp_path, "test.jsonl", *RECORDS)
    dataset: SubgraphDataset = Rog(tmp_path, name="webqsp")
    assert isinstance(dataset, SubgraphDataset)
    assert [(example.id, example.answer_ids, example.topic_ids) for example in dataset.examples()] == [
        ("q1", ("Ulm",), ("Ann",)),
        ("q3", ("Eve",), ("Ann",)),
    ]
    assert dataset.left_out() == {"no gold answer": 1}
    assert dataset.name == "webqsp test"
    assert sorted(dataset.subgraph("q1").entities()) == ["Ann", "Bob", "Ulm"]
    assert sorted(dataset.subgraph("q3").entities()) == ["Ann", "Eve"]
    assert dataset.graph_source() == path
    assert sorted(import_graph(path).entities()) == ["Ann", "Bob", "Eve", "Ulm"]


def test_parquet_in_several_files_reads_as_json_lines_do(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for number, records in enumerate((RECORDS[:1], RECORDS[1:])):
        table = pa.Table.from_pylist(records, schema=SCHEMA)
        parquet.write_table(table, tmp_path / f"data/test-0000{number}-of-00002-abc.parquet")
    dataset = Rog(tmp_path)
    write_lines(tmp_path / "lines", "test.jsonl", *RECORDS)
    assert dataset.examples() == Rog(tmp_path / "lines").examples()
    assert sorted(dataset.subgraph("q3").entities()) == ["Ann", "Eve"]
    assert len(dataset.checksum) == 64
    with pytest.raises(DatasetError, match=r"ask with graph\.per_question=true"):
        dataset.graph_source()


NAMES = pa.list_(pa.string())
SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "question": pa.string(),
        "answer": NAMES,
        "q_entity": NAMES,
        "a_entity": NAMES,
        "graph": pa.list_(NAMES),
        "choices": NAMES,
    }
)


def test_what_is_missing_or_malformed_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"holds no test\.jsonl \(nor \.xz, \.gz\) and no test\*\.parquet"):
        Rog(tmp_path).examples()
    write_lines(tmp_path, "test.jsonl", {**RECORDS[0], "graph": [["a", "b"]]})
    dataset = Rog(tmp_path)
    with pytest.raises(DatasetError, match="question 'q1'"):
        dataset.subgraph("q1")
    with pytest.raises(DatasetError, match="holds no question 'q9'"):
        dataset.subgraph("q9")


def test_the_published_samples_have_their_graphs(real_data: Path) -> None:
    dataset = Rog(real_data / "rog_samples", questions="webqsp_samples.jsonl")
    assert len(dataset.examples()) == 18
    assert dataset.checksum[:8] == "954ba3c9"
    assert dataset.examples()[0].answers == ("Jamaican English", "Jamaican Creole English Language")
    assert dataset.subgraph("WebQTest-0").edge_count == 5276
