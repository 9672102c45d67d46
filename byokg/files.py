"""Files: read whether compressed or not, written complete or not at all, their checksums, and JSON lines.

SQLite files are opened here as well, so that many threads and processes can use one at the same time.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import ctypes
import errno
import gc
import glob
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import shutil
import sqlite3
import sys
import time
import uuid
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

from filelock import BaseFileLock, FileLock

from byokg.errors import ByokgError, GraphError, GraphExists, ImportFailed

_HERE, _EXCHANGE = -100, 2
"""What Linux calls AT_FDCWD and RENAME_EXCHANGE."""

compact_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=dict).encode
"""Returns a value, mappings of any kind included, as JSON on one line, without spaces and escapes."""


COMPRESSIONS = ("", ".gz", ".xz", ".bz2", ".zst")
"""Endings of the names of compressed files, and of plain ones."""

_LINES_BYTES = 1 << 24
"""Amount of a text held at once; more only for a single longer line."""

_UNDECODED, _HALF_PAIR = re.compile("[\udc80-\udcff]"), re.compile("[\ud800-\udfff]")


class Closing(ABC):
    """Base of all that holds resources: the end of a `with` block closes it."""

    @abstractmethod
    def close(self) -> None:
        """Release the resources; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def is_utf8(text: str) -> bool:
    """True if UTF-8 can encode a text; False for half of a surrogate pair, as in odd names of files."""
    return _HALF_PAIR.search(text) is None


def user_cache(environment: Mapping[str, str] = os.environ) -> Path:
    """Return byokg's folder inside the user's cache folder, for reproducible files; it need not exist."""
    base = environment.get("XDG_CACHE_HOME", "")
    # The XDG specification has relative paths ignored.
    root = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
    return root / "byokg"


def has_separator(text: str) -> bool:
    """Return True if a text holds a separator of paths, of any system."""
    return "/" in text or "\\" in text


def in_bytes(path: Path) -> tuple[str, ...]:
    """Return the parts of a path, to sort by: an order that is the same on Windows, which takes no account of case."""
    return path.parts


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def list_files(folder: Path) -> dict[str, dict[str, Any]]:
    """Return size and checksum of each file in a folder, by name, as a `meta.json` keeps them under `files`.

    Hidden files, with a leading dot, are left out.
    """
    shown = sorted((path for path in folder.iterdir() if not path.name.startswith(".")), key=in_bytes)
    return {path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in shown}


