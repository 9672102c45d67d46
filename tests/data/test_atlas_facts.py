"""The places of the shipped atlas: countries, cities, rivers, mountains, lakes and what joins them.

Two kinds of checks. Structural ones hold for any correct data of this shape (borders join existing countries, the
countries on a river touch each other). Spot facts were written down from general knowledge, not read out of the files.
"""

import csv
import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from tests.corpora import each_of

ATLAS = Path(__file__).parents[2] / "byokg" / "data" / "atlas"

Row = dict[str, str]
Neighbours = dict[str, set[str]]

ENDS = {
    "part_of": ("Region", {"Continent"}),
    "in_continent": ("Country", {"Continent"}),
    "in_region": ("Country", {"Region"}),
    "capital": ("Country", {"City"}),
    "currency": ("Country", {"Currency"}),
    "official_language": ("Country", {"Language"}),
    "borders": ("Country", {"Country"}),
    "located_in": ("City", {"Country"}),
    "flows_through": ("River", {"Country"}),
    "tributary_of": ("River", {"River"}),
    "flows_into": ("River", {"Sea", "Ocean", "Lake"}),
    "mountain_in": ("Mountain", {"Country"}),
    "lake_in": ("Lake", {"Country"}),
}
"""For each relation between places: the type it starts from and the types it may end in."""

PLACE_TYPES = {
    "Continent",
    "Region",
    "Country",
    "City",
    "Currency",
    "Language",
    "River",
    "Sea",
    "Ocean",
    "Mountain",
    "Lake",
}

MEASURES = {
    "population:int": {"Country", "City"},
    "area_km2:float": {"Country", "Lake"},
    "elevation_m:int": {"Mountain"},
    "length_km:int": {"River"},
    "depth_m:int": {"Lake"},
    "iso2": {"Country"},
}
"""For each column: the only types that may fill it."""

MEMBERS_BY_CONTINENT = {"Africa": 54, "Asia": 47, "Europe": 43, "North America": 23, "Oceania": 14, "South America": 12}
"""Members of the United Nations by UN M49; the Americas divided at the border of Panama and Colombia."""

MEMBERS_BY_REGION = {
    "Northern Africa": 6,
    "Eastern Africa": 18,
    "Middle Africa": 9,
    "Southern Africa": 5,
    "Western Africa": 16,
    "Caribbean": 13,
    "Central America": 8,
    "Northern America": 2,
    "South America": 12,
    "Central Asia": 5,
    "Eastern Asia": 5,
    "South-eastern Asia": 11,
    "Southern Asia": 9,
    "Western Asia": 17,
    "Eastern Europe": 10,
    "Northern Europe": 10,
    "Southern Europe": 14,
    "Western Europe": 9,
    "Australia and New Zealand": 2,
    "Melanesia": 4,
    "Micronesia": 5,
    "Polynesia": 3,
}

ISLANDERS_WITH_A_BORDER = {
    ("Brunei", "Malaysia"),
    ("Dominican Republic", "Haiti"),
    ("Indonesia", "Malaysia"),
    ("Indonesia", "Papua New Guinea"),
    ("Indonesia", "Timor-Leste"),
    ("Ireland", "United Kingdom"),
    ("Malaysia", "Thailand"),
}
"""Every land border of a state that lies wholly or partly on islands; all other island states have none."""

WITHOUT_A_BORDER = {
    "Antigua and Barbuda",
    "Australia",
    "Bahamas",
    "Bahrain",
    "Barbados",
    "Cape Verde",
    "Comoros",
    "Cuba",
    "Cyprus",
    "Dominica",
    "Federated States of Micronesia",
    "Fiji",
    "Grenada",
    "Iceland",
    "Jamaica",
    "Japan",
    "Kiribati",
    "Madagascar",
    "Maldives",
    "Malta",
    "Marshall Islands",
    "Mauritius",
    "Nauru",
    "New Zealand",
    "Palau",
    "Philippines",
    "Saint Kitts and Nevis",
    "Saint Lucia",
    "Saint Vincent and the Grenadines",
    "Samoa",
    "Seychelles",
    "Singapore",
    "Solomon Islands",
    "Sri Lanka",
    "São Tomé and Príncipe",
    "Tonga",
    "Trinidad and Tobago",
    "Tuvalu",
    "Vanuatu",
}

