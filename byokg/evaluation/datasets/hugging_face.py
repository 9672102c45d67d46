"""Questions that Hugging Face's `datasets` library reads: what `save_to_disk` wrote, and the hub's files."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from byokg.errors import ConfigError, DatasetError, import_extra
from byokg.evaluation.datasets.base import (
    Example,
    Ids,
    Loaded,
    QuestionFile,
    Record,
    SubgraphSet,
    graph_finder,
    load,
    one_of,
)
from byokg.evaluation.datasets.folder import LISTS, example_of

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
            one_of("dataset.split", split, list(splits))
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
