"""A synthetic graph of any size, for benchmarks: realistic names, degrees and relations by Zipf's law.

python benchmarks/synthetic_graph.py OUT.tsv[.zst] [--triples N] [--entities N] [--relations N] [--seed N]

The same numbers and seed give the same bytes. Memory stays below 200 MB at any size.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from byokg.arrays import Int64
from byokg.graph.rdf.terms import RDFS_LABEL

_GIVEN = (
    "Ada Aisha Alan Amara Ana Anton Astrid Bao Beatriz Boris Carla Chidi Chloe Clara Dario Dina Elena Emil Farah Felix "
    "Freya Gita Hana Hugo Ida Igor Ines Ivan Jade Jonas Karin Kofi Lars Leila Li Lucia Malik Mara Maria Mei Milo Mina "
    "Nadia Nils Noor Olga Omar Otto Paolo Petra Priya Quinn Rafael Rosa Ruth Sami Sara Selim Sofia Sven Tariq Theo Uma "
    "Vera Viktor Wanda Xavier Yara Yusuf Zoe"
).split()
_PLACES = "Bay Bridge Castle Creek Falls Forest Harbor Hill House Island Lake Park Point River Square Valley".split()
_SYLLABLES = [consonant + vowel for consonant in "bdfghjklmnprstvwz" for vowel in "aeiou"]
_DOMAINS = "award base book business education film fashion geo government law location medicine music people".split()
_TYPES = "actor artist author chairman city company contract course event family group judge member office work".split()
_PROPERTIES = "awarded_for city_of contains date founded genre held_by language located_in owner part_of title".split()

_BLOCK = 1 << 20
_HEAD_EXPONENT, _TAIL_EXPONENT, _RELATION_EXPONENT = 0.75, 0.85, 1.0


@dataclass(frozen=True)
class Size:
    """How large a graph to make."""

    triples: int
    entities: int
    relations: int = 1000
    seed: int = 7


def write(path: Path, size: Size) -> None:
    """Write `size.triples` lines of head, relation and tail, separated by tabs. Every entity is at least one head."""
    with _new(path) as file:
        for head, label, tail in _spelled(size):
            file.write(_lines(head, "\t", label, "\t", tail))


def write_labelled(path: Path, size: Size) -> None:
    """Write the same triples as N-Triples the way public graphs do: numbered IRIs, each with an `rdfs:label`."""
    base = "http://example.org"
    with _new(path) as file:
        for (head, relation, tail), line in _numbered(size):
            labels = _relations(size).take(pa.array(relation))
            ends = (_cast(number) for number in (head, tail))
            triple = (f"<{base}/entity/Q", next(ends), f"> <{base}/relation/", labels, f"> <{base}/entity/Q")
            file.write(_lines(*triple, next(ends), "> ."))
            fresh = head[line < size.entities]
            if len(fresh):
                named = (f'> <{RDFS_LABEL}> "', _names(fresh), '"@en .')
                file.write(_lines(f"<{base}/entity/Q", _cast(fresh), *named))


def _new(path: Path) -> Any:
    """Open a file to write, compressed as its name says."""
    return pa.output_stream(str(path), compression="detect")


FORMATS = {"properties": "property tables", "jsonl": "JSON lines", "nt": "N-Triples", "years": "with years"}
"""What `write_as` knows: the same triples in other formats, and what each is called."""


def write_as(form: str, path: Path, size: Size) -> Path:
    """Write the same triples in one of `FORMATS`; return the file or folder, whose ending is added to `path`.

    - properties: `nodes.csv` and `edges.csv`, each with a number and a text beside what must be there;
    - jsonl: an object with head, relation, tail, and these two, a line;
    - nt: N-Triples;
    - years: head, relation, tail, start and end, separated by tabs.
    """
    if form == "properties":
        path.mkdir(exist_ok=True)
        with (path / "nodes.csv").open("wb") as file:
            file.write(b"id,name,type,born:int,note\n")
            for start in range(0, size.entities, _BLOCK):
                numbers = np.arange(start, min(start + _BLOCK, size.entities))
                names, born, note = _names(numbers), _cast(1500 + numbers % 500), _cast(numbers % 9973)
                file.write(_lines("Q", _cast(numbers), ",", names, ",T", _cast(numbers % 20), ",", born, ",n ", note))
        with (path / "edges.csv").open("wb") as file:
            file.write(b"head,relation,tail,since:int,source\n")
            for (head, relation, tail), line in _numbered(size):
                ends = (_cast(number) for number in (head, tail))
                labels = _relations(size).take(pa.array(relation))
                file.write(_lines("Q", next(ends), ",", labels, ",Q", next(ends), ",", *_said(line, ",doc ", "")))
        return path
    path = path.with_name(f"{path.name}.{'tsv' if form == 'years' else form}")
    with path.open("wb") as file:
        for (head, label, tail), (_, line) in zip(_spelled(size), _numbered(size), strict=True):
            if form == "jsonl":
                said = _said(line, ', "source": "doc ', '"}')
                triple = ('{"head": "', head, '", "relation": "', label, '", "tail": "', tail, '", "since": ')
                file.write(_lines(*triple, *said))
            elif form == "nt":
                head, tail = (pc.replace_substring(end, " ", "_") for end in (head, tail))
                base = "http://example.org"
                triple = (f"<{base}/entity/", head, f"> <{base}/relation/", label, f"> <{base}/entity/", tail, "> .")
                file.write(_lines(*triple))
            else:
                years = (_cast(1900 + line % 60), "\t", _cast(1960 + line % 60))
                file.write(_lines(head, "\t", label, "\t", tail, "\t", *years))
    return path


def _spelled(size: Size) -> Iterator[tuple[pa.Array, pa.Array, pa.Array]]:
    labels = _relations(size)
    for head, relation, tail in blocks(size):
        yield _names(head), labels.take(pa.array(relation)), _names(tail)


def _numbered(size: Size) -> Iterator[tuple[tuple[Int64, Int64, Int64], Int64]]:
    line = 0
    for block in blocks(size):
        yield block, np.arange(line, line + len(block[0]))
        line += len(block[0])


def _said(line: Int64, between: str, behind: str) -> tuple[Any, ...]:
    """Return the properties of edges: a year, and where it was read."""
    return _cast(1900 + line % 120), between, _cast(line % 49999), behind


def _relations(size: Size) -> pa.Array:
    return pa.array([_relation(number) for number in range(size.relations)], pa.string())


def _cast(numbers: Int64) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def _lines(*parts: Any) -> memoryview:
    """Put columns and texts between them together, a row a line."""
    lines = pc.binary_join_element_wise(*parts, "\n", "")
    _, offsets, data = lines.buffers()
    bounds = np.frombuffer(offsets, np.int32)
    return memoryview(data)[bounds[lines.offset] : bounds[lines.offset + len(lines)]]


def blocks(size: Size) -> Iterator[tuple[Int64, Int64, Int64]]:
    """Yield head, relation and tail numbers, some lines at a time."""
    head_stride, tail_stride = _coprime(size.entities, 0.618), _coprime(size.entities, 0.382)
    for start in range(0, size.triples, _BLOCK):
        rng = np.random.default_rng([size.seed, start])
        line = np.arange(start, min(start + _BLOCK, size.triples))
        # The first lines have each entity as head once; afterwards heads come by rank, the lowest most often.
        head = np.where(line < size.entities, line, _ranks(rng, len(line), size.entities, _HEAD_EXPONENT))
        tail = _ranks(rng, len(line), size.entities, _TAIL_EXPONENT)
        relation = _ranks(rng, len(line), size.relations, _RELATION_EXPONENT)
        yield head * head_stride % size.entities, relation, tail * tail_stride % size.entities


def _ranks(rng: np.random.Generator, count: int, ranks: int, exponent: float) -> Int64:
    """Draw ranks from 0 whose frequency falls with about the `exponent`-th power of the rank."""
    uniform = rng.random(count)
    if exponent == 1.0:
        drawn = (ranks + 1.0) ** uniform
    else:
        rest = 1.0 - exponent
        drawn = (1.0 + uniform * ((ranks + 1.0) ** rest - 1.0)) ** (1.0 / rest)
    return np.minimum(drawn.astype(np.int64) - 1, ranks - 1)


def _coprime(count: int, share: float) -> int:
    """Return a factor near `share` of `count` whose multiples modulo `count` meet every number."""
    factor = max(int(count * share), 1)
    while np.gcd(factor, count) != 1:
        factor += 1
    return factor


def _names(numbers: Int64) -> pa.Array:
    """Spell entity numbers: two in three as people, the others as places; all different."""
    given, rest = numbers % len(_GIVEN), numbers // len(_GIVEN)
    parts = [_words(_GIVEN, given)]
    surname = _words([syllable.title() for syllable in _SYLLABLES], rest % len(_SYLLABLES))
    rest = rest // len(_SYLLABLES)
    for _ in range(3):
        surname = pc.binary_join_element_wise(surname, _words(_SYLLABLES, rest % len(_SYLLABLES)), "")
        rest = rest // len(_SYLLABLES)
    parts.append(surname)
    place = pc.binary_join_element_wise(surname, _words(_PLACES, given % len(_PLACES)), _words(_GIVEN, given), " ")
    return pc.if_else(pa.array(numbers % 3 < 2), pc.binary_join_element_wise(*parts, " "), place)


def _words(words: list[str], numbers: Int64) -> pa.Array:
    return pa.array(words, pa.string()).take(pa.array(numbers))


def _relation(number: int) -> str:
    kind, name = divmod(number, len(_PROPERTIES))
    domain, kind = divmod(kind, len(_TYPES))
    again, domain = divmod(domain, len(_DOMAINS))
    return f"{_DOMAINS[domain]}.{_TYPES[kind]}.{_PROPERTIES[name]}{again or ''}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="file to write")
    parser.add_argument("--triples", type=int, default=3_000_000, help="lines (default: %(default)s)")
    parser.add_argument("--entities", type=int, default=1_000_000, help="distinct names (default: %(default)s)")
    parser.add_argument("--relations", type=int, default=1000, help="distinct relations (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=7, help="(default: %(default)s)")
    options = parser.parse_args()
    write(options.out, Size(options.triples, options.entities, options.relations, options.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
