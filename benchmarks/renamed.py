"""Accuracy of the offline pipeline after renaming the relations of a graph. Nothing is fitted on these names.

python benchmarks/renamed.py [--data DIR] [--json FILE] [--questions N] [--split test]

MetaQA (gold topics), atlas (linked) and the held-out domains of `domain_questions.py`, each
with its own relations, and with these renamed in three styles: `synonyms` (another everyday word), `wikidata` (the
property's English label: `cast member`, `place of birth`) and `freebase` (`film.film.directed_by`, with the domain
and the kind of the head); and in two more, `everyday` and `schema`, which count apart. Only labels change; questions,
nodes and edges stay as they are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
from rich.console import Console

from benchmarks.domain_questions import HELD_OUT, make
from benchmarks.offline import Bench
from benchmarks.rows import Bar, Row, make_parser, show, show_bars
from byokg.evaluation.datasets.base import Example
from byokg.evaluation.datasets.benchmarks import MetaQA
from byokg.evaluation.datasets.folder import atlas
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import build_graph
from byokg.graph.store import Direction
from byokg.graph.traversal import triples
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline

MANNERS = ("synonyms", "wikidata", "freebase")
FURTHER = ("everyday", "schema")
"""Manners beside those of the bar."""
BAR = Bar("renamed_mean_hits@1", "≥", 0.85)

NAMES = """
metaqa
starred_actors    | cast                 | cast member                            | film.film.starring
in_language       | spoken_tongue        | original language of film or TV show   | film.film.language
has_tags          | keywords             | main subject                           | film.film.subjects
written_by        | screenwriter         | screenwriter                           | film.film.written_by
has_genre         | category             | genre                                  | film.film.genre
release_year      | premiere_date        | publication date                       | film.film.initial_release_date
directed_by       | filmmaker            | director                               | film.film.directed_by
has_imdb_rating   | imdb_score           | review score                           | film.film.rating
has_imdb_votes    | imdb_ballots         | number of votes                        | film.film.votes
atlas
part_of           | belongs_to           | part of                                | location.location.containedby
in_continent      | on_continent         | continent                              | location.country.continent
in_region         | area                 | located in the region                  | location.country.region
capital           | seat_of_government   | capital                                | location.country.capital
currency          | money                | currency                               | location.country.currency_used
official_language | spoken_tongue        | official language                      | location.country.official_language
borders           | neighbours           | shares border with                     | location.country.adjoins
located_in        | situated_in          | country                                | location.city.country
flows_through     | passes_through       | country crossed by the river           | geography.river.flows_through
tributary_of      | joins                | tributary of                           | geography.river.tributary_of
flows_into        | discharges_into      | mouth of the watercourse               | geography.river.mouth
mountain_in       | peak_in              | country of the mountain                | geography.mountain.country
lake_in           | lake_located_in      | country of the lake                    | geography.lake.country
in_field          | discipline           | field of the award                     | award.award.discipline
born_in           | birthplace           | place of birth                         | people.person.place_of_birth
won               | received_prize       | award received                         | award.award_winner.awards_won
works_in          | discipline_of_work   | field of work                          | people.person.field_of_work
head_of_government_of | prime_minister_of | head of the government of | government.politician.head_of_government_of
museum
painted_by        | artist               | creator                                | visual_art.artwork.artist
exhibited_in      | gallery              | collection                             | visual_art.artwork.museum
art_style         | movement             | movement                               | visual_art.artwork.art_style
owner             | possessor            | owned by                               | visual_art.artwork.owner
citizen_of        | nationality          | country of citizenship                 | people.person.nationality
located_in        | home_country         | country                                | architecture.museum.country
company
memberOf          | unit                 | member of                              | business.employee.department
worksOn           | assignedTo           | participant in project                 | business.employee.project
hasSkill          | expertise            | skill                                  | business.employee.skill
basedAt           | location             | headquarters location                  | business.department.office
commissionedBy    | customer             | commissioned by                        | business.project.client
reportsTo         | supervisor           | manager                                | business.employee.boss
music
performer         | singer               | performer                              | music.song.performed_by
composer          | written_by           | composer                               | music.song.composed_by
genre             | kind                 | genre                                  | music.song.genre
record_label      | record_company       | record label                           | music.song.record_label
hometown          | comes_from           | place of origin                        | music.artist.hometown
signed_with       | under_contract_with  | signed to record label                 | music.artist.label
"""
"""For each graph, what its relations are called, and what in each manner."""

AGAIN = """
metaqa
starred_actors    | features             | leadingPlayer
in_language       | dialogue_in          | dialogueLanguage
has_tags          | labelled             | about
written_by        | scripted_by          | scriptAuthor
has_genre         | sort_of_film         | filmCategory
release_year      | came_out_in          | datePublished
directed_by       | helmed_by            | filmDirector
has_imdb_rating   | grade                | aggregateRating
has_imdb_votes    | voters               | ratingCount
atlas
part_of           | within               | containedIn
in_continent      | landmass             | continentName
in_region         | zone                 | regionName
capital           | chief_city           | capitalCity
currency          | legal_tender         | currencyUsed
official_language | state_language       | languageSpoken
borders           | next_to              | neighboringCountry
located_in        | lies_in              | inCountry
flows_through     | crosses              | basinCountry
tributary_of      | feeds                | parentRiver
flows_into        | empties_into         | riverMouth
mountain_in       | rises_in             | mountainCountry
lake_in           | lake_of              | lakeCountry
in_field          | subject              | awardCategory
born_in           | native_of            | birthCountry
won               | awarded              | hasAward
works_in          | specialty            | fieldOfStudy
head_of_government_of | leads            | premierOf
museum
painted_by        | made_by              | creatorName
exhibited_in      | hangs_in             | currentLocation
art_style         | school_of_art        | artMovement
owner             | property_of          | proprietor
citizen_of        | national_of          | homeland
located_in        | stands_in            | inCountry
company
memberOf          | team                 | orgUnit
worksOn           | busy_with            | currentAssignment
hasSkill          | good_at              | competency
basedAt           | site                 | premises
commissionedBy    | ordered_by           | buyer
reportsTo         | works_under          | lineManager
music
performer         | sung_by              | vocalist
composer          | music_by             | songwriter
genre             | style                | musicGenre
record_label      | put_out_by           | publisher
hometown          | native_city          | cityOfOrigin
signed_with       | contracted_to        | labelContract
"""
"""The same in two further manners, written before the list of synonyms last grew, and of whose wrong answers none
was read: another everyday wording, and labels as people give them who design a schema."""


def names(graph: str, manner: str) -> Mapping[str, str]:
    """Return what the relations of a graph are called in a manner."""
    found: dict[str, str] = {}
    own = ""
    table, manners = (AGAIN, FURTHER) if manner in FURTHER else (NAMES, MANNERS)
    for line in table.strip().splitlines():
        label, *others = (cell.strip() for cell in line.split("|"))
        if not others:
            own = label
        elif own == graph:
            found[label] = others[manners.index(manner)]
    return found


def renamed(graph: ColumnarGraph, called: Mapping[str, str]) -> ColumnarGraph:
    """Return a graph whose relations are called otherwise."""
    entities = list(graph.entities())
    batch = graph.edges(np.arange(len(entities)), Direction.OUT)
    edges = (replace(triple, relation=called[triple.relation]) for triple in triples(graph, batch))
    return ColumnarGraph.from_records(graph.nodes(entities), edges)


Asked = tuple[str, ColumnarGraph, Sequence[Example], Literal["gold", "linked"]]


def sets(bench: Bench) -> Iterator[Asked]:
    """Yield the sets: name, graph, questions, and whether topics are given."""
    split = bench.options.split
    shipped = atlas(split)
    yield "atlas", bench.graph("atlas", shipped.graph_source()), bench.examples(shipped), "linked"
    for domain in HELD_OUT:
        made = make(domain, bench.options.questions)
        (folder := bench.folder / domain.name).mkdir()
        yield domain.name, build_graph(made.write(folder), folder / "graph"), made.examples, "gold"
    root = bench.options.data / "metaqa"
    for hops in (1, 2, 3) if root.is_dir() else ():
        dataset = MetaQA(root, hops, split)
        graph = bench.graph("metaqa", dataset.graph_source())
        yield f"metaqa_{hops}hop", graph, bench.examples(dataset), "gold"


def main() -> None:
    parser = make_parser(__doc__, "folder of data sets")
    parser.add_argument("--questions", type=int, default=500, help="questions per set")
    parser.add_argument("--split", default="test", choices=["dev", "test"])
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    values: dict[str, list[float]] = {manner: [] for manner in (*MANNERS, *FURTHER)}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, Path(folder), Console())
        for name, graph, examples, entities in sets(bench):
            bench.evaluate(f"{name}_own", offline_pipeline(Parts(graph)), examples, entities, metrics=("hits@1",))
            for manner in values:
                other = renamed(graph, names(name.split("_")[0], manner))
                bench.evaluate(
                    f"{name}_{manner}", offline_pipeline(Parts(other)), examples, entities, metrics=("hits@1",)
                )
                values[manner] += [row.value for row in bench.rows if row.name == f"{name}_{manner}_hits@1"]
    for manner, shares in values.items():
        bench.add(Row(f"renamed_{manner}_mean_hits@1", sum(shares) / len(shares), "share"))
    everything = [share for manner in MANNERS for share in values[manner]]
    bench.add(Row(BAR.name, sum(everything) / len(everything), "share"))
    show(bench.rows, f"relations called otherwise, {options.split} split", options.json)
    show_bars(bench.rows, [BAR])


if __name__ == "__main__":
    main()
