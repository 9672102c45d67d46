"""Questions with a gold Cypher query each: neo4j-labs' Text2Cypher tables, or `questions.jsonl` with the same fields.

`cypher` is the query; `gold_rows` its result, where somebody recorded one. With `require=executable` a run executes the
queries itself, on the graph that is asked, keeps the questions whose query runs and finds something, and takes what it
finds as gold; engines differ in types, order and number formats, so that is the way to score another one.

MetaQA in its official layout: 1-, 2- and 3-hop questions over one graph of films.

Source: Zhang et al., "Variational Reasoning for Question Answering with Knowledge Graph" (arXiv:1709.04071).

PathQuestion: questions of two and three hops with their gold paths.

`PQ-2H.txt` has a question, its answers and its path in each line, separated by tabs; `2H-kb.txt` holds the triples.

Source: Zhou, Huang and Zhu, "An Interpretable Reasoning Network for Multi-Relation Question Answering"
(arXiv:1801.04726).

CronQuestions in its official layout: pickled questions about a graph whose facts hold for years.

`questions/SPLIT.pickle` is a list of dictionaries, `kg/full.txt` has the columns head, relation, tail, start and end,
and `kg/wd_id2entity_text.txt` and `kg/wd_id2relation_text.txt` name the ids. The pickles are read without importing
anything; JSON and JSON lines with the same fields, sets as lists, are read, too.

Source: Saxena et al., "Question Answering Over Temporal Knowledge Graphs" (arXiv:2106.01515).

MedQA (USMLE): exam questions with four or five options, asked with the options or without.

Read are the official `questions/US/SPLIT.jsonl` (`question`, `options`, `answer`), QA-GNN's statements (`question` with
`stem` and `choices`, `answerKey`), and `questions.jsonl` with `topic_entities` and `answer_ids` besides.

Source: Jin et al., "What Disease does this Patient Have?" (arXiv:2009.13081).

STaRK (prime and mag) in its official layout: questions whose answers are nodes of a semi-structured graph.

`KB/stark_qa/stark_qa.csv` has the columns `id`, `query` and `answer_ids`; `KB/split/SPLIT.index` lists the ids of a
split. Nodes are known by number only, so an answer's name is its number.

Source: Wu et al., "STaRK" (arXiv:2404.13207).
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import pickle
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

from byokg.errors import ConfigError, DatasetError
from byokg.evaluation.datasets.base import Example, TextFile, as_cell, found, locate, read_bytes, read_text
from byokg.evaluation.datasets.question_set import (
    Loaded,
    QuestionSet,
    Record,
    RecordFile,
    graph_finder,
    one_of,
    read_records,
    scorable,
)
from byokg.types import Cell, EntityId

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


_ANSWERS = re.compile(r"[^(]*\((.*)\)")
_PATHQUESTION_COLUMNS = 3
_END = "#<end>#"


def pathquestion(root: str | Path, hops: int = 2, graph: str | Path | None = None) -> QuestionSet:
    """Return the questions of one length; there are no splits. Names are ids, and words are joined by `_`.

    Args:
        root: folder that holds both files.
        hops: 2 or 3.
        graph: file or folder of the graph, when it is another one.
    """
    if hops not in (2, 3):
        raise ConfigError(f"PathQuestion has questions of 2 or 3 hops, not dataset.hops={hops!r}")
    folder = Path(root)

    def read() -> Loaded:
        text = read_text(found(folder, f"PQ-{hops}H.txt"))
        records = [Record(text.path, number, {"line": line}) for number, line in text.lines]
        return scorable(
            RecordFile(text.path, text.checksum, records), [_pathquestion_example(each, hops) for each in records]
        )

    def write(out: Path) -> None:
        out.mkdir(parents=True, exist_ok=True)
        lines = read_text(found(folder, f"{hops}H-kb.txt")).lines
        (out / "graph.tsv").write_text("".join(f"{line}\n" for _, line in lines), encoding="utf-8")

    return QuestionSet(
        f"pathquestion {hops}-hop", read, graph_finder(root, graph, convert=f"{hops}H-graph"), write=write
    )


def _pathquestion_example(record: Record, hops: int) -> Example:
    fields = record.text("line").split("\t")
    listed = _ANSWERS.fullmatch(fields[1]) if len(fields) == _PATHQUESTION_COLUMNS else None
    if listed is None or _END not in fields[2]:
        raise record.wrong("is not QUESTION<tab>ANSWER(ANSWER/…)<tab>TOPIC#RELATION#…#<end>#ANSWER")
    walk = fields[2].partition(_END)[0].split("#")
    nodes, relations = walk[::2], walk[1::2]
    answers = tuple(dict.fromkeys(answer for answer in listed[1].split("/") if answer))
    steps = zip(pairwise(nodes), relations, strict=False)
    return Example(
        id=f"pq-{hops}-{record.place:05d}",
        question=fields[0],
        answers=answers,
        answer_ids=tuple(map(EntityId, answers)),
        topic_entities=(nodes[0],),
        topic_ids=(EntityId(nodes[0]),),
        hops=hops,
        support=tuple((head, relation, tail) for (head, tail), relation in steps),
    )


Times = Literal["property", "relation", "both"]

_FACTS = ("kg/full.txt", "full.txt", "full.tsv")
_ENTITY_NAMES = ("kg/wd_id2entity_text.txt", "wd_id2entity_text.txt")
_RELATION_NAMES = ("kg/wd_id2relation_text.txt", "wd_id2relation_text.txt")
_CRON_COLUMNS = 5
_ID = re.compile(r"\bQ[0-9]+\b")


def cronquestions(
    root: str | Path,
    split: str = "test",
    graph: str | Path | None = None,
    questions: str = "",
    times: Times = "property",
) -> QuestionSet:
    """Return the questions of one split.

    Ids are Wikidata's; a year is its own id. The text is the first paraphrase, or in the early release, which has none,
    the question with the names put in. An example's id counts the records from 1: `cron-test-000017`, since the
    published `uniq_id` is not unique.

    Args:
        root: folder that holds the files above.
        split: `train`, `valid` or `test`.
        graph: file or folder of the graph, when it is none of these.
        questions: name of the question file, where it is another one.
        times: what `write_graph` makes of the years: properties `start` and `end` of the edge, part of the relation
            (`position held: 2001`), as in ByoKG-RAG, or both.
    """
    one_of("dataset.times", times, get_args(Times))
    names = (questions,) if questions else (f"questions/{split}.pickle", f"{split}.pickle", f"{split}.jsonl")
    folder = Path(root)

    def read() -> Loaded:
        path = found(folder, *names)
        file = _unpickled(path) if ".pickle" in path.suffixes or ".pkl" in path.suffixes else read_records(path)
        entities = _names(found(folder, *_ENTITY_NAMES))
        return scorable(file, [_cron_example(record, split, entities) for record in file.records])

    def write(out: Path) -> None:
        write_graph(folder, out, times)

    return QuestionSet(f"cronquestions {split}", read, graph_finder(root, graph, convert="graph"), write=write)


def write_graph(root: Path, out: Path, times: Times = "property") -> None:
    """Write `nodes.csv` and `edges.csv` from the published facts and names, every fact as one edge.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Experimental Setup", for years as part of the relation.

    Raises:
        DatasetError: a file is missing, or a line is no fact.
    """
    facts = read_text(found(root, *_FACTS))
    relation_file = locate(root, *_RELATION_NAMES)
    entities = _names(found(root, *_ENTITY_NAMES))
    relations = {} if relation_file is None else _names(relation_file)
    out.mkdir(parents=True, exist_ok=True)
    nodes: dict[str, None] = {}
    with (out / "edges.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("head", "relation", "tail", *(() if times == "relation" else ("start:int", "end:int"))))
        for number, line in facts.lines:
            fields = line.split("\t")
            if len(fields) != _CRON_COLUMNS:
                reason = f"has {len(fields)} fields; expected head, relation, tail, start, end separated by tabs"
                raise DatasetError(facts.path, number, reason)
            head, relation, tail, start, end = fields
            nodes |= {head: None, tail: None}
            label = relations.get(relation, relation)
            years = start if start == end else f"{start}-{end}"
            if times != "property" and years:
                label = f"{label}: {years}"
            table.writerow((head, label, tail, *(() if times == "relation" else (start, end))))
    with (out / "nodes.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("id", "name"))
        table.writerows((id, entities.get(id, id)) for id in nodes)


class _Plain(pickle.Unpickler):
    """Reads numbers, texts and containers; a pickle can name any function to be called, and none is."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in (("builtins", "set"), ("builtins", "frozenset"), ("__builtin__", "set")):
            return set
        raise pickle.UnpicklingError(f"it refers to {module}.{name}, and a question file holds plain data only")


