"""Questions in German, Spanish and Chinese: detection, and translation into the English that the offline parser reads.

`data/languages` has a file for each language: its words and phrases by their English, and `names.tsv`, names of
places, languages and currencies in all of them. A question is cut into the longest phrases and names that are known,
from left to right, which needs no spaces; names of the graph stay as they are. The order of words is that of the
question, but for adjectives behind their noun (Spanish), and question words and relative clauses (Chinese).
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise, product
from typing import Any, Literal

from byokg.errors import ConfigError, one_of
from byokg.text.names import FUNCTION_WORDS, QUESTION_WORDS, fold, full_names

LanguageChoice = Literal["auto", "en", "de", "es", "zh"]
"""Language of questions by its ISO 639-1 code; `auto` detects it."""

LANGUAGES: Mapping[str, str] = {"en": "English", "de": "German", "es": "Spanish", "zh": "Chinese"}
"""Supported languages by code."""

_HAN = "\u3400-\u9fff"
_TOKEN = re.compile(rf"[{_HAN}]|[^\W_{_HAN}]+|[^\w\s]|_")
_PAIRS = (("“", "”"), ("„", "“"), ("„", "”"), ("«", "»"), ("《", "》"), ("「", "」"), ('"', '"'))
_QUOTED = re.compile("|".join(f"{a}([^{a}{b}]+){b}" for a, b in _PAIRS) + r"|(?<!\w)'([^']+)'(?!\w)")
_MARKS = str.maketrans("？，。；：！、", "?,.;:!,", "¿¡·")
_REQUESTS = frozenset("name list give find show tell is are was were do does did can".split())
_ENGLISH = FUNCTION_WORDS | QUESTION_WORDS | _REQUESTS
_STEM = 3
"""Letters that a word keeps without its ending."""
_HALF = 4
"""Letters of either part of a compound."""
_FIRST = 2
"""Words at the start of a question among which its question word stands (`in welchem`)."""

_Key = tuple[str, ...]


@dataclass(frozen=True)
class _Piece:
    """A piece of a question in English."""

    text: str
    group: str = ""
    """Table of the language's file that has it; `name` for a name, empty for other text."""


@dataclass(frozen=True)
class _SourcePiece:
    """A piece as it stands in a question."""

    piece: _Piece
    surface: str

    @property
    def known(self) -> bool:
        return bool(self.piece.group)


def _part_of_name(read: _SourcePiece) -> bool:
    """True for Chinese characters in no list, and for a noun of one character, which may belong to them."""
    return _is_han(read.surface) and (not read.known or (len(read.surface) == 1 and read.piece.group == "nouns"))


@dataclass(frozen=True)
class LanguageWords:
    """Words of a language by their English."""

    code: str
    phrases: Mapping[_Key, tuple[_Piece, ...]]
    """Meanings by the folded words, or Chinese characters, of a phrase."""
    stems: Mapping[_Key, tuple[_Piece, ...]]
    """The same of several words without their endings."""
    longest: int
    """Most words of a phrase."""
    endings: tuple[str, ...]
    """Endings of inflected words."""
    joints: tuple[str, ...]
    """Letters between the parts of a compound; empty for a language without compounds."""
    umlauts: Mapping[str, str]
    """Two letters that stand for an accented one, by the plain one."""
    postposed: frozenset[str]
    """Groups whose words follow their noun."""
    fronted: bool
    """True if question words and relative clauses do not stand where English has them."""
    genitive: str
    """Ending of a name to which the noun before it belongs; empty for none."""
    verb_final: bool
    """True if the verb ends a relative clause."""
    rewrites: tuple[tuple[re.Pattern[str], str], ...]
    """Patterns that are replaced before a question is read (dates)."""

    def meanings(self, words: Sequence[str]) -> tuple[_Piece, ...]:
        """Return the meanings of folded words, also of an inflected or compound one; empty if they are unknown."""
        if len(words) > 1:
            return self.phrases.get(tuple(words)) or self.stems.get(_stems(words, self.endings), ())
        found = next((meant for form in self._forms(words[0]) if (meant := self.phrases.get((form,)))), ())
        return found or self._compound(words[0])

    def _forms(self, word: str) -> Iterator[str]:
        spellings = [word]
        for pair, letter in self.umlauts.items():
            spellings += [spelling.replace(pair, letter) for spelling in spellings if pair in spelling]
        yield from spellings
        for spelling, ending in product(spellings, self.endings):
            stem = spelling.removesuffix(ending)
            if stem != spelling and len(stem) >= _STEM:
                yield from (stem, *(stem + other for other in self.endings))

    def _compound(self, word: str) -> tuple[_Piece, ...]:
        for cut, joint in product(range(_HALF, len(word) - _HALF + 1), self.joints):
            head, last = word[:cut].removesuffix(joint), word[cut:]
            if word[:cut].endswith(joint) and (one := self.phrases.get((head,))):
                other = next((meant for form in self._forms(last) if (meant := self.phrases.get((form,)))), ())
                if other and one[0].group in _NOUNS and other[0].group == "nouns":
                    return (_Piece(f"{one[0].text} {other[0].text}", "nouns"),)
        return ()


