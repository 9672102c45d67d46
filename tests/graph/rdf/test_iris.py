"""Ids, labels and IRIs turn into each other without loss."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byokg.graph.rdf.terms import (
    EDGE,
    NODE,
    TERM,
    Prefixes,
    decode,
    encode,
    fallback_name,
    is_iri,
    local_name,
    node_id,
    node_iri,
    term_iri,
)
from tests.graph.contract import STRANGE_IDS, STRANGE_RELATIONS

any_text = st.text(st.characters(exclude_categories=["Cs"]))


@given(any_text)
def test_any_text_is_encoded_and_back(text: str) -> None:
    assert decode(encode(text)) == text
    assert node_id(node_iri(text)) == text
    assert Prefixes().label(term_iri(text)) == text


@given(st.lists(any_text, min_size=2, max_size=2, unique=True))
def test_different_ids_have_different_iris(texts: list[str]) -> None:
    assert node_iri(texts[0]) != node_iri(texts[1])


@given(any_text)
def test_every_node_iri_can_be_stored(text: str) -> None:
    pyoxigraph = pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'byokg[sparql]'")
    assert pyoxigraph.NamedNode(node_iri(text)).value == node_iri(text)


@pytest.mark.parametrize("text", [*STRANGE_IDS, *STRANGE_RELATIONS, "", ".", "-", "a.", "100%", "a%20b"])
def test_strange_texts_are_encoded_and_back(text: str) -> None:
    assert decode(encode(text)) == text


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        ("Q90", "Q90"),
        ("people.person.parents", "people.person.parents"),
        ("New York", "New%20York"),
        ("рядом", "рядом"),
        ("東京", "東京"),
        (".a.", "%2Ea%2E"),
        ("-a-", "%2Da%2D"),
        ("a/b:c~", "a%2Fb%3Ac%7E"),
        ("50%", "50%25"),
    ],
)
def test_what_reads_well_stays_as_it_is(text: str, encoded: str) -> None:
    assert encode(text) == encoded


@pytest.mark.parametrize(
    "iri",
    [
        "http://dbpedia.org/resource/New_York",
        "https://example.org:8080/a/b?c=d&e=%20#f",
        "urn:isbn:0451450523",
        "mailto:ann@example.org",
        "http://example.org/ü/東京",
    ],
)
def test_an_id_that_is_an_iri_is_its_own(iri: str) -> None:
    assert is_iri(iri)
    assert node_iri(iri) == iri


@pytest.mark.parametrize(
    "text",
    [
        *["New York", "a|b", "", "plain", "a:", "c:\\file"],
        *["http://a b", "http://x/[1]", "http://x/%zz", "http://x:port/"],
        *[NODE + "x", TERM + "x", EDGE + "1"],
    ],
)
def test_an_id_that_is_none_becomes_one(text: str) -> None:
    assert node_iri(text) == NODE + encode(text)
    assert node_id(node_iri(text)) == text


@pytest.mark.parametrize(
    ("iri", "name"),
    [
        ("http://dbpedia.org/ontology/birthPlace", "birthPlace"),
        ("http://example.org/x#City", "City"),
        ("urn:example:City", "City"),
        ("http://example.org/S%C3%A3o", "São"),
        ("http://example.org/%FF", "%FF"),
        ("http://example.org/", "http://example.org/"),
        (term_iri("a type"), "a type"),
    ],
)
def test_the_local_name_is_the_end(iri: str, name: str) -> None:
    assert local_name(iri) == name


def test_a_node_without_a_name_is_named_after_its_iri() -> None:
    assert fallback_name("http://dbpedia.org/resource/New_York") == "New York"
    assert fallback_name(node_iri("under_score")) == "under_score"


# Prefixes


@pytest.mark.parametrize(
    ("iri", "label", "spelled"),
    [
        ("http://dbpedia.org/ontology/birthPlace", "dbo:birthPlace", "dbo:birthPlace"),
        ("http://unknown.org/p", "http://unknown.org/p", "<http://unknown.org/p>"),
        ("http://dbpedia.org/ontology/", "http://dbpedia.org/ontology/", "<http://dbpedia.org/ontology/>"),
        ("http://dbpedia.org/ontology/a(b)", "http://dbpedia.org/ontology/a(b)", "<http://dbpedia.org/ontology/a(b)>"),
        (term_iri("directed by"), "directed by", "kg:directed%20by"),
    ],
)
def test_labels_are_short_where_a_prefix_fits(iri: str, label: str, spelled: str) -> None:
    prefixes = Prefixes()
    assert prefixes.label(iri) == label
    assert prefixes.spelled(iri) == spelled
    assert prefixes.expand(label) == iri


def test_declared_prefixes_come_first_and_stay_unambiguous() -> None:
    prefixes = Prefixes().with_declared(
        {
            "dbo": "http://mine.org/",
            "o": "http://dbpedia.org/ontology/",
            "": "http://empty.org/v/",
            "node": "http://n.org/",
        }
    )
    assert prefixes.label("http://mine.org/x") == "dbo:x"
    assert prefixes.label("http://dbpedia.org/ontology/x") == "o:x"
    assert prefixes.label("http://empty.org/v/x") == "v:x"
    assert prefixes.label("http://n.org/x") == "n:x"
    assert prefixes.namespaces["node"] == NODE
    assert len(set(prefixes.namespaces.values())) == len(prefixes.namespaces)


def test_new_namespaces_are_named_after_their_last_word_and_numbered() -> None:
    iris = ["http://a.org/onto/p", "http://b.org/onto#p", "http://c.org/2024/p", "http://d.org/http/p", "urn:x:p"]
    prefixes = Prefixes().covering(iris)
    assert [prefixes.label(iri) for iri in iris] == ["onto:p", "onto2:p", "c:p", "http2:p", "urn:x:p"]
    assert [prefixes.expand(prefixes.label(iri)) for iri in iris] == iris
