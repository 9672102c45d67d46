"""Parts of a question that its answer does not use: constraints without evidence.

The words of a question are covered by the mentions that the evidence starts from or passes, by executed operations,
and by the relations, types and properties on the answer's paths. Restrictive words of the rest are reported: names,
numbers, quoted texts, comparisons and negations, and unexplained nouns of an adjunct (`in winter`). Verbs, and nouns
with dependents, paraphrase relations and types too freely to be separated from them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from byokg.graph.property_view import is_value
from byokg.graph.store import GraphStore
from byokg.index.embedders import shipped_embedder
from byokg.offline.lexicon import SILENT, comparative, load_lexicon, rule, superlative
from byokg.offline.parse import REQUESTS
from byokg.offline.parse_constraints import QueryConstraints, best_number, parse_constraints, parse_path_question
from byokg.offline.schema_linking import NEGATIONS, RelationSimilarity
from byokg.retrieval.verbalize import disambiguate
from byokg.text.names import (
    FUNCTION_WORDS,
    QUESTION_WORDS,
    WORD,
    normalize_name,
    on_one_line,
    related,
    singular,
    split_label,
    split_words,
    untitled,
)
from byokg.types import AnswerItem, ComputedEvidence, Context, EntityId, LinkedEntity, Mention, PathEvidence


@dataclass(frozen=True)
class CoverageSettings:
    """Thresholds and limits of question coverage."""

    explained: float = 0.25
    """Similarity from which a relation or type explains a word, in [0, 1]."""
    characters: int = 1000
    """Characters of a question whose operations are parsed, too."""
    further: float = 0.9
    """Probability factor of a further part of a kind, which is seldom another constraint."""
    tied: float = 0.001
    """Difference of link scores below which names resemble a mention equally."""
    stem: int = 3
    """Letters beyond which the beginning of a word has its meaning."""
    parts: int = 5
    """Nodes that are parts of another, from which that is their whole."""
    few_words: int = 3
    """Length of a question, in words, up to which its capitals carry no information."""
    before_noun: int = 3
    """Words before a noun among which its preposition stands."""
    nodes: int = 100
    """Nodes of the evidence whose names and types are read."""
    unrelated: float = 0.8
    """Share of unexplained content from which a question is about something else, in [0, 1]."""
    written: int = 6
    """Unused parts that are written out."""


_SETTINGS = CoverageSettings()

PartKind = Literal["name", "number", "quoted", "restriction", "adjunct", "relation", "widened"]


@dataclass(frozen=True)
class UnusedPart:
    """A part of a question that its answer does not use."""

    text: str
    kind: PartKind
    start: int
    """Where it begins in the question."""
    instead: str = ""
    """Its replacement, if any."""


IMMATERIAL: Mapping[PartKind, float] = MappingProxyType(
    {"name": 0.5, "number": 0.4, "quoted": 0.3, "restriction": 0.5, "adjunct": 0.35, "relation": 0.4, "widened": 0.5}
)
"""Probability that an answer is right in spite of an unused part, against one without; see `benchmarks`."""

_QUOTED = re.compile(r"\"([^\"]{1,200})\"|“([^”]{1,200})”|«([^»]{1,200})»|(?<!\w)'([^']{1,200})'(?!\w)")
_NUMBER = re.compile(r"[\w.:/+()-]+")
_CLAUSE_END = re.compile(r"\s*(?:[?.!,;:]|$)")
_SENTENCE_END = re.compile(r"(?:^|[?.!:])[\W_]*$")
_JOINED = re.compile(r"[\s.'’&-]{1,3}")
_PREPOSITIONS = frozenset(
    "in on at during by under near inside outside through across with without after before since until from to against "
    "according amid amidst throughout despite unlike beyond beneath".split()
)
_GENERAL = frozenset(
    "both each same one ones other others common another any anyone someone anybody somebody either all every few some "
    "world present day today now person persons people thing things way ways word words total general particular "
    "database graph data list home charge order turn fact addition part whole time times once half law laws".split()
)
"""Words of an adjunct that restrict nothing: pronouns and quantifiers, and what everything in a graph is of."""
_ONLY = frozenset("only solely exclusively except excluding without top best worst average".split())
"""Words that restrict an answer, besides negations, comparatives and superlatives."""
_LEADING = frozenset("the a an his her its their our your my this that these those".split())
_READ = b"\x02"
"""Marks a character that a demand was read from, of which it keeps no word: names and adjuncts there are not used."""


@dataclass(frozen=True)
class Ambiguity:
    """Nodes that a mention may mean alike, and which of them an answer takes."""

    taken: str = ""
    """The node taken and the others, in words; empty if there are no others."""
    fitting: int = 1
    """How many nodes fit."""
    namesakes: bool = False
    """Whether they have one name, and do not only resemble the mention equally."""


@dataclass(frozen=True)
class _Used:
    """Evidence of an answer."""

    steps: Sequence[int]
    nodes: frozenset[EntityId]
    words: frozenset[str]
    """Singulars of words of types, names and results on the way."""
    types: frozenset[str]
    """Words of types alone."""
    paths: Sequence[PathEvidence]
    everything: bool
    """Whether it is worked out from all nodes of a type, since nothing is named."""


class QuestionCoverage:
    """Finds the parts of a question that an answer does not use; thread-safe.

    Args:
        store: the graph, without values as nodes.
        steps: schema linking.
    """

    def __init__(self, store: GraphStore, steps: RelationSimilarity) -> None:
        self._store = store
        self._steps = steps

    def unused(self, context: Context, items: Sequence[AnswerItem]) -> tuple[UnusedPart, ...]:
        """Return the parts of a question that an answer does not use, in its order; none if it has more than 1,000
        characters.

        Args:
            context: evidence for the question.
            items: the answers, at least one.
        """
        text, first = context.question, context.rounds[0]
        if len(text) > _SETTINGS.characters:
            return ()
        mentions, constraints = first.artifacts.mentions, parse_constraints(context.question, first.artifacts.mentions)
        computed = next((item for item in context.evidence if isinstance(item, ComputedEvidence)), None)
        used = self._used(context, items, computed)
        done = _executed(constraints, computed)
        linked: dict[Mention, set[EntityId]] = {}
        for entity in first.linked.entities:
            linked.setdefault(entity.mention, set()).add(entity.id)
        by_operation = {mentions[place] for place in _operands(constraints, done)}
        covered = bytearray(len(text))  # characters: 1 where nothing is left to look at
        parts = _restrictions(text, constraints, mentions, done, covered)
        for one in (mention for mention in mentions if mention.start >= 0):
            covered[one.start : one.end] = b"\x01" * (one.end - one.start)
            if one in by_operation or not used.nodes.isdisjoint(linked.get(one, ())):
                continue
            if not all(map(self._explainer(used), split_words(one.text))):
                parts.append(UnusedPart(one.text, "name", one.start))
        parts += self._left(text, mentions, used, covered)
        if computed is None or computed.operation == "count":
            parts += self._unrelated(text, constraints, mentions, used, linked)
        return tuple(sorted(parts, key=lambda part: (part.start, part.text)))

    @rule("unrelated question", "who is the best singer", lambda self, context, items: False)
    def is_unrelated(self, context: Context, items: Sequence[AnswerItem]) -> bool:
        """True if the mentions, relations, types, names and operations behind an answer explain little of a question.

        Its words are weighed by importance. A linked mention is explained as far as its words are those of the node's
        name, another word by its similarity. The threshold drops no right answer to 1,000
        dev questions over four natural graphs.

        Args:
            context: evidence for the question.
            items: the answers, at least one.
        """
        text, first = context.question[: _SETTINGS.characters], context.rounds[0]
        constraints = parse_constraints(text, first.artifacts.mentions)
        computed = next((item for item in context.evidence if isinstance(item, ComputedEvidence)), None)
        used = self._used(context, items, computed)
        of, steps, importance = self._steps.refresh(), list(used.steps), shipped_embedder().importance
        linked: dict[Mention, list[LinkedEntity]] = {}
        for entity in first.linked.entities:
            linked.setdefault(entity.mention, []).append(entity)
        total = left = 0.0
        for span in WORD.finditer(text):
            word = span.group().casefold()
            if word in SILENT or word in REQUESTS:
                continue
            mention = next((one for one in linked if one.start <= span.start() < one.end), None)
            nodes = [] if mention is None else [one for one in linked[mention] if computed or one.id in used.nodes]
            if nodes:
                known = max(_certainty(one) for one in nodes)
            elif singular(word) in used.words or (
                computed is not None and constraints.rest[span.start() : span.end()] != span.group()
            ):
                known = 1.0
            else:
                means = (of.label_similarity(word), of.type_similarity(word), of.range_similarity(word))
                known = max((float(each[steps].max()) for each in means), default=0.0) if steps else 0.0
            weight = importance(word)
            total, left = total + weight, left + weight * (1 - known)
        return left >= _SETTINGS.unrelated * total

    def ambiguous(self, context: Context, items: Sequence[AnswerItem]) -> Ambiguity:
        """Return the chosen node of each mention with several fitting ones.

        Nodes of one name, or of equal similarity to the mention, fit if the same relations lead from them elsewhere.

        Args:
            context: evidence for the question.
            items: the answers, at least one.
        """
        linked = context.rounds[0].linked.entities
        if len(linked) == len({one.mention for one in linked}):
            return Ambiguity()
        computed = next((item for item in context.evidence if isinstance(item, ComputedEvidence)), None)
        used = self._used(context, items, computed)
        walked = {
            (item.source, item.relations): item.ends for item in context.evidence if isinstance(item, PathEvidence)
        }
        words = frozenset(split_words(context.question))
        said: list[str] = []
        most, namesakes = 1, False
        for one in linked:
            paths = [path for path in used.paths if path.source == one.id]
            alone = not used.paths and computed is not None and one == _first(linked, one.mention)
            rivals = [
                other
                for other in linked
                if _alike(one, other, words)
                and (alone or any(walked.get((other.id, path.relations), path.ends) != path.ends for path in paths))
            ]
            if rivals and (paths or alone):
                said.append(self._taken(one, rivals))
                most = max(most, 1 + len(rivals))
                namesakes |= any(normalize_name(rival.name) == normalize_name(one.name) for rival in rivals)
        return Ambiguity("; ".join(said), most, namesakes)

    def _taken(self, one: LinkedEntity, rivals: Sequence[LinkedEntity]) -> str:
        """Write which node a mention was taken for, and which others it may mean."""
        nodes = self._store.nodes([one.id, *(rival.id for rival in rivals)])
        apart = disambiguate(nodes)
        told = [f"{node.name} ({apart.get(node.id, f'id {node.id}')})" for node in nodes]
        return f'"{one.mention.text}" taken as {told[0]}; also {", ".join(told[1:])}'

    def _used(self, context: Context, items: Sequence[AnswerItem], computed: ComputedEvidence | None) -> _Used:
        """Return the steps, nodes and words that the first answer stands on."""
        by_id = {item.id: item for item in context.evidence}
        cited = items[0].citations if computed is None else computed.uses
        paths = [item for id in cited if isinstance(item := by_id.get(id), PathEvidence)]
        of = self._steps.refresh()
        nodes = dict.fromkeys(path.source for path in paths)
        nodes |= dict.fromkeys(item.id for item in items[: _SETTINGS.nodes] if item.id is not None)
        nodes |= dict.fromkeys(node for path in paths for walk in path.paths for node in walk.nodes)
        if computed is not None and not paths:  # a fact about the mention
            nodes |= dict.fromkeys(one.id for one in context.rounds[0].linked.entities)
        found = self._store.nodes([node for node in nodes if not is_value(node)][: _SETTINGS.nodes])
        words = {word for node in found for word in split_words(f"{split_label(' '.join(node.types))} {node.name}")}
        if computed is not None:
            words.update(split_words(split_label(computed.text)))
        return _Used(
            sorted({step for path in paths for step in of.encode_path(path.relations)}),
            frozenset(nodes),
            frozenset(map(singular, words)),
            frozenset(word for node in found for type in node.types for word in split_words(split_label(type))),
            paths,
            everything=not paths and not context.rounds[0].linked.entities,
        )

    def _explainer(self, used: _Used) -> Callable[[str], bool]:
        """Return a function that is True for a word that the steps, types or names on the way explain."""
        of, steps = self._steps.refresh(), list(used.steps)

        def explained(word: str) -> bool:
            if word in SILENT or singular(word) in used.words:
                return True
            if len(word) > _SETTINGS.stem and any(
                type.startswith(word) for type in used.types
            ):  # Mount Kilimanjaro, a mountain
                return True
            if untitled(f"{word} x") == "x":  # King George
                return True
            means = of.label_similarity, of.type_similarity, of.range_similarity
            if steps and any(float(each(word)[steps].max()) >= _SETTINGS.explained for each in means):
                return True
            return any(len(other) > _SETTINGS.stem and related(word, other) for other in used.words)

        return explained

    def _unrelated(
        self,
        text: str,
        constraints: QueryConstraints,
        mentions: tuple[Mention, ...],
        used: _Used,
        linked: Mapping[Mention, Collection[EntityId]],
    ) -> list[UnusedPart]:
        """Return the words of a question if the path explains none of them, and a mention that the path replaced by
        another.

        A path from the mention to the single thing that it is part of, without a word for that relation, and from there
        to several nodes, answers for the whole: rivers of France need not flow through Paris.
        """
        parsed = parse_path_question(text, mentions, self._steps.has_relation)
        telling = [parsed.words[place] for place in parsed.content_tokens]
        explained, of = self._explainer(used), self._steps.refresh()
        walked = [(path, of.encode_path(path.relations)) for path in used.paths]
        beyond = [(path, steps) for path, steps in walked if steps and of.hops(steps) > max(1, parsed.links)]
        parts: list[UnusedPart] = []
        if telling and (beyond or (constraints.counted and used.types)) and not any(map(explained, telling)):
            lower = text.casefold()
            parts += [UnusedPart(word, "relation", lower.find(word)) for word in telling if word in lower]
        for path, steps in beyond:
            said = (
                max(float(of.label_similarity(word)[steps[0]]), float(of.type_similarity(word)[steps[0]]))
                for word in telling
            )
            source = next((one for one, ids in linked.items() if path.source in ids), None)
            unsaid = source is not None and len(path.ends) > 1 and max(said, default=0.0) < _SETTINGS.explained
            if source is not None and unsaid and (whole := self._whole(path, steps[0])):
                parts.append(UnusedPart(source.text, "widened", max(0, source.start), whole))
        return parts

    def _whole(self, path: PathEvidence, step: int) -> str:
        """Return the name of the one node that a path passes first, if others are parts of it by that step; or ""."""
        passed = {walk.nodes[1] for walk in path.paths}
        if len(passed) != 1 or any(map(is_value, passed)):
            return ""
        counts = self._store.relation_counts(np.asarray(self._store.numbers(list(passed)), np.int64))
        back = (counts.relation == step >> 1) & (counts.inverse != bool(step & 1))
        return self._store.nodes(list(passed))[0].name if int(counts.count[back].sum()) >= _SETTINGS.parts else ""

    def _left(self, text: str, mentions: Sequence[Mention], used: _Used, covered: bytearray) -> list[UnusedPart]:
        """Return the words outside mentions and operations."""
        explained = self._explainer(used)
        parts: list[UnusedPart] = []
        for quoted in _QUOTED.finditer(text):
            start, end = quoted.span(quoted.lastindex or 0)
            if covered[start] != 1 and not all(map(explained, split_words(text[start:end]))):
                parts.append(UnusedPart(text[start:end], "quoted", start))
                covered[start:end] = b"\x01" * (end - start)
        for number in _NUMBER.finditer(text):
            start, end = number.start(), number.start() + len(number.group().rstrip(".:/+()-"))
            if not any(map(str.isdigit, number.group())):
                continue
            if 1 not in covered[start:end] and not all(map(explained, split_words(text[start:end]))):
                parts.append(UnusedPart(text[start:end], "number", start))
            covered[start:end] = b"\x01" * (end - start)
        return [*parts, *self._words(text, mentions, used, covered)]

    def _words(self, text: str, mentions: Sequence[Mention], used: _Used, covered: bytearray) -> list[UnusedPart]:
        """Return the words that are left and restrict the answer: names, comparisons and negations, adjuncts."""
        explained = self._explainer(used)
        spans = list(WORD.finditer(text))
        small = {span.group() for span in spans if span.group()[:1].islower()} - FUNCTION_WORDS - QUESTION_WORDS
        titled = not small and len(spans) > _SETTINGS.few_words
        missing = {part for one in mentions if one.start < 0 for part in split_words(one.text)}
        parts: list[UnusedPart] = []
        run: list[re.Match[str]] = []
        for span in spans:
            word = span.group()
            folded = word.casefold()
            if covered[span.start()] == 1 or folded in missing or folded in REQUESTS or explained(folded):
                continue
            if word[:1].isupper() and not titled and not _SENTENCE_END.search(text, 0, span.start()):
                run = run if run and _JOINED.fullmatch(text, run[-1].end(), span.start()) else []
                run.append(span)
                if len(run) > 1:
                    parts.pop()
                parts.append(UnusedPart(text[run[0].start() : span.end()], "name", run[0].start()))
            elif _restricts(folded):
                if covered[span.start()]:
                    continue
                parts.append(UnusedPart(word, "restriction", span.start()))
            elif folded not in _GENERAL and (used.everything or _is_adjunct(text, span)):
                parts.append(UnusedPart(word, "adjunct", span.start()))
        return parts


def _certainty(one: LinkedEntity) -> float:
    """Return the evidence that a mention means a node, in [0, 1].

    A name that only resembles the mention, or has more words, is no evidence if everyday words in small letters may
    have been meant: the `singer` of a question need not be Isaac Bashevis Singer.
    """
    if one.method not in ("fuzzy", "dense") or normalize_name(one.name) == normalize_name(one.mention.text):
        return 1.0
    words = split_words(one.mention.text)
    small = one.mention.text[:1].islower() or one.mention.start == 0
    everyday = small and all(len(shipped_embedder().tokens(word)[0]) == 1 for word in words)
    shared = sum(map(len, set(words) & set(split_words(one.name)))) / max(1, len("".join(split_words(one.name))))
    return (0.0 if everyday else 0.5) + 0.5 * shared


def _is_adjunct(text: str, span: re.Match[str]) -> bool:
    """Return True for the head of a prepositional phrase at the end of a clause: `in winter?`."""
    if not _CLAUSE_END.match(text, span.end()) or span.group().casefold() in load_lexicon("order")["units"]:
        return False
    before = [one.group().casefold() for one in WORD.finditer(text[: span.start()])][-_SETTINGS.before_noun :]
    while before and before[-1] in _LEADING:
        before.pop()
    return bool(before) and before[-1] in _PREPOSITIONS


def _first(linked: Sequence[LinkedEntity], mention: Mention) -> LinkedEntity:
    """Return the first node that a mention was linked to."""
    return next(one for one in linked if one.mention == mention)


def _alike(one: LinkedEntity, other: LinkedEntity, words: Collection[str]) -> bool:
    """Return True for two nodes that a mention may mean alike: by one name, or by names that resemble it equally.

    Not if the question has more words of the first one's name: `the Nobel for chemistry`.
    """
    if one.id == other.id or one.mention != other.mention or one.method == "given":
        return False
    same = normalize_name(one.name) == normalize_name(other.name)
    tied = one.method == other.method and abs(one.score - other.score) < _SETTINGS.tied and one.method != "exact"
    own, others = (sum(word in words for word in set(split_words(each.name))) for each in (one, other))
    return same or (tied and own <= others)


def _restricts(word: str) -> bool:
    """Return True for a word that restricts an answer: a negation, a comparative, a superlative, `only`."""
    return word in NEGATIONS or word in _ONLY or comparative(word) is not None or superlative(word) is not None


def _executed(constraints: QueryConstraints, computed: ComputedEvidence | None) -> Collection[str]:
    """Return the executed fields of a demand; all, if the operation did its part on a path."""
    if computed is None:
        return ()
    by_operation = {"verification": ("verify", "times"), "sequence": ("next",), "union": ("union",)}
    if computed.operation == "comparison" and not computed.uses:
        return ("order", "union")
    every = ("count", "order", "times", "thresholds", "without", "lacking", "union")
    return by_operation.get(computed.operation, every)


def _operands(constraints: QueryConstraints, done: Collection[str]) -> set[int]:
    """Return the mentions that the operations that were done used, by number."""
    bounds = tuple(bound.mention for bound in constraints.thresholds if bound.mention is not None)
    following = () if constraints.next is None else constraints.next.mentions
    used = {"thresholds": bounds, "next": following, "without": constraints.without, "union": constraints.union}
    return {mention for field, mentions in used.items() if field in done for mention in mentions}


def _restrictions(
    text: str, constraints: QueryConstraints, mentions: Sequence[Mention], done: Collection[str], covered: bytearray
) -> list[UnusedPart]:
    """Return the constraints that were not executed; mark all parsed ones as covered."""
    parts = _phrases(constraints)
    told = {word for phrase in parts.values() for word in split_words(phrase)}
    for span in WORD.finditer(text):
        if span.group().casefold() in told:
            covered[span.start() : span.end()] = b"\x01" * (span.end() - span.start())
        elif text[span.start() : span.end()] != constraints.rest[span.start() : span.end()]:
            covered[span.start() : span.end()] = _READ * (span.end() - span.start())
    if constraints.order is not None and constraints.order.size > 1:
        _, start, end = best_number(text) or (1, 0, 0)
        covered[start:end] = b"\x01" * (end - start)
    said = [phrase for field, phrase in parts.items() if field.split()[0] not in done]
    said += [mentions[place].text for place in constraints.without] if "without" not in done else []
    lower = text.lower()
    phrases = [" ".join(phrase.split()) for phrase in said]
    return [UnusedPart(phrase, "restriction", max(0, lower.find(phrase.lower()))) for phrase in phrases if phrase]


def _phrases(constraints: QueryConstraints) -> dict[str, str]:
    """Return how a question says each part of a demand but mentions, by its field, of several with their number."""
    following = constraints.next if constraints.next is not None and constraints.next.step else None
    parts = {
        "count": constraints.count,
        "order": "" if constraints.order is None or constraints.order.words == "compared" else constraints.order.words,
        "next": "" if following is None else following.words,
        "lacking": constraints.lacking,
        **{f"times {number}": test.words for number, test in enumerate(constraints.times)},
        **{f"thresholds {number}": bound.words for number, bound in enumerate(constraints.thresholds)},
    }
    return {field: phrase.replace("§", " ") for field, phrase in parts.items() if phrase}


def immaterial(parts: Sequence[UnusedPart]) -> float:
    """Return the probability that an answer is right in spite of its unused parts, against one without any."""
    product, met = 1.0, set[PartKind]()
    for part in parts:
        product *= _SETTINGS.further if part.kind in met else IMMATERIAL[part.kind]
        met.add(part.kind)
    return product


def quoted(parts: Sequence[UnusedPart]) -> str:
    """Return unused parts in quotes, each once; empty if there are none."""
    written = (f'"{part.text}"' + f" (instead: {on_one_line(part.instead)})" * bool(part.instead) for part in parts)
    names = list(dict.fromkeys(written))
    more = f" and {len(names) - _SETTINGS.written} more" if len(names) > _SETTINGS.written else ""
    return ", ".join(names[: _SETTINGS.written]) + more
