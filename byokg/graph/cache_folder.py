"""Where things that can be made again are kept between runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def user_cache(environment: Mapping[str, str] = os.environ) -> Path:
    """Return byokg's folder inside the user's cache folder; it need not exist."""
    base = environment.get("XDG_CACHE_HOME", "")
    # The XDG specification has relative paths ignored.
    root = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
    return root / "byokg"
