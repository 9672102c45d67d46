"""Graph servers on one Freebase graph: waiting times, and equality of their answers with those of files.

python benchmarks/servers.py FREEBASE_CORE [--servers KIND…] [--nodes N] [--questions FILE] [--asked N] [--json FILE]
python benchmarks/servers.py FREEBASE_CORE --at KIND=ADDRESS …
python benchmarks/servers.py FREEBASE_CORE --write FILE.nt

FREEBASE_CORE is `graph_full.tsv.xz`. KIND is neo4j, fuseki, virtuoso or oxigraph: each is started by the `start` of
../shared/servers (or of BYOKG_SERVERS_DIR), filled, measured and stopped, one after the other, by default all four;
unavailable ones are reported and skipped. `--at` uses running servers that hold the graph already: as RDF
with ids `ns:m.…` and names `type.object.name` (`--write` makes these N-Triples); Neo4j as
(:Entity {id: 'm.…', name: …}), with the relation names of the file.

Every figure is that of a new store with an empty cache; "raw" is the same query sent by the driver or by httpx.
Waiting times are accompanied by processor times of client and server, which do not depend on the load of the machine.
Checks of equality cover numbers of edges by relation, edges, nodes and schema of N nodes, compared with a graph in
memory made of the same file; and the answers of the offline pipeline to the first questions of FILE
(`questions.jsonl.xz` of WebQSP, whose topics are names) over both, with lazy schema statistics.
"""

from __future__ import annotations

import json
import lzma
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, suppress
from dataclasses import dataclass
from functools import partial
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import read_lines, timed
from benchmarks.rows import Row, make_parser, show
from byokg.errors import ByokgError, StoreUnavailable
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.exporter import copy_graph
from byokg.graph.rdf.terms import FREEBASE
from byokg.graph.store import GraphStore
from byokg.graph.traversal import triples
from byokg.linking.entities import EntityLinker
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from byokg.open import open_graph
from byokg.types import EntityId, Mention, Node, Question, Triple

Result = TypeVar("Result")

_KINDS = ("neo4j", "fuseki", "virtuoso", "oxigraph")
_FOLDER = Path(os.environ.get("BYOKG_SERVERS_DIR", Path(__file__).parents[2] / "shared" / "servers"))
_ROWS = 20_000
"""Nodes, or edges, sent to Neo4j at once."""
_MID = re.compile(r"[mg]\.[0-9a-z_]+")
_TYPES = "common.topic.notable_types"
_MISSPELT, _MEANT = "Justin Beiber", "Justin Bieber"


def read(file: Path) -> tuple[dict[str, str], list[tuple[str, str, str]]]:
    """Return the id of each name, and the edges between names; names that are ids keep them."""
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        edges = [tuple(line.rstrip("\n").split("\t")) for line in lines]
    names = dict.fromkeys(end for head, _, tail in edges for end in (head, tail))
    ids = {name: name if _MID.fullmatch(name) else f"m.0x{number:x}" for number, name in enumerate(names)}
    return ids, edges  # type: ignore[return-value]


