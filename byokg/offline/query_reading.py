"""A question as the ranker of query graphs sees it: words, values, numbers, dates, and operators."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from byokg.arrays import Float64
from byokg.index.embedders import Embedder, exact
from byokg.offline.lexicon import (
    SILENT,
    adjectives,
    any_of,
    cached,
    comparative,
    load_lexicon,
    number_pattern,
    number_value,
    pattern,
)
from byokg.offline.parse import NO_ROLE, REQUESTS, Role, parse_question
from byokg.offline.parse_constraints import QueryConstraints, best_number, parse_constraints
from byokg.offline.query_graphs import CountTest
from byokg.offline.query_schema import (
    SCHEMA,
    SEARCH,
    SLASHED,
    VALUES,
    WORDS,
    Constraint,
    Test,
    TypedSchema,
    ValueSpotter,
    day_number,
    quoted_spans,
)
from byokg.text.names import UNRELATED, WORD, related, singular, synonyms
from byokg.text.values import read_literal
from byokg.types import Mention

_PERSONS = frozenset(
    "who whom whose someone anyone everyone somebody anybody everybody those folk folks named called guy".split()
)
_PLACES = frozenset(("where",))


class SchemaWords:
    """Compares the words of questions with the labels of a typed schema; thread-safe.

    Elements are numbered: first the types, then the relations, then the properties.
    """

    def __init__(self, schema: TypedSchema, embedder: Embedder) -> None:
        self._embedder = embedder
        relations = {step.relation: step.words for step in schema.steps}
        labels = [*schema.type_words, *(relations.get(at, ()) for at in range(len(schema.graph.relations)))]
        labels += [one.words for one in schema.properties]
        self.first_relation = len(schema.types)
        self.first_property = self.first_relation + len(schema.graph.relations)
        self.labels: tuple[tuple[str, ...], ...] = tuple(labels)
        self._vocabulary = sorted({word for label in labels for word in label})
        place = {word: at for at, word in enumerate(self._vocabulary)}
        self._named = np.array([at for at, label in enumerate(labels) if label], np.int64)
        """The elements with a label; of their labels the words, the first of each, and the worth of the words."""
        self._spelled = np.array([place[word] for label in labels for word in label], np.int64)
        self._begin = np.cumsum([0, *(len(labels[at]) for at in self._named[:-1])])
        worth = [WORDS.modifier if rest else 1.0 for label in labels for rest in range(len(label) - 1, -1, -1)]
        self._worth = np.array(worth, np.float64)
        self._joined = defaultdict[str, list[int]](list)
        for at, label in enumerate(labels):
            self._joined["".join(label)].append(at)
        vectors = embedder.encode([*self._vocabulary, *(" ".join(label) for label in labels)])
        self._vectors, self._label_vectors = np.split(exact(vectors), [len(self._vocabulary)])
        self._known = {*self._vocabulary, *self._joined}
        kinds = load_lexicon("kinds")
        self._personal = self._typed(" ".join(kinds["who"]).split())
        self._placed = self._typed(" ".join(kinds["where"]).split())
        self.of_word = lru_cache(WORDS.remembered)(self._compared)
        """Returns the similarity of a word to each label, in [0, 1]: (E,)."""

    def _typed(self, words: Sequence[str]) -> Float64:
        of_type = [singular(label[-1]) in words for label in self.labels[: self.first_relation]]
        return np.array([*of_type, *[False] * (len(self.labels) - self.first_relation)], np.float64)

    def _compared(self, word: str) -> Float64:
        plain, kin = singular(word), synonyms().get(singular(word), UNRELATED)
        vector = exact(self._embedder.encode([word])[0])
        words = _scaled(self._vectors @ vector)
        for at, other in enumerate(self._vocabulary):
            words[at] = max(words[at], _lexical(word, plain, other, kin.alike))
        labels = np.zeros(len(self.labels))
        if len(self._named):
            own = np.maximum.reduceat(words[self._spelled] * self._worth, self._begin)
            labels[self._named] = np.maximum(_scaled(self._label_vectors @ vector)[self._named], own)
        for at in (*self._joined.get(plain, ()), *self._joined.get(word, ())):
            labels[at] = WORDS.equal
        if word in _PERSONS:
            labels = np.maximum(labels, WORDS.person * self._personal)
        if word in _PLACES:
            labels = np.maximum(labels, WORDS.person * self._placed)
        return labels

    def table(self, words: Sequence[str]) -> Float64:
        """Return how well each element explains each word of a question, in [0, 1]: (E, W)."""
        compared = [self.of_word(word) for word in words]
        for at, joined in enumerate(one + singular(other) for one, other in pairwise(words)):
            if joined in synonyms() or joined in self._known:
                pair = self.of_word(joined)
                compared[at : at + 2] = [np.maximum(each, pair) for each in compared[at : at + 2]]
        explained = np.stack(compared, axis=1) if words else np.zeros((len(self.labels), 0))
        initials = "".join(word[0] for word in words)
        for at, label in enumerate(self.labels):
            for short in label:  # `LW` are the first letters of `lives with`
                if 2 <= len(short) <= 3 and short in initials and set("aeiouy").isdisjoint(short):
                    begin = initials.index(short)
                    own = explained[at, begin : begin + len(short)]
                    np.maximum(own, WORDS.abbreviation, out=own)
        return explained


def _scaled(cosines: Float64) -> Float64:
    return np.clip((cosines - WORDS.unlike) / (1 - WORDS.unlike), 0, 1) * WORDS.like


def _lexical(word: str, plain: str, other: str, alike: frozenset[str]) -> float:
    if word == other or plain == singular(other):
        return WORDS.equal
    if len(other) > 2 and len(word) > 3 and related(word, other):
        return WORDS.stem
    if singular(other) in alike:
        return WORDS.synonym
    if len(other) > 2 and len(word) > len(other) + 1 and word.startswith(other):
        return WORDS.abbreviation
    return 0.0


_AT_LEAST = ("at least", "no fewer than", "no less than")
_AT_MOST = ("at most", "no more than", "up to")
_AT = re.compile(r"\bat (?:least|most)\b", re.IGNORECASE)
_AVERAGE = frozenset(("average", "mean", "avg"))
_SUM = frozenset(("sum", "total", "combined"))
_TOTAL = frozenset("total overall combined whole full exact same find give count".split())
_WH = frozenset("when where who".split())
_ASKED_TIME = frozenset("when year date day time".split())


Aggregate = Literal["", "average", "sum"]


@dataclass(frozen=True)
class QuestionView:
    """A question of W words compared with a schema of E elements."""

    text: str
    words: tuple[str, ...]
    """(W,) casefolded."""
    content: npt.NDArray[np.bool_]
    """(W,) words that a query graph should explain."""
    importance: Float64
    """(W,)."""
    explained: Float64
    """(E, W) see `SchemaWords`."""
    spans: tuple[tuple[Constraint, ...], ...]
    """Alternative constraints of each span of values, in the order of the text."""
    counts: tuple[CountTest, ...]
    """Numbers of things that something has to have."""
    unknown: tuple[tuple[int, int], ...]
    """Spans that must be names or values, and are none: first and last word, the latter exclusive."""
    demand: QueryConstraints
    asked: tuple[int, ...]
    """Words that name the answer."""
    roles: tuple[Role, ...]
    """(W,) syntactic roles."""
    denied: int
    """Word that names what is denied (`without *orders*`); -1 without one."""
    order_at: int
    """First word after that of the superlative; -1 without one."""
    aggregate: Aggregate


@dataclass(frozen=True)
class _HeardWords:
    """The words of a question, and how well each element of a schema explains them."""

    text: str
    pieces: Sequence[tuple[int, int]]
    """(W,) their first and last characters, the latter exclusive."""
    words: Sequence[str]
    """(W,) casefolded."""
    explained: Float64
    """(E, W) see `SchemaWords`."""

    def within(self, first: int, last: int) -> list[int]:
        """Return the words that start among some characters."""
        return [at for at, (start, _) in enumerate(self.pieces) if first <= start < last]

    def around(self, start: int, end: int) -> tuple[str, str]:
        """Return the texts before and after some words, the last exclusive."""
        return self.text[: self.pieces[start][0]], self.text[self.pieces[end - 1][1] :]


class ConstraintReader:
    """Finds the constraints of values, numbers and dates that a question may mean; thread-safe."""

    def __init__(self, schema: TypedSchema, words: SchemaWords, values: ValueSpotter) -> None:
        self._schema, self._words, self._values = schema, words, values

    def spans(self, question: _HeardWords) -> tuple[tuple[Constraint, ...], ...]:
        """Return the alternative constraints of each span of values, numbers and dates."""
        found = list(self._partial(question))
        taken = {at for one in found for at in range(one.start, one.end)}
        measured = [*self._ranges(question)] or [*self._measured(question)]
        further = (*self._valued(question), *measured, *self._flagged(question))
        found += [one for one in further if taken.isdisjoint(range(one.start, one.end))]
        return self._grouped([replace(one, near=self._near(one, question, found)) for one in found])

    def _partial(self, question: _HeardWords) -> Iterator[Constraint]:
        """Yield constraints of parts of texts: `starts with "382"`."""
        for test, quoted in _parts():
            for match in quoted.finditer(question.text):
                span = question.within(*match.span("part"))
                if not span:
                    continue
                part = match["part"].strip().casefold()
                whole = match["part"].strip() if match["quote"] else part
                for one in self._schema.properties:
                    row = question.explained[self._words.first_property + one.number]
                    near = float(row[max(0, span[0] - 7) : span[0]].max(initial=0.0))
                    if one.kind not in ("text", "number", "year") or one.relation >= 0 or near < WORDS.heard:
                        continue
                    codes = self._schema.column(one.name).matching(test, whole)
                    if codes:
                        yield Constraint(one, test, span[0], span[-1] + 1, codes, near=near, shown=whole)

    def _valued(self, question: _HeardWords) -> list[Constraint]:
        text, pieces, words = question.text, question.pieces, question.words
        typed = question.explained[: self._words.first_relation].max(axis=0, initial=0.0)
        return [
            one
            for one in self._values.find(text, pieces)
            if (one.end > one.start + 1 or typed[one.start] < VALUES.type or text[pieces[one.start][0]].isupper())
            and not (
                one.start and words[one.start - 1].isdigit() and _UNIT.fullmatch(" ".join(words[slice(*one.span())]))
            )
        ]

    def _flagged(self, question: _HeardWords) -> Iterator[Constraint]:
        """Yield constraints of properties that are true or false, by words that name them: `not discontinued`."""
        for one in self._schema.properties:
            row = question.explained[self._words.first_property + one.number]
            for at in np.flatnonzero(row >= WORDS.stem).tolist() if one.kind == "flag" and one.relation < 0 else ():
                value = _NEGATIONS.isdisjoint(question.words[max(0, at - VALUES.naming) : at])
                if (code := self._schema.column(one.name).flags.get(value)) is not None:
                    yield Constraint(one, "=", at, at + 1, (code,), near=1.0, shown=str(value).lower())

    def _ranges(self, question: _HeardWords) -> Iterator[Constraint]:
        """Yield constraints of a range of numbers or dates: `between 10 and 20`."""
        for match in _RANGE.finditer(question.text):
            low, high = _date_range(match["low"], ""), _date_range(match["high"], "")
            span = question.within(match.start("low"), match.end())
            for one in self._schema.properties if low and high and span else ():
                least, most = low and low.for_kind(one.kind), high and high.for_kind(one.kind)
                if least and most and self._schema.column_of(one).any_within(least[0], most[1]):
                    shown = f"{match['low']} and {match['high']}"
                    yield Constraint(one, "between", span[0], span[-1] + 1, low=least[0], high=most[1], shown=shown)

    def _measured(self, question: _HeardWords) -> Iterator[Constraint]:
        """Yield constraints of numbers and dates."""
        text, pieces, words = question.text, question.pieces, question.words
        taken, spelled = 0, _spelled(text, pieces)
        for at in range(len(pieces)):
            if at < taken:
                continue
            if at in spelled:
                taken, number = spelled[at]
                yield from self._of_measure(_NumberOrDate(number), question, at, taken)
                continue
            for end in range(min(len(pieces), at + 5), at, -1):
                piece = text[pieces[at][0] : pieces[end - 1][1]]
                if not any(map(str.isdigit, piece)):
                    continue
                if words[at] in ("the", "year", "of") or self._sizes(question, at):
                    continue
                if not _stands_alone(text, pieces[at][0], pieces[end - 1][1]):
                    continue
                dated = _date_range(piece, text[pieces[end - 1][1] :])
                if dated is None:
                    continue
                taken = end
                yield from self._of_measure(dated, question, at, end)
                break

    def _sizes(self, question: _HeardWords, at: int) -> bool:
        """True for a number of answers or things: `which 5 categories`, `list 3 suppliers`, `more than 2 orders`."""
        words, behind = question.words, question.explained[:, at + 1 : at + 2]
        typed = behind[: self._words.first_relation].max(initial=0.0)
        valued = behind[self._words.first_property :].max(initial=0.0)
        before, after = question.around(at, at + 1)
        compared = typed > valued and _test_before(before)[0] != "=" and not _measured_in(after)
        sized = (at > 0 and words[at - 1] in _BEFORE_SIZE) or compared
        return bool(sized and words[at].isdigit() and int(words[at]) < SCHEMA.first_year and typed >= WORDS.named)

    def _of_measure(self, dated: _NumberOrDate, question: _HeardWords, start: int, end: int) -> Iterator[Constraint]:
        """Yield the constraints that a number or a date may mean, from its first to its last word."""
        text, explained, first = question.text, question.explained, self._words.first_property
        before, after = question.around(start, end)
        test, nouns = _test_before(before)
        nouns = (*nouns, *_measured_in(after))
        like = np.max([self._words.of_word(noun) for noun in nouns], axis=0) if nouns else None
        for one in self._schema.properties:
            bounds = dated.for_kind(one.kind)
            if bounds is None:
                continue
            low, high = bounds
            column = self._schema.column_of(one)
            if test == "=" and not column.any_within(low, high):
                continue
            low, high = {
                "=": (low, high),
                ">": (np.nextafter(high, np.inf), np.inf),
                ">=": (low, np.inf),
                "<": (-np.inf, np.nextafter(low, -np.inf)),
                "<=": (-np.inf, high),
            }[test]
            named = explained[first + one.number, max(0, start - VALUES.naming) : start].max(initial=0.0)
            if test == "=" and not nouns and column.identifying and one.kind == "number" and named < WORDS.heard:
                continue
            near = 0.0 if like is None else float(like[first + one.number])
            shown = text[len(before) : len(text) - len(after)] if dated.number is None else f"{dated.number:.15g}"
            yield Constraint(one, test, start, end, low=low, high=high, near=near, shown=shown)

    def _near(self, one: Constraint, question: _HeardWords, others: Sequence[Constraint]) -> float:
        """Return the similarity of words near a span to its property, and half of that to its type."""
        barred = {at for other in others for at in range(other.start, other.end)}
        row = question.explained[self._words.first_property + one.property.number]
        best = one.near
        for side in (
            range(one.start - 1, max(-1, one.start - 1 - VALUES.near), -1),
            range(one.end, min(len(question.words), one.end + VALUES.near)),
        ):
            for distance, at in enumerate(side):
                if at in barred:
                    break
                best = max(best, float(row[at]) * (1 - 0.1 * distance))
        return best

    def _grouped(self, found: Sequence[Constraint]) -> tuple[tuple[Constraint, ...], ...]:
        """Group alternatives by span; spans that overlap go to the longer one, and the best alternatives stay."""
        groups: dict[tuple[int, int], list[Constraint]] = defaultdict(list)
        for one in found:
            groups[one.span()].append(one)
        chosen: list[tuple[int, int]] = []
        for span in sorted(groups, key=lambda span: (-(span[1] - span[0]), span)):
            if all(span[1] <= low or high <= span[0] for low, high in chosen):
                chosen.append(span)
        for group in groups.values():
            group.sort(key=lambda one: (-one.quality - one.near, one.property.number))
        return tuple(tuple(groups[span][: VALUES.alternatives]) for span in sorted(chosen)[: VALUES.spans])


class QuestionReader:
    """Reads questions over one schema; thread-safe."""

    def __init__(
        self, schema: TypedSchema, words: SchemaWords, values: ValueSpotter, importance: Callable[[str], float]
    ) -> None:
        self._schema, self._words, self._values, self._importance = schema, words, values, importance
        self._constraints = ConstraintReader(schema, words, values)
        self.read = cached(SEARCH.remembered)(self._read)
        """Returns the view of a question's text."""

    def _read(self, text: str) -> QuestionView:
        """Compare a question with the schema."""
        pieces = [found.span() for found in WORD.finditer(text)]
        words = tuple(text[start:end].casefold() for start, end in pieces)
        explained = self._words.table(words).copy()
        self._add_measures(words, explained)
        heard = _HeardWords(text, pieces, words, explained)
        _, first, last = best_number(text) or (1, 0, 0)
        spans = self._constraints.spans(heard)
        spans = tuple(group for group in spans if not first <= pieces[group[0].start][0] < last)
        bounds = [(pieces[group[0].start][0], pieces[group[0].end - 1][1]) for group in spans]
        mentions = [Mention(text[start:end], start, end) for start, end in bounds]
        demand = parse_constraints(_AT.sub(lambda found: " " * len(found.group()), text), mentions)
        if not _AVERAGE.isdisjoint(words) or _names_number(demand.count, words):
            demand = replace(demand, count="")
        parsed = parse_question(demand.rest, mentions)
        counts = _counted(text, pieces)
        aggregate = _aggregate(words, demand)
        content = _content(words, [demand.rest[start:end].strip() != "" for start, end in pieces], aggregate)
        for one in counts:
            content[one.start : one.end] = False
        by_place = {start: at for at, (start, _) in enumerate(pieces)}
        places = [by_place.get(found.start(), -1) for found in WORD.finditer(demand.rest)]
        roles = dict(zip(places, parsed.roles, strict=False))
        return QuestionView(
            text=text,
            words=words,
            content=content,
            importance=np.array([self._importance(word) for word in words]),
            explained=explained,
            spans=spans,
            counts=counts,
            unknown=self._unknown(heard, spans, counts),
            demand=demand,
            asked=tuple(places[at] for at in parsed.answer_type_span if at < len(places) and places[at] >= 0),
            denied=_denied(heard, spans),
            roles=tuple(roles.get(at, NO_ROLE) for at in range(len(words))),
            order_at=_after_order(demand, text, pieces),
            aggregate=aggregate,
        )

    def _unknown(
        self, question: _HeardWords, spans: Sequence[Sequence[Constraint]], counts: Sequence[CountTest]
    ) -> tuple[tuple[int, int], ...]:
        """Return the runs of words that are names or values by their form and place, and no value of a constraint.

        These are quoted; or written like values of the graph that have digits; or numbers right behind a word for a
        property; or they begin with capitals, right behind a word for a property, or are no acronym and rare, or stand
        behind a word for a type and before none of the schema.
        """
        text, pieces, explained = question.text, question.pieces, question.explained
        words = [text[start:end] for start, end in pieces]
        bounds = [*((group[0].start, group[0].end) for group in spans), *((one.start, one.end) for one in counts)]
        taken = {at for start, end in bounds for at in range(start, end)}
        heard = (explained.max(axis=0, initial=0.0) >= WORDS.heard).tolist()
        valued = (explained[self._words.first_property :].max(axis=0, initial=0.0) >= WORDS.heard).tolist()
        typed = (explained[: self._words.first_relation].max(axis=0, initial=0.0) >= WORDS.heard).tolist()
        plain = [word.casefold() in SILENT | REQUESTS for word in words]
        runs = []
        for start, end in quoted_spans(text, pieces):
            if taken.isdisjoint(range(start, end)):
                runs.append((start, end))
            taken.update(range(start, end))
        titled = not any(word[0].islower() and not silent for word, silent in zip(words, plain, strict=True))
        marked = [
            at > 0 and at not in taken and not heard[at] and (word[0].isupper() or any(map(str.isdigit, word)))
            for at, word in enumerate(words)
        ]
        for at in range(1, len(words)):
            end = next((end for end in range(at, len(words)) if not marked[end]), len(words))
            if end == at or marked[at - 1] or all(plain[at:end]):
                continue
            piece = text[pieces[at][0] : pieces[end - 1][1]]
            if read_literal(f"{piece} 2000") is not None:  # a month, or a day of it
                continue
            if any(map(str.isdigit, piece)):
                cut = end < len(words) and not plain[end]  # ISO 3166 code
                known = not self._schema.has_form(piece) and (cut or not valued[at - 1] or read_literal(piece) is None)
            else:
                cued = any(typed[max(0, at - VALUES.naming) : at]) and not any(heard[end : end + 1])
                named = not piece.isupper() and (cued or any(map(self._values.is_rare, words[at:end])))
                known = titled or not (valued[at - 1] or named)
            if not known:
                runs.append((at, end))
        return tuple(sorted(runs))

    def _add_measures(self, words: Sequence[str], explained: Float64) -> None:
        """Have `how long` mean a length, and `when` a date."""
        first = self._words.first_property
        timed = [first + one.number for one in self._schema.properties if one.kind in ("date", "year")]
        clocks = [first + one.number for one in self._schema.properties if one.kind == "time"]
        for at, word in enumerate(words):
            if word in _ASKED_TIME:
                explained[timed, at] = np.maximum(explained[timed, at], 0.9 if word in ("when", "date") else 0.5)
                if word in ("when", "time"):
                    explained[clocks, at] = np.maximum(explained[clocks, at], 0.8)
            adjective = adjectives().get(word)
            if adjective is not None:
                for place, noun in enumerate(adjective.nouns):
                    like = self._words.of_word(noun)[first:] * (0.9 - 0.03 * place)
                    explained[first:, at] = np.maximum(explained[first:, at], like)


