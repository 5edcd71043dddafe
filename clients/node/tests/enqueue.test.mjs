// Producers: options, outcomes, lost answers, hooks, both Redis packages and the program's own client.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { Holdfast, JobCancelled, JobDead, JobUnknown, NoAnswer, Refused, ResultTimeout } from "holdfast-queue";
import { Server, until } from "./server.mjs";

let server, hf, r;
before(async () => {
  server = await new Server().start();
  hf = new Holdfast({ url: server.url });
  r = new Redis(server.socket);
});
after(async () => {
  hf.close();
  r.disconnect();
  await server.end();
});
beforeEach(() => r.flushall());

async function recordOf(ref) {
  return r.hget(`hf:{${ref.queue}}:jobs`, ref.id);
}

test("a job and a client are logged and sent without the connection", async () => {
  const ref = await hf.send("t");
  const shown = { id: ref.id, queue: "default", outcome: "new" };
  assert.equal(inspect(ref), `JobRef ${inspect(shown)}`);
  assert.deepEqual(JSON.parse(JSON.stringify(ref)), shown);
  const type = new Holdfast({ url: "redis://:password@localhost" }).job("t", () => {});
  for (const text of [inspect(type, { depth: 9 }), JSON.stringify(type)]) assert.doesNotMatch(text, /password/);
});

test("an error that no code catches does not show the connection", async () => {
  const ref = await hf.job("not.kept", () => {}).enqueue();
  await assert.rejects(ref.result(), (error) => {
    const text = inspect(error, { customInspect: false, depth: 9 }); // as Node shows it
    assert.match(text, /  ref: JobRef \{ id: '\S+', queue: 'default', outcome: 'new' \},\n  text: /);
    return true;
  });
});

test("a record, and the place of its options", async () => {
  const ref = await hf.send(
    "email.send",
    { to: "ada" },
    { queue: "mail", keep: "1h", priority: "high", headers: { tenant: "7" } },
  );
  assert.equal(ref.outcome, "new");
  assert.equal(ref.queue, "mail");
  assert.equal(
    await recordOf(ref),
    '{"type":"email.send","keep":3600000,"priority":"high","headers":{"tenant":"7"}}\n{"to":"ada"}',
  );
  assert.deepEqual(await r.smembers("hf:{/}:queues"), ["mail"]);
  const later = await hf.send("t", undefined, { delay: 60000 });
  const due = Number(await r.zscore("hf:{default}:schedule", later.id));
  assert.ok(Math.abs(due - Date.now() - 60000) < 60000);
  const at = await hf.send("t", undefined, { at: new Date("2100-01-01T00:00:00Z") });
  assert.equal(Number(await r.zscore("hf:{default}:schedule", at.id)), Date.UTC(2100, 0, 1));
});

test("outcomes", async () => {
  assert.equal((await hf.send("t", 1, { id: "x" })).outcome, "new");
  assert.equal((await hf.send("t", 1, { id: "x" })).outcome, "exists");
  const first = await hf.send("t", 1, { unique: "k" });
  const second = await hf.send("t", 2, { unique: "k" });
  assert.deepEqual([second.outcome, second.id], ["skipped", first.id]);
  const third = await hf.send("t", 3, { unique: "k", onConflict: "replace" });
  assert.deepEqual([third.outcome, third.id], ["replaced", first.id]);
  const parked = await hf.send("t", 4, { unique: "k", onConflict: "next" });
  assert.equal(parked.outcome, "parked");
  assert.equal(await parked.state(), "parked");
});

test("many: all of them, or none", async () => {
  const add = hf.job("many.add", async (data) => data.a);
  const refs = await hf.enqueueMany(Array.from({ length: 1000 }, (_, a) => add.call({ a })));
  assert.equal(new Set(refs.map((ref) => ref.id)).size, 1000);
  assert.deepEqual(
    [...refs].sort((a, b) => (a.id < b.id ? -1 : 1)),
    refs,
  );
  assert.equal(await r.hlen("hf:{default}:jobs"), 1000);
  await assert.rejects(
    hf.enqueueMany([add.call({ a: 1 }), add.call({ a: 1n })]),
    /many.add: expected data that JSON can express/,
  );
  await assert.rejects(hf.enqueueMany([add.call({}), add.call({}, { queue: "other" })]), /expected jobs of one queue/);
  assert.equal(await r.hlen("hf:{default}:jobs"), 1000);
  assert.deepEqual(await hf.enqueueMany([]), []);
});

