"""Graphs with undirected edges from the file to the answer.

#   Ann - Bob (since 1990)   Cid - Ann   Bob - Cid   Cid - Dan   Dan -reports_to-> Ann   Dan -works_with-> Bob
#   Ann - Dan is an undirected `works_with`, so that this relation has edges of both kinds
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import networkx
import numpy as np
import pyarrow as pa
import pytest

from byokg.api import Byokg, KnowledgeGraph
from byokg.errors import ImportFailed
from byokg.graph.bfsql.engine import bfs_query
from byokg.graph.bfsql.protocol import BfsRequest
from byokg.graph.columnar import external_sort
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.columnar.schema import NodeColumns
from byokg.graph.columnar.writer import EdgeBlock, collect, write_graph
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.graph.export_formats import write_graph_as
from byokg.graph.exporter import copy_graph
from byokg.graph.guard.guard import lint_query
from byokg.graph.importers.choose import import_graph
from byokg.graph.importers.python_graphs import from_networkx
from byokg.graph.inverses import inverse_relations
from byokg.graph.pathql.evaluate import paths
from byokg.graph.pathql.extras.drawing import svg
from byokg.graph.schema_text import SchemaRenderer
from byokg.graph.store import Direction
from byokg.graph.traversal import k_hop_edges, triples
from byokg.pipelines.evidence_lines import fold_lines
from byokg.retrieval.candidates import Templates
from byokg.retrieval.enumerate_candidates import CandidateFinder
from byokg.retrieval.subgraph import results
from byokg.retrieval.verbalize import verbalize
from byokg.types import EntityId, TripleEvidence

GRAPHML = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="l" for="edge" attr.name="label"/><key id="s" for="edge" attr.name="since" attr.type="long"/>
<key id="t" for="node" attr.name="type"/>
<graph edgedefault="undirected">
<node id="Ann"><data key="t">Person</data></node><node id="Bob"><data key="t">Person</data></node>
<node id="Cid"><data key="t">Person</data></node><node id="Dan"><data key="t">Robot</data></node>
<edge source="Ann" target="Bob"><data key="l">knows</data><data key="s">1990</data></edge>
<edge source="Cid" target="Ann"><data key="l">knows</data></edge>
<edge source="Bob" target="Cid"><data key="l">knows</data></edge>
<edge source="Cid" target="Dan"><data key="l">knows</data></edge>
<edge source="Dan" target="Ann" directed="true"><data key="l">reports_to</data></edge>
<edge source="Dan" target="Bob" directed="true"><data key="l">works_with</data></edge>
<edge source="Ann" target="Dan" directed="false"><data key="l">works_with</data></edge>
</graph></graphml>
"""


@pytest.fixture
def graph(tmp_path: Path) -> ColumnarGraph:
    (tmp_path / "graph.graphml").write_text(GRAPHML)
    return import_graph(tmp_path / "graph.graphml")


def around(graph: ColumnarGraph, entity: str, direction: Direction = Direction.BOTH) -> list[str]:
    """Write the edges at a node, undirected ones with `-`."""
    found = KnowledgeGraph(graph).triples(entity, direction)
    return sorted(f"{one.head} {one.relation}{' -' if one.undirected else ' >'} {one.tail}" for one in found)


def facts(graph: ColumnarGraph) -> list[str]:
    """Write each edge once, undirected ones from the end of the lower name, with properties."""
    found = []
    for one in triples(graph, graph.sample_edges(1000)):
        head, tail = sorted((one.head, one.tail)) if one.undirected else (one.head, one.tail)
        found.append(f"{head} {one.relation}{' -' if one.undirected else ' >'} {tail} {dict(one.properties)}")
    return sorted(found)


def test_edges_of_an_undirected_graphml_file_lead_both_ways_but_for_those_that_are_directed(
    graph: ColumnarGraph,
) -> None:
    assert graph.edge_count == 7
    assert {each.name: (each.count, each.undirected) for each in graph.schema().relations} == {
        "knows": (4, 4),
        "reports_to": (1, 0),
        "works_with": (2, 1),
    }
    assert around(graph, "Ann") == [
        "Ann knows - Bob", "Ann knows - Cid", "Ann works_with - Dan", "Dan reports_to > Ann",
    ]  # fmt: skip
    assert around(graph, "Dan", Direction.OUT) == [
        "Dan knows - Cid", "Dan reports_to > Ann", "Dan works_with - Ann", "Dan works_with > Bob",
    ]  # fmt: skip
    assert around(graph, "Bob", Direction.IN) == ["Ann knows - Bob", "Cid knows - Bob", "Dan works_with > Bob"]


