// main.js - the frame: the pages, what the reader has chosen, and the view of the address.
import { ApiError, address, get } from "./api.js";
import { h, mark, s, say } from "./dom.js";
import { clock, count, hms, span, zoneName } from "./format.js";
import { mergeRuns, missedRuns } from "./lanes.js";
import { Live } from "./live.js";
import { morph } from "./morph.js";
import { repaint } from "./timeline.js";
import { title as verdict } from "./pages/overview.js";

const BASE = new URL(document.baseURI).pathname;
// Of each page: its module, which exports it by its name. A page is loaded when it is first shown.
const PAGES = ["overview", "queue", "running", "job", "dead", "schedules", "workers", "locks", "latency", "redis"];
const views = {};
const pageOf = (name) => (name === "" ? "overview" : name === "overview" ? null : name);
const NAV = [
  ["", "Overview", "o"],
  ["running", "Running", "r"],
  ["dead", "Dead", "d"],
  ["schedules", "Schedules", "s"],
  ["workers", "Workers", "w"],
  ["locks", "Locks", "l"],
  ["latency", "Latency", "t"],
  ["redis", "Redis", null],
];
const ABOUT_MS = 60000;
const PARENT = { queue: "", job: "running" };

// ---- what the reader has chosen ----
const KEPT = "holdfast.";
function saved(name) {
  try {
    return localStorage.getItem(KEPT + name);
  } catch {
    return null; // a private window
  }
}
function save(name, value) {
  try {
    localStorage.setItem(KEPT + name, value);
  } catch {
    // it holds for this page
  }
}
function setTheme(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  repaint();
}
clock.mode = saved("time") ?? "ago";
setTheme(saved("theme"));

// ---- the page that is shown ----
// What comes by itself is drawn once a second at most, what the reader does at once.
const DRAW_MS = 950;
let drawnAt = -Infinity;
let waiting = 0;
function drawSoon(now) {
  if (now) draw();
  else waiting ||= setTimeout(draw, Math.max(0, drawnAt + DRAW_MS - performance.now()));
}
const live = new Live(drawSoon);
const at = {
  name: "",
  rest: [],
  params: new URLSearchParams(),
  own: {}, // what the page remembers while it is shown
  data: live.data,
  errors: live.errors,
  get state() {
    return live.state;
  },
  get away() {
    return live.away;
  },
  get age() {
    return live.age;
  },
  get about() {
    return live.data.about ?? {};
  },
  // The part of a page that has the runs of the last `ms`.
  runs: (ms) => ({
    path: address(["runs"], { since_ms: ms }),
    topic: "runs",
    merge: mergeRuns,
    missed: missedRuns,
  }),
  api: address,
  filter: (...names) => Object.fromEntries(names.map((name) => [name, at.params.get(name)])),
  go: (path) => go(path),
  // Changes the query of the address; null takes a name out.
  put(params) {
    const query = new URLSearchParams(at.params);
    for (const [name, value] of Object.entries(params)) value ? query.set(name, value) : query.delete(name);
    const path = location.pathname + (query.size ? "?" + query : "");
    history[params.after === undefined ? "replaceState" : "pushState"](null, "", path);
    read();
  },
  reload: (...names) => live.reload(...names),
  // The page has changed what it remembers, and perhaps its parts.
  update: () => live.show(partsOf()),
  redraw: () => draw(),
};

const view = () => views[pageOf(at.name)];
async function load(page) {
  if (!PAGES.includes(page) || views[page]) return;
  views[page] = (await import(`./pages/${page}.js`))[page];
  live.show(partsOf());
}
// `about` is what this server is, and what this reader may do.
const partsOf = () => ({
  about: { path: "about", every: ABOUT_MS },
  overview: { path: "overview", topic: "overview" },
  ...view()?.parts?.(at),
});

// Reads the address.
function read() {
  const path = location.pathname.startsWith(BASE) ? location.pathname.slice(BASE.length) : "";
  const [name, ...rest] = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  const other = name !== at.name || rest.join("/") !== at.rest.join("/");
  Object.assign(at, { name, rest, params: new URLSearchParams(location.search) });
  if (other) {
    at.own = {};
    clock.stopped = null;
  }
  live.show(partsOf());
  void load(pageOf(name));
  return other;
}

function go(path) {
  history.pushState(null, "", new URL(path, document.baseURI));
  arrive();
}
function arrive() {
  if (read()) scrollTo(0, 0);
  main.focus({ preventScroll: true });
}

