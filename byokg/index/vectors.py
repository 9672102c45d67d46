"""Nearest unit vectors by cosine, exactly or approximately, in memory or memory-mapped from a file.

Four layouts, of which the first two and the last are chosen by size (`layout_for`):

| Layout | Search | Measured with the shipped embedder, 128 dimensions, one thread |
|---|---|---|
| `flat` | every vector | exact, 3 ms at 100,000 |
| `pq` | 4-bit codes of every vector, the best rescored | recall@10 of 0.99 or more, 4 ms at 1,000,000, built in 6 s |
| `ivf` | the same in the lists nearest to the query | half of the time of `pq`, recall@10 of 0.98, built in 11 s |
| `hnsw` | a graph of neighbours | recall@10 of 0.94, 0.5 ms at 100,000, built in 11 s |

Static embeddings of names form no clusters that lists or graphs could follow, so scanning short codes of all of them
wins there; `hnsw` is used only on request.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.errors import ConfigError, IndexUnusable, at_least, one_of
from byokg.index.embedders import Vectors, exact, unit_rows

Layout = Literal["flat", "hnsw", "pq", "ivf"]

FILE = "vectors.faiss"

FLAT_UP_TO = 100_000 * 128
PQ_UP_TO = 4_000_000 * 128
"""Numbers (vectors times dimensions) up to which `flat` and `pq` are chosen: about 5 and 20 ms a query."""

_ROWS_AT_ONCE = 1 << 16
_TRAINED_ON = 1 << 16
_FEWEST = 4096
"""Rows below which nothing can be trained, so that every layout becomes `flat`."""

_RESCORED = 1500
"""Candidates whose stored vectors are compared after a search among codes."""

_CODED_DIMENSIONS = (2, 3, 4, 6, 8, 12, 16)
"""Dimensions that may share one 4-bit code."""
_LONGEST_CODE = 128
"""Codes of one vector; fewer dimensions share one while that many are not exceeded."""

_LISTS = 1024
_PROBED = 256
_VECTORS_A_LIST = 64
"""Of `ivf`: lists, how many of them are searched, and vectors that each is trained on."""

_NEIGHBOURS, _BUILD_WIDTH, _SEARCH_WIDTH = 32, 40, 256
"""Of `hnsw`: links of a vector, and candidates kept while building and while searching."""

_SPARE = 16
"""Extra vectors requested from FAISS, so that its rounding decides nothing."""
_SLACK = 1e-3
"""How far its products may be off: they are single, and of stored vectors whose lengths half precision changes."""

_DIGITS = 6
"""Decimals of a cosine: what rounding to half precision leaves of a vector's direction."""


@dataclass(frozen=True)
class Nearest:
    """Nearest vectors of one query: best first, equal cosines by row."""

    rows: Int64
    """(K,) numbers of vectors, in the order they were added."""
    cosines: npt.NDArray[np.float64]
    """(K,) in [-1, 1]."""


def layout_for(count: int, dimensions: int) -> Layout:
    """Return the layout that suits a number of vectors."""
    if count * dimensions <= FLAT_UP_TO:
        return "flat"
    return "pq" if count * dimensions <= PQ_UP_TO else "ivf"


