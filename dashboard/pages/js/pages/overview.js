// overview.js - what is wrong, then the figures, the queues and the workers.
import { clock, count, exact, hms, percent, several, span } from "../format.js";
import {
  choice,
  command,
  empty,
  figure,
  h,
  known,
  link,
  mark,
  num,
  queueLink,
  section,
  table,
  tag,
  when,
  zero,
} from "../dom.js";
import { gauge, legend, spark } from "../charts.js";
import { board } from "../lanes.js";
import { missing, room } from "../page.js";
import { timeline } from "../timeline.js";
import { workerState } from "./workers.js";

const WINDOW_MS = 120000;
const WORD = { bad: "wrong", warn: "warning", note: "note", hint: "hint" };
const isHint = (w) => w.level === "hint";

function wrongList(list) {
  return h(
    "ul",
    { class: "wrongs" },
    list.map((w) =>
      h(
        "li",
        { class: "is-" + w.level, "data-key": w.rule + w.what.replace(/\d+/g, "#") },
        mark(isHint(w) ? "note" : w.level, WORD[w.level]),
        h(
          "div",
          {},
          h(isHint(w) ? "span" : "b", {}, w.what),
          w.since_ms && h("span", { class: "soft" }, " (", when(w.since_ms), ")"),
        ),
        h("div", { class: "why" }, w.why, w.why && " ", command(w.command)),
        h("div", { class: "go" }, w.page && h("a", { class: "button small", href: w.page }, "Look")),
      ),
    ),
  );
}

export function title(at) {
  const o = at.data.overview;
  if (at.state === "lost") return "The dashboard does not answer";
  if (at.state === "away") return "Redis does not answer";
  return o ? o.verdict.text : "holdfast";
}

function verdict(at) {
  const o = at.data.overview;
  const away = at.state === "away" || at.state === "lost";
  const level = away ? "bad" : o.verdict.level;
  const wrong = o.wrong.filter((w) => !isHint(w));
  const first = Math.min(...wrong.filter((w) => w.level !== "note" && w.since_ms).map((w) => w.since_ms));
  const said = away
    ? `What you see is ${span(at.age ?? 0)} old. ${at.away ?? ""}`
    : o.verdict.things > 0
      ? Number.isFinite(first) && `The first since ${hms(first)}.`
      : level === "good" &&
        `${several(o.n_queues, "queue")}, ${several(o.workers.length, "worker")} and Redis are in order.`;
  return h(
    "section",
    { "aria-labelledby": "verdict" },
    h(
      "div",
      { class: "verdict" },
      mark(level, level === "good" ? "good" : WORD[level]),
      h("div", {}, h("h1", { id: "verdict" }, title(at)), said && h("p", {}, said)),
    ),
    wrong.length > 0 && wrongList(wrong),
  );
}

// What could be set up better stands below what happens now.
function hintList(at) {
  const hints = at.data.overview.wrong.filter(isHint);
  return hints.length > 0 && section("hints", "Hints", { said: "about how this system is set up" }, wrongList(hints));
}

// list: [{name, value, more, kind, spark, said}]
export function figures(list) {
  return h(
    "dl",
    { class: "figures" },
    list.map((f) =>
      h(
        "div",
        {},
        h("dt", {}, f.name),
        h("dd", { class: f.kind ?? "" }, f.value, " ", h("small", {}, f.more)),
        f.spark && h("dd", {}, spark(f.spark, { label: f.said, kind: f.kind, w: 170, height: 26 })),
      ),
    ),
  );
}

