"""Dense name index: the vectors of all names, with their owners.

`DenseNames` returns the names most similar to a text. `Similarity` returns the similarity of any name to a question,
exactly: names outside its best ones have a similarity below a known bound.

Vectors are kept on disk by model and text, so that a second build embeds nothing and a killed one resumes. Each model,
precision and length of vectors has a SQLite file, `<embedder>/<precision>-<D>.sqlite`, which many threads and processes
may use at the same time. A row holds a block of texts that were added together: the hash of each text, the checksum of
its vector, and the vectors one after the other. The place of each text is held in memory, 24 bytes a text. A vector
whose checksum differs counts as absent.

Measured with 1,000,000 names of 2 to 4 words and 128 dimensions: 3 µs per lookup and 3 µs per addition; the shipped
embedder takes 20 µs and a transformer model 1,000 to 50,000. So even the fastest embedder gains from it.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from byokg.arrays import Int64
from byokg.errors import CacheUnusable, EmbedderFailed, IndexUnusable, at_least
from byokg.files import find_changed, list_files, open_database, transaction, write_json
from byokg.index.embedders import Embedder, Vectors, exact, folder_name, unit_rows
from byokg.index.names import META, NameMatch, read_index_meta
from byokg.index.vectors import Layout, VectorIndex
from byokg.index.vocabulary import group
from byokg.text.names import WORD, encodable

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


FORMAT = "byokg-dense-names"
VERSION = 1

LONGEST = 1000
"""Characters from which a text is no name and no mention, but a text: it is neither kept nor found."""

_NAMES, _BOUNDS, _OWNERS = "names.arrow", "bounds.npy", "owners.npy"


@dataclass(frozen=True)
class Embedded:
    """How far the embedding of names is."""

    done: int
    total: int


@dataclass(frozen=True)
class DenseMeta:
    """Content of `meta.json` of a saved index."""

    embedder: str
    """Name of the embedder that made the vectors."""
    made_for: str
    """Identity of the numbering of owners; empty if not given."""
    names: int
    entries: int
    vectors: dict[str, Any]
    files: dict[str, dict[str, Any]]


class DenseNames:
    """Names with their vectors and owners; implements `NameSearch`.

    A match's score is its cosine: 1 for the same direction, and near 0 for names that have nothing to do with each
    other. Names at right angles or beyond (cosine of 0 or less) are no matches, so that scores are in (0, 1].
    Names and texts without a letter or digit, without a token that the embedder knows, or longer than 1,000 characters
    are never found and find nothing.

    Make one with `build` or `open`.
    """

    def __init__(
        self,
        embedder: Embedder,
        names: pa.LargeStringArray,
        bounds: Int64,
        owners: Int64,
        vectors: VectorIndex,
        made_for: str = "",
    ) -> None:
        self._embedder = embedder
        self._names = names
        # The owners of name n are _owners[_bounds[n]] up to _owners[_bounds[n + 1]], ascending.
        self._bounds = bounds
        self._owners = owners
        self._vectors = vectors
        self._made_for = made_for

    def __len__(self) -> int:
        return len(self._names)

    @property
    def embedder(self) -> Embedder:
        """Return the embedder of the vectors."""
        return self._embedder

    @property
    def layout(self) -> Layout:
        """Return how the vectors are laid out; see `byokg.index.vectors`."""
        return self._vectors.layout

    @property
    def vectors(self) -> VectorIndex:
        """Return the vectors, one for each name."""
        return self._vectors

    @property
    def owners(self) -> tuple[Int64, Int64]:
        """Return (L,) name numbers, ascending, and (L,) who bears each, ascending within a name."""
        return np.repeat(np.arange(len(self._names)), np.diff(self._bounds)), np.asarray(self._owners)

    @classmethod
    def build(
        cls,
        entries: Iterable[tuple[int, str]],
        embedder: Embedder,
        cache: Path | None = None,
        progress: Callable[[Embedded], None] | None = None,
        layout: Layout | None = None,
        made_for: str = "",
    ) -> DenseNames:
        """Embed names and index their vectors.

        Args:
            entries: owner, 0 or greater, and name; a name may have several owners, and an owner several names. Equal
                names are embedded once.
            embedder: makes the vectors.
            cache: folder of cached vectors, so that nothing is embedded twice and a killed build resumes; None keeps
                none.
            progress: called after every 1,024 names.
            layout: see `byokg.index.vectors`; None chooses by size.
            made_for: identity of the numbering of owners, for `open`.

        Raises:
            EmbedderFailed: the embedder failed, or its vectors cannot be used.
            CacheUnusable: the cache cannot be read or written.
        """
        numbers: dict[str, int] = {}
        kept = ((encodable(name), owner) for owner, name in entries if is_comparable(name))
        pairs = [(numbers.setdefault(name, len(numbers)), owner) for name, owner in kept]
        names = pa.array(list(numbers), pa.large_string())
        vectors = _embedded(names, embedder, cache, progress)
        number, owner = np.array(pairs, np.int64).reshape(-1, 2).T
        bounds, owners = group(number, owner, len(names))
        return cls(embedder, names, bounds, owners.astype(np.int64), VectorIndex.build(vectors, layout), made_for)

    def search(self, texts: Sequence[str], k: int) -> list[list[NameMatch]]:
        """Return the k best matches of each text, best first, never flattened across texts.

        Every owner of a name is a match of its own. Equal scores stand in the order in which names came, and owners
        of one name in ascending order.

        Args:
            texts: embedded together, so many texts cost little more than one.
            k: matches of each at most, 1 or more.

        Raises:
            ConfigError: k is below 1.
            EmbedderFailed: the embedder failed.
        """
        at_least(1, "finds nothing", k=k)
        found: list[list[NameMatch]] = [[] for _ in texts]
        asked = [at for at, text in enumerate(texts) if is_comparable(text)]
        if not asked or not len(self._names):
            return found
        queries = _checked(self._embedder.encode([texts[at] for at in asked]), len(asked), self._embedder.name)
        for at, nearest in zip(asked, self._vectors.search(queries, k), strict=True):
            matches = found[at]
            for row, cosine in zip(nearest.rows.tolist(), nearest.cosines.tolist(), strict=True):
                if cosine <= 0 or len(matches) == k:
                    break
                name = self._names[row].as_py()
                owners = self._owners[self._bounds[row] : self._bounds[row + 1]][: k - len(matches)]
                matches += [NameMatch(owner, name, cosine) for owner in owners.tolist()]
        return found

    def write(self, folder: Path) -> None:
        """Write all files into an empty folder, which whoever calls moves into place (`files.new_folder`)."""
        with pa.OSFile(str(folder / _NAMES), "wb") as sink:
            batch = pa.record_batch({"name": self._names})
            with pa.ipc.new_file(sink, batch.schema) as writer:
                writer.write_batch(batch)
        for file, array in ((_BOUNDS, self._bounds), (_OWNERS, self._owners)):
            with (folder / file).open("wb") as out:
                np.save(out, array, allow_pickle=False)
        meta = {
            "format": FORMAT,
            "version": VERSION,
            "embedder": self._embedder.name,
            "made_for": self._made_for,
            "names": len(self._names),
            "entries": len(self._owners),
            "vectors": self._vectors.write(folder),
        }
        meta["files"] = list_files(folder)
        write_json(folder / META, meta)

    @classmethod
    def open(cls, folder: str | Path, embedder: Embedder, made_for: str = "") -> DenseNames:
        """Map a saved index; costs milliseconds at any size. `verify_names` checks the content.

        Args:
            folder: written by `write`.
            embedder: must have the name of the one that made the vectors.
            made_for: must equal that of the build.

        Raises:
            IndexUnusable: the files are missing or damaged, or embedder or `made_for` differs.
        """
        folder = Path(folder)
        meta = read_meta(folder)
        if meta.embedder != embedder.name:
            raise IndexUnusable(folder, f"its vectors are those of {meta.embedder!r}, not of {embedder.name!r}")
        if meta.made_for != made_for:
            raise IndexUnusable(folder, f"it was made for {meta.made_for!r}, not for {made_for!r}")
        try:
            with pa.memory_map(str(folder / _NAMES)) as source:
                names = pa.ipc.open_file(source).get_batch(0).column("name")
            bounds, owners = (np.load(folder / file, mmap_mode="r") for file in (_BOUNDS, _OWNERS))
            vectors = VectorIndex.open(folder, **meta.vectors)
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise IndexUnusable(folder, str(error)) from error
        if not len(names) == len(bounds) - 1 == len(vectors) == meta.names or len(owners) != meta.entries:
            raise IndexUnusable(folder, "its files do not belong together")
        return cls(embedder, names, bounds, owners, vectors, meta.made_for)


def read_meta(folder: Path) -> DenseMeta:
    """Read the metadata of a saved index, and check that its files exist in full length.

    Raises:
        IndexUnusable: there is none, it cannot be read, or a file is missing or of another length.
    """
    meta = read_index_meta(folder, FORMAT, VERSION, IndexUnusable)
    try:
        return DenseMeta(**{key: meta[key] for key in DenseMeta.__dataclass_fields__})
    except KeyError as error:
        raise IndexUnusable(folder, f"{META}: {error!r}") from error


def verify_names(folder: Path) -> DenseMeta:
    """Read every file of a saved index and compare its checksum.

    Raises:
        IndexUnusable: a file is missing or changed.
    """
    meta = read_meta(folder)
    if changed := find_changed(folder, meta.files):
        raise IndexUnusable(folder, changed)
    return meta


def is_comparable(text: str) -> bool:
    """True if a text can be compared with a name."""
    return len(text) <= LONGEST and WORD.search(text) is not None


def _embedded(
    names: pa.LargeStringArray, embedder: Embedder, cache: Path | None, progress: Callable[[Embedded], None] | None
) -> npt.NDArray[np.float16]:
    """Return the vectors of all names, (N, D), in the precision in which they will be kept."""
    if cache is not None:
        cached = CachedEmbedder(embedder, cache)
        try:
            return _embedded(names, cached, None, progress)
        finally:
            cached.close()
    vectors: npt.NDArray[np.float16] | None = None
    for start in range(0, len(names), TEXTS_AT_ONCE):
        texts = names.slice(start, TEXTS_AT_ONCE).to_pylist()
        part = _checked(embedder.encode(texts), len(texts), embedder.name)
        if vectors is None:
            vectors = np.zeros((len(names), part.shape[1]), np.float16)
        vectors[start : start + len(texts)] = part
        if progress is not None:
            progress(Embedded(start + len(texts), len(names)))
    if vectors is None:
        return _checked(embedder.encode([]), 0, embedder.name).astype(np.float16)
    return vectors


def _checked(vectors: Vectors, count: int, embedder: str) -> Vectors:
    if vectors.ndim != 2 or len(vectors) != count:
        raise EmbedderFailed(embedder, f"vectors of the shape {vectors.shape} for {count} texts")
    if not np.isfinite(vectors).all():
        raise EmbedderFailed(embedder, "a vector holds a number that is not finite")
    return vectors


Millionths = npt.NDArray[np.int32]

UNIT = 1_000_000
"""Similarities are whole millionths, so that sums of them are exact and equal ones are equal."""

SLACK = 10
"""Millionths by which sums in single precision may differ from those that count."""

_IN_SINGLE = 1 << 26
"""Numbers of all vectors up to which they are kept in single precision, too: 256 MB."""

_SAMPLE = 1 << 14
_ROWS_AT_ONCE = 1 << 10
"""Rows converted to double precision at a time, sized for the CPU's cache."""


