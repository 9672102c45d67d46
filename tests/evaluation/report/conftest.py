"""What tests of the report share: two small runs over the same questions, and a browser to open pages in."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from byokg.errors import GraphNotFound
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.report.page import build_page, write_page
from byokg.evaluation.report.view import asked_by, read_reported
from byokg.evaluation.run_folder import Run
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
    Node,
    NodeCell,
    NodeEvidence,
    PathEvidence,
    ProposedPath,
    Question,
    RowsEvidence,
    Step,
    Triple,
    TripleEvidence,
)
from byokg.types import Path as Walk

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOSTILE = '</script><img src=x onerror="document.title=1"><script>document.title=2</script>\u202egnp.exe\ud800{{style}}'
"""Markup, a bidirectional control, half a character, and a slot of the page's own template."""

EXAMPLES = (
    Example("q1", "Who directed Heat?", ("Michael Mann",), hops=1, type="1-hop"),
    Example("q2", "What else did the director of Heat make?", ("Ali", "Thief"), hops=2, type="2-hop"),
    Example("q3", "Who starred in Heat?", ("Al Pacino",), hops=1, type="1-hop"),
    Example("q4", f"Which film is {HOSTILE}?", (HOSTILE,), type=HOSTILE),
    Example("q5", "Who wrote Ran?", ("Akira Kurosawa",), hops=1, type="1-hop"),
)

#  f1 (Heat) -directed_by-> p1 (Michael Mann) <-directed_by- f2 (Ali)
#     |
#     +--starred--> p2 (Al Pacino)
HEAT, ALI, MANN, PACINO = (EntityId(id) for id in ("f1", "f2", "p1", "p2"))
DIRECTED = Triple(HEAT, "directed_by", MANN, 0, {"source": "credits"})
ALSO = Triple(ALI, "directed_by", MANN, 1)
STARRED = Triple(HEAT, "starred", PACINO, 2)

BASE = {
    "q1": (AnswerItem("Michael Mann", MANN, 1.0, ("e1",)),),
    "q2": (AnswerItem("Ali", ALI, 1.0, ("e2",)),),
    "q3": (AnswerItem("Val Kilmer", None, 0.5),),
    "q4": (AnswerItem(HOSTILE, None, 1.0),),
}
"""What the first run answers: q1 right, q2 half of it, q3 wrong, q4 right; q5 fails."""

OTHER = {**BASE, "q1": (), "q3": (AnswerItem("Al Pacino", PACINO, 1.0, ("e3",)),)}
"""The second run loses q1 and wins q3."""


class Told:
    """Answers what it was told to; a question it was told nothing about fails."""

    def __init__(self, answers: Mapping[str, tuple[AnswerItem, ...]]) -> None:
        self._answers = answers

    def run(self, question: Question) -> Answer:
        """Answer with two rounds behind it."""
        if question.id not in self._answers:
            raise GraphNotFound(f"{HOSTILE} is no graph")
        mention = Mention("Heat", 13, 17)
        linked = Linked((LinkedEntity(HEAT, "Heat", mention, "exact", 1.0),))
        name = HOSTILE if question.id == "q4" else "Al Pacino"
        evidence: list[Evidence] = [
            PathEvidence("path", 0.9, HEAT, ("directed_by",), (MANN,), (Walk(HEAT, (DIRECTED,), (False,)),)),
            PathEvidence(
                "path",
                0.8,
                HEAT,
                ("directed_by", "^directed_by"),
                (ALI,),
                (Walk(HEAT, (DIRECTED, ALSO), (False, True)),),
            ),
            TripleEvidence("agentic", 0.7, STARRED),
            NodeEvidence("agentic", 0.6, Node(PACINO, name, "Person", {"born": 1940})),
        ]
        rows = ((NodeCell(PACINO, name), 1940),)
        later: list[Evidence] = [
            RowsEvidence("query", 1.0, "cypher", "MATCH (a) RETURN a, a.born", ("a", "a.born"), rows),
            Feedback("query", 0.0, "MATCH (a:Flim) RETURN a", "there is no label Flim"),
        ]
        artifacts = Artifacts((mention,), (ProposedPath(("directed_by",), 0.9),), (GraphQuery("cypher", "RETURN 1"),))
        step = Step("retrieve", {"entities": ["f1"]}, {"edges": 2})
        context = Context().add(artifacts, linked, [evidence], [step]).add(Artifacts(), Linked(), [later])
        return Answer(question.id, self._answers[question.id], context.rounds)


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the folders of both runs."""
    root = tmp_path_factory.mktemp("runs")
    for name, answers, hops in (("base", BASE, 2), ("other", OTHER, 3)):
        config = {"options": {"pipeline": "told"}, "pipeline": {"max_hops": hops}}
        settings = RunSettings("films test", "0" * 64, "1" * 64, config=config)
        run_evaluation(Told(answers), EXAMPLES, root / name, settings)
    return root / "base", root / "other"


@pytest.fixture(scope="session")
def runs(folders: tuple[Path, Path]) -> list[Run]:
    """Return both runs, read."""
    return read_reported(folders)


@pytest.fixture(scope="session")
def page_file(runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report about both runs."""
    out = tmp_path_factory.mktemp("page") / "report.html"
    write_page(build_page(runs, asked_by(runs)), out)
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Chromium without a window, for one file: while it runs, its event loop leaves no room for another."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install 'byokg[dev]'"
    )
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no Chromium on this machine; on Debian or Ubuntu run: sudo apt install chromium")
    with sync_api.sync_playwright() as playwright:
        # Chromium refuses to build its sandbox for root, as whom containers run.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        started = playwright.chromium.launch(executable_path=program, args=arguments)
        yield started
        started.close()


@pytest.fixture
def tab(browser: Browser, page_file: Path) -> Iterator[Page]:
    """Open the report; a request, an error or a violated policy fails the test."""
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    opened = context.new_page()
    trouble: list[str] = []
    opened.on("request", lambda request: trouble.append(request.url))
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.on("console", lambda message: trouble.append(message.text))
    opened.goto(page_file.as_uri())
    opened.wait_for_selector("html[data-ready=yes]", state="attached")
    yield opened
    assert trouble == [page_file.as_uri()]
    context.close()
