"""Tests of `byokg.retrieval.path`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from byokg.errors import ConfigError, RelationNotFound
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.linking.parts import Parts
from byokg.retrieval.path import PathRetriever
from byokg.types import (
    Artifacts,
    Context,
    EntityId,
    Evidence,
    Feedback,
    GraphQuery,
    Linked,
    LinkedEntity,
    Mention,
    Metapath,
    PathEvidence,
    ProposedPath,
    Question,
    Request,
    Step,
)
from tests.linking.graphs import countries, films


def linked(entity: str, mention: str) -> LinkedEntity:
    return LinkedEntity(EntityId(entity), entity, Mention(mention), "exact", 1.0)


def request(paths: list[ProposedPath], *entities: LinkedEntity) -> Request:
    return Request(Question("q", "?"), Artifacts(paths=tuple(paths)), Linked(entities), Context())


def proposed(*relations: str, source: str | None = None, score: float = 1.0) -> ProposedPath:
    return ProposedPath(relations, score, None if source is None else EntityId(source))


def walked(retriever: PathRetriever, asked: Request) -> list[PathEvidence]:
    return [item for item in retriever.retrieve(asked) if isinstance(item, PathEvidence)]


def summary(found: Sequence[Evidence]) -> list[tuple[str, Metapath, list[str]]]:
    return [(item.source, item.relations, list(item.ends)) for item in found if isinstance(item, PathEvidence)]


class TestWhereWalksStart:
    def test_at_the_source_proposed(self) -> None:
        paths = [proposed("directed_by", source="Alien"), proposed("has_genre", source="Titanic")]
        found = walked(PathRetriever(Parts(films())), request(paths, linked("Alien", "a"), linked("Titanic", "t")))
        assert summary(found) == [("Alien", ("directed_by",), ["Ridley Scott"]), ("Titanic", ("has_genre",), ["Drama"])]

    def test_else_at_every_linked_entity_once(self) -> None:
        entities = [linked("Alien", "a"), linked("Titanic", "t"), linked("Alien", "b")]
        found = walked(PathRetriever(Parts(films())), request([proposed("directed_by")], *entities))
        assert [item.source for item in found] == ["Alien", "Titanic"]

    def test_nowhere_without_a_source_or_an_entity(self) -> None:
        assert walked(PathRetriever(Parts(films())), request([proposed("directed_by")])) == []
        assert walked(PathRetriever(Parts(films())), request([], linked("Alien", "a"))) == []


class TestWhatWalksReach:
    def test_an_item_holds_score_ends_and_a_walk(self) -> None:
        path = proposed("directed_by", "^directed_by", source="Alien", score=7.5)
        (item,) = walked(PathRetriever(Parts(films())), request([path], linked("Alien", "a")))
        assert (item.retriever, item.score, item.truncated) == ("path", 7.5, False)
        assert item.ends == ("Blade Runner",)
        assert [walk.nodes for walk in item.paths] == [("Alien", "Ridley Scott", "Blade Runner")]

    def test_walks_never_come_back_to_the_source_or_another_topic(self) -> None:
        # Spain and Peru both speak Spanish; so do Chile and Bolivia.
        path = proposed("official_language", "^official_language", source="es")
        (item,) = walked(
            PathRetriever(Parts(countries())), request([path], linked("es", "Spain"), linked("pe", "Peru"))
        )
        assert item.ends == ("cl", "bo")

    def test_another_reading_of_the_same_mention_may_be_reached(self) -> None:
        path = proposed("official_language", "^official_language", source="es")
        (item,) = walked(PathRetriever(Parts(countries())), request([path], linked("es", "it"), linked("pe", "it")))
        assert item.ends == ("pe", "cl", "bo")

    def test_a_dead_end_gives_no_item(self) -> None:
        paths = [proposed("capital", "capital", source="pe"), proposed("capital", source="pe")]
        found = walked(PathRetriever(Parts(countries())), request(paths, linked("pe", "Peru")))
        assert summary(found) == [("pe", ("capital",), ["lima"])]

    def test_an_unknown_relation_raises(self) -> None:
        with pytest.raises(RelationNotFound, match="'captial'"):
            walked(PathRetriever(Parts(countries())), request([proposed("captial", source="pe")], linked("pe", "Peru")))


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
        (whole,) = walked(PathRetriever(Parts(self.GRAPH)), asked)
        assert (whole.ends, whole.truncated, len(whole.paths)) == (("y", "x", "z"), False, 3)
        (cut,) = walked(PathRetriever(Parts(self.GRAPH), max_ends=2), asked)
        assert (cut.ends, cut.truncated) == (("y", "x"), True)

    def test_walks_are_shown_for_the_first_ends_only(self) -> None:
        (item,) = walked(
            PathRetriever(Parts(self.GRAPH), shown=1), request([proposed("r", "q", source="s")], linked("s", "s"))
        )
        assert [walk.end for walk in item.paths] == ["y"]
        assert item.ends == ("y", "x", "z")

    def test_a_hub_cap_is_told_too(self) -> None:
        (item,) = walked(
            PathRetriever(Parts(self.GRAPH), hub_cap=1), request([proposed("r", "q", source="s")], linked("s", "s"))
        )
        assert (item.ends, item.truncated) == (("x",), True)

    def test_so_is_a_cap_on_the_nodes_in_between(self) -> None:
        # Of a, b and c, which one walk reaches each, the first in node order goes on.
        asked = request([proposed("r", "q", source="s")], linked("s", "s"))
        (item,) = walked(PathRetriever(Parts(self.GRAPH), max_frontier=1), asked)
        assert (item.ends, item.truncated) == (("x",), True)

    @pytest.mark.parametrize("setting", ["max_ends", "shown", "max_hops", "shortest_hops", "anchors"])
    def test_settings_that_keep_nothing_are_named(self, setting: str) -> None:
        with pytest.raises(ConfigError, match=f"{setting}=0"):
            PathRetriever(Parts(self.GRAPH), **cast("Any", {setting: 0}))
        with pytest.raises(ConfigError, match="shortest=-1"):
            PathRetriever(Parts(self.GRAPH), shortest=-1)


class TestPathsWhoseDirectionsAreAGuess:
    def guessed(self, *relations: str) -> ProposedPath:
        return ProposedPath(relations, 1.0, directed=False)

    def test_every_choice_of_directions_that_reaches_something_is_followed(self) -> None:
        # Ridley Scott directed Alien and Blade Runner; from him the relation can only be walked backwards, and from
        # his films only forwards, but forwards leads back to where the walk began.
        found = PathRetriever(Parts(films())).retrieve(
            request([self.guessed("directed_by", "starred_actors")], linked("Ridley Scott", "r"))
        )
        assert summary(found) == [
            ("Ridley Scott", ("^directed_by", "starred_actors"), ["Sigourney Weaver", "Harrison Ford"])
        ]

    def test_a_written_inverse_may_be_walked_forwards(self) -> None:
        found = PathRetriever(Parts(films())).retrieve(request([self.guessed("^directed_by")], linked("Alien", "a")))
        assert summary(found) == [("Alien", ("directed_by",), ["Ridley Scott"])]

    def test_both_directions_come_written_way_first(self) -> None:
        # Peru -borders-> Chile, Bolivia; Chile -borders-> Bolivia.
        found = PathRetriever(Parts(countries())).retrieve(request([self.guessed("borders")], linked("cl", "Chile")))
        assert summary(found) == [("cl", ("borders",), ["bo"]), ("cl", ("^borders",), ["pe"])]

    def test_a_dead_end_is_fed_back(self) -> None:
        path = self.guessed("has_genre", "directed_by")
        found = PathRetriever(Parts(films())).retrieve(request([path], linked("1979", "y")))
        assert [(item.subject, item.problem) for item in found if isinstance(item, Feedback)] == [
            (
                "has_genre -> directed_by",
                "no linked entity has such a path, in any direction; not even its first relation is there; "
                "from there lead, either way: release_year",
            )
        ]
        assert len(found) == 1

    def test_another_linked_entity_may_be_where_a_guessed_path_ends(self) -> None:
        both = [linked("Alien", "a"), linked("Ridley Scott", "r")]
        found = PathRetriever(Parts(films())).retrieve(request([self.guessed("directed_by")], *both))
        assert ("Alien", ("directed_by",), ["Ridley Scott"]) in summary(found)

    def test_relations_are_tied_to_the_graph_and_what_came_of_each_is_noted(self) -> None:
        asked = request([self.guessed("Directed By", "^directedby"), self.guessed("wrote")], linked("Alien", "a"))
        found = PathRetriever(Parts(films())).retrieve(asked)
        assert summary(found[:1]) == [("Alien", ("directed_by", "^directed_by"), ["Blade Runner"])]
        assert found[0].score == pytest.approx(20 / 21)  # of the 10 and 11 letters of directedby and directed by
        assert asked.steps[0] == Step(
            "path.relations",
            {"written": ["Directed By", "directedby", "wrote"]},
            {
                "matched": {
                    "Directed By": {"relation": "directed_by", "method": "folded", "score": 1.0},
                    "directedby": {"relation": "directed_by", "method": "fuzzy", "score": 0.9524},
                    "wrote": None,
                }
            },
        )

    def test_what_the_graph_does_not_have_is_fed_back_with_the_nearest_it_has(self) -> None:
        paths = [self.guessed("has_genre", "wrote"), self.guessed(*["directed_by"] * 5)]
        found = PathRetriever(Parts(films())).retrieve(request(paths, linked("Alien", "a")))
        assert [(item.subject, item.problem) for item in found if isinstance(item, Feedback)] == [
            ("has_genre -> wrote", "the graph has no relation 'wrote', nearest: directed_by, has_genre, release_year"),
            ("directed_by -> directed_by -> directed_by -> directed_by -> directed_by", "it has more than 4 relations"),
        ]

    def test_paths_that_become_equal_are_walked_once(self) -> None:
        paths = [self.guessed("directed_by"), self.guessed("DIRECTED_BY")]
        assert len(PathRetriever(Parts(films())).retrieve(request(paths, linked("Alien", "a")))) == 1


class TestShortestPaths:
    # a -r-> m -r-> d,  a -q-> n <-q- d,  a -p-> b,  x
    GRAPH = ColumnarGraph.from_triples(
        [("a", "r", "m"), ("m", "r", "d"), ("a", "q", "n"), ("d", "q", "n"), ("a", "p", "b"), ("x", "p", "y")]
    )

    def between(self, entities: str, drafts: str, **settings: Any) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        asked = Request(
            Question("q1", "?"),
            Artifacts(),
            Linked(tuple(linked(one, one) for one in entities), tuple(linked(one, one) for one in drafts)),
            Context(),
        )
        found = PathRetriever(Parts(self.GRAPH), **settings).retrieve(asked)
        return [(item.relations, item.paths[0].nodes) for item in found if isinstance(item, PathEvidence)]

    def test_they_run_between_entities_and_drafts_the_k_shortest_of_each_pair(self) -> None:
        assert self.between("a", "d") == [(("r", "r"), ("a", "m", "d")), (("q", "^q"), ("a", "n", "d"))]
        assert self.between("a", "d", shortest=1) == [(("r", "r"), ("a", "m", "d"))]
        assert self.between("a", "bd", shortest=1) == [(("p",), ("a", "b")), (("r", "r"), ("a", "m", "d"))]
        assert self.between("a", "d", shortest=0) == []

    def test_what_is_too_far_or_not_connected_has_none(self) -> None:
        assert self.between("a", "d", shortest_hops=1) == []
        assert self.between("a", "x") == []

    def test_an_entity_that_is_a_draft_answer_has_no_path_to_itself(self) -> None:
        assert self.between("ab", "b", shortest=1) == [(("p",), ("a", "b"))]

    def test_the_best_candidate_of_each_mention_comes_before_the_second_of_any(self) -> None:
        entities = (linked("a", "one"), linked("x", "one"), linked("m", "two"))
        asked = Request(Question("q1", "?"), Artifacts(), Linked(entities, (linked("d", "d"),)), Context())
        PathRetriever(Parts(self.GRAPH), anchors=2, shortest=1).retrieve(asked)
        assert asked.steps == [Step("path.shortest", {"entities": ["a", "m"], "drafts": ["d"]}, {"paths": 2})]


class TestPathQueries:
    def asked(self, text: str, *entities: LinkedEntity) -> Request:
        artifacts = Artifacts(queries=(GraphQuery("paths", text),))
        return Request(Question("q", "?"), artifacts, Linked(entities), Context())

    def test_names_stand_for_what_is_linked_to_them(self) -> None:
        query = "PATHS START ?s = <the alien film> END ?e VIA <directed_by>"
        found = walked(PathRetriever(Parts(films())), self.asked(query, linked("Alien", "The Alien film")))
        assert summary(found) == [("Alien", ("directed_by",), ["Ridley Scott"])]
        assert found[0].paths[0].nodes == ("Alien", "Ridley Scott")

    def test_without_ends_paths_start_at_linked_entities(self) -> None:
        query = "PATHS START ?s END ?e MATCHING <directed_by>/^<directed_by>"
        found = walked(PathRetriever(Parts(films())), self.asked(query, linked("Alien", "a")))
        assert {item.source for item in found} <= {"Alien"}
        assert all(item.relations == ("directed_by", "^directed_by") for item in found)

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("PATHS START ?s", "the query ends too early"),
            ("PATHS START ?s = <nobody> END ?e VIA ?p", "no entity 'nobody'"),
            ("PATHS START ?s = <Alien> END ?e VIA <no_such>", "no relation 'no_such'"),
            ("PATHS START ?s = <Alien> END ?e = <Alien> VIA <directed_by>", "finds no path"),
        ],
    )
    def test_what_goes_wrong_is_told_to_the_model(self, text: str, problem: str) -> None:
        (item,) = PathRetriever(Parts(films())).retrieve(self.asked(text))
        assert isinstance(item, Feedback) and item.subject == text
        assert problem in item.problem
