"""Tests of `byokg.offline.ranking`."""

from __future__ import annotations

from collections.abc import Sequence

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.property_view import value_id
from byokg.linking.entities import EntityLinker
from byokg.offline.answer_type import AnswerTypePredictor
from byokg.offline.pipeline import build_parser_and_ranker
from byokg.offline.ranking import FITTED, AnswerRanker, Candidate, read_weights
from byokg.types import Artifacts, Context, EntityId, Linked, LinkedEntity, Mention, PathEvidence
from tests.linking.graphs import EMBEDDER

# Two parts of a series and two governors, each behind a nameless node:
#   The Office -cast-> m.01 -actor-> Rainn Wilson, -character-> Dwight Schrute
#              -cast-> m.02 -actor-> Steve Carell, -character-> Michael Scott
#   Texas -officials-> m.03 -holder-> Ann Richards, -from-> 1991-01-15, -to-> 1995-01-17
#         -officials-> m.04 -holder-> Rick Perry, -from-> 2000-12-21, -to-> 2015-01-20
# and what a person studied at: Ada -school-> Highgate School, Oxford University
# and a family told both ways, but for one edge: Ada, Cyd -parents-> Bob -children-> Ada, Cyd; Eve -children-> Ada
FACTS = [
    ("The Office", "cast", "m.01"),
    ("m.01", "actor", "Rainn Wilson"),
    ("m.01", "character", "Dwight Schrute"),
    ("The Office", "cast", "m.02"),
    ("m.02", "actor", "Steve Carell"),
    ("m.02", "character", "Michael Scott"),
    ("Texas", "officials", "m.03"),
    ("m.03", "holder", "Ann Richards"),
    ("m.03", "from", "1991-01-15"),
    ("m.03", "to", "1995-01-17"),
    ("Texas", "officials", "m.04"),
    ("m.04", "holder", "Rick Perry"),
    ("m.04", "from", "2000-12-21"),
    ("m.04", "to", "2015-01-20"),
    ("The Office", "creator", "Ricky Gervais"),
    ("Ada", "school", "Highgate School"),
    ("Ada", "school", "Oxford University"),
    ("Ada", "parents", "Bob"),
    ("Bob", "children", "Ada"),
    ("Cyd", "parents", "Bob"),
    ("Bob", "children", "Cyd"),
    ("Eve", "children", "Ada"),
]


Ranked = tuple[float, tuple[EntityId, ...], tuple[str, ...]]


def preferred(question: str, topic: str, *paths: tuple[float, Sequence[str], Sequence[str]]) -> list[Ranked]:
    """Order what paths from a topic lead to: each a score, relations and ends."""
    graph = ColumnarGraph.from_triples(FACTS, name="behind")
    _, scorer = build_parser_and_ranker(graph, EMBEDDER, EntityLinker(graph))
    start = question.index(topic)
    mention = Mention(topic, start, start + len(topic))
    found = [
        PathEvidence("path", score, EntityId(topic), tuple(relations), tuple(map(EntityId, ends)), ())
        for score, relations, ends in paths
    ]
    linked = Linked((LinkedEntity(EntityId(topic), topic, mention, "exact", 1.0),))
    context = Context(question=question).add(Artifacts(mentions=(mention,)), linked, [found])
    candidates = [
        Candidate(item.score, item.ends, (item,)) for item in context.evidence if isinstance(item, PathEvidence)
    ]
    types = AnswerTypePredictor(scorer.steps.statistics)
    ranked = AnswerRanker(graph, scorer, EMBEDDER, types, read_weights(FITTED)).rank(context, candidates)
    return [(one.score, one.nodes, one.evidence_ids) for one in ranked]


def test_a_node_that_several_good_paths_lead_to_comes_first() -> None:
    found = preferred(
        "what of Ada",
        "Ada",
        (10.0, ["a"], ["Texas"]),
        (9.0, ["b"], ["Ada", "Rick Perry"]),
        (8.5, ["c"], ["Rick Perry"]),
    )
    assert found[0][1:] == (("Rick Perry", "Ada"), ("e2",))
    assert {choice[2] for choice in found} == {("e1",), ("e2",), ("e3",)}


def test_paths_far_below_the_best_have_no_say() -> None:
    found = preferred(
        "what of Ada", "Ada", (50.0, ["a"], ["Texas"]), (9.0, ["b"], ["Rick Perry"]), (8.5, ["c"], ["Rick Perry"])
    )
    assert found[0][1:] == (("Texas",), ("e1",))


def test_of_nodes_as_good_the_one_with_the_nearest_name_comes_first() -> None:
    schools = (10.0, ["school"], ["Highgate School", "Oxford University"])
    assert preferred("which university did Ada visit", "Ada", schools)[0][1][0] == "Oxford University"


def test_a_fact_that_is_told_the_other_way_round_completes_the_answer() -> None:
    found = preferred("parents of Ada", "Ada", (10.0, ["parents"], ["Bob"]), (1.0, ["^children"], ["Bob", "Eve"]))
    assert found[0] == (10.0, ("Bob", "Eve"), ("e1", "e2"))
    found = preferred("parents of Ada", "Ada", (10.0, ["parents"], ["Bob"]), (1.0, ["children"], ["Bob", "Eve"]))
    assert found[0] == (10.0, ("Bob",), ("e1",))


def test_values_keep_their_order() -> None:
    values = tuple(map(value_id, ("1991", "2015")))
    found = preferred("what of Ada", "Ada", (10.0, ["a"], values), (1.0, ["b"], ["Texas"]))
    assert found[0][1] == values
