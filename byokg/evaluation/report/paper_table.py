"""The table of runs for a paper: LaTeX, Markdown or CSV.

One row a run: the metrics of one profile with half the width of their 95 % intervals, the share of gold answers in the
evidence, and the cost of a question. A dagger marks a figure that differs from the first run's, after Holm's
correction. Best figures are bold among runs under one contract; notes list differences of contracts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from byokg.errors import RunError
from byokg.evaluation.comparability import comparison_key, find_differences, group_by_key
from byokg.evaluation.compare import ProfileScores, compare_runs, score_cases
from byokg.evaluation.profiles import Profile
from byokg.evaluation.report.view import average_usage, repeats_shown
from byokg.evaluation.run_folder import Run
from byokg.evaluation.tables import TITLES, half_width, percent, questions_told
from byokg.files import csv_lines

Format = Literal["latex", "markdown", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)

LEVEL = 0.05
"""Below which a corrected p value is marked."""

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
        f"byokg {contracts[0].code}.",
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
