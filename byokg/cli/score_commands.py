"""`byokg score`, `compare`, `table`, `report` and `view`. Heavy modules are imported when a command runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from byokg.cli.options import ServerOptions, expand_records
from byokg.cli.terminal import AsJson, ConfigDir, Words, note, part_words, print_json, stdout
from byokg.errors import ConfigError, RunError, one_of
from byokg.evaluation.comparability import PublishedResult, RunConditions, run_conditions, split_published
from byokg.evaluation.report.comparison_tables import anchor_json, anchor_tables, comparison_json, comparison_tables
from byokg.evaluation.tables import score_json, score_tables
from byokg.llm.reply_store import RecordedReplies

if TYPE_CHECKING:
    from byokg.evaluation.cases import Case
    from byokg.evaluation.datasets.base import Dataset, Example
    from byokg.evaluation.profiles import Profile
    from byokg.evaluation.run_folder import Run
    from byokg.open import Opened

_JUDGE = "judge"


@dataclass(frozen=True)
class PublishedOptions:
    """Published figures beside ours."""

    anchors: Annotated[
        str, typer.Option(metavar="DATASET", help="Show published figures: webqsp, cwq, metaqa, stark prime, …")
    ] = ""
    published_graph: Annotated[
        bool, typer.Option("--published-graph", help="The graph is the one that published figures are about.")
    ] = False


@expand_records
def score(
    *,
    predictions: Annotated[Path, typer.Argument(metavar="PREDICTIONS", help="A run folder, or a file of predictions.")],
    words: Words = None,
    config_dir: ConfigDir = None,
    profile: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Metric profile; may be repeated; all, or judge.")
    ] = None,
    published: PublishedOptions,
    seed: Annotated[int, typer.Option(help="Of the intervals.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Score predictions again, under one metric profile or all of them side by side.

    byokg score runs/mine --profile all

    byokg score predictions.jsonl --profile rog --profile strict

    byokg score predictions.jsonl dataset=folder dataset.root=DIR --profile all

    byokg score runs/mine --profile judge llm=anthropic llm.model=MODEL

    A file is JSON lines with id, prediction and ground_truth, as RoG, GNN-RAG and others write them, or with
    RawQuestion and results, as the ToG family does; gold answers of a data set go before those of the file. Profiles:
    strict (the default), byokg, rog, gnn-rag, gcr, subgraphrag, tog, structgpt, webqsp-official, cron, stark,
    text2cypher; judge asks a language model. With --profile all, published figures stand below, if any are known.
    """
    from byokg.evaluation.compare import repeat_figures, score_cases
    from byokg.evaluation.profiles import select_profiles

    names = profile or ["strict"]
    profiles = select_profiles([name for name in names if name != _JUDGE])
    cases, subject = _cases(predictions, words or [])
    if _JUDGE in names:
        profiles = (*profiles, judged(cases, words or [], note))
    scored = score_cases(cases, profiles, seed)
    repeats = [found for one in profiles if (found := repeat_figures(cases, one, seed)) is not None]
    ours = {
        (one.profile.name, name): {subject.name: estimate.value}
        for one in scored
        for name, estimate in one.estimates.items()
    }
    listed = _published(published.anchors, subject, "all" in names)
    like, unlike = split_published(listed, [subject], published.published_graph)
    if as_json:
        figures = {"published": anchor_json(like, unlike, ours)} if listed else {}
        print_json({**score_json(scored, cases, subject.name, repeats), **figures})
        return
    console = stdout()
    console.print(score_tables(scored, cases, subject.name, repeats))
    for part in anchor_tables(like, unlike, [subject], ours):
        console.print(part)


def _published(anchors: str, subject: RunConditions, unasked: bool) -> list[PublishedResult]:
    """Return the published figures for a data set; by default, for that of the predictions, if any are listed.

    Raises:
        ConfigError: no figure is listed for the named data set.
    """
    from byokg.evaluation.comparability import read_published

    if anchors or not unasked:
        return read_published(anchors) if anchors else []
    name = subject.dataset.partition(" ")[0]
    if not name:
        note("published figures are shown beside these if the data set is known: --anchors webqsp")
        return []
    try:
        return read_published(name)
    except ConfigError:
        return []


