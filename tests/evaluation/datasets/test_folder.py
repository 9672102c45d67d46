"""Tests of `byokg.evaluation.datasets.folder`, the shipped data set included."""

from __future__ import annotations

import hashlib
import json
import lzma
import re
from collections import Counter
from pathlib import Path

import pytest

from byokg.errors import ConfigError, DatasetError
from byokg.evaluation.datasets.base import Dataset, Example, by_name, is_by_name
from byokg.evaluation.datasets.folder import Folder, atlas, graph_keys, unanswered, with_nodes_of_names
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import import_graph
from byokg.graph.name_indexes import name_index
from byokg.types import EntityId, Node

FULL = {
    "id": "q1",
    "question": "Who wrote Émile?",
    "answers": ["J.-J. Rousseau", 1762],
    "answer_ids": ["n7"],
    "topic_entities": ["Émile"],
    "topic_ids": ["n3"],
    "split": "dev",
    "type": "who",
    "hops": 1,
    "note": "ignored",
}
MINIMAL = {"id": 2, "question": "How many?", "answers": [2.5], "topic_entities": ["Émile"]}


def write(root: Path, *records: object, name: str = "questions.jsonl") -> Path:
    """Write records as lines; a str is a line as it is."""
    path = root / name
    lines = [record if isinstance(record, str) else json.dumps(record, ensure_ascii=False) for record in records]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_all_fields_are_read_and_others_ignored(tmp_path: Path) -> None:
    write(tmp_path, FULL)
    assert Folder(tmp_path).examples() == (
        Example(
            id="q1",
            question="Who wrote Émile?",
            answers=("J.-J. Rousseau", "1762"),
            answer_ids=("n7",),  # type: ignore[arg-type]
            topic_entities=("Émile",),
            topic_ids=("n3",),  # type: ignore[arg-type]
            hops=1,
            split="dev",
            type="who",
        ),
    )


def test_lone_surrogates_are_read_in_every_field(tmp_path: Path) -> None:
    half = "\ud800"
    record = {**FULL, "id": half, "question": half, "answers": [half], "topic_entities": [half], "type": half}
    (tmp_path / "questions.jsonl").write_text(json.dumps({**record, "query": half, "rows": [[half]]}) + "\n")
    (example,) = Folder(tmp_path).examples()
    assert (example.id, example.question, example.answers, example.type) == (half, half, (half,), half)
    assert (example.topic_entities, example.query, example.rows) == ((half,), half, ((half,),))


def test_optional_fields_may_be_absent_and_names_stand_for_topic_ids(tmp_path: Path) -> None:
    write(tmp_path, MINIMAL)
    (example,) = Folder(tmp_path).examples()
    assert (example.id, example.answers, example.answer_ids) == ("2", ("2.5",), ())
    assert example.topic_ids == example.topic_entities == ("Émile",)
    assert (example.hops, example.split, example.type) == (None, "", "")


def test_names_are_the_ids_where_the_graph_is_keyed_by_name(tmp_path: Path) -> None:
    write(tmp_path, FULL)
    (example,) = Folder(tmp_path, ids="names").examples()
    assert example.topic_ids == ("Émile",)
    assert example.answer_ids == ("J.-J. Rousseau", "1762")
    with pytest.raises(ConfigError, match=r"dataset\.ids=mids is not known; use one of ids, names"):
        Folder(tmp_path, ids="mids")  # type: ignore[arg-type]


