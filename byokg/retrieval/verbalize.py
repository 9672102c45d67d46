"""Evidence as text that a person and a model read alike.

    Heat → directed_by → Michael Mann                          a walk along an edge
    Drama ← has_genre ← Titanic                                against it
    Heat → starred_actors → Al Pacino | Val Kilmer | … (+9 more)     ends that share the rest
    Ann → people.person.spouse_s / people.marriage.spouse → Bob      through a node without a name
    Per Kleppe ← position held [1973 – 1979] ← Minister of Finance   with the edge's properties

Between ` / ` stands a mediator: a node whose only name is an identifier (`index/identifiers.py`), such as a
marriage or a term of office in Freebase. The arrows beside the shown nodes give the direction of the stored edges; if
a step has mediators on both sides, `^` marks one that is walked against its edge. Names that hold such marks are put
in double quotes, and line ends in them become spaces, so a line can be read in one way only.

Source: ByoKG-RAG (arXiv:2507.04127v1), "Triplet Retrieval", Table 9.
Differs: a start and an end are one span, `relation [2001 – 2005]`, the paper writes `relation: timestamp` and
`relation (2001 - 2005)`; all other properties of an edge follow as `key: value`. Mediators are left out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from byokg.graph.property_view import node_names
from byokg.graph.store import GraphStore
from byokg.text.names import is_identifier, normalize_name, on_one_line
from byokg.types import (
    INVERSE,
    Cell,
    ComputedEvidence,
    EdgeCell,
    EntityId,
    Evidence,
    Feedback,
    Node,
    NodeCell,
    NodeEvidence,
    Path,
    PathCell,
    PathEvidence,
    Properties,
    RowsEvidence,
    Triple,
    TripleEvidence,
    Value,
)

UNNAMED = "(unnamed)"
"""A mediator with unknown neighbours."""

NOTHING: Mapping[EntityId, str] = {}
"""Descriptions of nameless nodes, if none are known."""

_MARKS = re.compile(r" [|/—] |[→←…]|; |^\[e\d")


class Hop(NamedTuple):
    """One step of a walk, as text shows it."""

    relation: str
    inverse: bool = False
    note: str = ""
    """Properties of the edge; see `note`."""
    undirected: bool = False
    """True if it has no direction; then `inverse` is false."""

    @classmethod
    def of(cls, step: str, properties: Properties | None = None) -> Hop:
        """Return the hop of one step of a metapath, and the properties of the edge if they are known."""
        return cls(step.removeprefix(INVERSE), step.startswith(INVERSE), note(properties or {}))

    @classmethod
    def along(cls, triple: Triple, inverse: bool = False, said: str = "") -> Hop:
        """Return the hop over an edge, which is walked from its tail if `inverse`; `said` is its note."""
        return cls(triple.relation, inverse and not triple.undirected, said, triple.undirected)

    @classmethod
    def all_of(cls, item: PathEvidence) -> list[Hop]:
        """Return the hops of a metapath; those are undirected that are so in each walk along it that is known."""
        hops = [cls.of(step) for step in item.relations]
        walks = [path.triples for path in item.paths if len(path.triples) == len(hops)]
        either = [bool(walks) and all(walk[at].undirected for walk in walks) for at in range(len(hops))]
        return [cls(hop.relation, undirected=True) if flag else hop for hop, flag in zip(hops, either, strict=True)]

    @property
    def turned(self) -> Hop:
        """Return the same step from its other end, without its note."""
        return Hop(self.relation, not (self.inverse or self.undirected), undirected=self.undirected)

    @property
    def label(self) -> str:
        """Return the relation, with the edge's properties in brackets."""
        return f"{on_one_line(self.relation)} [{self.note}]" if self.note else on_one_line(self.relation)

    @property
    def arrow(self) -> str:
        """Return the head of the arrow; a line without one for an undirected edge."""
        return "—" if self.undirected else "←" if self.inverse else "→"


