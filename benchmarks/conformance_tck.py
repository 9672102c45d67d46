"""The openCypher TCK, and the guard's own corpora, on Neo4j and ArcadeDB; `conformance.py` runs them."""

from __future__ import annotations

import itertools
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from benchmarks.rows import Row
from byokg.errors import ByokgError, QueryRefused
from byokg.graph.guard.guard import check_cypher
from byokg.graph.store import QueryLimits
from byokg.types import EdgeCell, NodeCell, PathCell
from tests.graph.guard import corpus_cypher, corpus_tck
from tests.graph.guard.guard_engine import GRAPH, PARAMETERS

LIMITS = QueryLimits(timeout_s=30, max_rows=100_000)


@dataclass
class Tally:
    """What became of the tests of one suite in one place."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def count(self, what: str, holds: bool, test: str) -> None:
        """Count one test, and note it if it does not hold."""
        self.counts[what] += 1
        self.counts[f"{what}, as it must"] += holds
        if not holds:
            self.wrong.append(f"{self.name}: {what}: {test}")

    def rows(self) -> list[Row]:
        """Return figures."""
        return [Row(f"{self.name}: {what}", value) for what, value in self.counts.items()]


@dataclass(frozen=True)
class Scenario:
    """One scenario of the TCK, or one example of an outline."""

    name: str
    setup: Sequence[str]
    query: str
    parameters: Sequence[tuple[str, str]]
    """Names and Cypher literals."""
    changes: bool
    """The suite expects side effects."""
    fails: bool
    """The suite expects an error."""

    @property
    def writes(self) -> bool:
        """Tell whether the query writes, be it without an effect."""
        return self.changes or _WRITING.search(_QUOTED.sub("''", self.query)) is not None


def scenarios(suites: Path) -> Iterator[Scenario]:
    """Yield the scenarios of all features, in the order of their names, outlines with each of their examples."""
    folder = suites / "opencypher/tck"
    for path in sorted(folder.glob("features/**/*.feature")):
        blocks = re.split(r"^\s*Scenario(?: Outline)?: ", path.read_text("utf-8"), flags=re.MULTILINE)
        for block in blocks[1:]:
            head, *tables = re.split(r"^\s*Examples:.*$", block, flags=re.MULTILINE)
            examples: list[dict[str, str]] = [{}]
            if tables:
                examples = []
                for table in tables:
                    names, *rows = [_cells(line) for line in table.splitlines() if line.strip().startswith("|")]
                    examples += [dict(zip(names, row, strict=True)) for row in rows]
            for number, example in enumerate(examples):
                text = re.sub(r"<(\w+)>", lambda found: example.get(found[1], found[0]), head)  # noqa: B023
                yield _scenario(f"{path.stem} {head.splitlines()[0].strip()} {number}", text, folder)


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def _scenario(name: str, text: str, folder: Path) -> Scenario:
    setup: list[str] = []
    if graph := re.search(r"Given the (binary-tree-\d) graph", text):
        setup.append((folder / "graphs" / graph[1] / f"{graph[1]}.cypher").read_text("utf-8"))
    parts = re.findall(
        r"^\s*(?:And|When|Given) ([^\n]*?):?\n\s*\"\"\"\n(.*?)\n\s*\"\"\"", text, re.MULTILINE | re.DOTALL
    )
    setup += [query for step, query in parts if step.startswith("having executed")]
    query = next(query for step, query in parts if step.startswith("executing query"))
    told = re.search(r"parameters are:\n((?:\s*\|.*\n?)+)", text)
    lines = [_cells(line) for line in told[1].splitlines() if line.strip()] if told else []
    parameters = [(cells[0], cells[1]) for cells in lines]
    return Scenario(name, setup, query, parameters, "the side effects should be" in text, "should be raised" in text)


class CypherPlace(Protocol):
    """Something that holds a property graph and answers queries, with us and without us."""

    name: str

    def fill(self, setup: Sequence[str]) -> None:
        """Hold what some queries make, and nothing else. Raises `ValueError` where the engine cannot."""

    def value(self, literal: str) -> Any:
        """Return what a literal stands for."""

    def kind(self, scenario: Scenario, parameters: dict[str, Any]) -> str | None:
        """Return r for a query that reads; None for one that the engine refuses."""

    def raw(self, text: str, parameters: dict[str, Any]) -> Any:
        """Answer a text as it stands; None where the engine refuses it."""

    def through(self, text: str, parameters: dict[str, Any]) -> Any:
        """Answer a text through guard and store."""

    def content(self) -> Any:
        """Return all that is stored."""


class Arcade:
    """ArcadeDB in this process, which is emptied for every scenario; between guard and engine stands no store."""

    name = "ArcadeDB, embedded"

    def __init__(self) -> None:
        from arcadedb_embedded.jvm import start_jvm

        start_jvm(heap_size="512m", jvm_args=["-Djava.util.logging.config.file=/dev/null"])
        self._database = self._new()

    def _new(self) -> Any:
        from arcadedb_embedded import create_database

        return create_database(str(Path(tempfile.mkdtemp()) / "database"))

    def fill(self, setup: Sequence[str]) -> None:
        """Hold what some queries make, and nothing else."""
        from arcadedb_embedded.exceptions import ArcadeDBError

        try:
            self._make(["MATCH (n) DETACH DELETE n", *setup])
        except ArcadeDBError:  # such as a label that was a relation before
            self._database.drop()
            self._database = self._new()
            try:
                self._make(setup)
            except ArcadeDBError as error:
                raise ValueError(str(error)) from error

    def _make(self, setup: Sequence[str]) -> None:
        for query in setup:
            with self._database.transaction():
                self._database.command("opencypher", query)

    def value(self, literal: str) -> Any:
        """Return what a literal stands for."""
        return self._database.query("opencypher", f"RETURN {literal} AS value").to_list()[0]["value"]

    def kind(self, scenario: Scenario, parameters: dict[str, Any]) -> str | None:
        """Take the suite's word: ArcadeDB does not say what a query is."""
        return None if scenario.fails else "rw" if scenario.writes else "r"

    def raw(self, text: str, parameters: dict[str, Any]) -> Any:
        """Answer a text as it stands; None where the engine refuses it."""
        try:
            return (), [repr(row) for row in self._database.query("opencypher", text, parameters).to_list()]
        except Exception:  # whatever the engine raises is an answer here
            return None

    def through(self, text: str, parameters: dict[str, Any]) -> Any:
        """Answer what the guard hands on."""
        return self.raw(check_cypher(text, LIMITS.max_rows).text, parameters)

    def content(self) -> Any:
        """Return all that is stored."""
        texts = ("MATCH (n) RETURN n", "MATCH (a)-[r]->(b) RETURN a, r, b")
        return [sorted(repr(row) for row in self._database.query("opencypher", text).to_list()) for text in texts]


