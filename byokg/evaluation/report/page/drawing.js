// The retrieved subgraph as a picture.

// Freebase ids, blank nodes and their like: nodes that stand for an event between others and have no name.
const NAMELESS = /^(?:[mg]\.[0-9a-z_]{2,}|\/[mg]\/[0-9a-z_]{2,}|_:.+)$/;

let pictures = 0;

function drawing(rounds, view) {
  const cited = new Set(view.answers.flatMap((answer) => answer.citations));
  const { topics } = view;
  const edges = edgesOf(rounds, cited, topics);
  if (!edges.length) return null;
  const nameOf = (id) => view.names[id] ?? id;
  const roles = new Map();
  for (const edge of edges) for (const id of [edge.head, edge.tail]) roles.set(id, view.roleOf(id, nameOf(id)));
  const kept = new Set([...roles].filter(([, role]) => role).map(([id]) => id));
  const phone = matchMedia("(max-width: 600px)").matches;
  const { edges: some, left } = chosen(edges, topics, kept, phone ? DRAWN_ON_A_PHONE : DRAWN);
  const label = (node) => {
    if (node.more) return `+${number(node.more)} more`;
    const name = plain(nameOf(node.id));
    return NAMELESS.test(name) && !topics.has(node.id) ? "" : cut(name, 26);
  };
  const { nodes, edges: drawn, width, height } = place(some, topics, label, phone);
  const undrawn = left + some.length - drawn.length;
  const arrow = `arrow-${++pictures}`;
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, class: "subgraph", role: "img", "aria-label": `Retrieved subgraph: ${nodes.size} nodes, ${drawn.length} edges` },
    svg("defs", {}, svg(
      "marker",
      { id: arrow, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" },
      svg("path", { d: "M0,0.8 L7.2,4 L0,7.2 z", class: "arrowhead" }),
    )),
  );
  if (!phone) picture.style.minWidth = `${0.75 * width}px`;
  const labels = [];
  const taken = [...nodes.values()].map((node) => [node.x, node.y - NODE_HEIGHT / 2, node.x + node.width, node.y + NODE_HEIGHT / 2]);
  for (const { head, tail, edges: its } of bundled(drawn)) {
    const relations = [...new Set(its.map((edge) => lastPart(edge.relation)))].join(", ");
    const said = cut(plain(relations), RELATION_LENGTH);
    const [path, places] = (phone ? bent : curve)(nodes.get(head), nodes.get(tail), said);
    const says = ({ head: from, relation, tail: to, more, evidence: ids }) =>
      `${more?.id === from ? "more" : nameOf(from)} → ${relation} → ${more?.id === to ? "more" : nameOf(to)}  (${ids.join(", ")})`;
    const group = svg(
      "g",
      { class: `edge${its.some((edge) => edge.cited) ? " cited" : ""}` },
      svg("path", {
        d: path,
        "marker-end": its.some((edge) => edge.head === head) ? `url(#${arrow})` : null,
        "marker-start": its.some((edge) => edge.head !== head) ? `url(#${arrow})` : null,
      }),
      svg("title", {}, plain(its.map(says).join("\n"))),
    );
    group.dataset.evidence = [...new Set(its.flatMap((edge) => edge.evidence))].join(" ");
    picture.append(group);
    const free = room(said, places, taken);
    // Where there is no room for it, the edge says what it is when it is pointed at, and evidence below does.
    if (free) labels.push(svg("text", { x: free[0], y: free[1], class: "relation" }, said));
  }
  for (const node of nodes.values()) {
    const role = topics.has(node.id) ? "topic" : (roles.get(node.id) ?? "");
    const title = node.more ? null : svg("title", {}, plain(nameOf(node.id) === node.id ? node.id : `${nameOf(node.id)}  ${node.id}`));
    const shape =
      node.label === ""
        ? svg("circle", { cx: node.x + 6, cy: node.y, r: 5 })
        : svg("rect", { x: node.x, y: node.y - NODE_HEIGHT / 2, width: node.width, height: NODE_HEIGHT, rx: 5 });
    const text = svg("text", { x: node.x + node.width / 2, y: node.y + 4, class: "middle" }, node.label);
    const group = svg("g", { class: `node ${role}${node.more ? " more" : ""}` }, shape, text, title);
    if (view.open && !node.more) {
      const pressed = (event) => ["Enter", " "].includes(event.key) && (event.preventDefault(), view.open(node.id));
      make(group, { tabindex: 0, role: "button", "aria-label": plain(nameOf(node.id)), click: () => view.open(node.id), keydown: pressed }, []);
    }
    picture.append(group);
  }
  picture.append(...labels);
  const rest = undrawn ? el("p", { class: "note" }, `${number(undrawn)} more edges are not drawn; all evidence is listed below.`) : null;
  return el("figure", { class: "picture" }, el("div", { class: "wide", tabindex: 0, role: "group", "aria-label": "Retrieved subgraph" }, picture), legend(new Set([...roles.values(), "topic"])), rest);
}