@dataclass(frozen=True)
class Best:
    """The owners of the names that are most similar to a question."""

    owners: Int64
    """(K,) ascending."""
    bound: int
    """No other owner of a name is more similar than this, in millionths."""


class Similarity:
    """Compares questions with the names of owners 0 to N - 1, as they are stored: in half precision.

    An owner without a name, or whose name has no token that the embedder knows, has a similarity of 0 to everything.

    Args:
        names: the index; owners are its numbers.
        owners: N, how many there are, named or not.
    """

    def __init__(self, names: DenseNames, owners: int) -> None:
        self._index = names.vectors
        stored = names.vectors.stored
        # Converting half precision to single takes longer than the products, so small matrices are kept in single.
        self._stored = stored.astype(np.float32) if stored.size <= _IN_SINGLE else stored
        number, owner = names.owners
        rows = names.vectors.rows
        places = np.arange(len(names)) if rows is None else np.full(len(names), -1)
        if rows is not None:
            places[rows] = np.arange(len(rows))
        filled = places[number] >= 0
        self._bearers = owner[filled]
        self._bounds = np.searchsorted(places[number[filled]], np.arange(len(self._stored) + 1))
        self._place = np.full(owners, -1, np.int32)
        self._place[self._bearers[::-1]] = places[number[filled]][::-1]

    @property
    def owners(self) -> int:
        """Return how many owners there are."""
        return len(self._place)

    def __len__(self) -> int:
        """Return how many different names there are to compare with."""
        return len(self._stored)

    def of(self, question: Vectors, owners: npt.NDArray[np.integer]) -> Millionths:
        """Return the cosine of each owner's name with a question, in millionths.

        Args:
            question: (D,) unit vector.
            owners: (N,) numbers.

        Returns:
            (N,) in [-1,000,000, 1,000,000]; equal names have equal values in every call.
        """
        out = np.zeros(len(owners), np.int32)
        place = self._place[owners]
        filled = np.flatnonzero(place >= 0)
        for start in range(0, len(filled), _ROWS_AT_ONCE):
            part = filled[start : start + _ROWS_AT_ONCE]
            out[part] = millionths(self._stored[place[part]], question)
        return out

    def roughly(self, question: Vectors) -> Millionths:
        """Return for every owner what `of` would, but for `SLACK` either way, and sooner: (N,)."""
        asked = exact(question).astype(np.float32)
        products = np.zeros(len(self) + 1, np.int32)  # the last one is for owners without a name, whose place is -1
        for start in range(0, len(self), _ROWS_AT_ONCE):
            part = slice(start, min(start + _ROWS_AT_ONCE, len(self)))
            products[part] = np.rint((self._stored[part].astype(np.float32, copy=False) @ asked) * UNIT)
        return products.take(self._place, mode="wrap")

    def best(self, question: Vectors, names: int) -> Best:
        """Return the owners of the most similar names, by one scan over all of them.

        Args:
            question: (D,) unit vector.
            names: how many names, 1 or more; each may have several owners.
        """
        at_least(1, "finds nothing", names=names)
        wanted = min(names, len(self))
        if wanted == 0:
            return Best(np.zeros(0, np.int64), -UNIT)
        places, cosines = self._index.scan(question, wanted)
        chosen = np.sort(places)
        counts = self._bounds[chosen + 1] - self._bounds[chosen]
        at = np.repeat(self._bounds[chosen] - counts.cumsum() + counts, counts) + np.arange(counts.sum())
        least = -UNIT if wanted == len(self) else int(np.ceil(float(cosines[-1]) * UNIT)) + SLACK
        return Best(np.sort(self._bearers[at]), least)

    def share_above(self, question: Vectors, least: int) -> float:
        """Estimate which share of the names is at least so similar, from a sample that is the same every time."""
        sample = self._stored[:: max(1, len(self) // _SAMPLE)]
        if not len(sample):
            return 0.0
        # An estimate decides the amount of work, not the result, so single precision will do.
        products = sample.astype(np.float32, copy=False) @ question
        return float((products * UNIT >= least).mean())


def millionths(vectors: npt.NDArray[np.floating], question: Vectors) -> Millionths:
    """Return the cosines of unit vectors with a question, in millionths: the same on every CPU.

    Args:
        vectors: (N, D) of half precision, or as `exact` returns them, which is what half precision is anyway.
        question: (D,) unit vector.
    """
    rounded: Millionths = np.rint(vectors.astype(np.float64, copy=False) @ exact(question) * UNIT).astype(np.int32)
    return rounded
