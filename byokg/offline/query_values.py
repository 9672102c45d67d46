"""Values and names in a question: which words name a node, or a value of a property."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from byokg.arrays import Int64
from byokg.index.names import NameIndex
from byokg.index.values import ValueIndex, ValueMatch
from byokg.linking.value_context import question_words
from byokg.offline.query_schema import Property, TypedSchema
from byokg.offline.query_settings import VALUES
from byokg.text.names import FUNCTION_WORDS, QUESTION_WORDS, fold, singular
from byokg.text.values import read_literal

_BARE = frozenset("first last second many most least one two three number name type".split())
"""Words that are no values by themselves, unless in capitals."""


_QUOTED = re.compile(r"\"[^\"]{1,200}\"|\u201c[^\u201d]{1,200}\u201d|(?<!\w)'[^']{1,200}'(?!\w)")


def quoted_spans(text: str, pieces: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the first and last word of each text in quotes, the latter exclusive; `pieces` bound the words."""
    found = []
    for quote in _QUOTED.finditer(text):
        within = [at for at, (start, end) in enumerate(pieces) if quote.start() <= start and end <= quote.end()]
        if within:
            found.append((within[0], within[-1] + 1))
    return found


@dataclass(frozen=True)
class ValueSpan:
    """A span of a question that may name nodes, or a value of a property."""

    start: int
    end: int
    """First and last word of it, the latter exclusive."""
    property: Property
    codes: tuple[int, ...]
    """Numbers of the values in the property's column; empty for a name."""
    quality: float
    """Similarity of span and value, in [0, 1]."""
    shown: str
    nodes: Int64 | None = None
    """Nodes of a name, ascending."""


