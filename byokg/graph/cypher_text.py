"""Writing names into Cypher text, where a parameter cannot stand: labels, relation types, property names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MAX_WRITTEN = 200
"""Relation types written into one pattern; more are passed as a parameter, so that the text stays short."""


def quoted(name: str) -> str:
    """Return a name in backticks, whatever it holds."""
    return f"`{name.replace('`', '``')}`"


def writable(name: str) -> bool:
    r"""Tell whether a name means itself when quoted.

    Neo4j decodes `\u0060` before it looks for backticks, so a name that holds such a sequence could end its quotes
    early. There are other ways to say such a name; see `node_pattern` and `edge_pattern`.
    """
    return bool(name) and "\\u" not in name


def node_pattern(variable: str, label: str, parameter: str) -> str:
    """Return `(n:label)`, or the same by a condition on `$parameter`, which must then hold the label."""
    if writable(label):
        return f"({variable}:{quoted(label)})"
    return f"({variable}) WHERE ${parameter} IN labels({variable})"


def edge_pattern(left: str, right: str, labels: Sequence[str] | None, parameter: str, inverse: bool = False) -> str:
    """Return `(left)-[r:a|b]->(right)`, with every type when `labels` is None.

    Labels that cannot be written stand in a condition on `$parameter`, which must then hold the list of labels.
    """
    written, condition = "", ""
    if labels is not None:
        if len(labels) <= MAX_WRITTEN and all(map(writable, labels)):
            written = ":" + "|".join(map(quoted, labels))
        else:
            condition = f" WHERE type(r) IN ${parameter}"
    arrow = f"<-[r{written}]-" if inverse else f"-[r{written}]->"
    return f"({left}){arrow}({right}){condition}"


def union_all(parts: Iterable[str]) -> str:
    """Join queries with the same columns into one."""
    return "\nUNION ALL\n".join(parts)
