"""Tests of `byokg.cli.evaluation`: `byokg eval` from the words typed to the run folder."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from byokg.cli.evaluation import default_folder
from byokg.cli.main import INTERRUPTED, main
from byokg.cli.terminal import WRONG
from byokg.evaluation.runner import RunSettings
from tests.cli.conftest import Outcome, Run, finish, start

FILES = ["config.yaml", "metrics.json", "predictions.jsonl", "questions.jsonl", "timings.jsonl", "trace.jsonl"]

ATLAS = ["eval", "dataset=atlas", "limit=40", "out=run"]
"""A run of a second or so."""


def names(folder: Path) -> list[str]:
    """List what a folder holds for its users."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def run_folder(outcome: Outcome) -> Path:
    """Return the folder named in the last line."""
    last = outcome.out.splitlines()[-1]
    assert last.startswith("run folder: ")
    return Path(last.removeprefix("run folder: "))


def test_a_folder_of_ones_own_is_evaluated_over_the_graph_in_it(byokg: Run, films: Path) -> None:
    outcome = byokg("eval", "dataset=folder", f"dataset.root={films}", "linking.hops=gold", "out=run")
    assert outcome.code == 0
    assert "3 questions, 0 failed" in outcome.out
    assert "linking.entities=linked linking.hops=gold\nrun folder: run\n" in outcome.out
    assert names(Path("run")) == FILES
    metrics = json.loads(Path("run/metrics.json").read_text("utf-8"))
    assert (metrics["n"], metrics["failed"]) == (3, 0)
    assert all(0 <= metrics[name]["value"] <= 1 for name in ("hit", "hits@1", "precision", "recall", "f1", "em"))
    lines = Path("run/predictions.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["q1", "q2", "q3"]


def test_what_was_linked_correctly_is_recorded_and_shown(byokg: Run, films: Path) -> None:
    # Heat and Collateral are found; q3 states no topic.
    outcome = byokg("eval", "dataset=folder", f"dataset.root={films}", "out=run")
    assert "Linked   100.0" in outcome.out
    assert "share of topic entities found, of the 2 questions with any" in " ".join(outcome.out.split())
    lines = Path("run/predictions.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["linked"] for line in lines] == [
        {"gold": ["Heat"], "found": ["Heat"]},
        {"gold": ["Collateral"], "found": ["Collateral"]},
        None,
    ]
    granted = byokg("eval", "dataset=folder", f"dataset.root={films}", "linking.entities=gold", "out=granted")
    assert "Linked" not in granted.out


def test_topics_that_the_graph_holds_under_their_names_are_compared_by_name(byokg: Run, films: Path) -> None:
    lines = (films / "questions.jsonl").read_text("utf-8").splitlines()
    foreign = [json.loads(line) | {"topic_ids": [f"m.0{number}"]} for number, line in enumerate(lines)][:2]
    (films / "questions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in foreign), "utf-8")
    outcome = byokg("eval", "dataset=folder", f"dataset.root={films}", "out=run")
    assert "the graph holds the questions' topics under their names" in outcome.err
    assert "Linked   100.0" in outcome.out


def test_questions_of_another_split_are_shown_solved(byokg: Run) -> None:
    seen = "- reply: <draft_answers>Seen</draft_answers>\n  contains: ['# Similar questions, solved over this graph']\n"
    Path("rules.yaml").write_text(f"{seen}- reply: <answers>none</answers>\n", "utf-8")
    words = ["eval", "dataset=atlas", "limit=1", "pipeline=byokg", "llm=scripted", "llm.rules=rules.yaml"]
    outcome = byokg(*words, "pipeline.examples.source=dataset", "out=run")
    assert outcome.code == 0, outcome.err
    assert '"Seen"' in Path("run/trace.jsonl").read_text("utf-8")
    refused = byokg(*words, "pipeline.examples.source=dataset", "dataset.split=", "out=all")
    assert refused.code == WRONG and "none beside those asked" in " ".join(refused.err.split())


def test_only_the_result_goes_to_standard_output(byokg: Run, films: Path) -> None:
    words = ["eval", "dataset=folder", f"dataset.root={films}"]
    first = byokg(*words, "out=a")
    assert first.out.startswith("films ")
    graph, *progress, done = first.err.splitlines()
    assert graph.startswith("graph: ") and f"(built from {films}: 11 nodes, 11 edges, " in graph
    assert progress[-1].startswith("films: 3/3  Hit ")
    assert done.startswith("3 questions answered in ")
    quiet = byokg(*words, "out=b", "--quiet")
    assert quiet.err == ""
    assert quiet.out == first.out.replace("run folder: a", "run folder: b")


def test_questions_are_picked_drawn_and_sharded_and_shards_merged(byokg: Run, films: Path) -> None:
    words = ["eval", "dataset=folder", f"dataset.root={films}"]
    Path("wanted.txt").write_text("q3\nq1\n", "utf-8")
    picked = byokg(*words, "ids=@wanted.txt", "out=picked")
    assert "2 of 3 questions are asked" not in picked.err and "2 questions, 0 failed" in picked.out
    assert "2 of 3 questions are asked" in byokg(*words, "sample=2", "out=sampled").err
    whole = byokg(*words, "out=whole")
    assert whole.code == 0
    for number in (1, 2):
        assert byokg(*words, f"shard={number}/2", f"out=part-{number}").code == 0
    merged = byokg("merge", "part-2", "part-1", "--out", "merged")
    assert merged.code == 0
    assert "3 questions, 0 failed" in merged.out and merged.out.endswith("run folder: merged\n")
    for name in ("config.yaml", "metrics.json", "predictions.jsonl", "questions.jsonl", "trace.jsonl"):
        assert (Path("merged") / name).read_bytes() == (Path("whole") / name).read_bytes()
    missing = byokg("merge", "part-1", "--out", "other")
    assert missing.code == WRONG
    assert "shards are missing: 2/2" in missing.err


def test_questions_are_asked_of_their_own_graphs(byokg: Run) -> None:
    # Both graphs have a node Ann; she lives in another town in each.
    records = [
        {
            "id": f"q{number}",
            "question": "Where does Ann live?",
            "answer": [town],
            "q_entity": ["Ann"],
            "a_entity": [town],
            "graph": [["Ann", "lives_in", town]],
            "choices": [],
        }
        for number, town in enumerate(("Ulm", "Bonn"))
    ]
    Path("rog").mkdir()
    Path("rog/test.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records), "utf-8")
    words = ["eval", "dataset=rog", "dataset.root=rog", "linking.entities=gold"]
    assert byokg(*words, "out=own").code == 0
    answers = [json.loads(line)["answers"] for line in Path("own/predictions.jsonl").read_text("utf-8").splitlines()]
    assert answers == [["Ulm"], ["Bonn"]]
    assert yaml.safe_load(Path("own/config.yaml").read_text("utf-8"))["graph"]["checksum"].startswith("subgraphs:")
    assert byokg(*words, "graph.per_question=false", "out=one").code == 0
    answers = [json.loads(line)["answers"] for line in Path("one/predictions.jsonl").read_text("utf-8").splitlines()]
    assert [sorted(each) for each in answers] == [["Bonn", "Ulm"], ["Bonn", "Ulm"]]
    refused = byokg("eval", "dataset=atlas", "graph.per_question=true")
    assert "needs a data set with subgraphs, such as dataset=rog" in refused.err


def test_one_split_of_a_folder_is_evaluated(byokg: Run, films: Path) -> None:
    outcome = byokg("eval", "dataset=folder", f"dataset.root={films}", "dataset.split=dev")
    assert "1 questions, 0 failed" in outcome.out or "1 question, 0 failed" in outcome.out
    assert outcome.out.startswith("films dev")


def test_the_record_of_a_run_holds_the_resolved_settings_checksums_and_code(byokg: Run, films: Path) -> None:
    byokg("eval", "dataset=folder", f"dataset.root={films}", "out=run", "pipeline.beam=16")
    text = Path("run/config.yaml").read_text("utf-8")
    record = yaml.safe_load(text)
    assert record["config"]["options"]["pipeline"] == "offline"
    assert record["config"]["pipeline"]["beam"] == 16
    assert record["config"]["embedder"].startswith("static-128-int8-")
    assert len(record["dataset"]["checksum"]) == len(record["graph"]["checksum"]) == 64
    assert set(record["code"]) == {"version", "digest", "commit"}
    assert str(films) not in text


def test_without_out_the_same_command_meets_its_run_and_other_settings_never_do(byokg: Run, films: Path) -> None:
    words = ["eval", "dataset=folder", f"dataset.root={films}"]
    first, again = byokg(*words), byokg(*words)
    assert run_folder(first) == run_folder(again)
    assert run_folder(first).parts[0] == "runs" and run_folder(first).name.startswith("films-offline-")
    assert again.out == first.out
    assert "this run is finished already" in again.err
    others = [
        byokg(*words, "pipeline.beam=16"),
        byokg(*words, "limit=2"),
        byokg(*words, "linking.entities=gold"),
        byokg(*words, "seed=1"),
    ]
    assert len({run_folder(outcome) for outcome in (first, *others)}) == 5
    # Neither the place of the files nor the number of workers changes an answer.
    Path("elsewhere").mkdir()
    moved = films.rename("elsewhere/films")
    same = byokg("eval", "dataset=folder", f"dataset.root={moved}", "workers=2")
    assert run_folder(same) == run_folder(first)
    assert "this run is finished already" in same.err


def test_a_run_is_named_after_its_data_set_pipeline_and_settings() -> None:
    settings = RunSettings("metaqa 2-hop test", "0" * 64, "1" * 64)
    folder = default_folder(settings, "offline")
    assert folder.parent == Path("runs")
    assert folder.name.startswith("metaqa-2-hop-test-offline-")
    assert len(folder.name.rpartition("-")[2]) == 8


def test_a_folder_of_another_run_is_refused_and_kept(byokg: Run, films: Path) -> None:
    words = ["eval", "dataset=folder", f"dataset.root={films}", "out=run"]
    byokg(*words)
    before = Path("run/predictions.jsonl").read_bytes()
    outcome = byokg(*words, "pipeline.beam=16")
    assert (outcome.code, outcome.out) == (WRONG, "")
    assert "config.pipeline.beam: 32 there, 16 now" in outcome.err
    assert Path("run/predictions.jsonl").read_bytes() == before


def test_a_named_graph_is_used_and_nothing_is_cached(byokg: Run, films: Path, graph: Path) -> None:
    (films / "kb.txt").unlink()
    outcome = byokg("eval", "dataset=folder", f"dataset.root={films}", f"graph.path={graph}", "out=run")
    assert "3 questions, 0 failed" in outcome.out
    assert not Path("cache").exists()


def test_failed_questions_are_listed_and_counted(byokg: Run, films: Path, graph: Path) -> None:
    with (films / "questions.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "q4", "question": "Who directed Ran?", "answers": ["Kurosawa"], "topic_ids": ["Ran"]}\n')
        file.write('{"id": "q5", "question": "Who is in Heat?", "answers": ["Al Pacino"], "topic_ids": ["Heat"]}\n')
    outcome = byokg("eval", "dataset=folder", f"dataset.root={films}", "linking.entities=gold")
    assert outcome.code == 0
    assert "5 questions, 1 failed" in outcome.out
    assert "\nfailed q4: EntityNotFound: no entity 'Ran' in " in outcome.out


def test_a_run_in_which_everything_failed_is_an_error(byokg: Run, films: Path) -> None:
    line = '{"id": "q", "question": "Who directed Ran?", "answers": ["Kurosawa"], "topic_ids": ["Ran"]}\n'
    (films / "questions.jsonl").write_text(line, "utf-8")
    outcome = byokg("eval", "dataset=folder", f"dataset.root={films}", "linking.entities=gold", "out=run")
    assert outcome.code == WRONG
    assert "error: RunError: all 1 questions failed; the reasons are in run/predictions.jsonl" in outcome.err


def test_a_grant_of_what_is_not_annotated_is_told(byokg: Run, films: Path) -> None:
    words = ["eval", "dataset=folder", f"dataset.root={films}"]
    some = byokg(*words, "linking.hops=gold")
    assert some.err.startswith("2 of 3 questions have no hop count annotated; linking.hops=gold grants them nothing\n")
    none = byokg(*words, "linking.hops=gold", "dataset.split=dev")
    assert (none.code, none.out) == (WRONG, "")
    assert "linking.hops=gold grants nothing: no question of this data set has its hop count annotated" in none.err


def test_a_graph_keyed_by_name_is_asked_by_name_whatever_is_granted(byokg: Run, films: Path) -> None:
    line = '{"id": "q", "question": "Who directed Heat?", "answers": ["Michael Mann"], "hops": 1, '
    line += '"topic_entities": ["Heat"], "topic_ids": ["m.0f4vx"]}\n'
    (films / "questions.jsonl").write_text(line, "utf-8")
    words = ["eval", "dataset=folder", f"dataset.root={films}", "linking.entities=gold"]
    for more in ([], ["dataset.ids=names"], ["linking.entities=linked"]):
        out = films.parent / f"run{len(more)}{'=names' in str(more)}"
        assert byokg(*words, *more, f"out={out}", "-q").code == 0
        assert json.loads((out / "metrics.json").read_text("utf-8"))["hit"]["value"] == 1.0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "ConfigError: no dataset is chosen; choose one of dataset=atlas, dataset=cronquestions"),
        (("dataset=metaqa",), "ConfigError: dataset=metaqa needs dataset.root, dataset.hops"),
        (("dataset=metaqa", "dataset.root=.", "dataset.hops=4"), "MetaQA has questions of 1, 2 or 3 hops, or all"),
        (("dataset=atlas", "dataset.split=tset"), "has no question in split 'tset'; it holds dev"),
        (("dataset=folder", "dataset.root=nowhere"), "DatasetError: nowhere: holds no questions.jsonl"),
        (("dataset=atlas", "pipeline.max_hops=9"), "ConfigError: max_hops=9 is out of range"),
    ],
)
def test_an_evaluation_that_cannot_start_says_why_and_writes_nothing(
    byokg: Run, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    outcome = byokg("eval", *words)
    assert (outcome.code, outcome.out) == (WRONG, "")
    assert message in outcome.err.splitlines()[-1]
    assert not (tmp_path / "runs").exists()


def test_settings_are_shown_without_running_anything(byokg: Run, tmp_path: Path) -> None:
    outcome = byokg("eval", "dataset=atlas", "limit=7", "--show")
    assert (outcome.code, outcome.err) == (0, "")
    assert yaml.safe_load(outcome.out)["limit"] == 7
    assert list(tmp_path.iterdir()) == []


def test_nothing_but_the_run_and_the_cache_appears(byokg: Run, tmp_path: Path) -> None:
    byokg("eval", "dataset=atlas", "debug=quick")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "runs"]


# Interrupted runs


def wait_for_lines(process: subprocess.Popen[str], count: int) -> None:
    """Wait until a run has recorded some questions."""
    path = Path("run/predictions.jsonl")
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if path.is_file() and path.read_bytes().count(b"\n") >= count:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    pytest.fail("the run records nothing")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that nothing interrupted, beside the graph that all of them use."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert main([*ATLAS[:-1], f"out={folder / 'run'}", f"graph.cache={folder / 'graphs'}"]) == 0
    return folder / "run"


def words_of(undisturbed: Path) -> list[str]:
    return [*ATLAS, f"graph.cache={undisturbed.parent / 'graphs'}"]


def same_records(run: Path, other: Path) -> bool:
    """Compare what must be equal byte for byte."""
    return all(
        (run / name).read_bytes() == (other / name).read_bytes() for name in ("predictions.jsonl", "trace.jsonl")
    )


def test_a_killed_run_continues_and_ends_with_the_same_bytes(byokg: Run, undisturbed: Path) -> None:
    words = [*words_of(undisturbed), "workers=2"]
    process = start(words)
    wait_for_lines(process, 10)
    process.send_signal(signal.SIGKILL)
    assert finish(process).code == -signal.SIGKILL
    assert not Path("run/metrics.json").exists()
    outcome = byokg(*words)
    assert outcome.code == 0
    assert " were recorded before\n" in outcome.err
    assert same_records(Path("run"), undisturbed)
    assert Path("run/metrics.json").read_bytes() == (undisturbed / "metrics.json").read_bytes()


def test_ctrl_c_says_how_to_continue_and_exits_with_1(byokg: Run, undisturbed: Path) -> None:
    process = start(words_of(undisturbed))
    wait_for_lines(process, 5)
    process.send_signal(signal.SIGINT)
    outcome = finish(process)
    assert (outcome.code, outcome.out) == (INTERRUPTED, "")
    assert "of 40 questions are recorded in run; the same command continues there\ninterrupted\n" in outcome.err
    assert "Traceback" not in outcome.err
    assert byokg(*words_of(undisturbed)).code == 0
    assert same_records(Path("run"), undisturbed)


def test_questions_may_name_topics_and_answers_over_a_graph_of_ids(byokg: Run, tmp_path: Path) -> None:
    root = tmp_path / "own"
    root.mkdir()
    (root / "nodes.csv").write_text("id,name\np1,Ann Lee\nc1,Acme\n", "utf-8")
    (root / "edges.csv").write_text("head,relation,tail\np1,works_for,c1\n", "utf-8")
    question = {"id": "q", "question": "Who does Ann Lee work for?", "answers": ["Acme"], "topic_entities": ["Ann Lee"]}
    (root / "questions.jsonl").write_text(json.dumps(question), "utf-8")
    for entities in ("linked", "gold"):
        words = ("dataset=folder", f"dataset.root={root}", f"linking.entities={entities}", f"out={entities}")
        done = byokg("eval", *words)
        assert done.code == 0
        assert "the questions name their topics and give no ids" in done.err
    [line] = Path("linked/predictions.jsonl").read_text("utf-8").splitlines()
    prediction = json.loads(line)
    assert prediction["linked"] == {"gold": ["p1"], "found": ["p1"]}
    assert prediction["retrieved"]["ranks"] == [1]
