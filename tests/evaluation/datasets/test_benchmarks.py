"""Tests of `byokg.evaluation.datasets.benchmarks`."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import pickle
from pathlib import Path
from typing import Any, Literal

import pytest

from byokg.errors import ConfigError, DatasetError
from byokg.evaluation.datasets.base import Dataset, Example
from byokg.evaluation.datasets.benchmarks import MetaQA, cronquestions, medqa, pathquestion, stark, text2cypher
from byokg.evaluation.datasets.folder import Folder
from byokg.graph.importers.choose import import_graph
from byokg.graph.traversal import neighbours, triples
from byokg.types import EntityId
from tests.evaluation.datasets.files import write_lines, write_text

LINES = "what does [Grégoire Colin] appear in\tBefore the Rain\n[Jaws] was directed by whom\tA|B\n"


def write(root: Path, name: str, content: str | bytes = LINES) -> Path:
    """Write one file of the data set."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def packed(text: str, suffix: str) -> bytes:
    """Return the text as a file with this suffix holds it."""
    content = text.encode()
    return {"": content, ".xz": lzma.compress(content), ".gz": gzip.compress(content)}[suffix]


def test_brackets_mark_the_topic_and_are_dropped_from_the_question(tmp_path: Path) -> None:
    write(tmp_path, "2-hop/qa_test.txt")
    first, second = MetaQA(tmp_path, hops=2).examples()
    assert first == Example(
        id="metaqa-2-test-00001",
        question="what does Grégoire Colin appear in",
        answers=("Before the Rain",),
        answer_ids=("Before the Rain",),  # type: ignore[arg-type]
        topic_entities=("Grégoire Colin",),
        topic_ids=("Grégoire Colin",),  # type: ignore[arg-type]
        hops=2,
        split="test",
    )
    assert (second.id, second.question, second.answers) == (
        "metaqa-2-test-00002",
        "Jaws was directed by whom",
        ("A", "B"),
    )


@pytest.mark.parametrize("folder", ["1-hop", "1-hop/vanilla"])
@pytest.mark.parametrize("suffix", ["", ".xz", ".gz"])
def test_every_layout_and_compression_reads_alike(tmp_path: Path, folder: str, suffix: str) -> None:
    write(tmp_path, f"{folder}/qa_dev.txt{suffix}", packed(LINES, suffix))
    dataset = MetaQA(tmp_path, hops=1, split="dev")
    assert [example.id for example in dataset.examples()] == ["metaqa-1-dev-00001", "metaqa-1-dev-00002"]
    assert dataset.checksum == hashlib.sha256(LINES.encode()).hexdigest()
    assert dataset.name == "metaqa 1-hop dev"


def test_ids_count_lines_of_the_file_so_a_question_can_be_found_in_it(tmp_path: Path) -> None:
    write(tmp_path, "1-hop/qa_test.txt", "\ufeff\r\n[a] b\tc\r\n")
    (example,) = MetaQA(tmp_path, hops=1).examples()
    assert (example.id, example.question, example.answers) == ("metaqa-1-test-00002", "a b", ("c",))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("who is Ann\tBob", "does not have exactly one [topic]"),
        ("who are [Ann] and [Eve]\tBob", "does not have exactly one [topic]"),
        ("who is []\tBob", "does not have exactly one [topic]"),
        ("who is ]Ann[\tBob", "does not have exactly one [topic]"),
        ("who is [Ann]", "has 0 tabs"),
        ("who is [Ann]\tBob\tEve", "has 2 tabs"),
        ("who is [Ann]\t", "has an empty answer"),
        ("who is [Ann]\tBob||Eve", "has an empty answer"),
    ],
)
def test_a_malformed_line_is_named_with_file_line_and_reason(tmp_path: Path, line: str, reason: str) -> None:
    path = write(tmp_path, "1-hop/qa_test.txt", f"[a] b\tc\n{line}\n")
    with pytest.raises(DatasetError) as raised:
        MetaQA(tmp_path, hops=1).examples()
    assert str(raised.value).startswith(f"{path}:2: ")
    assert reason in str(raised.value)


