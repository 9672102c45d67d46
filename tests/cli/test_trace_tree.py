"""Tests of `byokg.cli.ask_commands`."""

from __future__ import annotations

import io
import json

from rich.console import Console

from byokg.cli.ask_commands import show_trace
from byokg.evaluation.records import record_answer
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.llm.messages import Call, Message
from byokg.llm.usage import AnsweredCall, QuestionUsage
from byokg.types import (
    Answer,
    AnswerItem,
    Artifacts,
    Context,
    EntityId,
    Evidence,
    Feedback,
    GraphQuery,
    Linked,
    LinkedEntity,
    LinkedLiteral,
    Mention,
    Node,
    NodeCell,
    NodeEvidence,
    PathEvidence,
    ProposedPath,
    RowsEvidence,
    Step,
    Triple,
    TripleEvidence,
)

# f1 Heat -directed_by-> p1 Mann (source a book)
HEAT, MANN = EntityId("f1"), EntityId("p1")
EDGE = Triple(HEAT, "directed_by", MANN, 0, {"source": "a book"})
GRAPH = ColumnarGraph.from_records([Node(HEAT, "Heat", "Film"), Node(MANN, "Michael Mann", "Person")], [EDGE])
LINKED = Linked(
    (LinkedEntity(HEAT, "Heat", Mention("heat"), "fuzzy", 0.95),),
    (LinkedEntity(MANN, "Michael Mann", Mention("Mann"), "exact", 1.0),),
    (LinkedLiteral(1995, "year", Mention("1995")),),
)


def answer(*evidence: Evidence, steps: tuple[Step, ...] = ()) -> Answer:
    artifacts = Artifacts(
        mentions=(Mention("heat"), Mention("1995")),
        paths=(ProposedPath(("^acted_in", "directed_by"), 0.5),),
        queries=(GraphQuery("cypher", "MATCH (f)\nRETURN f"),),
        draft_answers=("Mann",),
        bfsql='{"seeds": ["Heat"]}',
    )
    rounds = Context().add(artifacts, LINKED, [evidence], steps).rounds
    items = (AnswerItem("Michael Mann", MANN, 1.0, ("e1", "e2", "e4")), AnswerItem("Ann", None, 0.5))
    return Answer("q1", items, rounds)


def printed(answer: Answer, store: ColumnarGraph | None = GRAPH, usage: QuestionUsage | None = None) -> list[str]:
    """Return what is shown of an answer's trace in 80 columns."""
    target = io.StringIO()
    console = Console(file=target, width=80, color_system=None)
    show_trace(json.loads(record_answer(answer, 0.0, usage).trace), console, store)
    return [line.rstrip() for line in target.getvalue().splitlines()]


def test_a_trace_is_a_tree_from_what_was_proposed_to_the_answers() -> None:
    evidence = [
        PathEvidence("path", 0.9, source=HEAT, relations=("directed_by",), ends=(MANN,), paths=()),
        TripleEvidence("text", 0.8, EDGE),
        NodeEvidence("bfsql", 1.0, Node(HEAT, "Heat", "Film", {"year": 1995})),
        RowsEvidence("query", 1.0, language="cypher", query="MATCH", columns=("p",), rows=((NodeCell(MANN, "Mann"),),)),
        Feedback("query", 0.0, subject="MATCH (", problem="a bracket is missing"),
    ]
    call = Call("p", "m", (Message("user", "[e1] Heat → directed_by → Michael Mann\n[e3] x\n[e2] y"),))
    step = Step("path", {"written": "directed by"}, {"relation": "directed_by", "score": 0.98})
    usage = QuestionUsage({}, (AnsweredCall("answer", call),))
    assert printed(answer(*evidence, steps=(step,)), usage=usage) == [
        "question q1",
        "├── round 1",
        "│   ├── proposed",
        "│   │   ├── entities: heat | 1995",
        "│   │   ├── path: ^acted_in / directed_by  0.50",
        "│   │   ├── cypher: MATCH (f) RETURN f",
        "│   │   ├── draft answers: Mann",
        '│   │   └── bfsql: {"seeds": ["Heat"]}',
        "│   ├── linked",
        "│   │   ├── 'heat' to Heat  f1  (fuzzy, 0.95)",
        "│   │   ├── draft 'Mann' to Michael Mann  p1  (exact, 1.00)",
        "│   │   └── '1995' is the year 1995",
        "│   ├── path  written: directed by → relation: directed_by; score: 0.98",
        "│   ├── path: 1 item",
        "│   │   └── e1 0.90  Heat → directed_by → Michael Mann",
        "│   ├── text: 1 item",
        "│   │   └── e2 0.80  Heat → directed_by [source: a book] → Michael Mann",
        "│   ├── bfsql: 1 item",
        "│   │   └── e3 1.00  Heat (Film) year: 1995",
        "│   ├── query: 1 item",
        "│   │   └── e4 1.00  MATCH",
        "│   │         p",
        "│   │         Mann",
        "│   └── feedback: 1 item",
        "│       └── e5  MATCH (: a bracket is missing",
        "├── language model",
        f"│   └── 1. answer  prompt {call.prompt_digest[:8]}, reply {call.key[:8]}, 3 lines of evidence shown",
        "└── answers",
        "    ├── Michael Mann  p1  e1–e2, e4",
        "    └── Ann  not grounded",
    ]


def test_of_many_items_the_first_are_listed() -> None:
    lines = printed(answer(*(TripleEvidence("text", 0.8, EDGE) for _ in range(30))))
    assert "│   └── text: 30 items" in lines and "│       └── (+22 more)" in lines
    assert sum("directed_by [source" in line for line in lines) == 8


def test_without_the_graph_nodes_that_the_trace_does_not_name_stand_as_their_ids() -> None:
    other = TripleEvidence("text", 0.8, Triple(HEAT, "starred", EntityId("p2")))
    assert "│       └── e1 0.80  Heat → starred → p2" in printed(answer(other), store=None)


def test_evidence_of_a_kind_that_is_not_known_here_is_named() -> None:
    assert "│       └── e1 0.50  evidence" not in printed(answer(Evidence("mine", 0.5)))
    assert "│   └── mine: 1 item" in printed(answer(Evidence("mine", 0.5)))


def test_a_question_without_rounds_shows_its_answers() -> None:
    assert printed(Answer("q", (), ())) == ["question q", "└── no answer"]


def test_names_are_shown_as_they_are_whatever_is_in_them() -> None:
    named = Answer("q", (AnswerItem("[bold]a[/bold]\nb", None, 1.0),), ())
    assert printed(named)[-1] == "    └── [bold]a[/bold] b  not grounded"
