"""English phrases for relation labels: a noun, or a verb phrase of the head with the tail as object.

`capital` and `has_genre` name the tail: it is the capital *of* the head. `treats`, `may_cause`, `isPartOf`,
`directed_by` and `PURCHASED` are predicates of the head, with the tail as object. The first word marks a verb (a form
of `be`, a modal, an inflected verb of the lists below), or the last word does, a preposition; all other labels are
nouns. Some labels name their tails as well (`located_in_country`, `belongs_to_the_category_of`). Of dotted Freebase
labels (`film.film.directed_by`) the last part is the predicate and the part before it names the heads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from byokg.text.names import singular, split_label

PREPOSITIONS = frozenset(
    "by in to into from of at for with on through under after about as against near within across between among behind "
    "during before above below beside beneath around along without toward towards upon onto than".split()
)
_TAKING = frozenset("in of with to from by for at on as".split())
"""Prepositions without meaning before a noun beyond `has`: `in_language`."""
_AFTER_VERBS = frozenset("into to through with against across toward towards onto upon".split())
"""Prepositions before which an unknown word in `-s` is rather a verb than a plural."""
_TIMES = frozenset("date year time day month".split())
_HEADS_DO = frozenset("attended held played received won".split())
"""Participles that, after a noun, name an action of the head on the tail (`award received`)."""
_MEMBERS = frozenset("member part component instance subclass subset".split())
"""Nouns for the head and not the tail, where `of` and another noun follow: `member of sports team`."""
_ADJECTIVES = frozenset("absent active adjacent available close common native present similar specific".split())
_TO_DO = frozenset("used known able unable likely intended designed thought needed required approved".split())
"""Words after which `to` begins a verb."""
_ARTICLES = ("a", "an", "the", "these")
_BE = {"is": False, "are": False, "was": True, "were": True}
"""Forms of `be`, and whether they are of the past."""
_HAVE = ("has", "have", "had")
_MODALS = frozenset("may can might could must should will would shall cannot".split())

_VERBS = frozenset(
    "accept accompany accuse achieve acquire activate adapt adhere administer adopt affect appear apply "
    "appoint arrive assess assist attend become begin believe belong bind bring build carry catalyse catalyze "
    "celebrate cite collaborate combine compete comply comprise conduct connect consist constitute consume "
    "contain contraindicate contribute converge convert cooperate correspond create define deliver depend "
    "depict derive describe destroy determine develop diagnose die differ discover discuss distribute eat "
    "emigrate emit employ enable encode engage enhance enter evolve explain facilitate follow generate give "
    "govern grow happen illustrate improve include incorporate indicate induce inhabit inherit inhibit "
    "initiate interact invade invent investigate involve know lack learn lie like live maintain manage "
    "manufacture marry mediate merge migrate modify modulate observe occupy occur operate organize originate "
    "oversee own participate perform pertain portray possess precede predict prescribe prevent produce "
    "promote protect provide publish receive recommend reduce refer regulate relate rely replace represent "
    "require reside respond retire sell send serve sing sit speak specialize stimulate suffer supervise "
    "suppress surround swim symbolize teach terminate transform translate transmit undergo write".split()
)
_ALSO_NOUNS = frozenset(
    "act block border branch breed cause coach command contract cover cure design direct drain end fall "
    "feature finance flow focus fund graduate head help host impact influence interface join lead link love "
    "map mention move name need offer order overlap play point purchase rate reach react release report "
    "result review rise run share sign signal sponsor stand star start study supply support target trade "
    "train travel treat trigger use vacation visit vote want work".split()
)
"""Verbs of which `-s` also makes the plural of a noun."""
_READ_AS_VERBS = frozenset("borders uses plays leads causes treats mentions targets".split())
"""Those of them that are verbs when they stand alone, but for dotted labels, where most relations are nouns."""
_INTRANSITIVE = frozenset(
    "act appear arrive belong branch collaborate compete contribute converge cooperate die emigrate engage "
    "evolve graduate happen interact live merge migrate move occur originate participate play react reside "
    "respond result retire serve star study travel vote work".split()
)
"""Verbs without a passive: `acted in` is active."""
_PAST = {
    **dict.fromkeys("won led made held met built founded taught bought sold".split(), ""),
    "wrote": "write", "ran": "run", "went": "go", "came": "come", "grew": "grow", "sang": "sing", "spoke": "speak",
    "fell": "fall", "took": "take", "gave": "give", "became": "become", "knew": "know", "saw": "see", "drove": "drive",
    "flew": "fly", "fought": "fight", "chose": "choose",
}  # fmt: skip
"""Irregular pasts with their verbs; those with none are also participles (`has won`)."""
_PARTICIPLES = frozenset(
    "become been born broken brought caught chosen drawn driven eaten fought found given grown hidden "
    "kept known left lost paid read run seen sent shown spent spoken stolen sung taken thrown told worn "
    "written".split()
)
_NO_ARTICLE = frozenset("part head guilty capable full composed typical characteristic indicative independent".split())
_COUNTED = frozenset(
    "advisor adviser candidate carrier component container contributor employee heir host hub investor marker member "
    "participant source student substrate successor target vector".split()
)
"""Nouns that take an article even without `of`: `is a participant in`."""
_SORTS = frozenset("category class type kind group family genus order set".split())
"""Nouns whose name follows `of`: the category of dogs are dogs."""
_UNCOUNTED = frozenset("people children members series species genus fauna flora next previous".split())
_NOT_ADVERBS = frozenset("family supply assembly reply anomaly ally early only monopoly fly".split())
_NOUN_ENDINGS = ("ss", "us", "is", "ions", "ments", "ers", "ors", "ings", "ities", "ists", "ances", "ences", "ants")


@dataclass(frozen=True)
class Verb:
    """Predicate of a relation's head, without the tail."""

    one: str
    """Of one head: `is associated with`, `may cause`, `belongs to`, `won`."""
    several: str
    """Of several: `are associated with`, `belong to`."""
    auxiliaries: tuple[str, str]
    """Words before the head in a question, singular and plural: `is` and `are`, `does` and `do`."""
    rest: tuple[str, str]
    """Words after the head in a question: `associated with`, `a tributary of` and `tributaries of`."""
    behind: str = ""
    """Words after a noun without `that is`: `located in`; empty if `that is` is needed."""


