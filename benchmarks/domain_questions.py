"""Small made-up graphs of one domain each, and questions over them: 1 to 3 hops, shared neighbours, two constraints.

python benchmarks/domain_questions.py [--questions N] [--json FILE]

Names of nodes are synthetic; relations have natural labels, and questions a natural wording, seldom with the
same word. The shipped weights were fitted on the `FITTED` domains, not on the `HELD_OUT` ones. Both are
measured: with gold topic entities, and with linked ones.
"""

from __future__ import annotations

import itertools
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from rich.console import Console

from benchmarks.offline import Bench
from benchmarks.rows import make_parser, show
from byokg.evaluation.datasets.base import Example
from byokg.graph.importers.choose import build_graph
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from byokg.types import EntityId


@dataclass(frozen=True)
class Link:
    """A relation, and how questions speak of it."""

    label: str
    head: str
    """Kind of node it leads from, as a noun, and"""
    tail: str
    """to."""
    nouns: Sequence[str]
    """What the tail is to the head: `the NOUN of X`."""
    verbs: Sequence[str]
    """What heads do with the tail: `HEADS VERB X`."""
    most: int = 1
    """Tails of one head at most."""


@dataclass(frozen=True)
class Domain:
    """The relations of one made-up graph, and how many nodes it has of each kind."""

    name: str
    sizes: dict[str, int]
    links: tuple[Link, ...]


def _domains(part: str) -> tuple[Domain, ...]:
    """Read a part of `domains.yaml`."""
    return tuple(
        Domain(name, entry["sizes"], tuple(Link(label, **link) for label, link in entry["links"].items()))
        for name, entry in _TABLE[part].items()
    )


_TABLE = yaml.safe_load(Path(__file__).with_name("domains.yaml").read_text("utf-8"))
FITTED, HELD_OUT = _domains("fitted"), _domains("held_out")
NEWER = _domains("newer")
"""Written after the rules by which the pipeline reads questions, and of their wrong answers none was read."""
NEWEST = _domains("newest")
"""Written before the list of synonyms last grew, and measured once, when it was done."""

_SYLLABLES = "ba bel cor dan del fer gal han jor kal lem mar nor ol pan quin ros sal tor ul van wes yor zan".split()


@dataclass(frozen=True)
class Made:
    """A graph's edges, and questions over it."""

    edges: tuple[tuple[str, str, str], ...]
    examples: tuple[Example, ...]

    def write(self, folder: Path) -> Path:
        """Write the edges as a TSV file, and return it."""
        file = folder / "graph.tsv"
        file.write_text("".join("\t".join(edge) + "\n" for edge in self.edges), "utf-8")
        return file


def make(domain: Domain, questions: int, seed: int = 0, kinds: Sequence[str] = ()) -> Made:
    """Make a graph and as many questions, in equal parts of each kind.

    Args:
        domain: relations and wording.
        questions: how many.
        seed: of names, edges and questions.
        kinds: `1-hop`, `2-hop`, `3-hop`, `shared`, `two constraints`; all when left out.
    """
    chance = random.Random(f"{domain.name} {seed}")
    taken: set[str] = set()
    nodes = {kind: [_name(chance, taken) for _ in range(size)] for kind, size in domain.sizes.items()}
    edges = list(
        dict.fromkeys(
            (head, link.label, tail)
            for link in domain.links
            for head in nodes[link.head]
            for tail in chance.sample(nodes[link.tail], chance.randint(1, link.most))
            if head != tail
        )
    )
    world = World(domain, edges, chance)
    found: dict[str, Example] = {}
    for kind in itertools.cycle(kinds or tuple(_MAKERS)):
        if len(found) == questions:
            break
        asked = getattr(world, _MAKERS[kind])()
        if asked is not None:
            found.setdefault(asked[0], example(f"{domain.name}-{len(found):04d}", kind, asked))
    return Made(tuple(edges), tuple(found.values()))


def example(id: str, kind: str, asked: Asked) -> Example:
    """Make an example of what was asked; names are ids."""
    text, topics, answers, hops = asked
    names = tuple(sorted(answers))
    return Example(
        id=id,
        question=text,
        answers=names,
        answer_ids=tuple(map(EntityId, names)),
        topic_entities=topics,
        topic_ids=tuple(map(EntityId, topics)),
        hops=hops,
        type=kind,
    )


_MAKERS = {"1-hop": "one", "2-hop": "two", "3-hop": "three", "shared": "shared", "two constraints": "constrained"}
Asked = tuple[str, tuple[str, ...], set[str], int | None]
_Way = tuple[Link, bool]
"""A relation, and whether it is walked from tail to head."""


