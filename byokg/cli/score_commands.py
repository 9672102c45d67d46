"""`byokg score` and `byokg compare`. What is heavy is imported when a command runs.

What `byokg score` prints: one row a metric profile, and how far each is from the first.

What `byokg compare` prints: differences with intervals, where they come from, and published figures apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from byokg.cli.terminal import AsJson, ConfigDir, Words, note, print_json, stdout
from byokg.errors import ConfigError
from byokg.evaluation.cases import Case
from byokg.evaluation.comparability import Anchor, obstacles
from byokg.evaluation.compare import Comparison, ProfileScores
from byokg.evaluation.run_folder import Run
from byokg.evaluation.significance import Difference, Values
from byokg.evaluation.tables import TITLES, figures, half_width, labels, percent, questions_told, table, two_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from byokg.evaluation.cases import Case
    from byokg.evaluation.datasets.base import Dataset, Example
    from byokg.evaluation.profiles import Profile

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
                "clusters": one.clusters,
                "effective_n": one.effective_n,
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
        [
            (one.profile.name, *(_points(first, one, metric) for metric in TITLES), *_turned(first, one))
            for one in others
            if one.n
        ],
        f"less {first.profile.name}, points",
        f"over the questions that both count; gained: with a Hit there and none under {first.profile.name}; lost: the "
        "reverse",
    )


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
    return table(
        [*labels(""), *figures("n", *(TITLES.get(metric.name, metric.name) for metric in one.profile.metrics))],
        [(group, f"{some.n:,}", *map(percent, some.figures.values())) for group, some in one.groups.items()],
        "by type, %",
    )


def _notes(scored: Sequence[ProfileScores], cases: Sequence[Case]) -> list[Text]:
    """Say what failed, and what could not be scored and why."""
    failed = [case.id for case in cases if case.status != "ok"]
    notes = [
        f"{len(cases):,} questions, {len(failed):,} without a prediction: they score zero, or are skipped where "
        "the publication does so"
    ]
    if scored[0].n and scored[0].clusters < scored[0].n:
        told = questions_told(scored[0].n, scored[0].clusters, scored[0].effective_n)
        notes.append(f"{told}: questions that belong together are drawn together for the intervals")
    if failed:
        more = f" (+{len(failed) - _FAILURES_LISTED:,} more)" if len(failed) > _FAILURES_LISTED else ""
        notes.append(f"without a prediction: {', '.join(failed[:_FAILURES_LISTED])}{more}")
    for one in scored:
        if one.unscorable:
            what = f"{one.unscorable:,} questions lack" if one.n else "the questions lack"
            notes.append(f"{one.profile.name}: {what} {one.profile.needs}")
    return [Text(note) for note in notes]


_SETTINGS_SHOWN = 12
_VALUE_SHOWN = 40
"""Characters of a setting's value."""

Ours = Mapping[tuple[str, str], Mapping[str, float]]
"""By profile and metric, each run's figure, in [0, 1]."""


def comparison_tables(comparison: Comparison, listed: int) -> Group:
    """Return all about two runs: settings, metrics, types, and the first `listed` questions won and lost."""
    first, second = comparison.first, comparison.second
    parts: list[RenderableType] = [Text(f"{second.name} against {first.name}", style="bold"), *_settings(comparison)]
    if comparison.apart:
        parts.append(Text(f"NOT under one contract: {'; '.join(comparison.apart)}", style="bold"))
    else:
        parts.append(Text("one contract: the same questions, graph, grants, profile and code"))
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
        "dataset": comparison.first.dataset["name"],
        "profile": before.profile.name,
        "questions": len(before.values),
        "left_out": comparison.left_out,
        "clusters": before.clusters,
        "effective_n": before.effective_n,
        "contract_differs": list(comparison.apart),
        "settings": {key: list(values) for key, values in comparison.settings.items()},
        "metrics": {
            name: {
                "first": before.estimates[name].value,
                "second": after.estimates[name].value,
                **_plain(difference),
                "p_holm": comparison.holm[name],
            }
            for name, difference in comparison.differences.items()
        },
        "metric": comparison.metric,
        "by_type": {
            group: {"n": one.n, "first": one.first, "second": one.second, **_plain(one.difference), "p_holm": one.holm}
            for group, one in comparison.by_type.items()
        },
        "won": list(comparison.won),
        "lost": list(comparison.lost),
    }


