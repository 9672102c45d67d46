"""Selection of a run's questions: by settings, requirements and draws, in this order; and their demonstrations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from byokg.cli.config import RunOptions, Settings
from byokg.errors import ConfigError, DatasetError
from byokg.graph.store import GraphStore
from byokg.index.names import NameIndex
from byokg.types import EntityId

if TYPE_CHECKING:
    from byokg.evaluation.datasets.base import Dataset, Example
    from byokg.evaluation.runner import Shard
    from byokg.linking.demonstrations import Demonstration

_FILE = "@"

Graph: TypeAlias = "Callable[[Example], tuple[GraphStore, NameIndex]]"
"""Returns the graph of a question, and the names in it."""


def pick(dataset: Dataset, run: RunOptions, note: Callable[[str], None]) -> list[Example]:
    """Return the questions of the ids and types that the settings name, which takes no graph.

    Raises:
        ConfigError: there is no question of such an id or type.
        DatasetError: the data set cannot be read.
    """
    from byokg.evaluation.datasets.base import select_examples

    examples = dataset.examples()
    for reason, count in dataset.left_out().items():
        note(f"{count:,} questions of {dataset.name} are left out: {reason}")
    return select_examples(examples, _ids(run.ids), run.types)


def select(dataset: Dataset, run: RunOptions, note: Callable[[str], None]) -> list[Example]:
    """Return the questions that the settings pick and draw without a graph. Raises as `pick` does."""
    from byokg.evaluation.datasets.base import sample_examples

    return sample_examples(pick(dataset, run, note), run.per_type, run.sample, run.limit, run.seed)


def narrow(examples: Sequence[Example], run: RunOptions, graph: Graph, note: Callable[[str], None]) -> list[Example]:
    """Return the questions that meet the requirements, and of these the drawn ones.

    Raises:
        ConfigError: nothing is left, or gold queries are to be executed on a graph without an engine for them.
    """
    from byokg.evaluation.datasets.audit import execute, with_answer
    from byokg.evaluation.datasets.base import sample_examples

    kept = list(examples)
    if "executable" in run.require and kept:
        store, _ = graph(kept[0])
        if not store.engines:
            raise ConfigError(
                f"require=executable needs a graph that takes queries, and {store.name} takes none; add graph=arcadedb"
            )
        result = execute(kept, store.engines[0])
        kept = list(result.examples)
        _tell_left_out("executable", len(examples), len(kept), result.left_out, note)
    unscored = [example for example in kept if not example.answers and not example.rows]
    if unscored and len(unscored) == len(kept):
        reason = "these questions have gold queries and no published answers; add require=executable with a graph"
        raise ConfigError(f"{reason} that takes queries (graph=arcadedb, graph=oxigraph or a server)")
    if unscored:
        kept = [example for example in kept if example.answers or example.rows]
        note(f"{len(unscored):,} questions are left out: no published answer")
    if "answers_in_graph" in run.require:
        before = len(kept)
        kept = [example for example in kept if with_answer([example], *graph(example))]
        _tell_left_out("answers_in_graph", before, len(kept), {}, note)
    kept = sample_examples(kept, run.per_type, run.sample, run.limit, run.seed)
    if not kept:
        raise ConfigError("no question is left to ask; check ids, types and require")
    if len(kept) < len(examples):
        note(f"{len(kept):,} of {len(examples):,} questions are asked")
    return kept


def keyed(
    examples: Sequence[Example], store: GraphStore, names: Callable[[], NameIndex], note: Callable[[str], None]
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


def topics_in(store: GraphStore) -> Callable[[Example], Sequence[EntityId]]:
    """Return a function from a question to its topic entities in the graph."""
    from byokg.evaluation.datasets.folder import holds

    return lambda example: [id for id in example.topic_ids if holds(store, [id])]


def gold_nodes(store: GraphStore, names: NameIndex) -> Callable[[Example], Sequence[EntityId]]:
    """Return a function from a question to its answer nodes: by id, and else by name."""
    from byokg.evaluation.datasets.folder import holds

    def gold(example: Example) -> Sequence[EntityId]:
        if example.answer_ids and any(holds(store, [id]) for id in example.answer_ids):
            return example.answer_ids
        nodes = [id for name in example.answers for id in store.ids(names.exact(name)) or [EntityId(name)]]
        return list(dict.fromkeys(nodes))

    return gold


def solved(settings: Settings, store: GraphStore, names: NameIndex, note: Callable[[str], None]) -> list[Demonstration]:
    """Return questions of the data set's training or development split with the path that finds their answers best.

    Up to 300 are drawn, and none of the split under evaluation.

    Raises:
        ConfigError: there is no data set, or none of its other splits has a question that a path answers.
    """
    from byokg.evaluation.datasets.base import sample_examples
    from byokg.linking.demonstrations import Demonstration
    from byokg.training.labels import LabelSettings, labels

    if "dataset" not in settings.components:
        raise ConfigError("pipeline.examples.source=dataset needs a data set; add dataset=NAME, or name a file")
    examples = _other_split(settings)
    examples = keyed(sample_examples(examples, None, _SOLVED, None, settings.run.seed), store, lambda: names, note)

    found = []
    for label in labels(store, examples, topics_in(store), gold_nodes(store, names), LabelSettings(min_f1=_FITS)):
        if label.best and len(label.best[0].legs) == 1:
            [leg], one = label.best[0].legs, label.example
            found.append(Demonstration.of(one.question, leg.anchor.id, label.best[0].metapath, one.topic_entities))
    if not found:
        raise ConfigError(f"pipeline.examples.source=dataset: no path answers one of {len(examples):,} questions")
    note(f"{len(found):,} of {len(examples):,} questions of another split are solved by a path, and may be shown")
    return found


_SOLVED, _FITS = 300, 0.8
"""Questions that are looked at, and how well the ends of a path fit the answers (F1) if it is shown."""


def _other_split(settings: Settings) -> list[Example]:
    """Return the questions of the split `train`, or `dev`: the first that exists and is not under evaluation."""
    own = settings.components["dataset"]
    for split in ("train", "dev") if "split" in own else ():
        if own.get("split") in (split, ""):
            continue
        other = replace(settings, components={**settings.components, "dataset": {**own, "split": split}})
        with suppress(DatasetError):  # it has no such split
            if examples := [example for example in other.build("dataset").examples() if example.split == split]:
                return examples
    raise ConfigError(
        "pipeline.examples.source=dataset shows questions of the split train or dev, and there is none beside those "
        "asked; ask dataset.split=test, or name a file of solved questions"
    )
