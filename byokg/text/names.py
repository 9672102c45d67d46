"""Folding, splitting and stemming of words; function words; token estimates; text that no encoder takes.

Word lists are English function words and hold nothing about any data set. `byokg.text.values` reads literals,
`byokg.text.dates` reads periods.

Relation labels are split into words and folded. Synonyms of everyday English words ship with the package. Aliases of
names follow general rules: Jamaica for `jamaican`, Saint Paul for `st paul`; an alias counts only if some node has it,
so a rule may return too many.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from byokg.types import EntityId, Mention

FUNCTION_WORDS = frozenset(
    "a an the of in on at by to for from with and or is are was were be been am do does did done has have had "
    "having that this these those there as into also it its their his her he she they them i you me my your we "
    "us our can could would should will may might must shall s".split()
)


_MARKS = "".join(chr(code) for code in range(0x300, 0x10000) if unicodedata.category(chr(code)).startswith("M"))
"""Combining marks: accents, and the vowel signs of many Asian scripts. Python's `\\w` leaves them out."""

WORD = re.compile(rf"[^\W_]+(?:[{_MARKS}]+[^\W_]*)*")
"""A run of letters and digits, with the marks that stand on them."""

ARTICLES = frozenset(("the", "a", "an"))


def normalize_name(text: str) -> str:
    """Fold case, accents, punctuation and a leading English article, and collapse spaces.

    Folding is idempotent. A text of punctuation alone keeps its characters, so that it stays distinct from others.

    >>> normalize_name("The  Côte-d'Ivoire")
    'cote d ivoire'
    """
    words = fold_words(text)
    return " ".join(words[leads_with_article(words) :])


def fold_words(text: str) -> list[str]:
    """Return the folded words of a text, a leading article among them; of punctuation alone, its pieces.

    >>> fold_words("The  Côte-d'Ivoire")
    ['the', 'cote', 'd', 'ivoire']
    """
    return WORD.findall(text.casefold() if text.isascii() else fold(text)) or text.split()


def leads_with_article(words: Sequence[str]) -> bool:
    """True if folded words start with an article that is not part of the name.

    Only one that no other follows, so that folding twice changes nothing and A. A. Milne keeps his initials.
    """
    return len(words) > 1 and words[0] in ARTICLES and not (len(words) > 2 and words[1] in ARTICLES)


def fold(text: str) -> str:
    """Fold case and accents; everything else stays."""
    letters = unicodedata.normalize("NFKD", text).translate(_WITHOUT_ACCENTS)
    return unicodedata.normalize("NFKC", letters.casefold())


def split_words(text: str) -> list[str]:
    """Return the runs of letters and digits with case folded; accents stay, and punctuation alone has none."""
    return [word.casefold() for word in WORD.findall(text)]


