"""Common part of `byokg eval` and `byokg ask`: from settings to a graph, a pipeline and a scored run.

Data sets' own graphs are imported once and kept for all later runs.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console

from byokg.cli.components import TARGET, first_argument, import_target
from byokg.cli.config import RunOptions, Settings
from byokg.cli.language_model import ModelOnDemand, ModelSession, prompt_library
from byokg.cli.terminal import Output, print_line, shown, watch
from byokg.errors import (
    ConfigError,
    GraphCorrupt,
    GraphError,
    GraphExists,
    GraphNotFound,
    ImportFailed,
    LlmUnusable,
    RunError,
    RunIncomplete,
)
from byokg.files import Closing, sha256, user_cache
from byokg.graph.columnar.folder import FORMAT, VERSION
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.name_indexes import name_index
from byokg.graph.store import GraphStore
from byokg.index.embedders import Embedder
from byokg.index.names import NameIndex
from byokg.linking.entities import EntityLinker
from byokg.linking.parts import NO_GRAPH, Parts
from byokg.open import ENGINE_NAMES, EXAMPLES, SCHEMES, add_engine, engines_in, fingerprint
from byokg.text.names import ESTIMATE
from byokg.types import EntityId, Language, Spending

if TYPE_CHECKING:
    from byokg.evaluation.datasets.base import Dataset, Example, SubgraphDataset
    from byokg.evaluation.metrics import Metrics
    from byokg.evaluation.runner import Pipeline, Progress, RunSettings
    from byokg.linking.demonstrations import Demonstration
    from byokg.pipelines.tracing import Tracing

_GRAPH_HASH_DIGITS = 12


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the default folder of graphs, `graph.cache`: the user's cache folder."""
    return user_cache(environment) / "graphs"


def cached_graph(source: Path, name: str, cache: Path, note: Callable[[str], None]) -> Path:
    """Return the folder of the graph built from `source`, building it if there is none yet.

    The folder is named after the content of the source, so a changed source gets another one. Several processes may
    call it at the same time: each builds, one keeps, and all use the same.

    Args:
        source: file or folder, as `byokg graph build` takes it.
        name: first part of the folder's name, for people.
        cache: parent of the folders.
        note: called with one line on the built or reused graph.

    Raises:
        ImportFailed: the source cannot become a graph.
        GraphError: the cache cannot be written.
    """
    from byokg.graph.importers.choose import files_read, graph_folder, import_into
    from byokg.graph.value_indexes import build_indexes

    readable = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "graph"
    folder = cache / f"{readable}-{source_digest(source)[:_GRAPH_HASH_DIGITS]}"
    damaged = False
    try:
        ColumnarGraph.open(folder)
    except GraphNotFound:
        pass
    except GraphCorrupt:
        damaged = True
    else:
        note(f"graph: {folder}")
        return folder
    began = time.perf_counter()
    try:
        with graph_folder(source, folder, damaged) as partial:  # graph and names appear together, or not at all
            build_indexes(import_into(source, partial))
        graph = ColumnarGraph.open(folder)
    except GraphError as error:
        try:
            graph = ColumnarGraph.open(folder)  # another process was quicker
        except GraphNotFound:
            if isinstance(error, ImportFailed):
                raise error from None
            raise GraphError(f"{error} (name another folder with graph.cache=DIR)") from error
    seconds = time.perf_counter() - began
    counts = f"{graph.node_count:,} nodes, {graph.edge_count:,} edges, {seconds:.1f} s"
    note(f"graph: {folder} (built from {source}: {counts})")
    for line in files_read(graph):
        note(f"  {line}")
    return folder


