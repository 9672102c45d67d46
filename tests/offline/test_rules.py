"""Hand-made rules: each fires on its example, can be left out, and stands in the trace."""

from __future__ import annotations

import re

import pytest

from byokg.api import KnowledgeGraph
from byokg.errors import ConfigError
from byokg.linking.parts import Parts
from byokg.offline import lexicon
from byokg.offline.lexicon import all_rules, cached, leave_out, record, rule
from byokg.offline.parse_constraints import expected_literal, parse_path_question
from byokg.offline.pipeline import offline_pipeline
from byokg.types import Mention, Question

RULES = all_rules()
OF_PARSING = [name for name, one in RULES.items() if ".parse" in one.place]
RELATIVES = {"parent", "father", "mother", "child", "son", "daughter", "spouse"}
"""Relatives that the graph of the examples has relations for."""


def fired(example: str) -> set[str]:
    """Parse an example, and return the rules that fire; mentions stand in braces."""
    parts = re.split(r"\{(.*?)\}", example)
    text, mentions = "", []
    for number, part in enumerate(parts):
        if number % 2:
            mentions.append(Mention(part, len(text), len(text) + len(part)))
        text += part
    with record() as found:
        parse_path_question(text, tuple(mentions), RELATIVES.__contains__)
        expected_literal(text, mentions)
    return found


@pytest.mark.parametrize("name", OF_PARSING)
def test_a_rule_of_parsing_fires_on_its_example(name: str) -> None:
    assert name in fired(RULES[name].example) or name == "type of a mention"  # which also needs the graph's types


def test_no_rule_fires_that_is_left_out() -> None:
    for name in OF_PARSING:
        with leave_out([name]):
            assert name not in fired(RULES[name].example)


def test_a_rule_has_one_sentence_and_an_example() -> None:
    assert [one.name for one in RULES.values() if not (one.effect.endswith((".", ":")) and one.example)] == []


class TestLeftOut:
    @pytest.fixture
    def graph(self) -> KnowledgeGraph:
        borders = [("France", "borders", "Spain"), ("France", "borders", "Italy"), ("Spain", "borders", "Portugal")]
        return KnowledgeGraph.from_triples([*borders, ("France", "capital", "Paris"), ("Spain", "capital", "Madrid")])

    def test_a_pipeline_records_the_rules_that_fired(self, graph: KnowledgeGraph) -> None:
        answer = offline_pipeline(Parts(graph.store)).run(Question("q", "How many countries border France?"))
        assert [item.name for item in answer.items] == ["2"]
        assert "count" in answer.rules

    def test_a_pipeline_does_without_some(self, graph: KnowledgeGraph) -> None:
        pipeline = offline_pipeline(Parts(graph.store), without=["count", "literal answer"])
        answer = pipeline.run(Question("q", "How many countries border France?"))
        assert {item.name for item in answer.items} == {"Spain", "Italy"}
        assert "count" not in answer.rules

    def test_an_unknown_rule_is_refused_with_the_nearest(self, graph: KnowledgeGraph) -> None:
        with pytest.raises(ConfigError, match="no rule 'counts'; did you mean 'count'"):
            offline_pipeline(Parts(graph.store), without=["counts"])


def test_a_cache_keeps_results_with_and_without_a_rule_apart_and_their_rules_fire_again() -> None:
    @rule("test of a cache", "?", lambda number: number)
    def twice(number: int) -> int:
        """Double a number."""
        return 2 * number

    kept = cached(8)(twice)
    for _ in range(2):
        with record() as found:
            assert kept(3) == 6
        assert found == {"test of a cache"}
        with leave_out(["test of a cache"]), record() as found:
            assert kept(3) == 3
        assert found == set()
    del lexicon.RULES["test of a cache"]