def _cases(predictions: Path, words: Sequence[str]) -> tuple[list[Case], RunConditions]:
    """Read predictions and gold answers, with their conditions.

    Raises:
        ConfigError: there is neither such a folder nor such a file.
    """
    from byokg.cli.config import read_settings
    from byokg.cli.questions import select
    from byokg.evaluation.cases import join, read_external
    from byokg.evaluation.compare import repeat
    from byokg.evaluation.datasets.base import by_name, is_by_name
    from byokg.evaluation.records import read_config, read_predictions
    from byokg.evaluation.run_folder import is_finished, read_questions

    name = predictions.resolve().name
    dataset: Dataset | None = None
    asked: Sequence[Example] = ()
    settings = read_settings(words) if words else None
    if settings is not None and settings.options["dataset"]:
        if settings.run.require:
            raise ConfigError("require= looks at a graph, and byokg score at none; name the questions with ids=@FILE")
        dataset = settings.build("dataset")
        asked = select(dataset, settings.run, note)
    if predictions.is_dir():
        examples = recorded = read_questions(predictions)
        if dataset is not None:
            # Of the same ids as the predictions, whichever the graph of the run was keyed by.
            of_set = map(by_name, dataset.examples()) if is_by_name(recorded) else iter(dataset.examples())
            examples = tuple(repeat(tuple(of_set), 1 + max((one.repeat for one in recorded), default=0)))
        cases = _only(join(examples, read_predictions(predictions)), asked)
        if not is_finished(predictions):
            missing = sum(not case.has_outcome for case in cases)
            note(f"{predictions} is not finished: {missing:,} of {len(cases):,} questions have no prediction so far")
        config = read_config(predictions)
        made = config.get("dataset") or {}
        n = len({case.first_id for case in cases})
        return cases, RunConditions(name, str(made.get("name", "")), n, str(config.get("entities", "")))
    if predictions.is_file():
        if dataset is None:
            cases = read_external(predictions, note=note)
        else:
            left_out = sum(dataset.left_out().values())
            cases = _only(read_external(predictions, dataset.examples(), left_out, note), asked)
        return cases, RunConditions(name, "" if dataset is None else dataset.name, len(cases))
    raise ConfigError(f"there is no {str(predictions)!r}; give a run folder, or a file of predictions")


def _only(cases: list[Case], asked: Sequence[Example]) -> list[Case]:
    """Return the cases of the named questions; all of them if none is named."""
    wanted = {example.id for example in asked}
    return [case for case in cases if (case.first_id or case.id) in wanted or not wanted]


