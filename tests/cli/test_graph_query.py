"""`byokg graph query` and `byokg graph export`, over a graph with both engines in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from byokg.cli.main import main

pytest.importorskip("arcadedb_embedded", reason="ArcadeDB is not installed: pip install 'byokg[cypher]'")
pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'byokg[sparql]'")

# Heat -directed_by-> Michael Mann <-directed_by- Ali
TRIPLES = "Heat\tdirected_by\tMichael Mann\nAli\tdirected_by\tMichael Mann\n"
FILMS = "MATCH (f)-[:directed_by]->({name: 'Michael Mann'}) RETURN f.name AS film ORDER BY film"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("query") / "graph.tsv"
    source.write_text(TRIPLES, encoding="utf-8")
    out = source.parent / "graph"
    assert run("graph", "build", str(source), "--out", str(out), "--cypher", "--sparql") == 0
    return out


def run(*words: str) -> int:
    return main(list(words))


def test_cypher_rows_are_printed_as_a_table(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("graph", "query", str(graph), FILMS) == 0
    out = capsys.readouterr().out
    assert "film" in out and out.index("Ali") < out.index("Heat") and "2 rows" in out


def test_rows_come_as_json(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("graph", "query", str(graph), FILMS, "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == {"columns": ["film"], "rows": [["Ali"], ["Heat"]], "truncated": False}


def test_a_row_limit_says_that_there_are_more(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("graph", "query", str(graph), FILMS, "--max-rows", "1") == 0
    assert "there are more" in capsys.readouterr().out


def test_sparql_is_asked_for_by_language(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "SELECT (COUNT(*) AS ?films) { ?film kg:directed_by ?who }"
    assert run("graph", "query", str(graph), text, "--language", "sparql", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [[2]]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("MATCH (n) DETACH DELETE n", "QueryRefused"),
        ("MATCH (n RETURN n", "QueryRefused"),
        ("MATCH (a), (b), (c), (d) WHERE nosuch(a) RETURN a", "QueryInvalid"),
    ],
)
def test_a_query_that_cannot_run_names_its_error(
    graph: Path, text: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("graph", "query", str(graph), text) == 2
    assert error in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [(["--language", "gql"], "use one of cypher, sparql"), (["--format", "xml"], "use one of table, json")],
)
def test_an_unknown_choice_names_the_known_ones(
    graph: Path, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("graph", "query", str(graph), FILMS, *words) == 2
    assert told in capsys.readouterr().err


def test_a_graph_without_an_engine_says_how_to_build_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "graph.tsv"
    source.write_text(TRIPLES, encoding="utf-8")
    assert run("graph", "build", str(source), "--out", str(tmp_path / "plain")) == 0
    assert run("graph", "query", str(tmp_path / "plain"), FILMS) == 2
    assert "--cypher or --sparql" in capsys.readouterr().err


def test_an_address_of_an_unknown_kind_names_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("graph", "query", "mysql://localhost", FILMS) == 2
    assert "neo4j, bolt" in capsys.readouterr().err


def test_an_exported_graph_can_be_built_again(graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("graph", "export", str(graph), "--out", str(tmp_path / "csv")) == 0
    assert run("graph", "build", str(tmp_path / "csv"), "--out", str(tmp_path / "again")) == 0
    assert "3 nodes, 2 edges, 1 relations" in capsys.readouterr().out


def test_several_queries_in_one_command_share_the_engine(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = (FILMS, "MATCH (n) RETURN count(n) AS n")
    assert run("graph", "query", str(graph), *texts, "--format", "json") == 0
    said = capsys.readouterr()
    first, second = said.out.replace("}\n{", "}\0{").split("\0")
    assert [json.loads(each)["columns"] for each in (first, second)] == [["film"], ["n"]]
    assert said.err.count("starting the openCypher engine") == 1
