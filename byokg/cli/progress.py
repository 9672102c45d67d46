"""How far an evaluation is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from byokg.evaluation.runner import Progress as Done

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
        yield _Lines(title, console).show


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


class _Lines:
    """Prints a line for every tenth of the questions."""

    def __init__(self, title: str, console: Console) -> None:
        self._title = title
        self._console = console
        self._reached: int | None = None

    def show(self, done: Done) -> None:
        reached = done.done * _LINES // done.total
        if reached == self._reached or (self._reached is None and reached == 0):
            return
        self._reached = reached
        self._console.print(
            f"{self._title}: {done.done:,}/{done.total:,}  {_figures(done)}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def _figures(done: Done) -> str:
    failed = f", {done.failed:,} failed" if done.failed else ""
    return f"Hit {100 * done.hit:.1f} %{failed}"
