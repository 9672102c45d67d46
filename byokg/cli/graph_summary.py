"""What is in a graph, for people and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from byokg.graph.columnar import ColumnarGraph
from byokg.graph.dense_index import DenseFacts
from byokg.graph.engines import NAMES, engines_in
from byokg.graph.name_index import NameFacts
from byokg.graph.places import identity
from byokg.graph.store import PropertySchema, RelationSchema

if TYPE_CHECKING:
    from byokg.graph.places import Opened

_ROWS = 20
"""Rows of each table unless all are asked for; Freebase has thousands of relations."""

_ENDS = 3
"""Node types shown at one end of a relation."""

_LABEL_WIDTH = 36
"""Characters of a relation's name that are never folded; the columns beside it fold first."""

_UNTYPED = "(no type)"


@dataclass(frozen=True)
class Indexes:
    """What lies beside a saved graph to find nodes by name, each found to agree with its checksums."""

    names: NameFacts | None = None
    dense: Sequence[DenseFacts] = ()


def summary(graph: Opened, indexes: Indexes) -> dict[str, Any]:
    """Return all there is to tell about a graph, as JSON holds it; what a server cannot count is null."""
    schema = graph.schema()
    saved: dict[str, Any] = {}
    if isinstance(graph, ColumnarGraph):
        saved = {
            "dropped_duplicates": graph.dropped_duplicates,
            "source": graph.source,
            "engines": engines_in(graph.name),
            "names": asdict(indexes.names) if indexes.names else None,
            "dense": [asdict(index) for index in indexes.dense],
        }
    return {
        "path": graph.name,
        "nodes": graph.node_count,
        "edges": graph.edge_count,
        **saved,
        "checksum": identity(graph),
        "sampled": schema.sampled,
        "node_types": schema.node_types,
        "node_properties": schema.node_properties,
        "node_property_details": {
            kind: [asdict(detail) for detail in details] for kind, details in schema.node_property_details.items()
        },
        "relations": [asdict(relation) for relation in by_count(schema.relations)],
    }


def _names(names: NameFacts | None) -> str:
    if names is None:
        return "not indexed; index them with: byokg graph names DIR"
    return f"{names.names:,} different ones of {names.entries:,} bearers, {names.bytes:,} bytes"


def by_count(relations: Sequence[RelationSchema]) -> list[RelationSchema]:
    """Return relations in order of their number of edges, then by name."""
    return sorted(relations, key=lambda relation: (-relation.count, relation.name))


def show(graph: Opened, indexes: Indexes, console: Console, everything: bool) -> None:
    """Print counts, origin, node types and relations.

    Args:
        graph: one on a server, or a saved one whose checksums were found to agree.
        indexes: those of a saved one.
        console: where to print.
        everything: list all types and relations, not only the most frequent.
    """
    schema = graph.schema()
    facts = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("graph", Text(graph.name))
    facts.add_row("nodes", _count(graph.node_count))
    facts.add_row("edges", _count(graph.edge_count))
    facts.add_row("relations", f"{len(schema.relations):,}")
    if isinstance(graph, ColumnarGraph):
        facts.add_row("source", Text(_origin(graph)))
        if graph.dropped_duplicates:
            facts.add_row("left out", f"{graph.dropped_duplicates:,} repeated triples")
        if engines := engines_in(graph.name):
            facts.add_row("queries", ", ".join(f"{language} ({NAMES[language]})" for language in engines))
        facts.add_row("names", _names(indexes.names))
    else:
        facts.add_row("queries", graph.language)
    for index in indexes.dense:
        shape = f"{index.names:,} names, {index.dimensions} dimensions, {index.layout}"
        facts.add_row("dense index", Text(f"{index.embedder}: {shape}"))
    facts.add_row("checksum", Text(identity(graph)))
    if isinstance(graph, ColumnarGraph):
        facts.add_row("verified", "every file agrees with its checksum")
    if schema.sampled:
        facts.add_row("sampled", schema.sampled)
    console.print(facts)

    if set(schema.node_types) != {""}:
        types = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        types.add_column("node type", overflow="fold")
        types.add_column("nodes", justify="right", no_wrap=True)
        types.add_column("properties", overflow="fold")
        rows = list(schema.node_types.items())
        for name, count in rows if everything else rows[:_ROWS]:
            properties = _properties(schema.node_properties.get(name, ()), schema.node_property_details.get(name, ()))
            types.add_row(Text(name or _UNTYPED), f"{count:,}", Text(properties))
        console.print(types)
        _say_more(console, len(rows), "node types", everything)

    relations = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    listed = by_count(schema.relations)
    rows_shown = listed if everything else listed[:_ROWS]
    longest = max((len(relation.name) for relation in rows_shown), default=0)
    relations.add_column("relation", overflow="fold", min_width=min(longest, _LABEL_WIDTH))
    relations.add_column("edges", justify="right", no_wrap=True)
    typed = set(schema.node_types) != {""}
    propertied = any(relation.properties for relation in schema.relations)
    if typed:
        relations.add_column("from", overflow="fold")
        relations.add_column("to", overflow="fold")
    if propertied:
        relations.add_column("properties", overflow="fold")
    for relation in rows_shown:
        cells = [Text(relation.name), Text(f"{relation.count:,}")]
        if typed:
            cells += [Text(_ends(relation.domain)), Text(_ends(relation.range))]
        if propertied:
            cells.append(Text(_properties(relation.properties, relation.property_details)))
        relations.add_row(*cells)
    console.print(relations)
    _say_more(console, len(listed), "relations", everything)


def _count(number: int | None) -> str:
    return "not counted: the server takes too long" if number is None else f"{number:,}"


def _properties(names: Sequence[str], details: Sequence[PropertySchema]) -> str:
    """List properties with their kinds, where these are known."""
    kinds = {detail.name: detail.kind for detail in details}
    return ", ".join(f"{name}: {kinds[name]}" if kinds.get(name) else name for name in names)


def _origin(graph: ColumnarGraph) -> str:
    """Say what a graph was made from."""
    if graph.source.get("kind") == "copy":
        return f"copy of {graph.source.get('store')}"
    files = ", ".join(f"{file['name']} ({file['bytes']:,} bytes)" for file in graph.source.get("files", ()))
    kind = str(graph.source.get("kind", "unknown"))
    return f"{kind}: {files}" if files else kind


def _ends(types: Sequence[str]) -> str:
    shown = ", ".join(name or _UNTYPED for name in types[:_ENDS])
    return f"{shown}, +{len(types) - _ENDS}" if len(types) > _ENDS else shown


def _say_more(console: Console, count: int, noun: str, everything: bool) -> None:
    if count > _ROWS and not everything:
        console.print(f"the {_ROWS} most frequent of {count:,} {noun}; all of them: --all", highlight=False)
