// One question: what was answered and why, for one run at a time or for all of them side by side; and its nodes.

const opened = { question: null, record: null, key: "", view: null, focus: false };

// Open the question that the address names.
async function openQuestion(query) {
  const id = query.get("question");
  const at = id === null ? -1 : report.questions.id.indexOf(id);
  const key = at < 0 ? "" : JSON.stringify([id, query.getAll("run"), query.get("show"), report.stamp]);
  if (key === opened.key && byId("detail").firstChild) return node(query.get("node"));
  Object.assign(opened, { key, question: at < 0 ? null : at });
  if (at < 0) {
    opened.record = null;
    byId("detail").replaceChildren(el("p", { class: "empty" }, id === null ? "Choose a question: arrow keys move, Enter opens, Escape comes back." : "No run here was asked this question."));
    return drawRows();
  }
  moveTo(list.shown.indexOf(at) < 0 ? list.active : list.shown.indexOf(at));
  try {
    const record = await source.detail(id, query.getAll("run"));
    if (key !== opened.key) return; // another was opened meanwhile
    record.open = (node) => goTo("node", node);
    record.title = id;
    opened.record = record;
    showRecord(at, query.get("show"));
  } catch (error) {
    byId("detail").replaceChildren(el("p", { class: "problem" }, `This question cannot be shown: ${error.message}`));
  }
  if (opened.focus) byId("detail").focus({ preventScroll: true });
  else if (matchMedia("(max-width: 900px)").matches) byId("detail").scrollIntoView();
  opened.focus = false;
  node(query.get("node"));
}

// Change one part of the address.
function goTo(name, value) {
  const { path, query } = here();
  if (value === null) query.delete(name);
  else query.set(name, value);
  location.hash = `#${path}?${query}`;
}

function showRecord(question, show) {
  const { record } = opened;
  const { runs } = report;
  let run = Number(show ?? list.filters.of);
  if (!record.runs[run]) run = Math.max(0, record.runs.findIndex(Boolean));
  const chosen = show === "all" ? runs.map((_, at) => at) : [run];
  const tags = [record.type && cut(record.type, 60), record.hops !== null && !record.type?.includes(`${record.hops}-hop`) && `${record.hops} ${record.hops === 1 ? "hop" : "hops"}`];
  const name = (at) => el("h3", { class: "of" }, swatch(runs[at].colour), cut(runs[at].name, 60));
  byId("detail").replaceChildren(
    el("header", {},
      el("p", { class: "dim" }, el("span", { class: "id" }, cut(record.id, 80)), tags.map((tag) => tag && el("span", { class: "tag" }, tag))),
      el("h2", { dir: "auto" }, cut(record.question, 1200)),
      runs.length > 1 ? runTabs(question, show === "all" ? "all" : run) : null,
    ),
    el("div", { id: "run-panel", class: "sides", role: runs.length > 1 ? "tabpanel" : null, "aria-label": plain(chosen.map((at) => runs[at].name).join(", ")) },
      chosen.map((at) => el("section", { class: "side", "aria-label": plain(runs[at].name) }, chosen.length > 1 && name(at),
        record.runs[at] ? runContent(record.runs[at], record) : el("p", { class: "empty" }, "This run was not asked this question.")))),
  );
  byId("detail").scrollTop = 0;
  byId("status").textContent = plain(`${cut(record.question, 200)}: ${outcomeOf(run, question)[2]}`);
}

function runTabs(question, chosen) {
  const tabs = [...report.runs.map((run, at) => [at, [markOf(at, question), swatch(run.colour), cut(run.name, 40)]]), ["all", ["Side by side"]]];
  const tab = ([key, content]) => el("button", { role: "tab", type: "button", "aria-selected": key === chosen, "aria-controls": "run-panel", tabindex: key === chosen ? 0 : -1, click: () => show(key) }, content);
  const show = (key) => {
    const focused = byId("detail").contains(document.activeElement);
    const { path, query } = here();
    query.set("show", key);
    history.replaceState(null, "", `#${path}?${query}`);
    opened.key = JSON.stringify([query.get("question"), query.getAll("run"), query.get("show"), report.stamp]);
    showRecord(question, String(key));
    if (focused) byId("detail").querySelector("[role=tab][aria-selected=true]").focus();
  };
  const keydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = tabs.findIndex(([key]) => key === chosen);
    show(tabs[(at + step + tabs.length) % tabs.length][0]);
  };
  return el("div", { role: "tablist", "aria-label": "Run", class: "runs", keydown }, tabs.map(tab));
}

// Facts about a node: from the evidence, and from the graph where one is open.
async function node(id, record = opened.record, picture = document.querySelector("#detail .picture, #answer .picture")) {
  document.querySelector("dialog")?.remove();
  if (!id || !record) return;
  const name = record.names[id] ?? id;
  const known = record.runs.flatMap((its) => its?.rounds ?? []).flatMap((round) => round.evidence ?? []).filter((item) => JSON.stringify(item).includes(JSON.stringify(id)));
  const view = { ...viewOf(record.runs.find(Boolean) ?? { answers: [], found: [], rounds: [] }, record), cited: new Set(), open: null };
  const close = () => goTo("node", null);
  const graph = el("div", { id: "neighbours" });
  const edges = [];
  const expand = () => {
    close();
    for (const { id: end, name: title } of edges.flatMap((edge) => edge.ends)) record.names[end] ??= title ?? end;
    picture?.expand(id, edges);
  };
  const dialog = el("dialog", {
    "aria-label": plain(name),
    cancel: (event) => { event.preventDefault(); close(); },
    click: (event) => event.target === dialog && close(),
  },
    el("header", {}, el("h2", { dir: "auto" }, cut(name, 200)), el("span", {}, picture && button("Expand in the drawing", expand), button("Close", close))),
    el("p", { class: "dim" }, name !== id && el("span", { class: "id" }, cut(id, 200)), record.types?.[id] && el("span", { class: "tag" }, cut(record.types[id], 80))),
    graph,
    known.length ? [el("h3", {}, `In the evidence ${number(known.length)} times`), el("ol", { class: "evidences" }, listed(known, 12, (item) => evidence({ ...item, id: undefined }, view)))] : null);
  document.body.append(dialog);
  dialog.showModal();
  if (record.graph) add(graph, await source.neighbours(id, edges, record));
}
