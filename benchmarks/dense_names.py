"""Build time, search time and recall of a dense index over a million names.

python benchmarks/dense_names.py [--count N] [--data DIR] [--json FILE]

One thread, the shipped embedder. Names are synthetic (2 to 4 words, Zipf's law) and, if Freebase names are available,
made of real ones by exchanging words between them. Mentions are names with a typo, a missing word, two words swapped,
a word shortened or one added.

CPU seconds are printed as well: they vary less with the load of the machine.

Recall is counted by score: a name counts as found if its exact cosine is at least that of the tenth best name, so
equal names are interchangeable. The exact scan is numpy over unrounded vectors.

Bars, for the machine the project was planned on (2 cores): build 90 s, query 10 ms, recall@10 0.97.
"""

from __future__ import annotations

import json
import lzma
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeVar

import numpy as np

from benchmarks.measure import timed
from benchmarks.rows import Row, make_parser, show
from byokg.index.dense import TEXTS_AT_ONCE, CachedEmbedder, DenseNames
from byokg.index.embedders import SHIPPED, StaticEmbedder, Vectors
from byokg.text.names import is_identifier

Result = TypeVar("Result")

K = 10
MENTIONS = 300
ONE_THREAD = {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
PART = 1 << 16


def synthetic_names(count: int, seed: int = 0) -> list[str]:
    """Return distinct names of 2 to 4 English words; the r-th most frequent word is drawn in proportion to 1/r^0.9."""
    vocabulary = json.loads((SHIPPED / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    words = np.array(sorted(word for word in vocabulary if word.isascii() and word.isalpha() and len(word) > 2))
    random = np.random.default_rng(seed)
    random.shuffle(words)
    shares = 1 / np.arange(1, len(words) + 1) ** 0.9
    names: dict[str, None] = {}
    while len(names) < count:
        lengths = random.integers(2, 5, count // 4 + 1)
        drawn = iter(words[random.choice(len(words), lengths.sum(), p=shares / shares.sum())].tolist())
        names.update((" ".join(next(drawn) for _ in range(length)), None) for length in lengths)
    return list(names)[:count]


def real_names(data: Path, count: int, seed: int = 0) -> list[str]:
    """Return the names of Freebase's core, and then distinct names in which a word comes from another one."""
    with lzma.open(data / "freebase_core" / "graph.tsv.xz", "rt", encoding="utf-8") as file:
        ends = {end for line in file for end in (line.split("\t")[0], line.rstrip("\n").split("\t")[2])}
    names = dict.fromkeys(sorted(end for end in ends if not is_identifier(end)))
    originals = [name.split() for name in names]
    random = np.random.default_rng(seed)
    while len(names) < count:
        for one, other in random.integers(len(originals), size=(count // 4 + 1, 2)).tolist():
            taken, given = list(originals[one]), originals[other]
            taken[random.integers(len(taken))] = given[random.integers(len(given))]
            names[" ".join(taken)] = None
    return list(names)[:count]


def mentions_of(names: Sequence[str], count: int, seed: int = 1) -> list[str]:
    """Return names as people may write them."""
    random = np.random.default_rng(seed)
    mentions = []
    for number, at in enumerate(random.choice(len(names), count, replace=False).tolist()):
        words = names[at].split()
        which = int(random.integers(len(words)))
        kind = number % 5
        if kind == 0:
            letter = int(random.integers(len(words[which])))
            words[which] = words[which][:letter] + words[which][letter + 1 :]
        elif kind == 1 and len(words) > 1:
            del words[which]
        elif kind == 2:
            words = [*words[1:], words[0]]
        elif kind == 3:
            words[which] = words[which][:3]
        else:
            words.append("inc")
        mentions.append(" ".join(words) or names[at])
    return mentions


def rows(names: Sequence[str], label: str = "dense") -> list[Row]:
    """Measure an index over distinct names.

    Args:
        names: N of them.
        label: what the rows' names start with.

    Returns:
        Rows of name, value, unit.
    """
    os.environ.update(ONE_THREAD)
    embedder = StaticEmbedder()
    found: list[Row] = []

    def record(name: str, value: float, unit: str) -> None:
        found.append(Row(f"{label}_{name}", value, unit))

    cpu = time.process_time()
    seconds, index = timed(lambda: DenseNames.build(enumerate(names), embedder))
    record("names", len(index), "")
    record("build_s", seconds, "s")
    record("build_cpu_s", time.process_time() - cpu, "s")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        index.write(place)
        record("bytes_per_name", sum(file.stat().st_size for file in place.iterdir()) / len(names), "B")
        del index
        record("open_ms", 1e3 * min(timed(lambda: DenseNames.open(place, embedder))[0] for _ in range(5)), "ms")
        opened = DenseNames.open(place, embedder)
        mentions = mentions_of(names, MENTIONS)
        opened.search(mentions[:20], K)  # pages of the file come in
        cpu = time.process_time()
        alone = [timed(partial(opened.search, [mention], K)) for mention in mentions]
        record("query_cpu_ms", 1e3 * (time.process_time() - cpu) / len(mentions), "ms")
        record("query_ms", 1e3 * median(seconds for seconds, _ in alone), "ms")
        record("query_p95_ms", 1e3 * float(np.quantile([seconds for seconds, _ in alone], 0.95)), "ms")
        record("batch_query_ms", 1e3 * timed(lambda: opened.search(mentions, K))[0] / len(mentions), "ms")
        exact_s, tenth = timed(lambda: tenth_best(names, mentions, embedder))
        record("exact_scan_with_embedding_s", exact_s, "s")
        texts = [[match.name for match in matches] for _, (matches,) in alone]
    hits = 0
    for query, least, matches in zip(embedder.encode(mentions), tenth, texts, strict=True):
        hits += int((embedder.encode(matches) @ query >= least - 1e-6).sum())
    record(f"recall_at_{K}", hits / (K * len(mentions)), "")
    return found


def cache_rows(names: Sequence[str]) -> list[Row]:
    """Measure what keeping and finding vectors costs beside making them."""
    os.environ.update(ONE_THREAD)
    embedder = StaticEmbedder()
    parts = [names[start : start + TEXTS_AT_ONCE] for start in range(0, len(names), TEXTS_AT_ONCE)]

    def microseconds(encode: Callable[[Sequence[str]], Vectors]) -> float:
        return 1e6 * timed(lambda: [encode(part) for part in parts] and None)[0] / len(names)

    with tempfile.TemporaryDirectory() as folder:
        made = microseconds(embedder.encode)
        cached = CachedEmbedder(embedder, Path(folder))
        added = microseconds(cached.encode)
        cached.close()
        start, cached = timed(lambda: CachedEmbedder(embedder, Path(folder)))
        again = microseconds(cached.encode)
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    values = {"embed_us": made, "embed_and_keep_us": added, "find_us": again}
    found = [Row(f"cache_{name}", value, "µs") for name, value in values.items()]
    found.append(Row("cache_open_ms", 1e3 * start, "ms"))
    return [*found, Row("cache_bytes_per_name", size / len(names), "B")]


def tenth_best(names: Sequence[str], mentions: Sequence[str], embedder: StaticEmbedder) -> Vectors:
    """Return the tenth best cosine of each of M mentions among all names, (M,), by comparing all."""
    queries = embedder.encode(mentions)
    best = np.full((len(mentions), K), -1, np.float32)
    for start in range(0, len(names), PART):
        scores = np.concatenate((best, queries @ embedder.encode(names[start : start + PART]).T), axis=1)
        best = np.partition(scores, -K, axis=1)[:, -K:]
    tenth: Vectors = best.min(axis=1)
    return tenth


def main() -> int:
    parser = make_parser(__doc__, "folder that holds freebase_core")
    parser.add_argument("--count", type=int, default=1_000_000, help="names (default: %(default)s)")
    options = parser.parse_args()
    if not ONE_THREAD.items() <= os.environ.items():  # numpy counts its threads when it is imported
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    names = synthetic_names(options.count)
    found = rows(names, "dense_synthetic") + cache_rows(names)
    if (options.data / "freebase_core").is_dir():
        found += rows(real_names(options.data, options.count), "dense_freebase")
    else:
        print(f"no Freebase names in {options.data}; set BYOKG_DATA or pass --data", file=sys.stderr)
    show(found, f"Dense index over {options.count:,} names, one thread", options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
