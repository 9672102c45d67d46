// The table of runs, ranked among runs under one contract only; its columns sort.

const COLUMNS = {
  usd: ["US$", (run) => run.took.usd, (value) => (value === null ? "unknown" : MEASURES.usd.text(value))],
  seconds: ["Time", (run) => run.took.seconds, (value) => MEASURES.seconds.text(value)],
  calls: ["Calls", (run) => run.took.calls, significant],
  tokens: ["Tokens", (run) => run.took.tokens, (value) => number(value)],
};

const timesOf = (run) => run.repeats?.times ?? run.repeated ?? 1;

// The columns of a board: key, title, value, and text, or "share" for an estimate with its interval.
function columnsOf({ runs, metrics }) {
  const any = (value) => runs.some((run) => value(run));
  return [
    ...metrics.map((metric) => [metric, metricTitle(metric), (run) => run.metrics[metric], "share"]),
    ...(any((run) => run.repeats?.pass) ? [["pass", "pass@k", (run) => run.repeats?.pass, "share"], ["majority", "Majority", (run) => run.repeats?.majority, "share"]] : []),
    ...(any((run) => run.linked) ? [["linked", "Linked", (run) => run.linked, "share"]] : []),
    ...Object.entries(COLUMNS).filter(([, [, value]]) => any((run) => value(run) === null || value(run) > 0)).map(([key, its]) => [key, ...its]),
    ...(any((run) => run.failed !== undefined) ? [["failed", "Failed", (run) => run.failed, (value) => number(value)]] : []),
    ["n", "Questions", (run) => Math.round(run.n / timesOf(run)), (value) => number(value)],
  ];
}

const sorting = { key: null, falling: true };

// `first` makes the content of a run's first cell, `again` draws the table once more.
function leaderboard(board, first, again) {
  const { runs, contracts } = board;
  const columns = columnsOf(board);
  const plainValue = (column, run) => (column[3] === "share" ? column[2](run)?.value : column[2](run)) ?? -Infinity;
  const order = runs.map((_, at) => at);
  const by = columns.find(([key]) => key === sorting.key) ?? (board.ranked ? columns[0] : null);
  if (by) order.sort((a, b) => (sorting.falling ? 1 : -1) * (plainValue(by, runs[b]) - plainValue(by, runs[a]) || 0) || a - b);
  const head = columns.map(([key, title]) => {
    const is = sorting.key === key;
    const sort = () => {
      sorting.falling = is ? !sorting.falling : true;
      sorting.key = key;
      again();
      byId(`sort-${key}`)?.focus();
    };
    return el("th", { scope: "col", class: "number", "aria-sort": is ? (sorting.falling ? "descending" : "ascending") : null },
      el("button", { type: "button", id: `sort-${key}`, click: sort }, title, is && el("span", { class: "arrow", "aria-hidden": "true" }, sorting.falling ? "▾" : "▴")));
  });
  const cell = ([key, , value, text], run, its) => {
    const found = value(run);
    if (found === undefined || Number.isNaN(found) || (text === "share" && !found)) return el("td", { class: "number dim" }, "–");
    if (text !== "share") return el("td", { class: "number" }, text(found));
    const best = its.length > 1 && found.value === Math.max(...its.map((at) => value(runs[at])?.value ?? -1));
    const [low, high] = found.ci95;
    return el("td", { class: `number${best ? " best" : ""}`, title: `95 % interval ${percent(low)} to ${percent(high)}` }, percent(found.value), el("small", {}, `±${(50 * (high - low)).toFixed(1)}`));
  };
  const bodies = contracts.map(({ runs: its, differs }, group) => {
    const title = [board.named && contracts.length > 1 && `${cut(runs[its[0]].dataset, 80)}, ${number(runs[its[0]].n / timesOf(runs[its[0]]))} questions. `, group > 0 && `Not ranked with the runs above: ${cut(differs.join("; "), 300)}`];
    return el("tbody", {},
      title.some(Boolean) && el("tr", { class: "contract" }, el("th", { scope: "rowgroup", colspan: columns.length + 1 }, el("span", {}, title))),
      order.filter((at) => its.includes(at)).map((at) => el("tr", { class: `run ${runs[at].state ?? ""}` },
        el("th", { scope: "row", class: "name" }, first(runs[at], at), runs[at].how && el("small", {}, cut(runs[at].how, 90))),
        columns.map((column) => cell(column, runs[at], its)))));
  });
  return el("div", { class: "wide" }, el("table", { class: "figures leaders" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Run"), head)), bodies));
}

function saveLeaderboard(board) {
  const columns = columnsOf(board);
  const titles = columns.flatMap(([, title, , text]) => (text === "share" ? [`${title} %`, `${title} low %`, `${title} high %`] : [title === "Time" ? "Seconds" : title]));
  saveCsv("runs.csv", [["Run", "Contract", ...titles], ...board.contracts.flatMap(({ runs: its }, group) => its.map((at) => {
    const cells = columns.flatMap(([, , value, text]) => {
      const found = value(board.runs[at]);
      if (text !== "share") return [found];
      return found ? [found.value, ...found.ci95].map((part) => (100 * part).toFixed(4)) : ["", "", ""];
    });
    return [board.runs[at].name, group + 1, ...cells];
  }))]);
}
