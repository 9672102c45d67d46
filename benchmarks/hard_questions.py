"""Questions over synthetic domains with few or no answering relation paths: offline answers are mostly wrong.

python benchmarks/hard_questions.py

Types: four hops; two constraints, one of them a path; the neighbour of the common nodes of two constraints; and
relations that the topic lacks. `scripts/fit_confidence.py` uses them as examples of wrong answers. Prints some.
"""

from __future__ import annotations

import random

from benchmarks.domain_questions import FITTED, MOST_ANSWERS, Asked, Domain, Made, World, example, make, plural
from byokg.evaluation.datasets.base import Example

KINDS = ("four hops", "path and constraint", "beyond constraints", "no relation")
_TRIES = 2000


class HardWorld(World):
    """Makes questions of these kinds."""

    def ask(self, kind: str) -> Asked | None:
        """Return a question of a kind, or None where what was drawn makes none."""
        if kind == "four hops":
            return self._chain(4)
        if kind == "path and constraint":
            return self._path_and_constraint()
        return self._beyond() if kind == "beyond constraints" else self._unrelated()

    def _path_and_constraint(self) -> Asked | None:
        chance = self._chance
        kind = chance.choice(sorted({link.head for link in self._links}))
        ways = [link for link in self._links if link.head == kind != link.tail]
        if len(ways) < 2:
            return None
        link, other = chance.sample(ways, 2)
        head = chance.choice([node for node in self._nodes if self._kinds[node] == kind])
        middles, others = (sorted(self._next[each.label, False, head]) for each in (link, other))
        further = [each for each in self._links if each.head == link.tail != each.tail]
        if not middles or not others or not further:
            return None
        last = chance.choice(further)
        ends = sorted(self._next[last.label, False, chance.choice(middles)])
        if not ends:
            return None
        one, another = chance.choice(ends), chance.choice(others)
        answers = self._walk({one}, [(last, True), (link, True)]) & self._next[other.label, True, another]
        nested = f"{chance.choice(link.verbs)} the {plural(link.tail)} {chance.choice(last.verbs)} {one}"
        plain = f"{chance.choice(other.verbs)} {another}"
        text = chance.choice(
            (f"which {plural(kind)} {nested} are {plain}", f"which {plural(kind)} {plain} and {nested}")
        )
        return (text, (one, another), answers, None) if 0 < len(answers) <= MOST_ANSWERS else None

    def _beyond(self) -> Asked | None:
        found = self.constrained()
        if found is None:
            return None
        text, topics, heads, _ = found
        kind = self._kinds[min(heads)]
        link = self._chance.choice([link for link in self._links if link.head == kind != link.tail])
        answers = self._walk(heads, [(link, False)])
        noun, named = self._chance.choice(link.nouns), text.removeprefix("which ").removeprefix("name the ")
        text = self._chance.choice((f"what is the {noun} of the {named}", f"the {noun} of {named}"))
        return (text, topics, answers, None) if 0 < len(answers - {*topics}) == len(answers) <= MOST_ANSWERS else None

    def _unrelated(self) -> Asked | None:
        topic = self._chance.choice(self._nodes)
        links = [link for link in self._links if self._kinds[topic] not in (link.head, link.tail)]
        if not links:
            return None
        link = self._chance.choice(links)
        noun, verb = self._chance.choice(link.nouns), self._chance.choice(link.verbs)
        text = self._chance.choice((f"what is the {noun} of {topic}", f"which {plural(link.head)} {verb} {topic}"))
        return text, (topic,), set(), None


def make_hard(domain: Domain, questions: int, seed: int = 0) -> Made:
    """Return the graph that `make` makes, and up to as many such questions, in equal parts of each kind."""
    edges = make(domain, 1, seed).edges
    chance = random.Random(f"hard {domain.name} {seed}")
    world = HardWorld(domain, edges, chance)
    found: dict[str, Example] = {}
    for kind in KINDS:
        until = len(found) + questions // len(KINDS)
        for _ in range(_TRIES):
            if len(found) == until:
                break
            asked = world.ask(kind)
            if asked is None:
                continue
            found.setdefault(asked[0], example(f"{domain.name}-hard-{len(found):04d}", kind, asked))
    return Made(edges, tuple(found.values()))


def main() -> None:
    for domain in FITTED:
        for one in make_hard(domain, 2 * len(KINDS)).examples:
            print(f"{one.type:20} {one.question} → {', '.join(one.answers) or 'nothing'}")


if __name__ == "__main__":
    main()
