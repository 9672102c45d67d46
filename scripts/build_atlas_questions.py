"""Write `questions.jsonl` of the shipped `atlas` data set, or check the existing one.

Every question comes from a pattern: a query that finds topics, a gold query that answers, and several
wordings. The gold query runs in SQLite over nodes.csv and edges.csv, so answers do not depend on byokg's
own graph code, and it is stored beside the question so that anyone can run it again.

    python scripts/build_atlas_questions.py            # rebuild questions.jsonl
    python scripts/build_atlas_questions.py --check    # rerun each stored gold query, exit 1 on a difference

Same input, same bytes: topics are taken in the order of a digest, never of a set or of a random generator.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import re
import sqlite3
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts import atlas_operator_patterns

ATLAS = Path(__file__).resolve().parent.parent / "byokg" / "data" / "atlas"
SEED = 7
MOST_ANSWERS = 40

Kind = Literal[
    "1-hop",
    "2-hop",
    "3-hop",
    "multi-constraint",
    "count",
    "superlative",
    "temporal",
    "comparison",
    "difference",
    "union",
    "properties",
]
Cell: TypeAlias = str | int | float | None
Record: TypeAlias = dict[str, Any]

# Names that English puts "the" before; other rules are in `Label`.
WITH_ARTICLE = frozenset(
    """Bahamas|Central African Republic|Comoros|Czech Republic|Democratic Republic of the Congo|Dominican Republic
    |Federated States of Micronesia|Gambia|Maldives|Marshall Islands|Netherlands|Philippines|Republic of the Congo
    |Solomon Islands|United Arab Emirates|United Kingdom|United States|Caribbean|Matterhorn|Zugspitze|Eiger|Jungfrau
    |Great Salt Lake|IJsselmeer|Schreckhorn|Finsteraarhorn""".replace("\n    ", "").split("|")
)

# Where a title other than prime minister is used.
OFFICES = {"Germany": "chancellor"}

# Countries of which sources disagree about the capital, or whose capital is moving: no question turns on it.
ODD_CAPITALS = (
    "Benin",
    "Bolivia",
    "Burundi",
    "Chile",
    "Côte d'Ivoire",
    "Equatorial Guinea",
    "Eswatini",
    "Indonesia",
    "Israel",
    "Kiribati",
    "Malaysia",
    "Monaco",
    "Montenegro",
    "Nauru",
    "Netherlands",
    "Singapore",
    "South Africa",
    "Sri Lanka",
    "Tanzania",
    "Yemen",
)

# Countries whose list of neighbours depends on whom one asks: territories overseas, disputed land, crossings over
# water, or neighbours that are not members of the United Nations and so not in the graph.
ODD_BORDERS = (
    "Afghanistan",
    "Albania",
    "Algeria",
    "Bahrain",
    "Brazil",
    "Canada",
    "China",
    "Cuba",
    "Cyprus",
    "Denmark",
    "Egypt",
    "France",
    "India",
    "Israel",
    "Italy",
    "Jordan",
    "Lebanon",
    "Malaysia",
    "Mauritania",
    "Montenegro",
    "Morocco",
    "Netherlands",
    "North Macedonia",
    "Pakistan",
    "Serbia",
    "Singapore",
    "Spain",
    "Suriname",
    "Syria",
    "United Kingdom",
)

# Currencies that are used in more countries than those where they are official, so that lists of users differ.
ODD_CURRENCIES = ("South African rand", "United States dollar")

# Countries that lie on two continents, or are counted to either.
ODD_CONTINENTS = (
    "Armenia",
    "Azerbaijan",
    "Cyprus",
    "Egypt",
    "Georgia",
    "Indonesia",
    "Kazakhstan",
    "Panama",
    "Papua New Guinea",
    "Russia",
    "Timor-Leste",
    "Trinidad and Tobago",
    "Turkey",
)

# Read by topic queries only, never by a gold query.
SELECTION = """
CREATE TEMP VIEW plain_capital (country, city) AS SELECT country, city FROM capital
  WHERE country NOT IN odd_capital GROUP BY country HAVING COUNT(*) = 1;
CREATE TEMP VIEW unwritten (id) AS SELECT head FROM edge WHERE relation = 'official_language' AND source = 'de-facto';
CREATE TEMP VIEW shared_currency (currency) AS SELECT currency FROM currency
  WHERE currency NOT IN odd_currency AND currency <> 'currency/euro' GROUP BY currency HAVING COUNT(*) > 2;
CREATE TEMP VIEW settled (id) AS SELECT DISTINCT a FROM neighbour WHERE a NOT IN odd_border;
CREATE TEMP VIEW big (id) AS SELECT id FROM node WHERE type = 'Country' AND population > 2500000;
CREATE TEMP TABLE year (y INTEGER);
CREATE TEMP VIEW reign (country, y, person) AS SELECT country, y, MIN(person) FROM led JOIN year
  ON y BETWEEN since AND until WHERE y BETWEEN 1990 AND 2023
  GROUP BY country, y HAVING COUNT(*) = 1 AND MIN(since) < y AND MAX(until) > y;
CREATE TEMP VIEW near (a, b) AS SELECT x.head, y.head FROM edge x
  JOIN edge y ON x.relation=y.relation AND x.tail=y.tail
  WHERE x.relation IN ('in_region', 'flows_through', 'mountain_in', 'head_of_government_of') AND x.head<y.head;