def _unpickled(path: Path) -> RecordFile:
    content = read_bytes(path)
    try:
        held = _Plain(io.BytesIO(content)).load()
    except Exception as error:  # a damaged pickle raises almost anything
        raise DatasetError(path, None, f"cannot be unpickled: {error}") from error
    if not isinstance(held, list) or not all(isinstance(each, dict) for each in held):
        raise DatasetError(path, None, "is a pickle of something else than a list of dictionaries")
    records = [Record(path, place, each) for place, each in enumerate(held, start=1)]
    return RecordFile(path, hashlib.sha256(content).hexdigest(), records)


def _names(path: Path) -> dict[str, str]:
    return dict(_pairs(path))


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in read_text(path).lines:
        id, tab, name = line.partition("\t")
        if not tab:
            raise DatasetError(path, number, "has no tab between id and name")
        yield id, name


def _cron_example(record: Record, split: str, names: Mapping[str, str]) -> Example:
    paraphrases = record.several("paraphrases")
    text = str(paraphrases[0]) if paraphrases else _ID.sub(lambda id: names.get(id[0], id[0]), record.text("question"))
    answers = [str(each) for each in record.several("answers")]
    topics = [str(each) for each in record.several("entities")]
    return Example(
        id=f"cron-{split}-{record.place:06d}",
        question=text,
        answers=tuple(names.get(id, id) for id in answers),
        answer_ids=tuple(map(EntityId, answers)),
        topic_entities=tuple(names.get(id, id) for id in topics),
        topic_ids=tuple(map(EntityId, topics)),
        split=split,
        type=str(record.fields.get("type") or ""),
        answer_type=str(record.fields.get("answer_type") or ""),
    )


