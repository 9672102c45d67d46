"""False positive rate of the tests of `byokg compare`.

python benchmarks/significance.py RUN RUN [--draws 2000] [--permutations 999] [--json FILE]

Two runs are mixed: of each cluster of questions, one takes the answers of the first and the other those of the second,
or the other way round, by a coin. So neither is better than the other, and a test at the 5 % level should reject about
one draw in twenty. For comparison: the same test without clusters.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.rows import Row, make_parser, show
from byokg.evaluation.compare import score_cases
from byokg.evaluation.profiles import select_profiles
from byokg.evaluation.run_folder import read_runs
from byokg.evaluation.significance import chance, cluster_codes

SEED = 0
LEVEL = 0.05
METRICS = ("hit", "hits@1", "f1")


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("runs", nargs=2, type=Path)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--permutations", type=int, default=999)
    options = parser.parse_args()
    first, second = read_runs(options.runs)
    cases = first.cases
    theirs = {case.id: case for case in second.cases}
    [profile] = select_profiles(["strict"])
    scored = [
        score_cases(each, [profile], resamples=1)[0].values for each in (cases, [theirs[case.id] for case in cases])
    ]
    columns = [[metric.name for metric in profile.metrics].index(name) for name in METRICS]
    one, other = (each[:, columns] for each in scored)
    codes = cluster_codes([case.cluster for case in cases])
    even = np.ones(len(one))
    ways = [("clusters swapped whole", codes), ("each question alone", np.arange(len(codes)))]
    if codes.max() + 1 == len(codes):
        ways = ways[1:]
    generator = np.random.default_rng(SEED)
    rejected = np.zeros((len(ways), len(METRICS)))
    for draw in range(options.draws):
        swapped = generator.integers(0, 2, size=len(codes)).astype(bool)[codes][:, None]
        mixed = np.where(swapped, other, one), np.where(swapped, one, other)
        for row, (_, known) in enumerate(ways):
            for column in range(len(METRICS)):
                first_values, second_values = (each[:, column] for each in mixed)
                p, _ = chance(first_values, second_values, (even, even), known, draw, options.permutations)
                rejected[row, column] += p < LEVEL
    rates = rejected / options.draws
    rows = [
        Row(f"{metric}, {what}", 100 * rates[row, column], "% rejected at .05")
        for column, metric in enumerate(METRICS)
        for row, (what, _) in enumerate(ways)
    ]
    differ = [len(set(codes[one[:, column] != other[:, column]])) for column in range(len(METRICS))]
    of = f"{len(cases):,} questions, {codes.max() + 1:,} clusters, of which {' / '.join(map(str, differ))} differ"
    show(rows, f"{options.draws:,} draws of two runs that do not differ; {of}", options.json)


if __name__ == "__main__":
    main()
