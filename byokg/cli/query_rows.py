"""The answer of `byokg graph query`, as a table."""

from __future__ import annotations

from collections.abc import Mapping

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from byokg.graph.query import Rows
from byokg.types import Cell, EdgeCell, NodeCell, PathCell


def show(rows: Rows, console: Console) -> None:
    """Print a table, and under it how many rows there are."""
    if rows.columns:
        table = Table(box=box.SIMPLE_HEAD)
        for column in rows.columns:
            table.add_column(Text(column))
        for row in rows.rows:
            table.add_row(*(Text(_text(cell)) for cell in row))
        console.print(table)
    more = "; there are more (raise --max-rows)" if rows.truncated else ""
    console.print(f"{len(rows):,} rows{more}", highlight=False)


def _text(cell: Cell) -> str:
    """Write one cell on one line, as a reader of the graph would."""
    if isinstance(cell, NodeCell):
        return f"{cell.name} ({cell.id})" if cell.name != cell.id else cell.name
    if isinstance(cell, EdgeCell):
        return f"{cell.head} → {cell.relation} → {cell.tail}"
    if isinstance(cell, PathCell):
        return " · ".join(_text(edge) for edge in cell.edges) or " · ".join(_text(node) for node in cell.nodes)
    if cell is None:
        return ""
    if isinstance(cell, Mapping):
        return "{" + ", ".join(f"{key}: {_text(value)}" for key, value in cell.items()) + "}"
    if isinstance(cell, str | bool | int | float):
        return str(cell)
    return "[" + ", ".join(_text(value) for value in cell) + "]"
