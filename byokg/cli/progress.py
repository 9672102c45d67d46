"""How far an evaluation or an embedding is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from byokg.evaluation.runner import Progress as Done
from byokg.index.dense import Embedded

_LINES = 10
"""Lines in all, where there is no terminal."""


@contextmanager
def shown(title: str, total: int, console: Console, quiet: bool) -> Iterator[Callable[[Done], None]]:
    """Give what to call after each question; what it shows goes to `console`, and a bar is removed at the end."""
    if quiet:
        yield lambda done: None
    elif console.is_terminal:
        with _bar(console) as bar:
            task = bar.add_task(escape(title), total=total, figures="")
            yield lambda done: bar.update(task, completed=done.done, figures=_figures(done))
    else:
        lines = _Lines(title, console)
        yield lambda done: lines.show(done, lambda: _figures(done))


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


@contextmanager
def embedding_shown(title: str, console: Console, quiet: bool) -> Iterator[Callable[[Embedded], None]]:
    """Give what to call while names are embedded: how many, at which rate, and how long it will take yet."""
    pace = _Pace()
    if quiet:
        yield lambda done: None
    elif console.is_terminal:
        with _bar(console) as bar:
            task = bar.add_task(escape(title), total=None, figures="")
            yield lambda done: bar.update(task, total=done.total, completed=done.done, figures=pace.rate(done))
    else:
        lines = _Lines(title, console)
        yield lambda done: lines.show(done, lambda: f"{pace.rate(done)}, {pace.remaining(done)} left")


class _Pace:
    """Tells how fast something is, from when it was made."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def rate(self, done: Embedded) -> str:
        return f"{done.done / self._seconds():,.0f} names/s"

    def remaining(self, done: Embedded) -> str:
        seconds = round(self._seconds() * (done.total - done.done) / max(done.done, 1))
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"

    def _seconds(self) -> float:
        return max(time.monotonic() - self._began, 1e-9)


class _Lines:
    """Prints a line for every tenth of the whole."""

    def __init__(self, title: str, console: Console) -> None:
        self._title = title
        self._console = console
        self._reached: int | None = None

    def show(self, done: Done | Embedded, figures: Callable[[], str]) -> None:
        reached = done.done * _LINES // done.total
        if reached == self._reached or (self._reached is None and reached == 0):
            return
        self._reached = reached
        self._console.print(
            f"{self._title}: {done.done:,}/{done.total:,}  {figures()}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def _figures(done: Done) -> str:
    failed = f", {done.failed:,} failed" if done.failed else ""
    return f"Hit {100 * done.hit:.1f} %{failed}"
