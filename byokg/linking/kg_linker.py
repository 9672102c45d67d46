"""The KG-Linkers: what to look for in the graph, from a question.

`LlmLinker` has a language model read the question, the schema and what was found so far, and write entities, relation
paths, queries and draft answers. `OfflineLinker` needs none: `MentionSpotter` finds the pieces of a question that name
something in the graph, and relation paths are grown out of what they mean and ranked by embeddings and the graph's own
words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from byokg.errors import ConfigError, EntityNotFound, at_least
from byokg.graph.paths import Growth, grow, labels, start
from byokg.graph.schema_text import SchemaRenderer
from byokg.graph.store import GraphStore
from byokg.linking.entities import EntityLinker
from byokg.linking.path_scorer import MAX_HOPS, Aligned, PathScorer, QuestionScorer, Weights, logarithms
from byokg.linking.relation_meaning import RelationMatcher
from byokg.llm.layouts import reply_schema
from byokg.llm.messages import Message, prompt_messages
from byokg.llm.model import LanguageModel
from byokg.llm.parsing import Listing, blocks, read_answers, read_list, read_object, read_paths, read_queries
from byokg.prompts import PromptLibrary
from byokg.text import FUNCTION_WORDS, QUESTION_WORDS, WORD, Reading, locate, normalize_name, read_question
from byokg.types import Artifacts, Context, EntityId, GraphQuery, Language, Mention, Metapath, ProposedPath, Question

_ARTICLES = frozenset("the a an".split())
_LETTERS = 4
"""A shorter word or text is not looked for approximately: too much resembles it."""
_RUN = 8
"""Words of a text that is looked for approximately, at most."""


@dataclass(frozen=True)
class SpottingSettings:
    """What makes a piece of text a mention; found on the dev splits of MetaQA, WebQSP and atlas."""

    same_case: float = 1.5
    """Worth of a name with capitals that is written just so."""
    other_case: float = 0.7
    """Worth of a name where the text has capitals, but not those of the name."""
    explained: float = 0.9
    """How much of a word's importance is lost when a relation of the graph explains it."""
    another: float = 0.5
    """A further mention needs this share of the best one's worth."""
    most: int = 3
    """Mentions at most."""
    misspelt_cutoff: float = 0.85
    """Lowest score of a misspelt name, in [0, 1]: shares of letters in common."""
    fuzzy_cutoff: float = 0.88
    """Lowest score of a part of a name, in [0, 1]."""
    strange: float = 0.5
    """A word that no name has is taken for misspelt if no relation explains it as well as this."""


