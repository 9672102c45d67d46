"""Published data sets over graphs of their own, each in the layout in which its authors offer it.

- MetaQA: questions of 1, 2 and 3 hops over one graph of films. Source: Zhang et al., "Variational Reasoning for
  Question Answering with Knowledge Graph" (arXiv:1709.04071).
- PathQuestion: questions of 2 and 3 hops with their gold paths. Source: Zhou, Huang and Zhu, "An Interpretable
  Reasoning Network for Multi-Relation Question Answering" (arXiv:1801.04726).
- CronQuestions: questions about a graph whose facts hold for years. Source: Saxena et al., "Question Answering Over
  Temporal Knowledge Graphs" (arXiv:2106.01515).
- MedQA (USMLE): exam questions with four or five options. Source: Jin et al., "What Disease does this Patient Have?"
  (arXiv:2009.13081).
- STaRK (prime and mag): questions whose answers are nodes of a semi-structured graph. Source: Wu et al., "STaRK"
  (arXiv:2404.13207).
- Text2Cypher: questions with a gold Cypher query each, from neo4j-labs' tables.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

from byokg.errors import ConfigError, DatasetError, one_of
from byokg.evaluation.datasets.base import (
    Example,
    Loaded,
    QuestionFile,
    QuestionSet,
    Record,
    as_cell,
    graph_finder,
    load,
    locate,
    named_example,
    number_records,
    read_bytes,
    read_plain_lines,
    read_records,
    read_text,
    require_file,
)
from byokg.evaluation.datasets.result_sets import NODE
from byokg.evaluation.datasets.stark_graph import write_stark_graph
from byokg.files import csv_lines, write_file
from byokg.types import Cell, EntityId

Times = Literal["property", "relation", "both"]

_BRACKETED = re.compile(r"([^\[\]]*)\[([^\[\]]+)\]([^\[\]]*)")

_ANSWERS = re.compile(r"[^(]*\((.*)\)")
_PATHQUESTION_COLUMNS = 3
_END = "#<end>#"

_FACTS = ("kg/full.txt", "full.txt", "full.tsv")
_ENTITY_NAMES = ("kg/wd_id2entity_text.txt", "wd_id2entity_text.txt")
_RELATION_NAMES = ("kg/wd_id2relation_text.txt", "wd_id2relation_text.txt")
_CRON_COLUMNS = 5
_ID = re.compile(r"\bQ[0-9]+\b")

_STARK_GRAPHS = ("prime", "mag", "amazon")
_PROCESSED = {
    kb: [f"{place}/processed" for place in (f"skb/{kb}", kb, f"skb/{kb}kg", f"{kb}kg")] for kb in _STARK_GRAPHS
}

_NONDETERMINISTIC = "gold query with LIMIT and no ORDER BY"


class MetaQA(QuestionSet):
    """The questions of one hop count and split, or with `hops="all"` of all three, shortest first.

    `root` holds `kb.txt` and `{1,2,3}-hop/qa_{train,dev,test}.txt` (or `{1,2,3}-hop/vanilla/…`, as first
    published), each plain, `.xz` or `.gz`. A line is a question with its topic in square brackets, a tab,
    and the answers separated by `|`.

    An example's id is `metaqa-2-test-00017`: hop count, split, and the line number counted from 1.
    The brackets are dropped from its text. Names are ids in this graph, so the topic's id is its name.

    Raises:
        ConfigError: `hops` is not 1, 2, 3 or "all", or `split` is not train, dev or test.

    >>> MetaQA("data/metaqa", hops=4)
    Traceback (most recent call last):
    byokg.errors.ConfigError: MetaQA has questions of 1, 2 or 3 hops, or all, not dataset.hops=4
    """

    def __init__(self, root: str | Path, hops: int | Literal["all"], split: str = "test") -> None:
        if hops not in (1, 2, 3, "all"):
            raise ConfigError(f"MetaQA has questions of 1, 2 or 3 hops, or all, not dataset.hops={hops!r}")
        one_of("dataset.split=", split, ("train", "dev", "test"))
        name = f"qa_{split}.txt"

        def read_part(hops: int) -> Loaded:
            path = require_file(Path(root) / f"{hops}-hop", name, f"vanilla/{name}")
            return load(read_plain_lines(path), lambda record: _metaqa_example(record, hops, split))

        def read() -> Loaded:
            parts = [read_part(each) for each in ((1, 2, 3) if hops == "all" else (int(hops),))]
            checksum = parts[0].checksum
            if len(parts) > 1:
                checksum = hashlib.sha256("".join(part.checksum for part in parts).encode()).hexdigest()
            left_out = sum((Counter(part.left_out) for part in parts), Counter[str]())
            return Loaded(parts[0].path, checksum, tuple(e for part in parts for e in part.examples), left_out)

        super().__init__(f"metaqa {hops}-hop {split}", read, None, lambda: require_file(Path(root), "kb.txt"))


def _metaqa_example(record: Record, hops: int, split: str) -> Example:
    question, *fields = record.text("line").split("\t")
    bracketed = _BRACKETED.fullmatch(question)
    if bracketed is None:
        raise record.wrong(f"{question!r} does not have exactly one [topic] in brackets")
    if len(fields) != 1:
        raise record.wrong(f"has {len(fields)} tabs; expected QUESTION<tab>ANSWER|ANSWER…")
    answers = tuple(fields[0].split("|"))
    if not all(answer.strip() for answer in answers):
        raise record.wrong(f"has an empty answer in {fields[0]!r}")
    return Example(
        id=f"metaqa-{hops}-{split}-{record.place:05d}",
        question="".join(bracketed.groups()),
        answers=answers,
        answer_ids=tuple(map(EntityId, answers)),
        topic_entities=(bracketed[2],),
        topic_ids=(EntityId(bracketed[2]),),
        hops=hops,
        split=split,
    )


def pathquestion(root: str | Path, hops: int = 2, graph: str | Path | None = None) -> QuestionSet:
    """Return the questions of one length; there are no splits. Names are ids, and words are joined by `_`.

    `PQ-2H.txt` has a question, its answers and its path in each line, separated by tabs; `2H-kb.txt` holds the triples.

    Args:
        root: folder that holds both files.
        hops: 2 or 3.
        graph: file or folder of the graph, when it is another one.
    """
    if hops not in (2, 3):
        raise ConfigError(f"PathQuestion has questions of 2 or 3 hops, not dataset.hops={hops!r}")
    folder = Path(root)

    def read() -> Loaded:
        file = read_plain_lines(require_file(folder, f"PQ-{hops}H.txt"))
        return load(file, lambda record: _pathquestion_example(record, hops))

    def write(out: Path) -> None:
        out.mkdir(parents=True, exist_ok=True)
        lines = read_text(require_file(folder, f"{hops}H-kb.txt")).lines
        (out / "graph.tsv").write_text("".join(f"{line}\n" for _, line in lines), encoding="utf-8", newline="\n")

    own_graph = graph_finder(root, convert=f"{hops}H-graph")
    return QuestionSet(f"pathquestion {hops}-hop", read, graph, own_graph, write_graph=write)


def _pathquestion_example(record: Record, hops: int) -> Example:
    fields = record.text("line").split("\t")
    listed = _ANSWERS.fullmatch(fields[1]) if len(fields) == _PATHQUESTION_COLUMNS else None
    if listed is None or _END not in fields[2]:
        raise record.wrong("is not QUESTION<tab>ANSWER(ANSWER/…)<tab>TOPIC#RELATION#…#<end>#ANSWER")
    walk = fields[2].partition(_END)[0].split("#")
    nodes, relations = walk[::2], walk[1::2]
    steps = zip(pairwise(nodes), relations, strict=False)
    return named_example(
        f"pq-{hops}-{record.place:05d}",
        fields[0],
        {answer: answer for answer in listed[1].split("/") if answer},
        {nodes[0]: nodes[0]},
        hops=hops,
        support=tuple((head, relation, tail) for (head, tail), relation in steps),
        cluster="#".join((nodes[0], *relations)),
    )


def cronquestions(
    root: str | Path,
    split: str = "test",
    graph: str | Path | None = None,
    questions: str = "",
    times: Times = "property",
) -> QuestionSet:
    """Return the questions of one split.

    `questions/SPLIT.pickle` is a list of dictionaries, `kg/full.txt` has the columns head, relation, tail, start and
    end, and `kg/wd_id2entity_text.txt` and `kg/wd_id2relation_text.txt` name the ids. The pickles are read without
    importing anything; JSON and JSON lines with the same fields, sets as lists, are read, too.

    Ids are Wikidata's; a year is its own id. The text is the first paraphrase, or in the early release, which has none,
    the question with the names put in. An example's id counts the records from 1: `cron-test-000017`, since the
    published `uniq_id` is not unique.

    Args:
        root: folder that holds the files above.
        split: `train`, `valid` or `test`.
        graph: file or folder of the graph, when it is none of these.
        questions: name of the question file, if it is another one.
        times: what `write_graph` makes of the years: properties `start` and `end` of the edge, part of the relation
            (`position held: 2001`), as in ByoKG-RAG, or both.
    """
    one_of("dataset.times=", times, get_args(Times))
    names = (questions,) if questions else (f"questions/{split}.pickle", f"{split}.pickle", f"{split}.jsonl")
    folder = Path(root)

    def read() -> Loaded:
        path = require_file(folder, *names)
        file = _unpickled(path) if ".pickle" in path.suffixes or ".pkl" in path.suffixes else read_records(path)
        entities = _names(require_file(folder, *_ENTITY_NAMES))
        return load(file, lambda record: _cron_example(record, split, entities))

    own_graph = graph_finder(root, convert="graph")
    return QuestionSet(
        f"cronquestions {split}", read, graph, own_graph, write_graph=lambda out: _write_cron_graph(folder, out, times)
    )


def _write_cron_graph(root: Path, out: Path, times: Times) -> None:
    """Write `nodes.csv` and `edges.csv` from the published facts and names, every fact as one edge.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Experimental Setup", for years as part of the relation.

    Raises:
        DatasetError: a file is missing, or a line is no fact.
    """
    facts = read_text(require_file(root, *_FACTS))
    relation_file = locate(root, *_RELATION_NAMES)
    entities = _names(require_file(root, *_ENTITY_NAMES))
    relations = {} if relation_file is None else _names(relation_file)
    out.mkdir(parents=True, exist_ok=True)
    nodes: dict[str, None] = {}

    def edges() -> Iterator[tuple[str, ...]]:
        yield "head", "relation", "tail", *(() if times == "relation" else ("start:int", "end:int"))
        for number, line in facts.lines:
            fields = line.split("\t")
            if len(fields) != _CRON_COLUMNS:
                reason = f"has {len(fields)} fields; expected head, relation, tail, start, end separated by tabs"
                raise DatasetError(facts.path, number, reason)
            head, relation, tail, start, end = fields
            nodes.update({head: None, tail: None})
            label = relations.get(relation, relation)
            years = start if start == end else f"{start}-{end}"
            if times != "property" and years:
                label = f"{label}: {years}"
            yield head, label, tail, *(() if times == "relation" else (start, end))

    write_file(out / "edges.csv", csv_lines(edges()))
    write_file(out / "nodes.csv", csv_lines([("id", "name"), *((id, entities.get(id, id)) for id in nodes)]))


class _Plain(pickle.Unpickler):
    """Reads numbers, texts and containers; a pickle can name any function to be called, and none is."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in (("builtins", "set"), ("builtins", "frozenset"), ("__builtin__", "set")):
            return set
        raise pickle.UnpicklingError(f"it refers to {module}.{name}, and a question file holds plain data only")


