"""Names in Cypher text."""

from __future__ import annotations

from byokg.graph.servers.cypher_schema import MAX_WRITTEN, edge_pattern, node_pattern, quoted, union_all, writable


def test_a_name_cannot_leave_its_backticks() -> None:
    assert quoted("plain") == "`plain`"
    assert quoted("a`]->() DETACH DELETE n //") == "`a``]->() DETACH DELETE n //`"
    assert quoted("``") == "``````"


def test_a_name_that_neo4j_would_decode_is_not_written() -> None:
    assert writable("directed by 😀\n`x`")
    assert not writable("a\\u0060]-() DELETE n //")
    assert not writable("")


def test_labels_and_relations_are_written_where_that_is_safe_and_otherwise_passed_as_parameters() -> None:
    assert node_pattern("n", "Data Set", "p") == "(n:`Data Set`)"
    assert node_pattern("n", "\\u0060", "p") == "(n) WHERE $p IN labels(n)"
    assert edge_pattern("a", "b", None, "p") == "(a)-[r]->(b)"
    assert edge_pattern("a", "b", ["x", "y z"], "p", inverse=True) == "(a)<-[r:`x`|`y z`]-(b)"
    assert edge_pattern("a", "b", ["x", "\\u0060"], "p") == "(a)-[r]->(b) WHERE type(r) IN $p"
    many = [f"r{number}" for number in range(MAX_WRITTEN + 1)]
    assert edge_pattern("a", "b", many, "p") == "(a)-[r]->(b) WHERE type(r) IN $p"


def test_queries_are_joined_so_that_no_row_is_lost() -> None:
    assert union_all(["RETURN 1 AS x", "RETURN 1 AS x"]) == "RETURN 1 AS x\nUNION ALL\nRETURN 1 AS x"