def _denied(question: _HeardWords, spans: Sequence[Sequence[Constraint]]) -> int:
    """Return the content word behind a denial that belongs to a value, or else names an element; -1 without one.

    A denial within a value, or right before what is false of it, denies nothing else.
    """
    valued = {at for group in spans for at in range(group[0].start, group[0].end)}
    inside = set(valued)
    for group in spans:
        if any(one.property.kind == "flag" and one.shown == "false" for one in group):
            inside.update(range(max(0, group[0].start - VALUES.naming), group[0].end))
    named = question.explained.max(axis=0, initial=0.0) >= WORDS.named
    for match in pattern("denial").finditer(question.text):
        at = next((at for at, (start, _) in enumerate(question.pieces) if start >= match.start()), len(question.pieces))
        if at not in inside:
            behind = [word for word in range(at + 1, len(question.pieces)) if question.words[word] not in _AFTER_DENIAL]
            near = behind[: VALUES.naming]
            return next(
                (word for word in (*filter(valued.__contains__, near), *near) if named[word] or word in valued), -1
            )
    return -1


_BEFORE_SIZE = REQUESTS | {"which", "what", "any", "me", "some"}
_AFTER_DENIAL = SILENT | {"any", "single"}
_NEGATIONS = frozenset((*load_lexicon("sets")["not"], "non", "t"))
_RANGE = re.compile(
    r"\b(?:between|from)\s+[$€£'\"]?(?P<low>\d[\d.,-]*?)['\"]?\s+(?:and|to|until)\s+[$€£'\"]?(?P<high>\d(?:[\d.,-]*\d)?)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _NumberOrDate:
    """A number or a date in a question."""

    number: float | None = None
    year: int = 0
    month: int = 0
    day: int = 0

    def for_kind(self, kind: str) -> tuple[float, float] | None:
        """Return the least and the greatest measure that it means for a kind of property."""
        if kind == "number":
            return None if self.number is None else (self.number, self.number)
        if not self.year:
            return None
        if kind == "year":
            return None if self.month else (self.year, self.year)
        if kind == "date":
            return day_number(self.year, self.month, self.day), day_number(self.year, self.month or 12, self.day or 31)
        return None


def _aggregate(words: Sequence[str], demand: QueryConstraints) -> Aggregate:
    """Return the aggregation of numbers that a question asks for."""
    return "average" if {*words} & _AVERAGE else "sum" if {*words} & _SUM and not demand.count else ""


def _content(words: Sequence[str], kept: Sequence[bool], aggregate: Aggregate) -> npt.NDArray[np.bool_]:
    """Mask the words that a query graph should explain; `kept` ones belong to no operator."""
    silent = SILENT | REQUESTS | (_AVERAGE | _SUM if aggregate else frozenset())
    content = np.array([keep and word not in silent for keep, word in zip(kept, words, strict=True)], np.bool_)
    for at, word in enumerate(words[:2]):
        content[at] |= word in _WH
    return content


def _names_number(count: str, words: Sequence[str]) -> bool:
    """True if `number of` belongs to a name before it: `the phone number of X`."""
    if count.casefold() != "number of":
        return False
    at = next(at for at, pair in enumerate(pairwise(words)) if pair == ("number", "of"))
    return at > 0 and words[at - 1] not in SILENT | _TOTAL


def _after_order(demand: QueryConstraints, text: str, pieces: Sequence[tuple[int, int]]) -> int:
    """Return the first word after that of the superlative; -1 without one."""
    if demand.order is None:
        return -1
    said = demand.order.words.split() or [""]
    at = text.casefold().find(" ".join(said).casefold())
    if at < 0:
        return -1
    end = at + len(" ".join(said)) if said[0] in ("the", "a") or len(said) == 1 else at + len(said[0])
    return next((place for place, (start, _) in enumerate(pieces) if start >= end), len(pieces))


def _numbers(text: str, pieces: Sequence[tuple[int, int]]) -> dict[int, tuple[int, float]]:
    """Return the numbers of a question by their first word: the word after them, and the number."""
    starts = {start: at for at, (start, _) in enumerate(pieces)}
    found = {}
    for match in _number().finditer(text):
        number, at = number_value(match.group()), starts.get(match.start())
        if number is not None and at is not None:
            found[at] = at + sum(match.start() <= start < match.end() for start, _ in pieces), number
    return found


def _spelled(text: str, pieces: Sequence[tuple[int, int]]) -> dict[int, tuple[int, float]]:
    """Return the numbers with words; a small one alone (`two`) counts things, unless it has a unit."""
    found = {}
    for at, (end, number) in _numbers(text, pieces).items():
        said = text[pieces[at][0] : pieces[end - 1][1]]
        if any(map(str.isalpha, said)) and (not said.isalpha() or _measured_in(text[pieces[end - 1][1] :])):
            found[at] = end, number
    return found


def _counted(text: str, pieces: Sequence[tuple[int, int]]) -> tuple[CountTest, ...]:
    """Return the tests of whole numbers that words precede: `more than two`."""
    found = []
    for at, (end, number) in _numbers(text, pieces).items():
        test, nouns = _test_before(text[: pieces[at][0]])
        if number < VALUES.counted and number % 1 == 0 and test != "=" and not nouns and end < len(pieces):
            found.append(CountTest(test, int(number), max(0, at - 2), end))
    return tuple(found)


def _stands_alone(text: str, start: int, end: int) -> bool:
    """True unless signs join a number to more letters or digits; `71-second` is a number."""
    before, after = text[:start], text[end:]
    joined = re.search(r"[\w)][-:/.()@]*$", before) is not None and not before[-1:].isspace()
    return not joined and re.match(r"[-:/.()@]+[\w(]|\w", re.sub(r"^-(?=[a-z]{2})", " ", after)) is None


_ORDINAL = re.compile(r"(\d)(?:st|nd|rd|th)\b")


def _date_range(piece: str, after: str) -> _NumberOrDate | None:
    """Read a number or date; None for other text."""
    piece = _ORDINAL.sub(r"\1", piece)
    if found := SLASHED.fullmatch(piece):
        day, month = int(found[1]), int(found[2])
        if month > 12:
            day, month = month, day
        return _NumberOrDate(None, int(found[3]), month, day) if month <= 12 and day <= 31 else None
    literal = read_literal(piece)
    if literal is None:
        return None
    if literal.kind == "date":
        return _NumberOrDate(None, *map(int, str(literal.value).split("-")))
    if literal.kind == "year":
        return _NumberOrDate(float(literal.value), int(literal.value))
    if literal.kind == "number" and isinstance(literal.value, int | float):
        return _NumberOrDate(float(literal.value))
    return None


_UNIT = re.compile(r"\s*-?\s*" + any_of(load_lexicon("order")["units"]), re.IGNORECASE)
_THAN = re.compile(
    r"\b(?:(?P<more>more)|(?P<less>less|fewer)|(?P<word>[a-z]+er))\s+(?P<noun>[a-z]+\s+)?than\s+$", re.IGNORECASE
)


def _measured_in(after: str) -> tuple[str, ...]:
    """Return the nouns for the quantity of the unit that follows a number."""
    found = _UNIT.match(after)
    return (
        tuple(load_lexicon("order")["units"][" ".join(found.group().strip(" -").casefold().split())]) if found else ()
    )


@cache
def _number() -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.,-]){number_pattern()}(?![\w-])", re.IGNORECASE)


