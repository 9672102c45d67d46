"""Any remote SPARQL 1.1 endpoint as a graph store, over the SPARQL protocol.

    with SparqlEndpoint("https://dbpedia.org/sparql", languages=["en"]) as store:
        store.run("SELECT ?who WHERE { dbr:Alien_(film) dbo:director ?who }")

Credentials come from the environment: `BYOKG_SPARQL_TOKEN` (bearer), or `BYOKG_SPARQL_USER` with
`BYOKG_SPARQL_PASSWORD` (basic). They are sent over HTTPS only, except to this machine.

Triples, the answer to a CONSTRUCT or DESCRIBE, are N-Triples, read line by line as they arrive.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
import math
import os
import random
import re
import ssl
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception_type

from byokg.errors import ConfigError, QueryFailed, QueryInvalid, QueryTimeout, QueryTooLarge, StoreUnavailable
from byokg.graph.guard.sparql import TRIPLE, Sent, gives_triples
from byokg.graph.guard.tokens import NUMBERED_ESCAPE, character
from byokg.graph.rdf.terms import Prefixes
from byokg.graph.servers import sparql_text as sparql
from byokg.graph.servers.base import bare, excerpt, is_loopback, within
from byokg.graph.servers.sparql_reads import MOST_ROWS, Naming, SparqlClient
from byokg.graph.servers.sparql_store import SparqlStore
from byokg.graph.servers.sparql_text import Binding, SparqlResult, read_table
from byokg.graph.store import Direction, QueryLimits

_TERM = re.compile(
    r"""[ \t]*(?:
      <(?P<uri>[^<>"{}|^`\x00-\x20]*)>
    | _:(?P<bnode>[^\s<>"]*[^\s<>".])
    | "(?P<literal>(?:[^"\\]|\\.)*+)"(?:@(?P<lang>[A-Za-z]+(?:-[A-Za-z0-9]+)*)(?:--[a-z]+)?|\^\^<(?P<type>[^<>\s]*)>)?
    | (?P<triple><<\(?)
    )""",
    re.VERBOSE,
)
_SIGNS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_CLOSE = re.compile(r"[ \t]*\)?>>")
_END = re.compile(r"[ \t]*\.[ \t]*(?:#.*)?")
_DEPTH = 50


class TripleLines:
    """Takes a reply in any pieces, and keeps each of its lines once, up to so many."""

    def __init__(self, most: int) -> None:
        """Keep up to `most` lines."""
        self._most = most
        self._rest = b""
        self._lines: dict[bytes, None] = {}

    def take(self, piece: bytes) -> bool:
        """Take a piece; return whether there are as many lines as wanted, so that the rest need not be read."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            if (said := line.strip()) and not said.startswith(b"#"):
                self._lines[said] = None
        return len(self._lines) >= self._most

    def rows(self) -> list[Mapping[str, Mapping[str, Any]]]:
        """Return the triples, with terms as in SPARQL's JSON results. Raises `ValueError` for malformed N-Triples."""
        self.take(b"\n")
        return [_triple(line.decode()) for line in list(self._lines)[: self._most]]


def _triple(line: str) -> dict[str, Mapping[str, Any]]:
    terms, at = _terms(line, 0, 0)
    if _END.fullmatch(line, at) is None:
        raise ValueError(f"a triple ends in a dot: {line[:100]!r}")
    return terms


