"""Random path queries on random graphs, compared with their definition in `paths_reference.py`.

python benchmarks/paths_differential.py SEED COUNT [--stores columnar,generic,rdf,oxigraph,sparql] [--show N]
                                        [--json FILE]

Graphs are small multigraphs with loops, parallel edges, types, properties, and nodes named like relations. Queries
have every selector and restrictor, patterns with conditions on all variables, START and END patterns, bounds and
offsets. Every case runs on the columnar store; `generic` uses the same graph through the protocol of stores without
arrays, `rdf` has graphs written as N-Triples and imported, in which equal edges are one and properties have several
values, `oxigraph` has one graph in fifty in pyoxigraph behind SPARQL, and `sparql` has pyoxigraph solve patterns of
VIA itself. Output: cases and mismatches by mode and feature; exit code 1 if there is any mismatch.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path as File
from typing import Any

ROOT = File(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.paths_reference import (  # noqa: E402
    END,
    START,
    Algebra,
    Edge,
    Iri,
    Lit,
    Path,
    Pattern,
    Query,
    Reference,
    Rule,
    SmallGraph,
    Var,
    Walk,
    inferred,
    is_step,
    literal,
    measure,
    nodes_of,
    picked,
    several,
)
from benchmarks.rows import Row, show  # noqa: E402
from byokg.errors import ByokgError  # noqa: E402
from byokg.graph.columnar.graph import ColumnarGraph  # noqa: E402
from byokg.graph.importers.choose import import_graph  # noqa: E402
from byokg.graph.pathql.evaluate import count as count_paths  # noqa: E402
from byokg.graph.pathql.evaluate import paths  # noqa: E402
from byokg.graph.pathql.expander import Bound  # noqa: E402
from byokg.graph.pathql.result import FoundPath, PathResult  # noqa: E402
from byokg.graph.rdf.terms import RDF_TYPE, XSD  # noqa: E402
from byokg.types import EntityId, Node, Triple  # noqa: E402
from tests.graph.test_own_store import OwnStore  # noqa: E402

RELATIONS, SPACE = "rst", "http://e/"
DATES = ("1999-12-31", "2000-01-01", "2001-09-30")
PROPERTIES: dict[str, Sequence[Any]] = {
    "born": DATES,
    "size": (0, 1, 2, 3),
    "score": (0.5, 1.5, 2.5),
    "tag": ("a", "b", "1", "n0", ""),
    "flag": (True, False),
}
SELECTORS = ("", "ALL", "ANY", "ANY 2", "ANY SHORTEST", "ALL SHORTEST", "SHORTEST 1", "SHORTEST 3", "SHORTEST 2 GROUPS")
CHOOSING = frozenset({"ANY", "ANY 2", "ANY SHORTEST", "SHORTEST 1", "SHORTEST 3"})
"""Selectors that may choose among paths of one length."""
MOST_MOVES = 60
QUERIES = 8
"""Queries asked of each graph."""


def made_graph(chance: random.Random) -> SmallGraph:
    """Make a graph up."""
    space = chance.choice(["", "", SPACE])
    names = [f"n{number}" for number in range(chance.randint(2, 4))] + chance.choice([[], [], ["r"]])
    typed, held = chance.random() < 0.5, [name for name in PROPERTIES if chance.random() < 0.5]
    nodes = {}
    for place, name in enumerate(names):
        kind: Any = space + chance.choice(["Even", "Odd"]) if typed and chance.random() < 0.8 else ()
        properties = {
            space + each: chance.choice(PROPERTIES[each]) for each in held if place == 0 or chance.random() < 0.6
        }
        nodes[space + name] = kind, properties
    edges = []
    for number in range(chance.randint(4, 9)):
        relation = space + (RELATIONS[number] if number < 3 else chance.choice(RELATIONS))
        head, tail = (space + chance.choice(names) for _ in range(2))
        weight = 0 if number == 0 else chance.choice([None, 1, 2])
        edges.append(Edge(number, head, relation, tail, weight))
    return SmallGraph(nodes, edges, space)


def stored(graph: SmallGraph) -> ColumnarGraph:
    """Return a graph as a columnar one."""
    triples = [
        Triple(
            EntityId(edge.head),
            edge.relation,
            EntityId(edge.tail),
            properties={"id": edge.number} | ({} if edge.weight is None else {f"{graph.space}w": edge.weight}),
        )
        for edge in graph.edges
    ]
    nodes = [Node(EntityId(name), name, kind or "", said) for name, (kind, said) in graph.nodes.items()]
    return ColumnarGraph.from_records(nodes, triples)


def as_rdf(graph: SmallGraph, chance: random.Random) -> SmallGraph:
    """Return what RDF can say of a graph: each edge once and without properties, and properties of several values."""
    triples = sorted({(edge.head, edge.relation, edge.tail) for edge in graph.edges})
    edges = [Edge(triple, *triple, None) for triple in triples]
    nodes = {}
    for name, (kind, properties) in graph.nodes.items():
        more: dict[str, Any] = {}
        for label, value in properties.items():
            other = chance.choice(PROPERTIES[label.removeprefix(graph.space)])
            more[label] = (value, other) if chance.random() < 0.3 and other != value else value
        if kind or more or any(name in (edge.head, edge.tail) for edge in edges):
            nodes[name] = (kind, f"{graph.space}Old") if kind and chance.random() < 0.4 else kind, more
    return SmallGraph(nodes, edges, graph.space, dated=True)


def imported(graph: SmallGraph, folder: File) -> ColumnarGraph:
    """Write a graph as N-Triples, and import it."""
    lines = [f"<{one}> <{relation}> {_n_triples(other)} ." for one, relation, other in map(_texts, graph.statements)]
    lines += [
        f"<{node}> <{RDF_TYPE}> <{kind}> ." for node, (kinds, _) in graph.nodes.items() for kind in several(kinds)
    ]
    file = folder / "graph.nt"
    file.write_text("\n".join(lines) + "\n")
    return import_graph(file)


def _texts(statement: tuple[Iri, Iri, Any]) -> tuple[str, str, Any]:
    return statement[0].text, statement[1].text, statement[2]


def _n_triples(value: Any) -> str:
    if isinstance(value, Iri):
        return f"<{value.text}>"
    if value.kind == "date":
        return f'"{value.value}"^^<{XSD}date>'
    datatype = {bool: "boolean", int: "integer", float: "double", str: "string"}[type(value.value)]
    return f'"{str(value.value).lower() if datatype == "boolean" else value.value}"^^<{XSD}{datatype}>'


# Queries


class Maker:
    """Makes patterns up for one graph."""

    def __init__(self, chance: random.Random, graph: SmallGraph) -> None:
        """Read the names of a graph."""
        self.chance, self.graph = chance, graph
        self.nodes = [Iri(name) for name in graph.nodes]
        self.relations = [Iri(graph.space + name) for name in RELATIONS]
        self.kinds = sorted({Iri(kind) for kinds, _ in graph.nodes.values() for kind in several(kinds)})
        self.properties = sorted({Iri(name) for _, said in graph.nodes.values() for name in said})
        self.unknown = Iri(f"{graph.space}unknown")
        self._fresh = 0

    def query(self) -> Query:
        """Make a query up."""
        chance = self.chance
        self._fresh = 0
        restrictor = chance.choice(["WALK", "TRAIL", "ACYCLIC", "SIMPLE", "", ""])
        most = chance.choice([None, None, None, 1, 2, 3])
        if restrictor in ("WALK", "TRAIL") or chance.random() < 0.5:
            most = chance.choice([0, *[1, 2, 2, 3, 3] * 4])
        kind = chance.random()
        undirected = False
        if kind < 0.08:
            via: Any = ("any", "p")
            undirected = chance.random() < 0.3
        elif kind < 0.18:
            via = ("path", self.path(1))
            undirected = is_step(via[1]) and chance.random() < 0.3
        elif kind < 0.28:
            via = ("matching", self.path(2))
            undirected = chance.random() < 0.2
        else:
            via = ("group", self.via())
        query = Query(
            via,
            chance.choice(SELECTORS),
            restrictor,
            chance.random() < 0.08,
            undirected,
            chance.choice([None, None, None, chance.choice(self.nodes).text]),
            self.around(START, END) if chance.random() < 0.2 else None,
            chance.choice([None, None, None, chance.choice(self.nodes).text]),
            self.around(END, START) if chance.random() < 0.2 else None,
            most,
            chance.choice([*[None] * 16, 0, 1, 2, 5]),
            chance.choice([*[None] * 20, 0, 1, 1, 50]),
        )
        named_weight = kind >= 0.28 and any(each[0] == "triple" and Var("w") in each[4] for each in via[1])
        one_edge = kind < 0.28 and (via[0] != "path" or is_step(via[1]))
        return replace(query, cost=named_weight or (one_edge and chance.random() < 0.2))

    def rules(self) -> list[Rule]:
        """Make rules up: compositions, inverses and sub-properties."""
        chance, (x, y, z) = self.chance, map(Var, "xyz")
        shapes: list[Any] = [
            ([(x, y), (y, z)], (x, z)),
            ([(x, y)], (y, x)),
            ([(x, y)], (x, y)),
            ([(x, y), (x, z)], (y, z)),
        ]
        made: list[Rule] = []
        for when, then in chance.choices(shapes, k=chance.randint(1, 2)):
            triples = [(one, chance.choice(self.relations), other) for one, other in when]
            made.append((triples, (then[0], chance.choice(self.relations), then[1])))
        return made

    def path(self, depth: int) -> Path:
        """Make an expression up."""
        chance, kind = self.chance, self.chance.random()
        if depth == 0 or kind < 0.3:
            return chance.choice(
                [
                    *(("r", relation) for relation in self.relations),
                    ("any",),
                    ("!", (chance.choice(self.relations),), ()),
                ]
            )
        if kind < 0.45:
            return ("^", self.path(depth - 1))
        if kind < 0.65:
            return ("|", self.path(depth - 1), self.path(depth - 1))
        if kind < 0.85:
            return ("/", self.path(depth - 1), self.path(depth - 1))
        return ("{}", self.path(depth - 1), *chance.choice([(0, None), (1, None), (0, 1), (1, 2), (2, 2)]))

    def via(self) -> Pattern:
        """Make a pattern up that binds both ends."""
        chance = self.chance
        s, e, p, m = Var(START), Var(END), Var("p"), Var("m")
        relation: Any = chance.choice(self.relations)
        notes = (chance.choice([Var("w"), literal(1)]),) if chance.random() < 0.15 else ()
        bases: list[list[Any]] = [
            [("triple", s, p, e, ())],
            [("triple", s, p, e, ())],
            [("triple", s, p, e, notes)],
            [("triple", e, p, s, ())],
            [("triple", s, relation, e, notes)],
            [("triple", s, relation, m, ()), ("triple", m, p, e, ())],
            [("triple", m, p, s, ()), ("triple", m, p, e, ())],
            [("triple", m, relation, s, ()), ("triple", m, relation, e, ())],
            [("triple", s, self.path(2), e, ())],
            [("union", [[("triple", s, p, e, ())], [("triple", e, p, s, ())]])],
            [("union", [[("triple", s, relation, e, ())], [("triple", e, p, s, ()), self.filter()]])],
            [("triple", s, p, m, ()), ("bind", m, END)],
            [("optional", [("triple", s, p, e, ())]), ("triple", e, relation, m, ())],
            [("group", [("triple", s, p, e, ()), self.filter()])],
            [("values", [START], [[node] for node in chance.sample(self.nodes, 2)]), ("triple", s, p, e, ())],
        ]
        group = chance.choice(bases)
        more = [self.element(2) for _ in range(chance.choice([0, 1, 1, 2, 3]))]
        if chance.random() < 0.2 and not any(element[0] == "bind" for element in group):
            return [*more, *group]
        return [*group, *more]

    def around(self, end: str, other: str) -> Pattern:
        """Make a pattern of START or END up."""
        chance, variable = self.chance, Var(end)
        if chance.random() < 0.15:
            group: list[Any] = [("triple", variable, Var("p"), Var(other), ())]
        elif chance.random() < 0.2:
            group = [("values", [end], [[node] for node in chance.sample(self.nodes, 2)])]
        else:
            group = [self.triple([end])]
            while Var(end) not in group[0]:
                group = [self.triple([end])]
        return group + [self.element(1) for _ in range(chance.choice([0, 1, 1]))]

    def variable(self) -> Var:
        """Choose a variable."""
        return Var(self.chance.choice([START, START, START, END, END, END, "p", "p", "p", "p", "m", "a", "v", "u"]))

    def triple(self, subjects: Sequence[str] = (START, END, "m", "a", "p")) -> Any:
        """Make a triple up that has one of some variables."""
        chance, subject = self.chance, Var(self.chance.choice(subjects))
        kind = chance.random()
        if kind < 0.25 and self.properties:
            name = chance.choice(self.properties)
            value = literal(chance.choice(PROPERTIES[name.text.removeprefix(self.graph.space)]), self.graph.dated)
            return ("triple", subject, name, chance.choice([Var("v"), Var("v"), value]), ())
        if kind < 0.4 and self.kinds:
            return ("type", subject, chance.choice([Var("k"), *self.kinds]))
        predicate: Any = chance.choice([Var("p"), Var("q"), *self.relations])
        other: Any = chance.choice([Var("a"), Var("m"), Var(START), Var(END), chance.choice(self.nodes), Var("v")])
        ends = (subject, other) if chance.random() < 0.6 else (other, subject)
        return ("triple", ends[0], predicate, ends[1], ())

    def element(self, depth: int) -> Any:
        """Make a part of a pattern up."""
        chance, kind = self.chance, self.chance.random()
        if kind < 0.45 or depth == 0:
            return self.filter(depth)
        if kind < 0.6:
            return self.triple()
        if kind < 0.68:
            return ("optional", self.group(depth - 1))
        if kind < 0.76:
            return ("minus", self.group(depth - 1))
        if kind < 0.82:
            return ("union", [self.group(depth - 1), self.group(depth - 1)])
        if kind < 0.86:
            return ("group", self.group(depth - 1))
        if kind < 0.93:
            names = chance.sample([START, END, "p", "a", "b"], chance.choice([1, 1, 2]))
            terms = [*self.nodes, *self.relations, self.unknown, None]
            return ("values", names, [[chance.choice(terms) for _ in names] for _ in range(chance.randint(0, 3))])
        self._fresh += 1
        return ("bind", self.operand(1), f"b{self._fresh}")

    def group(self, depth: int, plain: bool = False) -> Pattern:
        """Make a small group up; a `plain` one has triples and conditions alone."""
        chance = self.chance
        group = [self.triple()] if chance.random() < 0.9 else []
        for _ in range(chance.choice([0, 1, 1])):
            group.append(self.filter(depth, not plain) if plain or chance.random() < 0.6 else self.element(depth))
        return group or [self.triple()]

    def filter(self, depth: int = 1, exists: bool = True) -> Any:
        """Make a condition up."""
        return ("filter", self.condition(2, depth, exists))

    def condition(self, depth: int, nested: int, exists: bool = True) -> Any:
        """Make something up that is true or false, or fails."""
        chance, kind = self.chance, self.chance.random()
        if depth and kind < 0.12:
            return (chance.choice(["&&", "||"]), self.condition(depth - 1, 0), self.condition(depth - 1, 0))
        if depth and kind < 0.2:
            return ("!", self.condition(depth - 1, 0))
        if nested and exists and kind < 0.28:
            return ("exists", self.group(0, plain=True), chance.random() < 0.5)
        if kind < 0.5:
            name = Var(chance.choice([START, END, "p", "p", "p", "p", "q", "m", "k"]))
            terms = [*self.nodes, *self.relations, *self.relations, *self.kinds, *self.properties, self.unknown]
            term: Any = chance.choice(terms)
            sign = chance.choice(["=", "!=", "!=", "!=", "sameterm"])
            return (sign, name, term) if chance.random() < 0.8 else (sign, term, name)
        if kind < 0.6:
            members = [self.operand(0) for _ in range(chance.randint(0, 3))]
            among = ("in", self.variable(), members)
            return among if chance.random() < 0.5 else ("!", among)
        if kind < 0.7:
            text: Any = ("str", self.variable())
            part = literal(chance.choice(["n", "1", "r", "s", "", "n0", "http"]))
            pattern = literal(chance.choice(["[rs]$", "n[01]", "^n", "1|2", "."]))
            return chance.choice(
                [
                    (chance.choice(["contains", "strstarts", "strends"]), text, part),
                    ("regex", text, pattern),
                    ("=", text, literal(f"{self.graph.space}{chance.choice(['r', 's', 'n0', 'n1'])}")),
                    (chance.choice(["=", ">", "<="]), ("strlen", text), literal(chance.choice([1, 2, 11]))),
                ]
            )
        if kind < 0.78:
            return (chance.choice(["isiri", "isliteral", "isnumeric"]), self.variable())
        if kind < 0.84:
            return ("bound", self.variable().name)
        sign = chance.choice(["=", "!=", "<", "<=", ">", ">="])
        return (sign, self.operand(1), self.operand(1))

    def operand(self, depth: int) -> Any:
        """Make something up that has a value, or fails."""
        chance, kind = self.chance, self.chance.random()
        if depth and kind < 0.1:
            return (chance.choice("+-*/"), self.operand(0), self.operand(0))
        if depth and kind < 0.15:
            return ("if", self.condition(0, 0), self.operand(0), self.operand(0))
        if depth and kind < 0.2:
            return ("coalesce", self.operand(0), self.operand(0))
        if depth and kind < 0.25:
            return ("str", self.variable())
        if kind < 0.65:
            return self.variable()
        if kind < 0.8:
            return chance.choice([*self.nodes, *self.relations, self.unknown])
        return literal(chance.choice([0, 1, 2, 0.5, 1.5, "a", "1", "n0", True, False, *DATES]), self.graph.dated)


# Text


class Writer:
    """Writes queries as text."""

    def __init__(self, space: str, tight: bool = False) -> None:
        """Leave out a namespace, which is that of the empty prefix; `tight` leaves out brackets and spaces as well."""
        self.space, self._tight = space, tight

    def query(self, query: Query) -> str:
        """Write a query."""
        kind, via = query.via
        parts = [f"PREFIX : <{self.space}>"] if self.space else []
        parts += ["PATHS", query.selector, query.restrictor, "CYCLIC" if query.cyclic else ""]
        sides = (("START", START, query.start, query.start_pattern), ("END", END, query.end, query.end_pattern))
        for word, name, node, pattern in sides:
            parts.append(f"{word} ?{name}" + (f" = {self.term(Iri(node))}" if node else ""))
            parts += [] if pattern is None else [self.group(pattern)]
        way = "UNDIRECTED " if query.undirected else ""
        match kind:
            case "any":
                parts.append(f"VIA {way}?{via}")
            case "path":
                parts.append(f"VIA {way}{self.path(via)}")
            case "matching":
                parts.append(f"MATCHING {way}{self.path(via)}")
            case "group":
                parts.append(f"VIA {self.group(via)}")
        parts += [f"COST {'?' if kind == 'group' else ':'}w"] if query.cost else []
        for word, value in (("MAX LENGTH", query.most), ("OFFSET", query.offset), ("LIMIT", query.limit)):
            parts += [] if value is None else [f"{word} {value}"]
        return " ".join(filter(None, parts))

    def rules(self, rules: Sequence[Rule]) -> str:
        """Write rules."""
        lines = [f"PREFIX : <{self.space}>"] if self.space and rules else []
        for when, then in rules:
            body, head = (" . ".join(" ".join(map(self.term, each)) for each in side) for side in (when, (then,)))
            lines.append(f"IF {{ {body} }} THEN {{ {head} }}")
        return "\n".join(lines)

    def term(self, term: Any) -> str:
        """Write a variable, a name or a literal."""
        match term:
            case Var(name):
                return f"?{name}"
            case Iri(text):
                return f":{text.removeprefix(self.space)}"
            case Lit("text", value):
                return f'"{value}"'
            case Lit("date", value):
                return f'"{value}"^^xsd:date'
            case Lit("truth", value):
                return "true" if value else "false"
            case Lit(_, value):
                return str(value)
        return self.path(term)

    def path(self, path: Path) -> str:
        """Write an expression."""
        match path:
            case ("^", inner):
                return f"^({self.path(inner)})"
            case (("/" | "|") as sign, one, other):
                return f"({self.path(one)}{sign}{self.path(other)})"
            case ("{}", inner, least, most):
                times = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most), f"{{{least},{most}}}")
                return f"({self.path(inner)}){times}"
            case ("!", forward, backward):
                return "!(" + "|".join([*map(self.term, forward), *(f"^{self.term(each)}" for each in backward)]) + ")"
            case ("any",):
                return "!()"
        return self.term(path[1])

    def group(self, group: Pattern) -> str:
        """Write a pattern."""
        return "{ " + " ".join(map(self.element, group)) + " }"

    def element(self, element: Any) -> str:
        """Write a part of a pattern."""
        match element:
            case ("triple", subject, predicate, object_, notes):
                said = "".join(f" {{| :w {self.term(note)} |}}" for note in notes)
                return f"{self.term(subject)} {self.term(predicate)} {self.term(object_)}{said} ."
            case ("type", subject, object_):
                return f"{self.term(subject)} a {self.term(object_)} ."
            case ("filter", expression):
                return f"FILTER({self.expression(expression)})"
            case ("bind", expression, name):
                return f"BIND({self.expression(expression)} AS ?{name})"
            case ("optional" | "minus", group):
                return f"{element[0].upper()} {self.group(group)}"
            case ("group", group):
                return self.group(group)
            case ("union", groups):
                return " UNION ".join(map(self.group, groups))
        _, names, rows = element
        cells = ("(" + " ".join("UNDEF" if each is None else self.term(each) for each in row) + ")" for row in rows)
        return f"VALUES ({' '.join(f'?{name}' for name in names)}) {{ {' '.join(cells)} }}"

    def expression(self, expression: Any) -> str:
        """Write a condition or a computation."""
        match expression:
            case Var() | Iri() | Lit():
                return self.term(expression)
            case ("bound", name):
                return f"BOUND(?{name})"
            case ("exists", group, negated):
                return f"{'NOT ' if negated else ''}EXISTS {self.group(group)}"
            case ("in", one, members):
                return f"{self.expression(one)} IN ({', '.join(map(self.expression, members))})"
            case ("!", ("in", one, members)):
                return f"{self.expression(one)} NOT IN ({', '.join(map(self.expression, members))})"
            case ("!", inner):
                return f"!({self.expression(inner)})"
        name, *arguments = expression
        if not name.isalpha():
            sides = [
                self.expression(each)
                if self._tight and isinstance(each, Var | Lit) and each[0] != "date"
                else f"({self.expression(each)})"
                for each in arguments
            ]
            return (name if self._tight else f" {name} ").join(sides)
        return f"{name}({', '.join(map(self.expression, arguments))})"


# Comparison


Labels = Mapping[str, str]
"""What labels of relations and types stand for, where that is not the text itself."""


def labels_of(store: Any) -> Labels:
    """Return the IRIs behind the labels of a graph."""
    source = getattr(store, "source", None) or {}
    spaces: Labels = source.get("prefixes") or {}
    schema = store.schema()
    labels = [*store.relations, *(name for names in schema.node_properties.values() for name in names)]
    pairs = ((label, label.partition(":")) for label in labels)
    expanded = {label: spaces[prefix] + local for label, (prefix, sign, local) in pairs if sign and prefix in spaces}
    return expanded | dict(source.get("types") or {})


def plain(bound: Bound, labels: Labels) -> Any:
    """Return what the engine says a variable stands for as the reference does."""
    if bound.kind == "literal":
        return literal(bound.value)
    return Iri(labels.get(str(bound.value), str(bound.value)))


Key = tuple[tuple[str, ...], tuple[Any, ...]]


def key_of(path: FoundPath, by_edge: bool, labels: Labels) -> Key:
    """Return what tells a found path apart."""
    if by_edge:
        triples = [edge.triples[0] for edge in path.edges]
        return path.nodes, tuple(
            each.properties.get("id", (each.head, labels.get(each.relation, each.relation), each.tail))
            for each in triples
        )
    return path.nodes, tuple(
        tuple(sorted((name, plain(bound, labels)) for name, bound in edge.bindings.items())) for edge in path.edges
    )


def walk_key(walk: Walk) -> Key:
    """Return the same of a walk of the reference."""
    return nodes_of(walk), tuple(move.edge.number if move.edge else undated(move.bindings) for move in walk[1])


def undated(bindings: Iterable[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
    """Return what variables stand for, dates as texts: where the two are equal, the first one met is shown."""
    values = ((name, Lit("text", value[1]) if value[0] == "date" else value) for name, value in bindings)
    return tuple(sorted(values))


def sizes(query: Query, walks: Sequence[Walk]) -> list[Any]:
    """Return what the walks of a pair are chosen by, in order."""
    return sorted(measure(query, walk) for walk in walks)


def difference(query: Query, reference: Reference, result: PathResult, labels: Labels) -> str:
    """Return how an answer differs from the definition; nothing where it does not."""
    moves = reference.moves(query)
    by_edge = bool(moves) and moves[0].edge is not None
    expected = reference.answers(query)
    total = sum(len(picked(query.selector, sizes(query, walks))) * len(more) for walks, more in expected.values())
    wanted = max(total - (query.offset or 0), 0)
    wanted = wanted if query.limit is None else min(wanted, query.limit)
    if len(result) != wanted:
        return f"{len(result)} paths, and there are {wanted}"
    if result.truncated:
        return "truncated"
    whole = query.limit is None and not query.offset
    found: dict[tuple[str, str], dict[Key, Counter[Any]]] = {}
    lengths: dict[tuple[str, str], list[Any]] = {}
    for path in result:
        pair = str(path.start), str(path.end)
        key = key_of(path, by_edge, labels)
        bindings = tuple(sorted((name, plain(bound, labels)) for name, bound in path.bindings.items()))
        counts = found.setdefault(pair, {}).setdefault(key, Counter())
        if not counts:
            lengths.setdefault(pair, []).append(path.cost if query.cost else len(path.edges))
        counts[bindings] += 1
    for pair, keys in found.items():
        if pair not in expected:
            return f"paths of {pair}, which has none"
        walks, more = expected[pair]
        around = Counter(undated(each.items()) for each in more)
        known = {walk_key(walk) for walk in walks}
        right = picked(query.selector, sizes(query, walks))
        if not keys.keys() <= known:
            return f"{min(keys.keys() - known, key=str)} is no path"
        if any(counts - around or (whole and counts != around) for counts in keys.values()):
            return f"bindings of {pair} differ: {around}"
        if (whole and lengths[pair] != right) or Counter(lengths[pair]) - Counter(right):
            return f"lengths of {pair} are {lengths[pair]}, and should be {right}"
    return ""


def is_sparql(graph: SmallGraph, group: Pattern) -> bool:
    """Return whether pyoxigraph may solve a pattern.

    Types are no triples here, edges have properties, expressions have more signs and lead to no literals; and
    pyoxigraph 0.5 has `IN ()` fail, which is false, and orders IRIs.
    """
    typed = any(kind for kind, _ in graph.nodes.values())
    return bool(graph.space) and not typed and _is_sparql(list(group))


def _is_sparql(part: Any) -> bool:
    match part:
        case Var() | Iri() | Lit() | str() | bool() | None:
            return True
        case ("triple", _, _, _, (_, *_)) | ("any",) | ("!", _, _) | ("in", _, []):
            return False
        case ("<" | "<=" | ">" | ">=", one, _) if one[0] != "strlen":
            return False
        case ("{}", inner, least, most):
            return (least, most) == (1, None) and _is_sparql(inner)
    return all(map(_is_sparql, part))


def solved_by_sparql(graph: SmallGraph, group: Pattern) -> str:
    """Return how pyoxigraph's solutions of a pattern differ from those of the definition."""
    import pyoxigraph

    engine = pyoxigraph.Store()

    def term(value: Any) -> Any:
        if isinstance(value, Iri):
            return pyoxigraph.NamedNode(value.text)
        if value.kind == "date":
            return pyoxigraph.Literal(value.value, datatype=pyoxigraph.NamedNode(f"{XSD}date"))
        if isinstance(value.value, float):
            return pyoxigraph.Literal(str(value.value), datatype=pyoxigraph.NamedNode(f"{XSD}decimal"))
        return pyoxigraph.Literal(value.value)

    def back(value: Any) -> Any:
        if isinstance(value, pyoxigraph.NamedNode):
            return Iri(value.value)
        kind = value.datatype.value.rpartition("#")[2]
        text = value.value
        if kind in ("boolean", "date"):
            return literal(text, dated=True) if kind == "date" else literal(text == "true")
        return literal(text if kind == "string" else int(text) if kind == "integer" else float(text))

    for statement in graph.statements:
        engine.add(pyoxigraph.Quad(*map(term, statement)))
    text = f"PREFIX : <{graph.space}> PREFIX xsd: <{XSD}> SELECT * WHERE {Writer(graph.space).group(group)}"
    try:
        solutions = engine.query(text)
    except SyntaxError as error:
        return f"SPARQL: {error} in {text}"
    assert isinstance(solutions, pyoxigraph.QuerySolutions)
    names = [variable.value for variable in solutions.variables]
    found = {tuple(sorted((name, back(row[name])) for name in names if row[name] is not None)) for row in solutions}
    expected = {tuple(sorted(each.items())) for each in Algebra(graph).solve(group)}
    return "" if found == expected else f"SPARQL: {sorted(found ^ expected, key=str)[:3]} in {text}"


