"""Published questions with gold Cypher and their graphs, read from the data folder."""

from __future__ import annotations

import csv
import json
import lzma
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.types import Cell, EdgeCell, EntityId, Node, NodeCell, Properties, Triple, Value

DATA = Path(os.environ.get("BYOKG_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")

_MAP = re.compile(r"(\w+)\s*:\s*('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\[[^\]]*\]|-?\d+)")
_NODE = re.compile(r"\((\w+):(\w+)\s*\{((?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^}'\"])*)\}\)")
_EDGE = re.compile(
    r"\((\w+)\)-\[:(\w+)\s*(?:\{((?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^}'\"])*)\})?\s*\]->\s*\((\w+)\)"
)


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


def pole(out: Path) -> Path:
    """Write the POLE graph as it was published: without made names, and with its own names of properties and texts."""
    folder = needed("zograscope")
    out.mkdir()
    renamed = {"name_": "name", "kind": "type_", "reference": "id_", "call_duration:int": "call_duration"}
    renamed |= {"age:int": "age", "year:int": "year"}
    with lzma.open(folder / "nodes.csv.xz", "rt", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    made = header.index("name")
    with (out / "nodes.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        for row in ([renamed.get(name, name) for name in header], *rows):
            table.writerow([*row[:made], *row[made + 1 :]])
    (out / "edges.csv").write_bytes(lzma.decompress((folder / "edges.csv.xz").read_bytes()))
    return out


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


def dev_questions(folder: Path) -> list[dict[str, Any]]:
    """Return the questions of the dev split, in order."""
    with lzma.open(folder / "questions.jsonl.xz", "rt", encoding="utf-8") as file:
        return [question for question in map(json.loads, file) if question["split"] == "dev"]
