"""Tests of `byokg.arrays`."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from byokg.arrays import values_of


@pytest.mark.parametrize(
    "array",
    [pa.array(range(40), pa.int32()), pa.array([0.5, 1.5]), pa.array([number % 3 == 0 for number in range(40)])],
)
@pytest.mark.parametrize(("start", "count"), [(0, 40), (0, 0), (1, 1), (9, 20), (13, 27)])
def test_values_are_those_of_arrow_with_any_offset(array: pa.Array, start: int, count: int) -> None:
    part = array.slice(start, count)
    found = values_of(part)
    assert found.tolist() == part.to_pylist() and found.dtype == part.to_numpy(zero_copy_only=False).dtype


def test_pandas_is_not_imported() -> None:
    program = "import sys, pyarrow as pa; from byokg.arrays import values_of; values_of(pa.nulls(9).is_valid())"
    subprocess.run([sys.executable, "-c", f"{program}; assert 'pandas' not in sys.modules"], check=True)
