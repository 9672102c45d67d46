// The retrieved subgraph: which of it is drawn, and where. The same evidence always gives the same picture.

// How much of it: nodes in all, leaves of one relation of a node, and of a node; the others become "+n more". And edges
// between nodes equally far from the linked ones, cited ones apart.
const DRAWN = [[36, 4, 10], [24, 3, 8], [16, 2, 5], [10, 2, 3]].map(([nodes, relation, node]) => ({ nodes, relation, node, level: 4 }));
const ALL_DRAWN = { nodes: 300, relation: 300, node: 300, level: Infinity };
const OPENED = 60; // leaves of a node that was expanded
const NODE_HEIGHT = 24;
const NODE_GAP = 14;
const INDENT = 28; // of an outline's levels
const RELATION_LENGTH = 26; // characters of an edge's label

const lower = (text) => String(text).normalize("NFKC").toLowerCase().trim();
const lastPart = (relation) => relation.split(/[./#]/).filter(Boolean).pop() ?? relation;

// All edges that the evidence holds, each once: those that answers cite, those that hang together with the linked nodes,
// and then the others. An answer that ends a metapath without a recorded walk has an edge of the whole metapath.
function edgesOf(rounds, view) {
  const edges = new Map();
  const keep = (item, head, relation, tail, more) => {
    if (typeof head !== "string" || typeof tail !== "string" || typeof relation !== "string") return;
    const key = JSON.stringify([head, relation, tail]);
    const edge = edges.get(key) ?? { head, relation, tail, evidence: [], cited: false, ...more };
    if (!edge.evidence.includes(item.id)) edge.evidence.push(item.id);
    edge.cited ||= view.cited.has(item.id);
    edges.set(key, edge);
  };
  const cells = (item, value) => {
    if (Array.isArray(value)) value.forEach((each) => cells(item, each));
    else if (value !== null && typeof value === "object") {
      if ("head" in value && "relation" in value && "tail" in value) keep(item, value.head, value.relation, value.tail);
      else Object.values(value).forEach((each) => cells(item, each));
    }
  };
  const items = rounds.flatMap((round) => round.evidence ?? []);
  for (const item of items) {
    if (item.kind === "PathEvidence") {
      for (const [head, relation, tail, , , , undirected] of (item.paths ?? []).flat()) keep(item, head, relation, tail, { undirected: Boolean(undirected) });
    } else if (item.kind === "TripleEvidence") keep(item, item.triple.head, item.triple.relation, item.triple.tail, { undirected: Boolean(item.triple.undirected) });
    else if (item.kind === "RowsEvidence") cells(item, item.rows ?? []);
  }
  const met = new Set([...edges.values()].flatMap(({ head, tail }) => [head, tail]));
  for (const item of items) {
    for (const end of (item.kind === "PathEvidence" && item.ends) || []) {
      if (!met.has(end) && view.roleOf(end, view.names[end] ?? end)) keep(item, item.source, item.relations.join(" / "), end, { whole: item.relations.length });
    }
  }
  const all = [...edges.values()];
  const near = reached(all, view.topics);
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

// Choose edges until enough nodes are in the picture; fold the many leaves of a hub. Kept nodes, such as answers, are
// always in it.
function chosen(edges, topics, kept, opened, most) {
  const some = fewest(edges, kept, 4 * most.nodes);
  const byRelation = folded(some.edges, topics, kept, opened, most.relation, (edge, hub) => JSON.stringify([hub, edge.relation, hub === edge.head]));
  const byHub = folded(byRelation, topics, kept, opened, most.node, (edge, hub) => JSON.stringify([hub]));
  const drawn = fewest(byHub, kept, most.nodes);
  return { edges: drawn.edges, left: some.left + drawn.left };
}

// The first edges that touch no more nodes than this but kept ones, and how many are left out.
function fewest(edges, kept, count) {
  const nodes = new Set();
  const first = edges.filter((edge) => {
    const fresh = [edge.head, edge.tail].filter((id) => !nodes.has(id));
    if (nodes.size + fresh.length > count && !fresh.some((id) => kept.has(id))) return false;
    fresh.forEach((id) => nodes.add(id));
    return true;
  });
  return { edges: first, left: edges.length - first.length };
}

// Of the leaves of one group keep a few, and let one node stand for the others. Topics and answers are no leaves.
function folded(edges, topics, kept, opened, count, groupOf) {
  const degree = new Map();
  for (const { head, tail } of edges) for (const id of [head, tail]) degree.set(id, (degree.get(id) ?? 0) + 1);
  const groups = new Map();
  const result = [];
  for (const edge of edges) {
    const leaf = [edge.tail, edge.head].find((id) => degree.get(id) === 1 && !topics.has(id) && (!kept.has(id) || opened.has(id)));
    const hub = leaf === edge.tail ? edge.head : edge.tail;
    const key = leaf === undefined ? null : groupOf(edge, hub);
    const group = groups.get(key) ?? { hub, limit: opened.has(hub) ? OPENED : count, edges: [] };
    groups.set(key, group);
    group.edges.push(edge);
    if (key === null || group.edges.length <= group.limit) result.push(edge);
  }
  for (const [key, { hub, limit, edges: its }] of groups) {
    const rest = its.slice(limit);
    if (key === null || !rest.length) continue;
    const relations = new Set(rest.map((edge) => edge.relation));
    const more = { id: `more ${key}`, hub, count: rest.reduce((sum, edge) => sum + (edge.more?.count ?? 1), 0) };
    const ends = rest.every((edge) => edge.tail === hub) ? { head: more.id, tail: hub } : { head: hub, tail: more.id };
    const relation = relations.size === 1 ? [...relations][0] : `${relations.size} other relations`;
    result.push({ ...ends, relation, more, evidence: [...new Set(rest.flatMap((edge) => edge.evidence))], cited: rest.some((edge) => edge.cited) });
  }
  return result;
}

// Give nodes places: in columns by their distance from the linked ones, each column ordered by its neighbours and cut where
// it is long; as an outline, one below the other, indented by that distance.
function place(edges, lone, topics, label, outlined, level) {
  const nodes = new Map();
  const node = (id) => {
    if (!nodes.has(id)) nodes.set(id, { id, near: [], more: null, layer: -1, rank: 0 });
    return nodes.get(id);
  };
  for (const edge of edges) {
    const [head, tail] = [node(edge.head), node(edge.tail)];
    if (!edge.whole) head.near.push(edge.tail);
    if (!edge.whole) tail.near.push(edge.head);
    if (edge.more) nodes.get(edge.more.id).more = edge.more;
  }
  const all = [...nodes.values()];
  const walk = (starts) => {
    starts.forEach((each) => (each.layer = 0));
    for (let front = starts; front.length; ) {
      front = front.flatMap(({ near, layer }) => near.map((id) => nodes.get(id)).filter((other) => other.layer < 0 && ((other.layer = layer + 1), true)));
    }
  };
  walk(all.filter((each) => topics.has(each.id)));
  for (const { whole, head, tail } of edges.filter((edge) => edge.whole)) if (nodes.get(tail).layer < 0) nodes.get(tail).layer = Math.max(0, nodes.get(head).layer) + whole;
  for (const each of all) if (each.layer < 0) walk([each]);
  const last = all.reduce((most, each) => Math.max(most, each.layer), 0);
  for (const id of lone) {
    all.push(node(id));
    node(id).layer = last;
  }
  const layers = [];
  const depths = [...new Set(all.map((each) => each.layer))].sort((a, b) => a - b); // none is left out
  for (const each of all) (layers[(each.layer = depths.indexOf(each.layer))] ??= []).push(each);
  layers.forEach((layer) => layer.forEach((each, at) => (each.rank = at)));
  for (let sweep = 0; sweep < 6; sweep++) {
    for (const layer of sweep % 2 ? [...layers].reverse() : layers) {
      const weight = new Map(
        layer.map((each) => {
          const ranks = each.near.map((id) => nodes.get(id)).filter((other) => other.layer !== each.layer).map((other) => other.rank / layers[other.layer].length);
          return [each, ranks.length ? ranks.reduce((sum, rank) => sum + rank, 0) / ranks.length : each.rank / layer.length];
        }),
      );
      layer.sort((a, b) => weight.get(a) - weight.get(b) || a.rank - b.rank);
      layer.forEach((each, at) => (each.rank = at));
    }
  }
  for (const each of all) {
    each.label = label(each);
    each.width = each.label === "" ? 12 : 18 + 6.7 * Array.from(each.label).length;
  }
  return outlined ? outline(nodes, layers, edges, level) : columns(nodes, layers, edges, level);
}

const pitch = NODE_HEIGHT + NODE_GAP;

function columns(nodes, layers, edges, level) {
  const tall = Math.min(Math.max(...layers.map((layer) => layer.length)), Math.max(12, Math.ceil(1.5 * Math.sqrt(nodes.size))));
  const height = tall * pitch + 28;
  let x = 12;
  layers.forEach((layer, depth) => {
    const parts = Math.ceil(layer.length / tall);
    const rows = Math.ceil(layer.length / parts);
    const left = x;
    for (let part = 0; part < parts; part++) {
      const its = layer.slice(part * rows, (part + 1) * rows);
      const width = Math.max(...its.map((node) => node.width));
      its.forEach((node, at) => {
        node.x = x + (depth === 0 ? width - node.width : 0);
        node.y = 14 + ((at + 0.5) * (height - 28)) / its.length;
      });
      x += width + 24;
    }
    layer.forEach((node) => (node.right = x - 24));
    const relations = edges.filter(({ head, tail }) => Math.min(nodes.get(head).layer, nodes.get(tail).layer) === depth);
    const longest = Math.max(0, ...relations.map((edge) => Math.min(RELATION_LENGTH, lastPart(edge.relation).length)));
    x += (x > left ? 28 : 52) + LETTER * longest;
  });
  return { nodes, edges: fewerOf(edges, ({ head, tail }) => nodes.get(head).layer === nodes.get(tail).layer, level), route: curve };
}

// All edges but the many of a kind that are not cited.
function fewerOf(edges, kind, most) {
  let count = 0;
  return edges.filter((edge) => !kind(edge) || edge.cited || ++count <= most);
}

function outline(nodes, layers, edges, level) {
  const below = new Map();
  const whole = new Map(edges.filter((edge) => edge.whole).map((edge) => [edge.tail, edge.head]));
  for (const node of layers.slice(1).flat()) {
    if (!node.near.length && whole.has(node.id)) node.near.push(whole.get(node.id));
    const nearer = node.near.map((id) => nodes.get(id)).filter((other) => other.layer === node.layer - 1 || (whole.get(node.id) === other.id && other.layer < node.layer));
    if (!nearer.length) continue;
    node.parent = nearer.reduce((first, other) => (other.rank < first.rank ? other : first), nearer[0]);
    below.set(node.parent, [...(below.get(node.parent) ?? []), node]);
  }
  const relation = new Map(edges.flatMap((edge) => [[`${edge.head}\n${edge.tail}`, edge.relation], [`${edge.tail}\n${edge.head}`, `^${edge.relation}`]]));
  let y = 4;
  let before = null;
  const put = (node) => {
    // The relation stands between, but not between siblings that share it.
    const how = node.parent && `${node.parent.id}\n${relation.get(`${node.parent.id}\n${node.id}`)}`;
    node.tight = how !== undefined && how === before;
    before = how;
    y += node.tight ? 4 : node.parent ? 16 : 8;
    Object.assign(node, { x: 8 + INDENT * node.layer, y: y + NODE_HEIGHT / 2 });
    y += NODE_HEIGHT;
    below.get(node)?.forEach(put);
  };
  layers.flat().filter((node) => !node.parent).forEach(put);
  const across = ({ head, tail }) => nodes.get(head).parent !== nodes.get(tail) && nodes.get(tail).parent !== nodes.get(head);
  const right = Math.max(...[...nodes.values()].map((node) => node.x + node.width));
  for (const node of nodes.values()) node.right = right;
  return { nodes, edges: fewerOf(edges, across, level), route: bent };
}
