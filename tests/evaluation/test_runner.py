"""Tests of `byokg.evaluation.runner` and of the run folder it writes."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.errors import ConfigError, RunError, RunIncomplete
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.records import (
    CONFIG,
    PREDICTIONS,
    TIMINGS,
    TRACE,
    LinkedTopics,
    read_config,
    read_predictions,
    read_unfinished,
    read_usage,
    reply_keys,
)
from byokg.evaluation.run_folder import METRICS_FILE, config_hash
from byokg.evaluation.runner import Measurement, Progress, RunSettings, measure, run_evaluation
from byokg.llm.messages import Call, Message, Reply, Usage
from byokg.llm.reply_store import RecordedReplies
from byokg.llm.usage import Budget, PriceTable, UsageMeter
from byokg.types import Answer, AnswerItem, Consumption, EntityId, Question, Spending
from tests.evaluation.scripted import SETTINGS, Scripted, examples

ROOT = Path(__file__).resolve().parents[2]
COUNT = 150
SAME = (PREDICTIONS, TRACE, METRICS_FILE, CONFIG)
"""The files that equal runs write equal, byte for byte."""


def files(folder: Path, names: tuple[str, ...] = SAME) -> dict[str, bytes]:
    """Return the content of a run folder's files."""
    return {name: (folder / name).read_bytes() for name in names}


def ids(file: Path) -> list[str]:
    """Return the ids in a record file, in file order."""
    return [json.loads(line)["id"] for line in file.read_bytes().splitlines()]