def kinds_in(part: Any) -> Iterator[str]:
    """Yield the kinds of elements and expressions in a pattern."""
    if isinstance(part, tuple) and part and isinstance(part[0], str) and not isinstance(part, Var | Iri | Lit):
        yield part[0]
    if isinstance(part, tuple | list) and not isinstance(part, Var | Iri | Lit):
        for each in part:
            yield from kinds_in(each)


def features(query: Query) -> list[str]:
    """Return what a query has, for the table."""
    named = {
        "cyclic": query.cyclic,
        "undirected": query.undirected,
        "start": query.start,
        "end": query.end,
        "start pattern": query.start_pattern,
        "end pattern": query.end_pattern,
        "MAX LENGTH": query.most is not None,
        "LIMIT": query.limit is not None,
        "OFFSET": query.offset is not None,
        "COST": query.cost,
    }
    kinds = {
        kind for group in (query.via[1], query.start_pattern or (), query.end_pattern or ()) for kind in kinds_in(group)
    }
    shown = {"!": "not", "=": "equal", "!=": "unequal", "sameterm": "sameTerm", "regex": "regex", "in": "IN"}
    elements = {"filter", "optional", "minus", "union", "values", "bind", "exists", "type", "group"}
    return [
        f"mode {query.selector or 'default'}",
        f"restrictor {query.restrictor or 'default'}",
        f"via {query.via[0]}",
        *(name for name, there in named.items() if there),
        *sorted(f"pattern {shown.get(kind, kind)}" for kind in kinds & (elements | shown.keys())),
    ]


