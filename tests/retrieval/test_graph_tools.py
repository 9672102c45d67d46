"""Tests of `byokg.retrieval.graph_tools` and `byokg.retrieval.graph_tools`."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from byokg.errors import ConfigError, QueryRefused, RelationNotFound, RequestInvalid
from byokg.graph.bfsql.protocol import compact
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.engines.arcadedb import ArcadeStore
from byokg.graph.schema_text import SchemaRenderer
from byokg.index.embedders import StaticEmbedder
from byokg.retrieval.graph_tools import GraphTools, langchain_tools
from byokg.text.names import estimate_tokens
from byokg.types import EntityId, Node
from tests.graph.bfsql.graphs import biomedical
from tests.graph.contract import edge, node

NAMES = [
    "describe_schema",
    "search_entities",
    "bfs_query",
    "neighbors",
    "describe_entity",
    "intersect_subgraphs",
    "shortest_paths",
    "find_values",
]


@pytest.fixture(scope="module")
def tools() -> GraphTools:
    return GraphTools(biomedical())


@pytest.fixture(scope="module")
def queryable(arcade_process: ArcadeStore) -> GraphTools:
    arcade_process.replace(biomedical())
    return GraphTools(arcade_process, queries=[arcade_process])


def hub(spokes: int) -> ColumnarGraph:
    """Return a graph of one node with many neighbours of long names."""
    return ColumnarGraph.from_records(
        [node("hub"), *(node(f"spoke number {at}", "Spoke") for at in range(spokes))],
        [edge("hub", "r", f"spoke number {at}") for at in range(spokes)],
    )


def test_values_are_found_with_property_type_and_nodes() -> None:
    nodes = [node("o1", "Officer", badge="70-5119724"), node("o2", "Officer", badge="11-2345678")]
    tools = GraphTools(ColumnarGraph.from_records(nodes, []))
    (match,) = tools.call("find_values", {"query": "70-5119742", "properties": ["badge"]})["matches"]
    assert (match["entity_type"], match["property"], match["value"]) == ("Officer", "badge", "70-5119724")
    assert match["nodes"] == [{"id": "o1", "name": "o1"}] and match["score"] < 1


def test_values_of_edges_are_found_with_property_and_relation() -> None:
    nodes = [node("o1", "Officer", badge="70-5119724"), node("o2", "Officer", badge="11-2345678")]
    tools = GraphTools(ColumnarGraph.from_records(nodes, [edge("o1", "KNOWS", "o2", met="Leeds Station")]))
    (match,) = tools.call("find_values", {"query": "Leeds Staton"})["matches"]
    assert match.pop("score") < 1
    assert match == {"relation": "KNOWS", "property": "met", "value": "Leeds Station", "count": 1}


def test_a_graph_without_properties_has_no_tool_for_values() -> None:
    assert "find_values" not in GraphTools(hub(3)).tools


class TestTheTools:
    def test_there_is_no_run_query_where_nothing_runs_queries(self, tools: GraphTools, queryable: GraphTools) -> None:
        assert list(tools.tools) == NAMES
        assert list(queryable.tools) == [*NAMES, "run_query"]

    def test_each_has_a_description_and_a_short_schema_without_nulls(self, queryable: GraphTools) -> None:
        for tool in queryable.tools.values():
            for schema in (tool.input_schema, tool.output_schema):
                jsonschema.Draft202012Validator.check_schema(schema)
                assert "anyOf" not in json.dumps(schema)
            assert tool.description and len(tool.input_schema["properties"]) <= 8

    def test_all_of_them_together_take_two_thousand_tokens(self, arcade_process: ArcadeStore) -> None:
        tools = GraphTools(arcade_process, queries=[arcade_process], path_queries=True)
        listed = [(tool.name, tool.description, tool.input_schema, tool.output_schema) for tool in tools.tools.values()]
        assert len(listed) == 10 and estimate_tokens(compact(listed)) <= 2000

    def test_results_keep_to_what_they_are_said_to_hold(self, tools: GraphTools) -> None:
        calls: dict[str, dict[str, Any]] = {
            "describe_schema": {},
            "search_entities": {"query": "cushing"},
            "bfs_query": {"seeds": ["PUB:4", "nobody"]},
            "neighbors": {"id": "PUB:4"},
            "describe_entity": {"id": "nobody"},
            "intersect_subgraphs": {"seeds": ["PUB:3", "PUB:4"]},
            "shortest_paths": {"sources": ["PUB:3"], "targets": ["PUB:4"]},
            "find_values": {"query": "2020"},
        }
        for name, arguments in calls.items():
            result = tools.call(name, arguments)
            jsonschema.validate(result, tools.tools[name].output_schema)
            assert set(tools.tools[name].properties) <= set(result), name

    def test_calls_take_json_text_too(self, tools: GraphTools) -> None:
        assert tools.call("describe_entity", '{"id": "PUB:1"}') == tools.call("describe_entity", {"id": "PUB:1"})

    def test_an_unknown_tool_is_answered_with_those_there_are(self, tools: GraphTools) -> None:
        with pytest.raises(RequestInvalid, match="no tool 'drop_graph'; there are describe_schema"):
            tools.call("drop_graph", {})

    def test_a_budget_that_holds_nothing_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="budget_tokens=10 leaves no room"):
            GraphTools(biomedical(), budget_tokens=10)

    def test_results_keep_to_the_budget_and_say_what_is_missing(self) -> None:
        graph = hub(400)
        tools = GraphTools(graph, budget_tokens=500)
        everyone = list(graph.entities())
        results: dict[str, tuple[dict[str, Any], str]] = {
            "neighbors": ({"id": "hub"}, "truncated"),
            "describe_schema": ({"question": "spoke"}, "predicates"),
            "bfs_query": ({"seeds": ["hub"], "max_hops": 1}, "truncated"),
            "intersect_subgraphs": ({"seeds": everyone[1:3], "k": 2}, "truncated"),
            "shortest_paths": ({"sources": everyone[1:4], "targets": everyone[4:9]}, "truncated"),
            "search_entities": ({"query": "spoke number 1", "limit": 50}, "left_out"),
        }
        for name, (arguments, said) in results.items():
            result = tools.call(name, arguments)
            assert result[said], name
            assert estimate_tokens(json.dumps(result, separators=(",", ":"))) <= 500, name

    def test_what_one_node_says_is_cut_to_the_budget_with_a_word_on_how_much(self) -> None:
        graph = ColumnarGraph.from_records([node("a", text="word " * 4000), node("b")], [edge("a", "r", "b")])
        tools = GraphTools(graph, budget_tokens=500)
        calls: dict[str, dict[str, Any]] = {
            "describe_entity": {"id": "a"},
            "neighbors": {"id": "a"},
            "bfs_query": {"seeds": ["a"], "max_hops": 1, "budget_tokens": 10**9},
            "search_entities": {"query": "a"},
        }
        for name, arguments in calls.items():
            text = json.dumps(tools.call(name, arguments), separators=(",", ":"), ensure_ascii=False)
            assert estimate_tokens(text) <= 500, name
            assert "more characters)" in text or name == "search_entities"

    def test_many_unknown_ids_fit_too(self) -> None:
        tools = GraphTools(hub(3))
        result = tools.call("bfs_query", {"seeds": ["hub", *(f"n{at}" for at in range(99))], "max_hops": 1})
        shown = len(result["errors"])
        assert result["node_count"] == 4 and 0 < shown < 99
        assert result["warnings"] == [f"{99 - shown} more seeds are not in the graph"]
        assert estimate_tokens(compact(result)) <= 1500

    def test_a_request_with_a_budget_of_its_own_keeps_to_that(self, tools: GraphTools) -> None:
        request = {"seeds": ["DIS:cushing-syndrome"], "max_hops": 2}
        assert "truncated" not in tools.call("bfs_query", {**request, "topology_only": True, "budget_tokens": 4000})
        assert estimate_tokens(compact(tools.call("bfs_query", request))) <= 1500
        assert "truncated" in tools.call("bfs_query", {**request, "budget_tokens": 300})


class TestDescribeSchema:
    def test_types_and_predicates_come_with_counts_ends_and_properties(self, tools: GraphTools) -> None:
        result = tools.call("describe_schema", {})
        assert result["entity_types"][:2] == [
            {"entity_type": "Drug", "count": 7, "properties": []},
            {"entity_type": "Gene", "count": 7, "properties": []},
        ]
        authored = next(each for each in result["predicates"] if each["predicate"] == "AUTHORED")
        assert authored == {
            "predicate": "AUTHORED",
            "count": 6,
            "subject_types": ["Person"],
            "object_types": ["Publication"],
            "properties": ["confidence", "provenance"],
        }
        assert len(result["predicates"]) == 11 and "left_out" not in result

    def test_what_matters_for_a_question_comes_first_and_the_rest_is_counted(self) -> None:
        store = biomedical()
        tools = GraphTools(store, schema=SchemaRenderer(store.schema(), StaticEmbedder()), budget_tokens=300)
        result = tools.call("describe_schema", {"question": "Which symptoms does it have?"})
        assert result["predicates"][0]["predicate"] == "HAS_SYMPTOM"
        shown = len(result["predicates"])
        assert result["left_out"]["predicates"] == 11 - shown


class TestSearchEntities:
    def test_names_are_found_approximately_best_first(self, tools: GraphTools) -> None:
        matches = tools.call("search_entities", {"query": "cushing sindrome"})["matches"]
        assert matches[0]["id"] == "DIS:cushing-syndrome"
        assert matches[0]["entity_type"] == "Disease" and 0.7 <= matches[0]["score"] < 1

    def test_types_narrow_it(self, tools: GraphTools) -> None:
        request = {"query": "cushing syndrome", "entity_types": ["Publication"]}
        assert {each["id"] for each in tools.call("search_entities", request)["matches"]} <= {"PUB:1", "PUB:2"}

    def test_a_type_is_found_behind_many_namesakes_of_another(self) -> None:
        # 80 towns of that name, each with an edge, and one ship without
        towns = [Node(EntityId(f"t{at}"), "Washington", "Town") for at in range(80)]
        ship = Node(EntityId("ship"), "Washington", "Ship")
        tools = GraphTools(
            ColumnarGraph.from_records([node("hub"), *towns, ship], [edge(town.id, "in", "hub") for town in towns])
        )
        found = tools.call("search_entities", {"query": "Washington", "entity_types": ["Ship"]})
        assert [each["id"] for each in found["matches"]] == ["ship"]

    def test_a_name_that_is_nowhere_has_no_matches(self, tools: GraphTools) -> None:
        assert tools.call("search_entities", {"query": "qqqq"}) == {"query": "qqqq", "matches": []}


class TestBfsQuery:
    def test_a_name_that_one_node_has_stands_for_its_id(self, tools: GraphTools) -> None:
        named, given = (
            tools.call("bfs_query", {"seeds": [seed], "max_hops": 1})
            for seed in ("cushing disease", "DIS:cushing-disease")
        )
        assert named["nodes"] == given["nodes"] and "errors" not in named

    def test_a_name_that_several_nodes_have_is_answered_with_them(self) -> None:
        nodes = [Node(EntityId("a"), "Linz"), Node(EntityId("b"), "Linz")]
        tools = GraphTools(ColumnarGraph.from_records(nodes, [edge("a", "r", "b")]))
        (error,) = tools.call("bfs_query", {"seeds": ["Linz"], "max_hops": 1})["errors"]
        assert error["message"] == "several nodes have the name 'Linz'; use the id of one of the nearest nodes"
        assert [one["id"] for one in error["nearest"]] == ["a", "b"]

    def test_another_name_is_answered_with_the_nearest_nodes(self, tools: GraphTools) -> None:
        (error,) = tools.call("bfs_query", {"seeds": ["Cushings disease"], "max_hops": 1})["errors"]
        assert error["nearest"][0] == {"id": "DIS:cushing-disease", "entity_type": "Disease", "name": "Cushing disease"}


class TestDescribe:
    def test_a_node_comes_with_its_properties_and_the_values_of_its_predicates(self, tools: GraphTools) -> None:
        result = tools.call("describe_entity", {"id": "PUB:4"})
        assert result["year"] == 2021 and result["name"] == "Blood pressure after remission"
        assert [(each["predicate"], each["direction"], each["count"]) for each in result["values"]] == [
            ("AUTHORED", "in", 1),
            ("DISCUSSES", "out", 2),
        ]
        assert [value["name"] for value in result["values"][0]["values"]] == ["Sara Lindholm"]
        assert "truncated" not in result

    def test_many_values_are_counted_and_the_first_are_shown(self) -> None:
        [group] = GraphTools(hub(50)).call("describe_entity", {"id": "hub"})["values"]
        assert group["count"] == 50 and len(group["values"]) == 3

    def test_an_unknown_id_is_reported(self, tools: GraphTools) -> None:
        assert tools.call("describe_entity", {"id": "PUB:99"})["errors"][0]["seed"] == "PUB:99"


class TestNeighbors:
    def test_values_come_with_what_their_edges_say(self, tools: GraphTools) -> None:
        result = tools.call("neighbors", {"id": "PERSON:ferrand", "predicates": "AUTHORED"})
        [group] = result["values"]
        assert (group["predicate"], group["direction"], group["count"]) == ("AUTHORED", "out", 2)
        assert [(each["id"], each["confidence"]) for each in group["values"]] == [("PUB:1", 0.97), ("PUB:2", 0.99)]
        assert group["values"][0]["provenance"][0]["source_doc"] == "PUB:1"

    @pytest.mark.parametrize("budget", [200, 300, 1000])
    def test_pages_put_together_are_all_values_each_once(self, budget: int) -> None:
        graph = hub(120)
        tools, request = GraphTools(graph), {"id": "hub", "budget_tokens": budget}
        page = tools.call("neighbors", request)
        found = [value["id"] for group in page["values"] for value in group["values"]]
        while "truncated" in page:
            assert estimate_tokens(compact(page)) <= budget
            page = tools.call("neighbors", {**request, "cursor": page["truncated"]["cursor"]})
            found += [value["id"] for group in page["values"] for value in group["values"]]
        assert found == sorted(f"spoke number {at}" for at in range(120))

    def test_a_direction_leaves_the_other_one_out(self, tools: GraphTools) -> None:
        assert tools.call("neighbors", {"id": "PUB:4", "direction": "in"})["values"][0]["direction"] == "in"
        assert len(tools.call("neighbors", {"id": "PUB:4", "direction": "in"})["values"]) == 1

    def test_a_predicate_s_inverse_twin_is_listed_as_well(self) -> None:
        films = [(f"f{at}", "film.directed_by", f"d{at}") for at in range(20)]
        back = [(director, "director.film", film) for film, _, director in films]
        tools = GraphTools(ColumnarGraph.from_triples([*films, *back[1:], ("f20", "film.directed_by", "d1")]))
        for asked in ("director.film", "film.directed_by"):
            found = tools.call("neighbors", {"id": "d1", "predicates": [asked]})["values"]
            assert {value["id"] for group in found for value in group["values"]} == {"f1", "f20"}
        one_way = tools.call("neighbors", {"id": "d1", "predicates": ["director.film"], "direction": "out"})
        assert len(one_way["values"]) == 1

    def test_an_unknown_predicate_is_warned_of_with_the_nearest_and_the_others_are_answered(
        self, tools: GraphTools
    ) -> None:
        result = tools.call("neighbors", {"id": "PUB:4", "predicates": ["DISCUSS", "AUTHORED"]})
        assert [each["predicate"] for each in result["values"]] == ["AUTHORED"]
        assert "nearest: 'DISCUSSES'" in result["warnings"][0]
        assert tools.call("neighbors", {"id": "PUB:4", "predicates": ["DISCUSS"]})["values"] == []

    def test_a_cursor_of_another_graph_is_refused(self) -> None:
        cursor = GraphTools(hub(120)).call("neighbors", {"id": "hub", "budget_tokens": 200})["truncated"]["cursor"]
        with pytest.raises(RequestInvalid, match="another graph"):
            GraphTools(hub(121)).call("neighbors", {"id": "hub", "cursor": cursor})


class TestShortestPaths:
    def test_paths_show_nodes_in_order_and_edges_as_stored(self, tools: GraphTools) -> None:
        request = {"sources": ["PERSON:ferrand"], "targets": ["DRUG:osilodrostat"], "k": 1}
        result = tools.call("shortest_paths", request)
        (path,) = result["paths"]
        assert path["nodes"] == ["PERSON:ferrand", "PUB:2", "DRUG:osilodrostat"]
        assert [(each["subject"], each["predicate"], each["object"]) for each in path["edges"]] == [
            ("PERSON:ferrand", "AUTHORED", "PUB:2"),
            ("PUB:2", "DISCUSSES", "DRUG:osilodrostat"),
        ]
        assert path["edges"][1]["provenance"][0]["source_doc"] == "PUB:2"

    def test_nodes_without_a_path_are_named(self, tools: GraphTools) -> None:
        request = {"sources": ["PUB:1"], "targets": ["PATH:camp"], "max_hops": 1}
        assert tools.call("shortest_paths", request) == {
            "paths": [],
            "truncated": False,
            "unconnected": [{"source": "PUB:1", "target": "PATH:camp"}],
        }

    def test_an_unknown_predicate_is_refused_with_the_nearest(self, tools: GraphTools) -> None:
        with pytest.raises(RelationNotFound, match="TREATS"):
            tools.call("shortest_paths", {"sources": ["PUB:1"], "targets": ["PUB:2"], "predicates": ["TREAT"]})


class TestRunQuery:
    def test_rows_come_back(self, queryable: GraphTools) -> None:
        query = "MATCH (d:Drug)-[:TREATS]->(x {name: 'Acromegaly'}) RETURN d.name AS drug ORDER BY drug"
        assert queryable.call("run_query", {"query": query}) == {
            "columns": ["drug"],
            "rows": [["Octreotide"], ["Pasireotide"]],
            "truncated": False,
        }

    def test_names_that_the_graph_does_not_have_are_noted_with_the_nearest(self, queryable: GraphTools) -> None:
        query = "MATCH (d:Drug)-[:TREAT]->(x) RETURN d.name"
        assert any("TREATS" in note for note in queryable.call("run_query", {"query": query})["notes"])
        query = "MATCH (d:Disease {name: 'Acromegalie'}) RETURN d.name"
        assert queryable.call("run_query", {"query": query})["notes"] == [
            "no node is called 'Acromegalie'; nearest: 'Acromegaly'"
        ]

    def test_more_rows_than_asked_for_are_cut_and_said(self, queryable: GraphTools) -> None:
        result = queryable.call("run_query", {"query": "MATCH (d:Drug) RETURN d.name", "max_rows": 2})
        assert len(result["rows"]) == 2 and result["truncated"] is True

    def test_a_query_that_writes_is_refused(self, queryable: GraphTools) -> None:
        with pytest.raises(QueryRefused):
            queryable.call("run_query", {"query": "MATCH (n) DELETE n"})

    def test_a_language_that_the_graph_does_not_take_is_refused(self, queryable: GraphTools) -> None:
        with pytest.raises(RequestInvalid, match="does not take sparql; it takes cypher"):
            queryable.call("run_query", {"query": "SELECT * {}", "language": "sparql"})


class TestLangChain:
    def test_every_tool_is_there_with_its_schema(self, queryable: GraphTools) -> None:
        found = langchain_tools(queryable)
        assert [tool.name for tool in found] == list(queryable.tools)
        for tool in found:
            assert tool.args_schema == queryable.tools[tool.name].input_schema

    def test_an_answer_is_json(self, tools: GraphTools) -> None:
        run = {tool.name: tool for tool in langchain_tools(tools)}
        request = {"seeds": ["PUB:1"], "max_hops": 1, "node_filter": {"entity_types": ["Disease"]}}
        assert json.loads(run["bfs_query"].invoke(request)) == tools.call("bfs_query", request)

    def test_wrong_arguments_come_back_as_text_that_says_what_to_do(self, tools: GraphTools) -> None:
        run = {tool.name: tool for tool in langchain_tools(tools)}
        said = run["bfs_query"].invoke({"seedz": ["PUB:1"]})
        assert "seeds: missing" in said and "did you mean 'seeds'?" in said
        assert json.loads(run["bfs_query"].invoke({"seeds": "PUB:1", "hops": 0}))["node_count"] == 1

    def test_a_failure_comes_back_as_text(self, queryable: GraphTools) -> None:
        run = {tool.name: tool for tool in langchain_tools(queryable)}
        assert "refused at line 1" in run["run_query"].invoke({"query": "MATCH (n) DELETE n"})

    def test_a_call_of_a_chat_model_gets_a_message(self, tools: GraphTools) -> None:
        run = {tool.name: tool for tool in langchain_tools(tools)}
        call = {"name": "describe_entity", "args": {"id": "PUB:4"}, "id": "call 1", "type": "tool_call"}
        message = run["describe_entity"].invoke(call)
        assert (message.tool_call_id, message.status) == ("call 1", "success")
        assert json.loads(message.content)["id"] == "PUB:4"
