"""The people of the shipped atlas: Nobel laureates since 1950 and heads of government since 1990.

Two kinds of checks. Structural ones hold for any correct data of this shape (no year without a laureate, no office held
by two people at once). Spot facts were written down from general knowledge, not read out of the files.
"""

import csv
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.corpora import each_of

ATLAS = Path(__file__).parents[2] / "byokg" / "data" / "atlas"
FIRST_PRIZE_YEAR, LAST_PRIZE_YEAR = 1950, 2024
PRIZES = {"physics": 174, "chemistry": 148, "literature": 77}
"""Laureates a field, counted with repetition: all since 1901 (227, 197, 121) less those before 1950 (53, 49, 44)."""

COUNTRIES = [
    "australia",
    "canada",
    "france",
    "germany",
    "india",
    "italy",
    "japan",
    "new-zealand",
    "spain",
    "united-kingdom",
]

Row = dict[str, str]


def rows(name: str) -> list[Row]:
    """Read one file of the atlas, each line as a mapping from column header to text."""
    with (ATLAS / name).open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


@pytest.fixture(scope="module")
def nodes() -> dict[str, Row]:
    return {row["id"]: row for row in rows("nodes.csv")}


@pytest.fixture(scope="module")
def edges() -> list[Row]:
    return rows("edges.csv")


@pytest.fixture(scope="module")
def people(nodes: dict[str, Row]) -> dict[str, Row]:
    return {id_: row for id_, row in nodes.items() if row["type"] == "Person"}


def of(edges: list[Row], relation: str) -> list[Row]:
    return [edge for edge in edges if edge["relation"] == relation]


def terms_of(edges: list[Row], country: str) -> list[tuple[int, int | None, str]]:
    """Return (start, end or None while in office, holder) of each term in a country, in order of time."""
    terms = [
        (int(edge["start:int"]), int(edge["end:int"]) if edge["end:int"] else None, edge["head"])
        for edge in of(edges, "head_of_government_of")
        if edge["tail"] == f"country/{country}"
    ]
    return sorted(terms, key=lambda term: (term[0], term[1] or 9999))


# Structure


def test_each_relation_joins_the_types_it_is_meant_for(nodes: dict[str, Row], edges: list[Row]) -> None:
    types = {
        "won": ("Person", "Award"),
        "works_in": ("Person", "Field"),
        "in_field": ("Award", "Field"),
        "born_in": ("Person", "Country"),
        "head_of_government_of": ("Person", "Country"),
    }
    for relation, (head, tail) in types.items():
        found = {(nodes[edge["head"]]["type"], nodes[edge["tail"]]["type"]) for edge in of(edges, relation)}
        assert found == {(head, tail)}, relation


def test_no_fact_about_a_person_is_stated_twice(edges: list[Row]) -> None:
    keys = ("head", "relation", "tail", "start:int", "end:int")
    counted = Counter(tuple(edge[key] for key in keys) for edge in edges if edge["head"].startswith("person/"))
    assert [fact for fact, count in counted.items() if count > 1] == []


def test_no_two_people_share_a_name(people: dict[str, Row]) -> None:
    names = Counter(row["name"].casefold() for row in people.values())
    assert [name for name, count in names.items() if count > 1] == []
    assert all(name == " ".join(name.split()) for name in names)


def test_everyone_is_there_for_a_prize_or_an_office(people: dict[str, Row], edges: list[Row]) -> None:
    reasons = {edge["head"] for edge in of(edges, "won") + of(edges, "head_of_government_of")}
    assert reasons == set(people)


@each_of("field", PRIZES)
def test_each_prize_went_to_one_two_or_three_people_in_every_year(edges: list[Row], field: str) -> None:
    prizes = [edge for edge in of(edges, "won") if edge["tail"] == f"award/nobel-prize-in-{field}"]
    a_year = Counter(int(edge["start:int"]) for edge in prizes)
    assert sorted(a_year) == list(range(FIRST_PRIZE_YEAR, LAST_PRIZE_YEAR + 1))
    assert set(a_year.values()) <= {1, 2, 3}
    assert len(prizes) == PRIZES[field]


def test_literature_was_shared_in_two_years_only(edges: list[Row]) -> None:
    years = Counter(edge["start:int"] for edge in of(edges, "won") if edge["tail"].endswith("literature"))
    assert {year for year, count in years.items() if count > 1} == {"1966", "1974"}


def test_a_prize_belongs_to_one_year(edges: list[Row]) -> None:
    assert all(edge["start:int"] == edge["end:int"] for edge in of(edges, "won"))


def test_three_people_won_twice(edges: list[Row]) -> None:
    counted = Counter(edge["head"] for edge in of(edges, "won"))
    assert {person: count for person, count in counted.items() if count > 1} == {
        "person/john-bardeen": 2,
        "person/frederick-sanger": 2,
        "person/karl-barry-sharpless": 2,
    }


