// The viewer: runs as they are now, from the server; questions to a graph.

const live = { version: -1, board: null, chosen: new Set(), asking: null };

function to(path, entries) {
  const query = new URLSearchParams();
  for (const [name, value] of entries) for (const each of [value].flat()) if (each !== "" && each !== null) query.append(name, each);
  const text = query.toString();
  return `#${path}${text ? `?${text}` : ""}`;
}

async function fetched(path, entries = [], options = {}) {
  const reply = await fetch(to(path, entries).slice(1), options);
  const record = await reply.json();
  if (!reply.ok) throw new Error(record.error);
  return record;
}

const posted = (value) => ({ method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) });

const source = {
  title: "byokg view",
  pages: [["/", "Runs"], ["/overview", "Overview"], ["/questions", "Questions"], ["/ask", "Ask"]],
  shows: { "/": (query, fresh) => showRuns(query, fresh), "/ask": (query, fresh) => showAsk(query, fresh) },
  summary: async (names) => fetched("summary", [["run", await runsOf(names)]]),
  detail: async (id, names) => withReplies(await fetched("question", [["run", await runsOf(names)], ["id", id]])),
  neighbours,
  loaded: tested,
  started: listen,
};

// The runs that the address names, or the first one.
async function runsOf(names) {
  if (names.length) return names;
  live.board ??= await fetched("runs");
  if (!live.board.runs.length) throw new Error("There is no run here yet; byokg eval … out=FOLDER writes one.");
  return [live.board.runs[0].name];
}

const withReplies = (record) => {
  for (const its of record.runs) its?.calls.forEach((call) => (call.said = call.call ?? null));
  return record;
};

// Tests take longer than figures, and come later.
async function tested(names, found) {
  found.stamp = JSON.stringify(found.runs.map((run) => [run.name, run.done]));
  if (found.runs.length < 2) return;
  found.deltas = (await fetched("differences", [["run", await runsOf(names)]])).deltas;
  if (report !== found) return;
  if (byId("totals")) drawTotals();
  if (byId("panels")) drawCharts();
}

// Changes of the runs that are shown are drawn at most once a second, or for a third of the time.
let again = null;
let reading = 0; // milliseconds of the last one
function changed(names) {
  const mine = report?.runs.some((run) => names.includes(run.name));
  if (mine && !shownPage.report) shownPage.names = null; // read anew when gone to
  if (shownPage.report ? !mine : shownPage.page === source.shows["/ask"]) return;
  again ??= setTimeout(async () => {
    again = null;
    if (shownPage.report) await refresh();
    else await draw();
  }, shownPage.report ? Math.max(1000, 2 * reading) : 100);
}

// Bring questions and figures up to date, and leave what is open as it is.
async function refresh() {
  const names = here().query.getAll("run");
  const began = performance.now();
  const found = await source.summary(names);
  reading = performance.now() - began;
  if (!shownPage.report || JSON.stringify(names) !== shownPage.names) return;
  report = shownPage.report = found;
  tested(names, found);
  if (byId("list")) {
    foldQuestions();
    readFilters(here().query);
  } else if (byId("overview")) showOverview();
}

function listen() {
  const events = new EventSource("events");
  events.onmessage = (event) => {
    byId("subtitle").textContent = "";
    const { version, changed: names } = JSON.parse(event.data);
    if (live.version >= 0 && version !== live.version) changed(names);
    live.version = version;
  };
  events.onerror = () => {
    byId("subtitle").textContent = "byokg view is not running";
  };
}

// Runs

async function showRuns(query, fresh) {
  const profile = query.get("profile") ?? "strict";
  const board = await fetched("runs", [["profile", profile]]);
  live.board = Object.assign(board, { ranked: true, named: true });
  document.title = source.title;
  if (here().path !== "/") return; // elsewhere meanwhile
  if (fresh) {
    const choose = selection("Profile", board.profiles.map((name) => [name, name]), profile, (value) => {
      location.hash = to("/", [["profile", value]]);
    });
    choose.id = "profile";
    byId("content").replaceChildren(
      el("section", { class: "panel board", "aria-label": "Runs" },
        el("header", {}, el("h2", {}, "Runs"), el("span", {}, el("label", { class: "label" }, "Scored as ", choose), button("CSV", () => saveLeaderboard(live.board), { title: "Save as CSV" }))),
        el("div", { id: "runs" }),
        el("p", { class: "chosen" }, el("a", { id: "beside", class: "button", hidden: true }, "Side by side")),
        el("p", { class: "note" }, "Figures in %, ranked among runs under one contract only: the same questions, graph, grants, profile and code. Below each, half the width of its 95 % interval; a run that is not finished has figures of what is answered so far.")),
    );
  }
  byId("profile").value = profile;
  drawRuns();
}

function drawRuns() {
  const focused = document.activeElement?.id;
  const { board } = live;
  byId("runs").replaceChildren(board.runs.length ? leaderboard(board, runCell, drawRuns) : el("p", { class: "empty" }, "There is no run here yet; byokg eval … out=FOLDER writes one, and it appears."));
  if (focused) byId(focused)?.focus();
  beside();
}

