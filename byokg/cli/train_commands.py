"""`byokg fit` and `byokg train`: training on questions and answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar, cast

import typer

from byokg.cli.options import expand_records
from byokg.cli.terminal import AsJson, ConfigDir, Output, Quiet, Words, print_json, print_line, stdout

if TYPE_CHECKING:
    from byokg.cli.config import Settings
    from byokg.cli.evaluation import Session
    from byokg.evaluation.datasets.base import Example
    from byokg.offline import Report, ShareEstimate
    from byokg.pipelines.loop import Loop

app = typer.Typer(no_args_is_help=True, help="Learn from questions and answers: labels, language models.")


@app.command("labels")
def labels_(
    words: Words = None,
    config_dir: ConfigDir = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the JSON lines go.")] = Path("labels.jsonl"),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Find for each question the query that returns its gold answers best.

    byokg train labels dataset=atlas train.keep=3 --out labels.jsonl

    Candidates are enumerated around the annotated topic entities, and ranked by F1 against the answers. A line holds
    the question, its best queries, and their hits, totals, precision and recall. Settings: train.keep, train.min_f1,
    train.hops, train.directed (see all with: byokg eval train=labels --show).
    """
    from byokg.cli.evaluation import open_questions
    from byokg.cli.questions import gold_nodes, topics_in
    from byokg.graph.name_indexes import name_index
    from byokg.training.labels import LabelSettings, labels, write_labels

    settings, wanted = _read_train_settings(words, "labels", LabelSettings)

    say = Output(quiet=quiet).note
    with open_questions(settings, say) as (dataset, store, examples):
        made = labels(store, examples, topics_in(store), gold_nodes(store, name_index(store)), wanted)
        questions, labelled = write_labels(made, out)
    if as_json:
        print_json({"dataset": dataset.name, "questions": questions, "labelled": labelled, "file": str(out)})
    else:
        print_line(stdout(), f"{labelled:,} of {questions:,} questions have a query that finds an answer: {out}")


@dataclass(frozen=True)
class LearningOptions:
    """Questions that are learnt from, the share that is held out, and the folder of the weights."""

    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the weights go; replaced if they are there.")] = Path(
        "weights"
    )
    held_out: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of the questions held out to measure the gain.")
    ] = 0.2
    chains: Annotated[
        Path | None, typer.Option(metavar="FILE", help="JSON lines of further questions with their relation chains.")
    ] = None
    inverses: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Pairs of relations that say the same backwards, tab separated.")
    ] = None


