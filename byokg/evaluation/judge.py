"""A language model as judge of answers: right, right in part, wrong.

Source: ByoKG-RAG (arXiv:2507.04127v1), "Metrics" (Text2Cypher).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from byokg.errors import LlmUnusable
from byokg.evaluation.cases import Case
from byokg.evaluation.profiles.base import Metric, Profile
from byokg.llm.model import LanguageModel
from byokg.llm.parsing import read_score
from byokg.llm.prompt_messages import prompt_messages
from byokg.prompts.template import PromptLibrary

STAGE = "judge"

NAME = "judge"


@dataclass(frozen=True)
class Verdicts:
    """What the judge said of each question."""

    model: str
    scores: dict[str, float]
    """1, 0.5 or 0, by question id; of those that have a prediction. Nothing predicted is 0, and is not asked about."""
    unreadable: tuple[str, ...]
    """Ids of questions to which no score was given; they count as 0."""


def judge_cases(
    cases: Sequence[Case],
    model: LanguageModel,
    prompts: PromptLibrary | None = None,
    workers: int = 1,
    on_progress: Callable[[int], None] | None = None,
) -> Verdicts:
    """Ask about every case that has a prediction.

    The expected answer is the result of the gold query where the data set has one, else the gold answers.

    Args:
        cases: questions with gold answers and predictions.
        model: the judge; its replies are recorded as its store says.
        prompts: the prompts; None takes those that ship with the package.
        workers: cases judged at the same time.
        on_progress: told how many are judged.

    Raises:
        LlmError: the judge cannot be asked.
    """
    prompt = (prompts or PromptLibrary())[NAME]

    def judge(case: Case) -> float | None:
        filled = prompt.fill(question=case.question, expected=_expected(case), given=case.text)
        try:
            return read_score(model.reply(prompt_messages(filled), stage=STAGE, question_id=case.id).text)
        except LlmUnusable:
            return None

    predicted = [case for case in cases if case.status == "ok"]
    asked = [case for case in predicted if case.text.strip()]
    scores = {case.id: 0.0 for case in predicted}
    unreadable = []
    with ThreadPoolExecutor(workers, thread_name_prefix="judge") as pool:
        for done, (case, verdict) in enumerate(zip(asked, pool.map(judge, asked), strict=True), start=1):
            if verdict is None:
                unreadable.append(case.id)
            else:
                scores[case.id] = verdict
            if on_progress is not None:
                on_progress(done)
    return Verdicts(model.name, scores, tuple(unreadable))


def judge_profile(verdicts: Verdicts) -> Profile:
    """Return the verdicts as a metric profile, to stand beside others."""
    return Profile(
        name=NAME,
        source=f'ByoKG-RAG (arXiv:2507.04127v1), "Metrics" (Text2Cypher), judged by {verdicts.model}',
        metrics=(Metric("judged", "1, 0.5 or 0 as a language model judges the answer"),),
        score=lambda case: (verdicts.scores[case.id],),
    )


def _expected(case: Case) -> str:
    if case.rows:
        return "\n".join(" | ".join("null" if value is None else str(value) for value in row) for row in case.rows)
    return "\n".join(case.gold)