CONTINENTS_THAT_TOUCH = {
    ("Africa", "Asia"): {("Egypt", "Israel")},
    ("Africa", "Europe"): {("Morocco", "Spain")},
    ("Asia", "Europe"): {
        ("Azerbaijan", "Russia"),
        ("Bulgaria", "Turkey"),
        ("China", "Russia"),
        ("Georgia", "Russia"),
        ("Greece", "Turkey"),
        ("Kazakhstan", "Russia"),
        ("Mongolia", "Russia"),
        ("North Korea", "Russia"),
    },
    ("Asia", "Oceania"): {("Indonesia", "Papua New Guinea")},
    ("North America", "South America"): {("Colombia", "Panama")},
}
"""Every land border between two continents."""


def rows(name: str) -> list[Row]:
    """Read one file of the atlas, each line as a mapping from column header to text."""
    with (ATLAS / name).open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


@pytest.fixture(scope="module")
def listed() -> list[Row]:
    """The lines of nodes.csv that are places, in order."""
    return [row for row in rows("nodes.csv") if row["type"] in PLACE_TYPES]


@pytest.fixture(scope="module")
def nodes(listed: list[Row]) -> dict[str, Row]:
    return {row["id"]: row for row in listed}


@pytest.fixture(scope="module")
def edges() -> list[Row]:
    """The lines of edges.csv that join places, in order."""
    return [row for row in rows("edges.csv") if row["relation"] in ENDS]


@pytest.fixture(scope="module")
def facts(nodes: dict[str, Row], edges: list[Row]) -> dict[str, dict[str, set[str]]]:
    """relation -> name of the head -> names of the tails."""
    found: dict[str, dict[str, set[str]]] = {relation: {} for relation in ENDS}
    for edge in edges:
        head, tail = nodes[edge["head"]]["name"], nodes[edge["tail"]]["name"]
        found[edge["relation"]].setdefault(head, set()).add(tail)
    return found


@pytest.fixture(scope="module")
def countries(listed: list[Row]) -> dict[str, Row]:
    return {row["name"]: row for row in listed if row["type"] == "Country"}


def named(listed: list[Row], type_: str, name: str) -> Row:
    """Return the one place of this type and name."""
    (row,) = [row for row in listed if row["type"] == type_ and row["name"] == name]
    return row


def hang_together(countries: set[str], neighbours: Neighbours) -> bool:
    """Tell whether one can walk between any two of the countries without leaving them."""
    reached = {min(countries)}
    frontier = set(reached)
    while frontier:
        frontier = {b for a in frontier for b in neighbours.get(a, set())} & countries - reached
        reached |= frontier
    return reached == countries


# Structure


def test_ids_are_unique_and_made_of_type_and_slug(listed: list[Row]) -> None:
    assert len({row["id"] for row in listed}) == len(listed)
    for row in listed:
        assert re.fullmatch(r"[a-z]+/[a-z0-9]+(-[a-z0-9]+)*", row["id"]), row["id"]
        assert row["id"].split("/")[0] == row["type"].lower(), row["id"]


def test_names_are_unique_within_a_type(listed: list[Row]) -> None:
    counts = Counter((row["type"], row["name"].casefold()) for row in listed)
    assert [key for key, count in counts.items() if count > 1] == []


def test_names_and_ids_carry_no_stray_spaces(listed: list[Row]) -> None:
    assert [row for row in listed if row["name"] != " ".join(row["name"].split()) or not row["name"]] == []


def test_each_relation_joins_the_types_it_is_meant_for(nodes: dict[str, Row], edges: list[Row]) -> None:
    for edge in edges:
        head, tails = ENDS[edge["relation"]]
        assert nodes[edge["head"]]["type"] == head, edge
        assert nodes[edge["tail"]]["type"] in tails, edge


def test_no_fact_is_stated_twice(edges: list[Row]) -> None:
    counts = Counter((edge["head"], edge["relation"], edge["tail"]) for edge in edges)
    assert [fact for fact, count in counts.items() if count > 1] == []


def test_every_place_takes_part_in_a_fact(listed: list[Row], edges: list[Row]) -> None:
    joined = {edge[end] for edge in edges for end in ("head", "tail")}
    assert [row["id"] for row in listed if row["id"] not in joined] == []


