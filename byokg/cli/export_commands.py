"""`byokg graph export` and `byokg graph coverage`: a graph for other tools, and its coverage of a data set."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from byokg.cli.options import ServerOptions, expand_records
from byokg.cli.terminal import AsJson, Place, Words, folder_given, note, print_json, stderr, stdout
from byokg.errors import ConfigError
from byokg.evaluation.tables import figures, labels, table

if TYPE_CHECKING:
    from byokg.evaluation.coverage import Share
    from byokg.evaluation.datasets.base import Dataset, Example
    from byokg.open import Opened

Out = Annotated[str, typer.Option(metavar="DIR", help="Folder to write; appears only when complete.")]


@expand_records
def export(
    *,
    place: Place,
    out: Out,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]…", help="The data set, for --format rog.")
    ] = None,
    layout: Annotated[
        str, typer.Option("--format", metavar="NAME", help="csv|neo4j-admin|neptune|ntriples|parquet|graphml|rog")
    ] = "csv",
    hops: Annotated[int, typer.Option(min=1, help="How far a question's subgraph reaches (rog).")] = 2,
    server: ServerOptions,
) -> None:
    """Write a graph as nodes.csv and edges.csv, which `byokg graph build` reads, or in another tool's format.

    byokg graph export DIR --format parquet --out FOLDER

    byokg graph export DIR --format rog --out FOLDER dataset=webqsp dataset.root=… --hops 2
    """
    from byokg.cli.terminal import copied
    from byokg.graph.export_formats import write_graph_as
    from byokg.open import use_graph

    if words and layout != "rog":
        raise ConfigError(f"{words[0]} is for --format rog, which writes the subgraphs of a data set's questions")
    with use_graph(place, **server.settings(place)) as store:
        folder = folder_given(out, "--out")
        if layout == "rog":
            from byokg.evaluation.datasets.freebase import write_subgraphs

            _, examples = _asked_of(store, words)
            counts = write_subgraphs(examples, store, folder, hops)
            files = ", ".join(f"{split}.jsonl ({count:,} questions)" for split, count in counts.items())
            print(f"exported {files} of {store.name} to {out}; read it with: dataset=rog dataset.root={out}")
            return
        with copied("exporting", store.node_count, store.edge_count, stderr()) as progress:
            write_graph_as(store, layout, folder, progress)
        print(f"exported {store.name} to {out}")


def _asked_of(store: Opened, words: list[str] | None) -> tuple[Dataset, list[Example]]:
    """Return a data set and its questions, their topics as ids of the graph."""
    from byokg.cli.config import read_settings
    from byokg.cli.questions import keyed, select
    from byokg.graph.name_indexes import name_index

    settings = read_settings(words or [])
    if "dataset" not in settings.components:
        raise ConfigError("no data set is named; add dataset=NAME dataset.root=DIR (byokg data list shows all)")
    dataset: Dataset = settings.build("dataset")
    examples = select(dataset, settings.run, note)
    return dataset, keyed(examples, store, lambda: name_index(store), note)


@expand_records
def coverage(
    *,
    place: Place,
    words: Words = None,
    server: ServerOptions,
    top: Annotated[int, typer.Option(min=0, help="Missing relations shown; --json has all.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show the share of a data set's gold topics, answers, triples and relations in a graph, by split.

    byokg graph coverage DIR dataset=webqsp dataset.root=DIR

    Exit code 4: something is missing, as for `byokg data audit`.
    """
    from byokg.cli.data_commands import FOUND
    from byokg.evaluation.coverage import coverage as look
    from byokg.graph.name_indexes import name_index
    from byokg.open import use_graph

    with use_graph(place, **server.settings(place)) as store:
        dataset, examples = _asked_of(store, words)
        result = look(examples, store, lambda: name_index(store))
        name = store.name
    if as_json:
        print_json({"graph": name, "dataset": dataset.name, "checksum": dataset.checksum, **asdict(result)})
    else:
        rows = [
            (split or "(all)", what, *_share(getattr(each, field)))
            for split, each in result.splits.items()
            for what, field in _COVERED.items()
        ]
        stdout().print(table([*labels("split", "what"), *figures("in graph", "of", "share")], rows))
        missing = list(result.missing_relations.items())
        if missing and top:
            shown = [(relation, f"{count:,}") for relation, count in missing[:top]]
            stdout().print(table([*labels("missing relation"), *figures("questions")], shown))
        if len(missing) > top:
            note(f"{len(missing):,} relations are missing; all of them: --json")
        if result.unread_queries:
            note(f"{result.unread_queries:,} gold queries cannot be parsed, so their relations are not looked for")
    if not result.full:
        raise typer.Exit(FOUND)


_COVERED = {
    "topics": "topics",
    "answers": "answers",
    "gold triples": "triples",
    "relations": "relations",
    "questions with all": "all",
}


def _share(share: Share) -> tuple[str, str, str]:
    if not share.total:
        return "", "0", "none given"
    percent = 100.0 if share.present == share.total else min(100 * share.present / share.total, 99.9)
    return f"{share.present:,}", f"{share.total:,}", f"{percent:.1f} %"
