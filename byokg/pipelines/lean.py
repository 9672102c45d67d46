"""One or two calls a question: offline retrieval first, then the model answers or requests more.

Each prompt shows question, schema and evidence. The reply holds answers with citations, or artifacts for another round.
The parts that differ by question stand at the end of a prompt, so that providers keep its beginning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from byokg.errors import at_least
from byokg.graph.store import GraphStore
from byokg.index.embedders import Embedder, StaticEmbedder
from byokg.linking.demonstrations import Demonstration
from byokg.linking.entities import EntityLinker
from byokg.linking.llm_linker import LlmLinker, Task
from byokg.llm.messages import prompt_messages
from byokg.llm.model import LanguageModel
from byokg.llm.parsing import read_answers
from byokg.llm.reply_blocks import reply_schema
from byokg.llm.usage import ESTIMATE, token_counter
from byokg.offline import OfflineLinker, build_parser_and_ranker
from byokg.pipelines.byokg import QUERY, checked_answers, reach, shared_parts, shown_grounds, solved_text
from byokg.pipelines.components import RetrieverFactory
from byokg.pipelines.context import ContextWriter
from byokg.pipelines.instrumentation import StageClock
from byokg.pipelines.loop import ENDED, KGLinker, is_new, propose_and_link, retrieve_all
from byokg.prompts import PromptLibrary
from byokg.retrieval.path import PathRetriever
from byokg.retrieval.query import QueryRetriever
from byokg.types import Answer, AnswerItem, Artifacts, Context, Question, Request, Retriever, Step

STAGE = "lean"

TASKS: tuple[Task, ...] = ("entities", "paths", "query")

_MORE = "If these facts do not hold the answer, ask for what is missing; you will see what was found."
_LAST = "Nothing more can be retrieved: answer from these facts now, or leave the tags <answers> empty."


class Lean:
    """Answers from evidence retrieved without a language model, or from the model's own requests after that.

    Args:
        model: answers, or writes artifacts.
        first: proposes the first retrieval; needs no model.
        reader: writes the model's tasks and the schema, and reads artifacts.
        entities: links mentions to nodes.
        retrievers: fetch the evidence of every round.
        context: writes the evidence for the prompt.
        store: source of the names of nodes.
        prompts: the prompts.
        rounds: calls of the model for one question at most.

    Raises:
        ConfigError: `rounds` is no number of calls.

    Source: ByoKG-RAG (arXiv:2507.04127v1), Algorithm 2, whose loop it shortens.
    Differs: the first artifacts come from no language model, and artifacts and answer share a call.
    """

    def __init__(
        self,
        model: LanguageModel,
        first: KGLinker,
        reader: LlmLinker,
        entities: EntityLinker,
        retrievers: Sequence[Retriever],
        context: ContextWriter,
        store: GraphStore,
        prompts: PromptLibrary,
        rounds: int = 2,
    ) -> None:
        at_least(1, "asks nobody", rounds=rounds)
        self.entities = entities
        self._model = model
        self._first = first
        self._reader = reader
        self._retrievers = tuple(retrievers)
        self._context = context
        self._store = store
        self._prompt = prompts["lean"]
        self._rounds = rounds

    def run(self, question: Question) -> Answer:
        """Answer one question.

        Raises:
            LlmError: a language model gave no usable reply.
            GraphError: the graph cannot be read, or does not hold an entity that came with the question.
        """
        clock = StageClock()
        context = self._retrieved(question, Context(question=question.text), self._first, clock)
        items: list[AnswerItem] = []
        for left in reversed(range(self._rounds)):
            with clock.stage("answer"):
                shown = self._context.write_for_round(context)
                text = self._call_model(question, context, shown.text, left)
                grounds = shown_grounds(self._store, context, shown)
                answers = read_answers(text, known=grounds.names)
                items = checked_answers(self._store, context, answers, shown, grounds)
            if not left or any(item.cited for item in items):
                break
            artifacts = self._reader.read(text, question, True, shown.text)
            linked = self.entities.link(artifacts, question.text)
            if artifacts.finished or not is_new(artifacts, linked, context):
                context = context.add(
                    artifacts, linked, [], [Step(ENDED, {}, {"because": "nothing new was asked for"})]
                )
                break
            context = self._retrieved(question, context, _FixedProposer(artifacts), clock)
        return Answer(question.id, tuple(items), context.rounds, dict(clock.seconds))

    def _retrieved(self, question: Question, context: Context, linker: KGLinker, clock: StageClock) -> Context:
        """Return the context with one more round: a linker's artifacts, linked, and the evidence for them."""
        artifacts, linked = propose_and_link(linker, self.entities, question, context, clock)
        request = Request(question, artifacts, linked, context)
        found = retrieve_all(self._retrievers, request, clock)
        return context.add(artifacts, linked, found, request.steps)

    def _call_model(self, question: Question, context: Context, facts: str, left: int) -> str:
        """Call the model, with `left` further calls allowed; return its reply."""
        filled = self._prompt.fill(
            tasks=self._reader.tasks_text(later=False),
            schema_part=self._reader.schema_text(question, context),
            graph_context=facts,
            turn=_MORE if left else _LAST,
            question=question.text,
        )
        schema = reply_schema(["answers", *self._reader.tags])
        return self._model.reply(prompt_messages(filled), stage=STAGE, question_id=question.id, schema=schema).text


