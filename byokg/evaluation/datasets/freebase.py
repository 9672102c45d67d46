"""WebQSP, ComplexWebQuestions and GrailQA over Freebase: as published, and the first two as ToG and RoG ship them.

Answers and topics have Freebase ids (`m.06w2sn5`), names beside them. What ToG adds is `topic_entity`, a mapping of ids
to names, without which CWQ has no topics. RoG's questions each bring their own subgraph, whose ids are names: a record
of JSON lines or Parquet has `id`, `question`, `answer`, `q_entity`, `a_entity` (lists of names) and `graph`, a list of
`[head, relation, tail]`.

Source: Yih et al. 2016, "The Value of Semantic Parse Labeling for Knowledge Base Question Answering"; Talmor and
Berant, "The Web as a Knowledge-Base for Answering Complex Questions" (arXiv:1803.06643); Gu et al., "Beyond I.I.D."
(arXiv:2011.07743); Sun et al., "Think-on-Graph" (arXiv:2307.07697); Luo et al., "Reasoning on Graphs"
(arXiv:2310.01061v2), data sets `rmanluo/RoG-webqsp` and `rmanluo/RoG-cwq`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from byokg.errors import ConfigError, DatasetError
from byokg.evaluation.datasets.base import (
    Example,
    Ids,
    Loaded,
    QuestionSet,
    Record,
    SubgraphSet,
    graph_finder,
    load,
    locate,
    named_example,
    read_json_lines,
    read_parquet,
    read_records,
    require_file,
)
from byokg.evaluation.datasets.folder import holds
from byokg.files import in_bytes, json_line, new_folder
from byokg.graph.exporter import Progress, refuse_taken
from byokg.graph.store import GraphStore
from byokg.graph.traversal import k_hop_edges, triples
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
        questions: name of the file, if it is none of these.
    """
    files = (f"WebQSP.{split}.json", f"data/WebQSP.{split}.json", "WebQSP.json")
    return _published(f"webqsp {split}", root, questions, files, lambda record: _webqsp(record, split), graph, ids)


def cwq(
    root: str | Path, split: str = "test", graph: str | Path | None = None, ids: Ids = "ids", questions: str = ""
) -> QuestionSet:
    """Return ComplexWebQuestions: `ComplexWebQuestions_SPLIT.json`, or ToG's `cwq.json`. Arguments as for `webqsp`.

    The type is the kind of composition: conjunction, composition, comparative or superlative.
    """
    files = (f"ComplexWebQuestions_{split}.json", "cwq.json")
    return _published(f"cwq {split}", root, questions, files, lambda record: _cwq(record, split), graph, ids)


def grailqa(
    root: str | Path, split: str = "dev", graph: str | Path | None = None, ids: Ids = "ids", questions: str = ""
) -> QuestionSet:
    """Return GrailQA: `grailqa_v1.0_SPLIT.json`, or `grailqa.json`. Arguments as for `webqsp`.

    The type is the level of generalisation: i.i.d., compositional or zero-shot. The published test questions have no
    answers.
    """
    files = (f"grailqa_v1.0_{split}.json", "grailqa.json")
    return _published(f"grailqa {split}", root, questions, files, lambda record: _grailqa(record, split), graph, ids)


def _published(
    name: str,
    root: str | Path,
    questions: str,
    files: Sequence[str],
    example: Callable[[Record], Example],
    graph: str | Path | None,
    ids: Ids,
) -> QuestionSet:
    def read() -> Loaded:
        return load(read_records(require_file(Path(root), *((questions,) if questions else files))), example)

    return QuestionSet(name, read, graph, graph_finder(root, *GRAPHS), ids)


def _webqsp(record: Record, split: str) -> Example:
    parses = [parse for parse in record.several("Parses") if isinstance(parse, dict)]
    named = [_answers(record, parse.get("Answers")) for parse in parses]
    answers: dict[str, str] = {}
    for id, name in (pair for each in named for pair in each.items()):
        answers.setdefault(id, name)
    topics = _topics(record) or {
        parse["TopicEntityMid"]: parse.get("TopicEntityName") or parse["TopicEntityMid"]
        for parse in parses
        if parse.get("TopicEntityMid")
    }
    return named_example(
        record.text("QuestionId"),
        record.text("RawQuestion", "ProcessedQuestion"),
        answers,
        topics,
        hops=len(next((parse["InferentialChain"] for parse in parses if parse.get("InferentialChain")), ())) or None,
        split=split,
        parses=tuple(map(tuple, named)),
        query=next((str(parse["Sparql"]) for parse in parses if parse.get("Sparql")), ""),
    )


