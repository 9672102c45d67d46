"""Equal bytes on every CPU: the order in which BLAS kernels and vector instructions add up decides nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__  # type: ignore[import-not-found]

ROOT = Path(__file__).resolve().parents[2]

KERNELS = {"Haswell": "AVX2", "Zen": "AVX2", "SkylakeX": "AVX512F"}
"""Names of OpenBLAS's kernels, and what a CPU needs to run them."""

NARROWEST = "Prescott"
"""The kernel that every CPU runs."""

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
def test_neither_kernel_nor_threads_of_blas_nor_hash_seed_change_a_byte(
    kernel: str, expected: str, tmp_path: Path
) -> None:
    if not __cpu_features__[KERNELS[kernel]]:
        pytest.skip(f"this CPU has no {KERNELS[kernel]}")
    others = {"PYTHONHASHSEED": str(len(kernel)), "OPENBLAS_NUM_THREADS": "2"}
    assert digest(tmp_path, OPENBLAS_CORETYPE=kernel, **others) == expected


def test_neither_the_narrowest_kernel_nor_vector_instructions_change_a_byte(expected: str, tmp_path: Path) -> None:
    # Where numpy chooses no instructions at run time, the kernel alone differs.
    assert digest(tmp_path, NPY_DISABLE_CPU_FEATURES=" ".join(WIDE), OPENBLAS_CORETYPE=NARROWEST) == expected