def anchor_tables(
    anchors: Sequence[Anchor], runs: Sequence[Run], ours: Ours, published_graph: bool
) -> list[RenderableType]:
    """Return published figures beside ours: those that can be compared, and apart from them those that cannot."""
    like, unlike = _parted(anchors, runs, published_graph)
    names = (run.name for run in runs)
    columns = [*labels("system", "profile", "metric"), *figures("published", *names, one_line=False)]
    parts: list[RenderableType] = []
    if like:
        parts.append(table(columns, [_beside(anchor, runs, ours) for anchor in like], "published, comparable, %"))
    if unlike:
        numbers: dict[str, int] = {}
        rows = [
            (
                *_beside(anchor, runs, ours),
                ", ".join(str(numbers.setdefault(reason, len(numbers) + 1)) for reason in reasons),
            )
            for anchor, reasons in unlike
        ]
        columns += figures("why not", one_line=False)
        parts.append(table(columns, rows, "published, NOT comparable with these runs, %"))
        parts.append(Text("\n".join(f"({number}) {reason}" for reason, number in numbers.items())))
    if anchors:
        parts.append(Text(f"published in: {'; '.join(dict.fromkeys(anchor.source for anchor in anchors))}"))
    return parts


def anchor_json(
    anchors: Sequence[Anchor], runs: Sequence[Run], ours: Ours, published_graph: bool
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
    anchors: Sequence[Anchor], runs: Sequence[Run], published_graph: bool
) -> tuple[list[Anchor], list[tuple[Anchor, tuple[str, ...]]]]:
    """Part figures that every run can be compared with from the others, with the reasons."""
    like, unlike = [], []
    for anchor in anchors:
        found: dict[str, None] = {}
        for run in runs:
            asked = run.dataset["name"], len(run.questions), run.config["entities"]
            for reason in obstacles(anchor, *asked, published_graph):
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
    rows = []
    for metric, one in comparison.differences.items():
        means = (percent(scores.estimates[metric].value) for scores in comparison.scores)
        cells = _cells(one, comparison.holm[metric])
        rows.append((TITLES.get(metric, metric), *means, *cells, f"{one.won:,}", f"{one.lost:,}"))
    failed = f"{before.failed:,} and {after.failed:,} failed"
    if comparison.left_out:
        failed += f", {comparison.left_out:,} more left out as the profile does not count them in one of the runs"
    return table(
        [
            *labels(""),
            *figures(comparison.first.name, comparison.second.name, one_line=False),
            *figures("difference", "95 % interval", "p", "won", "lost"),
        ],
        rows,
        f"{before.profile.name}, %",
        f"{questions_told(len(before.values), before.clusters, before.effective_n)}, {failed}; intervals: paired "
        "bootstrap; p, two-sided, Holm's correction for several runs: McNemar's test (mid-p) for metrics of 0 and 1, "
        "else a permutation test; clusters are drawn and swapped whole",
    )


def _types(comparison: Comparison) -> Table:
    return table(
        [
            *labels(""),
            *figures("n"),
            *figures(comparison.first.name, comparison.second.name, one_line=False),
            *figures("difference", "95 % interval", "p"),
        ],
        [
            (group, f"{one.n:,}", percent(one.first), percent(one.second), *_cells(one.difference, one.holm))
            for group, one in comparison.by_type.items()
        ],
        f"{TITLES.get(comparison.metric, comparison.metric)} by type, %",
        "p: with Holm's correction for the number of types",
    )


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
        lines.append(f"{word}: {len(ids):,} of {len(comparison.scores[0].values):,} questions")
        for id in ids[:listed]:
            before, after = (", ".join(case[id].answers[:2]) or "nothing" for case in (asked, theirs))
            lines.append(f"  {id}: {asked[id].question} — {before} → {after}")
        if len(ids) > listed:
            lines.append(f"  (+{len(ids) - listed:,} more)")
    return [Text("\n".join(lines))] if lines else [Text("no question is won or lost")]


