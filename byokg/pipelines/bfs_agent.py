"""An agent with the tools over a graph, and nothing else: a language model looks around until it answers."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from byokg.errors import ByokgError, at_least
from byokg.graph.bfsql.protocol import EDGE_FIELDS, clip, compact
from byokg.graph.schema_text import Nearness, SchemaRenderer
from byokg.graph.store import schema_ahead
from byokg.linking.parts import Parts
from byokg.llm.messages import JSON, Message, ToolCall, prompt_messages
from byokg.llm.parsing import read_answers
from byokg.pipelines.context import CitationChecker
from byokg.retrieval.graph_tools import GraphTools
from byokg.text.names import estimate_tokens
from byokg.types import (
    Answer,
    AnswerItem,
    Artifacts,
    Context,
    EntityId,
    Evidence,
    Language,
    Linked,
    Node,
    NodeEvidence,
    Properties,
    Question,
    RowsEvidence,
    Step,
    Triple,
    TripleEvidence,
)

STAGE = "bfs_agent"

FOLDED_TOKENS = 150
"""Size of a tool's result once a later one has come."""

_BESIDE = ("errors", "warnings", "truncated")
"""Tokens of a result about one node beside its data."""

_LAST = "This was the last tool result. Answer now, from what you have found."
_NO_MORE = "no more tool calls are possible; answer from what you have found"