class Asked(Scripted):
    """A scripted pipeline that remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.questions: list[Question] = []

    def run(self, question: Question) -> Answer:
        """Remember the question, then answer it."""
        self.questions.append(question)
        return super().run(question)


class StopsAt(Asked):
    """A scripted pipeline during whose n-th question the user presses Ctrl-C."""

    def __init__(self, stop: int) -> None:
        super().__init__()
        self._stop = stop

    def run(self, question: Question) -> Answer:
        """Answer, or be interrupted."""
        if len(self.questions) == self._stop:
            raise KeyboardInterrupt
        return super().run(question)


def test_every_question_is_recorded_once_in_data_set_order(tmp_path: Path) -> None:
    run_evaluation(Scripted(), examples(40), tmp_path, SETTINGS)
    for name in (PREDICTIONS, TRACE, TIMINGS):
        assert ids(tmp_path / name) == [f"q{number}" for number in range(40)]


def test_metrics_count_failures_in_the_denominator(tmp_path: Path) -> None:
    # Of ten questions two fail and one gets no answer. Seven hit; of these 1, 3 and 5 have the right answer alone,
    # 0, 2, 4 and 6 a wrong one before it.
    metrics = run_evaluation(Scripted(), examples(10), tmp_path, SETTINGS)
    written = json.loads((tmp_path / METRICS_FILE).read_text())
    assert (written["n"], written["failed"]) == (10, 2) == (metrics.overall.n, metrics.overall.failed)
    assert written["hit"]["value"] == pytest.approx(0.7)
    assert written["hits@1"]["value"] == pytest.approx(0.3)
    assert written["precision"]["value"] == pytest.approx((3 + 4 / 2) / 10)
    assert written["recall"]["value"] == pytest.approx(0.7)
    assert written["f1"]["value"] == pytest.approx((3 + 4 * 2 / 3) / 10)
    assert written["em"]["value"] == pytest.approx(0.3)
    assert [written["by_type"][key]["n"] for key in ("even", "odd")] == [5, 5]
    assert [written["by_hops"][key]["n"] for key in ("1", "2", "3")] == [4, 3, 3]
    low, high = written["hit"]["ci95"]
    assert 0.0 <= low < 0.7 < high <= 1.0


class Asking(Scripted):
    """A scripted pipeline that asks a recorded and metered model twice for each question, and fails every fifth."""

    def __init__(self, store: RecordedReplies, meter: UsageMeter) -> None:
        super().__init__()
        self._store, self._meter = store, meter
        self.sent: list[str] = []

    def run(self, question: Question) -> Answer:
        """Ask as a language model does, then answer."""
        for stage in ("link", "answer"):
            call = Call("p", "m", (Message("user", f"{stage} {question.id}"),), {"max_tokens": 10})
            reply = self._store.get(call)
            if reply is None:
                self._meter.before(call, stage, question.id)
                self.sent.append(call.key)
                reply = Reply("ok", usage=Usage(100, 10))
                self._meter.after(call, reply, stage, question.id, replayed=False)
                self._store.put(call, reply)
            else:
                self._meter.after(call, reply, stage, question.id, replayed=True)
            if question.id.endswith("5"):
                raise ValueError("no answer")
        return super().run(question)


@pytest.fixture
def prices(tmp_path: Path) -> PriceTable:
    """Return prices by which each of the calls above costs 2 dollars."""
    file = tmp_path / "prices.yaml"
    file.write_text("- models: [m]\n  input: 10000\n  output: 100000\n", "utf-8")
    return PriceTable(file)


def test_what_each_question_took_is_recorded_failed_ones_included(tmp_path: Path, prices: PriceTable) -> None:
    with RecordedReplies(tmp_path / "replies.sqlite") as store:
        meter = UsageMeter(prices)
        run_evaluation(
            Asking(store, meter), examples(10), tmp_path / "run", SETTINGS, 4, measurement=Measurement(meter)
        )
        usage = read_usage(tmp_path / "run")
        one = Spending(Consumption(1, 100, 10, usd=2.0))
        assert usage == [{"link": one} if number == 5 else {"link": one, "answer": one} for number in range(10)]
        assert reply_keys(tmp_path / "run") == {each.call.key for each in store.recorded()}
        traces = [json.loads(line) for line in (tmp_path / "run" / TRACE).read_bytes().splitlines()]
        assert [len(trace["calls"]) for trace in traces] == [2, 2, 2, 2, 2, 1, 2, 2, 2, 2]
        again = UsageMeter(prices)
        run_evaluation(
            Asking(store, again), examples(10), tmp_path / "replayed", SETTINGS, measurement=Measurement(again)
        )
        assert files(tmp_path / "run") == files(tmp_path / "replayed")
        assert read_usage(tmp_path / "replayed")[0]["link"] == Spending(replayed=Consumption(1, 100, 10, usd=2.0))
        assert (again.total.asked.usd, again.total.replayed.usd) == (0.0, 38.0)


@pytest.mark.parametrize("workers", [1, 4])
def test_a_run_stops_at_its_budget_and_continues_with_a_higher_one_without_paying_twice(
    tmp_path: Path, prices: PriceTable, workers: int
) -> None:
    sent: list[str] = []
    with RecordedReplies(tmp_path / "replies.sqlite") as store:
        undisturbed = UsageMeter(prices)
        with RecordedReplies(tmp_path / "other.sqlite") as other:
            run_evaluation(
                Asking(other, undisturbed),
                examples(20),
                tmp_path / "whole",
                SETTINGS,
                measurement=Measurement(undisturbed),
            )
        for budget in (11.0, 11.0, 31.0):
            meter = UsageMeter(prices, Budget(max_usd=budget))
            pipeline = Asking(store, meter)
            with pytest.raises(RunIncomplete, match=f"max_usd={budget:g}"):
                run_evaluation(
                    pipeline, examples(20), tmp_path / "run", SETTINGS, workers, measurement=Measurement(meter)
                )
            sent += pipeline.sent
            paid = [*read_usage(tmp_path / "run"), read_unfinished(tmp_path / "run")]
            assert sum(spent.asked.usd for stages in paid for spent in stages.values()) == 2 * len(sent) <= budget
            assert not (tmp_path / "run" / METRICS_FILE).exists()
        assert 2 * len(sent) == 30
        meter = UsageMeter(prices, Budget(max_usd=100))
        pipeline = Asking(store, meter)
        run_evaluation(pipeline, examples(20), tmp_path / "run", SETTINGS, workers, measurement=Measurement(meter))
        sent += pipeline.sent
    assert len(sent) == len(set(sent)) == 38
    assert files(tmp_path / "run") == files(tmp_path / "whole")


def test_a_failed_question_is_recorded_with_the_error_and_the_run_goes_on(tmp_path: Path) -> None:
    run_evaluation(Scripted(), examples(10), tmp_path, SETTINGS)
    predictions = list(read_predictions(tmp_path))
    assert Counter(prediction.status for prediction in predictions) == {"ok": 7, "abstained": 1, "failed": 2}
    known, unexpected = predictions[7].error, predictions[8].error
    assert known is not None and known.type == "EntityNotFound" and "'node 7'" in known.message
    assert unexpected is not None and (unexpected.type, unexpected.message) == ("ZeroDivisionError", "division by zero")
    assert predictions[9].error is None and predictions[9].answers == ()


def test_an_answer_that_cannot_be_recorded_is_a_failed_question(tmp_path: Path) -> None:
    class Odd(Scripted):
        def run(self, question: Question) -> Answer:
            answer = super().run(question)
            if question.id == "q1":
                return replace(answer, question_id="q2")
            if question.id == "q2":
                evidence = replace(answer.rounds[0].evidence[0], score=float("nan"))
                return replace(answer, rounds=(replace(answer.rounds[0], evidence=(evidence,)),))
            if question.id == "q3":
                return None  # type: ignore[return-value]
            return answer

    metrics = run_evaluation(Odd(), examples(5), tmp_path, SETTINGS)
    errors = {p.id: p.error.type for p in read_predictions(tmp_path) if p.error is not None}
    assert errors == {"q1": "RunError", "q2": "ValueError", "q3": "AttributeError"}
    assert (metrics.overall.n, metrics.overall.failed) == (5, 3)


def test_many_workers_write_the_same_bytes_as_one(tmp_path: Path) -> None:
    alone, together = tmp_path / "alone", tmp_path / "together"
    run_evaluation(Scripted(), examples(COUNT), alone, SETTINGS)
    run_evaluation(Scripted(pause_s=0.01), examples(COUNT), together, SETTINGS, workers=8)
    assert files(alone) == files(together)
    assert ids(together / TIMINGS) == ids(together / PREDICTIONS)


def test_a_pipeline_sees_only_the_annotations_that_are_granted(tmp_path: Path) -> None:
    question = Example("q1", "Where?", ("right 1",), topic_ids=(EntityId("m.1"),), hops=2)
    blind, told = Asked(), Asked()
    run_evaluation(blind, [question], tmp_path / "blind", SETTINGS)
    run_evaluation(told, [question], tmp_path / "told", replace(SETTINGS, entities="gold", hops="gold"))
    assert blind.questions == [Question("q1", "Where?")]
    assert told.questions == [Question("q1", "Where?", (EntityId("m.1"),), 2)]


def test_progress_counts_questions_failures_and_hits(tmp_path: Path) -> None:
    seen: list[Progress] = []
    run_evaluation(Scripted(), examples(10), tmp_path, SETTINGS, on_progress=seen.append)
    assert [progress.done for progress in seen] == list(range(1, 11))
    assert seen[6] == Progress(done=7, total=10, failed=0, hit=1.0)
    assert seen[-1] == Progress(done=10, total=10, failed=2, hit=0.7)


def test_a_finished_run_is_read_not_run_again(tmp_path: Path) -> None:
    metrics = run_evaluation(Scripted(), examples(10), tmp_path, SETTINGS)
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.iterdir()}
    pipeline = Asked()
    assert run_evaluation(pipeline, examples(10), tmp_path, SETTINGS, workers=3) == metrics
    assert pipeline.questions == []
    assert {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.iterdir()} == before


def test_a_run_whose_metrics_are_gone_measures_without_asking(tmp_path: Path) -> None:
    run_evaluation(Scripted(), examples(10), tmp_path, SETTINGS)
    before = files(tmp_path)
    (tmp_path / METRICS_FILE).unlink()
    pipeline = Asked()
    run_evaluation(pipeline, examples(10), tmp_path, SETTINGS)
    assert pipeline.questions == []
    assert files(tmp_path) == before


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that nothing happened to."""
    folder = tmp_path_factory.mktemp("undisturbed")
    run_evaluation(Scripted(), examples(COUNT), folder, SETTINGS)
    return folder


