// The retrieved subgraph: which of it is drawn, and where. The same evidence always gives the same picture.

// How much of it: nodes in all, leaves of one relation of a node, and of a node; the others become "+n more".
const DRAWN = { nodes: 36, relation: 4, node: 10 };
const DRAWN_ON_A_PHONE = { nodes: 16, relation: 2, node: 5 };
const LEVEL_DRAWN = 4; // edges between nodes equally far from what was linked, cited ones apart
const NODE_HEIGHT = 24;
const NODE_GAP = 14;
const INDENT = 28; // of an outline's levels, less where there are many
const RELATION_LENGTH = 30; // characters of an edge's label

const lower = (text) => String(text).normalize("NFKC").toLowerCase().trim();
const lastPart = (relation) => relation.split(/[./#]/).filter(Boolean).pop() ?? relation;

// All edges that the evidence holds, each once: those that answers cite, those that hang together with what was linked,
// and then the others.
function edgesOf(rounds, cited, topics) {
  const edges = new Map();
  const keep = (item, head, relation, tail) => {
    if (typeof head !== "string" || typeof tail !== "string" || typeof relation !== "string") return;
    const key = JSON.stringify([head, relation, tail]);
    const edge = edges.get(key) ?? { head, relation, tail, evidence: [], cited: false };
    if (!edge.evidence.includes(item.id)) edge.evidence.push(item.id);
    edge.cited ||= cited.has(item.id);
    edges.set(key, edge);
  };
  const cells = (item, value) => {
    if (Array.isArray(value)) value.forEach((each) => cells(item, each));
    else if (value !== null && typeof value === "object") {
      if ("head" in value && "relation" in value && "tail" in value) keep(item, value.head, value.relation, value.tail);
      else Object.values(value).forEach((each) => cells(item, each));
    }
  };
  for (const item of rounds.flatMap((round) => round.evidence ?? [])) {
    if (item.kind === "PathEvidence") {
      for (const path of item.paths ?? []) for (const [head, relation, tail] of path) keep(item, head, relation, tail);
    } else if (item.kind === "TripleEvidence") keep(item, item.triple.head, item.triple.relation, item.triple.tail);
    else if (item.kind === "RowsEvidence") cells(item, item.rows ?? []);
  }
  const all = [...edges.values()];
  const near = reached(all, topics);
  const rank = (edge) => (edge.cited ? 0 : near.has(edge.head) ? 1 : 2);
  return all.map((edge, at) => [rank(edge), at, edge]).sort(([a, i], [b, j]) => a - b || i - j).map(([, , edge]) => edge);
}

// All nodes to which a way leads from the starts.
function reached(edges, starts) {
  const found = new Set(starts);
  for (let before = -1; before < found.size; ) {
    before = found.size;
    for (const { head, tail } of edges) {
      if (found.has(head)) found.add(tail);
      else if (found.has(tail)) found.add(head);
    }
  }
  return found;
}

// Choose edges until enough nodes are in the picture; fold the many leaves of a hub.
function chosen(edges, topics, kept, most) {
  const some = fewest(edges, 4 * most.nodes);
  const byRelation = folded(some.edges, topics, kept, most.relation, (edge, hub) => JSON.stringify([hub, edge.relation, hub === edge.head]));
  const byHub = folded(byRelation, topics, kept, most.node, (edge, hub) => JSON.stringify([hub]));
  const drawn = fewest(byHub, most.nodes);
  return { edges: drawn.edges, left: some.left + drawn.left };
}

// The first edges that touch no more nodes than this, and how many are left out.
function fewest(edges, count) {
  const nodes = new Set();
  const first = edges.filter((edge) => {
    const fresh = [edge.head, edge.tail].filter((id) => !nodes.has(id));
    if (nodes.size + fresh.length > count) return false;
    fresh.forEach((id) => nodes.add(id));
    return true;
  });
  return { edges: first, left: edges.length - first.length };
}

// Of the leaves of one group keep a few, and let one node stand for the others. Topics and answers are no leaves.
function folded(edges, topics, kept, count, groupOf) {
  const degree = new Map();
  for (const { head, tail } of edges) for (const id of [head, tail]) degree.set(id, (degree.get(id) ?? 0) + 1);
  const groups = new Map();
  const result = [];
  for (const edge of edges) {
    const leaf = [edge.tail, edge.head].find((id) => degree.get(id) === 1 && !topics.has(id) && !kept.has(id));
    const hub = leaf === edge.tail ? edge.head : edge.tail;
    const key = leaf === undefined ? null : groupOf(edge, hub);
    const group = groups.get(key) ?? { hub, edges: [] };
    groups.set(key, group);
    group.edges.push(edge);
    if (key === null || group.edges.length <= count) result.push(edge);
  }
  for (const [key, { hub, edges: its }] of groups) {
    const rest = its.slice(count);
    if (key === null || !rest.length) continue;
    const relations = new Set(rest.map((edge) => edge.relation));
    const more = { id: `more ${key}`, count: rest.reduce((sum, edge) => sum + (edge.more?.count ?? 1), 0) };
    const ends = rest.every((edge) => edge.tail === hub) ? { head: more.id, tail: hub } : { head: hub, tail: more.id };
    const relation = relations.size === 1 ? [...relations][0] : `${relations.size} other relations`;
    result.push({ ...ends, relation, more, evidence: [...new Set(rest.flatMap((edge) => edge.evidence))], cited: rest.some((edge) => edge.cited) });
  }
  return result;
}

// Put nodes into columns by their distance from what was linked, and order each column by its neighbours; on a phone,
// one below the other, indented by that distance.
function place(edges, topics, label, phone) {
  const nodes = new Map();
  for (const edge of edges) {
    for (const id of [edge.head, edge.tail]) {
      if (!nodes.has(id)) nodes.set(id, { id, near: [], more: null, layer: -1, rank: 0 });
    }
    if (edge.more) nodes.get(edge.more.id).more = edge.more.count;
    nodes.get(edge.head).near.push(edge.tail);
    nodes.get(edge.tail).near.push(edge.head);
  }
  const all = [...nodes.values()];
  const walk = (starts) => {
    starts.forEach((node) => (node.layer = 0));
    for (let front = starts; front.length; ) {
      const next = [];
      for (const node of front) {
        for (const id of node.near) {
          const other = nodes.get(id);
          if (other.layer < 0) {
            other.layer = node.layer + 1;
            next.push(other);
          }
        }
      }
      front = next;
    }
  };
  walk(all.filter((node) => topics.has(node.id)));
  for (const node of all) if (node.layer < 0) walk([node]);
  const layers = [];
  for (const node of all) (layers[node.layer] ??= []).push(node);
  layers.forEach((layer) => layer.forEach((node, at) => (node.rank = at)));
  for (let sweep = 0; sweep < 6; sweep++) {
    for (const layer of sweep % 2 ? [...layers].reverse() : layers) {
      const weight = new Map(
        layer.map((node) => {
          const ranks = node.near.map((id) => nodes.get(id)).filter((other) => other.layer !== node.layer).map((other) => other.rank / layers[other.layer].length);
          return [node, ranks.length ? ranks.reduce((sum, rank) => sum + rank, 0) / ranks.length : node.rank / layer.length];
        }),
      );
      layer.sort((a, b) => weight.get(a) - weight.get(b) || a.rank - b.rank);
      layer.forEach((node, at) => (node.rank = at));
    }
  }
  for (const node of all) {
    node.label = label(node);
    node.width = node.label === "" ? 12 : 18 + 6.7 * Array.from(node.label).length;
  }
  if (phone) return outline(nodes, layers, edges);
  const tall = Math.max(...layers.map((layer) => layer.length));
  const height = tall * (NODE_HEIGHT + NODE_GAP) + 28;
  let x = 12;
  layers.forEach((layer, depth) => {
    const width = Math.max(...layer.map((node) => node.width));
    layer.forEach((node, at) => {
      node.x = x + (depth === 0 ? width - node.width : 0);
      node.right = x + width;
      node.y = 14 + ((at + 0.5) * (height - 28)) / layer.length;
    });
    const relations = edges.filter(({ head, tail }) => Math.min(nodes.get(head).layer, nodes.get(tail).layer) === depth);
    const longest = Math.max(0, ...relations.map((edge) => Math.min(RELATION_LENGTH, lastPart(edge.relation).length)));
    x += width + 52 + 5.8 * longest;
  });
  const isLevel = ({ head, tail }) => nodes.get(head).layer === nodes.get(tail).layer;
  const drawn = fewerOf(edges, isLevel);
  const right = Math.max(...all.map((node) => node.x + node.width));
  return { nodes, edges: drawn, width: right + (drawn.some(isLevel) ? 130 : 14), height };
}

// All edges but the many of a kind that are not cited.
function fewerOf(edges, kind) {
  let count = 0;
  return edges.filter((edge) => !kind(edge) || edge.cited || ++count <= LEVEL_DRAWN);
}

function outline(nodes, layers, edges) {
  const indent = Math.min(INDENT, 112 / layers.length);
  const below = new Map();
  for (const node of layers.slice(1).flat()) {
    const nearer = node.near.map((id) => nodes.get(id)).filter((other) => other.layer === node.layer - 1);
    node.parent = nearer.reduce((first, other) => (other.rank < first.rank ? other : first), nearer[0]);
    below.set(node.parent, [...(below.get(node.parent) ?? []), node]);
  }
  let y = 4;
  const put = (node) => {
    y += node.parent ? 16 : 8; // the relation stands between
    Object.assign(node, { x: 8 + indent * node.layer, y: y + NODE_HEIGHT / 2 });
    y += NODE_HEIGHT;
    below.get(node)?.forEach(put);
  };
  layers[0].forEach(put);
  const across = ({ head, tail }) => nodes.get(head).parent !== nodes.get(tail) && nodes.get(tail).parent !== nodes.get(head);
  const drawn = fewerOf(edges, across);
  const right = Math.max(...[...nodes.values()].map((node) => node.x + node.width));
  for (const node of nodes.values()) node.right = right;
  return { nodes, edges: drawn, width: right + (drawn.some(across) ? 40 : 8), height: y + 10 };
}
