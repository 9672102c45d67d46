"""Name indexes as folders of flat files, mapped into memory when they are opened.

`meta.json` holds format, version, what the owners are numbers of, and size and SHA-256 of every other file:
`names.arrow` and `words.arrow` (spellings, vocabulary), and one `.npy` file for each array of `NameArrays` and
`WordArrays`. Equal input gives equal bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from byokg.errors import GraphCorrupt
from byokg.index.name_table import NameArrays, NameTable
from byokg.index.vocabulary import Vocabulary, WordArrays

META = "meta.json"
FORMAT = "byokg-names"
VERSION = 1

_NAMES, _WORDS = "names.arrow", "words.arrow"
_NAME_ARRAY, _WORD_ARRAY = "name_{}.npy", "word_{}.npy"


def write_table(folder: Path, table: NameTable, made_for: str) -> None:
    """Write a table into an empty folder; `made_for` identifies what the owners are numbers of."""
    _write_column(folder / _NAMES, table.spellings)
    _write_column(folder / _WORDS, table.vocabulary.words)
    for pattern, arrays in ((_NAME_ARRAY, table.arrays), (_WORD_ARRAY, table.vocabulary.arrays)):
        for field in fields(arrays):
            with (folder / pattern.format(field.name)).open("wb") as file:
                np.save(file, getattr(arrays, field.name), allow_pickle=False)
    files = {path.name: {"bytes": path.stat().st_size, "sha256": _sha256(path)} for path in sorted(folder.iterdir())}
    counts = {"names": len(table), "words": len(table.vocabulary), "entries": len(table.arrays.owners)}
    meta = {"format": FORMAT, "version": VERSION, "made_for": made_for, **counts, "files": files}
    (folder / META).write_text(json.dumps(meta, ensure_ascii=False, indent=1) + "\n", "utf-8")


def open_table(folder: Path, made_for: str | None = None) -> NameTable:
    """Map a table that `write_table` wrote. Costs milliseconds whatever its size.

    Args:
        folder: where it lies.
        made_for: what the owners must be numbers of; None takes any.

    Raises:
        GraphCorrupt: files are missing, cut short or of another version, or it was made for something else.
    """
    read_meta(folder, made_for)
    try:
        words = WordArrays(**_map_arrays(folder, _WORD_ARRAY, WordArrays))
        vocabulary = Vocabulary(_map_column(folder / _WORDS), words)
        return NameTable(
            _map_column(folder / _NAMES), vocabulary, NameArrays(**_map_arrays(folder, _NAME_ARRAY, NameArrays))
        )
    except (OSError, ValueError, pa.ArrowException) as error:
        raise GraphCorrupt(folder, str(error)) from error


def read_meta(folder: Path, made_for: str | None = None) -> dict[str, Any]:
    """Read `meta.json`, and check that its files are there in full length. Raises `GraphCorrupt` as `open_table`."""
    try:
        meta = json.loads((folder / META).read_bytes())
        if meta["format"] != FORMAT or meta["version"] != VERSION:
            found = f"{meta['format']} {meta['version']}"
            raise GraphCorrupt(folder, f"it has the format {found}, this byokg reads {FORMAT} {VERSION}")
        if made_for is not None and meta["made_for"] != made_for:
            raise GraphCorrupt(folder, "these names belong to another graph")
        sizes: Mapping[str, int] = {name: entry["bytes"] for name, entry in meta["files"].items()}
        for name, written in sizes.items():
            if (size := (folder / name).stat().st_size) != written:
                raise GraphCorrupt(folder, f"file {name} has {size} bytes, {written} were written")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise GraphCorrupt(folder, f"{type(error).__name__}: {error}") from error
    return dict(meta)


def verify_table(folder: Path, made_for: str | None = None) -> dict[str, Any]:
    """Read every file and compare its checksum; return the content of `meta.json`. Raises `GraphCorrupt`."""
    meta = read_meta(folder, made_for)
    for name, entry in meta["files"].items():
        if (found := _sha256(folder / name)) != entry["sha256"]:
            raise GraphCorrupt(folder, f"file {name} has changed (SHA-256 {found}, written was {entry['sha256']})")
    return meta


def _write_column(path: Path, column: pa.LargeStringArray) -> None:
    batch = pa.RecordBatch.from_arrays([column], ["text"])
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


def _map_column(path: Path) -> pa.LargeStringArray:
    return pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0).column("text")


def _map_arrays(folder: Path, pattern: str, kind: type) -> dict[str, npt.NDArray[Any]]:
    # As plain arrays: the memmap subclass would slow down every operation on them.
    return {
        field.name: np.load(folder / pattern.format(field.name), mmap_mode="r", allow_pickle=False).view(np.ndarray)
        for field in fields(kind)
    }


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
