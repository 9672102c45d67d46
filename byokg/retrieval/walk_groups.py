"""Groups of walks, as `enumerate_candidates` grows them: flat arrays of groups, and of the nodes that each reaches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from byokg.arrays import Int64
from byokg.graph.sorted_ids import spread
from byokg.graph.store import NodeArray


@dataclass(frozen=True)
class WalkGroups:
    """G groups of walks and the P pairs of a group and a node that they reach, by group, then by node."""

    anchors: Int64
    """(G, 2) node numbers that walks do not revisit; -1 if there is one."""
    before: tuple[Int64, ...]
    """For each reach that these groups lengthen or join, (G,) the group there."""
    relation: Int64
    """(G,) relation of the last hop; -1 where groups were joined."""
    bounds: Int64
    """(G + 1,) group g has the pairs from bounds[g] up to bounds[g + 1]."""
    nodes: Int64
    walks: npt.NDArray[np.float64]
    """(P,) how many walks lead there."""
    ways: Int64
    """(P,) two bits for each hop, the last one lowest: some walk goes with the edge, some walk goes against it."""
    hops: int
    edges: tuple[Int64, Int64] | None = None
    """Of each last edge the pair it leads to and its number; only where conditions look at edges."""

    def __len__(self) -> int:
        return len(self.relation)

    @property
    def group(self) -> Int64:
        """Return the group of each pair: (P,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.bounds))

    def only(self, groups: Int64) -> WalkGroups:
        """Return some groups, in the order given."""
        pairs = self.pairs(groups)
        edges = self.edges
        if edges is not None:
            place = np.full(len(self.nodes), -1)
            place[pairs] = np.arange(len(pairs))
            kept = np.flatnonzero(place[edges[0]] >= 0)
            edges = place[edges[0][kept]], edges[1][kept]
        return WalkGroups(
            self.anchors[groups],
            tuple(column[groups] for column in self.before),
            self.relation[groups],
            np.append(0, np.diff(self.bounds)[groups].cumsum()),
            self.nodes[pairs],
            self.walks[pairs],
            self.ways[pairs],
            self.hops,
            edges,
        )

    def pairs(self, groups: Int64) -> Int64:
        """Return the pairs of some groups, group by group in the order given."""
        return spread(self.bounds[groups], np.diff(self.bounds)[groups])[1]


def group_walks(first: Int64, second: Int64, third: Int64 | None, node: NodeArray) -> tuple[Int64, Int64, Int64, Int64]:
    """Sort rows into groups of equal (first, second, third), and nodes within them.

    Returns:
        The order of rows; where in it each distinct pair of group and node begins; where in it each group begins; and
        which pair each group begins with.
    """
    if not len(node):
        none = np.empty(0, np.int64)
        return none, none, none, none
    keys = first
    for column, size in ((second, int(second.max()) + 1), (third, 3)):
        if column is not None:
            keys = keys * size + column
    size = int(node.max()) + 1
    if int(keys.max()) < (1 << 62) // size:
        whole = keys * size + node
        order = np.argsort(whole)
        fresh = np.append(True, np.diff(whole[order]) != 0)
    else:
        order = np.lexsort((node, keys))
        fresh = np.append(True, (np.diff(keys[order]) != 0) | (np.diff(node[order]) != 0))
    first_pair = np.flatnonzero(fresh)
    of_group = keys[order[first_pair]]
    of_pair = np.flatnonzero(np.append(True, np.diff(of_group) != 0))
    return order, first_pair, first_pair[of_pair], of_pair
