// latency.js - how long jobs waited and ran, minute by minute and by type.
import { count, percent, span } from "../format.js";
import { choice, empty, figure, h, head, known, cell, num, queueLink, section, table } from "../dom.js";
import { heat, legend, spark } from "../charts.js";
import { percentile, sum } from "../histogram.js";
import { missing, room } from "../page.js";

const WINDOWS = [
  ["1h", "1 h"],
  ["3h", "3 h"],
  ["24h", "24 h"],
  ["48h", "48 h"],
];

function picture(id, title, said, field, stats) {
  const columns = stats.columns.map((c) => ({ t: c.t_ms, buckets: c[field] ?? [] }));
  const all = sum(columns.map((c) => c.buckets));
  const [p50, p99] = [percentile(all, 0.5), percentile(all, 0.99)];
  const label =
    p50 === null
      ? `${title}: nothing ended`
      : `${title}: half of them at most ${span(p50)}, 99 of 100 at most ${span(p99)}`;
  const lines = [
    ["stroke ink", "p50"],
    ["stroke two", "p99"],
  ];
  return section(
    id,
    title,
    { said, right: legend(lines) },
    h("div", { class: "sheet pad" }, heat(columns, { width: room(2), label, step: stats.step_ms })),
  );
}

function row(t, minutes, sparks) {
  const attempts = t.done + t.failed;
  const failed = attempts > 0 ? (t.failed * 100) / attempts : null;
  const late = (ms) => h("span", { class: ms > 60000 ? "warn" : "" }, span(ms));
  return h(
    "tr",
    { "data-key": t.queue + " " + t.type },
    h("th", { scope: "row" }, t.type),
    cell("queue", queueLink(t.queue)),
    sparks && h("td", { class: "full" }, spark(t.spark, { label: "done each minute in the last hour" })),
    figure("done / min", count(t.done / minutes)),
    figure("waited p50", known(t.wait_p50_ms, late)),
    figure("waited p99", known(t.wait_p99_ms, late)),
    figure("ran p50", known(t.run_p50_ms, span)),
    figure("ran p99", known(t.run_p99_ms, span)),
    figure(
      "failed",
      known(failed, (p) => h("span", { class: p >= 20 ? "bad" : p === 0 ? "zero" : "" }, percent(p))),
    ),
  );
}

export const latency = {
  parts: (at) => ({
    stats: {
      path: at.api(["stats"], {
        since: "1h",
        ...Object.fromEntries(Object.entries(at.filter("queue", "type", "since")).filter(([, v]) => v)),
      }),
      every: 20000,
    },
  }),
  view(at) {
    const since = WINDOWS.find(([key]) => key === at.params.get("since")) ?? WINDOWS[0];
    const minutes = parseInt(since[0], 10) * 60;
    const [queue, type] = [at.params.get("queue") ?? "", at.params.get("type") ?? ""];
    const stats = at.data.stats;
    const queues = [...new Set([...(at.data.overview?.queues ?? []).map((q) => q.queue), queue])].filter(Boolean);
    const types = [...new Set([...(stats?.items ?? []).map((t) => t.type), type])].filter(Boolean);
    const acts = [
      choice("Queue", queue, [["", "all queues"], ...queues.map((q) => [q, q])], (q) =>
        at.put({ queue: q, type: null }),
      ),
      choice("Type", type, [["", "all types"], ...types.map((t) => [t, t])], (t) => at.put({ type: t })),
      choice("Window", since[0], WINDOWS, (w) => at.put({ since: w })),
    ];
    const cli = [`holdfast stats --since ${since[0]}`, "holdfast stats -q mail --json"];
    const title = { title: "Latency", cli };
    if (!stats) return { ...title, content: [head("Latency", null, acts), missing(at, "stats")] };
    if (stats.items.length === 0)
      return {
        ...title,
        content: [
          head("Latency", null, acts),
          empty("No job ended in this time, or workers keep no history.", "holdfast stats --since 48h"),
        ],
      };
    const each = stats.step_ms === 60000 ? "each minute" : "each ten minutes";
    const sparks = stats.items.some((t) => t.spark);
    const heading = [
      "Type",
      "Queue",
      sparks && "Done, last hour",
      num("Done / min"),
      num("Waited p50"),
      num("p99"),
      num("Ran p50"),
      num("p99"),
      num("Failed"),
    ].filter(Boolean);
    return {
      ...title,
      content: [
        head("Latency", null, acts),
        h(
          "div",
          { class: "two" },
          picture("waits", "How long jobs waited", `from their due time to their start, ${each}`, "waits", stats),
          picture("runs", "How long they ran", each, "runs", stats),
        ),
        section(
          "types",
          "By type",
          { said: `in the last ${since[1]}` },
          table(
            "Types of jobs",
            heading,
            stats.items.map((t) => row(t, minutes, sparks)),
          ),
        ),
      ],
    };
  },
};
