"""Where language models are found: one class of settings for each `configs/llm/*.yaml`, which makes a `LanguageModel`.

    Anthropic("claude-sonnet-5", max_tokens=1024).language_model(store=store, meter=meter)

LangChain's `init_chat_model` makes the chat models of services; their own retries are switched off, since
`LanguageModel` repeats calls itself. Keys are read from the environment, never from settings, which are recorded. With
a store that only replays (`store.replay_only`) no chat model is made, so neither a key nor the provider's package is
needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from byokg.errors import ConfigError, MissingExtra
from byokg.llm.batch import PendingCalls
from byokg.llm.messages import JSON, Meter, ReplyStore
from byokg.llm.model import LanguageModel, Structured
from byokg.llm.retry import RateLimits, RetryPolicy

if TYPE_CHECKING:
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.language_models.chat_models import BaseChatModel

OPENAI_HOSTS = ("openai.com", "azure.com", "microsoft.com")
"""Where `max_tokens` has its newer name, `max_completion_tokens`."""

NO_KEY = "no-key"
"""Sent to servers that ask for no key, since the client insists on one."""


@dataclass(frozen=True)
class Provider:
    """Settings of a language model. A subclass adds its own, and makes the chat model.

    Attributes:
        model: the model's id.
    """

    model: str

    option: ClassVar[str]
    """The option's name: `llm=OPTION`."""

    @property
    def recorded_as(self) -> str:
        """Return the provider's name in the keys of recorded replies."""
        return getattr(self, "provider", self.option)

    @property
    def answers_later(self) -> bool:
        """True if calls are put aside, to be answered many at a time."""
        return False

    def chat_model(self) -> BaseChatModel | None:
        """Return the chat model; None for a provider without direct calls.

        Raises:
            MissingExtra: the provider's package is not installed.
            ConfigError: the key is missing, or a value is impossible.
        """
        return None

    def parameters(self) -> dict[str, JSON]:
        """Return the settings in a reply's key: all that decide a reply, but the model."""
        return {}

    def sending(self) -> dict[str, Any]:
        """Return how calls are sent: arguments of `LanguageModel`."""
        return {"retry": RetryPolicy(attempts=1)}

    def language_model(
        self,
        *,
        store: ReplyStore | None = None,
        meter: Meter | None = None,
        pending: PendingCalls | None = None,
        callbacks: Sequence[BaseCallbackHandler] = (),
        note: Callable[[str], None] | None = None,
    ) -> LanguageModel:
        """Make the language model.

        Args:
            store: keeps the replies.
            meter: counts the calls.
            pending: collects the calls that are answered later.
            callbacks: LangChain's.
            note: called when traces leave the machine.

        Raises:
            MissingExtra: the provider's package is not installed.
            ConfigError: the key is missing, a value is impossible, or calls are answered later and `pending` is None.
        """
        if self.answers_later and pending is None:
            raise ConfigError(
                f"llm={self.option} has replies that come later, for many questions together; use it with byokg eval"
                + (", or leave llm.batch=true out" if self.option == "anthropic" else "")
            )
        structured: Structured = getattr(self, "structured", "none")
        if structured != "none" and self.answers_later:
            raise ConfigError(
                f"llm.structured={structured} needs replies at once, and those of llm={self.option} come later; leave "
                "it out"
            )
        asks = not self.answers_later and not (store is not None and store.replay_only)
        return LanguageModel(
            self.chat_model() if asks else None,
            self.recorded_as,
            self.model,
            self.parameters(),
            store=store,
            meter=meter,
            pending=pending if self.answers_later else None,
            callbacks=callbacks,
            note=note,
            structured=structured,
            **self.sending(),
        )

    def _imported(self, module: str, name: str) -> Any:
        """Import a name from a package of the option's extra."""
        try:
            return getattr(import_module(module), name)
        except ImportError as error:
            raise self._missing(error) from error

    def _missing(self, error: ImportError) -> MissingExtra:
        cause = error.__cause__ if isinstance(error.__cause__, ImportError) else error
        package = (cause.name or "langchain").split(".")[0].replace("_", "-")
        return MissingExtra(package, _EXTRAS.get(self.option, self.option), f"llm={self.option}")


_EXTRAS = {"openai_compatible": "openai", "hf_local": "local"}
"""Extras with another name than the option."""