def source_digest(source: Path) -> str:
    """Return a sha256 over the names and bytes of a graph's source files, and over the format that is written.

    Raises:
        ImportFailed: the source is none that can be imported.
    """
    from byokg.graph.importers.choose import source_files

    digest = hashlib.sha256(f"{FORMAT} {VERSION}\n".encode())
    for path in source_files(source):
        digest.update(f"{path.name} {sha256(path)}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


FAILURES_LISTED = 5
_OF_DATASET = "dataset"
"""Value of `pipeline.examples.source` that shows questions of another split of the data set."""
_HASH_DIGITS = 8


@dataclass(frozen=True)
class Session(Closing):
    """A graph, and a pipeline over it. Leaving its `with` statement lets go of a server's connections."""

    store: GraphStore
    embedder: Embedder
    entities: EntityLinker
    pipeline: Any
    llm: ModelSession | None = None
    """The language model, if the pipeline uses one."""
    subgraphs: SubgraphDataset | None = None
    """Graph of each question, if each has its own. `store` and `entities` are then the first question's."""
    tracing: Tracing | None = None
    """Instrumentation of every stage and call."""

    def graph(self, example: Example) -> tuple[GraphStore, NameIndex]:
        """Return the graph of a question, and the names in it."""
        if self.subgraphs is None:
            return self.store, self.entities.names
        store = self.subgraphs.subgraph(example.first_id)
        return store, name_index(store)

    def choose(self, candidates: Sequence[Example], run: RunOptions, note: Callable[[str], None]) -> list[Example]:
        """Return the questions that the settings choose, with topics as ids of the graph. Raises `ConfigError`."""
        from byokg.cli.questions import keyed, narrow

        examples = narrow(candidates, run, self.graph, note)
        if self.subgraphs is not None:  # these come with the names that they use
            return examples
        return keyed(examples, self.store, lambda: self.entities.names, note)

    def gold_nodes(self, example: Example) -> list[list[EntityId]]:
        """Return, for each gold answer, the nodes that have its name."""
        store, names = self.graph(example)
        return [store.ids(names.exact(name)) for name in example.answers]

    def key_spellings(self, example: Example, ids: Sequence[EntityId], texts: Sequence[str]) -> list[str | None]:
        """Return the other spelling of each node that is named by its type and key."""
        from byokg.graph.display_names import key_spellings

        return key_spellings(self.graph(example)[0], ids, texts)

    def graph_checksum(self) -> str:
        """Return the identity of the graph for the run's record."""
        return fingerprint(self.store) if self.subgraphs is None else f"subgraphs:{self.subgraphs.checksum}"

    def close(self) -> None:
        """Release the store, the model and the tracing."""
        self.store.close()
        if self.llm is not None:
            self.llm.close()
        if self.tracing is not None:
            self.tracing.close()


def open_session(
    settings: Settings, dataset: Dataset | None, note: Callable[[str], None], batch: bool = False
) -> Session:
    """Open the graph and build the pipeline; store, embedder, entity linker and model are built once and shared.

    Args:
        settings: `graph.path` names the graph; without it the data set's own is built, or taken from the cache.
        dataset: source of the graph.
        note: called with lines on the built or cached graph, and on reads from a server.
        batch: many questions follow, so that replies of a language model may be delayed.

    Raises:
        ConfigError: there is neither a graph nor a data set, or the language model's settings are wrong.
    """
    tracing = None
    if settings.run.tracing == "otlp":
        from byokg.pipelines.tracing import Tracing

        tracing = Tracing()
    model = ModelOnDemand(settings, note, batch, tracing)
    try:
        if subgraphs := subgraphs_of(settings, dataset):
            session = _subgraph_session(settings, subgraphs, model)
        else:
            session = _shared_session(settings, dataset, note, model, batch)
        model.report_idle()
        pipeline = session.pipeline if tracing is None else tracing.pipeline(session.pipeline)
        return replace(session, pipeline=pipeline, llm=model.session, tracing=tracing)
    except BaseException:
        model.close()
        raise


def _shared_session(
    settings: Settings, dataset: Dataset | None, note: Callable[[str], None], model: ModelOnDemand, batch: bool
) -> Session:
    named = _named_store(settings, dataset, note)
    store = ColumnarGraph.from_triples([]) if named is None else named  # pipeline=direct reads none
    try:
        embedder = settings.build("embedding")
        entities = settings.build("linking", store=store, embedder=embedder)
        examples = None
        if _shows_dataset(settings):
            from byokg.cli.questions import solved

            examples = solved(settings, store, entities.names, note)
        parts = Parts(named, model, embedder, entities, prompt_library(settings), settings.run.language)
        pipeline = make_pipeline(settings, parts, batch, examples)
    except BaseException:
        store.close()
        raise
    return Session(store, embedder, entities, pipeline)


def _shows_dataset(settings: Settings) -> bool:
    """True if prompts show solved questions of the data set."""
    examples = settings.components["pipeline"].get("examples") or {}
    return isinstance(examples, Mapping) and str(examples.get("source")) == _OF_DATASET


def subgraphs_of(settings: Settings, dataset: Dataset | None) -> SubgraphDataset | None:
    """Return the data set if each question is asked over a graph of its own, else None.

    Raises:
        ConfigError: that is demanded, and the questions have no graphs, or another graph is named.
        DatasetError: the data set cannot be read.
    """
    from byokg.evaluation.datasets.base import SubgraphDataset

    wanted, named = settings.run.graph.per_question, settings.run.graph.path is not None
    named |= settings.options["graph"] != "columnar"
    if wanted is False or (wanted is None and (named or not isinstance(dataset, SubgraphDataset))):
        return None
    if isinstance(dataset, SubgraphDataset) and not named and dataset.has_subgraphs():
        return dataset
    if wanted is None:
        return None
    if named:
        reason = "graph.per_question=true reads the subgraphs of the data set; leave graph= and graph.path= out"
        raise ConfigError(reason)
    raise ConfigError("graph.per_question=true needs a data set with subgraphs, such as dataset=rog; leave it out")


def _subgraph_session(settings: Settings, dataset: SubgraphDataset, model: ModelOnDemand) -> Session:
    """Build a pipeline that makes another one for each question; only embedder and model are shared."""
    from byokg.evaluation.runner import PerQuestionPipeline

    if _shows_dataset(settings):
        raise ConfigError("pipeline.examples.source=dataset needs one graph for all questions; name a file")
    embedder = settings.build("embedding")

    def linker(store: GraphStore) -> EntityLinker:
        return cast(EntityLinker, settings.build("linking", store=store, embedder=embedder))

    def make(store: GraphStore) -> Pipeline:
        parts = Parts(store, model, embedder, linker(store), prompts, settings.run.language)
        return make_pipeline(settings, parts)

    prompts = prompt_library(settings)
    first = dataset.subgraph(dataset.examples()[0].id)
    make(first)  # refuses wrong settings before the first question, and opens the model
    return Session(first, embedder, linker(first), PerQuestionPipeline(dataset, make), subgraphs=dataset)


def make_pipeline(
    settings: Settings, parts: Parts, batch: bool = False, examples: Sequence[Demonstration] | None = None
) -> Pipeline:
    """Build the pipeline that the settings name. Arguments and errors as for `open_session`.

    `examples` are solved questions, in the place of the file that the settings name.
    """
    own = dict(settings.components["pipeline"])
    if examples is not None:
        own["examples"] = {**own["examples"], "source": examples}
    if batch and "lazy_schema" in own and own["lazy_schema"] is None:
        own["lazy_schema"] = False  # many questions are worth a sample of the whole graph
    settings = replace(settings, components={**settings.components, "pipeline": own})
    return cast("Pipeline", settings.build("pipeline", parts))


def open_store(settings: Settings, dataset: Dataset | None, note: Callable[[str], None]) -> GraphStore:
    """Open the graph that the settings name, or the data set's own. Arguments and errors as for `open_session`."""
    store = _named_store(settings, dataset, note)
    if store is None:
        raise ConfigError(NO_GRAPH)
    return store


def _named_store(settings: Settings, dataset: Dataset | None, note: Callable[[str], None]) -> GraphStore | None:
    """Open the graph that the settings name, or the data set's own; None without either."""
    path = settings.run.graph.path
    target = settings.components["graph"][TARGET]
    if not target.startswith("byokg.") and (path is not None or first_argument(import_target(target, "graph")) is None):
        return settings.open_graph(path)  # a store of the user's own, which may hold a graph of its own, too
    if isinstance(path, str):
        server = settings.open_graph(path)
        note(f"graph: {server.name}")
        watch(server, note)
        return server
    if settings.options["graph"] in set(SCHEMES.values()):
        option = settings.options["graph"]
        raise ConfigError(f"graph={option} needs an address; add graph.path={EXAMPLES[option]}")
    if path is None and dataset is not None:
        cache = settings.run.graph.cache or cache_folder()
        path = cached_graph(dataset.graph_source(), dataset.name.split()[0], cache, note)
        _add_engines(path, settings.options["graph"] or "", note)
    return settings.open_graph(path) if path is not None or not target.startswith("byokg.") else None


_ENGINES: dict[str, tuple[Language, ...]] = {
    "arcadedb": ("cypher",),
    "oxigraph": ("sparql",),
    "both_engines": ("cypher", "sparql"),
}
"""Query languages that an option of `graph` needs an engine for."""


def _add_engines(folder: Path, option: str, note: Callable[[str], None]) -> None:
    """Build the engines that an option needs into a cached graph, unless it has them."""
    for language in _ENGINES.get(option, ()):
        if language not in engines_in(folder):
            with suppress(GraphExists):  # another process was quicker
                add_engine(folder, language)
                note(f"graph: built its {ENGINE_NAMES[language]} engine")


@contextmanager
def open_questions(
    settings: Settings, note: Callable[[str], None]
) -> Iterator[tuple[Dataset, GraphStore, list[Example]]]:
    """Open the graph that the settings name, for the questions that they choose, with topics as ids of the graph.

    Errors as for `open_session`.
    """
    from byokg.cli.questions import keyed, narrow, pick

    dataset: Dataset = settings.build("dataset")
    candidates = pick(dataset, settings.run, note)
    with closing(open_store(settings, dataset, note)) as store:
        examples = narrow(candidates, settings.run, lambda example: (store, name_index(store)), note)
        yield dataset, store, keyed(examples, store, lambda: name_index(store), note)


def evaluate(settings: Settings, output: Output, estimate: int | None = None) -> None:
    """Run an evaluation and print its table and the run folder.

    Args:
        settings: of the run.
        output: consoles of the result, and of the rest.
        estimate: answer only so many questions, and extrapolate the cost of the run.

    Raises:
        ConfigError: the settings contradict each other.
        RunError: the run folder cannot be used, or every single question failed.
        RunIncomplete, KeyboardInterrupt: the run was stopped; the command that continues it has been printed.
    """
    from byokg.cli.questions import part, pick
    from byokg.evaluation.compare import repeat

    note = output.note
    dataset: Dataset = settings.build("dataset")
    candidates = pick(dataset, settings.run, note)
    grants = settings.run.linking
    if grants.entities == "gold":
        _check_grant("linking.entities", "topic entities", [bool(e.topic_ids) for e in candidates], note)
    if grants.hops == "gold":
        _check_grant("linking.hops", "hop count", [e.hops is not None for e in candidates], note)
    with open_session(settings, dataset, note, batch=True) as session:
        examples: Sequence[Example] = session.choose(candidates, settings.run, note)
        if settings.run.repeats > 1 and session.llm is None:
            note(
                f"pipeline={settings.options['pipeline']} asks no language model and answers alike each time, so every "
                f"question is asked once, and repeats={settings.run.repeats} says nothing"
            )
        times = 1 if session.llm is None else settings.run.repeats
        if estimate is not None:
            _print_estimate(settings, repeat(examples, times), session, estimate, output)
            return
        shard, examples = part(examples, settings.run)
        run = replace(run_settings(settings, session, dataset.name, dataset.checksum), shard=shard)
        examples = repeat(examples, times)
        folder, metrics = _run(settings, examples, run, session, output)
        _print_result(settings, examples, folder, metrics, session.llm is not None, output)


def run_settings(settings: Settings, session: Session, dataset: str, checksum: str) -> RunSettings:
    """Return the identity of a run over some questions."""
    from byokg.evaluation.runner import RunSettings

    prompts = {} if session.llm is None else {"prompts": session.llm.prompts.digests()}
    return RunSettings(
        dataset=dataset,
        dataset_checksum=checksum,
        graph_checksum=session.graph_checksum(),
        entities=settings.run.linking.entities,
        hops=settings.run.linking.hops,
        seed=settings.run.seed,
        config={**settings.recorded(), "embedder": session.embedder.name, **prompts},
    )


def _run(
    settings: Settings, examples: Sequence[Example], run: RunSettings, session: Session, output: Output
) -> tuple[Path, Metrics]:
    """Answer the questions; return the run folder and its metrics. Arguments and errors as for `evaluate`."""
    from byokg.evaluation.runner import Measurement, run_evaluation

    llm, count = session.llm, _token_counter(settings, session)
    measurement = Measurement(None if llm is None else llm.meter, settings.run.deadline_s, count, session.gold_nodes)
    measurement = replace(measurement, key_spellings=session.key_spellings)
    folder = settings.run.out or default_folder(run, settings.options["pipeline"] or "")
    counter = _Counter()
    began = time.perf_counter()
    try:
        with shown(run.dataset, len(examples), output) as progress:
            counter.then = progress

            def once() -> Metrics:
                workers = settings.run.workers
                return run_evaluation(session.pipeline, examples, folder, run, workers, counter.count, measurement)

            metrics = once() if llm is None else llm.run(once, folder, settings, output.note)
    except (KeyboardInterrupt, RunIncomplete):
        done = f"{counter.done:,} of {len(examples):,} questions are recorded in {folder}"
        print_line(output.err, f"{done}; the same command continues there")
        raise
    seconds = time.perf_counter() - began
    if counter.done:
        before = f", {counter.before:,} were recorded before" if counter.before else ""
        answered = counter.done - counter.before
        output.note(f"{answered:,} questions answered in {seconds:.1f} s ({answered / seconds:,.0f}/s){before}")
    else:
        output.note("this run is finished already; its recorded result:")
    return folder, metrics


def _print_result(
    settings: Settings, examples: Sequence[Example], folder: Path, metrics: Metrics, asked: bool, output: Output
) -> None:
    """Print the tables of a run, its settings and its folder. Raises `RunError` if every question failed."""
    from byokg.evaluation.cases import join
    from byokg.evaluation.compare import repeat_figures, score_cases
    from byokg.evaluation.metrics import PROFILE
    from byokg.evaluation.profiles import PROFILES, TEXT2CYPHER
    from byokg.evaluation.records import PREDICTIONS, read_config, read_predictions, read_unfinished, read_usage
    from byokg.evaluation.tables import metrics_tables, repeat_table, score_tables, usage_table

    out, times = output.out, 1 + max(example.repeat for example in examples)
    dataset = read_config(folder)["dataset"]["name"]
    out.print(metrics_tables(metrics, dataset, times))
    if times > 1 and (found := repeat_figures(join(examples, read_predictions(folder)), PROFILES[PROFILE])) is not None:
        out.print(repeat_table(found))
    if any(example.query for example in examples):
        cases = join(examples, read_predictions(folder))
        out.print(score_tables(score_cases(cases, [TEXT2CYPHER], settings.run.seed), cases, dataset))
    if (usage := usage_table(read_usage(folder), read_unfinished(folder))) is not None:
        out.print(usage)
    _list_failures(metrics, folder, out)
    groups = ("pipeline", "llm", "embedding") if asked else ("pipeline", "embedding")
    chosen = [f"{group}={settings.options[group]}" for group in groups]
    granted = [f"linking.{name}={value}" for name, value in asdict(settings.run.linking).items()]
    print_line(out, f"settings: {' '.join([*chosen, *granted])}")
    print_line(out, f"run folder: {folder}")
    if metrics.overall.failed == metrics.overall.n:
        raise RunError(f"all {metrics.overall.n:,} questions failed; the reasons are in {folder / PREDICTIONS}")


def _token_counter(settings: Settings, session: Session) -> Callable[[str], int]:
    """Return the tokenizer of the pipeline's context budget, if it has one."""
    from byokg.llm.usage import token_counter

    name = settings.components["pipeline"].get("budgets", {}).get("tokens", ESTIMATE)
    return token_counter(name, None if session.llm is None else session.llm.model.chat_model)


def _print_estimate(
    settings: Settings, examples: Sequence[Example], session: Session, sample: int, output: Output
) -> None:
    """Answer some questions, which are paid and recorded, and extrapolate to all of them."""
    from byokg.llm.retry import set_question, set_sample
    from byokg.llm.usage import estimate_run, estimate_text

    if session.llm is None:
        raise ConfigError(f"pipeline={settings.options['pipeline']} asks no language model, so it costs nothing")
    if session.llm.pending is not None:
        raise ConfigError("--estimate asks a few questions right away; leave out llm.batch=true, or llm=deferred")
    chosen = random.Random(settings.run.seed).sample(list(examples), min(sample, len(examples)))
    output.note(
        f"asking {len(chosen):,} of {len(examples):,} questions; their replies are recorded, so the run has them"
    )
    grants = settings.run.linking
    spent = []
    for example in chosen:
        try:
            with set_sample(example.repeat), set_question(example.id):
                session.pipeline.run(example.to_question(grants.entities, grants.hops))
        except LlmUnusable as error:
            output.note(f"question {example.id}: {error}")
        spent.append(sum(session.llm.meter.take(example.id).stages.values(), Spending()))
    print_line(output.out, estimate_text(estimate_run(spent, len(examples))))
    for model in session.llm.meter.unpriced_models:
        print_line(output.out, f"the price of {model} is not known; add it with prices=FILE")


def _check_grant(key: str, noun: str, annotated: Sequence[bool], note: Callable[[str], None]) -> None:
    """Check that the annotation granted by `key=gold` exists, and report the questions without it."""
    if not any(annotated):
        raise ConfigError(
            f"{key}=gold grants nothing: no question of this data set has its {noun} annotated; leave it out"
        )
    lacking = len(annotated) - sum(annotated)
    if lacking:
        note(f"{lacking:,} of {len(annotated):,} questions have no {noun} annotated; {key}=gold grants them nothing")


def default_folder(run: RunSettings, pipeline: str) -> Path:
    """Name a run folder after all that the run belongs to, so equal runs meet there and others never do."""
    from byokg.evaluation.run_folder import code_version

    identity = json.dumps([asdict(run), code_version().digest], sort_keys=True, default=str)
    digest = hashlib.sha256(identity.encode()).hexdigest()[:_HASH_DIGITS]
    name = re.sub(r"[^\w.-]+", "-", run.dataset).strip("-.")
    return Path("runs") / f"{name}-{pipeline}-{digest}"


class _Counter:
    """Remembers how far a run is, and how far it was when it started."""

    def __init__(self) -> None:
        self.then: Callable[[Progress], None] = lambda progress: None
        self.done = 0
        self.before = 0
        self._began = False

    def count(self, progress: Progress) -> None:
        if not self._began:
            # A continued run reports once before its first question.
            self.before = progress.done if progress.done != 1 else 0
            self._began = True
        self.done = progress.done
        self.then(progress)


def _list_failures(metrics: Metrics, folder: Path, out: Console) -> None:
    """Print the first failed questions with their reasons."""
    from byokg.evaluation.records import PREDICTIONS, read_predictions

    if not metrics.overall.failed:
        return
    failed = (prediction for prediction in read_predictions(folder) if not prediction.has_outcome)
    for prediction in itertools.islice(failed, FAILURES_LISTED):
        reason = f"{prediction.error.type}: {prediction.error.message}" if prediction.error else prediction.status
        print_line(out, f"failed {prediction.id}: {reason}")
    rest = metrics.overall.failed - FAILURES_LISTED
    if rest > 0:
        print_line(out, f"(+{rest:,} more failed; all are in {folder / PREDICTIONS})")
