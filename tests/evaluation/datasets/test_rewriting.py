"""Tests of `byokg.evaluation.datasets.testset`, and of `byokg testset --rewrite`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from byokg.cli.main import main
from byokg.errors import LlmError
from byokg.evaluation.datasets.folder import SHIPPED
from byokg.evaluation.datasets.testset import QuestionRecord, Testset, objection, rewrite
from byokg.graph.importers.choose import build_graph
from byokg.llm.chat_models import Rule, ScriptedChatModel
from byokg.llm.model import LanguageModel


def asked(
    number: int, question: str, topics: tuple[str, ...], answers: tuple[str, ...] = ("Vienna",)
) -> QuestionRecord:
    return QuestionRecord(
        f"1-hop-{number}", question, answers, answers, topics, topics, 1, "1-hop", "test", "c", "q", "ends", (), ()
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Which town does the Danube run through after 1990?", None),
        (None, "is not between <question> tags"),
        ("", "is not between <question> tags"),
        ("Which town does the river run through after 1990?", "lacks the name of a topic"),
        ("Which town does the Danube run through after 1991?", "has other numbers"),
        ("Which 2 towns does the Danube run through after 1990?", "has other numbers"),
        ("Does the Danube run through Vienna after 1990?", "tells an answer"),
        ("Which town does the Danube run through after 1990? " * 9, "is much longer than the question"),
    ],
)
def test_a_rewriting_is_taken_only_if_names_and_numbers_are_kept(text: str | None, reason: str | None) -> None:
    assert objection(asked(1, "The city of Danube after 1990 is what?", ("Danube",)), text) == reason


def test_a_name_within_a_longer_name_does_not_count() -> None:
    both = asked(1, "Which is longer, Nile or White Nile?", ("Nile", "White Nile"), ("Nile",))
    assert objection(both, "Is White Nile the longer one?") == "lacks the name of a topic"
    assert objection(both, "Nile or White Nile: which one is longer?") is None


def test_the_original_stays_beside_and_two_questions_never_become_one() -> None:
    made = Testset(
        (asked(1, "Capital of Austria?", ("Austria",)), asked(2, "Austria's capital?", ("Austria",))), (), 0, "g", "x"
    )
    rule = Rule("<question>What is the capital of Austria?</question>")
    found = rewrite(made, LanguageModel(ScriptedChatModel(rules=(rule,))), workers=2)
    first, second = found.testset.questions
    assert (first.question, first.original) == ("What is the capital of Austria?", "Capital of Austria?")
    assert second == made.questions[1]
    assert found.kept == {"is a question that is there already": 1}
    assert first.answers == ("Vienna",) and found.testset.rewritten_by == "scripted/script"


def test_a_model_that_cannot_be_asked_is_an_error() -> None:
    made = Testset((asked(1, "Capital of Austria?", ("Austria",)),), (), 0, "g", "x")
    with pytest.raises(LlmError):
        rewrite(made, LanguageModel(ScriptedChatModel(rules=(Rule("x", ("no such prompt",)),))))


def test_the_command_rewrites_records_replies_and_says_what_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    build_graph(SHIPPED, tmp_path / "graph")
    (tmp_path / "rules.yaml").write_text("- reply: <question>What?</question>\n", "utf-8")
    words = ["testset", "graph", "--questions", "9", "--types", "1-hop", "--rewrite", "llm=scripted"]
    words += ["llm.rules=rules.yaml", "replies.path=replies.sqlite"]
    assert main([*words, "--out", "first"]) == 0
    told = capsys.readouterr().err
    assert "9 stay as they were: the rewriting lacks the name of a topic" in told and "9 calls" in told
    assert main([*words, "--out", "second", "replies.mode=replay"]) == 0
    assert (tmp_path / "first/questions.jsonl").read_bytes() == (tmp_path / "second/questions.jsonl").read_bytes()
    assert json.loads((tmp_path / "second/manifest.json").read_text("utf-8"))["rewritten_by"] == "scripted/script"
    capsys.readouterr()
    assert main(["testset", "graph", "--out", "third", "--rewrite", "anthropic"]) == 2
    assert "names no language model" in capsys.readouterr().err
