"""The KG-Linker: a language model writes entities, relation paths, queries and draft answers for a question."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from byokg.errors import ConfigError, at_least
from byokg.graph.schema_text import EVERY_RELATION, RelationLimits, SchemaRenderer
from byokg.linking.entities import ALIAS
from byokg.linking.parts import Parts
from byokg.llm.messages import Message, prompt_messages
from byokg.llm.parsing import Listing, read_answers, read_list, read_object, read_paths, read_queries
from byokg.llm.reply_blocks import blocks, reply_schema
from byokg.llm.shown_names import question_names
from byokg.text.names import locate
from byokg.types import Artifacts, Context, EntityId, GraphQuery, Language, Mention, ProposedPath, Question

Task = Literal["entities", "paths", "pathql", "query", "answers", "bfsql"]
"""All tasks, in the order in which a prompt lists them. `paths` are relation paths such as `r1 -> r2`; `pathql` is one
path query in their place."""

TASKS: tuple[Task, ...] = ("entities", "paths", "query", "answers", "bfsql")
"""Tasks of `pipeline=byokg`."""

PAPER_TASKS: tuple[Task, ...] = ("entities", "paths", "query", "answers")
"""Artifacts of the paper's KG-Linker."""

TAGS: Mapping[Language, str] = MappingProxyType({"cypher": "opencypher", "sparql": "sparql"})
"""Between which tags a language model writes a query of each language; prompts' sections are named after them."""

STAGE = "kg_linker"

BFSQL_HOPS = 2
"""Edges from a seed that a BFS-QL request reaches at most, unless set otherwise."""

_STATEMENTS = 2
"""Number of consecutive statements of one language that are run: the last ones."""


