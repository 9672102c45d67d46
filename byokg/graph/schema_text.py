"""A schema as text for a prompt: the part relevant to a question, within a budget of tokens.

    Node types:
    Film (16,412), named e.g. "Alien", identified by imdb_id
      imdb_id: string, e.g. "tt0078748"
      released: int, 1921 to 2004
      genre: string, one of "Drama", "Comedy", "Western"
      opened: string dd/mm/yyyy (does not sort), "01/02/1921" to "30/12/2003", e.g. "25/05/1979"
    Person (40,128), named "{given} {surname}"
    Relations:
    (:Film)-[:directed_by|written_by]->(:Person) 17,001, 15,222
    (:Film)-[:starred_actors]->(:Person) 38,229, role: string, e.g. "Ripley"
    … and 7 more relations, spelled in the same way

Examples are the values nearest to the question, then the most frequent ones. Types stand by number of nodes, properties
in the order of the schema. Types and properties that share a word with the question, or hold a value in it, come before
all else.

Without node types, relations are grouped by prefix, those at the entities of the question first; the notation is
explained above them, as far as it occurs:

    Relations at entities that the question may mean:
    film.film: directed_by written_by
    Other relations:
    people.person: nationality place_of_birth spouse_s..people.marriage.spouse

Relevance depends on words, on distance to the entities of the question (`Nearness`), and on company: a relation into a
nameless node is worth nothing without the one that continues from there. An inverse relation is worth as much: a graph
with gaps has now the one, now the other.
Items that do not fit are left out whole and counted; nothing is cut in the middle.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property, lru_cache, partial
from threading import Lock
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from byokg.graph.inverses import inverse_relations
from byokg.graph.sorted_ids import distinct
from byokg.graph.store import GraphStore, NodeArray, PropertySchema, RelationSchema, Schema
from byokg.graph.traversal import Caps, expand
from byokg.index.embedders import Embedder, compare_rows, exact
from byokg.text.names import FUNCTION_WORDS, Lexicon, estimate_tokens, is_identifier, normalize_label, on_one_line
from byokg.types import EntityId, Node, Value

if TYPE_CHECKING:
    from byokg.index.values import IndexedProperty, ValueIndex, ValueMention

_RELATION_SHARE, _MEANT_SHARE = 0.7, 0.6
"""Share of the budget for relations before properties of nodes may use the rest, and for properties that the question
means before all relations."""

_ENUMERATED, _ENUMERATION = 20, 800
"""Values that are listed as a whole, and their characters together, at most."""

_NEAREST, _EXAMPLES = 3, 2
"""Values near the question that are shown of a property at most, and examples if there are none."""

_SHORT_NAME = 40
"""Characters of a name, or of an example, at most."""

_ENDS = 3
"""Node types shown at one end of a relation; the others are counted."""

_WORDS_BESIDE_VECTORS, _FREQUENCY_BESIDE_VECTORS, _FREQUENCY_BESIDE_WORDS = 0.2, 0.4, 1.5
"""What common words, and the logarithm of a relation's edges, count beside a cosine, and the latter beside words alone.
"""

_NEAR = (0.8, 0.5, 0.3)
"""Bonus of a relation at one step from an entity of the question, two, or two and a nameless node."""

_COMPANY = 0.05
"""How much less a relation into nameless nodes is worth than the best one that leads on from there.

These figures were found on the dev splits of WebQSP and CWQ, on a part of Freebase with 4,045 relations.
"""

_PER_RELATION, _MOST_NODES = 10, 1000
"""Edges of one relation and direction, and nodes, that are looked at around an entity."""

_SAMPLE, _OFTEN = 8, 0.3
"""Edges of each relation looked at for company; the share of them that makes it one."""

_MARK = " (undirected)"
"""Stands behind a relation whose edges lead both ways, where no arrow shows that."""

_FEW = 10
"""Number of edges above which counts are rounded in graphs without node types: digits cost tokens."""

_COUNTED = re.compile(r"\(\d\)(?= |$)", re.MULTILINE)

_GROUP = re.compile(r"^[^\s()]+: ", re.MULTILINE)

_HELD = 64
"""Texts that are remembered: a question's next round has the same."""

_AT_ONCE = 256
"""Relations of which those that are too dear by then are passed over at once."""

_NODE_TYPES, _RELATIONS = "Node types:\n", "Relations:\n"
_QUALIFIED = "(:A)-[:r]->(:B) 9, p: … has 9 edges; p is a property of the edge: it qualifies the fact, not A or B.\n"
"""How properties of edges are written."""

