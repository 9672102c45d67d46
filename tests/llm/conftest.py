"""What tests of language models share: a server, keys in the environment, and models of all providers that ask it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from byokg.llm import providers
from byokg.llm.model import LanguageModel
from tests.llm.servers.model_server import SECRET, ModelServer, serving
from tests.llm.servers.protocols import Bedrock

PROVIDERS = ("anthropic", "bedrock", "openai", "azure")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every provider its key, and keep tracing off."""
    for name in ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", Bedrock.ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", Bedrock.REGION)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """One server that answers at once, and without faults until it is given some."""
    with serving() as running:
        yield running


def model(provider: str, server: ModelServer, id: str = "test", **settings: Any) -> LanguageModel:
    """Return a provider's model that asks the server."""
    given = {name: settings.pop(name) for name in ("store", "meter", "callbacks", "note") if name in settings}
    wanted = {"timeout_s": 20.0, **settings}
    chosen: providers.Provider
    if provider == "anthropic":
        chosen = providers.Anthropic(f"claude-{id}", base_url=server.url, **wanted)
    elif provider == "bedrock":
        chosen = providers.Bedrock(f"anthropic.claude-{id}", base_url=server.url, **wanted)
    elif provider == "azure":
        chosen = providers.OpenAICompatible(f"gpt-{id}", base_url=server.url, api_version="2024-10-21", **wanted)
    else:
        chosen = providers.OpenAICompatible(f"gpt-{id}", base_url=f"{server.url}/v1", **wanted)
    return chosen.language_model(**given)
