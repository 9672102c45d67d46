"""Small graphs that tests of linking, retrieval and pipelines share."""

from __future__ import annotations

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.index.embedders import StaticEmbedder
from byokg.types import EntityId, Node, Triple

EMBEDDER = StaticEmbedder()
"""Loaded once for all tests of a process."""

# Untyped, relations of one word each:
#   Alien   -directed_by-> Ridley Scott       -starred_actors-> Sigourney Weaver     -release_year-> 1979
#   Blade Runner -directed_by-> Ridley Scott  -starred_actors-> Harrison Ford        -release_year-> 1982
#   Aliens  -directed_by-> James Cameron      -starred_actors-> Sigourney Weaver     -release_year-> 1986
#   Titanic -directed_by-> James Cameron      -starred_actors-> Kate Winslet         -release_year-> 1997
#   Alien -has_genre-> Horror; Aliens -has_genre-> Action; Titanic -has_genre-> Drama; Blade Runner -has_genre-> Drama
FILMS = [
    ("Alien", "directed_by", "Ridley Scott"),
    ("Alien", "starred_actors", "Sigourney Weaver"),
    ("Alien", "release_year", "1979"),
    ("Alien", "has_genre", "Horror"),
    ("Blade Runner", "directed_by", "Ridley Scott"),
    ("Blade Runner", "starred_actors", "Harrison Ford"),
    ("Blade Runner", "release_year", "1982"),
    ("Blade Runner", "has_genre", "Drama"),
    ("Aliens", "directed_by", "James Cameron"),
    ("Aliens", "starred_actors", "Sigourney Weaver"),
    ("Aliens", "release_year", "1986"),
    ("Aliens", "has_genre", "Action"),
    ("Titanic", "directed_by", "James Cameron"),
    ("Titanic", "starred_actors", "Kate Winslet"),
    ("Titanic", "release_year", "1997"),
    ("Titanic", "has_genre", "Drama"),
]

# Mediated as in Freebase: a marriage is a node of its own, without a name.
#   Ann -people.person.spouse_s-> m.0m1 -people.marriage.spouse-> Bob
#                                 m.0m1 -people.marriage.from-> 1999
#   Ann -people.person.place_of_birth-> Lima    Bob -people.person.place_of_birth-> Cusco
#   Cid -people.person.spouse_s-> m.0m2 -people.marriage.spouse-> Dea
#   Ann -people.person.parents-> Eva
MARRIAGES = [
    ("Ann", "people.person.spouse_s", "m.0m1"),
    ("m.0m1", "people.marriage.spouse", "Bob"),
    ("m.0m1", "people.marriage.from", "1999"),
    ("Ann", "people.person.place_of_birth", "Lima"),
    ("Bob", "people.person.place_of_birth", "Cusco"),
    ("Cid", "people.person.spouse_s", "m.0m2"),
    ("m.0m2", "people.marriage.spouse", "Dea"),
    ("Ann", "people.person.parents", "Eva"),
]

# Typed, ids apart from names:
#   Peru -capital-> Lima      Chile -capital-> Santiago   Spain -capital-> Madrid    Bolivia -capital-> Sucre
#   Peru, Chile, Bolivia, Spain -official_language-> Spanish      Peru, Bolivia -official_language-> Quechua
#   Peru -borders-> Chile, Bolivia       Chile -borders-> Bolivia     Portugal -borders-> Spain
COUNTRIES = {"pe": "Peru", "cl": "Chile", "bo": "Bolivia", "es": "Spain", "pt": "Portugal"}
CITIES = {"lima": "Lima", "scl": "Santiago", "mad": "Madrid", "sre": "Sucre"}
LANGUAGES = {"spa": "Spanish", "que": "Quechua"}
FACTS = [
    ("pe", "capital", "lima"),
    ("cl", "capital", "scl"),
    ("es", "capital", "mad"),
    ("bo", "capital", "sre"),
    ("pe", "official_language", "spa"),
    ("pe", "official_language", "que"),
    ("cl", "official_language", "spa"),
    ("bo", "official_language", "spa"),
    ("bo", "official_language", "que"),
    ("es", "official_language", "spa"),
    ("pe", "borders", "cl"),
    ("pe", "borders", "bo"),
    ("cl", "borders", "bo"),
    ("pt", "borders", "es"),
]


def films() -> ColumnarGraph:
    return ColumnarGraph.from_triples(FILMS, name="films")


def marriages() -> ColumnarGraph:
    return ColumnarGraph.from_triples(MARRIAGES, name="marriages")


def countries() -> ColumnarGraph:
    return ColumnarGraph.from_records(
        [
            Node(EntityId(id), name, type)
            for type, names in (("Country", COUNTRIES), ("City", CITIES), ("Language", LANGUAGES))
            for id, name in names.items()
        ],
        [Triple(EntityId(head), relation, EntityId(tail)) for head, relation, tail in FACTS],
        name="countries",
    )
