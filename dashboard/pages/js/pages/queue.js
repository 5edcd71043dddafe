// queue.js - a queue: why its jobs wait, its figures, its jobs.
import { clock, count, exact, named, percent, several, span, word } from "../format.js";
import {
  cell,
  command,
  empty,
  facts,
  figure,
  h,
  head,
  jobLink,
  known,
  link,
  num,
  section,
  table,
  tag,
  when,
  zero,
} from "../dom.js";
import { legend, lines } from "../charts.js";
import { changeButton } from "../change.js";
import { listPager, missing, room } from "../page.js";
import { figures } from "./overview.js";

const STATES = ["ready", "delayed", "retry", "running", "dead", "done", "parked"];
const DUE = { dead: "Died", done: "Ended" };

// reasons: [{word, text, command}], as `job why` has them; a second sentence stands behind a newline.
export function whyBox(title, reasons, said, bad) {
  return h(
    "section",
    { class: "whybox" + (bad ? " bad" : ""), "aria-labelledby": "why" },
    h("h2", { id: "why", tabindex: -1 }, title),
    h(
      "ul",
      {},
      reasons.map((r) =>
        h(
          "li",
          {},
          r.text.split("\n").map((line) => h("div", {}, line)),
          r.command && h("div", {}, command(r.command)),
        ),
      ),
      said && h("li", { class: "soft" }, said),
    ),
  );
}

function why(q) {
  const free = q.free_slots === null ? "" : `The workers of this queue have ${several(q.free_slots, "free slot")}.`;
  const backlog = q.backlog_ms
    ? ` At the rate of now the backlog of ${exact(q.ready)} takes ${span(q.backlog_ms)} if nothing more comes.`
    : "";
  const none = { text: q.ready > 0 ? "Nothing holds them up: they start." : "No job waits." };
  return whyBox("Why jobs wait", q.reasons.length > 0 ? q.reasons : [none], free + backlog);
}

function acts(at, q) {
  const limit = (name, label, value) =>
    h("label", {}, label, h("input", { type: "number", class: "field", min: 0, name, value: value || 0 }));
  const running = limit("max_running", "At most running (0: no limit) ", q.max_running);
  const rate = limit(
    "rate_limit",
    "Starts in a second (0: no limit) ",
    q.rate_limit && Math.round((q.rate_limit * 1000) / q.rate_per_ms),
  );
  const valueOf = (label) => Number(label.querySelector("input").value);
  const path = (verb) => at.api(["queues", q.queue, verb]);
  return [
    q.paused
      ? changeButton(at, {
          label: "Resume",
          title: `Resume ${q.queue}?`,
          text: "Its workers take jobs again.",
          verb: "Resume",
          path: path("resume"),
          done: `${q.queue} is resumed.`,
        })
      : changeButton(at, {
          label: "Pause",
          title: `Pause ${q.queue}?`,
          text: "No job of it starts until it is resumed. Running jobs go on.",
          verb: "Pause",
          path: path("pause"),
          done: `${q.queue} is paused.`,
        }),
    changeButton(at, {
      label: "Limits…",
      title: `Limits of ${q.queue}`,
      text: "They hold for all workers together, from the next start on.",
      verb: "Set them",
      fields: [running, rate],
      path: path("limit"),
      body: () => ({ max_running: valueOf(running), rate: valueOf(rate) ? `${valueOf(rate)}/1s` : "0" }),
      done: `The limits of ${q.queue} are set.`,
    }),
    changeButton(at, {
      label: "Purge…",
      title: `Remove the jobs of ${q.queue}?`,
      text: "All jobs that wait or are dead are removed, and cannot be brought back. Running jobs go on.",
      verb: "Remove them",
      risk: true,
      typed: q.queue,
      path: path("purge"),
      body: () => ({ confirm: q.queue }),
      done: `The jobs of ${q.queue} are removed.`,
    }),
  ];
}

