"""Tests of the layouts of MedQA, STaRK, Text2Cypher and PathQuestion."""

from __future__ import annotations

from pathlib import Path

import pytest

from byokg.errors import ConfigError, DatasetError
from byokg.evaluation.datasets.base import Dataset
from byokg.evaluation.datasets.benchmarks import medqa, pathquestion, stark, text2cypher
from byokg.evaluation.datasets.folder import Folder
from byokg.graph.importers.choose import import_graph
from tests.evaluation.datasets.files import write_lines, write_text

OPTIONS = {"A": "Aspirin", "B": "Biotin"}


def test_medqa_is_asked_without_options_or_with_them(tmp_path: Path) -> None:
    record = {
        "question": "Which drug?",
        "answer": "Biotin",
        "options": OPTIONS,
        "answer_idx": "B",
        "meta_info": "step1",
    }
    write_lines(tmp_path, "questions/US/test.jsonl", record)
    (plain,) = medqa(tmp_path).examples()
    assert (plain.id, plain.question, plain.answers, plain.type) == (
        "medqa-test-00001",
        "Which drug?",
        ("Biotin",),
        "step1",
    )
    (asked,) = medqa(tmp_path, options=True).examples()
    assert asked.question == "Which drug?\nA. Aspirin\nB. Biotin"


def test_medqa_as_statements_reads_alike(tmp_path: Path) -> None:
    choices = [{"label": label, "text": text} for label, text in OPTIONS.items()]
    record = {"id": "m1", "question": {"stem": "Which drug?", "choices": choices}, "answerKey": "A", "statements": []}
    write_lines(tmp_path, "test.statement.jsonl", record)
    (example,) = medqa(tmp_path).examples()
    assert (example.id, example.question, example.answers) == ("m1", "Which drug?", ("Aspirin",))
    write_lines(tmp_path, "test.statement.jsonl", {**record, "answerKey": "E"})
    with pytest.raises(DatasetError, match="the answer 'E' is none of the options A, B"):
        medqa(tmp_path).examples()


def test_stark_takes_the_split_from_its_index_in_the_order_of_the_table(tmp_path: Path) -> None:
    write_text(
        tmp_path, "qa/prime/stark_qa/stark_qa.csv", 'id,query,answer_ids\n3,"One, two?","[7, 9]"\n5,Three?,[7]\n'
    )
    write_text(tmp_path, "qa/prime/split/test.index", "5\n3\n")
    dataset = stark(tmp_path)
    assert [(example.id, example.question, example.answer_ids) for example in dataset.examples()] == [
        ("3", "One, two?", ("7", "9")),
        ("5", "Three?", ("7",)),
    ]
    write_text(tmp_path, "qa/prime/split/test.index", "5\n4\n")
    with pytest.raises(DatasetError, match=r"lists question '4', which stark_qa\.csv does not hold"):
        stark(tmp_path).examples()
    with pytest.raises(ConfigError, match=r"dataset\.kb is one of prime, mag, amazon, not 'drugs'"):
        stark(tmp_path, kb="drugs")


def test_text2cypher_reads_tables_and_lines_and_leaves_loose_queries_out(tmp_path: Path) -> None:
    table = (
        "question,cypher,type,database\n"
        "How many?,MATCH (n) RETURN count(n),agg,northwind\n"
        "Some?,MATCH (n) RETURN n.name LIMIT 3,simple,northwind\n"
        "First?,MATCH (n) RETURN n.name ORDER BY n.name LIMIT 3,simple,northwind\n"
        "Other?,MATCH (n) RETURN n,simple,movies\n"
    )
    write_text(tmp_path, "t2c.csv", table)
    dataset = text2cypher(tmp_path, database="northwind", questions="t2c.csv")
    assert [example.question for example in dataset.examples()] == ["How many?", "First?"]
    assert dataset.left_out() == {"gold query with LIMIT and no ORDER BY": 1}
    assert len(text2cypher(tmp_path, questions="t2c.csv", nondeterministic=True).examples()) == 4
    line = {
        "id": "n",
        "question": "Who?",
        "cypher": "RETURN 1",
        "gold_rows": [["a", [1, None]], ["a", []]],
        "split": "dev",
    }
    write_lines(tmp_path, "questions.jsonl", line)
    (example,) = text2cypher(tmp_path, "dev").examples()
    assert (example.answers, example.rows) == (("a",), (("a", (1, None)), ("a", ())))


