"""`byokg demo` with the recording of the replies that it replays, and `byokg reproduce`."""

from __future__ import annotations

import importlib.util
import json
import lzma
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import byokg.cli.reproduce_commands as commands
from byokg.cli.config import read_settings
from byokg.cli.evaluation import evaluate
from byokg.cli.terminal import Output
from byokg.errors import RunError
from byokg.evaluation.comparability import read_tables
from byokg.evaluation.datasets.folder import atlas
from byokg.llm.reply_files import import_replies
from byokg.llm.reply_store import RecordedReplies
from scripts import record_replies
from tests.cli.conftest import Run
from tests.llm.servers.model_server import SECRET, ModelServer, serving
from tests.llm.servers.protocols import Answered, Asked

needs_engine = pytest.mark.skipif(
    importlib.util.find_spec("arcadedb_embedded") is None, reason="needs arcadedb-embedded: pip install 'byokg[cypher]'"
)
needs_recording = pytest.mark.skipif(
    not commands.RECORDING.is_file(), reason="no replies are recorded yet: make record"
)

RULES = (
    ("# If the facts hold the answer", "<answers>\nHonduras [e1]\n</answers>"),
    ("<selected>", "<selected>\ncurrency\n</selected>"),
    ("<next-entities>", "<next-entities>\nFINISH\n</next-entities>"),
    ("Next entities", "<entities>\nFINISH\n</entities>"),
    ("Entity extraction", "<entities>\nHonduras\n</entities>\n<paths>\ncurrency\n</paths>\n<answers>\n</answers>"),
)
"""The model that answers every prompt: the first text in a prompt decides."""

SILENT = Output(Console(quiet=True), Console(quiet=True), quiet=True)

ANSWER = "<answers>\nHonduran lempira [e1]\n</answers>"


