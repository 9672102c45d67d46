"""Query parameters as the plain data that openCypher has types for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from byokg.errors import QueryInvalid
from byokg.types import Cell


def plain_parameters(parameters: Mapping[str, Cell] | None) -> dict[str, Any]:
    """Return None, bool, int, float, str, and lists and dicts of them. Raises `QueryInvalid` for anything else."""
    return {name: _plain(name, value) for name, value in (parameters or {}).items()}


def _plain(name: str, value: object) -> Any:
    if value is None or isinstance(value, bool | float | str):
        return value
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise QueryInvalid(f"parameter {name!r} is {value}, which does not fit into 64 bits; pass it as text")
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(name, entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [_plain(name, entry) for entry in value]
    raise QueryInvalid(
        f"parameter {name!r} holds a {type(value).__name__}; pass text, numbers, true or false, lists or maps of them, "
        "and instead of a node its id"
    )
