"""Tests of `byokg.api`: ten lines in a notebook."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableLambda

from byokg import Answer, Byokg, KnowledgeGraph
from byokg.errors import ConfigError, LlmInvalidRequest, MissingExtra
from byokg.evaluation.metrics import QuestionScores, aggregate, score
from byokg.llm.chat_models import Rule, ScriptedChatModel
from byokg.llm.model import LanguageModel
from byokg.pipelines.byokg import Rounds
from byokg.pipelines.follow_up import completions
from byokg.pipelines.instrumentation import StreamEvent
from byokg.text.tabular import TableView, Tabular
from byokg.types import Question

FILMS = [
    ("Heat", "directed_by", "Michael Mann"),
    ("Heat", "starred_actors", "Al Pacino"),
    ("Ali", "directed_by", "Michael Mann"),
]

RULES = (
    Rule("<selected></selected>", contains=("Select the relations to follow",)),
    Rule("<answers>Michael Mann [e1]</answers>", contains=("Each fact begins",)),
    Rule("<entities>FINISH</entities>", contains=("Next entities",)),
    Rule("<entities>Heat</entities><paths>directed_by</paths>", contains=("Entity extraction",)),
)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_chat_model_and_a_graph_are_all_it_takes(wrapped: bool) -> None:
    chat_model = ScriptedChatModel(rules=RULES)
    kg = KnowledgeGraph.from_triples(FILMS)
    answer = Byokg(kg, llm=LanguageModel(chat_model) if wrapped else chat_model).ask("Who directed Heat?")
    assert [(item.name, item.id, item.grounded) for item in answer.items] == [("Michael Mann", "Michael Mann", True)]


def test_without_a_model_it_answers_offline() -> None:
    kg = KnowledgeGraph.from_triples(FILMS)
    assert [item.name for item in Byokg(kg).ask("Who directed Heat?").items] == ["Michael Mann"]
    assert Byokg(kg.store, max_hops=1).run(Question("q", "Who directed Heat?")).question_id == "q"


def test_settings_are_those_of_the_pipeline() -> None:
    kg = KnowledgeGraph.from_triples(FILMS)
    assert Byokg(kg, llm=ScriptedChatModel(rules=RULES), rounds=Rounds(1)).pipeline.stages[0].rounds == 1
    with pytest.raises(ConfigError, match="rounds=0"):
        Byokg(kg, llm=ScriptedChatModel(rules=RULES), rounds=Rounds(0))


def test_what_is_no_setting_and_no_model_is_refused_by_name() -> None:
    kg = KnowledgeGraph.from_triples(FILMS)
    with pytest.raises(ConfigError, match="no setting 'round'; there is retrievers, rounds"):
        Byokg(kg, llm=ScriptedChatModel(rules=RULES), round=1)
    with pytest.raises(ConfigError, match="no setting 'rounds' without a language model; there is max_hops"):
        Byokg(kg, rounds=1)
    with pytest.raises(ConfigError, match="llm='gpt-5' is a name; pass a LangChain chat model"):
        Byokg(kg, llm="gpt-5")  # type: ignore[arg-type]


class TestNotebook:
    """What a cell shows of a graph, its schema, an answer, paths and metrics."""

    @pytest.fixture
    def kg(self) -> KnowledgeGraph:
        return KnowledgeGraph.from_triples([*FILMS, ("<b>&", "directed_by", "Michael Mann")])

    def test_each_has_one_line_html_with_escaped_texts_and_a_data_frame(self, kg: KnowledgeGraph) -> None:
        answer = Byokg(kg).ask("Who directed Heat?")
        found = kg.paths("PATHS START ?x = <Michael Mann> END ?y VIA ^:directed_by")
        metrics = aggregate([QuestionScores(score(["Heat"], ["Heat"]), type="x<y")])
        assert repr(kg).startswith("KnowledgeGraph(<ColumnarGraph ")
        assert repr(kg.schema()).startswith("<Schema 2 relations")
        assert repr(answer) == "<Answer ask: Michael Mann>"
        assert repr(found).startswith("<PathResult Query returned 3 paths in ")
        assert repr(metrics) == "<Metrics 1 questions, 0 failed: hit 100.0 %, hits@1 100.0 %, f1 100.0 %>"
        assert "<td>directed_by</td><td>3</td>" in kg._repr_html_()
        assert "<td>Michael Mann</td>" in answer._repr_html_()
        assert "&lt;b&gt;&amp;" in found._repr_html_() and "<b>" not in found._repr_html_()
        assert "x&lt;y" in metrics._repr_html_()

    def test_all_rows_are_in_a_data_frame_and_the_first_in_html(self, kg: KnowledgeGraph) -> None:
        pytest.importorskip("pandas", reason="pandas is not installed: pip install 'byokg[pandas]'")
        frame = kg.to_pandas()
        assert frame["relation"].tolist() == ["directed_by", "starred_actors"] and frame["edges"].tolist() == [3, 1]
        assert Byokg(kg).ask("Who directed Heat?").to_pandas()["answer"].tolist() == ["Michael Mann"]

        class Long(Tabular):
            def _table(self) -> TableView:
                return TableView("30", ["n"], ([number] for number in range(30)))

        assert len(Long().to_pandas()) == 30
        assert Long()._repr_html_().count("<td>") == 20 and "the first 20 rows" in Long()._repr_html_()

    def test_without_pandas_the_error_names_the_extra(
        self, kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(MissingExtra, match=r"pip install 'byokg\[pandas\]'"):
            kg.to_pandas()


def collected(events: AsyncIterator[Any]) -> list[Any]:
    async def collect() -> list[Any]:
        return [event async for event in events]

    return asyncio.run(collect())


class TestStreams:
    def test_stages_and_tokens_come_before_the_answer(self) -> None:
        byokg = Byokg(KnowledgeGraph.from_triples(FILMS), llm=ScriptedChatModel(rules=RULES))
        *begun_with, answer = byokg.stream("Who directed Heat?")
        events = [event for event in begun_with if isinstance(event, StreamEvent)]
        assert isinstance(answer, Answer) and answer == byokg.ask("Who directed Heat?")
        begun = [event.name for event in events if event.kind == "stage"]
        assert begun[:2] == ["propose", "link"] and begun[-1] == "answer"
        assert [event.text for event in events if event.kind == "token"][-1] == "<answers>Michael Mann [e1]</answers>"
        linked = next(event for event in events if (event.kind, event.name) == ("result", "link"))
        assert linked.results["nodes"] == ["Heat"]
        assert [type(event) for event in collected(byokg.astream("Who directed Heat?"))] == [*map(type, events), Answer]

    def test_a_model_that_streams_is_read_word_by_word_and_the_answer_is_the_same(self) -> None:
        from byokg.linking.parts import Parts
        from byokg.pipelines.byokg import Direct
        from byokg.pipelines.instrumentation import stream

        def direct() -> Direct:
            replies: Iterator[AIMessage] = iter([AIMessage("<answers>Michael Mann</answers>")])
            return Direct(Parts(None, LanguageModel(GenericFakeChatModel(messages=replies), "fake", "fake", {})))

        *events, answer = stream(lambda hook: direct().run(Question("q", "Who directed Heat?")))
        words = [event.text for event in events if isinstance(event, StreamEvent)]
        assert words == ["<answers>Michael", " ", "Mann</answers>"]
        assert answer == direct().run(Question("q", "Who directed Heat?"))

    def test_an_error_of_the_pipeline_is_raised_by_its_stream(self) -> None:
        byokg = Byokg(KnowledgeGraph.from_triples(FILMS), llm=ScriptedChatModel(rules=RULES[1:2]))
        with pytest.raises(LlmInvalidRequest):
            list(byokg.stream("Who directed Heat?"))
        with pytest.raises(LlmInvalidRequest):
            asyncio.run(byokg.ainvoke("Who directed Heat?"))

    def test_questions_run_side_by_side_beside_the_event_loop(self) -> None:
        byokg = Byokg(KnowledgeGraph.from_triples(FILMS))

        async def both() -> list[Answer]:
            return await asyncio.gather(*(byokg.ainvoke(f"Who directed {film}?") for film in ("Heat", "Ali")))

        assert [answer.items[0].name for answer in asyncio.run(both())] == ["Michael Mann"] * 2


class TestRunnable:
    def test_it_is_a_step_of_a_chain(self) -> None:
        byokg = Byokg(KnowledgeGraph.from_triples(FILMS))
        assert isinstance(byokg.runnable, Runnable)
        chain = {"question": lambda film: f"Who directed {film}?"} | byokg | (lambda answer: answer.items[0].name)
        assert chain.invoke("Heat") == "Michael Mann"
        assert chain.batch(["Heat", "Ali"]) == ["Michael Mann"] * 2
        assert asyncio.run(chain.ainvoke("Ali")) == "Michael Mann"
        assert collected(chain.astream("Heat")) == ["Michael Mann"]

    def test_it_stands_behind_any_runnable(self) -> None:
        byokg = Byokg(KnowledgeGraph.from_triples(FILMS))
        question: Runnable[str, str] = RunnableLambda(lambda film: f"Who directed {film}?")
        for chain in (question | byokg, question | {"answer": byokg} | (lambda found: found["answer"])):
            assert chain.invoke("Heat").items[0].name == "Michael Mann"
            assert asyncio.run(chain.ainvoke("Ali")).items[0].name == "Michael Mann"

    def test_callbacks_of_a_config_meet_every_way_of_asking(self) -> None:
        class Seen(BaseCallbackHandler):
            def on_chain_start(self, *_: object, **run: Any) -> None:
                seen.append((run["name"], *run["tags"]))

            def on_chain_end(self, outputs: Any, **_: object) -> None:
                seen.append(outputs.items[0].name)

        seen: list[object] = []
        byokg, question = Byokg(KnowledgeGraph.from_triples(FILMS)), "Who directed Heat?"
        config: Any = {"callbacks": [Seen()], "tags": ["films"]}
        answers = [
            byokg.invoke(question, config),
            asyncio.run(byokg.ainvoke(question, config)),
            list(byokg.stream(question, config))[-1],
            collected(byokg.astream(question, config))[-1],
        ]
        assert [answer.items[0].name for answer in answers] == ["Michael Mann"] * 4
        assert seen == [("Byokg", "films"), "Michael Mann"] * 4

    def test_it_has_the_other_methods_of_a_runnable(self) -> None:
        byokg, question = Byokg(KnowledgeGraph.from_triples(FILMS)), "Who directed Heat?"
        [answer] = asyncio.run(byokg.abatch([question]))
        for one in (answer, byokg.with_retry().invoke(question), byokg.pipe(lambda found: found).invoke(question)):
            assert one.items[0].name == "Michael Mann"
        with pytest.raises(AttributeError, match="'Byokg' object has no attribute 'ivnoke'"):
            byokg.ivnoke(question)

    def test_an_input_without_a_question_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="an input needs a question, and has film"):
            Byokg(KnowledgeGraph.from_triples(FILMS)).invoke({"film": "Heat"})

    def test_a_batch_keeps_the_order_and_may_return_errors(self, capsys: pytest.CaptureFixture[str]) -> None:
        byokg = Byokg(KnowledgeGraph.from_triples(FILMS))
        answers = byokg.batch(["Who directed Heat?", {}], return_exceptions=True, progress=True)
        assert answers[0].items[0].name == "Michael Mann" and isinstance(answers[1], ConfigError)
        assert "questions" in capsys.readouterr().out
        with pytest.raises(ConfigError):
            byokg.batch([{}])


class TestFollowUps:
    def test_pronouns_stand_for_earlier_answers_and_topics(self) -> None:
        # Heat is a film of Mann with Pacino; Ali is one of Mann.
        byokg = Byokg(KnowledgeGraph.from_triples(FILMS))
        first = byokg.ask("Who directed Ali?")
        then = byokg.ask("Which films did he direct?", history=[("Who directed Ali?", first)])
        assert then.translation == "Which films did Michael Mann direct?"
        assert {item.name for item in then.items} == {"Heat", "Ali"}

    def test_another_topic_takes_the_place_of_the_one_before(self) -> None:
        byokg = Byokg(KnowledgeGraph.from_triples([("France", "capital", "Paris"), ("Spain", "capital", "Madrid")]))
        first = byokg.ask("What is the capital of France?")
        history = [("What is the capital of France?", first)]
        for text in ("And of Spain?", "What about Spain?", "Spain?"):
            then = byokg.ask(text, history)
            assert (then.translation, then.items[0].name) == ("What is the capital of Spain?", "Madrid")

    def test_a_complete_question_stays_as_it_is(self) -> None:
        byokg = Byokg(KnowledgeGraph.from_triples(FILMS))
        history = [("Who directed Ali?", byokg.ask("Who directed Ali?"))]
        assert list(completions("Who directed Heat?", history)) == ["Who directed Heat?"]
        assert byokg.ask("Who directed Heat?", history).translation == ""

    def test_a_language_model_completes_the_question_in_one_call(self) -> None:
        rules = (
            Rule("<question>Who directed Heat?</question>", contains=("complete questions", "= Michael Mann")),
            *RULES,
        )
        byokg = Byokg(KnowledgeGraph.from_triples(FILMS), llm=ScriptedChatModel(rules=rules))
        first = Byokg(byokg.graph).ask("Who directed Ali?")
        then = byokg.ask("And Heat?", [("Who directed Ali?", first)])
        assert (then.translation, then.items[0].name) == ("Who directed Heat?", "Michael Mann")
