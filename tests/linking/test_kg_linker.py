"""Tests of `byokg.linking.llm_linker`, with a scripted chat model."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from byokg.errors import ConfigError, LlmEmpty
from byokg.graph.schema_text import SchemaRenderer
from byokg.linking.llm_linker import TASKS, GoldEntities, LlmLinker, Task
from byokg.linking.parts import Parts
from byokg.llm.chat_models import ScriptedChatModel
from byokg.llm.model import LanguageModel
from byokg.types import Artifacts, Context, EntityId, GraphQuery, Language, Linked, Mention, ProposedPath, Question
from tests.linking.graphs import films

REPLY = """
<entities>
Alien
Ridley Scot
</entities>
<paths>
Directed By -> ^directed_by
no_such_relation
starred_actors
</paths>
<opencypher>
MATCH (f {name: 'Alien'})-[:directed_by]->(d) RETURN d.name
</opencypher>
<answers>
Ridley Scott
</answers>
<bfsql>
{"seeds": ["Alien"], "max_hops": 1,}
</bfsql>
"""

QUESTION = Question("q1", "Who directed Alien?")
LATER = Context().add(Artifacts(), Linked(), [])


class Prompts(ScriptedChatModel):
    """A scripted model that remembers the prompts it saw."""

    def _rule(self, prompt: str):  # type: ignore[no-untyped-def]
        SEEN.append(prompt)
        return super()._rule(prompt)


SEEN: list[str] = []


def linker(reply: str = REPLY, tasks: Sequence[Task] = TASKS, languages: Sequence[Language] = ("cypher",)) -> LlmLinker:
    SEEN.clear()
    store = films()
    parts = Parts(store, LanguageModel(Prompts(replies=(reply,))))
    shown = parts.replace(context=lambda context: f"[e1] what {len(context.rounds)} rounds found")
    return LlmLinker(shown, tasks, languages, schema=SchemaRenderer(store.schema()))


def test_one_reply_gives_all_artifacts() -> None:
    assert linker().propose(QUESTION, Context()) == Artifacts(
        mentions=(Mention("Alien", 13, 18), Mention("Ridley Scot")),
        paths=(
            ProposedPath(("Directed By", "^directed_by"), 1.0, directed=False),
            ProposedPath(("no_such_relation",), 1.0, directed=False),
            ProposedPath(("starred_actors",), 1.0, directed=False),
        ),
        queries=(GraphQuery("cypher", "MATCH (f {name: 'Alien'})-[:directed_by]->(d) RETURN d.name"),),
        draft_answers=("Ridley Scott",),
        bfsql='{"max_hops": 1, "seeds": ["Alien"]}',
    )


def test_a_reply_without_tags_says_nothing() -> None:
    reply = "I am sorry, I cannot help with that"
    assert linker(reply).propose(QUESTION, Context()) == Artifacts()


@pytest.mark.parametrize(
    ("task", "field"),
    [
        ("entities", "mentions"),
        ("paths", "paths"),
        ("query", "queries"),
        ("answers", "draft_answers"),
        ("bfsql", "bfsql"),
    ],
)
def test_a_task_left_out_is_neither_asked_for_nor_read(task: Task, field: str) -> None:
    whole = linker().propose(QUESTION, Context())
    with_it = SEEN[0]
    part = linker(tasks=[each for each in TASKS if each != task]).propose(QUESTION, Context())
    assert not getattr(part, field) and getattr(whole, field)
    tag = {"query": "opencypher"}.get(task, task)
    assert f"<{tag}>" in with_it and f"<{tag}>" not in SEEN[0]
    for other in ("mentions", "paths", "queries", "draft_answers", "bfsql"):
        if other != field:
            assert getattr(part, other) == getattr(whole, other)


def test_the_first_round_sees_schema_and_question_and_later_ones_what_was_found() -> None:
    linker().propose(QUESTION, Context())
    assert "directed_by" in SEEN[0] and QUESTION.text in SEEN[0] and "FINISH" not in SEEN[0]
    linker().propose(QUESTION, LATER)
    assert "[e1] what 1 rounds found" in SEEN[0] and "FINISH" in SEEN[0]


def test_a_query_is_asked_for_in_each_language_of_the_graph() -> None:
    reply = f"{REPLY}<sparql>SELECT ?d WHERE {{ ?f :directed_by ?d }}</sparql>"
    choices: list[tuple[Language, ...]] = [("cypher",), ("sparql",), ("cypher", "sparql"), ()]
    for languages in choices:
        queries = linker(reply, languages=languages).propose(QUESTION, Context()).queries
        assert tuple(query.language for query in queries) == languages
        assert ("<opencypher>" in SEEN[0], "<sparql>" in SEEN[0]) == ("cypher" in languages, "sparql" in languages)
    assert linker("<opencypher></opencypher>").propose(QUESTION, Context()).queries == ()


def test_a_subgraph_request_that_is_no_json_is_kept_for_the_feedback() -> None:
    assert linker("<bfsql>\nHeat, 2 hops\n</bfsql>").propose(QUESTION, Context()).bfsql == "Heat, 2 hops"
    assert linker("<bfsql>\n</bfsql>").propose(QUESTION, Context()).bfsql is None
    cypher = "<opencypher>MATCH (f {name: 'Alien'}) RETURN f.name</opencypher>"
    assert linker(cypher).propose(QUESTION, Context()).bfsql is None


def test_finish_ends_the_rounds_once_something_was_found() -> None:
    finish = "<entities>\nFINISH\n</entities>"
    assert linker(finish).propose(QUESTION, LATER).finished
    assert not linker(finish).propose(QUESTION, Context()).finished
    assert not linker(finish, tasks=["paths"]).propose(QUESTION, LATER).finished


@pytest.mark.parametrize("tag", ["answer", "answers"])
def test_both_spellings_of_the_answers_tag_are_read(tag: str) -> None:
    drafts = linker(f"<{tag}>\nRidley Scott\n</{tag}>").propose(QUESTION, Context()).draft_answers
    assert drafts == ("Ridley Scott",)


def test_topic_entities_that_are_given_come_first() -> None:
    given = Question("q1", QUESTION.text, topic_ids=(EntityId("Aliens"),))
    mentions = linker().propose(given, Context()).mentions
    assert mentions[0].ids == ("Aliens",) and [m.text for m in mentions[1:]] == ["Alien", "Ridley Scot"]


@pytest.mark.parametrize("lines", ["Alien | The Alien", "Alien | The Alien\nAliens"])
def test_the_names_of_one_entity_on_a_line_are_one_mention(lines: str) -> None:
    mentions = linker(f"<entities>\n{lines}\n</entities>").propose(QUESTION, Context()).mentions
    assert [mention.text for mention in mentions] == lines.split("\n")


def test_prose_without_tags_proposes_nothing() -> None:
    assert linker("I am sorry, I do not know that film.").propose(QUESTION, Context()) == Artifacts()


def test_an_empty_reply_is_an_error_and_no_artifact() -> None:
    with pytest.raises(LlmEmpty):
        linker(" ").propose(QUESTION, Context())


def test_entities_that_come_with_the_question_may_be_all_there_is() -> None:
    given = Question("q1", QUESTION.text, topic_ids=(EntityId("Aliens"),))
    assert GoldEntities().propose(given, Context()) == Artifacts(
        mentions=(Mention("Aliens", ids=(EntityId("Aliens"),)),)
    )


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="tasks=query leaves nothing to ask for"):
        linker(tasks=["query"], languages=())
    with pytest.raises(ConfigError, match="tasks=cypher"):
        linker(tasks=["cypher"])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match=r"tasks=\(none\)"):
        linker(tasks=[])


def test_a_path_query_takes_the_place_of_relation_paths() -> None:
    chat = ScriptedChatModel(replies=("<pathql>\nPATHS START ?s = <Alien> END ?e VIA <directed_by>\n</pathql>",))
    linker = LlmLinker(Parts(films(), LanguageModel(chat)), ["entities", "pathql"])
    assert "PATHS [SHORTEST | ALL]" in str(linker._messages(QUESTION, Context(), ""))
    artifacts = linker.propose(QUESTION, Context())
    assert artifacts.paths == ()
    assert artifacts.queries == (GraphQuery("paths", "PATHS START ?s = <Alien> END ?e VIA <directed_by>"),)


def test_relation_paths_are_taken_where_no_path_query_was_written() -> None:
    chat = ScriptedChatModel(replies=("<paths>\ndirected_by -> born_in\n</paths>",))
    linker = LlmLinker(Parts(films(), LanguageModel(chat)), ["pathql"])
    artifacts = linker.propose(QUESTION, Context())
    assert artifacts.paths == (ProposedPath(("directed_by", "born_in"), 1.0, directed=False),)
    assert artifacts.queries == ()


@pytest.mark.parametrize(
    ("reply", "finished"),
    [
        ("<entities>\nFINISH\n</entities>", True),
        ("<entities>\n</entities><paths>\nFINISH\n</paths>", True),
        ("<bfsql>\nFINISH\n</bfsql><answers>\nRidley Scott\n</answers>", True),
        ("<opencypher>\nFINISH\n</opencypher><paths>\ndirected_by\n</paths>", False),  # something is asked for
        ("<entities>\nFinish\n</entities>", False),  # a node that the graph context shows
        ("<paths>\n</paths>", False),
    ],
)
def test_finish_counts_in_every_result_but_not_as_a_name_that_was_shown(reply: str, finished: bool) -> None:
    asked = linker(tasks=TASKS, languages=("cypher",))
    artifacts = asked.read(reply, QUESTION, True, "Finish → made by → Reckitt")
    assert artifacts.finished is finished
    assert all(path.relations != ("FINISH",) for path in artifacts.paths)
    assert (artifacts.queries, artifacts.bfsql) == ((), None)
    assert not asked.read(reply, QUESTION, False).finished


def test_a_question_may_be_about_something_called_finish() -> None:
    asked = linker(tasks=TASKS, languages=("cypher",))
    artifacts = asked.read("<entities>\nFinish\n</entities>", Question("q", "Who makes Finish?"), False)
    assert [mention.text for mention in artifacts.mentions] == ["Finish"]
