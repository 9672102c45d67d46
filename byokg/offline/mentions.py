"""Finding the pieces of a question that name something in the graph, without a language model."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TypeVar

from byokg.errors import CacheUnusable
from byokg.files import user_cache
from byokg.graph.store import GraphStore
from byokg.index.dense import CachedEmbedder
from byokg.index.embedders import Embedder, SentenceTransformerEmbedder, exact, shipped_embedder
from byokg.linking.entities import EntityLinker
from byokg.linking.parts import Parts
from byokg.offline.answer_type import AnswerTypePredictor
from byokg.offline.lexicon import SILENT, rule
from byokg.offline.schema_linking import LabelSimilarity, SampledStatistics, SchemaStatistics, WordSettings
from byokg.text.names import WORD, hints, normalize_label, normalize_name, other_names, stands_within
from byokg.text.values import read_literal
from byokg.types import EntityId, Mention


@dataclass(frozen=True)
class MentionLimits:
    """Lengths of spans in mention detection."""

    letters: int = 4
    """A shorter word or text is not compared approximately: too much resembles it."""
    before_id: int = 40
    """Characters before a number that may call it an id."""
    beside: int = 2
    """Words beside one that is a part of a name, on either side."""
    run: int = 8
    """Words of a text that is compared approximately."""


_LIMITS = MentionLimits()

_ARTICLES = frozenset("the a an".split())
_ID = re.compile(r"\b(?:ids?|identifier|key|node)\b\W*$", re.IGNORECASE)
_QUOTES = tuple("\"'“”‘’`")


@dataclass(frozen=True)
class SpottingSettings:
    """Thresholds of mention detection; tuned on the dev splits of MetaQA, WebQSP and atlas."""

    same_case: float = 1.5
    """Worth of a name with capitals that is written just so."""
    other_case: float = 0.7
    """Weight of a name if the text has capitals, but not those of the name."""
    explained: float = 0.9
    """How much of a word's importance is lost when a relation of the graph explains it."""
    another: float = 0.5
    """A further mention needs this share of the best one's worth,"""
    another_name: float = 0.1
    """or this one if it has the capitals of a name,"""
    another_thing: float = 0.2
    """or this one for a lower-case name with its article, in a question that writes names with capitals,"""
    another_whole: float = 0.15
    """or this one for the whole of a name of several words"""
    telling: float = 0.8
    """of which one is explained by relations less than this."""
    part: float = 0.5
    """Share of the best one's worth from which a lower-case part of a name counts beside it,"""
    part_worth: float = 1.5
    """if it is worth more than this."""
    most: int = 3
    """Mentions at most."""
    misspelt_cutoff: float = 0.85
    """Lowest score of a misspelt name, in [0, 1]: shares of letters in common."""
    fuzzy_cutoff: float = 0.88
    """Lowest score of a part of a name, in [0, 1]."""
    added: float = 0.25
    """Least weight that the further words of a name in other forms add to that of a name within it."""
    little: float = 0.2
    """Where no name is worth as much as this,"""
    half_told: float = 0.5
    """a word may be a part of a name with more than this weight beyond the explained part."""
    strange: float = 0.5
    """A word that no name has is taken for misspelt if no relation explains it as well as this."""