@dataclass(frozen=True)
class RelationPhrases:
    """English phrases of a relation."""

    noun: str
    """Noun for the tail with respect to the head; empty if only a verb expresses the relation."""
    verb: Verb | None
    domain: str
    """Noun for the heads: `film`; empty if unknown."""
    range: str
    named: str = ""
    """Words before the name of a tail: `the category of`, `the disease`."""

    @property
    def sayable(self) -> bool:
        """True if the words make sense: False for `is_a_category`, which has neither a noun for the tail nor a
        predicate."""
        return bool(self.noun or self.verb)


def plural(noun: str) -> str:
    """Return the plural of a noun phrase: `place of birth` gives `places of birth`."""
    head, rest = _parted(noun)
    first, _, last = head.rpartition(" ")
    if not many(head) and not last.endswith("ed"):
        if last == "person":
            last = "people"
        elif last == "child":
            last = "children"
        elif last.endswith("y") and last[-2:-1] not in "aeiou":
            last = f"{last[:-1]}ies"
        elif last.endswith(("s", "x", "z", "ch", "sh")) and not last.endswith("arch"):
            last = f"{last}es"
        else:
            last = f"{last}s"
    return f"{first} {last}".strip() + rest


def many(noun: str) -> bool:
    """True if a noun phrase looks like a plural."""
    head = _parted(noun)[0].rpartition(" ")[2]
    return head in _UNCOUNTED or (head.endswith("s") and not head.endswith(("ss", "us", "is")))


def article(noun: str) -> str:
    """Return `a` or `an`."""
    return "an" if noun[0] in "aeiou" else "a"


def words_of(label: str) -> str:
    """Return the words of a label in small letters; `spouse_s` is `spouse`."""
    words = " ".join(
        split_label(re.split(r"[./#:]", label.rstrip("/#"))[-1]).replace("_", " ").replace("-", " ").split()
    )
    return re.sub(r" s$", "", words.lower())


