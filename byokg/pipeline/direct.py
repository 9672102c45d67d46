"""Answering without a graph: what a language model knows by itself."""

from __future__ import annotations

import time

from byokg.llm.model import LanguageModel
from byokg.llm.parsing import read_answers
from byokg.llm.prompt_messages import prompt_messages
from byokg.prompts.template import PromptLibrary
from byokg.types import Answer, AnswerItem, Question

STAGE = "direct"


class Direct:
    """Asks a language model, and nothing else; its answers rest on no evidence.

    Args:
        model: who is asked.
        thinking: let the model think step by step first.
        prompts: the prompts; None takes those that ship with the package.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "Baselines": Vanilla LLM, and with `thinking` CoT.
    """

    def __init__(self, model: LanguageModel, thinking: bool = False, prompts: PromptLibrary | None = None) -> None:
        self._model = model
        self._prompt = (prompts or PromptLibrary())["direct_cot" if thinking else "direct"]

    def run(self, question: Question) -> Answer:
        """Answer one question. Raises `LlmError`."""
        began = time.perf_counter()
        messages = prompt_messages(self._prompt.fill(question=question.text))
        reply = self._model.reply(messages, stage=STAGE, question_id=question.id)
        answers = read_answers(reply.text)
        items = tuple(AnswerItem(one.name, None, 1 / (1 + at)) for at, one in enumerate(answers))
        return Answer(question.id, items, (), {"answer": time.perf_counter() - began})

    def ask(self, text: str) -> Answer:
        """Answer a question given as text."""
        return self.run(Question(id="ask", text=text))
