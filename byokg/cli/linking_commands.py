"""`byokg link` and `byokg eval-linking`. What is heavy is imported when a command runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer

from byokg.cli.graph_commands import AsJson
from byokg.cli.terminal import note, print_json, stdout
from byokg.errors import ConfigError

if TYPE_CHECKING:
    from byokg.cli.config import Settings
    from byokg.graph.store import GraphStore
    from byokg.index.embedder import Embedder
    from byokg.linking.entities import EntityLinker

Word = TypeVar("Word", bound=str)

_LINKER = "byokg.linking.entities.entity_linker"
_DISAMBIGUATED = "both, disambiguated"


def link(
    place: Annotated[str, typer.Argument(metavar="GRAPH", help="A built graph, or a server's address.")],
    mentions: Annotated[list[str], typer.Argument(metavar="MENTION…", help="What to look for, each in quotes.")],
    top: Annotated[int, typer.Option(min=1, help="Candidates for each mention.")] = 5,
    method: Annotated[str, typer.Option(metavar="exact|fuzzy|dense|both", help="Beyond equal names.")] = "fuzzy",
    fusion: Annotated[str, typer.Option(metavar="union|rrf", help="How both are ordered.")] = "union",
    question: Annotated[str, typer.Option(help="Lets the question they come from decide between them.")] = "",
    embedding: Annotated[str, typer.Option(metavar="OPTION", help="Embedder, as in embedding=OPTION.")] = "static",
    explain: Annotated[bool, typer.Option("--explain", help="Show what made the order.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show which nodes a name, a date or an id may mean.

    byokg link GRAPH "Jordan" --question "What is the capital of Jordan?" --explain

    Equal names come first, then those that resemble it; dates, numbers and ids are read as such. GRAPH is a folder or
    an address, as for: byokg graph query
    """
    from byokg.cli.config import read_settings
    from byokg.cli.linking_tables import looked_up, show
    from byokg.cli.progress import watched
    from byokg.graph.places import opened
    from byokg.linking.entities import METHODS, Fusion, entity_linker

    known = _one_of("--method", method, METHODS)
    fused = _one_of("--fusion", fusion, get_args(Fusion))
    for number, text in enumerate(mentions, start=1):
        if not text.strip():
            raise ConfigError(f"mention {number} is empty; give what to look for in quotes")
    embedder: Embedder = read_settings([f"embedding={embedding}"]).build("embedding")
    with opened(place) as store:
        linker = entity_linker(
            watched(store, note),
            *(embedder, known, top),
            fusion=fused,
            extend=True,
            disambiguate=bool(question.strip()),
        )
        found = looked_up(store, linker, mentions, question, top)
    if as_json:
        print_json({"graph": store.name, "method": method, "question": question or None, "mentions": found})
    else:
        show(found, stdout(), explain)


def evaluate_linking(
    words: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings, as for: byokg eval")] = None,
    mentions: Annotated[str, typer.Option(metavar="given|spotted", help="Where mentions come from.")] = "given",
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")] = False,
) -> None:
    """Score entity linking on the annotated topic entities of a data set, all methods in one table.

    byokg eval-linking dataset=atlas

    byokg eval-linking dataset=folder dataset.root=DIR linking=both linking.extend=true --mentions spotted

    Mentions are given (the words of the question that name the annotated entity) or spotted (found in the question by
    the offline pipeline). Settings of linking apply to all methods.
    """

    from byokg.cli.config import Grants, read_settings
    from byokg.cli.evaluation import open_store
    from byokg.cli.linking_tables import metrics_json, metrics_tables
    from byokg.cli.progress import watched
    from byokg.cli.questions import keyed, narrowed, picked
    from byokg.evaluation.datasets.base import Dataset
    from byokg.evaluation.linking_runner import MentionSource
    from byokg.evaluation.linking_runner import evaluate_linking as evaluate
    from byokg.graph.name_index import name_index
    from byokg.graph.places import close
    from byokg.pipeline.offline import mention_spotter

    source: MentionSource = _one_of("--mentions", mentions, get_args(MentionSource))
    settings = read_settings(words or [])

    def say(text: str) -> None:
        if not quiet:
            note(text)

    dataset: Dataset = settings.build("dataset")
    candidates = picked(dataset, settings.run, say)
    store = open_store(settings, dataset, say)
    try:
        examples = narrowed(candidates, settings.run, lambda example: (store, name_index(store)), say)
        examples = keyed(examples, store, lambda: name_index(store), Grants(), say)
        lacking = sum(not example.topic_ids for example in examples)
        if lacking:
            say(f"{lacking:,} of {len(examples):,} questions have no topic entities annotated and are left out")
        embedder: Embedder = settings.build("embedding")
        linkers = _linkers(settings, watched(store, say), embedder)
        spotter = mention_spotter(store, embedder, next(iter(linkers.values()))) if source == "spotted" else None

        def progress(name: str, done: int, total: int) -> None:
            if done == total:
                say(f"{name}: {total:,} questions linked")

        measured = evaluate(linkers, examples, store, source, spotter, settings.run.seed, progress)
    finally:
        close(store)
    if as_json:
        print_json(
            {"dataset": dataset.name, "mentions": source, "settings": settings.recorded(), **metrics_json(measured)}
        )
    else:
        stdout().print(metrics_tables(measured, dataset.name, source))


def _linkers(settings: Settings, store: GraphStore, embedder: Embedder) -> dict[str, EntityLinker]:
    """Make one linker for each method with the chosen settings; only the chosen one where it is not ours."""
    from functools import cache

    from byokg.graph.dense_index import dense_names
    from byokg.linking.entities import METHODS, entity_linker

    chosen = settings.components["linking"]
    if chosen["_target_"] != _LINKER:
        return {settings.options["linking"] or "linking": settings.build("linking", store=store, embedder=embedder)}
    shared: dict[str, Any] = {
        key: value for key, value in chosen.items() if key not in ("_target_", "method", "disambiguate")
    }
    shared["dense"] = cache(lambda: dense_names(store, embedder))
    first = entity_linker(store, embedder, "exact", **shared)
    named: dict[str, EntityLinker] = {}
    for method in METHODS:
        named[method] = entity_linker(store, embedder, method, names=first.names, **shared)
    named[_DISAMBIGUATED] = entity_linker(store, embedder, "both", disambiguate=True, names=first.names, **shared)
    return named


def _one_of(option: str, given: str, known: Sequence[Word]) -> Word:
    """Return a word that is one of those known."""
    for word in known:
        if word == given:
            return word
    raise ConfigError(f"{option} {given} is not known; use one of {', '.join(known)}")
