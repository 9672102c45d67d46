"""Your own data set: a folder with `questions.jsonl`, and a graph in it or elsewhere.

One JSON object per line, UTF-8; `question_line` says which fields it may have. Ids are unique within the file.

Annotations may stand in a second file (`labels`), kept apart so that no system under test reads them by accident:
lines with an `id`, and `support_triples`, `hops` or `type`, which fill what the question itself leaves open.

The data set that ships with the package: countries, cities, rivers, mountains, laureates, governments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from byokg.errors import ConfigError, DatasetError, EntityNotFound, ImportFailed
from byokg.evaluation.datasets.base import Example, Fields, TextFile, found, from_line, read_text
from byokg.graph.importers.choose import source_files
from byokg.graph.store import GraphStore
from byokg.index.names import NameIndex
from byokg.types import EntityId

_ASKED_AT_MOST = 200


class Folder:
    """Questions of one split (or all) from a folder of the shape above.

    Args:
        root: folder that holds the question file.
        split: keep only questions whose `split` is this; empty keeps all.
        graph: where the graph's source lies, when it does not lie in `root` under a name that
            `byokg.graph.importers.choose` knows (`graph.tsv`, `graph.jsonl`, `nodes.csv` with `edges.csv`, …).
        ids: which of the two the graph uses as node ids. With "ids", `topic_ids` and `answer_ids` are taken
            from the fields of that name. With "names", they are the names in `topic_entities` and `answers`:
            for a graph that is keyed by name while the questions carry ids of another graph.
            `graph_keys` finds out which of the two a given store needs.
        questions: name of the question file in `root`, without `.xz` or `.gz`.
        name: of the set, for tables; the folder's own name when empty.
        labels: name of the file of annotations in `root`; empty where there is none.
    """

    def __init__(
        self,
        root: str | Path,
        split: str = "",
        graph: str | Path | None = None,
        ids: Literal["ids", "names"] = "ids",
        questions: str = "questions.jsonl",
        name: str = "",
        labels: str = "",
    ) -> None:
        """Name the part wanted; files are read when first asked for.

        Raises:
            ConfigError: `ids` is neither "ids" nor "names".
        """
        if ids not in ("ids", "names"):
            raise ConfigError(f"dataset.ids is 'ids' or 'names', not {ids!r}")
        self.root = Path(root)
        self.split = split
        self.graph = None if graph is None else Path(graph)
        self.ids = ids
        self.questions = questions
        self.labels = labels
        self._name = name

    @property
    def name(self) -> str:
        """Return the set's name and split, for instance `webqsp test`."""
        return f"{self._name or self.root.resolve().name} {self.split}".rstrip()

    @property
    def checksum(self) -> str:
        """Return the sha256 hex digest of the question file's content (decompressed)."""
        return self._file.checksum

    def examples(self) -> tuple[Example, ...]:
        """Return the split's questions in file order. Lines of other splits are checked, too.

        Raises:
            DatasetError: the question file is missing, a line is malformed, or no question is in the split.
        """
        lines: dict[str, int] = {}
        labels = self._labels()
        read = []
        for number, line in self._file.lines:
            example = from_line(self._file.path, number, line)
            if example.id in lines:
                reason = f"id {example.id!r} is already used in line {lines[example.id]}; ids must be unique"
                raise DatasetError(self._file.path, number, reason)
            lines[example.id] = number
            example = annotated(example, labels.get(example.id))
            read.append(by_name(example) if self.ids == "names" else example)
        if not read:
            raise DatasetError(self._file.path, None, "holds no question")
        kept = tuple(example for example in read if example.split == self.split or not self.split)
        if not kept:
            counts = Counter(example.split or "no split" for example in read)
            held = ", ".join(f"{split} ({count})" for split, count in sorted(counts.items()))
            raise DatasetError(self._file.path, None, f"has no question in split {self.split!r}; it holds {held}")
        return kept

    def left_out(self) -> Mapping[str, int]:
        """Return nothing: a question that cannot be scored is refused."""
        return {}

    def graph_source(self) -> Path:
        """Return what `byokg graph build` takes: the path given as `graph`, or else the folder itself.

        Raises:
            DatasetError: there is no graph, or there are several.
        """
        if self.graph is not None:
            if not self.graph.exists():
                raise DatasetError(self.graph, None, "is not there; dataset.graph names the graph's file or folder")
            return self.graph
        try:
            source_files(self.root)
        except ImportFailed as error:
            reason = f"{error.reason}; or name the graph with dataset.graph=PATH"
            raise DatasetError(error.file, error.line, reason) from error
        return self.root

    @cached_property
    def _file(self) -> TextFile:
        return read_text(found(self.root, self.questions))

    def _labels(self) -> dict[str, Fields]:
        if not self.labels:
            return {}
        file = read_text(found(self.root, self.labels))
        fields = (Fields(file.path, number, line) for number, line in file.lines)
        return {each.text("id", required=True): each for each in fields}