class BfsAgent:
    """Answers questions by tool calls; each reply of the model is a round, and the results of its tools are evidence.

    Tools receive the question, for a ranking by relevance. A result is shown whole until a later one has come. The
    answer is due when the model gives it, when it only repeats calls, or when a limit is reached.

    Args:
        parts: the graph, of which `run_query` is among the tools if it runs queries, and a language model that
            supports tool calls.
        calls: replies of the model, the answer among them.
        result_tokens: size of one tool's result.
        folded_tokens: size of a result once a later one has come; its beginning stays.
        context_tokens: size of all results together; the reply after they are used up has to be the answer.

    Raises:
        ConfigError: a limit leaves room for nothing.

    Source: "A BFS-based graph query language" (BFS-QL).
    """

    def __init__(
        self,
        parts: Parts,
        calls: int = 10,
        result_tokens: int = 1500,
        folded_tokens: int = FOLDED_TOKENS,
        context_tokens: int = 12000,
    ) -> None:
        at_least(2, "leaves no room for a tool call and an answer", calls=calls)
        at_least(1, "leaves no room for a tool call and an answer", context_tokens=context_tokens)
        self._store = store = parts.store
        self._model = parts.model
        self._calls = calls
        self._context_tokens = context_tokens
        self._folded_tokens = folded_tokens
        self._prompt = parts.prompts["bfs_agent"]
        queries = store.engines
        self._language: Language = queries[0].language if queries else "cypher"
        schema = SchemaRenderer(schema_ahead(store), parts.embedder, near=Nearness(store))
        self._tools = GraphTools(store, parts.entities, schema, queries, result_tokens, result_tokens)
        self._functions: list[Mapping[str, JSON]] = [
            {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
            for tool in self._tools.tools.values()
        ]

    def run(self, question: Question) -> Answer:
        """Answer one question.

        Raises:
            LlmError: the model gave no usable reply.
            StoreUnavailable: the graph could not be reached.
        """
        began = time.perf_counter()
        seconds: dict[str, float] = defaultdict(float)
        messages = prompt_messages(self._prompt.fill(calls=str(self._calls), question=_format_question(question)))
        context, left = Context(), self._context_tokens
        answered: set[str] = set()
        fresh = True
        for number in range(1, self._calls + 1):
            last = number == self._calls or left <= 0 or not fresh
            if last and context.rounds:
                messages.append(Message("user", _LAST))
            reply = self._model.reply(messages, stage=STAGE, question_id=question.id, tools=self._functions)
            if last or not reply.tool_calls or read_answers(reply.text):  # who answers while still asking knows
                break
            messages = [self._folded(message) for message in messages]
            messages.append(Message("assistant", reply.text, reply.tool_calls))
            at = time.perf_counter()
            found: list[Evidence] = []
            steps = []
            before = len(answered)
            for call in reply.tool_calls:
                text, evidence, step = self._called(call, question, left, answered)
                left -= estimate_tokens(text)
                found += evidence
                steps.append(step)
                messages.append(Message("tool", text, call_id=call.id))
            fresh = len(answered) > before
            context = context.add(Artifacts(), Linked(), [_unseen(found, context)], steps)
            seconds["retrieve"] += time.perf_counter() - at
        items = self._answers(reply.text, context)
        seconds["answer"] = time.perf_counter() - began - seconds["retrieve"]
        return Answer(question.id, items, context.rounds, dict(seconds))

    def _folded(self, message: Message) -> Message:
        """Return a tool's result as it is kept for later rounds; any other message as it is."""
        if message.role != "tool" or estimate_tokens(message.text) <= self._folded_tokens:
            return message
        try:
            shown = compact(clip(json.loads(message.text), self._folded_tokens))
        except ValueError:
            return message
        return replace(message, text=shown)

    def _called(
        self, call: ToolCall, question: Question, left: int, answered: set[str]
    ) -> tuple[str, list[Evidence], Step]:
        """Run a tool; return the reply to the model, its evidence, and a record of it."""
        given = dict(call.arguments)
        if left <= 0:
            return _NO_MORE, [], Step(call.name, given, {"problem": _NO_MORE})
        tool = self._tools.tools.get(call.name)
        ranked = tool is not None and "question" in tool.arguments.model_fields
        asked = {**({"question": question.text} if ranked else {}), **given}
        key = f"{call.name} {json.dumps(asked, sort_keys=True, default=str)}"
        answered.add(key)
        try:
            result = self._tools.call(call.name, asked)
        except ByokgError as error:
            if error.retryable:
                raise
            return str(error), [], Step(call.name, given, {"problem": str(error)})
        evidence = list(_evidence(result, given, self._language))
        return compact(result), evidence, Step(call.name, given, {key: _size(value) for key, value in result.items()})

    def _answers(self, text: str, context: Context) -> tuple[AnswerItem, ...]:
        """Tie answers to nodes and to the evidence that holds them."""
        grounds = CitationChecker(self._store, context.evidence)
        items = []
        for place, answer in enumerate(read_answers(text, known=grounds.names)):
            held = grounds.of(answer.name)
            citations = tuple(held)
            items.append(AnswerItem(answer.name, held[citations[0]] if held else None, 1 / (1 + place), citations))
        return tuple(items)


def _format_question(question: Question) -> str:
    """Return the question, and the ids of the entities that are known to be meant."""
    if not question.topic_ids:
        return question.text
    return f"{question.text}\nIt is about the nodes with the ids: {', '.join(question.topic_ids)}"


def _evidence(result: Mapping[str, Any], given: Mapping[str, Any], language: Language) -> Iterator[Evidence]:
    """Yield the evidence in a tool's result: nodes, edges, rows."""
    for node in [*result.get("nodes", ()), *([result] if "id" in result else [])]:
        stated = _properties(node, ("id", "entity_type", "name", "about", "values", *_BESIDE))
        stated = {**stated, **_properties(node.get("about", {}), ())}
        if stated or "entity_type" in node or "name" in node:  # a bare id belongs to an edge
            about = Node(EntityId(node["id"]), node.get("name", node["id"]), node.get("entity_type", ""), stated)
            yield NodeEvidence(STAGE, 0.0, about)
    for group in result.get("values", ()):
        for value in group["values"]:
            ends = (value["id"], result["id"]) if group["direction"] == "in" else (result["id"], value["id"])
            stated = _properties(value, ("id", "entity_type", "name", "about"))
            undirected = group["direction"] == "both"
            triple = Triple(
                EntityId(ends[0]), group["predicate"], EntityId(ends[1]), properties=stated, undirected=undirected
            )
            yield TripleEvidence(STAGE, 0.0, triple)
            if said := _properties(value.get("about", {}), ()):
                yield NodeEvidence(STAGE, 0.0, Node(EntityId(value["id"]), value["id"], "", said))
    for edge in [*result.get("edges", ()), *(edge for path in result.get("paths", ()) for edge in path["edges"])]:
        stated, undirected = _properties(edge, EDGE_FIELDS), "undirected" in edge
        ends = EntityId(edge["subject"]), EntityId(edge["object"])
        triple = Triple(ends[0], edge["predicate"], ends[1], properties=stated, undirected=undirected)
        yield TripleEvidence(STAGE, 0.0, triple)
    if result.get("rows"):
        rows = tuple(tuple(row) for row in result["rows"])
        query, columns = str(given.get("query", "")), tuple(result["columns"])
        yield RowsEvidence(STAGE, 0.0, language, query, columns, rows, bool(result.get("truncated")))


def _properties(item: Mapping[str, Any], reserved: Sequence[str]) -> Properties:
    """Return an item's data beside its identity; composite values, such as provenance, as JSON."""
    return {
        key: value if isinstance(value, str | int | float | bool) else compact(value)
        for key, value in item.items()
        if key not in reserved
    }


def _unseen(found: Sequence[Evidence], context: Context) -> list[Evidence]:
    """Return what no earlier call has brought, each once."""
    seen = {_content(item) for item in context.evidence}
    kept = []
    for item in found:
        if (content := _content(item)) not in seen:
            seen.add(content)
            kept.append(item)
    return kept


def _content(item: Evidence) -> str:
    match item:
        case NodeEvidence(node=node):
            return f"node {node.id}"
        case TripleEvidence(triple=triple):
            ends = (triple.head, triple.tail)
            head, tail = sorted(ends) if triple.undirected else ends
            return repr((head, triple.relation, tail, sorted(triple.properties.items())))
        case RowsEvidence(query=query):
            return f"rows {query}"
    raise TypeError(f"a tool brings no {type(item).__name__}")


def _size(value: object) -> object:
    """Return how long a list is, and anything else as it is."""
    return len(value) if isinstance(value, list) else value
