// The page of a path query: a drawing of all paths, and a list to point at.

async function showPaths() {
  const found = await unpack("paths");
  const ends = new Set(found.ends);
  const view = {
    names: found.names, types: found.types, answers: [], cited: new Set(), topics: new Set(found.starts), open: null, title: "paths", all: true,
    titles: { topic: "start", given: "end" },
    roleOf: (id) => (ends.has(id) ? "given" : null),
  };
  const items = found.paths.map(({ id, steps }) => ({ id, kind: "PathEvidence", paths: [steps] }));
  const picture = drawing([{ evidence: items }], view);
  const on = (id) => () => light(picture, id);
  byId("title").textContent = "Paths";
  byId("theme").addEventListener("click", cycleTheme);
  add(byId("content"), [el("section", { class: "page" },
    el("p", { class: "note" }, `${found.note}. Point at a path to see it in the picture.`),
    picture,
    el("ol", { class: "paths" }, found.paths.map(({ id, line }) =>
      el("li", { tabindex: 0, dir: "auto", mouseenter: on(id), focus: on(id), mouseleave: on(null), blur: on(null) }, line))))]);
  document.documentElement.dataset.ready = "yes";
}

showPaths();
