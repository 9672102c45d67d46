"""Which questions a run asks: what the settings pick, require and draw, in this order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from byokg.cli.config import RunOptions
from byokg.errors import ConfigError
from byokg.graph.store import GraphStore, takes_queries
from byokg.index.names import NameIndex

if TYPE_CHECKING:
    from byokg.evaluation.datasets.base import Dataset, Example
    from byokg.evaluation.runner import Shard

_FILE = "@"

Graph: TypeAlias = "Callable[[Example], tuple[GraphStore, NameIndex]]"
"""Gives the graph that a question is asked of, and the names in it."""


def picked(dataset: Dataset, run: RunOptions, note: Callable[[str], None]) -> list[Example]:
    """Return the questions of the ids and types that the settings name, which takes no graph.

    Raises:
        ConfigError: there is no question of such an id or type.
        DatasetError: the data set cannot be read.
    """
    from byokg.evaluation.datasets.base import named

    examples = dataset.examples()
    for reason, count in dataset.left_out().items():
        note(f"{count:,} questions of {dataset.name} are left out: {reason}")
    return named(examples, _ids(run.ids), run.types)


def selected(dataset: Dataset, run: RunOptions, note: Callable[[str], None]) -> list[Example]:
    """Return the questions that the settings pick and draw without a graph. Raises what `picked` does."""
    from byokg.evaluation.datasets.base import drawn

    return drawn(picked(dataset, run, note), run.per_type, run.sample, run.limit, run.seed)


def narrowed(examples: Sequence[Example], run: RunOptions, graph: Graph, note: Callable[[str], None]) -> list[Example]:
    """Return the questions that fulfil what is required, and of these the ones that are drawn.

    Raises:
        ConfigError: nothing is left, or gold queries are to be executed on a graph that takes none.
    """
    from byokg.evaluation.datasets.audit import executed, with_answer
    from byokg.evaluation.datasets.base import drawn

    kept = list(examples)
    if "executable" in run.require and kept:
        store, _ = graph(kept[0])
        if not takes_queries(store):
            raise ConfigError(
                f"require=executable needs a graph that takes queries, and {store.name} takes none; add graph=arcadedb"
            )
        result = executed(kept, store)
        kept = list(result.examples)
        _tell_left_out("executable", len(examples), len(kept), result.left_out, note)
    if "answers_in_graph" in run.require:
        before = len(kept)
        kept = [example for example in kept if with_answer([example], *graph(example))]
        _tell_left_out("answers_in_graph", before, len(kept), {}, note)
    kept = drawn(kept, run.per_type, run.sample, run.limit, run.seed)
    if not kept:
        raise ConfigError("no question is left to ask; check ids, types and require")
    if len(kept) < len(examples):
        note(f"{len(kept):,} of {len(examples):,} questions are asked")
    return kept


def keyed(
    examples: Sequence[Example],
    store: GraphStore,
    names: Callable[[], NameIndex],
    note: Callable[[str], None],
) -> list[Example]:
    """Return the questions with the ids by which the graph holds their topics."""
    from byokg.evaluation.datasets.base import by_name
    from byokg.evaluation.datasets.folder import graph_keys, with_nodes_of_names

    if graph_keys(examples, store) == "names":
        note("the graph holds the questions' topics under their names, so these are the ids asked for")
        examples = [by_name(example) for example in examples]
    named = with_nodes_of_names(examples, store, names)
    if named != list(examples):
        note("the questions name their topics and give no ids, so the nodes of these names are their topics")
    return named


def part(examples: Sequence[Example], run: RunOptions) -> tuple[Shard | None, Sequence[Example]]:
    """Return the shard that the settings name, and its questions. Raises `ConfigError`."""
    from byokg.evaluation.runner import Shard

    if run.shard is None:
        return None, examples
    shard = Shard.parse(run.shard)
    return shard, shard.of(examples)


def _ids(words: Sequence[str]) -> list[str]:
    """Return ids, those of files in place of the files."""
    ids = []
    for word in words:
        if not word.startswith(_FILE):
            ids.append(word)
            continue
        try:
            lines = Path(word.removeprefix(_FILE)).expanduser().read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"ids={word} cannot be read ({error}); name a text file with one id a line") from error
        ids += [line.strip() for line in lines if line.strip()]
    return ids


def _tell_left_out(name: str, before: int, after: int, reasons: Mapping[str, int], note: Callable[[str], None]) -> None:
    shown = "".join(f"; {reason}: {count:,}" for reason, count in reasons.items())
    note(f"require={name} keeps {after:,} of {before:,} questions{shown}")