class Neo4j:
    """A genuine Neo4j, which is emptied for every scenario."""

    name = "Neo4j"

    def __init__(self, address: str) -> None:
        import neo4j

        from byokg.graph.servers.bolt import Neo4jStore

        self._driver = neo4j.GraphDatabase.driver(address, notifications_min_severity="OFF")
        self._session = self._driver.session()
        self._store = Neo4jStore(address)

    def fill(self, setup: Sequence[str]) -> None:
        """Hold what some queries make, and nothing else."""
        self._session.run("MATCH (n) DETACH DELETE n").consume()
        for query in setup:
            self._session.run(query).consume()

    def value(self, literal: str) -> Any:
        """Return what a literal stands for."""
        return self._session.run(f"RETURN {literal} AS value").single(strict=True)["value"]

    def kind(self, scenario: Scenario, parameters: dict[str, Any]) -> str | None:
        """Return r for a query that reads; None for one that the server refuses."""
        from neo4j.exceptions import Neo4jError

        try:
            return self._session.run(f"EXPLAIN {scenario.query}", parameters).consume().query_type
        except Neo4jError:
            return None

    def raw(self, text: str, parameters: dict[str, Any]) -> Any:
        """Answer a text as it stands; None where the server refuses it."""
        from neo4j.exceptions import Neo4jError

        try:
            result = self._session.run(text, parameters)
            return list(result.keys()), [[self._shape(value) for value in row.values()] for row in result]
        except Neo4jError:
            return None

    def through(self, text: str, parameters: dict[str, Any]) -> Any:
        """Answer a text through guard and store."""
        rows = self._store.run(text, parameters, LIMITS)
        return list(rows.columns), [[self._shape(value) for value in row] for row in rows.rows]

    def run(self, text: str, parameters: dict[str, Any]) -> Any:
        """Run a text where it may write; return what the server says of it. Raises `Neo4jError`."""
        with self._session.begin_transaction(timeout=20) as transaction:
            done = transaction.run(text, parameters).consume()
            transaction.commit()
        return done

    def content(self) -> Any:
        """Return all that is stored."""
        nodes = "MATCH (n) RETURN elementId(n) AS id, labels(n) AS labels, properties(n) AS properties ORDER BY id"
        edges = "MATCH (a)-[r]->(b) RETURN elementId(r) AS id, type(r), properties(r) ORDER BY id"
        return [
            str(list(self._session.run(text).data()))
            for text in (nodes, edges, "SHOW INDEXES YIELD name", "SHOW CONSTRAINTS YIELD name")
        ]

    def _shape(self, value: Any) -> Any:
        """Make values of the driver and cells of ours comparable."""
        from neo4j import graph

        if isinstance(value, NodeCell | graph.Node):
            return "node", value.id if isinstance(value, NodeCell) else value.element_id
        if isinstance(value, EdgeCell):
            return "edge", value.relation, value.head, value.tail
        if isinstance(value, graph.Relationship):
            assert value.start_node is not None
            assert value.end_node is not None
            return "edge", value.type, value.start_node.element_id, value.end_node.element_id
        if isinstance(value, PathCell | graph.Path):
            edges = value.edges if isinstance(value, PathCell) else value.relationships
            return "path", [self._shape(one) for one in value.nodes], [self._shape(one) for one in edges]
        if type(value) in (list, tuple):  # durations and points are tuples of a kind
            return [self._shape(one) for one in value]
        if isinstance(value, dict):
            return {key: self._shape(one) for key, one in sorted(value.items())}
        if value is None or isinstance(value, bool | int | float):
            return value
        text = value.iso_format() if hasattr(value, "iso_format") else str(value)
        if getattr(getattr(value, "tzinfo", None), "zone", None):  # whose offsets the driver rounds to minutes
            told = self._session.run("RETURN toString($value) AS text", value=value).single()
            text = text if told is None else told["text"]
        return _FRACTION.sub(r"\1", _ZONE.sub("", text).replace("+00:00", "Z")) if _TIME.match(text) else text


