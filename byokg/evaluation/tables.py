"""The one way in which byokg prints tables, and the tables of a run: its metrics, and what language models took.

Every table fits a terminal of 80 columns: headings and labels wrap, figures never do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from byokg.evaluation.metrics import METRICS, STAGES, Estimate, Metrics, PartEstimate, Summary
from byokg.llm.usage import dollars
from byokg.types import Spending

TITLES = {"hit": "Hit", "hits@1": "Hits@1", "precision": "Prec.", "recall": "Recall", "f1": "F1", "em": "EM"}
"""What tables call the metrics of the default profile."""

_EVIDENCE = {
    "recall@1": "first item",
    "recall@5": "first 5",
    "recall@10": "first 10",
    "recall@20": "first 20",
    "recall": "all items",
    "support": "support triples",
}
_NOTHING = PartEstimate(0.0, (0.0, 0.0), 0)


def table(
    columns: Iterable[Column],
    rows: Iterable[Sequence[str | Text]],
    title: str = "",
    caption: str = "",
    wide: bool = False,
) -> Table:
    """Return a table in the one layout that all have.

    Args:
        columns: as `labels` and `figures` make them.
        rows: the cells of each row; plain strings are printed as they are, whatever brackets they hold.
        title: printed above it.
        caption: printed below it.
        wide: leave more room between the columns, as tables of few columns can.
    """
    made = Table(
        *columns,
        title=Text(title, "table.title") if title else None,
        title_justify="left",
        caption=Text(caption, "table.caption") if caption else None,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1) if wide else (0, 1, 0, 0),
    )
    for row in rows:
        made.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return made


def labels(*headings: str, one_line: bool = False) -> list[Column]:
    """Return columns of text to the left, wrapped if there is no room, unless `one_line`."""
    return [Column(Text(heading), overflow="fold", no_wrap=one_line) for heading in headings]


def figures(*headings: str, one_line: bool = True) -> list[Column]:
    """Return columns of figures to the right, not broken into lines unless their headings are long."""
    return [Column(Text(heading), justify="right", overflow="fold", no_wrap=one_line) for heading in headings]


def percent(share: float) -> str:
    """Return a share in [0, 1] as a percentage with one decimal."""
    return f"{100 * share:.1f}"


def half_width(estimate: Estimate) -> str:
    """Return half the width of a 95 % interval, in percentage points."""
    low, high = estimate.ci95
    return f"±{50 * (high - low):.1f}"


def two_lines(estimate: Estimate) -> Text:
    """Return a percentage, and below it half the width of its 95 % interval."""
    return Text.assemble(percent(estimate.value), "\n", (half_width(estimate), "dim"))


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
    """Return what language models took for each question, by stage; None if none was asked.

    Calls and tokens are means over all questions, and include what was replayed; money is what was paid. The line
    below adds it all up, together with what was paid when the run was stopped in the middle of questions.
    """
    stages: dict[str, Spending] = {}
    for question in questions:
        for stage, spent in question.items():
            stages[stage] = stages.get(stage, Spending()) + spent
    if not stages:
        return None
    total, n = sum(stages.values(), Spending()), len(questions)
    rows = [*stages.items(), *([("all", total)] if len(stages) > 1 else [])]

    def cells(spent: Spending) -> list[str]:
        took = spent.asked + spent.replayed
        tokens = (f"{count / n:,.0f}" for count in (took.input_tokens, took.cache_read_tokens, took.output_tokens))
        unpriced = spent.asked.calls and spent.asked.unpriced == spent.asked.calls
        money = "unknown" if unpriced else dollars(spent.asked.usd / n)
        return [f"{spent.calls / n:,.2f}", *tokens, f"{took.seconds / n:,.2f}", money]

    return table(
        [*labels(""), *figures("calls", "tokens in", "cached", "tokens out", "seconds", "US dollars")],
        [(stage, *cells(spent)) for stage, spent in rows],
        "language models, per question",
        _spent(sum(unfinished.values(), total)),
    )


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
    caption = f"{questions_told(summary.n, summary.clusters, summary.effective_n)}, {summary.failed:,} failed"
    linked = summary.linked
    if linked is not None:
        of = "all" if linked.n == summary.n else f"the {linked.n:,}"
        caption += f"; Linked: share of topic entities found, of {of} questions with any"
    rows = [_with_interval(TITLES[metric], summary.estimates[metric]) for metric in METRICS]
    made = table([*labels(""), *figures("%", "95 % interval")], rows, title, caption, wide=True)
    if linked is not None:
        made.add_section()
        made.add_row(*_with_interval("Linked", linked))
    return made


def _evidence(summary: Summary) -> Table:
    rows = []
    for metric, heading in _EVIDENCE.items():
        found = summary.retrieval.get(metric)
        if found is not None:
            of = "" if found.n == summary.n else f" ({found.n:,} questions)"
            rows.append(_with_interval(f"{heading}{of}", found))
    tokens, caption = summary.retrieval.get("tokens"), ""
    if tokens is not None and summary.median_tokens is not None:
        mean = f"mean {tokens.value:,.0f}"
        caption = f"{summary.median_tokens:,.0f} tokens of graph context in the last prompt (median; {mean})"
    return table([*labels(""), *figures("%", "95 % interval")], rows, "answers in the evidence", caption, wide=True)


def questions_told(n: int, clusters: int | None, effective_n: float | None) -> str:
    """Say how many questions there are, and if they form clusters, how many independent ones say as much."""
    told = f"{n:,} questions"
    if clusters is None or effective_n is None or clusters == n:
        return told
    return f"{told} in {clusters:,} clusters (effective n {effective_n:,.0f})"


def _with_interval(label: str, estimate: Estimate) -> tuple[str, str, str]:
    low, high = estimate.ci95
    return label, percent(estimate.value), f"{percent(low)} to {percent(high)}"


def _loss(metrics: Metrics) -> Table:
    """Show how many questions each stage lost, overall and by type."""
    groups = {"all": metrics.overall, **(metrics.by_type if len(metrics.by_type) > 1 else {})}
    return table(
        [*labels(""), *figures(*(stage.replace("_", " ") for stage in STAGES))],
        [(name, *(f"{summary.loss[stage]:,}" for stage in STAGES)) for name, summary in groups.items()],
        "where questions are lost",
    )


def _breakdown(noun: str, groups: Mapping[str, Summary]) -> Table:
    return table(
        [*labels(""), *figures("n", "failed", *TITLES.values())],
        [
            (group, f"{one.n:,}", f"{one.failed:,}", *(two_lines(one.estimates[metric]) for metric in METRICS))
            for group, one in groups.items()
        ],
        f"by {noun}, %",
    )
