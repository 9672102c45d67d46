"""Names as users' RDF files and CURIEs have them, from the file to the answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from byokg.graph.importers.choose import build_graph, import_graph
from byokg.graph.name_indexes import build_names
from byokg.linking.parts import Parts
from byokg.offline.pipeline import offline_pipeline
from byokg.pipelines.loop import Loop
from byokg.types import Question

TURTLE = """
@prefix ex: <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix dbo: <http://dbpedia.org/ontology/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
ex:Titanic_film a dbo:Film ; rdfs:label "Titanic (film)"@en ; dbo:director ex:JamesCameron ;
    dbo:releaseDate "1997-12-19"^^xsd:date .
ex:Titanic_ship a dbo:Ship ; rdfs:label "Titanic (ship)"@en ; dbo:owner ex:WhiteStarLine .
ex:Avatar a dbo:Film ; rdfs:label "Avatar"@en ; dbo:director ex:Spielberg .
ex:AvatarBand a dbo:Band ; rdfs:label "Avatar"@en ; dbo:hometown ex:Gothenburg ; dbo:genre ex:Metal .
ex:JamesCameron a dbo:Person ; dbo:birthPlace ex:Kapuskasing .
ex:Germany a dbo:Country ; rdfs:label "Germany"@en, "Deutschland"@de, "Allemagne"@fr ;
    skos:altLabel "Federal Republic of Germany"@en, "BRD"@de ; dbo:capital ex:Berlin ; dbo:currency ex:Euro .
ex:Berlin a dbo:City ; rdfs:label "Berlin"@en ; dbo:mayor ex:KaiWegner .
ex:Euro a dbo:Currency ; rdfs:label "Euro"@en ; skos:altLabel "single European currency"@en .
ex:Metformin a dbo:Drug ; rdfs:label "Metformin"@en, "Metformina"@es ; ex:sideEffect ex:Nausea ;
    ex:treats ex:Type2Diabetes .
ex:Aspirin a dbo:Drug ; rdfs:label "Aspirin"@en ; ex:sideEffect ex:Bleeding ; ex:treats ex:Headache .
"""

CURIES = """dbr:Ada_Lovelace\tdbo:birthPlace\tdbr:London
dbr:Ada_Lovelace\tdbo:knownFor\tdbr:AnalyticalEngine
ex:AlanTuring\tex:fieldOfStudy\tex:ComputerScience
http://ex.org/id/GraceHopper\tex:employer\thttp://ex.org/id/US_Navy
dbr:Inception_(film)\tdbo:director\tdbr:Christopher_Nolan
"""


@pytest.fixture(scope="module", params=["in memory", "in a folder"])
def rdf(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Loop:
    folder = tmp_path_factory.mktemp("rdf")
    (folder / "graph.ttl").write_text(TURTLE, "utf-8")
    if request.param == "in memory":
        return offline_pipeline(Parts(import_graph(folder / "graph.ttl")))
    graph = build_graph(folder / "graph.ttl", folder / "graph")
    build_names(graph)
    return offline_pipeline(Parts(graph))


def answers(pipeline: Loop, question: str) -> list[str]:
    return [item.name for item in pipeline.run(Question("q", question)).items]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who directed the film Titanic?", ["JamesCameron"]),
        ("Who directed Titanic?", ["JamesCameron"]),
        ("Who is the owner of the ship Titanic?", ["WhiteStarLine"]),
        ("When was the film Titanic released?", ["1997-12-19"]),
        ("Who directed Avatar (2009 film)?", ["Spielberg"]),
        ("Where was James Cameron born?", ["Kapuskasing"]),
        ("What is the capital of Deutschland?", ["Berlin"]),
        ("Who is the mayor of the capital of Allemagne?", ["KaiWegner"]),
        ("What is the capital of the Federal Republic of Germany?", ["Berlin"]),
        ("Which countries use the single European currency?", ["Germany"]),
        ("metformine side effects", ["Nausea"]),
        ("side effects of metformina", ["Nausea"]),
        ("capital germany", ["Berlin"]),
        ("headache drugs", ["Aspirin"]),
        ("titanic film director", ["JamesCameron"]),
    ],
)
def test_labels_of_all_languages_aliases_and_ends_of_iris_are_names(
    rdf: Loop, question: str, expected: list[str]
) -> None:
    assert answers(rdf, question) == expected


def test_what_stands_beside_a_name_decides_between_namesakes(rdf: Loop) -> None:
    def first(question: str) -> str:
        return rdf.run(Question("q", question)).rounds[0].linked.entities[0].id

    assert first("Who directed the film Titanic?").endswith("Titanic_film")
    assert first("Who owned the ship Titanic?").endswith("Titanic_ship")
    assert first("What is the band Avatar known for?").endswith("AvatarBand")
    assert first("What is the film Avatar known for?").endswith("Avatar")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where was Ada Lovelace born?", ["dbr:London"]),
        ("Who is known for the Analytical Engine?", ["dbr:Ada_Lovelace"]),
        ("What was the field of study of Alan Turing?", ["ex:ComputerScience"]),
        ("grace hopper employer", ["http://ex.org/id/US_Navy"]),
        ("Who directed the film Inception?", ["dbr:Christopher_Nolan"]),
    ],
)
def test_curies_and_iris_of_plain_triples_are_found_by_their_ends(
    question: str, expected: list[str], tmp_path: Path
) -> None:
    (tmp_path / "graph.tsv").write_text(CURIES, "utf-8")
    assert answers(offline_pipeline(Parts(import_graph(tmp_path / "graph.tsv"))), question) == expected
