"""Small made-up graphs of one domain each, and questions over them: 1 to 3 hops, shared neighbours, two constraints.

python benchmarks/domain_questions.py [--questions N] [--json FILE]

Names of nodes are synthetic; relations have natural labels, and questions a natural wording, seldom with the
same word. The shipped weights were fitted on the `FITTED` domains, not on the `HELD_OUT` ones. Both are
measured: with gold topic entities, and with linked ones.
"""

from __future__ import annotations

import argparse
import itertools
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.offline import Bench
from benchmarks.rows import show
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
    nouns: tuple[str, ...]
    """What the tail is to the head: `the NOUN of X`."""
    verbs: tuple[str, ...]
    """What heads do with the tail: `HEADS VERB X`."""
    most: int = 1
    """Tails of one head at most."""


@dataclass(frozen=True)
class Domain:
    """The relations of one made-up graph, and how many nodes it has of each kind."""

    name: str
    sizes: dict[str, int]
    links: tuple[Link, ...]


FITTED = (
    Domain(
        "library",
        {"book": 160, "author": 40, "publisher": 12, "city": 20, "language": 8, "award": 10},
        (
            Link("written_by", "book", "author", ("author", "writer"), ("written by", "by", "that were penned by")),
            Link("publisher", "book", "publisher", ("publisher", "publishing house"), ("published by", "issued by")),
            Link("language", "book", "language", ("language",), ("in", "written in")),
            Link("awards_won", "book", "award", ("award", "prize"), ("that won", "honoured with"), 2),
            Link("birthplace", "author", "city", ("birthplace", "place of birth"), ("born in", "from")),
            Link("headquarters", "publisher", "city", ("headquarters", "seat"), ("based in", "located in")),
        ),
    ),
    Domain(
        "hospital",
        {"patient": 120, "doctor": 30, "ward": 10, "drug": 30, "disease": 25, "university": 10},
        (
            Link("treatedByDoctor", "patient", "doctor", ("doctor", "physician"), ("treated by", "seen by")),
            Link("hasDisease", "patient", "disease", ("diagnosis", "disease"), ("with", "suffering from"), 2),
            Link("inWard", "patient", "ward", ("ward",), ("staying in", "lying in")),
            Link("worksInWard", "doctor", "ward", ("ward", "department"), ("working in", "employed in")),
            Link(
                "studiedAtUniversity",
                "doctor",
                "university",
                ("alma mater", "university"),
                ("who studied at", "trained at"),
            ),
            Link("treatsDisease", "drug", "disease", ("indication", "illness"), ("for", "used against"), 2),
        ),
    ),
    Domain(
        "football",
        {"player": 150, "club": 16, "country": 14, "position": 5, "stadium": 16, "coach": 16},
        (
            Link("sports.player.team", "player", "club", ("club", "team"), ("playing for", "who play at")),
            Link("sports.player.nationality", "player", "country", ("nationality", "country"), ("from", "born in")),
            Link(
                "sports.player.position", "player", "position", ("position", "role"), ("playing as", "in the role of")
            ),
            Link(
                "sports.team.home_ground", "club", "stadium", ("stadium", "home ground"), ("playing at", "at home in")
            ),
            Link("sports.team.head_coach", "club", "coach", ("coach", "manager"), ("coached by", "managed by")),
            Link("sports.coach.nationality", "coach", "country", ("nationality", "home country"), ("from",)),
        ),
    ),
    Domain(
        "family",
        {"person": 160, "town": 15, "job": 12, "school": 8, "faith": 5},
        (
            Link(
                "child", "person", "person", ("child", "kid", "offspring"), ("who are the parents of", "who raised"), 2
            ),
            Link("married_to", "person", "person", ("spouse", "partner"), ("married to", "wed to")),
            Link("residence", "person", "town", ("home", "place of residence"), ("living in", "residing in")),
            Link("occupation", "person", "job", ("job", "profession"), ("working as", "employed as")),
            Link("attended", "person", "school", ("school", "place of education"), ("educated at", "who went to")),
            Link("religion", "person", "faith", ("faith", "belief"), ("believing in",)),
        ),
    ),
    Domain(
        "airline",
        {"flight": 150, "airline": 10, "airport": 14, "aircraft": 9, "city": 12, "nation": 8},
        (
            Link("operatedBy", "flight", "airline", ("airline", "carrier"), ("operated by", "flown by", "run by")),
            Link("departsFrom", "flight", "airport", ("origin",), ("leaving from", "that depart from", "out of")),
            Link("arrivesAt", "flight", "airport", ("destination",), ("landing in", "that arrive at", "bound for")),
            Link("aircraftType", "flight", "aircraft", ("aircraft", "plane"), ("using the aircraft", "flown with a")),
            Link("airportCity", "airport", "city", ("city",), ("serving the city of", "near")),
            Link("registeredIn", "airline", "nation", ("nation", "country"), ("from", "registered in")),
        ),
    ),
    Domain(
        "tickets",
        {"ticket": 160, "developer": 22, "component": 12, "milestone": 8, "reporter": 25, "team": 7, "tool": 10},
        (
            Link("assignee", "ticket", "developer", ("assignee", "developer"), ("assigned to", "handled by")),
            Link("inComponent", "ticket", "component", ("component", "module"), ("in the component", "affecting"), 2),
            Link("targetMilestone", "ticket", "milestone", ("milestone",), ("due for", "planned for")),
            Link("reportedBy", "ticket", "reporter", ("reporter",), ("reported by", "filed by", "opened by")),
            Link("partOfTeam", "developer", "team", ("team", "group"), ("in the team", "who belong to")),
            Link("usesTool", "developer", "tool", ("tool",), ("who use", "working with"), 2),
            Link("mentoredBy", "developer", "developer", ("mentor", "adviser"), ("mentored by", "advised by")),
        ),
    ),
    Domain(
        "kitchen",
        {"dish": 150, "restaurant": 16, "cuisine": 9, "ingredient": 28, "chef": 16, "district": 9},
        (
            Link("served_at", "dish", "restaurant", ("restaurant",), ("served at", "on the menu of", "sold by"), 2),
            Link("cuisine", "dish", "cuisine", ("cuisine",), ("of the cuisine", "in the tradition of")),
            Link("has_ingredient", "dish", "ingredient", ("ingredient",), ("made with", "containing", "with"), 3),
            Link("head_chef", "restaurant", "chef", ("chef", "cook"), ("run by", "with the chef")),
            Link("district", "restaurant", "district", ("district", "quarter"), ("in", "situated in")),
            Link("trained_under", "chef", "chef", ("teacher",), ("trained under", "taught by")),
        ),
    ),
    Domain(
        "college",
        {"student": 160, "course": 20, "professor": 18, "dormitory": 8, "room": 12, "major": 10, "village": 14},
        (
            Link("enrolledIn", "student", "course", ("course", "class"), ("enrolled in", "taking", "who attend"), 3),
            Link("livesIn", "student", "dormitory", ("dormitory", "home"), ("living in", "housed in")),
            Link("majorSubject", "student", "major", ("major", "subject"), ("majoring in", "who study")),
            Link("comesFrom", "student", "village", ("village", "origin"), ("from", "coming from")),
            Link("advisor", "student", "professor", ("advisor", "tutor"), ("advised by", "supervised by")),
            Link("taughtBy", "course", "professor", ("professor", "lecturer"), ("taught by", "given by")),
            Link("heldIn", "course", "room", ("room",), ("held in", "taking place in")),
        ),
    ),
    Domain(
        "court",
        {"trial": 150, "judge": 14, "court": 8, "lawyer": 26, "verdict": 5, "town": 12, "crime": 11},
        (
            Link("law.trial.presiding_judge", "trial", "judge", ("judge",), ("heard by", "presided over by")),
            Link("law.trial.venue", "trial", "court", ("court", "venue"), ("heard at", "before the court of")),
            Link("law.trial.counsel", "trial", "lawyer", ("counsel", "lawyer"), ("argued by", "represented by"), 2),
            Link("law.trial.outcome", "trial", "verdict", ("outcome", "verdict"), ("ending in", "with the verdict")),
            Link("law.trial.charge", "trial", "crime", ("charge", "crime"), ("about", "over", "for")),
            Link("law.court.location", "court", "town", ("town", "location"), ("in", "sitting in")),
            Link("law.judge.home_town", "judge", "town", ("home town",), ("from", "living in")),
        ),
    ),
)

