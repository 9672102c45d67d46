// The served page: where one is (in the address, so that Back works), the runs, and questions to a graph.

const live = { version: -1, board: null, drawn: null, chosen: new Set(), asking: null };

const here = () => {
  const [path, query] = location.hash.slice(1).split("?");
  return { path: path || "/", query: new URLSearchParams(query) };
};

function to(path, entries) {
  const query = new URLSearchParams();
  for (const [name, value] of entries) for (const each of [value].flat()) if (each !== "" && each !== null) query.append(name, each);
  const text = query.toString();
  return `#${path}${text ? `?${text}` : ""}`;
}

async function fetched(path, entries = []) {
  const reply = await fetch(to(path, entries).slice(1));
  const record = await reply.json();
  if (!reply.ok) throw new Error(record.error);
  return record;
}

const PAGES = { "/": showRuns, "/questions": showQuestions, "/question": showQuestion, "/ask": showAsk };

// Draw what the address names; what is there already is only brought up to date.
async function draw() {
  const place = here();
  if (!place.query.has("node")) document.querySelector("dialog")?.remove();
  const page = PAGES[place.path] ?? showRuns;
  for (const name of ["runs", "questions", "ask"]) {
    const is = page === { runs: showRuns, questions: showQuestions, ask: showAsk }[name] || (name === "questions" && page === showQuestion);
    byId(`nav-${name}`).setAttribute("aria-current", is ? "page" : "false");
  }
  const fresh = live.drawn !== page;
  live.drawn = page;
  try {
    await page(place.query, fresh);
  } catch (error) {
    byId("content").replaceChildren(el("p", { class: "problem", role: "alert" }, String(error.message)));
    live.drawn = null;
  }
  document.documentElement.dataset.ready = "yes";
}

