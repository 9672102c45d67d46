"""`byokg train`: what is learnt from questions and answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from byokg.cli.terminal import AsJson, ConfigDir, Words, note, print_json, print_line, stdout

if TYPE_CHECKING:
    from byokg.evaluation.datasets.base import Example
    from byokg.types import EntityId

app = typer.Typer(no_args_is_help=True, help="Learn from questions and answers: labels, rankers, language models.")


@app.callback()
def _several() -> None:
    """Keep the name of the command, also where there is one only."""


@app.command("labels")
def labels_(
    words: Words = None,
    config_dir: ConfigDir = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the JSON lines go.")] = Path("labels.jsonl"),
    keep: Annotated[int, typer.Option(min=1, help="Queries kept for each question, best first.")] = 1,
    min_f1: Annotated[float, typer.Option(min=0, max=1, help="F1 that a query has to exceed.")] = 0.0,
    hops: Annotated[int, typer.Option(min=1, max=3, help="Edges in a path, at most.")] = 2,
    directed: Annotated[bool, typer.Option("--directed", help="Keep the two ways of a relation apart.")] = False,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")] = False,
) -> None:
    """Find for each question the query that returns its gold answers best.

    byokg train labels dataset=atlas --out labels.jsonl

    Candidates are enumerated around the annotated topic entities, and ranked by F1 against the answers. A line holds
    the question, its best queries, and their hits, totals, precision and recall.
    """
    from byokg.cli.config import Grants, read_settings
    from byokg.cli.evaluation import keyed, narrowed, open_store, picked
    from byokg.evaluation.datasets.folder import holds
    from byokg.graph.name_indexes import name_index
    from byokg.open import close
    from byokg.retrieval.candidates import PATHS, Templates
    from byokg.training.labels import labels, write_labels
    from byokg.types import EntityId as Id

    settings = read_settings(words or [])

    def say(text: str) -> None:
        if not quiet:
            note(text)

    dataset = settings.build("dataset")
    candidates = picked(dataset, settings.run, say)
    store = open_store(settings, dataset, say)
    try:
        names = name_index(store)
        examples = narrowed(candidates, settings.run, lambda example: (store, names), say)
        examples = keyed(examples, store, lambda: names, Grants(), say)

        def anchors(example: Example) -> Sequence[EntityId]:
            return [id for id in example.topic_ids if holds(store, [id])]

        def gold(example: Example) -> Sequence[EntityId]:
            if example.answer_ids and any(holds(store, [id]) for id in example.answer_ids):
                return example.answer_ids
            nodes = [id for name in example.answers for id in store.ids(names.exact(name)) or [Id(name)]]
            return list(dict.fromkeys(nodes))

        templates = Templates((*PATHS[:hops], "between", "intersection", "mediated"), directed=directed)
        made = labels(store, examples, anchors, gold, templates, keep, min_f1)
        questions, labelled = write_labels(made, out)
    finally:
        close(store)
    if as_json:
        print_json({"dataset": dataset.name, "questions": questions, "labelled": labelled, "file": str(out)})
    else:
        print_line(stdout(), f"{labelled:,} of {questions:,} questions have a query that finds an answer: {out}")
