"""Which code made a run."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_GIT_TIMEOUT_S = 5


@dataclass(frozen=True)
class CodeVersion:
    """The package's version, a digest of all files in it, and the commit they were checked out from, if any.

    The digest tells apart two states of a checkout that share a version; the commit is for people.
    """

    version: str
    digest: str
    commit: str | None


@cache
def code_version() -> CodeVersion:
    """Return the version of the byokg that is running."""
    try:
        version = metadata.version("byokg")
    except metadata.PackageNotFoundError:
        version = "not installed"
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*")):
        parts = path.relative_to(_PACKAGE).parts
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in parts):
            digest.update("/".join(parts).encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return CodeVersion(version, digest.hexdigest()[:16], _commit())


def _commit() -> str | None:
    """Return the checked-out commit, `+` behind it when tracked files differ; None outside a repository."""
    if not (_PACKAGE.parent / ".git").exists():
        return None
    try:
        commit, changes = (
            subprocess.run(
                ("git", "-C", str(_PACKAGE.parent), *arguments),
                capture_output=True,
                check=True,
                text=True,
                timeout=_GIT_TIMEOUT_S,
            ).stdout.strip()
            for arguments in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return commit + ("+" if changes else "")
