"""Path queries by their definition, on graphs of a few nodes: reference of `paths_differential.py` and the tests.

Nothing here imports the package. A pattern is solved by SPARQL's algebra, from the inside out, by trying every
statement; walks are listed one by one, and selectors, restrictors and bounds pick from the list. The semantics are
those of docs/path-queries.md and of Stardog's page. A pattern is a list of elements, and an element or expression a
tuple that begins with its kind:

    ("triple", s, p, o, notes) ("type", s, o) ("filter", e) ("bind", e, x) ("values", xs, rows)
    ("optional", group) ("minus", group) ("union", groups) ("group", group)

Terms are `Var`, `Iri` and `Lit`; in the place of a relation there may be an expression of `Path` too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple


class Var(NamedTuple):
    """A variable."""

    name: str


class Iri(NamedTuple):
    """A node, relation, property or type."""

    text: str


class Lit(NamedTuple):
    """A number, text, date or truth value."""

    kind: str
    value: Any


_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def literal(value: Any, dated: bool = False) -> Lit:
    """Return a value as a literal; texts that look like dates are dates where a graph has any."""
    if dated and isinstance(value, str) and _DATE.fullmatch(value):
        return Lit("date", value)
    return Lit("truth" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "text", value)


Path = tuple[Any, ...]
"""("r", iri), ("any",), ("!", iris, iris), ("^", x), ("/", x, y), ("|", x, y), ("{}", x, least, most)."""

Solution = Mapping[str, Any]
Pattern = Sequence[Any]


class Failed(Exception):
    """An expression has no value."""


class Edge(NamedTuple):
    """An edge, with a number of its own in the property `id`; what tells an inferred one apart are its ends."""

    number: Any
    head: str
    relation: str
    tail: str
    weight: int | None


@dataclass
class SmallGraph:
    """A graph: nodes with their type and properties, and edges."""

    nodes: dict[str, tuple[Any, dict[str, Any]]]
    """Type, and properties; a tuple stands for several of them."""
    edges: list[Edge]
    space: str = ""
    """What all ids and labels begin with: nothing, or a namespace."""
    dated: bool = False
    """Whether dates are another kind of literals than texts."""
    statements: list[tuple[Iri, Iri, Any]] = field(init=False)

    def __post_init__(self) -> None:
        said = {(Iri(edge.head), Iri(edge.relation), Iri(edge.tail)) for edge in self.edges}
        self.statements = sorted(said) + [
            (Iri(node), Iri(name), literal(value, self.dated))
            for node, (_, properties) in self.nodes.items()
            for name, values in properties.items()
            for value in several(values)
        ]


Rule = tuple[Sequence[tuple[Any, ...]], tuple[Any, ...]]
"""Triples that follow together, and the one that follows from them: subject, relation and object each."""


def inferred(graph: SmallGraph, rules: Sequence[Rule]) -> SmallGraph:
    """Return a graph with all edges that follow from rules."""
    while True:
        known = {(edge.head, edge.relation, edge.tail) for edge in graph.edges}
        fresh = set()
        for when, (subject, relation, object_) in rules:
            for solution in Algebra(graph).solve([("triple", *triple, ()) for triple in when]):
                ends = [solution[end.name] if isinstance(end, Var) else end for end in (subject, object_)]
                if all(isinstance(end, Iri) for end in ends):
                    fresh.add((ends[0].text, relation.text, ends[1].text))
        if fresh <= known:
            return graph
        edges = [Edge(triple, *triple, None) for triple in sorted(fresh - known)]
        graph = SmallGraph(graph.nodes, graph.edges + edges, graph.space, graph.dated)


def several(values: Any) -> tuple[Any, ...]:
    """Return values, or the one value that there is; the type of a node without one is an empty tuple."""
    return values if isinstance(values, tuple) else (values,)


# Patterns


def _bind(solution: Solution, term: Any, value: Any) -> Solution | None:
    """Return a solution in which a term stands for a value; None where it cannot."""
    if not isinstance(term, Var):
        return solution if term == value else None
    if term.name in solution:
        return solution if solution[term.name] == value else None
    return {**solution, term.name: value}


def _agree(one: Solution, other: Solution) -> bool:
    return all(other.get(name, value) == value for name, value in one.items())


def _unique(solutions: list[Solution]) -> list[Solution]:
    return [dict(each) for each in dict.fromkeys(tuple(sorted(solution.items())) for solution in solutions)]


class Algebra:
    """Solves patterns on a graph."""

    def __init__(self, graph: SmallGraph) -> None:
        """Read a graph."""
        self.graph = graph

    def solve(self, group: Pattern) -> list[Solution]:
        """Return the solutions of a group, each once."""
        solutions: list[Solution] = [{}]
        for element in group:
            if element[0] != "filter":
                solutions = _unique(self._joined(element, solutions))
        conditions = [element[1] for element in group if element[0] == "filter"]
        return [each for each in solutions if all(self.holds(condition, each) for condition in conditions)]

    def _joined(self, element: Any, solutions: list[Solution]) -> list[Solution]:
        match element:
            case ("triple" | "type", *_):
                return self._join(solutions, self._matches(element))
            case ("group", group):
                return self._join(solutions, self.solve(group))
            case ("union", groups):
                return self._join(solutions, [each for group in groups for each in self.solve(group)])
            case ("values", names, rows):
                table: list[Solution] = [
                    {name: value for name, value in zip(names, row, strict=True) if value is not None} for row in rows
                ]
                return self._join(solutions, table)
            case ("bind", expression, name):
                found: list[Solution] = []
                for each in solutions:
                    try:
                        found.append({**each, name: self.value(expression, each)})
                    except Failed:
                        found.append(dict(each))
                return found
            case ("optional", group):
                conditions = [inner[1] for inner in group if inner[0] == "filter"]
                more = self.solve([inner for inner in group if inner[0] != "filter"])
                longer: list[Solution] = []
                for each in solutions:
                    merged: list[Solution] = [{**each, **other} for other in more if _agree(each, other)]
                    held = [every for every in merged if all(self.holds(test, every) for test in conditions)]
                    longer += held or [each]
                return longer
            case ("minus", group):
                less = self.solve(group)
                return [
                    each
                    for each in solutions
                    if not any(_agree(each, other) and each.keys() & other.keys() for other in less)
                ]
        raise AssertionError(element)

    @staticmethod
    def _join(one: list[Solution], other: list[Solution]) -> list[Solution]:
        return [{**first, **second} for first in one for second in other if _agree(first, second)]

    def _matches(self, element: Any) -> list[Solution]:
        if element[0] == "type":
            _, subject, object_ = element
            triples = [
                (Iri(node), Iri(kind)) for node, (kinds, _) in self.graph.nodes.items() for kind in several(kinds)
            ]
            return self._ends(subject, object_, triples)
        _, subject, predicate, object_, notes = element
        if isinstance(predicate, tuple) and not isinstance(predicate, Var | Iri):
            ends = [(Iri(one), Iri(other)) for one, other in sorted(self.pairs(predicate))]
            return self._ends(subject, object_, ends)
        found: list[Solution] = []
        if notes:
            for edge in self.graph.edges:
                solution: Solution | None = {}
                weight = None if edge.weight is None else literal(edge.weight)
                terms = [(subject, Iri(edge.head)), (predicate, Iri(edge.relation)), (object_, Iri(edge.tail))]
                for term, value in [*terms, *((note, weight) for note in notes)]:
                    solution = None if solution is None or value is None else _bind(solution, term, value)
                if solution is not None:
                    found.append(solution)
            return found
        for one, relation, other in self.graph.statements:
            solution = {}
            for term, value in ((subject, one), (predicate, relation), (object_, other)):
                solution = None if solution is None else _bind(solution, term, value)
            if solution is not None:
                found.append(solution)
        return found

    @staticmethod
    def _ends(subject: Any, object_: Any, pairs: Sequence[tuple[Iri, Iri]]) -> list[Solution]:
        found = []
        for one, other in pairs:
            first = _bind({}, subject, one)
            both = None if first is None else _bind(first, object_, other)
            if both is not None:
                found.append(both)
        return found

    def pairs(self, path: Path) -> set[tuple[str, str]]:
        """Return from where to where an expression leads."""
        match path:
            case ("^", inner):
                return {(other, one) for one, other in self.pairs(inner)}
            case ("/", first, second):
                left, right = self.pairs(first), self.pairs(second)
                return {(one, end) for one, middle in left for again, end in right if middle == again}
            case ("|", first, second):
                return self.pairs(first) | self.pairs(second)
            case ("{}", inner, least, most):
                step, power = self.pairs(inner), {(node, node) for node in self.graph.nodes}
                found: set[tuple[str, str]] = set()
                for count in range((len(self.graph.nodes) + least if most is None else most) + 1):
                    found |= power if count >= least else set()
                    power = {(one, end) for one, middle in power for again, end in step if middle == again}
                return found
        return {
            (edge.tail, edge.head) if way == "b" else (edge.head, edge.tail)
            for edge in self.graph.edges
            for way in "fb"
            if fits(path, edge.relation, way)
        }

    # Conditions

    def holds(self, expression: Any, solution: Solution) -> bool:
        """Return whether a condition holds."""
        try:
            return _truth(self.value(expression, solution))
        except Failed:
            return False

    def value(self, expression: Any, solution: Solution) -> Any:
        """Return the term that an expression stands for. Raises `Failed`."""
        match expression:
            case Var(name):
                if name not in solution:
                    raise Failed
                return solution[name]
            case Iri() | Lit():
                return expression
            case ("bound", name):
                return literal(name in solution)
            case ("exists", group, negated):
                return literal(bool(self.solve(substituted(group, solution))) != negated)
            case (("&&" | "||") as sign, *parts):
                return literal(self._junction(sign == "||", parts, solution))
            case ("in", one, members):
                value = self.value(one, solution)
                equal = [("=", value, member) for member in members]
                return literal(self._junction(True, equal, solution))
            case ("if", condition, one, other):
                return self.value(one if _truth(self.value(condition, solution)) else other, solution)
            case ("coalesce", *parts):
                for part in parts:
                    try:
                        return self.value(part, solution)
                    except Failed:
                        continue
                raise Failed
        name, *arguments = expression
        return literal(_computed(name, [self.value(argument, solution) for argument in arguments]))

    def _junction(self, either: bool, parts: Sequence[Any], solution: Solution) -> bool:
        failed = False
        for part in parts:
            try:
                if _truth(self.value(part, solution)) == either:
                    return either
            except Failed:
                failed = True
        if failed:
            raise Failed
        return not either


def _truth(value: Any) -> bool:
    if not isinstance(value, Lit):
        raise Failed
    return bool(value.value)


def _text(value: Any) -> str:
    if isinstance(value, Iri):
        return value.text
    return str(value.value).lower() if value.kind == "truth" else str(value.value)


def _number(value: Any) -> Any:
    if not isinstance(value, Lit) or value.kind != "number":
        raise Failed
    return value.value


_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}
_OF_TEXT: dict[str, Callable[..., Any]] = {
    "str": lambda text: text,
    "strlen": len,
    "ucase": str.upper,
    "contains": lambda text, part: part in text,
    "strstarts": lambda text, part: text.startswith(part),
    "strends": lambda text, part: text.endswith(part),
    "regex": lambda text, pattern: re.search(pattern, text) is not None,
    "concat": lambda *texts: "".join(texts),
}
_OF_NUMBERS: dict[str, Callable[..., Any]] = {
    "+": lambda one, other: one + other,
    "-": lambda one, other: one - other,
    "*": lambda one, other: one * other,
    "abs": abs,
}


def _computed(name: str, values: list[Any]) -> Any:
    first = values[0]
    match name:
        case "=" | "sameterm":
            return first == values[1]
        case "!=":
            return first != values[1]
        case "!":
            return not _truth(first)
        case "isiri":
            return isinstance(first, Iri)
        case "isliteral":
            return isinstance(first, Lit)
        case "isnumeric":
            return isinstance(first, Lit) and first.kind == "number"
        case "/":
            if _number(values[1]) == 0:
                raise Failed
            return _number(first) / _number(values[1])
    if name in _ORDER:
        if not all(isinstance(value, Lit) for value in values) or values[0].kind != values[1].kind:
            raise Failed
        return _ORDER[name](values[0].value, values[1].value)
    if name in _OF_TEXT:
        return _OF_TEXT[name](*map(_text, values))
    return _OF_NUMBERS[name](*map(_number, values))


def substituted(part: Any, solution: Solution) -> Any:
    """Return a pattern or expression with the values of a solution in the place of its variables."""
    match part:
        case Var(name):
            return solution.get(name, part)
        case Iri() | Lit() | str() | int() | float() | bool() | None:
            return part
        case ("bound", name):
            return literal(True) if name in solution else part
        case list():
            return [substituted(each, solution) for each in part]
    return tuple(substituted(each, solution) for each in part)


# Walks


def fits(path: Path, relation: str, way: str, inverse: bool = False) -> bool:
    """Return whether an expression of one step matches an edge walked forward (`f`) or backward (`b`)."""
    match path:
        case ("^", inner):
            return fits(inner, relation, way, not inverse)
        case ("|", one, other):
            return fits(one, relation, way, inverse) or fits(other, relation, way, inverse)
        case ("!", forward, backward):
            return any(
                names and Iri(relation) not in names and (way == side) != inverse
                for names, side in ((forward, "f"), (backward, "b"))
            )
        case ("any",):
            return (way == "f") != inverse
        case ("r", iri):
            return (way == "f") != inverse and iri.text == relation
    raise AssertionError(path)


def is_step(path: Path) -> bool:
    """Return whether every match of an expression is one edge."""
    match path:
        case ("^", inner):
            return is_step(inner)
        case ("|", one, other):
            return is_step(one) and is_step(other)
    return path[0] in ("any", "!", "r")


class Move(NamedTuple):
    """One edge of a path, from a node to a node."""

    start: str
    end: str
    key: tuple[Any, ...]
    """What tells it from others between the same nodes."""
    bindings: tuple[tuple[str, Any], ...] = ()
    edge: Edge | None = None
    ways: str = ""

    @property
    def cost(self) -> Any:
        """Return the weight of the edge, or what the variable `w` stands for; None where there is none."""
        if self.edge is not None:
            return self.edge.weight
        weight = dict(self.bindings).get("w")
        return weight.value if isinstance(weight, Lit) and weight.kind == "number" else None


Walk = tuple[str, tuple[Move, ...]]


def nodes_of(walk: Walk) -> tuple[str, ...]:
    """Return the nodes of a walk."""
    return (walk[0], *(move.end for move in walk[1]))


def fulfils(restrictor: str, walk: Walk) -> bool:
    """Return whether a walk has no repetition that a restrictor forbids."""
    nodes, keys = nodes_of(walk), [(move.key if move.edge else (move.start, move.end, *move.key)) for move in walk[1]]
    match restrictor:
        case "WALK":
            return True
        case "TRAIL":
            return len(set(keys)) == len(keys)
        case "ACYCLIC":
            return len(set(nodes)) == len(nodes)
    inner = nodes[1:] if len(nodes) > 1 and nodes[0] == nodes[-1] else nodes
    return len(set(inner)) == len(inner)


def _beginnings(restrictor: str, walk: Walk) -> bool:
    """Return whether a longer walk may still fulfil a restrictor."""
    closed = restrictor == "SIMPLE" and len(walk[1]) > 0 and walk[0] == nodes_of(walk)[-1]
    return not closed and fulfils(restrictor, walk)


@dataclass(frozen=True)
class Query:
    """A path query."""

    via: Any
    """("any", x), ("path", expression), ("matching", expression) or ("group", pattern)."""
    selector: str = ""
    restrictor: str = ""
    cyclic: bool = False
    undirected: bool = False
    start: str | None = None
    start_pattern: Pattern | None = None
    end: str | None = None
    end_pattern: Pattern | None = None
    most: int | None = None
    limit: int | None = None
    offset: int | None = None
    cost: bool = False
    """Whether the property `w`, which is the variable of that name in a pattern, adds up in the place of edges."""


START, END = "s", "e"


def as_step(group: Pattern) -> tuple[Path, str | None] | None:
    """Return the one-step expression, and the variable of the relation, that a pattern of one triple stands for."""
    match group:
        case [("triple", Var(one), predicate, Var(other), ())] if {one, other} == {START, END}:
            path: Path
            if isinstance(predicate, Var):
                if predicate.name in (START, END):
                    return None
                path, name = ("any",), predicate.name
            else:
                path, name = ("r", predicate) if isinstance(predicate, Iri) else predicate, None
            return (path if one == START else ("^", path)), name
        case [("union", groups)]:
            parts = [as_step(each) for each in groups]
            if any(part is None for part in parts) or len({part[1] for part in parts if part}) != 1:
                return None
            paths = [part[0] for part in parts if part]
            joined: Path = paths[0]
            for each in paths[1:]:
                joined = ("|", joined, each)
            return joined, parts[0][1] if parts[0] else None
    return None


class Reference:
    """Answers path queries on a graph by their definition."""

    def __init__(self, graph: SmallGraph) -> None:
        """Read a graph."""
        self.graph, self.algebra = graph, Algebra(graph)

    def moves(self, query: Query) -> list[Move]:
        """Return what one edge of a path may be; with costs, those that have one."""
        return [move for move in self._moves(query) if not query.cost or move.cost is not None]

    def _moves(self, query: Query) -> list[Move]:
        kind, via = query.via
        path: Path
        name: str | None = None
        if kind == "any":
            path, name = ("any",), via
        elif kind == "group":
            step = as_step(via)
            if step is None:
                return self._solutions(via)
            path, name = step
        else:
            path = via
        if query.undirected:
            path = ("|", path, ("^", path))
        if kind == "matching":
            return [move for edge in self.graph.edges for move in self._edge(edge, "fb", None)]
        if is_step(path):
            found: list[Move] = []
            for edge in self.graph.edges:
                ways = "".join(way for way in "fb" if fits(path, edge.relation, way))
                found += self._edge(edge, ways, name)
            return found
        if query.undirected:
            raise AssertionError("expressions of several steps are not asked about in both directions")
        return [Move(one, other, ()) for one, other in sorted(self.algebra.pairs(path))]

    @staticmethod
    def _edge(edge: Edge, ways: str, name: str | None) -> Iterator[Move]:
        bindings = () if name is None else ((name, Iri(edge.relation)),)
        for way in ways[:1] if edge.head == edge.tail else ways:
            one, other = (edge.head, edge.tail) if way == "f" else (edge.tail, edge.head)
            yield Move(one, other, (edge.number,), bindings, edge, ways if edge.head == edge.tail else way)

    def _solutions(self, group: Pattern) -> list[Move]:
        found = []
        for solution in self.algebra.solve(group):
            ends = [solution[name] for name in (START, END) if name in solution]
            nodes = [end.text for end in ends if isinstance(end, Iri) and end.text in self.graph.nodes]
            if len(nodes) == 2:
                rest = tuple(sorted((name, value) for name, value in solution.items() if name not in (START, END)))
                found.append(Move(nodes[0], nodes[1], rest, rest))
        return found

    def answers(self, query: Query) -> dict[tuple[str, str], tuple[list[Walk], list[Solution]]]:
        """Return all paths of each pair, shortest first, and the solutions of both patterns that join them."""
        restrictor = query.restrictor or "SIMPLE"
        leaving: dict[str, list[Move]] = {node: [] for node in self.graph.nodes}
        for move in self.moves(query):
            leaving[move.start].append(move)
        whole = query.via[1] if query.via[0] == "matching" else None
        if whole is not None and query.undirected:
            whole = _either_way(whole)
        found: dict[tuple[str, str], list[Walk]] = {}
        queue: list[Walk] = [(node, ()) for node in self.graph.nodes if query.start in (None, node)]
        for walk in queue:  # grows while it is gone through
            end = nodes_of(walk)[-1]
            matched = len(walk[1]) > 0 if whole is None else len(walk[1]) in _cuts(whole, walk[1], 0)
            round_trip = end == walk[0] and len(walk[1]) > 0
            if matched and fulfils(restrictor, walk) and query.end in (None, end) and (round_trip or not query.cyclic):
                found.setdefault((walk[0], end), []).append(walk)
            if (query.most is None or len(walk[1]) < query.most) and _beginnings(restrictor, walk):
                queue += [(walk[0], (*walk[1], move)) for move in leaving[end]]
        return {pair: (walks, around) for pair, walks in found.items() if (around := self._around(query, pair))}

    def _around(self, query: Query, pair: tuple[str, str]) -> list[Solution]:
        """Return the solutions of both ends' patterns that agree with a pair of nodes."""
        at = {START: Iri(pair[0]), END: Iri(pair[1])}
        sides = []
        for pattern in (query.start_pattern, query.end_pattern):
            solutions = [{}] if pattern is None else self.algebra.solve(pattern)
            sides.append([each for each in solutions if _agree(each, at)])
        for pattern, name, side in zip((query.start_pattern, query.end_pattern), (START, END), (0, 1), strict=True):
            if pattern is not None:
                sides[side] = [each for each in sides[side] if name in each]
        return [
            {name: value for name, value in {**one, **other}.items() if name not in at}
            for one, other in product(*sides)
            if _agree(one, other)
        ]


