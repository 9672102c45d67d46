// What happened in each round: what the KG-Linker wrote, what it was linked to, what was retrieved.

const EVIDENCE_LISTED = 40;

const TOLD_OF_ROUND = new Set(["number", "artifacts", "linked", "evidence", "steps"]);

function section(title, note, ...content) {
  return el("details", { class: "part", open: true }, el("summary", {}, title, note && el("span", { class: "dim" }, ` ${note}`)), content);
}

function roundOf(round, at, view) {
  const items = round.evidence ?? [];
  const rest = Object.fromEntries(Object.entries(round).filter(([key]) => !TOLD_OF_ROUND.has(key)));
  return el(
    "section",
    { class: "round" },
    el("h3", {}, `Round ${at + 1}`),
    artifacts(round.artifacts ?? {}),
    links(round.linked ?? {}, view),
    items.length
      ? section("Evidence", `${number(items.length)}`, el("ol", { class: "evidences" }, listed(items, EVIDENCE_LISTED, (item) => evidence(item, view))))
      : el("p", { class: "dim" }, "Nothing was retrieved."),
    steps(round.steps ?? []),
    Object.keys(rest).length ? raw("Recorded besides", rest) : null,
  );
}

function raw(title, value) {
  return el("details", { class: "part" }, el("summary", {}, title), longText(JSON.stringify(value, null, 1), "code"));
}

function artifacts(written) {
  const entries = [];
  const entry = (title, content) => entries.push(el("dt", {}, title), el("dd", {}, content));
  if (written.mentions?.length) entry("Mentions", written.mentions.map((each) => el("span", { class: "chip", dir: "auto" }, cut(each.text, 200))));
  if (written.draft_answers?.length) entry("Draft answers", written.draft_answers.map((each) => el("span", { class: "chip", dir: "auto" }, cut(each, 200))));
  if (written.paths?.length) {
    entry("Paths", listed(written.paths, 5, (path) =>
      el("div", { class: "path" }, hops(path.relations), path.score ? el("span", { class: "number dim" }, significantScore(path.score)) : null)));
  }
  for (const query of written.queries ?? []) entry(cut(query.language ?? "Query", 20), longText(query.text ?? "", "code"));
  if (written.bfsql) entry("BFS-QL", longText(written.bfsql, "code"));
  if (written.finished) entry("Finished", "the context is enough to answer");
  return entries.length ? section("Artifacts", null, el("dl", { class: "artifacts" }, entries)) : null;
}

function links(linked, view) {
  const rows = [["entities", ""], ["drafts", "draft"]].flatMap(([part, tag]) =>
    (linked[part] ?? []).map((entity) =>
      el(
        "tr",
        {},
        el("td", { dir: "auto" }, cut(entity.mention?.text ?? "", 120), tag && el("span", { class: "tag" }, tag)),
        el("td", {}, nodeName(entity.id, view, entity.name)),
        el("td", { class: "dim id" }, entity.id === entity.name ? "" : cut(entity.id, 60)),
        el("td", {}, entity.method),
        el("td", { class: "number" }, entity.score.toFixed(2)),
        el("td", { class: "meter" }, svg("svg", { viewBox: "0 0 60 6", "aria-hidden": "true" }, svg("rect", { width: 60, height: 6, class: "track" }), svg("rect", { width: 60 * Math.min(1, Math.max(0, entity.score)), height: 6, class: "fill" }))),
      ),
    ),
  );
  for (const value of linked.literals ?? []) {
    rows.push(el("tr", {}, el("td", {}, cut(value.mention?.text ?? "", 120)), el("td", {}, text(value.value)), el("td"), el("td", {}, value.kind), el("td"), el("td")));
  }
  if (!rows.length) return el("p", { class: "dim" }, "Nothing was linked.");
  const head = ["Mention", "Node", "Id", "Method", "Score", ""].map((title, at) => el("th", { scope: "col", class: at === 4 ? "number" : "" }, title));
  return section("Links", number(rows.length), el("div", { class: "wide" }, el("table", { class: "links" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows))));
}

function steps(noted) {
  if (!noted.length) return null;
  const part = section("Steps", number(noted.length), listed(noted, EVIDENCE_LISTED, (step) =>
    el("div", { class: "step" }, el("b", {}, cut(step.stage ?? "", 60)), el("dl", { class: "artifacts" }, ["given", "got"].map((name) => [el("dt", {}, name), el("dd", {}, values(step[name] ?? {}))])))));
  part.open = false;
  return part;
}

function values(record) {
  return Object.entries(record).map(([key, value]) => el("div", {}, el("span", { class: "dim" }, `${cut(key, 60)}: `), longText(typeof value === "string" ? value : JSON.stringify(value), "inline")));
}
