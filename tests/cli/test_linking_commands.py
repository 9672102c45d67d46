"""Tests of `byokg link` and `byokg eval-linking`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from byokg.graph.importers.choose import build_graph
from tests.cli.conftest import Run

# Two nodes named Jordan, one with a capital and one with a mouth; a film called 1984 and a year.
NODES = """\
id,name,type
jo,Jordan,Country
jr,Jordan,River
am,Amman,City
sea,Dead Sea,Sea
f,1984,Film
m.0real,A Real One,
"""
EDGES = """\
head,relation,tail
jo,capital,am
jr,mouth,sea
sea,near,jr
f,set_in,am
"""


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    source.mkdir()
    (source / "nodes.csv").write_text(NODES)
    (source / "edges.csv").write_text(EDGES)
    build_graph(source, tmp_path / "graph")
    return tmp_path / "graph"


def test_candidates_stand_in_a_table_for_each_mention(byokg: Run, graph: Path) -> None:
    outcome = byokg("link", graph, "jordan", "Ammman")
    assert outcome.code == 0 and outcome.err == ""
    first, second = outcome.out.split("'Ammman'")
    # The river has two edges and the country one.
    assert [line.split() for line in first.splitlines() if "exact" in line] == [
        ["jr", "Jordan", "River", "exact", "1.000"],
        ["jo", "Jordan", "Country", "exact", "1.000"],
    ]
    assert "am  Amman  City  fuzzy" in second


def test_the_question_decides_and_explain_says_why(byokg: Run, graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    outcome = byokg("link", graph, "Jordan", "--question", "What is the capital of Jordan?", "--explain")
    first, second = (line for line in outcome.out.splitlines() if "exact" in line)
    assert first.split()[:3] == ["jo", "Jordan", "Country"]
    assert "exact 1.000 (no. 1)" in first and "question 1.000" in " ".join(outcome.out.split())
    assert second.split()[0] == "jr" and outcome.out.count("1 edge") == 1


def test_json_holds_everything(byokg: Run, graph: Path) -> None:
    outcome = byokg("link", graph, "1984", "/m/0real", "12 May 1990", "--json", "--method", "both")
    film, real, date = json.loads(outcome.out)["mentions"]
    assert film["literal"] == {"kind": "year", "value": 1984}
    assert film["candidates"] == [
        {
            "id": "f",
            "name": "1984",
            "type": "Film",
            "method": "exact",
            "score": 1.0,
            "context": None,
            "degree": 1,
            "matches": [{"method": "exact", "name": "1984", "score": 1.0, "rank": 1}],
        }
    ]
    assert [(one["id"], one["method"]) for one in real["candidates"]] == [("m.0real", "id")]
    assert date == {
        "mention": "12 May 1990",
        "literal": {"kind": "date", "value": "1990-05-12"},
        "candidates": [],
        "values": [],
    }


def test_values_are_shown_with_property_and_type(byokg: Run, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,name,type,badge_no\no1,Ada,Officer,70-5119724\no2,Eve,Officer,11-2345678\n")
    (tmp_path / "edges.csv").write_text("head,relation,tail\no1,KNOWS,o2\n")
    built = byokg("graph", "build", tmp_path, "--out", tmp_path / "graph")
    assert "and 2 values of 1 property" in built.out
    assert "badge_no = 70-5119724 (Officer)" in byokg("link", tmp_path / "graph", "70-5119742").out
    assert "Officer.badge_no" in byokg("graph", "info", tmp_path / "graph").out


def test_values_of_edges_are_shown_with_property_and_relation(byokg: Run, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,name,type\no1,Ada,Officer\no2,Eve,Officer\n")
    (tmp_path / "edges.csv").write_text("head,relation,tail,badge_no\no1,KNOWS,o2,70-5119724\no2,KNOWS,o1,11-2345678\n")
    built = byokg("graph", "build", tmp_path, "--out", tmp_path / "graph")
    assert "and 2 values of 1 property" in built.out
    shown = byokg("link", tmp_path / "graph", "70-5119742").out
    assert "badge_no = 70-5119724 (on KNOWS edges)" in shown and "edges  score" in shown
    (match,) = json.loads(byokg("link", tmp_path / "graph", "70-5119742", "--json").out)["mentions"][0]["values"]
    assert (match["type"], match["property"], match["edge"]) == ("KNOWS", "badge_no", True)
    assert "[KNOWS.badge_no]" in byokg("graph", "info", tmp_path / "graph").out
    assert "and 2 values of 1 property" in byokg("graph", "names", tmp_path / "graph").out


@pytest.mark.parametrize("method", ["exact", "fuzzy", "dense", "both"])
def test_top_bounds_what_every_method_shows(byokg: Run, graph: Path, method: str) -> None:
    outcome = byokg("link", graph, "Jordan", "--top", "1", "--method", method, "--json")
    assert [len(one["candidates"]) for one in json.loads(outcome.out)["mentions"]] == [1]


@pytest.mark.parametrize("text", ["?!", "😀", "\x1b[[\x07", "\u202e", "a" * 10_000, "12:30"])
def test_what_is_like_nothing_is_said_to_be(byokg: Run, graph: Path, text: str) -> None:
    outcome = byokg("link", graph, text, "--method", "fuzzy")
    assert outcome.code == 0
    assert outcome.out.endswith(": no node has this name or value, or a similar one\n")
    assert "\x1b" not in outcome.out and len(outcome.out) < 200


def test_wrong_words_are_named(byokg: Run, graph: Path) -> None:
    assert "mention 2 is empty" in byokg("link", graph, "Jordan", " ").err
    assert (
        "--method vague is not known; use one of exact, fuzzy, dense, both"
        in byokg("link", graph, "Jordan", "--method", "vague").err
    )
    assert "--fusion sum is not known; use one of union, rrf" in byokg("link", graph, "x", "--fusion", "sum").err
    missing = byokg("link", graph.parent / "nowhere", "Jordan")
    assert missing.code == 2 and "no graph in" in missing.err


def test_eval_linking_scores_all_methods_in_one_table(byokg: Run) -> None:
    outcome = byokg("eval-linking", "dataset=atlas", "limit=20")
    assert outcome.code == 0
    for method in ("exact", "fuzzy", "dense", "both", "both, disambiguated"):
        assert f"\n {method} " in outcome.out
        assert f"{method}: 20 questions linked" in outcome.err
    assert "20 questions, " in outcome.out and "mentions given: the words of the question" in outcome.out
    assert "R@3 of topic entities by how they are mentioned" in outcome.out


def test_eval_linking_writes_json_with_counts_and_intervals(byokg: Run) -> None:
    outcome = byokg("eval-linking", "dataset=atlas", "limit=5", "--mentions", "spotted", "--json", "-q")
    assert outcome.err == ""
    written = json.loads(outcome.out)
    assert (written["dataset"], written["mentions"]) == ("atlas test", "spotted")
    assert list(written["methods"]) == ["exact", "fuzzy", "dense", "both", "both, disambiguated"]
    exact = written["methods"]["exact"]
    assert exact["n"] == 5 and exact["failed"] == 0
    low, high = exact["recall@3"]["ci95"]
    assert 0 <= low <= exact["recall@3"]["value"] <= high <= 1
    assert sum(one["n"] for one in exact["by_type"].values()) == exact["topics"]


def test_eval_linking_without_annotated_topics_says_so(byokg: Run, tmp_path: Path) -> None:
    root = tmp_path / "mine"
    root.mkdir()
    (root / "questions.jsonl").write_text('{"id": "q", "question": "Who?", "answers": ["x"]}\n')
    (root / "graph.tsv").write_text("a\tr\tb\n")
    outcome = byokg("eval-linking", "dataset=folder", f"dataset.root={root}")
    assert outcome.code == 2
    assert "1 of 1 questions have no topic entities annotated" in outcome.err
    assert "so linking cannot be scored" in outcome.err
    assert "--mentions found is not known" in byokg("eval-linking", "dataset=atlas", "--mentions", "found").err
