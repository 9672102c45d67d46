"""A process of its own for an embedded engine, so that a query which runs away can be killed.

The parent holds a `Worker`. The child is started with `python -m byokg.graph.engines.worker`, never through
`multiprocessing` (which would import the caller's script anew), imports one engine class and obeys:

    parent → child   (engine "package.module:Class", settings)   once, then   (method, arguments, seconds)
    child  → parent  ("value", …) or ("error", class name, arguments, attributes)

Messages are pickles with their length in front, on pipes that only these two processes hold. Whatever the engine
prints goes to standard error, of which the parent keeps the last lines for its error messages. The child ends when
its standard input does, and a kernel timer, where there is one, ends it should even that go unnoticed.

Threads of the parent write to the pipes and read from them, since only they can wait for a pipe on every system.
"""

from __future__ import annotations

import importlib
import io
import mmap
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from byokg import errors
from byokg.errors import ByokgError, CallStopped, QueryInvalid, QueryTimeout, QueryTooLarge, StoreUnavailable
from byokg.graph.cancellation import check

GRACE_S = 0.5
"""How long after its timeout a call may still answer, so that an engine can stop by itself, before it is killed."""

_HEADER = struct.Struct(">Q")
_TICK_S = 0.02
_CLOSE = 7 / 8
"""Share of the memory allowed at which a child is killed: it may grow for another tick before that happens."""
_LAST_WORDS = 40


class Engine(Protocol):
    """The object in the child process: made with the settings, opened once, called one at a time.

    Any public method may be called through `Worker.call`. A method that takes a time limit of its own gets it as
    an ordinary argument. Errors of `byokg.errors` reach the parent as they are.
    """

    def open(self) -> None:
        """Get ready, or raise."""

    def close(self) -> None:
        """Let go of files."""


