"""Cypher scripts that create a graph, such as `apoc.export.cypher` and example data: read, and executed nowhere.

Read are CREATE and MERGE of patterns, MATCH of nodes by labels and properties, UNWIND of a written list, SET, REMOVE
and WITH of plain variables. Constraints, indexes, transactions (`:begin`, `:commit`), RETURN and the rest of its
statement are passed over.
The labels and ids that APOC adds for its own import (`UNIQUE IMPORT LABEL`) are left out. All is held until the end,
since later statements may change it.

Ids are a node's property `id` if all nodes have one of their own, else numbers in the order of creation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from typing import Any, TypeAlias

from byokg.errors import ImportFailed
from byokg.files import TextFile
from byokg.graph.guard.guard import unquoted
from byokg.graph.guard.tokens import Cursor, Token, Unreadable, cypher_name, cypher_pattern, place, tokenise
from byokg.graph.importers.table_stream import Records, spelled
from byokg.types import NO_PROPERTIES, EntityId, Node, Properties, Triple, Value

_STATEMENT = re.compile(
    r"""\s*+(?:(?::|(?:begin|commit|schema\s+await)\s*\n)[^\n]*+\n?
    | (?:[^;'"`/]++ | '[^'\\]*+(?:\\.[^'\\]*+)*+' | "[^"\\]*+(?:\\.[^"\\]*+)*+" | `[^`]*+` | //[^\n]*+
    | /\*.*?\*/ | /(?![/*]))*+;)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
"""One statement with its semicolon, or one line for the shell."""

_TEXT = r"""(?:'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+")"""
_NAME = r"(?:`[^`\\]++`(?!`)|[^\W\d]\w*+)"
_SCALAR = rf"{_TEXT}|-?(?:0|[1-9]\d*+)(?:\.\d++)?+(?:[eE][+-]?\d++)?+(?![\w.])|(?i:true|false|null)\b"
_PART_OF_LITERAL = re.compile(rf"(?P<text>{_TEXT})|(?P<key>{_NAME})(?=\s*:)|(?P<word>[^\W\d]\w*)", re.DOTALL)

_LITERAL_DEPTH = 4
"""Brackets within one another of a literal that is read as a whole: a list of maps of maps of lists."""

_IMPORT_MARK = "UNIQUE IMPORT "
"""How the label and the property begin that APOC adds for its own import."""

_PASSED = ("CONSTRAINT", "INDEX", "FULLTEXT", "VECTOR", "UNIQUE", "RANGE", "TEXT", "POINT", "LOOKUP", "BTREE")
"""Words behind CREATE or DROP in statements about the schema."""

_CHANGES = ("CREATE", "MERGE", "SET", "REMOVE", "DELETE")
"""Clauses that change a graph."""

_LONGEST = 1 << 28
"""Characters of a statement at most."""

_TIMES = ("DATE", "DATETIME", "LOCALDATETIME", "LOCALTIME", "TIME", "DURATION")

Bound: TypeAlias = "dict[str, Any]"
"""Values of variables: nodes, edges, literals, lists and maps."""


@dataclass(eq=False, slots=True)
class _CreatedNode:
    number: int
    labels: dict[str, None] = field(default_factory=dict)
    properties: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class _CreatedEdge:
    head: _CreatedNode
    relation: str
    tail: _CreatedNode
    properties: dict[str, Any] = field(default_factory=dict)


def read_cypher(file: TextFile) -> Records:
    """Yield the nodes and then the edges that a script creates.

    Raises:
        ImportFailed: a statement cannot be read; names its line.
    """
    script = _Script()
    for line, statement in _statements(file):
        try:
            tokens, _ = tokenise(statement, 0, len(statement), _match_part, _named_token, _LONGEST)
            _StatementReader(tokens, script).read()
        except Unreadable as error:
            row, _ = place(statement, error.start)
            reason = f"at {error.found!r}: {error.reason}; load the script into Neo4j and give the server's address"
            raise ImportFailed(file.path, line + row - 1, reason) from error
    own = [node.properties.get("id") for node in script.nodes]
    keyed = all(isinstance(id_, str | int) for id_ in own) and len({str(id_) for id_ in own}) == len(own)
    ids = [EntityId(str(id_) if keyed else str(number)) for number, id_ in enumerate(own)]
    for node, id_ in zip(script.nodes, ids, strict=True):
        labels = [label for label in node.labels if not label.startswith(_IMPORT_MARK)]
        name = node.properties.get("name", node.properties.get("title"))
        properties = {key: value for key, value in _flat(node.properties).items() if key != "name"}
        shown = spelled(name) if isinstance(name, str | int | float) and name != "" else id_
        yield Node(id_, shown, labels[0] if labels else "", properties or NO_PROPERTIES, tuple(labels[1:]))
    for edge in script.edges:
        yield Triple(ids[edge.head.number], edge.relation, ids[edge.tail.number], -1, _flat(edge.properties))


def _statements(file: TextFile) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each statement. Raises `ImportFailed` for one that never ends."""
    text, line = "", 1
    blocks = file.line_blocks()
    while True:
        block = next(blocks, b"")
        decoded = block.decode(errors="surrogateescape")
        if not decoded.isascii():
            for number, each in enumerate(decoded.split("\n"), line + text.count("\n")):
                file.check_text(number, each)
        text += decoded if block else ";" if text.strip() else ""
        at = 0
        while match := _STATEMENT.match(text, at):
            found = match[0]
            at = match.end()
            if not found.lstrip().startswith(":") and found.rstrip().endswith(";"):
                yield line, found[:-1]
            line += found.count("\n")
        text = text[at:]
        if not block:
            if text.strip():
                break
            return
        if len(text) > _LONGEST:
            break
    line += text[: len(text) - len(text.lstrip())].count("\n")
    reason = f"the statement {text.strip()[:40]!r} never ends: a quote or a comment is not closed; complete the file"
    raise ImportFailed(file.path, line, reason)


@cache
def _literal_pattern() -> re.Pattern[str]:
    """Return the pattern of a list or map of constants, which JSON can express."""
    value = composed = _SCALAR
    for _ in range(_LITERAL_DEPTH):
        listed, mapped = (
            rf"{opened}\s*+(?:{key}(?:{value})\s*+(?:,\s*+(?!{closed})|(?={closed})))*+{closed}"
            for opened, key, closed in ((r"\[", "", r"\]"), (r"\{", rf"(?:{_NAME}|{_TEXT})\s*+:\s*+", r"\}"))
        )
        composed = f"{listed}|{mapped}"
        value = f"{_SCALAR}|{composed}"
    return re.compile(f"(?P<literal>{composed})", re.DOTALL)


def _match_part(text: str, start: int, stop: int) -> re.Match[str] | None:
    """Match a literal list or map as one token: most of a script is literals, and JSON is quick to read."""
    literal = _literal_pattern().match(text, start, stop) if text[start] in "[{" else None
    return literal or cypher_pattern().match(text, start, stop)


def _named_token(kind: str, text: str, start: int, stop: int) -> Token:
    return Token(kind, text[start:stop], start, stop) if kind == "literal" else cypher_name(kind, text, start, stop)


def _literal(text: str) -> Any:
    """Return the value of a literal list or map."""
    return json.loads(_PART_OF_LITERAL.sub(_json_part, text), strict=False)


def _json_part(part: re.Match[str]) -> str:
    text = part[0]
    match part.lastgroup:
        case "key":
            return json.dumps(text.strip("`"))
        case "word":
            return text.lower()
    return text if text[0] == '"' and "\\" not in text else json.dumps(unquoted(text))


class _Script:
    """The nodes and edges that the statements so far have created."""

    def __init__(self) -> None:
        self.nodes: list[_CreatedNode] = []
        self.edges: list[_CreatedEdge] = []
        self._between: dict[tuple[int, str, int], _CreatedEdge] = {}
        self._index: dict[tuple[str, str], dict[Any, list[_CreatedNode]]] = {}
        """Nodes by a label and a property, made when first asked for."""

    def create(self, labels: Mapping[str, None], properties: Mapping[str, Any]) -> _CreatedNode:
        """Create a node."""
        node = _CreatedNode(len(self.nodes), dict(labels), dict(properties))
        self.nodes.append(node)
        for label in labels:
            self._add(node, label)
        return node

    def _add(self, node: _CreatedNode, new: str) -> None:
        for (label, key), held in self._index.items():
            if label == new and key in node.properties:
                held.setdefault(_hashable(node.properties[key]), []).append(node)

    def label(self, node: _CreatedNode, label: str) -> None:
        """Add a label to a node."""
        if label not in node.labels:
            node.labels[label] = None
            self._add(node, label)

    def assign(self, target: _CreatedNode | _CreatedEdge, values: Mapping[str, Any]) -> None:
        """Set properties; null removes one."""
        for key, value in values.items():
            if target.properties.get(key) == value:
                continue
            target.properties.pop(key, None)
            if value is not None:
                target.properties[key] = value
            if isinstance(target, _CreatedNode):
                self._index = {pair: held for pair, held in self._index.items() if pair[1] != key}

    def join(self, edge: _CreatedEdge, merged: bool) -> tuple[_CreatedEdge, bool]:
        """Return an edge, or with `merged` one that is there between the same nodes; and True if it is new."""
        between = edge.head.number, edge.relation, edge.tail.number
        if merged and between in self._between:
            return self._between[between], False
        self.edges.append(edge)
        self._between.setdefault(between, edge)
        return edge, True

    def find(self, labels: Mapping[str, None], properties: Mapping[str, Any]) -> list[_CreatedNode]:
        """Return the nodes that have some labels and properties."""
        some = self.nodes
        if labels and properties:
            label, key = next(iter(labels)), next(iter(properties))
            held = self._index.get((label, key))
            if held is None:
                held = self._index[label, key] = {}
                for node in self.nodes:
                    if label in node.labels and key in node.properties:
                        held.setdefault(_hashable(node.properties[key]), []).append(node)
            some = held.get(_hashable(properties[key]), [])
        return [
            node
            for node in some
            if labels.keys() <= node.labels.keys()
            and all(node.properties.get(key) == value for key, value in properties.items())
        ]


def _hashable(value: Any) -> Any:
    return str(value) if isinstance(value, list | dict) else value


class _StatementReader(Cursor):
    """One statement, clause by clause, with a row of variables for each element of an UNWIND."""

    def __init__(self, tokens: list[Token], script: _Script) -> None:
        super().__init__(tokens)
        self._script = script
        self._rows: list[Bound] = [{}]

    def unexpected(self, reason: str) -> Unreadable:
        """Return the error for the current token."""
        token = self.token
        return Unreadable(token.text or "the end", token.start, reason)

    def advance(self) -> Token:
        """Go on to the next token, and return the one before. Raises `Unreadable` at the end."""
        token = self.tokens[self.at]
        if token.key == "end":
            raise self.unexpected("the statement ends too early")
        self.at += 1
        self.key = self.tokens[self.at].key
        return token

    def read(self) -> None:
        """Read all clauses. Raises `Unreadable` for one that cannot be read."""
        while self.key != "end":
            clause = self.advance()
            if clause.key in ("CREATE", "DROP") and (self.key in _PASSED or self.ahead() in _PASSED):
                return
            if clause.key in ("RETURN", "BEGIN", "COMMIT", "SHOW", "USE") or (
                clause.key == "CALL" and self.key == "DB"
            ):
                return
            if clause.key in ("CREATE", "MERGE"):
                self._over_rows(partial(self._created, clause.key == "MERGE"))
            elif clause.key in ("MATCH", "OPTIONAL"):
                self.accept("MATCH")
                if all(token.key not in _CHANGES for token in self.tokens[self.at :]) or self._marks():
                    return
                self._match()
            elif clause.key == "UNWIND":
                self._unwind()
            elif clause.key == "WITH":
                self._with()
            elif clause.key in ("SET", "REMOVE"):
                self._over_rows(partial(self._changed, self._set if clause.key == "SET" else self._remove))
            else:
                self.go_to(self.at - 1)
                raise self.unexpected("this clause is not read; a script creates nodes and edges and nothing else")

    def _marks(self) -> bool:
        """True if all that APOC's import has marked is matched, to be unmarked."""
        labels = [token.text for before, token in pairwise(self.tokens) if before.key == ":"]
        return all(label.startswith(_IMPORT_MARK) for label in labels) and not {"{", "literal"} & {
            one.key for one in self.tokens
        }

    def _over_rows(self, read: Callable[[Bound], object]) -> None:
        """Read the same tokens once for each row."""
        start = stop = self.at
        for row in self._rows or [{}]:
            self.go_to(start)
            if self._rows:
                read(row)
            else:
                self._skip_clause()
            stop = self.at
        self.go_to(stop)

    def _skip_clause(self) -> None:
        while self.key not in (*_CHANGES, "MATCH", "UNWIND", "WITH", "RETURN", "ON", "end"):
            self.advance()

    def _unwind(self) -> None:
        rows, start = list[Bound](), self.at
        for row in self._rows:
            self.go_to(start)
            values = self._value(row)
            self.expect("AS")
            name = self.advance().text
            rows += [{**row, name: value} for value in (values if isinstance(values, list) else [values])]
        self._rows = rows

    def _with(self) -> None:
        """Keep some variables, under other names perhaps; a limit on the number of rows means nothing here."""
        rows, start = list[Bound](), self.at
        for row in self._rows or [{}]:
            self.go_to(start)
            if self.accept("*"):
                rows.append(row)
                continue
            kept: Bound = {}

            def keep(row: Bound = row, kept: Bound = kept) -> None:
                name = self.token.text
                value = self._value(row)
                kept[self.advance().text if self.accept("AS") else name] = value

            self.separated(keep)
            rows.append(kept)
        if self.accept("LIMIT"):
            self.expect("number")
        self._rows = rows if self._rows else []

    def _match(self) -> None:
        rows, start, stop = list[Bound](), self.at, self.at
        for row in self._rows or [{}]:
            self.go_to(start)
            found = [dict(row)] if self._rows else []

            def match(row: Bound = row) -> None:
                nonlocal found
                name, labels, properties = self._node_pattern(row)
                if self.key in ("-", "<"):
                    raise self.unexpected("MATCH of an edge is not read; only nodes are found by their properties")
                if name in row:
                    return
                nodes = self._script.find(labels, properties) if labels or properties else self._script.nodes
                found = [{**each, name: node} for each in found for node in nodes]

            self.separated(match)
            stop = self.at
            rows += found
        self.go_to(stop)
        if self.key == "WHERE":
            raise self.unexpected("WHERE is not read; write the properties inside the pattern")
        self._rows = rows

    # Patterns

    def _created(self, merged: bool, row: Bound) -> None:
        """Create the patterns of one row, or find those that are there already."""
        self.separated(lambda: self._path(row, merged))
        while self.key == "ON":
            self.advance()
            on_create = self.advance().key == "CREATE"
            self.expect("SET")
            if row.get("\0fresh", True) == on_create:
                self._changed(self._set, row)
            else:
                self._skip_clause()

    def _path(self, row: Bound, merged: bool) -> None:
        if self.ahead() == "=" and self.key not in ("(",):
            self.go_to(self.at + 2)  # a name of the path
        head = self._end(row, merged)
        while self.key in ("-", "<"):
            backward = self.accept("<")
            self.expect("-")
            name, relation, properties = "", "", dict[str, Any]()
            start = self.token
            if self.accept("["):
                name, labels, properties = self._inside(row, "]")
                relation = next(iter(labels), "")
            if not relation:
                raise Unreadable(start.text, start.start, "the edge has no type; write one as in -[:KNOWS]->")
            self.expect("-")
            forward = self.accept(">")
            tail = self._end(row, merged)
            ends = (tail, head) if backward and not forward else (head, tail)
            edge, row["\0fresh"] = self._script.join(_CreatedEdge(ends[0], relation, ends[1], properties), merged)
            if name:
                row[name] = edge
            head = tail

    def _end(self, row: Bound, merged: bool) -> _CreatedNode:
        start = self.token
        name, labels, properties = self._node_pattern(row)
        if name in row:
            if not isinstance(row[name], _CreatedNode):
                raise Unreadable(start.text, start.start, f"{name!r} is no node here")
            found: _CreatedNode = row[name]
            return found
        there = self._script.find(labels, properties)[:1] if merged and (labels or properties) else []
        node = there[0] if there else self._script.create(labels, properties)
        row["\0fresh"] = not there
        if name:
            row[name] = node
        return node

    def _node_pattern(self, row: Bound) -> tuple[str, dict[str, None], dict[str, Any]]:
        self.expect("(")
        return self._inside(row, ")")

    def _inside(self, row: Bound, close: str) -> tuple[str, dict[str, None], dict[str, Any]]:
        """Read variable, labels and properties of a pattern, and the bracket that closes it."""
        name = "" if self.key in (":", "{", "literal", close) else self.advance().text
        labels: dict[str, None] = {}
        while self.accept(":") or self.accept("&"):
            labels[self.advance().text] = None
        properties = self._value(row) if self.key in ("{", "literal") else {}
        self.expect(close)
        return name, labels, {key: value for key, value in properties.items() if value is not None}

    # Changes

    def _changed(self, change: Callable[[Bound], None], row: Bound) -> None:
        self.separated(partial(change, row))

    def _set(self, row: Bound) -> None:
        start = self.advance()
        target = row.get(start.text)
        if not isinstance(target, _CreatedNode | _CreatedEdge):
            raise Unreadable(start.text, start.start, "SET names no node or edge of this statement")
        if self.accept("."):
            key = self.advance().text
            self.expect("=")
            self._script.assign(target, {key: self._value(row)})
        elif self.key in ("=", "+="):
            whole = self.advance().key == "="
            value = self._value(row)
            if not isinstance(value, dict):
                raise Unreadable(start.text, start.start, "SET of a whole node takes a map of properties")
            self._script.assign(target, (dict.fromkeys(target.properties) if whole else {}) | value)
        elif self.key == ":" and isinstance(target, _CreatedNode):
            while self.accept(":"):
                self._script.label(target, self.advance().text)
        else:
            raise self.unexpected("expected = or += or a label behind SET")

    def _remove(self, row: Bound) -> None:
        target = row.get(self.advance().text)
        labelled = self.advance().key == ":"
        name = self.advance().text
        if isinstance(target, _CreatedNode) and labelled:
            target.labels.pop(name, None)
        elif isinstance(target, _CreatedNode | _CreatedEdge):
            self._script.assign(target, {name: None})

    # Values

    def _map(self, row: Bound) -> dict[str, Any]:
        self.expect("{")
        found: dict[str, Any] = {}

        def entry() -> None:
            token = self.advance()
            key = unquoted(token.text) if token.key == "string" else token.text
            self.expect(":")
            found[key] = self._value(row)

        self.listed(entry, "}")
        return found

    def _value(self, row: Bound) -> Any:
        """Read a literal, or a variable and its properties. Raises `Unreadable` for another expression."""
        token = self.token
        if self.key == "{":
            return self._map(row)
        self.advance()
        match token.key:
            case "literal":
                return _literal(token.text)
            case "string":
                return unquoted(token.text)
            case "number":
                return _number(token)
            case "-" | "+" if self.key == "number":
                return _number(self.advance()) * (-1 if token.key == "-" else 1)
            case "TRUE" | "FALSE":
                return token.key == "TRUE"
            case "NULL":
                return None
            case "[":
                values: list[Any] = []
                self.listed(lambda: values.append(self._value(row)), "]")
                return values
        if self.key == "(" and (token.key in _TIMES or token.key == "POINT"):
            self.advance()
            value = self._value(row)
            self.expect(")")
            return value if token.key in _TIMES else _written(value)
        if token.text not in row:
            raise Unreadable(token.text, token.start, "expected a literal or a variable of this statement")
        value = row[token.text]
        while self.accept("."):
            key = self.advance().text
            value = value.get(key) if isinstance(value, dict) else getattr(value, "properties", {}).get(key)
        return value


def _number(token: Token) -> int | float:
    text = token.text.replace("_", "").lower()
    try:
        return int(text, 0) if text.isdigit() or text[:2] in ("0x", "0o") else float(text)
    except ValueError:
        return int(text)  # leading zeros


def _written(value: Any) -> str:
    """Return a map or list as Cypher writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_written(each)}" for key, each in value.items()) + "}"
    return "[" + ", ".join(map(_written, value)) + "]" if isinstance(value, list) else str(value)


def _flat(properties: Mapping[str, Any]) -> Properties:
    """Return properties as they are kept: a list is the texts of its elements, a map as it is written."""
    found: dict[str, Value] = {}
    for key, value in properties.items():
        if key.startswith(_IMPORT_MARK) or value is None:
            continue
        if isinstance(value, list):
            found[key] = ";".join(_written(each) for each in value)
        else:
            found[key] = value if isinstance(value, str | int | float | bool) else _written(value)
    return found or NO_PROPERTIES