class MentionSpotter:
    """Finds mentions by comparing every run of words with the names of the graph.

    Args:
        entities: holds the index over the names of the graph, made on first use.
        importance: weight of a word, about 1 on average.
        explained: how well some relation of the graph explains a word, in [0, 1].
        familiar: True for an everyday word, which is not misspelt.
        is_type: True for a word that names a type of nodes, and so is no part of a name.
        settings: weights and thresholds.
    """

    def __init__(
        self,
        entities: EntityLinker,
        importance: Callable[[str], float],
        explained: Callable[[str], float],
        familiar: Callable[[str], bool] = lambda word: False,
        settings: SpottingSettings | None = None,
        is_type: Callable[[str], bool] = lambda word: False,
        is_property: Callable[[str], bool] = lambda word: False,
    ) -> None:
        self._is_type, self._is_property = is_type, is_property
        self._entities, self._importance = entities, importance
        self._explained, self._familiar = explained, familiar
        self.settings = settings or SpottingSettings()

    def spot(self, text: str) -> list[Mention]:
        """Return the mentions in a question, the heaviest first; none overlap.

        Names that stand in the text (case, accents and punctuation folded) compete with misspelt ones, which are
        searched around unexplained words. A name with an unexplained part in the text (`Romney`) counts if it
        outweighs all of these. Only without either, misspelt names are searched everywhere.
        """
        words = _Words(text)
        telling = [at for at, word in enumerate(words.folded) if len(word) >= _LIMITS.letters and _tells(word)]
        content = [at for at in telling if not self._is_label(words, at)]
        strange = [at for at in content if self._strange(words.folded[at])]
        plain = self._exact(words)
        exact = [*plain, *self._called_otherwise(words, [mention for _, mention in plain])]
        named = {position for _, mention in exact for position in words.within(mention)}
        found = [*exact, *self._misspelt(words, content if exact and not plain else strange)]
        most = max((worth for worth, _ in found), default=0.0)
        lone = [at for at in content if at not in named and self._lone(words, at, most)]
        least = min(most, max(self.settings.part * most, self.settings.part_worth))
        parts = self._surnames(words, lone)
        found += [part for part in parts if part[0] > (least if part[1].text.islower() else most)]
        if not found:
            found = self._misspelt(words, content)
        dates = words.dates()
        found = [one for one in found if not any(_is_inside(one[1], date) for date in dates)]
        found.sort(key=lambda item: (-item[0], item[1].start, -item[1].end))
        kept: list[Mention] = []
        for worth, mention in found:
            if len(kept) == self.settings.most:
                break
            share = self.settings.another_name if self._capital(mention) else self.settings.another
            if kept and self._thing(words, mention, kept[0]):
                share = self.settings.another_thing
            elif self._whole(words, mention):
                share = min(share, self.settings.another_whole)
            apart = all(mention.end <= other.start or mention.start >= other.end for other in kept)
            if apart and (not kept or worth >= share * found[0][0]):
                kept.append(mention)
        return kept

    def _whole(self, words: _Words, mention: Mention) -> bool:
        """True if a mention of several words is a name as it stands, and relations do not explain all of it."""
        told = [words.folded[place] for place in words.within(mention) if _tells(words.folded[place])]
        explained = min(map(self._explained, told), default=1.0)
        return len(told) > 1 and explained < self.settings.telling and self._entities.names.knows(mention.text)

    def _capital(self, mention: Mention) -> bool:
        """True if a mention within a sentence has the capitals of a name."""
        return mention.start > 0 and mention.text[:1].isupper() and self._entities.names.writes(mention.text)

    @rule("thing as mention", "which countries of {Europe} use the euro", lambda self, words, mention, first: False)
    def _thing(self, words: _Words, mention: Mention, first: Mention) -> bool:
        """True if a mention is a thing by its exact name, `the euro`, that names no relation of the graph.

        One that continues with a noun is none (`the euro area`), nor is any in a question without capitals.
        """
        places = words.within(mention)
        folded = [words.folded[place] for place in places]
        after = words.folded[places[-1] + 1 : places[-1] + 2]
        return (
            folded[0] == "the"
            and len(folded) > 1
            and first.text != first.text.casefold()
            and not any(map(_tells, after))
            and max(map(self._explained, folded[1:])) < 1
            and self._entities.names.knows(mention.text)
        )

    def _exact(self, words: _Words) -> list[tuple[float, Mention]]:
        """Look up every run that is not longer than the names that start with its first word.

        A name weighs no less than those within it (`governor of Ohio`), whatever its letters.
        """
        names = self._entities.names
        longest = [names.longest_from(normalize_name(word)) for word in words.folded]
        found = []
        for first, word in enumerate(words.folded):
            most = longest[first]
            if word in _ARTICLES and first + 1 < len(longest):  # names are indexed without their article
                most = max(most, 1 + longest[first + 1])
            for last in range(first, min(len(longest), first + most)):
                mention = words.mention(first, last)
                if names.knows(mention.text) and not self._row_number(words, mention):
                    worth = self._worth(words, first, last, names.writes(mention.text))
                    if worth > 0:
                        found.append((worth, first, last))
        for first, last, _ in names.loosely([normalize_name(word) for word in words.folded]):
            within = [worth for worth, start, end in found if first <= start and end <= last]
            worth = self._worth(words, first, last, False) - self.settings.added
            if worth >= max(within, default=0.0) and not names.knows(words.mention(first, last).text):
                found.append((worth, first, last))
        whole = []
        for worth, first, last in found:
            if _tells(words.folded[first]) and _tells(words.folded[last]):
                worth = max(within for within, start, end in found if first <= start and end <= last)
            whole.append((worth, words.mention(first, last)))
        return whole

    @rule("row numbers", "how many films are there since 1990", lambda self, words, mention: False)
    def _row_number(self, words: _Words, mention: Mention) -> bool:
        """True for a whole number that is only the id of nodes without a name, and so no mention.

        False if it is in quotes, or follows a word for an id.
        """
        number = mention.text.isdecimal() and not words.marked_as_id(mention)
        return number and self._entities.is_row_number(mention.text)

    @rule("other names", "who is the German chancellor", lambda self, words, named: [])
    def _called_otherwise(self, words: _Words, named: Collection[Mention]) -> list[tuple[float, Mention]]:
        """Look up runs of words that are not named, but may be so otherwise: `the german chancellor`, `st paul`."""
        names = self._entities.names
        found = []
        for first, last in dict.fromkeys(words.hinting()):
            mention = words.mention(first, last)
            others = () if mention in named else other_names(mention.text)
            if any(map(names.knows, others)):
                told = words.folded[first : last + 1]
                found.append((sum(map(self._told, told[told[0] in _ARTICLES :])), mention))
        return found

    @rule("misspelt names", "who directed Haet", lambda self, words, around: [])
    def _misspelt(self, words: _Words, around: list[int]) -> list[tuple[float, Mention]]:
        """Compare the runs around some words with all names, letter by letter; keep the best run for each word.

        Comparing takes a while on a large graph, so only the most telling words are looked at.
        """
        found = []
        telling = sorted(around, key=lambda position: -self._importance(words.folded[position]))
        for position in telling[: self.settings.most]:
            runs = [
                (first, last)
                for first in range(max(0, position - _LIMITS.run + 1), position + 1)
                for last in range(position, min(len(words.folded), first + _LIMITS.run))
            ]
            found += self._closest(words, position, runs)
        return found

    def _closest(self, words: _Words, position: int, runs: Sequence[tuple[int, int]]) -> list[tuple[float, Mention]]:
        """Compare runs around a word with all names, letter by letter; return the best run, if any, with its worth."""
        mentions = [words.mention(first, last) for first, last in runs]
        word = normalize_name(words.folded[position])
        near = self._entities.names.closest([mention.text for mention in mentions], word, self.settings.misspelt_cutoff)
        rated = zip(near, runs, mentions, strict=True)
        match, run, mention = max(rated, key=lambda one: one[0].score if one[0] else 0.0)
        if match is None:
            return []
        return [(match.score * self._worth(words, *run, match.name != match.name.casefold()), mention)]

    @rule("parts of names", "who voted for Romney", lambda self, words, around: [])
    def _surnames(self, words: _Words, around: list[int]) -> list[tuple[float, Mention]]:
        """Find names of which the words around some positions are a part, the longest run for each."""
        found = []
        for position in around[: self.settings.most]:
            first = last = position
            while first > 0 and self._unexplained(words, first - 1) and position - first < _LIMITS.beside:
                first -= 1
            end = min(len(words.folded), position + _LIMITS.beside + 1)
            while last + 1 < end and self._unexplained(words, last + 1):
                last += 1
            runs = [(at, to) for at in range(first, position + 1) for to in range(position, last + 1)]
            mentions = [words.mention(*run) for run in runs]
            texts = [mention.text for mention in mentions]
            matches = self._entities.names.search(texts, 1, self.settings.fuzzy_cutoff)
            held = self._entities.names.holding([text if " " in text else "" for text in texts], 1)
            worths = [
                max([one.score for one in (*like, *more) if len(one.name) >= len(text)], default=0.0)
                * sum(map(self._told, words.folded[run[0] : run[1] + 1]))
                for run, text, like, more in zip(runs, texts, matches, held, strict=True)
            ]
            found.append(max(zip(worths, mentions, strict=True), key=lambda one: one[0]))
        return found

    def _is_label(self, words: _Words, at: int) -> bool:
        """True if a word names a type, or is a part of a property's name and no name by its capital."""
        word = words.folded[at]
        return self._is_type(word) or (self._is_property(word) and not words.is_capital(at))

    def _unexplained(self, words: _Words, at: int) -> bool:
        """True if a word has a meaning that no relation explains, and names no type or property."""
        word = words.folded[at]
        return _tells(word) and self._explained(word) < self.settings.strange and not self._is_label(words, at)

    def _lone(self, words: _Words, at: int, most: float) -> bool:
        """True if a word occurs in names, and nothing else explains it: an informative one, or none of everyday.

        If no name weighs much, it may be explained in part.
        """
        word = words.folded[at]
        telling = self._unexplained(words, at) and (self._importance(word) >= 1 or not self._familiar(word))
        half = most < self.settings.little and self._told(word) > self.settings.half_told
        return (telling or half) and self._entities.names.has_word(normalize_name(word))

    def _worth(self, words: _Words, first: int, last: int, same: bool) -> float:
        """Return the weight of a run that is a name; `same` if the name has the capitals of the run."""
        surface, folded = words.mention(first, last).text, words.folded[first : last + 1]
        capitals = surface != surface.casefold()
        # The first word of a sentence has a capital whatever it is.
        if same and capitals and not first == last == 0:
            if first == last and self._familiar(folded[0]):  # a `President` may be the relation's
                return self.settings.same_case * self._told(folded[0])
            return self.settings.same_case * sum(map(self._importance, folded))
        if not any(map(_tells, folded)):
            return 0.0
        worth = sum(map(self._told, folded[1:] if folded[0] in _ARTICLES else folded))
        return worth * (self.settings.other_case if capitals and not same else 1.0)

    def _told(self, word: str) -> float:
        """Return the weight of a word beyond its explanation by relations."""
        return self._importance(word) * (1 - self.settings.explained * self._explained(word))

    def _strange(self, word: str) -> bool:
        """True if a word is in no name, explained by no relation, and unfamiliar."""
        known = self._entities.names.has_word(normalize_name(word)) or self._familiar(word)
        return not known and self._explained(word) < self.settings.strange


