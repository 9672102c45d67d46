"""The agent with graph tools, on films:

Heat -directed_by-> Michael Mann, Collateral -directed_by-> Michael Mann, Heat -starred_actors-> Al Pacino
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from byokg.errors import ConfigError
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.linking.parts import Parts
from byokg.llm.model import LanguageModel
from byokg.pipelines.bfs_agent import BfsAgent
from byokg.text.names import estimate_tokens
from byokg.types import EntityId, NodeEvidence, Question, RowsEvidence, TripleEvidence
from tests.graph.bfsql.graphs import biomedical

FILMS = [
    ("Heat", "directed_by", "Michael Mann"),
    ("Collateral", "directed_by", "Michael Mann"),
    ("Heat", "starred_actors", "Al Pacino"),
]
QUESTION = Question("q1", "Who directed Heat?")

Reply = str | Sequence[tuple[str, dict[str, Any]]]
"""A text, or tool calls."""


@dataclass(frozen=True)
class Both:
    """A text with tool calls."""

    text: str
    calls: Sequence[tuple[str, dict[str, Any]]]


class Explorer(BaseChatModel):
    """Gives one reply after the other, and keeps what it was shown and offered."""

    replies: list[Any]
    seen: list[list[BaseMessage]] = Field(default_factory=list)
    offered: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "explorer"

    @property
    def model(self) -> str:
        return "explorer"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        self.offered[:] = [tool["function"]["name"] for tool in tools]
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reply = self.replies[len(self.seen)]
        self.seen.append(messages)
        text = reply if isinstance(reply, str) else reply.text if isinstance(reply, Both) else ""
        calls = [] if isinstance(reply, str) else list(reply.calls if isinstance(reply, Both) else reply)
        message = AIMessage(
            text,
            tool_calls=[
                {"name": name, "args": arguments, "id": f"c{len(self.seen)}.{at}", "type": "tool_call"}
                for at, (name, arguments) in enumerate(calls)
            ],
            response_metadata={"finish_reason": "tool_use" if calls else "stop"},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


@pytest.fixture
def explorer() -> Callable[..., Explorer]:
    return lambda *replies: Explorer(replies=list(replies))


def agent(model: Explorer, **settings: Any) -> BfsAgent:
    return BfsAgent(Parts(ColumnarGraph.from_triples(FILMS), LanguageModel(model)), **settings)


def test_it_looks_around_until_it_answers_and_cites_what_it_found(explorer: Callable[..., Explorer]) -> None:
    model = explorer(
        [("search_entities", {"query": "heat"})],
        [("bfs_query", {"seeds": ["Heat"], "max_hops": 1, "edge_filter": {"predicates": ["directed_by"]}})],
        "<answers>\nMichael Mann\n</answers>",
    )
    answer = agent(model).run(QUESTION)
    assert [(item.name, item.id) for item in answer.items] == [("Michael Mann", "Michael Mann")]
    first, second = answer.rounds
    assert [step.stage for step in first.steps] == ["search_entities"]
    assert first.evidence == ()  # finding a name says nothing of the graph yet
    triples = [item.triple for item in second.evidence if isinstance(item, TripleEvidence)]
    assert ("Heat", "directed_by", "Michael Mann") in [(each.head, each.relation, each.tail) for each in triples]
    cited = {item.id: item for item in second.evidence if item.id in answer.items[0].citations}
    assert cited and all(isinstance(item, NodeEvidence | TripleEvidence) for item in cited.values())
    assert model.offered == [
        *("describe_schema", "search_entities", "bfs_query", "neighbors", "describe_entity"),
        *("intersect_subgraphs", "shortest_paths"),
    ]


def test_a_wrong_call_is_explained_to_the_model_and_not_the_end(explorer: Callable[..., Explorer]) -> None:
    model = explorer([("bfs_query", {"seedz": ["Heat"]}), ("no_such_tool", {})], "<answers>\nMichael Mann\n</answers>")
    answer = agent(model).run(QUESTION)
    told = [str(message.content) for message in model.seen[1][-2:]]
    assert "did you mean 'seeds'" in told[0] and "no tool 'no_such_tool'" in told[1]
    assert [step.got["problem"] for step in answer.rounds[0].steps] == told
    assert not answer.items[0].grounded  # right, but nothing that was retrieved says so


def test_the_last_reply_has_to_be_the_answer(explorer: Callable[..., Explorer]) -> None:
    look = [("describe_entity", {"id": "Heat"})]
    model = explorer(look, look, "<answers>\nHeat\n</answers>")
    answer = agent(model, calls=3).run(QUESTION)
    assert len(model.seen) == 3 and "Answer now" in str(model.seen[2][-1].content)
    assert [len(each.evidence) for each in answer.rounds] == [2, 0]  # what came twice is kept once
    stubborn = explorer(look, look)
    assert agent(stubborn, calls=2).run(QUESTION).items == () and len(stubborn.seen) == 2


def test_whoever_only_repeats_calls_has_to_answer(explorer: Callable[..., Explorer]) -> None:
    look = [("neighbors", {"id": "Heat", "predicates": "directed_by"})]
    model = explorer(look, look, "<answers>\nMichael Mann\n</answers>")
    answer = agent(model, calls=10).run(QUESTION)
    assert len(model.seen) == 3 and "Answer now" in str(model.seen[2][-1].content)
    assert answer.items[0].id == "Michael Mann" and answer.items[0].grounded


def test_an_answer_ends_it_though_more_was_asked_for(explorer: Callable[..., Explorer]) -> None:
    look = ("describe_entity", {"id": "Heat"})
    model = explorer([look], Both("<answers>\nMichael Mann\n</answers>", [look]))
    assert [item.name for item in agent(model).run(QUESTION).items] == ["Michael Mann"]
    assert len(model.seen) == 2


def test_old_results_are_shortened_and_the_latest_is_whole(explorer: Callable[..., Explorer]) -> None:
    def look(name: str) -> list[tuple[str, dict[str, Any]]]:
        return [("neighbors", {"id": name, "predicates": "owns"})]

    graph = ColumnarGraph.from_triples([(owner, "owns", f"thing {at}") for owner in "ab" for at in range(60)])
    model = explorer(look("a"), look("b"), "<answers>\nthing 0\n</answers>")
    BfsAgent(Parts(graph, LanguageModel(model)), folded_tokens=120).run(QUESTION)
    first, second = (str(message.content) for message in model.seen[2] if message.type == "tool")
    assert estimate_tokens(first) <= 120 < estimate_tokens(second)
    assert "thing 0" in first and "more)" in first and len(json.loads(second)["values"][0]["values"]) == 60


def test_tools_are_told_the_question(explorer: Callable[..., Explorer]) -> None:
    model = explorer([("bfs_query", {"seeds": ["Heat"]})], "<answers>\n</answers>")
    agent(model).run(QUESTION)
    shown = json.loads(str(model.seen[1][-1].content))
    assert shown["edges"][0]["predicate"] == "directed_by"


def test_results_together_stay_within_their_budget(explorer: Callable[..., Explorer]) -> None:
    look = ("bfs_query", {"seeds": ["Heat"], "max_hops": 2})
    model = explorer([look, look, look], "<answers>\nMichael Mann\n</answers>")
    agent(model, context_tokens=1).run(QUESTION)
    results = [str(message.content) for message in model.seen[1] if message.type == "tool"]
    assert json.loads(results[0])["node_count"] == 4
    assert set(results[1:]) == {"no more tool calls are possible; answer from what you have found"}
    assert "Answer now" in str(model.seen[1][-1].content)


def test_provenance_is_kept_in_evidence(explorer: Callable[..., Explorer]) -> None:
    look = ("bfs_query", {"seeds": ["PUB:4"], "max_hops": 1, "predicates": ["AUTHORED"]})
    model = explorer([look], "<answers>\n</answers>")
    answer = BfsAgent(Parts(biomedical(), LanguageModel(model))).run(QUESTION)
    edges = [item.triple for item in answer.rounds[0].evidence if isinstance(item, TripleEvidence)]
    [authored] = [edge for edge in edges if edge.relation == "AUTHORED"]
    assert json.loads(str(authored.properties["provenance"]))[0]["source_doc"] == "PUB:4"


def test_given_entities_are_told(explorer: Callable[..., Explorer]) -> None:
    model = explorer("<answers>\n</answers>")
    agent(model).run(Question("q1", "Who directed it?", topic_ids=(EntityId("Heat"),)))
    assert "ids: Heat" in str(model.seen[0][-1].content)


def test_rows_of_queries_are_evidence(explorer: Callable[..., Explorer], arcade_process: ArcadeStore) -> None:
    query = "MATCH (f)-[:directed_by]->(d) RETURN d.name AS director, count(f) AS films"
    model = explorer([("run_query", {"query": query})], "<answers>\n2\n</answers>")
    arcade_process.replace(ColumnarGraph.from_triples(FILMS))
    answer = BfsAgent(Parts(arcade_process, LanguageModel(model))).run(Question("q1", "How many films?"))
    [rows] = [item for item in answer.rounds[0].evidence if isinstance(item, RowsEvidence)]
    assert (rows.language, rows.columns, rows.rows) == ("cypher", ("director", "films"), (("Michael Mann", 2),))
    assert answer.items[0].citations == (rows.id,)


def test_limits_that_leave_no_room_are_refused(explorer: Callable[..., Explorer]) -> None:
    with pytest.raises(ConfigError, match="calls=1"):
        agent(explorer(), calls=1)
