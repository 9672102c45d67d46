"""Properties of nodes: what few have takes no column of all, and is found by node and by property."""

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.graph.columnar import node_properties
from byokg.graph.columnar.node_properties import NodeProperties, write_properties
from byokg.graph.columnar.schema import PropertyColumn
from byokg.graph.importers.choose import build_graph, import_graph
from byokg.types import EntityId

VALUES = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.large_string(): st.text(st.characters(exclude_categories=["Cs"])),
}
N = 40


@st.composite
def held(draw: st.DrawFn) -> list[tuple[str, pa.DataType, dict[int, Any]]]:
    """Properties by name and type, with the value of each node that has one."""
    names = draw(st.lists(st.text("abc", min_size=1), unique=True, max_size=6))
    found = []
    for name in names:
        kind = draw(st.sampled_from(list(VALUES)))
        found.append((name, kind, draw(st.dictionaries(st.integers(0, N - 1), VALUES[kind]))))
    return found


def columns(said: list[tuple[str, pa.DataType, dict[int, Any]]], whole: list[bool]) -> list[PropertyColumn]:
    made = []
    for (name, kind, values), every in zip(said, whole, strict=False):
        if every:
            made.append(PropertyColumn(name, pa.array([values.get(node) for node in range(N)], kind)))
        else:
            nodes = np.array(sorted(values), np.int32)
            made.append(PropertyColumn(name, pa.array([values[node] for node in nodes.tolist()], kind), nodes))
    return made


@settings(deadline=None)
@given(held(), st.lists(st.booleans(), min_size=6, max_size=6), st.sampled_from([0, 1 << 12]), st.integers(1, 100))
def test_what_each_node_has_is_read_back_however_it_was_given_and_is_kept(
    tmp_path_factory: pytest.TempPathFactory,
    said: list[tuple[str, pa.DataType, dict[int, Any]]],
    whole: list[bool],
    least: int,
    at_once: int,
) -> None:
    folder = tmp_path_factory.mktemp("graph")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node_properties, "_LEAST", least)
        patch.setattr(node_properties, "_AT_ONCE", at_once)
        write_properties(folder, columns(said, whole), N)
        mapped = NodeProperties.map(folder, {path.name for path in folder.iterdir()})
        collected = NodeProperties.collect(columns(said, [not each for each in whole]), N)

    def shown(value: Any) -> Any:
        return value.isoformat() if isinstance(value, date) else value

    asked = np.random.default_rng(len(said)).integers(0, N, 70)
    expected = [{name: shown(values[node]) for name, _, values in said if node in values} for node in asked.tolist()]
    for properties in (mapped, collected):
        assert [dict(row) for row in properties.of_nodes(asked)] == expected
        assert [list(row) for row in properties.of_nodes(asked)] == [list(row) for row in expected]
        assert properties.column("none of these") is None
        assert properties.of_property("none of these", asked) == [None] * 70
        rows = properties.rows(7, 33)
        for name, kind, values in said:
            column = properties.column(name)
            assert column is not None
            assert (column.nodes is not None) == (least == 0 and len(values) < N // 8)
            nodes, own = column.held()
            assert dict(zip(nodes.tolist(), own.to_pylist(), strict=True)) == values
            assert properties.of_property(name, asked) == [row.get(name) for row in expected]
            assert rows[name].to_pylist() == [values.get(node) for node in range(7, 33)]
            assert rows[name].type == kind
    assert [one.name for one in mapped.columns()] == [name for name, _, _ in said]


def test_a_directory_that_does_not_fit_the_values_is_refused(tmp_path: Path) -> None:
    write_properties(tmp_path, [PropertyColumn("a", pa.array([1, 2, 3]))], 3)
    (tmp_path / "node_values.json").write_text('[["a", true, 0, 5]]')
    with pytest.raises(ValueError, match="do not belong together"):
        NodeProperties.map(tmp_path, {"node_values.json", "node_values.arrow"})


def test_many_properties_that_few_nodes_have_take_little_space(tmp_path: Path) -> None:
    source, nodes, properties = tmp_path / "g.nt", 6000, 300
    lines = [f"<http://x/{node}> <http://x/next> <http://x/{(node + 1) % nodes}> ." for node in range(nodes)]
    lines += [
        f'<http://x/{7 * number}> <http://x/p{number}> "{number}"^^<http://www.w3.org/2001/XMLSchema#integer> .'
        for number in range(properties)
    ]
    source.write_text("\n".join(lines) + "\n")
    graph = build_graph(source, tmp_path / "g.graph")
    assert sum(path.stat().st_size for path in (tmp_path / "g.graph").glob("*value_*")) < 20 * properties + 1000
    (node,) = graph.nodes([EntityId("http://x/14")])
    assert list(node.properties.values()) == [2]
    details = graph.schema().node_property_details[""]
    assert [(one.kind, one.examples) for one in details[:2]] == [("int", (0,)), ("int", (1,))]
    assert len(details) == properties
    import_graph(source).save(tmp_path / "held.graph")
    for path in (tmp_path / "g.graph").iterdir():
        assert path.read_bytes() == (tmp_path / "held.graph" / path.name).read_bytes(), path.name