class _Words:
    """The words of a text, and their places."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._spans = list(WORD.finditer(text))
        self.folded = [span.group().casefold() for span in self._spans]

    def mention(self, first: int, last: int) -> Mention:
        """Return the text from one word to another, both included."""
        start, end = self._spans[first].start(), self._spans[last].end()
        return Mention(self._text[start:end], start, end)

    def is_capital(self, at: int) -> bool:
        """True if a word within the text begins with a capital."""
        return at > 0 and self._spans[at].group()[:1].isupper()

    def hinting(self) -> list[tuple[int, int]]:
        """Return first and last word of the runs that may have another name."""
        found = []
        for at, word in enumerate(self.folded):
            if hints(word):
                end = min(len(self.folded), at + stands_within(word) * _LIMITS.beside + 1)
                starts = range(max(0, at - _LIMITS.beside), at + 1)
                found += [(first, last) for first in starts for last in range(at, end)]
        return found

    def marked_as_id(self, mention: Mention) -> bool:
        """Return True for a mention in quotes, or that follows `id` or `#`."""
        before = self._text[max(0, mention.start - _LIMITS.before_id) : mention.start].rstrip()
        after = self._text[mention.end : mention.end + 1]
        return (
            before.endswith("#") or _ID.search(before) is not None or (before[-1:] in _QUOTES and after[:1] in _QUOTES)
        )

    def dates(self) -> list[Mention]:
        """Return the dates of several words (`October 30, 2014`)."""
        digits = [any(map(str.isdigit, word)) for word in self.folded]
        pairs = (
            (first, last) for first in range(len(digits)) for last in range(first + 1, min(first + 4, len(digits)))
        )
        runs = [self.mention(first, last) for first, last in pairs if any(digits[first : last + 1])]
        return [run for run in runs if (read := read_literal(run.text)) is not None and read.kind == "date"]

    def within(self, mention: Mention) -> list[int]:
        """Return the positions of a mention's words."""
        return [at for at, span in enumerate(self._spans) if mention.start <= span.start() < mention.end]


