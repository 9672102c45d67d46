// The retrieved subgraph as a picture that is zoomed, moved, filtered, expanded and saved.

// Freebase ids, blank nodes and their like: nodes that stand for an event between others and have no name.
const NAMELESS = /^(?:[mg]\.[0-9a-z_]{2,}|\/[mg]\/[0-9a-z_]{2,}|_:.+)$/;

const READABLE = 0.8; // scale below which less is drawn
const LARGEST = 1.15;
const LETTER = 5.8; // pixels, of a label
const LABEL_HEIGHT = 12;

let pictures = 0;

// Draw the evidence of some rounds; null if no edge and no answer is in the graph.
function drawing(rounds, view) {
  const edges = edgesOf(rounds, view);
  const met = new Set(edges.flatMap(({ head, tail }) => [head, tail]));
  const lone = [...new Set(view.answers.map(({ id }) => id).filter((id) => id !== null && !met.has(id)))];
  if (!met.size && !lone.length) return null;
  const state = { edges, lone, opened: new Set(), cited: false, all: view.all ?? false, byType: false, arrow: `arrow-${++pictures}` };
  const layer = svg("g");
  const canvas = svg("svg", { class: "subgraph", role: "group" }, svg("defs", {}, arrowhead(state.arrow)), layer);
  const zoom = d3.zoom().scaleExtent([0.05, 8])
    .filter((event) => !event.button && (event.type !== "touchstart" || event.touches.length > 1))
    .on("zoom", ({ transform }) => layer.setAttribute("transform", transform));
  d3.select(canvas).call(zoom).on("dblclick.zoom", null);
  const frame = el("div", { class: "frame" }, canvas);
  const key = el("div");
  const note = el("p", { class: "note" });
  const figure = el("figure", { class: "picture" }, frame, key, note);
  let made = null;

  function draw() {
    const width = frame.clientWidth;
    if (!width) return;
    made = arranged(state, view, width);
    canvas.setAttribute("aria-label", `Retrieved subgraph: ${made.nodes.size} nodes, ${made.edges.length} edges`);
    layer.replaceChildren(...shapes(made, state, view, redraw));
    key.replaceChildren(tools(), legend(made, state, view));
    note.textContent = made.undrawn ? `${number(made.undrawn)} more edges are not drawn; all evidence is listed below.` : "";
    note.hidden = !made.undrawn;
    fit();
  }
  function redraw(change) {
    change(state);
    draw();
  }
  function fit() {
    const box = boxOf(made);
    const scale = Math.min(LARGEST, frame.clientWidth / box.width, tallest() / box.height);
    const height = Math.ceil(Math.min(tallest(), Math.max(90, box.height * scale)));
    canvas.setAttribute("width", frame.clientWidth);
    canvas.setAttribute("height", height);
    const shift = [(frame.clientWidth - box.width * scale) / 2 - box.x * scale, (height - box.height * scale) / 2 - box.y * scale];
    d3.select(canvas).call(zoom.transform, d3.zoomIdentity.translate(...shift).scale(scale));
  }
  function tools() {
    const toggle = (name, title) => button(title, () => redraw((its) => (its[name] = !its[name])), { class: "quiet toggle", "aria-pressed": state[name] });
    const by = (factor) => () => d3.select(canvas).call(zoom.scaleBy, factor);
    const some = new Set(state.edges.map((edge) => edge.cited));
    const name = cut(view.title ?? "graph", 60).replace(/[^\p{L}\p{N}]+/gu, "-");
    return el("div", { class: "tools", role: "toolbar", "aria-label": "Drawing" },
      button("+", by(1.4), { "aria-label": "Zoom in" }), button("−", by(1 / 1.4), { "aria-label": "Zoom out" }), button("Fit", fit),
      some.size > 1 && toggle("cited", "Cited only"),
      (made.undrawn || made.folded || state.all) && toggle("all", "All"),
      Object.keys(view.types ?? {}).length > 0 && toggle("byType", "Colour by type"),
      button("SVG", () => save(`${name}.svg`, copyOf(canvas, made), "image/svg+xml"), { title: "Save as SVG" }),
      button("PNG", () => savePng(`${name}.png`, copyOf(canvas, made), boxOf(made)), { title: "Save as PNG" }));
  }
  new ResizeObserver(() => frame.clientWidth !== Number(canvas.getAttribute("width")) && draw()).observe(frame);
  // Unfold what hangs on a node, and add edges of the graph.
  figure.expand = (id, more = []) => redraw((its) => {
    its.opened.add(id);
    const known = new Set(its.edges.map(({ head, relation, tail }) => JSON.stringify([head, relation, tail])));
    its.edges = [...its.edges, ...more.filter(({ head, relation, tail }) => !known.has(JSON.stringify([head, relation, tail])))];
  });
  return figure;
}

