"""Tests of `byokg.cli.ask_commands`."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from byokg.cli.ask_commands import answer_json, show
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.paths import follow
from byokg.types import (
    Answer,
    AnswerItem,
    Artifacts,
    Context,
    EntityId,
    Linked,
    LinkedEntity,
    Mention,
    Node,
    PathEvidence,
    Triple,
)

# spain -borders-> andorra, france, morocco, portugal     germany -borders-> austria, france
NEIGHBOURS = {"spain": ("andorra", "france", "morocco", "portugal"), "germany": ("austria", "france")}


@pytest.fixture
def graph() -> ColumnarGraph:
    """Return countries and their borders; the border of Spain and Portugal has a date."""
    names = dict.fromkeys(name for head, tails in NEIGHBOURS.items() for name in (head, *tails))
    return ColumnarGraph.from_records(
        [Node(EntityId(name), name.title(), "Country") for name in names],
        [
            Triple(EntityId(head), "borders", EntityId(tail), properties={"since": 1297} if tail == "portugal" else {})
            for head, tails in NEIGHBOURS.items()
            for tail in tails
        ],
    )


def evidence(graph: ColumnarGraph, source: str, shown: int, score: float, truncated: bool = False) -> PathEvidence:
    """Return all neighbours of a country, with walks to the first `shown` of them."""
    walks = follow(graph, [EntityId(source)], ["borders"])
    return PathEvidence(
        retriever="path",
        score=score,
        source=EntityId(source),
        relations=("borders",),
        ends=tuple(graph.ids(walks.ends)),
        paths=tuple(walks.paths(walks.ends[:shown])),
        truncated=truncated,
    )


def answer(found: Sequence[PathEvidence], ids: Sequence[str], citations: tuple[str, ...]) -> Answer:
    """Return an answer with these ids, all citing the same evidence."""
    sources = dict.fromkeys(item.source for item in found)
    linked = [LinkedEntity(id, id.title(), Mention(id.title()), "exact", 1.0) for id in sources]
    context = Context().add(Artifacts(), Linked(tuple(linked)), [found])
    items = tuple(AnswerItem(id.title(), EntityId(id), 1.0, citations) for id in ids)
    return Answer("ask", items, context.rounds)


def printed(answer: Answer, graph: ColumnarGraph) -> list[str]:
    """Return what is shown, as lines."""
    target = io.StringIO()
    show(answer, graph, Console(file=target, width=100, color_system=None))
    return [line.rstrip() for line in target.getvalue().splitlines()]


def test_the_walk_to_an_answer_is_drawn_even_where_evidence_keeps_others(graph: ColumnarGraph) -> None:
    # France is what the two have in common; each piece of evidence keeps a walk to its first end alone.
    found = [evidence(graph, "spain", 1, 2.0), evidence(graph, "germany", 1, 1.0)]
    assert printed(answer(found, ["france"], ("e1", "e2")), graph) == [
        "France  france",
        "",
        "linked 'Spain' to Spain  spain  (exact)",
        "linked 'Germany' to Germany  germany  (exact)",
        "",
        "evidence e1: a path, score 2.0",
        "  Spain → borders → France",
        "  (3 ends that are no answers)",
        "",
        "evidence e2: a path, score 1.0",
        "  Germany → borders → France",
        "  (one end that is no answer)",
    ]


def test_an_answer_that_is_linked_itself_is_drawn(graph: ColumnarGraph) -> None:
    # A language model may name the answer as an entity; its path keeps a walk to its first end alone.
    found = [evidence(graph, "spain", 1, 2.0), evidence(graph, "germany", 1, 1.0)]
    linked = LinkedEntity(EntityId("france"), "France", Mention("France"), "exact", 1.0)
    context = Context().add(Artifacts(), Linked((linked,)), [found])
    lines = printed(Answer("ask", (AnswerItem("France", EntityId("france"), 1.0, ("e1",)),), context.rounds), graph)
    assert "  Spain → borders → France" in lines


def test_answers_beyond_the_third_are_counted_and_properties_of_edges_are_shown(graph: ColumnarGraph) -> None:
    found = [evidence(graph, "spain", 3, 2.0, truncated=True)]
    lines = printed(answer(found, ["portugal", "andorra", "france", "morocco"], ("e1",)), graph)
    assert lines[lines.index("evidence e1: a path, score 2.0") + 1 :] == [
        "  Spain → borders [since: 1297] → Portugal",
        "  Spain → borders → Andorra",
        "  Spain → borders → France",
        "  (+1 more answer, the search was cut short)",
    ]


def test_evidence_that_no_answer_cites_is_counted_with_the_best_of_it(graph: ColumnarGraph) -> None:
    found = [evidence(graph, "spain", 1, 2.0), evidence(graph, "germany", 1, 1.0), evidence(graph, "germany", 1, 0.5)]
    lines = printed(answer(found, ["andorra"], ("e1",)), graph)
    assert lines[-1] == "2 other paths considered; the best of them, score 1.0: Germany → borders → France | Austria"


def test_of_many_answers_the_first_are_listed(graph: ColumnarGraph) -> None:
    found = [evidence(graph, "spain", 1, 2.0)]
    many = Answer(
        "ask", tuple(AnswerItem(f"answer {number}", None, 1.0) for number in range(25)), answer(found, [], ()).rounds
    )
    lines = printed(many, graph)
    assert lines[19:21] == ["answer 19  (not supported by the graph)", "(+5 more answers; all of them: --json)"]


def test_names_are_shown_as_they_are_whatever_is_in_them() -> None:
    # [bold]a[/bold] -[red]-> b
    graph = ColumnarGraph.from_triples([("[bold]a[/bold]", "[red]", "b")])
    walks = follow(graph, [EntityId("[bold]a[/bold]")], ["[red]"])
    paths = tuple(walks.paths(walks.ends))
    found = [PathEvidence("path", 1.0, EntityId("[bold]a[/bold]"), ("[red]",), (EntityId("b"),), paths)]
    lines = printed(answer(found, ["b"], ("e1",)), graph)
    assert lines[-1] == "  [bold]a[/bold] → [red] → b"


def test_without_an_answer_it_is_told_whether_anything_was_linked(graph: ColumnarGraph) -> None:
    nothing = Context().add(Artifacts(), Linked(), [])
    assert printed(Answer("ask", (), nothing.rounds), graph) == [
        "no answer: nothing in the question names a node of the graph; name one with --entity ID"
    ]
    spain = LinkedEntity(EntityId("spain"), "Spain", Mention("Spain"), "exact", 1.0)
    lines = printed(Answer("ask", (), Context().add(Artifacts(), Linked((spain,)), []).rounds), graph)
    assert lines[0] == "no answer: no path from what was linked fits the question"


def test_without_an_answer_it_is_told_whether_anything_was_found_or_asked(graph: ColumnarGraph) -> None:
    lines = printed(answer([evidence(graph, "spain", 1, 1.0)], [], ()), graph)
    assert lines[0] == "no answer: nothing that was found answers the question; all of it: --trace"
    assert printed(Answer("ask", (), ()), graph) == ["no answer: the language model gave none"]


def test_answers_that_no_evidence_holds_are_marked(graph: ColumnarGraph) -> None:
    found = answer([evidence(graph, "spain", 1, 1.0)], ["andorra"], ("e1",))
    known = replace(found, items=(*found.items, AnswerItem("Gibraltar", None, 0.5)))
    assert printed(known, graph)[:2] == ["Andorra  andorra", "Gibraltar  (not supported by the graph)"]
    assert printed(replace(known, rounds=()), graph)[1] == "Gibraltar"  # no graph was asked


def test_json_holds_every_answer_and_the_rounds(graph: ColumnarGraph) -> None:
    record = answer_json("Who?", answer([evidence(graph, "spain", 1, 1.0)], ["andorra", "france"], ("e1",)))
    assert [each["id"] for each in record["answers"]] == ["andorra", "france"]
    assert record["answers"][0]["grounded"] is True
    assert record["rounds"][0]["evidence"][0]["n_ends"] == 4


def test_an_unsure_answer_and_one_that_was_held_back_say_so(graph: ColumnarGraph) -> None:
    found = answer([evidence(graph, "spain", 1, 1.0)], ["andorra"], ("e1",))
    unsure = replace(found, note="unsure (0.31): another path fits almost as well")
    assert printed(unsure, graph)[:2] == ["Andorra  andorra", "unsure (0.31): another path fits almost as well"]
    held_back = replace(found, items=(), note="not sure enough (0.31, and 0.5 was asked for)")
    assert printed(held_back, graph)[0] == "no answer: not sure enough (0.31, and 0.5 was asked for)"
    assert answer_json("Who?", held_back)["note"] == held_back.note
