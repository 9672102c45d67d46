"""The guard beside real engines: what it lets through changes nothing there, and what changes something it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from byokg.errors import QueryRefused
from byokg.graph.engines.oxigraph_process import OxigraphEngine
from byokg.graph.guard.guard import CheckedQuery, check_cypher, check_sparql
from tests.graph.guard import corpus_cypher, corpus_sparql, corpus_tck

ROOT = Path(__file__).resolve().parents[3]
READS = corpus_cypher.READS + corpus_tck.READS
WRITES = corpus_cypher.WRITES + corpus_cypher.UNREADABLE

TRIG = """
@prefix ex: <http://e/> .
ex:ann ex:knows ex:bob ; ex:name "Ann" ; a ex:Person .
ex:bob ex:name "Bob" .
ex:g { ex:x ex:y 1 }
"""


@pytest.fixture(scope="module")
def on_arcade(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[str | None, bool]]:
    """Run queries on a small graph that they may change; return the error and whether something changed, for each."""
    pytest.importorskip("arcadedb_embedded", reason="needs arcadedb-embedded: pip install 'byokg[cypher]'")
    folder = tmp_path_factory.mktemp("arcade")
    queries = [*(checked(text) for text in READS), *WRITES]
    places = (str(folder / "database"), str(folder / "results"))
    command = (sys.executable, "-m", "tests.graph.guard.guard_engine", *places)
    done = subprocess.run(command, input=json.dumps(queries), capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    results = json.loads((folder / "results").read_text("utf-8"))
    return {query: (error, changed) for query, (error, changed) in zip(queries, results, strict=True)}


def checked(text: str) -> str:
    return check_cypher(text, row_cap=100).text


def test_what_passes_changes_nothing_in_arcadedb(on_arcade: Mapping[str, tuple[str | None, bool]]) -> None:
    results = {text: on_arcade[checked(text)] for text in READS}
    assert [text for text, (_, changed) in results.items() if changed] == []
    ran = sum(error is None for error, _ in results.values())
    assert ran >= 0.9 * len(READS)  # the rest uses what this engine lacks: path selectors, NULLS LAST, APOC, …


def test_what_changes_something_in_arcadedb_is_refused(on_arcade: Mapping[str, tuple[str | None, bool]]) -> None:
    writing = [text for text in WRITES if on_arcade[text][1]]
    assert len(writing) >= 100
    assert [text for text in writing if passes(text)] == []


def passes(text: str) -> CheckedQuery | None:
    try:
        return check_cypher(text)
    except QueryRefused:
        return None


class TestOxigraph:
    @pytest.fixture
    def oxigraph(self) -> Any:
        return pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'byokg[sparql]'")

    def filled(self, oxigraph: Any) -> Any:
        store = oxigraph.Store()
        store.load(TRIG.encode(), format=oxigraph.RdfFormat.TRIG)
        return store

    def content(self, store: Any) -> list[str]:
        return sorted(map(str, store))

    @pytest.mark.parametrize("text", corpus_sparql.READS)
    def test_answers_what_passes(self, oxigraph: Any, text: str) -> None:
        store = self.filled(oxigraph)
        answer = store.query(check_sparql(text, row_cap=100).text)
        if not isinstance(answer, oxigraph.QueryBoolean):
            list(answer)
        with pytest.raises(SyntaxError):
            store.update(check_sparql(text).text)

    @pytest.mark.parametrize(
        "text",
        [
            "CONSTRUCT { ?x ex:likes ?y } WHERE { ?x ex:knows ?y }",
            "CONSTRUCT { ?x ex:likes $y . $y ex:called ?n , 'SET'@en, 1 ; a ex:C . } "
            "{ ?x ex:knows ?y OPTIONAL { ?x ex:name ?n } }",
            "CONSTRUCT { ?y ex:p ex:q . ?x ?p ?y } WHERE { ?x ?p ?y } # ?y may be a literal",
            "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } ORDER BY ?o LIMIT 2",
            "CONSTRUCT { ?x ex:count ?n } WHERE { SELECT ?x (COUNT(*) AS ?n) { ?x ?p ?y } GROUP BY ?x }",
            "CONSTRUCT { ?subject ex:is ?row0 } WHERE { ?subject ex:name ?row0 } VALUES ?row0 { 'Ann' }",
            "CONSTRUCT WHERE { ?x ex:knows ?y ; ex:name ?n }",
            "CONSTRUCT { ex:a ex:b ex:c } WHERE { }",
            "CONSTRUCT { } WHERE { ?x ?p ?y }",
            "CONSTRUCT { ?x ex:p ?y } FROM ex:g WHERE { ?x ?q ?y }",
            "CONSTRUCT FROM ex:g WHERE { ?x ?q ?y };",
            "DESCRIBE ex:ann",
            "DESCRIBE ex:ann <http://e/bob>",
            "DESCRIBE ?y WHERE { ex:ann ex:knows ?y }",
            "DESCRIBE ?x ?y ex:nobody { ?x ex:knows ?y } LIMIT 1",
            "DESCRIBE * { ?x ex:knows ?y }",
            "DESCRIBE ?x",
        ],
    )
    def test_graphs_are_answered_as_rows_of_their_triples(self, oxigraph: Any, text: str) -> None:
        engine = OxigraphEngine("", union=False)
        engine._store = self.filled(oxigraph)
        written = f"PREFIX ex: <http://e/> {text}"
        names, rows, truth = engine.query(check_sparql(written, row_cap=100).text, 100, every_graph=True)
        assert (names, truth) == (("subject", "predicate", "object"), None)
        triples = {tuple(term.value for term in triple) for triple in engine._store.query(written.rstrip(";"))}
        found = [tuple(row[name]["value"] for name in names) for row in rows]
        assert set(found) == triples
        assert len(found) == len(triples)
        assert engine.query(check_sparql(written).text, 1, every_graph=True)[1] == rows[:1]

    def test_a_template_has_other_blank_nodes_in_each_solution_and_the_same_ones_in_each_run(
        self, oxigraph: Any
    ) -> None:
        engine = OxigraphEngine("", union=False)
        engine._store = oxigraph.Store()
        engine._store.load(
            b"@prefix ex: <http://e/> . ex:ann ex:knows ex:bob . ex:bob ex:knows ex:ann .", oxigraph.RdfFormat.TURTLE
        )
        text = "PREFIX ex: <http://e/> CONSTRUCT { _:b ex:of ?x } { ?x ex:knows ?y } ORDER BY ?x"
        _, rows, _ = engine.query(check_sparql(text).text, 9, every_graph=True)
        assert [(row["subject"], row["object"]["value"]) for row in rows] == [
            ({"type": "bnode", "value": "b1"}, "http://e/ann"),
            ({"type": "bnode", "value": "b2"}, "http://e/bob"),
        ]

    def test_triples_within_triples_are_rows_too(self, oxigraph: Any) -> None:
        engine = OxigraphEngine("", union=False)
        engine._store = self.filled(oxigraph)
        text = "PREFIX ex: <http://e/> CONSTRUCT { ?x ex:says <<( ?x ex:knows ?y )>> } { ?x ex:knows ?y }"
        _, (row,), _ = engine.query(check_sparql(text).text, 9, every_graph=True)
        assert row["object"]["type"] == "triple"
        assert row["object"]["value"]["object"] == {"type": "uri", "value": "http://e/bob"}

    def test_changes_something_only_for_what_is_refused(self, oxigraph: Any) -> None:
        before = self.content(self.filled(oxigraph))
        writing = 0
        for text in corpus_sparql.WRITES:
            if text.startswith("LOAD"):
                continue  # would ask the network
            store = self.filled(oxigraph)
            try:
                store.update(text)
            except (SyntaxError, RuntimeError, OSError):
                continue
            writing += self.content(store) != before
            with pytest.raises(QueryRefused):
                check_sparql(text)
        assert writing >= 15
