"""Relation labels whose numbers are found without searching."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, SupportsIndex


class Labels(tuple[str, ...]):
    """Distinct labels; the number of each is its position. A tuple in all but the time that `index` and `in` take."""

    _places: dict[str, int]

    def __new__(cls, labels: Iterable[str]) -> Labels:
        """Number the labels."""
        made = super().__new__(cls, labels)
        made._places = {label: place for place, label in enumerate(made)}
        return made

    def index(self, label: Any, start: SupportsIndex = 0, stop: SupportsIndex | None = None, /) -> int:
        """Return the number of a label. Raises `ValueError` for one that is not here."""
        found = self._places.get(label, -1)
        bounds = range(*slice(start, stop).indices(len(self)))
        if found not in bounds:
            raise ValueError(f"no label {label!r}")
        return found

    def __contains__(self, label: object) -> bool:
        return label in self._places