function pictures(at) {
  const past = at.data.history;
  if (!past) return section("past", "The last hour", {}, missing(at, "history"));
  const width = room(2);
  const last = (values) => count(values.findLast((v) => v !== null) ?? 0);
  return h(
    "div",
    { class: "two" },
    section(
      "ready-past",
      "Ready jobs",
      { said: "last hour, each minute" },
      h(
        "div",
        { class: "sheet pad" },
        lines([{ name: "ready", values: past.ready, area: true }], {
          times: past.t,
          width,
          label: `Ready jobs in the last hour, ${last(past.ready)} at its end`,
        }),
      ),
    ),
    section(
      "rates",
      "In and out",
      {
        said: "jobs a minute",
        right: legend([
          ["stroke", "in"],
          ["stroke out", "done"],
          ["stroke two", "failed"],
        ]),
      },
      h(
        "div",
        { class: "sheet pad" },
        lines(
          [
            { name: "in", values: past.in },
            { name: "done", values: past.done, kind: "out" },
            { name: "failed", values: past.failed, kind: "two" },
          ],
          {
            times: past.t,
            width,
            label: `Jobs in and out each minute; at the end ${last(past.in)} in, ${last(past.done)} done, ${last(past.failed)} failed`,
          },
        ),
      ),
    ),
  );
}

// ---- jobs by state ----
function tabs(at, q, shown) {
  const numbers = {
    ready: q.ready,
    delayed: q.delayed,
    running: q.running,
    dead: q.dead,
    done: q.kept,
    parked: q.parked,
  };
  const choose = (name) => at.put({ state: name, after: null });
  const keys = (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step) return;
    const next = STATES.at((STATES.indexOf(shown) + step) % STATES.length);
    choose(next);
    document.getElementById("tab-" + next)?.focus();
  };
  return h(
    "div",
    { class: "tabs", role: "tablist", "aria-label": "Jobs by state", onkeydown: keys },
    STATES.map((name) =>
      h(
        "button",
        {
          type: "button",
          role: "tab",
          id: "tab-" + name,
          "aria-selected": String(name === shown),
          "aria-controls": "jobs-panel",
          tabindex: name === shown ? 0 : -1,
          onclick: () => choose(name),
        },
        name,
        numbers[name] !== undefined && [" ", h("span", { class: "soft" }, count(numbers[name]))],
      ),
    ),
  );
}

const jobRow = (j, shown) =>
  h(
    "tr",
    { "data-key": j.id },
    h("th", { scope: "row" }, jobLink(j)),
    cell("type", j.type),
    cell("priority", j.priority),
    figure("failed", zero(j.attempts)),
    figure("payload", known(j.payload_bytes, zero)),
    shown === "running"
      ? figure("lease left", known(j.lease_remaining_ms, span))
      : cell((DUE[shown] ?? "due").toLowerCase(), when(j.due_ms)),
    h("td", { class: "full" }, j.error ? h("span", { class: "mono clip" }, j.error) : ""),
  );

function jobs(at, q, shown) {
  const list = at.data.jobs;
  const filter = (name, label) =>
    h("input", {
      type: "search",
      class: "field",
      placeholder: label,
      "aria-label": `Only jobs with this ${label}`,
      value: at.params.get(name) ?? "",
      onchange: (e) => at.put({ [name]: e.target.value.trim(), after: null }),
    });
  const filtered = ["type", "error", "match"].some((name) => at.params.get(name));
  const heading = [
    "Job",
    "Type",
    "Priority",
    num("Failed"),
    num("Payload, bytes"),
    shown === "running" ? num("Lease left") : (DUE[shown] ?? "Due"),
    "Error",
  ];
  const body = !list
    ? missing(at, "jobs")
    : list.items.length === 0 && !list.next && !at.params.get("after")
      ? empty(
          filtered ? "No job fits." : `No job is ${shown}.`,
          filtered ? null : `holdfast job list -q ${word(q.queue)} --state ${shown}`,
        )
      : h(
          "div",
          {},
          table(
            `${shown} jobs`,
            heading,
            list.items.map((j) => jobRow(j, shown)),
          ),
          listPager(
            at,
            list,
            several(list.items.length, "job") +
              (shown === "ready" && !at.params.get("after") ? ", the next to start first." : "."),
          ),
        );
  return h(
    "section",
    { "aria-labelledby": "jobs" },
    h("h2", { id: "jobs", class: "vh" }, "Jobs"),
    tabs(at, q, shown),
    h(
      "div",
      { id: "jobs-panel", role: "tabpanel", "aria-labelledby": "tab-" + shown },
      h(
        "div",
        { class: "filters" },
        filter("type", "type"),
        filter("error", "error"),
        filter("match", "part of id, type or error"),
      ),
      body,
    ),
  );
}

