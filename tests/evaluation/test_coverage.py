from __future__ import annotations

from byokg.evaluation.coverage import Share, coverage, present
from byokg.evaluation.datasets.base import Example
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.name_indexes import name_index
from byokg.index.names import NameIndex
from byokg.types import EntityId, Node, Triple

# m.1 Ann -people.person.knows-> m.2 Bob
GRAPH = ColumnarGraph.from_records(
    [Node(EntityId("m.1"), "Ann"), Node(EntityId("m.2"), "Bob")],
    [Triple(EntityId("m.1"), "people.person.knows", EntityId("m.2"))],
)
FREEBASE = "PREFIX ns: <http://rdf.freebase.com/ns/> SELECT ?x WHERE { ns:m.1 %s ?x }"


def example(id: str, **fields: object) -> Example:
    return Example(id, f"{id}?", **{"answers": (), "topic_ids": (), **fields})  # type: ignore[arg-type]


def names() -> NameIndex:
    return name_index(GRAPH)


def no_names() -> NameIndex:
    raise AssertionError("ids need no names")


def test_topics_answers_and_triples_are_counted_by_split() -> None:
    asked = [
        example("a", split="train", topic_ids=("m.1",), answers=("Bob", "Zoe"), answer_ids=("m.2", "m.9")),
        example("b", split="test", topic_ids=("m.1", "m.8"), answers=("bob", "Zoe", "1999")),
        example("c", split="test", answers=("Bob",), support=(("Ann", "people.person.knows", "Bob"),)),
        example(
            "d", split="test", answers=("Bob",), support=(("Bob", "people.person.knows", "Ann"), ("m.1", "r", "m.2"))
        ),
    ]
    found = coverage(asked, GRAPH, names)
    assert list(found.splits) == ["train", "test"]
    train, test = found.splits.values()
    assert (train.topics, train.answers, train.all) == (Share(1, 1), Share(1, 2), Share(0, 1))
    assert (test.topics, test.answers, test.triples) == (Share(1, 2), Share(3, 4), Share(1, 3))
    assert (test.questions, test.relations, test.all) == (3, Share(2, 3), Share(1, 3))
    assert found.missing_relations == {"r": 1} and not found.full


def test_relations_of_gold_queries_are_found_by_the_end_of_their_iri() -> None:
    asked = [
        example("a", query=FREEBASE % "ns:people.person.knows"),
        example("b", query=FREEBASE % "ns:people.person.hates"),
        example("c", query=FREEBASE % "(ns:people.person.hates|ns:b.c)/ns:type.object.name"),
        example("d", query="MATCH (a) RETURN a"),
    ]
    found = coverage(asked, GRAPH, no_names)
    assert found.missing_relations == {"people.person.hates": 2, "b.c": 1}
    assert found.splits[""].relations == Share(1, 4) and found.unread_queries == 1


def test_a_graph_that_holds_everything_is_said_to() -> None:
    asked = [example("a", topic_ids=("m.1",), answers=("Bob",), answer_ids=("m.2",))]
    assert coverage(asked, GRAPH, no_names).full


def test_parts_without_a_missing_id_take_one_round_trip() -> None:
    ids = [EntityId(f"n{n}") for n in range(2500)]
    graph = ColumnarGraph.from_records([Node(id, id) for id in ids], [])
    assert present(graph, [*ids, EntityId("no")]) == set(ids)
