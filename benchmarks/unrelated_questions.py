"""Questions about something else than the graph: how many are answered, and with which probability.

python benchmarks/unrelated_questions.py [--data DIR] [--split test] [--json FILE] [--answers]

`GENERAL` holds questions that none of the graphs can answer: of dev ones were used to choose features and thresholds,
those of test were not. `foreign` questions are those of `benchmarks/natural_questions.py` over one graph, asked on
another; their right answers, by chance, are left out.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.dropped_constraints import importable
from benchmarks.natural_questions import READ, UNREAD, unpacked
from benchmarks.rows import Row, make_parser, show
from byokg.evaluation.datasets.folder import SHIPPED
from byokg.evaluation.metrics import normalise
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph
from byokg.graph.name_indexes import build_names
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from byokg.types import Question

_DEV = """
Who is the president of Mars?
Who is the best singer?
List all languages
Who am I?
Who will win the next election?
What is the meaning of life?
Tell me a joke
Who wrote Hamlet?
What time is it in Tokyo?
How do I bake sourdough bread?
What is the square root of 144?
Which planet has the most moons?
Who invented the telephone?
What colour is the sky?
How many legs does a spider have?
Where can I buy cheap shoes?
What is the boiling point of water?
Who painted the ceiling of the Sistine Chapel?
Which bird lays the largest egg?
When did the dinosaurs die out?
What is my bank balance?
Is it going to rain tomorrow?
What does the word serendipity mean?
Which guitar did Jimi Hendrix play?
"""

_TEST = """
Who discovered penicillin?
What is the fastest land animal?
How old is the universe?
Which vitamin is found in oranges?
Who composed the Moonlight Sonata?
Can you write me a poem about autumn?
What is the best way to learn the violin?
How many strings does a harp have?
Who is your favourite superhero?
What is the capital of Atlantis?
Where do penguins sleep?
When does the next train leave?
What is the chemical symbol of tungsten?
Who won the chess match yesterday?
Which dog breeds do not shed hair?
What should I have for dinner tonight?
How far away is the nearest star?
Who lives in a pineapple under the sea?
Name all the Greek gods
What is the plot of Moby Dick?
How much does a unicorn weigh?
Which programming language is easiest?
Who was the first person on the Moon?
List the ingredients of guacamole
"""

GENERAL = {split: tuple(text.strip().splitlines()) for split, text in (("dev", _DEV), ("test", _TEST))}
"""Questions by split."""

_SURE = 0.3
"""Probability from which an answer misleads."""

Asked = tuple[Question, set[str]]
"""A question, and gold answers on its own graph, normalised."""


def general(split: str) -> list[Asked]:
    """Return questions that no graph here answers."""
    return [(Question(text, text), set()) for text in GENERAL[split]]


def foreign(natural: Path, names: Sequence[str], count: int) -> dict[str, list[Asked]]:
    """Return for each graph questions about the other graphs, drawn by a seed.

    Args:
        natural: folder of `natural_questions.unpacked`.
        names: graphs; the questions of each are asked on all others.
        count: questions for each graph.
    """
    own = {name: [_asked(line) for line in (natural / name / "questions.jsonl").open()] for name in names}
    others = {name: [one for other in names if other != name for one in own[other]] for name in names}
    return {name: random.Random(name).sample(some, min(count, len(some))) for name, some in others.items()}


def _asked(line: str) -> Asked:
    read = json.loads(line)
    return Question(read["id"], read["question"]), {normalise(str(answer)) for answer in read["answers"]}


def graphs(data: Path, folder: Path) -> Iterator[tuple[str, ColumnarGraph]]:
    """Yield the graphs that there are, with their names."""
    natural = unpacked(folder / "natural")
    roots = {"atlas": SHIPPED, **{name: natural / name for name in (*READ, *UNREAD)}}
    roots |= {name: importable(data / name, folder) for name in ("northwind", "movies") if (data / name).is_dir()}
    for name, root in roots.items():
        triples = root / "graph.tsv" if root.is_dir() else root
        graph = build_graph(triples if triples.is_file() else root, folder / f"{name}.graph")
        build_names(graph)
        yield name, graph


def main() -> None:
    parser = make_parser(__doc__, "folder of data sets")
    parser.add_argument("--split", default="test", choices=sorted(GENERAL))
    parser.add_argument("--foreign", type=int, default=60, help="questions about other graphs, for each (default: 60)")
    parser.add_argument("--answers", action="store_true", help="print the answers")
    options = parser.parse_args()
    rows: list[Row] = []
    totals: dict[str, list[int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        names = READ if options.split == "dev" else UNREAD
        others: dict[str, list[Asked]] = {}
        for name, graph in graphs(options.data, Path(folder)):
            others = others or foreign(Path(folder) / "natural", names, options.foreign)
            pipeline = offline_pipeline(Parts(graph))
            sets: dict[str, list[Asked]] = {"general": general(options.split)}
            if name in names:
                sets["foreign"] = others[name]
            for kind, asked in sets.items():
                counted = totals.setdefault(kind, [0, 0, 0])
                for question, gold in asked:
                    items = pipeline.run(question).items
                    if items and normalise(items[0].name) in gold:
                        continue
                    counted[0] += 1
                    counted[1] += bool(items)
                    counted[2] += bool(items) and items[0].score >= _SURE
                    if items and options.answers:
                        names_shown = [item.name for item in items[:3]]
                        print(f"{name} {kind} | {question.text} | {names_shown} {items[0].score:.2f}")
    for kind, (of, answered, sure) in totals.items():
        rows.append(Row(f"{kind}_answered", answered / of, "share"))
        rows.append(Row(f"{kind}_sure", sure / of, "share"))
        print(f"{kind}: {answered} of {of} answered, {sure} with {_SURE} or more")
    show(rows, f"questions about something else, {options.split} half", options.json)


if __name__ == "__main__":
    main()
