"""`byokg graph …`: building, inspecting, querying and exporting graphs, in folders and on servers.

Descriptions of a graph are for people and as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from byokg.cli.export_commands import Out, coverage, export
from byokg.cli.linking_commands import embed
from byokg.cli.options import ServerOptions, expand_records
from byokg.cli.terminal import (
    AsJson,
    Place,
    elapsing,
    folder_given,
    in_these_words,
    note,
    print_json,
    schema_shown,
    stderr,
    stdout,
)
from byokg.errors import ConfigError, GraphError, QueryFailed, QueryRefused, QueryTimeout, StoreUnavailable, one_of
from byokg.evaluation.tables import figures, labels, table
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.open import ENGINE_NAMES, engines_in, fingerprint
from byokg.types import Language

if TYPE_CHECKING:
    from byokg.graph.importers.dialects import TableOptions
    from byokg.graph.name_indexes import DenseFacts, NameFacts
    from byokg.graph.read_cache import SchemaCache
    from byokg.graph.store import PropertySchema, RelationSchema, Schema
    from byokg.graph.value_indexes import ValueFacts
    from byokg.index.values import IndexedProperty
    from byokg.open import Opened, Queryable

_ROWS = 20
"""Default number of rows of each table; Freebase has thousands of relations."""

_ENDS, _PROPERTIES = 3, 20
"""Default number of node types at one end of a relation, and of properties of a type or a relation."""

_LABEL_WIDTH = 36
"""Characters of a relation's name that are never folded; the columns beside it fold first."""

_UNTYPED = "(no type)"


@dataclass(frozen=True)
class Indexes:
    """Indexes beside a saved graph, each with verified checksums."""

    names: NameFacts | None = None
    values: ValueFacts | None = None
    dense: Sequence[DenseFacts] = ()


