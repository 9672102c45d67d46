"""WebQSP, ComplexWebQuestions and GrailQA as their authors published them, and as ToG ships the first two.

Answers and topics have Freebase ids (`m.06w2sn5`), names beside them. What ToG adds is `topic_entity`, a mapping of ids
to names, without which CWQ has no topics.

Source: Yih et al. 2016, "The Value of Semantic Parse Labeling for Knowledge Base Question Answering"; Talmor and
Berant, "The Web as a Knowledge-Base for Answering Complex Questions" (arXiv:1803.06643); Gu et al., "Beyond I.I.D."
(arXiv:2011.07743); Sun et al., "Think-on-Graph" (arXiv:2307.07697).

Questions that each bring their own subgraph, in the layout of RoG's WebQSP and CWQ: JSON lines or Parquet.

A record has `id`, `question`, `answer`, `q_entity`, `a_entity` (lists of names) and `graph`, a list of
`[head, relation, tail]`. Names are ids. The subgraphs are held packed and unpacked one at a time.

Source: Luo et al., "Reasoning on Graphs" (arXiv:2310.01061v2), data sets `rmanluo/RoG-webqsp` and `rmanluo/RoG-cwq`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from byokg.errors import DatasetError, GraphError
from byokg.evaluation.datasets.base import Example, found, locate
from byokg.evaluation.datasets.question_set import (
    Ids,
    Loaded,
    QuestionSet,
    Record,
    RecordFile,
    graph_finder,
    read_records,
    scorable,
    stream_lines,
    stream_parquet,
)
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.triples import from_record
from byokg.types import EntityId

GRAPHS = ("graph.tsv", "graph.csv", "graph.jsonl", "triples.tsv")
"""Names under which a graph that lies beside the questions is found."""


def webqsp(
    root: str | Path, split: str = "test", graph: str | Path | None = None, ids: Ids = "ids", questions: str = ""
) -> QuestionSet:
    """Return WebQSP: `WebQSP.SPLIT.json` (or in `data`), or ToG's `WebQSP.json`.

    An answer of any parse is a gold answer; `Example.parses` keeps them apart. Questions whose parses have no answer
    are left out (11 of the 1,639 test questions).

    Args:
        root: folder that holds the file.
        split: `train` or `test`.
        graph: file or folder of the graph, when it does not lie in `root`.
        ids: "names" for a graph that is keyed by name.
        questions: name of the file, where it is none of these.
    """
    names = (questions,) if questions else (f"WebQSP.{split}.json", f"data/WebQSP.{split}.json", "WebQSP.json")

    def read() -> Loaded:
        file = read_records(found(Path(root), *names))
        return scorable(file, [_webqsp(record, split) for record in file.records])

    return QuestionSet(f"webqsp {split}", read, graph_finder(root, graph, *GRAPHS), ids)


def cwq(
    root: str | Path, split: str = "test", graph: str | Path | None = None, ids: Ids = "ids", questions: str = ""
) -> QuestionSet:
    """Return ComplexWebQuestions: `ComplexWebQuestions_SPLIT.json`, or ToG's `cwq.json`. Arguments as for `webqsp`.

    The type is the kind of composition: conjunction, composition, comparative or superlative.
    """
    names = (questions,) if questions else (f"ComplexWebQuestions_{split}.json", "cwq.json")

    def read() -> Loaded:
        file = read_records(found(Path(root), *names))
        return scorable(file, [_cwq(record, split) for record in file.records])

    return QuestionSet(f"cwq {split}", read, graph_finder(root, graph, *GRAPHS), ids)


def grailqa(
    root: str | Path, split: str = "dev", graph: str | Path | None = None, ids: Ids = "ids", questions: str = ""
) -> QuestionSet:
    """Return GrailQA: `grailqa_v1.0_SPLIT.json`, or `grailqa.json`. Arguments as for `webqsp`.

    The type is the level of generalisation: i.i.d., compositional or zero-shot. The published test questions have no
    answers.
    """
    names = (questions,) if questions else (f"grailqa_v1.0_{split}.json", "grailqa.json")

    def read() -> Loaded:
        file = read_records(found(Path(root), *names))
        return scorable(file, [_grailqa(record, split) for record in file.records])

    return QuestionSet(f"grailqa {split}", read, graph_finder(root, graph, *GRAPHS), ids)


def _webqsp(record: Record, split: str) -> Example:
    parses = [parse for parse in record.several("Parses") if isinstance(parse, dict)]
    answers: dict[str, str] = {}
    for parse in parses:
        answers |= {id: name for id, name in _answers(record, parse.get("Answers")).items() if id not in answers}
    topics = _topics(record) or {
        parse["TopicEntityMid"]: parse.get("TopicEntityName") or parse["TopicEntityMid"]
        for parse in parses
        if parse.get("TopicEntityMid")
    }
    chain = next((parse["InferentialChain"] for parse in parses if parse.get("InferentialChain")), ())
    return Example(
        id=record.text("QuestionId"),
        question=record.text("RawQuestion", "ProcessedQuestion"),
        answers=tuple(answers.values()),
        answer_ids=tuple(map(EntityId, answers)),
        topic_entities=tuple(topics.values()),
        topic_ids=tuple(map(EntityId, topics)),
        hops=len(chain) or None,
        split=split,
        parses=tuple(tuple(_answers(record, parse.get("Answers"))) for parse in parses),
        query=next((str(parse["Sparql"]) for parse in parses if parse.get("Sparql")), ""),
    )


def _answers(record: Record, answers: object) -> dict[str, str]:
    """Return the names of a parse's answers by id; a value is its own name."""
    if answers is None:
        return {}
    if not isinstance(answers, list):
        raise record.wrong(f"has a parse whose Answers are no list: {answers!r:.200}")
    return {
        str(each["AnswerArgument"]): str(each.get("EntityName") or each["AnswerArgument"])
        for each in _mappings(record, answers, "AnswerArgument")
    }


