"""Questions with the part of a graph around each, in the layout of the RoG data sets, which others train on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from byokg.errors import ConfigError
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.folder import holds
from byokg.files import json_line, new_folder
from byokg.graph.exporter import Progress, refuse_taken
from byokg.graph.store import GraphStore
from byokg.graph.traversal import k_hop_edges, triples
from byokg.types import EntityId


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