_NOUNS = frozenset(("nouns", "names", "demonyms"))


@cache
def language_words(code: str) -> LanguageWords:
    """Read the words of a language.

    Raises:
        ConfigError: there is no such language, or none is needed, as for English.
    """
    if code not in LANGUAGES or code == "en":
        raise ConfigError(f"language={code} has no words; use one of {', '.join(('auto', *LANGUAGES))}")
    folder = files("byokg") / "data" / "languages"
    data: dict[str, Any] = tomllib.loads((folder / f"{code}.toml").read_text("utf-8"))
    phrases: dict[_Key, list[_Piece]] = defaultdict(list)
    for group, table in data.items():
        if isinstance(table, dict) and group != "umlauts":
            for english, texts in table.items():
                for key in (key for text in texts for key in dict.fromkeys((_folded(text), _tokens(text)))):
                    phrases[key].append(_Piece(english, group))
    lines = (folder / "names.tsv").read_text("utf-8").splitlines()
    header, *rows = (line.split("\t") for line in lines if not line.startswith("#"))
    for row in rows:
        for name in filter(None, row[header.index(code)].split("|")):
            phrases[_folded(name)].append(_Piece(row[0], "names"))
    known = {key: tuple(dict.fromkeys(meant)) for key, meant in phrases.items()}
    endings = tuple(data.get("endings", ()))
    return LanguageWords(
        code,
        known,
        {_stems(key, endings): meant for key, meant in known.items() if len(key) > 1} if endings else {},
        max(map(len, phrases)),
        endings,
        tuple(data.get("joints", ())),
        data.get("umlauts", {}),
        frozenset(data.get("postposed", ())),
        data.get("fronted", False),
        data.get("genitive", ""),
        data.get("verb_final", False),
        tuple((re.compile(pattern), text) for pattern, text in data.get("rewrites", ())),
    )


def _stems(words: Sequence[str], endings: Sequence[str]) -> _Key:
    longest = sorted(endings, key=lambda ending: -len(ending))
    kept = ((word, next((word[: -len(one)] for one in longest if word.endswith(one)), word)) for word in words)
    return tuple(stem if len(stem) > _STEM else word for word, stem in kept)


def _tokens(text: str) -> _Key:
    return tuple(token.casefold() for token in _TOKEN.findall(unicodedata.normalize("NFC", text)))


def _folded(text: str) -> _Key:
    return tuple(map(fold, _tokens(text)))


@lru_cache(1 << 10)
def detect_language(text: str) -> str:
    """Return the code of a question's language: English unless more of its words are of another one.

    A question whose first words ask in a language is in that one. Otherwise another one than English needs a word
    that asks, and more known words, those that ask counted twice.

    >>> [detect_language(text) for text in ("Wer schrieb Faust?", "Who wrote Die Blechtrommel?", "谁写了它?")]
    ['de', 'en', 'zh']
    """
    words = _folded(_QUOTED.sub(" ", text))
    plain = [word for word in words if word.isalnum()]
    if sum(len(word) == 1 and re.match(f"[{_HAN}]", word) is not None for word in plain) * 2 > len(plain):
        return "zh"
    asking = QUESTION_WORDS | _REQUESTS
    if plain and plain[0] in asking - {"was"}:
        return "en"
    english = sum((word in _ENGLISH) + (word in asking) for word in plain)
    best, most = "en", max(english, 2)
    for code in ("de", "es"):
        known = language_words(code).phrases
        groups = [known.get((word,), (_Piece(""),))[0].group for word in plain]
        asks = [group == "questions" and word not in _ENGLISH for group, word in zip(groups, plain, strict=True)]
        pairs = [known.get(key, (_Piece(""),))[0].group == "questions" for key in pairwise(plain)]
        if any(asks[:_FIRST]) or any(pairs[:1]) or "¿" in text:
            found = sum(map(bool, groups)) + sum(asks) + sum(pairs) + 2 * ("¿" in text)
            if found > most:
                best, most = code, found
    return best


