"""Records that pass between the stages, frozen and plain, and the protocol of retrievers."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Literal, NewType, Protocol, TypeAlias

from byokg.text.tabular import TableView, Tabular, listed

EntityId = NewType("EntityId", str)
"""Identity of a node in one store. Never a name: names are not unique."""

Value = str | int | float | bool
"""A node or edge property. Dates travel as ISO 8601 strings (`2001-09-30`), years as int."""

Properties = Mapping[str, Value]

NO_PROPERTIES: Properties = MappingProxyType({})

Metapath = tuple[str, ...]
"""Relation labels, one per hop. A leading `^` walks that relation from tail to head."""

INVERSE = "^"


@dataclass(frozen=True)
class Question:
    """Input of a pipeline. Gold answers are in `evaluation.datasets.base.Example`, out of its sight.

    `topic_ids` and `hops` are empty unless the caller has them, or an evaluation setting grants the data set's
    annotation (`linking.entities=gold`, `linking.hops=gold`).

    >>> Question("q1", "Which river flows through Paris?").text
    'Which river flows through Paris?'
    """

    id: str
    text: str
    topic_ids: tuple[EntityId, ...] = ()
    hops: int | None = None
    repeat: int = 0
    """Number of earlier repeats in the same run; random draws differ between repeats."""


def asked_first(id: str, repeat: int) -> str:
    """Return the id of the question that one of its repeats (`ID#2`, `ID#3`, …; the first bears its id) asks again."""
    return id.removesuffix(f"#{repeat + 1}") if repeat else id


@dataclass(frozen=True)
class Mention:
    """A piece of question text that names something in the graph.

    `start`/`end` index the question's characters (half open); both are -1 when the text does
    not occur literally. `ids` is set when the entity is known beforehand, so nothing is searched.
    """

    text: str
    start: int = -1
    end: int = -1
    ids: tuple[EntityId, ...] = ()


@dataclass(frozen=True)
class ProposedPath:
    """A relation path that a KG-Linker proposes, with its belief in it (higher is better)."""

    relations: Metapath
    score: float = 0.0
    source: EntityId | None = None
    """Where the path starts, when the linker knows; None means any linked entity."""
    directed: bool = True
    """Whether a `^` in `relations` counts. A language model sees a relation's name and guesses its direction, so its
    paths are walked both ways at each hop, the written way first."""


@dataclass(frozen=True)
class JoinedPaths:
    """Two relation paths from different mentions, proposed for what both lead to, with the belief in that."""

    paths: tuple[ProposedPath, ProposedPath]
    score: float


Language = Literal["cypher", "sparql"]


@dataclass(frozen=True)
class GraphQuery:
    """A query that a language model wrote: untrusted text."""

    language: Language | Literal["paths"]
    """`paths` for a path query (docs/path-queries.md), which any graph takes."""
    text: str


@dataclass(frozen=True)
class Artifacts:
    """Output of a KG-Linker for one round. Source: ByoKG-RAG (arXiv:2507.04127v1), "KG-Linker"."""

    mentions: tuple[Mention, ...] = ()
    paths: tuple[ProposedPath, ...] = ()
    queries: tuple[GraphQuery, ...] = ()
    """At most one for each requested language."""
    draft_answers: tuple[str, ...] = ()
    bfsql: str | None = None
    finished: bool = False
    joined: tuple[JoinedPaths, ...] = ()
    """Pairs of `paths`, best first."""
    unknown: tuple[UnknownValue, ...] = ()
    """Values that the question names and the graph lacks, found by the offline linker."""


LinkMethod = Literal["given", "id", "exact", "fuzzy", "dense", "value"]
"""How a node was found: its id came with the mention; the mention is its id; a name of it equals the mention once both
are folded; a name resembles the mention in letters; a name resembles it in meaning; a property of it has the value."""


@dataclass(frozen=True)
class LinkMatch:
    """How one method found and ranked a candidate."""

    method: LinkMethod
    name: str
    """The name that matched; a node may have several."""
    score: float
    """In [0, 1]; scores of different methods do not compare."""
    rank: int
    """From 1, among the method's results for the mention."""


