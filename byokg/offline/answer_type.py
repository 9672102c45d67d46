"""The kind of answer that a question names: «which publisher» is answered by publishers, «how high» by a value.

Values answer only questions for a value: `LiteralAnswerDetector` finds the properties that these ask for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import chain, pairwise
from typing import Literal

import numpy as np

from byokg.arrays import Bools, Float64
from byokg.graph.property_view import FIRST_VALUE, PropertyView, is_value, name_of_value
from byokg.graph.store import GraphStore
from byokg.offline.facts import PropertyLinker, looks_dated, measure, period_role, walk_table
from byokg.offline.lexicon import SILENT, adjectives, cached, load_lexicon, measured_by, rule
from byokg.offline.parse import ParsedQuestion
from byokg.offline.parse_constraints import QueryConstraints, asked_part, parse_constraints, parse_path_question
from byokg.offline.schema_linking import (
    RelationSimilarity,
    SchemaStatistics,
    agent_noun_verbs,
    content_words,
    label_names_head,
)
from byokg.text.dates import read_date
from byokg.text.names import UNRELATED, label_words, related, singular, split_label, split_words, synonyms
from byokg.types import INVERSE, EntityId, Mention, Node, PathEvidence, of_any


@dataclass(frozen=True)
class TypePrediction:
    """Thresholds of answer-type prediction."""

    similar: float = 0.5
    """Similarity from which a type may be the referent of another noun."""
    margin: float = 0.1
    """Lead of the most similar type over all others."""
    sample: int = 20
    """Sampled ends of a path for type statistics: evenly spread over their ids, in any order of arrival."""


_SETTINGS = TypePrediction()

_ASKS = re.compile(r"\W*(?:[a-z]+\s+)?(?P<word>who|whom|whose|where)\b", re.IGNORECASE)

_RELATIVES = {
    **dict.fromkeys("daughter sister mother wife aunt niece grandmother granddaughter mom mum".split(), "f"),
    **dict.fromkeys("son brother father husband uncle nephew grandfather grandson dad".split(), "m"),
}
_SEX_KEYS = ("gender", "sex")
_SEXES = {"f": "f", "female": "f", "woman": "f", "m": "m", "male": "m", "man": "m"}


@dataclass(frozen=True)
class AnswerType:
    """Which nodes a noun names: those of some types, or without types those that some relations lead to or from.

    A graph with relations `plays_in_club` has clubs, and players; one with `film.director.film` directors, and films.
    """

    types: frozenset[str] = frozenset()
    heads: frozenset[int] = frozenset()
    """Numbers of relations that lead from such nodes, and"""
    tails: frozenset[int] = frozenset()
    """of those that lead to them."""
    similarity: float = 1.0
    """Similarity of the noun and the type's name: 1 if they are equal."""

    @property
    def exact(self) -> bool:
        """True if the noun is the type's name."""
        return self.similarity == 1.0

    def __bool__(self) -> bool:
        return bool(self.types or self.heads or self.tails)


_YEAR = re.compile(r"(?<!\d)[12]\d{3}(?!\d)")
_MONTHS = "january february march april may june july august september october november december".replace(" ", "|")
_DAY = re.compile(rf"\b(?:{_MONTHS})\s+\d|\d(?:st|nd|rd|th)?\s+(?:of\s+)?(?:{_MONTHS})\b", re.IGNORECASE)
_QUANTITY = re.compile(r"\W*\d[\d.,]*\s*\S{0,12}\s*$")

_NO_KIND = AnswerType()


