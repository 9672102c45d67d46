"""The parts of a path query as plain records: what `grammar.parse` returns and `evaluate` runs.

A query may be put together from these in Python as well; nothing here reads a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from byokg.errors import PathQueryInvalid
from byokg.graph.store import Direction
from byokg.types import Value

# Terms


@dataclass(frozen=True, slots=True)
class Variable:
    """`?x`."""

    name: str


@dataclass(frozen=True, slots=True)
class NameTerm:
    """A node, relation, property or type: `dbo:birthPlace`, `:Alice`, `<http://…>` or `<Tom Hanks>`."""

    text: str
    """Text after the prefix, or between the angle brackets."""
    prefix: str | None = None
    """None for angle brackets; empty for `:Alice`."""

    def __str__(self) -> str:
        return f"<{self.text}>" if self.prefix is None else f"{self.prefix}:{self.text}"


@dataclass(frozen=True, slots=True)
class LiteralTerm:
    """A string, number, truth value or date."""

    value: Value
    datatype: str = ""
    """Local name of its datatype (`date`, `gYear`); empty for the default of the value's own type."""
    language: str = ""


Term: TypeAlias = Variable | NameTerm | LiteralTerm


# Path expressions


@dataclass(frozen=True, slots=True)
class Link:
    """One edge of a relation, walked from head to tail."""

    name: NameTerm


@dataclass(frozen=True, slots=True)
class AnyLink:
    """One edge of any relation, walked from head to tail: `!()`, and what `VIA ?p` walks."""


@dataclass(frozen=True, slots=True)
class NotLink:
    """One edge of any relation but some: `!(:a|^:b)` walks forward all but a's edges, and backward all but b's."""

    forward: tuple[NameTerm, ...]
    backward: tuple[NameTerm, ...]


@dataclass(frozen=True, slots=True)
class Inverse:
    """`^`: the expression walked from its end to its start."""

    path: PathExpression


