"""GraphRAFT: link, rank the executable queries, run the likeliest, and reason over their results.

`graphraft_offline_pipeline` needs no model: schema linking orders the queries. `graphraft_pipeline` lets a language
model name the entities and answer from the subgraph; any `CandidateRanker` orders the queries, and none of them lets a
model write one, so every query is executable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from byokg.errors import ConfigError, at_least, import_extra
from byokg.graph.guard.tokens import tokenise_cypher
from byokg.graph.store import GraphStore
from byokg.index.rerankers import Reranker
from byokg.linking.llm_linker import GoldEntities
from byokg.linking.parts import Budgets, Parts
from byokg.llm.decoding import ConstrainedRanker, GuidedRanker, NumberRanker, encode_prompts, load_tuned, yes_odds
from byokg.llm.messages import prompt_messages
from byokg.llm.parsing import read_answers, read_list
from byokg.llm.reply_blocks import reply_schema
from byokg.llm.shown_names import Hiding, ShownNames, question_names
from byokg.offline import MeaningRanker, MentionSpotter, build_parser_and_ranker, meaning_ranker
from byokg.pipelines.loop import Answerer, KGLinker, Loop, Stage
from byokg.retrieval.candidates import CandidateRanker, Shortlist, Templates
from byokg.retrieval.subgraph import RETRIEVER, FoundNode, SubgraphRetriever, describe_nodes, found_nodes
from byokg.text.names import estimate_tokens, is_identifier, locate, normalize_name
from byokg.types import AnswerItem, Artifacts, Context, Mention, NodeCell, Question, RowsEvidence

Ranking = Literal["numbers", "guided", "meaning"]

ENTITY_STAGE = "entities"
ANSWER_STAGE = "subgraph"

Mentions = Literal["spotted", "question"]

ReturnedAnswers = Literal["top", "all"]
"""Which results are answers: those of the likeliest query that found something, or all, likeliest first."""


class SpottedEntities:
    """Proposes the entities that came with the question, or else the mentions found in it; asks nobody.

    Args:
        spotter: finds mentions; None takes the whole question for one, to be linked with the nodes nearest to it.
    """

    def __init__(self, spotter: MentionSpotter | None) -> None:
        self._spotter = spotter

    def propose(self, question: Question, context: Context) -> Artifacts:
        """Return mentions."""
        if question.topic_ids:
            return GoldEntities().propose(question, context)
        if self._spotter is None:
            return Artifacts(mentions=(Mention(question.text, 0, len(question.text)),))
        return Artifacts(mentions=tuple(self._spotter.spot(question.text)))


class NamedEntities:
    """Lets a language model name the entities in a question: nothing else, and no schema.

    Args:
        parts: language model and prompts.
        prompt: None for instructions; `entities_prime` or `entities_mag` for the examples of the paper, or a prompt of
            your own in `prompts`.

    Source: GraphRAFT (arXiv:2504.05478), "Few-shot prompt for entity resolution".
    """

    def __init__(self, parts: Parts, prompt: str | None = None) -> None:
        self._model = parts.model
        self._prompt = parts.prompts[prompt or _INSTRUCTIONS]
        self._values = {"tasks": parts.prompts.tasks(["task_entities"])} if prompt is None else {}
        self._schema = reply_schema(parts.prompts.tags(["task_entities"])) if prompt is None else None

    def propose(self, question: Question, context: Context) -> Artifacts:
        """Return a mention of each entity that was named; a type before a colon is left out. Raises `LlmError`."""
        if question.topic_ids:
            return GoldEntities().propose(question, context)
        messages = prompt_messages(self._prompt.fill(question=question.text, **self._values))
        reply = self._model.reply(messages, stage=ENTITY_STAGE, question_id=question.id, schema=self._schema)
        known = question_names(question.text)
        if self._values:
            names = list(read_list(reply.text, "entities", shown=question.text, known=known).items)
        else:
            hiding = Hiding(known)
            parts = [part.strip().strip("\"'").strip() for part in re.split(r"[|\n]", hiding.hide(reply.text))]
            names = [hiding.restore(_TYPE.sub("", part)) for part in parts]
        return Artifacts(mentions=tuple(locate(name, question.text) for name in dict.fromkeys(names) if name))


_INSTRUCTIONS = "entities"
"""Name of the prompt without examples."""
_TYPE = re.compile(r"^(answer|institution|author|field ?of ?study|paper)\s*:\s*", re.IGNORECASE)


class RankedNodes:
    """Answers with the results of the likeliest queries, in their order, or in that of a reranker.

    Args:
        answers: selection of results.
        reranker: rates each node's text against the question; None keeps the order of the queries.

    Source: GraphRAFT (arXiv:2504.05478), "Impact of constrained decoding": answers without the second model.
    """

    def __init__(self, answers: ReturnedAnswers = "top", reranker: Reranker | None = None) -> None:
        if answers not in ("top", "all"):
            raise ConfigError(f"answers={answers} is not known; use top or all")
        self._answers = answers
        self._reranker = reranker

    def answer(self, question: Question, context: Context) -> list[AnswerItem]:
        """Return answers best first, each citing the queries that found it; nodes without a name are none."""
        items = [item for item in context.evidence if isinstance(item, RowsEvidence) and item.retriever == RETRIEVER]
        return self.from_results(question, items)

    def from_results(self, question: Question, items: Sequence[RowsEvidence]) -> list[AnswerItem]:
        """Return the answers from results of queries, best query first."""
        if self._answers == "top":
            named = (item for item in items if any(_has_name(cell) for (cell,) in item.rows))
            items = [item for item in (next(named, None),) if item is not None]
        if items and not isinstance(items[0].rows[0][0], NodeCell):
            (property,) = items[0].columns
            cited = (items[0].id,)
            of = "" if property == "count" else property
            return [AnswerItem(str(value), None, items[0].score, cited, value_of=of) for (value,) in items[0].rows]
        nodes = [node for node in found_nodes(items) if _has_name(node.cell)]
        scores = [1 / (1 + place) for place in range(len(nodes))]
        if self._reranker is not None:
            rated = self._reranker.score(question.text, [_rated_text(node) for node in nodes]).tolist()
            order = sorted(range(len(nodes)), key=lambda at: -rated[at])
            nodes, scores = [nodes[at] for at in order], [rated[at] for at in order]
        return [
            AnswerItem(node.cell.name, node.cell.id or None, score, node.evidence)
            for node, score in zip(nodes, scores, strict=True)
        ]


def _has_name(cell: object) -> bool:
    return not is_identifier(getattr(cell, "name", "")) if hasattr(cell, "name") else True


def _rated_text(node: FoundNode) -> str:
    return f"{node.cell.name} {' '.join(str(value) for value in node.cell.properties.values())}".strip()


class SubgraphReasoner:
    """Lets a language model choose the answers among the nodes that the likeliest queries found.

    It sees each node with its patterns and its data, those that several queries found first, and the number of nodes if
    some are not shown; written names of no node are left out. With `answers` as `all`, the other nodes follow.

    Args:
        parts: language model and prompts.
        nodes: nodes shown at most.
        budget_tokens: of their text.
        answers: `top` returns the model's choice alone; `all` appends the rest in the queries' order.

    Source: GraphRAFT (arXiv:2504.05478), "Finetuning LLM as local subgraph reasoner" and Figure 4.
    """

    def __init__(
        self, parts: Parts, nodes: int = 20, budget_tokens: int = 6000, answers: ReturnedAnswers = "top"
    ) -> None:
        at_least(1, "shows nothing", nodes=nodes, budget_tokens=budget_tokens)
        self._model = parts.model
        self._prompt = parts.prompts["subgraph_answer"]
        self._nodes = nodes
        self._budget_tokens = budget_tokens
        self._rest = answers == "all"

    def answer(self, question: Question, context: Context) -> list[AnswerItem]:
        """Return the model's choice in its order. Raises `LlmError`."""
        every = sorted(found_nodes(context.evidence), key=lambda node: -len(node.evidence))
        nodes = every[: self._nodes]
        if not nodes:
            return RankedNodes("all").answer(question, context)
        texts = describe_nodes(nodes, self._budget_tokens, estimate_tokens)
        more = any(item.beyond[1] for item in context.evidence if isinstance(item, RowsEvidence))
        if more or len(texts) < len(every):
            total = f"{'at least ' if more else ''}{len(every):,}"
            texts.append(f"({len(texts):,} of {total} nodes that the queries found)")
        filled = self._prompt.fill(graph_context="\n\n".join(texts), question=question.text)
        reply = self._model.reply(prompt_messages(filled), stage=ANSWER_STAGE, question_id=question.id)
        by_name: dict[str, list[FoundNode]] = {}
        for node in nodes:
            by_name.setdefault(normalize_name(node.cell.name), []).append(node)
        answers = read_answers(reply.text, known=ShownNames(node.cell.name for node in nodes))
        chosen = [node for one in answers for node in by_name.pop(normalize_name(one.name), [])]
        if self._rest:
            chosen += [node for own in by_name.values() for node in own]
        return [
            AnswerItem(node.cell.name, node.cell.id or None, 1 / (1 + place), node.evidence)
            for place, node in enumerate(chosen)
        ]


