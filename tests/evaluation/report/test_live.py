"""Tests of `byokg.evaluation.report.live` and `server`: runs as they grow, and who is answered."""

from __future__ import annotations

import http.client
import json
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from byokg.errors import RunError
from byokg.evaluation.records import PREDICTIONS
from byokg.evaluation.report.live import LiveRuns, asker
from byokg.evaluation.report.server import ViewServer
from byokg.evaluation.report.view import asked_by, differences, summarise
from byokg.evaluation.run_folder import METRICS_FILE, PAUSED, Run
from byokg.evaluation.runner import RunSettings, run_evaluation
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from byokg.types import Answer, Question
from tests.evaluation.report.conftest import BASE, EXAMPLES, HOSTILE, Told


@pytest.fixture
def copied(folders: tuple[Path, Path], tmp_path: Path) -> Path:
    """Return a folder with copies of both runs, to be changed."""
    for folder in folders:
        shutil.copytree(folder, tmp_path / "runs" / "deeper" / folder.name)
    return tmp_path / "runs"


def unfinished(run: Path, lines: int) -> list[bytes]:
    """Take a run back to its first answers; return the lines that are still to come."""
    (run / METRICS_FILE).unlink()
    written = (run / PREDICTIONS).read_bytes().splitlines(keepends=True)
    (run / PREDICTIONS).write_bytes(b"".join(written[:lines]))
    return written[lines:]


def test_runs_are_found_in_folders_and_ranked_by_contract(copied: Path) -> None:
    runs = LiveRuns([copied])
    assert runs.look() and not runs.look()
    board = runs.leaderboard()
    assert [(run["name"], run["state"], run["done"], run["n"]) for run in board["runs"]] == [
        ("base", "finished", 5, 5),
        ("other", "finished", 5, 5),
    ]
    assert board["contracts"] == [{"runs": [0, 1], "differs": []}]
    assert board["runs"][0]["metrics"]["hit"]["value"] == 0.6
    while runs.count("rog"):
        pass
    scored = runs.leaderboard("rog")["runs"][0]
    assert set(scored["metrics"]) == set(runs.leaderboard("rog")["metrics"])
    assert scored["took"]["calls"] == 0
    with pytest.raises(RunError, match="profile 'x' is not known"):
        runs.leaderboard("x")


def test_what_a_run_records_is_seen_and_a_torn_line_is_not(copied: Path) -> None:
    run = copied / "deeper" / "base"
    rest = unfinished(run, 2)
    runs = LiveRuns([copied])
    runs.look()
    before = runs.version
    assert runs.summary(["base"])["questions"]["id"] == ["q1", "q2"]
    with (run / PREDICTIONS).open("ab") as file:
        file.write(rest[0] + rest[1][:10])
    assert runs.look() and runs.version > before
    entry = runs.leaderboard()["runs"][0]
    assert (entry["done"], entry["n"], entry["state"], entry["metrics"]) == (3, 5, "stopped", {})
    while runs.count("strict"):
        pass
    assert runs.leaderboard()["runs"][0]["metrics"]["hit"]["value"] == pytest.approx(2 / 3)
    # As when a run is finished, its file is put into order: another file under the same name.
    (run / "again").write_bytes((run / PREDICTIONS).read_bytes()[: -len(rest[1][:10])] + rest[1])
    (run / "again").replace(run / PREDICTIONS)
    runs.look()
    found = runs.summary(["base", "other"])
    assert found["questions"]["runs"][0]["hit"] == [1, 1, 0, 1, None]
    assert [(one["state"], one["done"], one["n"]) for one in found["runs"]] == [("stopped", 4, 4), ("finished", 5, 5)]


def test_a_run_keeps_its_colour_when_others_come(copied: Path) -> None:
    runs = LiveRuns([copied])
    runs.look()
    shutil.copytree(copied / "deeper" / "base", copied / "deeper" / "added")
    runs.look()
    assert {run["name"]: run["colour"] for run in runs.leaderboard()["runs"]} == {"added": 2, "base": 0, "other": 1}
    assert [run["colour"] for run in runs.summary(["other", "base"])["runs"]] == [1, 0]


def test_runs_are_summarised_as_the_report_does_it(copied: Path, runs: list[Run]) -> None:
    live = LiveRuns([copied])
    live.look()
    found = live.summary(["base", "other"])
    assert [its.pop("place") for its in found["questions"]["runs"]] == [[0, 1, 2, 3, 4]] * 2
    assert found["questions"] == summarise(runs, asked_by(runs), 0)["questions"]
    assert live.differences(["base", "other"])["deltas"] == differences(runs, 0)
    with pytest.raises(RunError, match="there is no run 'nobody'"):
        live.summary(["nobody"])
    unfinished(copied / "deeper" / "base", 0)
    live.look()
    with pytest.raises(RunError, match="run 'base' has no answer yet"):
        live.summary(["base"])


