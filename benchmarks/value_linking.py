"""Value linking: recall@1 of annotated property values in questions, clean and with a typo, and what the index costs.

python benchmarks/value_linking.py [--data DIR] [--json FILE] [--set NAME] [--half tune|test] [--show N]

A value counts as found if some mention of the question has it first among its matches, with the right type and
property. `given` links the annotated text as the mention, with the question as its context. The typo is one letter
left out, doubled, replaced or swapped with the next (seeded by question and value), in values of four letters or more
and in codes of six digits or more; other numbers, dates and times have another meaning with another digit.

Sets: ZOGRASCOPE with its published mentions, and the literals of gold Cypher in Mind the Query, Northwind and movies.
Questions of ZOGRASCOPE are halved by template: tune on `tune`, report `test`.
"""

from __future__ import annotations

import hashlib
import random
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dropped_constraints import importable
from benchmarks.measure import read_questions
from benchmarks.rows import Bar, Row, make_parser, show, show_bars
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph
from byokg.graph.name_indexes import build_names
from byokg.graph.value_indexes import VALUE_FOLDERS, build_values
from byokg.linking.values import ValueLinker
from byokg.text.names import normalize_name
from byokg.text.values import canonical_forms

SETS = ("zograscope", "mind_the_query_er", "northwind", "movies")
RENAMED = {"type": "kind", "id": "reference"}
"""Properties of ZOGRASCOPE that its tables call otherwise."""

BARS = (
    Bar("zograscope test clean", "≥", 0.97),
    Bar("zograscope test typo", "≥", 0.90),
    Bar("zograscope five mentions", "≤", 10),
    Bar("zograscope build", "≤", 0.20),
    Bar("zograscope disk", "≤", 0.30),
)
_PATTERN = re.compile(r"\(\s*(\w*)\s*:\s*`?(\w+)`?\s*(\{[^}]*\})?")
_LITERAL = r"""(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(-?\d+(?:\.\d+)?)\b)"""
_IN_MAP = re.compile(r"(\w+)\s*:\s*" + _LITERAL)
_EQUAL = re.compile(r"\b(\w+)\.(\w+)\s*=\s*" + _LITERAL)


@dataclass(frozen=True)
class GoldValue:
    """An annotated value."""

    text: str
    type: str
    property: str

    def called_in(self, kept: Collection[tuple[str, str]]) -> GoldValue | None:
        """Return the value under the name of its property in the graph; None if that is not indexed."""
        name = RENAMED.get(self.property, self.property)
        return replace(self, property=name) if (self.type, name) in kept else None


@dataclass(frozen=True)
class Annotated:
    """A question and its values."""

    id: str
    text: str
    values: tuple[GoldValue, ...]
    half: str


def annotated_questions(folder: Path) -> Iterator[Annotated]:
    """Yield the dev questions of a set that have values."""
    for record in read_questions(folder):
        if record.get("split", "dev") == "dev" and (values := tuple(gold_values(record))):
            # The first digit of the hash of an id has parted dev from test already.
            key, digit = (record["template"], 0) if "template" in record else (record["id"], 1)
            half = "tune" if hashlib.sha256(str(key).encode()).hexdigest()[digit] < "8" else "test"
            yield Annotated(record["id"], record["question"], values, half)


def gold_values(record: Mapping[str, Any]) -> list[GoldValue]:
    """Return the published mentions of a record, or else the literals that its query compares for equality."""
    if "mentions" in record:
        mentions = record["mentions"]
        return [GoldValue(one["text"], one["type"], one["property"]) for one in mentions]
    query = record["cypher"]
    labels: dict[str, str] = {}
    found: dict[GoldValue, None] = {}
    for variable, label, held in _PATTERN.findall(query):
        labels.setdefault(variable, label)
        for key, *literal in _IN_MAP.findall(held):
            found[GoldValue("".join(literal), label, key)] = None
    for variable, key, *literal in _EQUAL.findall(query):
        if variable in labels:
            found[GoldValue("".join(literal), labels[variable], key)] = None
    return list(found)


def misspelt(text: str, key: str) -> str:
    """Return a text with one typo; unchanged where no letter may be wrong."""
    letters = sum(map(str.isalpha, text))
    digits = sum(map(str.isdigit, text))
    places = [at for at, sign in enumerate(text) if sign.isalpha()] if letters >= 4 else []
    if not places and digits >= 6 and not canonical_forms(text):
        places = [at for at, sign in enumerate(text) if sign.isdigit()]
    if not places:
        return text
    draw = random.Random(key)
    while True:
        at, kind = draw.choice(places), draw.randrange(4)
        sign = draw.choice("0123456789" if text[at].isdigit() else "abcdefghijklmnopqrstuvwxyz")
        following = text[at + 1 : at + 2]
        if kind == 0:
            changed = text[:at] + text[at + 1 :]
        elif kind == 1:
            changed = text[:at] + text[at] + text[at:]
        elif kind == 2:
            changed = text[:at] + sign + text[at + 1 :]
        elif following.isalnum():
            changed = text[:at] + following + text[at] + text[at + 2 :]
        else:
            continue
        if normalize_name(changed) != normalize_name(text):
            return changed


def with_typos(asked: Annotated) -> tuple[str, list[str]]:
    """Return a question and its values with a typo in each value; only in the value where the question has it not."""
    question, texts = asked.text, []
    for value in asked.values:
        at = question.casefold().find(value.text.casefold())
        written = question[at : at + len(value.text)] if at >= 0 else value.text
        changed = misspelt(written, f"{asked.id} {value.text}")
        if at >= 0:
            question = question[:at] + changed + question[at + len(value.text) :]
        texts.append(changed)
    return question, texts


