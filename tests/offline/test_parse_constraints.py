"""What is read out of a question's words, and what of it is left for the path."""

from __future__ import annotations

from byokg.offline.parse_constraints import QueryConstraints, parse_constraints
from byokg.text.names import locate
from tests.corpora import each_of


def demand(text: str, *names: str) -> QueryConstraints:
    return parse_constraints(text, [locate(name, text) for name in names])


def rest(found: QueryConstraints) -> str:
    return " ".join(found.rest.split())


@each_of(
    ("text", "left"),
    [
        ("How many countries does Austria border?", "which countries does Austria border?"),
        ("What is the number of films by Austria?", "which films by Austria?"),
    ],
)
def test_a_count_leaves_the_question_of_what_is_counted(text: str, left: str) -> None:
    found = demand(text, "Austria")
    assert found.count
    assert rest(found) == left


def test_a_superlative_says_what_is_compared_and_which_way() -> None:
    found = demand("What is the second most populous country bordering Peru?", "Peru").order
    assert found is not None
    assert (found.nouns[0], found.most, found.place) == ("population", True, 2)
    least = demand("Which neighbour of Peru is the smallest?", "Peru").order
    assert least is not None and not least.most


@each_of(
    ("text", "size"),
    [
        ("What are the three longest rivers of Peru?", 3),
        ("List the top 5 rivers of Peru by length.", 5),
        ("Which 2 rivers of Peru cross the most borders?", 2),
        ("Which three rivers of Peru are the longest?", 3),
        ("Which five rivers in the west of Peru have the largest basin?", 5),
        ("Which two rivers of Peru join the largest lake?", 1),
        ("Which river of Peru is the 2nd longest?", 1),
    ],
)
def test_several_best_ones_are_counted(text: str, size: int) -> None:
    found = demand(text, "Peru").order
    assert found is not None and found.size == size


@each_of(
    ("words", "first", "last", "strict"),
    [
        ("in 1998", "1998", "1998", False),
        ("between 1990 and 1995", "1990", "1995", False),
        ("after 2001", "2001", None, True),
        ("since 2001", "2001", None, False),
        ("before May 1990", None, "1990-05", True),
        ("in the 1990s", "1990", "1999", False),
    ],
)
def test_times_are_read(words: str, first: str | None, last: str | None, strict: bool) -> None:
    (test,) = demand(f"Who led Peru {words}?", "Peru").times
    assert (test.first, test.last, test.strict) == (first, last, strict)


@each_of(
    ("text", "words", "left"),
    [
        ("Who led Peru when Ada joined Acme?", "when Ada joined Acme", "Who led Peru Ada Acme?"),
        ("In the year of Ada's birth, who led Peru?", "In the year of Ada's birth", "Ada , who led Peru?"),
    ],
)
def test_an_event_is_a_time(text: str, words: str, left: str) -> None:
    found = demand(text, "Peru", "Ada", "Acme") if "Acme" in text else demand(text, "Peru", "Ada")
    (test,) = found.times
    assert (test.words, rest(found)) == (words, left)
    assert 0 not in test.mentions and 1 in test.mentions


@each_of(("text",), [("When did Ada join Acme?",), ("What was the year of Ada's birth?",)])
def test_a_question_for_a_time_has_no_event(text: str) -> None:
    assert demand(text, "Ada").plain


def test_a_qualification_at_the_end_is_no_part_of_the_path() -> None:
    assert rest(demand("Where was Ada born, by today's borders?", "Ada")) == "Where was Ada born"


def test_what_a_mention_covers_is_not_read() -> None:
    assert demand("Who directed The Longest Day?", "The Longest Day").plain
    assert demand("Who wrote 1984?", "1984").plain


def test_a_plain_question_asks_for_nothing_more() -> None:
    for text in ("Who directed Heat?", "What is the first name of Ada?", "Which films star Ada?"):
        assert demand(text, "Heat", "Ada").plain or demand(text, "Ada").order is None


def test_a_threshold_has_a_number_and_a_measure() -> None:
    (bound,) = demand("Which neighbours of Peru have more than 20 million people?", "Peru").thresholds
    assert (bound.nouns, bound.more, bound.value) == (("population", "employees"), True, 20e6)


