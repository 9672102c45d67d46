"""The one way in which byokg prints tables, and the tables of runs: metrics, what language models took, and predictions
under several metric profiles.

Every table fits a terminal of 80 columns: headings and labels wrap, figures never do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from byokg.evaluation.metrics import METRICS, STAGES, Estimate, Metrics, PartEstimate, Summary
from byokg.types import Spending

if TYPE_CHECKING:
    from byokg.evaluation.cases import Case
    from byokg.evaluation.compare import ProfileScores, RepeatFigures
    from byokg.evaluation.significance import Values

TITLES = {"hit": "Hit", "hits@1": "Hits@1", "precision": "Prec.", "recall": "Recall", "f1": "F1", "em": "EM"}
"""Column titles of the metrics of the default profile."""

_EVIDENCE = {
    "recall@1": "first item",
    "recall@5": "first 5",
    "recall@10": "first 10",
    "recall@20": "first 20",
    "recall": "all items",
    "shown": "shown to the model that answered",
    "support": "support triples",
}
_GROUNDING = {
    "answered": "questions answered",
    "supported": "first answer supported",
    "citation_precision": "citations that hold their answer",
    "citation_recall": "held answers that are cited",
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


def metrics_tables(metrics: Metrics, title: str, repeats: int = 1) -> Group:
    """Return the tables of a run: all questions first, then one table for each breakdown into several groups.

    Figures are percentages with one decimal. The first table gives each 95 % interval by its ends, the
    breakdowns give half its width. The number of failed questions, which score zero, is always shown. The first table
    has the share of linked topic entities if they had to be linked. If evidence was retrieved, two tables show the
    share of answers in the evidence, and the stage at which questions are lost.

    Args:
        metrics: figures to print.
        title: of the first table.
        repeats: number of times each question was run.

    >>> from byokg.evaluation.metrics import QuestionScores, aggregate, score
    >>> metrics = aggregate([QuestionScores(score(["Seine"], ["Seine"]))])
    >>> tables = metrics_tables(metrics, "rivers")  # rich.print(tables)
    """
    tables = [_overall(metrics.overall, title, repeats)]
    if metrics.overall.retrieval.get("recall", _NOTHING).value > 0:
        tables += [_evidence(metrics.overall), _loss(metrics)]
    if metrics.overall.grounding:
        overall = metrics.overall
        tables.append(means_table(_parts(overall.grounding, _GROUNDING, overall.n), "what answers rest on"))
    for noun, groups in (("type", metrics.by_type), ("hops", metrics.by_hops)):
        if len(groups) > 1:  # a single group only repeats the first table
            tables.append(_breakdown(noun, groups))
    return Group(*tables)


def usage_table(questions: Sequence[Mapping[str, Spending]], unfinished: Mapping[str, Spending]) -> Table | None:
    """Return the language-model usage per question, by stage; None if there was none.

    Calls and tokens are means over all questions, and include replayed ones; money is the amount paid. The line below
    sums up, together with the amount paid for questions cut off when the run was stopped.
    """
    from byokg.llm.usage import dollars

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
    """Return one line on paid and replayed calls."""
    from byokg.llm.usage import dollars

    asked = total.asked
    parts = [f"{asked.calls:,} calls asked", f"{total.replayed.calls:,} replayed"]
    parts += [f"{count:,} {what}" for count, what in ((total.retries, "retries"), (total.failed, "failed")) if count]
    if asked.calls == 0 or asked.unpriced < asked.calls:
        parts.append(f"{dollars(asked.usd)} in all")
    if asked.unpriced:
        parts.append(f"{asked.unpriced:,} of a model without a price")
    return ", ".join(parts)


def means_table(means: Mapping[str, Estimate], title: str, caption: str = "") -> Table:
    """Return the table of some means by their labels: percentages with the ends of their 95 % intervals."""
    return table(
        [*labels(""), *figures("%", "95 % interval")], map(_with_interval, means.items()), title, caption, True
    )


def _with_interval(labelled: tuple[str, Estimate]) -> tuple[str, str, str]:
    label, estimate = labelled
    low, high = estimate.ci95
    return label, percent(estimate.value), f"{percent(low)} to {percent(high)}"


def _parts(parts: Mapping[str, PartEstimate], headings: Mapping[str, str], n: int) -> dict[str, Estimate]:
    """Return means by heading, with the number of questions unless all `n` have one."""
    found = ((heading, parts[metric]) for metric, heading in headings.items() if metric in parts)
    return {heading if one.n == n else f"{heading} ({one.n:,} questions)": one for heading, one in found}


def _overall(summary: Summary, title: str, repeats: int) -> Table:
    told = questions_told(summary.n, summary.clusters, summary.effective_n, repeats)
    caption = f"{told}, {summary.failed:,} failed"
    linked = summary.linked
    if linked is not None:
        of = "all" if linked.n == summary.n else f"the {linked.n:,}"
        caption += f"; Linked: share of topic entities found, of {of} questions with any"
    made = means_table({TITLES[metric]: summary.estimates[metric] for metric in METRICS}, title, caption)
    if linked is not None:
        made.add_section()
        made.add_row(*_with_interval(("Linked", linked)))
    return made


def _evidence(summary: Summary) -> Table:
    tokens, caption = summary.retrieval.get("tokens"), ""
    if tokens is not None and summary.median_tokens is not None:
        mean = f"mean {tokens.value:,.0f}"
        caption = f"{summary.median_tokens:,.0f} tokens of graph context in the last prompt (median; {mean})"
    return means_table(_parts(summary.retrieval, _EVIDENCE, summary.n), "answers in the evidence", caption)


def questions_told(n: int, clusters: int | None, effective_n: float | None, repeats: int = 1) -> str:
    """Return the number of questions in words, and if they form clusters, the effective number of independent ones.

    Args:
        n: predictions that are counted.
        clusters: number of clusters; a question and its repeats are in one.
        effective_n: effective number of independent questions.
        repeats: number of times each question was run.
    """
    asked = n // repeats
    told = f"{asked:,} questions" if repeats == 1 else f"{asked:,} questions, each asked {repeats} times"
    if clusters is None or effective_n is None or clusters == asked:
        return told
    return f"{told} in {clusters:,} clusters (effective n {effective_n:,.0f})"


def repeat_table(one: RepeatFigures) -> Table:
    """Return what asking each question several times shows."""
    means = {f"pass@{k}": estimate for k, estimate in one.pass_at.items()}
    means |= {f"majority of {one.repeats}: {TITLES.get(name, name)}": each for name, each in one.majority.items()}
    told = (
        f"of {one.questions:,} questions, {percent(one.always)} % are right every time, {percent(one.never)} % never; "
        f"standard deviation between questions {percent(one.between)}, within a question {percent(one.within)}, of a "
        f"run that asks once {percent(one.one_round)} points"
    )
    return means_table(means, f"each question asked {one.repeats} times, by {TITLES.get(one.metric, one.metric)}", told)


def _loss(metrics: Metrics) -> Table:
    """Show how many questions each stage lost, overall and by type."""
    groups = {"all": metrics.overall, **(metrics.by_type if len(metrics.by_type) > 1 else {})}
    return table(
        [*labels(""), *figures(*(stage.replace("_", "\n") for stage in STAGES))],
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


_FAILURES_LISTED = 5


def score_tables(
    scored: Sequence[ProfileScores], cases: Sequence[Case], title: str, repeats: Sequence[RepeatFigures] = ()
) -> Group:
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
    tables += map(repeat_table, repeats[:1])
    return Group(*tables, *_notes(scored, cases, repeats[0].repeats if repeats else 1))


def score_json(
    scored: Sequence[ProfileScores], cases: Sequence[Case], title: str, repeats: Sequence[RepeatFigures] = ()
) -> dict[str, Any]:
    """Return all figures as JSON holds them; `repeats` are of each profile, or there are none."""
    by_profile = {one.profile.name: asdict(its) for one, its in zip(scored, repeats, strict=False)}
    return {
        "predictions": title,
        "questions": len(cases),
        "failed": [case.id for case in cases if not case.has_outcome],
        "profiles": {
            one.profile.name: {
                "n": one.n,
                "skipped": one.skipped,
                "unscorable": one.unscorable,
                "clusters": one.clusters,
                "effective_n": one.effective_n,
                "failed": one.failed,
                "source": one.profile.source,
                "metrics": {name: asdict(estimate) for name, estimate in one.estimates.items()},
                "groups": {group: {"n": some.n, **some.figures} for group, some in one.groups.items()},
                **({"repeats": by_profile[one.profile.name]} if repeats else {}),
            }
            for one in scored
        },
    }


def _profiles(scored: Sequence[ProfileScores], title: str) -> Table:
    def cells(one: ProfileScores) -> list[Text]:
        found = (one.estimates.get(metric) for metric in TITLES)
        return [two_lines(estimate) if estimate else Text() for estimate in found]

    return table(
        [*labels("profile", one_line=True), *figures("n", "skipped", *TITLES.values())],
        [(one.profile.name, f"{one.n:,}", f"{one.skipped:,}", *cells(one)) for one in scored if one.n],
        f"{title}, %",
    )


def _own_metrics(scored: Sequence[ProfileScores]) -> Table:
    rows = []
    for one in scored:
        for metric in one.profile.metrics:
            if one.n and metric.name not in TITLES:
                found = one.estimates[metric.name]
                figure = f"{percent(found.value)} {half_width(found)}"
                rows.append((one.profile.name, metric.name, figure, metric.meaning))
    columns = [*labels("profile", "metric", one_line=True), *figures(""), *labels("meaning")]
    return table(columns, rows, "metrics of one profile, %")


def _differences(scored: Sequence[ProfileScores]) -> Table:
    """Show each profile less the first, in points, and how many questions it counts right that the first does not."""
    first, *others = scored
    return table(
        [*labels("profile", one_line=True), *figures(*TITLES.values(), "gained", "lost")],
        [(one.profile.name, *_points(first, one), *_count_flips(first, one)) for one in others if one.n],
        f"less {first.profile.name}, points",
        f"over the questions that both count; gained: with a Hit there and none under {first.profile.name}; lost: the "
        "reverse",
    )


def _points(first: ProfileScores, one: ProfileScores) -> Iterator[str]:
    """Yield the difference of each mean over the questions that both profiles count; empty if one has none."""
    before, now = _columns(first), _columns(one)
    shared = (first.weights[:, 0] > 0) & (one.weights[:, 0] > 0)
    for metric in TITLES:
        known = shared.any() and metric in before and metric in now
        yield f"{100 * float((now[metric] - before[metric])[shared].mean()):+z.1f}" if known else ""


def _count_flips(first: ProfileScores, one: ProfileScores) -> tuple[str, str]:
    """Count the questions with a Hit under the second profile alone, and under the first alone."""
    before, now = (_columns(each).get("hit") for each in (first, one))
    if before is None or now is None:
        return "", ""
    return f"{int(np.sum((now > 0) & (before == 0))):,}", f"{int(np.sum((before > 0) & (now == 0))):,}"


def _columns(scores: ProfileScores) -> dict[str, Values]:
    """Return the values of the questions by metric, (N,) each."""
    return dict(zip((each.name for each in scores.profile.metrics), scores.values.T, strict=True))


def _groups(one: ProfileScores) -> Table:
    return table(
        [*labels(""), *figures("n", *(TITLES.get(metric.name, metric.name) for metric in one.profile.metrics))],
        [(group, f"{some.n:,}", *map(percent, some.figures.values())) for group, some in one.groups.items()],
        "by type, %",
    )


def _notes(scored: Sequence[ProfileScores], cases: Sequence[Case], repeats: int) -> list[Text]:
    """Return notes on failed questions, and on unscorable ones with the reason."""
    failed = [case.id for case in cases if not case.has_outcome]
    notes = [
        f"{len(cases):,} questions, {len(failed):,} without a prediction: they score zero, or are skipped where "
        "the publication does so"
    ]
    if scored[0].n and scored[0].clusters < scored[0].n:
        told = questions_told(scored[0].n, scored[0].clusters, scored[0].effective_n, repeats)
        notes.append(f"{told}: questions that belong together are drawn together for the intervals")
    if failed:
        more = f" (+{len(failed) - _FAILURES_LISTED:,} more)" if len(failed) > _FAILURES_LISTED else ""
        notes.append(f"without a prediction: {', '.join(failed[:_FAILURES_LISTED])}{more}")
    for one in scored:
        if one.unscorable:
            what = f"{one.unscorable:,} questions lack" if one.n else "the questions lack"
            notes.append(f"{one.profile.name}: {what} {one.profile.needs}")
    return [Text(note) for note in notes]
