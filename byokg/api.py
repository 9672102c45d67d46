"""The doors for notebooks and scripts: `KnowledgeGraph` opens a graph, `Byokg` answers questions over it."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byokg.errors import ConfigError, EntityNotFound
from byokg.files import Closing
from byokg.graph.store import Direction, GraphStore, Schema
from byokg.text.tabular import TableView, Tabular
from byokg.types import Answer, EntityId, Node, Question, Triple

if TYPE_CHECKING:
    import networkx
    import torch_geometric
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.runnables import Runnable

    from byokg.graph.importers.dialects import TableOptions
    from byokg.graph.pathql.extras.rules import Inferred
    from byokg.graph.pathql.query import InferenceRule
    from byokg.graph.pathql.result import PathResult
    from byokg.graph.pathql.search import PathLimits
    from byokg.graph.paths import Walks
    from byokg.index.embedders import Embedder
    from byokg.linking.entities import EntityLinker
    from byokg.llm.model import LanguageModel
    from byokg.offline import MentionSpotter
    from byokg.offline import offline_pipeline as offline_pipeline
    from byokg.pipelines.follow_up import Turn
    from byokg.pipelines.instrumentation import StageHook, StreamEvent
    from byokg.pipelines.loop import Loop
    from byokg.prompts import PromptLibrary
    from byokg.text.languages import LanguageChoice


class KnowledgeGraph(Tabular, Closing):
    """Asks any store about single entities by id; whatever asks for many uses `store` and `traversal`.

    >>> kg = KnowledgeGraph.from_triples([("France", "capital", "Paris"), ("Seine", "flows_through", "Paris")])
    >>> [triple.tail for triple in kg.triples("France")]
    ['Paris']
    """

    def __init__(self, store: GraphStore) -> None:
        self.store = store

    def __repr__(self) -> str:
        return f"KnowledgeGraph({self.store!r})"

    def _table(self) -> TableView:
        summary, columns, rows = self.schema()._table()
        return TableView(f"{self.store.name}: {summary}", columns, rows)

    @classmethod
    def open(cls, place: str | Path, queries: bool = False, **settings: Any) -> KnowledgeGraph:
        """Open a saved graph, or one on a server (see `byokg.open`). Raises what `open_graph` raises.

        With `queries`, the engine that was built into a folder is started (`byokg graph engine DIR --cypher`), so that
        pipelines can ask it; raises what `open_queryable` raises. A server is queried anyway. Settings are those of the
        server's store, such as `id_property`.

        `close` a graph on a server or with an engine, or open it in a `with` statement.
        """
        from byokg.open import open_graph, open_queryable

        return cls(open_queryable(place, **settings) if queries else open_graph(place, **settings))

    @classmethod
    def build(
        cls, source: str | Path, out: str | Path, overwrite: bool = False, options: TableOptions | None = None
    ) -> KnowledgeGraph:
        """Import a file or folder (see `importers`), save it to `out` with indexes of names and values, and open that.

        The columns of tables are detected unless `options` decide; `importers.choose.files_read(graph.store)` says how.
        """
        from byokg.graph.importers.choose import build_graph
        from byokg.graph.importers.dialects import DETECTED
        from byokg.graph.value_indexes import build_indexes

        graph = build_graph(source, out, overwrite, options or DETECTED)
        build_indexes(graph)
        return cls(graph)

    @classmethod
    def from_triples(cls, triples: Iterable[tuple[str, str, str]]) -> KnowledgeGraph:
        """Hold (head, relation, tail) triples in memory."""
        from byokg.graph.columnar.graph import ColumnarGraph

        return cls(ColumnarGraph.from_triples(triples))

    def close(self) -> None:
        """Let go of a server's connections, or end an engine; a saved graph holds neither."""
        self.store.close()

    def schema(self) -> Schema:
        """Return node types and relations with counts."""
        return self.store.schema()

    def node(self, entity: str) -> Node:
        """Return name, type and properties of one entity. Raises `EntityNotFound`."""
        return self.store.nodes([EntityId(entity)])[0]

    def triples(
        self, entity: str, direction: Direction = Direction.BOTH, relations: Collection[str] | None = None
    ) -> list[Triple]:
        """Return the edges touching one entity. Raises `EntityNotFound` or `RelationNotFound`."""
        from byokg.graph.traversal import neighbours, triples

        return triples(self.store, neighbours(self.store, [EntityId(entity)], direction, relations))

    def follow(self, entity: str, metapath: Sequence[str]) -> Walks:
        """Walk a relation path out of one entity. Raises `EntityNotFound` or `RelationNotFound`."""
        from byokg.graph.paths import follow

        return follow(self.store, [EntityId(entity)], metapath)

    def paths(
        self,
        query: str,
        limits: PathLimits | None = None,
        rules: str | Sequence[InferenceRule] | Inferred | None = None,
    ) -> PathResult:
        """Run a path query: `PATHS START ?x = :Alice END ?y VIA ?p` (see docs/path-queries.md).

        Raises:
            PathQueryInvalid: the text is no path query, or asks for infinitely many paths.
            EntityNotFound: no node has the id or name of a start or end; the nearest nodes are proposed.
            NameAmbiguous: several nodes have its name.
            RelationNotFound: a relation is not in the graph.
        """
        from byokg.graph.pathql.evaluate import paths

        try:
            return paths(self.store, query, limits, rules)
        except EntityNotFound as error:
            from byokg.retrieval.graph_tools import GraphTools

            raise GraphTools(self.store).propose(error) from None

    def to_networkx(self) -> networkx.MultiGraph:
        """Return the whole graph as NetworkX holds it (`byokg.graph.export_formats`). Raises `MissingExtra`."""
        from byokg.graph.export_formats import networkx_graph

        return networkx_graph(self.store)

    def to_pyg(self) -> torch_geometric.data.Data:
        """Return the graph's edges as PyTorch Geometric holds them. Raises `MissingExtra`."""
        from byokg.graph.export_formats import pyg_data

        return pyg_data(self.store)


