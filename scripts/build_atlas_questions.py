"""Write `questions.jsonl` of the shipped `atlas` data set, or check the existing one.

Every question comes from a pattern in `atlas_patterns.yaml`: a query that finds topics, a gold query that answers, and
several wordings. The gold query runs in SQLite over nodes.csv and edges.csv, so answers do not depend on byokg's own
graph code, and it is stored beside the question so that anyone can run it again.

    python scripts/build_atlas_questions.py            # rebuild questions.jsonl
    python scripts/build_atlas_questions.py --check    # rerun each stored gold query, exit 1 on a difference

Same input, same bytes: topics are taken in the order of a digest, never of a set or of a random generator.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import re
import sqlite3
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import yaml

ATLAS = Path(__file__).resolve().parent.parent / "byokg" / "data" / "atlas"
INPUT = yaml.safe_load(Path(__file__).with_name("atlas_patterns.yaml").read_text(encoding="utf-8"))
WITH_ARTICLE = frozenset(INPUT["with_article"])
SEED = 7
MOST_ANSWERS = 40

Kind = Literal[
    "1-hop",
    "2-hop",
    "3-hop",
    "multi-constraint",
    "count",
    "superlative",
    "temporal",
    "comparison",
    "difference",
    "union",
    "properties",
]
Cell: TypeAlias = str | int | float | None
Record: TypeAlias = dict[str, Any]

# Where a title other than prime minister is used.
OFFICES = {"Germany": "chancellor"}

# Read by topic queries only, never by a gold query.
SELECTION = """
CREATE TEMP VIEW plain_capital (country, city) AS SELECT country, city FROM capital
  WHERE country NOT IN odd_capital GROUP BY country HAVING COUNT(*) = 1;
CREATE TEMP VIEW unwritten (id) AS SELECT head FROM edge WHERE relation = 'official_language' AND source = 'de-facto';
CREATE TEMP VIEW shared_currency (currency) AS SELECT currency FROM currency
  WHERE currency NOT IN odd_currency AND currency <> 'currency/euro' GROUP BY currency HAVING COUNT(*) > 2;
CREATE TEMP VIEW settled (id) AS SELECT DISTINCT a FROM neighbour WHERE a NOT IN odd_border;
CREATE TEMP VIEW big (id) AS SELECT id FROM node WHERE type = 'Country' AND population > 2500000;
CREATE TEMP TABLE year (y INTEGER);
CREATE TEMP VIEW reign (country, y, person) AS SELECT country, y, MIN(person) FROM led JOIN year
  ON y BETWEEN since AND until WHERE y BETWEEN 1990 AND 2023
  GROUP BY country, y HAVING COUNT(*) = 1 AND MIN(since) < y AND MAX(until) > y;
CREATE TEMP VIEW near (a, b) AS SELECT x.head, y.head FROM edge x
  JOIN edge y ON x.relation=y.relation AND x.tail=y.tail
  WHERE x.relation IN ('in_region', 'flows_through', 'mountain_in', 'head_of_government_of') AND x.head<y.head;
