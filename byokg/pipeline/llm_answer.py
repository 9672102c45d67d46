"""Answering with a language model from what was gathered."""

from __future__ import annotations

from collections.abc import Sequence

from byokg.graph.store import GraphStore
from byokg.index.normalize import normalize_name
from byokg.llm.model import LanguageModel
from byokg.llm.parsing import WrittenAnswer, read_answers
from byokg.llm.prompt_messages import prompt_messages
from byokg.pipeline.citations import Grounds
from byokg.pipeline.context import ContextText, ContextWriter
from byokg.prompts.template import PromptLibrary
from byokg.types import AnswerItem, Context, Question

STAGE = "answer"


class LlmAnswerer:
    """Asks a language model to answer from the evidence, and checks what it cites.

    An answer cites the evidence that holds its name or value (`Grounds`); citing a line means the items in it. What the
    model cited wrongly is dropped. Where nothing is left, the evidence that it was shown and did not cite is taken, so
    an answer without citations is one that the graph does not support.

    Args:
        model: who is asked.
        store: gives the names of nodes.
        context: writes the evidence for the prompt.
        prompts: the prompts; None takes those that ship with the package.
        unite_drafts: put the draft answers of the first round, which know nothing of the graph, beside the answers:
            the first answer, then the first draft, then the others.

    Source: ByoKG-RAG (arXiv:2507.04127v1), Algorithm 2 line 12; `unite_drafts` after "Datasets & Metrics" (H@2).
    """

    def __init__(
        self,
        model: LanguageModel,
        store: GraphStore,
        context: ContextWriter,
        prompts: PromptLibrary | None = None,
        unite_drafts: bool = False,
    ) -> None:
        self._model = model
        self._store = store
        self._context = context
        self._prompt = (prompts or PromptLibrary())["answer"]
        self._unite_drafts = unite_drafts

    def answer(self, question: Question, context: Context) -> list[AnswerItem]:
        """Return the model's answers in its order. Raises `LlmError`."""
        written = self._context.write(context)
        messages = prompt_messages(self._prompt.fill(graph_context=written.text, question=question.text))
        reply = self._model.reply(messages, stage=STAGE, question_id=question.id)
        shown = {id for items in written.items.values() for id in items}
        grounds = Grounds(self._store, [item for item in context.evidence if item.id in shown])
        answers: Sequence[WrittenAnswer] = read_answers(reply.text)
        if self._unite_drafts and context.rounds:
            answers = _united(answers, context.rounds[0].artifacts.draft_answers)
        return [_checked(answer, 1 / (1 + place), grounds, written) for place, answer in enumerate(answers)]


def _united(answers: Sequence[WrittenAnswer], drafts: Sequence[str]) -> list[WrittenAnswer]:
    """Put drafts beside answers, the first of each first; of one name the answer stays, for its citations."""
    cited = {normalize_name(answer.name): answer for answer in reversed(answers)}
    added = [WrittenAnswer(draft) for draft in drafts]
    united: dict[str, WrittenAnswer] = {}
    for one in (*answers[:1], *added[:1], *answers[1:], *added[1:]):
        name = normalize_name(one.name)
        united.setdefault(name, cited.get(name, one))
    return list(united.values())


def _checked(answer: WrittenAnswer, score: float, grounds: Grounds, written: ContextText) -> AnswerItem:
    """Tie an answer to a node and to the evidence that holds it, that which the model cited if any of it does."""
    held = grounds.of(answer.name)
    meant = dict.fromkeys(id for line in answer.citations for id in written.items.get(line, (line,)))
    citations = tuple(id for id in meant if id in held) or tuple(held)
    return AnswerItem(answer.name, held[citations[0]] if citations else None, score, citations)
