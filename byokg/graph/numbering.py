"""Node and edge numbers for stores that have none: given out as things are met, and never changed."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

Key = TypeVar("Key", bound=Hashable)


class Numbering(Generic[Key]):
    """Gives each key the next number when it is first added; threads may share it.

    Numbers count from 0 and mean something within the store that owns the numbering only.
    """

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}
        self._keys: list[Key] = []
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: Key) -> bool:
        return key in self._numbers

    def add(self, keys: Iterable[Key]) -> npt.NDArray[np.int64]:
        """Return the number of each key, in the order given; new keys get the next numbers in that order."""
        with self._lock:
            found = []
            for key in keys:
                number = self._numbers.get(key)
                if number is None:
                    number = len(self._keys)
                    self._keys.append(key)
                    self._numbers[key] = number
                found.append(number)
        return np.array(found, np.int64)

    def key(self, number: int) -> Key:
        """Return the key of a number. Raises `IndexError` for one that was not given out."""
        if number < 0:
            raise IndexError(number)
        return self._keys[number]

    def keys(self, start: int = 0) -> Sequence[Key]:
        """Return the keys numbered so far, from `start` on."""
        return self._keys[start:]
