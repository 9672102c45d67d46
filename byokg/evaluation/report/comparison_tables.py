"""The tables of `byokg compare`: differences between two runs, published figures apart from them, and a paper's table.

The table for a paper, in LaTeX, Markdown or CSV, has one row a run: the metrics of one profile with half the width of
their 95 % intervals, the share of gold answers in the evidence, and the cost of a question. A dagger marks a figure
that differs from the first run's, after Holm's correction. Best figures are bold among runs under one contract; notes
list differences of contracts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from byokg.errors import RunError
from byokg.evaluation.comparability import (
    PublishedResult,
    RunConditions,
    comparison_key,
    find_differences,
    group_by_key,
)
from byokg.evaluation.compare import Comparison, ProfileScores, compare_runs, score_cases
from byokg.evaluation.metrics import STAGES
from byokg.evaluation.profiles import Profile
from byokg.evaluation.report.view import average_usage, repeats_shown
from byokg.evaluation.run_folder import Run
from byokg.evaluation.significance import Difference
from byokg.evaluation.tables import TITLES, figures, half_width, labels, percent, questions_told, table
from byokg.files import csv_lines

Unlike = Sequence[tuple[PublishedResult, tuple[str, ...]]]
"""Published figures that ours cannot be compared with, each with the reasons."""

_HEADING = 8
"""Characters of a run's name that fit above its figures."""

_TESTED = ("difference", "95 % interval", "p")
"""Columns of a difference."""

LEVEL = 0.05
"""Of the tests, and of the intervals; a corrected p value below it is marked."""

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
            group: {"n": one.n, "first": one.first, "second": one.second, **asdict(one.difference), "p_holm": one.holm}
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


def _unlike(comparison: Comparison) -> list[Text]:
    """Explain intervals and p values of which only one shows a difference, metrics with equal reasons together."""
    lines: dict[str, list[str]] = {}
    for metric, one in comparison.differences.items():
        outside = one.ci95[0] > 0 or one.ci95[1] < 0
        if outside == (comparison.holm[metric] < LEVEL):
            continue
        won, lost = one.clusters
        reason = f"p rests on the {won + lost:,} clusters that differ, {won:,} won and {lost:,} lost"
        if outside and 2 / (1 << won + lost) >= LEVEL:
            reason += f", and cannot be less than {2 / (1 << won + lost):.3f}"
        elif outside and one.p < LEVEL:
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


Format = Literal["latex", "markdown", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)

_MARK = "†"
_COST = {"calls": "Calls", "tokens": "Tokens", "seconds": "Seconds", "usd": "US$"}
"""Columns that are no shares; all others are, in [0, 1]."""
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}
_LATEX_MARKS = re.compile("|".join(map(re.escape, _LATEX)))


@dataclass(frozen=True)
class PaperTable:
    """Content of a table of runs, independent of the format."""

    runs: tuple[str, ...]
    """Names of the runs; the first is the reference of the tests."""
    groups: tuple[tuple[int, ...], ...]
    """Positions of the runs under one contract, the first run's first."""
    scores: tuple[ProfileScores, ...]
    """Of each run."""
    p: tuple[Mapping[str, float], ...]
    """Of each run by metric, corrected; empty for the first, and for one that cannot be tested against it."""
    extra: tuple[Mapping[str, float | None], ...]
    """Of each run by column: pass@k, majority and recall of the evidence in [0, 1], calls, tokens, seconds and US$ a
    question."""
    notes: tuple[str, ...]
    columns: tuple[str, ...]
    """Names of the figures, from left to right: metrics of the profile, and columns of `extra`."""

    @property
    def metrics(self) -> frozenset[str]:
        """Return the columns that are metrics of the profile, with intervals."""
        return frozenset(metric.name for metric in self.scores[0].profile.metrics)

    def best(self, metric: str, run: int) -> bool:
        """True if a run is the best of several under its contract."""
        group = next(group for group in self.groups if run in group)
        found = {at: self.scores[at].estimates[metric].value for at in group if self.scores[at].estimates}
        return len(found) > 1 and found.get(run) == max(found.values())


