"""Where commands print: results to standard output, everything else to standard error.

How far something is that takes its time: a bar on a terminal, a line now and then elsewhere.

The answer of `byokg graph query`, as a table.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TextIO

import typer

from byokg.errors import ConfigError, GraphExists
from byokg.files import bytes_read, has_separator

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from byokg.evaluation.runner import Progress as Done
    from byokg.graph.store import GraphStore, Rows
    from byokg.index.dense import Embedded
    from byokg.types import Cell

DEBUG = "BYOKG_DEBUG"
"""Environment variable that asks for tracebacks and logs."""

WRONG = 2
INCOMPLETE = 3
"""Exit codes: the settings, files or data are wrong; a run can be continued (its budget is spent, or replies are
pending)."""


def _use_configs(folder: str | None) -> str | None:
    if folder is not None:
        from byokg.cli.components import CONFIG_DIR

        os.environ[CONFIG_DIR] = folder
    return folder


def _completed(context: typer.Context, incomplete: str) -> list[str]:
    """Return the groups, and behind `GROUP=` its options; bash takes the equals sign for a word of its own."""
    from byokg.cli.components import groups, options

    known, args = groups(), context.params.get("words") or []
    group, equals, _ = incomplete.partition("=")
    if incomplete == "=" or args[-1:] == ["="]:
        group = args[-1] if incomplete == "=" else "".join(args[-2:-1])
        return (
            [option for option in options(group) if option.startswith(incomplete.lstrip("="))] if group in known else []
        )
    if equals:
        return [f"{group}={option}" for option in options(group)] if group in known else []
    return [f"{group}=" for group in known]


def is_path(word: str) -> bool:
    """Return True if a word of the command line is a path and no `KEY=VALUE`.

    A path has a separator before its first `=`, or none at all, or exists: sweeps make folders like `beam=8`.
    """
    key, equals, _ = word.partition("=")
    return not equals or has_separator(key) or os.path.exists(word)


def part_words(words: Sequence[str] | None) -> tuple[list[Path], list[str]]:
    """Return the paths among words of the command line, and the settings."""
    paths = [Path(word).expanduser() for word in words or () if is_path(word)]
    return paths, [word for word in words or () if not is_path(word)]


SETTINGS = "KEY=VALUE"

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar=SETTINGS, help="Settings; all of them: byokg eval --show", autocompletion=_completed),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")]
Place = Annotated[str, typer.Argument(metavar="GRAPH", help="A built graph's folder, or a server's address.")]
ConfigDir = Annotated[
    str | None,
    typer.Option(
        metavar="DIR", callback=_use_configs, help="Folder of your own GROUP/OPTION.yaml (or BYOKG_CONFIG_DIR)."
    ),
]


def stdout() -> Console:
    """Return a console for results."""
    from rich.console import Console

    return Console(highlight=False)


def stderr() -> Console:
    """Return a console for progress."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


@dataclass(frozen=True)
class Output:
    """Consoles of a command's result, and of its notes and progress, which are left out if `quiet`."""

    out: Console = field(default_factory=stdout)
    err: Console = field(default_factory=stderr)
    quiet: bool = False

    def note(self, text: str) -> None:
        """Print one line of any length."""
        if not self.quiet:
            print_line(self.err, text)


def watch(store: GraphStore, told: Callable[[str], None]) -> GraphStore:
    """Print progress of a server store's scans, and return the store."""
    store.watch(told)
    return store


@contextmanager
def schema_shown(store: GraphStore) -> Iterator[None]:
    """Show progress of reading a server's schema, on standard error if that is a terminal."""
    if not store.remote:
        yield
        return
    with stderr().status(f"asking {store.name}") as status:
        store.watch(status.update)
        yield


def note(text: str) -> None:
    """Print one line of any length to standard error."""
    stderr().print(text, style="dim", markup=False, soft_wrap=True)


def print_line(console: Console, text: str) -> None:
    """Print text as it is, in one line however long: it may be copied or parsed."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def folder_given(place: str, what: str) -> Path:
    """Return a folder's path; refuse an address, without repeating it."""
    from byokg.open import is_address

    if is_address(place):
        raise ConfigError(f"{what} takes no address; name a folder")
    return Path(place).expanduser()


@contextmanager
def in_these_words() -> Iterator[None]:
    """Write the library's advice on something that is there already in the words of the commands."""
    try:
        yield
    except GraphExists as error:
        error.args = (str(error).replace("pass overwrite=True", "add --overwrite"),)
        raise


