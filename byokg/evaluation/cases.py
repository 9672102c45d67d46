"""One question with its gold answers and what a system answered, as every metric profile reads it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from byokg.errors import RunError
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.records import Prediction, Status


@dataclass(frozen=True)
class Case:
    """A question, its gold answers, and the answers to be scored."""

    id: str
    gold: tuple[str, ...]
    """Gold names, at least one."""
    answers: tuple[str, ...] = ()
    """Predicted names best first; of a foreign file, the lines of its prediction."""
    status: Status = "ok"
    """Without `ok` there is no prediction: the question failed, or is missing from the file."""
    answer_ids: tuple[str | None, ...] = ()
    """Of `answers`, one each; empty where the system gives names alone."""
    drafts: tuple[str, ...] = ()
    """What the language model answered before it saw the graph, if that was recorded."""
    written: bool = False
    """The prediction is one text that a language model wrote, cut into lines, and not a list of answers."""
    question: str = ""
    gold_ids: tuple[str, ...] = ()
    parses: tuple[tuple[str, ...], ...] = ()
    """Gold ids of each annotated reading; empty where there is one reading, which is `gold_ids`."""
    aliases: tuple[tuple[str, ...], ...] = ()
    """Other names of each gold answer, parallel to `gold`; or empty."""
    rows: tuple[tuple[object, ...], ...] = ()
    """What the gold query returned, where there is one."""
    type: str = ""
    answer_type: str = ""

    @property
    def text(self) -> str:
        """Return the prediction as one text, a line an answer."""
        return "\n".join(self.answers)

    @property
    def ranked_ids(self) -> tuple[str, ...]:
        """Return the predicted ids best first, each once; an answer that is no node stands under its name."""
        if not self.answer_ids:
            return tuple(dict.fromkeys(self.answers))
        pairs = zip(self.answer_ids, self.answers, strict=True)
        return tuple(dict.fromkeys(name if id is None else id for id, name in pairs))


def join(examples: Sequence[Example], predictions: Iterable[Prediction]) -> list[Case]:
    """Put questions and predictions together, in the order of the questions.

    Args:
        examples: the questions asked; one without a prediction becomes a failed case.
        predictions: at most one for each question, in any order.

    Raises:
        RunError: a prediction is for a question that was not asked.
    """
    found = {prediction.id: prediction for prediction in predictions}
    strangers = found.keys() - {example.id for example in examples}
    if strangers:
        raise RunError(
            f"there is a prediction for {min(strangers)!r} (and {len(strangers) - 1:,} more like it), which is no "
            "question of this data set; name the data set, and the split, that was predicted"
        )
    return [case_of(example, found.get(example.id)) for example in examples]


def case_of(example: Example, prediction: Prediction | None, written: bool = False) -> Case:
    """Put one question and its prediction together; without one, the case counts as failed."""
    made = prediction or Prediction(example.id, "failed")
    return Case(
        id=example.id,
        gold=example.answers,
        answers=made.answers,
        status=made.status,
        answer_ids=made.answer_ids,
        drafts=made.drafts,
        written=written,
        question=example.question,
        gold_ids=example.answer_ids,
        parses=example.parses,
        aliases=example.aliases,
        rows=example.rows,
        type=example.type,
        answer_type=example.answer_type,
    )
