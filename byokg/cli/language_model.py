"""What an evaluation needs besides a pipeline when it asks a language model: replies, accounts, a budget, prompts.

`byokg cache`: what is recorded of language models' replies, and how it travels.

The judge of `byokg score --profile judge`: a language model as the settings name it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from byokg.cli.config import Settings, read_settings
from byokg.cli.terminal import print_json, stdout
from byokg.errors import ConfigError
from byokg.files import user_cache
from byokg.llm.batch import AnthropicBatches, PendingCalls
from byokg.llm.model import LanguageModel
from byokg.llm.providers import Anthropic, Provider
from byokg.llm.replies import RecordedReplies
from byokg.llm.usage import PriceTable, UsageMeter, dollars
from byokg.prompts.template import PromptLibrary
from byokg.types import Spending

if TYPE_CHECKING:
    from rich.table import Table

    from byokg.evaluation.cases import Case
    from byokg.evaluation.metrics import Metrics
    from byokg.evaluation.profiles import Profile
    from byokg.llm.replies import Count, Mode, RecordedReplies

app = typer.Typer(no_args_is_help=True, help="Recorded replies of language models: counts, export, import, removal.")

StoreOption = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE", help="File of recorded replies; the user's own unless given."),
]

_AGE = re.compile(r"(\d+)([dhw])")
_SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400}
_CONFLICTS_SHOWN = 5


def replies_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where replies are recorded unless a setting says otherwise: in the user's cache folder."""
    return user_cache(environment) / "replies.sqlite"


@app.command("stats")
def stats(
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Count recorded replies and their tokens by provider, model and stage."""
    from dataclasses import asdict

    with _opened(store) as replies:
        counts, size, waiting = replies.counts(), replies.path.stat().st_size, len(replies.pending())
        total = sum(count.replies for count in counts)
        if as_json:
            record = {"file": str(replies.path), "bytes": size, "replies": total, "pending": waiting}
            print_json({**record, "counts": [asdict(count) for count in counts]})
            return
        if counts:
            stdout().print(_table(counts))
        noun = "reply" if total == 1 else "replies"
        print(f"{total:,} {noun} in {replies.path} ({size / 1e6:,.1f} MB)")
        if waiting:
            print(f"pending: {waiting:,} more; take them in with: byokg cache import FILE")


@app.command("export")
def export(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="JSON lines to write; .gz compresses.")],
    run: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="Only what this run used; may be repeated.")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Write recorded replies as JSON lines that others can import and replay."""
    from byokg.llm.reply_files import export_replies

    keys = _keys(run)
    with _opened(store) as replies:
        count = export_replies(replies, out, keys)
    print(f"exported {count:,} {'reply' if count == 1 else 'replies'} to {out}")


@app.command("import")
def import_(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="JSON lines: an export, or a batch service's output.")
    ],
    store: StoreOption = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace replies that are there already.")] = False,
) -> None:
    """Take in replies that were exported, or that a batch service or another machine made.

    Each file is taken in whole or not at all, and again without harm.
    """
    from byokg.llm.replies import RecordedReplies
    from byokg.llm.reply_files import import_replies

    with RecordedReplies(store or replies_file(), "record" if overwrite else "auto") as replies:
        for file in files:
            taken = import_replies(replies, file)
            parts = [f"{taken.new:,} new", f"{taken.known:,} known"]
            if taken.conflicts:
                kept = "replaced" if overwrite else "kept as they were"
                parts.append(f"{len(taken.conflicts):,} there with another reply, {kept}")
            if taken.failed:
                parts.append(f"{len(taken.failed):,} without a reply")
            print(f"{file}: {', '.join(parts)}")
            for key in taken.conflicts[:_CONFLICTS_SHOWN]:
                print(f"  another reply: {key}")
            for key, reason in taken.failed[:_CONFLICTS_SHOWN]:
                print(f"  no reply: {key}: {reason}")
        waiting = len(replies.pending())
    if waiting:
        print(f"pending: {waiting:,} more")


@app.command("prune")
def prune(
    older_than: Annotated[
        str | None, typer.Option(metavar="AGE", help="Recorded longer ago than this: 30d, 12h, 8w.")
    ] = None,
    model: Annotated[list[str] | None, typer.Option(metavar="ID", help="Of this model; may be repeated.")] = None,
    not_used_by: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="Used by none of these runs; may be repeated.")
    ] = None,
    store: StoreOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many.")] = False,
) -> None:
    """Remove recorded replies that fulfil every condition given. They were paid for: export them first."""
    if older_than is None and not model and not not_used_by:
        raise ConfigError("nothing says what to remove; give --older-than, --model or --not-used-by")
    before = None if older_than is None else time.time() - _seconds(older_than)
    keep = _keys(not_used_by)
    with _opened(store, "auto") as replies:
        size = replies.path.stat().st_size
        count = replies.prune(before, model or (), keep, dry_run)
        freed = (size - replies.path.stat().st_size) / 1e6
    noun = "reply" if count == 1 else "replies"
    print(f"{count:,} {noun} would go" if dry_run else f"removed {count:,} {noun} ({max(freed, 0.0):,.1f} MB)")