class AnswerTypePredictor:
    """Compares the noun that a question asks for with the types of nodes.

    Args:
        statistics: of the graph; with statistics that grow, a noun is compared with the types of the nodes at hand, not
            with all types of the schema, for which a server scans its whole graph.
        likeness: how much a noun means another, in [-1, 1]; without it only types are found that are called by a noun.
    """

    def __init__(self, statistics: SchemaStatistics, likeness: Callable[[str, str], float] | None = None) -> None:
        self._store = statistics.store
        self._statistics = statistics
        self._likeness = likeness
        self._nouns = cached(1 << 10)(_nouns)
        self.type_named = lru_cache(1 << 10)(lambda noun: _named(noun, self._types))
        """Returns the graph's type for a noun; empty if none has such a name."""
        self._sexed = cached(1 << 10)(_sexed)
        self._relative = cached(1 << 10)(_only_relative)
        self._of_relations = cached(1 << 10)(self._related)

    def predict(self, text: str, mentions: tuple[Mention, ...], ends: Iterable[Sequence[EntityId]]) -> AnswerType:
        """Predict the answer type of a question from its noun; None if the graph has no such type.

        Args:
            text: the question.
            mentions: its mentions.
            ends: ends of the candidate paths.
        """
        nouns = self._nouns(text, mentions)
        if self._statistics.grows and not nouns and _ASKS.match(text) is None:
            return _NO_KIND
        grows = self._statistics.grows
        types = self._types_of(ends) if grows else self._types
        if types:
            names = (_named(noun, types) if grows else self.type_named(noun) for noun in nouns)
            if named := next(filter(None, names), ""):
                return AnswerType(_called_alike(named, types))
            return _answering(text, types) or (self._alike(nouns[0]) if nouns and not grows else _NO_KIND)
        return self._of_relations(nouns[0]) or self._synonymous(nouns[0]) if nouns else _NO_KIND

    @rule("gender of the answer", "who are the sisters of {Tom}", lambda self, text, mentions, candidates: candidates)
    def filter_by_gender(
        self, text: str, mentions: tuple[Mention, ...], candidates: Sequence[tuple[EntityId, ...]]
    ) -> Sequence[tuple[EntityId, ...]]:
        """Keep people of the gender the question implies (`sisters`); keep all if the graph has no gender.

        Only properties count: `gender` or `sex`.
        """
        sex = self._sexed(text, mentions)
        return [self._of_sex(ends, sex) for ends in candidates] if sex else candidates

    def _of_sex(self, ends: tuple[EntityId, ...], sex: str) -> tuple[EntityId, ...]:
        if any(map(is_value, ends)):
            return ends
        told = {node.id: value for node in self._store.nodes(ends) for value in (_sex_of(node),) if value}
        return tuple(end for end in ends if told.get(end, sex) == sex) or ends

    @rule("gender on the way", "what did {Tom}'s father do", lambda *given: [path.ends for path in given[-1]])
    def filter_paths_by_gender(
        self, text: str, mentions: tuple[Mention, ...], store: GraphStore, paths: Sequence[PathEvidence]
    ) -> list[tuple[EntityId, ...]]:
        """Keep the ends of each path whose intermediate relative has the implied gender.

        `What did X's father do` passes only male parents, as far as properties record it. Skipped with per-question
        type statistics, since it needs requests for each path.

        Args:
            text: the question.
            mentions: its mentions.
            store: the graph, with values as nodes if a path ends in one.
            paths: candidate paths.
        """
        relative = self._relative(text, mentions) if self._tells_sex else ""
        return [self._through(store, path, relative) if relative else path.ends for path in paths]

    def _through(self, store: GraphStore, path: PathEvidence, relative: str) -> tuple[EntityId, ...]:
        column = _last_of_kin(path.relations, relative)
        table = walk_table(store, path.source, path.relations) if 0 < column < len(path.relations) else None
        if table is None or not len(table):
            return path.ends
        middle, row = np.unique(table.nodes[:, column], return_inverse=True)
        told = [_sex_of(node) for node in self._store.nodes(store.ids(middle))]
        fitting = np.array([sex in ("", _RELATIVES[relative]) for sex in told], np.bool_)
        reached = frozenset(store.ids(np.unique(table.nodes[fitting[row], -1])))
        return tuple(end for end in path.ends if end in reached) or path.ends

    @rule("similar answer type", "which company makes {X}", lambda self, noun: _NO_KIND)
    def _alike(self, noun: str) -> AnswerType:
        """Return the type most similar to a noun, if it is near and without a close competitor."""
        if self._likeness is None:
            return _NO_KIND
        noun = singular(noun)
        near = sorted(((self._likeness(noun, words[-1]), type) for type, words in self._types.items()), reverse=True)
        first, second = (*near, (-1.0, ""), (-1.0, ""))[:2]
        near_enough = first[0] >= max(_SETTINGS.similar, second[0] + _SETTINGS.margin)
        return AnswerType(frozenset((first[1],)), similarity=first[0]) if near_enough else _NO_KIND

    @rule("answer type by relation", "which films star {Tom}", lambda self, noun: _NO_KIND)
    def _related(self, noun: str) -> AnswerType:
        """Return the nodes that relations call by a noun."""
        noun = load_lexicon("count")["singular"].get(noun, noun)
        single, verbs, heads, tails = singular(noun), agent_noun_verbs(noun), set[int](), set[int]()
        for number, (called, names_head, namespace, verb) in enumerate(self._called):
            if called == single:
                (heads if names_head else tails).add(number)
            if namespace == single or verb in verbs:
                heads.add(number)
        return AnswerType(heads=frozenset(heads), tails=frozenset(tails))

    @rule("answer type by synonym", "which movies star {Tom}", lambda self, noun: _NO_KIND)
    def _synonymous(self, noun: str) -> AnswerType:
        """Return the nodes whose relation is a synonym of a noun: `movies` for a `film`."""
        noun = singular(noun)
        others = sorted(synonyms().get(noun, UNRELATED).alike - {noun})
        return replace(next(filter(None, map(self._of_relations, others)), _NO_KIND), similarity=_SETTINGS.similar)

    @cached_property
    def _called(self) -> list[tuple[str, bool, str, str]]:
        """For each relation the noun of its name, whether that names its heads, of its namespace, and its verb."""
        labels = [] if self._statistics.grows else [label_words(label) for label in self._store.relations]
        return [
            (singular(content_words(own)[-1]), label_names_head(own), singular(" ".join(namespace[-1:])), verb)
            for (namespace, own), verb in zip(labels, self._statistics.verbs(labels), strict=True)
        ]

    @cached_property
    def _tells_sex(self) -> bool:
        """True if nodes have a gender property."""
        properties = {} if self._statistics.grows else self._store.schema().node_properties
        return not set(_SEX_KEYS).isdisjoint(chain(*properties.values()))

    @cached_property
    def _types(self) -> Mapping[str, Sequence[str]]:
        return _worded(self._store.schema().node_types)

    def _types_of(self, ends: Iterable[Sequence[EntityId]]) -> Mapping[str, Sequence[str]]:
        looked_at = dict.fromkeys(end for some in ends for end in _spread(some) if not is_value(end))
        return _worded(sorted({type for node in self._store.nodes(list(looked_at)) for type in node.types}))

    def filter_or_all(self, ends: Sequence[EntityId], kind: AnswerType) -> tuple[EntityId, ...]:
        """Keep the nodes of a type; all, if none is of it, some are values, or types are unknown."""
        if not kind.types or any(map(is_value, ends)):
            return tuple(ends)
        return self.filter(ends, kind) or tuple(ends)

    def is_compatible(self, ends: Sequence[EntityId], kind: AnswerType) -> bool:
        """True if a third of some nodes are of a type, and at least as many as are of others or are values."""
        some = _spread(ends)
        nodes = [end for end in some if not is_value(end)]
        of_it, told = len(self.filter(nodes, kind)), len(some)
        if kind.types:
            told -= sum(not node.types for node in self._store.nodes(nodes))
        return of_it > 0 and 3 * of_it >= len(some) and 2 * of_it >= told

    def filter_candidates(self, ends: Sequence[EntityId], kind: AnswerType) -> tuple[EntityId, ...]:
        """Keep the possible answers for an answer type: the nodes of a type, or all or none."""
        return self.filter(ends, kind) if kind.types else tuple(ends) if self.is_compatible(ends, kind) else ()

    def filter_each(self, ends: Sequence[Sequence[EntityId]], kind: AnswerType) -> list[tuple[EntityId, ...]]:
        """Keep the possible answers among several lists of nodes, see `filter_candidates`."""
        looked_at = ends if kind.types else [_spread(some) for some in ends]
        of_it = frozenset(self.filter(list(dict.fromkeys(end for some in looked_at for end in some)), kind))
        if kind.types:
            return [tuple(end for end in some if end in of_it) for some in ends]
        counts = [sum(end in of_it for end in some) for some in looked_at]
        fits = [count > 0 and 2 * count >= len(some) for count, some in zip(counts, looked_at, strict=True)]
        return [tuple(some) if fit else () for some, fit in zip(ends, fits, strict=True)]

    @rule("no number for who", "who leads {Peru}", lambda self, text, candidates: [True] * len(candidates))
    def may_answer(self, text: str, candidates: Sequence[Sequence[EntityId]]) -> list[bool]:
        """Return for each of several lists of nodes False for numbers and dates, if the question asks who or where."""
        if _ASKS.match(text) is None:
            return [True] * len(candidates)
        # Sorting many takes long, and the least one decides for most.
        few = [[min(ends)] if len(ends) > _SETTINGS.sample else ends for ends in candidates]
        wanted = dict.fromkeys(end for ends in few for end in ends if not is_value(end))
        named = {node.id for node in self._store.nodes(list(wanted)) if measure(node.name) is None}
        return [
            not named.isdisjoint(some) or (some is not ends and self._names_any(_spread(ends)))
            for some, ends in zip(few, candidates, strict=True)
        ]

    def _names_any(self, ends: Sequence[EntityId]) -> bool:
        """True if some nodes have names other than numbers and dates."""
        nodes = self._store.nodes([end for end in ends if not is_value(end)])
        return any(measure(node.name) is None for node in nodes)

    def filter(self, ends: Sequence[EntityId], kind: AnswerType) -> tuple[EntityId, ...]:
        """Return the nodes that are of a kind, in their order; of several types of a node one is enough."""
        nodes = [end for end in ends if not is_value(end)]
        if kind.types:
            return tuple(node.id for node in self._store.nodes(nodes) if of_any(node, kind.types))
        counts = self._store.relation_counts(np.asarray(self._store.numbers(nodes), np.int64))
        heads, tails = (np.array(sorted(some), np.int64) for some in (kind.heads, kind.tails))
        told = np.where(counts.inverse, np.isin(counts.relation, tails), np.isin(counts.relation, heads))
        of_it = np.zeros(len(nodes), np.bool_)
        of_it[counts.origin[told]] = True
        return tuple(node for node, is_one in zip(nodes, of_it.tolist(), strict=True) if is_one)


