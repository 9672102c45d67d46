"""Questions of yes and no, and comparisons by numbers and dates that are nodes of their own."""

from __future__ import annotations

import pytest

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from byokg.pipelines.loop import Loop
from byokg.types import ComputedEvidence, EntityId, Node, Question, Triple

# France -capital-> Paris, Italy -capital-> Rome; Paris and Lyon -located_in-> France, Rome -located_in-> Italy
# France -borders-> Italy and back; Ann -plays_for-> River 1985 to 1990; Bob -plays_for-> River, Stone
# Seine -basin_area-> 78910, Tiber -basin_area-> 17375; Seine, Tiber and Arno -flows_into-> Sea
NAMES = "France Italy Paris Rome Lyon Ann Bob River Stone Seine Tiber Arno Sea 78910 17375".split()
FACTS = """France capital Paris|Italy capital Rome|Paris located_in France|Lyon located_in France|Rome located_in Italy
|France borders Italy|Italy borders France|Bob plays_for River|Bob plays_for Stone|Seine basin_area 78910
|Tiber basin_area 17375|Seine flows_into Sea|Tiber flows_into Sea|Arno flows_into Sea"""


@pytest.fixture(scope="module")
def pipeline() -> Loop:
    nodes = [Node(EntityId(name), name, "") for name in NAMES]
    facts = [fact.split() for fact in FACTS.replace("\n", "").split("|")]
    edges = [Triple(EntityId(head), relation, EntityId(tail)) for head, relation, tail in facts]
    years = {"start": 1985, "end": 1990}
    edges.append(Triple(EntityId("Ann"), "plays_for", EntityId("River"), properties=years))
    return offline_pipeline(Parts(ColumnarGraph.from_records(nodes, edges)))


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("Is Paris the capital of France?", ["yes"]),
        ("Is Paris France's capital?", ["yes"]),
        ("Does France border Italy?", ["yes"]),
        ("Is Lyon in France?", ["yes"]),
        ("Did Ann play for River?", ["yes"]),
        ("Did Ann play for River in 1987?", ["yes"]),
        # the relation leads elsewhere
        ("Is Lyon the capital of France?", ["no"]),
        ("Is Rome located in France?", ["no"]),
        ("Did Ann play for Stone?", ["no"]),
        ("Did Seine play for River?", ["no"]),
        ("Did Ann play for River in 1999?", ["no"]),
        # the graph has neither this nor anything against it
        ("Is France the capital of Paris?", []),
        ("Did Bob play for River in 1999?", []),  # at a time that it does not have
        # and one of two is no question of yes or no
        ("Which has the greater basin area, Seine or Tiber?", ["Seine"]),
        ("Of Seine and Tiber, which has the smaller basin area?", ["Tiber"]),
        ("Of the rivers that flow into the Sea, which has the smallest basin area?", ["Tiber"]),
    ],
)
def test_the_graph_decides(pipeline: Loop, question: str, answers: list[str]) -> None:
    assert [item.name for item in pipeline.run(Question("q", question)).items] == answers


def test_a_node_with_edges_of_a_relation_has_all_of_them() -> None:
    facts = [(f"Land{at}", "language", f"Tongue{at}") for at in range(6)] + [("Lyon", "located_in", "Land1")]
    facts += [("Land0", "language", f"Dialect{at}") for at in range(4)]
    pipeline = offline_pipeline(Parts(ColumnarGraph.from_triples(facts)))
    answer = pipeline.run(Question("q", "Is Tongue1 a language of Land0?"))
    assert [item.name for item in answer.items] == ["no"]
    (computed,) = (item for item in answer.rounds[-1].evidence if isinstance(item, ComputedEvidence))
    assert computed.text == "language of Land0: Tongue0 | Dialect0 | Dialect1 | … (+2 more), no other"
    assert not pipeline.run(Question("q", "Is Tongue1 a language of Lyon?")).items


def test_a_relation_that_seldom_has_several_ends_refutes_although_another_joins_the_two() -> None:
    # Of twenty countries one has two capitals; all speak two languages.
    facts = [(f"Land{at}", relation, f"{relation}{at}") for at in range(20) for relation in ("capital", "language")]
    facts += [("Land0", "capital", "Seat"), ("Lyon", "located_in", "Land1"), ("Land1", "heard", "Creole")]
    facts += [(f"Land{at}", "language", f"dialect{at}") for at in range(20)]
    answers = offline_pipeline(Parts(ColumnarGraph.from_triples(facts)))

    def answered(question: str) -> list[str]:
        return [item.name for item in answers.run(Question("q", question)).items]

    assert answered("Is Lyon the capital of Land1?") == ["no"]
    assert answered("Is Seat the capital of Land0?") == ["yes"]
    assert answered("Is Creole a language of Land1?") == []
    assert answered("Is Creole a language of Land2?") == ["no"]


def test_no_edge_says_who_is_a_relative_of_a_relative() -> None:
    edges = [("Ann", "has parent", "Bea"), ("Bea", "has parent", "Cid")]
    family = offline_pipeline(Parts(ColumnarGraph.from_triples(edges)))
    for name in ("Bea", "Cid"):
        assert not family.run(Question("q", f"Is {name} the grandparent of Ann?")).items
    assert [item.name for item in family.run(Question("q", "Is Bea the parent of Ann?")).items] == ["yes"]
    assert [item.name for item in family.run(Question("q", "Who is the grandmother of Ann?")).items] == ["Cid"]
    assert [item.name for item in family.run(Question("q", "Who are Cid's grandchildren?")).items] == ["Ann"]


def test_the_evidence_says_which_edge_decides(pipeline: Loop) -> None:
    answer = pipeline.run(Question("q", "Is Lyon the capital of France?"))
    told = {getattr(item, "text", "") for step in answer.rounds for item in step.evidence}
    assert "capital of France: Paris, no other" in told
