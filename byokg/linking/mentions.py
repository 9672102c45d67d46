"""Finding the pieces of a question that name something in the graph."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from byokg.linking.entities import EntityLinker
from byokg.linking.reading import FUNCTION_WORDS, QUESTION_WORDS
from byokg.types import Mention

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class SpottingSettings:
    """What makes a piece of text a mention; found on the dev splits of MetaQA, WebQSP and atlas."""

    same_case: float = 1.5
    """Worth of a name with capitals that is written just so."""
    other_case: float = 0.7
    """Worth of a name whose capitals differ from the text."""
    explained: float = 0.9
    """How much of a word's importance is lost when a relation of the graph explains it."""
    another: float = 0.5
    """A further mention needs this share of the best one's worth."""
    most: int = 3
    """Mentions at most."""
    fuzzy_cutoff: float = 0.88


class MentionSpotter:
    """Finds mentions by comparing every run of words with the names of the graph.

    Args:
        entities: holds the index over the names of the graph, made when the first question is looked at.
        importance: how much a word tells, about 1 on average.
        explained: how well some relation of the graph explains a word, in [0, 1].
        settings: worths and thresholds.
    """

    def __init__(
        self,
        entities: EntityLinker,
        importance: Callable[[str], float],
        explained: Callable[[str], float],
        settings: SpottingSettings | None = None,
    ) -> None:
        self._entities = entities
        self._importance = importance
        self._explained = explained
        self.settings = settings or SpottingSettings()

    def spot(self, text: str) -> list[Mention]:
        """Return the mentions in a question, the most telling first; none overlap.

        Names that stand in the text (case, accents and punctuation folded) are looked for first; only when there
        is none, runs of content words are compared with all names approximately.
        """
        spans = list(_WORD.finditer(text))
        found = self._exact(text, spans)
        if not found:
            found = self._fuzzy(text, spans)
        found.sort(key=lambda item: (-item[0], item[1].start))
        kept: list[Mention] = []
        for worth, mention in found:
            if len(kept) == self.settings.most or (kept and worth < self.settings.another * found[0][0]):
                break
            if all(mention.end <= other.start or mention.start >= other.end for other in kept):
                kept.append(mention)
        return kept

    def _exact(self, text: str, spans: list[re.Match[str]]) -> list[tuple[float, Mention]]:
        found = []
        for first in range(len(spans)):
            for last in range(first, min(len(spans), first + self._entities.names.longest + 1)):
                start, end = spans[first].start(), spans[last].end()
                positions = self._entities.names.exact(text[start:end])
                if len(positions):
                    words = [span.group() for span in spans[first : last + 1]]
                    names = {self._entities.names.name(position) for position in positions.tolist()}
                    worth = self._worth(words, text[start:end], names, sentence_start=first == 0)
                    if worth > 0:
                        found.append((worth, Mention(text[start:end], start, end)))
        return found

    def _worth(self, words: list[str], surface: str, names: set[str], sentence_start: bool) -> float:
        folded = [word.casefold() for word in words]
        same = surface in names
        capital = surface != surface.casefold() and not (sentence_start and len(words) == 1)
        if all(word in FUNCTION_WORDS or word in QUESTION_WORDS for word in folded) and not (same and capital):
            return 0.0
        worth = sum(
            self._importance(word) * (1 - self.settings.explained * self._explained(word) * (not (same and capital)))
            for word in folded
        )
        if same:
            return worth * (self.settings.same_case if capital else 1.0)
        return worth * (self.settings.other_case if surface != surface.casefold() else 1.0)

    def _fuzzy(self, text: str, spans: list[re.Match[str]]) -> list[tuple[float, Mention]]:
        found = []
        run: list[re.Match[str]] = []
        for span in [*spans, None]:
            word = span.group().casefold() if span else ""
            if span and word not in QUESTION_WORDS and (word not in FUNCTION_WORDS or run):
                run.append(span)
                continue
            while run and run[-1].group().casefold() in FUNCTION_WORDS:
                run.pop()
            if run:
                found += self._fuzzy_run(text, run)
            run = []
        return found

    def _fuzzy_run(self, text: str, run: list[re.Match[str]]) -> list[tuple[float, Mention]]:
        """Compare the tails of one run of words with all names."""
        found = []
        for first in range(len(run)):
            start, end = run[first].start(), run[-1].end()
            surface = text[start:end]
            if len(surface) < 4:
                continue
            for match in self._entities.names.fuzzy(surface, 1, self.settings.fuzzy_cutoff)[:1]:
                words = [span.group().casefold() for span in run[first:]]
                worth = sum(
                    self._importance(word) * (1 - self.settings.explained * self._explained(word)) for word in words
                )
                length = min(len(match.name), len(surface)) / max(len(match.name), len(surface))
                found.append((worth * match.score * length, Mention(surface, start, end)))
        return found