CREATE TEMP VIEW native (person, country) AS SELECT person, MIN(country) FROM born GROUP BY person HAVING COUNT(*) = 1;
"""


class Label:
    """A name as it stands in a sentence.

    Format specifications: none gives the name with the article it needs; `'s` the possessive of that; `-` the name
    alone; `now` the name as that of a country within today's borders; `office` the title of its head of government;
    `field` the last word of a prize.
    """

    def __init__(self, name: str, type_: str) -> None:
        self.name = name
        article = (
            name in WITH_ARTICLE
            or type_ in ("River", "Currency", "Award")
            or (type_ in ("Sea", "Ocean") and not name.endswith((" Bay", " Sound")))
            or (type_ == "Lake" and "Sea" in name.split())
            or name.startswith("City of ")
        )
        shown = name[0].lower() + name[1:] if type_ == "Currency" and name in ("Euro", "Pound sterling") else name
        self.text = f"the {shown}" if article else shown

    def __format__(self, spec: str) -> str:
        if spec == "":
            return self.text
        if spec == "'s":
            return self.text + ("'" if self.text.endswith("s") else "'s")
        if spec == "-":
            return self.name
        if spec == "now":
            return f"the present-day {self.name}" if self.text != self.name else f"present-day {self.name}"
        if spec == "office":
            return f"{OFFICES.get(self.name, 'prime minister')} of {self.text}"
        if spec == "field":
            return self.name.split()[-1].lower()
        raise ValueError(f"no format specification {spec!r} for a name")


@dataclass(frozen=True)
class Pattern:
    """One kind of question.

    `topics` returns the arguments of each candidate question; `gold` answers it, with the arguments put in for
    `{0}`, `{1}`; it returns node ids, or values where `values` is set. A superlative gives `rank`, by which its
    rows are ordered: the generator then demands that no candidate lacks that property and that the best leads the
    next by more than `margin` (a share of it), since populations and areas are estimates. A candidate question
    for which `unless` returns a row is dropped. The answer of a `choice` is one of its topics. `take` topics are used,
    with `each` wordings for every one.
    """

    slug: str
    kind: Kind
    hops: int
    topics: str
    gold: str
    wordings: tuple[str, ...]
    take: int = 3
    each: int = 2
    values: bool = False
    rank: str = ""
    margin: float = 0.06
    unless: str = ""
    choice: bool = False

    @property
    def query(self) -> str:
        """Return the gold query with its order, arguments not yet put in."""
        return f"{self.gold} ORDER BY {self.rank} LIMIT 1" if self.rank else self.gold

    @property
    def ranking(self) -> str:
        """Return the query for every candidate of a superlative with the value that ranks it, best first."""
        chosen, rest = self.gold.split(" FROM ", 1)
        value, order = self.rank.rsplit(" ", 1)
        return f"{chosen}, {value} FROM {rest} ORDER BY 2 {order}"


# fmt: off
ONE_HOP = (
    Pattern(
        "capital-of", "1-hop", 1,
        "SELECT country FROM plain_capital",
        "SELECT city FROM capital WHERE country='{0}'",
        (
            "What is the capital of {0}?",
            "Which city is the seat of government of {0}?",
            "{0:'s} capital city is called what?",
            "Name the capital city of {0}.",
            "Capital of {0}?",
        ),
        take=4,
    ),
    Pattern(
        "capital-whose", "1-hop", 1,
        "SELECT city FROM plain_capital",
        "SELECT country FROM capital WHERE city='{0}'",
        (
            "{0} is the capital of which country?",
            "Which country is governed from {0}?",
            "Of which state is {0} the capital city?",
            "Which nation has {0} as its capital?",
        ),
    ),
    Pattern(
        "neighbours", "1-hop", 1,
        "SELECT id FROM settled",
        "SELECT b FROM neighbour WHERE a='{0}'",
        (
            "Which countries share a land border with {0}?",
            "What are the neighbouring countries of {0}?",
            "Crossing the land border of {0}, which countries could I end up in?",
            "Who are {0:'s} neighbours on land?",
        ),
        take=4,
    ),
    Pattern(
        "currency-of", "1-hop", 1,
        "SELECT id FROM big",
        "SELECT currency FROM currency WHERE country='{0}'",
        (
            "What money do people use in {0}?",
            "Which currency do I need when I travel to {0}?",
            "What is legal tender in {0}?",
            "With what currency does one pay in {0}?",
            "Money used in {0}?",
        ),
        take=4,
    ),
    Pattern(
        "currency-users", "1-hop", 1,
        "SELECT currency FROM shared_currency",
        "SELECT country FROM currency WHERE currency='{0}'",
        (
            "Which countries use {0}?",
            "In which countries is {0} the official money?",
            "Where do people pay with {0}?",
            "List every country whose currency is {0}.",
        ),
    ),
    Pattern(
        "language-of", "1-hop", 1,
        "SELECT id FROM big WHERE id NOT IN unwritten",
        "SELECT language FROM language WHERE country='{0}'",
        (
            "What is spoken officially in {0}?",
            "Which languages have official status in {0}?",
            "What official language or languages does {0} have?",
            "In which language does the government of {0} publish its laws?",
        ),
    ),
    Pattern(
        "language-states", "1-hop", 1,
        "SELECT language FROM language GROUP BY 1 HAVING COUNT(*) BETWEEN 3 AND 30",
        "SELECT country FROM language WHERE language='{0}'",
        (
            "In which countries is {0} an official language?",
            "Which states count {0} among their official languages?",
            "Where does {0} have official status?",
            "List the countries that officially speak {0}.",
        ),
    ),
    Pattern(
        "river-countries", "1-hop", 1,
        "SELECT river FROM river GROUP BY 1 HAVING COUNT(*)>1",
        "SELECT country FROM river WHERE river='{0}'",
        (
            "Which countries does {0} flow through?",
            "Through whose territory does {0} pass?",
            "Which countries would I cross if I followed {0} from its source to its end?",
            "{0} runs through which countries?",
        ),
    ),
    Pattern(
        "country-rivers", "1-hop", 1,
        "SELECT country FROM river GROUP BY 1 HAVING COUNT(*)>2",
        "SELECT river FROM river WHERE country='{0}'",
        (
            "Which major rivers flow through {0}?",
            "What big rivers run across {0}?",
            "Name the great rivers of {0}.",
        ),
    ),
    Pattern(
        "river-mouth", "1-hop", 1,
        "SELECT river FROM mouth",
        "SELECT water FROM mouth WHERE river='{0}'",
        (
            "Where does {0} end?",
            "Into what does {0} empty?",
            "What does {0} flow into?",
            "Where do the waters of {0} end up?",
        ),
    ),
    Pattern(
        "basin-rivers", "1-hop", 1,
        "SELECT water FROM mouth JOIN node ON id=water WHERE type='Sea' GROUP BY 1 HAVING COUNT(*) BETWEEN 2 AND 9",
        "SELECT river FROM mouth WHERE water='{0}'",
        (
            "Which major rivers empty into {0}?",
            "Name the big rivers that end in {0}.",
            "{0} receives which great rivers?",
        ),
    ),
    Pattern(
        "mountain-country", "1-hop", 1,
        "SELECT mountain FROM mountain",
        "SELECT country FROM mountain WHERE mountain='{0}'",
        (
            "Where is {0}?",
            "On whose territory does {0} rise?",
            "In which country or countries does {0} stand?",
            "The mountain {0} belongs to which country or countries?",
        ),
    ),
    Pattern(
        "lake-countries", "1-hop", 1,
        "SELECT lake FROM lake",
        "SELECT country FROM lake WHERE lake='{0}'",
        (
            "Which country or countries does {0} lie in?",
            "Whose shores does {0} touch?",
            "Where in the world is {0}?",
            "Who has a share in the waters of {0}?",
        ),
    ),
    Pattern(
        "city-country", "1-hop", 1,
        "SELECT city FROM located WHERE city NOT IN (SELECT city FROM capital)",
        "SELECT country FROM located WHERE city='{0}'",
        (
            "Which country is {0} in?",
            "In which country will I find the city of {0}?",
            "To which country does the city of {0} belong?",
            "{0} is a city in what country?",
        ),
    ),
    Pattern(
        "laureate-prize", "1-hop", 1,
        "SELECT person FROM won GROUP BY 1 HAVING COUNT(DISTINCT award)=1",
        "SELECT DISTINCT award FROM won WHERE person='{0}'",
        (
            "Which Nobel Prize did {0} receive?",
            "What award did {0} win?",
            "{0} was honoured with which prize?",
            "Which of the Nobel Prizes went to {0}?",
        ),
    ),
    Pattern(
        "birthplace", "1-hop", 1,
        "SELECT person FROM native",
        "SELECT country FROM born WHERE person='{0}'",
        (
            "In which present-day country was {0} born?",
            "What is {0:'s} country of birth, by today's borders?",
            "Where did {0} come into the world?",
            "Which country is {0} a native of, as the map is drawn today?",
        ),
        take=4,
    ),
    Pattern(
        "leader-country", "1-hop", 1,
        "SELECT DISTINCT person FROM led",
        "SELECT DISTINCT country FROM led WHERE person='{0}'",
        (
            "Which country did {0} lead as head of government?",
            "{0} headed the government of which country?",
            "Where was {0} head of government?",
            "Of what country has {0} been the political leader?",
        ),
    ),
    Pattern(
        "region-members", "1-hop", 1,
        "SELECT region FROM in_region GROUP BY 1 HAVING COUNT(*) BETWEEN 4 AND 12",
        "SELECT country FROM in_region WHERE region='{0}'",
        (
            "Which countries make up {0}?",
            "List the countries of {0}.",
            "What countries belong to the UN region called {0:-}?",
        ),
        take=2,
    ),
    Pattern(
        "elevation", "1-hop", 1,
        "SELECT id FROM node WHERE type='Mountain' AND elevation_m IS NOT NULL",
        "SELECT elevation_m FROM node WHERE id='{0}'",
        (
            "How high is {0} in metres?",
            "What is the elevation of {0} above sea level, in metres?",
            "How many metres tall is {0}?",
        ),
        values=True, take=2,
    ),
)

TWO_HOP = (
    Pattern(
        "neighbour-capitals", "2-hop", 2,
        "SELECT id FROM settled JOIN neighbour ON a=id GROUP BY 1 HAVING COUNT(*)>1",
        "SELECT city FROM neighbour JOIN capital ON country=b WHERE a='{0}'",
        (
            "What are the capitals of the countries next to {0}?",
            "Name the capital cities of all of {0:'s} neighbours.",
            "Which cities are capitals of states that touch {0}?",
            "From which cities are the countries around {0} governed?",
        ),
        take=4,
    ),
    Pattern(
        "neighbour-currencies", "2-hop", 2,
        "SELECT id FROM settled JOIN neighbour ON a=id GROUP BY 1 HAVING COUNT(*)>1",
        "SELECT DISTINCT currency FROM neighbour JOIN currency ON country=b WHERE a='{0}'",
        (
            "What do people pay with in the neighbours of {0}?",
            "Which currencies are used across the borders of {0}?",
            "What money is used in the countries that surround {0}?",
            "Crossing any land border of {0}, which currencies might I need?",
        ),
        take=4,
    ),
    Pattern(
        "neighbour-languages", "2-hop", 2,
        "SELECT id FROM settled JOIN neighbour ON a=id GROUP BY 1 HAVING COUNT(*)>1",
        "SELECT DISTINCT language FROM neighbour JOIN language ON country=b WHERE a='{0}'",
        (
            "Which languages are official in the countries bordering {0}?",
            "What are the official languages of {0:'s} neighbours?",
            "Just over the border from {0}, which languages have official status?",
        ),
    ),
    Pattern(
        "capital-rivers", "2-hop", 2,
        "SELECT city FROM plain_capital WHERE country IN (SELECT country FROM river GROUP BY 1 HAVING COUNT(*)>1)",
        "SELECT river FROM capital JOIN river USING (country) WHERE city='{0}'",
        (
            "Which big rivers run through the country whose capital is {0}?",
            "{0} is a capital: what major rivers cross its country?",
            "Name the great rivers of the state governed from {0}.",
        ),
    ),
    Pattern(
        "capital-neighbours", "2-hop", 2,
        "SELECT city FROM plain_capital JOIN settled ON id=country",
        "SELECT b FROM capital JOIN neighbour ON a=country WHERE city='{0}'",
        (
            "Which countries border the one whose capital is {0}?",
            "What are the neighbours of the state governed from {0}?",
            "{0} is the capital of a country; which countries lie next to it?",
        ),
    ),
    Pattern(
        "city-currency", "2-hop", 2,
        "SELECT city FROM located WHERE city NOT IN (SELECT city FROM capital)",
        "SELECT currency FROM located JOIN currency USING (country) WHERE city='{0}'",
        (
            "I'm flying to {0}; what currency will I need?",
            "What money is used in the country where {0} lies?",
            "How do people pay in {0}, that is, in which currency?",
        ),
        take=4,
    ),
    Pattern(
        "city-language", "2-hop", 2,
        "SELECT city FROM located WHERE country NOT IN unwritten AND city NOT IN (SELECT city FROM capital)",
        "SELECT language FROM located JOIN language USING (country) WHERE city='{0}'",
        (
            "What are the official languages of the country {0} is in?",
            "Which language is official where the city of {0} lies?",
            "If I move to {0}, which official language or languages of the country should I learn?",
        ),
    ),
    Pattern(
        "mountain-capital", "2-hop", 2,
        "SELECT mountain FROM mountain WHERE country IN (SELECT country FROM plain_capital) "
        "GROUP BY 1 HAVING COUNT(*)=1",
        "SELECT city FROM mountain JOIN capital USING (country) WHERE mountain='{0}'",
        (
            "What is the capital of the country where {0} stands?",
            "{0} rises in a country with which capital city?",
            "From which city is the land of {0} governed?",
        ),
    ),
    Pattern(
        "river-capitals", "2-hop", 2,
        "SELECT river FROM river GROUP BY 1 HAVING COUNT(*)>1",
        "SELECT city FROM river JOIN capital USING (country) WHERE river='{0}'",
        (
            "Name the capital of every country that {0} runs through.",
            "What are the capitals of the countries {0} crosses?",
            "{0} passes through several countries; which cities are their capitals?",
        ),
    ),
    Pattern(
        "river-currencies", "2-hop", 2,
        "SELECT river FROM river GROUP BY 1 HAVING COUNT(*)>1",
        "SELECT DISTINCT currency FROM river JOIN currency USING (country) WHERE river='{0}'",
        (
            "Which currencies are used in the countries along {0}?",
            "What money would I need on a boat trip down the whole of {0}?",
            "In what do people pay in the lands that {0} flows through?",
        ),
    ),
    Pattern(
        "lake-languages", "2-hop", 2,
        "SELECT lake FROM lake GROUP BY 1 HAVING COUNT(*)>1",
        "SELECT DISTINCT language FROM lake JOIN language USING (country) WHERE lake='{0}'",
        (
            "Which official languages do the countries around {0} have?",
            "What languages are official in the states that share {0}?",
            "In the countries on the shores of {0}, which languages are official?",
        ),
    ),
    Pattern(
        "birth-currency", "2-hop", 2,
        "SELECT person FROM native WHERE country NOT IN ('country/united-states')",
        "SELECT currency FROM born JOIN currency USING (country) WHERE person='{0}'",
        (
            "What money do people use today in the country where {0} was born?",
            "Which currency is used in {0:'s} country of birth?",
            "In the land {0} was born in, with what does one pay nowadays?",
        ),
        take=4,
    ),
    Pattern(
        "birth-capital", "2-hop", 2,
        "SELECT person FROM native JOIN plain_capital USING (country) WHERE country<>'country/united-states'",
        "SELECT city FROM born JOIN capital USING (country) WHERE person='{0}'",
        (
            "What is the capital of the country {0} comes from by birth?",
            "{0} was born in a country with which capital?",
            "Which city is the capital of the present-day country where {0} was born?",
        ),
    ),
    Pattern(
        "leader-capital", "2-hop", 2,
        "SELECT DISTINCT person FROM led JOIN plain_capital USING (country)",
        "SELECT DISTINCT city FROM led JOIN capital USING (country) WHERE person='{0}'",
        (
            "What is the capital of the country that {0} led?",
            "{0} headed the government of a country; which city is its capital?",
            "Which capital city belongs to the state whose government {0} headed?",
        ),
    ),
    Pattern(
        "leader-rivers", "2-hop", 2,
        "SELECT DISTINCT person FROM led WHERE country IN (SELECT country FROM river GROUP BY 1 HAVING COUNT(*)>1)",
        "SELECT DISTINCT river FROM led JOIN river USING (country) WHERE person='{0}'",
        (
            "Which major rivers flow through the country that {0} led?",
            "{0} headed the government of a country; what big rivers run through it?",
            "Name the great rivers of the country whose government {0} headed.",
        ),
    ),
    Pattern(
        "currency-mates", "2-hop", 2,
        "SELECT country FROM currency WHERE currency IN shared_currency",
        "SELECT DISTINCT y.country FROM currency x JOIN currency y USING (currency) "
        "WHERE x.country='{0}' AND y.country<>'{0}'",
        (
            "Which other countries use the same currency as {0}?",
            "With whom does {0} share its currency?",
            "Where else could I spend the cash I have left over from {0}?",
        ),
    ),
    Pattern(
        "tributary-mouth", "2-hop", 2,
        "SELECT t.river FROM tributary t JOIN mouth m ON m.river=main WHERE main<>'river/nile'",
        "SELECT water FROM tributary t JOIN mouth m ON m.river=main WHERE t.river='{0}'",
        (
            "Into what does the river that {0} joins flow?",
            "{0} joins a larger river: where does that river end?",
            "Where is the mouth of the river that takes up {0}?",
        ),
    ),
    Pattern(
        "tributary-countries", "2-hop", 2,
        "SELECT t.river FROM tributary t JOIN river r ON r.river=main WHERE main<>'river/nile' GROUP BY 1 "
        "HAVING COUNT(*)>1",
        "SELECT country FROM tributary t JOIN river r ON r.river=main WHERE t.river='{0}'",
        (
            "Which countries lie on the river that {0} flows into?",
            "{0} is a tributary; through which countries does its main river run?",
            "The river that {0} ends in passes through which countries?",
        ),
    ),
)

THREE_HOP = (
    Pattern(
        "capital-neighbour-capitals", "3-hop", 3,
        "SELECT city FROM plain_capital JOIN settled ON id=country",
        "SELECT y.city FROM capital x JOIN neighbour ON a=x.country JOIN capital y ON y.country=b WHERE x.city='{0}'",
        (
            "What are the capitals of the countries bordering the one whose capital is {0}?",
            "Which capital cities belong to the neighbours of the state governed from {0}?",
            "Name the capitals of all countries next to the one ruled from {0}.",
        ),
        take=4, each=3,
    ),
    Pattern(
        "city-neighbour-currencies", "3-hop", 3,
        "SELECT city FROM located JOIN settled ON id=country",
        "SELECT DISTINCT currency FROM located l JOIN neighbour ON a=l.country JOIN currency c ON c.country=b "
        "WHERE city='{0}'",
        (
            "What currencies are used in the countries next to the one {0} is in?",
            "I live in {0}; what money do our country's neighbours use?",
            "Which money circulates in the states bordering the home country of the city of {0}?",
        ),
        take=4,
    ),
    Pattern(
        "city-neighbour-languages", "3-hop", 3,
        "SELECT city FROM located JOIN settled ON id=country",
        "SELECT DISTINCT language FROM located l JOIN neighbour ON a=l.country JOIN language x ON x.country=b "
        "WHERE city='{0}'",
        (
            "Which languages are official in the countries around the one where {0} lies?",
            "What are the official languages of the neighbours of the country {0} is in?",
            "{0} lies in a country whose neighbours have which official languages?",
        ),
        take=4,
    ),
    Pattern(
        "mountain-neighbour-capitals", "3-hop", 3,
        "SELECT mountain FROM mountain JOIN settled ON id=country GROUP BY mountain HAVING COUNT(*)=1 "
        "AND mountain NOT IN (SELECT mountain FROM mountain GROUP BY 1 HAVING COUNT(*)>1)",
        "SELECT city FROM mountain m JOIN neighbour ON a=m.country JOIN capital c ON c.country=b WHERE mountain='{0}'",
        (
            "What are the capitals of the countries that border the one with {0}?",
            "{0} stands in a country; name the capitals of that country's neighbours.",
            "Which cities are capitals of the states next to the home of {0}?",
        ),
        each=3,
    ),
    Pattern(
        "mountain-neighbour-currencies", "3-hop", 3,
        "SELECT mountain FROM mountain JOIN settled ON id=country GROUP BY mountain HAVING COUNT(*)=1 "
        "AND mountain NOT IN (SELECT mountain FROM mountain GROUP BY 1 HAVING COUNT(*)>1)",
        "SELECT DISTINCT currency FROM mountain m JOIN neighbour ON a=m.country JOIN currency c ON c.country=b "
        "WHERE mountain='{0}'",
        (
            "Which currencies do the neighbours of the country where {0} rises use?",
            "What does one pay with in the countries next to the one that has {0}?",
            "The country of {0} has neighbours: what money do they use?",
        ),
    ),
    Pattern(
        "tributary-capitals", "3-hop", 3,
        "SELECT t.river FROM tributary t JOIN river r ON r.river=main WHERE main<>'river/nile' GROUP BY 1 "
        "HAVING COUNT(*)>1",
        "SELECT city FROM tributary t JOIN river r ON r.river=main JOIN capital USING (country) WHERE t.river='{0}'",
        (
            "What are the capitals of the countries on the river that {0} flows into?",
            "{0} joins another river; name the capitals of all the countries that river crosses.",
            "Which capital cities belong to the countries along the main river fed by {0}?",
        ),
        take=4,
    ),
    Pattern(
        "tributary-currencies", "3-hop", 3,
        "SELECT t.river FROM tributary t JOIN river r ON r.river=main WHERE main<>'river/nile' GROUP BY 1 "
        "HAVING COUNT(*)>1",
        "SELECT DISTINCT currency FROM tributary t JOIN river r ON r.river=main JOIN currency USING (country) "
        "WHERE t.river='{0}'",
        (
            "Which currencies are used in the countries that the river joined by {0} runs through?",
            "What money do people use along the river into which {0} flows?",
            "{0} feeds a bigger river; with what does one pay in the countries on it?",
        ),
    ),
    Pattern(
        "birth-neighbour-capitals", "3-hop", 3,
        "SELECT person FROM native JOIN settled ON id=country WHERE id<>'country/united-states'",
        "SELECT city FROM born p JOIN neighbour ON a=p.country JOIN capital c ON c.country=b WHERE person='{0}'",
        (
            "What are the capitals of the countries next to the one {0} was born in?",
            "Name the capital cities of the neighbours of {0:'s} country of birth.",
            "{0} was born in a present-day country whose neighbours have which capitals?",
        ),
        take=4,
    ),
    Pattern(
        "birth-neighbour-currencies", "3-hop", 3,
        "SELECT person FROM native JOIN settled ON id=country WHERE id<>'country/united-states'",
        "SELECT DISTINCT currency FROM born p JOIN neighbour ON a=p.country JOIN currency c ON c.country=b "
        "WHERE person='{0}'",
        (
            "Which currencies are used in the countries bordering {0:'s} birth country?",
            "What money is used by the neighbours of the country where {0} was born?",
            "With what do people pay around the country in which {0} came into the world?",
        ),
        take=4,
    ),
    Pattern(
        "leader-language-states", "3-hop", 3,
        "SELECT person FROM (SELECT DISTINCT person, country FROM led) JOIN language USING (country) GROUP BY 1 "
        "HAVING COUNT(*)=1 AND MIN(language) IN (SELECT language FROM language GROUP BY 1 HAVING COUNT(*) "
        "BETWEEN 3 AND 30)",
        "SELECT DISTINCT y.country FROM led JOIN language x USING (country) JOIN language y USING (language) "
        "WHERE person='{0}' AND y.country<>led.country",
        (
            "Where else is the official language of the country {0} led official?",
            "{0} headed a government; which other countries have the same official language as that country?",
            "Which other states share their official language with the country that had {0} as head of government?",
        ),
        take=4, each=3,
    ),
    Pattern(
        "currency-mate-capitals", "3-hop", 3,
        "SELECT country FROM currency WHERE currency IN shared_currency",
        "SELECT DISTINCT city FROM currency x JOIN currency y USING (currency) JOIN capital c ON c.country=y.country "
        "WHERE x.country='{0}' AND y.country<>'{0}'",
        (
            "What are the capitals of the other countries that share a currency with {0}?",
            "In which capitals, apart from {0:'s} own, can one pay with the money of {0}?",
            "Name the capitals of every other state that uses the same money as {0}.",
        ),
        take=4,
    ),
    Pattern(
        "capital-currency-mates", "3-hop", 3,
        "SELECT city FROM plain_capital JOIN currency USING (country) WHERE currency IN shared_currency",
        "SELECT DISTINCT z.country FROM capital x JOIN currency y USING (country) JOIN currency z USING (currency) "
        "WHERE city='{0}' AND z.country<>x.country",
        (
            "Which other countries use the same money as the one whose capital is {0}?",
            "Where else is the currency of the country governed from {0} used?",
            "The cash I drew in the capital, {0}, is good in which other countries?",
        ),
    ),
    Pattern(
        "capital-language-mates", "3-hop", 3,
        "SELECT city FROM plain_capital JOIN language USING (country) GROUP BY city HAVING COUNT(*)=1 "
        "AND MIN(language) IN (SELECT language FROM language GROUP BY 1 HAVING COUNT(*) BETWEEN 3 AND 30)",
        "SELECT z.country FROM capital x JOIN language y USING (country) JOIN language z USING (language) "
        "WHERE city='{0}' AND z.country<>x.country",
        (
            "Which other countries have the same official language as the one whose capital is {0}?",
            "Where else is the official language of the country governed from {0} official?",
            "{0} is a capital; in which other states does its country's language have official status?",
        ),
    ),
    Pattern(
        "lake-neighbour-capitals", "3-hop", 3,
        "SELECT lake FROM lake JOIN settled ON id=country GROUP BY lake HAVING COUNT(*)=1 "
        "AND lake NOT IN (SELECT lake FROM lake GROUP BY 1 HAVING COUNT(*)>1)",
        "SELECT city FROM lake l JOIN neighbour ON a=l.country JOIN capital c ON c.country=b WHERE lake='{0}'",
        (
            "What are the capitals of the neighbours of the country {0} lies in?",
            "{0} belongs to one country; which capital cities do its neighbours have?",
            "Name the capitals of the countries that border the one with {0}.",
        ),
        take=2, each=3,
    ),
)

MULTI = (
    Pattern(
        "both-neighbours", "multi-constraint", 1,
        "SELECT x.a, y.a FROM neighbour x JOIN neighbour y ON x.b=y.b AND x.a<y.a "
        "WHERE x.a IN settled AND y.a IN settled GROUP BY 1, 2",
        "SELECT b FROM neighbour WHERE a='{0}' INTERSECT SELECT b FROM neighbour WHERE a='{1}'",
        (
            "Which countries border both {0} and {1}?",
            "{0} and {1} have which neighbours in common?",
            "What country touches {0} as well as {1}?",
            "Name every country that shares a border with {1} and also with {0}.",
        ),
        take=4, each=3,
    ),
    Pattern(
        "neighbour-language", "multi-constraint", 1,
        "SELECT DISTINCT a, language FROM neighbour JOIN language ON country=b WHERE a IN settled "
        "AND language NOT IN (SELECT language FROM language GROUP BY 1 HAVING COUNT(*)<3)",
        "SELECT b FROM neighbour JOIN language ON country=b WHERE a='{0}' AND language='{1}'",
        (
            "Which of {0:'s} neighbours have {1} as an official language?",
            "In which countries next to {0} is {1} official?",
            "Where across the border from {0} does {1} have official status?",
        ),
        take=4,
    ),
    Pattern(
        "neighbour-not-language", "multi-constraint", 1,
        "SELECT DISTINCT a, language FROM neighbour JOIN language ON country=b WHERE a IN settled "
        "GROUP BY 1, 2 HAVING COUNT(*)>1",
        "SELECT b FROM neighbour WHERE a='{0}' AND b NOT IN (SELECT country FROM language WHERE language='{1}')",
        (
            "Which neighbours of {0} do not have {1} as an official language?",
            "Bordering {0}, in which countries is {1} not official?",
            "Leaving out the states where {1} is official, which countries touch {0}?",
        ),
    ),
    Pattern(
        "neighbour-currency", "multi-constraint", 1,
        "SELECT DISTINCT a, currency FROM neighbour JOIN currency ON country=b WHERE a IN settled "
        "GROUP BY 1, 2 HAVING COUNT(*)>1",
        "SELECT b FROM neighbour JOIN currency ON country=b WHERE a='{0}' AND currency='{1}'",
        (
            "Which neighbours of {0} use {1}?",
            "In which countries bordering {0} can one pay with {1}?",
            "Where is {1} the money just across the border from {0}?",
        ),
    ),
    Pattern(
        "two-country-rivers", "multi-constraint", 1,
        "SELECT x.country, y.country FROM river x JOIN river y ON x.river=y.river AND x.country<y.country "
        "GROUP BY 1, 2 HAVING COUNT(*) BETWEEN 1 AND 4",
        "SELECT river FROM river WHERE country='{0}' INTERSECT SELECT river FROM river WHERE country='{1}'",
        (
            "Which major rivers flow through both {0} and {1}?",
            "{0} and {1} share which big rivers?",
            "What great river runs through {1} and through {0}?",
        ),
        take=4,
    ),
    Pattern(
        "continent-language", "multi-constraint", 1,
        "SELECT continent, language FROM in_continent JOIN language USING (country) GROUP BY 1, 2 "
        "HAVING COUNT(*) BETWEEN 2 AND 25 AND SUM(country IN odd_continent)=0",
        "SELECT country FROM in_continent JOIN language USING (country) WHERE continent='{0}' AND language='{1}'",
        (
            "Which countries in {0} have {1} as an official language?",
            "Where in {0} is {1} official?",
            "{1} is an official language of which countries in {0}?",
        ),
        take=4,
    ),
    Pattern(
        "region-currency", "multi-constraint", 1,
        "SELECT region, currency FROM in_region JOIN currency USING (country) GROUP BY 1, 2 "
        "HAVING COUNT(*) BETWEEN 2 AND 25",
        "SELECT country FROM in_region JOIN currency USING (country) WHERE region='{0}' AND currency='{1}'",
        (
            "Which countries in {0} use {1}?",
            "Where in {0} can one pay with {1}?",
            "{1} is the money of which countries in {0}?",
        ),
    ),
    Pattern(
        "river-language", "multi-constraint", 1,
        "SELECT river, language FROM river JOIN language USING (country) GROUP BY 1, 2 HAVING COUNT(*)>1",
        "SELECT country FROM river JOIN language USING (country) WHERE river='{0}' AND language='{1}'",
        (
            "Which countries on {0} have {1} as an official language?",
            "Where along {0} is {1} official?",
            "{0} flows through which of the countries where {1} is official?",
        ),
    ),
    Pattern(
        "sea-country-rivers", "multi-constraint", 1,
        "SELECT water, country FROM mouth JOIN river USING (river) JOIN node ON id=water WHERE type='Sea' "
        "GROUP BY 1, 2 HAVING COUNT(*) BETWEEN 1 AND 6",
        "SELECT river FROM mouth JOIN river USING (river) WHERE water='{0}' AND country='{1}'",
        (
            "Which major rivers of {1} flow into {0}?",
            "Passing through {1}, what big rivers empty into {0}?",
            "{0} is the end of which great rivers that cross {1}?",
        ),
    ),
    Pattern(
        "two-languages", "multi-constraint", 1,
        "SELECT x.language, y.language FROM language x JOIN language y ON x.country=y.country "
        "AND x.language<y.language GROUP BY 1, 2 HAVING COUNT(*) BETWEEN 2 AND 12",
        "SELECT country FROM language WHERE language='{0}' INTERSECT SELECT country FROM language WHERE language='{1}'",
        (
            "In which countries are both {0} and {1} official?",
            "Which states have {1} alongside {0} as an official language?",
            "Where do {0} and {1} share official status?",
        ),
    ),
    Pattern(
        "prize-birth-country", "multi-constraint", 1,
        "SELECT award, country FROM won JOIN born USING (person) WHERE year<2021 GROUP BY 1, 2 "
        "HAVING COUNT(*) BETWEEN 2 AND 12",
        "SELECT DISTINCT person FROM won JOIN born USING (person) WHERE award='{0}' AND country='{1}' "
        "AND year BETWEEN 1950 AND 2020",
        (
            "Which people born in {1:now} won {0} between 1950 and 2020?",
            "Who, born in what is now {1}, received {0} from 1950 to 2020?",
            "List the natives of {1:now} who took {0} in the years 1950 to 2020.",
        ),
        take=4,
    ),
    Pattern(
        "prize-year-birth", "multi-constraint", 1,
        "SELECT award, year, country FROM won JOIN born USING (person) GROUP BY 1, 2, 3 HAVING COUNT(*)=1 "
        "AND 2<=(SELECT COUNT(*) FROM won v WHERE v.award=won.award AND v.year=won.year)",
        "SELECT person FROM won JOIN born USING (person) WHERE award='{0}' AND year={1} AND country='{2}'",
        (
            "Which winner of {0} in {1} was born in what is now {2}?",
            "Among those awarded {0} in {1}, who was born in {2:now}?",
            "Who came from {2} by birth and shared {0} of {1}?",
        ),
        take=4,
    ),
    Pattern(
        "big-neighbours", "multi-constraint", 1,
        "SELECT id, n FROM settled JOIN (SELECT 10 n UNION SELECT 20 UNION SELECT 50 UNION SELECT 100)",
        "SELECT b FROM neighbour JOIN node ON id=b WHERE a='{0}' AND population>{1}000000",
        (
            "Which neighbours of {0} have more than {1} million people?",
            "Bordering {0}, which countries are home to over {1} million inhabitants?",
            "Name the countries next to {0} with a population above {1} million.",
        ),
        unless="SELECT 1 FROM neighbour JOIN node ON id=b WHERE a='{0}' AND (population IS NULL "
        "OR population BETWEEN {1}000000*0.8 AND {1}000000*1.1)",
        take=4,
    ),
    Pattern(
        "region-area", "multi-constraint", 1,
        "SELECT DISTINCT region, n FROM in_region JOIN (SELECT 200000 n UNION SELECT 500000 UNION SELECT 1000000)",
        "SELECT country FROM in_region JOIN node ON id=country WHERE region='{0}' AND area_km2>{1}",
        (
            "Which countries in {0} cover more than {1:,} square kilometres?",
            "In {0}, what countries have an area of over {1:,} km²?",
            "List the countries of {0} that are larger than {1:,} square kilometres.",
        ),
        unless="SELECT 1 FROM in_region JOIN node ON id=country WHERE region='{0}' AND (area_km2 IS NULL "
        "OR ABS(area_km2-{1})<0.08*{1} OR country='country/morocco')",
    ),
    Pattern(
        "region-islands", "multi-constraint", 1,
        "SELECT DISTINCT region FROM in_region",
        "SELECT country FROM in_region WHERE region='{0}' AND country NOT IN (SELECT a FROM neighbour)",
        (
            "Which countries in {0} have no land border with any other country?",
            "In {0}, what states do not touch another country by land?",
            "List the countries of {0} without a neighbour on land.",
        ),
        unless="SELECT 1 FROM in_region WHERE region='{0}' AND country IN odd_border "
        "UNION ALL SELECT 1 FROM in_region WHERE region='{0}' AND country NOT IN (SELECT a FROM neighbour) "
        "GROUP BY region HAVING COUNT(*)=(SELECT COUNT(*) FROM in_region WHERE region='{0}')",
    ),
    Pattern(
        "prize-born-after", "multi-constraint", 1,
        "SELECT award, y FROM won JOIN (SELECT y FROM year WHERE y%5=0) ON 1 JOIN node ON id=person "
        "WHERE node.year>y AND won.year<2021 GROUP BY 1, 2 HAVING COUNT(*) BETWEEN 2 AND 12",
        "SELECT DISTINCT person FROM won JOIN node ON id=person WHERE award='{0}' AND won.year<2021 AND node.year>{1}",
        (
            "Which people born after {1} won {0} before 2021?",
            "Who received {0} up to 2020 and was born later than {1}?",
            "Name the winners of {0} until 2020 whose year of birth is after {1}.",
        ),
        unless="SELECT 1 FROM won JOIN node ON id=person WHERE award='{0}' AND won.year>1970 AND node.year IS NULL",
    ),
)

COUNT = (
    Pattern(
        "count-neighbours", "count", 1,
        "SELECT id FROM settled",
        "SELECT COUNT(*) FROM neighbour WHERE a='{0}'",
        (
            "How many countries does {0} border?",
            "How many neighbours does {0} have on land?",
            "With how many countries does {0} share a land border?",
            "What is the number of countries that touch {0}?",
        ),
        take=4, each=3, values=True,
    ),
    Pattern(
        "count-river-countries", "count", 1,
        "SELECT river FROM river GROUP BY 1 HAVING COUNT(*)>1",
        "SELECT COUNT(*) FROM river WHERE river='{0}'",
        (
            "How many countries does {0} flow through?",
            "Through how many countries does {0} run?",
            "{0} crosses how many countries?",
        ),
        values=True,
    ),
    Pattern(
        "count-language-states", "count", 1,
        "SELECT language FROM language GROUP BY 1 HAVING COUNT(*) BETWEEN 3 AND 20",
        "SELECT COUNT(*) FROM language WHERE language='{0}'",
        (
            "In how many UN member countries is {0} an official language?",
            "How many UN member states have {0} among their official languages?",
            "What number of countries in the United Nations recognise {0} as official?",
        ),
        take=4, values=True,
    ),
    Pattern(
        "count-currency-users", "count", 1,
        "SELECT currency FROM shared_currency",
        "SELECT COUNT(*) FROM currency WHERE currency='{0}'",
        (
            "How many UN member countries pay with {0}?",
            "By how many UN member states is {0} used?",
            "{0} is the money of how many members of the United Nations?",
        ),
        values=True,
    ),
    Pattern(
        "count-continent", "count", 1,
        "SELECT continent FROM in_continent WHERE continent NOT IN ('continent/europe', 'continent/asia') GROUP BY 1",
        "SELECT COUNT(*) FROM in_continent WHERE continent='{0}'",
        (
            "How many UN member countries are there in {0}?",
            "{0} is made up of how many members of the United Nations?",
            "What is the number of UN member states in {0}?",
        ),
        values=True,
    ),
    Pattern(
        "count-region", "count", 1,
        "SELECT region FROM in_region GROUP BY 1 HAVING COUNT(*)>3",
        "SELECT COUNT(*) FROM in_region WHERE region='{0}'",
        (
            "How many UN member countries does the UN region of {0} have?",
            "How many member states of the United Nations lie in {0}, as the UN draws it?",
            "In the UN's list of regions, {0:-} holds how many UN members?",
        ),
        values=True,
    ),
    Pattern(
        "count-neighbour-currency", "count", 1,
        "SELECT a, currency FROM neighbour JOIN currency ON country=b WHERE a IN settled GROUP BY 1, 2 "
        "HAVING COUNT(*)>1",
        "SELECT COUNT(*) FROM neighbour JOIN currency ON country=b WHERE a='{0}' AND currency='{1}'",
        (
            "How many of {0:'s} neighbours use {1}?",
            "In how many countries bordering {0} is {1} the money?",
            "Of the countries around {0}, how many pay with {1}?",
        ),
        values=True,
    ),
    Pattern(
        "count-neighbour-language", "count", 1,
        "SELECT a, language FROM neighbour JOIN language ON country=b WHERE a IN settled GROUP BY 1, 2 "
        "HAVING COUNT(*)>1",
        "SELECT COUNT(*) FROM neighbour JOIN language ON country=b WHERE a='{0}' AND language='{1}'",
        (
            "How many countries next to {0} have {1} as an official language?",
            "In how many of the neighbours of {0} is {1} official?",
            "Of the states bordering {0}, how many officially use {1}?",
        ),
        values=True,
    ),
    Pattern(
        "count-neighbour-currencies", "count", 2,
        "SELECT id FROM settled JOIN neighbour ON a=id GROUP BY 1 HAVING COUNT(*)>2",
        "SELECT COUNT(DISTINCT currency) FROM neighbour JOIN currency ON country=b WHERE a='{0}'",
        (
            "How many different currencies are used in the countries bordering {0}?",
            "{0:'s} neighbours use how many currencies between them?",
            "How many kinds of money are there in the lands around {0}?",
        ),
        take=4, values=True,
    ),
    Pattern(
        "count-year-winners", "count", 1,
        "SELECT award, year FROM won WHERE award<>'award/nobel-prize-in-literature' GROUP BY 1, 2 HAVING COUNT(*)>1",
        "SELECT COUNT(*) FROM won WHERE award='{0}' AND year={1}",
        (
            "How many people won {0} in {1}?",
            "Between how many people was {0} of {1} shared?",
            "How many {0:field} laureates did the Nobel committee name in {1}?",
        ),
        take=4, values=True,
    ),
    Pattern(
        "count-birth-winners", "count", 1,
        "SELECT award, country FROM won JOIN born USING (person) WHERE year<2021 GROUP BY 1, 2 HAVING COUNT(*)>2",
        "SELECT COUNT(DISTINCT person) FROM won JOIN born USING (person) WHERE award='{0}' AND country='{1}' "
        "AND year BETWEEN 1950 AND 2020",
        (
            "How many people born in what is now {1} won {0} between 1950 and 2020?",
            "From 1950 to 2020, how many natives of {1:now} received {0}?",
            "How many winners of {0} in the years 1950 to 2020 were born in {1:now}?",
        ),
        unless="SELECT 1 FROM won WHERE award='{0}' AND person NOT IN (SELECT person FROM native)",
        take=4, values=True,
    ),
    Pattern(
        "count-leaders", "count", 1,
        "SELECT DISTINCT country, x.y, z.y FROM led, year x JOIN year z ON z.y=x.y+10 "
        "WHERE x.y IN (1990, 1995, 2000, 2005, 2010)",
        "SELECT COUNT(DISTINCT person) FROM led WHERE country='{0}' AND since BETWEEN {1} AND {2}",
        (
            "How many different people became {0:office} in the years {1} to {2}?",
            "From {1} to {2}, how many people took office as head of the government of {0}?",
            "How many persons came to head {0:'s} government between {1} and {2}, both years included?",
        ),
        take=4, values=True,
    ),
    Pattern(
        "count-big-countries", "count", 1,
        "SELECT DISTINCT continent, n FROM in_continent JOIN (SELECT 10 n UNION SELECT 20 UNION SELECT 30 UNION SELECT "
        "40 UNION SELECT 50 UNION SELECT 60 UNION SELECT 80 UNION SELECT 100) WHERE continent NOT IN "
        "('continent/europe', 'continent/asia')",
        "SELECT COUNT(*) FROM in_continent JOIN node ON id=country WHERE continent='{0}' AND population>{1}000000",
        (
            "How many countries in {0} have more than {1} million inhabitants?",
            "In {0}, how many countries are home to over {1} million people?",
            "What is the number of countries of {0} with a population above {1} million?",
        ),
        unless="SELECT 1 FROM in_continent JOIN node ON id=country WHERE continent='{0}' AND (population IS NULL "
        "OR population BETWEEN {1}000000*0.8 AND {1}000000*1.1)",
        take=4, values=True,
    ),
    Pattern(
        "count-lake-countries", "count", 1,
        "SELECT lake FROM lake GROUP BY 1 HAVING COUNT(*)>1",
        "SELECT COUNT(*) FROM lake WHERE lake='{0}'",
        (
            "How many countries share {0}?",
            "{0} lies in how many countries?",
            "The shores of {0} belong to how many countries?",
        ),
        values=True,
    ),
    Pattern(
        "count-capital-neighbours", "count", 2,
        "SELECT city FROM plain_capital JOIN settled ON id=country",
        "SELECT COUNT(*) FROM capital JOIN neighbour ON a=country WHERE city='{0}'",
        (
            "How many neighbours does the country whose capital is {0} have?",
            "The state governed from {0} borders how many countries?",
            "How many countries touch the one with {0} as its capital?",
        ),
        values=True,
    ),
)

SUPERLATIVE = (
    Pattern(
        "neighbour-most-people", "superlative", 1,
        "SELECT id FROM settled",
        "SELECT b FROM neighbour JOIN node ON id=b WHERE a='{0}'",
        (
            "Which of {0:'s} neighbours has the most people?",
            "What is the most populous country bordering {0}?",
            "Among the countries around {0}, where do the most people live?",
        ),
        rank="population DESC", margin=0.1, take=4, each=3,
    ),
    Pattern(
        "neighbour-fewest-people", "superlative", 1,
        "SELECT id FROM settled",
        "SELECT b FROM neighbour JOIN node ON id=b WHERE a='{0}'",
        (
            "Which neighbour of {0} has the smallest population?",
            "Of the countries that touch {0}, which one has the fewest inhabitants?",
            "What is the least populous country next to {0}?",
        ),
        rank="population ASC", margin=0.1,
    ),
    Pattern(
        "neighbour-largest", "superlative", 1,
        "SELECT id FROM settled",
        "SELECT b FROM neighbour JOIN node ON id=b WHERE a='{0}'",
        (
            "What is the largest country by area that borders {0}?",
            "Which of the countries next to {0} covers the most land?",
            "By area, which neighbour of {0} is the biggest?",
        ),
        rank="area_km2 DESC",
    ),
    Pattern(
        "neighbour-smallest", "superlative", 1,
        "SELECT id FROM settled",
        "SELECT b FROM neighbour JOIN node ON id=b WHERE a='{0}'",
        (
            "What is the smallest country by area that touches {0}?",
            "Which country bordering {0} has the least land?",
            "By area, which of {0:'s} neighbours comes last?",
        ),
        rank="area_km2 ASC",
    ),
    Pattern(
        "region-largest", "superlative", 1,
        "SELECT DISTINCT region FROM in_region",
        "SELECT country FROM in_region JOIN node ON id=country WHERE region='{0}'",
        (
            "What is the biggest country by area in {0}?",
            "Which country of {0} covers the most land?",
            "In {0}, which country has the largest territory?",
        ),
        rank="area_km2 DESC", take=4,
    ),
    Pattern(
        "region-fewest-people", "superlative", 1,
        "SELECT DISTINCT region FROM in_region",
        "SELECT country FROM in_region JOIN node ON id=country WHERE region='{0}'",
        (
            "Which UN member country in {0} has the fewest inhabitants?",
            "What is the least populous UN member state of {0}?",
            "In {0}, which member of the United Nations has the smallest population?",
        ),
        rank="population ASC", margin=0.1,
    ),
    Pattern(
        "continent-most-people", "superlative", 1,
        "SELECT DISTINCT continent FROM in_continent WHERE continent NOT IN ('continent/asia', 'continent/europe')",
        "SELECT country FROM in_continent JOIN node ON id=country WHERE continent='{0}'",
        (
            "Which country in {0} has the largest population?",
            "In {0}, which country is home to the most people?",
            "What is the most populous country of {0}?",
        ),
        rank="population DESC", margin=0.1, take=2,
    ),
    Pattern(
        "region-largest-capital", "superlative", 2,
        "SELECT DISTINCT region FROM in_region",
        "SELECT city FROM in_region JOIN node ON id=country JOIN capital USING (country) WHERE region='{0}'",
        (
            "What is the capital of the largest country by area in {0}?",
            "Take the country with the most land in {0}: what is its capital?",
            "Which city is the capital of the country that is biggest by area in {0}?",
        ),
        rank="area_km2 DESC",
    ),
    Pattern(
        "region-populous-currency", "superlative", 2,
        "SELECT DISTINCT region FROM in_region",
        "SELECT currency FROM in_region JOIN node ON id=country JOIN currency USING (country) WHERE region='{0}'",
        (
            "Which currency does the most populous country in {0} use?",
            "What money is used in the country of {0} where the most people live?",
            "With what does one pay in the country that has the largest population in {0}?",
        ),
        rank="population DESC", margin=0.1,
    ),
    Pattern(
        "language-largest-country", "superlative", 1,
        "SELECT language FROM language GROUP BY 1 HAVING COUNT(*)>2",
        "SELECT country FROM language JOIN node ON id=country WHERE language='{0}'",
        (
            "What is the largest country by area where {0} is an official language?",
            "By land area, which is the biggest of the countries with {0} as an official language?",
            "Which of the states where {0} is official has the most territory?",
        ),
        rank="area_km2 DESC",
    ),
    Pattern(
        "language-populous-country", "superlative", 1,
        "SELECT language FROM language GROUP BY 1 HAVING COUNT(*)>2",
        "SELECT country FROM language JOIN node ON id=country WHERE language='{0}'",
        (
            "Which country with {0} as an official language has the most inhabitants?",
            "Of all countries where {0} is official, which has the largest population?",
            "What is the most populous country that has {0} as an official language?",
        ),
        rank="population DESC", margin=0.1,
    ),
    Pattern(
        "currency-populous-country", "superlative", 1,
        "SELECT currency FROM currency GROUP BY 1 HAVING COUNT(*)>2",
        "SELECT country FROM currency JOIN node ON id=country WHERE currency='{0}'",
        (
            "Which of the countries that use {0} has the largest population?",
            "What is the most populous country where people pay with {0}?",
            "Among the users of {0}, which country has the most people?",
        ),
        rank="population DESC", margin=0.1,
    ),
    Pattern(
        "river-populous-country", "superlative", 1,
        "SELECT river FROM river GROUP BY 1 HAVING COUNT(*)>1",
        "SELECT country FROM river JOIN node ON id=country WHERE river='{0}'",
        (
            "Which of the countries along {0} has the most people?",
            "{0} flows through several countries; which one is the most populous?",
            "What is the most populous country that {0} runs through?",
        ),
        rank="population DESC", margin=0.1,
    ),
    Pattern(
        "river-smallest-country", "superlative", 1,
        "SELECT river FROM river GROUP BY 1 HAVING COUNT(*)>2",
        "SELECT country FROM river JOIN node ON id=country WHERE river='{0}'",
        (
            "What is the smallest country by area that {0} flows through?",
            "Which country on {0} has the least land?",
            "By area, which is the smallest of the countries crossed by {0}?",
        ),
        rank="area_km2 ASC",
    ),
    Pattern(
        "highest-mountain", "superlative", 1,
        "SELECT country FROM mountain GROUP BY 1 HAVING COUNT(*)>1",
        "SELECT mountain FROM mountain JOIN node ON id=mountain WHERE country='{0}'",
        (
            "What is the highest mountain in {0}?",
            "Which peak of {0} rises highest above the sea?",
            "{0:'s} tallest mountain is called what?",
        ),
        rank="elevation_m DESC", margin=0.0,
    ),
    Pattern(
        "longest-river", "superlative", 1,
        "SELECT country FROM river GROUP BY 1 HAVING COUNT(*)>1",
        "SELECT river FROM river JOIN node ON id=river WHERE country='{0}'",
        (
            "Of the rivers that run through {0}, which one is the longest from source to end?",
            "What is the longest river that flows through {0}, counting its whole length?",
            "Taking full lengths, which river of {0} is the longest?",
        ),
        rank="length_km DESC",
    ),
    Pattern(
        "longest-into-sea", "superlative", 1,
        "SELECT water FROM mouth JOIN node ON id=water WHERE type='Sea' GROUP BY 1 HAVING COUNT(*)>1",
        "SELECT river FROM mouth JOIN node ON id=river WHERE water='{0}'",
        (
            "Which is the longest river that empties into {0}?",
            "What is the longest of the rivers that end in {0}?",
            "Of all rivers flowing into {0}, which one is the longest?",
        ),
        rank="length_km DESC",
    ),
    Pattern(
        "largest-lake", "superlative", 1,
        "SELECT country FROM lake GROUP BY 1 HAVING COUNT(*)>1",
        "SELECT lake FROM lake JOIN node ON id=lake WHERE country='{0}'",
        (
            "Which lake is the largest that {0} has a share of?",
            "What is the biggest lake by area lying wholly or partly in {0}?",
            "By its total surface, which of the lakes in {0} comes first?",
        ),
        rank="area_km2 DESC",
    ),
    Pattern(
        "deepest-lake", "superlative", 1,
        "SELECT country FROM lake GROUP BY 1 HAVING COUNT(*)>1",
        "SELECT lake FROM lake JOIN node ON id=lake WHERE country='{0}'",
        (
            "Which is the deepest lake that lies at least partly in {0}?",
            "Among the lakes of {0}, which one goes down deepest?",
            "What lake of {0} has the greatest depth?",
        ),
        rank="depth_m DESC", take=2,
    ),
    Pattern(
        "most-neighbours", "superlative", 1,
        "SELECT DISTINCT region FROM in_region",
        "SELECT a FROM neighbour JOIN in_region ON country=a WHERE region='{0}' GROUP BY a",
        (
            "Which country in {0} has the most neighbours?",
            "In {0}, which country shares a border with the largest number of others?",
            "What country of {0} touches more countries than any other there?",
        ),
        rank="COUNT(*) DESC", margin=0.0,
        unless="SELECT 1 FROM in_region WHERE region='{0}' AND country IN odd_border",
    ),
    Pattern(
        "youngest-winner", "superlative", 1,
        "SELECT DISTINCT award, x.y, z.y FROM won, year x JOIN year z ON z.y=x.y+9 WHERE x.y%10=0 "
        "AND x.y BETWEEN 1951 AND 2010",
        "SELECT person FROM won JOIN node ON id=person WHERE award='{0}' AND won.year BETWEEN {1} AND {2}",
        (
            "Of those who won {0} from {1} to {2}, who was born last?",
            "Who has the latest year of birth among the winners of {0} between {1} and {2}?",
            "Which {0:field} laureate of the years {1} to {2} was born most recently?",
        ),
        rank="node.year DESC", margin=0.0,
    ),
)

TEMPORAL = (
    Pattern(
        "leader-at", "temporal", 1,
        "SELECT country, y FROM reign",
        "SELECT person FROM led WHERE country='{0}' AND {1} BETWEEN since AND until",
        (
            "Who was {0:office} in {1}?",
            "In {1}, who headed the government of {0}?",
            "Who led {0:'s} government in {1}?",
            "{0} had which head of government in {1}?",
        ),
        take=5,
    ),
    Pattern(
        "capital-leader-at", "temporal", 2,
        "SELECT city, y FROM reign JOIN plain_capital USING (country)",
        "SELECT person FROM capital JOIN led USING (country) WHERE city='{0}' AND {1} BETWEEN since AND until",
        (
            "Who headed the government of the country whose capital is {0} in {1}?",
            "In {1}, who was head of government of the country with {0} as its capital?",
            "{0} is the capital of a country; who headed its government in {1}?",
        ),
    ),
    Pattern(
        "leader-since", "temporal", 1,
        "SELECT person, country FROM led WHERE since>=1985 GROUP BY 1, 2 HAVING COUNT(*)=1",
        "SELECT since FROM led WHERE person='{0}' AND country='{1}'",
        (
            "In which year did {0} become {1:office}?",
            "When did {0} take over the government of {1}?",
            "What year saw {0} take office as {1:office}?",
        ),
        values=True,
    ),
    Pattern(
        "leader-until", "temporal", 1,
        "SELECT person, country FROM led GROUP BY 1, 2 HAVING COUNT(*)=1 AND MAX(until)<2024",
        "SELECT until FROM led WHERE person='{0}' AND country='{1}'",
        (
            "In which year did {0} leave office as {1:office}?",
            "When did {0:'s} time at the head of the government of {1} end?",
            "Until what year was {0} {1:office}?",
        ),
        values=True,
    ),
    Pattern(
        "leader-after", "temporal", 2,
        "SELECT x.person, x.country FROM led x JOIN led y ON y.country=x.country AND y.since=x.until "
        "AND y.person<>x.person GROUP BY 1, 2 HAVING COUNT(*)=1 AND MAX(y.until)>MAX(x.until) "
        "AND 1=(SELECT COUNT(*) FROM led z WHERE z.person=x.person)",
        "SELECT y.person FROM led x JOIN led y ON y.country=x.country AND y.since=x.until AND y.person<>x.person "
        "WHERE x.person='{0}' AND x.country='{1}'",
        (
            "Who followed {0} as {1:office}?",
            "Which politician took over the government of {1} right after {0}?",
            "{0} was succeeded by whom as {1:office}?",
        ),
        unless="SELECT 1 FROM led x JOIN led y ON y.country=x.country AND y.person<>x.person AND y.until=x.until "
        "WHERE x.person='{0}' AND x.country='{1}'",
        take=4,
    ),
    Pattern(
        "leader-before", "temporal", 2,
        "SELECT x.person, x.country FROM led x JOIN led y ON y.country=x.country AND y.until=x.since "
        "AND y.person<>x.person GROUP BY 1, 2 HAVING COUNT(*)=1 AND MIN(y.since)<MIN(x.since) "
        "AND 1=(SELECT COUNT(*) FROM led z WHERE z.person=x.person)",
        "SELECT y.person FROM led x JOIN led y ON y.country=x.country AND y.until=x.since AND y.person<>x.person "
        "WHERE x.person='{0}' AND x.country='{1}'",
        (
            "Who was {1:office} immediately before {0}?",
            "From whom did {0} take over the government of {1}?",
            "Which head of government of {1} came just before {0}?",
        ),
        unless="SELECT 1 FROM led x JOIN led y ON y.country=x.country AND y.person<>x.person AND y.since=x.since "
        "WHERE x.person='{0}' AND x.country='{1}'",
        take=4,
    ),
    Pattern(
        "leaders-from-to", "temporal", 1,
        "SELECT DISTINCT country, x.y, z.y FROM led, year x JOIN year z ON z.y=x.y+9 "
        "WHERE x.y IN (1991, 2001, 2011)",
        "SELECT DISTINCT person FROM led WHERE country='{0}' AND since BETWEEN {1} AND {2}",
        (
            "Who became {0:office} between {1} and {2}?",
            "Which people took office as head of the government of {0} in the years {1} to {2}?",
            "Name everyone who came to head {0:'s} government from {1} through {2}.",
        ),
    ),
    Pattern(
        "first-leader-after", "temporal", 1,
        "SELECT DISTINCT country, y FROM led, year WHERE y IN (1995, 2000, 2005, 2010)",
        "SELECT person FROM led WHERE country='{0}' AND since>{1}",
        (
            "Who was the first person to become {0:office} after {1}?",
            "After {1}, who was the first to take over the government of {0}?",
            "Who is the earliest head of {0:'s} government to have taken office later than {1}?",
        ),
        rank="since ASC", margin=0.0,
    ),
    Pattern(
        "last-leader-before", "temporal", 1,
        "SELECT DISTINCT country, y FROM led, year WHERE y IN (2000, 2005, 2010, 2015)",
        "SELECT person FROM led WHERE country='{0}' AND since<{1}",
        (
            "Who was the last person to become {0:office} before {1}?",
            "Before {1}, who was the latest to take office at the head of {0:'s} government?",
            "Which head of the government of {0} took office last before {1}?",
        ),
        rank="since DESC", margin=0.0,
    ),
    Pattern(
        "winners-of-year", "temporal", 1,
        "SELECT DISTINCT award, year FROM won",
        "SELECT person FROM won WHERE award='{0}' AND year={1}",
        (
            "Who won {0} in {1}?",
            "To whom was {0} awarded in {1}?",
            "Who were or was the {1} Nobel laureate in {0:field}?",
            "In {1}, who took home the Nobel for {0:field}?",
        ),
        take=5,
    ),
    Pattern(
        "year-of-prize", "temporal", 1,
        "SELECT person, award FROM won GROUP BY person HAVING COUNT(*)=1",
        "SELECT year FROM won WHERE person='{0}' AND award='{1}'",
        (
            "In which year did {0} win {1}?",
            "When was {0} awarded {1}?",
            "What was the year of {0:'s} Nobel Prize?",
        ),
        values=True, take=4,
    ),
    Pattern(
        "shared-with", "temporal", 2,
        "SELECT x.person FROM won x JOIN won y ON y.award=x.award AND y.year=x.year AND y.person<>x.person "
        "GROUP BY 1 HAVING COUNT(DISTINCT x.year)=1",
        "SELECT y.person FROM won x JOIN won y USING (award, year) WHERE x.person='{0}' AND y.person<>x.person",
        (
            "Who won the same Nobel Prize in the same year as {0}?",
            "With whom did {0} share the Nobel Prize?",
            "Who stood beside {0} as a laureate of the same prize in that same year?",
        ),
        take=4,
    ),
    Pattern(
        "leader-when-won", "temporal", 1,
        "SELECT person, country FROM (SELECT won.person, reign.country FROM won JOIN reign ON y=won.year "
        "JOIN native ON native.person=won.person AND native.country=reign.country) "
        "GROUP BY 1, 2 HAVING COUNT(*)=1",
        "SELECT led.person FROM won JOIN led ON year BETWEEN since AND until WHERE won.person='{0}' AND country='{1}'",
        (
            "Who was {1:office} when {0} won the Nobel Prize?",
            "In the year {0} received the Nobel Prize, who headed the government of {1}?",
            "Which head of government did {1} have in the year of {0:'s} Nobel Prize?",
        ),
        take=4,
    ),
    Pattern(
        "first-winner-from", "temporal", 1,
        "SELECT award, country FROM won JOIN native USING (person) GROUP BY 1, 2 HAVING COUNT(*)>1",
        "SELECT person FROM won JOIN born USING (person) WHERE award='{0}' AND country='{1}' AND year>=1950",
        (
            "Who was the first person born in {1:now} to win {0} from 1950 on?",
            "Counting from 1950, which native of what is now {1} was the earliest to receive {0}?",
            "Since 1950, who was first among those born in {1:now} to take {0}?",
        ),
        rank="year ASC", margin=0.0, take=4,
    ),
    Pattern(
        "last-winner-from", "temporal", 1,
        "SELECT award, country FROM won JOIN native USING (person) WHERE year<2021 GROUP BY 1, 2 HAVING COUNT(*)>1",
        "SELECT person FROM won JOIN born USING (person) WHERE award='{0}' AND country='{1}' AND year<2021",
        (
            "Up to 2020, who was the last person born in {1:now} to win {0}?",
            "Who was the most recent winner of {0} before 2021 born in what is now {1}?",
            "Which native of {1:now} took {0} last, not counting anything after 2020?",
        ),
        rank="year DESC", margin=0.0,
    ),
    Pattern(
        "winner-after", "temporal", 2,
        "SELECT person FROM won x WHERE award='award/nobel-prize-in-literature' "
        "AND 1=(SELECT COUNT(*) FROM won y WHERE y.award=x.award AND y.year=x.year+1)",
        "SELECT y.person FROM won x JOIN won y ON y.award=x.award AND y.year=x.year+1 WHERE x.person='{0}'",
        (
            "Who received the Nobel Prize in Literature the year after {0}?",
            "Which author won the literature Nobel one year later than {0}?",
            "{0} won the Nobel Prize in Literature; who was honoured with it the next year?",
        ),
    ),
    Pattern(
        "winner-before", "temporal", 2,
        "SELECT person FROM won x WHERE award='award/nobel-prize-in-literature' "
        "AND 1=(SELECT COUNT(*) FROM won y WHERE y.award=x.award AND y.year=x.year-1)",
        "SELECT y.person FROM won x JOIN won y ON y.award=x.award AND y.year=x.year-1 WHERE x.person='{0}'",
        (
            "Who received the Nobel Prize in Literature the year before {0}?",
            "Which writer won the literature Nobel one year earlier than {0}?",
            "{0} won the Nobel Prize in Literature; who had it the year before?",
        ),
    ),
    Pattern(
        "winners-from-to", "temporal", 1,
        "SELECT DISTINCT award, x.y, z.y FROM won, year x JOIN year z ON z.y=x.y+3 WHERE x.y%7=0 AND z.y<2024",
        "SELECT DISTINCT person FROM won WHERE award='{0}' AND year BETWEEN {1} AND {2}",
        (
            "Who won {0} between {1} and {2}?",
            "List everyone who received {0} from {1} through {2}.",
            "Which people were given {0} in the years {1} to {2}?",
        ),
    ),
    Pattern(
        "euro-year", "temporal", 1,
        "SELECT DISTINCT currency, since FROM currency WHERE currency='currency/euro' AND since IS NOT NULL",
        "SELECT country FROM currency WHERE currency='{0}' AND since={1}",
        (
            "Which EU members adopted {0} in {1}?",
            "In {1}, who joined {0} area?",
            "Which members of the European Union gave up their old money for {0} in {1}?",
        ),
    ),
    Pattern(
        "euro-between", "temporal", 1,
        "SELECT currency, x.y, z.y FROM currency, year x, year z WHERE currency='currency/euro' "
        "AND x.y IN (2002, 2008, 2010) AND z.y IN (2010, 2015, 2020) AND z.y>x.y+3 GROUP BY 1, 2, 3",
        "SELECT country FROM currency WHERE currency='{0}' AND since BETWEEN {1} AND {2}",
        (
            "Which countries joined {0} area between {1} and {2}?",
            "Which EU members adopted {0} in the years {1} to {2}?",
            "Name the members of the European Union that went over to {0} from {1} through {2}.",
        ),
        take=2,
    ),
    Pattern(
        "euro-when", "temporal", 1,
        "SELECT country, currency FROM currency WHERE currency='currency/euro' AND since IS NOT NULL",
        "SELECT since FROM currency WHERE country='{0}' AND currency='{1}'",
        (
            "In which year did {0} adopt {1}?",
            "When did {0} change over to {1}?",
            "Since what year has {1} been the currency of {0}?",
        ),
        values=True,
    ),
)

# fmt: on
MORE = tuple(Pattern(**{"take": 6, **pattern}) for pattern in atlas_operator_patterns.PATTERNS)
PATTERNS = (*ONE_HOP, *TWO_HOP, *THREE_HOP, *MULTI, *COUNT, *SUPERLATIVE, *TEMPORAL, *MORE)


def open_atlas(folder: Path) -> sqlite3.Connection:
    """Load nodes.csv and edges.csv of `folder` into a fresh in-memory database, with the views of schema.sql."""
    database = sqlite3.connect(":memory:")
    database.executescript((folder / "schema.sql").read_text(encoding="utf-8"))
    for table in ("node", "edge"):
        with (folder / f"{table}s.csv").open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file)
            marks = ", ".join("?" for _ in next(rows))
            database.executemany(
                f"INSERT INTO {table} VALUES ({marks})", ([cell or None for cell in row] for row in rows)
            )
    return database


def add_selection(database: sqlite3.Connection) -> None:
    """Add inputs of the topic queries: the lists of doubtful cases by id, plain years, and views over both."""
    for table, type_, names in (
        ("odd_capital", "Country", ODD_CAPITALS),
        ("odd_border", "Country", ODD_BORDERS),
        ("odd_continent", "Country", ODD_CONTINENTS),
        ("odd_currency", "Currency", ODD_CURRENCIES),
    ):
        database.execute(f"CREATE TEMP TABLE {table} (id TEXT)")
        for name in names:
            added = database.execute(
                f"INSERT INTO {table} SELECT id FROM node WHERE type = ? AND name = ?", (type_, name)
            )
            if added.rowcount != 1:
                raise ValueError(f"{name!r} in the list for {table} is not the name of one {type_} in nodes.csv")
    database.executescript(SELECTION)
    database.executemany("INSERT INTO year VALUES (?)", ((y,) for y in range(1900, 2031)))


def digest(*parts: object) -> str:
    """Return the sha256 hex digest of the parts, joined by `|`."""
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()


def answers_of(database: sqlite3.Connection, query: str) -> list[Cell]:
    """Return the first column of a gold query's result."""
    return [row[0] for row in database.execute(query)]


