// The list of questions: filtered, sorted, and drawn only where it is looked at.

const ROW = 46; // pixels; page.css says the same
const AHEAD = 12; // rows drawn beyond what is seen

const list = {
  shown: [], // positions of the questions that pass the filters, in order
  active: 0, // which of them the keyboard is at
  filters: {},
};

const FILTERS = { text: "", outcome: "", type: "", hops: "", of: "0", order: "given" };

const OUTCOMES = [
  ["", "Any status"], ["right", "Right"], ["partly", "Partly right"], ["wrong", "Wrong"], ["failed", "Failed"],
];
const LOST = ["linked", "retrieved", "shown", "cited", "answered"].map((stage) => [`not_${stage}`, `Lost: not ${stage}`]);
const COMPARED = [["won", "Won against the baseline"], ["lost", "Lost against the baseline"], ["differ", "Runs disagree"]];
const SORTS = [
  ["given", "As in the data set"], ["worst", "F1, worst first"], ["best", "F1, best first"], ["type", "By type"],
  ["hops", "By hops"], ["status", "By status"], ["slow", "Slowest first"], ["dear", "Dearest first"],
  ["calls", "Most calls first"], ["text", "By text"],
];

// Search looks into questions, ids, gold answers and answers.
function foldQuestions() {
  const { questions } = report;
  const parts = (at) => [questions.text[at], questions.id[at], questions.gold[at], ...questions.runs.map((its) => its.answers[at] ?? "")];
  questions.folded = questions.id.map((_, at) => parts(at).join("\n").toLowerCase());
}

function buildList() {
  const { questions, runs } = report;
  const distinct = (values) => [...new Set(values)].sort((a, b) => (a < b ? -1 : 1));
  const outcomes = [...OUTCOMES, ...(runs.some((run) => run.loss) ? LOST : []), ...(runs.length > 1 ? COMPARED : [])];
  const set = (name) => (value) => {
    const { path, query } = here();
    if (value === FILTERS[name]) query.delete(name);
    else query.set(name, value);
    history.replaceState(null, "", `#${path}?${query}`); // typing makes no history
    readFilters(query);
  };
  const search = el("input", {
    type: "search", id: "search", placeholder: "Search questions, answers, gold, ids  ( / )", "aria-label": "Search questions, answers, gold and ids",
    "aria-controls": "list", spellcheck: "false",
    input: (event) => set("text")(event.target.value),
    keydown: (event) => {
      if (event.key === "ArrowDown" || event.key === "Enter") {
        event.preventDefault();
        byId("list").focus();
      } else if (event.key === "Escape" && search.value) {
        event.preventDefault();
        event.stopPropagation();
        search.value = "";
        set("text")("");
      }
    },
  });
  const filter = (name, title, options) => make(selection(title, options, FILTERS[name], set(name)), { id: `filter-${name}` }, []);
  const filters = [
    runs.length > 1 && filter("of", "Run", runs.map((run, at) => [String(at), cut(run.name, 48)])),
    filter("outcome", "Status", outcomes),
    new Set(questions.type).size > 1 && filter("type", "Type", [["", "Any type"], ...distinct(questions.type).map((type) => [`=${type}`, cut(type || "no type", 60)])]),
    new Set(questions.hops).size > 1 && filter("hops", "Hops", [["", "Any hops"], ...distinct(questions.hops).map((hops) => [`=${hops}`, hops === null ? "hops unknown" : hops === 1 ? "1 hop" : `${hops} hops`])]),
    filter("order", "Order", questions.runs[0].place ? [...SORTS, ["latest", "Latest first"]] : SORTS),
  ];
  const rows = el("div", {
    id: "list", role: "listbox", tabindex: 0, "aria-label": "Questions", scroll: drawRows, keydown: listKey,
    click: (event) => {
      const row = event.target.closest("[role=option]");
      if (!row) return;
      moveTo(Number(row.dataset.at));
      goToQuestion();
    },
  }, el("div", { id: "rows" }));
  byId("content").replaceChildren(el("section", { id: "questions", "aria-label": "Questions" },
    el("div", { class: "browser" },
      el("div", { id: "totals" }),
      el("div", { class: "filters", role: "search" }, search, filters,
        el("p", { class: "counted dim" }, el("span", { id: "count", role: "status" }), button("CSV", saveQuestions, { title: "Save these questions as CSV" }))),
      rows,
    ),
    el("article", { id: "detail", tabindex: -1, "aria-label": "Question" })));
  new ResizeObserver(drawRows).observe(rows);
  foldQuestions();
}

