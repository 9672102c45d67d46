"""`byokg data`, `testset` and `cache`: data sets, questions made from a graph, and recorded replies."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from byokg.cli.language_model import replies_file
from byokg.cli.options import expand_records
from byokg.cli.terminal import (
    AsJson,
    ConfigDir,
    Output,
    Words,
    counted,
    note,
    part_words,
    print_json,
    print_line,
    stderr,
    stdout,
)
from byokg.errors import ConfigError
from byokg.llm.reply_store import RecordedReplies

if TYPE_CHECKING:
    from rich.table import Table

    from byokg.cli.config import Settings
    from byokg.evaluation.datasets.audit import Audit
    from byokg.evaluation.datasets.base import Dataset, Example
    from byokg.evaluation.datasets.testset import Testset
    from byokg.graph.rdf.dumps import Wanted
    from byokg.graph.store import GraphStore
    from byokg.index.names import NameIndex
    from byokg.llm.reply_store import Count, Mode

_TOLD_EVERY_S = 5.0

_REWRITTEN_TOLD = 100
"""Questions between two lines about progress."""

FOUND = 4
"""Exit code of an audit that found something."""

app = typer.Typer(no_args_is_help=True, help="Data sets: list, content, audit, conversion of graphs, download.")


@app.command("list")
def list_(config_dir: ConfigDir = None, as_json: AsJson = False) -> None:
    """List the readable layouts, and the values of subset=."""
    from byokg.cli.components import about, options

    found = {f"{group}={name}": about(group, name) for group in ("dataset", "subset") for name in options(group)}
    if as_json:
        print_json(found)
        return
    width = max(map(len, found))
    for word, text in found.items():
        print_line(stdout(), f"{word:{width}}  {text}")
    print("their settings: byokg eval dataset=NAME --show")


@app.command("info")
def info(words: Words = None, config_dir: ConfigDir = None, as_json: AsJson = False) -> None:
    """Count the content of a data set, without reading a graph.

    byokg data info dataset=metaqa dataset.root=DIR dataset.hops=2
    """
    from collections import Counter

    from byokg.errors import DatasetError

    _, dataset, examples = _questions(words)
    try:
        graph = str(dataset.graph_source())
    except DatasetError as error:
        graph = f"none: {error}"
    record: dict[str, Any] = {
        "name": dataset.name,
        "checksum": dataset.checksum,
        "graph": graph,
        "questions": len(examples),
        "left_out": dict(dataset.left_out()),
        "answers": sum(len(example.answers) for example in examples),
        "with_topic_entities": sum(bool(example.topic_ids) for example in examples),
        "with_answer_ids": sum(bool(example.answer_ids) for example in examples),
    }
    for name in ("split", "type", "answer_type", "hops"):
        counts = Counter(
            str(getattr(example, name)) for example in examples if getattr(example, name) not in ("", None)
        )
        if counts:
            record[f"by_{name}"] = dict(sorted(counts.items()))
    if as_json:
        print_json(record)
    else:
        _print_record(record)


@app.command("audit")
def audit(
    words: Words = None,
    config_dir: ConfigDir = None,
    hops: Annotated[int, typer.Option(min=1, help="How far from a topic entity an answer may be.")] = 3,
    without_graph: Annotated[bool, typer.Option("--without-graph", help="Look at the questions only.")] = False,
    show: Annotated[int, typer.Option(min=0, help="Questions named for each finding.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Find faults that lower every score: lost answers, missing topics, templates, repetitions.

    byokg data audit dataset=folder dataset.root=DIR

    Exit code 4: there are findings. --json lists all questions of each finding.
    """
    from byokg.cli.evaluation import open_store, subgraphs_of
    from byokg.cli.questions import keyed
    from byokg.evaluation.datasets.audit import audit as look
    from byokg.graph.name_indexes import name_index

    settings, dataset, examples = _questions(words)
    if without_graph:
        result = look(examples, None, hops, dataset.left_out())
    elif subgraphs := subgraphs_of(settings, dataset):

        def own(example: Example) -> tuple[GraphStore, NameIndex]:
            store = subgraphs.subgraph(example.id)
            return store, name_index(store)

        result = look(examples, own, hops, dataset.left_out())
    else:
        with closing(open_store(settings, dataset, note)) as store:
            names = name_index(store)
            examples = keyed(examples, store, lambda: names, note)
            result = look(examples, lambda example: (store, names), hops, dataset.left_out())
    if as_json:
        print_json({"name": dataset.name, "checksum": dataset.checksum, **asdict(result)})
    else:
        _print_audit(dataset.name, result, show)
    if result.findings:
        raise typer.Exit(FOUND)