def is_clear(database: sqlite3.Connection, pattern: Pattern, topic: Sequence[Cell]) -> bool:
    """True if a question is admissible: no exclusion applies, and a superlative has one clear winner."""
    if pattern.unless and database.execute(pattern.unless.format(*topic)).fetchone() is not None:
        return False
    if not pattern.rank:
        return True
    values = [row[1] for row in database.execute(pattern.ranking.format(*topic))]
    if len(values) < 2 or None in values:
        return False
    return bool(abs(values[0] - values[1]) > pattern.margin * abs(values[0]))


def words(text: str) -> str:
    """Return the text without accents, case and punctuation, one blank around each word."""
    plain = unicodedata.normalize("NFKD", text)
    plain = "".join(c for c in plain if not unicodedata.combining(c)).casefold()
    return f" {' '.join(re.findall(r'[a-z0-9]+', plain))} "


class Names:
    """Names and types of the nodes, with excluded ones."""

    def __init__(self, database: sqlite3.Connection) -> None:
        rows = database.execute("SELECT id, name, type FROM node").fetchall()
        self.name: dict[str, str] = {row[0]: row[1] for row in rows}
        self.type: dict[str, str] = {row[0]: row[2] for row in rows}
        bearers: dict[str, list[str]] = {}
        for id_, name, _ in rows:
            bearers.setdefault(words(name), []).append(id_)
        odd = database.execute("SELECT id FROM odd_currency")
        self.barred = {row[0] for row in odd} | {
            id_
            for ids in bearers.values()
            if len(ids) > 1 and {self.type[i] for i in ids} != {"Continent", "Region"}
            for id_ in ids
        }
        self.odd_capital = {row[0] for row in database.execute("SELECT city FROM capital WHERE country IN odd_capital")}

    def label(self, cell: Cell) -> Label | Cell:
        """Return the text of one argument in a wording: a label for a node, a number as it is."""
        return Label(self.name[cell], self.type[cell]) if isinstance(cell, str) else cell