def names_of(store: GraphStore, evidence: Sequence[Evidence], shown: int) -> dict[EntityId, str]:
    """Return the names of every node that `verbalize` will show, with one call to the store."""
    distinct = list(dict.fromkeys(node for item in evidence for node in nodes_of(item, shown)))
    return node_names(store, distinct)


def nodes_of(item: Evidence, shown: int) -> Iterator[EntityId]:
    """Yield the nodes that an item names by their ids alone; of a metapath's ends, and of its walks, the first."""
    if isinstance(item, PathEvidence):
        yield item.source
        yield from item.ends[:shown]
        for path in item.paths[:shown]:
            yield from path.nodes
    elif isinstance(item, TripleEvidence):
        yield item.triple.head
        yield item.triple.tail
    elif isinstance(item, ComputedEvidence):
        yield from item.nodes[:shown]
    elif isinstance(item, RowsEvidence):
        for row in item.rows[:shown]:
            for cell in row:
                yield from _cell_nodes(cell)


def verbalize(item: Evidence, names: Mapping[EntityId, str], shown: int = 5) -> str:
    """Write one item as one line; rows of a query as one each.

    Args:
        item: evidence. Of a metapath the nodes in between are left out, since each end may be reached through others.
        names: a name for each node shown; an id without one stands for itself.
        shown: ends or rows to write out; the rest is counted.
    """
    if isinstance(item, PathEvidence):
        hops = Hop.all_of(item)
        between = ["…" for _ in hops[1:]]
        ends = [shown_name(end, names) for end in item.ends[:shown]]
        last = fold_ends(ends, len(item.ends) - len(ends), item.truncated)
        return walk_text([shown_name(item.source, names), *between, last], hops)
    if isinstance(item, TripleEvidence):
        triple = item.triple
        ends_of = [shown_name(triple.head, names), shown_name(triple.tail, names)]
        return walk_text(ends_of, [Hop.along(triple, said=note(triple.properties))])
    if isinstance(item, NodeEvidence):
        return node_text(item.node)
    if isinstance(item, RowsEvidence):
        rows = [row_text(row, names, item.joined) for row in item.rows[:shown]]
        beyond, others = item.beyond
        return "\n".join([query_text(item), *rows, *more_rows(len(item.rows) - len(rows) + beyond, others)])
    if isinstance(item, ComputedEvidence):
        least = " (of evidence that was cut off)" if item.truncated else ""
        return f"{item.operation}{least}: {on_one_line(item.text)}"
    if isinstance(item, Feedback):
        return feedback_text(item)
    return f"{item.retriever}: {item.score:g}"


def verbalize_path(path: Path, names: Mapping[EntityId, str]) -> str:
    """Write one walk as one line, with the properties of each edge in brackets."""
    hops = [
        Hop.along(triple, inverse, note(triple.properties))
        for triple, inverse in zip(path.triples, path.inverse, strict=True)
    ]
    shown = [named(node, names) for node in path.nodes]
    return walk_text([shown[0] or UNNAMED, *shown[1:-1], *([shown[-1] or UNNAMED] if hops else [])], hops)


def walk_text(nodes: Sequence[str | None], hops: Sequence[Hop]) -> str:
    """Return the text of a walk.

    Args:
        nodes: text of each node, one more than there are hops; None for a mediator. The first and the last are given.
        hops: the steps between them.
    """
    text = nodes[0] or ""
    for hop, before, after in zip(hops, nodes[:-1], nodes[1:], strict=True):
        label = f"^{hop.label}" if hop.inverse and before is None and after is None else hop.label
        text += f" / {label}" if before is None else f" {hop.arrow} {label}"
        if after is not None:
            text += f" {hop.arrow} {after}"
    return text


def fold_ends(entries: Sequence[str], more: int = 0, truncated: bool = False) -> str:
    """Return ends that share the rest of a line, with the number of omitted ones."""
    if truncated:
        return " | ".join([*entries, f"… (+{more:,} more, and others that were cut off)" if more else "… (cut off)"])
    return " | ".join([*entries, *([f"… (+{more:,} more)"] if more else [])])


