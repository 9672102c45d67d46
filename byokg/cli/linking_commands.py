"""`byokg link`, `byokg eval-linking`, `byokg embedder` and `byokg graph embed`: how names are found and compared."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from byokg.cli.options import ServerOptions, expand_records
from byokg.cli.terminal import (
    AsJson,
    ConfigDir,
    Output,
    Place,
    Quiet,
    Words,
    embedding_shown,
    folder_given,
    in_these_words,
    note,
    print_json,
    stdout,
    watch,
)
from byokg.errors import ConfigError, one_of
from byokg.evaluation.tables import figures, labels, table, two_lines
from byokg.types import Mention

if TYPE_CHECKING:
    from byokg.cli.config import Settings
    from byokg.evaluation.linking_quality import LinkingMetrics
    from byokg.evaluation.metrics import Estimate
    from byokg.graph.store import GraphStore
    from byokg.index.embedders import Embedder
    from byokg.linking.entities import EntityLinker

_SHOWN = 60
"""Characters of a mention in a heading."""

_TITLES = {
    "precision@1": "P@1",
    "recall@1": "R@1",
    "precision@3": "P@3",
    "recall@3": "R@3",
    "precision": "Prec.",
    "recall": "Recall",
    "mrr": "MRR",
}
_SOURCES = {
    "given": "mentions given: the words of the question that name the annotated entity",
    "spotted": "mentions spotted in the question by the offline pipeline",
}


def looked_up(
    store: GraphStore, linker: EntityLinker, texts: Sequence[str], question: str, top: int
) -> list[dict[str, Any]]:
    """Return for each text its parse and its best candidates, as JSON."""
    mentions = [_located(text, question) for text in texts]
    found = [candidates[:top] for candidates in linker.link_all(mentions, question)]
    ids = list(dict.fromkeys(one.id for candidates in found for one in candidates))
    degrees = store.relation_counts(store.numbers(ids)).degrees(len(ids)).tolist()
    around = {id: (node, degree) for id, node, degree in zip(ids, store.nodes(ids), degrees, strict=True)}
    listed = []
    for mention, candidates in zip(mentions, found, strict=True):
        literal = linker.literal(mention)
        rows = []
        for one in candidates:
            node, degree = around[one.id]
            rows.append(
                {
                    "id": one.id,
                    "name": one.name,
                    "type": node.type,
                    **({"types": list(node.types)} if node.further_types else {}),
                    "method": one.method,
                    "score": one.score,
                    "context": one.context,
                    "degree": degree,
                    "matches": [asdict(match) for match in one.matches],
                }
            )
        read = None if literal is None else {"kind": literal.kind, "value": literal.value}
        listed.append({"mention": mention.text, "literal": read, "candidates": rows})
    return listed


def values_of(store: GraphStore, texts: Sequence[str], question: str, top: int) -> list[list[dict[str, Any]]]:
    """Return for each text the property values that it may mean, best first, as JSON."""
    from byokg.linking.values import ValueLinker

    linker = ValueLinker(store, edges=True)
    return [[asdict(match) for match in linker.link_text(text, question, top)] for text in texts]


def show(found: Sequence[Mapping[str, Any]], console: Console, explain: bool) -> None:
    """Print a table of nodes and one of values for each mention; with `explain`, each method's reasons."""
    for one in found:
        text = one["mention"]
        heading = repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
        if one["literal"] is not None:
            heading += f", read as {one['literal']['kind']} {one['literal']['value']}"
        if one["candidates"]:
            console.print(_candidates(heading, one["candidates"], explain))
        elif not one["values"]:
            console.print(Text(f"{heading}: no node has this name or value, or a similar one"), soft_wrap=True)
        if one["values"]:
            console.print(_values(heading, one["values"]))


def metrics_tables(measured: Mapping[str, LinkingMetrics], dataset: str, source: str) -> Group:
    """Return the table of all methods, and one of recall by mention type.

    Figures are percentages with one decimal; below each, half the width of its 95 % interval.
    """
    first = next(iter(measured.values()))
    overall = table(
        [*labels(""), *figures(*_TITLES.values(), "failed")],
        [
            (method, *(two_lines(metrics.estimates[name]) for name in _TITLES), f"{metrics.failed:,}")
            for method, metrics in measured.items()
        ],
        f"linking on {dataset}, %",
        f"{first.n:,} questions, {first.topics:,} topic entities; {_SOURCES[source]}",
    )
    return Group(overall, *(_by_type(metric, measured) for metric in ("recall@1", "recall@3")))


