"""Lexical features of relation labels: tokens, argument direction, synonyms."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from byokg.text.names import FUNCTION_WORDS, singular

if TYPE_CHECKING:
    from byokg.graph.store import GraphStore


@dataclass(frozen=True)
class LabelLimits:
    """Lengths in relation labels."""

    verb: int = 3
    """Letters of an inflected verb too short to be distinctive: `has`."""
    antonym: int = 5
    """Common first letters of a word and its antonym without prefix: `indication`, `contraindicated`."""
    heads: int = 48
    """Heads of each relation that are sampled for their incoming relations."""


_LIMITS = LabelLimits()

_NOT_ACTING = frozenset(
    "order number member chapter center centre river water letter paper chapter offer color".split()
)
"""Words that only end like those for people who do something."""


def is_agent_noun(word: str) -> bool:
    """True for an agent noun: `manager`, `author`."""
    return len(word) > 4 and word.endswith(("er", "or", "ist", "ian")) and word not in _NOT_ACTING


def leading_verb(words: Sequence[str]) -> str:
    """Return the leading verb of a relation label (`plays_in_club` -> `play`), or "".

    >>> [leading_verb(label.split()) for label in ("plays in club", "is aged", "played by")]
    ['play', '', '']
    """
    first = words[0]
    return singular(first) if len(first) > _LIMITS.verb and first.endswith("s") and words[-1] != "by" else ""


def agent_noun_verbs(noun: str) -> frozenset[str]:
    """Return candidate verb stems of an agent noun (`players` -> `play`); at most one is a real word.

    >>> [sorted(agent_noun_verbs(noun)) for noun in ("players", "runner", "city")]
    [['play', 'playe'], ['run', 'runn', 'runne'], []]
    """
    noun = singular(noun)
    if not is_agent_noun(noun) or not noun.endswith(("er", "or")):
        return frozenset()
    stem = noun[:-2]
    return frozenset({stem, noun[:-1], *([stem[:-1]] if stem[-1] == stem[-2] else ())})


NEGATING = ("contra", "non", "un")
"""Prefixes of antonyms."""

NEGATIONS = frozenset("not never no without cannot nor neither".split())
"""Negations."""

FORBIDDING = frozenset("must should shall may can ca could ought mustn shouldn couldn".split())
"""Modals that express a prohibition with `not`."""


def is_prohibition(words: Sequence[str]) -> bool:
    """True if a question asks for prohibited things: `should not take X`, `can't be combined with X`."""
    pairs = pairwise(words)
    return "cannot" in words or any(one in FORBIDDING and other in ("not", "never", "t") for one, other in pairs)


def antonym_relations(labels: Sequence[Sequence[str]]) -> dict[int, tuple[str, frozenset[int]]]:
    """Return antonym relations with the antonymous word, and the relations they oppose.

    >>> antonym_relations([["indication"], ["contraindicated"], ["universities"], ["sites"], ["not", "recommended"]])
    {1: ('contraindicated', frozenset({0})), 4: ('not', frozenset())}
    """
    beginning: dict[str, set[int]] = defaultdict(set)
    for number, label in enumerate(labels):
        for word in label:
            beginning[word[: _LIMITS.antonym]].add(number)
    found = dict[int, tuple[str, frozenset[int]]]()
    for number, label in enumerate(labels):
        for word in label:
            rests = (word.removeprefix(start) for start in NEGATING if word.startswith(start))
            plain = [rest[: _LIMITS.antonym] for rest in rests if len(rest) > _LIMITS.verb]
            others = frozenset().union(*(beginning.get(rest, ()) for rest in plain)) - {number}
            if others or word in NEGATIONS:
                found[number] = word, others
    return found


_TYING = frozenset("of for to in on at with from by".split())


def label_names_head(words: Sequence[str]) -> bool:
    """True if a relation label names its head: `capital of`, `is a vector for`.

    >>> [label_names_head(label.split()) for label in ("part of", "is a vector for", "belongs to the family of")]
    [True, True, False]
    """
    if words[:1] in (["is"], ["are"]) and words[1:2] in (["a"], ["an"], ["the"]):
        return words[-1] in _TYING
    verb = len(words) > 2 and words[0].endswith("s") and words[1] in _TYING
    return words[-1] == "of" and not verb


def content_words(words: Sequence[str]) -> list[str]:
    """Return the content words; all words, if there are none."""
    return [word for word in words if word not in FUNCTION_WORDS] or list(words)


def subject_verbs(store: GraphStore, labels: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[str]:
    """Return the leading verb of each relation, an activity of its heads: `plays_in_club`; empty if there is none.

    If several begin with one verb, it is no activity of heads with another class name from their incoming relations:
    with `plays_in_club` and `plays_in_league` only those are players that no `…_club` leads to.

    Args:
        store: the graph.
        labels: the words of each relation's namespace, and its own.
    """
    verbs = [leading_verb(own) for _, own in labels]
    often = Counter(filter(None, verbs))
    among = [number for number, verb in enumerate(verbs) if often[verb] > 1]
    if not among:
        return verbs
    batch, otherwise = store.sample_edges(_LIMITS.heads), set[int]()
    calls = np.array([_calls(own) for _, own in labels], np.bool_)
    doers: dict[str, list[int]] = defaultdict(list)
    for number, (_, own) in enumerate(labels):
        for verb in agent_noun_verbs(own[-1]):
            doers[verb].append(number)
    bounds = np.searchsorted(batch.relation, [(number, number + 1) for number in among])  # edges come by relation
    for number, (first, last) in zip(among, bounds.tolist(), strict=True):
        naming = calls.copy()
        naming[doers[verbs[number]]] = False
        heads = np.unique(batch.head[first:last]).astype(np.int64)
        counts = store.relation_counts(heads)
        called = np.unique(counts.origin[counts.inverse & naming[counts.relation]])
        if 2 * len(called) >= len(heads):
            otherwise.add(number)
    told = {verbs[number] for number in among if number not in otherwise}
    return ["" if number in otherwise and verb in told else verb for number, verb in enumerate(verbs)]


def _calls(own: Sequence[str]) -> bool:
    """True if a relation label names its tail: `club`, `plays in club`, not `captained by`."""
    return (
        not label_names_head(own)
        and own[-1] not in FUNCTION_WORDS
        and not own[-1].endswith("ed")
        and not leading_verb(own[-1:])
    )
