"""The loop: propose, link, retrieve, and again until nothing new comes; then answer."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from byokg.errors import ConfigError
from byokg.linking.entities import EntityLinker
from byokg.retrieval.base import Request, Retriever
from byokg.types import Answer, AnswerItem, Artifacts, Context, Question, RowsEvidence, Step

ENDED = "ended"
"""What a round that ends a stage notes, with `because`: it proposed, and nothing was retrieved."""


class KGLinker(Protocol):
    """Writes the artifacts of a round."""

    def propose(self, question: Question, context: Context) -> Artifacts:
        """Return what the question mentions and how to get from there to the answer."""


class Answerer(Protocol):
    """Turns what was gathered into answers."""

    def answer(self, question: Question, context: Context) -> Sequence[AnswerItem]:
        """Return answers best first, each once."""


@dataclass(frozen=True)
class Stage:
    """Rounds of one kind: who proposes, who retrieves, and when there is enough.

    A stage ends after `rounds`; with `until="nothing_new"` also before retrieval, when the linker says so or, after
    the stage's first round, links no entity that was not linked before; with `until="rows"` after a round in which
    a query returned rows. The round that ends a stage before retrieval is kept, without evidence.
    """

    linker: KGLinker
    retrievers: tuple[Retriever, ...]
    rounds: int = 2
    until: Literal["nothing_new", "rows"] = "nothing_new"


class Loop:
    """Answers questions over a graph; every part can be exchanged.

    Args:
        entities: ties mentions to nodes.
        stages: rounds of retrieval, of one kind after the other; each sees what those before it found.
        answerer: answers from the evidence.

    Raises:
        ConfigError: there is no stage, or one without a round.

    Source: ByoKG-RAG (arXiv:2507.04127v1), Algorithm 2, which is one stage.
    Differs: the first round retrieves also where nothing was linked, since a question that counts or compares may name
    no entity and still have a query.
    """

    def __init__(self, entities: EntityLinker, stages: Sequence[Stage], answerer: Answerer) -> None:
        if not stages:
            raise ConfigError("a pipeline without a stage retrieves nothing; give one or more")
        for stage in stages:
            if stage.rounds < 1:
                raise ConfigError(f"rounds={stage.rounds} answers nothing; use 1 or more")
        self.entities = entities
        self.stages = tuple(stages)
        self.answerer = answerer

    def run(self, question: Question) -> Answer:
        """Answer one question.

        Raises:
            LlmError: a language model gave no usable reply.
            GraphError: the graph cannot be read, or does not hold an entity that came with the question.
        """
        context = Context()
        seconds: dict[str, float] = defaultdict(float)
        for stage in self.stages:
            for number in range(stage.rounds):
                began = time.perf_counter()
                artifacts = stage.linker.propose(question, context)
                linked = self.entities.link(artifacts, question.text)
                seconds["link"] += time.perf_counter() - began
                new = number == 0 or stage.until == "rows" or linked.unseen(context)
                if artifacts.finished or not new:
                    because = "the KG-Linker has finished" if artifacts.finished else "no entity was linked that is new"
                    context = context.add(artifacts, linked, [], [Step(ENDED, {}, {"because": because})])
                    break
                began = time.perf_counter()
                request = Request(question, artifacts, linked, context)
                found = [retriever.retrieve(request) for retriever in stage.retrievers]
                context = context.add(artifacts, linked, found, request.steps)
                seconds["retrieve"] += time.perf_counter() - began
                if stage.until == "rows" and any(
                    isinstance(item, RowsEvidence) and item.rows for item in context.rounds[-1].evidence
                ):
                    break
        began = time.perf_counter()
        items = tuple(self.answerer.answer(question, context))
        seconds["answer"] += time.perf_counter() - began
        return Answer(question.id, items, context.rounds, dict(seconds))

    def ask(self, text: str) -> Answer:
        """Answer a question given as text."""
        return self.run(Question(id="ask", text=text))
