"""The `byokg` command. Everything heavy is imported inside the command that needs it, so `--help` is instant."""

from __future__ import annotations

import io
import json
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from byokg.cli import data_commands as report_command
from byokg.cli import linking_commands, score_commands
from byokg.cli.data_commands import app as data_app
from byokg.cli.embedder_commands import embed, embedder_app
from byokg.cli.graph_commands import graph_app
from byokg.cli.language_model import app as cache_app
from byokg.cli.mcp import app as mcp_app
from byokg.cli.mcp import bfs
from byokg.cli.terminal import AsJson, ConfigDir, Words, note, print_json, stderr, stdout
from byokg.errors import ByokgError, ConfigError, EntityNotFound, RunIncomplete

if TYPE_CHECKING:
    from byokg.linking.entities import EntityLinker

DEBUG = "BYOKG_DEBUG"
"""Environment variable that asks for tracebacks and logs."""

INTERRUPTED = 1
WRONG = 2
INCOMPLETE = 3
BUG = 70
"""Exit codes: stopped by Ctrl-C; the settings, files or data are wrong; a run that can be continued (its budget is
spent, or replies are pending); byokg itself is wrong (EX_SOFTWARE)."""

_STOPPED = 130
"""What typer returns for Ctrl-C."""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Bring your own knowledge graph and questions; get answers with evidence and a score you can trust.",
)
app.add_typer(graph_app, name="graph")
app.add_typer(embedder_app, name="embedder")
graph_app.command("embed")(embed)
app.command("bfs")(bfs)
app.command("link")(linking_commands.link)
app.command("eval-linking")(linking_commands.evaluate_linking)
app.command("report")(report_command.report)
app.add_typer(cache_app, name="cache")
app.command("score")(score_commands.score)
app.command("compare")(score_commands.compare)
app.add_typer(data_app, name="data")
app.add_typer(mcp_app, name="mcp")


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
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help=f"Show tracebacks and logs (or set {DEBUG}=1).")] = False,
) -> None:
    if debug:
        os.environ[DEBUG] = "1"
    if _debugging():
        import logging

        from byokg.cli.terminal import MaskedLogs

        logging.basicConfig(level=logging.INFO, handlers=[MaskedLogs()])


@app.command("eval")
def evaluate(
    words: Words = None,
    config_dir: ConfigDir = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Print the settings as YAML and exit.")] = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Ask a few questions, say what all would take, and exit.")
    ] = False,
    sample: Annotated[int, typer.Option(min=1, help="Questions that --estimate asks.")] = 10,
    multirun: Annotated[
        bool, typer.Option("--multirun", "-m", help="Run every combination of settings with several values.")
    ] = False,
) -> None:
    """Run a pipeline over a data set and score it.

    Settings are KEY=VALUE, for instance:

    byokg eval dataset=atlas

    byokg eval dataset=metaqa dataset.root=DIR dataset.hops=2 limit=500 workers=2

    byokg eval dataset=folder dataset.root=DIR linking.entities=gold out=runs/mine

    byokg eval dataset=folder dataset.root=DIR graph.path=neo4j://HOST graph.id_property=id

    byokg eval pipeline=byokg llm=anthropic llm.model=MODEL dataset=atlas budget=usd budget.max_usd=5 --estimate

    byokg eval -m dataset=atlas linking=exact,fuzzy pipeline.beam=8,32 out=runs/beams

    The same command continues a run that was interrupted, and shows the result of one that is finished.
    """
    if multirun:
        if show or estimate:
            raise ConfigError("--show and --estimate are for a single run; leave out -m")
        from byokg.cli.sweep import sweep

        outcomes = sweep(words or [], stdout(), stderr(), quiet)
        broken = [outcome for outcome in outcomes if outcome.error]
        if broken:
            raise typer.Exit(INCOMPLETE if all(outcome.incomplete for outcome in broken) else WRONG)
        return
    from byokg.cli.config import read_settings, show_settings

    settings = read_settings(words or [])
    if show:
        print(show_settings(settings), end="")
        return
    from byokg.cli.evaluation import evaluate as run

    run(settings, stdout(), stderr(), quiet, sample if estimate else None)


@app.command("merge")
def merge(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of all shards of one run.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Run folder to write.")],
) -> None:
    """Put the shards of a run together and score the whole.

    byokg eval dataset=atlas shard=1/2 out=runs/part-1

    byokg eval dataset=atlas shard=2/2 out=runs/part-2

    byokg merge runs/part-1 runs/part-2 --out runs/whole

    The result is that of the run in one piece, byte for byte but for the timings.
    """
    from byokg.evaluation.records import read_config
    from byokg.evaluation.runner import merge_runs
    from byokg.evaluation.tables import metrics_tables

    metrics = merge_runs(folders, out)
    console = stdout()
    console.print(metrics_tables(metrics, read_config(out)["dataset"]["name"]))
    console.print(f"run folder: {out}", markup=False, highlight=False, soft_wrap=True)


