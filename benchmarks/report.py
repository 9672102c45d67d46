"""Size, write time and browser time of a report of 5,000 questions.

python benchmarks/report.py [--questions N] [--folder DIR] [--json FILE]

The run is generated from a fixed seed: two rounds a question, and 4 KB of evidence in each round's trace, of paths,
triples, rows of queries and feedback over 60,000 made-up names. Half of the second round's evidence was in the first.
Writing is timed as `byokg report` in a process of its own; the browser is headless Chromium, and is skipped
if missing. First paint is the browser's first contentful paint; the rest is timed from outside.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks.rows import Row, make_parser, show
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.records import TRACE, record_answer
from byokg.evaluation.runner import RunSettings, run_evaluation
from byokg.types import (
    Answer,
    AnswerItem,
    Artifacts,
    Context,
    EntityId,
    Evidence,
    Feedback,
    GraphQuery,
    Linked,
    LinkedEntity,
    Mention,
    PathEvidence,
    ProposedPath,
    Question,
    RowsEvidence,
    Triple,
    TripleEvidence,
)
from byokg.types import Path as Walk

BYTES = 4096
"""Of evidence in each round."""
NODES = 60_000
RELATIONS = 400
SYLLABLES = "ba ke lo mi nu ra se to vi wa zhe qui stra plo".split()
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def name(number: int) -> str:
    """Return the name of a node: two words, and its number."""
    chance = random.Random(number)
    first, second = ("".join(chance.choices(SYLLABLES, k=3)).title() for _ in range(2))
    return f"{first} {second} {number}"


def relation(chance: random.Random) -> str:
    """Return one of the relations, named as Freebase names them."""
    number = chance.randrange(RELATIONS)
    return f"{SYLLABLES[number % 14]}.{SYLLABLES[number // 14 % 14]}_{number}.relation"


class MadeUp:
    """Answers question `q<n>` with what the seed and n decide."""

    def run(self, question: Question) -> Answer:
        """Answer it."""
        chance = random.Random(question.id)
        topic, gold = (EntityId(name(chance.randrange(NODES))) for _ in range(2))
        mention = Mention(str(topic), 0, len(topic))
        linked = Linked((LinkedEntity(topic, str(topic), mention, "exact", 1.0),))
        first = round_of(chance, topic, [])
        second = round_of(chance, topic, first[: len(first) // 2])
        paths = tuple(ProposedPath((relation(chance), relation(chance)), chance.random()) for _ in range(5))
        query = GraphQuery("cypher", f"MATCH (a {{name: '{topic}'}})-[:`{paths[0].relations[0]}`]->(b) RETURN b")
        artifacts = Artifacts((mention,), paths, (query,), (str(gold),))
        context = Context().add(artifacts, linked, [first]).add(artifacts, linked, [second])
        item = AnswerItem(right(question.id) if chance.random() < 0.6 else str(gold), None, 1.0, ("e1",))
        return Answer(question.id, (item,), context.rounds)


def right(id: str) -> str:
    """Return the gold answer."""
    return name(random.Random(f"gold {id}").randrange(NODES))


def round_of(chance: random.Random, topic: EntityId, known: list[Evidence]) -> list[Evidence]:
    """Return evidence until its trace takes as many bytes as a round's should."""
    found = list(known)
    while size(found) < BYTES:
        found.append(piece(chance, topic))
    return found


def piece(chance: random.Random, topic: EntityId) -> Evidence:
    """Return one piece of evidence."""
    kind, score = chance.random(), round(chance.random(), 6)
    edges = [
        Triple(topic, relation(chance), EntityId(name(chance.randrange(NODES))), chance.randrange(10**6))
        for _ in range(6)
    ]
    if kind < 0.5:
        walks = tuple(Walk(topic, (edge,), (False,)) for edge in edges[:3])
        return PathEvidence("path", score, topic, (edges[0].relation,), tuple(edge.tail for edge in edges), walks)
    if kind < 0.9:
        return TripleEvidence("agentic", score, edges[0])
    if kind < 0.97:
        rows = tuple((edge.tail, edge.edge) for edge in edges)
        query = f"MATCH (a)-[:`{edges[0].relation}`]->(b) RETURN b.name, b.number"
        return RowsEvidence("query", 1.0, "cypher", query, ("b.name", "b.number"), rows)
    return Feedback("query", 0.0, f"MATCH (a)-[:`{edges[0].relation}`]->(b)", "there is no such relation")


def size(evidence: list[Evidence]) -> int:
    """Return how many bytes evidence takes in a trace."""
    rounds = Context().add(Artifacts(), Linked(), [evidence]).rounds
    return len(record_answer(Answer("", (), rounds), 0.0).trace)


def make_run(folder: Path, questions: int) -> Path:
    """Evaluate the made-up pipeline."""
    kinds = ("1-hop", "2-hop", "count", "temporal")
    examples = [
        Example(f"q{number}", f"What does {name(number)} have to do with {name(number + 1)}?", (right(f"q{number}"),),
                hops=1 + number % 3, type=kinds[number % 4])
        for number in range(questions)
    ]  # fmt: skip
    out = folder / "made-up"
    run_evaluation(MadeUp(), examples, out, RunSettings("made-up", "0" * 64, "1" * 64))
    return out


def in_browser(page: Path) -> list[Row]:
    """Open the page and use it; nothing where there is no browser."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        return []
    from playwright.sync_api import sync_playwright

    rows = []
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        tab = browser.new_page(viewport={"width": 1440, "height": 900})
        began = time.perf_counter()
        tab.goto(page.as_uri())
        tab.wait_for_selector("html[data-ready=yes]", state="attached")
        rows.append(Row("page can be used", time.perf_counter() - began, "s"))
        paint = tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        rows.insert(0, Row("first paint", paint / 1000, "s"))

        def timed(label: str, action: partial[None], selector: str) -> None:
            began = time.perf_counter()
            action()
            tab.wait_for_selector(selector)
            rows.append(Row(label, 1000 * (time.perf_counter() - began), "ms"))

        tab.click("#nav-questions")
        timed("search all questions", partial(tab.fill, "#search", "999"), "#count:has-text(' of ')")
        tab.fill("#search", "")
        tab.focus("#list")
        tab.keyboard.press("End")
        timed("open the last question", partial(tab.keyboard.press, "Enter"), "#run-panel")
        browser.close()
    return rows


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--questions", type=int, default=5000)
    parser.add_argument("--folder", type=Path, help="keep the run and the page here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        run = make_run(folder, options.questions)
        page = folder / "report.html"
        command = [sys.executable, "-m", "byokg", "report", str(run), "--out", str(page)]
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        rows = [
            Row("write the report", time.perf_counter() - began, "s"),
            Row("size of the traces", (run / TRACE).stat().st_size / 1e6, "MB"),
            Row("size of the report", page.stat().st_size / 1e6, "MB"),
            *in_browser(page),
        ]
    show(rows, f"report of {options.questions:,} questions", options.json)


if __name__ == "__main__":
    main()