def summary(graph: Opened, indexes: Indexes) -> dict[str, Any]:
    """Return the full description of a graph, as JSON; null for counts that a server lacks."""
    schema = graph.schema()
    saved: dict[str, Any] = {}
    if isinstance(graph, ColumnarGraph):
        saved = {
            "dropped_duplicates": graph.dropped_duplicates,
            "nodes_of_several_types": graph.node_types.several,
            "edge_properties_left_out": graph.topology.in_edge is None,
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
        "values": asdict(indexes.values) if indexes.values else None,
        "checksum": fingerprint(graph),
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


def _values(values: ValueFacts | None, place: str = "DIR") -> str:
    if values is None:
        return f"not indexed; index them with: byokg graph names {place}"
    size = f", {values.bytes:,} bytes" if values.bytes else ""
    return f"{values.entries:,} of {_properties_of(values.properties)}{size}"


def _value_table(properties: Sequence[IndexedProperty]) -> Table:
    """Return the table of indexed properties: kind, distinct values, coverage, examples or range, cost."""
    cells = []
    for one in properties:
        some = (text if len(text) <= _EXAMPLE else f"{text[: _EXAMPLE - 1]}…" for text in map(str, one.examples))
        shown = ", ".join(some) if one.least is None else f"{one.least} to {one.most}"
        name = f"{one.type}.{one.property}" if one.type else one.property
        name = f"[{name}]" if one.edge else name
        cost = f"{one.cost:,}" if one.indexed else "no entries"
        cells.append((name, one.kind, f"{one.distinct:,}", f"{one.coverage:.0%}", shown, cost))
    longest = max((len(name) for name, *_ in cells), default=0)
    columns = [Column("property", overflow="fold", no_wrap=longest <= _LABEL_WIDTH)]
    columns += [*labels("kind", one_line=True), *figures("distinct", "of type")]
    return table([*columns, *labels("examples or range"), *figures("bytes")], cells)


_EXAMPLE = 24
"""Most characters of an example; longer ones end in `…`."""


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
    facts = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    for noun, text in _facts(graph, indexes, everything):
        facts.add_row(noun, Text(text))
    console.print(facts)
    schema = graph.schema()
    typed = set(schema.node_types) != {""}
    if typed:
        types = list(schema.node_types.items())
        rows = []
        for name, count in types if everything else types[:_ROWS]:
            said = schema.node_properties.get(name, ()), schema.node_property_details.get(name, ())
            rows.append((name or _UNTYPED, f"{count:,}", _properties(*said, everything)))
        console.print(table([*labels("node type"), *figures("nodes"), *labels("properties")], rows))
        _say_more(console, len(types), "node types", everything)
    listed = by_count(schema.relations)
    console.print(_relations(listed if everything else listed[:_ROWS], typed, everything))
    _say_more(console, len(listed), "relations", everything)
    if indexes.values is not None:
        kept = sorted(indexes.values.properties, key=lambda one: (one.edge, -one.nodes))
        console.print(_value_table(kept if everything else kept[:_ROWS]))
        _say_more(console, len(kept), "properties", everything)


def _facts(graph: Opened, indexes: Indexes, everything: bool) -> Iterator[tuple[str, str]]:
    """Yield facts about a graph, each with its noun."""
    schema = graph.schema()
    yield "graph", graph.name
    yield "nodes", _count(graph.node_count)
    yield "edges", _count(graph.edge_count)
    yield "relations", f"{len(schema.relations):,}"
    if set(schema.node_types) == {""} and (names := schema.node_properties.get("")):
        yield "properties", _properties(names, schema.node_property_details.get("", ()), everything)
    if isinstance(graph, ColumnarGraph):
        if several := graph.node_types.several:
            yield "several types", f"{several:,} nodes, which count for each of their types"
        yield "source", _origin(graph)
        left_out = [f"{graph.dropped_duplicates:,} repeated triples"] if graph.dropped_duplicates else []
        if graph.topology.in_edge is None:
            left_out.append("what is said of edges (--no-edge-properties)")
        if left_out:
            yield "left out", "; ".join(left_out)
        if engines := engines_in(graph.name):
            yield "queries", ", ".join(f"{language} ({ENGINE_NAMES[language]})" for language in engines)
        yield "names", _names(indexes.names)
        if indexes.values or _propertied(schema):
            yield "values", _values(indexes.values)
    else:
        yield "queries", graph.language
        if _propertied(schema):
            yield "values", _values(indexes.values, "ADDRESS")
    for index in indexes.dense:
        yield "dense index", f"{index.embedder}: {index.names:,} names, {index.dimensions} dimensions, {index.layout}"
    yield "checksum", fingerprint(graph)
    if isinstance(graph, ColumnarGraph):
        yield "verified", "every file agrees with its checksum"
    for line in _templates(graph):
        noun, _, listed = line.partition(": ")
        yield noun, listed
    if schema.sampled:
        yield "sampled", schema.sampled


def _propertied(schema: Schema) -> bool:
    """True if nodes or edges have properties."""
    return any(schema.node_properties.values()) or any(one.properties for one in schema.relations)


def _relations(shown: Sequence[RelationSchema], typed: bool, everything: bool) -> Table:
    """Return the table of relations, with their ends if nodes have types, and with properties if any has some."""
    propertied = any(relation.properties for relation in shown)
    longest = max((len(_relation(relation)) for relation in shown), default=0)
    columns = [Column("relation", overflow="fold", min_width=min(longest, _LABEL_WIDTH)), *figures("edges")]
    columns += labels("from", "to") if typed else []
    columns += labels("properties") if propertied else []
    rows = []
    for relation in shown:
        cells = [_relation(relation), f"{relation.count:,}"]
        cells += [_ends(relation.domain), _ends(relation.range)] if typed else []
        cells += [_properties(relation.properties, relation.property_details, everything)] if propertied else []
        rows.append(cells)
    return table(columns, rows)


def _relation(relation: RelationSchema) -> str:
    """Write the name of a relation, and how many of its edges are undirected if any are."""
    some = "" if relation.symmetric else f"{relation.undirected:,} of them "
    return f"{relation.name} ({some}undirected)" if relation.undirected else relation.name


def _count(number: int | None) -> str:
    return "not counted: the server takes too long" if number is None else f"{number:,}"


def _properties(names: Sequence[str], details: Sequence[PropertySchema], everything: bool) -> str:
    """List properties with their kinds, where these are known; not all of many."""
    kinds = {detail.name: detail.kind for detail in details}
    shown = names if everything else names[:_PROPERTIES]
    listed = ", ".join(f"{name}: {kinds[name]}" if kinds.get(name) else name for name in shown)
    return f"{listed}, +{len(names) - len(shown)}" if len(shown) < len(names) else listed


def _origin(graph: ColumnarGraph) -> str:
    """Describe the source of a graph."""
    if graph.source.get("kind") == "copy":
        return f"copy of {graph.source.get('store')}"
    files = ", ".join(f"{file['name']} ({file['bytes']:,} bytes)" for file in graph.source.get("files", ()))
    kind = str(graph.source.get("kind", "unknown"))
    return f"{kind}: {files}" if files else kind


def _ends(types: Sequence[str]) -> str:
    shown = ", ".join(name or _UNTYPED for name in types[:_ENDS])
    return f"{shown}, +{len(types) - _ENDS}" if len(types) > _ENDS else shown


def _templates(graph: Opened) -> list[str]:
    """Return a line on the display templates of the node types, if there are any."""
    templates = graph.display_names
    listed = "; ".join(f"{type or 'nodes'} by {template}" for type, template in templates.items())
    return [f"names of nodes: {listed}"] if templates else []


def _say_more(console: Console, count: int, noun: str, everything: bool) -> None:
    if count > _ROWS and not everything:
        console.print(f"the {_ROWS} most frequent of {count:,} {noun}; all of them: --all", highlight=False)


graph_app = typer.Typer(no_args_is_help=True, help="Build a graph, look at one, query or export it.")
graph_app.command("embed")(embed)
graph_app.command("export")(export)
graph_app.command("coverage")(coverage)

GRAPH = "GRAPH is a folder, or neo4j://…, bolt://…, neptune-graph://ID, neptune-db://HOST, sparql+https://…"

Refresh = Annotated[
    bool, typer.Option("--refresh", "--refresh-schema", help="Read a server's schema anew, though it is cached.")
]
Aliases = Annotated[
    list[str] | None,
    typer.Option(metavar="PROPERTY", help="A node property that holds further names; may be repeated."),
]


_UNITS = {"K": 10, "M": 20, "G": 30, "T": 40}
_LEAST_MEMORY = 1 << 28


@dataclass(frozen=True)
class EngineOptions:
    """Query engines to build into a graph's folder."""

    cypher: Annotated[bool, typer.Option("--cypher", help="Build an openCypher engine into it (ArcadeDB).")] = False
    sparql: Annotated[bool, typer.Option("--sparql", help="Build a SPARQL engine into it (Oxigraph).")] = False

    @property
    def languages(self) -> list[Language]:
        """Return the query languages of the engines."""
        chosen: dict[Language, bool] = {"cypher": self.cypher, "sparql": self.sparql}
        return [language for language, wanted in chosen.items() if wanted]


@dataclass(frozen=True)
class ImportOptions:
    """Limits of an import, and parts of a graph that are left out."""

    skip_bad: Annotated[
        int, typer.Option("--skip-bad", metavar="N", min=0, help="Leave out up to N bad lines, and list them.")
    ] = 0
    memory: Annotated[
        str, typer.Option("--memory", metavar="SIZE", help="Memory to work with, about, such as 800M or 4G.")
    ] = "4G"
    no_names: Annotated[bool, typer.Option("--no-names", help="Do not index names: only exact ids are found.")] = False
    no_edge_properties: Annotated[
        bool,
        typer.Option("--no-edge-properties", help="Leave out times, sources and the like of edges, and their numbers."),
    ] = False

    @property
    def memory_bytes(self) -> int:
        """Return the memory in bytes. Raises `ConfigError` for text that is no size, or one below 256 MiB."""
        match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT])i?B?", self.memory.strip(), re.IGNORECASE)
        size = int(float(match[1]) * (1 << _UNITS[match[2].upper()])) if match else 0
        if size < _LEAST_MEMORY:
            raise ConfigError(
                f"--memory {self.memory!r} is no size of at least 256M; write a number and a unit, such as 4G"
            )
        return size