@each_of(
    ("words", "number"),
    [
        ("1.5 million", 1.5e6),
        ("a million", 1e6),
        ("half a million", 5e5),
        ("five hundred thousand", 5e5),
        ("two hundred and fifty", 250),
        ("a dozen", 12),
        ("twenty-five", 25),
        ("3bn", 3e9),
        ("1,200,000", 1.2e6),
    ],
)
def test_numbers_are_read_in_digits_and_words(words: str, number: float) -> None:
    (bound,) = demand(f"Which neighbours of Peru have more than {words} people?", "Peru").thresholds
    assert bound.value == number


@each_of(
    ("text", "noun"),
    [
        ("What is the average population per continent?", "continent"),
        ("How many rivers flow through each country?", "country"),
        ("total population by region", "region"),
        ("Which country is the largest by area?", ""),
        ("How many crimes were investigated by officers?", ""),
        ("Which rivers flow through every country?", ""),
    ],
)
def test_an_aggregation_may_be_grouped(text: str, noun: str) -> None:
    assert demand(text).grouped == noun


def test_a_difference_names_what_is_taken_away() -> None:
    found = demand("Which neighbours of Peru do not have English as an official language?", "Peru", "English")
    assert found.without == (1,)
    assert "official" not in found.rest  # that is said of what is taken away


def test_either_of_two_is_a_union_and_a_comparison_is_none() -> None:
    assert demand("Which countries border Peru or Chad?", "Peru", "Chad").union == (0, 1)
    larger = demand("Which is larger, Peru or Chad?", "Peru", "Chad")
    assert larger.union == ()
    assert larger.order is not None


def test_who_comes_next_is_read_with_whom_it_comes_after() -> None:
    found = demand("Who followed Ada as prime minister of Peru?", "Ada", "Peru").next
    assert found is not None
    assert (found.mentions, found.step) == ((0,), 1)


def test_a_number_of_things_is_compared_by_their_name() -> None:
    found = demand("Of the tools of Bern, which has the smallest number of units on order?", "Bern").order
    assert found is not None
    assert (found.nouns[0], found.most) == ("units on order", False)


def test_a_year_of_its_own_comes_next_to_nothing() -> None:
    assert demand("Who won the Cup a year after Bern?", "Cup", "Bern").next is not None
    found = demand("Which songs of Bern have a year after 1994?", "Bern")
    assert found.next is None
    assert [(time.first, time.last, time.strict) for time in found.times] == [("1994", None, True)]


@each_of("text", ["how often is Atlas cited", "order count of Atlas", "how many times was Atlas cited"])
def test_counts_are_asked_for_in_other_words_too(text: str) -> None:
    assert parse_constraints(text, [locate("Atlas", text)]).count


@each_of("text", ["which states count Atlas among theirs", "what is the count Atlas was made"])
def test_a_verb_is_no_count(text: str) -> None:
    assert not parse_constraints(text, [locate("Atlas", text)]).count


@each_of(
    ("text", "noun", "most", "counted"),
    [
        ("Which medicine from Peru costs the most?", "price", True, False),
        ("Which drug of Peru costs least?", "price", False, False),
        ("Which film from Peru grossed the most?", "gross", True, False),
        ("Which paper of Peru is cited most often?", "cited", True, True),
        ("Which papers of Peru were cited the least?", "cited", False, True),
    ],
)
def test_the_most_of_a_verb_is_the_most_of_what_it_measures(text: str, noun: str, most: bool, counted: bool) -> None:
    order = demand(text, "Peru").order
    assert order is not None
    assert (order.nouns[0], order.most, order.counted) == (noun, most, counted)


def test_which_of_two_does_more_of_a_verb() -> None:
    found = demand("Which costs less, Peru or Chile?", "Peru", "Chile").order
    assert found is not None
    assert (found.nouns, found.most) == (("price", "cost"), False)


def test_what_must_not_be_is_nothing_to_take_away() -> None:
    assert demand("Which drugs must not be given with Aspirin?", "Aspirin").without == ()
    assert demand("Which drugs do not contain Aspirin?", "Aspirin").without == (0,)