def test_the_ends_of_an_undirected_relation_are_the_types_at_both(graph: ColumnarGraph) -> None:
    relations = {each.name: each for each in graph.schema().relations}
    assert relations["knows"].domain == relations["knows"].range == ("Person", "Robot")
    assert (relations["works_with"].domain, relations["works_with"].range) == (("Robot", "Person"), ("Person", "Robot"))
    assert (relations["reports_to"].domain, relations["reports_to"].range) == (("Robot",), ("Person",))


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [('edgedefault="both"', "edgedefault='both' is not known"), ("", "directed='maybe' is not known")],
)
def test_a_direction_that_is_not_known_is_refused(tmp_path: Path, attributes: str, reason: str) -> None:
    body = f"<graph {attributes}><node id='a'/><edge source='a' target='a' directed='maybe'/></graph>"
    (tmp_path / "x.graphml").write_text(f"<graphml>{body}</graphml>")
    with pytest.raises(ImportFailed, match=reason):
        import_graph(tmp_path / "x.graphml")


@pytest.mark.parametrize("format", ["csv", "graphml", "parquet"])
def test_an_export_brings_back_an_equal_graph(graph: ColumnarGraph, tmp_path: Path, format: str) -> None:
    write_graph_as(graph, format, tmp_path / "out")
    assert facts(import_graph(tmp_path / "out")) == facts(graph)
    assert facts(copy_graph(graph)) == facts(graph)


def test_tables_say_which_edges_are_undirected(graph: ColumnarGraph, tmp_path: Path) -> None:
    write_graph_as(graph, "csv", tmp_path / "csv")
    lines = (tmp_path / "csv" / "edges.csv").read_text().splitlines()
    assert lines[0] == "head,relation,tail,directed,since:int"
    assert sorted(lines[1:]) == [
        "Ann,knows,Bob,false,1990",
        "Ann,knows,Cid,false,",
        "Ann,works_with,Dan,false,",
        "Bob,knows,Cid,false,",
        "Cid,knows,Dan,false,",
        "Dan,reports_to,Ann,,",
        "Dan,works_with,Bob,,",
    ]
    plain = ColumnarGraph.from_triples([("a", "r", "b")])
    write_graph_as(plain, "csv", tmp_path / "plain")
    assert (tmp_path / "plain" / "edges.csv").read_text().splitlines()[0] == "head,relation,tail"


def test_an_undirected_graph_is_one_in_graphml_and_networkx(tmp_path: Path) -> None:
    graph = ColumnarGraph.from_triples([("a", "r", "b"), ("b", "r", "c")], undirected=["r"])
    write_graph_as(graph, "graphml", tmp_path / "out")
    read = networkx.read_graphml(tmp_path / "out" / "graph.graphml")
    held = KnowledgeGraph(graph).to_networkx()
    for one in (read, held):
        assert not one.is_directed() and sorted(one.neighbors("b")) == ["a", "c"]
    assert facts(from_networkx(held)) == facts(graph)


def test_networkx_marks_the_undirected_edges_of_a_graph_with_both_kinds(graph: ColumnarGraph) -> None:
    held = KnowledgeGraph(graph).to_networkx()
    assert held.is_directed()
    assert held.get_edge_data("Dan", "Ann")[0] == {"relation": "reports_to"}
    assert held.get_edge_data("Bob", "Cid")[0] == {"relation": "knows", "directed": False}
    assert facts(from_networkx(held)) == facts(graph)


def test_a_triple_that_is_listed_from_both_ends_is_one_undirected_edge() -> None:
    rows = [("a", "r", "b"), ("b", "r", "a"), ("a", "r", "b"), ("b", "s", "a"), ("a", "s", "b"), ("a", "r", "a")]
    graph = ColumnarGraph.from_triples(rows, undirected=["r"])
    assert (graph.edge_count, graph.dropped_duplicates) == (4, 2)
    assert facts(graph) == ["a r - a {}", "a r - b {}", "a s > b {}", "b s > a {}"]


