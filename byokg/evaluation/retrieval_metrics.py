"""Share of a question's needs in its evidence: its gold answers, and their support triples.

| metric | definition | range |
|---|---|---|
| `recall@k` | share of the gold answers that the first k evidence items hold | [0, 1] |
| `recall` | the same of all items | [0, 1] |
| `shown` | share of the gold answers that stood in the prompt that was answered | [0, 1] |
| `support` | share of the annotated support triples that are in the evidence | [0, 1] |
| `tokens` | tokens of graph context in the last prompt of the question, as mean and as median | 0 or more |

Evidence is ranked in order of retrieval: rounds in order, in a round the retrievers in their order, of each the best
first. An item holds the nodes and values in it, the ends of a path all at once. A failed question holds nothing and
counts. `support` counts only questions with annotated triples, `shown` only those that a language model answered,
`tokens` only those whose prompts had graph context.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from byokg.evaluation.datasets.base import Example
from byokg.evaluation.metrics import Retrieved, normalise
from byokg.llm.usage import QuestionUsage
from byokg.pipelines.context import NOTHING, line_text, shown_text
from byokg.text.names import estimate_tokens
from byokg.types import (
    INVERSE,
    AnswerItem,
    Cell,
    ComputedEvidence,
    EdgeCell,
    EntityId,
    Evidence,
    Feedback,
    NodeCell,
    NodeEvidence,
    PathCell,
    PathEvidence,
    Properties,
    RowsEvidence,
    TripleEvidence,
    Value,
)

_ANSWERING = frozenset(("answer", "subgraph", "lean", "bfs_agent", "direct"))
"""Stages of pipelines whose last call writes the answers."""


def retrieved(
    example: Example,
    evidence: Sequence[Evidence],
    tokens: int | None = None,
    nodes: Sequence[Collection[EntityId]] = (),
    prompt: str | None = None,
    answers: Sequence[AnswerItem] = (),
) -> Retrieved:
    """Return the gold answers and support triples in the evidence of one question.

    A node is a gold answer by its id; if the data set gives no ids, by being one of `nodes`, or if its own id is the
    gold name. A value that a query returned, or a property, is one if it equals the gold name.

    Args:
        example: the question with its annotations.
        evidence: in order of retrieval.
        tokens: of graph context in the last prompt; None if it had none.
        nodes: for each gold answer, the nodes of that name; read only if the data set gives no ids.
        prompt: graph context of the answering prompt (`answered_prompt`); None if no model answered.
        answers: the pipeline's answers, with citations.
    """
    golds = _golds(example, nodes)
    unknown = set() if example.answer_ids else {name for _, name in golds if name is not None}
    ranks: list[int | None] = [None] * len(golds)
    grounds = [item for item in evidence if not isinstance(item, Feedback)]
    resting = {id for answer in answers for id in answer.citations}
    cited = [False] * len(golds)
    for rank, item in enumerate(grounds, start=1):
        if None not in ranks and item.id not in resting:
            continue
        ids = {id for sought, _ in golds for id in sought}.intersection(_nodes(item))
        names = set(map(normalise, _collect_texts(item)))
        if unknown:
            names.update(unknown.intersection(map(normalise, _nodes(item))))
        for place, (sought, name) in enumerate(golds):
            if not sought.isdisjoint(ids) or name in names:
                ranks[place] = ranks[place] or rank
                cited[place] = cited[place] or item.id in resting
    shown = None
    if prompt is not None:
        said = [(name,) if name is not None else tuple(map(normalise, example.answers)) for _, name in golds]
        shown = tuple(rank is not None and _says(prompt, names) for rank, names in zip(ranks, said, strict=True))
        wrong = "\n".join(line_text(prompt, id) for answer in answers for id in answer.miscited)
        cited = [is_so or (seen and _says(wrong, each)) for is_so, seen, each in zip(cited, shown, said, strict=True)]
    wanted = dict.fromkeys(example.support)
    called = _ids_of_names(example)
    seen = {triple for item in grounds for triple in _triples(item)} if wanted else set()
    found = sum(
        any((head, relation, tail) in seen for head in called.get(h, (h,)) for tail in called.get(t, (t,)))
        for h, relation, t in wanted
    )
    return Retrieved(tuple(ranks), (found, len(wanted)) if wanted else None, tokens, shown, tuple(cited))


def context_tokens(usage: QuestionUsage, count: Callable[[str], int] = estimate_tokens) -> int | None:
    """Return the tokens of graph context in the last prompt that had any; None if no prompt had any.

    Args:
        usage: recorded calls.
        count: tokens of a text. The paper uses tiktoken's (`llm/token_count.py`).

    Source: ByoKG-RAG (arXiv:2507.04127v1), Table 4 ("#KG Tokens").
    """
    for one in reversed(usage.calls):
        prompt = "\n".join(message.text for message in one.call.messages if message.role == "user")
        text = shown_text(prompt)
        if text:
            return count(text)
    return None


def answered_prompt(usage: QuestionUsage, question: str) -> str | None:
    """Return the prompt of the model that wrote the answers, without the question; None if no model wrote any.

    Of a prompt with numbered lines of evidence, only these: examples in it are not about the graph.
    """
    if not usage.calls or usage.calls[-1].stage not in _ANSWERING:
        return None
    prompt = "\n".join(message.text for message in usage.calls[-1].call.messages if message.role != "system")
    return shown_text(prompt) or ("" if NOTHING in prompt else prompt.replace(question, " "))


def _says(text: str, names: Sequence[str]) -> bool:
    """True if a text contains one of some normalised names, as whole words."""
    words = f" {normalise.__wrapped__(text)} "
    return any(f" {name} " in words for name in names)


def _golds(example: Example, nodes: Sequence[Collection[EntityId]]) -> list[tuple[frozenset[str], str | None]]:
    """Return each distinct gold answer as the ids and the name it can be found by.

    Where a data set gives another number of ids than of names, it is not known which belong together: ids alone count.
    """
    if example.answer_ids and len(example.answer_ids) != len(example.answers):
        return [(frozenset((id,)), None) for id in dict.fromkeys(example.answer_ids)]
    ids: dict[str, set[str]] = {}
    for place, answer in enumerate(example.answers):
        known = example.answer_ids[place : place + 1] if example.answer_ids else chain(*nodes[place : place + 1])
        ids.setdefault(normalise(answer), set()).update(known)
    return [(frozenset(some), name) for name, some in ids.items()]


def _ids_of_names(example: Example) -> Mapping[str, Sequence[str]]:
    """Return the ids that the annotation gives for names, and the names themselves, which may be ids."""
    ids: dict[str, list[str]] = {}
    for names, known in ((example.topic_entities, example.topic_ids), (example.answers, example.answer_ids)):
        if len(names) == len(known):
            for name, id in zip(names, known, strict=True):
                ids.setdefault(name, [name]).append(id)
    return ids


def _nodes(item: Evidence) -> Iterator[str]:
    """Yield the ids of the nodes that an item shows."""
    if isinstance(item, PathEvidence):
        yield from item.ends
        for path in item.paths:
            yield from path.nodes
    elif isinstance(item, TripleEvidence):
        yield from (item.triple.head, item.triple.tail)
    elif isinstance(item, NodeEvidence):
        yield item.node.id
    elif isinstance(item, ComputedEvidence):
        yield from item.nodes
    elif isinstance(item, RowsEvidence):
        for cell in flat_cells(item.rows):
            if isinstance(cell, NodeCell):
                yield cell.id
            elif isinstance(cell, EdgeCell):
                yield from (cell.head, cell.tail)


def _collect_texts(item: Evidence) -> Iterator[str]:
    """Yield the names and values that an item shows."""
    properties: list[Properties] = []
    if isinstance(item, PathEvidence):
        properties = [triple.properties for path in item.paths for triple in path.triples if triple.properties]
    elif isinstance(item, TripleEvidence):
        properties = [item.triple.properties]
    elif isinstance(item, ComputedEvidence):
        yield from map(str, item.values)
    elif isinstance(item, NodeEvidence):
        yield item.node.name
        properties = [item.node.properties]
    elif isinstance(item, RowsEvidence):
        for cell in flat_cells(item.rows):
            if isinstance(cell, NodeCell):
                yield cell.name
            if isinstance(cell, NodeCell | EdgeCell):
                properties.append(cell.properties)
            else:
                yield str(cell)
    for some in properties:
        yield from map(str, some.values())


def flat_cells(cells: Iterable[Cell]) -> Iterator[NodeCell | EdgeCell | Value]:
    """Yield the nodes, relationships and values in rows, from within paths, lists and maps."""
    for cell in cells:
        if isinstance(cell, PathCell):
            yield from cell.nodes
            yield from cell.edges
        elif isinstance(cell, NodeCell | EdgeCell | bool | int | float | str):
            yield cell
        elif isinstance(cell, Mapping):
            yield from flat_cells(cell.values())
        elif cell is not None:
            yield from flat_cells(cell)


def _triples(item: Evidence) -> Iterator[tuple[str, str, str]]:
    """Yield the triples that an item shows, in stored orientation; all of a path of one hop, else its walks."""
    if isinstance(item, TripleEvidence):
        yield item.triple.head, item.triple.relation, item.triple.tail
    elif isinstance(item, PathEvidence):
        if len(item.relations) == 1:
            relation = item.relations[0].removeprefix(INVERSE)
            inverse = item.relations[0].startswith(INVERSE)
            for end in item.ends:
                yield (end, relation, item.source) if inverse else (item.source, relation, end)
        for path in item.paths:
            for triple in path.triples:
                yield triple.head, triple.relation, triple.tail
    elif isinstance(item, RowsEvidence):
        for cell in flat_cells(item.rows):
            if isinstance(cell, EdgeCell):
                yield cell.head, cell.relation, cell.tail