def print_json(value: object) -> None:
    """Print a value as JSON, in ASCII if the terminal supports no more."""
    utf8 = sys.stdout.encoding.lower().replace("-", "").startswith("utf")
    print(json.dumps(value, ensure_ascii=not utf8, indent=2))


class MaskedLogs(logging.StreamHandler[TextIO]):
    """Writes log lines to standard error, without the credentials in their addresses (httpx logs whole URLs)."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        from byokg.open import mask

        return mask(super().format(record))


_LINES = 10
"""Number of progress lines without a terminal."""

_EVERY_S = 5.0
"""Seconds between two lines about a graph that is read."""


@contextmanager
def shown(title: str, total: int, output: Output) -> Iterator[Callable[[Done], None]]:
    """Give a callback for each question; a bar is removed at the end."""
    with _progress(title, total, output, _figures, _figures) as show:
        yield show


@contextmanager
def _progress(
    title: str, total: int | None, output: Output, figures: Callable[[Any], str], line: Callable[[Any], str]
) -> Iterator[Callable[[Any], None]]:
    """Show how many are done of how many, with figures: in a bar on a terminal, else in ten lines."""
    if output.quiet:
        yield lambda done: None
    elif output.err.is_terminal:
        with _bar(output.err, counted=True) as bar:
            task = bar.add_task(title, total=total, figures="")
            yield lambda done: bar.update(task, total=done.total, completed=done.done, figures=figures(done))
    else:
        reached = 0

        def show(done: Any) -> None:
            nonlocal reached
            before, reached = reached, done.done * _LINES // done.total
            if reached != before:
                print_line(output.err, f"{title}: {done.done:,}/{done.total:,}  {line(done)}".rstrip())

        yield show


class _Tally(NamedTuple):
    done: int
    total: int


@contextmanager
def counted(title: str, total: int, output: Output) -> Iterator[Callable[[int, int], None]]:
    """Give a callback for how many are done of how many."""
    with _progress(title, total, output, lambda done: "", lambda done: "") as show:
        yield lambda done, of: show(_Tally(done, of))


@contextmanager
def elapsing(title: str, console: Console) -> Iterator[None]:
    """Show that something goes on that cannot be counted: a line, on a terminal with the time."""
    if not console.is_terminal:
        print_line(console, title)
        yield
        return
    from rich import progress

    text = progress.TextColumn("{task.description}", markup=False)
    with progress.Progress(
        progress.SpinnerColumn(), text, progress.TimeElapsedColumn(), console=console, transient=True
    ) as bar:
        bar.add_task(title, total=None)
        yield


def _bar(console: Console, counted: bool) -> Progress:
    """Return a bar with figures; with the count and times if `counted`."""
    from rich import progress

    columns = progress.TextColumn("{task.description}", markup=False), progress.BarColumn(bar_width=None)
    figures = progress.TextColumn("{task.fields[figures]}")
    if not counted:
        return progress.Progress(*columns, figures, console=console, transient=True)
    times = progress.TimeElapsedColumn(), progress.TimeRemainingColumn()
    return progress.Progress(*columns, progress.MofNCompleteColumn(), figures, *times, console=console, transient=True)


@contextmanager
def embedding_shown(title: str, output: Output) -> Iterator[Callable[[Embedded], None]]:
    """Return a callback for the embedding of names: prints their number, the rate, and the time left."""
    pace = _Pace(None)

    def rate(done: Embedded) -> str:
        return f"{done.done / max(pace.seconds(), 1e-9):,.0f} names/s"

    def line(done: Embedded) -> str:
        seconds = round(pace.seconds() * (done.total - done.done) / max(done.done, 1))
        return f"{rate(done)}, {seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02} left"

    with _progress(title, None, output, rate, line) as show:
        yield show


def _figures(done: Done) -> str:
    hit = [] if done.hit is None else [f"Hit {100 * done.hit:.1f} %"]
    return ", ".join(hit + ([f"{done.failed:,} failed"] if done.failed else []))


# Reading whole graphs


@contextmanager
def copied(title: str, nodes: int | None, edges: int | None, console: Console) -> Iterator[Callable[[int, int], None]]:
    """Give a callback for the number of nodes and edges done.

    Args:
        title: of the task.
        nodes: number in all, if known.
        edges: the same of edges.
        console: target of the output.
    """
    pace = _Pace(nodes)
    of_edges = f" of {edges:,}" if edges is not None else ""
    if not console.is_terminal:
        yield lambda done, edges_done: pace.line(
            done, lambda: print_line(console, f"{title}: {pace.text(done)}, {edges_done:,}{of_edges} edges")
        )
        return
    with _bar(console, counted=False) as bar:
        task = bar.add_task(title, total=nodes, figures="listing nodes")
        yield lambda done, edges_done: bar.update(
            task, completed=done, figures=f"{pace.text(done)}, {edges_done:,}{of_edges} edges"
        )


class _Pace:
    """How quickly nodes are read, and how long the rest will take."""

    def __init__(self, total: int | None) -> None:
        self._total = total
        self._began = self._told = time.monotonic()

    def seconds(self) -> float:
        """Return seconds since the beginning."""
        return time.monotonic() - self._began

    def line(self, done: int, say: Callable[[], None]) -> None:
        """Print progress, if nothing was printed for a while or everything is done."""
        if time.monotonic() - self._told >= _EVERY_S or done == self._total:
            self._told = time.monotonic()
            say()

    def text(self, done: int) -> str:
        """Write how many are done of how many, how many a second, and how long the rest will take."""
        rate = done / max(self.seconds(), 1e-3)
        if self._total is None:
            return f"{done:,} nodes ({rate:,.0f}/s)"
        left = max(self._total - done, 0) / rate if rate else 0.0
        return f"{done:,} of {self._total:,} nodes ({rate:,.0f}/s, {left:,.0f} s left)"


_PLACE_BYTES = {"beside": 30, "in": 24}
"""Bytes of an edge, about, while a graph is built, and in the finished graph."""

_SURE = 0.005
"""Share of the files read between two samples before an extrapolation. Reading is ahead of the number of edges, so a
single sample would underestimate."""


def building(sources: Sequence[Path], out: Path, say: Callable[[str], None]) -> Callable[[str, int], None]:
    """Return a callback, while a graph is built, for the phase and the number of edges done.

    Args:
        sources: the files that are read, in this order.
        out: folder of the graph.
        say: called with a line, every few seconds, on progress and remaining time; and once, as soon as it can be
            estimated, on the space needed, if it is more than a gigabyte or than available.
    """
    size = sum(path.stat().st_size for path in sources)
    began = told = time.monotonic()
    first: int | None = None
    edges, stage, guessed, first_at = 0, "", False, 0

    def done(doing: str, count: int) -> None:
        nonlocal began, told, first, edges, stage, guessed, first_at
        now = time.monotonic()
        if doing != stage:
            began, stage, first = now, doing, None
        if first is None:
            first = count
        reading = doing == "read"
        edges = max(edges, count) if reading else edges
        at = bytes_read(sources) if reading else None
        first_at = first_at or at or 0
        share = (at / size if at is not None and size else None) if reading else count / max(edges, 1)
        fresh = (at or 0) - first_at
        if not guessed and (share == 1 or (fresh and fresh > _SURE * size)):
            guessed = True
            in_all = count + (size - at) * (count - first) / fresh if at and fresh else count
            needed, left_over = (in_all * _PLACE_BYTES[place] / 1e9 for place in ("beside", "in"))
            free = shutil.disk_usage(next(place for place in (out, *out.parents) if place.exists())).free / 1e9
            if needed + left_over > min(free, 1):
                enough = "" if free > needed + left_over else "; THAT IS NOT ENOUGH"
                say(
                    f"about {in_all / 1e6:,.1f} million edges: the graph will take {left_over:,.1f} GB, and building "
                    f"it {needed:,.1f} GB more until it is done; {free:,.1f} GB are free{enough}"
                )
        if now - told < _EVERY_S:
            return
        told = now
        rate = (count - first) / max(now - began, 1e-3)
        of_all = f", {share:.0%}" if share else ""
        left = f", {(now - began) * (1 / share - 1):,.0f} s left of this" if share and count > first else ""
        say(f"{doing} {count:,} edges{of_all} ({rate:,.0f}/s{left})")

    return done


def show(rows: Rows, console: Console) -> None:
    """Print a table, and under it how many rows there are."""
    from byokg.evaluation.tables import labels, table

    if rows.columns:
        console.print(table(labels(*rows.columns), (tuple(map(_text, row)) for row in rows.rows)))
    more = "; there are more (raise --max-rows)" if rows.truncated else ""
    console.print(f"{len(rows):,} rows{more}", highlight=False)


def _text(cell: Cell) -> str:
    """Write one cell on one line; a node by its name and id, other values as evidence shows them."""
    from byokg.retrieval.verbalize import cell_text
    from byokg.types import NodeCell

    if isinstance(cell, NodeCell):
        return f"{cell.name} ({cell.id})" if cell.name != cell.id else cell.name
    return "" if cell is None else cell if isinstance(cell, str) else cell_text(cell, {})
