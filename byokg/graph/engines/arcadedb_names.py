"""How a graph's labels and property names appear inside ArcadeDB, and queries that fit them.

ArcadeDB takes almost any text as a label. It refuses commas and the empty text, and a node label and a relation
cannot have the same name. The few names that are affected are stored with a private-use character; queries and
answers are translated, so neither a language model nor a caller ever sees them.

A vertex of ArcadeDB is of one type. A node with several labels is of a composite type, a subtype of all of them that is
named `A~B`: queries find it by each label, and `labels(n)` lists these and not the composite.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from byokg.graph.guard.tokens import Edit, Token, Unreadable, apply, tokenise_cypher
from byokg.graph.servers.cypher_schema import quote

BASE = "Entity"
"""The label that every node has; the only one of a node without a type."""

_COMMA, _EMPTY, _RELATION, _TILDE = "\ue000", "\ue001", "\ue002", "\ue003"
_OWN = {"id": "node_id", "name": "display_name"}
"""Properties that hold id and name of a node, and others that do if nodes have properties of these names."""

_LOOKED_UP = frozenset((*_OWN, *_OWN.values()))

_CLAUSES = frozenset("MATCH WHERE RETURN WITH UNWIND CALL YIELD ORDER UNION".split())
_BEFORE_LABEL = frozenset(":|&!%")
_BEFORE_NODE = frozenset(["MATCH", *",->=("])


@dataclass(frozen=True)
class NameMapping:
    """Names that had to change, each from the graph's name to ArcadeDB's."""

    types: Mapping[str, str] = field(default_factory=dict)
    relations: Mapping[str, str] = field(default_factory=dict)
    node_properties: Mapping[str, str] = field(default_factory=dict)
    edge_properties: Mapping[str, str] = field(default_factory=dict)
    base_type: str = ""
    """The graph's name of the type of nodes that have the label `BASE` only."""
    composites: Sequence[str] = ()
    """Types of nodes with several labels."""
    own: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """For `id` and `name`, the graph's types whose nodes have a property of that name besides; other nodes have id and
    name there, too."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Properties that hold id and name of every node, by `id` and `name`, if they are others."""

    @property
    def id_key(self) -> str:
        """Return the property that holds the id of every node."""
        return self.keys.get("id", "id")

    @property
    def name_key(self) -> str:
        """Return the property that holds the name of every node."""
        return self.keys.get("name", "name")

    def implied(self, types: Sequence[str]) -> list[str]:
        """Return those of `id` and `name` that nodes of some types have as a copy of id and name."""
        return [key for key in self.keys if not set(types or ("",)).intersection(self.own[key])]

    @classmethod
    def of(
        cls,
        types: Iterable[str],
        relations: Iterable[str],
        node_properties: Iterable[str],
        edge_properties: Iterable[str],
        own: Mapping[str, Sequence[str]] = MappingProxyType({}),
        type_sets: Iterable[Sequence[str]] = (),
    ) -> NameMapping:
        """Choose names.

        Args:
            types: node types; the empty one is for nodes without.
            relations: relation labels.
            node_properties: property names of nodes.
            edge_properties: property names of edges.
            own: those of `id` and `name` that are properties and differ from the node's id or name, with the types that
                have them. They keep their names, and id and name are `node_id` and `display_name`.
            type_sets: the types of nodes that have several.
        """
        found = set(types)
        stored_types = {label: label.replace(",", _COMMA).replace("~", _TILDE) for label in sorted(found - {""})}
        # The base label is that of nodes without a type, unless the graph itself has a type of this name.
        stored_types[""] = _EMPTY if BASE in found and "" in found else BASE
        labels = {BASE, *stored_types.values()}
        stored_relations = {}
        for label in relations:
            stored = label.replace(",", _COMMA) or _EMPTY
            stored_relations[label] = f"{stored}{_RELATION}" if stored in labels else stored
        names = cls(
            _changed(stored_types),
            _changed(stored_relations),
            _changed(_property_names(taken := set(node_properties))),
            _changed(_property_names(edge_properties)),
            BASE if BASE in found else "",
            own={key: tuple(some) for key, some in own.items()},
            keys={key: _free(_OWN[key], taken) for key in own},
        )
        several = {names.stored_type(some) for some in type_sets}
        return replace(names, composites=tuple(sorted(each for each in several if len(labels_of(each)) > 1)))

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> NameMapping:
        """Read what `to_json` gave. Raises `KeyError` or `TypeError` for anything else."""
        held = {item.name: content[item.name] for item in fields(cls)}
        own = {key: tuple(types) for key, types in held["own"].items()}
        return cls(**{**held, "composites": tuple(held["composites"]), "own": own})

    def stored_type(self, types: Sequence[str]) -> str:
        """Return the type of the vertex of a node with some types, perhaps none."""
        stored = {self.types.get(label, label or BASE) for label in types or ("",)}
        own = stored - {BASE} or stored
        return "~".join(sorted(own, key=lambda label: label.encode("utf-16-be")))  # in the order of Java

    def to_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return asdict(self)

    def fit(self, query: str) -> str:
        """Write a Cypher query with stored labels, and so that ArcadeDB finds an index for a look-up by name or id.

        ArcadeDB uses an index for `(n:Entity {name: 'x'})`, but scans all nodes for `(n {name: 'x'})` and for
        `(n) … WHERE n.name = 'x'`; and it walks `(m)-[:r]->(n:Entity {name: 'x'})` from the left, unless all nodes of
        the chain have a label. As every node is an `Entity`, that label is added where it helps. The guard has seen
        the query as it was written; this changes nothing that it looks at.
        """
        try:
            tokens, _ = tokenise_cypher(query)
        except Unreadable:
            return query
        sought = _sought(tokens)
        chains: list[_MatchPattern] = []
        opened: list[str] = []
        edits: list[Edit] = []
        clause, level = "", 0
        for at, token in enumerate(tokens):
            before, key = tokens[at - 1].key if at else "", token.key
            if _is_name(token):
                if before in _BEFORE_LABEL:
                    stored = self.relations if opened and opened[-1] == "-[" else self.types
                    if token.text in stored:
                        edits.append(Edit(token.start, token.stop, quote(stored[token.text])))
                elif before != "." and key in _CLAUSES:
                    clause, level = key, len(opened)
                    chains.append(_MatchPattern())
            elif clause != "MATCH":
                pass
            elif key == "," and len(opened) == level:
                chains.append(_MatchPattern())
            elif key == "(" and (before in _BEFORE_NODE or before == "SHORTESTPATH"):
                chains[-1].nodes.append(_node(tokens, at, sought))
            elif key == "-" and before == "-":
                chains[-1].simple = False
            elif key == "[" and before == "-":
                inside = [inner.key for inner in tokens[at + 1 : _close(tokens, at, "]")]]
                chains[-1].simple &= ":" in inside and not {"*", "|"} & set(inside)
            if key in ("(", "[", "{"):
                opened.append("-[" if key == "[" and before == "-" else key)
            elif key in (")", "]", "}") and opened:
                opened.pop()
        for chain in chains:
            edits += [Edit(place, place, f":{BASE}") for place in chain.unlabelled()]
        return apply(query, sorted(edits))

    def original_labels(self) -> dict[str, str]:
        """Return the graph's name for each stored label or relation that had to change."""
        back = {stored: name for name, stored in (*self.types.items(), *self.relations.items())}
        back.pop(BASE, None)
        return back


