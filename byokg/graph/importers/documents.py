"""Readers of documents that are no tables: JSON of many programs, GEXF, GML, DOT, Pajek, SIF, OBO and Wikidata's dump.

A reader yields the nodes and edges of one file. Documents are parsed whole, SIF, OBO and Wikidata's dump line by line.

| JSON document with lists of nodes and edges | keys                                                            |
|---------------------------------------------|-----------------------------------------------------------------|
| NetworkX, D3 (node-link)                    | `nodes`, and `links` or `edges`; `directed`                     |
| Cytoscape                                   | `elements`, with `data` in each                                 |
| Neo4j's APOC                                | `nodes` and `rels`, as lists or by id                           |
| Hetionet                                    | `kind` and `identifier` of nodes, both in the ends of edges     |
| CypherBench                                 | `entities` and `relations`                                      |
| KQA Pro                                     | `concepts` and `entities`                                       |
| Graphology (sigma), JSON Graph, OBO Graphs  | `key` and `attributes`; `graph`; `graphs` with `sub`/`pred`/`obj` |

Elements are read as lines of JSON lines are (see `json_lines`), and so is a document that is a list of them.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO
from xml.parsers import expat

from byokg.errors import ImportFailed, import_extra
from byokg.files import TextFile
from byokg.graph.export_formats import DIRECTED
from byokg.graph.importers.json_lines import read_record
from byokg.graph.importers.python_graphs import networkx_records
from byokg.graph.importers.table_stream import DEFAULT_RELATION, Label, Records
from byokg.graph.rdf.literals import ENGLISH
from byokg.types import NO_PROPERTIES, EntityId, Node, Properties, Triple, Value

_MARKS = {b"\xff\xfe\x00\x00": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


def read_text(file: TextFile) -> str:
    """Return the whole text of a file in UTF-8, or UTF-16 with a mark. Raises `ImportFailed`, naming the line."""
    with file.reading(), file.open() as stream:
        content = stream.read()
    encoding = next((name for mark, name in _MARKS.items() if content.startswith(mark)), "utf-8-sig")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        reason = f"byte 0x{content[error.start]:02x} is not {encoding[:5].upper()}; convert the file to UTF-8"
        raise ImportFailed(file.path, line, reason) from error


def read_lines(file: TextFile) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that is not blank, without its end. Raises `ImportFailed`."""
    number = 0
    for block in file.line_blocks():
        for raw in block.splitlines():
            number += 1
            line = raw.decode(errors="surrogateescape")
            file.check_text(number, line)
            if line.strip():
                yield number, line


# JSON


_NODES, _EDGES = ("nodes", "vertices", "entities"), ("links", "edges", "rels", "relationships", "relations")
_WRAPPERS = ("data", "attributes", "metadata", "meta")
"""Keys of a node or edge that hold an object with its properties."""
_IDS = ("id", "key", "eid", "name", "label")
"""Keys that identify nodes, best first."""
_OBO_GRAPH = {"sub": "head", "pred": "relation", "obj": "tail", "lbl": "name"}
_DRAWN = ("position", "group", "selected", "selectable", "locked", "grabbable", "classes", "scratch", "style")
"""Keys of Cytoscape that describe a drawing."""


def read_json(file: TextFile) -> Records:
    """Read a JSON document of nodes and edges, or a list of records."""
    text = read_text(file)
    try:
        document = json.loads(text)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise ImportFailed(file.path, line, f"is no JSON: {error}; fetch or export the file again") from error
    del text
    if isinstance(document, list):
        yield from _elements(file, "record", document)
        return
    if isinstance(document, dict) and all(isinstance(document.get(key), dict) for key in ("concepts", "entities")):
        yield from _shaped(file, None, _kqa_records(document["concepts"], document["entities"]))
        return
    directed, nodes, edges = _parts(file, document)
    ids = [_id_of(value, number) for number, value in enumerate(nodes)]
    by_place = not any("id" in value for value in nodes)
    yield from _elements(file, "nodes", map(_node, nodes, ids))
    for edge in _elements(file, "edges", [_edge(value, ids if by_place else ()) for value in edges]):
        yield replace(edge, undirected=True) if not directed and isinstance(edge, Triple) else edge