def test_bytes_that_are_not_utf8_are_named_with_their_line(tmp_path: Path) -> None:
    path = write(tmp_path, "1-hop/qa_test.txt", "[a] b\tc\n[é] b\tc\n".encode("latin-1"))
    with pytest.raises(DatasetError) as raised:
        MetaQA(tmp_path, hops=1).examples()
    assert str(raised.value).startswith(f"{path}:2: is not UTF-8")


@pytest.mark.parametrize("suffix", [".xz", ".gz"])
def test_a_broken_compressed_file_is_named(tmp_path: Path, suffix: str) -> None:
    for content in (packed(LINES, suffix)[:-10], b"not compressed"):
        path = write(tmp_path, f"1-hop/qa_test.txt{suffix}", content)
        with pytest.raises(DatasetError, match=f"{path.name}: cannot be read"):
            MetaQA(tmp_path, hops=1).examples()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"3-hop: holds no qa_train\.txt"):
        MetaQA(tmp_path, hops=3, split="train").examples()
    with pytest.raises(DatasetError, match=r"holds no kb\.txt"):
        MetaQA(tmp_path, hops=3).graph_source()


def test_only_existing_parts_can_be_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"dataset\.hops=4"):
        MetaQA(tmp_path, hops=4)
    with pytest.raises(ConfigError, match=r"dataset\.split=valid"):
        MetaQA(tmp_path, hops=1, split="valid")


@pytest.mark.parametrize(
    ("hops", "split", "count", "checksum", "first", "last"),
    [
        (
            1,
            "dev",
            9992,
            "3c68fa73a14d9b9616e49f08e2d8b65e024af417708306874fe4d398634620d3",
            ("what movies did Temuera Morrison act in", ("Once Were Warriors", "Tracker", "River Queen")),
            ("what movies was Ryan Rowe the writer of", ("Charlie's Angels",)),
        ),
        (
            1,
            "test",
            9947,
            "c57e9c2c4c05e5eec4503460042c09bfa3e80ea1a5ecaf361c92dd81d6c7bece",
            ("what does Grégoire Colin appear in", ("Before the Rain",)),
            (
                "what films was Nigel Balchin a writer on",
                ("Separate Lies", "The Man Who Never Was", "23 Paces to Baker Street"),
            ),
        ),
        (
            2,
            "dev",
            14872,
            "a713ae6b4a7cdccfdda57ac99092f4114a1f8b0c4ba51b4466a15496a4ff6fbd",
            ("what are the languages spoken in the films directed by Joel Zwick", ("Greek",)),
            ("what languages are the movies directed by Ágúst Guðmundsson in", ("Icelandic",)),
        ),
        (
            2,
            "test",
            14872,
            "b1c4f1ad77f34a27e0e5a13c08b436c6f4c9a49dccd8d43639a569ee5cd906a1",
            (
                "which person directed the movies starred by John Krasinski",
                ("Nancy Meyers", "Sam Mendes", "George Clooney", "Ken Kwapis", "Luke Greenfield"),
            ),
            ("which person wrote the movies starred by Paul McCartney", ("Alun Owen",)),
        ),
        (
            3,
            "dev",
            14274,
            "c638b99f97db93112f7a9ceec47675066cc9efc93b7ecd43e22c54ab531741d9",
            ("the films that share directors with the film Black Snake Moan were in which genres", ("Drama", "Music")),
            ("what genres do the movies that share screenwriters with The Designated Mourner fall under", ("Drama",)),
        ),
        (
            3,
            "test",
            14274,
            "f4c2a801f864e80e809655a20b4b8c9904f4a2885a7f23850b2fabd8d38a6540",
            (
                "the films that share directors with the film Catch Me If You Can were in which languages",
                ("German", "Polish", "Mende", "Japanese"),
            ),
            ("when did the movies release whose writers also wrote Parineeta", ("2009",)),
        ),
    ],
)
def test_the_real_files_have_the_published_counts(
    real_data: Path,
    hops: int,
    split: Literal["dev", "test"],
    count: int,
    checksum: str,
    first: tuple[str, tuple[str, ...]],
    last: tuple[str, tuple[str, ...]],
) -> None:
    dataset: Dataset = MetaQA(real_data / "metaqa", hops=hops, split=split)
    examples = dataset.examples()
    assert len(examples) == count
    assert dataset.checksum == checksum
    assert [(example.question, example.answers) for example in (examples[0], examples[-1])] == [first, last]
    assert examples[-1].id == f"metaqa-{hops}-{split}-{count:05d}"
    assert len({example.id for example in examples}) == count
    assert dataset.graph_source().name.startswith("kb.txt")