class CheckedResults:
    """Answers with the results of the query that two fine-tuned models find best: as a query, and by its results.

    The second model (`byokg train sft`, on labels of `check_prompt` with rivals) reads question, query and some
    results; its log-odds of yes are added to the first model's log-likelihood, which is the score of the evidence.

    Args:
        model: folder or name on the model hub of the second model, or model and tokenizer.
        shown: results that it sees, at most.
        device, dtype: see `ConstrainedRanker`.

    Source: GraphRAFT (arXiv:2504.05478), "Finetuning LLM as local subgraph reasoner".
    Differs: the paper's second model writes the names of the answers, and reads all nodes.
    """

    def __init__(
        self, model: str | tuple[Any, Any], shown: int = 5, device: str | None = None, dtype: str | None = None
    ) -> None:
        self._model, self._tokenizer = load_tuned(model, device, dtype) if isinstance(model, str) else model
        self._shown = shown

    def answer(self, question: Question, context: Context) -> list[AnswerItem]:
        """Return the results of the best query."""
        items = [item for item in context.evidence if isinstance(item, RowsEvidence) and item.rows]
        if len(items) > 1:
            prompts = encode_prompts(self._tokenizer, [self._prompt(question.text, item) for item in items])
            with import_extra("torch", "local", "choosing among results").inference_mode():
                odds = yes_odds(self._model, self._tokenizer, prompts).tolist()
            order = sorted(range(len(items)), key=lambda at: -(items[at].score + odds[at]))
            items = [items[at] for at in order]
        return RankedNodes("top").from_results(question, items)

    def _prompt(self, question: str, item: RowsEvidence) -> str:
        names = [cell.name if isinstance(cell, NodeCell) else str(cell) for (cell,) in item.rows]
        return check_prompt(question, outline(item.query), names[: self._shown], len(names))