def _unpickled(path: Path) -> QuestionFile:
    content = read_bytes(path)
    try:
        held = _Plain(io.BytesIO(content)).load()
    except Exception as error:  # a damaged pickle raises almost anything
        raise DatasetError(path, None, f"cannot be unpickled: {error}") from error
    records = number_records(path, held, "is a pickle of something else than a list of dictionaries")
    return QuestionFile(path, hashlib.sha256(content).hexdigest(), records)


def _names(path: Path) -> dict[str, str]:
    names = {}
    for number, line in read_text(path).lines:
        id, tab, name = line.partition("\t")
        if not tab:
            raise DatasetError(path, number, "has no tab between id and name")
        names[id] = name
    return names


def _cron_example(record: Record, split: str, names: Mapping[str, str]) -> Example:
    paraphrases = record.several("paraphrases")
    text = str(paraphrases[0]) if paraphrases else _ID.sub(lambda id: names.get(id[0], id[0]), record.text("question"))
    answers, topics = ([str(each) for each in record.several(field)] for field in ("answers", "entities"))
    id = f"cron-{split}-{record.place:06d}"
    return named_example(
        id,
        text,
        {id: names.get(id, id) for id in answers},
        {id: names.get(id, id) for id in topics},
        split=split,
        type=record.label("type"),
        answer_type=record.label("answer_type"),
        cluster=record.cluster(id),
    )


