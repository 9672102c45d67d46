"""A schema as text for a prompt: the part that matters for a question, within a budget of tokens.

    Node types:
    Film (16,412)
      released: int, e.g. 1979, 1986
    Person (40,128)
    Relations:
    (Film)-[directed_by]->(Person) 17,001
    (Film)-[starred_actors]->(Person) 38,229, role: string, e.g. "Ripley"
    … and 7 more relations

Where nodes have no types a relation is just `[directed_by] 17,001`.
What does not fit is left out whole and counted; nothing is cut in the middle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from byokg.graph.store import PropertySchema, RelationSchema, Schema
from byokg.index.embedders import Embedder, exact
from byokg.text import FUNCTION_WORDS, Lexicon, estimate_tokens, normalize_label

_RELATION_SHARE = 0.7
"""Part of the budget that relations take before properties of nodes may have what is left."""

_ENDS = 3
"""Node types shown at one end of a relation; the others are counted."""

_WORDS_BESIDE_VECTORS, _FREQUENCY_BESIDE_VECTORS, _FREQUENCY_BESIDE_WORDS = 0.2, 0.6, 1.5
"""What common words, and the logarithm of a relation's edges, count beside a cosine, and the latter beside words alone.

Found on the dev split of WebQSP, on a part of Freebase with 4,045 relations.
"""

_HELD = 64
"""Texts that are remembered: a question's next round has the same."""

_NODE_TYPES, _RELATIONS = "Node types:\n", "Relations:\n"


@dataclass(frozen=True)
class SchemaText:
    """What is shown of a schema."""

    text: str
    tokens: int
    """As counted by the function that was given."""
    relations: tuple[str, ...]
    """Relations shown, most relevant first."""
    relations_left_out: int
    properties_left_out: int
    """Properties of the node types shown that are not."""


class SchemaRenderer:
    """Renders one schema for one question after another; holds what its names mean.

    Args:
        schema: what to render.
        embedder: measures how near a question is to a relation; without one only their words are compared.
        count_tokens: tokens of a text, by the tokenizer of the model that will read it.
        notes: lines that stand before every text, and count towards its budget.
    """

    def __init__(
        self,
        schema: Schema,
        embedder: Embedder | None = None,
        count_tokens: Callable[[str], int] = estimate_tokens,
        notes: str = "",
    ) -> None:
        self._schema, self._embedder, self._count, self._notes = schema, embedder, count_tokens, notes
        self._notes_tokens = count_tokens(notes) if notes else 0
        self._rendered = lru_cache(_HELD)(self._render)
        # Most edges first: the order where a question says nothing.
        ordered = sorted(schema.relations, key=lambda relation: (-relation.count, relation.name))
        self._relations = [_RelationLine.of(relation, count_tokens) for relation in ordered]
        self._least = min((line.tokens for line in self._relations), default=0)
        self._properties = [
            (type_, detail)
            for type_, names in schema.node_properties.items()
            for detail in _details(names, schema.node_property_details.get(type_, ()))
        ]
        self._relevance = _Relevance(
            [_relation_words(relation) for relation in ordered],
            embedder,
            [relation.count for relation in ordered],
        )
        self._property_relevance = _Relevance(
            [f"{normalize_label(type_)} {normalize_label(detail.name)}" for type_, detail in self._properties], embedder
        )

    def render(self, question: str = "", budget_tokens: int = 2000) -> SchemaText:
        """Show the relations and properties that are most relevant, as many as fit.

        Args:
            question: what they should be relevant to; without one those of most edges are shown.
            budget_tokens: what the text may take.

        Returns:
            The text: empty where the budget is too small for a single relation.
        """
        return self._rendered(question, budget_tokens)

    def ranked(self, question: str) -> list[str]:
        """Return all relations, the most relevant to a question first."""
        return [self._relations[at].relation.name for at in self._relevance.order(question)]

    def _render(self, question: str, budget_tokens: int) -> SchemaText:
        budget_tokens -= self._notes_tokens
        draft = _Draft(self._schema, self._count, self._least)
        ranked = [self._relations[at] for at in self._relevance.order(question)]
        share = budget_tokens if not self._properties else int(budget_tokens * _RELATION_SHARE)
        left = draft.add_relations(ranked, share)
        properties = [self._properties[at] for at in self._property_relevance.order(question)]
        draft.add_properties(properties, budget_tokens)
        draft.add_relations(left, budget_tokens)
        draft.shrink(budget_tokens)
        shown = draft.finished()
        if not self._notes or not shown.text:
            return shown
        return replace(shown, text=self._notes + shown.text, tokens=shown.tokens + self._notes_tokens)