// Several changes within a moment are drawn once.
let again = null;
function changed(names) {
  const seen = live.drawn === showRuns || (live.drawn === showQuestions && listing.names?.some((name) => names.includes(name)));
  if (!seen) return;
  again ??= setTimeout(() => {
    again = null;
    draw();
  }, 100);
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

const share = (figure) =>
  !figure ? el("td", { class: "number dim" }, "–")
    : el("td", { class: "number" }, percent(figure.value), figure.ci95 && el("small", {}, `${percent(figure.ci95[0])}–${percent(figure.ci95[1])}`));

async function showRuns(query, fresh) {
  const profile = query.get("profile") ?? "strict";
  const board = await fetched("runs", [["profile", profile]]);
  live.board = board;
  byId("nav-ask").hidden = !board.ask;
  document.title = "byokg view";
  if (here().path !== "/") return; // elsewhere meanwhile
  if (fresh) {
    const choose = selection("Profile", board.profiles.map((name) => [name, name]), profile, (value) => {
      location.hash = to("/", [["profile", value]]);
    });
    choose.id = "profile";
    byId("content").replaceChildren(
      el("section", { class: "panel board", "aria-label": "Runs" },
        el("header", {}, el("h2", {}, "Runs"), el("label", { class: "label" }, "Scored as ", choose)),
        el("div", { id: "runs" }),
        el("p", { class: "chosen" }, el("a", { id: "beside", class: "button", hidden: true }, "Side by side")),
        el("p", { class: "note" }, "Figures in %, ranked among runs under one contract only: the same questions, graph, grants, profile and code. Intervals of 95 %; a run that is not finished has means over what is answered so far.")),
    );
  }
  byId("profile").value = profile;
  const focused = document.activeElement?.id;
  byId("runs").replaceChildren(board.runs.length ? runsTable(board) : el("p", { class: "empty" }, "There is no run here yet; byokg eval … out=FOLDER writes one, and it appears."));
  if (focused) byId(focused)?.focus();
  beside();
}

function runsTable({ runs, metrics, contracts }) {
  const head = ["Run", ...metrics.map(metricTitle), "Time", "Calls", "US$"].map((title, at) => el("th", { scope: "col", class: at ? "number" : "" }, title));
  const bodies = contracts.map(({ runs: group, differs }) => {
    const first = metrics[0];
    const order = [...group].sort((a, b) => (runs[b].metrics?.[first]?.value ?? -1) - (runs[a].metrics?.[first]?.value ?? -1) || a - b);
    const title = contracts.length > 1
      ? el("tr", { class: "contract" }, el("th", { colspan: metrics.length + 4 }, el("span", {}, `${cut(runs[group[0]].dataset, 80)}, ${number(runs[group[0]].n / runs[group[0]].repeats)} questions`), differs.length ? el("small", {}, `other than the first: ${cut(differs.join("; "), 300)}`) : null))
      : null;
    return el("tbody", {}, title, order.map((at) => runRow(runs[at], at, metrics)));
  });
  return el("div", { class: "wide" }, el("table", { class: "figures leaders" }, el("thead", {}, el("tr", {}, head)), bodies));
}

function runRow(run, at, metrics) {
  const { took } = run;
  const mark = el("input", {
    type: "checkbox", id: `choose-${at}`, "aria-label": `Choose ${plain(run.name)}`, checked: live.chosen.has(run.name),
    change: (event) => {
      live.chosen[event.target.checked ? "add" : "delete"](run.name);
      beside();
    },
  });
  const how = run.state === "finished" ? null : el("small", { class: "state" }, `${run.state}, ${number(run.done)} of ${number(run.n)} `, el("progress", { max: run.n || 1, value: run.done, "aria-label": "Progress" }));
  const again = run.repeated;
  const repeats = run.repeats > 1 ? el("small", {}, `each question ${run.repeats} times${again?.pass ? `: pass@${again.times} ${percent(again.pass.value)}, majority ${percent(again.majority.value)}` : ""}`) : null;
  const cells = [took?.seconds, took?.calls, took?.usd].map((value, which) =>
    el("td", { class: "number" }, value === undefined ? "–" : value === null ? "unknown" : [MEASURES.seconds.text, significant, MEASURES.usd.text][which](value)));
  return el("tr", { class: `run ${run.state}` },
    el("th", { scope: "row", class: "name" }, mark, swatch(at), el("a", { id: `run-${at}`, href: to("/questions", [["run", run.name]]) }, cut(run.name, 80)), how, el("small", {}, cut(run.how, 120)), repeats),
    metrics.map((metric) => share(run.metrics?.[metric])), cells);
}

function beside() {
  const link = byId("beside");
  const names = [...live.chosen].filter((name) => live.board.runs.some((run) => run.name === name));
  link.hidden = names.length < 2;
  link.href = to("/questions", [["run", names]]);
  link.textContent = `${names.length} runs side by side`;
}

// Asking

async function showAsk(query, fresh) {
  const asked = query.get("question") ?? "";
  document.title = plain(asked ? `${cut(asked, 60)} – byokg view` : "Ask – byokg view");
  if (fresh) {
    const field = el("input", { type: "search", id: "question", name: "question", "aria-label": "Question", placeholder: "Ask the graph", value: asked, autocomplete: "off" });
    const form = el("form", {
      class: "ask",
      submit: (event) => {
        event.preventDefault();
        const address = to("/ask", [["question", field.value.trim()]]);
        if (location.hash === address) ask(field.value.trim());
        else location.hash = address;
      },
    }, field, el("button", { type: "submit", class: "button" }, "Ask"));
    byId("content").replaceChildren(el("section", { class: "page" }, form, el("ol", { id: "stages", "aria-live": "polite", "aria-label": "Stages" }), el("div", { id: "answer", class: "side" })));
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
  byId("stages").replaceChildren();
  byId("answer").replaceChildren();
  const stages = new Map();
  const told = (event) => {
    if (live.asking !== asking) return;
    if (event.error) byId("answer").replaceChildren(el("p", { class: "problem", role: "alert" }, event.error));
    else if (event.record) {
      asking.record = { ...event.record, open: (id) => open(id) };
      const { its } = event.record.runs[0];
      byId("answer").replaceChildren();
      add(byId("answer"), [runContent({ ...its, calls: withReplies(its.calls) }, asking.record)]);
      centre();
    } else if (event.brought === undefined) {
      const item = el("li", { class: "under-way" }, el("b", {}, cut(event.stage, 40)), el("span", { class: "dim" }, " …"));
      stages.set(event.number, item);
      byId("stages").append(item);
    } else stages.get(event.number)?.replaceChildren(el("b", {}, cut(event.stage, 40)), el("span", { class: "dim" }, ` ${MEASURES.seconds.text(event.seconds)} `), ...brought(event.brought));
    if (event.brought !== undefined) stages.get(event.number)?.classList.remove("under-way");
  };
  const reply = await fetch("ask", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ question }) });
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

const withReplies = (calls) => calls.map((call) => ({ ...call, said: call.call ?? null }));

// A key for searching, one for going up.
function key(event) {
  const typing = event.target.closest("input, select, textarea");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    if (byId("search")) byId("search").focus();
    else location.hash = "#/questions";
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !event.target.closest("select, [type=radio], .wide")) {
    const rows = [...document.querySelectorAll("#list a, .leaders .name a")];
    if (!rows.length) return;
    const at = rows.indexOf(document.activeElement);
    event.preventDefault();
    rows[Math.min(Math.max(at + (event.key === "ArrowDown" ? 1 : -1), 0), rows.length - 1)].focus();
  } else if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
    const { path, query } = here();
    if (path === "/question") location.hash = to("/questions", [["run", query.getAll("run")]]);
    else if (path !== "/") location.hash = "#/";
  }
}

addEventListener("hashchange", draw);
document.addEventListener("keydown", key);
document.addEventListener("DOMContentLoaded", async () => {
  await draw();
  listen();
  if (!live.board) {
    live.board = await fetched("runs");
    byId("nav-ask").hidden = !live.board.ask;
  }
});