def _answers(record: Record, answers: object) -> dict[str, str]:
    """Return the names of a parse's answers by id; a value is its own name."""
    if answers is None:
        return {}
    if not isinstance(answers, list):
        raise record.wrong(f"has a parse whose Answers are no list: {answers!r:.200}")
    return _names_by_id(record, answers, "AnswerArgument", "EntityName")


def _cwq(record: Record, split: str) -> Example:
    listed = record.fields.get("answers", record.fields.get("answer"))
    names: dict[str, str] = {}
    aliases: list[tuple[str, ...]] = []
    ids: list[EntityId] = []
    for each in [listed] if isinstance(listed, str) else listed or ():
        if isinstance(each, dict) and each.get("answer_id"):
            key, name = str(each["answer_id"]), str(each.get("answer") or each["answer_id"])
        elif isinstance(each, str):
            key = name = each
        else:
            raise record.wrong(f"has an answer that is neither a name nor has an answer_id: {each!r:.200}")
        if key.strip() and key not in names:
            names[key] = name
            aliases.append(() if isinstance(each, str) else tuple(map(str, each.get("aliases") or ())))
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
        type=record.label("compositionality_type"),
        aliases=tuple(aliases) if any(aliases) else (),
        query=record.label("sparql"),
        cluster=record.cluster(record.text("ID")),
    )


def _grailqa(record: Record, split: str) -> Example:
    graph = record.mapping("graph_query")
    nodes = _mappings(record, graph.get("nodes") or (), "id")
    topics = [node for node in nodes if node.get("node_type") == "entity" and not node.get("question_node")]
    return named_example(
        record.text("qid"),
        record.text("question"),
        _names_by_id(record, record.several("answer"), "answer_argument", "entity_name"),
        _names_by_id(record, topics, "id", "friendly_name"),
        hops=len(graph.get("edges") or ()) or None,
        split=split,
        type=record.label("level"),
        query=record.label("sparql_query"),
    )


def _names_by_id(record: Record, values: Iterable[Any], id: str, name: str) -> dict[str, str]:
    """Return names by id from mappings that hold both under these fields; without a name the id stands for it."""
    return {str(each[id]): str(each.get(name) or each[id]) for each in _mappings(record, values, id)}


def _mappings(record: Record, values: Iterable[Any], key: str) -> list[Mapping[str, Any]]:
    listed = list(values)
    for value in listed:
        if not isinstance(value, dict) or key not in value:
            raise record.wrong(f"has an entry without {key}: {value!r:.200}")
    return listed


def _topics(record: Record) -> dict[str, str]:
    """Return the topics that ToG annotates: names by id."""
    return {str(id): str(name) for id, name in record.mapping("topic_entity").items()}


class Rog(SubgraphSet):
    """The questions of one split with their subgraphs; a `SubgraphDataset`.

    Args:
        root: folder that holds `SPLIT.jsonl` (or `.xz`, `.gz`), or `SPLIT-*.parquet`, there or in `data`; or one file.
        split: `train`, `validation`, `test`, or whatever the files are named after.
        graph: file or folder of one graph for all questions. Left out, it is the file of JSON lines itself: the union
            of all subgraphs in it, for runs with `graph.per_question=false`.
        questions: name of the file, if it is none of these.
        name: of the set, for tables; the folder's or the file's own name when empty.
    """

    def __init__(
        self,
        root: str | Path,
        split: str = "test",
        graph: str | Path | None = None,
        questions: str = "",
        name: str = "",
    ) -> None:
        def read() -> Loaded:
            paths = _rog_files(Path(root), split, questions)
            file = read_parquet(paths) if paths[0].suffix == ".parquet" else read_json_lines(paths[0])
            return load(file, example)

        def example(record: Record) -> Example:
            id, answers = record.text("id"), _texts(record, "answer")
            self.pack(record, id)
            topics = _texts(record, "q_entity")
            return Example(
                id=id,
                question=record.text("question"),
                answers=answers,
                answer_ids=tuple(map(EntityId, _texts(record, "a_entity") or answers)),
                topic_entities=topics,
                topic_ids=tuple(map(EntityId, topics)),
                split=split,
            )

        def own_graph() -> Path:
            path = _rog_files(Path(root), split, questions)[0]
            if path.suffix == ".parquet":
                reason = "has a graph for each question only; leave graph.per_question=false out, or name one graph"
                raise DatasetError(path, None, f"{reason} with graph.path=")
            return path

        place = Path(root).resolve()
        super().__init__(f"{name or (place.stem if place.is_file() else place.name)} {split}", read, graph, own_graph)