def test_each_award_has_its_own_field(edges: list[Row]) -> None:
    assert sorted((edge["head"], edge["tail"]) for edge in of(edges, "in_field")) == [
        (f"award/nobel-prize-in-{field}", f"field/{field}") for field in sorted(PRIZES)
    ]


def test_nobody_was_born_in_two_countries(edges: list[Row]) -> None:
    counted = Counter(edge["head"] for edge in of(edges, "born_in"))
    assert set(counted.values()) == {1}


def test_birthplaces_whose_country_is_disputed_are_left_out(people: dict[str, Row], edges: list[Row]) -> None:
    assert set(people) - {edge["head"] for edge in of(edges, "born_in")} == {"person/ada-yonath", "person/yuan-t-lee"}


def test_laureates_and_office_holders_were_grown_up(people: dict[str, Row], edges: list[Row]) -> None:
    # Youngest: Josephson and Tsung-Dao Lee; oldest: Goodenough at 97.
    for edge in of(edges, "won") + of(edges, "head_of_government_of"):
        born = people[edge["head"]]["year:int"]
        if born:
            assert 30 <= int(edge["start:int"]) - int(born) <= 97, edge


def test_heads_of_government_are_given_for_ten_countries(edges: list[Row]) -> None:
    found = {edge["tail"] for edge in of(edges, "head_of_government_of")}
    assert sorted(found) == [f"country/{country}" for country in COUNTRIES]


@each_of("country", COUNTRIES)
def test_an_office_passes_from_holder_to_holder_without_gap_or_overlap(edges: list[Row], country: str) -> None:
    terms = terms_of(edges, country)
    assert terms[0][0] <= 1990
    assert all(term[0] <= 2023 for term in terms)
    for (start, end, holder), (next_start, _, next_holder) in pairwise(terms):
        assert end is not None and start <= end == next_start, (holder, next_holder)
        assert holder != next_holder
    last_end = terms[-1][1]
    assert last_end is None or last_end >= 2024


# Spot facts


@each_of(
    ("name", "field", "years"),
    [
        ("Cecil Powell", "physics", [1950]),
        ("Bertrand Russell", "literature", [1950]),
        ("Winston Churchill", "literature", [1953]),
        ("Linus Pauling", "chemistry", [1954]),
        ("Ernest Hemingway", "literature", [1954]),
        ("John Bardeen", "physics", [1956, 1972]),
        ("Albert Camus", "literature", [1957]),
        ("Frederick Sanger", "chemistry", [1958, 1980]),
        ("Boris Pasternak", "literature", [1958]),
        ("Lev Landau", "physics", [1962]),
        ("Maria Goeppert Mayer", "physics", [1963]),
        ("Dorothy Hodgkin", "chemistry", [1964]),
        ("Jean-Paul Sartre", "literature", [1964]),
        ("Richard Feynman", "physics", [1965]),
        ("Nelly Sachs", "literature", [1966]),
        ("Murray Gell-Mann", "physics", [1969]),
        ("Abdus Salam", "physics", [1979]),
        ("Gabriel García Márquez", "literature", [1982]),
        ("Subrahmanyan Chandrasekhar", "physics", [1983]),
        ("Roald Hoffmann", "chemistry", [1981]),
        ("Toni Morrison", "literature", [1993]),
        ("Wisława Szymborska", "literature", [1996]),
        ("Ahmed Zewail", "chemistry", [1999]),
        ("Karl Barry Sharpless", "chemistry", [2001, 2022]),
        ("Doris Lessing", "literature", [2007]),
        ("Ada Yonath", "chemistry", [2009]),
        ("Peter Higgs", "physics", [2013]),
        ("Bob Dylan", "literature", [2016]),
        ("Olga Tokarczuk", "literature", [2018]),
        ("Donna Strickland", "physics", [2018]),
        ("Jennifer Doudna", "chemistry", [2020]),
        ("Andrea Ghez", "physics", [2020]),
        ("Anne L'Huillier", "physics", [2023]),
        ("Han Kang", "literature", [2024]),
        ("Geoffrey Hinton", "physics", [2024]),
    ],
)
def test_a_known_laureate_has_the_known_years(
    people: dict[str, Row], edges: list[Row], name: str, field: str, years: list[int]
) -> None:
    [person] = [id_ for id_, row in people.items() if row["name"] == name]
    won = [(edge["tail"], int(edge["start:int"])) for edge in of(edges, "won") if edge["head"] == person]
    assert sorted(won) == [(f"award/nobel-prize-in-{field}", year) for year in years]


