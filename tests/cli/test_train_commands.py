"""Tests of `byokg fit` and `byokg train`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from byokg.evaluation.run_folder import read_metrics
from tests.cli.conftest import Run


def questions(folder: Path, films: int = 12) -> Path:
    """Write films, and two questions about each, of words that only training can explain: two thirds of split dev."""
    folder.mkdir()
    (folder / "kb.txt").write_text(
        "".join(
            f"Film {n}|directed_by|Director {n % 3}\nFilm {n}|written_by|Writer {n}\nFilm {n}|release_year|{1990 + n}\n"
            for n in range(films)
        )
    )
    asked = [
        {"id": f"{word}{n}", "question": f"who {word} Film {n}", "answers": [answer], "topic_entities": [f"Film {n}"]}
        for n in range(films)
        for word, answer in (("blorked", f"Director {n % 3}"), ("zapped", f"Writer {n}"))
    ]
    rows = [{**row, "split": "dev" if number < 4 * films // 3 else "test"} for number, row in enumerate(asked)]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_what_is_fitted_to_questions_answers_better_and_is_taken_by_ask_and_eval(byokg: Run, tmp_path: Path) -> None:
    data, out = questions(tmp_path / "data", films=36), tmp_path / "weights"
    common = ["dataset=folder", f"dataset.root={data}"]
    fitted = byokg("fit", *common, "train.epochs=30", "--held-out", "0.25", "--out", out, "--json")
    assert fitted.code == 0, fitted.err
    told = json.loads(fitted.out)
    assert "24 questions of the split 'test' are left out" in fitted.err
    assert (told["learnt"], told["choosing"], told["held_out"]) == (24, 12, 12)
    assert told["choice"] == {"before": 0.5, "weights": 1.0, "weights and ranker": 1.0}
    assert told["chosen"] == "weights"  # the simpler one of two that answer alike
    assert [told["hits_at_1"][name]["value"] for name in ("before", "after", "difference")] == [0.5, 1.0, 0.5]
    before, after = (told["score"][name]["calibration_error"] for name in ("before", "after"))
    assert after < before  # all that are held out are right now, and scored as surer than they were
    tested = byokg("eval", *common, "dataset.split=test", f"out={tmp_path / 'run'}", f"pipeline.weights={out}")
    assert tested.code == 0, tested.err
    assert read_metrics(tmp_path / "run").overall.estimates["hits@1"].value == 1.0
    graph = tmp_path / "graph"
    assert byokg("graph", "build", data / "kb.txt", "--out", graph).code == 0
    asked = byokg("ask", "who zapped Film 30", f"graph.path={graph}", f"pipeline.weights={out}", "--json")
    assert asked.code == 0 and [item["name"] for item in json.loads(asked.out)["answers"]] == ["Writer 30"]


def test_annotated_chains_teach_words_that_no_question_has(byokg: Run, tmp_path: Path) -> None:
    data, out = questions(tmp_path / "data", films=36), tmp_path / "weights"
    lines = [{"question": f"who glimped Film {n}", "topic_id": f"Film {n}", "chain": ["written_by"]} for n in range(20)]
    (tmp_path / "chains.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "inverses.tsv").write_text("written_by\twrote\n")
    annotated = ["--chains", tmp_path / "chains.jsonl", "--inverses", tmp_path / "inverses.tsv"]
    common = ["dataset=folder", f"dataset.root={data}", "train.epochs=2"]
    outcome = byokg("fit", *common, *annotated, "--out", out, "--json")
    assert outcome.code == 0, outcome.err
    assert "20 annotated chains" in outcome.err
    missing = byokg("fit", *common, "--chains", tmp_path / "none.jsonl", "--out", out)
    assert missing.code == 2 and "none.jsonl" in missing.err


def test_weights_that_cannot_be_used_are_refused(byokg: Run, tmp_path: Path) -> None:
    data = questions(tmp_path / "data")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "weights.json").write_text('{"schema": 1, "embedder": "another", "weights": {}}')
    for place, reason in (("none", "no weights can be read"), ("other", "fitted with the embedder 'another'")):
        words = ["dataset=folder", f"dataset.root={data}", f"pipeline.weights={tmp_path / place}"]
        outcome = byokg("eval", *words)
        assert outcome.code == 2 and reason in outcome.err and "byokg fit" in outcome.err


def test_too_few_questions_to_fit_are_an_error(byokg: Run, tmp_path: Path) -> None:
    data, out = questions(tmp_path / "data"), tmp_path / "weights"
    outcome = byokg("fit", "dataset=folder", f"dataset.root={data}", "limit=2", "--out", out)
    assert outcome.code == 2 and "too few" in outcome.err and not out.exists()


def test_labels_are_the_queries_that_return_the_answers_best(byokg: Run, tmp_path: Path) -> None:
    data, out = questions(tmp_path / "data"), tmp_path / "labels.jsonl"
    told = byokg("train", "labels", "dataset=folder", f"dataset.root={data}", "train.keep=2", "--out", out, "--json")
    assert told.code == 0, told.err
    shown = json.loads(told.out)
    assert (shown["questions"], shown["labelled"]) == (24, 24)
    first, second = map(json.loads, out.read_text().splitlines()[:2])
    assert first["question"] == "who blorked Film 0" and first["considered"] >= len(first["queries"])
    best = first["queries"][0]
    assert best["query"] == 'MATCH (x1 {name: "Film 0"})-[:directed_by]->(x2) WHERE x2 <> x1 RETURN DISTINCT x2'
    assert (best["metapath"], best["anchors"], best["f1"], best["total"]) == (["directed_by"], ["Film 0"], 1.0, 1)
    assert [each["metapath"] for each in second["queries"][:1]] == [["written_by"]]
    strict = byokg("train", "labels", "dataset=folder", f"dataset.root={data}", "train.min_f1=1", "--out", out)
    assert strict.code == 2 and "min_f1=1" in strict.err


def test_settings_of_another_training_are_refused(byokg: Run, tmp_path: Path) -> None:
    (tmp_path / "labels.jsonl").write_text('{"question": "a", "queries": [{"query": "b"}]}\n')
    outcome = byokg("train", "sft", tmp_path / "labels.jsonl", "train=fit")
    assert outcome.code == 2 and "use train=sft" in outcome.err
    unnamed = byokg("train", "sft", tmp_path / "labels.jsonl")
    assert unnamed.code == 2 and "train.model=" in unnamed.err


def test_a_pipeline_with_a_language_model_has_nothing_to_fit(byokg: Run, tmp_path: Path) -> None:
    data = questions(tmp_path / "data")
    rules = tmp_path / "rules.yaml"
    rules.write_text("- {contains: x, reply: y}\n")
    model = ["pipeline=byokg", "llm=scripted", f"llm.rules={rules}"]
    outcome = byokg("fit", "dataset=folder", f"dataset.root={data}", *model)
    assert outcome.code == 2
    assert "pipeline=offline" in outcome.err


def test_a_model_that_is_not_there_is_named(byokg: Run, tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="peft is not installed: pip install 'byokg[train]'")
    (tmp_path / "labels.jsonl").write_text('{"question": "a", "queries": [{"query": "b"}]}\n')
    outcome = byokg(
        "train", "sft", tmp_path / "labels.jsonl", f"train.model={tmp_path / 'no'}", "--out", tmp_path / "out"
    )
    assert outcome.code == 2
    assert "there is no folder" in outcome.err


def test_labels_are_needed_for_fine_tuning(byokg: Run, tmp_path: Path) -> None:
    outcome = byokg("train", "sft", tmp_path / "none.jsonl", "train.model=m", "--out", tmp_path / "out")
    assert outcome.code == 2 and "none.jsonl" in outcome.err
