"""The W3C's RDF and SPARQL suites and the openCypher TCK, through importers, guard and stores.

python benchmarks/conformance.py [--suites DIR] [--neo4j ADDRESS] [--fuseki ADDRESS] [--oxigraph ADDRESS]
                                 [--virtuoso ADDRESS --folder DIR] [--every N] [--only NAME] [--without-arcadedb]
                                 [--json FILE]

Embedded: RDF files through the importers into the columnar store; queries on pyoxigraph, and on ArcadeDB. Servers are
empty ones, started for this with `../shared/servers/start` (Fuseki with `update`): THEIR DATA IS DELETED.
Virtuoso reads files from its own folder, DIR.

Requirements: a valid file of the suite is loaded, and an invalid one refused with an error of ours; a read
query passes, and its result through guard and store equals the server's answer to the original text;
a write query is refused, and the server's data are unchanged. The server decides between reads and
writes (EXPLAIN), if it can, or else the suite. Texts refused by the server are not counted; a read of
the TCK that is planned and then ends with an error must end with an error of ours. Exit code 1 if a requirement
fails.

The suites are not part of the repository: DIR holds `opencypher` and `w3c` (default: BYOKG_SUITES, or
`../shared/data/suites`), possibly packed as `suites.tar.xz`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httpx

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.conformance_tck import LIMITS, Arcade, Neo4j, Tally, corpus, cypher, guarded  # noqa: E402
from benchmarks.rows import make_parser, show  # noqa: E402
from byokg.errors import ByokgError, ImportFailed, QueryFailed, QueryRefused  # noqa: E402
from byokg.graph.engines.oxigraph_process import OxigraphEngine  # noqa: E402
from byokg.graph.guard.guard import check_sparql  # noqa: E402
from byokg.graph.guard.sparql import complete, gives_triples  # noqa: E402
from byokg.graph.importers.choose import import_graph  # noqa: E402
from byokg.graph.rdf.terms import Prefixes  # noqa: E402
from byokg.graph.servers.sparql import SparqlEndpoint  # noqa: E402

MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"


def unpacked(folder: Path, into: Path) -> Path:
    """Return the folder that holds the suites, unpacking them if they are packed."""
    if (folder / "w3c").is_dir():
        return folder
    with tarfile.open(folder / "suites.tar.xz") as archive:
        archive.extractall(into, filter="data")
    return into


# W3C


@dataclass(frozen=True)
class Test:
    """One entry of a manifest."""

    name: str
    kind: str
    file: Path
    data: Sequence[Path] = ()
    named: Sequence[tuple[str, Path]] = ()
    """Graphs, by IRI."""


def manifest(path: Path) -> list[Test]:
    """Read the tests of a manifest, in its order."""
    import pyoxigraph as ox

    base = f"file://{quote(str(path.resolve()))}"
    facts: dict[Any, dict[str, list[Any]]] = {}
    for quad in ox.parse(path=str(path), format=ox.RdfFormat.TURTLE, base_iri=base):
        facts.setdefault(quad.subject, {}).setdefault(quad.predicate.value, []).append(quad.object)

    def local(term: Any) -> Path:
        return Path(unquote(urlsplit(term.value).path))

    found = []
    for subject, said in facts.items():
        kinds = [kind.value.rpartition("#")[2] for kind in said.get(f"{RDF}type", ())]
        actions = said.get(f"{MF}action", ())
        if not kinds or not actions:
            continue
        action, inside = actions[0], facts.get(actions[0], {})
        named: list[tuple[str, Path]] = []
        for graph in inside.get(f"{QT}graphData", ()):
            described = facts.get(graph, {})
            file = local(described[f"{QT}graph"][0]) if f"{QT}graph" in described else local(graph)
            label = described.get(f"{RDFS}label")
            named.append((label[0].value if label else f"file://{quote(str(file))}", file))
        asked: Path | None = local(inside[f"{QT}query"][0]) if f"{QT}query" in inside else None
        if asked is None and not isinstance(action, ox.NamedNode):
            requests = [end for name, ends in inside.items() if name.endswith("#request") for end in ends]
            if not requests:
                continue
            asked = local(requests[0])
        data = tuple(local(one) for one in inside.get(f"{QT}data", ()))
        name = f"{path.parent.name}/{subject.value.rpartition('#')[2]}"
        found.append(Test(name, kinds[0], asked or local(action), data, named))
    return found


RDF, RDFS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2000/01/rdf-schema#"


def rdf(suites: Path, every: int) -> Tally:
    """Import the files of the RDF suites."""
    tally = Tally("RDF 1.1, importers")
    folders = ("rdf-n-triples", "rdf-n-quads", "rdf-turtle", "rdf-trig", "rdf-xml")
    tests = [test for name in folders for test in manifest(suites / "w3c/rdf/rdf11" / name / "manifest.ttl")]
    for test in tests[::every]:
        wrong = "Negative" in test.kind
        try:
            import_graph(test.file)
            loaded = True
        except ImportFailed:
            loaded = False
        tally.count("wrong files" if wrong else "right files", loaded is not wrong, test.name)
    return tally


def sparql_tests(suites: Path, version: str) -> list[Test]:
    """Return the tests of one version of SPARQL, entailment and federation left out."""
    folder = suites / "w3c/sparql" / f"sparql{version}"
    left_out = {"entailment", "service", "service-description", "protocol", "http-rdf-update", "graph-store-protocol"}
    return [
        test
        for path in sorted(folder.glob("*/manifest.ttl"))
        if path.parent.name not in left_out
        for test in manifest(path)
    ]


_BY_DESIGN = ("SERVICE calls", "only functions known to compute")
"""How the guard's reasons begin where it refuses queries that only read by the standard."""

