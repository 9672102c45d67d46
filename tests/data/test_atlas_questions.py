"""The questions of the shipped atlas: what each record holds, and that its gold query still answers it.

The gold queries run in SQLite over the two CSV files, with the tables and views of schema.sql; no code of byokg
takes part.
"""

import csv
import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ATLAS = ROOT / "byokg" / "data" / "atlas"
SCRIPT = ROOT / "scripts" / "build_atlas_questions.py"

COUNT = 1347
CHECKSUM = "44d08e42e954a5d9b07b353f2cbd7e52e9efa4e6a79fffd05af682f97be0c737"
TYPES = {
    "1-hop": 118,
    "2-hop": 116,
    "3-hop": 107,
    "multi-constraint": 148,
    "count": 166,
    "superlative": 198,
    "temporal": 182,
    "comparison": 108,
    "difference": 60,
    "union": 36,
    "properties": 108,
}
FIRST: dict[str, object] = {
    "id": "capital-whose-8a66fe-1",
    "question": "Brazzaville is the capital of which country?",
    "answers": ["Republic of the Congo"],
    "answer_ids": ["country/republic-of-the-congo"],
    "topic_ids": ["city/brazzaville"],
    "hops": 1,
    "type": "1-hop",
    "split": "test",
}
LAST: dict[str, object] = {
    "id": "river-countries-e0af5b-1",
    "question": "Which countries would I cross if I followed the Ussuri from its source to its end?",
    "answers": ["China", "Russia"],
    "answer_ids": ["country/china", "country/russia"],
    "topic_ids": ["river/ussuri"],
    "hops": 1,
    "type": "1-hop",
    "split": "test",
}

FIELDS = {
    "id": str,
    "question": str,
    "answers": list,
    "answer_ids": list,
    "topic_entities": list,
    "topic_ids": list,
    "hops": int,
    "type": str,
    "pattern": str,
    "gold_sql": str,
    "split": str,
    "paraphrase_of": str,
}

Record = dict[str, Any]


@pytest.fixture(scope="module")
def text() -> bytes:
    return (ATLAS / "questions.jsonl").read_bytes()


@pytest.fixture(scope="module")
def records(text: bytes) -> list[Record]:
    return [json.loads(line) for line in text.decode().splitlines()]


@pytest.fixture(scope="module")
def database() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.executescript((ATLAS / "schema.sql").read_text(encoding="utf-8"))
    for table in ("node", "edge"):
        with (ATLAS / f"{table}s.csv").open(encoding="utf-8", newline="") as handle:
            header, *rows = csv.reader(handle)
        marks = ", ".join("?" * len(header))
        database.executemany(f"INSERT INTO {table} VALUES ({marks})", [[cell or None for cell in row] for row in rows])
    return database


@pytest.fixture(scope="module")
def names(database: sqlite3.Connection) -> dict[str, str]:
    return dict(database.execute("SELECT id, name FROM node"))


def words(text: str) -> str:
    """Return the text in lower case with one blank around each word, and no possessive s."""
    found = re.findall(r"[^\W_]+", text.casefold())
    return f" {' '.join(found)} ".replace(" s ", " ")