def instances(
    database: sqlite3.Connection, names: Names, pattern: Pattern
) -> Iterator[tuple[tuple[Cell, ...], list[Cell]]]:
    """Yield the topics of a pattern that make good questions, with their answers, in the order of a digest."""
    topics = sorted(set(database.execute(pattern.topics)), key=lambda topic: digest(SEED, pattern.slug, *topic))
    many = len({topic[0] for topic in topics}) >= pattern.take
    used: set[str] = set()
    earlier: list[set[Cell]] = []
    for topic in topics:
        ids = [cell for cell in topic if isinstance(cell, str)]
        if names.barred.intersection(ids) or not is_clear(database, pattern, topic):
            continue
        answers = answers_of(database, pattern.query.format(*topic))
        if len(set(answers)) < len(answers):
            raise ValueError(
                f"pattern {pattern.slug!r} gives an answer twice for {topic}; its gold query needs DISTINCT"
            )
        if not 0 < len(answers) <= MOST_ANSWERS or None in answers or answers == [0]:
            continue
        if "capital" in pattern.gold and names.odd_capital.intersection(answers):
            continue
        if (
            not pattern.values
            and not pattern.choice
            and leaks([names.name[str(i)] for i in ids], [names.name[str(i)] for i in answers])
        ):
            continue
        # Each first topic once, where there are enough of them: a pattern should not circle round one country.
        if many and ids[0] in used:
            continue
        # Nor should its answers be all but the same, as for two chancellors of one country.
        if not pattern.values and any(alike(set(answers), others) for others in earlier):
            continue
        used.add(ids[0])
        earlier.append(set(answers))
        yield topic, answers