function totals(o) {
  const t = o.totals;
  const late = o.wrong.some((w) => w.rule === "late" || w.rule === "grows");
  const more = Math.round(t.in_per_min - t.done_per_min);
  const oldest = o.queues.find((q) => q.oldest_ready_ms === t.oldest_ready_ms);
  return figures([
    {
      name: "Ready to run",
      value: count(t.ready),
      more: more > 0 && t.done_per_min !== null && `+${count(more)} / min`,
      kind: late ? "warn" : "",
      spark: t.spark?.ready,
      said: "ready jobs in the last hour",
    },
    {
      name: "Oldest waits",
      value: t.oldest_ready_ms ? span(clock.now() - t.oldest_ready_ms) : "–",
      more: t.oldest_ready_ms > 0 && oldest?.queue,
      kind: late ? "warn" : "",
      spark: t.spark?.oldest_ms,
      said: "age of the oldest ready job in the last hour",
    },
    {
      name: "Running",
      value: count(t.running),
      more: `of ${several(t.slots, "slot")}` + (t.slots > t.running ? `, ${count(t.slots - t.running)} free` : ""),
      spark: t.spark?.running,
      said: "running jobs in the last hour",
    },
    {
      name: "Done",
      value: known(t.done_per_min, count),
      more: "/ min",
      spark: t.spark?.done,
      said: "jobs done each minute",
    },
    {
      name: "Failed attempts",
      value: known(t.failed_pct, percent),
      more: known(t.failed_per_min, (n) => count(n) + " / min"),
      kind: t.failed_pct >= 20 ? "bad" : "",
      spark: t.spark?.failed,
      said: "failed attempts each minute",
    },
    {
      name: "Died, last hour",
      value: count(t.died_1h),
      more: count(t.dead) + " in all",
      kind: t.died_1h >= 10 ? "bad" : t.died_1h > 0 ? "warn" : "",
      spark: t.spark?.dead,
      said: "jobs that died each minute",
    },
  ]);
}

// ---- queues ----
const HEAD = [
  "Queue",
  "Ready, last hour",
  num("Ready"),
  num("Oldest waits"),
  num("Running"),
  num("Delayed", true),
  num("In / min"),
  num("Out / min"),
  num("Failed"),
  num("Dead"),
];
const SORTS = [
  ["trouble", "the troubled ones first"],
  ["name", "by name"],
];

function runningOf(q) {
  if (!q.max_running) return zero(q.running);
  const full = q.running >= q.max_running;
  return h(
    "span",
    { class: "gauge" },
    gauge(q.running, q.max_running, { kind: full ? "failed" : "running" }),
    h("span", { class: full ? "warn" : "" }, `${q.running} of ${q.max_running}`),
  );
}

function queueRow(q, wrong) {
  const worst = wrong.find((w) => w.page === "queue/" + q.queue)?.level;
  const kind = worst === "note" ? "" : (worst ?? "");
  const failed = q.failed_pct;
  return h(
    "tr",
    { "data-key": q.queue },
    h(
      "th",
      { scope: "row" },
      queueLink(q.queue),
      " ",
      q.paused && tag("paused", "paused"),
      q.shards?.length > 0 && tag(several(q.shards.length, "shard")),
    ),
    h("td", { class: "full" }, spark(q.spark, { label: `ready jobs in the last hour, now ${q.ready}`, kind })),
    figure("ready", zero(q.ready)),
    figure(
      "oldest",
      known(q.oldest_ready_ms, (t) => h("span", { class: kind }, span(clock.now() - t))),
    ),
    figure("running", runningOf(q)),
    h("td", { class: "num opt", "data-label": "delayed" }, zero(q.delayed)),
    figure("in / min", known(q.in_per_min, zero)),
    figure("out / min", known(q.out_per_min, zero)),
    figure(
      "failed",
      known(failed, (p) => h("span", { class: p >= 20 ? "bad" : p === 0 ? "zero" : "" }, percent(p))),
    ),
    figure(
      "dead",
      q.dead
        ? link(
            "dead?queue=" + encodeURIComponent(q.queue),
            h("span", { class: q.died_1h > 0 ? "bad" : "" }, count(q.dead)),
          )
        : zero(0),
    ),
  );
}