def test_measures_are_positive_and_belong_to_the_type(listed: list[Row]) -> None:
    for row in listed:
        for column, types in MEASURES.items():
            assert not row[column] or row["type"] in types, row
            if column != "iso2" and row[column]:
                assert (float if column.endswith("float") else int)(row[column]) > 0, row


def test_years_on_edges_are_years_and_in_order(edges: list[Row]) -> None:
    for edge in edges:
        years = [int(edge[column]) for column in ("start:int", "end:int") if edge[column]]
        assert all(1900 <= year <= 2100 for year in years), edge
        assert years == sorted(years), edge


# Countries


def test_all_193_members_of_the_united_nations_are_there(countries: dict[str, Row]) -> None:
    assert len(countries) == 193
    assert len({row["iso2"] for row in countries.values()}) == 193
    assert all(re.fullmatch("[A-Z]{2}", row["iso2"]) for row in countries.values())


def test_every_country_has_population_and_area(countries: dict[str, Row]) -> None:
    for row in countries.values():
        assert int(row["population:int"]) >= 9_000, row
        assert float(row["area_km2:float"]) >= 2, row


def test_population_of_the_world_adds_up_to_eight_billion(countries: dict[str, Row]) -> None:
    total = sum(int(row["population:int"]) for row in countries.values())
    assert 7_900_000_000 < total < 8_300_000_000


def test_land_of_the_world_adds_up(countries: dict[str, Row]) -> None:
    """149 million km² less Antarctica (14) and Greenland (2), inland waters counted in or out."""
    total = sum(float(row["area_km2:float"]) for row in countries.values())
    assert 128e6 < total < 138e6


def test_every_country_has_the_facts_a_country_must_have(
    countries: dict[str, Row], facts: dict[str, dict[str, set[str]]]
) -> None:
    for country in countries:
        assert len(facts["in_continent"][country]) == 1, country
        assert len(facts["in_region"][country]) == 1, country
        assert len(facts["capital"][country]) >= 1, country
        assert len(facts["currency"][country]) >= 1, country


def test_continent_of_a_country_is_that_of_its_region(
    countries: dict[str, Row], facts: dict[str, dict[str, set[str]]]
) -> None:
    for country in countries:
        (region,) = facts["in_region"][country]
        assert facts["part_of"][region] == facts["in_continent"][country], country


def test_members_of_each_continent_are_counted_right(facts: dict[str, dict[str, set[str]]]) -> None:
    assert Counter(name for names in facts["in_continent"].values() for name in names) == MEMBERS_BY_CONTINENT


def test_members_of_each_region_are_counted_right(facts: dict[str, dict[str, set[str]]]) -> None:
    assert Counter(name for names in facts["in_region"].values() for name in names) == MEMBERS_BY_REGION
    assert sum(MEMBERS_BY_REGION.values()) == 193


def test_only_known_countries_have_several_capitals(facts: dict[str, dict[str, set[str]]]) -> None:
    assert {country: names for country, names in facts["capital"].items() if len(names) > 1} == {
        "Bolivia": {"La Paz", "Sucre"},
        "Eswatini": {"Lobamba", "Mbabane"},
        "South Africa": {"Bloemfontein", "Cape Town", "Pretoria"},
        "Sri Lanka": {"Colombo", "Sri Jayawardenepura Kotte"},
    }


def test_a_city_lies_in_one_country_and_a_capital_in_its_own(
    listed: list[Row], facts: dict[str, dict[str, set[str]]]
) -> None:
    for row in listed:
        if row["type"] == "City":
            assert len(facts["located_in"][row["name"]]) == 1, row
    for country, capitals in facts["capital"].items():
        for capital in capitals:
            assert facts["located_in"][capital] == {country}


def test_no_city_has_more_people_than_its_country(
    listed: list[Row], countries: dict[str, Row], facts: dict[str, dict[str, set[str]]]
) -> None:
    for row in listed:
        if row["type"] == "City" and row["population:int"]:
            (country,) = facts["located_in"][row["name"]]
            # Singapore is a city; its two figures are estimates of different years.
            assert int(row["population:int"]) <= 1.05 * int(countries[country]["population:int"]), row


# Borders


def test_a_border_is_stored_from_both_sides(edges: list[Row]) -> None:
    borders = {(edge["head"], edge["tail"]) for edge in edges if edge["relation"] == "borders"}
    assert borders == {(tail, head) for head, tail in borders}