// Edges between the same two nodes, drawn as one.
function bundled(edges) {
  const bundles = new Map();
  for (const edge of edges) {
    const pair = JSON.stringify([edge.head, edge.tail].sort());
    const bundle = bundles.get(pair) ?? { head: edge.head, tail: edge.tail, edges: [] };
    bundle.edges.push(edge);
    bundles.set(pair, bundle);
  }
  return [...bundles.values()];
}

const LETTER = 5.8; // pixels, of a label
const LABEL_HEIGHT = 12;

// The first place along an edge at which a label covers neither a node nor another label; nothing where it has none.
function room(label, places, taken) {
  const half = (LETTER * label.length) / 2;
  for (const [x, y] of places) {
    const box = [x - half, y - LABEL_HEIGHT, x + half, y + 2];
    if (taken.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])) continue;
    taken.push(box);
    return [x, y - 2];
  }
  return null;
}

// Places along a cubic curve, the middle first.
const along = (points) =>
  [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74].map((t) => {
    const parts = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t ** 3];
    return [0, 1].map((axis) => parts.reduce((sum, part, at) => sum + part * points[at][axis], 0));
  });

// The path of an edge, from its head to its tail, and where its label may go.
function curve(head, tail) {
  if (head === tail) {
    const [x, y] = [head.x + head.width, head.y];
    return [`M${x},${y - 5} C${x + 34},${y - 24} ${x + 34},${y + 24} ${x + 2},${y + 5}`, [[x + 44, y + 6]]];
  }
  if (head.layer === tail.layer) {
    const [x1, x2] = [head.x + head.width, tail.x + tail.width];
    const out = head.right + 40;
    return [`M${x1},${head.y} C${out},${head.y} ${out},${tail.y} ${x2},${tail.y}`, along([[x1, head.y], [out, head.y], [out, tail.y], [x2, tail.y]])];
  }
  const forward = head.layer < tail.layer;
  const x1 = forward ? head.x + head.width : head.x;
  const x2 = forward ? tail.x : tail.x + tail.width;
  const middle = (x1 + x2) / 2;
  return [`M${x1},${head.y} C${middle},${head.y} ${middle},${tail.y} ${x2},${tail.y}`, along([[x1, head.y], [middle, head.y], [middle, tail.y], [x2, tail.y]])];
}

// The same of an outline: from a node down and to the right to one below it, or out at the right and back.
function bent(head, tail, label) {
  if (head.parent !== tail && tail.parent !== head) {
    const [x1, x2, out] = [head.x + head.width, tail.x + tail.width, head.right + 30];
    return [`M${x1},${head.y} C${out},${head.y} ${out},${tail.y} ${x2},${tail.y}`, []];
  }
  const down = tail.parent === head;
  const [from, to] = down ? [head, tail] : [tail, head];
  const [x, y] = [from.x + (down ? 8 : 16), from.y + (from.label === "" ? 6 : NODE_HEIGHT / 2)]; // what comes in has a line of its own
  const path = down ? `M${x},${y} V${to.y - 6} Q${x},${to.y} ${x + 6},${to.y} H${to.x}` : `M${to.x},${to.y} H${x + 6} Q${x},${to.y} ${x},${to.y - 6} V${y}`;
  return [path, [[to.x + 2 + (LETTER * label.length) / 2, to.y - NODE_HEIGHT / 2 - 3]]];
}

function legend(used) {
  const entries = [["topic", "linked"], ["right", "right answer"], ["wrong", "wrong answer"], ["missed", "gold, not answered"], ["given", "answer"]];
  return el("figcaption", { class: "legend" }, entries.filter(([role]) => used.has(role)).map(([role, title]) => el("span", {}, el("i", { class: role, "aria-hidden": "true" }), title)));
}

// Scroll a picture that is taller than its frame to what was linked.
function centre() {
  const frame = document.querySelector(".picture .wide");
  const node = frame?.querySelector(".node.topic") ?? frame?.querySelector(".node");
  if (!node) return;
  const [outer, inner] = [frame.getBoundingClientRect(), node.getBoundingClientRect()];
  frame.scrollTop += inner.top + inner.height / 2 - outer.top - outer.height / 2;
}

// Light up what a piece of evidence holds.
function light(picture, id) {
  for (const edge of picture?.querySelectorAll(".edge") ?? []) {
    edge.classList.toggle("lit", id !== null && edge.dataset.evidence.split(" ").includes(id));
  }
}
