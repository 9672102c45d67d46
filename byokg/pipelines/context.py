"""Evidence as text for a prompt: lines that can be cited, within a budget of tokens.

Also the evidence behind an answer, which makes an answer grounded and a citation right.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise, zip_longest

import numpy as np
import numpy.typing as npt

from byokg.errors import QueryRefused, at_least
from byokg.graph.inverses import inverse_relations, twin_relations
from byokg.graph.property_view import is_value, node_names, without_values
from byokg.graph.store import GraphStore
from byokg.index.embedders import Embedder, exact
from byokg.linking.entities import ALIAS
from byokg.llm.shown_names import ShownNames
from byokg.pipelines.evidence_lines import Emphasis, Line, fold_lines
from byokg.retrieval.frontier import events_on
from byokg.retrieval.verbalize import TIMES, clean, disambiguate, feedback_text, names_of, types_text
from byokg.text.names import (
    FUNCTION_WORDS,
    estimate_tokens,
    is_identifier,
    normalize_label,
    normalize_name,
    on_one_line,
    related,
    singular,
)
from byokg.text.values import read_literal
from byokg.types import (
    INVERSE,
    Cell,
    Context,
    EdgeCell,
    EntityId,
    Evidence,
    Feedback,
    Mention,
    Node,
    NodeCell,
    NodeEvidence,
    Path,
    PathCell,
    PathEvidence,
    Properties,
    RowsEvidence,
    TripleEvidence,
)

NOTHING = "(nothing was found)"

PROBLEMS = "Problems in the last round:"

UNDATED = "The graph has no dates for the events in these facts."

UNFOUND = "Without result in the last round: "
"""Begins the one line of feedback beside rows of a query."""

LINKED = "Entities linked so far: "

MISSING = "Not found in the graph: "

READ = "query graph"
"""Retriever of the rows of a query that no language model wrote: beside it, lists stay whole; other rows replace it."""

FACTS = "facts"
"""Tag around the facts of a prompt."""

_FEEDBACK_SHARE = 0.25
"""Part of the budget that the problems of the last round may take, and the linked entities."""

_SUBJECT = 120
"""Characters of a request that is named without its problem."""

_LINKED_SHOWN = 20
"""Linked entities named with their types at most."""

_TOKENS_PER_ITEM = 4
"""Tokens of the shortest item, about; items beyond the budget divided by it are not read."""

_NOTICED = 200
"""Tokens of a budget from which on a count of the lines that do not fit has room as well."""

_MISSES = 20
"""Lines in a row without room, after which the text is taken to be full."""

_MOST_ENDS = 300
"""Ends of a path that are looked at: no list that is longer has room."""

_LIKELY = 20.0
"""Distance from the best score of a round without a language model within which a walk leads to likely answers."""

_LIKELY_SHOWN, _FEW_MORE, _LINES_OF_ONE = 120, 1.5, 10
"""Entries written of a likely line; factor up to which a list is written whole in place of the number of those left
out; and unrequested lines about one node, apart from walks."""

_LONG, _OF_LONG = 60, 3
"""Entries of an unlikely list above which it shows only so many: the answer is hardly among them.
Tuned with the dev questions of `benchmarks/lean.py`."""

_CHAINS = 1
"""Unlikely walks whose nodes in between are left out, at most: they hide the reason for their ends."""

_HUB = 100
"""Edges of one relation and direction above which a node joins unrelated nodes."""

_LINKED, _MET, _WITHIN = 0.3, 0.1, 0.3
"""Bonus of a line about a linked entity, or one that stands further up; allowed distance from the most relevant line.
Tuned with all recorded replies of `benchmarks/prompts.py`."""

_LINE = re.compile(r"^\[(e\d+)\] ", re.MULTILINE)
"""How a line begins. No name begins so in a line of its own: names keep no line ends."""

_DATE = re.compile(r"[12]\d{3}(?!\d)")
"""Start of a date or year."""

_END = re.compile(r"\n\n|\n</")
"""Text behind the last line."""


@dataclass(frozen=True)
class ContextText:
    """Shown part of a context."""

    text: str
    """Facts alone."""
    tokens: int
    """As counted by the function that was given, notes included; never more than the budget."""
    shown: tuple[str, ...]
    """Ids of the lines, in the order of the text."""
    left_out: int
    """Evidence items that stand in no line, for want of room."""
    items: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By the id of a line, the evidence items that it stands for: what citing it means."""
    problems: tuple[str, ...] = ()
    """Ids of the feedback shown."""
    notes: str = ""
    """Linked entities, and problems of the last round, which are no facts."""

    @property
    def block(self) -> str:
        """The facts between their tags, and the notes behind them."""
        return f"<{FACTS}>\n{self.text}\n</{FACTS}>" + (f"\n\n{self.notes}" if self.notes else "")


