"""Neptune's stores: the contract through real HTTP, signed by the real boto3, and boto3's own Stubber."""

from __future__ import annotations

import io
import json
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from byokg.errors import (
    ConfigError,
    MissingExtra,
    QueryFailed,
    QueryInvalid,
    QueryRefused,
    QueryTimeout,
    QueryTooLarge,
    StoreUnavailable,
)
from byokg.graph.servers import base, cypher_schema, neptune
from byokg.graph.servers.cypher_store import CypherStore
from byokg.graph.servers.neptune import NeptuneStore
from byokg.graph.store import QueryLimits, RelationSchema
from byokg.graph.value_indexes import kept_values, nodes_holding, value_index
from byokg.types import Cell, EdgeCell, EntityId, Node, NodeCell, PathCell, Triple
from tests.graph.bolt_server import BoltDatabases
from tests.graph.contract import GraphStoreContract, Make, edge, ids, node
from tests.graph.neptune_server import ACCESS_KEY, REGION, SECRET_KEY, Fault, NeptuneServer
from tests.graph.query_contract import CypherContract, MakeQueryable

boto3 = pytest.importorskip("boto3", reason="needs boto3: pip install 'byokg[neptune]'")
from botocore.response import StreamingBody  # noqa: E402
from botocore.stub import Stubber  # noqa: E402

GRAPH = "g-abcdefghij"
Load = Callable[[Sequence[Node], Sequence[Triple], bool], CypherStore]


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let boto3 find what the server expects, and nothing of this machine."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


class Neptunes:
    """Makes servers, and stores that ask them; ends all of them together."""

    def __init__(self, bolt: BoltDatabases) -> None:
        self._bolt = bolt
        self._ends: list[Callable[[], None]] = []

    def serve(self, nodes: Sequence[Node], edges: Sequence[Triple], name_always: bool, own_ids: bool) -> NeptuneServer:
        database = self._bolt.new_database()
        self._bolt.load(database, nodes, edges, name_always)
        server = NeptuneServer(lambda text, **given: self._bolt.records(database, text, **given), own_ids)
        self._ends.append(server.close)
        return server

    def analytics(self, server: NeptuneServer) -> NeptuneStore:
        store = NeptuneStore(f"neptune-graph://{GRAPH}", endpoint_url=server.url)
        self._ends.append(store.close)
        return store

    def database(self, server: NeptuneServer, id_property: str | None = None) -> NeptuneStore:
        store = NeptuneStore(f"neptune-db://{server.url}", id_property=id_property)
        self._ends.append(store.close)
        return store

    def close(self) -> None:
        for end in reversed(self._ends):
            end()


@pytest.fixture
def neptunes(bolt: BoltDatabases) -> Iterator[Neptunes]:
    neptunes = Neptunes(bolt)
    yield neptunes
    neptunes.close()