@dataclass(frozen=True)
class DumpOptions:
    """Content that is kept of a dump."""

    dump: Annotated[str | None, typer.Option(help="Which it is: freebase or wikidata.")] = None
    language: Annotated[
        list[str] | None, typer.Option(metavar="CODE", help="Language of texts to keep; en unless given. Repeatable.")
    ] = None
    no_users: Annotated[bool, typer.Option("--no-users", help="Leave out Freebase's user.… and base.…")] = False
    descriptions: Annotated[bool, typer.Option("--descriptions", help="Keep Wikidata's descriptions.")] = False
    keep: Annotated[
        list[str] | None, typer.Option(metavar="RELATION", help="A further relation to keep. Repeatable.")
    ] = None
    skip_bad: Annotated[
        int, typer.Option("--skip-bad", metavar="N", min=0, help="Leave out up to N lines that are no statements.")
    ] = 0


@app.command("graph")
@expand_records
def graph(
    *,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="DUMP | KEY=VALUE…", help="A dump's file, or a data set's settings.")
    ] = None,
    config_dir: ConfigDir = None,
    out: Annotated[Path | None, typer.Option(metavar="PLACE", help="Folder, or file for a dump, to write.")] = None,
    content: DumpOptions,
) -> None:
    """Convert a data set's graph files, or the dump of Freebase or Wikidata, for byokg graph build.

    byokg data graph dataset=cronquestions dataset.root=DIR --out DIR/graph
    byokg data graph freebase-rdf-latest.gz --out fb.nt.zst

    Of a dump, statements about topics are kept, without editing history and links to other sites, and literals of the
    chosen languages; see docs/scale.md.
    """
    if out is None:
        raise ConfigError("--out is missing; name the folder, or for a dump the file, to write")
    dumps, others = part_words(words)
    if len(dumps) == 1 and not others:
        from byokg.graph.rdf.dumps import Wanted, dump_of

        source, languages, keep = dumps[0], tuple(content.language or ("en",)), tuple(content.keep or ())
        kind = content.dump or dump_of(source)
        wanted = Wanted(kind, languages, not content.no_users, content.descriptions, keep)
        _filter_dump(source, out, wanted, content.skip_bad)
        return
    from byokg.evaluation.datasets.base import QuestionSet

    settings = _settings(words)
    dataset = settings.build("dataset")
    if not isinstance(dataset, QuestionSet):
        raise ConfigError(f"the graph of dataset={settings.options['dataset']} needs no conversion; build it as it is")
    if out.exists() and any(out.iterdir()):
        raise ConfigError(f"--out {out} is not empty; name a new folder")
    dataset.write_graph(out)
    print(f"wrote {out}; a run finds it there, or with dataset.graph={out}")


def _filter_dump(source: Path, out: Path, wanted: Wanted, skip_bad: int) -> None:
    """Filter a dump, with its progress every few seconds and a summary at the end."""
    from byokg.files import bytes_read
    from byokg.graph.rdf.dumps import Filtered, filter_dump

    if out.exists():
        raise ConfigError(f"--out {out} is there already; name another file, or delete it")
    began = told = time.monotonic()

    def tell(done: Filtered) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told < _TOLD_EVERY_S:
            return
        told, at = now, bytes_read([source])
        share = (at or 0) / max(source.stat().st_size, 1)
        left = f", {share:.0%}, {(now - began) * (1 / share - 1) / 60:,.0f} min left" if share else ""
        note(f"read {done.read:,} statements, kept {done.kept:,}{left}")

    found = filter_dump(source, out, wanted, skip_bad, tell)
    print(f"wrote {out}: {found.kept:,} of {found.read:,} statements, in {time.monotonic() - began:,.1f} s")
    for reason, count in found.left_out.items():
        print(f"left out {count:,} {reason}")
    if found.bad:
        note(f"left out {found.bad:,} lines that are no statements:")
        for line, text in found.examples:
            note(f"  {source}:{line}: {text}")
    print(f"build it: byokg graph build {out} --out {out.name.split('.')[0]}.graph")


