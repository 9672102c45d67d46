"""The MCP server, driven by the client library of the protocol's own SDK, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

pytest.importorskip("mcp", reason="needs mcp: pip install 'byokg[mcp]'")

import httpx2 as httpx
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from byokg.cli.main import main
from byokg.cli.mcp import commands
from byokg.cli.mcp.commands import INTERRUPTED, TOKEN, _opened, _starting
from byokg.cli.mcp.server import SCHEMA_URI, GraphServer, Served
from byokg.cli.terminal import WRONG
from byokg.errors import ConfigError, MissingExtra
from byokg.graph.cancellation import check
from byokg.graph.columnar.folder import ENGINE_FOLDERS
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.servers.sparql import SparqlEndpoint
from byokg.graph.store import Direction, InducedEdges, NodeArray
from byokg.retrieval.graph_tools import GraphTools

CLIENTS = 16
HUB_EDGES = 3000
SECRET = "tok3n-of-this-test"
TRIPLES = [
    *((f"spoke {n}", "touches", "hub") for n in range(HUB_EDGES)),
    *((f"client {n}", "owns", f"thing {n}") for n in range(CLIENTS)),
]
"""spoke 0 … 2999 -touches-> hub; client n -owns-> thing n"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mcp") / "graph"
    ColumnarGraph.from_triples(TRIPLES).save(folder)
    return folder


@dataclass(frozen=True)
class Running:
    """A server in a process of its own."""

    url: str
    process: subprocess.Popen[str]
    log: list[str]


