"""Graphs in GraphML, read as a stream, as NetworkX, igraph, Gephi, yEd, Neo4j's APOC and byokg write it.

Keys give properties their names and types: int and long, float and double, boolean, string; two keys of one name and of
different types are one property, of floats or else of texts. An edge's relation is the value of its key `relation`,
`label` or `type`, or its attribute `label`; without any it is `related_to`. A node's name is in `name` or `label`, its
types are in `type`, with `|` between them, or in APOC's `labels`, as `:Person:Actor`. An edge is undirected if its
attribute `directed` is false, or without one if the `edgedefault` of its graph is undirected. Nodes of nested graphs
are nodes, too; hyperedges are refused.

A document that declares entities is refused: they could make a small file fill the memory, or read other files.

Source: GraphML Primer, graphml.graphdrawing.org.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from byokg.errors import ImportFailed
from byokg.files import TextFile
from byokg.graph.columnar.node_types import SEPARATOR, cells_of_texts
from byokg.graph.columnar.schema import KINDS, TEXT, Clash, NodeColumns, property_batch, typed
from byokg.graph.columnar.writer import EdgeBlock
from byokg.graph.export_formats import DATE_MARK
from byokg.graph.importers.documents import reading_xml
from byokg.graph.importers.table_stream import DEFAULT_RELATION, NAME, TYPE, TableStream

_READ_BYTES = 1 << 20
_SPACE = "http://graphml.graphdrawing.org/xmlns "
_TYPES = {"int": "int", "long": "int", "float": "float", "double": "float", "boolean": "bool", "date": "date"}
_LABEL = "\0label"
"""Where the attribute `label` of an edge stands among its texts."""
_UNDIRECTED = "\0undirected"
"""Stands among the texts of an undirected edge."""
_RELATION, _NAME, _TYPE = ("relation", "label", "type"), ("name", "label"), ("type", "labels")


class GraphmlFile(TableStream):
    """A GraphML document; a `GraphStream`."""

    def __init__(self, path: Path) -> None:
        self._file = TextFile(path)
        super().__init__(str(path))
        self._keys: dict[str, tuple[str, str, str]] = {}
        """Name, kind and domain (node, edge or all) by id."""
        self._defaults: dict[str, str] = {}
        self._kinds: dict[str, dict[str, str]] = {"node": {}, "edge": {}}
        """Kinds of the properties that were met, by name."""
        self._nodes: list[tuple[int, tuple[str, ...], dict[str, str]]] = []
        self._edges: list[tuple[int, tuple[str, ...], dict[str, str]]] = []
        """Line, id or both ends, and texts by key of those that are read and not yet in columns."""
        self._open: list[str] = []
        self._undirected: list[bool] = []
        """The defaults for edges of the graphs that are open, one within another."""
        self._elements: list[tuple[int, tuple[str, ...], dict[str, str]]] = []
        """The nodes and edges that are open, one within another."""
        self._data: tuple[str, list[str]] | None = None
        self._parser = expat.ParserCreate(namespace_separator=" ")

    def blocks(self) -> Iterator[EdgeBlock]:
        """Yield the edges. Raises `ImportFailed`, naming the line."""
        parser = self._parser
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._text
        with reading_xml(self._file, parser) as stream:
            while data := stream.read(_READ_BYTES):
                parser.Parse(data)
                self._take_nodes()
                yield from self._take_edges()
            parser.Parse(b"", True)
        if not self._keys and not len(self._ids):
            raise ImportFailed(self._file.path, None, "holds no nodes of a GraphML document")
        declared = np.zeros(len(self._ids), np.bool_)
        declared[np.concatenate(self._codes)] = True
        if not declared.all():
            entity = self._ids.strings[int(declared.argmin())].as_py()
            reason = f"an edge ends at {entity!r}, which is no node; add the node or correct it"
            raise ImportFailed(self._file.path, None, reason)

    def nodes(self) -> NodeColumns:
        """Return the nodes."""
        self._merge_nodes({key: KINDS[kind][0] for key, kind in self._kinds["node"].items()})
        content = self._content
        for role, keys in ((NAME, _NAME), (TYPE, _TYPE)):
            if key := next((key for key in keys if key in content), None):
                content[role] = content.pop(key).cast(TEXT)
                if key == "labels":  # APOC writes `:Person:Actor`
                    content[role] = pc.replace_substring(cells_of_texts(content[role]), ":", SEPARATOR)
        return super().nodes()

    def _clash(self, clash: Clash, held: pa.RecordBatch) -> ImportFailed:
        entity = self._ids.strings[clash.number].as_py()
        reason = f"node id {entity!r} occurs twice, with different {clash.key}; keep one of the two"
        return ImportFailed(self._file.path, None, reason)

    def property_types(self) -> Mapping[str, pa.DataType]:
        """Return the edges' properties."""
        relation = self._relation_key()
        return {key: KINDS[kind][0] for key, kind in self._kinds["edge"].items() if key != relation}

    def _origin(self) -> dict[str, Any]:
        """Return the entry of the file in a graph's `source`."""
        return {"kind": "GraphML", "files": [self._file.description()]}

    # Elements

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.removeprefix(_SPACE)
        inside = self._open[-1] if self._open else ""
        self._open.append(tag)
        line = self._parser.CurrentLineNumber
        if not inside and tag != "graphml":
            raise self._wrong(line, f"<{tag}> is no GraphML document; it begins with <graphml>")
        if tag == "key":
            self._declare(self._attribute(line, attributes, "id"), attributes)
        elif tag == "node":
            self._elements.append((line, (self._attribute(line, attributes, "id"),), {}))
        elif tag == "edge":
            ends = tuple(self._attribute(line, attributes, end) for end in ("source", "target"))
            label = attributes.get("label", "")
            texts = {_LABEL: label} if label else {}
            if self._is_undirected(line, attributes):
                texts[_UNDIRECTED] = "true"
            self._elements.append((line, ends, texts))
        elif tag == "graph":
            around = "undirected" if self._undirected and self._undirected[-1] else "directed"
            default = attributes.get("edgedefault", around)
            if default not in ("directed", "undirected"):
                raise self._wrong(line, f"edgedefault={default!r} is not known; write directed or undirected")
            self._undirected.append(default == "undirected")
        elif tag == "data" and inside in ("node", "edge"):
            key = self._attribute(line, attributes, "key")
            if key not in self._keys:  # as APOC has `labels`
                self._declare(key, {})
            self._data = key, []
        elif tag == "default" and inside == "key":
            self._data = next(reversed(self._keys)), []
        elif tag == "hyperedge":
            raise self._wrong(line, "a hyperedge is no edge between two nodes; write it as a node with edges")

    def _end(self, tag: str) -> None:
        tag = self._open.pop()
        if tag in ("data", "default") and self._data:
            held = self._elements[-1][2] if tag == "data" else self._defaults
            held[self._data[0]] = "".join(self._data[1])
            self._data = None
        elif tag in ("node", "edge"):
            (self._nodes if tag == "node" else self._edges).append(self._elements.pop())
        elif tag == "graph":
            self._undirected.pop()

    def _is_undirected(self, line: int, attributes: Mapping[str, str]) -> bool:
        own = attributes.get("directed")
        if own is None:
            return bool(self._undirected) and self._undirected[-1]
        if own not in ("true", "false"):
            raise self._wrong(line, f"directed={own!r} is not known; write true or false")
        return own == "false"

    def _text(self, text: str) -> None:
        if self._data:
            self._data[1].append(text)

    def _declare(self, id_: str, attributes: Mapping[str, str]) -> None:
        name, domain = attributes.get("attr.name", id_), attributes.get("for", "all")
        kind = _TYPES.get(attributes.get(f"{DATE_MARK} kind") or attributes.get("attr.type", ""), "string")
        self._keys[id_] = name, kind, domain

    def _attribute(self, line: int, attributes: Mapping[str, str], name: str) -> str:
        if not attributes.get(name, "").strip():
            raise self._wrong(line, f"<{self._open[-1]}> has no attribute {name!r}; give it one")
        return attributes[name]

    def _wrong(self, line: int, reason: str) -> ImportFailed:
        return ImportFailed(self._file.path, line, reason)

    # Columns

    def _take_nodes(self) -> None:
        some, self._nodes = self._nodes, []
        if some:
            ids = pa.array([ids[0] for _, ids, _ in some], TEXT).dictionary_encode()
            self._add_nodes(ids, self._columns("node", some))

    def _take_edges(self) -> Iterator[EdgeBlock]:
        some, self._edges = self._edges, []
        if not some:
            return
        heads, tails = zip(*(ends for _, ends, _ in some), strict=True)
        ends = self._numbers(pa.array([*heads, *tails], TEXT).dictionary_encode(), known=False)
        columns = self._columns("edge", some)
        relation = self._relation_key()
        told = columns.pop(relation).cast(TEXT).to_pylist() if relation in columns else [None] * len(some)
        labels = [label or row.get(_LABEL) or DEFAULT_RELATION for label, (_, _, row) in zip(told, some, strict=True)]
        triples = self._triples(ends, pa.array(labels, TEXT).dictionary_encode())
        undirected = np.array([_UNDIRECTED in row for _, _, row in some], np.bool_)
        yield EdgeBlock(triples, property_batch(columns), undirected=undirected if undirected.any() else None)

    def _relation_key(self) -> str:
        declared = {name for name, _, domain in self._keys.values() if domain in ("edge", "all")}
        return next((key for key in _RELATION if key in declared), "")

    def _columns(self, domain: str, some: list[tuple[int, tuple[str, ...], dict[str, str]]]) -> dict[str, pa.Array]:
        """Return the properties of nodes or edges as columns of their kinds. Raises `ImportFailed`."""
        columns: dict[str, pa.Array] = {}
        for id_, (name, kind, for_) in self._keys.items():
            if for_ not in (domain, "all"):
                continue
            default = self._defaults.get(id_)
            texts = [row.get(id_, default) for _, _, row in some]
            if kind != "string":
                texts = [text.strip() or None if text is not None else None for text in texts]
            column, problem = typed(name, kind, pa.chunked_array([pa.array(texts, TEXT)]))
            if problem:
                raise self._wrong(some[problem.row][0], problem.reason)
            if for_ == "all" and column.null_count == len(column) and name not in self._kinds[domain]:
                continue  # not one of these, as far as is known
            before = self._kinds[domain].setdefault(name, kind)
            if before != kind:
                self._kinds[domain][name] = "float" if {before, kind} == {"int", "float"} else "string"
            if name in columns:
                both = KINDS[self._kinds[domain][name]][0]
                column = pc.coalesce(columns[name].cast(both), column.cast(both))
            columns[name] = column
        return columns