def write_replies(folder: Path) -> int:
    """Write the replies that are missing in a folder; return their number."""
    missing = [
        path for path in folder.glob("*.prompt.txt") if not (folder / path.name.replace("prompt", "reply")).is_file()
    ]
    for path in missing:
        prompt = path.read_text("utf-8")
        reply = next((reply for text, reply in RULES if text in prompt), ANSWER)
        (folder / path.name.replace("prompt", "reply")).write_text(reply + "\n", "utf-8")
    return len(missing)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record two questions in two folders, as two people would."""
    place = tmp_path_factory.mktemp("recorded")
    (place / "questions.txt").write_text("area-of-ebf056-1\ncurrency-users-82ef1a-1\n", "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(place / "cache"))
        patch.setattr(commands, "QUESTIONS", place / "questions.txt")
        for shard in (1, 2):
            folder, passes = place / f"part-{shard}", 0
            while record_replies.record(folder, f"{shard}/2"):
                assert write_replies(folder) and (passes := passes + 1) < 9
            assert passes > 2  # what a prompt holds depends on earlier replies
        record_replies.merge([place / "part-1", place / "part-2"], place / "recording.jsonl.xz")
    return place


def replayed(place: Path, recording: Path, patch: pytest.MonkeyPatch, out: Path) -> str:
    patch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    patch.setattr(commands, "QUESTIONS", place / "questions.txt")
    table = StringIO()
    Console(file=table, width=80).print(commands.replay(recording, out, (), Output(quiet=True)))
    return table.getvalue()


@needs_engine
def test_recorded_replies_are_replayed_into_one_comparison(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = replayed(recorded, recorded / "recording.jsonl.xz", monkeypatch, tmp_path / "out")
    assert [name for name in commands.PIPELINES if f" {name} " not in table] == []
    assert "0.0 to" in table and "2 questions" in " ".join(table.split())
    for pipeline in commands.PIPELINES:
        timings = (tmp_path / "out" / pipeline / "timings.jsonl").read_text("utf-8")
        spent = [stage for line in timings.splitlines() for stage in json.loads(line)["usage"].values()]
        assert sum(stage["replayed"]["calls"] for stage in spent) > 0
        assert sum(stage["asked"]["calls"] for stage in spent) == 0


@needs_engine
def test_a_prompt_without_a_reply_is_an_error_with_pipeline_question_and_remedy(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = lzma.decompress((recorded / "recording.jsonl.xz").read_bytes()).splitlines(keepends=True)
    left = [line for line in lines if json.loads(line)["stage"] != "lean"]
    (tmp_path / "part.jsonl.xz").write_bytes(lzma.compress(b"".join(left)))
    with pytest.raises(RunError, match=r"pipeline=byokg_lean, question '.*make record"):
        replayed(recorded, tmp_path / "part.jsonl.xz", monkeypatch, tmp_path / "out")
    assert not (tmp_path / "out" / "byokg_lean").exists()


@needs_engine
def test_a_folder_of_prompts_holds_no_gold_answers(recorded: Path) -> None:
    wanted = Path(recorded / "questions.txt").read_text("utf-8").split()
    gold = {answer for example in atlas().examples() if example.id in wanted for answer in example.answers}
    assert "Honduras" not in gold and len(gold) > 1
    for folder in (recorded / "part-1", recorded / "part-2"):
        names = sorted(path.name for path in folder.iterdir())
        assert {name.split(".", 1)[-1] for name in names} == {"prompt.txt", "reply.txt", "jsonl"}
        text = "".join(path.read_text("utf-8") for path in folder.iterdir() if "direct" in path.read_text("utf-8"))
        assert '"answers":' not in text and '"gold' not in text


@needs_engine
def test_a_corrected_reply_replaces_the_earlier_one_and_stale_prompts_go(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(recorded / "cache"))
    monkeypatch.setattr(commands, "QUESTIONS", recorded / "questions.txt")
    monkeypatch.setattr(record_replies, "PIPELINES", ("byokg_scoring",))
    folder = tmp_path / "part"
    record_replies.record(folder, "1/2")
    write_replies(folder)
    record_replies.record(folder, "1/2")
    before = set(folder.glob("*.prompt.txt"))
    for reply in folder.glob("*.reply.txt"):
        if "Entity extraction" in (folder / reply.name.replace("reply", "prompt")).read_text("utf-8"):
            reply.write_text(reply.read_text("utf-8").replace("Honduras", "Guatemala"), "utf-8")
    record_replies.record(folder, "1/2")
    pending = [path for path in folder.glob("*.prompt.txt") if not Path(str(path).replace("prompt", "reply")).is_file()]
    assert pending and before - set(folder.glob("*.prompt.txt"))
    assert any("Guatemala" in path.read_text("utf-8") for path in pending)


def test_the_questions_are_those_that_the_seed_draws() -> None:
    drawn = commands.QUESTIONS.read_text("utf-8").split()
    assert drawn == record_replies.draw() and len(set(drawn)) == 40
    types = {example.id: example.type for example in atlas("test").examples()}
    counts = [[types[id] for id in drawn].count(name) for name in sorted(set(types.values()))]
    assert sorted(counts) == [3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4]


@needs_recording
def test_the_shipped_recording_is_small_and_whole(tmp_path: Path) -> None:
    assert commands.RECORDING.stat().st_size <= 1_500_000
    with RecordedReplies(tmp_path / "replies.sqlite") as store:
        assert import_replies(store, commands.RECORDING).new >= 250


@needs_engine
@needs_recording
def test_the_shipped_recording_has_a_reply_to_every_prompt(demo: Path) -> None:
    table = commands.replay(commands.RECORDING, demo, (), Output(quiet=True))
    assert "40 questions" in str(table.caption)


def test_shards_in_processes_make_the_run_in_one_piece(tmp_path: Path) -> None:
    words = ("pipeline=offline", "dataset=atlas", f"graph.cache={tmp_path}", "limit=3")
    evaluate(read_settings([*words, f"out={tmp_path / 'one'}"]), SILENT)
    for _ in range(2):  # the second time nothing is left to do
        with commands.sharded(words, tmp_path / "both", SILENT):
            pass
        for name in ("config.yaml", "predictions.jsonl", "trace.jsonl", "metrics.json"):
            assert (tmp_path / "both" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[:5] != "atlas") == ["both", "one"]


def test_a_shard_that_fails_is_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("pipeline=offline", "dataset=atlas", f"graph.cache={tmp_path}", "limit=1")
    with pytest.raises(RunError, match="both-1"), commands.sharded(words, tmp_path / "both", SILENT):
        pass
    assert "shard=2/2 divides 1 questions" in capfd.readouterr().err


def test_an_error_meanwhile_ends_the_shards(tmp_path: Path) -> None:
    words = ("pipeline=offline", "dataset=atlas", f"graph.cache={tmp_path}")
    with pytest.raises(KeyboardInterrupt), commands.sharded(words, tmp_path / "both", SILENT):
        raise KeyboardInterrupt
    assert not (tmp_path / "both").exists()


# Tables of papers


def film_reply(asked: Asked) -> Answered:
    """Answer about films: the KG-Linker names Heat, the agent follows its director."""
    rules = (*RULES[1:4], (RULES[4][0], RULES[4][1].replace("Honduras", "Heat").replace("currency", "directed_by")))
    prompt = "\n".join(text for _, text in asked.messages)
    return Answered(next((reply for text, reply in rules if text in prompt), "<answers>\nMichael Mann\n</answers>"))


@pytest.fixture
def model(films: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ModelServer, tuple[str, ...]]]:
    """Serve a model; return the server, and the settings of a run with it on the questions about films."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    with serving(film_reply) as server:
        data = ("dataset=folder", f"dataset.root={films}")
        yield server, (*data, "llm=anthropic", "llm.model=claude-test", f"llm.base_url={server.url}")


