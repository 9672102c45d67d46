"""Questions that each bring their own subgraph, in the layout of RoG's WebQSP and CWQ: JSON lines or Parquet.

A record has `id`, `question`, `answer`, `q_entity`, `a_entity` (lists of names) and `graph`, a list of
`[head, relation, tail]`. Names are ids. The subgraphs are held packed and unpacked one at a time.

Source: Luo et al., "Reasoning on Graphs" (arXiv:2310.01061v2), data sets `rmanluo/RoG-webqsp` and `rmanluo/RoG-cwq`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from byokg.errors import DatasetError, GraphError
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.question_set import Loaded, QuestionSet, scorable
from byokg.evaluation.datasets.record_file import Record, RecordFile, stream_lines, stream_parquet
from byokg.evaluation.datasets.text import locate
from byokg.graph.columnar import ColumnarGraph
from byokg.graph.objects import from_record
from byokg.types import EntityId

_FASTEST = 1


class Rog:
    """The questions of one split with their subgraphs; a `SubgraphDataset`.

    Args:
        root: folder that holds `SPLIT.jsonl` (or `.xz`, `.gz`), or `SPLIT-*.parquet`, there or in `data`.
        split: `train`, `validation`, `test`, or whatever the files are named after.
        graph: file or folder of one graph for all questions. Left out, it is the file of JSON lines itself: the union
            of all subgraphs in it, for runs without `graph.per_question`.
        questions: name of the file, where it is none of these.
        name: of the set, for tables; the folder's own name when empty.
    """

    def __init__(
        self,
        root: str | Path,
        split: str = "test",
        graph: str | Path | None = None,
        questions: str = "",
        name: str = "",
    ) -> None:
        """Name the part wanted; files are read when first asked for."""
        self.root = Path(root)
        self.split = split
        self.graph = None if graph is None else Path(graph)
        self._file = questions
        self._packed: dict[str, bytes] = {}
        self._set = QuestionSet(f"{name or self.root.resolve().name} {split}", self._read, self.graph_source)

    @property
    def name(self) -> str:
        """Return the set's name and split."""
        return self._set.name

    @property
    def checksum(self) -> str:
        """Return the sha256 hex digest of the question file's content (decompressed)."""
        return self._set.checksum

    def examples(self) -> tuple[Example, ...]:
        """Return the questions in file order. Raises `DatasetError`."""
        return self._set.examples()

    def left_out(self) -> Mapping[str, int]:
        """Return how many questions have no answer."""
        return self._set.left_out()

    def graph_source(self) -> Path:
        """Return one graph for all questions. Raises `DatasetError` where there is only Parquet."""
        if self.graph is not None:
            return self.graph
        path = self._paths[0]
        if path.suffix == ".parquet":
            reason = (
                "has a graph for each question only; ask with graph.per_question=true, or name one with graph.path="
            )
            raise DatasetError(path, None, reason)
        return path

    def subgraph(self, id: str) -> ColumnarGraph:
        """Return the graph of one question, held in memory; each call builds it anew.

        Raises:
            DatasetError: there is no such question, or its graph is malformed.
        """
        self._set.examples()
        if id not in self._packed:
            raise DatasetError(self._paths[0], None, f"holds no question {id!r}")
        try:
            return from_record({"id": id, "graph": json.loads(zlib.decompress(self._packed[id]))})
        except GraphError as error:
            raise DatasetError(self._paths[0], None, f"question {id!r}: {error}") from error

    @cached_property
    def _paths(self) -> list[Path]:
        names = [self._file] if self._file else [f"{self.split}.jsonl", f"data/{self.split}.jsonl"]
        path = locate(self.root, *names)
        if path is not None:
            return [path]
        for folder in (self.root, self.root / "data"):
            if found := sorted(folder.glob(self._file or f"{self.split}*.parquet")):
                return found
        wanted = self._file or f"{self.split}.jsonl (nor .xz, .gz) and no {self.split}*.parquet"
        raise DatasetError(self.root, None, f"holds no {wanted}; point dataset.root at the folder that does")

    def _read(self) -> Loaded:
        paths = self._paths
        checksum, records = stream_parquet(paths) if paths[0].suffix == ".parquet" else stream_lines(paths[0])
        return scorable(RecordFile(paths[0], checksum, ()), [self._example(record) for record in records])

    def _example(self, record: Record) -> Example:
        id = record.text("id")
        triples = json.dumps(list(record.several("graph")), ensure_ascii=False).encode("utf-8", "surrogatepass")
        self._packed[id] = zlib.compress(triples, _FASTEST)
        answers = _names(record, "answer")
        topics = _names(record, "q_entity")
        return Example(
            id=id,
            question=record.text("question"),
            answers=answers,
            answer_ids=tuple(map(EntityId, _names(record, "a_entity") or answers)),
            topic_entities=topics,
            topic_ids=tuple(map(EntityId, topics)),
            split=self.split,
        )


def _names(record: Record, field: str) -> tuple[str, ...]:
    values = record.several(field)
    if not all(isinstance(value, str) for value in values):
        raise record.wrong(f"field {field!r} should list names, not {list(values)!r}")
    return tuple(dict.fromkeys(value for value in values if value.strip()))