@dataclass(frozen=True)
class RemoteModel(Provider):
    """Settings of a model that runs elsewhere.

    Attributes:
        temperature: 0 or more; None leaves it to the service, and some models allow nothing else.
        max_tokens: longest reply.
        extra_body: further members of the request, sent as they are (`top_p`, `seed`, `thinking`, …).
        logprobs: alternatives recorded with each token and its log-probability, for services that have them; 0 for
            none (one from servers other than OpenAI's), None for no log-probabilities.
        structured: `json_schema` lets the service hold replies to the JSON schema of the request, if it can; `grammar`
            is for llama.cpp's servers, which then write the tags that prompts demand; `none` leaves replies free.
    """

    temperature: float | None = None
    max_tokens: int | None = 4096
    extra_body: Mapping[str, Any] | None = None
    logprobs: int | None = None
    structured: Structured = "none"

    def parameters(self) -> dict[str, JSON]:
        """Return the settings in a reply's key; the same for all providers, so that `Replay` finds their replies."""
        return _parameters(self.temperature, self.max_tokens, self.extra_body, self.logprobs)


@dataclass(frozen=True)
class Service(RemoteModel):
    """Settings of a model behind the network.

    Attributes:
        timeout_s: longest time for one attempt.
        streaming: receive replies in pieces, which keeps long ones alive through proxies.
        base_url: another address than the service's own.
        attempts: most attempts of a call.
        concurrency: concurrent calls; None for any number.
        tokens_per_minute: tokens in and out of the calls of one minute; None for any number.
    """

    timeout_s: float = 300.0
    streaming: bool = False
    base_url: str | None = None
    attempts: int = 6
    concurrency: int | None = 64
    tokens_per_minute: int | None = None

    def sending(self) -> dict[str, Any]:
        """Return how calls are sent."""
        return {
            "retry": RetryPolicy(attempts=self.attempts),
            "limits": RateLimits(self.concurrency, self.tokens_per_minute),
            "timeout_s": self.timeout_s,
            "prompt_caching": getattr(self, "prompt_caching", False),
        }

    def _made(self, service: str, /, **settings: Any) -> BaseChatModel:
        """Make a chat model of a service, by LangChain's name for it; values that its class refuses are wrong
        settings."""
        if not isinstance(self, OpenAICompatible):
            if self.logprobs is not None:
                raise ConfigError(f"llm={self.option} has no log-probabilities; leave llm.logprobs out")
            if self.structured == "grammar":
                raise ConfigError(f"llm={self.option} takes no grammar; use llm.structured=json_schema")
        make = self._imported("langchain.chat_models", "init_chat_model")
        settings |= {"temperature": self.temperature, "streaming": self.streaming or None}
        given = {name: value for name, value in settings.items() if value is not None}
        try:
            made: BaseChatModel = make(self.model, model_provider=service, **given)
        except ImportError as error:
            if (
                self.option == "langchain"
            ):  # we have no extra for LangChain's other packages; its message names the right one
                raise ConfigError(f"llm=langchain llm.provider={service}: {_line(error)}") from error
            raise self._missing(error) from error
        except Exception as error:  # pydantic's, openai's and botocore's
            key = settings.get("api_key")
            reason = _line(error).replace(key, "…") if isinstance(key, str) else _line(error)
            raise ConfigError(f"llm={self.option} refuses its settings: {reason}") from None
        return made

    def _key(self, variable: str) -> str:
        """Read a key from the environment."""
        key = os.environ.get(variable, "").strip()
        if not key:
            raise ConfigError(f"llm={self.option} needs a key, and {variable} is not set; run: export {variable}=…")
        return key


@dataclass(frozen=True)
class Anthropic(Service):
    """Claude through Anthropic's API.

    Attributes:
        prompt_caching: mark stable prefixes, so that the service charges less for repeating them.
        key_variable: environment variable that holds the key.
        batch: put calls aside, for Anthropic's Message Batches at half price (`byokg.llm.batch`).
    """

    option = "anthropic"

    prompt_caching: bool = True
    key_variable: str = "ANTHROPIC_API_KEY"
    batch: bool = False

    @property
    def answers_later(self) -> bool:
        """True if calls are put aside for batches."""
        return self.batch

    def chat_model(self) -> BaseChatModel:
        """Return the chat model."""
        return self._made(
            "anthropic",
            max_tokens=self.max_tokens,
            timeout=self.timeout_s,
            max_retries=0,
            api_key=self._key(self.key_variable),
            model_kwargs={"extra_body": dict(self.extra_body)} if self.extra_body else None,
            base_url=self.base_url,
        )

    def batch_client(self) -> Any:
        """Return the `anthropic` package's own client, since LangChain sends no batches.

        Raises:
            MissingExtra: anthropic is not installed.
            ConfigError: the key is missing.
        """
        client = self._imported("anthropic", "Anthropic")
        return client(api_key=self._key(self.key_variable), base_url=self.base_url, max_retries=0)


