// The served page: the questions of some runs, one of them side by side, and a node.

const OUTCOMES = [
  ["", "Any outcome"], ["right", "Right"], ["partly", "Partly right"], ["wrong", "Wrong"], ["differ", "Runs disagree"], ["failed", "Failed"],
  ...["linked", "retrieved", "shown", "cited", "answered"].map((stage) => [`not_${stage}`, `Lost: not ${stage}`]),
];
const ORDERS = [["given", "As in the data set"], ["latest", "Latest first"], ["worst", "F1, worst first"], ["best", "F1, best first"]];
const SIGNS = { right: "✓", partly: "✓", wrong: "✗", failed: "!" };

const listing = { asked: 0, rows: [], total: 0 };

const markOf = (its, name) =>
  its ? el("span", { class: `mark ${its.mark}`, title: `${plain(name)}: ${its.mark}` }, SIGNS[its.mark], el("span", { class: "unseen" }, ` ${its.mark} `))
    : el("span", { class: "mark none", title: `${plain(name)}: no answer yet` }, "·");

// The runs that the address names, or the first one.
async function runsHere(query) {
  const names = query.getAll("run");
  if (names.length) return names;
  live.board ??= await fetched("runs");
  return live.board.runs.slice(0, 1).map((run) => run.name);
}

function setPlace(path, entries) {
  history.replaceState(null, "", to(path, entries)); // typing makes no history
  return draw();
}

async function showQuestions(query, fresh) {
  const names = await runsHere(query);
  if (!names.length) throw new Error("There is no run here yet; byokg eval … out=FOLDER writes one.");
  const filters = Object.fromEntries(["text", "outcome", "order"].map((name) => [name, query.get(name) ?? ""]));
  document.title = plain(`${cut(names.join(", "), 60)} – byokg view`);
  if (fresh || !byId("search")) {
    const set = (name) => (value) => {
      const now = here().query;
      const all = { text: now.get("text") ?? "", outcome: now.get("outcome") ?? "", order: now.get("order") ?? "", [name]: value };
      return setPlace("/questions", [["run", now.getAll("run")], ...Object.entries(all)]);
    };
    byId("content").replaceChildren(
      el("section", { class: "page" },
        el("p", { id: "of", class: "of" }),
        el("div", { class: "filters", role: "search" },
          el("input", { type: "search", id: "search", "aria-label": "Search questions, answers and gold", placeholder: "Search questions, answers, gold  ( / )", spellcheck: "false", value: filters.text, input: (event) => set("text")(event.target.value) }),
          selection("Outcome", OUTCOMES, filters.outcome, set("outcome")),
          selection("Order", ORDERS, filters.order, set("order")),
          el("p", { id: "count", class: "dim", role: "status" })),
        el("ol", { id: "list" }),
        el("p", {}, el("button", { type: "button", id: "more", class: "button", hidden: true, click: () => more() }, "Show more")),
      ),
    );
  }
  await list(names, filters, 0);
}

async function list(names, filters, start) {
  const asked = ++listing.asked;
  const found = await fetched("questions", [["run", names], ...Object.entries(filters), ["start", start || ""]]);
  if (asked !== listing.asked || !byId("list")) return; // typed on meanwhile
  // Rows further down that were asked for stay until they are asked for again.
  listing.rows = start ? [...listing.rows, ...found.rows] : found.rows;
  listing.total = found.total;
  Object.assign(listing, { names, filters });
  byId("of").replaceChildren(...names.map((name, at) => el("span", { class: "chip" }, swatch(at), cut(name, 60))));
  byId("count").textContent = found.total === found.n ? `${number(found.n)} questions` : `${number(found.total)} of ${number(found.n)}`;
  byId("count").dataset.text = filters.text;
  const focused = document.activeElement?.closest("#list a")?.getAttribute("href");
  const rows = (start ? found.rows : listing.rows).map((row) => questionRow(row, names));
  if (start) byId("list").append(...rows);
  else byId("list").replaceChildren(...(rows.length ? rows : [el("li", { class: "empty" }, "No question passes these filters.")]));
  if (focused) [...document.querySelectorAll("#list a")].find((link) => link.getAttribute("href") === focused)?.focus();
  byId("more").hidden = listing.rows.length >= found.total;
}

const more = () => list(listing.names, listing.filters, listing.rows.length);

function questionRow(row, names) {
  const answered = row.runs[0];
  return el("li", {}, el("a", { class: "row", href: to("/question", [["id", row.id], ["run", names]]) },
    el("span", { class: "marks" }, row.runs.map((its, at) => markOf(its, names[at]))),
    el("span", { class: "text", dir: "auto" }, row.text),
    el("span", { class: "said", dir: "auto" }, answered ? answered.answers || "no answer" : "", answered?.mark !== "right" ? el("span", { class: "dim" }, ` (gold: ${row.gold})`) : null)));
}