def _either_way(path: Path) -> Path:
    """Return an expression each step of which may be walked either way."""
    if is_step(path):
        return ("|", path, ("^", path))
    return tuple(_either_way(part) if isinstance(part, tuple) else part for part in path)


def _cuts(path: Any, walk: tuple[Move, ...], begin: int, inverse: bool = False) -> set[int]:
    """Return where matches of an expression end that begin at a move."""
    match path:
        case ("^", inner) if not is_step(inner):
            return _cuts(inner, walk, begin, not inverse)
        case ("/", one, other):
            first, second = (other, one) if inverse else (one, other)
            middles = _cuts(first, walk, begin, inverse)
            return {end for middle in middles for end in _cuts(second, walk, middle, inverse)}
        case ("|", one, other) if not is_step(path):
            return _cuts(one, walk, begin, inverse) | _cuts(other, walk, begin, inverse)
        case ("{}", inner, least, most):
            ends, found = {begin}, set()
            for count in range((len(walk) + least if most is None else most) + 1):
                found |= ends if count >= least else set()
                ends = {end for middle in ends for end in _cuts(inner, walk, middle, inverse)}
            return found
    if begin >= len(walk) or (move := walk[begin]).edge is None:
        return set()
    ways = "fb" if move.start == move.end else move.ways
    return {begin + 1} if any(fits(path, move.edge.relation, way, inverse) for way in ways) else set()


def measure(query: Query, walk: Walk) -> Any:
    """Return what a walk is chosen by: how many edges it has, or what it costs."""
    return sum(move.cost for move in walk[1]) if query.cost else len(walk[1])


def picked(selector: str, lengths: list[Any]) -> list[Any]:
    """Return, of the ascending lengths of all paths of a pair, those of the paths that a selector wants."""
    kinds = sorted(set(lengths))
    match selector.split():
        case ["ALL"]:
            return lengths
        case ["ANY", count] if count.isdigit():
            return lengths[: int(count)]
        case ["ANY", *_]:
            return lengths[:1]
        case ["SHORTEST", count, "GROUPS"]:
            return [each for each in lengths if each in kinds[: int(count)]]
        case ["SHORTEST", count]:
            return lengths[: int(count)]
    return [each for each in lengths if each == kinds[0]]
