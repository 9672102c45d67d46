"""One picture of all paths of an answer: starts on the left, ends on the right, every node and edge once.

A node stands as many columns from the left as edges lie before it on the shortest of the paths, so an edge leads to the
next column, to its own, or back. The SVG stands alone; `evaluation.report.page` makes a page of `describe`.
"""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from byokg.graph.pathql.result import FoundPath, PathResult

_MOST_PATHS, _MOST_LABELS = 200, 60
_LABEL = 34
_ROW, _MARGIN, _HEIGHT, _LETTER = 58, 24, 30, 7.2
_START, _END, _INNER = "#1f5fa8", "#8a4b0f", "#3c4a5a"
"""Colors of nodes: dark enough for white text."""


def describe(result: PathResult) -> dict[str, Any]:
    """Return the first paths, as JSON, for what draws them.

    Steps are as in traces: head, label, tail, edge, inverse, properties, and `undirected` for an undirected edge; the
    edge is null if a step is several.
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
            {"id": f"p{number}", "line": result.line(path), "nodes": path.nodes, "steps": list(_steps(result, path))}
            for number, path in enumerate(paths, start=1)
        ],
    }


def _steps(result: PathResult, path: FoundPath) -> Iterator[list[object]]:
    for edge in path.edges:
        back = not edge.undirected and len(edge.inverse) == 1 and edge.inverse[0]
        label = ", ".join(result.shown(bound) for bound in edge.bindings.values())
        if not label:
            signs = ("" if back or not inverse else "^" for inverse in edge.inverse)
            label = "/".join(sign + triple.relation for sign, triple in zip(signs, edge.triples, strict=True))
        head, tail = sorted((edge.start, edge.end)) if edge.undirected else (edge.start, edge.end)
        number = edge.triples[0].edge if len(edge.triples) == 1 else None
        ends = (tail, label, head) if back else (head, label, tail)
        yield [*ends, number, back, {}, *(["undirected"] if edge.undirected else [])]


def svg(result: PathResult) -> str:
    """Return a drawing as an SVG document; of very many paths, the first ones."""
    record = describe(result)
    names = defaultdict(str, record["names"])
    columns: dict[str, int] = {}
    lines: dict[tuple[str, str], dict[tuple[str, str], set[Any]]] = defaultdict(lambda: defaultdict(set))
    directed: set[tuple[str, str]] = set()
    for path in record["paths"]:
        for place, node in enumerate(path["nodes"]):
            names[node] = names[node] or node
            columns[node] = min(columns.get(node, place), place)
        for head, label, tail, edge, _, _, *undirected in path["steps"]:
            pair = (tail, head) if (tail, head) in lines else (head, tail)
            lines[pair][label, head].add(edge)
            directed |= set() if undirected else {(head, tail)}
    labels = {pair: _label(its) for pair, its in lines.items()}
    long = _LABEL if len(lines) <= _MOST_LABELS else 0
    places, width, height = _place(columns, names, min(long, max(map(len, labels.values()), default=0)))
    shapes = [_edge(pair, labels[pair], long, directed, places, names) for pair in lines]
    for node, (x, y) in places.items():
        color = _START if node in record["starts"] else _END if node in record["ends"] else _INNER
        shapes.append(_node(names[node], x, y, color))
    told = f"{len(record['paths'])} paths between {len(record['starts'])} starts and {len(record['ends'])} ends"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{told}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        'font-family="system-ui, sans-serif" font-size="13">\n'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="#5b6570"/></marker></defs>\n'
        '<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(shapes) + "\n</svg>"
    )


def _label(edges: Mapping[tuple[str, str], set[Any]]) -> str:
    """Return the labels of edges between two nodes, with the number of parallel ones."""
    return ", ".join(
        dict.fromkeys(label + (f" ×{len(its)}" if len(its) > 1 else "") for (label, _), its in edges.items())
    )


def _place(
    columns: Mapping[str, int], names: Mapping[str, str], longest: int
) -> tuple[dict[str, tuple[float, float]], float, float]:
    """Return the left end and the height of each node, and the size of the picture; `longest` letters has a label."""
    rows: dict[int, list[str]] = defaultdict(list)
    for node, column in columns.items():
        rows[column].append(node)
    height = 2 * _MARGIN + max(map(len, rows.values()), default=1) * _ROW
    places: dict[str, tuple[float, float]] = {}
    x: float = _MARGIN
    for _, members in sorted(rows.items()):
        for row, node in enumerate(members):
            places[node] = x, height / 2 + (row - (len(members) - 1) / 2) * _ROW
        x += max(_width(names[node]) for node in members) + 60 + longest * 6
    return places, x, height


def _edge(
    pair: tuple[str, str],
    label: str,
    long: int,
    directed: set[tuple[str, str]],
    places: Mapping[str, tuple[float, float]],
    names: Mapping[str, str],
) -> str:
    """Draw the edges between two nodes as one line, from left to right, or out at the right and back.

    Args:
        pair: the nodes, with `places` and `names`.
        label: of the line.
        long: characters of the label that are written; all of them are the title.
        directed: pairs of which an edge leads from the first to the second.
    """
    (x1, y1), (x2, y2) = places[pair[0]], places[pair[1]]
    if x1 == x2:
        x1, x2 = x1 + _width(names[pair[0]]), x2 + _width(names[pair[1]])
        y1, y2 = (y1 - 6, y2 + 6) if pair[0] == pair[1] else (y1, y2)
        middle = max(x1, x2) + 44
    else:
        x1, x2 = (x1 + _width(names[pair[0]]), x2) if x1 < x2 else (x1, x2 + _width(names[pair[1]]))
        middle = (x1 + x2) / 2
    tips = ' marker-end="url(#tip)"' * (pair in directed)
    tips += ' marker-start="url(#tip)"' * (pair[0] != pair[1] and pair[::-1] in directed)
    return (
        f'<g class="edge"><title>{html.escape(label)}</title><path d="M{x1:.0f} {y1:.0f}C{middle:.0f} {y1:.0f} '
        f'{middle:.0f} {y2:.0f} {x2:.0f} {y2:.0f}" fill="none" stroke="#5b6570" stroke-width="1.5"{tips}/>'
        f'<text x="{(x1 + x2 + 6 * middle) / 8:.0f}" y="{(y1 + y2) / 2 - 5:.0f}" text-anchor="middle" fill="#3c4a5a" '
        'font-size="11" stroke="#ffffff" stroke-width="3" paint-order="stroke">'
        f"{html.escape(_cut(label, long))}</text></g>"
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
    return text if len(text) <= length else f"{text[: length - 1]}…" if length else ""
