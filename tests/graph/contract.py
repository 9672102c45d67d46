"""What every graph store promises. Subclass `GraphStoreContract`, provide `make`, inherit the checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from byokg.errors import EntityNotFound, RelationNotFound, StoresMixed
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.pathql.evaluate import paths
from byokg.graph.store import Direction, EdgeBatch, GraphStore
from byokg.graph.traversal import join
from byokg.types import EntityId, Node, Triple, Value

Make = Callable[[Sequence[Node], Sequence[Triple]], GraphStore]

STRANGE_IDS = [
    'say "hi"',
    "it's `this`",
    "two\nlines",
    "tab\there",
    "😀 naïve 東京",
    " leading and trailing ",
    "a|b",
    "back\\slash",
    "{curly} $dollar %d",
    "x" * 3000,
]
STRANGE_RELATIONS = ["film.film.directed by", "is a", "ns:has-part", "`quoted`", 'a "b"', "рядом", "^up", "line\nbreak"]


def node(entity: str, type: str = "", **properties: str | int | float | bool) -> Node:
    return Node(EntityId(entity), entity, type, properties)


def edge(head: str, relation: str, tail: str, **properties: str | int | float | bool) -> Triple:
    return Triple(EntityId(head), relation, EntityId(tail), properties=properties)


def undirected(head: str, relation: str, tail: str, **properties: str | int | float | bool) -> Triple:
    return replace(edge(head, relation, tail, **properties), undirected=True)


def ids(*names: str) -> list[EntityId]:
    return [EntityId(name) for name in names]


def spelled(store: GraphStore, batch: EdgeBatch) -> list[tuple[int, bool, str, str, str]]:
    """Write each edge as (origin, inverse, head, relation, tail)."""
    heads, tails = store.ids(batch.head), store.ids(batch.tail)
    labels = [store.relations[number] for number in batch.relation.tolist()]
    return list(zip(batch.origin.tolist(), batch.inverse.tolist(), heads, labels, tails, strict=True))


def facts(store: GraphStore) -> list[tuple[str, str, str, dict[str, Value]]]:
    """Write every edge as (head, relation, tail, properties), in edge order."""
    batch = store.edges(store.numbers(list(store.entities())), Direction.OUT)
    rows = [row[2:] for row in spelled(store, batch)]
    properties = store.edge_properties(batch.edge)
    return [(*row, dict(found)) for row, found in zip(rows, properties, strict=True)]


class GraphStoreContract:
    """The checks. `make` turns nodes and edges into the store under test."""

    holds_undirected = True
    """False for a store that cannot hold undirected edges."""

    @pytest.fixture
    def make(self) -> Make:
        raise NotImplementedError("a subclass provides the fixture `make`")

    #   a -r-> b -s-> c      b -r-> a      c -r-> c      d stands alone
    #   e -r-> b twice: parallel edges
    @pytest.fixture
    def store(self, make: Make) -> GraphStore:
        return make(
            [node(name) for name in "abcde"],
            [
                edge("a", "r", "b"),
                edge("b", "s", "c"),
                edge("b", "r", "a"),
                edge("c", "r", "c"),
                edge("e", "r", "b", since=1990),
                edge("e", "r", "b", since=2001),
            ],
        )

    @pytest.mark.parametrize(
        "query",
        [
            "PATHS START ?x = :a END ?y VIA ?p",
            "PATHS ALL START ?x END ?y = :c VIA UNDIRECTED ?p",
            "PATHS START ?x = :e END ?y = :c MATCHING :r/:s",
            "PATHS START ?x = :e END ?y VIA :r/:s MAX LENGTH 1",
            "PATHS CYCLIC START ?x END ?y VIA :r",
            "PATHS START ?x = :a END ?y VIA { ?x :r ?m . ?y :r ?m }",
            "PATHS START ?x = :e END ?y VIA { ?x :r ?y {| :since ?d |} FILTER(?d > 1995) } MAX LENGTH 2",
            "PATHS START ?x = :e END ?y VIA :r COST :since",
            "PATHS SHORTEST 3 TRAIL START ?x = :a END ?y = :a VIA :r",
        ],
    )
    def test_path_queries_find_what_they_find_on_the_columnar_graph(self, store: GraphStore, query: str) -> None:
        entities = sorted(store.entities())
        graph = ColumnarGraph.from_records(
            [node(name) for name in entities],
            [edge(head, relation, tail, **found) for head, relation, tail, found in facts(store)],
        )

        def walks(of: GraphStore) -> list[tuple[tuple[str, ...], list[tuple[str, dict[str, Value]]]]]:
            found = [
                (path.nodes, [(each.relation, dict(each.properties)) for each in path.path.triples])
                for path in paths(of, query)
            ]
            return sorted(found, key=str)

        assert len(walks(store)) > 0
        assert str(walks(store)) == str(walks(graph))

    def test_entities_lists_each_node_once_whether_head_tail_or_alone(self, store: GraphStore) -> None:
        entities = list(store.entities())
        assert len(entities) == 5
        assert set(entities) == set("abcde")

    def test_entities_come_in_node_number_order(self, store: GraphStore) -> None:
        entities = list(store.entities())
        numbers = store.numbers(entities)
        assert numbers.tolist() == sorted(numbers.tolist())

    def test_numbers_and_ids_undo_each_other_in_the_order_asked(self, store: GraphStore) -> None:
        asked = ids("c", "a", "c", "e")
        numbers = store.numbers(asked)
        assert store.ids(numbers) == asked
        assert numbers[0] == numbers[2]

    def test_names_are_those_of_the_nodes_in_the_order_asked(self, store: GraphStore) -> None:
        asked = ids("c", "a", "c", "e")
        assert store.names_at(store.numbers(asked)) == [node.name for node in store.nodes(asked)]
        assert store.names_at(store.numbers([])) == []

    def test_numbers_of_nothing_is_empty(self, store: GraphStore) -> None:
        assert len(store.numbers([])) == 0
        assert store.ids(store.numbers([])) == []

    @pytest.mark.parametrize("count", [1, 200])
    def test_an_unknown_id_raises_and_is_named(self, store: GraphStore, count: int) -> None:
        asked = ids(*["a"] * (count - 1), "nobody")
        with pytest.raises(EntityNotFound, match="'nobody'"):
            store.numbers(asked)
        with pytest.raises(EntityNotFound, match="'nobody'"):
            store.nodes(asked)

    def test_half_a_character_is_an_unknown_id(self, store: GraphStore) -> None:
        for entity in ("\ud800", "http://e/\udfff"):
            with pytest.raises(EntityNotFound):
                store.numbers([EntityId(entity)])

    def test_an_unknown_relation_number_raises(self, store: GraphStore) -> None:
        with pytest.raises(RelationNotFound):
            store.edges(store.numbers(ids("a")), Direction.OUT, np.array([len(store.relations)]))

    def test_outgoing_edges_are_those_whose_head_was_asked(self, store: GraphStore) -> None:
        batch = store.edges(store.numbers(ids("b")), Direction.OUT)
        assert sorted(spelled(store, batch)) == [(0, False, "b", "r", "a"), (0, False, "b", "s", "c")]

    def test_incoming_edges_keep_their_stored_orientation(self, store: GraphStore) -> None:
        batch = store.edges(store.numbers(ids("b")), Direction.IN)
        assert sorted(spelled(store, batch)) == [
            (0, True, "a", "r", "b"),
            (0, True, "e", "r", "b"),
            (0, True, "e", "r", "b"),
        ]

    def test_both_directions_is_the_default(self, store: GraphStore) -> None:
        assert len(store.edges(store.numbers(ids("b")))) == 5

    def test_other_is_the_far_end(self, store: GraphStore) -> None:
        batch = store.edges(store.numbers(ids("b")))
        assert sorted(store.ids(batch.other)) == ["a", "a", "c", "e", "e"]

    def test_edges_are_counted_by_relation_and_way_for_each_node_asked(self, store: GraphStore) -> None:
        found = store.relation_counts(store.numbers(ids("c", "b", "d", "c")))
        labels = [store.relations[number] for number in found.relation.tolist()]
        columns = (found.origin.tolist(), labels, found.inverse.tolist(), found.count.tolist())
        of_c = [("r", False, 1), ("r", True, 1), ("s", True, 1)]  # the loop counts once each way
        of_b = [("r", False, 1), ("s", False, 1), ("r", True, 3)]
        # Relation numbers are the store's own, so those of one way may come in either order.
        assert sorted(zip(*columns, strict=True)) == sorted(
            [(0, *group) for group in of_c] + [(1, *group) for group in of_b] + [(3, *group) for group in of_c]
        )
        assert found.degrees(4).tolist() == [3, 5, 0, 3]
        keys = list(zip(found.origin.tolist(), found.inverse.tolist(), found.relation.tolist(), strict=True))
        assert keys == sorted(keys)

    def test_no_edges_are_counted_for_no_nodes(self, store: GraphStore) -> None:
        found = store.relation_counts(store.numbers([]))
        assert len(found.count) == len(found.degrees(0)) == 0

    def test_counting_refuses_a_node_number_that_was_not_given_out(self, store: GraphStore) -> None:
        with pytest.raises(EntityNotFound):
            store.relation_counts(np.array([10**6]))

    def test_origin_counts_positions_of_the_request_also_when_a_node_is_asked_twice(self, store: GraphStore) -> None:
        batch = store.edges(store.numbers(ids("c", "a", "c")), Direction.OUT)
        assert spelled(store, batch) == [
            (0, False, "c", "r", "c"),
            (1, False, "a", "r", "b"),
            (2, False, "c", "r", "c"),
        ]

    def test_edges_are_ordered_by_origin_direction_relation_other_end_and_edge(self, store: GraphStore) -> None:
        batch = store.edges(store.numbers(ids("e", "b", "c", "a")))
        columns = (batch.origin, batch.inverse, batch.relation, batch.other, batch.edge)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        assert rows == sorted(rows)
        assert len(rows) == 2 + 5 + 3 + 2

    def test_batches_of_one_store_are_joined_and_those_of_another_refused(self, store: GraphStore) -> None:
        asked = store.numbers(ids("a"))
        batches = [store.edges(asked), store.edges(asked, Direction.OUT), store.edges(asked[:0]), store.sample_edges(1)]
        mine = [(batch, np.arange(len(batch))) for batch in batches]
        assert len(join(mine, [1, 1, 0, 0])[0]) == sum(map(len, batches))
        other = ColumnarGraph.from_triples([("a", "r", "b")])
        with pytest.raises(StoresMixed):
            join([*mine, (other.edges(other.numbers(ids("a"))), np.arange(1))], [1, 1, 0, 0, 1])

    def test_a_self_loop_appears_once_for_each_direction(self, store: GraphStore) -> None:
        number = store.relations.index("r")
        batch = store.edges(store.numbers(ids("c")), Direction.BOTH, np.array([number]))
        assert spelled(store, batch) == [(0, False, "c", "r", "c"), (0, True, "c", "r", "c")]
        assert batch.edge[0] == batch.edge[1]

    def test_parallel_edges_are_all_kept_with_their_own_numbers_and_properties(self, store: GraphStore) -> None:
        batch = store.edges(store.numbers(ids("e")), Direction.OUT)
        assert len(set(batch.edge.tolist())) == 2
        assert sorted(row["since"] for row in store.edge_properties(batch.edge)) == [1990, 2001]

    def test_the_same_edge_has_one_number_from_both_ends(self, store: GraphStore) -> None:
        out = store.edges(store.numbers(ids("a")), Direction.OUT)
        back = store.edges(store.numbers(ids("b")), Direction.IN)
        assert out.edge[0] in back.edge.tolist()

    def test_edge_properties_come_in_the_order_asked_and_are_empty_where_there_are_none(
        self, store: GraphStore
    ) -> None:
        parallel = store.edges(store.numbers(ids("e")), Direction.OUT).edge
        plain = store.edges(store.numbers(ids("a")), Direction.OUT).edge
        forth = store.edge_properties(np.concatenate((parallel, plain)))
        assert store.edge_properties(np.concatenate((plain, parallel[::-1]))) == [{}, *forth[1::-1]]

    def test_relations_filter_edges_whatever_their_order_or_repetition(self, store: GraphStore) -> None:
        r, s = (store.relations.index(label) for label in "rs")
        b = store.numbers(ids("b"))
        assert spelled(store, store.edges(b, Direction.OUT, np.array([s]))) == [(0, False, "b", "s", "c")]
        both = spelled(store, store.edges(b, Direction.BOTH))
        assert spelled(store, store.edges(b, Direction.BOTH, np.array([s, r, s]))) == both
        assert len(store.edges(b, Direction.BOTH, np.array([], np.int64))) == 0

    def test_a_node_without_edges_gives_an_empty_batch(self, store: GraphStore) -> None:
        assert len(store.edges(store.numbers(ids("d")))) == 0
        assert len(store.edges(store.numbers([]))) == 0

    def test_equal_requests_give_equal_answers(self, make: Make) -> None:
        nodes = [node(f"n{number}") for number in range(20)]
        edges = [edge(f"n{k * 7 % 20}", f"r{k % 3}", f"n{k * 11 % 20}") for k in range(60)]
        answers = []
        for _ in range(2):
            store = make(nodes, edges)
            batch = store.edges(store.numbers(list(store.entities())))
            answers.append((list(store.entities()), list(store.relations), spelled(store, batch), batch.edge.tolist()))
        assert answers[0] == answers[1]

    @pytest.mark.parametrize("count", [0, 1, 3, 100])
    def test_a_sample_holds_so_many_different_edges_of_each_relation(self, make: Make, count: int) -> None:
        # r has 10 edges, s has 2
        edges = [edge("a", "r", f"n{number}") for number in range(10)] + [edge("n0", "s", "a"), edge("n1", "s", "a")]
        store = make([node("a"), *(node(f"n{number}") for number in range(10))], edges)
        batch = store.sample_edges(count)
        labels = [store.relations[number] for number in batch.relation.tolist()]
        assert (labels.count("r"), labels.count("s")) == (min(count, 10), min(count, 2))
        assert batch.relation.tolist() == sorted(batch.relation.tolist())
        assert len(set(batch.edge.tolist())) == len(batch)
        stored = {(triple.head, triple.relation, triple.tail) for triple in edges}
        assert {(head, label, tail) for _, _, head, label, tail in spelled(store, batch)} <= stored
        assert batch.origin.tolist() == list(range(len(batch)))
        assert not batch.inverse.any()

    def test_any_character_may_stand_in_an_id(self, make: Make) -> None:
        chain = [edge(head, "next", tail) for head, tail in pairwise(STRANGE_IDS)]
        store = make([node(name) for name in STRANGE_IDS], chain)
        assert set(store.entities()) == set(STRANGE_IDS)
        assert store.ids(store.numbers(ids(*STRANGE_IDS))) == STRANGE_IDS
        batch = store.edges(store.numbers(ids(*STRANGE_IDS)), Direction.OUT)
        assert [(head, tail) for _, _, head, _, tail in spelled(store, batch)] == [(t.head, t.tail) for t in chain]

    def test_any_character_may_stand_in_a_relation(self, make: Make) -> None:
        store = make([node("a"), node("b")], [edge("a", label, "b") for label in STRANGE_RELATIONS])
        assert sorted(store.relations) == sorted(STRANGE_RELATIONS)
        for label in STRANGE_RELATIONS:
            batch = store.edges(store.numbers(ids("a")), Direction.OUT, np.array([store.relations.index(label)]))
            assert spelled(store, batch) == [(0, False, "a", label, "b")]

    #   a - b twice: parallel undirected edges      b - c      c -knows-> d      e - e      a -likes-> c
    @pytest.fixture
    def acquaintances(self, make: Make) -> GraphStore:
        if not self.holds_undirected:
            pytest.skip("this store holds directed edges only")
        return make(
            [node(name) for name in "abcde"],
            [
                undirected("b", "knows", "a", since=1990),
                undirected("a", "knows", "b", since=2001),
                undirected("b", "knows", "c"),
                edge("c", "knows", "d"),
                undirected("e", "knows", "e"),
                edge("a", "likes", "c"),
            ],
        )

    @pytest.mark.parametrize(
        ("asked", "out", "back", "both"),
        [
            ("a", ["a-b", "a-b", "a>c"], ["b-a", "b-a"], ["a-b", "a-b", "a>c"]),
            ("b", ["b-a", "b-a", "b-c"], ["a-b", "a-b", "c-b"], ["b-a", "b-a", "b-c"]),
            ("c", ["c-b", "c>d"], ["a>c", "b-c"], ["c-b", "c>d", "a>c"]),
            ("d", [], ["c>d"], ["c>d"]),
            ("e", ["e-e"], ["e-e"], ["e-e", "e-e"]),
        ],
    )
    def test_an_undirected_edge_goes_out_of_both_ends_and_is_met_once_at_each(
        self, acquaintances: GraphStore, asked: str, out: list[str], back: list[str], both: list[str]
    ) -> None:
        node = acquaintances.numbers(ids(asked))
        for direction, expected in ((Direction.OUT, out), (Direction.IN, back), (Direction.BOTH, both)):
            batch = acquaintances.edges(node, direction)
            assert batch.undirected is not None
            signs = ["-" if each else ">" for each in batch.undirected.tolist()]
            ends = zip(acquaintances.ids(batch.head), signs, acquaintances.ids(batch.tail), strict=True)
            assert sorted("".join(each) for each in ends) == sorted(expected)
            columns = (batch.origin, batch.inverse, batch.relation, batch.other, batch.edge)
            rows = list(zip(*(column.tolist() for column in columns), strict=True))
            assert rows == sorted(rows)
            if direction is not Direction.BOTH:
                assert set(batch.inverse.tolist()) <= {direction is Direction.IN}

    def test_an_undirected_edge_has_one_number_and_its_properties_from_both_ends(
        self, acquaintances: GraphStore
    ) -> None:
        knows = np.array([acquaintances.relations.index("knows")])
        a, b = (acquaintances.edges(acquaintances.numbers(ids(one)), Direction.OUT, knows) for one in "ab")
        assert set(a.edge.tolist()) < set(b.edge.tolist())
        said = acquaintances.edge_properties(a.edge)
        assert sorted(row["since"] for row in said) == [1990, 2001]
        assert acquaintances.edge_properties(b.edge[:2]) == said

    def test_undirected_edges_count_as_edges_out_of_both_ends(self, acquaintances: GraphStore) -> None:
        found = acquaintances.relation_counts(acquaintances.numbers(ids(*"abcde")))
        labels = [acquaintances.relations[number] for number in found.relation.tolist()]
        columns = (found.origin.tolist(), labels, found.inverse.tolist(), found.count.tolist())
        assert sorted(zip(*columns, strict=True)) == [
            (0, "knows", False, 2),
            (0, "likes", False, 1),
            (1, "knows", False, 3),
            (2, "knows", False, 2),
            (2, "likes", True, 1),
            (3, "knows", True, 1),
            (4, "knows", False, 1),
            (4, "knows", True, 1),
        ]

    def test_the_schema_counts_an_undirected_edge_once(self, acquaintances: GraphStore) -> None:
        relations = {relation.name: relation for relation in acquaintances.schema().relations}
        assert (relations["knows"].count, relations["knows"].undirected) == (5, 4)
        assert (relations["likes"].count, relations["likes"].undirected) == (1, 0)
        assert len(acquaintances.sample_edges(10)) == 6

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            (
                "PATHS ALL TRAIL START ?x = :a END ?y VIA :knows",
                ["ab", "ab", "aba", "aba", "abc", "abc", "abcd", "abcd"],
            ),
            ("PATHS ALL TRAIL START ?x = :a END ?y VIA ^:knows MAX LENGTH 1", ["ab", "ab"]),
            ("PATHS ALL ACYCLIC START ?x = :c END ?y VIA :knows MAX LENGTH 2", ["cb", "cba", "cba", "cd"]),
            ("PATHS ALL ACYCLIC START ?x = :c END ?y VIA UNDIRECTED :knows MAX LENGTH 2", ["cb", "cba", "cba", "cd"]),
            ("PATHS START ?x = :c END ?y = :a VIA :knows", ["cba", "cba"]),
            ("PATHS START ?x = :d END ?y = :a VIA ^:knows", ["dcba", "dcba"]),
            ("PATHS START ?x = :d END ?y = :a VIA :knows", []),
            ("PATHS ALL TRAIL START ?x = :e END ?y VIA :knows", ["ee"]),
            ("PATHS START ?x = :a END ?y VIA { ?x :knows ?m . ?m :knows ?y } MAX LENGTH 1", ["aa", "ac"]),
            ("PATHS START ?x = :a END ?y MATCHING :likes/:knows", ["acb", "acd"]),
        ],
    )
    def test_path_queries_walk_undirected_edges_both_ways(
        self, acquaintances: GraphStore, query: str, expected: list[str]
    ) -> None:
        found = list(paths(acquaintances, query))
        assert sorted({"".join(path.nodes) for path in found}) == sorted(set(expected))
        if "{" not in query:
            assert sorted("".join(path.nodes) for path in found) == sorted(expected)
            for path in found:
                for triple, near in zip(path.path.triples, path.nodes, strict=False):
                    assert not triple.undirected or triple.head == near

    def test_nodes_have_id_name_type_and_properties_of_every_kind(self, make: Make) -> None:
        paris = Node(
            EntityId("Q90"), "Paris", "City", {"area": 105.4, "people": 2100000, "capital": True, "code": "75"}
        )
        other = Node(EntityId("Q830149"), "Paris", "City", {"people": 24839})
        plain = Node(EntityId("x"), "x")
        store = make([paris, other, plain], [])
        assert store.nodes(ids("x", "Q830149", "Q90", "x")) == [plain, other, paris, plain]

    def test_schema_counts_types_and_relations_and_names_their_ends_and_properties(self, make: Make) -> None:
        #   Ann:Person -lives_in-> Rome:City   Bob:Person -lives_in-> Rome   Rex:Dog -lives_in-> Oslo:City
        #   Ann -knows-> Bob
        store = make(
            [
                node("Ann", "Person", age=5),
                node("Bob", "Person"),
                node("Rex", "Dog"),
                node("Rome", "City", km2=1285.0),
                node("Oslo", "City"),
            ],
            [
                edge("Ann", "lives_in", "Rome", since=1999),
                edge("Bob", "lives_in", "Rome"),
                edge("Rex", "lives_in", "Oslo"),
                edge("Ann", "knows", "Bob"),
            ],
        )
        schema = store.schema()
        assert schema.node_types == {"City": 2, "Person": 2, "Dog": 1}
        assert schema.node_properties == {"City": ("km2",), "Person": ("age",)}
        assert [relation.name for relation in schema.relations] == list(store.relations)
        found = {relation.name: relation for relation in schema.relations}
        assert set(found) == {"lives_in", "knows"}
        lives_in, knows = found["lives_in"], found["knows"]
        assert (lives_in.count, lives_in.domain, lives_in.range) == (3, ("Person", "Dog"), ("City",))
        assert lives_in.properties == ("since",)
        assert (knows.count, knows.domain, knows.range, knows.properties) == (1, ("Person",), ("Person",), ())

    #   road:Album -producer-> martin:Person,Producer,Songwriter   road -producer-> norman:Person   road -label-> emi
    def test_a_node_of_several_types_is_of_each_of_them(self, make: Make) -> None:
        store = make(
            [
                node("road", "Album"),
                Node(EntityId("martin"), "martin", "Person", {"born": 1926}, ("Producer", "Songwriter")),
                Node(EntityId("norman"), "norman", "Person", {"age": 5}),
                node("emi"),
            ],
            [edge("road", "producer", "martin"), edge("road", "producer", "norman"), edge("road", "label", "emi")],
        )
        martin, norman, emi, road = store.nodes(ids("martin", "norman", "emi", "road"))
        assert sorted(martin.types) == ["Person", "Producer", "Songwriter"] and martin.type == martin.types[0]
        assert (norman.types, emi.types, road.types) == (("Person",), (), ("Album",))
        assert martin.properties == {"born": 1926}
        schema = store.schema()
        assert schema.node_types == {"Person": 2, "": 1, "Album": 1, "Producer": 1, "Songwriter": 1}
        found = {relation.name: relation for relation in schema.relations}
        assert (found["producer"].domain, found["label"].range) == (("Album",), ("",))
        assert found["producer"].range == ("Person", "Producer", "Songwriter")
        assert schema.node_properties == {
            "Person": ("age", "born"),
            "Producer": ("born",),
            "Songwriter": ("born",),
        } or schema.node_properties == {"Person": ("born", "age"), "Producer": ("born",), "Songwriter": ("born",)}
        query = "PATHS START ?x = :road END ?y VIA { ?x :producer ?y . ?y a :Songwriter }"
        assert [path.nodes for path in paths(store, query)] == [("road", "martin")]
        every = "PATHS START ?x = :road END ?y VIA { ?x :producer ?y . ?y a ?t }"
        assert len(list(paths(store, every))) > 0

    def test_an_empty_graph_answers_everything_with_nothing(self, make: Make) -> None:
        store = make([], [])
        assert list(store.entities()) == []
        assert list(store.relations) == []
        assert store.schema().node_types == {}
        assert store.schema().relations == ()
        assert store.nodes([]) == []
        assert len(store.edges(store.numbers([]))) == 0
        assert store.edge_properties(np.empty(0, np.int64)) == []
        assert len(store.sample_edges(5)) == 0
        with pytest.raises(EntityNotFound):
            store.numbers(ids("a"))
        with pytest.raises(EntityNotFound):
            store.numbers(ids(*"abcdefghijklmnopqrstuvwxyz"))
