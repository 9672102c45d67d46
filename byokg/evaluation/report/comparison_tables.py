"""The tables of `byokg compare`: differences between two runs, and published figures apart from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from byokg.evaluation.comparability import PublishedResult, RunConditions
from byokg.evaluation.compare import Comparison
from byokg.evaluation.metrics import STAGES
from byokg.evaluation.significance import Difference
from byokg.evaluation.tables import TITLES, figures, labels, percent, questions_told, table

Unlike = Sequence[tuple[PublishedResult, tuple[str, ...]]]
"""Published figures that ours cannot be compared with, each with the reasons."""

_HEADING = 8
"""Characters of a run's name that fit above its figures."""

_TESTED = ("difference", "95 % interval", "p")
"""Columns of a difference."""

_SETTINGS_SHOWN = 12
_VALUE_SHOWN = 40
"""Characters of a setting's value."""

Ours = Mapping[tuple[str, str], Mapping[str, float]]
"""By profile and metric, the figure of each run or file by its name, in [0, 1]."""


def comparison_tables(comparison: Comparison, listed: int) -> Group:
    """Return all about two runs: settings, metrics, types, and the first `listed` questions won and lost."""
    first, second = comparison.first, comparison.second
    parts: list[RenderableType] = [Text(f"{second.name} against {first.name}", style="bold"), *_settings(comparison)]
    if _run_headings(comparison) != (first.name, second.name):
        parts.insert(1, Text(f"  [1] {first.name}\n  [2] {second.name}"))
    if comparison.apart:
        parts.append(Text(f"NOT under one contract: {'; '.join(comparison.apart)}", style="bold"))
    else:
        parts.append(Text("one contract: the same questions, graph, grants, profile and code"))
    parts += [_metrics(comparison), *_unlike(comparison)]
    if comparison.by_type:
        parts.append(_types(comparison))
    if comparison.losses:
        parts.append(_losses(comparison))
    parts += _questions(comparison, listed)
    return Group(*parts)


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return all of it as JSON holds it."""
    before, after = comparison.scores
    return {
        "first": comparison.first.name,
        "second": comparison.second.name,
        "dataset": comparison.first.dataset["name"],
        "profile": before.profile.name,
        "questions": comparison.n,
        "repeats": list(comparison.repeats),
        "left_out": comparison.left_out,
        "clusters": before.clusters,
        "effective_n": before.effective_n,
        "contract_differs": list(comparison.apart),
        "settings": {key: list(values) for key, values in comparison.settings.items()},
        "metrics": {
            name: {
                "first": before.estimates[name].value,
                "second": after.estimates[name].value,
                **asdict(difference),
                "p_holm": comparison.holm[name],
            }
            for name, difference in comparison.differences.items()
        },
        "loss": [dict(counts) for counts in comparison.losses],
        "metric": comparison.metric,
        "by_type": {
            group: {
                "n": one.n,
                "first": one.first,
                "second": one.second,
                **asdict(one.difference),
                "p_holm": one.holm,
            }
            for group, one in comparison.by_type.items()
        },
        "won": list(comparison.won),
        "lost": list(comparison.lost),
    }


def anchor_tables(
    like: Sequence[PublishedResult], unlike: Unlike, subjects: Sequence[RunConditions], ours: Ours
) -> list[RenderableType]:
    """Return published figures beside ours: those that can be compared, and apart from them those that cannot."""
    names = (one.name for one in subjects)
    several = len({anchor.dataset for anchor in (*like, *(anchor for anchor, _ in unlike))}) > 1
    columns = [*labels("system", "profile", "metric"), *figures("published", *names, one_line=False)]
    parts: list[RenderableType] = []
    if like:
        parts.append(
            table(columns, [_beside(anchor, subjects, ours, several) for anchor in like], "published, comparable, %")
        )
    if unlike:
        numbers: dict[str, int] = {}
        rows = [
            (
                *_beside(anchor, subjects, ours, several),
                ", ".join(str(numbers.setdefault(reason, len(numbers) + 1)) for reason in reasons),
            )
            for anchor, reasons in unlike
        ]
        columns += figures("why not", one_line=False)
        parts.append(table(columns, rows, "published, NOT comparable, %"))
        parts.append(Text("\n".join(f"({number}) {reason}" for reason, number in numbers.items())))
    sources = dict.fromkeys(anchor.source for anchor in (*like, *(anchor for anchor, _ in unlike)))
    if sources:
        parts.append(Text(f"published in: {'; '.join(sources)}"))
    return parts


def anchor_json(like: Sequence[PublishedResult], unlike: Unlike, ours: Ours) -> list[dict[str, Any]]:
    """Return published figures with ours and the reasons against a comparison, as JSON."""
    return [
        {
            **asdict(anchor),
            "comparable": not reasons,
            "why_not": list(reasons),
            "ours": dict(ours.get((anchor.profile or "", anchor.metric), {})),
        }
        for anchor, reasons in (*((anchor, ()) for anchor in like), *unlike)
    ]


def _run_headings(comparison: Comparison) -> tuple[str, str]:
    """Return the runs' names, or numbers for names that would not fit above columns of figures."""
    names = comparison.first.name, comparison.second.name
    return names if max(map(len, names)) <= _HEADING else ("[1]", "[2]")


