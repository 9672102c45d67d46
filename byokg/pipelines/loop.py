"""The loop: propose, link, retrieve, and again until nothing new comes; then answer."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from byokg.errors import ConfigError, at_least
from byokg.linking.entities import EntityLinker
from byokg.types import (
    Answer,
    AnswerItem,
    Artifacts,
    Context,
    Feedback,
    Linked,
    Question,
    Request,
    Retriever,
    RowsEvidence,
    Step,
)


class Loop:
    """Answers questions over a graph; every part can be exchanged.

    Args:
        entities: links mentions to nodes.
        stages: rounds of retrieval, of one kind after the other; each sees the evidence of those before it.
        answerer: answers from the evidence.
        estimator: estimates the probability that the first answer is right, which becomes the score of all, and appends
            runners-up; None keeps the scores of the answerer.
        abstain: probability below which there is no answer, in [0, 1].

    Raises:
        ConfigError: there is no stage, or one without a round; or `abstain` is no probability, or has no estimator.

    Source: ByoKG-RAG (arXiv:2507.04127v1), Algorithm 2, which is one stage.
    Differs: the first round retrieves also without linked entities, since a question that counts or compares may name
    no entity and still have a query. A later round without a new entity continues if it proposes a new path,
    query or request: a corrected query is worth running. FINISH of a retriever's model ends all rounds; in the paper it
    ends the agent's walk alone. `until="no_new_entity"` keeps to the letter in both.
    """

    def __init__(
        self,
        entities: EntityLinker,
        stages: Sequence[Stage],
        answerer: Answerer,
        estimator: ConfidenceEstimator | None = None,
        abstain: float = 0.0,
    ) -> None:
        if not stages:
            raise ConfigError("a pipeline without a stage retrieves nothing; give one or more")
        if not 0 <= abstain <= 1:
            raise ConfigError(f"abstain={abstain} is no probability; give one in [0, 1], such as 0.5")
        if abstain and estimator is None:
            raise ConfigError(f"abstain={abstain} needs a confidence estimator; give one, or leave it 0")
        for stage in stages:
            at_least(1, "answers nothing", rounds=stage.rounds)
        self.entities = entities
        self.stages = tuple(stages)
        self.answerer = answerer
        self.estimator = estimator
        self.abstain = abstain

    def run(self, question: Question) -> Answer:
        """Answer one question.

        Raises:
            LlmError: a language model gave no usable reply.
            GraphError: the graph cannot be read, or does not hold an entity that came with the question.
        """
        seconds: dict[str, float] = defaultdict(float)
        context = self._gathered(question, seconds)
        began = time.perf_counter()
        items = tuple(self.answerer.answer(question, context))
        note = ""
        if self.estimator is not None:
            items, note = self._estimated(self.estimator, question, context, items)
        seconds["answer"] += time.perf_counter() - began
        return Answer(question.id, items, context.rounds, dict(seconds), note=note)

    def ask(self, text: str) -> Answer:
        """Answer a question given as text."""
        return self.run(Question(id="ask", text=text))

    def _estimated(
        self, estimator: ConfidenceEstimator, question: Question, context: Context, items: tuple[AnswerItem, ...]
    ) -> tuple[tuple[AnswerItem, ...], str]:
        """Return answers scored by their confidence, with runners-up, none below `abstain`; and a note on them."""
        if not items:
            return (), estimator.explain_absence(context)
        estimate = estimator.estimate(question, context, items)
        note = "; ".join(filter(None, (estimate.unused and f"not used: {estimate.unused}", estimate.taken)))
        if estimate.probability < self.abstain:
            return (), (
                f"not sure enough ({estimate.probability:.2f}, and {self.abstain:g} was asked for) that it is "
                f"{items[0].name!r}: {note or estimate.missing}"
            )
        if estimate.unsure:
            note = f"unsure ({estimate.probability:.2f}): {note or estimate.missing}"
            if estimate.further:
                note += f"; next best: {estimate.further[0].name!r} ({estimate.further[0].score:.2f})"
        return (*(replace(item, score=estimate.probability) for item in items), *estimate.further), note

    def _gathered(self, question: Question, seconds: dict[str, float]) -> Context:
        """Return the context after the rounds of all stages, or after the one that finished."""
        context = Context(question=question.text)
        for stage in self.stages:
            for number in range(stage.rounds):
                context, ended, finished = self._round(stage, question, context, number == 0, seconds)
                if finished:
                    return context
                if ended:
                    break
        return context

    def _round(
        self, stage: Stage, question: Question, context: Context, first: bool, seconds: dict[str, float]
    ) -> tuple[Context, bool, bool]:
        """Return the context with one more round, whether that ends the stage, and whether it ends the loop."""
        began = time.perf_counter()
        artifacts = stage.linker.propose(question, context)
        linked = self.entities.link(artifacts, question.text)
        seconds["link"] += time.perf_counter() - began
        because = _ending(stage.until, artifacts, linked, context, first)
        if because:
            ending = Step(ENDED, {}, {"because": because})
            return context.add(artifacts, linked, [], [ending]), True, artifacts.finished
        began = time.perf_counter()
        request = Request(question, artifacts, linked, context)
        found = [retriever.retrieve(request) for retriever in stage.retrievers]
        seconds["retrieve"] += time.perf_counter() - began
        held = any(not isinstance(item, Feedback) for item in (*context.evidence, *(one for of in found for one in of)))
        finished = request.finished and held and stage.until != "no_new_entity"
        endings = [Step(ENDED, {}, {"because": "a retriever has finished"})] if finished else []
        context = context.add(artifacts, linked, found, [*request.steps, *endings])
        rows = any(isinstance(item, RowsEvidence) and item.rows for item in context.rounds[-1].evidence)
        return context, stage.until == "rows" and rows, finished


ENDED = "ended"
"""Step noted by a round that ends a stage, with `because`: it proposed, and retrieved nothing."""


class KGLinker(Protocol):
    """Writes the artifacts of a round."""

    def propose(self, question: Question, context: Context) -> Artifacts:
        """Return mentions of the question and artifacts for retrieval."""


class Answerer(Protocol):
    """Turns evidence into answers."""

    def answer(self, question: Question, context: Context) -> Sequence[AnswerItem]:
        """Return answers best first, each once."""


@dataclass(frozen=True)
class ConfidenceEstimate:
    """Confidence of an answer."""

    probability: float
    """That the first answer is right, in [0, 1]."""
    missing: str
    """Strongest evidence against it, in words."""
    further: tuple[AnswerItem, ...] = ()
    """The next best answers of an unsure one, each with its probability."""
    unused: str = ""
    """Parts of the question that the answer does not use, in quotes; empty if there are none."""
    taken: str = ""
    """Chosen node of several with one name, if another fits as well; else empty."""
    unsure: bool = False
    """True if the answer is reported as unsure."""


class ConfidenceEstimator(Protocol):
    """Estimates the probability that an answer is right, and explains missing answers."""

    def estimate(self, question: Question, context: Context, items: Sequence[AnswerItem]) -> ConfidenceEstimate:
        """Return the confidence of the first of some answers."""

    def explain_absence(self, context: Context) -> str:
        """Describe the missing support of an answer, if there is none."""


Until = Literal["nothing_new", "no_new_entity", "rows"]


@dataclass(frozen=True)
class Stage:
    """Rounds of one kind: linker, retrievers, and stop rule.

    A stage ends after `rounds`; before retrieval, when the linker has finished or, after the stage's first round,
    proposes nothing new: with `until="nothing_new"` no new entity, path, query or request, with `until="no_new_entity"`
    no new entity; with `until="rows"` after a round in which a query returned rows. The round that ends a stage before
    retrieval is kept, without evidence. FINISH of the linker ends all stages; so does FINISH of a retriever's model
    that has found something, unless `until="no_new_entity"`.
    """

    linker: KGLinker
    retrievers: tuple[Retriever, ...]
    rounds: int = 2
    until: Until = "nothing_new"


def _ending(until: Until, artifacts: Artifacts, linked: Linked, context: Context, first: bool) -> str:
    """Return the reason why a round ends its stage before retrieval; empty if it does not."""
    if artifacts.finished:
        return "the KG-Linker has finished"
    if first or until == "rows":
        return ""
    if until == "no_new_entity":
        return "" if linked.unseen(context) else "no entity was linked that is new"
    return "" if is_new(artifacts, linked, context) else "nothing was proposed that is new"


def is_new(artifacts: Artifacts, linked: Linked, context: Context) -> bool:
    """True if a round has an entity, a path, a query or a request that no earlier round had."""
    asked = {part for earlier in context.rounds for part in _asked_for(earlier.artifacts)}
    return linked.unseen(context) or bool(set(_asked_for(artifacts)) - asked)


def _asked_for(artifacts: Artifacts) -> list[object]:
    """Return the requests of artifacts besides entities: paths, queries (spaces normalised), BFS-QL."""
    paths = [(path.relations, path.source) for path in artifacts.paths]
    queries = [(query.language, " ".join(query.text.split()).rstrip(" ;")) for query in artifacts.queries]
    return [*paths, *queries, *([artifacts.bfsql] if artifacts.bfsql else [])]