def _shaped(file: TextFile, line: int | None, records: Records) -> Records:
    """Yield the same records. Raises `ImportFailed` for a part of the document that has another shape."""
    try:
        yield from records
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = f"a part has another shape than this format has ({error}); export or fetch it again"
        raise ImportFailed(file.path, line, reason) from error


def _kqa_records(concepts: Mapping[str, Any], entities: Mapping[str, Any]) -> Records:
    """Yield the nodes and edges of KQA Pro's `kb.json`: classes are types, values properties, or several a text."""
    for id_, held in (*concepts.items(), *entities.items()):
        classes = [class_ for class_ in held.get("instanceOf") or () if class_ in concepts]
        types = list(dict.fromkeys(str(concepts[class_].get("name", class_)) for class_ in classes))
        values: dict[str, list[str]] = {}
        for attribute in held.get("attributes") or ():
            values.setdefault(str(attribute.get("key")), []).append(_kqa_value(attribute.get("value")))
        properties = {key: "; ".join(texts) for key, texts in values.items()}
        kind = types if id_ in entities else ["concept"]
        name = str(held.get("name") or id_)
        yield Node(EntityId(id_), name, next(iter(kind), ""), properties or NO_PROPERTIES, tuple(kind[1:]))
        for class_ in classes:
            yield Triple(EntityId(id_), "instance of" if id_ in entities else "subclass of", EntityId(class_))
        for relation in held.get("relations") or ():
            if relation.get("direction") == "forward":
                qualifiers = (relation.get("qualifiers") or {}).items()
                told = {key: "; ".join(map(_kqa_value, listed)) for key, listed in qualifiers} or NO_PROPERTIES
                yield Triple(EntityId(id_), str(relation["predicate"]), EntityId(str(relation["object"])), -1, told)


def _kqa_value(value: Any) -> str:
    """Return a value of KQA Pro with its unit, unless it is a mere number."""
    if not isinstance(value, dict):
        return str(value)
    unit = value.get("unit")
    return f"{value.get('value')} {unit}" if unit and unit != "1" else str(value.get("value"))


def _elements(file: TextFile, part: str, values: Iterable[Any]) -> Iterator[Node | Triple]:
    for number, value in enumerate(values):
        try:
            yield from read_record(file.path, None, value)
        except ImportFailed as error:
            raise ImportFailed(file.path, None, f"{part}[{number}]: {error.reason}") from error


def _parts(file: TextFile, document: Any) -> tuple[bool, list[dict[str, Any]], list[dict[str, Any]]]:
    """Return whether edges are directed, the nodes and the edges of a document."""
    place = document
    for key in ("graph", "elements", "graphs"):
        inner = place.get(key) if isinstance(place, dict) and not _list_of(place, _EDGES) else None
        inner = inner[0] if key == "graphs" and isinstance(inner, list) and inner else inner
        place = inner if isinstance(inner, dict | list) and inner else place
    if isinstance(place, list) and all(isinstance(each, dict) for each in place):  # Cytoscape without groups
        linked = ["source" in (each.get("data") or each) for each in place]
        nodes, edges = ([each for each, one in zip(place, linked, strict=True) if one == kind] for kind in (0, 1))
        return True, nodes, edges
    described, linking = _list_of(place, _NODES), _list_of(place, _EDGES)
    if described is None or linking is None:
        held = ", ".join(map(str, document)) if isinstance(document, dict) else type(document).__name__
        reason = f"this JSON has no lists of nodes and edges (nodes with links, edges or rels); it holds {held:.120}"
        raise ImportFailed(file.path, None, f"{reason}; export it as node-link, Cytoscape or APOC JSON")
    stated = [each.get("directed", each.get("edgedefault")) for each in (document, place) if isinstance(each, dict)]
    options = place.get("options")
    stated += [options.get("type")] if isinstance(options, dict) else []
    return not any(each is False or each == "undirected" for each in stated), described, linking


