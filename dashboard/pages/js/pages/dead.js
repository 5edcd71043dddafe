// dead.js - dead jobs by type and error, and what is done with a group of them.
import { ApiError, change } from "../api.js";
import { exact, several, span, word } from "../format.js";
import { button, choice, command, empty, figure, h, head, num, say, section, table, tag, to, when } from "../dom.js";
import { gauge, spark } from "../charts.js";
import { changeButton } from "../change.js";
import { missing } from "../page.js";

const SINCE = [
  ["", "at any time"],
  ["1h", "in the last hour"],
  ["24h", "in the last 24 h"],
];
const TASK_MS = 1000; // while one runs
const NO_TASK_MS = 5000;

// The command that does the same.
function cliOf(group, rate) {
  const error = group.error ? ` --error ${word(group.error)}` : "";
  return `holdfast dead retry -q ${word(group.queue)} --type ${word(group.type)}${error} --rate ${rate}/s`;
}

// ---- tasks that run in the server, of this reader and of others ----
const runs = (t) => t.state === "running" || t.state === "away";

function taskText(t) {
  const did = t.verb === "purge" ? "removed" : "retried";
  const unsure = t.unsure > 0 ? ` Of up to ${exact(t.unsure)} more it is not known: Redis went away.` : "";
  if (t.stopping && runs(t)) return `${exact(t.done)} of ${exact(t.total)}, stopping`;
  if (t.state === "running") return `${exact(t.done)} of ${exact(t.total)}`;
  if (t.state === "away") return `${exact(t.done)} of ${exact(t.total)}, waiting for Redis: ${t.error ?? ""}`;
  if (t.state === "done" && t.done === t.total) return `${several(t.done, "job")} ${did}.${unsure}`;
  const why = { stopped: ", then stopped", failed: `, then it failed: ${t.error}` }[t.state] ?? "";
  return `${exact(t.done)} of ${several(t.total, "job")} ${did}${why}.${unsure}`;
}

function taskLine(at, t) {
  const stop = async () => {
    try {
      await change(at.api(["tasks", t.task, "stop"]), {});
      at.reload("tasks");
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      say(error.message);
    }
  };
  const words = taskText(t);
  const what = `${t.verb} of ${t.type ?? "all types"} in ${t.queue}`;
  return h(
    "p",
    { class: "sheet pad task", role: "status", "data-key": "task " + t.task },
    h("span", { class: "progress" }, gauge(t.done, t.total || 1, { w: 200, label: words }), words),
    h("span", { class: "soft" }, what, t.key ? ": " + t.key : "", " ", when(t.began_ms)),
    at.about.changes &&
      runs(t) &&
      !t.stopping &&
      button("Stop", stop, { class: "small", "aria-label": "Stop: " + what }),
  );
}

// ---- the chosen groups ----
const nameOf = (g) => `${g.queue} ${g.type} ${g.key}`;

function bulk(at, groups) {
  const chosen = groups.filter((g) => at.own.chosen.has(nameOf(g)));
  const jobs = chosen.reduce((sum, g) => sum + g.jobs, 0);
  const rate = at.own.rate ?? 50;
  const input = h("input", {
    type: "number",
    class: "field",
    value: rate,
    min: 1,
    max: 10000,
    "aria-label": "jobs a second",
    onchange: (e) => {
      at.own.rate = Math.max(1, Number(e.target.value) || 50);
      at.redraw();
    },
  });
  const since = at.params.get("since");
  const sinceMs = since ? at.data.groups.now_ms - { "1h": 3600000, "24h": 86400000 }[since] : null;
  const each = (verb) => ({
    path: at.api(["dead", verb]),
    body: () => ({
      queue: chosen[0].queue,
      type: chosen[0].type,
      key: chosen[0].key,
      since_ms: sinceMs,
      expect: chosen[0].jobs,
      confirm: chosen[0].jobs,
      ...(verb === "retry" && { rate }),
    }),
    after: () => {
      at.own.chosen.clear();
      at.reload("tasks");
    },
    done: "It has begun.",
  });
  const one = chosen.length === 1;
  const can = one && at.about.tasks; // else the command below does it
  const what = one && `Jobs of type ${chosen[0].type} in ${chosen[0].queue} whose error is “${chosen[0].error}”.`;
  return h(
    "div",
    { class: "bulk", role: "group", "aria-label": "For the chosen group" },
    h("b", {}, jobs ? several(jobs, "job") : "Choose a group"),
    can &&
      changeButton(at, {
        ...each("retry"),
        label: "Retry…",
        main: true,
        title: `Run ${several(jobs, "dead job")} again?`,
        text: [
          `${what} ${rate} in a second: about ${span((jobs * 1000) / rate)}.`,
          "They start like new ones, with all their attempts. You can stop it; what was retried stays so.",
        ],
        verb: `Run ${several(jobs, "job")}`,
      }),
    can && at.about.changes && h("label", {}, "at", input, "in a second"),
    can &&
      changeButton(at, {
        ...each("purge"),
        label: "Purge…",
        risk: true,
        title: `Remove ${several(jobs, "dead job")}?`,
        text: [what, "They cannot be brought back. Export them first if you may need them."],
        verb: `Remove ${several(jobs, "job")}`,
        typed: String(jobs),
      }),
    one && h("span", {}, command(cliOf(chosen[0], rate))),
  );
}

