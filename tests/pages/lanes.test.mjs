// From runs to the rows of the timeline, and from counts to percentiles.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  MOST_BARS,
  board,
  boardText,
  kindOf,
  mergeRuns,
  missedRuns,
  withUntold,
} from "../../dashboard/pages/js/lanes.js";
import { ROWS, percentile, rowOf, rows, sum } from "../../dashboard/pages/js/histogram.js";

const A = "web1-1-a";
const B = "web2-2-b";
const run = (id, start, end, rest) => ({
  id,
  type: "t",
  run: 1,
  worker: A,
  slot: 0,
  start_ms: start,
  end_ms: end,
  outcome: end ? "done" : "running",
  lease_until_ms: end ? null : 999999,
  progress: null,
  ...rest,
});
const workers = [
  { id: A, host: "web1", pid: 1, gone_ms: null },
  { id: B, host: "web2", pid: 2, gone_ms: 50000 },
];
const view = { from: 0, to: 100000, pxPerMs: 0.01 };

test("a run that ended replaces itself as it ran", () => {
  const old = {
    workers,
    runs: [run("x", 1000, null), run("y", 2000, null)],
    short: [{ worker: A, t_ms: 1000, ok: 3, failed: 0 }],
    look: 7,
    cut: 1,
  };
  const fresh = {
    now_ms: 9000,
    look: 8,
    from_look: 5,
    cut: 2,
    workers,
    runs: [run("x", 1000, 8000)],
    short: [{ worker: A, t_ms: 1000, ok: 4, failed: 1 }],
  };
  const both = mergeRuns(old, fresh);
  assert.deepEqual(
    both.runs.map((r) => [r.id, r.end_ms]),
    [
      ["x", 8000],
      ["y", null],
    ],
  );
  assert.deepEqual(both.short, fresh.short);
  assert.equal(both.cut, 3);
  assert.equal(mergeRuns(both, fresh).cut, 3);
});

test("an event that is too late makes the page ask for all, and goes on from what it knew", () => {
  const old = { look: 7, cut: 0, workers, runs: [], short: [] };
  const late = { ...old, look: 20, from_look: 15 };
  assert.ok(missedRuns(old, late));
  assert.ok(missedRuns(old, { ...old, look: 3, from_look: 1 })); // another process
  assert.ok(!missedRuns(old, { ...late, from_look: 8 }));
  assert.ok(!missedRuns(old, { ...old, look: 3, from_look: 0, from_ms: 0 }));
  assert.equal(mergeRuns(old, late).look, 7);
});

test("a whole answer replaces what went on, and what was counted in its time", () => {
  const old = {
    look: 7,
    cut: 5,
    workers,
    runs: [run("x", 1000, null), run("y", 2000, 4000)],
    short: [
      { worker: A, t_ms: 1000, ok: 3, failed: 0 },
      { worker: A, t_ms: 6000, ok: 9, failed: 0 },
    ],
  };
  const whole = { ...old, now_ms: 9000, from_ms: 5000, look: 2, from_look: 0, cut: 0, runs: [], short: [] };
  const both = mergeRuns(old, whole);
  assert.deepEqual([both.look, both.cut], [2, 0]);
  assert.deepEqual(
    both.runs.map((r) => r.id),
    ["y"],
  );
  assert.deepEqual(both.short, [old.short[0]]);
});

test("a job whose worker does not tell is drawn while it runs", () => {
  const job = { queue: "q", holder: A, attempts: 1, crashes: 1, lease_remaining_ms: 5000 };
  const list = {
    now_ms: 9000,
    items: [
      { ...job, id: "told", started_ms: 1000 },
      { ...job, id: "old", started_ms: 1000 },
      { ...job, id: "short", started_ms: 8000 },
    ],
  };
  const data = { workers, runs: [run("told", 1000, null, { queue: "q" })], short: [] };
  const both = withUntold(data, list);
  assert.equal(both.untold, 1);
  assert.deepEqual(
    both.runs.map((r) => [r.id, r.run, r.slot, r.lease_until_ms]),
    [
      ["told", 1, 0, 999999],
      ["old", 3, null, 14000],
    ],
  );
});

test("what ended more than an hour ago is forgotten", () => {
  const hour = 3600000;
  const old = { workers, look: 1, runs: [run("x", 0, 1000)], short: [{ worker: A, t_ms: 0, ok: 1, failed: 0 }] };
  const both = mergeRuns(old, { now_ms: hour + 2000, look: 2, from_look: 1, workers, runs: [], short: [] });
  assert.deepEqual([both.runs, both.short], [[], []]);
});

