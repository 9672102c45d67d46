"""Shows metrics as tables that fit a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from byokg.evaluation.metrics import METRICS, Estimate, Metrics, PartEstimate, Stage, Summary
from byokg.llm.estimate import dollars
from byokg.types import Spending

_EVIDENCE = {
    "recall@1": "first item",
    "recall@5": "first 5",
    "recall@10": "first 10",
    "recall@20": "first 20",
    "recall": "all items",
    "support": "support triples",
}
_STAGES: Mapping[Stage, str] = {
    "failed": "failed",
    "not_linked": "not linked",
    "not_retrieved": "not retrieved",
    "not_answered": "not answered",
    "answered": "answered",
}
TITLES = {"hit": "Hit", "hits@1": "Hits@1", "precision": "Prec.", "recall": "Recall", "f1": "F1", "em": "EM"}
"""What tables call the metrics of the default profile."""
_NOTHING = PartEstimate(0.0, (0.0, 0.0), 0)


def metrics_tables(metrics: Metrics, title: str) -> Group:
    """Return what to print: all questions first, then one table for each breakdown into several groups.

    Figures are percentages with one decimal. The first table gives each 95 % interval by its ends, the
    breakdowns give half its width. The number of failed questions, which score zero, is always shown. Where topic
    entities had to be found, the first table says what share of them was. Where anything was retrieved, two tables say
    how much of the answers the evidence holds, and at which stage questions are lost.
    """
    tables = [_overall(metrics.overall, title)]
    if metrics.overall.retrieval.get("recall", _NOTHING).value > 0:
        tables += [_evidence(metrics.overall), _loss(metrics)]
    for noun, groups in (("type", metrics.by_type), ("hops", metrics.by_hops)):
        if len(groups) > 1:  # a single group only repeats the first table
            tables.append(_breakdown(noun, groups))
    return Group(*tables)


def usage_table(questions: Sequence[Mapping[str, Spending]], unfinished: Mapping[str, Spending]) -> Table | None:
    """Return what language models took for each question, by stage; None where none was asked.

    Calls and tokens are means over all questions, and include what was replayed; money is what was paid. The line
    below adds it all up, together with what was paid when the run was stopped in the middle of questions.
    """
    stages: dict[str, Spending] = {}
    for question in questions:
        for stage, spent in question.items():
            stages[stage] = stages.get(stage, Spending()) + spent
    if not stages:
        return None
    total = sum(stages.values(), Spending())
    table = Table(title="language models, per question", title_justify="left", box=box.SIMPLE_HEAD)
    table.caption, table.caption_justify = _spent(sum(unfinished.values(), total)), "left"
    table.add_column("", overflow="fold")
    for heading in ("calls", "tokens in", "cached", "tokens out", "seconds", "US dollars"):
        table.add_column(heading, justify="right", no_wrap=True)
    rows = list(stages.items()) if len(stages) == 1 else [*stages.items(), ("all", total)]
    for stage, spent in rows:
        took, n = spent.asked + spent.replayed, len(questions)
        tokens = (f"{count / n:,.0f}" for count in (took.input_tokens, took.cache_read_tokens, took.output_tokens))
        money = "unknown" if spent.asked.calls and spent.asked.unpriced == spent.asked.calls else None
        cells = (f"{spent.calls / n:,.2f}", *tokens, f"{took.seconds / n:,.2f}", money or dollars(spent.asked.usd / n))
        table.add_row(Text(stage), *cells)
    return table


def _spent(total: Spending) -> str:
    """Say in one line what was paid, and what was not."""
    asked = total.asked
    parts = [f"{asked.calls:,} calls asked", f"{total.replayed.calls:,} replayed"]
    parts += [f"{count:,} {what}" for count, what in ((total.retries, "retries"), (total.failed, "failed")) if count]
    if asked.calls == 0 or asked.unpriced < asked.calls:
        parts.append(f"{dollars(asked.usd)} in all")
    if asked.unpriced:
        parts.append(f"{asked.unpriced:,} of a model without a price")
    return ", ".join(parts)


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
        table.add_row(TITLES[metric], f"{100 * estimate.value:.1f}", f"{100 * low:.1f} to {100 * high:.1f}")
    if summary.linked is not None:
        low, high = summary.linked.ci95
        table.add_section()
        table.add_row("Linked", f"{100 * summary.linked.value:.1f}", f"{100 * low:.1f} to {100 * high:.1f}")
        of = "all" if summary.linked.n == summary.n else f"the {summary.linked.n:,}"
        table.caption = f"{table.caption}; Linked: share of topic entities found, of {of} questions with any"
    return table


def _evidence(summary: Summary) -> Table:
    table = Table(title="answers in the evidence", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("")
    table.add_column("%", justify="right")
    table.add_column("95 % interval", justify="right")
    for metric, heading in _EVIDENCE.items():
        found = summary.retrieval.get(metric)
        if found is not None:
            low, high = found.ci95
            of = "" if found.n == summary.n else f" ({found.n:,} questions)"
            table.add_row(f"{heading}{of}", f"{100 * found.value:.1f}", f"{100 * low:.1f} to {100 * high:.1f}")
    tokens = summary.retrieval.get("tokens")
    if tokens is not None and summary.median_tokens is not None:
        mean = f"mean {tokens.value:,.0f}"
        table.caption = f"{summary.median_tokens:,.0f} tokens of graph context in the last prompt (median; {mean})"
        table.caption_justify = "left"
    return table


def _loss(metrics: Metrics) -> Table:
    """Show how many questions each stage lost, overall and by type."""
    groups = metrics.by_type if len(metrics.by_type) > 1 else {}
    table = Table(title="where questions are lost", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("", overflow="fold")
    for heading in _STAGES.values():
        table.add_column(heading, justify="right")
    for name, summary in (("all", metrics.overall), *groups.items()):
        table.add_row(Text(name), *(f"{summary.loss[stage]:,}" for stage in _STAGES))
    return table


def _breakdown(noun: str, groups: Mapping[str, Summary]) -> Table:
    table = Table(title=f"by {noun}, %", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("", overflow="fold")
    table.add_column("n", justify="right", no_wrap=True)
    table.add_column("failed", justify="right", no_wrap=True)
    for metric in METRICS:
        table.add_column(TITLES[metric], justify="right", no_wrap=True)
    for group, summary in groups.items():
        figures = (_two_lines(summary.estimates[metric]) for metric in METRICS)
        table.add_row(Text(group), f"{summary.n:,}", f"{summary.failed:,}", *figures)
    return table


def _two_lines(estimate: Estimate) -> str:
    low, high = estimate.ci95
    return f"{100 * estimate.value:.1f}\n[dim]±{50 * (high - low):.1f}[/dim]"
