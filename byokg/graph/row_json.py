"""What a query returned, as JSON holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from byokg.graph.query import Rows


def as_json(rows: Rows) -> dict[str, Any]:
    """Return columns, rows and whether rows were cut off."""
    return {
        "columns": list(rows.columns),
        "rows": [[_plain(cell) for cell in row] for row in rows.rows],
        "truncated": rows.truncated,
    }


def _plain(cell: Any) -> Any:
    if is_dataclass(cell) and not isinstance(cell, type):
        return {field.name: _plain(getattr(cell, field.name)) for field in fields(cell)}
    if isinstance(cell, Mapping):
        return {key: _plain(value) for key, value in cell.items()}
    if isinstance(cell, list | tuple):
        return [_plain(value) for value in cell]
    return cell
