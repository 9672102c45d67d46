"""Words as all layers read them: names, labels and questions taken apart, folded, stemmed, and read as values.

Here are also the English words that say little by themselves, the identifiers that are no names, an estimate of what a
text costs a language model, and what is done about text that no encoder takes.

`read_question` takes a question apart for the path scorer: which words count, and what it asks for. Its word lists are
English function words, nothing about any data set. `read_literal` reads a mention as a value or an identifier (a date,
a year, a number, a MID, a QID, an IRI, a UUID) as people write them; RDF literals are another matter
(`byokg.graph.rdf.terms`). Where habits differ, it reads as most data sets of questions, which are American, mean it:

- `12/05/1990` has two readings. Month first (`1990-12-05`) is the value; where only the other reading is a node, that
  node is found. `25/12/1990` has one. With dots (`12.05.1990`) the day comes first, as wherever dots are used.
- `1,234` is one thousand two hundred and thirty-four, `1.234` is a little more than one: commas, spaces and apostrophes
  group digits by three, a dot begins the fraction. Only what cannot be meant so is read the other way round:
  `1.234.567`, `1.234,56`, `1,5`.
- Four digits alone, 1000 to 2999, are a year; the same with a separator (`1,990`) is a number.
- Nothing carries a unit: `5 km`, `50 %` and `$3` are names.
"""

from __future__ import annotations

import datetime
import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from byokg.types import EntityId, Mention, Value

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

_CAPITALS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Where a word begins within camel case."""


def normalize_name(text: str) -> str:
    """Fold case, accents, punctuation and a leading English article, and collapse spaces.

    Folding twice gives the same as folding once. A text of punctuation alone keeps its characters, so that it can
    still be told from others.

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
    """Tell whether folded words start with an article that a name can do without.

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


LABEL_PARTS = re.compile(r"[./#:]+|__+")
"""What stands between a label's namespace and its own name: `film.film.genre`, `film__film__genre`, `http://…#genre`."""


def split_label(label: str) -> str:
    """Part the words that a label joins by capitals: `directedBy` is `directed By`, `URLPath` is `URL Path`."""
    return _CAPITALS.sub(" ", label)


def normalize_label(label: str) -> str:
    """Fold a label as `normalize_name` folds a name, its words parted: `directedBy` and `DIRECTED_BY` are one."""
    return normalize_name(split_label(label))


class _WithoutAccents(dict[int, str | None]):
    """A table for `str.translate`, filled with the characters that occur."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        self[code] = None if _is_accent(character) else character
        return self[code]


_WITHOUT_ACCENTS = _WithoutAccents()


def _is_accent(char: str) -> bool:
    """Tell whether a character is a mark that people leave out.

    The classes kept make another letter: Indic nuktas and viramas, Japanese voicing, Thai and Lao vowels and tones.
    """
    combining = unicodedata.combining(char)
    return combining > 0 and not 7 <= combining <= 9 and not 84 <= combining <= 132


_IDENTIFIER = re.compile(
    r"[mg]\.[0-9a-z_]{2,}"  # Freebase MID
    r"|/[mg]/[0-9a-z_]{2,}"
    r"|[QP][1-9][0-9]{2,}"  # Wikidata
    r"|_:.+"  # RDF blank node
    r"|(?i:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",  # UUID
)


def is_identifier(text: str) -> bool:
    """Tell whether a string is a Freebase MID, a Wikidata id, a blank node label or a UUID.

    A node whose name is one has no name of its own: in Freebase mostly a mediator (CVT) node that stands for an
    event or a role between other nodes.
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
    """Tell whether two words share a stem, as a whole or as the second half of a compound.

    Not `snowballstemmer`, which ties neither `written` to `writers` nor `screenwriter` to either. Hits@1 of the offline
    pipeline with this function, and with equal stems of Snowball's English: MetaQA 98.3, 95.0 and 95.3 against 98.3,
    77.0 and 74.0 (300 dev questions of 1, 2 and 3 hops), atlas 37.3 both (453 dev questions), WebQSP 63.0 against 63.3
    (300 dev questions).

    >>> related("written", "writers"), related("screenwriter", "written"), related("start", "star")
    (True, True, False)
    """
    return (
        _same_stem(word, other)
        or any(_same_stem(word[cut:], other) for cut in _halves(word) if len(other) >= _STEM)
        or any(_same_stem(other[cut:], word) for cut in _halves(other) if len(word) >= _STEM)
    )


def _halves(word: str) -> range:
    """Return where the second half of a compound may begin."""
    return range(_HALF, len(word) - _STEM + 1)


def _same_stem(word: str, other: str) -> bool:
    """Tell whether two words differ in English endings alone."""
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
"""What begins a tag, or a citation of a line of evidence."""

_SPACE = re.compile(r"\s+")


