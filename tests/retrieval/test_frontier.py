"""Tests of `byokg.retrieval.frontier`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from byokg.errors import EntityNotFound
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.oxigraph import build_oxigraph
from byokg.graph.store import GraphStore
from byokg.retrieval.frontier import Frontier, HopResult, expand_relations
from byokg.types import EntityId
from tests.linking.graphs import countries, films, marriages


def expanded(
    store: GraphStore,
    chosen: dict[str, Sequence[str]],
    max_triples: int = 50,
    hub_cap: int = 100,
    known: Sequence[str] = (),
) -> HopResult:
    """Follow relations given by label out of entities given by id."""
    labels = list(store.relations)
    frontier = Frontier.of(store, [EntityId(id) for id in chosen])
    numbers = [[labels.index(label) for label in of] for of in chosen.values()]
    return expand_relations(store, frontier, numbers, max_triples, hub_cap, [EntityId(id) for id in known])


def written(found: HopResult) -> list[str]:
    return [f"{triple.head} {triple.relation} {triple.tail}" for triple, _ in found.triples]


def test_a_frontier_counts_edges_by_relation_and_direction() -> None:
    # Peru -borders-> Chile -borders-> Bolivia
    store = countries()
    frontier = Frontier.of(store, [EntityId("cl"), EntityId("lima")])
    counts = [{store.relations[relation]: count for relation, count in of.items()} for of in frontier.counts]
    assert counts == [{"capital": (1, 0), "official_language": (1, 0), "borders": (1, 1)}, {"capital": (0, 1)}]


def test_an_unknown_node_raises() -> None:
    with pytest.raises(EntityNotFound, match="'atlantis'"):
        Frontier.of(countries(), [EntityId("atlantis")])


def test_relations_are_followed_both_ways_in_the_order_chosen() -> None:
    found = expanded(countries(), {"cl": ["borders", "capital"]})
    assert written(found) == ["cl borders bo", "pe borders cl", "cl capital scl"]
    assert [place for _, place in found.triples] == [0, 0, 1]
    assert found.ends == ("bo", "pe", "scl")


def test_what_one_node_chose_is_not_followed_at_another() -> None:
    assert written(expanded(countries(), {"pe": ["capital"], "cl": ["borders"]})) == [
        "pe capital lima",
        "cl borders bo",
        "pe borders cl",
    ]


def test_an_edge_between_two_nodes_of_the_frontier_comes_once() -> None:
    found = expanded(countries(), {"pt": ["borders"], "es": ["borders"]})
    assert written(found) == ["pt borders es"] and found.left_out == 0


def test_nothing_chosen_finds_nothing() -> None:
    assert expanded(countries(), {"pe": []}) == HopResult((), (), (), 0, {})


@pytest.mark.parametrize(
    "chosen",
    [
        {"Ann": ["people.person.spouse_s", "people.person.parents"]},
        {"Bob": ["people.marriage.spouse"], "Cid": ["people.person.spouse_s"]},
        {"Eva": ["people.person.parents"]},
    ],
)
def test_a_store_that_numbers_as_it_goes_finds_the_same(tmp_path: Path, chosen: dict[str, Sequence[str]]) -> None:
    pytest.importorskip("pyoxigraph", reason="needs pyoxigraph: pip install 'byokg[sparql]'")
    with build_oxigraph(marriages(), tmp_path / "store") as store:
        found = expanded(store, chosen)
    same = expanded(marriages(), chosen)
    assert sorted(written(found)) == sorted(written(same)) and sorted(found.ends) == sorted(same.ends)


class TestMediators:
    def test_they_are_walked_through_to_what_has_a_name(self) -> None:
        # Ann -spouse_s-> m.0m1 -spouse-> Bob, m.0m1 -from-> 1999
        found = expanded(marriages(), {"Ann": ["people.person.spouse_s", "people.person.parents"]})
        assert written(found) == [
            "Ann people.person.spouse_s m.0m1",
            "m.0m1 people.marriage.spouse Bob",
            "m.0m1 people.marriage.from 1999",
            "Ann people.person.parents Eva",
        ]
        assert [place for _, place in found.triples] == [0, 0, 0, 1]
        assert found.ends == ("Bob", "1999", "Eva")

    def test_the_way_back_is_not_shown(self) -> None:
        found = expanded(marriages(), {"Bob": ["people.marriage.spouse"]})
        assert written(found) == [
            "m.0m1 people.marriage.spouse Bob",
            "m.0m1 people.marriage.from 1999",
            "Ann people.person.spouse_s m.0m1",
        ]

    def test_what_they_join_counts_towards_the_limit(self) -> None:
        found = expanded(marriages(), {"Ann": ["people.person.spouse_s", "people.person.parents"]}, max_triples=2)
        assert written(found) == ["Ann people.person.spouse_s m.0m1", "m.0m1 people.marriage.spouse Bob"]
        assert (found.ends, found.left_out) == (("Bob",), 2)  # the year of the marriage, and Ann's parent

    def test_a_nameless_node_that_leads_nowhere_else_is_an_end(self) -> None:
        store = ColumnarGraph.from_triples([("Ann", "owns", "m.0x1"), ("m.0x1", "part_of", "m.0x2")])
        assert expanded(store, {"Ann": ["owns"]}).ends == ("m.0x1",)

    def test_a_nameless_hub_is_an_end(self) -> None:
        store = ColumnarGraph.from_triples(
            [("Ann", "owns", "m.0x1"), *(("m.0x1", "part", f"part {number}") for number in range(60))]
        )
        found = expanded(store, {"Ann": ["owns"]})
        assert written(found) == ["Ann owns m.0x1"] and found.ends == ("m.0x1",)


class TestLimits:
    #   s -r-> a0 … a9      s -q-> b0, b1
    GRAPH = ColumnarGraph.from_triples(
        [*(("s", "r", f"a{number}") for number in range(10)), ("s", "q", "b0"), ("s", "q", "b1")]
    )

    def test_the_limit_is_shared_evenly(self) -> None:
        found = expanded(self.GRAPH, {"s": ["r", "q"]}, max_triples=5)
        assert written(found) == ["s r a0", "s r a1", "s r a2", "s q b0", "s q b1"]
        assert found.left_out == 7

    def test_edges_to_known_nodes_go_first(self) -> None:
        found = expanded(self.GRAPH, {"s": ["r"]}, max_triples=2, known=["a7"])
        assert written(found) == ["s r a7", "s r a0"]

    def test_a_relation_with_too_many_edges_is_told_and_not_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        read = []
        edges = ColumnarGraph.edges

        def counted(*arguments: object) -> object:
            batch = edges(*arguments)  # type: ignore[arg-type]
            read.append(len(batch))
            return batch

        monkeypatch.setattr(ColumnarGraph, "edges", counted)
        found = expanded(self.GRAPH, {"s": ["r", "q"], "a1": ["r"]}, hub_cap=9)
        assert written(found) == ["s r a1", "s q b0", "s q b1"]  # from a1 the edge is one of few
        assert [(one.id, self.GRAPH.relations[one.relation], one.inverse, one.count) for one in found.too_many] == [
            ("s", "r", False, 10)
        ]
        assert max(read) == 2

    def test_too_many_one_way_leaves_the_other_way(self) -> None:
        # Two of Drama's films, and Drama's own genre.
        store = ColumnarGraph.from_triples([*films_of_genre(2), ("Drama", "has_genre", "Genre")])
        found = expanded(store, {"Drama": ["has_genre"]}, hub_cap=1)
        assert written(found) == ["Drama has_genre Genre"]
        assert [one.inverse for one in found.too_many] == [True]


def films_of_genre(count: int) -> list[tuple[str, str, str]]:
    return [(f"film {number}", "has_genre", "Drama") for number in range(count)]


def test_films_of_a_genre_are_found_backwards() -> None:
    assert written(expanded(films(), {"Drama": ["has_genre"]})) == [
        "Blade Runner has_genre Drama",
        "Titanic has_genre Drama",
    ]