def cypher(suites: Path, place: CypherPlace, every: int) -> Tally:
    """Ask the queries of the TCK with us and without us, and try those that write.

    A read that a server plans, and then ends with an error (`toInteger([])`), has no rows to compare: with us it has to
    end with an error of ours.
    """
    tally = Tally(f"openCypher TCK, {place.name}")
    for scenario in itertools.islice(scenarios(suites), 0, None, every):
        try:
            place.fill(scenario.setup)
        except ValueError:
            tally.counts["data that the engine does not take"] += 1
            continue
        parameters = {name: place.value(literal) for name, literal in scenario.parameters}
        kind = place.kind(scenario, parameters)
        if kind is None:
            tally.counts["queries that the server itself refuses"] += 1
        elif kind == "r":
            plain = place.raw(scenario.query, parameters)
            try:
                ours, why = place.through(scenario.query, parameters), ""
            except ByokgError as error:
                ours, why = None, str(error)
            if plain is None:
                tally.count("reads that fail at run time, failing with us", ours is None, scenario.name)
                continue
            if ours is None:
                tally.count("reads equal", False, f"{scenario.name}: {why}")
                continue
            ordered = "ORDER BY" in scenario.query
            same = repr(plain) == repr(ours) or (not ordered and _sorted(plain) == _sorted(ours))
            tally.count("reads equal", same, scenario.name)
        else:
            before = place.content()
            try:
                place.through(scenario.query, parameters)
                refused = False
            except QueryRefused:
                refused = True
            tally.count("writes refused, data unchanged", refused and place.content() == before, scenario.name)
    return tally


def _sorted(answer: Any) -> Any:
    columns, rows = answer
    return columns, sorted(map(repr, rows))


def corpus(place: Neo4j, every: int) -> Tally:
    """Run what the guard lets through of its own corpora as a user who may write, past all else that stops writes."""
    from neo4j.exceptions import Neo4jError

    tally = Tally(f"guard's own corpora, {place.name}")
    texts = [*corpus_cypher.READS, *corpus_cypher.WRITES, *corpus_cypher.UNREADABLE, *corpus_tck.READS]
    place.fill([GRAPH])
    before = place.content()
    for text in texts[::every]:
        try:
            checked = check_cypher(text, 100).text
        except QueryRefused:
            tally.counts["refused"] += 1
            continue
        try:
            done = place.run(checked, PARAMETERS)
        except Neo4jError:
            tally.counts["passed, not understood by the server"] += 1
            continue
        changed = done.counters.contains_updates or done.counters.contains_system_updates
        tally.count("passed, and nothing changed", not changed, text)
    tally.count("everything as before", place.content() == before, "content")
    return tally


def guarded(suites: Path, every: int) -> Tally:
    """Judge the queries of the TCK by what the suite says of them, without a server."""
    tally = Tally("openCypher TCK, guard alone")
    for scenario in itertools.islice(scenarios(suites), 0, None, every):
        if scenario.fails:
            continue
        try:
            check_cypher(scenario.query)
            passes = True
        except QueryRefused:
            passes = False
        if "test." not in scenario.query:
            holds = passes is not scenario.writes
            tally.count("writes refused" if scenario.writes else "reads pass", holds, scenario.name)
    return tally


# The driver writes nine digits behind the second, the server as few as there are, and the zone behind the offset.
_TIME = re.compile(r"([-+\d]+-\d\d-\d\dT)?\d\d:\d\d:\d\d")
_FRACTION, _ZONE = re.compile(r"(?:\.0+|(\.\d*[1-9])0+)(?=$|[-+Z])"), re.compile(r"\[.*\]$")

_WRITING = re.compile(r"(?<![.:])\b(CREATE|MERGE|DELETE|SET|REMOVE)\b", re.IGNORECASE)
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`")


_STEP = re.compile(r"^\s*(?:And|When|Given) ([^\n]*?):?\n\s*\"\"\"\n(.*?)\n\s*\"\"\"", re.MULTILINE | re.DOTALL)