@app.command("fetch")
def fetch(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Data set; without it, all are listed.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder to put it into; NAME unless given.")] = None,
    mirror: Annotated[
        str | None, typer.Option(metavar="URL", help="Server that has the same paths, such as https://hf-mirror.com.")
    ] = None,
    attempts: Annotated[int, typer.Option(min=1, help="Connections without progress before giving up.")] = 5,
) -> None:
    """Download a data set from its authors' address, and verify it.

    The same command continues a broken download. SHA256SUMS in the folder lists the digests.
    """
    from byokg.evaluation.datasets.fetch import SUMS, sources
    from byokg.evaluation.datasets.fetch import fetch as download

    known = sources()
    if name is None:
        for source in known.values():
            files = f"{len(source.files)} files" if source.files else "by hand"
            print(f"{source.name:14} {files:9} {source.licence:38} {source.page}")
        return
    if name not in known:
        raise ConfigError(f"no data set {name!r} is listed; there are {', '.join(known)}")
    folder = out or Path(name)
    for each in download(known[name], folder, mirror, attempts, on_progress=_make_printer()):
        state = "fetched" if each.fetched else "there already"
        checked = "checked" if each.known else f"not known before, noted in {SUMS}"
        print(f"{each.path}: {state}; sha256 {each.sha256[:12]}… {checked}")
        if each.path.suffix == ".zip":
            print(f"unpack it, and name the folder that comes out as dataset.root: unzip {each.path} -d {folder}")
    print(f"licence: {known[name].licence}; see {known[name].page}")


def _questions(words: list[str] | None) -> tuple[Settings, Dataset, list[Example]]:
    """Return the settings, the data set they choose, and its questions as far as no graph is needed to pick them."""
    from byokg.cli.questions import select

    settings = _settings(words)
    dataset: Dataset = settings.build("dataset")
    return settings, dataset, select(dataset, settings.run, lambda text: None)


def _settings(words: list[str] | None) -> Settings:
    from byokg.cli.config import read_settings

    return read_settings(words or [])


def _print_record(record: Mapping[str, Any]) -> None:
    width = max(map(len, record))
    for key, value in record.items():
        if isinstance(value, Mapping):
            value = ", ".join(f"{name} {count:,}" for name, count in value.items()) or "none"
        text = f"{value:,}" if isinstance(value, int) else str(value)
        print_line(stdout(), f"{key.replace('_', ' '):{width}}  {text}")


def _print_audit(name: str, result: Audit, show: int) -> None:
    from byokg.evaluation.datasets.audit import KINDS

    graph = f"graph looked at, {result.max_hops} hops" if result.graph else "graph not looked at"
    print(f"{name}: {result.questions:,} questions, {graph}")
    for reason, count in result.left_out.items():
        print(f"  left out: {count:,} with {reason}")
    for kind, ids in result.findings.items():
        share = 100 * len(ids) / max(result.questions, 1)
        print(f"  {kind}: {len(ids):,} ({share:.1f} %); {KINDS[kind]}")
        for id in ids[:show]:
            print(f"    {id}")
        if show and len(ids) > show:
            print(f"    (+{len(ids) - show:,} more; all of them: --json)")
    if not result.findings:
        print("  nothing found")


def _make_printer() -> Callable[[str, int, int | None], None]:
    """Return a printer of a file's progress, once every 64 MB."""
    step = 64 << 20
    last: dict[str, int] = {}

    def tell(path: str, have: int, total: int | None) -> None:
        if have // step > last.get(path, 0):
            last[path] = have // step
            of = f" of {total / 1e6:,.0f}" if total else ""
            print_line(stderr(), f"{path}: {have / 1e6:,.0f}{of} MB")

    return tell


@dataclass(frozen=True)
class DrawOptions:
    """Questions that are drawn from a graph."""

    questions: Annotated[int, typer.Option(min=1, help="Questions, paraphrases and unanswerable ones included.")] = 1000
    seed: Annotated[int, typer.Option(help="The same graph and seed give the same questions on every machine.")] = 0
    types: Annotated[str, typer.Option(metavar="TYPE,…", help="Types of questions; all unless given.")] = ""


