"""Types of NumPy arrays, by element, with shapes in the docstrings of their users; and values of Arrow arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Integers = npt.NDArray[np.integer]
"""Integers of any width."""

Bytes = npt.NDArray[np.uint8]
UInt64 = npt.NDArray[np.uint64]

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def values_of(array: pa.Array) -> npt.NDArray[Any]:
    """Return the numbers or truth values of an Arrow array without nulls; its own `to_numpy` imports pandas."""
    data, start, count = array.buffers()[1], array.offset, len(array)
    if not count:
        return np.empty(0, np.dtype(str(array.type)))
    if str(array.type) != "bool":
        kind = np.dtype(str(array.type))
        return np.frombuffer(data, kind, count, start * kind.itemsize)
    octets = np.frombuffer(data, np.uint8)[start >> 3 : (start + count + 7) >> 3]
    return np.unpackbits(octets, count=(start & 7) + count, bitorder="little")[start & 7 :].view(np.bool_)