_CLOSE, _OTHER = "Relations at entities that the question may mean:\n", "Other relations:\n"
_GROUPED, _MEDIATED, _FEW_EDGES = (
    "`a.b: c d` means `a.b.c` and `a.b.d`; write them so.\n",
    "`a..b` leads through a nameless node, as `a`, then `b`.\n",
    "A number in brackets counts a relation's edges.\n",
)
_UNDIRECTED = (
    "Edges that are undirected, and those of a relation written without an arrow head, `(:A)-[:r]-(:B)`, lead both "
    "ways; in Cypher match them as `-[:r]-`.\n"
)
_DATA_NODES = (
    "Paths may walk a relation backwards. "
    "Nodes without a name are events or roles; dates, numbers and texts are nodes.\n"
)


@dataclass(frozen=True)
class RelationLimits:
    """Relations shown at most; None sets no limit."""

    close: int | None = None
    """Those at entities of the question."""
    others: int | None = None


EVERY_RELATION = RelationLimits()


@dataclass(frozen=True)
class SchemaText:
    """Rendered part of a schema."""

    text: str
    tokens: int
    """As counted by the function that was given."""
    relations: tuple[str, ...]
    """Relations shown, most relevant first."""
    relations_left_out: int
    properties_left_out: int
    """Properties of the node types shown that are not."""


class Nearness:
    """Distance of relations to entities, and continuations of relations that end at nameless nodes.

    Args:
        store: the graph; read once or twice for each set of entities, and once for a sample of its edges.
    """

    def __init__(self, store: GraphStore) -> None:
        self._store = store
        self._near = lru_cache(_HELD)(self._around)

    def around(self, entities: Iterable[EntityId]) -> Mapping[str, int]:
        """Return for each relation that is near how near it is: 1 or 2 steps, 3 behind a nameless node two steps away.

        Raises `EntityNotFound`.
        """
        return self._near(tuple(dict.fromkeys(entities)))

    def _around(self, entities: tuple[EntityId, ...]) -> Mapping[str, int]:
        near: dict[int, int] = {}
        seen = nodes = self._store.numbers(entities)
        for steps in (1, 2, 3):
            if not len(nodes):
                break
            for relation in np.unique(self._store.relation_counts(nodes).relation).tolist():
                near.setdefault(relation, steps)
            if steps == 2:
                nodes = self._nameless(nodes)
            if steps < 3 and len(nodes):
                edges = expand(self._store, nodes, caps=Caps(per_relation=_PER_RELATION)).edges
                nodes = np.setdiff1d(edges.other, seen)[:_MOST_NODES]
                seen = np.union1d(seen, nodes)
        return {self._store.relations[relation]: steps for relation, steps in near.items()}

    @cached_property
    def company(self) -> Mapping[str, tuple[str, ...]]:
        """For each relation with nameless nodes at its ends, the relations that often touch these nodes as well."""
        edges = self._store.sample_edges(_SAMPLE)
        middle = self._nameless(distinct(np.concatenate((edges.head, edges.tail))))
        counts = self._store.relation_counts(middle)
        touching: dict[int, set[int]] = defaultdict(set)
        for node, relation in zip(middle[counts.origin].tolist(), counts.relation.tolist(), strict=True):
            touching[node].add(relation)
        total: Counter[int] = Counter()
        together: dict[int, Counter[int]] = defaultdict(Counter)
        for relation, *ends in zip(edges.relation.tolist(), edges.head.tolist(), edges.tail.tolist(), strict=True):
            for node in ends:
                if node in touching:
                    total[relation] += 1
                    together[relation].update(touching[node] - {relation})
        labels = self._store.relations
        return {
            labels[one]: tuple(labels[other] for other in sorted(others) if others[other] >= _OFTEN * total[one])
            for one, others in together.items()
        }

    @cached_property
    def turned(self) -> Mapping[str, frozenset[str]]:
        """For each relation those that turn its edges round; see `inverse_relations`."""
        return inverse_relations(self._store)

    @cached_property
    def naming(self) -> Mapping[str, tuple[str, tuple[str, ...]]]:
        """For each node type of a sample of the edges, the names of its nodes: their composition, or else examples.

        A type without names has neither; in a graph whose ids are names, all have the latter.
        """
        edges = self._store.sample_edges(_SAMPLE)
        nodes = distinct(np.concatenate((edges.head, edges.tail)))
        some = np.unique(np.linspace(0, max(len(nodes) - 1, 0), min(len(nodes), _MOST_NODES)).astype(np.int64))
        columnar = self._store.columnar
        templates = {} if columnar is None else columnar.source.get("display_names", {})
        by_type: dict[str, list[Node]] = defaultdict(list)
        for node in self._store.nodes(self._store.ids(nodes[some])):
            for type_ in node.types:
                by_type[type_].append(node)
        apart = any(node.name != node.id for found in by_type.values() for node in found)
        return {type_: _naming(found, templates.get(type_, ""), apart) for type_, found in by_type.items()}

    def names(self, entities: Sequence[EntityId]) -> Mapping[str, list[str]]:
        """Return the names of entities by their types."""
        found: dict[str, list[str]] = defaultdict(list)
        for node in self._store.nodes(entities):
            for type_ in node.types:
                found[type_].append(node.name)
        return found

    def _nameless(self, nodes: NodeArray) -> NodeArray:
        return nodes[np.fromiter(map(is_identifier, self._store.names_at(nodes)), np.bool_, len(nodes))]