// ---- the frame ----
const logo = () => h("img", { src: "icon.svg", alt: "", width: 18, height: 18 });
const nav = h("nav", { class: "nav", "aria-label": "Pages" });
const foot = h("div", { class: "foot" });
const main = h("main", { id: "main", tabindex: -1 });
const dot = h("i");
const liveText = h("span", { class: "word" });
const changes = h("span", { class: "tag word", hidden: true });
const option = (value, text = value) => h("option", { value }, text);
const time = h(
  "select",
  { "aria-label": "How times are shown" },
  option("ago", "relative"),
  option("utc", "UTC"),
  option("local"),
);
time.value = clock.mode;
time.onchange = () => {
  clock.mode = time.value;
  save("time", time.value);
  draw();
};
const look = h(
  "select",
  { "aria-label": "Light or dark", class: "tz" },
  option("auto"),
  option("light"),
  option("dark"),
);
look.value = document.documentElement.dataset.theme ?? "auto";
look.onchange = () => {
  setTheme(look.value);
  save("theme", look.value);
  draw();
};
const input = h("input", {
  type: "search",
  placeholder: "Find a job, type, queue",
  "aria-label": "Find a job, a type, a queue, a schedule, a lock or a worker",
  autocomplete: "off",
  spellcheck: "false",
});
const lens = () =>
  s(
    "svg",
    { viewBox: "0 0 24 24", width: 15, height: 15, "aria-hidden": "true" },
    s("circle", { class: "lens", cx: 10, cy: 10, r: 6.5 }),
    s("path", { class: "lens", d: "M15 15l6 6" }),
  );
const liveBox = h("span", { class: "live" }, dot, liveText);

function frame() {
  const skip = (e) => {
    e.preventDefault();
    main.focus();
  };
  return [
    h("a", { class: "skip", href: "#main", onclick: skip }, "Skip to the content"),
    h(
      "div",
      { class: "frame" },
      h(
        "header",
        { class: "side" },
        h(
          "div",
          {},
          h(
            "a",
            { class: "brand", href: "./", "aria-label": "holdfast, overview" },
            logo(),
            h("span", { class: "word" }, "holdfast"),
          ),
          nav,
          foot,
        ),
      ),
      h(
        "div",
        {},
        h(
          "div",
          { class: "top", role: "region", "aria-label": "Find, and how it looks" },
          h(
            "form",
            { class: "find", role: "search", onsubmit: find },
            lens(),
            input,
            h("kbd", { "aria-hidden": "true" }, "/"),
          ),
          h("span", { class: "grow" }),
          changes,
          liveBox,
          time,
          look,
        ),
        main,
      ),
    ),
  ];
}

// ---- find ----
// What a name is, in this order: a job, for example, also tells its queue.
const FOUND = {
  job: (id, queue) => address(["job", id], { queue }),
  schedule: () => "schedules",
  lock: (name) => address(["locks"], { name }),
  worker: () => "workers",
  type: (type) => address(["latency"], { type }),
  queue: (name) => address(["queue", name]),
};
async function find(e) {
  e.preventDefault();
  const text = input.value.trim();
  if (!text) return;
  try {
    const found = await get(address(["find"], { q: text }));
    const kind = Object.keys(FOUND).find((name) => found[name]);
    if (!kind) return say(`Nothing is named ${text}.`);
    input.value = "";
    go(FOUND[kind](found[kind], found.queue));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    say(error.status === 404 ? `Nothing is named ${text}.` : error.message);
  }
}

// ---- drawing ----
function countsOf(o) {
  if (!o) return {};
  const silent = o.workers.filter((w) => w.state === "silent").length;
  const wrong = (page) => o.wrong.some((w) => w.page === page && w.level === "bad");
  const number = (n, page) => (n === null || n === undefined ? null : [count(n), wrong(page)]);
  return {
    running: number(o.totals.running, "running"),
    dead: number(o.totals.dead, "dead"),
    workers: silent
      ? [`${o.workers.length - silent} of ${o.workers.length}`, wrong("workers")]
      : number(o.workers.length, "workers"),
    schedules: number(o.n_schedules, "schedules"),
    locks: number(o.n_locks, "locks"),
    redis: wrong("redis") ? ["!", true] : null,
  };
}

function drawFrame() {
  const counts = countsOf(at.data.overview);
  const here = PARENT[at.name] ?? at.name;
  morph(
    nav,
    NAV.map(([path, text]) =>
      h(
        "a",
        { href: path || "./", "aria-current": path === here ? "page" : null },
        text,
        counts[path] && h("span", { class: "n" + (counts[path][1] ? " bad" : "") }, counts[path][0]),
      ),
    ),
  );
  const { about, state } = at;
  morph(
    foot,
    [
      h("div", {}, about.redis),
      about.namespace && h("div", {}, "namespace ", about.namespace),
      h("div", {}, about.version),
    ].filter(Boolean),
  );
  changes.hidden = about.changes === undefined;
  changes.textContent = about.changes ? "changes allowed" : "read only";
  changes.title = about.changes ? "" : "holdfast dashboard --allow-changes";
  document.documentElement.toggleAttribute("data-away", state === "away" || state === "lost");
  liveBox.className = "live" + (state === "live" ? "" : " " + state);
  const now = clock.mode === "ago" ? "" : `, ${hms(clock.now())} ${zoneName()}`;
  const old = at.age === null ? "" : " for " + span(at.age);
  liveText.textContent = {
    live: "live" + now,
    asking: "not live" + now,
    away: "no answer" + old,
    lost: "no answer" + old,
  }[state];
}

