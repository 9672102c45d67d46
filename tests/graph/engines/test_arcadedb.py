"""Cypher in an embedded ArcadeDB, against the real engine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from byokg.errors import (
    GraphCorrupt,
    GraphError,
    GraphExists,
    GraphNotFound,
    QueryInvalid,
    QueryRefused,
    QueryTooLarge,
    StoreUnavailable,
)
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines import arcadedb
from byokg.graph.engines.arcadedb import FOLDER, ArcadeStore, build_arcade
from byokg.graph.name_indexes import build_names, name_index
from byokg.graph.store import Direction, QueryLimits
from byokg.types import EdgeCell, EntityId, Node, NodeCell, PathCell, Triple
from tests.graph.contract import GraphStoreContract, Make, edge, ids, node
from tests.graph.query_contract import CypherContract, CypherQueries, MakeQueryable

pytest.importorskip("arcadedb_embedded", reason="needs arcadedb-embedded: pip install 'byokg[cypher]'")

ROOT = Path(__file__).resolve().parents[3]
HEAP_MB = 256

# Alien -directed_by-> Scott <-directed_by- Blade    Alien -stars-> Weaver
FILMS = [("Alien", "directed_by", "Scott"), ("Blade", "directed_by", "Scott"), ("Alien", "stars", "Weaver")]


@pytest.fixture(scope="module")
def held() -> Iterator[ArcadeStore]:
    """One engine for the whole file; each test puts its graph in."""
    with ArcadeStore.hold(ColumnarGraph.from_triples([]), heap_mb=HEAP_MB) as store:
        yield store


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "films"
    build_arcade(ColumnarGraph.from_triples(FILMS), folder, heap_mb=HEAP_MB)
    return folder


@pytest.fixture
def films(built: Path, tmp_path: Path) -> Path:
    """Return a copy of the built folder, which a test may spoil."""
    return Path(shutil.copytree(built, tmp_path / "films"))


def run_script(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run an unguarded script from a folder that is not the repository."""
    script = folder / "script.py"
    script.write_text(f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{text}", "utf-8")
    return subprocess.run([sys.executable, str(script)], cwd=folder, capture_output=True, text=True, timeout=120)


class TestContract(GraphStoreContract, CypherContract):
    @pytest.fixture
    def make(self, held: ArcadeStore) -> Make:
        def make(nodes: Sequence[Node], edges: Sequence[Triple]) -> ArcadeStore:
            held.replace(ColumnarGraph.from_records(nodes, edges))
            return held

        return make

    @pytest.fixture
    def make_queryable(self, held: ArcadeStore) -> MakeQueryable:
        def make(nodes: Sequence[Node], edges: Sequence[Triple]) -> ArcadeStore:
            held.replace(ColumnarGraph.from_records(nodes, edges))
            return held

        return make


class TestWhatQueriesSee:
    def test_the_engine_holds_just_the_nodes_and_edges_of_the_graph(self, held: ArcadeStore) -> None:
        # 300 nodes of three types, 2,000 edges of seven relations, some parallel, some with properties
        kinds = ["", "Film", "Person"]
        nodes = [node(f"n{number}", kinds[number % 3], size=number * 0.5) for number in range(300)]
        edges = [
            edge(f"n{k * 7 % 300}", f"r {k % 7}", f"n{k * 11 % 17}", **({"k": k} if k % 3 == 0 else {}))
            for k in range(2000)
        ]
        graph = ColumnarGraph.from_records(nodes, edges)
        held.replace(graph)
        everything = QueryLimits(max_rows=10_000)
        found = held.run("MATCH (n) RETURN n", limits=everything)
        cells = sorted((row[0] for row in found.rows if isinstance(row[0], NodeCell)), key=lambda cell: cell.id)
        assert [Node(c.id, c.name, c.type, c.properties) for c in cells] == sorted(nodes, key=lambda n: n.id)
        found = held.run("MATCH ()-[r]->() RETURN r", limits=everything)
        rows = [row[0] for row in found.rows]
        spelled = sorted(
            (r.head, r.relation, r.tail, sorted(r.properties.items())) for r in rows if isinstance(r, EdgeCell)
        )
        assert spelled == sorted((t.head, t.relation, t.tail, sorted(t.properties.items())) for t in edges)

    def test_a_node_without_type_is_an_entity_and_one_with_type_is_both(self, held: ArcadeStore) -> None:
        held.replace(ColumnarGraph.from_records([node("a"), node("b", "Film")], []))
        assert held.run("MATCH (n:Entity) RETURN n.id AS i ORDER BY i").rows == (("a",), ("b",))
        assert held.run("MATCH (n:Film) RETURN n.id, labels(n)").rows == (("b", ("Entity", "Film")),)
        assert held.run("MATCH (n:Film:Entity) RETURN n.id").rows == (("b",),)

    def test_a_node_of_several_types_has_all_of_them_as_labels_in_the_order_of_the_graph(
        self, held: ArcadeStore
    ) -> None:
        #   r -film-> a, b, c; types that ArcadeDB takes under other names among them
        types = [("z", "a~b", "x, y", "film"), ("Entity", "z"), ("z", "Entity")]
        nodes = [Node(EntityId(name), name, some[0], {}, some[1:]) for name, some in zip("abc", types, strict=True)]
        held.replace(
            ColumnarGraph.from_records([*nodes, node("r", "Root")], [edge("r", "film", name) for name in "abc"])
        )
        found = held.run("MATCH p = (:Entity {id: 'r'})-[:film]->(n:z) RETURN n, [n], {of: n}, p ORDER BY n.id")
        for (cell, inside, held_in, path), some in zip(found.rows, types, strict=True):
            assert isinstance(inside, tuple) and isinstance(held_in, Mapping) and isinstance(path, PathCell)
            for each in (cell, *inside, held_in["of"], path.nodes[1]):
                assert isinstance(each, NodeCell) and (each.type, *each.further_types) == some
        for label, ids_of in (("a~b", "a"), ("x, y", "a"), ("film", "a"), ("z", "abc"), ("Entity", "abcr")):
            rows = held.run(f"MATCH (n:`{label}`) RETURN n.id ORDER BY n.id").rows
            assert [cell for (cell,) in rows] == list(ids_of)
        rows = held.run("MATCH (n) UNWIND labels(n) AS label RETURN label, count(*)").rows
        assert set(rows) == {("Entity", 4), ("Root", 1), ("a~b", 1), ("film", 1), ("x, y", 1), ("z", 3)}

    def test_a_type_called_entity_is_just_a_type(self, held: ArcadeStore) -> None:
        held.replace(ColumnarGraph.from_records([node("a", "Entity"), node("b")], []))
        rows = held.run("MATCH (n) RETURN n ORDER BY n.id").rows
        assert rows == ((NodeCell(EntityId("a"), "a", "Entity"),), (NodeCell(EntityId("b"), "b", ""),))

    def test_properties_called_id_and_name_keep_their_names_beside_id_and_name_of_the_node(
        self, held: ArcadeStore
    ) -> None:
        alien = Node(EntityId("Q1"), "Alien", "Film", {"id": 7, "name": "Das unheimliche Wesen", "year": 1979})
        held.replace(ColumnarGraph.from_records([alien], []))
        assert held.run("MATCH (n) RETURN n.node_id, n.display_name, n.id, n.name, n.year").rows == (
            ("Q1", "Alien", 7, "Das unheimliche Wesen", 1979),
        )
        assert held.schema().node_properties == {"Film": ("id", "name", "year")}
        assert held.run("MATCH (n) RETURN n").rows == ((NodeCell(alien.id, "Alien", "Film", alien.properties),),)
        assert held.nodes(ids("Q1")) == [alien]

    def test_a_name_that_says_the_same_is_not_stored_twice(self, held: ArcadeStore) -> None:
        nodes = [Node(EntityId("1"), "Ann", "P", {"name": "Ann"}), Node(EntityId("2"), "2", "P")]
        held.replace(ColumnarGraph.from_records(nodes, []))
        assert held.run("MATCH (n) RETURN keys(n) ORDER BY n.id").rows == ((("id", "name"),),) * 2
        assert held.schema().node_properties == {"P": ("name",)}

    def test_ids_in_answers_can_be_looked_up_in_the_store(self, held: ArcadeStore) -> None:
        held.replace(ColumnarGraph.from_triples(FILMS))
        ((cell,),) = held.run("MATCH (n {name: 'Alien'})-[:directed_by]->(m) RETURN m").rows
        assert isinstance(cell, NodeCell)
        edges = held.edges(held.numbers([cell.id]), Direction.IN)
        assert held.ids(edges.head) == ["Alien", "Blade"]

    def test_a_look_up_by_name_uses_the_index_with_or_without_a_label(self, held: ArcadeStore) -> None:
        held.replace(ColumnarGraph.from_triples(FILMS))
        for text in (
            "MATCH (n {name: 'Alien'}) RETURN n.id",
            "MATCH (n) WHERE n.id = 'Alien' RETURN n.name",
            "MATCH (m)<-[:directed_by]-(n {name: 'Alien'}) RETURN m.name",
            "MATCH (m)-[:directed_by]->(n) WHERE n.name = 'Scott' RETURN m.name",
        ):
            fitted = "EXPLAIN " + held._names.fit(text)
            plan = held.worker.call("run", fitted, fitted, {}, 5.0, 10)
            assert "NodeIndexSeek" in str(plan)


class TestErrors:
    def test_a_mistake_is_explained_in_one_line_without_java(self, held: ArcadeStore) -> None:
        with pytest.raises(QueryInvalid) as caught:
            held.run("MATCH (n) RETURN missing")
        assert str(caught.value) == "UndefinedVariable: Variable 'missing' not defined"

    def test_positions_in_messages_are_those_of_the_text_that_the_guard_passed(self, held: ArcadeStore) -> None:
        fitted = "MATCH (n:Entity {name: 'x'}) RETUR n"
        with pytest.raises(QueryInvalid, match="column 22"):
            held.worker.call("run", fitted, "MATCH (n {name: 'x'}) RETUR n", {}, 5.0, 10)

    @pytest.mark.parametrize("text", CypherQueries.writes)
    def test_a_write_that_passes_the_guard_is_refused_by_the_engine(self, held: ArcadeStore, text: str) -> None:
        held.replace(ColumnarGraph.from_triples([("a", "r", "b")]))
        with pytest.raises(QueryRefused, match="only read"):
            held.worker.call("run", text, text, {}, 5.0, 10)
        assert held.run("MATCH (n)-[r]->(m) RETURN n.name, type(r), m.name").rows == (("a", "r", "b"),)

    @pytest.mark.parametrize(
        "text",
        ["LOAD CSV FROM 'file:///etc/passwd' AS row RETURN row", "LOAD CSV FROM 'http://127.0.0.1/' AS row RETURN row"],
    )
    def test_nothing_outside_the_graph_can_be_read(self, held: ArcadeStore, text: str) -> None:
        with pytest.raises(QueryRefused):
            held.run(text)
        with pytest.raises((QueryInvalid, QueryRefused), match=r"disabled|not allowed|only read"):
            held.worker.call("run", text, text, {}, 5.0, 10)

    def test_a_query_that_fills_the_heap_is_too_large_and_the_next_one_works(self, held: ArcadeStore) -> None:
        held.replace(ColumnarGraph.from_triples(FILMS))
        with pytest.raises(QueryTooLarge):
            held.run("RETURN size(reduce(s = 'ab', i IN range(1, 60) | s + s)) AS n", limits=QueryLimits(timeout_s=60))
        assert held.run("MATCH (n {name: 'Blade'})-->(m) RETURN m.name").rows == (("Scott",),)

    def test_an_answer_with_too_much_text_is_too_large(self, held: ArcadeStore) -> None:
        with pytest.raises(QueryTooLarge, match="characters"):
            held.run(
                "UNWIND range(1, 1000) AS x RETURN reduce(s = 'ab', i IN range(1, 18) | s + s) AS t",
                limits=QueryLimits(timeout_s=60),
            )

    @pytest.mark.parametrize("value", [2**63, object(), NodeCell(EntityId("a"), "a")])
    def test_a_parameter_that_cannot_be_passed_is_named(self, held: ArcadeStore, value: object) -> None:
        with pytest.raises(QueryInvalid, match="'x'"):
            held.run("RETURN $x", {"x": value})  # type: ignore[dict-item]

    def test_the_guard_decides_before_the_engine_is_even_started(self, films: Path) -> None:
        with ArcadeStore.open(films, heap_mb=HEAP_MB) as store:
            with pytest.raises(QueryRefused, match="line 1"):
                store.run("MATCH (n) DETACH DELETE n")
            assert store.worker.pid is None


class TestFolder:
    def test_a_built_folder_is_a_graph_and_answers_cypher(self, films: Path) -> None:
        assert set(ColumnarGraph.open(films).entities()) == {"Alien", "Blade", "Scott", "Weaver"}
        with ArcadeStore.open(films, heap_mb=HEAP_MB) as store:
            assert store.run("MATCH (n {name: 'Alien'})-[:directed_by]->(m) RETURN m.name").rows == (("Scott",),)
            assert store.language == "cypher"
            assert store.name == str(films)

    def test_a_database_is_added_to_a_graph_that_is_saved_already(self, tmp_path: Path) -> None:
        ColumnarGraph.from_triples(FILMS).save(tmp_path / "g")
        graph = ColumnarGraph.open(tmp_path / "g")
        with pytest.raises(GraphError, match="no Cypher database"):
            ArcadeStore.open(tmp_path / "g")
        build_arcade(graph, tmp_path / "g", heap_mb=HEAP_MB)
        with pytest.raises(GraphExists, match="overwrite"):
            build_arcade(graph, tmp_path / "g", heap_mb=HEAP_MB)
        build_arcade(graph, tmp_path / "g", overwrite=True, heap_mb=HEAP_MB)
        with ArcadeStore.open(tmp_path / "g", heap_mb=HEAP_MB) as store:
            assert store.run("MATCH ()-[r]->() RETURN count(r)").rows == ((3,),)
        assert sorted(path.name for path in (tmp_path / "g").iterdir() if path.is_dir()) == [FOLDER]

    def test_another_graph_is_not_replaced_unasked(self, films: Path) -> None:
        other = ColumnarGraph.from_triples([("x", "r", "y")])
        with pytest.raises(GraphExists):
            build_arcade(other, films, heap_mb=HEAP_MB)
        build_arcade(other, films, overwrite=True, heap_mb=HEAP_MB)
        with ArcadeStore.open(films, heap_mb=HEAP_MB) as store:
            assert store.run("MATCH (n) RETURN n.id ORDER BY n.id").rows == (("x",), ("y",))

    def test_a_database_of_another_graph_is_not_used(self, films: Path, tmp_path: Path) -> None:
        ColumnarGraph.from_triples([("x", "r", "y")]).save(tmp_path / "other")
        shutil.copytree(films / FOLDER, tmp_path / "other" / FOLDER)
        with pytest.raises(GraphCorrupt, match="another state of the graph"):
            ArcadeStore.open(tmp_path / "other")

    @pytest.mark.parametrize("content", ["{", "[]", "{}", '{"format": "x", "version": 1}'])
    def test_a_damaged_description_is_reported(self, films: Path, content: str) -> None:
        (films / FOLDER / arcadedb.BUILD).write_text(content)
        with pytest.raises(GraphCorrupt):
            ArcadeStore.open(films)

    def test_a_damaged_database_is_reported_by_the_first_query(self, films: Path) -> None:
        (films / FOLDER / "database" / "schema.json").write_text("{")
        (films / FOLDER / "database" / "schema.prev.json").unlink(missing_ok=True)
        with ArcadeStore.open(films, heap_mb=HEAP_MB) as store, pytest.raises(GraphCorrupt, match="types"):
            store.run("MATCH (n:Entity) RETURN n.id")

    def test_no_graph_at_all(self, tmp_path: Path) -> None:
        with pytest.raises(GraphNotFound):
            ArcadeStore.open(tmp_path)

    def test_a_failed_build_leaves_nothing(self, tmp_path: Path) -> None:
        with pytest.raises((StoreUnavailable, QueryTooLarge)):
            build_arcade(ColumnarGraph.from_triples(FILMS), tmp_path / "g", heap_mb=1)
        assert list(tmp_path.iterdir()) == []

    def test_the_build_says_what_it_was_made_with(self, films: Path) -> None:
        content = json.loads((films / FOLDER / arcadedb.BUILD).read_text())
        assert content["graph"] == ColumnarGraph.open(films).checksum
        assert content["engine"]

    def test_more_relations_than_files_may_be_open_are_refused_with_the_numbers(self, tmp_path: Path) -> None:
        script = (
            "import resource\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (256, 700))\n"
            "from byokg.errors import OpenFileLimit\n"
            "from byokg.graph.engines.arcadedb import build_arcade\n"
            "from byokg.graph.columnar.graph import ColumnarGraph\n"
            "graph = ColumnarGraph.from_triples([('a', f'r{n}', 'b') for n in range(500)])\n"
            "try:\n    build_arcade(graph, 'g')\n"
            "except OpenFileLimit as error:\n    print(error.needed > 700, error.allowed, error)\n"
        )
        done = run_script(script, tmp_path)
        assert done.stdout.startswith("True 700"), done.stderr
        assert "500 relations" in done.stdout and "ulimit" in done.stdout
        assert not (tmp_path / "g").exists()

    def test_the_soft_limit_of_open_files_is_raised_as_far_as_needed(self, tmp_path: Path) -> None:
        script = (
            "import resource\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
            "from byokg.graph.engines.arcadedb import ArcadeStore, build_arcade\n"
            "from byokg.graph.columnar.graph import ColumnarGraph\n"
            "graph = ColumnarGraph.from_triples([('a', f'r{n}', 'b') for n in range(400)])\n"
            f"build_arcade(graph, 'g', heap_mb={HEAP_MB})\n"
            f"with ArcadeStore.open('g', heap_mb={HEAP_MB}) as store:\n"
            "    print(store.run('MATCH (n)-[:r399]->(m) RETURN m.name').rows)\n"
            "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
        )
        done = run_script(script, tmp_path)
        assert done.stdout == "(('b',),)\n256\n", done.stderr
        assert done.stderr == ""
        assert sorted(path.name for path in tmp_path.iterdir()) == ["g", "script.py"]


class TestSeveralProcesses:
    def test_two_processes_read_the_same_folder_at_once(self, films: Path, tmp_path: Path) -> None:
        with ArcadeStore.open(films, heap_mb=HEAP_MB) as one, ArcadeStore.open(films, heap_mb=HEAP_MB) as two:
            query = "MATCH (n {name: 'Alien'})-[:directed_by]->(m) RETURN m.name"
            assert one.run(query).rows == two.run(query).rows == one.run(query).rows == (("Scott",),)
            assert one.worker.pid != two.worker.pid
            done = run_script(
                "from byokg.graph.engines.arcadedb import ArcadeStore\n"
                f"with ArcadeStore.open({str(films)!r}, heap_mb={HEAP_MB}) as store:\n"
                f"    print(store.run({query!r}).rows)\n",
                tmp_path,
            )
            assert (done.stdout, done.stderr) == ("(('Scott',),)\n", "")

    def test_reading_leaves_the_folder_as_it_was(self, films: Path) -> None:
        def content() -> dict[str, bytes]:
            return {str(path): path.read_bytes() for path in sorted(films.rglob("*")) if path.is_file()}

        before = content()
        with ArcadeStore.open(films, heap_mb=HEAP_MB) as store:
            store.run("MATCH (n) RETURN n")
            assert store.worker.pid is not None
            os.kill(store.worker.pid, signal.SIGKILL)
            while store.worker._child is not None and store.worker._child.alive():
                time.sleep(0.01)
            assert store.run("MATCH (n) RETURN count(n)").rows == ((4,),)
        assert content() == before

    def test_a_database_that_was_not_closed_is_recovered(self, films: Path, tmp_path: Path) -> None:
        # another process opens it for writing and is killed
        writer = (
            "import os, jpype\n"
            "from arcadedb_embedded import jvm\n"
            "jvm.start_jvm(heap_size='256m', jvm_args=['-Djava.util.logging.config.file=/dev/null'])\n"
            "factory = jpype.JClass('com.arcadedb.database.DatabaseFactory')\n"
            f"database = factory({str(films / FOLDER / 'database')!r}).open()\n"
            "print('open', flush=True)\n"
            "os.kill(os.getpid(), 9)\n"
        )
        assert "open" in run_script(writer, tmp_path).stdout
        assert (films / FOLDER / "database" / "database.lck").exists()
        with ArcadeStore.open(films, heap_mb=HEAP_MB) as store:
            assert store.run("MATCH (n {name: 'Blade'})-->(m) RETURN m.name").rows == (("Scott",),)

    def test_a_database_that_another_process_writes_to_is_unavailable(self, films: Path, tmp_path: Path) -> None:
        script = tmp_path / "writer.py"
        script.write_text(
            "import sys, jpype\n"
            "from arcadedb_embedded import jvm\n"
            "jvm.start_jvm(heap_size='256m', jvm_args=['-Djava.util.logging.config.file=/dev/null'])\n"
            "factory = jpype.JClass('com.arcadedb.database.DatabaseFactory')\n"
            f"database = factory({str(films / FOLDER / 'database')!r}).open()\n"
            "print('open', flush=True)\n"
            "sys.stdin.read()\n"
            "database.close()\n"
        )
        with subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path
        ) as writer:
            assert writer.stdout and "open" in writer.stdout.readline()
            with ArcadeStore.open(films, heap_mb=HEAP_MB) as store:
                with pytest.raises(StoreUnavailable, match="another process"):
                    store.run("RETURN 1")
                writer.communicate("")
                assert store.run("RETURN 1").rows == ((1,),)