class Worker:
    """Calls an engine in a child process; several threads may, and then wait for their turn.

    The child starts at the first call, and anew at the first call after it was killed. A call's time limit counts
    from the moment the child is ready for it, so waiting for other threads or for a start does not use it up.
    """

    def __init__(
        self,
        engine: str,
        settings: Mapping[str, Any],
        name: str,
        memory_mb: int,
        start_timeout_s: float = 60.0,
        reply_mb: int = 256,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Configure a worker; nothing is started yet.

        Args:
            engine: `package.module:Class`, imported by the child.
            settings: keyword arguments of the class; must be picklable.
            name: the store's name in messages.
            memory_mb: private memory (not counting mapped files) of the child. While a call runs it is
                checked 50 times a second, on systems with `/proc`, and the child killed shortly before.
            start_timeout_s: longest time to open the engine.
            reply_mb: size at which a reply is refused.
            env: environment variables for the child, in addition to the caller's own.
        """
        self._engine = engine
        self._settings = dict(settings)
        self._name = name
        self._memory = memory_mb << 20
        self._start_timeout_s = start_timeout_s
        self._reply = reply_mb << 20
        self._env = dict(env or {})
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._closed = False
        self._peak = 0

    @property
    def pid(self) -> int | None:
        """Return the process id of the child, or None while there is none."""
        child = self._child
        return None if child is None else child.pid

    @property
    def peak_bytes(self) -> int:
        """Return the highest resident memory that any child so far has had; 0 without `/proc`."""
        child = self._child
        return max(self._peak, 0 if child is None else child.peak_bytes())

    def call(self, method: str, *arguments: Any, timeout_s: float | None = None) -> Any:
        """Call `method` of the engine and return its result.

        Args:
            method: a public method of the engine.
            arguments: its arguments; must be picklable.
            timeout_s: seconds after which the call ends as `QueryTimeout`, `GRACE_S` later at most; None waits
                without limit.

        Raises:
            QueryTimeout: the child was still busy and has been killed; the next call starts another.
            QueryTooLarge: the child grew beyond its memory, or the reply is too big; it has been killed likewise.
            StoreUnavailable: the child could not start, or died.
            CallStopped: the call was cancelled (see `graph.cancellation`); the child has been killed; another starts.
            ByokgError: errors of the engine.
        """
        with self._turn():
            if self._closed:
                raise StoreUnavailable(self._name, "it has been closed")
            child = self._started()
            if self._closed:  # meanwhile, perhaps killing the child that this one replaces
                self._drop()
                raise StoreUnavailable(self._name, "it has been closed")
            try:
                return self._ask(child, (method, arguments, timeout_s), timeout_s)
            except CallStopped:
                self._drop()
                threading.Thread(target=self._start_again, name="engine-restart", daemon=True).start()
                raise
            except ByokgError:
                raise
            except BaseException:  # Ctrl-C while waiting: the reply that is still to come belongs to nobody
                self._drop()
                raise

    def update(self, settings: Mapping[str, Any]) -> None:
        """Let children that are started from now on have these settings; one that runs is left as it is."""
        with self._lock:
            self._settings = dict(settings)

    def close(self) -> None:
        """End the child, also when another thread waits for it. The worker cannot be used again."""
        self._closed = True
        child = self._child
        if child is not None and self._lock.locked():
            child.kill()
        with self._lock:
            if self._child is not None:
                self._child.finish()
                self._drop()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the lock, unless nobody waits for that any more."""
        while not self._lock.acquire(timeout=_TICK_S):
            check()
        try:
            yield
        finally:
            self._lock.release()

    def _start_again(self) -> None:
        """Start a child for the next call; a failure is reported by that call."""
        with self._lock, suppress(ByokgError):
            if not self._closed:
                self._started()

    # Inside; the lock is held

    def _started(self) -> _Child:
        child = self._child
        if child is not None and child.owner != os.getpid():
            self._child = child = None  # we are a fork of the process that started it, and still uses it
        if child is not None and not child.alive():
            self._drop()  # it died between two calls
            child = None
        if child is None:
            self._child = child = _Child(self._env, self._name, self._reply)
            try:
                self._ask(child, (self._engine, self._settings), self._start_timeout_s, starting=True)
            except BaseException:
                self._drop()
                raise
        return child

    def _ask(self, child: _Child, message: tuple[Any, ...], timeout_s: float | None, starting: bool = False) -> Any:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s + (0 if starting else GRACE_S)
        try:
            child.send(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))
            reply = pickle.loads(child.receive(deadline, self._memory))
        except TimeoutError as error:
            self._drop()
            if starting:
                reason = f"its engine was not ready after {timeout_s:g} s; last it said: {child.last_words()}"
                raise StoreUnavailable(self._name, reason) from error
            raise QueryTimeout(float(timeout_s or 0)) from error
        except _Overgrown as error:
            self._drop()
            raise QueryTooLarge(str(error)) from error
        except EOFError as error:
            self._drop()
            words = child.last_words()
            if "OutOfMemoryError" in words or "memory allocation of" in words:
                raise QueryTooLarge(f"{self._name} ran out of memory") from error
            state = "was closed" if self._closed else f"ended ({child.exit()})"
            raise StoreUnavailable(self._name, f"its engine process {state}; last it said: {words}") from error
        if reply[0] == "error":
            raise _rebuilt(*reply[1:])
        return reply[1]

    def _drop(self) -> None:
        """Kill the child, if any."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            self._peak = max(self._peak, child.peak_bytes())


class _Overgrown(Exception):
    """The child uses too much memory, or its reply is too large."""


class _Child:
    """The process, and the threads that write to it, read its replies, and listen to its standard error and reap it."""

    def __init__(self, env: Mapping[str, str], name: str, most: int) -> None:
        """Start the process; a reply of more than `most` bytes is not read."""
        if not sys.executable:
            raise StoreUnavailable(name, "sys.executable is empty, so no Python is known to run its engine in")
        self.owner = os.getpid()
        # The child finds what the parent finds, also in a notebook that has extended its path; -P keeps a file
        # named like a library module in the current folder from being imported.
        package = str(Path(errors.__file__).resolve().parents[1])
        path = [package, *(os.path.abspath(entry) for entry in sys.path if entry)]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "byokg.graph.engines.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(path)), **env},
            start_new_session=True,  # Ctrl-C is for the parent, which then decides
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # the same on Windows
        )
        self._messages: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[bytes | int | None] = queue.SimpleQueue()
        self._peak, self._most = 0, most
        self._words: deque[str] = deque(maxlen=_LAST_WORDS)
        self._start("stdin", _write, self._process.stdin, self._messages)
        self._start("stdout", _read_replies, self._process.stdout, self._replies, most)
        self._listener = self._start("stderr", _listen, self._process, self._process.stderr, self._words)
        self._end = weakref.finalize(self, _end, self._process, self._messages, self.owner)

    def _start(self, name: str, target: Callable[..., None], *arguments: Any) -> threading.Thread:
        title = f"engine-{name}-{self._process.pid}"
        thread = threading.Thread(target=target, args=arguments, name=title, daemon=True)
        thread.start()
        return thread

    @property
    def pid(self) -> int:
        return self._process.pid

    def alive(self) -> bool:
        return self._process.poll() is None

    def peak_bytes(self) -> int:
        """Return the highest resident memory so far."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text("ascii", "replace")
            peaks = [int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM")]
        except OSError:
            peaks = []
        self._peak = max([self._peak, *peaks])
        return self._peak

    def exit(self) -> str:
        """Return how the process ended."""
        try:
            code = self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            return "still ending"
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def last_words(self) -> str:
        """Return the end of the engine's output, once it is complete."""
        self._listener.join(GRACE_S)
        return " ".join(" ".join(self._words).split())[-600:] or "nothing"

    def send(self, data: bytes) -> None:
        """Have one message written; if the child is gone, there will be no reply."""
        self._messages.put(data)

    def receive(self, deadline: float | None, memory: int) -> bytes:
        """Wait for one message.

        Raises:
            TimeoutError: the deadline has passed.
            _Overgrown: the child uses too much memory, or the message is too big.
            EOFError: the child is gone.
            CallStopped: nobody waits any more.
        """
        while True:
            left = _TICK_S if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            try:
                reply = self._replies.get(timeout=min(left, _TICK_S))
            except queue.Empty:
                self._check(memory)
                continue
            if reply is None:
                raise EOFError
            if isinstance(reply, int):
                raise _Overgrown(f"the answer has {reply >> 20:,} MB, {self._most >> 20:,} MB are allowed")
            return reply

    def _check(self, memory: int) -> None:
        """Raise `CallStopped` when nobody waits any more, and `_Overgrown` when memory is used up."""
        check()
        resident, private = _memory_bytes(self.pid)
        self._peak = max(self._peak, resident)
        if private > memory * _CLOSE:
            allowed = f"{memory >> 20:,} MB are allowed"
            raise _Overgrown(f"its engine process had {private >> 20:,} MB and kept growing, {allowed}")

    def kill(self) -> None:
        """End the process at once."""
        self.peak_bytes()
        self._end()

    def finish(self) -> None:
        """Let the process end by itself, for a moment."""
        if self.owner == os.getpid():
            self._messages.put(None)
            try:
                self._process.wait(2.0)
            except subprocess.TimeoutExpired:
                return


def _end(process: subprocess.Popen[bytes], messages: queue.SimpleQueue[bytes | None], owner: int) -> None:
    """Kill the process, which ends the threads; runs also when the worker is collected, and at interpreter exit."""
    if owner != os.getpid():
        return
    process.kill()
    messages.put(None)
    try:
        process.wait(0.25)  # if it takes longer to fall apart, the listening thread reaps it
    except subprocess.TimeoutExpired:
        return


def _write(pipe: Any, messages: queue.SimpleQueue[bytes | None]) -> None:
    """Write messages to the child until it ends or None comes, then close the pipe."""
    with pipe, suppress(OSError):
        while (data := messages.get()) is not None:
            for part in (_HEADER.pack(len(data)), memoryview(data)):
                rest = memoryview(part)
                while rest:
                    rest = rest[pipe.write(rest) :]


def _read_replies(pipe: Any, replies: queue.SimpleQueue[bytes | int | None], most: int) -> None:
    """Read replies until the child ends, then put None; of a reply that is too long, put only the size."""
    with pipe, suppress(OSError):
        while len(header := _exactly(pipe, _HEADER.size)) == _HEADER.size:
            (size,) = _HEADER.unpack(header)
            if size > most:
                replies.put(size)
                return
            if len(reply := _exactly(pipe, size)) < size:
                break
            replies.put(reply)
    replies.put(None)


def _exactly(pipe: Any, size: int) -> bytes:
    """Read so many bytes; fewer at the end of the pipe."""
    data = bytearray()
    while len(data) < size and (chunk := pipe.read(min(size - len(data), 1 << 20))):
        data += chunk
    return bytes(data)


def _listen(process: subprocess.Popen[bytes], pipe: Any, words: deque[str]) -> None:
    """Keep the last lines of standard error; when it ends, see the process off."""
    with io.TextIOWrapper(io.BufferedReader(pipe), "utf-8", "replace") as lines:
        try:
            for line in lines:
                words.append(line[:400])
        except (OSError, ValueError):
            pass
    process.wait()


def _memory_bytes(pid: int) -> tuple[int, int]:
    """Return resident memory, and the part of it that is no mapped file; zeros without `/proc`."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_bytes().split()
        resident, shared = int(fields[1]), int(fields[2])
    except (OSError, IndexError):
        return 0, 0
    return resident * mmap.PAGESIZE, (resident - shared) * mmap.PAGESIZE


def _rebuilt(name: str, arguments: tuple[Any, ...], attributes: dict[str, Any]) -> ByokgError:
    """Make the error that the engine raised, without its constructor, which may take something else."""
    kind: type[ByokgError] = getattr(errors, name)
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(attributes)
    return error


# In the child


def _serve() -> None:
    """Obey the parent until its end of the pipe closes."""
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)  # whatever the engine prints must not end up between two messages
    inbox: queue.SimpleQueue[tuple[Any, ...] | None] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(requests, inbox), daemon=True).start()
    engine: Any = None
    sound = True
    while sound and (message := inbox.get()) is not None:
        reply: tuple[Any, ...]
        try:
            if engine is None:
                place, settings = message
                module, _, name = place.partition(":")
                fresh: Engine = getattr(importlib.import_module(module), name)(**settings)
                fresh.open()
                engine, value = fresh, None
            else:
                method, arguments, timeout_s = message
                # Should the parent vanish while the engine keeps even our reading thread from running, the
                # kernel ends us: the default action of this signal.
                _end_after(0 if timeout_s is None else timeout_s + 10)
                value = getattr(engine, method)(*arguments)
            reply = ("value", value)
        except ByokgError as error:
            reply = ("error", type(error).__name__, error.args, error.__dict__)
        except MemoryError:
            sound = False  # nothing in this process can be relied on any more
            reply = ("error", "QueryTooLarge", *_parts(QueryTooLarge("the engine's process ran out of memory")))
        except UnicodeError as error:
            reply = ("error", "QueryInvalid", *_parts(QueryInvalid(f"half of a character cannot be sent: {error}")))
        except Exception as error:
            failed = StoreUnavailable("the engine", f"{type(error).__name__}: {error}")
            reply = ("error", "StoreUnavailable", *_parts(failed))
        _end_after(0)  # the engine has answered in time
        data = pickle.dumps(reply, pickle.HIGHEST_PROTOCOL)
        try:
            replies.write(_HEADER.pack(len(data)) + data)
            replies.flush()
        except OSError:  # the parent has ended; Windows raises no BrokenPipeError
            break
    if engine is not None:
        engine.close()
    os._exit(0)  # an engine's own threads and exit hooks must not keep us


def _end_after(seconds: float) -> None:
    """Have the system end this process, which Windows cannot; 0 calls that off."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _parts(error: ByokgError) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return error.args, error.__dict__


def _receive(requests: io.BufferedReader, inbox: queue.SimpleQueue[tuple[Any, ...] | None]) -> None:
    """Pass on each message; when the parent has gone, let the engine close, but not finish its work."""
    while len(header := requests.read(_HEADER.size)) == _HEADER.size:
        inbox.put(pickle.loads(requests.read(_HEADER.unpack(header)[0])))
    inbox.put(None)
    time.sleep(2.0)
    os._exit(1)


if __name__ == "__main__":
    _serve()