class NeptuneContract(GraphStoreContract, CypherContract):
    holds_undirected = False

    @pytest.fixture
    def load(self, neptunes: Neptunes) -> Load:
        raise NotImplementedError("a subclass provides the fixture `load`")

    @pytest.fixture
    def make(self, load: Load) -> Make:
        return lambda nodes, edges: load(nodes, edges, False)

    @pytest.fixture
    def make_queryable(self, load: Load) -> MakeQueryable:
        return lambda nodes, edges: load(nodes, edges, True)

    def test_values_are_indexed_and_their_nodes_found(
        self, load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        officers = [("Ada", "Powell", 7), ("Eve", "Powell", 9), ("Ann", "Moore", 9)]
        nodes = [
            Node(EntityId(f"o{at}"), name, "Officer", {"surname": surname, "calls": calls})
            for at, (name, surname, calls) in enumerate(officers)
        ]
        store = load(nodes, [Triple(EntityId("o0"), "knows", EntityId("o1"))], True)
        index = value_index(store)
        assert [(one.type, one.property, one.value, one.count) for one in index.find("Powel")] == [
            ("Officer", "surname", "Powell", 2)
        ]
        assert [(one.value, one.count) for one in index.values("Officer", "calls")] == [(9, 2), (7, 1)]
        found = {value: nodes_holding(store, "Officer", "calls", value) for value in (7, 9, 8)}
        names = {value: sorted(one.name for one in store.nodes(store.ids(held))) for value, held in found.items()}
        assert names == {7: ["Ada"], 9: ["Ann", "Eve"], 8: []}
        assert kept_values(store) is not None

    def test_values_of_edges_are_indexed(self, load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        nodes = [Node(EntityId(f"o{at}"), f"o{at}", "Officer") for at in range(2)]
        edges = [Triple(EntityId("o0"), "knows", EntityId(f"o{at}"), properties={"met": "Leeds"}) for at in range(2)]
        index = value_index(load(nodes, edges, True), of_edges=True)
        assert [(str(one), one.count) for one in index.find("Leds")] == [("met = Leeds (on knows edges)", 2)]

    def test_nodes_without_a_name_are_named_by_a_template(self, load: Load) -> None:
        nodes = [
            Node(
                EntityId(f"o{at}"),
                f"o{at}",
                "Officer",
                {"given_name": f"Ada{at}", "surname": "Powell", "rank": "Chief"},
            )
            for at in range(3)
        ]
        store = load(nodes, [Triple(EntityId("o0"), "knows", EntityId("o1"))], False)
        assert sorted(one.name for page in store.all_nodes() for one in page) == [
            "Ada0 Powell",
            "Ada1 Powell",
            "Ada2 Powell",
        ]
        assert store.display_names == {"Officer": "{given_name} {surname}"}

    # The engine behind takes no comma in a label, and no relation called like a type; and Neptune has none of the
    # kinds of dates that this asks for.
    test_a_relation_may_be_called_like_a_type = None  # type: ignore[assignment]
    test_any_character_may_stand_in_a_relation_or_type = None  # type: ignore[assignment]
    test_dates_and_times_are_iso_8601 = None  # type: ignore[assignment]


class TestAnalytics(NeptuneContract):
    @pytest.fixture
    def load(self, neptunes: Neptunes) -> Load:
        return lambda nodes, edges, name_always: neptunes.analytics(neptunes.serve(nodes, edges, name_always, True))


class TestDatabase(NeptuneContract):
    @pytest.fixture
    def load(self, neptunes: Neptunes) -> Load:
        return lambda nodes, edges, name_always: neptunes.database(
            neptunes.serve(nodes, edges, name_always, False), id_property="id"
        )


# What is sent


#   a:Person {name: Ann} -knows {since: 1999}-> b:Person {name: Bob}
PEOPLE = (
    [Node(EntityId("a"), "Ann", "Person"), Node(EntityId("b"), "Bob", "Person")],
    [edge("a", "knows", "b", since=1999)],
)


@pytest.fixture
def people(neptunes: Neptunes) -> NeptuneServer:
    return neptunes.serve(*PEOPLE, True, True)


def test_analytics_is_told_the_parameters_and_the_time_limit(neptunes: Neptunes, people: NeptuneServer) -> None:
    store = neptunes.analytics(people)
    text = "MATCH (n {name: $name}) RETURN n.name AS x"
    parameters: dict[str, Cell] = {"name": "Ann \"`'\n😀", "list": [1, None, {"a": 0.5}]}
    assert store.run(text, parameters, QueryLimits(timeout_s=7, max_rows=5)).rows == ()
    path, content = people.requests[-1]
    assert (path, content["language"], content["parameters"]) == ("/queries", "OPEN_CYPHER", parameters)
    assert content["query"] == f"{text} LIMIT 6"
    assert 6000 < content["queryTimeoutMilliseconds"] <= 7000


def test_a_database_is_told_the_parameters_and_the_time_limit(neptunes: Neptunes, people: NeptuneServer) -> None:
    store = neptunes.database(people)
    parameters = {"name": "Ann \"`'\n😀"}
    assert store.run("RETURN $name AS x", parameters, QueryLimits(timeout_s=7)).rows == ((parameters["name"],),)
    path, content = people.requests[-1]
    assert (path, json.loads(content["parameters"])) == ("/opencypher", parameters)
    hint, limit, rest = re.fullmatch(r"(USING QUERY:TIMEOUTMILLISECONDS) (\d+) (.*)", content["query"]).groups()  # type: ignore[union-attr]
    assert 6000 < int(limit) <= 7000
    assert rest.startswith("RETURN $name AS x")
    older = NeptuneStore(f"neptune-db://{people.url}", timeout_hint=False)
    older.run("RETURN 1 AS x")
    older.close()
    assert hint not in people.requests[-1][1]["query"]


@pytest.mark.parametrize("kind", ["analytics", "database"])
def test_rows_are_cut_where_the_text_cannot_say_how_many_are_wanted(
    neptunes: Neptunes, people: NeptuneServer, kind: str
) -> None:
    store = neptunes.analytics(people) if kind == "analytics" else neptunes.database(people)
    text = "UNWIND range(1, 50) AS x RETURN x UNION ALL UNWIND range(51, 99) AS x RETURN x"
    answer = store.run(text, limits=QueryLimits(max_rows=60))
    assert (len(answer), answer.truncated) == (60, True)
    answer = store.run("UNWIND range(1, 50) AS x RETURN x LIMIT 40", limits=QueryLimits(max_rows=30))
    assert (len(answer), answer.truncated) == (30, True)
    asked = people.requests[-1][1]
    assert str(asked["query"]).endswith("LIMIT 31")


def test_entities_come_page_by_page(neptunes: Neptunes, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"n{number:02}" for number in range(25)]
    server = neptunes.serve([node(name) for name in names], [], False, True)
    monkeypatch.setattr(cypher_schema, "_NODE_PAGE", 10)
    assert list(neptunes.analytics(server).entities()) == names
    assert [content["parameters"]["after"] for _, content in server.requests] == ["", "n09", "n19", "n24"]


def test_the_ids_that_users_chose_identify_nodes(neptunes: Neptunes, people: NeptuneServer) -> None:
    store = neptunes.analytics(people)
    assert store.nodes(ids("b"))[0] == PEOPLE[0][1]
    ((row,),) = store.run("MATCH p = (a)-[r]->(b) RETURN p").rows
    assert isinstance(row, PathCell)
    assert [cell.name for cell in row.nodes] == ["Ann", "Bob"]
    assert row.edges == (EdgeCell(EntityId("a"), "knows", EntityId("b"), {"since": 1999}),)
    assert store.run("MATCH (a)-[r]->(b) RETURN [a, b] AS l").rows == ((row.nodes,),)


@pytest.mark.parametrize("kind", ["analytics", "database"])
@pytest.mark.parametrize("statistics", [True, False])
def test_the_schema_comes_from_the_summary_or_from_queries_where_there_is_none(
    neptunes: Neptunes, people: NeptuneServer, kind: str, statistics: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, *others = cypher_schema.read_schema.__defaults__ or ()
    monkeypatch.setattr(cypher_schema.read_schema, "__defaults__", (0, *others))  # as for a large graph
    people.statistics = statistics
    store = neptunes.analytics(people) if kind == "analytics" else neptunes.database(people)
    schema = store.schema()
    assert schema.node_types == {"Person": 2}
    (knows,) = schema.relations
    assert replace(knows, property_details=()) == RelationSchema("knows", 1, ("Person",), ("Person",), ("since",))
    assert [detail.name for detail in knows.property_details] == ["since"]
    paths = [path for path, _ in people.requests]
    assert ("/summary" if kind == "analytics" else "/propertygraph/statistics/summary") in paths


# What goes wrong


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again without much of a pause."""
    monkeypatch.setattr(base, "_FIRST_PAUSE_S", 0.002)


THROTTLED = Fault.error(429, "ThrottlingException", message="Rate exceeded")
BUSY = Fault.error(429, "TooManyRequestsException", detailedMessage="Too many")


@pytest.mark.parametrize(
    "fault",
    [
        THROTTLED,
        BUSY,
        Fault(429, b""),
        Fault(503, b"<html>busy</html>"),
        Fault(502, b""),
        Fault.error(500, "InternalServerException", message="Oops"),
        Fault(200, b'{"results": [{"x"', cut=True),
        Fault(200, b"", cut=True),
    ],
)
@pytest.mark.parametrize("kind", ["analytics", "database"])
def test_what_passes_is_tried_again_and_what_stays_is_unavailable(
    neptunes: Neptunes, people: NeptuneServer, quick: None, kind: str, fault: Fault
) -> None:
    store = neptunes.analytics(people) if kind == "analytics" else neptunes.database(people)
    store.schema()
    people.faults.extend([fault, fault])
    assert store.run("RETURN 1 AS x").rows == ((1,),)
    people.faults.extend([fault] * 20)
    start = time.monotonic()
    with pytest.raises(StoreUnavailable) as caught:
        store.run("RETURN 1 AS x", limits=QueryLimits(timeout_s=4))
    assert caught.value.retryable
    assert time.monotonic() - start < 15
    people.faults.clear()
    assert store.run("RETURN 1 AS x").rows == ((1,),)


@pytest.mark.parametrize(
    ("service", "fault", "kind"),
    [
        ("analytics", Fault.error(422, "UnprocessableException", message="m", reason="QUERY_TIMEOUT"), QueryTimeout),
        ("analytics", Fault.error(422, "UnprocessableException", reason="MEMORY_LIMIT_EXCEEDED"), QueryTooLarge),
        ("analytics", Fault.error(400, "ValidationException", message="near 'x'"), QueryInvalid),
        ("analytics", Fault.error(400, "ValidationException", reason="QUERY_TOO_LARGE"), QueryTooLarge),
        ("analytics", Fault.error(403, "AccessDeniedException", message="not authorized"), ConfigError),
        ("analytics", Fault.error(404, "ResourceNotFoundException", message="no graph"), ConfigError),
        ("database", Fault.error(500, "TimeLimitExceededException", detailedMessage="m"), QueryTimeout),
        ("database", Fault.error(500, "MemoryLimitExceededException", detailedMessage="m"), QueryTooLarge),
        ("database", Fault.error(400, "MalformedQueryException", detailedMessage="near 'x'"), QueryInvalid),
        ("database", Fault.error(400, "ReadOnlyViolationException", detailedMessage="writes"), QueryRefused),
        ("database", Fault.error(500, "FailureByQueryException", detailedMessage="m"), QueryFailed),
        ("database", Fault.error(403, "AccessDeniedException", detailedMessage="no"), ConfigError),
        *(
            (service, Fault(200, body), StoreUnavailable)
            for service in ("analytics", "database")
            for body in (b"not json", b'{"answers": []}', b'{"results": 7}', b'{"results": [7]}')
        ),
    ],
)
def test_what_neptune_answers_becomes_one_of_our_errors(
    neptunes: Neptunes, people: NeptuneServer, quick: None, service: str, fault: Fault, kind: type[Exception]
) -> None:
    store = neptunes.analytics(people) if service == "analytics" else neptunes.database(people)
    store.schema()
    people.faults.extend([fault] * 20)
    with pytest.raises(kind) as caught:
        store.run("RETURN 1 AS x")
    assert type(caught.value) is kind
    if kind is QueryInvalid:
        assert "near 'x'" in str(caught.value)


@pytest.mark.parametrize("kind", ["analytics", "database"])
def test_a_server_that_does_not_answer_in_time_does_not_hold_the_caller(
    neptunes: Neptunes, people: NeptuneServer, kind: str
) -> None:
    store = neptunes.analytics(people) if kind == "analytics" else neptunes.database(people)
    store.schema()
    people.faults.append(Fault(200, b'{"results": []}', delay_s=8))
    start = time.monotonic()
    with pytest.raises(QueryTimeout, match=r"0\.5 s"):
        store.run("RETURN 1 AS x", limits=QueryLimits(timeout_s=0.5))
    assert time.monotonic() - start < 7
    assert store.run("RETURN 1 AS x").rows == ((1,),)


def test_an_answer_that_is_too_large_is_not_read_to_its_end(
    neptunes: Neptunes, people: NeptuneServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = neptunes.analytics(people)
    store.schema()
    monkeypatch.setattr(neptune, "MAX_ANSWER_MB", 1)
    people.faults.append(Fault(200, b'{"results": [' + b"1," * (1 << 20) + b"1]}"))
    with pytest.raises(QueryTooLarge, match="1 MB"):
        store.run("RETURN 1 AS x")


def test_a_wrong_secret_is_a_setting_to_correct_and_is_not_repeated(
    neptunes: Neptunes, people: NeptuneServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "sesame-open-up")
    store = neptunes.analytics(people)
    with pytest.raises(ConfigError, match="InvalidSignatureException") as caught:
        store.run("RETURN 1 AS x")
    assert "sesame" not in f"{caught.value} {store!r} {vars(store)}"


def test_without_credentials_or_region_the_missing_one_is_named(
    people: NeptuneServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with (
        NeptuneStore(f"neptune-graph://{GRAPH}", endpoint_url=people.url) as store,
        pytest.raises(ConfigError, match="AWS_PROFILE"),
    ):
        store.run("RETURN 1 AS x")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with NeptuneStore(f"neptune-db://{people.url}") as store, pytest.raises(ConfigError, match="AWS_REGION"):
        store.run("RETURN 1 AS x")


def test_a_server_that_is_not_there_is_unavailable(people: NeptuneServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with NeptuneStore(f"neptune-db://http://127.0.0.1:{port}") as store:
        assert store.name == f"neptune-db://127.0.0.1:{port}"
        with pytest.raises(StoreUnavailable):
            store.run("RETURN 1 AS x")


def test_without_boto3_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(MissingExtra, match=r"byokg\[neptune\]"):
        NeptuneStore(f"neptune-graph://{GRAPH}")


# With boto3's own Stubber, which checks requests and answers against Amazon's models


SUMMARY: dict[str, Any] = {"numNodes": 2, "numEdges": 1, "nodeLabels": ["airport"], "edgeLabels": ["route"]}
# an answer in Neptune's own words, from its documentation
SEATTLE = {"~id": "22", "~entityType": "node", "~labels": ["airport"], "~properties": {"code": "SEA", "runways": 3}}
ROUTE = {
    "~id": "7389",
    "~entityType": "relationship",
    "~start": "22",
    "~end": "151",
    "~type": "route",
    "~properties": {"dist": 956},
}
NODES: list[dict[str, Any]] = [{"labels": ["airport"], "keys": ["code", "runways"], "count": 2}]
NODE_VALUES: list[dict[str, Any]] = [{"name": "airport", "held": {"code": "SEA", "runways": 3}}]
EDGE_VALUES: list[dict[str, Any]] = [{"name": "route", "held": {"dist": 956}}]
EDGES: list[dict[str, Any]] = [
    {"type": "route", "head": ["airport"], "tail": ["airport"], "keys": ["dist"], "count": 1}
]


def payload(rows: list[Any]) -> StreamingBody:
    body = json.dumps({"results": rows}).encode()
    return StreamingBody(io.BytesIO(body), len(body))


def test_analytics_keeps_to_the_model_of_its_service() -> None:
    client = boto3.client("neptune-graph")
    with Stubber(client) as stub:
        stub.add_response("get_graph_summary", {"graphSummary": SUMMARY}, {"graphIdentifier": GRAPH, "mode": "BASIC"})
        expected = {"graphIdentifier": GRAPH, "language": "OPEN_CYPHER", "queryTimeoutMilliseconds": ANY}
        ours = {"queryString": ANY, "parameters": {}}
        for rows in (NODES, EDGES):
            stub.add_response("execute_query", {"payload": payload(rows)}, {**expected, **ours})
        for rows in (NODE_VALUES, EDGE_VALUES):
            stub.add_response("execute_query", {"payload": payload(rows)}, {**expected, **ours, "parameters": ANY})
        stub.add_client_error("execute_query", "ThrottlingException", "slow down", 429)
        text = "MATCH (n)-[r]->() RETURN n, r"
        asked = {**expected, "queryString": f"{text} LIMIT 1001", "parameters": {"x": 1}}
        stub.add_response("execute_query", {"payload": payload([{"n": SEATTLE, "r": ROUTE}])}, asked)
        sample = [{"properties(n)": {"code": "SEA", "runways": 3}}]
        stub.add_response("execute_query", {"payload": payload(sample)}, {**expected, **ours})
        store = NeptuneStore(f"neptune-graph://{GRAPH}", client=client)
        assert store.schema().node_types
        answer = store.run(text, {"x": 1})
        stub.assert_no_pending_responses()
    assert answer.columns == ("n", "r")
    node_cell = NodeCell(EntityId("22"), "SEA", "airport", {"code": "SEA", "runways": 3})
    assert answer.rows == ((node_cell, EdgeCell(EntityId("22"), "route", EntityId("151"), {"dist": 956})),)


def test_a_database_keeps_to_the_model_of_its_service() -> None:
    client = boto3.client("neptunedata", endpoint_url="https://localhost:8182")
    with Stubber(client) as stub:
        asked = {"openCypherQuery": ANY, "parameters": "{}"}
        stub.add_response("get_propertygraph_summary", {"payload": {"graphSummary": SUMMARY}}, {"mode": "basic"})
        for rows in (NODES, EDGES):
            stub.add_response("execute_open_cypher_query", {"results": rows}, asked)
        for rows in (NODE_VALUES, EDGE_VALUES):
            stub.add_response("execute_open_cypher_query", {"results": rows}, {**asked, "parameters": ANY})
        stub.add_client_error("execute_open_cypher_query", "TooManyRequestsException", "slow down", 429)
        stub.add_response("execute_open_cypher_query", {"results": [{"n": SEATTLE}]}, asked)
        stub.add_response("execute_open_cypher_query", {"results": []}, asked)
        store = NeptuneStore("neptune-db://localhost", client=client)
        assert store.schema().node_types
        answer = store.run("MATCH (n) RETURN n")
        stub.assert_no_pending_responses()
    assert answer.rows == ((NodeCell(EntityId("22"), "22", "airport", {"code": "SEA", "runways": 3}),),)


def test_the_address_of_a_database_gets_neptunes_port_unless_it_has_one() -> None:
    assert NeptuneStore("neptune-db://db.example.invalid").name == "neptune-db://db.example.invalid:8182"
    assert NeptuneStore("neptune-db://db.example.invalid:9000").name == "neptune-db://db.example.invalid:9000"