def test_pathquestion_has_gold_paths_and_a_graph_to_convert(tmp_path: Path) -> None:
    write_text(tmp_path, "PQ-2H.txt", "who ?\tann(ann/eve/)\tbob#spouse#jim#child#ann#<end>#ann\n")
    write_text(tmp_path, "2H-kb.txt", "bob\tspouse\tjim\njim\tchild\tann\n")
    dataset = pathquestion(tmp_path)
    (example,) = dataset.examples()
    assert (example.answers, example.topic_ids, example.hops) == (("ann", "eve"), ("bob",), 2)
    assert example.support == (("bob", "spouse", "jim"), ("jim", "child", "ann"))
    dataset.write_graph(tmp_path / "2H-graph")
    assert sorted(import_graph(dataset.graph_source()).entities()) == ["ann", "bob", "jim"]
    write_text(tmp_path, "PQ-2H.txt", "who ?\tann\n")
    with pytest.raises(DatasetError, match=r"PQ-2H\.txt:1: is not QUESTION<tab>ANSWER"):
        pathquestion(tmp_path).examples()
    with pytest.raises(ConfigError, match="2 or 3 hops"):
        pathquestion(tmp_path, hops=4)


def sets(root: Path) -> dict[str, tuple[Dataset, int, str, tuple[str, ...]]]:
    """Return real data sets with count, checksum, and the answers of the first question."""
    return {
        "medqa": (
            medqa(root / "medqa_ddb", split=""),
            1273,
            "6ed525b3",
            ("Tell the attending that he cannot fail to disclose this mistake",),
        ),
        "prime": (stark(root / "stark"), 79, "45e41ed9", ("63235", "63680", "63921", "66747", "67302")),
        "mag": (stark(root / "stark", "mag", "val"), 53, "e1c00d26", ("1300031",)),
        "northwind": (text2cypher(root / "northwind"), 529, "2e918870", ("Confections", "Dairy Products", "Seafood")),
        "movies": (
            text2cypher(root / "movies", "dev"),
            200,
            "45db486c",
            ("Johnny Mnemonic", "Apollo 13", "That Thing You Do"),
        ),
        "pq2": (pathquestion(root / "pathquestion"), 1908, "86f4a060", ("united_kingdom",)),
        "pq3": (pathquestion(root / "pathquestion", 3), 5198, "e0c5da28", ("burnham-on-sea",)),
        "webqsp": (
            Folder(root / "webqsp", "dev", root / "freebase_core/graph.tsv.xz", "names", labels="webqsp_labels.jsonl"),
            773,
            "be8218e9",
            ("Aragorn",),
        ),
    }


@pytest.mark.parametrize("name", ["medqa", "prime", "mag", "northwind", "movies", "pq2", "pq3", "webqsp"])
def test_real_files_have_their_counts_checksums_and_first_answers(real_data: Path, name: str) -> None:
    dataset, count, checksum, answers = sets(real_data)[name]
    assert len(dataset.examples()) == count
    assert dataset.checksum[:8] == checksum
    assert dataset.examples()[0].answers == answers


def test_labels_fill_in_what_questions_leave_open(tmp_path: Path) -> None:
    write_lines(
        tmp_path,
        "questions.jsonl",
        {"id": "a", "question": "?", "answers": ["x"], "hops": 3},
        {"id": "b", "question": "!", "answers": ["y"]},
    )
    write_lines(tmp_path, "labels.jsonl", {"id": "a", "hops": 1, "type": "t", "support_triples": [["h", "r", "t"]]})
    first, second = Folder(tmp_path, labels="labels.jsonl").examples()
    assert (first.hops, first.type, first.support) == (3, "t", (("h", "r", "t"),))
    assert (second.hops, second.type, second.support) == (None, "", ())
    write_lines(tmp_path, "labels.jsonl", {"id": "a", "support_triples": [["h", "r"]]})
    with pytest.raises(
        DatasetError, match=r"labels\.jsonl:1: field 'support_triples' should list \[head, relation, tail\]"
    ):
        Folder(tmp_path, labels="labels.jsonl").examples()
