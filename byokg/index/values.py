"""Value lookup: the distinct property values of a graph, exact, by format variants, or approximate.

A `ValueIndex` is a `NameIndex` over values in place of names; an *entry* is one value of one property of one type of
nodes, and a column holds the entries of one property. Numbers, dates and times are compared in a canonical form
(`29/08/2017` and `August 29, 2017` are equal), all other values by letters. Identifiers, categories, names and text are
told apart by statistics of their values alone; long text and measured decimals have no entries.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rapidfuzz import process
from rapidfuzz.distance import OSA

from byokg.arrays import Int32, Int64, values_of
from byokg.errors import GraphCorrupt, at_least
from byokg.files import find_changed, list_files, write_json
from byokg.index.name_candidates import USUAL, WIDE
from byokg.index.names import LONGEST, META, NameIndex, read_index_meta
from byokg.text.names import fold_words, singular, untitled
from byokg.text.values import canonical_forms, is_wordless
from byokg.types import Value

ValueKind = Literal["identifier", "categorical", "text", "number", "date"]
"""Kinds of properties: codes that identify a node; few values that many nodes share; names and short texts; numbers;
dates and times of day."""


@dataclass(frozen=True, slots=True)
class ValueMatch:
    """A value of a property that a text may mean."""

    type: str
    """Node type; empty for nodes without one."""
    property: str
    value: Value
    """As stored."""
    score: float
    """In [0, 1]; 1 is equal after folding, or the same number, date or time."""
    exact: bool
    """True for a score of 1 by equality."""
    count: int
    """Nodes of the type with this value."""
    edge: bool = False
    """True for a property of edges; `type` is their relation then, and `count` their number."""

    def __str__(self) -> str:
        place = f" (on {self.type} edges)" if self.edge else f" ({self.type})" if self.type else ""
        return f"{self.property} = {self.value}{place}"


@dataclass(frozen=True, slots=True)
class ValueMention:
    """A piece of a question, and the values that it may mean, best first."""

    text: str
    start: int
    end: int
    """Characters of the question: half open."""
    matches: tuple[ValueMatch, ...]
    """One or more; of each property the best."""

    @property
    def score(self) -> float:
        """Return the score of the best match, in [0, 1]."""
        return self.matches[0].score


@dataclass(frozen=True, slots=True)
class IndexedProperty:
    """A property of the nodes of a type, and what is indexed of it."""

    type: str
    property: str
    kind: ValueKind
    nodes: int
    """Nodes with the property."""
    coverage: float
    """Their share of the nodes of the type, in [0, 1]."""
    distinct: int
    """Distinct values; of a server the number read, which may be fewer."""
    examples: tuple[Value, ...]
    """Most frequent values, at most three."""
    indexed: bool
    """False for long text, decimals, and values beyond the budget, which have no entries."""
    whole: bool
    """True if every distinct value has an entry."""
    least: Value | None = None
    """Lowest and highest number or date; None for other kinds."""
    most: Value | None = None
    cost: int = 0
    """Bytes of its entries, about."""
    day_first: bool = True
    """Whether slashed dates begin with the day."""
    storage: str = "string"
    """`string`, `int`, `float` or `bool`: how values are stored."""
    start: int = 0
    """The entries of the property: from `start` up to `stop`."""
    stop: int = 0
    edge: bool = False
    """True for a property of edges; `type` is their relation then, and `nodes` their number."""


@dataclass(frozen=True)
class ValueColumn:
    """The D distinct values of one property of one node type or relation, for `ValueIndex.build`."""

    type: str
    property: str
    values: pa.Array
    """(D,) strings, numbers, truth values or dates."""
    counts: Int64
    """(D,) nodes with each."""
    of: int
    """Nodes of the type."""
    whole: bool = True
    """False if further values exist, such as on a server."""
    edge: bool = False
    """True for a relation: `counts` and `of` are of its edges."""


MOST_VALUES = 1_000_000
"""Entries of an index at most, by default; the columns with fewest distinct values come first."""

_FORMAT, _VERSION = "byokg-values", 1
_TEXTS, _COUNTS, _NAMES = "values.arrow", "counts.npy", "names"
_SAMPLE = 300
"""Values of a column that decide its kind."""
_DISTINCT_NUMBERS = 10_000
"""Distinct numbers of a column up to which they have entries."""
_DECIMALS = 1000
"""The same for decimals."""
_LONG = 100
"""Mean letters of a value from which on a text is no value that a question names."""
_CODE = 24
"""Letters of a value without spaces, digits among them, from which on nobody spells it with a typo: no entries."""
_FEW = 50
"""Distinct values that always make categories, if nodes share them."""
_PROMISING = 0.4
"""Bound of the score of a value from which it is compared."""
_COVERED = 0.55
"""Share of a value's letters that must come from words like those of a question."""
_LIKE = 0.72
"""Lowest score of a similar value."""


