"""What users write reaches the engine with names spelled out and parameters in place, and nothing else changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.errors import QueryInvalid, QueryRefused
from byokg.graph.guard.guard import check_sparql
from byokg.graph.guard.sparql import addressable, chooses_graphs, complete
from byokg.graph.rdf.terms import Prefixes
from byokg.types import Cell, EntityId, NodeCell

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
PREFIXES = Prefixes()


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("{ ?x rdfs:label ?y }", f"{{ ?x {LABEL} ?y }}"),
        ("{ ?x rdfs:label|^rdfs:label/rdfs:label* ?y }", f"{{ ?x {LABEL}|^{LABEL}/{LABEL}* ?y }}"),
        ("{ ?x !(rdfs:label) ?y.?y rdfs:label ?z}", f"{{ ?x !({LABEL}) ?y.?y {LABEL} ?z}}"),
        ("{ ?x kg:a.b.c node:New%20York. }", "{ ?x <urn:byokg:term:a.b.c> <urn:byokg:node:New%20York>. }"),
        (r"{ ?x kg:a\.b\-c ?y }", "{ ?x <urn:byokg:term:a.b-c> ?y }"),
        ("{ ?x kg:рядом ?y }", "{ ?x <urn:byokg:term:рядом> ?y }"),
        ("FILTER(DATATYPE(?x) = xsd:date)", "FILTER(DATATYPE(?x) = <http://www.w3.org/2001/XMLSchema#date>)"),
        ("PREFIX rdfs: <http://mine.org/> { ?x rdfs:label ?y }",
         "PREFIX rdfs: <http://mine.org/> { ?x <http://mine.org/label> ?y }"),
        ("prefix : <http://mine.org/> { :a : :b }",
         "prefix : <http://mine.org/> { <http://mine.org/a> <http://mine.org/> <http://mine.org/b> }"),
    ],
)  # fmt: skip
def test_prefixed_names_are_spelled_out(written: str, sent: str) -> None:
    assert complete(written, {}, PREFIXES).text == sent


@pytest.mark.parametrize(
    "text",
    [
        "{ ?x ?p 'rdfs:label ?wanted' }",
        '{ ?x ?p "rdfs:label \\" rdfs:label" }',
        "{ ?x ?p '''rdfs:label ' rdfs:label''' }",
        '{ ?x ?p """a "" rdfs:label\n""" }',
        "{ ?x <http://x.org/rdfs:label> ?y }",
        "# rdfs:label\n{ ?x ?p _:rdfs }",
        "{ ?x unheard:of ?y }",
        "{ ?x ?p 'a'@en-gb }",
        "BASE <http://x.org/> PREFIX p: <rel/> { ?x p:q ?y }",
        # an escape in an IRI, and a quote in a namespace, must not let anything out of a string
        r"PREFIX x: <http://e/'> { ?s <http://e/\u00e9'> ?o ; ?p ' x:a . SERVICE <http://e/> { ?a ?b ?c } # ' }",
    ],
)
def test_everything_else_stays(text: str) -> None:
    assert complete(text, {}, PREFIXES).text == text


def test_parameters_take_the_place_of_their_variables_only() -> None:
    sent = complete("{ ?x ?p ?who. $who ?q '?who' . ?whoever ?r ?s }", {"who": 'a"b'}, PREFIXES)
    assert sent.text == '{ ?x ?p "a\\"b". "a\\"b" ?q \'?who\' . ?whoever ?r ?s }'


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        ("it's\n", '"it\'s\\n"'),
        (True, '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'),
        (-3, '"-3"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        (0.5, '"0.5"^^<http://www.w3.org/2001/XMLSchema#double>'),
        (NodeCell(EntityId("New York"), "NY"), "<urn:byokg:node:New%20York>"),
        (["a", "b"], '"a", "b"'),
    ],
)
def test_parameters_have_a_form_in_sparql(value: str | int | float | NodeCell | list[str], spelled: str) -> None:
    assert complete("?v", {"v": value}, PREFIXES).text == spelled


@pytest.mark.parametrize("value", [None, {"a": 1}])
def test_what_has_no_form_in_sparql_is_refused(value: dict[str, int] | None) -> None:
    with pytest.raises(QueryInvalid, match="'v'"):
        complete("?v", {"v": value}, PREFIXES)


def test_a_parameter_that_is_nowhere_is_refused() -> None:
    with pytest.raises(QueryInvalid, match=r"\?w is nowhere"):
        complete("?v '?w'", {"w": 1}, PREFIXES)


def test_places_lead_back_to_what_was_written() -> None:
    written = "ASK {\n ?x rdfs:label ?y . ?y kg:r ?z ! }"
    sent = complete(written, {}, PREFIXES)
    lines = sent.text.splitlines()
    for mark in ("?y .", "?y <", "?z", "!", "}"):
        column = lines[1].index(mark) + 1
        assert sent.written(2, column) == (2, written.splitlines()[1].index(mark.replace("<", "kg:r")) + 1)
    assert sent.written(1, 5) == (1, 5)


def test_iris_that_cannot_stand_in_a_query_are_known() -> None:
    assert addressable("http://x.org/a")
    assert not any(map(addressable, ["http://x.org/a b", "http://x.org/<", "b0", "http://x.org/{}", "http://x/\n"]))


PIECES = [
    *("'", '"', '"""', "x:a", "<http://e/'>", "<http://e/é'>", "#", "\n", "\\'", "?v", " "),
    " . SERVICE <http://e/> { } ",
]
QUOTES = ["'", '"', "'" * 3, '"' * 3]


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), st.sampled_from(QUOTES))
def test_nothing_that_the_guard_has_seen_in_a_string_gets_out_of_it(text: str, quote: str) -> None:
    query = f"PREFIX x: <http://e/'> SELECT ?s {{ ?s <http://e/\\u00e9'> {quote}{text}{quote} ; x:p ?v {text} }}"
    try:
        sent = complete(check_sparql(query).text, {"v": "' SERVICE <http://e/> '"}, PREFIXES)
    except (QueryRefused, QueryInvalid):
        return  # or ?v stands in a comment or string
    found = []
    try:
        check_sparql(sent.text)
    except QueryRefused as error:  # such as a literal where a subject should be
        found.append(error.found)
    assert "SERVICE" not in found


def test_only_from_chooses_graphs() -> None:
    assert chooses_graphs("SELECT ?from FROM <http://e/g> { ?from ?p 'FROM' }")
    assert not chooses_graphs("SELECT ?from { ?from <http://e/FROM> 'FROM' }")


@pytest.mark.parametrize("value", ["\ud800", NodeCell(EntityId("\udfff"), ""), ["a", "\ud800"]])
def test_half_a_character_is_no_parameter(value: Cell) -> None:
    with pytest.raises(QueryInvalid, match="half of a character"):
        complete("SELECT ?s { ?s ?p ?x }", {"x": value}, Prefixes())
