// The test modes, schemas, middleware, errors of handlers: all without Redis.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import {
  Cancel,
  currentJob,
  Dead,
  Holdfast,
  HoldfastError,
  Job,
  JobDead,
  Misfit,
  NotKept,
  Release,
  Retry,
} from "holdfast-queue";
import { run } from "../dist/run.js";

/** What zod and others give: an object whose members are of these types. */
function schema(members) {
  const validate = (value) => {
    const issues = Object.entries(members)
      .filter(([name, type]) => typeof value?.[name] !== type)
      .map(([name, type]) => ({ message: `expected a ${type}`, path: [name] }));
    return issues.length > 0 ? { issues } : { value: { ...value, checked: true } };
  };
  return { "~standard": { version: 1, vendor: "test", validate } };
}

const app = () => new Holdfast({ url: "unix:///nowhere" });

test("fake keeps jobs, and runs them", async () => {
  const hf = app();
  const done = [];
  const second = hf.job("second", async (data) => void done.push(data));
  const first = hf.job("first", { keep: "1h" }, async ({ to }, job) => {
    await sleep(1);
    assert.equal(currentJob(), job);
    await second.enqueue({ from: job.id });
    return to.toUpperCase();
  });
  const q = hf.testing("fake");
  const ref = await first.enqueue({ to: "ada", at: new Date(0) }, { queue: "mail", unique: "u", headers: { a: "b" } });
  assert.equal(q.jobs.length, 1);
  assert.deepEqual(q.jobs[0].data, { to: "ada", at: "1970-01-01T00:00:00.000Z" });
  assert.deepEqual(q.jobs[0].headers, { a: "b" });
  assert.equal((await first.enqueue({ to: "bob" }, { queue: "mail", unique: "u" })).outcome, "skipped");
  await assert.rejects(ref.result(), HoldfastError);
  assert.equal(await q.runAll(), 2);
  assert.equal(await ref.result(), "ADA");
  assert.equal(await ref.state(), "done");
  assert.deepEqual(done, [{ from: ref.id }]);
  const other = await second.enqueue({});
  assert.equal(q.of("second").length, 1);
  assert.equal(await other.cancel(), true);
  q.end();
  assert.equal(currentJob(), undefined);
});

test("inline runs each job where it is enqueued", async () => {
  const hf = app();
  const add = hf.job("add", { keep: "1h" }, async ({ a, b }) => a + b);
  const fails = hf.job("fails", () => {
    throw new RangeError("no");
  });
  const dead = hf.job("dead", { keep: "1h" }, () => {
    throw new Dead("no such user");
  });
  const unkept = hf.job("unkept", () => 1);
  const q = hf.testing("inline");
  assert.equal(await (await add.enqueue({ a: 1, b: 2 })).result(), 3);
  await assert.rejects(fails.enqueue(), RangeError);
  await assert.rejects((await unkept.enqueue()).result(), NotKept);
  await assert.rejects(
    (await dead.enqueue()).result(),
    (error) => error instanceof JobDead && error.text === "no such user",
  );
  q.end();
});

test("a fake job knows when it is due", async () => {
  const hf = app();
  const q = hf.testing("fake");
  const start = Date.now();
  await hf.send("t");
  await hf.send("t", 1, { delay: "1h" });
  await hf.send("t", 1, { at: "2030-01-31T08:00:00Z" });
  const [now, later, at] = q.jobs.map(({ due }) => due);
  assert.equal(now, undefined);
  assert.ok(later >= start + 3600000 && later <= Date.now() + 3600000);
  assert.deepEqual(at, new Date("2030-01-31T08:00:00Z"));
  q.end();
});

test("a fake job that asks for another run waits, until its attempts are used up", async () => {
  const hf = app();
  const runs = [];
  hf.job("busy", { maxAttempts: 2, keep: "1h" }, (_data, job) => {
    runs.push([job.attempt, job.maxAttempts]);
    throw new Retry("busy", { delay: "30s" });
  });
  hf.job("not.yet", (_data, job) => {
    runs.push([job.attempt, job.maxAttempts]);
    if (runs.length < 4) throw new Release({ delay: "1m" });
  });
  const q = hf.testing("fake");
  const busy = await hf.send("busy");
  assert.equal(await q.runAll(), 1);
  assert.deepEqual([q.jobs, q.done, await busy.state(), busy.attempts], [[busy], [], "waiting", 1]);
  assert.ok(busy.due > Date.now());
  assert.equal(await q.runAll(), 1);
  assert.deepEqual([q.jobs, q.done, await busy.state()], [[], [busy], "dead"]);
  await assert.rejects(busy.result(), (error) => error instanceof JobDead && error.text === "busy");
  const other = await hf.send("not.yet", 1, { maxAttempts: 7 });
  assert.equal(await q.runAll(), 1);
  assert.deepEqual([q.jobs, other.attempts], [[other], 0]);
  assert.equal(await q.runAll(), 1);
  assert.deepEqual([q.jobs, await other.state()], [[], "done"]);
  assert.deepEqual(runs, [
    [1, 2],
    [2, 2],
    [1, 7],
    [1, 7],
  ]);
  q.end();
});

