"""Ids come back as they were, however they are held."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.errors import GraphCorrupt
from byokg.graph.columnar import folder, node_ids
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.columnar.node_ids import IdColumn, IdIndex, find_spaces, write_ids
from byokg.graph.importers.choose import build_graph, import_graph
from byokg.index import vocabulary
from byokg.index.vocabulary import hash_column, sort_hashes
from byokg.types import EntityId, Node
from tests.graph.contract import STRANGE_IDS, edge

HOSTILE = [
    *STRANGE_IDS,
    "",
    "/",
    "#",
    "0",
    "00",
    "7",
    "007",
    "-7",
    "999999999",
    "1000000000",
    "99999999999999999999999",
    "http://example.org/",
    "http://example.org/e/Q",
    "http://example.org/e/Q0",
    "http://example.org/e/Q00",
    "http://example.org/e/Q01",
    "http://example.org/e/Q999999999",
    "http://example.org/e/Q1000000000",
    "http://example.org/e/Q４２",
    "http://example.org/e/q1",
    "http://example.org/e/Q1 ",
    "http://example.org/e",
    "http://example.org/e/1/2",
    "_:b1",
    "_:b01",
    "é/é#é:é1",
    "\0",
    "a\0/1",
    "y" * 70_000 + "/" + "z" * 70_000 + "12",
]


def written(folder: Path, texts: list[str]) -> IdColumn:
    folder.mkdir(exist_ok=True)
    write_ids(folder, pa.array(texts, pa.large_string()), whole=False)
    files = [path.name for path in folder.iterdir()]
    return IdColumn.map(folder, files, len(texts))


def check(column: IdColumn, texts: list[str]) -> None:
    every = np.arange(len(texts))
    assert len(column) == len(texts)
    assert column.take(every[::-1]).to_pylist() == column.get(every)[::-1] == texts[::-1]
    assert column.whole().to_pylist() == [column.one(number) for number in every.tolist()] == texts
    assert [text for some in column.blocks(7) for text in some.to_pylist()] == texts
    index = IdIndex(column, *sort_hashes(hash_column(pa.array(texts, pa.large_string()))))
    assert index.find_all(texts).tolist() == every.tolist()
    assert [int(index.find_all([text])[0]) for text in texts] == every.tolist()
    known = set(texts)
    absent = [text for each in texts for text in (each + "0", "0" + each, each[:-1]) if text not in known]
    assert set(index.find_all(absent).tolist()) <= {-1}
    assert {int(index.find_all([text])[0]) for text in absent} <= {-1}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_ids, "_LEAST", 1)
    monkeypatch.setattr(node_ids, "_SAVED", 0)
    monkeypatch.setattr(node_ids, "_AT_ONCE", 13)


@pytest.mark.usefixtures("small")
class TestSplit:
    def test_ids_of_one_numbered_namespace_are_numbers_alone(self, tmp_path: Path) -> None:
        texts = [f"http://example.org/e/Q{number * 7}" for number in range(100)]
        column = written(tmp_path, texts)
        assert column.spaces is not None and column.spaces.texts.to_pylist() == ["http://example.org/e/Q"]
        assert column.space is None and column.value is not None and len(column.texts) == 0
        assert column.value.tolist() == list(range(0, 700, 7))
        check(column, texts)

    def test_ids_of_one_namespace_of_texts_are_texts_alone(self, tmp_path: Path) -> None:
        texts = [f"http://example.org/e#{chr(97 + number % 26)}{'xyz'[number // 26]}" for number in range(60)]
        column = written(tmp_path, texts)
        assert column.spaces is not None and column.spaces.texts.to_pylist() == ["http://example.org/e#"]
        assert column.space is None and column.value is None and len(column.texts) == 60
        check(column, texts)

    def test_thousands_of_namespaces(self, tmp_path: Path) -> None:
        texts = [f"http://host{n % 2000}.org/{'x' if n % 2 else ''}{n}" for n in range(6_000)]
        column = written(tmp_path, texts)
        assert column.spaces is not None and len(column.spaces.texts) > 1500
        assert column.space is not None and column.space.dtype == np.uint16
        assert len(column.texts) == 0
        check(column, texts)

    def test_hostile_ids_among_others(self, tmp_path: Path) -> None:
        usual = [f"http://example.org/e/Q{number}" for number in range(5, 90)]
        named = [f"http://example.org/e/{name}" for name in ("Ada", "Åsa", "名", "a.b", "12a")]
        texts = list(dict.fromkeys([*HOSTILE, *usual, *named]))
        column = written(tmp_path / "one", texts)
        check(column, texts)
        column.write(tmp_path)
        files = sorted(path.name for path in (tmp_path / "one").iterdir())
        assert all((tmp_path / name).read_bytes() == (tmp_path / "one" / name).read_bytes() for name in files)

    def test_ids_of_equal_hash_are_told_apart(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(vocabulary, "_PRIMES", (1, 1))
        check(column := written(tmp_path, texts := [f"n/{number}" for number in range(10, 99)]), texts)
        assert column.spaces is not None

    @settings(max_examples=30, deadline=None)
    @given(st.data())
    def test_any_ids_come_back(self, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
        begins = st.sampled_from(["", "a", "a/", "a/b#", "http://x.org/Q", "é:", "0", "a/0", "/"])
        behind = st.one_of(
            st.integers(0, 10**11).map(str), st.text(st.characters(exclude_categories=["Cs"]), max_size=5), begins
        )
        ids = st.builds(str.__add__, begins, behind)
        texts = data.draw(st.lists(ids, unique=True, min_size=1, max_size=80))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(node_ids, "_LEAST", 1)
            patch.setattr(node_ids, "_SAVED", 0)
            patch.setattr(node_ids, "_AT_ONCE", 9)
            check(written(tmp_path_factory.mktemp("ids"), texts), texts)


def test_ids_that_share_little_stay_whole(tmp_path: Path) -> None:
    texts = [f"{number * 7919 % 10_007:x}-entity" for number in range(10_000)]
    assert find_spaces(pa.array(texts, pa.large_string())) == []
    column = written(tmp_path, texts)
    assert column.spaces is None and column.texts.type == pa.string()
    check(column, texts)


def test_columns_too_long_for_32_bits_have_64(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "_NARROW_BYTES", 10)
    texts = [f"long id {number}" for number in range(30)]
    column = written(tmp_path, texts)
    assert column.texts.type == pa.large_string()
    check(column, texts)
    nodes = [Node(EntityId(text), f"name {text}") for text in texts]
    ColumnarGraph.from_records(nodes, [edge(texts[0], "r", texts[1])]).save(tmp_path / "graph")
    graph = ColumnarGraph.open(tmp_path / "graph")
    assert [node.name for node in graph.nodes(list(graph.entities()))] == [node.name for node in nodes]


@pytest.mark.usefixtures("small")
def test_a_graph_with_split_ids_is_saved_opened_and_saved_again(tmp_path: Path) -> None:
    lines = [f"<http://x.org/e/Q{n}> <http://x.org/r> <http://x.org/e/Q{n * 3 % 500}> .\n" for n in range(400)]
    (tmp_path / "graph.nt").write_text("".join(lines))
    held = import_graph(tmp_path / "graph.nt")
    held.save(tmp_path / "held")
    graph = build_graph(tmp_path / "graph.nt", tmp_path / "built")
    graph.save(tmp_path / "again")
    names = sorted(path.name for path in (tmp_path / "held").iterdir())
    assert {"id_value.npy", "id_spaces.arrow", "nodes.arrow"} <= set(names)
    for other in ("built", "again"):
        assert sorted(path.name for path in (tmp_path / other).iterdir()) == names
        assert all((tmp_path / other / name).read_bytes() == (tmp_path / "held" / name).read_bytes() for name in names)
    assert list(graph.entities()) == list(held.entities())
    assert graph.numbers(list(held.entities())).tolist() == list(range(held.node_count))
    for name in ("id_value.npy", "id_spaces.arrow"):
        content = (tmp_path / "again" / name).read_bytes()
        (tmp_path / "again" / name).unlink()
        with pytest.raises(GraphCorrupt, match=name.replace(".", r"\.")):
            ColumnarGraph.open(tmp_path / "again")
        (tmp_path / "again" / name).write_bytes(content)


@pytest.mark.usefixtures("small")
def test_reading_split_ids_needs_no_pandas(tmp_path: Path) -> None:
    nodes = [Node(EntityId(f"http://x.org/e/{number}"), f"n{number}") for number in range(50)]
    ColumnarGraph.from_records(nodes, []).save(tmp_path / "graph")
    program = f"""
