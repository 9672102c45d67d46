from __future__ import annotations

from pathlib import Path

import pytest

from byokg.errors import GraphExists, GraphNotFound
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.open import add_engine, engines_in, open_queryable, refuse_missing

pytest.importorskip("arcadedb_embedded", reason="ArcadeDB is not installed: pip install 'byokg[cypher]'")
pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'byokg[sparql]'")


def test_engines_are_added_to_a_graph_that_is_there_and_replaced_only_when_told_so(tmp_path: Path) -> None:
    graph = ColumnarGraph.from_triples([("a", "r", "b")])
    graph.save(tmp_path / "graph")
    refuse_missing(["cypher", "sparql"])
    assert engines_in(tmp_path / "graph") == []
    add_engine(tmp_path / "graph", "sparql")
    add_engine(tmp_path / "graph", "cypher")
    assert engines_in(tmp_path / "graph") == ["cypher", "sparql"]
    for language in engines_in(tmp_path / "graph"):
        with pytest.raises(GraphExists, match="engine already"):
            add_engine(tmp_path / "graph", language)
        add_engine(tmp_path / "graph", language, overwrite=True)
    with open_queryable(tmp_path / "graph") as store:
        assert store.run("MATCH (n) RETURN count(n)").rows == ((2,),)
    with open_queryable(tmp_path / "graph", "sparql") as store:
        assert store.run("SELECT ?x { node:a kg:r ?x }").rows[0][0].id == "b"  # type: ignore[union-attr]
    ColumnarGraph.open(tmp_path / "graph").verify()


def test_an_engine_needs_a_graph(tmp_path: Path) -> None:
    with pytest.raises(GraphNotFound):
        add_engine(tmp_path, "cypher")
    assert list(tmp_path.iterdir()) == []