class _WithoutAccents(dict[int, str | None]):
    """A table for `str.translate`, filled with the characters that occur."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        self[code] = None if _is_accent(character) else character
        return self[code]


_WITHOUT_ACCENTS = _WithoutAccents()


def _is_accent(char: str) -> bool:
    """True if a character is a mark that people leave out.

    The classes kept make another letter: Indic nuktas and viramas, Japanese voicing, Thai and Lao vowels and tones.
    """
    combining = unicodedata.combining(char)
    return combining > 0 and not 7 <= combining <= 9 and not 84 <= combining <= 132


_IDENTIFIER = re.compile(
    r"[mg]\.[0-9a-z_]{2,}"  # Freebase MID
    r"|/[mg]/[0-9a-z_]{2,}"
    r"|[QP][1-9][0-9]{2,}"  # Wikidata
    r"|_:.+"  # RDF blank node
    r"|(?i:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"  # UUID
)


def is_identifier(text: str) -> bool:
    """True for a Freebase MID, a Wikidata id, a blank node label or a UUID.

    A node named so has no name of its own: in Freebase mostly a mediator (CVT) node, which stands for an event or a
    role between other nodes.
    """
    return _IDENTIFIER.fullmatch(text) is not None


def singular(word: str) -> str:
    """Return an English word without the ending of its plural, if it has one; some lose more, and always the same.

    >>> singular("countries"), singular("films"), singular("class"), singular("matches")
    ('country', 'film', 'class', 'match')
    """
    if word.endswith("ies") and len(word) > _STEM:
        return f"{word[:-3]}y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > _STEM - 1 else word


_SUFFIXES = frozenset(
    "s es ed d ing er ers or ors ion ions ation ations ment ments al ally ly ness ship ships y ies ied ten en "
    "n tes ted tor tors ter ters ting ance ances ence ent ant ants ive ives ress e le able ist ists ism ian "
    "ians ity ical ic ics iage ages age red ring ren rian rians ional ish ese".split()
) | {""}
"""Endings of English words: `written` and `writers` are related because they part after `writ`."""

_STEM = 4
"""Letters of a stem that need no further proof."""

_HALF = 4
"""Letters of the first half of a compound (`home|town`)."""


class Lexicon:
    """A list of words, searched for the relatives of another word.

    Args:
        words: N words, casefolded and distinct.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self._singular: dict[str, list[int]] = defaultdict(list)
        self._beginning: dict[str, list[int]] = defaultdict(list)
        self._containing: dict[str, list[int]] = defaultdict(list)
        for position, word in enumerate(self.words):
            self._singular[singular(word)].append(position)
            self._beginning[word[:3]].append(position)
            for cut in _halves(word):
                self._containing[word[cut : cut + 3]].append(position)

    def singular(self, words: Collection[str]) -> list[int]:
        """Return the places of the words whose singular is one of these, ascending."""
        return sorted(place for word in words for place in self._singular.get(word, ()))

    def related(self, word: str) -> list[int]:
        """Return the places of the words that are `related` to a word, itself among them, ascending."""
        starts = [word[:3], *(word[cut : cut + 3] for cut in _halves(word))]
        near = {place for start in starts for place in self._beginning.get(start, ())}
        near.update(self._containing.get(word[:3], ()))
        return sorted(place for place in near if self.words[place] == word or related(word, self.words[place]))


def related(word: str, other: str) -> bool:
    """True if two words share a stem, as a whole or as the second half of a compound.

    Not `snowballstemmer`, which relates neither `written` to `writers` nor `screenwriter` to either. Hits@1 of the
    offline pipeline with this function, and with equal stems of Snowball's English: MetaQA 98.3, 95.0 and 95.3 against
    98.3, 77.0 and 74.0 (300 dev questions of 1, 2 and 3 hops), atlas 37.3 both (453 dev questions), WebQSP 63.0 against
    63.3 (300 dev questions).

    >>> related("written", "writers"), related("screenwriter", "written"), related("start", "star")
    (True, True, False)
    """
    return (
        _same_stem(word, other)
        or any(_same_stem(word[cut:], other) for cut in _halves(word) if len(other) >= _STEM)
        or any(_same_stem(other[cut:], word) for cut in _halves(other) if len(word) >= _STEM)
    )


def _halves(word: str) -> range:
    """Return the possible starts of the second half of a compound."""
    return range(_HALF, len(word) - _STEM + 1)


def _same_stem(word: str, other: str) -> bool:
    """True if two words differ in English endings alone."""
    same = 0
    for here, there in zip(word, other, strict=False):
        if here != there:
            break
        same += 1
    return any(
        stem >= 3
        and word[stem:] in _SUFFIXES
        and other[stem:] in _SUFFIXES
        and (stem >= _STEM or min(len(word), len(other)) <= stem + 2)
        for stem in (same, same - 1)
    )


_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