def test_a_split_is_picked_and_an_unknown_one_refused_with_those_there_are(tmp_path: Path) -> None:
    path = write(tmp_path, FULL, MINIMAL, {**FULL, "id": "q3"})
    assert [example.id for example in Folder(tmp_path, split="dev").examples()] == ["q1", "q3"]
    assert [example.id for example in Folder(tmp_path).examples()] == ["q1", "2", "q3"]
    with pytest.raises(DatasetError) as raised:
        Folder(tmp_path, split="test").examples()
    assert str(raised.value) == f"{path}: has no question in split 'test'; it holds dev (2), no split (1)"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "is not JSON"),
        ("[1]", "is not a JSON object"),
        ({**FULL, "id": "q0"}, "id 'q0' is already used in questions.jsonl:1; ids must be unique"),
        ({**FULL, "id": ""}, "field 'id' should be text, not ''"),
        ({**FULL, "id": True}, "field 'id' should be text, not True"),
        ({"question": "?", "answers": ["a"]}, "field 'id' should be text, not None"),
        ({**FULL, "question": " "}, "field 'question' should be text"),
        ({**FULL, "question": 5}, "field 'question' should be text"),
        ({**FULL, "answers": []}, "has no 'answers', so it cannot be scored"),
        ({"id": "q1", "question": "?"}, "has no 'answers', so it cannot be scored"),
        ({**FULL, "answers": "Ann"}, "field 'answers' should be a list, not 'Ann'"),
        ({**FULL, "answers": [" "]}, "field 'answers' should list texts or numbers, not ' '"),
        ({**FULL, "answers": [None]}, "field 'answers' should list texts or numbers, not None"),
        ({**FULL, "topic_ids": [True]}, "field 'topic_ids' should list texts or numbers, not True"),
        ({**FULL, "hops": "2"}, "field 'hops' should be a whole number, 0 or more, not '2'"),
        ({**FULL, "hops": -1}, "field 'hops' should be a whole number, 0 or more, not -1"),
        ({**FULL, "split": 1}, "field 'split' should be text, not 1"),
    ],
)
def test_a_malformed_line_is_named_with_file_line_and_reason(tmp_path: Path, line: object, reason: str) -> None:
    path = write(tmp_path, {**FULL, "id": "q0"}, "", line)
    with pytest.raises(DatasetError) as raised:
        Folder(tmp_path, split="dev").examples()
    assert str(raised.value).startswith(f"{path}:3: ")
    assert reason in str(raised.value)


def test_a_missing_or_empty_question_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"holds no questions\.jsonl"):
        Folder(tmp_path).examples()
    write(tmp_path, "")
    with pytest.raises(DatasetError, match=r"questions\.jsonl: holds no question"):
        Folder(tmp_path).examples()


def test_a_compressed_file_of_another_name_reads_alike(tmp_path: Path) -> None:
    plain = write(tmp_path, FULL, name="mine.jsonl")
    content = plain.read_bytes()
    expected = Folder(tmp_path, questions="mine.jsonl").examples()
    plain.unlink()
    (tmp_path / "mine.jsonl.xz").write_bytes(lzma.compress(content))
    packed = Folder(tmp_path, questions="mine.jsonl", name="mine", split="dev")
    assert packed.examples() == expected
    assert packed.checksum == hashlib.sha256(content).hexdigest()
    assert packed.name == "mine dev"


@pytest.mark.parametrize(
    "files",
    [
        {"graph.tsv": ""},
        {"graph.tsv.xz": ""},
        {"kb.txt.gz": ""},
        {"graph.csv": ""},
        {"graph.jsonl.zst": ""},
        {"graph.nt": ""},
        {"triples.ttl": ""},
        {"nodes.csv": "id\n", "edges.csv": "head,relation,tail\n"},
        {"people.csv": ":ID\n", "knows.csv": ":START_ID,:END_ID\n"},
        {"graph.yaml": "nodes: {T: {file: t.csv, id: id}}\nedges: {}\n", "t.csv": "id\n"},
    ],
)
def test_a_graph_in_the_folder_is_found_whatever_importer_reads_it(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path, FULL)
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    assert Folder(tmp_path).graph_source() == tmp_path


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ((), "holds neither nodes.csv with edges.csv nor edges.parquet nor one of kb.txt"),
        (("nodes.csv",), "holds nodes.csv but no edges.csv"),
        (("kb.txt", "graph.nt"), "holds several graphs (graph.nt, kb.txt)"),
    ],
)
def test_a_folder_without_one_graph_says_why(tmp_path: Path, files: tuple[str, ...], reason: str) -> None:
    for name in files:
        (tmp_path / name).write_text("id\n")
    with pytest.raises(DatasetError, match=f"{re.escape(reason)}.*name the graph with dataset.graph=PATH"):
        Folder(tmp_path).graph_source()


