// The list of questions: filtered, sorted, and drawn only where it is looked at.

const ROW = 30; // pixels; report.css says the same
const AHEAD = 12; // rows drawn beyond what is seen

const list = {
  shown: [], // positions of the questions that pass the filters, in order
  active: 0, // which of them the keyboard is at
  filters: { text: "", type: "", outcome: "", run: 0, sort: "given" },
};

const OUTCOMES = [
  ["", "Any outcome"], ["right", "Right"], ["partly", "Partly right"], ["wrong", "Wrong"], ["failed", "Failed"],
];
const LOST = ["linked", "retrieved", "shown", "cited", "answered"].map((stage) => [`not_${stage}`, `Lost: not ${stage}`]);
const COMPARED = [["won", "Won against the baseline"], ["lost", "Lost against the baseline"], ["differ", "Runs disagree"]];
const SORTS = [
  ["given", "As in the data set"], ["worst", "F1, worst first"], ["best", "F1, best first"],
  ["slow", "Slowest first"], ["dear", "Dearest first"], ["calls", "Most calls first"], ["text", "By text"],
];

function showList() {
  const { questions, runs } = report;
  questions.folded = questions.text.map((text, at) => `${text}\n${questions.id[at]}`.toLowerCase());
  const types = [...new Set(questions.type)].sort();
  const outcomes = [...OUTCOMES];
  if (runs.some((run) => run.loss)) outcomes.push(...LOST);
  if (runs.length > 1) outcomes.push(...COMPARED);
  const set = (name) => (value) => {
    list.filters[name] = value;
    filterList();
  };
  const search = el("input", {
    type: "search", id: "search", placeholder: "Search questions and ids  ( / )", "aria-label": "Search questions and ids",
    "aria-controls": "list", spellcheck: "false",
    input: (event) => set("text")(event.target.value),
    keydown: (event) => {
      if (event.key === "ArrowDown" || event.key === "Enter") {
        event.preventDefault();
        byId("list").focus();
      } else if (event.key === "Escape" && search.value) {
        event.preventDefault();
        search.value = "";
        set("text")("");
      }
    },
  });
  const filters = [
    runs.length > 1 && selection("Run", runs.map((run, at) => [String(at), cut(run.name, 48)]), "0", (value) => chooseRun(Number(value))),
    selection("Outcome", outcomes, "", set("outcome")),
    types.length > 1 && selection("Type", [["", "Any type"], ...types.map((type) => [`=${type}`, type || "no type"])], "", set("type")),
    selection("Order", SORTS, "given", set("sort")),
  ];
  if (runs.length > 1) filters[0].id = "run";
  const rows = el("div", {
    id: "list", role: "listbox", tabindex: 0, "aria-label": "Questions", scroll: drawRows, keydown: listKey,
    click: (event) => {
      const row = event.target.closest("[role=option]");
      if (!row) return;
      moveTo(Number(row.dataset.at));
      openQuestion(list.shown[list.active]);
    },
  }, el("div", { id: "rows" }));
  add(byId("questions"), [
    el("div", { class: "browser" },
      el("div", { class: "filters", role: "search" }, search, filters, el("p", { id: "count", class: "dim", role: "status" })),
      rows,
    ),
    el("article", { id: "detail", tabindex: -1, "aria-label": "Question", keydown: detailKey },
      el("p", { class: "empty" }, "Choose a question: arrow keys move, Enter opens, Escape comes back.")),
  ]);
  new ResizeObserver(drawRows).observe(rows);
  filterList();
}

function chooseRun(run) {
  list.filters.run = run;
  const select = byId("run");
  if (select) select.value = String(run);
  filterList();
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

const ORDERS = {
  worst: (its) => (a, b) => (its.f1[a] ?? 2) - (its.f1[b] ?? 2),
  best: (its) => (a, b) => (its.f1[b] ?? -1) - (its.f1[a] ?? -1),
  slow: (its) => (a, b) => (its.seconds[b] ?? -1) - (its.seconds[a] ?? -1),
  dear: (its) => (a, b) => (its.usd[b] ?? -1) - (its.usd[a] ?? -1),
  calls: (its) => (a, b) => (its.calls[b] ?? -1) - (its.calls[a] ?? -1),
  text: () => {
    const { folded } = report.questions;
    return (a, b) => (folded[a] < folded[b] ? -1 : Number(folded[a] > folded[b]));
  },
};

function filterList() {
  const { questions, baseline } = report;
  const { text, type, outcome, run, sort } = list.filters;
  const its = questions.runs[run];
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const before = list.shown[list.active];
  list.shown = [];
  for (let at = 0; at < questions.id.length; at++) {
    if (type && questions.type[at] !== type.slice(1)) continue;
    if (outcome && !TESTS[outcome](its, at, questions.runs[baseline], questions.runs)) continue;
    if (words.length && !words.every((word) => questions.folded[at].includes(word))) continue;
    list.shown.push(at);
  }
  if (ORDERS[sort]) {
    const order = ORDERS[sort](its);
    list.shown.sort((a, b) => order(a, b) || a - b);
  }
  list.active = Math.max(0, list.shown.indexOf(before));
  const total = number(questions.id.length);
  byId("count").textContent = list.shown.length === questions.id.length ? `${total} questions` : `${number(list.shown.length)} of ${total}`;
  byId("rows").style.height = `${Math.max(1, list.shown.length) * ROW}px`;
  scrollToActive();
  drawRows();
}

function drawRows() {
  const box = byId("list");
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
  const f1 = questions.runs[list.filters.run].f1[question];
  const node = el(
    "div",
    { role: "option", id: `row-${at}`, "aria-selected": at === list.active, "aria-posinset": at + 1, "aria-setsize": list.shown.length, class: question === opened.question ? "row open" : "row" },
    el("span", { class: "marks" }, runs.map((_, run) => markOf(run, question))),
    el("span", { class: "text", dir: "auto" }, questions.text[question]),
    el("span", { class: "type" }, cut(questions.type[question], 24)),
    el("span", { class: "number", title: "F1 of the chosen run" }, f1 === null ? "–" : percent(f1)),
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

function listKey(event) {
  const page = Math.max(1, Math.floor(byId("list").clientHeight / ROW) - 1);
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
  if (event.key in steps) {
    event.preventDefault();
    moveTo(list.active + steps[event.key]);
  } else if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    if (list.shown.length) openQuestion(list.shown[list.active], byId("detail"));
  }
}