test("many at the same time get producers of their own", async () => {
  const refs = await Promise.all(Array.from({ length: 200 }, (_, k) => hf.send("t", k)));
  assert.equal(new Set(refs.map((ref) => ref.id)).size, 200);
  assert.equal(await r.hlen("hf:{default}:jobs"), 200);
});

test("cancel, requeue, state, and ends without a worker", async () => {
  const ref = await hf.send("t", 1, { delay: "1h", keep: "1h", awaited: true });
  assert.equal(await ref.state(), "waiting");
  assert.equal(await ref.requeue(), true);
  const end = assert.rejects(ref.result({ timeout: "1m" }), JobCancelled);
  assert.equal(await ref.cancel(), true);
  await end;
  assert.equal(await ref.cancel(), false);
  await assert.rejects(hf.ref("never").result(), JobUnknown);
  assert.equal(await hf.ref("never").state(), "unknown");
  await r.hset("hf:{default}:jobs", "d", '{"type":"t","attempts":3,"error":"the reason"}\n');
  await r.zadd("hf:{default}:dead", Date.now(), "d");
  await assert.rejects(hf.ref("d").result(), (error) => error instanceof JobDead && error.text === "the reason");
  const waits = await hf.send("t", 1, { keep: "1h" });
  await assert.rejects(waits.result({ signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
});

test("the end of a job of a shard is heard, though only its queue was named", async (t) => {
  const tags = [0, 1].map((i) => `wide/${i}-0`);
  await r.hset("hf:{wide}:meta", { uses: "s", shards: `2 ${tags.join(" ")}` });
  const sent = await hf.send("t", 1, { queue: "wide", keep: "1h" });
  const monitor = await r.monitor();
  t.after(() => monitor.disconnect());
  const heard = new Set();
  monitor.on("monitor", (_time, [command, key]) => {
    if (/^blpop$/i.test(command)) heard.add(key.split("told:")[0]);
  });
  const end = assert.rejects(hf.ref(sent.id, "wide").result({ timeout: "1m" }), JobCancelled);
  await until(() => tags.some((tag) => heard.has(`hf:{${tag}}:`)));
  await sent.cancel();
  await end;
});

test("a request whose answer was lost is executed once", async () => {
  const ref = await hf.send("t", "before");
  assert.equal(ref.outcome, "new");
  const slow = hf.send("t", "lost");
  await r.client("KILL", "TYPE", "normal", "SKIPME", "yes");
  assert.equal((await slow).outcome, "new");
  assert.equal(await r.hlen("hf:{default}:jobs"), 2);
});

test("a request is not executed again after a step of Redis's clock forward", async () => {
  await hf.send("t", "before");
  const { link, producer } = hf;
  const execute = link.execute;
  let lost = false;
  producer.clock.redis -= 3600000; // until the next answer, which is lost
  link.execute = async function (key, words, end) {
    const answer = await execute.call(this, key, words, end);
    if (lost || words[0] !== "EVALSHA") return answer;
    lost = true; // the step ends what Redis remembers of the producer, and the job is done
    await r.del(...(await r.keys("hf:{default}:seen:*")), "hf:{default}:jobs", "hf:{default}:schedule");
    throw new Error("lost");
  };
  try {
    await assert.rejects(hf.send("t", "lost"), NoAnswer);
  } finally {
    link.execute = execute;
  }
  assert.ok(lost);
  assert.equal(await r.hlen("hf:{default}:jobs"), 0);
  assert.equal((await hf.send("t", "after")).outcome, "new");
});

test("no answer, and refused", async () => {
  const nowhere = new Holdfast({ url: "unix:///nowhere", deadline: 100 });
  await assert.rejects(nowhere.send("t"), NoAnswer);
  await r.set("hf:{default}:jobs", "no hash");
  await assert.rejects(hf.send("t", 1), (error) => error instanceof Refused && /WRONGTYPE/.test(error.message));
});

const isNew = (ref) => ref.outcome === "new";
const isNoAnswer = (error) => assert.ok(error instanceof NoAnswer, error);

for (const library of ["redis", "ioredis"])
  test(`a server that does not answer, by ${library}`, async (t) => {
    const stuck = await new Server().start();
    const own = new Holdfast({ url: stuck.url, library, deadline: 3000 });
    t.after(() => own.close() ?? stuck.end());
    for (const connected of [false, true]) {
      stuck.process.kill("SIGSTOP");
      await assert.rejects(own.send("t", connected), NoAnswer);
      stuck.process.kill("SIGCONT");
      await until(() => own.send("t", connected).then(isNew, isNoAnswer)); // a busy machine may need several deadlines
    }
  });

test("hooks", async () => {
  const own = new Holdfast({ url: server.url });
  own.onEnqueue(async (call) => {
    call.headers.tenant = "7";
    call.data = { ...call.data, more: call.queue };
  });
  const ref = await own.send("t", { a: 1 }, { headers: { locale: "de" } });
  assert.equal(await recordOf(ref), '{"type":"t","headers":{"locale":"de","tenant":"7"}}\n{"a":1,"more":"default"}');
  own.close();
});

// As a worker does it, of a job that is awaited.
async function die(ref) {
  const p = `hf:{${ref.queue}}:`;
  const [accepted] = (await r.hget(`${p}waits`, ref.id)).split(" ");
  await r.hdel(`${p}waits`, ref.id);
  await r.zrem(`${p}schedule`, ref.id);
  await r.set(`${p}ended:@${accepted}:${ref.id}`, "1700000000000 dead *");
  await r.hset(`${p}jobs`, ref.id, '{"type":"t","error":"no such user"}\n');
  await r.zadd(`${p}dead`, 1700000000000, ref.id);
}

test("a retry begins a new life", async () => {
  for (const outside of [true, false])
    for (const told of [true, false]) {
      const ref = await hf.send("t", 1, { keep: "1h", awaited: true });
      await die(ref);
      if (told) await assert.rejects(ref.result({ timeout: "1m" }), JobDead);
      assert.ok(await (outside ? hf.ref(ref.id) : ref).requeue());
      await assert.rejects(ref.result({ timeout: 200 }), ResultTimeout);
      assert.equal(await ref.state(), "waiting");
    }
  const gone = await hf.send("t", 1, { keep: "1h", awaited: true });
  await die(gone);
  await r.zrem("hf:{default}:dead", gone.id);
  await r.hdel("hf:{default}:jobs", gone.id);
  await assert.rejects(gone.result({ timeout: "1m" }), /removed since then/);
});

test("the keep of another job is not known", async () => {
  await hf.send("t", 1, { keep: "1h", id: "x", unique: "k" });
  for (const options of [{ id: "x" }, { unique: "k" }])
    await assert.rejects((await hf.send("t", 1, options)).result({ timeout: 200 }), ResultTimeout);
});

test("mistakes of the caller", async () => {
  const wrong = async (data, options, text) => assert.rejects(hf.send("t", data, options), text);
  await wrong(1, { delay: "10" }, /delay: expected a whole number of ms, or a duration such as '30s'/);
  await wrong(1, { delay: 1.5 }, /found 1.5/);
  await wrong(1, { delay: "1m2h" }, /found '1m2h'/);
  await wrong(1, { at: "2030-01-31T08:00:00" }, /at: expected a Date, or a text/);
  await wrong(1, { delay: 1, at: new Date() }, /expected delay or at, found both/);
  await wrong(1, { max_attempts: 3 }, /expected one of the options queue, .* found 'max_attempts'/);
  await wrong(1, { priority: "urgent" }, /priority: expected "normal", "high" or "low", found 'urgent'/);
  await wrong(1, { maxAttempts: 0 }, /maxAttempts: expected a whole number from 1 to 1000000, found 0/);
  await wrong(1, { uniqueFor: "1m" }, /uniqueFor needs unique/);
  await wrong(1, { headers: { a: 1 } }, /headers: expected a text as 'a', found 1/);
  await wrong(1, { headers: { a: "x".repeat(5000) } }, /headers: expected at most 4096 bytes of JSON/);
  await wrong(1, { queue: "a b" }, /expected as queue 1 to 128 characters/);
  await wrong(() => {}, {}, /t: expected data that JSON can express/);
  const loop = {};
  loop.loop = loop;
  await wrong(loop, {}, /t: expected data that JSON can express/);
  assert.throws(() => hf.job("a b", () => {}), /expected as type/);
  assert.throws(() => hf.job("x.y", { retries: 3 }, () => {}), /expected one of the options queue, .* found 'retries'/);
  assert.throws(() => hf.job("x.y", { timeout: "soon" }, () => {}), /timeout: expected/);
  assert.throws(() => new Holdfast({ redis: {} }), /redis: expected a client of node-redis/);
});

for (const [name, make] of [
  ["node-redis", async () => createClient({ socket: { path: server.socket } })],
  ["ioredis", async () => new Redis(server.socket)],
])
  test(`the program's own client: ${name}`, async (t) => {
    const client = await make();
    t.after(() => (name === "ioredis" ? client.disconnect() : client.destroy()));
    const own = new Holdfast({ redis: client, namespace: "own" });
    const ref = await own.send("t", Buffer.from([0, 255]), { keep: "1h" });
    assert.deepEqual(
      await r.hgetBuffer("own:{default}:jobs", ref.id),
      Buffer.from([...Buffer.from('{"type":"t","keep":3600000}\n'), 0, 255]),
    );
    const end = assert.rejects(ref.result({ timeout: "1m" }), JobCancelled);
    await own.ref(ref.id).cancel();
    await end;
    own.close();
    assert.equal(await client.ping(), "PONG");
  });

test("a library that is chosen", async () => {
  const own = new Holdfast({ url: server.url, library: "ioredis" });
  assert.equal((await own.send("t")).outcome, "new");
  own.close();
});

for (const library of ["redis", "ioredis"])
  test(`a closed Holdfast opens no connection: ${library}`, async () => {
    const program = `
      import { Holdfast } from "holdfast-queue";
      const hf = new Holdfast({ url: ${JSON.stringify(server.url)}, library: "${library}" });
      const ref = await hf.send("t", 1, { keep: "1h" });
      const waits = ref.result();
      const told = (error) => console.log(error.name + ": " + error.message);
      const begun = hf.send("t");
      hf.close();
      await waits.catch(told);
      await begun.catch(() => {}); // it may have been answered
      await hf.send("t").catch(told);
      await ref.result().catch(told);
      await ref.state().catch(told);
      const late = new Holdfast({ url: ${JSON.stringify(server.url)}, library: "${library}" });
      const first = late.send("t");
      await null;
      late.close();
      await first.catch(told);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
      cwd: fileURLToPath(new URL("..", import.meta.url)),
      stdio: ["ignore", "pipe", "inherit"],
    });
    const killed = setTimeout(() => child.kill("SIGKILL"), 120000);
    let text = "";
    child.stdout.on("data", (data) => (text += data));
    const [status] = await once(child, "close");
    clearTimeout(killed);
    assert.deepEqual([status, text], [0, "HoldfastError: this Holdfast is closed\n".repeat(5)]);
  });

test("a Holdfast is closed at the end of its block", async () => {
  for (const name of ["dispose", "asyncDispose"]) {
    const own = new Holdfast({ url: server.url });
    await own.send("t");
    await own[Symbol[name]]();
    await assert.rejects(own.send("t"), { name: "HoldfastError", message: "this Holdfast is closed" });
  }
});