def test_the_graph_may_lie_elsewhere(tmp_path: Path) -> None:
    elsewhere = tmp_path / "graph.tsv"
    with pytest.raises(DatasetError, match=r"graph\.tsv: is not there; dataset\.graph"):
        Folder(tmp_path / "set", graph=elsewhere).graph_source()
    elsewhere.write_text("")
    assert Folder(tmp_path / "set", graph=elsewhere).graph_source() == elsewhere


def test_the_graph_tells_whether_it_is_keyed_by_id_or_by_name(tmp_path: Path) -> None:
    write(tmp_path, FULL, {**FULL, "id": "q2", "topic_ids": ["n4"], "topic_entities": ["Nowhere"]}, MINIMAL)
    examples = Folder(tmp_path).examples()
    names = ColumnarGraph.from_triples([("Émile", "author", "J.-J. Rousseau")])
    ids = ColumnarGraph.from_triples([("n3", "author", "n7"), ("n4", "author", "Émile")])
    neither = ColumnarGraph.from_triples([("a", "b", "c")])
    assert graph_keys(examples, names) == "names"
    assert graph_keys(examples, ids) == "ids"
    assert graph_keys(examples, neither) == "ids"
    assert graph_keys(examples[2:], names) == "ids"  # nothing to tell apart
    assert [by_name(example) for example in examples] == list(Folder(tmp_path, ids="names").examples())


def test_gold_answers_are_known_to_be_by_name() -> None:
    named = Example("a", "?", ("x", "y"), (EntityId("x"), EntityId("y")))
    assert is_by_name([named, Example("b", "?", ("3",))])
    assert not is_by_name([named, Example("c", "?", ("z",), (EntityId("m.1"),))])
    assert not is_by_name([Example("b", "?", ("3",))])


def test_topics_that_are_named_only_are_the_nodes_of_that_name() -> None:
    # 1 and 2 are called Acme, 3 Oslo
    store = ColumnarGraph.from_records(
        [Node(EntityId(id), name) for id, name in (("1", "Acme"), ("2", "Acme"), ("3", "Oslo"))], []
    )

    def asked(id: str, *topics: str) -> Example:
        return Example(id, "?", ("x",), topic_entities=topics, topic_ids=tuple(map(EntityId, topics)))

    examples = [asked("a", "Oslo", "Acme"), asked("b", "Nowhere"), asked("c")]
    found = with_nodes_of_names(examples, store, lambda: name_index(store))
    assert [example.topic_ids for example in found] == [("3", "1", "2"), ("Nowhere",), ()]
    keyed_by_name = ColumnarGraph.from_triples([("Oslo", "r", "Acme")])
    assert with_nodes_of_names(examples, keyed_by_name, lambda: name_index(keyed_by_name)) == examples


def test_the_webqsp_questions_have_the_stated_counts(real_data: Path) -> None:
    graph = real_data / "freebase_core" / "graph.tsv.xz"
    counts = {}
    for split in ("dev", "test"):
        dataset: Dataset = Folder(real_data / "webqsp", split=split, graph=graph, ids="names")
        counts[split] = len(dataset.examples())
        assert dataset.checksum == "be8218e9e84c780e7bc39e31e33c9fd1d24bc936c9dfb5242115ed91cf6ea3f8"
        assert dataset.graph_source() == graph
    assert counts == {"dev": 773, "test": 855}
    test = Folder(real_data / "webqsp", split="test", ids="names").examples()
    assert (test[0].id, test[0].question) == ("WebQTest-1198", "who influenced samuel taylor coleridge?")
    assert (test[0].topic_ids, test[0].answer_ids[0]) == (("Samuel Taylor Coleridge",), "Giambattista Vico")
    assert test[-1].id == "WebQTest-2031"
    by_id = Folder(real_data / "webqsp", split="test").examples()
    assert (by_id[0].topic_ids, by_id[0].answer_ids[0]) == (("m.078w2",), "m.015_hb")