def alike(one: set[Cell], other: set[Cell]) -> bool:
    """True if two sets of answers share more than half of their union."""
    return len(one & other) > len(one | other) / 2


def leaks(topics: Sequence[str], answers: Sequence[str]) -> bool:
    """True if a topic's name reveals an answer, as Lake Malawi does Malawi or Mexico does Mexico City."""
    for topic in map(words, topics):
        for answer in map(words, answers):
            if answer in topic or (len(answers) == 1 and topic in answer):
                return True
    return False


def build(database: sqlite3.Connection) -> list[Record]:
    """Return all records of questions.jsonl, in the order of a digest, so that any first part is a fair sample."""
    names = Names(database)
    records: list[Record] = []
    for pattern in PATTERNS:
        for number, (topic, answers) in enumerate(instances(database, names, pattern)):
            if number == pattern.take:
                break
            records += paraphrases(names, pattern, number, topic, answers)
    return sorted(records, key=lambda record: digest(SEED, record["paraphrase_of"], record["id"]))


def paraphrases(
    names: Names, pattern: Pattern, number: int, topic: tuple[Cell, ...], answers: list[Cell]
) -> list[Record]:
    """Return one record per wording that is used for this topic; wordings take turns from topic to topic."""
    ids = [cell for cell in topic if isinstance(cell, str)]
    if pattern.values:
        answers = sorted(answers, key=str)
    else:
        answers = sorted(answers, key=lambda id_: (names.name[str(id_)], id_))
    key = digest(pattern.slug, *topic)
    group = f"{pattern.slug}-{key[:6]}"
    labels = [names.label(cell) for cell in topic]
    records = []
    for turn in range(pattern.each):
        text = pattern.wordings[(number * pattern.each + turn) % len(pattern.wordings)].format(*labels)
        records.append(
            {
                "id": f"{group}-{turn + 1}",
                "question": text[0].upper() + text[1:],
                "answers": [str(a) if pattern.values else names.name[str(a)] for a in answers],
                "answer_ids": [] if pattern.values else answers,
                "topic_entities": [names.name[id_] for id_ in ids],
                "topic_ids": ids,
                "hops": pattern.hops,
                "type": pattern.kind,
                "pattern": pattern.slug,
                "gold_sql": pattern.query.format(*topic),
                "split": "dev" if key[0] in "01234567" else "test",
                "paraphrase_of": group,
            }
        )
    return records


