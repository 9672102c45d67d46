"""Preservation of names in reply parsing, in every layout that prompts request or the parser accepts.

python benchmarks/reply_names.py [--data DIR] [--every N] [--context N] [--json FILE]

Every name of atlas, and of MetaQA and freebase_core if available, is written into each layout and parsed:
without any known name, and with shown names (the contexts are the names in their order, `--context` at a
time). A name is *altered* if the parsed text differs in any byte, and *lost* if nothing is parsed. Without shown
names it is *ambiguous* if the same bytes are another name in another layout, or words for no answer: `1. FC Köln`,
`Unknown`, `- Spain`. Layouts whose marks stand in names as well, such as commas between names, are read with shown
names alone.

Bars: 0 altered and lost in every layout with shown names, and without in layouts of one name a line. With shown names
a bullet is ambiguous where both readings were shown: `- Spain` and `Spain`; the longest counts.
"""

from __future__ import annotations

import csv
import json
import lzma
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.rows import Row, make_parser, show
from byokg.evaluation.datasets.folder import SHIPPED
from byokg.llm.parsing import read_answers, read_list
from byokg.llm.reply_lines import answers
from byokg.llm.shown_names import ShownNames

Names = Sequence[str]
Read = Callable[[str, ShownNames | None], list[str]]


def of_block(text: str, known: ShownNames | None) -> list[str]:
    """Read the answers of a block."""
    return [one.name for one in answers(text, known)]


def of_reply(text: str, known: ShownNames | None) -> list[str]:
    """Read the answers of a reply."""
    return [one.name for one in read_answers(text, known=known)]


def of_list(text: str, known: ShownNames | None) -> list[str]:
    """Read the entities of a reply."""
    return list(read_list(text, "next-entities", bare=True, known=known).items)


@dataclass(frozen=True)
class ReplyLayout:
    """A way to write names in a reply."""

    name: str
    line: str
    """One name, with its number `n`."""
    read: Read = of_block
    around: str = "{}"
    join: str = "\n"
    size: int = 1
    """Names in one reply."""
    last: str = ""
    """What joins the last name in the place of `join`."""
    escaped: bool = False
    """Names stand in JSON."""
    shown_only: bool = False
    """Names can be told apart with shown names alone."""

    def write(self, names: Names) -> str:
        """Write a reply."""
        told = [json.dumps(name, ensure_ascii=False)[1:-1] if self.escaped else name for name in names]
        lines = [self.line.replace("{n}", str(number)).replace("{}", name) for number, name in enumerate(told, 1)]
        said = self.join.join(lines)
        if self.last and len(lines) > 1:
            said = f"{self.join.join(lines[:-1])}{self.last}{lines[-1]}"
        return self.around.replace("{}", said)


