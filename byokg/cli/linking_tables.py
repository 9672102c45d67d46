"""What `byokg link` and `byokg eval-linking` print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from byokg.evaluation.linking_metrics import TOPIC_METRICS, LinkingMetrics
from byokg.evaluation.metrics import Estimate
from byokg.graph.store import GraphStore
from byokg.linking.entities import EntityLinker
from byokg.types import Mention

_SHOWN = 60
"""Characters of a mention in a heading."""

_TITLES = {
    "precision@1": "P@1",
    "recall@1": "R@1",
    "precision@3": "P@3",
    "recall@3": "R@3",
    "precision": "Prec.",
    "recall": "Recall",
    "mrr": "MRR",
}
_SOURCES = {
    "given": "mentions given: the words of the question that name the annotated entity",
    "spotted": "mentions spotted in the question by the offline pipeline",
}


def looked_up(
    store: GraphStore, linker: EntityLinker, texts: Sequence[str], question: str, top: int
) -> list[dict[str, Any]]:
    """Return for each text what it was read as and its best candidates, as JSON holds them."""
    mentions = [_located(text, question) for text in texts]
    found = [candidates[:top] for candidates in linker.link_all(mentions, question)]
    ids = list(dict.fromkeys(one.id for candidates in found for one in candidates))
    degrees = store.relation_counts(store.numbers(ids)).degrees(len(ids)).tolist()
    around = {id: (node.type, degree) for id, node, degree in zip(ids, store.nodes(ids), degrees, strict=True)}
    listed = []
    for mention, candidates in zip(mentions, found, strict=True):
        literal = linker.literal(mention)
        rows = []
        for one in candidates:
            type, degree = around[one.id]
            rows.append(
                {
                    "id": one.id,
                    "name": one.name,
                    "type": type,
                    "method": one.method,
                    "score": one.score,
                    "context": one.context,
                    "degree": degree,
                    "matches": [asdict(match) for match in one.matches],
                }
            )
        read = None if literal is None else {"kind": literal.kind, "value": literal.value}
        listed.append({"mention": mention.text, "literal": read, "candidates": rows})
    return listed


def show(found: Sequence[Mapping[str, Any]], console: Console, explain: bool) -> None:
    """Print a table for each mention; with `explain`, what each method made of each candidate."""
    for one in found:
        text = one["mention"]
        heading = repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
        if one["literal"] is not None:
            heading += f", read as {one['literal']['kind']} {one['literal']['value']}"
        if not one["candidates"]:
            console.print(Text(f"{heading}: no node is called so or like it"), soft_wrap=True)
            continue
        console.print(_candidates(heading, one["candidates"], explain))


def metrics_tables(measured: Mapping[str, LinkingMetrics], dataset: str, source: str) -> Group:
    """Return the table of all methods, and one of recall by mention type.

    Figures are percentages with one decimal; below each, half the width of its 95 % interval.
    """
    first = next(iter(measured.values()))
    table = Table(
        title=Text(f"linking on {dataset}, %"), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    table.caption = f"{first.n:,} questions, {first.topics:,} topic entities; {_SOURCES[source]}"
    table.caption_justify = "left"
    table.add_column("")
    for name in _TITLES.values():
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("failed", justify="right", no_wrap=True)
    for method, metrics in measured.items():
        table.add_row(method, *(_two_lines(metrics.estimates[name]) for name in _TITLES), f"{metrics.failed:,}")
    return Group(table, *(_by_type(metric, measured) for metric in TOPIC_METRICS if metric in ("recall@1", "recall@3")))


def metrics_json(measured: Mapping[str, LinkingMetrics]) -> dict[str, Any]:
    """Return all figures as JSON holds them."""
    return {
        "methods": {
            method: {
                "n": metrics.n,
                "topics": metrics.topics,
                "failed": metrics.failed,
                **_plain(metrics.estimates),
                "by_type": {kind: {"n": one.n, **_plain(one.estimates)} for kind, one in metrics.by_type.items()},
            }
            for method, metrics in measured.items()
        }
    }


def _located(text: str, question: str) -> Mention:
    """Return the mention, at its place where it stands in the question."""
    start = question.find(text)
    return Mention(text, start, start + len(text)) if start >= 0 else Mention(text)


def _candidates(heading: str, rows: Sequence[Mapping[str, Any]], explain: bool) -> Table:
    table = Table(title=Text(heading), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("id", "name", "type"):
        table.add_column(column, overflow="fold")
    table.add_column("method", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    if explain:
        table.add_column("because")
    for row in rows:
        cells = [Text(str(row[key])) for key in ("id", "name", "type", "method")]
        because = [Text(", ".join(_reasons(row)))] if explain else []
        table.add_row(*cells, Text(f"{row['score']:.3f}"), *because)
    return table


def _reasons(row: Mapping[str, Any]) -> list[str]:
    """Say what each method made of a candidate, the question, and the degree that breaks ties."""
    reasons = []
    for match in row["matches"]:
        called = f" as {match['name']}" if match["name"] != row["name"] else ""
        reasons.append(f"{match['method']} {match['score']:.3f} (no. {match['rank']}){called}")
    if row["context"] is not None:
        reasons.append(f"question {row['context']:.3f}")
    return [*reasons, "1 edge" if row["degree"] == 1 else f"{row['degree']:,} edges"]


def _by_type(metric: str, measured: Mapping[str, LinkingMetrics]) -> Table:
    """Return the table of one metric of topic entities: a line for each mention type, a column for each method."""
    title = f"{_TITLES[metric]} of topic entities by how they are mentioned, %"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("")
    table.add_column("n", justify="right", no_wrap=True)
    for method in measured:
        table.add_column(method, justify="right")
    for kind, summary in next(iter(measured.values())).by_type.items():
        figures = (_two_lines(metrics.by_type[kind].estimates[metric]) for metrics in measured.values())
        table.add_row(Text(kind), f"{summary.n:,}", *figures)
    return table


def _two_lines(estimate: Estimate) -> str:
    low, high = estimate.ci95
    return f"{100 * estimate.value:.1f}\n[dim]±{50 * (high - low):.1f}[/dim]"


def _plain(estimates: Mapping[str, Estimate]) -> dict[str, Any]:
    return {name: {"value": one.value, "ci95": list(one.ci95)} for name, one in estimates.items()}
