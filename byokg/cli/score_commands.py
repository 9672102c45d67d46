"""`byokg score` and `byokg compare`. What is heavy is imported when a command runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from byokg.cli.terminal import note, print_json, stdout
from byokg.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from byokg.evaluation.cases import Case
    from byokg.evaluation.datasets.base import Dataset, Example

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]
Words = Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings; the data set among them.")]

_JUDGE = "judge"


def score(
    predictions: Annotated[Path, typer.Argument(metavar="PREDICTIONS", help="A run folder, or a file of predictions.")],
    words: Words = None,
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
    from byokg.cli.score_tables import score_json, score_tables
    from byokg.evaluation.profiles.catalog import chosen
    from byokg.evaluation.scoring import score_cases

    names = profile or ["strict"]
    profiles = chosen([name for name in names if name != _JUDGE])
    cases = _cases(predictions, words or [])
    if _JUDGE in names:
        from byokg.cli.judging import judged

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
    from byokg.cli.questions import selected
    from byokg.evaluation.asked import read_questions
    from byokg.evaluation.cases import join
    from byokg.evaluation.datasets.folder import by_name, is_by_name
    from byokg.evaluation.foreign import read_foreign
    from byokg.evaluation.metrics_file import read_profile
    from byokg.evaluation.records import read_predictions

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
        if read_profile(predictions) is None:
            missing = sum(case.status != "ok" for case in cases)
            note(f"{predictions} is not finished: {missing:,} of {len(cases):,} questions have no prediction so far")
        return cases
    if predictions.is_file():
        if dataset is None:
            return read_foreign(predictions)
        left_out = sum(dataset.left_out().values())
        return _only(read_foreign(predictions, dataset.examples(), left_out), asked)
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
    from byokg.cli.compare_tables import anchor_json, anchor_tables, comparison_json, comparison_tables
    from byokg.evaluation.anchors import read_anchors
    from byokg.evaluation.compare import compare_runs, read_runs
    from byokg.evaluation.profiles.catalog import PROFILES, chosen
    from byokg.evaluation.scoring import score_cases

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
    for table in anchor_tables(published, read, ours, published_graph):
        console.print(table)
