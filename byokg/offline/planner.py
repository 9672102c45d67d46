"""A fine-tuned language model as a planner: the likelihood of relation paths that exist, as it writes them.

A plan is the name of a topic entity and the relations from there to the answers: `Natalie Portman -> film.actor.film ->
film.performance.character`, `^` before a relation that is walked backwards. The model is one of `byokg train sft`; it
writes plans that the graph walks and no others, since the search is constrained to a trie of these.

Source: Reasoning on Graphs (arXiv:2310.01061), "Planning module", for relation paths as plans; graph-constrained
reasoning (arXiv:2410.13080) and GraphRAFT (arXiv:2504.05478) for the trie.
Differs: the paths are those that the offline linker grows around the topic entities.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from byokg.arrays import Float32, Int64
from byokg.errors import ConfigError, at_least
from byokg.text.names import plan_text
from byokg.types import Metapath


class Planner:
    """Scores relation paths by the log-likelihood of their plans; threads may share it.

    Args:
        path: folder or name on the model hub, such as one of `byokg train sft`.
        weights: folder of `byokg fit`, whose scores take part if `share` is above 0; None takes the shipped weights.
        beams: plans of a question that are found at most.
        share: factor on the scores of the path scorer, or of its trained ranker, to which log-likelihoods are added
            (a log-linear mix); 0 for the model alone.
        shown: paths that the path scorer puts first, which alone the model scores in a mix.
        prompt: text before a plan, with `{question}`; None takes that of GraphRAFT's queries.
        dtype: `bfloat16`, `float16`, `float32`; None takes the type of the saved weights.

    Raises:
        ConfigError: a setting is out of range, or the model cannot be loaded.
    """

    def __init__(
        self,
        path: str,
        weights: str | Path | None = None,
        beams: int = 10,
        share: float = 0.0,
        shown: int = 24,
        prompt: str | None = None,
        dtype: str | None = None,
    ) -> None:
        at_least(1, "finds nothing", beams=beams, shown=shown)
        if share < 0:
            raise ConfigError(f"share={share} is negative; use 0 for the model alone, or a positive factor")
        from byokg.llm.decoding import PROMPT, ConstrainedRanker, Text

        self.weights = weights
        self.share, self._shown, self._text = share, shown, Text
        self._ranker = ConstrainedRanker(None, path, shown if share else beams, prompt or PROMPT, dtype=dtype)

    def mix(self, question: str, plans: Sequence[str], prior: Float32) -> Float32:
        """Return the scores of plans: (P,), natural logarithms.

        Args:
            question: its text.
            plans: as `plan_text` writes them.
            prior: (P,) scores without the model, in natural logarithms.
        """
        rows = np.argsort(-prior, kind="stable")[: self._shown] if self.share else np.arange(len(plans))
        found = self._ranker.rank(question, [self._text(plans[row]) for row in rows]) if len(rows) else []
        # The model finds those that it does not return less likely than the last one that it returns.
        scores = np.full(len(plans), min((score for _, score in found), default=0.0) - 1.0, np.float32)
        for at, score in found:
            scores[rows[at]] = score
        mixed: Float32 = (self.share * prior + scores).astype(np.float32)
        return mixed

    def rescore(
        self,
        question: str,
        parts: Sequence[tuple[str, Int64, Sequence[Metapath]]],
        joins: Sequence[tuple[int, int, Int64]],
        prior: Sequence[Float32],
    ) -> list[Float32]:
        """Return the scores of metapaths in parts, and then of pairs that meet, like `prior`.

        Args:
            question: its text.
            parts: for each the topic's name, the rows that may be plans, (K,), and their metapaths.
            joins: two numbers of parts, and (J, 2) rows in them.
            prior: scores without the model, in natural logarithms: (P,) for each part, and (J,) for the joins.
        """
        plans = [plan_text(name, metapath) for name, _, metapaths in parts for metapath in metapaths]
        flat = [scores[rows] for scores, (_, rows, _) in zip(prior, parts, strict=False)]
        mixed = self.mix(question, plans, np.concatenate(flat))
        told = [np.full(len(scores), mixed.min(initial=0.0), np.float32) for scores in prior[: len(parts)]]
        bounds = np.cumsum([len(scores) for scores in flat])[:-1]
        for scores, (_, rows, _), own in zip(told, parts, np.split(mixed, bounds), strict=True):
            scores[rows] = own
        for (one, other, pairs), scores in zip(joins, prior[len(parts) :], strict=True):
            # A pair is as likely as its likelier plan, and the path scorer has the worth of its meeting.
            better = np.maximum(told[one][pairs[:, 0]], told[other][pairs[:, 1]])
            extra = scores - np.maximum(prior[one][pairs[:, 0]], prior[other][pairs[:, 1]])
            told.append((better + self.share * extra).astype(np.float32))
        return told
