"""Tests of `byokg.evaluation.datasets.testset`: the questions made from the shipped graph and from small ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from byokg.errors import ConfigError, GraphExists
from byokg.evaluation.datasets import testset
from byokg.evaluation.datasets.audit import audit
from byokg.evaluation.datasets.folder import SHIPPED, Folder, unanswered
from byokg.evaluation.datasets.patterns import KINDS
from byokg.evaluation.datasets.sampled_graph import execute, select_keys
from byokg.evaluation.datasets.testset import Testset, make_testset, write_testset
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import import_graph
from byokg.graph.name_indexes import name_index
from byokg.text.names import fold_words, is_identifier


@pytest.fixture(scope="module")
def graph() -> ColumnarGraph:
    return import_graph(SHIPPED)


@pytest.fixture(scope="module")
def made(graph: ColumnarGraph) -> Testset:
    return make_testset(graph, 120)


def test_a_set_has_questions_of_every_type_about_as_many_of_each(made: Testset) -> None:
    types = made.counts()["types"]
    assert list(types) == list(KINDS) and sum(types.values()) == 120
    assert max(types.values()) - min(types.values()) <= 4


def test_the_engine_reproduces_every_gold_answer(graph: ColumnarGraph, made: Testset) -> None:
    for each in made.questions:
        gold = each.answers if each.type == "count" else tuple(sorted(each.answer_ids))
        assert execute(graph, each.query, each.reduce) == gold, each.id
    for each in made.unanswerable:
        assert execute(graph, each.query, each.reduce) == () == each.answers, each.id


def test_support_is_in_the_graph_and_touches_what_is_asked(graph: ColumnarGraph, made: Testset) -> None:
    triples = set(_triples(graph))
    for each in made.questions:
        nodes = {node for head, _, tail in each.support for node in (head, tail)}
        assert set(each.support) <= triples
        assert each.type == "comparison" or nodes >= {*each.topic_ids, *each.answer_ids}, each.id


def test_topics_have_a_name_of_their_own_and_stand_in_the_question(graph: ColumnarGraph, made: Testset) -> None:
    names = name_index(graph)
    for each in (*made.questions, *made.unanswerable):
        for name, id in zip(each.topic_entities, each.topic_ids, strict=True):
            assert graph.ids(names.exact(name)) == [id] and name in each.question


def test_no_question_tells_its_answer_unless_it_compares(made: Testset) -> None:
    for each in made.questions:
        words = f" {' '.join(fold_words(each.question))} "
        if each.type != "comparison":
            assert not any(f" {' '.join(fold_words(answer))} " in words for answer in each.answers if each.answer_ids)


def test_no_question_stands_twice_and_paraphrases_share_a_cluster_and_a_split(made: Testset) -> None:
    both = (*made.questions, *made.unanswerable)
    assert len({each.question.casefold() for each in both}) == len({each.id for each in both}) == len(both)
    assert len({each.cluster for each in both}) == len({(each.cluster, each.split) for each in both}) < len(both)


def test_no_fact_behind_a_test_question_is_behind_a_dev_question(made: Testset) -> None:
    facts = {
        split: {frozenset((h, t)) for each in made.questions if each.split == split for h, _, t in each.support}
        for split in ("dev", "test")
    }
    assert facts["dev"] and facts["test"] and not facts["dev"] & facts["test"]


def test_the_same_seed_gives_the_same_questions_and_another_gives_others(graph: ColumnarGraph, made: Testset) -> None:
    assert make_testset(graph, 120) == made
    assert make_testset(graph, 20, seed=1).questions != make_testset(graph, 20).questions


def test_a_written_set_is_read_as_a_folder_and_its_audit_finds_nothing(
    graph: ColumnarGraph, made: Testset, tmp_path: Path
) -> None:
    write_testset(made, tmp_path / "set")
    examples = list(Folder(tmp_path / "set").examples())
    names = name_index(graph)
    assert [each.id for each in examples] == [each.id for each in made.questions]
    assert examples[0].cluster == made.questions[0].cluster and examples[0].query
    assert audit(examples, lambda example: (graph, names)).findings == {}
    assert len(unanswered(tmp_path / "set" / "unanswerable.jsonl").examples) == len(made.unanswerable)
    assert "seed 0" in (tmp_path / "set" / "README.md").read_text("utf-8")


def test_another_set_is_replaced_only_when_told_to_and_other_folders_never(made: Testset, tmp_path: Path) -> None:
    write_testset(made, tmp_path / "set")
    with pytest.raises(GraphExists, match="--overwrite"):
        write_testset(made, tmp_path / "set")
    write_testset(made, tmp_path / "set", overwrite=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    with pytest.raises(GraphExists, match="another folder"):
        write_testset(made, tmp_path / "other", overwrite=True)


def test_nameless_mediators_are_walked_through_and_never_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testset, "_TRIES", 300)
    triples = [
        (f"Actor {letter}", "film.actor.film", f"m.0{letter}{number}") for letter in "abcdefgh" for number in (1, 2)
    ]
    triples += [
        (f"m.0{letter}{number}", "film.performance.film", f"Film {letter}{number}")
        for letter in "abcdefgh"
        for number in (1, 2)
    ]
    made = make_testset(ColumnarGraph.from_triples(triples), 40, kinds=["1-hop", "2-hop", "count"])
    assert {each.type for each in made.questions} == {"2-hop"}
    said = {word for each in made.questions for word in (*each.answers, *each.question.split())}
    assert not any(map(is_identifier, said))
    assert {"Film a1", "Film a2"} in [set(each.answers) for each in made.questions if each.topic_ids == ("Actor a",)]


def test_edges_that_say_when_are_asked_about(made: Testset) -> None:
    asked = [each for each in made.questions if "{|" in each.query]
    assert asked and {each.type for each in asked} == {"temporal"}
    assert all(" date " in each.question for each in asked)


def test_names_that_two_nodes_bear_are_never_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testset, "_TRIES", 300)
    triples = [("Paris", "capital_of", "France"), ("paris", "located_in", "Texas"), ("Rome", "capital_of", "Italy")]
    made = make_testset(ColumnarGraph.from_triples(triples), 20, kinds=["1-hop"])
    assert made.questions and not any("aris" in name for each in made.questions for name in each.topic_entities)


def test_a_graph_that_gives_no_question_is_refused_in_words() -> None:
    with pytest.raises(ConfigError, match="names of their own"):
        make_testset(ColumnarGraph.from_triples([("m.01", "r", "m.02")]))


@pytest.mark.parametrize(
    ("reduce", "found"), [("greatest", ["c"]), ("least", ["a"]), ("after 1990", ["c"]), ("before 1990", ["a"])]
)
def test_values_are_chosen_by_extreme_or_year(reduce: str, found: list[str]) -> None:
    assert select_keys({"a": 1980.5, "b": 1990.4, "c": 2001.0}, reduce) == found


def _triples(graph: ColumnarGraph) -> list[tuple[str, str, str]]:
    ids = list(graph.entities())
    bounds, relations, tails = graph.outgoing
    return [
        (ids[head], graph.relations[relations[edge]], ids[tails[edge]])
        for head in range(graph.node_count)
        for edge in range(int(bounds[head]), int(bounds[head + 1]))
    ]
