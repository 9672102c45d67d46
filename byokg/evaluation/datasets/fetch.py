"""Downloads of published data sets, resumed after a broken connection and verified by digest."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import yaml

from byokg.errors import ConfigError, FetchFailed
from byokg.files import sha256, write_file

SUMS = "SHA256SUMS"
"""File of digests beside the downloads, in the format of `sha256sum`."""

_PART = ".part"
_TIMEOUT_S = 60.0

OnProgress = Callable[[str, int, int | None], None]
"""Progress callback: name of a file, bytes present, and bytes in all, if known."""


@dataclass(frozen=True)
class SourceFile:
    """Path and address of one file of a data set."""

    url: str
    path: str
    """Where it is put, below the folder of the set."""
    sha256: str | None = None
    """None if it is not known; the first fetch then notes it in `SHA256SUMS`."""
    bytes: int | None = None


@dataclass(frozen=True)
class Source:
    """A published data set."""

    name: str
    page: str
    licence: str
    files: tuple[SourceFile, ...] = ()
    """Empty if it can only be downloaded by hand."""


@dataclass(frozen=True)
class Fetched:
    """What became of one file."""

    path: Path
    sha256: str
    known: bool
    """True if the digest was known before the download and therefore verifies the file."""
    fetched: bool
    """False if the file was there already."""


def sources() -> dict[str, Source]:
    """Return all data sets in `sources.yaml`, by name."""
    text = resources.files("byokg.evaluation.datasets").joinpath("sources.yaml").read_text("utf-8")
    return {
        name: Source(name, entry["page"], entry["licence"], tuple(SourceFile(**file) for file in entry["files"]))
        for name, entry in yaml.safe_load(text).items()
    }


def fetch(
    source: Source,
    out: Path,
    mirror: str | None = None,
    attempts: int = 5,
    wait_s: float = 1.0,
    on_progress: OnProgress | None = None,
) -> list[Fetched]:
    """Download all files of a data set that are missing.

    A broken connection resumes at the same byte, also in a later call. A file appears under its name only when it is
    complete and its digest matches. Digests are kept in `SHA256SUMS`; one that is listed there counts as known.

    Args:
        source: files to download.
        out: target folder.
        mirror: address of a server, possibly with a path, with the same files under the same paths.
        attempts: most connections for one file without a byte received.
        wait_s: before the second attempt; doubles with each further one.
        on_progress: called with the progress of each file.

    Raises:
        ConfigError: the set has no files to download, or `mirror` is no address.
        FetchFailed: a file cannot be downloaded, or its digest is wrong.
    """
    if not source.files:
        raise ConfigError(f"{source.name} is offered by hand only; get it from {source.page}")
    if mirror is not None and urlsplit(mirror).scheme not in ("http", "https"):
        raise ConfigError(f"--mirror {mirror} is no address; write https://HOST or https://HOST/PATH")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--out {out} is no folder that can be made ({error.strerror}); name another one") from error
    noted = _read_sums(out / SUMS)
    done = []
    with httpx.Client(timeout=_TIMEOUT_S, follow_redirects=True, headers={"Accept-Encoding": "identity"}) as client:

        def download(file: SourceFile, part: Path) -> str:
            url = file.url if mirror is None else mirrored(file.url, mirror)
            failures = 0
            while True:
                before = _size(part)
                try:
                    _continue(client, url, part, file, on_progress)
                    return url
                except FetchFailed as error:
                    failures = 1 if _size(part) > before else failures + 1
                    if not error.retryable or failures >= attempts:
                        raise
                    time.sleep(wait_s * 2 ** (failures - 1))

        for file in source.files:
            fetched = _fetch_one(file, out / file.path, file.sha256 or noted.get(file.path), download)
            done.append(fetched)
            noted[file.path] = fetched.sha256
            _write_sums(out / SUMS, noted)
    return done


def _fetch_one(
    file: SourceFile, target: Path, expected: str | None, download: Callable[[SourceFile, Path], str]
) -> Fetched:
    """Download a file unless it is there, and check its digest; `download` returns the address it used."""
    part, url = target.with_name(target.name + _PART), file.url
    there = target.is_file()
    if not there:
        part.parent.mkdir(parents=True, exist_ok=True)
        url = download(file, part)
    digest = sha256(target if there else part)
    if expected not in (None, digest):
        if there:
            raise FetchFailed(url, f"{target} is another file (sha256 {digest}, not {expected}); move it away")
        part.unlink()
        raise FetchFailed(
            url, f"this is another file than was expected (sha256 {digest}, not {expected}); try --mirror"
        )
    if not there:
        part.replace(target)
        _tag(part).unlink(missing_ok=True)
    return Fetched(target, digest, expected is not None, not there)


def _continue(client: httpx.Client, url: str, part: Path, file: SourceFile, on_progress: OnProgress | None) -> None:
    """Ask for the rest of a file and append it. Raises `FetchFailed`, retryable where another try may help."""
    have = _size(part)
    tag = _tag(part)
    headers = {}
    if have:
        headers["Range"] = f"bytes={have}-"
        if tag.is_file():
            headers["If-Range"] = tag.read_text("ascii")  # another version of the file then comes whole
    try:
        with client.stream("GET", url, headers=headers) as response:
            if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                # Either the file is complete, as its digest proves, or the rest belongs to another file.
                if response.headers.get("Content-Range", "").rpartition("/")[2] == str(have):
                    return
                part.unlink()
                raise FetchFailed(url, "the server has less of the file than was fetched before", retryable=True)
            if response.status_code >= httpx.codes.BAD_REQUEST:
                busy = response.status_code == httpx.codes.TOO_MANY_REQUESTS
                retryable = busy or response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR
                reason = f"the server answers {response.status_code} {response.reason_phrase}; try later, or --mirror"
                raise FetchFailed(url, reason, retryable)
            if response.status_code != httpx.codes.PARTIAL_CONTENT:
                have = 0
            elif not response.headers.get("Content-Range", f"bytes {have}-").startswith(f"bytes {have}-"):
                part.unlink()
                raise FetchFailed(url, "the server continues at another place than was asked for", retryable=True)
            if etag := response.headers.get("ETag"):
                tag.write_text(etag, "ascii", newline="\n")
            left = response.headers.get("Content-Length")
            total = file.bytes if left is None else have + int(left)
            with part.open("ab" if have else "wb") as sink:
                for chunk in response.iter_raw():
                    sink.write(chunk)
                    have += len(chunk)
                    if on_progress is not None:
                        on_progress(file.path, have, total)
    except OSError as error:
        reason = f"cannot write {part} ({error.strerror}); make room and start again, which continues"
        raise FetchFailed(url, reason) from error
    except httpx.HTTPError as error:
        reason = f"{type(error).__name__}: {error or 'the connection broke'}; try again, which continues, or --mirror"
        raise FetchFailed(url, reason, retryable=isinstance(error, httpx.TransportError)) from error


def mirrored(url: str, mirror: str) -> str:
    """Return the address of the same file on another server."""
    return mirror.rstrip("/") + urlsplit(url).path


def _tag(part: Path) -> Path:
    """Return the place of the version note of a partial download."""
    return part.with_name(part.name + ".etag")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _read_sums(path: Path) -> dict[str, str]:
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines) if name}


def _write_sums(path: Path, sums: Mapping[str, str]) -> None:
    write_file(path, (f"{digest}  {name}\n".encode() for name, digest in sorted(sums.items())))
