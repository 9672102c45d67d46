"""How a graph's labels and property names appear inside ArcadeDB, and queries that fit them.

ArcadeDB takes almost any text as a label. It refuses commas and the empty text, and a node label and a relation
cannot have the same name. The few names that are affected are stored with a private-use character; queries and
answers are translated, so neither a language model nor a caller ever sees them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

BASE = "Entity"
"""The label that every node has; the only one of a node without a type."""

_COMMA, _EMPTY, _RELATION = "\ue000", "\ue001", "\ue002"
_OWN = frozenset({"id", "name"})

_TOKEN = re.compile(
    r"""(?P<skip> \s+ | //[^\n]* | /\*.*?(?:\*/|\Z) )
      | (?P<text> '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )
      | (?P<name> `(?:[^`]|``)*` | [^\W\d]\w* )
      | (?P<rest> . )""",
    re.VERBOSE | re.DOTALL,
)
_CLAUSES = frozenset("MATCH WHERE RETURN WITH UNWIND CALL YIELD ORDER UNION".split())
_BEFORE_LABEL = frozenset(":|&!%")
_BEFORE_NODE = frozenset(["MATCH", *",->=("])


@dataclass(frozen=True)
class Names:
    """Names that had to change, each from what the graph calls it to what ArcadeDB does."""

    types: Mapping[str, str] = field(default_factory=dict)
    relations: Mapping[str, str] = field(default_factory=dict)
    node_properties: Mapping[str, str] = field(default_factory=dict)
    edge_properties: Mapping[str, str] = field(default_factory=dict)
    base_type: str = ""
    """What the graph calls the type of nodes that have the label `BASE` only."""

    @classmethod
    def of(
        cls,
        types: Iterable[str],
        relations: Iterable[str],
        node_properties: Iterable[str],
        edge_properties: Iterable[str],
        same: Iterable[str] = (),
    ) -> Names:
        """Choose names.

        Args:
            types: node types; the empty one is for nodes without.
            relations: relation labels.
            node_properties: property names of nodes. `id` and `name` are taken by the node's id and name, so a
                property called so becomes `property_id` or `property_name`.
            edge_properties: property names of edges.
            same: which of `id` and `name` always hold what the node's id or name is, and need no other name.
        """
        found = set(types)
        stored_types = {label: label.replace(",", _COMMA) for label in sorted(found - {""})}
        # The base label is that of nodes without a type, unless the graph itself has a type of this name.
        stored_types[""] = _EMPTY if BASE in found and "" in found else BASE
        labels = {BASE, *stored_types.values()}
        stored_relations = {}
        for label in relations:
            stored = label.replace(",", _COMMA) or _EMPTY
            stored_relations[label] = f"{stored}{_RELATION}" if stored in labels else stored
        return cls(
            _changed(stored_types),
            _changed(stored_relations),
            _changed(_property_names(node_properties, _OWN - set(same))),
            _changed(_property_names(edge_properties, frozenset())),
            BASE if BASE in found else "",
        )

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Names:
        """Read what `to_json` gave. Raises `KeyError` or `TypeError` for anything else."""
        return cls(**{item.name: content[item.name] for item in fields(cls)})

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
        tokens = [(match.lastgroup, match.group()) for match in _TOKEN.finditer(query)]
        written = [text for _, text in tokens]
        solid = [position for position, (kind, _) in enumerate(tokens) if kind != "skip"]
        kinds = [tokens[position][0] for position in solid]
        words = [tokens[position][1] for position in solid]
        sought = _sought(kinds, words)
        chains: list[_Chain] = []
        opened: list[str] = []
        clause, level = "", 0
        for at, word in enumerate(words):
            before = words[at - 1] if at else ""
            if kinds[at] == "name":
                if before in _BEFORE_LABEL:
                    stored = self.relations if opened and opened[-1] == "-[" else self.types
                    label = word[1:-1].replace("``", "`") if word.startswith("`") else word
                    if label in stored:
                        written[solid[at]] = _quoted(stored[label])
                elif before != "." and word.upper() in _CLAUSES:
                    clause, level = word.upper(), len(opened)
                    chains.append(_Chain())
            if clause != "MATCH" or kinds[at] != "rest":
                pass
            elif word == "," and len(opened) == level:
                chains.append(_Chain())
            elif word == "(" and before.upper() in _BEFORE_NODE:
                named = at + 1 < len(words) and kinds[at + 1] == "name"
                after = words[at + 1 + named : at + 2 + named]
                if after == ["{"] or after == [")"]:
                    looked_up = after == ["{"] or (named and words[at + 1] in sought)
                    chains[-1].nodes.append((solid[at + named], looked_up))
                else:  # it has a label
                    inside = words[at : words.index(")", at) if ")" in words[at:] else at]
                    chains[-1].nodes.append((None, "{" in inside or (named and words[at + 1] in sought)))
            elif word == "-" and before == "-":
                chains[-1].simple = False
            elif word == "[" and before == "-":
                inside = words[at + 1 : words.index("]", at) if "]" in words[at:] else at]
                chains[-1].simple &= ":" in inside and not {"*", "|"} & set(inside)
            if kinds[at] == "rest" and word in "([{":
                opened.append("-[" if word == "[" and before == "-" else word)
            elif kinds[at] == "rest" and word in ")]}" and opened:
                opened.pop()
        for chain in chains:
            for position in chain.unlabelled():
                written[position] += f":{BASE}"
        return "".join(written)

    def original_labels(self) -> dict[str, str]:
        """Return the graph's name for each stored label or relation that had to change."""
        back = {stored: name for name, stored in (*self.types.items(), *self.relations.items())}
        back.pop(BASE, None)
        return back


@dataclass
class _Chain:
    """The node patterns of one comma-separated part of a MATCH."""

    nodes: list[tuple[int | None, bool]] = field(default_factory=list)
    """Where a label could be added (None: there is one), and whether the node is what the search starts from."""
    simple: bool = True
    """Every relationship has one type and one hop, so that ArcadeDB's planner can start at either end."""

    def unlabelled(self) -> list[int]:
        """Return the positions where adding the base label helps."""
        if not any(start for _, start in self.nodes):
            return []
        turn = self.simple and not self.nodes[0][1]
        return [position for position, start in self.nodes if position is not None and (start or turn)]


def _sought(kinds: list[str | None], words: list[str]) -> set[str]:
    """Return the variables whose name or id is compared with something: `n.name = …`, `n.id IN …`."""
    return {
        words[at]
        for at in range(len(words) - 3)
        if kinds[at] == "name"
        and words[at + 1] == "."
        and words[at + 2].strip("`") in _OWN
        and (words[at + 3] == "=" or words[at + 3].upper() == "IN")
    }


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _property_names(properties: Iterable[str], taken: frozenset[str]) -> dict[str, str]:
    """Keep names that can stay, and put a prefix before the others that none of the rest has."""
    names = sorted(set(properties))
    stored = {name: name for name in names if name not in taken and name and not name.startswith(("@", "_src", "_dst"))}
    for name in names:
        if name not in stored:
            other = f"property_{name.lstrip('@')}"
            while other in stored.values() or other in taken:
                other = f"property_{other}"
            stored[name] = other
    return stored


def _changed(names: Mapping[str, str]) -> dict[str, str]:
    return {name: stored for name, stored in names.items() if name != stored}