// ---- the page ----
function row(at, g) {
  const choose = (e) => {
    at.own.chosen = new Set(e.target.checked ? [nameOf(g)] : []);
    at.redraw();
  };
  const bad = g.spark?.some((n) => n > 0);
  return h(
    "tr",
    { "data-key": nameOf(g) },
    h(
      "td",
      { class: "full spread" },
      h("input", {
        type: "checkbox",
        checked: at.own.chosen.has(nameOf(g)),
        "aria-label": `${several(g.jobs, "job")} of ${g.type}: ${g.error}`,
        onchange: choose,
      }),
    ),
    h(
      "th",
      { scope: "row" },
      h("a", { href: to("job", g.sample_id) + "?queue=" + encodeURIComponent(g.queue), title: "One of them" }, g.type),
      " ",
      tag(g.queue),
    ),
    h(
      "td",
      { class: "full" },
      h("span", { class: "mono" }, g.error || "no error"),
      " ",
      g.reason === "poison" && tag("poison", "bad"),
    ),
    figure("jobs", h("span", { class: bad ? "bad" : "" }, exact(g.jobs))),
    h(
      "td",
      { class: "full" },
      spark(g.spark, { label: "deaths each minute in the last hour", kind: bad ? "bad" : "" }),
    ),
    h("td", { "data-label": "first" }, when(g.first_ms)),
    h("td", { "data-label": "last" }, when(g.last_ms)),
    h(
      "td",
      { class: "num full" },
      h(
        "a",
        {
          class: "button small",
          href: `queue/${encodeURIComponent(g.queue)}?state=dead&type=${encodeURIComponent(g.type)}`,
          "aria-label": `The jobs of ${g.type} that are dead`,
        },
        "The jobs",
      ),
    ),
  );
}

// What is shown, as lines of JSON.
function exportGroups(groups) {
  const text = groups.map((g) => JSON.stringify(g)).join("\n") + "\n";
  const url = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
  const a = h("a", { href: url, download: "dead-groups.jsonl" });
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export const dead = {
  parts: (at) => ({
    groups: { path: at.api(["dead", "groups"], at.filter("queue", "since")), every: 5000 },
    tasks: { path: "tasks", every: at.data.tasks?.items.some(runs) ? TASK_MS : NO_TASK_MS },
  }),
  view(at) {
    at.own.chosen ??= new Set();
    const tasks = at.data.tasks?.items ?? [];
    const running = tasks.filter(runs).length;
    if (running !== at.own.running) {
      if (running < at.own.running) at.reload("groups", "overview");
      at.own.running = running;
      at.update();
    }
    const list = at.data.groups;
    const cli = [
      "holdfast dead list",
      "holdfast dead retry --type T --error TEXT --rate 50/s",
      "holdfast dead purge --since 1d",
    ];
    const queue = at.params.get("queue") ?? "";
    const names = [
      ...new Set([...(at.data.overview?.queues ?? []).filter((q) => q.dead > 0).map((q) => q.queue), queue]),
    ].filter(Boolean);
    const acts = [
      choice("Queue", queue, [["", "all queues"], ...names.map((q) => [q, q])], (q) => at.put({ queue: q })),
      choice("When they died", at.params.get("since") ?? "", SINCE, (since) => at.put({ since })),
      list?.groups.length > 0 &&
        button("Export", () => exportGroups(list.groups), { title: "the groups as lines of JSON" }),
    ];
    const content = [];
    if (!list) content.push(head("Dead jobs", null, acts), missing(at, "groups"));
    else {
      const all = list.groups.reduce((sum, g) => sum + g.jobs, 0);
      const whole = all >= (at.data.overview?.totals.dead ?? 0) || queue || at.params.get("since");
      content.push(
        head("Dead jobs", all > 0 && `${several(all, "job")} of ${several(list.groups.length, "kind")}`, acts),
      );
      if (list.groups.length === 0) content.push(empty("No job is dead.", "holdfast dead list"));
      else
        content.push(
          section(
            "groups",
            "By type and error",
            { said: "numbers and ids in errors count as equal" },
            table(
              "Dead jobs by type and error",
              [
                h("span", { class: "vh" }, "Choose"),
                "Type",
                "Error",
                num("Jobs"),
                "Deaths, last hour",
                "First",
                "Last",
                "",
              ],
              list.groups.map((g) => row(at, g)),
            ),
            h(
              "p",
              { class: "pager" },
              `${several(list.looked_at, "dead job")} ${list.looked_at === 1 ? "was" : "were"} looked at${whole ? "" : ": not all of them"}.${list.rest > 0 ? ` ${several(list.rest, "job")} more are of still other kinds.` : ""}`,
            ),
          ),
          bulk(at, list.groups),
        );
    }
    content.push(tasks.map((t) => taskLine(at, t)));
    return { title: "Dead jobs", cli, content: content.flat() };
  },
};
