"""Questions with gold answers, readers of their files, and the annotations granted to a pipeline.

`Dataset` is the protocol of the evaluation, `QuestionSet` the implementation behind all data sets of this package.
Question files are read as records: text lines, JSON lines, JSON, CSV and Parquet, each plain or compressed.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import io
import json
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, cast, runtime_checkable

from byokg.errors import ConfigError, DatasetError, GraphError, one_of
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.store import GraphStore
from byokg.types import Cell, EntityId, Question, asked_first

SUFFIXES = ("", ".xz", ".gz")

_FASTEST = 1

TABLES = {".csv": ",", ".tsv": "\t"}
"""Endings of tables and the separators that they promise."""

CLUSTER_FIELDS = ("cluster", "paraphrase_of", "parent", "template")
"""Fields of question files that name a cluster of related questions, the narrowest first."""

_CWQ_ID = re.compile(r"(WebQ(?:Trn|Test)-\d+)_[0-9a-f]+")

_ROWS_AT_ONCE = 64
"""Rows of a Parquet file that are Python objects at the same time; each may hold thousands of triples."""


@dataclass(frozen=True)
class TextLines:
    """A decompressed text file: its lines that are not blank, each with its number in the file."""

    path: Path
    checksum: str
    """sha256 hex digest of the decompressed bytes, the same whichever way the file is compressed."""
    lines: tuple[tuple[int, str], ...]
    """Line numbers, from 1, and contents without line ends."""


@dataclass(frozen=True)
class Record:
    """One question as it stands in its file."""

    path: Path
    place: int
    """Its line, or its position among the records, from 1."""
    fields: Mapping[str, Any]

    def wrong(self, reason: str) -> DatasetError:
        """Return the error for this record, with its place."""
        return DatasetError(self.path, self.place, reason)

    def text(self, *names: str) -> str:
        """Return the first of these fields that is there, as text.

        Raises:
            DatasetError: none of them holds text or a whole number.
        """
        for name in names:
            value = self.fields.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                return str(value)
            if isinstance(value, str) and value.strip():
                return value
        raise self.wrong(f"has no text in {' or '.join(names)}; it holds {', '.join(self.fields)}")

    def label(self, *names: str) -> str:
        """Return the first of these fields that holds anything, as text; empty if none does."""
        return next((str(self.fields[name]) for name in names if self.fields.get(name)), "")

    def count(self, name: str) -> int | None:
        """Return a whole number; None if the field is absent. Raises `DatasetError` if it is something else."""
        value = self.fields.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise self.wrong(f"field {name!r} should be a whole number, 0 or more, not {value!r}")
        return value

    def cluster(self, id: str) -> str:
        """Return the cluster of this question; empty if it stands alone.

        The first non-empty of `CLUSTER_FIELDS`, or the WebQuestionsSP question in the id of a ComplexWebQuestions
        question: several of these derive from one.
        """
        made = _CWQ_ID.fullmatch(id)
        return self.label(*CLUSTER_FIELDS) or (made[1] if made else "")

    def several(self, name: str) -> Sequence[Any]:
        """Return a list; empty if the field is absent. Raises `DatasetError` if it is something else."""
        value = self.fields.get(name)
        return () if value is None else self.as_list(name, value)

    def as_list(self, name: str, value: object) -> Sequence[Any]:
        """Return a value of a field as a list, sets in order. Raises `DatasetError` if it is something else."""
        if isinstance(value, set | frozenset):
            return sorted(value, key=lambda each: (str(type(each)), each))
        if not isinstance(value, list | tuple):
            raise self.wrong(f"field {name!r} should be a list, not {value!r}")
        return value

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Return a mapping; empty if the field is absent. Raises `DatasetError` if it is something else."""
        value = self.fields.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.wrong(f"field {name!r} should be a mapping, not {value!r}")
        return value


@dataclass(frozen=True)
class QuestionFile:
    """A question file's records and the digest of its content."""

    path: Path
    checksum: str
    """sha256 hex digest of the decompressed bytes; of several Parquet files, of all of them in order."""
    records: Iterable[Record]
    """Read while they are iterated, once."""