// Take the filters from the address.
function readFilters(query) {
  for (const [name, otherwise] of Object.entries(FILTERS)) {
    const value = query.get(name) ?? otherwise;
    list.filters[name] = value;
    const control = byId(name === "text" ? "search" : `filter-${name}`);
    if (control && control.value !== value) control.value = value;
  }
  if (!report.runs[list.filters.of]) list.filters.of = "0";
  filterList();
}

// The runs' totals, and their differences from the first, also of the questions that are listed.
function drawTotals() {
  const { runs, deltas, questions, baseline } = report;
  const few = list.shown.length < questions.id.length;
  const mean = (at) => {
    const found = list.shown.map((question) => questions.runs[at].hit[question]).filter((hit) => hit !== null);
    return found.length ? percent(found.reduce((sum, hit) => sum + hit, 0) / found.length) : "–";
  };
  const head = ["", "Hit", ...(few ? ["of these"] : []), ...(runs.length > 1 ? ["Points", "Won, lost", "p"] : [])].map((title, at) => el("th", { scope: "col", class: at ? "number" : "" }, title));
  const rows = runs.map((run, at) => {
    const delta = deltas.find((each) => each.run === at)?.metrics.hit;
    const its = at === baseline ? ["baseline", "", ""] : delta ? [signed(delta.value), `+${number(delta.won)} −${number(delta.lost)}`, probability(delta.p)] : ["…", "", ""];
    const [low, high] = delta?.ci95 ?? [];
    return el("tr", {}, el("th", { scope: "row", class: "name" }, swatch(run.colour), cut(run.name, 40)),
      el("td", { class: "number strong" }, percent(run.metrics.hit.value)), few && el("td", { class: "number" }, mean(at)),
      runs.length > 1 && its.map((text, part) => el("td", { class: part ? "number" : "number strong", title: part || !delta ? null : `95 % interval ${signed(low)} to ${signed(high)}` }, text)));
  });
  byId("totals").replaceChildren(el("table", { class: "figures totals" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows)));
}

function saveQuestions() {
  const { questions, runs } = report;
  const each = ["answers", "status", "hit", "f1", "seconds", "usd", "calls"];
  const head = ["id", "question", "type", "hops", "gold", ...runs.flatMap((run) => each.map((name) => `${run.name} ${name === "usd" ? "US$" : name}`))];
  saveCsv("questions.csv", [head, ...list.shown.map((at) => [
    ...["id", "text", "type", "hops", "gold"].map((name) => questions[name][at]),
    ...questions.runs.flatMap((its, run) => each.map((name) => (name === "status" ? outcomeOf(run, at)[2] : its[name][at]))),
  ])]);
}

const stageOf = (its, at) => report.stages[its.stage[at]];

const TESTS = {
  right: (its, at) => its.hit[at] === 1,
  partly: (its, at) => its.f1[at] > 0 && its.f1[at] < 1,
  wrong: (its, at) => its.hit[at] === 0,
  failed: (its, at) => stageOf(its, at) === "failed",
  ...Object.fromEntries(LOST.map(([stage]) => [stage, (its, at) => stageOf(its, at) === stage])),
  won: (its, at, base) => its.hit[at] === 1 && base.hit[at] === 0,
  lost: (its, at, base) => its.hit[at] === 0 && base.hit[at] === 1,
  differ: (its, at, base, all) => new Set(all.map((each) => each.hit[at]).filter((hit) => hit !== null)).size > 1,
};

const ordered = (value) => (a, b) => (value(a) < value(b) ? -1 : Number(value(a) > value(b)));

const ORDERS = {
  worst: (its) => (a, b) => (its.f1[a] ?? 2) - (its.f1[b] ?? 2),
  best: (its) => (a, b) => (its.f1[b] ?? -1) - (its.f1[a] ?? -1),
  slow: (its) => (a, b) => (its.seconds[b] ?? -1) - (its.seconds[a] ?? -1),
  dear: (its) => (a, b) => (its.usd[b] ?? -1) - (its.usd[a] ?? -1),
  calls: (its) => (a, b) => (its.calls[b] ?? -1) - (its.calls[a] ?? -1),
  latest: (its) => (a, b) => (its.place?.[b] ?? -1) - (its.place?.[a] ?? -1),
  type: () => ordered((at) => report.questions.type[at]),
  hops: () => ordered((at) => report.questions.hops[at] ?? Infinity),
  status: () => ordered((at) => STATUSES.indexOf(outcomeOf(list.filters.of, at)[0])),
  text: () => {
    const { folded } = report.questions;
    return (a, b) => (folded[a] < folded[b] ? -1 : Number(folded[a] > folded[b]));
  },
};

const STATUSES = ["failed", "wrong", "partly", "right", "none"];

