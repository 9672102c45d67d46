"""Files that tests of data sets write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_json(root: Path, name: str, content: Any) -> Path:
    """Write a JSON file."""
    return write_text(root, name, json.dumps(content, ensure_ascii=False))


def write_lines(root: Path, name: str, *records: Any) -> Path:
    """Write a file of JSON lines."""
    return write_text(root, name, "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records))


def write_text(root: Path, name: str, text: str) -> Path:
    """Write a text file, and the folders it lies in."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path