def on_one_line(text: str, longest: int = 300) -> str:
    """Return a text of the graph as a line of a prompt holds it: data that cannot pass for anything else.

    Line ends and characters that do not show become spaces; `<` that would begin a tag becomes `‹`, and `[` that would
    begin a citation `(`; what is longer than `longest` characters is cut.
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
    """Return the mention of a name: where its name stands in the text, if it does, whatever the accents."""
    spans = list(WORD.finditer(text))
    wanted = [normalize_name(word) for word in WORD.findall(name)]
    words = [normalize_name(span.group()) for span in spans]
    for first in range(len(words) - len(wanted) + 1 if wanted else 0):
        if words[first : first + len(wanted)] == wanted:
            start, end = spans[first].start(), spans[first + len(wanted) - 1].end()
            return Mention(text[start:end], start, end, ids)
    return Mention(name, ids=ids)


Kind = Literal["date", "year", "decade", "number", "id"]

_MONTHS = "january february march april may june july august september october november december".split()
_MONTH_NUMBERS = {name[:length]: number for number, name in enumerate(_MONTHS, 1) for length in (3, len(name))} | {
    "sept": 9
}
_MONTH = "(?P<month>" + "|".join(sorted(_MONTH_NUMBERS, key=len, reverse=True)) + r")\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>[12]\d{3})"
_TIME = r"(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"

_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?P<year>\d{{4}})-(?P<month>\d\d)-(?P<day>\d\d){_TIME}",
        rf"{_YEAR}[/.](?P<month>\d{{1,2}})[/.](?P<day>\d{{1,2}})",
        rf"{_DAY}(?: of)?[ -]{_MONTH},?[ -]{_YEAR}",
        rf"{_MONTH} {_DAY},? {_YEAR}",
        rf"{_DAY}\.(?P<month>\d{{1,2}})\.{_YEAR}",
        rf"{_MONTH},? (?:of )?{_YEAR}",
        r"(?P<year>\d{4})-(?P<month>\d\d)",
    )
)
_SLASHED = re.compile(rf"(?P<first>\d{{1,2}})[/-](?P<second>\d{{1,2}})[/-]{_YEAR}")
_YEAR_ALONE = re.compile(rf"(?:the )?(?:year )?{_YEAR}(?: (?:ad|ce))?|(?:ad ){_YEAR.replace('year', 'after')}", re.I)
_YEAR_BEFORE = re.compile(r"(?:the )?(?:year )?(?P<year>[1-9]\d{0,3}) ?(?:bce?|b\.c\.(?:e\.)?)", re.IGNORECASE)
_DECADE = re.compile(r"(?:the )?(?P<year>[12]\d\d0)['\u2019]?s", re.IGNORECASE)
_ENGLISH = re.compile(r"[+-]?(?:\d+|\d{1,3}(?P<mark>[, '\u2019])\d{3}(?:(?P=mark)\d{3})*)(?:\.\d+)?")
_CONTINENTAL = re.compile(
    r"[+-]?(?:\d{1,3}(?:\.\d{3}){2,}|\d{1,3}(?:[. ]\d{3})+,\d+|\d+,(?:\d{1,2}|\d{4,}))",
)
_IRI = re.compile(r"<?(?:https?://|urn:[a-z0-9][a-z0-9-]*:)[^\s<>\"]+>?", re.IGNORECASE)
_FREEBASE = re.compile(
    r"(?:ns:|fb:|https?://(?:rdf|www)\.freebase\.com/(?:ns/)?)?/?(?P<space>[mg])[./](?P<key>[0-9a-z_]{2,})"
)
_WIKIDATA = re.compile(
    r"(?:wdt?:|https?://www\.wikidata\.org/(?:entity|wiki|prop/direct)/)(?P<key>[QP][1-9]\d*)|(?P<bare>[QP][1-9]\d+)"
)
_WIDE_SPACE = re.compile("[ \u00a0\u2009\u202f]+")
_LONGEST = 400
"""Characters of anything read here; longer texts are none of these."""


@dataclass(frozen=True)
class ReadLiteral:
    """What a text says that is a value or an identifier."""

    kind: Kind
    value: Value
    """As in `types.LinkedLiteral`."""
    spellings: tuple[str, ...]
    """How a node may be called that is this value, or its id if it is an identifier; the text itself comes first."""


def read_literal(text: str) -> ReadLiteral | None:
    """Read a text as an identifier, a date, a year, a decade or a number; None when it is none of these.

    An impossible date (`31 February 1990`) is none. See the module's text for what decides between two readings.

    >>> read_literal("12 May 1990").value, read_literal("1,234").value, read_literal("Heat")
    ('1990-05-12', 1234, None)
    """
    stripped = text.strip()
    plain = _WIDE_SPACE.sub(" ", stripped).replace("\u2212", "-")
    if len(stripped) > _LONGEST or not plain.isprintable():
        return None
    read = _identifier(stripped)
    if read is None and any(map(_is_digit, stripped)):
        read = _date(plain) or _year(plain) or _number(plain)
    if read is None:
        return None
    return ReadLiteral(read.kind, read.value, tuple(dict.fromkeys((stripped, *read.spellings))))


def is_wordless(text: str) -> bool:
    """Tell whether a text has no letter: nothing that resembles it is the same (1990 is not 1991)."""
    return not any(map(str.isalpha, text))


def _is_digit(character: str) -> bool:
    return "0" <= character <= "9"


def _identifier(text: str) -> ReadLiteral | None:
    """Read an identifier; its spellings are the shorthands that graphs use for it."""
    freebase, wikidata = _FREEBASE.fullmatch(text), _WIKIDATA.fullmatch(text)
    if freebase is not None:
        space, key = freebase["space"], freebase["key"]
        short = f"{space}.{key}"
        iri = f"http://rdf.freebase.com/ns/{short}"
        return ReadLiteral("id", short, (short, f"/{space}/{key}", f"ns:{short}", f"fb:{short}", iri))
    if wikidata is not None:
        key = wikidata["key"] or wikidata["bare"]
        return ReadLiteral("id", key, (key, f"wd:{key}", f"http://www.wikidata.org/entity/{key}"))
    if _IRI.fullmatch(text):
        bare = text.removeprefix("<").removesuffix(">")
        return ReadLiteral("id", bare, (bare, f"<{bare}>"))
    if is_identifier(text):
        return ReadLiteral("id", text, (text.lower(), text.upper()) if not text.startswith("_:") else ())
    return None


def _date(text: str) -> ReadLiteral | None:
    """Read a day or a month of a year."""
    slashed = _SLASHED.fullmatch(text)
    if slashed is not None:
        year, first, second = int(slashed["year"]), int(slashed["first"]), int(slashed["second"])
        readings = [iso for iso in (_iso(year, first, second), _iso(year, second, first)) if iso]
        if not readings:
            return None
        spelled = (spelling for iso in readings for spelling in _date_spellings(iso))
        return ReadLiteral("date", readings[0], tuple(spelled))
    for pattern in _DATES:
        found = pattern.fullmatch(text)
        if found is None:
            continue
        parts = found.groupdict()
        named = _MONTH_NUMBERS.get(parts["month"].lower())
        month = int(parts["month"]) if named is None else named
        day = None if parts.get("day") is None else int(parts["day"])
        value = _iso(int(parts["year"]), month, day)
        return None if value is None else ReadLiteral("date", value, _date_spellings(value))
    return None


def _iso(year: int, month: int, day: int | None) -> str | None:
    """Write a date, or a month; None when there is no such."""
    try:
        datetime.date(year, month, 1 if day is None else day)
    except ValueError:
        return None
    return f"{year:04d}-{month:02d}" if day is None else f"{year:04d}-{month:02d}-{day:02d}"


def _date_spellings(iso: str) -> tuple[str, ...]:
    """Write a date as names of nodes have it."""
    year, month, *rest = iso.split("-")
    name = _MONTHS[int(month) - 1].capitalize()
    if not rest:
        return iso, f"{name} {year}"
    day = int(rest[0])
    return iso, f"{day} {name} {year}", f"{name} {day}, {year}", f"{iso}T00:00:00Z", f"{iso}T00:00:00"


def _year(text: str) -> ReadLiteral | None:
    """Read a year, before or after Christ, or a decade."""
    if found := _YEAR_ALONE.fullmatch(text):
        year = int(found["year"] or found["after"])
        return ReadLiteral("year", year, (str(year),)) if year < 3000 else None
    if found := _YEAR_BEFORE.fullmatch(text):
        year = int(found["year"])
        return ReadLiteral("year", -year, (f"{year} BC", f"{year} BCE", f"-{year:04d}", f"-{year}"))
    if found := _DECADE.fullmatch(text):
        return ReadLiteral("decade", int(found["year"]), (f"{found['year']}s",))
    return None


def _number(text: str) -> ReadLiteral | None:
    """Read a number in digits."""
    if _ENGLISH.fullmatch(text):
        digits = re.sub(r"[^\d.+-]", "", text)
    elif _CONTINENTAL.fullmatch(text):
        digits = re.sub(r"[. ]", "", text).replace(",", ".")
    else:
        return None
    value = float(digits) if "." in digits else int(digits)
    if isinstance(value, int):
        return ReadLiteral("number", value, (str(value), f"{value:,}"))
    if not math.isfinite(value):
        return None
    whole = (str(int(value)), f"{int(value):,}") if value.is_integer() and abs(value) < 1e15 else ()
    return ReadLiteral("number", value, (digits, repr(value), *whole))
