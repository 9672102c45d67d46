"""What was gathered, as text for a prompt: one line an item, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from byokg.errors import ConfigError
from byokg.graph.schema_text import estimate_tokens
from byokg.graph.store import GraphStore
from byokg.retrieval.verbalize import names_of, verbalize, verbalize_path
from byokg.types import Context, PathEvidence

NOTHING = "(nothing was found)"


@dataclass(frozen=True)
class ContextText:
    """What is shown of a context."""

    text: str
    tokens: int
    """As counted by the function that was given."""
    shown: tuple[str, ...]
    """Ids of the evidence items shown, in the order of the text."""
    left_out: int
    """Items for which there was no room; those that repeat another's line are not counted."""


class ContextWriter:
    """Writes the evidence of all rounds.

    Where not everything fits, the newest round goes first, in it the retrievers in their order, and of each retriever
    the items in the order it gave them; an item that does not fit is left out whole. The text is in the order in which
    the evidence came, each line beginning with its number (`[e3]`); of equal lines only the first is shown.

    Args:
        store: gives the names of nodes.
        budget_tokens: what the text may take.
        shown: ends of a path written out; the others are counted.
        count_tokens: tokens of a text, by the tokenizer of the model that will read it.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Iterative Process".
    Differs: the paper's context has no budget; one hub would fill any prompt.
    """

    def __init__(
        self,
        store: GraphStore,
        budget_tokens: int = 6000,
        shown: int = 20,
        count_tokens: Callable[[str], int] = estimate_tokens,
    ) -> None:
        for name, value in (("budget_tokens", budget_tokens), ("shown", shown)):
            if value < 1:
                raise ConfigError(f"{name}={value} shows nothing; use 1 or more")
        self._store = store
        self._budget_tokens = budget_tokens
        self._shown = shown
        self._count = count_tokens

    def __call__(self, context: Context) -> str:
        """Return the text alone."""
        return self.write(context).text

    def write(self, context: Context) -> ContextText:
        """Write what fits."""
        found = [item for item in context.evidence if isinstance(item, PathEvidence)]
        names = names_of(self._store, found, self._shown)
        lines: dict[str, str] = {}
        for item in found:
            # A path of one end is shown whole; of many ends only what they share.
            alone = len(item.ends) == 1 and item.paths
            text = verbalize_path(item.paths[0], names) if alone else verbalize(item, names, self._shown)
            lines.setdefault(text, item.id)
        newest = sorted(lines.items(), key=lambda line: -self._round(context, line[1]))
        kept: dict[str, str] = {}
        left = self._budget_tokens
        for text, id in newest:
            tokens = self._count(f"[{id}] {text}\n")
            if tokens <= left:
                kept[id] = f"[{id}] {text}"
                left -= tokens
        shown = [id for id in lines.values() if id in kept]
        text = "\n".join(kept[id] for id in shown) or NOTHING
        return ContextText(text, self._count(text), tuple(shown), len(lines) - len(shown))

    @staticmethod
    def _round(context: Context, id: str) -> int:
        return next(item.round for item in context.evidence if item.id == id)