def is_literal_of(name: str, value: Literal["date", "number"]) -> bool:
    """Return True if a name is a date or holds a year, or is a number with or without a unit."""
    if value == "date":
        return _YEAR.search(name) is not None or _DAY.search(name) is not None or read_date(name) is not None
    return measure(name) is not None or _QUANTITY.match(name) is not None


@rule("types for who and where", "where was {Tom} born", lambda text, types: _NO_KIND)
def _answering(text: str, types: Mapping[str, Sequence[str]]) -> AnswerType:
    """Return the types that can answer who or where; empty if all types can.

    Untyped nodes can be anything.
    """
    asks = _ASKS.match(text)
    if asks is None:
        return _NO_KIND
    words = _answers()["where" if asks["word"].casefold() == "where" else "who"]
    fitting = frozenset(name for name, parts in types.items() if singular(parts[-1]) in words)
    return AnswerType(fitting | {""}) if 0 < len(fitting) < len(types) else _NO_KIND


def _called_alike(type: str, types: Iterable[str]) -> frozenset[str]:
    """Return a type, and those of the same name in other vocabularies: `Person` and `schema:Person`."""
    name = type.rpartition(":")[2]
    return frozenset(other for other in types if other.rpartition(":")[2] == name)


@cache
def _answers() -> Mapping[str, frozenset[str]]:
    return {asks: frozenset(" ".join(words).split()) for asks, words in load_lexicon("kinds").items()}