ESTIMATE = "estimate"
"""Tokenizer of `estimate_tokens`: none, and counts mostly a little too high."""


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text without a tokenizer, as an upper bound.

    A token for every four Latin letters, for each digit, mark and line end, and 1.25 for each other character.
    Measured on rendered schemas with the tokenizers of OpenAI (cl100k, o200k), DeepSeek and Claude 2: between 2 % too
    few and 30 % too many of the largest count, up to twice the count for Cyrillic.
    """
    latin = text.encode("ascii", "ignore")
    letters = len(latin) - len(latin.translate(None, _LETTERS))
    marks = len(latin) - letters - latin.count(b" ")
    return (letters + 4 * marks + 5 * (len(text) - len(latin)) + 3) // 4


def estimated_quarters(byte: int) -> int:
    """Return what `estimate_tokens` takes a byte of UTF-8 for, in quarters of a token."""
    if byte >= 0x80:
        return 5 if byte >= 0xC0 else 0
    return 1 if byte in _LETTERS else 0 if byte == ord(" ") else 4


_FORGERY = re.compile(r"<(?=\s*[/!?|A-Za-z])|\[(?=\s*e?\d)")
"""Start of a tag, or of a citation of a line of evidence."""

_SPACE = re.compile(r"\s+")


def on_one_line(text: str, longest: int = 300) -> str:
    """Return a text of the graph as one line of a prompt: data that cannot pass for markup.

    Line ends and invisible characters become spaces; `<` at the start of a tag becomes `‹`, and `[` at the start of a
    citation `(`; text longer than `longest` characters is cut.
    """
    if len(text) > longest:
        text = f"{text[: longest - 1]}…"
    if not text.isprintable():
        text = "".join(character if character.isprintable() else " " for character in text)
    if "  " in text or text[:1] == " " or text[-1:] == " ":
        text = _SPACE.sub(" ", text).strip()
    if "<" in text or "[" in text:
        text = _FORGERY.sub(lambda found: "‹" if found[0] == "<" else "(", text)
    return text


def encodable(text: str) -> str:
    """Return a text as UTF-8 can hold it: with `?` for each half of a surrogate pair, which wrong decoding leaves."""
    return text if text.isascii() else text.encode(errors="replace").decode()


QUESTION_WORDS = frozenset("who whom whose what which when where how why".split())


def locate(name: str, text: str, ids: tuple[EntityId, ...] = ()) -> Mention:
    """Return the mention of a name: its place in the text, if it occurs there, whatever the accents."""
    spans = list(WORD.finditer(text))
    wanted = [normalize_name(word) for word in WORD.findall(name)]
    words = [normalize_name(span.group()) for span in spans]
    for first in range(len(words) - len(wanted) + 1 if wanted else 0):
        if words[first : first + len(wanted)] == wanted:
            start, end = spans[first].start(), spans[first + len(wanted) - 1].end()
            return Mention(text[start:end], start, end, ids)
    return Mention(name, ids=ids)


_CAPITALS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Word boundary within camel case."""

LABEL_PARTS = re.compile(r"[./#:]+|__+")
"""Separators between a label's namespace and its own name: `film.film.genre`, `film__film__genre`, `http://…#genre`."""


def split_label(label: str) -> str:
    """Part the words that a label joins by capitals: `directedBy` is `directed By`, `URLPath` is `URL Path`."""
    return _CAPITALS.sub(" ", label)


def normalize_label(label: str) -> str:
    """Fold a label as `normalize_name` folds a name, its words parted: `directedBy` and `DIRECTED_BY` are one."""
    return normalize_name(split_label(label))


def label_words(label: str) -> tuple[list[str], list[str]]:
    """Split a relation label into the words of its namespace and its own (`film.director.film`, `birthPlace`)."""
    local = re.split(r"[/#]", label)[-1] if "://" in label else label
    segments = [segment for segment in LABEL_PARTS.split(local) if segment]
    words = [split_words(split_label(segment)) for segment in segments]
    words = [segment for segment in words if segment] or [[label.casefold()]]
    return (words[-2] if len(words) > 1 else []), words[-1]


@lru_cache(1 << 16)
def relation_text(label: str) -> str:
    """Write a relation as words, with the last part of its namespace (`location.country.capital`: country capital)."""
    namespace, own = label_words(label)
    return " ".join((*namespace, *own))


_SYNONYMS = Path(__file__).resolve().parent.parent / "data" / "words" / "synonyms.txt"

_DOUBLING = re.compile(r"[^aeiou]*[aeiou][bdgmnprt]|(?:ad|com|per|sub)mit|enrol")
"""Verbs whose last letter is doubled: those of one short syllable, and some that are stressed on the last."""


@dataclass(frozen=True)
class SynonymSet:
    """Words for the same kind of relation as one word, in the singular."""

    alike: frozenset[str] = frozenset()
    """Words for the same end, or for the relation itself."""
    converse: frozenset[str] = frozenset()
    """Words for the other end: `parent` of `child`."""