def started(graph: Path, *options: str, **environment: str) -> Running:
    command = [sys.executable, "-m", "byokg", "mcp", "serve", str(graph), "--http", "--port", "0", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
    assert process.stderr is not None
    first = process.stderr.readline()
    log = [first]
    threading.Thread(target=log.extend, args=(process.stderr,), daemon=True).start()
    assert "serving at http://127.0.0.1:" in first, first
    return Running(first.split()[2].removesuffix(";"), process, log)


def ended(server: Running) -> int:
    server.process.send_signal(signal.SIGTERM)
    return server.process.wait(timeout=120)


@pytest.fixture(scope="module")
def server(graph: Path) -> Iterator[Running]:
    running = started(graph)
    yield running
    if running.process.poll() is None:
        ended(running)


def text_of(result: Any) -> str:
    [content] = result.content
    return str(content.text)


async def asked(client: Client, tool: str, arguments: dict[str, Any]) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    return json.loads(text_of(result))


def test_stdio_offers_the_tools_the_schema_and_instructions_and_ends_with_its_input(graph: Path) -> None:
    async def talk() -> None:
        parameters = StdioServerParameters(
            command=sys.executable, args=["-m", "byokg", "mcp", "serve", str(graph)], env=dict(os.environ)
        )
        async with Client(stdio_client(parameters)) as client:
            assert "describe_schema" in (client.instructions or "")
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert list(tools) == [
                *("describe_schema", "search_entities", "bfs_query", "neighbors", "describe_entity"),
                *("intersect_subgraphs", "shortest_paths", "path_query"),
            ]
            assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
            assert set(tools["bfs_query"].input_schema["required"]) == {"seeds"}
            assert client.server_info is not None and client.server_info.version
            found = await asked(client, "search_entities", {"query": "thing 3", "limit": 1})
            assert found["matches"][0]["id"] == "thing 3"
            schema = await client.read_resource(SCHEMA_URI)
            assert "touches" in schema.contents[0].text  # type: ignore[union-attr]
            with pytest.raises(MCPError, match=SCHEMA_URI):
                await client.read_resource("byokg://other")

    asyncio.run(talk())


def test_ctrl_c_ends_stdio_though_its_input_is_open(graph: Path) -> None:
    command = [sys.executable, "-m", "byokg", "mcp", "serve", str(graph)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stderr is not None
    assert "standard input" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=120) == INTERRUPTED
    assert process.stderr.read() == ""
    process.stdin.close()


def test_a_folder_with_an_engine_answers_queries(tmp_path: Path) -> None:
    pytest.importorskip("arcadedb_embedded", reason="needs arcadedb-embedded: pip install 'byokg[cypher]'")
    from byokg.graph.engines.arcadedb import build_arcade

    build_arcade(ColumnarGraph.from_triples(TRIPLES[-3:]), tmp_path / "graph")

    async def talk() -> None:
        parameters = StdioServerParameters(
            command=sys.executable, args=["-m", "byokg", "mcp", "serve", str(tmp_path / "graph")], env=dict(os.environ)
        )
        async with Client(stdio_client(parameters)) as client:
            rows = await asked(client, "run_query", {"query": "MATCH (:Entity)-[r]->() RETURN count(r) AS n"})
            assert (rows["columns"], rows["rows"]) == (["n"], [[3]])
            refused = await client.call_tool("run_query", {"query": "MATCH (n) DETACH DELETE n"})
            assert refused.is_error and "only reading" in text_of(refused)

    asyncio.run(talk())


def test_clients_at_the_same_time_get_their_own_answers(server: Running) -> None:
    async def one(number: int) -> None:
        async with Client(server.url) as client:
            for _ in range(3):
                own = await asked(client, "bfs_query", {"seeds": [f"client {number}"], "max_hops": 1})
                assert [node["id"] for node in own["nodes"]] == [f"client {number}", f"thing {number}"]
                hub = await asked(client, "bfs_query", {"seeds": ["hub"], "max_hops": 1, "limit": 5})
                assert hub["node_count"] == HUB_EDGES + 1 and len(hub["nodes"]) == 5
                wrong = await client.call_tool("bfs_query", {"seeds": [f"client {number}"], "max_hopz": 1})
                assert wrong.is_error and "max_hopz" in text_of(wrong)
                unknown = await client.call_tool("drop_graph", {})
                assert unknown.is_error and "no tool 'drop_graph'" in text_of(unknown)

    async def everyone() -> None:
        await asyncio.gather(*(one(number) for number in range(CLIENTS)))

    asyncio.run(everyone())
    assert server.process.poll() is None


def test_calls_that_are_given_up_disturb_nobody(server: Running) -> None:
    async def talk() -> None:
        async with Client(server.url) as client:
            for _ in range(20):
                call = asyncio.create_task(client.call_tool("bfs_query", {"seeds": ["hub"], "max_hops": 2}))
                await asyncio.sleep(0.002)
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)
            own = await asked(client, "bfs_query", {"seeds": ["client 1"], "max_hops": 1})
            assert own["node_count"] == 2

    asyncio.run(talk())


def test_what_is_not_the_protocol_is_refused_and_the_server_stays(server: Running) -> None:
    with httpx.Client(trust_env=False) as client:
        assert client.post(server.url, content=b"{not json", headers={"accept": "application/json"}).status_code >= 400
        foreign = client.post(server.url, json={}, headers={"host": "evil.example"})
        assert foreign.status_code in (403, 421)
        assert client.get(server.url.removesuffix("/mcp") + "/other").status_code == 404
    assert server.process.poll() is None


def test_logs_are_json_without_what_was_asked_or_found(graph: Path) -> None:
    running = started(graph)

    async def talk() -> None:
        async with Client(running.url) as client:
            await asked(client, "search_entities", {"query": "thing 7"})
            await client.call_tool("bfs_query", {"seedz": ["no such seed"]})
            await client.call_tool("no such tool", {})

    asyncio.run(talk())
    with httpx.Client(trust_env=False) as client:
        client.post(running.url, json={}, headers={"host": "evil.example"})  # the protocol's library quotes it
    assert ended(running) in (0, -signal.SIGTERM)
    time.sleep(0.2)
    lines = [json.loads(line) for line in running.log[1:]]
    assert [(line["tool"], line["outcome"]) for line in lines if line["event"] == "call"] == [
        ("search_entities", "ok"),
        ("bfs_query", "RequestInvalid"),
        ("unknown", "RequestInvalid"),
    ]
    assert "evil" not in "".join(running.log)
    assert "thing" not in "".join(running.log[1:]) and "no such" not in "".join(running.log[1:])


