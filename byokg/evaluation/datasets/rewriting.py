"""Has a language model put the questions of a test set into other words, as people ask.

Of a question nothing but its text changes. A rewriting is taken only if all that decides the answer is still in it: the
names of the topics and every number as they were, and no answer; else the question stays as it is. What stood there
before stays beside it (`original`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from byokg.errors import LlmUnusable
from byokg.evaluation.datasets.testset import QuestionRecord, Testset, folded
from byokg.llm.messages import prompt_messages
from byokg.llm.model import LanguageModel
from byokg.llm.reply_blocks import without_thought
from byokg.prompts import PromptLibrary

REWRITE = "rewrite"
"""Name of the prompt, and of the stage that its calls are counted under."""

_NUMBER = re.compile(r"\d+(?:[.,:-]\d+)*")
_REWRITTEN = re.compile(r"<question>(.*?)</question>", re.DOTALL | re.IGNORECASE)
_LONGEST = 4
"""Times as long as the question, and a line more, that a rewriting may be."""


@dataclass(frozen=True)
class Rewritten:
    """A test set in other words."""

    testset: Testset
    taken: int
    kept: Mapping[str, int]
    """Why questions stayed as they were, and how many."""


def rewrite(
    made: Testset,
    model: LanguageModel,
    prompts: PromptLibrary | None = None,
    workers: int = 1,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Rewritten:
    """Rewrite every question, one call each.

    Args:
        made: the questions.
        model: writes the new wording; its store records the replies.
        prompts: the prompts; None takes those of the package.
        workers: number of concurrent calls.
        on_progress: called with the number of rewritten questions.

    Raises:
        LlmError: a call failed for good.
    """
    prompt = (prompts or PromptLibrary())[REWRITE]
    every = (*made.questions, *made.unanswerable)

    def proposed(asked: QuestionRecord) -> str | None:
        names = "\n".join(dict.fromkeys(asked.topic_entities))
        filled = prompt.fill(question=asked.question, names=names)
        try:
            reply = model.reply(prompt_messages(filled), stage=REWRITE, question_id=asked.id)
        except LlmUnusable:
            return None
        found = _REWRITTEN.findall(without_thought(reply.text))
        return " ".join(found[-1].split()) if found else None

    kept: Counter[str] = Counter()
    texts = {folded(asked.question) for asked in every}
    new: dict[str, QuestionRecord] = {}
    with ThreadPoolExecutor(workers, thread_name_prefix=REWRITE) as pool:
        for done, (asked, text) in enumerate(zip(every, pool.map(proposed, every), strict=True), start=1):
            wrong = objection(asked, text)
            if wrong is None and folded(text or "") in texts:
                wrong = "is a question that is there already"
            if wrong is None and text:
                texts.add(folded(text))
                new[asked.id] = replace(asked, question=text, original=asked.question)
            else:
                kept[wrong or ""] += 1
            on_progress(done)
    questions, unanswerable = (
        tuple(new.get(asked.id, asked) for asked in part) for part in (made.questions, made.unanswerable)
    )
    testset = replace(made, questions=questions, unanswerable=unanswerable, rewritten_by=model.name)
    return Rewritten(testset, len(new), dict(kept.most_common()))


def objection(asked: QuestionRecord, text: str | None) -> str | None:
    """Return the reason to reject a rewriting; None if it is acceptable."""
    if not text:
        return "is not between <question> tags"
    if len(text) > _LONGEST * len(asked.question) + 120:
        return "is much longer than the question"
    # Longer names first, so that one does not stand for another that it holds.
    rest = text
    for name in sorted(set(asked.topic_entities), key=len, reverse=True):
        if name not in rest:
            return "lacks the name of a topic"
        rest = rest.replace(name, " ")
    if Counter(_NUMBER.findall(asked.question)) != Counter(_NUMBER.findall(text)):
        return "has other numbers"
    before, after = (f" {folded(each)} " for each in (asked.question, text))
    if any(folded(answer) in after and folded(answer) not in before for answer in asked.answers):
        return "tells an answer"
    return None
