// One page after another: the address says which, of which runs, so that Back works.

let report; // the runs that are shown: figures, and all questions; see view.py
const shownPage = { page: null, names: null };

const here = () => {
  const [path, query] = location.hash.slice(1).split("?");
  return { path: path || "/", query: new URLSearchParams(query) };
};

const PAGES = { "/overview": showOverview, "/questions": showQuestions, ...source.shows };

// Draw what the address names; what is there already is only brought up to date.
async function draw() {
  const { path, query } = here();
  if (!query.has("node")) document.querySelector("dialog")?.remove();
  const page = PAGES[path] ?? PAGES[source.pages[0][0]] ?? showOverview;
  const names = query.getAll("run");
  drawNavigation(names);
  const own = page === showOverview || page === showQuestions;
  document.body.dataset.view = page === showQuestions ? "questions" : "";
  try {
    if (own && !(await load(names))) return;
    const fresh = shownPage.page !== page || shownPage.report !== (own ? report : null);
    Object.assign(shownPage, { page, report: own ? report : null });
    await page(query, fresh);
  } catch (error) {
    byId("content").replaceChildren(el("p", { class: "problem", role: "alert" }, String(error.message)));
    shownPage.page = null;
  }
  document.documentElement.dataset.ready = "yes";
}

// Read the runs; false if another page was gone to meanwhile.
async function load(names) {
  const key = JSON.stringify(names);
  if (shownPage.names === key && report) return true;
  const place = location.hash;
  const found = await source.summary(names);
  if (location.hash !== place) return false;
  report = found;
  shownPage.names = key;
  source.loaded?.(names, found);
  return true;
}

function showQuestions(query, fresh) {
  if (fresh) buildList();
  readFilters(query);
  const at = report.questions.id.indexOf(query.get("question"));
  document.title = plain(`${at < 0 ? "" : `${cut(report.questions.text[at], 60)} – `}${titleOf()}`);
  return openQuestion(query);
}

const titleOf = () => `${report.dataset}, ${report.runs.length} ${report.runs.length === 1 ? "run" : "runs"} – ${source.title}`;

function drawNavigation(names) {
  const { path } = here();
  const query = new URLSearchParams(names.map((name) => ["run", name])).toString();
  byId("views").replaceChildren(...source.pages.map(([place, title]) => {
    const is = path === place || (!(path in PAGES) && place === source.pages[0][0]);
    const with_runs = query && place !== "/" ? `?${query}` : "";
    return el("a", { href: `#${place}${with_runs}`, id: `nav-${title.toLowerCase()}`, "aria-current": is ? "page" : null }, title);
  }));
}

// A key for searching, one for going up.
function globalKey(event) {
  const typing = event.target.closest("input, select, textarea");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    if (byId("search")) return byId("search").focus();
    history.pushState(null, "", byId("nav-questions").getAttribute("href"));
    draw().then(() => byId("search")?.focus());
  } else if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
    if (byId("detail")?.contains(document.activeElement)) byId("list").focus();
    else if (!typing && here().path !== "/") location.hash = "#/";
  }
}

async function start() {
  byId("theme").addEventListener("click", cycleTheme);
  document.addEventListener("keydown", globalKey);
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("#detail details:not([open])")];
    folded.forEach((part) => (part.open = true));
  });
  addEventListener("afterprint", () => folded.forEach((part) => (part.open = false)));
  await draw();
  addEventListener("hashchange", draw);
  source.started?.();
}

start();