def _rog_files(root: Path, split: str, questions: str) -> list[Path]:
    if root.is_file():
        return [root]
    path = locate(root, *([questions] if questions else [f"{split}.jsonl", f"data/{split}.jsonl"]))
    if path is not None:
        return [path]
    for folder in (root, root / "data"):
        if paths := sorted(folder.glob(questions or f"{split}*.parquet"), key=in_bytes):
            return paths
    wanted = questions or f"{split}.jsonl (nor .xz, .gz) and no {split}*.parquet"
    raise DatasetError(root, None, f"holds no {wanted}; point dataset.root at the folder that does")


def _texts(record: Record, field: str) -> tuple[str, ...]:
    values = record.several(field)
    if not all(isinstance(value, str) for value in values):
        raise record.wrong(f"field {field!r} should list names, not {list(values)!r}")
    return tuple(dict.fromkeys(value for value in values if value.strip()))


def write_subgraphs(
    examples: Sequence[Example], store: GraphStore, out: str | Path, hops: int = 2, progress: Progress | None = None
) -> Mapping[str, int]:
    """Write `SPLIT.jsonl`: one question per line, with `graph`, the edges within some hops of its topics in both
    directions.

    Nodes are written by name, as in the published files; by id if several of one subgraph share a name.
    `dataset=rog dataset.root=OUT` reads the folder. A topic that is no node has no edges.

    Args:
        examples: the questions, with topics as ids of the graph, and their gold answers, which are written, too.
        store: read one question and one hop at a time.
        out: folder to write; appears only when complete.
        hops: 1 or more.
        progress: called with the number of questions and edges written.

    Returns:
        Number of questions per file.

    Raises:
        GraphExists: `out` exists and is not empty.
        ConfigError: two questions of a split have the same id.

    Source: Reasoning on Graphs (arXiv:2310.01061), "Datasets": subgraphs within the hops of the questions.
    """
    seen: set[tuple[str, str]] = set()
    counts, edges_done = Counter[str](), 0
    with new_folder(out, overwrite=False, refuse=refuse_taken) as partial:
        for done, example in enumerate(examples, 1):
            split = example.split or "test"
            if (split, example.id) in seen:
                raise ConfigError(f"two questions of {split} have the id {example.id!r}; choose one with ids=")
            seen.add((split, example.id))
            record, count = _record(example, store, hops)
            with (partial / f"{split}.jsonl").open("ab") as file:
                file.write(json_line(record))
            counts[split] += 1
            edges_done += count
            if progress:
                progress(done, edges_done)
    return dict(counts)


def _record(example: Example, store: GraphStore, hops: int) -> tuple[dict[str, object], int]:
    topics = [id for id in example.topic_ids if holds(store, (id,))]
    found = triples(store, k_hop_edges(store, topics, hops).edges) if topics else []
    ids = list(dict.fromkeys([*topics, *(end for each in found for end in (each.head, each.tail))]))
    shown = _shown(store, ids)
    edges = dict.fromkeys((shown[each.head], each.relation, shown[each.tail]) for each in found)
    return {
        "id": example.id,
        "question": example.question,
        "answer": list(example.answers),
        "q_entity": _spelled(example.topic_ids, example.topic_entities, shown),
        "a_entity": _spelled(example.answer_ids, example.answers, shown),
        "graph": [list(edge) for edge in edges],
    }, len(edges)


def _shown(store: GraphStore, ids: Sequence[EntityId]) -> dict[EntityId, str]:
    nodes = store.nodes(ids)
    bearers = Counter(node.name for node in nodes)
    taken = set(ids)
    return {
        node.id: node.name if bearers[node.name] == 1 and (node.name == node.id or node.name not in taken) else node.id
        for node in nodes
    }


def _spelled(ids: Sequence[EntityId], names: Sequence[str], shown: Mapping[EntityId, str]) -> list[str]:
    """Return the names of nodes in the subgraph; nodes outside keep the data set's names."""
    given: Iterable[str] = names if len(names) == len(ids) else ids
    return [shown.get(id, name) for id, name in zip(ids, given, strict=True)] or list(names)