def annotated(example: Example, label: Fields | None) -> Example:
    """Return the example with what a line of annotations adds to it. Raises `DatasetError`."""
    if label is None:
        return example
    return replace(
        example,
        support=example.support or label.triples("support_triples"),
        hops=label.hops() if example.hops is None else example.hops,
        type=example.type or label.text("type"),
    )


def by_name(example: Example) -> Example:
    """Return the example for a graph whose node ids are names."""
    return replace(
        example,
        topic_ids=tuple(map(EntityId, example.topic_entities)),
        answer_ids=tuple(map(EntityId, example.answers)),
    )


def is_by_name(examples: Sequence[Example]) -> bool:
    """Tell whether all ids of gold answers, if there are any, are their names."""
    given = [example for example in examples if example.answer_ids]
    return bool(given) and all(example.answer_ids == example.answers for example in given)


def graph_keys(examples: Sequence[Example], store: GraphStore) -> Literal["ids", "names"]:
    """Find out whether a graph holds the questions' topics under their ids or under their names.

    Looks up the first 200 questions whose topic ids and names differ, and takes what is found more often;
    "ids" when it makes no difference. Give the outcome to `Folder(ids=…)`, or use `by_name`.
    """
    telling = [e for e in examples if e.topic_ids and e.topic_entities and e.topic_ids != e.topic_entities]
    found = {"ids": 0, "names": 0}
    for example in telling[:_ASKED_AT_MOST]:
        found["ids"] += _holds(store, example.topic_ids)
        found["names"] += _holds(store, by_name(example).topic_ids)
    return "names" if found["names"] > found["ids"] else "ids"


def with_nodes_of_names(
    examples: Sequence[Example], store: GraphStore, names: Callable[[], NameIndex]
) -> list[Example]:
    """Return the examples with the nodes that have the names of their topics, where a set gives names and no ids.

    Nothing changes where the graph holds any of the first 200 under what the set gives. Of namesakes all are topics; a
    name that no node has stays as it is, and so counts as not linked. `names` makes the index of the graph's names; it
    is called where there is something to look up.
    """
    named = [e for e in examples if e.topic_ids and e.topic_ids == e.topic_entities]
    if not named or any(_holds(store, e.topic_ids) for e in named[:_ASKED_AT_MOST]):
        return list(examples)
    index = names()
    meant = {
        example.id: tuple(id for name in example.topic_ids for id in store.ids(index.exact(name)) or [name])
        for example in named
    }
    return [replace(example, topic_ids=meant.get(example.id, example.topic_ids)) for example in examples]


def _holds(store: GraphStore, ids: tuple[EntityId, ...]) -> bool:
    try:
        store.numbers(ids)
    except EntityNotFound:
        return False
    return True


SHIPPED = Path(__file__).resolve().parents[2] / "data" / "atlas"
"""`nodes.csv`, `edges.csv` and `questions.jsonl`, inside the package."""


def atlas(split: str = "test") -> Folder:
    """Return the questions of one split (`dev`, `test`, or empty for both), with the graph beside them."""
    return Folder(SHIPPED, split=split, name="atlas")