function filterList() {
  const { questions, baseline } = report;
  const { text, type, hops, outcome, of, order } = list.filters;
  const its = questions.runs[of];
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const before = list.shown[list.active];
  list.shown = [];
  for (let at = 0; at < questions.id.length; at++) {
    if (type && questions.type[at] !== type.slice(1)) continue;
    if (hops && String(questions.hops[at]) !== hops.slice(1)) continue;
    if (outcome && !TESTS[outcome]?.(its, at, questions.runs[baseline], questions.runs)) continue;
    if (words.length && !words.every((word) => questions.folded[at].includes(word))) continue;
    list.shown.push(at);
  }
  if (ORDERS[order]) {
    const compare = ORDERS[order](its);
    list.shown.sort((a, b) => compare(a, b) || a - b);
  }
  list.active = Math.max(0, list.shown.indexOf(before));
  const total = `${number(questions.id.length)} question${questions.id.length === 1 ? "" : "s"}`;
  byId("count").textContent = list.shown.length === questions.id.length ? total : `${number(list.shown.length)} of ${total}`;
  byId("rows").style.height = `${Math.max(1, list.shown.length) * ROW}px`;
  drawTotals();
  scrollToActive();
  drawRows();
}

function drawRows() {
  const box = byId("list");
  if (!box) return;
  const first = Math.max(0, Math.floor(box.scrollTop / ROW) - AHEAD);
  const last = Math.min(list.shown.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + AHEAD);
  const rows = [];
  for (let at = first; at < last; at++) rows.push(row(at));
  if (!list.shown.length) rows.push(el("p", { class: "empty" }, "No question passes these filters."));
  byId("rows").replaceChildren(...rows);
  if (list.shown.length) box.setAttribute("aria-activedescendant", `row-${list.active}`);
  else box.removeAttribute("aria-activedescendant");
}

function outcomeOf(run, at) {
  const its = report.questions.runs[run];
  if (its.hit[at] === null) return ["none", "·", "not asked"];
  if (stageOf(its, at) === "failed") return ["failed", "!", "failed"];
  if (its.hit[at] === 0) return ["wrong", "✗", "wrong"];
  return its.f1[at] === 1 ? ["right", "✓", "right"] : ["partly", "✓", "partly right"];
}

function markOf(run, at) {
  const [kind, sign, said] = outcomeOf(run, at);
  return el("span", { class: `mark ${kind}`, title: `${plain(report.runs[run].name)}: ${said}` }, sign, el("span", { class: "unseen" }, ` ${said} `));
}

function row(at) {
  const { questions, runs } = report;
  const question = list.shown[at];
  const its = questions.runs[list.filters.of];
  const [kind] = outcomeOf(list.filters.of, question);
  const [hops, type, f1] = [questions.hops[question], questions.type[question], its.f1[question]];
  const node = el(
    "div",
    { role: "option", id: `row-${at}`, "aria-selected": at === list.active, "aria-posinset": at + 1, "aria-setsize": list.shown.length, class: question === opened.question ? "row open" : "row" },
    el("span", { class: "marks" }, runs.map((_, run) => markOf(run, question))),
    el("span", { class: "text", dir: "auto" }, questions.text[question]),
    el("span", { class: "type" }, cut(type, 24), hops !== null && !type.includes(`${hops}-hop`) && ` ${hops}-hop`),
    el("span", { class: "number", title: "F1 of the chosen run" }, f1 === null ? "–" : percent(f1)),
    el("span", { class: "said", dir: "auto" }, its.answers[question] || (kind === "none" ? "" : kind === "failed" ? "failed" : "no answer"),
      kind !== "right" && questions.gold[question] && el("span", { class: "dim" }, `  (gold: ${questions.gold[question]})`)),
  );
  node.dataset.at = at;
  node.style.top = `${at * ROW}px`;
  return node;
}

function moveTo(at) {
  list.active = Math.min(Math.max(at, 0), Math.max(list.shown.length - 1, 0));
  scrollToActive();
  drawRows();
}

function scrollToActive() {
  const box = byId("list");
  const top = list.active * ROW;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW - box.clientHeight;
}

// Go to the question at which the list is; its address opens it.
function goToQuestion(focus = false) {
  if (!list.shown.length) return;
  const { query } = here();
  query.set("question", report.questions.id[list.shown[list.active]]);
  for (const name of ["show", "node"]) query.delete(name);
  opened.focus = focus;
  const place = `#/questions?${query}`;
  if (location.hash === place) draw();
  else location.hash = place;
}

function listKey(event) {
  const page = Math.max(1, Math.floor(byId("list").clientHeight / ROW) - 1);
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
  if (event.key in steps) {
    event.preventDefault();
    moveTo(list.active + steps[event.key]);
  } else if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    goToQuestion(true);
  }
}