def test_just_the_island_states_have_no_land_border(
    countries: dict[str, Row], facts: dict[str, dict[str, set[str]]]
) -> None:
    assert {country for country in countries if country not in facts["borders"]} == WITHOUT_A_BORDER


def test_states_on_shared_islands_border_just_the_known_neighbours(facts: dict[str, dict[str, set[str]]]) -> None:
    shared = {"Brunei", "Dominican Republic", "Haiti", "Indonesia", "Ireland", "Malaysia", "Papua New Guinea"}
    shared |= {"Timor-Leste", "United Kingdom"}
    found = {(min(a, b), max(a, b)) for a in shared for b in facts["borders"][a]}
    assert found == ISLANDERS_WITH_A_BORDER


def test_borders_between_continents_are_the_known_ones(facts: dict[str, dict[str, set[str]]]) -> None:
    found: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for country, others in facts["borders"].items():
        for other in others:
            here, there = min(facts["in_continent"][country]), min(facts["in_continent"][other])
            if here < there:
                found.setdefault((here, there), set()).add((min(country, other), max(country, other)))
    assert found == CONTINENTS_THAT_TOUCH


def test_land_borders_leave_two_great_landmasses_and_small_pairs(facts: dict[str, dict[str, set[str]]]) -> None:
    """Afro-Eurasia (with Borneo, New Guinea and Timor, joined through Malaysia), the Americas, Hispaniola, Ireland."""
    sizes = []
    left = set(facts["borders"])
    while left:
        reached, frontier = set(), {min(left)}
        while frontier:
            reached |= frontier
            frontier = {b for a in frontier for b in facts["borders"][a]} - reached
        left -= reached
        sizes.append(len(reached))
    # 193 members less 39 without a border are 154. Mainland America has 3 + 7 + 12 = 22 members.
    assert sorted(sizes) == [2, 2, 22, 128]


@each_of(
    ("country", "count"),
    [
        ("China", 14),
        ("Russia", 14),
        ("Brazil", 9),
        ("Democratic Republic of the Congo", 9),
        ("Germany", 9),
        ("Austria", 8),
        ("France", 8),
        ("Turkey", 8),
        ("Tanzania", 8),
        ("Zambia", 8),
        ("Serbia", 7),
        ("Mali", 7),
        ("Saudi Arabia", 7),
        ("India", 6),
        ("United States", 2),
        ("Portugal", 1),
        ("Lesotho", 1),
        ("South Korea", 1),
    ],
)
def test_number_of_neighbours(country: str, count: int, facts: dict[str, dict[str, set[str]]]) -> None:
    assert len(facts["borders"][country]) == count


@each_of(
    ("country", "neighbours"),
    [
        ("Switzerland", {"Austria", "France", "Germany", "Italy", "Liechtenstein"}),
        ("Poland", {"Belarus", "Czech Republic", "Germany", "Lithuania", "Russia", "Slovakia", "Ukraine"}),
        ("Bolivia", {"Argentina", "Brazil", "Chile", "Paraguay", "Peru"}),
        ("Egypt", {"Israel", "Libya", "Sudan"}),
        ("Afghanistan", {"China", "Iran", "Pakistan", "Tajikistan", "Turkmenistan", "Uzbekistan"}),
        ("Thailand", {"Cambodia", "Laos", "Malaysia", "Myanmar"}),
        ("Gambia", {"Senegal"}),
    ],
)
def test_neighbours(country: str, neighbours: set[str], facts: dict[str, dict[str, set[str]]]) -> None:
    assert facts["borders"][country] == neighbours


# Rivers, mountains, lakes


def test_countries_on_a_river_or_lake_hang_together(facts: dict[str, dict[str, set[str]]]) -> None:
    for relation in ("flows_through", "lake_in"):
        for place, countries in facts[relation].items():
            assert hang_together(countries, facts["borders"]), place


def test_countries_sharing_a_mountain_border_each_other(facts: dict[str, dict[str, set[str]]]) -> None:
    for mountain, countries in facts["mountain_in"].items():
        for here, there in combinations(sorted(countries), 2):
            assert there in facts["borders"][here], mountain


