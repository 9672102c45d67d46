"""Files appear whole or not at all; lines of JSON hold any text."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

import pytest

from byokg.files import find_changed, find_missing, json_line, list_files, new_file, write_file, write_json

WRITES_SLOWLY = """
import sys, time
from pathlib import Path
from byokg.files import new_file

with new_file(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("half written", flush=True)
    time.sleep(60)
"""


def test_a_file_replaces_the_one_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    write_file(path, [b"ne", b"w"])
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


def lines() -> Iterator[bytes]:
    yield b"half"
    raise ValueError("no")


def test_an_error_while_writing_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match="no"), new_file(path) as file:
        file.writelines(lines())
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_has_the_permissions_asked_for(tmp_path: Path) -> None:
    write_file(tmp_path / "a", [], mode=0o600)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


def test_a_killed_writer_leaves_nothing_that_the_next_one_does_not_remove(tmp_path: Path) -> None:
    path = tmp_path / "a[1]"  # a name with characters that mean something in patterns
    command = [sys.executable, "-c", WRITES_SLOWLY, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        write_file(path, [b"while another writes"])
        assert len(os.listdir(tmp_path)) == 3  # the file, and the other's with its lock
        process.kill()
    write_file(path, [b"after it was killed"])
    assert os.listdir(tmp_path) == [path.name]
    assert path.read_bytes() == b"after it was killed"


def write_often(path: Path, text: bytes) -> None:
    for _ in range(100):
        write_file(path, [text] * 1000)


def test_writers_at_the_same_time_leave_one_of_their_contents(tmp_path: Path) -> None:
    path = tmp_path / "a"
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=write_often, args=(path, text)) for text in (b"a", b"b")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert path.read_bytes() in (b"a" * 1000, b"b" * 1000)
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("text", ["plain", "é 漢", 'a"b\nc', "half of a pair: \ud83d", "\udc80", "\\ud800", "\x00"])
def test_a_json_line_reads_back_the_same(text: str) -> None:
    line = json_line({"text": text, "more": MappingProxyType({text: 1})})
    assert line.count(b"\n") == 1
    assert json.loads(line.decode("utf-8")) == {"text": text, "more": {text: 1}}


def test_indented_json_holds_lone_surrogates(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"text": "\ud800é"})
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == {"text": "\ud800é"}


def test_listed_files_are_checked_by_size_and_by_checksum(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"123")
    listed = list_files(tmp_path)
    assert list(listed) == ["a", "b"]
    assert find_missing(tmp_path, listed) is None
    assert find_changed(tmp_path, listed) is None
    (tmp_path / "b").write_bytes(b"124")
    assert find_missing(tmp_path, listed) is None
    assert "file b has changed" in str(find_changed(tmp_path, listed))
    (tmp_path / "b").write_bytes(b"12")
    assert find_missing(tmp_path, listed) == "file b has 2 bytes, 3 were written"
    (tmp_path / "b").unlink()
    assert find_missing(tmp_path, listed) == "file b is missing"
    assert find_changed(tmp_path, listed) == "file b: No such file or directory"
