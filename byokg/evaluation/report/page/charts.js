// The overview's charts, drawn as SVG. Every figure in them is text, so it can be read, searched and printed.

const colour = (run) => `run-${run.colour % 8}`;

// Round steps (1, 2, 5 times a power of ten) that cut [low, high] into about `count` parts.
function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at++) found.push(at * step + 0); // no −0
  return found;
}

function linear(low, high, from, to) {
  const scale = (value) => from + ((value - low) / (high - low || 1)) * (to - from);
  scale.ticks = ticks(low, high, 5);
  return scale;
}

// Powers of ten, and their doubles and fivefolds where there are few of them.
function logarithmic(low, high, from, to) {
  const [start, end] = [Math.log10(low), Math.log10(high)];
  const scale = (value) => from + ((Math.log10(value) - start) / (end - start || 1)) * (to - from);
  scale.ticks = [];
  for (let power = Math.floor(start); power <= Math.ceil(end); power++) {
    for (const times of end - start < 2 ? [1, 2, 5] : [1]) scale.ticks.push(times * 10 ** power);
  }
  scale.ticks = scale.ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  return scale;
}

function axis(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const wide = low > 0 && high / low > 12;
  return wide ? [logarithmic, low / 1.6, high * 1.6] : [linear, 0, high * 1.12 || 1];
}

// Width, height and margins of a chart; on a phone its letters would be too small otherwise.
const frame = () => [matchMedia("(max-width: 600px)").matches ? 350 : 560, 310, 40, 16, 30, 40];

const LEVELS = [0, 14, -14, 28, -28, 42, -42, 56, -56, 70, -70];