class Numbers:
    """A stream of 3,000 edges between 200 nodes in blocks, some of them undirected."""

    name, left_out = "numbers", 0

    def __init__(self, distinct: bool, mixed: bool) -> None:
        self.distinct = distinct
        chance = random.Random(3)
        self._edges = [(chance.randrange(200), chance.randrange(4), chance.randrange(200)) for _ in range(3000)]
        self._flags = [chance.random() < 0.5 if mixed else relation % 2 == 0 for _, relation, _ in self._edges]

    def blocks(self) -> list[EdgeBlock]:
        parts = [slice(start, start + 500) for start in range(0, 3000, 500)]
        weights = [pa.RecordBatch.from_pydict({"w": list(range(part.start, part.stop))}) for part in parts]
        return [
            EdgeBlock(
                np.array(self._edges[part], np.int32),
                None if self.distinct else batch,
                undirected=np.array(self._flags[part]),
            )
            for part, batch in zip(parts, weights, strict=True)
        ]

    def nodes(self) -> NodeColumns:
        return NodeColumns(pa.array([f"n{number}" for number in range(200)], pa.large_string()))

    def relations(self) -> list[str]:
        return ["a", "b", "c", "d"]

    def property_types(self) -> dict[str, pa.DataType]:
        return {} if self.distinct else {"w": pa.int64()}

    def source(self) -> dict[str, str]:
        return {"kind": "numbers"}


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("mixed", [True, False])
def test_a_graph_written_in_portions_has_the_bytes_of_one_from_memory(
    tmp_path: Path, distinct: bool, mixed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(Numbers(distinct, mixed)).save(tmp_path / "memory")  # type: ignore[arg-type]
    monkeypatch.setattr(external_sort, "RANGE_BITS", 4)
    (tmp_path / "portions").mkdir()
    write_graph(Numbers(distinct, mixed), tmp_path / "portions", portion_bytes=3200)  # type: ignore[arg-type]
    written = {path.name: path.read_bytes() for path in (tmp_path / "portions").iterdir() if path.is_file()}
    assert written == {path.name: path.read_bytes() for path in (tmp_path / "memory").iterdir()}
    assert ("undirected_edges.npy" in written) == mixed
    read = ColumnarGraph.open(tmp_path / "memory")
    assert (read.dropped_duplicates > 0) == distinct


def test_a_directed_graph_keeps_no_marks(tmp_path: Path) -> None:
    ColumnarGraph.from_triples([("a", "r", "b")]).save(tmp_path / "graph")
    assert not list((tmp_path / "graph").glob("undirected*"))


def test_an_older_folder_without_undirected_edges_is_still_read(tmp_path: Path) -> None:
    from byokg.graph.columnar import folder as folder_module

    ColumnarGraph.from_triples([("a", "r", "b")]).save(tmp_path / "graph")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(folder_module, "VERSION", 6)
        ColumnarGraph.from_triples([("a", "r", "b")]).save(tmp_path / "older")
    assert around(ColumnarGraph.open(tmp_path / "older"), "a") == around(ColumnarGraph.open(tmp_path / "graph"), "a")


@pytest.mark.parametrize("read", ["edges", "first_edges", "capped_edges", "far_ends", "relation_counts", "degrees"])
def test_what_reads_a_part_agrees_with_what_reads_all_edges(read: str) -> None:
    chance = random.Random(8)
    rows = [(f"n{chance.randrange(12)}", chance.choice("rst"), f"n{chance.randrange(12)}") for _ in range(90)]
    graph = ColumnarGraph.from_triples(rows, undirected=["r"])
    held = from_networkx_mixed(rows)
    for store in (graph, held):
        nodes = np.arange(store.node_count)
        for direction in Direction:
            check(store, nodes, direction, read)


def from_networkx_mixed(rows: list[tuple[str, str, str]]) -> ColumnarGraph:
    """Return a graph in which every other edge is undirected, whatever its relation."""
    source = networkx.MultiDiGraph()
    for place, (head, relation, tail) in enumerate(rows):
        source.add_edge(head, tail, relation=relation, directed=place % 2 == 0)
    return from_networkx(source)


def check(store: ColumnarGraph, nodes: np.ndarray, direction: Direction, read: str) -> None:
    batch = store.edges(nodes, direction)
    columns = (batch.origin, batch.inverse, batch.relation, batch.other, batch.edge)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    assert rows == sorted(rows)
    if read == "edges":
        for relation in range(len(store.relations)):
            some = store.edges(nodes, direction, np.array([relation]))
            assert some.edge.tolist() == batch.edge[batch.relation == relation].tolist()
    elif read == "first_edges":
        first, cut = store.first_edges(nodes, direction, 3)
        kept = [row for place, row in enumerate(rows) if sum(other[0] == row[0] for other in rows[:place]) < 3]
        assert (first.edge.tolist(), cut) == ([row[4] for row in kept], len(kept) < len(rows))
    elif read == "capped_edges":
        capped = store.capped_edges(nodes, direction, None, most=2)
        kept = [row for place, row in enumerate(rows) if sum(other[:3] == row[:3] for other in rows[:place]) < 2]
        assert capped.edge.tolist() == [row[4] for row in kept]
    elif read == "far_ends":
        assert store.far_ends(nodes[:3], direction).tolist() == sorted({row[3] for row in rows if row[0] < 3})
    elif direction is Direction.BOTH:
        counts = store.relation_counts(nodes)
        if read == "degrees":
            assert store.degrees(nodes).tolist() == counts.degrees(len(nodes)).tolist()
        else:
            groups = (counts.origin, counts.inverse, counts.relation, counts.count)
            found = list(zip(*(column.tolist() for column in groups), strict=True))
            expected = {row[:3]: sum(other[:3] == row[:3] for other in rows) for row in rows}
            assert found == [(*key, count) for key, count in sorted(expected.items())]


@pytest.mark.parametrize("direction", list(Direction))
def test_every_edge_within_hops_is_met_once(graph: ColumnarGraph, direction: Direction) -> None:
    found = k_hop_edges(graph, [EntityId("Ann")], 3, direction)
    assert len(set(found.edges.edge.tolist())) == len(found.edges)
    assert len(found.edges) == 7


def test_rules_and_shortest_paths_walk_undirected_edges_both_ways(graph: ColumnarGraph) -> None:
    found = list(paths(graph, "PATHS ALL SHORTEST START ?x = :Dan END ?y = :Bob VIA :knows"))
    assert [path.nodes for path in found] == [("Dan", "Cid", "Bob")]
    drawn = paths(graph, "PATHS ALL START ?x = :Dan END ?y = :Ann VIA :knows|:reports_to MAX LENGTH 2")
    assert drawn.text().splitlines()[:3:2] == ["(:Dan)-[:reports_to]->(:Ann)", "(:Dan)-[:knows]-(:Cid)-[:knows]-(:Ann)"]
    assert svg(drawn).count('marker-end="url') == 1
    rule = "IF { ?x :knows ?y . ?y :works_with ?z } THEN { ?x :may_meet ?z }"
    met = {path.nodes for path in paths(graph, "PATHS START ?x END ?y VIA :may_meet MAX LENGTH 1", rules=rule)}
    assert met >= {("Bob", "Dan"), ("Cid", "Dan"), ("Cid", "Bob"), ("Cid", "Ann")}


def test_an_undirected_relation_is_its_own_inverse(graph: ColumnarGraph) -> None:
    assert "knows" in inverse_relations(graph)["knows"]
    assert "reports_to" not in inverse_relations(graph).get("reports_to", ())


def test_the_schema_shows_what_is_undirected(graph: ColumnarGraph) -> None:
    text = SchemaRenderer(graph.schema()).render().text
    assert "(:Person|Robot)-[:knows]-(:Person|Robot) 4, since" in text
    assert "(:Robot)-[:reports_to]->(:Person) 1\n" in text
    assert "-[:works_with]->(:Person|Robot) 2, 1 of them (undirected)\n" in text
    assert "lead both ways" in text
    plain = ColumnarGraph.from_triples([("a", "r", "b"), ("b", "s", "c")], undirected=["r"])
    assert "r(1) (undirected)\n" in SchemaRenderer(plain.schema()).render().text
    assert "undirected" not in SchemaRenderer(ColumnarGraph.from_triples([("a", "r", "b")]).schema()).render().text


def test_a_breadth_first_query_shows_each_edge_once_from_the_nearer_end(graph: ColumnarGraph) -> None:
    found = bfs_query(graph, BfsRequest(seeds=("Bob",), max_hops=1))
    edges = {(each["subject"], each["predicate"], each["object"]): each for each in found["edges"]}
    assert {key: "undirected" in each for key, each in edges.items() if "Bob" in key} == {
        ("Bob", "knows", "Ann"): True,
        ("Bob", "knows", "Cid"): True,
        ("Dan", "works_with", "Bob"): False,
    }
    assert len(found["edges"]) == 7


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("Who does Ann know?", {"Bob", "Cid"}),
        ("Who knows Ann?", {"Bob", "Cid"}),
        ("Who does Cid know?", {"Ann", "Bob"}),  # Dan is no person
        ("How many people does Ann know?", {"2"}),
    ],
)
def test_offline_answers_are_complete(graph: ColumnarGraph, question: str, answers: set[str]) -> None:
    answer = Byokg(graph).ask(question)
    assert {item.name for item in answer.items} == answers


