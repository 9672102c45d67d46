"""Questions with their gold answers, and what an evaluation setting lets a pipeline see of them.

Reads question files, plain or compressed, as numbered lines.

One question with its gold answers as a JSON object: a line of `questions.jsonl`.

Fields (others are ignored):

- `id`, `question`: text. An `id` may be a number.
- `answers`: list of names, or of numbers (a count, a year), at least one. A question without gold answers
  could neither be scored nor left out of the denominator unseen, so it is refused.
- `answer_ids`, `topic_entities`, `topic_ids`: lists; may be absent or empty. The ids need not stand beside
  the names one by one. Where a question has no `topic_ids`, its `topic_entities` stand for them.
- `split`, `type`, `answer_type`, `query`: text. `hops`: whole number, 0 or more.
- `aliases`, `parses`: lists of lists of texts. `support`: list of `[head, relation, tail]`.
- `rows`: list of lists of anything.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, cast, runtime_checkable

from byokg.errors import DatasetError
from byokg.graph.store import GraphStore
from byokg.types import Cell, EntityId, Question


@dataclass(frozen=True)
class Example:
    """One question with its gold answers and annotations.

    Gold answers stay here: a pipeline gets `asked(...)`, a `Question` without them.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    answer_ids: tuple[EntityId, ...] = ()
    topic_entities: tuple[str, ...] = ()
    topic_ids: tuple[EntityId, ...] = ()
    hops: int | None = None
    split: str = ""
    type: str = ""
    answer_type: str = ""
    """What kind of thing the answers are, where the set says so (CronQuestions: `entity` or `time`)."""
    aliases: tuple[tuple[str, ...], ...] = ()
    """Other names of each answer, parallel to `answers`; empty where the set lists none."""
    parses: tuple[tuple[str, ...], ...] = ()
    """Answer ids of each annotated reading of the question (WebQSP); empty where there is one reading only."""
    support: tuple[tuple[str, str, str], ...] = ()
    """Annotated triples that an answer rests on: head, relation, tail, as the set writes them."""
    query: str = ""
    """Annotated graph query whose result is the answer."""
    rows: tuple[tuple[Cell, ...], ...] = ()
    """Result of `query`: texts, numbers, truth values, None, and tuples and mappings of these."""

    def asked(
        self, entities: Literal["gold", "linked"] = "linked", hops: Literal["gold", "predicted"] = "predicted"
    ) -> Question:
        """Return what the pipeline may see: the text, plus only the annotations that are granted."""
        return Question(
            id=self.id,
            text=self.question,
            topic_ids=self.topic_ids if entities == "gold" else (),
            hops=self.hops if hops == "gold" else None,
        )


class Dataset(Protocol):
    """Named questions over one graph."""

    @property
    def name(self) -> str:
        """Name the set and the part of it, for tables (`metaqa 2-hop test`)."""

    @property
    def checksum(self) -> str:
        """Return the sha256 hex digest of the question file's content (decompressed)."""

    def examples(self) -> Sequence[Example]:
        """Return all examples of the chosen split, in file order. Raises `DatasetError`."""

    def left_out(self) -> Mapping[str, int]:
        """Return how many questions of the file are not among the examples though the split has them, by reason.

        A published set may hold questions without gold answers, which nobody can score.
        """

    def graph_source(self) -> Path:
        """Return the file or folder that `byokg graph build` would take for this set's graph."""


@runtime_checkable
class SubgraphDataset(Dataset, Protocol):
    """Questions that each bring a graph of their own."""

    def subgraph(self, id: str) -> GraphStore:
        """Return the graph of one question, held in memory. Raises `DatasetError` for an unknown id."""


SUFFIXES = ("", ".xz", ".gz")


@dataclass(frozen=True)
class TextFile:
    """A decompressed text file: its lines that are not blank, each with its number in the file."""

    path: Path
    checksum: str
    """sha256 hex digest of the decompressed bytes, the same whichever way the file is compressed."""
    lines: tuple[tuple[int, str], ...]
    """Line numbers, from 1, and contents without line ends."""


def locate(folder: Path, *names: str) -> Path | None:
    """Return the first of `names` that lies in `folder` plain, as `.xz` or as `.gz`; None when none does."""
    for name in names:
        for suffix in SUFFIXES:
            path = folder / (name + suffix)
            if path.is_file():
                return path
    return None


def found(folder: Path, *names: str) -> Path:
    """Return what `locate` does.

    Raises:
        DatasetError: the folder holds none of them.
    """
    path = locate(folder, *names)
    if path is None:
        suffixes = ", ".join(filter(None, SUFFIXES))
        wanted = " or ".join(names)
        raise DatasetError(
            folder, None, f"holds no {wanted} (nor {suffixes}); point dataset.root at the folder that does"
        )
    return path


def read_bytes(path: Path) -> bytes:
    """Read a whole file, decompressed.

    Raises:
        DatasetError: the file cannot be read or decompressed.
    """
    try:
        content = path.read_bytes()
        if path.suffix == ".xz":
            content = lzma.decompress(content)
        elif path.suffix == ".gz":
            content = gzip.decompress(content)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise DatasetError(path, None, f"cannot be read ({error}); check the file, or fetch it again") from error
    return content