@dataclass(frozen=True, slots=True)
class Sequence:
    """`/`: one expression after the other."""

    parts: tuple[PathExpression, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """`|`: any of the expressions."""

    parts: tuple[PathExpression, ...]
    single: bool = field(init=False, repr=False, compare=False)
    """True if every match is one edge: read by every search, and there may be thousands of parts."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "single", all(map(is_step, self.parts)))


@dataclass(frozen=True, slots=True)
class Repeat:
    """`*`, `+`, `?`, `{m,n}`: the expression several times; `most` None for no bound."""

    path: PathExpression
    least: int
    most: int | None


PathExpression: TypeAlias = Link | AnyLink | NotLink | Inverse | Sequence | Alternatives | Repeat


def is_step(path: PathExpression) -> bool:
    """True if every match of an expression is one edge."""
    match path:
        case Inverse(inner):
            return is_step(inner)
        case Alternatives():
            return path.single
    return isinstance(path, Link | AnyLink | NotLink)


# Conditions


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """An operator or function applied: `=`, `&&`, `year`, `bound`."""

    operator: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Exists:
    """Whether a pattern has a solution, or has none."""

    pattern: Group
    negated: bool = False


Expression: TypeAlias = Variable | NameTerm | LiteralTerm | FunctionCall | Exists


# Graph patterns


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """Edges or properties: `?x :knows ?y`, with annotations of the edge: `{| :since ?year |}`."""

    subject: Term
    predicate: Variable | PathExpression
    object: Term
    annotations: tuple[tuple[NameTerm, Term], ...] = ()


@dataclass(frozen=True, slots=True)
class Filter:
    """Keeps the solutions that fulfil a condition."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class Bind:
    """Gives a variable the value of an expression."""

    expression: Expression
    variable: Variable


@dataclass(frozen=True, slots=True)
class Values:
    """Rows of constants; None is UNDEF."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[NameTerm | LiteralTerm | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Union:
    """The solutions of several patterns."""

    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Optional:
    """Solutions that are extended if the pattern matches."""

    group: Group


@dataclass(frozen=True, slots=True)
class Minus:
    """Leaves out the solutions that agree with one of the pattern's."""

    group: Group


Element: TypeAlias = "TriplePattern | Filter | Bind | Values | Union | Optional | Minus | Group"


@dataclass(frozen=True, slots=True)
class Group:
    """A graph pattern in braces."""

    elements: tuple[Element, ...]


_Pattern: TypeAlias = "Element | Expression | Term"


# Queries


class Selector(Enum):
    """Which of the paths between a start and an end are wanted."""

    ALL = "ALL"
    ANY = "ANY"
    """`count` of them, whichever are found first; here the shortest."""
    ANY_SHORTEST = "ANY SHORTEST"
    ALL_SHORTEST = "ALL SHORTEST"
    SHORTEST = "SHORTEST k"
    """The `count` shortest."""
    SHORTEST_GROUPS = "SHORTEST k GROUPS"
    """All of the `count` smallest lengths that occur."""


class Restrictor(Enum):
    """Elements that must not repeat on a path."""

    WALK = "WALK"
    """Anything may."""
    TRAIL = "TRAIL"
    """No edge."""
    ACYCLIC = "ACYCLIC"
    """No node."""
    SIMPLE = "SIMPLE"
    """No node, but the start may be the end: condition (6) of the page."""

    @property
    def by_node(self) -> bool:
        """True if it forbids to repeat nodes."""
        return self in (Restrictor.ACYCLIC, Restrictor.SIMPLE)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A START or END: a variable with its conditions."""

    variable: Variable
    names: tuple[NameTerm, ...] = ()
    """Nodes it may be; empty for any."""
    pattern: Group | None = None


@dataclass(frozen=True, slots=True)
class PathQuery:
    """One path query."""

    start: Endpoint
    end: Endpoint
    via: PathExpression | Variable | Group
    """Element of a path: a match of an expression, an edge of any relation, a solution of a pattern."""
    whole: bool = False
    """MATCHING: the whole path is one match of the expression, and its edges are those of the graph."""
    undirected: bool = False
    """Each step of the expression may be walked either way."""
    selector: Selector = Selector.ALL_SHORTEST
    count: int = 1
    restrictor: Restrictor = Restrictor.SIMPLE
    cyclic: bool = False
    cost: Variable | NameTerm | None = None
    """Cost added up along a path in place of the number of edges: a variable of the pattern, or an edge property."""
    max_length: int | None = None
    offset: int = 0
    limit: int | None = None
    graphs: tuple[NameTerm, ...] = ()
    """FROM: edges of these named graphs only; empty for all."""
    prefixes: Mapping[str, str] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.start, self.end, self.via, self.selector, self.restrictor))


def _steps(step: PathExpression) -> tuple[PathExpression, PathExpression]:
    """Return any number of steps, and the same backward."""
    return Repeat(step, 0, None), Repeat(Inverse(step), 0, None)


_ANY_STEPS = _steps(AnyLink())
"""The same each time, so that its automaton is made once for a graph."""


def connecting(
    sources: Iterable[str],
    targets: Iterable[str],
    k: int = 1,
    max_hops: int = 4,
    relations: Collection[str] | None = None,
    direction: Direction = Direction.BOTH,
) -> PathQuery:
    """Return the query for the `k` shortest paths from every source to every target.

    Args:
        sources: ids of nodes where paths start, one at least.
        targets: ids of nodes where they end, one at least.
        k: paths of each pair. They visit no node twice; a node has one path to itself, of no edges.
        max_hops: edges in a path at most.
        relations: labels to walk; None walks all.
        direction: of the edges, seen from the source.
    """
    via = _ANY_STEPS if relations is None else _steps(Alternatives(tuple(Link(NameTerm(one)) for one in relations)))
    ends = [tuple(NameTerm(one) for one in dict.fromkeys(ids)) for ids in (sources, targets)]
    return PathQuery(
        Endpoint(Variable("source"), ends[0]),
        Endpoint(Variable("target"), ends[1]),
        via[direction is Direction.IN],
        whole=True,
        undirected=direction is Direction.BOTH,
        selector=Selector.ANY_SHORTEST if k == 1 else Selector.SHORTEST,
        count=k,
        restrictor=Restrictor.ACYCLIC,
        max_length=max_hops,
    )


@dataclass(frozen=True)
class InferenceRule:
    """Premises and conclusions: `IF { … } THEN { … }`."""

    when: tuple[TriplePattern, ...]
    then: tuple[TriplePattern, ...]
    prefixes: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"IF {{ {_triples(self.when)} }} THEN {{ {_triples(self.then)} }}"


def _triples(triples: tuple[TriplePattern, ...]) -> str:
    return " . ".join(" ".join(map(_written, (each.subject, each.predicate, each.object))) for each in triples)


def _written(term: Term | PathExpression) -> str:
    match term:
        case Variable(name):
            return f"?{name}"
        case Link(name):
            return str(name)
        case Inverse(Link(name)):
            return f"^{name}"
    return str(term)


def _parts(pattern: _Pattern) -> Iterable[_Pattern]:
    """Return the direct parts of a pattern or an expression, in order."""
    match pattern:
        case FunctionCall(_, parts) | Group(parts) | Union(parts) | Values(parts, _):
            return parts
        case Exists(part) | Optional(part) | Minus(part) | Filter(part):
            return (part,)
        case Bind(expression, variable):
            return expression, variable
        case TriplePattern(subject, predicate, object_, annotations):
            ends = [subject, predicate, object_] if isinstance(predicate, Variable) else [subject, object_]
            return [*ends, *(value for _, value in annotations)]
    return ()


def variables(pattern: _Pattern) -> Iterator[str]:
    """Yield the names of the variables that a pattern may bind, in order of appearance, with repetitions."""
    match pattern:
        case Variable(name):
            yield name
        case Bind(_, variable):
            yield variable.name
        case Group() | Union() | Optional() | TriplePattern() | Values():
            for part in _parts(pattern):
                yield from variables(part)


def mentioned(pattern: _Pattern) -> Iterator[str]:
    """Yield the names of all variables in a pattern or an expression, also of those that it only reads."""
    if isinstance(pattern, Variable):
        yield pattern.name
    for part in _parts(pattern):
        yield from mentioned(part)


def certain(pattern: Element) -> frozenset[str]:
    """Return the names of the variables that every solution of a pattern binds."""
    match pattern:
        case TriplePattern():
            return frozenset(variables(pattern))
        case Values(names, rows):
            return frozenset(
                name.name for place, name in enumerate(names) if all(row[place] is not None for row in rows)
            )
        case Group(elements):
            return frozenset[str]().union(*map(certain, elements))
        case Union(groups):
            return frozenset.intersection(*map(certain, groups))
    return frozenset()


def seedable(group: Group) -> frozenset[str]:
    """Return the names of the variables whose values may be given before a group is solved.

    The solutions are then those of the whole group with these values: each such variable is bound by the first element
    that mentions it, so that no element is read with a value that it would not see by itself.
    """
    seen: set[str] = set()
    found: set[str] = set()
    for element in group.elements:
        if not isinstance(element, Filter):
            found |= certain(element) - seen
            seen.update(mentioned(element))
    return frozenset(found)


def inside(pattern: _Pattern) -> Iterator[Element]:
    """Yield a pattern, and all elements inside it, also those inside conditions."""
    if isinstance(pattern, TriplePattern | Filter | Bind | Values | Union | Optional | Minus | Group):
        yield pattern
    for part in _parts(pattern):
        yield from inside(part)


def elements(query: PathQuery) -> Iterator[Element]:
    """Yield all elements of the patterns of a query, outer ones before those inside them."""
    for pattern in (query.start.pattern, query.end.pattern, query.via):
        if isinstance(pattern, Group):
            yield from inside(pattern)


def both_roles(query: PathQuery, is_type: Callable[[NameTerm], bool]) -> frozenset[str]:
    """Return the names of the variables that stand for a relation or type in one place, and for any term in another."""
    labels: set[str] = set()
    terms: set[str] = set()
    for element in elements(query):
        match element:
            case TriplePattern(subject, predicate, object_, annotations):
                of_type = isinstance(predicate, Link) and is_type(predicate.name)
                labels.update(variables(predicate) if isinstance(predicate, Variable) else ())
                (labels if of_type else terms).update(variables(object_))
                terms.update(variables(subject))
                for _, value in annotations:
                    terms.update(variables(value))
            case Values() | Bind():
                terms.update(mentioned(element))
    return frozenset(labels & terms)


def check_variables(query: PathQuery) -> None:
    """Raise `PathQueryInvalid` if one variable has two roles: both ends, or an end and a relation."""
    start, end = query.start.variable, query.end.variable
    if start == end:
        raise PathQueryInvalid(f"START and END are both ?{start.name}; name them apart, and ask for cycles with CYCLIC")
    if query.via in (start, end):
        end = start if query.via == start else end
        raise PathQueryInvalid(f"?{end.name} is both an end and the relation of VIA; name them apart")


def as_expression(group: Group, start: str, end: str) -> tuple[PathExpression, Variable | None] | None:
    """Return the expression that a pattern of one triple, or a union of such, stands for; None for any other."""
    match group.elements:
        case (TriplePattern(Variable(one), predicate, Variable(other), ()),) if {one, other} == {start, end}:
            if isinstance(predicate, Variable):
                path: PathExpression = AnyLink()
                variable = predicate if predicate.name not in (start, end) else None
                if variable is None:
                    return None
            else:
                path, variable = predicate, None
            return (path if one == start else Inverse(path)), variable
        case (Union(groups),):
            parts = [as_expression(each, start, end) for each in groups]
            if any(part is None for part in parts):
                return None
            names = {part[1] for part in parts if part is not None}
            if len(names) != 1:
                return None
            return Alternatives(tuple(part[0] for part in parts if part is not None)), names.pop()
    return None
