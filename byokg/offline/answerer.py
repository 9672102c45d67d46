"""Answers extracted from path evidence: candidates, and computed results."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from byokg.graph.property_view import is_value, value_name
from byokg.graph.store import GraphStore
from byokg.offline.aggregation import grouping
from byokg.offline.answer_type import AnswerTypePredictor, is_literal_of
from byokg.offline.lexicon import rule
from byokg.offline.parse_constraints import expected_literal
from byokg.offline.ranking import AnswerRanker, Candidate
from byokg.text.names import is_identifier
from byokg.types import AnswerItem, ComputedEvidence, Context, EntityId, Mention, PathEvidence, Question


class ExtractiveAnswerer:
    """Returns the nodes of the likeliest candidate, each citing its evidence.

    A candidate is the ends of a metapath, or the common ends of several from different mentions («which country borders
    X and speaks Y»), if the linker proposes that pair. Nodes without a name are no answers. Without a ranker,
    candidates are ordered by the score of the linker.

    Args:
        store: source of the names of nodes.
        answer_types: predicts the answer type.
        ranker: orders candidates; thread-safe.
    """

    def __init__(
        self, store: GraphStore, answer_types: AnswerTypePredictor | None = None, ranker: AnswerRanker | None = None
    ) -> None:
        self._store = store
        self._answer_types = answer_types
        self._ranker = ranker
        self._last: tuple[Context | None, tuple[Candidate, ...]] = (None, ())

    def answer(self, question: Question, context: Context) -> list[AnswerItem]:
        """Return the computed result, else the ends of the best path evidence.

        Empty if there is neither, the question names a value that is nowhere, or it asks for one result per group.
        """
        if any(one.artifacts.unknown for one in context.rounds) or grouping(self._store, context):
            return []
        for item in context.evidence:
            if isinstance(item, ComputedEvidence):
                return self._computed(item)
        return next((self.items(one) for one in self.ranked(context)), [])

    def ranked(self, context: Context) -> Iterator[Candidate]:
        """Yield the possible answers, the best first, without nameless nodes.

        A question for a date or a number is answered by nothing else.
        """
        asked, _ = expected_literal(context.question, context.rounds[0].artifacts.mentions if context.rounds else ())
        for one in self.candidates(context):
            nodes = [node for node in self._store.nodes(one.nodes) if not is_identifier(node.name)]
            if asked and 2 * sum(is_literal_of(node.name, asked) for node in nodes) <= len(nodes):
                continue
            if nodes:
                yield replace(one, nodes=tuple(node.id for node in nodes))

    def items(self, candidate: Candidate) -> list[AnswerItem]:
        """Return the answers of a candidate."""
        cited = candidate.evidence_ids
        return [
            AnswerItem(node.name, None if is_value(node.id) else node.id, candidate.score, cited, len(cited))
            for node in self._store.nodes(candidate.nodes)
        ]

    def names(self, nodes: Sequence[EntityId]) -> list[str]:
        """Return the names of nodes."""
        return [node.name for node in self._store.nodes(nodes)]

    def candidates(self, context: Context, without: Collection[Mention] = ()) -> Sequence[Candidate]:
        """Return the answer candidates, best first: the ends of each metapath, and common ends of several.

        Args:
            context: the evidence.
            without: mentions whose metapaths are ignored.
        """
        known, ranked = self._last
        if known is not context or without:
            ranked = tuple(self._ranked(context, without))
            self._last = self._last if without else (context, ranked)
        return ranked

    def _ranked(self, context: Context, without: Collection[Mention]) -> list[Candidate]:
        linked = [entity for earlier in context.rounds for entity in earlier.linked.entities]
        left_out = {one.id for one in linked if one.mention in without}
        left_out -= {one.id for one in linked if one.mention not in without}
        found = [item for item in context.evidence if isinstance(item, PathEvidence) and item.source not in left_out]
        text, mentions = context.question, context.rounds[0].artifacts.mentions if context.rounds else ()
        types = self._answer_types
        ends = [
            item.ends if types is None else types.filter_path_by_gender(text, mentions, self._store, item)
            for item in found
        ]
        single = [Candidate(item.score, some, (item,)) for item, some in zip(found, ends, strict=True)]
        candidates = sorted([*self._agreeing(found, context), *single], key=lambda one: -one.score)
        if types is not None:
            candidates = [one for one in candidates if types.may_answer(text, one.nodes)] or candidates
            candidates = [replace(one, nodes=types.filter_by_gender(text, mentions, one.nodes)) for one in candidates]
        return candidates if self._ranker is None else self._ranker.rank(context, candidates)

    def _computed(self, item: ComputedEvidence) -> list[AnswerItem]:
        citations = (item.id, *item.uses)
        least = "at least " if item.operation == "count" and item.truncated else ""
        values = [
            AnswerItem(f"{least}{value_name(value)}", None, item.score, citations, len(citations))
            for value in item.values
        ]
        nodes = self._store.nodes(item.nodes)
        return [*values, *(AnswerItem(node.name, node.id, item.score, citations, len(citations)) for node in nodes)]

    @rule("common ends", "which films of {Tom} star {Ann}", lambda self, found, context: [])
    def _agreeing(self, found: list[PathEvidence], context: Context) -> list[Candidate]:
        """Return the common ends of proposed pairs of metapaths."""
        walked = {(item.source, item.relations): item for item in found}
        agreeing: list[Candidate] = []
        proposed = (two for each in context.rounds for two in each.artifacts.joined)
        for joined in sorted(proposed, key=lambda two: -two.score):
            one, other = (walked.get((path.source or EntityId(""), path.relations)) for path in joined.paths)
            if one is None or other is None:
                continue
            ends = frozenset(other.ends)
            if nodes := tuple(end for end in one.ends if end in ends):
                agreeing.append(Candidate(joined.score, nodes, (one, other)))
        return agreeing