Run = Callable[[str], tuple[tuple[object, ...], ...]]


def test_the_embedded_cypher_engine_holds_each_edge_once(graph: ColumnarGraph, arcade_process: ArcadeStore) -> None:
    arcade_process.replace(graph)
    friends = "MATCH (p {id: 'Ann'})-[:knows]-(f) RETURN f.id ORDER BY f.id"
    assert arcade_process.run(friends).rows == (("Bob",), ("Cid",))
    assert arcade_process.run("MATCH ()-[r:knows]->() RETURN count(r)").rows == ((4,),)
    assert lint_query(arcade_process, friends) == []
    (finding,) = lint_query(arcade_process, friends.replace("]-(", "]->("))
    assert finding.kind == "direction" and "without an arrow head, as in -[:knows]-" in finding.message


def test_the_embedded_sparql_engine_holds_each_edge_from_either_end(graph: ColumnarGraph, tmp_path: Path) -> None:
    pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'byokg[sparql]'")
    from byokg.graph.engines.oxigraph import build_oxigraph

    store = build_oxigraph(graph, tmp_path / "store")
    try:
        found = store.run("SELECT ?name WHERE { node:Ann kg:knows/rdfs:label ?name } ORDER BY ?name").rows
        assert found == (("Bob",), ("Cid",))
    finally:
        store.close()