// One question, what each run made of it side by side.
async function showQuestion(query, fresh) {
  const names = await runsHere(query);
  const id = query.get("id") ?? "";
  const what = JSON.stringify([id, names]);
  if (fresh || opened.what !== what) {
    const record = await fetched("question", [["run", names], ["id", id]]);
    record.open = open;
    Object.assign(opened, { what, record });
    document.title = plain(`${cut(record.question, 60)} – byokg view`);
    live.board ??= await fetched("runs");
    const others = live.board.runs.filter((run) => !names.includes(run.name));
    const add = selection("Beside it", [["", "Beside it…"], ...others.map((run) => [run.name, cut(run.name, 48)])], "", (name) => {
      location.hash = to("/question", [["id", id], ["run", [...names, name]]]);
    });
    byId("content").replaceChildren(
      el("article", { id: "detail", class: "page" },
        el("header", {},
          el("p", { class: "dim" }, el("a", { href: to("/questions", [["run", names]]) }, "Questions"), " ", el("span", { class: "id" }, cut(id, 80)), record.type && el("span", { class: "tag" }, cut(record.type, 60)), others.length ? add : null),
          el("h2", { dir: "auto" }, cut(record.question, 1200))),
        el("div", { class: "sides" }, record.runs.map(({ name, its }, at) =>
          el("section", { class: "side", "aria-label": plain(name) },
            names.length > 1 && el("h3", { class: "of" }, swatch(at), cut(name, 60), el("a", { class: "quiet", href: to("/question", [["id", id], ["run", [name]]]) }, "alone")),
            its ? runContent({ ...its, calls: withReplies(its.calls) }, record) : el("p", { class: "empty" }, "This run has not answered this question."))))),
    );
    scrollTo(0, 0);
    centre();
  }
  node(query.get("node"), opened.record);
}

const opened = { what: "", record: null };

// Nodes: one click further is one step in the history.
function open(id) {
  const { path, query } = here();
  query.set("node", id);
  location.hash = `#${path}?${query}`;
}

async function node(id, record) {
  const shownNow = document.querySelector("dialog");
  if (!id || !record) return shownNow?.remove();
  const name = record.names[id] ?? id;
  const known = record.runs.flatMap(({ its }) => its?.rounds ?? []).flatMap((round) => round.evidence ?? []).filter((item) => JSON.stringify(item).includes(JSON.stringify(id)));
  const view = viewOf(record.runs.find(({ its }) => its)?.its ?? { answers: [], found: [], rounds: [] }, record);
  view.cited = new Set();
  view.open = null;
  const graph = el("div", { id: "neighbours" });
  const dialog = el("dialog", {
    "aria-label": plain(name),
    cancel: (event) => { event.preventDefault(); closeNode(); },
    click: (event) => event.target === dialog && closeNode(),
  },
    el("header", {}, el("h2", { dir: "auto" }, cut(name, 200)), el("button", { type: "button", class: "quiet", click: closeNode }, "Close")),
    name === id ? null : el("p", { class: "id dim" }, cut(id, 200)),
    graph,
    known.length ? [el("h3", {}, `In the evidence ${number(known.length)} times`), el("ol", { class: "evidences" }, listed(known, 12, (item) => evidence({ ...item, id: undefined }, view)))] : null);
  shownNow?.remove();
  document.body.append(dialog);
  dialog.showModal();
  if (!record.graph) return;
  const found = await fetched("node", [["id", id]]);
  add(graph, [
    found.entity_type && el("p", {}, el("span", { class: "tag" }, cut(String(found.entity_type), 80))),
    properties(Object.fromEntries(Object.entries(found).filter(([name, value]) => !["id", "name", "entity_type", "values", "errors", "truncated", "about"].includes(name) && typeof value !== "object"))),
    (found.values ?? []).map((group) => el("p", { class: "group" }, hops([`${group.direction === "in" ? "^" : ""}${group.predicate}`]), " ",
      group.values.map((value) => [el("button", { type: "button", class: "quiet", dir: "auto", click: () => open(value.id) }, cut(value.name ?? value.id, 120)), " "]),
      group.count > group.values.length && el("span", { class: "dim" }, `+${number(group.count - group.values.length)} more`))),
  ]);
}

function closeNode() {
  const { path, query } = here();
  query.delete("node");
  location.hash = `#${path}?${query}`;
}