@given(cuts=st.tuples(*[st.floats(0, 1)] * 3), shuffle=st.randoms(use_true_random=False))
@settings(max_examples=12)
def test_records_torn_anywhere_are_completed(
    undisturbed: Path, tmp_path_factory: pytest.TempPathFactory, cuts: tuple[float, ...], shuffle: random.Random
) -> None:
    folder = tmp_path_factory.mktemp("torn")
    (folder / CONFIG).write_bytes((undisturbed / CONFIG).read_bytes())
    for name, cut in zip((PREDICTIONS, TRACE, TIMINGS), cuts, strict=True):
        lines = (undisturbed / name).read_bytes().splitlines(keepends=True)
        shuffle.shuffle(lines)  # the three files need not agree on the order either
        content = b"".join(lines)
        (folder / name).write_bytes(content[: round(len(content) * cut)])
    run_evaluation(Scripted(), examples(COUNT), folder, SETTINGS, workers=2)
    assert files(folder) == files(undisturbed)
    assert sorted(ids(folder / TIMINGS)) == sorted(ids(undisturbed / TIMINGS))
    assert not list(folder.glob("*.partial-*"))


def test_only_what_is_missing_is_asked_again(undisturbed: Path, tmp_path: Path) -> None:
    for name in (CONFIG, PREDICTIONS, TRACE, TIMINGS):
        (tmp_path / name).write_bytes((undisturbed / name).read_bytes())
    lines = (tmp_path / PREDICTIONS).read_bytes().splitlines(keepends=True)
    (tmp_path / PREDICTIONS).write_bytes(b"".join(lines[:-2]) + lines[-2][:20])  # torn in the last line but one
    (tmp_path / TRACE).write_bytes(b"\0" * 30 + b"\n" + (tmp_path / TRACE).read_bytes())  # as after a power cut
    pipeline = Asked()
    seen: list[Progress] = []
    run_evaluation(pipeline, examples(COUNT), tmp_path, SETTINGS, on_progress=seen.append)
    assert [question.id for question in pipeline.questions] == [f"q{COUNT - 2}", f"q{COUNT - 1}"]
    assert [progress.done for progress in seen] == [COUNT - 2, COUNT - 1, COUNT]
    assert files(tmp_path) == files(undisturbed)


