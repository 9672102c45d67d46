"""The embedded RDF store: pyoxigraph in a worker process, which can be killed.

A folder holds `meta.json` (format, prefixes, schema, source) and `store/`, pyoxigraph's own files.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from byokg.errors import GraphCorrupt, GraphExists, GraphNotFound, QueryInvalid
from byokg.files import TextFile, new_folder, sha256, write_json
from byokg.graph.columnar.folder import ENGINE_FOLDERS
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.oxigraph_process import import_pyoxigraph, select_json
from byokg.graph.engines.worker import Worker
from byokg.graph.guard.sparql import Sent, chooses_graphs
from byokg.graph.rdf.files import graph_prefixes, graph_quads, read_rdf
from byokg.graph.rdf.terms import RDF_OBJECT, RDF_PREDICATE, RDF_REIFIES, RDF_SUBJECT, Prefixes, node_iri, term_iri
from byokg.graph.servers import sparql_text as sparql
from byokg.graph.servers.sparql_reads import SparqlClient
from byokg.graph.servers.sparql_store import SparqlStore
from byokg.graph.servers.sparql_text import Binding, SparqlResult, read_table
from byokg.graph.store import QueryLimits, schema_from_json

_META = "meta.json"
_FORMAT = "byokg-oxigraph"
_VERSION = 1
_KEYS = ("triples", "named_graphs", "source", "prefixes", "relations", "schema")
_STORE = "store"

_PLACE = re.compile(r"error at (\d+):(\d+): (.*)", re.DOTALL)
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)+)"')
_MANY = 12


def build_oxigraph(source: str | Path | ColumnarGraph, out: str | Path, overwrite: bool = False) -> OxigraphStore:
    """Load a graph into pyoxigraph, and open it.

    RDF is kept as it is, named graphs too; queries see the union of all graphs. Blank nodes become IRIs, so that
    queries can name them, and statements about triples (RDF-star, RDF 1.2) become `rdf:subject`, `rdf:predicate` and
    `rdf:object`, which SPARQL 1.1 can read.

    Args:
        source: an RDF file (see `rdf.importer`), or any graph, written as by `rdf.files.graph_quads`.
        out: folder to write; appears only when complete.
        overwrite: replace an existing store. Anything else is never replaced.

    Raises:
        ImportFailed: the file is not RDF, or has a syntax error.
        GraphExists: `out` is taken.
        MissingExtra: pyoxigraph is not installed.
    """
    pyoxigraph = import_pyoxigraph()
    out = Path(out)
    with new_folder(out, overwrite, _refuse_taken) as partial:
        store = pyoxigraph.Store(str(partial / _STORE))
        if isinstance(source, ColumnarGraph):
            store.bulk_extend(graph_quads(source))
            origin, prefixes = dict(source.source), graph_prefixes(source)
        else:
            document = read_rdf(source)
            store.bulk_extend(_addressable(pyoxigraph, document.quads()))
            origin = {"kind": "rdf", "files": [TextFile(Path(source)).description()]}
            prefixes = Prefixes().with_declared(document.prefixes)
        if isinstance(source, ColumnarGraph) and origin["kind"] != "rdf":
            schema = source.schema()
            relations = [term_iri(label) for label in source.relations]
        else:  # RDF has types that are edges in a columnar graph, and none here
            loaded = SparqlStore(_LoadedClient(store), prefixes)
            schema, relations, prefixes = loaded.schema(), list(loaded.relation_iris), loaded.prefixes
            del loaded
        store.flush()
        meta = {
            "format": _FORMAT,
            "version": _VERSION,
            "triples": len(store),
            "named_graphs": any(True for _ in store.named_graphs()),
            "source": origin,
            "prefixes": dict(prefixes.namespaces),
            "relations": relations,
            "schema": asdict(schema),
        }
        del store  # closes the files
        write_json(partial / _META, meta)
    return OxigraphStore(out)


class OxigraphStore(SparqlStore):
    """A store written by `build_oxigraph`, opened read-only in a worker process.

    Several processes may have it open. `SparqlStore` defines nodes, edges and names.
    """

    def __init__(
        self,
        folder: str | Path,
        languages: Collection[str] | None = None,
        timeout_s: float = 60.0,
        memory_mb: int = 2048,
    ) -> None:
        """Open a store; the worker starts with the first request.

        Args:
            folder: what `build_oxigraph` wrote, or the folder of a graph that has it inside.
            languages: tags of the texts to read, beside untagged ones; None reads all.
            timeout_s: how long each request of the traversal may take.
            memory_mb: memory at which the worker is stopped.

        Raises:
            GraphNotFound: there is no such store.
            GraphCorrupt: it is of another version, or damaged.
            MissingExtra: pyoxigraph is not installed.
        """
        import_pyoxigraph()
        inside = Path(folder) / ENGINE_FOLDERS["sparql"]
        folder = inside if inside.is_dir() else Path(folder)
        meta = _read_meta(folder)
        settings = {"folder": str(folder / _STORE), "union": meta["named_graphs"]}
        self._worker = Worker("byokg.graph.engines.oxigraph_process:OxigraphEngine", settings, str(folder), memory_mb)
        client = _WorkerClient(self._worker, str(folder), timeout_s)
        super().__init__(client, Prefixes(meta["prefixes"]), languages, language=meta["source"].get("language", ""))
        self._number_relations(meta["relations"])
        try:
            self._schema = schema_from_json(meta["schema"])
        except ValueError as error:
            raise GraphCorrupt(folder, f"the schema in {_META} is damaged") from error
        self.source: Mapping[str, Any] = meta["source"]
        """Source of the store."""
        self.triple_count: int = meta["triples"]
        """How many triples it holds, those for names, types and properties included."""

    @property
    def checksum(self) -> str:
        """Return a SHA-256 of the store's metadata: source, schema and counts."""
        return sha256(Path(self._name) / _META)

    @property
    def worker(self) -> Worker:
        """Return the process that holds the engine."""
        return self._worker

    def refresh(self) -> None:
        """Do nothing: the store never changes, and its schema was read when it was built."""