import sys
import numpy as np
from byokg.graph.columnar.graph import ColumnarGraph
graph = ColumnarGraph.open({str(tmp_path / "graph")!r})
every = list(graph.entities())
assert graph.node_ids.spaces is not None and graph.numbers(every).tolist() == list(range(50))
assert graph.ids(np.arange(50)) == every and graph.ids(np.arange(2)) == every[:2]
assert "pandas" not in sys.modules, "importing it takes half a second and 27 MB"
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_folder_of_an_older_format_says_that_it_must_be_built_anew(tmp_path: Path) -> None:
    ColumnarGraph.from_triples([("a", "r", "b")]).save(tmp_path / "graph")
    meta = (tmp_path / "graph" / "meta.json").read_text()
    (tmp_path / "graph" / "meta.json").write_text(meta.replace('"version": 7', '"version": 5'))
    with pytest.raises(
        GraphCorrupt, match=r"format version 5, this byokg reads 6 and 7.*rebuild it with: byokg graph build"
    ):
        ColumnarGraph.open(tmp_path / "graph")


def test_a_folder_of_an_older_format_whose_nodes_had_several_types_must_be_built_anew(tmp_path: Path) -> None:
    for name, relation, labels in (("edges", "rdf:type", ""), ("labels", "r", "A;B"), ("one", "r", "")):
        nodes = [Node(EntityId("a"), "a", "A", {"labels": labels} if labels else {}), Node(EntityId("b"), "b")]
        ColumnarGraph.from_records(nodes, [edge("a", relation, "b")]).save(tmp_path / name)
        meta = json.loads((tmp_path / name / "meta.json").read_text())
        meta["version"] = 6
        meta["meta_sha256"] = folder._digest(meta)
        (tmp_path / name / "meta.json").write_text(json.dumps(meta))
        if name == "one":
            assert ColumnarGraph.open(tmp_path / name).node_count == 2
        else:
            with pytest.raises(GraphCorrupt, match=r"format version 6, which kept one type.*rebuild it with"):
                ColumnarGraph.open(tmp_path / name)