def paper_table(runs: Sequence[Run], profile: Profile, seed: int = 0, columns: Sequence[str] = ()) -> PaperTable:
    """Return the table of some runs.

    Args:
        runs: at least one.
        profile: scoring of all runs.
        seed: of the bootstrap and of the permutations.
        columns: figures to show, from left to right; all of them if empty.

    Raises:
        RunError: a run is not finished, there is no such column, or the profile can score none of the questions of two
            runs that could be tested.
    """
    for run in runs:
        if run.metrics is None:
            raise RunError(f"{run.name!r} cannot stand in a table: the run is not finished, start it again")
    first, *others = runs
    alike = [run for run in others if not find_differences(first, run)]
    tested = compare_runs([first, *alike], profile, seed=seed) if alike else []
    p = {run.name: one.holm for run, one in zip(alike, tested, strict=True)}
    contracts = [comparison_key(run, profile.name) for run in runs]
    groups = group_by_key(contracts)
    scores = tuple(score_cases(run.cases, [profile], seed)[0] for run in runs)
    one = scores[0]
    told = questions_told(one.n, one.clusters, one.effective_n, _repeats(first))
    notes = [
        f"Percentages under the metric profile {profile.name} ({profile.source}) with half the width of their 95 % "
        f"intervals; {contracts[0].dataset}, {told}, topic entities "
        f"{contracts[0].entities}, hop counts {contracts[0].hops}, graph {contracts[0].graph[:12] or 'unknown'}, "
        f"byokg {contracts[0].code}."
    ]
    if tested:
        tests = ", ".join(dict.fromkeys(each.test for pair in tested for each in pair.differences.values()))
        notes.append(f"{_MARK} differs from {first.name}, p < {LEVEL} ({tests}; Holm's correction for {len(tested)}).")
    several = [run for run in runs if _repeats(run) > 1]
    if several:
        asked = ", ".join(f"{run.name} {_repeats(run)} times" for run in several)
        notes.append(
            f"Each question was asked several times: {asked}; figures are means over all of it, intervals draw a "
            "question with its repeats. pass@k: one of k is right, without bias; majority: what most replies agree on."
        )
    for group in groups[1:]:
        names = ", ".join(runs[at].name for at in group)
        apart = "; ".join(contracts[0].differences(contracts[group[0]]))
        notes.append(f"Under another contract than the runs above, and not ranked with them: {names} ({apart}).")
    extra = tuple(_extra(run, profile, seed) for run in runs)
    return PaperTable(
        tuple(run.name for run in runs),
        tuple(map(tuple, groups)),
        scores,
        tuple(p.get(run.name, {}) for run in runs),
        extra,
        tuple(notes),
        _chosen([metric.name for metric in profile.metrics], extra, columns),
    )


def _chosen(
    metrics: Sequence[str], extra: Sequence[Mapping[str, float | None]], columns: Sequence[str]
) -> tuple[str, ...]:
    """Return the columns of a table; by default the metrics and all others that any run has a figure for."""
    last = ("recall of evidence", *_COST)
    first = sorted({name for each in extra for name in each} - set(last), reverse=True)
    if unknown := [name for name in columns if name not in {*metrics, *first, *last}]:
        raise RunError(f"there is no column {unknown[0]!r}; choose of {', '.join([*metrics, *first, *last])}")
    found = [*metrics, *first, *(name for name in last if any(each.get(name) for each in extra))]
    return tuple(columns or found)


def _repeats(run: Run) -> int:
    return 1 + max((example.repeat for example in run.questions), default=0)


def _extra(run: Run, profile: Profile, seed: int) -> dict[str, float | None]:
    found = None if run.metrics is None else run.metrics.overall.retrieval.get("recall")
    took, repeats = average_usage(list(run.timings.values())), repeats_shown(run, profile, seed)
    again = {f"pass@{repeats['times']}": repeats["pass"], "majority": repeats["majority"]} if repeats else {}
    return {
        **{column: estimate["value"] for column, estimate in again.items()},
        "recall of evidence": None if found is None else found.value,
        **took,
        "usd": took["usd"] if took["calls"] else None,
    }


def written(table: PaperTable, format: Format, caption: str = "") -> str:
    """Return the table as text, with a line end; `caption` stands above it.

    Raises:
        RunError: a caption is given for CSV, which has no place for it.
    """
    if caption and format == "csv":
        raise RunError("a caption has no place in CSV; leave it out, or write LaTeX or Markdown")
    caption = " ".join(caption.split())
    return _csv(table) if format == "csv" else {"latex": _latex, "markdown": _markdown}[format](table, caption)


