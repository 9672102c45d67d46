"""Graphs in `.zip` archives, unpacked into a temporary folder while they are read.

Refused are names that lead out of the folder, links, encrypted members, and archives that grow beyond all proportion.
"""

from __future__ import annotations

import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from byokg.errors import ImportFailed

ZIP = ".zip"

_READ_BYTES = 1 << 20
_MOST_FILES = 10_000
_PLAIN_BYTES, _MOST_RATIO = 1 << 26, 200
"""An archive that unpacks to more than the first is refused once it has grown so many times."""


@contextmanager
def unpacked(source: Path) -> Iterator[Path]:
    """Give a source itself, or of an archive the folder that holds its content, removed afterwards.

    Raises:
        ImportFailed: the archive is damaged or not safe; errors inside name the archive and the file in it.
    """
    if source.suffix.lower() != ZIP or not source.is_file():
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="byokg-") as name:
        folder = Path(name)
        try:
            _extract(source, folder)
            yield _content(folder)
        except ImportFailed as error:
            inner = Path(error.file)
            place = source / inner.relative_to(folder) if inner.is_relative_to(folder) else inner
            raise ImportFailed(place, error.line, error.reason.replace(name, str(source))) from error


def _content(folder: Path) -> Path:
    """Return the only file in a folder, or the folder that holds several, at any depth."""
    while True:
        inside = [path for path in folder.iterdir() if not path.name.startswith(".")]
        if len(inside) != 1:
            return folder
        if not inside[0].is_dir():
            return inside[0]
        folder = inside[0]


def _extract(source: Path, folder: Path) -> None:
    try:
        with zipfile.ZipFile(source) as archive:
            members = [one for one in archive.infolist() if not one.is_dir() and _is_content(one.filename)]
            if len(members) > _MOST_FILES:
                reason = (
                    f"holds {len(members):,} files, at most {_MOST_FILES:,} are unpacked; unpack it and give the folder"
                )
                raise ImportFailed(source, None, reason)
            left = max(_PLAIN_BYTES, source.stat().st_size * _MOST_RATIO)
            for member in members:
                left -= _unpack(source, archive, member, folder, left)
    except (zipfile.BadZipFile, LookupError, ValueError, RuntimeError, EOFError, zlib.error, OSError) as error:
        reason = (
            f"cannot be unpacked ({error or type(error).__name__}); fetch it again, or unpack it and give the folder"
        )
        raise ImportFailed(source, None, reason) from error


def _is_content(name: str) -> bool:
    """True unless a file is hidden, or one that macOS adds."""
    return not any(part.startswith((".", "__MACOSX")) and part != ".." for part in PurePosixPath(name).parts)


def _unpack(source: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path, most: int) -> int:
    """Unpack one file; return its size. Raises `ImportFailed` if it has more bytes than allowed, or is not safe."""
    place = PurePosixPath(member.filename.replace("\\", "/"))
    if place.is_absolute() or ".." in place.parts or ":" in place.parts[0]:
        raise ImportFailed(source, None, f"the file {member.filename!r} leads out of the archive; this is not safe")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise ImportFailed(source, None, f"{member.filename!r} is a link; this is not safe: unpack the archive by hand")
    target = folder.joinpath(*place.parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with archive.open(member) as content, target.open("wb") as file:
        while data := content.read(_READ_BYTES):
            size += len(data)
            if size > most:
                reason = f"{member.filename!r} unpacks to more than {_MOST_RATIO} times the archive's size"
                raise ImportFailed(source, None, f"{reason}, as if to fill the disk; unpack it by hand if you trust it")
            file.write(data)
    return size
