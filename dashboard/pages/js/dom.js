// dom.js - makes elements. A text is set as text and never parsed, so what a job contains cannot become an element.
// Styles are classes and sizes of pictures are attributes, because the policy of the page forbids inline styles.
import { clock, count, hms, iso, moment, plain, span } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node[name] = value;
    else node.setAttribute(name, value === true ? "" : plain(value));
  }
  for (const child of children.flat(9)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : plain(child));
  }
  return node;
}
export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// ---- figures ----
export const none = () => h("span", { class: "zero" }, "–");
export const known = (value, show) => (value === null || value === undefined ? none() : show(value));
export const zero = (n) =>
  known(n, () => (n === 0 ? h("span", { class: "zero" }, "0") : h("span", { title: String(n) }, count(n))));
// A moment as the reader has chosen; the tooltip has it whole.
export function when(ms) {
  if (!ms) return none();
  const d = ms - clock.now();
  const text = clock.mode !== "ago" ? moment(ms) : d > 0 ? "in " + span(d) : span(-d) + " ago";
  const title = `${iso(ms).replace("T", " ")}\n${hms(ms, clock.local)} ${clock.local}`;
  return h("time", { datetime: iso(ms), title, class: "nowrap" }, text);
}

// ---- marks: a shape, a colour and a word, so that none is told by its colour ----
const shapes = {
  bad: () => [
    s("path", { d: "M12 1.5 22.5 12 12 22.5 1.5 12z", fill: "var(--kill)" }),
    s("path", { d: "M11 6h2v7.5h-2zM11 15.6h2v2.2h-2z", fill: "var(--sheet)" }),
  ],
  warn: () => [
    s("path", { d: "M12 2 23 21.5H1z", fill: "var(--fail)" }),
    s("path", { d: "M11 8.5h2v6.5h-2zM11 17h2v2.1h-2z", fill: "#1a1a1a" }),
  ],
  note: () => [
    s("circle", { cx: 12, cy: 12, r: 10, fill: "none", stroke: "var(--soft)", "stroke-width": 2 }),
    s("path", { d: "M11 10.5h2V18h-2zM11 6.5h2v2.3h-2z", fill: "var(--soft)" }),
  ],
  good: () => [
    s("circle", { cx: 12, cy: 12, r: 11, fill: "var(--done)" }),
    s("path", { d: "M6.5 12.5l3.8 3.8 7.4-8", fill: "none", stroke: "var(--sheet)", "stroke-width": 2.4 }),
  ],
  ready: () => s("circle", { cx: 12, cy: 12, r: 8.5, fill: "none", stroke: "var(--accent)", "stroke-width": 3 }),
  delayed: () =>
    s("circle", {
      cx: 12,
      cy: 12,
      r: 9,
      fill: "none",
      stroke: "var(--soft)",
      "stroke-width": 2.4,
      "stroke-dasharray": "4 3",
    }),
  running: () => s("path", { d: "M5 3l16 9-16 9z", fill: "var(--run)" }),
  failed: () => s("path", { d: "M12 3 21 20H3z", fill: "var(--fail)" }),
  dead: () => s("path", { d: "M4 4l16 16M20 4 4 20", stroke: "var(--dead)", "stroke-width": 4 }),
  done: () => s("path", { d: "M3 12.5l6 6L21 5.5", fill: "none", stroke: "var(--done)", "stroke-width": 3.6 }),
  crashed: () => [
    s("path", { d: "M12 1v22", stroke: "var(--kill)", "stroke-width": 4 }),
    s("path", { d: "M1 8h11v8H1z", fill: "var(--killed)" }),
  ],
  quiet: () => s("path", { d: "M5 4h5v16H5zM14 4h5v16h-5z", fill: "var(--soft)" }),
  serving: () => s("circle", { cx: 12, cy: 12, r: 8, fill: "var(--done)" }),
  silent: () => [
    s("circle", { cx: 12, cy: 12, r: 8.5, fill: "none", stroke: "var(--kill)", "stroke-width": 3.4 }),
    s("path", { d: "M4 20 20 4", stroke: "var(--kill)", "stroke-width": 3.4 }),
  ],
};
shapes.retry = shapes.failed;
shapes.stopping = shapes.parked = shapes.quiet;
shapes["pool down"] = shapes.bad;