def medqa(
    root: str | Path, split: str = "test", graph: str | Path | None = None, options: bool = False, questions: str = ""
) -> QuestionSet:
    """Return the questions of one split; the text of the right option is the gold answer.

    Read are the official `questions/US/SPLIT.jsonl` (`question`, `options`, `answer`), QA-GNN's statements (`question`
    with `stem` and `choices`, `answerKey`), and `questions.jsonl` with `topic_entities` and `answer_ids` besides.

    Args:
        root: folder that holds the questions, and the graph as `graph.tsv`.
        split: `train`, `dev` or `test`; of a file that notes the split of each question, those of this one, and with
            an empty split all.
        graph: file or folder of the graph, when it is not `graph.tsv` in `root`.
        options: whether the options follow the question, one a line.
        questions: name of the question file, if it is none of the above.
    """
    official = (f"questions/US/{split}.jsonl", f"US/{split}.jsonl", f"{split}.jsonl", f"{split}.statement.jsonl")
    names = (questions,) if questions else (*official, "questions.jsonl")

    def read() -> Loaded:
        return load(
            read_records(require_file(Path(root), *names)),
            lambda record: _medqa_example(record, split, options),
            keep=lambda record: not split or record.fields.get("split", split) == split,
        )

    return QuestionSet(f"medqa {split}".rstrip(), read, graph, graph_finder(root, "graph.tsv", "graph.csv"))


