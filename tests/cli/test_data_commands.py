"""Tests of `byokg data`."""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import re
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from byokg.cli.data_commands import FOUND
from byokg.cli.terminal import WRONG
from byokg.evaluation.datasets import fetch
from tests.cli.conftest import Run


def test_the_list_names_every_layout_with_what_it_is(byokg: Run) -> None:
    listed = byokg("data", "list")
    assert listed.code == 0
    assert re.search("^dataset=rog +WebQSP and CWQ with a subgraph for each question", listed.out, re.MULTILINE)
    assert re.search("^subset=complex_200 +ByoKG-RAG's part of CronQuestions", listed.out, re.MULTILINE)
    assert "dataset=folder" in json.loads(byokg("data", "list", "--json").out)


def test_info_counts_what_a_set_holds(byokg: Run, films: Path) -> None:
    words = ["data", "info", "dataset=folder", f"dataset.root={films}"]
    record = json.loads(byokg(*words, "--json").out)
    assert (record["questions"], record["answers"], record["with_topic_entities"]) == (3, 4, 2)
    assert record["by_split"] == {"dev": 1} and record["by_hops"] == {"1": 1}
    assert record["checksum"] == hashlib.sha256((films / "questions.jsonl").read_bytes()).hexdigest()
    assert record["graph"] == str(films)
    assert "questions            2\n" in byokg(*words, "ids=q1,q2").out


def test_a_sound_set_is_said_to_be_and_findings_are_listed_with_their_exit_code(byokg: Run, films: Path) -> None:
    words = ["data", "audit", "dataset=folder", f"dataset.root={films}"]
    sound = byokg(*words, "ids=q1,q2")
    assert sound.code == 0
    assert sound.out == "films: 2 questions, graph looked at, 3 hops\n  nothing found\n"
    lines = [
        {"id": "q4", "question": "Who made {tail2}?", "answers": ["Nobody"], "topic_entities": ["Heat"]},
        {"id": "q5", "question": "Who made {tail2}?", "answers": ["Tom Cruise"], "topic_entities": ["Heat"]},
    ]
    with (films / "questions.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    found = byokg(*words, "--hops", "2", "--show", "1")
    assert found.code == FOUND
    assert (
        "  unresolved template: 2 (40.0 %); the text still holds a slot such as {tail2}\n    q4\n    (+1 more"
        in found.out
    )
    assert "  answer not in graph: 1 (20.0 %)" in found.out
    assert "  answer out of reach: 1 (20.0 %)" in found.out  # Tom Cruise is 3 edges away from Heat
    record = json.loads(byokg(*words, "--without-graph", "--json").out)
    assert record["findings"] == {
        "unresolved template": ["q4", "q5"],
        "contradicting question": ["q5"],
        "no topic entity": ["q3"],
    }


def test_a_graph_is_converted_where_a_run_finds_it(byokg: Run) -> None:
    Path("pq").mkdir()
    Path("pq/PQ-2H.txt").write_text(
        "child of ann 's spouse ?\tjim(jim/)\tann#spouse#bob#child#jim#<end>#jim\n", "utf-8"
    )
    Path("pq/2H-kb.txt").write_text("ann\tspouse\tbob\nbob\tchild\tjim\n", "utf-8")
    words = ["dataset=pathquestion", "dataset.root=pq"]
    refused = byokg("eval", *words)
    assert refused.code == WRONG and "byokg data graph KEY=VALUE… --out pq/2H-graph" in refused.err
    assert byokg("data", "graph", *words, "--out", "pq/2H-graph").code == 0
    assert byokg("data", "audit", *words).code == 0
    assert "is not empty" in byokg("data", "graph", *words, "--out", "pq/2H-graph").err
    assert "needs no conversion" in byokg("data", "graph", "dataset=atlas", "--out", "x").err


def test_a_set_is_fetched_through_a_mirror_and_checked(byokg: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("far/data").mkdir(parents=True)
    Path("far/data/q.txt").write_text("questions", "utf-8")
    digest = hashlib.sha256(b"questions").hexdigest()
    files = (fetch.SourceFile("https://far.example/data/q.txt", "q.txt", digest),)
    films = fetch.Source("films", "https://far.example", "CC0", files)
    monkeypatch.setattr(fetch, "sources", lambda: {"films": films})
    handler = functools.partial(SimpleHTTPRequestHandler, directory="far")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        outcome = byokg("data", "fetch", "films", "--out", "here", "--mirror", f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
        thread.join()
    assert outcome.code == 0
    assert outcome.out == f"here/q.txt: fetched; sha256 {digest[:12]}… checked\nlicence: CC0; see https://far.example\n"
    assert Path("here/q.txt").read_text("utf-8") == "questions"
    assert "films          1 files" in byokg("data", "fetch").out
    assert "no data set 'music' is listed; there are films" in byokg("data", "fetch", "music").err


NS = "http://rdf.freebase.com/ns/"


def test_a_dump_is_filtered_and_built_into_a_graph(byokg: Run, tmp_path: Path) -> None:
    lines = [
        f'<{NS}m.01>\t<{NS}type.object.name>\t"Ann"@en\t.\n',
        f'<{NS}m.01>\t<{NS}type.object.name>\t"Anna"@de\t.\n',
        f"<{NS}m.01>\t<{NS}people.person.children>\t<{NS}m.02>\t.\n",
        "broken\n",
    ]
    (tmp_path / "dump.gz").write_bytes(gzip.compress("".join(lines).encode()))
    refused = byokg("data", "graph", "dump.gz", "--out", "fb.nt.zst")
    assert refused.code == WRONG and "dump.gz:4: this is no N-Triples statement: 'broken'" in refused.err
    made = byokg("data", "graph", "dump.gz", "--out", "fb.nt.zst", "--skip-bad", 1)
    assert made.code == 0, made.err
    assert "2 of 3 statements" in made.out and "left out 1 in another language" in made.out
    assert "dump.gz:4: broken" in made.err
    assert byokg("data", "graph", "dump.gz", "--out", "fb.nt.zst").code == WRONG
    assert byokg("graph", "build", "fb.nt.zst", "--out", "fb.graph").code == 0
    assert "Ann" in byokg("link", "fb.graph", "ann").out