_CHANGING = re.compile(r"\b(RAND|UUID|STRUUID|NOW|BNODE|SAMPLE)\s*\(", re.IGNORECASE)


_JSON = "application/sparql-results+json"
_GRAPH = "urn:default"
"""What stands for the default graph among graphs that have names."""


class RdfPlace(ABC):
    """Something that holds RDF and answers queries, with us and without us."""

    name = ""

    @abstractmethod
    def fill(self, test: Test) -> None:
        """Hold the data of a test and nothing else. Raises `ValueError` where they cannot be loaded."""

    @abstractmethod
    def raw(self, text: str) -> Any:
        """Answer a text as it stands, as columns and rows of terms; None where the engine refuses it."""

    @abstractmethod
    def through(self, text: str) -> Any:
        """Answer a text through guard and store, likewise. Raises `QueryFailed`."""

    @abstractmethod
    def content(self) -> Any:
        """Return how many triples there are."""


def _plain(answer: Any, shape: bool) -> Any:
    """Make answers comparable: rows as text in any order, blank nodes alike; of what changes, only the shape."""
    columns, rows, truth = answer

    def term(value: Any) -> str:
        if value["type"] in ("bnode", "triple"):
            return "_:" if value["type"] == "bnode" else "<<" + " ".join(map(term, value["value"].values())) + ">>"
        if value["type"] == "uri":
            return f"<{value['value']}>"
        datatype = value.get("datatype") or ""
        datatype = "" if datatype in (f"{RDF}langString", "http://www.w3.org/2001/XMLSchema#string") else datatype
        return f"{value['value']!r}@{(value.get('xml:lang') or '').lower()}^^{datatype}"

    if shape:
        return truth is None, sorted(columns), len(rows)
    return truth, sorted(columns), sorted(repr(sorted((key, term(row[key])) for key in row)) for row in rows)


class Embedded(RdfPlace):
    """pyoxigraph in this process, through the class that the store's worker runs."""

    name = "Oxigraph, embedded"

    def fill(self, test: Test) -> None:
        import pyoxigraph as ox

        self.store = ox.Store()
        try:
            for path, graph in [*((path, None) for path in test.data), *((path, iri) for iri, path in test.named)]:
                base = f"file://{quote(str(path))}"
                self.store.load(
                    path=str(path),
                    format=ox.RdfFormat.from_extension(path.suffix[1:]),
                    base_iri=base,
                    to_graph=ox.NamedNode(graph) if graph else None,
                )
        except (SyntaxError, ValueError, OSError) as error:
            raise ValueError(str(error)) from error
        self.engine = OxigraphEngine("", union=False)
        self.engine._store = self.store

    def raw(self, text: str) -> Any:
        try:
            return self.engine.query(text, LIMITS.max_rows, every_graph=True)
        except QueryFailed:
            return None

    def through(self, text: str) -> Any:
        sent = complete(check_sparql(text, LIMITS.max_rows).text, {}, Prefixes({}))
        return self.engine.query(sent.text, LIMITS.max_rows, every_graph=True)

    def content(self) -> Any:
        return sorted(map(str, self.store))