def medqa(
    root: str | Path,
    split: str = "test",
    graph: str | Path | None = None,
    options: bool = False,
    questions: str = "",
) -> QuestionSet:
    """Return the questions of one split; the text of the right option is the gold answer.

    Args:
        root: folder that holds the questions, and the graph as `graph.tsv`.
        split: `train`, `dev` or `test`; of a file that notes the split of each question, those of this one, and with
            an empty split all.
        graph: file or folder of the graph, when it is not `graph.tsv` in `root`.
        options: whether the options follow the question, one a line.
        questions: name of the question file, where it is none of the above.
    """
    names = (f"questions/US/{split}.jsonl", f"US/{split}.jsonl", f"{split}.jsonl", f"{split}.statement.jsonl")

    def read() -> Loaded:
        file = read_records(found(Path(root), *((questions,) if questions else (*names, "questions.jsonl"))))
        kept = [record for record in file.records if record.fields.get("split", split) == split or not split]
        return scorable(file, [_medqa_example(record, split, options) for record in kept])

    return QuestionSet(f"medqa {split}".rstrip(), read, graph_finder(root, graph, "graph.tsv", "graph.csv"))


def _medqa_example(record: Record, split: str, options: bool) -> Example:
    asked = record.fields.get("question")
    if isinstance(asked, dict):  # QA-GNN's
        choices = {str(each.get("label")): str(each.get("text")) for each in asked.get("choices", ())}
        text, key = str(asked.get("stem", "")), str(record.fields.get("answerKey", ""))
    else:
        choices = {label: str(option) for label, option in record.mapping("options").items()}
        text, key = record.text("question"), str(record.fields.get("answer_idx", ""))
    answer = choices.get(key) or str(record.fields.get("answer") or "")
    if not answer:
        raise record.wrong(f"the answer {key!r} is none of the options {', '.join(choices)}")
    topics = tuple(map(str, record.several("topic_entities")))
    id = record.fields.get("id")
    return Example(
        id=str(id) if id else f"medqa-{split}-{record.place:05d}",
        question=_with_options(text, choices) if options else text,
        answers=(answer,),
        answer_ids=tuple(EntityId(str(each)) for each in record.several("answer_ids")),
        topic_entities=topics,
        topic_ids=tuple(map(EntityId, topics)),
        split=str(record.fields.get("split") or split),
        type=str(record.fields.get("meta_info") or record.fields.get("type") or ""),
    )


