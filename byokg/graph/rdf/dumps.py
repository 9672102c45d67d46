"""Published dumps, filtered to relevant statements: Freebase's, and Wikidata's truthy statements.

A dump is N-Triples, one statement a line, its parts separated by a tab (Freebase) or a space. It is read once, in
blocks that all cores work on, and wanted statements are written unchanged, in the same order. Literals with a language
are kept in some languages only; other literals, and links, all. Left out besides:

- Freebase: statements about anything but topics (`m.…`, `g.…`), and a topic's names elsewhere and edit history:
  keys, permissions, web pages; `rdfs:label`, which repeats `type.object.name`, and `type.object.type`, which
  `rdf:type` repeats; by option the domains that users made (`user.…`, `base.…`).
- Wikidata: statements about anything but items and properties; of these, all but labels, aliases and direct statements;
  by option descriptions are kept.
"""

from __future__ import annotations

import gzip
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from byokg.errors import ConfigError, GraphError, ImportFailed, one_of
from byokg.files import TextFile, new_file, uncompressed
from byokg.graph.columnar.writer import map_ahead
from byokg.graph.rdf.terms import FREEBASE, RDFS_LABEL, SKOS
from byokg.index.vocabulary import positions

FREEBASE_DUMP, WIKIDATA_DUMP = "freebase", "wikidata"

_WIKIDATA = "http://www.wikidata.org/"
_DESCRIPTION = "http://schema.org/description"

_TOPICS = {
    FREEBASE_DUMP: rf"^<{re.escape(FREEBASE)}[mg]\.",
    WIKIDATA_DUMP: rf"^<{re.escape(_WIKIDATA)}entity/[QP][0-9]",
}

_OF_NO_USE = tuple(
    "type.object.key type.object.type type.object.permission type.object.guid type.object.creator "
    "type.object.attribution type.object.timestamp common.topic.topic_equivalent_webpage common.topic.topical_webpage "
    "common.topic.official_website common.topic.webpage common.topic.weblink common.topic.social_media_presence "
    "common.document. freebase. dataworld. pipeline.".split()
)
"""Prefixes of Freebase's relations for edit history and external names."""

_OF_USERS = ("user.", "base.")

_EXAMPLES, _EXAMPLE_LENGTH = 5, 120
"""Bad lines quoted in full, and characters of each."""

_IRI = r'<[^<>"{}|^`\\\x00-\x20]*(?:\\[uU][0-9A-Fa-f]+[^<>"{}|^`\\\x00-\x20]*)*>'
_SUBJECT = rf"^(?:{_IRI}|_:[^ \t]+)$"
_LITERAL = rf'"(?:[^"\\]|\\.)*"(?:@[A-Za-z]+(?:-[A-Za-z0-9]+)*|\^\^{_IRI})?'
_END = r"[ \t]*\.[ \t]*\r?\n?$"
_OBJECT = rf"^(?:{_IRI}|_:[^ \t]+|{_LITERAL}){_END}"
_TAGGED = rf'"@[A-Za-z][A-Za-z0-9-]*{_END}'


@dataclass(frozen=True)
class Wanted:
    """Filter of a dump."""

    dump: str
    """`freebase` or `wikidata`."""
    languages: tuple[str, ...] = ("en",)
    """Languages whose texts are kept, as they stand behind `@`; `en` stands for `en-GB`, too."""
    users: bool = True
    """Whether Freebase's domains that users made are kept."""
    descriptions: bool = False
    """Whether Wikidata's descriptions are kept."""
    also: tuple[str, ...] = ()
    """IRIs of further relations that are kept; of Freebase's, without what all of them start with."""

    def __post_init__(self) -> None:
        one_of("dump=", self.dump, _TOPICS)
        for language in self.languages:
            if not re.fullmatch(r"[A-Za-z]+(-[A-Za-z0-9]+)*", language):
                raise ConfigError(f"{language!r} is no language; write en, de, zh-Hant, …")

    def relation(self, iri: str) -> bool:
        """True if a relation is kept."""
        if iri in self.also or iri.removeprefix(FREEBASE) in self.also:
            return True
        if self.dump == WIKIDATA_DUMP:
            named = iri in (RDFS_LABEL, SKOS + "altLabel") or (self.descriptions and iri == _DESCRIPTION)
            return named or iri.startswith(_WIKIDATA + "prop/direct/")
        name = iri.removeprefix(FREEBASE)
        if name == iri:
            return iri != RDFS_LABEL and "/key/" not in iri
        return not name.startswith(_OF_NO_USE if self.users else (*_OF_NO_USE, *_OF_USERS))

    def tagged(self) -> str:
        """Return the pattern of the end of a text in one of the languages."""
        either = "|".join(map(re.escape, self.languages))
        return rf'(?i:"@(?:{either})(?:-[A-Za-z0-9-]+)?{_END})' if self.languages else r"[^\s\S]"


@dataclass
class Filtered:
    """Counts of statements read, by outcome."""

    read: int = 0
    kept: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    """By reason: of no topic, of no use, in another language."""
    bad: int = 0
    """Lines that are no statement."""
    examples: list[tuple[int, str]] = field(default_factory=list)
    """Line number and text of the first of these."""
    lines: int = 0
    """Lines, empty ones and comments among them."""


def dump_of(path: Path) -> str:
    """Return the dump of a file, from its first lines. Raises `ImportFailed` when it is neither."""
    file = TextFile(path)
    with file.reading(), file.open() as stream:
        start = stream.read(1 << 16)
    for name, space in ((FREEBASE_DUMP, FREEBASE), (WIKIDATA_DUMP, _WIKIDATA)):
        if b"<" + space.encode() in start:
            return name
    raise ImportFailed(path, None, "it starts as neither Freebase's dump nor Wikidata's; say which it is with --dump")