def _terms(line: str, at: int, depth: int) -> tuple[dict[str, Mapping[str, Any]], int]:
    """Read three terms from a place on; return them, and the place behind."""
    terms: dict[str, Mapping[str, Any]] = {}
    for name in TRIPLE:
        found = _TERM.match(line, at)
        if found is None or depth > _DEPTH:
            raise ValueError(f"the {name} of a triple is missing: {line[:100]!r}")
        kind, at = found.lastgroup, found.end()
        if kind == "triple":
            inner, at = _terms(line, at, depth + 1)
            terms[name] = {"type": "triple", "value": inner}
            closed = _CLOSE.match(line, at)
            if closed is None:
                raise ValueError(f"a triple within a triple is never closed: {line[:100]!r}")
            at = closed.end()
        elif found["literal"] is not None:
            literal = {"type": "literal", "value": _unescaped(found["literal"])}
            said = {"xml:lang": found["lang"], "datatype": found["type"] and _unescaped(found["type"])}
            terms[name] = literal | {key: value for key, value in said.items() if value}
        else:
            assert kind is not None
            terms[name] = {"type": kind, "value": _unescaped(found[kind])}
    return terms, at


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    pieces = re.split(r"(\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\.)", text)
    return "".join(_sign(piece) if piece.startswith("\\") else piece for piece in pieces)


def _sign(escape: str) -> str:
    numbered = NUMBERED_ESCAPE.fullmatch(escape)
    return character(numbered) if numbered else _SIGNS.get(escape[1], escape[1])


TOKEN, USER, PASSWORD = "BYOKG_SPARQL_TOKEN", "BYOKG_SPARQL_USER", "BYOKG_SPARQL_PASSWORD"
"""Environment variables that hold credentials."""

T = TypeVar("T")
Item = TypeVar("Item")

_LOG = logging.getLogger(__name__)

_VIRTUOSO, _FUSEKI, _OXIGRAPH = "Virtuoso", "Fuseki", "Oxigraph"
_LIMITS = {_VIRTUOSO: 1000, _FUSEKI: 1}
"""Servers that take a time limit, with its units in a second."""
_VIRTUOSO_BATCH, _VIRTUOSO_LOOKED_UP = 100, 200
"""Largest batch of nodes for Virtuoso, whose time grows more than linearly unless an index is prescribed."""
_VIRTUOSO_ERROR = re.compile(r"Virtuoso (\w{5}) Error (.*?)(?: SPARQL query:|$)", re.DOTALL)
_VIRTUOSO_ROWS = "10000"
"""Virtuoso's default row limit; it reports the cut for tables, and not for triples."""
_SORTED = re.compile(r"SR353: Sorted TOP .* more then (\d+) rows .* Only (\d+) are allowed")
"""How Virtuoso refuses to sort a query's rows where more are wanted."""
_VIRTUOSOS_OWN = re.compile(
    r"http://www\.openlinksw\.com/|http://localhost:8890/(?:DAV/?$|sparql)|http://localuriqaserver/"
    r"|http://www\.w3\.org/(?:ns/ldp#|2002/07/owl#|1999/02/22-rdf)"
    r"|urn:(?:activitystreams-owl|core:services|rules)|virtrdf"
)
"""Graphs that are in every Virtuoso."""
_NAMES_GRAPHS = re.compile(r"\b(?:FROM|GRAPH)\b", re.IGNORECASE)
"""In a query that may choose its graphs by itself."""
_NO_GRAPH = "urn:byokg:nothing"
"""Graphs read from a Virtuoso without user graphs."""
_MANY_GRAPHS = 20
_LISTING_S = 3.0
"""How long Virtuoso may list its graphs."""
_ASKED = "__ASK_RETVAL"
_PAGE_ROWS, _WHOLE_ROWS = 10_000, 400_000
_LONGEST_PAUSE_S = 8.0
_AT_ONCE = 4
"""Requests sent at the same time."""

_RESULTS, _CSV = "application/sparql-results+json", "text/csv"
_TYPED = frozenset(("?v", "?least", "?most"))
"""Variables whose kind of term is selected, too, since CSV loses it."""
_TRIPLE_TYPES = ("application/n-triples", "text/plain", "text/ntriples")
_JSON_TYPES = (_RESULTS, "application/json")
_LONG = 1800
"""Characters of a URL from which the query is sent by POST."""
_BUSY = (429, 502, 503)
_FINGERPRINT_S = 10.0
"""How long an endpoint may count its triples, before a schema is kept without a fingerprint."""
_TIMED_OUT = re.compile(
    r"operation has been cancelled|time(?:d\s|-)?\s?out|(?:execution|evaluation|query) time .{0,60}(?:exceed|limit)",
    re.IGNORECASE,
)