def test_a_question_recorded_twice_is_kept_once(undisturbed: Path, tmp_path: Path) -> None:
    (tmp_path / CONFIG).write_bytes((undisturbed / CONFIG).read_bytes())
    for name in (PREDICTIONS, TRACE, TIMINGS):
        lines = (undisturbed / name).read_bytes().splitlines(keepends=True)
        (tmp_path / name).write_bytes(b"".join([*lines[:9], lines[3], *lines[9:], lines[0]]))
        (tmp_path / f".{name}.partial-0").write_bytes(b"left by a kill")
    pipeline = Asked()
    run_evaluation(pipeline, examples(COUNT), tmp_path, SETTINGS)
    assert pipeline.questions == []
    assert files(tmp_path, (*SAME, TIMINGS)) == files(undisturbed, (*SAME, TIMINGS))
    assert not list(tmp_path.glob("*.partial-*"))


@pytest.mark.parametrize("workers", [1, 4])
def test_an_interrupted_run_keeps_what_was_answered_and_can_be_continued(
    undisturbed: Path, tmp_path: Path, workers: int
) -> None:
    interrupted = StopsAt(60)
    with pytest.raises(KeyboardInterrupt):
        run_evaluation(interrupted, examples(COUNT), tmp_path, SETTINGS, workers=workers)
    assert sorted(ids(tmp_path / PREDICTIONS)) == sorted(question.id for question in interrupted.questions)
    assert not (tmp_path / METRICS_FILE).exists()
    rest = Asked()
    run_evaluation(rest, examples(COUNT), tmp_path, SETTINGS, workers=workers)
    assert len(interrupted.questions) + len(rest.questions) == COUNT
    assert files(tmp_path) == files(undisturbed)


