"""The KG-Linker: a language model writes entities, relation paths, queries and draft answers for a question."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Literal, get_args

from byokg.errors import ConfigError, at_least
from byokg.graph.schema_text import SchemaRenderer
from byokg.linking.relation_matcher import RelationMatcher
from byokg.llm.messages import Message, prompt_messages
from byokg.llm.model import LanguageModel
from byokg.llm.parsing import Listing, blocks, read_answers, read_list, read_object, read_paths, read_queries
from byokg.llm.reply_blocks import reply_schema
from byokg.llm.shown_names import question_names
from byokg.prompts import PromptLibrary
from byokg.text.names import locate
from byokg.types import (
    Artifacts,
    Context,
    EntityId,
    GraphQuery,
    Language,
    Mention,
    Metapath,
    ProposedPath,
    Question,
)

Task = Literal["entities", "paths", "query", "answers", "bfsql"]

TASKS: tuple[Task, ...] = ("entities", "paths", "query", "answers", "bfsql")
"""All tasks, in the order in which a prompt lists them."""

PAPER_TASKS: tuple[Task, ...] = ("entities", "paths", "query", "answers")
"""Artifacts of the paper's KG-Linker."""

TAGS: Mapping[Language, str] = MappingProxyType({"cypher": "opencypher", "sparql": "sparql"})
"""Between which tags a language model writes a query of each language; prompts' sections are named after them."""

PathLanguage = Literal["metapaths", "paths"]

STAGE = "kg_linker"

BFSQL_HOPS = 2
"""Edges from a seed that a BFS-QL request reaches at most, unless set otherwise."""

_STATEMENTS = 2
"""Number of consecutive statements of one language that are run: the last ones."""


class LlmLinker:
    """Lets a language model write all artifacts of a round in one call.

    The first round has question and schema; later ones also the evidence so far, and may end with FINISH.

    Args:
        model: writes the artifacts.
        schema: renders the part of the graph's schema relevant to a question.
        describe: writes the evidence so far as text for the prompt.
        tasks: artifacts to write; a task left out is an ablation.
        languages: query languages of the graph; `query` is one query in each, and none without any.
        prompts: the prompts; None takes those of the package.
        schema_tokens: budget of the schema's text.
        path_language: form of the task `paths`: relation paths such as `r1 -> r2`, or one path query.
        relations: separates relations from entities that a model wrote into a path; None goes by spelling.
        solved: writes demonstrations similar to a question, below the schema.
        spotted: detects the entities of a question, without a model; the first round's schema shows their
            neighbourhood, later ones' that of linked entities.
        max_hops: edges from a seed that a BFS-QL request may have; the setting of its retriever.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "KG-Linker", Figures 3 to 7.
    Differs: the schema holds the part relevant to the question, within a budget; the paper gives all of it.
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
        max_hops: int = BFSQL_HOPS,
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
        self._max_hops = max_hops

    def propose(self, question: Question, context: Context) -> Artifacts:
        """Ask for the artifacts of the next round.

        Entities given with the question come first. Everything is as the model wrote it: nothing is tied to the graph.
        A FINISH counts where something was found already.

        Raises:
            LlmError: the model gave no usable reply.
        """
        later = bool(context.rounds)
        shown = self._describe(context) if later else ""
        messages, schema = self._messages(question, context, shown), reply_schema(self.tags)
        reply = self._model.reply(messages, stage=STAGE, question_id=question.id, schema=schema)
        return self.read(reply.text, question, later, shown)

    def _messages(self, question: Question, context: Context, shown: str) -> list[Message]:
        later = bool(context.rounds)
        values = {
            "tasks": self.tasks_text(later),
            "schema": self.schema_text(question, context),
            "question": question.text,
        }
        if later:
            filled = self._prompts["kg_linker_context"].fill(graph_context=shown, **values)
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
        """Return the sections of a prompt for the tasks; `later` rounds may end with FINISH."""
        sections = [section for task in self._tasks for section in self._sections(task, later)]
        return self._prompts.tasks(sections, max_hops=str(self._max_hops))

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

    def read(self, text: str, question: Question, later: bool, shown: str = "") -> Artifacts:
        """Read artifacts out of a reply to a prompt with these tasks.

        A FINISH counts in `later` rounds: among the entities, or as all of another result if the reply asks for nothing
        else. A name in the question or in `shown`, the graph context of the prompt, is no FINISH.
        """
        shown = f"{question.text}\n{shown}"
        ended = {tag for tag in self.tags if tag != "entities" and self._is_finish(text, tag, shown)}
        asked = {task for task in self._tasks if task not in ended}
        known = question_names(question.text)
        entities = read_list(text, "entities", shown=shown, known=known) if "entities" in asked else Listing()
        given = tuple(Mention(id, ids=(id,)) for id in question.topic_ids)
        queries = tuple(self._queries(text, ended))
        # In place of a path query a model may write plain relation paths, which are shorter.
        plain = "paths" in asked and not any(query.language == "paths" for query in queries)
        paths = tuple(ProposedPath(path, 1.0, directed=False) for path in self._paths(text)) if plain else ()
        bfsql = _bfsql(text) if "bfsql" in asked else None
        return Artifacts(
            mentions=(*given, *(locate(name, question.text) for name in entities.items)),
            paths=paths,
            queries=queries,
            draft_answers=tuple(answer.name for answer in read_answers(text, bare=False)) if "answers" in asked else (),
            bfsql=bfsql,
            finished=later and (entities.finished or bool(ended and not (entities.items or paths or queries or bfsql))),
        )

    def _is_finish(self, text: str, tag: str, shown: str) -> bool:
        """Return whether a result is the word FINISH alone, which in a path may also be a relation."""
        listing = read_list(text, tag, shown=shown)
        relation = tag == "paths" and self._relations is not None and self._relations.spelled("FINISH")
        return listing.finished and not listing.items and not relation

    def _paths(self, text: str) -> tuple[Metapath, ...]:
        relations = self._relations
        if relations is None:
            return read_paths(text)
        return read_paths(text, relations.spelled, relations.unplain)

    def _queries(self, text: str, ended: Set[str]) -> Iterator[GraphQuery]:
        """Yield the written queries: mostly one for each language; none of the tags `ended`."""
        for language in (each for each in self._languages if TAGS[each] not in ended):
            yield from (GraphQuery(language, query) for query in read_queries(text, TAGS[language])[-_STATEMENTS:])
        if self._path_queries and "pathql" not in ended:
            yield from (GraphQuery("paths", query) for query in read_queries(text, "pathql"))


def _bfsql(text: str) -> str | None:
    """Return the written request: as JSON with sorted keys, or unchanged if it is no JSON object."""
    written = next((block.strip() for block in blocks(text, "bfsql") if block.strip()), None)
    found = None if written is None else read_object(text, "bfsql")
    return written if found is None else json.dumps(found, ensure_ascii=False, sort_keys=True)


class GoldEntities:
    """Proposes the entities that came with the question, without a call: for retrievers that need no more."""

    def propose(self, question: Question, context: Context) -> Artifacts:
        """Return mentions of the given entities."""
        return Artifacts(mentions=tuple(Mention(id, ids=(id,)) for id in question.topic_ids))
