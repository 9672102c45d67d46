"""The served page in a real browser: what appears, is searched, opened, asked, and stays text."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from byokg.evaluation.records import PREDICTIONS
from byokg.evaluation.report.asking import asker
from byokg.evaluation.report.live import LiveRuns
from byokg.evaluation.report.server import ViewServer
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from tests.evaluation.report.conftest import HOSTILE
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
    page.wait_for_selector("#list li:last-child:nth-child(1) a")
    with (root / "new" / PREDICTIONS).open("ab") as file:
        file.write(rest[0])
    page.wait_for_selector("#list li:last-child:nth-child(2) a")


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
        page.wait_for_selector(f"#list a:has-text('{found}')")
    page.select_option("select[aria-label=Outcome]", "wrong")
    page.wait_for_selector("#list .empty")


def test_two_runs_stand_side_by_side_and_back_goes_back(page: Page) -> None:
    for box in page.locator(".leaders input").all():
        box.check()
    page.click("#beside")
    page.wait_for_selector("#list a")
    page.fill("#search", "who")
    page.wait_for_selector("#count:has-text('3 of 5')")
    page.click("#list a:has-text('Who directed Heat?')")
    page.wait_for_selector(".side .verdict")
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
    page.wait_for_selector("#count:has-text('3 of 5')")
    assert page.input_value("#search") == "who"
    page.go_back()
    page.wait_for_selector(".leaders")


def test_keys_alone_lead_from_the_runs_to_a_node_and_back(page: Page) -> None:
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("#list a")
    page.keyboard.press("/")
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
    page.keyboard.press("Escape")
    page.wait_for_selector("#list a")
    page.keyboard.press("Escape")
    page.wait_for_selector(".leaders")


def test_a_question_to_the_graph_shows_its_stages(page: Page) -> None:
    page.click("#nav-ask")
    page.fill("#question", "Who directed Heat?")
    page.keyboard.press("Enter")
    page.wait_for_selector(".took")
    assert [text.split()[0] for text in texts(page, "#stages li")] == [
        *("propose", "link", "retrieve"),
        *("propose", "link", "answer"),
    ]
    assert "onerror" in texts(page, ".answers")[0]
    assert page.locator("img").count() == 0
    assert page.locator("#answer .evidence").count() >= 1, "the rounds stand below the picture"
    assert "[object" not in page.inner_text("#content")


def test_hostile_names_stay_text(page: Page) -> None:
    page.click("role=link[name=/img/]")
    page.wait_for_selector("#list a")
    page.click("#list a:has-text('Which film is')")
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
    page.wait_for_selector("#list a")
    places = [page.url]
    page.click("#list a:has-text('Who directed Heat?')")
    page.wait_for_selector(".verdict")
    places += [page.url, page.url + "&node=f1", page.url.split("#")[0]]
    for place in places:
        page.goto(place)
        page.wait_for_timeout(100)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