def _settings(comparison: Comparison) -> list[RenderableType]:
    """Return the settings that differ between the two runs."""
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
    rows = []
    for metric, one in comparison.differences.items():
        means = (percent(scores.estimates[metric].value) for scores in comparison.scores)
        cells = _cells(one, comparison.holm[metric])
        rows.append((TITLES.get(metric, metric), *means, *cells, f"{one.won:,}", f"{one.lost:,}"))
    failed = f"{before.failed:,} and {after.failed:,} failed"
    times = comparison.repeats
    repeats = f", asked {times[0]} and {times[1]} times and averaged" if max(times) > 1 else ""
    if comparison.left_out:
        failed += f", {comparison.left_out:,} more left out as the profile does not count them in one of the runs"
    asked = questions_told(comparison.n, before.clusters, before.effective_n)
    return table(
        [*labels(""), *figures(*_run_headings(comparison), *_TESTED, "won", "lost")],
        rows,
        f"{before.profile.name}, %",
        f"{asked}{repeats}, {failed}; intervals: paired bootstrap; p, two-sided, Holm's correction for several runs: "
        "McNemar's exact test where every question is right or wrong and stands alone, else a permutation test; "
        "clusters are drawn and swapped whole",
    )


_LEVEL = 0.05
"""Of the tests, and of the intervals."""


def _unlike(comparison: Comparison) -> list[Text]:
    """Explain intervals and p values of which only one shows a difference, metrics with equal reasons together."""
    lines: dict[str, list[str]] = {}
    for metric, one in comparison.differences.items():
        outside = one.ci95[0] > 0 or one.ci95[1] < 0
        if outside == (comparison.holm[metric] < _LEVEL):
            continue
        won, lost = one.clusters
        reason = f"p rests on the {won + lost:,} clusters that differ, {won:,} won and {lost:,} lost"
        if outside and 2 / (1 << won + lost) >= _LEVEL:
            reason += f", and cannot be less than {2 / (1 << won + lost):.3f}"
        elif outside and one.p < _LEVEL:
            reason = f"p is {one.p:.3f} before the correction for several runs"
        found = (
            "0 is outside the interval, but p shows no difference" if outside else "p is low, but 0 is in the interval"
        )
        lines.setdefault(f"{found}: {reason}; p decides", []).append(TITLES.get(metric, metric))
    return [Text(f"{', '.join(metrics)}: {line}") for line, metrics in lines.items()]


def _losses(comparison: Comparison) -> Table:
    first, second = comparison.losses
    rows = [(stage.replace("_", " "), f"{first[stage]:,}", f"{second[stage]:,}") for stage in STAGES]
    what = "questions" if max(comparison.repeats) == 1 else "predictions"
    return table([*labels(""), *figures(*_run_headings(comparison))], rows, f"{what} by the stage that lost them")


def _types(comparison: Comparison) -> Table:
    rows = [
        (group, f"{one.n:,}", percent(one.first), percent(one.second), *_cells(one.difference, one.holm))
        for group, one in comparison.by_type.items()
    ]
    title = f"{TITLES.get(comparison.metric, comparison.metric)} by type, %"
    columns = [*labels(""), *figures("n", *_run_headings(comparison), *_TESTED)]
    return table(columns, rows, title, "p: with Holm's correction for the number of types")


def _cells(difference: Difference, corrected: float) -> tuple[str, str, str]:
    low, high = difference.ci95
    p = "<0.001" if corrected < 0.001 else f"{corrected:.3f}"
    return f"{100 * difference.value:+z.1f}", f"{100 * low:+z.1f} to {100 * high:+z.1f}", p


def _questions(comparison: Comparison, listed: int) -> list[RenderableType]:
    """List questions won and lost with their text and what each run answered first."""
    asked = {case.id: case for case in comparison.first.cases}
    theirs = {case.id: case for case in comparison.second.cases}
    lines = []
    for word, ids in (("won", comparison.won), ("lost", comparison.lost)):
        if not ids:
            continue
        lines.append(f"{word}: {len(ids):,} of {comparison.n:,} questions")
        for id in ids[:listed]:
            before, after = (", ".join(case[id].answers[:2]) or "nothing" for case in (asked, theirs))
            lines.append(f"  {id}: {asked[id].question} — {before} → {after}")
        if len(ids) > listed:
            lines.append(f"  (+{len(ids) - listed:,} more)")
    return [Text("\n".join(lines))] if lines else [Text("no question is won or lost")]


def _beside(anchor: PublishedResult, subjects: Sequence[RunConditions], ours: Ours, several: bool) -> tuple[str, ...]:
    """Return a published figure, and beside it ours made in the same way; with the data set if there are several."""
    trained = "trained" if anchor.trained else ""
    system = ", ".join(filter(None, (anchor.system, anchor.model, trained, anchor.dataset if several else "")))
    found = ours.get((anchor.profile or "", anchor.metric), {})
    mine = (percent(found[one.name]) if one.name in found else "" for one in subjects)
    return system, anchor.profile or "?", anchor.metric, percent(anchor.value), *mine
