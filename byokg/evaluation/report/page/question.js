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

// What drawing and evidence have to know of a run's answer.
function viewOf(its, record) {
  const roles = new Map(its.answers.filter((answer) => answer.id !== null).map((answer) => [answer.id, answer.right ? "right" : "wrong"]));
  const byName = new Map(its.answers.map((answer) => [lower(answer.name), answer.right ? "right" : "wrong"]));
  record.gold.forEach((name, at) => {
    if (!its.found[at]) byName.set(lower(name), "missed");
  });
  return {
    names: record.names,
    answers: its.answers,
    topics: new Set(its.rounds.flatMap((round) => round.linked?.entities ?? []).map((entity) => entity.id)),
    cited: new Set(its.answers.flatMap((answer) => answer.citations)),
    roleOf: (id, name) => roles.get(id) ?? byName.get(lower(name)) ?? null,
    picture: null,
  };
}

function runContent(its, record) {
  const view = viewOf(its, record);
  const figure = drawing(its.rounds, view);
  view.picture = figure;
  return [
    its.error && el("div", { class: "problem", role: "alert" }, el("b", {}, its.error.type), ` ${cut(its.error.message, 4000)}`),
    el("div", { class: "verdict" },
      el("section", { "aria-label": "Answers" }, el("h3", {}, "Answered"), answers(its)),
      el("section", { "aria-label": "Gold answers" }, el("h3", {}, "Gold"), golds(its, record)),
    ),
    took(its),
    figure,
    its.rounds.map((round, at) => roundOf(round, at, view)),
    calls(its),
    Object.keys(its.rest).length ? raw("Recorded besides", its.rest) : null,
  ];
}

function answers(its) {
  if (!its.answers.length) return el("p", { class: "dim" }, its.status === "failed" || its.status === "skipped" ? its.status : "no answer");
  return el("ul", { class: "answers" }, listed(its.answers, 12, (answer) =>
    el("li", {},
      el("span", { class: `mark ${answer.right ? "right" : "wrong"}` }, answer.right ? "✓" : "✗", el("span", { class: "unseen" }, answer.right ? " right " : " wrong ")),
      el("span", { dir: "auto", title: answer.id === null ? null : plain(answer.id) }, cut(answer.name, 300)),
      answer.citations.length
        ? el("span", { class: "citations" }, answer.citations.slice(0, 6).map(citation), answer.citations.length > 6 && el("span", { class: "dim" }, ` +${answer.citations.length - 6}`))
        : el("span", { class: "tag warn" }, "unsupported"),
      answer.support === "found" && el("span", { class: "tag", title: "Evidence that was shown holds it, but none that it cites" }, "found"),
      answer.score !== null && el("span", { class: "number dim", title: "Score" }, significantScore(answer.score)),
    )));
}

function golds(its, record) {
  return el("ul", { class: "answers" }, listed(record.gold, 12, (name, at) =>
    el("li", {}, el("span", { class: `mark ${its.found[at] ? "right" : "missed"}` }, its.found[at] ? "✓" : "○", el("span", { class: "unseen" }, its.found[at] ? " answered " : " missed ")), el("span", { dir: "auto" }, cut(name, 300)))));
}

const citation = (id) => el("button", { type: "button", class: "quiet", title: "Go to this evidence", click: () => goTo(id) }, id);

function goTo(id) {
  const item = byId(`evidence-${id}`);
  if (!item) return;
  item.closest("details").open = true;
  item.scrollIntoView({ block: "center" });
  item.focus({ preventScroll: true });
}

const REACHED_SAID = {
  failed: "failed", not_linked: "not linked", not_retrieved: "linked, not retrieved",
  not_shown: "retrieved, not shown to the model", not_cited: "shown, not cited", not_answered: "cited, not answered",
  answered: "answered",
};

function took(its) {
  const stages = Object.values(its.usage);
  const sum = (name) => stages.reduce((total, stage) => total + stage.asked[name] + stage.replayed[name], 0);
  const figures = Object.entries(its.seconds).map(([stage, seconds]) => [stage === "total" ? "time" : stage, MEASURES.seconds.text(seconds)]);
  if (stages.length) {
    figures.push(["calls", number(sum("calls"))], ["tokens in", number(sum("input_tokens"))], ["tokens out", number(sum("output_tokens"))]);
    figures.push(["US$", sum("unpriced") ? "unknown" : MEASURES.usd.text(sum("usd"))]);
  }
  if (report.runs[opened.run].loss) figures.push(["reached", REACHED_SAID[stageOf(report.questions.runs[opened.run], opened.question)]]);
  if (its.linked) figures.push(["topics linked", `${its.linked.found.length} of ${its.linked.gold.length}`]);
  return el("dl", { class: "took" }, figures.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function calls(its) {
  if (!its.calls.length) return null;
  const lacking = its.calls.filter((call) => call.said === null).length;
  const hint = its.asked
    ? `${number(lacking)} of the replies are not in the file that was given.`
    : "Make the report with --replies FILE to read prompts and replies.";
  return el("section", { class: "round" }, el("h3", {}, "Prompts and replies"), its.calls.map(callOf), lacking ? el("p", { class: "note" }, hint) : null);
}

function callOf({ stage, shown: ids, said }) {
  const evidenceShown = ids.length ? el("p", { class: "citations" }, `${number(ids.length)} lines of evidence in it`) : null;
  if (!said) return el("div", { class: "step" }, el("b", {}, cut(stage, 60)), evidenceShown);
  const { input_tokens: sent, output_tokens: received } = said.usage;
  const head = `${said.model}, ${number(sent)} tokens in, ${number(received)} out, ${MEASURES.seconds.text(said.seconds)}${said.stop === "end" ? "" : `, stopped: ${said.stop}`}`;
  const messages = said.messages.map((message) => [el("h4", {}, message.role), longText(message.text)]);
  const tools = said.tools.length ? longText(JSON.stringify(said.tools, null, 1), "code") : null;
  const node = section(stage || "call", head, evidenceShown, messages, el("h4", {}, "reply"), longText(said.reply, "block reply"), tools);
  node.open = false;
  return node;
}

function detailKey(event) {
  if (event.key !== "Escape") return;
  event.preventDefault();
  byId("list").focus();
}
