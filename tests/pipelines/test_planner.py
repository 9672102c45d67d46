"""Tests of `pipeline=planner` and of GraphRAFT with fine-tuned models, all of a few thousand weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.small_transformer import small_model
from byokg.errors import ConfigError
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.linking.parts import Parts
from byokg.llm.decoding import ConstrainedRanker
from byokg.offline.pipeline import build_parser_and_ranker, offline_pipeline
from byokg.offline.planner import Planner
from byokg.pipelines.graphraft import check_prompt, graphraft_pipeline, outline
from byokg.retrieval.candidates import Conditions, Templates
from byokg.retrieval.enumerate_candidates import CandidateFinder
from byokg.training.sft import Pair, SftSettings, fine_tune
from byokg.types import Answer, EntityId, Question
from tests.corpora import require

require("train", "torch", "transformers")

GRAPH = ColumnarGraph.from_triples(
    [
        ("Alien", "directed_by", "Scott"),
        ("Alien", "starred", "Weaver"),
        ("Blade", "directed_by", "Scott"),
        ("Blade", "starred", "Ford"),
        ("Heat", "directed_by", "Mann"),
        ("Heat", "starred", "Pacino"),
    ]
)
# Words that have nothing to do with the relations, so that the training alone can tell them apart.
PAIRS = [
    Pair("foo Alien", "Alien -> directed_by"),
    Pair("bar Alien", "Alien -> starred"),
    Pair("foo Blade", "Blade -> directed_by"),
    Pair("bar Blade", "Blade -> starred"),
    Pair("baz Scott", "Scott -> ^directed_by -> starred"),
] * 16
PROMPT = "{question} ="
QUICK = SftSettings(
    rank=0, epochs=12, batch=8, accumulate=1, rate=1e-2, held_out=0, save_every=1000, prompt=PROMPT, device="cpu"
)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("planner") / "model"
    words = ["Heat Scott Mann Weaver Ford Pacino -> ^directed_by ^starred", "Question: Query: {question}"]
    fine_tune(PAIRS, out, QUICK, small_model(PAIRS, words, width=48, layers=2, heads=2))
    return out


def ranker(folder: Path) -> ConstrainedRanker:
    return ConstrainedRanker(path=str(folder), beams=2, prompt=PROMPT, spelling="plan")


def ask(pipeline: Any, text: str, topic: str) -> Answer:
    answer: Answer = pipeline.run(Question("q", text, (EntityId(topic),)))
    return answer


def test_plans_decide_where_no_word_of_the_question_names_a_relation(tuned: Path) -> None:
    pipeline = offline_pipeline(Parts(GRAPH), weights=Planner(str(tuned), prompt=PROMPT))
    assert [item.name for item in ask(pipeline, "foo Alien", "Alien").items] == ["Scott"]
    assert [item.name for item in ask(pipeline, "bar Blade", "Blade").items] == ["Ford"]
    assert {item.name for item in ask(pipeline, "baz Scott", "Scott").items} == {"Weaver", "Ford"}


def test_a_mix_adds_the_likelihood_to_the_scores_of_the_first_paths(tuned: Path) -> None:
    plans = ["Alien -> directed_by", "Alien -> starred", "Alien -> starred -> ^starred"]
    prior = np.array([1.0, 2.0, -9.0], np.float32)
    alone = Planner(str(tuned), prompt=PROMPT).mix("foo Alien", plans, prior)
    assert int(alone.argmax()) == 0
    mixed = Planner(str(tuned), share=2.0, shown=2, prompt=PROMPT).mix("foo Alien", plans, prior)
    assert mixed[0] - mixed[1] == pytest.approx(alone[0] - alone[1] - 2.0, abs=0.5)  # over the tokens of two plans
    assert mixed[2] < min(mixed[:2])
    with pytest.raises(ConfigError, match="share=-1"):
        Planner(str(tuned), share=-1)


def test_scores_of_a_mix_have_the_unit_of_its_larger_part(tuned: Path) -> None:
    units = []
    for share in (0.0, 0.5, 16.0):
        planner = Planner(str(tuned), share=share, prompt=PROMPT)
        units.append(build_parser_and_ranker(GRAPH, Parts(GRAPH).embedder, Parts(GRAPH).entities, planner)[1].unit)
    assert units == [1.0, 1.0, 16.0]


def test_graphraft_answers_with_a_fine_tuned_model_and_no_other(tuned: Path) -> None:
    pipeline = graphraft_pipeline(Parts(GRAPH), ranker(tuned), answerer="ranking")
    answer = ask(pipeline, "foo Alien", "Alien")
    assert [item.name for item in answer.items] == ["Scott"]
    first = answer.rounds[0].evidence[0]
    assert 'MATCH (x1 {name: "Alien"})-[:directed_by]->(x2)' in first.query  # type: ignore[attr-defined]


def test_a_second_model_chooses_among_the_results(tuned: Path, tmp_path: Path) -> None:
    shown = {"starred": ["Weaver"], "directed_by": ["Scott"], "directed_by -> directed_by": ["Blade"]}
    right, *wrong = (check_prompt("foo Alien", f"Alien -> {path}", names, 1) for path, names in shown.items())
    pairs = [Pair(right, "yes", tuple(wrong))] * 16
    settings = SftSettings(
        rank=0, epochs=10, batch=8, accumulate=1, rate=1e-2, held_out=0.1, prompt="{question}", device="cpu"
    )
    made = small_model(pairs, ["yes no", *wrong], width=48, heads=2)
    assert fine_tune(pairs, tmp_path / "checker", settings, made).loss_after < 0.01  # of three: 1.1 by chance
    pipeline = graphraft_pipeline(Parts(GRAPH), ranker(tuned), answerer=str(tmp_path / "checker"))
    both = graphraft_pipeline(Parts(GRAPH), ranker(tuned), answerer="ranking")
    assert [item.name for item in ask(both, "foo Alien", "Alien").items] == ["Scott"]
    assert [item.name for item in ask(pipeline, "foo Alien", "Alien").items] == ["Weaver"]
    assert {len(ask(made, "foo Alien", "Alien").rounds[0].evidence) for made in (both, pipeline)} == {2}
    with pytest.raises(ConfigError, match="answerer=nowhere is not known"):
        graphraft_pipeline(Parts(GRAPH), ranker(tuned), answerer="nowhere")
    with pytest.raises(ConfigError, match="ranking=nowhere is not known"):
        graphraft_pipeline(Parts(GRAPH), "nowhere")


def test_every_candidate_has_a_plan_of_its_own() -> None:
    conditions = Conditions.of("how many films of 1990 are the first ones")
    found = CandidateFinder(GRAPH, Templates.of(3)).find([EntityId("Alien"), EntityId("Ford")], conditions=conditions)
    assert len({one.plan for one in found.items}) == len({one.query for one in found.items}) == len(found.items)
    plans = {one.plan: one for one in found.items}
    assert plans["Alien -> directed_by"].metapath == ("directed_by",)
    assert "Alien -> directed_by & Ford -> ^starred -> directed_by" in plans


def test_the_outline_of_a_query_holds_its_names_and_relations() -> None:
    query = (
        'MATCH (x1:Film {name: "Alien", id: "a"})-[:directed_by]->(x2)<-[:`film.made by`]-(x3) WHERE x3 <> x1 RETURN x3'
    )
    assert outline(query) == "Alien -> directed_by -> film.made by"