def _beside(anchor: Anchor, runs: Sequence[Run], ours: Ours) -> tuple[str, ...]:
    """Return a published figure, and beside it each run's figure made in the same way."""
    system = ", ".join(filter(None, (anchor.system, anchor.model, "trained" if anchor.trained else "")))
    found = ours.get((anchor.profile or "", anchor.metric), {})
    mine = (percent(found[run.name]) if run.name in found else "" for run in runs)
    return system, anchor.profile or "?", anchor.metric, percent(anchor.value), *mine


def _plain(difference: Difference) -> dict[str, Any]:
    return {**asdict(difference), "ci95": list(difference.ci95)}


_JUDGE = "judge"


def score(
    predictions: Annotated[Path, typer.Argument(metavar="PREDICTIONS", help="A run folder, or a file of predictions.")],
    words: Words = None,
    config_dir: ConfigDir = None,
    profile: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Metric profile; may be repeated; all, or judge.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the intervals.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Score predictions again, under one metric profile or all of them side by side.

    byokg score runs/mine --profile all

    byokg score predictions.jsonl --profile rog --profile strict

    byokg score predictions.jsonl dataset=folder dataset.root=DIR --profile all

    byokg score runs/mine --profile judge llm=anthropic llm.model=MODEL

    A file is JSON lines with id, prediction and ground_truth, as RoG, GNN-RAG and others write them; gold answers of a
    data set go before those of the file. Profiles: strict (the default), byokg, rog, gnn-rag, gcr, subgraphrag, tog,
    structgpt, webqsp-official, cron, stark, text2cypher; judge asks a language model.
    """
    from byokg.evaluation.compare import score_cases
    from byokg.evaluation.profiles import chosen

    names = profile or ["strict"]
    profiles = chosen([name for name in names if name != _JUDGE])
    cases = _cases(predictions, words or [])
    if _JUDGE in names:
        profiles = (*profiles, judged(cases, words or [], note))
    scored = score_cases(cases, profiles, seed)
    title = predictions.resolve().name
    if as_json:
        print_json(score_json(scored, cases, title))
    else:
        stdout().print(score_tables(scored, cases, title))


def _cases(predictions: Path, words: Sequence[str]) -> list[Case]:
    """Read predictions and gold answers.

    Raises:
        ConfigError: there is neither such a folder nor such a file.
    """
    from byokg.cli.config import read_settings
    from byokg.cli.evaluation import selected
    from byokg.evaluation.cases import join, read_external
    from byokg.evaluation.datasets.base import by_name, is_by_name
    from byokg.evaluation.records import read_predictions
    from byokg.evaluation.run_folder import is_finished, read_questions

    dataset: Dataset | None = None
    asked: Sequence[Example] = ()
    if any(word.startswith("dataset") for word in words):
        settings = read_settings(words)
        if settings.run.require:
            raise ConfigError("require= looks at a graph, and byokg score at none; name the questions with ids=@FILE")
        dataset = settings.build("dataset")
        asked = selected(dataset, settings.run, note)
    if predictions.is_dir():
        examples = recorded = read_questions(predictions)
        if dataset is not None:
            # Of the same ids as the predictions, whichever the graph of the run was keyed by.
            examples = tuple(map(by_name, dataset.examples())) if is_by_name(recorded) else tuple(dataset.examples())
        cases = _only(join(examples, read_predictions(predictions)), asked)
        if not is_finished(predictions):
            missing = sum(case.status != "ok" for case in cases)
            note(f"{predictions} is not finished: {missing:,} of {len(cases):,} questions have no prediction so far")
        return cases
    if predictions.is_file():
        if dataset is None:
            return read_external(predictions)
        left_out = sum(dataset.left_out().values())
        return _only(read_external(predictions, dataset.examples(), left_out), asked)
    raise ConfigError(f"there is no {str(predictions)!r}; give a run folder, or a file of predictions")


def _only(cases: list[Case], asked: Sequence[Example]) -> list[Case]:
    """Return the cases of the questions asked; all of them where none is named."""
    wanted = {example.id for example in asked}
    return [case for case in cases if case.id in wanted or not wanted]


def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Run folders; all are compared with the first.")],
    profile: Annotated[str, typer.Option(metavar="NAME", help="Metric profile that all are scored under.")] = "strict",
    metric: Annotated[str, typer.Option(help="What breakdown and lists are about; the profile's first.")] = "",
    anchors: Annotated[
        str, typer.Option(metavar="DATASET", help="Show published figures: webqsp, cwq, metaqa, stark prime, …")
    ] = "",
    published_graph: Annotated[
        bool, typer.Option("--published-graph", help="The graph is the one that published figures are about.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Compare runs with other questions on those they share.")
    ] = False,
    questions: Annotated[int, typer.Option(min=0, help="Questions won and lost that are listed.")] = 5,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Compare runs over the same questions: differences with intervals, by type, questions won and lost.

    One run alone can be set beside published figures.

    byokg compare runs/before runs/after

    byokg compare runs/a runs/b runs/c --profile rog --metric f1

    byokg compare runs/mine --anchors webqsp

    Runs with other questions, another split or another profile are refused without --force. A published figure stands
    beside ours, made the same way, where questions, topic entities and graph agree; apart, with the reason, elsewhere.
    """
    from byokg.evaluation.comparability import read_anchors
    from byokg.evaluation.compare import compare_runs, score_cases
    from byokg.evaluation.profiles import PROFILES, chosen
    from byokg.evaluation.run_folder import read_runs

    if profile not in PROFILES:
        raise ConfigError(f"--profile {profile} is not known; use one of {', '.join(PROFILES)}")
    published = read_anchors(anchors) if anchors else []
    read = read_runs(runs)
    alone = len(read) == 1 and published
    compared = [] if alone else compare_runs(read, PROFILES[profile], metric, force, seed)
    ours: dict[tuple[str, str], dict[str, float]] = {}
    wanted = chosen([each.profile for each in published if each.profile is not None and each.profile in PROFILES])
    for run in read if wanted else ():
        for scored in score_cases(run.cases, wanted, seed):
            for name, estimate in scored.estimates.items():
                ours.setdefault((scored.profile.name, name), {})[run.name] = estimate.value
    if as_json:
        figures = anchor_json(published, read, ours, published_graph)
        print_json({"comparisons": [comparison_json(one) for one in compared], "published": figures})
        return
    console = stdout()
    for one in compared:
        console.print(comparison_tables(one, questions))
    for part in anchor_tables(published, read, ours, published_graph):
        console.print(part)


# The judge


_EVERY = 100
"""Cases between two lines about progress."""


def judged(cases: Sequence[Case], words: Sequence[str], note: Callable[[str], None]) -> Profile:
    """Have all cases judged, and return the verdicts as a profile.

    Args:
        cases: questions with gold answers and predictions.
        words: settings: `llm`, and whatever else tells how to ask it.
        note: told in one line what happens.

    Raises:
        ConfigError: the settings name no language model, or questions have no text.
        LlmError: the judge cannot be asked.
    """
    wordless = sum(not case.question for case in cases)
    if wordless:
        raise ConfigError(
            f"{wordless:,} of {len(cases):,} predictions come without the question, which the judge has to see; "
            "name the data set: dataset=folder dataset.root=DIR"
        )
    from byokg.cli.components import asking
    from byokg.cli.config import read_settings
    from byokg.evaluation.compare import judge_cases, judge_profile
    from byokg.llm.usage import dollars
    from byokg.types import Spending

    # The pipeline that asks a model and needs no graph; only its model is made.
    settings = read_settings([*words, "pipeline=direct"])
    if "llm" not in settings.components:
        raise ConfigError("--profile judge asks a language model; add llm=anthropic llm.model=MODEL")
    asks = asking(settings, note)
    assert asks is not None
    try:

        def progress(done: int) -> None:
            if done % _EVERY == 0:
                note(f"{done:,} answers judged")

        verdicts = judge_cases(cases, asks.model, asks.prompts, settings.run.workers, progress)
        spent = Spending()
        for case in cases:
            spent = sum(asks.meter.take(case.id).stages.values(), spent)
    finally:
        asks.close()
    replayed = f", {spent.replayed.calls:,} replayed" if spent.replayed.calls else ""
    note(f"{verdicts.model} judged: {spent.asked.calls:,} calls{replayed}, {dollars(spent.asked.usd)}")
    if verdicts.unreadable:
        note(
            f"no score in {len(verdicts.unreadable):,} replies, which count as 0: {', '.join(verdicts.unreadable[:5])}"
        )
    return judge_profile(verdicts)
