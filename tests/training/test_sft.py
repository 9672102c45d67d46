"""Tests of `byokg.training.sft`, with models of a few thousand weights (`benchmarks.small_transformer`)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.small_transformer import PROMPT, masked_question, path_text, small_model
from byokg.errors import ConfigError, DatasetError
from byokg.llm.decoding import ConstrainedRanker
from byokg.offline.parse import parse_question
from byokg.offline.planner import Planner
from byokg.training.sft import IGNORED, Pair, SftSettings, fine_tune, read_pairs, token_rows
from byokg.types import Mention
from tests.corpora import require
from tests.llm.test_decoding import Query

require("train", "torch", "transformers", "peft", "accelerate")

PATHS = {"who directed _": "directed_by", "who starred in _": "starred_actors", "films by _": "^directed_by"}
PAIRS = [Pair(question, path) for question, path in PATHS.items()] * 16
QUICK = SftSettings(
    rank=0, epochs=24, batch=8, accumulate=1, rate=2e-2, held_out=0.1, save_every=20, prompt=PROMPT, device="cpu"
)


def tiny() -> tuple[Any, Any]:
    return small_model(PAIRS, ["written_by"], width=32, layers=1, heads=2)


def best(path: Path, question: str) -> str:
    candidates = [Query(path) for path in [*PATHS.values(), "written_by"]]
    return candidates[
        ConstrainedRanker(path=str(path), beams=2, prompt=PROMPT, device="cpu").rank(question, candidates)[0][0]
    ].query


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sft") / "small"
    told = fine_tune(PAIRS, out, QUICK, tiny())
    assert (told.trained, told.held_out, told.left_out) == (44, 4, 0)
    assert told.loss_after < 0.2 < told.loss_before
    return out


def test_a_model_made_from_nothing_learns_which_words_ask_for_which_path(tuned: Path) -> None:
    assert {question: best(tuned, question) for question in PATHS} == PATHS


def test_the_same_seed_makes_the_same_weights(tuned: Path, tmp_path: Path) -> None:
    fine_tune(PAIRS, tmp_path / "again", QUICK, tiny())
    assert (tmp_path / "again" / "model.safetensors").read_bytes() == (tuned / "model.safetensors").read_bytes()


TRAINS = """
import sys, time
from tests.training import test_sft as t

def report(line):
    print(line, flush=True)
    time.sleep(600 if line.startswith("20 of") else 0)