def read_label(label: str, domain: str = "", range_: str = "", dated: bool = False) -> RelationPhrases:
    """Parse a label into English phrases.

    Args:
        label: the label, as the graph has it.
        domain: noun for the heads; empty if unknown.
        range_: noun for the tails.
        dated: True if the tails are dates, so that `founded` takes a date and not a founded thing.
    """
    if len(parts := label.split("___")) == 3:  # `author___writes___paper`
        domain, label, range_ = words_of(parts[0]), parts[1], words_of(parts[2])
    dotted = re.fullmatch(r"\w+(\.\w+){2,}", label) is not None
    if not domain and dotted:
        domain = words_of(label.split(".")[-2])
    words = words_of(label) or label
    first, _, rest = words.partition(" ")
    if words in ("see", "see also"):
        return RelationPhrases("see-also reference", None, domain, range_)
    if first in _HAVE and (held := _held(rest)):
        return RelationPhrases(held, None, domain, range_)
    last = words.split()[-1]
    if first in _TAKING and rest and last not in PREPOSITIONS and not (first in ("from", "to") and last in _TIMES):
        return RelationPhrases(rest, None, domain, range_)
    # Capitals are how property graphs write verbs.
    alone = words in _READ_AS_VERBS if not label.isupper() else singular(words) != range_
    plain = re.sub(r" \(.*\)$", "", words).split()  # `regulates (molecular biology)`
    read = None if {"this", "here"} & set(plain) else _predicate(plain, domain, dotted, alone)
    if read is None:
        noun = words.removesuffix(f" {last}") if last in PREPOSITIONS else words
        return RelationPhrases("" if first in _BE or first in _MODALS else noun, None, domain, range_)
    if dated:
        done = [word for word in words.split() if word not in _BE and word not in PREPOSITIONS] or [words]
        return RelationPhrases("date " + " ".join(done).removeprefix("date "), None, domain, range_)
    verb, tail = read
    if not tail:
        return RelationPhrases("", verb, domain, range_)
    sort = _one(tail.removesuffix(" of"))
    named = f"the {sort} of" if tail.endswith(" of") else f"the {sort}"
    return RelationPhrases(sort if sort.split()[-1] in _SORTS else "", verb, domain, sort, named)


def _held(rest: str) -> str:
    """Return the noun after `has` (`genre` of `has_genre`), or "" if `has` is part of a verb."""
    words = rest.split()
    if not words or (words[-1] in PREPOSITIONS and words[-1] != "of"):
        return ""
    if words[0] in _PARTICIPLES or words[0] in _PAST or (len(words) == 1 and _past(rest)):
        return ""
    return " ".join(words[words[0] in _ARTICLES : len(words) - (words[-1] == "of")])


def _predicate(words: list[str], domain: str, dotted: bool, alone: bool) -> tuple[Verb, str] | None:
    """Parse words as a verb, with the noun for the tail; None for a noun, and for words without sense.

    Args:
        words: those of the label, W of them.
        domain: noun for the heads.
        dotted: True for a Freebase label, where most plurals are nouns.
        alone: True if a single word that is a verb or a plural is the verb.
    """
    first, rest = words[0], words[1:]
    if first in _BE:
        return _being(rest, _BE[first])
    if first in _MODALS:
        return _modal(first, rest)
    if first in _HAVE and rest:
        return _perfect(rest)
    if first in ("does", "do") and rest[:1] == ["not"] and rest[1:]:
        said, tail = _split(rest[1:])
        base = f"not {' '.join(said)}"
        return Verb(f"does {base}", f"do {base}", ("does", "do"), (base, base)), tail
    if rest and _adverb(first):
        found = _predicate(rest, domain, dotted, alone)
        return found and (_qualified(first, found[0]), found[1])
    last = words[-1]
    if not rest:
        if first in PREPOSITIONS or first in _HAVE:
            return _copula(first) if first in PREPOSITIONS else _does("have"), ""
        if (base := _base(first)) in _VERBS or (base in _ALSO_NOUNS and base != first and alone and not dotted):
            return (_does(base), "") if base != first or not dotted else None
        return (_did(first, _PAST.get(first, "")), "") if _past(first) else None
    ends = last in PREPOSITIONS
    if (base := _verb(words, dotted)) and not (not ends and rest[0] not in PREPOSITIONS and _past(last)):
        said, tail = _split(words)
        return _does(" ".join((base, *said[1:]))), tail
    did = "lead" if words[:2] == ["led", "to"] else _active(first)
    if did and (ends or rest[0] in PREPOSITIONS) and rest[0] != "by":
        said, tail = _split(words)
        return _did(" ".join(said), " ".join((did, *said[1:]))), tail
    if first in _PAST and not ends and rest[0] not in PREPOSITIONS:
        return _did(first, _PAST[first]), " ".join(rest)
    if (found := _of_nouns(words)) is not None:
        return found
    if last == "by" and not (_past(words[-2]) or words[-2] in _PARTICIPLES or words[-2] in PREPOSITIONS):
        return _does(f"have {' '.join(words)}"), ""
    if first in _MEMBERS and rest[0] == "of" and not ends:
        return _being(words)
    if ends and last != "of" and many(" ".join(words[:-1])):
        return None  # `countries within`
    if ends and first == domain.rpartition(" ")[2] and rest != ["of"]:
        words = rest  # `lake in` a country: `in` is enough
    if ends or (rest[0] in PREPOSITIONS and (_past(first) or first in _PARTICIPLES | _ADJECTIVES)):
        return _being(words, first == "born")
    return None