@expand_records
def fit(
    *,
    words: Words = None,
    config_dir: ConfigDir = None,
    learning: LearningOptions,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fit the answering without a language model to a graph and its questions.

    byokg fit dataset=atlas --out weights

    byokg fit dataset=folder dataset.root=DIR graph.path=GRAPH --out weights

    Weights of relation paths and a ranker are fitted on the questions of dataset.split, by default dev; of your own
    questions on all but those with split "test". Some select between the old weights, the new ones, and the ranker
    beside them, and some are held out: their Hits@1 and Hit before and after are printed, with 95 % intervals. Last,
    scores are calibrated on the selection and held-out questions: their AUROC and calibration error before and after
    are cross-fitted in five folds. Settings: sample (fewer questions), linking.entities (of the held-out questions),
    and those of the ranker, train.epochs, train.rank, train.seed and more (list them with: byokg eval train=fit
    --show). Use the output with pipeline.weights=DIR, in ask and eval
    """
    import byokg.offline as room
    from byokg.cli.evaluation import open_session
    from byokg.cli.questions import gold_nodes, pick
    from byokg.graph.name_indexes import name_index

    say = Output(quiet=quiet).note
    settings, ranker = _read_train_settings(words, "fit", room.FitSettings)
    if settings.components["dataset"].get("split") == "test" and not _says_split(words):
        settings, ranker = _read_train_settings([*(words or []), "dataset.split=dev"], "fit", room.FitSettings)
    dataset = settings.build("dataset")
    kept = _not_of_test(pick(dataset, settings.run, say), words, say)
    further, told_of = room.read_chains(learning.chains) if learning.chains is not None else ([], "")
    same = room.read_inverses(learning.inverses) if learning.inverses is not None else {}
    if further:
        say(f"the ranker learns from {len(further):,} annotated chains, too")
    settings = _of_paths(settings)
    with open_session(settings, dataset, say, batch=True) as session:
        store = room.linker_of(session.pipeline).store
        examples = session.choose(kept, settings.run, say)
        task = room.FitTask(
            partial(_pipeline_with, settings, session),
            session.embedder,
            gold_nodes(store, name_index(session.store)),
            lambda example: example.to_question(**asdict(settings.run.linking)),
            lambda linker: room.chain_cases(linker, linker.store, further, same, most=ranker.most),
        )
        splits = room.split_examples(examples, learning.held_out, settings.run.seed)
        source = " ".join(filter(None, (dataset.name, dataset.checksum, told_of)))
        report = room.fit(task, splits, learning.out, source, ranker, say)
    if as_json:
        print_json({**asdict(report), "folder": str(learning.out)})
    else:
        _print_fit(report, settings.run.linking.entities, learning.out)


def _of_paths(settings: Settings) -> Settings:
    """Return settings under which every answer counts, and paths alone give answers."""
    pipeline = settings.components["pipeline"]
    if "abstain" in pipeline:
        settings = _set_pipeline(settings, abstain=0.0)
    if pipeline.get("_target_", "").endswith(".offline_pipeline"):
        settings = _set_pipeline(settings, query_graphs=False)
    return settings


def _set_pipeline(settings: Settings, **changed: object) -> Settings:
    own = {**settings.components["pipeline"], **changed}
    return replace(settings, components={**settings.components, "pipeline": own})


def _pipeline_with(settings: Settings, session: Session, weights: Path | None) -> Loop:
    """Return the session's pipeline with other weights; with its own for None."""
    from byokg.cli.evaluation import make_pipeline
    from byokg.linking.parts import Parts

    if weights is None:
        return cast("Loop", session.pipeline)
    other = _set_pipeline(settings, weights=str(weights))
    parts = Parts(session.store, None, session.embedder, session.entities)
    return cast("Loop", make_pipeline(other, parts, batch=True))


def _print_fit(report: Report, entities: str, out: Path) -> None:
    """Print figures before and after, and the place of the weights."""
    from byokg.evaluation.tables import percent

    def told(share: ShareEstimate) -> str:
        return f"{percent(share.value)} ({percent(share.low)} to {percent(share.high)})"

    asked = f"{report.held_out:,} questions held out, entities {entities}"
    print_line(stdout(), f"learnt from {report.learnt:,} questions, chose {report.chosen!r} by {report.choosing:,}")
    for metric, shares in (("Hits@1", report.hits_at_1), ("Hit", report.hit)):
        before, after, difference = (told(shares[name]) for name in ("before", "after", "difference"))
        print_line(stdout(), f"{metric} of {asked}: {before} before, {after} after; difference {difference}")
    scores = [
        f"{name} {'not known' if (value := score.auroc) is None else f'{value:.3f}'}, {score.calibration_error:.3f}"
        for name, score in report.score.items()
    ]
    print_line(stdout(), f"AUROC and calibration error of their scores: {'; '.join(scores)}")
    print_line(stdout(), f"weights: {out}; use them with pipeline.weights={out}")


def _not_of_test(candidates: list[Example], words: Sequence[str] | None, say: Callable[[str], None]) -> list[Example]:
    """Return the questions without those of the test split, unless the command line names a split."""
    kept = candidates if _says_split(words) else [example for example in candidates if example.split != "test"]
    if len(kept) < len(candidates):
        say(f"{len(candidates) - len(kept):,} questions of the split 'test' are left out")
    return kept


def _says_split(words: Sequence[str] | None) -> bool:
    return any(word.startswith("dataset.split=") for word in words or ())


@app.command("sft")
def sft_(
    file: Annotated[Path, typer.Argument(metavar="LABELS", help="JSON lines that byokg train labels wrote.")],
    words: Words = None,
    config_dir: ConfigDir = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the adapter, or the model, goes.")] = Path("tuned"),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fine-tune a language model, with LoRA, to write the query that answers a question, or its plan.

    byokg train labels dataset=atlas dataset.split=dev --out labels.jsonl

    byokg train sft labels.jsonl train=gemma2_9b train.epochs=1 --out tuned

    byokg train sft labels.jsonl train.model=DIR train.rank=0 --out tuned

    byokg train sft labels.jsonl train=gemma3_270m train.model=DIR --out tuned

    The time is estimated first, from two batches; curve.jsonl is the learning curve. The same command goes on with a
    training that was interrupted. Settings: train=gemma3_270m, gemma2_9b or llama3_8b, train.model, train.target (query
    or plan), train.rank, train.batch, train.rate and more (see all with: byokg eval train=sft --show). Use a model of
    plans with pipeline=graphraft pipeline.ranking=tuned, or pipeline=planner pipeline.weights.path=tuned
    """
    from byokg.training.sft import SftSettings, fine_tune, read_pairs

    _, settings = _read_train_settings(words, "sft", SftSettings)
    pairs, _ = read_pairs(file, settings.target)
    told = fine_tune(pairs, out, settings, report=Output(quiet=quiet).note)
    if as_json:
        print_json({**asdict(told), "folder": str(out)})
        return
    measured = f"{told.held_out:,} others" if told.held_out else "the same pairs"
    losses = f"{told.loss_before:.3f} before, {told.loss_after:.3f} after"
    print_line(stdout(), f"trained on {told.trained:,} pairs; loss of a token of {measured}: {losses}: {out}")


T = TypeVar("T")


def _read_train_settings(words: Sequence[str] | None, command: str, kind: type[T]) -> tuple[Settings, T]:
    """Read the settings of a command, and those of its training from the group `train`.

    Raises:
        ConfigError: a setting is wrong, or the option chosen is that of another command.
    """
    from byokg.cli.config import read_settings
    from byokg.errors import ConfigError

    settings = read_settings([f"train={command}", *(words or [])])
    made = settings.build("train")
    if not isinstance(made, kind):
        place = "fit" if command == "fit" else f"train {command}"
        raise ConfigError(f"train={settings.options['train']} is not for byokg {place}; use train={command}")
    return settings, made