UNRELATED = SynonymSet()


@cache
def synonyms() -> Mapping[str, SynonymSet]:
    """Return the synonyms of each everyday word, from the list that ships with the package."""
    alike: dict[str, set[str]] = defaultdict(set)
    opposite: dict[str, set[str]] = defaultdict(set)
    for line in _SYNONYMS.read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        sides = [set(map(singular, _written(side.split()))) for side in line.split("|")]
        for side, other in zip(sides, reversed(sides), strict=True):
            for word in side:
                if len(sides) == 1:
                    alike[word] |= side
                else:
                    opposite[word] |= other
    return {word: SynonymSet(frozenset(alike[word]), frozenset(opposite[word])) for word in {*alike, *opposite}}


def _written(words: Sequence[str]) -> list[str]:
    return [form for word in words for form in (verb_forms(word[:-1]) if word[-1] == "~" else [word])]


def verb_forms(verb: str) -> list[str]:
    """Return the regular forms of an English verb.

    >>> verb_forms("supply"), verb_forms("commit")
    (['supply', 'supplies', 'supplied', 'supplying'], ['commit', 'commits', 'committed', 'committing'])
    """
    if verb.endswith("e"):
        return [verb, f"{verb}s", f"{verb}d", f"{verb[:-1]}ing"]
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return [verb, f"{verb[:-1]}ies", f"{verb[:-1]}ied", f"{verb}ing"]
    stem = verb + verb[-1] if _DOUBLING.fullmatch(verb) else verb
    third = f"{verb}es" if verb.endswith(("s", "x", "ch", "sh")) else f"{verb}s"
    return [verb, third, f"{stem}ed", f"{stem}ing"]


_PLACES = Path(__file__).resolve().parent.parent / "data" / "words" / "places.txt"

_SHORT = {"st": "saint", "mt": "mount", "ft": "fort"}
"""Beginnings of names that are written in full or not."""
_LONG = {long: short for short, long in _SHORT.items()}
_WITHIN = _SHORT | {"us": "united states", "uk": "united kingdom", "ny": "new york", "la": "los angeles"}
"""Expansions of abbreviations within a longer name."""
_ABBREVIATED = frozenset(_WITHIN) | frozenset(_LONG)
TITLES = frozenset("king queen prince princess emperor empress pope president sir lord lady saint dr mr mrs ms".split())
_ALSO_A_WORD = 2
"""Letters of an abbreviation that must be written in capitals (`us`); a longer one is hardly a word of its own."""
_SHORTEST = 3
"""Letters of a word that has no other number."""
_SURELY = 7
"""Letters of a word in `-an` that is likely to be of a place in `-a`."""


@dataclass(frozen=True)
class _Places:
    """Content of `places.txt`."""

    names: Mapping[str, Sequence[str]]
    """All names of the place that a folded name is of,"""
    people: Mapping[str, Sequence[str]]
    """or a folded word for its people and things."""
    capitals: frozenset[str]
    """Folded names that must be written in capitals."""
    last: frozenset[str]
    """The last words of all these."""


@lru_cache(1)
def _places() -> _Places:
    names: dict[str, list[str]] = defaultdict(list)
    people: dict[str, list[str]] = defaultdict(list)
    capitals: set[str] = set()
    for line in _PLACES.read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        own, words = (part.strip().split(", ") for part in line.split(":"))
        for table, texts in ((names, own if len(own) > 1 else ()), (people, filter(None, words))):
            for text in texts:
                table[normalize_name(text)] += own
        capitals.update(normalize_name(name) for name in own if name.isupper() and len(name) <= _ALSO_A_WORD)
    return _Places(names, people, frozenset(capitals), frozenset(key.split()[-1] for key in (*names, *people)))


def hints(word: str) -> bool:
    """True if a folded word may end a text that has an alias, or abbreviate a part of it."""
    return word in _ABBREVIATED or word in _places().last or word.endswith(("an", "ans"))


def stands_within(word: str) -> bool:
    """True if a folded word is an abbreviation within a longer name (`st`), or has one (`saint`)."""
    return word in _ABBREVIATED