@dataclass(eq=False)
class LlmLinker:
    """Lets a language model write all artifacts of a round in one call.

    The first round has question and schema; later ones also the evidence so far, and may end with FINISH.

    Args:
        parts: language model, prompts, schema, and the writer of the evidence so far; their relation matcher separates
            relations from entities in a written path.
        tasks: artifacts to write; a task left out is an ablation.
        languages: query languages of the graph; `query` is one query in each, and none without any.
        schema_tokens: budget of the schema's text.
        schema: renders the relevant part of the graph's schema; None takes that of the parts.
        solved: writes demonstrations similar to a question, below the schema.
        spotted: detects the entities of a question, without a model; the first round's schema shows their
            neighbourhood, later ones' that of linked entities.
        max_hops: edges from a seed that a BFS-QL request may have; the setting of its retriever.
        relations: relations in the schema at most.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "KG-Linker", Figures 3 to 7.
    Differs: the schema holds the part relevant to the question, within a budget; the paper gives all of it.
    """

    parts: Parts
    tasks: Sequence[Task] = PAPER_TASKS
    languages: Sequence[Language] = ("cypher",)
    schema_tokens: int = 2000
    schema: SchemaRenderer | None = None
    solved: Callable[[str], str] = lambda question: ""
    spotted: Callable[[str], Sequence[EntityId]] = lambda question: ()
    max_hops: int = BFSQL_HOPS
    relations: RelationLimits = EVERY_RELATION

    def __post_init__(self) -> None:
        known: tuple[Task, ...] = get_args(Task)
        if not self.tasks or not set(self.tasks) <= set(known):
            raise ConfigError(
                f"tasks={','.join(self.tasks) or '(none)'} cannot be asked of the KG-Linker; choose from "
                f"{', '.join(known)}"
            )
        if set(self.tasks) == {"query"} and not self.languages:
            raise ConfigError(
                "tasks=query leaves nothing to ask for: the graph runs no queries; choose graph=arcadedb (openCypher) "
                "or graph=oxigraph (SPARQL)"
            )
        at_least(1, "leaves no room for a schema", schema_tokens=self.schema_tokens)
        self.tasks = tuple(task for task in known if task in self.tasks)
        self.languages = tuple(dict.fromkeys(self.languages)) if "query" in self.tasks else ()
        self._renderer = self.schema or self.parts.schema

    def propose(self, question: Question, context: Context) -> Artifacts:
        """Ask for the artifacts of the next round.

        Entities given with the question come first. Everything is as the model wrote it: nothing is tied to the graph.
        A FINISH counts where something was found already.

        Raises:
            LlmError: the model gave no usable reply.
        """
        later = bool(context.rounds)
        shown = self.parts.context(context) if later else ""
        messages, schema = self._messages(question, context, shown), reply_schema(self.written_tags)
        reply = self.parts.model.reply(messages, stage=STAGE, question_id=question.id, schema=schema)
        return self.read(reply.text, question, later, shown)

    def _messages(self, question: Question, context: Context, shown: str) -> list[Message]:
        later = bool(context.rounds)
        values = {
            "tasks": self.tasks_text(later),
            "schema": self.schema_text(question, context),
            "question": question.text,
        }
        if later:
            filled = self.parts.prompts["kg_linker_context"].fill(graph_context=shown, **values)
        else:
            filled = self.parts.prompts["kg_linker"].fill(**values)
        return prompt_messages(filled)

    @property
    def tags(self) -> list[str]:
        """Return between which tags the results of the tasks stand, in the order of the tasks."""
        queries = [TAGS[language] for language in self.languages]
        return [tag for task in self.tasks for tag in (queries if task == "query" else [task])]

    @property
    def written_tags(self) -> tuple[str, ...]:
        """Return the tags that the tasks' prompts name, a user's own among them, in the order of the tasks."""
        return self.parts.prompts.tags(section for task in self.tasks for section in self._sections(task, False))

    def tasks_text(self, later: bool) -> str:
        """Return the sections of a prompt for the tasks; `later` rounds may end with FINISH."""
        sections = [section for task in self.tasks for section in self._sections(task, later)]
        return self.parts.prompts.tasks(sections, max_hops=str(self.max_hops))

    def schema_text(self, question: Question, context: Context) -> str:
        """Return the part of the schema that matters for a round, and solved questions that are similar."""
        around = self._around(question, context)
        schema = self._renderer.render(question.text, self.schema_tokens, around, self.relations).text
        return "\n\n".join(part for part in (schema.rstrip("\n"), self.solved(question.text)) if part)

    def _around(self, question: Question, context: Context) -> Sequence[EntityId]:
        """Return the entities that a round's schema is about."""
        linked = [one.id for earlier in context.rounds for one in earlier.linked.entities]
        return list(dict.fromkeys(linked)) or question.topic_ids or self.spotted(question.text)

    def _sections(self, task: Task, later: bool) -> list[str]:
        """Return which prompts ask for a task."""
        if task == "query":
            return [f"task_{TAGS[language]}" for language in self.languages]
        return ["task_entities_context" if later and task == "entities" else f"task_{task}"]

    def read(self, text: str, question: Question, later: bool, shown: str = "") -> Artifacts:
        """Read artifacts out of a reply to a prompt with these tasks.

        A FINISH counts in `later` rounds: among the entities, or as all of another result if the reply asks for nothing
        else. A name in the question or in `shown`, the graph context of the prompt, is no FINISH.
        """
        shown = f"{question.text}\n{shown}"
        ended = set()
        if "FINISH" in text.upper():  # few replies have the word
            ended = {tag for tag in self.tags if tag != "entities" and self._is_finish(text, tag, shown)}
        asked = {task for task in self.tasks if task not in ended}
        known = question_names(question.text)
        entities = Listing()
        if "entities" in asked:
            entities = read_list(text, "entities", shown=shown, known=known, aliases=True)
        given = tuple(Mention(id, ids=(id,)) for id in question.topic_ids)
        queries = tuple(self._queries(text, ended))
        # In place of a path query a model may write plain relation paths, which are shorter.
        plain = not asked.isdisjoint(("paths", "pathql")) and all(query.language != "paths" for query in queries)
        read = read_paths(text, self.parts.relations.spelled, self.parts.relations.unplain) if plain else ()
        paths = tuple(ProposedPath(path, 1.0, directed=False) for path in read)
        bfsql = _bfsql(text) if "bfsql" in asked else None
        return Artifacts(
            mentions=(*given, *(_mention(name, question.text) for name in entities.items)),
            paths=paths,
            queries=queries,
            draft_answers=tuple(answer.name for answer in read_answers(text, bare=False)) if "answers" in asked else (),
            bfsql=bfsql,
            finished=later and (entities.finished or bool(ended and not (entities.items or paths or queries or bfsql))),
        )

    def _is_finish(self, text: str, tag: str, shown: str) -> bool:
        """Return whether a result is the word FINISH alone, which in a path may also be a relation."""
        listing = read_list(text, tag, shown=shown)
        relation = tag == "paths" and self.parts.relations.spelled("FINISH")
        return listing.finished and not listing.items and not relation

    def _queries(self, text: str, ended: Set[str]) -> Iterator[GraphQuery]:
        """Yield the written queries: mostly one for each language; none of the tags `ended`."""
        for language in (each for each in self.languages if TAGS[each] not in ended):
            yield from (GraphQuery(language, query) for query in read_queries(text, TAGS[language])[-_STATEMENTS:])
        if "pathql" in self.tasks and "pathql" not in ended:
            yield from (GraphQuery("paths", query) for query in read_queries(text, "pathql"))


def _mention(written: str, question: str) -> Mention:
    """Return the mention of a name, or of one thing by several names, in a question."""
    return Mention(written) if ALIAS in written and written not in question else locate(written, question)


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
