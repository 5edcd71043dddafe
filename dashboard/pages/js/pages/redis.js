// redis.js - whether it is Redis: the server, its answers, the data, the changes.
import { bytes, exact, span, word } from "../format.js";
import {
  cell,
  command,
  empty,
  facts,
  figure,
  h,
  head,
  known,
  mark,
  num,
  queueLink,
  section,
  state,
  table,
  when,
} from "../dom.js";
import { gauge } from "../charts.js";
import { changeButton } from "../change.js";
import { missing } from "../page.js";

const good = (text) => state(text, "good");
const bad = (text) => state(text, "bad");
const judge = (fine, text) => (fine ? good(text) : bad(text));

function memoryOf(r) {
  if (!r.maxmemory) return `${bytes(r.used_memory)}, without a limit`;
  const full = r.used_memory / r.maxmemory;
  return h(
    "span",
    { class: "gauge" },
    gauge(r.used_memory, r.maxmemory, {
      kind: full >= 0.8 ? "failed" : "running",
      label: `${Math.round(full * 100)} percent`,
    }),
    h(
      "span",
      { class: full >= 0.95 ? "bad" : full >= 0.8 ? "warn" : "" },
      `${bytes(r.used_memory)} of ${bytes(r.maxmemory)}`,
    ),
  );
}

// One server; what it does not report is not shown.
function server(r) {
  if (r.state !== "up") return [bad(r.state), " ", r.detail];
  const role = r.role === "master" ? "primary" : r.role === "slave" ? "replica" : r.role;
  const has = (value, name, show) => value !== null && value !== undefined && [name, show(value)];
  return facts([
    [
      "version",
      judge(r.role !== "slave" && !r.loading, [r.version, role, r.loading && "loading"].filter(Boolean).join(", ")),
    ],
    ["memory", memoryOf(r)],
    ["eviction", judge(r.policy === "noeviction" || !r.policy, r.policy || "not reported")],
    [
      "append-only file",
      r.aof
        ? judge(!r.aof_failed, r.aof_failed ? "its last write failed" : "on")
        : r.rdb
          ? state("off; snapshots only", "note")
          : state("off: nothing is on disk", "warn"),
    ],
    r.replicas >= 0 && [
      "replicas",
      exact(r.replicas) + (r.good_replicas >= 0 ? `, ${exact(r.good_replicas)} of them good` : ""),
    ],
    has(r.uptime_ms, "up for", span),
    has(
      r.clients,
      "clients",
      (n) => exact(n) + (r.blocked_clients ? `, of which ${exact(r.blocked_clients)} wait` : ""),
    ),
    has(r.ops_per_s, "commands", (n) => exact(n) + " in a second"),
    has(r.cpu, "CPU", (share) =>
      h(
        "span",
        { class: "gauge" },
        gauge(share, 1, { label: `${Math.round(share * 100)} percent` }),
        `${Math.round(share * 100)} % of a core`,
      ),
    ),
    has(r.clock_steps, "clock", (n) => judge(n === 0, n === 0 ? "no step seen" : `${n} steps seen`)),
  ]);
}

function servers(at, r) {
  const nodes = r.servers ?? [];
  if (nodes.length === 1)
    return section("server", "The server", {}, h("div", { class: "sheet pad" }, server(nodes[0])));
  const row = (n) =>
    h(
      "tr",
      { "data-key": n.place, class: n.state === "up" ? null : "pale" },
      h("th", { scope: "row" }, n.place),
      cell("state", n.state !== "up" ? bad(n.state) : good(n.role === "slave" ? "replica" : "primary")),
      cell("version", n.version),
      cell("memory", n.state === "up" ? memoryOf(n) : "–"),
      cell(
        "CPU",
        known(n.cpu, (share) => `${Math.round(share * 100)} %`),
      ),
      figure("clients", known(n.clients, exact)),
      cell("up for", known(n.uptime_ms, span)),
      h("td", { class: "full" }, n.detail),
    );
  return section(
    "server",
    "The nodes",
    { said: exact(nodes.length) },
    table(
      "Nodes of the cluster",
      ["Node", "State", "Version", "Memory", "CPU", num("Clients"), "Up for", ""],
      nodes.map(row),
    ),
  );
}

// How long the answers to this dashboard took, since it started: [[upper bound in ms, count], ..].
function answers(r) {
  const list = r.tasks ?? [];
  const most = Math.max(1, ...list.map(([, n]) => n));
  const name = (ms, i) => (ms === null ? `longer than ${span(list[i - 1][0])}` : `up to ${span(ms)}`);
  return section(
    "answers",
    "Answers to this dashboard",
    { said: "since it started" },
    h(
      "div",
      { class: "sheet pad" },
      facts([
        ["an answer takes", `${(r.round_trip_us / 1000).toFixed(2)} ms now`],
        [
          "clock of Redis",
          `${span(Math.abs(r.ahead_us / 1000))} ${r.ahead_us < 0 ? "behind" : "ahead of"} this host, within ${span(r.unsure_us / 1000)}`,
        ],
        ...list.map(([ms, n], i) => [
          name(ms, i),
          h("span", { class: "gauge long" }, gauge(n, most, { w: 160, label: `${n} answers` }), exact(n)),
        ]),
      ]),
    ),
  );
}

