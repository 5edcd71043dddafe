// lanes.js - from the runs that the server tells to the rows of the timeline. No document is needed here.
import { holder } from "./format.js";

export const MOST_BARS = 2000;
const KEEP_MS = 3600000; // the longest window
const LONG_MS = 2000; // shorter runs are counted only

const keyOf = (run) => `${run.id} ${run.run} ${run.worker} ${run.again ?? 0}`;
// The answer to a request is whole from `from_ms` on, an event has what the looks from `from_look` on found.
const isWhole = (data) => data.from_ms !== undefined;

// Whether events are missing between what is known and this one.
export const missedRuns = (old, fresh) => !isWhole(fresh) && (fresh.from_look > old.look + 1 || fresh.look < old.look);

// What was known, and what came since: a run that has ended replaces itself as it ran.
export function mergeRuns(old, fresh) {
  const since = (fresh.now_ms ?? 0) - KEEP_MS;
  const whole = isWhole(fresh);
  const runs = new Map(old.runs.filter((run) => run.end_ms || !whole).map((run) => [keyOf(run), run]));
  for (const run of fresh.runs) runs.set(keyOf(run), run);
  const short = new Map(
    old.short.filter((s) => !whole || s.t_ms < fresh.from_ms).map((s) => [`${s.worker} ${s.t_ms}`, s]),
  );
  for (const s of fresh.short) short.set(`${s.worker} ${s.t_ms}`, s);
  return {
    ...fresh,
    look: missedRuns(old, fresh) ? old.look : fresh.look,
    cut: whole ? fresh.cut : old.cut + (fresh.look > old.look ? fresh.cut : 0),
    runs: [...runs.values()].filter((run) => !run.end_ms || run.end_ms >= since),
    short: [...short.values()].filter((s) => s.t_ms >= since),
  };
}

// With what runs although no worker has told about it, from the list of running jobs.
export function withUntold(data, list) {
  const told = new Set(data.runs.filter((run) => !run.end_ms).map((run) => `${run.queue} ${run.id} ${run.worker}`));
  const untold = list.items
    .filter((j) => !told.has(`${j.queue} ${j.id} ${j.holder}`) && j.started_ms && list.now_ms - j.started_ms >= LONG_MS)
    .map((j) => ({
      ...j,
      run: j.attempts + j.crashes + 1,
      worker: j.holder,
      slot: null,
      start_ms: j.started_ms,
      end_ms: null,
      outcome: "runs",
      lease_until_ms: list.now_ms + j.lease_remaining_ms,
    }));
  return { ...data, runs: [...data.runs, ...untold], untold: untold.length };
}

// How a bar looks: "run" while it runs, "killed" where its worker or its process died, else by its outcome.
export function kindOf(run, gone) {
  if (run.outcome === "gone" || run.outcome === "crashed") return "killed";
  if (!run.end_ms) return gone ? "killed" : "run";
  return { failed: "fail", lost: "fail", dead: "dead" }[run.outcome] ?? "ended";
}

// Its bar ends where its worker was last heard, its box where its lease ends, of which nobody told the end.
function killedAt(run, gone) {
  if (!gone || run.outcome === "crashed") return { end: run.end_ms, lease: null };
  return { end: Math.max(run.start_ms, Math.min(gone, run.end_ms ?? gone)), lease: run.lease_until_ms };
}

// The first lane that is free at the start of a run, for servers that do not know its slot.
function laneFor(lanes, start) {
  const free = lanes.findIndex((lane) => lane.until <= start);
  return free < 0 ? lanes.length : free;
}

function lanesOf(bars) {
  const slots = [...new Set(bars.map((b) => b.slot))].filter((slot) => Number.isInteger(slot)).sort((a, b) => a - b);
  const lanes = slots.map(() => ({ bars: [], until: -Infinity }));
  for (const bar of bars) {
    const i = Number.isInteger(bar.slot) ? slots.indexOf(bar.slot) : laneFor(lanes, bar.start);
    lanes[i] ??= { bars: [], until: -Infinity };
    lanes[i].bars.push(bar);
    lanes[i].until = Math.max(lanes[i].until, bar.end);
  }
  return lanes.map((lane) => lane.bars);
}

// Counts by worker and `bin` ms of what is too short for a bar.
function strips(short, bin) {
  const found = new Map();
  const add = (worker, t, ok, failed) => {
    const strip = found.get(worker) ?? new Map();
    const at = Math.floor(t / bin) * bin;
    const sum = strip.get(at) ?? { t: at, ok: 0, failed: 0 };
    sum.ok += ok;
    sum.failed += failed;
    found.set(worker, strip.set(at, sum));
  };
  for (const s of short) add(s.worker, s.t_ms, s.ok, s.failed);
  return { add, of: (worker) => [...(found.get(worker)?.values() ?? [])] };
}

// The rows of [from, to]: a worker with its lanes of bars, and its strip. pxPerMs is the scale of the picture: what has
// ended and would be less than 2 px wide is counted in the strip.
export function board({ workers, runs, short }, { from, to, pxPerMs }) {
  const bin = [1000, 5000, 10000, 30000, 60000].find((ms) => ms * pxPerMs >= 2.5) ?? 60000;
  const strip = strips(
    short.filter((s) => s.t_ms >= from),
    bin,
  );
  const gone = new Map(workers.filter((w) => w.gone_ms).map((w) => [w.id, w.gone_ms]));
  const bars = new Map();
  const seen = runs.filter((run) => run.start_ms <= to && (run.end_ms ?? to) >= from);
  seen.sort((a, b) => a.start_ms - b.start_ms);
  let room = MOST_BARS;
  for (const run of seen.reverse()) {
    const kind = kindOf(run, gone.get(run.worker));
    const { end, lease } =
      kind === "killed" ? killedAt(run, gone.get(run.worker)) : { end: run.end_ms ?? to, lease: null };
    const tiny = run.end_ms && kind !== "killed" && (end - run.start_ms) * pxPerMs < 2;
    if (tiny || room === 0) {
      if (run.end_ms) strip.add(run.worker, run.end_ms, kind === "fail" ? 0 : 1, kind === "fail" ? 1 : 0);
      continue;
    }
    room--;
    const bar = { ...run, kind, start: run.start_ms, end, lease };
    bars.set(run.worker, [bar, ...(bars.get(run.worker) ?? [])]);
  }
  return workers
    .filter((w) => (!w.ended_ms && !w.gone_ms) || w.gone_ms >= from || bars.has(w.id))
    .map((w) => ({
      id: w.id,
      host: w.host ?? holder(w.id).host,
      pid: w.pid ?? holder(w.id).pid,
      gone: w.gone_ms ?? null,
      started: w.started_ms ?? null,
      lanes: lanesOf(bars.get(w.id) ?? []),
      bin,
      short: strip.of(w.id),
    }));
}

// What a screen reader hears of the picture.
export function boardText(rows, from, to, moment) {
  const bars = rows.flatMap((w) => w.lanes.flat());
  const running = bars.filter((b) => b.kind === "run").length;
  const parts = [
    `Runs of ${rows.length} workers in the last ${Math.round((to - from) / 60000)} minutes:`,
    `${bars.length} longer ones, of which ${running} run now.`,
  ];
  for (const w of rows.filter((row) => row.gone))
    parts.push(`${w.host} pid ${w.pid} was last heard ${moment(w.gone)}.`);
  return parts.join(" ") + " The table below has what runs now.";
}
