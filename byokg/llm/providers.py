"""One function for each `configs/llm/*.yaml`: from settings to a `LanguageModel`.

All of them take a store and a meter, and switch the libraries' own retries off. Keys are read from the environment,
never from settings, which are recorded. Where only recorded replies may be used (`store.replay_only`), nothing is
looked for: neither a key nor the provider's package.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from byokg.errors import ConfigError, MissingExtra
from byokg.llm.batch import PendingCalls
from byokg.llm.failures import Limits, RetryPolicy
from byokg.llm.messages import JSON, Meter, ReplyStore
from byokg.llm.model import LanguageModel

if TYPE_CHECKING:
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.language_models.chat_models import BaseChatModel

OPENAI_HOSTS = ("openai.com", "azure.com", "microsoft.com")
"""Where `max_tokens` has its newer name, `max_completion_tokens`."""

NO_KEY = "no-key"
"""Sent to servers that ask for none: the client insists on one."""


def anthropic(
    model: str,
    temperature: float | None = None,
    max_tokens: int = 4096,
    extra_body: Mapping[str, Any] | None = None,
    timeout_s: float = 300.0,
    streaming: bool = False,
    prompt_caching: bool = True,
    base_url: str | None = None,
    key_variable: str = "ANTHROPIC_API_KEY",
    attempts: int = 6,
    concurrency: int | None = 64,
    tokens_per_minute: int | None = None,
    batch: bool = False,
    *,
    store: ReplyStore | None = None,
    meter: Meter | None = None,
    callbacks: Sequence[BaseCallbackHandler] = (),
    note: Callable[[str], None] | None = None,
    pending: PendingCalls | None = None,
) -> LanguageModel:
    """Ask Claude through Anthropic's API.

    Args:
        model: the model's id.
        temperature: from 0 to 1; None leaves it to the service, and some models take nothing else.
        max_tokens: longest reply.
        extra_body: further members of the request, sent as they are (`top_p`, `thinking`, `output_config`, …).
        timeout_s: longest time for one attempt.
        streaming: receive replies in pieces, which keeps long ones alive through proxies.
        prompt_caching: mark stable prefixes, so that the service charges less for repeating them.
        base_url: another address than the service's own.
        key_variable: environment variable that holds the key.
        attempts: how often a call is sent at most.
        concurrency: calls at the same time.
        tokens_per_minute: tokens in and out that calls of one minute may have.
        batch: put calls aside in `pending`, for Anthropic's Message Batches at half price (`byokg.llm.batch`).
        store: where replies are kept.
        meter: who counts.
        callbacks: LangChain's.
        note: told when traces leave the machine.
        pending: where calls are put aside with `batch`.

    Raises:
        MissingExtra: langchain-anthropic is not installed.
        ConfigError: the key is missing, or a value is impossible.
    """
    if batch and pending is None:
        raise ConfigError("llm.batch=true answers many questions together; use it with byokg eval, or leave it out")

    def chat_model() -> BaseChatModel:
        key = _key(key_variable, "llm=anthropic")
        chat_anthropic = _imported("langchain_anthropic", "ChatAnthropic", "anthropic", "llm=anthropic")
        given = {} if base_url is None else {"base_url": base_url}
        return _made(
            chat_anthropic,
            model=model,
            temperature=temperature,
            max_tokens=max_tokens,
            timeout=timeout_s,
            max_retries=0,
            streaming=streaming,
            api_key=key,
            model_kwargs={"extra_body": dict(extra_body)} if extra_body else {},
            **given,
        )

    return LanguageModel(
        None if batch or _replays(store) else chat_model(),
        "anthropic",
        model,
        _parameters(temperature, max_tokens, extra_body),
        store=store,
        meter=meter,
        retry=RetryPolicy(attempts=attempts),
        limits=Limits(concurrency, tokens_per_minute),
        timeout_s=timeout_s,
        prompt_caching=prompt_caching,
        callbacks=callbacks,
        note=note,
        pending=pending if batch else None,
    )


def anthropic_client(base_url: str | None = None, key_variable: str = "ANTHROPIC_API_KEY") -> Any:
    """Return the `anthropic` package's own client, for what LangChain does not do: batches.

    Raises:
        MissingExtra: anthropic is not installed.
        ConfigError: the key is missing.
    """
    client = _imported("anthropic", "Anthropic", "anthropic", "llm.batch=true")
    return client(api_key=_key(key_variable, "llm=anthropic"), base_url=base_url, max_retries=0)


def bedrock(
    model: str,
    temperature: float | None = None,
    max_tokens: int = 4096,
    extra_body: Mapping[str, Any] | None = None,
    timeout_s: float = 300.0,
    streaming: bool = False,
    prompt_caching: bool = True,
    region: str | None = None,
    profile: str | None = None,
    model_provider: str | None = None,
    base_url: str | None = None,
    attempts: int = 6,
    concurrency: int | None = 64,
    tokens_per_minute: int | None = None,
    *,
    store: ReplyStore | None = None,
    meter: Meter | None = None,
    callbacks: Sequence[BaseCallbackHandler] = (),
    note: Callable[[str], None] | None = None,
) -> LanguageModel:
    """Ask a model on Amazon Bedrock through the Converse API.

    Args:
        model: a model's or inference profile's id or ARN.
        temperature: from 0 to 1; None leaves it to the service.
        max_tokens: longest reply.
        extra_body: fields of the model's own (`additionalModelRequestFields`).
        timeout_s: longest time for one attempt.
        streaming: receive replies in pieces.
        prompt_caching: mark stable prefixes, for models that know it (Claude, Nova).
        region: AWS region; None takes AWS_REGION, or the profile's.
        profile: named profile of the AWS configuration; None takes the usual chain of credentials.
        model_provider: who made the model (`anthropic`, …), needed with an ARN.
        base_url: another endpoint than the region's.
        attempts: how often a call is sent at most.
        concurrency: calls at the same time.
        tokens_per_minute: tokens in and out that calls of one minute may have.
        store: where replies are kept.
        meter: who counts.
        callbacks: LangChain's.
        note: told when traces leave the machine.

    Raises:
        MissingExtra: langchain-aws or boto3 is not installed.
        ConfigError: there are no credentials or no region, or a value is impossible.
    """

    def chat_model() -> BaseChatModel:
        converse = _imported("langchain_aws", "ChatBedrockConverse", "bedrock", "llm=bedrock")
        session = _imported("boto3", "Session", "bedrock", "llm=bedrock")
        config = _imported("botocore.config", "Config", "bedrock", "llm=bedrock")
        place = _aws_region(session, region, profile)
        given: dict[str, Any] = {"provider": model_provider} if model_provider else {}
        return _made(
            converse,
            model=model,
            temperature=temperature,
            max_tokens=max_tokens,
            additional_model_request_fields=dict(extra_body) if extra_body else None,
            streaming=streaming,
            disable_streaming=not streaming,  # else it decides by the model's name, and says so
            region_name=place,
            credentials_profile_name=profile,
            endpoint_url=base_url,
            config=config(
                connect_timeout=min(timeout_s, 60.0),
                read_timeout=timeout_s,
                retries={"total_max_attempts": 1, "mode": "standard"},
                max_pool_connections=concurrency or 256,
            ),
            **given,
        )

    return LanguageModel(
        None if _replays(store) else chat_model(),
        "bedrock",
        model,
        _parameters(temperature, max_tokens, extra_body),
        store=store,
        meter=meter,
        retry=RetryPolicy(attempts=attempts),
        limits=Limits(concurrency, tokens_per_minute),
        timeout_s=timeout_s,
        prompt_caching=prompt_caching,
        callbacks=callbacks,
        note=note,
    )


def openai_compatible(
    model: str,
    temperature: float | None = None,
    max_tokens: int = 4096,
    extra_body: Mapping[str, Any] | None = None,
    timeout_s: float = 300.0,
    streaming: bool = False,
    base_url: str | None = None,
    api_version: str | None = None,
    key_variable: str = "OPENAI_API_KEY",
    provider: str = "openai_compatible",
    attempts: int = 6,
    concurrency: int | None = 64,
    tokens_per_minute: int | None = None,
    *,
    store: ReplyStore | None = None,
    meter: Meter | None = None,
    callbacks: Sequence[BaseCallbackHandler] = (),
    note: Callable[[str], None] | None = None,
) -> LanguageModel:
    """Ask any server that speaks OpenAI's chat protocol: OpenAI, Azure, vLLM, Ollama, llama.cpp, ….

    Args:
        model: the model's id; with `api_version`, the name of the Azure deployment.
        temperature: from 0 to 2; None leaves it to the service, and some models take nothing else.
        max_tokens: longest reply.
        extra_body: further members of the request, sent as they are (`top_p`, `seed`, `guided_json`, …).
        timeout_s: longest time for one attempt.
        streaming: receive replies in pieces.
        base_url: the server's address, with `/v1` where it has that; None is OpenAI's own service.
        api_version: of an Azure resource, whose address `base_url` then is. Its newer address, ending in
            `/openai/v1`, needs none.
        key_variable: environment variable that holds the key. Servers other than OpenAI's and Azure may need none.
        provider: name in the keys of recorded replies, to tell apart servers that serve one model differently.
        attempts: how often a call is sent at most.
        concurrency: calls at the same time.
        tokens_per_minute: tokens in and out that calls of one minute may have.
        store: where replies are kept.
        meter: who counts.
        callbacks: LangChain's.
        note: told when traces leave the machine.

    Raises:
        MissingExtra: langchain-openai is not installed.
        ConfigError: the key is missing, or a value is impossible.
    """

    def chat_model() -> BaseChatModel:
        # OPENAI_BASE_URL is what OpenAI's own client would take, too.
        address = base_url or os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE")
        own = address is None or api_version is not None or _host(address).endswith(OPENAI_HOSTS)
        key = _key(key_variable, "llm=openai_compatible") if own else os.environ.get(key_variable) or NO_KEY
        body = dict(extra_body or {})
        common: dict[str, Any] = {
            "temperature": temperature,
            "timeout": timeout_s,
            "max_retries": 0,
            "streaming": streaming,
            "stream_usage": True,
            "api_key": key,
            "use_responses_api": False,
        }
        if own:
            common["max_tokens"] = max_tokens
        else:
            body = {"max_tokens": max_tokens, **body}  # the client would send it under its newer name only
        common["extra_body"] = body or None
        if api_version is not None:
            if base_url is None:
                raise ConfigError("llm.api_version is Azure's; name the resource, too: llm.base_url=https://…")
            azure = _imported("langchain_openai", "AzureChatOpenAI", "openai", "llm=openai_compatible")
            return _made(
                azure, azure_endpoint=base_url, azure_deployment=model, api_version=api_version, model=model, **common
            )
        chat = _imported("langchain_openai", "ChatOpenAI", "openai", "llm=openai_compatible")
        return _made(chat, model=model, base_url=address, **common)

    return LanguageModel(
        None if _replays(store) else chat_model(),
        provider,
        model,
        _parameters(temperature, max_tokens, extra_body),
        store=store,
        meter=meter,
        retry=RetryPolicy(attempts=attempts),
        limits=Limits(concurrency, tokens_per_minute),
        timeout_s=timeout_s,
        callbacks=callbacks,
        note=note,
    )


def hf_local(
    model: str,
    temperature: float = 0.0,
    max_tokens: int = 1024,
    device: str | None = None,
    dtype: str | None = None,
    revision: str | None = None,
    *,
    store: ReplyStore | None = None,
    meter: Meter | None = None,
    callbacks: Sequence[BaseCallbackHandler] = (),
    note: Callable[[str], None] | None = None,
) -> LanguageModel:
    """Run a causal language model in this process.

    Args:
        model: folder, or name on the model hub.
        temperature: 0 always takes the likeliest token.
        max_tokens: longest reply.
        device: `cpu`, `cuda`, `cuda:1`; None takes a GPU where there is one.
        dtype: `bfloat16`, `float16`, `float32`; None takes what the model was saved with.
        revision: branch, tag or commit on the model hub.
        store: where replies are kept.
        meter: who counts.
        callbacks: LangChain's.
        note: told when traces leave the machine.

    Raises:
        MissingExtra: torch or transformers is not installed.
    """

    def chat_model() -> BaseChatModel:
        from byokg.llm.hf_local import LocalChatModel

        for package in ("torch", "transformers"):
            _imported(package, "__version__", "local", "llm=hf_local")
        return LocalChatModel(
            model=model, temperature=temperature, max_tokens=max_tokens, device=device, dtype=dtype, revision=revision
        )

    kind: dict[str, JSON] = {key: value for key, value in (("dtype", dtype), ("revision", revision)) if value}
    return LanguageModel(
        None if _replays(store) else chat_model(),
        "hf_local",
        model,
        _parameters(temperature, max_tokens, kind),
        store=store,
        meter=meter,
        retry=RetryPolicy(attempts=1),
        callbacks=callbacks,
        note=note,
    )


def scripted(
    rules: Path,
    model: str = "script",
    *,
    store: ReplyStore | None = None,
    meter: Meter | None = None,
    callbacks: Sequence[BaseCallbackHandler] = (),
    note: Callable[[str], None] | None = None,
) -> LanguageModel:
    """Answer from a script (`byokg.llm.scripted`).

    Args:
        rules: YAML list or JSON lines of rules.
        model: name of the model that the script plays.
        store: where replies are kept.
        meter: who counts.
        callbacks: LangChain's.
        note: told when traces leave the machine.

    Raises:
        ConfigError: the script is missing or malformed.
    """

    def chat_model() -> BaseChatModel:
        from byokg.llm.scripted import ScriptedChatModel, read_rules

        return ScriptedChatModel(rules=read_rules(rules), model=model)

    return LanguageModel(
        None if _replays(store) else chat_model(),
        "scripted",
        model,
        store=store,
        meter=meter,
        retry=RetryPolicy(attempts=1),
        callbacks=callbacks,
        note=note,
    )


def replay(
    provider: str,
    model: str,
    temperature: float | None = None,
    max_tokens: int | None = 4096,
    extra_body: Mapping[str, Any] | None = None,
    *,
    store: ReplyStore | None = None,
    meter: Meter | None = None,
) -> LanguageModel:
    """Give back what another provider's model answered, and nothing else.

    Args:
        provider: whose replies: the name of the option that recorded them (`anthropic`, `bedrock`, …).
        model: the model's id, as recorded.
        temperature: likewise.
        max_tokens: likewise.
        extra_body: likewise.
        store: where the replies are.
        meter: who counts.

    Raises:
        ConfigError: there is no store.
    """
    return LanguageModel(
        None, provider, model, _parameters(temperature, max_tokens, extra_body), store=store, meter=meter
    )


def deferred(
    provider: str,
    model: str,
    temperature: float | None = None,
    max_tokens: int | None = 4096,
    extra_body: Mapping[str, Any] | None = None,
    *,
    store: ReplyStore | None = None,
    meter: Meter | None = None,
    pending: PendingCalls | None = None,
) -> LanguageModel:
    """Put calls aside for another machine to answer, and go on with the replies that are there.

    Args:
        provider: who will answer: `anthropic`, `openai_compatible`, ….
        model: the model's id.
        temperature: as it will be asked.
        max_tokens: likewise.
        extra_body: likewise.
        store: where replies are imported.
        meter: who counts.
        pending: where calls are put aside.

    Raises:
        ConfigError: there is nowhere to put them.
    """
    if pending is None:
        raise ConfigError("llm=deferred waits for replies from elsewhere; use it with byokg eval")
    parameters = _parameters(temperature, max_tokens, extra_body)
    return LanguageModel(None, provider, model, parameters, store=store, meter=meter, pending=pending)


def _parameters(
    temperature: float | None, max_tokens: int | None, extra_body: Mapping[str, JSON] | None
) -> dict[str, JSON]:
    """Return what is part of a reply's key; the same for all providers, so that `replay` finds their replies."""
    if max_tokens is not None and max_tokens < 1:
        raise ConfigError(f"llm.max_tokens={max_tokens} leaves no room for a reply; give 1 or more")
    if temperature is not None and not temperature >= 0:
        raise ConfigError(f"llm.temperature={temperature} is below 0; give 0 or more, or null")
    found: dict[str, JSON] = {}
    if temperature is not None:
        found["temperature"] = temperature
    if max_tokens is not None:
        found["max_tokens"] = max_tokens
    return found | dict(extra_body or {})


