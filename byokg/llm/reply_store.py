"""Recorded replies: an SQLite file of every paid reply, for replay.

Replies are found by `Call.key`. When anything that decides a reply changes (the model, a parameter, one character of a
prompt), it is another call, whose reply is then missing rather than wrong.

| mode     | a call with a recorded reply        | a call without            |
|----------|-------------------------------------|---------------------------|
| `auto`   | gets it                             | is sent, and recorded     |
| `record` | is sent anew, once in this process  | is sent, and recorded     |
| `replay` | gets it                             | fails: `ReplyMissing`     |
| `off`    | is sent; nothing is read or written | likewise                  |

Of two replies to the same call the first stays, so that all processes read the same one. Only `record` replaces
replies, and only those from before it began.

Many threads and processes may use one file at the same time. A reply is on disk when `put` returns: it survives a kill
of the process and a loss of power. The file must lie on a local disk, since SQLite's write-ahead log needs shared
memory. Long texts, which prompts share, are kept once and compressed.

No secret gets into the file: a call holds messages and the parameters that decide a reply, never keys or addresses.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Literal, cast

from byokg.errors import ReplyStoreError
from byokg.files import Closing, open_database, transaction
from byokg.llm.messages import (
    Call,
    Reply,
    Stop,
    Usage,
    call_record,
    read_call,
    read_tokens,
    read_tool_call,
    token_records,
    tool_record,
)

Mode = Literal["auto", "record", "replay", "off"]

FORMAT = 0x62796F67  # "byog", SQLite's application id
VERSION = 2  # 1 had no tokens

_SHARED_CHARACTERS = 200
"""Texts at least this long are kept apart, once each."""
_NEAREST_LOOKED_AT = 200

_TABLES = f"""
CREATE TABLE replies (
    key BLOB PRIMARY KEY,
    provider TEXT NOT NULL, model TEXT NOT NULL, stage TEXT NOT NULL, recorded INTEGER NOT NULL,
    call BLOB NOT NULL, ending BLOB NOT NULL,
    text TEXT NOT NULL, tool_calls TEXT NOT NULL, stop TEXT NOT NULL, answered_by TEXT NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    cache_read_tokens INTEGER NOT NULL, cache_write_tokens INTEGER NOT NULL,
    seconds REAL NOT NULL, retries INTEGER NOT NULL, tokens TEXT NOT NULL
);
CREATE INDEX replies_by_ending ON replies (ending);
CREATE TABLE texts (digest BLOB PRIMARY KEY, content BLOB NOT NULL);
CREATE TABLE pending (key BLOB PRIMARY KEY, stage TEXT NOT NULL, call BLOB NOT NULL);
PRAGMA application_id = {FORMAT};
PRAGMA user_version = {VERSION}
"""
_REPLY = (
    "text, tool_calls, stop, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, answered_by, seconds, "
    "retries, tokens"
)


@dataclass(frozen=True)
class RecordedReply:
    """A call with its reply, stage, and time of recording (whole seconds since 1970)."""

    call: Call
    reply: Reply
    stage: str = ""
    recorded: int = 0


@dataclass(frozen=True)
class Count:
    """How much is recorded of one provider, model and stage."""

    provider: str
    model: str
    stage: str
    replies: int
    usage: Usage
    characters: int
    """Of the replies' texts."""


