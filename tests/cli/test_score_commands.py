"""Tests of `byokg score` and `byokg compare`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from byokg.cli.terminal import WRONG
from byokg.evaluation.run_folder import QUESTIONS
from tests.cli.conftest import Run

PREDICTED = (
    {"id": "a", "question": "Capital of Norway?", "prediction": "It is Oslo", "ground_truth": ["Oslo"]},
    {"id": "b", "question": "Capital of Italy?", "prediction": ["Rome"], "ground_truth": ["Rome"]},
    {"id": "c", "question": "Capital of Peru?", "prediction": None, "ground_truth": ["Lima"]},
)


@pytest.fixture
def foreign() -> Path:
    """Return a file of another system: a substring, a right answer, and none."""
    path = Path("predictions.jsonl")
    path.write_text("".join(json.dumps(record) + "\n" for record in PREDICTED), "utf-8")
    return path


@pytest.fixture
def runs(byokg: Run, films: Path) -> tuple[Path, Path]:
    """Return two finished runs over the films: one hop at most, and two."""
    for hops in (1, 2):
        words = ("eval", "-q", "dataset=folder", f"dataset.root={films}", f"pipeline.max_hops={hops}", f"out=run{hops}")
        assert byokg(*words).code == 0
    return Path("run1"), Path("run2")


def test_all_profiles_stand_in_one_table_with_denominators_failures_and_differences(byokg: Run, foreign: Path) -> None:
    found = byokg("score", foreign, "--profile", "all")
    assert found.code == 0
    lines = [line.split() for line in found.out.splitlines()]
    (strict, *_) = [line for line in lines if line[:1] == ["strict"]]
    rogs = [line for line in lines if line[:1] == ["rog"]]
    assert strict[:4] == ["strict", "3", "0", "33.3"]  # the third question counts
    assert rogs[0][:4] == ["rog", "2", "1", "100.0"]  # the third is skipped
    assert rogs[-1][:2] == ["rog", "+50.0"]  # on the two questions that both count
    assert rogs[-1][-2:] == ["1", "0"]
    text = " ".join(found.out.split())
    assert "3 questions, 1 without a prediction" in text
    assert "without a prediction: c" in text
    assert "stark: the questions lack ids of gold and predicted answers" in text


def test_strict_is_the_default(byokg: Run, foreign: Path) -> None:
    found = byokg("score", foreign, "--json")
    record = json.loads(found.out)
    assert list(record["profiles"]) == ["strict"]
    assert (record["questions"], record["failed"]) == (3, ["c"])
    assert record["profiles"]["strict"]["metrics"]["hit"]["value"] == pytest.approx(1 / 3)


def test_a_run_is_scored_again_without_its_data_set(byokg: Run, films: Path, runs: tuple[Path, Path]) -> None:
    (films / "questions.jsonl").unlink()
    found = byokg("score", runs[0], "--profile", "all", "--json")
    record = json.loads(found.out)["profiles"]
    metrics = json.loads((runs[0] / "metrics.json").read_text("utf-8"))
    for name, figure in record["strict"]["metrics"].items():
        assert figure["value"] == pytest.approx(metrics[name]["value"])
        assert figure["ci95"] == pytest.approx(metrics[name]["ci95"])


def test_a_run_that_is_not_finished_is_scored_and_said_to_be(byokg: Run, runs: tuple[Path, Path]) -> None:
    (runs[0] / "metrics.json").unlink()
    predictions = runs[0] / "predictions.jsonl"
    predictions.write_bytes(b"".join(predictions.read_bytes().splitlines(keepends=True)[:1]))
    found = byokg("score", runs[0], "--json")
    assert "run1 is not finished: 2 of 3 questions have no prediction so far" in found.err
    strict = json.loads(found.out)["profiles"]["strict"]
    assert (strict["n"], strict["failed"]) == (3, 2)
    refused = byokg("compare", *runs)
    assert refused.code == WRONG
    assert "'run1' is not finished: it has no metrics.json" in refused.err


def test_a_data_set_gives_the_gold_answers_of_a_file(byokg: Run, films: Path) -> None:
    Path("mine.jsonl").write_text('{"id": "q1", "prediction": ["Michael Mann"]}\n', "utf-8")
    found = byokg("score", "mine.jsonl", "dataset=folder", f"dataset.root={films}", "--json")
    strict = json.loads(found.out)["profiles"]["strict"]
    assert (strict["n"], strict["failed"]) == (3, 2)
    assert strict["metrics"]["hit"]["value"] == pytest.approx(1 / 3)


def test_the_settings_say_which_questions_of_a_data_set_are_scored(byokg: Run, films: Path) -> None:
    Path("mine.jsonl").write_text('{"id": "q1", "prediction": ["x"]}\n{"id": "q2", "prediction": ["x"]}\n', "utf-8")
    words = ("score", "mine.jsonl", "dataset=folder", f"dataset.root={films}", "--json")
    counts = [json.loads(byokg(*words, *more).out)["questions"] for more in ((), ("limit=1",), ("ids=q2",))]
    assert counts == [3, 1, 1]
    refused = byokg(*words, "require=answers_in_graph")
    assert refused.code == WRONG
    assert "require= looks at a graph, and byokg score at none" in refused.err


def test_one_run_can_stand_beside_published_figures(byokg: Run, runs: tuple[Path, Path]) -> None:
    found = byokg("compare", runs[0], "--anchors", "webqsp")
    assert found.code == 0
    assert "published, NOT comparable" in found.out
    assert "against" not in found.out
    assert byokg("compare", runs[0]).code == WRONG


def test_a_judge_is_asked_and_its_replies_are_recorded(byokg: Run, foreign: Path) -> None:
    Path("rules.yaml").write_text(
        "- contains: Norway\n  reply: <score>1</score>\n- reply: <score>0.5</score>\n", "utf-8"
    )
    words = ("score", foreign, "--profile", "judge", "llm=scripted", "llm.rules=rules.yaml", "replies.path=r.sqlite")
    first = byokg(*words, "--json")
    assert json.loads(first.out)["profiles"]["judge"]["metrics"]["judged"]["value"] == pytest.approx(1.5 / 3)
    assert "judged: 2 calls" in first.err
    again = byokg(*words, "replies.mode=replay", "--json")
    assert again.out == first.out
    assert "0 calls, 2 replayed" in again.err


def test_a_judge_needs_a_model_and_the_questions(byokg: Run, foreign: Path) -> None:
    found = byokg("score", foreign, "--profile", "judge")
    assert found.code == WRONG
    assert "--profile judge asks a language model; add llm=anthropic" in found.err
    foreign.write_text('{"id": "a", "prediction": ["x"], "gold": ["x"]}\n', "utf-8")
    found = byokg("score", foreign, "--profile", "judge", "llm=scripted", "llm.rules=rules.yaml")
    assert "1 of 1 predictions come without the question" in found.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("score", "nowhere"), "there is no 'nowhere'; give a run folder"),
        (("score", "predictions.jsonl", "--profile", "rogue"), "--profile rogue is not known"),
        (("compare", "run1", "--profile", "rogue"), "--profile rogue is not known"),
        (("compare", "nowhere", "elsewhere"), "nowhere'; give the folder that an evaluation wrote"),
        (("compare", "nowhere", "nowhere", "--anchors", "atlas"), "--anchors atlas: nothing published"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(byokg: Run, foreign: Path, words: tuple[str, ...], message: str) -> None:
    found = byokg(*words)
    assert found.code == WRONG
    assert message in found.err
    assert found.err.count("\n") == 1


def test_two_runs_are_compared_by_metric_and_question(byokg: Run, runs: tuple[Path, Path]) -> None:
    found = byokg("compare", *runs)
    assert found.code == 0
    assert "run2 against run1" in found.out
    assert "config.pipeline.max_hops: 1 → 2" in found.out
    assert "3 questions, 0 and 0 failed" in found.out
    for heading in ("Hit", "Hits@1", "F1", "difference", "95 % interval"):
        assert heading in found.out


def test_a_comparison_is_written_as_json(byokg: Run, runs: tuple[Path, Path]) -> None:
    record = json.loads(byokg("compare", *runs, "--json", "--anchors", "webqsp").out)
    [one] = record["comparisons"]
    assert (one["first"], one["second"], one["questions"], one["profile"]) == ("run1", "run2", 3, "strict")
    hit = one["metrics"]["hit"]
    assert hit["value"] == pytest.approx(hit["second"] - hit["first"])
    assert len(one["won"]) - len(one["lost"]) == round(3 * hit["value"])
    assert not any(anchor["comparable"] for anchor in record["published"])
    assert set(record["published"][0]["ours"]) == {"run1", "run2"}


def test_runs_of_a_table_get_labels_columns_and_a_caption(byokg: Run, runs: tuple[Path, Path]) -> None:
    words = ["--metrics", "f1,hit", "--name", f"{runs[0]}=Ours", "--caption", "Films"]
    found = byokg("table", *runs, *words).out.splitlines()
    assert found[0] == "Table: Films" and found[2] == "| Run | F1 | Hit |"
    assert [line.split(" | ")[0] for line in found[4:6]] == ["| Ours", "| run2"]
    for wrong, message in (
        ("run9=x", "names no run; give RUN=LABEL with one of run1, run2"),
        ("run2=run1", "two runs"),
    ):
        refused = byokg("table", *runs, "--name", wrong)
        assert refused.code == WRONG and message in refused.err


def test_published_figures_of_other_questions_stand_apart(byokg: Run, runs: tuple[Path, Path]) -> None:
    found = byokg("compare", *runs, "--anchors", "webqsp", "--published-graph")
    assert "published, comparable" not in found.out
    assert "published, NOT comparable" in found.out
    assert "'films' was asked here" in found.out


def test_runs_over_other_questions_are_refused_unless_forced(byokg: Run, films: Path, runs: tuple[Path, Path]) -> None:
    assert byokg("eval", "-q", "dataset=folder", f"dataset.root={films}", "limit=2", "out=fewer").code == 0
    refused = byokg("compare", runs[0], "fewer")
    assert refused.code == WRONG
    assert "2 in both, 1 and 0 in one alone" in refused.err
    forced = byokg("compare", runs[0], "fewer", "--force")
    assert forced.code == 0
    assert "2 questions, 0 and 0 failed" in forced.out


def test_the_questions_of_a_run_are_beside_its_predictions(runs: tuple[Path, Path]) -> None:
    lines = (runs[0] / QUESTIONS).read_text("utf-8").splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["q1", "q2", "q3"]


def test_a_long_name_of_a_run_is_not_broken(byokg: Run, runs: tuple[Path, Path]) -> None:
    long = Path("pipeline.max_hops=2,linking=fuzzy,embedding=static")
    shutil.copytree(runs[1], long)
    lines = byokg("compare", runs[0], long).out.splitlines()
    assert lines[1:3] == [f"  [1] {runs[0].name}", f"  [2] {long}"]
    assert any(line.split()[:3] == ["[1]", "[2]", "difference"] for line in lines)
    assert max(map(len, lines)) <= 80


def test_published_figures_of_several_sets_say_which(byokg: Run, runs: tuple[Path, Path]) -> None:
    out = byokg("compare", runs[0], "--anchors", "metaqa").out
    assert all(f"metaqa {hops}-hop" in " ".join(out.split()) for hops in (1, 2, 3))


def test_no_answer_is_an_exit_code_of_its_own(byokg: Run, graph: Path) -> None:
    assert byokg("ask", "Who directed Heat?", f"graph.path={graph}").code == 0
    for words in ([], ["--json"]):
        assert byokg("ask", "Why?", f"graph.path={graph}", *words).code == 1
