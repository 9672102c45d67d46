"""Tests of `byokg.evaluation.datasets.freebase`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from byokg.errors import ConfigError, DatasetError
from byokg.evaluation.datasets.base import Dataset, Example, SubgraphDataset
from byokg.evaluation.datasets.freebase import Rog, cwq, grailqa, webqsp
from byokg.graph.importers.choose import import_graph
from tests.evaluation.datasets.files import write_json, write_lines, write_text


def parse(*answers: tuple[str, str | None], topic: str = "m.0d3k14") -> dict[str, Any]:
    """Return one parse of a WebQSP question."""
    return {
        "ParseId": "WebQTest-7.P0",
        "AnnotatorComment": {"ParseQuality": "Complete"},
        "Sparql": "SELECT ?x",
        "PotentialTopicEntityMention": "jfk",
        "TopicEntityName": "John F. Kennedy",
        "TopicEntityMid": topic,
        "InferentialChain": ["people.person.children", "people.person.gender"],
        "Answers": [{"AnswerType": "Entity", "AnswerArgument": id, "EntityName": name} for id, name in answers],
    }


def question(id: str, *parses: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return one WebQSP question."""
    return {
        "QuestionId": id,
        "RawQuestion": "what did jfk do?",
        "ProcessedQuestion": "what did jfk do",
        "Parses": parses,
        **more,
    }


def test_answers_of_all_parses_are_gold_and_stay_apart(tmp_path: Path) -> None:
    two = question(
        "WebQTest-7", parse(("m.1", "Senator"), ("1961", None)), parse(("m.2", "Author"), ("m.1", "Senator"))
    )
    write_json(tmp_path, "data/WebQSP.test.json", {"Version": "1.0", "Questions": [two]})
    dataset: Dataset = webqsp(tmp_path)
    (example,) = dataset.examples()
    assert example == Example(
        id="WebQTest-7",
        question="what did jfk do?",
        answers=("Senator", "1961", "Author"),
        answer_ids=("m.1", "1961", "m.2"),  # type: ignore[arg-type]
        topic_entities=("John F. Kennedy",),
        topic_ids=("m.0d3k14",),  # type: ignore[arg-type]
        hops=2,
        split="test",
        parses=(("m.1", "1961"), ("m.2", "m.1")),
        query="SELECT ?x",
    )
    assert dataset.name == "webqsp test"


def test_questions_without_answers_are_left_out_and_counted(tmp_path: Path) -> None:
    write_json(
        tmp_path, "WebQSP.test.json", {"Questions": [question("q1", parse()), question("q2", parse(("m.1", "A")))]}
    )
    dataset = webqsp(tmp_path)
    assert [example.id for example in dataset.examples()] == ["q2"]
    assert dataset.left_out() == {"no gold answer": 1}


def test_topics_that_tog_annotates_count_more_than_those_of_the_parses(tmp_path: Path) -> None:
    given = question("q", parse(("m.1", "A")), topic_entity={"m.5": "Jack", "m.6": "Jackie"})
    write_json(tmp_path, "WebQSP.json", [given])
    (example,) = webqsp(tmp_path).examples()
    assert (example.topic_ids, example.topic_entities) == (("m.5", "m.6"), ("Jack", "Jackie"))
    (by_name,) = webqsp(tmp_path, ids="names").examples()
    assert (by_name.topic_ids, by_name.answer_ids) == (("Jack", "Jackie"), ("A",))


def test_complex_questions_keep_type_and_aliases(tmp_path: Path) -> None:
    record = {
        "ID": "WebQTrn-1_a",
        "question": "Which?",
        "sparql": "SELECT ?y",
        "compositionality_type": "conjunction",
        "answers": [{"answer_id": "m.1", "answer": "United States", "aliases": ["US", "USA"]}],
    }
    write_json(tmp_path, "ComplexWebQuestions_test.json", [record])
    (example,) = cwq(tmp_path).examples()
    assert (example.type, example.aliases, example.answer_ids) == ("conjunction", (("US", "USA"),), ("m.1",))
    assert example.topic_ids == ()


