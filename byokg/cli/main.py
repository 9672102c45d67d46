"""The `byokg` command. Everything heavy is imported inside the command that needs it, so `--help` is instant."""

from __future__ import annotations

import io
import json
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from byokg.errors import ByokgError, ConfigError, EntityNotFound, GraphExists

if TYPE_CHECKING:
    from rich.console import Console

    from byokg.graph.columnar import ColumnarGraph
    from byokg.graph.query import Language
    from byokg.linking.entities import EntityLinker

DEBUG = "BYOKG_DEBUG"
"""Environment variable that asks for tracebacks and logs."""

INTERRUPTED = 1
WRONG = 2
BUG = 70
"""Exit codes: stopped by Ctrl-C; the settings, files or data are wrong; byokg itself is (EX_SOFTWARE)."""

_STOPPED = 130
"""What typer returns for Ctrl-C."""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Bring your own knowledge graph and questions; get answers with evidence and a score you can trust.",
)
graph_app = typer.Typer(no_args_is_help=True, help="Build a graph from files, and look at one.")
app.add_typer(graph_app, name="graph")

Words = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings; all of them: byokg eval --show")
]
Aliases = Annotated[
    list[str] | None,
    typer.Option(metavar="PROPERTY", help="A node property that holds further names; may be repeated."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        from byokg.evaluation.version import code_version

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

        logging.basicConfig(level=logging.INFO)


@graph_app.command("build")
def build(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="File or folder to import.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write; appears only when complete.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a graph that is there already.")] = False,
    cypher: Annotated[bool, typer.Option("--cypher", help="Build an openCypher engine into it (ArcadeDB).")] = False,
    sparql: Annotated[bool, typer.Option("--sparql", help="Build a SPARQL engine into it (Oxigraph).")] = False,
    aliases: Aliases = None,
) -> None:
    """Import a graph, save it, and index the names of its nodes.

    SRC is kb.txt (head|relation|tail), a .tsv or .csv file of triples, JSON lines, RDF, or a folder with one of these
    or with nodes.csv and edges.csv; each also as .gz, .xz or .zst.
    """
    import time

    from byokg.graph.importers import build_graph

    if cypher:  # what is missing is said before anything is built
        from byokg.graph.arcadedb import build_arcade, refuse_missing

        refuse_missing()
    if sparql:
        from byokg.graph.oxigraph import build_oxigraph
        from byokg.graph.oxigraph_engine import import_pyoxigraph
        from byokg.graph.places import OXIGRAPH

        import_pyoxigraph("the embedded RDF store")
    began = time.perf_counter()
    try:
        graph = build_graph(source, out, overwrite)
    except GraphExists as error:
        # The library's advice, in the words of this command.
        error.args = (str(error).replace("pass overwrite=True", "add --overwrite"),)
        raise
    seconds = time.perf_counter() - began
    counts = f"{graph.node_count:,} nodes, {graph.edge_count:,} edges, {len(graph.relations):,} relations"
    dropped = f", {graph.dropped_duplicates:,} repeated triples left out" if graph.dropped_duplicates else ""
    print(f"built {out}: {counts}{dropped}, in {seconds:.1f} s")
    _index_names(graph, aliases or [])
    if cypher:
        build_arcade(graph, out, overwrite)
        print(f"built its openCypher engine; try: byokg graph query {out} 'MATCH (n) RETURN n.name LIMIT 5'")
    if sparql:
        build_oxigraph(graph, out / OXIGRAPH, overwrite).close()
        print(f"built its SPARQL engine; try: byokg graph query {out} 'SELECT * {{ ?s ?p ?o }} LIMIT 5'")


@graph_app.command("names")
def names(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A built graph.")],
    aliases: Aliases = None,
) -> None:
    """Index the names of a built graph anew, to find nodes by what they are called.

    `byokg graph build` does so, too; this is for other aliases, or for a graph without the index.
    """
    from byokg.graph.columnar import ColumnarGraph

    _index_names(ColumnarGraph.open(folder), aliases or [])


def _index_names(graph: ColumnarGraph, aliases: Sequence[str]) -> None:
    import time

    from byokg.graph.name_index import build_names

    began = time.perf_counter()
    index = build_names(graph, aliases)
    print(f"indexed {len(index):,} different names, in {time.perf_counter() - began:.1f} s")


@graph_app.command("info")
def info(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A built graph.")],
    everything: Annotated[bool, typer.Option("--all", help="List every node type and relation.")] = False,
    as_json: AsJson = False,
) -> None:
    """Verify a graph's checksums, and show its counts, origin, node types and relations."""
    from byokg.cli.graph_summary import show, summary
    from byokg.graph.columnar import ColumnarGraph
    from byokg.graph.name_index import verify_names

    graph = ColumnarGraph.open(folder)
    graph.verify()
    names = verify_names(graph)
    if as_json:
        _print_json(summary(graph, names))
    else:
        show(graph, names, _stdout(), everything)