@expand_records
def compare(
    *,
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Run folders; all are compared with the first.")],
    profile: Annotated[str, typer.Option(metavar="NAME", help="Metric profile that all are scored under.")] = "strict",
    metric: Annotated[str, typer.Option(help="What breakdown and lists are about; the profile's first.")] = "",
    published: PublishedOptions,
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
    from byokg.evaluation.comparability import read_published
    from byokg.evaluation.compare import compare_runs, score_cases
    from byokg.evaluation.profiles import PROFILES, select_profiles
    from byokg.evaluation.run_folder import read_runs

    scored_by = _profile(profile)
    listed = read_published(published.anchors) if published.anchors else []
    read = read_runs(runs)
    alone = len(read) == 1 and listed
    compared = [] if alone else compare_runs(read, scored_by, metric, force, seed)
    subjects = [run_conditions(run) for run in read]
    like, unlike = split_published(listed, subjects, published.published_graph)
    ours: dict[tuple[str, str], dict[str, float]] = {}
    wanted = select_profiles([each.profile for each in listed if each.profile is not None and each.profile in PROFILES])
    for run in read if wanted else ():
        for scored in score_cases(run.cases, wanted, seed):
            for name, estimate in scored.estimates.items():
                ours.setdefault((scored.profile.name, name), {})[run.name] = estimate.value
    if as_json:
        figures = anchor_json(like, unlike, ours)
        print_json({"comparisons": [comparison_json(one) for one in compared], "published": figures})
        return
    console = stdout()
    for one in compared:
        console.print(comparison_tables(one, questions))
    for part in anchor_tables(like, unlike, subjects, ours):
        console.print(part)


@dataclass(frozen=True)
class TableForm:
    """How a table is written."""

    latex: Annotated[bool, typer.Option("--latex", help="For LaTeX with booktabs.")] = False
    as_csv: Annotated[bool, typer.Option("--csv", help="All figures with interval ends and p values.")] = False
    markdown: Annotated[bool, typer.Option("--markdown", help="The default.")] = False
    caption: Annotated[str, typer.Option(metavar="TEXT", help="Caption, for LaTeX and Markdown.")] = ""


@expand_records
def table(
    *,
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Run folders; all are tested against the first.")],
    profile: Annotated[str, typer.Option(metavar="NAME", help="Metric profile that all are scored under.")] = "strict",
    metrics: Annotated[
        str,
        typer.Option(metavar="NAME,…", help="Columns from left to right, such as hits@1,f1,seconds; all by default."),
    ] = "",
    name: Annotated[
        list[str] | None, typer.Option(metavar="RUN=LABEL", help="Name of a run in the table; may be repeated.")
    ] = None,
    form: TableForm,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
) -> None:
    """Write the table of runs for a paper: LaTeX, Markdown or CSV.

    byokg table runs/grid/*/ --latex > table.tex

    byokg table runs/a runs/b --metrics hits@1,f1,seconds --name runs/a=Baseline --caption "Accuracy on atlas"

    Each figure has half the width of its 95 % interval; a dagger marks significant differences from the first run after
    Holm's correction; the best are bold among runs on the same questions and graph with the same grants and code, and
    the notes list differences of the others.
    """
    from byokg.evaluation.report.comparison_tables import paper_table, written
    from byokg.evaluation.run_folder import read_runs

    scored_by = _profile(profile)
    if form.latex + form.as_csv + form.markdown > 1:
        raise ConfigError("--latex, --markdown and --csv are three formats; ask for one at a time")
    columns = [column.strip() for column in metrics.split(",") if column.strip()]
    made = paper_table(_labelled(read_runs(runs), name or []), scored_by, seed, columns)
    print(written(made, "latex" if form.latex else "csv" if form.as_csv else "markdown", form.caption), end="")


def _labelled(runs: Sequence[Run], labels: Sequence[str]) -> list[Run]:
    """Return the runs under their labels, each given as RUN=LABEL; a run is named by its folder or its short name."""
    found: dict[int, str] = {}
    for each in labels:
        run, equals, label = each.rpartition("=")
        place = Path(run).expanduser().resolve()
        at = next((at for at, one in enumerate(runs) if run == one.name or place == one.folder.resolve()), None)
        if not equals or not label.strip() or at is None:
            names = ", ".join(one.name for one in runs)
            raise ConfigError(f"--name {each} names no run; give RUN=LABEL with one of {names} as RUN")
        found[at] = label.strip()
    named = [replace(run, name=found.get(at, run.name)) for at, run in enumerate(runs)]
    if twice := [run.name for at, run in enumerate(named) if run.name in [one.name for one in named[:at]]]:
        raise ConfigError(f"--name: two runs are called {twice[0]!r}; give each another label")
    return named


def _profile(name: str) -> Profile:
    from byokg.evaluation.profiles import PROFILES

    return PROFILES[one_of("--profile ", name, PROFILES)]


# The judge


_EVERY = 100
"""Cases between two lines about progress."""


def judged(cases: Sequence[Case], words: Sequence[str], note: Callable[[str], None]) -> Profile:
    """Judge all cases, and return the verdicts as a profile.

    Args:
        cases: questions with gold answers and predictions.
        words: settings: `llm` and its options.
        note: called with one line per event.

    Raises:
        ConfigError: the settings name no language model, or questions have no text.
        LlmError: a call of the judge failed for good.
    """
    wordless = sum(not case.question for case in cases)
    if wordless:
        raise ConfigError(
            f"{wordless:,} of {len(cases):,} predictions come without the question, which the judge has to see; "
            "name the data set: dataset=folder dataset.root=DIR"
        )
    from byokg.cli.config import read_settings
    from byokg.cli.language_model import open_model
    from byokg.evaluation.compare import judge_cases, judge_profile

    # The pipeline that asks a model and needs no graph; only its model is made.
    settings = read_settings([*words, "pipeline=direct"])
    if "llm" not in settings.components:
        raise ConfigError("--profile judge asks a language model; add llm=anthropic llm.model=MODEL")
    llm = open_model(settings, note)
    try:

        def progress(done: int) -> None:
            if done % _EVERY == 0:
                note(f"{done:,} answers judged")

        verdicts = judge_cases(cases, llm.model, llm.prompts, settings.run.workers, progress)
        note(f"{verdicts.model} judged: {llm.bill(case.id for case in cases)}")
    finally:
        llm.close()
    if verdicts.unreadable:
        note(
            f"no score in {len(verdicts.unreadable):,} replies, which count as 0: {', '.join(verdicts.unreadable[:5])}"
        )
    return judge_profile(verdicts)


@expand_records
def report(
    *,
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of finished runs over one data set.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page to write.")] = Path("report.html"),
    baseline: Annotated[
        Path | None, typer.Option(metavar="RUN", help="The run that others are compared with; the first unless given.")
    ] = None,
    graph: Annotated[
        str | None, typer.Option(metavar="GRAPH", help="The runs' graph, to show names where traces hold ids.")
    ] = None,
    replies: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Recorded replies, to show prompts and replies.")
    ] = None,
    server: ServerOptions,
) -> None:
    """Write a report about runs as one HTML file that needs no network.

    byokg report runs/a runs/b --out report.html

    byokg report runs/mine --graph DIR --replies ~/.cache/byokg/replies.sqlite
    """
    from byokg.evaluation.report.page import build_page, write_page
    from byokg.evaluation.report.view import asked_by, read_reported

    first = _position(runs, baseline)
    read = read_reported(runs)
    examples = asked_by(read)
    with ExitStack() as opened:
        store = None
        if graph is not None:
            store = _graph_of(read[0], graph, server.settings(graph))
            opened.callback(store.close)
        recorded = None if replies is None else opened.enter_context(RecordedReplies(replies, "replay"))
        page = build_page(read, examples, first, store, recorded)
    write_page(page, out)
    asked = len({example.first_id for example in examples})
    print(f"report of {asked:,} questions in {out} ({len(page) / 1e6:,.1f} MB)")


