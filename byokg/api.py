"""The doors for notebooks and scripts: `KnowledgeGraph` opens a graph, `Byokg` answers questions over it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from byokg.errors import ConfigError, EntityNotFound
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph
from byokg.graph.importers.dialects import DETECTED, TableOptions
from byokg.graph.paths import Walks, follow
from byokg.graph.store import Direction, GraphStore, Schema
from byokg.graph.traversal import neighbours, triples
from byokg.index.embedders import Embedder
from byokg.linking.entities import EntityLinker
from byokg.linking.parts import Parts
from byokg.llm.model import LanguageModel
from byokg.offline import mention_spotter as mention_spotter
from byokg.offline import offline_pipeline as offline_pipeline
from byokg.open import open_graph, open_queryable
from byokg.pipelines.byokg import byokg_pipeline
from byokg.pipelines.loop import Loop
from byokg.prompts import PromptLibrary
from byokg.text.languages import LanguageChoice
from byokg.types import Answer, EntityId, Node, Question, Triple

if TYPE_CHECKING:
    import networkx
    import torch_geometric
    from langchain_core.language_models.chat_models import BaseChatModel

    from byokg.graph.pathql.budget import PathLimits
    from byokg.graph.pathql.extras.rules import Inferred
    from byokg.graph.pathql.query import InferenceRule
    from byokg.graph.pathql.result import PathResult


class KnowledgeGraph:
    """Asks any store about single entities by id; whatever asks for many uses `store` and `traversal`.

    >>> kg = KnowledgeGraph.from_triples([("France", "capital", "Paris"), ("Seine", "flows_through", "Paris")])
    >>> [triple.tail for triple in kg.triples("France")]
    ['Paris']
    """

    def __init__(self, store: GraphStore) -> None:
        self.store = store

    @classmethod
    def open(cls, place: str | Path, queries: bool = False, **settings: Any) -> KnowledgeGraph:
        """Open a saved graph, or one on a server (see `byokg.open`). Raises what `open_graph` raises.

        With `queries`, the engine that was built into a folder is started (`byokg graph engine DIR --cypher`), so that
        pipelines can ask it; raises what `open_queryable` raises. A server is queried anyway. Settings are those of the
        server's store, such as `id_property`.

        `close` a graph on a server or with an engine, or open it in a `with` statement.
        """
        return cls(open_queryable(place, **settings) if queries else open_graph(place, **settings))

    @classmethod
    def build(
        cls, source: str | Path, out: str | Path, overwrite: bool = False, options: TableOptions = DETECTED
    ) -> KnowledgeGraph:
        """Import a file or folder (see `importers`), save it to `out` with indexes of names and values, and open that.

        The columns of tables are detected unless `options` decide; `importers.choose.files_read(graph.store)` says how.
        """
        from byokg.graph.value_indexes import build_indexes

        graph = build_graph(source, out, overwrite, options)
        build_indexes(graph)
        return cls(graph)

    @classmethod
    def from_triples(cls, triples: Iterable[tuple[str, str, str]]) -> KnowledgeGraph:
        """Hold (head, relation, tail) triples in memory."""
        return cls(ColumnarGraph.from_triples(triples))

    def close(self) -> None:
        """Let go of a server's connections, or end an engine; a saved graph holds neither."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
        return triples(self.store, neighbours(self.store, [EntityId(entity)], direction, relations))

    def follow(self, entity: str, metapath: Sequence[str]) -> Walks:
        """Walk a relation path out of one entity. Raises `EntityNotFound` or `RelationNotFound`."""
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
            EntityNotFound: a start or end is not in the graph; the nearest nodes are proposed.
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
        self.graph = graph if isinstance(graph, KnowledgeGraph) else KnowledgeGraph(graph)
        _check_names(settings, asks=llm is not None)
        if isinstance(llm, str):
            raise ConfigError(f"llm={llm!r} is a name; pass a LangChain chat model, such as ChatOpenAI(model={llm!r})")
        model = llm if llm is None or isinstance(llm, LanguageModel) else LanguageModel(llm)
        parts = Parts(self.graph.store, model, embedder, entities, prompts, language)
        self.pipeline: Loop = (offline_pipeline if llm is None else byokg_pipeline)(parts, **settings)
        """The parts, which can be looked at and exchanged."""

    def run(self, question: Question) -> Answer:
        """Answer one question. Raises what `Loop.run` raises."""
        return self.pipeline.run(question)

    def ask(self, text: str) -> Answer:
        """Answer a question given as text."""
        return self.run(Question(id="ask", text=text))

    def paths(
        self,
        query: str,
        limits: PathLimits | None = None,
        rules: str | Sequence[InferenceRule] | Inferred | None = None,
    ) -> PathResult:
        """Run a path query on the graph; see `KnowledgeGraph.paths`."""
        return self.graph.paths(query, limits, rules)


def _check_names(settings: Mapping[str, object], asks: bool) -> None:
    """Refuse settings that the pipeline does not have."""
    with_model = _settings_of(byokg_pipeline)
    known = with_model if asks else _settings_of(offline_pipeline)
    for name in settings:
        if name not in known:
            place = " without a language model" if name in with_model else ""
            raise ConfigError(f"no setting {name!r}{place}; there is {', '.join(known)}")


def _settings_of(make: Callable[..., Loop]) -> list[str]:
    return [name for name in inspect.signature(make).parameters if name != "parts"]
