"""Tests of `byokg.evaluation.report.page`: one file, closed to the network and to what it shows."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest

from byokg.errors import RunError
from byokg.evaluation.report import page as page_module
from byokg.evaluation.report.page import build_page, write_page
from byokg.evaluation.report.view import asked_by
from byokg.evaluation.run_folder import Run


@pytest.fixture(scope="module")
def page(runs: list[Run]) -> str:
    """Return the page about both runs."""
    return build_page(runs, asked_by(runs))


def test_equal_runs_give_equal_pages(runs: list[Run], page: str) -> None:
    assert build_page(runs, asked_by(runs)) == page


def test_the_page_names_no_address(page: str) -> None:
    # Namespaces are names, not places, and the library names its home in comments.
    addresses = set(re.findall(r"https?://([^/\s\"'`]+)", page))
    assert addresses == {"www.w3.org", "d3js.org"}
    page = page.replace('<link rel="icon" href="data:,">', "")
    assert not re.search(r"<(?:link|img|iframe|object|embed|base)\b|\bsrc=|url\((?!#)|@import", page)


def test_the_policy_allows_these_scripts_and_this_style_alone(page: str) -> None:
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    library, script = (digest(text) for text in re.findall(r"<script>(.*?)</script>", page, re.DOTALL))
    [style] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert f"script-src {library} {script}; style-src {digest(style)}; img-src data: blob:; base-uri" in policy
    assert policy.startswith("default-src 'none';")
    assert policy.endswith("require-trusted-types-for 'script'; trusted-types 'none'")
    assert "unsafe" not in policy


def digest(text: str) -> str:
    """Return the source expression that allows a text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_a_page_of_few_questions_is_small(page: str) -> None:
    assert len(page) < 300_000


def test_the_library_stands_in_the_page_as_it_was_published(page: str) -> None:
    library = (Path(page_module.__file__).parent / "page" / "d3.min.js").read_text("utf-8")
    assert re.findall(r"<script>(.*?)</script>", page, re.DOTALL)[0] == library
    assert "Permission to use, copy, modify" in library and "Redistribution and use" in library  # its licences


def test_nothing_of_the_runs_stands_in_the_page_unpacked(page: str) -> None:
    for text in ("Heat", "Michael", "films test", "onerror"):
        assert text not in page
    assert page.count("<script") == page.count("</script>")


def test_the_script_makes_no_markup_of_text(page: str) -> None:
    _, script = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|on\w+\s*=\s*\"", script
    )


def test_a_page_that_cannot_be_written_leaves_nothing(page: str, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(RunError, match=r"cannot write .* choose another --out"):
        write_page(page, tmp_path / "taken")
    write_page(page, tmp_path / "new" / "report.html")
    assert (tmp_path / "new" / "report.html").read_text("utf-8") == page
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["new", "report.html", "taken"]
