"""Grounding: results of gold queries after one of their literals is written otherwise, substituted and left alone.

python benchmarks/grounding.py [--data DIR] [--json FILE] [--set NAME] [--queries N] [--show N]

Each gold query with an equality literal and results gets one variant: a typo, an abbreviation, another order of words,
another case, or another format of a date or number (seeded by the query). A variant counts as right if its rows equal
those of the gold query. A typo is that of `value_linking`; a variant that equals another value of the property is drawn
again, since it names that value.
"""

from __future__ import annotations

import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.dropped_constraints import importable
from benchmarks.measure import read_questions
from benchmarks.rows import Bar, Row, make_parser, show, show_bars
from benchmarks.value_linking import misspelt
from byokg.errors import QueryFailed
from byokg.graph.engines.arcadedb import ArcadeStore, build_arcade
from byokg.graph.guard.literals import LiteralUse, literals_in
from byokg.graph.importers.choose import build_graph
from byokg.graph.name_indexes import build_names
from byokg.graph.store import QueryableGraph, QueryLimits
from byokg.graph.value_indexes import build_values
from byokg.linking.grounding import LiteralGrounder
from byokg.retrieval.query import ground_by_results

SETS = ("northwind", "movies", "zograscope", "mind_the_query_er")
RENAMED = {"zograscope": {"type": "kind", "id": "reference"}, "movies": {"title": "name"}}
"""Properties that the tables of a set call otherwise than its gold queries."""
BARS = (Bar("substituted", "≥", 0.93), Bar("clean queries changed", "≤", 0))
_LIMITS = QueryLimits(20.0, 5_000)


def queries(name: str, data: Path) -> Iterator[str]:
    """Yield the distinct gold queries of a set, with the property names that its tables have."""
    seen = set()
    for record in read_questions(data / name):
        query = renamed(record.get("cypher") or "", name)
        if query and query not in seen:
            seen.add(query)
            yield query


def renamed(query: str, name: str) -> str:
    """Return a query of a set with the property names that its tables have."""
    for old, new in RENAMED.get(name, {}).items():
        query = re.sub(rf"(?<=\w\.){old}\b(?!\()", new, query)
        query = re.sub(rf"([{{,]\s*){old}(?=\s*:)", rf"\1{new}", query)
    return query


def reordered(text: str, key: str) -> str:
    """Return the last word first, with a comma."""
    words = text.split()
    return f"{words[-1]}, {' '.join(words[:-1])}" if len(words) > 1 else text


def recased(text: str, key: str) -> str:
    """Return a text in small letters, or in capitals."""
    return text.lower() if random.Random(key).random() < 0.5 and text.lower() != text else text.upper()


def abbreviated(text: str, key: str) -> str:
    """Return a text of several words with a long one cut to its first letters."""
    words = text.split()
    long = [at for at, word in enumerate(words) if len(word) > 5 and word.isalpha()]
    if len(words) < 2 or not long:
        return text
    at = random.Random(key).choice(long)
    return " ".join([*words[:at], words[at][:4] + ".", *words[at + 1 :]])


_MONTHS = "January February March April May June July August September October November December".split()


def reformatted(text: str, key: str) -> str:
    """Return a date or a number in another format."""
    if found := re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{4})", text):
        day, month, year = map(int, found.groups())
        if 1 <= month <= 12:
            return random.Random(key).choice([f"{year}-{month:02}-{day:02}", f"{day} {_MONTHS[month - 1]} {year}"])
    if found := re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", text):
        year, month, day = map(int, found.groups())
        return f"{day} {_MONTHS[month - 1]} {year}" if 1 <= month <= 12 else text
    if re.fullmatch(r"\d{4,}", text):
        return f"{int(text):,}"
    return text


VARIANTS: dict[str, Callable[[str, str], str]] = {
    "typo": misspelt,
    "abbreviated": abbreviated,
    "re-ordered": reordered,
    "case": recased,
    "format": reformatted,
}


