"""The site is built without a warning, and its generated pages say what the code says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install 'byokg[docs]'")
pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed: pip install 'byokg[docs]'")

VERSION: str = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]

LOADED = re.compile(r"<(?:script|img|iframe)[^>]*\ssrc=\"?(https?:[^\">\s]+)|<link[^>]*\shref=\"?(https?:[^\">\s]+)")
"""What a browser fetches by itself; links that a reader may follow are none of it."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, where any warning (a broken link, an anchor that is not there) is an error."""
    folder = tmp_path_factory.mktemp("site") / VERSION
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_holds_all_pages_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    written = {
        path.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for path in (ROOT / "docs").rglob("*.md")
    }
    groups = {f"configuration/{path.name}.html" for path in (ROOT / "configs").iterdir() if path.is_dir()}
    generated = {"index.html", "commands.html", "api.html", "contributing.html", "changelog.html"}
    assert written | groups | generated <= pages
    loaded = {match[0] for page in site.rglob("*.html") for match in LOADED.finditer(page.read_text("utf-8"))}
    assert {text for text in loaded if 'rel="canonical"' not in text} == set()


def test_versions_stand_side_by_side_and_the_latest_opens_first(site: Path) -> None:
    [listed] = json.loads((site.parent / "versions.json").read_text("utf-8"))
    assert listed["version"] == VERSION
    assert f"url={VERSION}/index.html" in (site.parent / "index.html").read_text("utf-8")


def test_public_names_commands_and_settings_are_in_the_reference(site: Path) -> None:
    import byokg

    python = (site / "api.html").read_text("utf-8")
    for name in byokg.__all__:
        if name != "__version__":
            value = getattr(byokg, name)
            assert f'id="{value.__module__}.{value.__qualname__}"' in python, name
    commands = (site / "commands.html").read_text("utf-8")
    assert all(f'id="byokg-{name}"' in commands for name in ("ask", "eval", "graph-build", "mcp-serve"))


def test_a_setting_has_its_type_its_default_and_what_the_docstring_or_the_file_says() -> None:
    from scripts.docs_site import configuration_pages

    pages = configuration_pages()
    retriever = next(line for line in pages["configuration/pipeline.md"].splitlines() if ".path.anchors`" in line)
    _, _, kind, default, meaning, _ = (cell.strip() for cell in retriever.split("|"))
    assert (kind, default) == ("integer", "`10`")
    assert "entities" in meaning
    assert "| `seed` | integer | `0` |" in pages["configuration/index.md"]
    assert "store" not in re.findall(r"`pipeline\.(\w+)`", pages["configuration/pipeline.md"])