def _cwq(record: Record, split: str) -> Example:
    listed = record.fields.get("answers", record.fields.get("answer"))
    names: dict[str, str] = {}
    aliases: list[tuple[str, ...]] = []
    ids: list[EntityId] = []
    empty: tuple[str, ...] = ()
    for each in [listed] if isinstance(listed, str) else listed or ():
        if isinstance(each, str):
            key, name, also = each, each, empty
        elif isinstance(each, dict) and each.get("answer_id"):
            key, name = str(each["answer_id"]), str(each.get("answer") or each["answer_id"])
            also = tuple(map(str, each.get("aliases") or ()))
        else:
            raise record.wrong(f"has an answer that is neither a name nor has an answer_id: {each!r:.200}")
        if key.strip() and key not in names:
            names[key] = name
            aliases.append(also)
            ids += [] if isinstance(each, str) else [EntityId(key)]
    topics = _topics(record)
    return Example(
        id=record.text("ID"),
        question=record.text("question"),
        answers=tuple(names.values()),
        answer_ids=tuple(ids),
        topic_entities=tuple(topics.values()),
        topic_ids=tuple(map(EntityId, topics)),
        split=split,
        type=str(record.fields.get("compositionality_type") or ""),
        aliases=tuple(aliases) if any(aliases) else (),
        query=str(record.fields.get("sparql") or ""),
    )


def _grailqa(record: Record, split: str) -> Example:
    answers = {
        str(each["answer_argument"]): str(each.get("entity_name") or each["answer_argument"])
        for each in _mappings(record, record.several("answer"), "answer_argument")
    }
    nodes = record.mapping("graph_query").get("nodes") or ()
    topics = {
        str(node["id"]): str(node.get("friendly_name") or node["id"])
        for node in _mappings(record, nodes, "id")
        if node.get("node_type") == "entity" and not node.get("question_node")
    }
    edges = record.mapping("graph_query").get("edges") or ()
    return Example(
        id=record.text("qid"),
        question=record.text("question"),
        answers=tuple(answers.values()),
        answer_ids=tuple(map(EntityId, answers)),
        topic_entities=tuple(topics.values()),
        topic_ids=tuple(map(EntityId, topics)),
        hops=len(edges) or None,
        split=split,
        type=str(record.fields.get("level") or ""),
        query=str(record.fields.get("sparql_query") or ""),
    )


def _mappings(record: Record, values: Iterable[Any], key: str) -> list[Mapping[str, Any]]:
    found = list(values)
    for value in found:
        if not isinstance(value, dict) or key not in value:
            raise record.wrong(f"has an entry without {key}: {value!r:.200}")
    return found


def _topics(record: Record) -> dict[str, str]:
    """Return the topics that ToG annotates: names by id."""
    return {str(id): str(name) for id, name in record.mapping("topic_entity").items()}


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
