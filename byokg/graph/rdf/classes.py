"""Classes of the nodes of an RDF file, by `rdf:type` and by Wikidata's `instance of`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from byokg.arrays import Int64
from byokg.graph.columnar.external_sort import RowsFile
from byokg.graph.columnar.ids import Interner
from byokg.graph.columnar.node_types import NO_FURTHER, FurtherTypes
from byokg.graph.columnar.schema import TEXT
from byokg.graph.rdf.terms import GENERIC_TYPES, Prefixes, local_name
from byokg.graph.sorted_ids import changes, contains, distinct, distinct_rows
from byokg.index.string_hashes import positions

_TOGETHER = 1 << 23
"""Types of nodes, and nodes with types, that are looked at together."""


class NodeClasses:
    """Rows of nodes and classes, as they come."""

    def __init__(self, folder: Path | None = None, known: Mapping[str, Any] | None = None) -> None:
        """Begin in memory, or in the files of a folder after as many rows as `state` gave."""
        known, place = known or {}, (lambda name: None) if folder is None else folder.joinpath
        self._interner = Interner(place("classes"), known.get("classes", 0))
        self._types = RowsFile(2, place("types.scratch"), known.get("types", 0))
        self._instances = RowsFile(2, place("instances.scratch"), known.get("instances", 0))

    def state(self) -> dict[str, int]:
        """Return the numbers of rows."""
        return {"classes": len(self._interner), "types": len(self._types), "instances": len(self._instances)}

    def add(self, nodes: npt.NDArray[np.int32], classes: pa.DictionaryArray, rows: Int64) -> None:
        """Add the numbers of nodes, and their classes in some rows of a column."""
        numbers = self._interner.encode(classes.dictionary, classes.indices.to_numpy()[rows])
        self._types.append(np.column_stack((nodes, numbers)))

    def add_instances(self, nodes: npt.NDArray[np.int32], classes: npt.NDArray[np.int32]) -> None:
        """Add nodes and their classes, numbered as nodes, according to Wikidata's `instance of`."""
        self._instances.append(np.column_stack((nodes, classes)))

    def typed(self) -> npt.NDArray[np.int32]:
        """Return the nodes with a class."""
        return self._types.rows()[:, 0]

    def _classed(self) -> Iterator[tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]]:
        """Yield (node, class) without generic classes and repetitions, by node, and which is each node's first.

        Classes of one node come in the order of the file, some nodes at a time.
        """
        rows = self._types.rows()
        generic = pc.is_in(self._interner.strings, pa.array(sorted(GENERIC_TYPES), TEXT))
        telling = ~generic.to_numpy(zero_copy_only=False)
        parts = [rows[start : start + _TOGETHER] for start in range(0, len(rows), _TOGETHER)]
        stop = max((int(part[:, 0].max()) + 1 for part in parts), default=0)
        bounds = np.linspace(0, stop, len(parts) + 1).astype(np.int64).tolist()
        for low, high in pairwise(bounds):
            here = ((part, (part[:, 0] >= low) & (part[:, 0] < high) & telling[part[:, 1]]) for part in parts)
            pairs = np.concatenate([part[some] for part, some in here])
            none = np.zeros(len(pairs), np.int64)
            pairs = pairs[distinct_rows(pairs[:, 0], none, pairs[:, 1], none)]
            pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
            yield pairs, changes(pairs[:, 0])

    def _instance_of(self, typed: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
        """Return (node, class) of the nodes without a class that Wikidata says are instances of one, by node.

        Args:
            typed: (N,) whether each node has a class.
        """
        rows = self._instances.rows()
        rows = rows[~typed[rows[:, 0]]]
        none = np.zeros(len(rows), np.int64)
        rows = rows[distinct_rows(rows[:, 0], none, rows[:, 1], none)]
        return rows[np.argsort(rows[:, 0], kind="stable")]

    def _of_nodes(self, nodes: Interner, classes: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return the number of the first class of each node, -1 for none, and (node, class) of all others, by node.

        Nodes that are classes are counted behind the `classes` others.
        """
        first = np.full(len(nodes), -1, np.int32)
        instances, others = self._instances.rows(), [np.empty((0, 2), np.int32)]
        said = np.sort(instances[:, 0].astype(np.int64) << 32 | instances[:, 1])
        for pairs, starts in self._classed():
            if len(pairs) and len(said):  # a class given both ways, as in an exported graph, is one class
                node_of = nodes.find(self._interner.strings)[pairs[:, 1]]
                both = contains(said, pairs[:, 0].astype(np.int64) << 32 | np.maximum(node_of, 0)) & (node_of >= 0)
                pairs[both, 1] = classes + node_of[both]
            first[pairs[starts, 0]] = pairs[starts, 1]
            others.append(pairs[~starts])
        pairs = self._instance_of(first >= 0)
        if len(pairs):
            pairs[:, 1] += classes
            starts = changes(pairs[:, 0])
            first[pairs[starts, 0]] = pairs[starts, 1]
            others.append(pairs[~starts])
        rows = np.concatenate(others)
        return first, rows if len(others) < 3 else rows[np.argsort(rows[:, 0], kind="stable")]

    def types(
        self, nodes: Interner, kept: Int64, names: pa.Array, prefixes: Prefixes
    ) -> tuple[pa.Array | None, FurtherTypes, dict[str, str]]:
        """Return the types of the kept nodes, and type to class; the second class of a local name gets its prefix."""
        iris: list[str] = self._interner.strings.to_pylist()
        class_of, others = self._of_nodes(nodes, len(iris))
        class_of = class_of[kept]
        first = np.full(len(iris) + len(nodes) + 1, -1, np.int32)  # node of each class; the last is of none
        for start in reversed(range(0, len(class_of), _TOGETHER)):
            some = class_of[start : start + _TOGETHER][::-1]
            first[some] = np.arange(start, start + len(some), dtype=np.int32)[::-1]
        found = np.flatnonzero(first >= 0)
        found = found[np.argsort(first[found])]
        never_first = distinct(others[:, 1])
        found = np.concatenate((found, never_first[first[never_first] < 0]))
        labels, types = [], dict[str, str]()
        for one in found.tolist():
            node = one - len(iris)
            if one == len(first) - 1:
                labels.append("")
                continue
            if node < 0:
                iri = iris[one]
                label = local_name(iri)
            else:
                iri, label = nodes.strings[node].as_py(), names[int(np.searchsorted(kept, node))].as_py()
            if types.get(label, iri) != iri:
                label = prefixes.label(iri)
            labels.append(label)
            types[label] = iri
        if not types:
            return None, NO_FURTHER, {}
        first[found] = np.arange(len(found), dtype=np.int32)
        column = pa.DictionaryArray.from_arrays(positions(first[class_of]), pa.array(labels, TEXT))
        others = others[contains(kept, others[:, 0])]
        places = np.searchsorted(kept, others[:, 0]).astype(np.int32)
        return column, FurtherTypes(places, first[others[:, 1]]), types
