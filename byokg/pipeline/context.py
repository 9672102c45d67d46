"""What was gathered, as text for a prompt: lines that can be cited, within a budget of tokens.

Also which evidence holds an answer: what makes an answer grounded, and a citation right.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from byokg.errors import at_least
from byokg.graph.store import GraphStore
from byokg.pipeline.evidence_lines import REACH, Line, fold_lines
from byokg.retrieval.verbalize import feedback_text, names_of
from byokg.text import estimate_tokens, normalize_name, read_literal
from byokg.types import (
    Cell,
    Context,
    EdgeCell,
    EntityId,
    Evidence,
    Feedback,
    NodeCell,
    NodeEvidence,
    PathCell,
    PathEvidence,
    Properties,
    RowsEvidence,
    TripleEvidence,
)

NOTHING = "(nothing was found)"

PROBLEMS = "Problems in the last round:"

_FEEDBACK_SHARE = 0.25
"""Part of the budget that the problems of the last round may take."""

_TOKENS_PER_ITEM = 4
"""About what the shortest item takes; so many more items than that have room are not even looked at."""

_MISSES = 20
"""Lines in a row without room, after which the text is taken to be full."""


_LINE = re.compile(r"^\[(e\d+)\] ", re.MULTILINE)
"""How a line begins. No name begins so in a line of its own: names keep no line ends."""


@dataclass(frozen=True)
class ContextText:
    """What is shown of a context."""

    text: str
    tokens: int
    """As counted by the function that was given; never more than the budget."""
    shown: tuple[str, ...]
    """Ids of the lines, in the order of the text; a line has the id of the first evidence item in it."""
    left_out: int
    """Evidence items that stand in no line, for want of room."""
    items: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By the id of a line, the evidence items that it stands for: what citing it means."""
    problems: tuple[str, ...] = ()
    """Ids of the feedback shown."""


def shown_lines(prompt: str) -> tuple[str, ...]:
    """Return the ids of the lines of a context in a prompt, each once."""
    return tuple(dict.fromkeys(_LINE.findall(prompt)))


def shown_text(prompt: str) -> str:
    """Return the lines of a context in a prompt, with the rows of its tables, as one text; empty where it has none."""
    lines = list(_LINE.finditer(prompt))
    if not lines:
        return ""
    end = prompt.find("\n\n", lines[-1].start())
    return prompt[lines[0].start() : end if end >= 0 else len(prompt)]


