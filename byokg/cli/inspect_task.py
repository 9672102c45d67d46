"""A task of Inspect (`inspect_ai`) that runs a byokg pipeline on the questions of a data set.

    inspect eval byokg/kgqa --model none -T settings="dataset=atlas limit=100"
    inspect eval byokg/kgqa --model none -T settings="dataset=atlas pipeline=byokg llm=anthropic llm.model=MODEL"

`settings` are those of `byokg eval`. The pipeline uses its own language model, and not Inspect's.
Scores are those of the `strict` profile; standard errors take questions of one cluster together. Settings of the run
alone (`out`, `workers`, `shard`, `repeats`) have no effect: Inspect has `--max-samples` and `--epochs`.
"""

from __future__ import annotations

import atexit
import importlib.util
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

from byokg.cli.terminal import note
from byokg.errors import ConfigError, import_extra
from byokg.types import Answer

_PURPOSE = "the task byokg/kgqa"

F = TypeVar("F", bound=Callable[..., Any])

# Inspect finds a task by the decorator above it; without Inspect the module can be imported all the same.
task: Callable[[F], F] = (
    import_extra("inspect_ai", "inspect", _PURPOSE).task
    if importlib.util.find_spec("inspect_ai")
    else lambda made: made
)

METRICS = {"hit": "hit", "hits@1": "hits_at_1", "f1": "f1", "em": "em"}
"""Names in Inspect's tables, and fields of `metrics.Scores`."""


@task
def kgqa(settings: str = "dataset=atlas") -> Any:
    """Return the task.

    Args:
        settings: words as for `byokg eval`, with spaces between them; quotes keep spaces together.

    Raises:
        MissingExtra: Inspect is not installed.
        ConfigError: the settings do not fit together, or name no data set.
    """
    import shlex

    from byokg.cli.config import read_settings
    from byokg.cli.evaluation import open_session
    from byokg.cli.questions import pick
    from byokg.llm.retry import set_question

    inspect = import_extra("inspect_ai", "inspect", _PURPOSE)
    samples = import_extra("inspect_ai.dataset", "inspect", _PURPOSE)
    read = read_settings(shlex.split(settings))
    if not read.options["dataset"]:
        raise ConfigError("-T settings= names no data set; add dataset=atlas, for instance")
    dataset = read.build("dataset")
    candidates = pick(dataset, read.run, note)
    session = open_session(read, dataset, note)
    atexit.register(session.close)
    examples = session.choose(candidates, read.run, note)
    grants = read.run.linking
    questions = {example.id: example.to_question(grants.entities, grants.hops) for example in examples}

    def ask(id: str) -> Answer:
        with set_question(id):
            answer: Answer = session.pipeline.run(questions[id])
        if session.llm is not None:
            session.llm.meter.take(id)
        return answer

    return inspect.Task(
        dataset=samples.MemoryDataset(
            [
                samples.Sample(
                    id=example.id,
                    input=example.question,
                    target=list(example.answers),
                    metadata={"type": example.type, "hops": example.hops, "cluster": example.group},
                )
                for example in examples
            ],
            name=dataset.name,
        ),
        solver=_solver(ask),
        scorer=_scorer(),
        metadata={"settings": settings, "graph": session.graph_checksum(), "dataset": dataset.checksum},
    )


def _solver(ask: Any) -> Any:
    """Return the solver of a sample: the pipeline, in a thread of its own."""
    from functools import partial

    to_thread = import_extra("anyio.to_thread", "inspect", _PURPOSE)
    solvers = import_extra("inspect_ai.solver", "inspect", _PURPOSE)
    models = import_extra("inspect_ai.model", "inspect", _PURPOSE)

    @solvers.solver(name="byokg")  # type: ignore[untyped-decorator]
    def answering() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            answer = await to_thread.run_sync(partial(ask, str(state.sample_id)))
            state.metadata["answers"] = [asdict(item) for item in answer.items]
            names = "\n".join(item.name for item in answer.items)
            state.output = models.ModelOutput.from_content("byokg", names)
            state.messages.append(state.output.message)
            return state

        return solve

    return answering()


def _scorer() -> Any:
    """Return the scorer of a sample by the `strict` profile."""
    from byokg.evaluation.metrics import score

    scorers = import_extra("inspect_ai.scorer", "inspect", _PURPOSE)
    figures = [scorers.mean(), scorers.stderr(cluster="cluster")]

    @scorers.scorer(name="strict", metrics=dict.fromkeys(METRICS, figures))  # type: ignore[untyped-decorator]
    def strict() -> Any:
        async def scored(state: Any, target: Any) -> Any:
            names = [item["name"] for item in state.metadata.get("answers", ())]
            found = score(names, list(target))
            value = {name: getattr(found, field) for name, field in METRICS.items()}
            return scorers.Score(value=value, answer="\n".join(names))

        return scored

    return strict()
