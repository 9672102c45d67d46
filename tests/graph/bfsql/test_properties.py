"""What holds of BFS-QL on any graph, checked on graphs that hypothesis draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from byokg.graph.bfsql.engine import bfs_query, intersect_subgraphs
from byokg.graph.bfsql.protocol import BfsRequest, IntersectRequest
from byokg.graph.columnar.graph import ColumnarGraph
from byokg.graph.store import GraphStore
from tests.graph.bfsql.graphs import Drawn, drawn, filters, hops, seeds

checked = settings(deadline=None, max_examples=30)

Json = dict[str, Any]


def query(store: GraphStore, **request: Any) -> Json:
    return bfs_query(store, BfsRequest.model_validate(request))


def node_ids(response: Mapping[str, Any]) -> list[str]:
    return [node["id"] for node in response["nodes"]]


def edge_keys(response: Mapping[str, Any]) -> Counter[tuple[str, str, str]]:
    return Counter((edge["subject"], edge["predicate"], edge["object"]) for edge in response["edges"])


@checked
@given(drawn(), seeds, hops)
def test_the_subgraph_is_what_a_plain_search_finds_with_every_edge_among_it(
    graph: Drawn, seeds: list[str], hops: int
) -> None:
    response = query(graph.store, seeds=seeds, max_hops=hops)
    reached = graph.within(seeds, hops)
    assert sorted(node_ids(response)) == sorted(reached)
    inside = [edge for edge in graph.edges if edge.head in reached and edge.tail in reached]
    assert sorted(edge["number"] for edge in response["edges"]) == sorted(edge.properties["number"] for edge in inside)
    assert (response["node_count"], response["edge_count"]) == (len(reached), len(inside))


@checked
@given(drawn(), seeds, hops, filters)
def test_filters_never_change_which_nodes_and_edges_are_there(
    graph: Drawn, seeds: list[str], hops: int, filters: Json
) -> None:
    plain = query(graph.store, seeds=seeds, max_hops=hops)
    filtered = query(graph.store, seeds=seeds, max_hops=hops, **filters)
    assert sorted(node_ids(filtered)) == sorted(node_ids(plain))
    assert edge_keys(filtered) == edge_keys(plain)
    counts = ("node_count", "edge_count")
    assert [filtered[name] for name in counts] == [plain[name] for name in counts]


@checked
@given(drawn(), seeds, hops, st.sets(st.sampled_from("rst")), st.integers(1, 4))
def test_what_a_filter_asks_for_comes_before_all_stubs(
    graph: Drawn, seeds: list[str], hops: int, wanted: set[str], limit: int
) -> None:
    request = {"seeds": seeds, "max_hops": hops, "edge_filter": {"predicates": sorted(wanted)}}
    asked = [edge["predicate"] in wanted for edge in query(graph.store, **request)["edges"]]
    assert asked == sorted(asked, reverse=True)
    first = query(graph.store, **request, max_edges=limit)
    left = first.get("truncated", {}).get("matching_left", 0)
    assert left == max(0, sum(asked) - len(first["edges"]))


@checked
@given(drawn(), seeds, hops, filters, st.integers(1, 3))
def test_what_is_folded_is_all_that_is_not_shown(
    graph: Drawn, seeds: list[str], hops: int, filters: Json, limit: int
) -> None:
    whole = query(graph.store, seeds=seeds, max_hops=hops, **filters)
    page = query(graph.store, seeds=seeds, max_hops=hops, **filters, max_edges=limit)
    left = Counter(edge["predicate"] for edge in whole["edges"]) - Counter(edge["predicate"] for edge in page["edges"])
    folded: Counter[str] = Counter()
    for group in page.get("folded", ()):
        folded[group["predicate"]] += group["count"]
        assert 1 <= len(group["sample"]) <= group["count"]
    assert folded == left


@checked
@given(drawn(), seeds, seeds, hops)
def test_several_seeds_reach_what_each_of_them_reaches(
    graph: Drawn, some: list[str], others: list[str], hops: int
) -> None:
    one, other = (query(graph.store, seeds=each, max_hops=hops) for each in (some, others))
    both = query(graph.store, seeds=[*some, *others], max_hops=hops)
    assert set(node_ids(both)) == set(node_ids(one)) | set(node_ids(other))
    assert edge_keys(both) >= edge_keys(one) | edge_keys(other)


@checked
@given(drawn(), seeds, hops)
def test_more_hops_never_reach_less(graph: Drawn, seeds: list[str], hops: int) -> None:
    near, far = (query(graph.store, seeds=seeds, max_hops=each) for each in (hops, hops + 1))
    assert set(node_ids(near)) <= set(node_ids(far))
    assert edge_keys(near) <= edge_keys(far)


@checked
@given(
    drawn(),
    seeds,
    hops,
    filters,
    st.fixed_dictionaries(
        {},
        optional={
            "limit": st.integers(1, 5),
            "max_nodes": st.integers(1, 5),
            "max_edges": st.integers(1, 5),
            "budget_tokens": st.integers(100, 400),
        },
    ),
)
def test_pages_put_together_are_the_whole(
    graph: Drawn, seeds: list[str], hops: int, filters: Json, bounds: Json
) -> None:
    store = graph.store
    request = {"seeds": seeds, "max_hops": hops, **filters}
    whole = query(store, **request)
    assert "truncated" not in whole
    pages = [query(store, **request, **bounds)]
    while "truncated" in pages[-1]:
        assert pages[-1]["nodes"] or pages[-1]["edges"] or pages[-1]["folded"]
        assert pages[-1]["truncated"]["by"]
        pages.append(query(store, **request, **bounds, cursor=pages[-1]["truncated"]["cursor"]))
    assert [node for page in pages for node in page["nodes"]] == whole["nodes"]
    assert [edge for page in pages for edge in page["edges"]] == whole["edges"]
    shown: set[str] = set()
    for page in pages:
        assert (page["node_count"], page["edge_count"]) == (whole["node_count"], whole["edge_count"])
        shown |= set(node_ids(page))
        assert all({edge["subject"], edge["object"]} <= shown for edge in page["edges"])


@checked
@given(drawn(), seeds, hops, st.integers(0, 5))
def test_neither_the_order_of_records_nor_that_of_seeds_shows(
    graph: Drawn, seeds: list[str], hops: int, seed: int
) -> None:
    nodes, edges = (
        list(graph.nodes),
        list({edge.relation + edge.head + edge.tail: edge for edge in graph.edges}.values()),
    )
    one = query(ColumnarGraph.from_records(nodes, edges), seeds=seeds, max_hops=hops)
    Random(seed).shuffle(nodes)
    Random(seed).shuffle(edges)
    other = query(ColumnarGraph.from_records(nodes, edges), seeds=seeds[::-1], max_hops=hops)
    assert (other["nodes"], other["edges"]) == (one["nodes"], one["edges"])


@checked
@given(drawn(), st.lists(st.sampled_from(["n0", "n1", "n2", "n3"]), min_size=2, max_size=3, unique=True), hops)
def test_an_intersection_is_what_every_seed_reaches_alone(graph: Drawn, seeds: list[str], hops: int) -> None:
    asked = IntersectRequest.model_validate({"seeds": seeds, "k": hops})
    response = intersect_subgraphs(graph.store, asked)
    shared = set.intersection(*(graph.within([seed], hops) for seed in seeds))
    assert set(node_ids(response)) == shared
    inside = [edge for edge in graph.edges if edge.head in shared and edge.tail in shared]
    assert response["edge_count"] == len(inside)