def _table(counts: Sequence[Count]) -> Table:
    from byokg.evaluation.tables import figures, labels, table

    rows = []
    for count in counts:
        usage = count.usage
        took = (count.replies, usage.input_tokens, usage.cache_read_tokens, usage.output_tokens)
        rows.append((count.provider, count.model, count.stage, *(f"{figure:,}" for figure in took)))
    headings = figures("replies", "tokens in", "cached", "tokens out")
    return table([*labels("provider", "model", "stage"), *headings], rows)


def _opened(store: Path | None, mode: Mode = "replay") -> RecordedReplies:
    """Open a file that has to be there."""
    from byokg.llm.replies import RecordedReplies

    path = store or replies_file()
    if not path.is_file():
        raise ConfigError(f"no recorded replies in {str(path)!r}; name their file with --store")
    return RecordedReplies(path, mode)


def _keys(runs: list[Path] | None) -> set[str] | None:
    """Return the keys of what runs used; None where none is given."""
    from byokg.evaluation.records import reply_keys

    return set().union(*map(reply_keys, runs)) if runs else None


def _seconds(age: str) -> int:
    found = _AGE.fullmatch(age)
    if found is None:
        raise ConfigError(f"--older-than {age} is no age; write hours, days or weeks as 12h, 30d or 8w")
    return int(found[1]) * _SECONDS[found[2]]


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
    batch: Anthropic | None
    """Whose batches answer the calls that were put aside; None where another machine does."""

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
        from byokg.evaluation.batch_runs import run_deferred, run_in_batches

        if self.pending is None:
            return once()
        if self.batch is None:
            return run_deferred(once, self.pending, folder / REQUESTS)
        batches = AnthropicBatches(self.batch.batch_client(), self.replies, folder / REQUESTS, self.model.name)
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
        provider: Provider = settings.build("llm")
        waits = together and provider.answers_later
        if waits and settings.run.replies.mode in ("off", "replay"):
            raise ConfigError(f"replies.mode={settings.run.replies.mode} takes no replies that come later; use auto")
        pending = PendingCalls(replies) if waits else None
        model = provider.language_model(store=replies, meter=meter, pending=pending, note=note)
        meter.check(model.model)
    except BaseException:
        replies.close()
        raise
    batch = provider if isinstance(provider, Anthropic) and provider.batch else None
    return Asking(model, meter, replies, prompts, pending, batch)


def prompt_library(settings: Settings) -> PromptLibrary:
    """Read the prompts, the user's own in the place of ours. Raises `ConfigError`."""
    files = dict(settings.run.prompts)
    return PromptLibrary(files.pop("folder", None), files)


_EVERY = 100
"""Cases between two lines about progress."""


def judged(cases: Sequence[Case], words: Sequence[str], note: Callable[[str], None]) -> Profile:
    """Have all cases judged, and return the verdicts as a profile.

    Args:
        cases: questions with gold answers and predictions.
        words: settings: `llm`, and whatever else tells how to ask it.
        note: told in one line what happens.

    Raises:
        ConfigError: the settings name no language model, or questions have no text.
        LlmError: the judge cannot be asked.
    """
    from byokg.evaluation.scoring import judge_cases, judge_profile

    wordless = sum(not case.question for case in cases)
    if wordless:
        raise ConfigError(
            f"{wordless:,} of {len(cases):,} predictions come without the question, which the judge has to see; "
            "name the data set: dataset=folder dataset.root=DIR"
        )
    # The pipeline that asks a model and needs no graph; only its model is made.
    settings = read_settings([*words, "pipeline=direct"])
    if "llm" not in settings.components:
        raise ConfigError("--profile judge asks a language model; add llm=anthropic llm.model=MODEL")
    asks = asking(settings, note)
    assert asks is not None
    try:

        def progress(done: int) -> None:
            if done % _EVERY == 0:
                note(f"{done:,} answers judged")

        verdicts = judge_cases(cases, asks.model, asks.prompts, settings.run.workers, progress)
        spent = Spending()
        for case in cases:
            spent = sum(asks.meter.take(case.id).stages.values(), spent)
    finally:
        asks.close()
    replayed = f", {spent.replayed.calls:,} replayed" if spent.replayed.calls else ""
    note(f"{verdicts.model} judged: {spent.asked.calls:,} calls{replayed}, {dollars(spent.asked.usd)}")
    if verdicts.unreadable:
        note(
            f"no score in {len(verdicts.unreadable):,} replies, which count as 0: {', '.join(verdicts.unreadable[:5])}"
        )
    return judge_profile(verdicts)