class MentionSpotter:
    """Finds mentions by comparing every run of words with the names of the graph.

    Args:
        entities: holds the index over the names of the graph, made when the first question is looked at.
        importance: how much a word tells, about 1 on average.
        explained: how well some relation of the graph explains a word, in [0, 1].
        familiar: whether a word is an everyday one, and so not misspelt.
        settings: worths and thresholds.
    """

    def __init__(
        self,
        entities: EntityLinker,
        importance: Callable[[str], float],
        explained: Callable[[str], float],
        familiar: Callable[[str], bool] = lambda word: False,
        settings: SpottingSettings | None = None,
    ) -> None:
        self._entities = entities
        self._importance = importance
        self._explained = explained
        self._familiar = familiar
        self.settings = settings or SpottingSettings()

    def spot(self, text: str) -> list[Mention]:
        """Return the mentions in a question, the most telling first; none overlap.

        Names that stand in the text (case, accents and punctuation folded) compete with misspelt ones, which are
        looked for around words that nothing accounts for. Only when there is neither, misspelt names are looked for
        everywhere, and then parts of names.
        """
        words = _Words(text)
        content = [position for position, word in enumerate(words.folded) if len(word) >= _LETTERS and _tells(word)]
        strange = [position for position in content if self._strange(words.folded[position])]
        found = (
            [*self._exact(words), *self._misspelt(words, strange)]
            or self._misspelt(words, content)
            or self._parts(words)
        )
        found.sort(key=lambda item: (-item[0], item[1].start))
        kept: list[Mention] = []
        for worth, mention in found:
            if len(kept) == self.settings.most or (kept and worth < self.settings.another * found[0][0]):
                break
            if all(mention.end <= other.start or mention.start >= other.end for other in kept):
                kept.append(mention)
        return kept

    def _exact(self, words: _Words) -> list[tuple[float, Mention]]:
        """Look up every run that is not longer than the names that start with its first word."""
        names = self._entities.names
        longest = [names.longest_from(normalize_name(word)) for word in words.folded]
        found = []
        for first, word in enumerate(words.folded):
            most = longest[first]
            if word in _ARTICLES and first + 1 < len(longest):  # names are indexed without their article
                most = max(most, 1 + longest[first + 1])
            for last in range(first, min(len(longest), first + most)):
                mention = words.mention(first, last)
                if len(names.exact(mention.text)):
                    worth = self._worth(words, first, last, len(names.spelled(mention.text)) > 0)
                    if worth > 0:
                        found.append((worth, mention))
        return found

    def _misspelt(self, words: _Words, around: list[int]) -> list[tuple[float, Mention]]:
        """Compare the runs around some words with all names, letter by letter; keep the best run for each word.

        Comparing takes a while on a large graph, so only the most telling words are looked at.
        """
        found = []
        telling = sorted(around, key=lambda position: -self._importance(words.folded[position]))
        for position in telling[: self.settings.most]:
            runs = [
                (first, last)
                for first in range(max(0, position - _RUN + 1), position + 1)
                for last in range(position, min(len(words.folded), first + _RUN))
            ]
            mentions = [words.mention(first, last) for first, last in runs]
            word = normalize_name(words.folded[position])
            near = self._entities.names.closest(
                [mention.text for mention in mentions], word, self.settings.misspelt_cutoff
            )
            scores = [0.0 if match is None else match.score for match in near]
            at = scores.index(max(scores))
            if (match := near[at]) is not None:
                worth = self._worth(words, *runs[at], match.name != match.name.casefold())
                found.append((match.score * worth, mentions[at]))
        return found

    def _parts(self, words: _Words) -> list[tuple[float, Mention]]:
        """Compare the tails of each run of words with all names, in part."""
        found = []
        run: list[int] = []
        for position, word in enumerate([*words.folded, ""]):
            if word and word not in QUESTION_WORDS and (word not in FUNCTION_WORDS or run):
                run.append(position)
                continue
            while run and words.folded[run[-1]] in FUNCTION_WORDS:
                run.pop()
            for first in run[-_RUN:]:
                mention = words.mention(first, run[-1])
                if len(mention.text) < _LETTERS:
                    continue
                for match in self._entities.names.search([mention.text], 1, self.settings.fuzzy_cutoff)[0]:
                    shorter, longer = sorted((len(match.name), len(mention.text)))
                    told = sum(map(self._told, words.folded[first : run[-1] + 1]))
                    found.append((match.score * told * shorter / longer, mention))
            run = []
        return found

    def _worth(self, words: _Words, first: int, last: int, same: bool) -> float:
        """Say how much a run tells that is a name; `same` where the name has the capitals of the run."""
        surface, folded = words.mention(first, last).text, words.folded[first : last + 1]
        capitals = surface != surface.casefold()
        # The first word of a sentence has a capital whatever it is.
        if same and capitals and not first == last == 0:
            return self.settings.same_case * sum(map(self._importance, folded))
        if not any(map(_tells, folded)):
            return 0.0
        worth = sum(map(self._told, folded[1:] if folded[0] in _ARTICLES else folded))
        return worth * (self.settings.other_case if capitals and not same else 1.0)

    def _told(self, word: str) -> float:
        """Return how much a word tells beyond what relations explain."""
        return self._importance(word) * (1 - self.settings.explained * self._explained(word))

    def _strange(self, word: str) -> bool:
        """Tell whether a word is in no name, explained by no relation, and unfamiliar."""
        return (
            not self._entities.names.has_word(normalize_name(word))
            and self._explained(word) < self.settings.strange
            and not self._familiar(word)
        )


