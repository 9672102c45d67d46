"""Tests of `byokg.evaluation.report.live` and `server`: runs as they grow, and who is answered."""

from __future__ import annotations

import http.client
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from byokg.errors import RunError
from byokg.evaluation.records import PREDICTIONS
from byokg.evaluation.report.asking import asker
from byokg.evaluation.report.live import LiveRuns
from byokg.evaluation.report.server import ViewServer
from byokg.evaluation.run_folder import METRICS_FILE
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from tests.evaluation.report.conftest import HOSTILE


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
    assert runs.questions(["base"])["total"] == 2
    with (run / PREDICTIONS).open("ab") as file:
        file.write(rest[0] + rest[1][:10])
    assert runs.look() and runs.version > before
    entry = runs.leaderboard()["runs"][0]
    assert (entry["done"], entry["n"]) == (3, 5)
    assert entry["metrics"]["hit"] == {"value": pytest.approx(2 / 3), "ci95": None}
    assert [row["id"] for row in runs.questions(["base"], order="latest")["rows"]] == ["q3", "q2", "q1"]
    # As when a run is finished, its file is put into order: another file under the same name.
    (run / "again").write_bytes((run / PREDICTIONS).read_bytes()[: -len(rest[1][:10])] + rest[1])
    (run / "again").replace(run / PREDICTIONS)
    assert [row["id"] for row in runs.questions(["base"])["rows"]] == ["q1", "q2", "q3", "q4"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ["q1", "q2", "q3", "q4", "q5"]),
        ("HEAT directed", ["q1"]),
        ("kurosawa", ["q5"]),  # gold
        ("kilmer", ["q3"]),  # what the first run answered
        ("pacino starred", ["q3"]),
        ("q2", ["q2"]),
        ("nothing of the kind", []),
    ],
)
def test_questions_answers_and_gold_are_searched(copied: Path, text: str, found: list[str]) -> None:
    runs = LiveRuns([copied])
    runs.look()
    assert [row["id"] for row in runs.questions(["base", "other"], text)["rows"]] == found


def test_questions_are_filtered_and_sorted_by_the_first_run(copied: Path) -> None:
    runs = LiveRuns([copied])
    runs.look()

    def ids(*names: str, **asked: Any) -> list[str]:
        return [row["id"] for row in runs.questions(names, **asked)["rows"]]

    assert ids("base", outcome="right") == ["q1", "q2", "q4"]
    assert ids("base", outcome="partly") == ["q2"]
    assert ids("base", outcome="wrong") == ["q3"]
    assert ids("base", outcome="failed") == ["q5"]
    assert ids("base", "other", outcome="differ") == ["q1", "q3"]
    assert ids("base", order="worst")[:2] == ["q3", "q5"]
    assert runs.questions(["base"], start=4)["rows"][0]["id"] == "q5"
    with pytest.raises(RunError, match="there is no run 'nobody'"):
        ids("nobody")


def test_a_question_is_told_as_the_report_tells_it(copied: Path) -> None:
    runs = LiveRuns([copied])
    runs.look()
    record = runs.question(["base", "other"], "q1")
    assert [each["name"] for each in record["runs"]] == ["base", "other"]
    assert record["runs"][0]["its"]["answers"][0]["right"] is True
    assert record["runs"][1]["its"]["stage"] == "not_retrieved"
    assert len(record["runs"][0]["its"]["rounds"]) == 2
    with pytest.raises(RunError, match="no run asks the question 'q9'"):
        runs.question(["base"], "q9")


@pytest.fixture
def server(copied: Path) -> Iterator[ViewServer]:
    """Serve both runs and a graph of two films."""
    graph = ColumnarGraph.from_triples([("Heat", "directed_by", "Mann"), ("Ali", "directed_by", "Mann")])
    ask = asker(offline_pipeline(Parts(graph)), graph)
    import threading

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


def test_a_question_is_answered_stage_by_stage(server: ViewServer) -> None:
    body = json.dumps({"question": "Who directed Heat?"})
    status, text = requested(server, "/{secret}/ask", "POST", {"Content-Type": "application/json"}, body)
    *stages, last = map(json.loads, text.splitlines())
    assert status == 200
    assert [one["stage"] for one in stages if "brought" in one] == [
        *("propose", "link", "retrieve path"),
        *("propose", "link", "answer"),  # nothing is left to count or compare
    ]
    assert [one["name"] for one in last["record"]["runs"][0]["its"]["answers"]] == ["Mann"]
    assert last["record"]["runs"][0]["its"]["answers"][0]["right"] is None
    assert (
        requested(server, "/{secret}/ask", "POST", {"Content-Type": "application/json"}, '{"question": " "}')[0] == 400
    )