def _replays(store: ReplyStore | None) -> bool:
    return store is not None and store.replay_only


def _key(variable: str, purpose: str) -> str:
    """Read a key from the environment."""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(f"{purpose} needs a key, and {variable} is not set; run: export {variable}=…")
    return key


def _aws_region(session_type: Any, region: str | None, profile: str | None) -> str:
    """Make sure that there are credentials, and return the region."""
    try:
        session = session_type(region_name=region, profile_name=profile)
        credentials = session.get_credentials()
    except Exception as error:  # botocore has no common base for what is wrong with a profile
        raise ConfigError(f"llm=bedrock cannot use the AWS configuration: {' '.join(str(error).split())}") from error
    if credentials is None and not os.environ.get("AWS_BEARER_TOKEN_BEDROCK"):
        raise ConfigError(
            "llm=bedrock needs AWS credentials and found none; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or AWS_BEARER_TOKEN_BEDROCK, or run: aws configure"
        )
    place = region or os.environ.get("AWS_REGION") or session.region_name
    if not place:
        raise ConfigError("llm=bedrock needs a region; set AWS_REGION, or add llm.region=us-east-1")
    return str(place)


def _imported(module: str, name: str, extra: str, purpose: str) -> Any:
    """Import a name from a package of an extra."""
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        package = (error.name or module).split(".")[0].replace("_", "-")
        raise MissingExtra(package, extra, purpose) from error


def _made(kind: Any, **arguments: Any) -> BaseChatModel:
    """Make a chat model; what it refuses is a wrong setting."""
    try:
        model: BaseChatModel = kind(**arguments)
    except Exception as error:  # pydantic's, openai's and botocore's
        key = arguments.get("api_key")
        reason = " ".join(str(error).split())
        reason = reason.replace(key, "…") if isinstance(key, str) else reason
        raise ConfigError(f"{kind.__name__} refuses its settings: {reason}") from None
    return model


def _host(address: str) -> str:
    return urlsplit(address).hostname or ""
