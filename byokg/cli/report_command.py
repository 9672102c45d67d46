"""`byokg report`: finished runs as one page that opens anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from byokg.errors import ConfigError, RunError

if TYPE_CHECKING:
    from byokg.evaluation.report.runs import Run
    from byokg.graph.places import Opened


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of finished runs over one data set.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page to write.")] = Path("report.html"),
    baseline: Annotated[
        Path | None, typer.Option(metavar="RUN", help="The run that others are compared with; the first unless given.")
    ] = None,
    graph: Annotated[
        str | None, typer.Option(metavar="GRAPH", help="The runs' graph, to show names where traces hold ids.")
    ] = None,
    replies: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Recorded replies, to show prompts and replies.")
    ] = None,
) -> None:
    """Write a report about runs as one HTML file that needs no network.

    byokg report runs/a runs/b --out report.html

    byokg report runs/mine --graph DIR --replies ~/.cache/byokg/replies.sqlite
    """
    from byokg.evaluation.report.page import build_page, write_page
    from byokg.evaluation.report.runs import asked_by, read_runs
    from byokg.graph.places import close
    from byokg.llm.replies import RecordedReplies

    first = _position(runs, baseline)
    read = read_runs(runs)
    examples = asked_by(read)
    with ExitStack() as opened:
        store = None if graph is None else _graph_of(read[0], graph)
        if store is not None:
            opened.callback(close, store)
        recorded = None if replies is None else opened.enter_context(RecordedReplies(replies, "replay"))
        page = build_page(read, examples, first, store, recorded)
    write_page(page, out)
    print(f"report of {len(examples):,} questions in {out} ({len(page) / 1e6:,.1f} MB)")


def _position(runs: Sequence[Path], baseline: Path | None) -> int:
    """Return which of the runs is the baseline."""
    if baseline is None:
        return 0
    places = [run.resolve() for run in runs]
    if baseline.resolve() not in places:
        raise ConfigError(f"--baseline {baseline} is none of the runs; name one of {', '.join(map(str, runs))}")
    return places.index(baseline.resolve())


def _graph_of(run: Run, place: str) -> Opened:
    """Open a graph, and refuse one that is not the run's."""
    from byokg.graph.places import close, identity, open_graph

    store = open_graph(place)
    recorded, found = str((run.config.get("graph") or {}).get("checksum")), identity(store)
    if recorded != found:
        close(store)
        raise RunError(
            f"{str(run.folder)!r} is a run over a graph with checksum {recorded[:12]}, that of --graph {place} is "
            f"{found[:12]}; name the graph of the run, or leave --graph out"
        )
    return store
