"""The KG-Linker: a language model reads question, schema and what was found, and writes what to look for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, get_args

from byokg.errors import ConfigError, at_least
from byokg.graph.schema_text import SchemaRenderer
from byokg.linking.question_words import locate
from byokg.llm.messages import Message, prompt_messages
from byokg.llm.model import LanguageModel
from byokg.llm.parsing import Listing, blocks, read_answers, read_list, read_object, read_paths, read_query
from byokg.prompts.template import PromptLibrary
from byokg.types import Artifacts, Context, GraphQuery, Language, Mention, ProposedPath, Question

Task = Literal["entities", "paths", "query", "answers", "bfsql"]

TASKS: tuple[Task, ...] = ("entities", "paths", "query", "answers", "bfsql")
"""All tasks, in the order in which a prompt lists them."""

PAPER_TASKS: tuple[Task, ...] = ("entities", "paths", "query", "answers")
"""What the paper's KG-Linker writes."""

TAGS: Mapping[Language, str] = MappingProxyType({"cypher": "opencypher", "sparql": "sparql"})
"""Between which tags a language model writes a query of each language; prompts' sections are named after them."""

PathLanguage = Literal["metapaths", "paths"]

STAGE = "kg_linker"


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
        self._path_queries = path_language == "paths" and "paths" in tasks

    def propose(self, question: Question, context: Context) -> Artifacts:
        """Ask for the artifacts of the next round.

        Entities given with the question come first. Everything is as the model wrote it: nothing is tied to the graph.
        A FINISH counts where something was found already.

        Raises:
            LlmError: the model gave no usable reply.
        """
        reply = self._model.reply(self._messages(question, context), stage=STAGE, question_id=question.id)
        return self._read(reply.text, question, bool(context.rounds))

    def _messages(self, question: Question, context: Context) -> list[Message]:
        later = bool(context.rounds)
        values = {
            "tasks": self._prompts.tasks(section for task in self._tasks for section in self._sections(task, later)),
            "schema": self._schema.render(question.text, self._schema_tokens).text,
            "question": question.text,
        }
        if later:
            filled = self._prompts["kg_linker_context"].fill(graph_context=self._describe(context), **values)
        else:
            filled = self._prompts["kg_linker"].fill(**values)
        return prompt_messages(filled)

    def _sections(self, task: Task, later: bool) -> list[str]:
        """Return which prompts ask for a task."""
        if task == "query":
            return [f"task_{TAGS[language]}" for language in self._languages]
        if task == "paths" and self._path_queries:
            return ["task_pathql"]
        return ["task_entities_context" if later and task == "entities" else f"task_{task}"]

    def _read(self, text: str, question: Question, later: bool) -> Artifacts:
        asked = set(self._tasks)
        entities = read_list(text, "entities") if "entities" in asked else Listing()
        given = tuple(Mention(id, ids=(id,)) for id in question.topic_ids)
        return Artifacts(
            mentions=(*given, *(locate(name, question.text) for name in entities.items)),
            paths=tuple(ProposedPath(path, 1.0, directed=False) for path in read_paths(text))
            if "paths" in asked and not self._path_queries
            else (),
            queries=tuple(self._queries(text)),
            draft_answers=tuple(answer.name for answer in read_answers(text, bare=False)) if "answers" in asked else (),
            bfsql=_bfsql(text) if "bfsql" in asked else None,
            finished=later and entities.finished,
        )

    def _queries(self, text: str) -> Iterator[GraphQuery]:
        """Yield the queries that were written, one for each language asked for."""
        for language in self._languages:
            if query := read_query(text, TAGS[language]):
                yield GraphQuery(language, query)
        if self._path_queries and (query := read_query(text, "pathql")):
            yield GraphQuery("paths", query)


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
