"""Tests of `byokg.text.names`."""

from __future__ import annotations

from pathlib import Path

import pytest

import byokg
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.linking.entities import EntityLinker
from byokg.offline.mentions import MentionSpotter
from byokg.text.names import full_names, other_names, untitled
from byokg.types import Mention
from tests.corpora import each_of

LINES = [
    line
    for line in (Path(byokg.__file__).parent / "data" / "words" / "places.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


class TestPlaces:
    def test_each_line_has_names_and_words_and_none_comes_twice(self) -> None:
        own = [line.split(":")[0] for line in LINES]
        assert all(line.count(":") == 1 for line in LINES)
        assert len(own) == len(set(own))

    @each_of(
        ("text", "place"),
        [
            ("jamaican", "Jamaica"),
            ("Armenians", "Armenia"),
            ("south african", "South Africa"),
            ("german", "Germany"),
            ("the Germans", "Germany"),
            ("Dutch", "Netherlands"),
            ("islamic", "Islam"),
        ],
    )
    def test_words_for_people_and_things_name_their_place(self, text: str, place: str) -> None:
        assert place in other_names(text)
        assert place not in full_names(text)

    def test_words_that_merely_end_so_name_few(self) -> None:
        for text in ("man", "than", "plan", "loan", "Alien", ""):
            assert other_names(text) == ()

    def test_a_short_name_without_an_article_is_one_in_capitals_only(self) -> None:
        for text in ("the us", "US", "U.S.", "the U.S."):
            assert other_names(text)[:2] == ("United States of America", "United States")
        for text in ("us", "la", "Us"):
            assert other_names(text) == ()

    def test_abbreviations_are_written_in_full_and_the_other_way_round(self) -> None:
        assert full_names("st. lawrence river") == ("Saint Lawrence River",)
        assert full_names("Saint Louis") == ("St Louis",)
        assert full_names("ny giants") == ("New York Giants",)


class TestUntitled:
    def test_a_title_is_left_out_where_a_name_follows(self) -> None:
        assert untitled("the king Henry VIII") == "Henry VIII"
        assert untitled("Dr. Who") == "Who"
        assert untitled("The Lord of the Flies") == "Lord of the Flies"
        assert untitled("the") == "the"


@pytest.fixture(scope="module")
def world() -> ColumnarGraph:
    # A language Russian of one edge, Russia of three, a node `us` of one, the United States of America of three.
    known = [
        (place, "has", f"{place} {n}") for place in ("Russia", "United States of America", "Henry VIII") for n in "abc"
    ]
    return ColumnarGraph.from_triples(
        [*known, ("Russian", "spoken_by", "Ann"), ("us", "by", "Band"), ("King Henry VIII", "by", "Band")]
    )


class TestLinking:
    def test_a_word_for_people_means_their_place(self, world: ColumnarGraph) -> None:
        (one,) = EntityLinker(world).candidates(Mention("russians"))
        assert (one.id, one.method, one.score) == ("Russia", "exact", 0.95)

    def test_a_name_that_is_written_just_so_means_itself(self, world: ColumnarGraph) -> None:
        linker = EntityLinker(world)
        assert [one.id for one in linker.candidates(Mention("Russian"))] == ["Russian"]
        assert [one.id for one in linker.candidates(Mention("russian"))] == ["Russian", "Russia"]

    def test_a_short_name_also_means_what_is_better_known_by_another(self, world: ColumnarGraph) -> None:
        linker = EntityLinker(world)
        assert [one.id for one in linker.candidates(Mention("the us"))] == ["us", "United States of America"]
        assert [one.id for one in linker.candidates(Mention("us"))] == ["us"]

    def test_a_title_hides_nobody_who_is_better_known_without(self, world: ColumnarGraph) -> None:
        found = EntityLinker(world).candidates(Mention("king henry viii"))
        assert [one.id for one in found] == ["King Henry VIII", "Henry VIII"]


class TestSpotting:
    @each_of(
        ("text", "mention"),
        [
            ("what do russians drink", "russians"),
            ("who governs the us today", "the us"),
            ("where is st petersburg", "st petersburg"),
            ("who is the russian king", "the russian"),
        ],
    )
    def test_what_has_another_name_is_a_mention(self, text: str, mention: str) -> None:
        names = ("Russia", "United States", "Saint Petersburg", "King")
        graph = ColumnarGraph.from_triples([(name, "in", "world") for name in names])
        spotter = MentionSpotter(EntityLinker(graph), lambda word: 1.0, lambda word: float(word in ("king", "drink")))
        assert spotter.spot(text)[0].text == mention
