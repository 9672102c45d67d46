"""N-Triples of any size: edges are passed on as they are read, and data of nodes is kept in files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from byokg.files import uncompressed
from byokg.graph.columnar.ids import Interner
from byokg.graph.columnar.schema import TEXT
from byokg.graph.columnar.writer import EdgeBlock, ReadWhole
from byokg.graph.rdf.classes import NodeClasses
from byokg.graph.rdf.importer import RdfFile
from byokg.graph.rdf.ntriples import START, BadLines, FilePosition
from byokg.graph.rdf.terms import RDF_OBJECT, RDF_PREDICATE, RDF_SUBJECT

_NTRIPLES = ".nt"


class TripleStream(RdfFile):
    """N-Triples without statements about triples; a `ResumableStream` that gives the graph that `RdfFile` does.

    Every node then stays, and so does every predicate that edges have, so their numbers are known when they are met.
    """

    def __init__(self, *paths: Path, bad: BadLines | None = None) -> None:
        super().__init__(*paths, bad=bad)
        self._file, self._position, self._done = 0, START, False

    @staticmethod
    def fits(paths: tuple[Path, ...]) -> bool:
        """True if files can be streamed, by their names."""
        return all(uncompressed(path).suffix.lower() == _NTRIPLES for path in paths)

    def keep_in(self, folder: Path, state: Mapping[str, Any] | None) -> None:
        """Keep texts, types and literals in files; see `ResumableStream`."""
        known = state or {}
        self._nodes = Interner(folder / "nodes", known.get("nodes", 0))
        self._predicates = Interner(folder / "predicates", known.get("predicates", 0))
        self._classes = NodeClasses(folder, known)
        self._literals.keep_in(folder, known.get("literals", {}))
        for pair in known.get("kinds", ()):
            self._document.kinds.number(*pair)
        self._document.bad.again(known.get("bad", ()))
        self._file, self._position = known.get("file", 0), FilePosition(*known.get("position", START))
        self._source = dict(known.get("source", {}))
        if known.get("done"):
            self._finish()

    def set_aside(self) -> None:
        """Give back the memory of texts in files; see `ResumableStream`."""
        self._nodes.set_aside()
        self._literals.set_aside()

    def state(self) -> dict[str, Any]:
        """Return how far the files have been read, and how much is known by then."""
        return {
            "nodes": len(self._nodes),
            "predicates": len(self._predicates),
            **self._classes.state(),
            "literals": self._literals.state(),
            "kinds": self._document.kinds.pairs,
            "bad": self._document.bad.found,
            "file": self._file,
            "position": self._position,
            "done": self._done,
            "source": self._source,
        }

    def blocks(self) -> Iterator[EdgeBlock]:
        """Read the files, and yield their edges. Raises `ImportFailed`; `ReadWhole` for statements about triples."""
        if self._done:
            return
        about = pa.array([RDF_SUBJECT, RDF_PREDICATE, RDF_OBJECT], TEXT)
        for block, number, position in self._document.blocks(self._file, self._position):
            self._file, self._position = number, position
            if block.mentioned is not None:
                raise ReadWhole
            quads = self._take(block)
            if self._predicates.find(about).max() >= 0:
                raise ReadWhole
            yield EdgeBlock(quads[:, :3])
        self._finish()

    def _finish(self) -> None:
        self._done = True
        self._kept, self._relations = np.arange(len(self._nodes)), np.arange(len(self._predicates))
        self._choose_prefixes()
        self._nodes.release()
        self._literals.release()
        self.set_aside()
