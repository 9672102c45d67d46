"""Tests of `byokg.pipelines.byokg`, over embedded engines with scripted chat models."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from byokg.errors import ConfigError
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.graph.engines.oxigraph import OxigraphStore, build_oxigraph
from byokg.graph.store import QueryableGraph
from byokg.linking.parts import Parts
from byokg.llm.chat_models import Rule, ScriptedChatModel
from byokg.llm.model import LanguageModel
from byokg.pipelines.byokg import DirectQuery, QueryWriter, direct_query_pipeline, unite
from byokg.pipelines.context import CitationChecker
from byokg.types import (
    Answer,
    AnswerItem,
    EdgeCell,
    EntityId,
    Evidence,
    Feedback,
    Linked,
    LinkedEntity,
    Mention,
    NodeCell,
    PathCell,
    Question,
    RowsEvidence,
)
from tests.graph.published import comparable, dev_questions, gold_shown, movies, needed, northwind
from tests.linking.graphs import EMBEDDER, countries

QUESTION = "Which languages are official in Peru?"
LANGUAGES = "MATCH (c:Country {name: 'Peru'})-[:official_language]->(l) RETURN l"

ENTITIES, QUERIES, DIRECT, ROWS = (
    "Entity extraction",
    "You write openCypher queries",
    "You answer questions from what you know",
    "Each fact begins",
)
"""What the prompts of the four calls contain."""


@pytest.fixture(scope="module")
def arcade(arcade_process: ArcadeStore) -> ArcadeStore:
    arcade_process.replace(countries())
    return arcade_process


@pytest.fixture(scope="module")
def oxigraph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OxigraphStore]:
    pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'byokg[sparql]'")
    with build_oxigraph(countries(), tmp_path_factory.mktemp("direct") / "store") as store:
        yield store


def pipeline(
    store: QueryableGraph,
    query: str = LANGUAGES,
    entities: str = "Peru",
    direct: Sequence[str] = ("Spanish", "Aymara"),
    rows: str = "",
    correction: str = "",
    **settings: Any,
) -> DirectQuery:
    """Script each of the calls."""
    rules = (
        Rule(f"<entities>{entities}</entities>", contains=(ENTITIES,)),
        Rule(f"<opencypher>{correction}</opencypher>", contains=("You correct openCypher queries",)),
        Rule(f"<opencypher>{query}</opencypher><sparql>{query}</sparql>", contains=("queries that answer questions",)),
        Rule(f"<answers>{rows}</answers>", contains=(ROWS,)),
        Rule("<answers>{}</answers>".format("\n".join(direct)), contains=(DIRECT,)),
    )
    return scripted(store, rules, **settings)


def scripted(store: QueryableGraph, rules: tuple[Rule, ...], **settings: Any) -> DirectQuery:
    SEEN.clear()
    return direct_query_pipeline(Parts(store, LanguageModel(Prompts(rules=rules)), EMBEDDER), **settings)


class Prompts(ScriptedChatModel):
    """A scripted model that remembers the prompts it saw."""

    def _rule(self, prompt: str) -> Rule:
        SEEN.append(prompt)
        return super()._rule(prompt)


SEEN: list[str] = []


def names(answer: Answer) -> list[str]:
    return [item.name for item in answer.items]


class TestAnswers:
    def test_rows_join_what_the_model_answers_by_itself(self, arcade: ArcadeStore) -> None:
        answer = pipeline(arcade).run(Question("ask", QUESTION))
        assert [(item.name, item.id, item.citations) for item in answer.items] == [
            ("Spanish", "spa", ("e1",)),
            ("Aymara", None, ()),
            ("Quechua", "que", ("e1",)),
        ]
        assert [item.score for item in answer.items] == [1, 1 / 2, 1 / 3]
        assert answer.columns == ("l",)
        cells = [cell for row in answer.rows for cell in row.cells]
        assert {cell.id for cell in cells if isinstance(cell, NodeCell)} == {"spa", "que"}
        assert len(SEEN) == 3

    def test_or_the_model_answers_from_the_rows(self, arcade: ArcadeStore) -> None:
        answer = pipeline(arcade, rows="Quechua", answers="rows").run(Question("ask", QUESTION))
        assert names(answer) == ["Quechua"]
        assert len(SEEN) == 3 and not any(DIRECT in prompt for prompt in SEEN)

    def test_answers_made_otherwise_are_refused_by_name(self, arcade: ArcadeStore) -> None:
        with pytest.raises(ConfigError, match="answers=both"):
            pipeline(arcade, answers="both")

    def test_a_store_without_queries_is_refused_by_name(self) -> None:
        with pytest.raises(ConfigError, match="graph=arcadedb"):
            direct_query_pipeline(Parts(countries(), LanguageModel(ScriptedChatModel(replies=("x",)))))


class TestTheQuery:
    def test_its_prompt_has_schema_and_linked_entities(self, arcade: ArcadeStore) -> None:
        pipeline(arcade, entities="Perru\n1990").run(Question("ask", QUESTION))
        (prompt,) = [seen for seen in SEEN if QUERIES in seen]
        assert 'name "Peru", type Country, id "pe"\nyear 1990' in prompt
        assert "(:Country)-[:official_language]->(:Language)" in prompt

    def test_names_are_written_as_queries_write_them(self) -> None:
        graph = ColumnarGraph.from_triples([('the "Rock"\nIsland', "in", "Spain")])
        asked = Prompts(replies=("<opencypher></opencypher>",))
        writer = QueryWriter(Parts(graph, LanguageModel(asked)), "cypher")
        id = EntityId('the "Rock"\nIsland')
        writer.write(Question("q", "Where?"), Linked((LinkedEntity(id, id, Mention(id), "exact", 1.0),)))
        assert r'name "the \"Rock\"\nIsland", id "the \"Rock\"\nIsland"' in SEEN[-1]

    def test_of_rdf_the_entities_are_iris(self, oxigraph: OxigraphStore) -> None:
        text = "SELECT ?l WHERE { <urn:byokg:node:pe> kg:official_language ?l }"
        answer = pipeline(oxigraph, query=text).run(Question("ask", QUESTION))
        assert names(answer) == ["Spanish", "Aymara", "Quechua"]
        (prompt,) = [seen for seen in SEEN if "You write SPARQL queries" in seen]
        assert 'name "Peru", type Country, id <urn:byokg:node:pe>' in prompt

    def test_where_nothing_is_linked_it_is_written_all_the_same(self, arcade: ArcadeStore) -> None:
        text = "MATCH (c:Country) RETURN count(c) AS n"
        assert names(
            pipeline(arcade, query=text, entities="").run(Question("ask", "How many countries are there?"))
        ) == ["Spanish", "Aymara", "5"]
        assert any("(none was found)" in seen for seen in SEEN)

    @pytest.mark.parametrize(
        "query", ["", "MATCH (c:Contry) RETURN c", "MATCH (c) DETACH DELETE c", "I am sorry, but I know no Cypher."]
    )
    def test_a_bad_one_leaves_what_the_model_knows(self, arcade: ArcadeStore, query: str) -> None:
        answer = pipeline(arcade, query=query).run(Question("ask", QUESTION))
        assert names(answer) == ["Spanish", "Aymara"] and not any(item.grounded for item in answer.items)
        (first,) = answer.rounds
        assert all(isinstance(item, Feedback) for item in first.evidence) and len(first.evidence) == bool(query)

    def test_it_may_be_corrected(self, arcade: ArcadeStore) -> None:
        answer = pipeline(
            arcade,
            query="MATCH (c:Contry {name: 'Peru'})-[:official_language]->(l) RETURN l",
            correction=LANGUAGES,
            repairs=1,
        ).run(Question("ask", QUESTION))
        assert names(answer) == ["Spanish", "Aymara", "Quechua"]


def rows(*cells: object) -> RowsEvidence:
    return RowsEvidence("query", 1.0, "cypher", "…", ("x",), tuple((cell,) for cell in cells), id="e1")  # type: ignore[misc]


def node(id: str, name: str) -> NodeCell:
    return NodeCell(EntityId(id), name)


PERU = EntityId("pe")


class TestUniting:
    def united(self, direct: Sequence[AnswerItem], *evidence: Evidence) -> list[AnswerItem]:
        return unite(direct, evidence, CitationChecker(countries(), evidence))

    def test_every_value_in_a_row_may_be_an_answer_and_null_is_none(self) -> None:
        path = PathCell((node("pe", "Peru"), node("lima", "Lima")), (EdgeCell(PERU, "capital", EntityId("lima")),))
        found = self.united([], rows(node("spa", "Spanish"), 3, 2.5, True, None, "", ["a", None, {"b": "c"}], path))
        assert [item.name for item in found] == ["Spanish", "3", "2.5", "true", "a", "c", "Peru", "Lima"]
        assert [item.id for item in found] == ["spa", *[None] * 5, "pe", "lima"]
        assert {item.citations for item in found} == {("e1",)}

    def test_of_rows_with_a_column_for_answers_only_that_one_counts(self) -> None:
        table = RowsEvidence("query", 1.0, "cypher", "…", ("of", "answer"), (("Peru", "Lima"), ("Chad", None)), id="e1")
        assert [item.name for item in self.united([], table)] == ["Lima"]

    def test_what_both_have_comes_once_in_the_models_words(self) -> None:
        direct = [AnswerItem("the  SPANISH", None, 1.0)]
        (item,) = self.united(direct, rows(node("spa", "Spanish"), "Spanish"))
        assert (item.name, item.id, item.citations) == ("the  SPANISH", "spa", ("e1",))

    def test_a_date_is_held_by_a_row_that_means_the_same(self) -> None:
        first, second = self.united([AnswerItem("12 May 1990", None, 1.0)], rows("1990-05-12"))
        assert (first.name, first.citations) == ("12 May 1990", ("e1",)) and second.name == "1990-05-12"

    def test_without_rows_the_models_answers_stay(self) -> None:
        direct = [AnswerItem("Spanish", None, 1.0)]
        assert self.united(direct, Feedback("query", 0.0, "…", "it returned no rows", id="e1")) == direct


def writes(questions: Sequence[Mapping[str, Any]], change: Callable[[str], str]) -> tuple[Rule, ...]:
    """Script a model that writes each question's gold query with a change, and knows nothing else."""
    return (
        Rule("<entities></entities>", contains=(ENTITIES,)),
        Rule("<answers></answers>", contains=(DIRECT,)),
        *(
            Rule(
                f"<opencypher>{change(one['cypher'])}</opencypher>",
                matches=re.compile(re.escape(f"# Question\n\n{one['question']}") + r"\Z"),
            )
            for one in questions
        ),
    )


