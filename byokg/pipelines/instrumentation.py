"""Instrumentation of a pipeline's stages: start, duration, results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, cast

from byokg.linking.entities import EntityLinker
from byokg.pipelines.loop import Answerer, KGLinker, Loop
from byokg.types import Answer, AnswerItem, Artifacts, Context, Evidence, Linked, Question, Request, Retriever

Watch = Callable[[str], AbstractContextManager[dict[str, Any]]]
"""Called with the name of a stage (`propose`, `link`, `retrieve NAME`, `answer`); entered as it begins and left as it
ends. Results of the stage are put into the mapping before it is left."""


@dataclass(frozen=True)
class InstrumentedPipeline:
    """A pipeline that answers each question within a context, which receives the answer's results."""

    of: Any
    within: Callable[[Question], AbstractContextManager[dict[str, Any]]]

    def run(self, question: Question) -> Answer:
        """Answer the question."""
        with self.within(question) as brought:
            answer: Answer = self.of.run(question)
            brought["answers"] = [item.name for item in answer.items]
            return answer


def instrument(pipeline: Any, watch: Watch) -> Any:
    """Return a pipeline that does the same, and has its stages watched; one that is no loop is returned as it is.

    A pipeline may be watched by several.
    """
    if isinstance(pipeline, InstrumentedPipeline):
        return replace(pipeline, of=instrument(pipeline.of, watch))
    if not isinstance(pipeline, Loop):
        return pipeline
    stages = [
        replace(
            stage,
            linker=_Linker(stage.linker, watch),
            retrievers=tuple(_WatchedRetriever(each, watch) for each in stage.retrievers),
        )
        for stage in pipeline.stages
    ]
    # Of an entity linker the loop needs nothing else.
    entities = cast(EntityLinker, _Entities(pipeline.entities, watch))
    return Loop(entities, stages, _WatchedAnswerer(pipeline.answerer, watch), pipeline.estimator, pipeline.abstain)


@dataclass(frozen=True)
class _Linker:
    of: KGLinker
    watch: Watch

    def propose(self, question: Question, context: Context) -> Artifacts:
        with self.watch("propose") as brought:
            made = self.of.propose(question, context)
            brought |= {
                "entities": [mention.text for mention in made.mentions],
                "paths": [" / ".join(path.relations) for path in made.paths],
                "queries": [query.text for query in made.queries],
                "draft answers": list(made.draft_answers),
            }
            return made


@dataclass(frozen=True)
class _Entities:
    of: EntityLinker
    watch: Watch

    def link(self, artifacts: Artifacts, question: str = "") -> Linked:
        with self.watch("link") as brought:
            linked = self.of.link(artifacts, question)
            brought["nodes"] = [one.name for one in linked.entities]
            return linked


@dataclass(frozen=True)
class _WatchedRetriever:
    of: Retriever
    watch: Watch

    @property
    def name(self) -> str:
        of = self.of
        return of.name if isinstance(of, _WatchedRetriever) else type(of).__name__.removesuffix("Retriever").lower()

    def retrieve(self, request: Request) -> Sequence[Evidence]:
        with self.watch(f"retrieve {self.name}") as brought:
            found = self.of.retrieve(request)
            brought["evidence"] = len(found)
            return found


@dataclass(frozen=True)
class _WatchedAnswerer:
    of: Answerer
    watch: Watch

    def answer(self, question: Question, context: Context) -> Sequence[AnswerItem]:
        with self.watch("answer") as brought:
            items = self.of.answer(question, context)
            brought["answers"] = [item.name for item in items]
            return items
