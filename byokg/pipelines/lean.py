"""One or two calls a question: offline retrieval first, then the model answers or requests more.

Each prompt shows question, schema and evidence. The reply holds answers with citations, or artifacts for another round.
The parts that differ by question stand at the end of a prompt, so that providers keep its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from byokg.errors import at_least
from byokg.graph.pathql.query import connecting
from byokg.graph.property_view import is_value
from byokg.graph.schema_text import RelationLimits
from byokg.graph.value_indexes import nodes_holding
from byokg.linking.demonstrations import Examples
from byokg.linking.llm_linker import LlmLinker, Task
from byokg.linking.parts import Budgets, Parts, RetrieverFactory
from byokg.llm.messages import prompt_messages
from byokg.llm.parsing import read_answers
from byokg.llm.reply_blocks import reply_schema
from byokg.offline import GrowthLimits, OfflineLinker, Planner, build_parser_and_ranker, query_reader
from byokg.pipelines.answers import make_answer
from byokg.pipelines.byokg import QUERY, budgeted, checked_answers, reach, runnable, shown_grounds
from byokg.pipelines.context import ContextText, ContextWriter
from byokg.pipelines.instrumentation import StageClock
from byokg.pipelines.loop import ENDED, KGLinker, is_new, propose_and_link, retrieve_all
from byokg.retrieval.path import PathRetriever
from byokg.retrieval.query import QueryRetriever
from byokg.text.names import FUNCTION_WORDS, normalize_label, normalize_name
from byokg.text.values import read_literal
from byokg.types import (
    Answer,
    AnswerItem,
    Artifacts,
    Context,
    EntityId,
    Evidence,
    Linked,
    NodeEvidence,
    PathEvidence,
    Question,
    Request,
    Retriever,
    Step,
    TripleEvidence,
    best_first,
)

STAGE = "lean"

TASKS: tuple[Task, ...] = ("entities", "paths", "query")

RELATIONS = RelationLimits(close=12, others=3)
"""Relations in the schema: paths may name others as well."""

DESCRIBED = 4
"""Linked entities whose properties precede the first call."""

JOINED = 4
"""Linked entities whose edges to one another precede the first call: walks never enter another topic entity."""

EXPLORED = 3
"""Entities named by the model alone, and holders of one value in the question, that are walked from, at most."""

MET = 10
"""Nodes at the end of the likeliest walk whose properties precede the first call, as far as the question names them."""

JOINING = 30
"""Entries of a list about an entity of an earlier round alone, up to which it shows how that leads to a later one."""

_SCHEMA = "# Schema of the graph\n\n"


@dataclass(eq=False)
class Lean:
    """Answers from evidence retrieved without a language model, or from the model's own requests after that.

    Args:
        parts: language model, prompts, entity linker, and the graph, for the names of nodes.
        first: proposes the first retrieval; needs no model.
        reader: writes the model's tasks and the schema, and reads artifacts.
        retrievers: fetch the evidence of every round.
        context: writes the evidence for the prompt.
        read: returns the rows of a query for a question's text that no model writes, as evidence of the first round.
        calls: of the model for one question, at most.

    Raises:
        ConfigError: `calls` allows none.

    Source: ByoKG-RAG (arXiv:2507.04127v1), Algorithm 2, whose loop it shortens.
    Differs: the first artifacts come from no language model, and artifacts and answer share a call.
    """

    parts: Parts
    first: KGLinker
    reader: LlmLinker
    retrievers: Sequence[Retriever]
    context: ContextWriter
    read: Callable[[str], list[Evidence]]
    calls: int = 2

    def __post_init__(self) -> None:
        at_least(1, "asks nobody", calls=self.calls)

    def run(self, question: Question) -> Answer:
        """Answer one question.

        Raises:
            LlmError: a language model gave no usable reply.
            GraphError: the graph cannot be read, or does not hold an entity that came with the question.
        """
        clock = StageClock()
        context = self._explored(question, Context(question=question.text), clock)
        if not context.rounds[0].linked.entities and (holders := self._holders(question)):
            context = self._explored(replace(question, topic_ids=holders), Context(question=question.text), clock)
        items: list[AnswerItem] = []
        for left in reversed(range(self.calls)):
            with clock.stage("answer"):
                shown = self.context.write_for_round(_narrowed(context), last=not left)
                text = self._call_model(question, context, shown, left)
                grounds = shown_grounds(self.parts.store, context, shown)
                answers = read_answers(text, known=grounds.names)
                items = checked_answers(self.parts.store, context, answers, shown, grounds)
            if not left or any(item.cited for item in items):
                break
            artifacts = self.reader.read(text, question, True, shown.text)
            linked = self.parts.entities.link(artifacts, question.text)
            if artifacts.finished or not is_new(artifacts, linked, context):
                context = context.add(
                    artifacts, linked, [], [Step(ENDED, {}, {"because": "nothing new was asked for"})]
                )
                break
            context = self._requested(question, context, artifacts, linked, clock)
        return make_answer(question, items, context, clock.seconds)

    def _explored(self, question: Question, context: Context, clock: StageClock) -> Context:
        """Return the context with a round without the model: walks from topic entities, and what stands beside them."""
        artifacts, linked = propose_and_link(self.first, self.parts.entities, question, Context(), clock)
        request = Request(question, artifacts, linked, context)
        found = retrieve_all(self.retrievers, request, clock)
        found.append([*self._described(linked), *self._joining(linked), *self._met(question, found)])
        if not context.rounds:
            found.append(self.read(question.text))
        return context.add(artifacts, linked, found, request.steps)

    def _requested(
        self, question: Question, context: Context, artifacts: Artifacts, linked: Linked, clock: StageClock
    ) -> Context:
        """Return the context with the round of a model's request, behind one of walks from entities that are new."""
        known = {one.id for earlier in context.rounds for one in earlier.linked.entities}
        new = [id for id in best_first(linked.entities) if id not in known and not is_value(id)]
        if new:
            context = self._explored(replace(question, topic_ids=tuple(new[:EXPLORED])), context, clock)
        request = Request(question, artifacts, linked, context)
        return context.add(artifacts, linked, retrieve_all(self.retrievers, request, clock), request.steps)

    def _holders(self, question: Question) -> tuple[EntityId, ...]:
        """Return the nodes of the texts in a question that are properties of few nodes, such as a badge number."""
        values, store, found = self.parts.entities.values, self.parts.store, dict[EntityId, None]()
        for mention in () if values is None else values.find_mentions(question.text):
            match = mention.matches[0]
            named = isinstance(match.value, str) and not ((read := read_literal(match.value)) and read.kind == "date")
            if named and match.exact and match.count <= EXPLORED and not match.edge:
                found |= dict.fromkeys(store.ids(nodes_holding(store, match.type, match.property, match.value)))
        return tuple(found)[:EXPLORED]

    def _described(self, linked: Linked) -> list[Evidence]:
        """Return the linked entities that have properties, as evidence: no path leads to the value of one."""
        ids = dict.fromkeys(one.id for one in linked.entities if not is_value(one.id))
        nodes = self.parts.store.nodes(list(ids)[:DESCRIBED])
        return [NodeEvidence(STAGE, 0.0, node) for node in nodes if node.properties]

    def _joining(self, linked: Linked) -> list[Evidence]:
        """Return the edges between linked entities of different mentions, as evidence."""
        from byokg.graph.pathql.evaluate import paths
        from byokg.graph.pathql.search import PathLimits

        mentions = {one.id: one.mention for one in linked.entities if not is_value(one.id)}
        ids = [id for id in best_first(linked.entities) if id in mentions][:JOINED]
        if len({mentions[id] for id in ids}) < 2:
            return []
        found = paths(self.parts.store, connecting(ids, ids, JOINED, 1), PathLimits(max_paths=JOINED * len(ids) ** 2))
        edges = {each.path.triples[0].edge: each.path.triples[0] for each in found if each.path.triples}
        return [
            TripleEvidence(STAGE, 0.0, one, asked=True)
            for one in edges.values()
            if mentions[one.head] != mentions[one.tail]
        ]

    def _met(self, question: Question, found: Sequence[Sequence[Evidence]]) -> list[Evidence]:
        """Return the nodes that the likeliest walk leads to, with the properties that the question names."""
        walks = [item for batch in found for item in batch if isinstance(item, PathEvidence)]
        if not walks:
            return []
        likeliest = max(walks, key=lambda item: item.score)
        ends = [end for end in likeliest.ends[:MET] if not is_value(end)]
        words = set(normalize_name(question.text).split())
        met: list[Evidence] = []
        for node in self.parts.store.nodes(ends):
            shares = {key: _share(key, words) for key, value in node.properties.items() if value != node.name}
            best = max(shares.values(), default=0.0)
            named = {key: node.properties[key] for key, share in shares.items() if share == best}
            if best > 0:
                met.append(NodeEvidence(STAGE, 0.0, replace(node, properties=named)))
        return met

    def _call_model(self, question: Question, context: Context, shown: ContextText, left: int) -> str:
        """Call the model, with `left` further calls allowed; return its reply. The last one is for answers alone."""
        prompts = self.parts.prompts
        tags = prompts["lean"].tags
        request_part = schema_part = last_part = ""
        if left:
            tags = (*tags, *self.reader.written_tags)
            request_part = prompts["lean_request"].fill(tasks=self.reader.tasks_text(later=False)).user
            schema_part = f"{_SCHEMA}{self.reader.schema_text(question, context)}\n\n"
        else:
            last_part = f"{prompts['lean_last'].user}\n\n"
        filled = prompts["lean"].fill(
            request_part=request_part,
            schema_part=schema_part,
            graph_context=shown.block,
            last_part=last_part,
            question=question.text,
        )
        schema = reply_schema(tags)
        return self.parts.model.reply(prompt_messages(filled), stage=STAGE, question_id=question.id, schema=schema).text