@dataclass
class Case:
    """A query on a graph, and how answers differ."""

    graph: SmallGraph
    query: Query
    text: str
    rules: str
    differences: list[str] = field(default_factory=list)
    found: int = 0
    """Paths of the last store."""


def cases(seed: int, count: int, stores: Sequence[str] = ("columnar",)) -> Iterator[Case]:
    """Make cases up, and compare answers with the definition."""
    chance = random.Random(seed)
    made = 0
    while made < count:
        with ExitStack() as stack:
            graph = made_graph(chance)
            opened: dict[str, Any] = {"columnar": stored(graph)}
            if "generic" in stores:
                opened["generic"] = OwnStore(opened["columnar"])
            if "oxigraph" in stores and made // QUERIES % 50 == 0:
                from byokg.graph.engines.oxigraph import build_oxigraph

                folder = File(stack.enter_context(tempfile.TemporaryDirectory()))
                opened["oxigraph"] = stack.enter_context(build_oxigraph(opened["columnar"], folder / "store"))
            if "rdf" in stores and graph.space and chance.random() < 0.5:
                folder = File(stack.enter_context(tempfile.TemporaryDirectory()))
                graph = as_rdf(graph, chance)
                opened = {"rdf": imported(graph, folder)}
            maker, writer = Maker(chance, graph), Writer(graph.space, chance.random() < 0.3)
            rules = maker.rules() if chance.random() < 0.1 else []
            whole = inferred(graph, rules)
            reference, written = Reference(whole), writer.rules(rules)
            for _ in range(min(QUERIES, count - made)):
                query = bounded(maker.query(), reference)
                case = Case(whole, query, writer.query(query), written)
                for name, store in opened.items():
                    if rules and name not in ("columnar", "rdf"):
                        continue
                    case.differences += compared(name, store, reference, case)
                if "sparql" in stores and query.via[0] == "group" and is_sparql(whole, query.via[1]):
                    case.differences += filter(None, [solved_by_sparql(whole, query.via[1])])
                made += 1
                yield case