@dataclass(frozen=True)
class QuestionTranslator:
    """Reads questions in other languages as English ones.

    Args:
        is_name: True for a name of the graph, whatever its case and accents.
        language: of all questions; `auto` detects that of each.
        nearest: returns a word of the graph's schema for a word in no list, or an empty text.

    Raises:
        ConfigError: the language is not supported.
    """

    is_name: Callable[[str], bool]
    language: LanguageChoice = "auto"
    nearest: Callable[[str], str] | None = None

    def __post_init__(self) -> None:
        check_language(self.language)

    def __call__(self, text: str) -> str:
        """Return a question in English; one in English as it is."""
        code = detect_language(text) if self.language == "auto" else self.language
        return text if code == "en" else self._translated(text, language_words(code))

    def _translated(self, text: str, words: LanguageWords) -> str:
        text = unicodedata.normalize("NFC", text).translate(_MARKS)
        for pattern, instead in words.rewrites:
            text = pattern.sub(instead, text)
        pieces: list[_Piece] = []
        end = 0
        for found in _QUOTED.finditer(text):
            inside = next(filter(None, found.groups()))
            named = self._named(words, _folded(inside))
            pieces += [*self._read(text[end : found.start()], words), _Piece(named or f'"{inside}"', "names")]
            end = found.end()
        pieces += self._read(text[end:], words)
        return _joined(_ordered(_decided(pieces), words))

    def _named(self, words: LanguageWords, key: _Key) -> str:
        """Return the first English name of a foreign one that the graph has; empty without one."""
        meant = words.meanings(key) if key else ()
        return next((one.text for one in meant if one.group == "names" and self._knows(one.text)), "")

    def _knows(self, name: str) -> bool:
        return any(map(self.is_name, (name, *full_names(name))))

    def _read(self, text: str, words: LanguageWords) -> list[_Piece]:
        """Cut a text into the longest known pieces, from left to right."""
        tokens = list(_TOKEN.finditer(text))
        folded = [fold(token.group()) for token in tokens]
        pieces: list[_SourcePiece] = []
        at = 0
        while at < len(tokens):
            for size in range(min(max(words.longest, _NAME), len(tokens) - at), 0, -1):
                surface = text[tokens[at].start() : tokens[at + size - 1].end()]
                meant = self._meaning(words, folded[at : at + size], surface, [own.piece for own in pieces[-1:]])
                if meant is not None:
                    break
            else:
                size, surface = 1, tokens[at].group()
                meant = _Piece(surface)
            own = _SourcePiece(meant, surface)
            if pieces and _part_of_name(pieces[-1]) and _part_of_name(own) and not (pieces[-1].known and own.known):
                last = pieces.pop().surface + surface
                own = _SourcePiece(_Piece(last), last)
            pieces.append(own)
            at += size
        return [self._guessed(own.piece) for own in pieces if own.piece.text]

    def _meaning(
        self, words: LanguageWords, folded: Sequence[str], surface: str, before: Sequence[_Piece]
    ) -> _Piece | None:
        """Return the English of a phrase or name; None if it is neither."""
        if not folded[0].isalnum() or not folded[-1].isalnum():
            return None
        accented = words.phrases.get(_tokens(surface)) or words.meanings(folded)  # `qué` asks, and `que` does not
        meant = [one for one in accented if one.group != "names"]
        if before and len(meant) > 1:
            meant = [one for one in meant if one.group != "questions"] or meant
        written = not meant or surface != surface.casefold() or _is_han(surface)  # `oder` is no river, `Oder` is one
        if written and (name := self._named(words, tuple(folded))):
            owner = surface.endswith(words.genitive) and tuple(folded) not in words.phrases
            return _Piece(f"{name} | of {name}" if words.genitive and owner else name, "names")
        stem = surface.removesuffix(words.genitive)
        if not meant and stem != surface and written and not self.is_name(surface) and self.is_name(stem):
            return _Piece(f"{stem} | of {stem}", "names")
        if not meant and not surface.isdecimal() and self.is_name(surface):
            return _Piece(surface, "names")
        if not meant and (foreign := words.meanings(folded)):
            return foreign[0]  # an English spelling may resemble a name of the graph
        if not meant:
            return None
        behind = bool(before) and before[-1].group == "nouns"
        return next((one for one in meant if (one.group in words.postposed) == behind), meant[0])

    def _guessed(self, piece: _Piece) -> _Piece:
        """Return the nearest word of the graph for a word in no list."""
        if piece.group or self.nearest is None or not piece.text.isalpha() or len(piece.text) < 2:
            return piece
        if piece.text in _ENGLISH:  # put there by a rewrite
            return piece
        near = self.nearest(piece.text)
        return _Piece(near, "nouns") if near else piece


