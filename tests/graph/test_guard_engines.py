"""The guard beside real engines: what it lets through changes nothing there, and what changes something it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from byokg.errors import QueryRefused
from byokg.graph.guard import CheckedQuery, check_cypher, check_sparql
from tests.graph import corpus_cypher, corpus_sparql, corpus_tck

ROOT = Path(__file__).resolve().parents[2]
READS = corpus_cypher.READS + corpus_tck.READS

TRIG = """
@prefix ex: <http://e/> .
ex:ann ex:knows ex:bob ; ex:name "Ann" ; a ex:Person .
ex:bob ex:name "Bob" .
ex:g { ex:x ex:y 1 }
"""


def on_arcade(queries: Sequence[str], folder: Path) -> list[tuple[str | None, bool]]:
    """Run queries on a small graph that they may change; return the error and whether something changed, for each."""
    pytest.importorskip("arcadedb_embedded", reason="needs arcadedb-embedded: pip install 'byokg[cypher]'")
    command = [sys.executable, "-m", "tests.graph.guard_engine", str(folder / "database"), str(folder / "results")]
    done = subprocess.run(command, input=json.dumps(queries), capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    return [(error, changed) for error, changed in json.loads((folder / "results").read_text("utf-8"))]


def test_what_passes_changes_nothing_in_arcadedb(tmp_path: Path) -> None:
    checked = [check_cypher(text, row_cap=100).text for text in READS]
    results = on_arcade(checked, tmp_path)
    assert [text for text, (_, changed) in zip(checked, results, strict=True) if changed] == []
    ran = sum(error is None for error, _ in results)
    assert ran >= 0.9 * len(READS)  # the rest uses what this engine lacks: path selectors, NULLS LAST, APOC, …


def test_what_changes_something_in_arcadedb_is_refused(tmp_path: Path) -> None:
    texts = corpus_cypher.WRITES + corpus_cypher.UNREADABLE
    results = on_arcade(texts, tmp_path)
    writing = [text for text, (_, changed) in zip(texts, results, strict=True) if changed]
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