def test_complex_questions_as_tog_ships_them_have_topics_and_one_answer_by_name(tmp_path: Path) -> None:
    record = {"ID": "c1", "question": "Which?", "answer": "Paris", "topic_entity": {"m.9": "France"}}
    write_json(tmp_path, "cwq.json", [record])
    (example,) = cwq(tmp_path).examples()
    assert (example.answers, example.answer_ids, example.topic_ids) == (("Paris",), (), ("m.9",))


def test_grailqa_takes_entities_of_its_graph_query_as_topics(tmp_path: Path) -> None:
    record = {
        "qid": 42,
        "question": "which?",
        "level": "zero-shot",
        "sparql_query": "SELECT ?z",
        "answer": [
            {"answer_type": "Entity", "answer_argument": "m.1", "entity_name": "One"},
            {"answer_type": "Value", "answer_argument": "1.5"},
        ],
        "graph_query": {
            "nodes": [
                {"nid": 0, "node_type": "class", "id": "t.x", "friendly_name": "X", "question_node": 1},
                {"nid": 1, "node_type": "entity", "id": "m.7", "friendly_name": "Seven", "question_node": 0},
            ],
            "edges": [{"start": 0, "end": 1, "relation": "r"}],
        },
    }
    write_json(tmp_path, "grailqa_v1.0_dev.json", [record])
    (example,) = grailqa(tmp_path).examples()
    assert (example.id, example.type, example.hops) == ("42", "zero-shot", 1)
    assert (example.answers, example.answer_ids) == (("One", "1.5"), ("m.1", "1.5"))
    assert (example.topic_ids, example.topic_entities) == (("m.7",), ("Seven",))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[", "is not JSON in UTF-8"),
        ("[1]", "is not a JSON list of objects"),
        ('{"Questions": 1}', "is not a JSON list of objects"),
        (
            '[{"QuestionId": "q", "RawQuestion": "w?", "Parses": [{"Answers": [{}]}]}]',
            ":1: has an entry without AnswerA",
        ),
        (
            '[{"QuestionId": "q", "RawQuestion": "w?", "Parses": [{"Answers": 3}]}]',
            ":1: has a parse whose Answers are no",
        ),
        ('[{"QuestionId": "q"}]', ":1: has no text in RawQuestion or ProcessedQuestion; it holds QuestionId"),
    ],
)
def test_what_is_malformed_is_named_with_file_and_record(tmp_path: Path, content: str, reason: str) -> None:
    path = write_text(tmp_path, "WebQSP.test.json", content)
    with pytest.raises(DatasetError) as raised:
        webqsp(tmp_path).examples()
    assert str(raised.value).startswith(str(path))
    assert reason in str(raised.value)


def test_ids_must_be_unique_and_the_file_there(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"holds no WebQSP\.train\.json or data/WebQSP"):
        webqsp(tmp_path, split="train").examples()
    write_json(tmp_path, "WebQSP.test.json", [question("q", parse(("m.1", "A")))] * 2)
    with pytest.raises(
        DatasetError, match=r"json:2: id 'q' is already used in WebQSP\.test\.json:1; ids must be unique"
    ):
        webqsp(tmp_path).examples()
    with pytest.raises(ConfigError, match=r"dataset\.ids=mids"):
        webqsp(tmp_path, ids="mids")  # type: ignore[arg-type]


def test_the_graph_lies_beside_the_questions_or_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"none of graph\.tsv, graph\.csv, .* lies there"):
        webqsp(tmp_path).graph_source()
    with pytest.raises(DatasetError, match="is not there"):
        webqsp(tmp_path, graph=tmp_path / "no").graph_source()
    graph = write_text(tmp_path, "graph.tsv", "a\tr\tb\n")
    assert webqsp(tmp_path).graph_source() == graph


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
    with pytest.raises(DatasetError, match=r"leave graph\.per_question=false out"):
        dataset.graph_source()
    one = Rog(tmp_path / "data/test-00000-of-00002-abc.parquet")
    assert one.has_subgraphs() and one.name == "test-00000-of-00002-abc test"
    assert one.examples() == dataset.examples()[:1]


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
