"""Worth of each hand-made rule of the offline pipeline: Hits@1 with it less Hits@1 without it, over dev sets.

python benchmarks/ablate_offline.py [--data DIR] [--questions N] [--rule NAME …] [--without NAME …] [--json FILE]

Sets: MetaQA and PathQuestion by hops, WebQSP, CWQ and atlas (dev questions), six made-up domains, and natural questions
over the six graphs of `natural_questions.READ`; topic entities are linked for atlas, WebQSP
and the natural questions, and gold elsewhere. Each question is asked once, which records the rules that fire, and once
without each of these: other rules change nothing. Worth is in points, the mean over sets, with a 95 % interval (normal
approximation, questions independent); `most` is the largest worth on one set. A rule is `idle` if no question changes,
and `of little worth` if its mean is below 0.2 points and no set gains a point. `--without` leaves rules out together,
and compares each set with all rules.
"""

from __future__ import annotations

import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from benchmarks.domain_questions import FITTED, make
from benchmarks.natural_questions import READ, unpacked
from benchmarks.offline import _half
from benchmarks.rows import Row, make_parser, show
from byokg.errors import GraphError
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.benchmarks import MetaQA, pathquestion
from byokg.evaluation.datasets.folder import Folder, atlas
from byokg.evaluation.metrics import score
from byokg.evaluation.tables import figures, labels, table
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import import_graph
from byokg.linking.parts import Parts
from byokg.offline.lexicon import all_rules, check_names, leave_out
from byokg.offline.pipeline import offline_pipeline
from byokg.pipelines.loop import Loop

LITTLE_MEAN, LITTLE_SET = 0.2, 1.0
"""Points below which a rule is of little worth: on the mean over sets, and on each set."""


@dataclass
class Asked:
    """One set: its size, hits with all rules, and the changes of Hits@1 by each rule left out."""

    name: str
    count: int = 0
    hits: float = 0.0
    hits_without: float = 0.0
    fired: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    changes: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """By rule, the changes that are not 0: 1 for a hit lost without the rule, -1 for one gained."""

    def worth(self, rule: str) -> float:
        """Return the worth of a rule on this set, in points."""
        return 100 * sum(self.changes[rule]) / self.count

    def variance(self, rule: str) -> float:
        """Return the variance of that worth."""
        mean = sum(self.changes[rule]) / self.count
        return 1e4 * (sum(map(abs, self.changes[rule])) / self.count - mean**2) / self.count


def sets(data: Path, folder: Path) -> Iterator[tuple[str, Path, Sequence[Example], int, bool]]:
    """Yield name, graph source, questions, edges of a path, and True for linked entities, for each set."""
    shipped = atlas("dev")
    yield "atlas", shipped.graph_source(), list(shipped.examples()), 3, True
    for domain in FITTED[:6]:
        (folder / domain.name).mkdir()
        made = make(domain, 300)
        yield domain.name, made.write(folder / domain.name), made.examples, 3, False
    root = unpacked(folder)
    for name in READ:
        source = root / name / "graph.tsv"
        source = source if source.exists() else root / name
        yield name, source, Folder(root / name, graph=source).examples(), 3, True
    if not (data / "metaqa").is_dir():
        return
    films, freebase = data / "metaqa" / "kb.txt.xz", data / "freebase_core" / "graph.tsv.xz"
    for hops in (1, 2, 3):
        yield f"metaqa {hops}", films, list(MetaQA(data / "metaqa", hops, "dev").examples()), 3, False
    for hops in (2, 3):
        source = folder / f"pathquestion{hops}.tsv"
        source.write_text((data / "pathquestion" / f"{hops}H-kb.txt").read_text("utf-8"), "utf-8")
        found = pathquestion(data / "pathquestion", hops).examples()
        dev = [one for one in found if _half(str(one.topic_ids)) == "dev"]
        yield f"pathquestion {hops}", source, dev, 3, False
    for name, hops in (("webqsp", 2), ("cwq", 3)):
        examples = Folder(data / name, split="dev", graph=freebase, ids="names").examples()
        yield name, freebase, list(examples), hops, name == "webqsp"


