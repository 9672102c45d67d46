"""Name lookup among millions, exact after folding or approximate, in memory or mapped from files.

`NameIndex` does both; `NameSearch` is the protocol of entity linking for it and for `dense.DenseNames`. Approximate
scores are those of thefuzz, rapidfuzz's WRatio of the processed strings, if parts of a text are made of whole words.

A saved index is a folder of flat files, mapped into memory when it is opened. Its `meta.json` holds format, version,
the identity of the owners' numbering, and size and SHA-256 of every other file: `names.arrow` and `words.arrow`
(spellings and vocabulary), and one `.npy` file for each array of `NameArrays` and `WordArrays`. An index over the names
of a graph has no `names.arrow`, as they stand in the graph. Equal input gives equal bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rapidfuzz import fuzz, process
from rapidfuzz.utils import default_process

from byokg.arrays import Int64
from byokg.errors import ByokgError, ConfigError, GraphCorrupt, at_least, shares
from byokg.files import find_changed, find_missing, list_files, write_json
from byokg.index.name_candidates import FAR, FAR_PART, PART, SET, USUAL, VERY_FAR, WIDE, Effort, NameCandidates
from byokg.index.name_table import MASK, NameArrays, NameTable, set_hash
from byokg.index.vocabulary import Texts, Vocabulary, WordArrays
from byokg.text.names import (
    ARTICLES,
    FUNCTION_WORDS,
    QUESTION_WORDS,
    encodable,
    fold,
    fold_words,
    leads_with_article,
    name_essence,
    normalize_name,
    respelt_words,
    singular,
    untitled,
)


@dataclass(frozen=True)
class NameMatch:
    """A name similar to the query text."""

    owner: int
    """Number of the name's owner: a node's number in its graph. Several names may have one owner, and one name several
    owners, each of them a match of its own."""
    name: str
    """As it was given to the index."""
    score: float
    """In [0, 1]; 1 is equal (after folding, or in direction)."""


class NameSearch(Protocol):
    """Finds names approximately: by letters (`names`) or by meaning (`dense`)."""

    def search(self, texts: Sequence[str], k: int) -> list[list[NameMatch]]:
        """Return the k best matches of each text, best first, never flattened across texts.

        A list is shorter where fewer names exist or pass the index's cutoff, and empty for a text of nothing that
        can be compared (empty, punctuation, control characters).
        """


_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u0f00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Letters of scripts that leave no space between words: Thai, Lao, Tibetan, Burmese, Khmer, Japanese, Chinese."""

_UNTELLING = FUNCTION_WORDS | QUESTION_WORDS

_LOOKED_AT, _FEW_MORE, _RUN = 1 << 13, 2, 12
"""Names with one word up to which they are looked at; words that these may have beside those of a text; words of a run
that tell something."""

_WHOLE = 4
"""A name of fewer letters is not taken for a part of a longer text; such a text only for a whole word of a name."""


def compared(text: str) -> str:
    """Return the compared form of a name or mention: small letters and digits without accents, all else blank.

    thefuzz's `full_process`, which keeps accents, and folding of these. Empty for a text without letters and digits.
    """
    return str(default_process(text if text.isascii() else fold(text)))


def scores(text: str, names: Sequence[str], least: float) -> list[tuple[int, float]]:
    """Compare a text with names.

    Args:
        text: what `compared` gives.
        names: N names as they are written.
        least: score in [0, 1] that is worth telling.

    Returns:
        Position and score of each name that reaches `least` and more than 0, in no order that may be relied on.
    """
    plain = [name if name.isascii() else fold(name) for name in names]
    found = process.extract(
        text, plain, scorer=fuzz.WRatio, processor=default_process, limit=None, score_cutoff=100 * least
    )
    scored = [(at, _of_words(text, name, score) / 100) for name, score, at in found]
    return [(at, score) for at, score in scored if score > 0 and score >= least]


