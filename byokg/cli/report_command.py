"""`byokg report`: finished runs as one page that can be opened anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from byokg.cli.terminal import note
from byokg.errors import ConfigError, RunError


def report(
    words: Annotated[
        list[str], typer.Argument(metavar="RUN… [KEY=VALUE]…", help="Run folders, and where the data set lies.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page to write.")] = Path("report.html"),
    baseline: Annotated[
        Path | None, typer.Option(metavar="RUN", help="The run that others are compared with; the first unless given.")
    ] = None,
    replies: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Recorded replies, to show prompts and replies.")
    ] = None,
    graph: Annotated[
        bool, typer.Option("--graph/--no-graph", help="Look up the names of nodes in the graph.")
    ] = True,
) -> None:
    """Write a report about runs as one HTML file that needs no network.

    byokg report runs/a runs/b --out report.html

    byokg report runs/mine dataset.root=DIR --replies ~/.cache/byokg/replies.sqlite

    The data set is the one of the runs; settings say where it lies (`dataset.root=DIR`, `graph.path=DIR`).
    """
    from byokg.cli.config import read_settings
    from byokg.cli.evaluation import open_store
    from byokg.evaluation.report.page import build_page, write_page
    from byokg.evaluation.report.runs import asked_examples, read_runs
    from byokg.graph.places import close, identity
    from byokg.llm.replies import RecordedReplies

    folders = [Path(word) for word in words if _is_folder(word)]
    if not folders:
        raise ConfigError("no run is named; give the folders that evaluations wrote: byokg report runs/NAME")
    runs = read_runs(folders)
    settings = read_settings([*_dataset_words(runs[0].config), *(word for word in words if not _is_folder(word))])
    dataset = settings.build("dataset")
    _check("data set", str(runs[0].folder), _checksum(runs[0].config, "dataset"), dataset.checksum)
    examples = asked_examples(dataset.examples(), runs)
    store = open_store(settings, dataset, note) if graph else None
    recorded = None if replies is None else RecordedReplies(replies, "replay")
    try:
        if store is not None:
            _check("graph", str(runs[0].folder), _checksum(runs[0].config, "graph"), identity(store))
        page = build_page(runs, examples, _position(folders, baseline), store, recorded)
    finally:
        if store is not None:
            close(store)
        if recorded is not None:
            recorded.close()
    write_page(page, out)
    print(f"report of {len(examples):,} questions in {out} ({len(page) / 1e6:,.1f} MB)")


def _is_folder(word: str) -> bool:
    """Tell a run from a setting; the jobs of a sweep have `=` in their folders' names."""
    return "=" not in word or Path(word).is_dir()


def _dataset_words(config: Mapping[str, Any]) -> list[str]:
    """Return the settings that name a run's data set, as the run recorded them: all but where it lies."""
    made = config.get("config") or {}
    option = (made.get("options") or {}).get("dataset")
    if option is None:
        return []
    kept = {
        key: value
        for key, value in (made.get("dataset") or {}).items()
        if key != "_target_" and isinstance(value, str | int | float | bool)
    }
    return [f"dataset={option}", *(f"dataset.{key}={value}" for key, value in kept.items())]


def _checksum(config: Mapping[str, Any], part: str) -> str:
    return str((config.get(part) or {}).get("checksum", ""))


def _check(what: str, run: str, recorded: str, found: str) -> None:
    """Refuse a data set or a graph that is not the one of the run."""
    if recorded != found:
        hint = "; or leave names of nodes out with --no-graph" if what == "graph" else ""
        raise RunError(
            f"{run!r} is a run over a {what} with checksum {recorded[:12]}, the one here has {found[:12]}; "
            f"name the {what} as it was named for the run{hint}"
        )


def _position(folders: Sequence[Path], baseline: Path | None) -> int:
    """Return which of the runs is the baseline."""
    if baseline is None:
        return 0
    places = [folder.resolve() for folder in folders]
    if baseline.resolve() not in places:
        raise ConfigError(f"--baseline {baseline} is none of the runs; name one of {', '.join(map(str, folders))}")
    return places.index(baseline.resolve())
