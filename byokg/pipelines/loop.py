"""The loop: propose, link, retrieve, and again until nothing new comes; then answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, Self

from byokg.errors import ConfigError, at_least
from byokg.linking.entities import EntityLinker
from byokg.pipelines.answers import ConfidenceEstimator, make_answer, rate
from byokg.pipelines.instrumentation import StageClock, StageHook, join_hooks, no_hook
from byokg.types import (
    Answer,
    AnswerItem,
    Artifacts,
    Context,
    Evidence,
    Feedback,
    Linked,
    Question,
    Request,
    Retriever,
    RowsEvidence,
    Step,
)


@dataclass(eq=False)
class Loop:
    """Answers questions over a graph; every part can be exchanged.

    Args:
        entities: links mentions to nodes.
        stages: rounds of retrieval, of one kind after the other; each sees the evidence of those before it.
        answerer: answers from the evidence.
        estimator: estimates the probability that the first answer is right, which becomes the score of all, and appends
            runners-up; None keeps the scores of the answerer.
        abstain: probability below which there is no answer, in [0, 1].
        translate: returns a question in the language that the parts read; None takes it as it is.
        on_stage: called at each stage of a question.

    Raises:
        ConfigError: there is no stage, or one without a round; or `abstain` is no probability, or has no estimator.

    Source: ByoKG-RAG (arXiv:2507.04127v1), Algorithm 2, which is one stage.
    Differs: the first round retrieves also without linked entities, since a question that counts or compares may name
    no entity and still have a query. A later round without a new entity continues if it proposes a new path,
    query or request: a corrected query is worth running. FINISH of a retriever's model ends all rounds; in the paper it
    ends the agent's walk alone. `stop_when="no_new_entity"` keeps to the letter in both.
    """

    entities: EntityLinker
    stages: Sequence[Stage]
    answerer: Answerer
    estimator: ConfidenceEstimator | None = None
    abstain: float = 0.0
    translate: Callable[[str], str] | None = None
    on_stage: StageHook = no_hook

    def __post_init__(self) -> None:
        if not self.stages:
            raise ConfigError("a pipeline without a stage retrieves nothing; give one or more")
        if not 0 <= self.abstain <= 1:
            raise ConfigError(f"abstain={self.abstain} is no probability; give one in [0, 1], such as 0.5")
        if self.abstain and self.estimator is None:
            raise ConfigError(f"abstain={self.abstain} needs a confidence estimator; give one, or leave it 0")
        for stage in self.stages:
            at_least(1, "answers nothing", rounds=stage.rounds)

    def run(self, question: Question) -> Answer:
        """Answer one question.

        Raises:
            LlmError: a language model gave no usable reply.
            GraphError: the graph cannot be read, or does not hold an entity that came with the question.
        """
        clock = StageClock(self.on_stage)
        translation = "" if self.translate is None else self.translate(question.text)
        if translation == question.text:
            translation = ""
        question = replace(question, text=translation or question.text)
        context = self._gathered(question, clock)
        note = ""
        with clock.stage("answer") as results:
            items = tuple(self.answerer.answer(question, context))
            results["answers"] = [item.name for item in items]
            if self.estimator is not None:
                items, note, steps = rate(self.estimator, self.abstain, question, context, items)
                context = context.noted(steps)
        answer = make_answer(question, items, context, clock.seconds, note)
        return replace(answer, translation=translation, rules=tuple(sorted(clock.rules)))

    def hooked(self, on_stage: StageHook) -> Self:
        """Return a loop of the same parts that calls one more hook."""
        return replace(self, on_stage=join_hooks(on_stage, self.on_stage))

    def _gathered(self, question: Question, clock: StageClock) -> Context:
        """Return the context after the rounds of all stages, or after the one that finished."""
        context = Context(question=question.text)
        for stage in self.stages:
            for number in range(stage.rounds):
                context, ended, finished = self._round(stage, question, context, number == 0, clock)
                if finished:
                    return context
                if ended:
                    break
        return context

    def _round(
        self, stage: Stage, question: Question, context: Context, first: bool, clock: StageClock
    ) -> tuple[Context, bool, bool]:
        """Return the context with one more round, whether that ends the stage, and whether it ends the loop."""
        artifacts, linked = propose_and_link(stage.linker, self.entities, question, context, clock)
        because = _ending(stage.stop_when, artifacts, linked, context, first)
        if because:
            ending = Step(ENDED, {}, {"because": because})
            return context.add(artifacts, linked, [], [ending]), True, artifacts.finished
        request = Request(question, artifacts, linked, context)
        found = retrieve_all(stage.retrievers, request, clock, _holds_all_rows if stage.rows_suffice else _never)
        held = any(not isinstance(item, Feedback) for item in (*context.evidence, *(one for of in found for one in of)))
        enough = ""
        if request.finished and held and stage.stop_when != "no_new_entity":
            enough = "a retriever has finished"
        elif stage.rows_suffice and any(map(_holds_all_rows, found)):
            enough = "a query has returned all of its rows"
        endings = [Step(ENDED, {}, {"because": enough})] if enough else []
        context = context.add(artifacts, linked, found, [*request.steps, *endings])
        rows = any(isinstance(item, RowsEvidence) and item.rows for item in context.rounds[-1].evidence)
        return context, stage.stop_when == "rows" and rows, bool(enough)


def propose_and_link(
    linker: KGLinker, entities: EntityLinker, question: Question, context: Context, clock: StageClock
) -> tuple[Artifacts, Linked]:
    """Return a round's artifacts, and the nodes of its mentions."""
    with clock.stage("propose", "link") as results:
        artifacts = linker.propose(question, context)
        results |= {
            "entities": [mention.text for mention in artifacts.mentions],
            "paths": [" / ".join(path.relations) for path in artifacts.paths],
            "queries": [query.text for query in artifacts.queries],
            "draft answers": list(artifacts.draft_answers),
        }
    with clock.stage("link") as results:
        linked = entities.link(artifacts, question.text)
        results["nodes"] = [one.name for one in linked.entities]
    return artifacts, linked