def mapped(folder: Path, undirected: str) -> Path:
    """Two people who know each other, in tables that `graph.yaml` explains."""
    (folder / "people.csv").write_text("id\n1\n2\n")
    (folder / "friends.csv").write_text("one,other\n1,2\n")
    (folder / "graph.yaml").write_text(
        "nodes: {Person: {file: people.csv, id: id}}\n"
        f"edges: {{knows: {{file: friends.csv, head: {{Person: one}}, tail: {{Person: other}}, {undirected}}}}}\n"
    )
    return folder / "graph.yaml"


def test_a_mapping_states_that_the_edges_of_a_table_are_undirected(tmp_path: Path) -> None:
    assert facts(import_graph(mapped(tmp_path, "undirected: true"))) == ["Person:1 knows - Person:2 {}"]
    assert facts(import_graph(mapped(tmp_path, "undirected: false"))) == ["Person:1 knows > Person:2 {}"]
    with pytest.raises(ImportFailed, match="edges: knows: undirected: it is true or false"):
        import_graph(mapped(tmp_path, "undirected: some"))


@pytest.mark.parametrize("directed", [True, False])
def test_candidate_queries_walk_undirected_edges_without_an_arrow_head(graph: ColumnarGraph, directed: bool) -> None:
    found = CandidateFinder(graph, Templates.of(2, directed=directed)).find([EntityId("Ann")], [EntityId("Dan")])
    by_query = {one.query: one for one in found.items if one.template in ("one_hop", "two_hop") and not one.end_type}
    (friends,) = [one for one in by_query.values() if one.metapath == ("knows",)]
    assert friends.total == 2 and "]-(" in friends.query and ">" not in friends.query.split("WHERE")[0]
    (further,) = [one for one in by_query.values() if one.metapath == ("knows", "knows")]
    assert set(results(graph, further)) == {"Bob", "Cid", "Dan"}
    assert further.total == 3


def test_evidence_from_both_ends_is_one_line_without_an_arrow(graph: ColumnarGraph) -> None:
    names = {EntityId(name): name for name in ("Ann", "Bob", "Cid", "Dan")}
    ann, bob = (KnowledgeGraph(graph).triples(name, Direction.OUT, ["knows"]) for name in ("Ann", "Bob"))
    met = [one for one in (*ann, *bob) if {one.head, one.tail} == {"Ann", "Bob"}]
    assert [(one.head, one.tail) for one in met] == [("Ann", "Bob"), ("Bob", "Ann")]
    items = [TripleEvidence("r", 1.0, one, id=f"e{at}") for at, one in enumerate(met)]
    assert verbalize(items[1], names) == "Bob — knows [since: 1990] — Ann"
    (line,) = fold_lines(items, names, {})
    assert "→" not in str(line) and line.items == ("e0", "e1")
