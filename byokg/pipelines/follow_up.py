"""Follow-up questions: a question that leans on earlier ones is completed, and then answered by itself.

A language model completes it in one call. Without one, the possible completions of an English question are tried, and
the one with the highest score of its first answer is taken: pronouns stand for an earlier answer or topic (`its
population`), and a question without a verb of its own changes a topic of the one before (`And Spain?`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from byokg.errors import LlmUnusable
from byokg.llm.messages import prompt_messages
from byokg.llm.model import LanguageModel
from byokg.llm.reply_blocks import without_thought
from byokg.pipelines.loop import Loop
from byokg.prompts import PromptLibrary
from byokg.types import Answer, Question

Turn = tuple[str, Answer]
"""An earlier question and its answer."""

FOLLOW_UP = "follow_up"
"""Name of the prompt, and of the stage that its calls are counted under."""

_TURNS, _NAMED = 5, 5
"""Earlier questions in a prompt, and answers of each."""

_COMPLETED = re.compile(r"<question>(.*?)</question>", re.DOTALL | re.IGNORECASE)
_PRONOUN = re.compile(r"\b(it|its|he|him|his|she|hers?|they|them|theirs?|there|that one|this one)\b", re.IGNORECASE)
_OWNED = frozenset(("its", "his", "her", "hers", "their", "theirs"))
_ELLIPSIS = re.compile(
    r"(?:(?:and|or|but)\s+)?(?:(?:what|how)\s+about\s+)?(?:(?:of|in|for|by|from|with|to)\s+)?(?P<topic>.+?)[\s?.!]*",
    re.IGNORECASE,
)
_LONGEST_TOPIC = 6
"""Words of a question that only names another topic."""
_ASKS = re.compile(
    r"\b(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|has|have|had|can|list|name|give|show)"
    r"\b",
    re.IGNORECASE,
)


def answer_follow_up(
    pipeline: Loop,
    question: Question,
    history: Sequence[Turn],
    model: LanguageModel | None = None,
    prompts: PromptLibrary | None = None,
) -> Answer:
    """Answer a question that may lean on earlier ones; `translation` of the answer is the completed question.

    Args:
        pipeline: answers complete questions.
        question: the question.
        history: earlier questions and their answers, in their order.
        model: completes the question; None tries completions.
        prompts: with the prompt for it; None takes that of the package.

    Raises:
        LlmError, GraphError: as the pipeline does.
    """
    if not history:
        return pipeline.run(question)
    texts = list(completions(question.text, history)) if model is None else [_asked(question, history, model, prompts)]
    best: Answer | None = None
    for text in dict.fromkeys(texts):
        answer = pipeline.run(replace(question, text=text))
        if text != question.text:
            answer = replace(answer, translation=answer.translation or text)
        if best is None or _score(answer) > _score(best):
            best = answer
    assert best is not None
    return best


def _score(answer: Answer) -> float:
    return answer.items[0].score if answer.items else -1.0


def completions(text: str, history: Sequence[Turn]) -> Iterator[str]:
    """Yield the possible completions of a question, the likeliest first, and last the question itself.

    >>> from byokg import AnswerItem
    >>> paris = AnswerItem("Paris", "city/paris", 0.9)
    >>> history = [("What is the capital of France?", Answer("q", (paris,), ()))]
    >>> list(completions("Which river flows through it?", history))
    ['Which river flows through Paris?', 'Which river flows through it?']
    """
    before, answer = history[-1]
    before = answer.translation or before
    topics = list(dict.fromkeys(one.mention.text for each in answer.rounds for one in each.linked.entities))
    found = _PRONOUN.search(text)
    named = _ELLIPSIS.fullmatch(text)
    if found is not None:
        first = [item.name for item in answer.items if item.id is not None][:1]
        for name in dict.fromkeys([*first, *topics]):
            word = found[0].casefold()
            stands = f"{name}'s" if word in _OWNED else f"in {name}" if word == "there" else name
            yield text[: found.start()] + stands + text[found.end() :]
    elif named is not None and not _ASKS.search(named["topic"]) and len(named["topic"].split()) <= _LONGEST_TOPIC:
        yield from (before.replace(topic, named["topic"]) for topic in topics if topic and topic in before)
    yield text


def _asked(question: Question, history: Sequence[Turn], model: LanguageModel, prompts: PromptLibrary | None) -> str:
    """Return the question as a language model completes it; as it is without a usable reply."""
    told = "\n".join(
        f"{text}\n= {', '.join(item.name for item in answer.items[:_NAMED]) or 'no answer'}"
        for text, answer in history[-_TURNS:]
    )
    filled = (prompts or PromptLibrary())[FOLLOW_UP].fill(history=told, question=question.text)
    try:
        reply = model.reply(prompt_messages(filled), stage=FOLLOW_UP, question_id=question.id)
    except LlmUnusable:
        return question.text
    found = _COMPLETED.findall(without_thought(reply.text))
    return " ".join(found[-1].split()) if found and found[-1].strip() else question.text