def _is_inside(mention: Mention, other: Mention) -> bool:
    """True if a mention is a part of another one, and not all of it."""
    return other.start <= mention.start and mention.end <= other.end and mention.text != other.text


def _tells(word: str) -> bool:
    return word not in SILENT


_Made = TypeVar("_Made")

_GENEROUS = SpottingSettings(another=0.15, most=6)
"""Low thresholds: too much in a schema costs little; a missing part is not found."""


def mention_spotter(store: GraphStore, embedder: Embedder, entities: EntityLinker) -> MentionSpotter:
    """Return the offline pipeline's mention detector, by itself."""
    statistics = SchemaStatistics(store) if store.remote else SampledStatistics(store)

    @cache
    def labels() -> LabelSimilarity:
        statistics.list_relations()
        vector = lru_cache(1 << 12)(lambda word: exact(embedder.encode([word])[0]))
        relations, cached = tuple(statistics.relations), not statistics.grows
        return with_cache(embedder, cached, lambda names: LabelSimilarity(relations, names, vector, WordSettings()))

    return spotter_of(entities, statistics, lambda word: float(labels().similarity(word).max(initial=0.0)))


def entity_spotter(parts: Parts) -> Callable[[str], tuple[EntityId, ...]]:
    """Return a detector of a question's entities; it reads the relations of the graph on its first call."""
    entities = parts.entities

    @lru_cache(1)
    def spotter() -> MentionSpotter:
        made = mention_spotter(parts.store, parts.embedder, entities)
        made.settings = _GENEROUS
        return made

    def spotted(question: str) -> tuple[EntityId, ...]:
        question = parts.translate(question)
        linked = entities.link_all(spotter().spot(question), question)
        return tuple(dict.fromkeys(one.id for candidates in linked for one in candidates))

    return lru_cache(1 << 6)(spotted)


