"""`byokg embedder` makes and describes embedders; `byokg graph embed` embeds the names of a graph."""

from __future__ import annotations

import time
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from byokg.cli.terminal import folder_given, in_these_words, stderr
from byokg.errors import ConfigError, GraphExists

embedder_app = typer.Typer(no_args_is_help=True, help="Make an embedder of your own, and look at one.")


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
    try:
        with new_folder(out, overwrite, refuse_taken) as partial:
            distill(model, partial, dimensions, quantize.value, revision, device)
    except GraphExists as error:
        raise in_these_words(error) from None
    seconds = time.perf_counter() - began
    size = sum(path.stat().st_size for path in out.iterdir()) / 1e6
    print(f"distilled {model} to {out}: {StaticEmbedder(out).name}, {size:.1f} MB, in {seconds:.0f} s")
    print(f"use it with: embedding=static embedding.path={out}")


@embedder_app.command("info")
def info(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="embedding=OPTION and its settings.")
    ] = None,
) -> None:
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
    words: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="embedding=OPTION and its settings.")
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where vectors are kept; else the user's cache folder.")
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Keep no vectors, and use none kept before.")] = False,
    layout: Annotated[
        str | None, typer.Option(metavar="flat|pq|ivf|hnsw", help="How vectors are laid out; else chosen by size.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an index that is there already.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")] = False,
) -> None:
    """Embed the names of a graph's nodes, so that mentions are linked by meaning, too.

    byokg graph embed DIR

    byokg graph embed DIR embedding=bge_m3 embedding.device=cuda

    The index lies in DIR/dense, one for each embedder. What was embedded is kept and never embedded again: the same
    command goes on after an interruption.
    """
    from byokg.cli.config import read_settings
    from byokg.cli.terminal import embedding_shown
    from byokg.files import user_cache
    from byokg.graph.columnar.graph import ColumnarGraph
    from byokg.graph.name_indexes import build_dense, index_folder
    from byokg.index.vectors import checked_layout

    if cache is not None and no_cache:
        raise ConfigError("--cache and --no-cache exclude each other; give one")
    chosen = None if layout is None else checked_layout(layout)
    folder = folder_given(place, "byokg graph embed")
    graph = ColumnarGraph.open(folder)
    embedder = read_settings(words or []).build("embedding")
    kept = None if no_cache else cache or user_cache() / "embeddings"
    began = time.perf_counter()
    try:
        with embedding_shown("embedding", stderr(), quiet) as progress:
            names = build_dense(graph, embedder, kept, progress, chosen, overwrite)
    except GraphExists as error:
        raise in_these_words(error) from None
    index = index_folder(folder, embedder)
    size = sum(path.stat().st_size for path in index.iterdir()) / 1e6
    seconds = time.perf_counter() - began
    print(f"embedded {len(names):,} names with {embedder.name} into {index}: {size:.1f} MB, in {seconds:.1f} s")
