"""Feedback on paths and queries without results: the failing step, and possible continuations."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from byokg.errors import GraphError, QueryFailed
from byokg.graph.sorted_ids import match_rows, rank_of
from byokg.graph.store import GraphStore, NodeArray, QueryLimits, Rows, Schema
from byokg.graph.traversal import Caps, expand, relation_numbers
from byokg.text.names import normalize_label, on_one_line
from byokg.text.values import read_literal
from byokg.types import INVERSE, EntityId, Language, Metapath

if TYPE_CHECKING:
    from byokg.graph.guard.tokens import Token

_ONWARDS = 8
"""Number of relations listed as continuations of a broken path."""

_ENDS, _CAP = 200, 1000
"""Nodes there that are looked at, and edges of one node and relation."""


def path_dead_end(store: GraphStore, relations: Metapath, sources: Sequence[EntityId]) -> str:
    """Describe the walkable part of a path from each entity, in any direction, and what continues the longest one."""
    reached = _walked(store, relations, list(dict.fromkeys(sources)))
    depth = max((walked for walked, _ in reached.values()), default=0)
    last = [nodes for walked, nodes in reached.values() if walked == depth]
    counts = store.relation_counts(np.unique(np.concatenate(last))[:_ENDS] if last else np.empty(0, np.int64))
    missing = relations[depth] if depth < len(relations) else ""
    wanted = set(normalize_label(missing).split())
    total: Counter[str] = Counter()
    for relation, count in zip(np.asarray(counts.relation).tolist(), counts.count.tolist(), strict=True):
        total[store.relations[relation]] += count
    near = sorted(total, key=lambda name: (-len(wanted & set(normalize_label(name).split())), -total[name], name))
    labels = [step.removeprefix(INVERSE) for step in relations]
    depths = sorted({walked for walked, _ in reached.values()}, reverse=True)
    names = {node.id: on_one_line(node.name) for node in store.nodes(list(reached))}
    parts = []
    for each in depths or [0]:
        far = f"only {' -> '.join(labels[:each])} can be walked" if each else "not even its first relation is there"
        of = ", ".join(names[source] for source, (walked, _) in reached.items() if walked == each)
        parts.append(f"{far} from {of}" if len(depths) > 1 else far)
    onwards = f"; from there lead, either way: {', '.join(near[:_ONWARDS])}" if near else ""
    return f"no linked entity has such a path, in any direction; {'; '.join(reversed(parts))}{onwards}"


def _walked(
    store: GraphStore, relations: Metapath, sources: Sequence[EntityId]
) -> dict[EntityId, tuple[int, NodeArray]]:
    """Return for each entity how many steps of a path can be walked from it, in any direction, and the nodes there."""
    nodes = store.numbers(sources)
    owner = np.arange(len(sources))
    reached = {source: (0, nodes[[at]]) for at, source in enumerate(sources)}
    for depth, step in enumerate(relations, 1):
        numbers = relation_numbers(store, [step.removeprefix(INVERSE)])
        distinct, place = np.unique(nodes, return_inverse=True)
        edges = expand(store, distinct, relations=numbers, caps=Caps(per_relation=_CAP)).edges
        walked, edge = match_rows(edges.origin, place)
        pairs = np.unique(np.stack((owner[walked], edges.other[edge])), axis=1)
        owner, nodes = pairs[:, rank_of(pairs[0]) < _ENDS]
        for one in np.unique(owner).tolist():
            reached[sources[one]] = depth, nodes[owner == one]
    return reached


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
    """Name the first part of a Cypher query that leaves no row, by running it part by part.

    Nodes with conditions of their own come first, each alone; from them the query grows relation by relation, and each
    condition joins in as soon as its variables are there. So a node that exists is not blamed for a relation that it
    lacks. The part up to the first WITH, UNWIND, CALL or UNION counts. Empty if no part can be named in time.
    """
    deadline = time.monotonic() + timeout_s

    def finds(prefix: str) -> bool:
        left = deadline - time.monotonic()
        if left <= 0:
            raise QueryFailed("no time is left")
        return len(run(f"{prefix} RETURN 1 AS one LIMIT 1", QueryLimits(left, 1))) > 0

    try:
        parts = _CypherParts.of(text)
        return _emptied_clause(text, finds) if parts is None else parts.emptied(finds)
    except GraphError:
        return ""


_OTHER_WAY = " (it finds something without its arrows: a relation points the other way)"


def _without_arrows(text: str) -> str:
    return text.replace("<-[", "-[").replace("]->", "]-").replace("<--", "--").replace("-->", "--")


def _emptied_clause(text: str, finds: Callable[[str], bool]) -> str:
    """Name the first clause that leaves no row."""
    clauses = list(_clauses(text))
    for start, stop in clauses:
        if not finds(text[:stop]):
            clause = " ".join(text[start:stop].split())
            loose = _without_arrows(clause)
            turned = loose != clause and finds(text[:start] + loose)
            if len(clauses) == 1 and not turned:
                return ""  # it is the query
            return f"{clause!r} leaves nothing{_OTHER_WAY if turned else ''}"
    return ""


@dataclass(frozen=True)
class _Relating:
    """One relation of a pattern between two nodes."""

    left: str
    arrow: str
    right: str
    variable: str
    """Of the relation; empty if it has none."""


@dataclass
class _CypherParts:
    """The nodes, relations and conditions in the MATCH and WHERE clauses of a Cypher query."""

    nodes: dict[str, str] = field(default_factory=dict)
    """By variable, the node as it is written where it stands first; nameless ones are given a variable."""
    hops: list[_Relating] = field(default_factory=list)
    conditions: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    """Each with the variables that it needs."""

    @classmethod
    def of(cls, text: str) -> _CypherParts | None:
        """Read a query; None for patterns other than chains of nodes and relations, such as `shortestPath(…)`."""
        from byokg.graph.guard.tokens import tokenise_cypher

        parts, every = cls(), tokenise_cypher(text)[0]
        paths: set[str] = set()
        conditions: list[Sequence[Token]] = []
        for start, stop in _clauses(text):
            first, *tokens = (token for token in every if start <= token.start < stop)
            if first.key == "MATCH":
                if not parts._read_patterns(text, tokens, paths):
                    return None
            else:
                conditions += _conjuncts(tokens)
        known = {*parts.nodes, *(hop.variable for hop in parts.hops)} - {""}
        for words in conditions:
            named = {text[token.start : token.stop] for token in words if token.key != "string"}
            if not named & paths:
                condition = text[words[0].start : words[-1].stop]
                parts.conditions.append((condition, frozenset(named & known)))
        return parts

    def _read_patterns(self, text: str, tokens: Sequence[Token], paths: set[str]) -> bool:
        """Take the patterns of one MATCH; False if one is no chain."""
        at: int | None = 0
        while at is not None and at < len(tokens):
            if at + 1 < len(tokens) and tokens[at + 1].key == "=":
                paths.add(text[tokens[at].start : tokens[at].stop])
                at += 2
            at = self._read_chain(text, tokens, at)
        return at is not None

    def _read_chain(self, text: str, tokens: Sequence[Token], at: int) -> int | None:
        """Take the pattern that begins at a place; return the place behind it and its comma, None if it is no chain."""
        last, begun = "", at
        while (stop := _closed(tokens, at)) is not None and tokens[at].key == "(":
            node = self._take_node(text, tokens[at : stop + 1])
            if last:
                arrow = text[tokens[begun].start : tokens[at - 1].stop]
                self.hops.append(_Relating(last, arrow, node, self._relation(text, tokens[begun:at])))
            last, begun = node, stop + 1
            if begun >= len(tokens) or tokens[begun].key == ",":
                return begun + 1
            at = begun
            while at < len(tokens) and tokens[at].key != "(":
                at = at + 1 if tokens[at].key != "[" else (_closed(tokens, at) or len(tokens)) + 1
        return None

    def _take_node(self, text: str, tokens: Sequence[Token]) -> str:
        """Take a node between parentheses; return its variable."""
        first = tokens[1]
        named = first.key not in (":", "{", ")")
        variable = text[first.start : first.stop] if named else f"node{len(self.nodes)}_"
        inner = text[(first.stop if named else tokens[0].stop) : tokens[-1].start]
        self.nodes.setdefault(variable, f"({variable}{inner})")
        return variable

    @staticmethod
    def _relation(text: str, tokens: Sequence[Token]) -> str:
        """Return the variable of the relation between two nodes; empty if it has none."""
        inside = [token for before, token in pairwise(tokens) if before.key == "["]
        return text[inside[0].start : inside[0].stop] if inside and inside[0].key not in (":", "{", "]", "*") else ""

    def emptied(self, finds: Callable[[str], bool]) -> str:
        """Name the first part that leaves no row; empty if there is but one part, or all leave some."""
        alone = {
            name: [text for text, needed in self.conditions if needed == {name}] for name, written in self.nodes.items()
        }
        held = [name for name, written in self.nodes.items() if alone[name] or "{" in written]
        for name in held:
            if not finds(self._query([name], [], alone[name])):
                return f"no node matches {' AND '.join(alone[name]) or self._shown(name)!r}"
        reached: dict[str, None] = {}
        walked: list[_Relating] = []
        left = list(self.hops)
        for start in (*held, *self.nodes):
            reached.setdefault(start)
            while (hop := next((each for each in left if {each.left, each.right} & reached.keys()), None)) is not None:
                left.remove(hop)
                if problem := self._emptied_hop(hop, walked, list(reached), finds):
                    return problem
                walked.append(hop)
                reached |= dict.fromkeys((hop.left, hop.right))
        return ""

    def _emptied_hop(
        self, hop: _Relating, walked: list[_Relating], reached: list[str], finds: Callable[[str], bool]
    ) -> str:
        """Return the problem if one more relation, with the conditions that it makes possible, leaves no row."""
        nodes = list(dict.fromkeys((*reached, hop.left, hop.right)))
        before, after = self._fulfilled(reached, walked), self._fulfilled(nodes, [*walked, hop])
        if finds(self._query(nodes, [*walked, hop], after)):
            return ""
        shown = " ".join(f"{self._shown(hop.left)}{hop.arrow}{self._shown(hop.right)}".split())
        fresh = [text for text in after if text not in before]
        if fresh and finds(self._query(nodes, [*walked, hop], before)):
            return f"{' AND '.join(fresh)!r} leaves nothing of {shown!r}"
        loose = replace(hop, arrow=_without_arrows(hop.arrow))
        turned = loose != hop and finds(self._query(nodes, [*walked, loose], before))
        narrowed = self.conditions or any("{" in written for written in self.nodes.values())
        if len(self.hops) == 1 and not narrowed and not turned:
            return ""  # it is the query
        given = f"; {' AND '.join(before)!r} alone gives rows" if before and not walked else ""
        return f"{shown!r} is the first pattern that gives no row{_OTHER_WAY if turned else given}"

    def _shown(self, name: str) -> str:
        """Return a node as it was written."""
        nameless = re.fullmatch(r"node\d+_", name) is not None
        return f"({self.nodes[name][1 + len(name) :]}" if nameless else self.nodes[name]

    def _fulfilled(self, nodes: Sequence[str], hops: Sequence[_Relating]) -> list[str]:
        """Return the conditions whose variables are there."""
        there = {*nodes, *(hop.variable for hop in hops)}
        return [text for text, needed in self.conditions if needed <= there]

    def _query(self, nodes: Sequence[str], hops: Sequence[_Relating], conditions: Sequence[str]) -> str:
        """Write the MATCH and WHERE of some parts."""
        written: set[str] = set()

        def once(name: str) -> str:
            text = f"({name})" if name in written else self.nodes[name]
            written.add(name)
            return text

        patterns = [f"{once(hop.left)}{hop.arrow}{once(hop.right)}" for hop in hops]
        patterns += [self.nodes[name] for name in nodes if name not in written]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"MATCH {', '.join(patterns)}{where}"


def _closed(tokens: Sequence[Token], at: int) -> int | None:
    """Return the place of the bracket that closes the one at a place; None if there is none."""
    if at >= len(tokens) or tokens[at].key not in ("(", "["):
        return None
    depth = 0
    for place in range(at, len(tokens)):
        key = tokens[place].key
        depth += (key in ("(", "[", "{")) - (key in (")", "]", "}"))
        if depth == 0:
            return place
    return None


def _conjuncts(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """Return the conditions that AND joins; all of them as one if OR or XOR stands beside it."""
    depth, places = 0, [-1]
    for place, token in enumerate(tokens):
        depth += (token.key in ("(", "[", "{")) - (token.key in (")", "]", "}"))
        if depth == 0 and token.key in ("OR", "XOR", "CASE"):
            return [tokens]
        if depth == 0 and token.key == "AND":
            places.append(place)
    found = [tokens[start + 1 : stop] for start, stop in pairwise([*places, len(tokens)])]
    return [each for each in found if each]


def emptied_sparql(text: str, run: Callable[[str, QueryLimits], Rows], timeout_s: float) -> str:
    """Name the pattern or filter of a SPARQL query that leaves no rows, by running those before it, one after the
    other.

    Only the patterns and filters that stand in the outermost group are looked at, those with a text first; from
    OPTIONAL, UNION and the like on, nothing is. Empty where nothing can be said in time.
    """
    deadline = time.monotonic() + timeout_s
    prologue, patterns, filters = _patterns(text)
    if len(patterns) + len(filters) < 2:
        return ""  # it is the query
    so_far = ""
    for pattern in _narrowest_first(patterns, filters):
        so_far += f" {pattern}" if pattern.endswith((".", ";")) else f" {pattern} ."
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


_VARIABLE = re.compile(r"[?$]\w+")


def _narrowest_first(patterns: Sequence[str], filters: Sequence[str]) -> list[str]:
    """Return patterns, those with a text first, so that a name that exists is not blamed for a relation that it lacks.

    What `;` joins stays together; a filter follows as soon as its variables are bound.
    """
    statements: list[list[str]] = [[]]
    for part in patterns:
        statements[-1].append(part)
        if not part.endswith(";"):
            statements.append([])
    statements.sort(key=lambda parts: not any(sign in part for part in parts for sign in "\"'"))
    found: list[str] = []
    left = list(filters)
    for statement in filter(None, statements):
        found += statement
        bound = set(_VARIABLE.findall(" ".join(found)))
        fit = [each for each in left if bound.issuperset(_VARIABLE.findall(each))]
        found += fit
        left = [each for each in left if each not in fit]
    return [*found, *left]


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


ComparedProperty: TypeAlias = tuple[tuple[str, ...], str]
"""Types of nodes, or relations, that may hold a property, none if unrestricted; and its name."""


def compared_properties(language: Language, text: str, but: Collection[int] = ()) -> list[ComparedProperty]:
    """Return the properties in the conditions of a query, in its order; of SPARQL all words outside strings.

    Args:
        language: of the query.
        text: a query that can be read.
        but: places of properties that are left out.
    """
    from byokg.graph.guard.cypher import parse_cypher

    if language != "cypher":
        return [((), word) for word in dict.fromkeys(_NAME.findall(strings_left_out(language, text)))]
    conditions = list(_clauses(text))
    return [
        (use.owner.names, use.name.text)
        for use in parse_cypher(text).properties
        if use.name.start not in but and any(start <= use.name.start < stop for start, stop in conditions)
    ]


def value_formats(schema: Schema, compared: Iterable[ComparedProperty]) -> list[str]:
    """Describe the formats of properties, from the examples of the schema, for the first three that have some."""
    details = {**schema.node_property_details, **{each.name: each.property_details for each in schema.relations}}
    told: dict[str, str] = {}
    for owners, name in compared:
        held = ((owner, one) for owner in owners or details for one in details.get(owner, ()) if one.name == name)
        owner, detail = next(((owner, one) for owner, one in held if one.examples), ("", None))
        if detail is not None:
            values = ", ".join(repr(on_one_line(v)) if isinstance(v, str) else str(v) for v in detail.examples)
            place = f"{owner}.{name}" if owners else name
            told.setdefault(place, f"values of {place!r} look like {values}")
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
        edges = expand(store, nodes, relations=relation_numbers(store, named), caps=Caps(per_relation=_FORMATS)).edges
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
