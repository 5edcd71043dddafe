// The whole way: a program becomes the worker, which starts copies of it; jobs, results, ends.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { openSync, readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Holdfast, JobCancelled, JobDead, ResultTimeout } from "holdfast-queue";
import { ended, Server, until } from "./server.mjs";

/** Starts the program. Without execve it stays the parent of the worker, as any Node before 22.15 does. */
function start(way, server, log) {
  const output = openSync(log, "a");
  const without = way === "spawn" ? ["--import", new URL("no_execve.mjs", import.meta.url).href] : [];
  return spawn(process.execPath, [...without, program], {
    stdio: ["ignore", output, output],
    env: { ...process.env, REDIS_URL: server.url, HOLDFAST_BIN: process.env.HOLDFAST },
  });
}

/** What a process runs: "" when it has ended. */
function commandOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").join(" ");
  } catch {
    return "";
  }
}

const program = fileURLToPath(new URL("app_whole.mjs", import.meta.url));
const ways = typeof process.execve === "function" ? ["execve", "spawn"] : ["spawn"];

for (const way of ways)
  describe(`a program that becomes the worker by ${way}`, () => {
    let server, worker, app, log;

    before(async () => {
      server = await new Server().start();
      log = `${server.folder}/worker.log`;
      worker = start(way, server, log);
      process.env.REDIS_URL = server.url;
      app = await import(`./app_whole.mjs?${way}`);
    });

    after(async () => {
      const code = await ended(worker);
      const text = readFileSync(log, "utf8");
      app.hf.close();
      await server.end();
      if (code !== 0) process.stderr.write(text);
      assert.equal(code, 0);
      assert.match(text, /a handler process has stopped/);
    });

    const timeout = "5m";

    test("results", async () => {
      await until(() => commandOf(worker.pid).includes("holdfast") === (way === "execve"));
      assert.equal(await (await app.add.enqueue({ a: 1, b: 2 })).result({ timeout }), 3);
      const refs = await app.hf.enqueueMany(Array.from({ length: 100 }, (_, a) => app.add.call({ a })));
      const results = await Promise.all(refs.map((ref) => ref.result({ timeout })));
      assert.deepEqual(
        results,
        refs.map((_, a) => a + 1),
      );
      assert.equal(await (await app.thirdTime.enqueue()).result({ timeout }), 3);
      const ref = await app.tenant.enqueue({ name: "ada" }, { headers: { tenant: "7" } });
      assert.equal(await ref.result({ timeout }), "ada 7 new undefined");
      const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
      assert.deepEqual(await (await app.bytes.enqueue(all)).result({ timeout }), all);
    });

    test("deaths", async () => {
      const ref = await app.broken.enqueue();
      await assert.rejects(ref.result({ timeout }), (error) => {
        assert.ok(error instanceof JobDead);
        assert.match(error.text, /^RangeError: the reason\n +at brokenHandler .*app_whole\.mjs/);
        assert.match(error.text, /\nCaused by Error: and its cause\n/);
        assert.doesNotMatch(error.text, /dist\/run\.js/);
        return true;
      });
      const bad = await app.hf.send("add", Buffer.from("{a"), { keep: "1h" });
      await assert.rejects(bad.result({ timeout }), /payload: expected JSON, found 2 bytes of something else/);
      const sent = await app.hf.send("add", { a: 1 }); // what its handler keeps is not known here
      assert.equal(await sent.result({ timeout }), 2);
    });

    test("a time-out", async () => {
      const ref = await app.hangs.enqueue({ ms: 20000 });
      await assert.rejects(
        ref.result({ timeout }),
        (error) => error instanceof JobDead && /timed out/.test(error.text),
      );
    });

    test("a loop that blocks the event loop is killed, and other jobs go on", async () => {
      const stuck = await app.spins.enqueue();
      const others = await app.hf.enqueueMany(Array.from({ length: 50 }, (_, a) => app.add.call({ a })));
      await Promise.all(others.map((ref) => ref.result({ timeout })));
      await assert.rejects(
        stuck.result({ timeout }),
        (error) => error instanceof JobDead && /timed out/.test(error.text),
      );
    });

    test("cancel of a running job", async () => {
      const ref = await app.waits.enqueue();
      await until(async () => (await ref.state()) === "running");
      await assert.rejects(ref.result({ timeout: 50 }), ResultTimeout);
      const end = assert.rejects(ref.result({ timeout }), JobCancelled);
      assert.equal(await ref.cancel(), true);
      await end;
      assert.equal(await ref.state(), "cancelled");
    });
  });

test("without execve, the worker stops when its parent is killed", async (t) => {
  const server = await new Server().start();
  t.after(() => server.end());
  const log = `${server.folder}/worker.log`;
  const parent = start("spawn", server, log);
  const worker = await until(() => readFileSync(`/proc/${parent.pid}/task/${parent.pid}/children`, "utf8").trim());
  const hf = new Holdfast({ url: server.url });
  assert.equal(await (await hf.send("add", { a: 1 }, { keep: "1h" })).result({ timeout: "5m" }), 2);
  hf.close();
  assert.match(commandOf(worker), /holdfast worker --parent/);
  await ended(parent, "SIGKILL");
  await until(() => commandOf(worker) === "");
  const text = readFileSync(log, "utf8");
  assert.match(text, /a handler process has stopped/, text);
});
