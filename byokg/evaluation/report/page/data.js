// The data inside the page: compressed blocks, inflated when something in them is looked at.

const MARK = "\u0001";
const KEPT = 24; // inflated blocks of each kind kept in memory

const inflated = { questions: new Map(), calls: new Map(), texts: new Map() };

const parsed = () =>
  document.readyState === "loading"
    ? new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }))
    : Promise.resolve();

function blockOf(kind, position) {
  const starts = report.blocks[kind];
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle] <= position) low = middle;
    else high = middle - 1;
  }
  return low;
}

async function block(kind, position) {
  const kept = inflated[kind];
  const at = blockOf(kind, position);
  let found = kept.get(at);
  if (found === undefined) {
    await parsed();
    found = unpack(`block-${kind}-${at}`);
  }
  kept.delete(at); // the latest last
  kept.set(at, found);
  if (kept.size > KEPT) kept.delete(kept.keys().next().value);
  const values = await found;
  return values[position - report.blocks[kind][at]];
}

// The report: all of it is here, and nothing changes.
const source = {
  title: "byokg report",
  pages: [["/", "Overview"], ["/questions", "Questions"]],
  summary: () => unpack("summary"),
  detail: (id) => detail(report.questions.id.indexOf(id)),
  loaded: (names, { dataset, questions, runs }) => {
    byId("title").replaceChildren(shown(dataset || source.title));
    byId("subtitle").textContent = `${number(questions.id.length)} questions, ${runs.length} ${runs.length === 1 ? "run" : "runs"}`;
  },
};

// The record of a question, its texts put together again, and the calls that it refers to.
async function detail(position) {
  const record = await filled(await block("questions", position));
  for (const its of record.runs) {
    if (!its) continue;
    for (const call of its.calls) call.said = call.call === null ? null : await filled(await block("calls", call.call));
  }
  return record;
}

async function filled(value) {
  const wanted = new Set();
  collect(value, wanted);
  const lines = new Map();
  for (const line of wanted) lines.set(line, await block("texts", line));
  return replaced(value, lines);
}

const lineNumbers = (text) => text.slice(1).split(",").map((digits) => parseInt(digits, 36));

function collect(value, wanted) {
  if (typeof value === "string") {
    if (value.startsWith(MARK)) for (const line of lineNumbers(value)) wanted.add(line);
  } else if (value !== null && typeof value === "object") {
    for (const entry of Object.values(value)) collect(entry, wanted);
  }
}

function replaced(value, lines) {
  if (typeof value === "string") {
    return value.startsWith(MARK) ? lineNumbers(value).map((line) => lines.get(line)).join("\n") : value;
  }
  if (Array.isArray(value)) return value.map((entry) => replaced(entry, lines));
  if (value !== null && typeof value === "object") {
    // Without a prototype: a name such as __proto__ is a name like any other.
    const copy = Object.create(null);
    for (const [name, entry] of Object.entries(value)) copy[name] = replaced(entry, lines);
    return copy;
  }
  return value;
}
