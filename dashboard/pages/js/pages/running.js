// running.js - what runs now, and what ran just before.
import { clock, exact, holder, moment, several, span } from "../format.js";
import {
  button,
  cell,
  choice,
  empty,
  figure,
  h,
  head,
  jobLink,
  known,
  none,
  num,
  queueLink,
  section,
  table,
} from "../dom.js";
import { gauge, legend } from "../charts.js";
import { changeButton } from "../change.js";
import { board, boardText, withUntold } from "../lanes.js";
import { listPager, missing, room } from "../page.js";
import { timeline } from "../timeline.js";

const WINDOWS = [
  ["1", "1 min"],
  ["2", "2 min"],
  ["10", "10 min"],
  ["60", "1 h"],
];

const minutesOf = (at) => {
  const asked = at.params.get("minutes");
  return WINDOWS.some(([m]) => m === asked) ? Number(asked) : innerWidth < 700 ? 1 : 2;
};

export const cancelButton = (at, j, small) =>
  changeButton(
    at,
    {
      label: "Cancel",
      small,
      risk: true,
      title: `Cancel job ${j.id}?`,
      text:
        j.state === "running"
          ? "Its handler is asked to end. The job is over then, and is not tried again."
          : "It is removed, and does not run.",
      verb: "Cancel it",
      path: at.api(["jobs", j.id, "cancel"]),
      body: () => ({ queue: j.queue }),
      done: `Job ${j.id} is asked to end.`,
    },
    { "aria-label": "Cancel job " + j.id },
  );

const untoldText = (n) =>
  `${several(n, "job")} ${n === 1 ? "runs" : "run"} on a worker that has not told about it yet, or is of an older version.`;

function picture(at, minutes) {
  if (!at.data.runs) return missing(at, "runs");
  const runs = at.data.running ? withUntold(at.data.runs, at.data.running) : at.data.runs;
  if (runs.workers.length === 0) return empty("No worker runs.", "holdfast worker run -q mail -- ./handler");
  const width = room();
  const to = clock.now();
  const from = to - minutes * 60000;
  const queue = at.params.get("queue");
  const chosen = queue ? { ...runs, runs: runs.runs.filter((run) => !run.queue || run.queue === queue) } : runs;
  const rows = board(chosen, { from, to, pxPerMs: width / (to - from) });
  return h(
    "div",
    { class: "sheet pad" },
    timeline(rows, {
      from,
      to,
      width,
      label: boardText(rows, from, to, moment),
      onopen: (bar) => at.go(at.api(["job", bar.id], { queue: bar.queue })),
    }),
    h(
      "p",
      { class: "soft" },
      "Runs shorter than 2 s are the columns below each worker.",
      runs.cut > 0 && ` ${several(runs.cut, "run")} more were not sent.`,
      !runs.watched && " The dashboard may not ask workers to report their runs: what ends is not seen.",
      runs.watched && runs.untold > 0 && ` ${untoldText(runs.untold)}`,
    ),
  );
}

const longestFirst = (a, b) => (a.started_ms ?? Infinity) - (b.started_ms ?? Infinity);

function row(at, j) {
  const { host, pid } = holder(j.holder);
  return h(
    "tr",
    { "data-key": j.id },
    h("th", { scope: "row" }, jobLink(j)),
    cell("type", j.type),
    cell("queue", queueLink(j.queue)),
    cell("worker", host, " ", h("span", { class: "soft" }, pid)),
    figure(
      "runs for",
      known(j.started_ms, (t) => span(clock.now() - t)),
    ),
    figure(
      "failed before",
      j.attempts > 0 ? h("span", { class: "warn" }, j.attempts) : h("span", { class: "zero" }, "0"),
    ),
    cell(
      "progress",
      j.progress === null || j.progress === undefined
        ? none()
        : h("span", { class: "gauge" }, gauge(j.progress, 100, { label: j.progress + " percent" }), j.progress + " %"),
    ),
    figure(
      "lease left",
      known(j.lease_remaining_ms, (ms) => h("span", { class: ms <= 0 ? "bad" : "" }, ms <= 0 ? "over" : span(ms))),
    ),
    h("td", { class: "num full" }, cancelButton(at, j, true)),
  );
}

export const running = {
  parts: (at) => ({
    runs: at.runs(minutesOf(at) * 60000),
    running: { path: at.api(["running"], at.filter("queue")), every: 1000 },
  }),
  view(at) {
    const list = at.data.running;
    const minutes = minutesOf(at);
    const names = at.data.overview?.queues.map((q) => q.queue) ?? [];
    const queue = at.params.get("queue") ?? "";
    const queues = [["", "all queues"], ...[...new Set([...names, queue])].filter(Boolean).map((q) => [q, q])];
    const stop = () => {
      clock.stopped = clock.stopped === null ? clock.now() : null;
      at.redraw();
    };
    const said =
      at.data.overview &&
      `${several(at.data.overview.totals.running, "job")} on ${several(at.data.overview.workers.filter((w) => w.state !== "silent").length, "worker")}`;
    return {
      title: "Running now",
      cli: ["holdfast runs --follow", "holdfast job list --state running", "holdfast job cancel ID --wait"],
      content: [
        head(
          "Running now",
          said,
          choice("Queue", queue, queues, (q) => at.put({ queue: q, after: null })),
          choice("Window", String(minutes), WINDOWS, (m) => at.put({ minutes: m })),
          button("Stop the clock", stop, { "aria-pressed": String(clock.stopped !== null) }),
        ),
        section(
          "line",
          "Timeline",
          {
            right: legend([
              ["ended", "ended"],
              ["running", "runs"],
              ["failed", "failed"],
              ["deadrun", "dead"],
              ["killed", "its worker or process died"],
              ["leasebar", "waits until the lease ends"],
              ["killline", "last heard"],
            ]),
          },
          picture(at, minutes),
        ),
        section(
          "list",
          "What runs, the longest first",
          {},
          !list
            ? missing(at, "running")
            : list.items.length === 0 && !list.next
              ? empty("No job runs.", "holdfast enqueue -q mail hello '{}'")
              : h(
                  "div",
                  {},
                  table(
                    "Running jobs",
                    [
                      "Job",
                      "Type",
                      "Queue",
                      "Worker",
                      num("Runs for"),
                      num("Failed before"),
                      "Progress",
                      num("Lease left"),
                      "",
                    ],
                    [...list.items].sort(longestFirst).map((j) => row(at, j)),
                  ),
                  listPager(
                    at,
                    list,
                    `${exact(list.items.length)} of ${exact(at.data.overview?.totals.running ?? list.items.length)}.`,
                  ),
                ),
        ),
      ],
    };
  },
};
