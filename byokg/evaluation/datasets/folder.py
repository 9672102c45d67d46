"""Your own data set: a folder with `questions.jsonl`, and a graph in it or elsewhere; the shipped one is such a folder.

One JSON object per line, UTF-8, with these fields (others are ignored):

- `id`, `question`: text. An `id` may be a number; ids are unique within the file.
- `answers`: list of names, or of numbers (a count, a year), at least one. A question without gold answers is refused:
  it can neither be scored nor silently left out of the denominator.
- `answer_ids`, `topic_entities`, `topic_ids`: lists; may be absent or empty. The ids need not stand beside
  the names one by one. Without `topic_ids`, `topic_entities` serve as ids.
- `split`, `type`, `answer_type`, `query`: text. `hops`: whole number, 0 or more.
- `aliases`, `parses`: lists of lists of texts. `support`: list of `[head, relation, tail]`.
- `rows`: list of lists of anything.

Annotations may stand in a second file (`labels`), apart from systems under test: lines with an `id`, and
`support_triples`, `hops` or `type`, which fill gaps of the question's own record.

Folders of Hugging Face's `datasets` library (`save_to_disk`) and files of its hub have the same fields.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from byokg.errors import ConfigError, DatasetError, EntityNotFound, ImportFailed, import_extra, one_of
from byokg.evaluation.datasets.base import (
    TABLES,
    Example,
    Ids,
    Loaded,
    QuestionFile,
    QuestionSet,
    Record,
    SubgraphSet,
    as_cell,
    by_name,
    graph_finder,
    load,
    read_json_lines,
    read_plain_lines,
    read_records,
    require_file,
)
from byokg.graph.importers.choose import source_files
from byokg.graph.store import GraphStore
from byokg.index.names import NameIndex
from byokg.types import EntityId

SHIPPED = Path(__file__).resolve().parents[2] / "data" / "atlas"
"""`nodes.csv`, `edges.csv` and `questions.jsonl`, inside the package."""

LISTS = frozenset(("answers", "answer_ids", "topic_entities", "topic_ids"))
"""Fields that list names or ids."""

_ASKED_AT_MOST = 200
_TRIPLE = 3


class Folder(QuestionSet):
    """Questions of one split (or all) from a folder of the layout above; lines of other splits are checked, too.

    Args:
        root: folder that holds the question file.
        split: keep only questions of this `split`; empty keeps all.
        graph: place of the graph's source, unless it lies in `root` under a name in
            `byokg.graph.importers.choose` (`graph.tsv`, `graph.jsonl`, `nodes.csv` with `edges.csv`, …).
        ids: node ids of the graph. With "ids", `topic_ids` and `answer_ids` come from the fields of that name. With
            "names", they are the names in `topic_entities` and `answers`: for a graph keyed by name while the questions
            carry ids of another graph. `graph_keys` detects the right choice for a store.
        questions: name of the question file in `root`, without `.xz` or `.gz`.
        name: of the set, for tables; the folder's own name if empty.
        labels: name of the file of annotations in `root`; empty if there is none.

    Raises:
        ConfigError: `ids` is neither "ids" nor "names".

    >>> Folder(SHIPPED, split="dev").examples()[0].question
    'Which stands taller: Huascarán or Misti?'
    """

    def __init__(
        self,
        root: str | Path,
        split: str = "",
        graph: str | Path | None = None,
        ids: Ids = "ids",
        questions: str = "questions.jsonl",
        name: str = "",
        labels: str = "",
    ) -> None:
        folder = Path(root)

        def read() -> Loaded:
            labelled = _labels(folder, labels) if labels else {}
            loaded = load(read_json_lines(require_file(folder, questions)), lambda record: example_of(record, labelled))
            kept = tuple(example for example in loaded.examples if example.split == split or not split)
            if loaded.examples and not kept:
                counts = Counter(example.split or "no split" for example in loaded.examples)
                held = ", ".join(f"{split} ({count})" for split, count in sorted(counts.items()))
                raise DatasetError(loaded.path, None, f"has no question in split {split!r}; it holds {held}")
            return replace(loaded, examples=kept)

        def own_graph() -> Path:
            try:
                source_files(folder)
            except ImportFailed as error:
                reason = f"{error.reason}; or name the graph with dataset.graph=PATH"
                raise DatasetError(error.file, error.line, reason) from error
            return folder

        super().__init__(f"{name or folder.resolve().name} {split}".rstrip(), read, graph, own_graph, ids)


@cache
def atlas(split: str = "test") -> Folder:
    """Return the shipped questions of one split (`dev`, `test`, or empty for both), with the graph beside them.

    They are about countries, cities, rivers, mountains, laureates and governments.

    >>> dataset = atlas("dev")
    >>> dataset.name, len(dataset.examples())
    ('atlas dev', 701)
    """
    return Folder(SHIPPED, split=split, name="atlas")


def unanswered(path: Path) -> Loaded:
    """Read questions that nobody has answered: JSON lines, JSON, CSV or `.tsv`, or plain lines (any other ending).

    Records have `question`, and `id`, `topic_entities`, `topic_ids` and `hops` if they are known; gold answers are not
    read. A question without an id gets the number of its line or record, from 1.

    Raises:
        DatasetError: the file cannot be read or holds no question, a record is malformed, or two have the same id.
    """
    kind = path.with_suffix("").suffix if path.suffix in (".xz", ".gz") else path.suffix
    records = kind in (".jsonl", ".json", *TABLES)
    file = read_records(path) if records else read_plain_lines(path)
    if kind in TABLES:
        file = replace(file, records=map(_of_cells, file.records))
    loaded = load(file, _unanswered, leave_out=lambda *_: "")
    if not loaded.examples:
        raise DatasetError(path, None, "holds no question; write one a line, or JSON lines with a field 'question'")
    return loaded


def _of_cells(record: Record) -> Record:
    """Return a row of a table with values in place of texts: topics are separated by bars, empty cells absent."""
    if "question" not in record.fields:
        raise record.wrong(f"{next(iter(record.fields))!r} heads the file, which has no column 'question'; name it so")
    fields: dict[str, Any] = {name: cell for name, cell in record.fields.items() if cell.strip()}
    for name in ("topic_entities", "topic_ids"):
        if name in fields:
            fields[name] = [part.strip() for part in fields[name].split("|")]
    if "hops" in fields and fields["hops"].strip().isdigit():
        fields["hops"] = int(fields["hops"])
    return replace(record, fields=fields)


def _unanswered(record: Record) -> Example:
    if record.fields.keys() == {"line"}:
        return Example(str(record.place), record.text("line"), ())
    topics = _texts(record, "topic_entities")
    return Example(
        id=record.label("id") or str(record.place),
        question=_text(record, "question", required=True),
        answers=(),
        topic_entities=topics,
        topic_ids=tuple(map(EntityId, _texts(record, "topic_ids") or topics)),
        hops=record.count("hops"),
    )


def _labels(root: Path, name: str) -> dict[str, Record]:
    records = read_json_lines(require_file(root, name)).records
    return {_text(record, "id", required=True): record for record in records}


def example_of(record: Record, labels: Mapping[str, Record], gold: bool = True) -> Example:
    """Check one question and add its labels; `topic_ids` fall back to `topic_entities`.

    Raises:
        DatasetError: a field has the wrong type, or answers are missing and `gold` demands them.
    """
    answers = _texts(record, "answers")
    if gold and not answers:
        raise record.wrong("has no 'answers', so it cannot be scored; add them or remove the question")
    id = _text(record, "id", required=True)
    topics = _texts(record, "topic_entities")
    label = labels.get(id, Record(record.path, record.place, {}))
    hops, rows = record.count("hops"), record.several("rows")
    return Example(
        id=id,
        question=_text(record, "question", required=True),
        answers=answers,
        answer_ids=tuple(map(EntityId, _texts(record, "answer_ids"))),
        topic_entities=topics,
        topic_ids=tuple(map(EntityId, _texts(record, "topic_ids") or topics)),
        hops=label.count("hops") if hops is None else hops,
        split=_text(record, "split"),
        type=_text(record, "type") or _text(label, "type"),
        answer_type=_text(record, "answer_type"),
        aliases=_lists(record, "aliases"),
        parses=_lists(record, "parses"),
        support=_triples(record, "support") or _triples(label, "support_triples"),
        query=_text(record, "query"),
        rows=tuple(tuple(map(as_cell, record.as_list("rows", each))) for each in rows),
        row_count=record.count("row_count") or len(rows) or None,
        cluster=record.cluster(id),
    )


def _text(record: Record, field: str, required: bool = False) -> str:
    """Return a text; empty if the field is absent and need not be there."""
    value = record.fields.get(field)
    if value is None and not required:
        return ""
    if isinstance(value, int) and not isinstance(value, bool) and field == "id":
        return str(value)
    if not isinstance(value, str) or (required and not value.strip()):
        raise record.wrong(f"field {field!r} should be text, not {value!r}")
    return value


def _texts(record: Record, field: str, values: Iterable[Any] | None = None) -> tuple[str, ...]:
    """Return a list of texts or numbers as texts: the field itself, or these values in it."""
    listed = record.several(field) if values is None else tuple(values)
    for value in listed:
        if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).strip():
            raise record.wrong(f"field {field!r} should list texts or numbers, not {value!r}")
    return tuple(map(str, listed))


def _lists(record: Record, field: str) -> tuple[tuple[str, ...], ...]:
    return tuple(_texts(record, field, record.as_list(field, each)) for each in record.several(field))


def _triples(record: Record, field: str) -> tuple[tuple[str, str, str], ...]:
    triples = _lists(record, field)
    for triple in triples:
        if len(triple) != _TRIPLE:
            raise record.wrong(f"field {field!r} should list [head, relation, tail], not {list(triple)!r}")
    return tuple((head, relation, tail) for head, relation, tail in triples)


def graph_keys(examples: Sequence[Example], store: GraphStore) -> Ids:
    """Detect the keys of a graph's nodes: the questions' topic ids or their names.

    Looks up the first 200 questions whose topic ids and names differ, and returns the kind found more often; "ids" in a
    tie. Pass the result to `Folder(ids=…)`, or use `by_name`.
    """
    telling = [e for e in examples if e.topic_ids and e.topic_entities and e.topic_ids != e.topic_entities]
    found = {"ids": 0, "names": 0}
    for example in telling[:_ASKED_AT_MOST]:
        found["ids"] += holds(store, example.topic_ids)
        found["names"] += holds(store, by_name(example).topic_ids)
    return "names" if found["names"] > found["ids"] else "ids"


def with_nodes_of_names(
    examples: Sequence[Example], store: GraphStore, names: Callable[[], NameIndex]
) -> list[Example]:
    """Return the examples with nodes looked up by topic name, for sets with names and without ids.

    Nothing changes if the graph holds any of the first 200 topics as given. All namesakes become topics; a name without
    a node stays as it is and counts as not linked. `names` builds the index of the graph's names; it is called only if
    a name has to be looked up.
    """
    named = [e for e in examples if e.topic_ids and e.topic_ids == e.topic_entities]
    if not named or any(holds(store, e.topic_ids) for e in named[:_ASKED_AT_MOST]):
        return list(examples)
    index = names()
    meant = {
        example.id: tuple(id for name in example.topic_ids for id in store.ids(index.exact(name)) or [name])
        for example in named
    }
    return [replace(example, topic_ids=meant.get(example.id, example.topic_ids)) for example in examples]


def holds(store: GraphStore, ids: Sequence[EntityId]) -> bool:
    """True if a graph has nodes of all these ids."""
    try:
        store.numbers(ids)
    except EntityNotFound:
        return False
    return True


_BUILDERS = {".json": "json", ".jsonl": "json", ".csv": "csv", ".parquet": "parquet", ".arrow": "arrow"}
_SAVED = ("dataset_dict.json", "dataset_info.json", "state.json")
"""One of these lies in what `save_to_disk` wrote."""
_SPLIT = re.compile(r"(?:^|[^a-z])(train|validation|valid|dev|test)(?:[^a-z]|$)")
_TEXTS = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)


def hugging_face(
    path: str | Path,
    split: str = "",
    graph: str | Path | None = None,
    ids: Ids = "ids",
    columns: Mapping[str, str] | None = None,
    name: str = "",
) -> SubgraphSet:
    """Return the questions of a Hugging Face data set on this machine, without network access.

    Columns are named as the fields of `folder`, or as in `columns`. A text in place of a list is a list of one, or the
    list that `to_csv` serialised as that text; questions without an id are numbered from 1; those without answers are
    left out. A column `graph` of lists of triples is the graph of each question.

    Args:
        path: a folder written by `save_to_disk`, a file (JSON, JSON lines, CSV, Parquet, Arrow), or a folder of such
            files, as `hf download` leaves it.
        split: one of the library's splits, or a value of the column `split`; for a single file, the split in its name;
            empty takes all.
        graph: file or folder of the graph, unless `graph.path` names one.
        ids: see `Folder`.
        columns: column by field, for fields whose column has another name (`answers: a_entity`).
        name: of the set, for tables; that of the file or folder if empty.

    Raises:
        MissingExtra: the library is not installed.
        ConfigError: `ids` is neither "ids" nor "names", or the split is empty.
    """
    place = Path(path)

    def read() -> Loaded:
        splits = _load_splits(place)
        digest = hashlib.sha256()
        wanted = {split: splits[split]} if split in splits else splits

        def records() -> Iterator[Record]:
            number = 0
            for of, rows in wanted.items():
                for row in rows:
                    number += 1
                    fields = _fields(row, columns or {}, {"id": str(number), "split": of})
                    digest.update(json.dumps(fields, sort_keys=True, default=str).encode("utf-8", "backslashreplace"))
                    yield Record(place, number, fields)

        def kept(record: Record) -> bool:
            return split in splits or not split or record.fields["split"] == split

        def example(record: Record) -> Example:
            made = example_of(record, {}, gold=False)
            questions.pack(record, made.id)
            return made

        loaded = load(QuestionFile(place, "", records()), example, kept)
        if not loaded.examples and split and split not in splits:
            if not any(splits):
                raise ConfigError(f"{place} has no splits; leave dataset.split={split} out")
            one_of("dataset.split=", split, splits)
        return Loaded(place, digest.hexdigest(), loaded.examples, loaded.left_out)

    return (questions := SubgraphSet(f"{name or place.stem} {split}".rstrip(), read, graph, graph_finder(path), ids))


def _load_splits(place: Path) -> Mapping[str, Any]:
    """Return the rows of each split.

    Raises:
        DatasetError: nothing is there, or the library cannot read it.
    """
    library = import_extra("datasets", "datasets", "dataset=datasets")
    if not place.exists():
        raise DatasetError(
            place,
            None,
            "is not there, and nothing is fetched; get it first: hf download NAME --repo-type dataset --local-dir DIR",
        )
    try:
        if any((place / each).is_file() for each in _SAVED):
            found = library.load_from_disk(str(place))
        elif place.is_dir():
            found = library.load_dataset(str(place))
        else:
            builder = _BUILDERS.get(place.suffix)
            if builder is None:
                raise DatasetError(place, None, f"is none of {', '.join(_BUILDERS)}, which dataset=datasets reads")
            said = _SPLIT.search(place.stem.lower())  # the library calls the rows of any file "train"
            found = {said[1] if said else "": library.load_dataset(builder, data_files=str(place), split="train")}
    except DatasetError:
        raise
    except Exception as error:  # the library raises what its readers do
        reason = " ".join(str(error.__cause__ or error).split())[:300]
        raise DatasetError(place, None, f"cannot be read by datasets: {type(error).__name__}: {reason}") from error
    return found if isinstance(found, dict) else {str(found.split or ""): found}


def _fields(row: Mapping[str, Any], columns: Mapping[str, str], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row's fields under the names of `folder`."""
    named = {field: row[column] for field, column in columns.items() if column in row}
    fields = {**row, **named}
    fields = {key: value for key, value in fields.items() if value is not None}
    for field in LISTS & fields.keys():
        if not isinstance(fields[field], list | tuple):
            fields[field] = _listed(fields[field])
    return {**defaults, **fields}


def _listed(value: Any) -> list[Any]:
    """Return the texts of a list that was written into a cell (`['a', 'b']`, NumPy's `['a' 'b']`); else the value."""
    text = str(value).strip()
    if text[:1] + text[-1:] != "[]" or _TEXTS.sub("", text).strip("[], \n"):
        return [value]
    return [ast.literal_eval(each) for each in _TEXTS.findall(text)]