def _list_of(place: Any, names: Sequence[str]) -> list[dict[str, Any]] | None:
    """Return the list of objects under one of some keys; of objects by id, with their ids."""
    found = next((place[name] for name in names if name in place), None) if isinstance(place, dict) else None
    if isinstance(found, dict) and all(isinstance(each, dict) for each in found.values()):
        return [{"id": id_, **each} for id_, each in found.items()]
    return found if isinstance(found, list) and all(isinstance(each, dict) for each in found) else None


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an element with the properties that stand in an object within it."""
    wrapper = next((key for key in _WRAPPERS if isinstance(value.get(key), dict)), None)
    if wrapper is None:
        return {_OBO_GRAPH.get(key, key): each for key, each in value.items()}
    drawn = _DRAWN if wrapper == "data" and "id" not in value else ()
    own = {_OBO_GRAPH.get(key, key): each for key, each in value.items() if key != wrapper and key not in drawn}
    return {**value[wrapper], **own}


def _id_of(value: Mapping[str, Any], number: int) -> object:
    plain = _plain(value)
    if "identifier" in plain and "kind" in plain:
        return _hetionet_id([plain["kind"], plain["identifier"]])
    return next((plain[key] for key in _IDS if plain.get(key) not in (None, "")), number)


def _node(value: Mapping[str, Any], id_: object) -> dict[str, Any]:
    plain = _plain(value)
    names = {"name": plain["label"]} if "name" not in plain and isinstance(plain.get("label"), str) else {}
    types = {"type": plain["kind"]} if "identifier" in plain and "kind" in plain else {}
    if "name" in plain and "type" not in plain and isinstance(plain.get("label"), str):
        types = {"type": plain.pop("label")}
    return {**plain, **names, **types, "id": id_}


def _hetionet_id(parts: Sequence[object]) -> str:
    return "::".join(map(str, parts))


def _edge(value: Mapping[str, Any], ids: Sequence[object]) -> dict[str, Any]:
    """Return an edge with the ids of its ends, which may be places of nodes without ids."""
    plain = _plain(value)
    if "kind" in plain and isinstance(plain.get("source_id"), list):
        ends = {key: _hetionet_id(plain[key]) for key in ("source_id", "target_id") if isinstance(plain.get(key), list)}
        both = {"directed": False} if plain.pop("direction", "") == "both" else {}
        return {**plain, **both, **ends}
    for end in ("source", "target") if ids else ():
        if isinstance(place := plain.get(end), int) and not isinstance(place, bool) and 0 <= place < len(ids):
            plain[end] = ids[place]
    return plain


# Formats that NetworkX reads


def read_gexf(file: TextFile) -> Records:
    """Read GEXF. A document that declares entities is refused, as `graphml` does."""
    _check_xml(file)
    yield from _by_networkx(file, "GEXF", lambda networkx, text: networkx.read_gexf(io.BytesIO(text.encode())))


def read_gml(file: TextFile) -> Records:
    """Read the Graph Modelling Language."""
    if read_text(file).lstrip().startswith("<"):
        reason = "is XML, perhaps of the Geography Markup Language; a GML graph begins with `graph [`: export it anew"
        raise ImportFailed(file.path, None, reason)
    yield from _by_networkx(file, "GML", lambda networkx, text: networkx.parse_gml(text.splitlines(), label="id"))


def read_pajek(file: TextFile) -> Records:
    """Read a Pajek network."""
    if not re.search(r"^\s*\*vertices", read_text(file), re.IGNORECASE | re.MULTILINE):
        raise ImportFailed(file.path, None, "has no line *Vertices, with which a Pajek network begins; export it anew")
    yield from _by_networkx(file, "Pajek", _parse_pajek)


def _parse_pajek(networkx: Any, text: str) -> Any:
    """Return arcs and edges as one graph: read together, NetworkX makes all of them undirected."""
    parts = re.split(r"^(?=[ \t]*\*)", text, flags=re.MULTILINE)
    graph, other = (
        networkx.parse_pajek(
            [line for part in parts if not part.lstrip().lower().startswith(kind) for line in part.splitlines()]
        )
        for kind in ("*edges", "*arcs")
    )
    graph.add_edges_from((head, tail, {**own, DIRECTED: False}) for head, tail, own in other.edges(data=True))
    for _, attributes in graph.nodes(data=True):
        attributes.pop("id", None)  # a number within the file
    return graph


def _by_networkx(file: TextFile, name: str, parse: Callable[[Any, str], Any]) -> Records:
    networkx = import_extra("networkx", "networkx", f"reading {name}")
    text = read_text(file)
    try:
        graph = parse(networkx, text)
    except RecursionError:
        raise
    except Exception as error:  # NetworkX raises almost anything for a malformed file
        found = re.search(r"line:? ?#?([0-9]+)", str(error))
        reason = f"NetworkX cannot read it as {name}: {error or type(error).__name__}; correct or export it anew"
        raise ImportFailed(file.path, int(found[1]) if found else None, reason) from error
    named = any("name" in attributes for _, attributes in graph.nodes(data=True))
    yield from networkx_records(graph, name="name" if named else "label")


@contextmanager
def reading_xml(file: TextFile, parser: expat.XMLParserType) -> Iterator[BinaryIO]:
    """Open an XML document for a parser. Raises `ImportFailed`, naming the line, if it is none or declares entities."""

    def refuse(name: str, *more: object) -> None:
        reason = f"the document declares the entity {name!r}, which is not safe to read; write it out"
        raise ImportFailed(file.path, parser.CurrentLineNumber, reason)

    parser.EntityDeclHandler = refuse
    try:
        with file.reading(), file.open() as stream:
            yield stream
    except expat.ExpatError as error:
        reason = f"is no XML: {expat.ErrorString(error.code)}; correct the file"
        raise ImportFailed(file.path, error.lineno, reason) from error
    except LookupError as error:
        raise ImportFailed(file.path, 1, f"{error}; convert the file to UTF-8") from error


def _check_xml(file: TextFile) -> None:
    """Refuse a document that is not well-formed, is nested too deep, or declares entities. Raises `ImportFailed`."""
    parser = expat.ParserCreate()
    depth = 0

    def start(tag: str, attributes: object) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise ImportFailed(file.path, parser.CurrentLineNumber, f"elements are nested more than {_DEEPEST} deep")

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1

    parser.StartElementHandler, parser.EndElementHandler = start, end
    with reading_xml(file, parser) as stream:
        parser.ParseFile(stream)


_DEEPEST = 1000


def read_dot(file: TextFile) -> Records:
    """Read Graphviz's DOT: an edge between subgraphs joins all their nodes; its label is the relation."""
    from lark import Lark
    from lark.exceptions import UnexpectedInput

    text = read_text(file)
    try:
        tree = Lark(Path(__file__).with_name("dot.lark").read_text("utf-8"), parser="lalr").parse(text)
    except UnexpectedInput as error:
        place = error.get_context(text, 30).split("\n")[0].strip()
        line = error.line if isinstance(error.line, int) and error.line > 0 else None
        raise ImportFailed(file.path, line, f"is no DOT at {place!r}; correct the file") from error
    kind = next(str(token) for token in tree.children if getattr(token, "type", "") == "KIND").lower()
    graph = _DotGraph(kind == "graph")
    graph.read(tree.children[-1], {}, {})
    for id_, attributes in graph.nodes.items():
        label, kind_ = attributes.get("label", ""), attributes.get("type", "")
        shown = id_ if label in ("", "\\N") else label
        yield Node(EntityId(id_), shown, kind_, _without(attributes, "label", "type"))
    yield from graph.edges


