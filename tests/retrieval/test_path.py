"""Tests of `byokg.retrieval.path`."""

from __future__ import annotations

import pytest

from byokg.errors import ConfigError, RelationNotFound
from byokg.graph.columnar import ColumnarGraph
from byokg.retrieval.base import Request
from byokg.retrieval.path import PathRetriever
from byokg.types import (
    Artifacts,
    Context,
    EntityId,
    Linked,
    LinkedEntity,
    Mention,
    Metapath,
    PathEvidence,
    ProposedPath,
    Question,
)
from tests.linking.graphs import countries, films


def linked(entity: str, mention: str) -> LinkedEntity:
    return LinkedEntity(EntityId(entity), entity, Mention(mention), "exact", 1.0)


def request(paths: list[ProposedPath], *entities: LinkedEntity) -> Request:
    return Request(Question("q", "?"), Artifacts(paths=tuple(paths)), Linked(entities), Context())


def proposed(*relations: str, source: str | None = None, score: float = 1.0) -> ProposedPath:
    return ProposedPath(relations, score, None if source is None else EntityId(source))


def summary(found: list[PathEvidence]) -> list[tuple[str, Metapath, list[str]]]:
    return [(item.source, item.relations, list(item.ends)) for item in found]


class TestWhereWalksStart:
    def test_at_the_source_proposed(self) -> None:
        paths = [proposed("directed_by", source="Alien"), proposed("has_genre", source="Titanic")]
        found = PathRetriever(films()).retrieve(request(paths, linked("Alien", "a"), linked("Titanic", "t")))
        assert summary(found) == [
            ("Alien", ("directed_by",), ["Ridley Scott"]),
            ("Titanic", ("has_genre",), ["Drama"]),
        ]

    def test_else_at_every_linked_entity_once(self) -> None:
        entities = [linked("Alien", "a"), linked("Titanic", "t"), linked("Alien", "b")]
        found = PathRetriever(films()).retrieve(request([proposed("directed_by")], *entities))
        assert [item.source for item in found] == ["Alien", "Titanic"]

    def test_nowhere_without_a_source_or_an_entity(self) -> None:
        assert PathRetriever(films()).retrieve(request([proposed("directed_by")])) == []
        assert PathRetriever(films()).retrieve(request([], linked("Alien", "a"))) == []


class TestWhatWalksReach:
    def test_an_item_holds_score_ends_and_a_walk(self) -> None:
        path = proposed("directed_by", "^directed_by", source="Alien", score=7.5)
        (item,) = PathRetriever(films()).retrieve(request([path], linked("Alien", "a")))
        assert (item.retriever, item.score, item.truncated) == ("path", 7.5, False)
        assert item.ends == ("Blade Runner",)
        assert [walk.nodes for walk in item.paths] == [("Alien", "Ridley Scott", "Blade Runner")]

    def test_walks_never_come_back_to_the_source_or_another_topic(self) -> None:
        # Spain and Peru both speak Spanish; so do Chile and Bolivia.
        path = proposed("official_language", "^official_language", source="es")
        (item,) = PathRetriever(countries()).retrieve(request([path], linked("es", "Spain"), linked("pe", "Peru")))
        assert item.ends == ("cl", "bo")

    def test_another_reading_of_the_same_mention_may_be_reached(self) -> None:
        path = proposed("official_language", "^official_language", source="es")
        (item,) = PathRetriever(countries()).retrieve(request([path], linked("es", "it"), linked("pe", "it")))
        assert item.ends == ("pe", "cl", "bo")

    def test_a_dead_end_gives_no_item(self) -> None:
        paths = [proposed("capital", "capital", source="pe"), proposed("capital", source="pe")]
        found = PathRetriever(countries()).retrieve(request(paths, linked("pe", "Peru")))
        assert summary(found) == [("pe", ("capital",), ["lima"])]

    def test_an_unknown_relation_raises(self) -> None:
        with pytest.raises(RelationNotFound, match="'captial'"):
            PathRetriever(countries()).retrieve(request([proposed("captial", source="pe")], linked("pe", "Peru")))


class TestCaps:
    #   s -r-> a, b, c;  a -q-> x, y;  b -q-> y, z;  c -q-> y : y by three walks, the others by one
    GRAPH = ColumnarGraph.from_triples(
        [
            *(("s", "r", middle) for middle in "abc"),
            *(("a", "q", "x"), ("a", "q", "y"), ("b", "q", "y"), ("b", "q", "z"), ("c", "q", "y")),
        ]
    )

    def test_ends_of_most_walks_are_kept_and_the_cut_is_told(self) -> None:
        asked = request([proposed("r", "q", source="s")], linked("s", "s"))
        (whole,) = PathRetriever(self.GRAPH).retrieve(asked)
        assert (whole.ends, whole.truncated, len(whole.paths)) == (("y", "x", "z"), False, 3)
        (cut,) = PathRetriever(self.GRAPH, max_ends=2).retrieve(asked)
        assert (cut.ends, cut.truncated) == (("y", "x"), True)

    def test_walks_are_shown_for_the_first_ends_only(self) -> None:
        (item,) = PathRetriever(self.GRAPH, shown=1).retrieve(
            request([proposed("r", "q", source="s")], linked("s", "s"))
        )
        assert [walk.end for walk in item.paths] == ["y"]
        assert item.ends == ("y", "x", "z")

    def test_a_hub_cap_is_told_too(self) -> None:
        (item,) = PathRetriever(self.GRAPH, hub_cap=1).retrieve(
            request([proposed("r", "q", source="s")], linked("s", "s"))
        )
        assert (item.ends, item.truncated) == (("x",), True)

    @pytest.mark.parametrize("setting", ["max_ends", "shown"])
    def test_settings_that_keep_nothing_are_named(self, setting: str) -> None:
        with pytest.raises(ConfigError, match=f"{setting}=0"):
            PathRetriever(self.GRAPH, **{setting: 0})


class TestPathsWhoseDirectionsAreAGuess:
    def guessed(self, *relations: str) -> ProposedPath:
        return ProposedPath(relations, directed=False)

    def test_every_choice_of_directions_that_reaches_something_is_followed(self) -> None:
        # Ridley Scott directed Alien and Blade Runner; from him the relation can only be walked backwards, and from
        # his films only forwards, but forwards leads back to where the walk began.
        found = PathRetriever(films()).retrieve(
            request([self.guessed("directed_by", "starred_actors")], linked("Ridley Scott", "r"))
        )
        assert summary(found) == [
            ("Ridley Scott", ("^directed_by", "starred_actors"), ["Sigourney Weaver", "Harrison Ford"])
        ]

    def test_a_written_inverse_may_be_walked_forwards(self) -> None:
        found = PathRetriever(films()).retrieve(request([self.guessed("^directed_by")], linked("Alien", "a")))
        assert summary(found) == [("Alien", ("directed_by",), ["Ridley Scott"])]

    def test_both_directions_come_written_way_first(self) -> None:
        # Peru -borders-> Chile, Bolivia; Chile -borders-> Bolivia.
        found = PathRetriever(countries()).retrieve(request([self.guessed("borders")], linked("cl", "Chile")))
        assert summary(found) == [("cl", ("borders",), ["bo"]), ("cl", ("^borders",), ["pe"])]

    def test_a_dead_end_is_no_evidence(self) -> None:
        path = self.guessed("has_genre", "directed_by")
        assert PathRetriever(films()).retrieve(request([path], linked("1979", "y"))) == []
