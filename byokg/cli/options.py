"""Options that belong together as one record, which a command takes in place of a parameter for each."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any

import typer


def expand_records(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with an option for each field of the records (dataclasses) among its parameters.

        @dataclass(frozen=True)
        class Limits:
            rows: Annotated[int, typer.Option(min=1)] = 10

        @app.command()
        @expand_records
        def show(place: str, limits: Limits) -> None: ...

    The command line has `--rows`, and `show` receives `Limits(rows=…)`.
    """
    parameters = inspect.signature(command, eval_str=True).parameters
    kinds = {name: each.annotation for name, each in parameters.items()}
    records = {name: kind for name, kind in kinds.items() if isinstance(kind, type) and is_dataclass(kind)}
    expanded: list[inspect.Parameter] = []
    for name, each in parameters.items():
        expanded += inspect.signature(records[name], eval_str=True).parameters.values() if name in records else [each]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, record in records.items():
            given[name] = record(**{field.name: given.pop(field.name) for field in fields(record)})
        command(**given)

    named = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in expanded]
    run.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    return run


@dataclass(frozen=True)
class ServerOptions:
    """Settings of a server's store, for commands that take an address."""

    id_property: Annotated[
        str | None, typer.Option(metavar="NAME", help="Property that identifies a server's nodes; else its own ids do.")
    ] = None
    name_property: Annotated[
        str | None, typer.Option(metavar="NAME", help="Property that names a server's nodes; else it is guessed.")
    ] = None
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Setting graph.KEY of ask and eval; may be repeated."),
    ] = None

    def settings(self, place: str) -> dict[str, Any]:
        """Return the given settings, for whatever opens a graph by its place, a folder or an address.

        Raises:
            ConfigError: the store has no such setting, or it takes no such value; checked as those of `graph` are.
        """
        given: dict[str, Any] = {"id_property": self.id_property, "name_property": self.name_property}
        given = {key: value for key, value in given.items() if value is not None}
        if self.setting:
            from byokg.cli.components import component_or_value
            from byokg.cli.config import read_settings

            words = [f"graph.path={place}", *(f"graph.{word}" for word in self.setting)]
            chosen = read_settings(words).components["graph"]
            keys = dict.fromkeys(re.split("[.=]", word)[0] for word in self.setting)
            given |= {key: component_or_value(chosen[key], f"graph.{key}") for key in keys}
        return given