@each_of("absent", ["Marie Curie", "Albert Einstein", "Niels Bohr", "William Faulkner", "T. S. Eliot"])
def test_laureates_before_1950_are_not_in(people: dict[str, Row], absent: str) -> None:
    # Faulkner's prize is that of 1949, though he received it in 1950.
    assert absent not in {row["name"] for row in people.values()}


@each_of(
    ("name", "country", "born"),
    [
        ("Max Born", "poland", "1882"),
        ("Hans Bethe", "france", "1906"),
        ("Lev Landau", "azerbaijan", "1908"),
        ("Alexander Prokhorov", "australia", "1916"),
        ("Albert Camus", "algeria", "1913"),
        ("Ivo Andrić", "bosnia-and-herzegovina", "1892"),
        ("Czesław Miłosz", "lithuania", "1911"),
        ("Georges Charpak", "ukraine", "1924"),
        ("Doris Lessing", "iran", "1919"),
        ("Derek Walcott", "saint-lucia", "1930"),
        ("Kazuo Ishiguro", "japan", "1954"),
        ("Boris Johnson", "united-states", "1964"),
        ("Manmohan Singh", "pakistan", "1932"),
        ("Manuel Valls", "spain", "1962"),
        ("Julia Gillard", "united-kingdom", "1961"),
        ("Angela Merkel", "germany", "1954"),
    ],
)
def test_a_known_birth_is_given_in_the_country_of_today(
    people: dict[str, Row], edges: list[Row], name: str, country: str, born: str
) -> None:
    [person] = [id_ for id_, row in people.items() if row["name"] == name]
    assert people[person]["year:int"] == born
    assert [edge["tail"] for edge in of(edges, "born_in") if edge["head"] == person] == [f"country/{country}"]


@each_of(
    ("country", "year", "holders"),
    [
        ("united-kingdom", 1990, {"margaret-thatcher", "john-major"}),
        ("united-kingdom", 2022, {"boris-johnson", "liz-truss", "rishi-sunak"}),
        ("germany", 1990, {"helmut-kohl"}),
        ("germany", 2015, {"angela-merkel"}),
        ("france", 1999, {"lionel-jospin"}),
        ("italy", 2010, {"silvio-berlusconi"}),
        ("italy", 1997, {"romano-prodi"}),
        ("spain", 2000, {"jose-maria-aznar"}),
        ("japan", 1994, {"morihiro-hosokawa", "tsutomu-hata", "tomiichi-murayama"}),
        ("japan", 2019, {"shinzo-abe"}),
        ("india", 1996, {"p-v-narasimha-rao", "atal-bihari-vajpayee", "h-d-deve-gowda"}),
        ("india", 2020, {"narendra-modi"}),
        ("canada", 1993, {"brian-mulroney", "kim-campbell", "jean-chretien"}),
        ("australia", 2013, {"julia-gillard", "kevin-rudd", "tony-abbott"}),
        ("new-zealand", 1990, {"geoffrey-palmer", "mike-moore", "jim-bolger"}),
        ("new-zealand", 2023, {"jacinda-ardern", "chris-hipkins", "christopher-luxon"}),
    ],
)
def test_the_known_people_were_in_office_in_a_year(
    edges: list[Row], country: str, year: int, holders: set[str]
) -> None:
    in_office = {holder for start, end, holder in terms_of(edges, country) if start <= year <= (end or year)}
    assert in_office == {f"person/{holder}" for holder in holders}


@each_of(
    ("holder", "country", "terms"),
    [
        ("silvio-berlusconi", "italy", [(1994, 1995), (2001, 2006), (2008, 2011)]),
        ("giuliano-amato", "italy", [(1992, 1993), (2000, 2001)]),
        ("shinzo-abe", "japan", [(2006, 2007), (2012, 2020)]),
        ("atal-bihari-vajpayee", "india", [(1996, 1996), (1998, 2004)]),
        ("kevin-rudd", "australia", [(2007, 2010), (2013, 2013)]),
        ("margaret-thatcher", "united-kingdom", [(1979, 1990)]),
    ],
)
def test_separate_terms_are_separate_edges(
    edges: list[Row], holder: str, country: str, terms: list[tuple[int, int]]
) -> None:
    found = [(start, end) for start, end, who in terms_of(edges, country) if who == f"person/{holder}"]
    assert found == terms


@each_of(
    ("person", "fields"),
    [
        ("geoffrey-hinton", {"computer-science"}),
        ("walter-kohn", {"physics", "chemistry"}),
        ("bob-dylan", {"music"}),
        ("richard-feynman", {"physics"}),
    ],
)
def test_a_person_works_in_a_field_of_their_own_rather_than_that_of_the_prize(
    edges: list[Row], person: str, fields: set[str]
) -> None:
    found = {edge["tail"] for edge in of(edges, "works_in") if edge["head"] == f"person/{person}"}
    assert found == {f"field/{field}" for field in fields}
