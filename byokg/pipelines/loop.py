"""The loop: propose, link, retrieve, and again until nothing new comes; then answer.

`Loop` runs it, `Parts` makes its retrievers, and `ExtractiveAnswerer` answers without a language model.
"""

from __future__ import annotations

import inspect
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol, TypeAlias

from byokg.errors import ConfigError, at_least
from byokg.graph.property_view import is_value, value_name
from byokg.graph.schema_text import SchemaRenderer
from byokg.graph.store import GraphStore
from byokg.index.embedders import Embedder
from byokg.linking.entities import EntityLinker
from byokg.linking.relation_matcher import RelationMatcher
from byokg.llm.model import LanguageModel
from byokg.offline.answer_type import Kind, Kinds, is_of_value
from byokg.offline.calibration import UNSURE, Judgement
from byokg.offline.parse_constraints import asked_value, read
from byokg.offline.rerank import Choice, Preference
from byokg.pipelines.context import ContextWriter
from byokg.prompts import PromptLibrary
from byokg.text.names import estimate_tokens, is_identifier
from byokg.types import (
    Answer,
    AnswerItem,
    Artifacts,
    ComputedEvidence,
    Context,
    EntityId,
    Feedback,
    Linked,
    Mention,
    PathEvidence,
    Question,
    Request,
    Retriever,
    RowsEvidence,
    Step,
)

RetrieverFactory: TypeAlias = Callable[..., Retriever]
"""A retriever's class, with or without some of its settings (`functools.partial`), or any function that makes one."""


@dataclass(frozen=True)
class Parts:
    """Shared components of a pipeline. A factory's argument of such a name is filled in."""

    store: GraphStore
    embedder: Embedder
    entities: EntityLinker
    prompts: PromptLibrary
    context: ContextWriter
    schema: SchemaRenderer
    relations: RelationMatcher
    count_tokens: Callable[[str], int] = estimate_tokens
    model: LanguageModel | None = None
    """None in a pipeline that asks no language model."""

    def retrievers(self, makers: Mapping[str, RetrieverFactory | None]) -> dict[str, Retriever]:
        """Make the retrievers that are switched on; return them by name, in order.

        Args:
            makers: by name; None switches one off.

        Raises:
            ConfigError: a retriever needs a language model that the pipeline lacks, or has an unknown argument.
        """
        return {name: self._made(name, make) for name, make in makers.items() if make is not None}

    def _made(self, name: str, make: RetrieverFactory) -> Retriever:
        parameters = inspect.signature(make).parameters
        shared: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(self)}
        needed = [
            parameter.name
            for parameter in parameters.values()
            if parameter.default is parameter.empty
            and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ]
        if "model" in needed and self.model is None:
            raise ConfigError(
                f"retriever {name!r} asks a language model, and this pipeline has none; choose a pipeline with one "
                f"(pipeline=byokg llm=…), or switch it off: pipeline.retrievers.{name}=null"
            )
        missing = [argument for argument in needed if argument not in shared]
        if missing:
            raise ConfigError(
                f"retriever {name!r} needs {', '.join(missing)}; set pipeline.retrievers.{name}.{missing[0]}=…, or "
                f"rename it to what a pipeline can give: {', '.join(shared)}"
            )
        chosen = getattr(make, "keywords", {})  # of a partial: the settings
        made = make(**{part: value for part, value in shared.items() if part in parameters and part not in chosen})
        if not callable(getattr(made, "retrieve", None)):
            raise ConfigError(f"retriever {name!r} is a {type(made).__name__}, which has no method retrieve(request)")
        return made


