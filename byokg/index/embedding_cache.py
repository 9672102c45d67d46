"""Vectors kept on disk by model and text, so that a second build embeds nothing and a killed one resumes.

Each model, precision and length of vectors has a SQLite file, `<embedder>/<precision>-<D>.sqlite`, which many threads
and processes may use at the same time. A row holds a block of texts that were added together: the hash of each text,
the checksum of its vector, and the vectors one after the other. The place of each text is held in memory, 24 bytes a
text. A vector whose checksum differs counts as absent.

Measured with 1,000,000 names of 2 to 4 words and 128 dimensions: 3 µs per lookup and 3 µs per addition; the shipped
embedder takes 20 µs and a transformer model 1,000 to 50,000. So even the fastest embedder gains from it.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Literal

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.errors import CacheUnusable
from byokg.files import open_database, transaction
from byokg.index.embedders import Embedder, Vectors, folder_name, unit_rows

Precision = Literal["float16", "float32"]

TEXTS_AT_ONCE = 1024
"""Texts embedded between two additions to the cache and two reports of progress; so many are lost at a kill."""

Keys = npt.NDArray[np.void]

_HASH = np.dtype([("high", "<u8"), ("low", "<u8")])
_RECORD = np.dtype([("hash", _HASH), ("check", "<u4")])
_ROW_BITS = 32
"""A place is the id of a block, and in the lower bits the number of a vector in it."""

_TABLE = "CREATE TABLE IF NOT EXISTS blocks (id INTEGER PRIMARY KEY, records BLOB NOT NULL, vectors BLOB NOT NULL)"


def text_keys(texts: Sequence[str]) -> Keys:
    """Return the hashes of N texts, (N,): the exact text counts, lone surrogates included."""
    size = _HASH.itemsize
    digests = b"".join([blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).digest() for text in texts])
    return np.frombuffer(digests, _HASH)


class EmbeddingCache:
    """Keeps the vectors of one model.

    Args:
        folder: parent of the models' folders; made on first use.
        embedder: name of the model and its settings.
        dimensions: length D of a vector.
        precision: `float16` takes half of the disk; each number is rounded to 11 bits, and a cosine changes by about
            0.0001. `float32` keeps vectors as they are.
    """

    def __init__(self, folder: Path, embedder: str, dimensions: int, precision: Precision = "float16") -> None:
        self.dtype = np.dtype(precision).newbyteorder("<")
        self.dimensions = dimensions
        self._path = Path(folder) / folder_name(embedder) / f"{precision}-{dimensions}.sqlite"
        self._lock = Lock()
        self._file: sqlite3.Connection | None = None
        self._runs: list[tuple[npt.NDArray[np.uint64], Int64]] = []
        """First halves of hashes in ascending order, and the places of their vectors, the newest run last."""
        self._newest = 0
        self._recent: tuple[int, Keys, npt.NDArray[np.floating]] | None = None

    def find(self, keys: Keys) -> tuple[npt.NDArray[np.bool_], Vectors]:
        """Look texts up.

        Args:
            keys: `text_keys` of N texts.

        Returns:
            Which are there, (N,), and their vectors, (N, D) unit rows, zeros for those that are not.

        Raises:
            CacheUnusable: the file cannot be read.
        """
        found, out = np.zeros(len(keys), np.bool_), np.zeros((len(keys), self.dimensions), np.float32)
        with self._opened() as file:
            self._load_new(file)
            places = np.full(len(keys), -1)
            for high, place in reversed(self._runs):
                at = np.searchsorted(high, keys["high"], side="right") - 1  # of equal ones the one added last
                hit = (places < 0) & (at >= 0) & (high[at] == keys["high"])
                places[hit] = place[at[hit]]
            order = np.argsort(places)[np.count_nonzero(places < 0) :]
            for asked in np.split(order, np.flatnonzero(np.diff(places[order] >> _ROW_BITS)) + 1) if len(order) else []:
                records, vectors = self._block(file, int(places[asked[0]] >> _ROW_BITS))
                rows = places[asked] & ((1 << _ROW_BITS) - 1)
                kept = vectors[rows]
                sound = (records["hash"][rows] == keys[asked]) & (records["check"][rows] == _checksums(kept))
                found[asked] = sound
                out[asked[sound]] = unit_rows(kept[sound])
        return found, out

    def add(self, keys: Keys, vectors: npt.NDArray[np.floating]) -> None:
        """Keep the vectors, (N, D), of the N texts with these keys.

        Raises:
            CacheUnusable: the disk is full, or the file cannot be written.
        """
        rows = np.ascontiguousarray(vectors, self.dtype)
        records = np.empty(len(keys), _RECORD)
        records["hash"], records["check"] = keys, _checksums(rows)
        with self._opened() as file, transaction(file):
            file.execute("INSERT INTO blocks (records, vectors) VALUES (?, ?)", (records.tobytes(), rows.tobytes()))

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._file = None

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._lock:
                if self._file is None:
                    self._path.parent.mkdir(parents=True, exist_ok=True)
                    self._file = open_database(self._path)
                    self._file.execute("PRAGMA synchronous = NORMAL")  # the last blocks may get lost with the power
                    self._file.execute(_TABLE)
                yield self._file
        except (sqlite3.Error, OSError) as error:
            raise CacheUnusable(self._path, str(error)) from error

    def _load_new(self, file: sqlite3.Connection) -> None:
        """Read the hashes that were added since this was last called, by whomever."""
        blocks = file.execute("SELECT id, records FROM blocks WHERE id > ? ORDER BY id", (self._newest,)).fetchall()
        if not blocks:
            return
        self._newest = blocks[-1][0]
        high = [np.frombuffer(records, _RECORD)["hash"]["high"] for _, records in blocks]
        place = [(number << _ROW_BITS) + np.arange(len(part)) for (number, _), part in zip(blocks, high, strict=True)]
        run = np.concatenate(high), np.concatenate(place)
        # Runs of like length are merged, so that there are few of them and each hash is moved seldom.
        while self._runs and len(self._runs[-1][0]) <= 2 * len(run[0]):
            older = self._runs.pop()
            run = np.concatenate((older[0], run[0])), np.concatenate((older[1], run[1]))
        order = np.argsort(run[0], kind="stable")
        self._runs.append((run[0][order], run[1][order]))

    def _block(self, file: sqlite3.Connection, number: int) -> tuple[Keys, npt.NDArray[np.floating]]:
        """Return the records, (N,), and vectors, (N, D), of a block."""
        if self._recent is None or self._recent[0] != number:
            records, rows = file.execute("SELECT records, vectors FROM blocks WHERE id = ?", (number,)).fetchone()
            vectors = np.frombuffer(rows, self.dtype).reshape(-1, self.dimensions)
            self._recent = number, np.frombuffer(records, _RECORD), vectors
        return self._recent[1:]


def _checksums(rows: npt.NDArray[np.floating]) -> list[int]:
    return [zlib.crc32(row) for row in rows]


class CachedEmbedder:
    """An embedder that calls another one only for texts that were never embedded.

    Vectors are rounded to the cache's precision before their first use, too, so cached and new ones are equal byte by
    byte.

    Args:
        embedder: encodes texts that are not in the cache, 1,024 at a time.
        folder: parent of all models' caches.
        precision: see `EmbeddingCache`.
    """

    def __init__(self, embedder: Embedder, folder: Path, precision: Precision = "float16") -> None:
        self._embedder = embedder
        self._cache = EmbeddingCache(folder, embedder.name, embedder.encode([]).shape[1], precision)

    @property
    def name(self) -> str:
        """Identify the model: the name of the embedder inside."""
        return self._embedder.name

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts, from the cache or newly embedded and cached.

        Args:
            texts: N texts; equal ones are embedded once.

        Returns:
            (N, D) float32, rows of length 1; zeros for a text without any known token.

        Raises:
            EmbedderFailed: the embedder failed; its earlier vectors are kept.
            CacheUnusable: the cache cannot be read or written.
        """
        keys = text_keys(texts)
        found, vectors = self._cache.find(keys)
        absent = np.flatnonzero(~found)
        numbers: dict[str, int] = {}
        number = np.array([numbers.setdefault(texts[at], len(numbers)) for at in absent.tolist()], np.int64)
        missing = list(numbers)
        made = np.empty((len(missing), vectors.shape[1]), self._cache.dtype)
        first = absent[np.unique(number, return_index=True)[1]]
        for start in range(0, len(missing), TEXTS_AT_ONCE):
            part = slice(start, start + TEXTS_AT_ONCE)
            made[part] = self._embedder.encode(missing[part])
            self._cache.add(keys[first[part]], made[part])
        vectors[absent] = unit_rows(made)[number]
        return vectors

    def close(self) -> None:
        """Close the cache's file."""
        self._cache.close()
