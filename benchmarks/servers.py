"""Graph servers on one Freebase graph: seconds of what people wait for, and whether each gives what files give.

python benchmarks/servers.py FREEBASE_CORE --at KIND=ADDRESS … [--nodes N] [--questions FILE] [--asked N] [--json FILE]
python benchmarks/servers.py FREEBASE_CORE --write FILE.nt

FREEBASE_CORE is `graph_full.tsv.xz`. `--write` makes N-Triples of it, with ids `ns:m.…` and names `type.object.name`,
for `load` of ../shared/servers. KIND is neo4j, fuseki, virtuoso or oxigraph, whose server runs at ADDRESS and holds
that graph; Neo4j holds it as (:Entity {id: 'm.…', name: …}), with relations called as in the file. Every figure is that
of a new store with an empty cache; "raw" is the same query sent by the driver or by httpx. Equal are numbers of edges
by relation, edges, nodes and schema of N nodes, compared with a graph in memory made of the same file; and the answers
to the first questions of FILE (`questions.jsonl.xz` of WebQSP, whose topics are names) that the offline pipeline gives
over both, learning by need. Seconds of our own processor are told beside what people wait for, since a server that
shares a busy machine makes everyone wait.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, suppress
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.rows import Row, show
from byokg.errors import ByokgError
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.exporter import copy_graph
from byokg.graph.rdf.terms import FREEBASE
from byokg.graph.store import GraphStore
from byokg.graph.traversal import triples
from byokg.linking.entities import EntityLinker
from byokg.open import open_graph
from byokg.pipeline.offline import offline_pipeline
from byokg.types import EntityId, Mention, Node, Question, Triple

Result = TypeVar("Result")

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
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            topics = record.get("topic_entities") or ()
            if topics and len(chosen) < count and all(topic in ids for topic in topics):
                given = tuple(EntityId(space + ids[topic]) for topic in topics)
                chosen.append(Question(record["id"], record["question"], given))
    return chosen


def answers(store: Any, questions: Sequence[Question]) -> list[frozenset[str | None]]:
    """Return the ids of each question's answers."""
    pipeline = offline_pipeline(store, by_need=True, max_hops=2)
    return [frozenset(item.id for item in pipeline.run(question).items) for question in questions]


def classes(ids: dict[str, str], edges: Sequence[tuple[str, str, str]]) -> dict[str, int]:
    """Count the nodes of each class, those of several once for each, as RDF stores do; a graph in files knows one."""
    pairs = {(head, tail) for head, relation, tail in edges if relation == _TYPES}
    counts = Counter(tail for _, tail in pairs)
    return {**counts, "": len(ids) - len({head for head, _ in pairs})}


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Return seconds and result."""
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


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


def waits(kind: str, address: str, ids: Sequence[EntityId], topic: EntityId) -> Iterator[Row]:
    """Measure what people wait for."""
    offline_pipeline(ColumnarGraph.from_triples([("a", "r", "b")]))  # what is loaded once in a process
    text = "RETURN 1 AS x" if kind == "neo4j" else "SELECT (1 AS ?x) { }"
    bare = raw(kind, address, text)
    with opened(kind, address) as store:
        yield Row(f"{kind}: first query of a new store, over raw", timed(lambda: store.run(text))[0] - bare, "s")
    ours = []
    for _ in range(5):  # new stores, whose memory of edges is empty
        with opened(kind, address) as store:
            numbers = store.numbers(ids[:10])
            began = time.perf_counter()
            store.edges(numbers)
            ours.append(time.perf_counter() - began)
    yield Row(f"{kind}: edges of 10 nodes", 1000 * min(ours), "ms")
    yield Row(f"{kind}: edges of 10 nodes, raw", 1000 * raw(kind, address, hop_text(kind, ids[:10])), "ms")
    question = Question("q", f"who is the father of {_MEANT}?", (topic,))
    for state in ("cold", "after"):
        with opened(kind, address) as store:
            used = time.process_time()
            seconds, given = timed(lambda: offline_pipeline(store).run(question))
            yield Row(f"{kind}: ask with the entity given, {state}", seconds, "s")
            yield Row(f"{kind}: ask with the entity given, {state}, our processor", time.process_time() - used, "s")
            yield Row(f"{kind}: ask is answered right, {state}", float(given.items[0].name == "Jeremy Bieber"))
    for state in ("cold", "kept"):
        with opened(kind, address) as store:
            yield Row(f"{kind}: schema and counts, {state}", timed(lambda: (store.schema(), store.node_count))[0], "s")
    for state in ("first", "after"):
        with opened(kind, address) as store, redirect_stderr(StringIO()):
            seconds, found = timed(lambda: EntityLinker(store).candidates(Mention(_MISSPELT)))
            yield Row(f"{kind}: link a misspelt name, {state}", seconds, "s")
            yield Row(f"{kind}: the right node first, {state}", float(bool(found) and found[0].name == _MEANT))
    with opened(kind, address) as store:
        used = time.process_time()
        yield Row(f"{kind}: copy into memory", timed(lambda: copy_graph(store))[0], "s")
        yield Row(f"{kind}: copy into memory, our processor", time.process_time() - used, "s")


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


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("graph", type=Path)
    parser.add_argument("--at", action="append", default=[], metavar="KIND=ADDRESS")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--questions", type=Path)
    parser.add_argument("--asked", type=int, default=200)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    ids, edges = read(given.graph)
    if given.write:
        given.write.write_text("".join(n_triples(ids, edges)), "utf-8")
        return
    rows: list[Row] = []
    for kind, _, address in (each.partition("=") for each in given.at):
        reference = in_memory(ids, edges, kind != "neo4j")
        chosen = random.Random(7).sample(list(reference.entities()), given.nodes)
        with tempfile.TemporaryDirectory() as cache, suppress(KeyboardInterrupt):
            os.environ["XDG_CACHE_HOME"] = cache
            try:
                rdf = kind != "neo4j"
                topic = EntityId((FREEBASE if rdf else "") + ids[_MEANT])
                for row in waits(kind, address, chosen, topic):
                    rows.append(row)
                    print(row, flush=True)
                with opened(kind, address) as store:
                    theirs, ours = facts(store, chosen), facts(reference, chosen)
                if rdf:
                    ours["types"] = classes(ids, edges)
                rows += [Row(f"{kind}: {name} equal", float(theirs[name] == ours[name])) for name in ours]
                if given.questions:
                    questions = asked(given.questions, ids, given.asked, rdf)
                    with opened(kind, address) as store:
                        seconds, found = timed(partial(answers, store, questions))
                    same = sum(map(frozenset.__eq__, found, answers(reference, questions)))
                    rows.append(Row(f"{kind}: questions asked", len(questions)))
                    rows.append(Row(f"{kind}: questions with equal answers", same))
                    rows.append(Row(f"{kind}: one question of many", seconds / max(1, len(questions)), "s"))
            except ByokgError as error:
                print(f"{kind}: {error}", file=sys.stderr)
    show(rows, f"{len(edges):,} edges, {len(ids):,} nodes", given.json)


if __name__ == "__main__":
    main()
