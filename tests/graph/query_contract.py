"""What every query store promises. Subclass `QueryStoreContract`, provide `make_queryable`, inherit the checks.

The checks do not know a query language: they ask `queries`, which writes the same question in each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import pytest

from byokg.errors import QueryInvalid, QueryRefused, QueryTimeout
from byokg.graph.store import QueryLimits, QueryStore
from byokg.types import Cell, EdgeCell, EntityId, Node, NodeCell, PathCell, Triple
from tests.graph.contract import STRANGE_IDS, STRANGE_RELATIONS, edge, node

MakeQueryable = Callable[[Sequence[Node], Sequence[Triple]], QueryStore]


class Queries(Protocol):
    """The questions of the contract, written in one language. Columns are named as in each description."""

    @property
    def writes(self) -> Sequence[str]:
        """Queries that would change the graph `a -r-> b`, each in another way."""

    @property
    def wrong(self) -> Sequence[str]:
        """Texts that are not queries of this language."""

    @property
    def endless(self) -> str:
        """Would run for years over a dozen nodes."""

    def neighbours(self, name: str, relation: str) -> str:
        """`start`, `end`: names of the node called `name` and of those that `relation` leads to, ordered by `end`."""

    def sought(self, parameter: str) -> str:
        """`id`: the ids of all nodes whose name is the parameter's value."""

    def nodes(self, type: str) -> str:
        """`n`: all nodes of a type, as nodes, ordered by name."""

    def names(self) -> str:
        """`name`: the names of all nodes, ordered."""

    def property(self, name: str, key: str) -> str:
        """`value`: one property of the node with this name."""

    def count(self) -> str:
        """`n`: how many edges there are."""


class CypherQueries:
    """The questions in Cypher."""

    writes = (
        "CREATE (n:Thing {name: 'new'})",
        "MATCH (a {name: 'a'}) SET a.name = 'changed'",
        "MATCH (a {name: 'a'}) DETACH DELETE a",
        "MERGE (n {name: 'z'}) RETURN n",
        "MATCH (a {name: 'a'}) REMOVE a.name RETURN a",
        "MATCH (a {name: 'a'}), (b {name: 'b'}) CREATE (a)-[:r]->(b)",
    )
    wrong = (
        "MATCH (n RETURN n",
        "MATCH (n) RETURN",
        "SELECT * FROM nodes",
        "give me all films",
        "RETURN 'open string",
        "RETURN missing",
        "",
    )
    endless = "MATCH (a)-[*1..30]-(b)-[*1..30]-(c)-[*1..30]-(d) RETURN count(*) AS n"

    def neighbours(self, name: str, relation: str) -> str:
        return f"MATCH (n)-[:{back_quoted(relation)}]->(m) WHERE n.name = {quoted(name)} " + (
            "RETURN n.name AS start, m.name AS end ORDER BY end"
        )

    def sought(self, parameter: str) -> str:
        return f"MATCH (n {{name: ${parameter}}}) RETURN n.id AS id"

    def nodes(self, type: str) -> str:
        return f"MATCH (n:{back_quoted(type)}) RETURN n ORDER BY n.name"

    def names(self) -> str:
        return "MATCH (n) RETURN n.name AS name ORDER BY name"

    def property(self, name: str, key: str) -> str:
        return f"MATCH (n {{name: {quoted(name)}}}) RETURN n.{back_quoted(key)} AS value"

    def count(self) -> str:
        return "MATCH ()-[r]->() RETURN count(r) AS n"


