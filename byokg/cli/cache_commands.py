"""`byokg cache`: what is recorded of language models' replies, and how it travels."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from byokg.cli.terminal import print_json, stdout
from byokg.errors import ConfigError
from byokg.graph.cache_folder import user_cache

if TYPE_CHECKING:
    from rich.table import Table

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
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("provider", "model", "stage"):
        table.add_column(heading, overflow="fold")
    for heading in ("replies", "tokens in", "cached", "tokens out"):
        table.add_column(heading, justify="right", no_wrap=True)
    for count in counts:
        usage = count.usage
        names = (Text(count.provider), Text(count.model), Text(count.stage))
        figures = (count.replies, usage.input_tokens, usage.cache_read_tokens, usage.output_tokens)
        table.add_row(*names, *(f"{figure:,}" for figure in figures))
    return table


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