@app.command("ask")
def ask(
    question: Annotated[str, typer.Argument(help="The question, in quotes.")],
    words: Words = None,
    config_dir: ConfigDir = None,
    entity: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Node the question is about; may be repeated.")
    ] = None,
    hops: Annotated[int | None, typer.Option(min=1, help="How many edges away the answer is, if known.")] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Show what every stage was given and made of it, as a tree.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Answer one question and show the evidence.

    byokg ask "Which river flows through Paris?" dataset=atlas

    byokg ask "Who directed Heat?" graph.path=DIR

    byokg ask "Who directed Heat?" graph.path=neo4j://HOST
    """
    from byokg.cli.config import read_settings
    from byokg.cli.evaluation import set_up
    from byokg.cli.trees import as_json as answer_json
    from byokg.cli.trees import show, show_trace
    from byokg.evaluation.records import answered
    from byokg.types import EntityId, Question

    if not question.strip():
        raise ConfigError("the question is empty")
    settings = read_settings(_settings_only(words or [], question))
    dataset = settings.build("dataset") if settings.options["dataset"] else None
    with set_up(settings, dataset, note) as bench:
        topics = tuple(EntityId(id) for id in entity or ())
        try:
            bench.store.numbers(topics)
        except EntityNotFound as error:
            raise ConfigError(_no_such_entity(error, bench.entities)) from error
        answer = bench.pipeline.run(Question("ask", question, topics, hops))
        if as_json:
            print_json(answer_json(question, answer))
        elif trace:
            usage = None if bench.asks is None else bench.asks.meter.take("ask")
            show_trace(json.loads(answered(answer, 0.0, usage).trace), stdout(), bench.store)
        else:
            show(answer, bench.store, stdout())


@app.command("trace")
def trace(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder that an evaluation wrote.")],
    id: Annotated[str, typer.Argument(metavar="ID", help="Question, as in the data set.")],
    graph: Annotated[Path | None, typer.Option(metavar="DIR", help="Graph of the run, for the names of nodes.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what led to the answers of a recorded question: rounds, links, evidence, calls of the language model.

    byokg trace runs/mine WebQTest-12
    """
    from byokg.cli.trees import show_trace
    from byokg.evaluation.records import read_trace
    from byokg.graph.columnar.graph import ColumnarGraph

    record = read_trace(run, id)
    if as_json:
        print_json(record)
    else:
        show_trace(record, stdout(), None if graph is None else ColumnarGraph.open(graph))


@app.command("doctor")
def doctor(
    graph: Annotated[
        str | None, typer.Argument(metavar="GRAPH", help="A graph to check as well: a folder, or a server's address.")
    ] = None,
) -> None:
    """Check this machine, the installed extras, keys (set or not, never shown) and a graph, and say what to do."""
    from byokg.cli.doctor import diagnose, exit_code, show

    checks = diagnose(graph)
    show(checks, stdout())
    raise typer.Exit(exit_code(checks))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: words after `byokg`; None takes those the process was started with.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a name that the terminal cannot show must not end the program
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
    """Report an error in one line, or with its traceback where that is wanted; return the exit code."""
    from byokg.open import masked

    if _debugging():
        print(masked(traceback.format_exc()), end="", file=sys.stderr)
    usage = getattr(error, "format_message", None)  # click's errors, which come from click or typer by version
    if type(error).__name__ == "NoArgsIsHelpError":
        print(usage() if callable(usage) else "", end="")  # empty where the help was printed already
        return WRONG
    if callable(usage):
        print(f"error: {masked(_one_line(usage()))}; see: byokg --help", file=sys.stderr)
        return WRONG
    if isinstance(error, RunIncomplete):
        print(f"incomplete: {masked(_one_line(str(error)))}", file=sys.stderr)
        return INCOMPLETE
    if isinstance(error, ByokgError | OSError):
        print(f"error: {type(error).__name__}: {masked(_one_line(str(error)))}", file=sys.stderr)
        return WRONG
    text = f"error: {type(error).__name__}: {masked(_one_line(str(error)))}"
    print(f"{text} (this is a bug in byokg; {DEBUG}=1 shows where)", file=sys.stderr)
    return BUG


def _one_line(text: str) -> str:
    return " ".join(text.split("\n")).strip().rstrip(".")


def _debugging() -> bool:
    return os.environ.get(DEBUG, "") not in ("", "0")


def _settings_only(words: Sequence[str], question: str) -> Sequence[str]:
    """Refuse a question that was typed without quotes."""
    if words and "=" not in words[0]:
        raise ConfigError(
            f'{words[0]!r} is no setting; put the whole question in quotes: byokg ask "{question} {words[0]} …"'
        )
    return words


def _no_such_entity(error: EntityNotFound, linker: EntityLinker) -> str:
    """Say which nodes may have been meant where a name was given for an id."""
    from byokg.types import Mention

    found = linker.candidates(Mention(error.entity))
    near = "; nodes with such a name: " + ", ".join(f"{entity.id} ({entity.name})" for entity in found)
    return f"--entity {error.entity}: no node has this id{near if found else ''}"


if __name__ == "__main__":
    sys.exit(main())