def view(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN|KEY=VALUE]…",
            help="Run folders, or folders that hold some; settings open a graph, to look at nodes and ask questions.",
        ),
    ] = None,
    replies: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Recorded replies, to show prompts and replies.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="On this machine; 0 takes one that is free.")] = 0,
    browse: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    config_dir: ConfigDir = None,
) -> None:
    """Show runs in the browser, also while they run: figures, search, traces side by side, questions to a graph.

    byokg view runs

    byokg view runs/a runs/b graph.path=DIR pipeline=byokg llm=anthropic llm.model=MODEL

    The page is for this machine alone, and writes nothing but the mark of a paused run. Ctrl-C ends it.
    """
    import webbrowser

    from byokg.cli.config import read_settings
    from byokg.cli.evaluation import open_session
    from byokg.evaluation.report.live import LiveRuns, asker
    from byokg.evaluation.report.server import Describe, ViewServer
    from byokg.retrieval.graph_tools import GraphTools

    given, settings = part_words(words)
    places = given or [Path("runs")]
    if missing := next((place for place in places if not place.is_dir()), None):
        others = f", nor {settings[0]!r}" if settings and not given else ""
        raise RunError(f"there is no folder {str(missing)!r}{others}; name run folders, or a folder that holds them")
    with ExitStack() as opened:
        recorded = None if replies is None else opened.enter_context(RecordedReplies(replies, "replay"))
        store = ask = None
        describe: Describe | None = None
        if settings:
            read = read_settings(settings)
            dataset = read.build("dataset") if read.options["dataset"] else None
            session = opened.enter_context(open_session(read, dataset, note))
            store, tools = session.store, GraphTools(session.store, session.entities)
            meter = None if session.llm is None else session.llm.meter
            ask, describe = (
                asker(session.pipeline, session.store, meter),
                lambda id: tools.call("describe_entity", {"id": id}),
            )
        try:
            server = opened.enter_context(ViewServer(LiveRuns(places, store, recorded), port, ask, describe))
        except OSError as error:
            raise ConfigError(f"--port {port}: {error.strerror or error}; leave it out to take a free one") from error
        print(f"{server.address}  (Ctrl-C ends it)", flush=True)
        if browse:
            webbrowser.open(server.address)
        with suppress(KeyboardInterrupt):
            server.serve_forever()


def _position(runs: Sequence[Path], baseline: Path | None) -> int:
    """Return which of the runs is the baseline."""
    if baseline is None:
        return 0
    places = [run.resolve() for run in runs]
    if baseline.resolve() not in places:
        raise ConfigError(f"--baseline {baseline} is none of the runs; name one of {', '.join(map(str, runs))}")
    return places.index(baseline.resolve())


def _graph_of(run: Run, place: str, settings: Mapping[str, Any]) -> Opened:
    """Open a graph, and refuse one that is not the run's."""
    from byokg.open import fingerprint, open_graph

    store = open_graph(place, **settings)
    recorded, found = str((run.config.get("graph") or {}).get("checksum")), fingerprint(store)
    if recorded != found:
        store.close()
        raise RunError(
            f"{str(run.folder)!r} is a run over a graph with checksum {recorded[:12]}, that of --graph {place} is "
            f"{found[:12]}; name the graph of the run, or leave --graph out"
        )
    return store