def _of_nouns(words: list[str]) -> tuple[Verb, str] | None:
    """Parse labels that begin with a noun: `awards won`, `events competed in`, `countries spoken in`."""
    last, verb = words[-1], words[-2]
    if last in _HEADS_DO or (last in _PAST and many(" ".join(words[:-1]))):
        return _did(last, _PAST.get(last, "")), " ".join(words[:-1])
    if last not in PREPOSITIONS or last == "by" or not words[:-2] or not many(what := " ".join(words[:-2])):
        return None
    if _base(verb) in _INTRANSITIVE:
        return _does(f"{_base(verb)} {last}"), what
    if did := _active(verb):
        return _did(f"{verb} {last}", f"{did} {last}"), what
    return (_copula(f"{verb} {last}"), what) if _past(verb) or verb in _PARTICIPLES else None


def _split(words: list[str]) -> tuple[list[str], str]:
    """Split a verb and its preposition from the noun for the tail: `located in country` is `located in`; `country`."""
    for place, word in enumerate(words):
        rest = words[place + 1 :]
        if word not in PREPOSITIONS or not rest:
            continue
        if word == "to" and place and words[place - 1] in _TO_DO and rest[0] in _VERBS | _ALSO_NOUNS:
            return (words, "") if rest[-1] in PREPOSITIONS else (words[: place + 2], " ".join(rest[1:]))
        if word == "of" and place > 1 and _base(words[0]) in _VERBS:
            break
        noun = rest[rest[0] in _ARTICLES :]
        if not noun or (noun[-1] in PREPOSITIONS and not (noun[-1] == "of" and noun[-2:-1] and noun[-2] in _SORTS)):
            return words, ""
        return words[: place + 1], " ".join(noun)
    if words[-1] in PREPOSITIONS:
        return words, ""
    return words[:1], " ".join(words[1 + (words[1:2] != [] and words[1] in _ARTICLES) :])


def _being(words: list[str], past: bool = False) -> tuple[Verb, str] | None:
    """Parse the words after a form of `be`."""
    adverbs = [word for word in words if word == "not" or _adverb(word)]
    words = words[len(adverbs) :] if words[: len(adverbs)] == adverbs else words
    if words in (["a"], ["an"]):
        words = ["a", "kind", "of"]
    if not any(word in PREPOSITIONS for word in words) or (words[0] in _ARTICLES and words[-1] not in PREPOSITIONS):
        return None
    said, tail = (words, "") if words[0] in _ARTICLES else _split(words)
    verb = _copula(" ".join(said), past)
    for adverb in reversed(adverbs):
        verb = _qualified(adverb, verb)
    return verb, tail


def _copula(words: str, past: bool = False) -> Verb:
    """Return the copular predicate: `located in`, `a tributary of` or `part of` something."""
    forms = ("was", "were") if past else ("is", "are")
    begins, _, rest = words.partition(" ")
    noun, after = _parted(words)
    bare = noun.endswith("ed") or begins in PREPOSITIONS or not _NO_ARTICLE.isdisjoint(noun.split())
    behind = words
    if begins in _ARTICLES:
        one, several, behind = words, plural(rest) if begins != "the" else f"the {plural(rest)}", ""
    elif words == "same as":
        one = several = "the same as"
    elif (after == " of" and not bare) or noun in _COUNTED:
        noun = _one(noun)
        one = f"{'the' if begins.endswith('est') else article(noun)} {noun}{after}"
        several, behind = plural(noun) + after, ""
    else:
        one = several = words
        behind = "" if words.endswith(" of") else words
    return Verb(f"{forms[0]} {one}", f"{forms[1]} {several}", forms, (one, several), behind)


def _does(base: str) -> Verb:
    """Return the present-tense predicate: `belong to`."""
    verb, space, rest = base.partition(" ")
    ending = "es" if verb.endswith(("s", "x", "z", "ch", "sh", "o")) else "s"
    third = "has" if verb == "have" else f"{verb[:-1]}ies" if re.search("[^aeiou]y$", verb) else verb + ending
    return Verb(third + space + rest, base, ("does", "do"), (base, base))