def ask(
    pipeline: Loop, examples: Sequence[Example], linked: bool, rules: Sequence[str], without: Sequence[str]
) -> Asked:
    """Ask the questions of one set with all rules, and without each that fires."""

    def hit(example: Example, left_out: Sequence[str]) -> tuple[float, tuple[str, ...]]:
        try:
            with leave_out(left_out):
                answer = pipeline.run(example.to_question("linked" if linked else "gold"))
        except GraphError:  # a topic entity that the graph does not hold
            return 0.0, ()
        return score([item.name for item in answer.items], example.answers).hits_at_1, answer.rules

    asked = Asked("")
    for example in examples:
        with_all, fired = hit(example, ())
        asked.count += 1
        asked.hits += with_all
        asked.hits_without += hit(example, without)[0] if set(without) & set(fired) else with_all
        for rule in fired:
            if rule in rules:
                asked.fired[rule] += 1
                if change := with_all - hit(example, (rule,))[0]:
                    asked.changes[rule].append(change)
    return asked


def main() -> None:
    parser = make_parser(__doc__, "folder of data sets")
    parser.add_argument("--questions", type=int, default=200, help="questions per set")
    parser.add_argument("--sets", nargs="*", default=[], help="names of sets (default: all)")
    parser.add_argument("--rule", nargs="*", default=[], help="measure these rules (default: all)")
    parser.add_argument("--without", nargs="*", default=[], help="leave these out together")
    options = parser.parse_args()
    console, known = Console(), all_rules()
    check_names([*options.rule, *options.without])
    rules = options.rule or ([] if options.without else list(known))
    results: list[Asked] = []
    stores: dict[Path, ColumnarGraph] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, source, examples, hops, linked in sets(options.data, Path(folder)):
            if options.sets and name not in options.sets:
                continue
            some = random.Random(0).sample(list(examples), min(len(examples), options.questions))
            store = stores.setdefault(source, stores.get(source) or import_graph(source))
            result = ask(offline_pipeline(Parts(store), max_hops=hops), some, linked, rules, options.without)
            result.name = name
            results.append(result)
            shown = f"{name}: Hits@1 {result.hits / result.count:.3f} of {result.count}"
            less = 100 * (result.hits_without - result.hits) / result.count
            console.print(f"{shown}, without {less:+.1f}" if options.without else shown)
    rows = []
    lines = []
    for rule in rules:
        fired = sum(one.fired[rule] for one in results)
        mean = sum(one.worth(rule) for one in results) / len(results)
        half = 1.96 * sum(one.variance(rule) for one in results) ** 0.5 / len(results)
        most = max(results, key=lambda one: one.worth(rule))
        little = mean < LITTLE_MEAN and most.worth(rule) < LITTLE_SET
        changed = any(one.changes[rule] for one in results)
        verdict = ("idle" if not changed else "of little worth") if little else ""
        rows.append(Row(f"{rule}_worth", mean, "points", mean - half, mean + half))
        at = f"{most.worth(rule):+.1f} {most.name}"
        lines.append(
            (mean, (rule, f"{fired:,}", f"{mean:+.2f}", f"{mean - half:+.2f} to {mean + half:+.2f}", at, verdict))
        )
    if lines:
        ordered = [line for _, line in sorted(lines, key=lambda each: -each[0])]
        columns = [*labels("rule"), *figures("fired", "worth", "95 % interval"), *labels("most", "")]
        console.print(table(columns, ordered, f"worth of rules, points of Hits@1 over {len(results)} sets"))
    means = [sum(getattr(one, part) / one.count for one in results) / len(results) for part in ("hits", "hits_without")]
    rows += [Row("hits@1_mean", means[0], "share"), Row("hits@1_mean_without", means[1], "share")]
    rows += [Row(f"{one.name}_hits@1", one.hits / one.count, "share") for one in results]
    if options.without:
        rows += [Row(f"{one.name}_hits@1_without", one.hits_without / one.count, "share") for one in results]
    show(rows if options.without else rows[-len(results) - 2 :], "Hits@1", options.json)


if __name__ == "__main__":
    main()
