"""What `byokg score` prints: one row a metric profile, and how far each is from the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from byokg.evaluation.cases import Case
from byokg.evaluation.report_table import TITLES
from byokg.evaluation.scoring import ProfileScores, Values

_FAILURES_LISTED = 5


def score_tables(scored: Sequence[ProfileScores], cases: Sequence[Case], title: str) -> Group:
    """Return all tables: the profiles, their own metrics, their distance from the first, and any breakdown of one.

    Figures are percentages; below each, half the width of its 95 % interval.
    """
    tables = [_profiles(scored, title)]
    if any(metric.name not in TITLES for one in scored if one.n for metric in one.profile.metrics):
        tables.append(_own_metrics(scored))
    if sum(one.n > 0 for one in scored) > 1 and scored[0].n:
        tables.append(_differences(scored))
    if len(scored) == 1 and scored[0].groups:
        tables.append(_groups(scored[0]))
    return Group(*tables, *_notes(scored, cases))


def score_json(scored: Sequence[ProfileScores], cases: Sequence[Case], title: str) -> dict[str, Any]:
    """Return all figures as JSON holds them."""
    return {
        "predictions": title,
        "questions": len(cases),
        "failed": [case.id for case in cases if case.status != "ok"],
        "profiles": {
            one.profile.name: {
                "n": one.n,
                "skipped": one.skipped,
                "unscorable": one.unscorable,
                "failed": one.failed,
                "source": one.profile.source,
                "metrics": {
                    name: {"value": estimate.value, "ci95": list(estimate.ci95)}
                    for name, estimate in one.estimates.items()
                },
                "groups": {group: {"n": some.n, **some.figures} for group, some in one.groups.items()},
            }
            for one in scored
        },
    }


def _profiles(scored: Sequence[ProfileScores], title: str) -> Table:
    table = _table(Text(f"{title}, %"), "profile")
    for name in ("n", "skipped", *TITLES.values()):
        table.add_column(name, justify="right", no_wrap=True)
    for one in scored:
        if not one.n:
            continue
        figures = (
            f"{100 * found.value:.1f}\n[dim]±{50 * (found.ci95[1] - found.ci95[0]):.1f}[/dim]" if found else ""
            for found in (one.estimates.get(metric) for metric in TITLES)
        )
        table.add_row(one.profile.name, f"{one.n:,}", f"{one.skipped:,}", *figures)
    return table


def _own_metrics(scored: Sequence[ProfileScores]) -> Table:
    table = _table("metrics of one profile, %", "profile", "metric")
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("meaning")
    for one in scored:
        for metric in one.profile.metrics:
            if one.n and metric.name not in TITLES:
                found = one.estimates[metric.name]
                half = 50 * (found.ci95[1] - found.ci95[0])
                table.add_row(one.profile.name, metric.name, f"{100 * found.value:.1f} ±{half:.1f}", metric.meaning)
    return table


def _differences(scored: Sequence[ProfileScores]) -> Table:
    """Show each profile less the first, in points, and how many questions it counts right that the first does not."""
    first, *others = scored
    table = _table(f"less {first.profile.name}, points", "profile")
    for name in (*TITLES.values(), "gained", "lost"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in others:
        if one.n:
            cells = (_points(first, one, metric) for metric in TITLES)
            table.add_row(one.profile.name, *cells, *_turned(first, one))
    table.caption = (
        f"over the questions that both count; gained: with a Hit there and none under {first.profile.name}; lost: the "
        "reverse"
    )
    table.caption_justify = "left"
    return table


def _points(first: ProfileScores, one: ProfileScores, metric: str) -> str:
    """Return the difference of two means over the questions that both profiles count; empty where one lacks either."""
    values = [_column(scores, metric) for scores in (first, one)]
    if values[0] is None or values[1] is None:
        return ""
    shared = (first.weights[:, 0] > 0) & (one.weights[:, 0] > 0)
    return f"{100 * float((values[1] - values[0])[shared].mean()):+z.1f}" if shared.any() else ""


def _turned(first: ProfileScores, one: ProfileScores) -> tuple[str, str]:
    """Count the questions with a Hit under the second profile alone, and under the first alone."""
    before, now = _column(first, "hit"), _column(one, "hit")
    if before is None or now is None:
        return "", ""
    return f"{int(np.sum((now > 0) & (before == 0))):,}", f"{int(np.sum((before > 0) & (now == 0))):,}"


def _column(scores: ProfileScores, metric: str) -> Values | None:
    """Return a metric's value for each question, (N,); None where the profile has no such metric."""
    names = [each.name for each in scores.profile.metrics]
    return scores.values[:, names.index(metric)] if metric in names else None


def _groups(one: ProfileScores) -> Table:
    table = _table("by type, %", "")
    table.add_column("n", justify="right", no_wrap=True)
    for metric in one.profile.metrics:
        table.add_column(TITLES.get(metric.name, metric.name), justify="right", no_wrap=True)
    for group, some in one.groups.items():
        table.add_row(Text(group), f"{some.n:,}", *(f"{100 * value:.1f}" for value in some.figures.values()))
    return table


def _notes(scored: Sequence[ProfileScores], cases: Sequence[Case]) -> list[Text]:
    """Say what failed, and what could not be scored and why."""
    failed = [case.id for case in cases if case.status != "ok"]
    notes = [
        f"{len(cases):,} questions, {len(failed):,} without a prediction: they score zero, or are skipped where "
        "the publication does so"
    ]
    if failed:
        more = f" (+{len(failed) - _FAILURES_LISTED:,} more)" if len(failed) > _FAILURES_LISTED else ""
        notes.append(f"without a prediction: {', '.join(failed[:_FAILURES_LISTED])}{more}")
    for one in scored:
        if one.unscorable:
            what = f"{one.unscorable:,} questions lack" if one.n else "the questions lack"
            notes.append(f"{one.profile.name}: {what} {one.profile.needs}")
    return [Text(note) for note in notes]


def _table(title: str | Text, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table
