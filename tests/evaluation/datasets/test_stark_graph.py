"""Tests of `byokg.evaluation.datasets.stark_graph`: graphs in STaRK's published layout, made without torch."""

from __future__ import annotations

import io
import pickle
import sys
import types
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byokg.errors import DatasetError
from byokg.evaluation.cases import Case
from byokg.evaluation.compare import score_cases
from byokg.evaluation.datasets.benchmarks import stark
from byokg.evaluation.datasets.stark_graph import write_stark_graph
from byokg.evaluation.profiles import PROFILES
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph
from byokg.linking.parts import Parts
from byokg.pipelines.graphraft import graphraft_offline_pipeline
from byokg.pipelines.node_search import NodeSearch
from byokg.types import EntityId, Question


def save_tensor(path: Path, values: Any, monkeypatch: pytest.MonkeyPatch, transposed: bool = False) -> None:
    """Write what `torch.save` writes for a tensor of whole numbers; a transposed one has its columns side by side."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")

    def _rebuild_tensor_v2(*given: object) -> None: ...

    class LongStorage: ...

    for held, module, name in ((_rebuild_tensor_v2, utils, "torch._utils"), (LongStorage, torch, "torch")):
        held.__module__, held.__qualname__ = name, held.__name__
        setattr(module, held.__name__, held)
        monkeypatch.setitem(sys.modules, name, module)
    array = np.asarray(values, np.int64)
    stored = np.ascontiguousarray(array.T if transposed else array)
    strides = tuple(step // 8 for step in (stored.T if transposed else stored).strides)

    class Storage: ...

    class Tensor:
        def __reduce__(self) -> Any:
            return _rebuild_tensor_v2, (Storage(), 0, array.shape, strides, False, {})

    class Pickler(pickle.Pickler):
        def persistent_id(self, held: object) -> Any:
            return ("storage", LongStorage, "0", "cpu", array.size) if isinstance(held, Storage) else None

    content = io.BytesIO()
    Pickler(content, 2).dump(Tensor())
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{path.stem}/data.pkl", content.getvalue())
        archive.writestr(f"{path.stem}/data/0", stored.tobytes())
    monkeypatch.undo()


# Ivermectin -enzyme- CYP3A4 (both ways, as PrimeKG has it), Ivermectin -indication- strongyloidiasis
DETAILS = {"alias": ["A", "B"], "n": np.float64("nan"), "size": np.float64(2.5), "none": [""]}
NODES: dict[int, Any] = {
    0: {"id": 9, "type": "drug", "name": "Ivermectin", "source": "x", "details": {"about": "kills worms", "_id": 4}},
    1: {"id": 8, "type": "gene/protein", "name": "CYP3A4", "source": "x", "details": DETAILS},
    2: {"id": 7, "type": "disease", "name": "strongyloidiasis", "source": "x"},
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "skb" / "prime" / "processed"
    folder.mkdir(parents=True)
    (folder / "node_info.pkl").write_bytes(pickle.dumps(NODES))
    (folder / "node_type_dict.pkl").write_bytes(pickle.dumps({0: "drug", 1: "gene/protein", 2: "disease"}))
    (folder / "edge_type_dict.pkl").write_bytes(pickle.dumps({0: "enzyme", 1: "indication"}))
    save_tensor(folder / "edge_index.pt", [[0, 1, 0, 2], [1, 0, 2, 0]], monkeypatch, transposed=True)
    save_tensor(folder / "edge_types.pt", [0, 0, 1, 1], monkeypatch)
    save_tensor(folder / "node_types.pt", [0, 1, 2], monkeypatch)
    qa = tmp_path / "prime" / "stark_qa"
    qa.mkdir(parents=True)
    (qa / "stark_qa.csv").write_text(
        "id,query,answer_ids\n1,What drugs target the CYP3A4 enzyme and have the indication strongyloidiasis?,[0]\n"
        "2,Quite lost?,[1]\n"
    )
    (tmp_path / "prime" / "split").mkdir()
    (tmp_path / "prime" / "split" / "test.index").write_text("1\n2\n")
    return tmp_path


def graph_of(root: Path, tmp_path: Path) -> ColumnarGraph:
    dataset = stark(root)
    dataset.write_graph(root / "prime-graph")
    return build_graph(dataset.graph_source(), tmp_path / "built")


def test_a_published_graph_is_read_without_torch(root: Path, tmp_path: Path) -> None:
    graph = graph_of(root, tmp_path)
    drug, gene, disease = graph.nodes([EntityId("0"), EntityId("1"), EntityId("2")])
    assert (drug.name, drug.type, drug.properties) == ("Ivermectin", "drug", {"source": "x", "about": "kills worms"})
    assert (gene.type, gene.properties["alias"]) == ("gene/protein", '["A", "B"]')
    assert gene.properties["size"] == 2.5
    assert not {"n", "none"} & gene.properties.keys()
    assert disease.name == "strongyloidiasis"
    batch = graph.edges(graph.numbers([EntityId("0")]))
    assert sorted(zip(batch.relation.tolist(), batch.inverse.tolist(), strict=True)) == [
        (0, False), (0, True), (1, False), (1, True),
    ]  # fmt: skip


def test_ranked_nodes_are_scored_as_stark_does_with_what_finds_nothing_counted(root: Path, tmp_path: Path) -> None:
    graph = graph_of(root, tmp_path)
    # No word of the question stands in what the graph says of the drug, so words alone do not find it.
    for pipeline, right in (
        (graphraft_offline_pipeline(Parts(graph), answers="all"), 0.5),
        (NodeSearch(Parts(graph)), 0.0),
    ):
        cases = []
        for one in stark(root).examples():
            items = pipeline.run(one.to_question()).items
            ids = tuple(item.id for item in items if item.id is not None)
            names = tuple(item.name for item in items)
            cases.append(Case(one.id, one.answers, names, answer_ids=ids, gold_ids=one.answer_ids))
        assert not cases[1].answers
        [scored] = score_cases(cases, [PROFILES["stark"]])
        assert (scored.n, scored.unscorable) == (2, 0)
        figures = {name: one.value for name, one in scored.estimates.items()}
        assert figures == dict.fromkeys(("hits@1", "hits@5", "recall@20", "mrr"), right)


@pytest.mark.parametrize("method", ["bm25", "vector"])
def test_a_node_is_found_by_what_the_graph_says_of_it(root: Path, tmp_path: Path, method: Any) -> None:
    search = NodeSearch(Parts(graph_of(root, tmp_path)), method=method)
    items = search.run(Question("q", "what kills worms?")).items
    assert items[0].id == "0"
    assert [item.score for item in items] == sorted((item.score for item in items), reverse=True)


def test_a_damaged_graph_is_told_with_its_file(root: Path) -> None:
    folder = root / "skb" / "prime" / "processed"
    (folder / "node_info.pkl").write_bytes(pickle.dumps({0: {"name": Path("x")}}))
    with pytest.raises(DatasetError, match=r"node_info\.pkl.*refers to pathlib"):
        write_stark_graph(folder, root / "out")
    (folder / "node_info.pkl").write_bytes(pickle.dumps({0: {"name": "x"}}))
    with pytest.raises(DatasetError, match="1 nodes, types of 3"):
        write_stark_graph(folder, root / "out")
    (folder / "edge_index.pt").write_bytes(b"not an archive")
    with pytest.raises(DatasetError, match=r"edge_index\.pt.*holds no tensor"):
        write_stark_graph(folder, root / "out")