def _naming(nodes: Sequence[Node], template: str, apart: bool) -> tuple[str, tuple[str, ...]]:
    """Return the composition of the names of some nodes, or else examples.

    Args:
        nodes: of one type.
        template: that of their names; empty if they have names of their own.
        apart: whether names differ from ids in this graph.
    """
    named = [node for node in nodes if not is_identifier(node.name) and (node.name != node.id or not apart)]
    if not template and named:
        same = [key for key, value in named[0].properties.items() if value == named[0].name]
        key = next((key for key in same if all(node.properties.get(key) == node.name for node in named)), "")
        template = f"{{{key}}}" if key else ""
    return template, tuple(node.name for node in named if len(node.name) <= _SHORT_NAME)


class ValueSource(Protocol):
    """Finds the values that a question names, such as `linking.values.ValueLinker`."""

    index: ValueIndex

    def find_mentions(self, question: str, limit: int = 10) -> tuple[ValueMention, ...]:
        """Return mentions of values in a question."""


class SchemaRenderer:
    """Renders one schema for one question after another; caches vectors of its names.

    Args:
        schema: the schema, or a function that reads it on first use.
        embedder: similarity of questions and relations; without one only their words are compared.
        count_tokens: tokens of a text, by the tokenizer of the model that will read it.
        notes: lines before every text, which count towards its budget, or a function that returns them on first use.
        near: distance of relations to entities, and names of types; None leaves both out of account.
        values: returns the values of properties of nodes, or None if they are not at hand.
        edge_values: the same of edges.
    """

    def __init__(
        self,
        schema: Schema | Callable[[], Schema],
        embedder: Embedder | None = None,
        count_tokens: Callable[[str], int] = estimate_tokens,
        notes: str | Callable[[], str] = "",
        near: Nearness | None = None,
        values: Callable[[], ValueSource | None] = lambda: None,
        edge_values: Callable[[], ValueIndex | None] = lambda: None,
    ) -> None:
        self._embedder, self._count, self._told = embedder, count_tokens, notes
        self._near, self._find_values, self._find_edge_values = near, values, edge_values
        self._rendered = lru_cache(_HELD)(self._render)
        self._read: Callable[[], Schema] | None = None
        self._reading = Lock()
        if isinstance(schema, Schema):
            self._prepare(schema)
        else:
            self._read = schema

    def _look(self) -> None:
        """Read the schema, if that was deferred."""
        if self._read is not None:
            with self._reading:
                if self._read is not None:
                    self._prepare(self._read())
                    self._read = None

    def _prepare(self, schema: Schema) -> None:
        embedder, count_tokens = self._embedder, self._count
        self._schema = schema
        self._notes = self._told if isinstance(self._told, str) else self._told()
        # Most edges first: the order for an uninformative question.
        ordered = sorted(schema.relations, key=lambda relation: (-relation.count, relation.name))
        of_edges = self._find_edge_values() if any(relation.properties for relation in ordered) else None
        self._entries = [_Entry.of(relation, count_tokens, of_edges) for relation in ordered]
        self._tokens = np.array([entry.tokens for entry in self._entries], np.int64)
        self._untyped = not any(schema.node_properties.values()) and not any(map(_typed, schema.relations))
        self._places = {relation.name: place for place, relation in enumerate(ordered)}
        self._properties = [
            (type_, detail)
            for type_, names in schema.node_properties.items()
            for detail in _details(names, schema.node_property_details.get(type_, ()))
        ]
        self._relevance = _Relevance(
            [_relation_words(relation) for relation in ordered], embedder, [relation.count for relation in ordered]
        )
        self._property_relevance = _Relevance(
            [f"{normalize_label(type_)} {normalize_label(detail.name)}" for type_, detail in self._properties], embedder
        )
        self._property_names = _Relevance([normalize_label(detail.name) for _, detail in self._properties], None)
        self._values = self._find_values() if self._properties else None
        self._types = [type_ for type_ in schema.node_types if type_]
        self._type_names = _Relevance(list(map(normalize_label, self._types)), None)
        index = None if self._values is None else self._values.index
        self._keys = {} if index is None else _keys_by_type(index)
        self._described = cache(partial(_describe, index))

    def render(
        self,
        question: str = "",
        budget_tokens: int = 2000,
        around: Iterable[EntityId] = (),
        most: RelationLimits = EVERY_RELATION,
    ) -> SchemaText:
        """Return the most relevant relations and properties, as many as fit.

        Args:
            question: reference of relevance; without one those of most edges are shown.
            budget_tokens: largest size of the text.
            around: entities of the question, as far as they are known. Raises `EntityNotFound`.
            most: relations shown, if any are at these entities.

        Returns:
            The text: empty if the budget is too small for a single relation.
        """
        return self._rendered(question, budget_tokens, tuple(around), most)

    def ranked(self, question: str) -> list[str]:
        """Return all relations, the most relevant to a question first."""
        self._look()
        return [self._entries[at].relation.name for at in self._order(question, {}).tolist()]

    def _render(
        self, question: str, budget_tokens: int, around: tuple[EntityId, ...], most: RelationLimits
    ) -> SchemaText:
        self._look()
        near = self._near.around(around) if self._near is not None and around else {}
        nameless = self._near is not None and bool(self._near.company)
        draft = _Draft(
            self._schema,
            self._count,
            self._notes,
            _DATA_NODES if self._untyped and nameless else "",
            {} if self._untyped else self._type_notes(around),
        )
        close = np.zeros(len(self._entries), np.bool_)
        close[[self._places[name] for name, steps in near.items() if steps == 1 and name in self._places]] = True
        ranked = _Ranked(self._entries, self._tokens, self._order(question, near), near, close, most)
        lines = _PropertyLines(self._values, self._described, question)
        order = self._property_relevance.order(question)
        meant = self._property_names.shares_word(question)
        properties = [self._properties[at] for at in order]
        first = [
            each
            for at, each in zip(order, properties, strict=True)
            if meant[at] or lines.is_near(each[0], each[1].name)
        ]
        meant_types = self._type_names.shares_word(question)
        draft.add_types([type_ for at, type_ in enumerate(self._types) if meant_types[at]], budget_tokens)
        draft.add_properties(first, lines, int(budget_tokens * _MEANT_SHARE), meant=True)
        share = _RELATION_SHARE if self._properties else 1
        draft.add_relations(ranked, draft.spent + int((budget_tokens - draft.spent) * share))
        draft.add_properties(properties, lines, budget_tokens)
        draft.add_relations(ranked, budget_tokens)
        draft.extend_properties(properties, lines, budget_tokens)
        draft.fill(ranked, budget_tokens)
        draft.shrink(budget_tokens)
        return draft.finished()

    def _type_notes(self, around: Sequence[EntityId]) -> dict[str, str]:
        """Return for each type how its nodes are named and identified, as far as known."""
        naming = {} if self._near is None else self._near.naming
        near = {} if self._near is None or not naming else self._near.names(around)
        notes = {}
        for type_ in self._schema.node_types:
            key, parts = self._keys.get(type_, ""), []
            if type_ in naming:
                template, names = naming[type_]
                shown = list(dict.fromkeys(near.get(type_, ())))[:_NEAREST] or ([] if template else names[:1])
                single = _SINGLE.fullmatch(template)
                named = f" by {single[1]}" if single else f' "{template}"' if template else ""
                named = " and identified" + named if single and single[1] == key else named
                examples = f" e.g. {', '.join(map(_quoted, shown))}" if shown else ""
                parts.append(f"named{named}{examples}" if named or examples else "without names")
            if key and f"{{{key}}}" != (naming[type_][0] if type_ in naming else ""):
                parts.append(f"identified by {key}")
            notes[type_] = _shown("".join(f", {part}" for part in parts))
        return notes

    @cached_property
    def _inverses(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Places of relations, and of those that turn their edges round: (P,) and (P,)."""
        return self._paired({} if self._near is None else self._near.turned)

    @cached_property
    def _company(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Places of relations into nameless nodes, and of those that lead on from there: (P,) and (P,)."""
        return self._paired({} if self._near is None else self._near.company)

    def _paired(self, relations: Mapping[str, Iterable[str]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        pairs = [
            (self._places[one], self._places[other])
            for one, others in relations.items()
            for other in sorted(others)
            if one in self._places and other in self._places
        ]
        ones, others = np.array(pairs, np.int64).reshape(-1, 2).T
        return ones, others

    def _order(self, question: str, near: Mapping[str, int]) -> npt.NDArray[np.int64]:
        """Return the places of the relations, most relevant first: (R,)."""
        scores = self._relevance.scores(question).copy()
        for name, steps in near.items():
            if name in self._places:
                scores[self._places[name]] += _NEAR[steps - 1]
        if self._near is not None and question:
            for (ones, others), less in ((self._company, _COMPANY), (self._inverses, 0.0)):
                raised = scores.copy()
                np.maximum.at(raised, ones, scores[others] - less)
                scores = raised
        return np.argsort(-scores, kind="stable")


@dataclass(frozen=True)
class _Entry:
    """A relation as it is written, by itself and among others that begin or lead alike, and what that costs."""

    relation: RelationSchema
    text: str
    """By itself, on a line."""
    group: tuple[str, str]
    """Text before and behind the relations of a line; empty for a relation on its own line."""
    short: str
    """Among others."""
    tokens: int
    """Tokens of the longer of both, with its separator."""
    group_tokens: int
    types: tuple[str, ...]

    @classmethod
    def of(cls, relation: RelationSchema, count: Callable[[str], int], values: ValueIndex | None = None) -> _Entry:
        """Write a relation; of properties that store numbers or dates as texts, the `values` give kind and range."""
        head, tail, name = _end(relation.domain), _end(relation.range), _shown(relation.name)
        details = "".join(
            f", {_edge_property(values, relation.name, detail)}"
            for detail in _details(relation.properties, relation.property_details)
        )
        few = f"({relation.count})" if relation.count < _FEW else ""
        typed, arrow = bool(head or tail), "-" if relation.symmetric else "->"
        if relation.symmetric and not typed:
            details = f"{_MARK}{details}"
        elif relation.undirected and not relation.symmetric:
            details = f", {relation.undirected:,} of them{_MARK}{details}"
        colon = "" if ":" in name else ":"
        begin, end = f"({head})-[{colon}", f"]{arrow}({tail})"
        text = f"{begin}{name}{end} {relation.count:,}{details}\n" if typed else f"{name}{few}{details}\n"
        if typed:
            group, short = (begin, end), name
        else:
            begins = _begins(name)
            group, short = (f"{begins}: " if begins else "", ""), f"{name[len(begins) + 1 :] if begins else name}{few}"
        if details or any(mark in name for mark in " |"):
            group, short = ("", ""), text
        return cls(
            relation,
            text,
            group,
            short,
            count(f"|{short}, {relation.count:,}" if typed else f" {short}") if any(group) else count(text),
            count("".join(group) + "\n"),
            tuple(_ends(relation)),
        )


@dataclass(frozen=True)
class _Ranked:
    """Relations in the order in which they are taken."""

    entries: Sequence[_Entry]
    """R of them, and"""
    tokens: npt.NDArray[np.int64]
    """(R,) what each costs at least."""
    order: npt.NDArray[np.int64]
    """(R,) their places, the first first."""
    near: Mapping[str, int]
    """How near some of them are to the entities of the question."""
    close: npt.NDArray[np.bool_]
    """(R,) whether each touches an entity."""
    most: RelationLimits

    def limit(self, close: bool) -> int | None:
        """Return how many relations that do or do not touch an entity may be shown; None if there is no limit."""
        return (self.most.close if close else self.most.others) if self.near else None

    def within(self, left: Callable[[], int], taken: Mapping[bool, int]) -> Iterator[tuple[_Entry, bool]]:
        """Yield the entries within the remaining budget, and whether they touch an entity.

        Those of a kind of which enough are `taken` are left out as far as it is known.
        """
        for start in range(0, len(self.order), _AT_ONCE):
            part = self.order[start : start + _AT_ONCE]
            wanted = [(most := self.limit(kind)) is None or taken[kind] < most for kind in (False, True)]
            part = part[np.where(self.close[part], wanted[True], wanted[False])]
            for at in part[self.tokens[part] <= left()].tolist():
                yield self.entries[at], bool(self.close[at])


class _Relevance:
    """Ranks N described items by relevance to a question, and by frequency if known."""

    def __init__(
        self, descriptions: Sequence[str], embedder: Embedder | None, counts: Sequence[int] | None = None
    ) -> None:
        words_of = [list(dict.fromkeys(description.split())) for description in descriptions]
        self._embedder = embedder
        vectors = embedder.encode(descriptions) if embedder and descriptions else None
        self._vectors = None if vectors is None else exact(vectors)
        frequency = Counter(word for words in words_of for word in words)
        # A word in every description carries no information; one in a single description carries most.
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
        self.scores = lru_cache(_HELD)(self._scores)
        """Return the relevance of each item: (N,), all 0 for an uninformative question."""

    def order(self, question: str) -> list[int]:
        """Return positions, best first; equals in the order given."""
        order: list[int] = np.argsort(-self.scores(question), kind="stable").tolist()
        return order

    def shares_word(self, question: str) -> npt.NDArray[np.bool_]:
        """Return for each description whether one of its words is related to a word of the question: (N,)."""
        words = normalize_label(question).split()
        return self._lexical([word for word in words if word not in FUNCTION_WORDS]) > 0

    def _scores(self, question: str) -> npt.NDArray[np.float64]:
        words = normalize_label(question).split()
        asked = [word for word in words if word not in FUNCTION_WORDS] or words
        if not asked or not len(self._whole):
            return np.zeros(len(self._whole))
        scores = self._lexical(asked)
        if self._vectors is None or self._embedder is None:
            scores += _FREQUENCY_BESIDE_WORDS * self._frequencies
        else:
            scores = _WORDS_BESIDE_VECTORS * scores + _FREQUENCY_BESIDE_VECTORS * self._frequencies
            scores += compare_rows(self._vectors, exact(self._embedder.encode([" ".join(asked)])[0]))
        return scores

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
    """A growing text with the cost of its lines."""

    def __init__(
        self, schema: Schema, count: Callable[[str], int], notes: str, explained: str, about: Mapping[str, str]
    ) -> None:
        """Begin a text; `explained` stands above the relations of this graph in any case, `about` behind a type."""
        self._schema, self._count, self._notes, self._explained = schema, count, notes, explained
        self._about = about
        self._relations: dict[str, tuple[_Entry, bool]] = {}
        self._types: dict[str, dict[str, str]] = {}
        """The lines of its properties by name."""
        self._kept: set[str] = set()
        """Types that are shown whether or not a relation leads to them."""
        self._groups: set[tuple[bool, tuple[str, str]]] = set()
        self._taken: Counter[bool] = Counter()
        """Relations that touch an entity, and others."""
        self._whole: tuple[str, int] | None = None
        """The text and its tokens, until something is taken or dropped."""
        # Headings, and the line with the number of omitted items, are always paid for.
        self.spent = sum(
            map(count, (notes, self._explained, _NODE_TYPES, _RELATIONS, _left_out(len(schema.relations))))
        )

    def add_relations(self, ranked: _Ranked, budget: int) -> None:
        """Take each relation that fits and is not there yet, with the node types at its ends."""
        for entry, close in ranked.within(lambda: budget - self.spent, self._taken):
            limit = ranked.limit(close)
            if entry.relation.name in self._relations or (limit is not None and self._taken[close] >= limit):
                continue
            types = [type_ for type_ in entry.types if type_ and type_ not in self._types]
            cost = entry.tokens + sum(self._count(self._type_line(type_)) for type_ in types)
            if (close, entry.group) not in self._groups:
                cost += entry.group_tokens
            if self.spent + cost > budget:
                continue
            self.spent += cost
            self._whole = None
            self._relations[entry.relation.name] = entry, close
            self._taken[close] += 1
            self._groups.add((close, entry.group))
            self._types |= {type_: {} for type_ in types}

    def add_types(self, types: Iterable[str], budget: int) -> None:
        """Take each type that fits, whether or not a relation leads to it."""
        for type_ in types:
            cost = self._count(self._type_line(type_))
            if type_ not in self._types and self.spent + cost <= budget:
                self.spent += cost
                self._whole = None
                self._types[type_] = {}
                self._kept.add(type_)

    def add_properties(
        self, ranked: Sequence[tuple[str, PropertySchema]], lines: _PropertyLines, budget: int, meant: bool = False
    ) -> None:
        """Take each property that fits, of node types that are shown. Where nodes have no types, all are.

        Args:
            ranked: types and properties, the most relevant first.
            lines: writes them.
            budget: largest size of the text.
            meant: take also types that are not shown yet, and lines in full; else lines are as short as possible.
        """
        for type_, detail in ranked:
            new = bool(type_) and type_ not in self._types
            if (new and not meant) or detail.name in self._types.get(type_, ()):
                continue
            beside = self._count(self._type_line(type_)) if new else 0
            full, short = lines.of(type_, detail)
            for line in (full, short) if meant else (short,):
                if self._take(type_, detail.name, line, beside, budget):
                    self._kept |= {type_} if meant else set()
                    break

    def extend_properties(
        self, ranked: Sequence[tuple[str, PropertySchema]], lines: _PropertyLines, budget: int
    ) -> None:
        """Write properties that are shown in full, as far as there is room."""
        for type_, detail in ranked:
            if (shown := self._types.get(type_, {}).get(detail.name)) is not None:
                full, _ = lines.of(type_, detail)
                if full != shown:
                    self._take(type_, detail.name, full, -self._count(shown), budget)

    def _take(self, type_: str, name: str, line: str, beside: int, budget: int) -> bool:
        """Take the line of a property, which costs `beside` more than its own tokens; False if it has no room."""
        cost = beside + self._count(line)
        if self.spent + cost > budget:
            return False
        self.spent += cost
        self._whole = None
        self._types.setdefault(type_, {})[name] = line
        return True

    def fill(self, ranked: _Ranked, budget: int) -> None:
        """Add items that fit after all: lines with shared relations cost less than each was charged."""
        self.spent = self._counted()[1]
        self.add_relations(ranked, budget)

    def shrink(self, budget: int) -> None:
        """Drop the last items until the whole text fits: its tokens may exceed those of its lines."""
        while (self._relations or self._types) and self._counted()[1] > budget:
            self._whole = None
            if self._relations:
                self._taken[self._relations.popitem()[1][1]] -= 1
                needed = self._kept.union(*(entry.types for entry, _ in self._relations.values()))
                self._types = {type_: found for type_, found in self._types.items() if type_ in needed}
            else:
                self._types.popitem()

    def finished(self) -> SchemaText:
        """Return the text and its items."""
        text, tokens = self._counted()
        shown = [type_ for type_ in self._schema.node_properties if type_ in self._types or not type_]
        total = sum(len(self._schema.node_properties[type_]) for type_ in shown)
        return SchemaText(
            text=text,
            tokens=tokens,
            relations=tuple(self._relations),
            relations_left_out=len(self._schema.relations) - len(self._relations),
            properties_left_out=total - sum(map(len, self._types.values())),
        )

    def _counted(self) -> tuple[str, int]:
        """Return the text as it is now, and its tokens."""
        if self._whole is None:
            text = self._text()
            self._whole = text, self._count(text)
        return self._whole

    def _text(self) -> str:
        if not self._relations and not self._types:
            return ""
        lines = [self._notes]
        if self._types:
            lines.append(_NODE_TYPES)
        for type_ in sorted(self._types, key=lambda type_: (-self._schema.node_types.get(type_, 0), type_)):
            lines.append(self._type_line(type_))
            found = self._types[type_]
            lines += [found[name] for name in self._schema.node_properties.get(type_, ()) if name in found]
        if self._relations:
            close = _lines(entry for entry, near in self._relations.values() if near)
            other = _lines(entry for entry, near in self._relations.values() if not near)
            lines.append(self._explained)
            written = "".join((*close, *other))
            lines.append(_GROUPED if _GROUP.search(written) else "")
            lines.append(_MEDIATED if ".." in written else "")
            lines.append(_UNDIRECTED if any(entry.relation.undirected for entry, _ in self._relations.values()) else "")
            qualified = any(entry.relation.properties for entry, _ in self._relations.values())
            lines.append(_QUALIFIED if qualified and self._types else "")
            lines.append(_FEW_EDGES if _COUNTED.search(written) and not self._types else "")
            lines += [_CLOSE, *close, *([_OTHER] if other else []), *other] if close else [_RELATIONS, *other]
        if len(self._relations) < len(self._schema.relations):
            lines.append(_left_out(len(self._schema.relations) - len(self._relations)))
        return "".join(lines)

    def _type_line(self, type_: str) -> str:
        return (
            f"{_shown(type_) or 'any node'} ({self._schema.node_types.get(type_, 0):,}){self._about.get(type_, '')}\n"
        )


# Lines


def _lines(entries: Iterable[_Entry]) -> list[str]:
    """Write relations, those that begin or lead alike on one line."""
    groups: dict[tuple[str, str] | str, list[_Entry]] = defaultdict(list)
    for entry in entries:
        groups[entry.group if any(entry.group) else entry.text].append(entry)
    lines = []
    for group, same in groups.items():
        if len(same) == 1 or isinstance(group, str):
            lines.append(same[0].text)
        else:
            between = "|" if group[1] else " "
            counts = f" {', '.join(f'{entry.relation.count:,}' for entry in same)}" if group[1] else ""
            lines.append(f"{group[0]}{between.join(entry.short for entry in same)}{group[1]}{counts}\n")
    return lines


def _begins(name: str) -> str:
    """Return the prefix of a relation's name, up to the last dot before a nameless node; empty without a dot."""
    return name.split("..")[0].rpartition(".")[0]


@dataclass(frozen=True)
class _DescribedProperty:
    """The line of a property, whatever the question."""

    start: str
    """Its name and kind."""
    examples: tuple[Value, ...]
    """Shown unless values near the question are."""
    values: str
    """Its range, or all of its values, in place of examples; empty for neither."""
    ranged: bool


class _PropertyLines:
    """Lines of properties, each with the values nearest to a question.

    Args:
        values: finds them; None shows the examples of the schema.
        described: describes a property of a type, or has no values of it.
        question: its text.
    """

    def __init__(
        self,
        values: ValueSource | None,
        described: Callable[[str, PropertySchema], _DescribedProperty | None],
        question: str,
    ) -> None:
        self._described = described
        self._near: dict[tuple[str, str], dict[Value, None]] = defaultdict(dict)
        for mention in values.find_mentions(question) if values is not None else ():
            for match in mention.matches:
                self._near[match.type, match.property][match.value] = None

    def is_near(self, type_: str, name: str) -> bool:
        """True if the question names a value of a property."""
        return (type_, name) in self._near

    def of(self, type_: str, detail: PropertySchema) -> tuple[str, str]:
        """Return the line of a property, and a shorter one."""
        found = self._described(type_, detail)
        if found is None:
            line = f"  {_property(detail)}\n"
            return line, line
        near = tuple(self._near.get((type_, detail.name), ()))[:_NEAREST]
        examples = near if found.values else near or found.examples
        shown = f", e.g. {', '.join(map(_value, examples))}" if examples and (found.ranged or not found.values) else ""
        one = (near or found.examples)[:1]
        short = f", e.g. {_value(one[0])}" if one else ""
        return f"  {found.start}{found.values}{shown}\n", f"  {found.start}{short}\n"


def _describe(index: ValueIndex | None, type_: str, detail: PropertySchema) -> _DescribedProperty | None:
    """Describe a property by its values; None if they are unknown."""
    column = None if index is None else index.property(type_, detail.name)
    if index is None or column is None:
        return None
    known = [value for value in column.examples if len(str(value)) <= _SHORT_NAME] or detail.examples
    start, values = f"{_shown(detail.name)}: {_kind(index, column, detail)}", ""
    ranged = column.least is not None and column.most is not None and column.least != column.most
    if ranged:
        values = f", {_value(column.least or 0)} to {_value(column.most or 0)}"
    elif column.whole and column.distinct <= _ENUMERATED:
        every = [match.value for match in index.values(type_, detail.name, _ENUMERATED)]
        listed = ", ".join(map(_value, every))
        values = f", {'one of' if len(every) > 1 else 'only'} {listed}" if len(listed) <= _ENUMERATION else ""
    return _DescribedProperty(start, tuple(known[:_EXAMPLES]), values, ranged)


def _kind(index: ValueIndex, column: IndexedProperty, detail: PropertySchema) -> str:
    """Return the kind of a property; of numbers and dates that are stored as texts, their formats as well."""
    if column.storage != "string" or detail.kind not in ("", "string") or column.kind not in ("number", "date"):
        return detail.kind or column.storage
    formats = index.formats(column) if column.kind == "date" else ()
    sorts = len(formats) == 1 and _SORTS.match(formats[0]) is not None
    return f"string {' or '.join(formats) if formats else 'of numbers'}{'' if sorts else ' (does not sort)'}"


_SORTS = re.compile(r"yyyy(\W?mm(\W?dd\b.*)?)?$|hh:mm")
"""Formats of dates and times whose texts have the order of time."""

_SINGLE = re.compile(r"\{([^{}]+)\}")


def _keys_by_type(index: ValueIndex) -> dict[str, str]:
    """Return the identifying property of each type that has one."""
    from byokg.graph.display_names import key_of

    columns: dict[str, list[IndexedProperty]] = defaultdict(list)
    for column in index.properties():
        columns[column.type].append(column)
    return {type_: key for type_, found in columns.items() if type_ and (key := key_of(found))}


def _property(detail: PropertySchema) -> str:
    kind = f": {detail.kind}" if detail.kind else ""
    values = ", ".join(map(_value, detail.examples))
    return f"{_shown(detail.name)}{kind}{f', e.g. {values}' if values else ''}"


def _edge_property(index: ValueIndex | None, relation: str, detail: PropertySchema) -> str:
    """Write a property of edges: by its values if these are numbers or dates stored as texts, else with examples."""
    found = _describe(index, relation, detail)
    plain = found is None or found.start == f"{_shown(detail.name)}: {detail.kind or 'string'}"
    return _property(detail) if found is None or plain else f"{found.start}{found.values}"


def _value(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return _quoted(value) if isinstance(value, str) else str(value)


def _quoted(text: str) -> str:
    return f'"{_shown(text)}"'


def _left_out(count: int) -> str:
    return f"… and {count:,} more relations, spelled in the same way\n"


def _end(types: Sequence[str]) -> str:
    named = [_shown(type_) for type_ in types if type_]
    more = f"|{len(named) - _ENDS} more types" if len(named) > _ENDS else ""
    colon = ":" if named and ":" not in named[0] else ""
    return f"{colon}{'|'.join(named[:_ENDS])}{more}"


def _ends(relation: RelationSchema) -> list[str]:
    """Return the node types that a relation's line names."""
    return list(dict.fromkeys((*relation.domain[:_ENDS], *relation.range[:_ENDS])))


def _typed(relation: RelationSchema) -> bool:
    return any((*relation.domain, *relation.range))


def _shown(text: str) -> str:
    """Keep a text on one line, and from passing for a tag of ours."""
    return on_one_line(text)


def _details(names: Sequence[str], details: Sequence[PropertySchema]) -> list[PropertySchema]:
    known = {detail.name: detail for detail in details}
    return [known.get(name, PropertySchema(name)) for name in names]


# Words


def _relation_words(relation: RelationSchema) -> str:
    ends = " ".join(map(normalize_label, _ends(relation)))
    return f"{normalize_label(relation.name)} {ends} {' '.join(map(normalize_label, relation.properties))}".strip()
