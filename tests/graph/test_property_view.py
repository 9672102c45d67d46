"""Tests of `byokg.graph.property_view`: the values of properties as nodes."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from byokg.errors import EntityNotFound
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph
from byokg.graph.pathql.evaluate import paths
from byokg.graph.pathql.query import connecting
from byokg.graph.property_view import FIRST_VALUE, PropertyView, is_value, name_of_value, value_id, viewed
from byokg.graph.store import Direction
from byokg.graph.traversal import neighbours
from byokg.types import EntityId, Node, Triple, Value


def graph(seed: int = 1) -> ColumnarGraph:
    """30 people with some of three properties, and 90 edges of two relations, of which one has years."""
    rng = random.Random(seed)
    values: dict[str, list[Value]] = {
        "size": [7, 7.0, 2.5],
        "colour": ["red", "1999-01-02", "x" * 300],
        "sure": [True, False],
    }
    nodes = [
        Node(
            EntityId(f"n{n}"),
            f"N {n}",
            "P",
            {key: rng.choice(some) for key, some in values.items() if rng.random() < 0.5},
        )
        for n in range(30)
    ]
    edges = [
        Triple(
            EntityId(f"n{rng.randrange(30)}"),
            relation := rng.choice(["knows", "won"]),
            EntityId(f"n{rng.randrange(30)}"),
            properties={"start": rng.randrange(1990, 1999), "source": "book"} if relation == "won" else {},
        )
        for _ in range(90)
    ]
    return ColumnarGraph.from_records(nodes, edges)


@pytest.fixture
def stored() -> ColumnarGraph:
    nodes = [
        Node(EntityId("ann"), "Ann", "P", {"salary": 900, "born": "1970-05-01"}),
        Node(EntityId("bob"), "Bob", "P", {"salary": 900}),
    ]
    edges = [
        Triple(EntityId("ann"), "married", EntityId("bob"), properties={"start": 1995, "source": "register"}),
        Triple(EntityId("bob"), "knows", EntityId("ann")),
    ]
    return ColumnarGraph.from_records(nodes, edges)


def spelled(view: PropertyView, id: str, direction: Direction = Direction.OUT) -> set[tuple[str, str, str]]:
    batch = neighbours(view, [EntityId(id)], direction)
    labels = [view.relations[number] for number in batch.relation.tolist()]
    return set(zip(view.ids(batch.head), labels, view.ids(batch.tail), strict=True))


def test_each_property_is_a_relation_to_its_values(stored: ColumnarGraph) -> None:
    view = PropertyView(stored)
    assert view.relations[: len(stored.relations)] == list(stored.relations)
    assert set(view.relations[len(stored.relations) :]) == {"salary", "born", "married.start", "married.source"}
    assert spelled(view, "ann") == {
        ("ann", "married", "bob"),
        ("ann", "salary", '"900"'),
        ("ann", "born", '"1970-05-01"'),
        ("ann", "married.start", '"1995"'),
    }
    assert ("bob", "married.start", '"1995"') in spelled(view, "bob")
    assert spelled(view, "ann", Direction.IN) == {("bob", "knows", "ann")}
    (node,) = view.nodes([EntityId('"900"')])
    assert (node.name, node.type) == ("900", "")


def test_equal_values_are_one_node_and_nothing_leads_out_of_it(stored: ColumnarGraph) -> None:
    view = PropertyView(stored)
    batch = neighbours(view, [EntityId("ann"), EntityId("bob")], Direction.OUT, ["salary"])
    assert len(set(batch.tail.tolist())) == 1 and len(batch.tail) == 2
    assert spelled(view, '"900"', Direction.BOTH) == set()


def test_relations_that_are_asked_for_alone_come(stored: ColumnarGraph) -> None:
    view = PropertyView(stored)
    for relations in (["knows"], ["salary"], ["married", "married.start"]):
        batch = neighbours(view, [EntityId("ann"), EntityId("bob")], Direction.BOTH, relations)
        assert {view.relations[number] for number in batch.relation.tolist()} == set(relations)


def test_numbers_of_values_do_not_depend_on_what_was_asked_before() -> None:
    first, second = PropertyView(graph()), PropertyView(graph())
    ids = list(first.entities())
    for id in reversed(ids):
        second.edges(second.numbers([id]))
    one, other = (view.edges(view.numbers(ids)) for view in (first, second))
    for name in ("head", "relation", "tail", "edge", "origin", "inverse"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert (one.tail >= FIRST_VALUE).any()


@pytest.mark.parametrize("seed", range(5))
def test_edges_are_those_of_the_graph_and_of_the_properties(seed: int) -> None:
    stored = graph(seed)
    view = PropertyView(stored)
    nodes = {node.id: node for node in stored.nodes(list(stored.entities()))}
    for id, node in nodes.items():
        plain = neighbours(stored, [id], Direction.OUT)
        labels = [stored.relations[number] for number in plain.relation.tolist()]
        expected = set(zip(stored.ids(plain.head), labels, stored.ids(plain.tail), strict=True))
        expected |= {(id, key, value_id(value)) for key, value in node.properties.items() if len(str(value)) <= 200}
        around = neighbours(stored, [id], Direction.BOTH)
        for properties in stored.edge_properties(around.edge):
            if "start" in properties:
                expected.add((id, "won.start", value_id(properties["start"])))
        assert spelled(view, id) == expected


def test_a_shared_value_is_no_connection_for_paths(stored: ColumnarGraph) -> None:
    nodes = [Node(EntityId(id), id, "", {"size": 7}) for id in "ab"]
    apart = ColumnarGraph.from_records(nodes, [])
    assert len(paths(PropertyView(apart), connecting(["a"], ["b"], max_hops=3))) == 0
    found = [str(path) for path in paths(PropertyView(stored), connecting(["ann"], ["bob"], max_hops=3))]
    assert found == [str(path) for path in paths(stored, connecting(["ann"], ["bob"], max_hops=3))]


def test_a_graph_without_properties_is_left_as_it_is() -> None:
    plain = ColumnarGraph.from_triples([("a", "r", "b")])
    assert viewed(plain) is plain
    with pytest.raises(EntityNotFound):
        PropertyView(graph()).numbers([EntityId("nobody")])


def test_ids_of_values_are_their_texts_in_quotation_marks() -> None:
    assert [value_id(value) for value in (7, 7.0, True, "x")] == ['"7"', '"7"', '"true"', '"x"']
    assert is_value('"7"') and not is_value("7") and not is_value('"')
    assert name_of_value('"7"') == "7"


def test_a_property_that_few_of_many_nodes_have_answers_a_question(tmp_path: Path) -> None:
    lines = []
    for number in range(9000):
        name = f"<http://x/n{number}> <http://www.w3.org/2000/01/rdf-schema#label>"
        lines.append(f'{name} "thing {number}" .\n<http://x/n{number}> <http://x/partOf> <http://x/n{number // 2}> .')
    lines.append('<http://x/n8000> <http://x/meltingTemperature> "24" .')
    (tmp_path / "g.nt").write_text("\n".join(lines) + "\n")
    view = PropertyView(build_graph(tmp_path / "g.nt", tmp_path / "g"))
    sample = view.sample_edges(5)
    labels = [view.relations[number] for number in sample.relation.tolist()]
    assert labels == ["x:partOf"] * 5 + ["x:meltingTemperature"]
    assert view.ids(sample.tail[-1:]) == ['"24"']
