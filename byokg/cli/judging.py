"""The judge of `byokg score --profile judge`: a language model as the settings name it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from byokg.cli.config import read_settings
from byokg.cli.language_model import asking
from byokg.errors import ConfigError
from byokg.evaluation.cases import Case
from byokg.evaluation.judge import judge_cases, judge_profile
from byokg.evaluation.profiles.base import Profile
from byokg.llm.estimate import dollars
from byokg.types import Spending

_EVERY = 100
"""Cases between two lines about progress."""


def judged(cases: Sequence[Case], words: Sequence[str], note: Callable[[str], None]) -> Profile:
    """Have all cases judged, and return the verdicts as a profile.

    Args:
        cases: questions with gold answers and predictions.
        words: settings: `llm`, and whatever else tells how to ask it.
        note: told in one line what happens.

    Raises:
        ConfigError: the settings name no language model, or questions have no text.
        LlmError: the judge cannot be asked.
    """
    wordless = sum(not case.question for case in cases)
    if wordless:
        raise ConfigError(
            f"{wordless:,} of {len(cases):,} predictions come without the question, which the judge has to see; "
            "name the data set: dataset=folder dataset.root=DIR"
        )
    # The pipeline that asks a model and needs no graph; only its model is made.
    settings = read_settings([*words, "pipeline=direct"])
    if "llm" not in settings.components:
        raise ConfigError("--profile judge asks a language model; add llm=anthropic llm.model=MODEL")
    asks = asking(settings, note)
    assert asks is not None
    try:

        def progress(done: int) -> None:
            if done % _EVERY == 0:
                note(f"{done:,} answers judged")

        verdicts = judge_cases(cases, asks.model, asks.prompts, settings.run.workers, progress)
        spent = Spending()
        for case in cases:
            spent = sum(asks.meter.take(case.id).stages.values(), spent)
    finally:
        asks.close()
    replayed = f", {spent.replayed.calls:,} replayed" if spent.replayed.calls else ""
    note(f"{verdicts.model} judged: {spent.asked.calls:,} calls{replayed}, {dollars(spent.asked.usd)}")
    if verdicts.unreadable:
        note(
            f"no score in {len(verdicts.unreadable):,} replies, which count as 0: {', '.join(verdicts.unreadable[:5])}"
        )
    return judge_profile(verdicts)