class _Words:
    """The words of a text, and where they stand."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._spans = list(WORD.finditer(text))
        self.folded = [span.group().casefold() for span in self._spans]

    def mention(self, first: int, last: int) -> Mention:
        """Return the text from one word to another, both included."""
        start, end = self._spans[first].start(), self._spans[last].end()
        return Mention(self._text[start:end], start, end)


def _tells(word: str) -> bool:
    return word not in FUNCTION_WORDS and word not in QUESTION_WORDS


Float = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Topic:
    """One node that one mention may mean."""

    node: int
    id: EntityId
    mention: int


@dataclass(frozen=True)
class Considered:
    """The P metapaths that were scored for a question."""

    reading: Reading
    growths: list[Growth]
    """The metapaths in parts, with the nodes they reach."""
    features: Float
    """(P, F) in the order of `Weights`."""
    named: npt.NDArray[np.bool_]
    """(P,) whether they end at nodes that have names."""


class OfflineLinker:
    """Proposes mentions and metapaths for a question, by what the graph holds and what its labels mean.

    Metapaths are grown from the topic entities hop by hop, in both directions, keeping the most promising; only
    those that exist are proposed. Every length competes with every other, which decides the number of hops.

    Args:
        store: the graph.
        entities: links mentions.
        spotter: finds mentions when the question comes without topic entities.
        scorer: scores metapaths against the question.
        max_hops: edges a metapath may have, 1 to 3; an edge to a nameless node and the edge out of it make one hop
            for the scorer, and still two edges here.
        beam: metapaths lengthened at each hop; those that stand at a nameless node are always lengthened.
        sample: nodes looked at in each step of growing.
        top_k: metapaths proposed for each topic entity.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "KG-Linker", whose artifacts it writes.
    Differs: writes no query, no draft answers and no BFS-QL; one round is all it has to say.
    """

    def __init__(
        self,
        store: GraphStore,
        entities: EntityLinker,
        spotter: MentionSpotter,
        scorer: PathScorer,
        max_hops: int = MAX_HOPS,
        beam: int = 32,
        sample: int = 256,
        top_k: int = 10,
    ) -> None:
        if not 1 <= max_hops <= MAX_HOPS:
            raise ConfigError(f"max_hops={max_hops} is out of range; the offline linker walks 1 to {MAX_HOPS} hops")
        at_least(1, "finds nothing", beam=beam, sample=sample, top_k=top_k)
        self._store = store
        self._entities = entities
        self._spotter = spotter
        self.scorer = scorer
        self._max_hops = max_hops
        self._beam = beam
        self._sample = sample
        self._top_k = top_k

    def propose(self, question: Question, context: Context) -> Artifacts:
        """Return mentions, and metapaths best first, each with the entity it starts from.

        Raises:
            EntityNotFound: none of the topic entities given with the question is in the store.
            ConfigError: the hop count given with the question is out of range.
        """
        if context.rounds:
            return Artifacts(finished=True)
        if question.hops is not None and not 1 <= question.hops <= MAX_HOPS:
            raise ConfigError(
                f"question {question.id!r} asks for {question.hops} hops; the offline linker walks 1 to {MAX_HOPS}"
            )
        _, mentions, scorer, grown = self._explore(question)
        return Artifacts(mentions=mentions, paths=self._ranked(scorer, grown, question.hops))

    def considered(self, question: Question, start: tuple[Mention, int] | None = None) -> Considered:
        """Return what is scored for a question, for training and diagnosis.

        Args:
            question: the question.
            start: a mention, and the node to grow from, in place of what the question comes with.
        """
        reading, _, scorer, grown = self._explore(question, start)
        parts = [aligned for *_, aligned in grown]
        if not parts:
            return Considered(reading, [], np.empty((0, len(fields(Weights))), np.float32), np.empty(0, np.bool_))
        named = [~scorer.nameless(growth.steps[:, -1]) for _, growth, _ in grown]
        return Considered(reading, [growth for _, growth, _ in grown], scorer.features(parts), np.concatenate(named))

    def _explore(
        self, question: Question, start: tuple[Mention, int] | None = None
    ) -> tuple[Reading, tuple[Mention, ...], QuestionScorer, list[tuple[_Topic, Growth, Aligned]]]:
        """Read the question and grow metapaths out of every topic entity."""
        if start is None:
            mentions, topics = self._mentions(question)
        else:
            mentions, topics = [(start[0], start[0].text)], [_Topic(start[1], EntityId(""), 0)]
        missing = [name for mention, name in mentions if mention.start < 0]
        reading = read_question(question.text, [mention for mention, _ in mentions], missing)
        scorer = self.scorer.question(reading)
        grown: list[tuple[_Topic, Growth, Aligned]] = []
        for topic in topics:
            others = [other.node for other in topics if other.mention != topic.mention]
            avoid = np.unique(np.array([topic.node, *others], np.int64))
            grown += [(topic, *level) for level in self._grow(scorer, topic.node, avoid, question.hops)]
        return reading, tuple(mention for mention, _ in mentions), scorer, grown

    def _mentions(self, question: Question) -> tuple[list[tuple[Mention, str]], list[_Topic]]:
        """Return each mention with the name of what it means, and the nodes to start from."""
        if question.topic_ids:
            nodes = self._store.nodes(self._known(question))
            mentions = [locate(node.name, question.text, (node.id,)) for node in nodes]
        else:
            mentions = self._spotter.spot(question.text)
        linked = self._entities.link_all(mentions, question.text)
        ids = [candidate.id for candidates in linked for candidate in candidates]
        numbers = iter(self._store.numbers(ids).tolist())
        topics: dict[int, _Topic] = {}  # a node that two mentions may mean is walked from once
        for position, candidates in enumerate(linked):
            for candidate in candidates:
                node = next(numbers)
                topics.setdefault(node, _Topic(node, candidate.id, position))
        named = [(mention, found[0].name if found else "") for mention, found in zip(mentions, linked, strict=True)]
        return named, list(topics.values())

    def _known(self, question: Question) -> list[EntityId]:
        """Return the given topic entities that the graph has; a question needs one of them at least."""
        known: list[EntityId] = []
        missing: EntityNotFound | None = None
        for topic in dict.fromkeys(question.topic_ids):
            try:
                self._store.numbers([topic])
                known.append(topic)
            except EntityNotFound as error:
                missing = missing or error
        if missing is not None and not known:
            raise missing
        return known

    def _grow(self, scorer: QuestionScorer, topic: int, avoid: Int64, hops: int | None) -> list[tuple[Growth, Aligned]]:
        """Grow metapaths out of one topic entity: one entry a hop."""
        growth, chosen, levels = start(topic), np.zeros(1, np.int64), []
        choices = np.zeros((1, 0), np.float32)
        most = self._max_hops if hops is None else hops
        for hop in range(1, most + 1):
            growth = grow(self._store, growth, chosen, avoid, self._sample)
            if len(growth) == 0:
                break
            siblings = np.bincount(growth.parents)[growth.parents]
            choices = np.concatenate((choices[growth.parents], logarithms(siblings)[:, None]), axis=1)
            aligned = scorer.align(growth.steps, choices, np.diff(growth.bounds))
            levels.append((growth, aligned))
            if hop < most:
                nameless = scorer.nameless(growth.steps[:, -1])
                promise = np.where(nameless, np.inf, scorer.promise([aligned])[0])
                order = np.argsort(-promise, kind="stable")
                chosen = np.sort(order[: self._beam + int(nameless.sum())])
        return levels

    def joins(
        self, scorer: QuestionScorer, grown: Sequence[tuple[_Topic, Growth, Aligned]]
    ) -> list[tuple[list[tuple[int, int, int, int]], Aligned]]:
        """Pair metapaths of two mentions that end in the same nodes.

        Returns:
            For each pair of parts of `grown` some metapaths of which meet, which ones: part, path, part, path.
        """
        tops = self._tops(scorer, grown)
        found = []
        for one, other in combinations(range(len(grown)), 2):
            if grown[one][0].mention == grown[other][0].mention or not len(tops[one]) or not len(tops[other]):
                continue
            pairs, counts = _meeting(grown[one][1], tops[one], grown[other][1], tops[other])
            if len(pairs):
                places = [(one, a, other, b) for a, b in pairs.tolist()]
                found.append((places, scorer.join(grown[one][2], grown[other][2], pairs, counts)))
        return found

    def _tops(self, scorer: QuestionScorer, grown: Sequence[tuple[_Topic, Growth, Aligned]]) -> list[Int64]:
        """Return for each part the most promising metapaths that end at named nodes."""
        if len({topic.mention for topic, *_ in grown}) < 2:
            return [np.empty(0, np.int64)] * len(grown)
        tops = []
        for (_, growth, _), promise in zip(grown, scorer.promise([part for *_, part in grown]), strict=True):
            kept = np.flatnonzero(~scorer.nameless(growth.steps[:, -1]))
            tops.append(np.sort(kept[np.argsort(-promise[kept], kind="stable")[:_JOINED]]))
        return tops

    def _ranked(
        self, scorer: QuestionScorer, grown: list[tuple[_Topic, Growth, Aligned]], hops: int | None
    ) -> tuple[ProposedPath, ...]:
        if not grown:
            return ()
        proposed: dict[int, list[ProposedPath]] = {}
        for (topic, growth, _), scores in zip(grown, scorer.scores([part for *_, part in grown]), strict=True):
            if hops is not None and growth.steps.shape[1] != hops:
                continue
            kept = np.flatnonzero(~scorer.nameless(growth.steps[:, -1]))
            best = kept[np.argsort(-scores[kept], kind="stable")[: self._top_k]]
            proposed.setdefault(topic.node, []).extend(
                ProposedPath(labels(self._store, growth.steps[path]), float(scores[path]), topic.id)
                for path in best.tolist()
            )
        # Python's sort is stable, so shorter metapaths come before longer ones of the same score.
        tops = [sorted(paths, key=lambda path: -path.score)[: self._top_k] for paths in proposed.values()]
        return tuple(sorted((path for paths in tops for path in paths), key=lambda path: -path.score))


_JOINED = 24
"""Metapaths of each length and topic that are paired with those of another topic, at most."""


def _meeting(one: Growth, some: Int64, other: Growth, others: Int64) -> tuple[Int64, Int64]:
    """Find which metapaths end in the same nodes: (J, 2) their places, and (J,) how many nodes these are."""
    parts = []
    for growth, chosen in ((one, some), (other, others)):
        reached = [growth.reached(path) for path in chosen.tolist()]
        owner = np.repeat(np.arange(len(chosen)), [len(ends) for ends in reached])
        parts.append((owner, np.concatenate(reached)))
    common = np.intersect1d(parts[0][1], parts[1][1])
    tables = []
    for (owner, ends), chosen in zip(parts, (some, others), strict=True):
        table = np.zeros((len(chosen), len(common)), np.float32)
        place = np.minimum(np.searchsorted(common, ends), max(0, len(common) - 1))
        inside = common[place] == ends if len(common) else np.zeros(len(ends), np.bool_)
        table[owner[inside], place[inside]] = 1
        tables.append(table)
    counts = (tables[0] @ tables[1].T).astype(np.int64)  # whole numbers, so exact in any order
    first, second = np.nonzero(counts)
    return np.stack((some[first], others[second]), axis=1), counts[first, second]


Task = Literal["entities", "paths", "query", "answers", "bfsql"]

TASKS: tuple[Task, ...] = ("entities", "paths", "query", "answers", "bfsql")
"""All tasks, in the order in which a prompt lists them."""

PAPER_TASKS: tuple[Task, ...] = ("entities", "paths", "query", "answers")
"""What the paper's KG-Linker writes."""