def _share(label: str, words: Collection[str]) -> float:
    """Return the share of a label's words that are among some others."""
    told = [word for word in normalize_label(label).split() if word not in FUNCTION_WORDS]
    return sum(word in words for word in told) / max(1, len(told))


def _narrowed(context: Context) -> Context:
    """Return a context without facts about entities that the model did not name again.

    Short lists that hold an entity of the last round, or a node of its evidence, remain.
    """
    *earlier, last = context.rounds
    kept = {one.id for one in last.linked.entities}
    if not earlier or not kept:
        return context
    dropped = {one.id for each in earlier for one in each.linked.entities} - kept
    met = kept.union(*(item.ends for item in last.evidence if isinstance(item, PathEvidence)))
    rounds = [
        replace(
            each,
            evidence=tuple(
                item
                for item in each.evidence
                if not isinstance(item, PathEvidence)
                or item.source not in dropped
                or (len(item.ends) <= JOINING and not met.isdisjoint(item.ends))
            ),
        )
        for each in earlier
    ]
    return replace(context, rounds=(*rounds, last))


RETRIEVERS: Mapping[str, RetrieverFactory | None] = MappingProxyType({"path": PathRetriever, QUERY: QueryRetriever})
"""Those of `pipeline=byokg_lean`: they ask no language model."""


