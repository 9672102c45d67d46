"""Feedback on paths and queries without results: the failing step, and possible continuations."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from byokg.errors import GraphError
from byokg.graph.store import Direction, GraphStore, QueryLimits, Rows, Schema
from byokg.graph.traversal import cap, relation_numbers
from byokg.text.labels import normalize_label
from byokg.text.names import on_one_line
from byokg.text.values import read_literal
from byokg.types import INVERSE, EntityId, Language, Metapath

if TYPE_CHECKING:
    from byokg.graph.guard.tokens import Token

_ONWARDS = 8
"""Number of relations listed as continuations of a broken path."""

_ENDS, _CAP = 200, 1000
"""Nodes there that are looked at, and edges of one node and relation."""


def path_dead_end(store: GraphStore, relations: Metapath, sources: Sequence[EntityId]) -> str:
    """Describe the walkable part of a path from some entities, in any direction, and the relations that continue it."""
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
    """Put relation types with dots between backticks in a Cypher query: `[:film.film.genre]`.

    Raises `QueryRefused` for text that cannot be cut into tokens.
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
    """True if the next token belongs to the same dotted name."""
    return (tokens[at + 1].key in (".", "..")) != (tokens[at].key in (".", ".."))


def emptied_by(text: str, run: Callable[[str, QueryLimits], Rows], timeout_s: float) -> str:
    """Name the clause of a Cypher query that leaves no rows, by running the prefix before it, clause by clause.

    Only the part up to its first WITH, UNWIND, CALL or UNION is checked. Empty if time runs out.
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


def emptied_sparql(text: str, run: Callable[[str, QueryLimits], Rows], timeout_s: float) -> str:
    """Name the pattern or filter of a SPARQL query that leaves no rows, by running those before it, one after the
    other.

    Only the patterns and filters of the outermost group are checked, filters last, since their variables may be bound
    behind them; from OPTIONAL, UNION and the like on, nothing is. Empty if time runs out.
    """
    deadline = time.monotonic() + timeout_s
    prologue, patterns, filters = _patterns(text)
    if len(patterns) + len(filters) < 2:
        return ""  # it is the query
    so_far = ""
    for pattern in (*patterns, *filters):
        so_far += f" {pattern}"
        left = deadline - time.monotonic()
        if left <= 0:
            return ""
        try:
            found = run(f"{prologue} SELECT * WHERE {{{so_far.rstrip('.; ')} }} LIMIT 1", QueryLimits(left, 1))
        except GraphError:
            return ""
        if not len(found):
            return f"{' '.join(pattern.split())!r} leaves nothing"
    return ""


_NO_PATTERN = frozenset("OPTIONAL UNION MINUS BIND VALUES SERVICE GRAPH SELECT EXISTS".split())


def _patterns(text: str) -> tuple[str, list[str], list[str]]:
    """Return the text before SELECT or ASK, and the patterns and filters of the outermost group."""
    from byokg.graph.guard.tokens import tokenise_sparql

    tokens, _ = tokenise_sparql(text)
    asks = next((token.start for token in tokens if token.key in ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")), 0)
    patterns: list[str] = []
    filters: list[str] = []
    depth, begun, filtering = 0, -1, False

    def take(stop: int) -> None:
        nonlocal begun
        part = text[begun:stop].strip() if begun >= 0 else ""
        if part.strip(".; "):
            (filters if filtering else patterns).append(part)
        begun = stop

    for token in tokens:
        if token.key in "([{":
            depth += 1
            if depth == 1 and token.key == "{":
                begun = token.stop
            elif depth == 2 and token.key == "{":
                take(token.start)
                break
        elif token.key in ")]}":
            depth -= 1
            if depth == 0 and token.key == "}":
                take(token.start)
                break
            if depth == 1 and filtering and begun >= 0 and token.key == ")":
                take(token.stop)
                filtering = False
        elif depth == 1 and begun >= 0:
            if token.key in _NO_PATTERN:
                take(token.start)
                break
            if token.key == "FILTER":
                take(token.start)
                filtering = True
            elif token.key in (".", ";"):
                take(token.stop)
    return text[:asks], patterns, filters


_FORMATS = 3
"""Number of properties, and of relations, with example values, and values of each."""


def value_formats(schema: Schema, text: str) -> list[str]:
    """Describe the formats of properties in a query, from the examples of the schema.

    Args:
        schema: of the graph.
        text: the query, without its strings.
    """
    named = set(_NAME.findall(text))
    known = [*schema.node_property_details.values(), *(relation.property_details for relation in schema.relations)]
    told: dict[str, str] = {}
    for detail in (detail for details in known for detail in details):
        if detail.name in named and detail.examples and detail.name not in told:
            values = ", ".join(repr(on_one_line(v)) if isinstance(v, str) else str(v) for v in detail.examples)
            told[detail.name] = f"values of {detail.name!r} look like {values}"
    return list(told.values())[:_FORMATS]


def node_formats(store: GraphStore, sources: Sequence[EntityId], text: str) -> list[str]:
    """Describe the formats of the dates and numbers behind relations in a query, if these are nodes.

    Args:
        store: the graph.
        sources: linked entities; one or two of these relations away from them are sampled.
        text: the query, without its strings.
    """
    named = [label for label in store.relations if label and label in text and _whole(label).search(text)]
    told: dict[str, dict[str, None]] = {}
    nodes = store.numbers(list(dict.fromkeys(sources)))
    for _ in range(2 if named else 0):
        if not len(nodes):
            break
        found = store.edges(nodes, Direction.BOTH, relation_numbers(store, named))
        edges, _ = cap(found, _FORMATS, per_relation=True)
        ends = store.nodes(store.ids(edges.tail))
        for relation, end in zip(edges.relation.tolist(), ends, strict=True):
            read = read_literal(end.name)
            if read is not None and read.kind != "id":
                told.setdefault(store.relations[relation], {})[repr(on_one_line(end.name))] = None
        nodes = np.unique(edges.other)[:_ENDS]
    return [
        f"{label!r} leads to nodes that are called like {', '.join(list(names)[:_FORMATS])}"
        for label, names in list(told.items())[:_FORMATS]
    ]


@lru_cache(1 << 10)
def _whole(label: str) -> re.Pattern[str]:
    """Return a pattern of a relation that is no part of a longer one."""
    return re.compile(rf"(?<![\w.]){re.escape(label)}(?![\w.])")


def strings_left_out(language: Language, text: str) -> str:
    """Return a query with nothing in the place of its strings."""
    from byokg.graph.guard.tokens import tokenise_cypher, tokenise_sparql

    tokens, _ = (tokenise_cypher if language == "cypher" else tokenise_sparql)(text)
    return " ".join(text[token.start : token.stop] for token in tokens if token.key != "string")


_NAME = re.compile(r"\w+")


def _clauses(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each MATCH and WHERE, up to the first clause that changes the rows otherwise."""
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
