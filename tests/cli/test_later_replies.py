"""Tests of evaluations whose replies come later: from another machine, and in batches."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from byokg.evaluation.records import PREDICTIONS, TRACE
from byokg.evaluation.run_folder import METRICS_FILE
from tests.cli.conftest import PROGRAM, ROOT, Run
from tests.cli.test_recorded_calls import spent, traced
from tests.llm.elsewhere import reply_to
from tests.llm.servers.model_server import SECRET, ModelServer, serving
from tests.llm.servers.protocols import Answered

ROUNDS = ("pipeline=byokg", "pipeline.retrievers.agentic=null")
"""Two rounds of the KG-Linker, then the answer; the other machine knows no more than these."""

BATCH = ("llm=anthropic", "llm.model=claude-test", "llm.batch=true")


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """Anthropic's API, with a model that answers like the other machine."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    with serving(lambda asked: Answered(reply_to("\n".join(text for _, text in asked.messages)))) as server:
        yield server


def words(folder: Path, *more: str, out: str = "run") -> list[str]:
    data = ("dataset=folder", f"dataset.root={folder}", f"out={out}", "workers=2")
    return ["eval", *ROUNDS, *data, *more]


def deferred(folder: Path, provider: str = "anthropic", out: str = "run") -> list[str]:
    return words(folder, "llm=deferred", f"llm.provider={provider}", "llm.model=claude-test", out=out)


def files(run: Path) -> list[bytes]:
    return [(run / name).read_bytes() for name in (PREDICTIONS, TRACE, METRICS_FILE)]


@pytest.mark.parametrize("layout", ["own", "anthropic", "openai"])
def test_a_run_goes_on_with_replies_from_another_machine_until_it_is_complete(
    byokg: Run, films: Path, layout: str
) -> None:
    file = {"own": "requests.jsonl"}.get(layout, f"requests.{layout}.jsonl")
    passes = 0
    while (outcome := byokg(*deferred(films))).code == 3:
        passes += 1
        pending = len(Path("run/requests", file).read_text("utf-8").splitlines())
        assert f"{pending} replies pending" in outcome.err
        subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.llm.elsewhere",
                f"{os.getcwd()}/run/requests/{file}",
                "replies.jsonl",
                layout,
            ],
            check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert byokg("cache", "import", "replies.jsonl").code == 0
    # Two rounds of the KG-Linker, whose second names an entity that the first did not, and the answer.
    assert outcome.code == 0 and passes == 3
    predictions = [json.loads(line) for line in Path("run", PREDICTIONS).read_text("utf-8").splitlines()]
    assert [prediction["answers"] for prediction in predictions] == [["Michael Mann"]] * 3
    trace = [json.loads(line) for line in Path("run", TRACE).read_text("utf-8").splitlines()]
    assert {len(line["rounds"]) for line in trace} == {2} and {len(line["calls"]) for line in trace} == {3}
    assert not Path("run/requests").exists()
    assert byokg("cache", "stats").out.count("pending") == 0


def test_a_batch_run_asks_stage_by_stage_and_ends_like_one_that_asks_at_once(
    byokg: Run, films: Path, service: ModelServer
) -> None:
    address = f"llm.base_url={service.url}"
    batched = byokg(*words(films, *BATCH, address, "replies.path=batch.sqlite", out="batched"))
    assert batched.code == 0
    assert [len(batch.requests) for batch in service.batches.all.values()] == [3, 3, 3]
    at_once = ("llm=anthropic", "llm.model=claude-test", address, "replies.path=once.sqlite")
    assert byokg(*words(films, *at_once, out="once")).code == 0
    assert files(Path("batched")) == files(Path("once"))
    assert "9 calls asked, 0 replayed" in batched.out
    assert spent(Path("batched"), "asked") == spent(Path("once"), "asked")
    assert spent(Path("batched"), "replayed").total() == 0 and len(traced(Path("batched"))) == 9
    assert "batch msgbatch_0001: 3 requests sent" in batched.err


