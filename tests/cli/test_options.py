"""Records of options on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from byokg.cli.options import ServerOptions, expand_records
from byokg.errors import ConfigError


@dataclass(frozen=True)
class Limits:
    """A record with a required and an optional field."""

    rows: Annotated[int, typer.Option(min=1, help="Rows at most.")]
    names: Annotated[list[str] | None, typer.Option("--name")] = None


app = typer.Typer()


@app.command()
@expand_records
def show(place: str, limits: Limits, loud: Annotated[bool, typer.Option("--loud")] = False) -> None:
    """Show a place."""
    print(place, limits, loud)


def test_a_command_receives_the_record_of_its_options() -> None:
    done = CliRunner().invoke(app, ["here", "--rows", "3", "--name", "a", "--name", "b", "--loud"])
    assert done.stdout == "here Limits(rows=3, names=['a', 'b']) True\n"


def test_options_left_out_have_the_defaults_of_the_record() -> None:
    assert CliRunner().invoke(app, ["here", "--rows", "3"]).stdout == "here Limits(rows=3, names=None) False\n"


def test_fields_without_a_default_are_required_and_checked() -> None:
    assert CliRunner().invoke(app, ["here"]).exit_code == 2
    assert CliRunner().invoke(app, ["here", "--rows", "0"]).exit_code == 2


def test_help_lists_the_fields_in_order() -> None:
    text = CliRunner().invoke(app, ["--help"]).stdout
    assert "Show a place." in text and "Rows at most." in text
    assert text.index("--rows") < text.index("--name") < text.index("--loud")


def test_server_options_return_what_is_given() -> None:
    assert ServerOptions().settings("DIR") == {}
    assert ServerOptions("id", None).settings("neo4j://host") == {"id_property": "id"}
    with pytest.raises(ConfigError, match="no setting"):
        ServerOptions(setting=["colour=red"]).settings("neo4j://host")
