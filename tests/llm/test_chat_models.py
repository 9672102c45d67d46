"""Tests of `byokg.llm.chat_models`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from byokg.errors import ConfigError, LlmInvalidRequest, LlmRefused, LlmTruncated
from byokg.llm.chat_models import ScriptedChatModel, read_rules
from byokg.llm.messages import Message, ToolCall, Usage
from byokg.llm.model import LanguageModel
from byokg.llm.providers import Scripted

RULES = """\
- contains: [Extract entities, Heat]
  reply: |
    <entities>
    Heat
    </entities>
- matches: "Who .* Heat"
  reply: Michael Mann
- contains: long
  reply: It goes on and
  stop: length
- contains: forbidden
  stop: refusal
  reply: I cannot.
- contains: look
  tool_calls: [{name: lookup, args: {id: Q1}}]
- reply: FINISH
"""


@pytest.fixture
def model(tmp_path: Path) -> LanguageModel:
    """A model that plays the script above."""
    path = tmp_path / "rules.yaml"
    path.write_text(RULES, "utf-8")
    return Scripted(rules=path).language_model()


def ask(model: LanguageModel, *texts: str) -> str:
    """Return the reply to a system prompt (if there are two texts) and a question."""
    roles = ("system", "user")[-len(texts) :]
    messages = [Message(role, text) for role, text in zip(roles, texts, strict=True)]  # type: ignore[arg-type]
    return model.reply(messages, stage="test", question_id="q").text


def test_the_first_rule_that_fits_answers(model: LanguageModel) -> None:
    assert ask(model, "Extract entities.", "Who directed Heat?") == "<entities>\nHeat\n</entities>\n"
    assert ask(model, "Who once\ndirected Heat?") == "Michael Mann"
    assert ask(model, "Anything else") == "FINISH"


def test_replies_end_as_the_rule_says(model: LanguageModel) -> None:
    with pytest.raises(LlmTruncated) as caught:
        ask(model, "a long one")
    assert caught.value.reply.text == "It goes on and"
    with pytest.raises(LlmRefused, match=r"I cannot\."):
        ask(model, "forbidden")
    reply = model.reply([Message("user", "look")], stage="s", question_id="q", tools=[{"name": "lookup"}])
    assert (reply.stop, reply.tool_calls) == ("tool", (ToolCall("call_0", "lookup", {"id": "Q1"}),))


def test_tokens_are_words(model: LanguageModel) -> None:
    reply = model.reply([Message("user", "Who directed Heat?")], stage="s", question_id="q")
    assert reply.usage == Usage(input_tokens=3, output_tokens=2)


def test_equal_prompts_get_equal_replies_from_many_threads(model: LanguageModel) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: ask(model, "Who directed Heat?"), range(100))) == {"Michael Mann"}


def test_a_list_is_handed_out_once_from_many_threads() -> None:
    texts = tuple(f"reply {number}" for number in range(100))
    model = LanguageModel(ScriptedChatModel(replies=texts))
    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(lambda _: ask(model, "again"), range(100))) == sorted(texts)
    with pytest.raises(LlmInvalidRequest, match="all 100 replies were given already"):
        ask(model, "again")


def test_a_prompt_without_a_rule_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "rules.jsonl"
    path.write_text('{"contains": "Heat", "reply": "1995"}\n\n{"contains": "Ali", "reply": "2001"}\n', "utf-8")
    assert ask(Scripted(rules=path).language_model(), "When was Ali released?") == "2001"
    with pytest.raises(
        LlmInvalidRequest, match=r"no rule of the script fits the prompt 'When was Collateral released\?'"
    ):
        ask(Scripted(rules=path).language_model(), "When was Collateral released?")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is no list of rules"),
        ("reply: yes", "is no list of rules"),
        ("- just text", "rule 1 of .* is 'just text'"),
        ("- reply: fine\n- contains: x\n  replay: y", "rule 2 of .* has 'replay'; a rule has contains"),
        ("- contains: x", "rule 1 of .* has no 'reply'"),
        ("- reply: 1995", "put quotes around numbers"),
        ("- {contains: [1995], reply: x}", "put quotes around numbers"),
        ("- {reply: x, stop: never}", "stop is 'never'; give one of stop, length"),
        ("- {reply: x, matches: '('}", "is no regular expression"),
        ("- {reply: x, tool_calls: [look]}", "'tool_calls' are mappings"),
        ("- [", "cannot be read"),
    ],
)
def test_a_malformed_script_says_what_is_wrong(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=reason):
        read_rules(path)


def test_a_missing_script_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml' cannot be read: No such file"):
        read_rules(tmp_path / "nowhere.yaml")
