// What one run made of one question: answers, gold, what it took, the subgraph, rounds, prompts and replies.

// Without gold answers an answer is neither right nor wrong.
const roleOf = ({ right }) => (right === null ? "given" : right ? "right" : "wrong");

// What drawing and evidence have to know of a run's answer.
function viewOf(its, record) {
  const roles = new Map(its.answers.filter((answer) => answer.id !== null).map((answer) => [answer.id, roleOf(answer)]));
  const byName = new Map(its.answers.map((answer) => [lower(answer.name), roleOf(answer)]));
  record.gold.forEach((name, at) => {
    if (!its.found[at]) byName.set(lower(name), "missed");
  });
  return {
    names: record.names,
    types: record.types ?? {},
    title: record.title,
    answers: its.answers,
    topics: new Set(its.rounds.flatMap((round) => round.linked?.entities ?? []).map((entity) => entity.id)),
    cited: new Set(its.answers.flatMap((answer) => answer.citations)),
    roleOf: (id, name) => roles.get(id) ?? byName.get(lower(name)) ?? null,
    picture: null,
    open: record.open ?? null,
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
      record.gold.length ? el("section", { "aria-label": "Gold answers" }, el("h3", {}, "Gold"), golds(its, record)) : null,
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
      answer.right === null ? null : el("span", { class: `mark ${roleOf(answer)}` }, answer.right ? "✓" : "✗", el("span", { class: "unseen" }, ` ${roleOf(answer)} `)),
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

const citation = (id) => el("button", { type: "button", class: "quiet", title: "Go to this evidence", click: (event) => goToEvidence(id, event.currentTarget) }, id);

// Of two runs side by side, the evidence of the one in which it is cited.
function goToEvidence(id, from) {
  const item = (from.closest(".side") ?? document).querySelector(`#${CSS.escape(`evidence-${id}`)}`);
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
  if (its.stage) figures.push(["reached", REACHED_SAID[its.stage]]);
  if (its.linked) figures.push(["topics linked", `${its.linked.found.length} of ${its.linked.gold.length}`]);
  return el("dl", { class: "took" }, figures.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function calls(its) {
  if (!its.calls.length) return null;
  const lacking = its.calls.filter((call) => call.said === null).length;
  const hint = its.asked
    ? `${number(lacking)} of the replies are not in the file that was given.`
    : "Give --replies FILE to read prompts and replies.";
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
