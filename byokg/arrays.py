"""Types of NumPy arrays, by element; shapes are in the docstrings of the functions that use them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Integers = npt.NDArray[np.integer]
"""Integers of any width."""

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
