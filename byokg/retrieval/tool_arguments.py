"""What the tools over a graph take, beside the requests of BFS-QL."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from byokg.graph.bfsql.request import Strict
from byokg.types import Language


class SchemaArguments(Strict):
    """Arguments of `describe_schema`."""

    question: str = Field(
        default="", description="Shows the predicates that matter for it first; else the most frequent."
    )


class SearchArguments(Strict):
    """Arguments of `search_entities`."""

    query: str = Field(
        min_length=1, description="A name, an alias or an id, such as Marie Curie; no type, no question."
    )
    entity_types: tuple[str, ...] = Field(default=(), description="Nodes of these types only; empty for all.")
    limit: int = Field(default=10, ge=1, le=50, description="Nodes at most.")


class EntityArguments(Strict):
    """Arguments of `describe_entity`."""

    id: str = Field(description="Id of a node.")


class EntitiesArguments(Strict):
    """Arguments of `describe_entities`."""

    ids: tuple[str, ...] = Field(min_length=1, max_length=100, description="Ids of nodes.")


class PathArguments(Strict):
    """Arguments of `shortest_paths`."""

    sources: tuple[str, ...] = Field(min_length=1, max_length=10, description="Ids of nodes where paths start.")
    targets: tuple[str, ...] = Field(min_length=1, max_length=10, description="Ids of nodes where paths end.")
    k: int = Field(
        default=3, ge=1, le=50, description="Paths for each pair of a source and a target, the shortest first."
    )
    max_hops: int = Field(default=4, ge=1, le=8, description="Edges in a path at most.")
    predicates: tuple[str, ...] = Field(default=(), description="Walk edges of these predicates only; empty for all.")
    direction: Literal["both", "out", "in"] = Field(
        default="both", description="Walk edges both ways, from subject to object, or back."
    )


class QueryArguments(Strict):
    """Arguments of `run_query`."""

    query: str = Field(min_length=1, description="One query that only reads.")
    language: Language | None = Field(default=None, description="Needed only where the graph takes several.")
    max_rows: int = Field(default=100, ge=1, le=1000, description="Rows at most.")
