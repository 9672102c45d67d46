"""The folder of a saved graph: written completely or not at all, and checked against its `meta.json`."""

from __future__ import annotations

import ctypes
import fcntl
import glob
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from byokg.errors import GraphCorrupt, GraphError, GraphExists, GraphNotFound
from byokg.types import Language

META = "meta.json"
FORMAT = "byokg-columnar"
VERSION = 3

ENGINE_FOLDERS: dict[Language, str] = {"cypher": "arcadedb", "sparql": "oxigraph"}
"""Where in the folder the query engine for each language lies, if it was built."""

_HERE, _EXCHANGE = -100, 2
"""What Linux calls AT_FDCWD and RENAME_EXCHANGE."""
_OWN = "meta_sha256"
_KEYS = ("nodes", "edges", "dropped_duplicates", "source", "schema", "files", _OWN)


@contextmanager
def new_folder(
    folder: str | Path, overwrite: bool, refuse: Callable[[Path, bool], None] | None = None
) -> Iterator[Path]:
    """Give an empty hidden sibling of `folder` to write into, and rename it into place afterwards.

    On an error, or when interrupted, the sibling is removed, and so are parents that were made for it; what stood at
    `folder` is untouched. The sibling of a process that was killed is removed by the next one that writes `folder`. A
    process that has the replaced graph open keeps reading the old files.

    Args:
        folder: where the content appears, complete.
        overwrite: replace a folder of the same kind that is already there.
        refuse: raises `GraphExists` when `folder` is taken; None means `refuse_taken`.

    Raises:
        GraphExists: `folder` is taken.
        GraphError: the system does not let us write there, or the disk is full.
    """
    folder = Path(folder)
    refuse = refuse or refuse_taken
    refuse(folder, overwrite)
    partial = folder.parent / f"{_prefix(folder)}{uuid.uuid4().hex[:12]}"
    absent = [parent for parent in folder.parents if not parent.exists()]
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked_folder(partial):
            _remove_left_behind(folder)
            yield partial
            for path in (*sorted(partial.rglob("*")), partial):
                _sync(path)
            refuse(folder, overwrite)  # it may have appeared meanwhile
            _put(partial, folder)
            _sync(folder.parent)
    except OSError as error:
        raise GraphError(f"cannot write to {str(folder)!r}: {error}; free space or choose another") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if not folder.exists():
            _remove_empty(absent)


def _prefix(folder: Path) -> str:
    return f".{folder.name}.partial-"


@contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    """Make a folder, and lock it for as long as this process works on it."""
    folder.mkdir()
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        folder.mkdir(exist_ok=True)  # another process may have taken it for one left behind, a moment ago
        yield
    finally:
        os.close(descriptor)


def _remove_left_behind(folder: Path) -> None:
    """Remove what processes that were killed have left of this folder: what nobody has locked."""
    for path in folder.parent.glob(f"{glob.escape(_prefix(folder))}*"):
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)


def _put(partial: Path, folder: Path) -> None:
    """Rename a folder into place; what was there takes its name, so that at no moment there is none."""
    if not folder.exists():
        partial.rename(folder)
        return
    exchange = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if exchange and exchange(_HERE, os.fsencode(partial), _HERE, os.fsencode(folder), _EXCHANGE) == 0:
        return
    old = partial.with_name(f"{partial.name}-old")  # where the system cannot exchange, there is such a moment
    folder.rename(old)
    try:
        partial.rename(folder)
    except BaseException:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders, innermost first, up to one that is not there or not empty."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def refuse_taken(folder: str | Path, overwrite: bool) -> None:
    """Raise `GraphExists` unless `folder` is absent, empty, or a graph that may be overwritten."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise GraphExists(folder, "a file is there; choose another folder")
    if not folder.exists() or next(folder.iterdir(), None) is None:
        return
    if not _is_ours(folder):
        raise GraphExists(folder, "the folder is not empty and holds no graph; choose another folder")
    if not overwrite:
        raise GraphExists(folder, "a graph is already there; pass overwrite=True or choose another folder")


def _is_ours(folder: Path) -> bool:
    """Tell whether a folder is a graph, be it of another version or damaged: a rebuild replaces those."""
    try:
        return bool(json.loads((folder / META).read_bytes()).get("format") == FORMAT)
    except (OSError, ValueError, AttributeError):
        return False


def write_meta(folder: Path, content: Mapping[str, Any]) -> None:
    """Write `meta.json` with `content`, and size and checksum of every file that is in the folder."""
    files = {path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in sorted(folder.iterdir())}
    meta = {"format": FORMAT, "version": VERSION, **content, "files": files}
    meta[_OWN] = _digest(meta)
    (folder / META).write_text(json.dumps(meta, ensure_ascii=False, indent=1) + "\n", "utf-8")


def _digest(meta: Mapping[str, Any]) -> str:
    """Return the SHA-256 of what `meta.json` says besides it."""
    said = {key: value for key, value in meta.items() if key != _OWN}
    return hashlib.sha256(json.dumps(said, ensure_ascii=False).encode(errors="surrogatepass")).hexdigest()


def read_meta(folder: Path) -> dict[str, Any]:
    """Read `meta.json`, and check that the files it lists are there in full length.

    Raises:
        GraphNotFound: there is no `meta.json`.
        GraphCorrupt: it cannot be used, or a file is missing or of another length.
    """
    try:
        meta = json.loads((folder / META).read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise GraphNotFound(folder) from error
    except (OSError, ValueError) as error:
        raise GraphCorrupt(folder, f"{META}: {error}") from error
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise GraphCorrupt(folder, f"{META} does not say format {FORMAT!r}")
    if meta.get("version") != VERSION:
        raise GraphCorrupt(folder, f"it has format version {meta.get('version')!r}, this byokg reads {VERSION}")
    lacking = [key for key in _KEYS if key not in meta]
    if lacking:
        raise GraphCorrupt(folder, f"{META} lacks {', '.join(lacking)}")
    try:
        lengths = {name: (entry["bytes"], entry["sha256"])[0] for name, entry in meta["files"].items()}
    except (AttributeError, KeyError, TypeError) as error:
        raise GraphCorrupt(folder, f"the list of files in {META} is damaged") from error
    for name, written in lengths.items():
        try:
            size = (folder / name).stat().st_size
        except OSError as error:
            raise GraphCorrupt(folder, f"file {name} is missing") from error
        if size != written:
            raise GraphCorrupt(folder, f"file {name} has {size} bytes, {written} were written")
    return meta


def stamp(folder: Path) -> tuple[int, ...]:
    """Return what differs between a graph and one that has replaced it; nothing where there is none."""
    try:
        found = (folder / META).stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def verify_checksums(folder: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
    """Read every file, `meta.json` too, and compare its checksum. Raises `GraphCorrupt` for one that differs."""
    meta = read_meta(folder)
    if _digest(meta) != meta[_OWN]:
        raise GraphCorrupt(folder, f"{META} has changed")
    for name, entry in files.items():
        try:
            found = sha256(folder / name)
        except OSError as error:
            raise GraphCorrupt(folder, f"file {name}: {error.strerror}") from error
        if found != entry["sha256"]:
            raise GraphCorrupt(folder, f"file {name} has changed (SHA-256 {found}, written was {entry['sha256']})")


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    """Have the system put a file or folder on the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows opens no folders; it keeps the order of renames by itself
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