TAGGED = "<answers>\n{}\n</answers>"
ENTITIES = "<next-entities>\n{}\n</next-entities>"
LINES = {
    "line": "{}",
    "line [e1]": "{} [e1]",
    "line [e1, e7]": "{} [e1, e7]",
    "bullet": "- {}",
    "number": "{n}. {}",
    "bullet [e1]": "- {} [e1]",
    "star [e1]": "* {} [e1]",
    "dot [e1]": "• {} [e1]",
    "number [e1]": "{n}. {} [e1]",
    "number) [e1]": "{n}) {} [e1]",
    "(e1)": "{} (e1)",
    "(see [e1])": "{} (see [e1])",
    "(source: e1)": "{} (source: e1)",
    ", per e1": "{}, per e1",
    "— from [e1]": "{} — from [e1]",
    "— [e1]": "{} — [e1]",
    "[e1] line": "[e1] {}",
    "Answer: line [e1]": "Answer: {} [e1]",
    "bold [e1]": "**{}** [e1]",
}
MARKED = {
    "line [e1].": "{} [e1].",
    ": [e1]": "{}: [e1]",
    ". [e1]": "{}. [e1]",
    ", [e1]": "{}, [e1]",
    "- e1": "{} - e1",
    "italics [e1]": "*{}* [e1]",
    "code [e1]": "`{}` [e1]",
    "quoted [e1]": '"{}" [e1]',
    "quoted, bullet": '- "{}"',
    "row [e1]": "| {} | [e1] |",
    "The answer is … [e1].": "The answer is {} [e1].",
    "The answer is …": "The answer is {}.",
    "remark": "{} — a remark [e1]",
}
LAYOUTS = (
    *(ReplyLayout(name, line) for name, line in LINES.items()),
    *(ReplyLayout(name, line, shown_only=True) for name, line in MARKED.items()),
    ReplyLayout("tags in a line", "{} [e1]", of_reply, "<answers>{}</answers>"),
    ReplyLayout("a tag for each", "<answer>{} [e1]</answer>", of_reply),
    ReplyLayout("tags", "{} [e1]", of_reply, TAGGED),
    ReplyLayout("five lines [e1]", "{} [e{n}]", of_reply, TAGGED, size=5, shown_only=True),
    ReplyLayout("five numbers [e1]", "{n}. {} [e{n}]", of_reply, TAGGED, size=5, shown_only=True),
    ReplyLayout("five lines", "{}", of_reply, TAGGED, size=5, shown_only=True),
    ReplyLayout(
        "five rows",
        "| {n} | {} | e{n} |",
        of_reply,
        "| # | Answer | Citation |\n|---|---|---|\n{}",
        size=5,
        shown_only=True,
    ),
    ReplyLayout("no tags [e1]", "{} [e1]", of_reply, shown_only=True),
    ReplyLayout("heading", "- {} [e1]", of_reply, "## Answers\n{}", shown_only=True),
    ReplyLayout("label", "{} [e1]", of_reply, "**Answer:** {}", shown_only=True),
    ReplyLayout("JSON texts", '"{} [e1]"', of_reply, '{"answers": [{}]}', ", ", escaped=True),
    ReplyLayout(
        "JSON objects", '{"answer": "{}", "citations": ["e1"]}', of_reply, '{"answers": [{}]}', ", ", escaped=True
    ),
    ReplyLayout("JSON list", '"{}"', of_block, "[{}]", ",\n ", 5, escaped=True, shown_only=True),
    ReplyLayout("A, B and C [e1]", "{}", of_block, "{} [e1]", ", ", 3, last=" and ", shown_only=True),
    ReplyLayout("A; B; C", "{}", of_block, join="; ", size=3, shown_only=True),
    ReplyLayout("A | B | C [e1]", "{}", of_block, "{} [e1]", " | ", 3, shown_only=True),
    ReplyLayout("A [e1], B [e2] and C [e3]", "{} [e{n}]", of_block, join=", ", size=3, last=" and ", shown_only=True),
    ReplyLayout("entities", "{}", of_list, ENTITIES, shown_only=True),
    ReplyLayout("entities, bullets", "- {}", of_list, ENTITIES, size=5, shown_only=True),
    ReplyLayout("entities, numbers", "{n}. {}", of_list, ENTITIES, size=5, shown_only=True),
    ReplyLayout("entities, JSON", '"{}"', of_list, '{"next-entities": [{}]}', ", ", 5, escaped=True, shown_only=True),
    ReplyLayout("entities, no tags", "- {}", of_list, size=5, shown_only=True),
)
NO_ANSWER = frozenset(("unknown", "nothing", "none", "n/a", "-", "–", "+", ".", "no answer", ""))
"""Names that are words for no answer, or marks alone."""


@dataclass
class Count:
    """What became of the names in one layout."""

    names: int = 0
    altered: int = 0
    lost: int = 0
    ambiguous: int = 0
    examples: list[str] = field(default_factory=list)