_NAME = 8
"""Most tokens of a name of the graph within a question."""


def language_instruction(question: str, language: LanguageChoice = "auto") -> str:
    """Return the instruction of a prompt for a question in another language, which stays as it is; else nothing."""
    code = detect_language(question) if language == "auto" else language
    if code == "en":
        return ""
    return (
        f"\n\n(The question is in {LANGUAGES[code]}, the graph need not be. Think in any language; write entities, "
        "relations, values and answers as they are spelled in the graph, and do not translate them.)"
    )


def check_language(language: str) -> None:
    """Raise `ConfigError` unless a language is supported."""
    one_of("language=", language, ("auto", *LANGUAGES))


def foreign_names(text: str) -> tuple[str, ...]:
    """Return the English names of a foreign one: Germany for `Deutschland`, `Alemania` and `德国`; most have none.

    >>> foreign_names("Köln"), foreign_names("德国"), foreign_names("Germany")
    (('Cologne',), ('Germany',), ())
    """
    key = _folded(text)
    codes = [code for code in LANGUAGES if code != "en"] if key else []
    meant = (one for code in codes for one in language_words(code).meanings(key) if one.group in ("names", "demonyms"))
    return tuple(dict.fromkeys(one.text for one in meant if _folded(one.text) != key))


def _is_han(text: str) -> bool:
    return re.fullmatch(f"[{_HAN}]+", text) is not None


def _decided(pieces: Sequence[_Piece]) -> list[_Piece]:
    """Decide between two readings by the pieces before: `longest` if one is an article, `than` if one compares."""
    decided: list[_Piece] = []
    for piece in pieces:
        first, bar, second = piece.text.partition(" | ")
        near = decided[-_NEAR:]
        if second.startswith("of "):
            wanted = bool(near) and near[-1].group == "nouns"
        elif second == "than":
            wanted = any(one.group == "comparatives" or one.text in _DEGREES for one in near)
        else:
            wanted = any("the" in one.text.split() for one in near)
        decided.append(_Piece(second if bar and wanted else first, piece.group))
    return decided


_NEAR = 3
"""Pieces before one that decide its reading."""

_DEGREES = frozenset(("more", "less", "most", "least"))


def _ordered(pieces: list[_Piece], words: LanguageWords) -> list[_Piece]:
    """Put pieces into the order of English."""
    if words.fronted:
        pieces = _linked(pieces)
    for at in range(1, len(pieces)):
        if pieces[at].group in words.postposed and pieces[at - 1].group == "nouns":
            pieces[at - 1 : at + 1] = reversed(pieces[at - 1 : at + 1])
    if words.verb_final:
        pieces = _with_verbs_first(pieces)
    return _fronted(_relative(pieces)) if words.fronted else pieces


def _with_verbs_first(pieces: list[_Piece]) -> list[_Piece]:
    """Put the verb at the end of a relative clause behind its pronoun: `, die nicht durch Polen fließen`."""
    commas = [at for at, piece in enumerate(pieces) if piece.text == ","]
    for comma in reversed(commas):
        end = next((at for at in range(comma + 1, len(pieces)) if pieces[at].text in _ENDS), len(pieces))
        pronoun = comma + 1 + (pieces[comma + 1 : comma + 2] != [] and pieces[comma + 1].text in _PREPOSITIONS)
        if end - pronoun < _NEAR or pieces[pronoun].text not in ("the", "that", "whose"):
            continue
        verb = end
        while verb - 1 > pronoun and (pieces[verb - 1].group == "verbs" or pieces[verb - 1].text in _AUXILIARIES):
            verb -= 1
        if verb == end:
            continue
        whose = pieces[pronoun].text == "whose"
        first = pronoun + 1 + (whose or pieces[pronoun + 1].text == "not")
        if not whose:
            pieces[pronoun] = _Piece("that")
        if whose or not (pieces[first].group in _NOUNS or pieces[first].text == "the"):
            pieces[first:end] = [*pieces[verb:end], *pieces[first:verb]]
        del pieces[comma + 1 : pronoun]
    return pieces