def locate(folder: Path, *names: str) -> Path | None:
    """Return the first of `names` that lies in `folder` plain, as `.xz` or as `.gz`; None if none does."""
    paths = (folder / (name + suffix) for name in names for suffix in SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


def require_file(folder: Path, *names: str) -> Path:
    """Return what `locate` does.

    Raises:
        DatasetError: the folder holds none of them.
    """
    path = locate(folder, *names)
    if path is None:
        suffixes = ", ".join(filter(None, SUFFIXES))
        reason = f"holds no {' or '.join(names)} (nor {suffixes}); point dataset.root at the folder that does"
        raise DatasetError(folder, None, reason)
    return path


def read_bytes(path: Path) -> bytes:
    """Read a whole file, decompressed.

    Raises:
        DatasetError: the file cannot be read or decompressed.
    """
    unpack: Mapping[str, Callable[[bytes], bytes]] = {".xz": lzma.decompress, ".gz": gzip.decompress}
    try:
        return unpack.get(path.suffix, bytes)(path.read_bytes())
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise DatasetError(path, None, f"cannot be read ({error}); check the file, or fetch it again") from error


def read_text(path: Path) -> TextLines:
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
    return TextLines(path, hashlib.sha256(content).hexdigest(), tuple(lines))


def read_plain_lines(path: Path) -> QuestionFile:
    """Read a file of text as one record a line, with the field `line`. Raises `DatasetError`."""
    text = read_text(path)
    return QuestionFile(path, text.checksum, (Record(path, number, {"line": line}) for number, line in text.lines))


def read_json_lines(path: Path) -> QuestionFile:
    """Read a file of JSON lines. Raises `DatasetError`."""
    text = read_text(path)
    return QuestionFile(path, text.checksum, (_json_record(path, number, line) for number, line in text.lines))


def read_records(path: Path) -> QuestionFile:
    """Read a whole file of JSON, JSON lines (`.jsonl`), CSV or `.tsv`.

    A table has a header; fields are separated by commas, semicolons, tabs or bars, and its columns have their names in
    lower case with underscores, too (`Question`: `question`). A JSON file is a list of records, or an object that holds
    such a list in one of its fields (`Questions`).

    Raises:
        DatasetError: the file cannot be read, or is not of that kind.
    """
    kind = path.with_suffix("").suffix if path.suffix in SUFFIXES[1:] else path.suffix
    if kind == ".jsonl":
        return read_json_lines(path)
    content = read_bytes(path)
    checksum = hashlib.sha256(content).hexdigest()
    try:
        decoded = content.decode("utf-16" if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig")
        if kind in TABLES:
            return QuestionFile(path, checksum, _table_records(path, decoded, TABLES[kind]))
        held = json.loads(decoded)
    except (ValueError, csv.Error) as error:
        reason = f"is not {kind.removeprefix('.').upper() or 'JSON'} in UTF-8 ({error})"
        raise DatasetError(path, None, reason) from error
    if isinstance(held, dict):
        held = next((value for value in held.values() if isinstance(value, list)), None)
    return QuestionFile(
        path, checksum, number_records(path, held, "is not a JSON list of objects, nor an object that holds one")
    )


def _table_records(path: Path, text: str, promised: str) -> list[Record]:
    """Return the rows of a table as records; the separator is one that gives all of them as many fields as the header.

    Raises:
        DatasetError: rows have other numbers of fields than the header, or two columns have one name.
        csv.Error: a quote is never closed or misplaced.
    """
    tables = [_rows(text, mark) for mark in (promised, ",", ";", "\t", "|")]
    fits = (rows for rows in tables if rows and {len(row) for _, row in rows} == {max(len(rows[0][1]), 2)})
    rows = next(fits, tables[0])
    if not rows:
        return []
    (line, header), *below = rows
    names = [name.strip() for name in header]
    for name in names:
        if names.count(name) > 1:
            raise DatasetError(path, line, f"has {names.count(name)} columns {name!r}; rename one")
    plain = {re.sub(r"\W+", "_", name.lower()): at for at, name in enumerate(names)}
    records = []
    for line, row in below:
        if len(row) != len(names):
            reason = f"has {len(row)} fields under a header of {len(names)}; put values that hold a separator in quotes"
            raise DatasetError(path, line, reason)
        fields = dict(zip(names, row, strict=True))
        records.append(Record(path, line, fields | {name: row[at] for name, at in plain.items() if name not in fields}))
    return records


def _rows(text: str, separator: str) -> list[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    return [(reader.line_num, row) for row in reader if any(row)]


def number_records(path: Path, held: object, otherwise: str) -> list[Record]:
    """Return a list of mappings as records. Raises `DatasetError` with the reason `otherwise` if it is none."""
    if not isinstance(held, list) or not all(isinstance(each, dict) for each in held):
        raise DatasetError(path, None, otherwise)
    return [Record(path, place, each) for place, each in enumerate(held, start=1)]


def read_parquet(paths: Sequence[Path]) -> QuestionFile:
    """Read the rows of Parquet files, one after the other. Raises `DatasetError`."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    digest = hashlib.sha256()
    for path in paths:
        digest.update(read_bytes(path))

    def rows() -> Iterator[Record]:
        for path in paths:
            try:
                batches = parquet.ParquetFile(path).iter_batches(_ROWS_AT_ONCE)
                each = (row for batch in batches for row in batch.to_pylist())
                yield from (Record(path, place, row) for place, row in enumerate(each, start=1))
            except (pa.ArrowException, OSError) as error:
                raise DatasetError(path, None, f"cannot be read as Parquet ({error}); fetch it again") from error

    return QuestionFile(paths[0], digest.hexdigest(), rows())


def _json_record(path: Path, number: int, line: str) -> Record:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise DatasetError(path, number, f"is not JSON ({error})") from error
    if not isinstance(record, dict):
        raise DatasetError(path, number, "is not a JSON object")
    return Record(path, number, record)


Ids = Literal["ids", "names"]

NO_ANSWER = "no gold answer"


@dataclass(frozen=True)
class Example:
    """One question with its gold answers and annotations.

    A pipeline receives `asked(...)`, a `Question` without gold answers.

    >>> example = Example("q1", "Which river flows through Paris?", answers=("Seine",))
    >>> example.answers
    ('Seine',)
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
    """Kind of the answers, if the set has it (CronQuestions: `entity` or `time`)."""
    aliases: tuple[tuple[str, ...], ...] = ()
    """Other names of each answer, parallel to `answers`; empty if the set lists none."""
    parses: tuple[tuple[str, ...], ...] = ()
    """Answer ids of each annotated reading of the question (WebQSP); empty if there is one reading only."""
    support: tuple[tuple[str, str, str], ...] = ()
    """Annotated triples that an answer rests on: head, relation, tail, as the set writes them."""
    query: str = ""
    """Annotated graph query whose result is the answer."""
    rows: tuple[tuple[Cell, ...], ...] = ()
    """Result of `query`: texts, numbers, truth values, None, and tuples and mappings of these; `{"node": ID}` is a
    node."""
    row_count: int | None = None
    """Rows of the whole result; see `result_sets.GoldResult.count`."""
    cluster: str = ""
    """Shared by questions that belong together, paraphrases or instances of a template; empty if it stands alone."""
    repeat: int = 0
    """Number of earlier repeats of the question in the run."""

    @property
    def first_id(self) -> str:
        """Return the question's id, whichever of its repeats this is."""
        return asked_first(self.id, self.repeat)

    @property
    def group(self) -> str:
        """Return the unit that intervals and tests resample: the cluster, or the question with its repeats."""
        return self.cluster or f"repeats of {self.first_id}"

    def to_question(
        self, entities: Literal["gold", "linked"] = "linked", hops: Literal["gold", "predicted"] = "predicted"
    ) -> Question:
        """Return the question for a pipeline: its text and the granted annotations."""
        return Question(
            id=self.id,
            text=self.question,
            topic_ids=self.topic_ids if entities == "gold" else (),
            hops=self.hops if hops == "gold" else None,
            repeat=self.repeat,
        )


def named_example(
    id: str, question: str, answers: Mapping[str, str], topics: Mapping[str, str], **more: Any
) -> Example:
    """Return an example whose answers and topics are given as names by id, the other fields as `Example` has them."""
    return Example(
        id=id,
        question=question,
        answers=tuple(answers.values()),
        answer_ids=tuple(map(EntityId, answers)),
        topic_entities=tuple(topics.values()),
        topic_ids=tuple(map(EntityId, topics)),
        **more,
    )


def by_name(example: Example) -> Example:
    """Return the example for a graph whose node ids are names."""
    return replace(
        example,
        topic_ids=tuple(map(EntityId, example.topic_entities)),
        answer_ids=tuple(map(EntityId, example.answers)),
    )


def is_by_name(examples: Sequence[Example]) -> bool:
    """True if all ids of gold answers, if any, equal their names."""
    given = [example for example in examples if example.answer_ids]
    return bool(given) and all(example.answer_ids == example.answers for example in given)


def as_cell(value: Any) -> Cell:
    """Return a value read from JSON as a cell of a result: lists become tuples."""
    if isinstance(value, list | tuple):
        return tuple(map(as_cell, value))
    if isinstance(value, dict):
        return {str(key): as_cell(each) for key, each in value.items()}
    return cast(Cell, value)


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
        """Return how many questions of the split are not among the examples, by reason.

        A published set may hold questions without gold answers, which nobody can score.
        """

    def graph_source(self) -> Path:
        """Return the file or folder that `byokg graph build` would take for this set's graph."""


@runtime_checkable
class SubgraphDataset(Dataset, Protocol):
    """Questions that each bring a graph of their own."""

    def subgraph(self, id: str) -> GraphStore:
        """Return the graph of one question, held in memory. Raises `DatasetError` for an unknown id."""

    def has_subgraphs(self) -> bool:
        """Return True if the questions do bring graphs, and no other one is named. Raises `DatasetError`."""


@dataclass(frozen=True)
class Loaded:
    """Content of a question file."""

    path: Path
    checksum: str
    examples: tuple[Example, ...]
    left_out: Mapping[str, int]


def reason_without_answer(record: Record, example: Example) -> str:
    """Return why a question cannot be scored; empty if it can."""
    return "" if example.answers else NO_ANSWER


def load(
    file: QuestionFile,
    example: Callable[[Record], Example],
    keep: Callable[[Record], bool] = lambda record: True,
    leave_out: Callable[[Record, Example], str] = reason_without_answer,
) -> Loaded:
    """Read the questions of a file.

    Args:
        file: the opened file.
        example: makes an example from a record.
        keep: True for records of the wanted part of the set.
        leave_out: returns the reason to exclude an example, which is counted; empty to keep it.

    Raises:
        DatasetError: a record is malformed, or two have the same id.
    """
    places: dict[str, int] = {}
    examples: list[Example] = []
    left_out: Counter[str] = Counter()
    for record in filter(keep, file.records):
        made = example(record)
        if made.id in places:
            first = f"{record.path.name}:{places[made.id]}"
            raise record.wrong(f"id {made.id!r} is already used in {first}; ids must be unique")
        places[made.id] = record.place
        if reason := leave_out(record, made):
            left_out[reason] += 1
        else:
            examples.append(made)
    return Loaded(file.path, file.checksum, tuple(examples), dict(left_out))


class QuestionSet:
    """The questions of one part of a data set, with their graph; a `Dataset`.

    Args:
        name: of the set and the part, for tables.
        read: reads the question file; called once, on first use.
        graph: file or folder of the graph; None takes the set's own.
        own_graph: returns the graph that comes with the questions, or raises `DatasetError`.
        ids: with "names", topics and answers are matched to nodes by name.
        write_graph: writes the graph's published files as a folder for `byokg graph build`; None if the published files
            can be imported directly.

    Raises:
        ConfigError: `ids` is neither "ids" nor "names".
    """

    def __init__(
        self,
        name: str,
        read: Callable[[], Loaded],
        graph: str | Path | None,
        own_graph: Callable[[], Path],
        ids: Ids = "ids",
        write_graph: Callable[[Path], None] | None = None,
    ) -> None:
        one_of("dataset.ids=", ids, ("ids", "names"))
        self._name, self._read, self._ids = name, read, ids
        self._graph, self._own_graph, self._write_graph = graph, own_graph, write_graph

    @property
    def name(self) -> str:
        """Return the set's name and split."""
        return self._name

    @property
    def checksum(self) -> str:
        """Return the sha256 hex digest of the question file's content (decompressed)."""
        return self._loaded.checksum

    def examples(self) -> tuple[Example, ...]:
        """Return the questions in file order.

        Raises:
            DatasetError: the file is missing, a record is malformed, two have the same id, or none is left.
        """
        return self._loaded.examples

    def left_out(self) -> Mapping[str, int]:
        """Return how many questions of the file are left out, by reason."""
        return self._loaded.left_out

    def graph_source(self) -> Path:
        """Return what `byokg graph build` takes. Raises `DatasetError`."""
        if self._graph is None:
            return self._own_graph()
        if not Path(self._graph).exists():
            raise DatasetError(self._graph, None, "is not there; dataset.graph names the graph's file or folder")
        return Path(self._graph)

    def write_graph(self, out: Path) -> None:
        """Write the set's own graph as a folder that `byokg graph build` takes.

        Raises:
            ConfigError: it takes the published files as they are, or the set comes without a graph.
            DatasetError: a file is missing or malformed.
        """
        if self._write_graph is None:
            raise ConfigError(
                f"the graph of {self._name} needs no conversion; build it as it is, or name another with dataset.graph="
            )
        self._write_graph(out)

    @cached_property
    def _loaded(self) -> Loaded:
        loaded = self._read()
        if not loaded.examples:
            raise DatasetError(loaded.path, None, "holds no question that can be scored; check dataset.split")
        return replace(loaded, examples=tuple(map(by_name, loaded.examples))) if self._ids == "names" else loaded


class SubgraphSet(QuestionSet):
    """Questions that may each bring a graph of their own; a `SubgraphDataset`. Arguments as for `QuestionSet`.

    The graphs are held packed, as `pack` is given them, and unpacked one at a time.
    """

    @cached_property
    def _packed(self) -> dict[str, bytes]:
        return {}

    def pack(self, record: Record, id: str) -> None:
        """Keep the triples that the record of a question holds under `graph`, if it does."""
        if "graph" in record.fields:
            triples = json.dumps(list(map(list, record.several("graph"))), ensure_ascii=False)
            self._packed[id] = zlib.compress(triples.encode("utf-8", "surrogatepass"), _FASTEST)

    def has_subgraphs(self) -> bool:
        """Return True if the questions bring graphs, and no other one is named. Raises `DatasetError`."""
        return self._graph is None and len(self._loaded.examples) > 0 and bool(self._packed)

    def subgraph(self, id: str) -> ColumnarGraph:
        """Return the graph of one question, held in memory; each call builds it anew.

        Raises:
            DatasetError: there is no such question, or its graph is malformed.
        """
        from byokg.graph.importers.python_graphs import from_record

        path = self._loaded.path
        if id not in self._packed:
            raise DatasetError(path, None, f"holds no question {id!r} with a graph")
        try:
            return from_record({"id": id, "graph": json.loads(zlib.decompress(self._packed[id]))})
        except GraphError as error:
            raise DatasetError(path, None, f"question {id!r}: {error}") from error


def graph_finder(root: str | Path, *names: str, convert: str = "") -> Callable[[], Path]:
    """Return a function that finds the first of `names` in `root`.

    With `convert`, what `QuestionSet.write_graph` writes is looked for in the folder of that name, too.
    """

    def find() -> Path:
        path = locate(Path(root), *names)
        if path is not None:
            return path
        if not convert:
            held = f"none of {', '.join(names)} lies there" if names else "these questions come without one"
            raise DatasetError(root, None, f"has no graph: {held}; name one with dataset.graph=PATH or graph.path=DIR")
        written = Path(root) / convert
        if not written.is_dir():
            reason = (
                f"its graph has to be converted once: byokg data graph KEY=VALUE… --out {written}, with the dataset "
                "settings of this run"
            )
            raise DatasetError(root, None, reason)
        return written

    return find


def select_examples(examples: Sequence[Example], ids: Collection[str], types: Collection[str]) -> list[Example]:
    """Return the questions of these ids and types; an empty collection keeps all.

    Raises:
        ConfigError: no question has one of the ids or types; the message lists the types.
    """
    missing = [id for id in ids if id not in {example.id for example in examples}]
    if missing:
        raise ConfigError(f"ids: no question {missing[0]!r} among {len(examples):,}; check dataset.split")
    counts = Counter(example.type or "no type" for example in examples)
    unknown = [type for type in types if type not in counts]
    if unknown:
        held = ", ".join(f"{type} ({count:,})" for type, count in sorted(counts.items()))
        raise ConfigError(f"types: no question has the type {unknown[0]!r}; there are {held}")
    return [example for example in examples if (not ids or example.id in ids) and (not types or example.type in types)]


def sample_examples(
    examples: Sequence[Example],
    per_type: int | None = None,
    sample: int | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> list[Example]:
    """Return some of the questions, in the order given.

    Args:
        examples: the questions.
        per_type: so many of each type are drawn; all of a type that has fewer.
        sample: so many of those are drawn; all if there are fewer.
        limit: of those, the first are taken.
        seed: of the draws.
    """
    kept = list(examples)
    if per_type is not None:
        lots: dict[str, list[Example]] = {}
        for example in kept:
            lots.setdefault(example.type, []).append(example)
        kept = _only(kept, (each for lot in lots.values() for each in _lowest(lot, per_type, seed)))
    if sample is not None:
        kept = _only(kept, _lowest(kept, sample, seed))
    return kept[:limit]


def _only(examples: Sequence[Example], chosen: Iterable[Example]) -> list[Example]:
    ids = {example.id for example in chosen}
    return [example for example in examples if example.id in ids]


def _lowest(examples: Sequence[Example], count: int, seed: int) -> list[Example]:
    def lot(example: Example) -> bytes:
        return hashlib.sha256(f"{seed} {example.id}".encode("utf-8", "surrogatepass")).digest()

    return sorted(examples, key=lot)[:count]
