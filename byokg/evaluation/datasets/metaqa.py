"""MetaQA in its official layout: 1-, 2- and 3-hop questions over one graph of films.

Source: Zhang et al., "Variational Reasoning for Question Answering with Knowledge Graph" (arXiv:1709.04071).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from byokg.errors import ConfigError, DatasetError
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.text import TextFile, locate, read_text
from byokg.types import EntityId

_BRACKETED = re.compile(r"([^\[\]]*)\[([^\[\]]+)\]([^\[\]]*)")
_SPLITS = ("train", "dev", "test")


class MetaQA:
    """The questions of one hop count and split.

    `root` holds `kb.txt` and `{1,2,3}-hop/qa_{train,dev,test}.txt` (or `{1,2,3}-hop/vanilla/…`, as first
    published), each plain, `.xz` or `.gz`. A line is a question with its topic in square brackets, a tab,
    and the answers separated by `|`.

    An example's id is `metaqa-2-test-00017`: hop count, split, and the line number counted from 1.
    The brackets are dropped from its text. Names are ids in this graph, so the topic's id is its name.
    """

    def __init__(self, root: str | Path, hops: int, split: str = "test") -> None:
        """Name the part wanted; files are read when first asked for.

        Raises:
            ConfigError: `hops` is not 1, 2 or 3, or `split` is not train, dev or test.
        """
        if hops not in (1, 2, 3):
            raise ConfigError(f"MetaQA has questions of 1, 2 or 3 hops, not dataset.hops={hops!r}")
        if split not in _SPLITS:
            raise ConfigError(f"MetaQA has the splits train, dev and test, not dataset.split={split!r}")
        self.root = Path(root)
        self.hops = hops
        self.split = split

    @property
    def name(self) -> str:
        """Return for instance `metaqa 2-hop test`."""
        return f"metaqa {self.hops}-hop {self.split}"

    @property
    def checksum(self) -> str:
        """Return the sha256 hex digest of the question file's content (decompressed)."""
        return self._file.checksum

    def examples(self) -> tuple[Example, ...]:
        """Return all questions in file order.

        Raises:
            DatasetError: the question file is missing or a line is malformed.
        """
        return tuple(self._example(number, line) for number, line in self._file.lines)

    def left_out(self) -> Mapping[str, int]:
        """Return nothing: every question has answers."""
        return {}

    def graph_source(self) -> Path:
        """Return the knowledge base file.

        Raises:
            DatasetError: there is none.
        """
        path = locate(self.root, "kb.txt")
        if path is None:
            raise DatasetError(self.root, None, "holds no kb.txt (nor .xz, .gz); point dataset.root at MetaQA's folder")
        return path

    @cached_property
    def _file(self) -> TextFile:
        folder = self.root / f"{self.hops}-hop"
        name = f"qa_{self.split}.txt"
        path = locate(folder, name, f"vanilla/{name}")
        if path is None:
            reason = f"holds no {name} (nor .xz, .gz, nor vanilla/{name}); point dataset.root at MetaQA's folder"
            raise DatasetError(folder, None, reason)
        return read_text(path)

    def _example(self, number: int, line: str) -> Example:
        question, *fields = line.split("\t")
        bracketed = _BRACKETED.fullmatch(question)
        if bracketed is None:
            raise DatasetError(self._file.path, number, f"{question!r} does not have exactly one [topic] in brackets")
        if len(fields) != 1:
            raise DatasetError(self._file.path, number, f"has {len(fields)} tabs; expected QUESTION<tab>ANSWER|ANSWER…")
        answers = tuple(fields[0].split("|"))
        if not all(answer.strip() for answer in answers):
            raise DatasetError(self._file.path, number, f"has an empty answer in {fields[0]!r}")
        topic = bracketed[2]
        return Example(
            id=f"metaqa-{self.hops}-{self.split}-{number:05d}",
            question="".join(bracketed.groups()),
            answers=answers,
            answer_ids=tuple(map(EntityId, answers)),
            topic_entities=(topic,),
            topic_ids=(EntityId(topic),),
            hops=self.hops,
            split=self.split,
        )
