"""Tests of `byokg.linking.llm_linker`."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.linking.entities import EntityLinker
from byokg.offline.mentions import MentionSpotter, SpottingSettings
from byokg.types import EntityId, Node
from tests.linking.graphs import FILMS, films


def spotter(*names: str, explained: str = "", familiar: str = "", **settings: float) -> MentionSpotter:
    """Look for names; every word tells 1, those of `explained` stand for relations, those of `familiar` are English."""
    graph = ColumnarGraph.from_records([Node(EntityId(f"n{at}"), name) for at, name in enumerate(names)], [])
    return MentionSpotter(
        EntityLinker(graph),
        importance=lambda word: 1.0,
        explained=lambda word: float(word in explained.split()),
        familiar=lambda word: word in familiar.split(),
        settings=SpottingSettings(**settings),  # type: ignore[arg-type]
    )


def spotted(spotter: MentionSpotter, text: str) -> list[str]:
    return [mention.text for mention in spotter.spot(text)]


class TestOtherForms:
    def test_a_name_is_found_in_other_forms_of_its_words(self) -> None:
        known = ("Great Pyramid of Giza", "Stephen Covey", "St George's Day", "World War II", "Barney & Friends")
        names = spotter(*known, misspelt_cutoff=1.0, fuzzy_cutoff=1.0)
        assert spotted(names, "where are the great pyramids of giza") == ["great pyramids of giza"]
        assert spotted(names, "who was stephen r covey") == ["stephen r covey"]
        assert spotted(names, "when is saint george day") == ["saint george day"]
        assert spotted(names, "who fought in world war 2") == ["world war 2"]
        assert spotted(names, "who is in barney and friends") == ["barney and friends"]

    def test_a_name_within_it_wins_unless_the_other_words_tell_something(self) -> None:
        assert spotted(spotter("Arizona", "Governor Arizonas", explained="governor"), "a governor arizona") == [
            "arizona"
        ]


class TestExactNames:
    def test_case_accents_and_punctuation_do_not_matter(self) -> None:
        assert spotted(spotter("Grégoire Colin"), "films of gregoire-COLIN?") == ["gregoire-COLIN"]

    def test_the_longest_name_wins(self) -> None:
        assert spotted(spotter("York", "New York", "New York City"), "who lives in New York City") == ["New York City"]

    def test_an_article_may_stand_before_a_name_or_in_it(self) -> None:
        assert spotted(spotter("The Godfather"), "who directed the godfather") == ["the godfather"]
        assert spotted(spotter("The Godfather"), "who directed godfather") == ["godfather"]
        assert spotted(spotter("Godfather"), "who directed The Godfather") == ["Godfather"]
        assert spotted(spotter("The A-Team"), "who is in the a team") == ["the a team"]
        assert spotted(spotter("Alien"), "an") == []

    def test_several_names_come_in_order_of_worth_and_then_of_place(self) -> None:
        names = spotter("Ridley Scott", "Alien", "Horror")
        # Two words with the capitals of the name: 2 · 1.5. One: 1.5. All lower: 1. Other capitals: 0.7.
        assert spotted(names, "is alien by Ridley Scott of Horror") == ["Ridley Scott", "Horror"]
        assert spotted(names, "is ALIEN Horror of Ridley") == ["Horror"]
        assert spotted(names, "is alien Horror") == ["Horror", "alien"]
        assert spotted(names, "is Alien Horror") == ["Alien", "Horror"]

    def test_the_whole_of_a_name_and_a_part_of_one_stand_beside_a_heavier_name(self) -> None:
        known = ("Lois Smith", "Family Guy", "Star Trek", "James T. Kirk", "Time Zone")
        names = spotter(*known, explained="family time zone plays captain", another=0.4, part=0.4, part_worth=0.5)
        assert spotted(names, "who plays lois smith in family guy") == ["lois smith", "family guy"]
        assert spotted(names, "who plays captain kirk in star trek") == ["star trek", "kirk"]
        assert spotted(names, "what time zone has lois smith") == ["lois smith"]  # relations explain all of it

    def test_a_name_of_much_less_worth_than_the_best_is_left_out(self) -> None:
        # "HORROR" 0.7, against 1.5 of "Alien": less than half.
        assert spotted(spotter("Alien", "Horror"), "is Alien HORROR") == ["Alien"]
        assert spotted(spotter("Alien", "Horror", another=0.4), "is Alien HORROR") == ["Alien", "HORROR"]

    def test_a_thing_with_its_article_counts_beside_names_with_capitals(self) -> None:
        names = spotter("Eastern Europe", "Euro", "Area", "Money", explained="money")
        assert spotted(names, "who in Eastern Europe has the euro?") == ["Eastern Europe", "the euro"]
        # It goes on with a noun, it has no article, a relation is called so, or nothing here has capitals.
        for text in ("has the euro zone", "has euro", "has the money"):
            assert spotted(names, f"who in Eastern Europe {text}") == ["Eastern Europe"]
        assert spotted(spotter("eastern europe", "Euro", another=1.0), "in eastern europe the euro") == [
            "eastern europe"
        ]

    def test_a_part_of_a_name_counts_where_it_tells_more_than_whole_names(self) -> None:
        names = spotter("Mitt Romney", "State", "Boston", explained="state live")
        assert spotted(names, "what state does romney live in") == ["romney"]
        assert spotted(names, "does romney live in Boston") == ["Boston"]

    def test_a_part_of_a_name_comes_before_names_that_are_misspelt_everyday_words(self) -> None:
        names = spotter("Gautama Buddha", "Comet", explained="come from", familiar="come buddha")
        assert spotted(names, "where does buddha come from") == ["buddha"]

    def test_a_rare_word_that_a_name_has_is_looked_for_however_little_it_is_said_to_tell(self) -> None:
        names = spotter("Emile Heskey", "Team", explained="team play", familiar="team play")
        names._importance = lambda word: 0.6
        assert spotted(names, "what team does heskey play for") == ["heskey"]

    def test_a_name_in_other_letters_is_taken_whole_and_not_the_names_within_it(self) -> None:
        names = spotter("North Germanic languages", "North", "Languages", explained="languages")
        assert spotted(names, "who speaks the North Germanic Languages") == ["North Germanic Languages"]

    def test_words_that_relations_explain_in_part_count_where_no_name_is_worth_much(self) -> None:
        names = spotter("Barack Obama", "School", "Kenya", familiar="obama went school")
        names._explained = lambda word: {"obama": 0.5, "school": 1.0, "went": 1.0}.get(word, 0.0)
        assert spotted(names, "where obama went to school") == ["obama"]
        assert spotted(names, "where in Kenya obama went to school") == ["Kenya"]

    def test_at_most_three_names_are_taken(self) -> None:
        names = spotter("Ann", "Bob", "Cid", "Dea")
        assert spotted(names, "do Ann Bob Cid Dea meet") == ["Ann", "Bob", "Cid"]

    def test_a_word_that_a_relation_explains_is_worth_little(self) -> None:
        # A film called Director must not hide the director of Alien.
        assert spotted(spotter("director", "Alien", explained="director"), "who is the director of Alien") == ["Alien"]
        # Nor does its article make up for that; alone, it is still a mention.
        assert spotted(spotter("director", explained="director"), "who is the director") == ["the director"]

    def test_function_words_are_a_name_only_when_written_as_one(self) -> None:
        assert spotted(spotter("It", "Who", "What"), "what is it and who are you") == []
        assert spotted(spotter("It"), "who directed It") == ["It"]
        assert spotted(spotter("What"), "What is this") == []  # every sentence begins with a capital

    def test_names_in_other_scripts_are_found_whole(self) -> None:
        assert spotted(spotter("राम", "रोम"), "where is रोम") == ["रोम"]


class TestMisspeltNames:
    @pytest.mark.parametrize("typed", ["Ridlay Scott", "Ridly Scott", "Rildey Scott", "ridlley scott"])
    def test_a_wrong_missing_doubled_or_swapped_letter_is_forgiven(self, typed: str) -> None:
        names = spotter("Ridley Scott", "Alien", explained="films directed")
        assert spotted(names, f"which films were directed by {typed}") == [typed]

    def test_a_misspelt_name_beats_the_part_of_it_that_is_another_name(self) -> None:
        names = spotter("Incident at Loch Ness", "Loch Ness", explained="films wrote")
        assert spotted(names, "who wrote Incirent at Loch Ness") == ["Incirent at Loch Ness"]

    def test_words_that_are_english_or_explained_are_not_taken_for_misspelt(self) -> None:
        text = "who painted Alien"
        assert spotted(spotter("Alien", "Painter"), text) == ["Alien", "painted"]
        assert spotted(spotter("Alien", "Painter", familiar="painted"), text) == ["Alien"]
        assert spotted(spotter("Alien", "Painter", explained="painted"), text) == ["Alien"]

    def test_a_word_that_a_relation_half_explains_is_not_taken_for_misspelt(self) -> None:
        names = EntityLinker(films())
        for share, expected in ((0.4, ["alien", "horrorr"]), (0.6, ["alien"])):
            half = MentionSpotter(names, lambda word: 1.0, lambda word, share=share: share * (word == "horrorr"))  # type: ignore[misc]
            assert spotted(half, "is alien horrorr") == expected

    def test_where_nothing_else_is_found_english_words_may_be_misspelt_too(self) -> None:
        names = spotter("Matthias Haller", familiar="mathias holler sing")
        assert spotted(names, "did Mathias Holler sing") == ["Mathias Holler"]

    def test_an_article_before_a_misspelt_name_belongs_to_it(self) -> None:
        assert spotted(spotter("The Terminator"), "who is in the Terminater") == ["the Terminater"]

    def test_short_words_are_not_looked_for_approximately(self) -> None:
        assert spotted(spotter("Nut"), "who is in Nus") == []


class TestPartsOfNames:
    def test_they_are_found_where_there_is_nothing_better(self) -> None:
        assert spotted(spotter("Barack Obama", familiar="obama"), "where was obama") == ["obama"]

    def test_what_shares_too_few_letters_is_no_part(self) -> None:
        assert spotted(spotter("Barack Obama", familiar="obomos"), "where was obomos") == []

    def test_they_are_not_looked_for_otherwise(self) -> None:
        assert spotted(spotter("Barack Obama", "Kenya", familiar="obama"), "was obama born in Kenya") == ["Kenya"]


NOTHING = ["", "   ", "?", "who", "who is it", "zzzzzzz qqqqqqq", "🎬", "\x00"]


@pytest.mark.parametrize("text", NOTHING)
def test_text_without_names_has_no_mentions(text: str) -> None:
    assert spotted(spotter("Alien", "Ridley Scott"), text) == []
    assert spotted(spotter(), text) == []


FILM_SPOTTER = MentionSpotter(EntityLinker(films()), lambda word: 1.0, lambda word: 0.3 * (word == "films"))

TEXTS = st.lists(
    st.sampled_from([*(end for head, _, tail in FILMS for end in (head, tail)), "who", "the", "films", "by", "Scot"])
    | st.text(max_size=5),
    max_size=10,
).map(" ".join)


@given(TEXTS)
def test_mentions_of_any_text_are_pieces_of_it_that_do_not_overlap(text: str) -> None:
    mentions = FILM_SPOTTER.spot(text)
    assert len(mentions) <= 3
    assert all(text[mention.start : mention.end] == mention.text for mention in mentions)
    places = sorted((mention.start, mention.end) for mention in mentions)
    assert all(end <= start for (_, end), (start, _) in pairwise(places))
    assert FILM_SPOTTER.spot(text) == mentions


@given(st.sampled_from(FILMS))
def test_a_name_standing_alone_is_found(triple: tuple[str, str, str]) -> None:
    assert [mention.text for mention in FILM_SPOTTER.spot(f"what about {triple[0]}")] == [triple[0]]


# Rows without names: 1 and 2 are ids, and the names for lack of others.
def row_numbers() -> MentionSpotter:
    graph = ColumnarGraph.from_records([Node(EntityId(id), id, "House") for id in ("1", "2")], [])
    return MentionSpotter(
        EntityLinker(graph), lambda word: 1.0, lambda word: 0.0, is_type=lambda word: word in ("house", "houses")
    )


def test_a_number_in_a_question_is_no_row_number() -> None:
    assert spotted(row_numbers(), "Who lives at 1 Coronation Street?") == []
    assert spotted(row_numbers(), "Who lives at 1?") == []


@pytest.mark.parametrize("text", ['Who lives at "1"?', "Who lives at house id 1?", "Who lives at #1?"])
def test_a_number_in_quotes_or_called_an_id_is_one(text: str) -> None:
    assert spotted(row_numbers(), text) == ["1"]


def test_a_year_that_is_a_node_among_names_is_found() -> None:
    assert spotted(spotter("1999", "Alien"), "films released in 1999") == ["1999"]


def test_a_word_for_a_type_is_no_part_of_a_name() -> None:
    graph = ColumnarGraph.from_records([Node(EntityId("c"), "Dairy Products", "Category")], [])
    linker = EntityLinker(graph)
    typed = MentionSpotter(linker, lambda word: 1.0, lambda word: 0.0, is_type=lambda word: word == "products")
    assert spotted(typed, "list products") == []
    assert spotted(typed, "list Dairy Products") == ["Dairy Products"]


def test_a_word_of_a_property_is_no_part_of_a_name_unless_it_has_a_capital() -> None:
    graph = ColumnarGraph.from_records([Node(EntityId("c"), "Victuailles en stock", "Customer")], [])
    labelled = MentionSpotter(
        EntityLinker(graph), lambda word: 2.0, lambda word: 0.0, is_property=lambda word: word == "stock"
    )
    assert spotted(labelled, "the most units in stock") == []
    assert spotted(labelled, "the most units in Stock") == ["Stock"]
    assert spotted(labelled, "the address of victuailles en stock") == ["victuailles en stock"]


def test_a_part_of_a_date_is_no_mention() -> None:
    names = spotter("October", "Alien", "2014-10-30")
    assert spotted(names, "was Alien shown before October 30, 2014") == ["Alien"]
    assert spotted(names, "was Alien shown in October") == ["Alien", "October"]


def test_nothing_is_found_inside_a_word() -> None:
    assert spotted(spotter("Slovene", "Aras", "Mera"), "what is love") == []
    assert spotted(spotter("Slovene", "Aras", "Mera"), "where is Laras") == []
    assert spotted(spotter("Slovene", "Aras", "Mera"), "who is Tamera") == []
