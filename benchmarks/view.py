"""Times of `byokg view` in a browser: the first paint, searching, and a live run's row.

python benchmarks/view.py [--runs 20] [--questions 5000] [--folder DIR] [--json FILE]

Makes runs of synthetic questions, serves them in a separate process, and opens the page in Chromium. A
run is then written line by line, and the time from the write to the visible row is measured.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.report import BROWSERS, make_run
from benchmarks.rows import Row, make_parser, show
from byokg.evaluation.records import PREDICTIONS
from byokg.evaluation.run_folder import METRICS_FILE

REPEATS = 5
READY = 1000
"""Questions that the live run has answered when the page is opened."""


def in_browser(address: str, live: Path, rest: list[bytes]) -> list[Row]:
    """Open the page and use it."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        paints, boards, searches, rows = [], [], [], []
        for _ in range(REPEATS):
            tab = browser.new_page(viewport={"width": 1440, "height": 900})
            tab.goto(address)
            tab.wait_for_selector(".leaders a")
            boards.append(tab.evaluate("performance.now()") / 1000)
            paints.append(tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000)
            tab.close()
        tab = browser.new_page(viewport={"width": 1440, "height": 900})
        tab.goto(address)
        began = time.perf_counter()
        tab.click("role=link[name=run-0]")
        tab.wait_for_selector("#list .row")
        opened = time.perf_counter() - began
        for number in range(REPEATS):
            words = f"name {9990 - number} " if number % 2 else f"{70 + number}"
            took = tab.evaluate(
                """(words) => {
                    const began = performance.now();
                    const search = document.querySelector("#search");
                    search.value = words;
                    search.dispatchEvent(new Event("input"));
                    document.body.getBoundingClientRect();
                    return performance.now() - began;
                }""",
                words,
            )
            searches.append(took)
        tab.goto(f"{address}#/questions?run=live&order=latest")
        tab.wait_for_selector("#list .row")
        for number, line in enumerate(rest[:REPEATS], start=READY + 1):
            with (live / PREDICTIONS).open("ab") as file:
                file.write(line)
            written = time.time()
            tab.wait_for_selector(f"#count:text-is('{number:,} questions')")
            rows.append(time.time() - written)
            time.sleep(0.3)
        browser.close()
    return [
        Row("first paint, median", float(np.median(paints)), "s"),
        Row("first paint, worst", max(paints), "s"),
        Row("leaderboard there, median", float(np.median(boards)), "s"),
        Row("questions of a run there", opened, "s"),
        Row("search, median", float(np.median(searches)), "ms"),
        Row("search, worst", max(searches), "ms"),
        Row("a live run's row, worst", max(rows), "s"),
    ]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--questions", type=int, default=5000)
    parser.add_argument("--folder", type=Path, help="folder in which runs are kept, or reused")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        first = folder / "made-up"
        if not first.exists():
            make_run(folder, options.questions)
        runs = folder / "runs"
        for number in range(options.runs):
            if not (runs / f"run-{number}").exists():
                shutil.copytree(first, runs / f"run-{number}")
        live = runs / "live"
        shutil.rmtree(live, ignore_errors=True)
        shutil.copytree(first, live)
        (live / METRICS_FILE).unlink()
        lines = (live / PREDICTIONS).read_bytes().splitlines(keepends=True)
        (live / PREDICTIONS).write_bytes(b"".join(lines[:READY]))
        command = [sys.executable, "-m", "byokg", "view", str(runs), "--no-open"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                address = server.stdout.readline().split()[0]
                rows = in_browser(address, live, lines[READY:])
            finally:
                server.terminate()
    show(rows, f"{options.runs} runs of {options.questions:,} questions", options.json)


if __name__ == "__main__":
    main()
