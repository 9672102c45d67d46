"""Tests of `byokg.graph.rdf.importer`, and of what `ntriples` leaves out."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from byokg import files
from byokg.errors import ImportFailed
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph, graph_folder, import_graph, import_into
from byokg.graph.rdf import importer, literals
from byokg.graph.store import Direction
from byokg.types import EntityId

pytest.importorskip("pyoxigraph")

BASE, RDF = "http://example.org/", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

# No statement, another byte than UTF-8's, no predicate, an open literal.
BAD = (b"nonsense\n", b'<http://a.org/s> <http://a.org/p> "\xff" .\n', b"<http://a.org/s> .\n", b'_:a <u:b> "c .\n')


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def edges_of(graph: ColumnarGraph, entity: EntityId) -> set[tuple[str, str]]:
    batch = graph.edges(graph.numbers([entity]), Direction.OUT)
    return {(graph.relations[number], tail) for number, tail in zip(batch.relation, graph.ids(batch.tail), strict=True)}


def lines() -> list[bytes]:
    """300 statements, plain ones and others: escapes, percent signs, tabs, blank nodes, comments."""
    rng = random.Random(4)
    made = []
    for number in range(300):
        node, other = (f"<{BASE}n{rng.randrange(40)}>" for _ in range(2))
        one = rng.choice(
            [
                f"{node} <{BASE}r{rng.randrange(3)}> {other} .",
                f"{node}\t<{BASE}r1>\t{other}\t.",
                f"{node} <{BASE}picture> <{BASE}a%20b{rng.randrange(5)}.jpg> .",
                f"_:b{rng.randrange(4)} <{BASE}r2> {node} .",
                f"{node} <{RDF}type> <{BASE}T{rng.randrange(3)}> .",
                f'{node} <{BASE}note> "say \\"{rng.randrange(9)}\\"\\u00e9"@en-Latn-GB .',
                f'{node} <{BASE}size> "{rng.randrange(9)}"^^<http://www.w3.org/2001/XMLSchema#integer>  .  ',
                f"# {number}",
                "",
            ]
        )
        made.append(one.encode() + rng.choice([b"\n", b"\r\n"]))
    return made


@pytest.mark.parametrize(("bytes_at_once", "at_once"), [(1 << 24, 1 << 23), (700, 7)])
def test_edges_that_are_handed_on_give_the_graph_of_edges_that_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_at_once: int, at_once: int
) -> None:
    (tmp_path / "graph.nt").write_bytes(b"".join(lines()))
    whole = import_graph(tmp_path / "graph.nt")
    monkeypatch.setattr(importer, "_TOGETHER", at_once)
    monkeypatch.setattr(literals, "_ROWS", at_once)
    held = import_graph(tmp_path / "graph.nt")
    for entity in whole.entities():
        assert held.nodes([entity]) == whole.nodes([entity])
        assert edges_of(held, entity) == edges_of(whole, entity)
    held.save(tmp_path / "held")
    monkeypatch.setattr(files, "_LINES_BYTES", bytes_at_once)
    build_graph(tmp_path / "graph.nt", tmp_path / "handed on")
    assert contents(tmp_path / "handed on") == contents(tmp_path / "held")


@pytest.mark.parametrize(
    "told",
    [
        f"<{BASE}s> <{RDF}subject> <{BASE}n1> .\n<{BASE}s> <{RDF}predicate> <{BASE}r1> .\n"
        f'<{BASE}s> <{RDF}object> <{BASE}n2> .\n<{BASE}s> <{BASE}since> "1990" .\n',
        f'_:s <{RDF}reifies> <<( <{BASE}n1> <{BASE}r1> <{BASE}n2> )>> .\n_:s <{BASE}since> "1990" .\n',
    ],
)
def test_statements_about_triples_are_found_however_late_they_come(tmp_path: Path, told: str) -> None:
    edge = f"<{BASE}n1> <{BASE}r1> <{BASE}n2> .\n"
    (tmp_path / "graph.nt").write_bytes(edge.encode() + b"".join(lines()) + told.encode())
    graph = build_graph(tmp_path / "graph.nt", tmp_path / "graph")
    import_graph(tmp_path / "graph.nt").save(tmp_path / "held")
    assert contents(tmp_path / "graph") == contents(tmp_path / "held")
    assert [found for found in graph.edge_properties(np.arange(graph.edge_count)) if found] == [
        {"example:since": "1990"}
    ]


def test_bad_lines_are_left_out_and_told_up_to_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = lines()
    mixed, places = list(good), [200, 120, 40, 40]
    for place, line in zip(places, BAD, strict=True):
        mixed.insert(place, line)
    (tmp_path / "graph.nt").write_bytes(b"".join(good))
    build_graph(tmp_path / "graph.nt", tmp_path / "good")
    (tmp_path / "graph.nt").write_bytes(b"".join(mixed))
    monkeypatch.setattr(files, "_LINES_BYTES", 700)
    told: list[ImportFailed] = []
    with graph_folder(tmp_path / "graph.nt", tmp_path / "some") as partial:
        import_into(tmp_path / "graph.nt", partial, 4, told.append)
    assert [error.line for error in told] == [41, 42, 123, 204]
    assert {name: bytes_ for name, bytes_ in contents(tmp_path / "some").items() if name != "meta.json"} == {
        name: bytes_ for name, bytes_ in contents(tmp_path / "good").items() if name != "meta.json"
    }
    with (
        pytest.raises(ImportFailed, match="UTF-8") as caught,
        graph_folder(tmp_path / "graph.nt", tmp_path / "few") as partial,
    ):
        import_into(tmp_path / "graph.nt", partial, 2)
    assert caught.value.line == 123


@pytest.mark.parametrize("said", ["", "# nothing\n", f'<{BASE}n> <http://www.w3.org/2000/01/rdf-schema#label> "" .\n'])
def test_a_file_without_statements_or_names_becomes_a_graph_all_the_same(tmp_path: Path, said: str) -> None:
    (tmp_path / "graph.nt").write_text(said)
    build_graph(tmp_path / "graph.nt", tmp_path / "handed on")
    import_graph(tmp_path / "graph.nt").save(tmp_path / "held")
    assert contents(tmp_path / "handed on") == contents(tmp_path / "held")