def spotter_of(
    entities: EntityLinker, statistics: SchemaStatistics, explained: Callable[[str], float]
) -> MentionSpotter:
    """Return a mention detector.

    Args:
        entities: holds the index over names.
        statistics: source of the types of a graph.
        explained: how well some relation of the graph explains a word, in [0, 1].
    """
    static, answer_types = shipped_embedder(), AnswerTypePredictor(statistics)

    @cache
    def properties() -> frozenset[str]:
        held = {} if statistics.grows else entities.store.schema().node_properties
        return frozenset(word for names in held.values() for name in names for word in normalize_label(name).split())

    return MentionSpotter(
        entities,
        lru_cache(1 << 14)(static.importance),
        explained=lru_cache(1 << 14)(explained),
        # Rare and misspelt words fall into pieces.
        familiar=lru_cache(1 << 14)(lambda word: len(static.tokens(word)[0]) == 1),
        is_type=lru_cache(1 << 14)(lambda word: not statistics.grows and bool(answer_types.type_named(word))),
        is_property=lambda word: word in properties(),
    )


def with_cache(embedder: Embedder, cached: bool, make: Callable[[Embedder], _Made]) -> _Made:
    """Return what `make` makes of an embedder; embeddings of a transformer are cached on disk, in full precision."""
    if not cached or not isinstance(embedder, SentenceTransformerEmbedder):
        return make(embedder)
    kept = CachedEmbedder(embedder, user_cache() / "embeddings", "float32")
    try:
        return make(kept)
    except CacheUnusable:
        return make(embedder)
    finally:
        kept.close()
