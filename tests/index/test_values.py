"""The value index: kinds, exact and approximate lookups, saved and opened."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from byokg.errors import GraphCorrupt
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.value_indexes import build_values, nodes_holding, value_index
from byokg.index.values import ValueColumn, ValueIndex, kind_of, likeness
from byokg.linking.values import ValueLinker
from byokg.text.values import canonical_forms
from byokg.types import EntityId, Node

PEOPLE = [
    ("Ada", "Powell", "70-5119724", "Sergeant", "29/08/2017", 45, "Officer"),
    ("Stephanie", "Powell", "11-2345678", "Police Constable", "04/08/2017", 1000, "Officer"),
    ("Stephanie", "Moore", "23-4315807", "Police Constable", "16/08/2017", 7, "Person"),
]


def _graph() -> ColumnarGraph:
    nodes = [
        Node(
            EntityId(str(at)),
            f"{first} {last}",
            kind,
            {"first": first, "surname": last, "badge_no": badge, "rank": rank, "joined": date, "calls": calls},
        )
        for at, (first, last, badge, rank, date, calls, kind) in enumerate(PEOPLE)
    ]
    return ColumnarGraph.from_records(nodes, [])


@pytest.fixture(scope="module")
def index() -> ValueIndex:
    return value_index(_graph())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("70-5119724", ("Officer", "badge_no", "70-5119724", True)),
        ("powell", ("Officer", "surname", "Powell", True)),
        ("Powel", ("Officer", "surname", "Powell", False)),
        ("Ms Powell", ("Officer", "surname", "Powell", False)),
        ("Stephanies", ("Officer", "first", "Stephanie", False)),
        ("Constable Police", ("Officer", "rank", "Police Constable", False)),
        ("Police Const", ("Officer", "rank", "Police Constable", False)),
        ("29 August 2017", ("Officer", "joined", "29/08/2017", True)),
        ("2017-08-29", ("Officer", "joined", "29/08/2017", True)),
        ("1,000", ("Officer", "calls", 1000, True)),
        ("70-5119742", ("Officer", "badge_no", "70-5119724", False)),
    ],
)
def test_values_are_found(index: ValueIndex, text: str, found: tuple[object, ...]) -> None:
    best = index.find(text)[0]
    assert (best.type, best.property, best.value, best.exact) == found


def test_filters_restrict_the_lookup(index: ValueIndex) -> None:
    assert [match.type for match in index.find("Powell", types=["Person"])] == []
    assert index.find("More", types=["Person"], properties=["surname"])[0].value == "Moore"
    assert index.find("1001") == ()


def test_counts_and_nodes(index: ValueIndex) -> None:
    match = index.find("Powell")[0]
    assert (match.count, str(match)) == (2, "surname = Powell (Officer)")
    assert nodes_holding(_graph(), match.type, match.property, match.value).tolist() == [0, 1]
    assert nodes_holding(_graph(), "Officer", "calls", 1000).tolist() == [1]
    assert nodes_holding(_graph(), "Officer", "nothing", 1).tolist() == []


def test_properties_have_facts(index: ValueIndex) -> None:
    joined = index.property("Officer", "joined")
    assert joined is not None and (joined.kind, joined.least, joined.most) == ("date", "04/08/2017", "29/08/2017")
    assert index.property("Person", "unknown") is None
    assert [match.value for match in index.values("Officer", "rank")] == ["Police Constable", "Sergeant"]


def test_a_saved_index_finds_the_same(tmp_path: Path) -> None:
    _graph().save(tmp_path / "graph")
    saved = ColumnarGraph.open(tmp_path / "graph")
    built, _ = build_values(saved)
    opened = value_index(saved)
    assert opened.properties() == built.properties()
    assert opened.find("Powel") == built.find("Powel") != ()
    with pytest.raises(GraphCorrupt, match="another graph"):
        ValueIndex.open(tmp_path / "graph" / "values", "other")


@pytest.mark.parametrize(
    ("values", "counts", "kind"),
    [
        ([f"{at}-{at * 7919 % 100000:05}" for at in range(50)], 1, "identifier"),
        ([f"user{at}@example.org" for at in range(50)], 1, "identifier"),
        (["red", "green", "blue"], 9, "categorical"),
        ([f"{one}{two}" for one in "abcdefgh" for two in ("nton", "ley", "worth")], 1, "text"),
        (["2017-08-29", "2017-08-30"], 5, "date"),
        (["09:27", "23:01"], 5, "date"),
        ([1.5, 2.5], 4, "number"),
        (list(range(100, 200)), 1, "identifier"),
        (["word " * 60, "text " * 50], 1, None),
    ],
)
def test_kinds_are_told_apart(values: list[object], counts: int, kind: str | None) -> None:
    assert kind_of(pa.array(values), np.full(len(values), counts)) == kind


def test_a_budget_leaves_out_the_largest_columns() -> None:
    small = ValueColumn("A", "small", pa.array(["x", "y"]), np.array([3, 3]), 6)
    large = ValueColumn("A", "large", pa.array([f"name {at}" for at in range(9)]), np.ones(9, np.int64), 9)
    index = ValueIndex.build([large, small], most=5)
    assert [column.indexed for column in index.properties()] == [False, True]
    assert len(index) == 2


def test_forms_are_canonical() -> None:
    assert canonical_forms("August 16, 2017") == ("2017-08-16",)
    assert canonical_forms("2017-08-16") == ("2017-08-16",)
    assert canonical_forms("25/12/1990") == ("1990-12-25",)
    assert canonical_forms("9:27 am") == ("09:27",)
    assert canonical_forms("25:99") == canonical_forms("Heat") == ()


def test_likeness_is_highest_for_equals() -> None:
    assert likeness("côte", "Cote") == 1.0
    assert 0.9 < likeness("burglaries", "Burglary") < 1.0
    assert likeness("Powell", "Howell") < 0.9


def test_mentions_are_found_longest_first() -> None:
    graph = _graph()
    question = "Which police constables named Stephanie Powel joined on August 4, 2017?"
    found = ValueLinker(graph, value_index(graph)).find_mentions(question)
    assert [(one.text, one.matches[0].value) for one in found] == [
        ("police constables", "Police Constable"),
        ("Stephanie", "Stephanie"),
        ("Powel", "Powell"),
        ("August 4, 2017", "04/08/2017"),
    ]


def test_a_number_before_a_word_for_a_type_counts_its_nodes() -> None:
    products = [Node(EntityId(f"p{at}"), f"p{at}", "Product", {"level": str(at % 4)}) for at in range(9)]
    linker = ValueLinker(ColumnarGraph.from_records(products, []))
    assert linker.find_mentions("which level has more than 3 products") == ()
    assert linker.find_mentions("the level of the 3 most expensive products") == ()
    assert [one.text for one in linker.find_mentions("products of level 3")] == ["3"]


@pytest.mark.parametrize("day_first", [True, False])
def test_dates_of_a_column_are_found_in_every_format(day_first: bool) -> None:
    draw = random.Random(0)
    apart = "25/05/2017" if day_first else "05/25/2017"
    parts = [(draw.randint(1, 31), draw.randint(1, 12), draw.randint(1000, 2030)) for _ in range(600)]
    dates = [f"{day}/{month}/{year}" if day_first else f"{month}-{day}-{year}" for day, month, year in parts[:300]]
    dates += [f"{year}-{month:02d}-{day:02d}" for day, month, year in parts[300:]]
    values = list(dict.fromkeys([apart, *dates, "12 May 1990", "May 1990", "09:27", "24:00"]))
    index = ValueIndex.build([ValueColumn("T", "on", pa.array(values), np.ones(len(values), np.int64), len(values))])
    facts = index.properties()[0]
    assert facts.kind == "date"
    for value in values:
        forms = canonical_forms(value)
        if forms:
            usual = forms[-1] if facts.day_first else forms[0]
            assert value in {match.value for match in index.equal(usual)}
