"""Retrievers and linkers as LangChain runnables, so that they stand in any chain.

    chain = {"facts": GraphRetriever(retriever=text, store=store), "question": RunnablePassthrough()} | prompt | model

Each runs in a chain's own ways: `invoke`, `batch` (in threads), `ainvoke` (in a thread beside the event loop).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Annotated, Any, Protocol

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import ConfigDict, SkipValidation

from byokg.graph.store import GraphStore
from byokg.linking.entities import EntityLinker
from byokg.retrieval.verbalize import names_of, nodes_of, verbalize, verbalize_path
from byokg.types import (
    Answer,
    Artifacts,
    Context,
    Evidence,
    Feedback,
    Linked,
    Mention,
    NodeEvidence,
    PathEvidence,
    Question,
    Request,
    Retriever,
    RowsEvidence,
    TripleEvidence,
)

ASKED = "ask"
"""Id of a question that came as text."""


class Proposes(Protocol):
    """A KG-Linker: with a language model (`LlmLinker`) or without (`OfflineLinker`)."""

    def propose(self, question: Question, context: Context) -> Artifacts:
        """Return mentions of the question and artifacts for retrieval."""


class GraphRetriever(BaseRetriever):
    """A retriever of ours as one of LangChain's: from a question to documents, best first.

    A document holds one item of evidence as text. Its metadata are the `retriever`, the `score`, and the ids of the
    nodes shown (`nodes`); of triples and paths also `relations` and the numbers of the `edges`, of queries `language`
    and `query`. Feedback on a written query is no document.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    retriever: Annotated[Retriever, SkipValidation]
    store: Annotated[GraphStore, SkipValidation]
    """Gives the names of nodes."""
    linker: Annotated[Proposes | None, SkipValidation] = None
    """Proposes entities, paths and queries; None for a retriever that reads the question alone, such as text's."""
    entities: Annotated[EntityLinker | None, SkipValidation] = None
    """Links the linker's mentions to nodes."""
    shown: int = 20
    """Ends of a path, and rows of a query, that are written out; the rest is counted."""

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        request = _request(query, self.linker, self.entities)
        return documents(self.store, self.retriever.retrieve(request), self.shown)


class RunnablePipeline(Protocol):
    """A pipeline that streams, such as `Byokg`."""

    def invoke(self, input: Any) -> Answer:
        """Answer a question."""

    def stream(self, input: Any) -> Iterator[Any]:
        """Yield events, and the answer last."""

    def astream(self, input: Any) -> AsyncIterator[Any]:
        """Yield events, and the answer last, beside the event loop."""


class Answering(Runnable[Any, Any]):
    """A pipeline as a runnable, from a question to an `Answer`; its stream has stages and tokens before it."""

    def __init__(self, pipeline: RunnablePipeline) -> None:
        self._pipeline = pipeline
        self.name = type(pipeline).__name__

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Answer:
        """Answer a question."""
        answer: Answer = self._call_with_config(lambda asked: self._pipeline.invoke(asked), input, config)
        return answer

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Answer:
        """Answer a question beside the event loop."""
        answer = [event async for event in self.astream(input, config)][-1]
        assert isinstance(answer, Answer)
        return answer

    def stream(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Iterator[Any]:
        """Yield stages and tokens, and the answer last."""

        def events(inputs: Iterator[Any]) -> Iterator[Any]:
            return self._pipeline.stream(next(inputs))

        return self._transform_stream_with_config(iter([input]), events, config)

    async def astream(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> AsyncIterator[Any]:
        """Yield stages and tokens, and the answer last, beside the event loop."""

        async def one() -> AsyncIterator[Any]:
            yield input

        async def events(inputs: AsyncIterator[Any]) -> AsyncIterator[Any]:
            async for asked in inputs:
                async for event in self._pipeline.astream(asked):
                    yield event

        async for event in self._atransform_stream_with_config(one(), events, config):
            yield event


def kg_linker(linker: Proposes) -> Runnable[str, Artifacts]:
    """Return a KG-Linker as a step that takes a question and gives the artifacts of a first round."""
    return RunnableLambda(lambda question: linker.propose(_question(question), Context()), name="kg_linker")


def entity_linker(entities: EntityLinker) -> Runnable[Artifacts | str | Sequence[str], Linked]:
    """Return an entity linker as a step that takes artifacts, a name, or several, and gives linked entities."""

    def link(given: Artifacts | str | Sequence[str]) -> Linked:
        if isinstance(given, Artifacts):
            return entities.link(given)
        names = [given] if isinstance(given, str) else given
        return entities.link(Artifacts(mentions=tuple(map(Mention, names))))

    return RunnableLambda(link, name="entity_linker")


def linking(linker: Proposes, entities: EntityLinker) -> Runnable[str, Request]:
    """Return a step from a question to the request of every retriever: its artifacts, linked."""
    return RunnableLambda(lambda question: _request(question, linker, entities), name="linking")


def retrieving(retriever: Retriever) -> Runnable[Request, list[Evidence]]:
    """Return a retriever as a step behind `linking`; several in parallel share the links."""
    return RunnableLambda(lambda request: list(retriever.retrieve(request)), name=type(retriever).__name__)


def documents(store: GraphStore, evidence: Sequence[Evidence], shown: int = 20) -> list[Document]:
    """Write evidence as documents, in its order; see `GraphRetriever`."""
    cited = [item for item in evidence if not isinstance(item, Feedback)]
    names = names_of(store, cited, shown)
    found = []
    for item in cited:
        text = verbalize(item, names, shown)
        if isinstance(item, PathEvidence) and len(item.ends) == 1 and item.paths:
            text = verbalize_path(item.paths[0], names)  # for one end the walk; for many only their common part
        found.append(Document(text, metadata=_metadata(item, shown)))
    return found


def _metadata(item: Evidence, shown: int) -> dict[str, Any]:
    known: dict[str, Any] = {"retriever": item.retriever, "score": item.score}
    known["nodes"] = [item.node.id] if isinstance(item, NodeEvidence) else list(dict.fromkeys(nodes_of(item, shown)))
    if isinstance(item, PathEvidence):
        known["relations"] = list(item.relations)
        known["edges"] = [triple.edge for path in item.paths[:shown] for triple in path.triples]
    elif isinstance(item, TripleEvidence):
        known["relations"] = [item.triple.relation]
        known["edges"] = [item.triple.edge]
    elif isinstance(item, RowsEvidence):
        known |= {"language": item.language, "query": item.query}
    return known


def _question(text: str) -> Question:
    return Question(ASKED, text)


def _request(text: str, linker: Proposes | None, entities: EntityLinker | None) -> Request:
    question = _question(text)
    artifacts = Artifacts() if linker is None else linker.propose(question, Context())
    linked = Linked() if entities is None else entities.link(artifacts, text)
    return Request(question, artifacts, linked, Context())