@dataclass(frozen=True)
class TableLayout:
    """Layout of tables of edges, as far as it is not detected."""

    columns: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="What columns of edges hold: source,relation,target,weight:float,- or source=HEADER,target=HEADER.",
        ),
    ] = ""
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether the first line names the columns of edges.")
    ] = None
    delimiter: Annotated[str, typer.Option(metavar="CHAR", help="What separates fields: , ; | tab or space.")] = ""
    comment: Annotated[
        str | None, typer.Option(metavar="CHAR", help="What lines of comments begin with; '' if there are none.")
    ] = None
    undirected: Annotated[
        bool, typer.Option("--undirected", help="Edges of tables lead both ways, unless a column states it.")
    ] = False
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="TYPE=TEMPLATE", help="Names of nodes: Person='{name} {surname}'; may be repeated."),
    ] = None
    language: Annotated[
        str, typer.Option(metavar="TAG", help="Language of the names in RDF, of several: en, de, zh-hant.")
    ] = "en"

    @property
    def options(self) -> TableOptions:
        """Return the options of an importer. Raises `ConfigError` for a text that is no template."""
        from byokg.graph.display_names import parse_templates
        from byokg.graph.importers.dialects import TableOptions

        columns = tuple(name.strip() for name in self.columns.split(",")) if self.columns else ()
        names = tuple(parse_templates(self.name or ()).items())
        return TableOptions(columns, self.header, self.delimiter, self.comment, self.undirected, names, self.language)


