"""Tests of `byokg.cli.evaluation`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from byokg.cli.evaluation import cache_folder, cached_graph, source_digest
from byokg.errors import GraphError, ImportFailed
from byokg.graph.columnar.graph import ColumnarGraph
from tests.cli.conftest import Run, finish, start


def ignore(text: str) -> None:
    """Take a note that the test does not look at."""


def test_a_graph_is_built_once_and_says_so(films: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    first = cached_graph(films, "films", tmp_path / "graphs", notes.append)
    again = cached_graph(films, "films", tmp_path / "graphs", notes.append)
    assert first == again == tmp_path / "graphs" / f"films-{source_digest(films)[:12]}"
    assert "built from" in notes[0] and notes[2] == f"graph: {first}"
    assert notes[1] == "  kb.txt: '|', no header; source=column 1, relation=column 2, target=column 3; 11 rows"
    assert ColumnarGraph.open(first).edge_count == 11


def test_another_content_is_another_graph_and_another_place_is_not(films: Path, tmp_path: Path) -> None:
    first = cached_graph(films, "films", tmp_path / "graphs", ignore)
    moved = films.rename(tmp_path / "moved")
    assert cached_graph(moved, "films", tmp_path / "graphs", ignore) == first
    (moved / "kb.txt").write_text("a|r|b\n", "utf-8")
    changed = cached_graph(moved, "films", tmp_path / "graphs", ignore)
    assert changed != first
    assert ColumnarGraph.open(changed).edge_count == 1
    assert ColumnarGraph.open(first).edge_count == 11


def test_files_that_are_no_part_of_the_graph_do_not_count(films: Path) -> None:
    before = source_digest(films)
    (films / "questions.jsonl").write_text("", "utf-8")
    assert source_digest(films) == before


def test_a_compressed_source_is_told_from_a_plain_one(films: Path) -> None:
    plain = source_digest(films)
    content = (films / "kb.txt").read_bytes()
    (films / "kb.txt").unlink()
    (films / "kb.txt.gz").write_bytes(gzip.compress(content))
    assert source_digest(films) != plain


def test_a_damaged_graph_is_built_again(films: Path, tmp_path: Path) -> None:
    folder = cached_graph(films, "films", tmp_path / "graphs", ignore)
    (folder / "other.npy").unlink()
    assert cached_graph(films, "films", tmp_path / "graphs", ignore) == folder
    assert ColumnarGraph.open(folder).edge_count == 11


def test_a_source_that_cannot_be_imported_leaves_nothing(films: Path, tmp_path: Path) -> None:
    (films / "kb.txt").write_text("a|r|b|c\n", "utf-8")
    with pytest.raises(ImportFailed):
        cached_graph(films, "films", tmp_path / "graphs", ignore)
    assert not (tmp_path / "graphs").exists() or list((tmp_path / "graphs").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_an_error_of_ours(films: Path, tmp_path: Path) -> None:
    (tmp_path / "graphs").touch()
    with pytest.raises(GraphError, match=r"name another folder with graph\.cache=DIR"):
        cached_graph(films, "films", tmp_path / "graphs", ignore)


def test_names_fit_for_a_folder(films: Path, tmp_path: Path) -> None:
    folder = cached_graph(films, "../my data: films?", tmp_path / "graphs", ignore)
    assert folder.parent == tmp_path / "graphs"
    assert folder.name.startswith("my-data-films-")


def test_processes_that_ask_at_the_same_time_all_get_the_graph(films: Path) -> None:
    words = ["eval", "dataset=folder", f"dataset.root={films}"]
    racing = [start([*words, f"out=run{number}"]) for number in range(3)]
    outcomes = [finish(process) for process in racing]
    assert [outcome.code for outcome in outcomes] == [0, 0, 0]
    assert len(list(Path("cache/byokg/graphs").iterdir())) == 1


def test_the_cache_lies_where_the_user_keeps_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_folder({"XDG_CACHE_HOME": "/var/cache/me"}) == Path("/var/cache/me/byokg/graphs")
    assert cache_folder({}) == Path("/home/someone/.cache/byokg/graphs")
    assert cache_folder({"XDG_CACHE_HOME": "relative"}) == Path("/home/someone/.cache/byokg/graphs")


def test_a_changed_file_of_any_layout_gets_another_graph(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "graph.jsonl").write_text('{"head": "a", "relation": "r", "tail": "b"}\n', encoding="utf-8")
    before = source_digest(source)
    (source / "graph.jsonl").write_text('{"head": "a", "relation": "r", "tail": "c"}\n', encoding="utf-8")
    assert source_digest(source) != before


def test_questions_with_cypher_run_on_their_own_graph_with_an_engine_of_its_own(tmp_path: Path, byokg: Run) -> None:
    pytest.importorskip("arcadedb_embedded", reason="needs arcadedb-embedded: pip install 'byokg[cypher]'")
    (tmp_path / "nodes.csv").write_text("id,name,type,price:int\n1,Chai,Product,18\n2,Chang,Product,19\n", "utf-8")
    (tmp_path / "edges.csv").write_text("head,relation,tail\n1,LIKE,2\n", "utf-8")
    query = "MATCH (p:Product) RETURN p.name, p.price"
    question = {
        "id": "a",
        "question": "Prices?",
        "cypher": query,
        "rows": [["Chang", 19], ["Chai", 18]],
        "row_count": 2,
    }
    (tmp_path / "questions.jsonl").write_text(json.dumps(question), "utf-8")
    (tmp_path / "rules.yaml").write_text(f"- reply: '<opencypher>{query}</opencypher>'\n", "utf-8")
    words = ["eval", "dataset=text2cypher", f"dataset.root={tmp_path}", f"graph.cache={tmp_path / 'cache'}"]
    words += ["graph=arcadedb", "pipeline=direct_query", "llm=scripted", f"llm.rules={tmp_path / 'rules.yaml'}"]
    outcome = byokg(*words, f"out={tmp_path / 'run'}")
    assert outcome.code == 0, outcome.err
    assert "graph: built its ArcadeDB engine" in outcome.err
    (line,) = (line for line in outcome.out.splitlines() if " execution  " in line)
    assert line.split()[2] == "100.0"
