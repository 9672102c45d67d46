"""The `byokg` command: its subcommands, exit codes, and error messages.

A command's module is imported when the command is run, so `byokg --help` imports none of them.
"""

from __future__ import annotations

import io
import os
import re
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from inspect import cleandoc
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from byokg.cli.terminal import DEBUG, INCOMPLETE, SETTINGS, WRONG
from byokg.errors import ByokgError, RunIncomplete

INTERRUPTED = 1
BUG = 70
"""Exit codes, besides those of `terminal`: stopped by Ctrl-C; byokg itself is wrong (EX_SOFTWARE)."""

_STOPPED = 130
"""What typer returns for Ctrl-C."""

COMMANDS = {
    "demo": (
        "reproduce_commands:demo",
        "Answer the shipped questions without a language model, then replay ByoKG-RAG and its baselines with one.",
    ),
    "graph": ("graph_commands:graph_app", "Build a graph, look at one, query or export it."),
    "ask": ("ask_commands:ask", "Answer one question and show the evidence."),
    "link": ("linking_commands:link", "Show candidate nodes of a name, a date or an id."),
    "eval": ("eval_commands:eval_", "Run a pipeline over a data set and score it."),
    "answer": ("eval_commands:answer", "Answer a file of questions that have no gold answers."),
    "eval-linking": (
        "linking_commands:evaluate_linking",
        "Score entity linking on the annotated topic entities of a data set, all methods in one table.",
    ),
    "fit": ("train_commands:fit", "Fit the answering without a language model to a graph and its questions."),
    "train": ("train_commands:app", "Learn from questions and answers: labels, language models."),
    "reproduce": (
        "reproduce_commands:reproduce",
        "Reproduce a table of a paper with your model, and print it beside the published one.",
    ),
    "merge": ("eval_commands:merge", "Put the shards of a run together and score the whole."),
    "compare": (
        "score_commands:compare",
        "Compare runs over the same questions: differences with intervals, by type, questions won and lost.",
    ),
    "score": ("score_commands:score", "Score predictions again, under one metric profile or all of them side by side."),
    "table": ("score_commands:table", "Write the table of runs for a paper: LaTeX, Markdown or CSV."),
    "report": ("score_commands:report", "Write a report about runs as one HTML file that needs no network."),
    "view": ("score_commands:view", "Show runs in the browser, also while they run."),
    "data": ("data_commands:app", "Data sets: list, content, audit, conversion of graphs, download."),
    "testset": ("data_commands:make", "Make questions with gold answers from a graph."),
    "trace": ("ask_commands:trace", "Show the derivation of a recorded question's answers."),
    "mcp": ("mcp.commands:app", "Serve a graph to programs that speak the Model Context Protocol (MCP)."),
    "bfs": ("mcp.commands:bfs", "Print the part of a graph around some nodes, as BFS-QL selects it."),
    "paths": ("mcp.commands:paths", "Find paths between nodes with a path query, and print or draw them."),
    "embedder": (
        "linking_commands:embedder_app",
        "Embedders: how fast one is, and making a small one out of a large one.",
    ),
    "cache": ("data_commands:cache_app", "Recorded replies of language models: counts, export, import, removal."),
    "doctor": (
        "doctor:doctor",
        "Check this machine, the installed extras, keys (set or not, never shown) and a graph.",
    ),
}
"""Module and summary of each command, in the order of a user's day."""


_WITHIN_PARAGRAPH = re.compile(r"(?<!\n)\n(?!\n|byokg )")
"""The end of a line of a help behind which neither a paragraph nor an example begins."""


def load(name: str) -> Any:
    """Import a command, and return it as click (or the part of it in typer) knows it."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    found: Any = getattr(import_module(f"byokg.cli.{module}"), attribute)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(name)(found)
        found = alone
    command = get_command(found)
    command.name = name
    _join_lines(command)
    return command


def _join_lines(command: Any) -> None:
    """Let the terminal break the lines of a command's help, and not the source."""
    command.help = _WITHIN_PARAGRAPH.sub(" ", cleandoc(command.help or ""))
    for part in getattr(command, "commands", {}).values():
        _join_lines(part)


