"""Every mode of path queries against a search that lists all walks, on small random multigraphs with loops.

The search shares nothing with the package: it matches expressions against walks by their definition, and picks from
all walks what a selector and a restrictor ask for.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.pathql import enumerate as enumerated
from byokg.graph.pathql import single_source
from byokg.graph.pathql.evaluate import count, paths
from byokg.graph.pathql.result import FoundPath
from byokg.types import EntityId, Node, Triple

RELATIONS = "rst"


class Step(NamedTuple):
    """One edge walked: its number, relation, the node reached, and the directions it may count as."""

    edge: int
    relation: str
    to: str
    ways: str


class Walk(NamedTuple):
    """The nodes that are passed, and the edges between them."""

    nodes: tuple[str, ...]
    steps: tuple[Step, ...] = ()

    @property
    def start(self) -> str:
        return self.nodes[0]

    def then(self, step: Step) -> Walk:
        return Walk((*self.nodes, step.to), (*self.steps, step))


Regex = tuple[Any, ...]
"""("r",), ("^", x), ("/", x, y), ("|", x, y), ("{}", x, least, most), ("any",), ("!", "r")."""


def text(regex: Regex) -> str:
    """Write an expression as queries do."""
    match regex:
        case ("^", inner):
            return f"^({text(inner)})"
        case (("/" | "|") as sign, one, other):
            return f"({text(one)}{sign}{text(other)})"
        case ("{}", inner, least, most):
            return f"({text(inner)}){{{least},{'' if most is None else most}}}"
        case ("any",):
            return "!()"
        case ("!", name):
            return f"!:{name}"
        case (name,):
            return f":{name}"
    raise AssertionError(regex)


def cuts(regex: Any, walk: tuple[Step, ...], begin: int, inverse: bool = False) -> set[int]:
    """Return where matches of an expression end that begin at a step."""
    match regex:
        case ("^", inner):
            return cuts(inner, walk, begin, not inverse)
        case ("/", one, other):
            first, second = (other, one) if inverse else (one, other)
            return {end for middle in cuts(first, walk, begin, inverse) for end in cuts(second, walk, middle, inverse)}
        case ("|", one, other):
            return cuts(one, walk, begin, inverse) | cuts(other, walk, begin, inverse)
        case ("{}", inner, least, most):
            ends, found, count = {begin}, set(), 0
            seen: set[tuple[int, frozenset[int]]] = set()
            while ends and (most is None or count <= most):
                if count >= least:
                    found |= ends
                state = (min(count, least), frozenset(ends))
                if state in seen:
                    break
                seen.add(state)
                ends = {end for middle in ends for end in cuts(inner, walk, middle, inverse)}
                count += 1
            return found
    if begin >= len(walk):
        return set()
    step = walk[begin]
    if ("b" if inverse else "f") not in step.ways:
        return set()
    match regex:
        case ("any",):
            fits = True
        case ("!", name):
            fits = step.relation != name
        case (name,):
            fits = step.relation == name
    return {begin + 1} if fits else set()


def matches(regex: Regex, walk: tuple[Step, ...]) -> bool:
    """Tell whether a whole walk matches."""
    return len(walk) in cuts(regex, walk, 0)


def random_regex(chance: random.Random, depth: int) -> Regex:
    """Make an expression up."""
    kind = chance.random()
    if depth == 0 or kind < 0.35:
        return chance.choice([("r",), ("s",), ("t",), ("r",), ("s",), ("any",), ("!", "r")])
    if kind < 0.5:
        return ("^", random_regex(chance, depth - 1))
    if kind < 0.7:
        return ("|", random_regex(chance, depth - 1), random_regex(chance, depth - 1))
    if kind < 0.85:
        return ("/", random_regex(chance, depth - 1), random_regex(chance, depth - 1))
    least, most = chance.choice([(0, None), (1, None), (0, 1), (1, 2), (2, 3), (2, None)])
    return ("{}", random_regex(chance, depth - 1), least, most)


class SmallGraph:
    """A random multigraph with loops and parallel edges, half of them undirected if asked, and all its walks."""

    def __init__(
        self, chance: random.Random, nodes: int, edges: int, longest: int, some_undirected: bool = False
    ) -> None:
        self.nodes = [f"n{number}" for number in range(nodes)]
        triples = [
            Triple(EntityId(chance.choice(self.nodes)), chance.choice(RELATIONS), EntityId(chance.choice(self.nodes)))
            for _ in range(edges)
        ]
        if some_undirected:
            triples = [replace(triple, undirected=chance.random() < 0.5) for triple in triples]
        # All relations exist, on an edge apart from the rest.
        triples += [Triple(EntityId("x"), relation, EntityId("y")) for relation in RELATIONS]
        names = [*self.nodes, "x", "y"]
        self.store = ColumnarGraph.from_records([Node(EntityId(name), name) for name in names], triples)
        self.longest = longest
        batch = self.store.edges(self.store.numbers([EntityId(name) for name in self.nodes]))
        leaving: dict[str, list[Step]] = {name: [] for name in self.nodes}
        assert some_undirected or batch.undirected is None
        undirected = [False] * len(batch) if batch.undirected is None else batch.undirected.tolist()
        for origin, relation, other, edge, inverse, either in zip(
            batch.origin.tolist(),
            batch.relation.tolist(),
            self.store.ids(batch.other),
            batch.edge.tolist(),
            batch.inverse.tolist(),
            undirected,
            strict=True,
        ):
            near = self.nodes[origin]
            if near == other:
                if not inverse:
                    leaving[near].append(Step(edge, self.store.relations[relation], other, "fb"))
            else:
                ways = "fb" if either else "b" if inverse else "f"
                leaving[near].append(Step(edge, self.store.relations[relation], other, ways))
        self.walks: list[Walk] = []
        queue = [Walk((name,)) for name in self.nodes]
        while queue:
            walk = queue.pop()
            self.walks.append(walk)
            if len(walk.steps) < longest:
                queue += map(walk.then, leaving[walk.nodes[-1]])


def holds(restrictor: str, walk: Walk) -> bool:
    """Tell whether a walk fulfils a restrictor."""
    nodes, edges = walk.nodes, [step.edge for step in walk.steps]
    if restrictor == "TRAIL":
        return len(set(edges)) == len(edges)
    if restrictor == "ACYCLIC":
        return len(set(nodes)) == len(nodes)
    if restrictor == "SIMPLE":
        inner = nodes[1:] if len(nodes) > 1 and nodes[0] == nodes[-1] else nodes
        return len(set(inner)) == len(inner)
    return True


def key(path: FoundPath) -> tuple[str, tuple[int, ...], tuple[str, ...]]:
    """Return what tells found paths apart."""
    edges = tuple(triple.edge for edge in path.edges for triple in edge.triples)
    return path.start, edges, path.nodes


def walk_key(walk: Walk) -> tuple[str, tuple[int, ...], tuple[str, ...]]:
    """Return the same of a walk."""
    return walk.start, tuple(step.edge for step in walk.steps), walk.nodes


def by_pair(items: Iterator[tuple[str, str, int, object]]) -> dict[tuple[str, str], list[tuple[int, object]]]:
    """Group by start and end."""
    groups: dict[tuple[str, str], list[tuple[int, object]]] = {}
    for start, end, length, item in items:
        groups.setdefault((start, end), []).append((length, item))
    return groups


SELECTORS: dict[str, Callable[[list[int]], list[int]]] = {
    "ALL": lambda lengths: lengths,
    "ANY": lambda lengths: lengths[:1],
    "ANY SHORTEST": lambda lengths: lengths[:1],
    "ALL SHORTEST": lambda lengths: [each for each in lengths if each == lengths[0]],
    "SHORTEST 1": lambda lengths: lengths[:1],
    "SHORTEST 3": lambda lengths: lengths[:3],
    "SHORTEST 2 GROUPS": lambda lengths: [each for each in lengths if each in sorted(set(lengths))[:2]],
    "": lambda lengths: [each for each in lengths if each == lengths[0]],
}
"""Of the ascending lengths of all paths of a pair, those of the paths that are wanted."""


def check(small: SmallGraph, chance: random.Random, via: str, regex: Regex, most: int | None) -> None:
    """Ask one query, and compare the answer with what is picked from all walks that match an expression."""
    selector = chance.choice(list(SELECTORS))
    restrictor = chance.choice(["WALK", "TRAIL", "ACYCLIC", "SIMPLE", ""])
    if most is None and restrictor == "WALK":
        restrictor = "TRAIL"
    start = chance.choice([None, chance.choice(small.nodes)])
    end = chance.choice([None, chance.choice(small.nodes)])
    cyclic = chance.random() < 0.15
    query = (
        f"PATHS {selector} {restrictor} {'CYCLIC' if cyclic else ''} START ?x{f' = :{start}' if start else ''} "
        f"END ?y{f' = :{end}' if end else ''} {via}{f' MAX LENGTH {most}' if most is not None else ''}"
    )
    chosen = [
        walk
        for walk in small.walks
        if (start is None or walk.start == start)
        and (end is None or walk.nodes[-1] == end)
        and (most is None or len(walk.steps) <= most)
        and holds(restrictor or "SIMPLE", walk)
        and (not cyclic or (walk.nodes[0] == walk.nodes[-1] and len(walk.steps) > 0))
        and matches(regex, walk.steps)  # last: it takes longest
    ]
    result = paths(small.store, query)
    found = [path for path in result if path.start not in ("x", "y")]
    if start and end:
        assert count(small.store, query) == (len(found), False), query
    assert not result.truncated, query
    expected = by_pair((walk.start, walk.nodes[-1], len(walk.steps), walk_key(walk)) for walk in chosen)
    answered = by_pair((path.start, path.end, len(path.edges), key(path)) for path in found)
    assert answered.keys() == expected.keys(), (query, small.store)
    for pair, all_of in expected.items():
        lengths = sorted(length for length, _ in all_of)
        got = [length for length, _ in answered[pair]]
        assert got == sorted(got), query
        assert got == SELECTORS[selector](lengths), (query, pair)
        keys = [each for _, each in answered[pair]]
        assert len(set(keys)) == len(keys), query
        assert set(keys) <= {each for _, each in all_of}, (query, pair)


@pytest.mark.parametrize("some_undirected", [False, True])
@pytest.mark.seeds(8)
def test_expressions_matched_by_the_whole_path(seed: int, some_undirected: bool) -> None:
    chance = random.Random(seed)
    for _ in range(10):
        nodes, edges = chance.randint(1, 8), chance.randint(0, 7 if some_undirected else 10)
        small = SmallGraph(chance, nodes, edges, 4, some_undirected)
        for _ in range(10):
            regex = random_regex(chance, 3)
            check(small, chance, f"MATCHING {text(regex)}", regex, most=chance.randint(0, 4))


@pytest.mark.parametrize("some_undirected", [False, True])
@pytest.mark.seeds(8)
def test_single_steps_repeated(seed: int, some_undirected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1000 + seed)
    # The less patience, the more paths are found by deviations from those found before.
    monkeypatch.setattr(enumerated, "_PATIENCE", chance.choice([0, 30, 1_000_000]))
    # Searches out of several nodes go together as far as so many steps.
    monkeypatch.setattr(single_source, "_SMALL", chance.choice([0, 10, 20_000]))
    for _ in range(5):
        nodes, edges = chance.randint(1, 8), chance.randint(0, 7 if some_undirected else 10)
        small = SmallGraph(chance, nodes, edges, 4, some_undirected)
        for _ in range(12):
            via, regex = chance.choice(
                [
                    ("VIA ?p", ("any",)),
                    ("VIA :r", ("r",)),
                    ("VIA :r|:s", ("|", ("r",), ("s",))),
                    ("VIA :r|^:r", ("|", ("r",), ("^", ("r",)))),
                    ("VIA UNDIRECTED :s", ("|", ("s",), ("^", ("s",)))),
                    ("VIA UNDIRECTED ?p", ("|", ("any",), ("^", ("any",)))),
                    ("VIA !:t", ("!", "t")),
                    ("VIA !(:r|^:s)", ("|", ("!", "r"), ("^", ("!", "s")))),
                    ("VIA ^:t|:s", ("|", ("^", ("t",)), ("s",))),
                ]
            )
            check(small, chance, via, ("{}", regex, 1, None), most=chance.randint(0, 4))


@pytest.mark.parametrize("some_undirected", [False, True])
@pytest.mark.seeds(4)
def test_without_a_bound_on_the_length(seed: int, some_undirected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(2000 + seed)
    # The less patience, the more paths are found by deviations from those found before.
    monkeypatch.setattr(enumerated, "_PATIENCE", chance.choice([0, 30, 1_000_000]))
    # Searches out of several nodes go together as far as so many steps.
    monkeypatch.setattr(single_source, "_SMALL", chance.choice([0, 10, 20_000]))
    for _ in range(5):
        edges = chance.randint(0, 5 if some_undirected else 6)
        small = SmallGraph(chance, chance.randint(1, 5), edges, edges, some_undirected)
        for _ in range(10):
            regex = random_regex(chance, 2)
            check(small, chance, f"MATCHING {text(regex)}", regex, most=None)


def pairs_of(small: SmallGraph, regex: Regex) -> set[tuple[str, str]]:
    """Return from where to where an expression leads, by its definition as a relation."""
    every = {(name, name) for name in small.nodes}

    def relation(part: Any) -> set[tuple[str, str]]:
        match part:
            case ("^", inner):
                return {(other, one) for one, other in relation(inner)}
            case ("/", first, second):
                return composed(relation(first), relation(second))
            case ("|", first, second):
                return relation(first) | relation(second)
            case ("{}", inner, least, most):
                step, power, found = relation(inner), every, set()
                for count in range((len(small.nodes) + least if most is None else most) + 1):
                    found |= power if count >= least else set()
                    power = composed(power, step)
                return found
        return {
            (walk.start, walk.nodes[1]) for walk in small.walks if len(walk.steps) == 1 and matches(part, walk.steps)
        }

    def composed(one: set[tuple[str, str]], other: set[tuple[str, str]]) -> set[tuple[str, str]]:
        return {(start, end) for start, middle in one for again, end in other if middle == again}

    return relation(regex)


@pytest.mark.seeds(4)
def test_expressions_of_several_steps_are_one_edge_a_match(seed: int) -> None:
    chance = random.Random(3000 + seed)
    for _ in range(10):
        small = SmallGraph(chance, chance.randint(1, 5), chance.randint(0, 7), longest=1, some_undirected=seed % 2 == 1)
        for _ in range(10):
            regex = ("/", random_regex(chance, 1), random_regex(chance, 2))
            pairs = pairs_of(small, regex)
            leaving: dict[str, list[Step]] = {name: [] for name in small.nodes}
            for one, other in sorted(pairs):
                leaving[one].append(Step(int(one[1:]) * 100 + int(other[1:]), "", other, "f"))
            most = chance.randint(1, 3)
            queue, walks = [Walk((name,)) for name in small.nodes], []
            while queue:
                walk = queue.pop()
                walks += [walk] if walk.steps else []
                if len(walk.steps) < most:
                    queue += map(walk.then, leaving[walk.nodes[-1]])
            check_matches(small, chance, regex, walks, most)


def check_matches(small: SmallGraph, chance: random.Random, regex: Regex, walks: list[Walk], most: int) -> None:
    """Compare the nodes of paths whose edges are matches; every match is spelled out as a walk in the graph."""
    restrictor = chance.choice(["WALK", "TRAIL", "ACYCLIC", "SIMPLE"])
    start, end = chance.choice(small.nodes), chance.choice([None, chance.choice(small.nodes)])
    query = (
        f"PATHS ALL {restrictor} START ?x = :{start} END ?y{f' = :{end}' if end else ''} "
        f"VIA {text(regex)} MAX LENGTH {most}"
    )
    expected = {
        walk.nodes
        for walk in walks
        if walk.start == start and (end is None or walk.nodes[-1] == end) and holds(restrictor, walk)
    }
    result = paths(small.store, query)
    assert sorted(path.nodes for path in result) == sorted(expected), query
    for path in result:
        for edge in path.edges:
            at = edge.start
            for triple, inverse in zip(edge.triples, edge.inverse, strict=True):
                assert at == (triple.tail if inverse else triple.head)
                at = triple.head if inverse else triple.tail
            assert at == edge.end