def lean_pipeline(
    parts: Parts,
    retrievers: Mapping[str, RetrieverFactory | None] = RETRIEVERS,
    calls: int = 2,
    tasks: Sequence[Task] = TASKS,
    top_k: int = 18,
    weights: str | Path | Planner | None = None,
    budgets: Budgets = Budgets(schema_tokens=1500, context_tokens=3000),
    examples: Examples = Examples(),
) -> Lean:
    """Assemble the pipeline for one graph and one language model; the graph's schema is read at once.

    Args:
        parts: the shared parts.
        retrievers: factories by name; None switches one off. The one named `query` is left out if the graph
            runs no queries.
        calls: of the model for one question, at most.
        tasks: artifacts that the model may write.
        top_k: relation paths that are followed before the first call, for each topic entity.
        weights: folder of `byokg fit`, or a planner, to rank relation paths by; None takes the shipped weights of the
            embedder.
        budgets: of the schema and the evidence in a prompt.
        examples: solved questions, of which the model sees the most similar.

    Raises:
        ConfigError: a setting is out of range, or a retriever needs a part that this pipeline lacks.
    """
    parts, context = budgeted(parts, budgets)
    made = parts.retrievers(runnable(retrievers, parts))
    ranking = build_parser_and_ranker(parts.store, parts.embedder, parts.entities, weights)
    reader = LlmLinker(
        parts,
        tasks,
        parts.languages,
        budgets.schema_tokens,
        solved=examples.writer(parts.store, parts.embedder),
        max_hops=reach(made.values()),
        relations=RELATIONS,
    )
    first = OfflineLinker(parts.store, parts.entities, *ranking, GrowthLimits(top_k=top_k, varied=True))
    read = query_reader(parts.store.columnar or parts.store)
    return Lean(parts, first, reader, tuple(made.values()), context, read, calls)
