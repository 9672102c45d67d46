"""The loop: propose, link, retrieve, and again until nothing new comes; then answer."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

from byokg.errors import ConfigError
from byokg.linking.entities import EntityLinker
from byokg.retrieval.base import Request, Retriever
from byokg.types import Answer, AnswerItem, Artifacts, Context, Question


class KGLinker(Protocol):
    """Writes the artifacts of a round."""

    def propose(self, question: Question, context: Context) -> Artifacts:
        """Return what the question mentions and how to get from there to the answer."""


class Answerer(Protocol):
    """Turns what was gathered into answers."""

    def answer(self, question: Question, context: Context) -> Sequence[AnswerItem]:
        """Return answers best first, each once."""


class Byokg:
    """Answers questions over a graph; every part can be exchanged.

    Args:
        linker: proposes artifacts.
        entities: ties mentions to nodes.
        retrievers: fetch evidence, in this order.
        answerer: answers from the evidence.
        rounds: iterations at most (T_R).

    Source: ByoKG-RAG (arXiv:2507.04127v1), Algorithm 2.
    """

    def __init__(
        self,
        linker: KGLinker,
        entities: EntityLinker,
        retrievers: Sequence[Retriever],
        answerer: Answerer,
        rounds: int = 2,
    ) -> None:
        if rounds < 1:
            raise ConfigError(f"rounds={rounds} answers nothing; use 1 or more")
        self.linker = linker
        self.entities = entities
        self.retrievers = tuple(retrievers)
        self.answerer = answerer
        self.rounds = rounds

    def run(self, question: Question) -> Answer:
        """Answer one question."""
        context = Context()
        seconds: dict[str, float] = defaultdict(float)
        for number in range(self.rounds):
            began = time.perf_counter()
            artifacts = self.linker.propose(question, context)
            linked = self.entities.link(artifacts, question.text)
            seconds["link"] += time.perf_counter() - began
            if artifacts.finished or (number > 0 and not linked.unseen(context)):
                break
            began = time.perf_counter()
            request = Request(question, artifacts, linked, context)
            found = [retriever.retrieve(request) for retriever in self.retrievers]
            context = context.add(artifacts, linked, found, request.steps)
            seconds["retrieve"] += time.perf_counter() - began
        began = time.perf_counter()
        items = tuple(self.answerer.answer(question, context))
        seconds["answer"] += time.perf_counter() - began
        return Answer(question.id, items, context.rounds, dict(seconds))

    def ask(self, text: str) -> Answer:
        """Answer a question given as text."""
        return self.run(Question(id="ask", text=text))
