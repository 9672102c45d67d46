"""The paper's case studies as small graphs: what the second round finds, the first could not.

A rule of the script for a later stage demands what the earlier one has to have found, so a prompt without it has no
reply. Source: ByoKG-RAG (arXiv:2507.04127v1), Tables 5 and 9.
"""

from __future__ import annotations

from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.graph.store import GraphStore
from byokg.linking.parts import Parts
from byokg.llm.chat_models import Rule, ScriptedChatModel
from byokg.llm.model import LanguageModel
from byokg.pipelines.byokg import byokg_pipeline
from byokg.retrieval.agentic import AgenticRetriever
from byokg.retrieval.path import PathRetriever
from byokg.retrieval.query import QueryRetriever
from byokg.types import (
    Answer,
    EntityId,
    Feedback,
    Node,
    PathEvidence,
    Properties,
    Question,
    RowsEvidence,
    Triple,
    TripleEvidence,
)

FIRST, LATER = "not its content", "part of its content"
RELATIONS, ENTITIES = "Select the relations to follow", "Select the entities to explore next"
ANSWER = "Each fact begins with its number"


def asked(store: GraphStore, question: str, *rules: Rule) -> Answer:
    """Answer with paths, queries and the agent."""
    model = LanguageModel(ScriptedChatModel(rules=rules))
    retrievers = {"path": PathRetriever, "query": QueryRetriever, "agentic": AgenticRetriever}
    return byokg_pipeline(Parts(store, model), retrievers=retrievers).run(Question("ask", question))


def seen(answer: Answer, number: int) -> set[str]:
    """Return the nodes that the evidence of a round holds."""
    found: set[str] = set()
    for item in answer.rounds[number].evidence:
        if isinstance(item, PathEvidence):
            found |= {*item.ends, *(node for path in item.paths for node in path.nodes)}
        elif isinstance(item, TripleEvidence):
            found |= {item.triple.head, item.triple.tail}
    return found


def graph(*edges: tuple[str, str, str, Properties]) -> ColumnarGraph:
    """Hold edges with properties between nodes that are named by their ids."""
    ids = dict.fromkeys(id for head, _, tail, _ in edges for id in (head, tail))
    return ColumnarGraph.from_records(
        [Node(EntityId(id), id) for id in ids],
        [Triple(EntityId(head), label, EntityId(tail), properties=dict(noted)) for head, label, tail, noted in edges],
    )


def test_the_organisation_found_behind_a_mediator_leads_to_its_championships() -> None:
    # Stan Kasten -leader_of-> m.0_yv0g3 -organization-> Los Angeles Dodgers -championships-> five World Series
    years = [f"{year} World Series" for year in (1959, 1963, 1965, 1981, 1988)]
    store = ColumnarGraph.from_triples(
        [
            ("Stan Kasten", "business.board_member.leader_of", "m.0_yv0g3"),
            ("m.0_yv0g3", "organization.leadership.person", "Stan Kasten"),
            ("m.0_yv0g3", "organization.leadership.organization", "Los Angeles Dodgers"),
            *(("Los Angeles Dodgers", "sports.sports_team.championships", year) for year in years),
            ("Los Angeles Dodgers", "sports.sports_team.arena_stadium", "Dodger Stadium"),
        ]
    )
    answer = asked(
        store,
        "In what years did Stan Kasten's organization win the World Series?",
        Rule(
            "<entities>Stan Kasten</entities>"
            "<paths>business.board_member.leader_of -> organization.leadership.organization</paths>",
            contains=(FIRST,),
        ),
        Rule(
            "<entities>Los Angeles Dodgers</entities><paths>sports.sports_team.championships</paths>",
            contains=(LATER, "Stan Kasten → business.board_member.leader_of / organization.leadership.organization"),
        ),
        Rule("<selected>business.board_member.leader_of</selected>", contains=(RELATIONS, "\nStan Kasten\n")),
        Rule("<selected>sports.sports_team.championships</selected>", contains=(RELATIONS, "\nLos Angeles Dodgers\n")),
        Rule("<next-entities></next-entities>", contains=(ENTITIES,)),
        Rule(f"<answers>{chr(10).join(years)}</answers>", contains=(ANSWER, "championships", "1963 World Series")),
    )
    assert len(answer.rounds) == 2
    assert "Los Angeles Dodgers" in seen(answer, 0) and not seen(answer, 0) & set(years)
    assert set(years) <= seen(answer, 1)
    assert [(item.name, item.grounded) for item in answer.items] == [(year, True) for year in years]