def quoted(text: str) -> str:
    """Write a Cypher string."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    return f"'{escaped}'"


def back_quoted(name: str) -> str:
    """Write any text as a label, relation type or property name of Cypher."""
    return f"`{name.replace('`', '``')}`"


class QueryStoreContract:
    """The checks. `make_queryable` turns nodes and edges into the store under test."""

    queries: Queries = CypherQueries()

    @pytest.fixture
    def make_queryable(self) -> MakeQueryable:
        raise NotImplementedError("a subclass provides the fixture `make_queryable`")

    #   a -r-> b    a -r-> c    c -r-> c    a -s-> d    d stands only at the end of an edge
    @pytest.fixture
    def asked(self, make_queryable: MakeQueryable) -> QueryStore:
        edges = [edge("a", "r", "b"), edge("a", "r", "c"), edge("c", "r", "c"), edge("a", "s", "d")]
        return make_queryable([node(name) for name in "abcd"], edges)

    def test_an_answer_has_the_columns_and_the_rows_asked_for(self, asked: QueryStore) -> None:
        answer = asked.run(self.queries.neighbours("a", "r"))
        assert answer.columns == ("start", "end")
        assert answer.rows == (("a", "b"), ("a", "c"))
        assert not answer.truncated
        assert len(answer) == 2

    def test_a_node_that_is_only_a_tail_is_found(self, asked: QueryStore) -> None:
        assert asked.run(self.queries.neighbours("a", "s")).rows == (("a", "d"),)

    def test_edges_are_all_there_in_their_orientation(self, asked: QueryStore) -> None:
        assert asked.run(self.queries.neighbours("c", "r")).rows == (("c", "c"),)
        assert asked.run(self.queries.neighbours("b", "r")).rows == ()
        assert asked.run(self.queries.count()).rows == ((4,),)

    def test_what_is_unknown_gives_no_rows(self, asked: QueryStore) -> None:
        assert asked.run(self.queries.nodes("Nobody")).rows == ()
        assert asked.run(self.queries.neighbours("a", "nothing")).rows == ()
        assert asked.run(self.queries.neighbours("nobody", "r")).rows == ()

    def test_half_a_character_is_refused_in_the_text_and_in_parameters(self, asked: QueryStore) -> None:
        with pytest.raises(QueryRefused, match="half of a character"):
            asked.run(self.queries.neighbours("\ud800", "r"))
        with pytest.raises(QueryInvalid, match="half of a character"):
            asked.run(self.queries.sought("x"), {"x": "a\udfff"})

    @pytest.mark.parametrize(("most", "truncated"), [(1, True), (3, True), (4, False), (5, False)])
    def test_rows_beyond_the_limit_are_left_out_and_that_is_said(
        self, asked: QueryStore, most: int, truncated: bool
    ) -> None:
        answer = asked.run(self.queries.names(), limits=QueryLimits(max_rows=most))
        assert answer.rows == tuple((name,) for name in "abcd"[:most])
        assert answer.truncated is truncated

    @pytest.mark.parametrize("value", ["a", "it's", 'say "hi"', "} RETURN 1 //", "a' OR '1'='1", "\\", "😀\n`"])
    def test_a_parameter_is_data_whatever_it_looks_like(self, make_queryable: MakeQueryable, value: str) -> None:
        store = make_queryable([Node(EntityId("1"), value), Node(EntityId("2"), "other")], [])
        assert store.run(self.queries.sought("wanted"), {"wanted": value}).rows == (("1",),)
        assert store.run(self.queries.sought("wanted"), {"wanted": "none"}).rows == ()

    def test_names_are_not_identity(self, make_queryable: MakeQueryable) -> None:
        store = make_queryable([Node(EntityId("x1"), "Paris"), Node(EntityId("x2"), "Paris")], [])
        assert sorted(store.run(self.queries.sought("name"), {"name": "Paris"}).rows) == [("x1",), ("x2",)]

    def test_what_is_no_query_is_invalid_and_the_message_is_for_a_reader(self, asked: QueryStore) -> None:
        for text in self.queries.wrong:
            # The guard may be the one who notices, and then calls it refused.
            with pytest.raises((QueryInvalid, QueryRefused)) as caught:
                asked.run(text)
            message = str(caught.value)
            assert message.strip()
            assert "Exception" not in message and "\n\tat " not in message and "Traceback" not in message

    def test_no_query_changes_the_graph(self, make_queryable: MakeQueryable) -> None:
        store = make_queryable([node("a"), node("b")], [edge("a", "r", "b")])
        for text in self.queries.writes:
            with pytest.raises(QueryRefused):
                store.run(text)
        assert store.run(self.queries.names()).rows == (("a",), ("b",))
        assert store.run(self.queries.neighbours("a", "r")).rows == (("a", "b"),)
        assert store.run(self.queries.count()).rows == ((1,),)

    def test_a_query_that_runs_away_is_stopped_and_the_next_one_works(self, make_queryable: MakeQueryable) -> None:
        # every node is joined to every other: 12 * 11 edges
        names = [f"n{number:02}" for number in range(12)]
        edges = [edge(head, "r", tail) for head in names for tail in names if head != tail]
        store = make_queryable([node(name) for name in names], edges)
        for _ in range(2):
            with pytest.raises(QueryTimeout, match=r"0\.5 s"):
                store.run(self.queries.endless, limits=QueryLimits(timeout_s=0.5))
            assert store.run(self.queries.names()).rows == tuple((name,) for name in names)

    def test_nodes_come_as_nodes_with_id_type_and_properties(self, make_queryable: MakeQueryable) -> None:
        paris = Node(
            EntityId("Q90"), "Paris", "City", {"area": 105.4, "people": 2100000, "capital": True, "code": "75"}
        )
        store = make_queryable([paris, Node(EntityId("Q142"), "France", "Country")], [edge("Q90", "in", "Q142")])
        assert store.run(self.queries.nodes("City")).rows == (
            (NodeCell(paris.id, paris.name, paris.type, paris.properties),),
        )

    def test_a_node_is_found_by_each_of_its_types(self, make_queryable: MakeQueryable) -> None:
        martin = Node(EntityId("m"), "Martin", "Person", {}, ("Producer", "Song writer"))
        store = make_queryable([martin, Node(EntityId("n"), "Norman", "Person"), node("r", "Album")], [])
        for label in martin.types:
            cells = [cell for (cell,) in store.run(self.queries.nodes(label)).rows]
            found = {cell.id: {cell.type, *cell.further_types} for cell in cells if isinstance(cell, NodeCell)}
            assert found == {"m": set(martin.types)} | ({"n": {"Person"}} if label == "Person" else {})

    @pytest.mark.parametrize(
        "value", ["text", "", "2001-09-30", 0, -7, 2**53 + 1, 0.5, 1285.0, -1e300, True, False, "naïve 😀"]
    )
    def test_a_property_keeps_its_value_and_type(
        self, make_queryable: MakeQueryable, value: str | int | float | bool
    ) -> None:
        store = make_queryable([node("a", "Thing", thing=value)], [])
        ((found,),) = store.run(self.queries.property("a", "thing")).rows
        assert (found, type(found)) == (value, type(value))

    def test_any_character_may_stand_in_a_name(self, make_queryable: MakeQueryable) -> None:
        edges = [edge(name, "next", name) for name in STRANGE_IDS]
        store = make_queryable([node(name) for name in STRANGE_IDS], edges)
        for name in STRANGE_IDS:
            assert store.run(self.queries.neighbours(name, "next")).rows == ((name, name),)
            assert store.run(self.queries.sought("x"), {"x": name}).rows == ((name,),)

    def test_any_character_may_stand_in_a_relation_or_type(self, make_queryable: MakeQueryable) -> None:
        labels = [*STRANGE_RELATIONS, "with, comma", "a/b", "semi;colon", "per%cent", "back\\slash", "r"]
        nodes = [node(f"n{number}", f"type {label}") for number, label in enumerate(labels)]
        store = make_queryable(nodes, [edge("n0", label, f"n{number}") for number, label in enumerate(labels)])
        for number, label in enumerate(labels):
            assert store.run(self.queries.neighbours("n0", label)).rows == (("n0", f"n{number}"),)
            ((cell,),) = store.run(self.queries.nodes(f"type {label}")).rows
            assert isinstance(cell, NodeCell) and (cell.id, cell.type) == (f"n{number}", f"type {label}")

    def test_a_relation_may_be_called_like_a_type(self, make_queryable: MakeQueryable) -> None:
        store = make_queryable([node("a", "film"), node("b", "film")], [edge("a", "film", "b")])
        assert store.run(self.queries.neighbours("a", "film")).rows == (("a", "b"),)
        cells = [cell for (cell,) in store.run(self.queries.nodes("film")).rows]
        assert [cell.id for cell in cells if isinstance(cell, NodeCell) and cell.type == "film"] == ["a", "b"]

    def test_threads_each_get_their_own_answer(self, make_queryable: MakeQueryable) -> None:
        names = [f"n{number}" for number in range(40)]
        store = make_queryable([node(name) for name in names], [])
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda name: store.run(self.queries.sought("x"), {"x": name}).rows, names))
        assert answers == [((name,),) for name in names]

    def test_an_empty_graph_can_be_asked(self, make_queryable: MakeQueryable) -> None:
        store = make_queryable([], [])
        assert store.run(self.queries.names()).rows == ()
        assert store.run(self.queries.count()).rows == ((0,),)


class CypherContract(QueryStoreContract):
    """The checks for stores that speak Cypher: what only this language can ask."""

    #   Ann:Person -acted in {since: 1999}-> Alien:Film    Ann -acted in {since: 2001}-> Alien    Bob:Person -> Alien
    @pytest.fixture
    def films(self, make_queryable: MakeQueryable) -> QueryStore:
        return make_queryable(
            [node("Ann", "Person", born=1970), node("Bob", "Person"), node("Alien", "Film")],
            [
                edge("Ann", "acted in", "Alien", since=1999),
                edge("Ann", "acted in", "Alien", since=2001),
                edge("Bob", "acted in", "Alien"),
            ],
        )

    def test_parallel_edges_are_separate_rows_with_their_properties(self, films: QueryStore) -> None:
        answer = films.run("MATCH (p:Person {name: 'Ann'})-[r:`acted in`]->(f) RETURN r, r.since AS s ORDER BY s")
        ann, alien = EntityId("Ann"), EntityId("Alien")
        assert answer.rows == (
            (EdgeCell(ann, "acted in", alien, {"since": 1999}), 1999),
            (EdgeCell(ann, "acted in", alien, {"since": 2001}), 2001),
        )

    def test_an_edge_keeps_its_orientation_however_it_is_matched(self, films: QueryStore) -> None:
        answer = films.run("MATCH (f:Film)<-[r]-(p {name: 'Bob'}) RETURN r, type(r) AS t, startNode(r).name AS s")
        assert answer.rows == ((EdgeCell(EntityId("Bob"), "acted in", EntityId("Alien")), "acted in", "Bob"),)

    def test_a_path_comes_as_a_path(self, films: QueryStore) -> None:
        answer = films.run("MATCH p = (a {name: 'Bob'})-[:`acted in`]->(f) RETURN p, length(p) AS hops")
        bob, alien = NodeCell(EntityId("Bob"), "Bob", "Person"), NodeCell(EntityId("Alien"), "Alien", "Film")
        assert answer.rows == ((PathCell((bob, alien), (EdgeCell(bob.id, "acted in", alien.id),)), 1),)

    def test_a_shortest_path_can_be_asked_for(self, films: QueryStore) -> None:
        answer = films.run(
            "MATCH p = shortestPath((a:Person {name: 'Ann'})-[*..5]-(b:Person {name: 'Bob'})) "
            "RETURN [n IN nodes(p) | n.name] AS names"
        )
        assert answer.rows == ((("Ann", "Alien", "Bob"),),)

    def test_lists_and_maps_may_be_nested_in_answers_and_parameters(self, films: QueryStore) -> None:
        value: dict[str, Cell] = {"list": [1, 2.5, None, True, "x"], "map": {"deep": [[], {}]}}
        ((found, inside),) = films.run("RETURN $value AS v, {a: [1, {b: null}], c: 'd'} AS w", {"value": value}).rows
        assert found == {"list": (1, 2.5, None, True, "x"), "map": {"deep": ((), {})}}
        assert inside == {"a": (1, {"b": None}), "c": "d"}

    def test_nodes_and_edges_may_stand_in_lists_and_maps(self, films: QueryStore) -> None:
        ((people,),) = films.run(
            "MATCH (p:Person) WITH p ORDER BY p.name RETURN collect({who: p, age: 2000 - p.born}) AS people"
        ).rows
        assert people == (
            {"who": NodeCell(EntityId("Ann"), "Ann", "Person", {"born": 1970}), "age": 30},
            {"who": NodeCell(EntityId("Bob"), "Bob", "Person"), "age": None},
        )

    @pytest.mark.parametrize(
        ("written", "found"),
        [
            ("date('2001-02-03')", "2001-02-03"),
            ("localdatetime('2001-02-03T04:05:06')", "2001-02-03T04:05:06"),
            ("datetime('2001-02-03T04:05:06Z')", "2001-02-03T04:05:06Z"),
            ("localtime('04:05:06')", "04:05:06"),
            ("duration('P1Y2M3D')", "P1Y2M3D"),
            ("date('2001-02-03').year", 2001),
        ],
    )
    def test_dates_and_times_are_iso_8601(self, films: QueryStore, written: str, found: object) -> None:
        assert films.run(f"RETURN {written} AS x").rows == ((found,),)

    @pytest.mark.parametrize("value", ["text", 7, 2**53 + 1, -(2**63), 0.5, True, False, None])
    def test_parameters_keep_their_type(self, films: QueryStore, value: str | int | float | bool | None) -> None:
        ((found,),) = films.run("RETURN $value AS x", {"value": value}).rows
        assert (found, type(found)) == (value, type(value))

    def test_columns_are_named_as_the_query_says(self, films: QueryStore) -> None:
        answer = films.run("MATCH (f:Film) RETURN f.name, count(*) AS `how many`, 1 AS one")
        assert answer.columns == ("f.name", "how many", "one")
