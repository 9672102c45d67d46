"""The served page in a real browser: what appears, is searched, opened, asked, and stays text."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from byokg.evaluation.records import PREDICTIONS
from byokg.evaluation.report.live import LiveRuns, asker
from byokg.evaluation.report.server import ViewServer
from byokg.evaluation.runner import RunSettings, run_evaluation
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from byokg.types import Answer, Question
from tests.evaluation.report.conftest import BASE, EXAMPLES, HOSTILE, Told
from tests.evaluation.report.test_browser import texts
from tests.evaluation.report.test_live import unfinished

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMED = '<img src=x onerror="document.title=1">&run=2'
"""What a folder may be called."""


@pytest.fixture
def root(folders: tuple[Path, Path], tmp_path: Path) -> Path:
    """Return a folder with both runs, one of which has a hostile name."""
    shutil.copytree(folders[0], tmp_path / "runs" / "base")
    shutil.copytree(folders[1], tmp_path / "runs" / NAMED)
    return tmp_path / "runs"


@pytest.fixture
def page(browser: Browser, root: Path) -> Iterator[Page]:
    """Open the page; an error, a violated policy or a request elsewhere fails the test."""
    graph = ColumnarGraph.from_triples(
        [("Heat", "directed_by", HOSTILE.replace("\ud800", "")), ("Heat", "starred", "Al")]
    )
    trouble: list[str] = []

    def describe(id: str) -> dict[str, object]:
        values = [{"predicate": "starred", "direction": "out", "count": 9, "values": [{"id": "p2", "name": HOSTILE}]}]
        values.append({"predicate": "set_in", "direction": "in", "count": 1, "values": [{"id": "c1", "name": HOSTILE}]})
        return {"id": id, "entity_type": HOSTILE, "born": 1940, "values": values}

    with ViewServer(LiveRuns([root]), 0, asker(offline_pipeline(Parts(graph)), graph), describe) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        context = browser.new_context(viewport={"width": 1366, "height": 768})
        tab = context.new_page()
        tab.set_default_timeout(10_000)
        tab.on("request", lambda request: trouble.append(request.url) if server.secret not in request.url else None)
        tab.on("pageerror", lambda error: trouble.append(str(error)))
        tab.on("console", lambda message: trouble.append(message.text))
        tab.goto(server.address)
        tab.wait_for_selector(".leaders a")
        yield tab
        assert [each for each in trouble if not each.startswith("data:")] == []
        context.close()
        server.shutdown()
        thread.join()


def test_runs_are_listed_and_one_that_is_written_appears(page: Page, root: Path) -> None:
    assert texts(page, ".leaders .name a") == [NAMED, "base"]
    shutil.copytree(root / "base", root.parent / "being written")
    rest = unfinished(root.parent / "being written", 1)
    (root.parent / "being written").rename(root / "new")
    page.wait_for_selector("tr.run:has-text('1 of 5')")
    page.click("role=link[name=new]")
    page.wait_for_selector("#count:text-is('1 question')")
    with (root / "new" / PREDICTIONS).open("ab") as file:
        file.write(rest[0])
    page.wait_for_selector("#count:text-is('2 questions')")


def test_another_profile_is_one_choice_away(page: Page) -> None:
    page.select_option("#profile", "rog")
    page.wait_for_selector(".leaders td.dim", state="detached")  # what is not counted yet is a dash
    assert "profile=rog" in page.url


def test_search_looks_into_questions_answers_and_gold(page: Page) -> None:
    page.click("role=link[name=base]")
    for words, found in (
        ("kurosawa", "Who wrote Ran?"),
        ("kilmer", "Who starred in Heat?"),
        ("heat DIRECTED", "Who directed Heat?"),
    ):
        page.fill("#search", words)
        page.wait_for_selector("#count:has-text('1 of 5')")
        page.wait_for_selector(f"#list .text:has-text('{found}')")
    page.select_option("select[aria-label=Status]", "wrong")
    page.wait_for_selector("#list .empty")


def compare(page: Page) -> None:
    """Choose both runs, and go to their questions."""
    for box in page.locator(".leaders input").all():
        box.check()
    page.click("#beside")
    page.wait_for_selector("#list .row")


def test_totals_and_p_stand_above_a_comparison_in_the_runs_colours(page: Page) -> None:
    colours = dict(zip(texts(page, ".leaders .name a"), swatches(page, ".leaders"), strict=True))
    compare(page)
    page.wait_for_selector("#totals td:text-is('1.000')")
    rows = texts(page, "#totals tbody tr")
    assert [row.rsplit("60.0")[1].split() for row in rows] == [["baseline"], ["0.0", "+1", "−1", "1.000"]]
    assert swatches(page, "#totals") == [colours[NAMED], colours["base"]]
    page.click("#nav-overview")
    page.wait_for_selector("#deltas tbody td")
    assert swatches(page, ".leaders") == [colours[NAMED], colours["base"]]
    assert swatches(page, "#deltas") == [colours["base"]]


def swatches(page: Page, within: str) -> list[str]:
    """Return the classes of the runs' colours in a part of the page."""
    return [each.get_attribute("class") or "" for each in page.locator(f"{within} .swatch").all()]