function runCell(run) {
  const mark = el("input", {
    type: "checkbox", id: `choose-${run.name}`, "aria-label": `Choose ${plain(run.name)}`, checked: live.chosen.has(run.name),
    change: (event) => {
      live.chosen[event.target.checked ? "add" : "delete"](run.name);
      beside();
    },
  });
  const held = run.state === "paused";
  const pause = async () => {
    await fetched("pause", [], posted({ run: run.name, paused: !held }));
    draw();
  };
  const state = run.state === "finished" ? null : el("small", { class: "state" }, `${run.state}, ${number(run.done)} of ${number(run.n)} `,
    el("progress", { max: run.n || 1, value: run.done, "aria-label": "Progress" }),
    run.state !== "stopped" && button(held ? "Go on" : "Pause", pause, { id: `pause-${run.name}` }));
  return [mark, swatch(run.colour), el("a", { id: `run-${run.name}`, href: to("/questions", [["run", run.name]]) }, cut(run.name, 80)), state,
    run.repeated > 1 && el("small", {}, `each question ${run.repeated} times`)];
}

function beside() {
  const link = byId("beside");
  const names = live.board.runs.map((run) => run.name).filter((name) => live.chosen.has(name));
  link.hidden = names.length < 2;
  link.href = to("/questions", [["run", names]]);
  link.textContent = `Compare ${names.length} runs`;
}

// Edges of a node in the graph; `edges` gets its edges, for the drawing.
async function neighbours(id, edges, record) {
  const found = await fetched("node", [["id", id]]);
  const open = (value) => button(cut(value.name ?? value.id, 120), () => goTo("node", value.id), { dir: "auto" });
  const left_out = ["id", "name", "entity_type", "values", "errors", "truncated", "about"];
  const plainly = Object.fromEntries(Object.entries(found).filter(([name, value]) => !left_out.includes(name) && typeof value !== "object"));
  for (const group of found.values ?? []) {
    for (const value of group.values) {
      const ends = group.direction === "in" ? [value.id, id] : [id, value.id];
      edges.push({ head: ends[0], relation: group.predicate, tail: ends[1], evidence: [], cited: false, graph: true, ends: [value] });
    }
  }
  return [
    found.entity_type && !record.types?.[id] && el("p", {}, el("span", { class: "tag" }, cut(String(found.entity_type), 80))),
    properties(plainly),
    (found.values ?? []).map((group) => el("p", { class: "group" }, hops([`${group.direction === "in" ? "^" : ""}${group.predicate}`]), " ",
      group.values.map((value) => [open(value), " "]),
      group.count > group.values.length && el("span", { class: "dim" }, `+${number(group.count - group.values.length)} more`))),
  ];
}

// Asking

async function showAsk(query, fresh) {
  const asked = query.get("question") ?? "";
  document.title = plain(asked ? `${cut(asked, 60)} – byokg view` : "Ask – byokg view");
  live.board ??= await fetched("runs");
  if (fresh) {
    const field = el("input", { type: "search", id: "question", name: "question", "aria-label": "Question", placeholder: "Ask the graph", value: asked, autocomplete: "off", disabled: !live.board.ask });
    const form = el("form", {
      class: "ask",
      submit: (event) => {
        event.preventDefault();
        const address = to("/ask", [["run", query.getAll("run")], ["question", field.value.trim()]]);
        if (location.hash === address) ask(field.value.trim());
        else location.hash = address;
      },
    }, field, el("button", { type: "submit", class: "button", disabled: !live.board.ask }, "Ask"));
    const closed = live.board.ask ? null : el("p", { class: "note" }, "No graph is open. Start with one to ask it: byokg view RUNS graph.path=DIR, with the settings of a pipeline and a model if wanted.");
    byId("content").replaceChildren(el("section", { class: "page" }, form, closed, el("details", { id: "progress" }, el("summary", {}, "Stages"), el("ol", { id: "stages", "aria-live": "polite", "aria-label": "Stages" })), el("div", { id: "answer", class: "side" })));
    live.asking = null;
    field.focus();
  }
  byId("question").value = asked;
  if (asked && live.asking?.question !== asked) await ask(asked);
  node(query.get("node"), live.asking?.record);
}

async function ask(question) {
  const asking = { question, record: null };
  live.asking = asking;
  byId("progress").open = true;
  byId("stages").replaceChildren();
  byId("answer").replaceChildren();
  const stages = new Map();
  const told = (event) => {
    if (live.asking !== asking || !byId("answer")) return;
    if (event.error) byId("answer").replaceChildren(el("p", { class: "problem", role: "alert" }, event.error));
    else if (event.record) {
      asking.record = Object.assign(withReplies(event.record), { open: (id) => goTo("node", id), title: question });
      byId("progress").open = false;
      add(byId("answer"), [runContent(event.record.runs[0], asking.record)]);
    } else if (event.brought === undefined) {
      const item = el("li", { class: "under-way" }, el("b", {}, cut(event.stage, 40)), el("span", { class: "dim" }, " …"));
      stages.set(event.number, item);
      byId("stages").append(item);
    } else {
      const item = stages.get(event.number);
      item?.replaceChildren(el("b", {}, cut(event.stage, 40)), el("span", { class: "dim" }, ` ${MEASURES.seconds.text(event.seconds)} `), ...brought(event.brought));
      item?.classList.remove("under-way");
    }
  };
  const reply = await fetch("ask", posted({ question }));
  if (!reply.ok) return told({ error: await reply.text() });
  const lines = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let left = "";
  for (let part = await lines.read(); !part.done; part = await lines.read()) {
    const whole = (left + part.value).split("\n");
    left = whole.pop();
    for (const line of whole) told(JSON.parse(line));
  }
}

const brought = (record) =>
  Object.entries(record).filter(([, value]) => value !== 0 && String(value) !== "").map(([name, value]) =>
    el("span", { class: "chip" }, el("span", { class: "dim" }, `${name} `), cut(Array.isArray(value) ? value.join(" | ") : String(value), 300)));