test("a schema checks what the handler will see", async () => {
  const hf = app();
  const email = hf.job("email", { schema: schema({ to: "string" }) }, (data) => data);
  const q = hf.testing("fake");
  await assert.rejects(
    email.enqueue({ to: 7 }),
    (error) => error instanceof Misfit && error.message === "email: payload: expected a string at 'to'",
  );
  await assert.rejects(email.enqueue({ to: undefined }), Misfit);
  await email.enqueue({ to: "ada" });
  await q.runAll();
  assert.deepEqual(q.done[0].value, { to: "ada", checked: true });
  q.end();
});

async function end(handler, options = {}, fields = {}, middleware = []) {
  const hf = app();
  const type = hf.job("t", options, handler);
  return run(type, Job.fake({ payload: "{}", ...fields }), middleware);
}

test("what a handler returns is its verdict", async () => {
  assert.deepEqual(await end(() => undefined), { word: "done" });
  assert.deepEqual(await end(() => null), { word: "done", body: "null", json: true });
  assert.deepEqual(await end(() => Buffer.from("x")), { word: "done", body: Buffer.from("x"), json: false });
  assert.deepEqual(await end(() => 1n), { word: "dead", error: "result: Do not know how to serialize a BigInt" });
  assert.deepEqual(await end(() => () => 1), {
    word: "dead",
    error: "result: expected a value that JSON can express, found a function",
  });
  assert.deepEqual(await end(() => "x".repeat(65535)), {
    word: "dead",
    error: "result: expected at most 65536 bytes, found 65537",
  });
});

test("what a handler throws is its verdict", async () => {
  const thrown = (error, options, fields) =>
    end(
      () => {
        throw error;
      },
      options,
      fields,
    );
  assert.deepEqual(await thrown(new Retry("busy", { delay: "30s" })), { word: "retry", delay: 30000, error: "busy" });
  assert.deepEqual(await thrown(new Retry({ delay: 1 })), { word: "retry", delay: 1, error: "Retry" });
  assert.deepEqual(await thrown(new Release()), { word: "release", delay: undefined, error: "" });
  assert.deepEqual(await thrown(new Cancel()), { word: "cancel", delay: undefined, error: "" });
  const dead = await thrown(new Dead("gone", { cause: new Error("404") }));
  assert.deepEqual([dead.word, dead.error, dead.body.split("\n")[0]], ["dead", "gone", "Error: 404"]);
  const plain = await thrown(new RangeError("no"));
  assert.deepEqual([plain.word, plain.error], ["retry", "RangeError: no"]);
  assert.match(plain.body, /^ +at .*testing\.test\.mjs/);
  assert.deepEqual([(await thrown("text")).error, (await thrown(undefined)).error], ["text", "undefined"]);
  assert.equal((await thrown(new TypeError("x"), { deadOn: [TypeError] })).word, "dead");
  assert.equal((await thrown(new TypeError("x"), { retryOn: [RangeError] })).word, "dead");
  assert.equal((await thrown(new RangeError("x"), { retryOn: [RangeError] })).word, "retry");
  assert.equal((await thrown(new Error("x"), { backoff: (attempt) => `${attempt}s` }, { attempt: 3 })).delay, 3000);
  assert.match(
    (await thrown(new Error("x"), { backoff: () => "soon" })).body,
    /and the backoff of this job failed:\nTypeError: backoff: expected/,
  );
  assert.equal(Buffer.byteLength((await thrown(new Error("é".repeat(5000)))).error), 4096 - 1);
  assert.match(
    (await end(() => {}, {}, { payload: "{a" })).error,
    /^payload: expected JSON, found 2 bytes of something else/,
  );
});

test("limits hold even if the handler catches the error", async () => {
  const found = await end((_data, job) => {
    try {
      job.checkpoint("x".repeat(4097));
    } catch {}
  });
  assert.deepEqual(found, { word: "dead", error: "checkpoint: expected at most 4096 bytes, found 4097" });
});

test("the signal of a run, and what its reasons mean", async () => {
  for (const [why, word] of [
    ["timeout", "retry"],
    ["cancelled", "cancel"],
    ["stop", "release"],
    ["unknown", "cancel"],
  ]) {
    const found = await end(async (_data, job) => {
      setTimeout(() => job.interrupt(why), 5);
      assert.equal(job.stopping, false);
      await sleep(10000, undefined, { signal: job.signal });
    });
    assert.equal(found.word, word);
  }
  const job = Job.fake();
  job.interrupt("lost");
  assert.equal(job.signal.aborted, true);
  assert.equal(job.stopReason, "lost");
});