def read_text(path: Path) -> TextFile:
    """Read a whole UTF-8 file; a byte order mark and carriage returns at line ends are dropped.

    Raises:
        DatasetError: the file cannot be read or decompressed, or a line is not UTF-8.
    """
    content = read_bytes(path)
    lines = []
    for number, raw in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        try:
            line = raw.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise DatasetError(path, number, f"is not UTF-8 ({error.reason}); convert the file to UTF-8") from error
        if line.strip():
            lines.append((number, line))
    return TextFile(path, hashlib.sha256(content).hexdigest(), tuple(lines))


_TRIPLE = 3


def from_line(path: Path, number: int, line: str) -> Example:
    """Check one line and turn it into an example; `topic_ids` fall back to `topic_entities`.

    Args:
        path: its file, for messages.
        number: its number in the file, from 1.
        line: JSON.

    Raises:
        DatasetError: the line is no such object, or lacks answers.
    """
    fields = Fields(path, number, line)
    answers = fields.texts("answers")
    if not answers:
        raise DatasetError(path, number, "has no 'answers', so it cannot be scored; add them or remove the question")
    topics = fields.texts("topic_entities")
    return Example(
        id=fields.text("id", required=True),
        question=fields.text("question", required=True),
        answers=answers,
        answer_ids=tuple(map(EntityId, fields.texts("answer_ids"))),
        topic_entities=topics,
        topic_ids=tuple(map(EntityId, fields.texts("topic_ids") or topics)),
        hops=fields.hops(),
        split=fields.text("split"),
        type=fields.text("type"),
        answer_type=fields.text("answer_type"),
        aliases=fields.lists("aliases"),
        parses=fields.lists("parses"),
        support=fields.triples("support"),
        query=fields.text("query"),
        rows=fields.rows("rows"),
    )


class Fields:
    """The fields of one line, checked as they are asked for. All methods raise `DatasetError`."""

    def __init__(self, path: Path, number: int, line: str) -> None:
        """Parse the line. Raises `DatasetError` where it is no JSON object."""
        self._path, self._number = path, number
        try:
            self._record = json.loads(line)
        except ValueError as error:
            raise DatasetError(path, number, f"is not JSON ({error})") from error
        if not isinstance(self._record, dict):
            raise self.wrong("is not a JSON object with fields such as id, question, answers")

    def wrong(self, reason: str) -> DatasetError:
        """Return the error that says what is wrong with this line."""
        return DatasetError(self._path, self._number, reason)

    def text(self, field: str, required: bool = False) -> str:
        """Return a text; empty where the field is absent and need not be there."""
        value = self._record.get(field)
        if value is None and not required:
            return ""
        if isinstance(value, int) and not isinstance(value, bool) and field == "id":
            return str(value)
        if not isinstance(value, str) or (required and not value.strip()):
            raise self.wrong(f"field {field!r} should be text, not {value!r}")
        return value

    def texts(self, field: str) -> tuple[str, ...]:
        """Return a list of texts or numbers as texts."""
        return self._texts(field, self._list(field))

    def lists(self, field: str) -> tuple[tuple[str, ...], ...]:
        """Return a list of lists of texts."""
        return tuple(self._texts(field, self._inner(field, each)) for each in self._list(field))

    def triples(self, field: str) -> tuple[tuple[str, str, str], ...]:
        """Return a list of triples."""
        found = []
        for each in self.lists(field):
            if len(each) != _TRIPLE:
                raise self.wrong(f"field {field!r} should list [head, relation, tail], not {list(each)!r}")
            found.append((each[0], each[1], each[2]))
        return tuple(found)

    def rows(self, field: str) -> tuple[tuple[Cell, ...], ...]:
        """Return rows of a query's result."""
        return tuple(tuple(map(as_cell, self._inner(field, each))) for each in self._list(field))

    def hops(self) -> int | None:
        """Return the number of hops."""
        hops = self._record.get("hops")
        if hops is not None and (isinstance(hops, bool) or not isinstance(hops, int) or hops < 0):
            raise self.wrong(f"field 'hops' should be a whole number, 0 or more, not {hops!r}")
        return hops

    def _list(self, field: str) -> list[Any]:
        values = self._record.get(field)
        return [] if values is None else self._inner(field, values)

    def _inner(self, field: str, values: object) -> list[Any]:
        if not isinstance(values, list):
            raise self.wrong(f"field {field!r} should be a list, not {values!r}")
        return values

    def _texts(self, field: str, values: list[Any]) -> tuple[str, ...]:
        for value in values:
            if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
                raise self.wrong(f"field {field!r} should list texts or numbers, not {value!r}")
        return tuple(map(str, values))


def as_cell(value: Any) -> Cell:
    """Return a value read from JSON as a cell of a result: lists become tuples."""
    if isinstance(value, list | tuple):
        return tuple(map(as_cell, value))
    if isinstance(value, dict):
        return {str(key): as_cell(each) for key, each in value.items()}
    return cast(Cell, value)