@dataclass(frozen=True)
class LinkedEntity:
    """One candidate node for one mention: never flattened across mentions."""

    id: EntityId
    name: str
    mention: Mention
    method: LinkMethod
    """The one that ranked the node best."""
    score: float
    """In [0, 1], the order of a mention's candidates; 1 is an exact match or a given id, unless the question
    disambiguates between them."""
    matches: tuple[LinkMatch, ...] = ()
    """One for each method that found the node."""
    context: float | None = None
    """Fit of the node's neighbourhood with the question, in [0, 1]; None if not computed."""


@dataclass(frozen=True)
class LinkedLiteral:
    """A mention that is a value or an identifier rather than a name: a filter value for queries.

    A value may also be the name of a node (a film called `1984`), which is then linked as well. An identifier is here
    only if no node has it.
    """

    value: Value
    """Dates as ISO 8601 text of the given precision (`1990-05-12`, `1990-05`); years, decades (the first year) and
    whole numbers as int; identifiers as text."""
    kind: Literal["date", "year", "decade", "number", "id"]
    mention: Mention


@dataclass(frozen=True)
class LinkedValue:
    """A value constraint for one mention that is no node's name: `Person.surname = Powell`."""

    type: str
    """Node type; empty for nodes without one."""
    property: str
    value: Value
    """As stored."""
    mention: Mention
    score: float
    """In [0, 1]; 1 is equal after folding, or the same number, date or time."""
    count: int
    """Nodes of the type with this value."""

    def __str__(self) -> str:
        return f"{self.type}.{self.property} = {self.value}" if self.type else f"{self.property} = {self.value}"


@dataclass(frozen=True)
class UnknownValue:
    """A value or name in a question that is nowhere in the graph."""

    mention: Mention
    nearest: tuple[LinkedValue, ...]
    """Values nearest to it, best first; empty if none resembles it."""

    def __str__(self) -> str:
        near = ", ".join(map(str, self.nearest))
        return f'"{self.mention.text}" is nowhere in the graph' + (f"; nearest: {near}" if near else "")


@dataclass(frozen=True)
class Node:
    """A node as the store holds it."""

    id: EntityId
    name: str
    type: str = ""
    """The first of its types, which is shown; empty if it has none."""
    properties: Properties = field(default_factory=lambda: NO_PROPERTIES)
    further_types: tuple[str, ...] = ()
    """Its other types, distinct, in the order of the store."""

    @property
    def types(self) -> tuple[str, ...]:
        """Return all of its types, the one that is shown first; none for a node without."""
        return (self.type, *self.further_types) if self.type else ()


def of_any(node: Node, types: Collection[str]) -> bool:
    """Return True if a node is of one of some types; the type ``""`` is that of nodes without."""
    return any(type in types for type in node.types or ("",))


@dataclass(frozen=True)
class Triple:
    """One stored edge, in stored orientation; `edge` is its id within the store."""

    head: EntityId
    relation: str
    tail: EntityId
    edge: int = -1
    properties: Properties = field(default_factory=lambda: NO_PROPERTIES)
    undirected: bool = False
    """True if the edge leads from either end to the other; then `head` is the end that it was walked from."""

    def turned(self) -> Triple:
        """Return an undirected edge from its other end."""
        return replace(self, head=self.tail, tail=self.head)


@dataclass(frozen=True)
class Path:
    """A walk through the graph: `triples[i]` is walked head to tail unless `inverse[i]`."""

    source: EntityId
    triples: tuple[Triple, ...]
    inverse: tuple[bool, ...]

    @cached_property
    def nodes(self) -> tuple[EntityId, ...]:
        """The nodes visited, source first: one more than there are triples."""
        visited = [self.source]
        for triple, inverse in zip(self.triples, self.inverse, strict=True):
            visited.append(triple.head if inverse else triple.tail)
        return tuple(visited)

    @property
    def end(self) -> EntityId:
        """Return the last node visited."""
        return self.nodes[-1]


@dataclass(frozen=True)
class NodeCell(Node):
    """A node in a query's answer, so that evidence can point back into the graph."""


@dataclass(frozen=True)
class EdgeCell:
    """A relationship in a query's answer, in stored orientation."""

    head: EntityId
    relation: str
    tail: EntityId
    properties: Properties = field(default_factory=lambda: NO_PROPERTIES)


@dataclass(frozen=True)
class PathCell:
    """A path in a query's answer: `edges[i]` joins `nodes[i]` and `nodes[i + 1]`, in either orientation."""

    nodes: tuple[NodeCell, ...]
    edges: tuple[EdgeCell, ...]