class Server(RdfPlace):
    """A server with SPARQL 1.1 queries and the Graph Store Protocol."""

    limits = LIMITS

    def __init__(self, name: str, query: str, graphs: str) -> None:
        self.name, self._query, self._graphs = name, query, graphs
        self._client = httpx.Client(timeout=60, trust_env=False)
        self._store = SparqlEndpoint(query, prefixes=Prefixes({}), attempts=1)
        self._named: list[str] = []

    def fill(self, test: Test) -> None:
        import pyoxigraph as ox

        by_graph: dict[str, list[Path]] = {_GRAPH: list(test.data)}
        for iri, path in test.named:
            by_graph.setdefault(iri, []).append(path)
        written: dict[str, bytes] = {}
        for iri, paths in by_graph.items():
            try:
                triples = [
                    ox.Triple(quad.subject, quad.predicate, quad.object)
                    for path in paths
                    for quad in ox.parse(path=str(path), base_iri=f"file://{quote(str(path))}")
                ]
            except (SyntaxError, ValueError, OSError) as error:
                raise ValueError(str(error)) from error
            written[iri] = ox.serialize(triples, format=ox.RdfFormat.N_TRIPLES) or b""
        self._put(written)

    def _put(self, graphs: dict[str, bytes]) -> None:
        """Hold some graphs, by IRI, as N-Triples, and no others."""
        for old in self._named:
            self._client.delete(f"{self._graphs}?graph={quote(old, safe='')}")
        self._named = [iri for iri in graphs if iri != _GRAPH]
        for iri, body in graphs.items():
            where = "default" if iri == _GRAPH else f"graph={quote(iri, safe='')}"
            headers = {"Content-Type": "application/n-triples"}
            reply = self._client.put(f"{self._graphs}?{where}", content=body, headers=headers)
            if reply.status_code >= 300:
                raise ValueError(reply.text[:200])

    def raw(self, text: str) -> Any:
        try:
            kind = "application/n-triples, text/plain;q=0.9" if gives_triples(check_sparql(text).text) else _JSON
        except ByokgError:
            kind = f"{_JSON}, application/n-triples;q=0.9"
        reply = self._client.post(self._query, data={"query": text}, headers={"Accept": kind})
        if reply.status_code != 200:
            return None
        if reply.headers["content-type"].startswith(("application/n-triples", "text/plain")):
            from byokg.graph.servers.sparql import TripleLines

            lines = TripleLines(LIMITS.max_rows)
            lines.take(reply.content)
            return ("subject", "predicate", "object"), lines.rows(), None
        try:
            found = reply.json()
        except ValueError:  # an error in the middle of an answer
            return None
        if found["head"].get("vars") == ["__ASK_RETVAL"]:  # Virtuoso's way to answer an ASK
            return (), (), bool(found["results"]["bindings"])
        return found["head"].get("vars", ()), found.get("results", {}).get("bindings", ()), found.get("boolean")

    def through(self, text: str) -> Any:
        sent = complete(check_sparql(text, self.limits.max_rows).text, {}, Prefixes({}))
        answer = self._store._client.query(sent, self.limits)
        return answer.variables, answer.bindings, answer.truth

    def content(self) -> Any:
        return self.raw("SELECT (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }")