def bounded(query: Query, reference: Reference) -> Query:
    """Return a query with a bound where listing all walks would take long."""
    moves = len(reference.moves(query))
    if moves > MOST_MOVES:
        return replace(query, most=min(1 if query.most is None else query.most, 1))
    if moves > MOST_MOVES // 4 and (query.most is None or query.most > 2):
        return replace(query, most=2)
    return query


def compared(name: str, store: Any, reference: Reference, case: Case) -> list[str]:
    """Return how the answer of a store differs."""
    try:
        result = paths(store, case.text, rules=case.rules or None)
        case.found = len(result)
        said = difference(case.query, reference, result, labels_of(store))
        if not said and not case.rules:
            counted = count_paths(store, case.text)
            said = "" if counted == (len(result), False) else f"{counted} counted, and there are {len(result)}"
    except ByokgError as error:
        said = f"{type(error).__name__}: {error}"
    return [f"{name}: {said}"] if said else []


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument(
        "--stores", default="columnar,generic,rdf,oxigraph,sparql", help="stores compared with the definition"
    )
    parser.add_argument("--show", type=int, default=5, help="mismatches to print in full")
    parser.add_argument("--json", type=File)
    options = parser.parse_args(arguments)
    asked: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    mismatches = answered = 0
    for case in cases(options.seed, options.count, options.stores.split(",")):
        named = features(case.query) + (["rules"] if case.rules else [])
        asked.update(named)
        answered += case.found > 0
        if case.differences:
            wrong.update(named)
            mismatches += 1
            if mismatches <= options.show:
                print(case.text, case.rules, *case.differences, case.graph.edges, case.graph.nodes, sep="\n  ")
    rows = [Row("cases", options.count), Row("cases with paths", answered), Row("mismatches", mismatches)]
    for name in sorted(asked):
        rows += [Row(f"{name}: cases", asked[name]), Row(f"{name}: mismatches", wrong[name])]
    show(rows, f"Path queries beside their definition, seed {options.seed}", options.json)
    return 1 if mismatches else 0


if __name__ == "__main__":
    sys.exit(main())