class Program:
    """The scripted evaluation in a process of its own."""

    def __init__(self, folder: Path, workers: int = 4, pause_s: float = 0.02, limit: int = 0) -> None:
        self.out = folder / "run"
        self.log = folder / "asked.log"
        self._arguments = [str(self.out), str(COUNT), str(workers), str(pause_s), str(self.log), str(limit)]

    def start(self) -> subprocess.Popen[str]:
        """Start it."""
        command = [sys.executable, "-m", "tests.evaluation.scripted", *self._arguments]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_for(self, count: int, process: subprocess.Popen[str]) -> None:
        """Return once `count` predictions are written, or the program has ended."""
        while process.poll() is None:
            if (self.out / PREDICTIONS).exists() and (self.out / PREDICTIONS).read_bytes().count(b"\n") >= count:
                return
            time.sleep(0.001)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_killed_again_and_again_ends_with_the_same_files(
    undisturbed: Path, tmp_path: Path, how: signal.Signals
) -> None:
    program = Program(tmp_path)
    moments = random.Random(int(how))
    kills = 0
    for fraction in (0.0, 0.3, 0.6, 0.95):
        process = program.start()
        program.wait_for(round(COUNT * fraction), process)
        time.sleep(moments.random() * 0.01)
        process.send_signal(how)
        process.communicate()
        kills += process.returncode != 0
    process = program.start()
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert output.split()[1] == str(COUNT)
    assert kills >= 2
    assert files(program.out) == files(undisturbed)
    assert sorted(ids(program.out / TIMINGS)) == sorted(ids(undisturbed / TIMINGS))
    asked_again = len(program.log.read_text().splitlines()) - COUNT
    # A kill loses the eight questions that four workers have at hand; Ctrl-C one that is just being handed to them.
    assert asked_again <= kills * (8 if how is signal.SIGKILL else 1)


def test_a_run_of_100_questions_killed_at_20_random_moments_ends_with_the_same_bytes(tmp_path: Path) -> None:
    words = (sys.executable, "-m", "tests.evaluation.kills", str(tmp_path), "100", "20", "17")
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    killed, partly, different = map(int, done.stdout.split())
    assert killed == 20
    assert partly >= 8  # by far not all kills come before the first or after the last question is recorded
    assert different == 0


def test_a_full_disk_stops_the_run_with_advice_and_it_can_be_continued(undisturbed: Path, tmp_path: Path) -> None:
    program = Program(tmp_path, pause_s=0.0, limit=20_000)
    process = program.start()
    _, errors = process.communicate()
    assert process.returncode != 0
    assert "RunError: cannot write to" in errors
    assert "make room and start the same command again" in errors
    recorded = ids(program.out / PREDICTIONS)
    assert 0 < len(recorded) < COUNT
    run_evaluation(Scripted(), examples(COUNT), program.out, SETTINGS)
    assert files(program.out) == files(undisturbed)


def test_a_second_process_is_refused_while_the_first_one_runs(undisturbed: Path, tmp_path: Path) -> None:
    program = Program(tmp_path, workers=1, pause_s=0.1)
    process = program.start()
    program.wait_for(1, process)
    with pytest.raises(RunError, match=rf"written by another process \(pid {process.pid}\)"):
        run_evaluation(Scripted(), examples(COUNT), program.out, SETTINGS)
    process.kill()
    process.communicate()
    run_evaluation(Scripted(), examples(COUNT), program.out, SETTINGS)
    assert files(program.out) == files(undisturbed)


CHANGED_CONFIG = {"pipeline": {"name": "scripted", "paths": 5}, "linking": {"entities": "linked"}}


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        (replace(SETTINGS, config=CHANGED_CONFIG), "config.pipeline.paths: 3 there, 5 now"),
        (replace(SETTINGS, config={}), "config.pipeline.name: 'scripted' there, nothing now"),
        (replace(SETTINGS, graph_checksum="2" * 64), f"graph.checksum: '{'1' * 64}' there, '{'2' * 64}' now"),
        (replace(SETTINGS, dataset_checksum="3" * 64), f"dataset.checksum: '{'0' * 64}' there, '{'3' * 64}' now"),
        (replace(SETTINGS, entities="gold"), "entities: 'linked' there, 'gold' now"),
        (replace(SETTINGS, seed=1), "seed: 0 there, 1 now"),
    ],
)
@pytest.mark.parametrize("finished", [True, False])
def test_a_folder_of_another_run_is_refused_with_both_hashes_and_the_difference(
    tmp_path: Path, changed: RunSettings, difference: str, finished: bool
) -> None:
    run_evaluation(Scripted(), examples(10), tmp_path, SETTINGS)
    if not finished:
        (tmp_path / METRICS_FILE).unlink()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if not path.name.startswith(".")}
    with pytest.raises(RunError) as refused:
        run_evaluation(Scripted(), examples(10), tmp_path, changed)
    message = str(refused.value)
    assert difference in message
    other = tmp_path / "other"
    run_evaluation(Scripted(), examples(10), other, changed)
    for folder in (tmp_path, other):
        assert read_config(folder)["hash"][:12] in message
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.*") if not path.name.startswith(".")} == before