def _did(past: str, base: str = "") -> Verb:
    """Return the past-tense predicate: `won`, `acted in`. Without a base form, questions use the perfect."""
    return Verb(past, past, ("did", "did") if base else ("has", "have"), (base or past, base or past))


def _modal(modal: str, words: list[str]) -> tuple[Verb, str] | None:
    """Parse the words after a modal such as `may`."""
    aux = modal.removesuffix("not")
    before = "not " if aux != modal else ""
    if words[:1] == ["not"]:
        before, words = "not ", words[1:]
    if not words:
        return None
    if words[0] == "be":
        found = _being(words[1:])
        if found is None:
            return None
        rest: tuple[str, str] = (f"{before}be {found[0].rest[0]}", f"{before}be {found[0].rest[1]}")
        tail = found[1]
    else:
        said, tail = _split(words)
        rest = (before + " ".join(said), before + " ".join(said))
    one, several = (f"{aux} {form}".replace("can not", "cannot") for form in rest)
    return Verb(one, several, (aux, aux), rest), tail


def _perfect(words: list[str]) -> tuple[Verb, str]:
    """Parse the words after `has`: `been treated with`, `won`, or `effect on`, with `has` as the main verb."""
    lead = words[:1] if words[0] == "been" else []
    done = lead or words[0] in _PARTICIPLES or words[0] in _PAST or _past(words[0])
    if not done:
        return _does(f"have {' '.join(words)}"), ""
    said, tail = _split(words[len(lead) :]) if words[len(lead) :] else ([], "")
    rest = " ".join((*lead, *said))
    return Verb(f"has {rest}", f"have {rest}", ("has", "have"), (rest, rest)), tail


def _qualified(adverb: str, verb: Verb) -> Verb:
    """Move an adverb to its place."""
    one, several = (
        f"{aux} {adverb} {form.removeprefix(f'{aux} ')}" if form.startswith(f"{aux} ") else f"{adverb} {form}"
        for aux, form in zip(verb.auxiliaries, (verb.one, verb.several), strict=True)
    )
    behind = f"{adverb} {verb.behind}" if verb.behind else ""
    return Verb(one, several, verb.auxiliaries, (f"{adverb} {verb.rest[0]}", f"{adverb} {verb.rest[1]}"), behind)


def _verb(words: list[str], dotted: bool) -> str:
    """Return the base form of the verb that two or more words begin with; empty for anything else."""
    first, base = words[0], _base(words[0])
    known = base in _VERBS or (base in _ALSO_NOUNS and not dotted and words[1] not in ("of", "by"))
    if first == base:
        plain = words[1] in PREPOSITIONS and not dotted
        return base if plain and known and base in _VERBS | _INTRANSITIVE else ""
    if known:
        return base
    unknown = len(words) == 2 and words[1] in _AFTER_VERBS and first not in _UNCOUNTED and first != "friends"
    return base if unknown and first.endswith("s") and not first.endswith(_NOUN_ENDINGS) else ""


def _base(word: str) -> str:
    """Return the base form of a verb: `flows` gives `flow`; a word without such an ending stays as it is."""
    if word in ("has", "does", "goes"):
        return {"has": "have", "does": "do", "goes": "go"}[word]
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _past(word: str) -> bool:
    return word in _PAST or (word.endswith("ed") and not word.endswith("eed"))


def _active(word: str) -> str:
    """Return the base form of a past that is no participle of the passive: `acted`, `ran`; empty for others."""
    if _PAST.get(word):
        return _PAST[word]
    if not word.endswith("ed"):
        return ""
    bases = (word[:-2], word[:-1], f"{word[:-3]}y", word[:-3])
    return next((base for base in bases if base in _INTRANSITIVE), "")


def _adverb(word: str) -> bool:
    return word == "also" or (word.endswith("ly") and word not in _NOT_ADVERBS)


def _one(noun: str) -> str:
    """Return the singular of a noun phrase."""
    head, rest = _parted(noun)
    first, _, last = head.rpartition(" ")
    return f"{first} {singular(last)}".strip() + rest if many(head) and last not in ("series", "species") else noun


def _parted(noun: str) -> tuple[str, str]:
    """Part a noun phrase before its first preposition: `place of birth` gives `place` and ` of birth`."""
    words = noun.split(" ")
    place = next((n for n, word in enumerate(words) if n and word in PREPOSITIONS), len(words))
    return " ".join(words[:place]), "".join(f" {word}" for word in words[place:])
