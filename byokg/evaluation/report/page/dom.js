// Elements, text and numbers. Nothing here makes markup out of text.

const SVG = "http://www.w3.org/2000/svg";

// Characters that have no shape of their own, or change the direction of what follows, are shown by their numbers.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\ufff9-\ufffb]/u;
const UNSEEN_ALL = new RegExp(UNSEEN.source, "gu");

function make(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else if (name.startsWith("aria-")) node.setAttribute(name, String(value));
    else if (value === false) continue;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  add(node, children);
  return node;
}

function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : shown(String(child)));
  }
  return node;
}

const el = (tag, attributes, ...children) => make(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => make(document.createElementNS(SVG, tag), attributes, children);
const byId = (id) => document.getElementById(id);

// Text in which nothing hides.
function shown(text) {
  if (!UNSEEN.test(text)) return document.createTextNode(text);
  const parts = document.createDocumentFragment();
  let end = 0;
  for (const match of text.matchAll(UNSEEN_ALL)) {
    parts.append(text.slice(end, match.index));
    const code = match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    const mark = document.createElement("span");
    mark.className = "unseen-character";
    mark.textContent = `U+${code}`;
    parts.append(mark);
    end = match.index + match[0].length;
  }
  parts.append(text.slice(end));
  return parts;
}

// For SVG and attributes, where a span cannot stand.
const plain = (text) => String(text).replace(UNSEEN_ALL, "\ufffd");

function cut(text, length) {
  const characters = Array.from(text.slice(0, 2 * length + 2));
  return characters.length > length ? characters.slice(0, length - 1).join("") + "…" : text;
}

const number = (value, digits = 0) =>
  value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
const percent = (value) => (100 * value).toFixed(1);

function signed(value) {
  const points = 100 * value;
  const text = Math.abs(points).toFixed(1);
  return text === "0.0" ? text : (points > 0 ? "+" : "−") + text;
}

function significant(value) {
  if (value === 0) return "0";
  if (value >= 100) return number(value);
  return value.toLocaleString("en", { maximumSignificantDigits: 3 });
}

const probability = (p) => (p < 0.001 ? "< 0.001" : p.toFixed(3));

const MEASURES = {
  usd: { title: "US dollars a question", short: "US$", text: (value) => `$${significant(value)}` },
  seconds: {
    title: "Seconds a question",
    short: "Seconds",
    text: (value) => (value < 1 ? `${significant(1000 * value)} ms` : `${significant(value)} s`),
  },
  calls: { title: "Calls of models a question", short: "Calls", text: significant },
  tokens: { title: "Tokens a question", short: "Tokens", text: significant },
};

const METRIC_TITLES = {
  hit: "Hit", "hits@1": "Hits@1", precision: "Precision", recall: "Recall", f1: "F1", em: "EM",
};
const metricTitle = (metric) => METRIC_TITLES[metric] ?? metric;

// A choice of one among a few; keeps its state in aria-checked.
function choice(label, options, chosen, onChoose) {
  const group = el("div", { role: "radiogroup", "aria-label": label, class: "choice" });
  const choose = (value, focus) => {
    for (const button of group.children) {
      const is = button.dataset.value === value;
      button.setAttribute("aria-checked", is);
      button.tabIndex = is ? 0 : -1;
      if (is && focus) button.focus();
    }
  };
  const pick = (value, focus) => {
    choose(value, focus);
    onChoose(value);
  };
  for (const [value, title] of options) {
    const button = el("button", { role: "radio", type: "button", click: () => pick(value, true) }, title);
    button.dataset.value = value;
    group.append(button);
  }
  group.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = options.findIndex(([value]) => value === document.activeElement.dataset.value);
    pick(options[(at + step + options.length) % options.length][0], true);
  });
  choose(chosen, false);
  return group;
}

function selection(label, options, chosen, onChange) {
  const select = el("select", { "aria-label": label, change: () => onChange(select.value) });
  for (const [value, title] of options) select.append(el("option", { value, selected: value === chosen }, title));
  return select;
}

// Save text or an image under a name.
function save(name, content, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// Rows of cells as CSV (RFC 4180), with a mark by which Excel reads UTF-8.
function saveCsv(name, rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  save(name, `\ufeff${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`, "text/csv");
}

const button = (title, click, more = {}) => el("button", { type: "button", class: "quiet", click, ...more }, title);

const swatch = (colour) => el("span", { class: `swatch run-${colour % 8}`, "aria-hidden": "true" });

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