def n_triples(ids: dict[str, str], edges: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """Write the graph as Freebase's dump has it."""
    for head, relation, tail in edges:
        yield f"<{FREEBASE}{ids[head]}> <{FREEBASE}{relation}> <{FREEBASE}{ids[tail]}> .\n"
    for name, mid in ids.items():
        if name != mid:
            escaped = json.dumps(name, ensure_ascii=False)
            yield f"<{FREEBASE}{mid}> <{FREEBASE}type.object.name> {escaped}@en .\n"


def in_memory(ids: dict[str, str], edges: Sequence[tuple[str, str, str]], rdf: bool) -> ColumnarGraph:
    """Return what a server should say: a type is the name of the notable type with the least id."""
    space, prefix = (FREEBASE, "fb:") if rdf else ("", "")
    kinds: dict[str, str] = {}
    if rdf:
        for head, relation, tail in edges:
            if relation == _TYPES:
                kinds[head] = min(kinds.get(head, tail), tail, key=lambda name: FREEBASE + ids[name])
    nodes = [Node(EntityId(space + mid), name, kinds.get(name, "") if rdf else "Entity") for name, mid in ids.items()]
    made = [Triple(EntityId(space + ids[h]), prefix + r, EntityId(space + ids[t])) for h, r, t in edges]
    return ColumnarGraph.from_records(nodes, made)


def asked(file: Path, ids: dict[str, str], count: int, rdf: bool) -> list[Question]:
    """Return the first questions whose topics are all in the graph, with the ids of these."""
    space, chosen = (FREEBASE if rdf else ""), list[Question]()
    for record in read_lines(file):
        topics = record.get("topic_entities") or ()
        if topics and len(chosen) < count and all(topic in ids for topic in topics):
            given = tuple(EntityId(space + ids[topic]) for topic in topics)
            chosen.append(Question(record["id"], record["question"], given))
    return chosen


def answers(store: Any, questions: Sequence[Question]) -> list[frozenset[str | None]]:
    """Return the ids of each question's answers."""
    pipeline = offline_pipeline(Parts(store), lazy_schema=True, max_hops=2)
    return [frozenset(item.id for item in pipeline.run(question).items) for question in questions]


def classes(ids: dict[str, str], edges: Sequence[tuple[str, str, str]]) -> dict[str, int]:
    """Count the nodes of each class, those of several once for each, as RDF stores do; a graph in files knows one."""
    pairs = {(head, tail) for head, relation, tail in edges if relation == _TYPES}
    counts = Counter(tail for _, tail in pairs)
    return {**counts, "": len(ids) - len({head for head, _ in pairs})}


@dataclass(frozen=True)
class Served:
    """A server that holds the graph."""

    kind: str
    address: str
    process: int | None = None
    """Its number, if it was started here."""

    def processor(self) -> float:
        """Return the seconds of processor that the server has used; 0 where it was not started here."""
        used, processes = 0, [] if self.process is None else [self.process]
        for number in processes:  # which grows by the children
            with suppress(OSError):
                fields = Path(f"/proc/{number}/stat").read_text("utf-8").rpartition(")")[2].split()
                used += int(fields[11]) + int(fields[12])
                processes += map(int, Path(f"/proc/{number}/task/{number}/children").read_text("utf-8").split())
        return used / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(kind: str, ids: dict[str, str], edges: Sequence[tuple[str, str, str]]) -> Iterator[Served]:
    """Start a server, fill it, and stop it afterwards. Raises `StoreUnavailable` where it cannot be had."""
    if not (_FOLDER / "start").exists():
        raise StoreUnavailable(kind, f"there is no {_FOLDER / 'start'}; set BYOKG_SERVERS_DIR")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    where = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    with tempfile.TemporaryDirectory() as folder:
        command = [str(_FOLDER / "start"), kind, str(port), folder, *(["update"] if kind == "fuseki" else [])]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=where) as process:
            try:
                assert process.stdout is not None and process.stderr is not None
                said, _, address = process.stdout.readline().strip().partition(" ")
                if said != "ready":
                    raise StoreUnavailable(kind, process.stderr.read().strip()[-300:])
                if kind == "neo4j":
                    fill(address, ids, edges)
                else:
                    file = Path(folder) / "graph.nt"
                    file.write_text("".join(n_triples(ids, edges)), "utf-8")
                    subprocess.run([str(_FOLDER / "load"), kind, str(port), str(file)], check=True, stdout=sys.stderr)
                yield Served(kind, address, process.pid)
            finally:
                process.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(30)


def fill(address: str, ids: dict[str, str], edges: Sequence[tuple[str, str, str]]) -> None:
    """Put the graph into a Neo4j."""
    import neo4j

    with neo4j.GraphDatabase.driver(address) as driver:
        driver.execute_query("CREATE CONSTRAINT entity IF NOT EXISTS FOR (n:Entity) REQUIRE n.id IS UNIQUE")
        nodes = [[mid, name] for name, mid in ids.items()]
        made = [[ids[head], relation, ids[tail]] for head, relation, tail in edges]
        for rows, text in (
            (nodes, "UNWIND $rows AS row CREATE (:Entity {id: row[0], name: row[1]})"),
            (
                made,
                "UNWIND $rows AS row MATCH (a:Entity {id: row[0]}) MATCH (b:Entity {id: row[2]}) "
                "CREATE (a)-[e:$(row[1])]->(b)",
            ),
        ):
            for start in range(0, len(rows), _ROWS):
                driver.execute_query(text, rows=rows[start : start + _ROWS])


