"""`byokg bfs`: one BFS-QL request. What is heavy is imported when it runs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from byokg.cli.terminal import print_json
from byokg.errors import ConfigError


def bfs(
    place: Annotated[str | None, typer.Argument(metavar="GRAPH", help="A graph's folder, or an address.")] = None,
    request: Annotated[str | None, typer.Argument(metavar="REQUEST", help="JSON; - reads it from input.")] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schemas and exit.")] = False,
) -> None:
    """Print the part of a graph around some nodes, as BFS-QL selects it.

    byokg bfs GRAPH '{"seeds": ["city/paris"], "max_hops": 1}'

    byokg bfs GRAPH '{"seeds": ["Heat"], "max_hops": 2, "edge_filter": {"predicates": ["directed_by"]}, "limit": 50}'

    Seeds are ids; find them with: byokg link GRAPH NAME. Filters decide what is shown in full; the rest are stubs.
    """
    from byokg.graph.bfsql.request import BfsRequest, read_request
    from byokg.graph.bfsql.response import BfsResponse

    if schema:
        print_json({"request": BfsRequest.model_json_schema(), "response": BfsResponse.model_json_schema()})
        return
    if place is None or request is None:
        raise ConfigError('give a graph and a request: byokg bfs GRAPH \'{"seeds": ["ID"], "max_hops": 1}\'')
    from byokg.graph.bfsql.engine import bfs_query
    from byokg.graph.places import opened
    from byokg.retrieval.graph_tools import GraphTools

    asked = read_request(BfsRequest, sys.stdin.read() if request == "-" else request)
    with opened(place) as store:
        print_json(bfs_query(store, asked, GraphTools(store).nearest))