const COUNTED = [
  "enqueued",
  "done",
  "failed",
  "lost",
  "unsure",
  "crashed",
  "cancelled",
  "deleted",
  "expired",
  "replaced",
  "healed",
];
const rateText = (q) => (q.rate_limit ? `${exact(q.rate_limit)} in ${span(q.rate_per_ms)}` : "none");

function more(q) {
  return h(
    "div",
    { class: "two" },
    section(
      "ever",
      "Since the queue began",
      {},
      h("div", { class: "sheet pad" }, facts(COUNTED.map((name) => [name, known(q[name], exact)]))),
    ),
    section(
      "limits",
      "Limits and options",
      {},
      h(
        "div",
        { class: "sheet pad" },
        facts([
          ["max running", q.max_running ? exact(q.max_running) : "none"],
          ["rate", rateText(q)],
          ["shards", q.shards?.length ? exact(q.shards.length) : "not divided"],
          ["kept done jobs", known(q.kept, exact)],
          ["parked jobs", known(q.parked, exact)],
          ["live workers", known(q.workers, exact)],
        ]),
      ),
    ),
  );
}

export const queue = {
  parts(at) {
    const name = at.rest[0] ?? "";
    return {
      queue: { path: at.api(["queues", name]), topic: "queue:" + name },
      history: { path: at.api(["queues", name, "history"], { since: "1h" }), every: 20000 },
      jobs: {
        path: at.api(["queues", name, "jobs"], {
          state: at.params.get("state") ?? "ready",
          ...at.filter("type", "error", "match", "after"),
        }),
        every: 3000,
      },
    };
  },
  view(at) {
    const name = at.rest[0] ?? "";
    const q = at.data.queue;
    const cli = [
      `holdfast queue show ${named(name)}`,
      `holdfast job list -q ${word(name)} --state ready`,
      `holdfast stats -q ${word(name)} --since 1h`,
    ];
    const heading = h("div", {}, h("p", { class: "crumb" }, link("", "Queues")), h("h1", {}, name));
    if (!q) return { title: name, cli, content: [h("div", { class: "head" }, heading), missing(at, "queue")] };
    const shown = STATES.includes(at.params.get("state")) ? at.params.get("state") : "ready";
    const full = q.max_running && q.running >= q.max_running;
    return {
      title: name,
      cli,
      content: [
        h(
          "div",
          { class: "head" },
          heading,
          q.paused && tag("paused", "paused"),
          tag(q.workers ? `served by ${several(q.workers, "worker")}` : "no worker", q.workers ? "" : "bad"),
          h("div", { class: "acts" }, acts(at, q)),
        ),
        why(q),
        figures([
          { name: "Ready", value: exact(q.ready) },
          { name: "Oldest waits", value: q.oldest_ready_ms ? span(clock.now() - q.oldest_ready_ms) : "–" },
          {
            name: "Running",
            value: exact(q.running),
            more: q.max_running ? `of at most ${exact(q.max_running)}` : "no limit",
            kind: full ? "warn" : "",
          },
          { name: "Delayed", value: exact(q.delayed), more: q.next_due_ms ? when(q.next_due_ms) : "" },
          { name: "Failed attempts", value: known(q.failed_pct, percent), kind: q.failed_pct >= 20 ? "bad" : "" },
          { name: "Dead", value: exact(q.dead), more: "in all", kind: q.died_1h >= 10 ? "bad" : "" },
        ]),
        pictures(at),
        jobs(at, q, shown),
        more(q),
      ],
    };
  },
};
