"""The data set that ships with the package: countries, cities, rivers, mountains, laureates, governments."""

from __future__ import annotations

from pathlib import Path

from byokg.evaluation.datasets.folder import Folder

SHIPPED = Path(__file__).resolve().parents[2] / "data" / "atlas"
"""`nodes.csv`, `edges.csv` and `questions.jsonl`, inside the package."""


def atlas(split: str = "test") -> Folder:
    """Return the questions of one split (`dev`, `test`, or empty for both), with the graph beside them."""
    return Folder(SHIPPED, split=split, name="atlas")