test("middleware is around each run, the first one outermost", async () => {
  const seen = [];
  const layer = (name) => async (job, next) => {
    seen.push(`${name} in ${job.type}`);
    const value = await next();
    seen.push(`${name} out`);
    return value + name;
  };
  const found = await end(() => "x", {}, {}, [layer("a"), layer("b")]);
  assert.equal(found.body, '"xba"');
  assert.deepEqual(seen, ["a in fake", "b in fake", "b out", "a out"]);
});

test("a fake job keeps what it is told", () => {
  const job = Job.fake({ attempt: 2, checkpoint: "17" });
  job.progress(40.9, "row 17");
  job.log("text");
  assert.deepEqual(
    [job.told.progress, job.told.log, job.attempt, String(job.checkpoint())],
    [[[40, "row 17"]], ["text"], 2, "17"],
  );
  job.checkpoint("");
  assert.equal(job.checkpoint(), undefined);
  assert.throws(() => job.progress(101), RangeError);
});

test("schedules", () => {
  const hf = app();
  const report = hf.job("report", { queue: "slow", priority: "low" }, async () => {});
  hf.cron(report, "0 3 * * 1-5", { tz: "Europe/Berlin", data: { pages: 20 }, missed: "skip", jitter: "1m" });
  hf.every(report, "5m", { id: "often", limit: 3, end: "2030-01-31T08:00:00Z" });
  const [nightly, often] = [...hf.schedules.values()].map(({ frame }) => JSON.parse(JSON.stringify(frame)));
  assert.deepEqual(nightly, {
    id: "report",
    cron: "0 3 * * 1-5",
    tz: "Europe/Berlin",
    missed: "skip",
    jitter: 60000,
    queue: "slow",
    job: { type: "report", priority: "low", payload: { pages: 20 } },
  });
  assert.deepEqual(often, {
    id: "often",
    every: 300000,
    limit: 3,
    end: Date.UTC(2030, 0, 31, 8),
    queue: "slow",
    job: { type: "report", priority: "low", payload: "" },
  });
  assert.throws(() => hf.every(report, "1m"), undefined);
  assert.throws(() => hf.every(report, "5m", { id: "often" }), /expected one schedule with the id 'often', found two/);
  assert.throws(() => hf.every(report, 10, { id: "x" }), /every: expected a duration from 1000 ms/);
  assert.throws(
    () => hf.every(report, "1m", { id: "x", overlap: "maybe" }),
    /overlap: expected "skip", "allow" or "cancel"/,
  );
  assert.throws(() => hf.every(report, "1m", { id: "x", unique: "k" }), /expected no unique keys/);
});

test("a trace context is in the headers, if the program has OpenTelemetry", async (t) => {
  const key = Symbol.for("opentelemetry.js.api.1"); // where @opentelemetry/api keeps what a program registers
  const inject = (context, carrier, { set }) => context.span && set(carrier, "traceparent", `00-${context.span}-01`);
  const active = {};
  globalThis[key] = { context: { active: () => active }, propagation: { inject } };
  t.after(() => delete globalThis[key]);
  const hf = app();
  const q = hf.testing("fake");
  await hf.send("t");
  active.span = "ab";
  await hf.send("t", 1, { headers: { tenant: "7" } });
  await hf.send("t", 1, { headers: { traceparent: "mine" } });
  assert.deepEqual(
    q.jobs.map(({ headers }) => headers),
    [{}, { tenant: "7", traceparent: "00-ab-01" }, { traceparent: "mine" }],
  );
  q.end();
});

test("a mistake in options is told", async () => {
  const hf = app();
  const type = hf.job("t", () => {});
  const wrong = { name: "TypeError", message: "options: expected an object, found '5s'" };
  await assert.rejects(type.enqueue(1, "5s"), wrong);
  assert.throws(() => type.call(1, "5s"), wrong);
  await assert.rejects(hf.send("t", 1, "5s"), wrong);
  await assert.rejects(hf.ref("x").result("5s"), wrong);
  assert.throws(() => hf.job("other", "5s", () => {}), wrong);
  await assert.rejects(type.enqueue(1, null), /^TypeError: options: expected an object, found null/);
  await assert.rejects(type.enqueue(1, { priority: "urgent" }), {
    message: `priority: expected "normal", "high" or "low", found 'urgent'`,
  });
});

test("the message of an error about a dead job has one line", () => {
  const error = new JobDead(app().ref("x"), "Error: no\n    at here");
  assert.deepEqual([error.message, error.text], ["x: Error: no", "Error: no\n    at here"]);
});
