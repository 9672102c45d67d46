"""Tests of `byokg.graph.bfsql.protocol`."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from byokg.errors import RequestInvalid
from byokg.graph.bfsql.protocol import BfsRequest, IntersectRequest, read_request, shown_schema

BASE = {"seeds": ["a"], "max_hops": 1}


def read(**fields: Any) -> BfsRequest:
    return read_request(BfsRequest, {**BASE, **fields})


def refused(given: Any) -> str:
    with pytest.raises(RequestInvalid) as caught:
        read_request(BfsRequest, given)
    return str(caught.value)


class TestFilters:
    def test_an_omitted_filter_matches_everything(self) -> None:
        assert (read().full_types, read().full_predicates) == (None, None)
        assert read(node_filter={}, edge_filter={}).full_types is None

    def test_a_list_matches_what_is_in_it_and_an_empty_one_nothing(self) -> None:
        assert read(node_filter={"entity_types": ["X", "Y"]}).full_types == frozenset("XY")
        assert read(edge_filter={"predicates": []}).full_predicates == frozenset()

    def test_flat_parameters_say_the_same(self) -> None:
        flat = read(node_types=["X"], predicates=["r"], exclude_node_types=["Z"])
        assert (flat.full_types, flat.full_predicates, flat.excluded_types) == (
            frozenset("X"),
            frozenset("r"),
            frozenset("Z"),
        )

    def test_an_empty_flat_list_is_no_filter(self) -> None:
        assert read(node_types=[], predicates=[]).full_types is None

    def test_a_filter_said_in_both_ways_has_to_be_the_same(self) -> None:
        assert read(node_types=["X"], node_filter={"entity_types": ["X"]}).full_types == frozenset("X")
        assert "node_types and node_filter.entity_types differ" in refused(
            {**BASE, "node_types": ["X"], "node_filter": {"entity_types": ["Y"]}}
        )
        assert "predicates and edge_filter.predicates differ" in refused(
            {**BASE, "predicates": ["r"], "edge_filter": {"predicates": ["s"]}}
        )

    def test_the_lower_of_two_bounds_counts(self) -> None:
        assert read(limit=5, max_nodes=3).most_nodes == 3
        assert read().most_nodes is None


class TestMessages:
    def test_text_that_is_no_json_names_the_place(self) -> None:
        assert "line 1 column 12" in refused('{"seeds": [a]}')

    @pytest.mark.parametrize("text", ["[" * 100_000, ""])
    def test_text_that_only_looks_like_json_is_refused_too(self, text: str) -> None:
        assert "no JSON" in refused(text)

    def test_half_a_character_is_refused_since_it_could_not_be_sent_back(self) -> None:
        assert "half a character" in refused('{"seeds": ["\\ud800"], "max_hops": 1}')

    def test_json_that_is_no_object_gets_an_example(self) -> None:
        assert '["a"] is no JSON object; write one such as {"seeds"' in refused('["a"]')

    def test_a_misspelt_field_gets_the_nearest(self) -> None:
        message = refused({"max_hop": 2})
        assert "seeds: missing" in message
        assert "max_hop: no such field; did you mean 'max_hops'?" in message

    def test_a_field_like_none_gets_all_that_are_known(self) -> None:
        assert "node_filter.xyz: no such field; known are entity_types" in refused({**BASE, "node_filter": {"xyz": 1}})

    def test_a_wrong_value_is_shown(self) -> None:
        assert "max_hops: input should be greater than or equal to 0, not -1" in refused(
            {"seeds": ["a"], "max_hops": -1}
        )
        assert "seeds: should hold 1 or more, not []" in refused({"seeds": [], "max_hops": 1})
        assert 'seeds: should be a list, not {"a": 1}' in refused({"seeds": {"a": 1}, "max_hops": 1})
        assert 'node_filter: should be an object, not ["X"]' in refused({**BASE, "node_filter": ["X"]})

    def test_every_problem_is_said(self) -> None:
        with pytest.raises(RequestInvalid) as caught:
            read_request(BfsRequest, {"max_hops": "two", "limit": 0})
        assert [problem.split(":")[0] for problem in caught.value.problems] == ["seeds", "limit", "max_hops"]

    def test_a_cursor_and_an_offset_are_one_too_many(self) -> None:
        assert "give one of them" in refused({**BASE, "cursor": "n1-e0-0", "offset": 3})

    def test_an_intersection_needs_two_seeds(self) -> None:
        with pytest.raises(RequestInvalid, match="seeds: should hold 2 or more"):
            read_request(IntersectRequest, {"seeds": ["a"], "k": 1})


def test_the_articles_request_and_the_flat_one_are_understood_and_the_first_is_shown() -> None:
    shown = shown_schema(BfsRequest)
    schema = jsonschema.Draft202012Validator({**shown, "additionalProperties": False})
    article = {
        "seeds": ["PERSON:12345", "PERSON:67890"],
        "max_hops": 2,
        "node_filter": {"entity_types": ["Publication", "Disease"]},
        "edge_filter": {"predicates": ["AUTHORED", "DISCUSSES"]},
    }
    flat = {
        **BASE,
        "node_types": ["X"],
        "predicates": ["r"],
        "exclude_node_types": ["Z"],
        "min_mentions": 2,
        "topology_only": True,
        "limit": 10,
        "offset": 20,
    }
    for request in (article, flat):
        assert read_request(BfsRequest, json.dumps(request)) == read_request(BfsRequest, request)
    schema.validate(article)
    assert not schema.is_valid({"max_hops": 1})
    assert len(shown["properties"]) <= 8
    assert not {"anyOf", "null", "$ref", "title"} & set(json.dumps(shown).replace('"', " ").split())


class TestWhatClientsSend:
    def test_objects_and_lists_may_come_as_json_text(self) -> None:
        sent = read(
            seeds='["a", "b"]', node_filter='{"entity_types": "[\\"X\\"]"}', edge_filter='{"predicates": ["r"]}'
        )
        assert (sent.seeds, sent.full_types, sent.full_predicates) == (("a", "b"), frozenset("X"), frozenset("r"))

    def test_a_list_of_one_may_come_as_the_text_in_it(self) -> None:
        assert read(seeds="a, b", node_types="X", predicates="[r").full_predicates == frozenset(["[r"])
        assert read(seeds="a, b").seeds == ("a, b",)

    def test_numbers_may_come_as_text_and_what_is_left_out_as_null(self) -> None:
        assert read(max_hops="2", limit="5", node_filter=None, question=None, cursor=None).max_hops == 2

    @pytest.mark.parametrize("name", ["hops", "depth", "k"])
    def test_other_names_mean_the_same(self, name: str) -> None:
        assert read_request(BfsRequest, {"seed": "a", name: 2, "entity_types": ["X"]}) == read(
            max_hops=2, node_types=["X"]
        )
        assert read_request(IntersectRequest, {"seeds": ["a", "b"], "max_hops": 2}).k == 2

    def test_there_are_bounds_on_seeds(self) -> None:
        assert "seeds: should hold 100 or fewer" in refused({"seeds": [f"n{at}" for at in range(101)], "max_hops": 1})
