"""Tests of `byokg.llm.providers`: settings become requests, and what is missing is named."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from byokg.cli.config import read_settings
from byokg.errors import ConfigError, LlmRateLimited, MissingExtra
from byokg.llm import providers
from byokg.llm.messages import Message, Reply
from byokg.llm.model import LanguageModel
from byokg.llm.providers import Provider
from tests.llm.conftest import model
from tests.llm.memory import CountingMeter, MemoryReplies
from tests.llm.servers.model_server import SECRET, ModelServer


def ask(asked: LanguageModel | Provider) -> Reply:
    """Ask anything."""
    model = asked.language_model() if isinstance(asked, Provider) else asked
    return model.reply([Message("user", "Who directed Heat?")], stage="s", question_id="q")


# Requests


@pytest.mark.parametrize("option", ["anthropic", "bedrock", "openai_compatible"])
def test_settings_of_the_command_line_arrive_at_the_service(option: str, server: ModelServer) -> None:
    id = {"anthropic": "claude-test", "bedrock": "anthropic.claude-test"}.get(option, "gpt-test")
    url = f"{server.url}/v1" if option == "openai_compatible" else server.url
    words = ["temperature=0.25", "max_tokens=77", "extra_body.top_k=5", f"base_url={url}", f"model={id}"]
    settings = read_settings([f"llm={option}", *(f"llm.{word}" for word in words)])
    meter = CountingMeter()
    ask(settings.build("llm").language_model(store=MemoryReplies(), meter=meter))
    asked = server.asked[0]
    assert asked.model == id
    if option == "bedrock":
        assert asked.body["inferenceConfig"] == {"temperature": 0.25, "maxTokens": 77}
        assert asked.body["additionalModelRequestFields"] == {"top_k": 5}
    else:
        assert {key: asked.body.get(key) for key in ("temperature", "max_tokens", "top_k")} == {
            "temperature": 0.25,
            "max_tokens": 77,
            "top_k": 5,
        }
    assert len(meter.sent) == 1
    assert SECRET not in str(settings.values)


def test_what_is_left_to_the_service_is_not_sent(server: ModelServer) -> None:
    ask(providers.Anthropic("claude-test", base_url=server.url))
    ask(providers.OpenAICompatible("gpt-test", base_url=f"{server.url}/v1"))
    ask(providers.Bedrock("anthropic.claude-test", base_url=server.url))
    assert not any("temperature" in str(asked.body) for asked in server.asked)


def test_azure_gets_the_newer_name_of_max_tokens_and_other_servers_the_older(server: ModelServer) -> None:
    ask(providers.OpenAICompatible("gpt-test", base_url=server.url, api_version="2024-10-21", max_tokens=9))
    ask(providers.OpenAICompatible("gpt-test", base_url=f"{server.url}/v1", max_tokens=9))
    bodies = [asked.body for asked in server.asked]
    assert [(body.get("max_tokens"), body.get("max_completion_tokens")) for body in bodies] == [(None, 9), (9, None)]


def test_the_key_of_a_reply_holds_parameters_and_no_places(server: ModelServer) -> None:
    asked = providers.Anthropic(
        "claude-test", temperature=0.5, max_tokens=9, extra_body={"top_k": 5}, base_url=server.url, timeout_s=7.0
    ).language_model()
    assert asked.call([]).parameters == {"temperature": 0.5, "max_tokens": 9, "top_k": 5}
    recorded = providers.Replay(
        "claude-test", provider="anthropic", temperature=0.5, max_tokens=9, extra_body={"top_k": 5}
    ).language_model(store=MemoryReplies())
    assert recorded.call([]).key == asked.call([]).key


# What is missing


@pytest.mark.parametrize(
    ("option", "variable", "build"),
    [
        ("anthropic", "ANTHROPIC_API_KEY", lambda: providers.Anthropic("m")),
        ("openai_compatible", "OPENAI_API_KEY", lambda: providers.OpenAICompatible("m")),
        ("openai_compatible", "MY_KEY", lambda: providers.OpenAICompatible("m", key_variable="MY_KEY")),
        (
            "openai_compatible",
            "OPENAI_API_KEY",
            lambda: providers.OpenAICompatible("m", base_url="https://me.openai.azure.com/openai/v1"),
        ),
    ],
)
def test_a_missing_key_is_named_by_its_variable(
    option: str, variable: str, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ConfigError, match=rf"llm={option} needs a key, and {variable} is not set; run: export"):
        build().language_model()


def test_a_server_of_ones_own_needs_no_key(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    server.secret = providers.NO_KEY
    assert ask(providers.OpenAICompatible("gpt-test", base_url=f"{server.url}/v1")).text


def test_missing_aws_credentials_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    with pytest.raises(ConfigError, match="llm=bedrock needs AWS credentials and found none; set AWS_PROFILE"):
        providers.Bedrock("anthropic.claude-test").language_model()
    with pytest.raises(ConfigError, match=r"cannot use the AWS configuration.*nobody"):
        providers.Bedrock("anthropic.claude-test", profile="nobody").language_model()


def test_a_missing_region_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    with pytest.raises(ConfigError, match=r"set AWS_REGION, or add llm\.region"):
        providers.Bedrock("anthropic.claude-test").language_model()


@pytest.mark.parametrize(
    ("package", "extra", "build"),
    [
        ("langchain_anthropic", "anthropic", lambda: providers.Anthropic("m")),
        ("langchain_aws", "bedrock", lambda: providers.Bedrock("m")),
        ("langchain_openai", "openai", lambda: providers.OpenAICompatible("m")),
        ("torch", "local", lambda: providers.HfLocal("m")),
    ],
)
def test_a_missing_package_is_named_by_its_extra(
    package: str, extra: str, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    if package != "torch":
        from langchain.chat_models import base

        base._get_chat_model_creator.cache_clear()  # it remembers what it imported
    with pytest.raises(MissingExtra, match=rf"pip install 'byokg\[{extra}\]'"):
        build().language_model()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"max_tokens": 0}, "leaves no room"),
        ({"temperature": -1.0}, "below 0"),
        ({"timeout_s": 0.0}, "timeout_s"),
        ({"attempts": 0}, "attempts"),
        ({"concurrency": 0}, "concurrency"),
        ({"tokens_per_minute": 0}, "tokens_per_minute"),
        ({"api_version": "2024-10-21"}, "name the resource"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        providers.OpenAICompatible("m", **settings).language_model()


def test_a_key_in_a_refused_setting_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)

    def refuses(*models: str, **arguments: str) -> None:
        raise ValueError(f"bad arguments: {arguments}")

    monkeypatch.setattr("langchain.chat_models.init_chat_model", refuses)
    with pytest.raises(ConfigError, match="llm=openai_compatible refuses its settings: bad arguments") as caught:
        providers.OpenAICompatible("m").language_model()
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__


def test_any_provider_of_langchain_is_asked_by_its_name(server: ModelServer) -> None:
    asked = providers.LangChain(
        "gpt-test", provider="openai", base_url=f"{server.url}/v1", max_tokens=9, extra_body={"top_p": 0.5}
    ).language_model()
    assert asked.name == "openai/gpt-test" and ask(asked).text
    assert server.asked[0].body["top_p"] == 0.5
    assert asked.call([]).parameters == {"max_tokens": 9, "top_p": 0.5}


def test_a_provider_of_langchain_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"llm.provider=mistralai: .*pip install langchain-mistralai"):
        providers.LangChain("m", provider="mistralai").language_model()
    with pytest.raises(ConfigError, match=r"llm=langchain refuses its settings: Unsupported provider='nobody'"):
        providers.LangChain("m", provider="nobody").language_model()


@pytest.mark.parametrize("name", ["bedrock", "anthropic", "openai"])
def test_libraries_repeat_nothing_on_their_own(name: str, server: ModelServer) -> None:
    server.faults.planned.append("rate_limit")
    with pytest.raises(LlmRateLimited):
        ask(model(name, server, attempts=1))
    assert server.counts().requests == 1


def test_a_bedrock_key_may_stand_for_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "a-bearer-token-for-tests")
    assert providers.Bedrock("anthropic.claude-test").language_model().name == "bedrock/anthropic.claude-test"
