// Pieces of evidence, each kind as it reads best, answers highlighted.

const ENDS_LISTED = 24;
const ROWS_LISTED = 25;
const CHARACTERS_LISTED = 6000;

// A node's name, marked where it is an answer or should have been.
function nodeName(id, view, name = view.names[id] ?? id) {
  const role = view.topics.has(id) ? "topic" : view.roleOf(id, name);
  const title = name === id ? null : plain(id);
  return role ? el("mark", { class: role, title, dir: "auto" }, cut(name, 200)) : el("span", { class: "entity", title, dir: "auto" }, cut(name, 200));
}

const arrow = (inverse) => (inverse ? "←" : "→");

// Relations one after the other, an arrow before each and one to where the last leads: → a ← b ←
function hops(labels) {
  const inverse = (label) => label.startsWith("^");
  return el("span", { class: "hop" },
    labels.map((label) => [arrow(inverse(label)), " ", el("i", {}, cut(label.replace(/^\^/, ""), 120)), " "]),
    labels.length ? arrow(inverse(labels.at(-1))) : null);
}

function properties(record) {
  const entries = Object.entries(record ?? {});
  if (!entries.length) return null;
  return el("small", { class: "properties" }, entries.map(([key, value]) => el("span", {}, `${cut(key, 60)} `, el("b", {}, cut(text(value), 200)))));
}

const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));

// Text of any length; what is long is folded.
function longText(value, kind = "block") {
  const node = el("pre", { class: kind, dir: "auto" }, value.slice(0, CHARACTERS_LISTED));
  if (value.length <= CHARACTERS_LISTED) return node;
  const rest = `Show all ${number(value.length)} characters`;
  const button = el("button", { type: "button", class: "quiet", click: () => { node.replaceChildren(shown(value)); button.remove(); } }, rest);
  return [node, button];
}

// A long list whose rest is drawn when it is asked for.
function listed(values, count, draw) {
  const box = el("div", { class: "listed" }, values.slice(0, count).map(draw));
  if (values.length > count) {
    const more = () => {
      button.remove();
      add(box, [values.slice(count).map(draw)]);
    };
    const button = el("button", { type: "button", class: "quiet", click: more }, `Show ${number(values.length - count)} more`);
    box.append(button);
  }
  return box;
}

const KINDS = {
  PathEvidence(item, view) {
    const ends = item.ends.slice(0, ENDS_LISTED).map((id, at) => [at ? el("span", { class: "dim" }, " | ") : null, nodeName(id, view)]);
    const left = (item.n_ends ?? item.ends.length) - Math.min(item.ends.length, ENDS_LISTED);
    const rest = [left > 0 && ` (+${number(left)} more)`, item.truncated && " (cut short)"];
    const facts = new Map(item.paths.flat().filter((step) => Object.keys(step[5] ?? {}).length).map((step) => [JSON.stringify(step), step]));
    const draw = ([head, label, tail, , , its]) =>
      el("div", { class: "fact" }, nodeName(head, view), " ", hops([label]), " ", nodeName(tail, view), " ", properties(its));
    const folded = facts.size
      ? el("details", { class: "facts" }, el("summary", {}, facts.size === 1 ? "one edge with properties" : `${number(facts.size)} edges with properties`), [...facts.values()].map(draw))
      : null;
    return [el("p", {}, nodeName(item.source, view), " ", hops(item.relations), " ", ends, el("span", { class: "dim" }, rest)), folded];
  },
  TripleEvidence(item, view) {
    const { head, relation: label, tail, properties: its } = item.triple;
    return el("p", {}, nodeName(head, view), " ", hops([label]), " ", nodeName(tail, view), " ", properties(its), item.stub && el("span", { class: "dim" }, " (stub)"));
  },
  NodeEvidence(item, view) {
    const { id, name, type, properties: its } = item.node;
    return el("p", {}, nodeName(id, view, name), " ", type && el("span", { class: "tag" }, cut(type, 80)), " ", properties(its));
  },
  RowsEvidence(item, view) {
    const head = el("thead", {}, el("tr", {}, item.columns.map((column) => el("th", { scope: "col" }, cut(column, 80)))));
    const body = item.rows.slice(0, ROWS_LISTED).map((cells) => el("tr", {}, cells.map((value) => el("td", {}, cell(value, view)))));
    const left = (item.n_rows ?? item.rows.length) - Math.min(item.rows.length, ROWS_LISTED);
    const rest = [left > 0 && `+${number(left)} more rows`, item.truncated && "cut short"].filter(Boolean).join(", ");
    return [
      el("p", { class: "dim" }, item.language),
      longText(item.query, "code"),
      item.rows.length
        ? el("div", { class: "wide" }, el("table", { class: "rows" }, head, el("tbody", {}, body)))
        : el("p", { class: "dim" }, "no rows"),
      rest && el("p", { class: "dim" }, rest),
    ];
  },
  ComputedEvidence(item, view) {
    const nodes = item.nodes.slice(0, ENDS_LISTED).map((id, at) => [at ? el("span", { class: "dim" }, " | ") : null, nodeName(id, view)]);
    return [
      el("p", { dir: "auto" }, item.values.map((value) => [cell(value, view), " "]), nodes, item.nodes.length > ENDS_LISTED && el("span", { class: "dim" }, ` (+${number(item.nodes.length - ENDS_LISTED)} more)`)),
      el("p", { class: "dim", dir: "auto" }, cut(item.text, 600), item.uses.length ? ` (${item.operation}, from ${cut(item.uses.join(", "), 200)})` : ` (${item.operation})`),
    ];
  },
  Feedback(item) {
    return [el("p", { class: "problem" }, item.problem), longText(item.subject, "code")];
  },
};

function cell(value, view) {
  if (value === null) return el("span", { class: "dim" }, "null");
  if (Array.isArray(value)) return value.map((each, at) => [at ? ", " : null, cell(each, view)]);
  if (typeof value !== "object") {
    const role = view.roleOf(null, String(value));
    return role ? el("mark", { class: role, dir: "auto" }, cut(String(value), 400)) : el("span", { dir: "auto" }, cut(String(value), 400));
  }
  if ("relation" in value && "head" in value) return [nodeName(value.head, view), " ", hops([value.relation]), " ", nodeName(value.tail, view)];
  if (typeof value.id === "string" && typeof value.name === "string") return nodeName(value.id, view, value.name);
  return cut(JSON.stringify(value), 400);
}

function evidence(item, view) {
  let content;
  try {
    content = KINDS[item.kind]?.(item, view);
  } catch {
    content = undefined; // a record of another version is shown as it is
  }
  const known = content !== undefined;
  const { id, kind, retriever, score, round, ...rest } = item;
  return el(
    "li",
    {
      class: `evidence${view.cited.has(id) ? " cited" : ""}${kind === "Feedback" ? " feedback" : ""}`,
      id: `evidence-${id}`, tabindex: -1,
      mouseenter: () => light(view.picture, id), mouseleave: () => light(view.picture, null),
    },
    el("div", { class: "source" }, el("b", {}, cut(id ?? "", 20)), el("span", {}, cut(retriever ?? "", 30)), typeof score === "number" && el("span", { class: "number dim", title: "Score" }, significantScore(score))),
    el("div", { class: "content" }, known ? content : [el("p", { class: "dim" }, kind ?? "evidence"), longText(JSON.stringify(rest, null, 1), "code")]),
  );
}

const significantScore = (score) => (Number.isInteger(score) ? String(score) : score.toFixed(2));
