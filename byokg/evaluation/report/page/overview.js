// The figures of some runs beside each other.

const overview = { metric: "hits@1", measure: "seconds", by: "type" };

function showOverview() {
  const { runs } = report;
  document.title = plain(titleOf());
  if (!report.metrics.includes(overview.metric)) overview.metric = report.metrics[0];
  overview.measure = runs.some((run) => run.took.usd) ? "usd" : "seconds";
  overview.by = Object.keys(runs[0].by.type).length ? "type" : "hops";
  const metric = (value) => {
    overview.metric = value;
    drawCharts();
  };
  byId("content").replaceChildren(el("section", { id: "overview", "aria-label": "Overview" },
    el("section", { id: "leaderboard", class: "panel", "aria-label": "Leaderboard" }),
    el("div", { class: "toolbar" }, el("span", { class: "label" }, "Charts show"),
      choice("Metric", report.metrics.map((each) => [each, metricTitle(each)]), overview.metric, metric)),
    el("div", { id: "panels", class: "panels" })));
  drawLeaderboard();
  drawCharts();
}

function drawLeaderboard() {
  const { runs } = report;
  const clustered = runs.find((run) => run.clusters && run.clusters !== run.n / (run.repeats?.times ?? 1));
  const several = runs.filter((run) => run.repeats).map((run) => `${cut(run.name, 60)} ${run.repeats.times} times`);
  const repeated = several.length
    ? `Questions were asked several times (${several.join(", ")}): figures are means over all of it, pass@k is the share right at least once in k repeats, Majority scores the answers of most repeats. `
    : "";
  const told =
    `Profile ${report.profile}; percentages, with half the width of their 95 % intervals${clustered ? `; the ${number(clustered.n / (clustered.repeats?.times ?? 1))} questions form ${number(clustered.clusters)} clusters, which say as much as ${number(Math.round(clustered.effective_n))} questions apart` : ""}. ${repeated}` +
    "Failed questions score zero. Time, calls and tokens are means of all questions; recorded replies count as calls.";
  const first = (run, at) => [swatch(run.colour), cut(run.name, 60), runs.length > 1 && at === report.baseline ? [" ", el("span", { class: "tag" }, "baseline")] : null];
  byId("leaderboard").replaceChildren(
    el("header", {}, el("h2", {}, "Leaderboard"), button("CSV", () => saveLeaderboard(report), { title: "Save as CSV" })),
    leaderboard(report, first, drawLeaderboard),
    el("p", { class: "note" }, told),
    ...runs.map(settingsOf),
  );
}

function settingsOf(run) {
  const entries = Object.entries(run.settings).map(([key, value]) => [el("dt", {}, cut(key, 80)), el("dd", {}, cut(value, 400))]);
  return el("details", { class: "settings" }, el("summary", {}, swatch(run.colour), "Settings of ", cut(run.name, 60)), el("dl", {}, entries));
}

function drawCharts() {
  const { runs, deltas } = report;
  if (!byId("panels")) return;
  const { metric, measure, by } = overview;
  const panels = [];
  if (runs.length > 1) {
    const measures = ["usd", "seconds", "calls", "tokens"]
      .filter((each) => runs.some((run) => run.took[each]))
      .map((each) => [each, MEASURES[each].short]);
    const against = choice("Against", measures, measure, (value) => {
      overview.measure = value;
      drawCharts();
      byId("tradeoff").querySelector("[aria-checked=true]").focus();
    });
    panels.push(panel("tradeoff", "Accuracy and its price", measures.length > 1 ? against : null, tradeoff(runs, metric, measure)));
    panels.push(panel(
      "deltas",
      `Difference from ${cut(runs[report.baseline].name, 40)}`,
      null,
      deltas.length ? differences(deltas, runs, metric) : el("p", { class: "empty" }, "Testing…"),
      el("p", { class: "note" }, `${metricTitle(metric)} in percentage points, on the questions of both runs, with paired bootstrap intervals; p by McNemar’s exact test where every question is right or wrong and stands alone, else by permutations, with Holm’s correction for the number of runs. Questions that belong together are drawn and swapped together.`),
    ));
  }
  const kinds = ["type", "hops"].filter((each) => runs.some((run) => Object.keys(run.by[each]).length));
  const lost = runs.some((run) => run.loss);
  if (kinds.length) {
    const choose = choice("Group by", kinds.map((each) => [each, each === "type" ? "Type" : "Hops"]), by, (value) => {
      overview.by = value;
      drawCharts();
      byId("breakdown").querySelector("[aria-checked=true]").focus();
    });
    panels.push(panel("breakdown", `${metricTitle(metric)} by ${by === "type" ? "type of question" : "hops"}, %`, kinds.length > 1 ? choose : null, breakdown(runs, by, metric)));
    if (!lost) panels.at(-1).classList.add("broad");
  }
  if (lost) panels.push(panel("loss", "Where questions are lost", null, funnel(runs)));
  if (runs.some((run) => run.selective)) {
    panels.push(panel(
      "selective",
      "Answering only what the evidence holds",
      null,
      selectiveCurve(runs, (run) => run.selective, (least) => least),
      el("p", { class: "note" }, "From left to right: first answers that cite evidence which holds them, those that any evidence shown holds, all. Hits@1 of the questions answered; the others count as abstained."),
    ));
  }
  if (runs.some((run) => run.by_score)) {
    const worth = ({ auroc, calibration_error: error }) =>
      [auroc === null ? [] : `AUROC ${auroc.toFixed(2)}`, error === null ? [] : `calibration error ${error.toFixed(2)}`].flat().join(", ");
    const told = runs.filter((run) => run.by_score).map((run) => el("li", {}, cut(run.name, 40), ": ", worth(run.by_score)));
    panels.push(panel(
      "by-score",
      "Answering only what is sure enough",
      null,
      selectiveCurve(runs, (run) => run.by_score?.points, (least) => `score ${least.toFixed(2)} or more`),
      el("p", { class: "note" }, "Hits@1 of the questions whose first answer has the highest scores; the others count as abstained. A curve ends where questions have no answer. AUROC says how likely a right first answer has a higher score than a wrong one; the calibration error, how far scores are from the shares that are right, if they are taken for probabilities."),
      el("ul", { class: "note" }, told),
    ));
  }
  byId("panels").replaceChildren(...panels);
}

function panel(id, title, control, ...content) {
  return el("section", { id, class: "panel", "aria-label": title }, el("header", {}, el("h2", {}, title), control), content);
}