export const mark = (kind, label) =>
  s(
    "svg",
    { viewBox: "0 0 24 24", ...(label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" }) },
    (shapes[kind] ?? shapes.note)(),
  );
export const state = (word, kind = word) =>
  h("span", { class: "state" + (kind === "silent" || kind === "bad" ? " bad" : "") }, mark(kind), word);
export const tag = (text, kind) => h("span", { class: "tag " + (kind ?? "") }, text);

// ---- pieces ----
// A command line with a button that copies it.
export function command(text) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say("Copied.");
    } catch {
      say("This browser does not let the page copy. Select the text instead.");
    }
  };
  return h(
    "span",
    { class: "cmd" },
    h("span", { tabindex: 0, role: "group", "aria-label": "command" }, text),
    h("button", { type: "button", "aria-label": "Copy: " + text, onclick: copy }, "copy"),
  );
}
export const to = (...names) => names.map(encodeURIComponent).join("/");
export const link = (address, ...text) => h("a", { href: address || "./" }, text);
export const jobLink = (job) =>
  h(
    "a",
    { class: "mono", href: to("job", job.id) + (job.queue ? "?queue=" + encodeURIComponent(job.queue) : "") },
    job.id,
  );
export const queueLink = (queue) => link(to("queue", queue), queue);

// head: a text, or {text, num, opt}; a row is a `tr`.
export const table = (caption, head, rows) =>
  h(
    "div",
    { class: "tablebox", tabindex: 0, role: "group", "aria-label": "table: " + caption },
    h(
      "table",
      { class: "cards" },
      h("caption", { class: "vh" }, caption),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          head.map((c) =>
            h(
              "th",
              { scope: "col", class: (c.num ? "num " : "") + (c.opt ? "opt" : "") },
              c === "" ? h("span", { class: "vh" }, "Actions") : (c.text ?? c),
            ),
          ),
        ),
      ),
      h("tbody", {}, rows),
    ),
  );
export const num = (text, opt) => ({ text, num: true, opt });
// A cell with the name of its column, which a narrow page shows beside it.
export const cell = (label, ...content) => h("td", { "data-label": label }, content);
export const figure = (label, ...content) => h("td", { class: "num", "data-label": label }, content);

// A section with its heading; `said` is the soft text beside it.
export function section(id, title, { said, right, hidden } = {}, ...content) {
  const heading = h("h2", { id, class: hidden ? "vh" : null }, title);
  return h(
    "section",
    { "aria-labelledby": id },
    said || right
      ? h(
          "div",
          { class: "bar" },
          heading,
          h("span", { class: "soft" }, said),
          right && h("div", { class: "right" }, right),
        )
      : heading,
    content,
  );
}
export const facts = (list) =>
  h(
    "dl",
    { class: "facts" },
    list.filter(Boolean).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
  );
export const head = (title, said, ...acts) =>
  h(
    "div",
    { class: "head" },
    title instanceof Node ? title : h("h1", {}, title),
    said && h("span", { class: "soft" }, said),
    h("div", { class: "acts" }, acts),
  );
// An empty list: one line, and the command that makes something.
export const empty = (text, how) =>
  h("div", { class: "sheet empty" }, h("p", {}, text), how && h("p", {}, command(how)));
export const choice = (label, value, entries, onchange) => {
  const node = h(
    "select",
    { "aria-label": label, onchange: () => onchange(node.value) },
    entries.map(([key, text]) => h("option", { value: key, selected: key === value }, text)),
  );
  return node;
};
export const button = (text, onclick, attributes) => h("button", { type: "button", onclick, ...attributes }, text);
// The line below a list: what it shows, and how to go on.
export const pager = (text, buttons) =>
  h("div", { class: "pager" }, h("span", {}, text), h("span", { class: "right" }, buttons));

// ---- what is said for a moment, also by a screen reader ----
const spoken = h("div", { class: "said", role: "status" });
let quiet = 0;
export function say(text) {
  if (!spoken.isConnected) document.body.append(spoken);
  spoken.replaceChildren(h("span", {}, text));
  clearTimeout(quiet);
  quiet = setTimeout(() => spoken.replaceChildren(), 5000);
}

// ---- one tooltip for all pictures: lines of text, the title first ----
const tipBox = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
function tip(text, x, y) {
  tipBox.hidden = !text;
  if (!text) return;
  if (!tipBox.isConnected) document.body.append(tipBox);
  const [title, ...lines] = text.split("\n");
  tipBox.replaceChildren(h("b", {}, title), ...lines.map((line) => h("div", {}, line)));
  tipBox.style.left = Math.max(4, Math.min(x + 14, innerWidth - tipBox.offsetWidth - 8)) + "px";
  tipBox.style.top = Math.max(4, Math.min(y + 14, innerHeight - tipBox.offsetHeight - 8)) + "px";
}
// A picture has its tips as attributes, or as a function of the place (a canvas).
document.addEventListener("pointermove", (e) => {
  const over = e.target instanceof Element ? e.target : null;
  tip(over?.tipAt ? over.tipAt(e) : over?.closest("[data-tip]")?.dataset.tip, e.clientX, e.clientY);
});
document.addEventListener("pointerleave", () => tip(null));