_TYPES = 8
"""Types of a node that are written."""


def types_text(node: Node) -> str:
    """Write the types of a node, the first of many; empty for a node without."""
    more = f", +{len(node.types) - _TYPES} more" if len(node.types) > _TYPES else ""
    return f"{', '.join(map(clean, node.types[:_TYPES]))}{more}"


def node_text(node: Node) -> str:
    """Write a node with its types and its properties."""
    name = UNNAMED if is_identifier(node.name) else clean(node.name)
    facts = ", ".join(f"{clean(key)}: {property_text(value)}" for key, value in node.properties.items())
    return " ".join(part for part in (name, f"({types_text(node)})" if node.type else "", facts) if part)


def query_text(item: RowsEvidence) -> str:
    """Write a query on one line, and the columns of its rows on the next."""
    columns = " | ".join(map(clean, item.columns))
    return "\n".join([on_one_line(item.query), *(f"  {on_one_line(line)}" for line in item.readings), f"  {columns}"])


_QUERY = 300
"""Characters of a query above its rows."""


def rows_head(item: RowsEvidence) -> str:
    """Return a query on one line, and on the next the number of its rows, and its columns."""
    count = f"{len(item.rows)} row{'' if len(item.rows) == 1 else 's'}"
    if item.truncated:
        more, others = item.beyond
        total = f"{'more than ' if others else ''}{len(item.rows) + more:,}"
        page = "SKIP" if item.language == "cypher" else "OFFSET"
        count = f"{len(item.rows)} of {total} rows, the next with {page} {len(item.rows)}"
    read = f" ({'; '.join(map(on_one_line, item.readings))})" if item.readings else ""
    if item.left_out:
        following = row_text(item.following, NOTHING).strip()
        least = "" if item.exact else "at least "
        read += f" ({least}{len(item.rows) + item.left_out:,} without LIMIT, the next is {following})"
    columns = " | ".join(map(clean, item.columns))
    return f"Query {on_one_line(item.query, _QUERY)}\n  returned {count}{read}: {columns}"


def row_text(row: Sequence[Cell], names: Mapping[EntityId, str], joined: Mapping[EntityId, str] = NOTHING) -> str:
    """Return one row of a query's result; see `query_text` for the lines above it, and `cell_text`."""
    return "  " + " | ".join(cell_text(cell, names, joined) for cell in row)


def more_rows(more: int, truncated: bool) -> list[str]:
    """Return the line on omitted rows; empty if all are shown."""
    if truncated:
        return [f"  … (+{more:,} more rows, and others that were cut off)" if more else "  … (more rows were cut off)"]
    return [f"  … (+{more:,} more rows)"] if more else []


def cell_text(cell: Cell, names: Mapping[EntityId, str], joined: Mapping[EntityId, str] = NOTHING) -> str:
    """Return one value of a row: nodes by their names, or in brackets by their neighbours, and null as `–`."""
    if cell is None:
        return "–"
    if isinstance(cell, str) and cell in joined:
        return f"[{joined[EntityId(cell)]}]"
    if isinstance(cell, str | bool | int | float):
        return value_text(cell)
    if isinstance(cell, NodeCell):
        if cell.id in joined:
            return f"[{joined[cell.id]}]"
        return node_text(Node(cell.id, cell.name, cell.type, cell.properties, cell.further_types))
    if isinstance(cell, EdgeCell):
        hop = Hop(cell.relation, note=note(cell.properties))
        return walk_text([shown_name(cell.head, names), shown_name(cell.tail, names)], [hop])
    if isinstance(cell, PathCell):
        shown = [None if is_identifier(node.name) else clean(node.name) for node in cell.nodes]
        hops = [
            Hop(edge.relation, edge.head != node.id, note(edge.properties))
            for edge, node in zip(cell.edges, cell.nodes, strict=False)
        ]
        return walk_text([shown[0] or UNNAMED, *shown[1:-1], *([shown[-1] or UNNAMED] if hops else [])], hops)
    if isinstance(cell, Mapping):
        return "{" + ", ".join(f"{clean(key)}: {cell_text(value, names, joined)}" for key, value in cell.items()) + "}"
    return "[" + ", ".join(cell_text(value, names, joined) for value in cell) + "]"


