"""Your own data set: a folder with `questions.jsonl`, and a graph in it or elsewhere.

One JSON object per line, UTF-8. Fields (others are ignored):

- `id`, `question`: text; ids are unique within the file. An `id` may be a number.
- `answers`: list of names, or of numbers (a count, a year), at least one. A question without gold answers
  could neither be scored nor left out of the denominator unseen, so it is refused.
- `answer_ids`, `topic_entities`, `topic_ids`: lists; may be absent or empty. The ids need not stand beside
  the names one by one. Where a question has no `topic_ids`, its `topic_entities` stand for them.
- `split`, `type`: text. `hops`: whole number, 0 or more.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from byokg.errors import ConfigError, DatasetError, EntityNotFound, ImportFailed
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.text import SUFFIXES, TextFile, locate, read_text
from byokg.graph.importers import source_files
from byokg.graph.store import GraphStore
from byokg.types import EntityId

_ASKED_AT_MOST = 200


class Folder:
    """Questions of one split (or all) from a folder of the shape above.

    Args:
        root: folder that holds the question file.
        split: keep only questions whose `split` is this; empty keeps all.
        graph: where the graph's source lies, when it does not lie in `root` under a name that
            `byokg.graph.importers` knows (`graph.tsv`, `graph.jsonl`, `nodes.csv` with `edges.csv`, …).
        ids: which of the two the graph uses as node ids. With "ids", `topic_ids` and `answer_ids` are taken
            from the fields of that name. With "names", they are the names in `topic_entities` and `answers`:
            for a graph that is keyed by name while the questions carry ids of another graph.
            `graph_keys` finds out which of the two a given store needs.
        questions: name of the question file in `root`, without `.xz` or `.gz`.
        name: of the set, for tables; the folder's own name when empty.
    """

    def __init__(
        self,
        root: str | Path,
        split: str = "",
        graph: str | Path | None = None,
        ids: Literal["ids", "names"] = "ids",
        questions: str = "questions.jsonl",
        name: str = "",
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
        read = []
        for number, line in self._file.lines:
            example = _example(self._file.path, number, line)
            if example.id in lines:
                reason = f"id {example.id!r} is already used in line {lines[example.id]}; ids must be unique"
                raise DatasetError(self._file.path, number, reason)
            lines[example.id] = number
            read.append(by_name(example) if self.ids == "names" else example)
        if not read:
            raise DatasetError(self._file.path, None, "holds no question")
        kept = tuple(example for example in read if example.split == self.split or not self.split)
        if not kept:
            counts = Counter(example.split or "no split" for example in read)
            held = ", ".join(f"{split} ({count})" for split, count in sorted(counts.items()))
            raise DatasetError(self._file.path, None, f"has no question in split {self.split!r}; it holds {held}")
        return kept

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
        path = locate(self.root, self.questions)
        if path is None:
            suffixes = ", ".join(filter(None, SUFFIXES))
            reason = f"holds no {self.questions} (nor {suffixes}); point dataset.root at the folder that does"
            raise DatasetError(self.root, None, reason)
        return read_text(path)


def by_name(example: Example) -> Example:
    """Return the example for a graph whose node ids are names."""
    return replace(
        example,
        topic_ids=tuple(map(EntityId, example.topic_entities)),
        answer_ids=tuple(map(EntityId, example.answers)),
    )


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


def _holds(store: GraphStore, ids: tuple[EntityId, ...]) -> bool:
    try:
        store.numbers(ids)
    except EntityNotFound:
        return False
    return True


def _example(path: Path, number: int, line: str) -> Example:
    """Check one line and turn it into an example; `topic_ids` fall back to `topic_entities`."""
    try:
        record = json.loads(line)
    except ValueError as error:
        raise DatasetError(path, number, f"is not JSON ({error})") from error
    if not isinstance(record, dict):
        raise DatasetError(path, number, "is not a JSON object with fields such as id, question, answers")

    def text(field: str, required: bool = False) -> str:
        value = record.get(field)
        if value is None and not required:
            return ""
        if isinstance(value, int) and not isinstance(value, bool) and field == "id":
            return str(value)
        if not isinstance(value, str) or (required and not value.strip()):
            raise DatasetError(path, number, f"field {field!r} should be text, not {value!r}")
        return value

    def texts(field: str) -> tuple[str, ...]:
        values = record.get(field)
        if values is None:
            return ()
        if not isinstance(values, list):
            raise DatasetError(path, number, f"field {field!r} should be a list, not {values!r}")
        for value in values:
            if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
                raise DatasetError(path, number, f"field {field!r} should list texts or numbers, not {value!r}")
        return tuple(map(str, values))

    answers = texts("answers")
    if not answers:
        raise DatasetError(path, number, "has no 'answers', so it cannot be scored; add them or remove the question")
    hops = record.get("hops")
    if hops is not None and (isinstance(hops, bool) or not isinstance(hops, int) or hops < 0):
        raise DatasetError(path, number, f"field 'hops' should be a whole number, 0 or more, not {hops!r}")
    topic_entities = texts("topic_entities")
    return Example(
        id=text("id", required=True),
        question=text("question", required=True),
        answers=answers,
        answer_ids=tuple(map(EntityId, texts("answer_ids"))),
        topic_entities=topic_entities,
        topic_ids=tuple(map(EntityId, texts("topic_ids") or topic_entities)),
        hops=hops,
        split=text("split"),
        type=text("type"),
    )
