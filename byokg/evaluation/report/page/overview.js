// The first view: the leaderboard, and what the runs' figures say beside each other.

const overview = { metric: "hits@1", measure: "seconds", by: "type", sorted: null, falling: true };

function showOverview() {
  const runs = report.runs;
  if (!report.metrics.includes(overview.metric)) overview.metric = report.metrics[0];
  overview.measure = runs.some((run) => run.took.usd) ? "usd" : "seconds";
  overview.by = Object.keys(runs[0].by.type).length ? "type" : "hops";
  const metric = (value) => {
    overview.metric = value;
    drawCharts();
  };
  const panels = el("div", { id: "panels", class: "panels" });
  add(byId("overview"), [
    el("section", { id: "leaderboard", class: "panel", "aria-label": "Leaderboard" }),
    el(
      "div",
      { class: "toolbar" },
      el("span", { class: "label" }, "Charts show"),
      choice("Metric", report.metrics.map((each) => [each, metricTitle(each)]), overview.metric, metric),
    ),
    panels,
  ]);
  drawLeaderboard();
  drawCharts();
}

const COLUMNS = {
  usd: ["US$", (run) => run.took.usd, (value) => (value === null ? "unknown" : MEASURES.usd.text(value))],
  seconds: ["Time", (run) => run.took.seconds, MEASURES.seconds.text],
  calls: ["Calls", (run) => run.took.calls, significant],
  tokens: ["Tokens", (run) => taken(run, "tokens"), (value) => number(value)],
};

function drawLeaderboard() {
  const runs = report.runs;
  const linked = runs.some((run) => run.linked);
  const columns = [
    ...report.metrics.map((metric) => [metric, metricTitle(metric), (run) => run.metrics[metric].value, "share"]),
    ...(runs.some((run) => run.repeats)
      ? [["pass", "pass@k", (run) => run.repeats?.pass.value ?? null, "share"], ["majority", "Majority", (run) => run.repeats?.majority.value ?? null, "share"]]
      : []),
    ...(linked ? [["linked", "Linked", (run) => run.linked?.value ?? null, "share"]] : []),
    ...Object.entries(COLUMNS)
      .filter(([, [, value]]) => runs.some((run) => value(run) !== 0))
      .map(([key, [title, value, text]]) => [key, title, value, text]),
    ["failed", "Failed", (run) => run.failed, (value) => number(value)],
    ["n", "Questions", (run) => run.n / (run.repeats?.times ?? 1), (value) => number(value)],
  ];
  const order = runs.map((_, at) => at);
  const sorting = columns.find(([key]) => key === overview.sorted);
  if (sorting) {
    const value = (at) => sorting[2](runs[at]) ?? -Infinity;
    order.sort((a, b) => (overview.falling ? value(b) - value(a) : value(a) - value(b)) || a - b);
  }
  const sort = (key) => {
    overview.falling = overview.sorted === key ? !overview.falling : true;
    overview.sorted = key;
    drawLeaderboard();
    byId(`sort-${key}`).focus();
  };
  const head = columns.map(([key, title]) => {
    const is = overview.sorted === key;
    const direction = is ? (overview.falling ? "descending" : "ascending") : null;
    const arrow = is ? el("span", { class: "arrow", "aria-hidden": "true" }, overview.falling ? "▾" : "▴") : null;
    return el(
      "th",
      { scope: "col", class: "number", "aria-sort": direction },
      el("button", { type: "button", id: `sort-${key}`, click: () => sort(key) }, title, arrow),
    );
  });
  // Figures are ranked among runs under one contract only.
  const best = report.contracts.map(
    (contract) =>
      new Map(
        report.metrics.map((metric) => [metric, Math.max(...contract.runs.map((at) => runs[at].metrics[metric].value))]),
      ),
  );
  const row = (at, group) => {
    const run = runs[at];
    const cells = columns.map(([key, , value, text]) => {
      if (text !== "share") return el("td", { class: "number" }, text(value(run)));
      const estimate = key === "linked" ? run.linked : (run.metrics[key] ?? run.repeats?.[key]);
      if (!estimate) return el("td", { class: "number dim" }, "–");
      const first = report.contracts[group].runs.length > 1 && best[group].get(key) === estimate.value;
      const [low, high] = estimate.ci95;
      return el(
        "td",
        { class: `number${first ? " best" : ""}`, title: `95 % interval ${percent(low)} to ${percent(high)}` },
        percent(estimate.value),
        el("small", {}, `±${(50 * (high - low)).toFixed(1)}`),
      );
    });
    const made = ["options.pipeline", "options.llm", "options.embedding"].map((key) => run.settings[key]);
    const model = run.settings["llm.model"];
    const how = [made[0], model ?? made[1], made[2]].filter((part) => part && part !== "none").join(" · ");
    const base = runs.length > 1 && at === report.baseline ? [" ", el("span", { class: "tag" }, "baseline")] : null;
    return el("tr", {}, el("th", { scope: "row", class: "name" }, swatch(at), cut(run.name, 60), base, el("small", {}, cut(how, 90))), cells);
  };
  const bodies = report.contracts.map((contract, group) => {
    const apart = group
      ? el("tr", { class: "contract" }, el("th", { scope: "rowgroup", colspan: columns.length + 1 }, `Not ranked with the runs above: ${cut(contract.differs.join("; "), 300)}`))
      : null;
    return el("tbody", {}, apart, order.filter((at) => contract.runs.includes(at)).map((at) => row(at, group)));
  });
  const clustered = runs.find((run) => run.clusters && run.clusters !== run.n / (run.repeats?.times ?? 1));
  const several = runs.filter((run) => run.repeats).map((run) => `${cut(run.name, 60)} ${run.repeats.times} times`);
  const repeated = several.length
    ? `Questions were asked several times (${several.join(", ")}): figures are means over all of it, pass@k says how many are right at least once in so many times, Majority scores what most replies agree on. `
    : "";
  const told =
    `Profile ${report.profile}; percentages, with half the width of their 95 % intervals${clustered ? `; the ${number(clustered.n / (clustered.repeats?.times ?? 1))} questions form ${number(clustered.clusters)} clusters, which say as much as ${number(Math.round(clustered.effective_n))} questions apart` : ""}. ${repeated}` +
    "Failed questions score zero. What questions took is the mean of all, recorded replies counted as if they had been " +
    "asked for.";
  byId("leaderboard").replaceChildren(
    el("h2", {}, "Leaderboard"),
    el("div", { class: "wide" }, el("table", { class: "figures leaders" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Run"), head)), bodies)),
    el("p", { class: "note" }, told),
    ...runs.map((run, at) => settingsOf(run, at)),
  );
}

function settingsOf(run, at) {
  const entries = Object.entries(run.settings).map(([key, value]) => [el("dt", {}, cut(key, 80)), el("dd", {}, cut(value, 400))]);
  return el("details", { class: "settings" }, el("summary", {}, swatch(at), "Settings of ", cut(run.name, 60)), el("dl", {}, entries));
}

function drawCharts() {
  const { runs, deltas } = report;
  const { metric, measure, by } = overview;
  const panels = [];
  if (runs.length > 1) {
    const measures = ["usd", "seconds", "calls", "tokens"]
      .filter((each) => runs.some((run) => taken(run, each)))
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
      differences(deltas, runs, metric),
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