Cell: TypeAlias = (
    "bool | int | float | str | NodeCell | EdgeCell | PathCell | Sequence[Cell] | Mapping[str, Cell] | None"
)
"""A value in a row, or a query parameter. Dates and times are ISO 8601 strings."""


@dataclass(frozen=True)
class Evidence:
    """One retrieved item. `id` and `round` are given by `Context.add`: `e1`, `e2`, … within a question."""

    retriever: str
    score: float
    id: str = field(default="", kw_only=True)
    round: int = field(default=0, kw_only=True)


@dataclass(frozen=True)
class PathEvidence(Evidence):
    """All ends of one metapath from one source entity.

    `ends` is complete and in the caller's order; `paths` has one concrete walk per end for the first few ends, so
    evidence from a hub stays small. `truncated` is True if a limit cut `ends`.
    """

    source: EntityId
    relations: Metapath
    ends: tuple[EntityId, ...]
    paths: tuple[Path, ...]
    truncated: bool = False
    asked: bool = False
    """True if the linker requested these relations; False if a search found the path."""
    walks: int = 0
    """Walks along it in all, as far as they were counted: several may lead to one end."""


@dataclass(frozen=True)
class TripleEvidence(Evidence):
    """One edge of the graph."""

    triple: Triple
    stub: bool = False
    """Whether it only shows how a subgraph is connected: its properties, and those of its ends, are left out."""
    asked: bool = False
    """True if a language model selected its relation."""
    inverse: bool = False
    """True if it was found from its tail."""
    left_out: int = 0
    """Edges of the same relation and direction at the same node that a limit left out."""


@dataclass(frozen=True)
class NodeEvidence(Evidence):
    """Type and properties of one node."""

    node: Node


@dataclass(frozen=True)
class RowsEvidence(Evidence):
    """Result of a query."""

    language: Language
    query: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    truncated: bool = False
    joined: Mapping[EntityId, str] = field(default_factory=dict)
    """Neighbours of nameless nodes in the rows, as text: an id alone carries no meaning."""
    total: int = 0
    """Rows of the whole result where `truncated`, as far as they were counted; 0 if they were not."""
    exact: bool = True
    """False if the result has more rows than `total`, or more than `rows` and `left_out` without its own LIMIT."""
    readings: tuple[str, ...] = ()
    """Literals of the query that were read as other values, a line each: `'Powel' read as 'Powell' (Person.name)`."""
    unseen: tuple[tuple[Cell, ...], ...] = ()
    """The rows behind `rows`, as far as they were read: part of an answer, and of no prompt."""
    left_out: int = 0
    """Rows that the query's own LIMIT left out, as far as they were read, and"""
    following: tuple[Cell, ...] = ()
    """the first of them, which may tie with the last one here; part of no answer."""

    @property
    def beyond(self) -> tuple[int, bool]:
        """Return how many rows of the result are known beside those here, and whether there are others."""
        return max(0, self.total - len(self.rows)), self.truncated and not (self.total and self.exact)


@dataclass(frozen=True)
class ComputedEvidence(Evidence):
    """Result of an operation on other evidence: a count, a superlative, a difference."""

    operation: str
    """`count`, `superlative`, `comparison`, `time`, `difference`, `union`, `sequence`, `property` or `verification`."""
    text: str
    """Description of the operation and its operands."""
    nodes: tuple[EntityId, ...] = ()
    """Result nodes, if the operation returns nodes."""
    values: tuple[Value, ...] = ()
    """Result values, if the operation returns numbers or dates."""
    uses: tuple[str, ...] = ()
    """Ids of the evidence it was made of."""
    truncated: bool = False
    """True if a limit truncated the input: the result may change and a count is a lower bound."""


@dataclass(frozen=True)
class Feedback(Evidence):
    """A fault in a language model's output. The next round's prompt shows it; no answer cites it."""

    subject: str
    """The faulty output: a query, a request."""
    problem: str


@dataclass(frozen=True)
class Step:
    """One thing that a stage did, for the trace: its input and its outcome."""

    stage: str
    given: Mapping[str, object]
    """Plain values, as JSON has them; those of `got`, too."""
    got: Mapping[str, object]


Support = Literal["supported", "found", "unsupported"]
"""`supported`: evidence that the answer cites holds it. `found`: other evidence that was shown does. `unsupported`:
none does."""