class ValueSpotter:
    """Finds the values of a graph's properties, and names of its nodes, in questions; thread-safe.

    Numbers and dates are left out: `QuestionReader` reads them together with comparisons.
    """

    def __init__(
        self, schema: TypedSchema, values: ValueIndex, names: NameIndex, familiar: Callable[[str], bool]
    ) -> None:
        """Take the graph and its indexes.

        Args:
            schema: typed schema of the graph.
            values: index of its values.
            names: index of its names.
            familiar: True for a common word, which is no misspelt one.
        """
        self._schema, self._values, self._names, self._familiar = schema, values, names, familiar

    @cached_property
    def _by_key(self) -> dict[tuple[str, str], Property]:
        types = self._schema.types
        return {(types[one.type], one.name): one for one in self._schema.properties if one.type >= 0}

    def find(self, text: str, pieces: Sequence[tuple[int, int]]) -> list[ValueSpan]:
        """Return the spans of a question, of those that overlap the longest; equal values before misspelt ones.

        Args:
            text: the question.
            pieces: where its words begin and end.
        """
        words = [text[start:end] for start, end in pieces]
        exact = list(self._exact(text, pieces, words))
        misspelt = list(self._misspelt(text, pieces, words, exact))
        longer = {at for one in misspelt for at in range(one.start, one.end)}
        return [*(one for one in exact if one.start not in longer), *misspelt]

    def _exact(self, text: str, pieces: Sequence[tuple[int, int]], words: Sequence[str]) -> Iterator[ValueSpan]:
        spans = []
        for start, word in enumerate(words):
            folded = fold(word)
            longest = max(self._values.starting(folded), min(VALUES.longest, self._names.longest_from(folded)), 1)
            spans += [(start, end) for end in range(start + 1, min(len(words), start + longest) + 1)]
        covered: list[tuple[int, int]] = []
        for start, end in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
            if any(low <= start and end <= high for low, high in covered):
                continue
            piece = text[pieces[start][0] : pieces[end - 1][1]]
            bare = end - start == 1 and (words[start].casefold() in FUNCTION_WORDS | QUESTION_WORDS | _BARE)
            if bare and not words[start].isupper():
                continue
            alternatives = [piece]
            if (one := piece[: -len(words[end - 1])] + singular(words[end - 1])) != piece:
                alternatives.append(one)
            for each in alternatives:
                found = self._distinct(
                    [*self._of_values(start, end, self._values.equal(each)), *self._named(start, end, each)]
                )
                if found:
                    covered.append((start, end))
                    yield from found
                    break

    def _of_values(
        self, start: int, end: int, matches: Sequence[ValueMatch], dates: bool = False
    ) -> Iterator[ValueSpan]:
        codes: dict[Property, list[int]] = defaultdict(list)
        best: dict[Property, ValueMatch] = {}
        for match in matches:
            one = self._by_key.get((match.type, match.property))
            if one is None or one.kind in ("number", "year") or (one.kind == "date" and not dates):
                continue
            code = self._schema.column(one.name).code(match.value)
            if code is not None and (one not in best or match.score == best[one].score):
                codes[one].append(code)
                best.setdefault(one, match)
        for one, held in codes.items():
            yield ValueSpan(start, end, one, tuple(held), best[one].score, str(best[one].value))

    def _named(self, start: int, end: int, text: str, quality: float = 1.0) -> Iterator[ValueSpan]:
        nodes = self._names.exact(text).astype(np.int64)
        for type in range(len(self._schema.types)) if len(nodes) else ():
            own = self._schema.only(nodes, type)
            if len(own):
                name = self._by_key[self._schema.types[type], ""]
                shown = self._schema.graph.names_at(own[:1])[0]
                yield ValueSpan(start, end, name, (), quality, shown, own)

    def _distinct(self, found: Sequence[ValueSpan]) -> list[ValueSpan]:
        """Leave out names of the very nodes that have a value of the same text."""
        held = [
            (one.property.type, self._schema.holders(one.property, one.codes)) for one in found if one.nodes is None
        ]
        return [
            one
            for one in found
            if one.nodes is None
            or all(type != one.property.type or not np.array_equal(nodes, one.nodes) for type, nodes in held)
        ]

    def _misspelt(
        self, text: str, pieces: Sequence[tuple[int, int]], words: Sequence[str], exact: Sequence[ValueSpan]
    ) -> Iterator[ValueSpan]:
        """Yield misspelt values, around words that are no value, or longer than one that is; a code stays whole."""
        codes = [(code.start, code.end) for code in question_words(text) if code.code]
        within = {at for at, (start, _) in enumerate(pieces) if any(low < start < high for low, high in codes)}
        inside = {(one.start, one.end) for one in exact}
        taken = {at for start, end in inside for at in range(start, end)}
        marked = [_is_marked(text, start, end) for start, end in pieces]
        rare = [at not in taken and self.is_rare(word) for at, word in enumerate(words)]
        spans = [
            (start, end)
            for start in range(len(words))
            for end in range(min(len(words), start + VALUES.window), start, -1)
            if within.isdisjoint((start, end))
            and marked[start]
            and marked[end - 1]
            and any(rare[start:end])
            and all(start <= low and high <= end for low, high in inside if low < end and start < high)
            and not _begins_sentence(text, pieces[start][0], end - start)
        ]
        spans += [span for span in quoted_spans(text, pieces) if span not in inside and any(rare[slice(*span)])]
        spans.sort(key=lambda span: (span[0] - span[1], span[0]))
        for start, end in dict.fromkeys(spans[: VALUES.compared]):
            piece = text[pieces[start][0] : pieces[end - 1][1]]
            if any(rare[start:end]) and len(piece) >= VALUES.letters and read_literal(piece) is None:
                found = self._similar(start, end, piece, any(at in taken for at in range(start, end)))
                if found:
                    rare[start:end] = [False] * (end - start)
                    yield from self._distinct(found)

    def _similar(self, start: int, end: int, piece: str, strict: bool) -> list[ValueSpan]:
        least = VALUES.longer if strict else VALUES.value
        matches = [one for one in self._values.find(piece) if one.score >= least]
        found = list(self._of_values(start, end, matches, dates=True))
        for match in self._names.search([piece], 3, max(least, VALUES.name))[0]:
            found += self._named(start, end, match.name, match.score)
        return found

    def is_rare(self, word: str) -> bool:
        """True for a word that is none of everyday."""
        return not word.isalpha() or not self._familiar(word.casefold())


def _is_marked(text: str, start: int, end: int) -> bool:
    """True if a word, with what it is joined to without a space, has a capital in front, a digit or an @."""
    low = text.rfind(" ", 0, start) + 1
    high = text.find(" ", end)
    token = text[low : high if high >= 0 else len(text)]
    return text[start].isupper() or any(map(str.isdigit, token)) or "@" in token


def _begins_sentence(text: str, start: int, length: int) -> bool:
    """True for a single word at the start of a sentence, whose capital means nothing."""
    before = text[:start].rstrip(" '\"\u201c\u2018")
    return length == 1 and (not before or before[-1] in ".?!:")