class VectorIndex:
    """Vectors numbered in the order they were added, found by cosine.

    Vectors are kept in half precision (float16): each number is off by at most 1 part in 2,048, and a cosine by about
    0.0001, except that a vector's cosine with itself is 1. Rows of zeros have no direction: they have a number, and
    are never found. Several threads may search at the same time; adding is for one.

    Make one with `build` or `open`. Equal input gives an equal index: training has a fixed sample and seed, and one
    thread.
    """

    def __init__(self, index: Any, layout: Layout, rows: Int64 | None, count: int, mapped: Path | None = None) -> None:
        self._index = index
        self._layout = layout
        self._rows = rows
        self._count = count
        self._mapped = mapped

    def __len__(self) -> int:
        return self._count

    @property
    def dimensions(self) -> int:
        """Return the length D of a vector."""
        return int(self._index.d)

    @property
    def layout(self) -> Layout:
        """Return how the vectors are laid out."""
        return self._layout

    @property
    def rows(self) -> Int64 | None:
        """Return the numbers of the nonzero vectors, ascending; None if all are nonzero."""
        return self._rows

    @property
    def stored(self) -> npt.NDArray[np.float16]:
        """Return the vectors of `rows` themselves, in this order, without a copy: (M, D). Good until any are added."""
        exact = self._exact
        codes = _faiss().rev_swig_ptr(exact.codes.data(), int(exact.ntotal) * int(exact.code_size))
        return cast("npt.NDArray[np.float16]", codes.view(np.float16).reshape(-1, self.dimensions))

    def scan(self, query: Vectors, k: int) -> tuple[Int64, Vectors]:
        """Return places in `stored` of the k vectors nearest to one query, and their products with it: (K,) both.

        Exact whatever the layout, and for thousands as quick as for one: where `search` has to look each hit up.
        """
        with _one_thread():
            products, places = self._exact.search(query[None], min(k, int(self._exact.ntotal)))
        return places[0], products[0]

    @property
    def _exact(self) -> Any:
        """Return the part of the index that holds the vectors themselves."""
        if self._layout == "flat":
            return self._index
        return _faiss().downcast_index(self._index.storage if self._layout == "hnsw" else self._index.refine_index)

    @classmethod
    def build(cls, vectors: npt.NDArray[np.floating], layout: Layout | None = None) -> VectorIndex:
        """Index vectors.

        Args:
            vectors: (N, D) numbers, N of 0 or more, of any length and precision; read in parts, so they may be mapped.
            layout: None chooses by N. Below 4,096 vectors it is always `flat`.

        Raises:
            ConfigError: there is no such layout, or `vectors` is no matrix.
        """
        if layout is not None:
            one_of("layout=", layout, get_args(Layout))
        if vectors.ndim != 2 or vectors.shape[1] == 0:
            raise ConfigError(f"vectors have the shape {vectors.shape}; give (N, D) with D of 1 or more")
        count, width = vectors.shape
        # Evenly spread, so that names in alphabetical order are no reason to know only those in A.
        sample = unit_rows(vectors[np.linspace(0, max(count - 1, 0), min(count, _TRAINED_ON)).astype(np.int64)])
        sample = np.ascontiguousarray(sample[sample.any(axis=1)])
        chosen = layout or layout_for(count, width)
        if len(sample) < _FEWEST:
            chosen = "flat"
        with _one_thread():
            index = _trained(chosen, sample, width)
        built = cls(index, chosen, None, 0)
        built.add(vectors)
        return built

    def add(self, vectors: npt.NDArray[np.floating]) -> None:
        """Append vectors; the layout stays, as do the codes that an earlier set was trained for.

        Args:
            vectors: (N, D) numbers.

        Raises:
            ConfigError: D is another than before.
        """
        self._refuse_other_width(vectors)
        if self._mapped is not None:  # what is mapped cannot grow
            self._index, self._mapped = _read_faiss(self._mapped, mapped=False), None
        for start in range(0, len(vectors), _ROWS_AT_ONCE):
            part = unit_rows(vectors[start : start + _ROWS_AT_ONCE])
            filled = np.asarray(part.any(axis=1))
            if self._rows is None and not filled.all():
                self._rows = np.arange(self._count)
            if self._rows is not None:
                self._rows = np.concatenate((self._rows, self._count + np.flatnonzero(filled)))
                part = part[filled]
            with _one_thread():
                self._index.add(np.ascontiguousarray(part))
            self._count += len(filled)

    def search(self, queries: Vectors, k: int) -> list[Nearest]:
        """Return up to k nearest vectors of each query; none for a query of zeros.

        Args:
            queries: (Q, D) numbers of any length.
            k: how many at most, 1 or more.

        Raises:
            ConfigError: D is another than that of the index, or k is below 1.
        """
        at_least(1, "finds nothing", k=k)
        self._refuse_other_width(queries)
        units = unit_rows(queries)
        total = int(self._index.ntotal)
        if total == 0:
            return [_NOTHING for _ in units]
        nearest: list[Nearest | None] = [None if unit.any() else _NOTHING for unit in units]
        wanted = min(k + _SPARE, total)
        with _one_thread():
            while open_ := [at for at, found in enumerate(nearest) if found is None]:
                products, hits = self._index.search(units[open_], wanted, params=self._search_parameters(wanted))
                for at, product, hit in zip(open_, products, hits, strict=True):
                    found = self._nearest(units[at], hit[hit >= 0], k)  # what a search cannot fill is padded with -1
                    # FAISS adds in single precision: a vector that it left out by a hair may be among the best.
                    if wanted == total or hit[-1] < 0 or product[-1] < found.cosines[-1] - _SLACK:
                        nearest[at] = found
                wanted = min(4 * wanted, total)
        return [found for found in nearest if found is not None]

    def write(self, folder: Path) -> dict[str, Any]:
        """Write the files of the index into a folder, and return the arguments for `open`."""
        _faiss().write_index(self._index, str(folder / FILE))
        if self._rows is not None:
            with (folder / _ROWS_FILE).open("wb") as file:
                np.save(file, self._rows, allow_pickle=False)
        return {"layout": self._layout, "count": self._count, "dimensions": self.dimensions}

    @classmethod
    def open(cls, folder: Path, layout: Layout, count: int, dimensions: int) -> VectorIndex:
        """Map the index in a folder.

        Raises:
            IndexUnusable: the files are missing or damaged, or differ from the given metadata.
        """
        index = _read_faiss(folder / FILE, mapped=True)
        rows_file = folder / _ROWS_FILE
        try:
            rows = np.load(rows_file, mmap_mode="r", allow_pickle=False) if rows_file.exists() else None
        except (OSError, ValueError) as error:
            raise IndexUnusable(folder, f"{_ROWS_FILE}: {error}") from error
        if index.d != dimensions or index.ntotal != (count if rows is None else len(rows)):
            raise IndexUnusable(folder, f"{FILE} holds {index.ntotal:,} vectors of {index.d} numbers, not what it says")
        return cls(index, layout, rows, count, folder / FILE)

    def _refuse_other_width(self, vectors: npt.NDArray[np.floating]) -> None:
        if vectors.ndim != 2 or vectors.shape[1] != self.dimensions:
            raise ConfigError(f"vectors have the shape {vectors.shape}, the index takes (N, {self.dimensions})")

    def _nearest(self, unit: Vectors, hits: Int64, k: int) -> Nearest:
        """Compute the cosines anew, the same for every layout and CPU, and return the k best hits in order."""
        stored = unit_rows(self._exact.reconstruct_batch(hits))
        cosines = np.clip(np.round(exact(stored) @ exact(unit), _DIGITS), -1, 1)
        order = np.lexsort((hits, -cosines))[:k]
        rows = hits[order] if self._rows is None else np.asarray(self._rows[hits[order]])
        return Nearest(rows, cosines[order])

    def _search_parameters(self, wanted: int) -> Any:
        """Return what FAISS needs for one search: given with the call, so that threads do not disturb each other."""
        faiss = _faiss()

        if self._layout == "flat":
            return None
        if self._layout == "hnsw":
            return faiss.SearchParametersHNSW(efSearch=max(_SEARCH_WIDTH, wanted))
        inner = None
        if self._layout == "ivf":
            inner = faiss.SearchParametersIVF(nprobe=max(1, self._lists() * _PROBED // _LISTS))
        factor = max(1.0, _RESCORED / wanted)
        return faiss.IndexRefineSearchParameters(k_factor=factor, base_index_params=inner)

    def _lists(self) -> int:
        faiss = _faiss()

        return int(faiss.downcast_index(self._index.base_index).nlist)


_ROWS_FILE = "vector_rows.npy"
"""Numbers of the nonzero vectors; absent if all are."""

_NOTHING = Nearest(np.zeros(0, np.int64), np.zeros(0))


def _trained(layout: Layout, sample: Vectors, width: int) -> Any:
    """Return an empty FAISS index that is ready to take unit vectors such as those of a sample."""
    faiss = _faiss()

    half = faiss.ScalarQuantizer.QT_fp16
    cosine = faiss.METRIC_INNER_PRODUCT  # of unit vectors
    if layout == "flat":
        return faiss.IndexScalarQuantizer(width, half, cosine)
    if layout == "hnsw":
        graph = faiss.IndexHNSWSQ(width, half, _NEIGHBOURS, cosine)
        graph.hnsw.efConstruction = _BUILD_WIDTH
        graph.train(sample)
        return graph
    codes = _code_length(width)
    if layout == "pq":
        index = faiss.IndexPQFastScan(width, codes, 4, cosine)
    else:
        lists = min(_LISTS, len(sample) // _VECTORS_A_LIST)
        coarse = faiss.IndexFlatIP(width)
        index = faiss.IndexIVFPQFastScan(coarse, width, lists, codes, 4, cosine)
        coarse.this.disown()
        index.own_fields = True
        index.cp.spherical = True
        index.cp.niter = 8
        index.cp.max_points_per_centroid = _VECTORS_A_LIST
    index.pq.cp.min_points_per_centroid = 1
    index.train(sample)
    exact = faiss.IndexScalarQuantizer(width, half, cosine)
    refined = faiss.IndexRefine(index, exact)
    for part in (index, exact):
        part.this.disown()
    refined.own_fields = refined.own_refine_index = True
    refined.is_trained = True
    return refined


def _code_length(width: int) -> int:
    """Return into how many codes a vector is cut: each of equally many dimensions, as few as the limit allows."""
    for shared in _CODED_DIMENSIONS:
        if width % shared == 0 and width // shared <= _LONGEST_CODE:
            return width // shared
    return next(length for length in range(min(width, _LONGEST_CODE), 0, -1) if width % length == 0)


def _read_faiss(path: Path, mapped: bool) -> Any:
    faiss = _faiss()

    try:
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC if mapped else 0)
    except RuntimeError as error:  # FAISS raises nothing else, with where in its source on the first line
        raise IndexUnusable(path.parent, f"{path.name} is missing, cut short or no index") from error


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep FAISS to the calling thread: the same sums in every run, and no contest with other threads of ours.

    The setting belongs to the calling thread (OpenMP), so nobody else is slowed down.
    """
    faiss = _faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _faiss() -> Any:
    """Import FAISS on first use: it takes a tenth of a second. Its type stubs lack functions made at run time."""
    import faiss

    return faiss
