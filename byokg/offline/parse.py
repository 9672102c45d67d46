"""Question parsing: content words, answer type, and syntactic links.

«The boss of the employees working on X» has three noun phrases: the employees *work on* X, and the boss is one *of*
theirs. Each link between two phrases is a hop of the question's path. A noun before `of` or after `'s` names the far
end as seen from the other phrase; a verb leads from its subject to its object. There is no tagger: English marks both
with a few words and endings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Literal

from rapidfuzz import fuzz

from byokg.offline.lexicon import SILENT, cached, english_words, load_lexicon, rule
from byokg.text.names import FUNCTION_WORDS, QUESTION_WORDS, WORD, singular, split_words
from byokg.types import Mention


@dataclass(frozen=True)
class ParserLimits:
    """Lengths and thresholds of question parsing."""

    span: int = 3
    """Words of the answer-type span."""
    object_nouns: int = 2
    """Nouns between the verb of a question and its object: `belongs to the *drug family* of X`."""
    misspelt: int = 85
    """Similarity in percent from which a question word counts as a misspelt word of a name (over 3 letters)."""


_LIMITS = ParserLimits()

REQUESTS = english_words("requests")
"""Verbs before the noun phrase of the answer in questions without a question word (`Name the capitals of …`)."""

AUXILIARIES = english_words("auxiliaries")
"""Words between a question word and its noun (`what is the language …`)."""

SHARING = english_words("sharing")
"""Words for a shared property of two things (`films with the same director`), which name no relation."""

_EMPTY = frozenset({"name", "names"})
"""Empty words before `of` (`the name of the currency of …`)."""

_SORTS = english_words("sorts")
"""Empty words before `of`, unless they are the answer type (`what type of film is …`)."""

CO = "co"
"""Prefix of a shared activity (`co-wrote`, `co-stars`)."""

_KIN: Mapping[str, str] = load_lexicon("grammar")["kin"]
"""Relatives, each of whom is a relative of a relative: a grandfather is the father of a parent."""

_IN_LAW = ([("in", False), ("law", False)], [("in", False), ("laws", False)])

_SHORT: Mapping[str, Mapping[str, str]] = load_lexicon("grammar")["short"]
"""Synonyms, without their prefix."""

_BORDERS = english_words("borders")
"""A border is shared by neighbours and is no common property."""

_PARTS = english_words("parts")
"""Words before an `of` that is no link."""

Use = Literal["", "noun", "active", "passive", "oblique"]
"""How a word ties two phrases: a noun (`the boss of X`), or a verb: `V X`, `V by X`, `V on X`."""

_PRONOUNS = english_words("pronouns")
_ONE = frozenset(("one", "ones"))
_WIDE = english_words("wide")
"""Nouns so wide that one without an article qualifies them: `date of birth`, `style of music`, `body of water`."""
_OF_NOUNS = english_words("of_nouns")
"""Prepositions that follow a noun as often as a verb: `what teams in Spain`."""
_VERBAL = frozenset(("verb", "being", "doing", "having"))
_LEADING = frozenset(("asks", "the", "other", "of"))
"""Words before the noun phrase of the answer: `which of the`, `show me all`."""
_CONJUNCTIONS = english_words("conjunctions")
_BEING = english_words("being")
_DOING = english_words("doing")
_RELATIVE = english_words("relative")
_CLOSED: Mapping[str, str] = {
    word: tag
    for tag, some in (
        ("asks", QUESTION_WORDS | _RELATIVE),
        ("whose", {"whose"}),
        ("doing", _DOING),
        ("having", english_words("having")),
        ("being", _BEING),
        ("the", english_words("determiners")),
        ("and", _CONJUNCTIONS),
        ("other", english_words("adverbs")),
        ("to", english_words("prepositions")),
        ("of", {"of"}),
    )
    for word in some
}
"""What each word of a closed class is, apart from its context."""
_PERSON = frozenset(("who", "whom"))
_THIRD = english_words("third")
"""Pronouns for an earlier phrase."""
_NAMING = english_words("naming")
"""Verbs that tie nothing further: `X's river is called what`, `what caused X's death`."""
_NAMES_KIND = (("what",), ("which",), ("how",), ("who",))
"""Words that may precede the noun of the answer."""
_ADVERBIAL = frozenset(("how", "when", "where", "why"))
_COMPOUNDING = english_words("compounding")
"""Nouns in s that stand before others: `which sports team members`."""
_PARTICIPLES = english_words("participles")
"""Participles that do not end in `ed`."""


@dataclass(frozen=True)
class Role:
    """Syntactic role of a word: its link of the phrase nearer to the mention with the one further off."""

    use: Use = ""
    outward: bool = True
    """For a noun, True if it names the outward end; for a verb, True if its subject is the nearer."""


NO_ROLE = Role()
"""A word that ties nothing."""


@dataclass(frozen=True)
class _Clauses:
    """The noun phrases of a question, tied together."""

    links: int
    """Ties from one noun phrase to the next."""
    ties: tuple[Role, ...]
    """(W,) for each word."""


@dataclass(frozen=True)
class ParsedQuestion:
    """A question as the path scorer sees it.

    `answer_type_span` and `orders` hold positions in `words`. The same words are ordered in up to three ways, each a
    guess at the distance of a word's hop from the topic entity: by distance in the text; first leftwards then
    rightwards; first rightwards then leftwards.
    """

    words: tuple[str, ...]
    """Casefolded words of the question, W of them."""
    masked: tuple[bool, ...]
    """(W,) True for words of a mention."""
    wh_word: str
    """The question word, or empty."""
    answer_type_span: tuple[int, ...]
    """The noun phrase that names the kind of answer (`which *languages*`), at most three words."""
    orders: tuple[tuple[int, ...], ...]
    """Body words from near the topic entity to far."""
    shares: bool = False
    """True for a shared property of two things (`the same`, `also`)."""
    links: int = 0
    """Ties from one noun phrase to the next (`the *capital of* …`, `employees *working on* …`), each a hop."""
    roles: tuple[Role, ...] = ()
    """(W,) how each word ties phrases."""
    intermediate_nouns: tuple[int, ...] = ()
    """Nouns outside mentions that are not the answer type: intermediate phrases."""
    head_nouns: tuple[int, ...] = ()
    """Head nouns of the answer without a question word, or with a name in front: `*suppliers* from X`,
    `which X *players*`."""
    empty: tuple[int, ...] = ()
    """Empty words in their context: `the *name* of X`, `which *type* of music`."""

    @property
    def most_hops(self) -> int:
        """Return the most hops that it may ask for: one at least."""
        return max(1, self.links)

    @property
    def unmasked(self) -> tuple[str, ...]:
        """Return the words outside mentions."""
        return tuple(word for word, hidden in zip(self.words, self.masked, strict=True) if not hidden)

    @property
    def content_tokens(self) -> tuple[int, ...]:
        """Return the places of content words, outside mentions."""
        silent = SILENT | REQUESTS
        return tuple(
            place
            for place, (word, hidden) in enumerate(zip(self.words, self.masked, strict=True))
            if not hidden and word not in silent and place not in self.empty
        )


def parse_question(
    text: str,
    mentions: Sequence[Mention],
    names: Collection[str] = (),
    known: Callable[[str], bool] | None = None,
    mention_types: Callable[[], Collection[str]] = tuple,
) -> ParsedQuestion:
    """Parse a question.

    Args:
        text: the question.
        mentions: pieces of it that name topic entities; those with a position are masked.
        names: names of topic entities that do not stand in the text as they are; words resembling theirs
            are masked.
        known: True if the graph has a relation for a word; a relative (`grandmother`) without one is parsed as a
            relative's relative (`mother of a parent`). None leaves words as they are.
        mention_types: returns the types of the mentions (`region`); called only if one may stand before its
            mention (`the region of Western Asia`), and then masked with it, since it is no hop.
    """
    words, masked = _masked_words(text, mentions, names, known)
    tags = _tags(words, masked)
    for position in _own_kind(words, tags, mention_types):
        masked[position], tags[position] = True, "mention"
    return _parsed(words, tuple(masked), tuple(tags), len(mentions))


@cached(1 << 8)
def _parsed(words: tuple[str, ...], masked: tuple[bool, ...], named: tuple[str, ...], mentions: int) -> ParsedQuestion:
    tied = _clauses(words, tags := list(named))
    asks, focus = _focus(words, masked, tags)
    sharing = [position for position in range(len(words)) if not masked[position] and _shares(words, position)]
    empty = {at for at in range(len(words) - 1) if _says_nothing(words, at, masked)}
    skipped = {*sharing, *empty, *(at for at, hidden in enumerate(masked) if hidden)}
    silent = SILENT
    content = [at for at, word in enumerate(words) if word not in silent and at not in skipped]
    focus = [position for position in focus if position not in empty]
    body = [position for position in content if position not in focus]
    asked_of = not {"do", "does", "did"}.isdisjoint(words)  # «what other books did X write» are not others than X
    shares = any(words[position] != "also" or mentions < 2 for position in sharing)
    links = tied.links + (not asks and bool(focus))  # «is X's child a boy or a girl» asks for something of the child's
    together = (shares and not asked_of) or any(word == CO and not masked[at] for at, word in enumerate(words[:-1]))
    return ParsedQuestion(
        words=words,
        masked=masked,
        wh_word=asks,
        answer_type_span=tuple(focus),
        orders=_orders(body, [position for position, hidden in enumerate(masked) if hidden], len(words)),
        shares=shares,
        links=max(2, links) if together and mentions < 2 else links,
        roles=tied.ties,
        intermediate_nouns=tuple(place for place, tag in enumerate(tags) if tag == "noun" and place not in focus),
        head_nouns=() if focus else _headed(tags),
        empty=tuple(sorted(empty)),
    )


def _masked_words(
    text: str, mentions: Sequence[Mention], names: Collection[str], known: Callable[[str], bool] | None
) -> tuple[tuple[str, ...], list[bool]]:
    """Return the words of a question, and a mask of those of mentions; arguments as for `parse_question`."""
    spans = list(WORD.finditer(text))
    placed = [mention for mention in mentions if mention.start >= 0]
    words = _does(tuple(span.group().casefold() for span in spans))
    masked = [any(one.start <= span.start() < one.end for one in placed) for span in spans[: len(words)]]
    if known is not None:
        words, masked = _relatives(words, masked, known)
    parts = {part for name in names for part in split_words(name)} - FUNCTION_WORDS
    for position, word in enumerate(words):
        if word not in SILENT:
            misspelt = len(word) > 3 and any(fuzz.ratio(word, part) >= _LIMITS.misspelt for part in parts)
            masked[position] |= word in parts or misspelt
    return words, masked


@rule("relatives of relatives", "who is the grandfather of {Tom}", lambda words, masked, known: (words, masked))
def _relatives(
    words: tuple[str, ...], masked: list[bool], known: Callable[[str], bool]
) -> tuple[tuple[str, ...], list[bool]]:
    """Read relatives that the graph has no relation for as relatives of relatives that it has one for.

    Before `of` the nearer one comes last (`the mother of the parent of X`), so does it before a name or `did` (`which
    grandchildren did X have`); after `'s` it comes first (`X's parent's mother`).
    """
    words, masked = _in_law(*_siblings(words, masked), known)
    read: list[tuple[str, bool]] = []
    for place, (word, hidden) in enumerate(zip(words, masked, strict=True)):
        parts = [] if hidden else _parts(_relative(word), known)
        if len(parts) < 2:
            read.append((word, hidden))
            continue
        while read and read[-1] == ("great", False) and _relative(word).startswith("grand"):
            read.pop()
            parts = [*parts, parts[-1]]
        named = masked[place + 1 : place + 2] == [True]
        tie = "of" if named or words[place + 1 : place + 2] in (("of",), *((each,) for each in _DOING)) else "s"
        if place and masked[place - 1]:  # X grandmother
            read.append(("s", False))
        for part in parts if tie == "of" else reversed(parts):
            read += [(part, False), (tie, False)]
        if not named:
            read.pop()
    return tuple(word for word, _ in read), [hidden for _, hidden in read]


@rule("relatives by marriage", "who is the mother in law of {Tom}", lambda words, masked, known: (words, masked))
def _in_law(
    words: tuple[str, ...], masked: list[bool], known: Callable[[str], bool]
) -> tuple[tuple[str, ...], list[bool]]:
    """Join `mother in law` into one word, if the graph has a relation for spouses and none for it."""
    read = list(zip(words, masked, strict=True))
    for place in reversed(range(1, len(read) - 1)):
        law = read[place : place + 2]
        if law not in _IN_LAW or not known("spouse") or known("law"):
            continue
        relative = f"{_relative(read[place - 1][0])}-in-law"
        if relative in _KIN:
            pair = place > 2 and read[place - 2][0] in _CONJUNCTIONS  # sons- and daughters-in-law
            read[place - 3 if pair else place - 1 : place + 2] = [(relative, False)]
        elif law[-1][0] == "laws":
            read[place : place + 2] = [("parent-in-law", False)]
    return tuple(word for word, _ in read), [hidden for _, hidden in read]


@rule("brothers and sisters", "who are the brothers and sisters of {Tom}", lambda words, masked: (words, masked))
def _siblings(words: tuple[str, ...], masked: list[bool]) -> tuple[tuple[str, ...], list[bool]]:
    """Read `brothers and sisters` as one word."""
    for place in range(len(words) - 2):
        pair = {singular(words[place]), singular(words[place + 2])}
        if pair == {"brother", "sister"} and words[place + 1] in _CONJUNCTIONS:
            rest = slice(place + 3, None)
            return (*words[:place], "siblings", *words[rest]), [*masked[: place + 1], *masked[rest]]
    return words, masked


def has_unknown_relative(parsed: ParsedQuestion, known: Callable[[str], bool]) -> bool:
    """True if a question names a relative without a relation in the graph; see `parse_question`."""
    spoken = {_relative(word) for word in parsed.unmasked}
    return any(word in _KIN and not known(word) for word in spoken)


def _relative(word: str) -> str:
    """Return a word for a relative as the words for relatives of relatives are written: `grandkids`, `grandchild`."""
    word = singular(word)
    for start, others in _SHORT.items():
        if word.startswith(start) and word[len(start) :] in others:
            return start + others[word[len(start) :]]
    return word


def _parts(word: str, known: Callable[[str], bool]) -> list[str]:
    """Return the relatives, each of the next, that define a relative: itself, if the graph has a relation for it."""
    if word not in _KIN or known(word):
        return [word]
    parts = [part for relative in _KIN[word].split() for part in _parts(relative, known)]
    return parts if all(map(known, parts)) else [word]


@rule("type of a mention", "what is the population of the city of {Paris}", lambda words, tags, mention_types: [])
def _own_kind(words: Sequence[str], tags: Sequence[str], mention_types: Callable[[], Collection[str]]) -> list[int]:
    """Find the words that only name a mention's type: `the UN region` of Western Asia, `the city` of Paris.

    An article before them and no question word (`what is the region of …`) separate them from the answer type.
    """
    found: list[int] = []
    for place in range(2, len(words) - 1):
        last = place - 1
        if tags[place] != "of" or tags[place + 1] != "mention" or tags[last] != "noun":
            continue
        first = last
        while first > 0 and tags[first - 1] == "noun":
            first -= 1
        said = first > 1 and tags[first - 1] == "the" and tags[first - 2] not in ("asks", "being", "who", "other")
        if said and singular(words[last]) in mention_types():
            found += range(first, last + 1)
    return found


@rule("shared property", "which films have the same director as {Heat}", lambda words, position: False)
def _shares(words: Sequence[str], position: int) -> bool:
    """True if a word marks a shared property, as `same`, and `other` in `which other films`."""
    word = words[position]
    if word in SHARING and _BORDERS.intersection(words[position + 1 : position + 4]):
        return False
    if word == "also" and words[max(0, position - 1)] == "see":  # the relation of that name
        return False
    return word in SHARING or (word in ("other", "others") and position > 0 and words[position - 1] in QUESTION_WORDS)


@rule("empty noun", "what is the name of the currency of {Peru}", lambda words, position, masked: False)
def _says_nothing(words: Sequence[str], position: int, masked: Sequence[bool]) -> bool:
    """True if a word before `of` adds nothing to the next noun: `the name of the currency`, `which type of music`.

    Only in `what type of film is Alien`, with a name after the verb, it is the answer type.
    """
    if words[position + 1] != "of" or masked[position]:
        return False
    if words[position] in _EMPTY:
        return True
    verbs = [place for place in range(position + 2, len(words)) if words[place] in _BEING and not masked[place]]
    after = verbs[0] + 1 if verbs else len(words)
    after += words[after : after + 1] == ("the",)
    return words[position] in _SORTS and not any(masked[after : after + 1])


@rule("profession", "what does {Tom} do for a living", tuple)
def _does(words: Sequence[str]) -> tuple[str, ...]:
    """Return the noun for `what does X do (for a living)`."""
    asked = list(words)
    until = len(asked)
    if asked[-3:] == ["for", "a", "living"] or asked[-2:] == ["for", "work"]:
        until = len(asked) - (3 if asked[-1] == "living" else 2)
    does = until and asked[until - 1] == "do" and "what" in asked[: until - 1]
    return (*asked[: until - 1], "profession") if does else tuple(asked)


def _focus(words: Sequence[str], masked: Sequence[bool], tags: Sequence[str]) -> tuple[str, list[int]]:
    """Find the question word and the noun phrase after it, which ends before a verb: `employees skilled in …`."""
    told_of = {"whose", "who", "whom"}  # name the disease whose symptom
    if words[:1] and words[0] in REQUESTS:
        told_of.add("which")
    asking = [
        start
        for start, word in enumerate(words)
        if word in QUESTION_WORDS
        and not masked[start]
        and not (word in told_of and tags[start] in ("whose", "who") and tags[start - 1 : start] == ["noun"])
    ]
    asking = asking or [start for start, word in enumerate(words) if word in REQUESTS and not masked[start]]
    if not asking:
        return "", _choice(words, tags)
    start = asking[0]
    word = words[start]
    position = start + 1
    position += word in REQUESTS and words[position : position + 1] in (("me",), ("us",))
    while position < len(words) and words[position] in AUXILIARIES and not masked[position]:
        position += 1
    if words[start + 1 : start + 2] == ("of",) and words[position - 1] == "of":  # which of our customers
        position += position < len(words) and _CLOSED.get(words[position]) == "the"
    copula = position > start + 1 and words[start + 1] not in ("do", "does", "did")
    does = word == "what" and position > start + 1 and not copula  # «what did the composer of X win»
    if does or word in ("when", "where", "why") or (word in ("who", "whom") and not copula):
        return word, []
    if position + 1 < len(words) and words[position] in _SORTS and _says_nothing(words, position, masked):
        position += 2
    focus: list[int] = []
    at_once = (start + 1,) if word in ("what", "who") else ()  # «what treats X»
    while (
        position < len(words)
        and len(focus) < _LIMITS.span
        and not masked[position]
        and words[position] not in FUNCTION_WORDS
        and words[position] not in QUESTION_WORDS
        and not (
            (focus or position in at_once)
            and tags[position] == "verb"
            and (tags[position + 1 : position + 2] != ["noun"] or _between_plurals(words, position))
        )
    ):
        if not _shares(words, position):
            focus.append(position)
        position += 1
    return word, focus


@rule("head noun without a question word", "suppliers from {Peru}", lambda tags: ())
def _headed(tags: Sequence[str]) -> tuple[int, ...]:
    """Return the nouns of the first noun phrase, which end it; none after a verb."""
    phrases = _noun_phrases(tags)
    first, last = next(iter(phrases), (0, 0))
    owned = tags[last : last + 1] == ["own"] and tags[0] in ("asks", "who") and tags[1:2] == ["being"]
    if set(tags[:first]) - _LEADING - ({"who", "being"} if owned else set()):
        return ()
    if owned:  # what is X's newest product
        chain = takewhile(lambda pair: tags[pair[0][1] : pair[1][0]] == ["own"], pairwise(phrases))
        first, last = next(reversed([pair[1] for pair in chain]), (first, last))
    if tags[last - 1 : last + 2] == ["mention", "verb", "noun"]:  # X certified suppliers
        return tuple(takewhile(lambda place: tags[place] == "noun", range(last + 1, len(tags))))
    nouns = takewhile(lambda place: tags[place] == "noun", range(last - 1, first - 1, -1))
    return tuple(reversed(list(nouns)))


@rule("choice of types", "is {Tom}'s child a boy or a girl", lambda words, tags: [])
def _choice(words: Sequence[str], tags: Sequence[str]) -> list[int]:
    """Find the kinds between which a question leaves the choice: `is X's child a boy or a girl`."""
    if len(words) < 6 or tags[0] != "being" or words[-3:-1] not in (("or", "a"), ("or", "an")):
        return []
    places = [len(words) - 4, len(words) - 1]
    article = words[len(words) - 5] in ("a", "an")
    return places if article and all(tags[place] == "noun" for place in places) else []


def _orders(body: Sequence[int], topic: Sequence[int], count: int) -> tuple[tuple[int, ...], ...]:
    first = topic[0] if topic else count
    left = [position for position in reversed(body) if position < first]
    right = [position for position in body if position >= first]

    def distance(position: int) -> float:
        nearest = min((abs(position - other) for other in topic), default=count - position)
        return nearest - 0.1 * (position > first)  # of two equally near words, the one after the topic first

    orders = [tuple(sorted(body, key=distance)), tuple(left + right), tuple(right + left)]
    return tuple(dict.fromkeys(orders))


def _clauses(words: Sequence[str], tags: Sequence[str]) -> _Clauses:
    """Tie the noun phrases of a question together: its words, and what each is."""
    empty = _EMPTY | _PARTS
    phrases = _noun_phrases(tags)
    if not phrases:
        return _Clauses(0, (NO_ROLE,) * len(words))
    topics = [place for place, tag in enumerate(tags) if tag == "mention"]
    ties = [NO_ROLE] * len(words)
    links = 0
    for (first, last), (start, end) in zip(phrases, [*phrases[1:], (len(words), len(words))], strict=True):
        between = range(last, start)
        said = [tags[place] for place in between]
        noun = tags[last - 1] == "noun"
        outward = _nearer_left(topics, last, start)
        if start < len(words) and _tied(words, tags, last, start, noun, empty):
            links += 1
        roles = [(first, last, not outward)] if "of" in said and noun and words[last - 1] not in empty else []
        roles += [(start, end, outward)] if "own" in said else []
        roles += [(first, last, outward)] if tags[first - 1 : first] == ["whose"] else []
        for begin, until, way in roles:
            for place in range(begin, until):
                ties[place] = Role("noun", way) if tags[place] == "noun" else NO_ROLE
        for place in between:
            if tags[place] == "verb":
                tie = _verb(words, tags, place, outward)
                done_to = tie.use == "active" and tags[first - 1 : first] == ["being"] and words[place][-3:] != "ing"
                ties[place] = Role("active", False) if done_to else tie  # how often is X cited
    for place in range(phrases[0][0]):  # who reports to X
        if tags[place] == "verb":
            ties[place] = _verb(words, tags, place, False)
    return _Clauses(links + _asked(words, tags, phrases), tuple(ties))


@rule("verb of the question", "who wrote {Heat}", lambda words, tags, phrases: False)
def _asked(words: Sequence[str], tags: Sequence[str], phrases: Sequence[tuple[int, int]]) -> bool:
    """True if the question's own verb links the answer to a phrase: `who wrote`, `when was … born`.

    Question words may follow: `the films of X were made by whom`, `given the ship that X built, what does it carry`.
    """
    if tags[0] not in ("who", "asks") and tags[:2] != ["to", "asks"]:
        return _asked_last(words, tags, phrases)
    head = tags[: phrases[0][0]]
    if "verb" in head:
        return True
    if "verb" not in tags[phrases[-1][1] :]:
        return False
    if "doing" in head:
        return True
    second = tags[phrases[0][1] : phrases[1][0]] if len(phrases) > 1 else []
    relative = tags.index("who", 1) if "who" in tags[1:] else 0
    if relative:  # where was the artist that won X born
        return "being" in head and tags[relative:].count("verb") > 1
    return "being" in head or "being" in second or words[0] in _ADVERBIAL


@rule("question word at the end", "the films of {Tom} were made by whom", lambda words, tags, phrases: False)
def _asked_last(words: Sequence[str], tags: Sequence[str], phrases: Sequence[tuple[int, int]]) -> bool:
    """True if the answer's phrase follows its link, and is not linked yet.

    `The films of X were made by whom`, `given the ship that X built, what does it carry`, `name the port it sails to`.
    """
    asking = next((place for place, word in enumerate(words) if tags[place] == "asks" and word != "that"), len(tags))
    before = max((end for _, end in phrases if end <= asking), default=0)
    said = [place for place in range(before, asking) if tags[place] in ("verb", "to")]
    behind = any(start > asking for start, _ in phrases)
    if said and behind and tags[before - 1] != "mention":  # a tie between two phrases
        return False
    they = [place for place, tag in enumerate(tags) if tag == "they" and words[place] in _THIRD]
    if they:
        after = [tag for tag in tags[they[-1] + 1 :] if tag != "doing"]
        return after[:1] == ["verb"] and not any(start > they[-1] for start, _ in phrases)
    if "doing" in tags[asking:] and "verb" in tags[phrases[-1][1] :]:
        return True
    if asking == len(tags) or not _VERBAL.isdisjoint(tags[asking:]) or (words[asking] == "which" and not behind):
        return False
    return any(words[place] not in _NAMING for place in said)


def _verb(words: Sequence[str], tags: Sequence[str], place: int, outward: bool) -> Role:
    """Return the role of a verb, by the word after it."""
    after = words[place + 1] if tags[place + 1 : place + 2] == ["to"] else ""
    return Role("passive" if after == "by" else "oblique" if after else "active", outward)


def _nearer_left(topics: Sequence[int], last: int, start: int) -> bool:
    """True if the mention nearest to a link stands before it; also if there is none after it."""
    left = [last - topic for topic in topics if topic < last]
    right = [topic - start for topic in topics if topic >= start]
    return not right or (bool(left) and min(left) < min(right))


def _tied(words: Sequence[str], tags: Sequence[str], last: int, start: int, noun: bool, empty: frozenset[str]) -> bool:
    """True if the words between two phrases link them."""
    said = tags[last:start]
    if "and" in said or not said:
        return False
    if said[:2] == ["who", "being"] and set(said[2:]) <= {"the"} and noun:  # things that are parts of X
        return False
    if "own" in said:
        return tags[start] == "noun"
    if not noun or ("of" in said and (words[last - 1] in empty or _compound(words, tags, last, start))):
        return False
    if "for" in words[last:start] and said == ["to"] and tags[start] == "mention":  # the script for X is X's own
        return False
    if words[last] == "to" and "from" in words[max(0, last - _LIMITS.span) : last]:  # from source to end
        return False
    return any(tag in ("of", "to", "verb", "who", "having", "doing") for tag in said)


@rule("compound of two nouns", "what is the place of birth of {Tom}", lambda words, tags, last, start: False)
def _compound(words: Sequence[str], tags: Sequence[str], last: int, start: int) -> bool:
    """True if two nouns form a compound: `place of birth`, whose second has no article."""
    return words[last - 1] in _WIDE and start == last + 1 and tags[start] == "noun" and not words[start].endswith("s")


def _tags(words: Sequence[str], masked: Sequence[bool]) -> list[str]:
    """Name what each word is."""
    tags: list[str] = []
    doing = False
    for place, word in enumerate(words):
        tag = "mention" if masked[place] else _closed(words, place, tags, doing)
        if not tag:
            tag = "verb" if _is_verb(word, tags, doing) else "noun"
        doing = tag == "doing" or (doing and tag != "verb")
        tags.append(tag)
    for verb in (_joining_verb(words, tags), _only_verb(words, tags), _helped_verb(words, tags)):
        if verb is not None:
            tags[verb] = "verb"
    return tags


def _closed(words: Sequence[str], place: int, tags: Sequence[str], doing: bool) -> str:
    """Name a word of a closed class; "" for any other word."""
    word, before, tag = words[place], tags[-1] if tags else "", _CLOSED.get(words[place], "")
    if word == "s" and before in ("mention", "noun"):
        return "own"
    if word in _PRONOUNS and tag != "to" and ((doing and before == "doing") or (before == "who" and len(tags) > 1)):
        return "they"
    if word in _ONE and before == "the" and words[place - 1] == "the":  # the one with X
        return "noun"
    if word in _RELATIVE and (before in ("noun", "mention") or (word in _PERSON and not tags)):
        return "who"
    if place == 0 and word in ("this", "these", "those"):
        tag = ""
    return tag or ("other" if word in FUNCTION_WORDS or (word in REQUESTS and "noun" not in tags) else "")


@rule("verb without an ending", "which rivers flow through {Paris}", lambda words, tags: None)
def _only_verb(words: Sequence[str], tags: Sequence[str]) -> int | None:
    """Return the place of the verb of a question that seems to have none: `which rivers flow through X`.

    It is the last word of the answer's phrase, before a preposition or a name, and agrees with the noun before it:
    `the rivers flow`, `the river flows`. Without a noun it ends in s: `what treats X`.
    """
    asking = next((place for place, tag in enumerate(tags) if tag == "asks"), len(tags))
    clause = next((place for place in range(asking, len(tags)) if tags[place] == "who"), len(tags))
    if not _VERBAL.isdisjoint(tags[:clause]) or words[asking : asking + 1] not in _NAMES_KIND:
        return None
    first = asking + 1 + (words[asking + 1 : asking + 2] in (("many",), ("much",)))
    last = next((place for place in range(first, len(tags)) if tags[place] != "noun"), len(tags)) - 1
    if last < first or tags[last + 1 : last + 2] not in (["to"], ["mention"], ["the"]):
        return None
    rest = tags[last + 1 : clause]
    if (
        "mention" in tags[last + 1 :]
        and rest[: (*rest, "mention").index("mention")].count("noun") > _LIMITS.object_nouns
    ):
        return None
    third, of_noun = words[last].endswith("s"), words[last + 1] in _OF_NOUNS
    if first == last:
        acts = third or (words[last].endswith("ed") and words[last] not in _NAMING)
        return last if acts and words[asking] in ("what", "who") and not of_noun else None
    nouns = [word.endswith("s") for word in words[first:last]]
    several = nouns[-1] and not third and (words[asking] != "what" or not of_noun)
    return last if several or (third and not any(nouns) and not of_noun) else None


@rule("verb between plurals", "which products contain parts of {X}", lambda words, tags: None)
def _joining_verb(words: Sequence[str], tags: Sequence[str]) -> int | None:
    """Return the place of a verb between the answer's noun and another: `which products contain parts of X`."""
    asking = next((place for place, tag in enumerate(tags) if tag == "asks"), len(tags))
    if words[asking : asking + 1] not in _NAMES_KIND:
        return None
    for place in range(asking + 2, len(tags) - 1):
        if set(tags[place - 1 : place + 2]) == {"noun"} and _between_plurals(words, place):
            return place
    return None


