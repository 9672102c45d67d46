// Starting, switching between views, and remembering the place in the address.

const VIEWS = ["overview", "questions"];
let view = "overview";

function switchTo(name, focus = false) {
  view = name;
  for (const each of VIEWS) {
    const is = each === name;
    byId(each).hidden = !is;
    byId(`tab-${each}`).setAttribute("aria-selected", is);
    byId(`tab-${each}`).tabIndex = is ? 0 : -1;
  }
  document.body.dataset.view = name;
  if (focus) byId(`tab-${name}`).focus();
  if (name === "questions") drawRows();
  rememberPlace();
}

function rememberPlace() {
  const place = new URLSearchParams();
  if (view === "questions") {
    place.set("view", view);
    if (opened.question !== null) {
      place.set("question", report.questions.id[opened.question].slice(0, 500));
      if (report.runs.length > 1) place.set("run", report.runs[opened.run].name);
    }
  }
  const text = place.toString();
  history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
}

async function goToPlace() {
  const place = new URLSearchParams(location.hash.slice(1));
  if (place.get("view") !== "questions") return;
  const run = report.runs.findIndex((each) => each.name === place.get("run"));
  if (run >= 0) chooseRun(run);
  const at = report.questions.id.findIndex((id) => id.slice(0, 500) === place.get("question"));
  switchTo("questions");
  if (at >= 0) {
    moveTo(list.shown.indexOf(at));
    await openQuestion(at);
  }
}

const THEMES = [["", "◐", "as the system"], ["light", "○", "light"], ["dark", "●", "dark"]];

function cycleTheme() {
  const root = document.documentElement;
  const at = (THEMES.findIndex(([theme]) => theme === (root.dataset.theme ?? "")) + 1) % THEMES.length;
  const [theme, sign, said] = THEMES[at];
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
  byId("theme").textContent = sign;
  byId("theme").setAttribute("aria-label", `Colours: ${said}`);
}

function globalKey(event) {
  const typing = event.target.closest("input, select, textarea");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    switchTo("questions");
    byId("search").focus();
  }
}

async function start() {
  report = await unpack("summary");
  const { runs, questions, dataset } = report;
  document.title = plain(`${dataset}, ${runs.length} ${runs.length === 1 ? "run" : "runs"} – byokg report`);
  byId("title").replaceChildren(shown(dataset || "byokg report"));
  byId("subtitle").textContent = `${number(questions.id.length)} questions, ${runs.length} ${runs.length === 1 ? "run" : "runs"}`;
  showOverview();
  showList();
  for (const name of VIEWS) byId(`tab-${name}`).addEventListener("click", () => switchTo(name));
  byId("tab-overview").parentElement.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
    event.preventDefault();
    switchTo(view === "overview" ? "questions" : "overview", true);
  });
  byId("theme").addEventListener("click", cycleTheme);
  document.addEventListener("keydown", globalKey);
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("#detail details:not([open])")];
    folded.forEach((part) => (part.open = true));
  });
  addEventListener("afterprint", () => folded.forEach((part) => (part.open = false)));
  document.body.dataset.view = view;
  await goToPlace();
  addEventListener("hashchange", goToPlace);
  document.documentElement.dataset.ready = "yes";
}

start().catch((error) => {
  byId("content").replaceChildren(el("p", { class: "problem" }, `This report cannot be shown: ${error.message}`));
});