def test_who_held_an_office_is_found_once_the_years_are_known() -> None:
    # Pym -position held [1979-1983]-> 48th Parliament, [1974-1979]-> 47th; Kleppe [1973-1979] and others -> Minister
    minister, parliament = "Minister of Finance of Norway", "Member of the 48th Parliament of the United Kingdom"
    store = graph(
        ("Francis Pym, Baron Pym", "position held", parliament, {"start": 1979, "end": 1983}),
        (
            "Francis Pym, Baron Pym",
            "position held",
            "Member of the 47th Parliament of the United Kingdom",
            {"start": 1974, "end": 1979},
        ),
        ("Per Kleppe", "position held", minister, {"start": 1973, "end": 1979}),
        ("Arne Skauge", "position held", minister, {"start": 1986, "end": 1986}),
    )
    answer = asked(
        store,
        "When Francis Pym, Baron Pym had been the Member of the 48th Parliament of the United Kingdom, who had been "
        "the Minister of Finance of Norway?",
        Rule("<entities>Francis Pym, Baron Pym</entities><paths>position held</paths>", contains=(FIRST,)),
        Rule(f"<entities>{minister}</entities><paths>^position held</paths>", contains=(LATER, "1979", parliament)),
        Rule("<selected>position held</selected>", contains=(RELATIONS,)),
        Rule("<next-entities></next-entities>", contains=(ENTITIES,)),
        Rule("<answers>Per Kleppe</answers>", contains=(ANSWER, "Per Kleppe", "1973")),
    )
    assert "Per Kleppe" not in seen(answer, 0) and "Per Kleppe" in seen(answer, 1)
    assert [(item.name, item.grounded) for item in answer.items] == [("Per Kleppe", True)]


def test_a_guess_is_tied_to_what_is_known_by_the_shortest_path() -> None:
    # Aortic aneurysm -may cause-> Abdominal mass <-may cause- Gallbladder cancer -may cause-> Cholestatic jaundice
    store = graph(
        ("Aortic aneurysm, abdominal", "may cause", "Abdominal mass", {}),
        ("Gallbladder cancer", "may cause", "Abdominal mass", {}),
        ("Gallbladder cancer", "may cause", "Cholestatic jaundice", {}),
        ("Gallbladder cancer", "may cause", "Liver metastases", {}),
    )
    answer = asked(
        store,
        "A CT scan shows a calcified mass near her gallbladder. Which diagnosis should be excluded first?",
        Rule("<entities>Aortic aneurysm, abdominal</entities><answers>Gallbladder cancer</answers>", contains=(FIRST,)),
        Rule("<entities>FINISH</entities>", contains=(LATER, "Abdominal mass")),
        Rule("<selected>may cause</selected>", contains=(RELATIONS,)),
        Rule("<next-entities>FINISH</next-entities>", contains=(ENTITIES,)),
        Rule("<answers>Gallbladder cancer</answers>", contains=(ANSWER, "Liver metastases")),
    )
    (path,) = (item for item in answer.rounds[0].evidence if isinstance(item, PathEvidence))
    assert path.paths[0].nodes == ("Aortic aneurysm, abdominal", "Abdominal mass", "Gallbladder cancer")
    assert [(item.name, item.grounded) for item in answer.items] == [("Gallbladder cancer", True)]


def test_a_query_that_finds_nothing_is_written_anew_from_what_the_graph_shows(arcade_process: ArcadeStore) -> None:
    # Order 10666 -ORDERS {quantity: 36}-> Thüringer Rostbratwurst (123.79), 10667 -ORDERS {quantity: 5}-> Chai (18)
    sausage = "Thüringer Rostbratwurst"
    nodes = [
        Node(EntityId("o1"), "10666", "Order"),
        Node(EntityId("o2"), "10667", "Order"),
        Node(EntityId("p1"), sausage, "Product", {"unitPrice": 123.79}),
        Node(EntityId("p2"), "Chai", "Product", {"unitPrice": 18.0}),
    ]
    edges = [
        Triple(EntityId("o1"), "ORDERS", EntityId("p1"), properties={"quantity": 36}),
        Triple(EntityId("o2"), "ORDERS", EntityId("p2"), properties={"quantity": 5}),
    ]
    wrong = "MATCH (p:Product)<-[:PART_OF]-(o:Order) WHERE o.quantity > 10 RETURN avg(p.unitPrice) AS averageUnitPrice"
    right = "MATCH (o:Order)-[r:ORDERS]->(p:Product) WHERE r.quantity > 10 RETURN avg(p.unitPrice) AS averageUnitPrice"
    arcade_process.replace(ColumnarGraph.from_records(nodes, edges))
    answer = asked(
        arcade_process,
        "What is the average unitPrice of products that have been ordered in quantities greater than 10?",
        Rule(f"<entities>10666</entities><opencypher>{wrong}</opencypher>", contains=(FIRST,)),
        Rule(
            f"<entities>{sausage}</entities><opencypher>{right}</opencypher>",
            contains=(LATER, "no relation type 'PART_OF'", "ORDERS", sausage),
        ),
        Rule("<selected>ORDERS</selected>", contains=(RELATIONS,)),
        Rule("<next-entities></next-entities>", contains=(ENTITIES,)),
        Rule("<answers>123.79</answers>", contains=(ANSWER, "123.79")),
    )
    assert any(isinstance(item, Feedback) for item in answer.rounds[0].evidence)
    (rows,) = (item for item in answer.rounds[1].evidence if isinstance(item, RowsEvidence))
    assert rows.rows == ((123.79,),)
    assert [(item.name, item.grounded) for item in answer.items] == [("123.79", True)]
