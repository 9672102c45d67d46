"""Tests of `byokg.evaluation.datasets.fetch`, against a server that breaks connections."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from byokg.errors import ConfigError, FetchFailed
from byokg.evaluation.datasets.fetch import SUMS, Source, SourceFile, fetch, mirrored, sources

CONTENT = bytes(range(256)) * 1200
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Server:
    """A server of one file, and how it misbehaves."""

    url: str = ""
    content: bytes = CONTENT
    breaks: int = 0
    """Connections that end after a hundred thousand bytes."""
    errors: list[int] = field(default_factory=list)
    """Status codes that the next requests get."""
    ranges: bool = True
    shift: int = 0
    """How many bytes too late it continues."""
    etag: str = '"v1"'
    seen: list[tuple[str, str | None]] = field(default_factory=list)
    """Path and range of each request."""


@pytest.fixture
def server() -> Iterator[Server]:
    """Start one on the loopback interface."""
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            state.seen.append((self.path, wanted))
            if state.errors:
                self.send_error(state.errors.pop(0))
                return
            same = self.headers.get("If-Range", state.etag) == state.etag
            start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and state.ranges and same else 0
            if start >= len(state.content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(state.content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            start += state.shift if start else 0
            rest = state.content[start:]
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(state.content) - 1}/{len(state.content)}")
            self.send_header("Content-Length", str(len(rest)))
            self.send_header("ETag", state.etag)
            self.end_headers()
            if state.breaks:
                state.breaks -= 1
                self.wfile.write(rest[:100_000])
                self.wfile.flush()
                self.connection.close()
                return
            self.wfile.write(rest)

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        state.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield state
        http.shutdown()
        thread.join()


def source(server: Server, sha256: str | None = DIGEST) -> Source:
    """Return a data set of one file on the server."""
    return Source("films", "https://example.org", "CC0", (SourceFile(f"{server.url}/data/f.bin", "sub/f.bin", sha256),))


def test_a_broken_connection_is_continued_where_it_broke(server: Server, tmp_path: Path) -> None:
    server.breaks = 2
    (fetched,) = fetch(source(server), tmp_path, wait_s=0)
    assert fetched.path.read_bytes() == CONTENT
    assert (fetched.sha256, fetched.known, fetched.fetched) == (DIGEST, True, True)
    assert [wanted for _, wanted in server.seen] == [None, "bytes=100000-", "bytes=200000-"]
    assert sorted(path.name for path in (tmp_path / "sub").iterdir()) == ["f.bin"]


def test_what_gave_up_is_continued_by_the_next_call(server: Server, tmp_path: Path) -> None:
    server.breaks = 1
    with pytest.raises(FetchFailed, match="try again, which continues"):
        fetch(source(server), tmp_path, attempts=1, wait_s=0)
    assert not (tmp_path / "sub/f.bin").exists()
    fetch(source(server), tmp_path, wait_s=0)
    assert (tmp_path / "sub/f.bin").read_bytes() == CONTENT
    assert server.seen[-1] == ("/data/f.bin", "bytes=100000-")


@pytest.mark.parametrize("change", ["no ranges", "another version"])
def test_a_server_that_cannot_continue_sends_all_of_it_again(server: Server, tmp_path: Path, change: str) -> None:
    server.breaks = 1
    with pytest.raises(FetchFailed):
        fetch(source(server), tmp_path, attempts=1, wait_s=0)
    server.ranges, server.etag = (False, server.etag) if change == "no ranges" else (True, '"v2"')
    fetch(source(server), tmp_path, wait_s=0)
    assert (tmp_path / "sub/f.bin").read_bytes() == CONTENT


def test_what_is_there_is_not_fetched_again(server: Server, tmp_path: Path) -> None:
    fetch(source(server), tmp_path)
    (again,) = fetch(source(server), tmp_path)
    assert (again.fetched, len(server.seen)) == (False, 1)
    (tmp_path / "sub/f.bin").write_bytes(b"mine")
    with pytest.raises(FetchFailed, match=r"is another file .* move it away"):
        fetch(source(server), tmp_path)
    assert (tmp_path / "sub/f.bin").read_bytes() == b"mine"


def test_a_file_with_the_wrong_digest_never_appears(server: Server, tmp_path: Path) -> None:
    server.content = b"altered"
    with pytest.raises(FetchFailed, match="another file than was expected"):
        fetch(source(server), tmp_path)
    assert [path for path in (tmp_path / "sub").iterdir() if not path.name.endswith(".etag")] == []


def test_a_digest_that_nobody_noted_is_noted_and_holds_from_then_on(server: Server, tmp_path: Path) -> None:
    (first,) = fetch(source(server, None), tmp_path)
    assert not first.known
    assert (tmp_path / SUMS).read_text() == f"{DIGEST}  sub/f.bin\n"
    (tmp_path / "sub/f.bin").unlink()
    server.content = b"altered"
    with pytest.raises(FetchFailed, match="another file than was expected"):
        fetch(source(server, None), tmp_path)


def test_a_busy_server_is_asked_again_and_a_missing_file_is_not(server: Server, tmp_path: Path) -> None:
    server.errors = [503, 429]
    fetch(source(server), tmp_path, wait_s=0)
    assert len(server.seen) == 3
    server.errors = [404]
    with pytest.raises(FetchFailed, match=r"answers 404 Not Found; try later, or --mirror"):
        fetch(source(server), tmp_path / "other", wait_s=0)
    assert len(server.seen) == 4


def test_a_mirror_has_the_same_paths(server: Server, tmp_path: Path) -> None:
    far = Source("films", "p", "CC0", (SourceFile("https://far.example/data/f.bin", "f.bin", DIGEST),))
    fetch(far, tmp_path, mirror=f"{server.url}/copy/")
    assert server.seen == [("/copy/data/f.bin", None)]
    assert mirrored("https://a.org/x/y", "http://b.org") == "http://b.org/x/y"
    with pytest.raises(ConfigError, match="--mirror far is no address"):
        fetch(far, tmp_path, mirror="far")


def test_all_that_is_there_but_the_name_needs_no_byte_more(server: Server, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/f.bin.part").write_bytes(CONTENT)
    fetch(source(server), tmp_path)
    assert (tmp_path / "sub/f.bin").read_bytes() == CONTENT


def test_the_list_of_sources_is_well_formed() -> None:
    for name, each in sources().items():
        assert each.name == name and each.page.startswith("https://") and each.licence
        for file in each.files:
            assert file.url.startswith("https://") and not Path(file.path).is_absolute() and ".." not in file.path
            assert file.sha256 is None or len(file.sha256) == 64
    with pytest.raises(ConfigError, match="medqa is offered by hand only; get it from https://"):
        fetch(sources()["medqa"], Path("never"))


def test_a_server_that_continues_at_another_place_is_asked_for_all_of_it(server: Server, tmp_path: Path) -> None:
    server.breaks, server.shift = 1, 7
    (fetched,) = fetch(source(server, None), tmp_path, wait_s=0)
    assert fetched.path.read_bytes() == CONTENT
    assert [wanted for _, wanted in server.seen] == [None, "bytes=100000-", None]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"--out .*file is no folder that can be made \(File exists\)"):
        fetch(sources()["pathquestion"], tmp_path / "file")