def equal(found: object, gold: str) -> bool:
    """Return True if a stored value is the annotated one, in any format."""
    text = str(found)
    return text == gold or bool(set(canonical_forms(text)) & set(canonical_forms(gold)))


@dataclass
class Tally:
    """Found values."""

    found: int = 0
    proposed: int = 0
    """Mentions, those that are annotated nowhere among them."""
    any_property: int = 0
    asked: int = 0

    def add(self, found: bool, any_property: bool) -> None:
        """Count one value."""
        self.found += found
        self.any_property += found or any_property
        self.asked += 1

    @property
    def share(self) -> float:
        """Return recall@1."""
        return self.found / max(self.asked, 1)


def evaluate(
    linker: ValueLinker, questions: Sequence[Annotated], typos: bool, shown: int
) -> dict[str, dict[str, Tally]]:
    """Return tallies by setting (`found`, `given`) and property, the empty one for all; print some failures."""
    tallies: dict[str, dict[str, Tally]] = {name: defaultdict(Tally) for name in ("found", "given")}
    failed = []
    for asked in questions:
        question, texts = with_typos(asked) if typos else (asked.text, [value.text for value in asked.values])
        mentions = linker.find_mentions(question)
        tallies["found"][""].proposed += len(mentions)
        for value, text in zip(asked.values, texts, strict=True):
            own = linker.link_text(text, question)
            for setting, firsts in (("found", [one.matches[0] for one in mentions]), ("given", list(own[:1]))):
                same = [one for one in firsts if equal(one.value, value.text)]
                right = any((one.type, one.property) == (value.type, value.property) for one in same)
                for key in ("", f"{value.type}.{value.property}"):
                    tallies[setting][key].add(right, bool(same))
                if not right and setting == "found":
                    failed.append((question, value, [(one.text, *map(str, one.matches[:2])) for one in mentions]))
    for question, value, found in random.Random(0).sample(failed, min(shown, len(failed))):
        print(f"{question}\n  {value.type}.{value.property} = {value.text}\n  {found}")
    return tallies


def measure(name: str, data: Path, half: str, most: int, shown: int) -> list[Row]:
    """Build a graph and its indexes, and link the values of its questions."""
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        source = importable(data / name, folder)
        began = time.perf_counter()
        graph = build_graph(source, folder / "graph")
        build_names(graph)
        built = time.perf_counter() - began
        size = sum(path.stat().st_size for path in (folder / "graph").rglob("*") if path.is_file())
        times = []
        for _ in range(3):
            began = time.perf_counter()
            build_values(graph)
            times.append(time.perf_counter() - began)
        added = sum(
            path.stat().st_size
            for name in VALUE_FOLDERS
            for path in (folder / "graph" / name).rglob("*")
            if path.is_file()
        )
        rows += [Row(f"{name} build", min(times) / built, "of build"), Row(f"{name} disk", added / size, "of graph")]
        linker = ValueLinker(ColumnarGraph.open(folder / "graph"))
        kept = {(one.type, one.property) for one in linker.index.properties()}
        questions = []
        for asked in annotated_questions(data / name):
            values = tuple(one for value in asked.values if (one := value.called_in(kept)) is not None)
            if values and asked.half == half:
                questions.append(Annotated(asked.id, asked.text, values, asked.half))
        questions = random.Random(0).sample(questions, min(most, len(questions)))
        if not questions:
            return rows  # all of its literals are names
        rows.append(Row(f"{name} {half} values", sum(len(asked.values) for asked in questions)))
        for condition in ("clean", "typo"):
            tallies = evaluate(linker, questions, condition == "typo", shown)
            rows.append(Row(f"{name} {half} {condition}", tallies["found"][""].share, "recall@1"))
            tally = tallies["found"][""]
            rows.append(Row(f"{name} {half} {condition}, mentions", tally.found / max(tally.proposed, 1), "precision"))
            rows.append(Row(f"{name} {half} {condition}, given", tallies["given"][""].share, "recall@1"))
            if shown:
                for setting, found in tallies.items():
                    for key, tally in sorted(found.items()):
                        print(
                            f"{condition} {setting} {key:24} {tally.share:.3f} {tally.any_property / tally.asked:.3f}",
                            tally.asked,
                        )
        rows.append(Row(f"{name} five mentions", _time(questions, graph), "ms"))
    return rows


def _time(questions: Sequence[Annotated], graph: ColumnarGraph) -> float:
    """Return the median CPU time of five misspelt mentions, none of them looked up before, after a first question."""
    linker = ValueLinker(graph)
    mentions = [(text, asked.text) for asked in questions for text in with_typos(asked)[1]]
    linker.find_mentions(questions[0].text)
    times = []
    for at in range(0, min(len(mentions), 500) - 4, 5):
        began = time.process_time()
        for text, question in mentions[at : at + 5]:
            linker.link_text(text, question)
        times.append(1000 * (time.process_time() - began))
    return float(np.median(times)) if times else 0.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table and the bars, and write the rows."""
    parser = make_parser(__doc__, "folder of data sets")
    parser.add_argument("--set", choices=SETS, action="append")
    parser.add_argument("--half", choices=("tune", "test"), default="test")
    parser.add_argument("--show", type=int, default=0, help="failures to print of each condition")
    parser.add_argument("--questions", type=int, default=10_000, help="of each set, sampled")
    given = parser.parse_args(arguments)
    rows = [
        row for name in given.set or SETS for row in measure(name, given.data, given.half, given.questions, given.show)
    ]
    show(rows, "Value linking", given.json)
    known = {row.name for row in rows}
    show_bars(rows, [bar for bar in BARS if bar.name in known])


if __name__ == "__main__":
    main()