RECORD: dict[str, Any] = {
    "question": "Who was the Q30 before Q8",
    "answers": {"Q2", "Q1"},
    "answer_type": "entity",
    "template": "Who was the {tail} before {event_head}",
    "entities": {"Q30", "Q8"},
    "times": set(),
    "relations": {"P39"},
    "type": "before_after",
    "annotation": {"tail": "Q30", "event_head": "Q8", "type": "before"},
    "uniq_id": 7,
    "paraphrases": ["Who was the President before the war"],
}
WHEN: dict[str, Any] = {**RECORD, "answers": {1999, 1987}, "answer_type": "time", "type": "first_last"}
EARLY = {
    key: RECORD[key] for key in ("question", "answers", "answer_type", "template", "entities", "times", "relations")
}
NAMES = "Q1\tAnn\nQ2\tBob\nQ8\tthe war\nQ30\tPresident\n"


class Harmful:
    """Runs a command when it is unpickled by somebody who trusts it."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """Say what to call."""
        return os.system, ("touch harmed",)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder in the official layout."""
    (tmp_path / "questions").mkdir()
    (tmp_path / "questions/test.pickle").write_bytes(pickle.dumps([RECORD, WHEN, EARLY]))
    write_text(tmp_path, "kg/wd_id2entity_text.txt", NAMES)
    write_text(tmp_path, "kg/wd_id2relation_text.txt", "P39\tposition held\n")
    # Ann held the position twice, Bob once, for one year; Q9 has no name, P1 neither.
    facts = "Q1\tP39\tQ30\t1990\t1994\nQ1\tP39\tQ30\t1998\t1999\nQ2\tP39\tQ30\t1987\t1987\nQ9\tP1\tQ8\t\t\n"
    write_text(tmp_path, "kg/full.txt", facts)
    return tmp_path


def test_pickles_are_read_and_ids_named(root: Path) -> None:
    entity, time, early = cronquestions(root).examples()
    assert (entity.id, entity.question) == ("cron-test-000001", "Who was the President before the war")
    assert (entity.answers, entity.answer_ids) == (("Ann", "Bob"), ("Q1", "Q2"))
    assert (entity.topic_ids, entity.topic_entities) == (("Q30", "Q8"), ("President", "the war"))
    assert (entity.type, entity.answer_type) == ("before_after", "entity")
    assert (time.answers, time.answer_ids, time.answer_type) == (("1987", "1999"), ("1987", "1999"), "time")
    assert (early.question, early.type) == ("Who was the President before the war", "")


def test_a_pickle_that_would_run_something_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    (root / "questions/test.pickle").write_bytes(pickle.dumps([Harmful()]))
    with pytest.raises(DatasetError, match=r"it refers to \w+\.system, and a question file holds plain data only"):
        cronquestions(root).examples()
    assert not Path("harmed").exists()


@pytest.mark.parametrize("content", [b"", b"no pickle", pickle.dumps({"a": 1}), pickle.dumps([RECORD])[:40]])
def test_what_is_no_list_of_questions_is_refused(root: Path, content: bytes) -> None:
    path = root / "questions/test.pickle"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=str(path)):
        cronquestions(root).examples()