class SparqlEndpoint(SparqlStore):
    """A graph behind a SPARQL 1.1 endpoint; `SparqlStore` defines nodes, edges and names."""

    def __init__(
        self,
        url: str,
        *,
        languages: Collection[str] | None = None,
        name_predicates: Sequence[str] | None = None,
        alias_predicates: Sequence[str] | None = None,
        type_predicates: Sequence[str] | None = None,
        prefixes: Prefixes | None = None,
        default_graphs: Sequence[str] = (),
        timeout_s: float = 60.0,
        patience_s: float = 60.0,
        attempts: int = 5,
        page_rows: int | None = None,
        reply_mb: int = 256,
        user_agent: str | None = None,
        ca_file: str | None = None,
    ) -> None:
        """Configure the store; nothing is sent yet.

        Args:
            url: address of the endpoint, `https://…`, `http://…`, or either with `sparql+` before it.
            languages: tags of the texts to read, beside untagged ones; None reads all.
            name_predicates: IRIs of naming predicates, best first; None chooses those known that the graph has.
            alias_predicates: IRIs of alias predicates; likewise.
            type_predicates: IRIs of class predicates, the first that a node has deciding; likewise.
            prefixes: abbreviations of labels; None takes the well known ones.
            default_graphs: IRIs of the named graphs to read; none reads the endpoint's default graph, on Virtuoso
                without its system graphs.
            timeout_s: limit of one request of the traversal.
            patience_s: total wait, between attempts, for a busy endpoint.
            attempts: most attempts of a request that a busy endpoint rejects or leaves unanswered.
            page_rows: rows per request; None takes 400,000 for servers known to give all, else 10,000.
            reply_mb: size at which a reply is refused.
            user_agent: the client's name; public endpoints want contact information in it.
            ca_file: certificates to trust instead of the system's.

        Raises:
            ConfigError: the address is no HTTP address, or credentials stand in it or would travel unencrypted.
        """
        settings = EndpointSettings(
            tuple(default_graphs), timeout_s, patience_s, attempts, page_rows, reply_mb, user_agent, ca_file
        )
        naming = Naming(name_predicates, alias_predicates, type_predicates)
        super().__init__(EndpointClient(url, settings), prefixes, languages, naming)


@dataclass(frozen=True)
class EndpointSettings:
    """Limits of requests to an endpoint."""

    default_graphs: Sequence[str] = ()
    """IRIs of the named graphs to read; none reads the endpoint's default graph, on Virtuoso without its system
    graphs."""
    timeout_s: float = 60.0
    """Limit of one request of the traversal."""
    patience_s: float = 60.0
    """Total wait, between attempts, for a busy endpoint."""
    attempts: int = 5
    """Most attempts of a request that a busy endpoint rejects or leaves unanswered."""
    page_rows: int | None = None
    """Rows per request; None takes 400,000 for servers known to give all, else 10,000."""
    reply_mb: int = 256
    """Size at which a reply is refused."""
    user_agent: str | None = None
    """The client's name; public endpoints want contact information in it."""
    ca_file: str | None = None
    """Certificates to trust instead of the system's."""


