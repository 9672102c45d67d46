"""Tests of `byokg.offline.parse`."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from byokg.offline.parse import NO_ROLE, ParsedQuestion, Role, parse_question
from byokg.text.names import FUNCTION_WORDS, QUESTION_WORDS, WORD, locate, normalize_name
from byokg.types import EntityId, Mention
from tests.corpora import each_of

FILM = (EntityId("film"),)

TEXTS = st.lists(
    st.sampled_from(
        "who which what films the of director is by and Alien Ridley Scott starring with's İ é 3 , ? name".split()
    )
    | st.text(max_size=6),
    max_size=14,
).map(" ".join)


def read(text: str, *topics: str) -> ParsedQuestion:
    """Read a question in which the topics stand literally."""
    return parse_question(text, [locate(topic, text, FILM) for topic in topics])


def words(reading: ParsedQuestion, positions: tuple[int, ...]) -> str:
    return " ".join(reading.words[position] for position in positions)


class TestMasking:
    def test_words_of_a_mention_are_hidden(self) -> None:
        reading = read("who directed The Thing", "The Thing")
        assert reading.words == ("who", "directed", "the", "thing")
        assert reading.masked == (False, False, True, True)
        assert reading.unmasked == ("who", "directed")

    def test_a_topic_that_does_not_stand_in_the_text_hides_words_like_its_own(self) -> None:
        reading = parse_question("who directed the Terminater films", [], ["The Terminator"])
        # "the" is a function word, so it hides nothing; "terminater" is 9/10 "terminator".
        assert reading.unmasked == ("who", "directed", "the", "films")

    def test_short_words_must_be_equal_to_be_hidden(self) -> None:
        assert parse_question("who is in Upp", [], ["Up"]).masked == (False, False, False, False)
        assert parse_question("who is in Up", [], ["Up"]).masked == (False, False, False, True)

    def test_question_words_are_not_hidden_by_resemblance(self) -> None:
        assert not any(parse_question("who wrote it", [], ["Who"]).masked)


class TestFocus:
    @each_of(
        ("text", "asks", "focus"),
        [
            ("which languages are spoken in Peru", "which", "languages"),
            ("what is the official language of Peru", "what", "official language"),
            ("which employees skilled in Peru", "which", "employees"),
            ("which well known mountains of Peru", "which", "well known mountains"),
            ("how many countries are neighbours of Peru", "how", "countries"),
            ("what type of government does Peru have", "what", "government"),
            ("what type of film is Peru", "what", "type"),
            ("who is the director of Peru", "who", "director"),
            ("who directed Peru", "who", ""),
            ("who did Peru marry", "who", ""),
            ("who did the king of Peru marry", "who", ""),
            ("when was Peru founded", "when", ""),
            ("where is Peru", "where", ""),
            ("Name the capitals of Peru", "name", "capitals"),
            ("films starring Peru", "", ""),
            ("what", "what", ""),
            ("", "", ""),
            ("which very long winding river flows through Peru", "which", "very long winding"),
            ("what teams in Peru", "what", "teams"),
            ("which soccer teams in Peru", "which", "soccer teams"),
            ("what causes death in Peru", "what", "causes death"),
            ("is Peru's child a boy or a girl?", "", "boy girl"),
            ("is Peru a boy or girl", "", ""),
        ],
    )
    def test_it_is_the_noun_phrase_after_the_question_word(self, text: str, asks: str, focus: str) -> None:
        reading = read(text, "Peru")
        assert (reading.wh_word, words(reading, reading.answer_type_span)) == (asks, focus)

    def test_a_shared_border_is_nothing_in_common(self) -> None:
        assert not read("which countries share a border with Peru", "Peru").shares
        assert read("which countries share a language with Peru", "Peru").shares

    def test_see_also_is_a_relation_and_speaks_of_nothing_in_common(self) -> None:
        assert not read("how many things have Peru as their see also", "Peru").shares
        assert read("what else did the writer of Peru also write", "Peru").shares

    def test_what_someone_is_of_two_kinds_lies_one_step_beyond_him(self) -> None:
        assert read("is Peru's child a boy or a girl", "Peru").links == read("Peru's child", "Peru").links + 1

    def test_a_month_and_a_name_are_no_verbs_that_help(self) -> None:
        visited = read("who visited Peru in May 2020", "Peru")
        assert words(visited, visited.content_tokens) == "visited 2020"
        assert Role("active", False) not in read("what may people eat in Peru", "Peru").roles

    @each_of(
        ("text", "nouns"),
        [
            ("suppliers from Peru", "suppliers"),
            ("our biggest customers in Peru", "biggest customers"),
            ("Peru players", "players"),
            ("what is the capital of Peru", ""),
            ("is Peru a country", ""),
        ],
    )
    def test_where_no_word_asks_the_first_nouns_say_what_for(self, text: str, nouns: str) -> None:
        reading = read(text, "Peru")
        assert words(reading, reading.head_nouns) == nouns

    @each_of("text", ["which of our factories are in Peru", "show me the factories in Peru"])
    def test_what_is_asked_for_stands_behind_small_words(self, text: str) -> None:
        reading = read(text, "Peru")
        assert words(reading, reading.answer_type_span) == "factories"

    def test_a_sort_of_a_thing_says_nothing_of_its_own(self) -> None:
        reading = read("what kind of government does Peru have", "Peru")
        assert words(reading, reading.content_tokens) == "government"

    def test_that_are_ties_nothing(self) -> None:
        assert read("people who are children of Peru", "Peru").links == read("children of Peru", "Peru").links == 1
        assert read("people who are born in towns of Peru", "Peru").links == 2

    def test_it_ends_at_a_mention(self) -> None:
        reading = read("what Alien films exist", "Alien")
        assert reading.answer_type_span == ()

    def test_a_question_word_in_a_mention_asks_nothing(self) -> None:
        assert read("films of Doctor Who", "Doctor Who").wh_word == ""


class TestOrders:
    def test_the_first_order_goes_by_distance_from_the_topic(self) -> None:
        reading = read("who starred in films written by the director of Alien", "Alien")
        assert [words(reading, order) for order in reading.orders] == ["director written films starred"]

    def test_a_topic_in_the_middle_is_read_from_either_side(self) -> None:
        reading = read("the movies directed by Alien writers star whom", "Alien")
        # By distance: writers 1, star 2, directed 2 (before the topic, so later), movies 4; then leftwards first.
        # Rightwards first is the same as by distance.
        assert [words(reading, order) for order in reading.orders] == [
            "writers star directed movies",
            "directed movies writers star",
        ]

    def test_words_on_both_sides_are_read_in_three_ways(self) -> None:
        reading = read("the genres, movies: Alien writers, stars", "Alien")
        assert [words(reading, order) for order in reading.orders] == [
            "writers movies stars genres",
            "movies genres writers stars",
            "writers stars movies genres",
        ]

    def test_without_a_topic_words_are_read_from_the_end(self) -> None:
        reading = read("directed written starred")
        assert words(reading, reading.orders[0]) == "starred written directed"


class TestLocate:
    def test_case_accents_and_punctuation_do_not_matter(self) -> None:
        assert locate("Grégoire Colin", "who is gregoire-COLIN?", FILM) == Mention("gregoire-COLIN", 7, 21, FILM)
        decomposed = unicodedata.normalize("NFD", "who is Grégoire Colin?")
        assert locate("Grégoire Colin", decomposed, FILM).text == decomposed[7:-1]
        assert locate("İstanbul", "where is İstanbul", FILM).start == 9

    def test_only_whole_words_count_and_the_first_place_is_taken(self) -> None:
        assert locate("art", "start the art of art", FILM) == Mention("art", 10, 13, FILM)

    def test_a_name_that_is_not_there_has_no_place(self) -> None:
        assert locate("Alien", "who directed Aliens", FILM) == Mention("Alien", -1, -1, FILM)
        assert locate("???", "who directed ???", FILM) == Mention("???", -1, -1, FILM)


@given(TEXTS, st.lists(st.text(max_size=6), max_size=2))
def test_any_text_can_be_read(text: str, names: list[str]) -> None:
    topics = [locate(name, text, FILM) for name in [*names, text[2:9]]]
    reading = parse_question(text, topics, names)
    assert len(reading.words) == len(reading.masked) == len(WORD.findall(text))
    body = {
        position
        for position, word in enumerate(reading.words)
        if not reading.masked[position] and word not in FUNCTION_WORDS | QUESTION_WORDS
    } - set(reading.answer_type_span)
    assert 1 <= len(reading.orders) <= 3
    assert len(set(reading.orders)) == len(reading.orders)
    assert all(sorted(order) == sorted(body) for order in reading.orders)
    assert len(reading.answer_type_span) <= 3
    assert not any(reading.masked[position] for position in reading.answer_type_span)


@given(st.text(), st.text(), st.text())
def test_a_located_mention_is_a_piece_of_the_text_that_folds_like_the_name(before: str, name: str, after: str) -> None:
    text = f"{before} {name} {after}"
    mention = locate(name, text, FILM)
    if mention.start >= 0:
        assert text[mention.start : mention.end] == mention.text
        assert normalize_name(mention.text) == normalize_name(name)
    else:
        assert not WORD.search(name) or mention.text == name


class TestTies:
    @each_of(
        ("text", "links"),
        [
            ("who directed Alien", 1),
            ("the boss of Alien", 1),
            ("what is Alien's project's client", 2),
            ("who wrote the book that won Alien", 2),
            ("employees skilled in the skill of Alien", 2),
            ("which films have the same director as Alien", 2),
            ("what other books did Alien write", 1),
            ("who acted in the films written by the screenwriter of Alien", 3),
            ("what languages do they speak in Alien", 1),
            ("what are the homes of the people that border the one with Alien", 3),
            ("the rivers of Alien from source to end", 1),
            ("what is the place of birth of the boss of Alien", 2),
            ("what type of government does Alien have", 1),
            ("who wrote the screenplay for Alien", 1),
            ("the films written by Alien were directed by who", 2),
            ("the films written by Alien were in which genres", 2),
            ("Alien appears in which films", 1),
            ("Alien's river is called what", 1),
            ("of the films that Alien made, which", 1),
            ("where did Alien's son die", 2),
            ("where does the author of Alien live", 2),
            ("when did the films directed by Alien open", 2),
            ("what did Alien's son do in the film industry", 2),
            ("how did Alien's son die", 2),
            ("how Alien's son died", 2),
            ("what caused the death of Alien", 1),
            ("given the ship that Alien built, which cargo does it carry", 2),
            ("name the port of the ship that Alien built", 2),
            ("given the ship of Alien, name the port that it may reach", 2),
            ("what belongs to the family that belongs to the group of Alien", 3),
            ("who are film co-writers of Alien", 2),
            ("what style of music did Alien play", 1),
            ("what form of government does Alien have", 1),
            ("where was the artist that was nominated for Alien born", 2),
            ("who is the artist that was born in Alien", 1),
        ],
    )
    def test_each_tie_from_one_noun_phrase_to_the_next_is_a_link(self, text: str, links: int) -> None:
        assert read(text, "Alien").links == links

    @each_of(
        ("text", "asked", "passed"),
        [
            ("what is the official language of Alien", "official language", ""),
            ("which film has the director of Alien", "film", "director"),
            ("what did the composer of Alien win", "", "composer"),
            ("the wife of Alien", "", "wife"),
        ],
    )
    def test_what_is_asked_for_is_not_passed(self, text: str, asked: str, passed: str) -> None:
        reading = read(text, "Alien")
        assert " ".join(reading.words[place] for place in reading.answer_type_span) == asked
        assert " ".join(reading.words[place] for place in reading.intermediate_nouns) == passed

    @each_of(
        ("text", "words"),
        [
            ("who is Alien's grandmother", "who is alien s parent s mother"),
            ("who is the grandmom of Alien", "who is the mother of parent of alien"),
            ("Alien grandchildren", "alien s child s child"),
            ("the granddaughters of Alien", "the daughter of child of alien"),
            ("Alien aunt", "alien s parent s parent s daughter"),
            ("the sister of Alien", "the daughter of parent of alien"),
            ("which grandchildren did Alien have", "which child of child did alien have"),
            ("list the grandchildren Alien had", "list the child of child of alien had"),
            ("the great-grandmother of Alien", "the mother of parent of parent of alien"),
            ("Alien's great-great-grandchildren", "alien s child s child s child s child"),
            ("the mother-in-law of Alien", "the mother of spouse of alien"),
            ("Alien's sons- and daughters-in-law", "alien s child s spouse"),
            ("Alien's in-laws", "alien s spouse s parent"),
            ("the boss of Alien", "the boss of alien"),
        ],
    )
    def test_a_relative_that_no_relation_is_called_is_one_of_a_relative(self, text: str, words: str) -> None:
        known = frozenset("parent mother child daughter spouse".split())
        mentions = [locate("Alien", text, FILM)]
        assert " ".join(parse_question(text, mentions, known=known.__contains__).words) == words
        assert parse_question(text, mentions, known=lambda word: True).words == read(text, "Alien").words
        assert parse_question(text, mentions, known=lambda word: False).words == read(text, "Alien").words

    @each_of(
        ("text", "word", "tie"),
        [
            ("who reports to Alien", "reports", Role("oblique", outward=False)),
            ("whom does Alien report to", "report", Role("oblique", outward=True)),
            ("people managed by Alien", "managed", Role("passive", outward=False)),
            ("who taught Alien", "taught", Role("active", outward=False)),
            ("which films did Alien direct", "direct", Role("active", outward=True)),
            ("which products contain parts of Alien", "contain", Role("active", outward=False)),
            ("which suppliers provide parts for Alien", "provide", Role("active", outward=False)),
            ("which sports team members like Alien", "team", NO_ROLE),
            ("the boss of Alien", "boss", Role("noun", outward=True)),
            ("Alien's boss", "boss", Role("noun", outward=True)),
            ("who is Alien the boss of", "boss", Role("noun", outward=False)),
            ("whose boss is Alien", "boss", Role("noun", outward=False)),
            ("the boss of Alien", "of", NO_ROLE),
        ],
    )
    def test_a_word_points_away_from_the_topic_or_towards_it(self, text: str, word: str, tie: Role) -> None:
        reading = read(text, "Alien")
        assert reading.roles[reading.words.index(word)] == tie