class _FixedProposer:
    """Proposes artifacts that were written already."""

    def __init__(self, artifacts: Artifacts) -> None:
        self._artifacts = artifacts

    def propose(self, question: Question, context: Context) -> Artifacts:
        """Return them."""
        return self._artifacts


RETRIEVERS: Mapping[str, RetrieverFactory | None] = MappingProxyType({"path": PathRetriever, QUERY: QueryRetriever})
"""Those of `pipeline=byokg_lean`: they ask no language model."""


def lean_pipeline(
    store: GraphStore,
    model: LanguageModel,
    embedder: Embedder | None = None,
    entities: EntityLinker | None = None,
    retrievers: Mapping[str, RetrieverFactory | None] = RETRIEVERS,
    rounds: int = 2,
    tasks: Sequence[Task] = TASKS,
    top_k: int = 10,
    weights: str | Path | None = None,
    schema_tokens: int = 1500,
    context_tokens: int = 3000,
    tokens: str = ESTIMATE,
    prompts: PromptLibrary | None = None,
    examples: str | Path | Sequence[Demonstration] | None = None,
    examples_shown: int = 3,
) -> Lean:
    """Assemble the pipeline for one graph and one language model.

    Args:
        store: the graph; its schema is read at once.
        model: answers, or writes artifacts.
        embedder: compares relations with questions and with the model's labels; None takes the shipped one.
        entities: links mentions; None links fuzzily with its defaults.
        retrievers: factories by name; None switches one off. The one named `query` is left out if the graph
            runs no queries.
        rounds: calls of the model for one question at most.
        tasks: artifacts that the model may write.
        top_k: relation paths that are followed before the first call, for each topic entity.
        weights: folder of `byokg fit`, to rank relation paths by; None takes the shipped weights of the embedder.
        schema_tokens: budget of the schema in a prompt.
        context_tokens: budget of the evidence in a prompt.
        tokens: tokenizer, see `token_counter`.
        prompts: the prompts; None takes those of the package.
        examples, examples_shown: solved questions to show, see `byokg_pipeline`.

    Raises:
        ConfigError: a setting is out of range, or a retriever needs a part that this pipeline lacks.
    """
    embedder = embedder or StaticEmbedder()
    count = token_counter(tokens, model.chat_model)
    prompts = prompts or PromptLibrary()
    entities = entities or EntityLinker(store)
    parts = shared_parts(store, model, embedder, entities, prompts, count, context_tokens)
    languages = tuple(engine.language for engine in store.engines)
    made = parts.retrievers({name: make for name, make in retrievers.items() if name != QUERY or languages})
    return Lean(
        model,
        OfflineLinker(store, entities, *build_parser_and_ranker(store, embedder, entities, weights), top_k=top_k),
        LlmLinker(
            model,
            parts.schema,
            parts.context,
            tasks,
            languages,
            prompts,
            schema_tokens,
            relations=parts.relations,
            solved=solved_text(examples, store, embedder, examples_shown),
            max_hops=reach(made.values()),
        ),
        entities,
        tuple(made.values()),
        parts.context,
        store,
        prompts,
        rounds,
    )