class ExtractiveAnswerer:
    """Returns the end nodes of the best metapath, each citing its evidence.

    A question with several topic entities («which country borders X and speaks Y») is answered by the nodes in which
    a metapath from one and a metapath from another end, if the linker scores that pair above any single
    metapath; a third mention narrows them further. Nodes without a name are no answers.

    Without a reranker, answers are ordered by walk count, then node id. That decides Hits@1.

    Args:
        store: source of the names of nodes.
        kinds: predicts the answer type; a path to such nodes precedes one with a slightly better score.
        preference: reranks paths of about equal fit, and the ends of one; None takes the best path.
    """

    def __init__(
        self,
        store: GraphStore,
        kinds: Kinds | None = None,
        preference: Preference | None = None,
    ) -> None:
        self._store = store
        self._kinds = kinds
        self._preference = preference

    def answer(self, question: Question, context: Context) -> list[AnswerItem]:
        """Return the computed result, else the ends of the best path evidence; empty if there is neither."""
        for item in context.evidence:
            if isinstance(item, ComputedEvidence):
                return self._computed(item)
        return next((items for _, items in self.ranked(context)), [])

    def ranked(self, context: Context) -> Iterator[tuple[float, list[AnswerItem]]]:
        """Yield what the best path evidence may answer, with its score, the best first.

        A question for a date or a number is answered by nothing else.
        """
        choices = self.choices(context)
        asked, _ = asked_value(context.question, context.rounds[0].artifacts.mentions if context.rounds else ())
        if self._preference is not None:
            choices = self._preference.ordered(context, choices)
        for score, ends, citations in choices:
            nodes = [node for node in self._store.nodes(ends) if not is_identifier(node.name)]
            if asked and 2 * sum(is_of_value(node.name, asked) for node in nodes) <= len(nodes):
                continue
            if nodes:
                yield (
                    score,
                    [
                        AnswerItem(node.name, None if is_value(node.id) else node.id, score, citations, len(citations))
                        for node in nodes
                    ],
                )

    def choices(self, context: Context, without: Collection[Mention] = ()) -> list[Choice]:
        """Return the answer candidates, best first: the ends of each metapath, and common ends of several.

        Args:
            context: the evidence.
            without: mentions whose metapaths are ignored.
        """
        linked = [entity for earlier in context.rounds for entity in earlier.linked.entities]
        left_out = {one.id for one in linked if one.mention in without}
        left_out -= {one.id for one in linked if one.mention not in without}
        found = [item for item in context.evidence if isinstance(item, PathEvidence) and item.source not in left_out]
        single: list[Choice] = [(item.score, item.ends, (item.id,)) for item in found]
        text, mentions = context.question, context.rounds[0].artifacts.mentions if context.rounds else ()
        if self._kinds is not None:
            ends = (self._kinds.through(text, mentions, self._store, item) for item in found)
            single = [(item.score, some, (item.id,)) for item, some in zip(found, ends, strict=True)]
        choices = sorted([*self._agreeing(found, context), *single], key=lambda choice: -choice[0])
        if self._kinds is None or not choices:
            return choices
        told = [self._kinds.may_be(context.question, choice[1]) for choice in choices]
        choices = [choice for choice, is_told in zip(choices, told, strict=True) if is_told] or choices
        choices = [(score, self._kinds.of_sex(text, mentions, ends), cited) for score, ends, cited in choices]
        close = [choice for choice in choices if choice[0] >= choices[0][0] - _WIDE]
        asked = self._kinds.asked(context.question, mentions, [choice[1] for choice in close])
        if not asked:
            sort = self._kinds.sort(context.question, mentions)
            named = {one.id for one in linked if sort is not None and one.mention == sort}
            of_sort = {item.id for item in found if item.source in named and len(item.relations) == 1}
            fitting = [choice for choice in close if not of_sort.isdisjoint(choice[2])]
            return _all_used([*fitting, *(choice for choice in choices if choice not in fitting)])
        alike = _WIDE if asked.likeness >= _MUCH_ALIKE else _RESEMBLED
        near = alike if asked.types or asked.sure else _SYNONYM
        margins = (near, _WIDEST) if asked.types and asked.sure else (near,)
        fitting = next(filter(None, (self._fitting(choices, asked, margin) for margin in margins)), [])
        taken = {choice[2] for choice in fitting}
        return _all_used([*fitting, *(choice for choice in choices if choice[2] not in taken)])

    def _fitting(self, choices: Sequence[Choice], asked: Kind, margin: float) -> list[Choice]:
        """Return those of some choices that are of a kind, as far as they are, of those that score not much less."""
        assert self._kinds is not None
        close = (choice for choice in choices if choice[0] >= choices[0][0] - margin)
        of_kind = ((score, self._kinds.fitting(ends, asked), citations) for score, ends, citations in close)
        return [choice for choice in of_kind if choice[1]]

    def _computed(self, item: ComputedEvidence) -> list[AnswerItem]:
        citations = (item.id, *item.uses)
        least = "at least " if item.operation == "count" and item.truncated else ""
        values = [
            AnswerItem(f"{least}{value_name(value)}", None, item.score, citations, len(citations))
            for value in item.values
        ]
        nodes = self._store.nodes(item.nodes)
        return [*values, *(AnswerItem(node.name, node.id, item.score, citations, len(citations)) for node in nodes)]

    def _agreeing(self, found: list[PathEvidence], context: Context) -> list[Choice]:
        """Return what proposed pairs of metapaths have in common, the best narrowed by those of further mentions."""
        meant: dict[EntityId, Mention] = {
            entity.id: entity.mention for earlier in context.rounds for entity in earlier.linked.entities
        }
        walked = {(item.source, item.relations): item for item in found}
        agreeing: list[Choice] = []
        proposed = (two for each in context.rounds for two in each.artifacts.joined)
        for joined in sorted(proposed, key=lambda two: -two.score):
            items = [walked.get((path.source or EntityId(""), path.relations)) for path in joined.paths]
            one, other = items
            if one is None or other is None:
                continue
            ends = frozenset(other.ends)
            common = tuple(end for end in one.ends if end in ends)
            if not common:
                continue
            choice: Choice = (joined.score, common, (one.id, other.id))
            if not agreeing:
                pair = {meant.get(one.source), meant.get(other.source)}
                rest: dict[Mention, list[PathEvidence]] = defaultdict(list)
                for item in found:
                    mention = meant.get(item.source)
                    if mention is not None and mention not in pair:
                        rest[mention].append(item)
                choice = _narrowed(choice, rest.values())
            agreeing.append(choice)
        return agreeing