def find_missing(folder: Path, listed: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return which of the files that `list_files` listed is missing or has another size, as a reason; None if none."""
    for name, entry in listed.items():
        written = entry["bytes"]
        try:
            size = (folder / name).stat().st_size
        except OSError:
            return f"file {name} is missing"
        if size != written:
            return f"file {name} has {size} bytes, {written} were written"
    return None


def find_changed(folder: Path, listed: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return which of the files that `list_files` listed has another checksum, as a reason; None if none."""
    for name, entry in listed.items():
        try:
            found = sha256(folder / name)
        except OSError as error:
            return f"file {name}: {error.strerror}"
        if found != entry["sha256"]:
            return f"file {name} has changed (SHA-256 {found}, written was {entry['sha256']})"
    return None


def json_line(value: object, encode: Callable[[Any], str] = compact_json) -> bytes:
    """Return a value as a line of a JSON lines file.

    A lone surrogate, which UTF-8 cannot hold, becomes an escape that JSON reads back the same.
    """
    return f"{encode(value)}\n".encode("utf-8", "backslashreplace")


def write_json(path: Path, value: object) -> None:
    """Write a value as indented JSON; lone surrogates as in `json_line`."""
    text = json.dumps(value, ensure_ascii=False, indent=1)
    path.write_bytes(f"{text}\n".encode("utf-8", "backslashreplace"))


def csv_lines(rows: Iterable[Iterable[object]]) -> Iterator[bytes]:
    """Yield rows as lines of CSV in UTF-8; lone surrogates are escaped."""
    line = io.StringIO()
    writer = csv.writer(line, lineterminator="\n")
    for row in rows:
        writer.writerow(row)
        yield line.getvalue().encode("utf-8", "backslashreplace")
        line.seek(0)
        line.truncate()


def write_file(path: Path, content: Iterable[bytes], mode: int = 0o666) -> None:
    """Write a file whole or not at all; see `new_file`."""
    with new_file(path, mode) as file:
        file.writelines(content)


@contextmanager
def new_file(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Give a hidden sibling of `path` to write to, and rename it over `path` afterwards.

    On an error the sibling is removed and `path` stays as it was. Several processes may write the same file; leftovers
    of a killed process are removed by the next one that writes it.

    Args:
        path: place of the complete content.
        mode: permissions of the file, before the umask.

    Raises:
        OSError: the place is not writable, or the disk is full.
    """
    if not path.parent.is_dir():  # a lock would create it
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    remove_left_behind(path)
    partial = _sibling(path)
    with _claimed(partial):
        try:
            with open(partial, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)  # once it is closed: Windows renames no open file
            _sync(path.parent)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def lock_file(path: Path, timeout_s: float) -> Iterator[None]:
    """Hold a file's exclusive lock, against other threads, too; the system releases it should this process be killed.

    Args:
        path: the file; made unless it is there, and left there. Nothing else may be kept in it, since a locked file
            cannot be read on Windows.
        timeout_s: seconds to wait for another holder; -1 waits as long as it takes.

    Raises:
        TimeoutError: another process or thread still holds it.
        OSError: the file cannot be opened for writing.
    """
    with FileLock(path, timeout_s, thread_local=False):
        yield


@contextmanager
def _claimed(partial: Path, timeout_s: float = -1) -> Iterator[None]:
    """Hold the lock beside a file or folder that is being written; the lock's file is removed at the end.

    Raises what `lock_file` raises.
    """
    lock = FileLock(partial.with_name(partial.name + _CLAIM), timeout_s, thread_local=False)
    while True:
        lock.acquire()
        if os.path.exists(lock.lock_file):
            break
        lock.release()  # another process has just removed the file, so this lock excludes nobody
    try:
        yield
    finally:
        _let_go(lock)


_CLAIM, _OLD = ".lock", "-old"
"""Suffixes of the lock of a partial file or folder, and of the folder that it replaces."""


def _let_go(lock: BaseFileLock) -> None:
    """Remove a lock's file, then release the lock: nobody holds a removed file. Windows needs the other order."""
    try:
        os.unlink(lock.lock_file)
    except PermissionError:  # Windows removes no open file, and so none that somebody else holds
        lock.release()
        with suppress(OSError):
            os.unlink(lock.lock_file)
    except OSError:
        lock.release()
    else:
        lock.release()


_WORTH_KEEPING_S = 60.0
"""Seconds of work that are kept when somebody interrupts it."""


@contextmanager
def new_folder(
    folder: str | Path,
    overwrite: bool,
    refuse: Callable[[Path, bool], None] | None,
    useful: Callable[[Path], bool] | None = None,
) -> Iterator[Path]:
    """Give an empty hidden sibling of `folder` to write into, and rename it into place afterwards.

    On an error, or when interrupted, the sibling is removed, and so are parents that were made for it; the previous
    `folder` is untouched. The sibling of a killed process is removed by the next one that writes `folder`. A process
    that has the replaced folder open keeps reading the old files. Of two that write it at the same time, the one that
    ends last finds it taken, or replaces the other's.

    Args:
        folder: place of the complete content.
        overwrite: passed to `refuse`.
        refuse: raises `GraphExists` when `folder` is taken; None replaces any content.
        useful: True for leftovers of a killed process, or of one that was interrupted or failed after more than a
            minute, that can be continued; without it, nothing is kept.

    Raises:
        GraphExists: `folder` is taken.
        GraphError: the place is not writable, or the disk is full.
    """
    folder = Path(folder)
    if not is_utf8(str(folder)):
        raise GraphError(f"cannot write to {str(folder)!a}: the name is not UTF-8; choose another")
    refuse = refuse or _refuse_nothing
    refuse(folder, overwrite)
    partial, kept, began = _sibling(folder), False, time.monotonic()

    def is_worth_keeping() -> bool:
        return useful is not None and time.monotonic() - began > _WORTH_KEEPING_S and useful(partial)

    absent = [parent for parent in folder.parents if not parent.exists()]
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _claimed(partial):
            if useful is not None:
                _adopt(folder, partial, useful)
            remove_left_behind(folder)
            partial.mkdir(exist_ok=True)
            yield partial
            for path in (*sorted(partial.rglob("*")), partial):
                _sync(path)
            try:
                refuse(folder, overwrite)
            except GraphExists as error:
                reason = "another process has written there meanwhile; look at that, or choose another folder"
                raise GraphExists(folder, reason) from error
            _put(partial, folder)
            _sync(folder.parent)
    except OSError as error:
        kept = is_worth_keeping()
        advice = "free space and try again, which goes on from here" if kept else "free space or choose another"
        raise GraphError(f"cannot write to {str(folder)!r}: {_reason(error)}; {advice}") from error
    except ByokgError:
        raise
    except BaseException:
        kept = is_worth_keeping()
        raise
    finally:
        if not kept:
            shutil.rmtree(partial, ignore_errors=True)
        if not folder.exists():
            _remove_empty(absent)


def _reason(error: OSError) -> str:
    """Return the reason of a failed write; numpy reports only the number of bytes."""
    from_numpy = error.errno is None and ("written" in str(error) or "free space" in str(error))
    return "the disk is full" if from_numpy or error.errno in (errno.ENOSPC, errno.EDQUOT) else str(error)


def _adopt(folder: Path, partial: Path, useful: Callable[[Path], bool]) -> None:
    """Give the name `partial` to what another process has left beside `folder`, if some of it is useful."""
    for left in _partials(folder):
        with suppress(OSError), _claimed(left, 0):
            if useful(left):
                left.rename(partial)
                return


def _partials(path: Path) -> list[Path]:
    """Return the partial files and folders of all processes that write `path` or did; of some only the lock is left."""
    found = path.parent.glob(f"{glob.escape(f'.{path.name}.partial-')}*")
    return sorted({each.with_name(each.name.removesuffix(_CLAIM).removesuffix(_OLD)) for each in found})


def refuse_taken(
    place: Path, overwrite: bool, kind: str, is_ours: Callable[[Path], bool], noun: str = "folder"
) -> None:
    """Raise `GraphExists` if something is at a place, unless it may be replaced.

    Args:
        place: where a file or folder is to be written.
        overwrite: True replaces earlier output of the same command.
        kind: noun and verb of the message, such as `a test set is`.
        is_ours: True for such output; nothing else is ever replaced.
        noun: `folder` (an empty one may exist) or `file`.
    """
    if not place.exists() or (noun == "folder" and place.is_dir() and not any(place.iterdir())):
        return
    if not is_ours(place):
        raise GraphExists(place, f"something is there already; choose another {noun}")
    if not overwrite:
        raise GraphExists(place, f"{kind} there already; add --overwrite or choose another {noun}")


def _refuse_nothing(folder: Path, overwrite: bool) -> None:
    pass


def _sibling(path: Path) -> Path:
    return path.with_name(f".{path.name}.partial-{uuid.uuid4().hex[:12]}")


def remove_left_behind(path: Path) -> None:
    """Remove what killed processes have left beside a file or folder they were writing: what nobody has locked."""
    for partial in _partials(path):
        with suppress(OSError), _claimed(partial, 0):
            old = partial.with_name(partial.name + _OLD)
            if old.exists() and not path.exists():
                old.rename(path)  # killed between the two renames of `_put`
            for left in (partial, old):
                if left.is_dir():
                    shutil.rmtree(left, ignore_errors=True)
                else:
                    left.unlink(missing_ok=True)


def _put(partial: Path, folder: Path) -> None:
    """Rename a folder into place; the previous one takes its name, so that at no moment there is none."""
    if not folder.exists():
        _rename(partial, folder)
        return
    exchange = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if sys.platform == "linux" else None
    if exchange and exchange(_HERE, os.fsencode(partial), _HERE, os.fsencode(folder), _EXCHANGE) == 0:
        return
    old = partial.with_name(partial.name + _OLD)  # where the system cannot exchange, there is such a moment
    _rename(folder, old)
    try:
        _rename(partial, folder)
    except BaseException:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _rename(folder: Path, name: Path) -> None:
    try:
        folder.rename(name)
    except PermissionError:  # Windows renames no folder with mapped files, and garbage may map some
        gc.collect()
        folder.rename(name)


def remove_folder(folder: Path) -> None:
    """Remove a folder with all that is in it, as far as the system allows; it need not be there."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():  # as in `_rename`
        gc.collect()
        shutil.rmtree(folder, ignore_errors=True)


def _remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders, innermost first, up to one that is not there or not empty."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _sync(path: Path) -> None:
    """Have the system put a file or folder on the disk."""
    if not path.is_dir():
        with path.open("rb+") as file:  # Windows writes back only what is open for writing
            os.fsync(file.fileno())
        return
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:  # Windows opens no folder, and keeps names in its journal
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def uncompressed(path: Path) -> Path:
    """Return the path without the ending of a compression."""
    return path.with_suffix("") if path.suffix.lower() in COMPRESSIONS[1:] else path


def bytes_read(paths: Sequence[Path]) -> int | None:
    """Return the position of this process in some files that are read one after the other.

    None if the system does not report it (only Linux does), or none of them is open.
    """
    sizes = {str(path.resolve()): path.stat().st_size for path in paths}
    names = list(sizes)
    with suppress(OSError):
        for descriptor in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                name = os.readlink(f"/proc/self/fd/{descriptor}")
                if name in sizes:
                    said = Path(f"/proc/self/fdinfo/{descriptor}").read_text("ascii")
                    before = sum(sizes[path] for path in names[: names.index(name)])
                    return before + int(said.split("pos:")[1].split()[0])
    return None


def open_decompressed(path: Path) -> BinaryIO:
    """Open the decompressed bytes of a file; the ending of its name gives the compression."""
    ending = path.suffix.lower()
    if ending == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if ending == ".xz":
        return cast(BinaryIO, lzma.open(path, "rb"))
    if ending == ".bz2":
        return cast(BinaryIO, bz2.open(path, "rb"))
    if ending == ".zst":
        import pyarrow as pa

        return cast(BinaryIO, pa.input_stream(str(path), compression="zstd"))
    return path.open("rb")


class _Without(io.RawIOBase):
    """A text of which some lines are empty."""

    def __init__(self, stream: BinaryIO, lines: frozenset[int]) -> None:
        self._lines, self._waiting = enumerate(iter(stream.readline, b""), 1), b""
        self._left_out = lines

    def readable(self) -> bool:
        """Return True: the stream is readable."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; return with how many bytes."""
        while not self._waiting:
            number, line = next(self._lines, (0, b""))
            if not line:
                return 0
            self._waiting = b"\n" if number in self._left_out else line
        count = min(len(buffer), len(self._waiting))
        buffer[:count], self._waiting = self._waiting[:count], self._waiting[count:]
        return count


@dataclass(frozen=True)
class TextFile:
    """A text file in UTF-8 that is imported, compressed or not.

    Raises:
        ImportFailed: the name of the file is not UTF-8.
    """

    path: Path
    left_out: frozenset[int] = field(default=frozenset(), kw_only=True)
    """Lines that are read as empty ones, counting from 1."""

    def __post_init__(self) -> None:
        if not is_utf8(str(self.path)):
            raise ImportFailed(self.path, None, "the name of the file is not UTF-8; rename it")

    def description(self) -> dict[str, Any]:
        """Return name, size and checksum, as the graph's `source` keeps them."""
        with self.reading():
            return {"name": self.path.name, "bytes": self.path.stat().st_size, "sha256": sha256(self.path)}

    def line_blocks(self) -> Iterator[bytes]:
        """Yield the text in blocks of whole lines, without its byte order mark."""
        block = b""
        with self.reading(), self.open() as stream:
            first = True
            while read := stream.read(_LINES_BYTES):
                block += read.removeprefix(codecs.BOM_UTF8) if first else read
                first = False
                if end := block.rfind(b"\n") + 1:
                    yield block[:end]
                    block = block[end:]
        if block:
            yield block

    def check_text(self, line: int, text: str) -> None:
        """Raise `ImportFailed` where bytes that are not UTF-8 came as lone surrogates."""
        if not text.isascii() and (found := _UNDECODED.search(text)):
            byte = ord(found.group()) - 0xDC00
            raise ImportFailed(self.path, line, f"byte 0x{byte:02x} is not UTF-8; convert the file to UTF-8")

    def open(self) -> BinaryIO:
        """Open the decompressed bytes."""
        stream = self._decoded(open_decompressed(self.path))
        return cast(BinaryIO, io.BufferedReader(_Without(stream, self.left_out))) if self.left_out else stream

    def _decoded(self, stream: BinaryIO) -> BinaryIO:
        """Convert decompressed bytes to UTF-8; a text in another encoding overrides this."""
        return stream

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn any error while reading a file into `ImportFailed`."""
        try:
            yield
        except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise ImportFailed(self.path, None, f"cannot be read: {error.strerror}") from error
            reason = f"the compressed data is damaged ({error}); fetch or compress the file again"
            raise ImportFailed(self.path, None, reason) from error


def open_file_limits() -> tuple[int | None, int | None]:
    """Return how many files this process may have open, and how far that may be raised; None for no limit."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return None, None
    soft, hard = (
        None if limit == resource.RLIM_INFINITY else limit for limit in resource.getrlimit(resource.RLIMIT_NOFILE)
    )
    return soft, hard


def allow_open_files(needed: int) -> None:
    """Raise this process's limit of open files to what is needed, as far as the system lets us."""
    soft, hard = open_file_limits()
    if soft is not None and soft < needed:
        import resource

        most = needed if hard is None else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.RLIM_INFINITY if hard is None else hard))