def test_every_river_mountain_and_lake_has_a_country(listed: list[Row], facts: dict[str, dict[str, set[str]]]) -> None:
    relation = {"River": "flows_through", "Mountain": "mountain_in", "Lake": "lake_in"}
    for row in listed:
        if row["type"] in relation:
            assert facts[relation[row["type"]]].get(row["name"]), row


def test_a_river_ends_in_one_place(facts: dict[str, dict[str, set[str]]]) -> None:
    ends = [*facts["tributary_of"], *facts["flows_into"]]
    assert len(ends) == len(set(ends))
    for relation in ("tributary_of", "flows_into"):
        assert all(len(targets) == 1 for targets in facts[relation].values())


def test_a_tributary_shares_a_country_with_the_river_it_joins(facts: dict[str, dict[str, set[str]]]) -> None:
    for river, targets in facts["tributary_of"].items():
        for target in targets:
            assert facts["flows_through"][river] & facts["flows_through"][target], river


def test_a_river_ending_in_a_lake_shares_a_country_with_it(facts: dict[str, dict[str, set[str]]]) -> None:
    for river, targets in facts["flows_into"].items():
        for target in targets & set(facts["lake_in"]):
            assert facts["flows_through"][river] & facts["lake_in"][target], river


def test_following_tributaries_never_leads_round_in_a_circle(facts: dict[str, dict[str, set[str]]]) -> None:
    for river in facts["tributary_of"]:
        seen = {river}
        while facts["tributary_of"].get(river):
            (river,) = facts["tributary_of"][river]
            assert river not in seen
            seen.add(river)


def test_nothing_exceeds_the_records_of_the_earth(listed: list[Row]) -> None:
    records = {"elevation_m:int": "Mount Everest", "length_km:int": "Nile", "depth_m:int": "Lake Baikal"}
    for column, name in records.items():
        assert max((int(row[column]), row["name"]) for row in listed if row[column])[1] == name
    lakes = [row for row in listed if row["type"] == "Lake" and row["area_km2:float"]]
    assert max((float(row["area_km2:float"]), row["name"]) for row in lakes)[1] == "Caspian Sea"


def test_the_fourteen_eight_thousanders_are_there(listed: list[Row]) -> None:
    assert {
        row["name"] for row in listed if row["type"] == "Mountain" and int(row["elevation_m:int"] or 0) >= 8000
    } == {
        "Annapurna",
        "Broad Peak",
        "Cho Oyu",
        "Dhaulagiri",
        "Gasherbrum I",
        "Gasherbrum II",
        "K2",
        "Kangchenjunga",
        "Lhotse",
        "Makalu",
        "Manaslu",
        "Mount Everest",
        "Nanga Parbat",
        "Shishapangma",
    }


@each_of(
    ("river", "countries"),
    [
        (
            "Danube",
            {
                "Austria",
                "Bulgaria",
                "Croatia",
                "Germany",
                "Hungary",
                "Moldova",
                "Romania",
                "Serbia",
                "Slovakia",
                "Ukraine",
            },
        ),
        ("Rhine", {"Austria", "France", "Germany", "Liechtenstein", "Netherlands", "Switzerland"}),
        ("Mekong", {"Cambodia", "China", "Laos", "Myanmar", "Thailand", "Vietnam"}),
        ("Amazon", {"Brazil", "Colombia", "Peru"}),
        ("Niger River", {"Benin", "Guinea", "Mali", "Niger", "Nigeria"}),
        ("Zambezi", {"Angola", "Botswana", "Mozambique", "Namibia", "Zambia", "Zimbabwe"}),
        ("Euphrates", {"Iraq", "Syria", "Turkey"}),
        ("Volga", {"Russia"}),
        ("Yangtze", {"China"}),
        ("Elbe", {"Czech Republic", "Germany"}),
    ],
)
def test_countries_on_a_river(river: str, countries: set[str], facts: dict[str, dict[str, set[str]]]) -> None:
    assert facts["flows_through"][river] == countries


