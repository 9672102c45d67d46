"""Figures as rows of `name`, `value` and `unit`, which every benchmark writes with `--json`."""

from __future__ import annotations

_UNITS = ("s / M triples", "MB / M triples", "ms", "MB", "s", "µs")


def labelled(subject: str, label: str, value: float) -> dict[str, str | float]:
    """Return a row for a figure whose label ends with its unit, if it has one: `load s`, `triples of one hop`."""
    for unit in _UNITS:
        if label.endswith(f" {unit}"):
            return {"name": f"{subject}: {label.removesuffix(unit).rstrip()}", "value": value, "unit": unit}
    return {"name": f"{subject}: {label}", "value": value, "unit": ""}
