"""Records that show themselves as a table in notebooks, and become pandas data frames."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from byokg.errors import import_extra

if TYPE_CHECKING:
    import pandas

_SHOWN = 20
"""Rows of a table in a notebook; the summary above it has the counts."""


class TableView(NamedTuple):
    """Content of a record as a table."""

    summary: str
    """One line."""
    columns: Sequence[str]
    rows: Iterable[Sequence[object]]
    """One cell for each column; None for an empty one."""


class Tabular:
    """Base class of records with a table: `repr`, HTML in notebooks, and a pandas data frame."""

    def _table(self) -> TableView:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._table().summary}>"

    def _repr_html_(self) -> str:
        """Return the summary and the first rows as HTML, with all texts escaped."""
        summary, columns, rows = self._table()
        shown = list(islice(rows, _SHOWN + 1))
        head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in shown[:_SHOWN])
        more = f"<p>(the first {_SHOWN} rows; all of them: to_pandas())</p>" if len(shown) > _SHOWN else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if shown else ""
        return f"<p>{html.escape(summary)}</p>{table}{more}"

    def to_pandas(self) -> pandas.DataFrame:
        """Return all rows as a data frame. Raises `MissingExtra` without pandas."""
        pandas = import_extra("pandas", "pandas", "to_pandas()")
        _, columns, rows = self._table()
        return pandas.DataFrame([list(row) for row in rows], columns=list(columns))


def _cell(value: object) -> str:
    text = "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
    return f"<td>{html.escape(text)}</td>"


def listed(names: Sequence[str], most: int = 3) -> str:
    """Return the first of some names with the number of the others: `Paris, Rome (+3 more)`."""
    more = f" (+{len(names) - most:,} more)" if len(names) > most else ""
    return ", ".join(names[:most]) + more