def _never(found: Sequence[Evidence]) -> bool:
    return False


def _holds_all_rows(found: Sequence[Evidence]) -> bool:
    """True if a query returned rows, none was cut off, and nothing had to be corrected or explained."""
    rows = [item for item in found if isinstance(item, RowsEvidence)]
    whole = all(not item.truncated and any(cell is not None for row in item.rows for cell in row) for item in rows)
    return bool(rows) and whole and not any(isinstance(item, Feedback) for item in found)


def retrieve_all(
    retrievers: Sequence[Retriever],
    request: Request,
    clock: StageClock,
    enough: Callable[[Sequence[Evidence]], bool] = _never,
) -> list[Sequence[Evidence]]:
    """Return the evidence of each retriever, up to the first that found `enough`; each sees that of those before it."""
    found: list[Sequence[Evidence]] = []
    for retriever in retrievers:
        name = type(retriever).__name__.removesuffix("Retriever").lower()
        with clock.stage(f"retrieve {name}", "retrieve") as results:
            found.append(retriever.retrieve(replace(request, found=tuple(item for of in found for item in of))))
            results["evidence"] = len(found[-1])
        if enough(found[-1]):
            break
    return found


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


StopRule = Literal["nothing_new", "no_new_entity", "rows"]


@dataclass(frozen=True)
class Stage:
    """Rounds of one kind: linker, retrievers, and stop rule.

    A stage ends after `rounds`; before retrieval, when the linker has finished or, after the stage's first round,
    proposes nothing new: with the rule `nothing_new` no new entity, path, query or request, with `no_new_entity` no new
    entity; with the rule `rows` after a round in which a query returned rows. The round that ends a stage before
    retrieval is kept, without evidence. FINISH of the linker ends all stages; so does FINISH of a retriever's model
    that has found something, except with the rule `no_new_entity`; so do, if `rows_suffice`, rows of a query that came
    back whole, before the retrievers behind it run.
    """

    linker: KGLinker
    retrievers: tuple[Retriever, ...]
    rounds: int = 2
    stop_when: StopRule = "nothing_new"
    rows_suffice: bool = False


def _ending(stop_when: StopRule, artifacts: Artifacts, linked: Linked, context: Context, first: bool) -> str:
    """Return the reason why a round ends its stage before retrieval; empty if it does not."""
    if artifacts.finished:
        return "the KG-Linker has finished"
    if first or stop_when == "rows":
        return ""
    if stop_when == "no_new_entity":
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