class _DotGraph:
    """Nodes and edges of a DOT graph, read from its syntax tree."""

    def __init__(self, undirected: bool) -> None:
        self.nodes: dict[str, dict[str, str]] = {}
        self.edges: list[Triple] = []
        self._undirected = undirected

    def read(self, statements: Any, nodes: Mapping[str, str], edges: Mapping[str, str]) -> list[str]:
        """Read the statements of a graph or subgraph, given the attributes of nodes and of edges; return the nodes."""
        defaults = {"node": dict(nodes), "edge": dict(edges), "graph": {}}
        found: list[str] = []
        for one in statements.children:
            own = _dot_attributes(one.children[-1]) if one.data not in ("setting", "statement") else {}
            if one.data == "default":
                defaults[str(one.children[0]).lower()] |= own
            elif one.data == "node_statement":
                found += self._ends(one.children[0], defaults)
                self.nodes[found[-1]] |= own
            elif one.data == "edges":
                ends = [
                    self._ends(each, defaults) for each in one.children[0].children if getattr(each, "type", "") != "OP"
                ]
                attributes = {**defaults["edge"], **own}
                for heads, tails in pairwise(ends):
                    self.edges += [self._edge(head, tail, attributes) for head in heads for tail in tails]
                found += [each for some in ends for each in some]
            elif one.data == "statement":
                found += self._ends(one.children[0], defaults)
        return list(dict.fromkeys(found))

    def _ends(self, end: Any, defaults: Mapping[str, dict[str, str]]) -> list[str]:
        if end.data == "subgraph":
            return self.read(end.children[-1], defaults["node"], defaults["edge"])
        id_ = _dot_text(end.children[0])
        self.nodes.setdefault(id_, dict(defaults["node"]))
        return [id_]

    def _edge(self, head: str, tail: str, attributes: Mapping[str, str]) -> Triple:
        relation = attributes.get("label") or attributes.get("type") or DEFAULT_RELATION
        properties = _without(attributes, "label", *(() if attributes.get("label") else ("type",)))
        return Triple(EntityId(head), relation, EntityId(tail), -1, properties, self._undirected)