def feedback_text(item: Feedback) -> str:
    """Write what went wrong, and with what."""
    problem = on_one_line(item.problem, 600)
    return f"{on_one_line(item.subject)}: {problem}" if item.subject else problem


def notes(properties: Properties) -> tuple[str, ...]:
    """Return an edge's properties one by one: its validity time first, then the rest as `key: value`."""
    if not properties:
        return ()
    parts = (f"{clean(key)}: {property_text(value)}" for key, value in properties.items() if key not in TIMES)
    return (*_span(properties), *parts)


def note(properties: Properties) -> str:
    """Return an edge's properties as one text, see `notes`."""
    return ", ".join(notes(properties))


def named(node: EntityId, names: Mapping[EntityId, str]) -> str | None:
    """Return how a node is written; None for a mediator."""
    name = names.get(node, node)
    return None if is_identifier(name) else clean(name)


def shown_name(node: EntityId, names: Mapping[EntityId, str]) -> str:
    """Return the text of a node; a mediator by its identifier, its only distinction."""
    return clean(names.get(node, node))


def disambiguate(nodes: Sequence[Node]) -> dict[EntityId, str]:
    """Return what distinguishes each node that shares its name with another: its type, its id, and a property.

    The property is the first one that all nodes of the name have, each with another value.
    """
    sharing: dict[str, list[Node]] = defaultdict(list)
    for node in {node.id: node for node in nodes}.values():
        sharing[normalize_name(node.name)].append(node)
    found: dict[EntityId, str] = {}
    for group in (group for group in sharing.values() if len(group) > 1):
        common = [key for key in group[0].properties if all(key in node.properties for node in group)]
        key = next((key for key in common if len({str(node.properties[key]) for node in group}) == len(group)), None)
        for node in group:
            of_it = [] if key is None else [f"{on_one_line(key)} {value_text(node.properties[key])}"]
            found[node.id] = ", ".join([*([types_text(node)] if node.type else []), f"id {clean(node.id)}", *of_it])
    return found


def clean(text: str) -> str:
    """Return a name for a line: without line ends, cut if it is very long, quoted if it holds marks."""
    return f'"{on_one_line(text)}"' if _MARKS.search(text) else on_one_line(text)


def value_text(value: Value) -> str:
    """Write a value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return clean(value) if isinstance(value, str) else f"{value}"


_ENCODED = re.compile(r"[0-9A-Za-z+/=_-]{100,}")
"""Encoded bytes, such as a picture: no text, list or address, all of which have other signs."""

_HEAD = 20
"""Characters of them that are written."""


def property_text(value: Value) -> str:
    """Write a property of a node or an edge: encoded bytes by their beginning and length."""
    if isinstance(value, str) and _ENCODED.fullmatch(value):
        return f"{value[:_HEAD]}… ({len(value):,} characters)"
    return value_text(value)


TIMES = ("start", "end", "time")
"""Properties of an edge's validity time, as the importers name them."""


def _span(properties: Properties) -> list[str]:
    start, end = (value_text(properties[key]) if key in properties else "" for key in ("start", "end"))
    time = [value_text(properties["time"])] if "time" in properties else []
    if start and start == end:
        return [*time, start]
    return [*time, f"{start} – {end}".strip()] if start or end else time


def _cell_nodes(cell: Cell) -> Iterator[EntityId]:
    """Yield the nodes that a cell names by their ids alone."""
    if isinstance(cell, EdgeCell):
        yield cell.head
        yield cell.tail
    elif isinstance(cell, Mapping):
        for value in cell.values():
            yield from _cell_nodes(value)
    elif isinstance(cell, Sequence) and not isinstance(cell, str):
        for value in cell:
            yield from _cell_nodes(value)
