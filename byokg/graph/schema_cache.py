"""Schemas of servers, kept between runs, so that opening a large graph does not read its schema again.

A file for each graph lies in the user's cache folder. It holds the schema, a fingerprint that is cheap to ask for
(how many nodes and edges there are, and which labels and relation types), and the store's name, which never holds
credentials. What was kept counts while the fingerprint is the same; where a server cannot give one, for a day. So an
edit that leaves all counts as they are is not noticed: `byokg graph info GRAPH --refresh-schema` reads anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from byokg.graph.cache_folder import user_cache
from byokg.graph.store import Schema

FORMAT, VERSION = "byokg-schema", 1

UNCHECKED_S = 24 * 3600.0
"""How long a schema counts whose graph has no fingerprint."""


@dataclass(frozen=True)
class Kept:
    """A schema as it is kept."""

    schema: Schema
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What else the store has to know to use it."""


class SchemaCache:
    """Keeps schemas in a folder; several processes may use it at the same time.

    Args:
        folder: made when something is kept; None is `schemas` in the user's cache folder.
        refresh: find nothing, so that everything is read and kept anew.
        clock: seconds since 1970.
    """

    def __init__(
        self, folder: Path | None = None, refresh: bool = False, clock: Callable[[], float] = time.time
    ) -> None:
        self.folder = folder or user_cache() / "schemas"
        self._refresh = refresh
        self._clock = clock

    def find(self, key: str, fingerprint: str | None) -> Kept | None:
        """Return what was kept under a key for this fingerprint; None where there is nothing, or nothing readable."""
        if self._refresh:
            return None
        try:
            content = json.loads(self._file(key).read_bytes())
            if (content["format"], content["version"], content["fingerprint"]) != (FORMAT, VERSION, fingerprint):
                return None
            if fingerprint is None and not 0 <= self._clock() - content["read"] <= UNCHECKED_S:
                return None
            return Kept(TypeAdapter(Schema).validate_python(content["schema"]), dict(content["extra"]))
        except (OSError, ValueError, KeyError, TypeError, ValidationError):
            return None  # not there, torn, or of another version: it is read and kept again

    def keep(self, key: str, store: str, fingerprint: str | None, kept: Kept) -> None:
        """Keep a schema in the place of what was there. A folder that cannot be written keeps nothing.

        Args:
            key: what tells graphs apart; only a hash of it is written.
            store: name of the store, for people who look into the folder.
            fingerprint: see above; None where there is none.
            kept: what `find` shall return.
        """
        content = {
            "format": FORMAT,
            "version": VERSION,
            "store": store,
            "fingerprint": fingerprint,
            "read": round(self._clock(), 3),
            "extra": dict(kept.extra),
            "schema": asdict(kept.schema),
        }
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor, partial = tempfile.mkstemp(prefix=".schema-", suffix=".partial", dir=self.folder)  # mode 600
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    json.dump(content, file, ensure_ascii=True)
                    file.flush()
                    os.fsync(file.fileno())
                Path(partial).replace(self._file(key))
            except BaseException:
                with suppress(OSError):
                    Path(partial).unlink()
                raise

    def _file(self, key: str) -> Path:
        return self.folder / f"{hashlib.sha256(key.encode('utf-8', 'backslashreplace')).hexdigest()[:24]}.json"


def digest(*parts: object) -> str:
    """Return a SHA-256 of values as JSON."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()
