"""The language model that settings name, with who records and counts its replies."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from byokg.cli.config import Settings
from byokg.errors import ConfigError
from byokg.files import user_cache

if TYPE_CHECKING:
    from byokg.evaluation.metrics import Metrics
    from byokg.llm.batch import PendingCalls
    from byokg.llm.model import LanguageModel
    from byokg.llm.providers import Anthropic, Provider
    from byokg.llm.reply_store import RecordedReplies
    from byokg.llm.usage import UsageMeter
    from byokg.pipelines.tracing import Tracing
    from byokg.prompts import PromptLibrary

REQUESTS = "requests"
"""Subfolder of a run folder for pending requests."""

_SOME_MODEL = "llm=anthropic llm.model=MODEL"


def replies_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the default file of recorded replies: in the user's cache folder."""
    return user_cache(environment) / "replies.sqlite"


@dataclass(frozen=True)
class ModelSession:
    """A language model as the settings name it, and who records and counts its replies."""

    model: LanguageModel
    meter: UsageMeter
    replies: RecordedReplies
    prompts: PromptLibrary
    pending: PendingCalls | None
    """Where calls are put aside, in batches and where another machine answers."""
    batch: Anthropic | None
    """Whose batches answer the calls that were put aside; None where another machine does."""

    def close(self) -> None:
        """Close the file of replies."""
        self.replies.close()

    def bill(self, ids: Iterable[str]) -> str:
        """Return one line on the calls of some questions, and their cost."""
        from byokg.llm.usage import dollars
        from byokg.types import Spending

        spent = sum((each for id in ids for each in self.meter.take(id).stages.values()), Spending())
        replayed = f", {spent.replayed.calls:,} replayed" if spent.replayed.calls else ""
        return f"{spent.asked.calls:,} calls{replayed}, {dollars(spent.asked.usd)}"

    def run(
        self, once: Callable[[], Metrics], folder: Path, settings: Settings, note: Callable[[str], None]
    ) -> Metrics:
        """Run an evaluation to its end, or as far as the replies go.

        Args:
            once: one pass, as by `run_evaluation`.
            folder: the run's.
            settings: of the run.
            note: called with one line per event.

        Raises:
            RunIncomplete: replies are missing, or the budget is spent.
        """
        if self.pending is None:
            return once()
        from byokg.evaluation.batch_runs import run_deferred, run_in_batches
        from byokg.llm.batch import AnthropicBatches

        if self.batch is None:
            return run_deferred(once, self.pending, folder / REQUESTS)
        batches = AnthropicBatches(self.batch.batch_client(), self.replies, folder / REQUESTS, self.model.name)
        return run_in_batches(once, self.pending, batches, self.meter, note)


def prompt_library(settings: Settings) -> PromptLibrary:
    """Return byokg's prompts with the replacements that the settings name."""
    from byokg.prompts import PromptLibrary

    files = dict(settings.run.prompts)
    return PromptLibrary(files.pop("folder", None), files, settings.run.language)


class ModelOnDemand:
    """Opens the language model of the settings when a pipeline first wants it. Arguments as for `open_model`."""

    def __init__(
        self, settings: Settings, note: Callable[[str], None], batch: bool = False, tracing: Tracing | None = None
    ) -> None:
        self._settings, self._note, self._batch, self._tracing = settings, note, batch, tracing
        self.session: ModelSession | None = None
        """The open model; None while nothing wanted it."""

    def __call__(self) -> LanguageModel:
        """Return the model; raises the errors of `open_model`."""
        if self.session is None:
            self.session = open_model(self._settings, self._note, self._batch, self._tracing)
        return self.session.model

    def report_idle(self) -> None:
        """Send a note if a model was chosen and nothing wanted it."""
        options = self._settings.options
        if self.session is None and "llm" in self._settings.components:
            self._note(f"pipeline={options['pipeline']} asks no language model; llm={options['llm']} is idle")

    def close(self) -> None:
        """Close the model, if it is open."""
        if self.session is not None:
            self.session.close()


def open_model(
    settings: Settings, note: Callable[[str], None], batch: bool = False, tracing: Tracing | None = None
) -> ModelSession:
    """Make the language model of the settings.

    Args:
        settings: `llm`, `replies`, `prices`, `prompts` and `budget` are read.
        tracing: receives every call.
        note: called when traces leave the machine, or a price is unknown.
        batch: many questions follow, so that calls may be put aside.

    Raises:
        ConfigError: none is chosen, or a setting is wrong.
        MissingExtra: the provider's package is not installed.
        ReplyStoreError: recorded replies cannot be used.
    """
    if "llm" not in settings.components:
        raise ConfigError(f"pipeline={settings.options['pipeline']} asks a language model; add {_SOME_MODEL}")
    from byokg.llm.batch import PendingCalls
    from byokg.llm.providers import Anthropic
    from byokg.llm.reply_store import RecordedReplies
    from byokg.llm.usage import PriceTable, UsageMeter

    prompts = prompt_library(settings)
    meter = UsageMeter(
        PriceTable(settings.run.prices), settings.build("budget") if "budget" in settings.components else None
    )
    replies = RecordedReplies(settings.run.replies.path or replies_file(), settings.run.replies.mode)
    try:
        provider: Provider = settings.build("llm")
        waits = batch and provider.answers_later
        if waits and settings.run.replies.mode in ("off", "replay"):
            raise ConfigError(f"replies.mode={settings.run.replies.mode} takes no replies that come later; use auto")
        pending = PendingCalls(replies) if waits else None
        model = provider.language_model(
            store=replies, meter=tracing.meter(meter) if tracing else meter, pending=pending, note=note
        )
        meter.check(model.model)
    except BaseException:
        replies.close()
        raise
    batches = provider if isinstance(provider, Anthropic) and provider.batch else None
    return ModelSession(model, meter, replies, prompts, pending, batches)
