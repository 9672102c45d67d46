"""Hosted embedding models through LangChain: Amazon Bedrock, and whatever speaks OpenAI's protocol."""

from __future__ import annotations

import os

from pydantic import SecretStr

from byokg.errors import ConfigError, MissingExtra
from byokg.index.langchain import LangChainEmbedder

_NO_KEY = "none"
"""Sent where no key is given to a server of one's own: the client insists on some."""


def openai_compatible(
    model: str,
    base_url: str | None = None,
    api_key: str | None = None,
    dimensions: int | None = None,
    batch_size: int = 256,
    timeout_s: float = 60.0,
    max_retries: int = 5,
) -> LangChainEmbedder:
    """Return an embedder that asks OpenAI, or a server that speaks its protocol (vLLM, Ollama, TEI, LiteLLM, …).

    Args:
        model: as the server calls it, for instance `text-embedding-3-small`.
        base_url: address up to `/v1`; None is OpenAI's own.
        api_key: None takes `OPENAI_API_KEY` from the environment; a server of one's own may need none.
        dimensions: length of a vector, where the model leaves a choice.
        batch_size: texts per request.
        timeout_s: for one request.
        max_retries: after a failure that may pass, with growing pauses.

    Raises:
        MissingExtra: langchain-openai is not installed.
        ConfigError: neither key nor address is there.
    """
    try:
        from langchain_openai import OpenAIEmbeddings
    except ImportError as error:
        raise MissingExtra("langchain-openai", "openai", "embedding=openai_compatible") from error
    key = api_key or os.environ.get("OPENAI_API_KEY")
    if key is None and base_url is None:
        raise ConfigError(
            "embedding=openai_compatible has no key; set OPENAI_API_KEY, or name your own server with "
            "embedding.base_url=http://HOST:PORT/v1"
        )
    embeddings = OpenAIEmbeddings(
        model=model,
        base_url=base_url,
        api_key=SecretStr(key or _NO_KEY),
        dimensions=dimensions,
        chunk_size=batch_size,
        timeout=timeout_s,
        max_retries=max_retries,
        # Otherwise token numbers of OpenAI's own tokenizer are sent, which is fetched first, and no other server reads.
        check_embedding_ctx_length=False,
        model_kwargs={"encoding_format": "float"},
    )
    return LangChainEmbedder(embeddings, _named("openai", model, dimensions), batch_size)


def bedrock(
    model: str,
    region: str | None = None,
    profile: str | None = None,
    endpoint_url: str | None = None,
    dimensions: int | None = None,
    batch_size: int = 64,
    timeout_s: float = 60.0,
    max_retries: int = 5,
) -> LangChainEmbedder:
    """Return an embedder that asks Amazon Bedrock; credentials are found as by every AWS tool.

    Args:
        model: Bedrock's id, for instance `amazon.titan-embed-text-v2:0` or `cohere.embed-multilingual-v3`.
        region: AWS region; None takes that of the environment or the profile.
        profile: profile in `~/.aws/credentials`.
        endpoint_url: address other than the region's own.
        dimensions: length of a vector, where the model leaves a choice.
        batch_size: texts per call; Titan still gets one text a request.
        timeout_s: for one request.
        max_retries: after a failure that may pass, with growing pauses.

    Raises:
        MissingExtra: langchain-aws is not installed.
        ConfigError: AWS finds no region or profile.
    """
    try:
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
        from langchain_aws import BedrockEmbeddings
    except ImportError as error:
        raise MissingExtra("langchain-aws", "bedrock", "embedding=bedrock") from error
    config = Config(
        connect_timeout=timeout_s,
        read_timeout=timeout_s,
        retries={"total_max_attempts": max_retries + 1, "mode": "standard"},
    )
    try:
        embeddings = BedrockEmbeddings(
            model_id=model,
            region_name=region,
            credentials_profile_name=profile,
            endpoint_url=endpoint_url,
            dimensions=dimensions,
            config=config,
        )
    except (BotoCoreError, ValueError) as error:
        raise ConfigError(
            f"embedding=bedrock cannot start: {error}; set AWS_REGION and credentials, or embedding.region=…"
        ) from error
    return LangChainEmbedder(embeddings, _named("bedrock", model, dimensions), batch_size)


def _named(service: str, model: str, dimensions: int | None) -> str:
    return f"{service}-{model}" if dimensions is None else f"{service}-{model}-{dimensions}"