@dataclass(frozen=True)
class Bedrock(Service):
    """A model on Amazon Bedrock through the Converse API; `model` is a model's or inference profile's id or ARN.

    Attributes:
        prompt_caching: mark stable prefixes, for models that know it (Claude, Nova).
        region: AWS region; None takes AWS_REGION, or the profile's.
        profile: named profile of the AWS configuration; None takes the usual chain of credentials.
        model_provider: who made the model (`anthropic`, …), needed with an ARN.
    """

    option = "bedrock"

    prompt_caching: bool = True
    region: str | None = None
    profile: str | None = None
    model_provider: str | None = None

    def chat_model(self) -> BaseChatModel:
        """Return the chat model."""
        config = self._imported("botocore.config", "Config")
        return self._made(
            "bedrock_converse",
            max_tokens=self.max_tokens,
            additional_model_request_fields=dict(self.extra_body) if self.extra_body else None,
            disable_streaming=not self.streaming,  # else its default depends on the model's name, with a warning
            region_name=self._region(),
            credentials_profile_name=self.profile,
            endpoint_url=self.base_url,
            config=config(
                connect_timeout=min(self.timeout_s, 60.0),
                read_timeout=self.timeout_s,
                retries={"total_max_attempts": 1, "mode": "standard"},
                max_pool_connections=self.concurrency or 256,
            ),
            provider=self.model_provider,
        )

    def _region(self) -> str:
        """Make sure that there are credentials, and return the region."""
        session_type = self._imported("boto3", "Session")
        try:
            session = session_type(region_name=self.region, profile_name=self.profile)
            credentials = session.get_credentials()
        except Exception as error:  # botocore has no common base class for errors of profiles
            raise ConfigError(f"llm=bedrock cannot use the AWS configuration: {_line(error)}") from error
        if credentials is None and not os.environ.get("AWS_BEARER_TOKEN_BEDROCK"):
            raise ConfigError(
                "llm=bedrock needs AWS credentials and found none; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or AWS_BEARER_TOKEN_BEDROCK, or run: aws configure"
            )
        region = self.region or os.environ.get("AWS_REGION") or session.region_name
        if not region:
            raise ConfigError("llm=bedrock needs a region; set AWS_REGION, or add llm.region=us-east-1")
        return str(region)


@dataclass(frozen=True)
class OpenAICompatible(Service):
    """A server with OpenAI's chat protocol: OpenAI, Azure, vLLM, Ollama, llama.cpp, ….

    `base_url` is the server's address, with `/v1` if it has that; None is OpenAI's own service.

    Attributes:
        api_version: of an Azure resource, whose address `base_url` then is, and `model` the name of the deployment.
            Azure's newer address, ending in `/openai/v1`, needs none.
        key_variable: environment variable that holds the key. Servers other than OpenAI's and Azure may need none.
        provider: name in the keys of recorded replies, to separate servers that serve one model differently.
    """

    option = "openai_compatible"

    api_version: str | None = None
    key_variable: str = "OPENAI_API_KEY"
    provider: str = "openai_compatible"

    def chat_model(self) -> BaseChatModel:
        """Return the chat model."""
        # OPENAI_BASE_URL is what OpenAI's own client would take, too.
        address = self.base_url or os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE")
        azure = self.api_version is not None
        own = address is None or azure or (urlsplit(address).hostname or "").endswith(OPENAI_HOSTS)
        body, limit = dict(self.extra_body or {}), {"max_tokens": self.max_tokens}
        if not own:
            body, limit = {**limit, **body}, {}  # the client would send it under its newer name only
        common = {
            "timeout": self.timeout_s,
            "max_retries": 0,
            "stream_usage": True,
            "api_key": self._key(self.key_variable) if own else os.environ.get(self.key_variable) or NO_KEY,
            "use_responses_api": False,
            "extra_body": body or None,
            "logprobs": None if self.logprobs is None else True,
            # With 0 llama.cpp gives no log-probabilities at all.
            "top_logprobs": self.logprobs if own or self.logprobs is None else max(1, self.logprobs),
            **limit,
        }
        if not azure:
            return self._made("openai", base_url=address, **common)
        if self.base_url is None:
            raise ConfigError("llm.api_version is Azure's; name the resource, too: llm.base_url=https://…")
        place = {"azure_endpoint": self.base_url, "azure_deployment": self.model, "api_version": self.api_version}
        return self._made("azure_openai", **place, **common)


