"""Tests of `byokg.retrieval.langchain`."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableParallel, RunnablePassthrough

from byokg.errors import LlmInvalidRequest
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.linking.entities import EntityLinker
from byokg.linking.llm_linker import LlmLinker
from byokg.linking.parts import Parts
from byokg.llm.chat_models import Rule, ScriptedChatModel
from byokg.llm.model import LanguageModel
from byokg.retrieval.langchain import GraphRetriever, documents, entity_linker, kg_linker, linking, retrieving
from byokg.retrieval.path import PathRetriever
from byokg.retrieval.text import RerankRetriever, TextRetriever
from byokg.types import (
    EntityId,
    Evidence,
    Feedback,
    Node,
    NodeEvidence,
    PathEvidence,
    Request,
    RowsEvidence,
    Triple,
    TripleEvidence,
)
from tests.index.word_axes import WordAxes
from tests.linking.graphs import EMBEDDER, countries, marriages

PERU, CHILE = "What is the capital of Peru?", "What is the capital of Chile?"


def linker_of(graph: ColumnarGraph) -> LlmLinker:
    """Play a model that finds the entity of either question, and its path."""
    rules = tuple(
        Rule(f"<entities>\n{name}\n</entities>\n<paths>\ncapital\n</paths>", contains=(f"capital of {name}?",))
        for name in ("Peru", "Chile")
    )
    model = LanguageModel(ScriptedChatModel(rules=rules))
    return LlmLinker(Parts(graph, model, EMBEDDER))


@pytest.fixture
def graph() -> ColumnarGraph:
    return countries()


@pytest.fixture
def linker(graph: ColumnarGraph) -> LlmLinker:
    return linker_of(graph)


@pytest.fixture
def entities(graph: ColumnarGraph) -> EntityLinker:
    return EntityLinker(graph)


class TestGraphRetriever:
    def test_a_question_becomes_documents(self, graph: ColumnarGraph) -> None:
        retriever = GraphRetriever(retriever=TextRetriever(Parts(graph, embedder=EMBEDDER), k=1), store=graph)
        (document,) = retriever.invoke(PERU)
        assert document.page_content == "Peru → capital → Lima"
        assert document.metadata == {
            "retriever": "text",
            "score": pytest.approx(document.metadata["score"]),
            "nodes": ["pe", "lima"],
            "relations": ["capital"],
            "edges": [0],
        }

    def test_what_needs_entities_is_given_linkers(
        self, graph: ColumnarGraph, linker: LlmLinker, entities: EntityLinker
    ) -> None:
        rerank = RerankRetriever(Parts(graph, embedder=EMBEDDER), k=1)
        retriever = GraphRetriever(retriever=rerank, store=graph, linker=linker, entities=entities)
        assert [document.page_content for document in retriever.invoke(CHILE)] == ["Chile → capital → Santiago"]

    def test_it_runs_in_batches_and_beside_an_event_loop(self, graph: ColumnarGraph) -> None:
        retriever = GraphRetriever(retriever=TextRetriever(Parts(graph, embedder=EMBEDDER), k=1), store=graph)
        expected = [retriever.invoke(PERU), retriever.invoke(CHILE)]
        assert retriever.batch([PERU, CHILE]) == expected
        assert asyncio.run(retriever.abatch([PERU, CHILE])) == expected
        assert asyncio.run(retriever.ainvoke(PERU)) == expected[0]

    def test_it_stands_in_a_chain(self, graph: ColumnarGraph) -> None:
        def facts(found: list[Document]) -> str:
            return "\n".join(document.page_content for document in found)

        retriever = GraphRetriever(retriever=TextRetriever(Parts(graph, embedder=EMBEDDER), k=1), store=graph)
        model = ScriptedChatModel(
            rules=(
                Rule("Lima", contains=("Peru → capital → Lima", PERU)),
                Rule("Santiago", contains=("Chile → capital → Santiago", CHILE)),
            )
        )
        prompt = ChatPromptTemplate.from_template("{facts}\n\n{question}")
        chain = {"facts": retriever | facts, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
        assert chain.invoke(PERU) == "Lima"
        assert chain.batch([PERU, CHILE]) == ["Lima", "Santiago"]
        assert asyncio.run(chain.ainvoke(CHILE)) == "Santiago"

    def test_an_error_comes_through_as_it_is(
        self, graph: ColumnarGraph, linker: LlmLinker, entities: EntityLinker
    ) -> None:
        paths = PathRetriever(Parts(graph))
        retriever = GraphRetriever(retriever=paths, store=graph, linker=linker, entities=entities)
        with pytest.raises(LlmInvalidRequest):
            retriever.invoke("A question that the script does not know")


class TestLinkers:
    def test_a_kg_linker_and_an_entity_linker_follow_each_other(
        self, linker: LlmLinker, entities: EntityLinker
    ) -> None:
        artifacts = kg_linker(linker).invoke(PERU)
        assert [mention.text for mention in artifacts.mentions] == ["Peru"]
        chain = kg_linker(linker) | entity_linker(entities)
        assert [entity.id for entity in chain.invoke(PERU).entities] == ["pe"]
        assert [[entity.id for entity in linked.entities] for linked in chain.batch([PERU, CHILE])] == [["pe"], ["cl"]]
        assert [entity.id for entity in asyncio.run(chain.ainvoke(CHILE)).entities] == ["cl"]

    def test_an_entity_linker_takes_names_as_well(self, entities: EntityLinker) -> None:
        step = entity_linker(entities)
        assert [entity.id for entity in step.invoke("Lima").entities] == ["lima"]
        assert [entity.id for entity in step.invoke(["Lima", "Chile"]).entities] == ["lima", "cl"]

    def test_several_retrievers_share_what_was_linked(
        self, graph: ColumnarGraph, linker: LlmLinker, entities: EntityLinker
    ) -> None:
        def score(found: list[Evidence]) -> list[str]:
            return [document.page_content for document in documents(graph, found)]

        chain = linking(linker, entities) | RunnableParallel(
            text=retrieving(TextRetriever(Parts(graph, embedder=EMBEDDER), k=1)) | score,
            rerank=retrieving(RerankRetriever(Parts(graph, embedder=EMBEDDER), k=1)) | score,
        )
        assert chain.invoke(PERU) == {"text": ["Peru → capital → Lima"], "rerank": ["Peru → capital → Lima"]}
        assert asyncio.run(chain.ainvoke(CHILE))["rerank"] == ["Chile → capital → Santiago"]

    def test_linking_gives_what_a_retriever_is_asked(self, linker: LlmLinker, entities: EntityLinker) -> None:
        request = linking(linker, entities).invoke(PERU)
        assert isinstance(request, Request)
        assert (request.question.text, [entity.id for entity in request.linked.entities]) == (PERU, ["pe"])


class TestDocuments:
    def test_each_kind_of_evidence_says_where_it_is_from(self) -> None:
        ann, bob, cid = (EntityId(name) for name in ("Ann", "Bob", "Cid"))
        found = documents(
            marriages(),
            [
                TripleEvidence("text", 1.5, Triple(ann, "people.person.parents", EntityId("Eva"), edge=0)),
                PathEvidence("path", 1.0, ann, ("^knows",), (bob, cid), ()),
                NodeEvidence("bfsql", 0.5, Node(bob, "Bob", "Person")),
                RowsEvidence("query", 1.0, "cypher", "MATCH (n) RETURN 1 AS one", ("one",), ((1,),)),
                Feedback("query", 0.0, "MATCH (n", "it ends too early"),
            ],
        )
        assert [document.page_content.splitlines()[0] for document in found] == [
            "Ann → people.person.parents → Eva",
            "Ann ← knows ← Bob | Cid",
            "Bob (Person)",
            "MATCH (n) RETURN 1 AS one",
        ]
        assert [document.metadata["nodes"] for document in found] == [
            ["Ann", "Eva"],
            ["Ann", "Bob", "Cid"],
            ["Bob"],
            [],
        ]
        assert found[1].metadata["relations"] == ["^knows"]
        assert found[3].metadata["query"] == "MATCH (n) RETURN 1 AS one"

    def test_a_statement_through_a_mediator_is_shown_whole(self) -> None:
        graph = marriages()
        words = WordAxes("ann bob person spouse marriage")
        retriever = GraphRetriever(retriever=TextRetriever(Parts(graph, embedder=words), k=1, through=1), store=graph)
        (document,) = retriever.invoke("Ann spouse")
        assert document.page_content == "Ann → people.person.spouse_s / people.marriage.spouse → Bob"
        assert document.metadata["nodes"] == ["Ann", "Bob", "m.0m1"]
        assert len(document.metadata["edges"]) == 2