@dataclass(frozen=True)
class _RelationLine:
    """A relation as it is written, what that costs, and the node types that it names."""

    relation: RelationSchema
    text: str
    tokens: int
    types: tuple[str, ...]

    @classmethod
    def of(cls, relation: RelationSchema, count: Callable[[str], int]) -> _RelationLine:
        text = _relation_line(relation)
        return cls(relation, text, count(text), tuple(_ends(relation)))


class _Relevance:
    """Ranks N described things by how well they fit a question, and by how frequent they are where that is known."""

    def __init__(
        self, descriptions: Sequence[str], embedder: Embedder | None, counts: Sequence[int] | None = None
    ) -> None:
        words_of = [list(dict.fromkeys(description.split())) for description in descriptions]
        self._embedder = embedder
        vectors = embedder.encode(descriptions) if embedder and descriptions else None
        self._vectors = None if vectors is None else exact(vectors)
        frequency = Counter(word for words in words_of for word in words)
        # A word that every description has says nothing; one that a single one has says most.
        many = len(descriptions)
        self._weights = {word: (_log(many + count) - _log(count)) / _log(many + 1) for word, count in frequency.items()}
        frequencies = np.array([0.0] * many if counts is None else [_log(1 + count) for count in counts])
        self._frequencies = frequencies / max(1.0, float(frequencies.max(initial=0)))
        self._lexicon = Lexicon(sorted(self._weights))
        self._with_word: dict[str, list[int]] = {word: [] for word in self._weights}
        """The descriptions that have a word."""
        for at, words in enumerate(words_of):
            for word in words:
                self._with_word[word].append(at)
        self._whole = np.array([max(sum(self._weights[word] for word in words), 1e-9) for words in words_of])

    def order(self, question: str) -> list[int]:
        """Return positions, best first; equals in the order given."""
        words = normalize_label(question).split()
        asked = [word for word in words if word not in FUNCTION_WORDS] or words
        if not asked or not len(self._whole):
            return list(range(len(self._whole)))
        scores = self._lexical(asked)
        if self._vectors is None or self._embedder is None:
            scores += _FREQUENCY_BESIDE_WORDS * self._frequencies
        else:
            scores = _WORDS_BESIDE_VECTORS * scores + _FREQUENCY_BESIDE_VECTORS * self._frequencies
            scores += self._vectors @ exact(self._embedder.encode([" ".join(asked)])[0])
        order: list[int] = np.argsort(-scores, kind="stable").tolist()
        return order

    def _lexical(self, asked: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return for each description the weight of its best word in the question and their share: (N,), 0 to 2."""
        met = {self._lexicon.words[at] for word in asked for at in self._lexicon.related(word)}
        best, total = np.zeros(len(self._whole)), np.zeros(len(self._whole))
        for word in sorted(met):
            places = self._with_word[word]
            best[places] = np.maximum(best[places], self._weights[word])
            total[places] += self._weights[word]
        scores: npt.NDArray[np.float64] = best + total / self._whole
        return scores


@lru_cache(1 << 14)
def _log(number: int) -> float:
    """Return the natural logarithm, in decimal arithmetic: libraries and CPUs differ in the last bit of it."""
    return float(Decimal(number).ln())


class _Draft:
    """A text while it grows, and what its lines cost."""

    def __init__(self, schema: Schema, count: Callable[[str], int], least: int) -> None:
        """Begin a text; `least` is what its shortest relation costs."""
        self._schema, self._count, self._least = schema, count, least
        self._relations: list[_RelationLine] = []
        self._types: dict[str, list[PropertySchema]] = {}
        # Headings, and the line that counts what is left out, are always paid for.
        self._spent = sum(map(count, (_NODE_TYPES, _RELATIONS, _left_out(len(schema.relations)))))

    def add_relations(self, ranked: Sequence[_RelationLine], budget: int) -> list[_RelationLine]:
        """Take each relation that fits, with the node types at its ends; return those that do not."""
        left: list[_RelationLine] = []
        for place, line in enumerate(ranked):
            if self._spent + self._least > budget:
                return [*left, *ranked[place:]]
            types = [type_ for type_ in line.types if type_ and type_ not in self._types]
            cost = line.tokens + sum(self._count(self._type_line(type_)) for type_ in types)
            if self._spent + cost > budget:
                left.append(line)
                continue
            self._spent += cost
            self._relations.append(line)
            self._types |= {type_: [] for type_ in types}
        return left

    def add_properties(self, ranked: Sequence[tuple[str, PropertySchema]], budget: int) -> None:
        """Take each property that fits, of node types that are shown. Where nodes have no types, all are."""
        for type_, detail in ranked:
            if type_ and type_ not in self._types:
                continue
            cost = self._count(_property_line(detail))
            if self._spent + cost <= budget:
                self._spent += cost
                self._types.setdefault(type_, []).append(detail)

    def shrink(self, budget: int) -> None:
        """Drop what was taken last until the whole text fits: its tokens may be more than those of its lines."""
        while (self._relations or self._types) and self._count(self._text()) > budget:
            if self._relations:
                self._relations.pop()
                needed = {type_ for line in self._relations for type_ in line.types}
                self._types = {type_: found for type_, found in self._types.items() if type_ in needed}
            else:
                self._types.popitem()

    def finished(self) -> SchemaText:
        """Return the text and what it shows."""
        text = self._text()
        shown = [type_ for type_ in self._schema.node_properties if type_ in self._types or not type_]
        total = sum(len(self._schema.node_properties[type_]) for type_ in shown)
        return SchemaText(
            text=text,
            tokens=self._count(text),
            relations=tuple(line.relation.name for line in self._relations),
            relations_left_out=len(self._schema.relations) - len(self._relations),
            properties_left_out=total - sum(map(len, self._types.values())),
        )

    def _text(self) -> str:
        if not self._relations and not self._types:
            return ""
        lines = []
        if self._types:
            lines.append(_NODE_TYPES)
        for type_ in sorted(self._types, key=lambda type_: (-self._schema.node_types.get(type_, 0), type_)):
            lines.append(self._type_line(type_))
            lines += map(_property_line, self._types[type_])
        if self._relations:
            lines.append(_RELATIONS)
            lines += (line.text for line in self._relations)
        if len(self._relations) < len(self._schema.relations):
            lines.append(_left_out(len(self._schema.relations) - len(self._relations)))
        return "".join(lines)

    def _type_line(self, type_: str) -> str:
        return f"{_shown(type_) or 'any node'} ({self._schema.node_types.get(type_, 0):,})\n"


# Lines


def _relation_line(relation: RelationSchema) -> str:
    head, tail = _end(relation.domain), _end(relation.range)
    arrow = f"({head})-[{_shown(relation.name)}]->({tail})" if head or tail else f"[{_shown(relation.name)}]"
    line = f"{arrow} {relation.count:,}"
    details = _details(relation.properties, relation.property_details)
    return f"{line}{''.join(f', {_property(detail)}' for detail in details)}\n"


def _property_line(detail: PropertySchema) -> str:
    return f"  {_property(detail)}\n"


def _property(detail: PropertySchema) -> str:
    kind = f": {detail.kind}" if detail.kind else ""
    values = ", ".join(f'"{_shown(value)}"' if isinstance(value, str) else str(value) for value in detail.examples)
    return f"{_shown(detail.name)}{kind}{f', e.g. {values}' if values else ''}"


def _left_out(count: int) -> str:
    return f"… and {count:,} more relations\n"


def _end(types: Sequence[str]) -> str:
    named = [_shown(type_) for type_ in types if type_]
    more = f"|{len(named) - _ENDS} more types" if len(named) > _ENDS else ""
    return f"{'|'.join(named[:_ENDS])}{more}"


def _ends(relation: RelationSchema) -> list[str]:
    """Return the node types that a relation's line names."""
    return list(dict.fromkeys((*relation.domain[:_ENDS], *relation.range[:_ENDS])))


def _shown(text: str) -> str:
    """Keep a text on one line."""
    return " ".join(text.split("\n")) if "\n" in text else text


def _details(names: Sequence[str], details: Sequence[PropertySchema]) -> list[PropertySchema]:
    known = {detail.name: detail for detail in details}
    return [known.get(name, PropertySchema(name)) for name in names]


# Words


def _relation_words(relation: RelationSchema) -> str:
    ends = " ".join(map(normalize_label, _ends(relation)))
    return f"{normalize_label(relation.name)} {ends} {' '.join(map(normalize_label, relation.properties))}".strip()
