"""Answering with a language model from what was gathered."""

from __future__ import annotations

from collections.abc import Sequence

from byokg.graph.store import GraphStore
from byokg.index.normalize import normalize_name
from byokg.llm.model import LanguageModel
from byokg.llm.parsing import WrittenAnswer, read_answers
from byokg.llm.prompt_messages import prompt_messages
from byokg.pipeline.context import ContextWriter
from byokg.prompts.template import PromptLibrary
from byokg.types import AnswerItem, Context, EntityId, PathEvidence, Question

STAGE = "answer"


class LlmAnswerer:
    """Asks a language model to answer from the evidence, and checks what it cites.

    An answer cites the evidence that holds its name: what the model cited wrongly is dropped, and evidence that the
    model was shown and did not cite is added, so an answer without citations is one that the graph does not support.

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
        shown = set(written.shown)
        evidence = [item for item in context.evidence if isinstance(item, PathEvidence) and item.id in shown]
        answers: Sequence[WrittenAnswer] = read_answers(reply.text)
        if self._unite_drafts and context.rounds:
            answers = _united(answers, context.rounds[0].artifacts.draft_answers)
        return self._checked(answers, evidence)

    def _checked(self, answers: Sequence[WrittenAnswer], evidence: Sequence[PathEvidence]) -> list[AnswerItem]:
        """Tie answers to nodes and to the evidence that holds them."""
        holders = self._holders(evidence)
        items = []
        for place, written in enumerate(answers):
            held = holders.get(normalize_name(written.name), {})
            cited = [id for id in written.citations if id in held] or list(held)
            node = held[cited[0]] if cited else None
            items.append(AnswerItem(written.name, node, 1 / (1 + place), tuple(cited)))
        return items

    def _holders(self, evidence: Sequence[PathEvidence]) -> dict[str, dict[str, EntityId]]:
        """Return, by folded name, the evidence items that hold such a node, and which node: ends before others."""
        nodes_of = {
            item.id: dict.fromkeys((*item.ends, *(node for path in item.paths for node in path.nodes)))
            for item in evidence
        }
        ids = list(dict.fromkeys(id for nodes in nodes_of.values() for id in nodes))
        folded = {node.id: normalize_name(node.name) for node in self._store.nodes(ids)}
        holders: dict[str, dict[str, EntityId]] = {}
        for item, nodes in nodes_of.items():
            for node in nodes:
                holders.setdefault(folded[node], {}).setdefault(item, node)
        return holders


def _united(answers: Sequence[WrittenAnswer], drafts: Sequence[str]) -> list[WrittenAnswer]:
    """Put drafts beside answers, the first of each first; of one name the answer stays, for its citations."""
    cited = {normalize_name(answer.name): answer for answer in reversed(answers)}
    added = [WrittenAnswer(draft) for draft in drafts]
    united: dict[str, WrittenAnswer] = {}
    for one in (*answers[:1], *added[:1], *answers[1:], *added[1:]):
        name = normalize_name(one.name)
        united.setdefault(name, cited.get(name, one))
    return list(united.values())