class TestHold:
    def test_another_graph_takes_the_place_of_the_one_held_in_the_same_process(self, held: ArcadeStore) -> None:
        held.replace(ColumnarGraph.from_triples(FILMS))
        pid = held.worker.pid
        held.replace(ColumnarGraph.from_triples([("x", "likes", "y")]))
        assert held.worker.pid == pid
        assert held.relations == ("likes",)
        assert held.run("MATCH (a)-[r]->(b) RETURN a.name, type(r), b.name").rows == (("x", "likes", "y"),)

    def test_the_graph_survives_the_process(self, held: ArcadeStore) -> None:
        held.replace(ColumnarGraph.from_triples(FILMS))
        assert held.worker.pid is not None
        os.kill(held.worker.pid, signal.SIGKILL)
        while held.worker._child is not None and held.worker._child.alive():
            time.sleep(0.01)
        assert held.run("MATCH ()-[r]->() RETURN count(r)").rows == ((3,),)

    def test_nothing_is_left_after_closing(self) -> None:
        store = ArcadeStore.hold(ColumnarGraph.from_triples(FILMS), heap_mb=HEAP_MB)
        scratch = store._scratch
        assert scratch is not None and scratch.exists()
        store.close()
        assert not scratch.exists()

    def test_a_store_from_a_folder_holds_no_other_graph(self, films: Path) -> None:
        with ArcadeStore.open(films) as store, pytest.raises(GraphError, match="read-only"):
            store.replace(ColumnarGraph.from_triples(FILMS))


def test_indexes_of_the_graph_folder_serve_the_engine_too(films: Path) -> None:
    build_names(ColumnarGraph.open(films))
    with ArcadeStore.open(films, heap_mb=HEAP_MB) as store:
        assert (store.folder, store.checksum) == (ColumnarGraph.open(films).folder, ColumnarGraph.open(films).checksum)
        (films / "names" / "meta.json").write_text("{")
        with pytest.raises(GraphCorrupt):
            name_index(store)  # the saved one is read: it is not made in memory
