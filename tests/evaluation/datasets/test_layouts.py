"""Samples made by hand in the layouts of published question sets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from byokg.errors import ConfigError, DatasetError
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.fetch import sources
from byokg.evaluation.datasets.layouts import layouts, published
from tests.evaluation.datasets.files import write_text

BINDING = {"uri": {"type": "uri", "value": "http://dbpedia.org/resource/Lower_Town"}}
PARSE = {
    "TopicEntityName": "Soup",
    "TopicEntityMid": "m.01",
    "InferentialChain": "food.dish.made_by",
    "Answers": [{"AnswersMid": "m.02", "AnswersName": ["Ann", "Annie"]}],
}
ASKED = "Who made the soup?"


@dataclass(frozen=True)
class Sample:
    """A file of one layout, and its first question."""

    layout: str
    file: str
    content: Any
    id: str
    answers: Sequence[str] = ()
    ids: Sequence[str] = ()
    topics: Sequence[str] = ()
    query: str = ""
    type: str = ""
    split: str = "test"
    count: int = 1


SAMPLES = [
    Sample(
        "cypherbench",
        "test.json",
        [
            {
                "qid": "c1",
                "graph": "soups",
                "nl_question": ASKED,
                "gold_cypher": "MATCH (n) RETURN n.name",
                "answer_json": '[{"n.name": "Ann"}, {"n.name": "Bob"}]',
                "from_template": {"match_category": "basic"},
            }
        ],
        "c1",
        ["Ann", "Bob"],
        query="MATCH (n) RETURN n.name",
        type="basic",
    ),
    Sample(
        "freebaseqa",
        "FreebaseQA-eval.json",
        {"Dataset": "x", "Questions": [{"Question-ID": "f1", "RawQuestion": ASKED, "Parses": [PARSE]}]},
        "f1",
        ["Ann"],
        ["m.02"],
        ["m.01"],
    ),
    Sample(
        "kqapro",
        "val.json",
        [{"question": ASKED, "choices": ["Ann", "Bob"], "program": [], "sparql": "SELECT ?e {}", "answer": "Ann"}],
        "kqapro-dev-00001",
        ["Ann"],
        query="SELECT ?e {}",
        split="dev",
    ),
    Sample(
        "lcquad1",
        "test-data.json",
        [{"_id": "17", "corrected_question": ASKED, "sparql_query": "SELECT ?x {}", "sparql_template_id": 2}],
        "17",
        query="SELECT ?x {}",
        type="2",
    ),
    Sample(
        "lcquad2",
        "test.json",
        [{"uid": 3, "question": ASKED, "sparql_wikidata": "SELECT ?y {}", "answer": [], "subgraph": "simple"}],
        "3",
        query="SELECT ?y {}",
        type="simple",
    ),
    Sample(
        "mind_the_query",
        "er/Simple_manual_validation.json",
        [
            {"NL Question": ASKED, "Cypher": "MATCH (n) RETURN n", "unique_id": "m1", "logical [0/1]": "1"},
            {"NL Question": ASKED, "Cypher": "MATCH (m) RETURN m", "unique_id": "m2", "logical [0/1]": "0"},
        ],
        "m1",
        query="MATCH (n) RETURN n",
    ),
    Sample(
        "mintaka",
        "data/mintaka_test.json",
        [
            {
                "id": "k1",
                "question": ASKED,
                "translations": {"de": "Wer hat die Suppe gekocht?"},
                "questionEntity": [
                    {"name": "Q1", "entityType": "entity", "label": "soup"},
                    {"name": 7, "entityType": "ordinal"},
                ],
                "answer": {"answerType": "entity", "answer": [{"name": "Q2", "label": {"en": "Ann", "de": "Anne"}}]},
                "complexityType": "generic",
            },
            {"id": "k2", "question": "Is it hot?", "answer": {"answerType": "boolean", "answer": [True]}},
            {"id": "k3", "question": "What is lost?", "answer": {"answerType": "entity", "answer": None}},
        ],
        "k1",
        ["Ann"],
        ["Q2"],
        ["Q1"],
        type="generic",
        count=2,
    ),
    Sample(
        "multitq",
        "questions/test.json",
        [{"quid": 5, "question": ASKED, "answers": ["Ann", "Bob"], "qtype": "equal", "time_level": "day"}],
        "5",
        ["Ann", "Bob"],
        type="equal",
    ),
    Sample(
        "qald",
        "qald_10.json",
        {
            "dataset": {"id": "x"},
            "questions": [
                {
                    "id": "1",
                    "question": [{"language": "de", "string": "Wer?"}, {"language": "en", "string": ASKED}],
                    "query": {"sparql": "SELECT ?uri {}"},
                    "answers": [{"head": {"vars": ["uri"]}, "results": {"bindings": [BINDING]}}],
                    "answertype": "resource",
                },
                {
                    "id": "2",
                    "question": [{"language": "en", "string": "Is it hot?"}],
                    "query": {"sparql": "ASK {}"},
                    "answers": [{"head": {}, "boolean": True}],
                },
            ],
        },
        "1",
        ["Lower Town"],
        ["http://dbpedia.org/resource/Lower_Town"],
        query="SELECT ?uri {}",
        type="resource",
        count=2,
    ),
    Sample(
        "simplequestions",
        "annotated_fb_data_test.txt",
        "www.freebase.com/m/01\twww.freebase.com/food/made_by\twww.freebase.com/m/02\tWho made the soup?\n",
        "simplequestions-test-00001",
        ["m.02"],
        ["m.02"],
        ["m.01"],
    ),
    Sample(
        "simplequestions",
        "annotated_wd_data_test.txt",
        "Q1\tP2\tQ3\tWho made the soup?\n",
        "simplequestions-test-00001",
        ["Q3"],
        ["Q3"],
        ["Q1"],
    ),
    Sample(
        "spider4sparql",
        "nl_sparql_pairs/dev/dev_nl_sparql.csv",
        'kg_name,question,query\nsoups,Who made the soup?,"SELECT ?a, ?b {}"\n',
        "spider4sparql-dev-00002",
        query="SELECT ?a, ?b {}",
        split="dev",
    ),
    Sample(
        "tempquestions",
        "TempQuestions.json",
        [{"Id": 4, "Question": ASKED, "Gold answer": ["Ann"], "Type": ["Explicit"]}],
        "4",
        ["Ann"],
        type="Explicit",
    ),
    Sample(
        "text2cypher2024",
        "data/test-00000-of-00001.parquet",
        [
            {
                "question": ASKED,
                "schema": "",
                "cypher": "MATCH (n) RETURN n",
                "data_source": "s",
                "instance_id": "i1",
                "database_reference_alias": "soups",
            }
        ],
        "i1",
        query="MATCH (n) RETURN n",
        type="s",
    ),
    Sample(
        "timequestions",
        "test.json",
        [
            {
                "Id": 2,
                "Question": ASKED,
                "Temporal question type": ["Ordinal"],
                "Answer": [
                    {"AnswerType": "Entity", "WikidataQid": "Q2", "WikidataLabel": "Ann"},
                    {"AnswerType": "Value", "AnswerArgument": "1990"},
                ],
            }
        ],
        "2",
        ["Ann", "1990"],
        type="Ordinal",
    ),
    Sample(
        "zograscope",
        "data/zograscope_test_v1.csv",
        "id,nl,mr,type,template_id,return_count\nz1,Who made the soup?,MATCH (n) RETURN n,list,9,1\n",
        "z1",
        query="MATCH (n) RETURN n",
        type="list",
    ),
]


def write(root: Path, sample: Sample) -> Path:
    if sample.file.endswith(".parquet"):
        path = write_text(root, sample.file, "")
        parquet.write_table(pa.Table.from_pylist(sample.content), path)
        return path
    content = sample.content if isinstance(sample.content, str) else json.dumps(sample.content)
    return write_text(root, sample.file, content)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.file)
def test_a_published_layout_is_read(tmp_path: Path, sample: Sample) -> None:
    path = write(tmp_path, sample)
    dataset = published(sample.layout, tmp_path, sample.split)
    first: Example = dataset.examples()[0]
    assert (first.id, first.question, first.split) == (sample.id, ASKED, sample.split)
    assert (first.answers, first.answer_ids) == (tuple(sample.answers), tuple(sample.ids))
    assert (first.topic_ids, first.query, first.type) == (tuple(sample.topics), sample.query, sample.type)
    assert len(dataset.examples()) == sample.count
    assert published(sample.layout, path, sample.split).examples() == dataset.examples()


def test_each_layout_has_a_sample_and_a_page() -> None:
    assert {sample.layout for sample in SAMPLES} == set(layouts())
    assert set(layouts()) <= set(sources())


def test_the_language_and_the_database_choose(tmp_path: Path) -> None:
    named = {sample.layout: sample for sample in SAMPLES}
    for name in ("mintaka", "cypherbench"):
        write(tmp_path, named[name])
    assert published("mintaka", tmp_path, language="de").examples()[0].question == "Wer hat die Suppe gekocht?"
    assert published("mintaka", tmp_path, language="de").examples()[0].answers == ("Anne",)
    assert published("mintaka", tmp_path).left_out() == {"no gold answer": 1}
    assert published("cypherbench", tmp_path, database="soups").examples()[0].rows == (("Ann",), ("Bob",))
    with pytest.raises(DatasetError, match="holds no question"):
        published("cypherbench", tmp_path, database="stews").examples()


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"dataset\.layout=\S+ is not known; use one of cypherbench"):
        published("nothing", tmp_path)
    with pytest.raises(DatasetError, match=r"holds no mintaka_test\.json"):
        published("mintaka", tmp_path).examples()
    write_text(tmp_path, "mintaka_test.json", '[{"id": "k1", "text": "?"}]')
    with pytest.raises(DatasetError, match="it holds id, text"):
        published("mintaka", tmp_path).examples()
    with pytest.raises(DatasetError, match=r"come without their graph \(Wikidata\); name it with dataset\.graph"):
        published("mintaka", tmp_path).graph_source()
    write_text(tmp_path, "kg/full.txt", "a\tr\tb\t2001\n")
    assert published("multitq", tmp_path).graph_source() == tmp_path / "kg/full.txt"