class World:
    """A graph while questions are made over it."""

    def __init__(self, domain: Domain, edges: Sequence[tuple[str, str, str]], chance: random.Random) -> None:
        self._links, self._chance = domain.links, chance
        self._next: dict[tuple[str, bool, str], set[str]] = defaultdict(set)
        self._kinds: dict[str, str] = {}
        of = {link.label: link for link in domain.links}
        for head, label, tail in edges:
            self._next[label, False, head].add(tail)
            self._next[label, True, tail].add(head)
            self._kinds[head], self._kinds[tail] = of[label].head, of[label].tail
        self._nodes = sorted(self._kinds)

    def one(self) -> Asked | None:
        """Ask about the neighbours of a node."""
        return self._chain(1)

    def two(self) -> Asked | None:
        """Ask about theirs."""
        return self._chain(2)

    def three(self) -> Asked | None:
        """Ask about theirs again."""
        return self._chain(3)

    def shared(self) -> Asked | None:
        """Ask for the nodes that have a neighbour in common with one."""
        topic = self._chance.choice(self._nodes)
        links = [link for link in self._links if link.head == self._kinds[topic] and link.head != link.tail]
        if not links:
            return None
        link = self._chance.choice(links)
        ends = self._walk({topic}, [(link, False), (link, True)]) - {topic}
        noun, kind = self._chance.choice(link.nouns), plural(link.head)
        text = self._chance.choice(
            (
                f"which {kind} have the same {noun} as {topic}",
                f"which {kind} share their {noun} with {topic}",
                f"what other {kind} have the {noun} of {topic}",
            )
        )
        return (text, (topic,), ends, 2) if 0 < len(ends) <= MOST_ANSWERS else None

    def constrained(self) -> Asked | None:
        """Ask for the heads of two relations at once."""
        link, other = self._chance.sample(self._links, 2)
        if link.head != other.head or link.head in (link.tail, other.tail):
            return None
        head = self._chance.choice([node for node in self._nodes if self._kinds[node] == link.head])
        firsts, others = (sorted(self._next[each.label, False, head]) for each in (link, other))
        if not firsts or not others:
            return None
        one, another = self._chance.choice(firsts), self._chance.choice(others)
        ends = self._next[link.label, True, one] & self._next[other.label, True, another]
        verb, second = self._chance.choice(link.verbs), self._chance.choice(other.verbs)
        text = self._chance.choice(
            (
                f"which {plural(link.head)} {verb} {one} and {second} {another}".replace("and that", "and"),
                f"name the {plural(link.head)} {verb} {one} that are {second} {another}".replace("are that", "also"),
                f"{plural(link.head)} {verb} {one}, {second} {another}",
            )
        )
        return (text, (one, another), ends, None) if len(ends) <= MOST_ANSWERS else None

    def _chain(self, hops: int) -> Asked | None:
        topic = self._chance.choice(self._nodes)
        kind, way, phrase = self._kinds[topic], list[_Way](), topic
        for _ in range(hops):
            ways = [(link, back) for link in self._links for back in (False, True) if kind in (link.head, link.tail)]
            ways = [(link, back) for link, back in ways if kind == (link.tail if back else link.head)]
            ways = [(link, back) for link, back in ways if back or (link, True) not in way[-1:]]
            if not ways:
                return None
            link, back = self._chance.choice(ways)
            kind = link.head if back else link.tail
            way.append((link, back))
            last = len(way) == hops
            if back:
                noun = plural(kind)
                phrase = f"{noun} {self._chance.choice(link.verbs)} {phrase}"
            else:
                noun = self._chance.choice(link.nouns)
                possessive = hops < 3 and self._chance.random() < 0.25 and not any(back for _, back in way)
                phrase = (
                    f"{phrase}'s {noun}"
                    if possessive
                    else f"the {noun} of {'the ' if len(way) > 1 and way[-2][1] else ''}{phrase}"
                )
            if last:
                start: tuple[str, ...] = ("which ", "name the ", "what are the ", "")
                if not back:
                    start = ("what is ", "", "tell me ", "who is ")
                if not back and link.tail not in _PEOPLE:
                    start = start[:3]
                phrase = f"{self._chance.choice(start)}{phrase}"
        ends = self._walk({topic}, way) - {topic}
        return (phrase, (topic,), ends, hops) if 0 < len(ends) <= MOST_ANSWERS else None

    def _walk(self, nodes: set[str], way: Sequence[_Way]) -> set[str]:
        for link, back in way:
            nodes = {end for node in nodes for end in self._next[link.label, back, node]}
        return nodes


MOST_ANSWERS = 40
"""Answers of a question at most."""
_PEOPLE = frozenset(
    "author doctor coach person painter collector employee singer composer player patient developer reporter student "
    "professor judge lawyer chef playwright costumer driver".split()
)


def plural(noun: str) -> str:
    """Return a noun's plural.

    >>> plural("city"), plural("person"), plural("class")
    ('cities', 'people', 'classes')
    """
    if noun == "person":
        return "people"
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}es" if noun.endswith(("s", "ch", "sh")) else f"{noun}s"


def _name(chance: random.Random, taken: set[str]) -> str:
    while True:
        name = " ".join(
            "".join(chance.choice(_SYLLABLES) for _ in range(chance.randint(2, 3))).capitalize()
            for _ in range(chance.randint(1, 2))
        )
        if name not in taken:
            taken.add(name)
            return name


def measured(bench: Bench, questions: int, kinds: Sequence[str]) -> Iterator[None]:
    """Ask questions over each domain that was not fitted on."""
    for domain in (*HELD_OUT, *NEWER, *NEWEST):
        made = make(domain, questions, kinds=kinds)
        folder = bench.folder / f"{domain.name}-{len(kinds)}"
        folder.mkdir()
        pipeline = offline_pipeline(Parts(build_graph(made.write(folder), folder / "graph")))
        name = f"{domain.name}_{'_'.join(kinds).replace(' ', '_') or 'all'}"
        bench.evaluate(name, pipeline, made.examples, "gold")
        bench.evaluate(f"{name}_linked", pipeline, made.examples, "linked", metrics=("hits@1",))
        yield


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--questions", type=int, default=1000, help="questions per domain and part")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, Path(folder), Console())
        parts: tuple[tuple[str, ...], ...] = (("two constraints",), ())
        for kinds in parts:
            for _ in measured(bench, options.questions, kinds):
                pass
    show(bench.rows, "questions over made-up domains, none of them fitted on", options.json)


if __name__ == "__main__":
    main()
