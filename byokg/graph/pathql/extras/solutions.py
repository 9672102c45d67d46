"""Tables of solutions of graph patterns, and how they are joined.

A solution is a row of numbers: a node's own number, a negative one for relations and literals, `UNBOUND` for none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.errors import QueryTooLarge
from byokg.graph.sorted_ids import spread

UNBOUND = -1
_MOST_ROWS = 3_000_000
_TOO_MANY = f"a pattern has more than {_MOST_ROWS:,} solutions on the way"


class SolutionTable:
    """S solutions: a column (S,) for each variable. Columns that begin with a zero byte hold edges, for evidence."""

    def __init__(self, columns: Mapping[str, Int64], rows: int) -> None:
        self.columns = dict(columns)
        self.rows = rows
        if rows > _MOST_ROWS:
            raise QueryTooLarge(_TOO_MANY)

    def take(self, rows: npt.NDArray[Any]) -> SolutionTable:
        """Return some solutions."""
        return SolutionTable({name: column[rows] for name, column in self.columns.items()}, len(rows))

    def column(self, name: str) -> Int64:
        """Return the value of a variable in each solution."""
        return self.columns.get(name, np.full(self.rows, UNBOUND))

    def with_columns(self, columns: Mapping[str, Int64]) -> SolutionTable:
        """Return the solutions with more variables."""
        return SolutionTable(self.columns | dict(columns), self.rows)

    @property
    def visible(self) -> list[str]:
        """Return the names of the variables."""
        return [name for name in self.columns if not name.startswith("\0")]

    def distinct(self) -> SolutionTable:
        """Return each solution once, in order; edges are of its first appearance."""
        names = self.visible
        if not names or self.rows < 2:
            return self.take(np.arange(min(self.rows, 1)))
        stacked = np.stack([self.columns[name] for name in names], axis=1)
        first = np.unique(stacked, axis=0, return_index=True)[1]
        return self.take(np.sort(first))


def stack(tables: Sequence[SolutionTable]) -> SolutionTable:
    """Return the solutions of several tables, one after the other."""
    names = dict.fromkeys(name for table in tables for name in table.columns)
    return SolutionTable(
        {name: np.concatenate([table.column(name) for table in tables]) for name in names},
        sum(table.rows for table in tables),
    )


def alike(table: SolutionTable, names: Sequence[str]) -> list[Int64]:
    """Return the rows of a table in groups, in each of which the same variables have values."""
    if not names or not table.rows:
        return [np.arange(table.rows)]
    missing = np.stack([table.columns[name] == UNBOUND for name in names], axis=1)
    if not missing.any():
        return [np.arange(table.rows)]
    kinds, which = np.unique(missing, axis=0, return_inverse=True)
    return [np.flatnonzero(which.reshape(-1) == kind) for kind in range(len(kinds))]


def agreeing(one: SolutionTable, other: SolutionTable) -> Iterator[tuple[Int64, Int64, bool]]:
    """Yield the pairs of rows of two tables that differ in no variable, and whether they have a value in common."""
    shared = [name for name in other.visible if name in one.columns]
    for some in alike(one, shared):
        for more in alike(other, shared):
            left, right = one.take(some), other.take(more)
            names = [
                name for name in shared if not any((side.columns[name] == UNBOUND).any() for side in (left, right))
            ]
            keys = np.zeros(left.rows + right.rows, np.int64)
            if names:
                rows = np.stack([np.concatenate((left.columns[name], right.columns[name])) for name in names], axis=1)
                keys = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
            asked, held = keys[: left.rows], keys[left.rows :]
            order = np.argsort(held, kind="stable")
            first = np.searchsorted(held[order], asked)
            row, place = ranges(first, np.searchsorted(held[order], asked, "right") - first)
            yield some[row], more[order[place]], bool(names)


def ranges(first: Int64, counts: Int64) -> tuple[Int64, Int64]:
    """Return for each member of some ranges the position of its range, and the member. Raises `QueryTooLarge`."""
    if int(counts.sum()) > _MOST_ROWS:
        raise QueryTooLarge(_TOO_MANY)
    return spread(first.astype(np.int64), counts.astype(np.int64))


def crossed(rows: int, members: int) -> tuple[Int64, Int64]:
    """Return all pairs of some rows and some members. Raises `QueryTooLarge`."""
    return ranges(np.zeros(rows, np.int64), np.full(rows, members))


def merge(one: SolutionTable, other: SolutionTable) -> SolutionTable:
    """Return solutions that agree, row by row, as one; the edges of the second come after those of the first."""
    place = sum(name.startswith("\0edge") for name in one.columns)
    columns = {}
    for name, column in other.columns.items():
        if name.startswith("\0"):
            kind = name.rstrip("0123456789")
            columns[f"{kind}{int(name[len(kind) :]) + place}"] = column
        else:
            known = one.columns.get(name)
            columns[name] = column if known is None else np.where(known == UNBOUND, column, known)
    return one.with_columns(columns)


def equal(table: SolutionTable, name: str, codes: Int64) -> SolutionTable:
    """Keep the solutions in which a variable has a value, or gets it."""
    if name not in table.columns:
        return table.with_columns({name: codes})
    column = table.columns[name]
    kept = np.flatnonzero((column == codes) | (column == UNBOUND) | (codes == UNBOUND))
    return table.take(kept).with_columns({name: np.where(column == UNBOUND, codes, column)[kept]})
