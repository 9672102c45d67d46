"""Every error byokg raises. The tree comes first, so a caller sees what can be caught.

ByokgError
├── ConfigError            a setting is wrong or missing
├── MissingExtra           an optional package is not installed
├── EmbedderFailed         a remote embedding model raised or replied nonsense
├── IndexUnusable          a saved index of names is missing, damaged, or made for something else
├── CacheUnusable          a folder of kept vectors cannot be read or written
├── GraphError
│   ├── ImportFailed       an input file cannot become a graph (file, line, reason)
│   ├── GraphNotFound      no graph at that place
│   ├── GraphExists        a graph would be written where something else already is
│   ├── GraphCorrupt       the folder is there but not readable as a graph
│   ├── EntityNotFound     an id is not in the store
│   ├── RelationNotFound   a relation label is not in the store
│   ├── StoresMixed        edges of two stores would be joined, whose numbers have nothing in common
│   ├── OpenFileLimit      a graph has more relations than files may be open
│   ├── StoreUnavailable   a server or engine cannot be reached (retryable)
│   └── QueryFailed        a query gave no answer
│       ├── QueryRefused   the guard does not let it run (writes, calls out, several statements)
│       ├── QueryInvalid   the engine does not understand it
│       ├── QueryTimeout   it took too long
│       └── QueryTooLarge  it needed too much memory
├── DatasetError           a question file is missing or malformed (file, line, reason)
└── RunError               a run folder cannot be used (another configuration, torn records)
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class ByokgError(Exception):
    """Base of all. `retryable` says whether the same call may succeed later."""

    retryable: bool = False


class ConfigError(ByokgError):
    """A setting is wrong; the message names it and the nearest valid choice."""


class MissingExtra(ByokgError):
    """An optional package is needed for what was asked."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}, which is not installed; run: pip install 'byokg[{extra}]'")
        self.package = package
        self.extra = extra


class EmbedderFailed(ByokgError):
    """A remote embedding model raised, or its reply does not fit the texts it was given."""

    def __init__(self, embedder: str, reason: str, retryable: bool = False) -> None:
        super().__init__(f"embedder {embedder!r} failed: {reason}; check its address and key, or use embedding=static")
        self.embedder = embedder
        self.retryable = retryable


class IndexUnusable(ByokgError):
    """A saved index of names is missing, damaged, or was made with another embedder or for another graph."""

    def __init__(self, place: str | Path, reason: str) -> None:
        super().__init__(
            f"the index of names in {str(place)!r} cannot be used: {reason}; "
            "write it anew with: byokg graph embed DIR --overwrite"
        )
        self.place = str(place)


class CacheUnusable(ByokgError):
    """A folder where vectors are kept cannot be read or written."""

    def __init__(self, place: str | Path, reason: str) -> None:
        super().__init__(
            f"the cache of vectors in {str(place)!r} cannot be used: {reason}; name another folder, or remove this one"
        )
        self.place = str(place)


class GraphError(ByokgError):
    """Something about a graph."""


class ImportFailed(GraphError):
    """An input file cannot become a graph. Nothing was written."""

    def __init__(self, file: str | Path, line: int | None, reason: str) -> None:
        place = f"{file}:{line}" if line is not None else f"{file}"
        super().__init__(f"{place}: {reason}")
        self.file = str(file)
        self.line = line
        self.reason = reason


class GraphNotFound(GraphError):
    """There is no graph at the place given."""

    def __init__(self, place: str | Path) -> None:
        super().__init__(f"no graph in {str(place)!r}; build one with: byokg graph build SOURCE --out {place}")
        self.place = str(place)


class GraphExists(GraphError):
    """A graph would be written over something that is already there. Nothing was changed."""

    def __init__(self, place: str | Path, reason: str) -> None:
        super().__init__(f"cannot write to {str(place)!r}: {reason}")
        self.place = str(place)


class GraphCorrupt(GraphError):
    """The folder looks like a graph but cannot be read as one."""

    def __init__(self, place: str | Path, reason: str) -> None:
        super().__init__(f"graph in {str(place)!r} cannot be read: {reason}; rebuild it with: byokg graph build")
        self.place = str(place)


class EntityNotFound(GraphError):
    """The id is not in the store."""

    def __init__(self, entity: str, store: str) -> None:
        super().__init__(
            f"no entity {entity!r} in {store}; stores take ids, so pass names through an EntityLinker first"
        )
        self.entity = entity


class RelationNotFound(GraphError):
    """The relation label is not in the store; the message proposes the nearest ones."""

    def __init__(self, relation: str, store: str, known: Iterable[str]) -> None:
        near = difflib.get_close_matches(relation, list(known), n=3)
        hint = f"; nearest: {', '.join(map(repr, near))}" if near else "; list them with: byokg graph info"
        super().__init__(f"no relation {relation!r} in {store}{hint}")
        self.relation = relation


class StoresMixed(GraphError):
    """Edges of two stores would be joined. Their numbers have nothing in common."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(
            f"edges of {one} and of {other} cannot be joined: each store numbers its nodes by itself; "
            "spell them out with traversal.triples first"
        )


class OpenFileLimit(GraphError):
    """An engine keeps one file open for each relation, and the system allows fewer."""

    def __init__(self, relations: int, needed: int, allowed: int) -> None:
        super().__init__(
            f"a graph with {relations:,} relations needs {needed:,} open files, and {allowed:,} are allowed; "
            f"raise the hard limit (ulimit -Hn {needed}, or nofile in limits.conf), or leave rare relations out"
        )
        self.needed = needed
        self.allowed = allowed


class StoreUnavailable(GraphError):
    """A server or engine cannot be reached, or is busy. The same call may succeed later."""

    retryable = True

    def __init__(self, store: str, reason: str) -> None:
        super().__init__(f"{store} cannot be reached: {reason}; check its address, and that it runs")
        self.store = store


class QueryFailed(GraphError):
    """A query gave no answer. The message is fit to be shown to the language model that wrote it."""


class QueryRefused(QueryFailed):
    """The guard does not let the query run. Nothing was executed."""

    def __init__(self, found: str, line: int, column: int, reason: str) -> None:
        super().__init__(f"refused at line {line}, column {column}, {found!r}: {reason}")
        self.found = found
        self.line = line
        self.column = column
        self.reason = reason


class QueryInvalid(QueryFailed):
    """The engine does not understand the query."""


class QueryTimeout(QueryFailed):
    """The query took longer than its limit."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__(
            f"the query took longer than {timeout_s:g} s and was stopped; "
            "name a start node, use fewer hops, or add LIMIT"
        )
        self.timeout_s = timeout_s


class QueryTooLarge(QueryFailed):
    """The query needed more memory than allowed."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the query needed too much memory and was stopped ({reason}); ask for less at once")


class DatasetError(ByokgError):
    """A question file is missing or malformed."""

    def __init__(self, file: str | Path, line: int | None, reason: str) -> None:
        place = f"{file}:{line}" if line is not None else f"{file}"
        super().__init__(f"{place}: {reason}")
        self.file = str(file)
        self.line = line


class RunError(ByokgError):
    """A run folder cannot be used as asked."""