class Byokg:
    """Answers questions over a graph: by ByoKG-RAG with a language model, and without one by the offline pipeline.

    kg = KnowledgeGraph.open("graphs/films")
    answer = Byokg(kg, llm=ChatAnthropic(model="claude-sonnet-5")).ask("Who directed Heat?")

    It has all methods of a LangChain runnable, whose input is a text, a `Question`, or a mapping with `question` and
    possibly `history`, and stands in a chain on either side of `|`; `runnable` is an instance of LangChain's class.
    A `config` with callbacks, tags or metadata is LangChain's; without one nothing of LangChain is imported.

    Args:
        graph: the graph.
        llm: any LangChain chat model; or a `LanguageModel`, which also records, counts and limits.
        embedder, entities, prompts, language: of the shared parts, see `Parts`.
        settings: those of `byokg_pipeline`, or of `offline_pipeline` without a language model.

    Raises:
        ConfigError: a setting is out of range or not known, or `llm` is no model.

    >>> kg = KnowledgeGraph.from_triples([("France", "capital", "Paris"), ("Spain", "capital", "Madrid")])
    >>> [item.name for item in Byokg(kg).ask("What is the capital of France?").items]
    ['Paris']

    With a language model it is ``Byokg(kg, llm=ChatAnthropic(model="MODEL"))``.
    """

    def __init__(
        self,
        graph: KnowledgeGraph | GraphStore,
        llm: BaseChatModel | LanguageModel | None = None,
        *,
        embedder: Embedder | None = None,
        entities: EntityLinker | None = None,
        prompts: PromptLibrary | None = None,
        language: LanguageChoice = "auto",
        **settings: Any,
    ) -> None:
        from byokg.linking.parts import Parts
        from byokg.llm.model import LanguageModel

        self.graph = graph if isinstance(graph, KnowledgeGraph) else KnowledgeGraph(graph)
        make = _checked_pipeline(settings, asks=llm is not None)
        if isinstance(llm, str):
            raise ConfigError(f"llm={llm!r} is a name; pass a LangChain chat model, such as ChatOpenAI(model={llm!r})")
        self._model = llm if llm is None or isinstance(llm, LanguageModel) else LanguageModel(llm)
        self._prompts = prompts
        self.pipeline: Loop = make(
            Parts(self.graph.store, self._model, embedder, entities, prompts, language), **settings
        )
        """The parts, which can be looked at and exchanged."""

    def run(self, question: Question) -> Answer:
        """Answer one question. Raises what `Loop.run` raises."""
        return self.pipeline.run(question)

    def ask(self, text: str, history: Sequence[Turn] = ()) -> Answer:
        """Answer a question given as text.

        Args:
            text: the question.
            history: earlier questions with their answers, which it may lean on (see `pipelines.follow_up`).

        >>> byokg = Byokg(KnowledgeGraph.from_triples([("France", "capital", "Paris"), ("Spain", "capital", "Madrid")]))
        >>> first = byokg.ask("What is the capital of France?")
        >>> byokg.ask("And of Spain?", history=[("What is the capital of France?", first)]).items[0].name
        'Madrid'
        """
        return self._answer({"question": text, "history": history})

    def batch(
        self,
        inputs: Sequence[Asked],
        config: Any = None,
        *,
        workers: int = 4,
        progress: bool = False,
        return_exceptions: bool = False,
    ) -> list[Any]:
        """Answer several questions concurrently, in their order.

        Args:
            inputs: the questions.
            config: of LangChain; its `max_concurrency` takes the place of `workers`.
            workers: questions answered at a time.
            progress: True to show a progress bar.
            return_exceptions: True to return the error of a question in place of its answer.

        Raises:
            ByokgError: the first error of a question, unless they are returned.
        """
        from rich.progress import track

        def attempt(asked: Asked) -> Answer | Exception:
            try:
                return self._answer(asked)
            except Exception as error:
                if return_exceptions:
                    return error
                raise

        most = (config or {}).get("max_concurrency") or workers
        with ThreadPoolExecutor(most, thread_name_prefix="byokg-batch") as pool:
            answers = pool.map(attempt, inputs)
            return list(track(answers, "questions", len(inputs)) if progress else answers)

    def invoke(self, input: Asked, config: Any = None, **_: Any) -> Answer:
        """Answer a question. Raises what `Loop.run` raises."""
        return self.runnable.invoke(input, config) if config else self._answer(input)

    def __call__(self, input: Asked) -> Answer:
        """Answer a question: callable objects stand in a LangChain chain, `prompt | byokg`. Raises as `invoke` does."""
        return self._answer(input)

    async def ainvoke(self, input: Asked, config: Any = None, **_: Any) -> Answer:
        """Answer a question beside the event loop; its cancellation ends the work. Raises what `Loop.run` raises."""
        answer = [event async for event in self.astream(input, config)][-1]
        assert isinstance(answer, Answer)
        return answer

    def stream(self, input: Asked, config: Any = None, **_: Any) -> Iterator[StreamEvent | Answer]:
        """Yield stages and tokens as they come (`StreamEvent`), and the answer last. Raises what `Loop.run` raises."""
        from byokg.pipelines.instrumentation import stream

        if config:
            return self.runnable.stream(input, config)
        return stream(lambda hook: self._answer(input, hook))

    def astream(self, input: Asked, config: Any = None, **_: Any) -> AsyncIterator[StreamEvent | Answer]:
        """Yield what `stream` does, beside the event loop."""
        from byokg.pipelines.instrumentation import astream

        if config:
            return self.runnable.astream(input, config)
        return astream(lambda hook: self._answer(input, hook))

    @cached_property
    def runnable(self) -> Runnable[Asked, Answer]:
        """The same as an instance of LangChain's `Runnable`."""
        from byokg.retrieval.langchain import Answering

        return Answering(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self.runnable, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.runnable, name)

    def __or__(self, other: Any) -> Any:
        return self.runnable | other

    def __ror__(self, other: Any) -> Any:
        return other | self.runnable

    def paths(
        self,
        query: str,
        limits: PathLimits | None = None,
        rules: str | Sequence[InferenceRule] | Inferred | None = None,
    ) -> PathResult:
        """Run a path query on the graph; see `KnowledgeGraph.paths`."""
        return self.graph.paths(query, limits, rules)

    def _answer(self, asked: Asked, hook: StageHook | None = None) -> Answer:
        history: Sequence[Turn] = ()
        if isinstance(asked, Mapping):
            if "question" not in asked:
                raise ConfigError(f"an input needs a question, and has {', '.join(map(str, asked)) or 'nothing'}")
            history, asked = asked.get("history", ()), asked["question"]
        question = asked if isinstance(asked, Question) else Question("ask", str(asked))
        pipeline = self.pipeline if hook is None else self.pipeline.hooked(hook)
        if not history:
            return pipeline.run(question)
        from byokg.pipelines.follow_up import answer_follow_up

        return answer_follow_up(pipeline, question, history, self._model, self._prompts)


