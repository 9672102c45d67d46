"""Gold Cypher of published questions, run over their graphs in ArcadeDB."""

from __future__ import annotations

import csv
import json
import lzma
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from byokg.errors import QueryFailed
from byokg.graph.arcadedb import ArcadeStore
from byokg.graph.columnar import ColumnarGraph
from byokg.graph.query import Limits
from byokg.types import Cell, EdgeCell, EntityId, Node, NodeCell, Properties, Triple, Value

pytest.importorskip("arcadedb_embedded", reason="needs arcadedb-embedded: pip install 'byokg[cypher]'")

DATA = Path(os.environ.get("BYOKG_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")

_MAP = re.compile(r"(\w+)\s*:\s*('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\[[^\]]*\]|-?\d+)")
_NODE = re.compile(r"\((\w+):(\w+)\s*\{((?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^}'\"])*)\}\)")
_EDGE = re.compile(
    r"\((\w+)\)-\[:(\w+)\s*(?:\{((?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^}'\"])*)\})?\s*\]->\s*\((\w+)\)"
)


@pytest.fixture(scope="module")
def store() -> Iterator[ArcadeStore]:
    with ArcadeStore.hold(ColumnarGraph.from_triples([]), heap_mb=512) as held:
        yield held


def needed(name: str) -> Path:
    """Return a data folder, or skip."""
    if not (DATA / name).is_dir():
        pytest.skip(f"no folder {name} in {DATA}; set BYOKG_DATA")
    return DATA / name


def movies(folder: Path) -> ColumnarGraph:
    """Read the CREATE statements of the published script. Lists become text, as our properties are plain values."""
    text = (folder / "movies.cypher").read_text("utf-8")

    def properties(inside: str | None) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for key, value in _MAP.findall(inside or ""):
            if value[0] in "'\"":
                found[key] = value[1:-1].replace("\\'", "'")
            elif value[0] == "[":
                found[key] = ";".join(re.findall(r"['\"](.*?)['\"]", value))
            else:
                found[key] = int(value)
        return found

    nodes = {}
    for variable, label, inside in _NODE.findall(text):
        known = properties(inside)
        nodes[variable] = Node(EntityId(variable), str(known.get("title", known.get("name"))), label, known)
    edges = [
        Triple(EntityId(head), relation, EntityId(tail), properties=properties(inside))
        for head, relation, inside, tail in _EDGE.findall(text)
    ]
    return ColumnarGraph.from_records(nodes.values(), edges)


def northwind(folder: Path) -> ColumnarGraph:
    """Load the tables as the published script does, surplus fields dropped."""

    def table(name: str) -> list[dict[str, str]]:
        with (folder / name).open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        return [dict(zip(header, row, strict=False)) for row in rows]

    def identity(label: str, key: str) -> EntityId:
        return EntityId(f"{label}/{key}")

    kinds: dict[str, Callable[[str], Value]] = {
        "unitPrice": float,
        "unitsInStock": int,
        "unitsOnOrder": int,
        "reorderLevel": int,
        "discontinued": lambda text: text != "0",
    }
    nodes = []
    tables = {}
    for label, file, key, name in [
        ("Product", "products.csv", "productID", "productName"),
        ("Category", "categories.csv", "categoryID", "categoryName"),
        ("Supplier", "suppliers.csv", "supplierID", "companyName"),
        ("Customer", "customers.csv", "customerID", "companyName"),
        ("Order", "orders.csv", "orderID", ""),
    ]:
        tables[label] = table(file)
        for row in tables[label]:
            values: Properties = {
                column: kinds[column](text) if label == "Product" and column in kinds else text
                for column, text in row.items()
                if column != "picture"
            }
            shown_as = row[name] if name else f"Order {row[key]}"
            nodes.append(Node(identity(label, row[key]), shown_as, label, values))
    known = {node.id for node in nodes}
    edges = []
    for row in tables["Product"]:
        product = identity("Product", row["productID"])
        edges.append(Triple(product, "PART_OF", identity("Category", row["categoryID"])))
        edges.append(Triple(identity("Supplier", row["supplierID"]), "SUPPLIES", product))
    for row in tables["Order"]:
        edges.append(Triple(identity("Customer", row["customerID"]), "PURCHASED", identity("Order", row["orderID"])))
    for row in table("order-details.csv"):
        details: dict[str, Value] = {**row, "quantity": int(row["quantity"])}
        order, product = identity("Order", row["orderID"]), identity("Product", row["productID"])
        edges.append(Triple(order, "ORDERS", product, properties=details))
    return ColumnarGraph.from_records(nodes, [edge for edge in edges if edge.head in known and edge.tail in known])


@dataclass(frozen=True)
class Tally:
    """How the gold queries of one split ended."""

    asked: int
    ran: int
    comparable: int
    """Those whose gold rows must be the same in every engine, see `comparable`."""
    same: int
    failures: tuple[str, ...]
    """Queries that did not run, or whose rows differ."""


def comparable(question: dict[str, Any]) -> bool:
    """Tell whether the gold rows are all there and do not depend on the engine.

    They were cut at 200 rows, LIMIT cuts where there are ties, and `roles` are lists, which we hold as text.
    """
    text = question["cypher"]
    return len(question["gold_rows"]) < 200 and "LIMIT" not in text.upper() and "roles" not in text


def shown(cell: Cell) -> str:
    """Write a cell as gold rows do: nodes as their names, numbers without needless digits, lists in any order."""
    if isinstance(cell, NodeCell):
        return cell.name
    if isinstance(cell, EdgeCell):
        return "an edge"
    if isinstance(cell, tuple):
        return str(sorted(map(shown, cell)))
    return number_shown(str(cell))


def gold_shown(value: str | list[str]) -> str:
    if isinstance(value, list):
        return str(sorted(map(gold_shown, value)))
    return "an edge" if '"_label"' in value else number_shown(value)


def number_shown(text: str) -> str:
    try:
        return f"{float(text):.6g}"
    except ValueError:
        return text


def run_gold(store: ArcadeStore, folder: Path) -> Tally:
    """Run every dev question's gold query."""
    with lzma.open(folder / "questions.jsonl.xz", "rt", encoding="utf-8") as file:
        questions = [question for question in map(json.loads, file) if question["split"] == "dev"]
    ran = compared = same = 0
    failures = []
    for question in questions:
        try:
            rows = store.run(question["cypher"], limits=Limits(timeout_s=20, max_rows=10_000)).rows
        except QueryFailed as error:
            failures.append(f"{question['id']}: {type(error).__name__}: {error}")
            continue
        ran += 1
        if comparable(question):
            compared += 1
            found = Counter(tuple(map(shown, row)) for row in rows)
            gold = Counter(tuple(map(gold_shown, row)) for row in question["gold_rows"])
            same += found == gold
            if found != gold:
                failures.append(f"{question['id']}: {question['cypher']}: {found - gold} instead of {gold - found}")
    return Tally(len(questions), ran, compared, same, tuple(failures))


def test_movies(store: ArcadeStore) -> None:
    folder = needed("movies")
    graph = movies(folder)
    assert (graph.node_count, graph.edge_count) == (171, 253)
    assert graph.schema().node_types == {"Person": 133, "Movie": 38}
    store.replace(graph)
    tally = run_gold(store, folder)
    assert tally.failures == ()
    assert (tally.asked, tally.ran, tally.comparable, tally.same) == (245, 245, 74, 74)


def test_northwind(store: ArcadeStore) -> None:
    folder = needed("northwind")
    graph = northwind(folder)
    assert (graph.node_count, graph.edge_count) == (1035, 3139)
    store.replace(graph)
    tally = run_gold(store, folder)
    assert tally.failures == ()
    assert (tally.asked, tally.ran, tally.comparable, tally.same) == (328, 328, 116, 116)
