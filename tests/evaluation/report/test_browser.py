"""The report in a real browser: what is shown, clicked, filtered, typed and printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from byokg.evaluation.datasets.base import Example
from byokg.evaluation.report.page import build_page, write_page
from byokg.evaluation.report.summary import asked_by, read_reported
from byokg.evaluation.runner import RunSettings, run_evaluation
from tests.evaluation.report.conftest import BASE, HOSTILE, Told

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def texts(tab: Page, selector: str) -> list[str]:
    """Return the texts of all elements, white space collapsed."""
    return [" ".join(text.split()) for text in tab.locator(selector).all_inner_texts()]


def listed(tab: Page) -> list[str]:
    """Return the first words of the questions in the list."""
    return [text.split(" Heat")[0].split(" Ran")[0] for text in texts(tab, "#rows .text")]


def open_question(tab: Page, words: str) -> None:
    """Go to the list and click a question."""
    tab.click("#tab-questions")
    tab.locator("#rows .row", has_text=words).first.click()
    tab.wait_for_selector("#run-panel")


def test_the_leaderboard_ranks_runs_by_the_column_that_is_clicked(tab: Page) -> None:
    assert tab.title() == "films test, 2 runs – byokg report"
    # Hit: base q1 q2 q4, other q2 q3 q4, of 5. F1 of q2 is 2/3.
    assert [row.split()[0] for row in texts(tab, ".leaders tbody tr")] == ["base", "other"]
    assert texts(tab, ".leaders tbody tr:first-child td")[0].startswith("60.0")
    tab.click("#sort-seconds")
    assert tab.locator(".leaders th[aria-sort]").get_attribute("aria-sort") == "descending"
    tab.click("#sort-seconds")
    assert tab.locator(".leaders th[aria-sort]").get_attribute("aria-sort") == "ascending"


def test_charts_follow_the_metric(tab: Page) -> None:
    assert texts(tab, "#deltas .number.strong") == ["0.0"]
    assert texts(tab, "#deltas .changes") == ["pipeline.max_hops 3"]
    assert texts(tab, "#deltas tbody .number")[-2:] == ["+1 −1", "1.000"]
    tab.click("role=radio[name='F1']")
    assert tab.locator("#breakdown h2").inner_text() == "F1 by type of question, %"
    assert "2-hop 1 66.7 66.7" in texts(tab, "#breakdown tbody tr")
    assert tab.locator("#tradeoff circle").count() == 2
    assert texts(tab, "#loss th") == [
        "asked",
        "not failed",
        "topic linked",
        "answer retrieved",
        "shown",
        "cited",
        "answered",
    ]


def test_answers_by_score_are_drawn_where_scores_differ(tab: Page) -> None:
    assert tab.locator("#by-score svg title").all_text_contents() == [
        "base, score 1.00 or more: 100.0 % right of 60.0 % answered",
        "base, score 0.50 or more: 75.0 % right of 80.0 % answered",
    ]
    assert texts(tab, "#by-score li") == ["base: AUROC 1.00, calibration error 0.13"]


def test_questions_are_filtered_and_sorted(tab: Page) -> None:
    tab.click("#tab-questions")
    assert len(listed(tab)) == 5
    tab.fill("#search", "heat DIRECTED")
    assert texts(tab, "#count") == ["1 of 5"]
    tab.fill("#search", "")
    outcome = tab.get_by_label("Outcome")
    for value, words in (
        ("right", ["Who directed", "What else did the director of", "Which film is </script><img"]),
        ("partly", ["What else did the director of"]),
        ("wrong", ["Who starred in", "Who wrote"]),
        ("failed", ["Who wrote"]),
        ("lost", []),
    ):
        outcome.select_option(value)
        assert [each[: len(word)] for each, word in zip(listed(tab), words, strict=True)] == words
    tab.get_by_label("Run", exact=True).select_option("1")
    outcome.select_option("lost")
    assert listed(tab) == ["Who directed"]
    outcome.select_option("won")
    assert listed(tab) == ["Who starred in"]
    outcome.select_option("")
    tab.get_by_label("Type", exact=True).select_option("=2-hop")
    assert listed(tab) == ["What else did the director of"]
    tab.get_by_label("Type", exact=True).select_option("")
    tab.get_by_label("Order").select_option("worst")
    assert listed(tab)[0] == "Who directed"


def test_a_question_shows_all_that_led_to_its_answer(tab: Page) -> None:
    open_question(tab, "Who directed Heat?")
    panel = tab.locator("#run-panel").inner_text()
    for words in ("Round 1", "Round 2", "Mentions", "RETURN 1", "exact", "directed_by", "there is no label Flim"):
        assert words in panel
    path, film, triple, node, rows, feedback = texts(tab, ".evidence")
    assert path.startswith("e1 path 0.90 Heat → directed_by → Michael Mann")
    assert film.startswith("e2 path 0.80 Heat → directed_by ← directed_by ← f2")
    assert triple == "e3 agentic 0.70 Heat → starred → Al Pacino"
    assert node == "e4 agentic 0.60 Al Pacino Person born 1940"
    assert "MATCH (a) RETURN a, a.born" in rows and "Al Pacino 1940" in rows
    assert feedback.endswith("there is no label Flim MATCH (a:Flim) RETURN a")
    assert texts(tab, ".evidence.cited b:first-child")[0] == "e1"
    assert texts(tab, ".evidence p mark.right") == ["Michael Mann"]


def test_the_retrieved_subgraph_is_drawn_with_its_answers(tab: Page) -> None:
    open_question(tab, "Who directed Heat?")
    picture = tab.locator("svg.subgraph")
    assert picture.get_attribute("aria-label") == "Retrieved subgraph: 4 nodes, 3 edges"
    assert picture.locator(".node.topic text").text_content() == "Heat"
    assert picture.locator(".node.right text").text_content() == "Michael Mann"
    tab.hover("#evidence-e3")
    assert picture.locator(".edge.lit title").text_content() == "Heat → starred → Al Pacino  (e3)"
    tab.click("#run-panel .citations button")
    assert tab.evaluate("document.activeElement.id") == "evidence-e1"


def test_another_run_of_the_same_question_is_one_click_away(tab: Page) -> None:
    open_question(tab, "Who directed Heat?")
    tab.click("role=tab[name=/other/]")
    assert "no answer" in tab.locator(".verdict").inner_text()
    assert "missed" in tab.locator(".verdict").inner_text()
    assert tab.evaluate("decodeURIComponent(location.hash)") == "#view=questions&question=q1&run=other"


def test_everything_is_reached_by_keys_alone(tab: Page) -> None:
    tab.keyboard.press("/")
    assert tab.evaluate("document.activeElement.id") == "search"
    tab.keyboard.type("heat")
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "list"
    tab.keyboard.press("ArrowDown")
    assert tab.locator("#list").get_attribute("aria-activedescendant") == "row-1"
    assert tab.locator("#row-1").get_attribute("aria-selected") == "true"
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#run-panel")
    tab.wait_for_function("document.activeElement.id === 'detail'")
    assert tab.locator("#detail h2").inner_text() == "What else did the director of Heat make?"
    tab.keyboard.press("Tab")
    tab.keyboard.press("ArrowRight")
    assert tab.locator("#detail [role=tab][aria-selected=true]").inner_text().endswith("other")
    tab.keyboard.press("Escape")
    assert tab.evaluate("document.activeElement.id") == "list"
    tab.keyboard.press("End")
    assert tab.locator("#list").get_attribute("aria-activedescendant") == "row-2"
    tab.focus("#tab-questions")
    tab.keyboard.press("ArrowLeft")
    assert tab.locator("#overview").is_visible()


def test_hostile_content_stays_text(tab: Page) -> None:
    open_question(tab, "Which film is </script>")
    heading = tab.locator("#detail h2").inner_text()
    assert heading.startswith('Which film is </script><img src=x onerror="document.title=1"><script>')
    assert "U+202E" in heading and "U+D800" in heading and "{{style}}" in heading and "\u202e" not in heading
    assert tab.title() == "films test, 2 runs – byokg report"
    assert tab.locator("img").count() == 0
    assert tab.locator("#evidence-e4").inner_text().count("onerror") == 1
    assert "✓" in tab.locator(".verdict").inner_text()
    open_question(tab, "Who wrote Ran?")
    assert "is no graph" in tab.locator("#run-panel .problem").inner_text()


def test_the_policy_refuses_scripts_markup_and_addresses(browser: Browser, page_file: Path) -> None:
    tab = browser.new_page()
    tab.goto(page_file.as_uri())
    tab.wait_for_selector("html[data-ready=yes]", state="attached")
    done = tab.evaluate(
        """async () => {
            const tried = [];
            const script = document.createElement("script");
            try { script.textContent = "document.title = 'run'"; } catch { tried.push("script"); }
            try { document.body.insertAdjacentHTML("beforeend", "<b>x</b>"); } catch { tried.push("markup"); }
            try { await fetch("http://127.0.0.1:9/"); } catch { tried.push("fetch"); }
            return [tried, document.title];
        }"""
    )
    assert done == [["script", "markup", "fetch"], "films test, 2 runs – byokg report"]
    tab.close()


def test_a_link_leads_to_a_question(browser: Browser, page_file: Path) -> None:
    tab = browser.new_page()
    tab.goto(f"{page_file.as_uri()}#view=questions&question=q3&run=other")
    tab.wait_for_selector("#run-panel")
    assert tab.locator("#detail h2").inner_text() == "Who starred in Heat?"
    assert tab.locator(".evidence mark.right").first.inner_text() == "Al Pacino"
    tab.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_what_is_behind_them(tab: Page, scheme: str) -> None:
    # Contrast after WCAG 2: (L1 + 0.05) / (L2 + 0.05), at least 4.5 for text.
    tab.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    open_question(tab, "Who directed Heat?")
    contrasts: dict[str, float] = tab.evaluate(CONTRASTS)
    assert {name: round(value, 1) for name, value in contrasts.items() if value < 4.5} == {}


CONTRASTS = """() => {
    const luminance = (colour) => {
        const canvas = document.createElement("canvas").getContext("2d");
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((part) => part / 255)
            .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const probe = document.body.appendChild(document.createElement("i"));
    const at = (name) => {
        probe.style.color = `var(--${name})`;
        return luminance(getComputedStyle(probe).color);
    };
    const found = {};
    for (const [front, back] of [
        ["ink", "paper"], ["dim", "paper"], ["dim", "panel"], ["dim", "sunken"], ["accent", "panel"],
        ["good", "good-wash"], ["bad", "bad-wash"], ["warn", "warn-wash"], ["ink", "topic-wash"],
    ]) {
        const [light, dark] = [at(front), at(back)].sort((a, b) => b - a);
        found[`${front} on ${back}`] = (light + 0.05) / (dark + 0.05);
    }
    return found;
}"""


def test_the_page_is_printed_without_its_controls(tab: Page) -> None:
    open_question(tab, "Who directed Heat?")
    tab.emulate_media(media="print")
    assert not tab.locator(".browser").is_visible()
    assert tab.locator("#detail h2").is_visible()
    assert tab.pdf().startswith(b"%PDF")


def test_a_screenshot_is_neither_blank_nor_wider_than_the_window(tab: Page) -> None:
    for view in ("#tab-overview", "#tab-questions"):
        tab.click(view)
        assert tab.evaluate("document.documentElement.scrollWidth") <= 1366
        assert len(tab.screenshot()) > 10_000


def many(count: int) -> Sequence[Example]:
    """Return questions of which only the first was told an answer."""
    return [Example(f"q{number}", f"Question {number} of many", ("x",)) for number in range(1, count + 1)]


def test_of_thousands_of_questions_only_those_in_sight_are_drawn(browser: Browser, tmp_path: Path) -> None:
    run_evaluation(Told(BASE), many(3000), tmp_path / "run", RunSettings("many", "0" * 64, "1" * 64))
    runs = read_reported([tmp_path / "run"])
    write_page(build_page(runs, asked_by(runs)), tmp_path / "page.html")
    tab = browser.new_page()
    tab.goto((tmp_path / "page.html").as_uri())
    tab.click("#tab-questions")
    assert texts(tab, "#count") == ["3,000 questions"]
    assert 0 < tab.locator("#rows .row").count() < 80
    tab.focus("#list")
    tab.keyboard.press("End")
    assert tab.locator("[aria-selected=true] .text").inner_text() == "Question 3000 of many"
    tab.keyboard.press("PageUp")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#run-panel")
    assert tab.locator("#detail h2").inner_text().startswith("Question 29")
    tab.close()


def test_what_is_very_long_is_folded(browser: Browser, tmp_path: Path) -> None:
    example = Example("q1", "long " * 100_000, (f"{HOSTILE} " * 5_000,))
    run_evaluation(Told(BASE), [example], tmp_path / "run", RunSettings("long", "0" * 64, "1" * 64))
    runs = read_reported([tmp_path / "run"])
    write_page(build_page(runs, asked_by(runs)), tmp_path / "page.html")
    tab = browser.new_page()
    tab.goto((tmp_path / "page.html").as_uri())
    open_question(tab, "long")
    assert len(tab.locator("#detail").inner_text()) < 10_000
    tab.close()
