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
from byokg.evaluation.repeats import repeat_figures
from byokg.evaluation.report.summary import average_usage
from byokg.evaluation.run_folder import Run
from byokg.evaluation.tables import TITLES, half_width, percent, questions_told
from byokg.files import csv_lines

Format = Literal["latex", "markdown", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)

LEVEL = 0.05
"""Below which a corrected p value is marked."""

_MARK = "†"
_COST = {"calls": "Calls", "tokens": "Tokens", "seconds": "Seconds", "usd": "US$"}
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

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return the profile's metrics, in order."""
        return tuple(metric.name for metric in self.scores[0].profile.metrics)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the further columns that any run has something for."""
        last = ("recall of evidence", *_COST)
        first = sorted({name for each in self.extra for name in each} - set(last), reverse=True)
        return (*first, *(name for name in last if any(each.get(name) for each in self.extra)))

    def best(self, metric: str, run: int) -> bool:
        """True if a run is the best of several under its contract."""
        group = next(group for group in self.groups if run in group)
        found = {at: self.scores[at].estimates[metric].value for at in group if self.scores[at].estimates}
        return len(found) > 1 and found.get(run) == max(found.values())


def paper_table(runs: Sequence[Run], profile: Profile, seed: int = 0) -> PaperTable:
    """Return the table of some runs.

    Args:
        runs: at least one.
        profile: scoring of all runs.
        seed: of the bootstrap and of the permutations.

    Raises:
        RunError: a run is not finished, or the profile can score none of the questions of two runs that could be
            tested.
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
    return PaperTable(
        tuple(run.name for run in runs),
        tuple(map(tuple, groups)),
        scores,
        tuple(p.get(run.name, {}) for run in runs),
        tuple({**_of_repeats(run, profile, seed), **_extra(run)} for run in runs),
        tuple(notes),
    )


def _repeats(run: Run) -> int:
    return 1 + max((example.repeat for example in run.questions), default=0)


def _of_repeats(run: Run, profile: Profile, seed: int) -> dict[str, float | None]:
    found = repeat_figures(run.cases, profile, seed)
    if found is None:
        return {}
    k, passed = list(found.pass_at.items())[-1]
    return {f"pass@{k}": passed.value, "majority": found.majority[found.metric].value}


def _extra(run: Run) -> dict[str, float | None]:
    found = None if run.metrics is None else run.metrics.overall.retrieval.get("recall")
    took = average_usage(list(run.timings.values()))
    tokens = took["input_tokens"] + took["output_tokens"]
    return {
        "recall of evidence": None if found is None else found.value,
        "calls": took["calls"],
        "tokens": tokens,
        "seconds": took["seconds"],
        "usd": took["usd"] if took["calls"] else None,
    }


def written(table: PaperTable, format: Format) -> str:
    """Return the table as text, with a line end."""
    return {"latex": _latex, "markdown": _markdown, "csv": _csv}[format](table)


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
                figures = (self._figure(table, run, metric) for metric in table.metrics)
                costs = (_cost(table.extra[run].get(column), column) or self.missing for column in table.columns)
                yield [self.escape(table.runs[run]), *figures, *costs]

    def _figure(self, table: PaperTable, run: int, metric: str) -> str:
        estimate = table.scores[run].estimates.get(metric)
        if estimate is None:
            return self.missing
        text, half = percent(estimate.value), half_width(estimate).removeprefix("±")
        mark = self.mark if table.p[run].get(metric, 1.0) < LEVEL else ""
        return f"{self.best.format(text) if table.best(metric, run) else text}{mark}{self.half.format(half)}"


def _cost(value: float | None, column: str) -> str:
    """Write a figure of a further column; empty if there is none."""
    if value is None:
        return ""
    if column not in _COST:
        return percent(value)
    return f"{value:,.0f}" if column == "tokens" else f"{value:.4f}" if column == "usd" else f"{value:.2f}"


def _heading(column: str) -> str:
    return _COST.get(column) or (column if "@" in column else column.capitalize())


def _titles(table: PaperTable) -> list[str]:
    return [*(TITLES.get(name, name) for name in table.metrics), *map(_heading, table.columns)]


def _markdown(table: PaperTable) -> str:
    titles = _titles(table)
    markup = _Markup(lambda name: name.replace("|", "\\|"), "–", "**{}**", _MARK, " ±{}")
    rows = (f"| {' | '.join(row)} |" if row else f"| |{' |' * len(titles)}" for row in markup.rows(table))
    notes = (f"{note}\n" for note in table.notes)
    return "\n".join([f"| Run | {' | '.join(titles)} |", f"|---|{'---:|' * len(titles)}", *rows, "", *notes])


def _latex(table: PaperTable) -> str:
    titles = _titles(table)
    markup = _Markup(_escaped, "--", r"\textbf{{{}}}", r"$^\dagger$", r"\,{{\scriptsize$\pm${}}}")
    rows = (f"{' & '.join(row)} \\\\" if row else r"\midrule" for row in markup.rows(table))
    notes = (f"% {note.replace(_MARK, 'dagger:')}" for note in table.notes)
    head = [r"% \usepackage{booktabs}", f"\\begin{{tabular}}{{l{'r' * len(titles)}}}", r"\toprule"]
    head += [f"Run & {' & '.join(map(_escaped, titles))} \\\\", r"\midrule"]
    return "\n".join([*head, *rows, r"\bottomrule", r"\end{tabular}", *notes]) + "\n"


def _escaped(text: str) -> str:
    return _LATEX_MARKS.sub(lambda match: _LATEX[match[0]], text)


def _csv(table: PaperTable) -> str:
    ends = [f"{metric} {end}" for metric in table.metrics for end in ("%", "low", "high", "p")]
    rows: list[list[object]] = [["run", "contract", "n", *ends, *table.columns]]
    for number, group in enumerate(table.groups, start=1):
        for run in group:
            cells: list[object] = []
            for metric in table.metrics:
                estimate = table.scores[run].estimates.get(metric)
                shares = (estimate.value, *estimate.ci95) if estimate else ()
                cells += [f"{100 * share:.4f}" for share in shares] or [""] * 3
                cells.append(table.p[run].get(metric, ""))
            costs = [table.extra[run].get(each) for each in table.columns]
            rows.append([table.runs[run], number, table.scores[run].n, *cells, *costs])
    return b"".join(csv_lines(rows)).decode()
