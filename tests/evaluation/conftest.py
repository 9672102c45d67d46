"""What tests of the evaluation layer share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Return the folder of real data sets, which are not part of the repository."""
    folder = Path(os.environ.get("BYOKG_DATA", _ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data in {folder}; set BYOKG_DATA to the folder that holds metaqa, webqsp, …")
    return folder