def _with_options(text: str, choices: Mapping[str, str]) -> str:
    return "\n".join([text, *(f"{label}. {option}" for label, option in choices.items())])


_KBS = ("prime", "mag", "amazon")


def stark(root: str | Path, kb: str = "prime", split: str = "test", graph: str | Path | None = None) -> QuestionSet:
    """Return the questions of one split, in the order of `stark_qa.csv`.

    Args:
        root: folder that holds `prime`, `mag` or `amazon`, there or in `qa`.
        kb: which of them.
        split: `train`, `val`, `test`, or `test-0.1` where that index is there.
        graph: file or folder of the graph, whose node ids are the numbers; the questions come without one.
    """
    folder = one_of("dataset.kb", kb, _KBS)

    def read() -> Loaded:
        table = found(Path(root), f"{folder}/stark_qa/stark_qa.csv", f"qa/{folder}/stark_qa/stark_qa.csv")
        index = read_text(found(table.parents[1], f"split/{split}.index"))
        file = read_records(table)
        wanted = {line.strip() for _, line in index.lines}
        examples = [_stark_example(record, split) for record in file.records if record.fields.get("id") in wanted]
        missing = sorted(wanted - {example.id for example in examples})
        if missing:
            raise DatasetError(index.path, None, f"lists question {missing[0]!r}, which {table.name} does not hold")
        return scorable(file, examples)

    return QuestionSet(f"stark {kb} {split}", read, graph_finder(root, graph))


def _stark_example(record: Record, split: str) -> Example:
    try:
        answers = [str(number) for number in json.loads(record.text("answer_ids"))]
    except (ValueError, TypeError) as error:
        raise record.wrong(f"answer_ids are no list of numbers: {record.fields['answer_ids']!r}") from error
    ids = tuple(Counter(answers))
    return Example(
        id=record.text("id"),
        question=record.text("query"),
        answers=ids,
        answer_ids=tuple(map(EntityId, ids)),
        split=split,
    )


_NONDETERMINISTIC = "gold query with LIMIT and no ORDER BY"


def text2cypher(
    root: str | Path,
    split: str = "",
    graph: str | Path | None = None,
    database: str = "",
    questions: str = "questions.jsonl",
    nondeterministic: bool = False,
) -> QuestionSet:
    """Return the questions of one split and database.

    Args:
        root: folder that holds the question file.
        split: of a file that notes the split of each question; empty keeps all.
        graph: file or folder of the graph, when it does not lie in `root`, as `graph.yaml` does for Northwind.
        database: of a table that holds questions about several; empty keeps all.
        questions: JSON lines or a CSV table.
        nondeterministic: keep questions whose gold query may rightly give other rows (a LIMIT without ORDER BY).
    """

    def read() -> Loaded:
        file = read_records(found(Path(root), questions))
        kept = [
            record
            for record in file.records
            if (not split or record.fields.get("split") == split)
            and (not database or record.fields.get("database") == database)
        ]
        examples = [_text2cypher_example(record, split) for record in kept if nondeterministic or not _loose(record)]
        loose = len(kept) - len(examples)
        return Loaded(file, tuple(examples), {_NONDETERMINISTIC: loose} if loose else {})

    label = " ".join(filter(None, ("text2cypher", database or Path(root).resolve().name, split)))
    return QuestionSet(label, read, graph_finder(root, graph, "graph.yaml", "graph.jsonl"))


def _loose(record: Record) -> bool:
    flag = record.fields.get("nondeterministic")
    if isinstance(flag, bool):
        return flag
    words = record.text("cypher").upper().split()
    return "LIMIT" in words and "ORDER" not in words


def _text2cypher_example(record: Record, split: str) -> Example:
    rows = tuple(tuple(map(as_cell, row)) for row in record.several("gold_rows"))
    answers = tuple(map(str, record.several("answers"))) or first_column(rows)
    id = record.fields.get("id")
    return Example(
        id=str(id) if id else f"t2c-{record.place:05d}",
        question=record.text("question"),
        answers=answers,
        split=str(record.fields.get("split") or split),
        type=str(record.fields.get("type") or ""),
        query=record.text("cypher"),
        rows=rows,
    )


def first_column(rows: Sequence[Sequence[Cell]]) -> tuple[str, ...]:
    """Return the distinct values of a result's first column, as text, in its order."""
    return tuple(dict.fromkeys(str(row[0]) for row in rows if row and row[0] is not None))
