"""An answer with what it rests on: what was linked, and the walk through the graph as a tree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from byokg.evaluation.records import answered
from byokg.graph.store import GraphStore
from byokg.graph.traversal import follow_metapath
from byokg.retrieval.verbalize import names_of, verbalize
from byokg.types import (
    INVERSE,
    Answer,
    EntityId,
    Evidence,
    Feedback,
    LinkedEntity,
    Node,
    Path,
    PathEvidence,
    Properties,
)

_ANSWERS = 20
"""Answers listed; the rest is counted."""

_WALKS = 3
"""Answers to which evidence draws a walk; the rest is counted."""

_TREES = 3
"""Cited paths that are drawn; further ones are lines, as is all other evidence."""

_LINES = 5
"""Cited evidence that is not drawn, written as lines; the rest is counted."""


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
    evidence = [item for one in answer.rounds for item in one.evidence]
    found = [item for item in evidence if isinstance(item, PathEvidence)]
    cited = {citation for item in answer.items for citation in item.citations}
    if answer.items:
        _show_answers(answer, console)
    else:
        console.print(_no_answer(answer, linked))
    if linked:
        console.print()
        for entity in linked:
            console.print(_linked(entity), soft_wrap=True)
    arrows = _Arrows("-", "<", ">") if console.options.ascii_only else _Arrows("─", "◀", "▶")
    drawn: set[str] = set()
    for item in found:
        ends = set(item.ends)
        answers = [one.id for one in answer.items if one.id in ends and item.id in one.citations and one.id is not None]
        if answers and len(drawn) < _TREES:
            drawn.add(item.id)
            console.print()
            console.print(f"evidence {item.id}: a path, score {item.score:.1f}")
            console.print(_tree(item, answers, _walks(item, answers[:_WALKS], linked, store), store, arrows))
    _show_lines([item for item in evidence if item.id in cited - drawn], store, console)
    rest = [item for item in found if item.id not in cited]
    if rest:
        best = max(rest, key=lambda item: item.score)
        console.print()
        noun = "one other path" if len(rest) == 1 else f"{len(rest)} other paths"
        path = " ".join(
            arrows.around(label.removeprefix(INVERSE), label.startswith(INVERSE)) for label in best.relations
        )
        console.print(
            Text(f"{noun} considered; the best of them, score {best.score:.1f}: {path}", "dim"), soft_wrap=True
        )


def _show_lines(evidence: Sequence[Evidence], store: GraphStore, console: Console) -> None:
    """Print the first of the evidence that is not drawn, as a prompt shows it, and count the others."""
    if not evidence:
        return
    names = names_of(store, evidence[:_LINES], _WALKS)
    console.print()
    for item in evidence[:_LINES]:
        console.print(Text(f"evidence {item.id}: {verbalize(item, names, _WALKS)}"))
    if (more := len(evidence) - _LINES) > 0:
        console.print(Text(f"(+{more:,} more cited; all of it: --trace)", "dim"))


def _show_answers(answer: Answer, console: Console) -> None:
    for item in answer.items[:_ANSWERS]:
        line = Text(item.name, "bold green")
        if item.id is not None and item.id != item.name:
            line.append(f"  {item.id}", "not bold dim")
        if answer.rounds and not item.grounded:
            line.append("  (not supported by the graph)", "not bold dim")
        console.print(line, soft_wrap=True)
    if (more := len(answer.items) - _ANSWERS) > 0:
        console.print(Text(f"(+{more:,} more {'answer' if more == 1 else 'answers'}; all of them: --json)", "dim"))


def _no_answer(answer: Answer, linked: Sequence[LinkedEntity]) -> Text:
    if not answer.rounds:
        return Text("no answer: the language model gave none")
    if any(not isinstance(item, Feedback) for one in answer.rounds for item in one.evidence):
        return Text("no answer: nothing that was found answers the question; all of it: --trace")
    if linked:
        return Text("no answer: no path from what was linked fits the question")
    return Text("no answer: nothing in the question names a node of the graph; name one with --entity ID")


def _linked(entity: LinkedEntity) -> Text:
    """Say what a piece of the question was taken for, and how sure that is."""
    sure = f"{entity.method}, {entity.score:.2f}" if entity.method in ("fuzzy", "dense") else entity.method
    line = Text(f"linked {entity.mention.text!r} to ")
    line.append(entity.name, "bold")
    if entity.id != entity.name:
        line.append(f"  {entity.id}", "dim")
    return line.append(f"  ({sure})")


@dataclass(frozen=True)
class _Arrows:
    """The characters of an arrow: its line, and its two heads."""

    line: str
    left: str
    right: str

    def around(self, label: str, inverse: bool) -> str:
        """Draw an arrow from the edge's head to its tail, read from left to right."""
        if inverse:
            return f"{self.left}{self.line} {label} {self.line}{self.line}"
        return f"{self.line}{self.line} {label} {self.line}{self.right}"


def _walks(
    item: PathEvidence, answers: Sequence[EntityId], linked: Sequence[LinkedEntity], store: GraphStore
) -> list[Path]:
    """Return one walk to each answer: evidence keeps walks for its first ends only, and answers may be others."""
    kept = {path.end: path for path in item.paths}
    lacking = [end for end in answers if end not in kept]
    if lacking:
        mentions = {entity.mention for entity in linked if entity.id == item.source}
        # Not through what another piece of the question names, unless the answer is to be had no other way.
        avoid = [item.source, *(entity.id for entity in linked if entity.mention not in mentions)]
        walks = follow_metapath(store, [item.source], item.relations, avoid=avoid)
        if not set(lacking) <= set(store.ids(walks.ends)):
            walks = follow_metapath(store, [item.source], item.relations)
        kept |= {path.end: path for path in walks.paths(store.numbers(lacking))}
    return [kept[end] for end in answers]


def _tree(
    item: PathEvidence, answers: Sequence[EntityId], walks: Sequence[Path], store: GraphStore, arrows: _Arrows
) -> Tree:
    """Draw walks from the topic entity to the first answers, merged where they begin alike; count what is left out."""
    ids = dict.fromkeys([item.source, *(node for path in walks for node in path.nodes)])
    nodes = dict(zip(ids, store.nodes(ids), strict=True))
    root = Tree(_named(nodes[item.source], "bold"))
    branches: dict[tuple[int, ...], Tree] = {(): root}
    for path in walks:
        place: tuple[int, ...] = ()
        for triple, inverse, node in zip(path.triples, path.inverse, path.nodes[1:], strict=True):
            parent, place = branches[place], (*place, triple.edge)
            if place not in branches:
                label = Text(f"{arrows.around(triple.relation, inverse)} ", "cyan")
                label.append_text(_named(nodes[node], "bold green" if len(place) == len(path.triples) else ""))
                branches[place] = parent.add(label.append(_bracketed(triple.properties), "not bold dim"))
    left_out = []
    if more := len(answers) - len(walks):
        left_out.append(f"+{more:,} more {'answer' if more == 1 else 'answers'}")
    if others := len(item.ends) - len(answers):
        left_out.append("one end that is no answer" if others == 1 else f"{others:,} ends that are no answers")
    if item.truncated:
        left_out.append("the search was cut short")
    if left_out:
        root.add(Text(f"({', '.join(left_out)})", "dim"))
    return root


def _named(node: Node, style: str) -> Text:
    label = Text().append(node.name, style)
    return label.append(f"  {node.type}", "not bold dim") if node.type else label


def _bracketed(properties: Properties) -> str:
    return f"  ({', '.join(f'{key} {value}' for key, value in properties.items())})" if properties else ""
