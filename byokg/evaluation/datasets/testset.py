"""Questions generated from any graph: sampled patterns, put into words, with gold answers returned by a query.

No language model is needed; `rewrite` can use one to vary the wording. `Sampler` draws patterns (`Kind`) so that
every relation and every kind of question gets its share, `byokg.evaluation.datasets.phrasing` words each in two ways,
and `write_testset` writes a folder for `dataset=folder`. The draw depends on the graph and the seed alone.

Beside the fields of `folder`, a question has:

- `query`: a path query. The variable `?answer` stands for the answers; `?value`, if there is one, for the compared
  value: a property, or a node whose name is a number or a date.
- `reduce`: operation on the rows: `ends` takes the answers as they are, `count` their number, `greatest` and `least`
  the one of the largest or smallest value, `after Y` and `before Y` those whose value is in a later or an earlier year
  than Y. `execute` does all this.

Unanswerable questions have no gold answer and stand in a file of their own, `unanswerable.jsonl`, for `byokg answer`:
every answer to them is wrong.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from byokg.errors import ConfigError, LlmUnusable
from byokg.evaluation.datasets.patterns import KINDS, Kind, Pattern, Sampler
from byokg.evaluation.datasets.sampled_graph import Triples
from byokg.files import json_line, new_folder, refuse_taken, write_json
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.llm.messages import prompt_messages
from byokg.llm.model import LanguageModel
from byokg.llm.reply_blocks import without_thought
from byokg.open import fingerprint
from byokg.prompts import PromptLibrary

_TRIES = 3000
"""Draws for one question of a kind in vain, before the graph is taken to have no more of it."""
_DEV_SHARE = 0.3
UNANSWERABLE = "unanswerable.jsonl"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class QuestionRecord:
    """One question of the set, as its line in the file."""

    id: str
    question: str
    answers: tuple[str, ...]
    answer_ids: tuple[str, ...]
    topic_entities: tuple[str, ...]
    topic_ids: tuple[str, ...]
    hops: int
    type: Kind
    split: str
    cluster: str
    query: str
    reduce: str
    relations: tuple[str, ...]
    support: Triples
    original: str = ""
    """The question before a language model rewrote it; empty if none did."""


@dataclass(frozen=True)
class Testset:
    """Generated questions with the graph, seed and settings they come from."""

    __test__ = False

    questions: tuple[QuestionRecord, ...]
    unanswerable: tuple[QuestionRecord, ...]
    seed: int
    graph: str
    checksum: str
    rewritten_by: str = ""
    """The language model that put questions into other words; empty if none did."""

    def counts(self) -> dict[str, dict[str, int]]:
        """Return how many questions there are by type and split."""
        both = (*self.questions, *self.unanswerable)
        return {
            "types": {kind: n for kind in KINDS if (n := sum(each.type == kind for each in both))},
            "splits": dict(sorted(Counter(each.split for each in both).items())),
        }


def make_testset(
    graph: ColumnarGraph,
    questions: int = 1000,
    seed: int = 0,
    kinds: Sequence[Kind] = KINDS,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Testset:
    """Draw questions, as many of each kind as the graph allows; the kinds that it has more of make up for others.

    Raises:
        ConfigError: a kind is unknown, or the graph has no question that is neither trivial nor ambiguous.
    """
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise ConfigError(f"no type of question {unknown[0]!r}; there are {', '.join(KINDS)}")
    sampler = Sampler(graph, seed)
    open_kinds = [kind for kind in KINDS if kind in kinds]
    patterns: list[Pattern] = []
    texts: set[str] = set()
    queries: set[tuple[str, str]] = set()
    have = 0
    while have < questions and open_kinds:
        for kind in tuple(open_kinds):
            for _ in range(_TRIES):
                found = sampler.pattern(kind)
                if found is None or (found.query, found.reduce) in queries:
                    continue
                new = [text for text in dict.fromkeys(found.texts) if folded(text) not in texts]
                if new:
                    new = new[: questions - have]
                    texts.update(map(folded, new))
                    queries.add((found.query, found.reduce))
                    patterns.append(replace(found, texts=tuple(new)))
                    have += len(new)
                    break
            else:
                open_kinds.remove(kind)
            on_progress(have, questions)
            if have >= questions:
                break
    if not patterns:
        raise ConfigError(
            f"no question can be made from {graph.name}: it needs nodes with names of their own, and relations "
            "between them that lead to few others"
        )
    splits = _splits(patterns, seed)
    asked = [
        each for pattern, split in zip(patterns, splits, strict=True) for each in _make_records(graph, pattern, split)
    ]
    return Testset(
        tuple(each for each in asked if each.type != "unanswerable"),
        tuple(each for each in asked if each.type == "unanswerable"),
        seed,
        graph.name,
        fingerprint(graph),
    )


def folded(text: str) -> str:
    """Return a question as it is compared with others: without case and repeated spaces."""
    return " ".join(text.casefold().split())


def _make_records(graph: ColumnarGraph, pattern: Pattern, split: str) -> Iterator[QuestionRecord]:
    topics, answers = (graph.ids(np.array(nodes, np.int64)) for nodes in (pattern.topics, pattern.answers))
    names = tuple(node.name for node in graph.nodes(answers))
    cluster = hashlib.sha256(f"{pattern.query} {pattern.reduce} {pattern.kind}".encode()).hexdigest()[:10]
    for number, text in enumerate(pattern.texts, 1):
        yield QuestionRecord(
            id=f"{pattern.kind}-{cluster}-{number}",
            question=text,
            answers=tuple(dict.fromkeys(names)) if pattern.count is None else (str(pattern.count),),
            answer_ids=tuple(answers),
            topic_entities=tuple(node.name for node in graph.nodes(topics)),
            topic_ids=tuple(topics),
            hops=pattern.hops,
            type=pattern.kind,
            split=split,
            cluster=cluster,
            query=pattern.query,
            reduce=pattern.reduce,
            relations=pattern.relations,
            support=pattern.support,
        )


def _splits(patterns: Sequence[Pattern], seed: int) -> list[str]:
    """Put patterns that rest on a common fact into one split; an edge and the way back are one fact."""
    parent = list(range(len(patterns)))

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    first: dict[tuple[str, ...], int] = {}
    for place, pattern in enumerate(patterns):
        facts = [tuple(sorted((head, tail))) for head, _, tail in pattern.support]
        for fact in facts or [(pattern.query,)]:
            parent[root(place)] = root(first.setdefault(fact, place))
    groups: dict[int, list[int]] = {}
    for place in range(len(patterns)):
        groups.setdefault(root(place), []).append(place)
    order = list(groups.values())
    chance = random.Random(seed)
    keyed = sorted((chance.random(), each) for each in order)
    splits = ["test"] * len(patterns)
    left = int(_DEV_SHARE * len(patterns))
    for _, group in keyed:
        if len(group) <= left:
            left -= len(group)
            for place in group:
                splits[place] = "dev"
    return splits


def write_testset(made: Testset, folder: str | Path, overwrite: bool = False) -> None:
    """Write the questions, their provenance, and a text with instructions: all of it, or nothing.

    Raises:
        GraphExists: `folder` exists; with `overwrite`, only a test set is replaced.
    """
    with new_folder(folder, overwrite, refuse_other) as partial:
        for name, questions in (("questions.jsonl", made.questions), (UNANSWERABLE, made.unanswerable)):
            if questions or name != UNANSWERABLE:
                (partial / name).write_bytes(b"".join(map(_line, questions)))
        about = {"kind": "byokg testset", "graph": made.graph, "graph_checksum": made.checksum, "seed": made.seed}
        rewritten = {"rewritten_by": made.rewritten_by} if made.rewritten_by else {}
        write_json(partial / MANIFEST, {**about, **rewritten, **made.counts()})
        (partial / "README.md").write_text(_readme(made), "utf-8", newline="\n")


def _line(asked: QuestionRecord) -> bytes:
    fields = asdict(asked)
    if not asked.original:
        del fields["original"]
    return json_line(fields)


def refuse_other(folder: Path, overwrite: bool) -> None:
    """Raise `GraphExists` if something is at `folder`, unless it is a test set that may be replaced."""
    refuse_taken(folder, overwrite, "a test set is", lambda place: (place / MANIFEST).is_file())


def _readme(made: Testset) -> str:
    counts = made.counts()
    rows = "\n".join(f"| {kind} | {count:,} |" for kind, count in counts["types"].items())
    splits = ", ".join(f"{split} {count:,}" for split, count in counts["splits"].items())
    changed = sum(bool(each.original) for each in (*made.questions, *made.unanswerable))
    model = (
        f"{made.rewritten_by} put {changed:,} questions into other words (before: `original`)."
        if made.rewritten_by
        else "No language model took part."
    )
    return f"""# Questions made from {Path(made.graph).name}

Made by `byokg testset` with seed {made.seed} from the graph with checksum `{made.checksum}`. {model}
Splits: {splits}; no fact behind a test question stands behind a dev question.

| type | questions |
|---|---|
{rows}

    byokg eval dataset=folder dataset.root=DIR dataset.split=test graph.path=GRAPH
    byokg answer DIR/{UNANSWERABLE} --graph GRAPH --out FILE

Each question has its gold query (`query`, what is done with its rows in `reduce`) and the triples it rests on
(`support`). Paraphrases share a `cluster`. To the questions in `{UNANSWERABLE}` the graph has no answer, so every
answer is wrong.
"""


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