@dataclass(frozen=True)
class LangChain(Service):
    """Any other provider that `init_chat_model` knows: `google_genai`, `mistralai`, `ollama`, `groq`, ….

    Its LangChain package must be installed, and reads keys from the environment as it documents. `extra_body` holds
    further arguments of its chat model.

    Attributes:
        provider: LangChain's name of it, also in the keys of recorded replies.
    """

    option = "langchain"

    provider: str = field(kw_only=True)

    def chat_model(self) -> BaseChatModel:
        """Return the chat model."""
        return self._made(
            self.provider,
            max_tokens=self.max_tokens,
            timeout=self.timeout_s,
            max_retries=0,
            base_url=self.base_url,
            **(self.extra_body or {}),
        )


@dataclass(frozen=True)
class HfLocal(Provider):
    """A causal language model in this process; `model` is a folder, a GGUF file, an installed package of weights, or a
    name on the model hub (`byokg.llm.local_weights`).

    Attributes:
        temperature: 0 always takes the likeliest token.
        max_tokens: longest reply.
        device: `cpu`, `cuda`, `cuda:1`; None takes a GPU if there is one.
        dtype: `bfloat16`, `float16`, `float32`; None takes the type of the saved weights.
        revision: branch, tag or commit on the model hub.
        template: Jinja template of a prompt; None takes the tokenizer's, or the messages with blank lines between.
        stop: texts that end a reply.
        logprobs: alternatives recorded with each token and its log-probability; 0 for none, None for no
            log-probabilities.
    """

    option = "hf_local"

    temperature: float = 0.0
    max_tokens: int = 1024
    device: str | None = None
    dtype: str | None = None
    revision: str | None = None
    template: str | None = None
    stop: Sequence[str] = ()
    logprobs: int | None = None

    def chat_model(self) -> BaseChatModel:
        """Return the chat model, which loads its weights on first use."""
        from byokg.llm.chat_models import LocalChatModel

        for package in ("torch", "transformers"):
            self._imported(package, "__version__")
        return LocalChatModel(**asdict(self))

    def parameters(self) -> dict[str, JSON]:
        """Return the settings in a reply's key."""
        further: dict[str, JSON] = {"dtype": self.dtype, "revision": self.revision, "template": self.template}
        further = {name: value for name, value in further.items() if value}
        further |= {"stop": list(self.stop)} if self.stop else {}
        return _parameters(self.temperature, self.max_tokens, further, self.logprobs)


@dataclass(frozen=True)
class Scripted(Provider):
    """Replies from a script (`ScriptedChatModel`); `model` is the name of the model that the script plays.

    Attributes:
        rules: YAML list or JSON lines of rules.
    """

    option = "scripted"

    model: str = "script"
    rules: Path = field(kw_only=True)

    def chat_model(self) -> BaseChatModel:
        """Return the chat model. Raises `ConfigError` if the script is missing or malformed."""
        from byokg.llm.chat_models import ScriptedChatModel, read_rules

        return ScriptedChatModel(rules=read_rules(self.rules), model=self.model)


@dataclass(frozen=True)
class Replay(RemoteModel):
    """What another provider's model answered, out of the store, and nothing else; all settings as recorded.

    Attributes:
        provider: whose replies: the option that recorded them (`anthropic`, `bedrock`, …).
    """

    option = "replay"

    provider: str = field(kw_only=True)


@dataclass(frozen=True)
class Deferred(Replay):
    """A model that another machine will ask: calls are put aside, and the run goes on with the replies imported."""

    option = "deferred"

    @property
    def answers_later(self) -> bool:
        """True: all calls are put aside."""
        return True


def _parameters(
    temperature: float | None, max_tokens: int | None, further: Mapping[str, JSON] | None, logprobs: int | None = None
) -> dict[str, JSON]:
    """Return the settings that decide a reply, checked; those left to the service are left out."""
    if max_tokens is not None and max_tokens < 1:
        raise ConfigError(f"llm.max_tokens={max_tokens} leaves no room for a reply; give 1 or more")
    if temperature is not None and not temperature >= 0:
        raise ConfigError(f"llm.temperature={temperature} is below 0; give 0 or more, or null")
    if logprobs is not None and logprobs < 0:
        raise ConfigError(f"llm.logprobs={logprobs} is below 0; give 0 or more, or null for no log-probabilities")
    found: dict[str, JSON] = {"temperature": temperature, "max_tokens": max_tokens, "logprobs": logprobs}
    return {name: value for name, value in found.items() if value is not None} | dict(further or {})


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