class _WorkerClient(SparqlClient):
    """Sends queries to the process that holds the engine."""

    def __init__(self, worker: Worker, name: str, timeout_s: float) -> None:
        super().__init__(name, timeout_s)
        self._worker = worker

    def close(self) -> None:
        self._worker.close()

    def select(
        self, variables: str, where: str, timeout_s: float, page: tuple[int, int | None] | None = None
    ) -> tuple[Sequence[Binding], bool]:
        text = sparql.select(variables, where, *(page or ()))
        return read_table(json.loads(self._worker.call("select", text, timeout_s=timeout_s)), self.name).bindings, True

    def query(self, query: Sent, limits: QueryLimits) -> SparqlResult:
        try:
            every = not chooses_graphs(query.text)
            reply = self._worker.call("query", query.text, limits.max_rows + 1, every, timeout_s=limits.timeout_s)
        except QueryInvalid as error:
            raise QueryInvalid(_readable(str(error), query)) from error
        return SparqlResult(*reply)


class _LoadedClient(SparqlClient):
    """Queries a store in this process, to read the schema after loading."""

    def __init__(self, store: Any) -> None:
        super().__init__("the store being built", 0)
        self._store = store
        self.repeats = any(True for _ in store.named_graphs())

    def select(
        self, variables: str, where: str, timeout_s: float, page: tuple[int, int | None] | None = None
    ) -> tuple[Sequence[Binding], bool]:
        reply = json.loads(select_json(self._store, sparql.select(variables, where, *(page or ())), union=True))
        return read_table(reply, self.name).bindings, True

    def query(self, query: Sent, limits: QueryLimits) -> SparqlResult:
        raise QueryInvalid("a store that is being built runs no queries")


def _addressable(pyoxigraph: Any, quads: Iterator[Any]) -> Iterator[Any]:
    """Put IRIs in the place of blank nodes, and name the parts of the triples that statements are about."""
    blank, triple, quad = pyoxigraph.BlankNode, pyoxigraph.Triple, pyoxigraph.Quad
    named = functools.cache(pyoxigraph.NamedNode)
    parts = [named(iri) for iri in (RDF_SUBJECT, RDF_PREDICATE, RDF_OBJECT)]

    def term(value: Any) -> Any:
        return named(node_iri(f"_:{value.value}")) if isinstance(value, blank) else value

    for subject, predicate, end, graph in quads:
        if isinstance(end, triple):
            if predicate.value == RDF_REIFIES and not isinstance(end.object, triple):
                for part, value in zip(parts, (end.subject, end.predicate, end.object), strict=True):
                    yield quad(term(subject), part, term(value), term(graph))
            else:
                yield quad(term(subject), predicate, end, term(graph))
        else:
            yield quad(term(subject), predicate, term(end), term(graph))


def _readable(message: str, query: Sent) -> str:
    """Shorten a parser's message, and give the place in the query as written."""
    found = _PLACE.match(message)
    if found is None:
        return message
    line, column = query.written(int(found[1]), int(found[2]))
    place = f"line {line}, column {column}"
    if "Prefix not found" in found[3]:
        return f"unknown prefix before {place}; declare it with PREFIX, or write the whole IRI in angle brackets"
    tokens = _TOKEN.findall(found[3])
    wanted = f": expected {' '.join(tokens[:_MANY])}{' …' if len(tokens) > _MANY else ''}" if tokens else ""
    return f"syntax error at {place}{wanted}"


# The folder


def _refuse_taken(folder: Path, overwrite: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise GraphExists(folder, "a file is there; choose another folder")
    if not folder.exists() or next(folder.iterdir(), None) is None:
        return
    try:
        ours = json.loads((folder / _META).read_bytes()).get("format") == _FORMAT
    except (OSError, ValueError, AttributeError):
        ours = False
    if not ours:
        raise GraphExists(folder, "the folder is not empty and holds no RDF store; choose another folder")
    if not overwrite:
        raise GraphExists(folder, "a store is already there; pass overwrite=True or choose another folder")


def _read_meta(folder: Path) -> dict[str, Any]:
    try:
        meta = json.loads((folder / _META).read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise GraphNotFound(folder) from error
    except (OSError, ValueError) as error:
        raise GraphCorrupt(folder, f"{_META}: {error}") from error
    if not isinstance(meta, dict) or meta.get("format") != _FORMAT:
        raise GraphCorrupt(folder, f"{_META} does not say format {_FORMAT!r}")
    if meta.get("version") != _VERSION:
        raise GraphCorrupt(folder, f"it has format version {meta.get('version')!r}, this byokg reads {_VERSION}")
    lacking = [key for key in _KEYS if key not in meta]
    if lacking:
        raise GraphCorrupt(folder, f"{_META} lacks {', '.join(lacking)}")
    if not (folder / _STORE).is_dir():
        raise GraphCorrupt(folder, f"the folder {_STORE} is missing")
    return meta
