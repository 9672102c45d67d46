"""Tests of `byokg.evaluation.report.comparison_tables`."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from byokg.errors import RunError
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.profiles import PROFILES
from byokg.evaluation.report.comparison_tables import PaperTable, paper_table, written
from byokg.evaluation.run_folder import Run, read_runs
from byokg.evaluation.runner import RunSettings, run_evaluation
from byokg.types import Answer, AnswerItem, Question

EXAMPLES = tuple(Example(f"q{number}", f"Where is {number}?", (f"town {number}",)) for number in range(12))
SETTINGS = RunSettings("towns test", "0" * 64, "1" * 64)


class Knows:
    """Answers the first so many questions rightly."""

    def __init__(self, count: int) -> None:
        self._count = count

    def run(self, question: Question) -> Answer:
        """Return the one answer."""
        number = int(question.id.removeprefix("q"))
        return Answer(question.id, (AnswerItem(f"town {number if number < self._count else -1}", None, 1.0),), ())


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Return runs with 2, 10 and 12 of 12 questions right, the third with gold topics; then one of 4 questions."""
    folder = tmp_path_factory.mktemp("runs")
    for name, count, asked, settings in (
        ("few_&_many", 2, EXAMPLES, SETTINGS),
        ("most|all", 10, EXAMPLES, SETTINGS),
        ("given", 12, EXAMPLES, replace(SETTINGS, entities="gold")),
        ("short", 4, EXAMPLES[:4], SETTINGS),
    ):
        run_evaluation(Knows(count), asked, folder / name, settings)
    return read_runs([folder / name for name in ("few_&_many", "most|all", "given", "short")])


@pytest.fixture(scope="module")
def table(runs: list[Run]) -> PaperTable:
    """Return the table of all four."""
    return paper_table(runs, PROFILES["strict"])


def test_runs_are_ranked_under_their_contract_only(table: PaperTable) -> None:
    assert table.groups == ((0, 1), (2,), (3,))
    assert [table.best("hit", run) for run in range(4)] == [False, True, False, False]
    assert table.notes[2:] == (
        "Under another contract than the runs above, and not ranked with them: given (topic entities linked → gold).",
        "Under another contract than the runs above, and not ranked with them: short (12 → 4 questions).",
    )


def test_what_differs_from_the_first_run_is_marked_after_correction(table: PaperTable) -> None:
    # 8 won and 10 won, none lost: 2 · 2^-8 and 2 · 2^-10, of which the smaller is doubled.
    assert [table.p[run]["hit"] for run in (1, 2)] == pytest.approx([2 * 2**-8, 2 * 2 * 2**-10])
    assert table.p[0] == table.p[3] == {}  # the first, and one with other questions
    assert "p < 0.05" in table.notes[1]
    assert "Holm's correction for 2" in table.notes[1]


def test_markdown_has_a_row_a_run_and_its_bars_escaped(table: PaperTable) -> None:
    lines = written(table, "markdown").splitlines()
    assert lines[0].startswith("| Run | Hit | Hits@1 | Prec. | Recall | F1 | EM |")
    assert lines[3].startswith("| most\\|all | **83.3**† ±")
    assert {line.count("|") - line.count("\\|") for line in lines[:8]} == {lines[0].count("|")}


def test_latex_is_escaped_and_ruled(table: PaperTable) -> None:
    text = written(table, "latex")
    assert "few\\_\\&\\_many & 16.7\\,{\\scriptsize$\\pm$" in text
    assert "most|all & \\textbf{83.3}$^\\dagger$\\,{\\scriptsize$\\pm$" in text
    assert text.count("\\midrule") == 3  # below the headings, and between contracts
    assert all(line.endswith("\\\\") for line in text.splitlines() if " & " in line)


def test_csv_holds_every_figure(table: PaperTable) -> None:
    rows = list(csv.DictReader(io.StringIO(written(table, "csv"))))
    assert [(row["run"], row["contract"], row["n"], row["hit %"]) for row in rows] == [
        ("few_&_many", "1", "12", "16.6667"),
        ("most|all", "1", "12", "83.3333"),
        ("given", "2", "12", "100.0000"),
        ("short", "3", "4", "100.0000"),
    ]
    assert float(rows[2]["hit low %"]) == pytest.approx(75.75, abs=0.01)  # Wilson: 12 / (12 + 3.8415)


def test_every_csv_column_has_one_unit(table: PaperTable) -> None:
    extra: tuple[dict[str, float | None], ...] = (
        {"pass@2": 0.5, "recall of evidence": 0.25, "calls": 2.0, "usd": 0.01},
        {},
        {},
        {},
    )
    columns = ("f1", "pass@2", "recall of evidence", "calls", "usd")
    [first, *_] = csv.DictReader(io.StringIO(written(replace(table, extra=extra, columns=columns), "csv")))
    assert list(first)[3:] == [
        *("f1 %", "f1 low %", "f1 high %", "f1 p"), "pass@2 %", "recall of evidence %", "Calls", "US$",
    ]  # fmt: skip
    assert list(first.values())[-4:] == ["50.0000", "25.0000", "2.0", "0.01"]


def test_columns_and_caption_are_chosen(runs: list[Run]) -> None:
    made = paper_table(runs[:2], PROFILES["strict"], columns=["seconds", "f1"])
    lines = written(made, "markdown", "Towns\n& more").splitlines()
    assert lines[0] == "Table: Towns & more" and lines[2] == "| Run | Seconds | F1 |"
    latex = written(made, "latex", "Towns & more")
    assert "\\caption{Towns \\& more}\n\\begin{tabular}{lrr}" in latex and "\\end{table}\n%" in latex
    with pytest.raises(RunError, match=r"there is no column 'speed'; choose of hit, .*, usd"):
        paper_table(runs[:2], PROFILES["strict"], columns=["speed"])
    with pytest.raises(RunError, match="a caption has no place in CSV"):
        written(made, "csv", "Towns")


def test_one_run_alone_is_a_table_too(runs: list[Run]) -> None:
    alone = paper_table(runs[:1], PROFILES["rog"])
    assert written(alone, "markdown").startswith("| Run | accuracy | Hit |")
    assert len(alone.notes) == 1
    with pytest.raises(RunError, match="'given' cannot stand in a table: the run is not finished"):
        paper_table([replace(runs[2], metrics=None)], PROFILES["rog"])


def test_paths_of_runs_given_as_one_are_told_apart(tmp_path: Path) -> None:
    for name in ("a", "b"):
        run_evaluation(Knows(2), EXAMPLES, tmp_path / name / "run", SETTINGS)
    table = paper_table(read_runs([tmp_path / name / "run" for name in ("a", "b")]), PROFILES["strict"])
    assert table.runs == ("a/run", "b/run")
