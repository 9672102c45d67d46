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
    from byokg.evaluation.asked import read_questions
    from byokg.evaluation.cases import join
    from byokg.evaluation.foreign import read_foreign
    from byokg.evaluation.records import read_predictions

    examples = None
    if any(word.startswith("dataset") for word in words):
        settings = read_settings(words)
        examples = list(settings.build("dataset").examples())[: settings.run.limit]
    if predictions.is_dir():
        return join(examples or read_questions(predictions), read_predictions(predictions))
    if predictions.is_file():
        return read_foreign(predictions, examples)
    raise ConfigError(f"there is no {str(predictions)!r}; give a run folder, or a file of predictions")