def test_a_table_runs_with_the_users_model_and_stands_beside_the_published_one(
    byokg: Run, model: tuple[ModelServer, tuple[str, ...]]
) -> None:
    server, settings = model
    command = ("reproduce", "table2", "webqsp", *settings, "--out", "runs")
    stopped = byokg(*command, "budget=calls", "budget.max_calls=3", "--yes")
    assert stopped.code == 3 and server.counts().requests == 4 * 3  # a budget is of each run
    outcome = byokg(*command, "--yes")
    again = byokg(*command, "--yes")
    asked = server.counts()
    assert outcome.code == again.code == 0
    assert asked.requests == asked.prompts  # nothing is asked twice
    shown = " ".join(outcome.out.split())
    assert "expected cost" in shown and "ToG 82.6 11.2" in shown
    assert "Vanilla LLM 62.0 1.0 33.3 1.0" in shown  # one of three questions is about the director
    assert "not comparable: 1,628 questions there, 3 here" in shown
    assert "the language model there is Claude-Sonnet-3.5, here claude-test" in shown


def test_a_run_that_cannot_start_stops_the_table_before_the_first_call(
    byokg: Run, model: tuple[ModelServer, tuple[str, ...]]
) -> None:
    server, settings = model
    outcome = byokg("reproduce", "table8", "cwq-500", *settings, "--yes", "--out", "runs")
    missing = byokg("reproduce", "table8", "cwq-500", *settings, "--yes", "graph.path=nowhere")
    assert server.counts().requests == 0
    assert outcome.code == 2 and "choose graph=arcadedb" in outcome.err and not Path("runs").exists()
    assert missing.code == 2 and "nowhere" in missing.err


def test_the_question_of_a_table_is_answered_beside_the_published_answer(
    byokg: Run, model: tuple[ModelServer, tuple[str, ...]]
) -> None:
    outcome = byokg("reproduce", "table5", "cwq", *model[1])
    assert outcome.code == 0 and "published answer: " in outcome.out and "Michael Mann" in outcome.out


def test_a_table_lists_its_data_and_an_unconfirmed_one_asks_nothing(byokg: Run, films: Path) -> None:
    listed = byokg("reproduce", "table1")
    assert listed.code == 0 and "cronquestions: 600 questions, https://" in listed.out
    assert "next: byokg reproduce table1" in listed.out
    wrong = byokg("reproduce", "table2", "medqa")
    assert wrong.code == 2 and "name one of webqsp, cwq" in wrong.err
    assert byokg("reproduce", "table9").code == 2
    words = ("dataset=folder", f"dataset.root={films}", "llm=anthropic", "llm.model=claude-test")
    assert byokg("reproduce", "table4", "cwq", *words).code != 0 and not Path("runs").exists()


def test_sizes_of_data_stand_beside_the_published_ones(byokg: Run, films: Path) -> None:
    outcome = byokg("reproduce", "table6", "cwq-500", "dataset=folder", f"dataset.root={films}")
    assert outcome.code == 0 and "1,500,000 500.0 11.0 3.0" in " ".join(outcome.out.split())


def test_every_published_table_has_figures_for_its_columns_and_settings_that_exist() -> None:
    usage, datasets, tables = read_tables()
    assert [f"table{number}" for number in range(1, 9)] == list(tables)[:8]
    for table in tables.values():
        for row in table.rows:
            for column, figures in row.figures.items():
                wanted = len(table.models) if len(table.models) > 1 else len(table.columns[column])
                assert len(figures) == wanted, (table.paper, row.system)
                assert datasets[column].n > 0
                if row.run or "questions" in table.columns[column]:
                    words = (*table.settings, *row.run, *row.also.get(column, ()))
                    read_settings([*datasets[column].settings, *words, "dataset.root=DIR"])
                pipelines = [word.removeprefix("pipeline=") for word in (*row.run, *row.also.get(column, ()))]
                assert not row.run or any(name in usage for name in pipelines), row.system