@cache
def _parts() -> tuple[tuple[Test, re.Pattern[str]], ...]:
    noun = r"(?:(?:the\s+)?(?:word|letters?|text|prefix|digits?|string)\s+)?"
    part = r"(?P<part>(?<=['\"\u2018\u201c])[^'\"\u2019\u201d]+|[\d.@][\w.@-]*|[A-Z]\w*)"
    quoted = rf"\s+{noun}(?P<quote>['\"\u2018\u201c]?){part}"
    lists: tuple[tuple[Test, str], ...] = (("STARTS WITH", "starts"), ("ENDS WITH", "ends"), ("CONTAINS", "contains"))
    return tuple((test, re.compile(any_of(load_lexicon("parts")[name]) + quoted)) for test, name in lists)


@cache
def _tests() -> tuple[tuple[Test, re.Pattern[str]], ...]:
    order, time = load_lexicon("order"), load_lexicon("time")
    lists: list[tuple[Test, Sequence[str]]] = [
        (">=", [*_AT_LEAST, *(each for each in time["since"] if each != "from")]),
        ("<=", [*_AT_MOST, *(each for each in time["until"] if each != "by")]),
        (">", [*order["more"], *time["after"]]),
        ("<", [*order["fewer"], *time["before"]]),
    ]
    gap = r"\s+(?:(?:the|year|of)\s+)*[$€£'\"]?$"
    return tuple((test, re.compile(any_of(phrases) + gap, re.IGNORECASE)) for test, phrases in lists)


def _test_before(before: str) -> tuple[Test, tuple[str, ...]]:
    """Return the comparison that the words right before a number or date state, and nouns for the measure."""
    for test, compared in _tests():
        if compared.search(before):
            return test, ()
    if found := _THAN.search(before):
        adjective = comparative(found["word"].casefold()) if found["word"] else None
        if adjective is not None:
            return ("<" if adjective.less else ">"), adjective.nouns
    return "=", ()