def _medqa_example(record: Record, split: str, options: bool) -> Example:
    asked = record.fields.get("question")
    if isinstance(asked, dict):  # QA-GNN's
        choices = {str(each.get("label")): str(each.get("text")) for each in asked.get("choices", ())}
        text, key = str(asked.get("stem", "")), record.label("answerKey")
    else:
        choices = {label: str(option) for label, option in record.mapping("options").items()}
        text, key = record.text("question"), record.label("answer_idx")
    answer = choices.get(key) or record.label("answer")
    if not answer:
        raise record.wrong(f"the answer {key!r} is none of the options {', '.join(choices)}")
    topics = tuple(map(str, record.several("topic_entities")))
    return Example(
        id=record.label("id") or f"medqa-{split}-{record.place:05d}",
        question="\n".join([text, *(f"{label}. {option}" for label, option in choices.items() if options)]),
        answers=(answer,),
        answer_ids=tuple(EntityId(str(each)) for each in record.several("answer_ids")),
        topic_entities=topics,
        topic_ids=tuple(map(EntityId, topics)),
        split=record.label("split") or split,
        type=record.label("meta_info", "type"),
    )


def stark(root: str | Path, kb: str = "prime", split: str = "test", graph: str | Path | None = None) -> QuestionSet:
    """Return the questions of one split, in the order of `stark_qa.csv`.

    `KB/stark_qa/stark_qa.csv` has the columns `id`, `query` and `answer_ids`; `KB/split/SPLIT.index` lists the ids of a
    split. Nodes have numbers and no names, so an answer's name is its number.

    Args:
        root: folder that holds `prime`, `mag` or `amazon`, there or in `qa`.
        kb: one of them.
        split: `train`, `val`, `test`, or `test-0.1` if that index exists.
        graph: file or folder of the graph, with those numbers as node ids; None takes the conversion by `byokg data` of
            the published graph (`skb/prime/processed`), which does not come with the questions.
    """
    folder = one_of("dataset.kb=", kb, _STARK_GRAPHS)

    def read() -> Loaded:
        table = require_file(Path(root), f"{folder}/stark_qa/stark_qa.csv", f"qa/{folder}/stark_qa/stark_qa.csv")
        index = read_text(require_file(table.parents[1], f"split/{split}.index"))
        wanted = {line.strip() for _, line in index.lines}
        file = read_records(table)
        kept = [record for record in file.records if record.fields.get("id") in wanted]
        missing = sorted(wanted - {record.fields["id"] for record in kept})
        if missing:
            raise DatasetError(index.path, None, f"lists question {missing[0]!r}, which {table.name} does not hold")
        return load(replace(file, records=kept), lambda record: _stark_example(record, split))

    def write(out: Path) -> None:
        write_stark_graph(require_file(Path(root), *(f"{place}/node_info.pkl" for place in _PROCESSED[kb])).parent, out)

    own_graph = graph_finder(root, convert=f"{kb}-graph")
    return QuestionSet(f"stark {kb} {split}", read, graph, own_graph, write_graph=write)