@graph_app.command("query")
def query(
    place: Annotated[str, typer.Argument(metavar="GRAPH", help="A built graph, or a server's address.")],
    text: Annotated[str, typer.Argument(metavar="QUERY", help="One reading query, in quotes.")],
    language: Annotated[str | None, typer.Option(metavar="cypher|sparql", help="When a folder holds both.")] = None,
    timeout: Annotated[float, typer.Option(min=0.001, metavar="SECONDS", help="Stop it after this long.")] = 10.0,
    max_rows: Annotated[int, typer.Option(min=1, help="Rows to return at most.")] = 1000,
    layout: Annotated[str, typer.Option("--format", metavar="table|json", help="How to print the rows.")] = "table",
) -> None:
    """Run one query that only reads, guarded, with a time limit and a row limit.

    GRAPH is a folder built with --cypher or --sparql, or neo4j://…, bolt://…, neptune-graph://ID, neptune-db://HOST,
    sparql+https://…; credentials come from the environment.
    """
    if language not in (None, "cypher", "sparql"):
        raise ConfigError(f"--language {language} is not known; use cypher or sparql")
    if layout not in ("table", "json"):
        raise ConfigError(f"--format {layout} is not known; use table or json")
    from byokg.cli.query_rows import as_json, show
    from byokg.graph.places import open_queryable
    from byokg.graph.query import Limits

    with open_queryable(place, cast("Language | None", language)) as store:
        rows = store.run(text, limits=Limits(timeout, max_rows))
    if layout == "json":
        _print_json(as_json(rows))
    else:
        show(rows, _stdout())


@graph_app.command("export")
def export(
    place: Annotated[str, typer.Argument(metavar="GRAPH", help="A built graph, or a server's address.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write; appears only when complete.")],
) -> None:
    """Write a graph as nodes.csv and edges.csv, which `byokg graph build` reads."""
    from byokg.graph.exporter import export_graph
    from byokg.graph.places import open_graph

    export_graph(open_graph(place), out)
    print(f"exported {place} to {out}")


@app.command("eval")
def evaluate(
    words: Words = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Print the settings as YAML and exit.")] = False,
) -> None:
    """Run a pipeline over a data set and score it.

    Settings are KEY=VALUE, for instance:

    byokg eval dataset=atlas

    byokg eval dataset=metaqa dataset.root=DIR dataset.hops=2 limit=500 workers=2

    byokg eval dataset=folder dataset.root=DIR linking.entities=gold out=runs/mine

    The same command continues a run that was interrupted, and shows the result of one that is finished.
    """
    from byokg.cli.config import read_settings, show_settings

    settings = read_settings(words or [])
    if show:
        print(show_settings(settings), end="")
        return
    from byokg.cli.evaluation import evaluate as run

    run(settings, _stdout(), _stderr(), quiet)


@app.command("ask")
def ask(
    question: Annotated[str, typer.Argument(help="The question, in quotes.")],
    words: Words = None,
    entity: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Node the question is about; may be repeated.")
    ] = None,
    hops: Annotated[int | None, typer.Option(min=1, help="How many edges away the answer is, if known.")] = None,
    as_json: AsJson = False,
) -> None:
    """Answer one question and show the evidence.

    byokg ask "Which river flows through Paris?" dataset=atlas

    byokg ask "Who directed Heat?" graph.path=DIR
    """
    from byokg.cli.answer_tree import as_json as answer_json
    from byokg.cli.answer_tree import show
    from byokg.cli.config import read_settings
    from byokg.cli.evaluation import set_up
    from byokg.linking.entities import EntityLinker
    from byokg.types import EntityId, Question

    if not question.strip():
        raise ConfigError("the question is empty")
    settings = read_settings(_settings_only(words or [], question))
    dataset = settings.build("dataset") if settings.options["dataset"] else None
    bench = set_up(settings, dataset, lambda line: _stderr().print(line, style="dim", markup=False, soft_wrap=True))
    topics = tuple(EntityId(id) for id in entity or ())
    try:
        bench.store.numbers(topics)
    except EntityNotFound as error:
        raise ConfigError(_no_such_entity(error, EntityLinker(bench.store))) from error
    answer = bench.pipeline.run(Question("ask", question, topics, hops))
    if as_json:
        _print_json(answer_json(question, answer))
    else:
        show(answer, bench.store, _stdout())


@app.command("doctor")
def doctor(
    graph: Annotated[Path | None, typer.Argument(metavar="GRAPH", help="A built graph to check as well.")] = None,
) -> None:
    """Check this machine, the installed extras, keys (set or not, never shown) and a graph, and say what to do."""
    from byokg.cli.doctor import diagnose, exit_code, show

    checks = diagnose(graph)
    show(checks, _stdout())
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
    if _debugging():
        traceback.print_exc()
    usage = getattr(error, "format_message", None)  # click's errors, which come from click or typer by version
    if type(error).__name__ == "NoArgsIsHelpError":
        print(usage() if callable(usage) else "", end="")  # empty where the help was printed already
        return WRONG
    if callable(usage):
        print(f"error: {_one_line(usage())}; see: byokg --help", file=sys.stderr)
        return WRONG
    if isinstance(error, ByokgError | OSError):
        print(f"error: {type(error).__name__}: {_one_line(str(error))}", file=sys.stderr)
        return WRONG
    text = f"error: {type(error).__name__}: {_one_line(str(error))}"
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


def _print_json(value: object) -> None:
    utf8 = sys.stdout.encoding.lower().replace("-", "").startswith("utf")
    print(json.dumps(value, ensure_ascii=not utf8, indent=2))


def _stdout() -> Console:
    from rich.console import Console

    return Console(highlight=False)


def _stderr() -> Console:
    from rich.console import Console

    return Console(stderr=True, highlight=False)


if __name__ == "__main__":
    sys.exit(main())
