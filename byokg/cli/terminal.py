"""Where commands print: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from byokg.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from byokg.errors import GraphExists


def stdout() -> Console:
    """Return a console for results."""
    from rich.console import Console

    return Console(highlight=False)


def stderr() -> Console:
    """Return a console for what happens meanwhile."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def note(text: str) -> None:
    """Print one line about what happens, however long, to standard error."""
    stderr().print(text, style="dim", markup=False, soft_wrap=True)


def print_line(console: Console, text: str) -> None:
    """Print text as it is, in one line however long: it may be copied or parsed."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def folder_given(place: str, what: str) -> Path:
    """Return a folder's path; refuse an address, without repeating it."""
    from byokg.graph.address import is_address

    if is_address(place):
        raise ConfigError(f"{what} takes no address; name a folder")
    return Path(place).expanduser()


def in_these_words(error: GraphExists) -> GraphExists:
    """Return an error with the library's advice in the words of the commands."""
    error.args = (str(error).replace("pass overwrite=True", "add --overwrite"),)
    return error


def print_json(value: object) -> None:
    """Print a value as JSON, in ASCII where the terminal knows no more."""
    utf8 = sys.stdout.encoding.lower().replace("-", "").startswith("utf")
    print(json.dumps(value, ensure_ascii=not utf8, indent=2))


class MaskedLogs(logging.StreamHandler[TextIO]):
    """Writes log lines to standard error, without the credentials in their addresses (httpx logs whole URLs)."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        from byokg.graph.address import masked

        return masked(super().format(record))