function queueList(at) {
  const o = at.data.overview;
  const list = at.data.queues ?? { items: o.queues, next: null };
  const find = h("input", {
    type: "search",
    class: "field",
    placeholder: "Filter",
    "aria-label": "Filter the queues by a part of their name",
    value: at.params.get("match") ?? "",
    onchange: (e) => at.put({ match: e.target.value, after: null }),
  });
  const right = [
    find,
    choice("Order of the queues", at.params.get("sort") ?? "trouble", SORTS, (sort) => at.put({ sort, after: null })),
  ];
  if (list.items.length === 0)
    return section(
      "queues",
      "Queues",
      { right: at.params.get("match") ? right : null },
      at.params.get("match")
        ? empty("No queue has this in its name.")
        : empty("There is no queue yet.", "holdfast enqueue -q mail hello '{}'"),
    );
  const next = at.data.queues ? list.next : o.n_queues > o.queues.length ? String(o.queues.length) : null;
  return section(
    "queues",
    "Queues",
    { said: exact(o.n_queues), right },
    table(
      "Queues",
      HEAD,
      list.items.map((q) => queueRow(q, o.wrong)),
    ),
    next &&
      h(
        "div",
        { class: "pager" },
        h(
          "span",
          { class: "right" },
          h("button", { type: "button", class: "small", onclick: () => at.put({ after: next }) }, "Next"),
        ),
      ),
  );
}

// ---- workers ----
function workerRow(w, rows, width) {
  const row = rows.find((r) => r.id === w.id) ?? {
    id: w.id,
    host: w.host,
    pid: w.pid,
    gone: null,
    lanes: [],
    short: [],
    bin: 1000,
  };
  const now = clock.now();
  const said =
    w.state === "silent"
      ? h("span", { class: "bad" }, "silent for ", span(now - w.heard_ms))
      : w.state === "quiet"
        ? "quiet: claims nothing"
        : "";
  return h(
    "tr",
    { "data-key": w.id },
    h(
      "th",
      { scope: "row", class: "nowrap" },
      workerState(w, `${w.host} pid ${w.pid}`),
      said && h("span", { class: "sub soft" }, said),
    ),
    h(
      "td",
      { class: "num nowrap", "data-label": "slots" },
      w.state !== "silent" &&
        h("span", { class: "gauge" }, gauge(w.running, w.concurrency), `${w.running} of ${w.concurrency}`),
    ),
    h(
      "td",
      { class: "full wide" },
      timeline([row], {
        from: now - WINDOW_MS,
        to: now,
        width,
        compact: true,
        label: `runs of ${w.host} pid ${w.pid} in the last two minutes`,
      }),
    ),
  );
}

function workerList(at) {
  const { workers } = at.data.overview;
  if (workers.length === 0)
    return section("workers", "Workers", {}, empty("No worker runs.", "holdfast worker run -q mail -- ./handler"));
  const all = room(1, 2);
  const width = Math.max(230, all > 660 ? all - 430 : all - 30);
  const now = clock.now();
  const runs = at.data.runs ?? { workers: [], runs: [], short: [] };
  const rows = board(runs, { from: now - WINDOW_MS, to: now, pxPerMs: width / WINDOW_MS });
  const marks = [
    ["ended", "ended"],
    ["running", "runs"],
    ["failed", "failed"],
    ["killed", "its worker died"],
    ["leasebar", "waits for the lease to end"],
  ];
  return section(
    "workers",
    "Workers",
    { said: "and what they ran in the last two minutes", right: [legend(marks), link("running", "Larger")] },
    table(
      "Workers",
      ["Worker", num("Slots in use"), "Runs"],
      workers.map((w) => workerRow(w, rows, width)),
    ),
  );
}

export const overview = {
  parts: (at) => ({
    runs: at.runs(WINDOW_MS),
    ...(["match", "sort", "after"].some((name) => at.params.get(name)) && {
      queues: { path: at.api(["queues"], at.filter("match", "sort", "after")), every: 2000 },
    }),
  }),
  view(at) {
    const cli = ["holdfast wrong", "holdfast queue list", "holdfast worker list"];
    if (!at.data.overview)
      return { title: title(at), cli, content: [h("h1", {}, "Overview"), missing(at, "overview")] };
    const { overview: o } = at.data;
    return { title: title(at), cli, content: [verdict(at), totals(o), queueList(at), workerList(at), hintList(at)] };
  },
};
