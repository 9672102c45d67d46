"""`byokg graph …`, `ask`, `eval` and `doctor` over servers; engines and schemas; credentials that never show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from byokg.api import KnowledgeGraph
from byokg.cli.main import COMMANDS, load
from byokg.cli.terminal import WRONG
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import import_graph
from byokg.graph.rdf.files import graph_quads
from byokg.graph.store import Direction, GraphStore
from byokg.graph.traversal import neighbours, triples
from byokg.open import engines_in
from tests.cli.conftest import Outcome, Run
from tests.graph.bolt_server import PASSWORD, BoltDatabases

pyoxigraph = pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'byokg[sparql]'")
from tests.graph.sparql_server import serving  # noqa: E402


def content(store: GraphStore) -> tuple[list[str], list[tuple[str, str, str]]]:
    """Return ids and triples of a graph in text order."""
    ids = sorted(store.entities())
    edges = triples(store, neighbours(store, ids, Direction.OUT))
    return list(ids), sorted((edge.head, edge.relation, edge.tail) for edge in edges)


@pytest.fixture
def bolt_films(bolt: BoltDatabases, films: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the address of the films in a Bolt server, ids in the property `id`."""
    graph = import_graph(films)
    database = bolt.new_database()
    bolt.query(database, "UNWIND $rows AS row CREATE (:Thing {id: row, name: row})", rows=list(graph.entities()))
    for edge in triples(graph, neighbours(graph, list(graph.entities()), Direction.OUT)):
        text = f"MATCH (a {{id: $head}}), (b {{id: $tail}}) CREATE (a)-[:{edge.relation}]->(b)"
        bolt.query(database, text, head=edge.head, tail=edge.tail)
    monkeypatch.setenv("NEO4J_USERNAME", "root")
    monkeypatch.setenv("NEO4J_PASSWORD", PASSWORD)
    return f"{bolt.uri}/{database}"


@pytest.fixture
def sparql_films(films: Path) -> Iterator[str]:
    """Return the address of the films behind SPARQL."""
    store = pyoxigraph.Store()
    store.extend(graph_quads(import_graph(films)))
    with serving(store) as endpoint:
        yield f"sparql+{endpoint.url}"


@pytest.fixture(params=["bolt", "sparql"])
def server(request: pytest.FixtureRequest) -> str:
    """Return the address of the films on either server."""
    return str(request.getfixturevalue(f"{request.param}_films"))


def by_id(server: str) -> list[str]:
    """Return the option that makes both servers give the same ids."""
    return ["--id-property", "id"] if server.startswith("bolt") else []


def fine(outcome: Outcome) -> Outcome:
    assert outcome.code == 0, outcome.err
    assert PASSWORD not in outcome.out + outcome.err
    return outcome


# Servers


def test_a_server_is_described_like_a_folder_without_checksums_of_files(byokg: Run, server: str) -> None:
    lines = [" ".join(line.split()) for line in fine(byokg("graph", "info", server)).out.splitlines()]
    assert lines[1:4] == ["nodes 11", "edges 11", "relations 3"]
    assert any(line.startswith("checksum counts:") for line in lines)
    assert not any(line.startswith("verified") for line in lines)
    assert any(line.startswith("starred_actors 4") for line in lines)
    record = json.loads(fine(byokg("graph", "info", server, "--json", "--refresh-schema")).out)
    assert (record["nodes"], record["edges"], record["sampled"]) == (11, 11, "")
    assert {relation["name"] for relation in record["relations"]} == {"directed_by", "starred_actors", "release_year"}


def test_a_graph_is_built_from_a_server_and_says_so(byokg: Run, server: str, films: Path) -> None:
    outcome = fine(byokg("graph", "build", server, "--out", "copy", "--sparql", *by_id(server)))
    assert "built copy: 11 nodes, 11 edges, 3 relations" in outcome.out
    assert "copying: 11 of 11 nodes (" in outcome.err and "11 of 11 edges" in outcome.err
    assert content(ColumnarGraph.open("copy")) == content(import_graph(films))
    assert engines_in("copy") == ["sparql"]
    info = fine(byokg("graph", "info", "copy")).out
    assert "copy of " in info and "sparql (Oxigraph)" in info