class RecordedReplies(Closing):
    """Replies in a file; see the module's text. Fulfils `messages.ReplyStore`.

    Args:
        path: the file; made, with its folder, unless the mode is `replay`.
        mode: see above.

    Raises:
        ReplyStoreError: the file is missing (`replay`), is none of ours, or the system does not let us use it.
    """

    def __init__(self, path: str | Path, mode: Mode = "auto") -> None:
        self.path = Path(path).expanduser()
        self.mode = mode
        self._own: set[bytes] = set()
        """Keys recorded by this process; only `record` looks at them."""
        self._read_lock, self._write_lock = Lock(), Lock()
        self._files: tuple[sqlite3.Connection, sqlite3.Connection | None] | None = None
        """For reading, and for writing unless replies are only replayed."""
        if mode != "off":
            with self._translated():
                self._open()

    @property
    def replay_only(self) -> bool:
        """True if a call without a recorded reply must fail."""
        return self.mode == "replay"

    def get(self, call: Call) -> Reply | None:
        """Return the reply recorded for a call; None if there is none, or if it is to be requested anew.

        Raises:
            ReplyStoreError: the file cannot be read.
        """
        if self.mode == "off":
            return None
        key = bytes.fromhex(call.key)
        if self.mode == "record" and key not in self._own:
            return None
        rows = self._rows(f"SELECT {_REPLY} FROM replies WHERE key = ?", key)
        return _reply(rows[0]) if rows else None

    def put(self, call: Call, reply: Reply, stage: str = "") -> None:
        """Record a reply; it is on disk when this returns.

        Args:
            call: the call.
            reply: its reply.
            stage: its purpose, for `counts` only.

        Raises:
            ReplyStoreError: the file cannot be written, or is open for replay only.
        """
        if self.mode == "off":
            return
        key = bytes.fromhex(call.key)
        again = self.mode == "record" and key not in self._own
        with self._writing() as file:
            _insert(file, RecordedReply(call, reply, stage, int(time.time())), again)
        self._own.add(key)

    def expect(self, call: Call, stage: str = "") -> None:
        """Remember a call, so that its reply can be imported later by the key alone."""
        with self._writing() as file:
            file.execute(
                "INSERT INTO pending SELECT ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM replies WHERE key = ?) "
                "ON CONFLICT DO NOTHING",
                (key := bytes.fromhex(call.key), _storable(stage), _pack(file, call), key),
            )

    def pending(self) -> list[tuple[Call, str]]:
        """Return the calls that wait for a reply and their stages, ordered by key."""
        rows = self._rows("SELECT call, stage FROM pending ORDER BY key")
        with self._reading() as file:
            return [(_unpack(file, packed), _restored(stage)) for packed, stage in rows]

    def __len__(self) -> int:
        return cast(int, self._rows("SELECT count(*) FROM replies")[0][0])

    def recorded(self, keys: Collection[str] | None = None) -> Iterator[RecordedReply]:
        """Yield all records, or those with one of these keys, ordered by key."""
        wanted = None if keys is None else {bytes.fromhex(key) for key in keys}
        for (key,) in self._rows("SELECT key FROM replies ORDER BY key"):
            if wanted is None or key in wanted:
                with self._reading() as file:
                    each = _record(file, key)
                if each is not None:  # it may have been pruned meanwhile
                    yield each

    def counts(self) -> list[Count]:
        """Count the records by provider, model and stage, in this order."""
        rows = self._rows(
            "SELECT provider, model, stage, count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), "
            "sum(cache_write_tokens), sum(length(text)) FROM replies "
            "GROUP BY provider, model, stage ORDER BY provider, model, stage"
        )
        return [
            Count(_restored(provider), _restored(model), _restored(stage), replies, Usage(*usage), characters)
            for provider, model, stage, replies, *usage, characters in rows
        ]

    def nearest(self, call: Call) -> str:
        """Describe in a few words how the most similar recorded call differs; empty if nothing is recorded.

        Calls that end with the same message (the question) are compared first, then any.
        """
        keys = self._rows("SELECT key FROM replies WHERE ending = ? LIMIT ?", _ending(call), _NEAREST_LOOKED_AT)
        if not keys:
            keys = self._rows("SELECT key FROM replies ORDER BY rowid DESC LIMIT ?", _NEAREST_LOOKED_AT)
        with self._reading() as file:
            others = [_record(file, key) for (key,) in keys]
        found = [differences(call, each.call) for each in others if each is not None]
        fewest = min(found, key=len, default=[])
        return "; ".join(fewest)

    @contextmanager
    def importing(self) -> Iterator[Import]:
        """Open an import of replies from elsewhere; an error inside undoes it."""
        with self._writing() as file:
            yield Import(file, replace=self.mode == "record")

    def prune(
        self,
        before: float | None = None,
        models: Collection[str] = (),
        keep: Collection[str] | None = None,
        dry_run: bool = False,
    ) -> int:
        """Remove the replies that meet every condition given, and the texts that only they used.

        Args:
            before: recorded before this time (seconds since 1970).
            models: of one of these models.
            keep: with none of these keys.
            dry_run: only count.

        Returns:
            How many replies were removed, or would be.

        Raises:
            ValueError: there is no condition, so everything would go.
        """
        if before is None and not models and keep is None:
            raise ValueError("prune needs a condition")
        kept = {bytes.fromhex(key) for key in keep or ()}
        with self._writing() as file:
            rows = file.execute("SELECT key, model, recorded FROM replies").fetchall()
            gone = [
                (key,)
                for key, model, recorded in rows
                if (before is None or recorded < before)
                and (not models or _restored(model) in models)
                and (keep is None or key not in kept)
            ]
            if dry_run or not gone:
                return len(gone)
            file.executemany("DELETE FROM replies WHERE key = ?", gone)
            used: set[bytes] = set()
            for table in ("replies", "pending"):
                for (packed,) in file.execute(f"SELECT call FROM {table}"):
                    used.update(_digests(packed))
            unused = [row for row in file.execute("SELECT digest FROM texts") if row[0] not in used]
            file.executemany("DELETE FROM texts WHERE digest = ?", unused)
        with self._write_lock, self._translated():
            self._writer().execute("VACUUM")
        return len(gone)

    def close(self) -> None:
        """Close the file; records are on disk in any case."""
        with self._read_lock, self._write_lock:
            if self._files is not None and self._process == os.getpid():
                for file in filter(None, self._files):
                    file.close()
            self._files = None

    # Connections

    def _open(self) -> None:
        """Open the file, and make it if wanted and needed."""
        self._process = os.getpid()
        if self.mode == "replay":
            if not self.path.is_file():
                raise ReplyStoreError(
                    self.path, None, "does not exist, so nothing can be replayed; import replies, or use mode auto"
                )
            self._files = (open_database(self.path, read_only=True), None)
            if _check(self._files[0], self.path) == 1:
                self._files[0].execute(_AS_VERSION_2)
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        writer = open_database(self.path)
        with transaction(writer):  # two processes may make the same file
            if writer.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                for statement in _TABLES.strip().split(";\n"):
                    writer.execute(statement)
            if _check(writer, self.path) == 1:
                writer.execute("ALTER TABLE replies ADD COLUMN tokens TEXT NOT NULL DEFAULT ''")
                writer.execute(f"PRAGMA user_version = {VERSION}")
        self._files = (open_database(self.path), writer)

    def _connections(self) -> tuple[sqlite3.Connection, sqlite3.Connection | None]:
        if self._files is None:
            raise ReplyStoreError(self.path, None, "is closed, or off; open it again")
        if self._process != os.getpid():  # a connection must not be used on the other side of a fork
            self._open()
        return self._files

    def _writer(self) -> sqlite3.Connection:
        writer = self._connections()[1]
        if writer is None:
            raise ReplyStoreError(self.path, None, "is open for replaying only; use mode auto to add to it")
        return writer

    def _rows(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        with self._reading() as file:
            return file.execute(statement, parameters).fetchall()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._read_lock, self._translated():
            yield self._connections()[0]

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Give the file for one transaction, which an error undoes."""
        with self._write_lock, self._translated():
            file = self._writer()
            with transaction(file):
                yield file

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, zlib.error) as error:
            raise ReplyStoreError(
                self.path, None, f"recorded replies cannot be used ({error}); check the file and the disk"
            ) from error


class Import:
    """Replies coming in, within one transaction.

    `new` counts those that were added, `known` those that were there already, and `conflicts` lists the keys of
    those that were there with another reply, which stays unless the store's mode is `record`.
    """

    def __init__(self, file: sqlite3.Connection, replace: bool) -> None:
        self._file = file
        self._replace = replace
        self.new = 0
        self.known = 0
        self.conflicts: list[str] = []

    def expected(self, key: str) -> tuple[Call, str] | None:
        """Return the call with this key and its stage if it waits for a reply or has one; None otherwise."""
        for table in ("pending", "replies"):
            row = self._file.execute(f"SELECT call, stage FROM {table} WHERE key = ?", (bytes.fromhex(key),)).fetchone()
            if row is not None:
                return _unpack(self._file, row[0]), _restored(row[1])
        return None

    def add(self, each: RecordedReply) -> None:
        """Take one reply."""
        key = bytes.fromhex(each.call.key)
        row = self._file.execute(f"SELECT {_REPLY} FROM replies WHERE key = ?", (key,)).fetchone()
        if row is None:
            self.new += 1
        elif _identify_reply(_reply(row)) == _identify_reply(each.reply):
            self.known += 1
        else:
            self.conflicts.append(each.call.key)
        _insert(self._file, each, self._replace)


def differences(call: Call, other: Call) -> list[str]:
    """List the parts in which a call differs from a recorded one."""
    found = []
    for part, ours, theirs in (
        ("provider", call.provider, other.provider),
        ("model", call.model, other.model),
        ("sample", call.sample, other.sample),
    ):
        if ours != theirs:
            found.append(f"{part} is {ours}, recorded was {theirs}")
    for name in sorted({*call.parameters, *other.parameters}):
        ours, theirs = (json.dumps(each.parameters.get(name), sort_keys=True, default=repr) for each in (call, other))
        if ours != theirs:
            found.append(f"{name} is {ours[:40]}, recorded was {theirs[:40]}")
    if len(call.messages) != len(other.messages):
        found.append(f"{len(call.messages)} messages, recorded were {len(other.messages)}")
    for number, (mine, recorded) in enumerate(zip(call.messages, other.messages, strict=False), start=1):
        if mine.role != recorded.role:
            found.append(f"message {number} is of role {mine.role}, recorded was {recorded.role}")
        elif mine != recorded:
            place = next(
                (i for i, pair in enumerate(zip(mine.text, recorded.text, strict=False)) if pair[0] != pair[1]), None
            )
            place = min(len(mine.text), len(recorded.text)) if place is None else place
            shown = [repr(text[max(0, place - 10) : place + 20]) for text in (mine.text, recorded.text)]
            what = "prompt text" if mine.role == "system" else f"text of the {mine.role} message"
            found.append(f"{what} changed at character {place + 1}: {shown[0]}, recorded was {shown[1]}")
    return found


# Rows


_AS_VERSION_2 = "CREATE TEMP VIEW replies AS SELECT rowid, *, '' AS tokens FROM main.replies"
"""Has a file of version 1 that is only read look like one of version 2."""


def _check(file: sqlite3.Connection, path: Path) -> int:
    """Return the version of a file; raises `ReplyStoreError` for one that cannot be used."""
    kind = file.execute("PRAGMA application_id").fetchone()[0]
    version = file.execute("PRAGMA user_version").fetchone()[0]
    if kind != FORMAT:
        raise ReplyStoreError(path, None, "is a database of something else; name another file")
    if version > VERSION:
        raise ReplyStoreError(path, None, f"has version {version}, this byokg reads up to {VERSION}; upgrade byokg")
    return int(version)


def _insert(file: sqlite3.Connection, each: RecordedReply, replace: bool) -> None:
    call, reply, usage = each.call, each.reply, each.reply.usage
    key = bytes.fromhex(call.key)
    row = (
        key, *map(_storable, (call.provider, call.model, each.stage)), each.recorded, _pack(file, call), _ending(call),
        _storable(reply.text), _tools(reply), reply.stop, _storable(reply.model),
        usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens,
        reply.seconds, reply.retries, json.dumps(token_records(reply.tokens)) if reply.tokens else "",
    )  # fmt: skip
    verb = "INSERT OR REPLACE" if replace else "INSERT OR IGNORE"
    file.execute(f"{verb} INTO replies VALUES ({', '.join('?' * len(row))})", row)
    file.execute("DELETE FROM pending WHERE key = ?", (key,))


def _reply(row: Sequence[Any]) -> Reply:
    """Read the columns `_REPLY`."""
    tools = () if row[1] == "[]" else tuple(read_tool_call(tool) for tool in json.loads(row[1]))
    tokens = read_tokens(json.loads(row[10])) if row[10] else ()
    counts = Usage(*row[3:7])
    return Reply(_restored(row[0]), tools, cast(Stop, row[2]), counts, _restored(row[7]), row[8], row[9], tokens)


def _record(file: sqlite3.Connection, key: bytes) -> RecordedReply | None:
    row = file.execute(f"SELECT call, stage, recorded, {_REPLY} FROM replies WHERE key = ?", (key,)).fetchone()
    return None if row is None else RecordedReply(_unpack(file, row[0]), _reply(row[3:]), _restored(row[1]), row[2])


def _identify_reply(reply: Reply) -> tuple[object, ...]:
    """Return the parts of a reply that make it another one: its time and its tokens do not."""
    return reply.text, _tools(reply, sort_keys=True), reply.stop


def _tools(reply: Reply, sort_keys: bool = False) -> str:
    return json.dumps([tool_record(tool) for tool in reply.tool_calls], sort_keys=sort_keys, default=dict)


def _ending(call: Call) -> bytes:
    """Return a digest of the last message, by which similar calls are found."""
    text = call.messages[-1].text if call.messages else ""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8]


def _pack(file: sqlite3.Connection, call: Call) -> bytes:
    """Return a call as it is stored: long texts are stored apart, and named by their digest."""
    record = call_record(call)
    for message in record["messages"]:
        text = message["text"]
        if len(text) >= _SHARED_CHARACTERS:
            content = text.encode("utf-8", "surrogatepass")
            digest = hashlib.sha256(content).digest()
            if file.execute("SELECT 1 FROM texts WHERE digest = ?", (digest,)).fetchone() is None:
                file.execute("INSERT INTO texts VALUES (?, ?)", (digest, zlib.compress(content, 6)))
            message["text"] = {"digest": digest.hex()}
    return zlib.compress(json.dumps(record, default=dict).encode("ascii"), 6)


def _unpack(file: sqlite3.Connection, packed: bytes) -> Call:
    record = json.loads(zlib.decompress(packed))
    for message in record["messages"]:
        if isinstance(message["text"], Mapping):
            digest = bytes.fromhex(message["text"]["digest"])
            (content,) = file.execute("SELECT content FROM texts WHERE digest = ?", (digest,)).fetchone()
            message["text"] = zlib.decompress(content).decode("utf-8", "surrogatepass")
    return read_call(record)


def _digests(packed: bytes) -> Iterator[bytes]:
    for message in json.loads(zlib.decompress(packed))["messages"]:
        if isinstance(message["text"], Mapping):
            yield bytes.fromhex(message["text"]["digest"])


def _storable(text: str) -> str | bytes:
    """Return a text as SQLite takes it; one with a lone surrogate or a zero goes as bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text.encode() if "\0" in text else text


def _restored(stored: str | bytes) -> str:
    return stored if isinstance(stored, str) else stored.decode("utf-8", "surrogatepass")
