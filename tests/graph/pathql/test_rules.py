"""Inferred edges: the page's example, what RDFS and OWL say, and random rules against a plain closure."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import pytest

from byokg.errors import PathQueryInvalid, RelationNotFound
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.importers.choose import import_graph
from byokg.graph.pathql.evaluate import paths
from byokg.graph.pathql.extras.rules import Inferred, schema_rules
from byokg.graph.pathql.grammar import parse_rules
from byokg.types import EntityId, Node, Triple

PLACES = [
    ("Arlington", "partOf", "DCArea"),
    ("DCArea", "locatedIn", "EastCoast"),
    ("EastCoast", "partOf", "US"),
    ("US", "locatedIn", "NorthAmerica"),
]
RULE = """
IF
  { ?x :partOf ?y . ?y :locatedIn ?z }
THEN
  { ?x :partOf ?z }
"""
QUERY = "PATHS START ?x = :Arlington END ?y = :NorthAmerica VIA { ?x :partOf ?y }"


def test_the_inferred_path_from_arlington() -> None:
    # Differs: the page says it goes by DCArea and US, but its rule leads from Arlington to EastCoast at once.
    graph = ColumnarGraph.from_triples(PLACES)
    found = paths(graph, QUERY, rules=RULE)
    assert [path.nodes for path in found] == [("Arlington", "EastCoast", "NorthAmerica")]
    assert len(paths(graph, QUERY)) == 0
    assert graph.edge_count == 4


def test_an_inferred_edge_tells_why() -> None:
    found = paths(ColumnarGraph.from_triples(PLACES), QUERY, rules=RULE)
    (triple,) = found[0].edges[0].triples
    derivation = found.derivation(triple)
    assert triple.edge < 0 and derivation is not None
    assert derivation.rule == "IF { ?x :partOf ?y . ?y :locatedIn ?z } THEN { ?x :partOf ?z }"
    assert [(each.head, each.relation, each.tail) for each in derivation.premises] == PLACES[:2]
    assert [each.edge for each in derivation.premises] == [0, 1]
    said = found.as_json()["paths"][0]["edges"][0]["triples"][0]["inferred"]
    assert said["premises"][0] == ["Arlington", "partOf", "DCArea", 0]


def test_stored_edges_keep_their_numbers_and_properties() -> None:
    nodes = [Node(EntityId(name), name) for name in "abc"]
    edges = [
        Triple(EntityId("a"), "r", EntityId("b"), properties={"year": 1990}),
        Triple(EntityId("b"), "r", EntityId("c")),
    ]
    graph = ColumnarGraph.from_records(nodes, edges)
    found = paths(graph, "PATHS ALL START ?x = :a END ?y = :c VIA :r", rules="IF { ?x :r ?y } THEN { ?y :r ?x }")
    (path,) = found
    assert [(each.triples[0].edge, dict(each.triples[0].properties)) for each in path.edges] == [
        (0, {"year": 1990}),
        (1, {}),
    ]


def test_rdfs_and_owl(tmp_path: Path) -> None:
    file = tmp_path / "schema.ttl"
    file.write_text(
        """
        @prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        @prefix owl: <http://www.w3.org/2002/07/owl#> .
        :bornIn rdfs:subPropertyOf :connectedTo . :contains owl:inverseOf :within .
        :marriedTo a owl:SymmetricProperty . :within a owl:TransitiveProperty . :City rdfs:subClassOf :Place .
        :ada :bornIn :london . :london a :City . :england :contains :london . :uk :contains :england .
        :ada :marriedTo :william .
        """
    )
    graph = import_graph(file)
    inferred = Inferred(graph, schema_rules(graph))

    def ends(query: str) -> list[str]:
        return [path.end.rpartition("/")[2] for path in paths(graph, query, rules=inferred)]

    assert ends("PATHS START ?x = :ada END ?y VIA :connectedTo") == ["london"]
    assert ends("PATHS START ?x = :london END ?y VIA :within MAX LENGTH 1") == ["england", "uk"]
    assert ends("PATHS START ?x = :william END ?y VIA :marriedTo MAX LENGTH 1") == ["ada"]
    assert ends("PATHS START ?x = :ada END ?y { ?y a :Place } VIA :bornIn") == ["london"]


def test_what_is_no_rule_is_refused() -> None:
    graph = ColumnarGraph.from_triples(PLACES)
    for text, reason in (
        ("IF { ?x :partOf ?y }", "ends too early"),
        ("IF { ?x :partOf+ ?y } THEN { ?x :partOf ?y }", "named relations"),
        ("IF { ?x :partOf ?y FILTER(?x > 1) } THEN { ?x :partOf ?y }", "made of triples"),
        ("IF { ?x :partOf ?y } THEN { ?x :partOf ?z }", "does not bind"),
        ("IF { ?x :partOf ?x } THEN { ?x :partOf ?z }", "does not bind"),  # also where nothing follows
        ('IF { ?x :partOf "a" } THEN { ?x :partOf ?x }', "about nodes"),
    ):
        with pytest.raises(PathQueryInvalid, match=reason):
            paths(graph, QUERY, rules=text)
    with pytest.raises(RelationNotFound, match="'nope'"):
        paths(graph, QUERY, rules="IF { ?x :nope ?y } THEN { ?x :partOf ?y }")


RULES = [
    "IF { ?x :r ?y . ?y :s ?z } THEN { ?x :r ?z }",
    "IF { ?x :r ?y } THEN { ?y :s ?x }",
    "IF { ?x :s ?y . ?y :s ?z } THEN { ?x :s ?z }",
    "IF { ?x :r ?y . ?x :s ?y } THEN { ?x :both ?y }",
    "IF { ?x :both ?y . ?y :r ?x } THEN { ?x :s ?x . ?y :r ?y }",
    "IF { ?x :r :n0 } THEN { :n0 :t ?x }",
    "IF { ?x :r ?y . ?z :s ?y . ?z :t ?x } THEN { ?x :t ?z }",
    "IF { ?x ^:r ?y . ?x :r ?x } THEN { ?x :s ?y }",
]


@pytest.mark.parametrize("seed", range(40))
def test_random_rules_against_a_plain_closure(seed: int) -> None:
    chance = random.Random(seed)
    nodes = [f"n{number}" for number in range(chance.randint(2, 6))]
    facts = {(chance.choice(nodes), chance.choice("rst"), chance.choice(nodes)) for _ in range(chance.randint(3, 9))}
    facts |= {("n0", relation, "n1") for relation in "rst"}
    rules = chance.sample(RULES, chance.randint(1, 5))
    text = "\n".join([*rules, "IF { ?x :r ?y . ?x :s ?y } THEN { ?x :both ?y }"])
    graph = ColumnarGraph.from_triples(sorted(facts))
    inferred = Inferred(graph, parse_rules(text))
    batch = inferred.graph.edges(inferred.graph.numbers(list(inferred.graph.entities())))
    found = {
        (head, inferred.graph.relations[relation], tail)
        for head, relation, tail in zip(
            inferred.graph.ids(batch.head), batch.relation.tolist(), inferred.graph.ids(batch.tail), strict=True
        )
    }
    assert found == closure(facts, text)


def closure(facts: set[tuple[str, str, str]], text: str) -> set[tuple[str, str, str]]:
    """Apply all rules to all facts, trying every node for every variable, until nothing follows."""
    nodes = sorted({end for head, _, tail in facts for end in (head, tail)})
    known = set(facts)
    parsed = []
    for line in text.splitlines():
        parts = [part.strip(" {}").split(" . ") for part in line.removeprefix("IF").split("THEN")]
        parsed.append([[each.split() for each in part] for part in parts])

    def fact(triple: list[str], values: dict[str, str]) -> tuple[str, str, str]:
        one, relation, other = (values.get(each, each.removeprefix(":")) for each in triple)
        return (other, relation[2:], one) if relation.startswith("^") else (one, relation, other)

    while True:
        before = len(known)
        for when, then in parsed:
            names = sorted({each for triple in when for each in triple if each.startswith("?")})
            for choice in product(nodes, repeat=len(names)):
                values = dict(zip(names, choice, strict=True))
                if all(fact(triple, values) in known for triple in when):
                    known |= {fact(triple, values) for triple in then}
        if len(known) == before:
            return known