const tallest = () => Math.min(600, Math.max(260, 0.7 * innerHeight));

const arrowhead = (id) => svg(
  "marker",
  { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" },
  svg("path", { d: "M0,0.8 L7.2,4 L0,7.2 z", class: "arrowhead" }),
);

// Choose how much is drawn, and how, so that it can be read in a frame of this width.
function arranged(state, view, width) {
  const edges = state.cited ? state.edges.filter((edge) => edge.cited) : state.edges;
  const nameOf = (id) => view.names[id] ?? id;
  const roles = new Map(edges.flatMap(({ head, tail }) => [head, tail]).concat(state.lone).map((id) => [id, view.roleOf(id, nameOf(id))]));
  const kept = new Set([...roles].filter(([, role]) => role).map(([id]) => id).concat(...state.opened));
  const label = (node) => {
    if (node.more) return `+${number(node.more.count)} more`;
    const name = plain(nameOf(node.id));
    return NAMELESS.test(name) && !view.topics.has(node.id) ? "" : cut(name, 26);
  };
  let found = null;
  for (const most of state.all ? [ALL_DRAWN] : DRAWN) {
    const some = chosen(edges, view.topics, kept, state.opened, most);
    for (const outlined of [false, true]) {
      const made = place(some.edges, state.lone, view.topics, label, outlined, most.level);
      const { width: w, height: h } = boxOf(made);
      const scale = Math.min(LARGEST, width / w, tallest() / h);
      if (found && scale <= found.scale * (outlined ? 1.1 : 1)) continue;
      const drawn = made.edges.reduce((sum, edge) => sum + (edge.more ? 0 : 1), 0);
      found = { ...made, scale, roles, nameOf, undrawn: some.left + some.edges.length - made.edges.length, folded: drawn < made.edges.length };
    }
    if (found.scale >= READABLE) break;
  }
  return found;
}

// The box of all nodes, with room for what goes around them.
function boxOf({ nodes }) {
  const all = [...nodes.values()];
  const [x, y] = [Math.min(...all.map((node) => node.x)) - 12, Math.min(...all.map((node) => node.y)) - 26];
  const right = Math.max(...all.map((node) => node.x + node.width)) + 44;
  return { x, y, width: right - x, height: Math.max(...all.map((node) => node.y)) + 26 - y };
}

function shapes(made, state, view, redraw) {
  const { nodes, route, nameOf } = made;
  const arrow = `url(#${state.arrow})`;
  const taken = [...nodes.values()].map((node) => [node.x, node.y - NODE_HEIGHT / 2, node.x + node.width, node.y + NODE_HEIGHT / 2]);
  const bundles = bundled(made.edges);
  const quiet = route === bent ? new Set() : unlabelled(bundles);
  const lines = bundles.map((bundle) => {
    const { head, tail, edges: its } = bundle;
    const said = cut(plain([...new Set(its.map((edge) => lastPart(edge.relation)))].join(", ")), RELATION_LENGTH);
    const says = ({ head: from, relation, tail: to, more, evidence: ids, undirected }) =>
      `${more?.id === from ? "more" : nameOf(from)} ${undirected ? "—" : "→"} ${relation} ${undirected ? "—" : "→"} ${more?.id === to ? "more" : nameOf(to)}${ids.length ? `  (${ids.join(", ")})` : ""}`;
    const directed = its.filter((edge) => !edge.undirected);
    const line = svg("path", {
      "marker-end": directed.some((edge) => edge.head === head) ? arrow : null,
      "marker-start": directed.some((edge) => edge.head !== head) ? arrow : null,
    });
    const kind = `edge${its.some((edge) => edge.cited) ? " cited" : ""}${its.every((edge) => edge.whole) ? " whole" : ""}${its.every((edge) => edge.graph) ? " of-graph" : ""}`;
    const text = svg("text", { class: "relation" }, said);
    const group = svg("g", { class: kind }, line, svg("title", {}, plain(its.map(says).join("\n"))));
    group.dataset.evidence = [...new Set(its.flatMap((edge) => edge.evidence))].join(" ");
    // A label stands at the first place along its edge where it covers nothing; without one, the title has it.
    const lay = (moved) => {
      const [path, places] = route(nodes.get(head), nodes.get(tail), said);
      const free = quiet.has(bundle) ? null : moved ? places[0] && [places[0][0], places[0][1] - 2] : room(said, places, taken);
      line.setAttribute("d", path);
      text.toggleAttribute("hidden", !free);
      if (free) make(text, { x: free[0], y: free[1] }, []);
    };
    lay(false);
    return { head, tail, group, text, lay };
  });
  const types = typesOf(view);
  const dots = [...nodes.values()].map((node) => {
    const role = view.topics.has(node.id) ? "topic" : (made.roles.get(node.id) ?? "");
    const type = state.byType ? types.get(view.types[node.id]) : undefined;
    const shape = node.label === ""
      ? svg("circle", { cx: 6, cy: 0, r: 5 })
      : svg("rect", { y: -NODE_HEIGHT / 2, width: node.width, height: NODE_HEIGHT, rx: 5 });
    const name = nameOf(node.id);
    const title = [name, name === node.id ? null : node.id, view.types?.[node.id]].filter(Boolean).join("  ");
    const group = svg("g", { class: `node ${role}${node.more ? " more" : ""}${type === undefined ? "" : ` type-${type}`}` },
      shape, svg("text", { x: node.width / 2, y: 4, class: "middle" }, node.label), node.more ? null : svg("title", {}, plain(title)));
    const open = node.more ? () => redraw((its) => its.opened.add(node.more.hub)) : view.open && (() => view.open(node.id));
    if (open) {
      const pressed = (event) => ["Enter", " "].includes(event.key) && (event.preventDefault(), open());
      make(group, { tabindex: 0, role: "button", "aria-label": plain(node.more ? node.label : name), click: open, keydown: pressed }, []);
    }
    const put = () => group.setAttribute("transform", `translate(${node.x},${node.y})`);
    put();
    const near = lines.filter(({ head, tail }) => head === node.id || tail === node.id);
    d3.select(group).datum(node).call(d3.drag().touchable(false).on("drag", (event) => {
      Object.assign(node, { x: event.x, y: event.y, right: Math.max(node.right, event.x + node.width) });
      put();
      near.forEach((each) => each.lay(true));
    }));
    return group;
  });
  return [...lines.map(({ group }) => group), ...dots, ...lines.map(({ text }) => text)];
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

// Of four or more edges of one relation at one node, all but the one in the middle: their labels would say the same.
function unlabelled(bundles) {
  const groups = new Map();
  for (const bundle of bundles) {
    const relations = bundle.edges.map((edge) => edge.relation).join();
    for (const key of [`${bundle.head}\n>${relations}`, `${bundle.tail}\n<${relations}`]) groups.set(key, [...(groups.get(key) ?? []), bundle]);
  }
  const many = [...groups.values()].filter((group) => group.length > 3);
  const told = new Set(many.map((group) => group[group.length >> 1]));
  return new Set(many.flat().filter((bundle) => !told.has(bundle)));
}

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

const cubic = (points) => [`M${points[0]} C${points.slice(1).join(" ")}`, along(points)];

// The path of an edge, from its head to its tail, and where its label may go.
function curve(head, tail) {
  if (head === tail) {
    const [x, y] = [head.x + head.width, head.y];
    return [`M${x},${y - 5} C${x + 34},${y - 24} ${x + 34},${y + 24} ${x + 2},${y + 5}`, [[x + 44, y + 6]]];
  }
  const forward = head.x + head.width < tail.x;
  if (!forward && tail.x + tail.width >= head.x) {
    const [x1, x2] = [head.x + head.width, tail.x + tail.width];
    const out = Math.max(x1, x2) + 36;
    return cubic([[x1, head.y], [out, head.y], [out, tail.y], [x2, tail.y]]);
  }
  const x1 = forward ? head.x + head.width : head.x;
  const x2 = forward ? tail.x : tail.x + tail.width;
  const middle = (x1 + x2) / 2;
  return cubic([[x1, head.y], [middle, head.y], [middle, tail.y], [x2, tail.y]]);
}

// The same of an outline: from a node down and to the right to one below it, or out at the right and back.
function bent(head, tail, label) {
  const down = tail.parent === head;
  const [from, to] = down ? [head, tail] : [tail, head];
  if (to.parent !== from || to.y <= from.y || to.x <= from.x + 16) return curve(head, tail);
  const [x, y] = [from.x + (down ? 8 : 16), from.y + (from.label === "" ? 6 : NODE_HEIGHT / 2)]; // what comes in has a line of its own
  const path = down ? `M${x},${y} V${to.y - 6} Q${x},${to.y} ${x + 6},${to.y} H${to.x}` : `M${to.x},${to.y} H${x + 6} Q${x},${to.y} ${x},${to.y - 6} V${y}`;
  return [path, to.tight ? [] : [[to.x + 2 + (LETTER * label.length) / 2, to.y - NODE_HEIGHT / 2 - 3]]];
}

// The types of all nodes, each with its colour: those of most nodes first.
function typesOf(view) {
  const counts = new Map();
  for (const type of Object.values(view.types ?? {})) counts.set(type, (counts.get(type) ?? 0) + 1);
  return new Map([...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).map(([type], at) => [type, at % 8]));
}

function legend(made, state, view) {
  const used = new Set([...made.nodes.keys()].map((id) => (view.topics.has(id) ? "topic" : made.roles.get(id))));
  const entries = [["topic", "linked"], ["right", "right answer"], ["wrong", "wrong answer"], ["missed", "gold, not answered"], ["given", "answer"]].filter(([role]) => used.has(role));
  const drawn = new Set([...made.nodes.keys()].map((id) => view.types?.[id]));
  const types = state.byType ? [...typesOf(view)].filter(([type]) => drawn.has(type)).slice(0, 12).map(([type, at]) => [`type-${at}`, cut(type, 30)]) : [];
  return el("figcaption", { class: "legend" }, [...entries, ...types].map(([role, title]) => el("span", {}, el("i", { class: role, "aria-hidden": "true" }), view.titles?.[role] ?? title)));
}

// Light up what a piece of evidence holds.
function light(picture, id) {
  for (const edge of picture?.querySelectorAll(".edge") ?? []) {
    edge.classList.toggle("lit", id !== null && edge.dataset.evidence.split(" ").includes(id));
  }
}

const PAINT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "paint-order"];

// The picture as a document of its own: as it is, whole, with its colours in it.
function copyOf(canvas, made) {
  const copy = canvas.cloneNode(true);
  const originals = canvas.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((node, at) => {
    const style = getComputedStyle(originals[at]);
    for (const name of PAINT) node.setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "tabindex", "role", "data-evidence"]) node.removeAttribute(name);
    if (node.hasAttribute("hidden")) node.remove();
  });
  const { x, y, width, height } = boxOf(made);
  copy.querySelector("g").removeAttribute("transform");
  make(copy, { xmlns: SVG, viewBox: [x, y, width, height].join(" "), width, height }, []);
  copy.prepend(svg("rect", { x, y, width, height, fill: getComputedStyle(canvas.parentNode).backgroundColor }));
  return new XMLSerializer().serializeToString(copy);
}

async function savePng(name, text, { width, height }) {
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  const image = new Image();
  image.src = address;
  await image.decode();
  URL.revokeObjectURL(address);
  const canvas = make(document.createElement("canvas"), { width: Math.ceil(2 * width), height: Math.ceil(2 * height) }, []);
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => save(name, blob), "image/png");
}
