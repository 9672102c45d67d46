"""What is told of a path or a query that led nowhere: how far it went, and how it could go on."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from byokg.errors import GraphError
from byokg.graph.store import Direction, GraphStore, QueryLimits, Rows
from byokg.graph.traversal import cap, relation_numbers
from byokg.text import normalize_label
from byokg.types import INVERSE, EntityId, Metapath

if TYPE_CHECKING:
    from byokg.graph.guard.tokens import Token

_ONWARDS = 8
"""Relations named that go on from where a path broke off."""

_ENDS, _CAP = 200, 1000
"""Nodes there that are looked at, and edges of one node and relation."""


def path_dead_end(store: GraphStore, relations: Metapath, sources: Sequence[EntityId]) -> str:
    """Say how far a path can be walked from some entities, in any direction, and which relations go on from there."""
    walked: list[str] = []
    nodes = store.numbers(list(dict.fromkeys(sources)))
    for step in relations:
        name = step.removeprefix(INVERSE)
        edges, _ = cap(store.edges(nodes, Direction.BOTH, relation_numbers(store, [name])), _CAP, per_relation=True)
        if not len(edges):
            break
        walked.append(name)
        nodes = np.unique(edges.other)[:_ENDS]
    counts = store.relation_counts(nodes)
    missing = relations[len(walked)] if len(walked) < len(relations) else ""
    wanted = set(normalize_label(missing).split())
    total: Counter[str] = Counter()
    for relation, count in zip(np.asarray(counts.relation).tolist(), counts.count.tolist(), strict=True):
        total[store.relations[relation]] += count
    near = sorted(total, key=lambda name: (-len(wanted & set(normalize_label(name).split())), -total[name], name))
    far = f"only {' -> '.join(walked)} can be walked" if walked else "not even its first relation is there"
    onwards = f"; from there lead, either way: {', '.join(near[:_ONWARDS])}" if near else ""
    return f"no linked entity has such a path, in any direction; {far}{onwards}"


def quoted_relations(text: str) -> str:
    """Put relation types with dots between backticks where a Cypher query has them bare: `[:film.film.genre]`.

    Raises `QueryRefused` for what cannot be cut into tokens.
    """
    from byokg.graph.guard.tokens import tokenise_cypher

    tokens, _ = tokenise_cypher(text)
    bare: list[tuple[int, int]] = []
    brackets: list[str] = []
    at = 0
    while at < len(tokens):
        key = tokens[at].key
        if key in "[{(":
            brackets.append("-[" if key == "[" and at and tokens[at - 1].key in ("-", "<-") else key)
        elif key in "]})" and brackets:
            brackets.pop()
        elif key in (":", "|") and brackets[-1:] == ["-["]:
            last = at + 1
            while last + 1 < len(tokens) and tokens[last + 1].start == tokens[last].stop and _continues(tokens, last):
                last += 1
            written = text[tokens[at + 1].start : tokens[last].stop] if at + 1 < len(tokens) else ""
            if "." in written and "`" not in written:
                bare.append((tokens[at + 1].start, tokens[last].stop))
                at = last
        at += 1
    for start, stop in reversed(bare):
        text = f"{text[:start]}`{text[start:stop]}`{text[stop:]}"
    return text


def _continues(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether the token behind this one belongs to the same dotted name."""
    return (tokens[at + 1].key in (".", "..")) != (tokens[at].key in (".", ".."))


def emptied_by(text: str, run: Callable[[str, QueryLimits], Rows], timeout_s: float) -> str:
    """Say which clause of a Cypher query leaves nothing, by running what stands before it, clause by clause.

    Only the part up to its first WITH, UNWIND, CALL or UNION is looked at. Empty where nothing can be said in time.
    """
    deadline = time.monotonic() + timeout_s

    def finds(prefix: str) -> bool | None:
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        try:
            return len(run(f"{prefix} RETURN 1 AS one LIMIT 1", QueryLimits(left, 1))) > 0
        except GraphError:
            return None

    clauses = list(_clauses(text))
    for start, stop in clauses:
        found = finds(text[:stop])
        if found is None:
            return ""
        if not found:
            clause = " ".join(text[start:stop].split())
            loose = clause.replace("<-[", "-[").replace("]->", "]-")
            turned = loose != clause and finds(text[:start] + loose)
            if len(clauses) == 1 and not turned:
                return ""  # it is the query
            way = " (it finds something without its arrows: a relation points the other way)"
            return f"{clause!r} leaves nothing{way if turned else ''}"
    return ""


def _clauses(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each MATCH and WHERE begins and ends, up to what changes the rows otherwise."""
    from byokg.graph.guard.tokens import tokenise_cypher

    tokens, _ = tokenise_cypher(text)
    depth, begun = 0, None
    for before, token in zip([None, *tokens], tokens, strict=False):
        depth += (token.key in "([{") - (token.key in ")]}") if len(token.key) == 1 else 0
        ends = token.key in ("WITH", "UNWIND", "CALL", "UNION", "RETURN", "OPTIONAL", "end")
        if (
            depth == 0
            and (ends or token.key in ("MATCH", "WHERE"))
            and not (before and before.key in ("STARTS", "ENDS"))
        ):
            if begun is not None:
                yield begun, token.start
            if ends:
                return
            begun = token.start