def _of_words(text: str, name: str, score: float) -> float:
    """Return the score of a text and a name, in percent, without what lies inside a word: `love` is not in `Slovene`.

    A part of the longer one counts as far as it is made of whole words; a text that stands inside a longer word counts
    nothing. Scripts that leave no space between words keep the score of any part.
    """
    if _by_chance(text, name):
        return float(fuzz.ratio(text, compared(name)))
    name = compared(name)
    if _UNSPACED.search(text) is not None or _UNSPACED.search(name) is not None:
        return score
    if begins_inside(text, name):
        return 0.0
    shorter, longer = sorted((text, name), key=len)
    if len(longer) < FAR * len(shorter):
        return score
    scale = PART if len(longer) <= VERY_FAR * len(shorter) else FAR_PART
    words, within = shorter.split(), longer.split()
    shared = 100.0 if not set(words).isdisjoint(within) else _best_run(sorted(words), sorted(within))
    part = scale * max(_best_run(words, within), SET * shared)
    return min(score, max(float(fuzz.ratio(text, name)), part))


def begins_inside(text: str, other: str) -> bool:
    """Return True if the shorter of two texts stands in the longer one, but nowhere from the beginning of a word."""
    shorter, longer = sorted((text, other), key=len)
    if len(shorter) == len(longer) or shorter not in longer or _UNSPACED.search(longer) is not None:
        return False
    return f" {shorter}" not in f" {longer}"


def _best_run(words: Sequence[str], within: Sequence[str]) -> float:
    """Return how much some words resemble the most similar run of others, in percent; plurals are equal."""
    text, best = " ".join(words), 0.0
    for size in range(max(1, len(words) - 1), len(words) + 2):
        for first in range(len(within) - size + 1):
            run = within[first : first + size]
            if [singular(word) for word in run] == [singular(word) for word in words]:
                return 100.0
            best = max(best, float(fuzz.ratio(text, " ".join(run), score_cutoff=best)))
    return best


def _by_chance(text: str, name: str) -> bool:
    """True if a name is so short that it is part of anything, or the text is and no whole word of the name."""
    if min(len(text), len(name)) >= 2 * _WHOLE:
        return False
    name = compared(name)
    shorter, longer = sorted((len(text), len(name)))
    if shorter >= _WHOLE or longer < FAR * shorter:
        return False
    return len(name) < len(text) or text not in name.split()


def _short_scores(text: str, names: Sequence[str], least: float) -> list[tuple[int, float]]:
    """Compare a text with names less their leading article and titles (`Beattles`).

    A text of two words is also compared with the first and last words of names, at 0.95 (`Barak Obama`).

    Args and result as those of `scores`; a text with an article or titles is also compared without, with whole names.
    """
    bare, found = compared(untitled(text)), []
    for at, name in enumerate(names):
        whole, short = compared(name), compared(untitled(name)).split()
        pairs = (
            [(1.0, text, " ".join(short))] if short != whole.split() else [(1.0, bare, whole)] if bare != text else []
        )
        if len(short) > len(text.split()) == 2:
            pairs.append((SET, text, f"{short[0]} {short[-1]}"))
        best = max((scale * fuzz.ratio(one, other) / 100 for scale, one, other in pairs), default=0.0)
        if best >= least and best > 0:
            found.append((at, best))
    return found


def _short_ratios(
    folded: Sequence[str], names: Sequence[str], spellings: Sequence[str], cutoff: float
) -> npt.NDArray[np.float32]:
    """Return rapidfuzz's ratio of texts and names, or of their short forms, in percent; 0 below a cutoff."""
    short = [normalize_name(untitled(spelling)) for spelling in spellings]
    whole, other = (
        process.cdist(folded, some, scorer=fuzz.ratio, score_cutoff=100 * cutoff) for some in (names, short)
    )
    best: npt.NDArray[np.float32] = np.maximum(whole, other)
    return best


_QUALIFIED = re.compile(r"(\S.*?)\s+\(([^()]*)\)\s*")