// What every page but the overview says first while Redis is away.
function awayBanner() {
  const words = at.state === "lost" ? "The dashboard does not answer." : "Redis does not answer.";
  const old = at.age === null ? "" : ` What you see is ${span(at.age)} old.`;
  return h(
    "div",
    { class: "whybox bad", role: "alert" },
    h("p", {}, mark("bad"), " ", h("b", {}, words), old, " ", at.away ?? ""),
  );
}

// The server has the form for a token.
const signIn = () => [
  h("h1", {}, "Sign in"),
  h(
    "p",
    {},
    "The dashboard asks for a token, or your session is over. ",
    h("a", { href: "login", rel: "external" }, "Sign in"),
  ),
];

const nothing = () =>
  PAGES.includes(pageOf(at.name))
    ? { title: "Loading", content: [h("p", { class: "empty", role: "status" }, "Loading…")], cli: [] }
    : { title: "No such page", content: [h("h1", {}, "There is no page of this address")], cli: [] };

function draw() {
  if (!main.isConnected) return;
  clearTimeout(waiting);
  waiting = 0;
  drawnAt = performance.now();
  drawFrame();
  if (at.errors.overview?.status === 401) {
    document.title = "Sign in · holdfast";
    morph(main, signIn());
    return;
  }
  const shown = view()?.view(at) ?? nothing();
  document.title = `${shown.title} · ${at.name === "" ? "" : verdict(at) + " · "}holdfast`;
  const away = (at.state === "away" || at.state === "lost") && (at.name !== "" || !at.data.overview);
  morph(
    main,
    [
      away && awayBanner(),
      shown.content,
      shown.cli.length > 0 &&
        h(
          "p",
          { class: "cli" },
          "In a terminal:",
          shown.cli.map((line) => h("code", { class: "mono" }, line)),
        ),
    ]
      .flat()
      .filter(Boolean),
  );
}

// ---- the keyboard and the links ----
function rowBy(step) {
  const links = [...main.querySelectorAll("tbody tr th a, .wrongs .go a, .lock h2")].filter((a) => a.offsetParent);
  const now = links.indexOf(document.activeElement);
  links.at(now < 0 ? (step > 0 ? 0 : -1) : Math.max(0, Math.min(links.length - 1, now + step)))?.focus();
}
const HELP = [
  ["/", "find"],
  ["o r d s w l t", "the pages"],
  ["j k", "the next and the last row"],
  ["Enter", "open it"],
  ["y", "why"],
  ["?", "this help"],
];
function help() {
  const dialog = h(
    "dialog",
    { "aria-labelledby": "help", onclose: () => dialog.remove() },
    h("h2", { id: "help" }, "Keys"),
    h(
      "dl",
      { class: "facts" },
      HELP.map(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)]),
    ),
    h("form", { method: "dialog", class: "acts" }, h("button", { type: "submit" }, "Close")),
  );
  document.body.append(dialog);
  dialog.showModal();
}
function onKey(e) {
  if (e.target.closest("input, select, textarea, dialog") || e.metaKey || e.ctrlKey || e.altKey) return;
  const page = NAV.find(([, , key]) => key === e.key);
  if (page) go(page[0] || "./");
  else if (e.key === "j" || e.key === "k") rowBy(e.key === "j" ? 1 : -1);
  else if (e.key === "y") document.getElementById("why")?.focus();
  else if (e.key === "?") help();
  else if (e.key === "/") {
    e.preventDefault();
    input.focus();
  }
}
// A link to another page needs no new document.
function onClick(e) {
  const a = e.target.closest?.("a[href]");
  if (
    !a ||
    a.download ||
    a.rel === "external" ||
    e.defaultPrevented ||
    e.button !== 0 ||
    e.metaKey ||
    e.ctrlKey ||
    e.shiftKey ||
    e.altKey
  )
    return;
  if (a.origin !== location.origin || !a.pathname.startsWith(BASE) || a.pathname.startsWith(BASE + "api/")) return;
  e.preventDefault();
  go(a.href);
}

document.getElementById("app").append(...frame());
document.addEventListener("click", onClick);
document.addEventListener("keydown", onKey);
addEventListener("popstate", arrive);
let later = 0;
addEventListener("resize", () => {
  clearTimeout(later);
  later = setTimeout(draw, 120);
});
read();
draw();