@graph_app.command("build")
@expand_records
def build(
    *,
    source: Annotated[str, typer.Argument(metavar="SRC", help="File or folder to import, or a server's address.")],
    out: Out,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a graph that is there already.")] = False,
    engines: EngineOptions,
    server: ServerOptions,
    aliases: Aliases = None,
    reading: ImportOptions,
    layout: TableLayout,
) -> None:
    """Import a graph, save it, and index the names of its nodes and the values of their properties.

    SRC is a table of edges (.csv, .tsv, .txt, …), with a header or without, JSON or JSON lines, RDF, GraphML, GEXF,
    GML, DOT, a Cypher script, Parquet and others, or a folder with one of these, with nodes.csv and edges.csv or with
    graph.yaml; each also as .gz, .xz, .bz2, .zst or .zip. Or it is the graph on a server: neo4j://…, bolt://…,
    neptune-graph://ID, neptune-db://HOST, sparql+https://…; credentials come from the environment.

    Delimiter, header and the columns of tables are detected, and printed in one line for each file. A file that may be
    read in several ways is refused with the option that decides: --columns, --header, --delimiter or --comment.

    Nodes without a name are named by a template, which is chosen for each type by uniqueness and coverage of its
    properties, and printed; --name decides.

    Files may be larger than memory. A build of triples that was interrupted or killed goes on when the same command is
    given again.

    --overwrite replaces the whole folder, its engines included. An engine alone:
    byokg graph engine DIR --cypher
    """
    import time

    from byokg.graph.importers.choose import files_read, graph_folder
    from byokg.open import refuse_missing

    folder, wanted, memory = folder_given(out, "--out"), engines.languages, reading.memory_bytes
    settings, options, edge_properties = server.settings(source), layout.options, not reading.no_edge_properties
    refuse_missing(wanted)  # missing packages are reported before anything is built
    had = engines_in(folder)
    began = time.perf_counter()
    # Graph, names and engines appear together, or not at all.
    with in_these_words(), graph_folder(source, folder, overwrite, edge_properties, options) as partial:
        graph = _make(source, partial, settings, reading, memory, options)
        seconds = time.perf_counter() - began
        indexed = "names are not indexed" if reading.no_names else _index(graph, aliases or [])
        counts = f"{graph.node_count:,} nodes, {graph.edge_count:,} edges, {len(graph.relations):,} relations"
        dropped = f", {graph.dropped_duplicates:,} repeated triples left out" if graph.dropped_duplicates else ""
        read = [*files_read(graph), *_templates(graph)]
        del graph  # Windows renames no folder with files that are mapped
        for language in wanted:
            _add(partial, language)
    for line in read:
        print(line)
    print(f"built {out}: {counts}{dropped}, in {seconds:.1f} s")
    print(indexed)
    _say_engines(folder, wanted)
    for language in had:
        if language not in wanted:
            again = f"byokg graph engine {out} --{language}"
            note(f"its {ENGINE_NAMES[language]} engine went with the graph before; build it anew: {again}")