@pytest.mark.parametrize(
    ("folder", "questions", "count"),
    [
        ("cwq", "questions.jsonl", 3531),
        ("northwind", "questions.jsonl", 627),
        ("movies", "questions.jsonl", 492),
        ("medqa_ddb", "questions.jsonl", 1273),
        ("cronquestions", "questions_train.jsonl", 11320),
    ],
)
def test_other_real_question_files_read(real_data: Path, folder: str, questions: str, count: int) -> None:
    assert len(Folder(real_data / folder, questions=questions).examples()) == count


def test_the_shipped_questions_need_nothing_but_the_package() -> None:
    dataset: Dataset = atlas("test")
    assert dataset.name == "atlas test"
    assert len(atlas("").examples()) >= 300
    counts = Counter(example.split for example in atlas("").examples())
    assert counts == {"dev": len(atlas("dev").examples()), "test": len(dataset.examples())}
    assert all(example.type and example.hops is not None for example in dataset.examples())


def test_topics_and_answers_are_in_the_shipped_graph() -> None:
    dataset = atlas("")
    graph = import_graph(dataset.graph_source())
    assert graph_keys(dataset.examples(), graph) == "ids"
    for example in dataset.examples():
        names = {node.id: node.name for node in graph.nodes(example.topic_ids + example.answer_ids)}
        assert [names[id] for id in example.topic_ids] == list(example.topic_entities)
        assert {names[id] for id in example.answer_ids} <= set(example.answers)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.csv", 'ID,Question,Topic Entities,hops\nq1,"Who, then?",Berlin|Paris,2\nq2,Where?,,\n'),
        ("q.csv", "ID;Question;Topic Entities;hops\nq1;Who, then?;Berlin|Paris;2\nq2;Where?;;\n"),
        ("q.tsv", "\ufeffquestion\tid\ttopic_entities\thops\nWho, then?\tq1\tBerlin|Paris\t2\n\nWhere?\tq2\t\t\n"),
        ("q.csv", "id\tquestion\ttopic_entities\thops\r\nq1\tWho, then?\tBerlin|Paris\t2\r\nq2\tWhere?\t\t\r\n"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_table_of_questions_is_read_in_any_dialect(tmp_path: Path, name: str, content: str, encoding: str) -> None:
    (tmp_path / name).write_bytes(content.removeprefix("\ufeff" * (encoding == "utf-16")).encode(encoding))
    first, second = unanswered(tmp_path / name).examples
    assert (first.id, first.question, first.topic_entities, first.hops) == ("q1", "Who, then?", ("Berlin", "Paris"), 2)
    assert (second.id, second.question, second.topic_entities, second.hops) == ("q2", "Where?", (), None)


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("Who is X?,Ann\nWho is Y?,Bob\n", 2, "'Who is X?' heads the file, which has no column 'question'"),
        ("question\nWho, then, is X?\n", 2, "has 3 fields under a header of 1"),
        ("question,question\na,b\n", 1, "has 2 columns 'question'"),
        ('question,answer\n"Who?,x\n', None, "is not CSV"),
        ("question,answer\n", None, "holds no question"),
    ],
)
def test_a_table_that_is_none_of_questions_is_refused(
    tmp_path: Path, content: str, line: int | None, reason: str
) -> None:
    (tmp_path / "q.csv").write_text(content)
    with pytest.raises(DatasetError, match=re.escape(reason)) as caught:
        unanswered(tmp_path / "q.csv")
    assert caught.value.line == line
