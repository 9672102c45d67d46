"""Pipelines with a language model: the KG-Linker, retrieval and an answer with citations; and the baselines.

`LlmAnswerer` is the last step of the loop; `Direct` answers without a graph; `DirectQuery` lets the model write a query
once entities are linked, and joins its rows to the model's own answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from byokg.errors import ConfigError
from byokg.graph.store import GraphStore
from byokg.linking.demonstrations import Examples
from byokg.linking.llm_linker import BFSQL_HOPS, TAGS, TASKS, GoldEntities, LlmLinker, Task
from byokg.linking.parts import Budgets, Parts, RetrieverFactory
from byokg.llm.messages import prompt_messages
from byokg.llm.parsing import read_answers, read_query
from byokg.llm.reply_blocks import reply_schema
from byokg.llm.reply_lines import WrittenAnswer
from byokg.llm.usage import token_counter
from byokg.pipelines.answers import make_answer
from byokg.pipelines.context import CitationChecker, ContextText, ContextWriter
from byokg.pipelines.instrumentation import StageClock
from byokg.pipelines.loop import KGLinker, Loop, Stage, StopRule, retrieve_all
from byokg.retrieval.agentic import AgenticRetriever
from byokg.retrieval.bfsql import BfsqlRetriever
from byokg.retrieval.path import PathRetriever
from byokg.retrieval.query import Grounding, QueryRetriever
from byokg.retrieval.text import TextRetriever
from byokg.retrieval.verbalize import feedback_text, types_text
from byokg.text.names import normalize_name
from byokg.types import (
    Answer,
    AnswerItem,
    Cell,
    Context,
    EntityId,
    Evidence,
    Feedback,
    GraphQuery,
    Language,
    Linked,
    NodeCell,
    PathCell,
    Question,
    Request,
    Retriever,
    RowsEvidence,
)

ANSWER_STAGE = "answer"


class LlmAnswerer:
    """Answers from the evidence with a language model, and checks its citations.

    An answer is supported if a line that it cites holds its name or value (`CitationChecker`); citing a line means the
    items in it. Otherwise, if other shown lines hold it, it is found, and these are its citations. Else it is
    unsupported. Wrong citations are kept apart (`AnswerItem.miscited`).

    Args:
        parts: language model, prompts, and the graph, for the names of nodes.
        context: writes the evidence for the prompt.
        merge_drafts: put the draft answers of the first round, which ignore the graph, beside the answers:
            the first answer, then the first draft, then the others.

    Source: ByoKG-RAG (arXiv:2507.04127v1), Algorithm 2 line 12; `merge_drafts` after "Datasets & Metrics" (H@2).
    """

    def __init__(self, parts: Parts, context: ContextWriter, merge_drafts: bool = False) -> None:
        self._model = parts.model
        self._store = parts.store
        self._context = context
        self._prompt = parts.prompts["answer"]
        self._merge_drafts = merge_drafts

    def answer(self, question: Question, context: Context) -> list[AnswerItem]:
        """Return the model's answers in its order. Raises `LlmError`."""
        written = self._context.write(context)
        facts = written.block + _last_query(context)
        messages = prompt_messages(self._prompt.fill(graph_context=facts, question=question.text))
        schema = reply_schema(self._prompt.tags)
        reply = self._model.reply(messages, stage=ANSWER_STAGE, question_id=question.id, schema=schema)
        grounds = shown_grounds(self._store, context, written)
        answers: Sequence[WrittenAnswer] = read_answers(reply.text, known=grounds.names)
        if self._merge_drafts and context.rounds:
            answers = _united(answers, context.rounds[0].artifacts.draft_answers)
        return checked_answers(self._store, context, answers, written, grounds)


_LONGEST_QUERY = 600
"""Characters of a query without rows, and of its feedback."""


def _last_query(context: Context) -> str:
    """Return the outcome of the last round's query if it gave no rows."""
    last = context.rounds[-1].evidence if context.rounds else ()
    if any(isinstance(item, RowsEvidence) for item in last):
        return ""
    told = [feedback_text(item) for item in last if isinstance(item, Feedback) and item.retriever == QUERY]
    return f"\n\nThe last query gave nothing: {told[-1][:_LONGEST_QUERY]}" if told else ""


