"""Answering without a language model."""

from __future__ import annotations

from byokg.graph.store import GraphStore
from byokg.types import AnswerItem, Context, PathEvidence, Question


class ExtractiveAnswerer:
    """Returns the end nodes of the best metapath, each citing the evidence it stands in.

    Ends come in the order of the evidence: those that most walks reach first, then by node number. That decides
    which answer Hits@1 looks at.

    Args:
        store: gives the names of the nodes.
    """

    def __init__(self, store: GraphStore) -> None:
        self._store = store

    def answer(self, question: Question, context: Context) -> list[AnswerItem]:
        """Return the ends of the best path evidence; nothing when there is none."""
        found = [item for item in context.evidence if isinstance(item, PathEvidence)]
        if not found:
            return []
        best = max(found, key=lambda item: item.score)
        return [
            AnswerItem(node.name, node.id, best.score, citations=(best.id,)) for node in self._store.nodes(best.ends)
        ]