def kind_of(values: pa.Array, counts: Int64) -> ValueKind | None:
    """Return the kind of a property by its distinct values and their frequencies; None for long text or codes.

    Identifiers are values that few nodes share and that hold digits or symbols in most words; categories are values
    that are shared by two nodes on average, or few.
    """
    distinct, nodes = len(values), int(counts.sum())
    if pa.types.is_temporal(values.type):
        return "date"
    if pa.types.is_boolean(values.type):
        return "categorical"
    unique = distinct > 0.9 * nodes and distinct >= 20
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        if pa.types.is_integer(values.type) and unique:
            bounds = pc.min_max(values)
            if bounds["max"].as_py() - bounds["min"].as_py() < 4 * distinct:
                return "identifier"
        return "number"
    some = values.take(pa.array(np.linspace(0, distinct - 1, min(distinct, _SAMPLE)).astype(np.int64))).to_pylist()
    if sum(map(len, some)) > _LONG * len(some):
        return None
    forms = [canonical_forms(text) for text in some]
    if sum(map(bool, forms)) >= 0.95 * len(some) and not any(text[:1] == "0" and text.isdecimal() for text in some):
        dated = sum(1 for each in forms if each and not each[0].lstrip("-").replace(".", "", 1).isdecimal())
        return "date" if 2 * dated > len(some) else "number"
    coded = sum(map(_is_code, some))
    if distinct > 0.5 * nodes and 2 * coded > len(some):
        return "identifier"
    return "categorical" if distinct <= 0.5 * nodes or distinct <= min(_FEW, nodes // 2) else "text"


def _is_code(text: str) -> bool:
    """True if most letters of a text are in words with digits or symbols."""
    plain = sum(len(word) for word in text.split() if word.isalpha() and len(word) > 3)
    return (any(map(str.isdigit, text)) and 2 * plain < len(text)) or "@" in text


class ValueIndex:
    """Finds which properties hold a value like a text. Threads may share it.

    Make one with `build`, or `open` one that `write` has put into a folder.
    """

    def __init__(self, properties: Sequence[IndexedProperty], names: NameIndex, counts: Int32) -> None:
        self._properties = tuple(properties)
        self._names = names
        self._counts = counts
        self._starts = [column.start for column in self._properties]
        self._restricted = cache(self._names_of)  # together no larger than the whole index

    @classmethod
    def build(cls, columns: Sequence[ValueColumn], most: int = MOST_VALUES) -> ValueIndex:
        """Index the values of some properties in memory.

        Args:
            columns: distinct values by property and type; nulls are left out.
            most: entries at most; columns of most distinct values are left out first.
        """
        described = [_described(column) for column in columns if len(column.values)]
        left, allowed = most, set[int]()
        for at in sorted(range(len(described)), key=lambda at: (described[at][0].distinct, at)):
            size = described[at][0].distinct
            if described[at][0].indexed and size <= left:
                left -= size
                allowed.add(at)
        texts: list[pa.Array] = [pa.array([], pa.large_string())]
        counts, found, start = [np.empty(0, np.int32)], [], 0
        for at, (facts, column) in enumerate(described):
            if at not in allowed:
                found.append(replace(facts, indexed=False, whole=False, cost=0, start=start, stop=start))
                continue
            stop = start + len(column.values)
            texts.append(column.values.cast(pa.large_string()))
            counts.append(column.counts.astype(np.int32))
            found.append(replace(facts, start=start, stop=stop))
            start = stop
        return cls(found, NameIndex.build(pa.concat_arrays(texts)), np.concatenate(counts))

    @classmethod
    def open(cls, folder: str | Path, made_for: str | None = None) -> ValueIndex:
        """Map a saved index read-only.

        Raises:
            GraphCorrupt: files are missing, cut short or of another version, or `made_for` differs.
        """
        folder = Path(folder)
        meta = read_index_meta(folder, _FORMAT, _VERSION, GraphCorrupt)
        if made_for is not None and meta["made_for"] != made_for:
            raise GraphCorrupt(folder, "these values belong to another graph")
        try:
            properties = [IndexedProperty(**{**one, "examples": tuple(one["examples"])}) for one in meta["properties"]]
            texts = pa.ipc.open_file(pa.memory_map(str(folder / _TEXTS))).get_batch(0).column("text")
            counts = np.load(folder / _COUNTS, mmap_mode="r", allow_pickle=False).view(np.ndarray)
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise GraphCorrupt(folder, str(error)) from error
        return cls(properties, NameIndex.open(folder / _NAMES, made_for, texts), counts)

    def write(self, folder: str | Path, made_for: str = "") -> None:
        """Write the index into an empty folder; `made_for` identifies the graph."""
        folder = Path(folder)
        texts = self._names.table.names
        batch = pa.RecordBatch.from_arrays([texts], ["text"])
        with pa.OSFile(str(folder / _TEXTS), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        np.save(folder / _COUNTS, self._counts, allow_pickle=False)
        properties = [asdict(column) for column in self._properties]
        meta = {"format": _FORMAT, "version": _VERSION, "made_for": made_for, "properties": properties}
        write_json(folder / META, meta | {"files": list_files(folder)})
        (folder / _NAMES).mkdir()
        self._names.write_beside(folder / _NAMES, made_for)

    @staticmethod
    def verify(folder: str | Path, made_for: str | None = None) -> int:
        """Read every file of a saved index and compare its checksum; return the bytes of all.

        Raises:
            GraphCorrupt: a file has changed, or as for `open`.
        """
        folder = Path(folder)
        files = read_index_meta(folder, _FORMAT, _VERSION, GraphCorrupt)["files"]
        if changed := find_changed(folder, files):
            raise GraphCorrupt(folder, changed)
        files |= NameIndex.verify(folder / _NAMES, made_for)["files"]
        return sum(file["bytes"] for file in files.values())

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._counts)

    def properties(self) -> tuple[IndexedProperty, ...]:
        """Return all properties, those without entries among them, in the order of the schema."""
        return self._properties

    def property(self, type: str, property: str) -> IndexedProperty | None:
        """Return the facts of one property; None if no node of the type has it."""
        return self._by_key.get((type, property))

    @cached_property
    def _by_key(self) -> dict[tuple[str, str], IndexedProperty]:
        return {(column.type, column.property): column for column in self._properties}

    def values(self, type: str, property: str, most: int = 20) -> tuple[ValueMatch, ...]:
        """Return the most frequent values of a property, then in the order of their texts, each with a score of 1."""
        column = self.property(type, property)
        if column is None or not column.indexed:
            return ()
        counts = self._counts[column.start : column.stop]
        edge = -np.partition(-counts, most - 1)[most - 1] if most < len(counts) else 0
        some = (np.flatnonzero(counts >= edge) + column.start).tolist()
        texts = dict(zip(some, self._texts(some), strict=True))
        some.sort(key=lambda entry: (-int(self._counts[entry]), texts[entry]))
        return tuple(self._match(entry, 1.0, True) for entry in some[:most])

    def formats(self, column: IndexedProperty) -> tuple[str, ...]:
        """Return the formats of the dates and times of a property, most frequent first (`dd/mm/yyyy`); at most four."""
        entries = np.linspace(column.start, column.stop - 1, min(column.stop - column.start, _FORMATTED))
        found = Counter(_date_format(text, column.day_first) for text in self._texts(entries.astype(np.int64).tolist()))
        return tuple(sorted(found, key=lambda one: (-found[one], one))[:_FORMATS])

    def holds(self, column: IndexedProperty, text: str, part: Literal["=", "contains", "starts", "ends"]) -> bool:
        """True if a value of a property equals a text, or contains, starts or ends with it, in letters of any case."""
        compared = {"=": pc.equal, "contains": pc.match_substring, "starts": pc.starts_with, "ends": pc.ends_with}
        values = self._names.table.names.slice(column.start, column.stop - column.start)
        # Arrow compares without case by patterns, which may not be long
        return bool(pc.any(compared[part](pc.utf8_lower(values), text.lower())).as_py())

    def find(
        self,
        text: str,
        *,
        types: Collection[str] | None = None,
        properties: Collection[str] | None = None,
        limit: int = 10,
        least: float = _LIKE,
    ) -> tuple[ValueMatch, ...]:
        """Return the values that a text may mean, best first: equal ones, or else similar ones.

        Equal are values of the same folded words, and other formats of the same number, date or time. Similar ones are
        compared by letters, with words in any order, in the singular, without titles, or abbreviated.
        Ties are broken by the number of nodes, then by the order of the schema.

        Args:
            text: a mention or literal.
            types: node types to look at; None for all.
            properties: likewise.
            limit: matches at most.
            least: lowest score of a similar value, in [0, 1].

        Raises:
            ConfigError: `limit` is out of range.
        """
        at_least(1, "finds nothing", limit=limit)
        wanted = frozenset(
            at
            for at, column in enumerate(self._properties)
            if (types is None or column.type in types) and (properties is None or column.property in properties)
        )
        whole = len(wanted) == len(self._properties)
        exact = [entry for entry in self._equal(text) if whole or self._column(entry) in wanted]
        scored = dict.fromkeys(exact, 1.0) if exact else self._similar(text, wanted, whole, least)
        order = sorted(scored, key=lambda entry: (-scored[entry], -int(self._counts[entry]), entry))
        return tuple(self._match(entry, scored[entry], bool(exact)) for entry in order[:limit])

    def equal(self, text: str) -> tuple[ValueMatch, ...]:
        """Return the values equal to a text: the same folded words, or the same number, date or time."""
        return tuple(self._match(entry, 1.0, True) for entry in self._equal(text))

    def starting(self, word: str) -> int:
        """Return the number of words in the longest value that starts with a folded word; 0 if none does."""
        return self._names.longest_from(word)

    def nearest(self, texts: Sequence[str], word: str) -> list[float]:
        """Return for each text the likeness of the value nearest to it in letters; 0 for none.

        Args:
            texts: pieces of a question that all hold `word`.
            word: a folded word that may be misspelt; the value must hold one like it.
        """
        words = list(dict.fromkeys(one for text in texts for one in fold_words(text)))
        rows = self._names.candidates.around(word, words, _COVERED)
        if not len(rows) or not texts:
            return [0.0] * len(texts)
        values = [" ".join(fold_words(value)) for value in self._names.table.spelled(rows)]
        asked = [" ".join(fold_words(text)) for text in texts]
        scores = process.cdist(asked, values, scorer=OSA.normalized_similarity, score_cutoff=_LIKE)
        best: list[float] = scores.max(axis=1).tolist()
        return best

    # Inside

    def _column(self, entry: int) -> int:
        return bisect_right(self._starts, entry) - 1

    def _texts(self, entries: Sequence[int]) -> list[str]:
        texts: list[str] = self._names.table.names.take(pa.array(entries, pa.int64())).to_pylist()
        return texts

    def _match(self, entry: int, score: float, exact: bool) -> ValueMatch:
        column = self._properties[self._column(entry)]
        value = _stored(self._texts([entry])[0], column.storage)
        return ValueMatch(column.type, column.property, value, score, exact, int(self._counts[entry]), column.edge)

    def _equal(self, text: str) -> list[int]:
        """Return the entries equal to a text, as words, or as number, date or time."""
        found = dict.fromkeys(self._names.exact(text).tolist())
        forms = canonical_forms(text)
        written = [(form, entry) for form in forms for entry in self._canonical.get(form, ())]
        usual = [entry for form, entry in written if form == _preferred(forms, self._properties[self._column(entry)])]
        return list(found | dict.fromkeys(usual or [entry for _, entry in written]))

    @cached_property
    def _canonical(self) -> dict[str, list[int]]:
        """Return the entries of numbers, dates and times by their canonical forms."""
        found: dict[str, list[int]] = {}
        for column in self._properties:
            if column.kind not in ("number", "date") or column.stop == column.start:
                continue
            texts = self._names.table.names.slice(column.start, column.stop - column.start)
            for entry, form in enumerate(_canonical(texts, column), column.start):
                if form:
                    found.setdefault(form, []).append(entry)
        return found

    def _similar(self, text: str, wanted: frozenset[int], whole: bool, least: float) -> dict[int, float]:
        """Return similar entries with their scores."""
        if canonical_forms(text) and is_wordless(text):
            return {}  # 1990 is not 1991
        texts = list(dict.fromkeys((text, untitled(text))))
        found = self._nearest(self._names, texts, 0, least)
        scored = {entry: score for entry, score in found.items() if whole or self._column(entry) in wanted}
        if not scored and not whole:
            for at in sorted(wanted):
                column = self._properties[at]
                if column.stop > column.start:
                    scored |= self._nearest(self._restricted(column.start, column.stop), texts, column.start, least)
        return scored

    def _nearest(self, names: NameIndex, texts: Sequence[str], first: int, least: float) -> dict[int, float]:
        scored: dict[int, float] = {}
        for effort in (USUAL, WIDE):
            for text in texts:
                if not (words := fold_words(text)) or len(text) > LONGEST:
                    continue
                rows, bounds = names.candidates.like(words, len(text), effort)
                rows = rows[bounds >= _PROMISING]
                scores = [likeness(text, value) for value in names.table.spelled(rows)]
                owners, at = names.table.bearers(rows)
                for owner, row in zip(owners.tolist(), at.tolist(), strict=True):
                    if (score := scores[row]) >= least:
                        scored[first + owner] = max(score, scored.get(first + owner, 0.0))
            if scored:
                break
        return scored

    def _names_of(self, start: int, stop: int) -> NameIndex:
        """Return an index over the entries of one property, of which the whole index lists too few."""
        return NameIndex.build(self._names.table.names.slice(start, stop - start))


def likeness(text: str, value: str) -> float:
    """Return how much a text resembles a value, in [0, 1]; below 1 unless equal.

    The best of: letters in order, of which one left out, added, replaced or swapped with the next counts once; words in
    any order; equal words in the singular (0.99); all words of the text among those of the value, some abbreviated (up
    to 0.95, by the share of letters).
    """
    asked, stored = fold_words(text), fold_words(value)
    if [singular(word) for word in asked] == [singular(word) for word in stored]:
        return 0.99 if asked != stored else 1.0
    best = OSA.normalized_similarity(" ".join(asked), " ".join(stored))
    if len(asked) > 1:
        best = max(best, 0.98 * OSA.normalized_similarity(" ".join(sorted(asked)), " ".join(sorted(stored))))
    if (covered := _abbreviated(asked, stored)) > 0:
        best = max(best, 0.6 + 0.35 * covered)
    return min(0.98, best)


def _abbreviated(asked: Sequence[str], stored: Sequence[str]) -> float:
    """Return the share of letters of the stored words that stand in the text, some abbreviated; 0 if others do, too."""
    left = list(stored)
    covered = 0.0
    for word in asked:
        same = next((other for other in left if singular(word) == singular(other)), "")
        full = same or next((other for other in left if _abbreviates(word, other)), "")
        if not full:
            return 0.0
        covered += len(full) * (1.0 if same else 0.9)
        left.remove(full)
    return covered / max(sum(map(len, stored)), 1)


def _abbreviates(word: str, full: str) -> bool:
    """True if letters are the beginning of a word, or its first letter with some of the others, in order."""
    if len(word) >= len(full) or word[:1] != full[:1] or not word.isalpha():
        return False
    letters = iter(full)
    return full.startswith(word) or (len(word) <= _SHORT and all(letter in letters for letter in word))


_SHORT = 4
"""Letters of an abbreviation that leaves out letters within a word."""


def _described(column: ValueColumn) -> tuple[IndexedProperty, ValueColumn]:
    """Return the facts of a column, and the column without nulls."""
    kept = values_of(column.values.is_valid())
    values, counts = column.values.drop_null(), column.counts[kept]
    kind = kind_of(values, counts)
    order = np.lexsort((np.arange(len(counts)), -counts))[:3]
    stored = values.take(pa.array(order))
    storage = _storage(values.type)
    examples = tuple(_stored(text, storage) for text in stored.cast(pa.large_string()).to_pylist())
    text_bytes = int(pc.sum(pc.binary_length(values.cast(pa.large_string()))).as_py() or 0)
    indexed = kind is not None and not _left_out(kind, values, text_bytes)
    facts = IndexedProperty(
        column.type,
        column.property,
        kind or "text",
        int(counts.sum()),
        int(counts.sum()) / max(column.of, 1),
        len(values),
        tuple(one if not isinstance(one, str) else one[:_LONG] for one in examples),
        indexed,
        indexed and column.whole,
        cost=2 * text_bytes + _ENTRY * len(values),
        day_first=_day_first(values) if kind == "date" else True,
        storage=storage,
        edge=column.edge,
    )
    return _ranged(facts, values), replace(column, values=values, counts=counts)


_ENTRY = 80
"""Bytes of an entry beside its text, about."""


def _left_out(kind: ValueKind, values: pa.Array, text_bytes: int) -> bool:
    """True for values that no question spells: decimals by the thousand, and long codes."""
    if kind == "number":
        return len(values) > _DISTINCT_NUMBERS or (pa.types.is_floating(values.type) and len(values) > _DECIMALS)
    if kind != "identifier" or text_bytes < _CODE * len(values):
        return False
    some = values.slice(0, _SAMPLE).cast(pa.large_string()).to_pylist()
    return not any(" " in text or "@" in text for text in some)


def _ranged(facts: IndexedProperty, values: pa.Array) -> IndexedProperty:
    """Return the facts with the lowest and highest number or date."""
    if facts.kind not in ("number", "date"):
        return facts
    if facts.storage != "string" or not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        bounds = pc.min_max(values)
        ends = pa.array([bounds["min"], bounds["max"]], values.type).cast(pa.large_string()).to_pylist()
    else:
        keyed = [(form, text) for text in values.to_pylist() if (form := _preferred(canonical_forms(text), facts))]
        if facts.kind == "number":
            keyed.sort(key=lambda each: float(each[0]))
        else:
            keyed.sort()
        ends = [keyed[0][1], keyed[-1][1]]
    return replace(facts, least=_stored(ends[0], facts.storage), most=_stored(ends[1], facts.storage))


def _storage(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "bool"
    return "int" if pa.types.is_integer(kind) else "float" if pa.types.is_floating(kind) else "string"


def _stored(text: str, storage: str) -> Value:
    """Return a value as the graph stores it."""
    if storage == "int":
        return int(text)
    if storage == "float":
        return float(text)
    return text == "true" if storage == "bool" else text


_FORMATTED, _FORMATS = 10_000, 4
"""Values of a property whose formats are compared, and formats at most."""

_DATE_PARTS = re.compile(r"\d+|[^\W\d_]{3,}\.?|.", re.DOTALL)


def _date_format(text: str, day_first: bool) -> str:
    """Return the format of a date or time: `d` of the day, `m` of the month, `yyyy`, and `hh:mm:ss`."""
    parts = _DATE_PARTS.findall(text)
    if not any(map(str.isdigit, text)):
        return f'"{text}"'
    spelled = any(len(part) > 2 and part[0].isalpha() for part in parts)
    dated = "md" if re.match(r"\d{4}", text) or not day_first else "dm"
    if spelled or not re.search(r"\d{4}", text):
        dated = "d" if spelled else ""
    letters = [*dated, *"hmsf"]
    written: list[str] = []
    for part in parts:
        if part.isdigit():
            year = len(part) == 4 and "yyyy" not in written
            written.append("yyyy" if year else (letters.pop(0) if letters else "0") * len(part))
        else:
            written.append("Month" if len(part) > 2 else part)
    return "".join(written)


_SLASHED = re.compile(r"(\d{1,2})[/.-](\d{1,2})[/.-]\d{4}")


def _day_first(values: pa.Array) -> bool:
    """True unless some slashed date can only begin with the month; then it does."""
    return not any(
        (found := _SLASHED.fullmatch(text)) is not None and int(found[2]) > 12
        for text in values.slice(0, 1 << 16).cast(pa.large_string()).to_pylist()
    )


_CANONICAL = (
    r"^(?:0|-?[1-9]\d{0,8}|[1-9]\d{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:[01]\d|2[0-3]):[0-5]\d(?::\d\d)?)$"
)
"""Numbers, dates and times of day that are their own canonical form."""
_SLASHED_PARTS = r"^(?P<first>\d{1,2})[/-](?P<second>\d{1,2})[/-](?P<year>[12]\d{3})$"
_EVERY_MONTH = 28
"""Days that every month has."""


def _canonical(texts: pa.Array | pa.ChunkedArray, column: IndexedProperty) -> list[str | None]:
    """Return the preferred canonical form of each text; empty, or None, for one that has none.

    The usual forms are written by array operations, others one by one.
    """
    texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    parts = pc.extract_regex(texts, _SLASHED_PARTS)
    first, second, year = (pc.struct_field(parts, at) for at in range(3))
    one, other = (pc.cast(part, pa.int8()) for part in (first, second))
    least, most = pc.min_element_wise(one, other), pc.max_element_wise(one, other)
    known = pc.and_(pc.and_(pc.greater(least, 0), pc.less_equal(least, 12)), pc.less_equal(most, _EVERY_MONTH))
    day_first = pc.or_(
        pc.greater(one, 12), pc.and_(pc.less_equal(other, 12), column.day_first and column.kind == "date")
    )
    month, day = (pc.utf8_lpad(pc.if_else(day_first, *both), 2, "0") for both in ((second, first), (first, second)))
    slashed = pc.if_else(known, pc.binary_join_element_wise(year, month, day, pa.scalar("-", texts.type)), None)
    forms: list[str | None] = pc.if_else(pc.match_substring_regex(texts, _CANONICAL), texts, slashed).to_pylist()
    rest = [at for at, form in enumerate(forms) if form is None]
    for at, text in zip(rest, texts.take(pa.array(rest, pa.int64())).to_pylist(), strict=True):
        forms[at] = _preferred(canonical_forms(text), column)
    return forms


def _preferred(forms: Sequence[str], column: IndexedProperty) -> str:
    """Return the canonical form of a text among the values of a property: of two dates, that in the property's order.

    Empty if there is none.
    """
    if not forms:
        return ""
    return forms[-1] if column.kind == "date" and column.day_first else forms[0]