def _stark_example(record: Record, split: str) -> Example:
    try:
        answers = [str(number) for number in json.loads(record.text("answer_ids"))]
    except (ValueError, TypeError) as error:
        raise record.wrong(f"answer_ids are no list of numbers: {record.fields['answer_ids']!r}") from error
    return named_example(record.text("id"), record.text("query"), {id: id for id in answers}, {}, split=split)


def text2cypher(
    root: str | Path,
    split: str = "",
    graph: str | Path | None = None,
    database: str = "",
    questions: str = "questions.jsonl",
    nondeterministic: bool = False,
) -> QuestionSet:
    """Return the questions of one split and database.

    `cypher` is the query; `rows` (or `gold_rows`) its recorded result, if any, of which `row_count` states the whole
    length; a node is `{"node": ID}`. Without rows, `answers` with `answer_ids` are the result of one column, in which
    repetitions do not count; with `tie`, any `return_count` of them. With `require=executable` a run executes the
    queries on the graph at hand, keeps the questions whose query runs and returns rows, and takes these as gold.
    Engines differ in types, order and number formats, so another engine is scored that way.

    Args:
        root: folder that holds the question file, and the graph as `nodes.csv` and `edges.csv` or `graph.yaml`.
        split: of a file with a split per question; empty keeps all.
        graph: file or folder of the graph, unless it lies in `root`, as `graph.yaml` does for Northwind.
        database: of a table with questions about several; empty keeps all.
        questions: JSON lines or a CSV table.
        nondeterministic: keep questions whose gold query may validly return other rows (a LIMIT without ORDER BY).
    """
    wanted = {name: value for name, value in (("split", split), ("database", database)) if value}

    def read() -> Loaded:
        return load(
            read_records(require_file(Path(root), questions)),
            lambda record: _text2cypher_example(record, split),
            keep=lambda record: all(record.fields.get(name) == value for name, value in wanted.items()),
            leave_out=lambda record, _: _NONDETERMINISTIC if not nondeterministic and _loose(record) else "",
        )

    folder = Path(root)

    def own_graph() -> Path:
        tables = locate(folder, "nodes.csv") and locate(folder, "edges.csv")
        return folder if tables else graph_finder(root, "graph.yaml", "graph.jsonl")()

    label = " ".join(filter(None, ("text2cypher", database or folder.resolve().name, split)))
    return QuestionSet(label, read, graph, own_graph)


def _loose(record: Record) -> bool:
    """True if the gold query of a record may return other rows on another run."""
    flag = record.fields.get("nondeterministic")
    if isinstance(flag, bool):
        return flag
    words = record.text("cypher").upper().split()
    return "LIMIT" in words and "ORDER" not in words


def _text2cypher_example(record: Record, split: str) -> Example:
    rows = tuple(tuple(map(as_cell, row)) for row in record.several("rows") or record.several("gold_rows"))
    answers, ids = tuple(map(str, record.several("answers"))), tuple(map(str, record.several("answer_ids")))
    count: int | None = record.count("row_count") or len(rows)
    if not rows:
        nodes = ids if len(ids) == len(answers) else ("",) * len(answers)
        rows = tuple(({NODE: id, "name": name} if id else name,) for id, name in zip(nodes, answers, strict=True))
        count = record.count("return_count") if record.fields.get("tie") else None
    id = record.label("id") or f"t2c-{record.place:05d}"
    topics = tuple(map(str, record.several("topic_ids")))
    return Example(
        id=id,
        question=record.text("question"),
        answers=answers or first_column(rows),
        answer_ids=tuple(map(EntityId, ids)),
        topic_ids=tuple(map(EntityId, topics)),
        hops=record.count("hops"),
        split=record.label("split") or split,
        type=record.label("type", "kind"),
        query=record.text("cypher"),
        rows=rows,
        row_count=count,
        cluster=record.cluster(id),
    )


def first_column(rows: Sequence[Sequence[Cell]]) -> tuple[str, ...]:
    """Return the distinct values of a result's first column, as text, in its order; of a node its name, else its id."""
    cells = [row[0] for row in rows if row and row[0] is not None]
    named = (cell.get("name", cell[NODE]) if isinstance(cell, Mapping) and NODE in cell else cell for cell in cells)
    return tuple(dict.fromkeys(map(str, named)))
