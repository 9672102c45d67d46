// One question: what was answered and why, for one run at a time.

const opened = { question: null, run: 0, record: null, asked: 0 };

async function openQuestion(at, focus = null) {
  if (at === undefined) return;
  const asked = ++opened.asked;
  opened.question = at;
  let { run } = list.filters;
  if (outcomeOf(run, at)[0] === "none") run = report.runs.findIndex((_, other) => outcomeOf(other, at)[0] !== "none");
  drawRows();
  try {
    const record = await detail(at);
    if (asked !== opened.asked) return; // another was opened meanwhile
    opened.record = record;
    showRun(run);
  } catch (error) {
    byId("detail").replaceChildren(el("p", { class: "problem" }, `This question cannot be shown: ${error.message}`));
  }
  if (focus) focus.focus({ preventScroll: true });
}

function showRun(run) {
  opened.run = run;
  const { question, record } = opened;
  const { id, type, hops } = report.questions;
  const its = record.runs[run];
  const tabs = report.runs.length > 1 ? runTabs(question, run) : null;
  byId("detail").replaceChildren(
    el("header", {},
      el("p", { class: "dim" }, el("span", { class: "id" }, cut(id[question], 80)), type[question] && el("span", { class: "tag" }, cut(type[question], 60)), hops[question] !== null && el("span", { class: "tag" }, `${hops[question]} ${hops[question] === 1 ? "hop" : "hops"}`)),
      el("h2", { dir: "auto" }, cut(record.question, 1200)),
      tabs,
    ),
    el("div", { id: "run-panel", role: tabs ? "tabpanel" : null, "aria-label": plain(report.runs[run].name) }, its ? runContent(its, record) : el("p", { class: "empty" }, "This run was not asked this question.")),
  );
  byId("detail").scrollTop = 0;
  centre();
  byId("status").textContent = plain(`${cut(record.question, 200)}: ${outcomeOf(run, question)[2]}`);
  rememberPlace();
}

function runTabs(question, chosen) {
  const tabs = el("div", { role: "tablist", "aria-label": "Run", class: "runs" }, report.runs.map((run, at) =>
    el("button", { role: "tab", type: "button", "aria-selected": at === chosen, "aria-controls": "run-panel", tabindex: at === chosen ? 0 : -1, click: () => showRun(at) }, markOf(at, question), swatch(at), cut(run.name, 40))));
  tabs.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    showRun((opened.run + step + report.runs.length) % report.runs.length);
    byId("detail").querySelector("[role=tab][aria-selected=true]").focus();
  });
  return tabs;
}

function detailKey(event) {
  if (event.key !== "Escape") return;
  event.preventDefault();
  byId("list").focus();
}