TAGS: Mapping[Language, str] = MappingProxyType({"cypher": "opencypher", "sparql": "sparql"})
"""Between which tags a language model writes a query of each language; prompts' sections are named after them."""

PathLanguage = Literal["metapaths", "paths"]

STAGE = "kg_linker"

_STATEMENTS = 2
"""Statements of one language that are run, of several that a model wrote one after the other: the last ones."""


class LlmLinker:
    """Asks a language model for all artifacts of a round in one call.

    The first round sees question and schema; later ones also what was found so far, and may say FINISH.

    Args:
        model: who is asked.
        schema: renders the part of the graph's schema that matters for a question.
        describe: writes what was found so far as text for the prompt.
        tasks: what the model is asked to write; a task left out is an ablation.
        languages: what the graph can be queried in; `query` asks for one query in each, and for none where there is
            none.
        prompts: the prompts; None takes those that ship with the package.
        schema_tokens: budget of the schema's text.
        path_language: what the task `paths` asks for: relation paths such as `r1 -> r2`, or one path query.
        relations: tells relations from entities that a model wrote into a path; None goes by how they are spelled.
        solved: writes solved questions that are similar to a question, to stand below the schema.
        spotted: finds the entities that a question may mean, without a model; the first round's schema shows what lies
            around them, later ones' what lies around linked entities.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "KG-Linker", Figures 3 to 7.
    Differs: the schema holds what is relevant for the question, within a budget, where the paper gives all of it.
    """

    def __init__(
        self,
        model: LanguageModel,
        schema: SchemaRenderer,
        describe: Callable[[Context], str],
        tasks: Sequence[Task] = PAPER_TASKS,
        languages: Sequence[Language] = ("cypher",),
        prompts: PromptLibrary | None = None,
        schema_tokens: int = 2000,
        path_language: PathLanguage = "metapaths",
        relations: RelationMatcher | None = None,
        solved: Callable[[str], str] = lambda question: "",
        spotted: Callable[[str], Sequence[EntityId]] = lambda question: (),
    ) -> None:
        unknown = [task for task in tasks if task not in TASKS]
        if unknown or not tasks:
            raise ConfigError(
                f"tasks={','.join(tasks) or '(none)'} cannot be asked of the KG-Linker; choose from {', '.join(TASKS)}"
            )
        if set(tasks) == {"query"} and not languages:
            raise ConfigError(
                "tasks=query leaves nothing to ask for: the graph runs no queries; choose graph=arcadedb (openCypher) "
                "or graph=oxigraph (SPARQL)"
            )
        at_least(1, "leaves no room for a schema", schema_tokens=schema_tokens)
        self._model = model
        self._schema = schema
        self._describe = describe
        self._tasks = tuple(task for task in TASKS if task in tasks)
        self._languages = tuple(dict.fromkeys(languages)) if "query" in tasks else ()
        self._prompts = prompts or PromptLibrary()
        self._schema_tokens = schema_tokens
        if path_language not in get_args(PathLanguage):
            raise ConfigError(f"path_language={path_language} is not known; use {' or '.join(get_args(PathLanguage))}")
        self._relations = relations
        self._solved = solved
        self._path_queries = path_language == "paths" and "paths" in tasks
        self._spotted = spotted

    def propose(self, question: Question, context: Context) -> Artifacts:
        """Ask for the artifacts of the next round.

        Entities given with the question come first. Everything is as the model wrote it: nothing is tied to the graph.
        A FINISH counts where something was found already.

        Raises:
            LlmError: the model gave no usable reply.
        """
        messages, schema = self._messages(question, context), reply_schema(self.tags)
        reply = self._model.reply(messages, stage=STAGE, question_id=question.id, schema=schema)
        return self.read(reply.text, question, bool(context.rounds))

    def _messages(self, question: Question, context: Context) -> list[Message]:
        later = bool(context.rounds)
        values = {
            "tasks": self.tasks_text(later),
            "schema": self.schema_text(question, context),
            "question": question.text,
        }
        if later:
            filled = self._prompts["kg_linker_context"].fill(graph_context=self._describe(context), **values)
        else:
            filled = self._prompts["kg_linker"].fill(**values)
        return prompt_messages(filled)

    @property
    def tags(self) -> list[str]:
        """Return between which tags the results of the tasks stand, in the order of the tasks."""
        queries = ["pathql"] if self._path_queries else ["paths"]
        of = {"paths": queries, "query": [TAGS[language] for language in self._languages]}
        return [tag for task in self._tasks for tag in of.get(task, [task])]

    def tasks_text(self, later: bool) -> str:
        """Return the sections of a prompt that ask for the tasks; `later` rounds may say FINISH."""
        return self._prompts.tasks(section for task in self._tasks for section in self._sections(task, later))

    def schema_text(self, question: Question, context: Context) -> str:
        """Return the part of the schema that matters for a round, and solved questions that are similar."""
        schema = self._schema.render(question.text, self._schema_tokens, self._around(question, context)).text
        return "\n\n".join(part for part in (schema.rstrip("\n"), self._solved(question.text)) if part)

    def _around(self, question: Question, context: Context) -> Sequence[EntityId]:
        """Return the entities that a round's schema is about."""
        linked = [one.id for earlier in context.rounds for one in earlier.linked.entities]
        return list(dict.fromkeys(linked)) or question.topic_ids or self._spotted(question.text)

    def _sections(self, task: Task, later: bool) -> list[str]:
        """Return which prompts ask for a task."""
        if task == "query":
            return [f"task_{TAGS[language]}" for language in self._languages]
        if task == "paths" and self._path_queries:
            return ["task_pathql"]
        return ["task_entities_context" if later and task == "entities" else f"task_{task}"]

    def read(self, text: str, question: Question, later: bool) -> Artifacts:
        """Read artifacts out of a reply to a prompt with these tasks; a FINISH counts in `later` rounds."""
        asked = set(self._tasks)
        entities = read_list(text, "entities") if "entities" in asked else Listing()
        given = tuple(Mention(id, ids=(id,)) for id in question.topic_ids)
        queries = tuple(self._queries(text))
        # A model that was asked for a path query may write plain relation paths, which say the same in fewer words.
        plain = "paths" in asked and not any(query.language == "paths" for query in queries)
        return Artifacts(
            mentions=(*given, *(locate(name, question.text) for name in entities.items)),
            paths=tuple(ProposedPath(path, 1.0, directed=False) for path in self._paths(text)) if plain else (),
            queries=queries,
            draft_answers=tuple(answer.name for answer in read_answers(text, bare=False)) if "answers" in asked else (),
            bfsql=_bfsql(text) if "bfsql" in asked else None,
            finished=later and entities.finished,
        )

    def _paths(self, text: str) -> tuple[Metapath, ...]:
        relations = self._relations
        return read_paths(text, None if relations is None else relations.spelled)

    def _queries(self, text: str) -> Iterator[GraphQuery]:
        """Yield the queries that were written: mostly one for each language asked for."""
        for language in self._languages:
            yield from (GraphQuery(language, query) for query in read_queries(text, TAGS[language])[-_STATEMENTS:])
        if self._path_queries:
            yield from (GraphQuery("paths", query) for query in read_queries(text, "pathql"))


def _bfsql(text: str) -> str | None:
    """Return the request that was written: as JSON with sorted keys, or as it is where it is no JSON object."""
    written = next((block.strip() for block in blocks(text, "bfsql") if block.strip()), None)
    found = None if written is None else read_object(text, "bfsql")
    return written if found is None else json.dumps(found, ensure_ascii=False, sort_keys=True)


class GivenEntities:
    """Proposes the entities that came with the question, and asks nobody: for retrievers that need no more."""

    def propose(self, question: Question, context: Context) -> Artifacts:
        """Return mentions of the given entities."""
        return Artifacts(mentions=tuple(Mention(id, ids=(id,)) for id in question.topic_ids))
