"""An answer with what it rests on: what was linked, and the walk through the graph as a tree."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from byokg.evaluation.records import answered
from byokg.graph.store import GraphStore
from byokg.types import INVERSE, Answer, EntityId, LinkedEntity, Node, PathEvidence, Properties, Triple

_ANSWERS = 20
"""Answers listed; the rest is counted."""


def as_json(question: str, answer: Answer) -> dict[str, Any]:
    """Return the answers with scores, and the rounds as `trace.jsonl` holds them."""
    trace = json.loads(answered(answer, seconds=0.0).trace)
    return {
        "question": question,
        "answers": [asdict(item) | {"grounded": item.grounded} for item in answer.items],
        "rounds": trace["rounds"],
    }


def show(answer: Answer, store: GraphStore, console: Console) -> None:
    """Print the answers, what was linked and how sure that is, and the evidence that the answers cite."""
    linked = list(dict.fromkeys(entity for one in answer.rounds for entity in one.linked.entities))
    found = [item for one in answer.rounds for item in one.evidence if isinstance(item, PathEvidence)]
    cited = {citation for item in answer.items for citation in item.citations}
    if answer.items:
        _show_answers(answer, console)
    else:
        console.print(_no_answer(linked))
    if linked:
        console.print()
        for entity in linked:
            console.print(_linked(entity), soft_wrap=True)
    shown = [item for item in found if item.id in cited]
    for item in shown:
        console.print()
        console.print(f"evidence {item.id}: a path, score {item.score:.2f}", highlight=False)
        console.print(_tree(item, store, ascii_only=console.options.ascii_only))
    rest = [item for item in found if item.id not in cited]
    if rest:
        best = max(rest, key=lambda item: item.score)
        path = " ".join(best.relations)
        console.print()
        console.print(
            Text(f"{len(rest)} other paths were considered, the best of them: {path}, score {best.score:.2f}", "dim")
        )


def _show_answers(answer: Answer, console: Console) -> None:
    for item in answer.items[:_ANSWERS]:
        line = Text(item.name, "bold green")
        if item.id is not None and item.id != item.name:
            line.append(f"  {item.id}", "not bold dim")
        console.print(line, soft_wrap=True)
    if len(answer.items) > _ANSWERS:
        console.print(Text(f"(+{len(answer.items) - _ANSWERS:,} more answers; all of them: --json)", "dim"))


def _no_answer(linked: Iterable[LinkedEntity]) -> Text:
    if any(True for _ in linked):
        return Text("no answer: no path from what was linked fits the question")
    return Text("no answer: nothing in the question names a node of the graph; name one with --entity ID")


def _linked(entity: LinkedEntity) -> Text:
    """Say what a piece of the question was taken for, and how sure that is."""
    sure = f"fuzzy, {entity.score:.2f}" if entity.method in ("fuzzy", "dense") else entity.method
    line = Text(f"linked “{entity.mention.text}” to ")
    line.append(entity.name, "bold")
    if entity.id != entity.name:
        line.append(f"  {entity.id}", "dim")
    return line.append(f"  ({sure})")


def _tree(item: PathEvidence, store: GraphStore, ascii_only: bool) -> Tree:
    """Draw the walks that the evidence shows, merged where they begin alike."""
    ids = dict.fromkeys([item.source, *(node for path in item.paths for node in path.nodes)])
    nodes = dict(zip(ids, store.nodes(ids), strict=True))
    root = Tree(_named(nodes[item.source], "bold"))
    branches: dict[tuple[int, ...], Tree] = {(): root}
    ends = set()
    for path in item.paths:
        place: tuple[int, ...] = ()
        for triple, inverse, node in zip(path.triples, path.inverse, path.nodes[1:], strict=True):
            parent, place = branches[place], (*place, triple.edge)
            if place not in branches:
                is_end = len(place) == len(path.triples)
                branches[place] = parent.add(_step(triple, inverse, nodes[node], is_end, ascii_only))
        ends.add(path.end)
    more = len(item.ends) - len(ends)
    if more > 0:
        cut = "or more, the search was cut" if item.truncated else "more"
        along = " ".join(item.relations)
        root.add(Text(f"(+{more:,} {cut}, by the same path: {along})", "dim"))
    return root


def _step(triple: Triple, inverse: bool, node: Node, is_end: bool, ascii_only: bool) -> Text:
    """Draw one edge and the node it leads to; the arrow points from head to tail, whichever way it is walked."""
    line, right, left = ("-", ">", "<") if ascii_only else ("─", "▶", "◀")
    before, after = (f"{left}{line} ", f" {line}{line} ") if inverse else (f"{line}{line} ", f" {line}{right} ")
    label = Text(before).append(triple.relation, "cyan")
    label.append(_bracketed(triple.properties), "dim").append(after)
    return label.append_text(_named(node, "bold green" if is_end else ""))


def _named(node: Node, style: str) -> Text:
    label = Text(node.name, style)
    return label.append(f"  {node.type}", "not bold dim") if node.type else label


def _bracketed(properties: Properties | Mapping[str, object]) -> str:
    return f" [{', '.join(f'{key} {value}' for key, value in properties.items())}]" if properties else ""
