"""The folder of a saved graph: written completely or not at all, and checked against its `meta.json`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from byokg.errors import GraphCorrupt, GraphExists, GraphNotFound
from byokg.files import find_changed, find_missing, list_files, write_json
from byokg.types import Language

META = "meta.json"
FORMAT = "byokg-columnar"
VERSION = 3

ENGINE_FOLDERS: dict[Language, str] = {"cypher": "arcadedb", "sparql": "oxigraph"}
"""Where in the folder the query engine for each language lies, if it was built."""

_OWN = "meta_sha256"
_KEYS = ("nodes", "edges", "dropped_duplicates", "source", "schema", "files", _OWN)


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
    meta = {"format": FORMAT, "version": VERSION, **content, "files": list_files(folder)}
    meta[_OWN] = _digest(meta)
    write_json(folder / META, meta)


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
        missing = find_missing(folder, meta["files"])
    except (AttributeError, KeyError, TypeError) as error:
        raise GraphCorrupt(folder, f"the list of files in {META} is damaged") from error
    if missing:
        raise GraphCorrupt(folder, missing)
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
    if changed := find_changed(folder, files):
        raise GraphCorrupt(folder, changed)
