"""Tests of the local server itself, where other tests do not show what it does: batches, with Anthropic's SDK."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.llm.servers.model_server import SECRET, ModelServer

if TYPE_CHECKING:
    import anthropic

ROOT = Path(__file__).resolve().parents[2]


def requests(*texts: str) -> list[Any]:
    """Return the requests of a batch."""
    return [
        {
            "custom_id": f"id-{number}",
            "params": {"model": "claude-test", "max_tokens": 9, "messages": [{"role": "user", "content": text}]},
        }
        for number, text in enumerate(texts)
    ]


@pytest.fixture
def client(server: ModelServer) -> anthropic.Anthropic:
    """Anthropic's own client."""
    import anthropic  # takes a second, which collection spares

    return anthropic.Anthropic(api_key=SECRET, base_url=server.url, max_retries=0)


def test_a_batch_is_created_polled_and_fetched(server: ModelServer, client: anthropic.Anthropic) -> None:
    import anthropic

    server.batches.looks = 3  # the client looks once more before it fetches results
    server.batches.fails = {"id-1": "errored", "id-2": "expired"}
    batch = client.messages.batches.create(requests=requests("one", "two", "three"))
    assert batch.processing_status == "in_progress"
    assert batch.request_counts.processing == 3
    assert client.messages.batches.retrieve(batch.id).processing_status == "in_progress"
    with pytest.raises(anthropic.AnthropicError):
        list(client.messages.batches.results(batch.id))
    ended = client.messages.batches.retrieve(batch.id)
    assert (ended.processing_status, ended.request_counts.succeeded) == ("ended", 1)
    results = {each.custom_id: each.result for each in client.messages.batches.results(batch.id)}
    assert {id: result.type for id, result in results.items()} == {
        "id-0": "succeeded",
        "id-1": "errored",
        "id-2": "expired",
    }
    message: Any = results["id-0"]
    assert message.message.content[0].text == server.answer(server.batches.all[batch.id].requests["id-0"]).text
    assert [each.id for each in client.messages.batches.list()] == [batch.id]


def test_a_cancelled_batch_ends(client: anthropic.Anthropic) -> None:
    batch = client.messages.batches.create(requests=requests("one"))
    assert client.messages.batches.cancel(batch.id).processing_status == "ended"
    assert [each.result.type for each in client.messages.batches.results(batch.id)] == ["canceled"]


def test_batches_want_the_key_unique_ids_and_a_known_id(server: ModelServer, client: anthropic.Anthropic) -> None:
    import anthropic

    with pytest.raises(anthropic.BadRequestError, match="unique"):
        client.messages.batches.create(requests=requests("one") * 2)
    with pytest.raises(anthropic.NotFoundError):
        client.messages.batches.retrieve("msgbatch_none")
    with pytest.raises(anthropic.AuthenticationError):
        anthropic.Anthropic(api_key="wrong", base_url=server.url, max_retries=0).messages.batches.list()


def test_it_runs_in_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "tests.llm.servers.model_server", "--faults", "drop", "--rate", "0"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdin is not None
    counts = httpx.get(f"{process.stdout.readline().strip()}/counts").json()
    assert counts == {"requests": 0, "answered": 0, "prompts": 0, "again": 0, "most_at_once": 0, "faults": {}}
    process.stdin.close()
    assert process.wait(20) == 0
    process.stdout.close()


def test_what_nobody_should_ask_for_is_remembered(server: ModelServer) -> None:
    assert httpx.get(f"{server.url}/v2/complete").status_code == 404
    assert server.unexpected == ["GET /v2/complete"]