def test_a_budget_stops_a_batch_run_before_it_is_sent_and_a_higher_one_continues_it(
    byokg: Run, films: Path, service: ModelServer
) -> None:
    address = f"llm.base_url={service.url}"
    outcome = byokg(*words(films, *BATCH, address, "budget=calls", "budget.max_calls=4"))
    assert outcome.code == 3 and "budget.max_calls=4 is used up" in outcome.err
    assert sum(len(batch.requests) for batch in service.batches.all.values()) == 4
    outcome = byokg(*words(films, *BATCH, address, "budget=calls", "budget.max_calls=9"))
    assert outcome.code == 0
    assert sum(len(batch.requests) for batch in service.batches.all.values()) == 9


def test_a_batch_run_that_is_killed_while_it_waits_pays_for_nothing_twice(
    byokg: Run, films: Path, service: ModelServer
) -> None:
    command = words(films, *BATCH, f"llm.base_url={service.url}")
    service.batches.looks = 10**6
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, *command], env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        for _ in range(600):
            if service.batches.all and any(batch.looks for batch in service.batches.all.values()):
                break
            time.sleep(0.1)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(service.batches.all) == 1
    service.batches.looks = 1
    outcome = byokg(*command)
    assert outcome.code == 0 and "was sent before" in outcome.err
    assert [len(batch.requests) for batch in service.batches.all.values()] == [3, 3, 3]


def test_requests_that_cannot_be_answered_fail_their_question_and_no_other(
    byokg: Run, films: Path, service: ModelServer
) -> None:
    address = f"llm.base_url={service.url}"
    byokg(*deferred(films, out="look"))
    requests = [json.loads(line) for line in Path("look/requests/requests.jsonl").read_text("utf-8").splitlines()]
    service.batches.fails = {requests[0]["id"]: "errored"}
    outcome = byokg(*words(films, *BATCH, address))
    assert outcome.code == 0 and "3 questions, 1 failed" in " ".join(outcome.out.split())
    assert "cannot be answered" in outcome.out


def test_modes_that_need_many_questions_are_refused_for_one(byokg: Run, films: Path, service: ModelServer) -> None:
    assert byokg("graph", "build", str(films), "--out", "films.graph").code == 0
    graph = ("graph.path=films.graph", *ROUNDS)
    outcome = byokg("ask", "Who directed Heat?", *graph, *BATCH)
    assert outcome.code == 2 and "use it with byokg eval" in outcome.err
    outcome = byokg("ask", "Who directed Heat?", *graph, "llm=deferred", "llm.provider=anthropic", "llm.model=m")
    assert outcome.code == 2 and "use it with byokg eval" in outcome.err
    outcome = byokg(*words(films, *BATCH, "--estimate"))
    assert outcome.code == 2 and "leave out llm.batch=true" in outcome.err


def test_an_estimate_asks_a_few_questions_whose_replies_the_run_then_has(
    byokg: Run, films: Path, service: ModelServer
) -> None:
    command = words(films, "llm=anthropic", "llm.model=claude-test", f"llm.base_url={service.url}")
    outcome = byokg(*command, "--estimate", "--sample", "2")
    assert outcome.code == 0 and "3 questions, estimated from 2" in outcome.out
    assert service.counts().requests == 6
    assert byokg(*command).code == 0
    assert service.counts().requests == 9


def test_a_missing_reply_is_an_error_that_says_what_changed(
    byokg: Run, films: Path, service: ModelServer, tmp_path: Path
) -> None:
    command = words(films, "llm=anthropic", "llm.model=claude-test", f"llm.base_url={service.url}")
    assert byokg(*command).code == 0
    replayed = byokg(*words(films, "llm=anthropic", "llm.model=claude-test", "replies.mode=replay", out="again"))
    assert replayed.code == 0 and "0 calls asked, 9 replayed" in replayed.out
    own = tmp_path / "own.md"
    text = (ROOT / "byokg/data/prompts/kg_linker.md").read_text("utf-8")
    own.write_text(text.replace("Do each of the following tasks", "Please do each of the following tasks"), "utf-8")
    changed = byokg(
        *words(films, "llm=anthropic", "llm.model=claude-test", "replies.mode=replay", out="changed"),
        f"prompts.kg_linker={own}",
    )
    assert changed.code == 2 and "ReplyMissing" in changed.out and "prompt text changed" in changed.out
    assert service.counts().requests == 9
