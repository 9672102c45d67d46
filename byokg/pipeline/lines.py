"""Lines of a context: what is said once for all the evidence that says it, and what it says differently."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from byokg.index.identifiers import is_identifier
from byokg.retrieval.verbalize import clean, folded, more_rows, node_text, query_text, row_text
from byokg.types import EntityId, Evidence, NodeEvidence, RowsEvidence


@dataclass(frozen=True)
class Line:
    """A line of the context: what its entries share, and the entries.

    `later` says that it comes after everything else: it shows how the graph hangs together, or leads nowhere.
    """

    items: tuple[str, ...]
    """Ids of the evidence that it stands for, in the order in which they came; the first is the line's own."""
    head: str
    entries: tuple[str, ...] = ()
    more: int = 0
    """Entries beyond those here."""
    rows: bool = False
    """Whether each entry is a line of its own."""
    truncated: bool = False
    """Whether rows were cut off before they came here."""
    later: bool = False

    def text(self, shown: int) -> str:
        """Write the line with so many of its entries at most."""
        entries = self.entries[:shown]
        more = self.more + len(self.entries) - len(entries)
        if self.rows:
            return "\n".join([self.head, *entries, *more_rows(more, self.truncated)])
        return f"{self.head}{folded(entries, more)}"


def node_lines(evidence: Iterable[Evidence], shown: int) -> list[Line]:
    """Return a line for each node with properties, and one for all others of a type; nothing else is news."""
    said: dict[str, dict[str, None]] = defaultdict(dict)
    typed: dict[str, dict[str, None]] = defaultdict(dict)
    items_of: dict[str, dict[str, None]] = defaultdict(dict)
    for item in evidence:
        if not isinstance(item, NodeEvidence):
            continue
        node = item.node
        if node.properties:
            said[node_text(node)][item.id] = None
        elif node.type and not is_identifier(node.name):
            typed[clean(node.type)][clean(node.name)] = None
            items_of[clean(node.type)][item.id] = None
    lines = [Line(tuple(items), text) for text, items in said.items()]
    for type_, found in typed.items():
        entries = tuple(found)[:shown]
        lines.append(Line(tuple(items_of[type_]), f"({type_}) ", entries, len(found) - len(entries)))
    return lines


def row_lines(evidence: Iterable[Evidence], names: Mapping[EntityId, str], shown: int) -> list[Line]:
    """Return the table of each query, once each however often it ran."""
    tables: dict[str, dict[str, None]] = defaultdict(dict)
    first: dict[str, RowsEvidence] = {}
    for item in evidence:
        if isinstance(item, RowsEvidence):
            head = query_text(item)
            tables[head][item.id] = None
            first.setdefault(head, item)
    return [
        Line(
            tuple(items),
            head,
            tuple(row_text(row, names) for row in first[head].rows[:shown]),
            max(len(first[head].rows) - shown, 0),
            rows=True,
            truncated=first[head].truncated,
        )
        for head, items in tables.items()
    ]