def differences(database: sqlite3.Connection, records: Sequence[Record]) -> Iterator[str]:
    """Rerun the stored gold query of each record; yield a line for each whose answers are not the stored ones."""
    names = dict(database.execute("SELECT id, name FROM node"))
    for record in records:
        try:
            found = answers_of(database, record["gold_sql"])
        except sqlite3.Error as error:
            yield f"{record['id']}: gold query fails: {error}"
            continue
        stored = record["answer_ids"] or record["answers"]
        if sorted(map(str, found)) != sorted(stored):
            yield f"{record['id']}: gold query gives {found}, stored are {stored}"
        elif record["answer_ids"] and [names.get(i) for i in record["answer_ids"]] != record["answers"]:
            yield f"{record['id']}: answers {record['answers']} are not the names of {record['answer_ids']}"


def main() -> int:
    """Write or check questions.jsonl; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="rerun the stored gold queries, write nothing")
    parser.add_argument("--data", type=Path, default=ATLAS, help="folder with nodes.csv, edges.csv and schema.sql")
    parser.add_argument("--out", type=Path, help="file to write or check (default: questions.jsonl in --data)")
    arguments = parser.parse_args()
    out: Path = arguments.out or arguments.data / "questions.jsonl"
    database = open_atlas(arguments.data)
    if arguments.check:
        records = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        wrong = list(differences(database, records))
        print(*wrong, f"{len(records)} questions checked, {len(wrong)} differ", sep="\n")
        return 1 if wrong else 0
    add_selection(database)
    records = build(database)
    unfinished = out.with_name(out.name + ".part")
    unfinished.write_text(
        "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8"
    )
    os.replace(unfinished, out)
    print(f"{out}: {len(records)} questions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