def unqualified(name: str) -> str:
    """Return a name without its disambiguating qualifier; empty if it has none.

    >>> unqualified("Titanic (1997 film)"), unqualified("Titanic")
    ('Titanic', '')
    """
    found = _QUALIFIED.fullmatch(name)
    return found[1] if found is not None else ""


def qualifier(name: str) -> str:
    """Return the qualifier that separates a name from its namesakes (`1997 film`); empty if there is none."""
    found = _QUALIFIED.fullmatch(name)
    return found[2] if found is not None else ""


META = "meta.json"
FORMAT = "byokg-names"
VERSION = 2

_NAMES, _WORDS = "names.arrow", "words.arrow"
_NAME_ARRAY, _WORD_ARRAY = "name_{}.npy", "word_{}.npy"


def read_index_meta(
    folder: Path, format: str, version: int, error: Callable[[Path, str], ByokgError]
) -> dict[str, Any]:
    """Read the `meta.json` of a saved index, and check that its files are there in full length.

    Raises what `error` makes of the folder and a reason.
    """
    try:
        meta = json.loads((folder / META).read_bytes())
        if (meta["format"], meta["version"]) != (format, version):
            found = f"{meta['format']} {meta['version']}"
            raise error(folder, f"it has the format {found}, this byokg reads {format} {version}")
        missing = find_missing(folder, meta["files"])
    except FileNotFoundError as problem:
        raise error(folder, f"{META} is missing") from problem
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise error(folder, f"{META}: {problem!r}") from problem
    if missing:
        raise error(folder, missing)
    return dict(meta)


def _read_meta(folder: Path, made_for: str | None) -> dict[str, Any]:
    meta = read_index_meta(folder, FORMAT, VERSION, GraphCorrupt)
    if made_for is not None and meta["made_for"] != made_for:
        raise GraphCorrupt(folder, "these names belong to another graph")
    return meta


def _write_column(path: Path, column: Texts) -> None:
    batch = pa.RecordBatch.from_arrays([column], ["text"])
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


def _map_column(path: Path) -> Texts:
    return pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0).column("text")


def _write_array(folder: Path, pattern: str, name: str, array: npt.NDArray[Any]) -> None:
    with (folder / pattern.format(name)).open("wb") as file:
        np.save(file, array, allow_pickle=False)


def _write_rest(folder: Path, table: NameTable, made_for: str) -> None:
    """Write a table, but for its names and `NameArrays`."""
    _write_column(folder / _WORDS, table.vocabulary.words)
    for field in fields(WordArrays):
        _write_array(folder, _WORD_ARRAY, field.name, getattr(table.vocabulary.arrays, field.name))
    counts = {
        "names": len(table),
        "words": len(table.vocabulary),
        "entries": len(table) + len(table.arrays.further_owners),
    }
    meta = {"format": FORMAT, "version": VERSION, "made_for": made_for, **counts, "files": list_files(folder)}
    write_json(folder / META, meta)


def _map_array(folder: Path, pattern: str, name: str) -> npt.NDArray[Any]:
    # As a plain array: the memmap subclass would slow down every operation on it.
    mapped: npt.NDArray[Any] = np.load(folder / pattern.format(name), mmap_mode="r", allow_pickle=False).view(
        np.ndarray
    )
    return mapped


def _map_arrays(folder: Path, pattern: str, kind: type) -> dict[str, npt.NDArray[Any]]:
    return {field.name: _map_array(folder, pattern, field.name) for field in fields(kind)}


LONGEST = 1000
"""Letters up to which a text is taken for a mention; a longer one resembles no name."""

_ENTRIES_AT_ONCE = 1 << 16

_FIRST = 12
"""Names compared before the score to reach is known."""

_TEXTS_KEPT = 1 << 8
"""Texts with remembered results: those of one question are looked up repeatedly."""

_WELL = 0.8
"""Score below which a name hardly resembles a text; more names are compared then, should such scores be wanted."""