def ambiguous(name: str, read: Names, text: str, layout: ReplyLayout) -> bool:
    """Tell whether the bytes of a reply are also how what was read is written, in another layout."""
    if not read or (len(read) == 1 and not any(map(str.isalnum, name))):
        return name.strip().casefold() in NO_ANSWER
    others = [other for other in LAYOUTS if other.read is layout.read or other.around == "{}"]
    lines = {other.line for other in others if other.join == "\n"} | {
        '"{}"',
        "“{}”",
        "'{}'",
        "{}¹³",
        "{} [3]",
        "{}.",
        "{}:",
        "{};",
        "{} ;",
    }
    joins = {other.join for other in others if other.join != "\n"}
    inner = [line.replace("{n}", "1").replace("{}", read[0]) for line in lines] if len(read) == 1 else []
    inner += [join.join(read) for join in joins]
    return any(name == each or layout.write([each]) == text for each in inner)


def measured(layout: ReplyLayout, names: Names, context: int, shown: bool) -> Count:
    """Write and read every name in a layout."""
    count = Count()
    for begin in range(0, len(names), context):
        part = names[begin : begin + context]
        known = ShownNames(part) if shown else None
        for at in range(0, len(part), layout.size):
            written = part[at : at + layout.size]
            text = layout.write(written)
            read = layout.read(text, known)
            count.names += len(written)
            if read == list(written):
                continue
            wrong = [name for name in written if name not in read] or list(written)
            if layout.size == 1 and ambiguous(written[0], read, text, layout):
                count.ambiguous += 1
                continue
            count.altered += len(wrong)
            count.lost += len(wrong) if len(read) < len(written) else 0
            count.examples.append(f"{wrong[0]!r} -> {read!r}")
    return count


def every_name(data: Path) -> dict[str, str]:
    """Return the names of all graphs that are there, each with its graph."""
    found: dict[str, str] = {}
    with (SHIPPED / "nodes.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["name"], "atlas")
    for graph, file_name, mark in (
        ("MetaQA", "metaqa/kb.txt.xz", "|"),
        ("freebase_core", "freebase_core/graph_full.tsv.xz", "\t"),
    ):
        for head, tail in ends(data / file_name, mark):
            found.setdefault(head, graph)
            found.setdefault(tail, graph)
    return {name: graph for name, graph in found.items() if name}


def ends(path: Path, mark: str) -> Iterator[tuple[str, str]]:
    """Yield the ends of the triples in a file; none where there is no file."""
    if path.is_file():
        with lzma.open(path, "rt", encoding="utf-8", newline="\n") as file:
            for line in file:
                head, _, tail = line.rstrip("\n").split(mark)
                yield head, tail


def main() -> int:
    """Measure and print."""
    parser = make_parser(__doc__, "folder that holds metaqa and freebase_core")
    parser.add_argument("--every", type=int, default=1, help="take each Nth name (default: %(default)s)")
    parser.add_argument("--context", type=int, default=2000, help="names shown at once (default: %(default)s)")
    parser.add_argument("--layout", help="measure only layouts with this in their names")
    parser.add_argument("--examples", type=int, default=3, help="number of altered names to print")
    options = parser.parse_args()
    names = list(every_name(options.data))[:: options.every]
    rows: list[Row] = []
    missed = 0
    for shown in (False, True):
        for layout in LAYOUTS:
            if (layout.shown_only and not shown) or (options.layout or "") not in layout.name:
                continue
            began = time.perf_counter()
            count = measured(layout, names, options.context, shown)
            spent = (time.perf_counter() - began) / count.names * 1e6
            title = f"{layout.name}{', names shown' if shown else ''}"
            for what in ("names", "altered", "lost", "ambiguous"):
                rows.append(Row(f"{title}: {what}", getattr(count, what)))
            rows.append(Row(f"{title}: time a name", spent, "µs"))
            missed += count.altered
            found = f"{count.altered} altered, {count.lost} lost, {count.ambiguous} ambiguous"
            print(f"{title}: {count.names:,} names, {found}, {spent:.0f} µs", flush=True)
            for example in count.examples[: options.examples]:
                print(f"    {example[:300]}")
    rows.append(Row("altered in all layouts", missed))
    show(rows, "Names in replies", options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
