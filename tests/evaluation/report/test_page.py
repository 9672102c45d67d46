"""Tests of `byokg.evaluation.report.page`: one file, closed to the network and to what it shows."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest

from byokg.errors import RunError
from byokg.evaluation.report.page import build_page, write_page
from byokg.evaluation.report.summary import asked_by
from byokg.evaluation.run_folder import Run


@pytest.fixture(scope="module")
def page(runs: list[Run]) -> str:
    """Return the page about both runs."""
    return build_page(runs, asked_by(runs))


def test_equal_runs_give_equal_pages(runs: list[Run], page: str) -> None:
    assert build_page(runs, asked_by(runs)) == page


def test_the_page_names_no_address(page: str) -> None:
    # The namespace of SVG is a name, not a place.
    assert set(re.findall(r"https?://[^\s\"'`]+", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(?:link|img|iframe|object|embed|base)\b|\bsrc=|url\((?!#)|@import", page)


def test_the_policy_allows_this_script_and_this_style_alone(page: str) -> None:
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    [script] = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    [style] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    for kind, text in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")
    assert policy.endswith("require-trusted-types-for 'script'; trusted-types 'none'")
    assert "unsafe" not in policy


def test_nothing_of_the_runs_stands_in_the_page_unpacked(page: str) -> None:
    for text in ("Heat", "Michael", "films test", "onerror"):
        assert text not in page
    assert page.count("<script") == page.count("</script>")


def test_the_script_makes_no_markup_of_text(page: str) -> None:
    [script] = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
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
