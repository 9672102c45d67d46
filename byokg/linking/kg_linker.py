"""The KG-Linker: a language model reads question, schema and what was found, and writes what to look for."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Literal

from byokg.errors import ConfigError
from byokg.graph.schema_text import SchemaRenderer
from byokg.linking.reading import locate
from byokg.linking.relations import RelationMatcher
from byokg.llm.model import LanguageModel
from byokg.llm.parsing import read_answers, read_list, read_object, read_paths, read_query
from byokg.llm.prompt_messages import prompt_messages
from byokg.llm.records import Message
from byokg.prompts.template import PromptLibrary
from byokg.types import INVERSE, Artifacts, Context, GraphQuery, Language, Mention, Metapath, ProposedPath, Question

Task = Literal["entities", "paths", "opencypher", "sparql", "answers", "bfsql"]

TASKS: tuple[Task, ...] = ("entities", "paths", "opencypher", "sparql", "answers", "bfsql")
"""All tasks, in the order in which a prompt lists them."""

PAPER_TASKS: tuple[Task, ...] = ("entities", "paths", "opencypher", "answers")
"""What the paper's KG-Linker writes."""

LANGUAGES: dict[Task, Language] = {"opencypher": "cypher", "sparql": "sparql"}
"""Which task writes a query in which language."""

STAGE = "kg_linker"


class LlmLinker:
    """Asks a language model for all artifacts of a round in one call.

    The first round sees question and schema; later ones also what was found so far, and may say FINISH.

    Args:
        model: who is asked.
        schema: renders the part of the graph's schema that matters for a question.
        relations: ties the written relations to the graph's.
        describe: writes what was found so far as text for the prompt.
        tasks: what the model is asked to write; a task left out is an ablation.
        prompts: the prompts; None takes those that ship with the package.
        schema_tokens: budget of the schema's text.

    Source: ByoKG-RAG (arXiv:2507.04127v1), "KG-Linker", Figures 3 to 7.
    Differs: the schema holds what is relevant for the question, within a budget, where the paper gives all of it.
    """

    def __init__(
        self,
        model: LanguageModel,
        schema: SchemaRenderer,
        relations: RelationMatcher,
        describe: Callable[[Context], str],
        tasks: Sequence[Task] = PAPER_TASKS,
        prompts: PromptLibrary | None = None,
        schema_tokens: int = 2000,
    ) -> None:
        unknown = [task for task in tasks if task not in TASKS]
        if unknown or not tasks:
            raise ConfigError(
                f"tasks={','.join(tasks) or '(none)'} cannot be asked of the KG-Linker; choose from {', '.join(TASKS)}"
            )
        if schema_tokens < 1:
            raise ConfigError(f"schema_tokens={schema_tokens} leaves no room for a schema; use 1 or more")
        self._model = model
        self._schema = schema
        self._relations = relations
        self._describe = describe
        self._tasks = tuple(task for task in TASKS if task in tasks)
        self._prompts = prompts or PromptLibrary()
        self._schema_tokens = schema_tokens

    def propose(self, question: Question, context: Context) -> Artifacts:
        """Ask for the artifacts of the next round.

        Entities given with the question come first. Paths whose relations the graph does not have are left out.

        Raises:
            LlmError: the model gave no usable reply.
        """
        reply = self._model.reply(self._messages(question, context), stage=STAGE, question_id=question.id)
        return self._read(reply.text, question)

    def _messages(self, question: Question, context: Context) -> list[Message]:
        later = bool(context.rounds)
        sections = ["task_entities_context" if later and task == "entities" else f"task_{task}" for task in self._tasks]
        values = {
            "tasks": self._prompts.tasks(sections),
            "schema": self._schema.render(question.text, self._schema_tokens).text,
            "question": question.text,
        }
        if later:
            filled = self._prompts["kg_linker_context"].fill(graph_context=self._describe(context), **values)
        else:
            filled = self._prompts["kg_linker"].fill(**values)
        return prompt_messages(filled)

    def _read(self, text: str, question: Question) -> Artifacts:
        entities = read_list(text, "entities")
        given = tuple(Mention(id, ids=(id,)) for id in question.topic_ids)
        mentions = [locate(name, question.text) for name in entities.items] if "entities" in self._tasks else []
        return Artifacts(
            mentions=(*given, *mentions),
            paths=self._paths(text) if "paths" in self._tasks else (),
            queries=tuple(
                GraphQuery(language, query)
                for task, language in LANGUAGES.items()
                if task in self._tasks and (query := read_query(text, task))
            ),
            draft_answers=tuple(a.name for a in read_answers(text)) if "answers" in self._tasks else (),
            bfsql=_bfsql(text) if "bfsql" in self._tasks else None,
            finished=entities.finished,
        )

    def _paths(self, text: str) -> tuple[ProposedPath, ...]:
        """Return the written paths in the graph's relations, once each; a better match of names scores higher."""
        found: dict[Metapath, ProposedPath] = {}
        for path in read_paths(text):
            matches = [self._relations.match(label.removeprefix(INVERSE)) for label in path]
            score = 1.0
            steps = []
            for label, match in zip(path, matches, strict=True):
                if match is None:
                    break
                steps.append(f"{INVERSE}{match.relation}" if label.startswith(INVERSE) else match.relation)
                score *= match.score
            else:
                found.setdefault(tuple(steps), ProposedPath(tuple(steps), score, directed=False))
        return tuple(found.values())


def _bfsql(text: str) -> str | None:
    """Return the request that was written, as JSON with sorted keys."""
    found = read_object(text, "bfsql")
    return None if found is None else json.dumps(found, ensure_ascii=False, sort_keys=True)