def shown_grounds(store: GraphStore, context: Context, written: ContextText) -> CitationChecker:
    """Return the evidence that a model was shown, with the names that its reply may copy."""
    shown = {id for items in written.items.values() for id in items}
    return CitationChecker(store, [item for item in context.evidence if item.id in shown])


def checked_answers(
    store: GraphStore,
    context: Context,
    answers: Sequence[WrittenAnswer],
    written: ContextText,
    grounds: CitationChecker | None = None,
) -> list[AnswerItem]:
    """Tie answers, best first, to nodes and to the shown evidence; see `LlmAnswerer`.

    Args:
        store: source of the names of nodes.
        context: all evidence.
        answers: as the model wrote them.
        written: the part of the context in the prompt.
        grounds: the evidence in the prompt; None reads it anew.
    """
    held = shown_grounds(store, context, written) if grounds is None else grounds
    return [_checked(answer, 1 / (1 + place), held, written) for place, answer in enumerate(answers)]


def _united(answers: Sequence[WrittenAnswer], drafts: Sequence[str]) -> list[WrittenAnswer]:
    """Put drafts beside answers, the first of each first; of one name the answer stays, for its citations."""
    cited = {normalize_name(answer.name): answer for answer in reversed(answers)}
    added = [WrittenAnswer(draft) for draft in drafts]
    united: dict[str, WrittenAnswer] = {}
    for one in (*answers[:1], *added[:1], *answers[1:], *added[1:]):
        name = normalize_name(one.name)
        united.setdefault(name, cited.get(name, one))
    return list(united.values())


_REMARK = re.compile(r"\s+\([^()]*\)$")


def _checked(answer: WrittenAnswer, score: float, grounds: CitationChecker, written: ContextText) -> AnswerItem:
    """Tie an answer to a node and to evidence that holds it, cited evidence first.

    A remark behind a name (`Paris (the capital)`) is removed if the evidence holds only the name without it.
    """
    name, held = answer.name, grounds.of(answer.name)
    if not held and (bare := _REMARK.sub("", name)) != name and (without := grounds.of(bare)):
        name, held = bare, without
    meant = {line: written.items.get(line, (line,)) for line in answer.citations}
    miscited = tuple(line for line, items in meant.items() if not any(id in held for id in items))
    right = dict.fromkeys(id for items in meant.values() for id in items if id in held)
    citations = tuple(right) or tuple(held)
    node = next((held[id] for id in (*citations, *held) if held[id] is not None), None)  # rows hold names alone
    value_of, identified = grounds.origin(name) if node is None and held else ("", None)
    return AnswerItem(name, node or identified, score, citations, len(meant), miscited, value_of)


DIRECT_STAGE = "direct"


class Direct:
    """Answers with a language model alone, without evidence.

    Args:
        parts: language model and prompts.
        thinking: let the model think step by step first.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Baselines": Vanilla LLM, and with `thinking` CoT.
    """

    def __init__(self, parts: Parts, thinking: bool = False) -> None:
        self._model = parts.model
        self._prompt = parts.prompts["direct_cot" if thinking else "direct"]
        self._schema = reply_schema([*(["reason"] if thinking else []), *self._prompt.tags], cited=False)

    def run(self, question: Question) -> Answer:
        """Answer one question. Raises `LlmError`."""
        clock = StageClock()
        with clock.stage("answer"):
            messages = prompt_messages(self._prompt.fill(question=question.text))
            reply = self._model.reply(messages, stage=DIRECT_STAGE, question_id=question.id, schema=self._schema)
            answers = read_answers(reply.text)
            items = tuple(AnswerItem(one.name, None, 1 / (1 + at)) for at, one in enumerate(answers))
        return Answer(question.id, items, (), dict(clock.seconds))


QUERY_STAGE = "query_generation"

Answers = Literal["united", "rows"]
"""`united`: the model's answers without a graph, then those of the rows; `rows`: its answers from the rows."""