def test_two_runs_stand_side_by_side_and_back_goes_back(page: Page) -> None:
    compare(page)
    page.fill("#search", "who")
    page.wait_for_selector("#count:has-text('3 of 5')")
    page.click("#list .row:has-text('Who directed Heat?')")
    page.click("role=tab[name='Side by side']")
    page.wait_for_selector(".side:nth-child(2) .verdict")
    said = texts(page, ".side .verdict")
    assert ["no answer" in said[0], "Michael Mann" in said[1]] == [True, True]
    # e1 is cited in the second run: its evidence is gone to there, and not in the first.
    page.locator(".side").nth(1).locator(".citations button").first.click()
    assert page.evaluate("document.activeElement.closest('.side') === document.querySelectorAll('.side')[1]")
    page.locator(".side").first.locator("svg.subgraph .node.topic").click()
    page.wait_for_selector("dialog[open]")
    page.locator("dialog .group button").first.click()
    page.wait_for_selector("dialog[aria-label='Al Pacino']")
    page.go_back()
    page.wait_for_selector("dialog[aria-label='Heat']")
    page.go_back()
    page.wait_for_selector("dialog", state="detached")
    page.go_back()
    page.wait_for_selector("#detail .empty")
    assert page.input_value("#search") == "who" and texts(page, "#count") == ["3 of 5 questions"]
    page.go_back()
    page.wait_for_selector(".leaders a")


def test_a_node_is_expanded_by_its_edges_in_the_graph(page: Page) -> None:
    page.click("role=link[name=base]")
    page.click("#list .row:has-text('Who directed Heat?')")
    page.wait_for_selector("svg.subgraph[aria-label*='4 nodes, 3 edges']")
    page.locator("svg.subgraph .node.topic").click()
    page.wait_for_selector("dialog .group")
    page.click("role=button[name='Expand in the drawing']")
    page.wait_for_selector("dialog", state="detached")
    page.wait_for_selector("svg.subgraph[aria-label*='5 nodes, 4 edges']")  # the evidence has the other one
    assert "onerror" in (page.locator(".edge.of-graph title").text_content() or "")
    assert page.locator("img").count() == 0


def test_keys_alone_lead_from_the_runs_to_a_node_and_back(page: Page) -> None:
    page.keyboard.press("/")
    page.wait_for_selector("#search:focus")
    page.keyboard.type("directed")
    page.wait_for_selector("#count:has-text('1 of 5')")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(".verdict")
    page.focus("svg.subgraph .node.topic")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    page.focus("#detail")
    page.keyboard.press("Escape")
    page.wait_for_selector("#list:focus")
    page.keyboard.press("Escape")
    page.wait_for_selector(".leaders a")


def test_asking_is_on_every_page(page: Page, browser: Browser, root: Path) -> None:
    for place in ("#/", "#/overview", "#/questions", "#/ask"):
        page.goto(page.url.split("#")[0] + place)
        page.wait_for_selector("#nav-ask")
    with ViewServer(LiveRuns([root])) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        tab = browser.new_page()
        tab.goto(server.address + "#/ask")
        tab.wait_for_selector("text=No graph is open.")
        assert tab.locator("#question").is_disabled()
        tab.close()
        server.shutdown()
        thread.join()


def test_a_running_evaluation_is_paused_and_shows_its_progress(page: Page, root: Path) -> None:
    asked, go = threading.Event(), threading.Event()

    class Slow(Told):
        def run(self, question: Question) -> Answer:
            asked.set()
            go.wait(20)
            return super().run(question)

    settings = RunSettings("films test", "0" * 64, "1" * 64)
    work = threading.Thread(target=run_evaluation, args=(Slow(BASE), EXAMPLES, root / "now", settings))
    work.start()
    assert asked.wait(20)
    page.click("#pause-now:text-is('Pause')")
    page.wait_for_selector("tr.paused:has-text('paused, 0 of 5')")
    go.set()
    page.wait_for_selector("tr.paused progress[value='2']")  # the two in flight
    page.click("#pause-now:text-is('Go on')")
    page.wait_for_selector("tr.finished:has-text('now')")
    work.join(20)


def test_a_question_to_the_graph_shows_its_stages(page: Page) -> None:
    page.click("#nav-ask")
    page.fill("#question", "Who directed Heat?")
    page.keyboard.press("Enter")
    page.wait_for_selector(".took")
    assert [(item.text_content() or "").split()[0] for item in page.locator("#stages li").all()] == [
        *("propose", "link", "retrieve"),
        *("propose", "link", "answer"),
    ]
    assert "onerror" in texts(page, ".answers")[0]
    assert page.locator("img").count() == 0
    assert page.locator("#answer .evidence").count() >= 1, "the rounds stand below the picture"
    assert "[object" not in page.inner_text("#content")


def test_hostile_names_stay_text(page: Page) -> None:
    page.click("role=link[name=/img/]")
    page.click("#list .row:has-text('Which film is')")
    page.wait_for_selector(".verdict")
    heading = page.locator("#detail h2").inner_text()
    assert "onerror" in heading and "U+202E" in heading and "\u202e" not in heading
    page.locator("svg.subgraph .node.topic").click()
    page.wait_for_selector("dialog .group")
    assert page.locator("img").count() == 0
    assert page.title().startswith("Which film is </script>")


def test_nothing_is_wider_than_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.click("role=link[name=base]")
    page.wait_for_selector("#list .row")
    places = [page.url]
    page.click("#list .row:has-text('Who directed Heat?')")
    page.wait_for_selector(".verdict")
    first = page.url.split("#")[0]
    places += [page.url, page.url + "&node=f1", f"{page.url}&show=all", first, f"{first}#/overview", f"{first}#/ask"]
    for place in places:
        page.goto(place)
        page.wait_for_timeout(100)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
