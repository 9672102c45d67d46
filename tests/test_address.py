from __future__ import annotations

import pytest

from byokg.errors import ConfigError
from byokg.open import SCHEMES, is_address, masked, server_kind


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("neo4j://localhost", "neo4j"),
        ("neo4j+s://host:7687/films", "neo4j"),
        ("bolt+ssc://[::1]:7687", "neo4j"),
        ("Bolt://host", "neo4j"),
        ("neptune-graph://g-abcdefghij", "neptune"),
        ("neptune-db://host:8182", "neptune"),
        ("sparql+https://dbpedia.org/sparql", "sparql"),
        ("sparql+http://localhost:3030/ds?default-graph-uri=mailto:a@b", "sparql"),
    ],
)
def test_the_scheme_says_what_kind_of_server_it_is(address: str, kind: str) -> None:
    assert is_address(address)
    assert server_kind(address) == kind


@pytest.mark.parametrize("place", ["graph", "/a/b", "C:/a", "a:b", "neo4j:/host", ""])
def test_anything_else_is_a_folder(place: str) -> None:
    assert not is_address(place)


def test_an_unknown_scheme_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="no store speaks 'https'") as caught:
        server_kind("https://dbpedia.org/sparql")
    assert all(scheme in str(caught.value) for scheme in SCHEMES)


@pytest.mark.parametrize("user", ["me:s3cret", "me:s3/cr@et", "s3cret", ":s3cret", "me:s3cret:x"])
@pytest.mark.parametrize("scheme", [*SCHEMES, "neo4j+s", "mysql"])
def test_credentials_in_an_address_are_refused_and_not_repeated(scheme: str, user: str) -> None:
    with pytest.raises(ConfigError, match="holds an @") as caught:
        server_kind(f"{scheme}://{user}@host/path")
    assert "s3" not in str(caught.value)


def test_where_credentials_belong_is_said() -> None:
    with pytest.raises(ConfigError, match="NEO4J_PASSWORD"):
        server_kind("neo4j://me:s3cret@host")
    with pytest.raises(ConfigError, match="BYOKG_SPARQL_TOKEN"):
        server_kind("sparql+https://me:s3cret@host")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see neo4j://me:s3cret@host/db now", "see neo4j://…@host/db now"),
        ("GET https://host/q?query=x&apikey=s3cret&limit=1", "GET https://host/q?query=x&apikey=…&limit=1"),
        ("?access_token=s3cret'", "?access_token=…'"),
        ("neo4j://me:s3/c@r:et@host", "neo4j://…@host"),
        ("GET https://s3cret@host/sparql", "GET https://…@host/sparql"),
        (
            "no entity 'http://example.org/a@b' in bolt://host:7687",
            "no entity 'http://example.org/a@b' in bolt://host:7687",
        ),
    ],
)
def test_a_text_is_shown_without_credentials(text: str, shown: str) -> None:
    assert masked(text) == shown
