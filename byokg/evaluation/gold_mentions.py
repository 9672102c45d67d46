"""The piece of a question that names an annotated topic entity: the mention a perfect reader would hand to the linker.

Data sets annotate the node, seldom the words. So the words are looked for knowing the node's name, and what is looked
up in the graph afterwards is the words alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rapidfuzz import fuzz

from byokg.index.function_words import FUNCTION_WORDS
from byokg.index.normalize import WORD, normalize_name
from byokg.linking.literals import read_literal
from byokg.linking.reading import QUESTION_WORDS, locate
from byokg.types import Mention

MentionType = Literal[
    "exact name", "alias", "misspelt", "part of name", "other words", "literal or id", "not in question", "not in graph"
]
MENTION_TYPES: tuple[MentionType, ...] = (
    "exact name",
    "alias",
    "misspelt",
    "part of name",
    "other words",
    "literal or id",
    "not in question",
    "not in graph",
)

_LONGEST_RUN = 12
_ALIKE = 0.8
"""Similarity letter by letter, in [0, 1], from which two words, or a mention and a name, are one misspelt."""


def gold_mention(name: str, question: str) -> Mention | None:
    """Find the words of a question that name a topic entity.

    They are the name itself where it stands there (folded). Otherwise they are the run of up to 12 words most like the
    name, the words of both sorted, among the runs that either begin and end with words of the name (`obama` for Barack
    Obama; words at least 0.8 alike count as one) or are at least 0.8 like the whole name, letter by letter.

    Args:
        name: of the topic entity.
        question: its text.

    Returns:
        The mention without ids, or None where nothing in the question names the entity (`the us` for United States of
        America is not seen as naming it).
    """
    whole = locate(name, question, ())
    if whole.start >= 0:
        return whole
    spans = list(WORD.finditer(question))
    words = [normalize_name(span.group()) for span in spans]
    telling = [word not in FUNCTION_WORDS and word not in QUESTION_WORDS for word in words]
    wanted = normalize_name(name)
    parts = wanted.split(" ")
    known = [_known(word, parts) for word in words]
    best: tuple[float, int, int] | None = None
    for first in range(len(words)):
        for last in range(first, min(len(words), first + _LONGEST_RUN)):
            run = " ".join(words[first : last + 1])
            if not (known[first] and known[last]) and fuzz.ratio(run, wanted) < 100 * _ALIKE:
                continue
            alike = fuzz.token_sort_ratio(run, wanted)
            if telling[first] and telling[last] and (best is None or alike > best[0]):
                best = alike, first, last
    if best is None:
        return None
    start, end = spans[best[1]].start(), spans[best[2]].end()
    return Mention(question[start:end], start, end)


def mention_type(mention: Mention | None, name: str, aliases: Sequence[str] = ()) -> MentionType:
    """Say how a mention names an entity.

    Args:
        mention: the words, or None where there are none.
        name: of the entity in the graph.
        aliases: its other names there.

    Returns:
        The first of these that holds: `not in question`; `literal or id` (a date, year, number or identifier);
        `exact name` and `alias`, equal after folding; `part of name`, where the words of one are among those of the
        other; `misspelt`, at least 0.8 alike letter by letter; `other words`.
    """
    if mention is None:
        return "not in question"
    if read_literal(mention.text) is not None:
        return "literal or id"
    said, called = normalize_name(mention.text), normalize_name(name)
    if said == called:
        return "exact name"
    if said in map(normalize_name, aliases):
        return "alias"
    mine, theirs = set(said.split(" ")), set(called.split(" "))
    if mine <= theirs or theirs <= mine:
        return "part of name"
    if fuzz.ratio(said, called) >= 100 * _ALIKE:
        return "misspelt"
    return "other words"


def _known(word: str, parts: Sequence[str]) -> bool:
    """Tell whether a word, maybe misspelt, is one of those of a name."""
    return any(word == part or (len(word) > 3 and fuzz.ratio(word, part) >= 100 * _ALIKE) for part in parts)
