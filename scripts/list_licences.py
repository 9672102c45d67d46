"""Write docs/licences.md: the licence of every package in constraints.txt, from the metadata of the installed packages.

    python scripts/list_licences.py        # in an environment with all extras: make test docs

Packages of the lock that are not installed keep the line they have.
"""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "licences.md"
HEAD = """# Licences of dependencies

byokg is under Apache-2.0. Its core and each extra install packages of others; this is every package of
`constraints.txt`, with the licence that its metadata declare (`python scripts/list_licences.py`).

The package contains two works of others: the embedder (`byokg/data/embedder/NOTICE`), and, in
`byokg/evaluation/report/page/d3.min.js`, the npm packages d3-dispatch 3.0.2, d3-timer 3.0.2, d3-color 3.1.1,
d3-interpolate 3.0.2, d3-selection 3.0.1, d3-transition 3.0.2, d3-drag 3.0.1 and d3-zoom 3.0.1 (ISC) and d3-ease 3.0.2
(BSD-3-Clause), as published, below both licences. Pages of `report`, `view` and `paths --format html` contain it.

| package | licence |
|---|---|
"""
_LONGEST = 60
_OSI = "License :: OSI Approved :: "


def locked() -> list[str]:
    """Return the packages of the lock, in its order."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    return [line.partition("==")[0].strip() for line in lines if "==" in line and not line.startswith("#")]


def licence(package: str) -> str | None:
    """Return the declared licence: SPDX expression, else classifiers, else the first line of the text; None if the
    package is not installed."""
    try:
        metadata = importlib.metadata.metadata(package)
    except importlib.metadata.PackageNotFoundError:
        return None
    classifiers = [each.removeprefix(_OSI) for each in metadata.get_all("Classifier") or () if each.startswith(_OSI)]
    texts = metadata.get_all("License") or [""]
    found = next(iter(metadata.get_all("License-Expression") or ()), " OR ".join(classifiers))
    found = found or texts[0].strip().split("\n")[0][:_LONGEST]
    return found or "see its distribution"


def listed() -> dict[str, str]:
    """Return the lines of the page by package; empty without a page."""
    text = PAGE.read_text("utf-8") if PAGE.is_file() else ""
    return dict(re.findall(r"^\| ([\w.-]+) \| (.+) \|$", text, re.MULTILINE))


def main() -> None:
    """Write the page."""
    known = listed()
    rows = [(package, licence(package) or known.get(package, "see its distribution")) for package in locked()]
    PAGE.write_text(HEAD + "".join(f"| {package} | {declared} |\n" for package, declared in rows), "utf-8")


if __name__ == "__main__":
    main()
