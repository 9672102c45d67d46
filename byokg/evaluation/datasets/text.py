"""Reads question files, plain or compressed, as numbered lines."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import zlib
from dataclasses import dataclass
from pathlib import Path

from byokg.errors import DatasetError

SUFFIXES = ("", ".xz", ".gz")


@dataclass(frozen=True)
class TextFile:
    """A decompressed text file: its lines that are not blank, each with its number in the file."""

    path: Path
    checksum: str
    """sha256 hex digest of the decompressed bytes, the same whichever way the file is compressed."""
    lines: tuple[tuple[int, str], ...]
    """Line numbers, from 1, and contents without line ends."""


def locate(folder: Path, *names: str) -> Path | None:
    """Return the first of `names` that lies in `folder` plain, as `.xz` or as `.gz`; None when none does."""
    for name in names:
        for suffix in SUFFIXES:
            path = folder / (name + suffix)
            if path.is_file():
                return path
    return None


def found(folder: Path, *names: str) -> Path:
    """Return what `locate` does.

    Raises:
        DatasetError: the folder holds none of them.
    """
    path = locate(folder, *names)
    if path is None:
        suffixes = ", ".join(filter(None, SUFFIXES))
        wanted = " or ".join(names)
        raise DatasetError(
            folder, None, f"holds no {wanted} (nor {suffixes}); point dataset.root at the folder that does"
        )
    return path


def read_bytes(path: Path) -> bytes:
    """Read a whole file, decompressed.

    Raises:
        DatasetError: the file cannot be read or decompressed.
    """
    try:
        content = path.read_bytes()
        if path.suffix == ".xz":
            content = lzma.decompress(content)
        elif path.suffix == ".gz":
            content = gzip.decompress(content)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise DatasetError(path, None, f"cannot be read ({error}); check the file, or fetch it again") from error
    return content


def read_text(path: Path) -> TextFile:
    """Read a whole UTF-8 file; a byte order mark and carriage returns at line ends are dropped.

    Raises:
        DatasetError: the file cannot be read or decompressed, or a line is not UTF-8.
    """
    content = read_bytes(path)
    lines = []
    for number, raw in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        try:
            line = raw.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise DatasetError(path, number, f"is not UTF-8 ({error.reason}); convert the file to UTF-8") from error
        if line.strip():
            lines.append((number, line))
    return TextFile(path, hashlib.sha256(content).hexdigest(), tuple(lines))