def copy_of_atlas(folder: Path) -> Path:
    """Put what the generator reads into `folder`, with the first edge of a capital left out."""
    for name in ("nodes.csv", "schema.sql", "questions.jsonl"):
        (folder / name).write_bytes((ATLAS / name).read_bytes())
    lines = (ATLAS / "edges.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    lines.remove(next(line for line in lines if ",capital,city/berlin," in line))
    (folder / "edges.csv").write_text("".join(lines), encoding="utf-8")
    return folder


def test_the_file_is_the_one_that_was_reviewed(text: bytes, records: list[Record]) -> None:
    assert len(records) == COUNT
    assert hashlib.sha256(text).hexdigest() == CHECKSUM
    assert {field: records[0][field] for field in FIRST} == FIRST
    assert {field: records[-1][field] for field in LAST} == LAST


def test_there_are_as_many_questions_of_each_type_as_documented(records: list[Record]) -> None:
    assert Counter(record["type"] for record in records) == TYPES


def test_every_record_has_the_documented_fields_in_order(records: list[Record]) -> None:
    for record in records:
        assert {field: type(value) for field, value in record.items()} == FIELDS, record["id"]
        assert list(record) == list(FIELDS), record["id"]
        assert record["type"] in TYPES
        assert record["hops"] in (1, 2, 3)
        assert record["split"] in ("dev", "test")
        assert record["question"][0].isupper() or record["question"][0].isdigit()
        assert record["question"][-1] in "?."


def test_a_path_question_has_as_many_hops_as_its_type_says(records: list[Record]) -> None:
    for record in records:
        if record["type"].endswith("-hop"):
            assert record["hops"] == int(record["type"][0]), record["id"]


def test_every_gold_query_returns_the_stored_answers(records: list[Record], database: sqlite3.Connection) -> None:
    for record in records:
        found = sorted(str(row[0]) for row in database.execute(record["gold_sql"]))
        assert found == sorted(record["answer_ids"] or record["answers"]), record["id"]


def test_every_question_has_between_1_and_40_distinct_answers(records: list[Record]) -> None:
    for record in records:
        assert 1 <= len(record["answers"]) <= 40, record["id"]
        assert all(isinstance(answer, str) and answer for answer in record["answers"])
        assert len(set(record["answers"])) == len(record["answers"]), record["id"]


def test_answers_and_topics_are_nodes_and_bear_their_names(records: list[Record], names: dict[str, str]) -> None:
    for record in records:
        assert record["topic_ids"], record["id"]
        assert [names[id_] for id_ in record["topic_ids"]] == record["topic_entities"]
        if record["answer_ids"]:
            assert [names[id_] for id_ in record["answer_ids"]] == record["answers"]


def test_answers_without_nodes_are_numbers_or_codes(records: list[Record]) -> None:
    for record in records:
        if not record["answer_ids"]:
            code = record["pattern"] == "code-of"
            assert all(answer.isalpha() if code else answer.isdigit() for answer in record["answers"]), record["id"]


def test_no_superlative_is_tied(records: list[Record], database: sqlite3.Connection) -> None:
    ranked = [record for record in records if record["gold_sql"].count("ORDER BY") == 1]
    assert {record["type"] for record in ranked} == {"superlative", "temporal", "comparison"}
    for record in ranked:
        parts = re.fullmatch(r"(.*?) FROM (.*) ORDER BY (.*) (ASC|DESC) LIMIT 1", record["gold_sql"])
        assert parts is not None, record["id"]
        _, rest, value, order = parts.groups()
        values = [row[0] for row in database.execute(f"SELECT {value} FROM {rest}")]
        assert len(values) > 1 and None not in values, record["id"]
        best = max(values) if order == "DESC" else min(values)
        assert values.count(best) == 1, record["id"]


def test_every_topic_is_named_in_its_question(records: list[Record]) -> None:
    # A prize may be asked for as "the Nobel for chemistry", and a name's first letter may be lower case in a sentence.
    for record in records:
        for name in record["topic_entities"]:
            short = name.split()[-1] if name.startswith("Nobel Prize in ") else name
            # "What was the year of her Nobel Prize?" leaves the field out: she has only one.
            if record["pattern"] != "year-of-prize":
                assert words(short) in words(record["question"]), record["id"]


def test_no_question_contains_its_answer(records: list[Record]) -> None:
    for record in records:
        given = record["type"] == "comparison" and len(record["topic_ids"]) > 1  # which of two
        for answer in record["answers"] if record["answer_ids"] and not given else []:
            assert words(answer) not in words(record["question"]), record["id"]


def test_no_two_questions_have_the_same_text_or_id(records: list[Record]) -> None:
    assert len({record["question"].casefold() for record in records}) == len(records)
    assert len({record["id"] for record in records}) == len(records)


def test_paraphrases_share_everything_but_their_words(records: list[Record]) -> None:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record["paraphrase_of"], []).append(record)
    for group, members in groups.items():
        assert len(members) >= 2, group
        assert len({json.dumps({**m, "id": "", "question": ""}) for m in members}) == 1, group


def test_both_splits_hold_every_type(records: list[Record]) -> None:
    held = Counter((record["type"], record["split"]) for record in records)
    assert set(held) == {(type_, split) for type_ in TYPES for split in ("dev", "test")}
    assert min(held.values()) >= 15


def test_the_split_follows_from_pattern_and_topics(records: list[Record]) -> None:
    # Years and thresholds count among the topics; where there are none, the digest can be made from the record alone.
    checked = 0
    for record in records:
        digest = hashlib.sha256("|".join([record["pattern"], *record["topic_ids"]]).encode()).hexdigest()
        if record["paraphrase_of"] == f"{record['pattern']}-{digest[:6]}":
            checked += 1
            assert record["split"] == ("dev" if digest[0] in "01234567" else "test"), record["id"]
    assert checked > len(records) / 2


@pytest.mark.parametrize("hash_seed", ["0", "4242"])
def test_the_generator_reproduces_the_file_byte_for_byte(tmp_path: Path, text: bytes, hash_seed: str) -> None:
    out = tmp_path / "questions.jsonl"
    subprocess.run(
        [sys.executable, str(SCRIPT), "--out", str(out)],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    assert out.read_bytes() == text
    assert [path.name for path in tmp_path.iterdir()] == ["questions.jsonl"]


def test_check_accepts_the_shipped_file() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "--check"], check=False, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.strip().endswith(f"{COUNT} questions checked, 0 differ")


def test_check_names_the_questions_whose_answers_changed_and_exits_with_1(tmp_path: Path) -> None:
    folder = copy_of_atlas(tmp_path)
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check", "--data", str(folder)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "city/berlin" in done.stdout


def test_the_readme_states_the_counts(records: list[Record]) -> None:
    readme = (ATLAS / "README.md").read_text(encoding="utf-8")
    for type_ in TYPES:
        splits = Counter(record["split"] for record in records if record["type"] == type_)
        assert f"| {type_} | {splits['dev']} | {splits['test']} |" in readme
    assert f"{COUNT:,} questions" in readme


def test_the_folder_stays_below_a_megabyte_and_a_half() -> None:
    assert sum(path.stat().st_size for path in ATLAS.iterdir()) <= 1_500_000