test("a run of a silent worker ends when it was last heard, and waits for its lease", () => {
  const killed = run("x", 10000, null, { worker: B, lease_until_ms: 59000 });
  const [, row] = board({ workers, runs: [killed], short: [] }, view);
  assert.deepEqual(
    [row.gone, row.lanes[0][0].kind, row.lanes[0][0].end, row.lanes[0][0].lease],
    [50000, "killed", 50000, 59000],
  );
  const over = { ...killed, outcome: "gone", end_ms: 59000 };
  const [, later] = board({ workers, runs: [over], short: [] }, view);
  assert.deepEqual([later.lanes[0][0].end, later.lanes[0][0].lease], [50000, 59000]);
  const [alive] = board({ workers, runs: [{ ...over, worker: A }], short: [] }, view);
  assert.deepEqual([alive.lanes[0][0].end, alive.lanes[0][0].lease], [59000, null]);
  assert.equal(kindOf(run("x", 1, 2, { outcome: "crashed" }), null), "killed");
  assert.equal(kindOf(run("x", 1, 2, { outcome: "cancelled" }), null), "ended");
  assert.match(
    boardText(board({ workers, runs: [killed], short: [] }, view), 0, 120000, () => "then"),
    /last 2 minutes.*web2 pid 2 was last heard then/,
  );
});

test("bars lie in the lanes of their slots, or in the first one that is free", () => {
  const slots = [run("a", 0, 9000, { slot: 7 }), run("b", 0, 9000, { slot: 3 }), run("c", 10000, 20000, { slot: 7 })];
  const [row] = board({ workers, runs: slots, short: [] }, view);
  assert.deepEqual(
    row.lanes.map((lane) => lane.map((b) => b.id)),
    [["b"], ["a", "c"]],
  );
  const free = [run("a", 0, 9000), run("b", 1000, 5000), run("c", 6000, 9000)].map((r) => ({ ...r, slot: null }));
  const [other] = board({ workers, runs: free, short: [] }, view);
  assert.deepEqual(
    other.lanes.map((lane) => lane.map((b) => b.id)),
    [["a"], ["b", "c"]],
  );
});

test("what is too narrow for a bar, or one too many, counts in the strip", () => {
  const tiny = [run("a", 1000, 1100), run("b", 1200, 1300, { outcome: "failed" }), run("c", 2000, 60000)];
  const [row] = board({ workers, runs: tiny, short: [{ worker: A, t_ms: 1000, ok: 5, failed: 0 }] }, view);
  assert.equal(row.lanes.flat().length, 1);
  assert.deepEqual(row.short, [{ t: 1000, ok: 6, failed: 1 }]);
  const many = Array.from({ length: MOST_BARS + 5 }, (_, i) => run("r" + i, i, 90000, { slot: i }));
  const [full] = board({ workers, runs: many, short: [] }, view);
  assert.equal(full.lanes.flat().length, MOST_BARS);
  assert.equal(
    full.short.reduce((n, s) => n + s.ok, 0),
    5,
  );
});

test("a worker that has ended has a row while its runs are in the window", () => {
  const ended = [{ id: A, host: "web1", pid: 1, gone_ms: null, ended_ms: 60000 }];
  const runs = [run("a", 10000, 20000)];
  assert.equal(board({ workers: ended, runs, short: [] }, view).length, 1);
  assert.equal(board({ workers: ended, runs, short: [] }, { ...view, from: 30000 }).length, 0);
});

test("a run outside of the window is no bar", () => {
  const out = [run("a", -9000, -1000), run("b", 200000, null)];
  assert.equal(board({ workers, runs: out, short: [] }, view)[0].lanes.length, 0);
});

test("percentiles lie between the bounds of their bucket", () => {
  assert.equal(percentile([], 0.5), null);
  const buckets = [
    [8, 10],
    [16, 80],
    [64, 10],
  ];
  const p50 = percentile(buckets, 0.5);
  assert.ok(p50 > 16 / Math.SQRT2 && p50 < 16);
  assert.equal(percentile([[16, 4]], 1), 16);
  assert.ok(percentile([[null, 3]], 0.5) > 2 ** 22);
  assert.deepEqual(
    sum([
      [
        [4, 1],
        [null, 2],
      ],
      [
        [2, 5],
        [4, 1],
      ],
    ]),
    [
      [2, 5],
      [4, 2],
      [null, 2],
    ],
  );
});

test("a row of the heat map is twice the one before", () => {
  assert.deepEqual([1, Math.SQRT2, 2, 2 * Math.SQRT2, 4, null].map(rowOf), [0, 1, 1, 2, 2, ROWS - 1]);
  assert.equal(
    rows([
      [1, 3],
      [2, 4],
      [Math.SQRT2, 1],
    ])[1],
    5,
  );
});
