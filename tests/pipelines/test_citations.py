"""Tests of `byokg.pipelines.context`."""

from __future__ import annotations

from pathlib import Path

import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import import_graph
from byokg.llm.parsing import read_answers
from byokg.pipelines.byokg import checked_answers
from byokg.pipelines.context import CitationChecker, ContextText
from byokg.types import (
    Artifacts,
    Cell,
    Context,
    EdgeCell,
    EntityId,
    Evidence,
    Linked,
    Node,
    NodeCell,
    NodeEvidence,
    PathCell,
    PathEvidence,
    RowsEvidence,
    Triple,
    TripleEvidence,
)

# ann -knows (since 1999)-> bob; names are apart from ids
ANN, BOB = EntityId("p/ann"), EntityId("p/bob")
KNOWS = Triple(ANN, "knows", BOB, 0, {"since": 1999})
GRAPH = ColumnarGraph.from_records([Node(ANN, "Ann Abt"), Node(BOB, "The Bob")], [KNOWS])


def grounds(*evidence: Evidence) -> CitationChecker:
    return CitationChecker(GRAPH, Context().add(Artifacts(), Linked(), [evidence]).evidence)


def rows(*cells: Cell) -> RowsEvidence:
    return RowsEvidence(
        "query", 1.0, language="cypher", query="", columns=("x",), rows=tuple((cell,) for cell in cells)
    )


def test_each_kind_of_evidence_holds_the_nodes_in_it() -> None:
    found = grounds(
        TripleEvidence("text", 1.0, KNOWS),
        PathEvidence("path", 1.0, source=ANN, relations=("knows",), ends=(BOB,), paths=()),
        NodeEvidence("bfsql", 1.0, Node(BOB, "The Bob")),
        rows(NodeCell(BOB, "The Bob")),
        rows(EdgeCell(ANN, "knows", BOB)),
        rows(PathCell((NodeCell(ANN, "Ann Abt"),), ())),
        rows([{"who": NodeCell(BOB, "The Bob")}]),
    )
    assert found.of("bob") == dict.fromkeys(("e1", "e2", "e3", "e4", "e5", "e7"), BOB)
    assert found.of("ANN ABT") == dict.fromkeys(("e1", "e5", "e6"), ANN)
    assert found.of("Cid") == {}


@pytest.mark.parametrize(
    ("cell", "answer"),
    [
        (3, "3"),
        (3.0, "3"),
        (1234, "1,234"),
        (2.5, "2.5"),
        ("1990-05-12", "12 May 1990"),
        ("1990-05-12", "May 1990"),
        ("1990-05-12T00:00:00Z", "1990"),
        (1990, "1990"),
        ("Lima", "lima"),
        (True, "true"),
    ],
)
def test_values_in_rows_hold_what_they_mean(cell: Cell, answer: str) -> None:
    assert grounds(rows(cell)).of(answer) == {"e1": None}


@pytest.mark.parametrize(("cell", "answer"), [(1990, "12 May 1990"), (3, "3.5"), (1999, "1990"), ("1990-05-12", "5")])
def test_values_hold_nothing_more_precise_than_they_are(cell: Cell, answer: str) -> None:
    assert grounds(rows(cell)).of(answer) == {}


def test_properties_of_edges_and_nodes_hold_their_values() -> None:
    found = grounds(
        TripleEvidence("text", 1.0, KNOWS), NodeEvidence("bfsql", 1.0, Node(BOB, "Bob", "", {"born": 1970}))
    )
    assert found.of("1999") == {"e1": None} and found.of("1970") == {"e2": None}


def test_an_end_far_down_a_long_list_is_found_as_well() -> None:
    names = [EntityId(f"t{number}") for number in range(1000)]
    graph = ColumnarGraph.from_triples([("hub", "r", name) for name in names])
    item = PathEvidence("path", 1.0, id="e1", source=EntityId("hub"), relations=("r",), ends=tuple(names), paths=())
    assert CitationChecker(graph, [item]).of("t999") == {"e1": "t999"}


@pytest.mark.parametrize(
    ("written", "support", "citations", "miscited"),
    [
        ("Bob Abt [e2]", "unsupported", (), ("e2",)),
        ("the bob [e1]", "supported", ("e1",), ()),
        ("The Bob [e1, e2, e9]", "supported", ("e1",), ("e2", "e9")),
        ("The Bob [e2]", "found", ("e1", "e3"), ("e2",)),
        ("The Bob", "found", ("e1", "e3"), ()),
        ("The Bob (whom Ann knows) [e1]", "supported", ("e1",), ()),
    ],
)
def test_answers_rest_on_what_they_cite_on_what_was_shown_or_on_nothing(
    written: str, support: str, citations: tuple[str, ...], miscited: tuple[str, ...]
) -> None:
    context = Context().add(
        Artifacts(),
        Linked(),
        [[TripleEvidence("text", 1.0, KNOWS), NodeEvidence("bfsql", 1.0, Node(ANN, "Ann Abt")), rows("The Bob")]],
    )
    shown = ContextText("", 0, ("e1", "e2", "e3"), 0, {id: (id,) for id in ("e1", "e2", "e3")})
    [item] = checked_answers(GRAPH, context, read_answers(f"<answers>{written}</answers>"), shown)
    assert (item.support, item.citations, item.miscited) == (support, citations, miscited)
    assert item.grounded == (support != "unsupported")
    assert item.name.endswith(("Bob", "bob", "Abt"))


def test_a_key_in_a_row_identifies_its_node(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,name,type,orderID\na,,Order,10\nb,,Order,11\nc,x,Film,10\n", "utf-8")
    (tmp_path / "edges.csv").write_text("head,relation,tail\na,r,c\n", "utf-8")
    graph = import_graph(tmp_path)
    query = "MATCH (o:Order) RETURN o.orderID AS answer, count(*) AS n"
    item = RowsEvidence("query", 1.0, "cypher", query, ("answer", "n"), (("10", 11),), id="e1")
    text = ContextText("", 0, ("e1",), 0, {"e1": ("e1",)})
    context = Context().add(Artifacts(), Linked(), [[item]])
    first, second = checked_answers(graph, context, read_answers("<answers>\n10 [e1]\n11 [e1]\n</answers>"), text)
    assert (first.name, first.id, first.value_of) == ("10", "a", "Order.orderID")
    assert (second.name, second.id, second.value_of) == ("11", None, "")
