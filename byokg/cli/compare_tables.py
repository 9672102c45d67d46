"""What `byokg compare` prints: differences with intervals, where they come from, and published figures apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from byokg.evaluation.anchors import Anchor, obstacles
from byokg.evaluation.compare import Comparison, RecordedRun
from byokg.evaluation.report_table import TITLES
from byokg.evaluation.significance import Difference

_SETTINGS_SHOWN = 12
_VALUE_SHOWN = 40
"""Characters of a setting's value."""

Ours = Mapping[tuple[str, str], Mapping[str, float]]
"""By profile and metric, each run's figure, in [0, 1]."""


def comparison_tables(comparison: Comparison, listed: int) -> Group:
    """Return all about two runs: settings, metrics, types, and the first `listed` questions won and lost."""
    first, second = comparison.first, comparison.second
    parts: list[RenderableType] = [Text(f"{second.name} against {first.name}", style="bold"), *_settings(comparison)]
    parts.append(_metrics(comparison))
    if comparison.by_type:
        parts.append(_types(comparison))
    parts += _questions(comparison, listed)
    return Group(*parts)


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return all of it as JSON holds it."""
    before, after = comparison.scores
    return {
        "first": comparison.first.name,
        "second": comparison.second.name,
        "dataset": comparison.first.dataset,
        "profile": before.profile.name,
        "questions": len(before.values),
        "left_out": comparison.left_out,
        "settings": {key: list(values) for key, values in comparison.settings.items()},
        "metrics": {
            name: {"first": before.estimates[name].value, "second": after.estimates[name].value, **_plain(difference)}
            for name, difference in comparison.differences.items()
        },
        "metric": comparison.metric,
        "by_type": {
            group: {"n": one.n, "first": one.first, "second": one.second, **_plain(one.difference)}
            for group, one in comparison.by_type.items()
        },
        "won": list(comparison.won),
        "lost": list(comparison.lost),
    }


def anchor_tables(
    anchors: Sequence[Anchor], runs: Sequence[RecordedRun], ours: Ours, published_graph: bool
) -> list[RenderableType]:
    """Return published figures beside ours: those that can be compared, and apart from them those that cannot."""
    like, unlike = _parted(anchors, runs, published_graph)
    parts: list[RenderableType] = []
    if like:
        table = _table("published, comparable, %", "system", "profile", "metric")
        for name in ("published", *(run.name for run in runs)):
            table.add_column(Text(name), justify="right", overflow="fold")
        for anchor in like:
            table.add_row(*_named(anchor), f"{100 * anchor.value:.1f}", *_figures(anchor, runs, ours))
        parts.append(table)
    if unlike:
        table = _table("published, NOT comparable with these runs, %", "system", "profile", "metric")
        for name in ("published", *(run.name for run in runs), "why not"):
            table.add_column(Text(name), justify="right", overflow="fold")
        numbers: dict[str, int] = {}
        for anchor, reasons in unlike:
            why = ", ".join(str(numbers.setdefault(reason, len(numbers) + 1)) for reason in reasons)
            table.add_row(*_named(anchor), f"{100 * anchor.value:.1f}", *_figures(anchor, runs, ours), why)
        parts.append(table)
        parts.append(Text("\n".join(f"({number}) {reason}" for reason, number in numbers.items())))
    if anchors:
        parts.append(Text(f"published in: {'; '.join(dict.fromkeys(anchor.source for anchor in anchors))}"))
    return parts


def anchor_json(
    anchors: Sequence[Anchor], runs: Sequence[RecordedRun], ours: Ours, published_graph: bool
) -> list[dict[str, Any]]:
    """Return published figures with ours and what keeps them apart, as JSON holds them."""
    reasons = {id(anchor): () for anchor in anchors} | {
        id(anchor): why for anchor, why in _parted(anchors, runs, published_graph)[1]
    }
    return [
        {
            **asdict(anchor),
            "comparable": not reasons[id(anchor)],
            "why_not": list(reasons[id(anchor)]),
            "ours": dict(ours.get((anchor.profile or "", anchor.metric), {})),
        }
        for anchor in anchors
    ]


def _parted(
    anchors: Sequence[Anchor], runs: Sequence[RecordedRun], published_graph: bool
) -> tuple[list[Anchor], list[tuple[Anchor, tuple[str, ...]]]]:
    """Part figures that every run can be compared with from the others, with the reasons."""
    like, unlike = [], []
    for anchor in anchors:
        found: dict[str, None] = {}
        for run in runs:
            for reason in obstacles(anchor, run.dataset, len(run.cases), run.entities, published_graph):
                found[reason] = None
        if found:
            unlike.append((anchor, tuple(found)))
        else:
            like.append(anchor)
    return like, unlike


def _settings(comparison: Comparison) -> list[RenderableType]:
    """Say what the two runs were told differently."""
    lines = [
        f"  {key}: {_short(before)} → {_short(after)}"
        for key, (before, after) in list(comparison.settings.items())[:_SETTINGS_SHOWN]
    ]
    more = len(comparison.settings) - _SETTINGS_SHOWN
    if more > 0:
        lines.append(f"  (+{more} more)")
    return [Text("\n".join(lines))] if lines else []


def _short(value: str) -> str:
    return value if len(value) <= _VALUE_SHOWN else f"{value[:_VALUE_SHOWN]}…"


def _metrics(comparison: Comparison) -> Table:
    before, after = comparison.scores
    table = _table(f"{before.profile.name}, %", "")
    for name in (comparison.first.name, comparison.second.name):
        table.add_column(Text(name), justify="right", overflow="fold")
    for name in ("difference", "95 % interval", "p", "won", "lost"):
        table.add_column(name, justify="right", no_wrap=True)
    for metric, one in comparison.differences.items():
        table.add_row(
            TITLES.get(metric, metric),
            f"{100 * before.estimates[metric].value:.1f}",
            f"{100 * after.estimates[metric].value:.1f}",
            *_cells(one),
            f"{one.won:,}",
            f"{one.lost:,}",
        )
    failed = f"{before.failed:,} and {after.failed:,} failed"
    if comparison.left_out:
        failed += f", {comparison.left_out:,} more left out as the profile does not count them in one of the runs"
    table.caption = (
        f"{len(before.values):,} questions, {failed}; intervals: paired bootstrap; p, two-sided: McNemar's exact test "
        "for metrics of 0 and 1, else the paired bootstrap; not corrected for looking at several"
    )
    table.caption_justify = "left"
    return table


def _types(comparison: Comparison) -> Table:
    table = _table(f"{TITLES.get(comparison.metric, comparison.metric)} by type, %", "")
    table.add_column("n", justify="right", no_wrap=True)
    for name in (comparison.first.name, comparison.second.name):
        table.add_column(Text(name), justify="right", overflow="fold")
    for name in ("difference", "95 % interval", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    for group, one in comparison.by_type.items():
        figures = (f"{100 * value:.1f}" for value in (one.first, one.second))
        table.add_row(Text(group), f"{one.n:,}", *figures, *_cells(one.difference))
    return table


def _cells(difference: Difference) -> tuple[str, str, str]:
    low, high = difference.ci95
    p = "<0.001" if difference.p < 0.001 else f"{difference.p:.3f}"
    return f"{100 * difference.value:+z.1f}", f"{100 * low:+z.1f} to {100 * high:+z.1f}", p


def _questions(comparison: Comparison, listed: int) -> list[RenderableType]:
    """List questions won and lost with their text and what each run answered first."""
    asked = {case.id: case for case in comparison.first.cases}
    theirs = {case.id: case for case in comparison.second.cases}
    lines = []
    for word, ids in (("won", comparison.won), ("lost", comparison.lost)):
        if not ids:
            continue
        lines.append(f"{word}: {len(ids):,} of {len(comparison.scores[0].values):,} questions")
        for id in ids[:listed]:
            before, after = (", ".join(case[id].answers[:2]) or "nothing" for case in (asked, theirs))
            lines.append(f"  {id}: {asked[id].question} — {before} → {after}")
        if len(ids) > listed:
            lines.append(f"  (+{len(ids) - listed:,} more)")
    return [Text("\n".join(lines))] if lines else [Text("no question is won or lost")]


def _system(anchor: Anchor) -> str:
    return f"{anchor.system}, {anchor.model}" if anchor.model else anchor.system


def _named(anchor: Anchor) -> tuple[Text, str, str]:
    return Text(f"{_system(anchor)}{', trained' if anchor.trained else ''}"), anchor.profile or "?", anchor.metric


def _figures(anchor: Anchor, runs: Sequence[RecordedRun], ours: Ours) -> list[str]:
    """Return each run's figure made the way of the published one."""
    figures = ours.get((anchor.profile or "", anchor.metric), {})
    return [f"{100 * figures[run.name]:.1f}" if run.name in figures else "" for run in runs]


def _plain(difference: Difference) -> dict[str, Any]:
    return {**asdict(difference), "ci95": list(difference.ci95)}


def _table(title: str, *columns: str) -> Table:
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