function findings(at) {
  const d = at.data.doctor;
  const again = changeButton(at, {
    label: "Check the data now",
    small: true,
    title: "Check the data?",
    text: "All queues are looked at, in small steps. Nothing is repaired.",
    verb: "Check",
    path: "doctor",
    done: "The data are checked.",
  });
  const title = (said) => ({ said, right: again });
  if (!d) return section("findings", "Findings", { right: again }, missing(at, "doctor"));
  if (!d.looked_ms)
    return section(
      "findings",
      "Findings",
      title("the data were not checked yet"),
      h("p", {}, command("holdfast doctor")),
    );
  const said = ["of the check ", when(d.looked_ms), `: ${exact(d.found)}`, !d.whole && ", of a part of the data"];
  if (d.items.length === 0)
    return section(
      "findings",
      "Findings",
      title(said),
      h("p", { class: "sheet empty" }, "Nothing is wrong in the data."),
    );
  return section(
    "findings",
    "Findings",
    title(said),
    h(
      "ul",
      { class: "wrongs" },
      d.items.map((f) =>
        h(
          "li",
          { class: "is-bad", "data-key": `${f.queue} ${f.check} ${f.id}` },
          mark("bad", "wrong"),
          h("div", {}, f.queue && [queueLink(f.queue), ": "], f.text),
          h(
            "div",
            { class: "why" },
            f.repair && !f.by_hand
              ? command(`holdfast doctor${f.queue ? " -q " + word(f.queue) : ""} --fix`)
              : f.repair,
          ),
        ),
      ),
    ),
  );
}

function dataOf(list) {
  if (!list?.length) return null;
  const most = Math.max(1, ...list.map((q) => q.bytes ?? 0));
  const all = Math.max(
    1,
    list.reduce((sum, q) => sum + (q.bytes ?? 0), 0),
  );
  return section(
    "data",
    "Data of each queue",
    { said: "about: counts times the mean of 20 samples" },
    table(
      "Data of each queue",
      ["Queue", num("Jobs"), num("Memory"), "Share"],
      list.map((q) =>
        h(
          "tr",
          { "data-key": q.queue },
          h("th", { scope: "row" }, queueLink(q.queue)),
          figure("jobs", exact(q.jobs)),
          figure(
            "memory",
            known(q.bytes, (n) => "about " + bytes(n)),
          ),
          h(
            "td",
            { class: "full" },
            h(
              "span",
              { class: "gauge long" },
              gauge(q.bytes ?? 0, most, {
                w: 160,
                label: `${Math.round(((q.bytes ?? 0) / all) * 100)} percent of all`,
              }),
            ),
          ),
        ),
      ),
    ),
  );
}

const changesOf = (list) =>
  section(
    "changes",
    "Changes made here",
    { said: "the last 100" },
    list.length > 0
      ? table(
          "Changes made through this dashboard",
          ["When", "Who", "What", "Result"],
          list.map((c) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, when(c.at_ms)),
              cell("who", c.by === "-" ? "not known" : c.by, h("span", { class: "sub" }, c.role)),
              h("td", { class: "full" }, c.what.replaceAll("_", " "), " ", h("span", { class: "mono" }, c.of)),
              cell("result", h("span", { class: c.status >= 400 ? "warn" : "" }, c.result)),
            ),
          ),
        )
      : empty("Nothing was changed through this dashboard since it started."),
  );

export const redis = {
  parts: () => ({ redis: { path: "redis", every: 3000 }, doctor: { path: "doctor", every: 10000 } }),
  view(at) {
    const r = at.data.redis;
    const cli = ["holdfast doctor", "holdfast doctor --fix"];
    if (!r) return { title: "Redis", cli, content: [head("Redis"), missing(at, "redis"), findings(at)] };
    const wrong = at.data.overview?.wrong.filter((w) => w.page === "redis" && ["bad", "warn"].includes(w.level)) ?? [];
    return {
      title: "Redis",
      cli,
      content: [
        head(
          "Redis",
          at.state !== "live" ? null : wrong.length === 0 ? good("in order") : wrong.map((w) => w.what).join(" "),
        ),
        h("div", { class: "two" }, servers(at, r), answers(r)),
        findings(at),
        dataOf(r.queues),
        r.changes && changesOf(r.changes),
      ].filter(Boolean),
    };
  },
};