CREATE TEMP VIEW native (person, country) AS SELECT person, MIN(country) FROM born GROUP BY person HAVING COUNT(*) = 1;
"""


class Label:
    """A name as it stands in a sentence.

    Format specifications: none gives the name with the article it needs; `'s` the possessive of that; `-` the name
    alone; `now` the name as that of a country within today's borders; `office` the title of its head of government;
    `field` the last word of a prize.
    """

    def __init__(self, name: str, type_: str) -> None:
        self.name = name
        article = (
            name in WITH_ARTICLE
            or type_ in ("River", "Currency", "Award")
            or (type_ in ("Sea", "Ocean") and not name.endswith((" Bay", " Sound")))
            or (type_ == "Lake" and "Sea" in name.split())
            or name.startswith("City of ")
        )
        shown = name[0].lower() + name[1:] if type_ == "Currency" and name in ("Euro", "Pound sterling") else name
        self.text = f"the {shown}" if article else shown

    def __format__(self, spec: str) -> str:
        if spec == "":
            return self.text
        if spec == "'s":
            return self.text + ("'" if self.text.endswith("s") else "'s")
        if spec == "-":
            return self.name
        if spec == "now":
            return f"the present-day {self.name}" if self.text != self.name else f"present-day {self.name}"
        if spec == "office":
            return f"{OFFICES.get(self.name, 'prime minister')} of {self.text}"
        if spec == "field":
            return self.name.split()[-1].lower()
        raise ValueError(f"no format specification {spec!r} for a name")


@dataclass(frozen=True)
class Pattern:
    """One kind of question.

    `topics` returns the arguments of each candidate question; `gold` answers it, with the arguments put in for
    `{0}`, `{1}`; it returns node ids, or values where `values` is set. A superlative gives `rank`, by which its
    rows are ordered: the generator then demands that no candidate lacks that property and that the best leads the
    next by more than `margin` (a share of it), since populations and areas are estimates. A candidate question
    for which `unless` returns a row is dropped. The answer of a `choice` is one of its topics. `take` topics are used,
    with `each` wordings for every one.
    """

    slug: str
    kind: Kind
    hops: int
    topics: str
    gold: str
    wordings: tuple[str, ...]
    take: int = 3
    each: int = 2
    values: bool = False
    rank: str = ""
    margin: float = 0.06
    unless: str = ""
    choice: bool = False

    @property
    def query(self) -> str:
        """Return the gold query with its order, arguments not yet put in."""
        return f"{self.gold} ORDER BY {self.rank} LIMIT 1" if self.rank else self.gold

    @property
    def ranking(self) -> str:
        """Return the query for every candidate of a superlative with the value that ranks it, best first."""
        chosen, rest = self.gold.split(" FROM ", 1)
        value, order = self.rank.rsplit(" ", 1)
        return f"{chosen}, {value} FROM {rest} ORDER BY 2 {order}"


PATTERNS = tuple(Pattern(**{**fields, "wordings": tuple(fields["wordings"])}) for fields in INPUT["patterns"])


def open_atlas(folder: Path) -> sqlite3.Connection:
    """Load nodes.csv and edges.csv of `folder` into a fresh in-memory database, with the views of schema.sql."""
    database = sqlite3.connect(":memory:")
    database.executescript((folder / "schema.sql").read_text(encoding="utf-8"))
    for table in ("node", "edge"):
        with (folder / f"{table}s.csv").open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file)
            marks = ", ".join("?" for _ in next(rows))
            database.executemany(
                f"INSERT INTO {table} VALUES ({marks})", ([cell or None for cell in row] for row in rows)
            )
    return database


def add_selection(database: sqlite3.Connection) -> None:
    """Add inputs of the topic queries: the lists of doubtful cases by id, plain years, and views over both."""
    for table, doubtful in INPUT["doubtful"].items():
        type_ = doubtful["type"]
        database.execute(f"CREATE TEMP TABLE {table} (id TEXT)")
        for name in doubtful["names"]:
            added = database.execute(
                f"INSERT INTO {table} SELECT id FROM node WHERE type = ? AND name = ?", (type_, name)
            )
            if added.rowcount != 1:
                raise ValueError(f"{name!r} in the list for {table} is not the name of one {type_} in nodes.csv")
    database.executescript(SELECTION)
    database.executemany("INSERT INTO year VALUES (?)", ((y,) for y in range(1900, 2031)))


def digest(*parts: object) -> str:
    """Return the sha256 hex digest of the parts, joined by `|`."""
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()


def answers_of(database: sqlite3.Connection, query: str) -> list[Cell]:
    """Return the first column of a gold query's result."""
    return [row[0] for row in database.execute(query)]


def is_clear(database: sqlite3.Connection, pattern: Pattern, topic: Sequence[Cell]) -> bool:
    """True if a question is admissible: no exclusion applies, and a superlative has one clear winner."""
    if pattern.unless and database.execute(pattern.unless.format(*topic)).fetchone() is not None:
        return False
    if not pattern.rank:
        return True
    values = [row[1] for row in database.execute(pattern.ranking.format(*topic))]
    if len(values) < 2 or None in values:
        return False
    return bool(abs(values[0] - values[1]) > pattern.margin * abs(values[0]))


def words(text: str) -> str:
    """Return the text without accents, case and punctuation, one blank around each word."""
    plain = unicodedata.normalize("NFKD", text)
    plain = "".join(c for c in plain if not unicodedata.combining(c)).casefold()
    return f" {' '.join(re.findall(r'[a-z0-9]+', plain))} "


class Names:
    """Names and types of the nodes, with excluded ones."""

    def __init__(self, database: sqlite3.Connection) -> None:
        rows = database.execute("SELECT id, name, type FROM node").fetchall()
        self.name: dict[str, str] = {row[0]: row[1] for row in rows}
        self.type: dict[str, str] = {row[0]: row[2] for row in rows}
        bearers: dict[str, list[str]] = {}
        for id_, name, _ in rows:
            bearers.setdefault(words(name), []).append(id_)
        odd = database.execute("SELECT id FROM odd_currency")
        self.barred = {row[0] for row in odd} | {
            id_
            for ids in bearers.values()
            if len(ids) > 1 and {self.type[i] for i in ids} != {"Continent", "Region"}
            for id_ in ids
        }
        self.odd_capital = {row[0] for row in database.execute("SELECT city FROM capital WHERE country IN odd_capital")}

    def label(self, cell: Cell) -> Label | Cell:
        """Return the text of one argument in a wording: a label for a node, a number as it is."""
        return Label(self.name[cell], self.type[cell]) if isinstance(cell, str) else cell


