// workers.js - the processes that run jobs.
import { bytes, clock, exact, span } from "../format.js";
import { cell, empty, figure, h, head, known, mark, num, state, table, when } from "../dom.js";
import { gauge } from "../charts.js";
import { listPager, missing } from "../page.js";

// The mark of a worker's state, before its word or its name.
export const workerState = (w, text = w.state) =>
  text === w.state ? state(w.state) : h("span", { class: "state" }, mark(w.state, w.state), text);

const memoryOf = (w) => w.memory ?? (w.pools?.length ? w.pools.reduce((sum, pool) => sum + pool.memory, 0) : null);

function row(w, newest) {
  return h(
    "tr",
    { "data-key": w.id },
    h("th", { scope: "row" }, w.host, " ", h("span", { class: "soft" }, w.pid)),
    cell("state", workerState(w)),
    figure(
      "slots in use",
      w.state === "silent"
        ? "–"
        : h("span", { class: "gauge" }, gauge(w.running, w.concurrency), `${w.running} of ${w.concurrency}`),
    ),
    cell("queues", w.queues.join(", ") || "–"),
    cell(
      "types",
      w.all_types
        ? "all"
        : w.types.length > 5
          ? `${w.types.slice(0, 5).join(", ")} and ${w.types.length - 5} more`
          : w.types.join(", ") || "–",
    ),
    figure("heard", when(w.heard_ms)),
    figure(
      "up for",
      known(w.started_ms, (t) => span(clock.now() - t)),
    ),
    figure("memory", known(memoryOf(w), bytes)),
    cell(
      "version",
      known(w.version, (v) => h("span", { class: v === newest ? "" : "warn" }, v)),
    ),
  );
}

export const workers = {
  parts: (at) => ({ workers: { path: at.api(["workers"]), every: 2000 } }),
  view(at) {
    const list = at.data.workers;
    const cli = ["holdfast worker list", "kill -TSTP PID   # quiet", "kill -TERM PID   # stop"];
    if (!list) return { title: "Workers", cli, content: [head("Workers"), missing(at, "workers")] };
    const states = new Map();
    for (const w of list.items) states.set(w.state, (states.get(w.state) ?? 0) + 1);
    const said = [...states].map(([word, n]) => `${exact(n)} ${word}`).join(", ");
    const versions = list.items.map((w) => w.version ?? "").sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    return {
      title: "Workers",
      cli,
      content: [
        head("Workers", said),
        list.items.length === 0
          ? empty("No worker runs.", "holdfast worker run -q mail -- ./handler")
          : h(
              "div",
              {},
              table(
                "Workers",
                [
                  "Worker",
                  "State",
                  num("Slots in use"),
                  "Queues",
                  "Types",
                  num("Heard"),
                  num("Up for"),
                  num("Memory"),
                  "Version",
                ],
                list.items.map((w) => row(w, versions.at(-1))),
              ),
              listPager(at, list, ""),
            ),
        h(
          "p",
          { class: "soft" },
          "A worker is silent when it ended without signing off, or cannot reach Redis. Other workers take its jobs when their leases end. The memory is that of the processes of its pools.",
        ),
      ],
    };
  },
};
