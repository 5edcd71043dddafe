// A program that was started by hand, perhaps under a debugger, joins a worker with --listen.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { ended, Server, until } from "./server.mjs";

const program = fileURLToPath(new URL("app_whole.mjs", import.meta.url));
const timeout = "5m";

/** Starts the program, and collects what it prints. */
function join(server, ...debug) {
  const child = spawn(process.execPath, [...debug, program], {
    env: { ...process.env, REDIS_URL: server.url, HOLDFAST_SOCKET: `${server.folder}/join` },
  });
  child.output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (child.output += text));
  child.end = new Promise((resolve) => child.once("close", (code, signal) => resolve(code ?? signal)));
  return child;
}

describe("a program that joins a worker", () => {
  let server, worker, log, app, child;

  before(async () => {
    server = await new Server().start();
    process.env.REDIS_URL = server.url;
    app = await import("./app_whole.mjs?join");
  });

  beforeEach(async () => {
    const words = ["worker", "run", "--dev", "--listen", `${server.folder}/join`, "--redis", server.url];
    worker = spawn(process.env.HOLDFAST, words, { stdio: ["ignore", "ignore", "pipe"] });
    log = "";
    worker.stderr.on("data", (text) => (log += text));
    await until(() => existsSync(`${server.folder}/join`));
  });

  afterEach(async () => {
    child?.kill("SIGKILL");
    const code = await ended(worker);
    if (code !== 0) process.stderr.write(log);
    assert.equal(code, 0);
  });

  after(async () => {
    app.hf.close();
    await server.end();
  });

  test("runs jobs until the worker ends, and no time-out ends them", async () => {
    child = join(server);
    assert.equal(await (await app.add.enqueue({ a: 1, b: 2 })).result({ timeout }), 3);
    const slow = await app.hangs.enqueue({ ms: 1000 }); // its time-out is 300 ms
    assert.equal(await slow.result({ timeout }), undefined);
    assert.equal(await slow.state(), "done");
    assert.equal(await ended(worker), 0);
    assert.equal(await child.end, 0);
    assert.equal(child.output, "a handler process has stopped\n");
  });

  test("stands at a breakpoint", async () => {
    const line = 1 + readFileSync(program, "utf8").split("\n").indexOf("  return job.attempt;");
    child = join(server, "inspect", "--port=0");
    const say = async (command, answer) => {
      child.output = "";
      child.stdin.write(`${command}\n`);
      await until(() => child.output.includes(answer));
    };
    await until(() => child.output.includes("Break on start"));
    await say(`setBreakpoint('app_whole.mjs', ${line})`, `>${line}`);
    const ref = await app.thirdTime.enqueue();
    await say("cont", "break in");
    await say("exec('job.attempt + 40')", "43");
    assert.equal(await ref.state(), "running");
    await say("cont", "debug>");
    assert.equal(await ref.result({ timeout }), 3);
    child.stdin.end(".exit\n");
    assert.equal(await child.end, 0);
  });

  test("goes on after a cancel", async () => {
    child = join(server);
    const ref = await app.waits.enqueue();
    await until(async () => (await ref.state()) === "running");
    assert.equal(await ref.cancel(), true);
    await until(async () => (await ref.state()) === "cancelled");
    assert.equal(await (await app.add.enqueue({ a: 1, b: 2 })).result({ timeout }), 3);
    assert.equal(child.exitCode, null);
  });

  test("gives its job back at ^C", async () => {
    child = join(server);
    const ref = await app.waits.enqueue();
    await until(async () => (await ref.state()) === "running");
    child.kill("SIGINT");
    assert.equal(await child.end, "SIGINT");
    await until(async () => (await ref.state()) === "waiting");
    child = join(server);
    await until(async () => (await ref.state()) === "running");
    await ref.cancel();
    await until(async () => (await ref.state()) === "cancelled");
  });

  test("says that there is no worker", async () => {
    await ended(worker);
    child = join(server);
    assert.equal(await child.end, 78);
    assert.equal(
      child.output,
      `holdfast: expected a worker with --listen at the path in HOLDFAST_SOCKET, '${server.folder}/join', ` +
        `found none: connect ENOENT ${server.folder}/join\n`,
    );
  });
});