@each_of(
    ("river", "end"),
    [
        ("Danube", "Black Sea"),
        ("Nile", "Mediterranean Sea"),
        ("Volga", "Caspian Sea"),
        ("Amazon", "Atlantic Ocean"),
        ("Ganges", "Bay of Bengal"),
        ("Rhine", "North Sea"),
        ("Yukon River", "Bering Sea"),
        ("Jordan River", "Dead Sea"),
        ("Missouri", "Mississippi"),
        ("Main", "Rhine"),
        ("Sava", "Danube"),
        ("Blue Nile", "Nile"),
        ("Irtysh", "Ob"),
    ],
)
def test_end_of_a_river(river: str, end: str, facts: dict[str, dict[str, set[str]]]) -> None:
    assert facts["flows_into"].get(river, facts["tributary_of"].get(river)) == {end}


@each_of(
    ("mountain", "elevation_m", "countries"),
    [
        ("Mount Everest", 8849, {"China", "Nepal"}),
        ("K2", 8611, {"China", "Pakistan"}),
        ("Kangchenjunga", 8586, {"India", "Nepal"}),
        ("Aconcagua", 6961, {"Argentina"}),
        ("Denali", 6190, {"United States"}),
        ("Kilimanjaro", 5895, {"Tanzania"}),
        ("Mount Elbrus", 5642, {"Russia"}),
        ("Matterhorn", 4478, {"Italy", "Switzerland"}),
        ("Mount Fuji", 3776, {"Japan"}),
        ("Zugspitze", 2962, {"Austria", "Germany"}),
        ("Mount Kosciuszko", 2228, {"Australia"}),
        ("Ben Nevis", 1345, {"United Kingdom"}),
    ],
)
def test_elevation_and_countries_of_a_mountain(
    mountain: str, elevation_m: int, countries: set[str], listed: list[Row], facts: dict[str, dict[str, set[str]]]
) -> None:
    assert int(named(listed, "Mountain", mountain)["elevation_m:int"]) == elevation_m
    assert facts["mountain_in"][mountain] == countries


@each_of(
    ("lake", "countries"),
    [
        ("Lake Victoria", {"Kenya", "Tanzania", "Uganda"}),
        ("Caspian Sea", {"Azerbaijan", "Iran", "Kazakhstan", "Russia", "Turkmenistan"}),
        ("Lake Constance", {"Austria", "Germany", "Switzerland"}),
        ("Lake Titicaca", {"Bolivia", "Peru"}),
        ("Lake Michigan", {"United States"}),
        ("Lake Superior", {"Canada", "United States"}),
        ("Lake Tanganyika", {"Burundi", "Democratic Republic of the Congo", "Tanzania", "Zambia"}),
        ("Lake Baikal", {"Russia"}),
    ],
)
def test_countries_on_a_lake(lake: str, countries: set[str], facts: dict[str, dict[str, set[str]]]) -> None:
    assert facts["lake_in"][lake] == countries


# Capitals, money, languages


@each_of(
    ("country", "capital"),
    [
        ("Australia", "Canberra"),
        ("Brazil", "Brasília"),
        ("Canada", "Ottawa"),
        ("Côte d'Ivoire", "Yamoussoukro"),
        ("Equatorial Guinea", "Ciudad de la Paz"),
        ("Kazakhstan", "Astana"),
        ("Morocco", "Rabat"),
        ("Myanmar", "Naypyidaw"),
        ("New Zealand", "Wellington"),
        ("Nigeria", "Abuja"),
        ("Pakistan", "Islamabad"),
        ("Switzerland", "Bern"),
        ("Tanzania", "Dodoma"),
        ("Turkey", "Ankara"),
        ("United States", "Washington, D.C."),
        ("Vietnam", "Hanoi"),
        ("Burundi", "Gitega"),
        ("Palau", "Ngerulmud"),
    ],
)
def test_capital(country: str, capital: str, facts: dict[str, dict[str, set[str]]]) -> None:
    assert facts["capital"][country] == {capital}


def test_countries_that_use_the_euro_and_when_they_took_it_up(nodes: dict[str, Row], edges: list[Row]) -> None:
    """The 21 of the euro area by year, and four small states and Montenegro that use it too (no year given)."""
    found: dict[str, set[str]] = {}
    for edge in edges:
        if edge["relation"] == "currency" and nodes[edge["tail"]]["name"] == "Euro":
            found.setdefault(edge["start:int"], set()).add(nodes[edge["head"]]["name"])
    assert found == {
        "1999": {
            "Austria",
            "Belgium",
            "Finland",
            "France",
            "Germany",
            "Ireland",
            "Italy",
            "Luxembourg",
            "Netherlands",
            "Portugal",
            "Spain",
        },
        "2001": {"Greece"},
        "2007": {"Slovenia"},
        "2008": {"Cyprus", "Malta"},
        "2009": {"Slovakia"},
        "2011": {"Estonia"},
        "2014": {"Latvia"},
        "2015": {"Lithuania"},
        "2023": {"Croatia"},
        "2026": {"Bulgaria"},
        "": {"Andorra", "Monaco", "Montenegro", "San Marino"},
    }