def _spread(ends: Sequence[EntityId]) -> Sequence[EntityId]:
    """Return some of many nodes, that of the least id first."""
    if len(ends) <= _SETTINGS.sample:
        return ends
    by_id = sorted(ends)
    return [by_id[place * len(by_id) // _SETTINGS.sample] for place in range(_SETTINGS.sample)]


def _worded(types: Iterable[str]) -> dict[str, list[str]]:
    """Return the words of each type."""
    return {name: split_words(split_label(name)) for name in types if name}


def _nouns(text: str, mentions: tuple[Mention, ...]) -> tuple[str, ...]:
    """Return candidate nouns for the answer type, the likeliest first."""
    constraints = parse_constraints(text, mentions)
    if constraints.count and constraints.counted:
        return (constraints.counted,)
    parsed, nouns = parse_path_question(text, mentions), list[str]()
    if parsed.words[:1] == ("whose",):
        return ()
    for place in reversed(parsed.answer_type_span or parsed.head_nouns):
        if re.search(r"[^e]ed$", parsed.words[place]) is not None:  # who ordered X
            continue
        if parsed.words[place + 1 : place + 2] == ("s",):  # which country's capital
            break
        nouns.append(parsed.words[place])
    return tuple(nouns)


def _sexed(text: str, mentions: tuple[Mention, ...]) -> str:
    """Return the sex of the relatives that a question asks for: `m`, `f`, or empty."""
    parsed = parse_path_question(text, mentions)
    kin = [
        place for place, word in enumerate(parsed.words) if not parsed.masked[place] and singular(word) in _RELATIVES
    ]
    both = any(one + 2 == other and parsed.words[one + 1] in ("and", "or") for one, other in pairwise(kin))
    if not kin or both:  # X's mother and father
        return ""
    owned = kin[-1] > 0 and (parsed.words[kin[-1] - 1] == "s" or parsed.masked[kin[-1] - 1])
    return _RELATIVES[singular(parsed.words[kin[-1] if owned else kin[0]])]


def _only_relative(text: str, mentions: tuple[Mention, ...]) -> str:
    """Return the only relative of a question, in the singular; empty for none or several."""
    parsed = parse_path_question(text, mentions)
    kin = {singular(word) for word in parsed.unmasked} & _RELATIVES.keys()
    return kin.pop() if len(kin) == 1 else ""


def _last_of_kin(relations: Sequence[str], relative: str) -> int:
    """Return after how many hops of a path a relative is reached: after the last one that is called like them."""
    part = relative.removeprefix("grand")
    kin = synonyms().get(part, UNRELATED)
    words = {part} | kin.alike | kin.converse
    own = [{singular(word) for word in label_words(label.removeprefix(INVERSE))[1]} for label in relations]
    return max((number for number, label in enumerate(own, 1) if label & words), default=0)


def _sex_of(node: Node) -> str:
    """Return a node's gender: `m`, `f`, or empty."""
    told = next((str(node.properties[key]).casefold() for key in _SEX_KEYS if key in node.properties), "")
    return _SEXES.get(told, "")


def _named(noun: str, types: Mapping[str, Sequence[str]]) -> str:
    """Return the first type that a noun names; empty if there is none."""
    noun = load_lexicon("count")["singular"].get(noun, noun)
    for name, words in types.items():
        if words and (noun == words[-1] or (len(noun) > 3 and related(noun, words[-1]))):
            return name
    return ""


@dataclass(frozen=True)
class LiteralThresholds:
    """Thresholds of literal answers."""

    named: float = 0.8
    """Similarity from which a word names a property."""
    measured: float = 0.45
    """The same for questions of height, length or age, and so for some number."""
    sample: int = 32
    """Sampled values of each property."""


_LITERALS = LiteralThresholds()

_DATES = frozenset({"year", "years", "date", "dates"})


class LiteralAnswerDetector:
    """Detects questions for a literal, and its property.

    Args:
        view: the graph with values as nodes.
        steps: schema linking.
        properties: compares words with names of properties.
    """

    def __init__(self, view: PropertyView, steps: RelationSimilarity, properties: PropertyLinker) -> None:
        self._steps = steps
        self._property_linker = properties
        self.first = view.real_relations
        self._labels = list(view.relations)[self.first :]
        self._roles = np.array([period_role(label.rpartition(".")[2]) for label in self._labels], np.str_)
        self.owners = np.array([view.owners.get(number, -1) for number in range(self.first, len(view.relations))])
        """Relation whose edges have each property; -1 for properties of nodes."""
        self._of_edges = self.owners >= 0
        batch = view.sample_edges(_LITERALS.sample)
        values = batch.tail >= FIRST_VALUE
        names = [name_of_value(id) for id in view.ids(batch.tail[values])]
        of = batch.relation[values] - self.first
        size = np.maximum(1, np.bincount(of, minlength=len(self._labels)))
        numbers = np.array([measure(name) is not None for name in names], np.float64)
        dates = np.array([looks_dated(name) for name in names], np.float64)
        self._numbers = np.bincount(of, numbers, len(self._labels)) / size > 0.5
        self._dates = np.bincount(of, dates, len(self._labels)) / size > 0.5

    def detect(self, parsed: ParsedQuestion, constraints: QueryConstraints) -> tuple[Bools, bool]:
        """Return for each property whether its values may be the answer: (V,), and whether nothing else may."""
        words = [
            word for word, masked in zip(parsed.words, parsed.masked, strict=True) if not masked and word not in SILENT
        ]
        focus = {parsed.words[place] for place in parsed.answer_type_span or parsed.head_nouns}
        if parsed.wh_word == "when" or _DATES & focus:
            allowed = self._meant_dates(parsed)
            return allowed, bool(allowed.any())
        nouns = _asked_measure(parsed) or _named_measures(focus)
        if nouns:
            allowed = self._numbers & (self._likeness(nouns) >= _LITERALS.measured)
            return allowed, bool(allowed.any())
        if constraints.count:
            allowed = self._numbers & (self._likeness(measured_by(constraints.counted)) >= _LITERALS.named)
            return allowed, constraints.counted != "people" and constraints.counted in load_lexicon("order")["units"]
        allowed = np.zeros(len(self._labels), np.bool_)
        for word in words:
            allowed |= self._steps.label_similarity(word)[2 * self.first :: 2] >= _LITERALS.named
        allowed &= ~self._of_edges | ~self._dates
        for place in np.flatnonzero(allowed & self._of_edges).tolist():
            # The bare relation, as in «what it activates», takes nodes, and not their confidence.
            name = self._labels[place].rpartition(".")[2]
            allowed[place] = any(self._property_linker.likeness(word, name) >= _LITERALS.named for word in words)
        return allowed, False

    def _meant_dates(self, parsed: ParsedQuestion) -> Bools:
        """Return the dates that may be asked for: of a period the end that the verb means, of births no other edges."""
        part = asked_part(" ".join(parsed.unmasked))
        other = {"begin": "end_keys", "end": "begin_keys"}.get(part, "none")
        meant = self._dates & (self._roles != other)
        for word in load_lexicon("time")["events"].keys() & parsed.unmasked:
            named = self._steps.label_similarity(word)[2 * self.first :: 2] >= _LITERALS.named
            meant &= ~self._of_edges | named
        return meant if meant.any() else self._dates.copy()

    def _likeness(self, nouns: Sequence[str]) -> Float64:
        """Return the largest similarity of each property's name to some nouns: (V,)."""
        likeness = self._property_linker.likeness
        return np.array([max(likeness(noun, label) for noun in nouns) for label in self._labels])


@rule("measure of how", "how high is {X}", lambda parsed: ())
def _asked_measure(parsed: ParsedQuestion) -> tuple[str, ...]:
    """Return what «how high» asks for."""
    words = parsed.words
    for place, word in enumerate(words[:-1]):
        if word == "how" and not parsed.masked[place]:
            adjective = adjectives().get(words[place + 1])
            if adjective is not None:
                return (*words[-1:], *adjective.nouns) if words[-2:-1] == ("in",) else adjective.nouns  # in pages
            if words[place + 1] == "much":
                return ("price", "cost", "salary", "weight", "amount")
    return ()


@rule("synonyms of measures", "what is the altitude of {X}", lambda words: ())
def _named_measures(words: frozenset[str] | set[str]) -> tuple[str, ...]:
    """Return synonyms of a measure: `altitude` is `elevation`, too."""
    for group in load_lexicon("order")["adjective"]:
        if "dates" not in group and not words.isdisjoint(group["nouns"]):
            named = [noun for noun in group["nouns"] if noun in words]
            return (*named, *(noun for noun in group["nouns"] if noun not in words))
    return ()