def _dot_attributes(lists: Any) -> dict[str, str]:
    """Return the attributes in brackets; none for a statement without."""
    if getattr(lists, "data", "") != "lists":
        return {}
    texts = [_dot_text(token) for token in lists.children]
    return dict(zip(texts[::2], texts[1::2], strict=False))


def _dot_text(token: object) -> str:
    text = str(token)
    if text.startswith("<"):
        return re.sub(r"<[^<>]*>", "", text[1:-1])
    return re.sub(r"\\(\"|\r?\n)", lambda found: found[1].strip(), text[1:-1]) if text.startswith('"') else text


def _without(attributes: Mapping[str, Any], *keys: str) -> Properties:
    return {key: value for key, value in attributes.items() if key not in keys} or NO_PROPERTIES


# Line by line


def read_sif(file: TextFile) -> Records:
    """Read Cytoscape's simple interaction format: a source, a relation and one target or more; a node alone."""
    for number, line in read_lines(file):
        fields = [field.strip() for field in (line.split("\t") if "\t" in line else line.split())]
        fields = [field for field in fields if field]
        if number == 1 and [field.lower() for field in fields] in (["source", "metaedge", "target"], _HEADER):
            continue
        if len(fields) == 2:
            reason = "has a source and a relation and no target; complete the line or delete it"
            raise ImportFailed(file.path, number, reason)
        if len(fields) == 1:
            yield Node(EntityId(fields[0]), fields[0])
        for target in fields[2:]:
            yield Triple(EntityId(fields[0]), fields[1], EntityId(target))