@expand_records
def make(
    graph: Annotated[str, typer.Argument(metavar="FOLDER", help="A built graph.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write; appears only when complete.")],
    drawn: DrawOptions,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a test set that is there already.")] = False,
    rewrite: Annotated[
        str, typer.Option(metavar="llm=…", help="Have a language model put the questions into other words.")
    ] = "",
    words: Words = None,
    config_dir: ConfigDir = None,
) -> None:
    """Make questions with gold answers from a graph.

    byokg testset FOLDER --out DIR

    byokg eval dataset=folder dataset.root=DIR dataset.split=test graph.path=FOLDER

    byokg testset FOLDER --out DIR --rewrite llm=anthropic llm.model=MODEL workers=8

    Types: 1-hop, 2-hop, 3-hop, conjunction, count, superlative, comparison, temporal, unanswerable. No language model
    takes part but with --rewrite, which keeps the original beside each question, and leaves it where names or numbers
    would be lost. Questions that the graph does not answer are in unanswerable.jsonl, for byokg answer.
    """
    from byokg.cli.config import read_settings
    from byokg.evaluation.datasets.patterns import KINDS
    from byokg.evaluation.datasets.testset import make_testset, refuse_other, write_testset
    from byokg.graph.columnar.graph import ColumnarGraph
    from byokg.open import is_address

    if is_address(graph):
        raise ConfigError(f"testset reads a graph in files; make one with: byokg graph build {graph} --out DIR")
    wanted = [kind.strip() for kind in drawn.types.split(",") if kind.strip()]
    if unknown := [kind for kind in wanted if kind not in KINDS]:
        raise ConfigError(f"--types {unknown[0]} is none; there are {', '.join(KINDS)}")
    refuse_other(out, overwrite)
    kinds = [kind for kind in KINDS if kind in wanted or not wanted]
    if words and not rewrite:
        raise ConfigError(f"{words[0]} says how a language model is asked; add --rewrite llm=anthropic, say, before it")
    if rewrite and not rewrite.startswith("llm="):
        raise ConfigError(f"--rewrite {rewrite} names no language model; write --rewrite llm=anthropic, for instance")
    settings = read_settings([rewrite, *(words or []), "pipeline=direct"]) if rewrite else None
    with counted("questions", drawn.questions, Output()) as progress:
        made = make_testset(ColumnarGraph.open(graph), drawn.questions, drawn.seed, kinds, progress)
    if settings is not None:
        made = _rewritten(made, settings)
    write_testset(made, out, overwrite)
    asked = len(made.questions) + len(made.unanswerable)
    _print_record({"questions": asked, **made.counts(), "written to": str(out)})
    if missing := [kind for kind in kinds if kind not in made.counts()["types"]]:
        note(f"the graph gives no question of type {', '.join(missing)}")
    if asked < drawn.questions:
        note(f"the graph gives no more than these {asked:,} of {drawn.questions:,}")


def _rewritten(made: Testset, settings: Settings) -> Testset:
    """Rewrite the wording of a test set, and print a summary."""
    from byokg.cli.language_model import open_model
    from byokg.evaluation.datasets.testset import rewrite

    llm = open_model(settings, note)

    def progress(done: int) -> None:
        if done % _REWRITTEN_TOLD == 0:
            note(f"{done:,} questions put into other words")

    try:
        found = rewrite(made, llm.model, llm.prompts, settings.run.workers, progress)
        note(f"{llm.model.name}: {llm.bill(one.id for one in (*made.questions, *made.unanswerable))}")
    finally:
        llm.close()
    note(f"{found.taken:,} questions are in other words")
    for reason, count in found.kept.items():
        note(f"{count:,} stay as they were: the rewriting {reason}")
    return found.testset


# Recorded replies of language models


cache_app = typer.Typer(
    no_args_is_help=True, help="Recorded replies of language models: counts, export, import, removal."
)

StoreOption = Annotated[
    Path | None, typer.Option("--store", metavar="FILE", help="File of recorded replies; the user's own unless given.")
]

_AGE = re.compile(r"(\d+)([dhw])")
_SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400}
_CONFLICTS_SHOWN = 5


@cache_app.command("stats")
def stats(store: StoreOption = None, as_json: AsJson = False) -> None:
    """Count recorded replies and their tokens by provider, model and stage."""
    with _opened(store) as replies:
        counts, size, waiting = replies.counts(), replies.path.stat().st_size, len(replies.pending())
        total = sum(count.replies for count in counts)
        if as_json:
            record = {"file": str(replies.path), "bytes": size, "replies": total, "pending": waiting}
            print_json({**record, "counts": [asdict(count) for count in counts]})
            return
        if counts:
            stdout().print(_counts_table(counts))
        noun = "reply" if total == 1 else "replies"
        print(f"{total:,} {noun} in {replies.path} ({size / 1e6:,.1f} MB)")
        if waiting:
            print(f"pending: {waiting:,} more; take them in with: byokg cache import FILE")


