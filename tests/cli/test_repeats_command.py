"""Tests of `repeats=`: a model asked several times over the network, recorded, replayed, scored and shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from byokg.evaluation.records import read_predictions
from tests.cli.conftest import Run
from tests.llm.servers.model_server import SECRET, serving
from tests.llm.servers.protocols import Answered, Asked


def by_seed(asked: Asked) -> Answered:
    """Answer rightly when the seed is odd."""
    return Answered(f"<answers>\n{'Michael Mann' if asked.body.get('seed', 0) % 2 else 'Al Pacino'}\n</answers>")


def test_each_repeat_has_another_seed_and_a_recorded_reply_of_its_own(
    byokg: Run, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("langchain_openai", reason="byokg[openai] is not installed")
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with serving(by_seed) as server:
        words = ["eval", "dataset=folder", f"dataset.root={films}", "pipeline=direct", "limit=1", "llm.model=m"]
        words += ["llm=openai_compatible", f"llm.base_url={server.url}/v1", "llm.extra_body.seed=1"]
        words += ["replies.path=replies.sqlite"]
        once = byokg(*words, "out=run")
        assert once.code == 0, once.err
        grown = byokg(*words, "out=run", "repeats=3")
        assert grown.code == 0, grown.err
        assert server.counts().requests == 3
    assert "1 questions, each asked 3 times" in grown.out and "pass@3" in grown.out
    assert [one.answers for one in read_predictions(Path("run"))] == [
        ("Michael Mann",),
        ("Al Pacino",),
        ("Michael Mann",),
    ]
    again = byokg(*words, "out=again", "repeats=3", "replies.mode=replay")
    assert again.code == 0, again.err
    assert Path("run/predictions.jsonl").read_bytes() == Path("again/predictions.jsonl").read_bytes()
    scored = json.loads(byokg("score", "run", "--json").out)["profiles"]["strict"]["repeats"]
    assert (scored["questions"], scored["repeats"]) == (1, 3)
    assert "asked 3 and 3 times" in byokg("compare", "run", "again").out
    assert byokg("trace", "run", f"{scored_id()}#2").code == 0


def scored_id() -> str:
    """Return the id of the question."""
    return next(read_predictions(Path("run"))).id


def test_a_pipeline_without_a_model_is_asked_once_and_says_why(byokg: Run, films: Path) -> None:
    outcome = byokg("eval", "dataset=folder", f"dataset.root={films}", "repeats=5", "out=run")
    assert outcome.code == 0
    assert "answers alike each time" in outcome.err and "pass@" not in outcome.out
    assert len(list(read_predictions(Path("run")))) == 3
    assert "repeats= measures" in byokg("answer", films / "questions.jsonl", "repeats=2").err