class EndpointClient(SparqlClient):
    """Sends queries to an endpoint over the SPARQL protocol.

    Many endpoints cut long results silently. Results of traversal requests are checked against a count until as many
    rows are known to arrive whole, and a cut one is requested again in smaller parts. A user's query that is cut is
    marked `truncated` once the endpoint's limit is known from that, or if the endpoint reports it.
    """

    def __init__(self, url: str, settings: EndpointSettings) -> None:
        """Check the address, and read credentials from the environment. Raises `ConfigError` as `SparqlEndpoint`."""
        url = url.removeprefix("sparql+")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"{bare(url)!r} is no address of a SPARQL endpoint; it should start with https://")
        if parts.username is not None or parts.password is not None:
            raise ConfigError(
                f"credentials stand in the address of {parts.hostname}; remove them, and set {USER} and {PASSWORD}"
            )
        super().__init__(bare(url), settings.timeout_s, (url, tuple(settings.default_graphs)))
        here = is_loopback(parts.hostname)
        headers, auth = _credentials()
        if (headers or auth) and parts.scheme == "http" and not here:
            raise ConfigError(
                f"credentials would travel unencrypted to {parts.hostname}; use https://, or unset {TOKEN}"
            )
        self._url, self._settings = url, settings
        self._graphs = tuple(settings.default_graphs)
        self._page = settings.page_rows or _PAGE_ROWS
        self._server = ""
        self._answered = False
        self._trusted = 0
        self._cut_at: int | None = None
        agent = settings.user_agent or f"byokg/{_version()} (knowledge graph question answering; python-httpx)"
        self._http = httpx.Client(
            headers={"User-Agent": agent, "Accept": f"{_RESULTS}, application/json;q=0.5", **headers},
            auth=auth,
            verify=ssl.create_default_context(cafile=settings.ca_file),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=8),
            trust_env=not here,
        )

    def close(self) -> None:
        """Close connections."""
        self._http.close()

    def fingerprint(self) -> str | None:
        """Count the triples; None if the endpoint cannot do so quickly."""
        try:
            answer = self._ask(sparql.count("?s ?p ?o"), _FINGERPRINT_S, 0.0)
            return f"{int(answer.table.bindings[0]['rows']['value'])} triples"
        except (QueryFailed, IndexError, KeyError, ValueError):
            return None

    def settle(self, timeout_s: float | None) -> bool:
        """Prescribe indexes, and leave out system graphs, of a Virtuoso."""
        if self._server != _VIRTUOSO:
            return False
        self._choose_indexes(timeout_s)
        if self._graphs:
            return False
        self._leave_out_system_graphs(timeout_s)
        return True

    def _choose_indexes(self, timeout_s: float | None) -> None:
        """Prescribe the index for node lookups on a Virtuoso with default indexes."""
        where = sparql.edges([_NO_GRAPH], Direction.BOTH, None, False, sparql.VIRTUOSO)
        with suppress(QueryFailed):
            self._ask(sparql.select("?s ?p ?o", where, 1), timeout_s or self.timeout_s, 0.0)
            self.lookup, self.batch = sparql.VIRTUOSO, _VIRTUOSO_LOOKED_UP

    def _leave_out_system_graphs(self, timeout_s: float | None) -> None:
        """Read the user graphs of a Virtuoso, if there are few; else warn about its system graphs."""
        where = "{ SELECT DISTINCT ?g WHERE { GRAPH ?g { ?s ?p ?o } } }"
        try:
            answer = self._ask(sparql.select("?g", where, _MANY_GRAPHS), min(timeout_s or 60.0, _LISTING_S), 0.0)
        except QueryFailed:
            graphs = []
        else:
            graphs = sparql.values_of(answer.table.bindings, "g")
        own = tuple(sorted(graph for graph in graphs if not _VIRTUOSOS_OWN.match(graph)))
        if 0 < len(graphs) < _MANY_GRAPHS:
            self._graphs = own or (_NO_GRAPH,)
            _LOG.info("%s: reading %s, and not the graphs that Virtuoso keeps for itself", self.name, ", ".join(own))
        else:
            _LOG.warning(
                "%s: what Virtuoso keeps for itself is read with the graph; name the graphs to read: "
                "default_graphs=[IRI], or ?default-graph-uri=IRI behind the address",
                self.name,
            )

    def select(
        self, variables: str, where: str, timeout_s: float, page: tuple[int, int | None] | None = None
    ) -> tuple[Sequence[Binding], bool]:
        rows_wanted, offset = page or (self._page, None)
        patience_s = self._settings.patience_s if timeout_s >= self.timeout_s else 0.0  # a user waits for the answer
        # What Virtuoso writes as JSON takes it as long again as finding it.
        accept = _CSV if self._server == _VIRTUOSO and _TYPED.isdisjoint(variables.split()) else None
        text = sparql.select(variables, where, rows_wanted, offset)
        answer = self._ask(text, timeout_s, patience_s, accept=accept)
        rows = answer.table.bindings
        if answer.interrupted:
            raise QueryTimeout(timeout_s)
        if page is not None or not rows:
            return rows, not answer.cut
        if answer.cut:
            self._cut_at = len(rows)
            return rows, False
        if len(rows) < self._page and (self._server or len(rows) < self._trusted):
            return rows, True
        counted = self._ask(sparql.count(where), timeout_s, patience_s).table.bindings
        total = int(counted[0]["rows"]["value"]) if counted else 0
        if total <= len(rows):
            self._trusted = max(self._trusted, len(rows))
            return rows, True
        if len(rows) < self._page:
            self._cut_at = len(rows)
        return rows, False

    def page_rows(self) -> int:
        """Return how many rows one request may give: as many again would have to be counted."""
        return min((self._cut_at or self._page) - 1, MOST_ROWS)

    def map(self, work: Callable[[Item], T], items: Sequence[Item]) -> Iterable[T]:
        if len(items) < 2:
            return [work(item) for item in items]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(work, items))

    def sortable_rows(self, problem: str, wanted: int) -> int:
        """Return how many rows Virtuoso sorts, if it refused to sort more."""
        refused = _SORTED.search(problem)
        return wanted - (int(refused[1]) - int(refused[2])) if refused else 0

    def query(self, query: Sent, limits: QueryLimits) -> SparqlResult:
        wanted = limits.max_rows + 1 if gives_triples(query.text) else None
        answer = self._ask(query.text, limits.timeout_s, 0.0, wanted)
        table = answer.table
        if answer.interrupted and not table.bindings:
            raise QueryTimeout(limits.timeout_s)
        if table.truth is None and 0 < len(table.bindings) <= limits.max_rows:
            known_cut = self._cut_at is not None and len(table.bindings) == self._cut_at
            return SparqlResult(table.variables, table.bindings, cut=answer.cut or answer.interrupted or known_cut)
        return table

    # One request

    def _ask(
        self, text: str, timeout_s: float, patience_s: float, triples: int | None = None, accept: str | None = None
    ) -> _EndpointReply:
        """Send a query, again while the endpoint is busy, and read the answer: of a graph, so many triples."""
        until = time.monotonic() + timeout_s + patience_s
        attempts = Retrying(
            retry=retry_if_exception_type(_Again),
            stop=self._gives_up,
            wait=lambda state: _pause(state, until),
            reraise=True,
        )
        try:
            return attempts(lambda: self._once(text, until, timeout_s, triples, accept))
        except _Again as error:
            raise StoreUnavailable(self.name, str(error)) from error

    def _gives_up(self, state: RetryCallState) -> bool:
        """True if no more attempts are worthwhile: an endpoint that has answered before may be restarting, and gets
        time."""
        error = state.outcome.exception() if state.outcome is not None else None
        waited_for = self._answered and isinstance(error, _Again) and error.away
        return state.attempt_number >= self._settings.attempts and not waited_for

    def _once(
        self, text: str, deadline: float, timeout_s: float, triples: int | None, accept: str | None
    ) -> _EndpointReply:
        """Send a query once."""
        left_s = min(timeout_s, deadline - time.monotonic())
        if left_s <= 0:
            raise QueryTimeout(timeout_s)
        try:
            until = time.monotonic() + left_s
            lines = None if triples is None else TripleLines(triples)
            status, headers, body = within(left_s + 0.1, lambda: self._exchange(text, until, lines, accept))
        except (TimeoutError, httpx.TimeoutException) as error:
            raise QueryTimeout(timeout_s) from error
        except UnicodeEncodeError as error:
            raise QueryInvalid(f"half of a character cannot be sent: {error}") from error
        except httpx.ConnectError as error:
            if isinstance(error.__cause__ and error.__cause__.__cause__, ssl.SSLCertVerificationError):
                raise StoreUnavailable(self.name, f"its certificate is not trusted ({error})") from error
            raise _Again(f"no connection ({error})", away=True) from error
        except httpx.HTTPError as error:
            raise _Again(f"the connection broke ({error or type(error).__name__})") from error
        self._answered = True
        if not self._server:
            self._recognise(headers)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        most, partial, ended = headers.get("x-sparql-maxrows", ""), status == 206, "x-sql-state" in headers
        if status not in (200, 206):
            raise self._failure(status, headers, body, timeout_s)
        if lines is not None and kind in _TRIPLE_TYPES:
            try:
                rows = lines.rows()
            except ValueError as error:
                raise _broken("N-Triples", body, timeout_s, error) from error
            most = most or (_VIRTUOSO_ROWS if self._server == _VIRTUOSO else "")
            return _EndpointReply(SparqlResult(TRIPLE, rows), partial or _reaches(most, rows), ended)
        if kind == _CSV == accept:
            try:
                table = sparql.read_csv(body)
            except ValueError as error:
                raise _broken("CSV", body, timeout_s, error) from error
            return _EndpointReply(table, partial or _reaches(most, table.bindings), ended)
        if kind not in _JSON_TYPES:
            reason = (
                f"it answered {kind or 'without a content type'} instead of SPARQL results: {excerpt(body)!r}; "
                "is this the address of a SPARQL endpoint"
            )
            raise StoreUnavailable(self.name, reason)
        try:
            reply = json.loads(body)
        except ValueError as error:
            raise _broken("JSON", body, timeout_s, error) from error
        table = read_table(reply, self.name)
        if table.variables == (_ASKED,):  # Virtuoso's own way to answer an ASK
            return _EndpointReply(
                SparqlResult((), (), any(row[_ASKED]["value"] == "1" for row in table.bindings)), False
            )
        return _EndpointReply(table, partial or _reaches(most, table.bindings), ended)

    def _recognise(self, headers: httpx.Headers) -> None:
        """Notice which server this is: some give whole answers, and take a time limit, each in its own unit."""
        said = headers.get("server", "")
        if said.startswith("Virtuoso"):
            self._server, self.batch, self.joins, self.joins_all = _VIRTUOSO, _VIRTUOSO_BATCH, True, True
        elif "fuseki-request-id" in headers or said.startswith("Oxigraph"):
            self._server, self.joins = _FUSEKI if "fuseki-request-id" in headers else _OXIGRAPH, True
            self.samples_predicates = self._server == _OXIGRAPH
            self._page = self._settings.page_rows or _WHOLE_ROWS

    def _exchange(
        self, text: str, until: float, lines: TripleLines | None, accept: str | None
    ) -> tuple[int, httpx.Headers, bytes]:
        graphs = () if self._server == _VIRTUOSO and _NAMES_GRAPHS.search(text) else self._graphs
        fields = [("query", text), *(("default-graph-uri", graph) for graph in graphs)]
        left_s = max(until - time.monotonic(), 0.01)
        if self._server in _LIMITS:
            fields.append(("timeout", str(max(1, math.ceil(left_s * _LIMITS[self._server])))))
        address = f"{self._url}{'&' if urlsplit(self._url).query else '?'}{urlencode(fields)}"
        wanted = accept if lines is None else ", ".join(_TRIPLE_TYPES)
        headers = {} if wanted is None else {"Accept": wanted}
        if len(address) <= _LONG:
            request = self._http.build_request("GET", address, timeout=left_s, headers=headers)
        else:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            form = urlencode(fields)
            request = self._http.build_request("POST", self._url, content=form, timeout=left_s, headers=headers)
        response = self._http.send(request, stream=True)
        try:
            body = bytearray()
            for chunk in response.iter_bytes():
                body += chunk
                if lines is not None and response.status_code in (200, 206) and lines.take(chunk):
                    break
                if len(body) > self._settings.reply_mb << 20:
                    raise QueryTooLarge(f"the reply has more than {self._settings.reply_mb:,} MB")
                if time.monotonic() > until:
                    raise TimeoutError
            return response.status_code, response.headers, bytes(body)
        finally:
            response.close()

    def _failure(self, status: int, headers: httpx.Headers, body: bytes, timeout_s: float) -> Exception:
        """Return the error for a status other than success."""
        said = excerpt(body)
        if found := _VIRTUOSO_ERROR.search(said):
            if found[1] == "S1T00" or "execution time" in said:
                return QueryTimeout(timeout_s)
            return _Again(said) if found[1].startswith(("40", "08")) else QueryInvalid(f"Virtuoso: {found[2]}")
        if status == 504 or (status >= 400 and status != 429 and _TIMED_OUT.search(said)):
            return QueryTimeout(timeout_s)
        if status in _BUSY:
            return _Again(f"it is busy (HTTP {status})", _retry_after(headers))
        if status == 400:
            return QueryInvalid(f"the endpoint does not understand the query: {said}")
        if status in (401, 403):
            reason = f"it refuses the credentials (HTTP {status}); set {TOKEN}, or {USER} and {PASSWORD}"
            return StoreUnavailable(self.name, reason)
        if 300 <= status < 400:
            moved = bare(headers.get("location", ""))
            return StoreUnavailable(self.name, f"it has moved to {moved!r} (HTTP {status}); use that address")
        if status == 413:
            return QueryTooLarge("the endpoint says that the request is too large")
        return StoreUnavailable(self.name, f"HTTP {status}: {said}")


