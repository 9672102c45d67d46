"""Repeated text kept once, and everything compressed: the blocks of data inside a report's page.

A page of thousands of questions repeats itself: the same instructions stand in every prompt, the same facts in every
round. Long texts are taken apart into lines, each line is kept once in numbered blocks of texts, and the records refer
to lines by number. A browser inflates a block when something in it is looked at.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

MARK = "\u0001"
"""Begins a text that is given as the numbers of its lines, in base 36 and separated by commas."""

SHORT = 40
"""Texts of fewer characters stay where they are."""

_BLOCK_CHARACTERS = 200_000
_LEVEL = 6
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def packed(value: object) -> str:
    """Return a JSON value compressed (zlib) and in base 64, so that nothing in it can be taken for HTML."""
    return _compressed(_ENCODE(value))


def _compressed(text: str) -> str:
    # A lone surrogate has no UTF-8; as \udXXX it is valid JSON, and reads back the same.
    return base64.b64encode(zlib.compress(text.encode("utf-8", "backslashreplace"), _LEVEL)).decode("ascii")


class Blocks:
    """Values in compressed blocks of a bounded size, numbered as they come."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        """The number of each block's first value."""
        self.packed: list[str] = []
        self._open: list[str] = []
        self._characters = 0
        self._count = 0

    def add(self, value: object) -> int:
        """Keep a JSON value; return its number."""
        if not self._open:
            self.starts.append(self._count)
        text = _ENCODE(value)
        self._open.append(text)
        self._characters += len(text)
        self._count += 1
        if self._characters >= _BLOCK_CHARACTERS:
            self.close()
        return self._count - 1

    def close(self) -> None:
        """Compress what is not compressed yet."""
        if self._open:
            self.packed.append(_compressed(f"[{','.join(self._open)}]"))
            self._open, self._characters = [], 0


class Texts:
    """Lines of long texts, each kept once."""

    def __init__(self) -> None:
        self.blocks = Blocks()
        self._references: dict[str, str] = {}

    def shared(self, value: Any) -> Any:
        """Return a JSON value in which long texts are references to their lines; the rest is as it was."""
        if isinstance(value, str):
            return self.reference(value) if len(value) >= SHORT or value.startswith(MARK) else value
        if isinstance(value, dict):
            return {name: self.shared(entry) for name, entry in value.items()}
        if isinstance(value, list | tuple):
            return [self.shared(entry) for entry in value]
        return value

    def reference(self, text: str) -> str:
        """Keep a text, line by line, and return what stands for it."""
        known = self._references
        numbers = []
        for line in text.split("\n"):
            number = known.get(line)
            if number is None:
                number = known[line] = _base36(self.blocks.add(line))
            numbers.append(number)
        return MARK + ",".join(numbers)


def _base36(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
        if not number:
            return digits