@graph_app.command("sniff")
@expand_records
def sniff(
    *,
    source: Annotated[str, typer.Argument(metavar="FILE", help="File or folder to look at.")],
    layout: TableLayout,
    write: Annotated[
        bool, typer.Option("--write", help="Write a graph.yaml to edit: in the folder, or beside the file.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the content of a source as `graph build` would read it: format, counts, types, names and some edges.

    byokg graph sniff FILE

    byokg graph sniff FOLDER --write

    A large file whose lines are records is sampled. For tables that are not named as nodes and edges, keys and foreign
    keys are guessed; --write puts the guess into graph.yaml, which `graph build` reads.
    """
    from byokg.graph.importers.sniff import example_edges, mapping_text, sniff

    found, place = sniff(source, layout.options), Path(source)
    graph, schema = found.graph, found.graph.schema()
    relations = {relation.name: relation.count for relation in by_count(schema.relations)}
    text = mapping_text(found.mapping)
    target = place / "graph.yaml" if place.is_dir() else place.with_name(f"{place.name.partition('.')[0]}.graph.yaml")
    if write:
        if target.exists():
            raise ConfigError(f"{target} is there already; move it away, or edit it")
        target.write_text(f"# Written by: byokg graph sniff {place.name} --write\n{text}", "utf-8", newline="\n")
    named = dict(graph.display_names)
    if as_json:
        facts = {"format": found.format, "sampled": found.sampled, "nodes": graph.node_count, "edges": graph.edge_count}
        more = {
            "types": dict(schema.node_types),
            "relations": relations,
            "names": named,
            "mapping": dict(found.mapping),
            "left_out": list(found.left_out),
        }
        print_json({**facts, **more, "files": list(found.files), "written": str(target) if write else None})
        return
    part = " in the beginning of the file" if found.sampled else ""
    print(f"format     {found.format}")
    print(f"counts     {graph.node_count:,} nodes, {graph.edge_count:,} edges{part}")
    print(f"types      {_counted({kind or _UNTYPED: count for kind, count in schema.node_types.items()})}")
    print(f"relations  {_counted(relations)}")
    print(f"names      {'; '.join(_templates(graph)).partition(': ')[2] or 'as given, or the id'}")
    for line in (*found.files, *example_edges(graph)):
        print(f"           {line}")
    if found.left_out:
        print(f"left out   {', '.join(found.left_out)}: no column of distinct values, nor two with keys of others")
    again = f"byokg graph build {place if place.is_dir() else target} --out DIR"
    print(f"wrote {target}; edit it, then: {again}" if write else text)


def _counted(counts: Mapping[str, int]) -> str:
    """List names with their counts, not all of many."""
    listed = ", ".join(f"{name} ({count:,})" for name, count in list(counts.items())[:_ROWS])
    return f"{listed}, +{len(counts) - _ROWS}" if len(counts) > _ROWS else listed


def _make(
    source: str, out: Path, settings: dict[str, Any], reading: ImportOptions, memory: int, options: TableOptions
) -> ColumnarGraph:
    """Import files, or copy a server's graph, into a folder."""
    from byokg.open import is_address

    edge_properties = not reading.no_edge_properties
    if not is_address(source):
        from byokg.cli.terminal import building
        from byokg.graph.importers.choose import import_into, source_files

        if settings:
            raise ConfigError(f"--{next(iter(settings)).replace('_', '-')} is for servers; files say which are the ids")
        bad: list[Exception] = []
        told = building(source_files(source), out, note)
        graph = import_into(source, out, reading.skip_bad, bad.append, memory, told, edge_properties, options)
        if bad:
            note(f"left out {len(bad):,} bad lines:")
        for error in bad:
            note(f"  {error}")
        return graph
    if not edge_properties:
        raise ConfigError("--no-edge-properties is for files; a copy of a server's graph has all that edges have")
    if options != TableLayout().options:
        reason = "--columns, --header, --delimiter, --comment, --undirected and --name are for tables"
        raise ConfigError(f"{reason}; leave them out for a server")
    from byokg.cli.terminal import copied
    from byokg.graph.exporter import copy_graph
    from byokg.open import use_graph

    with use_graph(source, **settings) as store:
        note(f"reading {store.name}")
        with copied("copying", store.node_count, store.edge_count, stderr()) as progress:
            graph = copy_graph(store, progress)
    graph.write_into(out)
    return ColumnarGraph.open(out)


def _index(graph: ColumnarGraph, aliases: Sequence[str]) -> str:
    """Index names and values of a saved graph; return lines about them."""
    import time

    from byokg.graph.value_indexes import build_indexes

    began = time.perf_counter()
    names, *values = build_indexes(graph, aliases)
    properties = [one for index in values for one in index.properties()]
    told = f", and {sum(map(len, values)):,} values of {_properties_of(properties)}" if properties else ""
    return f"indexed {len(names):,} different names{told}, in {time.perf_counter() - began:.1f} s"


def _properties_of(properties: Sequence[IndexedProperty]) -> str:
    count = sum(one.indexed for one in properties)
    return "1 property" if count == 1 else f"{count:,} properties"


@graph_app.command("names")
@expand_records
def names(*, place: Place, aliases: Aliases = None, server: ServerOptions) -> None:
    """Index names and property values of a graph anew, to find nodes by them.

    `byokg graph build` does so, too; this is for other aliases, or for a graph without the index. Names and values of a
    graph on a server are read and kept in the cache of this machine, for linking of misspelt ones.
    """
    from byokg.open import is_address

    if is_address(place):
        _keep_names(place, aliases or [], server.settings(place))
        return
    print(_index(ColumnarGraph.open(folder_given(place, "byokg graph names")), aliases or []))


def _keep_names(address: str, aliases: Sequence[str], settings: dict[str, Any]) -> None:
    """Read names and values of a graph on a server, and print their numbers and the age of earlier names."""
    import time

    from byokg.graph.name_indexes import keep_names, kept_names
    from byokg.graph.value_indexes import keep_values
    from byokg.open import use_graph

    if aliases:
        raise ConfigError("--alias is for graphs in folders; for a SPARQL server: --set alias_predicates=IRI")
    with use_graph(address, **settings) as store:
        if before := kept_names(store):
            note(f"{len(before.names):,} names were read {age(time.time() - before.read)} ago; reading them anew")
        began = time.perf_counter()
        with stderr().status("reading names") as status:
            found = keep_names(store, lambda count: status.update(f"reading names: {count:,}"))
        print(f"read {len(found):,} different names of {store.name}, in {time.perf_counter() - began:.1f} s")
        for of_edges, whose in ((False, "nodes"), (True, "edges")):
            if (values := keep_values(store, of_edges)).properties():
                print(f"read {len(values):,} values of {_properties_of(values.properties())} of {whose}")


def age(seconds: float) -> str:
    """Write how long ago something was, in the largest unit of which it is more than one."""
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} seconds"


@graph_app.command("engine")
@expand_records
def engine(
    *,
    place: Annotated[str, typer.Argument(metavar="DIR", help="A built graph.")],
    engines: EngineOptions,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Build an engine anew that is there already.")] = False,
) -> None:
    """Build a query engine into a graph that is there already."""
    wanted = engines.languages
    if not wanted:
        raise ConfigError("which engine? add --cypher (ArcadeDB), --sparql (Oxigraph), or both")
    from byokg.open import refuse_missing

    folder = folder_given(place, "byokg graph engine")
    refuse_missing(wanted)
    for language in wanted:
        with in_these_words():
            _add(folder, language, overwrite)
        _say_engines(folder, [language])


def _add(folder: Path, language: Language, overwrite: bool = False) -> None:
    """Build an engine into a graph's folder, and show that it takes its time."""
    from byokg.open import add_engine

    with elapsing(f"loading the graph into the {ENGINE_NAMES[language]} engine", stderr()):
        add_engine(folder, language, overwrite)


def _say_engines(folder: Path, languages: list[Language]) -> None:
    if "cypher" in languages:
        print(f"built its openCypher engine; try: byokg graph query {folder} 'MATCH (n) RETURN n.name LIMIT 5'")
    if "sparql" in languages:
        text = "SELECT * { ?s ?p ?o } LIMIT 5"
        print(f"built its SPARQL engine; try: byokg graph query {folder} --language sparql '{text}'")


def _cache(refresh: bool) -> SchemaCache:
    from byokg.graph.read_cache import SchemaCache

    return SchemaCache(refresh=refresh)


@graph_app.command("info")
@expand_records
def info(
    *,
    place: Place,
    everything: Annotated[bool, typer.Option("--all", help="List every node type and relation.")] = False,
    refresh: Refresh = False,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Show a graph's counts, origin, node types and relations; of a folder, verify the checksums first.

    A server's schema is cached, and read again when its counts have changed; --refresh-schema reads it in any case.
    """
    from byokg.graph.name_indexes import verify_dense, verify_name_index
    from byokg.graph.value_indexes import cached_value_facts, verify_value_index
    from byokg.open import use_graph

    with use_graph(place, _cache(refresh), **server.settings(place)) as store:
        indexes = Indexes()
        if isinstance(store, ColumnarGraph):
            store.verify()
            indexes = Indexes(verify_name_index(store), verify_value_index(store), verify_dense(store))
        with schema_shown(store):
            store.schema()
        if store.remote:
            indexes = Indexes(values=cached_value_facts(store))
        if as_json:
            print_json(summary(store, indexes))
        else:
            show(store, indexes, stdout(), everything)


@graph_app.command("schema")
@expand_records
def schema(
    *,
    place: Place,
    question: Annotated[str, typer.Argument(help="What relations and properties should be relevant to.")] = "",
    budget_tokens: Annotated[int, typer.Option(min=1, help="Tokens the text may take.")] = 2000,
    refresh: Refresh = False,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Print the part of a schema that a prompt would get for a question, within a budget of tokens.

    Relations and properties are chosen by relevance, and left out whole; without a question those of most edges come
    first. Tokens are estimated, rather too many than too few, since they differ from model to model.

    byokg graph schema DIR "Who directed Heat?" --budget-tokens 500
    """
    from byokg.linking.parts import Parts
    from byokg.open import use_graph

    with use_graph(place, _cache(refresh), **server.settings(place)) as store:
        with schema_shown(store):
            store.schema()
        shown = Parts(store).schema.render(question, budget_tokens)
        sampled = store.schema().sampled
    if as_json:
        print_json(
            {
                "text": shown.text,
                "tokens": shown.tokens,
                "relations": list(shown.relations),
                "relations_left_out": shown.relations_left_out,
                "properties_left_out": shown.properties_left_out,
                "sampled": sampled,
            }
        )
        return
    if not shown.text and shown.relations_left_out:
        raise ConfigError(f"--budget-tokens {budget_tokens} is too few for a single relation; allow more")
    print(shown.text, end="")
    left = f"left out: {shown.relations_left_out:,} relations, {shown.properties_left_out:,} properties"
    note(f"about {shown.tokens:,} of {budget_tokens:,} tokens; relations shown: {len(shown.relations):,}, {left}")
    if sampled:
        note(f"read from a sample: {sampled}")


@graph_app.command("query")
@expand_records
def query(
    *,
    place: Place,
    texts: Annotated[list[str], typer.Argument(metavar="QUERY…", help="Reading queries, each in quotes.")],
    language: Annotated[str | None, typer.Option(metavar="cypher|sparql", help="When a folder holds both.")] = None,
    timeout: Annotated[float, typer.Option(min=0.001, metavar="SECONDS", help="Stop it after this long.")] = 10.0,
    max_rows: Annotated[int, typer.Option(min=1, help="Rows to return at most.")] = 1000,
    layout: Annotated[str, typer.Option("--format", metavar="table|json", help="How to print the rows.")] = "table",
    server: ServerOptions,
) -> None:
    """Run queries that only read, guarded, each with a time limit and a row limit.

    GRAPH is a folder built with --cypher or --sparql, or neo4j://…, bolt://…, neptune-graph://ID, neptune-db://HOST,
    sparql+https://…; credentials come from the environment. Labels, relations and properties that the graph does not
    have are named on standard error, with the nearest that it has.

    The engine of a folder starts with each command, and that of openCypher takes seconds: several queries in one
    command share it, and byokg mcp serve keeps it.
    """
    wanted = None if language is None else one_of("--language ", language, get_args(Language))
    one_of("--format ", layout, ("table", "json"))
    from byokg.open import is_address, open_queryable

    settings = server.settings(place)
    with closing(open_queryable(place, wanted, **settings)) as store:
        if store.language == "cypher" and not is_address(place):
            note("starting the openCypher engine; several queries in one command share it")
        for text in texts:
            _run_query(store, text, timeout, max_rows, layout)


def _run_query(store: Queryable, text: str, timeout: float, max_rows: int, layout: str) -> None:
    """Run a query, and print its rows."""
    from byokg.cli.terminal import show
    from byokg.graph.store import QueryLimits, as_json

    try:
        rows = store.run(text, limits=QueryLimits(timeout, max_rows))
    except (QueryRefused, QueryTimeout, StoreUnavailable):
        raise
    except QueryFailed:
        _say_unknown_names(store, text)
        raise
    if layout == "json":
        print_json(as_json(rows))
    else:
        show(rows, stdout())
    if not rows.rows or store.holds_schema():  # an answer does not wait until the whole graph has been looked at
        _say_unknown_names(store, text)


def _say_unknown_names(store: Queryable, text: str) -> None:
    """Print the names in the query that the graph does not have."""
    from byokg.graph.guard.guard import lint_query

    try:
        findings = lint_query(store, text)
    except GraphError:
        return  # the outcome of the query itself is printed anyway
    for finding in findings:
        stderr().print(
            f"note: line {finding.line}, column {finding.column}: {finding.message}", markup=False, soft_wrap=True
        )