def check_prompt(question: str, query: str, names: Sequence[str], count: int) -> str:
    """Return the prompt of the second model: a question, a query, and some of its results."""
    return f"Question: {question}\nQuery: {query}\nResults ({count}): {', '.join(names)}\nRight: "


def outline(query: str) -> str:
    """Return the entities and relations of a candidate query in their order: `Ann -> wrote -> genre`."""
    tokens, _ = tokenise_cypher(query.partition(" RETURN ")[0])
    keys = [token.key for token in tokens]
    kept = [at for at in range(2, len(tokens)) if keys[at - 1] == ":" and keys[at - 2] in ("NAME", "[")]
    parts = [tokens[at].text.strip('"') for at in kept]
    return " -> ".join(parts)


@dataclass(frozen=True)
class CandidateScope:
    """Extent of the candidate queries of a question.

    Args:
        hops: edges in a path at most, 1 to 3; paths through event nodes have up to three from 2 on.
        directed: keep the two directions of a relation apart; the paper does not, and here it changes little.
        queries, nodes, anchors: see `SubgraphRetriever`.
    """

    hops: int = 2
    directed: bool = False
    queries: int = 10
    nodes: int = 20
    anchors: int = 10

    def retriever(self, store: GraphStore, ranker: CandidateRanker, chosen: bool = False) -> SubgraphRetriever:
        """Return a retriever of these candidates in the order of a ranker; of all that it returns if it has `chosen`
        them."""
        templates = Templates.of(self.hops, self.directed)
        return SubgraphRetriever(store, ranker, templates, self.queries, None if chosen else self.nodes, self.anchors)