t.fine_tune(t.PAIRS, sys.argv[1], t.QUICK, t.tiny(), report)
"""


def test_a_run_that_was_killed_goes_on_from_its_last_checkpoint(tuned: Path, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    with subprocess.Popen([sys.executable, "-c", TRAINS, str(out)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        estimate = process.stdout.readline()
        assert re.match(r"44 pairs, 144 updates of [0-9,]+ weights, .* s a batch: about .* minutes", estimate)
        assert process.stdout.readline().startswith("20 of 144 updates")
        process.kill()
    # Another one was cut off while it was written.
    (out / "checkpoints" / "last.new").write_bytes(b"PK")
    lines: list[str] = []
    fine_tune(PAIRS, out, QUICK, tiny(), lines.append)
    assert lines[0] == "continues after 20 of 144 updates"
    assert (out / "model.safetensors").read_bytes() == (tuned / "model.safetensors").read_bytes()
    assert losses(out) == losses(tuned)


def losses(folder: Path) -> list[tuple[int, float | None, float]]:
    points = [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]
    return [(point["updates"], point["loss"], point["held_out_loss"]) for point in points]


def test_the_learning_curve_falls(tuned: Path) -> None:
    curve = losses(tuned)
    assert [updates for updates, *_ in curve] == [0, *range(20, 141, 20), 144]
    assert curve[-1][2] < 0.2 < curve[0][2]


def test_a_loss_over_some_tokens_learns_as_well(tmp_path: Path) -> None:
    fine_tune(PAIRS, tmp_path, replace(QUICK, vocabulary=8), tiny())
    assert {question: best(tmp_path, question) for question in PATHS} == PATHS


def test_a_folder_of_another_training_is_refused(tuned: Path) -> None:
    with pytest.raises(ConfigError, match="another pairs, digest"):
        fine_tune(PAIRS[:8], tuned, QUICK, tiny())


def test_lora_changes_an_adapter_and_leaves_the_model(tuned: Path, tmp_path: Path) -> None:
    pairs = [Pair(question, "written_by") for question in PATHS] * 8
    settings = SftSettings(
        str(tuned), rank=4, epochs=8, batch=4, accumulate=2, rate=5e-2, held_out=0, prompt=PROMPT, device="cpu"
    )
    before = (tuned / "model.safetensors").read_bytes()
    told = fine_tune(pairs, tmp_path / "lora", settings)
    assert told.loss_after < told.loss_before
    assert (tuned / "model.safetensors").read_bytes() == before
    assert json.loads((tmp_path / "lora" / "adapter_config.json").read_text())["r"] == 4
    assert best(tmp_path / "lora", "who directed _") == "written_by"
    fine_tune(PAIRS, tmp_path / "back", replace(settings, model=str(tmp_path / "lora")))
    assert best(tmp_path / "back", "who directed _") == "directed_by"
    # An adapter in front of another model than its own is refused.
    other = small_model(PAIRS, [], width=16, layers=1, heads=2)
    for part in other:
        part.save_pretrained(tmp_path / "other")
    adapter = json.loads((tmp_path / "lora" / "adapter_config.json").read_text())
    record = json.dumps({**adapter, "base_model_name_or_path": str(tmp_path / "other")})
    (tmp_path / "lora" / "adapter_config.json").write_bytes(record.encode())
    with pytest.raises(ConfigError, match=r"was trained for other weights than .*other.*byokg train sft"):
        Planner(str(tmp_path / "lora"))
    (tmp_path / "lora" / "sft.json").unlink()
    with pytest.raises(ConfigError, match=r"does not fit its base model .*other.*adapter_config\.json"):
        Planner(str(tmp_path / "lora"))
    for file in (tmp_path / "other").iterdir():
        file.unlink()
    with pytest.raises(ConfigError, match=r"lora.* lacks its base model .*other"):
        Planner(str(tmp_path / "lora"))


@pytest.mark.parametrize(
    ("removed", "reason"),
    [
        ("model.safetensors", r"model\.safetensors is missing; its training has not ended, .*byokg train sft"),
        ("config.json", r"config\.json, or adapter_config\.json is missing"),
        ("tokenizer", r"tokenizer\.json is missing"),
    ],
)
def test_a_folder_that_lacks_a_file_fails_at_the_start_and_names_both(
    tuned: Path, tmp_path: Path, removed: str, reason: str
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(tuned, folder)
    for file in folder.glob(f"{removed}*"):
        file.unlink()
    with pytest.raises(ConfigError, match=f"{re.escape(str(folder))}.*{reason}"):
        Planner(str(folder))


def test_a_missing_folder_and_one_of_byokg_fit_fail_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no folder .*none.*byokg train sft"):
        Planner(str(tmp_path / "none"))
    (tmp_path / "weights.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"is one of byokg fit, for pipeline\.weights\.weights"):
        ConstrainedRanker(path=str(tmp_path))


def test_only_the_query_and_its_end_are_learnt() -> None:
    _, tokenizer = tiny()
    (row,) = token_rows(tokenizer, [Pair("who directed _", "directed_by")], PROMPT)
    told = tokenizer.convert_ids_to_tokens(row["input_ids"])
    assert told == ["who", "directed", "_", "=", "directed_by", "<end>"]
    assert row["labels"] == [IGNORED] * 4 + row["input_ids"][4:]


def test_labels_are_read_and_questions_without_a_query_left_out(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"question": "a", "queries": [{"query": "x"}, {"query": "y"}]},
        {"question": "b", "queries": []},
    ]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_pairs(tmp_path / "labels.jsonl")[0] == [Pair("a", "x")]
    rival = {"question": "c", "rivals": ["d"], "queries": [{"query": "yes"}]}
    (tmp_path / "rivals.jsonl").write_text(json.dumps(rival) + "\n")
    assert read_pairs(tmp_path / "rivals.jsonl")[0] == [Pair("c", "yes", ("d",))]
    (tmp_path / "both.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, rival]))
    with pytest.raises(DatasetError, match="train on one kind"):
        read_pairs(tmp_path / "both.jsonl")
    with pytest.raises(DatasetError, match="`plan`"):
        read_pairs(tmp_path / "labels.jsonl", "plan")
    (tmp_path / "none.jsonl").write_text(json.dumps(rows[1]) + "\n")
    with pytest.raises(DatasetError, match="byokg train labels"):
        read_pairs(tmp_path / "none.jsonl")


def test_mentions_are_masked_and_paths_are_words() -> None:
    reading = parse_question("who directed Blade Runner?", [Mention("Blade Runner", 13, 25)])
    assert masked_question(reading.words, reading.masked) == "who directed _"
    assert path_text(("^directed_by", "written_by")) == "^directed_by written_by"
    with pytest.raises(ConfigError, match="hold spaces"):
        path_text(("has genre",))


def test_settings_out_of_range_and_models_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="batch=0"):
        SftSettings(batch=0)
    with pytest.raises(ConfigError, match="target=path"):
        SftSettings(target="path")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="held_out=1"):
        SftSettings(held_out=1)
    with pytest.raises(ConfigError, match="there is no folder"):
        fine_tune(PAIRS, tmp_path / "out", SftSettings(str(tmp_path / "nowhere")))
    with pytest.raises(ConfigError, match=r"train\.model="):
        fine_tune(PAIRS, tmp_path / "out")
    with pytest.raises(ConfigError, match="longest=2"):
        fine_tune(PAIRS, tmp_path / "short", SftSettings(longest=2, device="cpu"), tiny())