def _all_used(choices: list[Choice]) -> list[Choice]:
    """Promote the common ends of two mentions above those of one of them by the same path: both are to be used."""
    score, _, first = choices[0]
    for choice in choices[1:] if len(first) == 1 else ():
        if len(choice[2]) > 1 and first[0] in choice[2] and choice[0] >= score - _ALL_USED:
            return [choice, *(other for other in choices if other is not choice)]
    return choices


def _narrowed(choice: Choice, others: Iterable[list[PathEvidence]]) -> Choice:
    """Keep the nodes that a metapath of each further mention reaches too, as far as there are any."""
    score, nodes, citations = choice
    for items in others:
        for item in sorted(items, key=lambda item: -item.score):
            ends = frozenset(item.ends)
            common = tuple(node for node in nodes if node in ends)
            if common:
                nodes, citations = common, (*citations, item.id)
                break
    return score, nodes, citations


_MUCH_ALIKE = 0.6
"""Likeness of a noun and a type that mean the same (`company`, `Manufacturer`)."""

_SYNONYM, _RESEMBLED, _WIDE, _WIDEST = 12.0, 25.0, 60.0, 90.0
"""Largest loss of score for nodes of a relation synonymous with the noun, of a type similar to it, of the answer type,
and of a type if no better candidate is of it."""

_ALL_USED = 40.0
"""Largest loss of score for using all mentions."""

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


class Judge(Protocol):
    """Estimates the probability that an answer is right."""

    def judge(self, question: Question, context: Context, items: Sequence[AnswerItem]) -> Judgement:
        """Return how sure the first of some answers is."""


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


class Loop:
    """Answers questions over a graph; every part can be exchanged.

    Args:
        entities: links mentions to nodes.
        stages: rounds of retrieval, of one kind after the other; each sees the evidence of those before it.
        answerer: answers from the evidence.
        judge: estimates the probability that the first answer is right, which becomes the score of all, and appends
            runners-up; None keeps the scores of the answerer.
        abstain: probability below which there is no answer, in [0, 1].

    Raises:
        ConfigError: there is no stage, or one without a round; or `abstain` is no probability, or has no judge.

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
        judge: Judge | None = None,
        abstain: float = 0.0,
    ) -> None:
        if not stages:
            raise ConfigError("a pipeline without a stage retrieves nothing; give one or more")
        if not 0 <= abstain <= 1:
            raise ConfigError(f"abstain={abstain} is no probability; give one in [0, 1], such as 0.5")
        if abstain and judge is None:
            raise ConfigError(f"abstain={abstain} needs a judge; give one, or leave it 0")
        for stage in stages:
            at_least(1, "answers nothing", rounds=stage.rounds)
        self.entities = entities
        self.stages = tuple(stages)
        self.answerer = answerer
        self.judge = judge
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
        if items and self.judge is not None:
            judged = self.judge.judge(question, context, items)
            unused = "; ".join(filter(None, (judged.unused and f"not used: {judged.unused}", judged.taken)))
            if judged.probability < self.abstain:
                note = (
                    f"not sure enough ({judged.probability:.2f}, and {self.abstain:g} was asked for) that it is "
                    f"{items[0].name!r}: {unused or judged.missing}"
                )
                items = ()
            elif judged.probability < UNSURE:
                note = f"unsure ({judged.probability:.2f}): {unused or judged.missing}"
                if judged.further:
                    note += f"; next best: {judged.further[0].name!r} ({judged.further[0].score:.2f})"
            else:
                note = unused
            items = tuple(replace(item, score=judged.probability) for item in items)
            items += judged.further if items else ()
        elif self.judge is not None:
            note = _lacking(context)
        seconds["answer"] += time.perf_counter() - began
        return Answer(question.id, items, context.rounds, dict(seconds), note=note)

    def ask(self, text: str) -> Answer:
        """Answer a question given as text."""
        return self.run(Question(id="ask", text=text))

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


def _lacking(context: Context) -> str:
    """Describe the missing support of an answer."""
    computed = [item for item in context.evidence if isinstance(item, ComputedEvidence)]
    if computed and not computed[-1].nodes and not computed[-1].values:
        return (
            computed[-1].text if computed[-1].operation == "verification" else f"nothing is left: {computed[-1].text}"
        )
    mentions = context.rounds[0].artifacts.mentions if context.rounds else ()
    asked, words = asked_value(context.question, mentions)
    if asked and any(isinstance(item, PathEvidence) for item in context.evidence):
        demand = read(context.question, mentions)
        phrases = [test.words for test in demand.times] + [bound.words for bound in demand.thresholds]
        limits = ", ".join(f'"{phrase}"' for phrase in phrases)
        unused = f"; not used: {limits}" if limits else ""
        return f"the question asks {words}, and no {asked} was found that fits it{unused}"
    linked = [one.name for earlier in context.rounds for one in earlier.linked.entities]
    if linked:
        return f"no path from {', '.join(map(repr, dict.fromkeys(linked)))} fits the question"
    named = [one.text for earlier in context.rounds for one in earlier.artifacts.mentions]
    if not named:
        return "nothing in the question names a node of the graph"
    return f"none of {', '.join(map(repr, dict.fromkeys(named)))} was found in the graph"
