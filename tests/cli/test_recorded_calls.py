"""Every call of every pipeline is counted once, wherever one looks: replies, `trace.jsonl`, `timings.jsonl`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from byokg.cli.components import config_dirs
from byokg.evaluation.records import TIMINGS, TRACE
from byokg.llm.reply_store import RecordedReplies
from tests.cli.conftest import Run

# A planner has a fine-tuned model of its own, and no calls.
PIPELINES = sorted(path.stem for path in (config_dirs()[0] / "pipeline").glob("*.yaml") if path.stem != "planner")

QUERIES = ("byokg", "byokg_cypher", "byokg_lean", "direct_query", "query")
"""Pipelines that are given a graph that runs queries."""

NO_MODEL = ("bm25", "graphraft_offline", "offline", "vector")

RULES = r"""
- {reply: "Michael", stop: length, contains: ["When was Collateral released", "Each fact begins"]}
- {reply: "Michael", stop: length, contains: ["When was Collateral released", "choose the nodes"]}
- {reply: "<selected>\ndirected_by\n</selected>", contains: ["Entities and their relations:"]}
- {reply: "<next-entities>\nMichael Mann\n</next-entities>", contains: ["<next-entities>"]}
- {reply: "<numbers>\n1\n2\n</numbers>", contains: ["<numbers>"]}
- {reply: "<sparql>SELECT ?x WHERE { ?x <urn:x> ?y }</sparql>", contains: ["# Query that was written"]}
- {reply: "<sparql>SELECT ?x WHERE { ?x <urn:y> ?y }</sparql>", contains: ["<sparql>", "# Entities"]}
- {reply: "<answers>Michael Mann</answers>", contains: ["with the tools that you are given", '"subject"']}
- reply: ""
  contains: ["with the tools that you are given"]
  tool_calls: [{name: bfs_query, args: {seeds: [Heat], max_hops: 1}}, {name: nonsense, args: {}}]
- {reply: "<entities>\nMichael Mann\n</entities>\n<paths>\ndirected_by\n</paths>", contains: ["Next entities"]}
- reply: |
    <entities>
    Heat
    Collateral
    Al Pacino
    </entities>
    <paths>
    directed_by
    </paths>
    <sparql>
    SELECT ?x WHERE { ?x <urn:z> ?y }
    </sparql>
    <bfsql>
    {"seeds": ["Heat"], "max_hops": 1}
    </bfsql>
  contains: ["Entity extraction"]
- {reply: "<answers>\nMichael Mann [e1]\n</answers>"}
"""
"""A model that keeps every pipeline busy; one final answer is cut off, so one question fails."""


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def spent(run: Path, kind: str) -> Counter[str]:
    """Return the calls by stage that `timings.jsonl` counts as asked or as replayed."""
    calls: Counter[str] = Counter()
    for line in lines(run / TIMINGS):
        calls.update({stage: each[kind]["calls"] for stage, each in line.get("usage", {}).items()})
    return +calls


def traced(run: Path) -> list[tuple[str, str]]:
    """Return stage and key of each call in `trace.jsonl`."""
    return [(call["stage"], call["reply"]) for line in lines(run / TRACE) for call in line.get("calls", ())]


def recorded(file: Path) -> Counter[str]:
    with RecordedReplies(file, "replay") as replies:
        return Counter({each.stage: each.replies for each in replies.counts()})


def words(films: Path, pipeline: str) -> list[str]:
    data = [f"pipeline={pipeline}", "dataset=folder", f"dataset.root={films}", "graph.path=graph"]
    graph = ["graph=oxigraph"] if pipeline in QUERIES else []
    return ["eval", *data, "--quiet", *graph, *(["pipeline.repairs=1"] if pipeline == "direct_query" else [])]


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_replies_trace_and_timings_count_the_same_calls(byokg: Run, films: Path, pipeline: str) -> None:
    if pipeline in QUERIES:
        pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'byokg[sparql]'")
    assert byokg("graph", "build", films, "--out", "graph", *(["--sparql"] if pipeline in QUERIES else [])).code == 0
    Path("rules.yaml").write_text(RULES, "utf-8")
    command = words(films, pipeline)
    model = () if pipeline in NO_MODEL else ("llm=scripted", "llm.rules=rules.yaml", "replies.path=replies.sqlite")
    workers = "workers=1" if pipeline in QUERIES else "workers=2"
    outcome = byokg(*command, *model, workers, "out=asked")
    assert outcome.code == 0, outcome.err
    asked = Path("asked")
    if pipeline in NO_MODEL:
        assert traced(asked) == []
        return
    stages = Counter(stage for stage, _ in traced(asked))
    assert stages and stages == spent(asked, "asked") + spent(asked, "replayed")
    assert recorded(Path("replies.sqlite")) == spent(asked, "asked")
    assert len({key for _, key in traced(asked)}) == spent(asked, "asked").total()
    outcome = byokg(*command, *model, "workers=1", "out=again")
    assert outcome.code == 0, outcome.err
    again = Path("again")
    assert traced(again) == traced(asked) and spent(again, "asked").total() == 0
    assert spent(again, "replayed") == stages


def test_the_choice_among_candidates_is_one_of_graphraft_s_calls(byokg: Run, films: Path) -> None:
    assert byokg("graph", "build", films, "--out", "graph").code == 0
    Path("rules.yaml").write_text(RULES, "utf-8")
    scripted = ("llm=scripted", "llm.rules=rules.yaml", "replies.path=replies.sqlite")
    assert byokg(*words(films, "graphraft"), *scripted, "out=run").code == 0
    asked = [[call["stage"] for call in line["calls"]] for line in lines(Path("run", TRACE))]
    assert asked == [["entities", "candidates", "subgraph"]] * 3
    shown = byokg("ask", "Who directed Heat?", "pipeline=graphraft", *scripted, "graph.path=graph", "--trace")
    assert "candidates" in shown.out