def test_members_of_the_two_cfa_francs(facts: dict[str, dict[str, set[str]]]) -> None:
    def users(currency: str) -> set[str]:
        return {country for country, names in facts["currency"].items() if currency in names}

    assert users("West African CFA franc") == {
        "Benin",
        "Burkina Faso",
        "Côte d'Ivoire",
        "Guinea-Bissau",
        "Mali",
        "Niger",
        "Senegal",
        "Togo",
    }
    assert users("Central African CFA franc") == {
        "Cameroon",
        "Central African Republic",
        "Chad",
        "Equatorial Guinea",
        "Gabon",
        "Republic of the Congo",
    }


@each_of(
    ("country", "currencies"),
    [
        ("Japan", {"Japanese yen"}),
        ("Switzerland", {"Swiss franc"}),
        ("Liechtenstein", {"Swiss franc"}),
        ("United Kingdom", {"Pound sterling"}),
        ("Ecuador", {"United States dollar"}),
        ("Panama", {"Panamanian balboa", "United States dollar"}),
        ("Poland", {"Polish złoty"}),
    ],
)
def test_currency(country: str, currencies: set[str], facts: dict[str, dict[str, set[str]]]) -> None:
    assert facts["currency"][country] == currencies


@each_of(
    ("country", "languages"),
    [
        ("Belgium", {"Dutch", "French", "German"}),
        ("Brazil", {"Portuguese"}),
        ("Canada", {"English", "French"}),
        ("Finland", {"Finnish", "Swedish"}),
        ("Paraguay", {"Guarani", "Spanish"}),
        ("Singapore", {"English", "Malay", "Mandarin Chinese", "Tamil"}),
        ("Switzerland", {"French", "German", "Italian", "Romansh"}),
        ("Israel", {"Hebrew"}),
    ],
)
def test_official_languages(country: str, languages: set[str], facts: dict[str, dict[str, set[str]]]) -> None:
    assert facts["official_language"][country] == languages


def test_portuguese_is_official_in_nine_members(facts: dict[str, dict[str, set[str]]]) -> None:
    assert {country for country, names in facts["official_language"].items() if "Portuguese" in names} == {
        "Angola",
        "Brazil",
        "Cape Verde",
        "Equatorial Guinea",
        "Guinea-Bissau",
        "Mozambique",
        "Portugal",
        "São Tomé and Príncipe",
        "Timor-Leste",
    }


@each_of(
    ("larger", "smaller", "column"),
    [
        ("Russia", "Canada", "area_km2:float"),
        ("Kazakhstan", "Algeria", "area_km2:float"),
        ("Algeria", "Democratic Republic of the Congo", "area_km2:float"),
        ("France", "Spain", "area_km2:float"),
        ("San Marino", "Monaco", "area_km2:float"),
        ("India", "China", "population:int"),
        ("China", "United States", "population:int"),
        ("United States", "Indonesia", "population:int"),
        ("Nigeria", "Brazil", "population:int"),
        ("Germany", "United Kingdom", "population:int"),
    ],
)
def test_order_of_countries_by_size(larger: str, smaller: str, column: str, countries: dict[str, Row]) -> None:
    assert float(countries[larger][column]) > float(countries[smaller][column])


@each_of(
    ("city", "country"),
    [
        ("Sydney", "Australia"),
        ("Hong Kong", "China"),
        ("Istanbul", "Turkey"),
        ("Rio de Janeiro", "Brazil"),
        ("Mumbai", "India"),
        ("Lagos", "Nigeria"),
        ("Barcelona", "Spain"),
        ("Saint Petersburg", "Russia"),
        ("Casablanca", "Morocco"),
        ("Guayaquil", "Ecuador"),
    ],
)
def test_country_of_a_city(city: str, country: str, facts: dict[str, dict[str, set[str]]]) -> None:
    assert facts["located_in"][city] == {country}
