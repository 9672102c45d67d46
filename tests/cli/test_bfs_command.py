"""`byokg bfs`."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import jsonschema
import pytest

from byokg.cli.main import main
from tests.graph.bfsql.graphs import BIOMEDICAL

REQUEST = '{"seeds": ["PUB:1"], "max_hops": 1, "edge_filter": {"predicates": ["AUTHORED"]}}'


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bfs") / "graph"
    assert main(["graph", "build", str(BIOMEDICAL), "--out", str(out)]) == 0
    return out


def test_the_response_is_printed_as_json(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bfs", str(graph), REQUEST]) == 0
    response = json.loads(capsys.readouterr().out)
    assert [node["id"] for node in response["nodes"]] == ["PUB:1", "PERSON:ferrand", "DIS:cushing-syndrome"]
    assert response["edges"][0]["provenance"][0]["source_doc"] == "PUB:1"


def test_a_request_is_read_from_input(
    graph: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(REQUEST))
    assert main(["bfs", str(graph), "-"]) == 0
    assert json.loads(capsys.readouterr().out)["node_count"] == 3


def test_an_unknown_seed_is_reported_with_the_nearest_names(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bfs", str(graph), '{"seeds": ["acromegalie"], "max_hops": 1}']) == 0
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert error["nearest"][0]["id"] == "DIS:acromegaly"


def test_a_wrong_request_is_one_line_of_error(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bfs", str(graph), '{"seeds": ["PUB:1"], "max_hop": 1}']) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "did you mean 'max_hops'?" in error


def test_without_a_request_the_error_shows_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bfs"]) == 2
    assert "give a graph and a request: byokg bfs GRAPH" in capsys.readouterr().err


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bfs", "--schema"]) == 0
    jsonschema.Draft202012Validator(json.loads(capsys.readouterr().out)).validate(json.loads(REQUEST))


def test_strict_takes_and_gives_what_the_article_has(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bfs", str(graph), REQUEST, "--strict"]) == 0
    response = json.loads(capsys.readouterr().out)
    assert list(response) == ["seeds", "max_hops", "node_count", "edge_count", "nodes", "edges"]
    assert main(["bfs", str(graph), '{"seeds": ["PUB:1"], "max_hops": 1, "limit": 1}', "--strict"]) == 2
