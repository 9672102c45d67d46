"""The ids of a graph's nodes: a column that takes little space, and the index that finds one among millions.

Ids that begin alike, as IRIs do, have their beginning written once: a namespace (`http://example.org/entity/Q`), and
behind it a number where such ids end in one, else a text. Other ids are texts as they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from byokg.arrays import Bools, Int64, Integers
from byokg.graph.columnar.external_sort import ArrayFile
from byokg.graph.columnar.folder import map_array
from byokg.index.vocabulary import (
    Texts,
    UInt32,
    hash_column,
    hash_one,
    narrow,
    positions,
    sort_hashes,
    string_buffers,
    texts_column,
    upper_halves,
)

TEXT = pa.large_string()
_NOTHING = texts_column([""])[0]

_FEW = 12
"""Up to this many ids, plain Python beats the fixed cost of Arrow calls."""

_REMEMBERED = 1 << 14
"""Ids that are remembered with their positions: questions ask for the same ones again and again."""

_LEAST = 1 << 12
"""Ids from which namespaces are looked for."""

_SAMPLE, _SHARE, _SAVED = 1 << 16, 1 << 13, 8
"""Ids that are looked at to find namespaces, at least; of how many one must be in a namespace; and bytes that
namespaces must save for each id."""

_DIGITS = 9
"""Digits of a number behind a namespace, at most."""

_AT_ONCE = 1 << 18
"""Ids that are split together."""

_NUMBERED = re.compile(r"(?<![0-9])(0|[1-9][0-9]{0,8})\Z")
_SEPARATORS = "/#:"
_IS_SEPARATOR = np.isin(np.arange(256), [ord(each) for each in _SEPARATORS])

_ZERO, _NINE = ord("0"), ord("9")


class Namespace(NamedTuple):
    """How some ids begin."""

    text: str
    numbered: bool
    """True if the rest after the prefix is a whole number without leading zeros; False for any text."""


@dataclass(frozen=True)
class Namespaces:
    """S namespaces, as columns."""

    texts: pa.LargeStringArray
    numbered: Bools

    @classmethod
    def of(cls, spaces: Sequence[Namespace]) -> Namespaces:
        """Make columns of namespaces."""
        return cls(texts_column([space.text for space in spaces]), np.array([space.numbered for space in spaces]))

    def write(self, folder: Path) -> None:
        """Write them beside the ids."""
        batch = pa.RecordBatch.from_arrays([self.texts, pa.array(self.numbered)], ["text", "numbered"])
        with pa.OSFile(str(folder / _SPACES), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)

    @classmethod
    def map(cls, folder: Path) -> Namespaces:
        """Map the files written by `write`."""
        batch = pa.ipc.open_file(pa.memory_map(str(folder / _SPACES))).get_batch(0)
        bits = np.frombuffer(batch.column("numbered").buffers()[1], np.uint8)  # as `to_numpy` would import pandas
        numbered = np.unpackbits(bits, count=batch.num_rows, bitorder="little").view(np.bool_)
        return cls(batch.column("text"), numbered)


class IdColumn:
    """N distinct ids; all of it may be memory-mapped."""

    def __init__(
        self,
        texts: Texts,
        spaces: Namespaces | None = None,
        space: Integers | None = None,
        value: Integers | None = None,
    ) -> None:
        """Hold ids split into namespaces and rests.

        Args:
            texts: (T,) rests of ids in textual namespaces, in the order of ids.
            spaces: the namespaces; None if all ids are whole texts.
            space: (N,) the namespace of each id; None if all are in the first.
            value: (N,) the number after a numbered namespace; else the position among `texts`. None if it is the
                position of the id.
        """
        self.texts, self.spaces, self.space, self.value = texts, spaces, space, value
        self._offsets, self._bytes = string_buffers(texts)

    def __len__(self) -> int:
        return len(self.texts if self.value is None else self.value)

    @classmethod
    def of(cls, ids: pa.LargeStringArray) -> IdColumn:
        """Hold ids in memory, whole."""
        return cls(narrow(ids))

    def one(self, number: int) -> str:
        """Return the id at a position."""
        if self.spaces is None:
            return self._text(number)
        space = 0 if self.space is None else self.space[number]
        value = number if self.value is None else self.value[number]
        begin: str = self.spaces.texts[space].as_py()
        return begin + (str(value) if self.spaces.numbered[space] else self._text(value))

    def _text(self, row: int) -> str:
        return self._bytes[self._offsets[row] : self._offsets[row + 1]].tobytes().decode()

    def get(self, numbers: Integers) -> list[str]:
        """Return the id at each position, in the order given."""
        if len(numbers) > _FEW:
            many: list[str] = self._taken(numbers).to_pylist()
            return many
        if self.spaces is not None:
            return [self.one(number) for number in numbers.tolist()]
        starts, stops = self._offsets[numbers].tolist(), self._offsets[numbers + 1].tolist()
        return [self._bytes[start:stop].tobytes().decode() for start, stop in zip(starts, stops, strict=True)]

    def take(self, numbers: Integers) -> pa.LargeStringArray:
        """Return the ids at some positions as a column, in the order given."""
        return self._taken(numbers).cast(TEXT)

    def whole(self) -> pa.LargeStringArray:
        """Return all ids as a column: (N,)."""
        return self.texts.cast(TEXT) if self.spaces is None else self.take(np.arange(len(self)))

    def blocks(self, rows: int) -> Iterator[pa.LargeStringArray]:
        """Yield all ids, so many at a time."""
        for start in range(0, len(self), rows):
            yield self.take(np.arange(start, min(start + rows, len(self))))

    def _taken(self, numbers: Integers) -> Texts:
        if self.spaces is None:
            return self.texts.take(positions(numbers))
        value = numbers if self.value is None else self.value.take(numbers)
        if self.space is None:
            begin, rest = self.spaces.texts[0], self._rest(value, bool(self.spaces.numbered[0]))
        else:
            code = self.space.take(numbers)
            begin, numbered = self.spaces.texts.take(positions(code)), self.spaces.numbered.take(code)
            of_numbers, of_texts = self._rest(value[numbered], True), self._rest(value[~numbered], False)
            place = np.where(numbered, numbered.cumsum(), len(of_numbers) + (~numbered).cumsum()) - 1
            rest = pa.concat_arrays([of_numbers, of_texts]).take(positions(place))
        return pc.binary_join_element_wise(begin, rest, _NOTHING)

    def _rest(self, value: Integers, numbered: bool) -> pa.LargeStringArray:
        """Return the rests after the namespaces, all of which are numbered or none."""
        column = positions(value)
        return (column if numbered else self.texts.take(column)).cast(TEXT)

    def write(self, folder: Path) -> None:
        """Write the column as it is."""
        offsets, data = string_buffers(self.texts)
        _save(folder, "id_offsets", offsets - offsets[0])
        _save(folder, "id_bytes", data[offsets[0] : offsets[-1]])
        for name, array in (("id_space", self.space), ("id_value", self.value)):
            if array is not None:
                _save(folder, name, array)
        if self.spaces is not None:
            self.spaces.write(folder)

    @classmethod
    def map(cls, folder: Path, files: Container[str], count: int) -> IdColumn:
        """Map the files written by `write` or `write_ids`.

        Args:
            folder: their place.
            files: names of the files that belong to the graph.
            count: N.

        Raises:
            ValueError: the number of ids differs.
            OSError: a file cannot be read.
        """

        def mapped(name: str) -> npt.NDArray[Any] | None:
            return map_array(folder / f"{name}.npy") if f"{name}.npy" in files else None

        offsets, data, space, value = (mapped(name) for name in ("id_offsets", "id_bytes", "id_space", "id_value"))
        if offsets is None or data is None:
            raise ValueError("id_offsets.npy or id_bytes.npy is missing")
        if not len(offsets) or offsets[-1] != len(data):
            raise ValueError("id_offsets.npy and id_bytes.npy do not belong together")
        spaces = Namespaces.map(folder) if _SPACES in files else None
        kind = pa.StringArray if offsets.dtype == np.int32 else pa.LargeStringArray
        texts = kind.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))
        for name, array in (("id_space", space), ("id_value", value)):
            if array is not None and array.shape != (count,):
                raise ValueError(f"{name}.npy holds an array of shape {array.shape}, not ({count},)")
        column = cls(texts, spaces, space, value)
        if len(column) != count:
            raise ValueError(f"there are {len(column)} ids, not {count}")
        return column


_SPACES = "id_spaces.arrow"


def _save(folder: Path, name: str, array: npt.NDArray[Any]) -> None:
    with (folder / f"{name}.npy").open("wb") as file:
        np.save(file, array, allow_pickle=False)


# Splitting


def write_ids(folder: Path, ids: Texts, whole: bool, set_aside: Callable[[], object] = lambda: None) -> None:
    """Write a column of ids, split into namespaces and rests if that saves much.

    Args:
        folder: target.
        ids: (N,).
        whole: True to keep them whole.
        set_aside: called now and then, releases the memory of ids that are mapped from files.
    """
    spaces = () if whole else find_spaces(ids)
    if not spaces:
        IdColumn(narrow(ids)).write(folder)
        return
    _Splitter(spaces).write(folder, ids, set_aside)


def find_spaces(ids: Texts) -> list[Namespace]:
    """Return the namespaces of ids, most frequent first, with the catch-all; empty if they save little.

    A sample of ids, spread evenly, is inspected.
    """
    if len(ids) < _LEAST:
        return []
    sample: list[str] = ids.take(positions(np.arange(0, len(ids), max(len(ids) // _SAMPLE, 1)))).to_pylist()
    least = max(len(sample) // _SHARE, 2)
    rest, saved = sample, 0
    found: Counter[Namespace] = Counter()
    for numbered in (True, False):
        begins = [_begin(text, numbered) for text in rest]
        counts = Counter(begin for begin in begins if begin is not None)
        chosen = {begin: count for begin, count in counts.items() if count >= least}
        found.update({Namespace(begin, numbered): count for begin, count in chosen.items()})
        left = [(text, begin) for text, begin in zip(rest, begins, strict=True)]
        saved += sum(len(begin) + 4 * numbered for _, begin in left if begin is not None and begin in chosen)
        rest = [text for text, begin in left if begin is None or begin not in chosen]
    if saved < _SAVED * len(sample):
        return []
    ordered = sorted(found, key=lambda space: (-found[space], space.text, space.numbered))
    return [Namespace("", False), *ordered]


def _begin(text: str, numbered: bool) -> str | None:
    """Return the namespace that an id may have; None if there is none."""
    if numbered:
        match = _NUMBERED.search(text)
        return text[: match.start()] if match else None
    cut = max(map(text.rfind, _SEPARATORS)) + 1
    return text[:cut] if cut else None


class _Splitter:
    """Splits ids into namespaces and the rest."""

    def __init__(self, spaces: Sequence[Namespace]) -> None:
        self._spaces = spaces
        self._of: dict[bool, tuple[pa.LargeBinaryArray, npt.NDArray[np.uint16]]] = {}
        for numbered in (True, False):
            codes = [code for code, space in enumerate(spaces) if code and space.numbered == numbered]
            texts = texts_column([spaces[code].text for code in codes]).cast(pa.large_binary())
            self._of[numbered] = texts, np.array(codes, np.uint16)

    def write(self, folder: Path, ids: Texts, set_aside: Callable[[], object]) -> None:
        """Write a column of ids, some at a time."""
        used, texts, lengths = np.zeros(len(self._spaces), np.bool_), 0, [np.empty(0, np.uint32)]
        width = np.uint8 if len(self._spaces) <= 1 << 8 else np.uint16
        with (
            ArrayFile(folder / "id_space.npy", width) as spaces,
            ArrayFile(folder / "id_value.npy", np.uint32) as values,
            ArrayFile(folder / "id_bytes.npy", np.uint8) as data,
        ):
            for start in range(0, len(ids), _AT_ONCE):
                space, value, rest, length = self._split(ids.slice(start, _AT_ONCE))
                textual = np.flatnonzero(value < 0)
                value[textual] = np.arange(texts, texts + len(textual))
                texts += len(textual)
                used[space] = True
                spaces.append(space)
                values.append(value)
                data.append(rest)
                lengths.append(length[textual].astype(np.uint32))
                set_aside()
        total = sum(int(some.sum(dtype=np.int64)) for some in lengths)
        with ArrayFile(folder / "id_offsets.npy", np.int32 if total < 1 << 31 else np.int64) as offsets:
            before = 0
            offsets.append(np.zeros(1, np.int64))
            for some in lengths:
                offsets.append(before + some.cumsum(dtype=np.int64))
                before += int(some.sum(dtype=np.int64))
        kept = self._spaces
        if used.sum() == 1:
            kept = [kept[int(used.argmax())]]
            (folder / "id_space.npy").unlink()
            if not kept[0].numbered:
                (folder / "id_value.npy").unlink()
        Namespaces.of(kept).write(folder)

    def _split(self, ids: Texts) -> tuple[Integers, Int64, npt.NDArray[np.uint8], Int64]:
        """Return of R ids the namespace, the number behind (-1 for a text), all texts, and the length of each: (R,)."""
        offsets, data = string_buffers(ids)
        data, offsets = data[offsets[0] : offsets[-1]], offsets.astype(np.int64) - int(offsets[0])
        starts, stops = offsets[:-1], offsets[1:]
        space, cut, value = np.zeros(len(ids), np.uint16), starts.copy(), np.full(len(ids), -1)
        number, digits = _last_numbers(data, starts, stops)
        rows = np.flatnonzero(number >= 0)
        code = self._codes(data, starts, stops, rows, stops - digits, True)
        known = rows[code > 0]
        space[known], value[known], cut[known] = code[code > 0], number[known], stops[known]
        rows = np.flatnonzero(space == 0)
        ends = np.flatnonzero(_IS_SEPARATOR[data]) + 1
        if len(ends) and len(rows):
            place = ends.searchsorted(stops, "right") - 1
            behind = np.where(place >= 0, ends[np.maximum(place, 0)], 0)
            rows = rows[behind[rows] > starts[rows]]
            code = self._codes(data, starts, stops, rows, behind, False)
            known = rows[code > 0]
            space[known], cut[known] = code[code > 0], behind[known]
        return space, value, data[~_within(starts, cut, stops)], stops - cut

    def _codes(
        self, data: npt.NDArray[np.uint8], starts: Int64, stops: Int64, rows: Int64, cut: Int64, numbered: bool
    ) -> npt.NDArray[np.uint16]:
        """Return the namespace that each of some rows has up to a place, 0 for none: (len(rows),)."""
        texts, codes = self._of[numbered]
        if not len(texts) or not len(rows):
            return np.zeros(len(rows), np.uint16)
        until = starts.copy()
        until[rows] = cut[rows]
        begins = data[_within(starts, until, stops)]
        bounds = np.concatenate((np.zeros(1, np.int64), (until - starts)[rows].cumsum()))
        column = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(rows), [None, pa.py_buffer(bounds), pa.py_buffer(begins)]
        )
        found = pc.index_in(column, texts).fill_null(-1).to_numpy()
        return np.where(found >= 0, codes[found], np.uint16(0))


def _within(starts: Int64, cut: Int64, stops: Int64) -> Bools:
    """Return a mask of the bytes of some concatenated texts that stand before the cut in their text."""
    lengths = np.empty(2 * len(starts), np.int64)
    lengths[0::2], lengths[1::2] = cut - starts, stops - cut
    pattern = np.zeros(2 * len(starts), np.bool_)
    pattern[0::2] = True
    return pattern.repeat(lengths)


def _last_numbers(data: npt.NDArray[np.uint8], starts: Int64, stops: Int64) -> tuple[Int64, Int64]:
    """Return the number at the end of each text, -1 if there is none or it has leading zeros, and its digits."""
    number, digits = np.full(len(starts), -1), np.zeros(len(starts), np.int64)
    rows, factor = np.arange(len(starts)), 1
    value, first = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.uint8)
    for at in range(1, _DIGITS + 2):
        rows = rows[stops[rows] - at >= starts[rows]]
        byte = data[stops[rows] - at]
        isdigit = (byte >= _ZERO) & (byte <= _NINE)
        rows, byte = rows[isdigit], byte[isdigit]
        value[rows] += (byte - _ZERO).astype(np.int64) * factor
        first[rows], digits[rows] = byte, at
        factor *= 10
    good = (digits > 0) & (digits <= _DIGITS) & ((first != _ZERO) | (digits == 1))
    number[good] = value[good]
    return number, digits


class IdIndex:
    """A column of N distinct ids, and the upper halves of their hashes, ascending; all of it may be memory-mapped.

    The hash only narrows the search: a lookup compares the ids themselves, so equal hashes do no harm.
    """

    def __init__(self, ids: IdColumn, hashes: UInt32, order: npt.NDArray[np.int32]) -> None:
        """Use what `sort_hashes` returned, or the same from a file."""
        self.ids = ids
        self.hashes = hashes
        self.order = order
        self._known: dict[str, int] = {}

    @classmethod
    def build(cls, ids: pa.LargeStringArray) -> IdIndex:
        """Hash and sort a column of ids."""
        return cls(IdColumn.of(ids), *sort_hashes(hash_column(ids)))

    def __len__(self) -> int:
        return len(self.hashes)

    def find_all(self, entities: Sequence[str]) -> npt.NDArray[np.int32]:
        """Return the position of each id, -1 for unknown ones: (len(entities),)."""
        if len(entities) <= _FEW or len(self) == 0:
            return self._find_few(entities)
        try:
            wanted = texts_column(entities)
        except UnicodeEncodeError:  # a lone surrogate, which no stored id holds
            return self._find_few(entities)
        slots = np.minimum(self.hashes.searchsorted(upper_halves(hash_column(wanted))), len(self) - 1)
        found: npt.NDArray[np.int32] = self.order[slots]
        unlike = pc.indices_nonzero(pc.not_equal(self.ids.take(found), wanted))
        others = np.frombuffer(unlike.buffers()[1], np.uint64, len(unlike))  # unknown, or behind an id of equal hash
        found[others] = self._search([entities[position] for position in others.tolist()])
        return found

    def _find_few(self, entities: Sequence[str]) -> npt.NDArray[np.int32]:
        try:
            return np.array([self._known[entity] for entity in entities], np.int32)
        except KeyError:
            found = self._search(entities)
        if len(self._known) >= _REMEMBERED:
            self._known = {}
        self._known.update(zip(entities, found.tolist(), strict=True))
        return found

    def _search(self, entities: Sequence[str]) -> npt.NDArray[np.int32]:
        texts = [entity.encode(errors="surrogatepass") for entity in entities]
        values = np.array([hash_one(text) >> 32 for text in texts], np.uint32)
        starts = self.hashes.searchsorted(values).tolist()
        stops = self.hashes.searchsorted(values, "right").tolist()
        found = np.full(len(texts), -1, np.int32)
        for position, (entity, start, stop) in enumerate(zip(entities, starts, stops, strict=True)):
            for number in self.order[start:stop].tolist():
                if self.ids.one(number) == entity:
                    found[position] = number
                    break
        return found