def measured(what: str, server: Served, work: Callable[[], Any], found: list[Any]) -> Iterator[Row]:
    """Do some work; yield the seconds waited, and those of both processors."""
    ours, theirs = time.process_time(), server.processor()
    seconds, result = timed(work)
    found.append(result)
    yield Row(f"{server.kind}: {what}", seconds, "s")
    yield Row(f"{server.kind}: {what}, our processor", time.process_time() - ours, "s")
    if server.process is not None:
        yield Row(f"{server.kind}: {what}, its processor", server.processor() - theirs, "s")


def opened(kind: str, address: str) -> Any:
    """Open a store anew."""
    return open_graph(address if kind == "neo4j" else f"sparql+{address}", **settings(kind))


def settings(kind: str) -> dict[str, Any]:
    """Return what identifies nodes where that has to be said."""
    return {"id_property": "id"} if kind == "neo4j" else {}


def raw(kind: str, address: str, text: str) -> float:
    """Return the seconds of a query without us, the second time it is sent."""
    if kind == "neo4j":
        import neo4j

        with neo4j.GraphDatabase.driver(address) as driver:
            driver.execute_query(text)
            return timed(lambda: driver.execute_query(text))[0]
    with httpx.Client(trust_env=False, timeout=120) as client:
        headers = {"Accept": "application/sparql-results+json"}

        def ask() -> Any:
            return client.post(address, data={"query": text}, headers=headers).raise_for_status().json()

        ask()
        return timed(ask)[0]


def hop_text(kind: str, ids: Sequence[str]) -> str:
    """Write the query for all edges of some nodes."""
    if kind == "neo4j":
        return (
            f"MATCH (n:Entity) WHERE n.id IN {json.dumps(list(ids))} MATCH (n)-[r]-(m) "
            "RETURN n.id, type(r), elementId(r), m.id, startNode(r) = n"
        )
    values = " ".join(f"<{iri}>" for iri in ids)
    return (
        f"SELECT ?s ?p ?o {{ {{ VALUES ?s {{ {values} }} ?s ?p ?o }} UNION {{ VALUES ?o {{ {values} }} ?s ?p ?o }} }}"
    )


def waits(server: Served, ids: Sequence[EntityId], topic: EntityId) -> Iterator[Row]:
    """Measure what people wait for."""
    kind, address = server.kind, server.address
    offline_pipeline(Parts(ColumnarGraph.from_triples([("a", "r", "b")])))  # what is loaded once in a process
    text = "RETURN 1 AS x" if kind == "neo4j" else "SELECT (1 AS ?x) { }"
    bare = raw(kind, address, text)
    with opened(kind, address) as store:
        yield Row(f"{kind}: first query of a new store, over raw", timed(lambda: store.run(text))[0] - bare, "s")
    ours = []
    for _ in range(5):  # new stores, whose memory of edges is empty
        with opened(kind, address) as store:
            numbers = store.numbers(ids[:10])
            ours.append(timed(lambda: store.edges(numbers))[0])  # noqa: B023
    yield Row(f"{kind}: edges of 10 nodes", 1000 * min(ours), "ms")
    yield Row(f"{kind}: edges of 10 nodes, raw", 1000 * raw(kind, address, hop_text(kind, ids[:10])), "ms")
    question = Question("q", f"who is the father of {_MEANT}?", (topic,))
    given: list[Any] = []
    for state in ("cold", "after"):
        with opened(kind, address) as store:
            work: Callable[[], Any] = partial(lambda store: offline_pipeline(Parts(store)).run(question), store)
            yield from measured(f"ask with the entity given, {state}", server, work, given)
            yield Row(f"{kind}: ask is answered right, {state}", float(given[-1].items[0].name == "Jeremy Bieber"))
    for state in ("cold", "kept"):
        with opened(kind, address) as store:
            work = partial(lambda store: (store.schema(), store.node_count), store)
            yield from measured(f"schema and counts, {state}", server, work, given)
    for state in ("first", "after"):
        with opened(kind, address) as store, redirect_stderr(StringIO()):
            work = partial(lambda store: EntityLinker(store).candidates(Mention(_MISSPELT)), store)
            yield from measured(f"link a misspelt name, {state}", server, work, given)
            yield Row(f"{kind}: the right node first, {state}", float(bool(given[-1]) and given[-1][0].name == _MEANT))
    with opened(kind, address) as store:
        yield from measured("copy into memory", server, partial(copy_graph, store), given)


