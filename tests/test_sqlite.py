"""Tests of `byokg.files`."""

from __future__ import annotations

import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from byokg.files import open_database, transaction


def test_many_may_make_the_same_file_at_the_same_time(tmp_path: Path) -> None:
    def add(number: int) -> None:
        with closing(open_database(tmp_path / "file.sqlite")) as file:
            file.execute("CREATE TABLE IF NOT EXISTS t (x INTEGER)")
            with transaction(file):
                file.execute("INSERT INTO t VALUES (?)", (number,))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(40)))
    with closing(open_database(tmp_path / "file.sqlite", read_only=True)) as file:
        assert file.execute("SELECT x FROM t ORDER BY x").fetchall() == [(number,) for number in range(40)]


def test_an_error_undoes_what_a_transaction_did(tmp_path: Path) -> None:
    with closing(open_database(tmp_path / "file.sqlite")) as file:
        file.execute("CREATE TABLE t (x INTEGER NOT NULL)")
        with pytest.raises(sqlite3.IntegrityError), transaction(file):
            file.executemany("INSERT INTO t VALUES (?)", [(1,), (None,)])
        assert file.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_a_file_that_is_missing_is_made_only_to_be_written(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError):
        open_database(tmp_path / "file.sqlite", read_only=True)
    assert list(tmp_path.iterdir()) == []
    open_database(tmp_path / "file.sqlite").close()
    assert [path.name for path in tmp_path.iterdir()] == ["file.sqlite"]


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_in_a_folder_that_takes_no_writes_is_read(tmp_path: Path, read_only: bool) -> None:
    with closing(open_database(tmp_path / "file.sqlite")) as file:
        file.execute("CREATE TABLE t AS SELECT 7")
    tmp_path.chmod(0o555)
    try:
        with closing(open_database(tmp_path / "file.sqlite", read_only)) as file:
            assert file.execute("SELECT * FROM t").fetchone() == (7,)
    finally:
        tmp_path.chmod(0o755)
