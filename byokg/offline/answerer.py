"""Answers extracted from path evidence: candidates, their order by answer type, and computed results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from byokg.graph.property_view import is_value, value_name
from byokg.graph.store import GraphStore
from byokg.offline.answer_type import AnswerType, AnswerTypePredictor, is_literal_of
from byokg.offline.parse_constraints import expected_literal
from byokg.offline.rerank import CandidateReranker, Choice
from byokg.text.names import is_identifier
from byokg.types import (
    AnswerItem,
    ComputedEvidence,
    Context,
    EntityId,
    Mention,
    PathEvidence,
    Question,
)


@dataclass(frozen=True)
class TypeMargins:
    """Largest loss of score for an answer of the predicted type."""

    synonymous: float = 0.6
    """Similarity of a noun and a type of equal meaning (`company`, `Manufacturer`)."""
    synonym: float = 12.0
    """For nodes of a relation synonymous with the noun."""
    similar: float = 25.0
    """For nodes of a type similar to the noun."""
    typed: float = 60.0
    """For nodes of the answer type."""
    only_typed: float = 90.0
    """For nodes of the answer type if no better candidate is of it."""
    all_mentions: float = 40.0
    """For using all mentions."""


_MARGINS = TypeMargins()


class ExtractiveAnswerer:
    """Returns the end nodes of the best metapath, each citing its evidence.

    A question with several topic entities («which country borders X and speaks Y») is answered by the nodes in which
    a metapath from one and a metapath from another end, if the linker scores that pair above any single
    metapath; a third mention narrows them further. Nodes without a name are no answers.

    Without a reranker, answers are ordered by walk count, then node id. That decides Hits@1.

    Args:
        store: source of the names of nodes.
        answer_types: predicts the answer type; a path to such nodes precedes one with a slightly better score.
        reranker: reranks paths of about equal fit, and the ends of one; None takes the best path.
    """

    def __init__(
        self,
        store: GraphStore,
        answer_types: AnswerTypePredictor | None = None,
        reranker: CandidateReranker | None = None,
    ) -> None:
        self._store = store
        self._answer_types = answer_types
        self._reranker = reranker

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
        choices = self.candidates(context)
        asked, _ = expected_literal(context.question, context.rounds[0].artifacts.mentions if context.rounds else ())
        if self._reranker is not None:
            choices = self._reranker.rerank(context, choices)
        for score, ends, citations in choices:
            nodes = [node for node in self._store.nodes(ends) if not is_identifier(node.name)]
            if asked and 2 * sum(is_literal_of(node.name, asked) for node in nodes) <= len(nodes):
                continue
            if nodes:
                yield (
                    score,
                    [
                        AnswerItem(node.name, None if is_value(node.id) else node.id, score, citations, len(citations))
                        for node in nodes
                    ],
                )

    def candidates(self, context: Context, without: Collection[Mention] = ()) -> list[Choice]:
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
        if self._answer_types is not None:
            ends = (self._answer_types.filter_path_by_gender(text, mentions, self._store, item) for item in found)
            single = [(item.score, some, (item.id,)) for item, some in zip(found, ends, strict=True)]
        choices = sorted([*self._agreeing(found, context), *single], key=lambda choice: -choice[0])
        if self._answer_types is None or not choices:
            return choices
        told = [self._answer_types.may_answer(context.question, choice[1]) for choice in choices]
        choices = [choice for choice, is_told in zip(choices, told, strict=True) if is_told] or choices
        choices = [
            (score, self._answer_types.filter_by_gender(text, mentions, ends), cited) for score, ends, cited in choices
        ]
        close = [choice for choice in choices if choice[0] >= choices[0][0] - _MARGINS.typed]
        asked = self._answer_types.predict(context.question, mentions, [choice[1] for choice in close])
        if not asked:
            sort = self._answer_types.class_mention(context.question, mentions)
            named = {one.id for one in linked if sort is not None and one.mention == sort}
            of_sort = {item.id for item in found if item.source in named and len(item.relations) == 1}
            fitting = [choice for choice in close if not of_sort.isdisjoint(choice[2])]
            return _all_used([*fitting, *(choice for choice in choices if choice not in fitting)])
        alike = _MARGINS.typed if asked.similarity >= _MARGINS.synonymous else _MARGINS.similar
        near = alike if asked.types or asked.exact else _MARGINS.synonym
        margins = (near, _MARGINS.only_typed) if asked.types and asked.exact else (near,)
        fitting = next(filter(None, (self._fitting(choices, asked, margin) for margin in margins)), [])
        taken = {choice[2] for choice in fitting}
        return _all_used([*fitting, *(choice for choice in choices if choice[2] not in taken)])

    def _fitting(self, choices: Sequence[Choice], asked: AnswerType, margin: float) -> list[Choice]:
        """Return those of some choices that are of a kind, as far as they are, of those that score not much less."""
        assert self._answer_types is not None
        close = (choice for choice in choices if choice[0] >= choices[0][0] - margin)
        of_kind = (
            (score, self._answer_types.filter_candidates(ends, asked), citations) for score, ends, citations in close
        )
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
        if len(choice[2]) > 1 and first[0] in choice[2] and choice[0] >= score - _MARGINS.all_mentions:
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
