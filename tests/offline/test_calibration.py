"""Tests of `byokg.offline.answerer`, and of answers that are held back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from byokg.errors import ConfigError
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.linking.parts import Parts
from byokg.offline.answerer import UNSURE, Confidence
from byokg.offline.pipeline import offline_pipeline
from byokg.offline.ranking import AGAINST, FITTED, NAMES, CandidateFeatures, read_weights
from byokg.pipelines.loop import Loop
from byokg.types import Answer, Context, Question
from tests.linking.graphs import EMBEDDER, films

GRAPH = films()
PIPELINE = offline_pipeline(Parts(GRAPH, embedder=EMBEDDER))


def signs(pipeline: Loop, text: str) -> CandidateFeatures:
    answer = pipeline.run(Question("q", text))
    assert isinstance(pipeline.estimator, Confidence)
    return pipeline.estimator.candidates(Context(answer.rounds, text), answer.items)[0][1].features


def test_the_score_of_every_answer_is_the_probability_that_the_first_is_right() -> None:
    answer = PIPELINE.run(Question("q", "who directed Alien"))
    assert {item.score for item in answer.items} == {answer.items[0].score}
    assert 0 < answer.items[0].score < 1


def test_shipped_weights_count_signs_the_way_they_speak() -> None:
    weights = read_weights(FITTED)
    for name, weight in zip(NAMES, weights.weights, strict=True):
        assert weight <= 0 if name in AGAINST else weight >= 0, name
    assert any(weights.weights)


@pytest.mark.parametrize("name", NAMES)
def test_what_speaks_for_an_answer_makes_it_no_less_likely(name: str) -> None:
    weights = read_weights(FITTED)
    plain = weights.odds(CandidateFeatures())
    more = weights.odds(replace(CandidateFeatures(), **{name: 1.0}))
    assert more <= plain if name in AGAINST else more >= plain


def test_other_paths_do_not_compete_with_an_edge_that_says_yes() -> None:
    rivals = [("Ann", f"relation {letter}", letter) for letter in "abcdefghi"]
    graph = ColumnarGraph.from_triples([*rivals, ("Heat", "director", "Ann")])
    answer = offline_pipeline(Parts(graph, embedder=EMBEDDER)).run(Question("q", "Is Ann the director of Heat?"))
    assert [item.name for item in answer.items] == ["yes"]
    assert answer.items[0].score > UNSURE and not answer.note


def test_what_the_graph_does_not_settle_is_said() -> None:
    graph = ColumnarGraph.from_triples(
        [("Heat", "director", "Ann"), ("Alien", "director", "Bob"), ("Bob", "sings", "Do")]
    )
    answer = offline_pipeline(Parts(graph, embedder=EMBEDDER)).run(Question("q", "Does Bob know Ann?"))
    assert not answer.items and answer.note == "the graph has nothing that says yes or no"


def test_a_path_alone_is_surer_than_one_among_many() -> None:
    # hub -r1-> a … hub -r9-> i; alone -director-> z
    rivals = [("hub", f"relation {letter}", letter) for letter in "abcdefghi"]
    graph = ColumnarGraph.from_triples([*rivals, ("alone", "director", "z")])
    pipeline = offline_pipeline(Parts(graph, embedder=EMBEDDER))
    sure, torn = signs(pipeline, "who is the director of alone"), signs(pipeline, "what about hub")
    assert sure.agreement > torn.agreement


def test_a_misspelt_name_and_an_unused_one_are_noted() -> None:
    assert signs(PIPELINE, "who directed Alien").linking_uncertainty == 0
    assert signs(PIPELINE, "who directed Blade Runer").linking_uncertainty > 0


def test_a_word_that_another_relation_explains_is_overlooked() -> None:
    edges = [("Heat", "director", "Ann"), ("Heat", "year", "1995")]
    text = "what anthem has the director of Heat"
    silent, speaking = (
        offline_pipeline(Parts(ColumnarGraph.from_triples(each), embedder=EMBEDDER))
        for each in (edges, [*edges, ("Rome", "anthem", "Song")])
    )
    assert signs(speaking, text).unused_schema_words > signs(silent, text).unused_schema_words + 0.3
    assert signs(speaking, "who is the director of Heat").unused_schema_words < 0.1


def test_a_path_is_as_long_as_the_question_says() -> None:
    graph = ColumnarGraph.from_triples(
        [("Heat", "director", "Ann"), ("Ann", "born in", "Rome"), ("Rome", "part of", "Italy")]
    )
    pipeline = offline_pipeline(Parts(graph, embedder=EMBEDDER))
    right = signs(pipeline, "who is the director of Heat")
    assert right.too_few_hops == right.too_many_hops == 0
    assert signs(pipeline, "the boss of the director of Heat").too_few_hops == 1
    assert signs(pipeline, "where was Heat born").too_many_hops == 1


def test_what_the_question_passes_on_its_way_is_not_what_it_asks_for() -> None:
    edges = [("Heat", "film.film.director", "Ann"), ("Ann", "people.person.anthem", "Song")]
    pipeline = offline_pipeline(Parts(ColumnarGraph.from_triples(edges), embedder=EMBEDDER))
    assert signs(pipeline, "what is the fleet of the director of Heat").intermediate_type_match > 0.3
    assert signs(pipeline, "what is the director of Heat").intermediate_type_match == 0
    assert signs(pipeline, "what is the thing of the director of Heat").intermediate_type_match == 0


def test_an_answer_that_several_paths_lead_to_is_surer() -> None:
    edges = [("Heat", "director", "Ann"), ("Heat", "music", "Bob"), ("Heat", "seen by", "Cid")]
    alone = signs(
        offline_pipeline(Parts(ColumnarGraph.from_triples(edges), embedder=EMBEDDER)), "who is the director of Heat"
    )
    more = [*edges, ("Heat", "directed by", "Ann"), ("Ann", "directs", "Heat")]
    backed = signs(
        offline_pipeline(Parts(ColumnarGraph.from_triples(more), embedder=EMBEDDER)), "who is the director of Heat"
    )
    assert backed.agreement > alone.agreement
    weights = read_weights(FITTED)
    assert weights.odds(replace(alone, agreement=backed.agreement)) > weights.odds(alone)


def test_nothing_competes_with_what_was_worked_out_along_no_path() -> None:
    graph = ColumnarGraph.from_triples([("Heat", "director", "Ann"), *(("Ann", f"likes {n}", n) for n in "abc")])
    found = signs(offline_pipeline(Parts(graph, embedder=EMBEDDER)), "Is Ann the director of Heat?")
    assert found.unused_schema_words == found.linking_uncertainty == 0
    assert found.agreement > signs(PIPELINE, "what about Alien").agreement


class TestAbstaining:
    def asked(self, abstain: float) -> Answer:
        return offline_pipeline(Parts(GRAPH, embedder=EMBEDDER), abstain=abstain).run(
            Question("q", "who directed Alien")
        )

    def test_an_answer_below_the_threshold_is_held_back_and_the_note_says_why(self) -> None:
        answer = self.asked(1.0)
        assert answer.items == ()
        assert "not sure enough" in answer.note
        assert "'Ridley Scott'" in answer.note

    def test_a_question_that_names_nothing_in_the_graph_says_so(self) -> None:
        answer = PIPELINE.run(Question("q", "xyzzy qwrtp"))
        assert answer.items == ()
        assert answer.note == "nothing in the question names a node of the graph"

    def test_one_above_it_is_given_as_without_a_threshold(self) -> None:
        free, asked = self.asked(0.0), self.asked(0.01)
        assert asked.items == free.items

    def test_an_unsure_answer_says_what_speaks_against_it(self) -> None:
        for text in ("what about Alien", "who directed Alien", "which films did James Cameron direct"):
            answer = PIPELINE.run(Question("q", text))
            assert bool(answer.note) == (bool(answer.items) and answer.items[0].score < UNSURE)

    @pytest.mark.parametrize("abstain", [-0.1, 1.5])
    def test_a_threshold_that_is_no_probability_is_refused(self, abstain: float) -> None:
        with pytest.raises(ConfigError, match="no probability"):
            self.asked(abstain)

    def test_a_threshold_needs_an_estimator(self) -> None:
        with pytest.raises(ConfigError, match="needs a confidence estimator"):
            Loop(PIPELINE.entities, PIPELINE.stages, PIPELINE.answerer, abstain=0.5)


class TestWeights:
    @pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps({"bias": 0, "weights": {}, "middle": {}})])
    def test_a_file_of_anything_else_is_refused(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "weights.json").write_text(text)
        with pytest.raises(ConfigError, match="byokg fit"):
            read_weights(tmp_path / "weights.json")

    def test_a_missing_file_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="byokg fit"):
            read_weights(tmp_path / "none.json")