def test_a_running_evaluation_is_paused_and_goes_on(tmp_path: Path) -> None:
    asked, go = threading.Event(), threading.Event()

    class Slow(Told):
        def run(self, question: Question) -> Answer:
            asked.set()
            go.wait(20)
            return super().run(question)

    folder = tmp_path / "run"
    settings = RunSettings("films test", "0" * 64, "1" * 64)
    work = threading.Thread(target=run_evaluation, args=(Slow(BASE), EXAMPLES, folder, settings))
    work.start()
    assert asked.wait(20)
    runs = LiveRuns([tmp_path])
    runs.look()
    [run] = runs.runs.values()
    assert run.state == "running"
    run.pause(True)
    go.set()
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        runs.look()
    # What was handed to the worker before is answered and recorded; nothing else is.
    assert (run.state, 0 < run.done < 5) == ("paused", True)
    run.pause(False)
    work.join(20)
    runs.look()
    assert (run.state, run.done) == ("finished", 5) and not (folder / PAUSED).exists()
    with pytest.raises(RunError, match="run 'run' is finished; only a running one can be paused"):
        run.pause(True)


def test_a_question_is_told_as_the_report_tells_it(copied: Path) -> None:
    runs = LiveRuns([copied])
    runs.look()
    record = runs.question(["base", "other"], "q1")
    base, other = record["runs"]
    assert base["answers"][0]["right"] is True
    assert other["stage"] == "not_retrieved"
    assert len(base["rounds"]) == 2
    assert record["types"] == {"p2": "Person"}
    with pytest.raises(RunError, match="no run asks the question 'q9'"):
        runs.question(["base"], "q9")


@pytest.fixture
def server(copied: Path) -> Iterator[ViewServer]:
    """Serve both runs and a graph of two films."""
    graph = ColumnarGraph.from_triples([("Heat", "directed_by", "Mann"), ("Ali", "directed_by", "Mann")])
    ask = asker(offline_pipeline(Parts(graph)), graph)
    with ViewServer(LiveRuns([copied]), 0, ask, lambda id: {"id": id, "name": HOSTILE}) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.05,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def requested(
    server: ViewServer,
    path: str,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: str | None = None,
) -> tuple[int, str]:
    """Send a request; `{secret}` in the path stands for the server's."""
    with closing(http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)) as connection:
        connection.request(method, path.replace("{secret}", server.secret), body, dict(headers or {}))
        reply = connection.getresponse()
        return reply.status, reply.read().decode("utf-8", "surrogatepass")


def test_only_who_has_the_address_of_this_machine_is_answered(server: ViewServer) -> None:
    assert requested(server, "/{secret}/runs")[0] == 200
    assert requested(server, "/{secret}/runs", headers={"Host": "evil.example"})[0] == 403
    assert requested(server, "/{secret}/runs", headers={"Host": f"evil.example:{server.server_port}"})[0] == 403
    assert requested(server, "/runs")[0] == requested(server, "/")[0] == requested(server, "/%C3%A9/runs")[0] == 403
    assert requested(server, "/{secret}/../runs")[0] == 404
    assert requested(server, "/{secret}/question?run=../../etc&id=q1")[0] == 404
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert requested(server, "/{secret}/ask", "POST", form, "question=x")[0] == 400
    assert requested(server, "/{secret}/runs", "DELETE")[0] == 501
    json_kind = {"Content-Type": "application/json"}
    for body, status in (
        ('{"run": "base", "paused": true}', 404),
        ('{"run": "../x", "paused": true}', 404),
        ("[]", 400),
    ):
        assert requested(server, "/{secret}/pause", "POST", json_kind, body)[0] == status


def test_a_question_is_answered_stage_by_stage(server: ViewServer) -> None:
    body = json.dumps({"question": "Who directed Heat?"})
    status, text = requested(server, "/{secret}/ask", "POST", {"Content-Type": "application/json"}, body)
    *stages, last = map(json.loads, text.splitlines())
    assert status == 200
    assert [one["stage"] for one in stages if "brought" in one] == [
        *("propose", "link", "retrieve path"),
        *("propose", "link", "answer"),  # nothing is left to count or compare
    ]
    assert [one["name"] for one in last["record"]["runs"][0]["answers"]] == ["Mann"]
    assert last["record"]["runs"][0]["answers"][0]["right"] is None
    assert (
        requested(server, "/{secret}/ask", "POST", {"Content-Type": "application/json"}, '{"question": " "}')[0] == 400
    )