HELD_OUT = (
    Domain(
        "museum",
        {"painting": 150, "painter": 35, "museum": 14, "style": 8, "country": 12, "collector": 20},
        (
            Link("painted_by", "painting", "painter", ("painter", "artist"), ("painted by", "by", "created by")),
            Link("exhibited_in", "painting", "museum", ("museum",), ("shown in", "on display in")),
            Link("art_style", "painting", "style", ("style", "movement"), ("in the style of",)),
            Link("owner", "painting", "collector", ("owner", "holder"), ("owned by", "belonging to")),
            Link("citizen_of", "painter", "country", ("nationality", "country"), ("from", "coming from")),
            Link("located_in", "museum", "country", ("country", "location"), ("in", "situated in")),
        ),
    ),
    Domain(
        "company",
        {"employee": 160, "department": 12, "office": 10, "project": 24, "skill": 15, "client": 14},
        (
            Link("memberOf", "employee", "department", ("department", "unit"), ("in the department", "belonging to")),
            Link("worksOn", "employee", "project", ("project",), ("working on", "assigned to"), 2),
            Link("hasSkill", "employee", "skill", ("skill", "expertise"), ("skilled in", "who know"), 2),
            Link("basedAt", "department", "office", ("office", "location"), ("based at", "sitting in")),
            Link("commissionedBy", "project", "client", ("client", "customer"), ("ordered by", "commissioned by")),
            Link("reportsTo", "employee", "employee", ("boss", "manager"), ("reporting to", "managed by")),
        ),
    ),
    Domain(
        "music",
        {"song": 160, "singer": 35, "genre": 9, "label": 12, "composer": 25, "city": 14},
        (
            Link("performer", "song", "singer", ("singer", "artist"), ("sung by", "performed by")),
            Link("composer", "song", "composer", ("composer",), ("composed by", "written by")),
            Link("genre", "song", "genre", ("genre", "kind of music"), ("in the genre",)),
            Link("record_label", "song", "label", ("label", "record company"), ("released by", "released on")),
            Link("hometown", "singer", "city", ("hometown", "home city"), ("from", "who come from")),
            Link("signed_with", "singer", "label", ("label",), ("signed to", "under contract with")),
        ),
    ),
)