@lru_cache(1 << 12)
def other_names(text: str) -> tuple[str, ...]:
    """Return aliases of a text, most of which are in no graph.

    They are its `full_names`, the place of a demonym (`jamaican`, `the germans`), and its language.

    >>> other_names("armenian")
    ('Armenia', 'Armenian language')
    >>> other_names("the UK")[0], other_names("Alien")
    ('United Kingdom', ())
    """
    words = fold_words(text)
    if not any(map(hints, words)):
        return ()
    words = words[leads_with_article(words) :]
    key = " ".join(words)
    found = list(_places().people.get(key, ()))
    if words and (place := _of_place(words[-1])):
        found.append(" ".join([*words[:-1], place]).title())
    if found:
        found.append(f"{key.title()} language")
    return tuple(dict.fromkeys((*full_names(text), *found)))


@lru_cache(1 << 12)
def full_names(text: str) -> tuple[str, ...]:
    """Return the full names of a text.

    They are those of a place (`the us`, `UK`; without an article only in capitals), and the text with abbreviations
    written in full (`st paul`, `ny giants`), or `saint`, `mount` and `fort` abbreviated.

    >>> full_names("the USSR"), full_names("mt everest"), full_names("us")
    (('Soviet Union',), ('Mount Everest',), ())
    """
    words = fold_words(text)
    article = leads_with_article(words)
    words = words[article:]
    key, places = " ".join(words), _places()
    found = [*places.names.get(key, ())] if key not in places.capitals or article or text.isupper() else []
    if len(words) > 1:
        found += [" ".join(table.get(word, word) for word in words).title() for table in (_WITHIN, _LONG)]
    return tuple(name for name in dict.fromkeys(found) if normalize_name(name) != key)


_NUMERALS = dict(zip("ii iii iv v vi vii viii ix x".split(), map(str, range(2, 11)), strict=True))
_FORMS = _NUMERALS | {digit: roman for roman, digit in _NUMERALS.items()} | _SHORT | _LONG


def respelt_words(word: str) -> tuple[str, ...]:
    """Return other forms of a folded word: its other number, a digit for a Roman numeral, `st` for `saint`, or the
    other way about.

    >>> respelt_words("courts"), respelt_words("2"), respelt_words("mt")
    (('court',), ('ii',), ('mount',))
    """
    if word in _FORMS:
        return (_FORMS[word],)
    if len(word) <= _SHORTEST or word in FUNCTION_WORDS or not word.isalpha():
        return ()
    one = singular(word)
    return (one,) if one != word else (f"{word}s",)


def name_essence(words: Sequence[str]) -> str:
    """Return folded words with one form for each, without articles, `and`, initials and the `s` of genitives.

    >>> name_essence(["the", "great", "pyramids", "of", "giza"]), name_essence(["stephen", "r", "covey"])
    ('great pyramid of giza', 'stephen covey')
    """
    kept = [word for word in words[:-1] if word not in (*ARTICLES, "and") and (len(word) > 1 or word.isdecimal())]
    return " ".join(_NUMERALS.get(word) or _SHORT.get(word) or singular(word) for word in (*kept, words[-1]))


def _of_place(word: str) -> str:
    """Return the place in `-a` of a demonym (`armenians`); empty for other words."""
    word = word.removesuffix("s")
    return word[:-1] if word.endswith("ian") or (word.endswith("an") and len(word) >= _SURELY) else ""


def untitled(text: str) -> str:
    """Return a text without its leading article and titles; itself if it has none, or nothing else.

    >>> untitled("King George VI"), untitled("the steelers"), untitled("queen"), untitled("lord of the flies")
    ('George VI', 'steelers', 'queen', 'lord of the flies')
    """
    words = text.split()
    left = 0
    while left + 1 < len(words) and (
        words[left].casefold() in ARTICLES
        or (words[left].casefold().rstrip(".") in TITLES and words[left + 1].casefold() not in FUNCTION_WORDS)
    ):
        left += 1
    return " ".join(words[left:]) if left else text


def plan_text(topic: str, metapath: Sequence[str]) -> str:
    """Return a relation path from an entity as a model writes it: `Ann -> ^wrote -> genre`."""
    return " -> ".join((topic, *metapath))