_BUSY_S = 60.0
"""Longest wait for another process that writes to the same SQLite file."""


def open_database(path: Path, read_only: bool = False) -> sqlite3.Connection:
    """Open an SQLite file with a write-ahead log, for threads that take turns and any number of processes.

    The file must lie on a local disk, since the log needs shared memory. On a disk that takes no writes it is opened
    for reading only.

    Args:
        path: the file; made in its folder unless it is there.
        read_only: open it for reading only; it must be there.

    Raises:
        sqlite3.Error: it cannot be opened, or is no database.
    """

    def connected(mode: str) -> sqlite3.Connection:
        address = f"{path.resolve().as_uri()}?{mode}"
        file = sqlite3.connect(address, _BUSY_S, isolation_level=None, check_same_thread=False, uri=True)
        file.execute("PRAGMA schema_version")  # reads the file, so that it fails here if it does
        file.execute("PRAGMA synchronous = FULL")
        return file

    try:
        if read_only:
            return connected("mode=ro")
        file = connected("mode=rwc")
        while file.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            try:
                file.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                # Two processes that do this at the same time fail at once, without waiting.
                if "locked" not in str(error):
                    raise
                time.sleep(0.01)
        return file
    except sqlite3.OperationalError:
        if not path.is_file() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
            raise
        return connected("mode=ro&immutable=1")  # else SQLite wants to make its shared memory beside the file


@contextmanager
def transaction(file: sqlite3.Connection) -> Iterator[None]:
    """Run the body in one transaction; an error undoes it."""
    file.execute("BEGIN IMMEDIATE")
    try:
        yield
        file.execute("COMMIT")
    except BaseException:
        if file.in_transaction:
            file.execute("ROLLBACK")
        raise
