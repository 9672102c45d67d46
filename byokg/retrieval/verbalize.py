"""Evidence as text: `A → r1 → B → r2 → C`, inverse hops as `A ← r1 ← B`, many ends folded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from byokg.graph.store import GraphStore
from byokg.types import INVERSE, EntityId, Path, PathEvidence, Properties


def names_of(store: GraphStore, evidence: Sequence[PathEvidence], shown: int) -> dict[EntityId, str]:
    """Return the names of every node that `verbalize` will show, with one call to the store."""
    ids = [
        node
        for item in evidence
        for node in (item.source, *item.ends[:shown], *(node for path in item.paths[:shown] for node in path.nodes))
    ]
    distinct = list(dict.fromkeys(ids))
    return {node.id: node.name for node in store.nodes(distinct)}


def verbalize(item: PathEvidence, names: Mapping[EntityId, str], shown: int = 5) -> str:
    """Write one item as one line.

    Args:
        item: evidence; its nodes in between are left out, since each end may be reached through others.
        names: a name for each node shown; an id without one stands for itself.
        shown: ends to write out; the rest is counted.
    """
    ends = [names.get(end, end) for end in item.ends[:shown]]
    more = len(item.ends) - len(ends)
    folded = " | ".join(ends) + (f" … (+{more} more)" if more else "")
    return f"{names.get(item.source, item.source)}{''.join(arrow(step) for step in item.relations)}{folded}"


def verbalize_path(path: Path, names: Mapping[EntityId, str]) -> str:
    """Write one walk as one line, with the properties of each edge in brackets."""
    text = names.get(path.source, path.source)
    for triple, inverse, node in zip(path.triples, path.inverse, path.nodes[1:], strict=True):
        step = f"{INVERSE}{triple.relation}" if inverse else triple.relation
        text += f"{arrow(step, triple.properties)}{names.get(node, node)}"
    return text


def arrow(step: str, properties: Properties | None = None) -> str:
    """Write one step of a metapath with the arrows that show how the edge is stored."""
    noted = ", ".join(f"{key}: {value}" for key, value in (properties or {}).items())
    label = f"{step.removeprefix(INVERSE)} [{noted}]" if noted else step.removeprefix(INVERSE)
    return f" ← {label} ← " if step.startswith(INVERSE) else f" → {label} → "