_HEADER = ["source", "interaction", "target"]

_OBO_VALUE = re.compile(r'"((?:\\.|[^"\\])*)"|((?:\\.|[^{!\\])*)')
_OBO_EDGES = {"is_a": 1, "relationship": 2, "intersection_of": 2, "union_of": 1, "disjoint_from": 1}
"""Tags that name terms, and how many words they have with a relation."""


def read_obo(file: TextFile) -> Records:
    """Read an OBO ontology: terms and instances are nodes, their relationships edges; obsolete ones have a property.

    Source: The OBO Flat File Format Specification, version 1.4.
    """
    stanza, tags = "", list[tuple[int, str, str]]()
    for number, line in read_lines(file):
        if line.startswith("[") and line.rstrip().endswith("]"):
            yield from _obo_stanza(file, stanza, tags)
            stanza, tags = line.strip()[1:-1], []
            continue
        tag, colon, value = line.partition(":")
        if not colon and not line.startswith("!"):
            raise ImportFailed(file.path, number, f"{line[:60]!r} is no `tag: value` of an OBO file; correct the line")
        if colon:
            tags.append((number, tag.strip(), value.strip()))
    yield from _obo_stanza(file, stanza, tags)


def _obo_stanza(file: TextFile, stanza: str, tags: Sequence[tuple[int, str, str]]) -> Records:
    found: dict[str, list[str]] = {}
    edges: list[tuple[str, str]] = []
    for number, tag, value in tags:
        match = _OBO_VALUE.match(value)
        text = re.sub(r"\\(.)", r"\1", (match[1] if match[1] is not None else match[2]).strip()) if match else ""
        parts = text.split()
        if tag == "instance_of" or tag in _OBO_EDGES:
            if not parts:
                raise ImportFailed(file.path, number, f"{tag} names no term; complete the line or delete it")
            edges.append((parts[0], parts[1]) if len(parts) > 1 and _OBO_EDGES.get(tag) == 2 else (tag, parts[0]))
        else:
            found.setdefault(tag, []).append(text)
    if not stanza:
        return
    id_ = found.pop("id", [""])[0]
    if not id_:
        raise ImportFailed(file.path, tags[0][0] if tags else None, f"a [{stanza}] has no id; add the line `id: …`")
    name = found.pop("name", [id_])[0]
    if stanza == "Typedef":
        yield Label(id_, name)
        return
    kind = found.pop("namespace", [stanza])[0]
    yield Node(EntityId(id_), name, kind, {tag: "; ".join(texts) for tag, texts in found.items()} or NO_PROPERTIES)
    for relation, end in edges:
        yield Triple(EntityId(id_), relation, EntityId(end))


def read_wikidata(file: TextFile, language: str = ENGLISH) -> Records:
    """Read Wikidata's JSON dump, one entity a line: the best statements, and names in a language if there is a choice.

    A statement whose value is an entity is an edge with its qualifiers as properties; other values are properties, of
    several the texts. `instance of` (P31) gives the types, too. Properties get their labels if the dump has them.
    """
    for number, line in read_lines(file):
        text = line.strip().rstrip(",")
        if text in ("[", "]"):
            continue
        try:
            entity = json.loads(text)
        except ValueError as error:
            reason = f"this is no JSON ({error}); each line of the dump is one entity: fetch the file again"
            raise ImportFailed(file.path, number, reason) from error
        if not isinstance(entity, dict) or not isinstance(entity.get("id"), str):
            raise ImportFailed(file.path, number, "this is no entity of Wikidata: it has no id; delete the line")
        yield from _shaped(file, number, _wikidata_entity(entity, language))


