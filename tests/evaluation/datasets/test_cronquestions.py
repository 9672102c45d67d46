"""Tests of `byokg.evaluation.datasets.benchmarks`."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from byokg.errors import ConfigError, DatasetError
from byokg.evaluation.datasets.benchmarks import cronquestions
from byokg.graph.importers.choose import import_graph
from byokg.graph.traversal import neighbours, triples
from byokg.types import EntityId
from tests.evaluation.datasets.files import write_text

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
    with pytest.raises(ConfigError, match=r"dataset\.times is one of property, relation, both, not 'year'"):
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