// Accuracy against what it takes. Runs that no other run beats in both are joined: the frontier.
function tradeoff(runs, metric, measure) {
  const [width, height, left, right, top, bottom] = frame();
  const points = runs
    .map((run, at) => ({ at, name: run.name, x: run.took[measure], ...run.metrics[metric] }))
    .filter((point) => point.x !== null);
  if (!points.length) return el("p", { class: "empty" }, "Prices of the models are not known.");
  const [scale, least, most] = axis(points.map((point) => point.x));
  const x = scale(least, most, left, width - right);
  const low = Math.max(0, Math.floor(10 * Math.min(...points.map((point) => point.ci95[0]))) / 10);
  const high = Math.min(1, Math.ceil(10 * Math.max(...points.map((point) => point.ci95[1]))) / 10);
  const y = linear(low, Math.max(high, low + 0.1), height - bottom, top);
  const title = `${metricTitle(metric)} against ${MEASURES[measure].title}`;
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": title });
  for (const tick of y.ticks) {
    chart.append(
      svg("line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: "grid" }),
      svg("text", { x: left - 8, y: y(tick) + 4, class: "tick end" }, number(Math.abs(100 * tick))),
    );
  }
  for (const tick of x.ticks) {
    chart.append(
      svg("line", { x1: x(tick), x2: x(tick), y1: height - bottom, y2: height - bottom + 4, class: "axis" }),
      svg("text", { x: x(tick), y: height - bottom + 17, class: "tick middle" }, MEASURES[measure].text(tick)),
    );
  }
  chart.append(
    svg("line", { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, class: "axis" }),
    svg("text", { x: width - right, y: height - 5, class: "tick end strong" }, MEASURES[measure].title),
    svg("text", { x: 2, y: 11, class: "tick strong" }, `${metricTitle(metric)}, %`),
  );
  const frontier = [...points]
    .sort((a, b) => a.x - b.x || b.value - a.value)
    .filter((point, at, all) => all.slice(0, at).every((earlier) => earlier.value < point.value));
  if (frontier.length > 1) {
    const line = frontier.map((point) => `${x(point.x)},${y(point.value)}`).join(" ");
    chart.append(svg("polyline", { points: line, class: "frontier" }));
  }
  const covered = points.map((point) => [x(point.x) - 6, y(point.value) - 6, x(point.x) + 6, y(point.value) + 6]);
  for (const point of points) {
    const [px, py] = [x(point.x), y(point.value)];
    const label = cut(plain(point.name), 30);
    const long = 6.6 * label.length;
    const near = px + 12 + long > width;
    const start = near ? px - 10 - long : px + 10;
    // The nearest line that is free; a run without one is known by its colour, and named when it is pointed at.
    const level = LEVELS.map((offset) => py - 7 + offset).find((each) =>
      each > 12 && each < height - bottom && !covered.some((other) => start < other[2] && other[0] < start + long && each - 10 < other[3] && other[1] < each + 3));
    if (level !== undefined) covered.push([start, level - 10, start + long, level + 3]);
    chart.append(
      svg(
        "g",
        { class: colour(runs[point.at]) },
        svg("line", { x1: px, x2: px, y1: y(point.ci95[0]), y2: y(point.ci95[1]), class: "interval" }),
        svg("circle", { cx: px, cy: py, r: 5, class: "point" }),
        level === undefined ? null : svg("text", { x: px + (near ? -10 : 10), y: level, class: `label${near ? " end" : ""}` }, label),
        svg("title", {}, `${plain(point.name)}: ${percent(point.value)} %, ${MEASURES[measure].text(point.x)}`),
      ),
    );
  }
  return chart;
}

// Differences from the baseline with their intervals; one that excludes zero is drawn full.
function differences(deltas, runs, metric) {
  const shown = deltas.filter((delta) => delta.n);
  const ends = shown.flatMap((delta) => delta.metrics[metric].ci95).map(Math.abs);
  const reach = Math.max(0.01, ...ends) * 1.08;
  const width = 240;
  const x = linear(-reach, reach, 8, width - 8);
  const rows = deltas.map((delta) => {
    const name = el("td", { class: "name" }, el("div", {}, swatch(runs[delta.run].colour), cut(runs[delta.run].name, 60)), changes(delta));
    if (!delta.n) return el("tr", {}, name, el("td", { colspan: 5, class: "dim" }, "no question in common"));
    const { value, ci95, p, test, won, lost } = delta.metrics[metric];
    const sure = ci95[0] > 0 || ci95[1] < 0;
    const bar = svg(
      "svg",
      { viewBox: `0 0 ${width} 22`, class: `delta ${colour(runs[delta.run])}${sure ? " sure" : ""}`, "aria-hidden": "true" },
      svg("line", { x1: x(0), x2: x(0), y1: 0, y2: 22, class: "axis" }),
      svg("line", { x1: x(ci95[0]), x2: x(ci95[1]), y1: 11, y2: 11, class: "interval" }),
      svg("circle", { cx: x(value), cy: 11, r: 4.5, class: "point" }),
    );
    return el(
      "tr",
      {},
      name,
      el("td", { class: "number strong" }, signed(value)),
      el("td", { class: "number dim" }, `${signed(ci95[0])} to ${signed(ci95[1])}`),
      el("td", { class: "bar" }, bar),
      el("td", { class: "number" }, el("span", { class: "good" }, `+${number(won)}`), " ", el("span", { class: "bad" }, `−${number(lost)}`)),
      el("td", { class: "number dim", title: plain(test) }, probability(p)),
    );
  });
  const head = ["", "Points", "95 % interval", "", "Won, lost", "p"].map((title, at) =>
    el("th", { scope: "col", class: at && at !== 3 ? "number" : "" }, title),
  );
  return el("table", { class: "figures deltas" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows));
}

function changes({ changed, apart }) {
  const told = apart.length ? el("small", { class: "apart" }, `not under one contract: ${cut(apart.join("; "), 200)}`) : null;
  if (!changed.length) return told ?? el("small", {}, "the same settings, graph and code");
  const listed = changed.slice(0, 4).map(([key, before, after]) =>
    el("span", { title: plain(`${key}: ${before ?? "unset"} → ${after ?? "unset"}`) }, `${cut(key, 40)} `, el("b", {}, cut(after ?? "unset", 24))),
  );
  const more = changed.length > 4 ? `and ${changed.length - 4} more` : null;
  return [el("small", { class: "changes" }, listed, more && el("span", {}, more)), told];
}

// One group of bars for each type (or hop count), a bar for each run.
function breakdown(runs, by, metric) {
  const groups = [...new Set(runs.flatMap((run) => Object.keys(run.by[by])))];
  const rows = groups.map((group) => {
    const its = runs.map((run, at) => [at, run.by[by][group]]).filter(([, summary]) => summary);
    const sizes = [...new Set(its.map(([, summary]) => summary.n))].map((n) => number(n)).join(" / ");
    const bars = its.map(([at, summary]) => {
      const { value, ci95 } = summary.metrics[metric];
      const bar = svg(
        "svg",
        { viewBox: "0 0 400 14", preserveAspectRatio: "none", class: `share ${colour(runs[at])}`, "aria-hidden": "true" },
        svg("rect", { x: 0, y: 2, width: 400, height: 10, class: "track" }),
        svg("rect", { x: 0, y: 2, width: 400 * value, height: 10, class: "fill" }),
        svg("line", { x1: 400 * ci95[0], x2: 400 * ci95[1], y1: 7, y2: 7, class: "interval" }),
      );
      const label = `${percent(value)} (${percent(ci95[0])} to ${percent(ci95[1])})`;
      return el("div", { class: "share-row", title: plain(`${runs[at].name}: ${label}`) }, bar, el("span", { class: "number" }, percent(value)));
    });
    return el("tr", {}, el("th", { scope: "row" }, cut(group, 48)), el("td", { class: "number dim" }, sizes), el("td", { class: "bars" }, bars));
  });
  return el("table", { class: "figures breakdown" }, el("tbody", {}, rows));
}

// Stages that questions have reached, unless an earlier one lost them.
const REACHED = {
  failed: "not failed", not_linked: "topic linked", not_retrieved: "answer retrieved", not_shown: "shown",
  not_cited: "cited", not_answered: "answered",
};

// Where questions are lost: how many are left after each stage, and how many it lost.
function funnel(runs) {
  const its = runs.map((run, at) => [run, at]).filter(([run]) => run.loss);
  const left = new Map(its.map(([run, at]) => [at, report.stages.reduce((sum, stage) => sum + (run.loss[stage] ?? 0), 0)]));
  const totals = new Map(left);
  const bar = ([run, at], lost) => {
    const [count, total] = [left.get(at), totals.get(at) || 1];
    const drawn = svg(
      "svg",
      { viewBox: "0 0 400 14", preserveAspectRatio: "none", class: `share ${colour(runs[at])}`, "aria-hidden": "true" },
      svg("rect", { x: 0, y: 2, width: 400, height: 10, class: "track" }),
      svg("rect", { x: 0, y: 2, width: (400 * (count + lost)) / total, height: 10, class: "lost" }),
      svg("rect", { x: 0, y: 2, width: (400 * count) / total, height: 10, class: "fill" }),
    );
    const figures = [percent(count / total), number(count), lost ? `−${number(lost)}` : ""];
    return el("div", { class: "share-row", title: plain(run.name) }, drawn, figures.map((text, part) => el("span", { class: `number${part === 2 ? " bad" : part ? " dim" : ""}` }, text)));
  };
  const line = (title, lost) => el("tr", {}, el("th", { scope: "row" }, title), el("td", { class: "bars" }, its.map((each) => bar(each, lost(each[0])))));
  const rows = [line("asked", () => 0)];
  for (const stage of report.stages) {
    if (!(stage in REACHED) || (stage === "failed" && its.every(([run]) => !run.loss.failed))) continue;
    for (const [run, at] of its) left.set(at, left.get(at) - (run.loss[stage] ?? 0));
    rows.push(line(REACHED[stage], (run) => run.loss[stage] ?? 0));
  }
  return el("table", { class: "figures breakdown funnel" }, el("tbody", {}, rows));
}

// How right first answers are, and how many questions have one, when more or less is asked of it.
// `pointsOf` gives a run's points, if it has any, and `told` says what a point asks for.
function selectiveCurve(runs, pointsOf, told) {
  const [width, height, left, right, top, bottom] = frame();
  const x = linear(0, 1, left, width - right);
  const y = linear(0, 1, height - bottom, top);
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": "Hits@1 of answered questions against their share" });
  for (const tick of y.ticks) {
    chart.append(
      svg("line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: "grid" }),
      svg("text", { x: left - 8, y: y(tick) + 4, class: "tick end" }, number(100 * tick)),
    );
  }
  for (const tick of x.ticks) chart.append(svg("text", { x: x(tick), y: height - bottom + 17, class: "tick middle" }, number(100 * tick)));
  chart.append(
    svg("line", { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, class: "axis" }),
    svg("text", { x: width - right, y: height - 5, class: "tick end strong" }, "Questions answered, %"),
    svg("text", { x: 2, y: 11, class: "tick strong" }, "Hits@1 of these, %"),
  );
  runs.forEach((run, at) => {
    const points = (pointsOf(run) ?? []).filter((point) => point.coverage > 0);
    if (!points.length) return;
    const title = (point) => `${plain(run.name)}, ${told(point.least)}: ${percent(point.accuracy)} % right of ${percent(point.coverage)} % answered`;
    const r = points.length > 10 ? 2.5 : 5;
    chart.append(svg(
      "g",
      { class: colour(runs[at]) },
      svg("polyline", { points: points.map((point) => `${x(point.coverage)},${y(point.accuracy)}`).join(" "), class: "interval", fill: "none" }),
      points.map((point) => svg("circle", { cx: x(point.coverage), cy: y(point.accuracy), r, class: "point" }, svg("title", {}, title(point)))),
    ));
  });
  return chart;
}
