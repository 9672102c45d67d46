"""Shows metrics as tables that fit a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Mapping

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from byokg.evaluation.metrics import METRICS, Estimate, Metrics, Summary

_TITLES = {"hit": "Hit", "hits@1": "Hits@1", "precision": "Prec.", "recall": "Recall", "f1": "F1", "em": "EM"}


def metrics_tables(metrics: Metrics, title: str) -> Group:
    """Return what to print: all questions first, then one table for each breakdown into several groups.

    Figures are percentages with one decimal. The first table gives each 95 % interval by its ends, the
    breakdowns give half its width. The number of failed questions, which score zero, is always shown. Where topic
    entities had to be found, the first table says what share of them was.
    """
    tables = [_overall(metrics.overall, title)]
    for noun, groups in (("type", metrics.by_type), ("hops", metrics.by_hops)):
        if len(groups) > 1:  # a single group only repeats the first table
            tables.append(_breakdown(noun, groups))
    return Group(*tables)


def _overall(summary: Summary, title: str) -> Table:
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD)
    table.caption = f"{summary.n:,} questions, {summary.failed:,} failed"
    table.caption_justify = "left"
    table.add_column("")
    table.add_column("%", justify="right")
    table.add_column("95 % interval", justify="right")
    for metric in METRICS:
        estimate = summary.estimates[metric]
        low, high = estimate.ci95
        table.add_row(_TITLES[metric], f"{100 * estimate.value:.1f}", f"{100 * low:.1f} to {100 * high:.1f}")
    if summary.linked is not None:
        low, high = summary.linked.ci95
        table.add_section()
        table.add_row("Linked", f"{100 * summary.linked.value:.1f}", f"{100 * low:.1f} to {100 * high:.1f}")
        of = "all" if summary.linked.n == summary.n else f"the {summary.linked.n:,}"
        table.caption = f"{table.caption}; Linked: share of topic entities found, of {of} questions with any"
    return table


def _breakdown(noun: str, groups: Mapping[str, Summary]) -> Table:
    table = Table(title=f"by {noun}, %", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("", overflow="fold")
    table.add_column("n", justify="right", no_wrap=True)
    table.add_column("failed", justify="right", no_wrap=True)
    for metric in METRICS:
        table.add_column(_TITLES[metric], justify="right", no_wrap=True)
    for group, summary in groups.items():
        figures = (_two_lines(summary.estimates[metric]) for metric in METRICS)
        table.add_row(Text(group), f"{summary.n:,}", f"{summary.failed:,}", *figures)
    return table


def _two_lines(estimate: Estimate) -> str:
    low, high = estimate.ci95
    return f"{100 * estimate.value:.1f}\n[dim]±{50 * (high - low):.1f}[/dim]"