def mention_spotter(store: GraphStore, embedder: Embedder, entities: EntityLinker) -> MentionSpotter:
    """Return the offline pipeline's mention detector, by itself."""
    made: MentionSpotter = _offline().mention_spotter(store, embedder, entities)
    return made


Asked = str | Question | Mapping[str, Any]
"""A question: its text, a record, or a mapping with `question` (either of these) and possibly `history`."""


def _checked_pipeline(settings: Mapping[str, object], asks: bool) -> Callable[..., Loop]:
    """Return the pipeline for a graph with a language model, or without. Raises `ConfigError` for unknown settings."""
    from byokg.pipelines.byokg import byokg_pipeline

    offline_pipeline: Callable[..., Loop] = _offline().offline_pipeline
    with_model = _settings_of(byokg_pipeline)
    known = with_model if asks else _settings_of(offline_pipeline)
    for name in settings:
        if name not in known:
            place = " without a language model" if name in with_model else ""
            raise ConfigError(f"no setting {name!r}{place}; there is {', '.join(known)}")
    return byokg_pipeline if asks else offline_pipeline


def _offline() -> Any:
    """Return the offline room, which is imported on demand."""
    import byokg.offline

    return byokg.offline


def _settings_of(make: Callable[..., Loop]) -> list[str]:
    return [name for name in inspect.signature(make).parameters if name != "parts"]