def filter_dump(
    source: Path,
    out: Path,
    wanted: Wanted,
    skip_bad: int = 0,
    progress: Callable[[Filtered], object] | None = None,
    workers: int | None = None,
) -> Filtered:
    """Write the wanted statements of a dump.

    Args:
        source: N-Triples, as published: compressed or not.
        out: file to write, compressed by its ending: `.nt`, `.nt.gz`, `.nt.zst`. Appears when complete.
        wanted: the filter.
        skip_bad: largest number of bad lines to leave out.
        progress: called with the counts so far, after each block of lines.
        workers: threads; None takes one for each core.

    Raises:
        ImportFailed: the dump cannot be read, or one bad line more than allowed, which is named.
        ConfigError: the ending of `out` is not that of N-Triples.
        GraphError: `out` cannot be written.
    """
    if uncompressed(out).suffix.lower() != ".nt" or out.suffix.lower() not in (".nt", ".gz", ".zst"):
        raise ConfigError(f"{out} is no name for what is written; end it in .nt, .nt.gz or .nt.zst")
    found, lines, ending = Filtered(), TextFile(source).line_blocks(), out.suffix.lower()
    try:
        with new_file(out) as file:
            filtered = partial(_filter, wanted=wanted, ending=ending)
            for block in map_ahead(filtered, lines, workers or os.cpu_count() or 1):
                file.write(block.text)
                _add(found, block, source, skip_bad)
                if progress is not None:
                    progress(found)
    except OSError as error:
        raise GraphError(f"cannot write {out}: {error}; free space or choose another place") from error
    return found


class _FilteredLines(NamedTuple):
    """What became of some lines."""

    text: bytes
    read: int
    kept: int
    left_out: Mapping[str, int]
    bad: Sequence[tuple[int, bytes]]
    """Position and text of each line that is no statement."""
    lines: int


def _add(found: Filtered, block: _FilteredLines, source: Path, skip_bad: int) -> None:
    """Count a block. Raises `ImportFailed` for the first bad line that is too many."""
    room = skip_bad - found.bad
    if len(block.bad) > room:
        place, text = block.bad[room]
        shown = text.decode(errors="replace").strip()[:_EXAMPLE_LENGTH]
        more = "--skip-bad N leaves out N such lines" if not skip_bad else f"{skip_bad} such lines were left out before"
        raise ImportFailed(source, found.lines + place + 1, f"this is no N-Triples statement: {shown!r}; {more}")
    for place, text in block.bad[: _EXAMPLES - len(found.examples)]:
        found.examples.append((found.lines + place + 1, text.decode(errors="replace").strip()[:_EXAMPLE_LENGTH]))
    found.bad += len(block.bad)
    found.lines += block.lines
    found.read += block.read
    found.kept += block.kept
    found.left_out.update(block.left_out)


def _packed(text: bytes, ending: str) -> bytes:
    """Compress a part of a file; such parts behind each other are a file."""
    if ending == ".zst":
        return bytes(pa.compress(text, "zstd", asbytes=True))
    return gzip.compress(text, mtime=0) if ending == ".gz" else text


def _filter(block: bytes, wanted: Wanted, ending: str) -> _FilteredLines:
    """Return the wanted statements of some whole lines, compressed."""
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1
    if not block.endswith(b"\n"):
        ends = np.append(ends, len(block))
    offsets = np.concatenate(([0], ends))
    lines = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(block)]
    )
    rows = np.flatnonzero(_marks(pc.match_substring_regex(lines, r"^[^\r\n#]")))  # neither empty nor a comment
    parts = pc.split_pattern_regex(lines.take(positions(rows)), r"[ \t]+", max_splits=2)
    whole = pc.list_value_length(parts).to_numpy() == len(("subject", "relation", "object"))
    bad = [rows[~whole]]
    rows, flat = rows[whole], parts.filter(pa.array(whole)).flatten()
    subject, relation, object_ = (flat.take(positions(np.arange(place, len(flat), 3))) for place in range(3))
    coded = relation.dictionary_encode()
    iris = coded.dictionary.to_pylist()
    known = np.array([re.fullmatch(_IRI.encode(), iri) is not None for iri in iris], np.bool_)
    useful = np.array([wanted.relation(iri[1:-1].decode(errors="replace")) for iri in iris], np.bool_)
    codes = coded.indices.to_numpy()
    sound = known[codes] & _marks(pc.match_substring_regex(subject, _SUBJECT))
    sound &= _marks(pc.match_substring_regex(object_, _OBJECT))
    topic = _marks(pc.match_substring_regex(subject, _TOPICS[wanted.dump]))
    tagged = _marks(pc.match_substring_regex(object_, _TAGGED))
    spoken = ~tagged | _marks(pc.match_substring_regex(object_, wanted.tagged()))
    bad.append(rows[~sound])
    left_out = {
        "of no topic": int((sound & ~topic).sum()),
        "of no use": int((sound & topic & ~useful[codes]).sum()),
        "in another language": int((sound & topic & useful[codes] & ~spoken).sum()),
    }
    kept = rows[sound & topic & useful[codes] & spoken]
    text = b"".join(lines.take(positions(kept)).to_pylist())
    if text and not text.endswith(b"\n"):
        text += b"\n"
    wrong = np.sort(np.concatenate(bad)).tolist()
    told = [(place, lines[place].as_py()) for place in wrong]
    return _FilteredLines(_packed(text, ending), int(sound.sum()), len(kept), left_out, told, len(lines))


def _marks(found: pa.Array) -> npt.NDArray[np.bool_]:
    marks: npt.NDArray[np.bool_] = found.to_numpy(zero_copy_only=False).astype(np.bool_)
    return marks
