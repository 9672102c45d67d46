"""Speed and quality of name search among 100,000, 1 and (--large) 10 million names, against thefuzz's exhaustive scan.

python benchmarks/linking.py [--large] [--json FILE] [--mentions N] [--compared N]

Names consist of two to four English words (`synthetic_names`), once of 20,000 words with frequencies by Zipf's
law, once of 200 everyday words (figures with `small`), each in thousands of names. Times are for
five mentions with one typo each, the best three names for each: medians over 40 times five, one thread, each size in a
process of its own. `fuzzy_1m_ms` is warm, the quickest of some repetitions; `fuzzy_1m_new_ms` is the first search for
these five, after others. Bytes on disk include the spellings.

Agreement: the best score, and the three best scores, equal those of a comparison with every name; five kinds of
mistake, mentions drawn evenly. That comparison is rapidfuzz's WRatio of the processed strings, rounded, which equals
thefuzz's score, as is checked on some mentions.

Bars: 100K 5 ms, 1M 25 ms, 10M 250 ms, 150 bytes a name, 1M built in 30 s, agreement 99 % and three best 97 %.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

# One thread: before numpy or faiss is imported.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import private_mb, run_apart, timed
from benchmarks.synthetic_names import MISTAKES, VOCABULARIES, synthetic_names, typo

SIZES = {"100k": 100_000, "1m": 1_000_000, "10m": 10_000_000}
TOP = 3
BATCH = 5
_BATCHES = 40
_REPEATED = 6
_CHECKED = 3

Figure = tuple[str, float, str]
"""Name, value and unit."""


def speed(label: str, kind: str) -> list[Figure]:
    """Build an index in a folder, open it and ask it."""
    from byokg.index.names import NameIndex

    count = SIZES[label]
    suffix = f"{label}_{kind}" if kind != VOCABULARIES[0] else label
    names = synthetic_names(count, kind)
    rng = random.Random(11)
    drawn = names.take([rng.randrange(count) for _ in range(BATCH * (_BATCHES + 4))]).to_pylist()
    mentions = [typo(name, rng) for name in drawn]
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent)
        before = peak_mb()
        began = time.perf_counter()
        NameIndex.build(names).write(folder)
        built = time.perf_counter() - began
        peak = peak_mb() - before
        for path in folder.iterdir():  # pages that are not on the disk yet would count as private
            with path.open("rb") as file:
                os.fsync(file)
        size = sum(path.stat().st_size for path in folder.iterdir())
        NameIndex.open(folder)
        opened = min(milliseconds(lambda: NameIndex.open(folder)) for _ in range(5))
        private = private_mb()
        index = NameIndex.open(folder)
        index.search(mentions[: 4 * BATCH], TOP)  # so that code and files are warm
        private = private_mb() - private
        batches = [mentions[at : at + BATCH] for at in range(4 * BATCH, len(mentions), BATCH)]
        times = [[milliseconds(lambda: index.search(batch, TOP)) for _ in range(_REPEATED)] for batch in batches]  # noqa: B023
    first, again = sorted(batch[0] for batch in times), [min(batch[1:]) for batch in times]
    return [
        (f"fuzzy_{suffix}_ms", median(again), "ms"),
        (f"fuzzy_{suffix}_new_ms", median(first), "ms"),
        (f"fuzzy_{suffix}_new_p90_ms", first[int(0.9 * len(first))], "ms"),
        (f"build_{suffix}_s", built, "s"),
        (f"build_{suffix}_more_mb", peak, "MB"),
        (f"bytes_per_name_{suffix}", size / count, "bytes"),
        (f"open_{suffix}_ms", opened, "ms"),
        (f"private_{suffix}_mb", private, "MB"),
    ]


def exhaustive(label: str, kind: str) -> list[Figure]:
    """Time thefuzz over all names, for as many mentions."""
    from thefuzz import process

    names = synthetic_names(SIZES[label], kind).to_pylist()
    rng = random.Random(11)
    mentions = [typo(rng.choice(names), rng) for _ in range(BATCH)]
    return [
        (
            f"thefuzz_{label}_ms",
            milliseconds(lambda: [process.extract(text, names, limit=TOP) for text in mentions]),
            "ms",
        )
    ]


def agreement(count: int, kind: str, mentions: int) -> list[Figure]:
    """Compare the best scores with those of comparing with every name."""
    import thefuzz.process
    from rapidfuzz import fuzz, process
    from rapidfuzz.utils import default_process

    from byokg.index.names import NameIndex

    column = synthetic_names(count, kind)
    index, names = NameIndex.build(column), column.to_pylist()
    forms = [default_process(name) for name in names]
    suffix = f"_{kind}" if kind != VOCABULARIES[0] else ""
    rng = random.Random(5)
    rows: list[Figure] = []
    best = three = 0
    per_kind = mentions // len(MISTAKES)
    for mistake, change in MISTAKES.items():
        texts = [change(rng.choice(names), rng) for _ in range(per_kind)]
        same = [0, 0]
        for at, (text, found) in enumerate(zip(texts, index.search(texts, TOP, 0.0), strict=True)):
            form = default_process(text)
            # Most texts have three names this good; asking for no more makes the scan quicker.
            truth = process.extract(form, forms, scorer=fuzz.WRatio, limit=TOP, score_cutoff=85)
            if len(truth) < TOP:
                truth = process.extract(form, forms, scorer=fuzz.WRatio, limit=TOP)
            wanted = [round(score) for _, score, _ in truth]
            if at < _CHECKED:
                assert wanted == [score for _, score in thefuzz.process.extract(text, names, limit=TOP)]
            given = [round(100 * match.score) for match in found]
            same[0] += given[:1] == wanted[:1]
            same[1] += given == wanted
        rows.append((f"top1_agreement_{mistake}{suffix}", same[0] / per_kind, "share"))
        rows.append((f"top3_recall_{mistake}{suffix}", same[1] / per_kind, "share"))
        best, three = best + same[0], three + same[1]
    total = per_kind * len(MISTAKES)
    rows.append((f"top1_agreement{suffix}", best / total, "share"))
    rows.append((f"top3_recall{suffix}", three / total, "share"))
    return rows


def dense(label: str, kind: str) -> list[Figure]:
    """Measure finding names by meaning, where that benchmark is here."""
    if not (Path(__file__).parent / "dense_names.py").is_file():
        return []
    names = synthetic_names(SIZES[label], kind).unique().to_pylist()
    found = importlib.import_module("benchmarks.dense_names").rows(names, f"dense_{label}")
    return [(row.name, row.value, row.unit) for row in found]


def milliseconds(action: Callable[[], object]) -> float:
    """Return the milliseconds a call takes."""
    return timed(action)[0] * 1e3


def peak_mb() -> float:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(*step: str) -> list[Figure]:
    """Run one step in a process of its own."""
    return [tuple(row) for row in run_apart(__file__, *step)]


def run_step(name: str, *words: str) -> list[Figure]:
    """Run one step here."""
    if name == "agreement":
        return agreement(int(words[0]), words[1], int(words[2]))
    return {"speed": speed, "exhaustive": exhaustive, "dense": dense}[name](*words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="10 million names, too")
    parser.add_argument("--json", type=Path, help="write rows of name, value, unit")
    parser.add_argument("--mentions", type=int, default=1000, help="mentions to compare (default: %(default)s)")
    parser.add_argument("--compared", type=int, default=100_000, help="names to compare with (default: %(default)s)")
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(run_step(*options.step)))
        return
    rows: list[Figure] = []

    def add(*step: str) -> None:
        for row in measured(*step):
            rows.append(row)
            print(f"{row[0]:42s} {row[1]:12,.4g} {row[2]}", flush=True)

    for label in SIZES if options.large else list(SIZES)[:2]:
        for kind in VOCABULARIES:
            add("speed", label, kind)
        add("dense", label, VOCABULARIES[0])
    for label in ("100k", "1m"):
        add("exhaustive", label, VOCABULARIES[0])
    for kind in VOCABULARIES:
        add("agreement", str(options.compared), kind, str(options.mentions))
    found = {name: (value, unit) for name, value, unit in rows}
    rows.append(("bytes_per_name", *found["bytes_per_name_1m"]))
    from benchmarks.rows import Row, write_rows

    write_rows((Row(*row) for row in rows), options.json)


if __name__ == "__main__":
    main()
