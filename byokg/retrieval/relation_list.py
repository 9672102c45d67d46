"""The relations of some entities, the nearest to a question first, as a list for a prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from byokg.graph.store import GraphStore
from byokg.index.embedder import Embedder, Vectors
from byokg.linking.steps import label_words


class RelationRanker:
    """Orders relations by how near their words are to a question's."""

    def __init__(self, store: GraphStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._vectors: dict[int, Vectors] = {}

    def ranked(self, question: str, counts: Sequence[Mapping[int, object]]) -> list[list[int]]:
        """Return the relation numbers of each node, the nearest first, equally near ones by their labels.

        Args:
            question: its text.
            counts: what each node's relations count, by relation number.
        """
        labels = self._store.relations
        numbers = sorted({number for of in counts for number in of})
        new = [number for number in numbers if number not in self._vectors]
        if new:
            texts = [" ".join(word for part in label_words(labels[number]) for word in part) for number in new]
            self._vectors.update(zip(new, self._embedder.encode(texts), strict=True))
        if not numbers:
            return [[] for _ in counts]
        asked = self._embedder.encode([question])[0]
        # Rounded, so that the order does not hang on the last digit of a sum.
        cosines = np.round(np.stack([self._vectors[number] for number in numbers]) @ asked, 6).tolist()
        nearness = dict(zip(numbers, cosines, strict=True))
        return [sorted(of, key=lambda number: (-nearness[number], labels[number])) for of in counts]


def list_relations(
    names: Sequence[str], relations: Sequence[Sequence[str]], budget_tokens: int, count: Callable[[str], int]
) -> tuple[str, int]:
    """Write the relations of each entity, the first of each before the second of any, as many as fit.

    Args:
        names: of N entities; one without relations is left out.
        relations: labels for each, the most important first: (N,) sequences.
        budget_tokens: what the text may take.
        count: tokens of a text.

    Returns:
        The text, and how many relations it leaves out; it says so for each entity.
    """
    shown = [0] * len(names)
    left = budget_tokens - sum(count(f"{name}\n  … and 999 more\n") for name in names)
    longest = max(map(len, relations), default=0)
    for at, place in ((at, place) for place in range(longest) for at in range(len(names))):
        if place < len(relations[at]):
            left -= count(f"  {relations[at][place]}\n")
            if left < 0:
                break
            shown[at] += 1
    lines = []
    for name, of, many in zip(names, relations, shown, strict=True):
        if of:
            lines += [name, *(f"  {relation}" for relation in of[:many])]
            lines += [f"  … and {len(of) - many:,} more"] if many < len(of) else []
    return "\n".join(lines), sum(map(len, relations)) - sum(shown)