@dataclass(frozen=True)
class AnswerItem:
    """One answer: the name shown, the node it is (if any), and the evidence behind it.

    >>> item = AnswerItem("Paris", EntityId("city/paris"), 0.9, citations=("e1",), cited=1)
    >>> item.name, item.support
    ('Paris', 'supported')
    """

    name: str
    id: EntityId | None
    score: float
    citations: tuple[str, ...] = ()
    """Ids of the evidence items that contain this answer: the cited ones, or others if none of these does."""
    cited: int = 0
    """How many lines of evidence were cited for it, right or wrong."""
    miscited: tuple[str, ...] = ()
    """Ids of the cited lines that do not contain it, as they were written."""
    value_of: str = ""
    """Property that it is a value of, as far as known: `Person.surname`."""

    @property
    def support(self) -> Support:
        """Return the kind of support of the answer."""
        if not self.citations:
            return "unsupported"
        return "supported" if self.cited > len(self.miscited) else "found"

    @property
    def grounded(self) -> bool:
        """True if retrieved evidence contains the answer, cited or not."""
        return bool(self.citations)


@dataclass(frozen=True)
class AnswerRow:
    """One row of an answer with columns: a row of the query result that the answers rest on."""

    cells: tuple[Cell, ...]
    """One for each of `Answer.columns`."""


@dataclass(frozen=True)
class Linked:
    """The nodes that a round's mentions and draft answers were linked to, kept apart."""

    entities: tuple[LinkedEntity, ...] = ()
    drafts: tuple[LinkedEntity, ...] = ()
    literals: tuple[LinkedLiteral, ...] = ()
    """The mentions that are values, each once; draft answers are left out."""
    values: tuple[LinkedValue, ...] = ()
    """Property values for mentions that are no node's id or exact name, best first for each; draft answers are left
    out."""

    def unseen(self, context: Context) -> bool:
        """True if any entity was not linked in an earlier round."""
        seen = {entity.id for earlier in context.rounds for entity in earlier.linked.entities}
        return any(entity.id not in seen for entity in self.entities)


@dataclass(frozen=True)
class Round:
    """What happened in one iteration."""

    number: int
    artifacts: Artifacts
    linked: Linked
    evidence: tuple[Evidence, ...]
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Context:
    """Everything gathered for a question so far."""

    rounds: tuple[Round, ...] = ()
    question: str = ""
    """Text of the question, for relevance of evidence; empty if unknown."""

    @cached_property
    def evidence(self) -> tuple[Evidence, ...]:
        """The evidence of all rounds, in the order it came."""
        return tuple(item for earlier in self.rounds for item in earlier.evidence)

    def add(
        self, artifacts: Artifacts, linked: Linked, found: Iterable[Sequence[Evidence]], steps: Sequence[Step] = ()
    ) -> Context:
        """Return the context with one more round; its evidence gets ids that continue the numbering."""
        count = len(self.evidence)
        items = [item for batch in found for item in batch]
        number = len(self.rounds)
        evidence = tuple(_numbered(item, f"e{count + at}", number) for at, item in enumerate(items, start=1))
        found_now = Round(number, artifacts, linked, evidence, tuple(steps))
        return replace(self, rounds=(*self.rounds, found_now))

    def noted(self, steps: Sequence[Step]) -> Context:
        """Return the context with further steps in its last round."""
        if not steps or not self.rounds:
            return self
        last = replace(self.rounds[-1], steps=(*self.rounds[-1].steps, *steps))
        return replace(self, rounds=(*self.rounds[:-1], last))


def _numbered(item: Evidence, id: str, round: int) -> Evidence:
    """Return a copy with id and round; `dataclasses.replace` takes many times as long, and there are hundreds."""
    numbered: Evidence = object.__new__(type(item))
    vars(numbered).update(vars(item), id=id, round=round)
    return numbered