def perturbed(query: str, grounder: LiteralGrounder) -> tuple[str, str] | None:
    """Return a variant of a query with one of its literals written otherwise, and the kind; None if none fits."""
    uses = [use for use in literals_in("cypher", query) if use.comparison == "=" and not use.folded and not use.edge]
    drawn = random.Random(query)
    drawn.shuffle(uses)
    for use in uses:
        kinds = list(VARIANTS)
        drawn.shuffle(kinds)
        for kind in kinds:
            if kind == "case" and use.number:
                continue
            changed = VARIANTS[kind](use.text, f"{query} {use.start}")
            if changed != use.text and not (use.number and kind != "format") and not _another(grounder, use, changed):
                return query[: use.start] + '"' + changed.replace('"', '\\"') + '"' + query[use.stop :], kind
    return None


def _another(grounder: LiteralGrounder, use: LiteralUse, changed: str) -> bool:
    """True if a text is another value than the literal: equal to one, or a date with another reading."""
    found = grounder.index.find(changed, types=use.types or None, properties=[use.property])
    return any(one.exact for one in found) and not any(str(one.value) == use.text for one in found)


def result(engine: QueryableGraph, query: str) -> Counter[str]:
    """Return the rows of a query as a bag, without rows of nulls, zeros and empty lists; empty if it fails."""
    try:
        return Counter(repr(row) for row in engine.run(query, limits=_LIMITS).rows if any(map(bool, row)))
    except QueryFailed:
        return Counter()


def measure(name: str, data: Path, most: int, shown: int) -> list[Row]:
    """Run the variants of the gold queries of one set, as written and grounded."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        graph = build_graph(importable(data / name, folder), folder / "graph")
        build_names(graph)
        build_values(graph)
        build_arcade(graph, folder / "graph")
        with ArcadeStore.open(folder / "graph") as store:
            return compare(name, store, list(queries(name, data)), most, shown)


def compare(name: str, store: ArcadeStore, gold: Sequence[str], most: int, shown: int) -> list[Row]:
    """Return the rows of one set."""
    grounder = LiteralGrounder(store)
    (engine,) = store.engines
    kinds: dict[str, list[bool]] = {}
    plain: list[bool] = []
    changed = clean = 0
    times = []
    for query in random.Random(0).sample(gold, len(gold)):
        if len(plain) >= most:
            break
        expected = result(engine, query)
        if not expected:
            continue
        clean += 1
        if (grounded := ground_by_results(grounder, engine, query, _LIMITS)).text != query:
            changed += 1
            print(f"changed though clean\n  {query}\n  {grounded.lines}")
        variant = perturbed(query, grounder)
        if variant is None:
            continue
        text, kind = variant
        began = time.process_time()
        grounded = ground_by_results(grounder, engine, text, _LIMITS)
        times.append(1000 * (time.process_time() - began))
        right = result(engine, grounded.text) == expected
        if not right and shown > 0:
            shown -= 1
            print(f"{kind}\n  {query}\n  {text}\n  {grounded.text}\n  {grounded.open or grounded.lines}")
        kinds.setdefault(kind, []).append(right)
        plain.append(result(engine, text) == expected)
    every = [one for some in kinds.values() for one in some]
    rows = [Row(f"{name} queries", len(every)), Row(f"{name} as written", float(np.mean(plain)), "equal result")]
    rows += [Row(f"{name} substituted", float(np.mean(every)), "equal result")]
    rows += [Row(f"{name} {kind} ({len(some)})", float(np.mean(some)), "equal result") for kind, some in kinds.items()]
    rows += [Row(f"{name} clean queries", clean), Row(f"{name} clean queries changed", changed)]
    rows += [Row(f"{name} time", float(np.median(times)), "ms")]
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table and the bars, and write the rows."""
    parser = make_parser(__doc__, "folder of data sets")
    parser.add_argument("--set", choices=SETS, action="append")
    parser.add_argument("--queries", type=int, default=450, help="variants of each set at most")
    parser.add_argument("--show", type=int, default=0, help="failures to print of each set")
    given = parser.parse_args(arguments)
    rows = [row for name in given.set or SETS for row in measure(name, given.data, given.queries, given.show)]
    every = {row.name: row.value for row in rows}
    counts = {name: every[f"{name} queries"] for name in given.set or SETS}
    right = sum(count * every[f"{name} substituted"] for name, count in counts.items())
    rows.append(Row("queries", sum(counts.values())))
    rows.append(Row("substituted", right / sum(counts.values()), "equal result"))
    rows.append(Row("clean queries changed", sum(every[f"{name} clean queries changed"] for name in counts)))
    show(rows, "Grounding", given.json)
    show_bars(rows, BARS)


if __name__ == "__main__":
    main()