NEWER = (
    Domain(
        "clinic",
        {"patient": 160, "doctor": 40, "ward": 14, "illness": 20, "drug": 24, "clinic": 8},
        (
            Link("treated_by", "patient", "doctor", ("doctor", "physician"), ("treated by", "under the care of")),
            Link("diagnosed_with", "patient", "illness", ("illness", "disease"), ("suffering from", "ill with"), 2),
            Link("admitted_to", "patient", "ward", ("ward",), ("admitted to", "staying in")),
            Link("takes", "patient", "drug", ("drug", "medicine"), ("taking", "who are given"), 2),
            Link("part_of", "ward", "clinic", ("clinic", "hospital"), ("in the clinic", "belonging to")),
            Link("head_physician", "ward", "doctor", ("head doctor", "chief"), ("headed by", "run by")),
        ),
    ),
    Domain(
        "fleet",
        {"ship": 150, "captain": 40, "harbour": 16, "shipyard": 12, "operator": 14, "country": 12},
        (
            Link("commanded_by", "ship", "captain", ("captain", "skipper"), ("commanded by", "sailing under")),
            Link("home_port", "ship", "harbour", ("harbour", "home port"), ("based in", "that sail from")),
            Link("built_at", "ship", "shipyard", ("shipyard", "yard"), ("built at", "that were built by")),
            Link("operator", "ship", "operator", ("operator", "shipping line"), ("operated by", "run by")),
            Link("located_in", "harbour", "country", ("country",), ("in", "on the coast of")),
            Link("trained_by", "captain", "captain", ("teacher", "instructor"), ("trained by", "taught by")),
        ),
    ),
)
"""Written after the rules by which the pipeline reads questions, and of their wrong answers none was read."""

NEWEST = (
    Domain(
        "theatre",
        {"play": 150, "playwright": 35, "stage": 14, "stage director": 25, "costumer": 15, "town": 14, "troupe": 12},
        (
            Link("penned_by", "play", "playwright", ("playwright", "author"), ("written by", "by", "authored by")),
            Link("staged_at", "play", "stage", ("stage", "theatre"), ("performed at", "put on at"), 2),
            Link("director", "play", "stage director", ("director",), ("directed by", "staged by")),
            Link("costumes_by", "play", "costumer", ("costume designer",), ("with costumes by", "dressed by")),
            Link("ensemble", "play", "troupe", ("troupe", "company"), ("acted by", "played by")),
            Link("located_in", "stage", "town", ("town", "city"), ("in", "situated in")),
            Link("birthplace", "playwright", "town", ("place of birth", "home town"), ("born in", "from")),
            Link("inspired_by", "playwright", "playwright", ("model", "inspiration"), ("influenced by", "inspired by")),
        ),
    ),
    Domain(
        "railway",
        {"train": 150, "station": 30, "driver": 30, "company": 10, "depot": 10, "builder": 10, "county": 12},
        (
            Link("originStation", "train", "station", ("starting point", "origin"), ("starting at", "leaving from")),
            Link("terminus", "train", "station", ("destination", "terminus"), ("bound for", "that go to")),
            Link("operatedBy", "train", "company", ("operator", "railway company"), ("run by", "operated by")),
            Link("drivenBy", "train", "driver", ("driver", "engineer"), ("driven by", "steered by")),
            Link("manufacturer", "train", "builder", ("builder", "maker"), ("built by", "made by")),
            Link("homeDepot", "train", "depot", ("depot", "home depot"), ("kept at", "stationed in")),
            Link("inCounty", "station", "county", ("county",), ("in", "lying in")),
            Link("employer", "driver", "company", ("employer", "firm"), ("employed by", "who work for")),
            Link("supervisor", "driver", "driver", ("boss", "superior"), ("supervised by", "who answer to")),
        ),
    ),
)
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
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="write rows of name, value, unit")
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