def test_a_server_is_exported_with_progress(byokg: Run, server: str, films: Path) -> None:
    outcome = fine(byokg("graph", "export", server, "--out", "csv", *by_id(server)))
    assert "exporting: 11 of 11 nodes (" in outcome.err
    assert content(import_graph("csv")) == content(import_graph(films))
    fine(byokg("graph", "build", str(films), "--out", "graph"))
    words = ["dataset=folder", f"dataset.root={films}"]
    found, local = (
        json.loads(byokg("graph", "coverage", place, *words, *more, "--json").out)["splits"]
        for place, more in ((server, by_id(server)), ("graph", []))
    )
    assert found == local
    words += by_id(server)
    fine(byokg("graph", "export", server, "--format", "rog", "--out", "rog", *words))


def test_a_copy_that_fails_leaves_nothing(
    byokg: Run, bolt_films: str, bolt: BoltDatabases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = sorted(tmp_path.iterdir())
    with monkeypatch.context() as patched:  # some nodes have been read by then
        patched.setattr("byokg.graph.servers.cypher_store.CypherStore.edges", stop)
        patched.setattr("byokg.graph.servers.cypher_store.CypherStore.all_edges", stop)
        assert byokg("graph", "build", bolt_films, "--out", "deep/copy", "--sparql").code == 1
        assert byokg("graph", "build", bolt_films, "--out", "deep/copy").code == 1
        assert byokg("graph", "export", bolt_films, "--out", "deep/csv").code == 1
    bolt.query(bolt_films.rpartition("/")[2], "MATCH (n) SET n.id = 'same'")
    refused = byokg("graph", "build", bolt_films, "--out", "copy", "--id-property", "id")
    assert refused.code == WRONG and "GraphError: two nodes" in refused.err
    assert [path for path in sorted(tmp_path.iterdir()) if path.name != "cache"] == before


def test_a_question_is_answered_over_a_server(byokg: Run, server: str) -> None:
    outcome = fine(byokg("ask", "Who directed Heat?", f"graph.path={server}"))
    assert outcome.out.startswith("Michael Mann")
    assert "graph: " in outcome.err and "listed" not in outcome.err  # it is spelt as in the graph


def test_an_evaluation_over_a_server_records_its_address_and_counts(byokg: Run, server: str, films: Path) -> None:
    settings = ["graph.id_property=id"] if server.startswith("bolt") else []
    words = ["eval", "dataset=folder", f"dataset.root={films}", f"graph.path={server}", "out=run", *settings]
    outcome = fine(byokg(*words))
    assert "3 questions, 0 failed" in outcome.out
    config = yaml.safe_load(Path("run/config.yaml").read_text("utf-8"))
    assert config["graph"]["checksum"].startswith("counts:")
    assert config["config"]["graph"]["path"] == server
    assert "finished already" in fine(byokg(*words)).err


def test_the_doctor_looks_at_a_server(byokg: Run, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert "11 nodes, 11 edges, 3 relations" in fine(byokg("doctor", server)).out
    assert byokg("doctor", "bolt://127.0.0.1:9").code == 1


def commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield each command below one, with the words that call it."""
    inside = getattr(command, "commands", {})
    for name, each in inside.items():
        yield from commands(each, (*words, name))
    if not inside:
        yield " ".join(words), command


TAKES_A_GRAPH = [
    pytest.param(command, id=words)
    for name in COMMANDS
    for words, command in commands(load(name), (name,))
    if any((each.metavar or "").rstrip("…") in ("GRAPH", "SRC") for each in command.params)
]


@pytest.mark.parametrize("command", TAKES_A_GRAPH)
def test_every_command_that_takes_an_address_takes_the_settings_of_its_store(command: Any) -> None:
    options = {option for each in command.params for option in each.opts}
    assert {"--id-property", "--name-property", "--set"} <= options


@pytest.mark.parametrize("given", [["--id-property", "id"], ["--set", "id_property=id", "--set", "timeout_s=50"]])
def test_nodes_are_known_by_the_same_property_everywhere(byokg: Run, bolt_films: str, given: list[str]) -> None:
    assert len(TAKES_A_GRAPH) >= 13
    info = json.loads(fine(byokg("graph", "info", bolt_films, "--json", *given)).out)
    assert info["node_properties"] == {"Thing": ["name"]}
    assert "id" not in fine(byokg("graph", "schema", bolt_films, *given)).out.replace("identif", "")
    assert '"id": "Heat"' in fine(byokg("link", bolt_films, "Heat", "--json", *given)).out
    assert "Heat" in fine(byokg("paths", bolt_films, "PATHS START ?x = :Heat END ?y VIA :directed_by", *given)).out
    assert '"Heat"' in fine(byokg("bfs", bolt_films, '{"seeds": ["Heat"], "max_hops": 1}', *given)).out
    assert fine(byokg("doctor", bolt_films, *given)).out
    with KnowledgeGraph.open(bolt_films, id_property="id") as graph:
        assert graph.node("Heat").id == "Heat"


def test_a_trace_names_the_nodes_of_a_server(byokg: Run, bolt_films: str, films: Path) -> None:
    given = ("dataset=folder", f"dataset.root={films}", f"graph.path={bolt_films}", "graph.id_property=id")
    assert byokg("eval", *given, "out=run", "-q").code == 0
    outcome = fine(byokg("trace", "run", "q1", "--graph", bolt_films, "--id-property", "id"))
    assert outcome.out.startswith("question q1\n├── round 1\n") and "Michael Mann" in outcome.out


def test_listing_all_nodes_of_a_server_is_told(byokg: Run, server: str) -> None:
    outcome = fine(byokg("link", server, "heats", "--method", "dense", "--json", *by_id(server)))
    assert "listed 11 nodes of " in outcome.err
    assert '"name": "Heat"' in outcome.out


def test_a_setting_that_a_store_does_not_have_is_named_with_the_nearest(byokg: Run, tmp_path: Path) -> None:
    def said(*words: str) -> str:
        outcome = byokg("graph", "info", *words)
        assert outcome.code == WRONG
        return outcome.err

    assert "nearest: graph.id_property" in said("bolt://127.0.0.1:1", "--set", "id_propery=id")
    assert "graph.timeout_s=soon does not fit" in said("bolt://127.0.0.1:1", "--set", "timeout_s=soon")
    assert "id_property is for Cypher servers" in said("sparql+http://127.0.0.1:1/kg", "--id-property", "id")
    assert "id_property is for servers" in said(str(tmp_path), "--id-property", "id")


def test_a_server_that_is_not_there_is_one_line(byokg: Run) -> None:
    for address in ("bolt://127.0.0.1:9/x", "sparql+http://127.0.0.1:9/x"):
        outcome = byokg("graph", "info", address)
        assert (outcome.code, outcome.out) == (WRONG, "")
        assert outcome.err.startswith("error: StoreUnavailable: ") and outcome.err.count("\n") == 1


# Names that a graph does not have


def test_unknown_names_are_told_on_standard_error(byokg: Run, bolt_films: str, sparql_films: str) -> None:
    cypher = byokg("graph", "query", bolt_films, "MATCH (f:Thing)-[:directd_by]->(p) RETURN p.name", "--format", "json")
    assert (cypher.code, json.loads(cypher.out)["rows"]) == (0, [])
    assert cypher.err == (
        "note: line 1, column 19: this graph has no relation type 'directd_by'; nearest: directed_by\n"
    )
    label = byokg("graph", "query", bolt_films, "MATCH (f:Thingg) RETURN f.name")
    assert "this graph has no label 'Thingg'; nearest: Thing" in label.err
    sparql = byokg("graph", "query", sparql_films, "SELECT ?p { ?f kg:directd_by ?p }", "--format", "json")
    assert sparql.code == 0
    assert "line 1, column 16: this graph has no predicate kg:directd_by; nearest: kg:directed_by" in sparql.err
    fine_query = byokg("graph", "query", sparql_films, "SELECT ?p { ?f kg:directed_by ?p }", "--format", "json")
    assert fine_query.err == "" and len(json.loads(fine_query.out)["rows"]) == 4


# Engines and schemas of folders


def test_an_engine_is_added_to_a_graph_that_is_there(byokg: Run, graph: Path) -> None:
    assert "add --cypher (ArcadeDB), --sparql" in byokg("graph", "engine", graph).err
    assert "built its SPARQL engine" in fine(byokg("graph", "engine", graph, "--sparql")).out
    again = byokg("graph", "engine", graph, "--sparql")
    assert again.code == WRONG and "engine already; add --overwrite" in again.err
    fine(byokg("graph", "engine", graph, "--sparql", "--overwrite"))
    rows = fine(byokg("graph", "query", graph, "SELECT (COUNT(*) AS ?n) { ?f kg:directed_by ?p }", "--format", "json"))
    assert json.loads(rows.out)["rows"] == [[4]]
    assert byokg("graph", "engine", "nowhere", "--sparql").code == WRONG


def test_overwriting_a_graph_replaces_its_engines_too(byokg: Run, films: Path, graph: Path) -> None:
    fine(byokg("graph", "engine", graph, "--sparql"))
    (films / "kb.txt").write_text("a|r|b\n", "utf-8")
    assert byokg("graph", "build", films, "--out", graph, "--sparql").code == WRONG
    fine(byokg("graph", "build", films, "--out", graph, "--sparql", "--overwrite"))
    rows = fine(byokg("graph", "query", graph, "SELECT ?p { ?f kg:r ?p }", "--format", "json"))
    assert len(json.loads(rows.out)["rows"]) == 1
    outcome = fine(byokg("graph", "build", films, "--out", graph, "--overwrite"))
    assert engines_in(graph) == [] and "its Oxigraph engine went with the graph before" in outcome.err


def test_a_graph_whose_engine_cannot_be_built_does_not_appear(
    byokg: Run, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("byokg.open.add_engine", stop)
    assert byokg("graph", "build", films, "--out", "g", "--sparql").code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["films"]


def test_the_schema_that_a_prompt_would_get_is_printed(byokg: Run, graph: Path) -> None:
    outcome = fine(byokg("graph", "schema", graph, "Who directed Heat?", "--budget-tokens", "45"))
    assert "Relations:\ndirected_by(4)\n" in outcome.out
    assert "… and 2 more relations" in outcome.out
    assert "of 45 tokens; relations shown: 1, left out: 2 relations, 0 properties" in outcome.err
    record = json.loads(fine(byokg("graph", "schema", graph, "--json")).out)
    assert record["relations"] == ["directed_by", "starred_actors", "release_year"]
    few = byokg("graph", "schema", graph, "--budget-tokens", "3")
    assert few.code == WRONG and "too few for a single relation" in few.err


# Credentials


@pytest.mark.parametrize(
    "address", ["neo4j://me:s3cret@host", "sparql+https://me:s3/cr@et@host/x", "mysql://a:s3cret@h"]
)
@pytest.mark.parametrize(
    "words",
    [
        ("graph", "info", "{}"),
        ("graph", "schema", "{}"),
        ("graph", "query", "{}", "MATCH (n) RETURN n"),
        ("graph", "export", "{}", "--out", "x"),
        ("graph", "build", "{}", "--out", "x"),
        ("graph", "build", "films", "--out", "{}"),
        ("graph", "engine", "{}", "--cypher"),
        ("graph", "info", "x", "{}"),
        ("ask", "Who?", "graph.path={}"),
        ("ask", "Who?", "graph={}"),
        ("ask", "Who?", "graph=columnar", "graph.path={}"),
        ("eval", "dataset=atlas", "graph.path={}", "--show"),
        ("doctor", "{}"),
        ("--debug", "graph", "info", "{}"),
    ],
)
def test_credentials_in_an_address_never_show(
    byokg: Run, words: tuple[str, ...], address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    outcome = byokg(*(word.format(address) for word in words))
    assert outcome.code == (1 if words[0] == "doctor" else WRONG)
    assert not any(part in outcome.out + outcome.err for part in ("s3cret", "s3/", "cr@et"))
    assert not any(path.name not in ("cache",) for path in tmp_path.iterdir())


def test_logs_show_no_keys_of_addresses(byokg: Run, sparql_films: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.cli.conftest import finish, start

    outcome = finish(start(["--debug", "graph", "info", f"{sparql_films}?apikey=s3cret"]))
    assert outcome.code == 0, outcome.err
    assert "HTTP Request: GET" in outcome.err and "apikey=…" in outcome.err
    assert "s3cret" not in outcome.out + outcome.err


def test_a_graph_is_exported_for_other_tools_and_its_questions_with_subgraphs(byokg: Run, films: Path) -> None:
    fine(byokg("graph", "build", str(films), "--out", "graph"))
    fine(byokg("graph", "export", "graph", "--format", "parquet", "--out", "tables"))
    assert content(import_graph("tables")) == content(import_graph(films))
    assert byokg("graph", "export", "graph", "--format", "gexf", "--out", "x").code == WRONG
    assert "is for --format rog" in byokg("graph", "export", "graph", "dataset=folder", "--out", "x").err
    words = ["dataset=folder", f"dataset.root={films}"]
    out = fine(byokg("graph", "export", "graph", *words, "--format", "rog", "--out", "rog", "--hops", "1")).out
    assert "questions) of graph to rog" in out
    assert "no data set is named" in byokg("graph", "export", "graph", "--format", "rog", "--out", "x").err


def test_coverage_shows_what_a_graph_lacks_of_a_data_set(byokg: Run, films: Path) -> None:
    fine(byokg("graph", "build", str(films), "--out", "graph"))
    words = ["graph", "coverage", "graph", "dataset=folder", f"dataset.root={films}"]
    whole = byokg(*words)
    assert "questions with all" in whole.out and whole.code in (0, 4)
    found = json.loads(byokg(*words, "--json").out)
    assert (
        found["splits"]
        and found["missing_relations"] == {}
        and (whole.code == 0)
        == all(each["all"]["present"] == each["all"]["total"] for each in found["splits"].values())
    )


def test_tables_are_described_in_one_line_each_and_options_decide(byokg: Run, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("Id;Label\n1;Ann\n2;Bob\n")
    (tmp_path / "edges.csv").write_text("Source;Target;Weight\n1;2;0.5\n")
    lines = fine(byokg("graph", "build", str(tmp_path), "--out", "graph")).out.splitlines()
    assert lines[0] == "nodes.csv: semicolon, header; id=Id, name=Label; 2 rows"
    described = (
        'semicolon, header; source=Source, relation=(none: "related_to"), target=Target, property Weight (float)'
    )
    assert lines[1] == f"edges.csv: {described}; 1 row"
    assert lines[2].startswith("built graph: 2 nodes, 1 edges, 1 relations, in ")
    people = tmp_path / "people.txt"
    people.write_text("# 1;2;3\nann;bob;0.5\nbob;cid;2\n")
    assert "--comment" in byokg("graph", "build", str(people), "--out", "p").err
    decided = ("--comment", "#", "--columns", "source,target,weight:float", "--no-header", "--delimiter", ";")
    assert "--columns" in byokg("graph", "build", str(people), "--out", "p", *decided[:2]).err
    fine(byokg("graph", "build", str(people), "--out", "p", *decided, "--undirected"))
    [relation] = ColumnarGraph.open("p").schema().relations
    assert (relation.count, relation.undirected, relation.properties) == (2, 2, ("weight",))
    refused = byokg("graph", "build", str(people), "--out", "q", "--delimiter", "xy")
    assert refused.code == WRONG and "delimiter 'xy'" in refused.err


def test_options_of_tables_are_not_for_servers(byokg: Run, server: str) -> None:
    refused = byokg("graph", "build", server, "--out", "copy", "--undirected", *by_id(server))
    assert refused.code == WRONG and "are for tables" in refused.err


def test_a_source_is_sniffed_and_its_graph_yaml_written_once(byokg: Run, tmp_path: Path) -> None:
    (tmp_path / "friends.csv").write_text("Ann;knows;Bob\nBob;knows;Cid\nCid;likes;Ann\n")
    told = byokg("graph", "sniff", tmp_path / "friends.csv")
    assert told.code == 0
    assert "format     delimited (Arrow)\ncounts     3 nodes, 3 edges\n" in told.out
    assert "relations  knows (2), likes (1)\n" in told.out and "source: friends.csv" in told.out
    written = byokg("graph", "sniff", tmp_path / "friends.csv", "--write", "--json")
    target = tmp_path / "friends.graph.yaml"
    assert json.loads(written.out)["written"] == str(target)
    assert byokg("graph", "build", target, "--out", tmp_path / "g").code == 0
    again = byokg("graph", "sniff", tmp_path / "friends.csv", "--write")
    assert again.code == 2 and "is there already" in again.err