@rule("plural on both sides", "which products contain parts of {X}", lambda words, place: False)
def _between_plurals(words: Sequence[str], place: int) -> bool:
    """True if a word that is no plural stands between two: `products contain parts`, not `sports team members`."""
    before, word, after = (*words[max(0, place - 1) : place + 2], "", "")[:3]
    several = before.endswith("s") and not before.endswith("ss") and before not in _COMPOUNDING
    return several and after.endswith("s") and not word.endswith("s")


@rule("verb at the end", "when did {Tom}'s son die", lambda words, tags: None)
def _helped_verb(words: Sequence[str], tags: Sequence[str]) -> int | None:
    """Return the place of a verb with `did`, if only its final place reveals it: `when did X's son die`."""
    helps = [place for place, tag in enumerate(tags) if tag == "doing"]
    helping = helps[0] if len(helps) == 1 else -1
    last = len(tags) - 1
    while last > 0 and tags[last] in ("to", "other"):
        last -= 1
    follows = 0 <= helping < last - 1 and tags[last - 1] in ("noun", "mention")
    if not follows or tags[last] != "noun" or words[last].endswith("s"):
        return None
    found = any(tags[place] == "verb" and not _inflected(words[place]) for place in range(helping, last))
    return None if found else last


def _inflected(word: str) -> bool:
    return word.endswith(("ing", "ed")) or word in _PARTICIPLES


def _is_verb(word: str, tags: Sequence[str], doing: bool) -> bool:
    """True if a content word is a verb, by its context and its ending."""
    before = tags[-1] if tags else ""
    ending = _inflected(word)
    if before == "mention":
        subject = next((tag for tag in reversed(tags) if tag != "mention"), "")
        return doing or ending or subject == "who"
    if before == "they":
        return True
    if before == "noun":
        return ending
    if before == "being":
        return ending and (not word.endswith("ing") or tags[-2:-1] == ["who"])
    if before == "who":
        return ending or len(tags) == 1 or "noun" in tags
    return before in ("and", "having") and ending


def _noun_phrases(tags: Sequence[str]) -> list[tuple[int, int]]:
    """Return where each run of nouns and mentions begins and ends."""
    found: list[tuple[int, int]] = []
    for place, tag in enumerate(tags):
        if tag in ("noun", "mention"):
            if found and found[-1][1] == place:
                found[-1] = (found[-1][0], place + 1)
            else:
                found.append((place, place + 1))
    return found