class ContextWriter:
    """Writes the evidence of all rounds, and what went wrong in the last one.

    Each line begins with an id (`[e3]`) and says a fact once, whoever found it and how often (`pipeline/folding.py`).

    Where not everything fits, retrievers and rounds take turns: the best item of each retriever comes first, the newest
    round before older ones, then the second of each, and so on, so none crowds out the others. Edges that only show how
    a subgraph hangs together come after all that. A line without room is tried with fewer of its entries, then left
    out. The text is in the order in which the evidence came.

    Args:
        store: gives the names of nodes.
        budget_tokens: what the text may take. The work is bounded by it as well: of evidence beyond what could have
            room nothing is read, so a hub costs no more than its part of the text.
        shown: entries of a line written out (ends of a path, rows of a query); the others are counted.
        count_tokens: tokens of a text, by the tokenizer of the model that will read it (`llm/token_count.py`).

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Iterative Process".
    Differs: the paper's context has no budget; one hub would fill any prompt.
    """

    def __init__(
        self,
        store: GraphStore,
        budget_tokens: int = 6000,
        shown: int = 20,
        count_tokens: Callable[[str], int] = estimate_tokens,
    ) -> None:
        at_least(1, "shows nothing", budget_tokens=budget_tokens, shown=shown)
        self._store = store
        self._budget_tokens = budget_tokens
        self._shown = shown
        self._count = count_tokens

    def __call__(self, context: Context) -> str:
        """Return the text for the next round: the evidence, and the problems of the last round after it."""
        return self.write_for_round(context).text

    def write(self, context: Context) -> ContextText:
        """Write the evidence that fits."""
        return self._written(context, (), "")

    def write_for_round(self, context: Context) -> ContextText:
        """Write what fits of the evidence, and of the last round's problems, which get a quarter of the budget."""
        problems: list[str] = []
        lines = [PROBLEMS]
        last = context.rounds[-1].evidence if context.rounds else ()
        said: set[str] = set()
        for item in last:
            if isinstance(item, Feedback) and (line := f"- {feedback_text(item)}") not in said:
                said.add(line)
                if self._count("\n".join(["\n", *lines, line])) <= self._budget_tokens * _FEEDBACK_SHARE:
                    lines.append(line)
                    problems.append(item.id)
        return self._written(context, tuple(problems), "\n".join(["\n", *lines]) if problems else "")

    def _written(self, context: Context, problems: tuple[str, ...], told: str) -> ContextText:
        ranked, beyond = self._ranked(context)
        rank = {item.id: place for place, (_, item) in enumerate(ranked)}
        arrived = [item for _, item in sorted(ranked, key=lambda each: each[0])]
        names = names_of(self._store, arrived, REACH * self._shown)
        lines = fold_lines(arrived, names, self._shown, beyond)
        kept = self._fitting(lines, rank, self._budget_tokens - self._count(told))
        text = self._text(kept, told)
        # Counted line by line it fits; some tokenizers make more of the whole than of its parts.
        while kept and self._count(text) > self._budget_tokens:
            kept.popitem()
            text = self._text(kept, told)
        if self._count(text) > self._budget_tokens:
            text = ""
        items: dict[str, dict[str, None]] = defaultdict(dict)
        for place in sorted(kept):
            items[lines[place].items[0]] |= dict.fromkeys(lines[place].items)
        said = {id for line in lines for id in line.items}
        shown = {id for each in items.values() for id in each}
        return ContextText(
            text,
            self._count(text),
            tuple(items),
            len(said - shown) + sum(item.id not in said for item in beyond),
            {id: tuple(each) for id, each in items.items()},
            problems,
        )

    def _ranked(self, context: Context) -> tuple[list[tuple[int, Evidence]], list[Evidence]]:
        """Return the evidence that may have room with its place, most important first, and the rest."""
        batches: dict[tuple[int, str], list[tuple[int, Evidence]]] = defaultdict(list)
        stubs: list[tuple[int, Evidence]] = []
        for place, item in enumerate(context.evidence):
            if isinstance(item, Feedback):
                continue
            if isinstance(item, TripleEvidence) and item.stub:
                stubs.append((place, item))
            else:
                batches[-item.round, item.retriever].append((place, item))
        newest_first = [batches[key] for key in sorted(batches, key=lambda key: key[0])]
        turns = (each for turn in zip_longest(*newest_first) for each in turn if each is not None)
        ranked = [*turns, *stubs]
        room = max(self._budget_tokens // _TOKENS_PER_ITEM, 1)
        return ranked[:room], [item for _, item in ranked[room:]]

    def _fitting(self, lines: Sequence[Line], rank: Mapping[str, int], room: int) -> dict[int, str]:
        """Return the lines that have room by their place, most important first."""
        kept: dict[int, str] = {}
        misses = 0
        for place in sorted(
            range(len(lines)),
            key=lambda place: (lines[place].later, min(rank.get(id, len(rank)) for id in lines[place].items)),
        ):
            for text in self._shorter_and_shorter(lines[place]):
                tokens = self._count(f"{text}\n")
                if tokens <= room:
                    kept[place] = text
                    room -= tokens
                    misses = 0
                    break
            else:
                misses += 1
                if misses == _MISSES:
                    break
        return kept

    def _shorter_and_shorter(self, line: Line) -> Iterator[str]:
        """Yield a line with all entries that may be shown, then with half of them, down to one."""
        shown = min(self._shown, len(line.entries))
        while True:
            yield f"[{line.items[0]}] {line.text(shown)}"
            shown //= 2
            if not shown:
                return

    @staticmethod
    def _text(kept: Mapping[int, str], told: str) -> str:
        return ("\n".join(kept[place] for place in sorted(kept)) or NOTHING) + told


_ENDS_FIRST = 100
"""Ends of a metapath that are looked at before all of them are: answers are mostly among those that were shown."""

_LONGEST_VALUE = 40
"""Characters of the longest text that is read as a date or a number."""

_Said = tuple[str | None, EntityId | None]
"""A text, the node it names, or both; a node without its text is called by its name in the store."""


class Grounds:
    """Finds the evidence that holds an answer, by name or by value.

    A node holds its name; properties of nodes and edges and the cells of a query's rows hold their values. Names are
    compared folded (`normalize_name`), dates and numbers by what they mean: `12 May 1990` is held by `1990-05-12`, and
    so is `1990`, but not the other way round.

    Args:
        store: gives the names of nodes.
        evidence: numbered items, those that the answers may rest on.
    """

    def __init__(self, store: GraphStore, evidence: Sequence[Evidence]) -> None:
        self._store = store
        self._evidence = tuple(evidence)
        self._holders: dict[str, dict[str, EntityId | None]] = defaultdict(dict)
        self._read(_ENDS_FIRST)
        self._complete = not any(
            isinstance(item, PathEvidence) and len(item.ends) > _ENDS_FIRST for item in self._evidence
        )

    def of(self, answer: str) -> Mapping[str, EntityId | None]:
        """Return the ids of the items that hold an answer, in the order of the evidence, and the node it is in each."""
        held = self._held(answer)
        if not held and not self._complete:
            self._read(None)
            self._complete = True
            held = self._held(answer)
        return held

    def _held(self, answer: str) -> Mapping[str, EntityId | None]:
        for key in _meanings(answer)[:2]:  # the name, and what it means as a value; not what it is more precise than
            if key in self._holders:
                return self._holders[key]
        return {}

    def _read(self, ends: int | None) -> None:
        """Fill in what holds what, of a metapath for so many of its ends."""
        said = {item.id: list(dict.fromkeys(_said(item, ends))) for item in self._evidence}
        nodes = dict.fromkeys(id for each in said.values() for text, id in each if text is None and id is not None)
        names = {node.id: node.name for node in self._store.nodes(list(nodes))}
        keys: dict[str, tuple[str, ...]] = {}
        for item, each in said.items():
            for text, id in each:
                name = text if text is not None else names[id] if id is not None else ""
                if name not in keys:
                    keys[name] = _meanings(name)
                for key in keys[name]:
                    self._holders[key].setdefault(item, id)


def _meanings(text: str) -> tuple[str, ...]:
    """Return what a text is compared by: its folded words, and of a date or number its value, precisest first."""
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


def _said(item: Evidence, ends: int | None) -> Iterator[_Said]:
    """Yield what an item holds: what it is about before what it passes."""
    if isinstance(item, PathEvidence):
        yield from ((None, end) for end in item.ends[:ends])
        for path in item.paths:
            yield from ((None, node) for node in path.nodes)
            for triple in path.triples:
                yield from _values(triple.properties)
    elif isinstance(item, TripleEvidence):
        yield None, item.triple.tail
        yield None, item.triple.head
        yield from _values(item.triple.properties)
    elif isinstance(item, NodeEvidence):
        yield item.node.name, item.node.id
        yield from _values(item.node.properties)
    elif isinstance(item, RowsEvidence):
        for row in item.rows:
            for cell in row:
                yield from _of_cell(cell)


def _values(properties: Properties) -> Iterator[_Said]:
    for value in properties.values():
        yield from _of_cell(value)


def _of_cell(cell: Cell) -> Iterator[_Said]:
    if isinstance(cell, NodeCell):
        yield cell.name, cell.id
        yield from _values(cell.properties)
    elif isinstance(cell, EdgeCell):
        yield None, cell.head
        yield None, cell.tail
        yield from _values(cell.properties)
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