def graphraft_pipeline(
    parts: Parts,
    ranking: str | CandidateRanker = "numbers",
    shown: int = 50,
    entity_prompt: str | None = None,
    candidates: CandidateScope = CandidateScope(),
    answers: ReturnedAnswers = "top",
    answerer: str | Answerer = "model",
    budgets: Budgets = Budgets(),
) -> Loop:
    """Assemble GraphRAFT for one graph and one language model.

    The model names entities, and chooses the answers among the nodes that the likeliest queries found. It never writes
    a query: all of them exist already, and a ranker orders them. The Cypher engine of the graph runs them; without one,
    traversal replaces it.

    Args:
        parts: the shared parts; the model names entities and chooses answers.
        ranking: order of the queries that are likeliest by meaning: the model picks `numbers` from a list,
            `guided` uses masking of the server (vLLM; see `GuidedRanker`), `meaning` needs no call; or a ranker,
            such as a `ConstrainedRanker` of a local model. The folder of a model that writes plans (`byokg train sft`)
            ranks all candidates; unless `answerer` is `model`, no other language model takes part then, and
            entities are linked as by `graphraft_offline_pipeline`.
        shown: queries that it orders, those that are likeliest by meaning.
        entity_prompt: `entities_prime` or `entities_mag` names entities by examples as the paper does for STaRK; None
            by instructions.
        candidates: extent of the candidate queries.
        answers: `all` appends nodes that were not chosen, for ranking metrics.
        answerer: `model`; `ranking`, the result of the best query, without a call; or the folder of a model that
            chooses among the queries by their results (`CheckedResults`).
        budgets: of the nodes in a prompt.

    Raises:
        ConfigError: a setting is out of range.

    Source: GraphRAFT (arXiv:2504.05478), "Approach".
    Differs: without folders of models, no training is needed; the paper fine-tunes one for queries and one for answers.
    """
    by_meaning = meaning_ranker(parts.store, parts.embedder)
    chooser = _chooser(parts, ranking, shown)
    rest = answers == "all"
    planned = isinstance(chooser, ConstrainedRanker) and chooser.spelling == "plan"
    linker: KGLinker
    if planned and answerer != "model":  # no model is there that could name entities
        linker = SpottedEntities(build_parser_and_ranker(parts.store, parts.embedder, parts.entities)[0])
    else:
        linker = NamedEntities(parts, entity_prompt)
    if planned and chooser is not None:
        retriever = candidates.retriever(parts.store, chooser, chosen=True)
    else:
        ranker = by_meaning if chooser is None else Shortlist(by_meaning, chooser, shown, rest)
        retriever = candidates.retriever(parts.store, ranker, chosen=chooser is not None and not rest)
    reasoner = RankedNodes(answers) if answerer == "ranking" else answerer
    if answerer == "model":
        reasoner = SubgraphReasoner(parts, candidates.nodes, budgets.context_tokens, answers)
    elif isinstance(reasoner, str):
        reasoner = CheckedResults(_folder("answerer", reasoner, ("model", "ranking")))
    return Loop(parts.entities, [Stage(linker, (retriever,), rounds=1)], reasoner)


def _chooser(parts: Parts, ranking: str | CandidateRanker, shown: int) -> CandidateRanker | None:
    """Return the ranker that a setting names; None for that of meaning alone. Raises `ConfigError`."""
    if not isinstance(ranking, str):
        return ranking
    if ranking == "numbers":
        return NumberRanker(parts.model, shown, prompts=parts.prompts)
    if ranking == "guided":
        return GuidedRanker(parts.model)
    if ranking == "meaning":
        return None
    return ConstrainedRanker(path=_folder("ranking", ranking, get_args(Ranking)), spelling="plan")


def _folder(setting: str, value: str, others: Sequence[str]) -> str:
    """Return a folder of a fine-tuned model. Raises `ConfigError` if there is none."""
    if not Path(value).expanduser().is_dir():
        raise ConfigError(
            f"{setting}={value} is not known; use one of {', '.join(others)}, or a folder of byokg train sft"
        )
    return value


def graphraft_offline_pipeline(
    parts: Parts,
    weights: str | Path | None = None,
    mentions: Mentions = "spotted",
    candidates: CandidateScope = CandidateScope(),
    answers: ReturnedAnswers = "top",
    reranker: Reranker | None = None,
) -> Loop:
    """Assemble GraphRAFT without a language model: candidate queries, ordered by schema linking.

    The Cypher engine of the graph runs the queries; without one, traversal replaces it.

    Args:
        parts: the shared parts.
        weights: folder of `byokg fit`, to rank relation paths by; None takes the shipped weights of the embedder.
        mentions: texts to link: the mentions of the question (`spotted`), or the `question` as a whole, for which
            `linking=dense linking.top_k=2` finds the 2NN of the paper's Figure 5.
        candidates: extent of the candidate queries.
        answers, reranker: see `RankedNodes`.

    Raises:
        ConfigError: a setting is out of range, or the weights cannot be read or belong to another embedder.
    """
    if mentions not in get_args(Mentions):
        raise ConfigError(f"mentions={mentions} is not known; use spotted or question")
    spotter, scorer = build_parser_and_ranker(parts.store, parts.embedder, parts.entities, weights)
    retriever = candidates.retriever(parts.store, MeaningRanker(parts.store.relations, scorer))
    linker = SpottedEntities(spotter if mentions == "spotted" else None)
    stages = [Stage(linker, (retriever,), rounds=1)]
    return Loop(parts.entities, stages, RankedNodes(answers, reranker), translate=parts.translate)