def test_other_questions_are_another_run(tmp_path: Path) -> None:
    run_evaluation(Scripted(), examples(10), tmp_path, SETTINGS)
    with pytest.raises(RunError, match=r"questions\.n: 10 there, 9 now"):
        run_evaluation(Scripted(), examples(9), tmp_path, SETTINGS)
    reworded = [replace(example, answers=("elsewhere",)) for example in examples(10)]
    with pytest.raises(RunError, match=r"questions\.checksum: "):
        run_evaluation(Scripted(), reworded, tmp_path, SETTINGS)


def test_an_edited_configuration_is_noticed(tmp_path: Path) -> None:
    run_evaluation(Scripted(), examples(10), tmp_path, SETTINGS)
    config = (tmp_path / CONFIG).read_text()
    (tmp_path / CONFIG).write_text(config.replace("paths: 3", "paths: 4"))
    with pytest.raises(RunError, match=r"config\.pipeline\.paths: 4 there, 3 now"):
        run_evaluation(Scripted(), examples(10), tmp_path, SETTINGS)


def test_the_commit_alone_does_not_make_another_run(tmp_path: Path) -> None:
    metrics = run_evaluation(Scripted(), examples(10), tmp_path, SETTINGS)
    config = read_config(tmp_path)
    assert config["code"].keys() == {"version", "digest", "commit"}
    elsewhere = {**config, "code": {**config["code"], "commit": "0" * 40}}
    assert config_hash(elsewhere) == config["hash"] == config_hash(config)
    assert config_hash({**config, "code": {**config["code"], "digest": "0"}}) != config["hash"]
    assert run_evaluation(Scripted(), examples(10), tmp_path, SETTINGS) == metrics


def test_records_without_a_configuration_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / PREDICTIONS).write_text("mine\n")
    with pytest.raises(RunError, match=r"holds predictions\.jsonl but no config\.yaml"):
        run_evaluation(Scripted(), examples(10), tmp_path, SETTINGS)
    assert (tmp_path / PREDICTIONS).read_text() == "mine\n"
    assert not (tmp_path / CONFIG).exists()


def test_records_of_a_newer_version_are_left_alone(tmp_path: Path) -> None:
    run_evaluation(Scripted(), examples(10), tmp_path, SETTINGS)
    (tmp_path / METRICS_FILE).unlink()
    newer = (tmp_path / TRACE).read_bytes().replace(b'"schema":1', b'"schema":2')
    (tmp_path / TRACE).write_bytes(newer)
    with pytest.raises(RunError, match=r"trace\.jsonl:1: schema 2.*upgrade byokg"):
        run_evaluation(Scripted(), examples(10), tmp_path, SETTINGS)
    assert (tmp_path / TRACE).read_bytes() == newer


def test_a_folder_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot use run folder"):
        run_evaluation(Scripted(), examples(1), tmp_path / "file", SETTINGS)


def test_what_cannot_be_evaluated_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(RunError, match="no question"):
        run_evaluation(Scripted(), [], out, SETTINGS)
    with pytest.raises(RunError, match="3 questions have only 2 distinct ids"):
        run_evaluation(Scripted(), [*examples(2), *examples(1)], out, SETTINGS)
    with pytest.raises(RunError, match="question 'q0' has no gold answers"):
        run_evaluation(Scripted(), [replace(examples(1)[0], answers=())], out, SETTINGS)
    with pytest.raises(ConfigError, match="workers=0"):
        run_evaluation(Scripted(), examples(1), out, SETTINGS, workers=0)
    with pytest.raises(ConfigError, match=r"config\.model\[1\] is a object"):
        run_evaluation(Scripted(), examples(1), out, replace(SETTINGS, config={"model": [1, object()]}))
    assert not out.exists()


JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8")),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), values),
    max_leaves=8,
)


@given(config=st.dictionaries(st.text(st.characters(codec="utf-8")), JSON_LIKE, max_size=4))
@settings(max_examples=20, deadline=None)
def test_any_configuration_reads_back_as_the_same_run(
    tmp_path_factory: pytest.TempPathFactory, config: dict[str, object]
) -> None:
    folder = tmp_path_factory.mktemp("config")
    run_evaluation(Scripted(), examples(1), folder, replace(SETTINGS, config=config))
    written = read_config(folder)
    assert written["config"] == config
    assert config_hash(written) == written["hash"]


def test_predictions_are_measured_as_when_they_were_made(tmp_path: Path) -> None:
    metrics = run_evaluation(Scripted(), examples(30), tmp_path, SETTINGS)
    predictions = list(read_predictions(tmp_path))
    assert measure(examples(30), predictions) == metrics
    assert measure(examples(30), predictions[::-1]) == metrics


def test_a_question_without_a_prediction_counts_as_failed() -> None:
    metrics = measure(examples(4), [])
    assert (metrics.overall.n, metrics.overall.failed) == (4, 4)
    assert metrics.overall.estimates["hit"].value == 0.0


def test_a_prediction_for_another_data_set_is_refused(tmp_path: Path) -> None:
    run_evaluation(Scripted(), examples(3), tmp_path, SETTINGS)
    with pytest.raises(RunError, match=r"'q2' .*which is no question of this data set"):
        measure(examples(2), read_predictions(tmp_path))


def test_text_that_is_no_unicode_survives_the_records(tmp_path: Path) -> None:
    class Surrogate:
        def run(self, question: Question) -> Answer:
            return Answer(question.id, (AnswerItem("half \ud83d", None, 1.0),), ())

    odd = Example("q\ud83d\n1", "Where?", ("half \ud83d",))
    metrics = run_evaluation(Surrogate(), [odd], tmp_path, SETTINGS)
    assert metrics.overall.estimates["em"].value == 1.0
    (prediction,) = read_predictions(tmp_path)
    assert (prediction.id, prediction.answers) == (odd.id, ("half \ud83d",))


def test_what_was_linked_correctly_is_recorded_and_averaged(tmp_path: Path) -> None:
    # q0 links its one topic, q1 one of two, q7 fails, q2 has none annotated.
    each = examples(8)
    asked = [
        replace(each[0], topic_ids=(EntityId("Zürich 0"),)),
        replace(each[1], topic_ids=(EntityId("Zürich 1"), EntityId("elsewhere"))),
        replace(each[2], topic_ids=()),
        replace(each[7], topic_ids=(EntityId("Zürich 7"),)),
    ]
    metrics = run_evaluation(Scripted(), asked, tmp_path / "run", SETTINGS)
    assert metrics.overall.linked is not None
    assert (metrics.overall.linked.n, metrics.overall.linked.value) == (3, 0.5)
    assert [one.linked for one in read_predictions(tmp_path / "run")] == [
        LinkedTopics(("Zürich 0",), ("Zürich 0",)),
        LinkedTopics(("Zürich 1", "elsewhere"), ("Zürich 1",)),
        None,
        LinkedTopics(("Zürich 7",), ()),
    ]
    # A question whose prediction is missing linked nothing.
    rest = measure(asked, list(read_predictions(tmp_path / "run"))[1:]).overall.linked
    assert rest is not None and rest.n == 3
    assert rest.value == pytest.approx(0.5 / 3)


def test_topics_that_were_granted_need_no_linking(tmp_path: Path) -> None:
    asked = [replace(examples(1)[0], topic_ids=(EntityId("Zürich 0"),))]
    metrics = run_evaluation(Scripted(), asked, tmp_path / "run", replace(SETTINGS, entities="gold"))
    assert metrics.overall.linked is None