def test_a_token_keeps_others_out(graph: Path) -> None:
    running = started(graph, **{TOKEN: SECRET})

    async def talk(token: str) -> int:
        http = httpx.AsyncClient(headers={"authorization": f"Bearer {token}"}, trust_env=False)
        async with http, Client(streamable_http_client(running.url, http_client=http)) as client:
            return len((await client.list_tools()).tools)

    try:
        with httpx.Client(trust_env=False) as client:
            for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {SECRET}"}):
                refused = client.post(running.url, json={}, headers=headers)
                assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
            lower = client.post(running.url, json={}, headers={"authorization": f"bearer {SECRET}"})
            assert lower.status_code != 401
        assert asyncio.run(talk(SECRET)) == 8
    finally:
        ended(running)
    assert SECRET not in "".join(running.log)


def test_beyond_this_machine_only_with_a_token(
    graph: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    assert main(["mcp", "serve", str(graph), "--http", "--host", "0.0.0.0"]) == WRONG
    assert f"set {TOKEN}" in capsys.readouterr().err


class Broken(ColumnarGraph):
    """Fails with what it holds in the text of the error."""

    def edges_among(self, nodes: NodeArray, direction: Direction = Direction.OUT) -> InducedEdges:
        raise KeyError("thing 15")


def test_a_bug_is_logged_by_place_and_told_by_class_without_data(caplog: pytest.LogCaptureFixture) -> None:
    store = Broken.from_triples(TRIPLES[-2:])
    server = GraphServer([Served("test", store, GraphTools(store))], timeout_s=5)

    async def talk() -> None:
        async with Client(server.server) as client:
            failed = await client.call_tool("bfs_query", {"seeds": ["client 15"], "max_hops": 1})
            assert failed.is_error and "KeyError" in text_of(failed) and "thing" not in text_of(failed)

    asyncio.run(talk())
    server.close()
    [bug] = [json.loads(record.getMessage()) for record in caplog.records if record.levelname == "ERROR"]
    assert (bug["event"], bug["outcome"]) == ("bug", "KeyError") and bug["at"][-1].startswith("test_mcp.py:")
    assert "thing" not in caplog.text


def test_clients_that_come_and_go_leave_nothing_behind(graph: Path) -> None:
    running = started(graph)
    process = Path(f"/proc/{running.process.pid}")
    if not process.exists():
        pytest.skip("counts open files, as Linux lists them")

    async def once(number: int) -> None:
        async with Client(running.url) as client:
            await asked(client, "bfs_query", {"seeds": ["hub"], "max_hops": 1, "limit": 5})

    async def everyone() -> None:
        await asyncio.gather(*(once(number) for number in range(CLIENTS)))

    def held() -> tuple[int, int]:
        return len(list((process / "fd").iterdir())), len(list((process / "task").iterdir()))

    asyncio.run(everyone())
    before = held()
    for _ in range(3):
        asyncio.run(everyone())
    files, threads = held()
    assert files <= before[0] + 2
    assert threads <= max(before[1] + 2, CLIENTS + 4)  # on a busy machine the pool is not full at the first count
    ended(running)


class Slow(ColumnarGraph):
    """Reads edges once it is let go on."""

    let_go = threading.Event()

    def edges_among(self, nodes: NodeArray, direction: Direction = Direction.OUT) -> InducedEdges:
        self.let_go.wait(60)
        return super().edges_among(nodes)


def test_a_call_ends_in_time_and_the_next_one_is_answered() -> None:
    Slow.let_go.clear()
    store = Slow.from_triples(TRIPLES[-2:])
    server = GraphServer([Served("test", store, GraphTools(store))], timeout_s=1.5, threads=2)

    async def talk() -> None:
        async with Client(server.server) as client:
            late = await client.call_tool("bfs_query", {"seeds": ["client 15"], "max_hops": 1})
            assert late.is_error and "longer than 1.5 s" in text_of(late)
            described = await asked(client, "search_entities", {"query": "client 15"})
            assert described["matches"][0]["id"] == "client 15"

    try:
        asyncio.run(talk())
    finally:
        Slow.let_go.set()
    server.close()


class Endless(ColumnarGraph):
    """Has an edge more whenever it is asked, until nobody waits any more."""

    ended = threading.Event()

    def edges_among(self, nodes: NodeArray, direction: Direction = Direction.OUT) -> InducedEdges:
        try:
            while True:
                check()
                time.sleep(0.001)
        finally:
            self.ended.set()


def test_nobody_waits_for_the_schema_of_a_server_at_the_start() -> None:
    # Nothing listens at this address, and the server of the tools says what it serves all the same.
    with SparqlEndpoint("http://127.0.0.1:9/sparql", timeout_s=0.1) as store:
        store.read_ahead()
        server = GraphServer([Served("far", store, GraphTools(store))])
        assert "the knowledge graph far" in (server.server.instructions or "")
        server.close()


def test_the_thread_of_a_call_that_is_given_up_ends() -> None:
    store = Endless.from_triples(TRIPLES[-2:])
    server = GraphServer([Served("test", store, GraphTools(store))], threads=1)

    async def talk() -> None:
        async with Client(server.server) as client:
            call = asyncio.create_task(client.call_tool("bfs_query", {"seeds": ["client 15"]}))
            await asyncio.sleep(0.2)
            assert not Endless.ended.is_set()
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            assert await asyncio.to_thread(Endless.ended.wait, 10)
            assert (await asked(client, "search_entities", {"query": "client 15"}))["matches"]

    asyncio.run(talk())
    server.close()


def test_whoever_wants_to_know_hears_that_a_call_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("byokg.cli.mcp.server._BEAT_S", 0.05)
    Slow.let_go.clear()
    store = Slow.from_triples(TRIPLES[-2:])
    server = GraphServer([Served("test", store, GraphTools(store))])
    heard: list[float] = []

    async def told(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)
        Slow.let_go.set()

    async def talk() -> None:
        async with Client(server.server) as client:
            await client.call_tool("bfs_query", {"seeds": ["client 15"]}, progress_callback=told)

    asyncio.run(talk())
    server.close()
    assert heard and heard == sorted(heard)


@pytest.fixture(scope="module")
def two() -> Iterator[GraphServer]:
    one, other = ColumnarGraph.from_triples(TRIPLES[-3:]), ColumnarGraph.from_triples([("a/b", "likes", "Vienna")])
    graphs = [Served(name, store, GraphTools(store)) for name, store in (("things", one), ("likes", other))]
    server = GraphServer(graphs)
    yield server
    server.close()


def test_calls_name_one_of_several_graphs_and_mean_the_first_otherwise(two: GraphServer) -> None:
    async def talk() -> None:
        async with Client(two.server) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            properties = listed["bfs_query"].input_schema["properties"]
            assert properties["graph"]["enum"] == ["things", "likes"] and len(properties) <= 8
            assert (await asked(client, "bfs_query", {"seeds": "client 15"}))["node_count"] == 2
            found = await asked(client, "neighbors", {"id": "a/b", "graph": "likes"})
            assert found["values"][0]["values"] == [{"id": "Vienna"}]
            wrong = await client.call_tool("neighbors", {"id": "a/b", "graph": "none"})
            assert wrong.is_error and "there are things, likes" in text_of(wrong)

    asyncio.run(talk())


def test_results_are_structured_as_the_output_schema_says(two: GraphServer) -> None:
    async def talk() -> None:
        async with Client(two.server) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            result = await client.call_tool("bfs_query", {"seeds": ["client 15", "nobody"]})
            assert result.structured_content == json.loads(text_of(result))
            jsonschema.validate(result.structured_content, listed["bfs_query"].output_schema or {})

    asyncio.run(talk())


def test_entities_are_resources_by_a_template(two: GraphServer) -> None:
    async def talk() -> None:
        async with Client(two.server) as client:
            templates = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
            assert templates == ["byokg://entity/things/{id}", "byokg://entity/likes/{id}"]
            found = await client.read_resource("byokg://entity/likes/a%2Fb")
            assert json.loads(found.contents[0].text)["values"][0]["predicate"] == "likes"  # type: ignore[union-attr]
            with pytest.raises(MCPError, match="no node has the id 'nobody'"):
                await client.read_resource("byokg://entity/likes/nobody")
            schema = await client.read_resource("byokg://schema/likes")
            assert "likes" in schema.contents[0].text  # type: ignore[union-attr]

    asyncio.run(talk())


def test_a_prompt_says_how_to_explore_and_its_arguments_are_completed(two: GraphServer) -> None:
    async def talk() -> None:
        async with Client(two.server) as client:
            [prompt] = (await client.list_prompts()).prompts
            given = {"question": "Who likes Vienna?", "entity": "Vienna", "graph": "likes"}
            [message] = (await client.get_prompt(prompt.name, given)).messages
            text = message.content.text  # type: ignore[union-attr]
            assert "graph likes: Who likes Vienna?" in text and "entity Vienna" in text and "neighbors" in text
            with pytest.raises(MCPError, match="takes a question"):
                await client.get_prompt(prompt.name, {})

            async def completed(ref: Any, name: str, value: str, **chosen: str) -> list[str]:
                found = await client.complete(ref, {"name": name, "value": value}, context_arguments=chosen)
                return found.completion.values

            explore = PromptReference(name="explore")
            assert "client 15" in await completed(explore, "entity", "client", graph="things")
            assert await completed(explore, "predicate", "like", graph="likes") == ["likes"]
            assert await completed(explore, "graph", "thin") == ["things"]
            template = ResourceTemplateReference(uri="byokg://entity/likes/{id}")
            assert await completed(template, "id", "Vien") == ["Vienna"]

    asyncio.run(talk())


def test_health_is_told_without_a_token_and_pages_of_other_sites_are_let_in_by_setting(graph: Path) -> None:
    running = started(graph, "--cors", "https://example.org", **{TOKEN: SECRET})
    try:
        with httpx.Client(trust_env=False) as client:
            health = client.get(running.url.replace("/mcp", "/health"))
            assert health.json()["status"] == "ok" and health.json()["version"]
            asks = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
            mine = client.options(running.url, headers={"origin": "https://example.org", **asks})
            assert mine.headers["access-control-allow-origin"] == "https://example.org"
            other = client.options(running.url, headers={"origin": "https://evil.example", **asks})
            assert "access-control-allow-origin" not in other.headers
    finally:
        ended(running)


@pytest.mark.parametrize("over", ["http", "stdio"])
def test_sigterm_ends_it_though_calls_run(graph: Path, over: str) -> None:
    if over == "http":
        running = started(graph)
        assert ended(running) in (0, -signal.SIGTERM)
        return
    command = [sys.executable, "-m", "byokg", "mcp", "serve", str(graph)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stderr is not None
    assert "standard input" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == 128 + signal.SIGTERM
    process.stdin.close()


def test_a_package_that_is_too_old_is_refused_with_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "version", lambda package: "1.30.0")
    with pytest.raises(ConfigError, match=r"mcp 1\.30\.0 is installed.*needs 2"):
        commands._refuse_other_mcp()


def test_a_folder_whose_engine_is_not_installed_is_served_without_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ColumnarGraph.from_triples(TRIPLES[-3:]).save(tmp_path / "graph")
    (tmp_path / "graph" / ENGINE_FOLDERS["cypher"]).mkdir()

    def missing(languages: Any) -> None:
        raise MissingExtra("arcadedb_embedded", "cypher", "the engine")

    monkeypatch.setattr("byokg.open.refuse_missing", missing)
    with ExitStack() as stack:
        place = str(tmp_path / "graph")
        engines = _starting(place, stack)
        served = _opened(place, {}, engines, stack, GraphTools)
        assert "run_query" not in served.tools.tools
        assert served.tools.call("bfs_query", {"seeds": ["client 15"]})["node_count"] == 2
    assert "served without run_query for cypher" in capsys.readouterr().err