def facts(store: GraphStore, ids: Sequence[EntityId]) -> dict[str, Any]:
    """Return what is compared."""
    numbers = store.numbers(ids)
    counts = store.relation_counts(numbers)
    labels = [store.relations[number] for number in counts.relation.tolist()]
    schema = store.schema()
    return {
        "counts": Counter(
            dict(
                zip(
                    zip(counts.origin.tolist(), labels, counts.inverse.tolist(), strict=True),
                    counts.count.tolist(),
                    strict=True,
                )
            )
        ),
        "edges": Counter((each.head, each.relation, each.tail) for each in triples(store, store.edges(numbers))),
        "nodes": [(node.id, node.name, node.type) for node in store.nodes(ids)],
        "relations": {relation.name: relation.count for relation in schema.relations},
        "types": schema.node_types,
    }


@dataclass
class Expected:
    """What servers are compared with."""

    graph: ColumnarGraph
    nodes: Sequence[EntityId]
    questions: Sequence[Question]
    answers: Sequence[frozenset[str | None]]


def expected(ids: dict[str, str], edges: Sequence[tuple[str, str, str]], rdf: bool, given: Any) -> Expected:
    """Make the graph in memory, choose nodes and questions, and answer them."""
    graph = in_memory(ids, edges, rdf)
    nodes = random.Random(7).sample(list(graph.entities()), given.nodes)
    questions = asked(given.questions, ids, given.asked, rdf) if given.questions else []
    return Expected(graph, nodes, questions, answers(graph, questions) if questions else [])


def compared(server: Served, of: Expected, kinds: dict[str, int] | None) -> Iterator[Row]:
    """Say whether a server gives what files give; `kinds` are the sizes of classes, where nodes may have several."""
    kind = server.kind
    with opened(kind, server.address) as store:
        theirs, ours = facts(store, of.nodes), facts(of.graph, of.nodes)
    if kinds is not None:
        ours["types"] = kinds
    for name in ours:
        yield Row(f"{kind}: {name} equal", float(theirs[name] == ours[name]))
    if not of.questions:
        return
    found: list[Any] = []
    with opened(kind, server.address) as store:
        rows = list(measured("all questions", server, partial(answers, store, of.questions), found))
    others = [
        f"{question.id} {question.text}: {len(theirs)} answers there, {len(ours)} here, {len(theirs & ours)} the same"
        for question, theirs, ours in zip(of.questions, found[0], of.answers, strict=True)
        if theirs != ours
    ]
    print(*others, sep="\n", file=sys.stderr)
    yield Row(f"{kind}: questions asked", len(of.questions))
    yield Row(f"{kind}: questions with equal answers", len(of.questions) - len(others))
    yield from rows


def main() -> None:
    """Measure, and print a table."""
    parser = make_parser(__doc__)
    parser.add_argument("graph", type=Path)
    parser.add_argument("--servers", nargs="+", choices=_KINDS, default=_KINDS, metavar="KIND")
    parser.add_argument("--at", action="append", default=[], metavar="KIND=ADDRESS")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--questions", type=Path)
    parser.add_argument("--asked", type=int, default=200)
    given = parser.parse_args()
    ids, edges = read(given.graph)
    if given.write:
        given.write.write_text("".join(n_triples(ids, edges)), "utf-8")
        return
    rows: list[Row] = []
    known: dict[bool, Expected] = {}
    running = dict(each.partition("=")[::2] for each in given.at)
    for kind in running or given.servers:
        rdf = kind != "neo4j"
        if rdf not in known:
            known[rdf] = expected(ids, edges, rdf, given)
        topic = EntityId((FREEBASE if rdf else "") + ids[_MEANT])
        server = nullcontext(Served(kind, running[kind])) if kind in running else served(kind, ids, edges)
        with tempfile.TemporaryDirectory() as kept, suppress(KeyboardInterrupt):
            os.environ["XDG_CACHE_HOME"] = kept
            try:
                with server as here:
                    work = waits(here, known[rdf].nodes, topic)
                    for row in chain(work, compared(here, known[rdf], classes(ids, edges) if rdf else None)):
                        rows.append(row)
                        print(row, flush=True)
            except (ByokgError, subprocess.CalledProcessError) as error:
                print(f"{kind}: {error}", file=sys.stderr)
    show(rows, f"{len(edges):,} edges, {len(ids):,} nodes", given.json)


if __name__ == "__main__":
    main()