@dataclass(frozen=True)
class _Markup:
    """How a format writes the parts of a cell."""

    escape: Callable[[str], str]
    missing: str
    best: str
    mark: str
    half: str

    def rows(self, table: PaperTable) -> Iterator[list[str]]:
        """Yield the cells of each run, group by group, and an empty row between two groups."""
        for number, group in enumerate(table.groups):
            if number:
                yield []
            for run in group:
                cells = (self._cell(table, run, column) for column in table.columns)
                yield [self.escape(table.runs[run]), *cells]

    def _cell(self, table: PaperTable, run: int, column: str) -> str:
        if column not in table.metrics:
            return _cost(table.extra[run].get(column), column) or self.missing
        estimate = table.scores[run].estimates.get(column)
        if estimate is None:
            return self.missing
        text, half = percent(estimate.value), half_width(estimate).removeprefix("±")
        mark = self.mark if table.p[run].get(column, 1.0) < LEVEL else ""
        return f"{self.best.format(text) if table.best(column, run) else text}{mark}{self.half.format(half)}"


def _cost(value: float | None, column: str) -> str:
    """Write a figure of a further column; empty if there is none."""
    if value is None:
        return ""
    if column not in _COST:
        return percent(value)
    return f"{value:,.0f}" if column == "tokens" else f"{value:.4f}" if column == "usd" else f"{value:.2f}"


def _titles(table: PaperTable) -> list[str]:
    known = {**TITLES, **_COST}
    return [
        known.get(name) or (name if name in table.metrics or "@" in name else name.capitalize())
        for name in table.columns
    ]


def _markdown(table: PaperTable, caption: str) -> str:
    titles = _titles(table)
    markup = _Markup(lambda name: name.replace("|", "\\|"), "–", "**{}**", _MARK, " ±{}")
    rows = (f"| {' | '.join(row)} |" if row else f"| |{' |' * len(titles)}" for row in markup.rows(table))
    notes = (f"{note}\n" for note in table.notes)
    head = [f"Table: {caption}", ""] if caption else []
    return "\n".join([*head, f"| Run | {' | '.join(titles)} |", f"|---|{'---:|' * len(titles)}", *rows, "", *notes])


def _latex(table: PaperTable, caption: str) -> str:
    titles = _titles(table)
    markup = _Markup(_escaped, "--", r"\textbf{{{}}}", r"$^\dagger$", r"\,{{\scriptsize$\pm${}}}")
    rows = (f"{' & '.join(row)} \\\\" if row else r"\midrule" for row in markup.rows(table))
    notes = (f"% {note.replace(_MARK, 'dagger:')}" for note in table.notes)
    above = [r"\begin{table}", r"\centering", f"\\caption{{{_escaped(caption)}}}"] if caption else []
    head = [r"% \usepackage{booktabs}", *above, f"\\begin{{tabular}}{{l{'r' * len(titles)}}}", r"\toprule"]
    head += [f"Run & {' & '.join(map(_escaped, titles))} \\\\", r"\midrule"]
    below = [r"\end{table}"] if caption else []
    return "\n".join([*head, *rows, r"\bottomrule", r"\end{tabular}", *below, *notes]) + "\n"


def _escaped(text: str) -> str:
    return _LATEX_MARKS.sub(lambda match: _LATEX[match[0]], text)


def _csv(table: PaperTable) -> str:
    """Write shares in %, tokens, seconds and US$ as numbers: one unit in each column, which its heading names."""
    rows: list[list[object]] = [["run", "contract", "n"]]
    for column in table.columns:
        ends = ("%", "low %", "high %", "p") if column in table.metrics else ("%",)
        rows[0] += [_COST[column]] if column in _COST else [f"{column} {end}" for end in ends]
    for number, group in enumerate(table.groups, start=1):
        for run in group:
            rows.append([table.runs[run], number, table.scores[run].n])
            for column in table.columns:
                rows[-1] += _numbers(table, run, column)
    return b"".join(csv_lines(rows)).decode()


def _numbers(table: PaperTable, run: int, column: str) -> list[object]:
    """Return a run's figures of one column; of a metric, its value, both ends of its interval, and p."""
    if column not in table.metrics:
        value = table.extra[run].get(column)
        return [value if value is None or column in _COST else f"{100 * value:.4f}"]
    estimate = table.scores[run].estimates.get(column)
    shares = (estimate.value, *estimate.ci95) if estimate else ()
    return [*([f"{100 * share:.4f}" for share in shares] or [""] * 3), table.p[run].get(column, "")]
