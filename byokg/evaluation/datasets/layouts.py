"""Published question sets that differ in the names of files and fields only, one entry of `layouts.yaml` each.

Many have gold queries and no answers: `require=executable` then runs the queries and takes their results as gold.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import yaml

from byokg.errors import DatasetError, one_of
from byokg.evaluation.datasets.base import (
    NO_ANSWER,
    Example,
    Ids,
    Loaded,
    QuestionFile,
    QuestionSet,
    Record,
    as_cell,
    graph_finder,
    load,
    locate,
    read_parquet,
    read_plain_lines,
    read_records,
    require_file,
)
from byokg.evaluation.datasets.benchmarks import first_column
from byokg.evaluation.datasets.freebase import GRAPHS
from byokg.files import in_bytes
from byokg.types import EntityId

_STEP = re.compile(r"([^\[\]]+)(?:\[(\w+)=([^\]]*)\])?")


@cache
def layouts() -> Mapping[str, Mapping[str, Any]]:
    """Return the entries of `layouts.yaml` by name."""
    text = resources.files("byokg.evaluation.datasets").joinpath("layouts.yaml").read_text("utf-8")
    entries: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return entries


def published(
    layout: str,
    root: str | Path,
    split: str = "test",
    graph: str | Path | None = None,
    ids: Ids = "ids",
    questions: str = "",
    language: str = "en",
    database: str = "",
) -> QuestionSet:
    """Return the questions of one split of a published set. Questions with neither answer nor query are left out.

    Args:
        layout: name of an entry of `layouts.yaml`.
        root: folder that holds the question file, or that file.
        split: `train`, `dev` or `test`, as far as the set has them.
        graph: file or folder of the graph, unless it lies in `root`.
        ids: see `Folder`.
        questions: name of the file, if it is none of the usual ones.
        language: of the questions, in sets of several languages.
        database: of sets over several graphs, the one whose questions are kept; empty keeps all.

    Raises:
        ConfigError: there is no such layout.
    """
    entry, folder = layouts()[one_of("dataset.layout=", layout, layouts())], Path(root)

    def read() -> Loaded:
        file = _question_file(entry, folder, split, questions)
        only = {name: set(map(str, values)) for name, values in entry.get("only", {}).items()}

        def keep(record: Record) -> bool:
            wanted = all(str(record.fields.get(name, next(iter(values)))) in values for name, values in only.items())
            return wanted and (not database or _first(record, entry.get("database", ""), language) == database)

        def leave_out(record: Record, example: Example) -> str:
            return "" if example.answers or example.query else NO_ANSWER

        return load(file, lambda record: _example(layout, entry, record, split, language), keep, leave_out)

    def own_graph() -> Path:
        beside = folder if folder.is_dir() else folder.parent
        names = (*entry.get("graph", ()), *GRAPHS)
        if "without" in entry and locate(beside, *names) is None:
            reason = f"these questions come without their graph ({entry['without']})"
            raise DatasetError(root, None, f"{reason}; name it with dataset.graph=PATH or graph.path=DIR")
        return graph_finder(beside, *names)()

    name = " ".join(filter(None, (layout, database, split)))
    return QuestionSet(name, read, graph, own_graph, ids)


def _question_file(entry: Mapping[str, Any], root: Path, split: str, questions: str) -> QuestionFile:
    """Return the records of the file, or of all files of a pattern. Raises `DatasetError` if there is none."""
    named = entry.get("splits", {}).get(split, split)
    names = [questions] if questions else [name.replace("{split}", named) for name in entry["files"]]
    paths = [root] if root.is_file() else []
    for name in names if not paths else ():
        found = locate(root, name)
        paths = [found] if found else sorted(root.glob(name), key=in_bytes) if "*" in name else []
        if paths:
            break
    if not paths:
        paths = [require_file(root, *names)]
    if paths[0].suffix == ".parquet":
        return read_parquet(paths)
    if columns := entry.get("columns"):
        return _columned(read_plain_lines(paths[0]), columns)
    files = [read_records(path) for path in paths]
    if len(files) == 1:
        return files[0]
    checksum = hashlib.sha256("".join(file.checksum for file in files).encode()).hexdigest()
    return QuestionFile(paths[0], checksum, (record for file in files for record in file.records))


def _columned(file: QuestionFile, columns: Sequence[str]) -> QuestionFile:
    def records() -> Iterator[Record]:
        for record in file.records:
            fields = record.text("line").split("\t")
            if len(fields) != len(columns):
                raise record.wrong(f"has {len(fields)} fields; expected {'<tab>'.join(columns).upper()}")
            yield Record(record.path, record.place, dict(zip(columns, fields, strict=True)))

    return QuestionFile(file.path, file.checksum, records())


def _example(layout: str, entry: Mapping[str, Any], record: Record, split: str, language: str) -> Example:
    def first(name: str) -> str:
        return _first(record, entry.get(name, ""), language)

    id_ = first("id") or f"{layout}-{split}-{record.place:05d}"
    question = first("question")
    if not question:
        reason = f"has no text in {entry['question'].replace('{language}', language)}"
        raise record.wrong(f"{reason}; it holds {', '.join(record.fields)}")
    answers, topics = (_entries(record, entry.get(name, ""), language) for name in ("answers", "topics"))
    rows = _rows(record, first("rows"))
    names = tuple(name for _, name in answers) or first_column(rows)
    return Example(
        id=id_,
        question=question,
        answers=names,
        answer_ids=tuple(id_ for id_, _ in answers if id_) if all(id_ for id_, _ in answers) else (),
        topic_entities=tuple(name for _, name in topics),
        topic_ids=tuple(id_ or EntityId(name) for id_, name in topics),
        split=split,
        type=first("type"),
        query=first("query"),
        rows=rows,
        row_count=len(rows) or None,
        cluster=first("cluster") or record.cluster(id_),
    )


def _rows(record: Record, text: str) -> tuple[tuple[Any, ...], ...]:
    """Return the result that a record holds as JSON: a list of objects, of lists, or of values."""
    try:
        held = json.loads(text) if text else []
    except ValueError as error:
        raise record.wrong(f"the gold result is no JSON: {error}") from error
    if not isinstance(held, list):
        raise record.wrong(f"the gold result should be a list of rows, not {held!r:.80}")
    values = (list(row.values()) if isinstance(row, dict) else row if isinstance(row, list) else [row] for row in held)
    return tuple(tuple(map(as_cell, row)) for row in values)


# Values at places


def _first(record: Record, places: str, language: str) -> str:
    """Return the first value at a place, as text; empty if there is none."""
    return next((_text(value) for value in _values(record.fields, places, language)), "")


def _entries(record: Record, place: Any, language: str) -> list[tuple[EntityId, str]]:
    """Return the ids and names at a place; an IRI or an identifier of a value is its id, other values have none."""
    if isinstance(place, str):
        texts = dict.fromkeys(_text(value) for value in _values(record.fields, place, language))
        return [(EntityId(_id(text) if _id(text) else ""), _name(text)) for text in texts]
    found: dict[str, tuple[EntityId, str]] = {}
    for value in _values(record.fields, place["at"], language):
        if not isinstance(value, dict):
            found.setdefault(_text(value), (EntityId(""), _text(value)))
            continue
        id_ = next((_text(each) for each in _values(value, place["id"], language)), "")
        name = next((_text(each) for each in _values(value, place["name"], language)), id_)
        if name:
            found.setdefault(id_ or name, (EntityId(id_), name))
    return list(found.values())


_IRI, _FREEBASE, _WIKIDATA = (
    re.compile(r"https?://\S+"),
    re.compile(r"(?:www\.freebase\.com/)?m[/.]\w+"),
    re.compile(r"Q\d+"),
)


def _id(text: str) -> str:
    """Return the identifier that a text is; empty for a name or a value."""
    if _FREEBASE.fullmatch(text):
        return text.removeprefix("www.freebase.com/").replace("/", ".")
    return text if _IRI.fullmatch(text) or _WIKIDATA.fullmatch(text) else ""


def _name(text: str) -> str:
    """Return the name of an IRI, its last part; other texts are names."""
    return unquote(re.split(r"[/#]", text)[-1]).replace("_", " ") if _IRI.fullmatch(text) else _id(text) or text


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _values(fields: Any, places: str, language: str) -> list[Any]:
    """Return the values at the first of some places that holds any; lists are walked through."""
    for place in places.replace("{language}", language).split("|") if places else ():
        found = [fields]
        for step in place.split("."):
            found = [inner for each in found for inner in _flat(_step(each, step))]
        if found := [value for value in found if value not in (None, "")]:
            return found
    return []


def _step(value: Any, step: str) -> Any:
    if step == "*":
        return list(value.values()) if isinstance(value, dict) else None
    match = _STEP.fullmatch(step)
    inner = value.get(match[1]) if match and isinstance(value, dict) else None
    if match and match[2]:
        return [each for each in _flat(inner) if isinstance(each, dict) and str(each.get(match[2])) == match[3]]
    return inner


def _flat(value: Any) -> list[Any]:
    """Return the members of lists within lists; of another value itself."""
    return [inner for each in value for inner in _flat(each)] if isinstance(value, list) else [value]