def metrics_json(measured: Mapping[str, LinkingMetrics]) -> dict[str, Any]:
    """Return all figures as JSON holds them."""
    return {
        "methods": {
            method: {
                "n": metrics.n,
                "topics": metrics.topics,
                "failed": metrics.failed,
                **_dump(metrics.estimates),
                "by_type": {kind: {"n": one.n, **_dump(one.estimates)} for kind, one in metrics.by_type.items()},
            }
            for method, metrics in measured.items()
        }
    }


def _located(text: str, question: str) -> Mention:
    """Return the mention, with its place in the question if it occurs there."""
    start = question.find(text)
    return Mention(text, start, start + len(text)) if start >= 0 else Mention(text)


def _candidates(heading: str, rows: Sequence[Mapping[str, Any]], explain: bool) -> Table:
    columns = [*labels("id", "name", "type"), *labels("method", one_line=True), *figures("score")]
    columns += labels("because") if explain else []
    cells = []
    for row in rows:
        because = [", ".join(_reasons(row))] if explain else []
        cells.append([*(str(row[key]) for key in ("id", "name", "type", "method")), f"{row['score']:.3f}", *because])
    return table(columns, cells, heading)


def _values(heading: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    from byokg.index.values import ValueMatch

    cells = []
    for row in rows:
        cells.append((str(ValueMatch(**row)), f"{row['count']:,}", f"{row['score']:.3f}"))
    counted = {"edges" if row["edge"] else "nodes" for row in rows}
    return table([*labels("value"), *figures(" or ".join(sorted(counted, reverse=True)), "score")], cells, heading)


def _reasons(row: Mapping[str, Any]) -> list[str]:
    """Describe each method's result for a candidate, the question's, and the degree that breaks ties."""
    reasons = []
    for match in row["matches"]:
        called = f" as {match['name']}" if match["name"] != row["name"] else ""
        reasons.append(f"{match['method']} {match['score']:.3f} (no. {match['rank']}){called}")
    if row["context"] is not None:
        reasons.append(f"question {row['context']:.3f}")
    return [*reasons, "1 edge" if row["degree"] == 1 else f"{row['degree']:,} edges"]


def _by_type(metric: str, measured: Mapping[str, LinkingMetrics]) -> Table:
    """Return the table of one metric of topic entities: a line for each mention type, a column for each method."""
    return table(
        [*labels(""), *figures("n"), *figures(*measured, one_line=False)],
        [
            (kind, f"{one.n:,}", *(two_lines(metrics.by_type[kind].estimates[metric]) for metrics in measured.values()))
            for kind, one in next(iter(measured.values())).by_type.items()
        ],
        f"{_TITLES[metric]} of topic entities by how they are mentioned, %",
    )


def _dump(estimates: Mapping[str, Estimate]) -> dict[str, Any]:
    return {name: asdict(one) for name, one in estimates.items()}


_LINKER = "byokg.linking.entities.EntityLinker"
_DISAMBIGUATED = "both, disambiguated"


@dataclass(frozen=True)
class LookupOptions:
    """How a mention is looked up, and how much of the outcome is shown."""

    top: Annotated[int, typer.Option(min=1, help="Candidates for each mention.")] = 5
    method: Annotated[str, typer.Option(metavar="exact|fuzzy|dense|both", help="Beyond equal names.")] = "fuzzy"
    fusion: Annotated[str, typer.Option(metavar="union|rrf", help="How both are ordered.")] = "union"
    question: Annotated[str, typer.Option(help="Lets the question they come from decide between them.")] = ""
    embedding: Annotated[str, typer.Option(metavar="OPTION", help="Embedder, as in embedding=OPTION.")] = "static"
    explain: Annotated[bool, typer.Option("--explain", help="Show the reasons for the order.")] = False


@expand_records
def link(
    place: Place,
    mentions: Annotated[list[str], typer.Argument(metavar="MENTION…", help="What to look for, each in quotes.")],
    lookup: LookupOptions,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Show candidate nodes of a name, a date or an id, and the property values that equal or resemble it.

    byokg link GRAPH "Jordan" --question "What is the capital of Jordan?" --explain

    Equal names come first, then similar ones; dates, numbers and ids are read as such. GRAPH is a folder or
    an address, as for: byokg graph query
    """
    from byokg.cli.config import read_settings
    from byokg.linking.entities import METHODS, EntityLinker, Fusion
    from byokg.open import use_graph

    method = one_of("--method ", lookup.method, METHODS)
    fusion = one_of("--fusion ", lookup.fusion, get_args(Fusion))
    for number, text in enumerate(mentions, start=1):
        if not text.strip():
            raise ConfigError(f"mention {number} is empty; give what to look for in quotes")
    embedder: Embedder = read_settings([f"embedding={lookup.embedding}"]).build("embedding")
    question, top, disambiguate = lookup.question, lookup.top, bool(lookup.question.strip())
    with use_graph(place, **server.settings(place)) as store:
        watched = watch(store, note)
        linker = EntityLinker(
            watched, method, top, fusion=fusion, extend=True, disambiguate=disambiguate, embedder=embedder
        )
        found = looked_up(store, linker, mentions, question, top)
        for one, values in zip(found, values_of(store, mentions, question, top), strict=True):
            one["values"] = values
    if as_json:
        print_json({"graph": store.name, "method": method, "question": question or None, "mentions": found})
    else:
        show(found, stdout(), lookup.explain)


def evaluate_linking(
    words: Words = None,
    config_dir: ConfigDir = None,
    mentions: Annotated[str, typer.Option(metavar="given|spotted", help="Where mentions come from.")] = "given",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Score entity linking on the annotated topic entities of a data set, all methods in one table.

    byokg eval-linking dataset=atlas

    byokg eval-linking dataset=folder dataset.root=DIR linking=both linking.extend=true --mentions spotted

    Mentions are given (the words of the question that name the annotated entity) or spotted (found in the question by
    the offline pipeline). Settings of linking apply to all methods.
    """

    from byokg.api import mention_spotter
    from byokg.cli.config import read_settings
    from byokg.cli.evaluation import open_questions
    from byokg.evaluation.linking_quality import MentionSource
    from byokg.evaluation.linking_quality import evaluate_linking as evaluate

    source: MentionSource = one_of("--mentions ", mentions, get_args(MentionSource))
    settings = read_settings(words or [])

    say = Output(quiet=quiet).note
    with open_questions(settings, say) as (dataset, store, examples):
        lacking = sum(not example.topic_ids for example in examples)
        if lacking:
            say(f"{lacking:,} of {len(examples):,} questions have no topic entities annotated and are left out")
        embedder: Embedder = settings.build("embedding")
        linkers = _linkers(settings, store, embedder)
        spotter = mention_spotter(store, embedder, next(iter(linkers.values()))) if source == "spotted" else None

        def progress(name: str, done: int, total: int) -> None:
            if done == total:
                say(f"{name}: {total:,} questions linked")

        measured = evaluate(linkers, examples, store, source, spotter, settings.run.seed, progress)
    if as_json:
        print_json(
            {"dataset": dataset.name, "mentions": source, "settings": settings.recorded(), **metrics_json(measured)}
        )
    else:
        stdout().print(metrics_tables(measured, dataset.name, source))


def _linkers(settings: Settings, store: GraphStore, embedder: Embedder) -> dict[str, EntityLinker]:
    """Make one linker for each method with the chosen settings; only the chosen one if it is a user's own."""
    from functools import cache

    from byokg.graph.name_indexes import open_dense_lookup
    from byokg.linking.entities import METHODS, EntityLinker

    chosen = settings.components["linking"]
    if chosen["_target_"] != _LINKER:
        return {settings.options["linking"] or "linking": settings.build("linking", store=store, embedder=embedder)}
    shared: dict[str, Any] = {
        key: value for key, value in chosen.items() if key not in ("_target_", "method", "disambiguate")
    }
    shared |= {"embedder": embedder, "dense": cache(lambda: open_dense_lookup(store, embedder))}
    first = EntityLinker(store, "exact", **shared)
    named: dict[str, EntityLinker] = {}
    for method in METHODS:
        named[method] = EntityLinker(store, method, known_names=first.names, **shared)
    named[_DISAMBIGUATED] = EntityLinker(store, "both", disambiguate=True, known_names=first.names, **shared)
    return named


# Embedders


embedder_app = typer.Typer(
    no_args_is_help=True, help="Embedders: how fast one is, and making a small one out of a large one."
)


class Quantize(Enum):
    """How a static embedder keeps its numbers."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT8 = "int8"


@embedder_app.command("distill")
def distill_model(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="minilm, a folder, or a model-hub name.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write; appears only when complete.")],
    dimensions: Annotated[int, typer.Option(min=1, metavar="D", help="Length of a vector.")] = 128,
    quantize: Annotated[Quantize, typer.Option(help="How numbers are kept; int8 takes a byte each.")] = Quantize.INT8,
    revision: Annotated[str | None, typer.Option(metavar="REV", help="Branch, tag or commit on the hub.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, …")] = "cpu",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an embedder that is there already.")] = False,
) -> None:
    """Make a static embedder from a sentence-transformers model: a vector for each token, no torch to use it.

    byokg embedder distill BAAI/bge-m3 --out bge-static --dimensions 256

    Then: byokg graph embed DIR embedding=static embedding.path=bge-static
    """
    from byokg.files import new_folder
    from byokg.index.embedders import StaticEmbedder, distill, refuse_taken

    began = time.perf_counter()
    with in_these_words(), new_folder(out, overwrite, refuse_taken) as partial:
        distill(model, partial, dimensions, quantize.value, revision, device)
    seconds = time.perf_counter() - began
    size = sum(path.stat().st_size for path in out.iterdir()) / 1e6
    print(f"distilled {model} to {out}: {StaticEmbedder(out).name}, {size:.1f} MB, in {seconds:.0f} s")
    print(f"use it with: embedding=static embedding.path={out}")


@embedder_app.command("info")
def embedder_info(words: Words = None, config_dir: ConfigDir = None) -> None:
    """Load an embedder, and show its name, its dimensions and how fast it is here."""
    from byokg.cli.config import read_settings

    embedder = read_settings(words or []).build("embedding")
    texts = [f"name number {number}" for number in range(64)]
    width = embedder.encode(texts[:1]).shape[1]
    began = time.perf_counter()
    embedder.encode(texts)
    rate = len(texts) / (time.perf_counter() - began)
    print(f"name        {embedder.name}\ndimensions  {width}\nspeed       {rate:,.0f} short texts a second")


def embed(
    place: Annotated[str, typer.Argument(metavar="DIR", help="A built graph.")],
    words: Words = None,
    config_dir: ConfigDir = None,
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where vectors are kept; else the user's cache folder.")
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Keep no vectors, and use none kept before.")] = False,
    layout: Annotated[
        str | None, typer.Option(metavar="flat|pq|ivf|hnsw", help="How vectors are laid out; else chosen by size.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an index that is there already.")] = False,
    quiet: Quiet = False,
) -> None:
    """Embed the names of a graph's nodes, so that mentions are linked by meaning, too.

    byokg graph embed DIR

    byokg graph embed DIR embedding=bge_m3 embedding.device=cuda

    The index lies in DIR/dense, one for each embedder. Vectors are kept and never computed again: the same
    command continues after an interruption.
    """
    from byokg.cli.config import read_settings
    from byokg.files import user_cache
    from byokg.graph.columnar.graph import ColumnarGraph
    from byokg.graph.name_indexes import build_dense, index_folder
    from byokg.index.vectors import Layout

    if cache is not None and no_cache:
        raise ConfigError("--cache and --no-cache exclude each other; give one")
    chosen = None if layout is None else one_of("--layout ", layout, get_args(Layout))
    folder = folder_given(place, "byokg graph embed")
    graph = ColumnarGraph.open(folder)
    embedder = read_settings(words or []).build("embedding")
    kept = None if no_cache else cache or user_cache() / "embeddings"
    began = time.perf_counter()
    with in_these_words(), embedding_shown("embedding", Output(quiet=quiet)) as progress:
        names = build_dense(graph, embedder, kept, progress, chosen, overwrite)
    index = index_folder(folder, embedder)
    size = sum(path.stat().st_size for path in index.iterdir()) / 1e6
    seconds = time.perf_counter() - began
    print(f"embedded {len(names):,} names with {embedder.name} into {index}: {size:.1f} MB, in {seconds:.1f} s")