def test_years_become_properties_of_parallel_edges(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "graph"
    cronquestions(root).write_graph(out)
    graph = import_graph(out)
    found = triples(graph, neighbours(graph, [EntityId("Q1")]))
    assert [(each.relation, dict(each.properties)) for each in found] == [
        ("position held", {"start": 1990, "end": 1994}),
        ("position held", {"start": 1998, "end": 1999}),
    ]
    assert [node.name for node in graph.nodes([EntityId("Q1"), EntityId("Q9")])] == ["Ann", "Q9"]
    assert cronquestions(root).graph_source() == out


def test_years_become_part_of_the_relation_on_request(root: Path, tmp_path: Path) -> None:
    cronquestions(root, times="relation").write_graph(tmp_path / "g")
    assert sorted(import_graph(tmp_path / "g").relations) == [
        "P1",
        "position held: 1987",
        "position held: 1990-1994",
        "position held: 1998-1999",
    ]


def test_years_may_be_both(root: Path, tmp_path: Path) -> None:
    cronquestions(root, times="both").write_graph(tmp_path / "g")
    graph = import_graph(tmp_path / "g")
    found = triples(graph, neighbours(graph, [EntityId("Q1")]))
    assert {each.relation: dict(each.properties) for each in found} == {
        "position held: 1990-1994": {"start": 1990, "end": 1994},
        "position held: 1998-1999": {"start": 1998, "end": 1999},
    }


def test_the_graph_says_how_it_is_converted(root: Path) -> None:
    with pytest.raises(DatasetError, match="has to be converted once: byokg data graph"):
        cronquestions(root).graph_source()
    with pytest.raises(ConfigError, match=r"dataset\.times=year is not known; use one of property, relation, both"):
        cronquestions(root, times="year")  # type: ignore[arg-type]
    write_text(root, "kg/full.txt", "Q1\tP39\tQ30\n")
    with pytest.raises(DatasetError, match=r"full\.txt:1: has 3 fields"):
        cronquestions(root).write_graph(root / "out")


def test_the_published_samples_read_in_both_states(real_data: Path) -> None:
    folder = real_data / "cronquestions"
    late = cronquestions(folder, questions="original_layout_sample.jsonl")
    assert len(late.examples()) == 150
    assert late.checksum == "8361fcbc9ee0a16bc59dd43de7749ed1f7ba7dabe65a41050fa599621e5b72d1"
    assert late.examples()[0].answers == ("John Brumby",)
    assert sum("{tail2}" in example.question for example in late.examples()) == 22  # as published
    early = cronquestions(folder, questions="original_layout_sample_early.jsonl").examples()
    assert len(early) == 50
    assert early[0].question == "Who held the position of member of the Riksdag during 2012 Summer Olympics?"


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
    with pytest.raises(ConfigError, match=r"dataset\.kb=drugs is not known; use one of prime, mag, amazon"):
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
    assert (example.answers, example.rows, example.row_count) == (("a",), (("a", (1, None)), ("a", ())), 2)


def test_text2cypher_reads_nodes_counts_of_rows_and_answers_in_place_of_rows(tmp_path: Path) -> None:
    node = {"node": "7", "age": 3}
    write_lines(
        tmp_path,
        "questions.jsonl",
        {"id": "a", "question": "?", "cypher": "x", "rows": [[node, 1]], "row_count": 9, "kind": "k", "template": "t"},
        {"id": "b", "question": "?", "cypher": "x", "answers": ["Ann"], "answer_ids": ["1"], "topic_ids": ["2"]},
        {"id": "c", "question": "?", "cypher": "x", "answers": ["3", "4"], "return_count": 1, "tie": True},
    )
    for name, header in (("nodes.csv", "id,name"), ("edges.csv", "head,relation,tail")):
        write_text(tmp_path, name, header)
    dataset = text2cypher(tmp_path)
    nodes, names, ties = dataset.examples()
    assert (nodes.answers, nodes.rows, nodes.row_count) == (("7",), ((node, 1),), 9)
    assert (nodes.type, nodes.cluster) == ("k", "t")
    assert (names.rows, names.row_count) == ((({"node": "1", "name": "Ann"},),), None)
    assert (names.answer_ids, names.topic_ids) == (("1",), ("2",))
    assert (ties.rows, ties.row_count) == ((("3",), ("4",)), 1)
    assert dataset.graph_source() == tmp_path
    write_lines(
        tmp_path, "questions.jsonl", {"id": "a", "question": "?", "cypher": "x", "rows": [[1]], "row_count": "9"}
    )
    with pytest.raises(DatasetError, match=r"jsonl:1: field 'row_count' should be a whole number, 0 or more, not '9'"):
        text2cypher(tmp_path).examples()


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
        "er": (text2cypher(root / "mind_the_query_er"), 1091, "d7308e3e", ("US",)),
        "pole": (text2cypher(root / "zograscope"), 2884, "c5b8fa6b", ("1",)),
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


@pytest.mark.parametrize("name", ["medqa", "prime", "mag", "northwind", "er", "pole", "movies", "pq2", "pq3", "webqsp"])
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