@pytest.mark.parametrize(("name", "load"), [("northwind", northwind), ("movies", movies)])
def test_a_model_that_writes_the_gold_queries_of_published_questions_gets_their_answers(
    arcade: ArcadeStore, name: str, load: Callable[[Path], ColumnarGraph]
) -> None:
    folder = needed(name)
    graph = load(folder)
    asked = [one for one in dev_questions(folder) if comparable(one) and one["gold_rows"]][:40]
    related = [one for one in asked if "-[:" in one["cypher"]]
    before = arcade.graph
    arcade.replace(graph)
    try:
        good = scripted(arcade, writes(asked, str))
        answers = [names(good.run(Question("ask", one["question"]))) for one in asked]
        bad = scripted(arcade, writes(related, lambda query: query.replace("-[:", "-[:NO_")))
        told = [bad.run(Question("ask", one["question"])).rounds[0].evidence for one in related]
    finally:
        arcade.replace(before)
    for one, answer in zip(asked, answers, strict=True):
        gold = {gold_shown(value) for row in one["gold_rows"] for value in row if isinstance(value, str)}
        assert gold - {"None", "an edge"} <= set(map(gold_shown, answer)), one["cypher"]
    assert len(asked) == 40 and len(related) > 10
    assert all(any(isinstance(one, Feedback) and "NO_" in one.problem for one in found) for found in told)
