"""Weak labels: for each question the candidate query with the best F1 on its gold answers.

Only questions and answers are needed, no gold queries: candidates are enumerated around the topic entities, and ranked
by F1 against the answers. Training reads the JSON lines of `write_labels`.

Source: GraphRAFT (arXiv:2504.05478), "Synthesize ground-truth cypher".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byokg.errors import ConfigError, at_least
from byokg.evaluation.datasets.base import Example
from byokg.files import json_line, write_file
from byokg.graph.store import GraphStore
from byokg.retrieval.candidates import CandidateQuery, Templates, best_first
from byokg.retrieval.enumerate_candidates import CandidateFinder
from byokg.types import EntityId

Anchors = Callable[[Example], Sequence[EntityId]]
"""Gives the entities that a question's candidates start from, as ids of the graph."""

Gold = Callable[[Example], Sequence[EntityId]]
"""Gives the nodes that are a question's answers."""


@dataclass(frozen=True)
class LabelSettings:
    """Which queries may be labels.

    Args:
        keep: queries kept for each question, best first
        min_f1: F1 that a query has to exceed
        hops: edges in a path, at most
        directed: keep the two ways of a relation apart
    """

    keep: int = 1
    min_f1: float = 0.0
    hops: int = 2
    directed: bool = False

    def __post_init__(self) -> None:
        at_least(1, "keeps nothing", keep=self.keep)
        if not 0 <= self.min_f1 < 1:
            raise ConfigError(f"min_f1={self.min_f1} leaves nothing, or is no F1; use 0 up to below 1")
        Templates.of(self.hops)


@dataclass(frozen=True)
class WeakLabel:
    """A training question with its best candidates."""

    example: Example
    best: tuple[CandidateQuery, ...]
    """Best first; empty if no candidate returns a gold answer."""
    considered: int
    """Candidates there were."""

    def record(self) -> dict[str, Any]:
        """Return it as JSON holds it; the query and its statistics are those of the best candidate."""
        held: dict[str, Any] = {"id": self.example.id, "question": self.example.question, "considered": self.considered}
        held["queries"] = [
            {
                "query": one.query,
                "plan": one.plan,
                "template": one.template,
                "anchors": [leg.anchor.id for leg in one.legs],
                "metapath": list(one.metapath),
                "hits": one.hits,
                "total": one.total,
                "gold": one.gold,
                "precision": one.precision,
                "recall": one.recall,
                "f1": one.f1,
            }
            for one in self.best
        ]
        return held


def labels(
    store: GraphStore, examples: Iterable[Example], anchors: Anchors, gold: Gold, settings: LabelSettings | None = None
) -> Iterator[WeakLabel]:
    """Yield a label for each question, in order.

    Args:
        store: the graph.
        examples: questions with answers.
        anchors: where candidates start.
        gold: which nodes are answers.
        settings: which queries; None takes the defaults.
    """
    settings = settings or LabelSettings()
    finder = CandidateFinder(store, Templates.of(settings.hops, settings.directed))
    for example in examples:
        found = finder.find(anchors(example), gold(example)).items
        best = best_first(one for one in found if one.hits and one.f1 > settings.min_f1)[: settings.keep]
        yield WeakLabel(example, tuple(best), len(found))


def write_labels(made: Iterable[WeakLabel], out: Path) -> tuple[int, int]:
    """Write labels as JSON lines; return how many questions there were, and how many have a query."""
    counts = [0, 0]

    def lines() -> Iterator[bytes]:
        for label in made:
            counts[0] += 1
            counts[1] += bool(label.best)
            yield json_line(label.record())

    write_file(out, lines())
    return counts[0], counts[1]