def shown_lines(prompt: str) -> tuple[str, ...]:
    """Return the ids of the lines of a context in a prompt, each once."""
    return tuple(dict.fromkeys(_LINE.findall(prompt)))


def shown_text(prompt: str) -> str:
    """Return the lines of a context in a prompt, with the rows of its tables, as one text; empty if there are none."""
    lines = list(_LINE.finditer(prompt))
    if not lines:
        return ""
    end = _END.search(prompt, lines[-1].start())
    return prompt[lines[0].start() : end.start() if end else len(prompt)]


def line_text(prompt: str, id: str) -> str:
    """Return one line of a context in a prompt, with its rows if it is a table; empty if there is none."""
    text = shown_text(prompt)
    starts = {line[1]: line.start() for line in _LINE.finditer(text)}
    if id not in starts:
        return ""
    return text[starts[id] : min((start for start in starts.values() if start > starts[id]), default=len(text))]


class ContextWriter:
    """Writes the evidence of all rounds, and the feedback of the last one.

    Each line begins with a number (`[e3]`; from 1, without gaps) and states its facts once, for any number of sources
    (`pipelines/evidence_lines.py`). First come rows of queries, those of the last round first, then requested paths and
    relations, then the rest by relevance: similarity of the relation and the question, and whether it is about linked
    entities, or about those that stand further up. Irrelevant lines are left out; so are unrequested walks through a
    node by a relation that joins it with many others (`→ gender → Male ← gender ←`).

    A line without room is tried with fewer of its entries, then left out.

    Args:
        store: source of the names and degrees of nodes.
        budget_tokens: largest size of the text. It bounds the work as well: evidence beyond it is not read, so a hub
            costs no more than its part of the text.
        shown: entries written of an unrequested line; the others are counted.
        count_tokens: tokens of a text, by the tokenizer of the model that will read it (`llm/token_count.py`).
        embedder: compares relations with the question; None keeps the order of retrieval, and all of it.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Iterative Process".
    Differs: the paper's context has no budget; one hub would fill any prompt.
    """

    def __init__(
        self,
        store: GraphStore,
        budget_tokens: int = 6000,
        shown: int = 10,
        count_tokens: Callable[[str], int] = estimate_tokens,
        embedder: Embedder | None = None,
    ) -> None:
        at_least(1, "shows nothing", budget_tokens=budget_tokens, shown=shown)
        self._store = store
        self._budget_tokens = budget_tokens
        self._shown = shown
        self._count = count_tokens
        self._embedder = embedder
        self._meaning = lru_cache(1 << 14)(self._encoded)

    def __call__(self, context: Context) -> str:
        """Return the text for the next round: the facts between their tags, and the notes behind them."""
        return self.write_for_round(context).block

    def write(self, context: Context) -> ContextText:
        """Write the evidence that fits."""
        return self._written(context, (), "")

    def write_for_round(self, context: Context, last: bool = False) -> ContextText:
        """Write evidence, linked entities, and the last round's problems, as far as they fit.

        Problems get a quarter of the budget, and so do the entities, which are named if the graph has types for them.
        If a query of the round returned rows, problems are one line; a `last` prompt, after which nothing can be asked,
        has none.
        """
        problems, told = ((), "") if last else self._problems(context)
        return self._written(context, problems, "\n\n".join(part for part in (self._linked(context), told) if part))

    def _problems(self, context: Context) -> tuple[tuple[str, ...], str]:
        """Return the ids of the last round's feedback, as much as fits, and its text."""
        evidence = context.rounds[-1].evidence if context.rounds else ()
        answered = any(isinstance(item, RowsEvidence) and item.rows for item in evidence)
        found: dict[str, str] = {}
        for item in (item for item in evidence if isinstance(item, Feedback)):
            found.setdefault(feedback_text(item), item.id)
        room = self._budget_tokens * _FEEDBACK_SHARE
        if answered:
            subjects = (on_one_line(item.subject, _SUBJECT) for item in evidence if isinstance(item, Feedback))
            named = " | ".join(dict.fromkeys(filter(None, subjects)))
            text = f"{UNFOUND}{named}" if named else ""
            return (tuple(found.values()), text) if text and self._count(text) <= room else ((), "")
        lines, ids = [PROBLEMS], []
        for line, id in found.items():
            if self._count("\n".join(["\n", *lines, f"- {line}"])) <= room:
                lines.append(f"- {line}")
                ids.append(id)
        return tuple(ids), "\n".join(lines) if ids else ""

    def _linked(self, context: Context) -> str:
        """Name the linked entities with their types, namesakes with what distinguishes them, and mentions by other
        names; then the mentions that nothing was found for. Empty if there is nothing of these."""
        taken = _mentions_of_other_names(context)
        every = dict.fromkeys(one.id for earlier in context.rounds for one in earlier.linked.entities)
        ids = [id for id in every if not is_value(id)]
        nodes = self._store.nodes(ids[:_LINKED_SHOWN])
        named = [node for node in nodes if not is_identifier(node.name)]
        apart = disambiguate(named)
        lines = []
        if apart or any(node.type or node.id in taken for node in named):
            of = {node.id: apart.get(node.id, types_text(node)) for node in named}
            said = {id: f", taken for {' and '.join(map(_quoted, mentions))}" for id, mentions in taken.items()}
            text = " | ".join(
                clean(node.name) + (f" ({of[node.id]})" if of[node.id] else "") + said.get(node.id, "")
                for node in named
            )
            more = f" | … (+{len(ids) - _LINKED_SHOWN:,} more)" if len(ids) > _LINKED_SHOWN else ""
            lines.append(f"{LINKED}{text}{more}")
        missing = [_quoted(text) for text in _mentions_without_nodes(context)[:_LINKED_SHOWN]]
        lines += [f"{MISSING}{' | '.join(missing)}"] if missing else []
        text = "\n".join(lines)
        return text if self._count(f"\n\n{text}") <= self._budget_tokens * _FEEDBACK_SHARE else ""

    @cached_property
    def _inverses(self) -> Mapping[str, frozenset[str]]:
        return inverse_relations(self._store)

    def _written(self, context: Context, problems: tuple[str, ...], notes: str) -> ContextText:
        ranked, beyond = self._ranked(context)
        asked = frozenset(item.id for item in ranked if _is_requested(item))
        names = names_of(self._store, ranked, _MOST_ENDS) | self._namesakes(context)
        guessed, likely = _guesses(context, names)
        ranked, named = _beside_reading(self._store, ranked, guessed, names, context.question)
        emphasis = Emphasis((asked - guessed, likely, guessed), _met_twice(context))
        annotated = emphasis.apart[0] | likely
        walks = [item for item in ranked if isinstance(item, PathEvidence) and item.id in annotated]
        events = events_on(self._store, walks, names)
        legs = {node for of in events.values() for _, edges in of for edge in edges for node in (edge.head, edge.tail)}
        names |= node_names(self._store, sorted(legs - names.keys()))
        if events and not any(map(_DATE.match, names.values())):
            notes = "\n\n".join(filter(None, (UNDATED, notes)))
        lines = fold_lines(ranked, names, self._inverses, emphasis, beyond, events, twin_relations(self._store))
        complete = (item for item in ranked if isinstance(item, PathEvidence) and item.id in asked | guessed)
        whole = {item.id: len(item.relations) for item in complete}
        emphasis = replace(emphasis, apart=(emphasis.apart[0], likely & named, guessed))
        ordered = self._ordered(_count_missing(self._store, lines, whole), ranked, emphasis, context)
        count = f"{'at least ' if beyond else ''}{len(ordered):,}"
        cut = f"\n\n({{:,}} of {count} lines of facts fit here)"
        room = self._budget_tokens - self._count(notes)
        kept = self._fitting(ordered, room)
        noticed = len(kept) < len(ordered) and room >= _NOTICED
        if noticed:
            kept = self._fitting(ordered, room - self._count(cut.format(len(ordered))))
        text = self._text(kept, cut.format(len(kept)) if noticed and kept else "")
        # Counted line by line it fits; some tokenizers make more of the whole than of its parts.
        while kept and self._count(text) > room:
            kept.pop()
            text = self._text(kept, cut.format(len(kept)) if noticed and kept else "")
        if self._count(text) > room:
            text = notes = ""
        shown = {id for line, _ in kept for id in line.items}
        return ContextText(
            text,
            self._count(text) + self._count(notes),
            tuple(f"e{number}" for number in range(1, len(kept) + 1)),
            len(beyond) + len({item.id for item in ranked} - shown),
            {f"e{number}": line.items for number, (line, _) in enumerate(kept, start=1)},
            problems,
            notes,
        )

    def _namesakes(self, context: Context) -> dict[EntityId, str]:
        """Return a name of their own for linked entities that share one, so that no line mixes them."""
        ids = dict.fromkeys(one.id for earlier in context.rounds for one in earlier.linked.entities)
        nodes = self._store.nodes([id for id in ids if not is_value(id)][:_LINKED_SHOWN])
        apart = disambiguate(nodes)
        return {node.id: f"{node.name} ({apart[node.id]})" for node in nodes if node.id in apart}

    # Which evidence

    def _ranked(self, context: Context) -> tuple[list[Evidence], list[Evidence]]:
        """Return the evidence that may fit, most important first, and the rest.

        Requested evidence comes first, of the newest round before that of older ones; then retrievers and rounds take
        turns, so that none crowds out the others; edges that only connect a subgraph come last.
        """
        asked: dict[int, list[Evidence]] = defaultdict(list)
        batches: dict[tuple[int, str], list[Evidence]] = defaultdict(list)
        stubs: list[Evidence] = []
        walks = [item for item in context.evidence if isinstance(item, PathEvidence) and not item.asked]
        hubs = _through_hubs(self._store, walks)
        for item in context.evidence:
            if isinstance(item, Feedback) or item.id in hubs:
                continue
            if isinstance(item, RowsEvidence) or (isinstance(item, PathEvidence | TripleEvidence) and item.asked):
                asked[2 * item.round + isinstance(item, RowsEvidence)].append(item)
            elif isinstance(item, TripleEvidence) and item.stub:
                stubs.append(item)
            else:
                batches[-item.round, item.retriever].append(item)
        first = [item for key in sorted(asked, key=_rows_first) for item in asked[key]]
        newest_first = [batches[key] for key in sorted(batches, key=lambda key: key[0])]
        turns = [each for turn in zip_longest(*newest_first) for each in turn if each is not None]
        ranked = [*first, *turns, *stubs]
        room = max(self._budget_tokens // _TOKENS_PER_ITEM, 1)
        return ranked[:room], [*ranked[room:], *(item for item in walks if item.id in hubs)]

    # Which lines

    def _ordered(
        self, lines: Sequence[Line], ranked: Sequence[Evidence], emphasis: Emphasis, context: Context
    ) -> list[tuple[Line, int]]:
        """Return the lines that matter, most important first, and how many of their entries to show."""
        requested, likely, guessed = emphasis.apart
        by_id = {item.id: item for item in ranked}
        edges = {item.id for item in ranked if isinstance(item, TripleEvidence)}
        written = [line for line in lines if line.rows and by_id[line.items[0]].retriever != READ]
        answered = any(line.entries for line in written)
        lines = [
            line for line in _without_repeated_rows(lines, written) if not (answered and line.rows) or line in written
        ]
        asked = [line for line in lines if not requested.isdisjoint(line.items)]
        walks = [line for line in lines if requested.isdisjoint(line.items) and not guessed.isdisjoint(line.items)]
        known = {one.id for earlier in context.rounds for one in earlier.linked.entities}
        met = {one.id for earlier in context.rounds for one in earlier.linked.drafts}
        met |= {node for line in (*asked, *walks) for node in line.nodes}
        met |= {cell.id for line in asked if line.rows for id in line.items for cell in _node_cells(by_id[id])}
        rest = [line for line in lines if requested.isdisjoint(line.items) and guessed.isdisjoint(line.items)]
        walked = [line for line in rest if not edges.isdisjoint(line.items)]
        reached = known | met
        while touched := [line for line in walked if not reached.isdisjoint(line.nodes)]:
            walked = [line for line in walked if reached.isdisjoint(line.nodes)]
            reached.update(*(line.nodes for line in touched))
        met = reached - known
        scores = self._scores(rest, known, met, context.question)
        order = sorted(range(len(rest)), key=lambda at: -scores[at])
        least = max(scores, default=0.0) - _WITHIN
        unasked = [*walks, *(rest[at] for at in order if scores[at] >= least)]
        unasked.sort(
            key=lambda line: (line.nodes.isdisjoint(emphasis.first), line.chain and likely.isdisjoint(line.items))
        )
        nearest = self._nearest(walks, context.question)
        about: Counter[EntityId | None] = Counter()
        kept = []
        chains = 0
        for line in unasked:
            if line.chain and likely.isdisjoint(line.items):
                chains += 1
                if chains > _CHAINS:
                    continue
            about[line.source] += line.source is not None and guessed.isdisjoint(line.items)
            if about[line.source] <= _LINES_OF_ONE:
                whole = not likely.isdisjoint(line.items) or (line.said == nearest and not line.chain)
                few = self._shown if len(line.entries) + line.more <= _LONG else min(_OF_LONG, self._shown)
                most = _LIKELY_SHOWN if whole and not answered else few
                kept.append((line, most if len(line.entries) > most * _FEW_MORE else len(line.entries)))
        return [*((line, len(line.entries)) for line in asked), *kept]

    def _nearest(self, walks: Sequence[Line], question: str) -> str:
        """Return the words of the relation most similar to the question, of lines that leave no nodes out."""
        alike = self._scores(walks, set(), set(), question)
        steps = [(fit, line.said) for fit, line in zip(alike, walks, strict=True) if not line.chain]
        return max(steps, key=lambda one: one[0], default=(0.0, ""))[1]

    def _scores(self, lines: Sequence[Line], known: set[EntityId], met: set[EntityId], question: str) -> list[float]:
        """Return how much each line has to do with the question."""
        if self._embedder is None or not question.strip() or not lines:
            return [0.0] * len(lines)
        asked = exact(self._embedder.encode([question])[0])
        meant = (np.stack([self._meaning(line.said) for line in lines]) @ asked).tolist()
        scores = []
        for line, likeness in zip(lines, meant, strict=True):
            about, above = not known.isdisjoint(line.nodes), not met.isdisjoint(line.nodes)
            near = _LINKED if about else _MET if above else -_MET if known else _MET
            scores.append(near + likeness if line.said else near)
        return scores

    def _encoded(self, words: str) -> npt.NDArray[np.float64]:
        assert self._embedder is not None
        return exact(self._embedder.encode([words])[0])

    def _fitting(self, lines: Sequence[tuple[Line, int]], room: int) -> list[tuple[Line, str]]:
        """Return the lines that have room, with their numbers."""
        kept: list[tuple[Line, str]] = []
        misses = 0
        for line, shown in lines:
            for text in _shorter_and_shorter(line, shown):
                numbered = f"[e{len(kept) + 1}] {text}"
                tokens = self._count(f"{numbered}\n")
                if tokens <= room:
                    kept.append((line, numbered))
                    room -= tokens
                    misses = 0
                    break
            else:
                misses += 1
                if misses == _MISSES:
                    break
        return kept

    @staticmethod
    def _text(kept: Sequence[tuple[Line, str]], told: str) -> str:
        return ("\n".join(text for _, text in kept) or NOTHING) + told


def _edge_counts(store: GraphStore, nodes: Sequence[EntityId]) -> Counter[tuple[EntityId, str, bool]]:
    """Count the edges of nodes by relation, and whether it is walked against its direction."""
    edges: Counter[tuple[EntityId, str, bool]] = Counter()
    counts, labels = store.relation_counts(store.numbers(nodes)), store.relations
    columns = (counts.origin, counts.relation, counts.inverse, counts.count)
    for origin, relation, inverse, count in zip(*(column.tolist() for column in columns), strict=True):
        edges[nodes[origin], labels[relation], inverse] += count
    return edges


def _through_hubs(store: GraphStore, items: Sequence[PathEvidence]) -> set[str]:
    """Return the items whose walks all go through a node by a relation that joins it with many others."""
    passed = sorted({node for item in items for path in item.paths for node in path.nodes[1:-1]})
    if not passed:
        return set()
    edges = _edge_counts(store, passed)

    def through(path: Path) -> bool:
        steps = list(zip(path.triples, path.inverse, path.nodes[1:], strict=True))
        into = ((node, triple.relation, not inverse) for triple, inverse, node in steps[:-1])
        out = ((path.nodes[at], triple.relation, inverse) for at, (triple, inverse, _) in enumerate(steps) if at)
        return any(edges[each] > _HUB for each in (*into, *out))

    return {item.id for item in items if item.paths and all(map(through, item.paths))}


def _count_missing(store: GraphStore, lines: Sequence[Line], whole: Mapping[str, int]) -> list[Line]:
    """Return lines with the number of edges that those lack which were put together from single facts.

    `whole` has the ids of evidence that holds all ends of its paths, with the edges of these.
    """
    partial = [line for line in lines if line.source and len(line.entries) > 1 and not (line.more or line.chain)]
    partial = [line for line in partial if all(whole.get(id) != len(line.steps) for id in line.items)]
    nodes = list(dict.fromkeys(line.source for line in partial if line.source and not is_value(line.source)))
    if not nodes:
        return list(lines)
    edges, incomplete = _edge_counts(store, nodes), set(map(id, partial))

    def counted(line: Line) -> Line:
        if id(line) not in incomplete or line.source is None:
            return line
        first = line.steps[0]
        ways = {first.inverse, first.inverse ^ first.undirected}
        every = sum(edges[line.source, first.relation, way] for way in ways)
        return replace(line, more=max(line.more, every - len(line.entries)))

    return [counted(line) for line in lines]


def _shorter_and_shorter(line: Line, shown: int) -> Iterator[str]:
    """Yield a line with so many of its entries, then with half of them, down to one."""
    shown = min(shown, len(line.entries))
    while True:
        yield line.text(shown)
        shown //= 2
        if not shown:
            return


def _rows_first(key: int) -> tuple[bool, int]:
    """Sort rows before paths, and newer rounds before older ones."""
    return (key % 2 == 0, -key)


def _without_repeated_rows(lines: Sequence[Line], tables: Sequence[Line]) -> list[Line]:
    """Leave out walks all of whose ends stand in the rows of a query."""
    values = {value.strip() for line in tables for row in line.entries for value in row.split(" | ")}
    return [line for line in lines if line.rows or not line.entries or not values.issuperset(line.entries)]


def _guesses(context: Context, names: Mapping[EntityId, str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the ids of walks that were proposed without a language model, and those of them that are likely."""
    rounds = {at for at, earlier in enumerate(context.rounds) if any(path.directed for path in earlier.artifacts.paths)}
    walks = [item for item in context.evidence if isinstance(item, PathEvidence) and item.round in rounds]
    named = (item for item in walks if item.ends[0] in names and not is_identifier(names[item.ends[0]]))
    best = max((item.score for item in named), default=0.0)
    return frozenset(item.id for item in walks), frozenset(item.id for item in walks if item.score >= best - _LIKELY)


def _met_twice(context: Context) -> frozenset[EntityId]:
    """Return the nodes to which the entities of two mentions lead."""
    mention = {one.id: one.mention for earlier in context.rounds for one in earlier.linked.entities}
    reached: dict[Mention, set[EntityId]] = defaultdict(set)
    if len(set(mention.values())) < 2:
        return frozenset()
    for item in context.evidence:
        if isinstance(item, PathEvidence) and item.source in mention:
            reached[mention[item.source]].update(item.ends)
        elif isinstance(item, TripleEvidence):
            for one, other in ((item.triple.head, item.triple.tail), (item.triple.tail, item.triple.head)):
                if one in mention:
                    reached[mention[one]].add(other)
    seen: set[EntityId] = set()
    twice: set[EntityId] = set()
    for nodes in reached.values():
        twice |= seen & nodes
        seen |= nodes
    return frozenset(twice - mention.keys())


def _mentions_of_other_names(context: Context) -> dict[EntityId, list[str]]:
    """Return for linked entities the mentions that they were taken for, unless one of these is their name."""
    taken: dict[EntityId, dict[str, bool]] = defaultdict(dict)
    for one in (one for earlier in context.rounds for one in earlier.linked.entities):
        equal = {normalize_name(one.name), one.id}.intersection(
            text for name in one.mention.text.split(ALIAS) for text in (normalize_name(name), name)
        )
        taken[one.id][one.mention.text] = bool(equal)
    return {id: list(mentions) for id, mentions in taken.items() if not any(mentions.values())}


def _mentions_without_nodes(context: Context) -> list[str]:
    """Return the mentions that were linked to no node, value or literal in any round."""
    linked = {
        one.mention
        for earlier in context.rounds
        for of in (earlier.linked.entities, earlier.linked.literals, earlier.linked.values)
        for one in of
    }
    mentions = (one for earlier in context.rounds for one in earlier.artifacts.mentions if one not in linked)
    return list(dict.fromkeys(one.text for one in mentions))


def _quoted(text: str) -> str:
    return f'"{on_one_line(text, _SUBJECT)}"'


def _is_requested(item: Evidence) -> bool:
    if isinstance(item, PathEvidence | TripleEvidence):
        return item.asked
    return isinstance(item, RowsEvidence | NodeEvidence)


def _beside_reading(
    store: GraphStore, items: list[Evidence], guessed: frozenset[str], names: Mapping[EntityId, str], question: str
) -> tuple[list[Evidence], frozenset[str]]:
    """Return what stands beside the rows of a query that no model wrote, and the ids of guessed walks that matter most.

    These are the likeliest walk, those whose relations all share a word with the question, and those that turn back
    nowhere and end at a type in it. Other walks over several nodes with names are left out, unless they have one end,
    and so are properties of edges without a word in the question, but for times. Without such rows, all evidence stays,
    and all walks matter.
    """
    if not any(isinstance(item, RowsEvidence) and item.retriever == READ and item.rows for item in items):
        return items, guessed
    asked = [word for word in normalize_name(question).split() if word not in FUNCTION_WORDS]
    walks = [item for item in items if isinstance(item, PathEvidence) and item.id in guessed]
    best = max((item.score for item in walks), default=0.0)
    ends = store.nodes([item.ends[0] for item in walks])
    pairs = zip(walks, ends, strict=True)
    named = frozenset(item.id for item, end in pairs if item.score == best or _is_named(item, end, asked))
    kept: list[Evidence] = []
    for item in items:
        if not isinstance(item, PathEvidence) or item.id not in guessed:
            kept.append(item)
        elif item.id in named or len(item.ends) == 1 or not _passes_names(item, names):
            kept.append(replace(item, paths=tuple(_without_properties(path, asked) for path in item.paths)))
    return kept, named


def _passes_names(walk: PathEvidence, names: Mapping[EntityId, str]) -> bool:
    """True if a walk leads over nodes with names, or its nodes in between are unknown."""
    between = [names[node] for path in walk.paths for node in path.nodes[1:-1]]
    return len(walk.relations) > 1 and not (between and all(map(is_identifier, between)))


def _is_named(walk: PathEvidence, end: Node, asked: Sequence[str]) -> bool:
    """True if a question with some words has those of a walk's relations, or of the type of its end."""
    relations = [step.removeprefix(INVERSE) for step in walk.relations]
    if all(_has_word(relation, asked) for relation in relations):
        return True
    turns = any(one == other for one, other in pairwise(relations))
    nouns = set(map(singular, asked))
    return not turns and any(nouns.issuperset(map(singular, normalize_label(type_).split())) for type_ in end.types)


def _has_word(label: str, asked: Sequence[str]) -> bool:
    """True if a word of a label is one of a question's, but for endings."""
    told = (word for word in normalize_label(label).split() if word not in FUNCTION_WORDS)
    return any(related(word, other) for word in told for other in asked)


def _without_properties(path: Path, asked: Sequence[str]) -> Path:
    """Return a walk with the times of its edges, and those of their properties that a question names."""
    kept = (
        {key: value for key, value in triple.properties.items() if key in TIMES or _has_word(key, asked)}
        for triple in path.triples
    )
    named = (replace(triple, properties=held) for triple, held in zip(path.triples, kept, strict=True))
    return replace(path, triples=tuple(named))


def _node_cells(item: Evidence) -> Iterator[NodeCell]:
    for row in item.rows if isinstance(item, RowsEvidence) else ():
        yield from (cell for cell in row if isinstance(cell, NodeCell))


_ENDS_FIRST = 100
"""Ends of a metapath that are looked at before all of them are: answers are mostly among those that were shown."""

_LONGEST_VALUE = 40
"""Characters of the longest text that is read as a date or a number."""

_Content = tuple[str | None, EntityId | None]
"""A text, the node it names, or both; a node without its text is called by its name in the store."""


class CitationChecker:
    """Finds the evidence that holds an answer, by name or by value.

    A node holds its name; properties of nodes and edges and the cells of a query's rows hold their values. Names are
    compared folded (`normalize_name`), dates and numbers by their values: `1990-05-12` holds `12 May 1990` and
    `1990`, but not the other way round.

    Args:
        store: source of the names of nodes.
        evidence: numbered items that the answers may rest on.
    """

    def __init__(self, store: GraphStore, evidence: Sequence[Evidence]) -> None:
        self._store = store
        self._evidence = tuple(evidence)
        self._holders: dict[str, dict[str, EntityId | None]] = defaultdict(dict)
        self._texts: dict[str, None] = {}
        self._index_contents(_ENDS_FIRST)
        self._complete = not any(
            isinstance(item, PathEvidence) and len(item.ends) > _ENDS_FIRST for item in self._evidence
        )

    def of(self, answer: str) -> Mapping[str, EntityId | None]:
        """Return the ids of the items that hold an answer, in the order of the evidence, and the node it is in each."""
        held = self._held(answer)
        if not held and not self._complete:
            self._index_contents(None)
            self._complete = True
            held = self._held(answer)
        return held

    def origin(self, answer: str) -> tuple[str, EntityId | None]:
        """Return the property of which an answer is a value in a query's row, and the node that it identifies, if any.

        `10307` in a column `o.orderID` is of `Order.orderID`, and identifies `Order 10307`. Empty if unknown.
        """
        from byokg.graph.display_names import key_properties
        from byokg.graph.value_indexes import nodes_holding

        store = without_values(self._store)
        for values, types, key in self._columns:
            if answer in values:
                keys = key_properties(store)
                named = [type_ for type_ in types or keys if keys.get(type_) == key]
                nodes = nodes_holding(store, named[0], key, answer, 2) if named else ()
                property = f"{'|'.join(types)}.{key}" if types else key
                return property, store.ids(np.array(nodes))[0] if len(nodes) == 1 else None
        return "", None

    @cached_property
    def _columns(self) -> list[tuple[frozenset[str], tuple[str, ...], str]]:
        """The values of each column of a query's rows that holds a property, with the types and the property."""
        from byokg.graph.guard.literals import returned_properties  # which answers without queries do not need

        found = []
        known = self._store.schema().node_properties
        for item in self._evidence:
            if isinstance(item, RowsEvidence) and item.language == "cypher":
                with suppress(QueryRefused):
                    for place, (types, key) in enumerate(returned_properties(item.query)):
                        if any(key in known.get(type_, ()) for type_ in types or known):  # a node's name is none
                            found.append((frozenset(str(row[place]) for row in item.rows), types, key))
        return found

    @cached_property
    def names(self) -> ShownNames:
        """The names and values in the evidence, as it spells them."""
        return ShownNames(self._texts)

    def _held(self, answer: str) -> Mapping[str, EntityId | None]:
        for key in _meanings(answer)[:2]:  # the name, and its value; not the less precise values
            if key in self._holders:
                return self._holders[key]
        return {}

    def _index_contents(self, ends: int | None) -> None:
        """Index the contents of evidence, of a metapath for so many of its ends."""
        said = {item.id: list(_list_contents(item, ends)) for item in self._evidence}
        nodes = dict.fromkeys(id for each in said.values() for text, id in each if text is None and id is not None)
        names = {node.id: node.name for node in self._store.nodes(list(nodes))}
        keys: dict[str, tuple[str, ...]] = {}
        for item, each in said.items():
            for text, id in each:
                name = text if text is not None else names[id] if id is not None else ""
                if name not in keys:
                    keys[name] = _meanings(name)
                    self._texts.setdefault(name)
                for key in keys[name]:
                    self._holders[key].setdefault(item, id)


def _meanings(text: str) -> tuple[str, ...]:
    """Return the keys of a text: its folded words, and of a date or number its value, precisest first."""
    folded = normalize_name(text)
    if len(text) > _LONGEST_VALUE or not any("0" <= character <= "9" for character in text):
        return (folded,)
    read = read_literal(text)
    if read is None or read.kind in ("id", "decade"):
        return (folded,)
    if read.kind == "date":
        parts = str(read.value).split("-")
        return (folded, *(f"= {'-'.join(parts[:count])}" for count in range(len(parts), 0, -1)))
    return folded, f"= {read.value:g}" if isinstance(read.value, float) else f"= {read.value}"


def _list_contents(item: Evidence, ends: int | None) -> Iterator[_Content]:
    """Yield the contents of an item: its subject before intermediate nodes."""
    if isinstance(item, PathEvidence):
        yield from ((None, end) for end in item.ends[:ends])
        for path in item.paths:
            yield from ((None, node) for node in path.nodes)
            for triple in path.triples:
                yield from _list_properties(triple.properties)
    elif isinstance(item, TripleEvidence):
        yield None, item.triple.tail
        yield None, item.triple.head
        yield from _list_properties(item.triple.properties)
    elif isinstance(item, NodeEvidence):
        yield item.node.name, item.node.id
        yield from _list_properties(item.node.properties)
    elif isinstance(item, RowsEvidence):
        for row in item.rows:
            for cell in row:
                yield from _of_cell(cell)


def _list_properties(properties: Properties) -> Iterator[_Content]:
    for value in properties.values():
        yield from _of_cell(value)


def _of_cell(cell: Cell) -> Iterator[_Content]:
    if isinstance(cell, NodeCell):
        yield cell.name, cell.id
        yield from _list_properties(cell.properties)
    elif isinstance(cell, EdgeCell):
        yield None, cell.head
        yield None, cell.tail
        yield from _list_properties(cell.properties)
    elif isinstance(cell, PathCell):
        for node in cell.nodes:
            yield from _of_cell(node)
        for edge in cell.edges:
            yield from _of_cell(edge)
    elif isinstance(cell, bool):
        yield ("true" if cell else "false"), None
    elif isinstance(cell, str | int | float):
        yield str(cell), None
    elif cell is not None:
        for value in cell.values() if isinstance(cell, Mapping) else cell:
            yield from _of_cell(value)