@dataclass(frozen=True)
class Consumption:
    """Language-model calls and their cost.

    `input_tokens` counts whole prompts; tokens read from a provider's prompt cache, or written to it, are counted
    again on their own. `seconds` adds up the calls' times, also if they ran side by side. `usd` leaves out the
    `unpriced` calls, whose model has no known price.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    seconds: float = 0.0
    usd: float = 0.0
    unpriced: int = 0

    def __add__(self, other: Consumption) -> Consumption:
        return Consumption(*map(operator.add, vars(self).values(), vars(other).values()))

    def __sub__(self, other: Consumption) -> Consumption:
        return Consumption(*map(operator.sub, vars(self).values(), vars(other).values()))


@dataclass(frozen=True)
class Spending:
    """Cost of language-model calls, and savings by recorded replies.

    `replayed` is the original cost of replayed calls; they are free now. `failed` calls were sent and never answered,
    and `retries` counts repeated attempts, also for calls that succeeded in the end.
    """

    asked: Consumption = Consumption()
    replayed: Consumption = Consumption()
    failed: int = 0
    retries: int = 0

    def __add__(self, other: Spending) -> Spending:
        return Spending(*map(operator.add, vars(self).values(), vars(other).values()))

    @property
    def calls(self) -> int:
        """Return how many calls the work takes, wherever the replies came from."""
        return self.asked.calls + self.replayed.calls + self.failed


@dataclass(frozen=True, repr=False)
class Answer(Tabular):
    """The outcome for one question: answers best first, and every round that led to them.

    >>> answer = Answer("q1", (AnswerItem("Paris", EntityId("city/paris"), 0.9),), rounds=())
    >>> [item.name for item in answer.items]
    ['Paris']
    """

    question_id: str
    items: tuple[AnswerItem, ...]
    rounds: tuple[Round, ...]
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    """Wall time by stage (`link`, `retrieve`, `answer`), as far as the pipeline measured it."""
    usage: Mapping[str, Spending] = field(default_factory=dict, compare=False)
    """Language-model usage by stage; empty without calls, or without a meter."""
    note: str = ""
    """Missing support of an unsure answer, or the reason for none; empty otherwise."""
    rules: tuple[str, ...] = field(default=(), compare=False)
    """Hand-made rules of the offline pipeline that fired (`byokg.offline.lexicon`), in alphabetical order."""
    columns: tuple[str, ...] = ()
    """Names of the columns of `rows`."""
    rows: tuple[AnswerRow, ...] = ()
    """Result of the query that the answers rest on, in its order; empty if no query ran."""
    translation: str = ""
    """The question as it was read: in English, if the pipeline translated it; complete, if it followed others."""

    def _table(self) -> TableView:
        found = listed([item.name for item in self.items]) or "no answer"
        rows = ((one.name, one.id, one.score, one.support, ", ".join(one.citations)) for one in self.items)
        noted = f" ({self.note})" if self.note else ""
        return TableView(f"{self.question_id}: {found}{noted}", ("answer", "id", "score", "support", "citations"), rows)

    @property
    def unknown(self) -> tuple[UnknownValue, ...]:
        """Values that the question names and the graph lacks; with any there is no answer."""
        return tuple(value for one in self.rounds for value in one.artifacts.unknown)


@dataclass(frozen=True)
class Request:
    """Input of a retriever: everything known in a round."""

    question: Question
    artifacts: Artifacts
    linked: Linked
    context: Context
    steps: list[Step] = field(default_factory=list, compare=False)
    """Steps of the retrievers in this round, in order; added by `note`."""
    found: tuple[Evidence, ...] = ()
    """Evidence of the retrievers before this one in this round."""

    def note(self, stage: str, given: Mapping[str, object], got: Mapping[str, object]) -> None:
        """Record a step for the trace; `given` and `got` hold what JSON can."""
        self.steps.append(Step(stage, given, got))

    @property
    def finished(self) -> bool:
        """True if a retriever's language model wrote FINISH in this round: enough was found for an answer."""
        return any(step.got.get("finished") is True for step in self.steps)


def best_first(*linked: Sequence[LinkedEntity]) -> list[EntityId]:
    """Return linked ids, each once: the first candidate of each mention, then the second of each, and so on.

    Args:
        linked: entities, and draft answers; of candidates of one rank those of an earlier sequence come first.
    """
    ranked: list[tuple[int, EntityId]] = []
    for candidates in linked:
        counts: Counter[Mention] = Counter()
        for one in candidates:
            ranked.append((counts[one.mention], one.id))
            counts[one.mention] += 1
    return list(dict.fromkeys(id for _, id in sorted(ranked, key=lambda each: each[0])))


class Retriever(Protocol):
    """Fetches evidence from the graph."""

    def retrieve(self, request: Request) -> Sequence[Evidence]:
        """Return evidence, best first; nothing found is an empty sequence, not an error."""