def instances(
    database: sqlite3.Connection, names: Names, pattern: Pattern
) -> Iterator[tuple[tuple[Cell, ...], list[Cell]]]:
    """Yield the topics of a pattern that make good questions, with their answers, in the order of a digest."""
    topics = sorted(set(database.execute(pattern.topics)), key=lambda topic: digest(SEED, pattern.slug, *topic))
    many = len({topic[0] for topic in topics}) >= pattern.take
    used: set[str] = set()
    earlier: list[set[Cell]] = []
    for topic in topics:
        ids = [cell for cell in topic if isinstance(cell, str)]
        if names.barred.intersection(ids) or not is_clear(database, pattern, topic):
            continue
        answers = answers_of(database, pattern.query.format(*topic))
        if len(set(answers)) < len(answers):
            raise ValueError(
                f"pattern {pattern.slug!r} gives an answer twice for {topic}; its gold query needs DISTINCT"
            )
        if not 0 < len(answers) <= MOST_ANSWERS or None in answers or answers == [0]:
            continue
        if "capital" in pattern.gold and names.odd_capital.intersection(answers):
            continue
        if (
            not pattern.values
            and not pattern.choice
            and leaks([names.name[str(i)] for i in ids], [names.name[str(i)] for i in answers])
        ):
            continue
        # Each first topic once, where there are enough of them: a pattern should not circle round one country.
        if many and ids[0] in used:
            continue
        # Nor should its answers be all but the same, as for two chancellors of one country.
        if not pattern.values and any(alike(set(answers), others) for others in earlier):
            continue
        used.add(ids[0])
        earlier.append(set(answers))
        yield topic, answers


def alike(one: set[Cell], other: set[Cell]) -> bool:
    """True if two sets of answers share more than half of their union."""
    return len(one & other) > len(one | other) / 2


def leaks(topics: Sequence[str], answers: Sequence[str]) -> bool:
    """True if a topic's name reveals an answer, as Lake Malawi does Malawi or Mexico does Mexico City."""
    for topic in map(words, topics):
        for answer in map(words, answers):
            if answer in topic or (len(answers) == 1 and topic in answer):
                return True
    return False


def build(database: sqlite3.Connection) -> list[Record]:
    """Return all records of questions.jsonl, in the order of a digest, so that any first part is a fair sample."""
    names = Names(database)
    records: list[Record] = []
    for pattern in PATTERNS:
        for number, (topic, answers) in enumerate(instances(database, names, pattern)):
            if number == pattern.take:
                break
            records += paraphrases(names, pattern, number, topic, answers)
    return sorted(records, key=lambda record: digest(SEED, record["paraphrase_of"], record["id"]))


def paraphrases(
    names: Names, pattern: Pattern, number: int, topic: tuple[Cell, ...], answers: list[Cell]
) -> list[Record]:
    """Return one record per wording that is used for this topic; wordings take turns from topic to topic."""
    ids = [cell for cell in topic if isinstance(cell, str)]
    if pattern.values:
        answers = sorted(answers, key=str)
    else:
        answers = sorted(answers, key=lambda id_: (names.name[str(id_)], id_))
    key = digest(pattern.slug, *topic)
    group = f"{pattern.slug}-{key[:6]}"
    labels = [names.label(cell) for cell in topic]
    records = []
    for turn in range(pattern.each):
        text = pattern.wordings[(number * pattern.each + turn) % len(pattern.wordings)].format(*labels)
        records.append(
            {
                "id": f"{group}-{turn + 1}",
                "question": text[0].upper() + text[1:],
                "answers": [str(a) if pattern.values else names.name[str(a)] for a in answers],
                "answer_ids": [] if pattern.values else answers,
                "topic_entities": [names.name[id_] for id_ in ids],
                "topic_ids": ids,
                "hops": pattern.hops,
                "type": pattern.kind,
                "pattern": pattern.slug,
                "gold_sql": pattern.query.format(*topic),
                "split": "dev" if key[0] in "01234567" else "test",
                "paraphrase_of": group,
            }
        )
    return records


def differences(database: sqlite3.Connection, records: Sequence[Record]) -> Iterator[str]:
    """Rerun the stored gold query of each record; yield a line for each whose answers are not the stored ones."""
    names = dict(database.execute("SELECT id, name FROM node"))
    for record in records:
        try:
            found = answers_of(database, record["gold_sql"])
        except sqlite3.Error as error:
            yield f"{record['id']}: gold query fails: {error}"
            continue
        stored = record["answer_ids"] or record["answers"]
        if sorted(map(str, found)) != sorted(stored):
            yield f"{record['id']}: gold query gives {found}, stored are {stored}"
        elif record["answer_ids"] and [names.get(i) for i in record["answer_ids"]] != record["answers"]:
            yield f"{record['id']}: answers {record['answers']} are not the names of {record['answer_ids']}"


def main() -> int:
    """Write or check questions.jsonl; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="rerun the stored gold queries, write nothing")
    parser.add_argument("--data", type=Path, default=ATLAS, help="folder with nodes.csv, edges.csv and schema.sql")
    parser.add_argument("--out", type=Path, help="file to write or check (default: questions.jsonl in --data)")
    arguments = parser.parse_args()
    out: Path = arguments.out or arguments.data / "questions.jsonl"
    database = open_atlas(arguments.data)
    if arguments.check:
        records = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        wrong = list(differences(database, records))
        print(*wrong, f"{len(records)} questions checked, {len(wrong)} differ", sep="\n")
        return 1 if wrong else 0
    add_selection(database)
    records = build(database)
    unfinished = out.with_name(out.name + ".part")
    unfinished.write_text(
        "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8"
    )
    os.replace(unfinished, out)
    print(f"{out}: {len(records)} questions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
