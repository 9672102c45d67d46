"""Tests of `byokg.cli.eval_commands`: grids of settings, and the launchers that run them."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

from byokg.cli.eval_commands import read_grid
from byokg.cli.terminal import WRONG
from byokg.errors import ConfigError
from tests.cli.conftest import Run

SAME = ("config.yaml", "metrics.json", "predictions.jsonl", "trace.jsonl")


def settings(*words: str) -> list[tuple[str, ...]]:
    """Return the settings of each job but for its folder."""
    return [job.words[:-1] for job in read_grid(words).jobs]


def test_jobs_are_all_combinations_in_the_order_typed() -> None:
    assert settings("dataset=atlas", "linking=exact,fuzzy", "pipeline.beam=range(1,3)", "limit=5") == [
        ("dataset=atlas", f"linking={linking}", f"pipeline.beam={beam}", "limit=5")
        for linking in ("exact", "fuzzy")
        for beam in (1, 2)
    ]


def test_lists_stand_in_brackets_and_quotes_keep_commas_together() -> None:
    assert settings("pipeline.tasks=[entities,paths],[answers]", "dataset.root='/a,b'", "x=null,2,true") == [
        (f"pipeline.tasks={tasks}", "dataset.root=/a,b", f"x={x}")
        for tasks in ("entities,paths", "answers")
        for x in ("null", "2", "true")
    ]


def test_what_hydra_cannot_read_is_one_value() -> None:
    assert settings("dataset.root=/a, b/c=d(", "seed=1,2")[0] == ("dataset.root=/a, b/c=d(", "seed=1")


def test_each_job_has_its_own_folder_named_after_what_differs() -> None:
    grid = read_grid(["dataset=atlas", "linking=exact,fuzzy", "prompts.answer=a/b.md,a-b.md", "out=runs/x"])
    names = [job.name for job in grid.jobs]
    assert names[1] == "linking=exact,prompts.answer=a-b.md"
    assert len(set(names)) == 4 and all("/" not in name for name in names)
    assert grid.jobs[1].folder == Path("runs/x") / names[1]
    assert grid.jobs[1].words[-1] == f"out={grid.jobs[1].folder}"
    assert read_grid(["seed=1,2"]).folder == read_grid(["seed=1,2"]).folder != read_grid(["seed=1,3"]).folder


def test_the_folder_of_a_grid_may_hold_commas_and_an_equals_sign() -> None:
    for out, folder in (("runs/a,b=c", "runs/a,b=c"), ("'runs/a,b'", "runs/a,b"), (r"C:\x y", r"C:\x y")):
        grid = read_grid(["seed=1,2", f"out={out}"])
        assert grid.folder == Path(folder)
        assert [job.folder for job in grid.jobs] == [Path(folder) / "seed=1", Path(folder) / "seed=2"]


def test_folders_of_jobs_differ_also_where_a_file_system_takes_no_account_of_case() -> None:
    names = [job.name for job in read_grid(["dataset.split=dev,DEV,Dev", "out=runs"]).jobs]
    assert names[0] == "dataset.split=dev" and len({name.casefold() for name in names}) == 3


def test_an_experiment_lists_a_grid_that_the_command_line_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = tmp_path / "configs"
    (configs / "experiment").mkdir(parents=True)
    (configs / "config.yaml").write_text("defaults: [_self_, {experiment: null}]\n", "utf-8")
    table = "# @package _global_\nhydra: {sweeper: {params: {linking: 'exact,fuzzy', seed: '1,2'}}}\n"
    (configs / "experiment/table.yaml").write_text(table, "utf-8")
    monkeypatch.setattr("byokg.cli.components.config_dirs", lambda: [configs])
    monkeypatch.setattr("byokg.cli.eval_commands.config_dirs", lambda: [configs])
    assert settings("experiment=table", "seed=7") == [
        ("linking=exact", "seed=7", "experiment=table"),
        ("linking=fuzzy", "seed=7", "experiment=table"),
    ]


def test_a_grid_without_a_sweep_and_another_sweeper_are_refused() -> None:
    with pytest.raises(ConfigError, match="-m has nothing to sweep"):
        read_grid(["dataset=atlas", "limit=5"])
    with pytest.raises(ConfigError, match=r"hydra/sweeper=optuna is not for byokg eval -m"):
        read_grid(["seed=1,2", "hydra/sweeper=optuna"])


def test_jobs_run_and_one_that_fails_does_not_stop_the_others(byokg: Run, films: Path) -> None:
    words = ["eval", "-m", "dataset=folder", f"dataset.root={films}", "ids=q1,q9,q2", "out=runs", "-q"]
    outcome = byokg(*words)
    assert outcome.code == WRONG
    assert "ids=q1 1 0 100.0" in " ".join(outcome.out.split())
    assert "failed ids=q9: ConfigError: ids: no question 'q9' among 3" in outcome.out
    assert "run folders: runs\n" in outcome.out
    assert sorted(path.name for path in Path("runs").iterdir()) == ["ids=q1", "ids=q2"]
    alone = byokg("eval", "dataset=folder", f"dataset.root={films}", "ids=q2", "out=alone", "-q")
    assert alone.code == 0
    for name in SAME:
        assert (Path("alone") / name).read_bytes() == (Path("runs/ids=q2") / name).read_bytes()


def test_a_mistyped_setting_is_found_before_any_job_starts(byokg: Run, films: Path) -> None:
    outcome = byokg("eval", "-m", "dataset=folder", f"dataset.root={films}", "seed=1,2", "pipeline.baem=3", "out=runs")
    assert outcome.code == WRONG and "nearest: pipeline.beam" in outcome.err
    assert not Path("runs").exists()
    assert "for a single run; leave out -m" in byokg("eval", "-m", "seed=1,2", "--show").err


@pytest.mark.parametrize(
    ("package", "launcher"),
    [
        ("hydra_joblib_launcher", ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]),
        ("hydra_submitit_launcher", ["hydra/launcher=submitit_local", "hydra.launcher.timeout_min=5"]),
    ],
)
def test_other_launchers_give_the_same_runs(byokg: Run, films: Path, package: str, launcher: list[str]) -> None:
    if importlib.util.find_spec(f"hydra_plugins.{package}") is None:
        pytest.skip(f"{package} is not installed")
    words = ["eval", "-m", "dataset=folder", f"dataset.root={films}", "pipeline.beam=8,16", "-q"]
    here, there = byokg(*words, "out=here"), byokg(*words, "out=there", *launcher)
    assert (here.code, there.code) == (0, 0), here.err + there.err
    timeless = [re.sub(r"\d\.\d\d\b", "0.00", each.out) for each in (here, there)]
    assert timeless[1] == timeless[0].replace("run folders: here", "run folders: there")
    for beam in (8, 16):
        for name in SAME:
            path = Path(f"pipeline.beam={beam}") / name
            assert (Path("here") / path).read_bytes() == (Path("there") / path).read_bytes()


def test_a_launcher_that_is_not_installed_names_its_extra(byokg: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    outcome = byokg("eval", "-m", "dataset=atlas", "seed=1,2", "hydra/launcher=submitit_slurm", "out=runs")
    assert outcome.code == WRONG
    assert "pip install 'byokg[slurm]'" in outcome.err


@pytest.mark.parametrize(
    ("name", "content", "ids"),
    [
        ("asked.txt", "Who directed Heat?\n\nWho directed Ali?\n", ["1", "3"]),
        (
            "asked.jsonl",
            '{"question": "Who directed Heat?"}\n{"id": "x", "question": "Who directed Ali?"}\n',
            ["1", "x"],
        ),
        ("asked.csv", "question,id\nWho directed Heat?,a\nWho directed Ali?,b\n", ["a", "b"]),
    ],
)
def test_questions_without_gold_answers_are_answered(
    byokg: Run, graph: Path, name: str, content: str, ids: list[str]
) -> None:
    Path(name).write_text(content, "utf-8")
    done = byokg("answer", name, "--graph", graph, "--out", "said.jsonl")
    assert done.code == 0, done.err
    lines = [json.loads(line) for line in Path("said.jsonl").read_text("utf-8").splitlines()]
    assert [line["id"] for line in lines] == ids
    assert (lines[0]["question"], lines[0]["answers"], lines[0]["status"]) == (
        "Who directed Heat?",
        ["Michael Mann"],
        "ok",
    )
    assert "2 questions, 0 failed" in done.err
    assert byokg("trace", "said.jsonl.run", ids[0]).code == 0


def test_answers_are_written_as_csv_and_as_lines_and_not_asked_for_twice(byokg: Run, graph: Path) -> None:
    Path("asked.txt").write_text("Who directed Heat?\nWho is it?\n", "utf-8")
    words = ("answer", "asked.txt", "--graph", graph, "--out", "said.csv", "-q")
    assert byokg(*words).code == 0
    rows = Path("said.csv").read_text("utf-8").splitlines()
    assert rows[0] == "id,question,answers,answer_ids,grounded,status"
    assert rows[1].startswith("1,Who directed Heat?,Michael Mann,")
    assert byokg("answer", "asked.txt", "--graph", graph, "--out", "said.txt", "-q").code == 0
    assert Path("said.txt").read_text("utf-8").splitlines()[0] == "Michael Mann"
    timings = Path("said.csv.run/timings.jsonl").read_bytes()
    assert byokg(*words, "--overwrite").code == 0
    assert Path("said.csv.run/timings.jsonl").read_bytes() == timings


def test_answers_that_are_there_are_replaced_when_asked_for_and_other_files_never(byokg: Run, graph: Path) -> None:
    Path("asked.txt").write_text("Who directed Heat?\n", "utf-8")
    Path("mine.csv").write_text("a file of mine", "utf-8")
    Path("folder").mkdir()
    for place in ("mine.csv", "folder"):
        reason = f"error: GraphExists: cannot write to '{place}': something is there already; choose another file\n"
        for more in ((), ("--overwrite",)):
            refused = byokg("answer", "asked.txt", "--graph", graph, "--out", place, *more)
            assert (refused.code, refused.err) == (WRONG, reason)
    assert Path("mine.csv").read_text("utf-8") == "a file of mine"
    assert not list(Path.cwd().glob("*.run"))

    words = ("answer", "asked.txt", "--graph", graph, "--out", "said.txt", "-q")
    assert byokg(*words).code == 0
    before = Path("said.txt").stat()
    again = byokg(*words, "pipeline.beam=3")
    assert again.code == WRONG
    assert again.err.endswith("answers are there already; add --overwrite or choose another file\n")
    assert Path("said.txt").stat().st_mtime_ns == before.st_mtime_ns
    assert byokg(*words, "pipeline.beam=3", "--overwrite").code == 0
    assert "beam: 3" in Path("said.txt.run/config.yaml").read_text("utf-8")
    assert Path("said.txt").read_text("utf-8") == "Michael Mann\n"
    assert [path.name for path in Path.cwd().glob(".said*")] == []


def test_an_interrupted_answer_of_other_settings_is_kept_unless_overwritten(byokg: Run, graph: Path) -> None:
    Path("asked.txt").write_text("Who directed Heat?\n", "utf-8")
    words = ("answer", "asked.txt", "--graph", graph, "--out", "said.txt", "-q")
    assert byokg(*words).code == 0
    Path("said.txt").unlink()  # as if it had been interrupted before it was written
    assert "belongs to run" in byokg(*words, "pipeline.beam=3").err
    assert byokg(*words).code == 0 and Path("said.txt").is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["absent.txt", "dataset=atlas"], "absent.txt: cannot be read"),
        (["empty.txt", "dataset=atlas"], "holds no question; write one a line"),
        (["asked.txt"], "no graph is named; add --graph DIR"),
        (["asked.txt", "dataset=atlas", "--out", "asked.txt"], "the answers would overwrite the questions"),
    ],
)
def test_what_an_answer_needs_is_said(byokg: Run, words: list[str], message: str) -> None:
    Path("empty.txt").write_text("\n", "utf-8")
    Path("asked.txt").write_text("Who?\n", "utf-8")
    refused = byokg("answer", *words)
    assert refused.code == WRONG
    assert message in refused.err