class Virtuoso(Server):
    """OpenLink Virtuoso, filled through `isql-vt`; its default graph is one of the graphs that it holds."""

    limits = replace(LIMITS, max_rows=5_000)  # it sorts 10,000, those that OFFSET leaves out among them

    def __init__(self, query: str, folder: Path) -> None:
        super().__init__("Virtuoso", f"{query}?default-graph-uri={quote(_GRAPH, safe='')}", "")
        self._folder, self._sql_port = folder, (urlsplit(query).port or 80) + 1
        self._named = [_GRAPH]

    def _put(self, graphs: dict[str, bytes]) -> None:
        file = self._folder / "conformance.nt"
        for iri in dict.fromkeys((*self._named, *graphs)):
            said = [f"sparql clear graph <{iri}>"]
            if graphs.get(iri):
                file.write_bytes(graphs[iri])
                said.append(f"ttlp_mt(file_to_string_output('{file}'), '', '{iri}', 255)")
            self._sql("; ".join(said))
        self._named = list(graphs)

    def _sql(self, text: str) -> None:
        command = ["isql-vt", f"127.0.0.1:{self._sql_port}", "dba", "dba", f"exec={text};"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if "Error" in done.stderr + done.stdout:
            raise ValueError(done.stderr + done.stdout)


def sparql(suites: Path, version: str, place: RdfPlace, every: int) -> Tally:
    """Ask the queries of a version with us and without us, and try its updates."""
    tally = Tally(f"SPARQL {version[0]}.{version[1]}, {place.name}")
    place.fill(Test("", "", Path()))
    for test in sparql_tests(suites, version)[::every]:
        text = test.file.read_bytes().decode("utf-8", "replace")
        if "Update" in test.kind:
            before = place.content()
            try:
                place.through(text)
                refused = False
            except QueryRefused:
                refused = True
            tally.count("updates refused, data unchanged", refused and place.content() == before, test.name)
        elif "NegativeSyntax" not in test.kind and test.file.suffix in (".rq", ".sparql"):
            try:
                place.fill(test)
            except ValueError:
                tally.counts["data that the server does not load"] += 1
                continue
            what = "reads equal" if "Evaluation" in test.kind else "reads of the syntax tests equal"
            plain = place.raw(text)
            if plain is None:
                tally.counts["queries that the server itself refuses"] += 1
                continue
            try:
                ours = place.through(text)
            except ByokgError as error:
                if isinstance(error, QueryRefused) and error.reason.startswith(_BY_DESIGN):
                    tally.counts["refused by design: SERVICE, and functions of unknown effect"] += 1
                    continue
                tally.count(what, False, f"{test.name}: {error}")
                continue
            changing = _CHANGING.search(text) is not None
            tally.count(what, _plain(plain, changing) == _plain(ours, changing), test.name)
    return tally


def main() -> int:
    parser = make_parser(__doc__)
    default = os.environ.get("BYOKG_SUITES") or ROOT.parent / "shared" / "data" / "suites"
    parser.add_argument("--suites", type=Path, default=Path(default), help="suites' folder (default: %(default)s)")
    parser.add_argument("--neo4j", help="bolt://… of an empty Neo4j without a password")
    parser.add_argument("--fuseki", help="http://HOST:PORT/DATASET/query of an empty Fuseki")
    parser.add_argument("--oxigraph", help="http://HOST:PORT/query of an empty Oxigraph server")
    parser.add_argument(
        "--virtuoso", help="http://HOST:PORT/sparql of an empty Virtuoso on this machine, account dba/dba"
    )
    parser.add_argument("--folder", type=Path, help="folder from which that Virtuoso reads files")
    parser.add_argument("--only", help="a part whose name holds this, such as Virtuoso (default: all)")
    parser.add_argument("--without-arcadedb", action="store_true", help="skip its part")
    parser.add_argument("--every", type=int, default=1, help="run every Nth test only (default: all)")
    options = parser.parse_args()
    places: list[RdfPlace] = [Embedded()]
    if options.fuseki:
        places.append(Server("Fuseki", options.fuseki, options.fuseki.removesuffix("/query") + "/data"))
    if options.oxigraph:
        places.append(Server("Oxigraph", options.oxigraph, options.oxigraph.removesuffix("/query") + "/store"))
    if options.virtuoso:
        if options.folder is None:
            parser.error("--virtuoso needs --folder")
        places.append(Virtuoso(options.virtuoso, options.folder))
    if options.only:
        places = [place for place in places if options.only.lower() in place.name.lower()]
    tallies: list[Tally] = []

    def run(work: Callable[..., Tally], *given: Any) -> None:
        tallies.append(work(*given, options.every))
        print(json.dumps(tallies[-1].counts), tallies[-1].name, file=sys.stderr)

    with ExitStack() as stack:
        suites = unpacked(options.suites, Path(stack.enter_context(tempfile.TemporaryDirectory())))
        if not options.only:
            run(rdf, suites)
        for rdf_place in places:
            for version in ("10", "11"):
                run(sparql, suites, version, rdf_place)
        if not options.only:
            run(guarded, suites)
        if not options.without_arcadedb and not options.only:
            run(cypher, suites, Arcade())
        if options.neo4j:
            place = Neo4j(options.neo4j)
            run(corpus, place)
            run(cypher, suites, place)
    for line in (line for tally in tallies for line in tally.wrong):
        print(line)
    show([row for tally in tallies for row in tally.rows()], "Conformance", options.json)
    return 1 if any(tally.wrong for tally in tallies) else 0


if __name__ == "__main__":
    sys.exit(main())