def labels_of(stored: str) -> list[str]:
    """Return the labels of a vertex, given its type."""
    return stored.split("~")


@dataclass
class _MatchPattern:
    """The node patterns of one comma-separated part of a MATCH."""

    nodes: list[tuple[int | None, bool]] = field(default_factory=list)
    """Place for an additional label (None: there is one), and whether the search starts from the node."""
    simple: bool = True
    """Every relationship has one type and one hop, so that ArcadeDB's planner can start at either end."""

    def unlabelled(self) -> list[int]:
        """Return the positions where adding the base label helps."""
        if not any(start for _, start in self.nodes):
            return []
        turn = self.simple and not self.nodes[0][1]
        return [position for position, start in self.nodes if position is not None and (start or turn)]


def _is_name(token: Token) -> bool:
    return token.key == "name" or token.key[0].isupper() or token.key[0] == "_"


def _close(tokens: Sequence[Token], at: int, bracket: str) -> int:
    """Return the position of the next closing bracket, or `at` if there is none."""
    return next((number for number in range(at, len(tokens)) if tokens[number].key == bracket), at)


def _node(tokens: Sequence[Token], at: int, sought: frozenset[str]) -> tuple[int | None, bool]:
    """Read the node pattern whose bracket stands at `at`, as `_MatchPattern.nodes` has it."""
    named = _is_name(tokens[at + 1])
    after = tokens[min(at + 1 + named, len(tokens) - 1)].key
    looked_up = named and tokens[at + 1].text in sought
    if after in ("{", ")"):
        return tokens[at + named].stop, after == "{" or looked_up
    inside = [inner.key for inner in tokens[at : _close(tokens, at, ")")]]
    return None, "{" in inside or looked_up


def _sought(tokens: Sequence[Token]) -> frozenset[str]:
    """Return the variables whose name or id is compared with something: `n.name = …`, `n.id IN …`."""
    return frozenset(
        variable.text
        for variable, dot, prop, sign in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False)
        if _is_name(variable) and dot.key == "." and prop.text in _LOOKED_UP and sign.key in ("=", "IN")
    )


def _property_names(properties: Iterable[str]) -> dict[str, str]:
    """Keep names that can stay, and put a prefix before the others that none of the rest has."""
    names = sorted(set(properties))
    stored = {name: name for name in names if name and not name.startswith(("@", "_src", "_dst"))}
    for name in names:
        if name not in stored:
            stored[name] = _free(f"property_{name.lstrip('@')}", stored.values())
    return stored


def _free(name: str, taken: Collection[str]) -> str:
    """Return a name that is not taken: this one, or one with prefixes."""
    while name in taken:
        name = f"property_{name}"
    return name


def _changed(names: Mapping[str, str]) -> dict[str, str]:
    return {name: stored for name, stored in names.items() if name != stored}
