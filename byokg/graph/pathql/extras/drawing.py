"""One picture of all paths of an answer: starts on the left, ends on the right, every node and edge once.

A node stands as many columns from the left as edges lie before it on a longest way among the paths, so edges point to
the right, but for cycles. The SVG stands alone; `evaluation.report.page` makes a page of what `describe` returns.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from byokg.graph.pathql.result import FoundPath, PathResult
from byokg.types import Triple

_MOST_PATHS, _MOST_LABELS = 200, 60
_COLUMN, _ROW, _MARGIN, _HEIGHT, _LETTER = 210, 58, 24, 30, 7.2
_START, _END, _INNER = "#1f5fa8", "#8a4b0f", "#3c4a5a"
"""Colors of nodes: dark enough for white text."""


@dataclass(frozen=True)
class _Drawn:
    """An edge of the picture: the same edge of several paths is one."""

    start: str
    end: str
    label: str
    back: bool
    undirected: bool = False


def svg(result: PathResult) -> str:
    """Return a drawing as an SVG document; of very many paths, the first ones."""
    return _picture(result, list(islice(result, _MOST_PATHS)))


def describe(result: PathResult) -> dict[str, Any]:
    """Return the first paths, as JSON, for the page that draws them.

    Steps are as in traces: head, label, tail, edge, inverse, properties, and `undirected` for an undirected edge.
    """
    paths = list(islice(result, _MOST_PATHS))
    nodes = result.nodes(list(dict.fromkeys(node for path in paths for node in path.nodes)))
    return {
        "note": result.summary() + (f"; the first {len(paths)} are drawn" if len(paths) < len(result) else ""),
        "names": {node.id: node.name for node in nodes if node.name},
        "types": {node.id: node.type for node in nodes if node.type},
        "starts": sorted({path.start for path in paths}),
        "ends": sorted({path.end for path in paths}),
        "paths": [
            {"id": f"p{number}", "line": result.line(path), "steps": [_step(drawn) for drawn in _drawn(result, path)]}
            for number, path in enumerate(paths, start=1)
        ],
    }


def _step(drawn: _Drawn) -> list[object]:
    head, tail = (drawn.end, drawn.start) if drawn.back else (drawn.start, drawn.end)
    return [head, drawn.label, tail, 0, drawn.back, {}, *(["undirected"] if drawn.undirected else [])]


def _drawn(result: PathResult, path: FoundPath) -> Iterable[_Drawn]:
    for edge in path.edges:
        back = len(edge.inverse) == 1 and edge.inverse[0]
        label = ", ".join(result.shown(bound) for bound in edge.bindings.values())
        if not label:
            signs = ("" if back or not inverse else "^" for inverse in edge.inverse)
            label = "/".join(sign + triple.relation for sign, triple in zip(signs, edge.triples, strict=True))
        ends = sorted((edge.start, edge.end)) if edge.undirected else (edge.start, edge.end)
        yield _Drawn(ends[0], ends[1], label, back, edge.undirected)


def _walked(result: PathResult, path: FoundPath) -> Iterable[tuple[_Drawn, Triple]]:
    """Yield the lines of each edge of a path that is one edge of the graph, and that edge."""
    for drawn, edge in zip(_drawn(result, path), path.edges, strict=True):
        if len(edge.triples) == 1:
            yield drawn, edge.triples[0]


def _numbered(result: PathResult, paths: Sequence[FoundPath]) -> dict[_Drawn, int]:
    """Number the edges of the picture."""
    numbers: dict[_Drawn, int] = {}
    for path in paths:
        for drawn in _drawn(result, path):
            numbers.setdefault(drawn, len(numbers))
    return numbers


def _columns(paths: Sequence[FoundPath]) -> dict[str, int]:
    """Return how far from the left each node stands: as far as on the path that has it latest."""
    columns: dict[str, int] = {}
    for path in paths:
        for place, node in enumerate(path.nodes):
            if place == 0 or node != path.start:
                columns[node] = max(columns.get(node, 0), place)
    return columns


def _picture(result: PathResult, paths: Sequence[FoundPath]) -> str:
    numbers = _numbered(result, paths)
    names = _names(result, paths)
    columns = _columns(paths)
    longest = max((min(len(name), 26) for name in names.values()), default=1)
    said = max((min(len(drawn.label), 34) for drawn in numbers), default=1)
    step = max(_COLUMN, longest * _LETTER + max(110, (said + 5) * 6 + 40))
    rows: dict[int, list[str]] = {}
    for node, column in columns.items():
        rows.setdefault(column, []).append(node)
    tallest = max(map(len, rows.values()), default=1)
    height = 2 * _MARGIN + tallest * _ROW
    width = 2 * _MARGIN + (max(rows, default=0)) * step + longest * _LETTER + 30
    places = {
        node: (_MARGIN + column * step, height / 2 + (row - (len(members) - 1) / 2) * _ROW)
        for column, members in rows.items()
        for row, node in enumerate(members)
    }
    starts, ends = {path.start for path in paths}, {path.end for path in paths}
    shapes: list[str] = []
    together = Counter(each for each, _ in {(each, t.edge) for path in paths for each, t in _walked(result, path)})
    few = len(numbers) <= _MOST_LABELS
    for drawn, rank, number in _spread(numbers):
        label = _cut(drawn.label, 34) + (f" ×{together[drawn]}" if together[drawn] > 1 else "")
        skipped = abs(columns[drawn.end] - columns[drawn.start]) > 1
        shapes.append(_edge(drawn, label if few else "", rank, number, places, names, 60 if skipped else 0))
    for node, (x, y) in places.items():
        color = _START if node in starts else _END if node in ends else _INNER
        shapes.append(_node(names[node], x, y, color))
    described = html.escape(f"{len(paths)} paths between {len(starts)} starts and {len(ends)} ends")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{described}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        'font-family="system-ui, sans-serif" font-size="13">\n'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="#5b6570"/></marker></defs>\n'
        '<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(shapes) + "\n</svg>"
    )


def _names(result: PathResult, paths: Sequence[FoundPath]) -> dict[str, str]:
    """Return what to write on each node: its name."""
    ids = list(dict.fromkeys(node for path in paths for node in path.nodes))
    return {node.id: node.name or node.id for node in result.nodes(ids)}


def _spread(numbers: dict[_Drawn, int]) -> Iterable[tuple[_Drawn, int, int]]:
    """Yield each edge with its place among those between the same nodes, and its number."""
    seen: dict[frozenset[str], int] = {}
    for drawn, number in numbers.items():
        between = frozenset((drawn.start, drawn.end))
        seen[between] = seen.get(between, -1) + 1
        yield drawn, seen[between], number


def _edge(
    drawn: _Drawn,
    label: str,
    rank: int,
    number: int,
    places: dict[str, tuple[float, float]],
    names: dict[str, str],
    around: int,
) -> str:
    """Draw an edge; `around` is its bend past nodes that stand between its ends."""
    (x1, y1), (x2, y2) = places[drawn.start], places[drawn.end]
    shift = (rank + 1) // 2 * 22 * (1 if rank % 2 else -1) - around
    forward = x2 > x1
    if drawn.start == drawn.end:
        x, y = x1 + 14, y1 - _HEIGHT / 2
        route = f"M{x:.0f} {y:.0f}C{x - 30:.0f} {y - 40:.0f} {x + 50:.0f} {y - 40:.0f} {x + 20:.0f} {y:.0f}"
        lx, ly = x, y - 32
    else:
        x1 += _width(names[drawn.start]) if forward else _width(names[drawn.start]) / 2
        if not forward:
            x2 += _width(names[drawn.end]) / 2
            below = 1 if y2 >= y1 else -1
            y1, y2 = y1 + below * _HEIGHT / 2, y2 + (_HEIGHT / 2 if x2 < x1 and y1 == y2 else -below * _HEIGHT / 2)
        mx, my = (x1 + x2) / 2, (y1 + y2) / 2 + shift
        bend = 40 if not forward else 0
        route = f"M{x1:.0f} {y1:.0f}Q{mx:.0f} {my + bend:.0f} {x2:.0f} {y2:.0f}"
        lx, ly = mx, (y1 + y2) / 4 + (my + bend) / 2 - 5
    tip = "" if drawn.undirected else 'marker-start="url(#tip)"' if drawn.back else 'marker-end="url(#tip)"'
    return (
        f'<g class="edge" data-edge="{number}"><title>{html.escape(drawn.label)}</title>'
        f'<path d="{route}" fill="none" stroke="#5b6570" stroke-width="1.5" {tip}/>'
        f'<text x="{lx:.0f}" y="{ly:.0f}" text-anchor="middle" fill="#3c4a5a" font-size="11" stroke="#ffffff" '
        f'stroke-width="3" paint-order="stroke">{html.escape(label)}</text></g>'
    )


def _width(name: str) -> float:
    return min(len(name), 26) * _LETTER + 18


def _node(name: str, x: float, y: float, color: str) -> str:
    return (
        f'<g class="node"><title>{html.escape(name)}</title>'
        f'<rect x="{x:.0f}" y="{y - _HEIGHT / 2:.0f}" width="{_width(name):.0f}" height="{_HEIGHT}" rx="6" '
        f'fill="{color}"/><text x="{x + _width(name) / 2:.0f}" y="{y + 4.5:.0f}" text-anchor="middle" '
        f'fill="#ffffff">{html.escape(_cut(name, 26))}</text></g>'
    )


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