def _reaches(most: str, rows: Sequence[Binding]) -> bool:
    """True if a result has as many rows as the server's row limit."""
    return most.isdigit() and len(rows) >= int(most)


@dataclass(frozen=True)
class _EndpointReply:
    """Reply of an endpoint, with its own note on missing rows."""

    table: SparqlResult
    cut: bool
    """There are more rows."""
    interrupted: bool = False
    """True if a time limit of the server ended it: the rows are arbitrary."""


class _Again(Exception):
    """The request may be repeated, after the endpoint's delay, if it gives one."""

    def __init__(self, reason: str, after_s: float | None = None, away: bool = False) -> None:
        super().__init__(reason)
        self.after_s = after_s
        self.away = away


def _broken(format: str, body: bytes, timeout_s: float, error: ValueError) -> Exception:
    """Return the error for an unreadable reply: some engines hit a time limit after they have begun to answer."""
    if _TIMED_OUT.search(body[-2000:].decode("utf-8", "replace")):
        return QueryTimeout(timeout_s)
    return _Again(f"its reply is no {format}, or breaks off ({error})")


def _pause(state: RetryCallState, until: float) -> float:
    """Return seconds to wait before the next attempt: as long as the endpoint asks, else longer each time."""
    error = state.outcome.exception() if state.outcome is not None else None
    asked = error.after_s if isinstance(error, _Again) else None
    growing = min(0.5 * 2 ** (state.attempt_number - 1), _LONGEST_PAUSE_S) * random.uniform(0.75, 1.25)
    pause = growing if asked is None else asked
    if isinstance(error, _Again) and time.monotonic() + pause >= until:
        raise _Again(f"{error}; it wants to be asked again in {pause:.0f} s, which is longer than we may wait")
    return pause


def _retry_after(headers: httpx.Headers) -> float | None:
    """Read `Retry-After`: seconds, or a date."""
    text = headers.get("retry-after", "").strip()
    if text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max((moment - datetime.now(UTC if moment.tzinfo else None)).total_seconds(), 0.0)


def _credentials() -> tuple[dict[str, str], httpx.BasicAuth | None]:
    if token := os.environ.get(TOKEN):
        return {"Authorization": f"Bearer {token}"}, None
    if user := os.environ.get(USER):
        return {}, httpx.BasicAuth(user, os.environ.get(PASSWORD, ""))
    return {}, None


def _version() -> str:
    try:
        return importlib.metadata.version("byokg")
    except importlib.metadata.PackageNotFoundError:
        return "0"