@dataclass(eq=False)
class DirectQuery:
    """Lets a language model name entities, then write a query that starts from the linked ones, and runs it.

    Args:
        parts: the graph and the entity linker.
        linker: writes the entities of a question.
        writer: writes the query.
        retriever: runs it, and corrects it according to its settings.
        direct: answers without a graph.
        answerer: answers from the rows.
        answers: combination of the answers, see `Answers`.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Competing Methods": LLM + graph-query; `rows` is its variant for MedQA.
    """

    parts: Parts
    linker: LlmLinker
    writer: QueryWriter
    retriever: QueryRetriever
    direct: Direct
    answerer: LlmAnswerer
    answers: Answers = "united"

    def __post_init__(self) -> None:
        if self.answers not in ("united", "rows"):
            raise ConfigError(f"answers={self.answers} is not known; use united or rows")

    def run(self, question: Question) -> Answer:
        """Answer one question.

        Raises:
            LlmError: a language model gave no usable reply.
            GraphError: the graph cannot be read, or does not hold an entity that came with the question.
        """
        clock = StageClock()
        with clock.stage("link"):
            artifacts = self.linker.propose(question, Context())
            linked = self.parts.entities.link(artifacts, question.text)
            artifacts = replace(artifacts, queries=self.writer.write(question, linked))
        request = Request(question, artifacts, linked, Context(question=question.text))
        found = retrieve_all([self.retriever], request, clock)
        context = request.context.add(artifacts, linked, found, request.steps)
        with clock.stage("answer"):
            if self.answers == "rows":
                items: Sequence[AnswerItem] = self.answerer.answer(question, context)
            else:
                grounds = CitationChecker(self.parts.store, context.evidence)
                items = unite(self.direct.run(question).items, context.evidence, grounds)
        return make_answer(question, items, context, clock.seconds)


class QueryWriter:
    """Lets a language model write a query over a graph, given its schema and the linked entities.

    Args:
        parts: language model, prompts, schema, and the graph, for the types of nodes.
        language: of the query.
        schema_tokens: budget of the schema in the prompt.
    """

    def __init__(self, parts: Parts, language: Language, schema_tokens: int = 2000) -> None:
        self._model = parts.model
        self._store = parts.store
        self._language = language
        self._schema = parts.schema
        self._prompt = parts.prompts[f"{language}_generation"]
        self._schema_tokens = schema_tokens

    def write(self, question: Question, linked: Linked) -> tuple[GraphQuery, ...]:
        """Return the query that was written, if one was. Raises `LlmError`."""
        filled = self._prompt.fill(
            schema=self._schema.render(question.text, self._schema_tokens, [one.id for one in linked.entities]).text,
            entities=self._described(linked),
            question=question.text,
        )
        tag = TAGS[self._language]
        schema = reply_schema(self._prompt.tags)
        messages = prompt_messages(filled)
        reply = self._model.reply(messages, stage=QUERY_STAGE, question_id=question.id, schema=schema)
        text = read_query(reply.text, tag)
        return (GraphQuery(self._language, text),) if text else ()

    def _described(self, linked: Linked) -> str:
        """Write linked entities and values, one a line, as a query can name them."""
        from byokg.graph.rdf.terms import node_iri

        lines = []
        for node in self._store.nodes(list(dict.fromkeys(one.id for one in linked.entities))):
            kind = f", type{'s' if node.further_types else ''} {types_text(node)}" if node.type else ""
            id = f"<{node_iri(node.id)}>" if self._language == "sparql" else _quoted(node.id)
            lines.append(f"name {_quoted(node.name)}{kind}, id {id}")
        lines += [f"{one.kind} {one.value}" for one in linked.literals]
        lines += [f"value {one} ({one.count:,} nodes)" for one in linked.values]
        return "\n".join(dict.fromkeys(lines)) or "(none was found)"


def _quoted(text: str) -> str:
    """Write a text as JSON does, which both query languages read as they read their own strings."""
    return json.dumps(text, ensure_ascii=False)


