"""pyoxigraph as the worker process runs it. Imports little, so that a worker starts quickly."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, cast

from byokg.errors import GraphCorrupt, QueryInvalid, StoreUnavailable, import_extra


def import_pyoxigraph() -> Any:
    """Import pyoxigraph. Raises `MissingExtra` if it is not installed."""
    return import_extra("pyoxigraph", "sparql", "the embedded RDF store")


class OxigraphEngine:
    """The engine of the worker process."""

    def __init__(self, folder: str, union: bool) -> None:
        """Configure the store; `union` lets queries see all named graphs as one, at a small cost."""
        self._folder = folder
        self._union = union
        self._store: Any = None

    def open(self) -> None:
        """Open the store read-only."""
        pyoxigraph = import_pyoxigraph()
        try:
            self._store = pyoxigraph.Store.read_only(self._folder)
        except OSError as error:
            raise GraphCorrupt(Path(self._folder).parent, str(error)) from error

    def close(self) -> None:
        """Close the store."""
        self._store = None

    def select(self, text: str) -> bytes:
        """Run a SELECT of our own; return SPARQL's JSON results."""
        return select_json(self._store, text, self._union)

    def query(
        self, text: str, max_rows: int, every_graph: bool
    ) -> tuple[tuple[str, ...], list[dict[str, Any]], bool | None]:
        """Run a user's query and return the parts of a `SparqlResult`; a graph is a row for each of its triples.

        Args:
            text: the query.
            max_rows: number of rows to read.
            every_graph: True for a query without graph clauses, which sees all graphs; otherwise the engine would
                overlook FROM.
        """
        pyoxigraph = import_pyoxigraph()
        try:
            answer = self._store.query(text, use_default_graph_as_union=self._union and every_graph)
            if isinstance(answer, pyoxigraph.QueryBoolean):
                return (), [], bool(answer)
            if isinstance(answer, pyoxigraph.QueryTriples):
                names = ("subject", "predicate", "object")
                rows = _different(answer, max_rows)
            else:
                names = tuple(variable.value for variable in answer.variables)
                rows = [tuple(solution) for solution in itertools.islice(answer, max_rows)]
        except (SyntaxError, ValueError, RuntimeError) as error:
            raise QueryInvalid(str(error)) from error
        except OSError as error:
            raise StoreUnavailable(self._folder, str(error)) from error
        labels: dict[str, str] = {}  # those of the engine differ from run to run
        bindings = [
            {name: _term(pyoxigraph, term, labels) for name, term in zip(names, row, strict=True) if term is not None}
            for row in rows
        ]
        return names, bindings, None


def select_json(store: Any, text: str, union: bool) -> bytes:
    """Run a SELECT of our own; return SPARQL's JSON results."""
    pyoxigraph = import_pyoxigraph()
    answer = store.query(text, use_default_graph_as_union=union)
    return cast(bytes, answer.serialize(format=pyoxigraph.QueryResultsFormat.JSON))


def _different(triples: Any, most: int) -> list[tuple[Any, ...]]:
    """Return the first triples that are different ones."""
    found: dict[Any, None] = {}
    for triple in triples:
        if len(found) >= most:
            break
        found[triple] = None
    return [tuple(triple) for triple in found]


def _term(pyoxigraph: Any, term: Any, labels: dict[str, str]) -> dict[str, Any]:
    """Write one of pyoxigraph's terms as SPARQL's JSON results do."""
    if isinstance(term, pyoxigraph.NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, pyoxigraph.BlankNode):
        return {"type": "bnode", "value": labels.setdefault(term.value, f"b{len(labels) + 1}")}
    if isinstance(term, pyoxigraph.Triple):
        names = ("subject", "predicate", "object")
        return {
            "type": "triple",
            "value": {name: _term(pyoxigraph, part, labels) for name, part in zip(names, term, strict=True)},
        }
    return {"type": "literal", "value": term.value, "datatype": term.datatype.value, "xml:lang": term.language or ""}