def _wikidata_entity(entity: Mapping[str, Any], language: str) -> Records:
    id_ = EntityId(entity["id"])
    name = _in_language(entity.get("labels"), language) or id_
    if entity.get("type") == "property":
        yield Label(id_, name)
        return
    properties: dict[str, Value] = {}
    if description := _in_language(entity.get("descriptions"), language):
        properties["description"] = description
    aliases = entity.get("aliases") or {}
    if isinstance(aliases, dict) and (others := aliases.get(language)):
        properties["aliases"] = "; ".join(each["value"] for each in others)
    edges, types = list[Triple](), list[str]()
    for relation, statements in (entity.get("claims") or {}).items():
        values = list[Value]()
        for statement in _best(statements):
            value, is_entity = _snak_value(statement.get("mainsnak") or {})
            if value is None:
                continue
            if not is_entity:
                values.append(value)
                continue
            told = {
                key: "; ".join(str(each) for snak in snaks if (each := _snak_value(snak)[0]) is not None)
                for key, snaks in (statement.get("qualifiers") or {}).items()
            }
            qualified = {key: text for key, text in told.items() if text}
            edges.append(Triple(id_, relation, EntityId(str(value)), -1, qualified or NO_PROPERTIES))
            types += [str(value)] if relation == "P31" else []
        if values:
            properties[relation] = values[0] if len(values) == 1 else "; ".join(map(str, values))
    types = list(dict.fromkeys(types))
    yield Node(id_, name, types[0] if types else "", properties or NO_PROPERTIES, tuple(types[1:]))
    yield from edges


def _in_language(texts: object, language: str) -> str:
    """Return a text in a language, else in all languages (`mul`), in English, or in any other, the first."""
    if not isinstance(texts, dict) or not texts:
        return ""
    wanted = [texts[code] for code in (language, "mul", ENGLISH) if code in texts]
    chosen = [*wanted, *texts.values()][0]
    return str(chosen.get("value", "")) if isinstance(chosen, dict) else ""


def _best(statements: Any) -> list[dict[str, Any]]:
    """Return the preferred statements, or those of normal rank without any."""
    listed = [each for each in statements if isinstance(each, dict)] if isinstance(statements, list) else []
    preferred = [each for each in listed if each.get("rank") == "preferred"]
    return preferred or [each for each in listed if each.get("rank") != "deprecated"]


def _snak_value(snak: Mapping[str, Any]) -> tuple[Value | None, bool]:
    """Return the value of a statement or qualifier, None if it has none, and whether it is an entity."""
    value = (snak.get("datavalue") or {}).get("value")
    if not isinstance(value, dict):
        return (value, False) if isinstance(value, str | int | float) else (None, False)
    if "id" in value:
        return str(value["id"]), True
    if "numeric-id" in value:
        return f"{'P' if value.get('entity-type') == 'property' else 'Q'}{value['numeric-id']}", True
    if "amount" in value:
        number = str(value["amount"]).removeprefix("+")
        return (int(number) if re.fullmatch(r"-?[0-9]{1,18}", number) else _float_or_text(number)), False
    if "time" in value:
        return _day(str(value["time"]), value.get("precision")), False
    if "latitude" in value:
        return f"{value['latitude']}, {value['longitude']}", False
    return (str(value["text"]), False) if "text" in value else (json.dumps(value, ensure_ascii=False), False)


def _float_or_text(number: str) -> Value:
    try:
        return float(number)
    except ValueError:
        return number


def _day(time: str, precision: object) -> str:
    """Return `+1952-03-11T00:00:00Z` as 1952-03-11, and as 1952 if it is only known by the year."""
    match = re.fullmatch(r"([+-][0-9]+)-([0-9]{2})-([0-9]{2})T.*", time)
    if match is None:
        return time
    year = match[1].removeprefix("+")
    exact = precision if isinstance(precision, int) else 11
    return f"{year}-{match[2]}-{match[3]}" if exact >= 11 else f"{year}-{match[2]}" if exact == 10 else year