class _Commands(TyperGroup):
    """Commands by name with their summaries; imports the one that is run."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in COMMANDS:
            self.commands[args[0]] = load(args[0])
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Bring your own knowledge graph and questions; get answers with evidence and a score you can trust.\n\n"
    "Words like dataset=atlas or pipeline.beam=8 are settings of a run: GROUP=OPTION chooses a part, KEY=VALUE changes "
    "one value, and byokg eval --show prints all of them with their purposes. Words like --json are options of a "
    "command. Start with: byokg demo",
)


def _not_loaded() -> None:
    """Stand for a command that is not imported yet."""


for _name, (_, _help) in COMMANDS.items():
    app.command(_name, help=_help)(_not_loaded)


def _print_version(wanted: bool) -> None:
    if wanted:
        from byokg.evaluation.run_folder import code_version

        code = code_version()
        commit = f", commit {code.commit}" if code.commit else ""
        print(f"byokg {code.version} (code {code.digest}{commit})")  # as config.yaml of a run records it
        raise typer.Exit


@app.callback()
def _start(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help=f"Show tracebacks and logs (or set {DEBUG}=1).")] = False,
) -> None:
    if debug:
        os.environ[DEBUG] = "1"
    if _debugging():
        import logging

        from byokg.cli.terminal import MaskedLogs

        logging.basicConfig(level=logging.INFO, handlers=[MaskedLogs()])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: words after `byokg`; None takes those the process was started with.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A name that the terminal cannot show must not end the program, and bytes are the same on every system.
            stream.reconfigure(errors="replace", newline="\n")
    try:
        code = app(None if arguments is None else list(arguments), prog_name="byokg", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has enough; without this the interpreter complains when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INTERRUPTED
    except Exception as error:
        return _failed(error)
    if code == _STOPPED:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _failed(error: Exception) -> int:
    """Report an error in one line, or with its traceback if wanted; return the exit code."""
    from byokg.open import mask

    if _debugging():
        print(mask(traceback.format_exc()), end="", file=sys.stderr)
    usage = getattr(error, "format_message", None)  # click's errors, which come from click or typer by version
    if type(error).__name__ == "NoArgsIsHelpError":
        print(usage() if callable(usage) else "", end="")  # empty if the help was printed already
        return WRONG
    if callable(usage):
        command = getattr(getattr(error, "ctx", None), "command_path", "byokg")  # the one whose options are meant
        text = f"{mask(_one_line(usage()))}{_setting_meant(error)}"
        print(f"error: {text}; see: {command} --help", file=sys.stderr)
        return WRONG
    if isinstance(error, RunIncomplete):
        print(f"incomplete: {mask(_one_line(str(error)))}", file=sys.stderr)
        return INCOMPLETE
    if isinstance(error, ByokgError | OSError):
        print(f"error: {type(error).__name__}: {mask(_one_line(str(error)))}", file=sys.stderr)
        return WRONG
    text = f"error: {type(error).__name__}: {mask(_one_line(str(error)))}"
    print(f"{text} (this is a bug in byokg; {DEBUG}=1 shows where)", file=sys.stderr)
    return BUG


def _setting_meant(error: Exception) -> str:
    """Return a hint to the setting most similar to an unknown option, for commands that take settings."""
    option, command = getattr(error, "option_name", None), getattr(getattr(error, "ctx", None), "command", None)
    arguments = (each for each in getattr(command, "params", ()) if each.param_type_name == "argument")
    if option is None or all(SETTINGS not in (each.metavar or "") for each in arguments):
        return ""
    from byokg.cli.config import nearest_key

    near = nearest_key(option.lstrip("-").replace("-", "_"))
    return f"; settings are written without dashes: {near}=…" if near else ""


def _one_line(text: str) -> str:
    return " ".join(text.split("\n")).strip().rstrip(".")


def _debugging() -> bool:
    return os.environ.get(DEBUG, "") not in ("", "0")
