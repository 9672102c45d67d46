"""Tests of `byokg.cli.score_commands`: from run folders to a page."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from byokg.cli.terminal import WRONG
from tests.cli.conftest import Run

RULES = """\
- {contains: ["# Facts"], reply: "<answers>\\nMichael Mann [e1]\\n</answers>"}
- {reply: "<entities>\\nHeat\\n</entities>\\n<paths>\\ndirected_by\\n</paths>\\n<answers>\\nMichael Mann\\n</answers>"}
"""


@pytest.fixture
def evaluated(byokg: Run, films: Path) -> Path:
    """Evaluate two settings over the same questions and return the folder of the runs."""
    Path("rules.yaml").write_text(RULES, "utf-8")
    words = ["eval", "dataset=folder", f"dataset.root={films}", "-q"]
    assert byokg(*words, "out=runs/offline").code == 0
    scripted = ["pipeline=byokg", "llm=scripted", "llm.rules=rules.yaml", "replies.path=replies.sqlite"]
    assert byokg(*words, *scripted, "out=runs/scripted").code == 0
    return Path("runs")


def test_a_report_is_written_about_several_runs(byokg: Run, evaluated: Path, graph: Path) -> None:
    outcome = byokg(
        "report", evaluated / "offline", evaluated / "scripted", "--graph", graph, "--replies", "replies.sqlite",
        "--baseline", "runs/scripted/", "--out", "out/films.html",
    )  # fmt: skip
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("report of 3 questions in out/films.html (0.")
    assert Path("out/films.html").read_text("utf-8").startswith("<!doctype html>")


def test_the_page_lies_here_unless_another_place_is_named(byokg: Run, evaluated: Path) -> None:
    assert byokg("report", evaluated / "offline").out.startswith("report of 3 questions in report.html")
    first = Path("report.html").read_bytes()
    byokg("report", evaluated / "offline")
    assert Path("report.html").read_bytes() == first


def test_what_is_wrong_is_said_and_nothing_written(byokg: Run, evaluated: Path, tmp_path: Path) -> None:
    offline = evaluated / "offline"
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "kb.txt").write_text("a|r|b\n", "utf-8")
    assert byokg("graph", "build", "kb", "--out", "another").code == 0
    for words, message in (
        (["nowhere"], "RunError: no config.yaml in 'nowhere'; give the folder that an evaluation wrote"),
        ([offline, "--baseline", "nowhere"], "ConfigError: --baseline nowhere is none of the runs; name one of"),
        ([offline, "--graph", "another"], "name the graph of the run, or leave --graph out"),
        ([offline, "--replies", "nowhere.sqlite"], "ReplyStoreError: "),
    ):
        outcome = byokg("report", *words)
        assert (outcome.code, outcome.out) == (WRONG, "")
        assert message in outcome.err
    assert not Path("report.html").exists()


def test_what_had_no_room_in_the_prompt_is_lost_by_the_budget_and_not_by_the_model(
    byokg: Run, films: Path, tmp_path: Path
) -> None:
    (tmp_path / "unknowing.yaml").write_text('- {contains: "", reply: "<answers>\\nNobody\\n</answers>"}\n', "utf-8")
    words = ["eval", "dataset=folder", f"dataset.root={films}", "pipeline=byokg_lean", "llm=scripted", "-q"]
    words.append(f"llm.rules={tmp_path / 'unknowing.yaml'}")
    lost = {}
    for tokens in (5, 3000):
        out = tmp_path / f"t{tokens}"
        assert byokg(*words, f"pipeline.budgets.context_tokens={tokens}", f"out={out}").code == 0
        loss = json.loads((out / "metrics.json").read_text("utf-8"))["loss"]
        lost[tokens] = {stage: count for stage, count in loss.items() if count}
    assert lost == {5: {"not_shown": 3}, 3000: {"not_cited": 3}}
    compared = byokg("compare", tmp_path / "t5", tmp_path / "t3000").out
    assert ["not", "shown", "3", "0"] in [line.split() for line in compared.splitlines()]
    traced = byokg("trace", tmp_path / "t5", "q1").out.splitlines()[-1]
    assert traced == "linked 1 of 1 topics, retrieved 1 of 1 gold answers, shown 0, cited 0: not shown"


def test_a_view_of_nothing_or_at_a_taken_port_is_refused(byokg: Run, evaluated: Path) -> None:
    assert "there is no folder 'nowhere'; name run folders" in byokg("view", "nowhere").err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = byokg("view", evaluated, "--port", port, "--no-open")
    assert outcome.code == WRONG and f"--port {port}: Address already in use; leave it out" in outcome.err