def unite(direct: Sequence[AnswerItem], evidence: Sequence[Evidence], grounds: CitationChecker) -> list[AnswerItem]:
    """Return a model's own answers, then further ones of the rows, each citing the rows that hold it.

    Args:
        direct: the model's answers, best first.
        evidence: numbered items, rows among them.
        grounds: finds the items that hold an answer.
    """
    rows = [row for item in evidence if isinstance(item, RowsEvidence) for row in _answering(item)]
    found: dict[str, tuple[str, EntityId | None]] = {}
    for one in (
        *((answer.name, answer.id) for answer in direct),
        *(said for row in rows for said in _flatten_cell(row)),
    ):
        found.setdefault(normalize_name(one[0]), one)
    united = []
    for place, (name, id) in enumerate(found.values()):
        held = grounds.of(name)
        node = id if id is not None else next((held[item] for item in held if held[item] is not None), None)
        value_of, identified = grounds.origin(name) if node is None and held else ("", None)
        united.append(AnswerItem(name, node or identified, 1 / (1 + place), tuple(held), value_of=value_of))
    return united


def _answering(item: RowsEvidence) -> Sequence[tuple[Cell, ...]]:
    """Return the rows of a query, of the column `answer` alone if there is one."""
    if _ANSWER not in item.columns:
        return item.rows
    place = item.columns.index(_ANSWER)
    return [row[place : place + 1] for row in item.rows]


_ANSWER = "answer"
"""Column of a query that holds the answers, after the prompts for queries."""


def _flatten_cell(cell: Cell) -> Iterator[tuple[str, EntityId | None]]:
    """Yield the possible answers in a cell: nodes by name, values as text, and so for all nested cells."""
    if isinstance(cell, NodeCell):
        yield cell.name, cell.id
    elif isinstance(cell, bool):
        yield str(cell).lower(), None
    elif isinstance(cell, str | int | float):
        if text := str(cell).strip():
            yield text, None
    elif isinstance(cell, PathCell):
        for node in cell.nodes:
            yield from _flatten_cell(node)
    elif isinstance(cell, Mapping):
        for value in cell.values():
            yield from _flatten_cell(value)
    elif isinstance(cell, Sequence):
        for value in cell:
            yield from _flatten_cell(value)


def direct_query_pipeline(
    parts: Parts,
    answers: Answers = "united",
    repairs: int = 0,
    timeout_s: float = 10.0,
    max_rows: int = 200,
    grounding: Grounding = "substitute",
    budgets: Budgets = Budgets(),
) -> DirectQuery:
    """Assemble the pipeline for one graph, which has to run queries, and one language model.

    Args:
        parts: the shared parts.
        answers: `united` adds the answers of the rows to the model's answers without a graph; `rows` answers from
            the rows.
        repairs, timeout_s, max_rows, grounding: see `QueryRetriever`.
        budgets: of the schema and the rows in a prompt.

    Raises:
        ConfigError: the store runs no queries, or a setting is out of range.
    """
    parts, context = budgeted(parts, budgets)
    retriever = QueryRetriever(parts, repairs, timeout_s, max_rows, budgets.schema_tokens, grounding)
    return DirectQuery(
        parts,
        LlmLinker(parts, ["entities"], (), budgets.schema_tokens),
        QueryWriter(parts, retriever.languages[0], budgets.schema_tokens),
        retriever,
        Direct(parts),
        LlmAnswerer(parts, context),
        answers,
    )


def budgeted(parts: Parts, budgets: Budgets) -> tuple[Parts, ContextWriter]:
    """Return parts that count and write within budgets, and their writer of evidence."""
    count = token_counter(budgets.tokens, parts.model.chat_model)
    context = ContextWriter(parts.store, budgets.context_tokens, count_tokens=count, embedder=parts.embedder)
    return parts.replace(context=context, count_tokens=count), context


QUERY = "query"

RETRIEVERS: Mapping[str, RetrieverFactory | None] = MappingProxyType(
    {
        "path": PathRetriever,
        QUERY: QueryRetriever,
        "agentic": AgenticRetriever,
        "text": TextRetriever,
        "bfsql": BfsqlRetriever,
    }
)
"""Those of `pipeline=byokg`, with their default settings."""