@cache_app.command("export")
def export(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="JSON lines to write; .gz compresses.")],
    run: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="Replies of this run only; may be repeated.")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Write recorded replies as JSON lines that others can import and replay."""
    from byokg.llm.reply_files import export_replies

    keys = _keys(run)
    with _opened(store) as replies:
        count = export_replies(replies, out, keys)
    print(f"exported {count:,} {'reply' if count == 1 else 'replies'} to {out}")


@cache_app.command("import")
def import_(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="JSON lines: an export, or a batch service's output.")
    ],
    store: StoreOption = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace replies that are there already.")] = False,
) -> None:
    """Take in replies that were exported, or that a batch service or another machine made.

    Each file is taken in whole or not at all, and again without harm.
    """
    from byokg.llm.reply_files import import_replies

    with RecordedReplies(store or replies_file(), "record" if overwrite else "auto") as replies:
        for file in files:
            taken = import_replies(replies, file)
            parts = [f"{taken.new:,} new", f"{taken.known:,} known"]
            if taken.conflicts:
                kept = "replaced" if overwrite else "kept as they were"
                parts.append(f"{len(taken.conflicts):,} there with another reply, {kept}")
            if taken.failed:
                parts.append(f"{len(taken.failed):,} without a reply")
            print(f"{file}: {', '.join(parts)}")
            for key in taken.conflicts[:_CONFLICTS_SHOWN]:
                print(f"  another reply: {key}")
            for key, reason in taken.failed[:_CONFLICTS_SHOWN]:
                print(f"  no reply: {key}: {reason}")
        waiting = len(replies.pending())
    if waiting:
        print(f"pending: {waiting:,} more")


@cache_app.command("prune")
def prune(
    older_than: Annotated[
        str | None, typer.Option(metavar="AGE", help="Recorded longer ago than this: 30d, 12h, 8w.")
    ] = None,
    model: Annotated[list[str] | None, typer.Option(metavar="ID", help="Of this model; may be repeated.")] = None,
    not_used_by: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="Used by none of these runs; may be repeated.")
    ] = None,
    store: StoreOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many.")] = False,
) -> None:
    """Remove recorded replies that fulfil every condition given. They were paid for: export them first."""
    if older_than is None and not model and not not_used_by:
        raise ConfigError("nothing says what to remove; give --older-than, --model or --not-used-by")
    before = None if older_than is None else time.time() - _seconds(older_than)
    keep = _keys(not_used_by)
    with _opened(store, "auto") as replies:
        size = replies.path.stat().st_size
        count = replies.prune(before, model or (), keep, dry_run)
        freed = (size - replies.path.stat().st_size) / 1e6
    noun = "reply" if count == 1 else "replies"
    print(f"{count:,} {noun} would go" if dry_run else f"removed {count:,} {noun} ({max(freed, 0.0):,.1f} MB)")


def _counts_table(counts: Sequence[Count]) -> Table:
    from byokg.evaluation.tables import figures, labels, table

    rows = []
    for count in counts:
        usage = count.usage
        took = (count.replies, usage.input_tokens, usage.cache_read_tokens, usage.output_tokens)
        rows.append((count.provider, count.model, count.stage, *(f"{figure:,}" for figure in took)))
    headings = figures("replies", "tokens in", "cached", "tokens out")
    return table([*labels("provider", "model", "stage"), *headings], rows)


def _opened(store: Path | None, mode: Mode = "replay") -> RecordedReplies:
    """Open a file that has to be there."""
    path = store or replies_file()
    if not path.is_file():
        raise ConfigError(f"no recorded replies in {str(path)!r}; name their file with --store")
    return RecordedReplies(path, mode)


def _keys(runs: list[Path] | None) -> set[str] | None:
    """Return the keys of replies that runs used; None without runs."""
    from byokg.evaluation.records import reply_keys

    return set().union(*map(reply_keys, runs)) if runs else None


def _seconds(age: str) -> int:
    found = _AGE.fullmatch(age)
    if found is None:
        raise ConfigError(f"--older-than {age} is no age; write hours, days or weeks as 12h, 30d or 8w")
    return int(found[1]) * _SECONDS[found[2]]
