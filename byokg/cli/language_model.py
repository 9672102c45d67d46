"""What an evaluation needs besides a pipeline when it asks a language model: replies, accounts, a budget, prompts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byokg.cli.cache_commands import replies_file
from byokg.cli.config import Settings
from byokg.errors import ConfigError
from byokg.evaluation.later_replies import run_deferred, run_in_batches
from byokg.evaluation.metrics import Metrics
from byokg.llm.batches import AnthropicBatches
from byokg.llm.model import LanguageModel
from byokg.llm.pending import PendingCalls
from byokg.llm.prices import PriceTable
from byokg.llm.providers import anthropic_client
from byokg.llm.replies import RecordedReplies
from byokg.llm.usage import UsageMeter
from byokg.prompts.template import PromptLibrary

REQUESTS = "requests"
"""Subfolder of a run folder: what it waits for."""

_SOME_MODEL = "llm=anthropic llm.model=MODEL"


@dataclass(frozen=True)
class Asking:
    """A language model as the settings name it, and who records and counts its replies."""

    model: LanguageModel
    meter: UsageMeter
    replies: RecordedReplies
    prompts: PromptLibrary
    pending: PendingCalls | None
    """Where calls are put aside, in batches and where another machine answers."""
    batch: bool

    def close(self) -> None:
        """Close the file of replies."""
        self.replies.close()

    def run(
        self, once: Callable[[], Metrics], folder: Path, settings: Settings, note: Callable[[str], None]
    ) -> Metrics:
        """Run an evaluation to its end, or as far as the replies go.

        Args:
            once: one pass, as by `run_evaluation`.
            folder: the run's.
            settings: what it was made from.
            note: told in one line what happens.

        Raises:
            RunIncomplete: replies are missing, or the budget is spent.
        """
        if self.pending is None:
            return once()
        if not self.batch:
            return run_deferred(once, self.pending, folder / REQUESTS)
        node = settings.components["llm"]
        client = anthropic_client(node["base_url"], node["key_variable"])
        batches = AnthropicBatches(client, self.replies, folder / REQUESTS, self.model.name)
        return run_in_batches(once, self.pending, batches, self.meter, note)


def asking(settings: Settings, note: Callable[[str], None], together: bool = False) -> Asking | None:
    """Make the language model that the settings name, if the pipeline asks one.

    Args:
        settings: `llm`, `replies`, `prices`, `prompts` and `budget` are read.
        note: told when traces leave the machine, or a price is not known.
        together: many questions are asked, so that calls may be put aside.

    Returns:
        None where the pipeline asks no language model.

    Raises:
        ConfigError: the pipeline asks one and none is chosen, or a setting is wrong.
        MissingExtra: the provider's package is not installed.
        ReplyStoreError: recorded replies cannot be used.
    """
    chosen = settings.components.get("llm")
    if "model" not in settings.takes("pipeline"):
        if chosen is not None:
            note(
                f"pipeline={settings.options['pipeline']} asks no language model; llm={settings.options['llm']} is idle"
            )
        return None
    if chosen is None:
        raise ConfigError(f"pipeline={settings.options['pipeline']} asks a language model; add {_SOME_MODEL}")
    prompts = prompt_library(settings)
    meter = UsageMeter(
        PriceTable(settings.run.prices), settings.build("budget") if "budget" in settings.components else None
    )
    replies = RecordedReplies(settings.run.replies.path or replies_file(), settings.run.replies.mode)
    try:
        batch = bool(chosen.get("batch"))
        waits = together and (batch or settings.options["llm"] == "deferred")
        if waits and settings.run.replies.mode in ("off", "replay"):
            raise ConfigError(f"replies.mode={settings.run.replies.mode} takes no replies that come later; use auto")
        pending = PendingCalls(replies) if waits else None
        takes = settings.takes("llm")
        given: dict[str, Any] = {"store": replies, "meter": meter, "note": note, "pending": pending}
        model = settings.build("llm", **{name: value for name, value in given.items() if name in takes})
        meter.check(model.model)
    except BaseException:
        replies.close()
        raise
    return Asking(model, meter, replies, prompts, pending, batch)


def prompt_library(settings: Settings) -> PromptLibrary:
    """Read the prompts, the user's own in the place of ours. Raises `ConfigError`."""
    files = dict(settings.run.prompts)
    return PromptLibrary(files.pop("folder", None), files)
