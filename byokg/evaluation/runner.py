"""Runs a pipeline over the chosen questions of a data set, many at a time, and scores it.

Questions are chosen by id, type, random draw, count and shard, always in the set's order. A draw takes the questions
whose hashed seed and id are lowest, so it depends on nothing but these: a larger sample contains the smaller ones, and
a question that is added to the file displaces at most one other. The shards of a run can be merged: the folder that
comes out is that of the same run done in one piece.

A pipeline may also be made anew for each question, over a graph of the question's own, as data sets with subgraphs are
published (RoG's WebQSP and CWQ).
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Literal, Protocol

from byokg.errors import BudgetExceeded, ConfigError, ReplyPending, RunError, RunIncomplete, at_least
from byokg.evaluation.cases import by_question
from byokg.evaluation.datasets.base import Example, SubgraphDataset
from byokg.evaluation.metrics import ZERO, Metrics, QuestionScores, Retrieved, Scores, aggregate, match_gold, score
from byokg.evaluation.records import (
    PREDICTIONS,
    SCHEMA,
    TIMINGS,
    TRACE,
    Prediction,
    RecordLines,
    read_config,
    read_predictions,
    read_unfinished,
    read_usage,
    record_answer,
    record_failure,
)
from byokg.evaluation.retrieval_metrics import answered_prompt, context_tokens, retrieved
from byokg.evaluation.run_folder import (
    METRICS_FILE,
    RunFolder,
    clear_folder,
    code_version,
    differences,
    finished_metrics,
    questions_jsonl,
    read_questions,
)
from byokg.graph.store import GraphStore
from byokg.llm.retry import Deadline, set_question, set_sample
from byokg.llm.usage import QuestionUsage, UsageMeter
from byokg.text.names import estimate_tokens
from byokg.types import Answer, EntityId, Question, Spending, asked_first

_SHARD = re.compile(r"([0-9]+)/([0-9]+)")

_APART = ("shard", "questions", "hash")
"""Fields that differ between the shards of one run."""

_WAITING_PER_WORKER = 2

_PAUSED_S = 0.2
"""Interval at which a paused run looks whether it may go on."""

_HELD = 32
"""Pipelines kept with their graphs: enough for the questions in flight and for repeats that follow soon."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Shard:
    """One of several parts of a run, each done on its own: the questions `number`, `number + count`, …, from 1."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `3/16`. Raises `ConfigError` for anything that is no such part."""
        found = _SHARD.fullmatch(text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ConfigError(f"shard={text} is no part of a run; the third of 16 is written shard=3/16")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def of(self, examples: Sequence[Example]) -> Sequence[Example]:
        """Return this part of the questions. Raises `ConfigError` if there are fewer questions than parts."""
        if len(examples) < self.count:
            raise ConfigError(f"shard={self} divides {len(examples)} questions; use at most that many shards")
        return examples[self.number - 1 :: self.count]


class Pipeline(Protocol):
    """Answers one question. `run` is called from several threads at once when there are several workers."""

    def run(self, question: Question) -> Answer:
        """Answer the question."""


@dataclass(frozen=True)
class RunSettings:
    """Identity of a run: all that can change an answer or a score.

    Two runs with equal settings, questions and code are the same run and may share a folder. The number of workers and
    the place of the folder are not part of it, since neither changes an answer.

    >>> settings = RunSettings("films", "d1", "g1", config={"pipeline": {"max_hops": 2}})
    >>> settings.entities, settings.hops
    ('linked', 'predicted')
    """

    dataset: str
    """Name of the data set and its part, for people."""
    dataset_checksum: str
    graph_checksum: str
    entities: Literal["gold", "linked"] = "linked"
    """Whether pipelines are given the topic entities that the data set annotates."""
    hops: Literal["gold", "predicted"] = "predicted"
    """Whether pipelines are given the hop count that the data set annotates."""
    seed: int = 0
    """Of the bootstrap; a pipeline's own seed is in `config`."""
    shard: Shard | None = None
    """Which part of a run this is; `merge` puts the parts together."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """The resolved configuration: nested mappings, lists, text, numbers, booleans and None."""


@dataclass(frozen=True)
class Progress:
    """How far a run is; questions recorded by an earlier start are included."""

    done: int
    total: int
    failed: int
    hit: float | None
    """Share of the questions done so far with a right answer, in [0, 1]; None if nothing is scored."""


@dataclass(frozen=True)
class Measurement:
    """Limits and measurements of each question, which change no answer.

    Args:
        meter: counts language-model usage for the records; usage before an interruption counts against its budget.
        deadline_s: longest wait of one question for language models; None for any time.
        count_tokens: tokens of the graph context in a prompt, for the records.
        gold_nodes: returns, for each gold answer of a question whose set gives no ids, the nodes of its name, so that
            evidence can be matched to it. Called from several threads. None matches by name alone.
        key_spellings: returns, for nodes of a question's graph and a text for each, the other spelling of each that is
            named by its type and key, else None; see `display_names.key_spellings`. None records no keys.
    """

    meter: UsageMeter | None = None
    deadline_s: float | None = None
    count_tokens: Callable[[str], int] = estimate_tokens
    gold_nodes: Callable[[Example], Sequence[Collection[EntityId]]] | None = None
    key_spellings: Callable[[Example, Sequence[EntityId], Sequence[str]], Sequence[str | None]] | None = None


def run_evaluation(
    pipeline: Pipeline,
    examples: Sequence[Example],
    out: str | Path,
    settings: RunSettings,
    workers: int = 1,
    on_progress: Callable[[Progress], None] | None = None,
    measurement: Measurement = Measurement(),
) -> Metrics:
    """Answer every question, record the outcomes in a run folder, and score them.

    A question whose pipeline raises is recorded as failed and scores zero; the run goes on. When the run is
    interrupted or killed, the same call continues it, with the same predictions and traces as without an
    interruption. A finished run is not run again.

    Args:
        pipeline: the system under evaluation; it receives questions without gold answers.
        examples: questions in data-set order, with distinct ids, at least one.
        out: the run folder, made when missing; see `records` for the files in it.
        settings: identity of the run; a folder that belongs to another run is refused.
        workers: number of questions answered concurrently.
        on_progress: called from this thread after each question, and once at the start of a continued run.
        measurement: limits and measurements of each question.

    Returns:
        The metrics over all questions, as in `metrics.json`.

    Raises:
        RunIncomplete: the budget is spent, or questions wait for delayed replies. Answered questions are
            recorded; the same call continues.
        RunError: the folder belongs to another run or is in use, or cannot be written; or the questions'
            ids are not distinct; or there is no question, or one without gold answers.
        ConfigError: `workers` is below 1, or `settings.config` holds a value without a YAML form.
        KeyboardInterrupt: the run was interrupted; the questions then in flight are recorded first, and a
            second interrupt gives them up.

    >>> from tempfile import TemporaryDirectory
    >>> from byokg import Byokg, KnowledgeGraph
    >>> kg = KnowledgeGraph.from_triples([("France", "capital", "Paris"), ("Spain", "capital", "Madrid")])
    >>> examples = [Example("q1", "What is the capital of France?", answers=("Paris",))]
    >>> with TemporaryDirectory() as folder:
    ...     metrics = run_evaluation(Byokg(kg), examples, f"{folder}/run", RunSettings("capitals", "d1", "g1"))
    >>> metrics.overall.estimates["hits@1"].value
    1.0
    """
    at_least(1, "cannot answer anything", workers=workers)
    by_id = {example.id: example for example in examples}
    if not by_id:
        raise RunError("there is no question to evaluate; check dataset.split and limit")
    if len(by_id) < len(examples):
        raise RunError(f"{len(examples)} questions have only {len(by_id)} distinct ids; make the ids distinct")
    for example in examples:
        if not example.answers:
            raise RunError(
                f"question {example.id!r} has no gold answers, so it cannot be scored; leave it out or add them"
            )
    config = _run_config(settings, examples)
    path = Path(out)
    metrics = finished_metrics(path, config)
    if metrics is not None:
        return metrics
    ask = _Asker(pipeline, settings, measurement)
    with RunFolder(path, config, list(by_id), questions_jsonl(examples)) as folder:
        _record_all(ask, examples, workers, folder, on_progress)
        metrics = measure(examples, read_predictions(path), settings.seed)
        folder.finish(metrics)
    return metrics


def answer_all(
    pipeline: Pipeline,
    examples: Sequence[Example],
    out: str | Path,
    settings: RunSettings,
    workers: int = 1,
    on_progress: Callable[[Progress], None] | None = None,
    measurement: Measurement = Measurement(),
) -> list[Prediction]:
    """Answer questions that have no gold answers, and record the answers in a run folder, without scores.

    Arguments and errors are those of `run_evaluation`. The same call continues after an interruption.

    Returns:
        The predictions, in the order of the questions.
    """
    ask = _Asker(pipeline, settings, measurement)
    path = Path(out)
    ids = [example.id for example in examples]
    with RunFolder(path, _run_config(settings, examples), ids, questions_jsonl(examples)) as folder:
        _record_all(ask, examples, workers, folder, on_progress)
        return list(read_predictions(path))


def clear_other_run(out: str | Path, settings: RunSettings, examples: Sequence[Example]) -> None:
    """Remove from a run folder the records of another run than this one; `answer_all` then begins there.

    Raises:
        RunError: another process is writing to the folder.
    """
    clear_folder(Path(out), _run_config(settings, examples))


def _record_all(
    ask: _Asker,
    examples: Sequence[Example],
    workers: int,
    folder: RunFolder,
    on_progress: Callable[[Progress], None] | None,
) -> None:
    """Answer the questions that are not recorded yet, and put all lines into the order of the questions.

    Raises:
        RunIncomplete: the budget is spent, or questions wait for delayed replies.
    """
    by_id = {example.id: example for example in examples}
    tally = _RunningScores(examples, on_progress)
    recorded = set()
    for prediction in folder.recorded():
        recorded.add(prediction.id)
        tally.add(outcome(by_id[prediction.id], prediction))
    if recorded:
        tally.report()
    if (meter := ask.measurement.meter) is not None:
        before = [folder.unfinished(), *read_usage(folder.path)]
        meter.carry(sum((spent for stages in before for spent in stages.values()), Spending()))
    pending = _answer_all(ask, [each for each in examples if each.id not in recorded], workers, folder, tally)
    if pending:
        raise RunIncomplete(tally.done, len(by_id), pending)
    folder.complete()


def measure(examples: Sequence[Example], predictions: Iterable[Prediction], seed: int = 0) -> Metrics:
    """Score recorded predictions against the gold answers.

    Args:
        examples: the questions of the run; those without a prediction score zero and count as failed.
        predictions: at most one for each question, in any order.
        seed: of the bootstrap.

    Raises:
        RunError: a prediction belongs to no question of the run.
    """
    found = by_question(examples, predictions)
    outcomes = [outcome(example, found.get(example.id)) for example in examples]
    if any(each.linked is not None for each in outcomes):
        # A question without a prediction linked nothing, if there was something to link.
        for place, example in enumerate(examples):
            if example.id not in found and example.topic_ids:
                outcomes[place] = replace(outcomes[place], linked=0.0)
    return aggregate(outcomes, seed)


def outcome(example: Example, prediction: Prediction | None) -> QuestionScores:
    """Score one question; without a prediction, or with one that failed or was skipped, it scores zero."""
    topics = None if prediction is None else prediction.linked
    linked = None if topics is None else len(topics.found) / len(topics.gold)
    if prediction is None or not prediction.has_outcome:
        return QuestionScores(
            ZERO, failed=True, type=example.type, hops=example.hops, linked=linked, cluster=example.group
        )
    return QuestionScores(
        _scores(example, prediction.answers, prediction.answer_ids, prediction.keys),
        type=example.type,
        hops=example.hops,
        linked=linked,
        retrieved=prediction.retrieved,
        grounding=prediction.grounding,
        score=prediction.scores[0] if prediction.scores else None,
        cluster=example.group,
    )


def _scores(example: Example, answers: Sequence[str], ids: Sequence[str | None], keys: Sequence[str | None]) -> Scores:
    """Score the answers to a question; zero without gold answers."""
    if not example.answers:
        return ZERO
    return score(match_gold(answers, example.answers, ids, example.answer_ids, keys), example.answers)


class _RunningScores:
    """Running figures for the progress report."""

    def __init__(self, examples: Sequence[Example], on_progress: Callable[[Progress], None] | None) -> None:
        self.total = len(examples)
        self._scored = any(example.answers for example in examples)
        self._on_progress = on_progress
        self.done = self._failed = 0
        self._hits = 0.0

    def add(self, outcome: QuestionScores) -> None:
        self.done += 1
        self._failed += outcome.failed
        self._hits += outcome.scores.hit

    def report(self) -> None:
        if self._on_progress is not None:
            hit = self._hits / self.done if self._scored else None
            self._on_progress(Progress(self.done, self.total, self._failed, hit))


@dataclass(frozen=True)
class _Answered:
    """One question's lines, and its part of the progress report."""

    id: str
    lines: RecordLines
    outcome: QuestionScores


@dataclass(frozen=True)
class _Asker:
    """Asks one question of the pipeline; called from several threads at once."""

    pipeline: Pipeline
    settings: RunSettings
    measurement: Measurement

    def __call__(self, example: Example) -> _Answered:
        """Answer one question; whatever goes wrong with it is its outcome.

        Raises:
            ReplyPending, BudgetExceeded: the question is not answered yet, and nothing is wrong with it.
        """
        started = time.perf_counter()
        meter, deadline_s = self.measurement.meter, self.measurement.deadline_s
        topics = example.topic_ids if self.settings.entities == "linked" else ()  # granted ones need no linking
        try:
            deadline = Deadline.after(math.inf if deadline_s is None else deadline_s)
            with deadline.apply(), set_sample(example.repeat), set_question(example.id):
                answer = self.pipeline.run(example.to_question(self.settings.entities, self.settings.hops))
            seconds = time.perf_counter() - started
            if answer.question_id != example.id:
                raise RunError(f"the pipeline answered question {answer.question_id!r} when asked {example.id!r}")
            took = meter.take(example.id) if meter else QuestionUsage(answer.usage)
            found = self._retrieved(example, answer, took) if example.answers else None
            names, ids, keys = (
                [one.name for one in answer.items],
                [one.id for one in answer.items],
                self._keys(example, answer),
            )
            lines = record_answer(answer, seconds, took, topics, found, keys)
            return _Answered(example.id, lines, QuestionScores(_scores(example, names, ids, keys)))
        except ReplyPending:
            if meter is not None:
                meter.wait(example.id)
            raise
        except BudgetExceeded:
            raise
        except Exception as error:
            _log.info("question %s failed", example.id, exc_info=True)
            usage = meter.take(example.id) if meter else None
            lines = record_failure(example.id, error, time.perf_counter() - started, usage, topics)
            return _Answered(example.id, lines, QuestionScores(ZERO, failed=True))

    def _keys(self, example: Example, answer: Answer) -> list[str | None]:
        """Return the other spellings of the answers that are named by their keys."""
        named = {item.id: item.name for item in answer.items if item.id is not None}
        if self.measurement.key_spellings is None or not named:
            return []
        keys = self.measurement.key_spellings(example, list(named), list(named.values()))
        by_node = dict(zip(named, keys, strict=True))
        return [None if item.id is None else by_node[item.id] for item in answer.items]

    def _retrieved(self, example: Example, answer: Answer, took: QuestionUsage) -> Retrieved:
        """Return the gold answers in the evidence."""
        gold_nodes = self.measurement.gold_nodes
        evidence = [item for each in answer.rounds for item in each.evidence]
        nodes = () if example.answer_ids or gold_nodes is None else gold_nodes(example)
        tokens = context_tokens(took, self.measurement.count_tokens)
        return retrieved(example, evidence, tokens, nodes, answered_prompt(took, example.question), answer.items)


def _answer_all(
    ask: _Asker, examples: Sequence[Example], workers: int, folder: RunFolder, tally: _RunningScores
) -> int:
    """Answer questions in threads and record each as it finishes, in this thread.

    Returns:
        How many questions wait for replies; they are not recorded.

    Raises:
        RunIncomplete: the budget is spent; the questions then in flight are finished as far as the budget allows.
    """
    finished: SimpleQueue[Future[_Answered]] = SimpleQueue()
    unrecorded: dict[Future[_Answered], None] = {}
    pending = 0

    def record(future: Future[_Answered]) -> None:
        nonlocal pending
        try:
            each = future.result()
        except ReplyPending:
            del unrecorded[future]
            pending += 1
            return
        folder.append(each.id, each.lines)
        del unrecorded[future]
        tally.add(each.outcome)
        tally.report()

    pool = ThreadPoolExecutor(workers, thread_name_prefix="byokg")
    try:
        for example in examples:
            while folder.paused:
                with suppress(Empty):
                    record(finished.get(timeout=_PAUSED_S))
            future = pool.submit(ask, example)
            unrecorded[future] = None
            future.add_done_callback(finished.put)
            if len(unrecorded) == workers * _WAITING_PER_WORKER:
                record(finished.get())
        while unrecorded:
            record(finished.get())
    except BaseException as error:
        pool.shutdown(cancel_futures=True)
        if isinstance(error, KeyboardInterrupt | BudgetExceeded):
            # A question that was being recorded is recorded again: opening the folder drops second lines.
            for future in list(unrecorded):
                if not future.cancelled() and future.exception() is None:
                    record(future)
            if (meter := ask.measurement.meter) is not None:
                folder.leave([meter.take(example.id).stages for example in examples])
        if isinstance(error, BudgetExceeded):
            raise RunIncomplete(tally.done, tally.total, pending, error) from error
        raise
    pool.shutdown()
    return pending


def _run_config(settings: RunSettings, examples: Sequence[Example]) -> dict[str, Any]:
    """Return the content of `config.yaml`, less its hash."""
    return {
        "schema": SCHEMA,
        "code": asdict(code_version()),
        "dataset": {"name": settings.dataset, "checksum": settings.dataset_checksum},
        "questions": question_record(examples),
        "shard": None if settings.shard is None else str(settings.shard),
        "graph": {"checksum": settings.graph_checksum},
        "entities": settings.entities,
        "hops": settings.hops,
        "seed": settings.seed,
        "config": _normalize_config(settings.config, "config"),
    }


def question_record(examples: Sequence[Example]) -> dict[str, Any]:
    """Return the entry of the questions in `config.yaml`: their number, and a digest of them and of their scoring.

    The number of repeats has an entry of its own (`repeats`), if it is more than one.
    """
    names = [each.name for each in fields(Example) if each.name != "repeat"]
    digest = hashlib.sha256()
    once = [example for example in examples if not example.repeat]
    for example in once:
        line = json.dumps([getattr(example, name) for name in names])
        digest.update(line.encode("ascii") + b"\n")
    repeats = {} if len(once) == len(examples) else {"repeats": len(examples) // len(once)}
    return {"n": len(once), "checksum": digest.hexdigest(), **repeats}


def _normalize_config(value: object, key: str) -> Any:
    """Return the configuration as YAML and JSON hold it, so that it reads back equal."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _normalize_config(entry, f"{key}.{name}") for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_normalize_config(entry, f"{key}[{position}]") for position, entry in enumerate(value)]
    raise ConfigError(f"{key} is a {type(value).__name__}; a run's settings are text, numbers, lists and mappings")


@dataclass(frozen=True)
class _Part:
    """A finished shard."""

    folder: Path
    shard: Shard
    config: Mapping[str, Any]
    examples: Sequence[Example]


def merge_runs(folders: Sequence[str | Path], out: str | Path) -> Metrics:
    """Write the run folder that all shards make together, and score it.

    Predictions, traces, metrics and `config.yaml` are those of the run in one piece, byte for byte. A merge that was
    interrupted is continued by the same call.

    Args:
        folders: finished shards of one run, each once, in any order.
        out: the folder to write.

    Raises:
        RunError: a folder is no finished shard, shards are missing or doubled, they belong to different runs, or
            `out` belongs to another run.
    """
    parts = sorted(map(_read_shard, map(Path, folders)), key=lambda part: part.shard.number)
    _refuse_incomplete(parts)
    first = parts[0]
    for part in parts[1:]:
        shown = differences(_common(first.config), _common(part.config))
        if shown:
            raise RunError(f"{str(first.folder)!r} and {str(part.folder)!r} are shards of different runs ({shown})")
    count = len(parts)
    # A question and its repeats are in one shard, one after the other.
    blocks = [[list(its) for _, its in groupby(part.examples, key=lambda each: each.first_id)] for part in parts]
    examples = [example for place in range(sum(map(len, blocks))) for example in blocks[place % count][place // count]]
    config = {**first.config, "questions": question_record(examples), "shard": None}
    config.pop("hash", None)
    path = Path(out)
    metrics = finished_metrics(path, config)
    if metrics is not None:
        return metrics
    with RunFolder(path, config, [example.id for example in examples], questions_jsonl(examples)) as folder:
        recorded = {prediction.id for prediction in folder.recorded()}
        for part in parts:
            for id, lines in _lines(part):
                if id not in recorded:
                    folder.append(id, lines)
        folder.complete()
        metrics = measure(examples, read_predictions(path), config["seed"])
        if not folder.unfinished():
            folder.leave(read_unfinished(part.folder) for part in parts)
        folder.finish(metrics)
    return metrics


def _read_shard(folder: Path) -> _Part:
    config = read_config(folder)
    if not config.get("shard"):
        raise RunError(f"{str(folder)!r} is a whole run, no shard of one; name folders of runs with shard=K/N")
    if not (folder / METRICS_FILE).is_file():
        raise RunError(f"the shard in {str(folder)!r} is not finished; start it again, and merge then")
    return _Part(folder, Shard.parse(config["shard"]), config, read_questions(folder))


def _refuse_incomplete(parts: Sequence[_Part]) -> None:
    if not parts:
        raise RunError("no shard is named; give the folders of all shards")
    counts = {part.shard.count for part in parts}
    if len(counts) > 1:
        raise RunError(f"the shards are of {' and '.join(map(str, sorted(counts)))}; name shards of one division")
    numbers = [part.shard.number for part in parts]
    [count] = counts
    doubled = sorted({number for number in numbers if numbers.count(number) > 1})
    missing = sorted(set(range(1, count + 1)) - set(numbers))
    if doubled:
        raise RunError(f"shard {doubled[0]}/{count} is named twice; name each shard once")
    if missing:
        names = ", ".join(f"{number}/{count}" for number in missing)
        raise RunError(f"shards are missing: {names}; run them, and name them, too")


def _common(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in _APART}


def _lines(part: _Part) -> list[tuple[str, RecordLines]]:
    files = [(part.folder / name).read_bytes().splitlines(keepends=True) for name in (PREDICTIONS, TRACE, TIMINGS)]
    if {len(lines) for lines in files} != {len(part.examples)}:
        raise RunError(f"the records in {str(part.folder)!r} are damaged; start that shard again")
    # A finished run has its lines in the order of its questions; timings, too.
    return [(example.id, RecordLines(*lines)) for example, *lines in zip(part.examples, *files, strict=True)]


class PerQuestionPipeline:
    """A pipeline that is made anew for each question, over the graph that comes with it; a `Pipeline`.

    The question is unchanged, so a pipeline cannot detect that the graph belongs to one question.

    Args:
        dataset: source of the questions and their graphs.
        make: builds a pipeline over a graph; parts that do not depend on the graph are shared between all.
    """

    def __init__(self, dataset: SubgraphDataset, make: Callable[[GraphStore], Pipeline]) -> None:
        self._pipeline = lru_cache(_HELD)(lambda id: make(dataset.subgraph(id)))

    def run(self, question: Question) -> Answer:
        """Answer the question from its graph. Raises `DatasetError` if the data set has none for it."""
        return self._pipeline(asked_first(question.id, question.repeat)).run(question)
