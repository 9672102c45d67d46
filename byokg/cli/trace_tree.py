"""What led to an answer, round by round, as a tree: the trace of a question that was just asked, or recorded."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from byokg.graph.store import GraphStore
from byokg.pipeline.loop import ENDED
from byokg.retrieval.verbalize import Hop, folded, node_text, note, plain, shown_name, value_text, walk_text
from byokg.types import EntityId, Node

_LISTED = 8
"""Items of one kind that are listed; the rest is counted."""

_ENDS = 5
"""Ends, or rows, of one item that are listed."""

_ASCII = {"→": "->", "←": "<-", "…": "...", "–": "-"}

_EMPTY: tuple[object, ...] = (None, "", [], {}, ())
"""What a step notes where there was nothing of the kind; numbers say something also when they are 0."""

_DIGEST = 8
"""Characters of a digest or key: enough to find it."""


def show_trace(record: Mapping[str, Any], console: Console, store: GraphStore | None = None) -> None:
    """Print a trace.

    Args:
        record: a line of `trace.jsonl`; see `evaluation/trace.py`.
        console: where to.
        store: gives the names of nodes; without one those that the trace does not name stand as their ids.
    """
    names = _names(record, store)
    cited = {citation for answer in record["answers"] for citation in answer["citations"]}
    root = Tree(Text(f"question {record['id']}", "bold"))
    for one in record["rounds"]:
        _add_round(root, one, names, cited)
    if record.get("calls"):
        calls = root.add(Text("language model", "bold"))
        for number, call in enumerate(record["calls"], start=1):
            shown = f", shown {_ranges(call['shown'])}" if call["shown"] else ""
            reply = f"prompt {call['prompt'][:_DIGEST]}, reply {call['reply'][:_DIGEST]}"
            calls.add(Text(f"{number}. {call['stage']}  ").append(f"{reply}{shown}", "dim"))
    _add_listed(root.add(Text("answers" if record["answers"] else "no answer", "bold")), record["answers"], _answer)
    if console.options.ascii_only:
        _in_ascii(root)
    console.print(root)


def _add_round(root: Tree, record: Mapping[str, Any], names: Mapping[EntityId, str], cited: set[str]) -> None:
    branch = root.add(Text(f"round {record['number'] + 1}", "bold"))
    written = list(_written(record["artifacts"]))
    if written:
        proposed = branch.add("proposed")
        for line in written:
            proposed.add(line)
    links = [*record["linked"]["entities"], *record["linked"]["drafts"]]
    drafts = len(record["linked"]["drafts"])
    if links or record["linked"]["literals"]:
        linked = branch.add("linked")
        marked = [(link, position >= len(links) - drafts) for position, link in enumerate(links)]
        _add_listed(linked, marked, lambda each: _link(*each))
        for literal in record["linked"]["literals"]:
            linked.add(Text(f"{literal['mention']['text']!r} is the {literal['kind']} {literal['value']}"))
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for item in record["evidence"]:
        found["feedback" if item["kind"] == "Feedback" else item["retriever"]].append(item)
    for step in record["steps"]:
        branch.add(_step(step))
    for retriever, items in found.items():
        count = "1 item" if len(items) == 1 else f"{len(items):,} items"
        _add_listed(branch.add(f"{retriever}: {count}"), items, lambda item: _evidence(item, names, cited))
    if not found and all(step["stage"] != ENDED for step in record["steps"]):
        branch.add(Text("nothing was found", "dim"))


def _add_listed(branch: Tree, items: Sequence[Any], text: Callable[[Any], Text]) -> None:
    """List the first items under a branch, and count the rest."""
    for item in items[:_LISTED]:
        branch.add(text(item))
    if (more := len(items) - _LISTED) > 0:
        branch.add(Text(f"(+{more:,} more)", "dim"))


def _written(artifacts: Mapping[str, Any]) -> Iterator[Text]:
    """Yield a line for each kind of artifact that was written."""
    if artifacts["finished"]:
        yield Text("finished")
    if artifacts["mentions"]:
        yield Text(f"entities: {' | '.join(plain(mention['text']) for mention in artifacts['mentions'])}")
    for path in artifacts["paths"][:_LISTED]:
        hops = [Hop.of(relation) for relation in path["relations"]]
        steps = " / ".join(f"^{hop.label}" if hop.inverse else hop.label for hop in hops)
        yield Text(f"path: {steps}").append(f"  {_score(path['score'])}", "dim")
    if (more := len(artifacts["paths"]) - _LISTED) > 0:
        yield Text(f"(+{more} more paths)", "dim")
    for query in artifacts["queries"]:
        yield Text(f"{query['language']}: {plain(query['text'])}")
    if artifacts["draft_answers"]:
        yield Text(f"draft answers: {' | '.join(map(plain, artifacts['draft_answers']))}")
    if artifacts["bfsql"]:
        yield Text(f"bfsql: {plain(artifacts['bfsql'])}")


def _link(link: Mapping[str, Any], draft: bool) -> Text:
    mention = link["mention"]["text"]
    line = Text(f"{'draft ' if draft else ''}{mention!r} to ").append(plain(link["name"]), "bold")
    if link["id"] != link["name"]:
        line.append(f"  {link['id']}", "dim")
    return line.append(f"  ({link['method']}, {_score(link['score'])})", "dim")


def _step(step: Mapping[str, Any]) -> Text:
    parts = [_noted(part) for part in (step["given"], step["got"])]
    return Text(f"{step['stage']}  ").append(plain(" → ".join(part for part in parts if part)), "dim")


def _noted(record: Mapping[str, Any]) -> str:
    """Write what a step was given, or what came of it, less what is empty."""
    return "; ".join(f"{key}: {_noted_value(value)}" for key, value in record.items() if value not in _EMPTY)


def _noted_value(value: object) -> str:
    if isinstance(value, Mapping):
        return f"({_noted(value)})"
    if isinstance(value, list | tuple):
        return " | ".join(map(_noted_value, value))
    return value if isinstance(value, str) else _plain_json(value)


def _evidence(item: Mapping[str, Any], names: Mapping[EntityId, str], cited: set[str]) -> Text:
    score = "" if item["kind"] == "Feedback" else f" {_score(item['score'])}"
    line = Text(item["id"], "bold green" if item["id"] in cited else "bold").append(f"{score}  ", "not bold dim")
    return line.append(_fact(item, names), "not bold default")


def _fact(item: Mapping[str, Any], names: Mapping[EntityId, str]) -> str:
    """Write what an item says, as `retrieval/verbalize.py` does; of a kind that is not known here, its kind."""
    kind: str = item["kind"]
    if kind == "PathEvidence":
        hops = [Hop.of(relation) for relation in item["relations"]]
        ends = [shown_name(end, names) for end in item["ends"][:_ENDS]]
        between = ["…"] * (len(hops) - 1)
        cut = " (search cut short)" if item["truncated"] else ""
        nodes = [shown_name(item["source"], names), *between, folded(ends, item["n_ends"] - len(ends))]
        return f"{walk_text(nodes, hops)}{cut}"
    if kind == "TripleEvidence":
        triple = item["triple"]
        hop = Hop(triple["relation"], note=note(triple["properties"]))
        return walk_text([shown_name(triple["head"], names), shown_name(triple["tail"], names)], [hop])
    if kind == "NodeEvidence":
        return node_text(Node(**item["node"]))
    if kind == "RowsEvidence":
        rows = [" | ".join(_cell(cell) for cell in row) for row in item["rows"][:_ENDS]]
        more = [f"… (+{item['n_rows'] - len(rows)} more rows)"] if item["n_rows"] > len(rows) else []
        return "\n".join([plain(item["query"]), " | ".join(item["columns"]), *rows, *more])
    if kind == "Feedback":
        return f"{plain(item['subject'])}: {plain(item['problem'])}"
    return kind.removesuffix("Evidence").lower()


def _cell(cell: Any) -> str:
    if isinstance(cell, Mapping) and "name" in cell:
        return shown_name(EntityId(cell["name"]), {})
    if isinstance(cell, Mapping) and "relation" in cell:
        return walk_text([cell["head"], cell["tail"]], [Hop(cell["relation"])])
    return value_text(cell) if isinstance(cell, str | int | float) else _plain_json(cell)


def _answer(answer: Mapping[str, Any]) -> Text:
    line = Text(plain(answer["name"]), "bold green")
    if answer["id"] is not None and answer["id"] != answer["name"]:
        line.append(f"  {answer['id']}", "not bold dim")
    return line.append(f"  {_ranges(answer['citations']) or 'not grounded'}", "not bold default")


def _in_ascii(tree: Tree) -> None:
    """Write arrows and dashes as a terminal that knows no others can show them."""
    label = tree.label if isinstance(tree.label, Text) else Text(str(tree.label))
    for character, shown in _ASCII.items():
        label.plain = label.plain.replace(character, shown)
    tree.label = label
    for child in tree.children:
        _in_ascii(child)


def _names(record: Mapping[str, Any], store: GraphStore | None) -> dict[EntityId, str]:
    """Return the names of the nodes that will be shown, as far as they are known."""
    names: dict[EntityId, str] = {}
    nodes: dict[EntityId, None] = {}
    for one in record["rounds"]:
        for link in (*one["linked"]["entities"], *one["linked"]["drafts"]):
            names[link["id"]] = link["name"]
        for item in one["evidence"]:
            if item["kind"] == "PathEvidence":
                nodes |= dict.fromkeys([item["source"], *item["ends"][:_ENDS]])
            elif item["kind"] == "TripleEvidence":
                nodes |= dict.fromkeys([item["triple"]["head"], item["triple"]["tail"]])
            elif item["kind"] == "NodeEvidence":
                names[item["node"]["id"]] = item["node"]["name"]
    names |= {answer["id"]: answer["name"] for answer in record["answers"] if answer["id"] is not None}
    if store is not None:
        names |= {node.id: node.name for node in store.nodes(list(nodes))}
    return names


def _ranges(ids: Sequence[str]) -> str:
    """Write ids of evidence with runs of numbers joined: `e1–e4, e7`."""
    numbers = sorted({int(id.removeprefix("e")) for id in ids})
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return ", ".join(f"e{first}" if first == last else f"e{first}–e{last}" for first, last in runs)


def _score(value: float) -> str:
    return f"{value:.2f}"


def _plain_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
