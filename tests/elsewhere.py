"""Windows, as far as this system can stand for it: `environment` has Python start a program, and its children, so.

To byokg, modules and functions are absent that Windows does not have. As there, no folder can be opened, a rename
replaces nothing, and what is open or mapped can be neither renamed nor removed.
"""

from __future__ import annotations

import builtins
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODULES = frozenset("fcntl resource pwd grp termios tty pty syslog posix select crypt nis spwd".split())
"""Those that Windows lacks; `select` is there, but takes sockets only."""

FUNCTIONS = {
    "os": (
        "fork forkpty killpg getuid geteuid getgid getpgid setsid sysconf uname statvfs sched_getaffinity "
        "register_at_fork posix_fallocate posix_fadvise set_blocking getloadavg wait wait3 mkfifo chown fchmod pread "
        "pwrite sendfile O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_CLOEXEC O_SYNC"
    ).split(),
    "signal": "SIGKILL SIGALRM SIGHUP SIGUSR1 SIGUSR2 SIGPIPE SIGCHLD setitimer alarm ITIMER_REAL".split(),
    "mmap": ["MADV_DONTNEED", "MAP_SHARED", "MAP_PRIVATE", "PROT_READ", "PROT_WRITE"],
    "time": ["tzset"],
    "socket": ["AF_UNIX", "socketpair"],
}
"""Names that are not in these modules on Windows."""


CHANGED = {"sys": {"platform": "win32"}, "os": {"name": "nt"}}


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of such a program; `folder` is for what Python reads at its start."""
    (folder / "sitecustomize.py").write_text("from tests.elsewhere import install\ninstall()\n", "utf-8")
    paths = [str(folder), str(Path(__file__).resolve().parents[1])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


class _Lacking:
    """A module without some of its names, and with other values of some."""

    def __init__(self, module: Any) -> None:
        names, changed = FUNCTIONS.get(module.__name__, ()), CHANGED.get(module.__name__, {})
        self.__dict__.update(_module=module, _names=frozenset(names), **changed)

    def __getattr__(self, name: str) -> Any:
        if name in self._names:
            raise AttributeError(f"module {self._module.__name__!r} has no attribute {name!r}")
        return getattr(self._module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._module, name, value)


def _install_imports() -> None:
    import_ = builtins.__import__
    lacking = {name: _Lacking(__import__(name)) for name in {*FUNCTIONS, *CHANGED}}

    def importing(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if not str((globals or {}).get("__name__", "")).startswith("byokg"):
            return import_(name, globals, locals, fromlist, level)
        if level == 0 and name.partition(".")[0] in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return lacking[name] if level == 0 and name in lacking else import_(name, globals, locals, fromlist, level)

    builtins.__import__ = importing


def _held() -> set[str]:
    """Return the files that this process has open or mapped."""
    mapped = (line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text("utf-8").splitlines())
    found = {fields[5].strip() for fields in mapped if len(fields) > 5}
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        except OSError:
            continue
    return found


def _refuse_held(path: Any) -> None:
    place = os.path.realpath(os.path.dirname(os.path.abspath(path))) + os.sep + os.path.basename(os.fspath(path))
    held = [each for each in _held() if each == place or each.startswith(f"{place}{os.sep}")]
    if held:
        raise PermissionError(13, f"another use of this file: {held[0]}", str(path))


def _install_files() -> None:
    guarded: dict[str, Callable[..., Any]] = {
        name: getattr(os, name) for name in ("unlink", "remove", "rename", "replace")
    }

    def guard(name: str) -> Callable[..., Any]:
        def call(*paths: Any, **more: Any) -> Any:
            for path in paths[:2]:
                _refuse_held(path)
            if name == "rename" and os.path.exists(paths[1]):
                raise FileExistsError(17, "the target exists, and rename replaces nothing here", str(paths[1]))
            return guarded[name](*paths, **more)

        return call

    for name in guarded:
        setattr(os, name, guard(name))
    shutil._use_fd_functions = False  # type: ignore[attr-defined]
    open_ = os.open

    def opening(path: Any, *arguments: Any, **more: Any) -> int:
        if os.path.isdir(path):
            raise PermissionError(13, "a folder cannot be opened", str(path))
        return open_(path, *arguments, **more)

    os.open = opening


def install() -> None:
    """Take away what there is not elsewhere."""
    _install_imports()
    _install_files()
