"""Answering without a language model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations

from byokg.graph.store import GraphStore
from byokg.index.identifiers import is_identifier
from byokg.types import AnswerItem, Context, EntityId, Mention, PathEvidence, Question

_Choice = tuple[float, tuple[EntityId, ...], tuple[str, ...]]
"""A score, the nodes that would be the answers, and the evidence they stand in."""


class ExtractiveAnswerer:
    """Returns the end nodes of the best metapath, each citing the evidence it stands in.

    A question with several topic entities («which country borders X and speaks Y») is answered by the nodes in which
    a metapath from one and a metapath from another end, if there are any; a third narrows them further. Nodes without
    a name are no answers.

    Answers keep the order of the evidence: those that most walks reach first, then by node number. That decides
    which answer Hits@1 looks at.

    Args:
        store: gives the names of the nodes.
        agreement: worth of two topic entities leading to the same node, in the unit of path scores.
    """

    def __init__(self, store: GraphStore, agreement: float = 40.0) -> None:
        self._store = store
        self._agreement = agreement

    def answer(self, question: Question, context: Context) -> list[AnswerItem]:
        """Return the ends of the best path evidence; nothing when there is none."""
        found = [item for item in context.evidence if isinstance(item, PathEvidence)]
        single: list[_Choice] = [(item.score, item.ends, (item.id,)) for item in found]
        choices = [*self._agreeing(found, context), *single]
        for score, ends, citations in sorted(choices, key=lambda choice: -choice[0]):
            nodes = [node for node in self._store.nodes(ends) if not is_identifier(node.name)]
            if nodes:
                return [AnswerItem(node.name, node.id, score, citations) for node in nodes]
        return []

    def _agreeing(self, found: list[PathEvidence], context: Context) -> list[_Choice]:
        """Return what pairs of metapaths from different mentions have in common, the best narrowed by the others."""
        meant: dict[EntityId, Mention] = {
            entity.id: entity.mention for earlier in context.rounds for entity in earlier.linked.entities
        }
        by_mention: dict[Mention, list[PathEvidence]] = defaultdict(list)
        for item in found:
            if item.source in meant:
                by_mention[meant[item.source]].append(item)
        agreeing: list[_Choice] = []
        pairs: list[set[Mention]] = []
        for one, another in combinations(by_mention, 2):
            sets = [frozenset(item.ends) for item in by_mention[another]]
            for item in by_mention[one]:
                for other, ends in zip(by_mention[another], sets, strict=True):
                    common = tuple(end for end in item.ends if end in ends)
                    if common:
                        score = (item.score + other.score) / 2 + self._agreement
                        agreeing.append((score, common, (item.id, other.id)))
                        pairs.append({one, another})
        if agreeing:
            best = max(range(len(agreeing)), key=lambda position: agreeing[position][0])
            rest = [items for mention, items in by_mention.items() if mention not in pairs[best]]
            agreeing[best] = _narrowed(agreeing[best], rest)
        return agreeing


def _narrowed(choice: _Choice, others: Iterable[list[PathEvidence]]) -> _Choice:
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
