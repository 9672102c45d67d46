"""Figures as rows of name, value and unit, which every benchmark prints, and writes with `--json FILE`."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console

from byokg.evaluation.tables import figures, labels, table

_UNITS = ("s / M triples", "MB / M triples", "ms", "MB", "s", "µs")


@dataclass(frozen=True)
class Row:
    """One figure."""

    name: str
    value: float
    unit: str = ""
    low: float | None = None
    """Ends of its 95 % interval, if it has one."""
    high: float | None = None


@dataclass(frozen=True)
class Bar:
    """What a figure has to reach."""

    name: str
    """That of the row."""
    sign: Literal["≤", "≥"]
    value: float

    def judge(self, row: Row) -> str:
        """Say whether a row reaches it."""
        met = row.value <= self.value if self.sign == "≤" else row.value >= self.value
        unit = f" {row.unit}" if row.unit else ""
        said = f"{shown(row.value)}{unit} (bar: {self.sign} {self.value:,g}{unit})"
        return f"{'met' if met else 'MISSED':7}{self.name}: {said}"


def make_parser(description: str | None, data: str = "") -> argparse.ArgumentParser:
    """Return a parser of `--json FILE`, and of `--data FOLDER` if there is a description of such a folder."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write rows of name, value, unit")
    if data:
        place = os.environ.get("BYOKG_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
        parser.add_argument("--data", type=Path, default=Path(place), help=f"{data} (default: %(default)s)")
    return parser


def show_bars(rows: Sequence[Row], bars: Sequence[Bar]) -> None:
    """Print for each bar whether its row reaches it."""
    found = {row.name: row for row in rows}
    for bar in bars:
        print(bar.judge(found[bar.name]))


def labelled(subject: str, label: str, value: float) -> Row:
    """Return a row for a figure whose label ends with its unit, if it has one: `load s`, `triples of one hop`."""
    for unit in _UNITS:
        if label.endswith(f" {unit}"):
            return Row(f"{subject}: {label.removesuffix(unit).rstrip()}", value, unit)
    return Row(f"{subject}: {label}", value)


def shown(value: float | None) -> str:
    """Write a number with three digits, counts and large numbers in full; None as nothing."""
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def show(rows: Sequence[Row], title: str, file: Path | None) -> None:
    """Print rows as a table, and write them to `file` if one is given."""
    ends = any(row.low is not None for row in rows)
    columns = [*labels("figure"), *figures("value"), *labels("unit"), *figures(*(["95 % interval"] if ends else []))]
    cells = []
    for row in rows:
        interval = "" if row.low is None else f"{shown(row.low)} to {shown(row.high)}"
        cells.append((row.name, shown(row.value), row.unit, *([interval] if ends else [])))
    Console(highlight=False).print(table(columns, cells, title))
    write_rows(rows, file)


def write_rows(rows: Iterable[Row], file: Path | None) -> None:
    """Write rows as JSON to the `file` that `--json` names, if it does."""
    if file is not None:
        listed = [{key: value for key, value in asdict(row).items() if value is not None} for row in rows]
        file.write_text(json.dumps(listed, indent=1, ensure_ascii=False) + "\n", "utf-8")