_ENDS = frozenset((",", ".", "?", "!", ";"))
_PREPOSITIONS = frozenset(("in", "at", "on", "through", "from", "with", "of", "by", "to", "for"))
_AUXILIARIES = frozenset(("is", "are", "was", "were", "has", "have", "had"))


def _linked(pieces: Sequence[_Piece]) -> list[_Piece]:
    """Add links that Chinese leaves out: `非洲最长的河流`, Africa's longest river; `人口最多`, with the most people."""
    linked: list[_Piece] = []
    for piece in pieces:
        before = linked[-1] if linked else _Piece("")
        if before.group == "nouns" and _is_degree(piece):
            linked[-1:] = [_Piece(f"with the {piece.text}" if piece.text in _MOST else f"with {piece.text}"), before]
            continue
        if before.group == "names" and piece.group in ("superlatives", "nouns"):
            linked.append(_GENITIVE)
        linked.append(piece)
    return linked


def _is_degree(piece: _Piece) -> bool:
    return piece.text in _DEGREES or piece.group in ("superlatives", "comparatives")


_MOST = frozenset(("most", "least"))

_GENITIVE = _Piece("'s", "grammar")

_BEFORE_NOUN = frozenset(("superlatives", "adjectives", "demonyms", "numbers"))


def _relative(pieces: list[_Piece]) -> list[_Piece]:
    """Put a clause that ends in a genitive behind its noun: `流经德国的河流`, rivers that flow through Germany."""
    for at, piece in enumerate(pieces):
        if piece != _GENITIVE:
            continue
        start = 1 + max((place for place in range(at) if _bounds(pieces[place])), default=-1)
        end = at + 1
        while end < len(pieces) and (pieces[end].group in _BEFORE_NOUN or pieces[end].text.isdecimal()):
            end += 1
        verbs = any(one.group == "verbs" for one in pieces[start:at])
        if verbs or any(one.text.startswith("with ") for one in pieces[start:at]):
            clause = [*([_Piece("that")] if verbs else []), *pieces[start:at]]
            if end < len(pieces) and pieces[end].group == "nouns":
                pieces[start : end + 1] = [*pieces[at + 1 : end + 1], *clause]
    return pieces


def _bounds(piece: _Piece) -> bool:
    return piece.group == "questions" or piece.text in ("is", "that", ",")


def _fronted(pieces: list[_Piece]) -> list[_Piece]:
    """Put the question word with its noun first, and a copula before it behind it: `首都是什么`."""
    at = next((place for place, piece in enumerate(pieces) if piece.group == "questions"), 0)
    end = at + 1
    while end < len(pieces) and pieces[end].group in ("nouns", "units"):
        end += 1
    start = at - 1 if at and pieces[at - 1].text in ("is", "has") else at
    rest = [*pieces[start:at], *pieces[:start], *pieces[end:]]
    if any(one.text in ("and", "or") for one in pieces[:at]) and end < len(pieces):  # `A和B哪个更长`
        both = [_Piece("or") if one.text == "and" else one for one in pieces[:at]]
        stop = len(pieces) - (not pieces[-1].text.isalnum() and " " not in pieces[-1].text)
        told = pieces[end:stop]
        if told and told[0].group == "comparatives":
            told = [_Piece("is"), *told]
        told = [_Piece(one.text.replace("with ", "has "), one.group) for one in told]
        rest = [*told, _Piece(","), *both, *pieces[stop:]]
    return [*pieces[at:end], *rest]


def _joined(pieces: Sequence[_Piece]) -> str:
    text = " ".join(piece.text for piece in pieces)
    text = re.sub(r"\s+(?=[?.,;:!)]|'s\b)", "", text)
    return text[:1].upper() + text[1:]
