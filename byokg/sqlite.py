"""SQLite files that many threads and processes use at the same time."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
                # Two processes that do this at the same time are told at once, without waiting.
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
    """Do in one transaction what is done inside; an error undoes it."""
    file.execute("BEGIN IMMEDIATE")
    try:
        yield
        file.execute("COMMIT")
    except BaseException:
        if file.in_transaction:
            file.execute("ROLLBACK")
        raise