@dataclass(frozen=True)
class Rounds:
    """Rounds of ByoKG-RAG.

    Args:
        most: iterations at most (T_R).
        queries: rounds before these in which the model writes nothing but a query, with the outcome of the
            one before, until one returns rows.
        stop_when: end of rounds: a query has returned all of its rows, or nothing new is proposed (`answered`); nothing
            new alone; or already no new entity, as in the paper.
    """

    most: int = 2
    queries: int = 0
    stop_when: Literal["answered", "nothing_new", "no_new_entity"] = "answered"

    @property
    def ending(self) -> tuple[StopRule, bool]:
        """The rule that ends a stage, and whether whole rows of a query end all."""
        return ("nothing_new", True) if self.stop_when == "answered" else (self.stop_when, False)


def byokg_pipeline(
    parts: Parts,
    retrievers: Mapping[str, RetrieverFactory | None] = RETRIEVERS,
    rounds: Rounds = Rounds(),
    tasks: Sequence[Task] = TASKS,
    merge_drafts: bool = False,
    budgets: Budgets = Budgets(),
    examples: Examples = Examples(),
) -> Loop:
    """Assemble the pipeline for one graph and one language model; the graph's schema is read at once.

    Args:
        parts: the shared parts.
        retrievers: factories by name; None switches one off. The one named `query` is left out if the graph runs no
            queries.
        rounds: number of rounds, and their end.
        tasks: tasks of the KG-Linker; without any, the model is not called, and only entities that come with the
            question are linked. It writes a query in each language of the graph.
        merge_drafts: add the draft answers of the first round, which ignore the graph, to the answers: counted by
            Hit@2. Needs the task `answers`, which rounds of queries then include as well.
        budgets: of the schema and the evidence in a prompt.
        examples: solved questions, of which the KG-Linker sees the most similar.

    Raises:
        ConfigError: a setting is out of range, or a retriever needs a part that this pipeline lacks.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "ByoKG-RAG Implementation"; `merge_drafts` after "Datasets & Metrics".
    """
    if merge_drafts and "answers" not in tasks:
        raise ConfigError(
            "merge_drafts=true needs draft answers, and nobody is asked for any; add 'answers' to tasks: "
            f"{','.join([*tasks, 'answers'])}"
        )
    parts, context = budgeted(parts, budgets)
    solved = examples.writer(parts.store, parts.embedder)
    made = parts.retrievers(runnable(retrievers, parts))
    from byokg.offline import entity_spotter

    spotted = entity_spotter(parts)

    def linker(wanted: Sequence[Task]) -> KGLinker:
        if not wanted:
            return GoldEntities()
        return LlmLinker(
            parts,
            wanted,
            parts.languages,
            budgets.schema_tokens,
            solved=solved,
            spotted=spotted,
            max_hops=reach(made.values()),
        )

    stages = [Stage(linker(tasks), tuple(made.values()), rounds.most, *rounds.ending)]
    if rounds.queries or (not made and retrievers.get(QUERY) is not None):
        _check_queries(parts, made, rounds)
    if rounds.queries:
        first: Sequence[Task] = ["query", "answers"] if merge_drafts else ["query"]
        stages.insert(0, Stage(linker(first), (made[QUERY],), rounds.queries, "rows", rounds.ending[1]))
    return Loop(parts.entities, stages, LlmAnswerer(parts, context, merge_drafts))


def _check_queries(parts: Parts, made: Mapping[str, Retriever], rounds: Rounds) -> None:
    """Raise `ConfigError` unless the graph runs queries, and a retriever runs those of the first rounds."""
    if not parts.languages:
        raise ConfigError(
            f"this pipeline asks for queries, and {parts.store.name} runs none; choose graph=arcadedb (openCypher) or "
            "graph=oxigraph (SPARQL)"
        )
    if rounds.queries and QUERY not in made:
        raise ConfigError(f"rounds.queries={rounds.queries} needs the retriever 'query', which is off; use 0")


def runnable(retrievers: Mapping[str, RetrieverFactory | None], parts: Parts) -> dict[str, RetrieverFactory | None]:
    """Return the retrievers that a graph allows: that of queries only if it runs any."""
    return {name: make for name, make in retrievers.items() if name != QUERY or parts.languages}


def reach(retrievers: Iterable[Retriever]) -> int:
    """Return how many edges from a seed the retriever of BFS-QL requests walks; without one, how many it would."""
    return next((each.max_hops for each in retrievers if isinstance(each, BfsqlRetriever)), BFSQL_HOPS)
