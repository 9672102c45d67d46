"""Equal bytes on every CPU: the order in which BLAS kernels and vector instructions add up decides nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy._core._multiarray_umath import (  # type: ignore[import-not-found]
    __cpu_dispatch__,
    __cpu_features__,
)

ROOT = Path(__file__).resolve().parents[2]

KERNELS = {"Prescott": "SSE3", "Haswell": "AVX2", "Zen": "AVX2", "SkylakeX": "AVX512F"}
"""Names of OpenBLAS's kernels, and what a CPU needs to run them."""

WIDE = [name for name in __cpu_dispatch__ if name.startswith(("AVX", "FMA", "X86_V"))]
"""What numpy chooses at run time, beyond what every CPU has."""


def digest(tmp_path: Path, **environment: str) -> str:
    out = subprocess.run(
        [sys.executable, "-m", "tests.pipelines.cpus", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return out.stdout


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    return digest(tmp_path_factory.mktemp("here"))


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_kernel_of_blas_changes_a_byte(kernel: str, expected: str, tmp_path: Path) -> None:
    if not __cpu_features__[KERNELS[kernel]]:
        pytest.skip(f"this CPU has no {KERNELS[kernel]}")
    assert digest(tmp_path, OPENBLAS_CORETYPE=kernel) == expected


def test_no_hash_seed_changes_a_byte(expected: str, tmp_path: Path) -> None:
    assert digest(tmp_path, PYTHONHASHSEED="7") == expected


@pytest.mark.skipif(not WIDE, reason=f"numpy {np.__version__} chooses nothing at run time here")
def test_no_vector_instruction_changes_a_byte(expected: str, tmp_path: Path) -> None:
    # The kernel, too: without it OpenBLAS asks the CPU itself.
    disabled = " ".join(WIDE)
    assert digest(tmp_path, NPY_DISABLE_CPU_FEATURES=disabled, OPENBLAS_CORETYPE="Prescott") == expected