_CHANCE = 0.15
"""How much higher a score may be than its bound, for letters that unrelated words share."""


class NameIndex:
    """Finds who bears a name; several may bear one name, and one may bear several.

    Make one with `build`, or `open` one that `write` has put into a folder. Nothing changes after construction, so
    threads may share it.
    """

    def __init__(self, table: NameTable) -> None:
        self._table = table
        numbers = table.vocabulary.find(sorted(ARTICLES)).tolist()
        self._articles = tuple(number for number in numbers if number >= 0)
        self._rows = lru_cache(_TEXTS_KEPT)(self._equal)
        self._like = lru_cache(_TEXTS_KEPT)(self._resembling)

    @property
    def table(self) -> NameTable:
        """Return the names and who bears them."""
        return self._table

    @cached_property
    def candidates(self) -> NameCandidates:
        """Return the generator of rows that are worth a comparison with a text."""
        return NameCandidates(self._table)

    @classmethod
    def build(cls, names: Iterable[str] | pa.Array, owners: Iterable[int] | None = None) -> NameIndex:
        """Index names in memory.

        Args:
            names: E names, or an Arrow column of them; blank ones and nulls are left out.
            owners: who bears each, numbers from 0; None numbers the names in their order.

        Raises:
            ConfigError: there are not as many owners as names.
        """
        column = names if isinstance(names, pa.Array) else pa.array(map(encodable, names), pa.large_string())
        if column.type != pa.large_string():
            column = column.cast(pa.large_string())
        numbers = None if owners is None else np.fromiter(owners, np.int64)
        if numbers is not None and len(numbers) != len(column):
            raise ConfigError(f"{len(numbers)} owners for {len(column)} names; give each name one")
        return cls(NameTable.build(column, numbers))

    @classmethod
    def of(cls, entries: Iterable[tuple[int, str]]) -> NameIndex:
        """Index owners and their names in memory, without holding them as Python objects."""
        names, owners = [], []
        entries = iter(entries)
        while some := list(islice(entries, _ENTRIES_AT_ONCE)):
            owners.append(np.fromiter((owner for owner, _ in some), np.int64, len(some)))
            names.append(pa.array([encodable(name) for _, name in some], pa.large_string()))
        column = pa.concat_arrays(names) if names else pa.array([], pa.large_string())
        return cls(NameTable.build(column, np.concatenate([np.empty(0, np.int64), *owners])))

    @classmethod
    def open(cls, folder: str | Path, made_for: str | None = None, names: Texts | None = None) -> NameIndex:
        """Map a saved index read-only. Costs milliseconds at any size; `verify` checks the content.

        Args:
            folder: written by `write` or `build_in`.
            made_for: required identity of the owners' numbering; None takes any.
            names: the names given to `build_in`.

        Raises:
            GraphCorrupt: files are missing, cut short or of another version, or `made_for` differs.
        """
        folder = Path(folder)
        _read_meta(folder, made_for)
        try:
            words = Vocabulary(_map_column(folder / _WORDS), WordArrays(**_map_arrays(folder, _WORD_ARRAY, WordArrays)))
            arrays = NameArrays(**_map_arrays(folder, _NAME_ARRAY, NameArrays))
            if (folder / _NAMES).exists():
                return cls(NameTable(_map_column(folder / _NAMES), None, words, arrays))
        except (OSError, ValueError, pa.ArrowException) as error:
            raise GraphCorrupt(folder, str(error)) from error
        if names is None:
            raise GraphCorrupt(folder, "its names stand in the graph that it was made for; open it with that")
        return cls(NameTable(names, arrays.owners, words, arrays))

    def write(self, folder: str | Path, made_for: str = "") -> None:
        """Write the index into an empty folder; `made_for` identifies the owners' numbering."""
        _write_column(Path(folder) / _NAMES, self._table.spellings())
        self.write_beside(folder, made_for)

    def write_beside(self, folder: str | Path, made_for: str = "") -> None:
        """Write an index whose owners are the positions of its names into an empty folder, without the names.

        `open` must be given the names.
        """
        for field in fields(NameArrays):
            _write_array(Path(folder), _NAME_ARRAY, field.name, getattr(self._table.arrays, field.name))
        _write_rest(Path(folder), self._table, made_for)

    @classmethod
    def build_in(cls, folder: str | Path, names: Texts, made_for: str = "") -> None:
        """Index names that stand in a file already, and write the index into an empty folder, part by part.

        Args:
            folder: target. The names are not written again, and `open` must be given them.
            names: E names, whose positions are their owners; nulls and blank ones are left out.
            made_for: identity of the owners' numbering.
        """
        place = Path(folder)

        def keep(name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
            _write_array(place, _NAME_ARRAY, name, array)
            return _map_array(place, _NAME_ARRAY, name)

        _write_rest(place, NameTable.build(names, None, keep), made_for)

    @staticmethod
    def verify(folder: str | Path, made_for: str | None = None) -> dict[str, Any]:
        """Read every file of a saved index and compare its checksum; return the content of its `meta.json`.

        Raises:
            GraphCorrupt: a file has changed, or as for `open`.
        """
        meta = _read_meta(Path(folder), made_for)
        if changed := find_changed(Path(folder), meta["files"]):
            raise GraphCorrupt(folder, changed)
        return meta

    def __len__(self) -> int:
        """Return the number of distinct spellings."""
        return len(self._table)

    # Whole names and words

    def exact(self, text: str) -> Int64:
        """Return who bears a name equal to `text` after folding, ascending."""
        return self._owners(self._rows(text))

    def bearing(self, texts: Sequence[str]) -> list[Int64]:
        """Return for each text who bears a name equal to it after folding, ascending."""
        return [self.exact(text) for text in texts]

    def knows(self, text: str) -> bool:
        """True if a name is equal to `text` after folding."""
        return len(self._rows(text)) > 0

    def writes(self, text: str) -> bool:
        """True if a name has exactly this spelling."""
        return len(self._written(text)) > 0

    def spelled(self, text: str) -> Int64:
        """Return who bears a name that is written exactly so, ascending."""
        return self._owners(self._written(text))

    def has_word(self, word: str) -> bool:
        """True if a folded word occurs in some name."""
        return self._table.vocabulary.number(word) >= 0

    def longest_from(self, word: str) -> int:
        """Return the number of words in the longest name that starts with a folded word; 0 when none does.

        Leading articles are no part of names here.
        """
        number = self._table.vocabulary.number(word)
        return int(self._table.arrays.longest[number]) if number >= 0 else 0

    # Resemblance

    def search(self, texts: Sequence[str], k: int = 3, cutoff: float = 0.6) -> list[list[NameMatch]]:
        """Return the owners of the names most like each text, best first, as a comparison with every name would.

        Scores are those of thefuzz's `process.extract` (WRatio), but accents do not matter, a part of a longer text
        counts as far as it is made of whole words (`love` does not resemble `Slovene`), and a name of less than four
        letters is never found in a part of a text. An owner of several such names comes once, with the best. Of names
        that resemble no text so, the short forms do (see `_short_scores`).

        Args:
            texts: mentions; one of punctuation alone, or of more than `LONGEST` letters, finds nothing.
            k: owners for each text at most.
            cutoff: lowest score in [0, 1]. A shared word gives 0.855, whatever the rest of the names; below that, and
                among names of equal score, the result may lack names that a full comparison would find.

        Raises:
            ConfigError: `k` or `cutoff` is out of range.
        """
        at_least(1, "finds nothing", k=k)
        shares(cutoff=cutoff)
        return [list(self._like(text, k, cutoff)) for text in texts]

    def closest(self, texts: Sequence[str], word: str, cutoff: float = 0.86) -> list[NameMatch | None]:
        """Return for each text the name that has most letters in common with it, in the same order.

        Args:
            texts: pieces of one sentence that all hold `word`.
            word: a folded word that may be misspelt; the name must hold one like it.
            cutoff: lowest score in [0, 1], 2 · common letters / letters of both, without articles and titles of names.
        """
        folded, words = list(map(normalize_name, texts)), dict.fromkeys(chain.from_iterable(map(fold_words, texts)))
        # A name of which less comes from these words is beneath the cutoff, but for letters in common by chance.
        share = cutoff / 2 * (1 + cutoff / (2 - cutoff))
        rows = self.candidates.around(word, list(words), share)
        if not len(rows) or not folded:
            return [None] * len(texts)
        spellings = self._table.spelled(rows)
        names = [normalize_name(spelling) for spelling in spellings]
        found: list[NameMatch | None] = []
        for text, row in zip(folded, _short_ratios(folded, names, spellings, cutoff), strict=True):
            row[[at for at in np.flatnonzero(row).tolist() if begins_inside(text, names[at])]] = 0
            best = float(row.max())
            if not text or best <= 0:
                found.append(None)
                continue
            owner, at = min(
                (int(self._owners(rows[at : at + 1])[0]), at) for at in np.flatnonzero(row == best).tolist()
            )
            found.append(NameMatch(owner, spellings[at], best / 100))
        return found

    def holding(self, texts: Sequence[str], most: int, cutoff: float = 0.6) -> list[list[NameMatch]]:
        """Return for each text who bears the names that hold all its words, the shortest first, scored as in `search`.

        Args:
            texts: one or more words each; one of punctuation alone finds nothing.
            most: names for each text at most.
            cutoff: lowest score in [0, 1].
        """
        return [_with_words(self._table, text, most, cutoff) for text in texts]

    def loosely(self, words: Sequence[str]) -> list[tuple[int, int, str]]:
        """Return first and last place of each run of folded words that is a name but for its form, and the name.

        A run has two words at least (see `name_essence`); words of very many names do not count.
        """
        ends = [at for at, word in enumerate(words) if word not in _UNTELLING]
        numbers = self._table.vocabulary.find([form for at in ends for form in (words[at], *respelt_words(words[at]))])
        few = np.unique(numbers[(numbers >= 0) & (self._table.frequency(numbers) <= _LOOKED_AT)]).tolist()
        holders, bounds = self._table.arrays.holders[:0], self._table.arrays.word_bounds
        rows, held = np.unique(np.concatenate([holders, *map(self._table.holders, few)]), return_counts=True)
        near = (held > 1) & (bounds[rows + 1] - bounds[rows] <= held + _FEW_MORE)
        pairs = [(first, last) for at, first in enumerate(ends) for last in ends[at + 1 : at + _RUN]]
        runs = {name_essence(words[first : last + 1]): (first, last) for first, last in pairs}
        essences = {name: name_essence(fold_words(name)) for name in self._table.spelled(rows[near])}
        return [(*runs[essence], name) for name, essence in essences.items() if essence in runs]

    # Inside

    def _equal(self, text: str) -> Int64:
        """Return the rows equal to a text after folding."""
        words = fold_words(text)
        numbers = [self._table.vocabulary.number(word) for word in words[leads_with_article(words) :]]
        if not numbers or min(numbers) < 0:
            return np.empty(0, np.int64)
        # The name may have an article that the text lacks.
        distinct = set(numbers)
        more = [set_hash([article]) for article in self._articles if article not in distinct]
        own = set_hash(distinct)
        rows = self._table.rows_of(np.array([own, *(own + one & MASK for one in more)], np.uint64))
        return np.sort(rows[[self._strip_article(row) == numbers for row in rows.tolist()]]) if len(rows) else rows

    def _written(self, text: str) -> Int64:
        """Return the rows that are written exactly so."""
        rows = self._rows(text)
        return rows[[spelling == text for spelling in self._table.spelled(rows)]] if len(rows) else rows

    def _strip_article(self, row: int) -> list[int]:
        """Return the words of a row without a leading article."""
        numbers = self._table.words_of(row)
        leads = len(numbers) > 1 and numbers[0] in self._articles
        return numbers[leads and not (len(numbers) > 2 and numbers[1] in self._articles) :]

    def _owners(self, rows: Int64) -> Int64:
        """Return who bears the names in some rows, ascending, each once."""
        if not len(rows):
            return np.empty(0, np.int64)
        found, _ = self._table.bearers(rows)
        return np.unique(found) if len(rows) > 1 else found

    def _resembling(self, text: str, k: int, cutoff: float) -> list[NameMatch]:
        form = compared(text[: 4 * LONGEST])
        if not form or len(form) > LONGEST:
            return []
        words = fold_words(text)
        best = self._best(form, words, k, cutoff, USUAL)
        if cutoff < _WELL and (len(best) < k or best[-1].score < _WELL):
            best = self._best(form, words, k, cutoff, WIDE)
        return best

    def _best(self, form: str, words: Sequence[str], k: int, cutoff: float, effort: Effort) -> list[NameMatch]:
        """Return the k best owners of the names that are worth comparing with a text."""
        rows, bounds = self.candidates.like(words, len(form), effort)
        spellings = self._table.spelled(rows)
        found = scores(form, spellings[:_FIRST], cutoff)
        # Once k names are known, the others must be as good. Their owners may be the same ones: then all are compared.
        least = sorted((score for _, score in found), reverse=True)[k - 1] if len(found) >= k else cutoff
        count = len(rows) if effort is WIDE else int(np.count_nonzero(bounds >= least - _CHANCE))
        found += [(at + _FIRST, score) for at, score in scores(form, spellings[_FIRST:count], least)]
        best = _ranked(self._table, rows, [(at, score) for at, score in found if score >= least], k)
        if len(best) < k and least > cutoff:
            best = _ranked(self._table, rows, scores(form, spellings, cutoff), k)
        if not best and effort is USUAL:
            best = _ranked(self._table, rows, _short_scores(form, spellings, cutoff), k)
        return [NameMatch(owner, spellings[at], score) for owner, score, at in best]


def _with_words(table: NameTable, text: str, most: int, cutoff: float) -> list[NameMatch]:
    """Return who bears the names that hold all words of a text."""
    words = [table.vocabulary.number(word) for word in dict.fromkeys(fold_words(text))]
    form = compared(text)
    if not form or min(words, default=-1) < 0:
        return []
    first, *others = sorted(words, key=lambda word: len(table.holders(word)))
    rows = table.holders(first)
    for word in others:
        holders = table.holders(word)  # looked up, not merged: a common word may stand in millions of names
        rows = rows[holders.take(np.searchsorted(holders, rows), mode="clip") == rows]
    spellings = table.spelled(rows[:most])
    found = sorted(scores(form, spellings, cutoff))
    owners, at = table.bearers(rows[[position for position, _ in found]])
    order = np.argsort(at, kind="stable")
    ranked = [(int(owner), *found[place]) for owner, place in zip(owners[order], at[order].tolist(), strict=True)]
    return [NameMatch(owner, spellings[position], score) for owner, position, score in ranked]


def _ranked(table: NameTable, rows: Int64, found: Sequence[tuple[int, float]], k: int) -> list[tuple[int, float, int]]:
    """Return the k best owners of scored rows, each with score and position of its best row."""
    at = np.array([position for position, _ in found], np.int64)
    owners, row = table.bearers(rows[at])
    score, position = np.array([score for _, score in found])[row], at[row]
    best: dict[int, tuple[int, float, int]] = {}
    for one in np.lexsort((position, owners, -score)).tolist():
        best.setdefault(int(owners[one]), (int(owners[one]), float(score[one]), int(position[one])))
        if len(best) == k:
            break
    return list(best.values())
